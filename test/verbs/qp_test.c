/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs: making, querying and destroying them, and their table of states and attributes.
 */
#include <stdlib.h>

#include "verbs_util.h"

static struct ibv_qp_init_attr
usual_init(struct rig *r)
{
	struct ibv_qp_init_attr attr = {
		.qp_context = r,
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.cap = {.max_send_wr = 10,
			.max_recv_wr = 11,
			.max_send_sge = 2,
			.max_recv_sge = 3,
			.max_inline_data = 33},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};

	return attr;
}

static void
caps_above_the_limits_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_init_attr usual = usual_init(r), attr;
	struct ibv_device_attr dev;

	ibv_query_device(r->ctx, &dev);
#define REFUSED(field, value) \
	attr = usual; \
	attr.cap.field = value; \
	expect_null(ibv_create_qp(r->pd, &attr), EINVAL)
	REFUSED(max_send_wr, (uint32_t)dev.max_qp_wr + 1);
	REFUSED(max_recv_wr, (uint32_t)dev.max_qp_wr + 1);
	REFUSED(max_send_sge, (uint32_t)dev.max_sge + 1);
	REFUSED(max_recv_sge, (uint32_t)dev.max_sge + 1);
	REFUSED(max_inline_data, 1u << 20);
#undef REFUSED
}

static void
caps_at_the_limits_are_granted(void **state)
{
	struct rig *r = *state;
	struct ibv_device_attr dev;
	struct ibv_qp_cap cap;
	struct ibv_qp *qp;

	ibv_query_device(r->ctx, &dev);
	cap.max_send_wr = cap.max_recv_wr = (uint32_t)dev.max_qp_wr;
	cap.max_send_sge = cap.max_recv_sge = (uint32_t)dev.max_sge;
	cap.max_inline_data = 0;
	qp = make_qp(r, &cap, NULL);
	assert_true(cap.max_send_wr >= (uint32_t)dev.max_qp_wr);
	assert_true(cap.max_recv_wr >= (uint32_t)dev.max_qp_wr);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void
missing_and_foreign_parts_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_context *other = open_device();
	struct ibv_qp_init_attr attr = usual_init(r);
	struct ibv_cq *cq = ibv_create_cq(other, 1, NULL, NULL, 0);
	struct ibv_pd *pd = ibv_alloc_pd(other);

	attr.send_cq = NULL;
	expect_null(ibv_create_qp(r->pd, &attr), EINVAL);
	attr.send_cq = cq;
	expect_null(ibv_create_qp(r->pd, &attr), EINVAL);
	attr.send_cq = r->cq;
	attr.recv_cq = NULL;
	expect_null(ibv_create_qp(r->pd, &attr), EINVAL);
	attr.recv_cq = r->cq;
	expect_null(ibv_create_qp(pd, &attr), EINVAL);
	attr.qp_type = IBV_QPT_DRIVER;
	expect_null(ibv_create_qp(r->pd, &attr), EOPNOTSUPP);
	ibv_destroy_cq(cq);
	ibv_dealloc_pd(pd);
	ibv_close_device(other);
}

static void
extended_attributes_that_are_not_supported_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.qp_type = IBV_QPT_RC,
		.pd = r->pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.create_flags = IBV_QP_CREATE_SCATTER_FCS,
	};

	assert_null(ibv_create_qp_ex(r->ctx, &attr));
	attr.create_flags = 0;
	attr.comp_mask = IBV_QP_INIT_ATTR_CREATE_FLAGS;
	expect_null(ibv_create_qp_ex(r->ctx, &attr), EINVAL); /* no PD */
	attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_TSO;
	expect_null(ibv_create_qp_ex(r->ctx, &attr), EOPNOTSUPP);
	attr.send_ops_flags = 1ull << 60;
	expect_null(ibv_create_qp_ex(r->ctx, &attr), EOPNOTSUPP);
}

static void
fields_are_filled(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_init_attr attr = usual_init(r), init;
	struct ibv_qp *qp = ibv_create_qp(r->pd, &attr);
	struct ibv_qp_attr now;

	assert_non_null(qp);
	assert_true(attr.cap.max_send_wr >= 10 && attr.cap.max_recv_wr >= 11);
	assert_true(attr.cap.max_send_sge >= 2 && attr.cap.max_recv_sge >= 3);
	assert_true(attr.cap.max_inline_data >= 33);
	assert_ptr_equal(qp->context, r->ctx);
	assert_ptr_equal(qp->qp_context, r);
	assert_ptr_equal(qp->pd, r->pd);
	assert_ptr_equal(qp->send_cq, r->cq);
	assert_int_equal(qp->state, IBV_QPS_RESET);
	assert_int_equal(qp->qp_type, IBV_QPT_RC);
	assert_true(qp->qp_num > 1 && qp->qp_num < 1u << 24);
	assert_int_equal(ibv_query_qp(qp, &now, IBV_QP_STATE | IBV_QP_CAP, &init), 0);
	assert_memory_equal(&init.cap, &attr.cap, sizeof(attr.cap));
	assert_memory_equal(&now.cap, &attr.cap, sizeof(attr.cap));
	assert_ptr_equal(init.qp_context, r);
	assert_ptr_equal(init.recv_cq, r->cq);
	assert_int_equal(init.sq_sig_all, 1);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void
only_queue_pairs_with_send_ops_are_extended(void **state)
{
	struct rig *r = *state;

	r->a = make_qp(r, NULL, NULL);
	r->b = make_qp_ex(r, ALL_SEND_OPS);
	assert_null(ibv_qp_to_qp_ex(r->a));
	assert_non_null(ibv_qp_to_qp_ex(r->b));
}

static void
pd_is_busy_while_a_queue_pair_stands_in_it(void **state)
{
	struct rig *r = *state;
	struct ibv_pd *pd = r->pd;

	r->pd = ibv_alloc_pd(r->ctx);
	r->a = make_qp(r, NULL, NULL);
	expect_errno(ibv_dealloc_pd(r->pd), EBUSY);
	assert_int_equal(ibv_destroy_qp(r->a), 0);
	r->a = NULL;
	assert_int_equal(ibv_dealloc_pd(r->pd), 0);
	r->pd = pd;
}

static void
thousand_queue_pairs_have_thousand_numbers(void **state)
{
	enum { N = 1000 };
	struct rig *r = *state;
	struct ibv_qp_cap cap;
	struct ibv_qp *qp[N];
	uint8_t *seen = calloc(1, 1 << 24);
	int i;

	for (i = 0; i < N; i++) {
		memset(&cap, 0, sizeof(cap));
		cap.max_send_wr = cap.max_recv_wr = cap.max_send_sge = cap.max_recv_sge = 1;
		qp[i] = make_qp(r, &cap, NULL);
		assert_int_equal(seen[qp[i]->qp_num], 0);
		seen[qp[i]->qp_num] = 1;
	}
	for (i = 0; i < N; i++)
		assert_int_equal(ibv_destroy_qp(qp[i]), 0);
	free(seen);
}

/* ---- the table of ibv_modify_qp(3) ---- */

static const enum ibv_qp_state path[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};

static void
each_step_needs_each_of_its_attributes(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_attr attr;
	int mask, bit;
	size_t i;

	r->a = make_qp(r, NULL, NULL);
	for (i = 0; i < 3; i++) {
		attr_for(r, path[i], r->a, &attr, &mask);
		for (bit = 1; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
			if (bit == IBV_QP_STATE || !(mask & bit))
				continue;
			if (ibv_modify_qp(r->a, &attr, mask & ~bit) != EINVAL)
				fail_msg("state %d without bit %#x", path[i], bit);
			assert_int_equal(state_of(r->a), i ? path[i - 1] : IBV_QPS_RESET);
		}
		step(r, r->a, path[i], r->a);
		assert_int_equal(state_of(r->a), path[i]);
		assert_int_equal(r->a->state, path[i]);
	}
}

static void
each_step_takes_none_but_its_optional_attributes(void **state)
{
	static const int optional[] = {
		0,
		IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS,
		IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER,
	};
	/* Not of this device: alternate paths; and what IBTA leaves out of all steps of RC. */
	const int skipped = IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_CAP;
	struct rig *r = *state;
	struct ibv_qp_attr attr;
	int mask, bit, rc;
	size_t i, k;

	for (i = 0; i < 3; i++)
		for (bit = 2; bit <= IBV_QP_DEST_QPN; bit <<= 1) {
			r->a = make_qp(r, NULL, NULL);
			for (k = 0; k < i; k++)
				step(r, r->a, path[k], r->a);
			attr_for(r, path[i], r->a, &attr, &mask);
			attr.cur_qp_state = i ? path[i - 1] : IBV_QPS_RESET;
			attr.port_num = 1;
			if (!(bit & (mask | skipped))) {
				rc = ibv_modify_qp(r->a, &attr, mask | bit);
				if (rc != (bit & optional[i] ? 0 : EINVAL))
					fail_msg("state %d with bit %#x: %d", path[i], bit, rc);
			}
			assert_int_equal(ibv_destroy_qp(r->a), 0);
			r->a = NULL;
		}
}

static void
steps_that_leave_out_a_state_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_attr attr;
	int mask;

	r->a = make_qp(r, NULL, NULL);
	attr_for(r, IBV_QPS_RTR, r->a, &attr, &mask);
	expect_errno(ibv_modify_qp(r->a, &attr, mask), EINVAL);
	attr_for(r, IBV_QPS_RTS, r->a, &attr, &mask);
	expect_errno(ibv_modify_qp(r->a, &attr, mask), EINVAL);
	attr.qp_state = IBV_QPS_SQD;
	expect_errno(ibv_modify_qp(r->a, &attr, IBV_QP_STATE), EINVAL);
	attr.qp_state = IBV_QPS_UNKNOWN;
	expect_errno(ibv_modify_qp(r->a, &attr, IBV_QP_STATE), EINVAL);
	assert_int_equal(state_of(r->a), IBV_QPS_RESET);
}

static void
error_and_reset_can_be_reached_from_every_state(void **state)
{
	struct rig *r = *state;
	size_t i, k;

	r->a = make_qp(r, NULL, NULL);
	for (i = 0; i <= 3; i++) {
		for (k = 0; k < i; k++)
			step(r, r->a, path[k], r->a);
		step(r, r->a, IBV_QPS_ERR, NULL);
		assert_int_equal(state_of(r->a), IBV_QPS_ERR);
		step(r, r->a, IBV_QPS_RESET, NULL);
		assert_int_equal(state_of(r->a), IBV_QPS_RESET);
		for (k = 0; k < i; k++)
			step(r, r->a, path[k], r->a);
		step(r, r->a, IBV_QPS_RESET, NULL);
	}
}

/* Sets one field to a bad value in the step where it belongs. */
#define BAD_VALUE(state, field, value) \
	do { \
		attr_for(r, state, r->a, &attr, &mask); \
		attr.field = value; \
		if (ibv_modify_qp(r->a, &attr, mask) != EINVAL) \
			fail_msg("%s", #field " = " #value); \
	} while (0)

static void
values_out_of_range_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_attr attr;
	int mask;

	r->a = make_qp(r, NULL, NULL);
	BAD_VALUE(IBV_QPS_INIT, port_num, 0);
	BAD_VALUE(IBV_QPS_INIT, port_num, 2);
	BAD_VALUE(IBV_QPS_INIT, pkey_index, 1);
	step(r, r->a, IBV_QPS_INIT, NULL);
	BAD_VALUE(IBV_QPS_RTR, path_mtu, 0);
	BAD_VALUE(IBV_QPS_RTR, path_mtu, IBV_MTU_4096 + 1);
	BAD_VALUE(IBV_QPS_RTR, max_dest_rd_atomic, 255);
	BAD_VALUE(IBV_QPS_RTR, min_rnr_timer, 32);
	BAD_VALUE(IBV_QPS_RTR, ah_attr.is_global, 0);
	BAD_VALUE(IBV_QPS_RTR, ah_attr.port_num, 2);
	BAD_VALUE(IBV_QPS_RTR, ah_attr.grh.sgid_index, 200);
	BAD_VALUE(IBV_QPS_RTR, ah_attr.grh.dgid.raw[0], 0xff);
	step(r, r->a, IBV_QPS_RTR, r->a);
	BAD_VALUE(IBV_QPS_RTS, timeout, 32);
	BAD_VALUE(IBV_QPS_RTS, retry_cnt, 8);
	BAD_VALUE(IBV_QPS_RTS, rnr_retry, 8);
	BAD_VALUE(IBV_QPS_RTS, max_rd_atomic, 255);
	step(r, r->a, IBV_QPS_RTS, NULL);
}

static void
unknown_bits_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_attr attr;
	int mask;

	r->a = make_qp(r, NULL, NULL);
	attr_for(r, IBV_QPS_INIT, NULL, &attr, &mask);
	expect_errno(ibv_modify_qp(r->a, &attr, mask | 1 << 30), EINVAL);
	assert_int_equal(state_of(r->a), IBV_QPS_RESET);
}

static void
query_tells_what_was_set(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(r->a, &attr, ~0, &init), 0);
	assert_int_equal(attr.qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.cur_qp_state, IBV_QPS_RTS);
	assert_int_equal(attr.path_mtu, IBV_MTU_1024);
	assert_int_equal(attr.rq_psn, 0x123456);
	assert_int_equal(attr.sq_psn, 0x123456);
	assert_int_equal(attr.dest_qp_num, r->b->qp_num);
	assert_int_equal(attr.qp_access_flags,
		IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC);
	assert_memory_equal(&attr.ah_attr.grh.dgid, &r->gid, sizeof(r->gid));
	assert_int_equal(attr.ah_attr.is_global, 1);
	assert_int_equal(attr.ah_attr.grh.hop_limit, 64);
	assert_int_equal(attr.max_rd_atomic, 4);
	assert_int_equal(attr.max_dest_rd_atomic, 4);
	assert_int_equal(attr.min_rnr_timer, 1);
	assert_int_equal(attr.port_num, 1);
	assert_int_equal(attr.timeout, 14);
	assert_int_equal(attr.retry_cnt, 7);
	assert_int_equal(attr.rnr_retry, 1);
	assert_int_equal(attr.path_mig_state, IBV_MIG_MIGRATED);
}

static void
attributes_change_in_rts_without_a_step(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_attr attr = {.min_rnr_timer = 7, .qp_access_flags = IBV_ACCESS_REMOTE_READ},
			   now;
	struct ibv_qp_init_attr init;

	assert_int_equal(ibv_modify_qp(r->a, &attr, IBV_QP_MIN_RNR_TIMER | IBV_QP_ACCESS_FLAGS), 0);
	assert_int_equal(ibv_query_qp(r->a, &now, ~0, &init), 0);
	assert_int_equal(now.min_rnr_timer, 7);
	assert_int_equal(now.qp_access_flags, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(now.qp_state, IBV_QPS_RTS);
	expect_errno(ibv_modify_qp(r->a, &attr, IBV_QP_DEST_QPN), EINVAL);
}

static void
wrong_current_state_is_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .cur_qp_state = IBV_QPS_SQE};

	expect_errno(ibv_modify_qp(r->a, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), EINVAL);
	attr.cur_qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(r->a, &attr, IBV_QP_STATE | IBV_QP_CUR_STATE), 0);
}

static void
connection_options_are_none(void **state)
{
	struct rig *r = *state;
	struct ibv_ece ece = {.vendor_id = 1};

	expect_errno(ibv_set_ece(r->a, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_query_ece(r->a, &ece), 0);
	assert_int_equal(ece.vendor_id, 0);
	assert_int_equal(ibv_set_ece(r->a, &ece), 0);
}

static void
writes_arrive_in_order(void **state)
{
	struct rig *r = *state;

	assert_int_equal(ibv_query_qp_data_in_order(r->a, IBV_WR_RDMA_WRITE, 0), 1);
	assert_int_equal(ibv_query_qp_data_in_order(r->a, IBV_WR_RDMA_WRITE, 1), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_DEVICE(caps_above_the_limits_are_refused),
		TEST_DEVICE(caps_at_the_limits_are_granted),
		TEST_DEVICE(missing_and_foreign_parts_are_refused),
		TEST_DEVICE(extended_attributes_that_are_not_supported_are_refused),
		TEST_DEVICE(fields_are_filled),
		TEST_DEVICE(only_queue_pairs_with_send_ops_are_extended),
		TEST_DEVICE(pd_is_busy_while_a_queue_pair_stands_in_it),
		TEST_DEVICE(thousand_queue_pairs_have_thousand_numbers),
		TEST_DEVICE(each_step_needs_each_of_its_attributes),
		TEST_DEVICE(each_step_takes_none_but_its_optional_attributes),
		TEST_DEVICE(steps_that_leave_out_a_state_are_refused),
		TEST_DEVICE(error_and_reset_can_be_reached_from_every_state),
		TEST_DEVICE(values_out_of_range_are_refused),
		TEST_DEVICE(unknown_bits_are_refused),
		TEST_PAIR(query_tells_what_was_set),
		TEST_PAIR(attributes_change_in_rts_without_a_step),
		TEST_PAIR(wrong_current_state_is_refused),
		TEST_PAIR(connection_options_are_none),
		TEST_PAIR(writes_arrive_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
