/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester: which packets work requests become, when they may be sent, and when they ask for
 * an answer.
 */
#include <stdlib.h>
#include <string.h>

#include "roce_rig.h"

static void
send_becomes_only(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	const struct frame *f;

	rig_post(r, VRB_WR_SEND, 100, 1023, VRB_SEND_SOLICITED);
	f = rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN);
	assert_true(f->ackreq && f->se && f->icrc_ok && !f->migreq);
	assert_int_equal(f->pad, 1);
	assert_int_equal(f->len, 1023);
	assert_memory_equal(f->payload, r->mem + 100, 1023);
	assert_int_equal(f->payload[1023], 0);
	assert_int_equal(f->pkey, 0xffff);
	assert_int_equal(f->ttl, 64);
	rig_expect_empty(r, r->scq);
	rig_ack(r, 0x1f, RIG_SQ_PSN);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->opcode, VRB_WC_SEND);
	rig_free(r);
}

static void
write_of_three_packets(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.mtu = VRB_MTU_512});
	const struct frame *f;

	rig_post(r, VRB_WR_RDMA_WRITE, 7, 1200, VRB_SEND_SOLICITED);
	f = rig_expect(r, OP_WRITE_FIRST, RIG_SQ_PSN);
	assert_int_equal(f->va, 0x123456789000ull);
	assert_int_equal(f->rkey, 0x4567);
	assert_int_equal(f->dmalen, 1200);
	assert_int_equal(f->len, 512);
	assert_false(f->ackreq || f->se);
	f = rig_expect(r, OP_WRITE_MIDDLE, RIG_SQ_PSN + 1);
	assert_memory_equal(f->payload, r->mem + 7 + 512, 512);
	assert_false(f->ackreq || f->se);
	f = rig_expect(r, OP_WRITE_LAST, RIG_SQ_PSN + 2);
	assert_int_equal(f->len, 176);
	assert_true(f->ackreq && f->se);
	rig_expect_silence(r);
	/* An acknowledgement in the middle completes nothing. */
	rig_ack(r, 0x1f, RIG_SQ_PSN + 1);
	rig_expect_empty(r, r->scq);
	rig_ack(r, 0x1f, RIG_SQ_PSN + 2);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->opcode, VRB_WC_RDMA_WRITE);
	rig_free(r);
}

static void
immediate_data_and_keys_are_on_the_last_packet(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.mtu = VRB_MTU_256});
	struct vrb_send_wqe *w = rig_wqe(r, VRB_WR_SEND_WITH_IMM, 0, 300, 0);

	memcpy(&w->imm, "\xa5\0\0\7", 4); /* network order */
	rig_commit(r, w);
	rig_expect(r, OP_SEND_FIRST, RIG_SQ_PSN);
	assert_int_equal(rig_expect(r, OP_SEND_LAST_IMM, RIG_SQ_PSN + 1)->imm, 0xa5000007);
	w = rig_wqe(r, VRB_WR_SEND_WITH_INV, 0, 300, 0);
	w->imm = 0x8000123;
	rig_commit(r, w);
	rig_expect(r, OP_SEND_FIRST, RIG_SQ_PSN + 2);
	assert_int_equal(rig_expect(r, OP_SEND_LAST_INV, RIG_SQ_PSN + 3)->inv, 0x8000123);
	w = rig_wqe(r, VRB_WR_RDMA_WRITE_WITH_IMM, 0, 10, 0);
	memcpy(&w->imm, "\1\2\3\4", 4);
	rig_commit(r, w);
	assert_int_equal(rig_expect(r, OP_WRITE_ONLY_IMM, RIG_SQ_PSN + 4)->imm, 0x01020304);
	rig_free(r);
}

static void
zero_length_operations(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f;

	rig_post(r, VRB_WR_SEND, 0, 0, 0);
	assert_int_equal(rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN)->len, 0);
	rig_post(r, VRB_WR_RDMA_WRITE, 0, 0, 0);
	assert_int_equal(rig_expect(r, OP_WRITE_ONLY, RIG_SQ_PSN + 1)->dmalen, 0);
	rig_post(r, VRB_WR_RDMA_READ, 0, 0, 0);
	assert_int_equal(rig_expect(r, OP_READ_REQ, RIG_SQ_PSN + 2)->dmalen, 0);
	f = rig_packet(r, OP_RESP_ONLY, RIG_SQ_PSN + 2);
	f.syndrome = 0x1f;
	rig_receive(r, &f);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->byte_len, 0);
	rig_free(r);
}

static void
psn_wraps(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.mtu = VRB_MTU_256, .sq_psn = 0xfffffe});

	rig_post(r, VRB_WR_RDMA_WRITE, 0, 1000, 0);
	rig_expect(r, OP_WRITE_FIRST, 0xfffffe);
	rig_expect(r, OP_WRITE_MIDDLE, 0xffffff);
	rig_expect(r, OP_WRITE_MIDDLE, 0);
	rig_expect(r, OP_WRITE_LAST, 1);
	rig_ack(r, 0x60, 0); /* the third is missing */
	rig_expect(r, OP_WRITE_MIDDLE, 0);
	rig_expect(r, OP_WRITE_LAST, 1);
	rig_ack(r, 0x1f, 1);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	rig_free(r);
}

static void
gathers_pieces_of_odd_lengths(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.mtu = VRB_MTU_256});
	struct vrb_send_wqe *w = rig_wqe(r, VRB_WR_SEND, 0, 301, 0);
	struct vrb_sge *s = (struct vrb_sge *)w->data;
	uint8_t want[301];
	const struct frame *f;

	s[0] = (struct vrb_sge){(uintptr_t)r->mem + 1000, 1, r->mr->lkey};
	s[1] = (struct vrb_sge){(uintptr_t)r->mem + 3, 257, r->mr->lkey};
	s[2] = (struct vrb_sge){(uintptr_t)r->mem, 0, 0xdead}; /* of no length: not looked at */
	s[3] = (struct vrb_sge){(uintptr_t)r->mem + 5000, 43, r->mr->lkey};
	w->num_sge = 4;
	memcpy(want, r->mem + 1000, 1);
	memcpy(want + 1, r->mem + 3, 257);
	memcpy(want + 258, r->mem + 5000, 43);
	assert_int_equal(rig_commit(r, w), 0);
	f = rig_expect(r, OP_SEND_FIRST, RIG_SQ_PSN);
	assert_memory_equal(f->payload, want, 256);
	f = rig_expect(r, OP_SEND_LAST, RIG_SQ_PSN + 1);
	assert_memory_equal(f->payload, want + 256, 45);
	rig_free(r);
}

static void
inline_data_is_taken_at_posting(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	uint8_t want[200];
	const struct frame *f;

	memcpy(want, r->mem + 50, 200);
	rig_post(r, VRB_WR_RDMA_WRITE, 50, 200, VRB_SEND_INLINE);
	memset(r->mem, 0, 1000);
	f = rig_expect(r, OP_WRITE_ONLY, RIG_SQ_PSN);
	assert_int_equal(f->len, 200);
	assert_memory_equal(f->payload, want, 200);
	rig_free(r);
}

static void
posting_is_checked(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct vrb_send_wqe *w = rig_wqe(r, VRB_WR_OPCODES, 0, 0, 0);

	assert_int_equal(vrb_qp_check_send(r->qp, w), -EOPNOTSUPP);
	w->opcode = VRB_WR_SEND;
	w->num_sge = (uint8_t)(vrb_qp_sq(r->qp)->max_sge + 1);
	assert_int_equal(vrb_qp_check_send(r->qp, w), -EINVAL);
	w->num_sge = 1;
	w->length = VRB_MAX_MSG + 1u;
	assert_int_equal(vrb_qp_check_send(r->qp, w), -E2BIG);
	w->length = vrb_qp_sq(r->qp)->max_inline + 1;
	w->flags = VRB_SEND_INLINE;
	assert_int_equal(vrb_qp_check_send(r->qp, w), -E2BIG);
	w->length = 8;
	w->opcode = VRB_WR_RDMA_READ;
	assert_int_equal(vrb_qp_check_send(r->qp, w), -EINVAL);
	w->flags = 0;
	w->opcode = VRB_WR_ATOMIC_CMP_AND_SWP;
	assert_int_equal(vrb_qp_check_send(r->qp, w), 0);
	w->length = 4;
	assert_int_equal(vrb_qp_check_send(r->qp, w), -EINVAL);
	rig_free(r);
}

static void
queue_holds_what_it_says(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.depth = 5});
	struct vrb_sq *sq = vrb_qp_sq(r->qp);

	for (unsigned int round = 0; round < 5; round++) {
		for (unsigned int i = 0; i < sq->max_wr; i++)
			rig_post(r, VRB_WR_SEND, i, 1, 0);
		assert_null(vrb_sq_slot(sq, 0));
		for (unsigned int i = 0; i < sq->max_wr; i++)
			rig_take(r);
		rig_ack(r, 0x1f, RIG_SQ_PSN + sq->max_wr * (round + 1) - 1);
		for (unsigned int i = 0; i < sq->max_wr; i++)
			assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->wr_id, i);
	}
	rig_free(r);
}

/* CONVENTIONS: rxe stops after 128 packets; we after VRB_WINDOW, and ask in time. */
static void
window_is_not_exceeded(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.mtu = VRB_MTU_256});
	unsigned int asked = 0, gap = 0;

	rig_post(r, VRB_WR_RDMA_WRITE, 0, 400 * 256, 0);
	assert_int_equal(rig_send(r), VRB_WINDOW);
	for (unsigned int i = 0; i < VRB_WINDOW; i++) {
		const struct frame *f = rig_take(r);

		gap = f->ackreq ? 0 : gap + 1;
		asked += f->ackreq;
		assert_true(gap < VRB_ACK_EVERY);
		assert_true(f->ackreq || i + 1 < VRB_WINDOW);
	}
	assert_true(asked >= VRB_WINDOW / VRB_ACK_EVERY);
	rig_expect_silence(r);
	rig_ack(r, 0x1f, RIG_SQ_PSN + 9);
	assert_int_equal(rig_send(r), 10);
	rig_free(r);
}

/* A peer that cannot keep up would lose what is sent again as well. */
static void
window_is_narrow_after_a_timeout(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.mtu = VRB_MTU_256, .timeout = 14});
	uint32_t una = RIG_SQ_PSN, window = VRB_WINDOW_MIN;
	const struct frame *f;

	rig_post(r, VRB_WR_RDMA_WRITE, 0, 1000 * 256, 0);
	rig_send(r);
	r->next_frame = r->n_frames;
	r->now = vrb_engine_deadline(r->e);
	while (window < VRB_WINDOW) {
		assert_int_equal(rig_send(r), window);
		for (unsigned int i = 0; i < window; i++) {
			f = rig_take(r);
			assert_int_equal(f->psn, una + i);
			/* Half of it, so that the answer is on its way meanwhile. */
			if (i + 1 == window || (i + 1 == window / 2 && window < 2 * VRB_ACK_EVERY))
				assert_true(f->ackreq);
		}
		rig_expect_silence(r);
		una += window;
		rig_ack(r, 0x1f, una - 1);
		/* Some of what had been sent before may have arrived. */
		if (una >= RIG_SQ_PSN + VRB_WINDOW)
			window *= 2;
	}
	assert_int_equal(rig_send(r), VRB_WINDOW);
	rig_free(r);
}

static void
window_is_halved_by_a_sequence_nak(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.mtu = VRB_MTU_256});
	uint32_t window = VRB_WINDOW;

	rig_post(r, VRB_WR_RDMA_WRITE, 0, 1000 * 256, 0);
	rig_send(r);
	for (unsigned int i = 0; i < 8; i++) {
		r->next_frame = r->n_frames;
		rig_ack(r, 0x60, RIG_SQ_PSN + 1 + i);
		window = RTE_MAX(window / 2, (uint32_t)VRB_WINDOW_MIN);
		assert_int_equal(rig_send(r), window);
	}
	rig_free(r);
}

static void
reads_in_flight_are_limited(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.max_rd_atomic = 2});
	struct frame f;

	for (unsigned int i = 0; i < 3; i++)
		rig_post(r, VRB_WR_RDMA_READ, i * 8, 8, 0);
	rig_expect(r, OP_READ_REQ, RIG_SQ_PSN);
	rig_expect(r, OP_READ_REQ, RIG_SQ_PSN + 1);
	rig_expect_silence(r);
	f = rig_packet(r, OP_RESP_ONLY, RIG_SQ_PSN);
	f.syndrome = 0x1f;
	f.payload = (const uint8_t *)"responed";
	f.len = 8;
	rig_receive(r, &f);
	rig_expect(r, OP_READ_REQ, RIG_SQ_PSN + 2);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	assert_memory_equal(r->mem, "responed", 8);
	rig_free(r);
}

static void
read_with_depth_zero_fails_here(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.max_rd_atomic = 255});

	rig_post(r, VRB_WR_RDMA_READ, 0, 8, 0);
	rig_post(r, VRB_WR_SEND, 0, 8, 0);
	rig_expect_silence(r);
	rig_poll(r, r->scq, VRB_WC_LOC_QP_OP_ERR);
	rig_poll(r, r->scq, VRB_WC_WR_FLUSH_ERR);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_ERR);
	rig_free(r);
}

static void
long_read_is_asked_for_in_parts(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.mtu = VRB_MTU_256});
	const uint32_t len = (VRB_READ_CHUNK + 3) * 256 - 100;
	const struct frame *f;

	rig_post(r, VRB_WR_RDMA_READ, 0, len, 0);
	f = rig_expect(r, OP_READ_REQ, RIG_SQ_PSN);
	assert_int_equal(f->dmalen, VRB_READ_CHUNK * 256);
	f = rig_expect(r, OP_READ_REQ, RIG_SQ_PSN + VRB_READ_CHUNK);
	assert_int_equal(f->va, 0x123456789000ull + VRB_READ_CHUNK * 256);
	assert_int_equal(f->dmalen, len - VRB_READ_CHUNK * 256);
	rig_expect_silence(r);
	/* The next request comes after all PSNs of the READ. */
	rig_post(r, VRB_WR_SEND, 0, 1, 0);
	rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN + VRB_READ_CHUNK + 3);
	rig_free(r);
}

/* IBTA A19.4: a request with RETH and eight bytes, and a READ response of no length for it. */
static void
atomic_write_on_the_wire(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.max_rd_atomic = 2});
	struct vrb_send_wqe *w;
	const struct frame *f;
	struct frame a;
	unsigned int i;

	/* The value by an SGE, as inline data, and in the request itself. */
	memcpy(r->mem + 16, "by a sge", 8);
	assert_int_equal(rig_commit(r, rig_wqe(r, VRB_WR_ATOMIC_WRITE, 16, 8, 0)), 0);
	w = rig_wqe(r, VRB_WR_ATOMIC_WRITE, 0, 8, VRB_SEND_INLINE);
	memcpy(w->data, "inlined!", 8);
	assert_int_equal(rig_commit(r, w), 0);
	w = rig_wqe(r, VRB_WR_ATOMIC_WRITE, 0, 8, 0);
	w->num_sge = 0;
	memcpy(&w->atomic.swap, "a value!", 8);
	assert_int_equal(rig_commit(r, w), 0);
	f = rig_expect(r, OP_ATOMIC_WRITE, RIG_SQ_PSN);
	assert_int_equal(f->dmalen, 8);
	assert_int_equal(f->len, 8);
	assert_memory_equal(f->payload, "by a sge", 8);
	assert_true(f->ackreq);
	f = rig_expect(r, OP_ATOMIC_WRITE, RIG_SQ_PSN + 1);
	assert_memory_equal(f->payload, "inlined!", 8);
	/* They count as READs do. */
	rig_expect_silence(r);
	memset(r->mem, 0x77, 64);
	for (i = 0; i < 3; i++) {
		a = rig_packet(r, OP_RESP_ONLY, RIG_SQ_PSN + i);
		a.syndrome = 0x1f;
		rig_receive(r, &a);
		assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->opcode, VRB_WC_ATOMIC_WRITE);
		if (i == 0)
			assert_memory_equal(rig_expect(r, OP_ATOMIC_WRITE, RIG_SQ_PSN + 2)->payload,
				"a value!", 8);
	}
	/* Nothing is stored where the value came from. */
	for (i = 0; i < 64; i++)
		assert_int_equal(r->mem[i], 0x77);
	rig_free(r);
}

static void
atomic_write_is_of_eight_bytes_and_rc_only(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	assert_int_equal(rig_commit(r, rig_wqe(r, VRB_WR_ATOMIC_WRITE, 0, 4, 0)), -EINVAL);
	assert_int_equal(rig_commit(r, rig_wqe(r, VRB_WR_ATOMIC_WRITE, 0, 16, 0)), -EINVAL);
	rig_free(r);
	r = rig_new(&(struct rig_conf){.type = VRB_QPT_UC});
	assert_int_equal(rig_commit(r, rig_wqe(r, VRB_WR_ATOMIC_WRITE, 0, 8, 0)), -EOPNOTSUPP);
	rig_free(r);
}

static void
atomic_write_answered_with_data_is_a_bad_response(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame a;

	rig_post(r, VRB_WR_ATOMIC_WRITE, 0, 8, 0);
	rig_expect(r, OP_ATOMIC_WRITE, RIG_SQ_PSN);
	a = rig_packet(r, OP_RESP_ONLY, RIG_SQ_PSN);
	a.syndrome = 0x1f;
	a.payload = r->mem;
	a.len = 8;
	rig_receive(r, &a);
	rig_poll(r, r->scq, VRB_WC_BAD_RESP_ERR);
	rig_free(r);
}

static void
atomics_on_the_wire(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct vrb_send_wqe *w = rig_wqe(r, VRB_WR_ATOMIC_CMP_AND_SWP, 16, 8, 0);
	const struct frame *f;
	struct frame a;
	uint64_t old;

	w->atomic.compare_add = 0x1111;
	w->atomic.swap = 0x2222;
	assert_int_equal(rig_commit(r, w), 0);
	f = rig_expect(r, OP_CAS, RIG_SQ_PSN);
	assert_int_equal(f->compare, 0x1111);
	assert_int_equal(f->swap_add, 0x2222);
	assert_true(f->ackreq);
	w = rig_wqe(r, VRB_WR_ATOMIC_FETCH_AND_ADD, 24, 8, 0);
	w->atomic.compare_add = 5;
	assert_int_equal(rig_commit(r, w), 0);
	assert_int_equal(rig_expect(r, OP_FADD, RIG_SQ_PSN + 1)->swap_add, 5);
	for (unsigned int i = 0; i < 2; i++) {
		a = rig_packet(r, OP_ATOMIC_ACK, RIG_SQ_PSN + i);
		a.syndrome = 0x1f;
		a.orig = 0x0123456789abcdefull + i;
		rig_receive(r, &a);
	}
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->opcode, VRB_WC_COMP_SWAP);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->opcode, VRB_WC_FETCH_ADD);
	memcpy(&old, r->mem + 16, 8);
	assert_int_equal(old, 0x0123456789abcdefull);
	memcpy(&old, r->mem + 24, 8);
	assert_int_equal(old, 0x0123456789abcdf0ull);
	rig_free(r);
}

static void
fence_waits_for_reads(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f;

	rig_post(r, VRB_WR_RDMA_READ, 0, 4, 0);
	rig_post(r, VRB_WR_SEND, 0, 4, 0);
	rig_post(r, VRB_WR_SEND, 0, 4, VRB_SEND_FENCE);
	rig_expect(r, OP_READ_REQ, RIG_SQ_PSN);
	rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN + 1); /* without fence */
	rig_expect_silence(r);
	f = rig_packet(r, OP_RESP_ONLY, RIG_SQ_PSN);
	f.syndrome = 0x1f;
	f.len = 4;
	f.payload = (const uint8_t *)"abcd";
	rig_receive(r, &f);
	rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN + 2);
	rig_free(r);
}

/* IBTA 9.7.7.2: SENDs wait for credit, except one; WRITEs need none. */
static void
credits_are_obeyed(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	rig_post(r, VRB_WR_SEND, 0, 1, 0);
	rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN);
	{
		struct frame f = rig_packet(r, OP_ACK, RIG_SQ_PSN);

		f.syndrome = 0; /* no credit at all */
		f.msn = 1;
		rig_receive(r, &f);
	}
	for (unsigned int i = 0; i < 3; i++)
		rig_post(r, VRB_WR_SEND, 0, 1, 0);
	/* One, to learn of new credit, and it asks. */
	assert_true(rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN + 1)->ackreq);
	rig_expect_silence(r);
	{
		struct frame f = rig_packet(r, OP_ACK, RIG_SQ_PSN + 1);

		f.syndrome = 2; /* two more than MSN 2 */
		f.msn = 2;
		rig_receive(r, &f);
	}
	rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN + 2);
	rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN + 3);
	rig_expect_silence(r);
	rig_free(r);
}

static void
unsignalled_work_completes_silently(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct vrb_send_wqe *w = rig_wqe(r, VRB_WR_SEND, 1, 1, 0);

	w->flags = 0;
	rig_commit(r, w);
	rig_post(r, VRB_WR_SEND, 2, 1, 0);
	rig_send(r);
	rig_ack(r, 0x1f, RIG_SQ_PSN + 1);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->wr_id, 2);
	rig_expect_empty(r, r->scq);
	rig_free(r);
}

/* A batch asks once, at its end: the acknowledgement of the last is that of all. */
static void
batch_asks_for_one_acknowledgement(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	for (unsigned int i = 0; i < 4; i++)
		rig_post(r, VRB_WR_SEND, 0, 1, 0);
	for (unsigned int i = 0; i < 4; i++)
		assert_int_equal(rig_take(r)->ackreq, i == 3);
	rig_ack(r, 0x1f, RIG_SQ_PSN + 3);
	for (unsigned int i = 0; i < 4; i++)
		rig_poll(r, r->scq, VRB_WC_SUCCESS);
	rig_free(r);
}

static void
wrong_lkey_fails_after_what_is_before_it(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct vrb_send_wqe *w;

	rig_post(r, VRB_WR_SEND, 1, 1, 0);
	w = rig_wqe(r, VRB_WR_SEND, 2, 8, 0);
	((struct vrb_sge *)w->data)->lkey ^= 0x10000;
	rig_commit(r, w);
	rig_post(r, VRB_WR_SEND, 3, 1, 0);
	assert_true(rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN)->ackreq || rig_send(r) > 0);
	rig_expect_empty(r, r->scq);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_RTS);
	rig_ack(r, 0x1f, RIG_SQ_PSN);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->wr_id, 1);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_LOC_PROT_ERR)->wr_id, 2);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_WR_FLUSH_ERR)->wr_id, 3);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_ERR);
	assert_non_null(strstr(r->why, "L_Key"));
	rig_free(r);
}

/*
 * A bind that was executed, but is behind a SEND that has to be sent again, is passed by on the way
 * back. It completed together with the SEND before it was passed, and then was executed a second
 * time.
 */
static void
bind_is_executed_once(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.timeout = 10, .retry_cnt = 7});
	struct vrb_send_wqe *w;
	struct vrb_mr *mw;

	assert_int_equal(vrb_mw_alloc(r->e, r->pd, 2, &mw), 0);
	rig_post(r, VRB_WR_SEND, 1, 1, 0);
	w = rig_wqe(r, VRB_WR_BIND_MW, 2, 0, 0);
	w->bind.mw = mw;
	w->bind.mr = r->mr;
	w->bind.addr = r->mr->iova;
	w->bind.length = 64;
	w->bind.access = VRB_ACCESS_REMOTE_READ;
	w->bind.rkey = mw->rkey + 1;
	rig_commit(r, w);
	rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN);
	assert_true(mw->valid);
	rig_expect_empty(r, r->scq);
	rig_wait(r);
	/* The SEND again, and no more: the port is full. */
	assert_int_equal(rig_send_some(r, 1), 1);
	rig_ack(r, 0x1f, RIG_SQ_PSN);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->wr_id, 1);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->wr_id, 2);
	rig_post(r, VRB_WR_SEND, 3, 1, 0);
	rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN); /* the second copy of the first */
	rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN + 1);
	rig_ack(r, 0x1f, RIG_SQ_PSN + 1);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->wr_id, 3);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_RTS);
	rig_free(r);
}

/*
 * To get an acknowledgement for what is before it, the failed SEND went back to the packet before
 * it, in the middle of a READ: the READ then completed with the answer to that one packet, and
 * without the rest of its data.
 */
static void
read_before_a_failed_send_is_whole(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.mtu = VRB_MTU_256});
	struct vrb_send_wqe *w;
	uint8_t data[600];

	pattern_fill(data, sizeof(data), 5, 0);
	rig_post(r, VRB_WR_RDMA_READ, 0, 600, 0);
	w = rig_wqe(r, VRB_WR_SEND, 1000, 300, 0);
	w->num_sge = 2;
	((struct vrb_sge *)w->data)[0] = (struct vrb_sge){(uintptr_t)r->mem, 256, r->mr->lkey};
	((struct vrb_sge *)w->data)[1] =
		(struct vrb_sge){(uintptr_t)r->mem, 44, r->mr->lkey ^ 0x10000};
	rig_commit(r, w);
	rig_expect(r, OP_READ_REQ, RIG_SQ_PSN);
	rig_expect(r, OP_SEND_FIRST, RIG_SQ_PSN + 3);
	rig_expect_silence(r);
	for (unsigned int i = 0; i < 3; i++) {
		struct frame f = rig_packet(r, OP_RESP_FIRST + i, RIG_SQ_PSN + i);

		f.syndrome = 0x1f;
		f.payload = data + i * 256;
		f.len = i < 2 ? 256 : 88;
		rig_receive(r, &f);
	}
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	assert_memory_equal(r->mem, data, 600);
	rig_poll(r, r->scq, VRB_WC_LOC_PROT_ERR);
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send_becomes_only),
		cmocka_unit_test(write_of_three_packets),
		cmocka_unit_test(immediate_data_and_keys_are_on_the_last_packet),
		cmocka_unit_test(zero_length_operations),
		cmocka_unit_test(psn_wraps),
		cmocka_unit_test(gathers_pieces_of_odd_lengths),
		cmocka_unit_test(inline_data_is_taken_at_posting),
		cmocka_unit_test(posting_is_checked),
		cmocka_unit_test(queue_holds_what_it_says),
		cmocka_unit_test(window_is_not_exceeded),
		cmocka_unit_test(window_is_narrow_after_a_timeout),
		cmocka_unit_test(window_is_halved_by_a_sequence_nak),
		cmocka_unit_test(reads_in_flight_are_limited),
		cmocka_unit_test(read_with_depth_zero_fails_here),
		cmocka_unit_test(long_read_is_asked_for_in_parts),
		cmocka_unit_test(atomics_on_the_wire),
		cmocka_unit_test(atomic_write_on_the_wire),
		cmocka_unit_test(atomic_write_is_of_eight_bytes_and_rc_only),
		cmocka_unit_test(atomic_write_answered_with_data_is_a_bad_response),
		cmocka_unit_test(fence_waits_for_reads),
		cmocka_unit_test(credits_are_obeyed),
		cmocka_unit_test(unsignalled_work_completes_silently),
		cmocka_unit_test(batch_asks_for_one_acknowledgement),
		cmocka_unit_test(wrong_lkey_fails_after_what_is_before_it),
		cmocka_unit_test(bind_is_executed_once),
		cmocka_unit_test(read_before_a_failed_send_is_whole),
	};

	return cmocka_run_group_tests_name("roce requester", tests, rig_group, NULL);
}
