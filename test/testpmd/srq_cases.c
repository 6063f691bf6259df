/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues.
 */
#include "cases.h"

/* Two receivers on SRQ 1, and a sender for each: queue pairs 1 and 2, 11 and 12. */
static void
make_shared(void)
{
	run("cq create 1");
	run("srq create 1 size 100");
	for (int i = 1; i <= 2; i++) {
		run("qp create %d cq 1 srq 1", i);
		run("qp create %d cq 1", 10 + i);
		run("qp connect %d to %d", i, 10 + i);
	}
}

static void
create_makes_one(void)
{
	run("srq create 1");
	run("srq create 2 size 1000 sge 4");
	assert_true(srq_of(1)->srq->rq.max_wr >= 512);
	assert_true(srq_of(2)->srq->rq.max_wr >= 1000);
	assert_true(srq_of(2)->srq->rq.max_sge >= 4);
	assert_ptr_equal(srq_of(2)->srq->pd, tp_pd());
	refuse(-EEXIST, "srq 2 exists already", "srq create 2");
	refuse(-ERANGE, "sge is from 1 to 32", "srq create 3 sge 33");
}

static void
modify_resizes_and_arms(void)
{
	struct vrb_srq *srq;

	make_shared();
	srq = srq_of(1)->srq;
	run("srq post 1 count 60");
	run("srq modify 1 size 2000");
	assert_true(srq->rq.max_wr >= 2000);
	assert_int_equal(vrb_rq_count(&srq->rq), 60);
	run("srq modify 1 size 100 limit 50");
	assert_true(srq->rq.max_wr >= 100 && srq->rq.max_wr < 2000);
	assert_int_equal(srq->limit, 50);
	refuse(-EINVAL, "60 receives are posted to srq 1", "srq modify 1 size 10");
	refuse(-EINVAL, "limit 60000 is above the size", "srq modify 1 limit 60000");
	refuse(-EINVAL, "nothing to modify", "srq modify 1");
	assert_int_equal(srq->limit, 50);
	/* Eleven messages take it below the watermark, and it tells so once. */
	run("generator start 11 count 11");
	run("sleep 50");
	holds(run("generator stop 11"), "messages 11");
	assert_int_equal(vrb_rq_count(&srq->rq), 49);
	assert_int_equal(atomic_load(&srq_of(1)->limit_events), 1);
	assert_int_equal(srq->limit, 0);
}

static void
query_tells_attributes(void)
{
	const struct vrb_srq *srq;
	const char *out;

	run("srq create 1 size 77 sge 3");
	/* A watermark above what is posted would be told of at once. */
	run("srq post 1 count 8");
	run("srq modify 1 limit 7");
	srq = srq_of(1)->srq;
	out = run("srq query 1");
	assert_int_equal(number(out, "size"), srq->rq.max_wr);
	assert_int_equal(number(out, "sge"), srq->rq.max_sge);
	assert_int_equal(number(out, "limit"), 7);
	assert_int_equal(srq->limit, 7);
}

static void
post_posts_receives(void)
{
	const struct vrb_srq *srq;
	uint32_t size;

	make_shared();
	srq = srq_of(1)->srq;
	size = srq->rq.max_wr;
	run("srq post 1");
	run("srq post 1 count 9 bytes 100");
	assert_int_equal(vrb_rq_count(&srq->rq), 10);
	refuse(-ENOBUFS, "srq 1 has room for", "srq post 1 count %u", size);
	refuse(-EBUSY, "receives of 4096 bytes are posted already", "srq post 1 bytes 5000");
	assert_int_equal(vrb_rq_count(&srq->rq), 10);
	/* Both receivers take from it. */
	run("sink start 1 size 4096 depth 1");
	run("sink start 2 size 4096 depth 1");
	run("send 11 count 100");
	run("send 12 count 200");
	holds(run("sink stop 1"), "messages 100");
	holds(run("sink stop 2"), "messages 200");
	assert_int_equal(vrb_rq_count(&srq->rq), 12);
}

static void
show_tells_fill_level(void)
{
	const char *out;

	make_shared();
	run("srq post 1 count 33");
	out = run("srq show 1");
	assert_int_equal(number(out, "posted"), vrb_rq_count(&srq_of(1)->srq->rq));
	assert_int_equal(number(out, "posted"), 33);
	assert_int_equal(number(out, "size"), srq_of(1)->srq->rq.max_wr);
	assert_int_equal(number(out, "queue-pairs"), srq_of(1)->srq->refs);
	assert_int_equal(number(out, "queue-pairs"), 2);
}

static void
show_lists_all(void)
{
	const char *out;

	holds(run("srq show"), "no srq");
	run("srq create 8 size 10");
	run("srq create 7 size 3000");
	out = run("srq show");
	assert_int_equal(number(strstr(out, "srq 7"), "size"), srq_of(7)->srq->rq.max_wr);
	assert_int_equal(number(strstr(out, "srq 8"), "size"), srq_of(8)->srq->rq.max_wr);
}

static void
destroy_refuses_what_is_used(void)
{
	uint32_t refs;

	make_shared();
	refuse(-EBUSY, "srq 1 is used by 2 queue pairs: destroy them first", "srq destroy 1");
	assert_int_equal(srq_of(1)->srq->refs, 2);
	run("qp destroy 1");
	refuse(-EBUSY, "srq 1 is used by 1 queue pair: destroy it first", "srq destroy 1");
	run("qp destroy 2");
	refs = tp_pd()->refs;
	run("srq destroy 1");
	assert_null(tp_object_find(TP_SRQ, 1));
	assert_int_equal(tp_pd()->refs, refs - 1);
}

static const struct tp_case cases[] = {
	{"srq create <srq>", create_makes_one},
	{"srq modify <srq>", modify_resizes_and_arms},
	{"srq query <srq>", query_tells_attributes},
	{"srq post <srq>", post_posts_receives},
	{"srq show", show_lists_all},
	{"srq show <srq>", show_tells_fill_level},
	{"srq destroy <srq>", destroy_refuses_what_is_used},
};

const struct tp_cases srq_cases = TP_CASES(cases);
