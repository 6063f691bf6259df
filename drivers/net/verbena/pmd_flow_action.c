/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a flow rule does with a frame.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_flow.h>

#include "pmd_private.h"

static int
refuse(struct rte_flow_error *error, int rc, const struct rte_flow_action *action, const char *why)
{
	return rte_flow_error_set(error, rc, RTE_FLOW_ERROR_TYPE_ACTION, action, why);
}

static int
take_queue(struct pmd_port *port, const struct rte_flow_action *action, struct rte_flow *flow,
	struct rte_flow_error *error)
{
	const struct rte_flow_action_queue *conf = action->conf;

	if (conf == NULL || conf->index >= port->num_rxq)
		return refuse(error, EINVAL, action, "QUEUE: the port has no such Rx queue");
	flow->queue = conf->index;
	return 0;
}

static int
check_rss(const struct pmd_port *port, const struct rte_flow_action *action,
	struct rte_flow_error *error)
{
	const struct rte_flow_action_rss *conf = action->conf;

	if (conf == NULL || conf->queue_num == 0 || conf->queue == NULL)
		return refuse(error, EINVAL, action, "RSS: there are no queues");
	if (conf->queue_num > port->rss.reta_size)
		return refuse(error, EINVAL, action,
			"RSS: there are more queues than entries in the table");
	for (uint32_t i = 0; i < conf->queue_num; i++) {
		if (conf->queue[i] >= port->num_rxq)
			return refuse(error, EINVAL, action, "RSS: the port has no such Rx queue");
	}
	if (conf->func != RTE_ETH_HASH_FUNCTION_DEFAULT &&
		conf->func != RTE_ETH_HASH_FUNCTION_TOEPLITZ &&
		conf->func != RTE_ETH_HASH_FUNCTION_SYMMETRIC_TOEPLITZ)
		return refuse(
			error, ENOTSUP, action, "RSS: the hash is Toeplitz or symmetric Toeplitz");
	if (conf->level > 2)
		return refuse(error, ENOTSUP, action, "RSS: a level above 2 cannot be hashed");
	if (!pmd_rss_types_ok(conf->types))
		return refuse(error, ENOTSUP, action,
			"RSS: a type cannot be hashed; flow_type_rss_offloads tells which can");
	if (conf->key_len != 0 && (conf->key == NULL || conf->key_len < VRB_RSS_KEY_LEN ||
					  conf->key_len > VRB_RSS_KEY_MAX))
		return refuse(error, EINVAL, action, "RSS: the key has 40 to 52 bytes");
	return 0;
}

static int
take_rss(struct pmd_port *port, const struct rte_flow_action *action, struct rte_flow *flow,
	struct rte_flow_error *error)
{
	const struct rte_flow_action_rss *conf = action->conf;
	int rc = check_rss(port, action, error);
	struct pmd_flow_rss *r;

	if (rc < 0)
		return rc;
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return refuse(error, ENOMEM, action, "RSS: no memory");
	flow->rss = r;
	/* 0 leaves the choice to the driver: what the port hashes, or all. */
	r->types = conf->types;
	if (r->types == 0)
		r->types = port->rss.types != 0
				   ? port->rss.types
				   : RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP;
	if (conf->key_len != 0)
		pmd_hash_make(&r->hash, r->types, conf->key, conf->key_len, port->args.rss_roce);
	else
		pmd_hash_make(
			&r->hash, r->types, port->rss.key, port->rss.key_len, port->args.rss_roce);
	r->hash.rss.inner = conf->level == 2;
	r->hash.rss.symmetric = conf->func == RTE_ETH_HASH_FUNCTION_SYMMETRIC_TOEPLITZ;
	r->num = port->rss.reta_size;
	r->num_queues = (uint16_t)conf->queue_num;
	for (uint16_t i = 0; i < r->num; i++)
		r->table[i] = conf->queue[i % conf->queue_num];
	return 0;
}

static int
take_mark(const struct rte_flow_action *action, struct rte_flow *flow, struct rte_flow_error *error)
{
	const struct rte_flow_action_mark *conf = action->conf;

	if (conf == NULL)
		return refuse(error, EINVAL, action, "MARK: there is no id");
	flow->has_mark = true;
	flow->mark = conf->id;
	return 0;
}

static int
take_count(
	const struct rte_flow_action *action, struct rte_flow *flow, struct rte_flow_error *error)
{
	if (flow->hits != NULL)
		return refuse(error, EINVAL, action, "COUNT: once is enough");
	flow->hits = aligned_alloc(RTE_CACHE_LINE_SIZE, PMD_MAX_POLLERS * sizeof(*flow->hits));
	if (flow->hits == NULL)
		return refuse(error, ENOMEM, action, "COUNT: no memory");
	memset(flow->hits, 0, PMD_MAX_POLLERS * sizeof(*flow->hits));
	return 0;
}

/* @return 1: it says what becomes of the frame, 0: it does not */
static int
take_action(struct pmd_port *port, const struct rte_flow_action *action, struct rte_flow *flow,
	struct rte_flow_error *error)
{
	int rc;

	switch (action->type) {
	case RTE_FLOW_ACTION_TYPE_VOID:
		return 0;
	case RTE_FLOW_ACTION_TYPE_MARK:
		return take_mark(action, flow, error);
	case RTE_FLOW_ACTION_TYPE_FLAG:
		flow->flag = true;
		return 0;
	case RTE_FLOW_ACTION_TYPE_COUNT:
		return take_count(action, flow, error);
	case RTE_FLOW_ACTION_TYPE_QUEUE:
		rc = take_queue(port, action, flow, error);
		return rc < 0 ? rc : 1;
	case RTE_FLOW_ACTION_TYPE_RSS:
		rc = take_rss(port, action, flow, error);
		return rc < 0 ? rc : 1;
	case RTE_FLOW_ACTION_TYPE_DROP:
		flow->drop = true;
		return 1;
	case RTE_FLOW_ACTION_TYPE_PASSTHRU:
		flow->passthru = true;
		return 1;
	default:
		return refuse(error, ENOTSUP, action,
			"QUEUE, RSS, DROP, PASSTHRU, MARK, FLAG and COUNT are possible");
	}
}

int
pmd_flow_actions(struct pmd_port *port, const struct rte_flow_action actions[],
	struct rte_flow *flow, struct rte_flow_error *error)
{
	unsigned int fates = 0;

	if (actions == NULL)
		return rte_flow_error_set(error, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_NUM, NULL,
			"there are no actions");
	for (; actions->type != RTE_FLOW_ACTION_TYPE_END; actions++) {
		int rc;

		/* A second RSS would leave the first one's memory behind. */
		if (fates > 0 && actions->type == RTE_FLOW_ACTION_TYPE_RSS)
			return refuse(error, EINVAL, actions,
				"one of QUEUE, RSS, DROP and PASSTHRU is possible");
		rc = take_action(port, actions, flow, error);
		if (rc < 0)
			return rc;
		fates += (unsigned int)rc;
		if (fates > 1)
			return refuse(error, EINVAL, actions,
				"one of QUEUE, RSS, DROP and PASSTHRU is possible");
	}
	if (fates == 0)
		return refuse(
			error, EINVAL, actions, "one of QUEUE, RSS, DROP and PASSTHRU is needed");
	flow->rule.dont_trap = flow->passthru;
	return 0;
}
