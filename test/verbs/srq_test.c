/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues: limits, the low watermark, resizing, and who takes from them.
 */
#include <stdlib.h>

#include "srq_util.h"

static void
limits_are_enforced_and_reached(void **state)
{
	struct rig *r = *state;
	struct ibv_device_attr dev;
	struct ibv_srq *srq;

	ibv_query_device(r->ctx, &dev);
	expect_null(make_srq(r, 0, 1), EINVAL);
	expect_null(make_srq(r, (uint32_t)dev.max_srq_wr + 1, 1), EINVAL);
	expect_null(make_srq(r, 1, (uint32_t)dev.max_srq_sge + 1), EINVAL);
	srq = make_srq(r, (uint32_t)dev.max_srq_wr, (uint32_t)dev.max_srq_sge);
	assert_non_null(srq);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
as_many_queues_as_are_reported_can_be_had(void **state)
{
	struct rig *r = *state;
	struct ibv_device_attr dev;
	struct ibv_srq **srqs;
	int i, n;

	assert_int_equal(ibv_query_device(r->ctx, &dev), 0);
	/* Some hardware has millions. */
	n = dev.max_srq < 20000 ? dev.max_srq : 20000;
	srqs = calloc((size_t)n, sizeof(*srqs));
	assert_non_null(srqs);
	for (i = 0; i < n; i++) {
		srqs[i] = make_srq(r, 1, 1);
		assert_non_null(srqs[i]);
	}
	if (n == dev.max_srq)
		expect_null(make_srq(r, 1, 1), ENOMEM);
	/* The place of one that has gone is free again. */
	assert_int_equal(ibv_destroy_srq(srqs[0]), 0);
	srqs[0] = make_srq(r, 1, 1);
	assert_non_null(srqs[0]);
	for (i = 0; i < n; i++)
		assert_int_equal(ibv_destroy_srq(srqs[i]), 0);
	free(srqs);
}

static void
fields_are_filled(void **state)
{
	struct rig *r = *state;
	struct ibv_srq_init_attr init = {.srq_context = r, .attr = {.max_wr = 100, .max_sge = 3}};
	struct ibv_srq *srq = ibv_create_srq(r->pd, &init);
	struct ibv_srq_attr attr;

	assert_non_null(srq);
	assert_true(init.attr.max_wr >= 100 && init.attr.max_sge >= 3);
	assert_ptr_equal(srq->context, r->ctx);
	assert_ptr_equal(srq->srq_context, r);
	assert_ptr_equal(srq->pd, r->pd);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.max_wr, init.attr.max_wr);
	assert_int_equal(attr.max_sge, init.attr.max_sge);
	assert_int_equal(attr.srq_limit, 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
extended_creation_takes_the_basic_type(void **state)
{
	struct rig *r = *state;
	struct ibv_srq_init_attr_ex attr = {.attr = {.max_wr = 1, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE,
		.srq_type = IBV_SRQT_BASIC,
		.pd = r->pd};
	struct ibv_srq *srq = ibv_create_srq_ex(r->ctx, &attr);

	assert_non_null(srq);
	assert_ptr_equal(srq->pd, r->pd);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	attr.comp_mask = 0;
	expect_null(ibv_create_srq_ex(r->ctx, &attr), EINVAL);
	attr.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_TM;
	attr.srq_type = IBV_SRQT_TM;
	expect_null(ibv_create_srq_ex(r->ctx, &attr), EOPNOTSUPP);
}

static void
as_many_receives_fit_as_were_granted(void **state)
{
	struct rig *r = *state;
	struct ibv_srq *srq = make_srq(r, 10, 1);
	struct ibv_srq_attr attr;
	uint32_t i;

	ibv_query_srq(srq, &attr);
	for (i = 0; i < attr.max_wr; i++)
		assert_int_equal(post_srq(r, srq, i), 0);
	expect_errno(post_srq(r, srq, i), ENOMEM);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
too_many_sges_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_srq *srq = make_srq(r, 10, 1);
	struct ibv_recv_wr *bad, wr = {.num_sge = 33};

	expect_errno(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
queue_pairs_take_receives_in_order_of_arrival(void **state)
{
	struct rig *r = *state;
	struct ibv_srq *srq = make_srq(r, 10, 1);
	uint64_t i;

	pair_on_srq(r, srq);
	for (i = 0; i < 10; i++)
		assert_int_equal(post_srq(r, srq, i), 0);
	for (i = 0; i < 10; i++)
		assert_int_equal(send_one(r, i % 2 ? r->a : r->b), i);
	destroy_pair_and_srq(r, srq);
}

static void
queue_pair_with_a_shared_queue_has_none_of_its_own(void **state)
{
	struct rig *r = *state;
	struct ibv_srq *srq = make_srq(r, 10, 1);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	pair_on_srq(r, srq);
	expect_errno(post_recv(r, r->a, 0, r->buf, 1), EINVAL);
	assert_int_equal(ibv_query_qp(r->a, &attr, 0, &init), 0);
	assert_ptr_equal(init.srq, srq);
	assert_ptr_equal(r->a->srq, srq);
	expect_errno(ibv_destroy_srq(srq), EBUSY);
	destroy_pair_and_srq(r, srq);
}

static void
error_state_leaves_the_shared_queue_alone(void **state)
{
	struct rig *r = *state;
	struct ibv_srq *srq = make_srq(r, 10, 1);
	struct ibv_qp *third = make_qp(r, NULL, srq);

	pair_on_srq(r, srq);
	assert_int_equal(post_srq(r, srq, 5), 0);
	connect_qp(r, third, r->a);
	step(r, third, IBV_QPS_ERR, NULL);
	expect_no_completion(r->cq);
	assert_int_equal(send_one(r, r->a), 5);
	assert_int_equal(ibv_destroy_qp(third), 0);
	destroy_pair_and_srq(r, srq);
}

static void
low_watermark_is_told_once(void **state)
{
	struct rig *r = *state;
	struct ibv_srq *srq = make_srq(r, 10, 1);
	struct ibv_srq_attr attr = {.srq_limit = 7};
	struct ibv_async_event event;
	uint64_t i;

	pair_on_srq(r, srq);
	for (i = 0; i < 10; i++)
		assert_int_equal(post_srq(r, srq, i), 0);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 7);
	for (i = 0; i < 3; i++)
		send_one(r, r->a);
	assert_false(next_event(r, &event, 20));
	for (i = 0; i < 3; i++)
		send_one(r, r->a);
	assert_true(next_event(r, &event, 5000));
	assert_int_equal(event.event_type, IBV_EVENT_SRQ_LIMIT_REACHED);
	assert_ptr_equal(event.element.srq, srq);
	assert_false(next_event(r, &event, 20));
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(attr.srq_limit, 0);
	destroy_pair_and_srq(r, srq);
}

static void
bad_changes_change_nothing(void **state)
{
	struct rig *r = *state;
	struct ibv_srq *srq = make_srq(r, 10, 1);
	struct ibv_srq_attr before, attr;
	struct ibv_device_attr dev;
	int i;

	ibv_query_device(r->ctx, &dev);
	for (i = 0; i < 8; i++)
		assert_int_equal(post_srq(r, srq, (uint64_t)i), 0);
	ibv_query_srq(srq, &before);
	attr = (struct ibv_srq_attr){.max_wr = 7, .srq_limit = 2};
	expect_errno(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT), EINVAL);
	attr = (struct ibv_srq_attr){.max_wr = (uint32_t)dev.max_srq_wr + 1};
	expect_errno(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
	attr = (struct ibv_srq_attr){.srq_limit = before.max_wr + 1};
	expect_errno(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), EINVAL);
	expect_errno(ibv_modify_srq(srq, &attr, 1 << 5), EINVAL);
	ibv_query_srq(srq, &attr);
	assert_memory_equal(&attr, &before, sizeof(attr));
	pair_on_srq(r, srq);
	for (i = 0; i < 8; i++)
		assert_int_equal(send_one(r, r->a), i);
	destroy_pair_and_srq(r, srq);
}

static void
resizing_keeps_what_is_posted_in_order(void **state)
{
	static const uint32_t sizes[] = {20, 8, 1000, 8, 9};
	struct rig *r = *state;
	struct ibv_srq *srq = make_srq(r, 10, 1);
	struct ibv_srq_attr attr;
	uint64_t i;

	for (i = 0; i < 8; i++)
		assert_int_equal(post_srq(r, srq, i), 0);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		attr.max_wr = sizes[i];
		assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
		assert_true(attr.max_wr >= sizes[i]);
	}
	pair_on_srq(r, srq);
	for (i = 0; i < 8; i++)
		assert_int_equal(send_one(r, r->a), i);
	destroy_pair_and_srq(r, srq);
}

static void
basic_queue_has_no_number(void **state)
{
	struct rig *r = *state;
	struct ibv_srq *srq = make_srq(r, 1, 1);
	uint32_t num;

	assert_int_not_equal(ibv_get_srq_num(srq, &num), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_DEVICE(limits_are_enforced_and_reached),
		TEST_DEVICE(as_many_queues_as_are_reported_can_be_had),
		TEST_DEVICE(fields_are_filled),
		TEST_DEVICE(extended_creation_takes_the_basic_type),
		TEST_DEVICE(as_many_receives_fit_as_were_granted),
		TEST_DEVICE(too_many_sges_are_refused),
		TEST_DEVICE(queue_pairs_take_receives_in_order_of_arrival),
		TEST_DEVICE(queue_pair_with_a_shared_queue_has_none_of_its_own),
		TEST_DEVICE(error_state_leaves_the_shared_queue_alone),
		TEST_DEVICE(low_watermark_is_told_once),
		TEST_DEVICE(bad_changes_change_nothing),
		TEST_DEVICE(resizing_keeps_what_is_posted_in_order),
		TEST_DEVICE(basic_queue_has_no_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
