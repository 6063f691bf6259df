/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues and indirection tables.
 */
#include "cases.h"

static void
create_makes_one(void)
{
	run("cq create 1");
	run("wq create 3 cq 1 size 100 flags strip-vlan");
	assert_true(wq_of(3)->wq->rq.max_wr >= 100);
	assert_int_equal(wq_of(3)->wq->flags, VRB_RX_STRIP_CVLAN);
	assert_int_equal(vrb_wq_state(wq_of(3)->wq), VRB_WQS_RESET);
	assert_ptr_equal(wq_of(3)->wq->cq, cq_of(1)->cq);
	refuse(-EINVAL, "cq is missing", "wq create 4");
	refuse(-ENOENT, "there is no cq 9", "wq create 4 cq 9");
}

static void
modify_changes_the_state(void)
{
	run("cq create 1");
	run("wq create 1 cq 1");
	refuse(-EINVAL, "wq 1 cannot go from state reset to error", "wq modify 1 state error");
	run("wq modify 1 state ready");
	assert_int_equal(vrb_wq_state(wq_of(1)->wq), VRB_WQS_RDY);
	run("wq post 1 count 5");
	run("wq modify 1 state error");
	assert_int_equal(vrb_wq_state(wq_of(1)->wq), VRB_WQS_ERR);
	/* What was posted is flushed. */
	assert_int_equal(tp_cq_count(cq_of(1)->cq), 5);
	run("wq modify 1 state reset");
	assert_int_equal(vrb_wq_state(wq_of(1)->wq), VRB_WQS_RESET);
	assert_int_equal(vrb_rq_count(&wq_of(1)->wq->rq), 0);
}

static void
post_posts_receives(void)
{
	run("cq create 1");
	run("wq create 1 cq 1 size 16");
	refuse(-EINVAL, "wq modify 1 state ready first", "wq post 1");
	run("wq modify 1 state ready");
	run("wq post 1 count 16");
	assert_int_equal(vrb_rq_count(&wq_of(1)->wq->rq), 16);
	refuse(-ENOBUFS, "wq 1 has room for 0 receives", "wq post 1");
}

static void
show_tells_fill_level(void)
{
	const char *out;

	make_rss();
	run("wq post 2 count 11");
	out = run("wq show 2");
	holds(out, "state ready");
	assert_int_equal(number(out, "posted"), vrb_rq_count(&wq_of(2)->wq->rq));
	assert_int_equal(number(out, "posted"), 11);
	assert_int_equal(number(out, "number"), wq_of(2)->wq->num);
	assert_int_equal(number(out, "entries"), wq_of(2)->wq->refs);
}

static void
show_lists_all(void)
{
	const char *out;

	holds(run("wq show"), "no wq");
	make_rss();
	out = run("wq show");
	assert_int_equal(number(strstr(out, "wq 1"), "number"), wq_of(1)->wq->num);
	assert_int_equal(number(strstr(out, "wq 2"), "number"), wq_of(2)->wq->num);
}

static void
destroy_refuses_what_is_used(void)
{
	make_rss();
	refuse(-EBUSY, "wq 1 stands in 2 entries of indirection tables", "wq destroy 1");
	assert_int_equal(wq_of(1)->wq->refs, 2);
	run("qp destroy 1");
	run("ind-table destroy 1");
	run("wq destroy 1");
	assert_null(tp_object_find(TP_WQ, 1));
}

static void
table_create_fills_entries_in_turn(void)
{
	const struct vrb_ind_tbl *t;

	run("cq create 1");
	for (int i = 1; i <= 3; i++)
		run("wq create %d cq 1", i);
	run("ind-table create 1 wqs 1-3 size 8");
	t = table_of(1)->tbl;
	assert_int_equal(t->mask, 7);
	for (uint32_t i = 0; i < 8; i++)
		assert_ptr_equal(t->wqs[i], wq_of(1 + i % 3)->wq);
	run("ind-table create 2 wqs 3");
	assert_int_equal(table_of(2)->tbl->mask, 0);
	refuse(-EINVAL, "size is a power of two", "ind-table create 3 wqs 1 size 6");
	refuse(-EINVAL, "3 work queues do not fit", "ind-table create 3 wqs 1-3 size 2");
	refuse(-ENOENT, "there is no wq 4", "ind-table create 3 wqs 1-4");
	refuse(-EINVAL, "wqs is a list", "ind-table create 3 wqs a");
	assert_null(tp_object_find(TP_IND_TABLE, 3));
	assert_int_equal(wq_of(3)->wq->refs, 3);
}

static void
table_show_tells_entries(void)
{
	const char *out;

	make_rss();
	out = run("ind-table show 1");
	assert_int_equal(number(out, "number"), table_of(1)->tbl->num);
	assert_int_equal(number(out, "queue-pairs"), table_of(1)->tbl->refs);
	assert_int_equal(number(out, "size"), table_of(1)->tbl->mask + 1);
	holds(out, "wqs 1 2 1 2\n");
}

static void
table_show_lists_all(void)
{
	const char *out;

	holds(run("ind-table show"), "no ind-table");
	make_rss();
	run("ind-table create 2 wqs 2");
	out = run("ind-table show");
	holds(strstr(out, "ind-table 1"), "wqs 1 2 1 2\n");
	holds(strstr(out, "ind-table 2"), "wqs 2\n");
}

static void
table_destroy_refuses_what_is_used(void)
{
	make_rss();
	refuse(-EBUSY, "ind-table 1 is used by 1 queue pair", "ind-table destroy 1");
	run("qp destroy 1");
	run("ind-table destroy 1");
	assert_null(tp_object_find(TP_IND_TABLE, 1));
	assert_int_equal(wq_of(1)->wq->refs, 0);
}

static const struct tp_case cases[] = {
	{"wq create <wq>", create_makes_one},
	{"wq modify <wq>", modify_changes_the_state},
	{"wq post <wq>", post_posts_receives},
	{"wq show", show_lists_all},
	{"wq show <wq>", show_tells_fill_level},
	{"wq destroy <wq>", destroy_refuses_what_is_used},
	{"ind-table create <table>", table_create_fills_entries_in_turn},
	{"ind-table show", table_show_lists_all},
	{"ind-table show <table>", table_show_tells_entries},
	{"ind-table destroy <table>", table_destroy_refuses_what_is_used},
};

const struct tp_cases wq_cases = TP_CASES(cases);
