/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs: making and destroying them. Their states and attributes are in verbs_qp_modify.c,
 * their work in verbs_post.c and verbs_wr.c.
 */
#include <errno.h>
#include <stdlib.h>

#include "raw.h"
#include "verbs_private.h"

/* What the functions below check is a failure of the call that they are part of. */
#define refuse(err, ...) vrb_explain_call(err, "ibv_create_qp", __VA_ARGS__)
#define refuse_null(err, ...) (errno = refuse(err, __VA_ARGS__), NULL)

/* The operations that ibv_wr_*() can post, by the type of the queue pair. */
#define UD_OPS ((uint64_t)IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define UC_OPS \
	(UD_OPS | IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
		IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW)
#define XRC_OPS \
	((uint64_t)IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | \
		IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | \
		IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | \
		IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV)
#define RC_OPS (XRC_OPS | IBV_QP_EX_WITH_ATOMIC_WRITE)

static uint64_t
send_ops(enum ibv_qp_type type)
{
	switch (type) {
	case IBV_QPT_UD:
		return UD_OPS;
	case IBV_QPT_UC:
		return UC_OPS;
	case IBV_QPT_RAW_PACKET:
		return IBV_QP_EX_WITH_SEND;
	case IBV_QPT_XRC_RECV:
		return 0;
	case IBV_QPT_XRC_SEND:
		return XRC_OPS;
	default:
		return RC_OPS;
	}
}

static uint32_t
create_flags(enum ibv_qp_type type)
{
	return type == IBV_QPT_UD ? IBV_QP_CREATE_BLOCK_SELF_MCAST_LB : 0;
}

static bool
has_recv(const struct ibv_qp_init_attr_ex *attr)
{
	return !attr->srq && attr->qp_type != IBV_QPT_XRC_SEND && attr->qp_type != IBV_QPT_XRC_RECV;
}

static int
check_caps(const struct ibv_qp_cap *cap, bool recv)
{
	if (cap->max_send_wr > VRB_MAX_QP_WR)
		return refuse(EINVAL, "max_send_wr is %u; the device has %d", cap->max_send_wr,
			VRB_MAX_QP_WR);
	if (cap->max_send_sge > VRB_MAX_SGE)
		return refuse(EINVAL, "max_send_sge is %u; the device has %d", cap->max_send_sge,
			VRB_MAX_SGE);
	if (cap->max_inline_data > VRB_MAX_INLINE)
		return refuse(EINVAL, "max_inline_data is %u; the device has %d",
			cap->max_inline_data, VRB_MAX_INLINE);
	if (recv && cap->max_recv_wr > VRB_MAX_QP_WR)
		return refuse(EINVAL, "max_recv_wr is %u; the device has %d", cap->max_recv_wr,
			VRB_MAX_QP_WR);
	if (recv && cap->max_recv_sge > VRB_MAX_SGE)
		return refuse(EINVAL, "max_recv_sge is %u; the device has %d", cap->max_recv_sge,
			VRB_MAX_SGE);
	return 0;
}

static int
check_type(const struct ibv_qp_init_attr_ex *attr)
{
	switch (attr->qp_type) {
	case IBV_QPT_RC:
	case IBV_QPT_UC:
	case IBV_QPT_UD:
	case IBV_QPT_RAW_PACKET:
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		return 0;
	default:
		return refuse(EOPNOTSUPP,
			"qp_type is %d; the device has RC, UC, UD, XRC and raw packets",
			(int)attr->qp_type);
	}
}

/* A target of XRC stands in a domain, and receives as the SRQs of that domain say. */
static int
check_target(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd ||
		attr->xrcd->context != context)
		return refuse(EINVAL, "xrcd is missing, or belongs to another context");
	return 0;
}

/* What the queue pair is made of. */
static int
check_parts(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	bool initiator = attr->qp_type == IBV_QPT_XRC_SEND;

	if (attr->qp_type == IBV_QPT_XRC_RECV)
		return check_target(context, attr);
	if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd || attr->pd->context != context)
		return refuse(EINVAL, "pd is missing, or belongs to another context");
	/* The work queues of a table have what the queue pair has not. */
	if (vrb_is_rss(attr))
		return 0;
	if (!attr->send_cq || attr->send_cq->context != context)
		return refuse(EINVAL, "send_cq is missing, or belongs to another context");
	if (!initiator && (!attr->recv_cq || attr->recv_cq->context != context))
		return refuse(EINVAL, "recv_cq is missing, or belongs to another context");
	if (!attr->srq)
		return 0;
	if (initiator)
		return refuse(EINVAL, "an initiator of XRC receives nothing; srq must be NULL");
	if (attr->srq->context != context)
		return refuse(EINVAL, "the shared receive queue belongs to another context");
	if (vrb_to_srq(attr->srq)->xrcd)
		return refuse(EINVAL,
			"the shared receive queue is of XRC, and receives for targets only");
	return 0;
}

/* @return 0 or an errno */
static int
check_init_attr(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	uint64_t ops = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS ? attr->send_ops_flags : 0;
	uint32_t flags = attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attr->create_flags : 0;
	bool raw = attr->qp_type == IBV_QPT_RAW_PACKET;
	uint32_t known = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_XRCD |
			 IBV_QP_INIT_ATTR_CREATE_FLAGS | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	int rc = check_type(attr);

	if (rc)
		return rc;
	if (raw)
		known |= IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH;
	if (attr->comp_mask & ~known)
		return refuse(EOPNOTSUPP,
			"comp_mask is %#x, with attributes that the device does not have",
			attr->comp_mask);
	if (!raw && flags & ~create_flags(attr->qp_type))
		return refuse(EOPNOTSUPP, "create_flags is %#x; queue pairs of type %d have %#x",
			flags, (int)attr->qp_type, create_flags(attr->qp_type));
	if (ops & ~send_ops(attr->qp_type))
		return refuse(EOPNOTSUPP,
			"send_ops_flags is %#lx; queue pairs of type %d have %#lx",
			(unsigned long)ops, (int)attr->qp_type,
			(unsigned long)send_ops(attr->qp_type));
	rc = check_parts(context, attr);
	if (!rc && raw)
		rc = vrb_raw_check(context, attr);
	if (!rc && attr->qp_type != IBV_QPT_XRC_RECV)
		rc = check_caps(&attr->cap, has_recv(attr));
	return rc;
}

static void
init_usual(struct vrb_qp_init *init, const struct ibv_qp_init_attr_ex *attr)
{
	init->pd = vrb_to_pd(attr->pd)->pd;
	init->send_cq = vrb_to_cq(attr->send_cq)->cq;
	init->max_send_wr = attr->cap.max_send_wr;
	init->max_send_sge = attr->cap.max_send_sge;
	init->max_inline = attr->cap.max_inline_data;
	init->block_self_mcast = attr->qp_type == IBV_QPT_UD &&
				 attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS &&
				 attr->create_flags & IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	if (attr->qp_type != IBV_QPT_XRC_SEND)
		init->recv_cq = vrb_to_cq(attr->recv_cq)->cq;
	if (attr->srq)
		init->srq = vrb_to_srq(attr->srq)->srq;
	if (!has_recv(attr))
		return;
	init->max_recv_wr = attr->cap.max_recv_wr;
	init->max_recv_sge = attr->cap.max_recv_sge;
}

static int
create_in_engine(struct vrb_ctx *ctx, struct vrb_vqp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	struct vrb_qp_init init = {
		.type = (enum vrb_qp_type)attr->qp_type,
		.sig_all = attr->sq_sig_all != 0,
		.user = qp,
	};
	struct vrb_rss rss;
	int rc;

	if (qp->xrcd)
		init.xrcd = vrb_xrcd_of(qp->xrcd);
	else if (!vrb_is_rss(attr))
		init_usual(&init, attr);
	if (attr->qp_type == IBV_QPT_RAW_PACKET)
		vrb_raw_init(&init, &rss, attr);
	rc = vrb_enter(ctx);
	if (rc)
		return rc;
	rc = vrb_qp_create(ctx->engine, &init, &qp->qp);
	if (!rc && qp->xrcd)
		qp->xrcd->refs++;
	vrb_leave(ctx);
	/* Targets of XRC and queue pairs with a table have no queues of their own to tell of. */
	if (rc || qp->xrcd || vrb_is_rss(attr))
		return rc;
	qp->cap.max_send_wr = init.max_send_wr;
	qp->cap.max_recv_wr = init.max_recv_wr;
	qp->cap.max_send_sge = init.max_send_sge;
	qp->cap.max_recv_sge = init.max_recv_sge;
	qp->cap.max_inline_data = init.max_inline;
	return 0;
}

void
vrb_qp_init(struct vrb_ctx *ctx, struct vrb_vqp *qp, const struct ibv_qp_init_attr_ex *attr)
{
	static const int types[VRB_QP_EVENTS] = {
		[VRB_QP_EV_FATAL] = IBV_EVENT_QP_FATAL,
		[VRB_QP_EV_REQ_ERR] = IBV_EVENT_QP_REQ_ERR,
		[VRB_QP_EV_ACCESS_ERR] = IBV_EVENT_QP_ACCESS_ERR,
		[VRB_QP_EV_COMM_EST] = IBV_EVENT_COMM_EST,
		[VRB_QP_EV_SQ_DRAINED] = IBV_EVENT_SQ_DRAINED,
		[VRB_QP_EV_LAST_WQE] = IBV_EVENT_QP_LAST_WQE_REACHED,
	};
	struct ibv_qp *ibv = &qp->ibv.qp_base;
	int i;

	for (i = 0; i < VRB_QP_EVENTS; i++) {
		qp->events[i].type = types[i];
		qp->events[i].obj = qp;
	}
	qp->nic = ctx->nic;
	qp->next_handle = qp;
	qp->sig_all = attr->sq_sig_all;
	ibv->context = &ctx->v.context;
	ibv->qp_context = attr->qp_context;
	ibv->qp_type = attr->qp_type;
	if (attr->qp_type == IBV_QPT_XRC_RECV) {
		qp->xrcd = vrb_to_xrcd(attr->xrcd);
	} else {
		ibv->pd = attr->pd;
		ibv->send_cq = attr->send_cq;
		ibv->recv_cq = attr->qp_type == IBV_QPT_XRC_SEND ? NULL : attr->recv_cq;
		ibv->srq = attr->srq;
	}
	ibv->state = IBV_QPS_RESET;
	pthread_mutex_init(&ibv->mutex, NULL);
	pthread_cond_init(&ibv->cond, NULL);
}

void
vrb_qp_free(struct vrb_vqp *qp)
{
	pthread_mutex_destroy(&qp->ibv.qp_base.mutex);
	pthread_cond_destroy(&qp->ibv.qp_base.cond);
	free(qp);
}

struct ibv_qp *
vrb_verbs_create_qp_ex(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr)
{
	struct vrb_ctx *ctx = vrb_to_ctx(context);
	struct vrb_vqp *qp;
	int rc;

	errno = check_init_attr(context, attr);
	if (errno)
		return NULL;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return refuse_null(ENOMEM, "there is no memory");
	vrb_qp_init(ctx, qp, attr);
	rc = create_in_engine(ctx, qp, attr);
	if (rc) {
		vrb_qp_free(qp);
		return refuse_null(-rc,
			"the device cannot make the queue pair; it has %d, as far as there is "
			"memory",
			VRB_MAX_QP);
	}
	attr->cap = qp->cap;
	qp->sq = vrb_qp_sq(qp->qp);
	qp->rq = vrb_is_rss(attr) ? NULL : vrb_qp_rq(qp->qp);
	qp->ibv.qp_base.state = (enum ibv_qp_state)vrb_qp_state(qp->qp);
	qp->ibv.qp_base.qp_num = vrb_qp_num(qp->qp);
	qp->extended = attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	vrb_qp_ex_ops(qp, qp->extended ? attr->send_ops_flags : 0);
	qp->ibv.qp_base.handle = vrb_obj_add(ctx, VRB_KIND_QP, &qp->obj);
	return &qp->ibv.qp_base;
}

struct ibv_qp *
ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp = vrb_verbs_create_qp_ex(pd->context, &ex);

	if (qp)
		attr->cap = ex.cap;
	return qp;
}

struct ibv_qp_ex *
ibv_qp_to_qp_ex(struct ibv_qp *qp)
{
	return vrb_to_qp(qp)->extended ? &vrb_to_qp(qp)->ibv : NULL;
}

/* The queue pair goes with its last handle. Under the baton. */
static void
drop_handle(struct vrb_vqp *qp)
{
	struct vrb_vqp *prev = qp;

	if (qp->xrcd)
		qp->xrcd->refs--;
	while (prev->next_handle != qp)
		prev = prev->next_handle;
	if (prev == qp) {
		vrb_nic_settle(qp->nic, qp->qp);
		vrb_qp_destroy(qp->qp);
		return;
	}
	prev->next_handle = qp->next_handle;
	vrb_qp_set_user(qp->qp, prev);
}

int
ibv_destroy_qp(struct ibv_qp *ibv)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_vqp *qp = vrb_to_qp(ibv);
	uint32_t reported = 0;
	bool busy;
	int i;

	if (unlikely(vrb_forked))
		return vrb_fail(
			ENODEV, "the device belongs to the process that this one was forked from");
	/* What is still to be acknowledged goes out first, or the peer would think that it was
	 * lost. */
	vrb_nic_progress(ctx->nic);
	vrb_nic_lock(ctx->nic);
	busy = vrb_qp_flows(qp->qp) > 0 || vrb_mcast_groups(qp->qp) > 0;
	for (i = 0; !busy && i < VRB_QP_EVENTS; i++)
		reported += vrb_evq_cancel(&ctx->async, &qp->events[i]);
	vrb_nic_unlock(ctx->nic);
	if (busy)
		return vrb_fail(EBUSY,
			"flow rules send frames to QP %#x, or it is attached to multicast groups",
			ibv->qp_num);
	/* Who has an event and has not acknowledged it may still query and modify it. */
	vrb_evq_wait_acks(&ibv->mutex, &ibv->cond, &ibv->events_completed, reported);
	vrb_nic_lock(ctx->nic);
	drop_handle(qp);
	vrb_nic_unlock(ctx->nic);
	vrb_obj_remove(ctx, VRB_KIND_QP, &qp->obj);
	vrb_qp_free(qp);
	return 0;
}

void
vrb_qp_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx)
{
	struct vrb_vqp *qp = vrb_container(obj, struct vrb_vqp, obj);

	drop_handle(qp);
	vrb_qp_free(qp);
}

int
ibv_query_qp_data_in_order(struct ibv_qp *qp, enum ibv_wr_opcode op, uint32_t flags)
{
	/* Packets are taken in the order of their PSNs and copied from the first byte to the last.
	 */
	return !flags &&
	       (op == IBV_WR_RDMA_WRITE || op == IBV_WR_RDMA_WRITE_WITH_IMM || op == IBV_WR_SEND ||
		       op == IBV_WR_SEND_WITH_IMM || op == IBV_WR_SEND_WITH_INV);
}

/* There are no enhanced connection options: none is offered, and only none can be set. */
int
ibv_query_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	ece->vendor_id = 0;
	ece->options = 0;
	ece->comp_mask = 0;
	return 0;
}

int
ibv_set_ece(struct ibv_qp *qp, struct ibv_ece *ece)
{
	if (ece->comp_mask)
		return vrb_fail(
			EINVAL, "comp_mask is %#x, but no bit of it is defined", ece->comp_mask);
	if (ece->vendor_id || ece->options)
		return vrb_fail(EOPNOTSUPP, "the device has no options to enhance a connection");
	return 0;
}
