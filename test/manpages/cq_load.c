/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See cq_load.h. The threads do not use cmocka's assertions, which are for the main thread: they
 * note the first thing that is wrong.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include "cq_load.h"

#define DEPTH 1024 /* receives that are posted at once, at the most */
#define BATCH 32 /* messages under way */
#define MESSAGES 20000 /* at least */
#define RESIZES 500 /* aimed at */
#define PATIENCE 15 /* seconds; then a tenth is enough, on a machine that has no time */
#define MOST 300 /* entries that the CQ is resized to at the most */

struct cq_rig
open_cq_rig(struct rig *r, int cqe, struct ibv_cq *cq)
{
	struct cq_rig c = {.r = r,
		.cq = cq ? cq : ibv_create_cq(r->ctx, cqe, NULL, NULL, 0),
		.send_cq = r->cq};
	struct ibv_qp_init_attr attr = {
		.send_cq = c.send_cq,
		.recv_cq = c.cq,
		.cap = {.max_send_wr = 64,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
	};

	assert_non_null(c.cq);
	r->a = make_qp(r, NULL, NULL);
	r->b = ibv_create_qp(r->pd, &attr);
	assert_non_null(r->b);
	connect_patient(r);
	return c;
}

void
close_cq_rig(struct cq_rig *c)
{
	assert_int_equal(ibv_destroy_qp(c->r->a), 0);
	assert_int_equal(ibv_destroy_qp(c->r->b), 0);
	c->r->a = c->r->b = NULL;
	assert_int_equal(ibv_destroy_cq(c->cq), 0);
}

static int
send_number(struct cq_rig *c, uint32_t number)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	wr = make_wr(IBV_WR_SEND_WITH_IMM, &sge, c->r, c->r->buf, 8);
	wr.wr_id = number;
	wr.imm_data = htonl(number);
	if (c->solicited)
		wr.send_flags |= IBV_SEND_SOLICITED;
	return ibv_post_send(c->r->a, &wr, &bad);
}

void
complete(struct cq_rig *c, uint32_t first, uint32_t n)
{
	uint32_t i, k;

	for (i = 0; i < n; i += k) {
		for (k = 0; k < BATCH && i + k < n; k++) {
			assert_int_equal(post_recv(c->r, c->r->b, first + i + k,
						 c->r->buf + BUF_SIZE / 2, 64),
				0);
			assert_int_equal(send_number(c, first + i + k), 0);
		}
		for (k = 0; k < BATCH && i + k < n; k++)
			assert_int_equal(next_status(c->send_cq), IBV_WC_SUCCESS);
	}
	/* The last was acknowledged; its completion may be a moment behind. */
	usleep(2000);
}

void
overflow(struct cq_rig *c, uint32_t number)
{
	assert_int_equal(post_recv(c->r, c->r->b, number, c->r->buf + BUF_SIZE / 2, 64), 0);
	assert_int_equal(send_number(c, number), 0);
}

struct load {
	struct cq_rig c;
	struct ibv_comp_channel *ch;
	_Atomic bool stop;
	_Atomic uint32_t total; /* messages; known when the CQ was resized often enough */
	_Atomic uint32_t taken; /* completions */
	const char *_Atomic wrong;
	_Atomic unsigned int resized, resizers;
};

/* The CQ stays large enough for all that can be under way, so that no size is refused. */
static void *
resize(void *arg)
{
	struct load *l = arg;
	uint32_t seed = ++l->resizers;

	while (!l->stop) {
		seed = seed * 1664525 + 1013904223;
		if (ibv_resize_cq(l->c.cq, BATCH + (int)(seed >> 8) % MOST))
			l->wrong = "resizing failed";
		l->resized++;
		if (ibv_resize_cq(l->c.cq, 0) != EINVAL)
			l->wrong = "a size of 0 was not refused";
		sched_yield();
	}
	return NULL;
}

/* Posts receives and sends, never more than BATCH ahead of what was taken from the CQ. */
static void *
send_all(void *arg)
{
	struct load *l = arg;
	struct rig *r = l->c.r;
	uint32_t posted = 0, sent = 0;
	time_t begun = time(NULL);
	struct ibv_wc wc;
	int n;

	while (sent < l->total && !l->stop) {
		if (l->total == UINT32_MAX && posted >= MESSAGES &&
			(l->resized >= RESIZES || l->wrong || time(NULL) > begun + PATIENCE))
			l->total = posted + BATCH;
		if (posted < l->total && posted < sent + BATCH && posted < l->taken + BATCH) {
			if (post_recv(r, r->b, posted, r->buf + BUF_SIZE / 2, 64) ||
				send_number(&l->c, posted))
				l->wrong = "posting failed";
			posted++;
		}
		n = ibv_poll_cq(l->c.send_cq, 1, &wc);
		if (n < 0 || (n && wc.status != IBV_WC_SUCCESS))
			l->wrong = "a message was not sent";
		sent += n == 1;
	}
	return NULL;
}

/* @return whether one came; false when nothing more is to be expected */
static bool
next_completion(struct load *l, struct ibv_wc *wc, unsigned int what)
{
	struct pollfd fd = {.events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	if (!(what & LOAD_NOTIFY))
		return poll_for(l->c.cq, wc);
	fd.fd = l->ch->fd;
	if (ibv_poll_cq(l->c.cq, 1, wc) == 1)
		return true;
	assert_int_equal(ibv_req_notify_cq(l->c.cq, 0), 0);
	/* What came before it was asked for makes no event. */
	while (ibv_poll_cq(l->c.cq, 1, wc) == 0) {
		if (poll(&fd, 1, 5000) != 1)
			return false;
		assert_int_equal(ibv_get_cq_event(l->ch, &cq, &context), 0);
		ibv_ack_cq_events(cq, 1);
		assert_int_equal(ibv_req_notify_cq(l->c.cq, 0), 0);
	}
	return true;
}

static void
take_all(struct load *l, unsigned int what)
{
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < l->total; i++) {
		assert_true(next_completion(l, &wc, what));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(ntohl(wc.imm_data), i);
		l->taken++;
	}
}

void
cq_load(struct rig *r, unsigned int what)
{
	struct load l = {.total = UINT32_MAX, .ch = ibv_create_comp_channel(r->ctx)};
	pthread_t sender, resizer, second;

	assert_non_null(l.ch);
	l.c = open_cq_rig(r, 0, ibv_create_cq(r->ctx, MOST, NULL, l.ch, 0));
	assert_int_equal(pthread_create(&sender, NULL, send_all, &l), 0);
	assert_int_equal(pthread_create(&resizer, NULL, resize, &l), 0);
	if (what & LOAD_TWO_RESIZERS)
		assert_int_equal(pthread_create(&second, NULL, resize, &l), 0);
	take_all(&l, what);
	pthread_join(sender, NULL);
	l.stop = true;
	pthread_join(resizer, NULL);
	if (what & LOAD_TWO_RESIZERS)
		pthread_join(second, NULL);
	if (l.wrong)
		fail_msg("%s", l.wrong);
	assert_in_range(l.resized, RESIZES / 10, UINT32_MAX);
	assert_in_range(l.c.cq->cqe, BATCH, UINT32_MAX);
	expect_no_completion(l.c.cq);
	expect_no_event(r);
	close_cq_rig(&l.c);
	assert_int_equal(ibv_destroy_comp_channel(l.ch), 0);
}
