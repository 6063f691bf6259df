/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow rules of ports and of queue pairs.
 */
#include <stdio.h>

#include <rte_flow.h>

#include "cases.h"

#define ALL_UDP "pattern eth / ipv4 / udp / end"

static void
send_hundred(void)
{
	rte_eth_xstats_reset(loop_port());
	run("poller start net_verbena1");
	run("port send net_verbena1 count 100 flows 100");
	run("sleep 20");
	run("poller stop net_verbena1");
}

static void
create_on_port_steers(void)
{
	run("flow create 1 port net_verbena1 " ALL_UDP " actions queue index 1 / end");
	send_hundred();
	assert_int_equal(xstat("rx_q1_packets"), 100);
	/* The source ports begin at 1024. */
	run("flow create 2 port net_verbena1 priority 0 pattern eth / ipv4 dst is 198.19.0.0/16 / "
	    "udp src is 1030 dst is 9 / end actions drop / end");
	send_hundred();
	assert_int_equal(xstat("rx_q1_packets"), 99);
	assert_int_equal(xstat("rx_flow_drop"), 1);
	refuse(-EEXIST, "flow 1 exists already",
		"flow create 1 port net_verbena1 " ALL_UDP " actions drop / end");
	refuse(-EINVAL, "\"arp\" is no item of a pattern",
		"flow create 3 port net_verbena1 pattern arp / end actions drop / end");
	refuse(-EINVAL, "udp has no field \"port\"",
		"flow create 3 port net_verbena1 pattern udp port is 5 / end actions drop / end");
	refuse(-EINVAL, "\"jump\" is no action",
		"flow create 3 port net_verbena1 " ALL_UDP " actions jump / end");
	refuse(-EINVAL, "does not take the rule",
		"flow create 3 port net_verbena1 " ALL_UDP " actions queue index 99 / end");
	assert_null(tp_object_find(TP_FLOW, 3));
}

static void
create_on_qp_takes_frames(void)
{
	make_rss();
	run("flow create 1 qp 1 protocol udp dst-port 9 dst-ip 198.19.0.1");
	assert_int_equal(vrb_qp_flows(qp_of(1)->qp), 1);
	run("sink start 1");
	run("send 2 count 500 flows 50 size 100");
	run("sleep 20");
	holds(run("sink stop 1"), "messages 500");
	assert_int_equal(atomic_load(&wq_of(1)->frames) + atomic_load(&wq_of(2)->frames), 500);
	refuse(-EINVAL, "need protocol as well", "flow create 2 qp 1 dst-port 9");
	refuse(-EINVAL, "different families",
		"flow create 2 qp 1 src-ip 10.0.0.1 dst-ip 2001:db8::1");
	run("qp create 3 cq 1");
	refuse(-EINVAL, "qp 3 receives messages", "flow create 2 qp 3");
	refuse(-EBUSY, "qp 1 is used by 1 flow rule", "qp destroy 1");
}

static void
validate_changes_nothing(void)
{
	run("flow validate net_verbena1 " ALL_UDP " actions drop / end");
	send_hundred();
	assert_int_equal(xstat("rx_flow_drop"), 0);
	assert_int_equal(tp_object_count(TP_FLOW), 0);
	refuse(-EINVAL, "does not take the rule",
		"flow validate net_verbena1 " ALL_UDP " actions queue index 99 / end");
	refuse(-EINVAL, "stands \"actions\"", "flow validate net_verbena1 " ALL_UDP);
	refuse(-EBUSY, "belongs to", "flow validate net_shmlan0 " ALL_UDP " actions drop / end");
}

static void
query_tells_hits(void)
{
	struct tp_flow *flow;
	const struct rte_flow_action count[] = {
		{.type = RTE_FLOW_ACTION_TYPE_COUNT}, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_query_count q = {0};
	struct rte_flow_error error;
	const char *out;

	run("flow create 7 port net_verbena1 " ALL_UDP " actions count / queue index 0 / end");
	send_hundred();
	flow = (struct tp_flow *)tp_object_find(TP_FLOW, 7);
	assert_return_code(rte_flow_query(loop_port(), flow->rule, count, &q, &error), EINVAL);
	assert_int_equal(q.hits, 100);
	out = run("flow query 7");
	assert_int_equal(number(out, "packets"), q.hits);
	assert_int_equal(number(out, "bytes"), q.bytes);
	run("flow create 8 port net_verbena1 pattern eth / ipv6 / end actions drop / end");
	refuse(-EINVAL, "flow 8 is not counted", "flow query 8");
}

static void
list_tells_all(void)
{
	const char *out;

	holds(run("flow list"), "no flow");
	make_rss();
	run("flow create 3 port net_verbena1 " ALL_UDP " actions drop / end");
	run("flow create 2 qp 1 type all");
	run("send 2 count 3");
	out = run("flow list");
	assert_int_equal(number(strstr(out, "flow 2"), "packets"),
		((struct tp_flow *)tp_object_find(TP_FLOW, 2))->count.packets);
	assert_int_equal(number(strstr(out, "flow 2"), "packets"), 3);
	holds(strstr(out, "flow 3"), "rule " ALL_UDP " actions drop / end\n");
}

static void
destroy_lets_frames_go(void)
{
	run("flow create 1 port net_verbena1 " ALL_UDP " actions drop / end");
	send_hundred();
	assert_int_equal(xstat("rx_flow_drop"), 100);
	run("flow destroy 1");
	assert_null(tp_object_find(TP_FLOW, 1));
	send_hundred();
	assert_int_equal(xstat("rx_flow_drop"), 0);
	assert_int_equal(xstat("rx_good_packets"), 100);
	make_rss();
	run("flow create 1 qp 1");
	run("flow destroy 1");
	assert_int_equal(vrb_qp_flows(qp_of(1)->qp), 0);
}

static void
flush_destroys_all_of_a_port(void)
{
	make_rss();
	run("flow create 1 port net_verbena1 " ALL_UDP " actions drop / end");
	run("flow create 2 port net_verbena1 pattern eth / ipv6 / end actions drop / end");
	run("flow create 3 qp 1");
	assert_int_equal(xstat("flow_rules"), 2);
	run("flow flush net_verbena1");
	assert_int_equal(xstat("flow_rules"), 0);
	assert_null(tp_object_find(TP_FLOW, 1));
	assert_null(tp_object_find(TP_FLOW, 2));
	/* Those of queue pairs stay. */
	assert_non_null(tp_object_find(TP_FLOW, 3));
}

static void
isolate_leaves_rules_only(void)
{
	run("port stop net_verbena1");
	run("flow isolate net_verbena1 on");
	run("port start net_verbena1");
	send_hundred();
	assert_int_equal(xstat("rx_good_packets"), 0);
	assert_int_equal(xstat("rx_isolated_drop"), 100);
	run("flow create 1 port net_verbena1 pattern eth / ipv4 / udp src is 1024 / end actions "
	    "queue index 0 / end");
	send_hundred();
	assert_int_equal(xstat("rx_good_packets"), 1);
	run("flow flush net_verbena1");
	run("port stop net_verbena1");
	run("flow isolate net_verbena1 off");
	run("port start net_verbena1");
	send_hundred();
	assert_int_equal(xstat("rx_good_packets"), 100);
}

static const struct tp_case cases[] = {
	{"flow create <flow> port <port> <rule>", create_on_port_steers},
	{"flow create <flow> qp <qp>", create_on_qp_takes_frames},
	{"flow validate <port> <rule>", validate_changes_nothing},
	{"flow list", list_tells_all},
	{"flow query <flow>", query_tells_hits},
	{"flow destroy <flow>", destroy_lets_frames_go},
	{"flow flush <port>", flush_destroys_all_of_a_port},
	{"flow isolate <port> <mode>", isolate_leaves_rules_only},
};

const struct tp_cases flow_cases = TP_CASES(cases);
