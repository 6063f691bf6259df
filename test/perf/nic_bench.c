/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Latency, message rate and bandwidth of the NIC between two processes of this machine, without the
 * verbs library on top.
 *
 *   nic_bench [-s segment] [-n iterations] [-l bytes] [-d depth] [-c] [-v] test...
 *
 * Tests: send_lat write_lat event_lat send_rate send_bw write_bw read_bw idle. With -c each process
 * is bound to a CPU of its own.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "nic_side.h"

struct bench {
	struct side side;
	int which; /* 0 or 1; 0 measures */
	int sock; /* to the other side */
};

static unsigned int iterations = 20000, length;
static int depth = 128;
static const char *segment = "nic-bench";
static bool bind_cpus, verbose;

static void
swap(struct bench *b, const void *mine, void *theirs, size_t len)
{
	side_check(send(b->sock, mine, len, 0) == (ssize_t)len ? 0 : -errno, "send");
	side_check(recv(b->sock, theirs, len, MSG_WAITALL) == (ssize_t)len ? 0 : -EPIPE, "recv");
}

static void
sync_sides(struct bench *b)
{
	char c = 0;

	swap(b, &c, &c, 1);
}

static void
open_bench(struct bench *b)
{
	struct vrb_nic_conf conf = {.segment = segment};
	struct side_hello mine, peer;

	side_open(&b->side, &conf, &mine);
	swap(b, &mine, &peer, sizeof(mine));
	side_connect(&b->side, &peer);
	sync_sides(b);
}

/* With -v: what the engine counted. */
static void
tell_stats(struct bench *b)
{
	const struct vrb_stats *v = vrb_engine_stats(b->side.engine);

	fprintf(stderr,
		"side %d: tx %lu rx %lu acks %lu/%lu nak seq %lu/%lu rnr %lu/%lu timeouts %lu "
		"retransmitted %lu "
		"duplicate %lu out of order %lu gaps %lu no mbuf %lu\n",
		b->which, v->tx_packets, v->rx_packets, v->tx_acks, v->rx_acks, v->tx_nak_seq,
		v->rx_nak_seq, v->tx_nak_rnr, v->rx_nak_rnr, v->timeouts, v->retransmitted,
		v->rx_duplicate, v->rx_out_of_order, v->read_gaps, v->no_mbuf);
}

static void
close_bench(struct bench *b)
{
	sync_sides(b);
	if (verbose)
		tell_stats(b);
	if (b->side.failed != 0)
		fprintf(stderr, "side %d: a completion with status %d\n", b->which, b->side.failed);
	side_close(&b->side);
}

/* ---- tests ---- */

static int
compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double *samples;

static void
tell_latency(const char *name, uint32_t len)
{
	qsort(samples, iterations, sizeof(*samples), compare);
	printf("%-10s %8u B  half round trip: median %6.2f us  min %6.2f  99%% %6.2f  99.9%% "
	       "%6.2f\n",
		name, len, samples[iterations / 2], samples[0], samples[iterations * 99ull / 100],
		samples[iterations * 999ull / 1000]);
	fflush(stdout);
}

static void
send_lat(struct bench *b, bool events)
{
	struct side *s = &b->side;
	uint32_t len = length ? length : 8;

	side_post_recv(s, 32);
	sync_sides(b);
	for (unsigned int i = 0; i < iterations; i++) {
		uint64_t t0 = vrb_nic_now(s->nic);
		int need = b->which == 0 ? 2 : 1;

		if (b->which == 0)
			side_post_send(s, VRB_WR_SEND, len);
		while (need > 0) {
			int op = side_poll(s);

			if (op == VRB_WC_RECV) {
				side_post_recv(s, 1);
				need--;
				if (b->which == 1)
					side_post_send(s, VRB_WR_SEND, len);
				else
					samples[i] = (vrb_nic_now(s->nic) - t0) / 2e3;
			} else if (op == VRB_WC_SEND && b->which == 0) {
				need--;
			} else if (op < 0 && events) {
				side_wait_event(s, -1);
			}
		}
	}
	if (b->which == 0)
		tell_latency(events ? "event_lat" : "send_lat", len);
}

/* As ib_write_lat: spins on memory, and polls its CQ only for its own WRITE. */
static void
write_lat(struct bench *b)
{
	struct side *s = &b->side;
	uint32_t len = length ? length : 8;
	volatile uint8_t *in = s->buf + len - 1, *out = s->buf + SIDE_BUFFER / 2 + len - 1;

	*in = 0;
	sync_sides(b);
	for (unsigned int i = 0; i < iterations; i++) {
		uint64_t t0 = vrb_nic_now(s->nic);

		if (b->which == 1)
			while (*in != (uint8_t)(i + 1))
				rte_pause();
		*out = (uint8_t)(i + 1);
		side_post_send(s, VRB_WR_RDMA_WRITE, len);
		if (b->which == 0) {
			while (*in != (uint8_t)(i + 1))
				rte_pause();
			samples[i] = (vrb_nic_now(s->nic) - t0) / 2e3;
		}
		side_wait(s);
	}
	if (b->which == 0)
		tell_latency("write_lat", len);
}

static void
tell_rate(const char *name, uint32_t len, uint64_t ns)
{
	printf("%-10s %8u B  %8.3f M/s  %8.2f MB/s  %6.3f us each\n", name, len,
		iterations * 1e3 / ns, (double)iterations * len * 1e3 / ns, ns / 1e3 / iterations);
	fflush(stdout);
}

static void
one_sided_bw(struct bench *b, const char *name, enum vrb_wr_opcode op)
{
	struct side *s = &b->side;
	uint32_t len = length ? length : 65536;
	unsigned int posted = 0, done = 0;
	uint64_t t0;
	char c;

	sync_sides(b);
	if (b->which == 1) {
		/* The target sleeps until all is over. */
		side_check(recv(b->sock, &c, 1, 0) == 1 ? 0 : -EPIPE, "recv");
		return;
	}
	t0 = vrb_nic_now(s->nic);
	while (done < iterations) {
		while (posted < iterations && posted - done < (unsigned int)depth) {
			side_post_send(s, op, len);
			posted++;
		}
		if (side_poll(s) >= 0)
			done++;
	}
	tell_rate(name, len, vrb_nic_now(s->nic) - t0);
	side_check(send(b->sock, "", 1, 0) < 0 ? -errno : 0, "send");
}

static void
send_stream(struct bench *b, const char *name, uint32_t len)
{
	struct side *s = &b->side;
	unsigned int posted = 0, done = 0;
	uint64_t t0;

	if (b->which == 1)
		side_post_recv(s, SIDE_DEPTH);
	sync_sides(b);
	t0 = vrb_nic_now(s->nic);
	while (done < iterations) {
		while (b->which == 0 && posted < iterations &&
			posted - done < (unsigned int)depth) {
			side_post_send(s, VRB_WR_SEND, len);
			posted++;
		}
		if (side_poll(s) < 0)
			continue;
		done++;
		if (b->which == 1 && done + SIDE_DEPTH <= iterations)
			side_post_recv(s, 1);
	}
	if (b->which == 0)
		tell_rate(name, len, vrb_nic_now(s->nic) - t0);
}

static double
cpu_seconds(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return ru.ru_utime.tv_sec + ru.ru_stime.tv_sec +
	       (ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
}

static void
idle(struct bench *b)
{
	double cpu;

	sleep(1);
	cpu = cpu_seconds();
	sleep(2);
	cpu = (cpu_seconds() - cpu) / 2;
	if (b->which == 0)
		printf("idle       %.3f %% of a CPU\n", cpu * 100);
}

static void
run(struct bench *b, const char *name)
{
	open_bench(b);
	if (strcmp(name, "send_lat") == 0)
		send_lat(b, false);
	else if (strcmp(name, "event_lat") == 0)
		send_lat(b, true);
	else if (strcmp(name, "write_lat") == 0)
		write_lat(b);
	else if (strcmp(name, "send_rate") == 0)
		send_stream(b, name, length ? length : 8);
	else if (strcmp(name, "send_bw") == 0)
		send_stream(b, name, length ? length : 65536);
	else if (strcmp(name, "write_bw") == 0)
		one_sided_bw(b, name, VRB_WR_RDMA_WRITE);
	else if (strcmp(name, "read_bw") == 0)
		one_sided_bw(b, name, VRB_WR_RDMA_READ);
	else if (strcmp(name, "idle") == 0)
		idle(b);
	else
		side_check(-EINVAL, name);
	close_bench(b);
}

static void
child(int which, int sock, char **names, int n)
{
	struct bench b = {.which = which, .sock = sock};
	cpu_set_t set;

	if (bind_cpus) {
		CPU_ZERO(&set);
		CPU_SET(which, &set);
		side_check(sched_setaffinity(0, sizeof(set), &set) < 0 ? -errno : 0, "affinity");
	}
	samples = calloc(iterations, sizeof(*samples));
	for (int i = 0; i < n; i++)
		run(&b, names[i]);
	exit(0);
}

int
main(int argc, char **argv)
{
	int opt, pair[2], status, rc = 0;
	pid_t pid[2];

	while ((opt = getopt(argc, argv, "s:n:l:d:cv")) != -1) {
		if (opt == 's')
			segment = optarg;
		else if (opt == 'n')
			iterations = strtoul(optarg, NULL, 0);
		else if (opt == 'l')
			length = strtoul(optarg, NULL, 0);
		else if (opt == 'd')
			depth = atoi(optarg);
		else if (opt == 'c')
			bind_cpus = true;
		else if (opt == 'v')
			verbose = true;
		else
			return 2;
	}
	side_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ? -errno : 0,
		"socketpair");
	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		side_check(pid[i] < 0 ? -errno : 0, "fork");
		if (pid[i] == 0) {
			close(pair[1 - i]);
			child(i, pair[i], argv + optind, argc - optind);
		}
	}
	close(pair[0]);
	close(pair[1]);
	for (int i = 0; i < 2; i++)
		if (waitpid(pid[i], &status, 0) < 0 || status != 0)
			rc = 1;
	return rc;
}
