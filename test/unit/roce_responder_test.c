/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder: what it answers to good requests, and to repeated ones. What it refuses is in
 * roce_nak_test.c.
 */
#include <stdlib.h>
#include <string.h>

#include "roce_rig.h"

/* A request with payload, pad and lengths as they have to be. */
static struct frame
data(const struct rig *r, uint8_t opcode, uint32_t psn, const uint8_t *p, uint32_t len)
{
	struct frame f = rig_packet(r, opcode, psn);

	f.payload = p;
	f.len = len;
	f.pad = -len & 3;
	f.dmalen = len;
	return f;
}

static void
send_fills_the_receive_and_completes_it(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	uint8_t msg[33];
	const struct vrb_cqe *c;
	struct frame f = data(r, OP_SEND_ONLY, RIG_RQ_PSN, msg, 33);

	pattern_fill(msg, sizeof(msg), 9, 0);
	rig_post_recv(r, 100, 50);
	rig_receive(r, &f);
	c = rig_poll(r, r->rcq, VRB_WC_SUCCESS);
	assert_int_equal(c->opcode, VRB_WC_RECV);
	assert_int_equal(c->byte_len, 33);
	assert_int_equal(c->wr_id, 100);
	assert_int_equal(c->qp_num, vrb_qp_num(r->qp));
	assert_int_equal(c->src_qp, RIG_PEER_QPN);
	assert_ptr_equal(c->qp_user, r);
	assert_int_equal(c->wc_flags, 0);
	assert_memory_equal(r->mem + 100, msg, 33);
	assert_int_equal(pattern_check(r->mem + 133, 100, 1, 133), -1); /* no pad, nothing behind */
	assert_int_equal(rig_expect_ack(r, 0, RIG_RQ_PSN)->msn, 1);
	rig_expect_silence(r);
	rig_free(r);
}

static void
send_is_scattered_over_pieces(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.mtu = VRB_MTU_256});
	struct vrb_rq *rq = vrb_qp_rq(r->qp);
	struct vrb_recv_wqe *w = vrb_rq_slot(rq, 0);
	uint8_t msg[300];
	struct frame f;

	pattern_fill(msg, sizeof(msg), 9, 0);
	w->num_sge = 4;
	w->length = 1 + 254 + 0 + 50;
	w->sge[0] = (struct vrb_sge){(uintptr_t)r->mem + 10, 1, r->mr->lkey};
	w->sge[1] = (struct vrb_sge){(uintptr_t)r->mem + 20, 254, r->mr->lkey};
	w->sge[2] = (struct vrb_sge){0, 0, 0};
	w->sge[3] = (struct vrb_sge){(uintptr_t)r->mem + 1000, 50, r->mr->lkey};
	vrb_rq_commit(rq, 1);
	f = data(r, OP_SEND_FIRST, RIG_RQ_PSN, msg, 256);
	rig_receive(r, &f);
	f = data(r, OP_SEND_LAST, RIG_RQ_PSN + 1, msg + 256, 44);
	rig_receive(r, &f);
	assert_int_equal(rig_poll(r, r->rcq, VRB_WC_SUCCESS)->byte_len, 300);
	assert_int_equal(r->mem[10], msg[0]);
	assert_memory_equal(r->mem + 20, msg + 1, 254);
	assert_memory_equal(r->mem + 1000, msg + 255, 45);
	assert_int_equal(pattern_check(r->mem + 1045, 50, 1, 1045), -1);
	rig_free(r);
}

static void
write_goes_where_the_key_says(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.mtu = VRB_MTU_256});
	uint8_t msg[600];
	struct frame f;

	pattern_fill(msg, sizeof(msg), 9, 0);
	f = data(r, OP_WRITE_FIRST, RIG_RQ_PSN, msg, 256);
	f.va += 5;
	f.dmalen = 600;
	f.ackreq = false;
	rig_receive(r, &f);
	f = data(r, OP_WRITE_MIDDLE, RIG_RQ_PSN + 1, msg + 256, 256);
	f.ackreq = false;
	rig_receive(r, &f);
	rig_expect_silence(r);
	f = data(r, OP_WRITE_LAST, RIG_RQ_PSN + 2, msg + 512, 88);
	rig_receive(r, &f);
	assert_int_equal(rig_expect_ack(r, 0, RIG_RQ_PSN + 2)->msn, 1);
	assert_memory_equal(r->mem + 5, msg, 600);
	assert_int_equal(pattern_check(r->mem, 5, 1, 0), -1);
	assert_int_equal(pattern_check(r->mem + 605, 100, 1, 605), -1);
	rig_expect_empty(r, r->rcq);
	rig_free(r);
}

static void
write_with_immediate_takes_a_receive(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = data(r, OP_WRITE_ONLY_IMM, RIG_RQ_PSN, (const uint8_t *)"12345678", 8);
	const struct vrb_cqe *c;

	f.imm = 0x01020304;
	rig_post_recv(r, 4096, 0);
	rig_receive(r, &f);
	c = rig_poll(r, r->rcq, VRB_WC_SUCCESS);
	assert_int_equal(c->opcode, VRB_WC_RECV_RDMA_WITH_IMM);
	assert_int_equal(c->byte_len, 8);
	assert_int_equal(c->wc_flags, VRB_WC_WITH_IMM);
	assert_memory_equal(&c->imm, "\1\2\3\4", 4); /* network order */
	assert_memory_equal(r->mem, "12345678", 8);
	rig_free(r);
}

static void
acknowledged_only_when_asked(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	for (unsigned int i = 0; i < 3; i++) {
		struct frame f = data(r, OP_SEND_ONLY, RIG_RQ_PSN + i, NULL, 0);

		f.ackreq = i == 2;
		rig_post_recv(r, i, 0);
		rig_receive(r, &f);
		if (i < 2)
			rig_expect_silence(r);
	}
	assert_int_equal(rig_expect_ack(r, 0, RIG_RQ_PSN + 2)->msn, 3);
	rig_expect_silence(r);
	rig_free(r);
}

static void
acknowledgements_of_a_burst_become_one(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	for (unsigned int i = 0; i < 3; i++) {
		struct frame f = data(r, OP_SEND_ONLY, RIG_RQ_PSN + i, NULL, 0);

		rig_post_recv(r, i, 0);
		rig_receive(r, &f);
	}
	assert_int_equal(rig_expect_ack(r, 0, RIG_RQ_PSN + 2)->msn, 3);
	rig_expect_silence(r);
	rig_free(r);
}

/* IBTA table 45: the count that the five bits stand for, rounded down. */
static void
credits_tell_the_receives_that_wait(void **state)
{
	static const uint32_t posted[] = {1, 2, 3, 4, 5, 6, 9, 13, 17, 34, 65};
	static const uint8_t code[] = {0, 1, 2, 3, 4, 4, 6, 7, 8, 10, 12}; /* with one taken */

	for (unsigned int i = 0; i < sizeof(code); i++) {
		struct rig *r = rig_new(&(struct rig_conf){.depth = 128});
		struct frame f = data(r, OP_SEND_ONLY, RIG_RQ_PSN, NULL, 0);

		for (unsigned int k = 0; k < posted[i]; k++)
			rig_post_recv(r, k, 0);
		rig_receive(r, &f);
		assert_int_equal(rig_expect_ack(r, 0, RIG_RQ_PSN)->syndrome, code[i]);
		rig_free(r);
	}
}

static void
srq_gives_no_credits(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.srq = true});
	struct frame f = data(r, OP_SEND_ONLY, RIG_RQ_PSN, NULL, 0);

	rig_post_recv(r, 7, 0);
	rig_post_recv(r, 8, 0);
	rig_receive(r, &f);
	assert_int_equal(rig_expect_ack(r, 0, RIG_RQ_PSN)->syndrome, 0x1f);
	assert_int_equal(rig_poll(r, r->rcq, VRB_WC_SUCCESS)->wr_id, 7);
	rig_free(r);
}

static void
read_is_answered_in_packets(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = rig_packet(r, OP_READ_REQ, RIG_RQ_PSN);
	const struct frame *a;

	f.va += 3;
	f.dmalen = 3000;
	f.ackreq = false; /* answered all the same */
	rig_receive(r, &f);
	a = rig_expect(r, OP_RESP_FIRST, RIG_RQ_PSN);
	assert_int_equal(a->syndrome & 0xe0, 0);
	assert_int_equal(a->msn, 1);
	assert_false(a->ackreq);
	assert_memory_equal(a->payload, r->mem + 3, 1024);
	a = rig_expect(r, OP_RESP_MIDDLE, RIG_RQ_PSN + 1);
	assert_memory_equal(a->payload, r->mem + 3 + 1024, 1024);
	a = rig_expect(r, OP_RESP_LAST, RIG_RQ_PSN + 2);
	assert_int_equal(a->len, 952);
	assert_memory_equal(a->payload, r->mem + 3 + 2048, 952);
	rig_expect_silence(r);
	/* It takes three PSNs. */
	f = rig_packet(r, OP_READ_REQ, RIG_RQ_PSN + 3);
	f.dmalen = 0;
	f.rkey = 0xdead; /* of no length: neither key nor address are looked at */
	rig_receive(r, &f);
	a = rig_expect(r, OP_RESP_ONLY, RIG_RQ_PSN + 3);
	assert_int_equal(a->len, 0);
	assert_int_equal(a->msn, 2);
	rig_free(r);
}

static void
atomics_change_memory_in_host_order(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	uint64_t v = 0x0123456789abcdefull;
	struct frame f = rig_packet(r, OP_FADD, RIG_RQ_PSN);

	memcpy(r->mem, &v, 8);
	f.swap_add = 7;
	rig_receive(r, &f);
	assert_int_equal(rig_expect(r, OP_ATOMIC_ACK, RIG_RQ_PSN)->orig, v);
	memcpy(&v, r->mem, 8);
	assert_int_equal(v, 0x0123456789abcdf6ull);
	f = rig_packet(r, OP_CAS, RIG_RQ_PSN + 1);
	f.compare = 1;
	f.swap_add = 2;
	rig_receive(r, &f);
	assert_int_equal(rig_expect(r, OP_ATOMIC_ACK, RIG_RQ_PSN + 1)->orig, v);
	assert_memory_equal(r->mem, &v, 8);
	f = rig_packet(r, OP_CAS, RIG_RQ_PSN + 2);
	f.compare = v;
	f.swap_add = 2;
	rig_receive(r, &f);
	assert_int_equal(rig_expect(r, OP_ATOMIC_ACK, RIG_RQ_PSN + 2)->msn, 3);
	memcpy(&v, r->mem, 8);
	assert_int_equal(v, 2);
	rig_free(r);
}

/* IBTA 9.7.5.1.5: not executed again, whatever came in between. */
static void
duplicate_atomic_is_answered_from_the_saved_result(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.max_rd_atomic = 4});
	uint64_t v = 100;
	struct frame f;

	memcpy(r->mem, &v, 8);
	for (unsigned int i = 0; i < 4; i++) {
		f = rig_packet(r, OP_FADD, RIG_RQ_PSN + i);
		f.swap_add = 1;
		rig_receive(r, &f);
		assert_int_equal(rig_take(r)->orig, 100 + i);
	}
	for (unsigned int i = 0; i < 4; i++) {
		f = rig_packet(r, OP_FADD, RIG_RQ_PSN + i);
		f.swap_add = 1;
		rig_receive(r, &f);
		assert_int_equal(rig_expect(r, OP_ATOMIC_ACK, RIG_RQ_PSN + i)->orig, 100 + i);
	}
	memcpy(&v, r->mem, 8);
	assert_int_equal(v, 104);
	rig_free(r);
}

static struct frame
atomic_write(const struct rig *r, uint32_t psn, const char *value)
{
	struct frame f = rig_packet(r, OP_ATOMIC_WRITE, psn);

	f.dmalen = 8;
	f.payload = (const uint8_t *)value;
	f.len = 8;
	return f;
}

static void
atomic_write_stores_and_is_answered_as_a_read(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = atomic_write(r, RIG_RQ_PSN, "01234567");
	const struct frame *a;

	f.va += 8;
	rig_receive(r, &f);
	a = rig_expect(r, OP_RESP_ONLY, RIG_RQ_PSN);
	assert_int_equal(a->len, 0);
	assert_int_equal(a->msn, 1);
	assert_memory_equal(r->mem + 8, "01234567", 8);
	/* A duplicate is answered, and not executed again. */
	memset(r->mem, 0x33, 24);
	rig_receive(r, &f);
	assert_int_equal(rig_expect(r, OP_RESP_ONLY, RIG_RQ_PSN)->len, 0);
	assert_int_equal(r->mem[8], 0x33);
	rig_expect_silence(r);
	rig_free(r);
}

/* Sends one that is wrong in one way. */
static void
refused_write(const struct rig_conf *conf, uint64_t off, uint32_t dmalen, uint32_t len, uint8_t nak)
{
	struct rig *r = rig_new(conf);
	struct frame f = atomic_write(r, RIG_RQ_PSN, "0123456789abcdef");

	f.va += off;
	f.dmalen = dmalen;
	f.len = len;
	memset(r->mem, 0x33, 24);
	rig_receive(r, &f);
	rig_expect_ack(r, nak, RIG_RQ_PSN);
	for (unsigned int i = 0; i < 24; i++)
		assert_int_equal(r->mem[i], 0x33);
	rig_free(r);
}

static void
atomic_write_is_checked(void **state)
{
	const struct rig_conf good = {0}, none = {.access = UINT32_MAX},
			      depth = {.max_rd_atomic = 255};

	refused_write(&good, 4, 8, 8, 0x61); /* IBTA A19.4.2: not aligned */
	refused_write(&good, 0, 16, 16, 0x61);
	refused_write(&good, 0, 8, 4, 0x61);
	refused_write(&good, 0, 8, 0, 0x61);
	refused_write(&good, 0, 4, 8, 0x61);
	refused_write(&good, RIG_MEM, 8, 8, 0x62); /* behind the region */
	refused_write(&none, 0, 8, 8, 0x61);
	refused_write(&depth, 0, 8, 8, 0x61);
}

static void
duplicate_read_is_executed_again(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = rig_packet(r, OP_READ_REQ, RIG_RQ_PSN);

	f.dmalen = 3000;
	rig_receive(r, &f);
	for (unsigned int i = 0; i < 3; i++)
		rig_take(r);
	rig_receive(r, &f);
	rig_expect(r, OP_RESP_FIRST, RIG_RQ_PSN);
	rig_expect(r, OP_RESP_MIDDLE, RIG_RQ_PSN + 1);
	rig_expect(r, OP_RESP_LAST, RIG_RQ_PSN + 2);
	/* From its middle on, as rxe asks: an answer for these PSNs. */
	f.psn += 1;
	f.va += 1024;
	f.dmalen -= 1024;
	rig_receive(r, &f);
	assert_memory_equal(rig_take(r)->payload, r->mem + 1024, 1024);
	assert_int_equal(rig_take(r)->psn, RIG_RQ_PSN + 2);
	rig_expect_silence(r);
	assert_int_equal(vrb_engine_stats(r->e)->rx_duplicate, 2);
	rig_free(r);
}

/* However often requests come again before their answers are sent, a new one is never too many. */
static void
duplicates_leave_room_for_new_reads(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.max_rd_atomic = 4});
	struct frame f = rig_packet(r, OP_READ_REQ, RIG_RQ_PSN);
	uint32_t psn = 0;

	f.dmalen = 20 * 1024;
	rig_receive(r, &f);
	rig_send(r);
	r->next_frame = r->n_frames;
	for (unsigned int i = 1; i < 20; i++) {
		f.psn = RIG_RQ_PSN + i;
		f.dmalen = (20 - i) * 1024;
		rig_receive(r, &f);
	}
	for (unsigned int i = 0; i < 4; i++) {
		f.psn = RIG_RQ_PSN + 20 + i;
		f.dmalen = 100;
		rig_receive(r, &f);
	}
	for (unsigned int n = rig_send(r); n > 0; n--)
		psn = rig_take(r)->psn;
	assert_int_equal(psn, RIG_RQ_PSN + 23);
	assert_false(rig_event(r, VRB_EVENT_QP_REQ_ERR));
	rig_free(r);
}

/* A duplicate whose key has been taken back meanwhile was good once: it is not answered, and hurts
 * nobody. */
static void
duplicate_read_of_a_region_that_is_gone(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = rig_packet(r, OP_READ_REQ, RIG_RQ_PSN);

	f.dmalen = 10;
	rig_receive(r, &f);
	rig_take(r);
	assert_int_equal(vrb_mr_dereg(r->e, r->mr), 0);
	rig_receive(r, &f);
	rig_expect_silence(r);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_RTS);
	rig_free(r);
}

/*
 * The same when the key goes while the repeated answer waits to be sent: the peer has the first
 * answer, and has closed the window since. The queue pair failed.
 */
static void
duplicate_read_whose_region_goes_before_its_answer(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = rig_packet(r, OP_READ_REQ, RIG_RQ_PSN);

	f.dmalen = 10;
	rig_receive(r, &f);
	rig_take(r);
	rig_receive(r, &f);
	assert_int_equal(vrb_mr_dereg(r->e, r->mr), 0);
	r->mr = NULL;
	/* What is behind it is answered all the same. */
	f = rig_packet(r, OP_READ_REQ, RIG_RQ_PSN + 1);
	rig_receive(r, &f);
	rig_expect(r, OP_RESP_ONLY, RIG_RQ_PSN + 1);
	rig_expect_silence(r);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_RTS);
	rig_free(r);
}

/* CONVENTIONS: always acknowledged, with the newest PSN, not the duplicate's; data is not written
 * again. */
static void
duplicate_send_and_write_are_acknowledged(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = data(r, OP_SEND_ONLY, RIG_RQ_PSN, (const uint8_t *)"aaaa", 4);
	struct frame w = data(r, OP_WRITE_ONLY, RIG_RQ_PSN + 1, (const uint8_t *)"bbbb", 4);

	rig_post_recv(r, 100, 4);
	rig_post_recv(r, 200, 4);
	rig_receive(r, &f);
	rig_take(r);
	rig_receive(r, &w);
	rig_take(r);
	memcpy(r->mem, "cccc", 4);
	f.ackreq = w.ackreq = false;
	rig_receive(r, &f);
	assert_int_equal(rig_expect_ack(r, 0, RIG_RQ_PSN + 1)->msn, 2);
	rig_receive(r, &w);
	rig_expect_ack(r, 0, RIG_RQ_PSN + 1);
	assert_memory_equal(r->mem, "cccc", 4);
	f.psn = RIG_RQ_PSN - 100; /* never sent */
	rig_receive(r, &f);
	assert_int_equal(rig_expect_ack(r, 0, RIG_RQ_PSN + 1)->msn, 2);
	rig_poll(r, r->rcq, VRB_WC_SUCCESS);
	rig_expect_empty(r, r->rcq);
	rig_free(r);
}

static void
psn_wraps_at_the_responder(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.rq_psn = 0xffffff, .mtu = VRB_MTU_256});
	uint8_t msg[512] = {0};
	struct frame f = data(r, OP_SEND_FIRST, 0xffffff, msg, 256);

	rig_post_recv(r, 0, 512);
	rig_receive(r, &f);
	f = data(r, OP_SEND_LAST, 0, msg, 256);
	rig_receive(r, &f);
	rig_expect_ack(r, 0, 0);
	f = rig_packet(r, OP_READ_REQ, 0xfffffe);
	rig_receive(r, &f); /* past: before the first, dropped as the duplicate that it cannot be */
	f = rig_packet(r, OP_READ_REQ, 1);
	f.dmalen = 1;
	rig_receive(r, &f);
	while (rig_take(r)->psn != 1)
		;
	rig_free(r);
}

static void
first_request_tells_of_the_connection(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct vrb_qp_attr a = r->attr;
	struct frame f;

	vrb_qp_destroy(r->qp);
	r->qp = rig_qp(r, VRB_QPS_RESET);
	a.state = VRB_QPS_INIT;
	vrb_qp_modify(r->qp, &a,
		VRB_QP_STATE | VRB_QP_PKEY_INDEX | VRB_QP_PORT | VRB_QP_ACCESS_FLAGS, r->now);
	rig_post_recv(r, 0, 4);
	a.state = VRB_QPS_RTR;
	assert_int_equal(
		vrb_qp_modify(r->qp, &a,
			VRB_QP_STATE | VRB_QP_AV | VRB_QP_PATH_MTU | VRB_QP_DEST_QPN |
				VRB_QP_RQ_PSN | VRB_QP_MAX_DEST_RD_ATOMIC | VRB_QP_MIN_RNR_TIMER,
			r->now),
		0);
	f = data(r, OP_SEND_ONLY, RIG_RQ_PSN, (const uint8_t *)"abcd", 4);
	rig_receive(r, &f);
	rig_expect_ack(r, 0, RIG_RQ_PSN);
	rig_poll(r, r->rcq, VRB_WC_SUCCESS);
	assert_true(rig_event(r, VRB_EVENT_COMM_EST));
	assert_int_equal(r->n_events, 1);
	rig_free(r);
}

static void
invalidate_closes_the_window(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = data(r, OP_SEND_ONLY_INV, RIG_RQ_PSN, NULL, 0);
	const struct vrb_cqe *c;
	struct vrb_send_wqe *w;
	struct vrb_mr *mw;

	assert_int_equal(vrb_mw_alloc(r->e, r->pd, 2, &mw), 0);
	w = rig_wqe(r, VRB_WR_BIND_MW, 2, 0, 0);
	w->bind.mw = mw;
	w->bind.mr = r->mr;
	w->bind.addr = r->mr->iova;
	w->bind.length = 64;
	w->bind.access = VRB_ACCESS_REMOTE_READ;
	w->bind.rkey = mw->rkey + 1;
	assert_int_equal(rig_commit(r, w), 0);
	rig_expect_silence(r);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	rig_post_recv(r, 0, 4);
	f.inv = mw->rkey;
	rig_receive(r, &f);
	c = rig_poll(r, r->rcq, VRB_WC_SUCCESS);
	assert_int_equal(c->wc_flags, VRB_WC_WITH_INV);
	assert_int_equal(c->imm, f.inv);
	assert_false(mw->valid);
	rig_expect_ack(r, 0, RIG_RQ_PSN);
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(send_fills_the_receive_and_completes_it),
		cmocka_unit_test(send_is_scattered_over_pieces),
		cmocka_unit_test(write_goes_where_the_key_says),
		cmocka_unit_test(write_with_immediate_takes_a_receive),
		cmocka_unit_test(acknowledged_only_when_asked),
		cmocka_unit_test(acknowledgements_of_a_burst_become_one),
		cmocka_unit_test(credits_tell_the_receives_that_wait),
		cmocka_unit_test(srq_gives_no_credits),
		cmocka_unit_test(read_is_answered_in_packets),
		cmocka_unit_test(atomics_change_memory_in_host_order),
		cmocka_unit_test(duplicate_atomic_is_answered_from_the_saved_result),
		cmocka_unit_test(atomic_write_stores_and_is_answered_as_a_read),
		cmocka_unit_test(atomic_write_is_checked),
		cmocka_unit_test(duplicate_read_is_executed_again),
		cmocka_unit_test(duplicates_leave_room_for_new_reads),
		cmocka_unit_test(duplicate_read_of_a_region_that_is_gone),
		cmocka_unit_test(duplicate_read_whose_region_goes_before_its_answer),
		cmocka_unit_test(duplicate_send_and_write_are_acknowledged),
		cmocka_unit_test(psn_wraps_at_the_responder),
		cmocka_unit_test(first_request_tells_of_the_connection),
		cmocka_unit_test(invalidate_closes_the_window),
	};

	return cmocka_run_group_tests_name("roce responder", tests, rig_group, NULL);
}
