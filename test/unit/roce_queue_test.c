/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues and shared receive queues: sizes, resizing while they are full, overflow,
 * watermarks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "roce_rig.h"

static void
complete_sends(struct rig *r, uint32_t psn, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		rig_post(r, VRB_WR_SEND, psn + i, 1, 0);
	rig_send(r);
	r->next_frame = r->n_frames;
	rig_ack(r, 0x1f, psn + n - 1);
}

static void
cq_sizes(void **state)
{
	struct rig *r = rig_bare(&(struct rig_conf){0});
	struct vrb_cq *cq;

	assert_int_equal(vrb_cq_create(r->e, 0, NULL, &cq), -EINVAL);
	assert_int_equal(vrb_cq_create(r->e, VRB_MAX_CQE + 1u, NULL, &cq), -EINVAL);
	assert_int_equal(vrb_cq_create(r->e, 1, NULL, &cq), 0);
	assert_true(cq->size >= 1);
	assert_int_equal(vrb_cq_destroy(r->e, cq), 0);
	assert_int_equal(vrb_cq_create(r->e, VRB_MAX_CQE, NULL, &cq), 0);
	assert_true(cq->size >= VRB_MAX_CQE);
	assert_int_equal(vrb_cq_destroy(r->e, cq), 0);
	rig_free(r);
}

/* Up and down, with completions in it, at every position of the ring. */
static void
cq_is_resized_with_completions_in_it(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.depth = 64, .cq_size = 5});
	uint32_t psn = RIG_SQ_PSN, next = RIG_SQ_PSN;

	for (unsigned int round = 0; round < 100; round++) {
		unsigned int n = round % 4 + 1;

		complete_sends(r, psn, n);
		psn += n;
		assert_int_equal(vrb_cq_resize(r->e, r->scq, 0), -EINVAL);
		assert_int_equal(vrb_cq_resize(r->e, r->scq, VRB_MAX_CQE + 1u), -EINVAL);
		if (n > 1)
			assert_int_equal(vrb_cq_resize(r->e, r->scq, n - 1), -EINVAL);
		assert_int_equal(vrb_cq_resize(r->e, r->scq, round % 3 ? n : 100), 0);
		assert_true(r->scq->size >= n);
		assert_int_equal(vrb_cq_resize(r->e, r->scq, 5 + round % 7), 0);
		for (unsigned int i = 0; i < n; i++)
			assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->wr_id, next++);
		rig_expect_empty(r, r->scq);
	}
	assert_int_equal(vrb_engine_stats(r->e)->cq_overruns, 0);
	rig_free(r);
}

static void
cq_stays_armed_when_resized(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	vrb_cq_arm(r->scq, false);
	assert_int_equal(vrb_cq_resize(r->e, r->scq, 1000), 0);
	complete_sends(r, RIG_SQ_PSN, 2);
	assert_int_equal(r->notified, 1);
	rig_free(r);
}

static void
cq_holds_its_size(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.cq_size = 3, .depth = 16});

	complete_sends(r, RIG_SQ_PSN, 3);
	assert_int_equal(vrb_engine_stats(r->e)->cq_overruns, 0);
	for (unsigned int i = 0; i < 3; i++)
		rig_poll(r, r->scq, VRB_WC_SUCCESS);
	rig_free(r);
}

/* IBTA 10.2.6.3: told by an event, and all queue pairs of the CQ fail; nothing that was in it is
 * lost. */
static void
cq_overflow_is_told(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.cq_size = 3, .depth = 16});
	struct vrb_qp *other = rig_qp(r, VRB_QPS_RTS);

	rig_post_recv(r, 77, 1);
	complete_sends(r, RIG_SQ_PSN, 4);
	rig_send(r);
	assert_true(rig_event(r, VRB_EVENT_CQ_ERR));
	assert_true(rig_event(r, VRB_EVENT_QP_FATAL));
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_ERR);
	assert_int_equal(vrb_qp_state(other), VRB_QPS_ERR);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->wr_id, RIG_SQ_PSN + i);
	rig_expect_empty(r, r->scq);
	assert_int_equal(rig_poll(r, r->rcq, VRB_WC_WR_FLUSH_ERR)->wr_id, 77);
	assert_int_equal(vrb_engine_stats(r->e)->cq_overruns, 1);
	assert_non_null(strstr(r->why, "overflow"));
	rig_free(r);
}

static void
srq_limits(void **state)
{
	struct rig *r = rig_bare(&(struct rig_conf){0});
	struct vrb_srq *srq;
	uint32_t wr = VRB_MAX_SRQ_WR + 1, sge = 1;

	assert_int_equal(vrb_srq_create(r->e, r->pd, &wr, &sge, r, &srq), -EINVAL);
	wr = 0;
	assert_int_equal(vrb_srq_create(r->e, r->pd, &wr, &sge, r, &srq), -EINVAL);
	wr = 1;
	sge = VRB_MAX_SRQ_SGE + 1;
	assert_int_equal(vrb_srq_create(r->e, r->pd, &wr, &sge, r, &srq), -EINVAL);
	wr = VRB_MAX_SRQ_WR;
	sge = VRB_MAX_SRQ_SGE;
	assert_int_equal(vrb_srq_create(r->e, r->pd, &wr, &sge, r, &srq), 0);
	assert_true(wr >= VRB_MAX_SRQ_WR && sge >= VRB_MAX_SRQ_SGE);
	for (uint32_t i = 0; i < wr; i++) {
		assert_true(vrb_rq_slot(&srq->rq, 0) != NULL);
		vrb_rq_commit(&srq->rq, 1);
	}
	assert_null(vrb_rq_slot(&srq->rq, 0));
	assert_int_equal(vrb_srq_destroy(srq), 0);
	rig_free(r);
}

static void
arrive(struct rig *r, uint32_t i)
{
	struct frame f = rig_packet(r, OP_SEND_ONLY, RIG_RQ_PSN + i);

	rig_receive(r, &f);
	rig_send(r);
	r->next_frame = r->n_frames;
}

static void
srq_is_resized_with_receives_in_it(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.srq = true, .depth = 8});
	struct vrb_srq *srq = r->init.srq;
	uint32_t wr, posted = 0, taken = 0;

	assert_int_equal(vrb_srq_destroy(srq), -EBUSY);
	for (unsigned int round = 0; round < 40; round++) {
		while (posted - taken < 5)
			rig_post_recv(r, posted++, 0);
		wr = 4;
		assert_int_equal(
			vrb_srq_modify(srq, &wr, UINT32_MAX), -EINVAL); /* five are in it */
		wr = round % 2 ? 5 : 40;
		assert_int_equal(vrb_srq_modify(srq, &wr, UINT32_MAX), 0);
		assert_true(wr >= 5);
		wr = VRB_MAX_SRQ_WR + 1;
		assert_int_equal(vrb_srq_modify(srq, &wr, UINT32_MAX), -EINVAL);
		for (unsigned int i = 0; i < 3; i++) {
			arrive(r, taken);
			assert_int_equal(rig_poll(r, r->rcq, VRB_WC_SUCCESS)->wr_id, taken++);
		}
	}
	rig_free(r);
}

/* IBTA 11.2.3.3: once, when fewer than the limit are left. */
static void
srq_watermark(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.srq = true, .depth = 8});
	struct vrb_srq *srq = r->init.srq;
	uint32_t none = 0;

	for (unsigned int i = 0; i < 6; i++)
		rig_post_recv(r, i, 0);
	assert_int_equal(vrb_srq_modify(srq, &none, 9), -EINVAL);
	none = 0;
	assert_int_equal(vrb_srq_modify(srq, &none, 4), 0);
	arrive(r, 0);
	arrive(r, 1);
	assert_int_equal(r->n_events, 0);
	arrive(r, 2);
	assert_int_equal(r->n_events, 1);
	assert_true(rig_event(r, VRB_EVENT_SRQ_LIMIT_REACHED));
	assert_ptr_equal(r->event_obj[0], srq->user);
	arrive(r, 3);
	assert_int_equal(r->n_events, 1);
	/* Armed when it is below already: at once. */
	none = 0;
	assert_int_equal(vrb_srq_modify(srq, &none, 4), 0);
	assert_int_equal(r->n_events, 2);
	rig_free(r);
}

/* Messages of two queue pairs that arrive by turns each fill one receive. */
static void
srq_serves_interleaved_messages(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.srq = true, .mtu = VRB_MTU_256});
	struct vrb_qp *qp[2] = {r->qp, rig_qp(r, VRB_QPS_RTS)};
	uint8_t msg[2][300];

	rig_post_recv(r, 1000, 300);
	rig_post_recv(r, 2000, 300);
	for (unsigned int part = 0; part < 2; part++) {
		for (unsigned int q = 0; q < 2; q++) {
			struct frame f;

			pattern_fill(msg[q], 300, 50 + q, 0);
			r->qp = qp[q];
			f = rig_packet(r, part ? OP_SEND_LAST : OP_SEND_FIRST, RIG_RQ_PSN + part);
			f.payload = msg[q] + part * 256;
			f.len = part ? 44 : 256;
			rig_receive(r, &f);
		}
	}
	for (unsigned int q = 0; q < 2; q++) {
		const struct vrb_cqe *c = rig_poll(r, r->rcq, VRB_WC_SUCCESS);

		assert_int_equal(c->qp_num, vrb_qp_num(qp[q]));
		assert_int_equal(c->wr_id, 1000 * (q + 1));
		assert_memory_equal(r->mem + 1000 * (q + 1), msg[q], 300);
	}
	rig_free(r);
}

static void
doorbell_is_seen_from_outside(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	rig_send(r); /* going to RTS has scheduled it */
	assert_false(vrb_engine_doorbell(r->e));
	assert_int_equal(vrb_engine_deadline(r->e), UINT64_MAX);
	rig_post(r, VRB_WR_SEND, 0, 1, 0);
	assert_true(vrb_engine_doorbell(r->e));
	assert_int_equal(vrb_engine_deadline(r->e), 0);
	rig_take(r);
	assert_false(vrb_engine_doorbell(r->e));
	assert_int_equal(vrb_engine_deadline(r->e), UINT64_MAX); /* timeout 0: no timer */
	/* Rung and destroyed before it was taken up. */
	vrb_engine_ring(r->qp);
	vrb_qp_destroy(r->qp);
	rig_expect_silence(r);
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cq_sizes),
		cmocka_unit_test(cq_is_resized_with_completions_in_it),
		cmocka_unit_test(cq_stays_armed_when_resized),
		cmocka_unit_test(cq_holds_its_size),
		cmocka_unit_test(cq_overflow_is_told),
		cmocka_unit_test(srq_limits),
		cmocka_unit_test(srq_is_resized_with_receives_in_it),
		cmocka_unit_test(srq_watermark),
		cmocka_unit_test(srq_serves_interleaved_messages),
		cmocka_unit_test(doorbell_is_seen_from_outside),
	};

	return cmocka_run_group_tests_name("roce queues", tests, rig_group, NULL);
}
