/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Unreliable connections: what arrives completes, what does not is nobody's error.
 */
#include "verbs_util.h"

static struct ibv_qp *
uc_qp(struct rig *r)
{
	struct ibv_qp_init_attr init = {
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2},
		.qp_type = IBV_QPT_UC,
	};
	struct ibv_qp *qp = ibv_create_qp(r->pd, &init);

	assert_non_null(qp);
	return qp;
}

static void
connect_uc(struct rig *r, struct ibv_qp *qp, struct ibv_qp *peer)
{
	struct ibv_qp_attr attr;
	int mask;

	step(r, qp, IBV_QPS_INIT, peer);
	attr_for(r, IBV_QPS_RTR, peer, &attr, &mask);
	assert_int_equal(ibv_modify_qp(qp, &attr,
				 mask & ~(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)),
		0);
	attr_for(r, IBV_QPS_RTS, peer, &attr, &mask);
	/* No reliability, so no retries to set. */
	expect_errno(ibv_modify_qp(qp, &attr, mask), EINVAL);
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static int
open_uc(void **state)
{
	struct rig *r;

	rig_open(state);
	r = *state;
	r->a = uc_qp(r);
	r->b = uc_qp(r);
	connect_uc(r, r->a, r->b);
	connect_uc(r, r->b, r->a);
	return 0;
}

#define TEST_UC(name) cmocka_unit_test_setup_teardown(name, open_uc, rig_close)

static void
send_of_many_packets_arrives(void **state)
{
	struct rig *r = *state;
	char *at = r->buf + BUF_SIZE / 2;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 5000; i++)
		r->buf[i] = (char)(i * 13);
	assert_int_equal(post_recv(r, r->b, 2, at, 8192), 0);
	assert_int_equal(post_send(r, r->a, 1, IBV_WR_SEND, r->buf, 5000), 0);
	for (i = 0; i < 2; i++) {
		assert_true(poll_for(r->cq, &wc));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.wr_id == 2)
			assert_int_equal(wc.byte_len, 5000);
	}
	assert_memory_equal(at, r->buf, 5000);
}

static void
write_arrives(void **state)
{
	struct rig *r = *state;

	memcpy(r->buf, "unreliable", 10);
	assert_int_equal(post_send(r, r->a, 1, IBV_WR_RDMA_WRITE, r->buf, 10), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	expect_no_completion(r->cq);
	assert_memory_equal(r->buf + BUF_SIZE / 2, "unreliable", 10);
}

static void
send_without_receive_succeeds_and_is_lost(void **state)
{
	struct rig *r = *state;

	assert_int_equal(post_send(r, r->a, 1, IBV_WR_SEND, r->buf, 10), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_int_equal(post_recv(r, r->b, 2, r->buf, 10), 0);
	expect_no_completion(r->cq);
	assert_int_equal(state_of(r->b), IBV_QPS_RTS);
}

static void
read_and_atomics_are_refused(void **state)
{
	struct rig *r = *state;

	expect_errno(post_send(r, r->a, 1, IBV_WR_RDMA_READ, r->buf, 8), EINVAL);
	expect_errno(post_send(r, r->a, 1, IBV_WR_ATOMIC_FETCH_AND_ADD, r->buf, 8), EINVAL);
	expect_errno(post_send(r, r->a, 1, IBV_WR_SEND_WITH_INV, r->buf, 8), EINVAL);
}

static void
bad_key_at_the_sender_stops_its_send_queue_only(void **state)
{
	struct rig *r = *state;
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	wr = make_wr(IBV_WR_SEND, &sge, r, r->buf, 8);
	sge.lkey ^= 1;
	assert_int_equal(ibv_post_send(r->a, &wr, &bad), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(state_of(r->a), IBV_QPS_SQE);
	assert_int_equal(post_send(r, r->a, 1, IBV_WR_SEND, r->buf, 8), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(post_recv(r, r->a, 2, r->buf, 16), 0);
	assert_int_equal(post_send(r, r->b, 1, IBV_WR_SEND, r->buf, 8), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_UC(send_of_many_packets_arrives),
		TEST_UC(write_arrives),
		TEST_UC(send_without_receive_succeeds_and_is_lost),
		TEST_UC(read_and_atomics_are_refused),
		TEST_UC(bad_key_at_the_sender_stops_its_send_queue_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
