/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What net_verbena costs: cycles a packet of receiving and sending through a bare port, through
 * net_verbena, net_failsafe and net_bonding over the same kind of port, in turns within one run;
 * and packets a second of RSS to four queues, which one core receives.
 *
 *   pmd_bench [rounds]
 *
 * With huge pages, if 64 of them are reserved; else without, which hides what is measured behind
 * misses of the TLB.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

struct way {
	const char *name, *args; /* of the device, %s: the lower device */
	uint16_t port;
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

/* One port of each way over a lower port of its own. @return 0, or -errno: not over this one */
static int
make(struct way *way, const char *lower, unsigned int number)
{
	char low[32], name[32], args[64];

	snprintf(low, sizeof(low), "%s%u", lower, number);
	if (way->args == NULL) {
		way->port = plug(low, "");
	} else {
		snprintf(name, sizeof(name), "%s%u", way->name, number);
		snprintf(args, sizeof(args), way->args, low);
		if (strcmp(way->name, "net_bonding") == 0)
			plug(low, "");
		way->port = plug(name, args);
	}
	return start(way->name, way->port, 1, false);
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
		turn(ways[w].port, BURSTS);
	}
	for (unsigned int r = 0; r < rounds; r++) {
		for (unsigned int w = 0; w < RTE_DIM(ways); w++) {
			if (ways[w].cycles != NULL)
				ways[w].cycles[r] = turn(ways[w].port, BURSTS);
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
	measure_rss(rounds);
	return 0;
}
