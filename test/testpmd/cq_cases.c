/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues.
 */
#include "cases.h"

/* So many completions in CQ 1 that nobody takes: of receives and sends. */
static void
put_completions(unsigned int n)
{
	run("qp post 1 count %u", n);
	run("generator start 2 count %u", n);
	run("sleep 50");
	run("generator stop 2");
}

static void
create_makes_one(void)
{
	struct vrb_cq *cq;

	run("cq create 1");
	run("cq create 2 size 5");
	cq = cq_of(2)->cq;
	assert_true(cq->size >= 5);
	assert_true(cq_of(1)->cq->size >= 1024);
	assert_ptr_equal(cq->engine, tp_engine());
	refuse(-EEXIST, "cq 2 exists already", "cq create 2");
	refuse(-ERANGE, "size is from 1 to 4194303", "cq create 3 size 4194304");
}

/* The sink's end of the completions stays where nobody takes them: another CQ. */
static void
make_pair_with_own_recv_cq(void)
{
	run("cq create 1 size 64");
	run("cq create 2");
	run("qp create 1 cq 2 recv-cq 1");
	run("qp create 2 cq 2");
	run("qp connect 1 to 2");
}

static void
resize_keeps_completions(void)
{
	make_pair_with_own_recv_cq();
	put_completions(20);
	assert_int_equal(tp_cq_count(cq_of(1)->cq), 20);
	run("cq resize 1 500");
	assert_true(cq_of(1)->cq->size >= 500);
	assert_int_equal(tp_cq_count(cq_of(1)->cq), 20);
	run("cq resize 1 20");
	assert_true(cq_of(1)->cq->size >= 20 && cq_of(1)->cq->size < 500);
	assert_int_equal(tp_cq_count(cq_of(1)->cq), 20);
	refuse(-EINVAL, "20 completions wait in cq 1", "cq resize 1 3");
	assert_int_equal(tp_cq_count(cq_of(1)->cq), 20);
}

static void
arm_notifies_once(void)
{
	make_pair_with_own_recv_cq();
	run("cq arm 1");
	assert_int_equal(cq_of(1)->cq->armed, VRB_CQ_ARMED_ANY);
	put_completions(5);
	assert_int_equal(cq_of(1)->cq->armed, VRB_CQ_DISARMED);
	assert_int_equal(atomic_load(&cq_of(1)->notified), 1);
	run("cq arm 1 solicited on");
	assert_int_equal(cq_of(1)->cq->armed, VRB_CQ_ARMED_SOLICITED);
}

static void
poll_takes_completions(void)
{
	const char *out;

	make_pair_with_own_recv_cq();
	put_completions(5);
	out = run("cq poll 1 count 3");
	assert_int_equal(number(out, "taken"), 3);
	assert_int_equal(tp_cq_count(cq_of(1)->cq), 2);
	holds(out, "opcode receive");
	assert_int_equal(number(out, "bytes"), 64);
	/* Their buffers can be posted again. */
	assert_int_equal(qp_of(1)->buffers.num - qp_of(1)->buffers.num_free, 2);
	assert_int_equal(number(run("cq poll 1 count 9"), "taken"), 2);
	assert_true(vrb_cq_empty(cq_of(1)->cq));
	run("sink start 1");
	refuse(-EBUSY, "sink stop 1 first", "cq poll 1");
}

static void
show_tells_fill_level(void)
{
	const char *out;

	make_pair_with_own_recv_cq();
	put_completions(7);
	out = run("cq show 1");
	assert_int_equal(number(out, "size"), cq_of(1)->cq->size);
	assert_int_equal(number(out, "waiting"), tp_cq_count(cq_of(1)->cq));
	assert_int_equal(number(out, "waiting"), 7);
	assert_int_equal(number(out, "used-by"), cq_of(1)->cq->refs);
}

static void
show_lists_all(void)
{
	const char *out;

	holds(run("cq show"), "no cq");
	run("cq create 4 size 100");
	run("cq create 3 size 5000");
	out = run("cq show");
	assert_int_equal(number(strstr(out, "cq 3"), "size"), cq_of(3)->cq->size);
	assert_int_equal(number(strstr(out, "cq 4"), "size"), cq_of(4)->cq->size);
}

static void
destroy_refuses_what_is_used(void)
{
	make_pair("rc");
	refuse(-EBUSY, "cq 1 is used by 4 queues: destroy them first", "cq destroy 1");
	assert_int_equal(cq_of(1)->cq->refs, 4);
	run("qp destroy 1");
	run("qp destroy 2");
	run("cq destroy 1");
	assert_null(tp_object_find(TP_CQ, 1));
}

static const struct tp_case cases[] = {
	{"cq create <cq>", create_makes_one},
	{"cq resize <cq> <size>", resize_keeps_completions},
	{"cq arm <cq>", arm_notifies_once},
	{"cq poll <cq>", poll_takes_completions},
	{"cq show", show_lists_all},
	{"cq show <cq>", show_tells_fill_level},
	{"cq destroy <cq>", destroy_refuses_what_is_used},
};

const struct tp_cases cq_cases = TP_CASES(cases);
