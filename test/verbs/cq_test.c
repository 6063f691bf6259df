/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues: sizes, resizing, extended polling, overflow.
 */
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "verbs_util.h"

static struct ibv_cq_ex *
make_cq_ex(struct rig *r, uint64_t wc_flags, uint32_t flags)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.wc_flags = wc_flags,
		.comp_mask = flags ? IBV_CQ_INIT_ATTR_MASK_FLAGS : 0,
		.flags = flags,
	};

	return ibv_create_cq_ex(r->ctx, &attr);
}

/* Puts n completions, numbered from first, into the CQ. */
static void
complete(struct rig *r, uint64_t first, int n)
{
	int i;

	for (i = 0; i < n; i++)
		assert_int_equal(
			post_send(r, r->a, first + (uint64_t)i, IBV_WR_RDMA_WRITE, r->buf, 1), 0);
}

/* Replaces the CQ of the rig, and its queue pairs. */
static void
use_cq(struct rig *r, struct ibv_cq *cq)
{
	assert_int_equal(ibv_destroy_cq(r->cq), 0);
	r->cq = cq;
	r->a = make_qp(r, NULL, NULL);
	r->b = make_qp(r, NULL, NULL);
	connect_qp(r, r->a, r->b);
	connect_qp(r, r->b, r->a);
}

static void
wait_filled(struct rig *r, int n)
{
	struct timespec pause = {.tv_nsec = 1000000};
	int i;

	/* Nothing is polled; the device works in the background, too. */
	for (i = 0; i < n; i++)
		nanosleep(&pause, NULL);
}

static void
sizes_out_of_range_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_device_attr attr;

	ibv_query_device(r->ctx, &attr);
	expect_null(ibv_create_cq(r->ctx, 0, NULL, NULL, 0), EINVAL);
	expect_null(ibv_create_cq(r->ctx, -1, NULL, NULL, 0), EINVAL);
	expect_null(ibv_create_cq(r->ctx, attr.max_cqe + 1, NULL, NULL, 0), EINVAL);
	expect_errno(ibv_resize_cq(r->cq, 0), EINVAL);
	expect_errno(ibv_resize_cq(r->cq, attr.max_cqe + 1), EINVAL);
}

static void
largest_size_that_is_reported_can_be_had(void **state)
{
	struct rig *r = *state;
	struct ibv_device_attr attr;
	struct ibv_cq *cq;

	ibv_query_device(r->ctx, &attr);
	cq = ibv_create_cq(r->ctx, attr.max_cqe, NULL, NULL, 0);
	assert_non_null(cq);
	assert_true(cq->cqe >= attr.max_cqe);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void
vectors_out_of_range_are_refused(void **state)
{
	struct rig *r = *state;

	expect_null(ibv_create_cq(r->ctx, 1, NULL, NULL, r->ctx->num_comp_vectors), EINVAL);
	expect_null(ibv_create_cq(r->ctx, 1, NULL, NULL, -1), EINVAL);
}

static void
fields_are_filled(void **state)
{
	struct rig *r = *state;
	struct ibv_comp_channel *ch = ibv_create_comp_channel(r->ctx);
	struct ibv_cq *cq = ibv_create_cq(r->ctx, 100, r, ch, 0);

	assert_non_null(cq);
	assert_true(cq->cqe >= 100);
	assert_ptr_equal(cq->context, r->ctx);
	assert_ptr_equal(cq->channel, ch);
	assert_ptr_equal(cq->cq_context, r);
	assert_int_equal(ch->refcnt, 1);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ch->refcnt, 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

static void
queue_is_busy_while_a_queue_pair_uses_it(void **state)
{
	struct rig *r = *state;

	expect_errno(ibv_destroy_cq(r->cq), EBUSY);
}

static void
as_many_completions_fit_as_were_asked_for(void **state)
{
	struct rig *r = *state;
	struct ibv_async_event event;
	struct ibv_wc wc[32];
	int i, n = 0;

	use_cq(r, ibv_create_cq(r->ctx, 32, NULL, NULL, 0));
	complete(r, 0, 32);
	wait_filled(r, 100);
	for (i = 0; i < 1000 && n < 32; i++)
		n += ibv_poll_cq(r->cq, 32 - n, wc + n);
	assert_int_equal(n, 32);
	for (i = 0; i < n; i++)
		assert_int_equal(wc[i].wr_id, i);
	if (next_event(r, &event, 0))
		fail_msg("event %d", event.event_type);
}

static void
overflow_is_an_event(void **state)
{
	struct rig *r = *state;
	struct ibv_async_event event;

	use_cq(r, ibv_create_cq(r->ctx, 1, NULL, NULL, 0));
	complete(r, 0, r->cq->cqe + 1);
	assert_true(next_event(r, &event, 5000));
	assert_int_equal(event.event_type, IBV_EVENT_CQ_ERR);
	assert_ptr_equal(event.element.cq, r->cq);
	/* The queue pairs that use it fail, too; their events are of no interest here. */
	while (next_event(r, &event, 50))
		;
	/* A larger queue would be of no use: it takes no more. */
	expect_errno(ibv_resize_cq(r->cq, 64), EIO);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	expect_errno(ibv_resize_cq(r->cq, 64), EIO);
}

static void
resizing_keeps_what_waits_in_order(void **state)
{
	static const int sizes[] = {64, 1000, 65, 40, 4096, 33};
	struct rig *r = *state;
	struct ibv_wc wc;
	uint64_t i;

	complete(r, 0, 32);
	wait_filled(r, 100);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(ibv_resize_cq(r->cq, sizes[i]), 0);
		assert_true(r->cq->cqe >= sizes[i]);
	}
	for (i = 0; i < 32; i++) {
		assert_true(poll_for(r->cq, &wc));
		assert_int_equal(wc.wr_id, i);
	}
	expect_no_completion(r->cq);
}

static void
resizing_below_what_waits_is_refused(void **state)
{
	struct rig *r = *state;
	int size = r->cq->cqe;
	struct ibv_wc wc;
	uint64_t i;

	complete(r, 0, 32);
	wait_filled(r, 100);
	expect_errno(ibv_resize_cq(r->cq, 31), EINVAL);
	assert_int_equal(r->cq->cqe, size);
	for (i = 0; i < 32; i++) {
		assert_true(poll_for(r->cq, &wc));
		assert_int_equal(wc.wr_id, i);
	}
}

static void
resizing_keeps_the_notification_that_was_asked_for(void **state)
{
	struct rig *r = *state;
	struct ibv_comp_channel *ch = ibv_create_comp_channel(r->ctx);
	struct pollfd fd = {.fd = ch->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	use_cq(r, ibv_create_cq(r->ctx, 16, NULL, ch, 0));
	assert_int_equal(ibv_req_notify_cq(r->cq, 0), 0);
	assert_int_equal(ibv_resize_cq(r->cq, 64), 0);
	complete(r, 0, 1);
	assert_int_equal(poll(&fd, 1, 5000), 1);
	assert_int_equal(ibv_get_cq_event(ch, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	rig_close(state);
	*state = NULL;
}

static void
unknown_fields_and_flags_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_cq_init_attr_ex attr = {.cqe = 1, .comp_mask = 1 << 5};

	expect_null(make_cq_ex(r, 1ull << 40, 0), EOPNOTSUPP);
	expect_null(make_cq_ex(r, IBV_WC_EX_WITH_TM_INFO, 0), EOPNOTSUPP);
	expect_null(make_cq_ex(r, 0, IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN), EOPNOTSUPP);
	expect_null(ibv_create_cq_ex(r->ctx, &attr), EOPNOTSUPP);
}

static void
poll_extended(struct rig *r, struct ibv_cq_ex *cq, uint64_t first, int n)
{
	struct ibv_poll_cq_attr attr = {0};
	int i, rc, tries = 0;

	do
		rc = ibv_start_poll(cq, &attr);
	while (rc == ENOENT && tries++ < 1000000);
	assert_int_equal(rc, 0);
	for (i = 0; i < n; i++) {
		assert_int_equal(cq->wr_id, first + (uint64_t)i);
		assert_int_equal(cq->status, IBV_WC_SUCCESS);
		assert_int_equal(ibv_wc_read_opcode(cq), IBV_WC_RDMA_WRITE);
		assert_int_equal(ibv_wc_read_qp_num(cq), r->a->qp_num);
		assert_int_equal(ibv_wc_read_vendor_err(cq), 0);
		assert_int_equal(ibv_wc_read_slid(cq), 0);
		assert_int_equal(ibv_wc_read_sl(cq), 0);
		assert_int_equal(ibv_wc_read_dlid_path_bits(cq), 0);
		if (i < n - 1)
			assert_int_equal(ibv_next_poll(cq), 0);
	}
	assert_int_equal(ibv_next_poll(cq), ENOENT);
	ibv_end_poll(cq);
}

static void
extended_polling_gives_each_completion_once(void **state)
{
	struct rig *r = *state;
	struct ibv_cq_ex *cq = make_cq_ex(r, IBV_WC_STANDARD_FLAGS, 0);

	use_cq(r, ibv_cq_ex_to_cq(cq));
	complete(r, 5, 8);
	wait_filled(r, 50);
	poll_extended(r, cq, 5, 8);
	expect_no_completion(r->cq);
}

static void
single_threaded_queue_works_as_any_other(void **state)
{
	struct rig *r = *state;
	struct ibv_cq_ex *cq =
		make_cq_ex(r, IBV_WC_STANDARD_FLAGS, IBV_CREATE_CQ_ATTR_SINGLE_THREADED);

	use_cq(r, ibv_cq_ex_to_cq(cq));
	complete(r, 0, 4);
	wait_filled(r, 50);
	poll_extended(r, cq, 0, 4);
	complete(r, 4, 1);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
}

static void
both_ways_of_polling_take_from_one_queue(void **state)
{
	struct rig *r = *state;
	struct ibv_cq_ex *cq = make_cq_ex(r, IBV_WC_STANDARD_FLAGS, 0);
	struct ibv_wc wc;

	use_cq(r, ibv_cq_ex_to_cq(cq));
	complete(r, 0, 3);
	wait_filled(r, 50);
	assert_true(poll_for(r->cq, &wc));
	assert_int_equal(wc.wr_id, 0);
	poll_extended(r, cq, 1, 2);
}

static void
polling_an_empty_queue_needs_no_end(void **state)
{
	struct rig *r = *state;
	struct ibv_cq_ex *cq = make_cq_ex(r, 0, 0);
	struct ibv_poll_cq_attr attr = {0}, bad = {.comp_mask = 1};

	assert_int_equal(ibv_start_poll(cq, &attr), ENOENT);
	assert_int_equal(ibv_start_poll(cq, &attr), ENOENT);
	assert_int_equal(ibv_start_poll(cq, &bad), EINVAL);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void
timestamps_lie_between_the_clock_before_and_after(void **state)
{
	struct rig *r = *state;
	struct ibv_cq_ex *cq = make_cq_ex(r,
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
		0);
	struct ibv_values_ex before = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK}, after = before;
	struct ibv_poll_cq_attr attr = {0};
	struct timespec wall;
	int64_t off;
	uint64_t ts;

	use_cq(r, ibv_cq_ex_to_cq(cq));
	ibv_query_rt_values_ex(r->ctx, &before);
	complete(r, 0, 1);
	while (ibv_start_poll(cq, &attr))
		;
	ts = ibv_wc_read_completion_ts(cq);
	clock_gettime(CLOCK_REALTIME, &wall);
	off = (int64_t)(ibv_wc_read_completion_wallclock_ns(cq) -
			((uint64_t)wall.tv_sec * 1000000000 + (uint64_t)wall.tv_nsec));
	ibv_end_poll(cq);
	ibv_query_rt_values_ex(r->ctx, &after);
	assert_in_range(ts, before.raw_clock.tv_nsec, after.raw_clock.tv_nsec);
	assert_true(off < 1000000 && off > -10000000000);
}

/* A test that has closed its rig by itself. */
static int
close_if_open(void **state)
{
	return *state ? rig_close(state) : 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_DEVICE(sizes_out_of_range_are_refused),
		TEST_DEVICE(largest_size_that_is_reported_can_be_had),
		TEST_DEVICE(vectors_out_of_range_are_refused),
		TEST_DEVICE(fields_are_filled),
		TEST_PAIR(queue_is_busy_while_a_queue_pair_uses_it),
		TEST_DEVICE(as_many_completions_fit_as_were_asked_for),
		TEST_DEVICE(overflow_is_an_event),
		TEST_PAIR(resizing_keeps_what_waits_in_order),
		TEST_PAIR(resizing_below_what_waits_is_refused),
		cmocka_unit_test_setup_teardown(resizing_keeps_the_notification_that_was_asked_for,
			rig_open, close_if_open),
		TEST_DEVICE(unknown_fields_and_flags_are_refused),
		TEST_DEVICE(extended_polling_gives_each_completion_once),
		TEST_DEVICE(single_threaded_queue_works_as_any_other),
		TEST_DEVICE(both_ways_of_polling_take_from_one_queue),
		TEST_DEVICE(polling_an_empty_queue_needs_no_end),
		TEST_DEVICE(timestamps_lie_between_the_clock_before_and_after),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
