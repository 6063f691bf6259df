/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_wr_*(): every operation, and that a batch is posted whole or not at all.
 */
#include <stdlib.h>

#include "verbs_util.h"

static int
open_extended(void **state)
{
	struct rig *r;

	rig_open(state);
	r = *state;
	r->a = make_qp_ex(r, ALL_SEND_OPS);
	r->b = make_qp_ex(r, ALL_SEND_OPS);
	connect_qp(r, r->a, r->b);
	connect_qp(r, r->b, r->a);
	return 0;
}

static struct ibv_qp_ex *
start(struct rig *r)
{
	struct ibv_qp_ex *qp = ibv_qp_to_qp_ex(r->a);

	ibv_wr_start(qp);
	qp->wr_id = 7;
	qp->wr_flags = IBV_SEND_SIGNALED;
	return qp;
}

static uint64_t
remote(struct rig *r)
{
	return (uintptr_t)r->buf + BUF_SIZE / 2;
}

static void
sge(struct rig *r, struct ibv_qp_ex *qp, uint32_t len)
{
	ibv_wr_set_sge(qp, r->mr->lkey, (uintptr_t)r->buf, len);
}

/* The completion of a request; then, for messages, that of the receive. */
static void
expect_completions(struct rig *r, enum ibv_wc_opcode sent, int received, struct ibv_wc *recv_wc)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 1 + received; i++) {
		assert_true(poll_for(r->cq, &wc));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode & IBV_WC_RECV) {
			*recv_wc = wc;
		} else {
			assert_int_equal(wc.opcode, sent);
			assert_int_equal(wc.wr_id, 7);
		}
	}
}

static void
send_arrives(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_ex *qp;
	struct ibv_wc wc;

	strcpy(r->buf, "message");
	assert_int_equal(post_recv(r, r->b, 1, (void *)remote(r), 64), 0);
	qp = start(r);
	ibv_wr_send(qp);
	sge(r, qp, 8);
	assert_int_equal(ibv_wr_complete(qp), 0);
	expect_completions(r, IBV_WC_SEND, 1, &wc);
	assert_int_equal(wc.byte_len, 8);
	assert_int_equal(wc.wc_flags, 0);
	assert_string_equal((char *)remote(r), "message");
}

static void
send_with_immediate_arrives(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_ex *qp;
	struct ibv_wc wc;

	assert_int_equal(post_recv(r, r->b, 1, (void *)remote(r), 64), 0);
	qp = start(r);
	ibv_wr_send_imm(qp, 0x12345678);
	assert_int_equal(ibv_wr_complete(qp), 0);
	expect_completions(r, IBV_WC_SEND, 1, &wc);
	assert_int_equal(wc.byte_len, 0);
	assert_true(wc.wc_flags & IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, 0x12345678);
}

static void
write_arrives(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_ex *qp = start(r);

	strcpy(r->buf, "written");
	ibv_wr_rdma_write(qp, r->mr->rkey, remote(r));
	sge(r, qp, 8);
	assert_int_equal(ibv_wr_complete(qp), 0);
	expect_completions(r, IBV_WC_RDMA_WRITE, 0, NULL);
	assert_string_equal((char *)remote(r), "written");
}

static void
write_with_immediate_arrives(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_ex *qp;
	struct ibv_wc wc;

	strcpy(r->buf, "written");
	assert_int_equal(post_recv(r, r->b, 1, NULL, 0), 0);
	qp = start(r);
	ibv_wr_rdma_write_imm(qp, r->mr->rkey, remote(r), 0xabcd);
	sge(r, qp, 8);
	assert_int_equal(ibv_wr_complete(qp), 0);
	expect_completions(r, IBV_WC_RDMA_WRITE, 1, &wc);
	assert_int_equal(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(wc.imm_data, 0xabcd);
	assert_int_equal(wc.byte_len, 8);
	assert_string_equal((char *)remote(r), "written");
}

static void
read_fetches(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_ex *qp = start(r);

	strcpy((char *)remote(r), "fetched");
	ibv_wr_rdma_read(qp, r->mr->rkey, remote(r));
	sge(r, qp, 8);
	assert_int_equal(ibv_wr_complete(qp), 0);
	expect_completions(r, IBV_WC_RDMA_READ, 0, NULL);
	assert_string_equal(r->buf, "fetched");
}

static void
atomics_change_and_return(void **state)
{
	struct rig *r = *state;
	uint64_t *theirs = (uint64_t *)remote(r), *mine = (uint64_t *)r->buf;
	struct ibv_qp_ex *qp = start(r);

	*theirs = 40;
	ibv_wr_atomic_fetch_add(qp, r->mr->rkey, remote(r), 2);
	sge(r, qp, 8);
	assert_int_equal(ibv_wr_complete(qp), 0);
	expect_completions(r, IBV_WC_FETCH_ADD, 0, NULL);
	assert_int_equal(*mine, 40);
	assert_int_equal(*theirs, 42);
	qp = start(r);
	ibv_wr_atomic_cmp_swp(qp, r->mr->rkey, remote(r), 42, 1);
	sge(r, qp, 8);
	assert_int_equal(ibv_wr_complete(qp), 0);
	expect_completions(r, IBV_WC_COMP_SWAP, 0, NULL);
	assert_int_equal(*mine, 42);
	assert_int_equal(*theirs, 1);
}

static void
atomic_write_takes_the_value_with_it(void **state)
{
	struct rig *r = *state;
	uint64_t *theirs = (uint64_t *)remote(r), value = 0x0102030405060708;
	struct ibv_qp_ex *qp = start(r);

	*theirs = 0;
	ibv_wr_atomic_write(qp, r->mr->rkey, remote(r), &value);
	value = 0;
	assert_int_equal(ibv_wr_complete(qp), 0);
	expect_completions(r, IBV_WC_ATOMIC_WRITE, 0, NULL);
	assert_int_equal(*theirs, 0x0102030405060708);
}

static void
atomic_write_is_claimed_and_can_be_posted(void **state)
{
	struct rig *r = *state;
	uint64_t *theirs = (uint64_t *)remote(r);
	struct ibv_device_attr_ex attr;
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;

	assert_int_equal(ibv_query_device_ex(r->ctx, NULL, &attr), 0);
	/* IB_UVERBS_DEVICE_ATOMIC_WRITE of newer headers. */
	assert_true(attr.device_cap_flags_ex & 1ull << 40);
	*theirs = 0;
	memcpy(r->buf, "a value", 8);
	wr = make_wr(IBV_WR_ATOMIC_WRITE, &sge, r, r->buf, 8);
	wr.wr.rdma.remote_addr = (uintptr_t)theirs;
	wr.wr.rdma.rkey = r->mr->rkey;
	assert_int_equal(ibv_post_send(r->a, &wr, &bad), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_memory_equal(theirs, "a value", 8);
	sge.length = 4;
	expect_errno(ibv_post_send(r->a, &wr, &bad), EINVAL);
	sge.length = 8;
	wr.wr.rdma.remote_addr += 4;
	assert_int_equal(ibv_post_send(r->a, &wr, &bad), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_REM_INV_REQ_ERR);
}

static void
window_is_bound_used_and_invalidated_by_the_peer(void **state)
{
	struct rig *r = *state;
	struct ibv_mw *mw = ibv_alloc_mw(r->pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = {.mr = r->mr,
		.addr = remote(r),
		.length = 64,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	struct ibv_qp_ex *qp;
	struct ibv_wc wc;
	uint32_t rkey;

	assert_non_null(mw);
	rkey = ibv_inc_rkey(mw->rkey);
	/* b binds it, a writes through it and invalidates it with a message. */
	qp = ibv_qp_to_qp_ex(r->b);
	ibv_wr_start(qp);
	qp->wr_id = 7;
	qp->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_bind_mw(qp, mw, rkey, &info);
	assert_int_equal(ibv_wr_complete(qp), 0);
	expect_completions(r, IBV_WC_BIND_MW, 0, NULL);
	strcpy(r->buf, "through a window");
	qp = start(r);
	ibv_wr_rdma_write(qp, rkey, remote(r));
	sge(r, qp, 17);
	assert_int_equal(ibv_wr_complete(qp), 0);
	expect_completions(r, IBV_WC_RDMA_WRITE, 0, NULL);
	assert_string_equal((char *)remote(r), "through a window");
	assert_int_equal(post_recv(r, r->b, 1, NULL, 0), 0);
	qp = start(r);
	ibv_wr_send_inv(qp, rkey);
	assert_int_equal(ibv_wr_complete(qp), 0);
	expect_completions(r, IBV_WC_SEND, 1, &wc);
	assert_true(wc.wc_flags & IBV_WC_WITH_INV);
	assert_int_equal(wc.invalidated_rkey, rkey);
	qp = start(r);
	ibv_wr_rdma_write(qp, rkey, remote(r));
	sge(r, qp, 1);
	assert_int_equal(ibv_wr_complete(qp), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

static void
window_is_invalidated_locally(void **state)
{
	struct rig *r = *state;
	struct ibv_mw *mw = ibv_alloc_mw(r->pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = {.mr = r->mr,
		.addr = remote(r),
		.length = 64,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct ibv_qp_ex *qp = start(r);

	ibv_wr_bind_mw(qp, mw, rkey, &info);
	assert_int_equal(ibv_wr_complete(qp), 0);
	expect_completions(r, IBV_WC_BIND_MW, 0, NULL);
	expect_errno(ibv_dereg_mr(r->mr), EBUSY);
	qp = start(r);
	ibv_wr_local_inv(qp, rkey);
	assert_int_equal(ibv_wr_complete(qp), 0);
	expect_completions(r, IBV_WC_LOCAL_INV, 0, NULL);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

static void
list_of_sges_is_gathered(void **state)
{
	struct rig *r = *state;
	struct ibv_sge list[3] = {
		{.addr = (uintptr_t)r->buf, .length = 3, .lkey = r->mr->lkey},
		{.addr = (uintptr_t)r->buf + 100, .length = 0, .lkey = r->mr->lkey},
		{.addr = (uintptr_t)r->buf + 200, .length = 4, .lkey = r->mr->lkey},
	};
	struct ibv_qp_ex *qp = start(r);

	strcpy(r->buf, "one");
	strcpy(r->buf + 200, "two");
	ibv_wr_rdma_write(qp, r->mr->rkey, remote(r));
	ibv_wr_set_sge_list(qp, 3, list);
	assert_int_equal(ibv_wr_complete(qp), 0);
	expect_completions(r, IBV_WC_RDMA_WRITE, 0, NULL);
	assert_string_equal((char *)remote(r), "onetwo");
}

static void
inline_data_is_copied(void **state)
{
	struct rig *r = *state;
	char one[] = "one", two[] = "two";
	struct ibv_data_buf list[2] = {{.addr = one, .length = 3}, {.addr = two, .length = 4}};
	struct ibv_qp_ex *qp = start(r);

	ibv_wr_rdma_write(qp, r->mr->rkey, remote(r));
	ibv_wr_set_inline_data_list(qp, 2, list);
	ibv_wr_rdma_write(qp, r->mr->rkey, remote(r) + 100);
	ibv_wr_set_inline_data(qp, two, 4);
	assert_int_equal(ibv_wr_complete(qp), 0);
	memset(one, 'x', 3);
	memset(two, 'x', 3);
	expect_completions(r, IBV_WC_RDMA_WRITE, 0, NULL);
	expect_completions(r, IBV_WC_RDMA_WRITE, 0, NULL);
	assert_string_equal((char *)remote(r), "onetwo");
	assert_string_equal((char *)remote(r) + 100, "two");
}

static void
batch_keeps_its_order(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_ex *qp = start(r);
	struct ibv_wc wc;
	uint64_t i;

	for (i = 0; i < 20; i++) {
		qp->wr_id = i;
		ibv_wr_rdma_write(qp, r->mr->rkey, remote(r));
		sge(r, qp, 1);
	}
	assert_int_equal(ibv_wr_complete(qp), 0);
	for (i = 0; i < 20; i++) {
		assert_true(poll_for(r->cq, &wc));
		assert_int_equal(wc.wr_id, i);
	}
}

static void
aborted_batch_is_not_posted(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_ex *qp = start(r);

	ibv_wr_rdma_write(qp, r->mr->rkey, remote(r));
	sge(r, qp, 1);
	ibv_wr_abort(qp);
	expect_no_completion(r->cq);
	write_arrives(state);
}

static void
empty_batch_is_nothing(void **state)
{
	struct rig *r = *state;

	assert_int_equal(ibv_wr_complete(start(r)), 0);
	expect_no_completion(r->cq);
}

static void
first_error_stays_and_nothing_is_posted(void **state)
{
	struct rig *r = *state;
	struct ibv_sge many[64];
	struct ibv_qp_ex *qp = start(r);

	memset(many, 0, sizeof(many));
	ibv_wr_rdma_write(qp, r->mr->rkey, remote(r));
	sge(r, qp, 1);
	ibv_wr_rdma_write(qp, r->mr->rkey, remote(r));
	ibv_wr_set_sge_list(qp, 64, many);
	ibv_wr_rdma_write(qp, r->mr->rkey, remote(r));
	sge(r, qp, 1);
	expect_errno(ibv_wr_complete(qp), EINVAL);
	expect_no_completion(r->cq);
	write_arrives(state);
}

static void
too_much_inline_data_is_an_error(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp_ex *qp;

	ibv_query_qp(r->a, &attr, 0, &init);
	qp = start(r);
	ibv_wr_send(qp);
	ibv_wr_set_inline_data(qp, r->buf, init.cap.max_inline_data + 1);
	expect_errno(ibv_wr_complete(qp), EINVAL);
	expect_no_completion(r->cq);
}

static void
full_queue_is_an_error_of_the_whole_batch(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp_ex *qp;
	uint32_t i;

	ibv_query_qp(r->a, &attr, 0, &init);
	qp = start(r);
	for (i = 0; i < init.cap.max_send_wr + 1; i++) {
		ibv_wr_rdma_write(qp, r->mr->rkey, remote(r));
		sge(r, qp, 1);
	}
	expect_errno(ibv_wr_complete(qp), ENOMEM);
	expect_no_completion(r->cq);
}

static void
operation_that_was_not_asked_for_is_an_error(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_ex *qp;

	r->a = make_qp_ex(r, IBV_QP_EX_WITH_SEND);
	r->b = make_qp_ex(r, IBV_QP_EX_WITH_SEND);
	connect_qp(r, r->a, r->b);
	qp = start(r);
	ibv_wr_rdma_write(qp, r->mr->rkey, remote(r));
	sge(r, qp, 1);
	expect_errno(ibv_wr_complete(qp), EOPNOTSUPP);
	qp = start(r);
	ibv_wr_send_tso(qp, r->buf, 1, 1);
	expect_errno(ibv_wr_complete(qp), EOPNOTSUPP);
	expect_no_completion(r->cq);
}

static void
batch_below_rts_is_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_ex *qp;

	r->a = make_qp_ex(r, ALL_SEND_OPS);
	step(r, r->a, IBV_QPS_INIT, NULL);
	qp = start(r);
	ibv_wr_send(qp);
	expect_errno(ibv_wr_complete(qp), EINVAL);
}

static void
foreign_key_of_a_window_is_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_mw *mw = ibv_alloc_mw(r->pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = {.mr = r->mr, .addr = remote(r), .length = 64};
	struct ibv_qp_ex *qp = start(r);

	ibv_wr_bind_mw(qp, mw, mw->rkey ^ 0x100, &info);
	expect_errno(ibv_wr_complete(qp), EINVAL);
	ibv_dealloc_mw(mw);
}

/* The request waits in a queue that is stopped, until what it speaks of has gone. */
static void
bind_after_its_window_has_gone(struct rig *r, bool region)
{
	struct ibv_mr *mr = ibv_reg_mr(r->pd, r->buf, BUF_SIZE, ALL_ACCESS);
	struct ibv_mw *mw = ibv_alloc_mw(r->pd, IBV_MW_TYPE_2);
	struct ibv_mw_bind_info info = {.mr = mr, .addr = remote(r), .length = 64};
	struct ibv_qp_ex *qp;

	step(r, r->a, IBV_QPS_SQD, NULL);
	qp = start(r);
	ibv_wr_bind_mw(qp, mw, ibv_inc_rkey(mw->rkey), &info);
	assert_int_equal(ibv_wr_complete(qp), 0);
	if (region) {
		assert_int_equal(ibv_dereg_mr(mr), 0);
	} else {
		assert_int_equal(ibv_dealloc_mw(mw), 0);
	}
	assert_int_equal(
		ibv_modify_qp(r->a, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RTS}, IBV_QP_STATE),
		0);
	assert_int_equal(next_status(r->cq), IBV_WC_MW_BIND_ERR);
	if (region) {
		assert_int_equal(ibv_dealloc_mw(mw), 0);
	} else {
		assert_int_equal(ibv_dereg_mr(mr), 0);
	}
}

static void
binding_of_a_window_that_has_gone_is_an_error(void **state)
{
	bind_after_its_window_has_gone(*state, false);
}

static void
binding_to_a_region_that_has_gone_is_an_error(void **state)
{
	bind_after_its_window_has_gone(*state, true);
}

#define TEST_EXTENDED(name) cmocka_unit_test_setup_teardown(name, open_extended, rig_close)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_EXTENDED(send_arrives),
		TEST_EXTENDED(send_with_immediate_arrives),
		TEST_EXTENDED(write_arrives),
		TEST_EXTENDED(write_with_immediate_arrives),
		TEST_EXTENDED(read_fetches),
		TEST_EXTENDED(atomics_change_and_return),
		TEST_EXTENDED(atomic_write_takes_the_value_with_it),
		TEST_EXTENDED(atomic_write_is_claimed_and_can_be_posted),
		TEST_EXTENDED(window_is_bound_used_and_invalidated_by_the_peer),
		TEST_EXTENDED(window_is_invalidated_locally),
		TEST_EXTENDED(list_of_sges_is_gathered),
		TEST_EXTENDED(inline_data_is_copied),
		TEST_EXTENDED(batch_keeps_its_order),
		TEST_EXTENDED(aborted_batch_is_not_posted),
		TEST_EXTENDED(empty_batch_is_nothing),
		TEST_EXTENDED(first_error_stays_and_nothing_is_posted),
		TEST_EXTENDED(too_much_inline_data_is_an_error),
		TEST_EXTENDED(full_queue_is_an_error_of_the_whole_batch),
		TEST_DEVICE(operation_that_was_not_asked_for_is_an_error),
		TEST_DEVICE(batch_below_rts_is_refused),
		TEST_EXTENDED(foreign_key_of_a_window_is_refused),
		TEST_EXTENDED(binding_of_a_window_that_has_gone_is_an_error),
		TEST_EXTENDED(binding_to_a_region_that_has_gone_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
