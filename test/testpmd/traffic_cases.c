/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic.
 */
#include <stdio.h>

#include "cases.h"

static const struct vrb_stats *
stats(void)
{
	return vrb_engine_stats(tp_engine());
}

static void
send_delivers(void)
{
	struct tp_job *sink;

	make_pair("rc");
	run("sink start 1 size 5000");
	run("send 2 count 300 size 5000 depth 10");
	sink = qp_of(1)->sink;
	assert_int_equal(atomic_load(&sink->messages), 300);
	assert_int_equal(atomic_load(&sink->bytes), 1500000);
	assert_int_equal(atomic_load(&sink->verified), 300);
	assert_int_equal(tp_job_state(sink), TP_JOB_RUNS);
	/* For a while instead of a number. */
	run("send 2 seconds 1 rate 100 size 8");
	assert_in_range(atomic_load(&sink->messages), 330, 410);
	assert_int_equal(atomic_load(&sink->missing), 0);
	refuse(-EINVAL, "depth 16384 is more than the send queue", "send 2 depth 16384");
}

static void
send_refuses_who_cannot(void)
{
	run("cq create 1");
	run("qp create 1 cq 1");
	refuse(-ENOTCONN, "qp 1 is in state init", "send 1");
	run("qp create 2 type ud cq 1");
	refuse(-ENOTCONN, "qp 2 has nobody to send to", "send 2");
	run("qp connect 2 to 2");
	refuse(-EMSGSIZE, "a datagram has up to", "send 2 size 9000");
	run("qp create 3 type raw cq 1");
	refuse(-EMSGSIZE, "a frame has from 60", "send 3 size 10");
	run("mr reg 1 size 4096");
	refuse(-EOPNOTSUPP, "the type of qp 2 has no write", "write 2 mr 1");
	/* To a receiver that is too small. */
	run("qp connect 1 to 1");
	run("qp post 1 bytes 64 count 10");
	refuse(-EIO, "send by qp 1 failed", "send 1 size 1000 count 1");
	assert_int_equal(vrb_qp_state(qp_of(1)->qp), VRB_QPS_ERR);
}

/* Also by datagrams and unreliable connections. */
static void
send_on_all_types(void)
{
	static const char *const types[] = {"uc", "ud"};

	for (unsigned int i = 0; i < RTE_DIM(types); i++) {
		make_pair(types[i]);
		run("sink start 1 depth 128");
		run("send 2 count 100 size 1000 depth 16");
		run("sleep 20");
		assert_int_equal(atomic_load(&qp_of(1)->sink->verified), 100);
		tp_destroy_all();
	}
}

static void
send_does(void)
{
	send_delivers();
	tp_destroy_all();
	send_refuses_who_cannot();
	tp_destroy_all();
	send_on_all_types();
}

static void
write_writes(void)
{
	struct tp_mem *mem;

	make_pair("rc");
	run("mr reg 1 size 4000");
	mem = &mr_of(1)->mem;
	/* Message 7 is the last in each of four places but one. */
	holds(run("write 2 mr 1 size 1000 count 7 depth 4"), "read-back 4");
	for (uint32_t i = 0; i < 4; i++) {
		uint64_t want = i < 3 ? 4 + i : 3;

		assert_int_equal(tp_message_compare(mem->addr + 1000 * i, 1000, want), -1);
	}
	/* By address and key. */
	memset(mem->addr, 0, mem->size);
	run("write 2 addr %#" PRIx64 " rkey %#x size 8 count 1", mem->mr->iova + 8, mem->mr->rkey);
	assert_int_equal(tp_message_compare(mem->addr + 8, 8, 0), -1);
	assert_int_equal(mem->addr[7] | mem->addr[16], 0);
	refuse(-EINVAL, "a write needs a place", "write 2");
	refuse(-EINVAL, "give either mr, or addr and rkey", "write 2 mr 1 addr 1 rkey 1");
	refuse(-EMSGSIZE, "mr 1 has 4000 bytes", "write 2 mr 1 size 5000");
	refuse(-EMSGSIZE, "has room for 4 messages", "write 2 mr 1 size 1000 depth 5");
	refuse(-EIO, "remote access error", "write 2 addr 1 rkey 1 count 1");
}

static void
read_reads(void)
{
	struct tp_mem *mem;
	uint64_t before;

	make_pair("rc");
	run("mr reg 1 size 64k");
	mem = &mr_of(1)->mem;
	before = stats()->rx_bytes;
	holds(run("read 2 mr 1 size 4096 count 100"), "verified 100");
	assert_true(stats()->rx_bytes + stats()->direct_bytes >= before + 409600);
	/* It does see what is there. */
	mem->addr[4096 + 5] ^= 1;
	refuse(-EIO, "is not what mr reg put there", "read 2 mr 1 size 4096 depth 2 count 4");
	run("read 2 mr 1 size 4096 depth 2 count 4 verify off");
	run("mr fill 1");
	run("read 2 mr 1 size 4096 depth 2 count 4");
	run("mr reg 2 size 64 access local-write");
	refuse(-EIO, "remote access error", "read 2 mr 2 count 1");
}

static void
ping_counts_round_trips(void)
{
	const char *out;
	uint64_t before;

	make_pair("rc");
	run("sink start 1 echo on");
	before = atomic_load(&qp_of(1)->sink->messages);
	out = run("ping 2 count 200 size 100");
	assert_int_equal(atomic_load(&qp_of(1)->sink->messages) - before, 200);
	assert_int_equal(number(out, "verified"), 200);
	holds(out, "median-us");
	refuse(-EBUSY, "qp 1 has a sink already", "ping 1");
	run("sink stop 1");
	run("qp create 3 type raw cq 1");
	refuse(-EOPNOTSUPP, "raw frames are not answered", "ping 3");
}

static uint64_t
sink_messages(void *arg)
{
	return atomic_load(&qp_of(1)->sink->messages);
}

static void
generator_start_goes_on(void)
{
	make_pair("rc");
	run("sink start 1");
	run("generator start 2 rate 2000");
	assert_non_null(qp_of(2)->initiator);
	refuse(-EBUSY, "a send by qp 2 is going on already", "generator start 2");
	refuse(-EBUSY, "generator stop 2 first", "qp destroy 2");
	run("generator stop 2");
	run("sink stop 1");
	run("sink start 1");
	run("generator start 2 rate 2000 count 100");
	wait_until(sink_messages, NULL, 100);
	run("sleep 5");
	/* One that is over makes room for the next. */
	run("mr reg 1 size 4096");
	run("generator start 2 op write mr 1 size 4096 count 5");
	run("sleep 20");
	assert_int_equal(tp_message_compare(mr_of(1)->mem.addr, 4096, 4), -1);
}

static void
generator_show_tells_messages(void)
{
	const char *out;

	holds(run("generator show"), "no generator");
	make_pair("rc");
	run("sink start 1");
	run("generator start 2 count 50");
	wait_until(sink_messages, NULL, 50);
	run("sleep 5");
	out = run("generator show");
	assert_int_equal(number(out, "messages"), atomic_load(&qp_of(2)->initiator->messages));
	assert_int_equal(number(out, "messages"), 50);
	holds(out, "state done");
}

static void
generator_stop_leaves_nothing_in_flight(void)
{
	const char *out;
	uint64_t sent;

	make_pair("rc");
	run("sink start 1");
	run("generator start 2");
	run("sleep 20");
	out = run("generator stop 2");
	assert_null(qp_of(2)->initiator);
	sent = number(out, "messages");
	assert_true(sent > 0);
	assert_int_equal(sink_messages(NULL), sent);
	refuse(-ENOENT, "qp 2 has no generator", "generator stop 2");
	/* Nobody receives: what is in flight is taken back. */
	run("sink stop 1");
	run("qp modify 1 state reset");
	run("qp modify 2 state reset");
	run("qp modify 1 state init");
	run("qp modify 2 state init");
	run("qp connect 1 to 2");
	run("generator start 2 count 3");
	run("sleep 20");
	refuse(-ETIMEDOUT, "qp 2 was taken to state error", "generator stop 2");
	assert_int_equal(vrb_qp_state(qp_of(2)->qp), VRB_QPS_ERR);
}

static void
sink_start_keeps_receives_posted(void)
{
	make_pair("rc");
	run("sink start 1 depth 20 size 300");
	assert_int_equal(vrb_rq_count(vrb_qp_rq(qp_of(1)->qp)), 20);
	run("send 2 count 100 size 300");
	assert_int_equal(vrb_rq_count(vrb_qp_rq(qp_of(1)->qp)), 20);
	refuse(-EBUSY, "qp 1 has a sink already", "sink start 1");
	run("qp create 3 type raw cq 1");
	refuse(-EINVAL, "raw frames are not sent back", "sink start 3 echo on");
	run("wq create 1 cq 1");
	run("ind-table create 1 wqs 1");
	run("qp create 4 type rss ind-table 1");
	refuse(-EINVAL, "wq 1 is not ready", "sink start 4");
	run("qp modify 2 state error");
	refuse(-EINVAL, "qp 2 is in state error", "sink start 2");
}

static void
sink_show_tells_messages(void)
{
	const char *out;

	holds(run("sink show"), "no sink");
	make_pair("rc");
	run("sink start 1");
	run("send 2 count 77 size 10");
	out = run("sink show");
	assert_int_equal(number(out, "messages"), atomic_load(&qp_of(1)->sink->messages));
	assert_int_equal(number(out, "messages"), 77);
	assert_int_equal(number(out, "bytes"), 770);
	/* Data that is not ours is counted, and not verified. */
	run("send 2 count 3 size 10 verify off");
	assert_int_equal(number(run("sink show"), "verified"), 77);
}

static void
sink_stop_ends_it(void)
{
	const char *out;

	make_pair("rc");
	run("sink start 1");
	run("send 2 count 5");
	out = run("sink stop 1");
	assert_int_equal(number(out, "messages"), 5);
	assert_null(qp_of(1)->sink);
	assert_null(tp_job_on(&qp_of(1)->obj));
	refuse(-ENOENT, "qp 1 has no sink", "sink stop 1");
}

static const struct tp_case cases[] = {
	{"send <qp>", send_does},
	{"write <qp>", write_writes},
	{"read <qp>", read_reads},
	{"ping <qp>", ping_counts_round_trips},
	{"generator start <qp>", generator_start_goes_on},
	{"generator show", generator_show_tells_messages},
	{"generator stop <qp>", generator_stop_leaves_nothing_in_flight},
	{"sink start <qp>", sink_start_keeps_receives_posted},
	{"sink show", sink_show_tells_messages},
	{"sink stop <qp>", sink_stop_ends_it},
};

const struct tp_cases traffic_cases = TP_CASES(cases);
