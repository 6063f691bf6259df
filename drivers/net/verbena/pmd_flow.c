/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rte_flow: rules made, found, counted and taken away while the port runs. The rules stand in the
 * table that the verbs library uses too (flow.h).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_flow.h>
#include <rte_flow_driver.h>

#include "pmd_private.h"
#include "pmd_trace.h"

#define MAX_PRIORITY UINT16_MAX

static int
check_attr(const struct rte_flow_attr *attr, struct rte_flow_error *error)
{
	if (attr == NULL)
		return rte_flow_error_set(
			error, EINVAL, RTE_FLOW_ERROR_TYPE_ATTR, NULL, "there are no attributes");
	if (attr->egress || attr->transfer || !attr->ingress)
		return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_INGRESS, attr,
			"rules are for ingress");
	if (attr->group != 0)
		return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_GROUP, attr,
			"there is group 0 only");
	if (attr->priority > MAX_PRIORITY)
		return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_PRIORITY, attr,
			"priorities go from 0 to 65535");
	return 0;
}

static void
flow_free(struct rte_flow *flow)
{
	free(flow->rss);
	free(flow->hits);
	free(flow);
}

/* @return NULL, and error is set */
static struct rte_flow *
make(struct pmd_port *port, const struct rte_flow_attr *attr, const struct rte_flow_item pattern[],
	const struct rte_flow_action actions[], struct rte_flow_error *error)
{
	struct rte_flow *flow;

	if (check_attr(attr, error) < 0)
		return NULL;
	flow = calloc(1, sizeof(*flow));
	if (flow == NULL) {
		rte_flow_error_set(
			error, ENOMEM, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, NULL, "no memory");
		return NULL;
	}
	flow->queue = PMD_NO_QUEUE;
	flow->rule.priority = attr->priority;
	flow->rule.dest = flow;
	if (pmd_flow_pattern(pattern, &flow->rule, error) < 0 ||
		pmd_flow_actions(port, actions, flow, error) < 0) {
		flow_free(flow);
		return NULL;
	}
	if (port->flows != NULL && vrb_flow_find(port->flows, &flow->rule) != NULL) {
		rte_flow_error_set(error, EEXIST, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, NULL,
			"there is a rule with this pattern and priority");
		flow_free(flow);
		return NULL;
	}
	return flow;
}

static int
flow_validate(struct rte_eth_dev *dev, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error)
{
	struct pmd_port *port = pmd_port_of(dev);
	struct rte_flow *flow;

	pthread_mutex_lock(&port->lock);
	flow = make(port, attr, pattern, actions, error);
	pthread_mutex_unlock(&port->lock);
	if (flow == NULL)
		return -rte_errno;
	flow_free(flow);
	return 0;
}

/* Frames move on when the rules are as wanted; the first rule and the last one may change the way
 * that they take. */
static void
stop_frames(struct pmd_port *port)
{
	pmd_gates_close(port);
	pmd_pollers_lock(port);
}

static void
go_on(struct pmd_port *port)
{
	pmd_mode_update(port);
	pmd_pollers_unlock(port);
	pmd_gates_open(port);
	pmd_trace_flow(port->port_id, port->num_flows);
}

static int
insert(struct pmd_port *port, struct rte_flow *flow)
{
	int rc;

	if (port->flows == NULL)
		port->flows = vrb_flow_table_new(NULL);
	if (port->flows == NULL)
		return -ENOMEM;
	stop_frames(port);
	rc = vrb_flow_add(port->flows, &flow->rule);
	if (rc == 0)
		port->num_flows++;
	go_on(port);
	return rc;
}

static struct rte_flow *
flow_create(struct rte_eth_dev *dev, const struct rte_flow_attr *attr,
	const struct rte_flow_item pattern[], const struct rte_flow_action actions[],
	struct rte_flow_error *error)
{
	struct pmd_port *port = pmd_port_of(dev);
	struct rte_flow *flow;

	pthread_mutex_lock(&port->lock);
	flow = make(port, attr, pattern, actions, error);
	if (flow != NULL && insert(port, flow) < 0) {
		rte_flow_error_set(
			error, ENOMEM, RTE_FLOW_ERROR_TYPE_UNSPECIFIED, NULL, "no memory");
		flow_free(flow);
		flow = NULL;
	}
	if (flow != NULL)
		TAILQ_INSERT_TAIL(&port->flow_list, flow, link);
	pthread_mutex_unlock(&port->lock);
	return flow;
}

static bool
is_known(const struct pmd_port *port, const struct rte_flow *flow)
{
	const struct rte_flow *f;

	TAILQ_FOREACH (f, &port->flow_list, link) {
		if (f == flow)
			return true;
	}
	return false;
}

static int
unknown(struct rte_flow_error *error)
{
	return rte_flow_error_set(
		error, ENOENT, RTE_FLOW_ERROR_TYPE_HANDLE, NULL, "the port has no such rule");
}

static void
take_out(struct pmd_port *port, struct rte_flow *flow)
{
	vrb_flow_remove(port->flows, &flow->rule);
	port->num_flows--;
	TAILQ_REMOVE(&port->flow_list, flow, link);
}

static int
flow_destroy(struct rte_eth_dev *dev, struct rte_flow *flow, struct rte_flow_error *error)
{
	struct pmd_port *port = pmd_port_of(dev);

	pthread_mutex_lock(&port->lock);
	if (!is_known(port, flow)) {
		pthread_mutex_unlock(&port->lock);
		return unknown(error);
	}
	stop_frames(port);
	take_out(port, flow);
	go_on(port);
	pthread_mutex_unlock(&port->lock);
	flow_free(flow);
	return 0;
}

static void
flush(struct pmd_port *port)
{
	struct rte_flow *flow;

	while ((flow = TAILQ_FIRST(&port->flow_list)) != NULL) {
		take_out(port, flow);
		flow_free(flow);
	}
}

static int
flow_flush(struct rte_eth_dev *dev, struct rte_flow_error *error)
{
	struct pmd_port *port = pmd_port_of(dev);

	RTE_SET_USED(error);
	pthread_mutex_lock(&port->lock);
	stop_frames(port);
	flush(port);
	go_on(port);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

static int
query_count(struct rte_flow *flow, struct rte_flow_query_count *count)
{
	count->hits = count->bytes = 0;
	for (uint32_t i = 0; i < PMD_MAX_POLLERS; i++) {
		count->hits += flow->hits[i].packets;
		count->bytes += flow->hits[i].bytes;
	}
	count->hits_set = count->bytes_set = 1;
	if (count->reset)
		memset(flow->hits, 0, PMD_MAX_POLLERS * sizeof(*flow->hits));
	return 0;
}

static int
query(struct pmd_port *port, struct rte_flow *flow, const struct rte_flow_action *actions,
	void *data, struct rte_flow_error *error)
{
	if (!is_known(port, flow))
		return unknown(error);
	while (actions->type == RTE_FLOW_ACTION_TYPE_VOID)
		actions++;
	if (actions->type != RTE_FLOW_ACTION_TYPE_COUNT)
		return rte_flow_error_set(error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION, actions,
			"COUNT can be queried, and nothing else");
	if (flow->hits == NULL)
		return rte_flow_error_set(error, EINVAL, RTE_FLOW_ERROR_TYPE_ACTION, actions,
			"the rule has no COUNT");
	/* With the batons, so that a reset loses no hit. */
	pmd_pollers_lock(port);
	query_count(flow, data);
	pmd_pollers_unlock(port);
	return 0;
}

static int
flow_query(struct rte_eth_dev *dev, struct rte_flow *flow, const struct rte_flow_action *actions,
	void *data, struct rte_flow_error *error)
{
	struct pmd_port *port = pmd_port_of(dev);
	int rc;

	pthread_mutex_lock(&port->lock);
	rc = query(port, flow, actions, data, error);
	pthread_mutex_unlock(&port->lock);
	return rc;
}

static int
flow_isolate(struct rte_eth_dev *dev, int set, struct rte_flow_error *error)
{
	struct pmd_port *port = pmd_port_of(dev);

	RTE_SET_USED(error);
	pthread_mutex_lock(&port->lock);
	stop_frames(port);
	port->isolated = set != 0;
	go_on(port);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

static void
dump_one(const struct rte_flow *flow, FILE *file)
{
	fprintf(file, "rule %p priority %u:", (const void *)flow, flow->rule.priority);
	if (flow->has_mark)
		fprintf(file, " mark %u", flow->mark);
	if (flow->flag)
		fprintf(file, " flag");
	if (flow->hits != NULL)
		fprintf(file, " count");
	if (flow->drop)
		fprintf(file, " drop\n");
	else if (flow->passthru)
		fprintf(file, " passthru\n");
	else if (flow->rss != NULL)
		fprintf(file, " rss over %u queues, types %#" PRIx64 "\n", flow->rss->num_queues,
			flow->rss->types);
	else
		fprintf(file, " queue %u\n", flow->queue);
}

static int
flow_dump(struct rte_eth_dev *dev, struct rte_flow *flow, FILE *file, struct rte_flow_error *error)
{
	struct pmd_port *port = pmd_port_of(dev);
	struct rte_flow *f;
	int rc = 0;

	pthread_mutex_lock(&port->lock);
	if (flow != NULL && !is_known(port, flow))
		rc = unknown(error);
	TAILQ_FOREACH (f, &port->flow_list, link) {
		if (rc == 0 && (flow == NULL || flow == f))
			dump_one(f, file);
	}
	pthread_mutex_unlock(&port->lock);
	return rc;
}

static const struct rte_flow_ops flow_ops = {
	.validate = flow_validate,
	.create = flow_create,
	.destroy = flow_destroy,
	.flush = flow_flush,
	.query = flow_query,
	.isolate = flow_isolate,
	.dev_dump = flow_dump,
};

int
pmd_flow_ops_get(struct rte_eth_dev *dev, const struct rte_flow_ops **ops)
{
	RTE_SET_USED(dev);
	*ops = &flow_ops;
	return 0;
}

int
pmd_flow_check_queues(const struct pmd_port *port, uint16_t n)
{
	const struct rte_flow *flow;

	TAILQ_FOREACH (flow, &port->flow_list, link) {
		uint16_t highest = flow->queue == PMD_NO_QUEUE ? 0 : flow->queue;

		for (uint16_t i = 0; flow->rss != NULL && i < flow->rss->num; i++)
			highest = RTE_MAX(highest, flow->rss->table[i]);
		if (highest >= n && !flow->drop) {
			PMD_LOG(ERR,
				"port %u: a flow rule uses Rx queue %u, and the port is to have "
				"%u; destroy the rule first",
				port->port_id, highest, n);
			return -EBUSY;
		}
	}
	return 0;
}

/* With nobody left who moves frames. */
void
pmd_flow_fini(struct pmd_port *port)
{
	flush(port);
	if (port->flows != NULL)
		vrb_flow_table_free(port->flows);
	port->flows = NULL;
}
