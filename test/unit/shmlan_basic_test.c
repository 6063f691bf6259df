/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan with several ports in one process: who gets which frame, and what it looks like.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_mbuf_dyn.h>

#include "shmlan.h"
#include "shmlan_util.h"

#define MAX_BURST 512

static const struct rte_ether_addr broadcast = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
static struct rte_ether_addr group = {{0x01, 0x00, 0x5e, 0x00, 0x00, 0x07}};
static const struct rte_ether_addr nobody = {{0x02, 0xee, 0xee, 0xee, 0xee, 0xee}};

static void
send_and_expect(uint16_t from, uint16_t to, const struct rte_ether_addr *dst, uint32_t len,
	uint32_t seq, unsigned int segs)
{
	struct rte_mbuf *m;

	su_tx(from, su_frame(dst, from, len, seq, segs));
	assert_int_equal(su_rx(to, &m, 1), 1);
	assert_int_equal(m->port, to);
	assert_true(su_frame_is(m, len, seq));
	rte_pktmbuf_free(m);
}

/* What is sent afterwards is what comes first. */
static void
send_and_expect_nothing(uint16_t from, uint16_t to, const struct rte_ether_addr *dst)
{
	struct rte_ether_addr mac = su_mac(to);

	su_tx(from, su_frame(dst, from, 60, 1, 1));
	send_and_expect(from, to, &mac, 61, 2, 1);
}

/* ---- who gets it ---- */

static void
first_frame_arrives(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);

	send_and_expect(a, b, &mac, 60, 1, 1);
	mac = su_mac(a);
	send_and_expect(b, a, &mac, 60, 2, 1);
}

static void
unicast_reaches_only_its_owner(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL), c = su_port(2, "t", NULL);
	struct rte_ether_addr mac = su_mac(c);

	send_and_expect(a, c, &mac, 100, 7, 1);
	su_expect_nothing(b);
	su_expect_nothing(a);
}

static void
segments_are_separate(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL),
		 x = su_port(2, "other", NULL);
	struct rte_ether_addr mac = su_mac(x);

	/* The first address of either segment is the same, so this one is a's own. */
	su_tx(a, su_frame(&mac, a, 60, 1, 1));
	su_tx(a, su_frame(&broadcast, a, 60, 1, 1));
	su_expect_nothing(x);
	su_close(b);
	su_wait_link(a, false);
	su_close(x);
	assert_int_equal(su_dir_entries("other"), 0);
}

static void
broadcast_reaches_all_others(void **state)
{
	uint16_t p[4];
	struct rte_mbuf *m;
	unsigned int i;

	for (i = 0; i < 4; i++)
		p[i] = su_port(i, "t", NULL);
	su_tx(p[1], su_frame(&broadcast, p[1], 2000, 5, 1));
	for (i = 0; i < 4; i++) {
		if (i == 1)
			continue;
		assert_int_equal(su_rx(p[i], &m, 1), 1);
		assert_true(su_frame_is(m, 2000, 5));
		rte_pktmbuf_free(m);
	}
	su_expect_nothing(p[1]);
}

static void
multicast_needs_its_group_or_allmulticast(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);

	send_and_expect_nothing(a, b, &group);
	assert_int_equal(su_xstat(b, "rx_drop_filter"), 1);

	assert_int_equal(rte_eth_dev_set_mc_addr_list(b, &group, 1), 0);
	send_and_expect(a, b, &group, 60, 2, 1);
	assert_int_equal(rte_eth_dev_set_mc_addr_list(b, NULL, 0), 0);
	send_and_expect_nothing(a, b, &group);

	assert_int_equal(rte_eth_allmulticast_enable(b), 0);
	send_and_expect(a, b, &group, 60, 3, 1);
	assert_int_equal(rte_eth_allmulticast_disable(b), 0);
	send_and_expect_nothing(a, b, &group);
}

static void
multicast_list_has_a_limit_and_refuses_unicast(void **state)
{
	struct rte_ether_addr list[VRB_SHMLAN_MC_MAX + 1];
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	unsigned int i;

	for (i = 0; i <= VRB_SHMLAN_MC_MAX; i++) {
		list[i] = group;
		list[i].addr_bytes[4] = i;
	}
	assert_int_equal(rte_eth_dev_set_mc_addr_list(b, list, VRB_SHMLAN_MC_MAX + 1), -ENOSPC);
	assert_int_equal(rte_eth_dev_set_mc_addr_list(b, list, VRB_SHMLAN_MC_MAX), 0);
	send_and_expect(a, b, &list[VRB_SHMLAN_MC_MAX - 1], 60, 1, 1);
	list[0] = nobody;
	assert_int_equal(rte_eth_dev_set_mc_addr_list(b, list, 1), -EINVAL);
}

static void
unknown_unicast_reaches_promiscuous_members(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL), c = su_port(2, "t", NULL);

	send_and_expect_nothing(a, c, &nobody);
	assert_int_equal(su_xstat(a, "tx_drop_unknown"), 1);
	assert_int_equal(rte_eth_promiscuous_enable(c), 0);
	send_and_expect(a, c, &nobody, 60, 9, 1);
	su_expect_nothing(b);
	assert_int_equal(rte_eth_promiscuous_disable(c), 0);
	send_and_expect_nothing(a, c, &nobody);
	assert_int_equal(su_xstat(a, "tx_drop_unknown"), 2);
}

/* A switch must not lose what it would have taken a moment later. */
static void
single_promiscuous_member_gets_unknown_unicast_with_back_pressure(void **state)
{
	uint16_t a = su_port(0, "t", "slots=32"), b = su_port(1, "t", NULL);
	struct rte_mbuf *m;
	unsigned int i;

	assert_int_equal(rte_eth_promiscuous_enable(b), 0);
	for (i = 0; i < 32; i++)
		su_tx(a, su_frame(&nobody, a, 60, i, 1));
	m = su_frame(&nobody, a, 60, 32, 1);
	assert_int_equal(rte_eth_tx_burst(a, 0, &m, 1), 0);
	for (i = 0; i <= 32; i++) {
		struct rte_mbuf *r;

		assert_int_equal(su_rx(b, &r, 1), 1);
		assert_int_equal(su_frame_seq(r), i);
		rte_pktmbuf_free(r);
		if (i == 0)
			su_tx(a, m);
	}
}

static void
own_address_is_not_looped_back(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(a);

	assert_int_equal(rte_eth_promiscuous_enable(b), 0);
	send_and_expect_nothing(a, b, &mac);
	su_expect_nothing(a);
	assert_int_equal(su_xstat(a, "tx_drop_unknown"), 1);
}

/* ---- addresses ---- */

static void
automatic_addresses_are_the_lowest_free(void **state)
{
	static const struct rte_ether_addr first = {{2, 0, 0xc6, 0x12, 0, 1}};
	static const struct rte_ether_addr second = {{2, 0, 0xc6, 0x12, 0, 2}};
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(a);

	assert_true(rte_is_same_ether_addr(&mac, &first));
	mac = su_mac(b);
	assert_true(rte_is_same_ether_addr(&mac, &second));
	su_close(a);
	a = su_port(0, "t", NULL);
	mac = su_mac(a);
	assert_true(rte_is_same_ether_addr(&mac, &first));
}

static void
automatic_address_avoids_an_explicit_one(void **state)
{
	static const struct rte_ether_addr second = {{2, 0, 0xc6, 0x12, 0, 2}};
	uint16_t b;
	struct rte_ether_addr mac;

	su_port(0, "t", "mac=02:00:c6:12:00:01");
	b = su_port(1, "t", NULL);
	mac = su_mac(b);
	assert_true(rte_is_same_ether_addr(&mac, &second));
}

static void
address_of_a_living_member_is_refused(void **state)
{
	uint16_t a = su_port(0, "t", "mac=02:00:00:00:00:aa"), b;
	struct rte_ether_addr mac;

	assert_int_equal(su_probe(1, "t", "mac=02:00:00:00:00:aa"), -EADDRINUSE);
	b = su_port(1, "t", NULL);
	mac = su_mac(a);
	assert_int_equal(rte_eth_dev_default_mac_addr_set(b, &mac), -EADDRINUSE);
	su_close(a);
	assert_int_equal(rte_eth_dev_default_mac_addr_set(b, &mac), 0);
}

static void
changed_address_is_used_at_once(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr old = su_mac(b), mac = {{2, 0, 0, 0, 0, 0x77}};

	send_and_expect(a, b, &old, 60, 1, 1);
	assert_int_equal(rte_eth_dev_default_mac_addr_set(b, &mac), 0);
	send_and_expect(a, b, &mac, 60, 2, 1);
	send_and_expect_nothing(a, b, &old);
	assert_int_equal(su_xstat(a, "tx_drop_unknown"), 1);
}

static void
bad_arguments_are_refused(void **state)
{
	static const char *const bad[] = {"mac=01:00:00:00:00:01", "mac=x", "mac=00:00:00:00:00:00",
		"slots=100", "slots=16", "slots=-1", "slots=16384", "data=100", "data=32",
		"data=4194304", "rx_zc=2", "rx_zc=", "colour=red", "segment=a", "dir=relative"};
	unsigned int i;

	for (i = 0; i < RTE_DIM(bad); i++) {
		if (su_probe(0, "t", bad[i]) >= 0)
			fail_msg("%s was accepted", bad[i]);
	}
	assert_true(su_probe(0, "..", NULL) < 0);
	assert_true(su_probe(0, "a/b", NULL) < 0);
	assert_true(su_probe(0, "", NULL) < 0);
	assert_true(su_probe(0, "12345678901234567890123456789012345678901234567890123456789012345",
			    NULL) < 0);
	assert_int_equal(rte_eth_dev_count_avail(), 0);
}

/* ---- what it looks like ---- */

static void
every_size_arrives(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);
	uint32_t n;

	for (n = 0; n <= VRB_SHMLAN_MTU_MAX; n++)
		send_and_expect(a, b, &mac, SU_HDR + n, n, 1);
}

static void
every_size_arrives_without_copy(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", "rx_zc=1");
	struct rte_ether_addr mac = su_mac(b);
	uint32_t n;

	for (n = 0; n <= VRB_SHMLAN_MTU_MAX; n++)
		send_and_expect(a, b, &mac, SU_HDR + n, n, 1);
}

static void
segments_of_a_frame_are_joined(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);
	unsigned int segs;

	for (segs = 2; segs <= 60; segs++) {
		send_and_expect(a, b, &mac, 60, segs, segs);
		send_and_expect(a, b, &mac, 112, segs, segs);
		send_and_expect(a, b, &mac, 113, segs, segs);
		send_and_expect(a, b, &mac, 9014, segs, segs);
	}
}

static void
every_burst_arrives_in_order(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL), n, i;
	struct rte_ether_addr mac = su_mac(b);
	struct rte_mbuf *m[MAX_BURST];
	uint32_t seq = 0, want = 0;

	for (n = 1; n <= MAX_BURST; n += n < 70 ? 1 : 17) {
		uint16_t sent = 0;

		for (i = 0; i < n; i++, seq++)
			m[i] = su_frame(&mac, a, 60 + seq % 600, seq, 1);
		while (sent < n)
			sent += rte_eth_tx_burst(a, 0, m + sent, n - sent);
		assert_int_equal(su_rx(b, m, n), n);
		for (i = 0; i < n; i++)
			assert_int_equal(su_frame_seq(m[i]), want++);
		rte_pktmbuf_free_bulk(m, n);
	}
}

static void
full_ring_is_back_pressure(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL), i, n;
	struct rte_ether_addr mac = su_mac(b);
	static const uint32_t lens[] = {60, 112, 420, 4160, 9014};
	struct rte_mbuf *m[MAX_BURST], *r[32];
	uint32_t k, len, seq, sent, want;

	for (k = 0; k < RTE_DIM(lens); k++) {
		len = lens[k];
		seq = sent = want = 0;
		do {
			for (i = 0; i < 32; i++)
				m[i] = su_frame(&mac, a, len, seq + i, 1);
			n = rte_eth_tx_burst(a, 0, m, 32);
			for (i = n; i < 32; i++)
				rte_pktmbuf_free(m[i]);
			seq += n;
			sent += n;
		} while (n != 0);
		assert_true(sent >= RTE_MIN(512u, (500u << 10) / len));
		/* Drained a bit, a bit more fits, and nothing is lost or out of order. */
		while (want < sent + 100) {
			n = su_rx(b, r, RTE_MIN(7u, seq - want));
			for (i = 0; i < n; i++)
				assert_int_equal(su_frame_seq(r[i]), want++);
			rte_pktmbuf_free_bulk(r, n);
			m[0] = su_frame(&mac, a, len, seq, 1);
			if (seq < sent + 100 && rte_eth_tx_burst(a, 0, m, 1) == 1)
				seq++;
			else
				rte_pktmbuf_free(m[0]);
		}
		su_expect_nothing(b);
		assert_int_equal(seq, want);
	}
	assert_true(su_xstat(a, "tx_full") >= 3);
}

static void
full_ring_of_one_member_does_not_stop_a_broadcast(void **state)
{
	uint16_t a = su_port(0, "t", "slots=32"), b = su_port(1, "t", NULL),
		 c = su_port(2, "t", NULL);
	struct rte_mbuf *m, *r[32];
	unsigned int i;

	for (i = 0; i < 200; i++) {
		su_tx(a, su_frame(&broadcast, a, 60, i, 1));
		assert_int_equal(su_rx(b, &m, 1), 1);
		assert_int_equal(su_frame_seq(m), i);
		rte_pktmbuf_free(m);
	}
	assert_int_equal(su_rx(c, r, 32), 32);
	rte_pktmbuf_free_bulk(r, 32);
	su_expect_nothing(c);
	assert_int_equal(su_xstat(a, "tx_drop_full"), 200 - 32);
}

/* A ring has to hold 64 KiB of 4 KiB frames twice. */
static void
ring_holds_two_messages_of_64_kib(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);
	struct rte_mbuf *m[32];
	unsigned int i;

	for (i = 0; i < 32; i++)
		m[i] = su_frame(&mac, a, 4160, i, 1);
	su_wait_link(a, true);
	for (i = 0; i < 32; i++)
		su_tx(a, m[i]);
	assert_int_equal(su_rx(b, m, 32), 32);
	rte_pktmbuf_free_bulk(m, 32);
}

static void
icrc_flag_travels(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);
	int bit = rte_mbuf_dynflag_lookup(VRB_SHMLAN_DYNFLAG_ICRC_OMITTED, NULL);
	struct rte_mbuf *m;
	unsigned int i;

	assert_true(bit >= 0);
	for (i = 0; i < 4; i++) {
		m = su_frame(&mac, a, i < 2 ? 60 : 4000, i, 1);
		if (i & 1)
			m->ol_flags |= RTE_BIT64(bit);
		su_tx(a, m);
		assert_int_equal(su_rx(b, &m, 1), 1);
		assert_int_equal((m->ol_flags & RTE_BIT64(bit)) != 0, i & 1);
		rte_pktmbuf_free(m);
	}
}

static void
frames_beyond_the_mtu_are_dropped(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);

	assert_int_equal(rte_eth_dev_set_mtu(b, 1500), 0);
	send_and_expect(a, b, &mac, 1518, 1, 1);
	su_tx(a, su_frame(&mac, a, 1519, 2, 1));
	send_and_expect(a, b, &mac, 60, 3, 1);
	assert_int_equal(su_xstat(b, "rx_drop_mtu"), 1);
	assert_int_equal(rte_eth_dev_set_mtu(b, 67), -EINVAL);
	assert_int_equal(rte_eth_dev_set_mtu(b, 9001), -EINVAL);
	assert_int_equal(rte_eth_dev_set_mtu(b, 9000), 0);
	send_and_expect(a, b, &mac, 9014, 3, 1);
}

static void
default_mtu_holds_roce_4096(void **state)
{
	int port = su_probe(0, "t", NULL);
	uint16_t mtu;

	assert_true(port >= 0);
	assert_int_equal(rte_eth_dev_get_mtu(port, &mtu), 0);
	assert_int_equal(mtu, VRB_SHMLAN_MTU_DEFAULT);
	su_start(port);
}

static void
impossible_frames_are_dropped_and_counted(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);
	struct rte_eth_stats stats;
	struct rte_mbuf *m;

	su_tx(a, su_frame(&mac, a, 13, 1, 1));
	assert_int_equal(su_xstat(a, "tx_drop_runt"), 1);
	m = su_frame(&mac, a, 9019, 1, 1);
	su_tx(a, m);
	assert_int_equal(su_xstat(a, "tx_drop_long"), 1);
	m = su_frame(&mac, a, 100, 1, 2);
	m->pkt_len = 99;
	su_tx(a, m);
	m = su_frame(&mac, a, 100, 1, 2);
	m->pkt_len = 101;
	su_tx(a, m);
	assert_int_equal(su_xstat(a, "tx_drop_malformed"), 2);
	su_expect_nothing(b);
	assert_int_equal(rte_eth_stats_get(a, &stats), 0);
	assert_int_equal(stats.oerrors, 4);
	assert_int_equal(stats.opackets, 0);
}

static void
no_free_cb(void *addr, void *opaque)
{
}

/* A program may unmap what it has asked to send. */
static void
vanished_memory_drops_only_its_frame(void **state)
{
	static struct rte_mbuf_ext_shared_info info = {.free_cb = no_free_cb};
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);
	struct rte_mbuf *m[3], *ext;
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint16_t n;

	assert_ptr_not_equal(page, MAP_FAILED);
	su_tx(a, su_frame(&mac, a, 60, 0, 1));
	assert_int_equal(su_rx(b, m, 1), 1);
	rte_pktmbuf_free(m[0]);
	assert_false(vrb_shmlan_tx_fault());

	m[0] = su_frame(&mac, a, 60, 1, 1);
	m[1] = su_frame(&mac, a, 60, 2, 1);
	ext = rte_pktmbuf_alloc(su_pool());
	assert_non_null(ext);
	rte_mbuf_ext_refcnt_set(&info, 1);
	rte_pktmbuf_attach_extbuf(ext, page, RTE_BAD_IOVA, 4096, &info);
	ext->data_off = 0;
	ext->data_len = ext->pkt_len = 4096;
	assert_int_equal(rte_pktmbuf_chain(m[1], ext), 0);
	m[2] = su_frame(&mac, a, 60, 3, 1);
	/* Not munmap(): another thread might map something there. */
	assert_int_equal(mprotect(page, 4096, PROT_NONE), 0);

	n = rte_eth_tx_burst(a, 0, m, 3);
	assert_int_equal(n, 2);
	assert_true(vrb_shmlan_tx_fault());
	assert_int_equal(rte_eth_tx_burst(a, 0, m + n, 1), 1);
	assert_false(vrb_shmlan_tx_fault());
	assert_int_equal(su_xstat(a, "tx_drop_fault"), 1);
	assert_int_equal(su_rx(b, m, 2), 2);
	assert_true(su_frame_is(m[0], 60, 1));
	assert_true(su_frame_is(m[1], 60, 3));
	rte_pktmbuf_free_bulk(m, 2);
	munmap(page, 4096);
}

/* ---- figures ---- */

static void
stats_count_frames_and_bytes(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);
	struct rte_eth_stats stats;

	send_and_expect(a, b, &mac, 60, 1, 1);
	send_and_expect(a, b, &mac, 5000, 2, 1);
	assert_int_equal(rte_eth_stats_get(a, &stats), 0);
	assert_int_equal(stats.opackets, 2);
	assert_int_equal(stats.obytes, 5060);
	assert_int_equal(stats.oerrors, 0);
	assert_int_equal(rte_eth_stats_get(b, &stats), 0);
	assert_int_equal(stats.ipackets, 2);
	assert_int_equal(stats.ibytes, 5060);
	assert_int_equal(stats.ierrors + stats.imissed + stats.rx_nombuf, 0);
	assert_int_equal(rte_eth_stats_reset(b), 0);
	send_and_expect(a, b, &mac, 60, 3, 1);
	assert_int_equal(rte_eth_stats_get(b, &stats), 0);
	assert_int_equal(stats.ipackets, 1);
	assert_int_equal(rte_eth_xstats_reset(a), 0);
	assert_int_equal(rte_eth_stats_get(a, &stats), 0);
	assert_int_equal(stats.opackets, 0);
}

static void
queue_count_and_descriptor_status_tell_what_is_there(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);
	struct rte_mbuf *m[512];
	unsigned int i;

	assert_int_equal(rte_eth_rx_queue_count(b, 0), 0);
	assert_int_equal(rte_eth_rx_descriptor_status(b, 0, 0), RTE_ETH_RX_DESC_AVAIL);
	assert_int_equal(rte_eth_tx_descriptor_status(a, 0, 511), RTE_ETH_TX_DESC_DONE);
	for (i = 0; i < 512; i++)
		su_tx(a, su_frame(&mac, a, 60, i, 1));
	assert_int_equal(rte_eth_tx_descriptor_status(a, 0, 0), RTE_ETH_TX_DESC_FULL);
	while (rte_eth_rx_queue_count(b, 0) == 0)
		usleep(100);
	assert_int_equal(rte_eth_rx_queue_count(b, 0), 512);
	assert_int_equal(rte_eth_rx_descriptor_status(b, 0, 511), RTE_ETH_RX_DESC_DONE);
	assert_int_equal(su_rx(b, m, 512), 512);
	rte_pktmbuf_free_bulk(m, 512);
	assert_int_equal(rte_eth_rx_queue_count(b, 0), 0);
	assert_int_equal(rte_eth_tx_descriptor_status(a, 0, 511), RTE_ETH_TX_DESC_DONE);
	assert_true(rte_eth_tx_descriptor_status(a, 0, 512) < 0);
}

static void
no_mbufs_loses_nothing(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);
	struct rte_mbuf **all = calloc(SU_POOL_SIZE + 1, sizeof(*all)), *m;
	struct rte_eth_stats stats;
	unsigned int n = 0;

	su_tx(a, su_frame(&mac, a, 60, 4, 1));
	while (rte_eth_rx_queue_count(b, 0) == 0)
		usleep(100);
	while ((all[n] = rte_pktmbuf_alloc(su_pool())) != NULL)
		n++;
	assert_int_equal(rte_eth_rx_burst(b, 0, &m, 1), 0);
	assert_int_equal(rte_eth_stats_get(b, &stats), 0);
	assert_true(stats.rx_nombuf >= 1);
	rte_pktmbuf_free_bulk(all, n);
	free(all);
	assert_int_equal(su_rx(b, &m, 1), 1);
	assert_true(su_frame_is(m, 60, 4));
	rte_pktmbuf_free(m);
}

static int
close_ports(void **state)
{
	su_close_all();
	assert_int_equal(rte_mempool_avail_count(su_pool()), SU_POOL_SIZE);
	assert_int_equal(su_dir_entries("t"), 0);
	return 0;
}

#define TEST(name) cmocka_unit_test_teardown(name, close_ports)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(first_frame_arrives),
		TEST(unicast_reaches_only_its_owner),
		TEST(segments_are_separate),
		TEST(broadcast_reaches_all_others),
		TEST(multicast_needs_its_group_or_allmulticast),
		TEST(multicast_list_has_a_limit_and_refuses_unicast),
		TEST(unknown_unicast_reaches_promiscuous_members),
		TEST(single_promiscuous_member_gets_unknown_unicast_with_back_pressure),
		TEST(own_address_is_not_looped_back),
		TEST(automatic_addresses_are_the_lowest_free),
		TEST(automatic_address_avoids_an_explicit_one),
		TEST(address_of_a_living_member_is_refused),
		TEST(changed_address_is_used_at_once),
		TEST(bad_arguments_are_refused),
		TEST(every_size_arrives),
		TEST(every_size_arrives_without_copy),
		TEST(segments_of_a_frame_are_joined),
		TEST(every_burst_arrives_in_order),
		TEST(full_ring_is_back_pressure),
		TEST(full_ring_of_one_member_does_not_stop_a_broadcast),
		TEST(ring_holds_two_messages_of_64_kib),
		TEST(icrc_flag_travels),
		TEST(frames_beyond_the_mtu_are_dropped),
		TEST(default_mtu_holds_roce_4096),
		TEST(impossible_frames_are_dropped_and_counted),
		TEST(vanished_memory_drops_only_its_frame),
		TEST(stats_count_frames_and_bytes),
		TEST(queue_count_and_descriptor_status_tell_what_is_there),
		TEST(no_mbufs_loses_nothing),
	};

	su_eal_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
