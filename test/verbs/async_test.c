/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events: what is told, to whom, and that destroying an object waits for those who
 * still look at it.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "verbs_util.h"

static bool
readable(struct ibv_context *ctx, int ms)
{
	struct pollfd fd = {.fd = ctx->async_fd, .events = POLLIN};

	return poll(&fd, 1, ms) == 1;
}

/* An unknown key: an event for the responder's queue pair. */
static void
offend(struct rig *r)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	wr = make_wr(IBV_WR_RDMA_WRITE, &sge, r, r->buf, 8);
	wr.wr.rdma.remote_addr = (uintptr_t)r->buf;
	wr.wr.rdma.rkey = r->mr->rkey ^ 0x5500;
	assert_int_equal(ibv_post_send(r->a, &wr, &bad), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_REM_ACCESS_ERR);
}

static void
access_violation_is_told_to_the_responder(void **state)
{
	struct rig *r = *state;
	struct ibv_async_event event;

	offend(r);
	assert_true(readable(r->ctx, 5000));
	assert_int_equal(ibv_get_async_event(r->ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	assert_ptr_equal(event.element.qp, r->b);
	ibv_ack_async_event(&event);
	assert_int_equal(state_of(r->b), IBV_QPS_ERR);
	assert_false(readable(r->ctx, 20));
}

static void
other_contexts_are_not_told(void **state)
{
	struct rig *r = *state;
	struct ibv_context *other = open_device();
	struct ibv_async_event event;

	offend(r);
	assert_true(readable(r->ctx, 5000));
	assert_false(readable(other, 0));
	assert_int_equal(ibv_get_async_event(r->ctx, &event), 0);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_close_device(other), 0);
}

static void
drained_send_queue_is_told_when_asked_for(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_async_event event;

	assert_int_equal(ibv_modify_qp(r->a, &attr, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
	assert_true(readable(r->ctx, 5000));
	assert_int_equal(ibv_get_async_event(r->ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SQ_DRAINED);
	assert_ptr_equal(event.element.qp, r->a);
	ibv_ack_async_event(&event);
}

static void
queue_pair_on_a_shared_queue_tells_its_last_receive(void **state)
{
	struct rig *r = *state;
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(r->pd, &init);
	struct ibv_async_event event;

	r->a = make_qp(r, NULL, srq);
	step(r, r->a, IBV_QPS_INIT, NULL);
	step(r, r->a, IBV_QPS_RTR, r->a);
	step(r, r->a, IBV_QPS_ERR, NULL);
	assert_true(readable(r->ctx, 5000));
	assert_int_equal(ibv_get_async_event(r->ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	assert_ptr_equal(event.element.qp, r->a);
	ibv_ack_async_event(&event);
	assert_false(readable(r->ctx, 20));
	assert_int_equal(ibv_destroy_qp(r->a), 0);
	r->a = NULL;
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
nonblocking_descriptor_says_eagain(void **state)
{
	struct rig *r = *state;
	struct ibv_async_event event;

	assert_int_equal(fcntl(r->ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
	expect_minus1(ibv_get_async_event(r->ctx, &event), EAGAIN);
}

static void *
offend_later(void *arg)
{
	usleep(20000);
	offend(arg);
	return NULL;
}

static void
blocking_descriptor_waits(void **state)
{
	struct rig *r = *state;
	struct ibv_async_event event;
	pthread_t t;

	pthread_create(&t, NULL, offend_later, r);
	assert_int_equal(ibv_get_async_event(r->ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_ACCESS_ERR);
	ibv_ack_async_event(&event);
	pthread_join(t, NULL);
}

static void
events_of_a_destroyed_object_are_gone(void **state)
{
	struct rig *r = *state;

	offend(r);
	assert_true(readable(r->ctx, 5000));
	assert_int_equal(ibv_destroy_qp(r->b), 0);
	r->b = NULL;
	assert_false(readable(r->ctx, 20));
}

struct destroyer {
	struct ibv_qp *qp;
	atomic_int done;
};

static void *
destroy(void *arg)
{
	struct destroyer *d = arg;

	assert_int_equal(ibv_destroy_qp(d->qp), 0);
	d->done = 1;
	return NULL;
}

static void
destroying_waits_for_the_acknowledgement(void **state)
{
	struct rig *r = *state;
	struct destroyer d = {.qp = r->b};
	struct ibv_async_event event;
	pthread_t t;

	offend(r);
	assert_int_equal(ibv_get_async_event(r->ctx, &event), 0);
	pthread_create(&t, NULL, destroy, &d);
	usleep(50000);
	assert_int_equal(d.done, 0);
	/* Until then it is there. */
	assert_int_equal(state_of(event.element.qp), IBV_QPS_ERR);
	ibv_ack_async_event(&event);
	pthread_join(t, NULL);
	r->b = NULL;
}

static void *
wait_for_ever(void *arg)
{
	struct ibv_async_event event;

	ibv_get_async_event(arg, &event);
	return NULL;
}

/* Programs end their event threads so. */
static void
waiting_thread_can_be_cancelled(void **state)
{
	struct rig *r = *state;
	struct ibv_async_event event;
	void *result;
	pthread_t t;

	pthread_create(&t, NULL, wait_for_ever, r->ctx);
	usleep(20000);
	assert_int_equal(pthread_cancel(t), 0);
	pthread_join(t, &result);
	assert_ptr_equal(result, PTHREAD_CANCELED);
	/* And nothing of the queue is left locked. */
	offend(r);
	assert_int_equal(ibv_get_async_event(r->ctx, &event), 0);
	ibv_ack_async_event(&event);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_PAIR(access_violation_is_told_to_the_responder),
		TEST_PAIR(other_contexts_are_not_told),
		TEST_PAIR(drained_send_queue_is_told_when_asked_for),
		TEST_DEVICE(queue_pair_on_a_shared_queue_tells_its_last_receive),
		TEST_DEVICE(nonblocking_descriptor_says_eagain),
		TEST_PAIR(blocking_descriptor_waits),
		TEST_PAIR(events_of_a_destroyed_object_are_gone),
		TEST_PAIR(destroying_waits_for_the_acknowledgement),
		TEST_PAIR(waiting_thread_can_be_cancelled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
