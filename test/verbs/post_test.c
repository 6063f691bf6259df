/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting: what is refused and by which errno, what of a list is posted before it, and how full the
 * queues get.
 */
#include <stdlib.h>

#include "verbs_util.h"

static struct ibv_qp *
make_small_qp(struct rig *r)
{
	struct ibv_qp_cap cap = {.max_send_wr = 4,
		.max_recv_wr = 4,
		.max_send_sge = 2,
		.max_recv_sge = 2,
		.max_inline_data = 32};

	return make_qp(r, &cap, NULL);
}

/* Posts to a queue pair in RTR a copy of which never leaves: nothing is sent before RTS, so entries
 * stay. */
static uint32_t
fill_recv(struct rig *r, struct ibv_qp *qp, int *rc)
{
	uint32_t n = 0;

	while (!(*rc = post_recv(r, qp, n, r->buf, 1)) && n < 100000)
		n++;
	return n;
}

static void
receive_queue_takes_what_was_granted_and_no_more(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint32_t n;
	int rc;

	r->a = make_small_qp(r);
	step(r, r->a, IBV_QPS_INIT, NULL);
	ibv_query_qp(r->a, &attr, 0, &init);
	n = fill_recv(r, r->a, &rc);
	assert_int_equal(rc, ENOMEM);
	assert_int_equal(n, init.cap.max_recv_wr);
}

/* The peer is not ready to receive and never will be: requests stay in the queue. */
static void
send_queue_takes_what_was_granted_and_no_more(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	uint32_t n = 0;
	int rc;

	r->a = make_small_qp(r);
	r->b = make_small_qp(r);
	connect_qp(r, r->a, r->b);
	ibv_query_qp(r->a, &attr, 0, &init);
	while (!(rc = post_send(r, r->a, n, IBV_WR_SEND, r->buf, 1)) && n < 100000)
		n++;
	assert_int_equal(rc, ENOMEM);
	assert_int_equal(n, init.cap.max_send_wr);
}

static void
max_qp_wr_sends_fit(void **state)
{
	struct rig *r = *state;
	struct ibv_device_attr dev;
	struct ibv_qp_cap cap = {.max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
	int i;

	ibv_query_device(r->ctx, &dev);
	cap.max_send_wr = (uint32_t)dev.max_qp_wr;
	r->a = make_qp(r, &cap, NULL);
	r->b = make_small_qp(r);
	connect_qp(r, r->a, r->b);
	for (i = 0; i < dev.max_qp_wr; i++)
		assert_int_equal(post_send(r, r->a, 0, IBV_WR_SEND, r->buf, 1), 0);
}

static void
entry_is_free_once_its_completion_was_polled(void **state)
{
	struct rig *r = *state;
	int i, k, depth = 64;

	for (i = 0; i < 10; i++) {
		for (k = 0; k < depth; k++)
			assert_int_equal(post_send(r, r->a, 0, IBV_WR_RDMA_WRITE, r->buf, 1), 0);
		for (k = 0; k < depth; k++)
			assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	}
}

static void
what_stands_before_a_bad_request_is_sent(void **state)
{
	struct rig *r = *state;
	struct ibv_send_wr wr[4], *bad = NULL;
	struct ibv_sge sge[4];
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 4; i++) {
		wr[i] = make_wr(IBV_WR_RDMA_WRITE, &sge[i], r, r->buf, 8);
		wr[i].wr.rdma.remote_addr = (uintptr_t)r->buf + BUF_SIZE / 2;
		wr[i].wr.rdma.rkey = r->mr->rkey;
		wr[i].wr_id = (uint64_t)i;
		wr[i].next = i < 3 ? &wr[i + 1] : NULL;
	}
	wr[2].num_sge = 1000;
	assert_int_equal(ibv_post_send(r->a, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[2]);
	for (i = 0; i < 2; i++) {
		assert_true(poll_for(r->cq, &wc));
		assert_int_equal(wc.wr_id, i);
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
	}
	expect_no_completion(r->cq);
}

static void
what_stands_before_a_bad_receive_is_posted(void **state)
{
	struct rig *r = *state;
	struct ibv_sge sge = {.addr = (uintptr_t)r->buf, .length = 1, .lkey = r->mr->lkey};
	struct ibv_recv_wr wr[3], *bad = NULL;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 3; i++)
		wr[i] = (struct ibv_recv_wr){.wr_id = (uint64_t)i,
			.next = i < 2 ? &wr[i + 1] : NULL,
			.sg_list = &sge,
			.num_sge = i == 1 ? 1000 : 1};
	assert_int_equal(ibv_post_recv(r->b, wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr[1]);
	step(r, r->b, IBV_QPS_ERR, NULL);
	assert_true(poll_for(r->cq, &wc));
	assert_int_equal(wc.wr_id, 0);
	expect_no_completion(r->cq);
}

static int
post_one(struct rig *r, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad = NULL;
	int rc = ibv_post_send(r->a, wr, &bad);

	assert_ptr_equal(bad, rc ? wr : NULL);
	return rc;
}

static void
bad_requests_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_send_wr good, wr;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_sge sge[64];

	ibv_query_qp(r->a, &attr, 0, &init);
	good = make_wr(IBV_WR_SEND, sge, r, r->buf, 8);
	wr = good;
	wr.num_sge = (int)init.cap.max_send_sge + 1;
	expect_errno(post_one(r, &wr), EINVAL);
	wr.num_sge = -1;
	expect_errno(post_one(r, &wr), EINVAL);
	wr = good;
	wr.opcode = (enum ibv_wr_opcode)200;
	expect_errno(post_one(r, &wr), EINVAL);
	wr.opcode = IBV_WR_TSO;
	expect_errno(post_one(r, &wr), EINVAL);
	wr = good;
	wr.send_flags |= 1u << 20;
	expect_errno(post_one(r, &wr), EINVAL);
	wr = good;
	wr.send_flags |= IBV_SEND_INLINE;
	sge[0].length = init.cap.max_inline_data + 1;
	expect_errno(post_one(r, &wr), EINVAL);
	wr.opcode = IBV_WR_RDMA_READ;
	sge[0].length = 8;
	expect_errno(post_one(r, &wr), EINVAL);
	wr = good;
	sge[0].length = 0x80000000;
	sge[1] = sge[0];
	wr.num_sge = 2;
	expect_errno(post_one(r, &wr), EINVAL);
	expect_no_completion(r->cq);
	assert_int_equal(state_of(r->a), IBV_QPS_RTS);
}

static void
posting_below_the_right_state_is_refused(void **state)
{
	struct rig *r = *state;

	r->a = make_small_qp(r);
	expect_errno(post_recv(r, r->a, 0, r->buf, 1), EINVAL);
	expect_errno(post_send(r, r->a, 0, IBV_WR_SEND, r->buf, 1), EINVAL);
	step(r, r->a, IBV_QPS_INIT, NULL);
	assert_int_equal(post_recv(r, r->a, 0, r->buf, 1), 0);
	expect_errno(post_send(r, r->a, 0, IBV_WR_SEND, r->buf, 1), EINVAL);
	step(r, r->a, IBV_QPS_RTR, r->a);
	expect_errno(post_send(r, r->a, 0, IBV_WR_SEND, r->buf, 1), EINVAL);
}

static void
error_state_flushes_what_is_there_and_what_comes(void **state)
{
	struct rig *r = *state;
	int i;

	for (i = 0; i < 5; i++)
		assert_int_equal(post_recv(r, r->a, 0, r->buf, 1), 0);
	step(r, r->a, IBV_QPS_ERR, NULL);
	for (i = 0; i < 5; i++)
		assert_int_equal(next_status(r->cq), IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(post_recv(r, r->a, 0, r->buf, 1), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(post_send(r, r->a, 0, IBV_WR_SEND, r->buf, 1), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_WR_FLUSH_ERR);
	expect_no_completion(r->cq);
}

static void
reset_drops_what_is_there(void **state)
{
	struct rig *r = *state;

	assert_int_equal(post_recv(r, r->a, 0, r->buf, 1), 0);
	step(r, r->a, IBV_QPS_RESET, NULL);
	expect_no_completion(r->cq);
}

/* Those of other queue pairs stay, in order. */
static void
reset_drops_completions_that_were_not_polled(void **state)
{
	struct rig *r = *state;
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 4; i++) {
		assert_int_equal(post_recv(r, r->a, 10 + i, r->buf, 1), 0);
		assert_int_equal(post_recv(r, r->b, 20 + i, r->buf, 1), 0);
	}
	/* An entry of each is polled, so that the ring is in use; the others are flushed in turns.
	 */
	step(r, r->a, IBV_QPS_ERR, NULL);
	assert_true(poll_for(r->cq, &wc) && wc.wr_id == 10);
	step(r, r->b, IBV_QPS_ERR, NULL);
	assert_int_equal(post_recv(r, r->a, 14, r->buf, 1), 0);
	assert_int_equal(post_recv(r, r->b, 24, r->buf, 1), 0);
	assert_int_equal(post_recv(r, r->a, 15, r->buf, 1), 0);
	step(r, r->a, IBV_QPS_RESET, NULL);
	for (i = 0; i < 5; i++) {
		assert_true(poll_for(r->cq, &wc));
		assert_int_equal(wc.wr_id, 20 + i);
		assert_int_equal(wc.qp_num, r->b->qp_num);
	}
	expect_no_completion(r->cq);
}

static void
inline_data_can_be_changed_at_once(void **state)
{
	struct rig *r = *state;
	struct ibv_send_wr wr;
	struct ibv_sge sge[2];
	char local[2][32] = {"inline ", "data"};

	assert_int_equal(post_recv(r, r->b, 0, r->buf, 64), 0);
	wr = make_wr(IBV_WR_SEND, sge, r, local[0], 7);
	sge[1] = (struct ibv_sge){.addr = (uintptr_t)local[1], .length = 5};
	sge[0].lkey = 0; /* not looked at */
	wr.num_sge = 2;
	wr.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
	assert_int_equal(post_one(r, &wr), 0);
	memset(local, 'x', sizeof(local));
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_string_equal(r->buf, "inline data");
}

static void
inline_data_up_to_what_was_granted_fits(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_send_wr wr;
	struct ibv_sge sge;

	ibv_query_qp(r->a, &attr, 0, &init);
	memset(r->buf, 'i', init.cap.max_inline_data);
	wr = make_wr(IBV_WR_RDMA_WRITE, &sge, r, r->buf, init.cap.max_inline_data);
	wr.send_flags |= IBV_SEND_INLINE;
	wr.wr.rdma.remote_addr = (uintptr_t)r->buf + BUF_SIZE / 2;
	wr.wr.rdma.rkey = r->mr->rkey;
	assert_int_equal(post_one(r, &wr), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_memory_equal(r->buf, r->buf + BUF_SIZE / 2, init.cap.max_inline_data);
	sge.length++;
	expect_errno(post_one(r, &wr), EINVAL);
}

static void
unsignalled_requests_complete_in_silence(void **state)
{
	struct rig *r = *state;
	struct ibv_send_wr wr;
	struct ibv_sge sge;
	struct ibv_wc wc;
	int i;

	wr = make_wr(IBV_WR_RDMA_WRITE, &sge, r, r->buf, 1);
	wr.wr.rdma.remote_addr = (uintptr_t)r->buf + BUF_SIZE / 2;
	wr.wr.rdma.rkey = r->mr->rkey;
	for (i = 0; i < 10; i++) {
		wr.wr_id = (uint64_t)i;
		wr.send_flags = i == 9 ? IBV_SEND_SIGNALED : 0;
		assert_int_equal(post_one(r, &wr), 0);
	}
	assert_true(poll_for(r->cq, &wc));
	assert_int_equal(wc.wr_id, 9);
	expect_no_completion(r->cq);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_DEVICE(receive_queue_takes_what_was_granted_and_no_more),
		TEST_DEVICE(send_queue_takes_what_was_granted_and_no_more),
		TEST_DEVICE(max_qp_wr_sends_fit),
		TEST_PAIR(entry_is_free_once_its_completion_was_polled),
		TEST_PAIR(what_stands_before_a_bad_request_is_sent),
		TEST_PAIR(what_stands_before_a_bad_receive_is_posted),
		TEST_PAIR(bad_requests_are_refused),
		TEST_DEVICE(posting_below_the_right_state_is_refused),
		TEST_PAIR(error_state_flushes_what_is_there_and_what_comes),
		TEST_PAIR(reset_drops_what_is_there),
		TEST_PAIR(reset_drops_completions_that_were_not_polled),
		TEST_PAIR(inline_data_can_be_changed_at_once),
		TEST_PAIR(inline_data_up_to_what_was_granted_fits),
		TEST_PAIR(unsignalled_requests_complete_in_silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
