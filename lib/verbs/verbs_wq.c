/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues (ibv_create_wq(3), ibv_modify_wq(3)).
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs_raw.h"

/* Frames that find no receive are never dropped at once, whether it is asked for or not. */
#define FLAGS \
	((uint32_t)(IBV_WQ_FLAGS_CVLAN_STRIPPING | IBV_WQ_FLAGS_SCATTER_FCS | \
		    IBV_WQ_FLAGS_DELAY_DROP))
#define ALL_FLAGS ((uint32_t)(IBV_WQ_FLAGS_RESERVED - 1))

_Static_assert(VRB_RX_STRIP_CVLAN == IBV_WQ_FLAGS_CVLAN_STRIPPING, "flags are passed on");
_Static_assert(VRB_RX_SCATTER_FCS == IBV_WQ_FLAGS_SCATTER_FCS, "flags are passed on");
_Static_assert(VRB_WQS_RESET == (int)IBV_WQS_RESET && VRB_WQS_RDY == (int)IBV_WQS_RDY &&
		       VRB_WQS_ERR == (int)IBV_WQS_ERR,
	"states are passed on");

/* @return 0 or an errno */
static int
check_flags(uint32_t flags, const char *call)
{
	if (flags & ~ALL_FLAGS)
		return vrb_explain_call(
			EINVAL, call, "flags is %#x, with bits that are not defined", flags);
	if (flags & ~FLAGS)
		return vrb_explain_call(EOPNOTSUPP, call,
			"flags is %#x; the device has all but IBV_WQ_FLAGS_PCI_WRITE_END_PADDING",
			flags);
	return 0;
}

/* @return 0 or an errno */
static int
check_wq_attr(struct ibv_context *context, const struct ibv_wq_init_attr *attr)
{
	const char *call = "ibv_create_wq";

	if (attr->comp_mask & ~(uint32_t)IBV_WQ_INIT_ATTR_FLAGS)
		return vrb_explain_call(EOPNOTSUPP, call,
			"comp_mask is %#x, with attributes that the device does not have",
			attr->comp_mask);
	if (attr->wq_type != IBV_WQT_RQ)
		return vrb_explain_call(EINVAL, call, "wq_type is %d; there is only IBV_WQT_RQ",
			(int)attr->wq_type);
	if (!attr->pd || attr->pd->context != context)
		return vrb_explain_call(
			EINVAL, call, "pd is missing, or belongs to another context");
	if (!attr->cq || attr->cq->context != context)
		return vrb_explain_call(
			EINVAL, call, "cq is missing, or belongs to another context");
	if (attr->max_wr < 1 || attr->max_wr > VRB_MAX_WQ_WR)
		return vrb_explain_call(EINVAL, call, "max_wr is %u; it must be from 1 to %d",
			attr->max_wr, VRB_MAX_WQ_WR);
	if (attr->max_sge > VRB_MAX_SGE)
		return vrb_explain_call(EINVAL, call, "max_sge is %u; the device has %d",
			attr->max_sge, VRB_MAX_SGE);
	return attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS ? check_flags(attr->create_flags, call) : 0;
}

static int
post_wq_recv(struct ibv_wq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct vrb_vwq *wq = vrb_to_wq(ibv);
	int rc;

	if (unlikely(vrb_forked)) {
		*bad = wr;
		return ENODEV;
	}
	rc = vrb_rq_post(&wq->wq->rq, wr, bad);
	if (unlikely(rc == -ENOTCONN))
		return vrb_explain_call(EINVAL, "ibv_post_wq_recv",
			"WQ %#x is in state RESET; move it to RDY first", ibv->wq_num);
	/* As in vrb_verbs_post_recv(): either the engine sees this post when it enters the error
	 * state, or this sees the state. */
	atomic_thread_fence(memory_order_seq_cst);
	if (unlikely(vrb_wq_state(wq->wq) == VRB_WQS_ERR)) {
		vrb_nic_lock(wq->nic);
		vrb_wq_flush(wq->wq, vrb_nic_now(wq->nic));
		vrb_nic_unlock(wq->nic);
	}
	if (likely(!rc))
		return 0;
	return vrb_explain_call(-rc, "ibv_post_wq_recv",
		"wr_id %#lx cannot be posted to WQ %#x: it has %u entries of %u SGEs",
		(unsigned long)(*bad)->wr_id, ibv->wq_num, wq->wq->rq.max_wr, wq->wq->rq.max_sge);
}

static void
init_wq(struct vrb_vwq *wq, struct ibv_context *context, const struct ibv_wq_init_attr *attr)
{
	wq->nic = vrb_to_ctx(context)->nic;
	wq->fatal.type = IBV_EVENT_WQ_FATAL;
	wq->fatal.obj = wq;
	wq->ibv.context = context;
	wq->ibv.wq_context = attr->wq_context;
	wq->ibv.pd = attr->pd;
	wq->ibv.cq = attr->cq;
	wq->ibv.state = IBV_WQS_RESET;
	wq->ibv.wq_type = attr->wq_type;
	wq->ibv.post_recv = post_wq_recv;
	pthread_mutex_init(&wq->ibv.mutex, NULL);
	pthread_cond_init(&wq->ibv.cond, NULL);
}

static void
free_wq(struct vrb_vwq *wq)
{
	pthread_mutex_destroy(&wq->ibv.mutex);
	pthread_cond_destroy(&wq->ibv.cond);
	free(wq);
}

struct ibv_wq *
vrb_verbs_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr)
{
	struct vrb_ctx *ctx = vrb_to_ctx(context);
	uint32_t max_wr = attr->max_wr, max_sge = attr->max_sge;
	struct vrb_vwq *wq;
	int rc;

	errno = check_wq_attr(context, attr);
	if (errno)
		return NULL;
	wq = calloc(1, sizeof(*wq));
	if (!wq)
		return vrb_fail_null(ENOMEM, "there is no memory");
	init_wq(wq, context, attr);
	rc = vrb_enter(ctx);
	if (!rc) {
		rc = vrb_wq_create(ctx->engine, vrb_to_pd(attr->pd)->pd, vrb_to_cq(attr->cq)->cq,
			&max_wr, &max_sge,
			attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS ? attr->create_flags : 0, wq,
			&wq->wq);
		vrb_leave(ctx);
	}
	if (rc) {
		free_wq(wq);
		return vrb_fail_null(
			-rc, "there can be %d work queues, as far as there is memory", VRB_MAX_WQ);
	}
	attr->max_wr = max_wr;
	attr->max_sge = max_sge;
	wq->ibv.wq_num = wq->wq->num;
	wq->ibv.handle = vrb_obj_add(ctx, VRB_KIND_WQ, &wq->obj);
	return &wq->ibv;
}

/* @return 0 or an errno */
static int
check_modify(const struct ibv_wq_attr *attr)
{
	const char *call = "ibv_modify_wq";
	int rc;

	if (attr->attr_mask & ~(uint32_t)(IBV_WQ_ATTR_RESERVED - 1))
		return vrb_explain_call(EINVAL, call,
			"attr_mask is %#x, with bits that are not defined", attr->attr_mask);
	if (attr->attr_mask & IBV_WQ_ATTR_STATE && attr->wq_state > IBV_WQS_ERR)
		return vrb_explain_call(
			EINVAL, call, "wq_state is %d, which is no state", (int)attr->wq_state);
	if (attr->attr_mask & IBV_WQ_ATTR_CURR_STATE && attr->curr_wq_state > IBV_WQS_ERR)
		return vrb_explain_call(EINVAL, call, "curr_wq_state is %d, which is no state",
			(int)attr->curr_wq_state);
	if (!(attr->attr_mask & IBV_WQ_ATTR_FLAGS))
		return 0;
	rc = check_flags(attr->flags_mask, call);
	if (!rc && attr->flags & ~attr->flags_mask)
		return vrb_explain_call(EINVAL, call,
			"flags is %#x, with bits that are not in flags_mask", attr->flags);
	return rc;
}

/* Under the baton. @return 0 or -EINVAL, and then nothing is changed */
static int
modify(struct vrb_vwq *wq, const struct ibv_wq_attr *attr)
{
	enum vrb_wq_state now = vrb_wq_state(wq->wq);
	int rc = 0;

	if (attr->attr_mask & IBV_WQ_ATTR_CURR_STATE &&
		(enum vrb_wq_state)attr->curr_wq_state != now)
		return -EINVAL;
	if (attr->attr_mask & IBV_WQ_ATTR_STATE)
		rc = vrb_wq_modify(wq->wq, (enum vrb_wq_state)attr->wq_state, vrb_nic_now(wq->nic));
	if (!rc && attr->attr_mask & IBV_WQ_ATTR_FLAGS)
		wq->wq->flags = (wq->wq->flags & ~attr->flags_mask) | attr->flags;
	if (!rc && attr->attr_mask & IBV_WQ_ATTR_STATE)
		wq->ibv.state = attr->wq_state;
	return rc;
}

int
vrb_verbs_modify_wq(struct ibv_wq *ibv, struct ibv_wq_attr *attr)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_vwq *wq = vrb_to_wq(ibv);
	enum vrb_wq_state from = vrb_wq_state(wq->wq);
	int rc;

	rc = check_modify(attr);
	if (rc)
		return rc;
	rc = vrb_enter(ctx);
	if (!rc) {
		rc = modify(wq, attr);
		vrb_leave(ctx);
	}
	if (rc == -EINVAL)
		return vrb_fail(EINVAL,
			"WQ %#x is in state %d, and cannot go to %d, or curr_wq_state is another",
			ibv->wq_num, (int)from, (int)attr->wq_state);
	return -rc;
}

int
vrb_verbs_destroy_wq(struct ibv_wq *ibv)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_vwq *wq = vrb_to_wq(ibv);
	uint32_t reported = 0;
	bool busy;

	if (vrb_enter(ctx))
		return vrb_fail(
			ENODEV, "the device belongs to the process that this one was forked from");
	busy = wq->wq->refs > 0;
	if (!busy)
		reported = vrb_evq_cancel(&ctx->async, &wq->fatal);
	vrb_leave(ctx);
	if (busy)
		return vrb_fail(EBUSY, "WQ %#x stands in an indirection table; destroy that first",
			ibv->wq_num);
	/* Who has the event and has not acknowledged it may still look at the queue. */
	vrb_evq_wait_acks(&ibv->mutex, &ibv->cond, &ibv->events_completed, reported);
	vrb_nic_lock(ctx->nic);
	vrb_wq_destroy(wq->wq);
	vrb_nic_unlock(ctx->nic);
	vrb_obj_remove(ctx, VRB_KIND_WQ, &wq->obj);
	free_wq(wq);
	return 0;
}

void
vrb_wq_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx)
{
	struct vrb_vwq *wq = vrb_container(obj, struct vrb_vwq, obj);

	vrb_wq_destroy(wq->wq);
	free_wq(wq);
}
