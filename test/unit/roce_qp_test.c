/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs: the state machine with its table of attributes, limits, flushing, destruction.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "roce_rig.h"

#define INIT_REQ (VRB_QP_PKEY_INDEX | VRB_QP_PORT | VRB_QP_ACCESS_FLAGS)
#define RTR_REQ \
	(VRB_QP_AV | VRB_QP_PATH_MTU | VRB_QP_DEST_QPN | VRB_QP_RQ_PSN | \
		VRB_QP_MAX_DEST_RD_ATOMIC | VRB_QP_MIN_RNR_TIMER)
#define RTS_REQ \
	(VRB_QP_TIMEOUT | VRB_QP_RETRY_CNT | VRB_QP_RNR_RETRY | VRB_QP_SQ_PSN | \
		VRB_QP_MAX_QP_RD_ATOMIC)

/*
 * ibv_modify_qp(3) and IBTA table 91, for RC: what each transition requires and allows. The
 * alternate path and its migration are refused: the device has none, and says so.
 */
static const struct row {
	enum vrb_qp_state from, to;
	uint32_t required, optional;
} table[] = {
	{VRB_QPS_RESET, VRB_QPS_INIT, INIT_REQ, 0},
	{VRB_QPS_INIT, VRB_QPS_INIT, 0, INIT_REQ},
	{VRB_QPS_INIT, VRB_QPS_RTR, RTR_REQ, VRB_QP_ACCESS_FLAGS | VRB_QP_PKEY_INDEX},
	{VRB_QPS_RTR, VRB_QPS_RTS, RTS_REQ,
		VRB_QP_CUR_STATE | VRB_QP_ACCESS_FLAGS | VRB_QP_MIN_RNR_TIMER},
	{VRB_QPS_RTS, VRB_QPS_RTS, 0,
		VRB_QP_CUR_STATE | VRB_QP_ACCESS_FLAGS | VRB_QP_MIN_RNR_TIMER},
	{VRB_QPS_RTS, VRB_QPS_SQD, 0, VRB_QP_EN_SQD_ASYNC_NOTIFY},
	{VRB_QPS_SQD, VRB_QPS_RTS, 0,
		VRB_QP_CUR_STATE | VRB_QP_ACCESS_FLAGS | VRB_QP_MIN_RNR_TIMER},
	{VRB_QPS_SQD, VRB_QPS_SQD, 0,
		VRB_QP_PORT | VRB_QP_AV | VRB_QP_TIMEOUT | VRB_QP_RETRY_CNT | VRB_QP_RNR_RETRY |
			VRB_QP_MAX_QP_RD_ATOMIC | VRB_QP_MAX_DEST_RD_ATOMIC | VRB_QP_ACCESS_FLAGS |
			VRB_QP_PKEY_INDEX | VRB_QP_MIN_RNR_TIMER},
};

static const struct row *
row_of(enum vrb_qp_state from, enum vrb_qp_state to)
{
	for (unsigned int i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].from == from && table[i].to == to)
			return &table[i];
	return NULL;
}

static struct vrb_qp *
qp_in(struct rig *r, enum vrb_qp_state state)
{
	static const struct {
		enum vrb_qp_state to;
		uint32_t mask;
	} way[] = {
		{VRB_QPS_INIT, INIT_REQ},
		{VRB_QPS_RTR, RTR_REQ},
		{VRB_QPS_RTS, RTS_REQ},
		{VRB_QPS_SQD, 0},
	};
	struct vrb_qp *qp = rig_qp(r, VRB_QPS_RESET);
	struct vrb_qp_attr a = r->attr;

	if (state == VRB_QPS_ERR) {
		a.state = VRB_QPS_ERR;
		assert_int_equal(vrb_qp_modify(qp, &a, VRB_QP_STATE, r->now), 0);
	}
	for (unsigned int i = 0; i < 4 && state != VRB_QPS_ERR && state >= way[i].to; i++) {
		a.state = way[i].to;
		assert_int_equal(vrb_qp_modify(qp, &a, VRB_QP_STATE | way[i].mask, r->now), 0);
	}
	assert_int_equal(vrb_qp_state(qp), state);
	return qp;
}

static int
try(struct rig *r, struct vrb_qp *qp, enum vrb_qp_state to, uint32_t mask)
{
	struct vrb_qp_attr a = r->attr;

	a.state = to;
	a.cur_state = vrb_qp_state(qp);
	return vrb_qp_modify(qp, &a, VRB_QP_STATE | mask, r->now);
}

/* A change that fails leaves every attribute and the state as they were. */
static void
must_fail(struct rig *r, struct vrb_qp *qp, enum vrb_qp_state to, uint32_t mask)
{
	struct vrb_qp_attr before, after;
	const struct vrb_qp_attr mine = r->attr;

	vrb_qp_query(qp, &before);
	/* Other values than it has, so that a change would show. */
	r->attr.access = VRB_ACCESS_REMOTE_READ;
	r->attr.path_mtu = VRB_MTU_256;
	r->attr.rq_psn ^= 1;
	r->attr.sq_psn ^= 1;
	r->attr.dest_qpn ^= 1;
	r->attr.min_rnr_timer ^= 1;
	r->attr.timeout ^= 1;
	r->attr.retry_cnt ^= 1;
	r->attr.rnr_retry ^= 1;
	r->attr.max_rd_atomic ^= 1;
	r->attr.max_dest_rd_atomic ^= 1;
	r->why[0] = '\0';
	assert_int_equal(try(r, qp, to, mask), -EINVAL);
	assert_true(r->why[0] != '\0');
	r->attr = mine;
	vrb_qp_query(qp, &after);
	assert_memory_equal(&before, &after, sizeof(before));
}

static void
transition_masks(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	for (unsigned int i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct row *t = &table[i];
		struct vrb_qp *qp = qp_in(r, t->from);

		for (uint32_t bit = 1; bit <= VRB_QP_RATE_LIMIT; bit <<= 1) {
			if (bit == VRB_QP_STATE)
				continue;
			if (t->required & bit)
				must_fail(r, qp, t->to, t->required & ~bit);
			else if (!(t->optional & bit))
				must_fail(r, qp, t->to, t->required | bit);
		}
		vrb_qp_destroy(qp);
		for (uint32_t bit = 1; bit <= VRB_QP_RATE_LIMIT; bit <<= 1) {
			if (!(t->optional & bit))
				continue;
			qp = qp_in(r, t->from);
			assert_int_equal(try(r, qp, t->to, t->required | bit), 0);
			assert_int_equal(vrb_qp_state(qp), t->to);
			vrb_qp_destroy(qp);
		}
		qp = qp_in(r, t->from);
		assert_int_equal(try(r, qp, t->to, t->required), 0);
		vrb_qp_destroy(qp);
	}
	rig_free(r);
}

static void
transitions_that_there_are_not(void **state)
{
	static const enum vrb_qp_state from[] = {
		VRB_QPS_RESET, VRB_QPS_INIT, VRB_QPS_RTR, VRB_QPS_RTS, VRB_QPS_SQD, VRB_QPS_ERR};
	struct rig *r = rig_new(&(struct rig_conf){0});

	for (unsigned int i = 0; i < sizeof(from) / sizeof(from[0]); i++) {
		for (unsigned int to = 0; to <= VRB_QPS_NUM; to++) {
			struct vrb_qp *qp = qp_in(r, from[i]);

			if (to == VRB_QPS_RESET || to == VRB_QPS_ERR)
				assert_int_equal(try(r, qp, to, 0), 0);
			else if (row_of(from[i], to) == NULL)
				must_fail(r, qp, to, 0);
			if (to == VRB_QPS_RESET || to == VRB_QPS_ERR)
				assert_int_equal(vrb_qp_state(qp), to);
			vrb_qp_destroy(qp);
		}
	}
	rig_free(r);
}

static void
values_are_checked(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.port_mtu = 1024 + 80});
	static const struct {
		size_t off;
		size_t size;
		uint32_t value;
		uint32_t mask;
		enum vrb_qp_state from, to;
	} bad[] = {
#define BAD(field, v, m, f, t) \
	{offsetof(struct vrb_qp_attr, field), sizeof(((struct vrb_qp_attr *)0)->field), v, m, f, t}
		BAD(pkey_index, 1, INIT_REQ, VRB_QPS_RESET, VRB_QPS_INIT),
		BAD(port_num, 2, INIT_REQ, VRB_QPS_RESET, VRB_QPS_INIT),
		BAD(port_num, 0, INIT_REQ, VRB_QPS_RESET, VRB_QPS_INIT),
		BAD(access, 1u << 20, INIT_REQ, VRB_QPS_RESET, VRB_QPS_INIT),
		BAD(path_mtu, 0, RTR_REQ, VRB_QPS_INIT, VRB_QPS_RTR),
		BAD(path_mtu, 6, RTR_REQ, VRB_QPS_INIT, VRB_QPS_RTR),
		BAD(path_mtu, VRB_MTU_2048, RTR_REQ, VRB_QPS_INIT,
			VRB_QPS_RTR), /* larger than the port carries */
		BAD(dest_qpn, 1u << 24, RTR_REQ, VRB_QPS_INIT, VRB_QPS_RTR),
		BAD(min_rnr_timer, 32, RTR_REQ, VRB_QPS_INIT, VRB_QPS_RTR),
		BAD(max_dest_rd_atomic, VRB_MAX_RD_ATOM + 1, RTR_REQ, VRB_QPS_INIT, VRB_QPS_RTR),
		BAD(av.sgid_index, VRB_GIDS, RTR_REQ, VRB_QPS_INIT, VRB_QPS_RTR),
		BAD(av.sgid_index, 1, RTR_REQ, VRB_QPS_INIT,
			VRB_QPS_RTR), /* IPv6, to an IPv4 address */
		BAD(timeout, 32, RTS_REQ, VRB_QPS_RTR, VRB_QPS_RTS),
		BAD(retry_cnt, 8, RTS_REQ, VRB_QPS_RTR, VRB_QPS_RTS),
		BAD(rnr_retry, 8, RTS_REQ, VRB_QPS_RTR, VRB_QPS_RTS),
		BAD(max_rd_atomic, VRB_MAX_RD_ATOM + 1, RTS_REQ, VRB_QPS_RTR, VRB_QPS_RTS),
		BAD(cur_state, VRB_QPS_RTS, RTS_REQ | VRB_QP_CUR_STATE, VRB_QPS_RTR, VRB_QPS_RTS),
#undef BAD
	};

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct vrb_qp *qp = qp_in(r, bad[i].from);
		struct vrb_qp_attr a = r->attr, before, after;

		a.state = bad[i].to;
		a.cur_state = bad[i].from;
		memcpy((uint8_t *)&a + bad[i].off, &bad[i].value, bad[i].size); /* little endian */
		vrb_qp_query(qp, &before);
		assert_int_equal(
			vrb_qp_modify(qp, &a, VRB_QP_STATE | bad[i].mask, r->now), -EINVAL);
		vrb_qp_query(qp, &after);
		assert_memory_equal(&before, &after, sizeof(before));
		vrb_qp_destroy(qp);
	}
	rig_free(r);
}

static void
query_tells_what_was_set(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.timeout = 14, .retry_cnt = 3, .rnr_retry = 4});
	struct vrb_qp_attr a;

	vrb_qp_query(r->qp, &a);
	assert_int_equal(a.state, VRB_QPS_RTS);
	assert_int_equal(a.cur_state, VRB_QPS_RTS);
	assert_int_equal(a.path_mtu, VRB_MTU_1024);
	assert_int_equal(a.dest_qpn, RIG_PEER_QPN);
	assert_int_equal(a.rq_psn, RIG_RQ_PSN);
	assert_int_equal(a.sq_psn, RIG_SQ_PSN);
	assert_int_equal(a.timeout, 14);
	assert_int_equal(a.retry_cnt, 3);
	assert_int_equal(a.rnr_retry, 4);
	assert_int_equal(a.min_rnr_timer, 12);
	assert_memory_equal(&a.av.dgid, &r->attr.av.dgid, sizeof(a.av.dgid));
	rig_free(r);
}

static void
reset_forgets_everything(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.timeout = 14});
	struct frame f;

	rig_post(r, VRB_WR_SEND, 0, 1, 0);
	rig_post(r, VRB_WR_RDMA_READ, 0, 1, 0);
	rig_post_recv(r, 0, 10);
	rig_send(r);
	r->next_frame = r->n_frames;
	assert_int_equal(vrb_qp_modify(r->qp, &(struct vrb_qp_attr){.state = VRB_QPS_RESET},
				 VRB_QP_STATE, r->now),
		0);
	rig_expect_empty(r, r->scq);
	rig_expect_empty(r, r->rcq);
	rig_expect_silence(r);
	assert_int_equal(vrb_engine_deadline(r->e), UINT64_MAX);
	/* And can be connected again, with all its room. */
	assert_int_equal(rig_connect(r, r->qp), 0);
	for (unsigned int i = 0; i < vrb_qp_sq(r->qp)->max_wr; i++)
		rig_post(r, VRB_WR_SEND, i, 1, 0);
	rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN);
	rig_send(r);
	r->next_frame = r->n_frames;
	rig_post_recv(r, 5, 10);
	f = rig_packet(r, OP_SEND_ONLY, RIG_RQ_PSN);
	rig_receive(r, &f);
	assert_int_equal(rig_poll(r, r->rcq, VRB_WC_SUCCESS)->wr_id, 5);
	assert_int_equal(rig_expect_ack(r, 0, RIG_RQ_PSN)->msn, 1);
	rig_free(r);
}

static void
error_state_flushes_in_order(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.timeout = 14});

	for (unsigned int i = 0; i < 5; i++) {
		rig_post(r, VRB_WR_SEND, i, 1, 0);
		rig_post_recv(r, 10 + i, 1);
	}
	rig_send(r);
	r->next_frame = r->n_frames;
	rig_ack(r, 0x1f, RIG_SQ_PSN);
	assert_int_equal(vrb_qp_modify(r->qp, &(struct vrb_qp_attr){.state = VRB_QPS_ERR},
				 VRB_QP_STATE, r->now),
		0);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	for (unsigned int i = 1; i < 5; i++)
		assert_int_equal(rig_poll(r, r->scq, VRB_WC_WR_FLUSH_ERR)->wr_id, i);
	for (unsigned int i = 0; i < 5; i++)
		assert_int_equal(rig_poll(r, r->rcq, VRB_WC_WR_FLUSH_ERR)->wr_id, 10 + i);
	rig_expect_empty(r, r->scq);
	rig_expect_empty(r, r->rcq);
	rig_expect_silence(r);
	rig_free(r);
}

/* Receives of an SRQ are not flushed: they are the others'. The event tells that no more will
 * complete here. */
static void
error_state_with_a_srq(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.srq = true});
	struct frame f = rig_packet(r, OP_SEND_FIRST, RIG_RQ_PSN);
	static const uint8_t zeros[1024];

	rig_post_recv(r, 1, 2000);
	rig_post_recv(r, 2, 2000);
	f.payload = zeros;
	f.len = 1024;
	rig_receive(r, &f); /* the first has been begun */
	assert_int_equal(vrb_qp_modify(r->qp, &(struct vrb_qp_attr){.state = VRB_QPS_ERR},
				 VRB_QP_STATE, r->now),
		0);
	assert_int_equal(rig_poll(r, r->rcq, VRB_WC_WR_FLUSH_ERR)->wr_id, 1);
	rig_expect_empty(r, r->rcq);
	assert_true(rig_event(r, VRB_EVENT_QP_LAST_WQE_REACHED));
	assert_int_equal(vrb_rq_count(&r->init.srq->rq), 1);
	rig_free(r);
}

static void
sqd_finishes_what_was_begun(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.mtu = VRB_MTU_256, .timeout = 14});
	struct vrb_qp_attr a = {.state = VRB_QPS_SQD, .en_sqd_async_notify = 1};

	rig_post(r, VRB_WR_SEND, 0, 600, 0);
	rig_post(r, VRB_WR_SEND, 1, 1, 0);
	assert_int_equal(rig_send_some(r, 1), 1);
	assert_int_equal(
		vrb_qp_modify(r->qp, &a, VRB_QP_STATE | VRB_QP_EN_SQD_ASYNC_NOTIFY, r->now), 0);
	rig_expect(r, OP_SEND_FIRST, RIG_SQ_PSN);
	rig_expect(r, OP_SEND_MIDDLE, RIG_SQ_PSN + 1);
	rig_expect(r, OP_SEND_LAST, RIG_SQ_PSN + 2);
	rig_expect_silence(r);
	vrb_qp_query(r->qp, &a);
	assert_true(a.sq_draining);
	assert_false(rig_event(r, VRB_EVENT_SQ_DRAINED));
	rig_ack(r, 0x1f, RIG_SQ_PSN + 2);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	assert_true(rig_event(r, VRB_EVENT_SQ_DRAINED));
	vrb_qp_query(r->qp, &a);
	assert_false(a.sq_draining);
	rig_expect_silence(r);
	a.state = VRB_QPS_RTS;
	assert_int_equal(vrb_qp_modify(r->qp, &a, VRB_QP_STATE, r->now), 0);
	rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN + 3);
	rig_free(r);
}

static void
posting_below_rts_is_refused(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	for (enum vrb_qp_state s = VRB_QPS_RESET; s < VRB_QPS_RTS; s++) {
		vrb_qp_destroy(r->qp);
		r->qp = qp_in(r, s);
		assert_int_equal(
			vrb_qp_check_send(r->qp, rig_wqe(r, VRB_WR_SEND, 0, 1, 0)), -EINVAL);
	}
	rig_free(r);
}

static void
limits_of_creation(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	const struct vrb_qp_init good = r->init;
	struct vrb_qp_init i = good;
	struct vrb_qp *qp;

#define REFUSED(field, value, rc) \
	do { \
		i = good; \
		i.field = value; \
		assert_int_equal(vrb_qp_create(r->e, &i, &qp), rc); \
	} while (0)
	REFUSED(max_send_wr, VRB_MAX_QP_WR + 1, -EINVAL);
	REFUSED(max_recv_wr, VRB_MAX_QP_WR + 1, -EINVAL);
	REFUSED(max_send_sge, VRB_MAX_SGE + 1, -EINVAL);
	REFUSED(max_recv_sge, VRB_MAX_SGE + 1, -EINVAL);
	REFUSED(max_inline, VRB_MAX_INLINE + 1, -EINVAL);
	REFUSED(type, (enum vrb_qp_type)99, -EOPNOTSUPP);
#undef REFUSED
	/* What is reported can be had. */
	i = good;
	i.max_send_wr = i.max_recv_wr = VRB_MAX_QP_WR;
	i.max_send_sge = i.max_recv_sge = VRB_MAX_SGE;
	i.max_inline = VRB_MAX_INLINE;
	assert_int_equal(vrb_qp_create(r->e, &i, &qp), 0);
	assert_true(i.max_send_wr >= VRB_MAX_QP_WR && i.max_inline >= VRB_MAX_INLINE);
	vrb_qp_destroy(qp);
	rig_free(r);
}

static void
numbers_are_not_soon_used_again(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	uint32_t first;

	vrb_qp_destroy(r->qp);
	r->qp = rig_qp(r, VRB_QPS_RTS);
	first = vrb_qp_num(r->qp);
	for (unsigned int i = 0; i < 100; i++) {
		vrb_qp_destroy(r->qp);
		r->qp = rig_qp(r, VRB_QPS_RTS);
		assert_true(vrb_qp_num(r->qp) != first && vrb_qp_num(r->qp) > 1);
	}
	rig_free(r);
}

static void
as_many_as_the_limit_says(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct vrb_qp_init init;
	struct vrb_qp *qp;

	r->init.max_send_wr = r->init.max_recv_wr = r->init.max_send_sge = r->init.max_recv_sge = 1;
	for (unsigned int i = 1; i < VRB_MAX_QP; i++)
		rig_qp(r, VRB_QPS_RESET);
	init = r->init;
	assert_int_equal(vrb_qp_create(r->e, &init, &qp), -ENOMEM);
	vrb_qp_destroy(r->qp);
	r->qp = rig_qp(r, VRB_QPS_RESET);
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(transition_masks),
		cmocka_unit_test(transitions_that_there_are_not),
		cmocka_unit_test(values_are_checked),
		cmocka_unit_test(query_tells_what_was_set),
		cmocka_unit_test(reset_forgets_everything),
		cmocka_unit_test(error_state_flushes_in_order),
		cmocka_unit_test(error_state_with_a_srq),
		cmocka_unit_test(sqd_finishes_what_was_begun),
		cmocka_unit_test(posting_below_rts_is_refused),
		cmocka_unit_test(limits_of_creation),
		cmocka_unit_test(numbers_are_not_soon_used_again),
		cmocka_unit_test(as_many_as_the_limit_says),
	};

	return cmocka_run_group_tests_name("roce queue pairs", tests, rig_group, NULL);
}
