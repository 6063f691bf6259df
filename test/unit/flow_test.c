/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of flow rules by itself: who gets a frame.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

#include <rte_byteorder.h>

#include "flow.h"

static const uint8_t own[6] = {0x02, 0, 0, 0, 0, 1};
static const uint8_t other[6] = {0x02, 0, 0, 0, 0, 2};
static const uint8_t group[6] = {0x01, 0, 0x5e, 0, 0, 1};

#define MAX_HITS 16

struct hits {
	unsigned int n;
	struct vrb_flow_rule *rule[MAX_HITS];
};

static void
note(void *ctx, struct vrb_flow_rule *rule)
{
	struct hits *h = ctx;

	assert_true(h->n < MAX_HITS);
	h->rule[h->n++] = rule;
}

static int
setup(void **state)
{
	*state = vrb_flow_table_new(own);
	return *state == NULL;
}

static int
teardown(void **state)
{
	assert_int_equal(vrb_flow_rules(*state), 0);
	assert_false(vrb_flow_wants_promiscuous(*state));
	assert_false(vrb_flow_wants_allmulticast(*state));
	vrb_flow_table_free(*state);
	return 0;
}

static struct vrb_flow_key
frame_to(const uint8_t *mac, uint16_t dport)
{
	struct vrb_flow_key key = {.outer = {.present = VRB_FLOW_IPV4 | VRB_FLOW_UDP}};

	memcpy(key.outer.dst_mac, mac, 6);
	key.outer.dst_port = rte_cpu_to_be_16(dport);
	return key;
}

static void
want_mac(struct vrb_flow_rule *r, const uint8_t *mac)
{
	memcpy(r->val.outer.dst_mac, mac, 6);
	memset(r->mask.outer.dst_mac, 0xff, 6);
}

static void
want_port(struct vrb_flow_rule *r, uint16_t port)
{
	r->val.outer.present |= VRB_FLOW_UDP;
	r->mask.outer.present |= VRB_FLOW_UDP;
	r->val.outer.dst_port = rte_cpu_to_be_16(port);
	r->mask.outer.dst_port = 0xffff;
}

static bool
look(void *state, const struct vrb_flow_key *key, struct hits *h)
{
	h->n = 0;
	return vrb_flow_lookup(state, key, 100, note, h);
}

static void
lower_number_goes_first_whatever_was_added_first(void **state)
{
	struct vrb_flow_rule late = {.priority = 2}, early = {.priority = 1};
	struct vrb_flow_key key = frame_to(own, 5);
	struct hits h;

	want_mac(&late, own);
	want_port(&late, 5);
	want_mac(&early, own);
	assert_int_equal(vrb_flow_add(*state, &late), 0);
	assert_int_equal(vrb_flow_add(*state, &early), 0);
	assert_true(look(*state, &key, &h));
	assert_int_equal(h.n, 1);
	assert_ptr_equal(h.rule[0], &early);
	vrb_flow_remove(*state, &early);
	assert_true(look(*state, &key, &h));
	assert_ptr_equal(h.rule[0], &late);
	vrb_flow_remove(*state, &late);
	assert_false(look(*state, &key, &h));
}

static void
of_one_priority_the_more_specific_goes_first(void **state)
{
	struct vrb_flow_rule broad = {0}, narrow = {0};
	struct vrb_flow_key key = frame_to(own, 5), others = frame_to(own, 6);
	struct hits h;

	want_mac(&broad, own);
	want_mac(&narrow, own);
	want_port(&narrow, 5);
	vrb_flow_add(*state, &broad);
	vrb_flow_add(*state, &narrow);
	assert_true(look(*state, &key, &h));
	assert_ptr_equal(h.rule[0], &narrow);
	assert_int_equal(h.n, 1);
	assert_true(look(*state, &others, &h));
	assert_ptr_equal(h.rule[0], &broad);
	vrb_flow_remove(*state, &broad);
	vrb_flow_remove(*state, &narrow);
}

static void
equal_rules_get_a_copy_each(void **state)
{
	struct vrb_flow_rule a = {0}, b = {0};
	struct vrb_flow_key key = frame_to(own, 5);
	struct hits h;

	want_port(&a, 5);
	want_port(&b, 5);
	vrb_flow_add(*state, &a);
	vrb_flow_add(*state, &b);
	assert_true(look(*state, &key, &h));
	assert_int_equal(h.n, 2);
	assert_ptr_equal(h.rule[0], &a);
	assert_ptr_equal(h.rule[1], &b);
	vrb_flow_remove(*state, &a);
	vrb_flow_remove(*state, &b);
}

static void
rule_that_does_not_trap_lets_the_frame_go_on(void **state)
{
	struct vrb_flow_rule pass = {.priority = 0, .dont_trap = true}, trap = {.priority = 1},
			     rest = {.priority = 2};
	struct vrb_flow_key key = frame_to(own, 5);
	struct hits h;

	want_port(&pass, 5);
	want_port(&trap, 5);
	want_port(&rest, 5);
	vrb_flow_add(*state, &rest);
	vrb_flow_add(*state, &trap);
	vrb_flow_add(*state, &pass);
	assert_true(look(*state, &key, &h));
	assert_int_equal(h.n, 2);
	assert_ptr_equal(h.rule[0], &pass);
	assert_ptr_equal(h.rule[1], &trap);
	vrb_flow_remove(*state, &trap);
	vrb_flow_remove(*state, &rest);
	assert_false(look(*state, &key, &h));
	assert_int_equal(h.n, 1);
	vrb_flow_remove(*state, &pass);
}

static void
defaults_get_what_no_rule_takes(void **state)
{
	struct vrb_flow_rule rule = {0}, all = {.type = VRB_FLOW_ALL_DEFAULT},
			     mc = {.type = VRB_FLOW_MC_DEFAULT};
	struct vrb_flow_key taken = frame_to(own, 5), unicast = frame_to(other, 6),
			    multicast = frame_to(group, 6);
	struct hits h;

	want_port(&rule, 5);
	vrb_flow_add(*state, &rule);
	vrb_flow_add(*state, &all);
	assert_true(look(*state, &taken, &h));
	assert_ptr_equal(h.rule[0], &rule);
	assert_true(look(*state, &multicast, &h));
	assert_ptr_equal(h.rule[0], &all);
	vrb_flow_add(*state, &mc);
	assert_true(look(*state, &multicast, &h));
	assert_int_equal(h.n, 1);
	assert_ptr_equal(h.rule[0], &mc);
	assert_true(look(*state, &unicast, &h));
	assert_ptr_equal(h.rule[0], &all);
	vrb_flow_remove(*state, &all);
	assert_false(look(*state, &unicast, &h));
	vrb_flow_remove(*state, &mc);
	vrb_flow_remove(*state, &rule);
}

static void
sniffer_sees_all_and_takes_nothing(void **state)
{
	struct vrb_flow_rule sniffer = {.type = VRB_FLOW_SNIFFER}, rule = {0};
	struct vrb_flow_key mine = frame_to(own, 5), foreign = frame_to(other, 5);
	struct hits h;

	want_port(&rule, 5);
	vrb_flow_add(*state, &sniffer);
	assert_true(vrb_flow_has_sniffers(*state));
	assert_false(look(*state, &foreign, &h));
	assert_int_equal(h.n, 1);
	vrb_flow_add(*state, &rule);
	assert_true(look(*state, &mine, &h));
	assert_int_equal(h.n, 2);
	assert_ptr_equal(h.rule[0], &rule);
	assert_ptr_equal(h.rule[1], &sniffer);
	vrb_flow_remove(*state, &sniffer);
	vrb_flow_remove(*state, &rule);
}

static void
rule_without_address_is_for_this_port_only(void **state)
{
	struct vrb_flow_rule rule = {0}, promisc = {.type = VRB_FLOW_SNIFFER};
	struct vrb_flow_key mine = frame_to(own, 5), foreign = frame_to(other, 5),
			    multicast = frame_to(group, 5);
	struct hits h;

	want_port(&rule, 5);
	vrb_flow_add(*state, &rule);
	vrb_flow_add(*state, &promisc);
	assert_true(look(*state, &mine, &h));
	assert_true(look(*state, &multicast, &h));
	assert_false(look(*state, &foreign, &h));
	vrb_flow_remove(*state, &rule);
	vrb_flow_remove(*state, &promisc);
}

static void
only_bits_of_the_mask_count(void **state)
{
	struct vrb_flow_rule rule = {0};
	struct vrb_flow_key key = frame_to(own, 0x1234);
	struct hits h;

	rule.mask.outer.dst_port = rte_cpu_to_be_16(0xff00);
	rule.val.outer.dst_port = rte_cpu_to_be_16(0x1200);
	vrb_flow_add(*state, &rule);
	assert_true(look(*state, &key, &h));
	key.outer.dst_port = rte_cpu_to_be_16(0x12ff);
	assert_true(look(*state, &key, &h));
	key.outer.dst_port = rte_cpu_to_be_16(0x1334);
	assert_false(look(*state, &key, &h));
	vrb_flow_remove(*state, &rule);
}

static void
inner_headers_count_in_a_tunnel_only(void **state)
{
	struct vrb_flow_rule rule = {.mask.tunnel = 1, .val.tunnel = 1};
	struct vrb_flow_key key = frame_to(own, 4789);
	struct hits h;

	rule.val.inner.dst_port = 7;
	rule.mask.inner.dst_port = 0xffff;
	vrb_flow_add(*state, &rule);
	assert_false(look(*state, &key, &h));
	key.inner.dst_port = 7;
	assert_false(look(*state, &key, &h));
	key.tunnel = 1;
	assert_true(look(*state, &key, &h));
	vrb_flow_remove(*state, &rule);
}

static void
hits_are_counted(void **state)
{
	struct vrb_flow_count count = {0};
	struct vrb_flow_rule a = {.count = &count}, b = {.count = &count};
	struct vrb_flow_key five = frame_to(own, 5), six = frame_to(own, 6),
			    seven = frame_to(own, 7);
	struct hits h;

	want_port(&a, 5);
	want_port(&b, 6);
	vrb_flow_add(*state, &a);
	vrb_flow_add(*state, &b);
	look(*state, &five, &h);
	look(*state, &five, &h);
	look(*state, &six, &h);
	look(*state, &seven, &h);
	assert_int_equal(count.packets, 3);
	assert_int_equal(count.bytes, 300);
	vrb_flow_remove(*state, &a);
	vrb_flow_remove(*state, &b);
}

static void
port_receives_what_rules_want(void **state)
{
	struct vrb_flow_rule mine = {0}, foreign = {0}, multicast = {0}, any = {0};

	want_mac(&mine, own);
	want_mac(&foreign, other);
	want_mac(&multicast, group);
	vrb_flow_add(*state, &mine);
	assert_false(vrb_flow_wants_promiscuous(*state));
	assert_false(vrb_flow_wants_allmulticast(*state));
	vrb_flow_add(*state, &foreign);
	assert_true(vrb_flow_wants_promiscuous(*state));
	vrb_flow_remove(*state, &foreign);
	assert_false(vrb_flow_wants_promiscuous(*state));
	vrb_flow_add(*state, &multicast);
	assert_true(vrb_flow_wants_allmulticast(*state));
	vrb_flow_remove(*state, &multicast);
	vrb_flow_add(*state, &any);
	assert_false(vrb_flow_wants_promiscuous(*state));
	assert_true(vrb_flow_wants_allmulticast(*state));
	vrb_flow_remove(*state, &any);
	vrb_flow_remove(*state, &mine);
}

/* Every rule of many finds its frame, also after half of them are gone: the hash table has grown
 * several times. */
static void
many_rules_are_all_found(void **state)
{
	enum { N = 5000 };
	struct vrb_flow_rule *rules = calloc(N, sizeof(*rules));
	struct hits h;
	uint32_t i;

	for (i = 0; i < N; i++) {
		want_port(&rules[i], (uint16_t)i);
		assert_int_equal(vrb_flow_add(*state, &rules[i]), 0);
	}
	for (i = 0; i < N; i += 2)
		vrb_flow_remove(*state, &rules[i]);
	for (i = 0; i < N; i++) {
		struct vrb_flow_key key = frame_to(own, (uint16_t)i);

		assert_int_equal(look(*state, &key, &h), i % 2 == 1);
		if (i % 2 == 1)
			assert_ptr_equal(h.rule[0], &rules[i]);
	}
	for (i = 1; i < N; i += 2)
		vrb_flow_remove(*state, &rules[i]);
	free(rules);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* As ethdev wants it: what a promiscuous port receives is steered, whoever it is for. */
static void
table_without_address_is_for_all_frames(void **state)
{
	struct vrb_flow_table *t = vrb_flow_table_new(NULL);
	struct vrb_flow_rule rule = {0};
	struct vrb_flow_key key = frame_to(other, 5);
	struct hits h;

	(void)state;
	want_port(&rule, 5);
	vrb_flow_add(t, &rule);
	assert_true(look(t, &key, &h));
	assert_ptr_equal(h.rule[0], &rule);
	vrb_flow_remove(t, &rule);
	vrb_flow_table_free(t);
}

static void
rule_is_found_by_what_it_wants(void **state)
{
	struct vrb_flow_rule first = {0}, second = {0}, wanted = {0};

	want_port(&first, 5);
	want_port(&second, 5);
	want_port(&wanted, 5);
	assert_null(vrb_flow_find(*state, &wanted));
	vrb_flow_add(*state, &first);
	vrb_flow_add(*state, &second);
	assert_ptr_equal(vrb_flow_find(*state, &wanted), &first);
	wanted.priority = 1;
	assert_null(vrb_flow_find(*state, &wanted));
	wanted.priority = 0;
	want_port(&wanted, 6);
	assert_null(vrb_flow_find(*state, &wanted));
	vrb_flow_remove(*state, &first);
	vrb_flow_remove(*state, &second);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lower_number_goes_first_whatever_was_added_first),
		TEST(of_one_priority_the_more_specific_goes_first),
		TEST(equal_rules_get_a_copy_each),
		TEST(rule_that_does_not_trap_lets_the_frame_go_on),
		TEST(defaults_get_what_no_rule_takes),
		TEST(sniffer_sees_all_and_takes_nothing),
		TEST(rule_without_address_is_for_this_port_only),
		TEST(only_bits_of_the_mask_count),
		TEST(inner_headers_count_in_a_tunnel_only),
		TEST(hits_are_counted),
		TEST(port_receives_what_rules_want),
		TEST(table_without_address_is_for_all_frames),
		TEST(rule_is_found_by_what_it_wants),
		TEST(many_rules_are_all_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
