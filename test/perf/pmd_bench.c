/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What net_verbena costs: cycles a packet of receiving and sending through a bare port, through
 * net_verbena, net_failsafe and net_bonding over the same kind of port, in turns within one run;
 * and packets a second of RSS to four queues, which one core receives. A net_memif has a peer in
 * this process, whose work is not measured.
 *
 *   pmd_bench [rounds]
 *
 * With huge pages, if 64 of them are reserved; else without, which hides what is measured behind
 * misses of the TLB.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_cycles.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_udp.h>

#define BURST 32
#define BURSTS 2000 /* in one turn */
#define MBUFS 16383
#define FLOWS 256
#define FRAME 60 /* without CRC: 64 bytes on a wire */
#define AT_ONCE 16 /* bursts that a peer sends before they are received */
#define NO_PEER UINT16_MAX

struct way {
	const char *name, *args; /* of the device, %s: the lower device */
	uint16_t port;
	uint16_t peer; /* sends to the lower port, or NO_PEER */
	double *cycles; /* a packet, of each turn */
};

static struct way ways[] = {
	{.name = "bare"},
	{.name = "net_verbena", .args = "dev(%s)"},
	{.name = "net_failsafe", .args = "dev(%s)"},
	{.name = "net_bonding", .args = "mode=0,slave=%s"},
};

static struct rte_mempool *pool;

static void
die(const char *what, const char *name, int rc)
{
	fprintf(stderr, "pmd_bench: %s %s: %s\n", what, name, strerror(-rc));
	exit(1);
}

static uint16_t
plug(const char *name, const char *args)
{
	uint16_t port;
	int rc = rte_vdev_init(name, args);

	if (rc < 0)
		die("cannot make", name, rc);
	rc = rte_eth_dev_get_port_by_name(name, &port);
	if (rc < 0)
		die("no port of", name, rc);
	return port;
}

static int
start(const char *name, uint16_t port, uint16_t queues, bool rss)
{
	struct rte_eth_conf conf = {0};
	int rc;

	if (rss) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf =
			RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_UDP;
	}
	rc = rte_eth_dev_configure(port, queues, 1, &conf);
	for (uint16_t q = 0; rc == 0 && q < queues; q++)
		rc = rte_eth_rx_queue_setup(port, q, 1024, SOCKET_ID_ANY, NULL, pool);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(port, 0, 1024, SOCKET_ID_ANY, NULL);
	if (rc == 0)
		rc = rte_eth_dev_start(port);
	if (rc < 0)
		printf("%s: cannot be started: %s\n", name, strerror(-rc));
	return rc;
}

/* The other end of a net_memif. @param more devargs of this end */
static uint16_t
make_peer(unsigned int number, char *more, size_t size)
{
	char name[32], args[64];
	uint16_t port;

	snprintf(name, sizeof(name), "net_memif_peer%u", number);
	snprintf(args, sizeof(args), "role=server,id=%u,socket=/pmd-bench-%d", number, getpid());
	snprintf(more, size, ",role=client,id=%u,socket=/pmd-bench-%d", number, getpid());
	port = plug(name, args);
	if (start(name, port, 1, false) < 0)
		exit(1);
	return port;
}

static void
wait_for_peer(const struct way *way)
{
	struct rte_eth_link link = {0};

	for (unsigned int i = 0; i < 5000 && !link.link_status; i++) {
		if (rte_eth_link_get_nowait(way->peer, &link) < 0 || !link.link_status)
			rte_delay_us_sleep(1000);
	}
	if (!link.link_status)
		die("no connection of", way->name, -ETIMEDOUT);
}

/* One port of each way over a lower port of its own. @return 0, or -errno: not over this one */
static int
make(struct way *way, const char *lower, unsigned int number)
{
	char low[32], name[32], args[160], more[80] = "", dev[128];
	int rc;

	way->peer = NO_PEER;
	if (strcmp(lower, "net_memif") == 0)
		way->peer = make_peer(number, more, sizeof(more));
	snprintf(low, sizeof(low), "%s%u", lower, number);
	snprintf(dev, sizeof(dev), "%s%s", low, more);
	if (way->args == NULL) {
		way->port = plug(low, more[0] == ',' ? more + 1 : more);
	} else {
		bool bonding = strcmp(way->name, "net_bonding") == 0;

		snprintf(name, sizeof(name), "%s%u", way->name, number);
		snprintf(args, sizeof(args), way->args, bonding ? low : dev);
		if (bonding)
			plug(low, more[0] == ',' ? more + 1 : more);
		way->port = plug(name, args);
	}
	rc = start(way->name, way->port, 1, false);
	if (rc == 0 && way->peer != NO_PEER)
		wait_for_peer(way);
	return rc;
}

static double
turn(uint16_t port, unsigned int bursts)
{
	struct rte_mbuf *pkts[BURST];
	uint64_t packets = 0, begin = rte_rdtsc_precise();

	for (unsigned int i = 0; i < bursts; i++) {
		uint16_t n = rte_eth_rx_burst(port, 0, pkts, BURST);
		uint16_t sent = rte_eth_tx_burst(port, 0, pkts, n);

		packets += n;
		if (sent < n)
			rte_pktmbuf_free_bulk(&pkts[sent], n - sent);
	}
	return (double)(rte_rdtsc_precise() - begin) / (double)RTE_MAX(packets, 1u);
}

static void
peer_sends(uint16_t peer)
{
	struct rte_mbuf *pkts[BURST];
	uint16_t sent;

	if (rte_pktmbuf_alloc_bulk(pool, pkts, BURST) != 0)
		die("no mbufs for", "frames", -ENOMEM);
	for (unsigned int k = 0; k < BURST; k++)
		rte_pktmbuf_append(pkts[k], FRAME);
	sent = rte_eth_tx_burst(peer, 0, pkts, BURST);
	rte_pktmbuf_free_bulk(&pkts[sent], BURST - sent);
}

/* The peer fills the rings, the port is measured, and the peer takes what it has sent. */
static double
turn_with_peer(const struct way *way)
{
	struct rte_mbuf *pkts[BURST];
	uint64_t packets = 0, cycles = 0;
	uint16_t n;

	for (unsigned int i = 0; i < BURSTS; i += AT_ONCE) {
		uint64_t begin;

		for (unsigned int k = 0; k < AT_ONCE; k++)
			peer_sends(way->peer);
		begin = rte_rdtsc_precise();
		for (unsigned int k = 0; k < AT_ONCE; k++) {
			uint16_t sent;

			n = rte_eth_rx_burst(way->port, 0, pkts, BURST);
			sent = rte_eth_tx_burst(way->port, 0, pkts, n);
			packets += n;
			if (sent < n)
				rte_pktmbuf_free_bulk(&pkts[sent], n - sent);
		}
		cycles += rte_rdtsc_precise() - begin;
		while ((n = rte_eth_rx_burst(way->peer, 0, pkts, BURST)) > 0)
			rte_pktmbuf_free_bulk(pkts, n);
	}
	if (packets < BURSTS * BURST / 2)
		die("lost frames over", way->name, -EIO);
	return (double)cycles / (double)packets;
}

static double
turn_of(const struct way *way)
{
	return way->peer != NO_PEER ? turn_with_peer(way) : turn(way->port, BURSTS);
}

/* Frames that go round through a net_ring. */
static void
fill(uint16_t port)
{
	struct rte_mbuf *pkts[BURST];

	for (unsigned int i = 0; i < 4; i++) {
		if (rte_pktmbuf_alloc_bulk(pool, pkts, BURST) != 0)
			die("no mbufs for", "frames", -ENOMEM);
		for (unsigned int k = 0; k < BURST; k++)
			rte_pktmbuf_append(pkts[k], FRAME);
		rte_eth_tx_burst(port, 0, pkts, BURST);
	}
}

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void
measure(const char *lower, unsigned int rounds)
{
	static unsigned int number;
	double bare = 0;

	for (unsigned int w = 0; w < RTE_DIM(ways); w++) {
		ways[w].cycles = NULL;
		if (make(&ways[w], lower, number++) < 0)
			continue;
		if (strcmp(lower, "net_ring") == 0)
			fill(ways[w].port);
		ways[w].cycles = calloc(rounds, sizeof(double));
		turn_of(&ways[w]);
	}
	for (unsigned int r = 0; r < rounds; r++) {
		for (unsigned int w = 0; w < RTE_DIM(ways); w++) {
			if (ways[w].cycles != NULL)
				ways[w].cycles[r] = turn_of(&ways[w]);
		}
	}
	for (unsigned int w = 0; w < RTE_DIM(ways); w++) {
		double median;

		if (ways[w].cycles == NULL)
			continue;
		qsort(ways[w].cycles, rounds, sizeof(double), compare);
		median = ways[w].cycles[rounds / 2];
		bare = w == 0 ? median : bare;
		printf("%s %s: %.2f cycles a packet, %+.2f; least %.2f\n", lower, ways[w].name,
			median, median - bare, ways[w].cycles[0]);
		free(ways[w].cycles);
		rte_eth_dev_stop(ways[w].port);
	}
}

/* ---- RSS ---- */

static void
make_frame(struct rte_mbuf *m, uint32_t flow)
{
	uint8_t *p = (uint8_t *)rte_pktmbuf_append(m, FRAME);
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(p + RTE_ETHER_HDR_LEN);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);

	memset(p, 0, FRAME);
	p[12] = 0x08;
	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->next_proto_id = 17;
	ip->total_length = rte_cpu_to_be_16(FRAME - RTE_ETHER_HDR_LEN);
	ip->src_addr = rte_cpu_to_be_32(0x0a000000 + flow * 77);
	ip->dst_addr = rte_cpu_to_be_32(0x0a800001);
	udp->src_port = rte_cpu_to_be_16((uint16_t)(1000 + flow));
	udp->dst_port = rte_cpu_to_be_16(9);
}

/* The cost of a frame's way from the ring of the lower port to its queue and back. */
static void
measure_rss(unsigned int rounds)
{
	uint16_t port = plug("net_verbena_rss", "dev(net_ring_rss)");
	double *rates = calloc(rounds, sizeof(double));
	struct rte_mbuf *pkts[BURST];
	uint64_t per_queue[4] = {0};

	if (start("net_verbena", port, 4, true) < 0)
		exit(1);
	for (uint32_t i = 0; i < FLOWS; i++) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(pool);

		make_frame(m, i);
		if (rte_eth_tx_burst(port, 0, &m, 1) != 1)
			die("cannot fill", "net_ring", -ENOSPC);
	}
	for (unsigned int r = 0; r < rounds; r++) {
		uint64_t packets = 0, begin = rte_rdtsc_precise(), cycles;

		for (unsigned int i = 0; i < BURSTS; i++) {
			for (uint16_t q = 0; q < 4; q++) {
				uint16_t n = rte_eth_rx_burst(port, q, pkts, BURST);

				packets += n;
				per_queue[q] += n;
				if (rte_eth_tx_burst(port, 0, pkts, n) != n)
					die("lost frames in", "net_ring", -ENOSPC);
			}
		}
		cycles = rte_rdtsc_precise() - begin;
		rates[r] = (double)packets * (double)rte_get_tsc_hz() / (double)cycles / 1e6;
	}
	qsort(rates, rounds, sizeof(double), compare);
	printf("net_ring RSS to 4 queues: %.1f M packets/s, most %.1f; %.1f cycles a packet\n",
		rates[rounds / 2], rates[rounds - 1],
		(double)rte_get_tsc_hz() / 1e6 / rates[rounds / 2]);
	for (int q = 0; q < 4; q++)
		printf("  queue %d: %.1f %%\n", q,
			100.0 * (double)per_queue[q] /
				(double)(per_queue[0] + per_queue[1] + per_queue[2] +
					 per_queue[3]));
	free(rates);
	rte_eth_dev_stop(port);
}

static bool
have_huge_pages(void)
{
	FILE *file = fopen("/proc/sys/vm/nr_hugepages", "r");
	unsigned int n = 0;

	if (file == NULL)
		return false;
	if (fscanf(file, "%u", &n) != 1)
		n = 0;
	fclose(file);
	return n >= 64;
}

int
main(int argc, char **argv)
{
	static const char *eal[] = {"pmd_bench", "--no-huge", "--no-shconf", "--no-pci",
		"--no-telemetry", "-m", "128", "--log-level=3", "-l", NULL};
	unsigned int rounds = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 10) : 201;
	static char lcores[16];

	/* Without huge pages a look at an mbuf mostly costs a miss of the TLB. */
	if (have_huge_pages())
		eal[1] = "--in-memory";
	printf("%s huge pages\n", have_huge_pages() ? "with" : "without");
	/* Where the caller has put us: taskset chooses. */
	snprintf(lcores, sizeof(lcores), "%u", (unsigned int)sched_getcpu());
	eal[RTE_DIM(eal) - 1] = lcores;
	if (rounds == 0 || rte_eal_init(RTE_DIM(eal), (char **)(uintptr_t)eal) < 0) {
		fprintf(stderr, "usage: pmd_bench [rounds]\n");
		return 2;
	}
	pool = rte_pktmbuf_pool_create(
		"frames", MBUFS, 256, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (pool == NULL)
		die("no memory for", "mbufs", -ENOMEM);
	measure("net_null", rounds);
	measure("net_ring", rounds);
	measure("net_memif", rounds);
	measure_rss(rounds);
	return 0;
}
