/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues that are resized up and down under full load, ten thousand times and more.
 *
 * Two CQs, each with the sends and receives of 16 pairs of queue pairs, which two threads post. One
 * is polled with ibv_poll_cq() by a thread that never sleeps, while another arms it and waits for
 * the events; the other is extended, and polled with ibv_start_poll() by a thread that sleeps until
 * it is notified. A thread resizes both. Every completion has to come once and, of each queue, in
 * order; every arming that a completion follows has to give an event; a refused change has to
 * change nothing.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "stress.h"

#define PAIRS 16
#define DEPTH 8
#define LEN 64
#define OUT_MAX (PAIRS * 2 * DEPTH) /* completions that can be waiting */
#define CQE_MAX 4096
#define FEEDERS 2
#define EVENT_PATIENCE_MS 20000
#define RECV_BIT (UINT64_C(1) << 62)

struct pair {
	struct ibv_qp *a, *b; /* a sends, b receives */
	uint32_t sent; /* the feeder's */
	atomic_uint send_done, recv_done; /* the poller's */
	uint8_t *buf; /* DEPTH messages of a, then of b */
};

struct station {
	const char *name;
	struct stress_opts opts;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_cq_ex *cq_ex; /* the same one, if it is extended */
	struct ibv_mr *mr;
	uint8_t *buf;
	struct pair pair[PAIRS];
	atomic_bool stop_feeding, stop;
	atomic_uint completions, events, resizes, refused;
	unsigned int stream;
};

static void
post_recv_of(struct station *s, uint32_t p, uint32_t seq)
{
	struct pair *pair = &s->pair[p];
	struct ibv_sge sge = {(uintptr_t)pair->buf + (DEPTH + seq % DEPTH) * LEN, LEN, s->mr->lkey};
	struct ibv_recv_wr *bad,
		wr = {.wr_id = RECV_BIT | (uint64_t)p << 32 | seq, .sg_list = &sge, .num_sge = 1};
	int rc = ibv_post_recv(pair->b, &wr, &bad);

	STRESS_CHECK(!rc, "%s: ibv_post_recv: %s", s->name, strerror(rc));
}

static void
send_of(struct station *s, uint32_t p)
{
	struct pair *pair = &s->pair[p];
	uint32_t seq = pair->sent++;
	struct ibv_sge sge = {(uintptr_t)pair->buf + seq % DEPTH * LEN, LEN, s->mr->lkey};
	struct ibv_send_wr *bad,
		wr = {.wr_id = (uint64_t)p << 32 | seq,
			.sg_list = &sge,
			.num_sge = 1,
			.opcode = IBV_WR_SEND_WITH_IMM,
			.imm_data = seq,
			.send_flags = IBV_SEND_SIGNALED | (seq % 5 ? 0 : IBV_SEND_SOLICITED)};
	int rc;

	stress_fill((void *)(uintptr_t)sge.addr, LEN, stress_mix(s->stream, p, seq));
	rc = ibv_post_send(pair->a, &wr, &bad);
	STRESS_CHECK(!rc, "%s: ibv_post_send: %s", s->name, strerror(rc));
}

struct feeder {
	struct station *s;
	uint32_t index;
};

static void *
feeder_main(void *arg)
{
	struct feeder *f = arg;
	struct station *s = f->s;
	struct stress_rnd rnd = stress_rnd_init(s->opts.seed, s->stream + 10 + f->index);
	uint32_t p, n, busy;

	while (!s->stop_feeding) {
		busy = 0;
		for (p = f->index; p < PAIRS; p += FEEDERS) {
			struct pair *pair = &s->pair[p];
			uint32_t send_done = pair->send_done, recv_done = pair->recv_done;
			uint32_t done = send_done < recv_done ? send_done : recv_done;

			n = stress_rnd_range(&rnd, 0, DEPTH);
			for (; pair->sent - done < n; busy++)
				send_of(s, p);
		}
		if (!busy)
			sched_yield();
	}
	return NULL;
}

/* ---- completions ---- */

struct seen {
	uint64_t wr_id;
	enum ibv_wc_status status;
	uint32_t len, qp_num, imm;
};

static void
take_completion(struct station *s, const struct seen *c)
{
	bool recv = c->wr_id & RECV_BIT;
	uint32_t p = (uint32_t)(c->wr_id >> 32) & 0xff, seq = (uint32_t)c->wr_id;
	struct pair *pair = &s->pair[p % PAIRS];
	atomic_uint *done = recv ? &pair->recv_done : &pair->send_done;
	const char *what = recv ? "receive" : "send";

	STRESS_CHECK(c->status == IBV_WC_SUCCESS && p < PAIRS, "%s: %s %u of pair %u: %s", s->name,
		what, seq, p, ibv_wc_status_str(c->status));
	STRESS_CHECK(c->qp_num == (recv ? pair->b : pair->a)->qp_num,
		"%s: %s %u of pair %u has number %#x", s->name, what, seq, p, c->qp_num);
	STRESS_CHECK(seq == *done, "%s: %s %u of pair %u was reported when %u was expected",
		s->name, what, seq, p, *done);
	if (recv) {
		STRESS_CHECK(c->len == LEN && c->imm == seq &&
				     stress_is_filled(pair->buf + (DEPTH + seq % DEPTH) * LEN, LEN,
					     stress_mix(s->stream, p, seq)),
			"%s: message %u of pair %u does not hold what was sent", s->name, seq, p);
		/* Before the sender may send the one that takes it. */
		post_recv_of(s, p, seq + DEPTH);
	}
	++*done;
	s->completions++;
}

static int
poll_plain(struct station *s, uint32_t max)
{
	struct ibv_wc wc[32];
	int i, n = ibv_poll_cq(s->cq, (int)max, wc);

	STRESS_CHECK(n >= 0 && n <= (int)max, "%s: ibv_poll_cq gave %d of %u", s->name, n, max);
	for (i = 0; i < n; i++)
		take_completion(s, &(struct seen){wc[i].wr_id, wc[i].status, wc[i].byte_len,
					   wc[i].qp_num, wc[i].imm_data});
	return n;
}

static int
poll_extended(struct station *s, uint32_t max)
{
	struct ibv_poll_cq_attr attr = {0};
	struct ibv_cq_ex *cq = s->cq_ex;
	int n = 0, rc = ibv_start_poll(cq, &attr);

	if (rc == ENOENT)
		return 0;
	STRESS_CHECK(!rc, "%s: ibv_start_poll: %s", s->name, strerror(rc));
	do {
		take_completion(s, &(struct seen){cq->wr_id, cq->status, ibv_wc_read_byte_len(cq),
					   ibv_wc_read_qp_num(cq), ibv_wc_read_imm_data(cq)});
		n++;
	} while ((uint32_t)n < max && !(rc = ibv_next_poll(cq)));
	STRESS_CHECK(!rc || rc == ENOENT, "%s: ibv_next_poll: %s", s->name, strerror(rc));
	ibv_end_poll(cq);
	return n;
}

static void *
busy_poller_main(void *arg)
{
	struct station *s = arg;
	struct stress_rnd rnd = stress_rnd_init(s->opts.seed, s->stream + 20);

	while (!s->stop)
		if (!poll_plain(s, stress_rnd_range(&rnd, 1, 32)))
			sched_yield();
	return NULL;
}

/* @return whether an event came; without one it is time to stop */
static bool
await_event(struct station *s)
{
	struct pollfd fd = {.fd = s->channel->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;
	int ms;

	for (ms = 0; poll(&fd, 1, 100) != 1; ms += 100) {
		if (s->stop)
			return false;
		STRESS_CHECK(ms < EVENT_PATIENCE_MS,
			"%s: it was armed, completions have come, and no event has", s->name);
	}
	STRESS_CHECK(!ibv_get_cq_event(s->channel, &cq, &context) && cq == s->cq && context == s,
		"%s: ibv_get_cq_event failed, or told another CQ", s->name);
	s->events++;
	return true;
}

/* Sleeps when the queue is empty, as programs with few cores do. */
static void *
sleeping_poller_main(void *arg)
{
	struct station *s = arg;
	struct stress_rnd rnd = stress_rnd_init(s->opts.seed, s->stream + 30);
	uint32_t unacked = 0;
	int rc;

	while (!s->stop) {
		while (poll_extended(s, stress_rnd_range(&rnd, 1, 32)))
			;
		rc = ibv_req_notify_cq(s->cq, 0);
		STRESS_CHECK(!rc, "%s: ibv_req_notify_cq: %s", s->name, strerror(rc));
		/* What came before the arming gives no event. */
		while (poll_extended(s, 32))
			;
		if (!await_event(s))
			break;
		if (++unacked == 16) {
			ibv_ack_cq_events(s->cq, unacked);
			unacked = 0;
		}
	}
	ibv_ack_cq_events(s->cq, unacked);
	return NULL;
}

/* Arms a queue that another thread polls: there is load, so every arming has to give an event. */
static void *
armer_main(void *arg)
{
	struct station *s = arg;
	struct stress_rnd rnd = stress_rnd_init(s->opts.seed, s->stream + 40);
	struct pollfd fd = {.fd = s->channel->fd, .events = POLLIN};

	while (!s->stop_feeding) {
		STRESS_CHECK(!ibv_req_notify_cq(s->cq, (int)stress_rnd_range(&rnd, 0, 1)),
			"%s: ibv_req_notify_cq failed", s->name);
		if (!await_event(s))
			break;
		ibv_ack_cq_events(s->cq, 1);
		STRESS_CHECK(poll(&fd, 1, 0) == 0, "%s: one arming gave two events", s->name);
	}
	return NULL;
}

/* ---- resizing ---- */

static void
resize(struct station *s, struct stress_rnd *rnd)
{
	int before = s->cq->cqe, rc;
	int want = (int)stress_rnd_range(rnd, OUT_MAX, CQE_MAX);

	if (stress_rnd_range(rnd, 0, 15) == 0) {
		want = stress_rnd_range(rnd, 0, 1) ? 0 : 1 << 30;
		rc = ibv_resize_cq(s->cq, want);
		STRESS_CHECK(rc == EINVAL, "%s: a size of %d was not refused with EINVAL (%d)",
			s->name, want, rc);
		STRESS_CHECK(s->cq->cqe == before, "%s: a refused change made cqe %d of %d",
			s->name, s->cq->cqe, before);
		s->refused++;
		return;
	}
	rc = ibv_resize_cq(s->cq, want);
	STRESS_CHECK(!rc, "%s: ibv_resize_cq to %d: %s", s->name, want, strerror(rc));
	STRESS_CHECK(
		s->cq->cqe >= want, "%s: cqe is %d, %d were asked for", s->name, s->cq->cqe, want);
	s->resizes++;
}

/* Both queues, until the time is over and each has been resized as often as wanted. */
static void
resize_all(struct station *s, uint32_t n)
{
	struct stress_opts *opts = &s[0].opts;
	struct stress_rnd rnd = stress_rnd_init(opts->seed, 1);
	uint64_t end = stress_now() + opts->seconds * UINT64_C(1000000000), moved = 0, now;
	uint32_t i, last[2] = {0};

	for (i = 0;; i = (i + 1) % n) {
		now = stress_now();
		if (now >= end && s[0].resizes >= opts->at_least && s[1].resizes >= opts->at_least)
			break;
		resize(&s[i], &rnd);
		if (stress_rnd_range(&rnd, 0, 3) == 0)
			stress_sleep_us(stress_rnd_range(&rnd, 0, 200));
		if (now - moved < UINT64_C(1000000000) * 20)
			continue;
		/* Every 20 seconds something must have come on both. */
		for (i = 0; i < n; i++) {
			STRESS_CHECK(!moved || s[i].completions != last[i],
				"%s: no completion comes any more, after %u", s[i].name, last[i]);
			last[i] = s[i].completions;
		}
		moved = now;
		i = 0;
	}
}

/* ---- making and ending ---- */

static void
open_station(struct station *s, struct stress_opts opts, bool extended, unsigned int stream)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = OUT_MAX, .cq_context = s, .wc_flags = IBV_WC_STANDARD_FLAGS};
	size_t size = (size_t)PAIRS * 2 * DEPTH * LEN;
	union ibv_gid gid;
	uint32_t p, i;

	s->name = extended ? "extended CQ" : "plain CQ";
	s->opts = opts;
	s->stream = stream;
	s->ctx = open_device();
	s->pd = ibv_alloc_pd(s->ctx);
	s->channel = ibv_create_comp_channel(s->ctx);
	attr.channel = s->channel;
	if (extended) {
		s->cq_ex = ibv_create_cq_ex(s->ctx, &attr);
		s->cq = s->cq_ex ? ibv_cq_ex_to_cq(s->cq_ex) : NULL;
	} else {
		s->cq = ibv_create_cq(s->ctx, OUT_MAX, s, s->channel, 0);
	}
	s->buf = calloc(1, size);
	s->mr = ibv_reg_mr(s->pd, s->buf, size, IBV_ACCESS_LOCAL_WRITE);
	STRESS_CHECK(s->pd && s->channel && s->cq && s->mr, "%s: %s", s->name, strerror(errno));
	ibv_query_gid(s->ctx, 1, 0, &gid);
	for (p = 0; p < PAIRS; p++) {
		struct pair *pair = &s->pair[p];

		pair->buf = s->buf + (size_t)p * 2 * DEPTH * LEN;
		pair->a = stress_qp(s->pd, s->cq, s->cq, NULL, DEPTH, 1);
		pair->b = stress_qp(s->pd, s->cq, s->cq, NULL, 1, DEPTH);
		stress_connect(pair->a, &gid, pair->b->qp_num);
		stress_connect(pair->b, &gid, pair->a->qp_num);
		for (i = 0; i < DEPTH; i++)
			post_recv_of(s, p, i);
	}
}

/* All that was posted completes, and nothing more does. */
static void
drain_station(struct station *s)
{
	uint64_t start = stress_now();
	uint32_t p, missing;

	do {
		missing = 0;
		for (p = 0; p < PAIRS; p++)
			missing +=
				2 * s->pair[p].sent - s->pair[p].send_done - s->pair[p].recv_done;
		STRESS_CHECK(stress_now() - start < STRESS_PATIENCE_NS,
			"%s: %u completions never came", s->name, missing);
		stress_sleep_us(1000);
	} while (missing);
	stress_sleep_us(20000);
	for (p = 0; p < PAIRS; p++)
		STRESS_CHECK(s->pair[p].send_done == s->pair[p].sent &&
				     s->pair[p].recv_done == s->pair[p].sent,
			"%s: more completions than requests on pair %u", s->name, p);
}

static void
close_station(struct station *s)
{
	uint32_t p;

	for (p = 0; p < PAIRS; p++)
		STRESS_CHECK(!ibv_destroy_qp(s->pair[p].a) && !ibv_destroy_qp(s->pair[p].b),
			"%s: a queue pair could not be destroyed", s->name);
	STRESS_CHECK(!ibv_destroy_cq(s->cq) && !ibv_destroy_comp_channel(s->channel) &&
			     !ibv_dereg_mr(s->mr) && !ibv_dealloc_pd(s->pd) &&
			     !ibv_close_device(s->ctx),
		"%s: an object could not be destroyed", s->name);
	free(s->buf);
}

int
main(int argc, char **argv)
{
	static struct station station[2];
	struct stress_opts opts = stress_begin(argc, argv);
	struct feeder feeders[2][FEEDERS];
	pthread_t feeding[2 * FEEDERS + 1], polling[2];
	uint32_t i, f, n = 0;

	for (i = 0; i < 2; i++)
		open_station(&station[i], opts, i == 1, 100 * (i + 1));
	polling[0] = stress_thread(busy_poller_main, &station[0]);
	polling[1] = stress_thread(sleeping_poller_main, &station[1]);
	for (i = 0; i < 2; i++)
		for (f = 0; f < FEEDERS; f++) {
			feeders[i][f] = (struct feeder){&station[i], f};
			feeding[n++] = stress_thread(feeder_main, &feeders[i][f]);
		}
	feeding[n++] = stress_thread(armer_main, &station[0]);
	resize_all(station, 2);
	/* The one that arms first: without load it would wait in vain. */
	station[0].stop_feeding = true;
	station[1].stop_feeding = true;
	for (i = 0; i + 1 < n; i++)
		pthread_join(feeding[i], NULL);
	for (i = 0; i < 2; i++)
		drain_station(&station[i]);
	station[0].stop = station[1].stop = true;
	pthread_join(feeding[n - 1], NULL);
	for (i = 0; i < 2; i++) {
		pthread_join(polling[i], NULL);
		close_station(&station[i]);
		printf("%s: %u completions, %u resizes and %u refused, %u events\n",
			station[i].name, station[i].completions, station[i].resizes,
			station[i].refused, station[i].events);
		STRESS_CHECK(station[i].completions && station[i].events && station[i].resizes,
			"%s: nothing has happened", station[i].name);
	}
	return 0;
}
