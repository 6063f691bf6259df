/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of flow rules (see flow.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>
#include <rte_ether.h>

#include "flow.h"

#define FIRST_BUCKETS 16

TAILQ_HEAD(rule_list, vrb_flow_rule);

/** Normal rules of one priority and mask. */
struct vrb_flow_group {
	TAILQ_ENTRY(vrb_flow_group) link;
	struct vrb_flow_key mask;
	uint32_t words; /* of the mask that are not zero, as bits */
	uint32_t priority;
	uint32_t bits; /* of the mask that are set */
	bool own_only; /* it does not look at the destination MAC address */
	uint32_t rules, buckets; /* buckets: a power of two */
	struct rule_list *table;
};

struct vrb_flow_table {
	TAILQ_HEAD(, vrb_flow_group) groups; /* in the order in which they are tried */
	struct rule_list others[VRB_FLOW_TYPES]; /* of the types but the normal one */
	uint8_t mac[6];
	bool any_mac; /* every frame is the port's own */
	uint32_t rules, promisc, allmulti;
};

static inline uint64_t
word_of(const struct vrb_flow_key *key, unsigned int i)
{
	uint64_t w;

	memcpy(&w, (const uint8_t *)key + i * sizeof(w), sizeof(w));
	return w;
}

struct vrb_flow_table *
vrb_flow_table_new(const uint8_t mac[6])
{
	struct vrb_flow_table *t = calloc(1, sizeof(*t));
	int i;

	if (t == NULL)
		return NULL;
	TAILQ_INIT(&t->groups);
	for (i = 0; i < VRB_FLOW_TYPES; i++)
		TAILQ_INIT(&t->others[i]);
	t->any_mac = mac == NULL;
	if (mac != NULL)
		memcpy(t->mac, mac, sizeof(t->mac));
	return t;
}

static void
free_group(struct vrb_flow_table *t, struct vrb_flow_group *g)
{
	TAILQ_REMOVE(&t->groups, g, link);
	free(g->table);
	free(g);
}

void
vrb_flow_table_free(struct vrb_flow_table *t)
{
	while (!TAILQ_EMPTY(&t->groups))
		free_group(t, TAILQ_FIRST(&t->groups));
	free(t);
}

/* ---- groups ---- */

static bool
looks_at_dst_mac(const struct vrb_flow_key *mask)
{
	static const uint8_t none[6];

	return memcmp(mask->outer.dst_mac, none, sizeof(none)) != 0;
}

static int
make_buckets(struct vrb_flow_group *g, uint32_t n)
{
	struct rule_list *table = calloc(n, sizeof(*table));
	uint32_t i;

	if (table == NULL)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		TAILQ_INIT(&table[i]);
	/* Rules that want the same stand in one bucket, and keep their order. */
	for (i = 0; i < g->buckets; i++) {
		struct vrb_flow_rule *rule;

		while ((rule = TAILQ_FIRST(&g->table[i])) != NULL) {
			TAILQ_REMOVE(&g->table[i], rule, link);
			TAILQ_INSERT_TAIL(&table[rule->hash & (n - 1)], rule, link);
		}
	}
	free(g->table);
	g->table = table;
	g->buckets = n;
	return 0;
}

static void
insert_group(struct vrb_flow_table *t, struct vrb_flow_group *g)
{
	struct vrb_flow_group *other;

	TAILQ_FOREACH (other, &t->groups, link) {
		if (other->priority > g->priority ||
			(other->priority == g->priority && other->bits < g->bits)) {
			TAILQ_INSERT_BEFORE(other, g, link);
			return;
		}
	}
	TAILQ_INSERT_TAIL(&t->groups, g, link);
}

static struct vrb_flow_group *
new_group(struct vrb_flow_table *t, const struct vrb_flow_rule *rule)
{
	struct vrb_flow_group *g = calloc(1, sizeof(*g));
	unsigned int i;

	if (g == NULL)
		return NULL;
	if (make_buckets(g, FIRST_BUCKETS) < 0) {
		free(g);
		return NULL;
	}
	g->mask = rule->mask;
	g->priority = rule->priority;
	g->own_only = !looks_at_dst_mac(&rule->mask);
	for (i = 0; i < VRB_FLOW_WORDS; i++) {
		uint64_t w = word_of(&g->mask, i);

		if (w != 0)
			g->words |= RTE_BIT32(i);
		g->bits += (uint32_t)__builtin_popcountll(w);
	}
	insert_group(t, g);
	return g;
}

static struct vrb_flow_group *
find_group(struct vrb_flow_table *t, const struct vrb_flow_rule *rule)
{
	struct vrb_flow_group *g;

	TAILQ_FOREACH (g, &t->groups, link) {
		if (g->priority == rule->priority &&
			memcmp(&g->mask, &rule->mask, sizeof(g->mask)) == 0)
			return g;
	}
	return NULL;
}

/** Hash of what the group looks at. */
static inline uint64_t
hash_key(const struct vrb_flow_group *g, const struct vrb_flow_key *key)
{
	uint64_t h = 0;
	uint32_t words;

	for (words = g->words; words != 0; words &= words - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(words);

		h = (h ^ (word_of(key, i) & word_of(&g->mask, i))) * 0x9e3779b97f4a7c15ull;
		h ^= h >> 32;
	}
	return h;
}

static inline bool
equal(const struct vrb_flow_group *g, const struct vrb_flow_key *a, const struct vrb_flow_key *b)
{
	uint32_t words;

	for (words = g->words; words != 0; words &= words - 1) {
		unsigned int i = (unsigned int)__builtin_ctz(words);

		if (((word_of(a, i) ^ word_of(b, i)) & word_of(&g->mask, i)) != 0)
			return false;
	}
	return true;
}

/* ---- rules ---- */

/** Counts what the rule wants of the port. @param n 1 or -1 */
static void
count_wants(struct vrb_flow_table *t, const struct vrb_flow_rule *rule, int n)
{
	const struct vrb_flow_stack *mask = &rule->mask.outer, *val = &rule->val.outer;
	static const uint8_t all[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
	bool whole = memcmp(mask->dst_mac, all, sizeof(all)) == 0;

	switch (rule->type) {
	case VRB_FLOW_SNIFFER:
	case VRB_FLOW_ALL_DEFAULT:
		t->promisc += n;
		t->allmulti += n;
		return;
	case VRB_FLOW_MC_DEFAULT:
		t->allmulti += n;
		return;
	default:
		break;
	}
	/* The group bit of the address, if the rule looks at it, tells which half it cannot be
	 * about. */
	if (!(mask->dst_mac[0] & 1) || (val->dst_mac[0] & 1))
		t->allmulti += n;
	if (!looks_at_dst_mac(&rule->mask) || ((mask->dst_mac[0] & 1) && (val->dst_mac[0] & 1)))
		return;
	if (!whole || memcmp(val->dst_mac, t->mac, sizeof(t->mac)) != 0)
		t->promisc += n;
}

int
vrb_flow_add(struct vrb_flow_table *t, struct vrb_flow_rule *rule)
{
	struct vrb_flow_group *g;

	if (rule->type != VRB_FLOW_NORMAL) {
		TAILQ_INSERT_TAIL(&t->others[rule->type], rule, link);
	} else {
		g = find_group(t, rule);
		if (g == NULL)
			g = new_group(t, rule);
		if (g == NULL)
			return -ENOMEM;
		if (g->rules >= 2 * g->buckets)
			make_buckets(
				g, 4 * g->buckets); /* without memory it is slower, not wrong */
		rule->group = g;
		rule->hash = hash_key(g, &rule->val);
		TAILQ_INSERT_TAIL(&g->table[rule->hash & (g->buckets - 1)], rule, link);
		g->rules++;
	}
	t->rules++;
	count_wants(t, rule, 1);
	return 0;
}

void
vrb_flow_remove(struct vrb_flow_table *t, struct vrb_flow_rule *rule)
{
	struct vrb_flow_group *g = rule->group;

	t->rules--;
	count_wants(t, rule, -1);
	if (g == NULL) {
		TAILQ_REMOVE(&t->others[rule->type], rule, link);
		return;
	}
	TAILQ_REMOVE(&g->table[rule->hash & (g->buckets - 1)], rule, link);
	rule->group = NULL;
	if (--g->rules == 0)
		free_group(t, g);
}

struct vrb_flow_rule *
vrb_flow_find(struct vrb_flow_table *t, const struct vrb_flow_rule *wanted)
{
	struct vrb_flow_rule *rule;
	struct vrb_flow_group *g;
	uint64_t hash;

	if (wanted->type != VRB_FLOW_NORMAL)
		return TAILQ_FIRST(&t->others[wanted->type]);
	g = find_group(t, wanted);
	if (g == NULL)
		return NULL;
	hash = hash_key(g, &wanted->val);
	TAILQ_FOREACH (rule, &g->table[hash & (g->buckets - 1)], link) {
		if (rule->hash == hash && equal(g, &rule->val, &wanted->val))
			return rule;
	}
	return NULL;
}

uint32_t
vrb_flow_rules(const struct vrb_flow_table *t)
{
	return t->rules;
}

bool
vrb_flow_has_sniffers(const struct vrb_flow_table *t)
{
	return !TAILQ_EMPTY(&t->others[VRB_FLOW_SNIFFER]);
}

bool
vrb_flow_wants_promiscuous(const struct vrb_flow_table *t)
{
	return t->promisc > 0;
}

bool
vrb_flow_wants_allmulticast(const struct vrb_flow_table *t)
{
	return t->allmulti > 0;
}

/* ---- looking up ---- */

static inline void
hit(struct vrb_flow_rule *rule, uint32_t len, vrb_flow_take_t *take, void *ctx)
{
	if (rule->count != NULL) {
		rule->count->packets++;
		rule->count->bytes += len;
	}
	take(ctx, rule);
}

/** @return whether a rule of the group has taken the frame */
static bool
look_in_group(struct vrb_flow_group *g, const struct vrb_flow_key *key, uint32_t len,
	vrb_flow_take_t *take, void *ctx)
{
	uint64_t hash = hash_key(g, key);
	struct vrb_flow_rule *rule;
	bool taken = false;

	TAILQ_FOREACH (rule, &g->table[hash & (g->buckets - 1)], link) {
		if (rule->hash != hash || !equal(g, &rule->val, key))
			continue;
		hit(rule, len, take, ctx);
		taken = taken || !rule->dont_trap;
	}
	return taken;
}

static bool
all_of(struct vrb_flow_table *t, enum vrb_flow_type type, uint32_t len, vrb_flow_take_t *take,
	void *ctx)
{
	struct vrb_flow_rule *rule;

	TAILQ_FOREACH (rule, &t->others[type], link)
		hit(rule, len, take, ctx);
	return !TAILQ_EMPTY(&t->others[type]);
}

bool
vrb_flow_lookup(struct vrb_flow_table *t, const struct vrb_flow_key *key, uint32_t len,
	vrb_flow_take_t *take, void *ctx)
{
	bool group = key->outer.dst_mac[0] & 1, taken = false;
	bool own = t->any_mac || group || memcmp(key->outer.dst_mac, t->mac, sizeof(t->mac)) == 0;
	struct vrb_flow_group *g;

	TAILQ_FOREACH (g, &t->groups, link) {
		taken = (own || !g->own_only) && look_in_group(g, key, len, take, ctx);
		if (taken)
			break;
	}
	if (!taken && group)
		taken = all_of(t, VRB_FLOW_MC_DEFAULT, len, take, ctx);
	if (!taken)
		taken = all_of(t, VRB_FLOW_ALL_DEFAULT, len, take, ctx);
	vrb_flow_sniff(t, len, take, ctx);
	return taken;
}

void
vrb_flow_sniff(struct vrb_flow_table *t, uint32_t len, vrb_flow_take_t *take, void *ctx)
{
	all_of(t, VRB_FLOW_SNIFFER, len, take, ctx);
}
