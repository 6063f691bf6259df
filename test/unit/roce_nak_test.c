/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the responder refuses: one row of CONVENTIONS ("NAKs") a test. Where rxe departs from the
 * specification, the specification counts.
 */
#include <stdlib.h>
#include <string.h>

#include "roce_rig.h"

static const uint8_t zeros[4096];

static struct frame
data(const struct rig *r, uint8_t opcode, uint32_t psn, uint32_t len)
{
	struct frame f = rig_packet(r, opcode, psn);

	f.payload = zeros;
	f.len = len;
	f.pad = -len & 3;
	f.dmalen = len;
	return f;
}

/* The NAK, and after it nothing: the queue pair is in error and answers not even duplicates. */
static void
expect_end(struct rig *r, uint8_t syndrome, uint32_t psn)
{
	struct frame f = data(r, OP_SEND_ONLY, psn, 0);

	rig_expect_ack(r, syndrome, psn);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_ERR);
	rig_receive(r, &f);
	f.psn--;
	rig_receive(r, &f);
	rig_expect_silence(r);
	assert_true(r->why[0] != '\0');
}

static void
psn_ahead_gets_one_nak(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = data(r, OP_SEND_ONLY, RIG_RQ_PSN + 5, 0);

	for (unsigned int i = 0; i < 3; i++)
		rig_post_recv(r, i, 0);
	rig_receive(r, &f);
	assert_int_equal(rig_expect_ack(r, 0x60, RIG_RQ_PSN)->msn, 0);
	f.psn++;
	rig_receive(r, &f);
	rig_expect_silence(r);
	rig_expect_empty(r, r->rcq);
	/* A new gap gets a new NAK. */
	f.psn = RIG_RQ_PSN;
	rig_receive(r, &f);
	rig_expect_ack(r, 0, RIG_RQ_PSN);
	f.psn = RIG_RQ_PSN + 5;
	rig_receive(r, &f);
	rig_expect_ack(r, 0x60, RIG_RQ_PSN + 1);
	rig_free(r);
}

static void
no_receive_gets_rnr_nak(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = data(r, OP_SEND_FIRST, RIG_RQ_PSN, 1024);

	rig_receive(r, &f); /* already on the First packet */
	rig_expect_ack(r, 0x20 | 12, RIG_RQ_PSN);
	/* The packets behind it: rxe sends a sequence NAK, once, that a requester must not take as
	 * progress; we are silent. */
	f = data(r, OP_SEND_LAST, RIG_RQ_PSN + 1, 10);
	rig_receive(r, &f);
	if (rig_send(r) > 0)
		rig_expect_ack(r, 0x60, RIG_RQ_PSN);
	rig_post_recv(r, 0, 2000);
	f = data(r, OP_SEND_FIRST, RIG_RQ_PSN, 1024);
	rig_receive(r, &f);
	f = data(r, OP_SEND_LAST, RIG_RQ_PSN + 1, 10);
	rig_receive(r, &f);
	rig_take(r);
	assert_int_equal(rig_poll(r, r->rcq, VRB_WC_SUCCESS)->byte_len, 1034);
	rig_free(r);
}

static void
write_with_immediate_gets_rnr_nak_on_its_last_packet(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = data(r, OP_WRITE_FIRST, RIG_RQ_PSN, 1024);

	f.dmalen = 1030;
	f.ackreq = false;
	rig_receive(r, &f);
	rig_expect_silence(r);
	f = data(r, OP_WRITE_LAST_IMM, RIG_RQ_PSN + 1, 6);
	rig_receive(r, &f);
	rig_expect_ack(r, 0x20 | 12, RIG_RQ_PSN + 1);
	rig_post_recv(r, 0, 0);
	rig_receive(r, &f);
	rig_expect_ack(r, 0, RIG_RQ_PSN + 1);
	assert_int_equal(rig_poll(r, r->rcq, VRB_WC_SUCCESS)->byte_len, 1030);
	rig_free(r);
}

/* 0x62: key, range and rights, for each of WRITE, READ and atomic. */
static void
remote_access(
	const struct rig_conf *c, uint8_t opcode, void (*spoil)(struct rig *r, struct frame *f))
{
	struct rig *r = rig_new(c);
	struct frame f = data(r, opcode, RIG_RQ_PSN, opcode == OP_WRITE_ONLY ? 64 : 0);

	f.dmalen = 64;
	spoil(r, &f);
	rig_receive(r, &f);
	expect_end(r, 0x62, RIG_RQ_PSN);
	assert_true(rig_event(r, VRB_EVENT_QP_ACCESS_ERR));
	assert_int_equal(pattern_check(r->mem, RIG_MEM, 1, 0), -1);
	rig_free(r);
}

static void
spoil_key(struct rig *r, struct frame *f)
{
	(void)r;
	f->rkey ^= 0x10000;
}

static void
spoil_tag(struct rig *r, struct frame *f)
{
	(void)r;
	f->rkey ^= 1;
}

static void
spoil_end(struct rig *r, struct frame *f)
{
	(void)r;
	f->va += RIG_MEM - (f->opcode == OP_WRITE_ONLY || f->opcode == OP_READ_REQ ? 63 : 0);
}

static void
spoil_start(struct rig *r, struct frame *f)
{
	(void)r;
	f->va -= 8;
}

static void
spoil_wrap(struct rig *r, struct frame *f)
{
	(void)r;
	f->va = 0 - (uint64_t)16;
}

static void
spoil_rights(struct rig *r, struct frame *f)
{
	struct vrb_mr *mr;

	assert_int_equal(vrb_mr_reg(r->e, r->pd, (uintptr_t)r->mem, RIG_MEM, (uintptr_t)r->mem,
				 VRB_ACCESS_LOCAL_WRITE, &mr),
		0);
	f->rkey = mr->rkey;
}

static void
spoil_pd(struct rig *r, struct frame *f)
{
	struct vrb_pd *pd;
	struct vrb_mr *mr;

	assert_int_equal(vrb_pd_create(r->e, &pd), 0);
	assert_int_equal(vrb_mr_reg(r->e, pd, (uintptr_t)r->mem, RIG_MEM, (uintptr_t)r->mem,
				 VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE, &mr),
		0);
	f->rkey = mr->rkey;
}

static void
spoil_dereg(struct rig *r, struct frame *f)
{
	(void)f;
	assert_int_equal(vrb_mr_dereg(r->e, r->mr), 0);
	r->mr = NULL;
}

static void
remote_access_is_checked(void **state)
{
	static const uint8_t opcodes[] = {OP_WRITE_ONLY, OP_READ_REQ, OP_CAS, OP_FADD};
	static void (*const spoils[])(struct rig *, struct frame *) = {
		spoil_key,
		spoil_tag,
		spoil_end,
		spoil_start,
		spoil_wrap,
		spoil_rights,
		spoil_pd,
		spoil_dereg,
	};

	for (unsigned int i = 0; i < sizeof(opcodes); i++)
		for (unsigned int k = 0; k < sizeof(spoils) / sizeof(spoils[0]); k++)
			remote_access(&(struct rig_conf){0}, opcodes[i], spoils[k]);
}

/* 0x61: the request itself is wrong. */
static void
invalid(const struct rig_conf *c, struct frame *frames, unsigned int n)
{
	struct rig *r = rig_new(c);

	rig_post_recv(r, 0, 4096);
	for (unsigned int i = 0; i < n; i++) {
		struct frame f = rig_packet(r, frames[i].opcode, RIG_RQ_PSN + i);

		f.payload = zeros;
		f.len = frames[i].len;
		f.pad = -f.len & 3;
		f.dmalen = frames[i].dmalen;
		f.va += frames[i].va;
		f.ackreq = false;
		rig_receive(r, &f);
		if (i + 1 < n)
			rig_expect_silence(r);
	}
	expect_end(r, 0x61, RIG_RQ_PSN + n - 1);
	assert_true(rig_event(r, VRB_EVENT_QP_REQ_ERR));
	assert_int_equal(rig_flushed(r, r->rcq), 1);
	rig_free(r);
}

#define INVALID(name, conf, ...) \
	static void name(void **state) \
	{ \
		struct frame frames[] = {__VA_ARGS__}; \
\
		(void)state; \
		invalid(&(struct rig_conf){conf}, frames, sizeof(frames) / sizeof(frames[0])); \
	}

INVALID(qp_without_remote_write, .access = VRB_ACCESS_REMOTE_READ,
	{.opcode = OP_WRITE_ONLY, .len = 4, .dmalen = 4})
INVALID(qp_without_remote_read, .access = VRB_ACCESS_REMOTE_WRITE,
	{.opcode = OP_READ_REQ, .dmalen = 4})
INVALID(qp_without_remote_atomic, .access = VRB_ACCESS_REMOTE_WRITE, {.opcode = OP_FADD})
INVALID(read_depth_zero, .max_rd_atomic = 255, {.opcode = OP_READ_REQ, .dmalen = 4})
INVALID(atomic_depth_zero, .max_rd_atomic = 255, {.opcode = OP_CAS})
INVALID(misaligned_atomic, .mtu = 0, {.opcode = OP_FADD, .va = 4})
INVALID(middle_without_first, .mtu = 0, {.opcode = OP_SEND_MIDDLE, .len = 1024})
INVALID(last_without_first, .mtu = 0, {.opcode = OP_WRITE_LAST, .len = 10})
INVALID(only_inside_a_message, .mtu = 0, {.opcode = OP_SEND_FIRST, .len = 1024},
	{.opcode = OP_SEND_ONLY, .len = 4})
INVALID(write_inside_a_send, .mtu = 0, {.opcode = OP_SEND_FIRST, .len = 1024},
	{.opcode = OP_WRITE_MIDDLE, .len = 1024})
INVALID(read_inside_a_send, .mtu = 0, {.opcode = OP_SEND_FIRST, .len = 1024},
	{.opcode = OP_READ_REQ, .dmalen = 4})
INVALID(atomic_inside_a_write, .mtu = 0, {.opcode = OP_WRITE_FIRST, .len = 1024, .dmalen = 2000},
	{.opcode = OP_FADD})
INVALID(short_first, .mtu = 0, {.opcode = OP_SEND_FIRST, .len = 1020})
INVALID(short_middle, .mtu = 0, {.opcode = OP_WRITE_FIRST, .len = 1024, .dmalen = 3000},
	{.opcode = OP_WRITE_MIDDLE, .len = 8})
INVALID(long_only, .mtu = 0, {.opcode = OP_SEND_ONLY, .len = 1028})
INVALID(empty_last, .mtu = 0, {.opcode = OP_SEND_FIRST, .len = 1024},
	{.opcode = OP_SEND_LAST, .len = 0})
INVALID(write_shorter_than_it_says, .mtu = 0, {.opcode = OP_WRITE_ONLY, .len = 64, .dmalen = 100})
INVALID(write_longer_than_it_says, .mtu = 0, {.opcode = OP_WRITE_ONLY, .len = 64, .dmalen = 32})
INVALID(write_first_that_is_all, .mtu = 0, {.opcode = OP_WRITE_FIRST, .len = 1024, .dmalen = 1024})
INVALID(write_middle_beyond, .mtu = 0, {.opcode = OP_WRITE_FIRST, .len = 1024, .dmalen = 1500},
	{.opcode = OP_WRITE_MIDDLE, .len = 1024})
INVALID(write_last_too_short, .mtu = 0, {.opcode = OP_WRITE_FIRST, .len = 1024, .dmalen = 1500},
	{.opcode = OP_WRITE_LAST, .len = 400})
INVALID(write_over_two_gigabytes, .mtu = 0,
	{.opcode = OP_WRITE_FIRST, .len = 1024, .dmalen = 0x80000001u})
INVALID(read_over_two_gigabytes, .mtu = 0, {.opcode = OP_READ_REQ, .dmalen = 0xffffffffu})

static void
more_reads_than_allowed(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.max_rd_atomic = 1});
	unsigned int i;

	/* Some more than agreed are put up with; in the end it is refused. Answers are not sent
	 * meanwhile. */
	for (i = 0; i < 20 && vrb_qp_state(r->qp) == VRB_QPS_RTS; i++) {
		struct frame f = rig_packet(r, OP_READ_REQ, RIG_RQ_PSN + i);

		f.dmalen = 4;
		rig_receive(r, &f);
	}
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_ERR);
	assert_true(i > 1);
	for (unsigned int k = 0; k + 1 < i; k++)
		rig_expect(r, OP_RESP_ONLY, RIG_RQ_PSN + k);
	rig_expect_ack(r, 0x61, RIG_RQ_PSN + i - 1);
	rig_free(r);
}

/* The specification's NAK (rxe: 0x63), and the specification's completion (rxe: local QP operation
 * error). */
static void
send_longer_than_the_receive(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = data(r, OP_SEND_FIRST, RIG_RQ_PSN, 1024);

	rig_post_recv(r, 0, 1500);
	rig_post_recv(r, 7, 1500);
	rig_receive(r, &f);
	f = data(r, OP_SEND_LAST, RIG_RQ_PSN + 1, 500);
	rig_receive(r, &f);
	expect_end(r, 0x61, RIG_RQ_PSN + 1);
	assert_int_equal(rig_poll(r, r->rcq, VRB_WC_LOC_LEN_ERR)->wr_id, 0);
	assert_int_equal(rig_poll(r, r->rcq, VRB_WC_WR_FLUSH_ERR)->wr_id, 7);
	assert_int_equal(pattern_check(r->mem + 1500, 1000, 1, 1500), -1);
	rig_free(r);
}

static void
receive_with_a_wrong_key(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = data(r, OP_SEND_ONLY, RIG_RQ_PSN, 8);

	rig_post_recv(r, 0, 1500);
	vrb_rq_at(vrb_qp_rq(r->qp), 0)->sge[0].lkey ^= 0x10000;
	rig_receive(r, &f);
	expect_end(r, 0x63, RIG_RQ_PSN);
	rig_poll(r, r->rcq, VRB_WC_LOC_PROT_ERR);
	rig_free(r);
}

/* rxe acknowledges this, and fails only then; the specification wants a NAK. */
static void
invalidate_of_a_region(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = data(r, OP_SEND_ONLY_INV, RIG_RQ_PSN, 8);

	f.inv = r->mr->rkey;
	rig_post_recv(r, 0, 1500);
	rig_receive(r, &f);
	expect_end(r, 0x62, RIG_RQ_PSN);
	rig_poll(r, r->rcq, VRB_WC_MW_BIND_ERR);
	rig_free(r);
}

static void
nak_is_the_newest_answer(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = rig_packet(r, OP_READ_REQ, RIG_RQ_PSN), w;

	/* A READ that was accepted is still answered, then comes the NAK for what followed it. */
	f.dmalen = 8;
	rig_receive(r, &f);
	w = data(r, OP_WRITE_ONLY, RIG_RQ_PSN + 1, 8);
	w.rkey ^= 1;
	rig_receive(r, &w);
	rig_expect(r, OP_RESP_ONLY, RIG_RQ_PSN);
	assert_int_equal(rig_expect_ack(r, 0x62, RIG_RQ_PSN + 1)->msn, 1);
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(psn_ahead_gets_one_nak),
		cmocka_unit_test(no_receive_gets_rnr_nak),
		cmocka_unit_test(write_with_immediate_gets_rnr_nak_on_its_last_packet),
		cmocka_unit_test(remote_access_is_checked),
		cmocka_unit_test(qp_without_remote_write),
		cmocka_unit_test(qp_without_remote_read),
		cmocka_unit_test(qp_without_remote_atomic),
		cmocka_unit_test(read_depth_zero),
		cmocka_unit_test(atomic_depth_zero),
		cmocka_unit_test(misaligned_atomic),
		cmocka_unit_test(middle_without_first),
		cmocka_unit_test(last_without_first),
		cmocka_unit_test(only_inside_a_message),
		cmocka_unit_test(write_inside_a_send),
		cmocka_unit_test(read_inside_a_send),
		cmocka_unit_test(atomic_inside_a_write),
		cmocka_unit_test(short_first),
		cmocka_unit_test(short_middle),
		cmocka_unit_test(long_only),
		cmocka_unit_test(empty_last),
		cmocka_unit_test(write_shorter_than_it_says),
		cmocka_unit_test(write_longer_than_it_says),
		cmocka_unit_test(write_first_that_is_all),
		cmocka_unit_test(write_middle_beyond),
		cmocka_unit_test(write_last_too_short),
		cmocka_unit_test(write_over_two_gigabytes),
		cmocka_unit_test(read_over_two_gigabytes),
		cmocka_unit_test(more_reads_than_allowed),
		cmocka_unit_test(send_longer_than_the_receive),
		cmocka_unit_test(receive_with_a_wrong_key),
		cmocka_unit_test(invalidate_of_a_region),
		cmocka_unit_test(nak_is_the_newest_answer),
	};

	return cmocka_run_group_tests_name("roce NAKs", tests, rig_group, NULL);
}
