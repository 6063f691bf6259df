/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Latency, message rate and bandwidth of the NIC between two processes of this machine, without the verbs library on top.
 *
 *   nic_bench [-s segment] [-n iterations] [-l bytes] [-d depth] [-c] [-v] test...
 *
 * Tests: send_lat write_lat event_lat send_rate send_bw write_bw read_bw idle. With -c each process is bound to a CPU of its own.
 */
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "vrb_nic.h"

#define DEPTH 512
#define BUFFER (4u << 20)

struct side {
	int which;               /* 0 or 1; 0 measures */
	int sock;                /* to the other side */
	struct vrb_nic *nic;
	struct vrb_engine *engine;
	struct vrb_pd *pd;
	struct vrb_cq *cq;
	struct vrb_qp *qp;
	struct vrb_mr *mr;
	uint8_t *buf;
	int event;               /* eventfd of the CQ's notifications */
	uint64_t peer_addr;
	uint32_t peer_rkey;
};

struct hello {
	union vrb_gid gid;
	uint32_t qpn, rkey;
	uint64_t addr;
};

static unsigned int iterations = 20000, length;
static int depth = 128;
static const char *segment = "nic-bench";
static bool bind_cpus, verbose;

static void
check(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-rc));
	exit(1);
}

static void
notify(void *ctx, struct vrb_cq *cq)
{
	const uint64_t one = 1;

	check(write(*(int *)cq->user, &one, sizeof(one)) < 0 ? -errno : 0, "notify");
}

static void
async(void *ctx, enum vrb_event_type type, void *obj)
{
	fprintf(stderr, "async event %d\n", type);
}

static void
explain(void *ctx, const char *sentence)
{
	fprintf(stderr, "%s\n", sentence);
}

static const struct vrb_engine_ops ops = { .cq_notify = notify, .async = async, .explain = explain };

static void
swap(struct side *s, const void *mine, void *theirs, size_t len)
{
	check(send(s->sock, mine, len, 0) == (ssize_t)len ? 0 : -errno, "send");
	check(recv(s->sock, theirs, len, MSG_WAITALL) == (ssize_t)len ? 0 : -EPIPE, "recv");
}

static void
sync_sides(struct side *s)
{
	char c = 0;

	swap(s, &c, &c, 1);
}

static void
connect_qp(struct side *s, const struct hello *peer)
{
	struct vrb_qp_attr a = { .state = VRB_QPS_INIT, .port_num = 1,
		.access = VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE_WRITE | VRB_ACCESS_REMOTE_READ };
	uint64_t now;

	a.av.dgid = peer->gid;
	check(vrb_nic_resolve(s->nic, &peer->gid, a.av.dmac), "resolve");
	vrb_nic_lock(s->nic);
	now = vrb_nic_now(s->nic);
	check(vrb_qp_modify(s->qp, &a, VRB_QP_STATE | VRB_QP_PKEY_INDEX | VRB_QP_PORT | VRB_QP_ACCESS_FLAGS, now), "INIT");
	a.state = VRB_QPS_RTR;
	a.path_mtu = VRB_MTU_4096;
	a.dest_qpn = peer->qpn;
	a.rq_psn = a.sq_psn = 1000;
	a.max_rd_atomic = a.max_dest_rd_atomic = 16;
	a.min_rnr_timer = 12;
	a.av.hop_limit = 64;
	check(vrb_qp_modify(s->qp, &a, VRB_QP_STATE | VRB_QP_AV | VRB_QP_PATH_MTU | VRB_QP_DEST_QPN | VRB_QP_RQ_PSN |
		VRB_QP_MAX_DEST_RD_ATOMIC | VRB_QP_MIN_RNR_TIMER, now), "RTR");
	a.state = VRB_QPS_RTS;
	a.timeout = 14;
	a.retry_cnt = a.rnr_retry = 7;
	check(vrb_qp_modify(s->qp, &a, VRB_QP_STATE | VRB_QP_TIMEOUT | VRB_QP_RETRY_CNT | VRB_QP_RNR_RETRY |
		VRB_QP_SQ_PSN | VRB_QP_MAX_QP_RD_ATOMIC, now), "RTS");
	vrb_nic_unlock(s->nic);
}

static void
open_side(struct side *s)
{
	struct vrb_nic_conf conf = { .segment = segment, .ops = &ops, .ctx = s };
	struct vrb_qp_init init = { .type = VRB_QPT_RC, .max_send_wr = DEPTH, .max_recv_wr = DEPTH, .max_send_sge = 1,
		.max_recv_sge = 1, .max_inline = 64 };
	struct vrb_nic_info info;
	struct hello mine, peer;
	char why[300];
	int rc = vrb_nic_open(&conf, &s->nic, why, sizeof(why));

	if (rc < 0) {
		fprintf(stderr, "%s\n", why);
		exit(1);
	}
	s->engine = vrb_nic_engine(s->nic);
	s->buf = aligned_alloc(4096, BUFFER);
	memset(s->buf, 0, BUFFER);
	s->event = eventfd(0, EFD_NONBLOCK);
	vrb_nic_lock(s->nic);
	check(vrb_pd_create(s->engine, &s->pd), "pd");
	check(vrb_cq_create(s->engine, 4 * DEPTH, &s->event, &s->cq), "cq");
	init.pd = s->pd;
	init.send_cq = init.recv_cq = s->cq;
	check(vrb_qp_create(s->engine, &init, &s->qp), "qp");
	check(vrb_mr_reg(s->engine, s->pd, (uintptr_t)s->buf, BUFFER, (uintptr_t)s->buf, VRB_ACCESS_LOCAL_WRITE |
		VRB_ACCESS_REMOTE_WRITE | VRB_ACCESS_REMOTE_READ, &s->mr), "mr");
	vrb_nic_unlock(s->nic);
	vrb_nic_query(s->nic, &info);
	mine = (struct hello){ info.gid[0], vrb_qp_num(s->qp), s->mr->rkey, (uintptr_t)s->buf };
	swap(s, &mine, &peer, sizeof(mine));
	s->peer_addr = peer.addr;
	s->peer_rkey = peer.rkey;
	connect_qp(s, &peer);
	sync_sides(s);
}

/* With -v: what the engine counted. */
static void
tell_stats(struct side *s)
{
	const struct vrb_stats *v = vrb_engine_stats(s->engine);

	fprintf(stderr, "side %d: tx %lu rx %lu acks %lu/%lu nak seq %lu/%lu rnr %lu/%lu timeouts %lu retransmitted %lu "
		"duplicate %lu out of order %lu gaps %lu no mbuf %lu\n", s->which, v->tx_packets, v->rx_packets, v->tx_acks,
		v->rx_acks, v->tx_nak_seq, v->rx_nak_seq, v->tx_nak_rnr, v->rx_nak_rnr, v->timeouts, v->retransmitted,
		v->rx_duplicate, v->rx_out_of_order, v->read_gaps, v->no_mbuf);
}

static void
close_side(struct side *s)
{
	sync_sides(s);
	if (verbose)
		tell_stats(s);
	vrb_nic_close(s->nic);
	free(s->buf);
	close(s->event);
}

/* ---- what a verbs library does ---- */

static void
post_recv(struct side *s, unsigned int n)
{
	struct vrb_rq *rq = vrb_qp_rq(s->qp);

	rte_spinlock_lock(&rq->lock);
	for (unsigned int i = 0; i < n; i++) {
		struct vrb_recv_wqe *w = vrb_rq_slot(rq, i);

		if (w == NULL)
			check(-ENOBUFS, "post_recv");
		w->wr_id = 0;
		w->num_sge = 1;
		w->length = BUFFER / 2;
		w->sge[0] = (struct vrb_sge){ (uintptr_t)s->buf, BUFFER / 2, s->mr->lkey };
	}
	vrb_rq_commit(rq, n);
	rte_spinlock_unlock(&rq->lock);
}

static void
post_send(struct side *s, enum vrb_wr_opcode op, uint32_t len)
{
	struct vrb_sq *sq = vrb_qp_sq(s->qp);
	struct vrb_send_wqe *w;

	rte_spinlock_lock(&sq->lock);
	w = vrb_sq_slot(sq, 0);
	if (w == NULL)
		check(-ENOBUFS, "post_send");
	w->wr_id = 1;
	w->opcode = op;
	w->flags = VRB_SEND_SIGNALED;
	w->num_sge = 1;
	w->length = len;
	w->imm = 0;
	w->rkey = s->peer_rkey;
	w->remote_addr = s->peer_addr;
	*(struct vrb_sge *)w->data = (struct vrb_sge){ (uintptr_t)s->buf + (op == VRB_WR_RDMA_WRITE ? BUFFER / 2 : 0), len,
		s->mr->lkey };
	if (len <= 64 && op != VRB_WR_RDMA_READ) {
		memcpy(w->data, s->buf + (op == VRB_WR_RDMA_WRITE ? BUFFER / 2 : 0), len);
		w->flags |= VRB_SEND_INLINE;
		w->num_sge = 0;
	}
	check(vrb_qp_check_send(s->qp, w), "check_send");
	vrb_sq_commit(sq, 1);
	rte_spinlock_unlock(&sq->lock);
	vrb_nic_kick(s->nic, s->qp);
}

/* As ibv_poll_cq() of one entry. @return the opcode, -1: empty */
static int
poll_cq(struct side *s)
{
	struct vrb_cqe *c;
	int opcode = -1;

	rte_spinlock_lock(&s->cq->lock);
	c = vrb_cq_peek(s->cq);
	if (c == NULL) {
		rte_spinlock_unlock(&s->cq->lock);
		vrb_nic_progress(s->nic);
		rte_spinlock_lock(&s->cq->lock);
		c = vrb_cq_peek(s->cq);
	}
	if (c != NULL) {
		if (c->status != VRB_WC_SUCCESS)
			fprintf(stderr, "completion with status %u\n", c->status);
		opcode = c->opcode;
		vrb_cq_pop(s->cq);
	}
	rte_spinlock_unlock(&s->cq->lock);
	return opcode;
}

static int
wait_cq(struct side *s)
{
	int opcode;

	while ((opcode = poll_cq(s)) < 0)
		rte_pause();
	return opcode;
}

static void
wait_event(struct side *s)
{
	struct pollfd pfd = { .fd = s->event, .events = POLLIN };
	uint64_t n;

	vrb_nic_lock(s->nic);
	vrb_cq_arm(s->cq, false);
	vrb_nic_unlock(s->nic);
	if (!vrb_cq_empty(s->cq))
		return;
	poll(&pfd, 1, -1);
	if (read(s->event, &n, sizeof(n)) < 0 && errno != EAGAIN)
		check(-errno, "read");
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
	printf("%-10s %8u B  half round trip: median %6.2f us  min %6.2f  99%% %6.2f  99.9%% %6.2f\n", name, len,
		samples[iterations / 2], samples[0], samples[iterations * 99ull / 100], samples[iterations * 999ull / 1000]);
	fflush(stdout);
}

static void
send_lat(struct side *s, bool events)
{
	uint32_t len = length ? length : 8;

	post_recv(s, 32);
	sync_sides(s);
	for (unsigned int i = 0; i < iterations; i++) {
		uint64_t t0 = vrb_nic_now(s->nic);
		int need = s->which == 0 ? 2 : 1;

		if (s->which == 0)
			post_send(s, VRB_WR_SEND, len);
		while (need > 0) {
			int op = poll_cq(s);

			if (op == VRB_WC_RECV) {
				post_recv(s, 1);
				need--;
				if (s->which == 1)
					post_send(s, VRB_WR_SEND, len);
				else
					samples[i] = (vrb_nic_now(s->nic) - t0) / 2e3;
			} else if (op == VRB_WC_SEND && s->which == 0) {
				need--;
			} else if (op < 0 && events) {
				wait_event(s);
			}
		}
	}
	if (s->which == 0)
		tell_latency(events ? "event_lat" : "send_lat", len);
}

/* As ib_write_lat: spins on memory, and polls its CQ only for its own WRITE. */
static void
write_lat(struct side *s)
{
	uint32_t len = length ? length : 8;
	volatile uint8_t *in = s->buf + len - 1, *out = s->buf + BUFFER / 2 + len - 1;

	*in = 0;
	sync_sides(s);
	for (unsigned int i = 0; i < iterations; i++) {
		uint64_t t0 = vrb_nic_now(s->nic);

		if (s->which == 1)
			while (*in != (uint8_t)(i + 1))
				rte_pause();
		*out = (uint8_t)(i + 1);
		post_send(s, VRB_WR_RDMA_WRITE, len);
		if (s->which == 0) {
			while (*in != (uint8_t)(i + 1))
				rte_pause();
			samples[i] = (vrb_nic_now(s->nic) - t0) / 2e3;
		}
		wait_cq(s);
	}
	if (s->which == 0)
		tell_latency("write_lat", len);
}

static void
tell_rate(const char *name, uint32_t len, uint64_t ns)
{
	printf("%-10s %8u B  %8.3f M/s  %8.2f MB/s  %6.3f us each\n", name, len, iterations * 1e3 / ns,
		(double)iterations * len * 1e3 / ns, ns / 1e3 / iterations);
	fflush(stdout);
}

static void
one_sided_bw(struct side *s, const char *name, enum vrb_wr_opcode op)
{
	uint32_t len = length ? length : 65536;
	unsigned int posted = 0, done = 0;
	uint64_t t0;
	char c;

	sync_sides(s);
	if (s->which == 1) {
		/* The target sleeps until all is over. */
		check(recv(s->sock, &c, 1, 0) == 1 ? 0 : -EPIPE, "recv");
		return;
	}
	t0 = vrb_nic_now(s->nic);
	while (done < iterations) {
		while (posted < iterations && posted - done < (unsigned int)depth) {
			post_send(s, op, len);
			posted++;
		}
		if (poll_cq(s) >= 0)
			done++;
	}
	tell_rate(name, len, vrb_nic_now(s->nic) - t0);
	check(send(s->sock, "", 1, 0) < 0 ? -errno : 0, "send");
}

static void
send_stream(struct side *s, const char *name, uint32_t len)
{
	unsigned int posted = 0, done = 0;
	uint64_t t0;

	if (s->which == 1)
		post_recv(s, DEPTH);
	sync_sides(s);
	t0 = vrb_nic_now(s->nic);
	while (done < iterations) {
		while (s->which == 0 && posted < iterations && posted - done < (unsigned int)depth) {
			post_send(s, VRB_WR_SEND, len);
			posted++;
		}
		if (poll_cq(s) < 0)
			continue;
		done++;
		if (s->which == 1 && done + DEPTH <= iterations)
			post_recv(s, 1);
	}
	if (s->which == 0)
		tell_rate(name, len, vrb_nic_now(s->nic) - t0);
}

static double
cpu_seconds(void)
{
	struct rusage ru;

	getrusage(RUSAGE_SELF, &ru);
	return ru.ru_utime.tv_sec + ru.ru_stime.tv_sec + (ru.ru_utime.tv_usec + ru.ru_stime.tv_usec) / 1e6;
}

static void
idle(struct side *s)
{
	double cpu;

	sleep(1);
	cpu = cpu_seconds();
	sleep(2);
	cpu = (cpu_seconds() - cpu) / 2;
	if (s->which == 0)
		printf("idle       %.3f %% of a CPU\n", cpu * 100);
}

static void
run(struct side *s, const char *name)
{
	open_side(s);
	if (strcmp(name, "send_lat") == 0)
		send_lat(s, false);
	else if (strcmp(name, "event_lat") == 0)
		send_lat(s, true);
	else if (strcmp(name, "write_lat") == 0)
		write_lat(s);
	else if (strcmp(name, "send_rate") == 0)
		send_stream(s, name, length ? length : 8);
	else if (strcmp(name, "send_bw") == 0)
		send_stream(s, name, length ? length : 65536);
	else if (strcmp(name, "write_bw") == 0)
		one_sided_bw(s, name, VRB_WR_RDMA_WRITE);
	else if (strcmp(name, "read_bw") == 0)
		one_sided_bw(s, name, VRB_WR_RDMA_READ);
	else if (strcmp(name, "idle") == 0)
		idle(s);
	else
		check(-EINVAL, name);
	close_side(s);
}

static void
child(int which, int sock, char **names, int n)
{
	struct side s = { .which = which, .sock = sock };
	cpu_set_t set;

	if (bind_cpus) {
		CPU_ZERO(&set);
		CPU_SET(which, &set);
		check(sched_setaffinity(0, sizeof(set), &set) < 0 ? -errno : 0, "affinity");
	}
	samples = calloc(iterations, sizeof(*samples));
	for (int i = 0; i < n; i++)
		run(&s, names[i]);
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
	check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 ? -errno : 0, "socketpair");
	for (int i = 0; i < 2; i++) {
		pid[i] = fork();
		check(pid[i] < 0 ? -errno : 0, "fork");
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
