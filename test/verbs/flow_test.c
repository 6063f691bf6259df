/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow rules and counters: which frames go where, and what is refused (ibv_create_flow(3),
 * ibv_create_counters(3)).
 */
#include <arpa/inet.h>

#include "raw_util.h"

#define LEN 200

/* One sender and two receivers, each with a CQ of its own, 16 receives posted. */
struct net {
	struct rig *r;
	struct ibv_cq *cq[2];
	struct ibv_qp *tx, *rx[2];
};

static struct net
open_net(struct rig *r)
{
	struct net n = {.r = r};
	int i, k;

	n.tx = make_raw(r, r->cq, 0);
	for (i = 0; i < 2; i++) {
		n.cq[i] = ibv_create_cq(r->ctx, 64, NULL, NULL, 0);
		assert_non_null(n.cq[i]);
		n.rx[i] = make_raw(r, n.cq[i], 0);
		for (k = 0; k < 16; k++)
			assert_int_equal(
				post_recv(r, n.rx[i], 0, r->buf + BUF_SIZE / 2 + i * 4096, 2000),
				0);
	}
	return n;
}

static void
close_net(struct net *n)
{
	int i;

	assert_int_equal(ibv_destroy_qp(n->tx), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(ibv_destroy_qp(n->rx[i]), 0);
		assert_int_equal(ibv_destroy_cq(n->cq[i]), 0);
	}
}

static void
send_to(struct net *n, const uint8_t *dst, uint16_t dport)
{
	make_frame(n->r, n->r->buf, dst, LEN, 1000, dport);
	send_frame(n->r, n->tx, n->r->buf, LEN);
}

static bool
came(struct net *n, int i)
{
	struct ibv_wc wc;

	/* Sends complete after the frame has gone round: one look is enough, but is made to be sure
	 * of it. */
	return poll_for(n->cq[i], &wc) && wc.status == IBV_WC_SUCCESS;
}

/* All layers, each in its place; the test says how many count. */
struct deep_rule {
	struct ibv_flow_attr attr;
	struct ibv_flow_spec_eth eth;
	struct ibv_flow_spec_ipv4_ext ip;
	struct ibv_flow_spec_tcp_udp udp;
};

static struct deep_rule
deep(struct rig *r, uint16_t dport)
{
	struct deep_rule d = {
		.attr = {.type = IBV_FLOW_ATTR_NORMAL,
			.size = sizeof(d),
			.num_of_specs = 3,
			.port = 1},
		.eth = rule_to(r, NULL).eth,
		.ip = {.type = IBV_FLOW_SPEC_IPV4_EXT,
			.size = sizeof(d.ip),
			.val = {.proto = 17},
			.mask = {.proto = 0xff}},
		.udp = {.type = IBV_FLOW_SPEC_UDP,
			.size = sizeof(d.udp),
			.val = {.dst_port = htons(dport)},
			.mask = {.dst_port = 0xffff}},
	};

	memcpy(&d.ip.val.dst_ip, "\x0a\x04\x05\x06", 4);
	d.ip.mask.dst_ip = 0xffffffff;
	return d;
}

static struct ibv_flow *
create(struct ibv_qp *qp, void *rule)
{
	struct ibv_flow *flow = ibv_create_flow(qp, rule);

	assert_non_null(flow);
	return flow;
}

static void
frame_goes_by_the_layers_that_are_named(void **state)
{
	struct net n = open_net(*state);
	struct deep_rule d = deep(n.r, 5000);
	struct ibv_flow *flow = create(n.rx[0], &d);

	send_to(&n, NULL, 5001);
	expect_no_completion(n.cq[0]);
	send_to(&n, NULL, 5000);
	assert_true(came(&n, 0));
	assert_int_equal(ibv_destroy_flow(flow), 0);
	send_to(&n, NULL, 5000);
	expect_no_completion(n.cq[0]);
	close_net(&n);
}

static void
lower_priority_number_wins(void **state)
{
	struct net n = open_net(*state);
	struct eth_rule broad = rule_to(n.r, NULL);
	struct deep_rule narrow = deep(n.r, 5000);
	struct ibv_flow *a, *b;

	narrow.attr.priority = 2;
	broad.attr.priority = 1;
	a = create(n.rx[1], &narrow);
	b = create(n.rx[0], &broad);
	send_to(&n, NULL, 5000);
	assert_true(came(&n, 0));
	expect_no_completion(n.cq[1]);
	assert_int_equal(ibv_destroy_flow(a), 0);
	assert_int_equal(ibv_destroy_flow(b), 0);
	close_net(&n);
}

static void
same_rule_of_two_queue_pairs_gives_both_a_copy(void **state)
{
	struct net n = open_net(*state);
	struct ibv_flow *a = steer(n.r, n.rx[0], NULL), *b = steer(n.r, n.rx[1], NULL);

	send_to(&n, NULL, 1);
	assert_true(came(&n, 0));
	assert_true(came(&n, 1));
	assert_int_equal(ibv_destroy_flow(a), 0);
	assert_int_equal(ibv_destroy_flow(b), 0);
	close_net(&n);
}

static void
rule_that_does_not_trap_lets_frames_go_on(void **state)
{
	struct net n = open_net(*state);
	struct eth_rule copy = rule_to(n.r, NULL);
	struct ibv_flow *a, *b;

	copy.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	a = create(n.rx[0], &copy);
	copy.attr.flags = 0;
	copy.attr.priority = 1;
	b = create(n.rx[1], &copy);
	send_to(&n, NULL, 1);
	assert_true(came(&n, 0));
	assert_true(came(&n, 1));
	assert_int_equal(ibv_destroy_flow(a), 0);
	assert_int_equal(ibv_destroy_flow(b), 0);
	close_net(&n);
}

static void
defaults_get_what_no_rule_takes(void **state)
{
	struct net n = open_net(*state);
	struct ibv_flow_attr all = {.type = IBV_FLOW_ATTR_ALL_DEFAULT,
				     .size = sizeof(all),
				     .port = 1},
			     mc = all;
	struct ibv_flow *a, *m, *rule;

	mc.type = IBV_FLOW_ATTR_MC_DEFAULT;
	a = create(n.rx[0], &all);
	m = create(n.rx[1], &mc);
	send_to(&n, NULL, 1);
	assert_true(came(&n, 0));
	send_to(&n, group_mac, 1);
	assert_true(came(&n, 1));
	expect_no_completion(n.cq[0]);
	rule = steer(n.r, n.rx[1], NULL);
	send_to(&n, NULL, 1);
	assert_true(came(&n, 1));
	expect_no_completion(n.cq[0]);
	assert_int_equal(ibv_destroy_flow(rule), 0);
	assert_int_equal(ibv_destroy_flow(a), 0);
	assert_int_equal(ibv_destroy_flow(m), 0);
	close_net(&n);
}

static void
sniffer_sees_what_goes_to_others_and_what_is_sent(void **state)
{
	static const uint8_t elsewhere[6] = {0x02, 0xff, 0xff, 0xff, 0xff, 0xfe};
	struct net n = open_net(*state);
	struct ibv_flow_attr attr = {
		.type = IBV_FLOW_ATTR_SNIFFER, .size = sizeof(attr), .port = 1};
	struct ibv_flow *rule = steer(n.r, n.rx[0], NULL), *sniffer = create(n.rx[1], &attr);

	send_to(&n, NULL, 1);
	assert_true(came(&n, 0));
	assert_true(came(&n, 1));
	send_to(&n, elsewhere, 1);
	assert_true(came(&n, 1));
	assert_int_equal(ibv_destroy_flow(rule), 0);
	assert_int_equal(ibv_destroy_flow(sniffer), 0);
	close_net(&n);
}

static void
dropped_frames_reach_nobody(void **state)
{
	struct net n = open_net(*state);
	struct {
		struct eth_rule rule;
		struct ibv_flow_spec_action_drop drop;
	} d = {.rule = rule_to(n.r, NULL),
		.drop = {.type = IBV_FLOW_SPEC_ACTION_DROP, .size = sizeof(d.drop)}};
	struct ibv_flow *drop, *rule;

	d.rule.attr.num_of_specs = 2;
	d.rule.attr.size = sizeof(d);
	drop = create(n.rx[0], &d);
	d.rule.attr.num_of_specs = 1;
	d.rule.attr.priority = 1;
	rule = create(n.rx[1], &d);
	send_to(&n, NULL, 1);
	expect_no_completion(n.cq[0]);
	expect_no_completion(n.cq[1]);
	assert_int_equal(ibv_destroy_flow(drop), 0);
	send_to(&n, NULL, 1);
	assert_true(came(&n, 1));
	assert_int_equal(ibv_destroy_flow(rule), 0);
	close_net(&n);
}

static void
tag_is_told_with_the_completion(void **state)
{
	struct rig *r = *state;
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = 16, .wc_flags = IBV_WC_EX_WITH_FLOW_TAG};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(r->ctx, &cq_attr);
	struct ibv_poll_cq_attr poll = {0};
	struct {
		struct eth_rule rule;
		struct ibv_flow_spec_action_tag tag;
	} t = {.rule = rule_to(r, NULL),
		.tag = {.type = IBV_FLOW_SPEC_ACTION_TAG,
			.size = sizeof(t.tag),
			.tag_id = 0xabcdef}};
	struct ibv_qp *tx = make_raw(r, r->cq, 0), *rx = make_raw(r, ibv_cq_ex_to_cq(cq), 0);
	struct ibv_flow *flow;

	t.rule.attr.num_of_specs = 2;
	flow = create(rx, &t);
	make_frame(r, r->buf, NULL, LEN, 1, 2);
	assert_int_equal(post_recv(r, rx, 1, r->buf + 4096, 2000), 0);
	send_frame(r, tx, r->buf, LEN);
	while (ibv_start_poll(cq, &poll))
		;
	assert_int_equal(ibv_wc_read_flow_tag(cq), 0xabcdef);
	ibv_end_poll(cq);
	t.tag.tag_id = 1 << 24;
	expect_null(ibv_create_flow(rx, &t.rule.attr), EINVAL);
	assert_int_equal(ibv_destroy_flow(flow), 0);
	assert_int_equal(ibv_destroy_qp(tx), 0);
	assert_int_equal(ibv_destroy_qp(rx), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void
queue_pair_is_busy_while_rules_send_to_it(void **state)
{
	struct net n = open_net(*state);
	struct ibv_flow *flow = steer(n.r, n.rx[0], NULL);

	expect_errno(ibv_destroy_qp(n.rx[0]), EBUSY);
	assert_int_equal(ibv_destroy_flow(flow), 0);
	close_net(&n);
}

static void
other_queue_pairs_take_no_rules(void **state)
{
	struct rig *r = *state;
	struct eth_rule rule = rule_to(r, NULL);

	expect_null(ibv_create_flow(r->a, &rule.attr), EINVAL);
}

static void
wrong_attributes_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *qp = make_raw(r, r->cq, 0);
	const struct eth_rule good = rule_to(r, NULL);
	struct eth_rule bad;

#define REFUSED(err, ...) \
	do { \
		bad = good; \
		__VA_ARGS__; \
		expect_null(ibv_create_flow(qp, &bad.attr), err); \
	} while (0)
	REFUSED(EINVAL, bad.attr.comp_mask = 1);
	REFUSED(EINVAL, bad.attr.type = 4);
	REFUSED(EINVAL, bad.attr.port = 0);
	REFUSED(EINVAL, bad.attr.port = 2);
	REFUSED(EINVAL, bad.attr.flags = 1);
	REFUSED(EOPNOTSUPP, bad.attr.flags = IBV_FLOW_ATTR_FLAGS_EGRESS);
	REFUSED(EINVAL, bad.attr.type = IBV_FLOW_ATTR_ALL_DEFAULT);
	REFUSED(EINVAL, bad.attr.type = IBV_FLOW_ATTR_SNIFFER; bad.attr.num_of_specs = 0;
		bad.attr.flags = IBV_FLOW_ATTR_FLAGS_DONT_TRAP);
	REFUSED(EINVAL, bad.eth.size--);
	REFUSED(EINVAL, bad.eth.size = 0);
	REFUSED(EINVAL, bad.eth.type = 0x21);
	REFUSED(EOPNOTSUPP, bad.eth.type = IBV_FLOW_SPEC_GRE;
		bad.eth.size = sizeof(struct ibv_flow_spec_gre));
	REFUSED(EOPNOTSUPP, bad.eth.type = IBV_FLOW_SPEC_MPLS;
		bad.eth.size = sizeof(struct ibv_flow_spec_mpls));
	REFUSED(EOPNOTSUPP, bad.eth.type = IBV_FLOW_SPEC_ESP;
		bad.eth.size = sizeof(struct ibv_flow_spec_esp));
	REFUSED(EOPNOTSUPP, bad.eth.type = IBV_FLOW_SPEC_ACTION_HANDLE;
		bad.eth.size = sizeof(struct ibv_flow_spec_action_handle));
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void
rules_that_can_never_match_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *qp = make_raw(r, r->cq, 0);
	struct deep_rule d = deep(r, 1);

	d.eth.val.ether_type = htons(0x86dd);
	d.eth.mask.ether_type = 0xffff;
	expect_null(ibv_create_flow(qp, &d.attr), EINVAL);
	d = deep(r, 1);
	d.udp.type = IBV_FLOW_SPEC_TCP;
	expect_null(ibv_create_flow(qp, &d.attr), EINVAL);
	/* The same layer twice. */
	d = deep(r, 1);
	d.attr.num_of_specs = 2;
	memcpy(&d.ip,
		&(struct ibv_flow_spec_ipv4_ext){.type = IBV_FLOW_SPEC_ETH, .size = sizeof(d.eth)},
		sizeof(d.ip));
	expect_null(ibv_create_flow(qp, &d.attr), EINVAL);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void
layers_come_in_any_order(void **state)
{
	struct net n = open_net(*state);
	struct deep_rule d = deep(n.r, 5000);
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_tcp_udp udp;
		struct ibv_flow_spec_eth eth;
	} rule = {d.attr, d.udp, d.eth};
	struct ibv_flow *flow;

	rule.attr.num_of_specs = 2;
	flow = create(n.rx[0], &rule);
	send_to(&n, NULL, 5000);
	assert_true(came(&n, 0));
	assert_int_equal(ibv_destroy_flow(flow), 0);
	close_net(&n);
}

static void
count(struct ibv_counters *c, enum ibv_counter_description what, uint32_t index)
{
	struct ibv_counter_attach_attr attr = {.counter_desc = what, .index = index};

	assert_int_equal(ibv_attach_counters_point_flow(c, &attr, NULL), 0);
}

static void
packets_and_bytes_are_counted_where_it_was_asked(void **state)
{
	struct net n = open_net(*state);
	struct ibv_counters_init_attr init = {0};
	struct ibv_counters *c = ibv_create_counters(n.r->ctx, &init);
	struct ibv_counter_attach_attr late = {.counter_desc = IBV_COUNTER_PACKETS};
	struct {
		struct eth_rule rule;
		struct ibv_flow_spec_counter_action count;
	} __attribute__((packed)) k = {.rule = rule_to(n.r, NULL),
		.count = {.type = IBV_FLOW_SPEC_ACTION_COUNT,
			.size = sizeof(k.count),
			.counters = c}};
	struct ibv_flow *a, *b;
	uint64_t values[3];

	assert_non_null(c);
	count(c, IBV_COUNTER_PACKETS, 2);
	count(c, IBV_COUNTER_BYTES, 0);
	k.rule.attr.num_of_specs = 2;
	a = create(n.rx[0], &k);
	b = create(n.rx[1], &k);
	send_to(&n, NULL, 1);
	send_to(&n, NULL, 1);
	assert_true(came(&n, 0) && came(&n, 0) && came(&n, 1) && came(&n, 1));
	/* Two rules with two frames each. */
	assert_int_equal(ibv_read_counters(c, values, 3, IBV_READ_COUNTERS_ATTR_PREFER_CACHED), 0);
	assert_int_equal(values[0], 4 * LEN);
	assert_int_equal(values[1], 0);
	assert_int_equal(values[2], 4);
	expect_errno(ibv_read_counters(c, values, 2, 0), EINVAL);
	expect_errno(ibv_read_counters(c, values, 3, 2), EINVAL);
	expect_errno(ibv_attach_counters_point_flow(c, &late, NULL), EBUSY);
	expect_errno(ibv_destroy_counters(c), EBUSY);
	assert_int_equal(ibv_destroy_flow(a), 0);
	assert_int_equal(ibv_destroy_flow(b), 0);
	assert_int_equal(ibv_destroy_counters(c), 0);
	close_net(&n);
}

static void
wrong_counters_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_counters_init_attr bad = {.comp_mask = 1}, good = {0};
	struct ibv_counter_attach_attr what = {.counter_desc = 2};
	struct ibv_counters *c = ibv_create_counters(r->ctx, &good);
	struct ibv_flow flow = {.context = r->ctx};

	expect_null(ibv_create_counters(r->ctx, &bad), EINVAL);
	expect_errno(ibv_attach_counters_point_flow(c, &what, NULL), ENOTSUP);
	what.counter_desc = IBV_COUNTER_BYTES;
	expect_errno(ibv_attach_counters_point_flow(c, &what, &flow), ENOTSUP);
	what.comp_mask = 1;
	expect_errno(ibv_attach_counters_point_flow(c, &what, NULL), EINVAL);
	assert_int_equal(ibv_destroy_counters(c), 0);
}

static void
closing_takes_what_was_left_behind(void **state)
{
	struct rig *r = *state, other = *r;
	struct ibv_qp *qp;

	other.ctx = open_device();
	other.pd = ibv_alloc_pd(other.ctx);
	other.cq = ibv_create_cq(other.ctx, 16, NULL, NULL, 0);
	qp = make_raw(&other, other.cq, 0);
	steer(&other, qp, NULL);
	assert_int_equal(ibv_close_device(other.ctx), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_DEVICE(frame_goes_by_the_layers_that_are_named),
		TEST_DEVICE(lower_priority_number_wins),
		TEST_DEVICE(same_rule_of_two_queue_pairs_gives_both_a_copy),
		TEST_DEVICE(rule_that_does_not_trap_lets_frames_go_on),
		TEST_DEVICE(defaults_get_what_no_rule_takes),
		TEST_DEVICE(sniffer_sees_what_goes_to_others_and_what_is_sent),
		TEST_DEVICE(dropped_frames_reach_nobody),
		TEST_DEVICE(tag_is_told_with_the_completion),
		TEST_DEVICE(queue_pair_is_busy_while_rules_send_to_it),
		TEST_PAIR(other_queue_pairs_take_no_rules),
		TEST_DEVICE(wrong_attributes_are_refused),
		TEST_DEVICE(rules_that_can_never_match_are_refused),
		TEST_DEVICE(layers_come_in_any_order),
		TEST_DEVICE(packets_and_bytes_are_counted_where_it_was_asked),
		TEST_DEVICE(wrong_counters_are_refused),
		TEST_DEVICE(closing_takes_what_was_left_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
