/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Helpers of the net_shmlan tests (see shmlan_util.h).
 */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>

#include "shmlan.h"
#include "shmlan_util.h"

static char dir[64];
static pid_t dir_owner;
static struct rte_mempool *pool;

uint64_t
su_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ull + ts.tv_nsec / 1000;
}

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
	return remove(path);
}

static void
remove_dir(void)
{
	if (dir_owner == getpid())
		nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static pid_t eal_owner;

/* EAL leaves it behind. */
static void
remove_runtime_dir(void)
{
	if (eal_owner == getpid())
		rmdir(rte_eal_get_runtime_dir());
}

void
su_use_dir(const char *path)
{
	snprintf(dir, sizeof(dir), "%s", path);
}

const char *
su_dir(void)
{
	if (dir[0] == '\0') {
		snprintf(dir, sizeof(dir), "/tmp/shmlan-test.XXXXXX");
		if (mkdtemp(dir) == NULL)
			abort();
		dir_owner = getpid();
		atexit(remove_dir);
	}
	return dir;
}

unsigned int
su_dir_entries(const char *segment)
{
	char path[PATH_MAX];
	unsigned int n = 0;
	struct dirent *de;
	DIR *d;

	snprintf(path, sizeof(path), "%s/%s", su_dir(), segment);
	d = opendir(path);
	if (d == NULL)
		return 0;
	while ((de = readdir(d)) != NULL)
		n += de->d_name[0] != '.';
	closedir(d);
	return n;
}

void
su_eal_init(void)
{
	char prefix[64];
	char *argv[] = {(char *)"shmlan-test", (char *)"--no-huge", (char *)"--no-shconf",
		(char *)"--no-pci", (char *)"-m", (char *)"128", (char *)"--lcores=0@0",
		(char *)"--no-telemetry", prefix, NULL};

	snprintf(prefix, sizeof(prefix), "--file-prefix=shmlan-test-%d", getpid());
	if (rte_eal_init(9, argv) < 0) {
		fprintf(stderr, "rte_eal_init: %s\n", rte_strerror(rte_errno));
		exit(1);
	}
	eal_owner = getpid();
	atexit(remove_runtime_dir);
	su_pool();
}

struct rte_mempool *
su_pool(void)
{
	if (pool == NULL)
		pool = rte_pktmbuf_pool_create(
			"su", SU_POOL_SIZE, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (pool == NULL)
		abort();
	return pool;
}

int
su_probe(unsigned int n, const char *segment, const char *more)
{
	char name[32], args[256];
	uint16_t port;
	int rc;

	snprintf(name, sizeof(name), "net_shmlan%u", n);
	snprintf(args, sizeof(args), "segment=%s,dir=%s%s%s", segment, su_dir(),
		more == NULL ? "" : ",", more == NULL ? "" : more);
	rc = rte_vdev_init(name, args);
	if (rc != 0)
		return rc;
	assert_int_equal(rte_eth_dev_get_port_by_name(name, &port), 0);
	return port;
}

void
su_start(uint16_t port)
{
	struct rte_eth_conf conf = {
		.rxmode = {.mtu = VRB_SHMLAN_MTU_MAX, .offloads = RTE_ETH_RX_OFFLOAD_SCATTER},
		.txmode.offloads = RTE_ETH_TX_OFFLOAD_MULTI_SEGS,
		.intr_conf = {.lsc = 1, .rxq = 1}};

	assert_int_equal(rte_eth_dev_configure(port, 1, 1, &conf), 0);
	assert_int_equal(rte_eth_rx_queue_setup(port, 0, 0, SOCKET_ID_ANY, NULL, su_pool()), 0);
	assert_int_equal(rte_eth_tx_queue_setup(port, 0, 0, SOCKET_ID_ANY, NULL), 0);
	assert_int_equal(rte_eth_dev_start(port), 0);
}

uint16_t
su_port(unsigned int n, const char *segment, const char *more)
{
	int port = su_probe(n, segment, more);

	assert_true(port >= 0);
	su_start(port);
	return port;
}

void
su_close(uint16_t port)
{
	struct rte_eth_dev_info info;

	assert_int_equal(rte_eth_dev_info_get(port, &info), 0);
	/* Refused for a port that was never started, which is fine. */
	(void)rte_eth_dev_stop(port);
	assert_int_equal(rte_eth_dev_close(port), 0);
	assert_int_equal(rte_dev_remove(info.device), 0);
}

void
su_close_all(void)
{
	uint16_t port;

	RTE_ETH_FOREACH_DEV (port)
		su_close(port);
}

struct rte_ether_addr
su_mac(uint16_t port)
{
	struct rte_ether_addr mac;

	assert_int_equal(rte_eth_macaddr_get(port, &mac), 0);
	return mac;
}

void
su_wait_link(uint16_t port, bool up)
{
	uint64_t end = su_now() + SU_PATIENCE;
	struct rte_eth_link link;

	do {
		assert_int_equal(rte_eth_link_get_nowait(port, &link), 0);
		if (link.link_status == up)
			return;
		usleep(200);
	} while (su_now() < end);
	fail_msg("link of port %u is not %s", port, up ? "up" : "down");
}

/* Byte @i of the payload of frame @seq. */
static uint8_t
payload(uint32_t seq, uint32_t i)
{
	uint32_t x;

	if (i < 4)
		return seq >> 8 * i;
	x = (seq + 1) * 2654435761u + i / 4 * 40503u;
	return x >> 8 * (i % 4);
}

static void
fill(uint8_t *p, uint32_t off, uint32_t n, uint32_t seq, const uint8_t *hdr)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		p[i] = off + i < SU_HDR ? hdr[off + i] : payload(seq, off + i - SU_HDR);
}

struct rte_mbuf *
su_frame(const struct rte_ether_addr *dst, uint16_t from, uint32_t len, uint32_t seq,
	unsigned int segs)
{
	struct rte_mbuf *head = NULL, *last = NULL;
	struct rte_ether_hdr hdr = {.ether_type = 0xb588};
	uint32_t off = 0;

	hdr.dst_addr = *dst;
	hdr.src_addr = su_mac(from);
	while (off < len) {
		uint32_t n = segs <= 1 ? len - off : RTE_MAX(len / segs, 1u);
		struct rte_mbuf *m = rte_pktmbuf_alloc(su_pool());

		assert_non_null(m);
		n = RTE_MIN(n, len - off);
		n = RTE_MIN(n, (uint32_t)rte_pktmbuf_tailroom(m));
		fill(rte_pktmbuf_mtod(m, uint8_t *), off, n, seq, (const uint8_t *)&hdr);
		m->data_len = n;
		off += n;
		if (head == NULL) {
			head = m;
		} else {
			last->next = m;
			head->nb_segs++;
		}
		last = m;
	}
	head->pkt_len = len;
	return head;
}

static bool
content_is(const struct rte_mbuf *m, uint32_t seq)
{
	uint32_t off = 0, i;

	for (; m != NULL; m = m->next) {
		const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *);

		for (i = 0; i < m->data_len; i++) {
			if (off + i >= SU_HDR && p[i] != payload(seq, off + i - SU_HDR))
				return false;
		}
		off += m->data_len;
	}
	return true;
}

bool
su_frame_is(const struct rte_mbuf *m, uint32_t len, uint32_t seq)
{
	uint32_t sum = 0;
	const struct rte_mbuf *s;

	for (s = m; s != NULL; s = s->next)
		sum += s->data_len;
	return m->pkt_len == len && sum == len && content_is(m, seq);
}

uint32_t
su_frame_seq(const struct rte_mbuf *m)
{
	uint32_t seq;

	assert_true(m->data_len >= SU_HDR + 4);
	memcpy(&seq, rte_pktmbuf_mtod_offset(m, const void *, SU_HDR), 4);
	assert_true(su_frame_is(m, m->pkt_len, seq));
	return seq;
}

unsigned int
su_rx(uint16_t port, struct rte_mbuf **pkts, unsigned int n)
{
	uint64_t end = su_now() + SU_PATIENCE;
	unsigned int got = 0;

	do {
		got += rte_eth_rx_burst(port, 0, pkts + got, n - got);
	} while (got < n && su_now() < end);
	return got;
}

void
su_tx(uint16_t port, struct rte_mbuf *m)
{
	assert_int_equal(rte_eth_tx_burst(port, 0, &m, 1), 1);
}

void
su_expect_nothing(uint16_t port)
{
	uint64_t end = su_now() + 5000;
	struct rte_mbuf *m;

	do {
		assert_int_equal(rte_eth_rx_burst(port, 0, &m, 1), 0);
	} while (su_now() < end);
}

uint64_t
su_xstat(uint16_t port, const char *name)
{
	uint64_t id, value;

	assert_int_equal(rte_eth_xstats_get_id_by_name(port, name, &id), 0);
	assert_int_equal(rte_eth_xstats_get_by_id(port, &id, &value, 1), 1);
	return value;
}
