/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What net_verbena does for a lower port that cannot: checksums, VLAN tags, packet types, frames
 * of many segments. net_ring can do nothing but segments, net_null not even those.
 */
#include <errno.h>

#include <rte_bus_vdev.h>
#include <rte_mbuf_dyn.h>

#include "util.h"

static struct rte_mbuf *
receive(const struct rig *r, const struct frame *f, size_t spoil)
{
	struct rte_mbuf *m = frame_make(pmd_pool, f);

	if (spoil != 0)
		*rte_pktmbuf_mtod_offset(m, uint8_t *, spoil) ^= 0x55;
	assert_int_equal(rte_ring_enqueue(r->to_port[0], m), 0);
	m = NULL;
	return rte_eth_rx_burst(r->port, 0, &m, 1) == 1 ? m : NULL;
}

static void
start(struct rig *r, uint64_t rx, uint64_t tx)
{
	struct setup s = {.rx_offloads = rx, .tx_offloads = tx};

	rig_make(r, 1, "");
	assert_int_equal(rig_start(r, &s), 0);
}

/* ---- receiving ---- */

static void
checksums_of_received_frames_are_told(void **state)
{
	const uint64_t mask = RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK;
	const uint64_t good4 = RTE_MBUF_F_RX_IP_CKSUM_GOOD, bad4 = RTE_MBUF_F_RX_IP_CKSUM_BAD;
	const uint64_t good = RTE_MBUF_F_RX_L4_CKSUM_GOOD, bad = RTE_MBUF_F_RX_L4_CKSUM_BAD;
	const struct {
		struct frame f;
		size_t spoil; /* a byte */
		uint64_t flags;
	} cases[] = {
		{{.sums = true, .src = 1, .dst = 2, .payload = 33}, 0, good4 | good},
		{{.sums = true, .tcp = true, .src = 1, .payload = 100}, 0, good4 | good},
		{{.sums = true, .v6 = true, .src = 1, .payload = 7}, 0, good},
		{{.sums = true, .v6 = true, .tcp = true, .vlan = 3}, 0, good},
		{{.sums = true, .src = 1, .payload = 33}, 50, good4 | bad},
		{{.sums = true, .tcp = true, .payload = 33}, 70, good4 | bad},
		{{.sums = true, .v6 = true, .payload = 33}, 70, bad},
		{{.sums = true, .payload = 33}, 14 + 8, bad4 | good}, /* time to live */
		{{.sums = true, .vlan = 3, .payload = 33}, 14 + 4 + 8, bad4 | good},
	};
	struct rig r;

	(void)state;
	start(&r, RTE_ETH_RX_OFFLOAD_CHECKSUM, 0);
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct rte_mbuf *m = receive(&r, &cases[i].f, cases[i].spoil);

		assert_non_null(m);
		assert_int_equal(m->ol_flags & mask, cases[i].flags);
		rte_pktmbuf_free(m);
	}
	rig_close(&r);
}

static void
tags_are_taken_out(void **state)
{
	struct frame f = {.vlan = 0x6007, .seq = 9}, plain = {.seq = 8};
	struct rte_mbuf *m;
	struct rig r;

	(void)state;
	start(&r, RTE_ETH_RX_OFFLOAD_VLAN_STRIP, 0);
	m = receive(&r, &f, 0);
	assert_non_null(m);
	assert_int_equal(m->vlan_tci, 0x6007);
	assert_true(m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED);
	assert_int_equal(m->pkt_len, 14 + 20 + 8 + 4);
	assert_memory_equal(
		rte_pktmbuf_mtod(m, void *), "\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08", 13);
	assert_int_equal(frame_seq(m), 9);
	rte_pktmbuf_free(m);
	m = receive(&r, &plain, 0);
	assert_false(m->ol_flags & RTE_MBUF_F_RX_VLAN);
	rte_pktmbuf_free(m);
	/* And no more when it is switched off while the port runs. */
	assert_int_equal(rte_eth_dev_set_vlan_offload(r.port, 0), 0);
	m = receive(&r, &f, 0);
	assert_int_equal(m->pkt_len, 14 + 4 + 20 + 8 + 4);
	rte_pktmbuf_free(m);
	rig_close(&r);
}

static void
filter_lets_chosen_vlans_through(void **state)
{
	struct frame seven = {.vlan = 7}, eight = {.vlan = 8}, plain = {0};
	struct rte_mbuf *m;
	struct rig r;

	(void)state;
	start(&r, RTE_ETH_RX_OFFLOAD_VLAN_FILTER, 0);
	assert_null(receive(&r, &seven, 0));
	assert_int_equal(rte_eth_dev_vlan_filter(r.port, 7, 1), 0);
	m = receive(&r, &seven, 0);
	assert_non_null(m);
	rte_pktmbuf_free(m);
	assert_null(receive(&r, &eight, 0));
	m = receive(&r, &plain, 0);
	assert_non_null(m);
	rte_pktmbuf_free(m);
	assert_int_equal(xstat(r.port, "rx_vlan_filter_drop"), 2);
	assert_int_equal(rte_eth_dev_vlan_filter(r.port, 7, 0), 0);
	assert_null(receive(&r, &seven, 0));
	rig_close(&r);
}

static void
packet_types_are_told(void **state)
{
	const struct {
		struct frame f;
		uint32_t type;
	} cases[] = {
		{{0}, RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4 | RTE_PTYPE_L4_UDP},
		{{.tcp = true}, RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4 | RTE_PTYPE_L4_TCP},
		{{.sctp = true}, RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4 | RTE_PTYPE_L4_SCTP},
		{{.other = true}, RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4},
		{{.fragment = true}, RTE_PTYPE_L2_ETHER | RTE_PTYPE_L3_IPV4 | RTE_PTYPE_L4_FRAG},
		{{.v6 = true, .vlan = 4},
			RTE_PTYPE_L2_ETHER_VLAN | RTE_PTYPE_L3_IPV6 | RTE_PTYPE_L4_UDP},
	};
	struct rig r;

	(void)state;
	start(&r, RTE_ETH_RX_OFFLOAD_CHECKSUM, 0);
	assert_true(rte_eth_dev_get_supported_ptypes(r.port, RTE_PTYPE_ALL_MASK, NULL, 0) > 5);
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct rte_mbuf *m = receive(&r, &cases[i].f, 0);

		assert_int_equal(m->packet_type, cases[i].type);
		rte_pktmbuf_free(m);
	}
	rig_close(&r);
}

static void
frames_are_stamped_by_the_clock_of_the_port(void **state)
{
	uint64_t before, after, stamp, flag;
	struct frame f = {.src = 1};
	struct rte_mbuf *m;
	struct rig r;
	int offset;

	(void)state;
	start(&r, RTE_ETH_RX_OFFLOAD_TIMESTAMP, 0);
	assert_int_equal(rte_mbuf_dyn_rx_timestamp_register(&offset, &flag), 0);
	assert_int_equal(rte_eth_read_clock(r.port, &before), 0);
	m = receive(&r, &f, 0);
	assert_int_equal(rte_eth_read_clock(r.port, &after), 0);
	assert_true(m->ol_flags & flag);
	stamp = *RTE_MBUF_DYNFIELD(m, offset, rte_mbuf_timestamp_t *);
	assert_in_range(stamp, before, after);
	rte_pktmbuf_free(m);
	rig_close(&r);
}

/* Cut anywhere and with lengths that lie, from a buffer in which what lies behind is another's. */
static void
broken_frames_do_no_harm(void **state)
{
	struct rig r;

	(void)state;
	start(&r, RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_VLAN_STRIP, 0);
	srandom(5);
	for (unsigned int i = 0; i < 5000; i++) {
		struct frame f = {.v6 = i & 1,
			.tcp = i & 2,
			.vlan = i & 4 ? 5 : 0,
			.sums = true,
			.payload = 20};
		struct rte_mbuf *m = frame_make(pmd_pool, &f);

		for (unsigned int k = i % 4; k > 0; k--)
			*rte_pktmbuf_mtod_offset(m, uint8_t *, 12 + random() % 40) =
				(uint8_t)random();
		rte_pktmbuf_trim(m, (uint16_t)((unsigned int)random() % (m->data_len + 1u)));
		assert_int_equal(rte_ring_enqueue(r.to_port[0], m), 0);
		receive_all(&r, 1, NULL);
	}
	assert_int_equal(stats_of(r.port).ipackets, 5000);
	rig_close(&r);
}

/* ---- sending ---- */

static struct rte_mbuf *
sent(const struct rig *r)
{
	struct rte_mbuf *m = NULL;

	assert_int_equal(rte_ring_dequeue(r->from_port[0], (void **)&m), 0);
	return m;
}

static void
expect_same(const struct rte_mbuf *m, const struct frame *f)
{
	struct rte_mbuf *wanted = frame_make(pmd_pool, f);

	assert_int_equal(m->pkt_len, wanted->pkt_len);
	assert_memory_equal(
		rte_pktmbuf_mtod(m, void *), rte_pktmbuf_mtod(wanted, void *), wanted->pkt_len);
	rte_pktmbuf_free(wanted);
}

static void
set_tx_flags(struct rte_mbuf *m, const struct frame *f)
{
	m->l2_len = RTE_ETHER_HDR_LEN;
	m->l3_len = f->v6 ? 40 : 20;
	m->ol_flags |= f->v6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4 | RTE_MBUF_F_TX_IP_CKSUM;
	m->ol_flags |= f->tcp ? RTE_MBUF_F_TX_TCP_CKSUM : RTE_MBUF_F_TX_UDP_CKSUM;
}

static void
checksums_and_tags_are_put_in(void **state)
{
	struct rig r;

	(void)state;
	start(&r, 0,
		RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM |
			RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_VLAN_INSERT);
	for (unsigned int i = 0; i < 16; i++) {
		struct frame f = {.v6 = i & 1, .tcp = i & 2, .payload = 101 + i, .src = i};
		struct rte_mbuf *m = frame_make(pmd_pool, &f), *extra = NULL;

		set_tx_flags(m, &f);
		if (i & 4) {
			m->ol_flags |= RTE_MBUF_F_TX_VLAN;
			m->vlan_tci = f.vlan = 99;
		}
		/* Somebody else holds it too: it must not be changed. */
		if (i & 8) {
			extra = m;
			rte_mbuf_refcnt_update(m, 1);
		}
		assert_int_equal(rte_eth_tx_burst(r.port, 0, &m, 1), 1);
		f.sums = true;
		m = sent(&r);
		expect_same(m, &f);
		rte_pktmbuf_free(m);
		if (extra != NULL) {
			f.sums = false;
			f.vlan = 0;
			assert_int_equal(rte_mbuf_refcnt_read(extra), 1);
			expect_same(extra, &f);
			rte_pktmbuf_free(extra);
		}
	}
	rig_close(&r);
}

static void
full_lower_ring_loses_nothing(void **state)
{
	struct frame f = {.payload = 50};
	struct rte_mbuf *pkts[64];
	unsigned int taken = 0;
	uint16_t n;
	struct rig r;

	(void)state;
	start(&r, 0, RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM);
	do {
		for (unsigned int i = 0; i < RTE_DIM(pkts); i++) {
			pkts[i] = frame_make(pmd_pool, &f);
			set_tx_flags(pkts[i], &f);
			if (i % 2)
				rte_mbuf_refcnt_update(pkts[i], 1);
		}
		n = rte_eth_tx_burst(r.port, 0, pkts, RTE_DIM(pkts));
		taken += n;
		for (unsigned int i = 0; i < RTE_DIM(pkts); i++) {
			/* Taken ones are ours no more, but for the second reference. */
			if (i >= n)
				rte_pktmbuf_free(pkts[i]);
			if (i % 2)
				rte_pktmbuf_free(pkts[i]);
		}
	} while (n == RTE_DIM(pkts));
	assert_int_equal(taken, rte_ring_count(r.from_port[0]));
	assert_int_equal(stats_of(r.port).opackets, taken);
	rig_close(&r);
}

static void
segments_are_put_together_for_a_port_that_cannot(void **state)
{
	struct rte_eth_conf conf = {.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS};
	struct frame f = {.payload = 300}, g = {.payload = 700};
	struct rte_mbuf *m, *tail;
	struct rte_eth_stats st;
	uint16_t port;

	(void)state;
	assert_int_equal(rte_vdev_init("net_verbena_segs", "dev(net_null_segs)"), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name("net_verbena_segs", &port), 0);
	assert_int_equal(rte_eth_dev_configure(port, 1, 1, &conf), 0);
	assert_int_equal(rte_eth_rx_queue_setup(port, 0, 64, 0, NULL, pmd_pool), 0);
	assert_int_equal(rte_eth_tx_queue_setup(port, 0, 64, 0, NULL), 0);
	assert_int_equal(rte_eth_dev_start(port), 0);
	for (int i = 0; i < 2000; i++) {
		m = frame_make(pmd_pool, &f);
		tail = frame_make(pmd_pool, &g);
		assert_int_equal(rte_pktmbuf_chain(m, tail), 0);
		assert_int_equal(rte_eth_tx_burst(port, 0, &m, 1), 1);
	}
	st = stats_of(port);
	assert_int_equal(st.opackets, 2000);
	assert_int_equal(st.oerrors, 0);
	assert_int_equal(rte_eth_dev_stop(port), 0);
	assert_int_equal(rte_vdev_uninit("net_verbena_segs"), 0);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(checksums_of_received_frames_are_told),
		cmocka_unit_test(tags_are_taken_out),
		cmocka_unit_test(filter_lets_chosen_vlans_through),
		cmocka_unit_test(packet_types_are_told),
		cmocka_unit_test(frames_are_stamped_by_the_clock_of_the_port),
		cmocka_unit_test(broken_frames_do_no_harm),
		cmocka_unit_test(checksums_and_tags_are_put_in),
		cmocka_unit_test(full_lower_ring_loses_nothing),
		cmocka_unit_test(segments_are_put_together_for_a_port_that_cannot),
	};

	pmd_eal(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
