/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completer: acknowledgements, NAKs, responses and silence, and what the requester makes of
 * them.
 */
#include <stdlib.h>
#include <string.h>

#include "roce_rig.h"

#define T(timeout) (4096ull << (timeout))

/* A response with payload. */
static void
respond(struct rig *r, uint8_t opcode, uint32_t psn, const void *p, uint32_t len)
{
	struct frame f = rig_packet(r, opcode, psn);

	f.syndrome = 0x1f;
	f.payload = p;
	f.len = len;
	f.pad = -len & 3;
	rig_receive(r, &f);
}

static void
one_ack_completes_all_before_it(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	for (unsigned int i = 0; i < 4; i++)
		rig_post(r, VRB_WR_SEND, i, 1, 0);
	rig_send(r);
	rig_ack(r, 0x1f, RIG_SQ_PSN + 2);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->wr_id, i);
	rig_expect_empty(r, r->scq);
	rig_free(r);
}

static void
acks_of_the_past_and_of_the_future_are_ignored(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	rig_post(r, VRB_WR_SEND, 0, 1, 0);
	rig_post(r, VRB_WR_SEND, 1, 1, 0);
	rig_send(r);
	rig_ack(r, 0x1f, RIG_SQ_PSN + 2); /* never sent */
	rig_ack(r, 0x1f, RIG_SQ_PSN - 1);
	rig_ack(r, 0x62, RIG_SQ_PSN + 2);
	rig_ack(r, 0x62, RIG_SQ_PSN - 1);
	rig_ack(r, 0x60, RIG_SQ_PSN + 7);
	rig_expect_empty(r, r->scq);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_RTS);
	rig_ack(r, 0x1f, RIG_SQ_PSN);
	rig_ack(r, 0x1f, RIG_SQ_PSN); /* once more */
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	rig_expect_empty(r, r->scq);
	rig_free(r);
}

static void
msn_is_ignored(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = rig_packet(r, OP_ACK, RIG_SQ_PSN);

	rig_post(r, VRB_WR_SEND, 0, 1, 0);
	rig_send(r);
	f.syndrome = 0x1f;
	f.msn = 0x654321;
	rig_receive(r, &f);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	rig_free(r);
}

/* Status of the failed one, of those before it, and of those behind it. */
static void
error_nak(uint8_t syndrome, enum vrb_wc_status status)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	for (unsigned int i = 0; i < 4; i++)
		rig_post(r, VRB_WR_SEND, i, 1, 0);
	rig_send(r);
	rig_ack(r, syndrome, RIG_SQ_PSN + 1);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->wr_id, 0);
	assert_int_equal(rig_poll(r, r->scq, status)->wr_id, 1);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_WR_FLUSH_ERR)->wr_id, 2);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_WR_FLUSH_ERR)->wr_id, 3);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_ERR);
	/* What is posted from now on is flushed. */
	rig_post(r, VRB_WR_RDMA_WRITE, 9, 1, 0);
	rig_post_recv(r, 11, 1);
	vrb_engine_ring(r->qp);
	r->next_frame = r->n_frames;
	rig_expect_silence(r);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_WR_FLUSH_ERR)->wr_id, 9);
	assert_int_equal(rig_poll(r, r->rcq, VRB_WC_WR_FLUSH_ERR)->wr_id, 11);
	assert_int_equal(vrb_engine_deadline(r->e), UINT64_MAX);
	rig_free(r);
}

static void
nak_61_is_invalid_request(void **state)
{
	error_nak(0x61, VRB_WC_REM_INV_REQ_ERR);
}

static void
nak_62_is_remote_access(void **state)
{
	error_nak(0x62, VRB_WC_REM_ACCESS_ERR);
}

static void
nak_63_is_remote_operation(void **state)
{
	error_nak(0x63, VRB_WC_REM_OP_ERR);
}

static void
nak_64_is_remote_operation(void **state)
{
	error_nak(0x64, VRB_WC_REM_OP_ERR);
}

static void
failed_unsignalled_work_is_reported(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	for (unsigned int i = 0; i < 3; i++) {
		struct vrb_send_wqe *w = rig_wqe(r, VRB_WR_SEND, i, 1, 0);

		w->flags = 0;
		rig_commit(r, w);
	}
	rig_send(r);
	rig_ack(r, 0x62, RIG_SQ_PSN + 1);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_REM_ACCESS_ERR)->wr_id, 1);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_WR_FLUSH_ERR)->wr_id, 2);
	rig_free(r);
}

/* Go-back-N from the NAK's PSN, in the middle of the message. */
static void
sequence_nak_goes_back(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.mtu = VRB_MTU_256});

	rig_post(r, VRB_WR_RDMA_WRITE, 0, 1000, 0);
	rig_post(r, VRB_WR_SEND, 0, 1, 0);
	rig_send(r);
	r->next_frame = r->n_frames;
	rig_ack(r, 0x60, RIG_SQ_PSN + 2);
	assert_memory_equal(
		rig_expect(r, OP_WRITE_MIDDLE, RIG_SQ_PSN + 2)->payload, r->mem + 512, 256);
	rig_expect(r, OP_WRITE_LAST, RIG_SQ_PSN + 3);
	rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN + 4);
	rig_expect_silence(r);
	assert_int_equal(vrb_engine_stats(r->e)->retransmitted, 3);
	assert_int_equal(vrb_engine_stats(r->e)->timeouts, 0);
	rig_free(r);
}

static void
timeout_repeats_from_the_oldest(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.mtu = VRB_MTU_256, .timeout = 14});
	uint64_t start = r->now;

	rig_post(r, VRB_WR_RDMA_WRITE, 0, 1000, 0);
	rig_send(r);
	r->next_frame = r->n_frames;
	r->now = start + T(14) - 1;
	rig_expect_silence(r);
	r->now = start + T(14) * 4;
	rig_expect(r, OP_WRITE_FIRST, RIG_SQ_PSN);
	assert_int_equal(rig_send(r), 3);
	assert_int_equal(vrb_engine_stats(r->e)->timeouts, 1);
	rig_free(r);
}

/* IBTA 9.7.6.1.3: between one and four times the nominal time, for each value. */
static void
timeout_values(void **state)
{
	for (uint8_t t = 1; t < 32; t++) {
		struct rig *r = rig_new(&(struct rig_conf){.timeout = t});
		uint64_t start = r->now, deadline;

		rig_post(r, VRB_WR_SEND, 0, 1, 0);
		rig_send(r);
		deadline = vrb_engine_deadline(r->e);
		assert_in_range(deadline - start, T(t), 4 * T(t));
		rig_free(r);
	}
}

static void
timeout_zero_is_no_timer(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.timeout = 0});

	rig_post(r, VRB_WR_SEND, 0, 1, 0);
	rig_take(r);
	assert_int_equal(vrb_engine_deadline(r->e), UINT64_MAX);
	r->now += 1000ull * 1000000000;
	rig_expect_silence(r);
	rig_free(r);
}

/* CONVENTIONS: retry_cnt n gives n retransmissions, then the error. */
static void
retry_count(uint8_t given, unsigned int want)
{
	struct rig *r = rig_new(&(struct rig_conf){.timeout = 14, .retry_cnt = given});
	unsigned int sent = 0;

	rig_post(r, VRB_WR_SEND, 1, 1, 0);
	rig_post(r, VRB_WR_SEND, 2, 1, 0);
	while (vrb_qp_state(r->qp) == VRB_QPS_RTS) {
		rig_send(r);
		sent += (r->n_frames - r->next_frame) / 2;
		r->next_frame = r->n_frames;
		if (vrb_engine_deadline(r->e) != UINT64_MAX)
			rig_wait(r);
	}
	assert_int_equal(sent, want + 1);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_RETRY_EXC_ERR)->wr_id, 1);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_WR_FLUSH_ERR)->wr_id, 2);
	rig_free(r);
}

static void
retries_are_counted(void **state)
{
	retry_count(3, 3);
	retry_count(7, 7);
	retry_count(255, 0);
}

static void
progress_renews_the_retries(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.timeout = 14, .retry_cnt = 2});

	for (unsigned int i = 0; i < 10; i++)
		rig_post(r, VRB_WR_SEND, i, 1, 0);
	for (unsigned int i = 0; i < 10; i++) {
		rig_send(r);
		rig_wait(r);
		rig_send(r);
		rig_wait(r);
		rig_send(r);
		r->next_frame = r->n_frames;
		rig_ack(r, 0x1f, RIG_SQ_PSN + i);
		assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->wr_id, i);
	}
	rig_free(r);
}

/* IBTA table 46. */
static void
rnr_timer_values(void **state)
{
	static const double ms[32] = {655.36, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.16, 0.24,
		0.32, 0.48, 0.64, 0.96, 1.28, 1.92, 2.56, 3.84, 5.12, 7.68, 10.24, 15.36, 20.48,
		30.72, 40.96, 61.44, 81.92, 122.88, 163.84, 245.76, 327.68, 491.52};

	for (uint8_t t = 0; t < 32; t++) {
		struct rig *r = rig_new(&(struct rig_conf){.timeout = 20});
		uint64_t start = r->now, want = (uint64_t)(ms[t] * 1e6 + 0.5);

		rig_post(r, VRB_WR_SEND, 0, 1, 0);
		rig_take(r);
		rig_ack(r, 0x20 | t, RIG_SQ_PSN);
		rig_expect_silence(r);
		r->now = start + want - 1;
		rig_expect_silence(r);
		assert_in_range(vrb_engine_deadline(r->e), start + want, start + want + want / 8);
		rig_wait(r);
		rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN);
		rig_free(r);
	}
}

static void
rnr_retry_count(uint8_t given, unsigned int want)
{
	struct rig *r = rig_new(&(struct rig_conf){.timeout = 20, .rnr_retry = given});
	unsigned int sent = 0;

	rig_post(r, VRB_WR_SEND, 1, 1, 0);
	rig_post(r, VRB_WR_SEND, 2, 1, 0);
	while (vrb_qp_state(r->qp) == VRB_QPS_RTS && sent < 100) {
		rig_send(r);
		r->next_frame = r->n_frames;
		sent++;
		rig_ack(r, 0x21, RIG_SQ_PSN);
		r->now += 10000;
	}
	assert_int_equal(sent, want);
	if (want < 100) {
		assert_int_equal(rig_poll(r, r->scq, VRB_WC_RNR_RETRY_EXC_ERR)->wr_id, 1);
		assert_int_equal(rig_poll(r, r->scq, VRB_WC_WR_FLUSH_ERR)->wr_id, 2);
	}
	rig_free(r);
}

static void
rnr_retries_are_counted(void **state)
{
	rnr_retry_count(2, 3);
	rnr_retry_count(255, 1);
	rnr_retry_count(6, 7);
	rnr_retry_count(7, 100); /* for ever */
}

/* CONVENTIONS: rxe sends it for the packets behind an RNR NAKed one; it is no progress and no
 * reason to send. */
static void
sequence_nak_behind_rnr_nak_is_ignored(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.mtu = VRB_MTU_256, .timeout = 20});

	rig_post(r, VRB_WR_SEND, 0, 1000, 0);
	rig_send(r);
	r->next_frame = r->n_frames;
	rig_ack(r, 0x2c, RIG_SQ_PSN);
	rig_ack(r, 0x60, RIG_SQ_PSN);
	rig_expect_silence(r);
	rig_wait(r);
	rig_expect(r, OP_SEND_FIRST, RIG_SQ_PSN);
	rig_free(r);
}

static void
response_acknowledges_what_is_before_it(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	rig_post(r, VRB_WR_SEND, 0, 1, 0);
	rig_post(r, VRB_WR_RDMA_READ, 100, 5, 0);
	rig_send(r);
	respond(r, OP_RESP_ONLY, RIG_SQ_PSN + 1, "hello", 5);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->byte_len, 5);
	assert_memory_equal(r->mem + 100, "hello", 5);
	assert_int_equal(pattern_check(r->mem + 105, 100, 1, 105), -1);
	rig_free(r);
}

/* CONVENTIONS: an ACK does not complete past an unanswered READ; it tells that the response was
 * lost. */
static void
ack_past_a_read_asks_for_it_again(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.timeout = 14});

	rig_post(r, VRB_WR_RDMA_READ, 100, 5, 0);
	rig_post(r, VRB_WR_SEND, 0, 1, 0);
	rig_send(r);
	r->next_frame = r->n_frames;
	rig_ack(r, 0x1f, RIG_SQ_PSN + 1);
	rig_expect_empty(r, r->scq);
	rig_expect(r, OP_READ_REQ, RIG_SQ_PSN);
	r->next_frame = r->n_frames;
	rig_ack(r, 0x1f, RIG_SQ_PSN + 1); /* once is enough */
	rig_expect_silence(r);
	respond(r, OP_RESP_ONLY, RIG_SQ_PSN, "hello", 5);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	rig_ack(r, 0x1f, RIG_SQ_PSN + 1);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	assert_memory_equal(r->mem + 100, "hello", 5);
	rig_free(r);
}

static void
gap_in_a_read_is_asked_for_again(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.mtu = VRB_MTU_256, .timeout = 14});
	uint8_t buf[800];
	const struct frame *f;

	pattern_fill(buf, sizeof(buf), 3, 0);
	rig_post(r, VRB_WR_RDMA_READ, 0, 800, 0);
	rig_take(r);
	respond(r, OP_RESP_FIRST, RIG_SQ_PSN, buf, 256);
	respond(r, OP_RESP_MIDDLE, RIG_SQ_PSN + 2, buf + 512, 256);
	respond(r, OP_RESP_LAST, RIG_SQ_PSN + 3, buf + 768, 32);
	rig_expect_empty(r, r->scq);
	/* From the missing packet on; rxe then answers with Middle, others with First: both are
	 * good. */
	f = rig_expect(r, OP_READ_REQ, RIG_SQ_PSN + 1);
	assert_int_equal(f->va, 0x123456789000ull + 256);
	assert_int_equal(f->dmalen, 800 - 256);
	respond(r, OP_RESP_MIDDLE, RIG_SQ_PSN + 1, buf + 256, 256);
	respond(r, OP_RESP_MIDDLE, RIG_SQ_PSN + 2, buf + 512, 256);
	respond(r, OP_RESP_LAST, RIG_SQ_PSN + 3, buf + 768, 32);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	assert_memory_equal(r->mem, buf, 800);
	rig_free(r);
}

/* The peer may only be slow: it is asked for one READ again, and answers to all are welcome. */
static void
late_answers_to_reads_are_taken(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.timeout = 14, .max_rd_atomic = 4});

	for (unsigned int i = 0; i < 4; i++)
		rig_post(r, VRB_WR_RDMA_READ, 100 * i, 5, 0);
	assert_int_equal(rig_send(r), 4);
	r->next_frame = r->n_frames;
	rig_wait(r);
	rig_expect(r, OP_READ_REQ, RIG_SQ_PSN);
	rig_expect_silence(r);
	for (unsigned int i = 0; i < 3; i++) {
		respond(r, OP_RESP_ONLY, RIG_SQ_PSN + i, "hello", 5);
		assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->byte_len, 5);
		assert_memory_equal(r->mem + 100 * i, "hello", 5);
	}
	/* The last one was lost. */
	rig_expect(r, OP_READ_REQ, RIG_SQ_PSN + 3);
	respond(r, OP_RESP_ONLY, RIG_SQ_PSN, "again", 5);
	rig_expect_empty(r, r->scq);
	assert_memory_equal(r->mem, "hello", 5);
	respond(r, OP_RESP_ONLY, RIG_SQ_PSN + 3, "hello", 5);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	rig_free(r);
}

static void
repeated_read_may_start_with_first(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.mtu = VRB_MTU_256, .timeout = 14});
	uint8_t buf[600];

	pattern_fill(buf, sizeof(buf), 3, 0);
	rig_post(r, VRB_WR_RDMA_READ, 0, 600, 0);
	rig_take(r);
	respond(r, OP_RESP_FIRST, RIG_SQ_PSN, buf, 256);
	rig_wait(r);
	rig_expect(r, OP_READ_REQ, RIG_SQ_PSN + 1);
	respond(r, OP_RESP_FIRST, RIG_SQ_PSN + 1, buf + 256, 256);
	respond(r, OP_RESP_LAST, RIG_SQ_PSN + 2, buf + 512, 88);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	assert_memory_equal(r->mem, buf, 600);
	rig_free(r);
}

/* A response that comes again after its READ has completed must not be stored again: the memory is
 * the program's. */
static void
late_response_touches_nothing(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	rig_post(r, VRB_WR_RDMA_READ, 0, 5, 0);
	rig_take(r);
	respond(r, OP_RESP_ONLY, RIG_SQ_PSN, "hello", 5);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	memset(r->mem, 0, 5);
	rig_post(r, VRB_WR_RDMA_READ, 100, 5, 0);
	rig_take(r);
	respond(r, OP_RESP_ONLY, RIG_SQ_PSN, "hello", 5);
	assert_memory_equal(r->mem, "\0\0\0\0\0", 5);
	assert_int_equal(pattern_check(r->mem + 100, 5, 1, 100), -1);
	rig_free(r);
}

/* IBTA 9.9.2.4: a response that does not fit. */
static void
wrong_responses_end_the_queue_pair(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	rig_post(r, VRB_WR_RDMA_READ, 0, 5, 0);
	rig_take(r);
	respond(r, OP_RESP_ONLY, RIG_SQ_PSN, "hell", 4);
	rig_poll(r, r->scq, VRB_WC_BAD_RESP_ERR);
	assert_int_equal(pattern_check(r->mem, 100, 1, 0), -1);
	rig_free(r);
	r = rig_new(&(struct rig_conf){0});
	rig_post(r, VRB_WR_RDMA_READ, 0, 5, 0);
	rig_take(r);
	respond(r, OP_ATOMIC_ACK, RIG_SQ_PSN, NULL, 0);
	rig_poll(r, r->scq, VRB_WC_BAD_RESP_ERR);
	rig_free(r);
}

static void
read_into_a_region_without_local_write(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct vrb_send_wqe *w = rig_wqe(r, VRB_WR_RDMA_READ, 0, 5, 0);
	struct vrb_mr *mr;

	assert_int_equal(vrb_mr_reg(r->e, r->pd, (uintptr_t)r->mem, 4096, (uintptr_t)r->mem,
				 VRB_ACCESS_REMOTE_READ, &mr),
		0);
	((struct vrb_sge *)w->data)->lkey = mr->lkey;
	rig_commit(r, w);
	if (rig_send(r) > 0)
		respond(r, OP_RESP_ONLY, RIG_SQ_PSN, "hello", 5);
	rig_poll(r, r->scq, VRB_WC_LOC_PROT_ERR);
	assert_int_equal(pattern_check(r->mem, 100, 1, 0), -1);
	rig_free(r);
}

static void
solicited_only_arming(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	for (unsigned int i = 0; i < 4; i++)
		rig_post_recv(r, i, 0);
	for (unsigned int i = 0; i < 4; i++) {
		struct frame f = rig_packet(r, OP_SEND_ONLY, RIG_RQ_PSN + i);

		if (i == 0)
			vrb_cq_arm(r->rcq, true);
		f.se = i == 1;
		if (i == 3)
			vrb_cq_arm(r->rcq, false);
		rig_receive(r, &f);
		assert_int_equal(r->notified, i == 0 ? 0 : i < 3 ? 1 : 2);
	}
	/* An arming for any is not weakened, and an error counts as solicited. */
	vrb_cq_arm(r->rcq, true);
	rig_post_recv(r, 9, 0);
	assert_int_equal(vrb_qp_modify(r->qp, &(struct vrb_qp_attr){.state = VRB_QPS_ERR},
				 VRB_QP_STATE, r->now),
		0);
	assert_int_equal(r->notified, 3);
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_ack_completes_all_before_it),
		cmocka_unit_test(acks_of_the_past_and_of_the_future_are_ignored),
		cmocka_unit_test(msn_is_ignored),
		cmocka_unit_test(nak_61_is_invalid_request),
		cmocka_unit_test(nak_62_is_remote_access),
		cmocka_unit_test(nak_63_is_remote_operation),
		cmocka_unit_test(nak_64_is_remote_operation),
		cmocka_unit_test(failed_unsignalled_work_is_reported),
		cmocka_unit_test(sequence_nak_goes_back),
		cmocka_unit_test(timeout_repeats_from_the_oldest),
		cmocka_unit_test(timeout_values),
		cmocka_unit_test(timeout_zero_is_no_timer),
		cmocka_unit_test(retries_are_counted),
		cmocka_unit_test(progress_renews_the_retries),
		cmocka_unit_test(rnr_timer_values),
		cmocka_unit_test(rnr_retries_are_counted),
		cmocka_unit_test(sequence_nak_behind_rnr_nak_is_ignored),
		cmocka_unit_test(response_acknowledges_what_is_before_it),
		cmocka_unit_test(ack_past_a_read_asks_for_it_again),
		cmocka_unit_test(gap_in_a_read_is_asked_for_again),
		cmocka_unit_test(late_answers_to_reads_are_taken),
		cmocka_unit_test(repeated_read_may_start_with_first),
		cmocka_unit_test(late_response_touches_nothing),
		cmocka_unit_test(wrong_responses_end_the_queue_pair),
		cmocka_unit_test(read_into_a_region_without_local_write),
		cmocka_unit_test(solicited_only_arming),
	};

	return cmocka_run_group_tests_name("roce completer", tests, rig_group, NULL);
}
