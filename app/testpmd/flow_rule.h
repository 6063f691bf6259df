/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules of rte_flow, as a person types them: the words of dpdk-testpmd, as far as they go.
 *
 *   [ingress] [priority <n>] [group <n>] pattern <item> [<field> is <value>] / ... / end
 *                            actions <action> [<field> <value>] / ... / end
 */
#ifndef TESTPMD_FLOW_RULE_H
#define TESTPMD_FLOW_RULE_H

#include <rte_flow.h>

#define TP_RULE_ITEMS 12
#define TP_RULE_ACTIONS 8
#define TP_RULE_QUEUES 64
#define TP_RULE_BYTES 64

struct tp_rule {
	struct rte_flow_attr attr;
	struct rte_flow_item items[TP_RULE_ITEMS + 1];
	struct rte_flow_action actions[TP_RULE_ACTIONS + 1];
	unsigned int num_items, num_actions;
	/* What they point to. */
	uint8_t spec[TP_RULE_ITEMS][TP_RULE_BYTES], mask[TP_RULE_ITEMS][TP_RULE_BYTES];
	union {
		struct rte_flow_action_queue queue;
		struct rte_flow_action_mark mark;
		struct rte_flow_action_count count;
		struct rte_flow_action_rss rss;
	} conf[TP_RULE_ACTIONS];
	uint16_t queues[TP_RULE_QUEUES];
	uint8_t key[TP_RULE_BYTES];
};

/** @return 0, or -errno after tp_refuse() */
int tp_rule_parse(struct tp_rule *rule, const char *text);

#endif
