/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow rules: of ethdev ports by rte_flow, and of queue pairs that receive raw frames.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ether.h>

#include "backend.h"
#include "commands.h"
#include "flow_rule.h"
#include "ports.h"

/* ---- of ports ---- */

static int
refuse_rule(int rc, uint16_t port, const struct rte_flow_error *error)
{
	return tp_refuse(rc < 0 ? rc : -EINVAL, "port %u does not take the rule: %s", port,
		error->message != NULL ? error->message : strerror(rc < 0 ? -rc : EINVAL));
}

static int
rule_of(const struct tp_call *call, struct tp_rule *rule)
{
	int rc = tp_port_check_ours(tp_num(call, "port", 0));

	return rc < 0 ? rc : tp_rule_parse(rule, tp_text(call, "rule"));
}

static int
flow_validate(const struct tp_call *call)
{
	uint16_t port = tp_num(call, "port", 0);
	struct rte_flow_error error = {0};
	struct tp_rule rule;
	int rc = rule_of(call, &rule);

	if (rc < 0)
		return rc;
	rc = rte_flow_validate(port, &rule.attr, rule.items, rule.actions, &error);
	if (rc < 0)
		return refuse_rule(rc, port, &error);
	tp_print("port %u takes the rule\n", port);
	return 0;
}

static struct tp_flow *
new_flow(const struct tp_call *call, const char *text)
{
	struct tp_flow *flow = tp_object_new(TP_FLOW, tp_num(call, "flow", 0), sizeof(*flow));

	if (flow == NULL)
		return NULL;
	flow->text = strdup(text);
	if (flow->text == NULL) {
		tp_object_free(&flow->obj);
		return NULL;
	}
	return flow;
}

static void
free_flow(struct tp_flow *flow)
{
	free(flow->text);
	tp_object_free(&flow->obj);
}

static int
flow_create_port(const struct tp_call *call)
{
	uint16_t port = tp_num(call, "port", 0);
	struct rte_flow_error error = {0};
	struct tp_flow *flow;
	struct tp_rule rule;
	int rc = rule_of(call, &rule);

	if (rc < 0)
		return rc;
	flow = new_flow(call, tp_text(call, "rule"));
	if (flow == NULL)
		return tp_refuse_memory(TP_FLOW, -ENOMEM);
	flow->port = port;
	flow->rule = rte_flow_create(port, &rule.attr, rule.items, rule.actions, &error);
	if (flow->rule != NULL)
		return 0;
	free_flow(flow);
	return refuse_rule(-rte_errno, port, &error);
}

static int
flow_flush(const struct tp_call *call)
{
	uint16_t port = tp_num(call, "port", 0);
	struct rte_flow_error error = {0};
	struct tp_obj *obj, *next;
	int rc = tp_port_check_ours(port);

	if (rc < 0)
		return rc;
	rc = rte_flow_flush(port, &error);
	if (rc < 0)
		return tp_refuse(rc, "port %u does not flush its rules: %s", port,
			error.message != NULL ? error.message : strerror(-rc));
	for (obj = TAILQ_FIRST(tp_objects(TP_FLOW)); obj != NULL; obj = next) {
		struct tp_flow *flow = (struct tp_flow *)obj;

		next = TAILQ_NEXT(obj, link);
		if (flow->rule != NULL && flow->port == port)
			free_flow(flow);
	}
	return 0;
}

static int
flow_isolate(const struct tp_call *call)
{
	uint16_t port = tp_num(call, "port", 0);
	struct rte_flow_error error = {0};
	int rc = tp_port_check_ours(port);

	if (rc < 0)
		return rc;
	rc = rte_flow_isolate(port, tp_num(call, "mode", 0), &error);
	return rc < 0 ? tp_refuse(rc, "port %u is not isolated: %s", port,
				error.message != NULL ? error.message : strerror(-rc))
		      : 0;
}

/* ---- of queue pairs ---- */

static const char *const flow_types[] = {"normal", "all", "multicast", "sniffer", NULL};
static const char *const protocols[] = {"tcp", "udp", NULL};

_Static_assert(VRB_FLOW_NORMAL == 0 && VRB_FLOW_ALL_DEFAULT == 1 && VRB_FLOW_MC_DEFAULT == 2 &&
		       VRB_FLOW_SNIFFER == 3,
	"the index of a word is the type");

static int
set_address(const struct tp_call *call, const char *name, uint8_t *val, uint8_t *mask,
	struct vrb_flow_rule *rule)
{
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
	const struct tp_value *v = tp_value(call, name);
	bool v4 = memcmp(v->bytes, mapped, sizeof(mapped)) == 0;
	uint8_t family = v4 ? VRB_FLOW_IPV4 : VRB_FLOW_IPV6;

	if (!v->given)
		return 0;
	if (rule->mask.outer.present & (VRB_FLOW_IPV4 | VRB_FLOW_IPV6) & ~family)
		return tp_refuse(-EINVAL, "src-ip and dst-ip are of different families");
	memcpy(val, v4 ? v->bytes + sizeof(mapped) : v->bytes, v4 ? 4 : 16);
	memset(mask, 0xff, v4 ? 4 : 16);
	rule->val.outer.present |= family;
	rule->mask.outer.present |= family;
	return 0;
}

static void
set_mac(const struct tp_call *call, const char *name, uint8_t *val, uint8_t *mask)
{
	const struct tp_value *v = tp_value(call, name);

	if (!v->given)
		return;
	memcpy(val, v->bytes, RTE_ETHER_ADDR_LEN);
	memset(mask, 0xff, RTE_ETHER_ADDR_LEN);
}

static void
set_port(const struct tp_call *call, const char *name, uint16_t *val, uint16_t *mask)
{
	if (!tp_given(call, name))
		return;
	*val = rte_cpu_to_be_16(tp_num(call, name, 0));
	*mask = UINT16_MAX;
}

static int
rule_from(const struct tp_call *call, struct vrb_flow_rule *rule)
{
	struct vrb_flow_stack *val = &rule->val.outer, *mask = &rule->mask.outer;
	int rc;

	rule->type = (enum vrb_flow_type)tp_num(call, "type", 0);
	rule->priority = tp_num(call, "priority", 0);
	if ((tp_given(call, "src-port") || tp_given(call, "dst-port")) &&
		!tp_given(call, "protocol"))
		return tp_refuse(-EINVAL, "src-port and dst-port need protocol as well");
	set_mac(call, "dst-mac", val->dst_mac, mask->dst_mac);
	set_mac(call, "src-mac", val->src_mac, mask->src_mac);
	set_port(call, "ether-type", &val->ether_type, &mask->ether_type);
	if (tp_given(call, "vlan")) {
		val->present |= VRB_FLOW_VLAN;
		mask->present |= VRB_FLOW_VLAN;
		val->vlan_tci = rte_cpu_to_be_16(tp_num(call, "vlan", 0));
		mask->vlan_tci = RTE_BE16(0xfff);
	}
	rc = set_address(call, "src-ip", val->src_ip, mask->src_ip, rule);
	if (rc == 0)
		rc = set_address(call, "dst-ip", val->dst_ip, mask->dst_ip, rule);
	if (rc < 0)
		return rc;
	if (tp_given(call, "protocol")) {
		uint8_t which = tp_num(call, "protocol", 0) == 0 ? VRB_FLOW_TCP : VRB_FLOW_UDP;

		val->present |= which;
		mask->present |= which;
	}
	set_port(call, "src-port", &val->src_port, &mask->src_port);
	set_port(call, "dst-port", &val->dst_port, &mask->dst_port);
	return 0;
}

static void
describe(const struct tp_call *call, char *buf, size_t len)
{
	size_t used = 0;

	buf[0] = '\0';
	for (const struct tp_arg *a = call->cmd->args; a->name != NULL && used < len; a++)
		if (a->type != TP_NEW_ID && a->type != TP_ID && tp_given(call, a->name))
			used += snprintf(buf + used, len - used, "%s%s %s", used > 0 ? " " : "",
				a->name, tp_text(call, a->name));
}

static int
flow_create_qp(const struct tp_call *call)
{
	struct tp_qp *qp = tp_object_arg(call, "qp", TP_QP);
	struct vrb_flow_rule rule = {0};
	struct tp_flow *flow;
	char text[512];
	int rc;

	if (qp->type != VRB_QPT_RAW_PACKET)
		return tp_refuse(-EINVAL,
			"qp %u receives messages; rules are for queue pairs of type raw and rss",
			qp->obj.id);
	rc = rule_from(call, &rule);
	if (rc < 0)
		return rc;
	describe(call, text, sizeof(text));
	flow = new_flow(call, text);
	if (flow == NULL)
		return tp_refuse_memory(TP_FLOW, -ENOMEM);
	flow->qp = qp;
	rule.count = &flow->count;
	tp_lock();
	rc = vrb_flow_create(tp_engine(), qp->qp, &rule, &flow->flow);
	tp_unlock();
	if (rc == 0) {
		rc = tp_filter();
		if (rc == 0)
			return 0;
		tp_lock();
		vrb_flow_destroy(tp_engine(), flow->flow);
		tp_unlock();
	}
	free_flow(flow);
	return rc == -ENOMEM
		       ? tp_refuse_memory(TP_FLOW, rc)
		       : tp_refuse(rc,
				 "the port cannot receive frames to other addresses than its own");
}

/* ---- of both ---- */

static int
flow_list(const struct tp_call *call)
{
	struct tp_obj *obj;

	TAILQ_FOREACH (obj, tp_objects(TP_FLOW), link) {
		struct tp_flow *flow = (struct tp_flow *)obj;

		tp_row("flow", "%u", obj->id);
		if (flow->qp != NULL) {
			tp_row("qp", "%u", flow->qp->obj.id);
			tp_row("packets", "%" PRIu64, flow->count.packets);
			tp_row("bytes", "%" PRIu64, flow->count.bytes);
		} else {
			tp_row("port", "%u", flow->port);
		}
		tp_row("rule", "%s", flow->text);
		tp_row_end();
	}
	if (TAILQ_EMPTY(tp_objects(TP_FLOW)))
		tp_print("no flow\n");
	return 0;
}

static int
flow_query(const struct tp_call *call)
{
	struct tp_flow *flow = tp_object_arg(call, "flow", TP_FLOW);
	const struct rte_flow_action count[] = {
		{.type = RTE_FLOW_ACTION_TYPE_COUNT}, {.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_query_count q = {0};
	struct rte_flow_error error = {0};
	int rc;

	if (flow->qp != NULL) {
		q.hits = flow->count.packets;
		q.bytes = flow->count.bytes;
	} else {
		rc = rte_flow_query(flow->port, flow->rule, count, &q, &error);
		if (rc < 0)
			return tp_refuse(rc, "flow %u is not counted: %s", flow->obj.id,
				error.message != NULL ? error.message : "it has no action count");
	}
	tp_row("flow", "%u", flow->obj.id);
	tp_row("packets", "%" PRIu64, q.hits);
	tp_row("bytes", "%" PRIu64, q.bytes);
	tp_row_end();
	return 0;
}

int
tp_flow_destroy(struct tp_flow *flow)
{
	struct rte_flow_error error = {0};
	int rc = 0;

	if (flow->qp != NULL) {
		tp_lock();
		vrb_flow_destroy(tp_engine(), flow->flow);
		tp_unlock();
		/* A port that keeps on receiving too much does no harm: no rule takes it. */
		tp_filter();
	} else {
		rc = rte_flow_destroy(flow->port, flow->rule, &error);
	}
	if (rc < 0)
		return tp_refuse(rc, "flow %u is not destroyed: %s", flow->obj.id,
			error.message != NULL ? error.message : strerror(-rc));
	free_flow(flow);
	return 0;
}

static int
flow_destroy(const struct tp_call *call)
{
	return tp_flow_destroy(tp_object_arg(call, "flow", TP_FLOW));
}

/* ---- the table ---- */

#define RULE_ARG \
	{ \
		.name = "rule", .type = TP_REST, \
		.help = "[ingress] [priority n] [group n] pattern <item> [<field> is <value>] / " \
			"... / " \
			"end actions <action> [<field> <value>] / ... / end; items eth vlan ipv4 " \
			"ipv6 " \
			"udp tcp sctp vxlan; actions queue rss drop mark flag count passthru" \
	}
#define NEW_FLOW_ARG \
	{ \
		.name = "flow", .type = TP_NEW_ID, .object = TP_FLOW, .help = "its number" \
	}

static const struct tp_arg create_port_args[] = {NEW_FLOW_ARG, TP_PORT_ARG, RULE_ARG, {NULL}};
static const struct tp_arg validate_args[] = {TP_PORT_ARG, RULE_ARG, {NULL}};
static const struct tp_arg create_qp_args[] = {
	NEW_FLOW_ARG,
	{.name = "qp", .type = TP_ID, .object = TP_QP, .help = "a queue pair of type raw or rss"},
	{.name = "type",
		.type = TP_CHOICE,
		.words = flow_types,
		.help = "all and multicast: what no other rule takes; sniffer: a copy; normal"},
	{.name = "priority", .type = TP_NUM, .max = UINT16_MAX, .help = "the lowest is first; 0"},
	{.name = "dst-mac", .type = TP_MAC, .help = "where to; our address or any group"},
	{.name = "src-mac", .type = TP_MAC, .help = "where from"},
	{.name = "ether-type", .type = TP_NUM, .max = UINT16_MAX, .help = "behind VLAN tags"},
	{.name = "vlan", .type = TP_NUM, .max = 4094, .help = "the VLAN"},
	{.name = "src-ip", .type = TP_GID, .help = "IPv4 or IPv6 address"},
	{.name = "dst-ip", .type = TP_GID, .help = "IPv4 or IPv6 address"},
	{.name = "protocol", .type = TP_CHOICE, .words = protocols, .help = "above IP"},
	{.name = "src-port", .type = TP_NUM, .max = UINT16_MAX, .help = "of the protocol"},
	{.name = "dst-port", .type = TP_NUM, .max = UINT16_MAX, .help = "of the protocol"},
	{NULL},
};
static const struct tp_arg port_args[] = {TP_PORT_ARG, {NULL}};
static const struct tp_arg isolate_args[] = {
	TP_PORT_ARG,
	{.name = "mode",
		.type = TP_CHOICE,
		.words = tp_on_off,
		.help = "on: what no rule takes is dropped"},
	{NULL},
};
static const struct tp_arg flow_args[] = {
	{.name = "flow", .type = TP_ID, .object = TP_FLOW, .help = "a flow rule"}, {NULL}};

static const struct tp_cmd cmds[] = {
	{"flow create <flow> port <port> <rule>", "makes a rule of rte_flow on a port",
		create_port_args, flow_create_port},
	{"flow create <flow> qp <qp>", "gives frames that match to a queue pair", create_qp_args,
		flow_create_qp},
	{"flow validate <port> <rule>", "asks whether a port would take a rule", validate_args,
		flow_validate},
	{"flow list", "lists all rules", NULL, flow_list},
	{"flow query <flow>", "tells what has matched; of a port's rule with the action count",
		flow_args, flow_query},
	{"flow destroy <flow>", "destroys a rule", flow_args, flow_destroy},
	{"flow flush <port>", "destroys all rules of a port", port_args, flow_flush},
	{"flow isolate <port> <mode>", "lets a stopped port receive by rules only, or not",
		isolate_args, flow_isolate},
};

const struct tp_family tp_flow_family =
	TP_FAMILY("flow", "flow rules of ports and of queue pairs", cmds);
