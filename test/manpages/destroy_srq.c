/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_destroy_srq(), as ibv_create_srq(3) and ibv_create_srq_ex(3) describe it, sentence by
 * sentence.
 */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "rules.h"
#include "srq_util.h"
#include "xrc_util.h"

static void
prototype(struct rig *r)
{
	int (*fn)(struct ibv_srq * srq) = ibv_destroy_srq;
	struct ibv_srq *srq = make_srq(r, 1, 1);

	assert_non_null(srq);
	assert_int_equal(fn(srq), 0);
}

static void
posted_receives_go_with_it(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 100, 1);

	assert_non_null(srq);
	fill_srq(r, srq, 0, 100);
	pair_on_srq(r, srq);
	assert_int_equal(send_one(r, r->a), 0);
	destroy_pair_and_srq(r, srq);
	expect_no_completion(r->cq);
	/* Nothing holds the memory that was posted. */
	assert_int_equal(ibv_dereg_mr(r->mr), 0);
	r->mr = NULL;
}

static void
what_it_used_is_free_again(struct rig *r)
{
	struct ibv_pd *pd = ibv_alloc_pd(r->ctx);
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 10, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &init);

	assert_non_null(srq);
	expect_errno(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void
it_can_be_made_and_destroyed_for_ever(struct rig *r)
{
	int n = 2 * device_attr(r).orig_attr.max_srq, i;

	n = n < 50000 ? n : 50000;
	for (i = 0; i < n; i++) {
		struct ibv_srq *srq = make_srq(r, 16, 1);

		assert_non_null(srq);
		assert_int_equal(post_srq(r, srq, 0), 0);
		assert_int_equal(ibv_destroy_srq(srq), 0);
	}
}

static void
others_are_left_alone(struct rig *r)
{
	struct ibv_srq *keep = make_srq(r, 10, 1), *go = make_srq(r, 10, 1);
	struct ibv_srq_attr limit = {.srq_limit = 9};

	fill_srq(r, keep, 0, 10);
	fill_srq(r, go, 100, 10);
	assert_int_equal(ibv_modify_srq(keep, &limit, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_modify_srq(go, &limit, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_destroy_srq(go), 0);
	pair_on_srq(r, keep);
	assert_int_equal(send_one(r, r->a), 0);
	expect_no_event(r);
	assert_int_equal(send_one(r, r->b), 1);
	expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, keep);
	destroy_pair_and_srq(r, keep);
}

static void
make_limit_event(struct ibv_srq *srq)
{
	struct ibv_srq_attr limit = {.srq_limit = 1};

	/* It is empty, so this is reached at once. */
	assert_int_equal(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT), 0);
}

static void
event_that_nobody_read_goes_with_it(struct rig *r)
{
	struct ibv_srq *gone = make_srq(r, 1, 1), *next = make_srq(r, 1, 1);

	make_limit_event(gone);
	make_limit_event(next);
	assert_int_equal(ibv_destroy_srq(gone), 0);
	expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, next);
	expect_no_event(r);
	assert_int_equal(ibv_destroy_srq(next), 0);
}

struct late_ack {
	struct ibv_async_event event;
	_Atomic bool acked;
};

static void *
acknowledge_later(void *arg)
{
	struct late_ack *late = arg;

	usleep(50000);
	late->acked = true;
	ibv_ack_async_event(&late->event);
	return NULL;
}

/* ibv_get_async_event(3) says so, too: the program may still look at the SRQ. */
static void
it_waits_for_acknowledgement(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 1, 1);
	struct late_ack late = {.acked = false};
	pthread_t thread;

	make_limit_event(srq);
	assert_int_equal(ibv_get_async_event(r->ctx, &late.event), 0);
	assert_ptr_equal(late.event.element.srq, srq);
	assert_int_equal(pthread_create(&thread, NULL, acknowledge_later, &late), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_true(late.acked);
	pthread_join(thread, NULL);
}

/* A target is not associated with an SRQ; each of its messages names one. */
static void
messages_to_one_of_xrc_find_it_no_more(struct rig *r)
{
	struct xrc_pair p;
	uint32_t num;

	if (!(device_attr(r).orig_attr.device_cap_flags & IBV_DEVICE_XRC))
		device_lacks("XRC");
	p = open_pair(r);
	num = number_of(p.srq);
	assert_int_equal(post_srq(r, p.srq, 5), 0);
	assert_int_equal(send_to(r, p.from, num), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_srq(p.srq), 0);
	assert_int_equal(send_to(r, p.from, num), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_REM_INV_REQ_ERR);
	p.srq = make_xrc_srq(r, p.xrcd);
	close_pair(&p);
}

static void
zero_or_the_errno_itself(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 1, 1);
	int rc;

	pair_on_srq(r, srq);
	errno = 0;
	rc = ibv_destroy_srq(srq);
	assert_errno_value(rc);
	assert_int_equal(rc, EBUSY);
	destroy_pair_and_srq(r, srq); /* expects 0 */
}

static struct ibv_qp *
make_ud(struct rig *r, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.srq = srq,
		.cap = {.max_send_wr = 1, .max_send_sge = 1},
		.qp_type = IBV_QPT_UD,
	};
	struct ibv_qp *qp = ibv_create_qp(r->pd, &attr);

	assert_non_null(qp);
	return qp;
}

static void
until_the_last_queue_pair_is_gone(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 1, 1);
	struct ibv_qp *qps[20];
	int i;

	for (i = 0; i < 20; i++)
		qps[i] = i % 2 ? make_qp(r, NULL, srq) : make_ud(r, srq);
	for (i = 0; i < 20; i++) {
		expect_errno(ibv_destroy_srq(srq), EBUSY);
		assert_int_equal(ibv_destroy_qp(qps[i]), 0);
	}
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
in_whatever_state_the_queue_pair_is(struct rig *r)
{
	static const enum ibv_qp_state path[] = {
		IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPS_ERR, IBV_QPS_RESET};
	struct ibv_srq *srq = make_srq(r, 1, 1);
	struct ibv_qp *qp = make_qp(r, NULL, srq);
	size_t i;

	expect_errno(ibv_destroy_srq(srq), EBUSY);
	for (i = 0; i < sizeof(path) / sizeof(path[0]); i++) {
		step(r, qp, path[i], qp);
		expect_errno(ibv_destroy_srq(srq), EBUSY);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
failing_it_changes_nothing(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 10, 1);
	struct ibv_srq_attr attr = {.srq_limit = 8};
	uint64_t i;

	pair_on_srq(r, srq);
	fill_srq(r, srq, 0, 10);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	for (i = 0; i < 10; i++) {
		expect_errno(ibv_destroy_srq(srq), EBUSY);
		assert_int_equal(send_one(r, i % 2 ? r->a : r->b), i);
		assert_int_equal(srq_attr_of(srq).srq_limit, i < 2 ? 8 : 0);
	}
	expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	expect_no_event(r);
	assert_int_equal(post_srq(r, srq, 10), 0);
	assert_int_equal(send_one(r, r->a), 10);
	destroy_pair_and_srq(r, srq);
}

static void
queue_pair_that_was_refused_does_not_count(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 1, 1);
	struct ibv_qp_init_attr attr = {
		.send_cq = r->cq, .recv_cq = r->cq, .srq = srq, .qp_type = IBV_QPT_RC};

	attr.cap.max_send_wr = UINT32_MAX;
	assert_null(ibv_create_qp(r->pd, &attr));
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

#define DESTROYS "ibv_destroy_srq() destroys the SRQ srq."
#define FAILS "ibv_destroy_srq() fails if any queue pair is still associated with this SRQ."

static const struct rule rules[] = {
	RULE("int ibv_destroy_srq(struct ibv_srq *srq);", NULL, prototype),
	RULE(DESTROYS, "posted receives go with it", posted_receives_go_with_it),
	RULE(DESTROYS, "what it used is free again", what_it_used_is_free_again),
	RULE(DESTROYS, "and can be made anew for ever", it_can_be_made_and_destroyed_for_ever),
	RULE(DESTROYS, "others are left alone", others_are_left_alone),
	RULE(DESTROYS, "an event that nobody read goes with it",
		event_that_nobody_read_goes_with_it),
	RULE(DESTROYS, "when its events are acknowledged", it_waits_for_acknowledgement),
	RULE(DESTROYS, "messages to one of XRC find it no more",
		messages_to_one_of_xrc_find_it_no_more),
	RULE("ibv_destroy_srq() returns 0 on success, or the value of errno on failure (which "
	     "indicates the failure reason).",
		NULL, zero_or_the_errno_itself),
	RULE(FAILS, "until the last is gone", until_the_last_queue_pair_is_gone),
	RULE(FAILS, "in whatever state it is", in_whatever_state_the_queue_pair_is),
	RULE(FAILS, "and then nothing is changed", failing_it_changes_nothing),
	RULE(FAILS, "one that could not be made does not count",
		queue_pair_that_was_refused_does_not_count),
	LAST_RULE,
};

int
main(int argc, char **argv)
{
	return run_rules(argc, argv, rules);
}
