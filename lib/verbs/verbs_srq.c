/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs_private.h"

/* What the functions below check is a failure of the call that they are part of. */
#define refuse(err, ...) vrb_explain_call(err, "ibv_create_srq", __VA_ARGS__)
#define refuse_null(err, ...) (errno = refuse(err, __VA_ARGS__), NULL)

/* @return 0 or an errno */
static int
check_srq_attr(const struct ibv_srq_attr *attr)
{
	if (attr->max_wr < 1 || attr->max_wr > VRB_MAX_SRQ_WR)
		return refuse(EINVAL, "max_wr is %u; it must be from 1 to %d", attr->max_wr,
			VRB_MAX_SRQ_WR);
	if (attr->max_sge > VRB_MAX_SRQ_SGE)
		return refuse(
			EINVAL, "max_sge is %u; the device has %d", attr->max_sge, VRB_MAX_SRQ_SGE);
	return 0;
}

static void
init_srq(struct vrb_vsrq *srq, struct ibv_pd *pd, void *srq_context)
{
	int i;

	srq->events[VRB_SRQ_EV_ERR].type = IBV_EVENT_SRQ_ERR;
	srq->events[VRB_SRQ_EV_LIMIT].type = IBV_EVENT_SRQ_LIMIT_REACHED;
	for (i = 0; i < VRB_SRQ_EVENTS; i++)
		srq->events[i].obj = srq;
	srq->ibv.context = pd->context;
	srq->ibv.srq_context = srq_context;
	srq->ibv.pd = pd;
	pthread_mutex_init(&srq->ibv.mutex, NULL);
	pthread_cond_init(&srq->ibv.cond, NULL);
}

static void
free_srq(struct vrb_vsrq *srq)
{
	pthread_mutex_destroy(&srq->ibv.mutex);
	pthread_cond_destroy(&srq->ibv.cond);
	free(srq);
}

static int
create_in_engine(
	struct vrb_ctx *ctx, struct vrb_vsrq *srq, struct ibv_srq_attr *attr, struct ibv_cq *cq)
{
	struct vrb_pd *pd = vrb_to_pd(srq->ibv.pd)->pd;
	int rc = vrb_enter(ctx);

	if (rc)
		return rc;
	if (srq->xrcd) {
		rc = vrb_srq_create_xrc(ctx->engine, pd, vrb_xrcd_of(srq->xrcd), vrb_to_cq(cq)->cq,
			&attr->max_wr, &attr->max_sge, srq, &srq->srq);
		srq->xrcd->refs += !rc;
	} else {
		rc = vrb_srq_create(ctx->engine, pd, &attr->max_wr, &attr->max_sge, srq, &srq->srq);
	}
	vrb_leave(ctx);
	return rc;
}

/* @param xrcd and @p cq: of XRC, else NULL */
static struct ibv_srq *
create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init, struct vrb_vxrcd *xrcd,
	struct ibv_cq *cq)
{
	struct vrb_ctx *ctx = vrb_to_ctx(pd->context);
	struct ibv_srq_attr attr = init->attr;
	struct vrb_vsrq *srq;
	int rc;

	/* attr.srq_limit is not looked at here; see ibv_create_srq(3). */
	errno = check_srq_attr(&attr);
	if (errno)
		return NULL;
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return refuse_null(ENOMEM, "there is no memory");
	init_srq(srq, pd, init->srq_context);
	srq->xrcd = xrcd;
	rc = create_in_engine(ctx, srq, &attr, cq);
	if (rc) {
		free_srq(srq);
		return refuse_null(-rc,
			"there can be %d shared receive queues, as far as there is memory",
			VRB_MAX_SRQ);
	}
	init->attr.max_wr = attr.max_wr;
	init->attr.max_sge = attr.max_sge;
	srq->ibv.handle = vrb_obj_add(ctx, VRB_KIND_SRQ, &srq->obj);
	return &srq->ibv;
}

struct ibv_srq *
ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *init)
{
	return create_srq(pd, init, NULL, NULL);
}

static struct ibv_srq *
create_xrc(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd ||
		attr->xrcd->context != context)
		return refuse_null(EINVAL, "xrcd is missing, or belongs to another context");
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_CQ) || !attr->cq || attr->cq->context != context)
		return refuse_null(EINVAL, "cq is missing, or belongs to another context");
	return create_srq(
		attr->pd, (struct ibv_srq_init_attr *)attr, vrb_to_xrcd(attr->xrcd), attr->cq);
}

/* What the inline wrapper does not give to ibv_create_srq(): a missing PD, or a type that is not
 * basic. */
struct ibv_srq *
vrb_verbs_create_srq_ex(struct ibv_context *context, struct ibv_srq_init_attr_ex *attr)
{
	enum ibv_srq_type type =
		attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE ? attr->srq_type : IBV_SRQT_BASIC;

	if (type != IBV_SRQT_BASIC && type != IBV_SRQT_XRC)
		return refuse_null(EOPNOTSUPP,
			"srq_type is %d; the device has IBV_SRQT_BASIC and IBV_SRQT_XRC",
			(int)type);
	if (attr->comp_mask & ~(uint32_t)(IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
					  IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ))
		return refuse_null(EOPNOTSUPP,
			"comp_mask is %#x, with attributes that the device does not have",
			attr->comp_mask);
	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd || attr->pd->context != context)
		return refuse_null(EINVAL, "pd is missing, or belongs to another context");
	if (type == IBV_SRQT_XRC)
		return create_xrc(context, attr);
	return create_srq(attr->pd, (struct ibv_srq_init_attr *)attr, NULL, NULL);
}

int
ibv_modify_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr, int mask)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	uint32_t max_wr = mask & IBV_SRQ_MAX_WR ? attr->max_wr : 0;
	int rc;

	if (mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT))
		return vrb_fail(
			EINVAL, "srq_attr_mask is %#x, with bits that are not defined", mask);
	if (mask & IBV_SRQ_MAX_WR && (max_wr < 1 || max_wr > VRB_MAX_SRQ_WR))
		return vrb_fail(
			EINVAL, "max_wr is %u; it must be from 1 to %d", max_wr, VRB_MAX_SRQ_WR);
	if (mask & IBV_SRQ_LIMIT && attr->srq_limit > VRB_MAX_SRQ_WR)
		return vrb_fail(EINVAL, "srq_limit is %u; the device has %d", attr->srq_limit,
			VRB_MAX_SRQ_WR);
	rc = vrb_enter(ctx);
	if (!rc) {
		rc = vrb_srq_modify(vrb_to_srq(ibv)->srq, &max_wr,
			mask & IBV_SRQ_LIMIT ? attr->srq_limit : UINT32_MAX);
		vrb_leave(ctx);
	}
	if (rc == -EINVAL)
		return vrb_fail(EINVAL,
			"the queue holds more than the new max_wr, or srq_limit is above max_wr");
	if (rc)
		return vrb_fail(-rc, "there is no memory for %u entries", max_wr);
	if (mask & IBV_SRQ_MAX_WR)
		attr->max_wr = max_wr;
	return 0;
}

int
ibv_query_srq(struct ibv_srq *ibv, struct ibv_srq_attr *attr)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_srq *srq = vrb_to_srq(ibv)->srq;

	if (vrb_enter(ctx))
		return vrb_fail(
			ENODEV, "the device belongs to the process that this one was forked from");
	attr->max_wr = srq->rq.max_wr;
	attr->max_sge = srq->rq.max_sge;
	attr->srq_limit = srq->limit;
	vrb_leave(ctx);
	return 0;
}

int
vrb_verbs_get_srq_num(struct ibv_srq *srq, uint32_t *num)
{
	if (!vrb_to_srq(srq)->xrcd)
		return vrb_fail(EOPNOTSUPP, "only shared receive queues of XRC have numbers");
	*num = vrb_to_srq(srq)->srq->num;
	return 0;
}

/* Under the baton. */
static int
destroy_in_engine(struct vrb_vsrq *srq)
{
	int rc = vrb_srq_destroy(srq->srq);

	if (!rc && srq->xrcd)
		srq->xrcd->refs--;
	return rc;
}

int
ibv_destroy_srq(struct ibv_srq *ibv)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_vsrq *srq = vrb_to_srq(ibv);
	uint32_t users, reported = 0;
	int i;

	if (vrb_enter(ctx))
		return vrb_fail(
			ENODEV, "the device belongs to the process that this one was forked from");
	users = srq->srq->refs;
	for (i = 0; !users && i < VRB_SRQ_EVENTS; i++)
		reported += vrb_evq_cancel(&ctx->async, &srq->events[i]);
	vrb_leave(ctx);
	if (users)
		return vrb_fail(EBUSY, "%u queue pairs use it; destroy them first", users);
	/* Who has an event and has not acknowledged it may still post to the queue and arm it. */
	vrb_evq_wait_acks(&ibv->mutex, &ibv->cond, &ibv->events_completed, reported);
	vrb_nic_lock(ctx->nic);
	destroy_in_engine(srq);
	vrb_nic_unlock(ctx->nic);
	vrb_obj_remove(ctx, VRB_KIND_SRQ, &srq->obj);
	free_srq(srq);
	return 0;
}

void
vrb_srq_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx)
{
	struct vrb_vsrq *srq = vrb_container(obj, struct vrb_vsrq, obj);

	destroy_in_engine(srq);
	free_srq(srq);
}
