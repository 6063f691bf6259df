/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See srq_load.h. The threads do not use cmocka's assertions, which are for the main thread: they
 * note the first thing that is wrong.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "srq_load.h"

#define MESSAGES 20000 /* at least */
#define TIMES 300 /* aimed at, for whatever is done meanwhile */
#define PATIENCE 15 /* seconds; then a tenth is enough, on a machine that has no time */
#define WINDOW 32 /* messages under way */
#define SIZE 64 /* of the SRQ, before it is resized */
#define MOST 300 /* what it is resized to at the most */

struct load {
	struct rig *r;
	struct ibv_srq *srq;
	_Atomic bool stop;
	_Atomic uint32_t total; /* messages; known when enough has been done */
	const char *_Atomic wrong;
	_Atomic unsigned int resized, reached, queried;
};

/* Each thread's own; any generator will do. */
static uint32_t
next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

static void *
post_receives(void *arg)
{
	struct load *l = arg;
	uint32_t i = 0;
	int rc;

	while (i < l->total && !l->stop) {
		rc = post_srq(l->r, l->srq, i);
		if (rc == 0)
			i++;
		else if (rc == ENOMEM)
			sched_yield();
		else
			l->wrong = "posting failed";
	}
	return NULL;
}

static void *
resize(void *arg)
{
	struct load *l = arg;
	struct ibv_srq_attr attr;
	uint32_t seed = 1, asked;
	int rc;

	while (!l->stop) {
		asked = 1 + next_random(&seed) % MOST;
		attr = (struct ibv_srq_attr){.max_wr = asked};
		rc = ibv_modify_srq(l->srq, &attr, IBV_SRQ_MAX_WR);
		l->resized += rc == 0;
		if (rc && rc != EINVAL) /* more was posted */
			l->wrong = "resizing failed";
		if (!rc && attr.max_wr < asked)
			l->wrong = "the size is less than what was asked for";
		sched_yield();
	}
	return NULL;
}

/* Waits until the limit has been reached. @return whether it was */
static bool
wait_reached(struct load *l)
{
	struct pollfd fd = {.fd = l->r->ctx->async_fd, .events = POLLIN};
	struct ibv_async_event event;
	struct ibv_srq_attr attr;

	do {
		if (ibv_query_srq(l->srq, &attr))
			l->wrong = "the query failed";
		if (l->stop || l->wrong)
			return false;
		sched_yield();
	} while (attr.srq_limit);
	/* When it is not armed any longer, the event is there. */
	if (poll(&fd, 1, 0) != 1) {
		l->wrong = "the limit is disarmed, but no event came";
		return false;
	}
	if (ibv_get_async_event(l->r->ctx, &event) ||
		event.event_type != IBV_EVENT_SRQ_LIMIT_REACHED || event.element.srq != l->srq)
		l->wrong = "the event is another";
	ibv_ack_async_event(&event);
	if (poll(&fd, 1, 0) != 0)
		l->wrong = "there is an event too many";
	return true;
}

/* Near the size, so that it is reached often. */
static void *
arm(void *arg)
{
	struct load *l = arg;
	struct ibv_srq_attr attr;
	int rc;

	while (!l->stop) {
		if (ibv_query_srq(l->srq, &attr))
			l->wrong = "the query failed";
		attr.srq_limit = attr.max_wr;
		rc = ibv_modify_srq(l->srq, &attr, IBV_SRQ_LIMIT);
		if (rc == EINVAL)
			continue; /* it was shrunk in between */
		if (rc)
			l->wrong = "arming failed";
		l->reached += wait_reached(l);
	}
	return NULL;
}

static void *
query(void *arg)
{
	struct load *l = arg;
	struct ibv_srq_attr first, attr;

	if (ibv_query_srq(l->srq, &first))
		l->wrong = "the query failed";
	while (!l->stop) {
		if (ibv_query_srq(l->srq, &attr))
			l->wrong = "the query failed";
		if (attr.max_sge != first.max_sge)
			l->wrong = "max_sge has changed";
		if (attr.srq_limit > attr.max_wr)
			l->wrong = "the limit is above the size";
		l->queried++;
		sched_yield();
	}
	return NULL;
}

static void
send_numbered(struct rig *r, uint32_t number)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	wr = make_wr(IBV_WR_SEND_WITH_IMM, &sge, r, r->buf, 8);
	wr.imm_data = htonl(number);
	assert_int_equal(ibv_post_send(r->a, &wr, &bad), 0);
}

/* When there has been enough of everything, the number of messages is fixed: above what may have
 * been posted by now. */
static void
look_whether_enough(struct load *l, unsigned int what, uint32_t posted, time_t begun)
{
	bool enough = posted >= MESSAGES && (!(what & LOAD_RESIZE) || l->resized >= TIMES) &&
		      (!(what & LOAD_LIMIT) || l->reached >= TIMES) &&
		      (!(what & LOAD_QUERY) || l->queried >= TIMES);

	if (l->total == UINT32_MAX && (enough || l->wrong || time(NULL) > begun + PATIENCE))
		l->total = posted + WINDOW + MOST;
}

static void
send_messages(struct load *l, unsigned int what)
{
	uint32_t posted = 0, sent = 0, received = 0;
	time_t begun = time(NULL);
	struct ibv_wc wc;

	while (sent < l->total || received < l->total) {
		look_whether_enough(l, what, posted, begun);
		for (; posted < l->total && posted < sent + WINDOW && posted < received + WINDOW;
			posted++)
			send_numbered(l->r, posted);
		assert_true(poll_for(l->r->cq, &wc));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode != IBV_WC_RECV) {
			sent++;
			continue;
		}
		assert_int_equal(wc.wr_id, received);
		assert_int_equal(ntohl(wc.imm_data), received);
		received++;
	}
}

void
srq_load(struct rig *r, unsigned int what)
{
	struct load l = {.r = r, .srq = make_srq(r, SIZE, 1), .total = UINT32_MAX};
	void *(*const work[])(void *) = {post_receives, what & LOAD_RESIZE ? resize : NULL,
		what & LOAD_LIMIT ? arm : NULL, what & LOAD_QUERY ? query : NULL};
	pthread_t threads[4];
	struct ibv_async_event event;
	unsigned int i, left;

	assert_non_null(l.srq);
	r->a = make_qp(r, NULL, l.srq);
	r->b = make_qp(r, NULL, l.srq);
	connect_patient(r);
	for (i = 0; i < 4; i++)
		if (work[i])
			assert_int_equal(pthread_create(&threads[i], NULL, work[i], &l), 0);
	send_messages(&l, what);
	l.stop = true;
	for (i = 0; i < 4; i++)
		if (work[i])
			pthread_join(threads[i], NULL);
	if (l.wrong)
		fail_msg("%s", l.wrong);
	assert_in_range(l.resized, what & LOAD_RESIZE ? TIMES / 10 : 0, UINT32_MAX);
	assert_in_range(l.reached, what & LOAD_LIMIT ? TIMES / 10 : 0, UINT32_MAX);
	assert_in_range(l.queried, what & LOAD_QUERY ? TIMES / 10 : 0, UINT32_MAX);
	/* The queue is empty now; so what was armed last has been reached, too. */
	assert_int_equal(srq_attr_of(l.srq).srq_limit, 0);
	for (left = 0; next_event(r, &event, 20); left++)
		assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_in_range(left, 0, what & LOAD_LIMIT ? 1 : 0);
	destroy_pair_and_srq(r, l.srq);
}
