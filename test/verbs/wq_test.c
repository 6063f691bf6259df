/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues and indirection tables: life and states (ibv_create_wq(3), ibv_modify_wq(3),
 * ibv_create_rwq_ind_table(3)).
 */
#include <stdlib.h>

#include "wq_util.h"

static void
creation_tells_the_actual_sizes(void **state)
{
	struct rig *r = *state;
	struct ibv_wq_init_attr attr = wq_attr(r);
	struct ibv_wq *wq = ibv_create_wq(r->ctx, &attr);
	uint32_t i;

	assert_non_null(wq);
	assert_true(attr.max_wr >= 10 && attr.max_sge >= 2);
	assert_int_equal(wq->state, IBV_WQS_RESET);
	assert_ptr_equal(wq->cq, r->cq);
	assert_ptr_equal(wq->pd, r->pd);
	assert_ptr_equal(wq->context, r->ctx);
	assert_int_equal(wq_to(wq, IBV_WQS_RDY), 0);
	for (i = 0; i < attr.max_wr; i++)
		assert_int_equal(post_wq(r, wq, i), 0);
	expect_errno(post_wq(r, wq, i), ENOMEM);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
wrong_attributes_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_device_attr_ex dev;
	struct ibv_wq_init_attr attr;

	assert_int_equal(ibv_query_device_ex(r->ctx, NULL, &dev), 0);
#define REFUSED(err, ...) \
	do { \
		attr = wq_attr(r); \
		__VA_ARGS__; \
		expect_null(ibv_create_wq(r->ctx, &attr), err); \
	} while (0)
	REFUSED(EINVAL, attr.wq_type = 1);
	REFUSED(EINVAL, attr.pd = NULL);
	REFUSED(EINVAL, attr.cq = NULL);
	REFUSED(EINVAL, attr.max_wr = 0);
	REFUSED(EINVAL, attr.max_wr = (uint32_t)dev.orig_attr.max_qp_wr + 1);
	REFUSED(EINVAL, attr.max_sge = (uint32_t)dev.orig_attr.max_sge + 1);
	REFUSED(EOPNOTSUPP, attr.comp_mask = IBV_WQ_INIT_ATTR_RESERVED);
	REFUSED(EINVAL, attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
		attr.create_flags = IBV_WQ_FLAGS_RESERVED);
	REFUSED(EOPNOTSUPP, attr.comp_mask = IBV_WQ_INIT_ATTR_FLAGS;
		attr.create_flags = IBV_WQ_FLAGS_PCI_WRITE_END_PADDING);
}

static void
states_change_as_the_table_says(void **state)
{
	static const bool allowed[3][3] = {
		[IBV_WQS_RESET] = {[IBV_WQS_RESET] = true, [IBV_WQS_RDY] = true},
		[IBV_WQS_RDY] = {true, true, true},
		[IBV_WQS_ERR] = {[IBV_WQS_RESET] = true, [IBV_WQS_ERR] = true},
	};
	struct rig *r = *state;
	int from, to;

	for (from = 0; from < 3; from++) {
		for (to = 0; to < 3; to++) {
			struct ibv_wq *wq = make_wq(r);

			if (from != IBV_WQS_RESET)
				assert_int_equal(wq_to(wq, IBV_WQS_RDY), 0);
			if (from == IBV_WQS_ERR)
				assert_int_equal(wq_to(wq, IBV_WQS_ERR), 0);
			assert_int_equal(
				wq_to(wq, (enum ibv_wq_state)to), allowed[from][to] ? 0 : EINVAL);
			assert_int_equal(wq->state, allowed[from][to] ? to : from);
			assert_int_equal(ibv_destroy_wq(wq), 0);
		}
	}
}

static void
wrong_modifications_change_nothing(void **state)
{
	struct rig *r = *state;
	struct ibv_wq *wq = make_wq(r);
	struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE,
		.wq_state = IBV_WQS_RDY,
		.curr_wq_state = IBV_WQS_RDY};

	expect_errno(ibv_modify_wq(wq, &attr), EINVAL);
	attr.curr_wq_state = IBV_WQS_UNKNOWN;
	expect_errno(ibv_modify_wq(wq, &attr), EINVAL);
	expect_errno(wq_to(wq, IBV_WQS_UNKNOWN), EINVAL);
	attr.attr_mask = IBV_WQ_ATTR_RESERVED;
	expect_errno(ibv_modify_wq(wq, &attr), EINVAL);
	attr.attr_mask = IBV_WQ_ATTR_FLAGS;
	attr.flags = IBV_WQ_FLAGS_CVLAN_STRIPPING;
	attr.flags_mask = 0;
	expect_errno(ibv_modify_wq(wq, &attr), EINVAL);
	attr.flags_mask = IBV_WQ_FLAGS_CVLAN_STRIPPING;
	assert_int_equal(ibv_modify_wq(wq, &attr), 0);
	assert_int_equal(wq->state, IBV_WQS_RESET);
	attr.attr_mask = IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE;
	attr.curr_wq_state = IBV_WQS_RESET;
	assert_int_equal(ibv_modify_wq(wq, &attr), 0);
	assert_int_equal(wq->state, IBV_WQS_RDY);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
nothing_can_be_posted_in_reset(void **state)
{
	struct rig *r = *state;
	struct ibv_wq *wq = make_wq(r);

	expect_errno(post_wq(r, wq, 1), EINVAL);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
receives_are_flushed_in_the_error_state(void **state)
{
	struct rig *r = *state;
	struct ibv_wq *wq = make_wq(r);
	struct ibv_wc wc;

	assert_int_equal(wq_to(wq, IBV_WQS_RDY), 0);
	assert_int_equal(post_wq(r, wq, 1), 0);
	assert_int_equal(wq_to(wq, IBV_WQS_ERR), 0);
	assert_int_equal(post_wq(r, wq, 2), 0);
	assert_true(poll_for(r->cq, &wc));
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(wc.wr_id, 1);
	assert_int_equal(wc.qp_num, wq->wq_num);
	assert_true(poll_for(r->cq, &wc));
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
reset_forgets_what_was_posted(void **state)
{
	struct rig *r = *state;
	struct ibv_wq *wq = make_wq(r);

	assert_int_equal(wq_to(wq, IBV_WQS_RDY), 0);
	assert_int_equal(post_wq(r, wq, 1), 0);
	assert_int_equal(wq_to(wq, IBV_WQS_RESET), 0);
	assert_int_equal(wq_to(wq, IBV_WQS_RDY), 0);
	assert_int_equal(wq_to(wq, IBV_WQS_ERR), 0);
	expect_no_completion(r->cq);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
partial_post_stops_at_the_bad_one(void **state)
{
	struct rig *r = *state;
	struct ibv_wq *wq = make_wq(r);
	struct ibv_sge sge[8] = {0};
	struct ibv_recv_wr wr[3] = {{.wr_id = 1, .next = &wr[1]},
		{.wr_id = 2, .sg_list = sge, .num_sge = 8, .next = &wr[2]}, {.wr_id = 3}};
	struct ibv_recv_wr *bad = NULL;

	assert_int_equal(wq_to(wq, IBV_WQS_RDY), 0);
	expect_errno(ibv_post_wq_recv(wq, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	assert_int_equal(wq_to(wq, IBV_WQS_ERR), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_WR_FLUSH_ERR);
	expect_no_completion(r->cq);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
cq_and_pd_are_busy_while_it_is_there(void **state)
{
	struct rig *r = *state;
	struct ibv_pd *pd = ibv_alloc_pd(r->ctx);
	struct ibv_cq *cq = ibv_create_cq(r->ctx, 1, NULL, NULL, 0);
	struct ibv_wq_init_attr attr = wq_attr(r);
	struct ibv_wq *wq;

	attr.pd = pd;
	attr.cq = cq;
	wq = ibv_create_wq(r->ctx, &attr);
	assert_non_null(wq);
	expect_errno(ibv_destroy_cq(cq), EBUSY);
	expect_errno(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_wq(wq), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void
work_queue_is_busy_while_it_stands_in_a_table(void **state)
{
	struct rig *r = *state;
	struct ibv_wq *wq = make_wq(r), *entries[4] = {wq, wq, wq, wq};
	struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = 2, .ind_tbl = entries};
	struct ibv_rwq_ind_table *tbl = ibv_create_rwq_ind_table(r->ctx, &attr);

	assert_non_null(tbl);
	assert_ptr_equal(tbl->context, r->ctx);
	expect_errno(ibv_destroy_wq(wq), EBUSY);
	assert_int_equal(ibv_destroy_rwq_ind_table(tbl), 0);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
wrong_tables_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_wq *wq = make_wq(r), *entries[2] = {wq, NULL};
	struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = 1, .ind_tbl = entries};
	struct ibv_context *other = open_device();

	expect_null(ibv_create_rwq_ind_table(r->ctx, &attr), EINVAL);
	entries[1] = wq;
	expect_null(ibv_create_rwq_ind_table(other, &attr), EINVAL);
	attr.comp_mask = 1;
	expect_null(ibv_create_rwq_ind_table(r->ctx, &attr), EINVAL);
	attr.comp_mask = 0;
	attr.log_ind_tbl_size = 20;
	expect_null(ibv_create_rwq_ind_table(r->ctx, &attr), EINVAL);
	attr.log_ind_tbl_size = 64;
	expect_null(ibv_create_rwq_ind_table(r->ctx, &attr), EINVAL);
	assert_int_equal(ibv_close_device(other), 0);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
table_is_as_large_as_the_device_says(void **state)
{
	struct rig *r = *state;
	struct ibv_wq *wq = make_wq(r), **entries;
	struct ibv_rwq_ind_table_init_attr attr;
	struct ibv_rwq_ind_table *tbl;
	struct ibv_device_attr_ex dev;
	uint32_t i, n;

	assert_int_equal(ibv_query_device_ex(r->ctx, NULL, &dev), 0);
	n = dev.rss_caps.max_rwq_indirection_table_size;
	entries = malloc(n * sizeof(*entries));
	for (i = 0; i < n; i++)
		entries[i] = wq;
	memset(&attr, 0, sizeof(attr));
	attr.ind_tbl = entries;
	while (1u << attr.log_ind_tbl_size < n)
		attr.log_ind_tbl_size++;
	tbl = ibv_create_rwq_ind_table(r->ctx, &attr);
	free(entries);
	assert_non_null(tbl);
	assert_int_equal(ibv_destroy_rwq_ind_table(tbl), 0);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_DEVICE(creation_tells_the_actual_sizes),
		TEST_DEVICE(wrong_attributes_are_refused),
		TEST_DEVICE(states_change_as_the_table_says),
		TEST_DEVICE(wrong_modifications_change_nothing),
		TEST_DEVICE(nothing_can_be_posted_in_reset),
		TEST_DEVICE(receives_are_flushed_in_the_error_state),
		TEST_DEVICE(reset_forgets_what_was_posted),
		TEST_DEVICE(partial_post_stops_at_the_bad_one),
		TEST_DEVICE(cq_and_pd_are_busy_while_it_is_there),
		TEST_DEVICE(work_queue_is_busy_while_it_stands_in_a_table),
		TEST_DEVICE(wrong_tables_are_refused),
		TEST_DEVICE(table_is_as_large_as_the_device_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
