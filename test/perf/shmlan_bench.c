/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measures net_shmlan between two processes, each with an EAL and a core of its own:
 *
 *   shmlan_bench [-s size] [-b burst] [-t seconds] [-z] rate|latency|all
 *
 *   rate      frames one way, in bursts; counted and timed by the receiver
 *   latency   one frame to and fro; half of the round trip is what one way costs
 *   all       both for a list of sizes
 *   -z        with rx_zc=1
 */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_cycles.h>
#include <rte_eal.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include "shmlan.h"

#define MAX_BURST 512
#define SAMPLES (1u << 20)
#define WARM 20000 /* frames before the clock runs: the first lap touches all pages of a ring */

static const struct rte_ether_addr mac[2] = {{{2, 0, 0, 0, 0, 1}}, {{2, 0, 0, 0, 0, 2}}};

static struct {
	uint32_t size;
	uint32_t burst;
	double seconds;
	bool zc;
	uint16_t port;
	struct rte_mempool *pool;
} opt = {.size = 64, .burst = 32, .seconds = 1};

static void
die(const char *what)
{
	fprintf(stderr, "shmlan_bench: %s failed\n", what);
	_exit(1);
}

static void
open_port(unsigned int side, const char *segment)
{
	char cpu[32], prefix[64], args[128];
	char *argv[] = {(char *)"shmlan_bench", (char *)"--no-huge", (char *)"--no-shconf",
		(char *)"--no-pci", (char *)"-m", (char *)"256", (char *)"--no-telemetry",
		(char *)"--log-level=lib.eal:error", cpu, prefix, NULL};
	struct rte_eth_conf conf = {.rxmode.mtu = VRB_SHMLAN_MTU_MAX};
	unsigned int n = sysconf(_SC_NPROCESSORS_ONLN);

	snprintf(cpu, sizeof(cpu), "--lcores=%u@%u", side, side % n);
	snprintf(prefix, sizeof(prefix), "--file-prefix=%s-%u", segment, side);
	if (rte_eal_init(10, argv) < 0)
		die("rte_eal_init");
	snprintf(args, sizeof(args), "segment=%s,mac=02:00:00:00:00:%02x,rx_zc=%d", segment,
		side + 1, opt.zc);
	opt.pool = rte_pktmbuf_pool_create(
		"bench", 8191, 512, 0, 9216 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
	if (opt.pool == NULL)
		die("making a mempool");
	if (rte_vdev_init("net_shmlan0", args) != 0 || rte_eth_dev_configure(0, 1, 1, &conf) != 0 ||
		rte_eth_rx_queue_setup(0, 0, 0, SOCKET_ID_ANY, NULL, opt.pool) != 0 ||
		rte_eth_tx_queue_setup(0, 0, 0, SOCKET_ID_ANY, NULL) != 0 ||
		rte_eth_dev_start(0) != 0)
		die("opening the port");
}

static void
wait_link(void)
{
	struct rte_eth_link link = {0};

	while (link.link_status == 0 && rte_eth_link_get_nowait(0, &link) == 0)
		rte_delay_us_sleep(100);
}

static struct rte_mbuf *
frame(unsigned int to, uint32_t size)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(opt.pool);
	struct rte_ether_hdr *h;

	if (m == NULL)
		die("allocating an mbuf");
	h = (struct rte_ether_hdr *)rte_pktmbuf_append(m, size);
	h->dst_addr = mac[to];
	h->src_addr = mac[1 - to];
	h->ether_type = 0xb588;
	return m;
}

/* ---- rate ---- */

static void
send_for(double seconds)
{
	uint64_t end = rte_get_tsc_cycles() + seconds * rte_get_tsc_hz();
	struct rte_mbuf *m[MAX_BURST];
	uint32_t i, n = 0, full = 0;

	while (rte_get_tsc_cycles() < end) {
		for (; n < opt.burst; n++)
			m[n] = frame(1, opt.size);
		i = rte_eth_tx_burst(0, 0, m, n);
		full += i < n;
		memmove(m, m + i, (n - i) * sizeof(m[0]));
		n -= i;
	}
	rte_pktmbuf_free_bulk(m, n);
	/* A frame of one byte more says that this was all. */
	m[0] = frame(1, opt.size + 1);
	while (rte_eth_tx_burst(0, 0, m, 1) == 0)
		;
}

static void
receive_all(void)
{
	struct rte_mbuf *m[MAX_BURST];
	uint64_t warm = 0, frames = 0, bursts = 0, start = 0, t;
	bool last = false;
	uint16_t i, n;

	while (!last) {
		n = rte_eth_rx_burst(0, 0, m, opt.burst);
		if (n == 0)
			continue;
		for (i = 0; i < n; i++)
			last |= m[i]->pkt_len == opt.size + 1;
		rte_pktmbuf_free_bulk(m, n);
		warm += n;
		if (warm < WARM)
			continue;
		if (start == 0)
			start = rte_get_tsc_cycles();
		else
			frames += n;
		bursts++;
	}
	t = rte_get_tsc_cycles() - start;
	printf("rate     %5u bytes  burst %3u  %s  %8.3f M/s  %7.2f Gbit/s  %5.1f frames a burst\n",
		opt.size, opt.burst, opt.zc ? "zc" : "  ", frames * 1e-6 * rte_get_tsc_hz() / t,
		frames * 8e-9 * opt.size * rte_get_tsc_hz() / t, (double)frames / bursts);
	fflush(stdout);
}

/* ---- latency ---- */

static int
by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static struct rte_mbuf *
receive_one(void)
{
	struct rte_mbuf *m;

	while (rte_eth_rx_burst(0, 0, &m, 1) == 0)
		;
	return m;
}

static void
send_one(struct rte_mbuf *m)
{
	while (rte_eth_tx_burst(0, 0, &m, 1) == 0)
		;
}

static void
ping(double seconds)
{
	uint64_t hz = rte_get_tsc_hz(), end = rte_get_tsc_cycles() + seconds * hz, t;
	uint32_t *rtt = calloc(SAMPLES, sizeof(*rtt));
	uint32_t n = 0, warm = 1000;

	if (rtt == NULL)
		die("calloc");
	while ((t = rte_get_tsc_cycles()) < end && n < SAMPLES) {
		send_one(frame(1, opt.size));
		rte_pktmbuf_free(receive_one());
		if (warm != 0)
			warm--;
		else
			rtt[n++] = rte_get_tsc_cycles() - t;
	}
	send_one(frame(1, opt.size + 1));
	if (n == 0)
		die("measuring: the time is too short");
	qsort(rtt, n, sizeof(*rtt), by_value);
	printf("latency  %5u bytes             %s  round trip in us: median %.2f  10%% %.2f  99%% "
	       "%.2f  (%u samples)\n",
		opt.size, opt.zc ? "zc" : "  ", rtt[n / 2] * 1e6 / hz, rtt[n / 10] * 1e6 / hz,
		rtt[n - 1 - n / 100] * 1e6 / hz, n);
	fflush(stdout);
	free(rtt);
}

static void
pong(void)
{
	bool last = false;

	while (!last) {
		struct rte_mbuf *m = receive_one();

		last = m->pkt_len == opt.size + 1;
		rte_pktmbuf_free(m);
		if (!last)
			send_one(frame(0, opt.size));
	}
}

static void
run(unsigned int side, bool rate)
{
	if (rate && side == 0)
		send_for(opt.seconds);
	else if (rate)
		receive_all();
	else if (side == 0)
		ping(opt.seconds);
	else
		pong();
}

static void
run_all(unsigned int side)
{
	static const uint32_t sizes[] = {64, 82, 112, 256, 1024, 1500, 4160, 8192};
	unsigned int i;

	for (i = 0; i < RTE_DIM(sizes); i++) {
		opt.size = sizes[i];
		run(side, true);
	}
	for (i = 0; i < RTE_DIM(sizes); i++) {
		opt.size = sizes[i];
		run(side, false);
	}
}

static void
usage(void)
{
	fprintf(stderr,
		"usage: shmlan_bench [-s size] [-b burst] [-t seconds] [-z] rate|latency|all\n");
	exit(2);
}

int
main(int argc, char **argv)
{
	unsigned int side;
	const char *mode;
	char segment[32];
	pid_t child;
	int c, status = 1;

	while ((c = getopt(argc, argv, "s:b:t:z")) != -1) {
		if (c == 's')
			opt.size = atoi(optarg);
		else if (c == 'b')
			opt.burst = atoi(optarg);
		else if (c == 't')
			opt.seconds = atof(optarg);
		else if (c == 'z')
			opt.zc = true;
		else
			usage();
	}
	if (optind != argc - 1 || opt.burst < 1 || opt.burst > MAX_BURST || opt.size < 14 ||
		opt.size > 9000)
		usage();
	mode = argv[optind];
	snprintf(segment, sizeof(segment), "bench-%d", getpid());
	/* Before the EAL starts, so that both processes have one of their own. */
	child = fork();
	side = child == 0;
	open_port(side, segment);
	wait_link();
	if (strcmp(mode, "all") == 0)
		run_all(side);
	else
		run(side, strcmp(mode, "rate") == 0);
	/* The peer leaves first, so that all it has been sent has been read. */
	if (child != 0)
		waitpid(child, &status, 0);
	rte_eth_dev_stop(0);
	rte_eth_dev_close(0);
	rmdir(rte_eal_get_runtime_dir());
	rte_eal_cleanup();
	return child == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 0) ? 0 : 1;
}
