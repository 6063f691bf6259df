/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watching: the level that a bar and its figures show is the one that the calls tell.
 */
#include <rte_pmd_verbena.h>

#include "cases.h"

/* Of the first bar. */
static unsigned int
marks(const char *out)
{
	const char *bar = strchr(out, '[');

	assert_non_null(bar);
	return strspn(bar + 1, "#");
}

static unsigned int
lines(const char *out)
{
	unsigned int n = 0;

	for (; *out != '\0'; out++)
		n += *out == '\n';
	return n;
}

static void
srq_bar_shows_the_level(void)
{
	const struct vrb_rq *rq;
	const char *out;

	run("srq create 1 size 128");
	rq = &srq_of(1)->srq->rq;
	run("srq post 1 count %u", rq->max_wr / 2);
	out = run("watch srq 1 count 3 interval 10");
	assert_int_equal(lines(out), 3);
	assert_int_equal(marks(out), 25);
	assert_int_equal(number(out, "of"), rq->max_wr);
	run("srq post 1 count %u", rq->max_wr - vrb_rq_count(rq));
	assert_int_equal(marks(run("watch srq 1 count 1")), 50);
}

static void
cq_bar_shows_the_level(void)
{
	const char *out;

	run("cq create 1 size 100");
	run("cq create 2");
	run("qp create 1 cq 2 recv-cq 1");
	run("qp create 2 cq 2");
	run("qp connect 1 to 2");
	assert_int_equal(marks(run("watch cq 1 count 1")), 0);
	run("qp post 1 count 1");
	run("send 2 count 1");
	out = run("watch cq 1 count 1");
	/* One is seen, too. */
	assert_int_equal(marks(out), 1);
	assert_int_equal(number(out, "of"), cq_of(1)->cq->size);
}

static void
wq_bar_shows_the_level(void)
{
	make_rss();
	run("wq post 1 count %u", wq_of(1)->wq->rq.max_wr);
	assert_int_equal(marks(run("watch wq 1 count 1")), 50);
	assert_int_equal(marks(run("watch wq 2 count 1")), 0);
}

static void
qp_shows_queues_and_rates(void)
{
	const char *out;

	make_pair("rc");
	run("sink start 1");
	run("send 2 count 40");
	out = run("watch qp 1 count 2 interval 20");
	assert_int_equal(number(out, "messages"), 40);
	assert_int_equal(atomic_load(&qp_of(1)->sink->messages), 40);
	holds(out, "messages/s 0");
	holds(out, "receives of qp 1");
	assert_int_equal(marks(out), 0);
}

static void
ind_table_shows_shares(void)
{
	const char *out;

	make_rss();
	run("flow create 1 qp 1");
	run("sink start 1");
	run("send 2 count 1000 flows 100");
	run("sleep 20");
	out = run("watch ind-table 1 count 1");
	assert_int_equal(number(strstr(out, "wq 1"), "frames"), atomic_load(&wq_of(1)->frames));
	assert_int_equal(number(strstr(out, "wq 2"), "frames"), atomic_load(&wq_of(2)->frames));
	assert_true(atomic_load(&wq_of(1)->frames) > 0 && atomic_load(&wq_of(2)->frames) > 0);
	assert_in_range(marks(out), atomic_load(&wq_of(1)->frames) / 20,
		atomic_load(&wq_of(1)->frames) / 20 + 1);
}

static void
rss_shows_shares(void)
{
	const char *out;

	rte_eth_xstats_reset(loop_port());
	run("poller start net_verbena1");
	run("port send net_verbena1 count 400 flows 200");
	run("sleep 20");
	out = run("watch rss net_verbena1 count 1");
	assert_int_equal(lines(out), 4);
	for (uint16_t q = 0; q < 4; q++) {
		assert_int_equal(number(out, "queue"), q);
		assert_int_equal(number(out, "frames"), queue_frames(q));
		out = strchr(out, '\n') + 1;
	}
	assert_int_equal(
		queue_frames(0) + queue_frames(1) + queue_frames(2) + queue_frames(3), 400);
	holds(run("watch rss net_ring1 count 1"), "queue 0");
}

static void
queue_bar_shows_the_level(void)
{
	struct rte_pmd_verbena_rxq q;
	const char *out;

	run("rss reta set net_verbena1 queues 1");
	run("port send net_verbena1 count 100");
	/* A round of the poller, which puts them into the queue. */
	rte_pmd_verbena_progress(loop_port());
	rte_pmd_verbena_progress(loop_port());
	rte_pmd_verbena_progress(loop_port());
	rte_pmd_verbena_progress(loop_port());
	out = run("watch queue net_verbena1 1 count 1");
	assert_return_code(rte_pmd_verbena_rxq_get(loop_port(), 1, &q), EINVAL);
	assert_true(q.count > 0);
	assert_int_equal(number(out, "of"), q.size);
	assert_int_equal(marks(out), (q.count * 50 + q.size - 1) / q.size);
	run("rss reta set net_verbena1 queues 0-3");
}

static void
port_shows_rates(void)
{
	struct rte_eth_stats s;
	const char *out;

	run("poller start net_verbena1");
	run("port send net_verbena1 count 50");
	run("sleep 20");
	assert_return_code(rte_eth_stats_get(loop_port(), &s), EIO);
	out = run("watch port net_verbena1 count 2 interval 10");
	assert_int_equal(number(out, "rx-packets"), s.ipackets);
	assert_int_equal(number(out, "tx-packets"), s.opackets);
	holds(out, "rx-packets/s 0");
}

static const struct tp_case cases[] = {
	{"watch srq <srq>", srq_bar_shows_the_level},
	{"watch cq <cq>", cq_bar_shows_the_level},
	{"watch wq <wq>", wq_bar_shows_the_level},
	{"watch qp <qp>", qp_shows_queues_and_rates},
	{"watch ind-table <table>", ind_table_shows_shares},
	{"watch queue <port> <queue>", queue_bar_shows_the_level},
	{"watch rss <port>", rss_shows_shares},
	{"watch port <port>", port_shows_rates},
};

const struct tp_cases watch_cases = TP_CASES(cases);
