/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_destroy_rwq_ind_table(), as ibv_create_rwq_ind_table(3) describes it, sentence by sentence.
 */
#include "rss_rules.h"

static struct ibv_rwq_ind_table *
make_table(struct rig *r, struct ibv_wq *wq)
{
	struct ibv_wq *entries[] = {wq, wq, wq, wq};
	struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = 2, .ind_tbl = entries};
	struct ibv_rwq_ind_table *tbl = ibv_create_rwq_ind_table(r->ctx, &attr);

	assert_non_null(tbl);
	return tbl;
}

static void
prototype(struct rig *r)
{
	int (*fn)(struct ibv_rwq_ind_table * rwq_ind_table) = ibv_destroy_rwq_ind_table;
	struct ibv_wq *wq;

	need_rss(r);
	wq = make_wq(r);
	assert_int_equal(fn(make_table(r, wq)), 0);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
its_queues_are_free_again(struct rig *r)
{
	struct ibv_rwq_ind_table *tbl;
	struct ibv_wq *wq;

	need_rss(r);
	wq = make_wq(r);
	tbl = make_table(r, wq);
	expect_errno(ibv_destroy_wq(wq), EBUSY);
	assert_int_equal(ibv_destroy_rwq_ind_table(tbl), 0);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

/* Not the work queues: what is posted to them stays, and is flushed by their own error state. */
static void
its_queues_live_on(struct rig *r)
{
	struct ibv_rwq_ind_table *tbl;
	struct ibv_wq *wq;
	struct ibv_wc wc;

	need_rss(r);
	wq = make_wq(r);
	tbl = make_table(r, wq);
	assert_int_equal(wq_to(wq, IBV_WQS_RDY), 0);
	assert_int_equal(post_wq(r, wq, 7), 0);
	assert_int_equal(ibv_destroy_rwq_ind_table(tbl), 0);
	expect_no_completion(r->cq);
	assert_int_equal(wq->state, IBV_WQS_RDY);
	assert_int_equal(post_wq(r, wq, 8), 0);
	assert_int_equal(wq_to(wq, IBV_WQS_ERR), 0);
	assert_true(poll_for(r->cq, &wc));
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(next_status(r->cq), IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
it_can_be_made_and_destroyed_for_ever(struct rig *r)
{
	uint32_t n, i;
	struct ibv_wq *wq;

	need_rss(r);
	wq = make_wq(r);
	n = 2 * device_attr(r).rss_caps.max_rwq_indirection_tables;
	n = n < 50000 ? n : 50000;
	for (i = 0; i < n; i++)
		assert_int_equal(ibv_destroy_rwq_ind_table(make_table(r, wq)), 0);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
others_are_left_alone(struct rig *r)
{
	struct ibv_rwq_ind_table *same;
	struct ibv_qp *qp;
	struct rss s;

	need_rss(r);
	s = open_rss(r, UDP_FIELDS);
	same = make_table(r, s.wq[0]);
	check_udp(&s);
	qp = ibv_create_qp_ex(r->ctx, &s.attr);
	assert_non_null(qp);
	assert_int_equal(ibv_destroy_rwq_ind_table(same), 0);
	expect_errno(ibv_destroy_rwq_ind_table(s.tbl), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	check_udp(&s);
	close_rss(&s);
}

static void
zero_or_the_errno_itself(struct rig *r)
{
	struct ibv_qp *qp;
	struct rss s;
	int rc;

	need_rss(r);
	s = open_rss(r, UDP_FIELDS);
	qp = ibv_create_qp_ex(r->ctx, &s.attr);
	assert_non_null(qp);
	errno = 0;
	rc = ibv_destroy_rwq_ind_table(s.tbl);
	assert_errno_value(rc);
	assert_int_equal(rc, EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	close_rss(&s); /* expects 0 */
}

static void
busy_until_the_last_queue_pair_is_gone(struct rig *r)
{
	struct ibv_qp *qps[10];
	struct rss s;
	int i;

	need_rss(r);
	s = open_rss(r, UDP_FIELDS);
	for (i = 0; i < 10; i++) {
		qps[i] = ibv_create_qp_ex(r->ctx, &s.attr);
		assert_non_null(qps[i]);
	}
	for (i = 0; i < 10; i++) {
		expect_errno(ibv_destroy_rwq_ind_table(s.tbl), EBUSY);
		assert_int_equal(ibv_destroy_qp(qps[i]), 0);
	}
	close_rss(&s);
}

static void
failing_it_changes_nothing(struct rig *r)
{
	struct ibv_qp *qp;
	struct rss s;
	int i;

	need_rss(r);
	s = open_rss(r, UDP_FIELDS);
	qp = ibv_create_qp_ex(r->ctx, &s.attr);
	assert_non_null(qp);
	for (i = 0; i < 3; i++) {
		expect_errno(ibv_destroy_rwq_ind_table(s.tbl), EBUSY);
		expect_errno(ibv_destroy_wq(s.wq[0]), EBUSY);
		check_udp(&s);
	}
	assert_int_equal(ibv_destroy_qp(qp), 0);
	close_rss(&s);
}

#define DESTROYS "ibv_destroy_rwq_ind_table() destroys the RWQ IND TBL rwq_ind_table."
#define RETURNS \
	"ibv_destroy_rwq_ind_table() returns 0 on success, or the value of errno on failure " \
	"(which indicates the failure reason)."

static const struct rule rules[] = {
	RULE("int ibv_destroy_rwq_ind_table(struct ibv_rwq_ind_table *rwq_ind_table);", NULL,
		prototype),
	RULE(DESTROYS, "its work queues are free again", its_queues_are_free_again),
	RULE(DESTROYS, "its work queues live on", its_queues_live_on),
	RULE(DESTROYS, "and can be made anew for ever", it_can_be_made_and_destroyed_for_ever),
	RULE(DESTROYS, "others are left alone", others_are_left_alone),
	RULE(RETURNS, "the value, and not -1", zero_or_the_errno_itself),
	RULE(RETURNS, "EBUSY until the last queue pair is gone",
		busy_until_the_last_queue_pair_is_gone),
	RULE(RETURNS, "and then nothing is changed", failing_it_changes_nothing),
	LAST_RULE,
};

int
main(int argc, char **argv)
{
	return run_rules(argc, argv, rules);
}
