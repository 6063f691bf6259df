/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow steering: which frames go where. One table for the rules of verbs and of rte_flow; it knows
 * nothing of queues.
 *
 * Normal rules are tried in the order of their priority, the lowest number first; of the same
 * priority the one that looks at more bits first, and then the older. The first that matches takes
 * the frame, together with all rules that want exactly the same; a rule that does not trap lets it
 * go on. What no normal rule takes goes to the default rules: multicast to those for multicast if
 * there are any, all else to those for everything. Sniffers see every frame besides, last.
 *
 * A rule that does not look at the destination MAC address is for the frames of this port only: to
 * its address, or to a group. So what a rule gets does not depend on whether another one has made
 * the port promiscuous.
 *
 * Rules of the same priority and mask stand in one hash table, so a look-up costs one probe for
 * each such group, not for each rule.
 */
#ifndef VRB_FLOW_H
#define VRB_FLOW_H

#include <sys/queue.h>

#include "flow_key.h"

/** Values of enum ibv_flow_attr_type. */
enum vrb_flow_type {
	VRB_FLOW_NORMAL = 0,
	VRB_FLOW_ALL_DEFAULT = 1,
	VRB_FLOW_MC_DEFAULT = 2,
	VRB_FLOW_SNIFFER = 3,
	VRB_FLOW_TYPES,
};

/** Hits, of one rule or of many together. */
struct vrb_flow_count {
	uint64_t packets, bytes;
};

struct vrb_flow_group;

struct vrb_flow_rule {
	/* what it wants, filled by its maker */
	enum vrb_flow_type type;
	uint32_t priority;
	bool dont_trap;
	struct vrb_flow_key val, mask;
	/* and what becomes of the frame: the maker's to interpret */
	bool drop;
	uint32_t tag;
	struct vrb_flow_count *count; /* or NULL */
	void *dest;
	/* the table's */
	struct vrb_flow_group *group;
	TAILQ_ENTRY(vrb_flow_rule) link;
	uint64_t hash;
};

struct vrb_flow_table;

/**
 * @param mac address of the port; NULL: rules that do not look at the destination address are for
 * all frames that the port receives
 * @return NULL: no memory
 */
struct vrb_flow_table *vrb_flow_table_new(const uint8_t mac[6]);
/** Rules that are left are the caller's. */
void vrb_flow_table_free(struct vrb_flow_table *t);

/** @return 0 or -ENOMEM */
int vrb_flow_add(struct vrb_flow_table *t, struct vrb_flow_rule *rule);
void vrb_flow_remove(struct vrb_flow_table *t, struct vrb_flow_rule *rule);
/** The oldest rule of that type, priority, value and mask, or NULL. */
struct vrb_flow_rule *vrb_flow_find(struct vrb_flow_table *t, const struct vrb_flow_rule *rule);
uint32_t vrb_flow_rules(const struct vrb_flow_table *t);
bool vrb_flow_has_sniffers(const struct vrb_flow_table *t);

/* What the port has to receive for the rules, besides frames to its own address. */
bool vrb_flow_wants_promiscuous(const struct vrb_flow_table *t);
bool vrb_flow_wants_allmulticast(const struct vrb_flow_table *t);

/** A rule that has the frame. */
typedef void vrb_flow_take_t(void *ctx, struct vrb_flow_rule *rule);

/**
 * Looks a frame up, counts it, and calls @p take for each rule that has it, sniffers last.
 * @param len of the frame
 * @return whether a rule has taken it: sniffers, and rules that do not trap, do not
 */
bool vrb_flow_lookup(struct vrb_flow_table *t, const struct vrb_flow_key *key, uint32_t len,
	vrb_flow_take_t *take, void *ctx);
/** The same for the sniffers only. */
void vrb_flow_sniff(struct vrb_flow_table *t, uint32_t len, vrb_flow_take_t *take, void *ctx);

#endif
