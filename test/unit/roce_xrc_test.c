/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC (IBTA annex A14): targets that receive into the SRQ which each request names.
 */
#include <stdlib.h>
#include <string.h>

#include "roce_rig.h"

#define MTU 1024u

static uint8_t pattern[8192];

static struct rig *
target_rig(uint32_t depth)
{
	return rig_new(&(struct rig_conf){.type = VRB_QPT_XRC_RECV, .depth = depth});
}

static struct frame
packet(const struct rig *r, uint8_t op, uint32_t psn, uint32_t off, uint32_t len)
{
	struct frame f = rig_packet(r, OP_XRC | op, psn);

	f.payload = pattern + off;
	f.len = len;
	f.pad = -len & 3;
	f.dmalen = len;
	return f;
}

static void
receive(struct rig *r, uint8_t op, uint32_t psn, uint32_t off, uint32_t len)
{
	struct frame f = packet(r, op, psn, off, len);

	rig_receive(r, &f);
}

static void
receive_for(struct rig *r, const struct vrb_srq *srq, uint8_t op, uint32_t psn, uint32_t off,
	uint32_t len)
{
	struct frame f = packet(r, op, psn, off, len);

	f.srqn = srq->num;
	rig_receive(r, &f);
}

static void
expect_ack(struct rig *r, uint8_t syndrome, uint32_t psn)
{
	const struct frame *f = rig_expect(r, OP_XRC | OP_ACK, psn);

	if (syndrome == 0)
		assert_int_equal(f->syndrome, 0x1f); /* an SRQ gives no credit */
	else
		assert_int_equal(f->syndrome, syndrome);
}

static void
expect_recv(struct rig *r, struct vrb_cq *cq, uint32_t id, uint32_t off, uint32_t len)
{
	const struct vrb_cqe *c = rig_poll(r, cq, VRB_WC_SUCCESS);

	assert_int_equal(c->wr_id, id);
	assert_int_equal(c->byte_len, len);
	assert_memory_equal(r->mem + id, pattern + off, len);
}

/* A second SRQ in the same domain, with a protection domain, a CQ and memory of its own. */
struct second {
	struct vrb_pd *pd;
	struct vrb_cq *cq;
	struct vrb_mr *mr;
	struct vrb_srq *srq;
};

static struct second
second_srq(struct rig *r)
{
	uint32_t depth = 4, sge = 1;
	struct second s;

	assert_int_equal(vrb_pd_create(r->e, &s.pd), 0);
	assert_int_equal(vrb_cq_create(r->e, 8, NULL, &s.cq), 0);
	assert_int_equal(vrb_mr_reg(r->e, s.pd, (uintptr_t)r->mem, RIG_MEM, (uintptr_t)r->mem,
				 VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE, &s.mr),
		0);
	assert_int_equal(
		vrb_srq_create_xrc(r->e, s.pd, &r->xrcd, s.cq, &depth, &sge, NULL, &s.srq), 0);
	return s;
}

static void
post_to(struct rig *r, struct vrb_srq *srq, const struct vrb_mr *mr, uint32_t off, uint32_t len)
{
	struct vrb_recv_wqe *w = vrb_rq_slot(&srq->rq, 0);

	assert_non_null(w);
	w->wr_id = off;
	w->num_sge = 1;
	w->length = len;
	w->sge[0] = (struct vrb_sge){(uintptr_t)r->mem + off, len, mr->lkey};
	vrb_rq_commit(&srq->rq, 1);
}

static void
a_send_takes_a_receive_of_the_srq_that_it_names(void **state)
{
	struct rig *r = target_rig(0);
	struct second s = second_srq(r);

	rig_post_recv(r, 0, 4096);
	post_to(r, s.srq, s.mr, 8192, 4096);
	receive_for(r, s.srq, OP_SEND_ONLY, RIG_RQ_PSN, 0, 64);
	expect_ack(r, 0, RIG_RQ_PSN);
	receive(r, OP_SEND_FIRST, RIG_RQ_PSN + 1, 100, MTU);
	receive(r, OP_SEND_LAST, RIG_RQ_PSN + 2, 100 + MTU, 9);
	expect_ack(r, 0, RIG_RQ_PSN + 2);
	expect_recv(r, s.cq, 8192, 0, 64);
	expect_recv(r, r->rcq, 0, 100, MTU + 9);
	rig_free(r);
}

static void
two_initiators_interleave_on_one_srq(void **state)
{
	struct rig *r = target_rig(0);
	struct vrb_qp *first = r->qp, *second = rig_qp(r, VRB_QPS_RTS);
	const struct vrb_cqe *c;

	rig_post_recv(r, 0, 4096);
	rig_post_recv(r, 4096, 4096);
	receive(r, OP_SEND_FIRST, RIG_RQ_PSN, 0, MTU);
	r->qp = second;
	receive(r, OP_SEND_FIRST, RIG_RQ_PSN, 500, MTU);
	receive(r, OP_SEND_LAST, RIG_RQ_PSN + 1, 500 + MTU, 4);
	r->qp = first;
	receive(r, OP_SEND_LAST, RIG_RQ_PSN + 1, MTU, 8);
	c = rig_poll(r, r->rcq, VRB_WC_SUCCESS);
	assert_int_equal(c->qp_num, vrb_qp_num(second));
	assert_memory_equal(r->mem + 4096, pattern + 500, MTU + 4);
	c = rig_poll(r, r->rcq, VRB_WC_SUCCESS);
	assert_int_equal(c->qp_num, vrb_qp_num(first));
	assert_memory_equal(r->mem, pattern, MTU + 8);
	rig_free(r);
}

static void
wrong_srq_number_ends_the_target(void **state)
{
	struct rig *r = target_rig(0);
	struct frame f = packet(r, OP_SEND_ONLY, RIG_RQ_PSN, 0, 8);

	rig_post_recv(r, 0, 64);
	f.srqn = r->srq->num + 1;
	rig_receive(r, &f);
	expect_ack(r, 0x61, RIG_RQ_PSN);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_ERR);
	assert_true(rig_event(r, VRB_EVENT_QP_REQ_ERR));
	rig_expect_empty(r, r->rcq);
	assert_int_equal(vrb_rq_count(&r->srq->rq), 1);
	rig_free(r);
}

static void
srq_of_another_domain_is_refused(void **state)
{
	struct rig *r = target_rig(0);
	struct vrb_xrcd other = {0};
	uint32_t depth = 4, sge = 1;
	struct vrb_srq *srq;

	assert_int_equal(
		vrb_srq_create_xrc(r->e, r->pd, &other, r->rcq, &depth, &sge, NULL, &srq), 0);
	post_to(r, srq, r->mr, 0, 64);
	receive_for(r, srq, OP_SEND_ONLY, RIG_RQ_PSN, 0, 8);
	expect_ack(r, 0x61, RIG_RQ_PSN);
	assert_int_equal(vrb_rq_count(&srq->rq), 1);
	assert_int_equal(vrb_srq_destroy(srq), 0);
	assert_int_equal(other.refs, 0);
	rig_free(r);
}

static void
basic_srq_is_refused(void **state)
{
	struct rig *r = target_rig(0);
	uint32_t depth = 4, sge = 1;
	struct vrb_srq *srq;

	assert_int_equal(vrb_srq_create(r->e, r->pd, &depth, &sge, NULL, &srq), 0);
	receive_for(r, srq, OP_SEND_ONLY, RIG_RQ_PSN, 0, 8);
	expect_ack(r, 0x61, RIG_RQ_PSN);
	rig_free(r);
}

static void
another_srq_inside_a_message_is_refused(void **state)
{
	struct rig *r = target_rig(0);
	struct second s = second_srq(r);

	rig_post_recv(r, 0, 4096);
	receive(r, OP_SEND_FIRST, RIG_RQ_PSN, 0, MTU);
	receive_for(r, s.srq, OP_SEND_LAST, RIG_RQ_PSN + 1, 0, 8);
	expect_ack(r, 0x61, RIG_RQ_PSN + 1);
	/* The receive that was taken is this target's; it is flushed. */
	assert_int_equal(rig_flushed(r, r->rcq), 1);
	rig_free(r);
}

static void
srq_destroyed_in_the_middle_of_a_message(void **state)
{
	struct rig *r = target_rig(0);

	rig_post_recv(r, 0, 4096);
	receive(r, OP_SEND_FIRST, RIG_RQ_PSN, 0, MTU);
	assert_int_equal(vrb_srq_destroy(r->srq), 0);
	assert_int_equal(r->xrcd.refs, 1);
	r->srq = NULL;
	receive(r, OP_SEND_LAST, RIG_RQ_PSN + 1, 0, 8);
	expect_ack(r, 0x61, RIG_RQ_PSN + 1);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_ERR);
	rig_expect_empty(r, r->rcq);
	rig_free(r);
}

static void
empty_srq_gives_rnr_and_the_message_comes_again(void **state)
{
	struct rig *r = target_rig(0);

	receive(r, OP_SEND_ONLY, RIG_RQ_PSN, 0, 8);
	expect_ack(r, 0x20 | 12, RIG_RQ_PSN);
	assert_int_equal(r->srq->dry, 1);
	rig_post_recv(r, 0, 64);
	receive(r, OP_SEND_ONLY, RIG_RQ_PSN, 0, 8);
	expect_ack(r, 0, RIG_RQ_PSN);
	expect_recv(r, r->rcq, 0, 0, 8);
	rig_free(r);
}

/* One receive for 32 targets: each gets its message through in the end, and none is lost. */
static void
many_targets_on_a_small_srq(void **state)
{
	struct rig *r = target_rig(1);
	struct vrb_qp *qps[32];
	unsigned int left = 32, done[32] = {0};

	qps[0] = r->qp;
	for (unsigned int i = 1; i < 32; i++)
		qps[i] = rig_qp(r, VRB_QPS_RTS);
	for (unsigned int round = 0; left > 0; round++) {
		assert_true(round < 32);
		rig_post_recv(r, 0, 64);
		for (unsigned int i = 0; i < 32; i++) {
			const struct frame *f;

			if (done[i])
				continue;
			r->qp = qps[i];
			receive(r, OP_SEND_ONLY, RIG_RQ_PSN, i, 64);
			f = rig_expect(r, OP_XRC | OP_ACK, RIG_RQ_PSN);
			if (f->syndrome != 0x1f) {
				assert_int_equal(f->syndrome, 0x20 | 12);
				continue;
			}
			done[i] = 1;
			left--;
			expect_recv(r, r->rcq, 0, i, 64);
		}
	}
	rig_expect_empty(r, r->rcq);
	rig_free(r);
}

static void
write_is_checked_by_the_domain_of_the_srq(void **state)
{
	struct rig *r = target_rig(0);
	struct second s = second_srq(r);
	struct frame f = packet(r, OP_WRITE_ONLY, RIG_RQ_PSN, 0, 64);

	rig_receive(r, &f);
	expect_ack(r, 0, RIG_RQ_PSN);
	assert_memory_equal(r->mem, pattern, 64);
	f.psn++;
	f.srqn = s.srq->num;
	f.rkey = s.mr->rkey;
	rig_receive(r, &f);
	expect_ack(r, 0, RIG_RQ_PSN + 1);
	f.psn++;
	f.rkey = r->mr->rkey; /* of the other's protection domain */
	rig_receive(r, &f);
	expect_ack(r, 0x62, RIG_RQ_PSN + 2);
	assert_true(rig_event(r, VRB_EVENT_QP_ACCESS_ERR));
	rig_free(r);
}

/* The READ is still being answered when a request for another SRQ arrives. */
static void
reads_keep_the_domain_that_they_were_asked_with(void **state)
{
	struct rig *r = target_rig(0);
	struct second s = second_srq(r);
	struct frame f = packet(r, OP_READ_REQ, RIG_RQ_PSN, 0, 0);
	const struct frame *resp;

	f.dmalen = 2 * MTU;
	rig_receive(r, &f);
	f.psn += 2;
	f.srqn = s.srq->num;
	f.rkey = s.mr->rkey;
	f.dmalen = 8;
	rig_receive(r, &f);
	resp = rig_expect(r, OP_XRC | OP_RESP_FIRST, RIG_RQ_PSN);
	assert_int_equal(resp->len, MTU);
	rig_expect(r, OP_XRC | OP_RESP_LAST, RIG_RQ_PSN + 1);
	rig_expect(r, OP_XRC | OP_RESP_ONLY, RIG_RQ_PSN + 2);
	/* Also a duplicate of the first. */
	f = packet(r, OP_READ_REQ, RIG_RQ_PSN, 0, 0);
	f.dmalen = 2 * MTU;
	rig_receive(r, &f);
	rig_expect(r, OP_XRC | OP_RESP_FIRST, RIG_RQ_PSN);
	rig_expect(r, OP_XRC | OP_RESP_LAST, RIG_RQ_PSN + 1);
	rig_free(r);
}

static void
initiator_names_the_srq_in_every_request(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.type = VRB_QPT_XRC_SEND});
	const uint8_t ops[] = {VRB_WR_SEND, VRB_WR_RDMA_WRITE, VRB_WR_RDMA_READ};
	const uint8_t wire[] = {OP_SEND_ONLY, OP_WRITE_ONLY, OP_READ_REQ};
	struct vrb_send_wqe *w;

	for (unsigned int i = 0; i < 3; i++) {
		w = rig_wqe(r, ops[i], 0, 64, 0);
		w->srqn = 0x123456 + i;
		assert_int_equal(rig_commit(r, w), 0);
		assert_int_equal(
			rig_expect(r, OP_XRC | wire[i], RIG_SQ_PSN + i)->srqn, 0x123456 + i);
	}
	w = rig_wqe(r, VRB_WR_SEND, 0, MTU + 1, 0);
	w->srqn = 7;
	assert_int_equal(rig_commit(r, w), 0);
	assert_int_equal(rig_expect(r, OP_XRC | OP_SEND_FIRST, RIG_SQ_PSN + 3)->srqn, 7);
	assert_int_equal(rig_expect(r, OP_XRC | OP_SEND_LAST, RIG_SQ_PSN + 4)->srqn, 7);
	rig_free(r);
}

static void
initiator_completes_by_acknowledgement_and_by_response(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.type = VRB_QPT_XRC_SEND});
	struct frame f;

	rig_post(r, VRB_WR_SEND, 0, 64, 0);
	rig_post(r, VRB_WR_RDMA_READ, 1024, 64, 0);
	assert_int_equal(rig_send(r), 2);
	rig_expect_empty(r, r->scq);
	f = rig_packet(r, OP_XRC | OP_ACK, RIG_SQ_PSN);
	f.syndrome = 0x1f;
	rig_receive(r, &f);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->opcode, VRB_WC_SEND);
	f = packet(r, OP_RESP_ONLY, RIG_SQ_PSN + 1, 5, 64);
	f.syndrome = 0x1f;
	rig_receive(r, &f);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->opcode, VRB_WC_RDMA_READ);
	assert_memory_equal(r->mem + 1024, pattern + 5, 64);
	rig_free(r);
}

static void
reset_target_leaves_its_srq(void **state)
{
	struct rig *r = target_rig(0);
	struct vrb_qp_attr a = {.state = VRB_QPS_RESET};

	rig_post_recv(r, 0, 64);
	receive(r, OP_SEND_ONLY, RIG_RQ_PSN, 0, 8);
	expect_ack(r, 0, RIG_RQ_PSN);
	assert_int_equal(vrb_qp_modify(r->qp, &a, VRB_QP_STATE, r->now), 0);
	assert_int_equal(vrb_srq_destroy(r->srq), 0);
	vrb_qp_destroy(r->qp);
	assert_int_equal(r->xrcd.refs, 0);
	rig_free(r);
}

static void
parts_that_do_not_belong_are_refused(void **state)
{
	struct rig *r = target_rig(0);
	struct vrb_qp_init init = r->init;
	struct vrb_qp *qp;

	init.xrcd = NULL;
	assert_int_equal(vrb_qp_create(r->e, &init, &qp), -EINVAL);
	init = (struct vrb_qp_init){
		.type = VRB_QPT_XRC_SEND, .pd = r->pd, .send_cq = r->scq, .srq = r->srq};
	assert_int_equal(vrb_qp_create(r->e, &init, &qp), -EINVAL);
	/* Receives of an XRC SRQ are for targets only. */
	init = (struct vrb_qp_init){.type = VRB_QPT_RC,
		.pd = r->pd,
		.send_cq = r->scq,
		.recv_cq = r->rcq,
		.srq = r->srq};
	assert_int_equal(vrb_qp_create(r->e, &init, &qp), -EINVAL);
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_send_takes_a_receive_of_the_srq_that_it_names),
		cmocka_unit_test(two_initiators_interleave_on_one_srq),
		cmocka_unit_test(wrong_srq_number_ends_the_target),
		cmocka_unit_test(srq_of_another_domain_is_refused),
		cmocka_unit_test(basic_srq_is_refused),
		cmocka_unit_test(another_srq_inside_a_message_is_refused),
		cmocka_unit_test(srq_destroyed_in_the_middle_of_a_message),
		cmocka_unit_test(empty_srq_gives_rnr_and_the_message_comes_again),
		cmocka_unit_test(many_targets_on_a_small_srq),
		cmocka_unit_test(write_is_checked_by_the_domain_of_the_srq),
		cmocka_unit_test(reads_keep_the_domain_that_they_were_asked_with),
		cmocka_unit_test(initiator_names_the_srq_in_every_request),
		cmocka_unit_test(initiator_completes_by_acknowledgement_and_by_response),
		cmocka_unit_test(reset_target_leaves_its_srq),
		cmocka_unit_test(parts_that_do_not_belong_are_refused),
	};

	for (unsigned int i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 11 + (i >> 8));
	return cmocka_run_group_tests(tests, rig_group, NULL);
}
