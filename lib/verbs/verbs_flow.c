/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flow rules (ibv_create_flow(3)).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

#include "verbs_raw.h"

_Static_assert(VRB_FLOW_NORMAL == (int)IBV_FLOW_ATTR_NORMAL &&
		       VRB_FLOW_ALL_DEFAULT == (int)IBV_FLOW_ATTR_ALL_DEFAULT &&
		       VRB_FLOW_MC_DEFAULT == (int)IBV_FLOW_ATTR_MC_DEFAULT &&
		       VRB_FLOW_SNIFFER == (int)IBV_FLOW_ATTR_SNIFFER,
	"types are passed on");

int
vrb_filter_update(struct vrb_ctx *ctx)
{
	bool promiscuous, allmulticast;

	vrb_flow_filter(ctx->engine, &promiscuous, &allmulticast);
	return vrb_nic_filter(ctx->nic, promiscuous, allmulticast);
}

/* Under the baton. */
static int
create_in_engine(struct vrb_ctx *ctx, struct vrb_vqp *qp, const struct vrb_flow_rule *rule,
	struct vrb_vflow *flow)
{
	int rc = vrb_flow_create(ctx->engine, qp->qp, rule, &flow->flow);

	if (rc)
		return rc;
	rc = vrb_filter_update(ctx);
	if (rc) {
		vrb_flow_destroy(ctx->engine, flow->flow);
		vrb_filter_update(ctx);
		return rc;
	}
	if (flow->counters)
		flow->counters->flows++;
	return 0;
}

struct ibv_flow *
vrb_verbs_create_flow(struct ibv_qp *ibv, struct ibv_flow_attr *attr)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct ibv_counters *counters = NULL;
	struct vrb_flow_rule rule;
	struct vrb_vflow *flow;
	int rc;

	if (ibv->qp_type != IBV_QPT_RAW_PACKET)
		return vrb_fail_null(ibv->qp_type == IBV_QPT_UD ? EOPNOTSUPP : EINVAL,
			"QP %#x is of type %d; rules send frames to those of type "
			"IBV_QPT_RAW_PACKET",
			ibv->qp_num, (int)ibv->qp_type);
	errno = vrb_flow_from_attr(attr, &rule, &counters);
	if (errno)
		return NULL;
	if (counters && counters->context != ibv->context)
		return vrb_fail_null(EINVAL, "the counters belong to another context");
	flow = calloc(1, sizeof(*flow));
	if (!flow)
		return vrb_fail_null(ENOMEM, "there is no memory");
	if (counters) {
		flow->counters = vrb_to_counters(counters);
		rule.count = &flow->counters->count;
	}
	rc = vrb_enter(ctx);
	if (!rc) {
		rc = create_in_engine(ctx, vrb_to_qp(ibv), &rule, flow);
		vrb_leave(ctx);
	}
	if (rc) {
		free(flow);
		return vrb_fail_null(-rc,
			rc == -ENOMEM
				? "there can be %d rules, as far as there is memory"
				: "the port cannot receive frames to other addresses than its own",
			VRB_MAX_FLOW);
	}
	flow->ibv.context = ibv->context;
	flow->ibv.handle = vrb_obj_add(ctx, VRB_KIND_FLOW, &flow->obj);
	return &flow->ibv;
}

/* Under the baton. */
static void
destroy(struct vrb_ctx *ctx, struct vrb_vflow *flow)
{
	vrb_flow_destroy(ctx->engine, flow->flow);
	if (flow->counters)
		flow->counters->flows--;
	/* A port that keeps on receiving too much does no harm: no rule is there to take it. */
	vrb_filter_update(ctx);
}

int
vrb_verbs_destroy_flow(struct ibv_flow *ibv)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_vflow *flow = vrb_to_flow(ibv);

	if (vrb_enter(ctx))
		return vrb_fail(
			ENODEV, "the device belongs to the process that this one was forked from");
	destroy(ctx, flow);
	vrb_leave(ctx);
	vrb_obj_remove(ctx, VRB_KIND_FLOW, &flow->obj);
	free(flow);
	return 0;
}

/*
 * ibv_attach_mcast() of a queue pair of raw frames, as perftest uses it: the MAC address of the
 * group stands in the last six bytes of the GID. It is a rule like any other.
 */
static struct vrb_vflow *
find_group(struct ibv_qp *ibv, const uint8_t *mac)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_vflow *flow = NULL;
	struct vrb_obj *obj;

	pthread_mutex_lock(&ctx->v.context.mutex);
	TAILQ_FOREACH (obj, &ctx->objs[VRB_KIND_FLOW], link) {
		flow = vrb_container(obj, struct vrb_vflow, obj);
		if (flow->group && flow->flow->qp == vrb_to_qp(ibv)->qp &&
			!memcmp(flow->flow->rule.val.outer.dst_mac, mac, RTE_ETHER_ADDR_LEN))
			break;
	}
	pthread_mutex_unlock(&ctx->v.context.mutex);
	return obj ? flow : NULL;
}

int
vrb_raw_attach(struct ibv_qp *ibv, const union ibv_gid *gid)
{
	const uint8_t *mac = gid->raw + sizeof(gid->raw) - RTE_ETHER_ADDR_LEN;
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = {.type = IBV_FLOW_ATTR_NORMAL,
			.size = sizeof(rule),
			.num_of_specs = 1,
			.port = 1},
		.eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth)},
	};
	struct ibv_flow *flow;

	if (!(mac[0] & 1))
		return vrb_explain_call(EINVAL, "ibv_attach_mcast",
			"the last six bytes of the GID are no MAC address of a group");
	if (find_group(ibv, mac))
		return 0;
	memcpy(rule.eth.val.dst_mac, mac, RTE_ETHER_ADDR_LEN);
	memset(rule.eth.mask.dst_mac, 0xff, RTE_ETHER_ADDR_LEN);
	flow = vrb_verbs_create_flow(ibv, &rule.attr);
	if (!flow)
		return errno;
	vrb_to_flow(flow)->group = true;
	return 0;
}

int
vrb_raw_detach(struct ibv_qp *ibv, const union ibv_gid *gid)
{
	struct vrb_vflow *flow = find_group(ibv, gid->raw + sizeof(gid->raw) - RTE_ETHER_ADDR_LEN);

	return flow ? vrb_verbs_destroy_flow(&flow->ibv)
		    : vrb_explain_call(EINVAL, "ibv_detach_mcast",
			      "QP %#x is not attached to the group", ibv->qp_num);
}

void
vrb_flow_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx)
{
	struct vrb_vflow *flow = vrb_container(obj, struct vrb_vflow, obj);

	destroy(ctx, flow);
	free(flow);
}
