/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_modify_qp() and ibv_query_qp(). The rules of states and masks are the engine's (IBTA 10.3.1);
 * what concerns the port and its tables is checked here, and the peer's MAC address found, before
 * the engine is asked: a failing call changes nothing.
 */
#include <errno.h>
#include <string.h>

#include "guard.h"
#include "verbs_private.h"

/* What the functions below check is a failure of the call that they are part of. */
#define refuse(err, ...) vrb_explain_call(err, "ibv_modify_qp", __VA_ARGS__)

/* Attributes that no state of a queue pair of this device takes. */
#define NOT_SUPPORTED (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE | IBV_QP_CAP | IBV_QP_RATE_LIMIT)
#define KNOWN ((uint32_t)((IBV_QP_DEST_QPN << 1) - 1))

static int
check_range(const char *name, uint32_t value, uint32_t min, uint32_t max)
{
	return value >= min && value <= max ? 0
					    : refuse(EINVAL, "%s is %u; it must be from %u to %u",
						      name, value, min, max);
}

static int
check_mtu(struct vrb_ctx *ctx, enum ibv_mtu mtu)
{
	uint32_t max = vrb_engine_max_mtu(ctx->engine);
	int rc = check_range("path_mtu", mtu, IBV_MTU_256, IBV_MTU_4096);

	if (!rc && 128u << mtu > max)
		return refuse(EINVAL,
			"path_mtu is %u bytes; the port carries %u (active_mtu of ibv_query_port)",
			128u << mtu, max);
	return rc;
}

/* @return 0 or an errno */
static int
check_attr(struct vrb_ctx *ctx, const struct ibv_qp_attr *a, uint32_t mask)
{
	int rc = 0;

	if (mask & NOT_SUPPORTED)
		return refuse(EOPNOTSUPP,
			"attr_mask is %#x; alternate paths, new capabilities and rate limits are "
			"not "
			"supported",
			mask);
	if (mask & ~KNOWN)
		return refuse(EINVAL, "attr_mask is %#x, with bits that are not defined", mask);
	if (mask & IBV_QP_PORT)
		rc = check_range("port_num", a->port_num, 1, 1);
	if (!rc && mask & IBV_QP_PKEY_INDEX)
		rc = check_range("pkey_index", a->pkey_index, 0, VRB_PKEYS - 1);
	if (!rc && mask & IBV_QP_PATH_MTU)
		rc = check_mtu(ctx, a->path_mtu);
	if (!rc && mask & IBV_QP_MAX_QP_RD_ATOMIC)
		rc = check_range("max_rd_atomic", a->max_rd_atomic, 0, VRB_MAX_RD_ATOM);
	if (!rc && mask & IBV_QP_MAX_DEST_RD_ATOMIC)
		rc = check_range("max_dest_rd_atomic", a->max_dest_rd_atomic, 0, VRB_MAX_RD_ATOM);
	if (!rc && mask & IBV_QP_MIN_RNR_TIMER)
		rc = check_range("min_rnr_timer", a->min_rnr_timer, 0, 31);
	if (!rc && mask & IBV_QP_TIMEOUT)
		rc = check_range("timeout", a->timeout, 0, 31);
	if (!rc && mask & IBV_QP_RETRY_CNT)
		rc = check_range("retry_cnt", a->retry_cnt, 0, 7);
	if (!rc && mask & IBV_QP_RNR_RETRY)
		rc = check_range("rnr_retry", a->rnr_retry, 0, 7);
	if (!rc && mask & IBV_QP_AV)
		rc = vrb_check_av(&a->ah_attr, false, "ibv_modify_qp");
	return rc;
}

static void
to_engine(const struct ibv_qp_attr *a, struct vrb_qp_attr *e)
{
	memset(e, 0, sizeof(*e));
	e->state = (enum vrb_qp_state)a->qp_state;
	e->cur_state = (enum vrb_qp_state)a->cur_qp_state;
	e->path_mtu = (enum vrb_mtu)a->path_mtu;
	e->qkey = a->qkey;
	/* PSNs and QPNs have 24 bits; what programs write above them is not looked at. */
	e->rq_psn = a->rq_psn & 0xffffff;
	e->sq_psn = a->sq_psn & 0xffffff;
	e->dest_qpn = a->dest_qp_num & 0xffffff;
	e->access = a->qp_access_flags & ~(unsigned int)IBV_ACCESS_OPTIONAL_RANGE;
	vrb_av_to_engine(&a->ah_attr, &e->av);
	e->pkey_index = a->pkey_index;
	e->en_sqd_async_notify = a->en_sqd_async_notify;
	e->max_rd_atomic = a->max_rd_atomic;
	e->max_dest_rd_atomic = a->max_dest_rd_atomic;
	e->min_rnr_timer = a->min_rnr_timer;
	e->port_num = a->port_num;
	e->timeout = a->timeout;
	e->retry_cnt = a->retry_cnt;
	e->rnr_retry = a->rnr_retry;
}

/* Programs give both ends of XRC the attributes of RC; the kernel takes out those that an end has
 * no use for. */
static uint32_t
mask_of(enum ibv_qp_type type, uint32_t mask)
{
	switch (type) {
	case IBV_QPT_XRC_SEND:
		return mask & ~(uint32_t)(IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	case IBV_QPT_XRC_RECV:
		return mask &
		       ~(uint32_t)(IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY);
	default:
		return mask;
	}
}

const char *
vrb_state_name(int state)
{
	static const char *const names[] = {"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};

	return state >= 0 && (size_t)state < RTE_DIM(names) ? names[state] : "UNKNOWN";
}

int
ibv_modify_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	uint32_t mask = mask_of(ibv->qp_type, (uint32_t)attr_mask);
	struct vrb_qp_attr e;
	int rc, from;

	if (unlikely(vrb_forked))
		return vrb_fail(
			ENODEV, "the device belongs to the process that this one was forked from");
	rc = check_attr(ctx, attr, mask);
	if (rc)
		return rc;
	to_engine(attr, &e);
	vrb_guard_install(); /* see ibv_reg_mr() */
	rc = mask & IBV_QP_AV ? vrb_av_resolve(ctx, &e.av, "ibv_modify_qp") : 0;
	if (rc)
		return rc;
	vrb_nic_lock(ctx->nic);
	from = vrb_qp_state(vrb_to_qp(ibv)->qp);
	if ((mask & VRB_QP_STATE) && (e.state == VRB_QPS_RESET || e.state == VRB_QPS_ERR))
		vrb_nic_settle(ctx->nic, vrb_to_qp(ibv)->qp);
	rc = vrb_qp_modify(vrb_to_qp(ibv)->qp, &e, mask, vrb_nic_now(ctx->nic));
	if (!rc && mask & IBV_QP_STATE)
		ibv->state = attr->qp_state;
	vrb_nic_unlock(ctx->nic);
	if (rc)
		return vrb_fail(-rc,
			"attr_mask %#x does not take QP %#x from state %s to %s; see the table in "
			"ibv_modify_qp(3)",
			mask, ibv->qp_num, vrb_state_name(from),
			vrb_state_name(mask & IBV_QP_STATE ? (int)attr->qp_state : from));
	return 0;
}

static void
from_engine(const struct vrb_qp_attr *e, const struct vrb_vqp *qp, struct ibv_qp_attr *a)
{
	struct ibv_global_route *grh = &a->ah_attr.grh;

	memset(a, 0, sizeof(*a));
	a->qp_state = (enum ibv_qp_state)e->state;
	a->cur_qp_state = (enum ibv_qp_state)e->state;
	a->path_mtu = (enum ibv_mtu)e->path_mtu;
	a->path_mig_state = IBV_MIG_MIGRATED;
	a->qkey = e->qkey;
	a->rq_psn = e->rq_psn;
	a->sq_psn = e->sq_psn;
	a->dest_qp_num = e->dest_qpn;
	a->qp_access_flags = e->access;
	a->cap = qp->cap;
	memcpy(&grh->dgid, &e->av.dgid, sizeof(grh->dgid));
	grh->sgid_index = e->av.sgid_index;
	grh->hop_limit = e->av.hop_limit;
	grh->traffic_class = e->av.tclass;
	grh->flow_label = e->av.flow_label;
	a->ah_attr.sl = e->av.sl;
	a->ah_attr.src_path_bits = e->av.src_path_bits;
	a->ah_attr.static_rate = e->av.static_rate;
	a->ah_attr.is_global = 1;
	a->ah_attr.port_num = e->port_num;
	a->pkey_index = e->pkey_index;
	a->en_sqd_async_notify = e->en_sqd_async_notify;
	a->sq_draining = e->sq_draining;
	a->max_rd_atomic = e->max_rd_atomic;
	a->max_dest_rd_atomic = e->max_dest_rd_atomic;
	a->min_rnr_timer = e->min_rnr_timer;
	a->port_num = e->port_num;
	a->timeout = e->timeout;
	a->retry_cnt = e->retry_cnt;
	a->rnr_retry = e->rnr_retry;
}

int
ibv_query_qp(struct ibv_qp *ibv, struct ibv_qp_attr *attr, int attr_mask,
	struct ibv_qp_init_attr *init_attr)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_vqp *qp = vrb_to_qp(ibv);
	struct vrb_qp_attr e;

	if (vrb_enter(ctx))
		return vrb_fail(
			ENODEV, "the device belongs to the process that this one was forked from");
	vrb_qp_query(qp->qp, &e);
	vrb_leave(ctx);
	from_engine(&e, qp, attr);
	if (attr_mask & IBV_QP_STATE)
		ibv->state = attr->qp_state;
	memset(init_attr, 0, sizeof(*init_attr));
	init_attr->qp_context = ibv->qp_context;
	init_attr->send_cq = ibv->send_cq;
	init_attr->recv_cq = ibv->recv_cq;
	init_attr->srq = ibv->srq;
	init_attr->cap = qp->cap;
	init_attr->qp_type = ibv->qp_type;
	init_attr->sq_sig_all = qp->sig_all;
	return 0;
}
