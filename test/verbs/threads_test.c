/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many threads at once: verbs promise that any two calls may run at the same time, as long as no
 * object is destroyed under another.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "verbs_util.h"

#define THREADS 4

struct shared {
	struct rig *r;
	atomic_int turns;
	atomic_int failed;
	atomic_int stop;
	atomic_uint completed;
};

static void
run_threads(struct shared *s, void *(*body)(void *), int n)
{
	pthread_t t[THREADS];
	int i;

	for (i = 0; i < n; i++)
		pthread_create(&t[i], NULL, body, s);
	for (i = 0; i < n; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(s->failed, 0);
}

#define WRITES 20000

/* cmocka's asserts are for the main thread; the others count. */
static void *
write_and_poll(void *arg)
{
	struct shared *s = arg;
	struct rig *r = s->r;
	struct ibv_wc wc[8];
	int n, i;

	while (s->turns < WRITES || s->completed < (unsigned int)s->turns) {
		if (s->turns < WRITES && !post_send(r, r->a, 0, IBV_WR_RDMA_WRITE, r->buf, 16))
			s->turns++;
		n = ibv_poll_cq(r->cq, 8, wc);
		for (i = 0; i < n; i++)
			if (wc[i].status)
				s->failed++;
		if (n > 0)
			s->completed += (unsigned int)n;
		else
			sched_yield();
	}
	return NULL;
}

static void
threads_share_a_queue_pair_and_its_completions(void **state)
{
	struct shared s = {.r = *state};

	run_threads(&s, write_and_poll, THREADS);
	assert_int_equal(s.completed, (unsigned int)s.turns);
}

static void *
make_and_destroy(void *arg)
{
	struct shared *s = arg;
	struct rig mine = *s->r;
	int i;

	for (i = 0; i < 50; i++) {
		struct ibv_mr *mr = ibv_reg_mr(mine.pd, mine.buf, BUF_SIZE, ALL_ACCESS);
		struct ibv_qp_cap cap = {
			.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1};
		struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = cap};
		struct ibv_cq *cq = ibv_create_cq(mine.ctx, 8, NULL, NULL, 0);
		struct ibv_qp *qp;

		init.send_cq = init.recv_cq = cq;
		qp = cq ? ibv_create_qp(mine.pd, &init) : NULL;
		if (!mr || !qp || ibv_destroy_qp(qp) || ibv_destroy_cq(cq) || ibv_dereg_mr(mr))
			s->failed++;
	}
	return NULL;
}

static void *
write_until_told(void *arg)
{
	struct shared *s = arg;
	struct rig *r = s->r;
	struct ibv_wc wc;

	while (!s->stop) {
		if (post_send(r, r->a, 0, IBV_WR_RDMA_WRITE, r->buf, 16))
			s->failed++;
		while (!ibv_poll_cq(r->cq, 1, &wc))
			if (s->failed)
				return NULL;
		if (wc.status)
			s->failed++;
		s->completed++;
	}
	return NULL;
}

static void
objects_come_and_go_beside_traffic(void **state)
{
	struct shared s = {.r = *state};
	pthread_t t;

	pthread_create(&t, NULL, write_until_told, &s);
	run_threads(&s, make_and_destroy, THREADS);
	s.stop = 1;
	pthread_join(t, NULL);
	assert_int_equal(s.failed, 0);
	assert_true(s.completed > 0);
}

static void *
resize_until_told(void *arg)
{
	struct shared *s = arg;
	unsigned int i;

	for (i = 0; !s->stop; i++)
		if (ibv_resize_cq(s->r->cq, 100 + (int)(i % 7) * 50))
			s->failed++;
	return NULL;
}

/* Completions are numbered; none may be lost, doubled or overtaken. */
static void
queue_is_resized_under_traffic(void **state)
{
	struct shared s = {.r = *state};
	struct rig *r = s.r;
	uint64_t posted = 0, seen = 0;
	struct ibv_wc wc;
	pthread_t t;

	pthread_create(&t, NULL, resize_until_told, &s);
	while (seen < 20000) {
		while (posted < 20000 && posted - seen < 32 &&
			!post_send(r, r->a, posted, IBV_WR_RDMA_WRITE, r->buf, 16))
			posted++;
		if (ibv_poll_cq(r->cq, 1, &wc) != 1)
			continue;
		if (wc.status || wc.wr_id != seen)
			break;
		seen++;
	}
	s.stop = 1;
	pthread_join(t, NULL);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 19999);
	assert_int_equal(seen, 20000);
	assert_int_equal(s.failed, 0);
}

/* Sends and receives on both sides by their own threads, by ibv_post_*. */
static void *
receiver(void *arg)
{
	struct shared *s = arg;
	struct rig *r = s->r;
	struct ibv_wc wc;

	while (s->completed < 10000) {
		if (ibv_poll_cq(r->b->recv_cq, 1, &wc) != 1)
			continue;
		if (wc.status)
			s->failed++;
		s->completed++;
		if (post_recv(r, r->b, 0, r->buf + BUF_SIZE / 2, 64))
			s->failed++;
	}
	return NULL;
}

static void
one_thread_sends_and_another_receives(void **state)
{
	struct rig *r = *state;
	struct rig other = *r;
	struct shared s = {.r = &other};
	struct ibv_wc wc;
	pthread_t t;
	int i, sent = 0, done = 0;

	other.cq = ibv_create_cq(r->ctx, 256, NULL, NULL, 0);
	other.a = make_qp(r, NULL, NULL);
	other.b = make_qp(&other, NULL, NULL);
	connect_qp(r, other.a, other.b);
	connect_qp(r, other.b, other.a);
	for (i = 0; i < 64; i++)
		assert_int_equal(post_recv(r, other.b, 0, r->buf + BUF_SIZE / 2, 64), 0);
	pthread_create(&t, NULL, receiver, &s);
	while (done < 10000 && !s.failed) {
		if (sent < 10000 && sent - (int)s.completed < 60 &&
			!post_send(r, other.a, 0, IBV_WR_SEND, r->buf, 32))
			sent++;
		if (ibv_poll_cq(r->cq, 1, &wc) == 1) {
			if (wc.status)
				break;
			done++;
		}
	}
	pthread_join(t, NULL);
	assert_int_equal(done, 10000);
	assert_int_equal(s.failed, 0);
	ibv_destroy_qp(other.a);
	ibv_destroy_qp(other.b);
	ibv_destroy_cq(other.cq);
}

/* ---- queues that are reset while they are posted to ---- */

#define RESETS 60

struct resets {
	struct rig *r;
	struct ibv_wq *wq; /* or NULL: the queue pair */
	atomic_int go; /* number of the round in which it is posted */
	atomic_int refused; /* the last round in which it was posted after the reset */
	atomic_int reset; /* the last round in which the reset was done */
	atomic_int stop;
};

static int
post_once(struct resets *s)
{
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad;

	return s->wq ? ibv_post_wq_recv(s->wq, &wr, &bad) : ibv_post_recv(s->r->b, &wr, &bad);
}

static void *
post_until_refused(void *arg)
{
	struct resets *s = arg;
	bool last;
	int round;

	while (!s->stop) {
		round = s->go;
		if (round == s->refused) {
			sched_yield();
			continue;
		}
		/* A post that begins after the reset is refused for certain, and is the last. */
		last = s->reset == round;
		post_once(s);
		if (last)
			s->refused = round;
	}
	return NULL;
}

static int
set_state(struct resets *s, bool error)
{
	struct ibv_wq_attr wq = {.attr_mask = IBV_WQ_ATTR_STATE};
	struct ibv_qp_attr qp;

	wq.wq_state = error ? IBV_WQS_ERR : IBV_WQS_RESET;
	qp.qp_state = error ? IBV_QPS_ERR : IBV_QPS_RESET;
	return s->wq ? ibv_modify_wq(s->wq, &wq) : ibv_modify_qp(s->r->b, &qp, IBV_QP_STATE);
}

static void
open_queue(struct resets *s)
{
	struct ibv_wq_attr wq = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};

	if (s->wq)
		assert_int_equal(ibv_modify_wq(s->wq, &wq), 0);
	else
		step(s->r, s->r->b, IBV_QPS_INIT, NULL);
}

/* Nothing that was posted before a reset, or beside it, is there afterwards. */
static void
reset_beside_posts(struct rig *r, struct ibv_wq *wq)
{
	struct resets s = {.r = r, .wq = wq};
	struct ibv_wc wc;
	pthread_t t;
	int i;

	pthread_create(&t, NULL, post_until_refused, &s);
	for (i = 1; i <= RESETS; i++) {
		open_queue(&s);
		s.go = i;
		if (i % 2)
			sched_yield();
		assert_int_equal(set_state(&s, false), 0);
		s.reset = i;
		while (s.refused != i)
			sched_yield();
		open_queue(&s);
		assert_int_equal(set_state(&s, true), 0); /* flushes what is there */
		assert_int_equal(ibv_poll_cq(r->cq, 1, &wc), 0);
		assert_int_equal(set_state(&s, false), 0);
	}
	s.stop = 1;
	pthread_join(t, NULL);
}

static void
reset_queue_pair_keeps_no_receive(void **state)
{
	struct rig *r = *state;

	r->b = make_qp(r, NULL, NULL);
	reset_beside_posts(r, NULL);
}

static void
reset_work_queue_keeps_no_receive(void **state)
{
	struct rig *r = *state;
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 64, .max_sge = 1, .pd = r->pd, .cq = r->cq};
	struct ibv_wq *wq = ibv_create_wq(r->ctx, &attr);

	assert_non_null(wq);
	reset_beside_posts(r, wq);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_PAIR(threads_share_a_queue_pair_and_its_completions),
		TEST_PAIR(objects_come_and_go_beside_traffic),
		TEST_PAIR(queue_is_resized_under_traffic),
		TEST_DEVICE(one_thread_sends_and_another_receives),
		TEST_DEVICE(reset_queue_pair_keeps_no_receive),
		TEST_DEVICE(reset_work_queue_keeps_no_receive),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
