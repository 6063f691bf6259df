/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_flow on net_verbena: what each pattern matches, what each action does, the order of rules,
 * rules made and taken away under traffic, and what is refused, with which words.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <rte_flow.h>
#include <rte_thash.h>

#include "util.h"

#define QUEUES 4
#define END \
	{ \
		.type = RTE_FLOW_ITEM_TYPE_END \
	}
#define STOP \
	{ \
		.type = RTE_FLOW_ACTION_TYPE_END \
	}

static const struct rte_flow_attr ingress = {.ingress = 1};

static const struct rte_flow_item eth = {.type = RTE_FLOW_ITEM_TYPE_ETH};
static const struct rte_flow_item ipv4 = {.type = RTE_FLOW_ITEM_TYPE_IPV4};
static const struct rte_flow_item ipv6 = {.type = RTE_FLOW_ITEM_TYPE_IPV6};
static const struct rte_flow_item tcp = {.type = RTE_FLOW_ITEM_TYPE_TCP};
static const struct rte_flow_item sctp = {.type = RTE_FLOW_ITEM_TYPE_SCTP};
static const struct rte_flow_item end = END;

static struct rte_flow *
create(const struct rig *r, uint32_t priority, const struct rte_flow_item *pattern,
	const struct rte_flow_action *actions)
{
	struct rte_flow_attr attr = {.ingress = 1, .priority = priority};
	struct rte_flow_error error = {0};
	struct rte_flow *flow;

	assert_int_equal(rte_flow_validate(r->port, &attr, pattern, actions, &error), 0);
	flow = rte_flow_create(r->port, &attr, pattern, actions, &error);
	assert_non_null(flow);
	return flow;
}

static struct rte_flow *
to_queue(
	const struct rig *r, uint32_t priority, const struct rte_flow_item *pattern, uint16_t queue)
{
	struct rte_flow_action_queue conf = {.index = queue};
	struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &conf}, STOP};

	return create(r, priority, pattern, actions);
}

static void
destroy(const struct rig *r, struct rte_flow *flow)
{
	struct rte_flow_error error;

	assert_int_equal(rte_flow_destroy(r->port, flow, &error), 0);
}

/* Sends one frame. @return the queue that it came to, or -1; *m is the caller's */
static int
where(const struct rig *r, const struct frame *f, struct rte_mbuf **m)
{
	struct rte_mbuf *got = NULL;
	int queue = -1;

	wire_put(r, 0, f);
	for (uint16_t i = 0; i < 3 * QUEUES && queue < 0; i++) {
		if (rte_eth_rx_burst(r->port, i % QUEUES, &got, 1) == 1)
			queue = i % QUEUES;
	}
	if (m != NULL)
		*m = got;
	else
		rte_pktmbuf_free(got);
	return queue;
}

static void
start(struct rig *r)
{
	struct setup s = {.rxq = QUEUES};

	rig_make(r, 1, "");
	assert_int_equal(rig_start(r, &s), 0);
}

/* ---- patterns ---- */

static void
patterns_match_what_they_say(void **state)
{
	const struct rte_flow_item_ipv4 v4_spec = {.hdr.src_addr = rte_cpu_to_be_32(0x0a000000)};
	const struct rte_flow_item_ipv4 v4_mask = {.hdr.src_addr = rte_cpu_to_be_32(0xff000000)};
	const struct rte_flow_item_udp udp_spec = {.hdr.dst_port = rte_cpu_to_be_16(53)};
	const struct rte_flow_item_udp udp_mask = {.hdr.dst_port = 0xffff};
	const struct rte_flow_item_vlan vlan_spec = {.tci = rte_cpu_to_be_16(7)};
	const struct rte_flow_item_vlan vlan_mask = {.tci = rte_cpu_to_be_16(0xfff)};
	const struct rte_flow_item_eth eth_spec = {.dst.addr_bytes = {2, 0, 0, 0, 0, 1}};
	const struct rte_flow_item_eth eth_mask = {
		.dst.addr_bytes = {255, 255, 255, 255, 255, 255}};
	const struct rte_flow_item net10 = {
		.type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = &v4_spec, .mask = &v4_mask};
	const struct rte_flow_item dns = {
		.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &udp_spec, .mask = &udp_mask};
	const struct rte_flow_item vlan7 = {
		.type = RTE_FLOW_ITEM_TYPE_VLAN, .spec = &vlan_spec, .mask = &vlan_mask};
	const struct rte_flow_item to_1 = {
		.type = RTE_FLOW_ITEM_TYPE_ETH, .spec = &eth_spec, .mask = &eth_mask};
	const struct {
		struct rte_flow_item pattern[6];
		struct frame yes, no;
	} cases[] = {
		{{eth, net10, end}, {.src = 0x0a123456}, {.src = 0x0b123456}},
		{{eth, ipv4, dns, end}, {.dport = 53}, {.dport = 54}},
		{{eth, ipv4, dns, end}, {.dport = 53}, {.dport = 53, .tcp = true}},
		{{eth, ipv4, dns, end}, {.dport = 53}, {.dport = 53, .v6 = true}},
		{{eth, ipv6, dns, end}, {.dport = 53, .v6 = true}, {.dport = 53}},
		{{eth, ipv4, dns, end}, {.dport = 53}, {.dport = 53, .fragment = true}},
		{{eth, ipv4, tcp, end}, {.tcp = true}, {0}},
		{{eth, ipv4, sctp, end}, {.sctp = true}, {.tcp = true}},
		{{eth, ipv6, end}, {.v6 = true}, {0}},
		{{eth, vlan7, end}, {.vlan = 7}, {.vlan = 8}},
		{{eth, vlan7, ipv4, dns, end}, {.vlan = 7, .dport = 53}, {.dport = 53}},
		{{to_1, ipv4, end}, {0}, {.v6 = true}},
		{{net10, end}, {.src = 0x0a000001, .vlan = 9}, {.src = 1}},
	};
	struct rig r;

	(void)state;
	start(&r);
	for (size_t i = 0; i < RTE_DIM(cases); i++) {
		struct rte_flow *flow = to_queue(&r, 0, cases[i].pattern, 3);

		assert_int_equal(where(&r, &cases[i].yes, NULL), 3);
		assert_int_equal(where(&r, &cases[i].no, NULL), 0);
		destroy(&r, flow);
		assert_int_equal(where(&r, &cases[i].yes, NULL), 0);
	}
	rig_close(&r);
}

/* An inner frame behind UDP to VXLAN's port. */
static struct rte_mbuf *
make_vxlan(uint32_t vni, const struct frame *inner)
{
	struct frame outer = {.src = 1, .dst = 2, .sport = 9, .dport = 4789, .payload = 8};
	struct rte_mbuf *m = frame_make(pmd_pool, &outer), *in = frame_make(pmd_pool, inner);
	uint8_t *vxlan = rte_pktmbuf_mtod_offset(m, uint8_t *, 14 + 20 + 8);

	memset(vxlan, 0, 8);
	vxlan[0] = 0x08;
	vxlan[4] = (uint8_t)(vni >> 16);
	vxlan[5] = (uint8_t)(vni >> 8);
	vxlan[6] = (uint8_t)vni;
	memcpy(rte_pktmbuf_append(m, in->data_len), rte_pktmbuf_mtod(in, void *), in->data_len);
	rte_pktmbuf_free(in);
	return m;
}

static int
where_vxlan(const struct rig *r, uint32_t vni, const struct frame *inner)
{
	struct rte_mbuf *m = NULL;
	int queue = -1;

	rte_ring_enqueue(r->to_port[0], make_vxlan(vni, inner));
	for (uint16_t i = 0; i < QUEUES && queue < 0; i++) {
		if (rte_eth_rx_burst(r->port, i, &m, 1) == 1)
			queue = i;
	}
	rte_pktmbuf_free(m);
	return queue;
}

static void
tunnels_match_by_vni_and_inner_frame(void **state)
{
	const struct rte_flow_item_vxlan spec = {.vni = {0x12, 0x34, 0x56}};
	const struct rte_flow_item udp = {.type = RTE_FLOW_ITEM_TYPE_UDP};
	const struct rte_flow_item vxlan = {.type = RTE_FLOW_ITEM_TYPE_VXLAN, .spec = &spec};
	const struct rte_flow_item by_vni[] = {eth, ipv4, udp, vxlan, end};
	const struct rte_flow_item by_inner[] = {eth, ipv4, udp, vxlan, eth, ipv4, tcp, end};
	const struct frame in_tcp = {.tcp = true}, in_udp = {0};
	struct rig r;

	(void)state;
	start(&r);
	to_queue(&r, 0, by_inner, 2);
	to_queue(&r, 1, by_vni, 1);
	assert_int_equal(where_vxlan(&r, 0x123456, &in_tcp), 2);
	assert_int_equal(where_vxlan(&r, 0x123456, &in_udp), 1);
	assert_int_equal(where_vxlan(&r, 0x123457, &in_tcp), 0);
	rig_close(&r);
}

/* ---- actions ---- */

static void
drop_and_count(void **state)
{
	const struct rte_flow_item pattern[] = {eth, ipv4, tcp, end};
	struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_COUNT}, {.type = RTE_FLOW_ACTION_TYPE_DROP}, STOP};
	struct rte_flow_query_count count = {.reset = 1};
	struct frame t = {.tcp = true}, u = {0};
	struct rte_flow_error error;
	struct rte_flow *flow;
	struct rig r;

	(void)state;
	start(&r);
	flow = create(&r, 0, pattern, actions);
	for (int i = 0; i < 5; i++)
		assert_int_equal(where(&r, &t, NULL), -1);
	assert_int_equal(where(&r, &u, NULL), 0);
	assert_int_equal(rte_flow_query(r.port, flow, actions, &count, &error), 0);
	assert_int_equal(count.hits_set & count.bytes_set, 1);
	assert_int_equal(count.hits, 5);
	assert_int_equal(count.bytes, 5 * (14 + 20 + 20 + 4));
	assert_int_equal(rte_flow_query(r.port, flow, actions, &count, &error), 0);
	assert_int_equal(count.hits, 0);
	assert_int_equal(xstat(r.port, "rx_flow_drop"), 5);
	assert_int_equal(stats_of(r.port).ipackets, 1);
	rig_close(&r);
}

static void
mark_flag_and_passthru(void **state)
{
	const struct rte_flow_item all[] = {eth, ipv4, end}, some[] = {eth, ipv4, tcp, end};
	struct rte_flow_action_mark id = {.id = 0xabcdef};
	struct rte_flow_action mark[] = {{.type = RTE_FLOW_ACTION_TYPE_MARK, .conf = &id},
		{.type = RTE_FLOW_ACTION_TYPE_PASSTHRU}, STOP};
	struct rte_flow_action flag[] = {
		{.type = RTE_FLOW_ACTION_TYPE_FLAG}, {.type = RTE_FLOW_ACTION_TYPE_PASSTHRU}, STOP};
	struct frame t = {.tcp = true}, u = {0};
	struct rte_mbuf *m;
	struct rig r;

	(void)state;
	start(&r);
	create(&r, 0, some, mark);
	to_queue(&r, 1, some, 2);
	create(&r, 5, all, flag);
	assert_int_equal(where(&r, &t, &m), 2);
	assert_true(m->ol_flags & RTE_MBUF_F_RX_FDIR_ID);
	assert_int_equal(m->hash.fdir.hi, 0xabcdef);
	rte_pktmbuf_free(m);
	assert_int_equal(where(&r, &u, &m), 0);
	assert_true(m->ol_flags & RTE_MBUF_F_RX_FDIR);
	assert_false(m->ol_flags & RTE_MBUF_F_RX_FDIR_ID);
	rte_pktmbuf_free(m);
	rig_close(&r);
}

static void
rss_action_has_its_own_key_and_queues(void **state)
{
	static uint8_t key[40];
	const struct rte_flow_item pattern[] = {eth, ipv4, end};
	const uint16_t queues[] = {3, 1};
	struct rte_flow_action_rss conf = {.types = RTE_ETH_RSS_NONFRAG_IPV4_UDP,
		.key = key,
		.key_len = sizeof(key),
		.queue = queues,
		.queue_num = 2};
	struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_RSS, .conf = &conf}, STOP};
	struct rig r;

	(void)state;
	for (size_t i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)(i * 37 + 11);
	start(&r);
	create(&r, 0, pattern, actions);
	for (uint32_t i = 0; i < 50; i++) {
		struct frame f = {.src = i, .dst = 7, .sport = (uint16_t)i, .dport = 9};
		uint32_t tuple[9], n = frame_tuple(&f, true, tuple);
		uint32_t hash = rte_softrss(tuple, n, key);
		struct rte_mbuf *m;

		assert_int_equal(where(&r, &f, &m), queues[(hash & 127) % 2]);
		assert_int_equal(m->hash.rss, hash);
		rte_pktmbuf_free(m);
	}
	rig_close(&r);
}

static void
symmetric_rss_keeps_both_directions_together(void **state)
{
	const struct rte_flow_item pattern[] = {eth, ipv4, end};
	const uint16_t queues[] = {0, 1, 2, 3};
	struct rte_flow_action_rss conf = {.types = RTE_ETH_RSS_NONFRAG_IPV4_TCP,
		.func = RTE_ETH_HASH_FUNCTION_SYMMETRIC_TOEPLITZ,
		.queue = queues,
		.queue_num = 4};
	struct rte_flow_action actions[] = {
		{.type = RTE_FLOW_ACTION_TYPE_RSS, .conf = &conf}, STOP};
	unsigned int used = 0;
	struct rig r;

	(void)state;
	start(&r);
	create(&r, 0, pattern, actions);
	for (uint32_t i = 0; i < 50; i++) {
		struct frame f = {.tcp = true,
			.src = i * 99,
			.dst = 7,
			.sport = (uint16_t)(i + 5),
			.dport = 9};
		struct frame back = {.tcp = true,
			.src = 7,
			.dst = i * 99,
			.sport = 9,
			.dport = (uint16_t)(i + 5)};
		int queue = where(&r, &f, NULL);

		assert_int_equal(where(&r, &back, NULL), queue);
		used |= 1u << queue;
	}
	assert_int_equal(used, 15);
	rig_close(&r);
}

/* ---- order, isolation, flushing ---- */

static void
lower_priority_number_goes_first(void **state)
{
	const struct rte_flow_item broad[] = {eth, ipv4, end}, narrow[] = {eth, ipv4, tcp, end};
	struct frame t = {.tcp = true};
	struct rte_flow_error error;
	struct rte_flow *first;
	struct rig r;

	(void)state;
	start(&r);
	to_queue(&r, 2, narrow, 2);
	first = to_queue(&r, 1, broad, 1);
	assert_int_equal(where(&r, &t, NULL), 1);
	destroy(&r, first);
	assert_int_equal(where(&r, &t, NULL), 2);
	assert_int_equal(rte_flow_flush(r.port, &error), 0);
	assert_int_equal(where(&r, &t, NULL), 0);
	assert_int_equal(xstat(r.port, "flow_rules"), 0);
	rig_close(&r);
}

static void
isolated_port_gets_what_rules_give(void **state)
{
	const struct rte_flow_item pattern[] = {eth, ipv4, tcp, end};
	struct frame t = {.tcp = true}, u = {0};
	struct rte_flow_error error;
	struct rig r;

	(void)state;
	start(&r);
	assert_int_equal(rte_flow_isolate(r.port, 1, &error), 0);
	assert_int_equal(where(&r, &t, NULL), -1);
	to_queue(&r, 0, pattern, 1);
	assert_int_equal(where(&r, &t, NULL), 1);
	assert_int_equal(where(&r, &u, NULL), -1);
	assert_int_equal(xstat(r.port, "rx_isolated_drop"), 2);
	assert_int_equal(rte_flow_isolate(r.port, 0, &error), 0);
	assert_int_equal(where(&r, &u, NULL), 0);
	rig_close(&r);
}

static void
rules_stay_across_restarts(void **state)
{
	const struct rte_flow_item pattern[] = {eth, ipv4, tcp, end};
	struct setup s = {.rxq = 2};
	struct frame t = {.tcp = true};
	struct rig r;

	(void)state;
	start(&r);
	to_queue(&r, 0, pattern, 3);
	rte_eth_dev_stop(r.port);
	assert_int_equal(rte_eth_dev_start(r.port), 0);
	assert_int_equal(where(&r, &t, NULL), 3);
	/* A queue that a rule uses cannot be taken away. */
	rte_eth_dev_stop(r.port);
	assert_int_equal(rig_start(&r, &s), -EBUSY);
	rig_close(&r);
}

/* ---- refusals ---- */

static void
expect_refusal(const struct rig *r, const struct rte_flow_attr *attr,
	const struct rte_flow_item *pattern, const struct rte_flow_action *actions, int rc,
	enum rte_flow_error_type type)
{
	struct rte_flow_error error = {0};

	assert_int_equal(rte_flow_validate(r->port, attr, pattern, actions, &error), rc);
	assert_int_equal(error.type, type);
	assert_non_null(error.message);
	assert_null(rte_flow_create(r->port, attr, pattern, actions, &error));
}

static void
what_cannot_be_is_refused_with_a_reason(void **state)
{
	const struct rte_flow_item good[] = {eth, ipv4, end},
				   gre[] = {eth, ipv4, {.type = RTE_FLOW_ITEM_TYPE_GRE}, end};
	const struct rte_flow_item_ipv4 frag_spec = {.hdr.fragment_offset = 1};
	const struct rte_flow_item_ipv4 low = {.hdr.src_addr = 1}, high = {.hdr.src_addr = 2};
	const struct rte_flow_item frag[] = {
		{.type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = &frag_spec, .mask = &frag_spec}, end};
	const struct rte_flow_item range[] = {
		{.type = RTE_FLOW_ITEM_TYPE_IPV4, .spec = &low, .last = &high}, end};
	const struct rte_flow_item two_ips[] = {ipv4, ipv6, end}, eth_last[] = {ipv4, eth, end};
	struct rte_flow_action_queue queue = {.index = 0}, no_queue = {.index = QUEUES};
	struct rte_flow_action ok[] = {{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue}, STOP};
	struct rte_flow_action absent[] = {
		{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &no_queue}, STOP};
	struct rte_flow_action none[] = {{.type = RTE_FLOW_ACTION_TYPE_FLAG}, STOP};
	struct rte_flow_action two[] = {{.type = RTE_FLOW_ACTION_TYPE_QUEUE, .conf = &queue},
		{.type = RTE_FLOW_ACTION_TYPE_DROP}, STOP};
	struct rte_flow_action other[] = {{.type = RTE_FLOW_ACTION_TYPE_DEC_TTL}, STOP};
	struct rte_flow_action_rss no_queues = {.types = RTE_ETH_RSS_IPV4};
	struct rte_flow_action rss[] = {
		{.type = RTE_FLOW_ACTION_TYPE_RSS, .conf = &no_queues}, STOP};
	struct rte_flow_attr egress = {.egress = 1}, group = {.ingress = 1, .group = 1};
	struct rte_flow_error error;
	struct rig r;

	(void)state;
	start(&r);
	expect_refusal(&r, &ingress, gre, ok, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM);
	expect_refusal(&r, &ingress, frag, ok, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM);
	expect_refusal(&r, &ingress, range, ok, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_LAST);
	expect_refusal(&r, &ingress, two_ips, ok, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM);
	expect_refusal(&r, &ingress, eth_last, ok, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM);
	expect_refusal(&r, &ingress, good, absent, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION);
	expect_refusal(&r, &ingress, good, none, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION);
	expect_refusal(&r, &ingress, good, two, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION);
	expect_refusal(&r, &ingress, good, other, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION);
	expect_refusal(&r, &ingress, good, rss, -EINVAL, RTE_FLOW_ERROR_TYPE_ACTION);
	expect_refusal(&r, &egress, good, ok, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_INGRESS);
	expect_refusal(&r, &group, good, ok, -ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_GROUP);
	to_queue(&r, 0, good, 1);
	expect_refusal(&r, &ingress, good, ok, -EEXIST, RTE_FLOW_ERROR_TYPE_UNSPECIFIED);
	assert_int_equal(
		rte_flow_destroy(r.port, (struct rte_flow *)(uintptr_t)&r, &error), -ENOENT);
	rig_close(&r);
}

/* ---- under traffic ---- */

static _Atomic bool done;
static _Atomic unsigned int changes;

static void *
change_always(void *arg)
{
	const struct rte_flow_item pattern[] = {eth, ipv4, tcp, end};
	const struct rig *r = arg;

	while (!atomic_load(&done)) {
		struct rte_flow *flow = to_queue(r, 0, pattern, 0);

		destroy(r, flow);
		atomic_fetch_add(&changes, 1);
	}
	return NULL;
}

/* The port changes from direct to pollers and back all the time. */
static void
rules_change_under_traffic_and_nothing_is_lost(void **state)
{
	struct setup s = {.rxq = 1};
	uint32_t sent = 0, got = 0;
	struct rte_mbuf *pkts[32];
	pthread_t thread;
	struct rig r;

	(void)state;
	rig_make(&r, 1, "");
	assert_int_equal(rig_start(&r, &s), 0);
	atomic_store(&done, false);
	assert_int_equal(pthread_create(&thread, NULL, change_always, &r), 0);
	while (got < 20000 || atomic_load(&changes) < 50) {
		uint16_t n;

		for (; sent - got < 500; sent++) {
			struct frame f = {.tcp = true, .src = 1, .seq = sent};

			wire_put(&r, 0, &f);
		}
		n = rte_eth_rx_burst(r.port, 0, pkts, 32);
		for (uint16_t i = 0; i < n; i++)
			assert_int_equal(frame_seq(pkts[i]), got + i);
		rte_pktmbuf_free_bulk(pkts, n);
		got += n;
	}
	atomic_store(&done, true);
	pthread_join(thread, NULL);
	got += receive_all(&r, 1, NULL);
	assert_int_equal(got, sent);
	assert_int_equal(stats_of(r.port).ipackets, sent);
	assert_int_equal(stats_of(r.port).imissed, 0);
	rig_close(&r);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patterns_match_what_they_say),
		cmocka_unit_test(tunnels_match_by_vni_and_inner_frame),
		cmocka_unit_test(drop_and_count),
		cmocka_unit_test(mark_flag_and_passthru),
		cmocka_unit_test(rss_action_has_its_own_key_and_queues),
		cmocka_unit_test(symmetric_rss_keeps_both_directions_together),
		cmocka_unit_test(lower_priority_number_goes_first),
		cmocka_unit_test(isolated_port_gets_what_rules_give),
		cmocka_unit_test(rules_stay_across_restarts),
		cmocka_unit_test(what_cannot_be_is_refused_with_a_reason),
		cmocka_unit_test(rules_change_under_traffic_and_nothing_is_lost),
	};

	pmd_eal(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
