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

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_PAIR(threads_share_a_queue_pair_and_its_completions),
		TEST_PAIR(objects_come_and_go_beside_traffic),
		TEST_PAIR(queue_is_resized_under_traffic),
		TEST_DEVICE(one_thread_sends_and_another_receives),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
