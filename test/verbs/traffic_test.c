/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations of a reliable connection by ibv_post_send(), and how each failure looks on both sides.
 */
#include <stdlib.h>

#include "verbs_util.h"

static char *
theirs(struct rig *r)
{
	return r->buf + BUF_SIZE / 2;
}

static void
post(struct rig *r, struct ibv_qp *qp, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	assert_int_equal(ibv_post_send(qp, wr, &bad), 0);
}

static struct ibv_send_wr
rdma(enum ibv_wr_opcode op, struct ibv_sge *sge, struct rig *r, uint32_t len)
{
	struct ibv_send_wr wr = make_wr(op, sge, r, r->buf, len);

	wr.wr.rdma.remote_addr = (uintptr_t)theirs(r);
	wr.wr.rdma.rkey = r->mr->rkey;
	return wr;
}

/* The request fails with that status, and takes its queue pair to the error state. */
static void
expect_failure(struct rig *r, struct ibv_send_wr *wr, enum ibv_wc_status status)
{
	struct ibv_wc wc;

	post(r, r->a, wr);
	assert_true(poll_for(r->cq, &wc));
	assert_int_equal(wc.status, status);
	assert_int_equal(wc.qp_num, r->a->qp_num);
	assert_int_equal(state_of(r->a), IBV_QPS_ERR);
}

static void
message_fills_several_receive_sges(void **state)
{
	struct rig *r = *state;
	struct ibv_sge list[3] = {
		{.addr = (uintptr_t)theirs(r), .length = 3, .lkey = r->mr->lkey},
		{.addr = (uintptr_t)theirs(r) + 100, .length = 5, .lkey = r->mr->lkey},
		{.addr = (uintptr_t)theirs(r) + 200, .length = 100, .lkey = r->mr->lkey},
	};
	struct ibv_recv_wr *bad, wr = {.wr_id = 3, .sg_list = list, .num_sge = 3};
	struct ibv_wc wc;

	strcpy(r->buf, "abcdefghijk");
	assert_int_equal(ibv_post_recv(r->b, &wr, &bad), 0);
	assert_int_equal(post_send(r, r->a, 3, IBV_WR_SEND, r->buf, 12), 0);
	assert_true(poll_for(r->cq, &wc));
	assert_true(poll_for(r->cq, &wc));
	assert_memory_equal(theirs(r), "abc", 3);
	assert_memory_equal(theirs(r) + 100, "defgh", 5);
	assert_string_equal(theirs(r) + 200, "ijk");
}

static void
message_of_many_packets_arrives_whole(void **state)
{
	struct rig *r = *state;
	const uint32_t len = BUF_SIZE / 2;
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < len; i++)
		r->buf[i] = (char)(i * 7 + i / 256);
	assert_int_equal(post_recv(r, r->b, 1, theirs(r), len), 0);
	assert_int_equal(post_send(r, r->a, 2, IBV_WR_SEND, r->buf, len), 0);
	for (i = 0; i < 2; i++) {
		assert_true(poll_for(r->cq, &wc));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_RECV)
			assert_int_equal(wc.byte_len, len);
	}
	assert_memory_equal(r->buf, theirs(r), len);
}

static void
empty_operations_succeed(void **state)
{
	struct rig *r = *state;
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	wr = rdma(IBV_WR_RDMA_WRITE, &sge, r, 0);
	wr.num_sge = 0;
	post(r, r->a, &wr);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	wr.opcode = IBV_WR_RDMA_READ;
	post(r, r->a, &wr);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_int_equal(post_recv(r, r->b, 0, NULL, 0), 0);
	wr.opcode = IBV_WR_SEND;
	post(r, r->a, &wr);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
}

static void
fenced_request_sees_what_was_read_before(void **state)
{
	struct rig *r = *state;
	struct ibv_send_wr read, write;
	struct ibv_sge a, b;
	int i;

	/* Fetches what is there, and writes it back to another place. */
	for (i = 0; i < 50; i++) {
		memset(r->buf, 0, 1000);
		memset(theirs(r), i + 1, 1000);
		read = rdma(IBV_WR_RDMA_READ, &a, r, 1000);
		read.send_flags = 0;
		write = rdma(IBV_WR_RDMA_WRITE, &b, r, 1000);
		write.wr.rdma.remote_addr += 1000;
		write.send_flags |= IBV_SEND_FENCE;
		read.next = &write;
		post(r, r->a, &read);
		assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
		assert_memory_equal(theirs(r), theirs(r) + 1000, 1000);
	}
}

static void
window_of_type_1_opens_by_a_call(void **state)
{
	struct rig *r = *state;
	struct ibv_mw *mw = ibv_alloc_mw(r->pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {.wr_id = 9,
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {.mr = r->mr,
			.addr = (uintptr_t)theirs(r),
			.length = 64,
			.mw_access_flags = IBV_ACCESS_REMOTE_WRITE}};
	uint32_t old = mw->rkey;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;

	assert_int_equal(ibv_bind_mw(r->b, mw, &bind), 0);
	assert_int_not_equal(mw->rkey, old);
	assert_true(poll_for(r->cq, &wc));
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
	assert_int_equal(wc.wr_id, 9);
	wr = rdma(IBV_WR_RDMA_WRITE, &sge, r, 64);
	wr.wr.rdma.rkey = mw->rkey;
	post(r, r->a, &wr);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	wr.wr.rdma.remote_addr++;
	expect_failure(r, &wr, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dealloc_mw(mw), 0);
}

static void
unknown_lkey_is_a_local_protection_error(void **state)
{
	struct rig *r = *state;
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	wr = rdma(IBV_WR_RDMA_WRITE, &sge, r, 8);
	sge.lkey ^= 0x5500;
	expect_failure(r, &wr, IBV_WC_LOC_PROT_ERR);
}

static void
sge_beyond_its_region_is_a_local_protection_error(void **state)
{
	struct rig *r = *state;
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	wr = rdma(IBV_WR_RDMA_WRITE, &sge, r, BUF_SIZE + 1);
	expect_failure(r, &wr, IBV_WC_LOC_PROT_ERR);
}

static void
region_of_another_domain_is_a_local_protection_error(void **state)
{
	struct rig *r = *state;
	struct ibv_pd *pd = ibv_alloc_pd(r->ctx);
	struct ibv_mr *mr = ibv_reg_mr(pd, r->buf, 64, ALL_ACCESS);
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	wr = rdma(IBV_WR_RDMA_WRITE, &sge, r, 8);
	sge.lkey = mr->lkey;
	expect_failure(r, &wr, IBV_WC_LOC_PROT_ERR);
	ibv_dereg_mr(mr);
	ibv_dealloc_pd(pd);
}

static void
unknown_rkey_is_a_remote_access_error(void **state)
{
	struct rig *r = *state;
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	wr = rdma(IBV_WR_RDMA_WRITE, &sge, r, 8);
	wr.wr.rdma.rkey ^= 0x5500;
	expect_failure(r, &wr, IBV_WC_REM_ACCESS_ERR);
}

static void
rkey_of_a_gone_region_is_a_remote_access_error(void **state)
{
	struct rig *r = *state;
	struct ibv_mr *mr = ibv_reg_mr(r->pd, r->buf, BUF_SIZE, ALL_ACCESS);
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	wr = rdma(IBV_WR_RDMA_READ, &sge, r, 8);
	wr.wr.rdma.rkey = mr->rkey;
	ibv_dereg_mr(mr);
	expect_failure(r, &wr, IBV_WC_REM_ACCESS_ERR);
}

static void
right_that_the_region_lacks_is_a_remote_access_error(void **state)
{
	struct rig *r = *state;
	struct ibv_mr *mr = ibv_reg_mr(r->pd, r->buf, BUF_SIZE, IBV_ACCESS_REMOTE_READ);
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	wr = rdma(IBV_WR_RDMA_READ, &sge, r, 8);
	wr.wr.rdma.rkey = mr->rkey;
	post(r, r->a, &wr);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	wr.opcode = IBV_WR_RDMA_WRITE;
	expect_failure(r, &wr, IBV_WC_REM_ACCESS_ERR);
	ibv_dereg_mr(mr);
}

static void
unaligned_atomic_is_a_remote_invalid_request(void **state)
{
	struct rig *r = *state;
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	wr = make_wr(IBV_WR_ATOMIC_FETCH_AND_ADD, &sge, r, r->buf, 8);
	wr.wr.atomic.remote_addr = (uintptr_t)theirs(r) + 4;
	wr.wr.atomic.rkey = r->mr->rkey;
	expect_failure(r, &wr, IBV_WC_REM_INV_REQ_ERR);
}

static void
message_longer_than_the_receive_fails_on_both_sides(void **state)
{
	struct rig *r = *state;
	struct ibv_wc wc;
	int i;

	assert_int_equal(post_recv(r, r->b, 1, theirs(r), 7), 0);
	assert_int_equal(post_send(r, r->a, 2, IBV_WR_SEND, r->buf, 8), 0);
	for (i = 0; i < 2; i++) {
		assert_true(poll_for(r->cq, &wc));
		if (wc.qp_num == r->b->qp_num)
			assert_int_equal(wc.status, IBV_WC_LOC_LEN_ERR);
		else
			assert_int_equal(wc.status, IBV_WC_REM_INV_REQ_ERR);
	}
	assert_int_equal(state_of(r->a), IBV_QPS_ERR);
	assert_int_equal(state_of(r->b), IBV_QPS_ERR);
}

static void
receiver_that_is_never_ready_ends_the_retries(void **state)
{
	struct rig *r = *state;
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	wr = make_wr(IBV_WR_SEND, &sge, r, r->buf, 8);
	expect_failure(r, &wr, IBV_WC_RNR_RETRY_EXC_ERR);
}

static void
receive_that_is_posted_late_is_used(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .min_rnr_timer = 14}; /* 1.28 ms */
	struct ibv_qp *c = make_qp(r, NULL, NULL), *d = make_qp(r, NULL, NULL);
	struct ibv_qp_attr rts;
	struct ibv_wc wc;
	int mask, i;

	step(r, c, IBV_QPS_INIT, NULL);
	step(r, c, IBV_QPS_RTR, d);
	attr_for(r, IBV_QPS_RTS, d, &rts, &mask);
	rts.rnr_retry = 7; /* for ever */
	assert_int_equal(ibv_modify_qp(c, &rts, mask), 0);
	connect_qp(r, d, c);
	assert_int_equal(ibv_modify_qp(d, &attr, IBV_QP_MIN_RNR_TIMER), 0);
	assert_int_equal(post_send(r, c, 1, IBV_WR_SEND, r->buf, 8), 0);
	expect_no_completion(r->cq);
	assert_int_equal(post_recv(r, d, 2, theirs(r), 8), 0);
	for (i = 0; i < 2; i++) {
		assert_true(poll_for(r->cq, &wc));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	ibv_destroy_qp(c);
	ibv_destroy_qp(d);
}

static void
peer_that_is_gone_ends_the_retries(void **state)
{
	struct rig *r = *state;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_qp *c = make_qp(r, NULL, NULL), *a = r->a;
	struct ibv_qp_attr rts;
	int mask;

	step(r, c, IBV_QPS_INIT, NULL);
	step(r, c, IBV_QPS_RTR, r->b);
	attr_for(r, IBV_QPS_RTS, r->b, &rts, &mask);
	rts.timeout = 8; /* about a millisecond */
	rts.retry_cnt = 2;
	assert_int_equal(ibv_modify_qp(c, &rts, mask), 0);
	assert_int_equal(ibv_destroy_qp(r->b), 0);
	r->b = NULL;
	wr = rdma(IBV_WR_RDMA_WRITE, &sge, r, 8);
	r->a = c;
	expect_failure(r, &wr, IBV_WC_RETRY_EXC_ERR);
	r->a = a;
	assert_int_equal(ibv_destroy_qp(c), 0);
}

static void
requests_behind_a_failed_one_are_flushed_in_order(void **state)
{
	struct rig *r = *state;
	struct ibv_send_wr wr[5];
	struct ibv_sge sge[5];
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 5; i++) {
		wr[i] = rdma(IBV_WR_RDMA_WRITE, &sge[i], r, 8);
		wr[i].wr_id = (uint64_t)i;
		wr[i].send_flags =
			i < 3 ? IBV_SEND_SIGNALED : 0; /* flushed ones complete in any case */
		wr[i].next = i < 4 ? &wr[i + 1] : NULL;
	}
	wr[1].wr.rdma.rkey ^= 0x5500;
	post(r, r->a, wr);
	for (i = 0; i < 5; i++) {
		assert_true(poll_for(r->cq, &wc));
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.status, i == 0   ? IBV_WC_SUCCESS
					    : i == 1 ? IBV_WC_REM_ACCESS_ERR
						     : IBV_WC_WR_FLUSH_ERR);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_PAIR(message_fills_several_receive_sges),
		TEST_PAIR(message_of_many_packets_arrives_whole),
		TEST_PAIR(empty_operations_succeed),
		TEST_PAIR(fenced_request_sees_what_was_read_before),
		TEST_PAIR(window_of_type_1_opens_by_a_call),
		TEST_PAIR(unknown_lkey_is_a_local_protection_error),
		TEST_PAIR(sge_beyond_its_region_is_a_local_protection_error),
		TEST_PAIR(region_of_another_domain_is_a_local_protection_error),
		TEST_PAIR(unknown_rkey_is_a_remote_access_error),
		TEST_PAIR(rkey_of_a_gone_region_is_a_remote_access_error),
		TEST_PAIR(right_that_the_region_lacks_is_a_remote_access_error),
		TEST_PAIR(unaligned_atomic_is_a_remote_invalid_request),
		TEST_PAIR(message_longer_than_the_receive_fails_on_both_sides),
		TEST_PAIR(receiver_that_is_never_ready_ends_the_retries),
		TEST_PAIR(receive_that_is_posted_late_is_used),
		TEST_PAIR(peer_that_is_gone_ends_the_retries),
		TEST_PAIR(requests_behind_a_failed_one_are_flushed_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
