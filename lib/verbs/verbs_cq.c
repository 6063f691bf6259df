/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues: life, size, arming, and ibv_poll_cq(). Extended polling is in verbs_cq_ex.c.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_private.h"

/* What the functions below check is a failure of the call that they are part of. */
#define refuse(err, ...) vrb_explain_call(err, "ibv_create_cq", __VA_ARGS__)
#define refuse_null(err, ...) (errno = refuse(err, __VA_ARGS__), NULL)

#define WC_FLAGS \
	((uint64_t)IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | \
		IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK | IBV_WC_EX_WITH_CVLAN | \
		IBV_WC_EX_WITH_FLOW_TAG)

/* @return 0 or an errno */
static int
check_cq_attr(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr)
{
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;

	if (attr->cqe < 1 || attr->cqe > VRB_MAX_CQE)
		return refuse(EINVAL, "cqe is %u; it must be from 1 to %u", attr->cqe, VRB_MAX_CQE);
	if (attr->comp_vector >= (uint32_t)context->num_comp_vectors)
		return refuse(EINVAL, "comp_vector is %u; it must be below %d", attr->comp_vector,
			context->num_comp_vectors);
	if (attr->channel && attr->channel->context != context)
		return refuse(EINVAL, "the completion channel belongs to another context");
	if (attr->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD))
		return refuse(EOPNOTSUPP,
			"comp_mask is %#x; only IBV_CQ_INIT_ATTR_MASK_FLAGS and _PD are supported",
			attr->comp_mask);
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD &&
		(!attr->parent_domain || attr->parent_domain->context != context ||
			!vrb_to_pd(attr->parent_domain)->parent_of))
		return refuse(EINVAL,
			"parent_domain is missing, is a plain protection domain, or belongs to "
			"another context");
	if (attr->wc_flags & ~WC_FLAGS)
		return refuse(EOPNOTSUPP,
			"wc_flags is %#lx; the device fills the standard fields, timestamps, cvlan "
			"and flow_tag",
			(unsigned long)attr->wc_flags);
	if (flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED)
		return refuse(EOPNOTSUPP,
			"flags is %#x; only IBV_CREATE_CQ_ATTR_SINGLE_THREADED is supported",
			flags);
	return 0;
}

static void
init_cq(struct vrb_vcq *cq, struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr)
{
	cq->nic = vrb_to_ctx(context)->nic;
	rte_spinlock_init(&cq->session);
	cq->single_threaded = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS &&
			      attr->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	if (attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		cq->parent = attr->parent_domain;
		cq->single_threaded |= vrb_to_pd(cq->parent)->td != NULL;
	}
	cq->comp.obj = cq->err.obj = cq;
	cq->err.type = IBV_EVENT_CQ_ERR;
	cq->ibv.context = context;
	cq->ibv.channel = attr->channel;
	cq->ibv.cq_context = attr->cq_context;
	pthread_mutex_init(&cq->ibv.mutex, NULL);
	pthread_cond_init(&cq->ibv.cond, NULL);
}

static void
free_cq(struct vrb_vcq *cq)
{
	pthread_mutex_destroy(&cq->ibv.mutex);
	pthread_cond_destroy(&cq->ibv.cond);
	free(cq);
}

static void
count_channel(struct vrb_vcq *cq, int n)
{
	if (!cq->ibv.channel)
		return;
	pthread_mutex_lock(&cq->ibv.context->mutex);
	cq->ibv.channel->refcnt += n;
	pthread_mutex_unlock(&cq->ibv.context->mutex);
}

static struct vrb_vcq *
create_cq(struct ibv_context *context, const struct ibv_cq_init_attr_ex *attr)
{
	struct vrb_ctx *ctx = vrb_to_ctx(context);
	struct vrb_vcq *cq;
	int rc;

	errno = check_cq_attr(context, attr);
	if (errno)
		return NULL;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return refuse_null(ENOMEM, "there is no memory");
	init_cq(cq, context, attr);
	rc = vrb_enter(ctx);
	if (!rc) {
		rc = vrb_cq_create(ctx->engine, attr->cqe, cq, &cq->cq);
		vrb_leave(ctx);
	}
	if (rc) {
		free_cq(cq);
		return refuse_null(-rc,
			"there can be %d completion queues, as far as there is memory", VRB_MAX_CQ);
	}
	cq->ibv.cqe = (int)cq->cq->size;
	count_channel(cq, 1);
	cq->ibv.handle = vrb_obj_add(ctx, VRB_KIND_CQ, &cq->obj);
	return cq;
}

struct ibv_cq *
ibv_create_cq(struct ibv_context *context, int cqe, void *cq_context,
	struct ibv_comp_channel *channel, int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = (uint32_t)cqe,
		.cq_context = cq_context,
		.channel = channel,
		.comp_vector = (uint32_t)comp_vector,
	};
	struct vrb_vcq *cq = create_cq(context, &attr);

	return cq ? (struct ibv_cq *)&cq->ibv : NULL;
}

struct ibv_cq_ex *
vrb_verbs_create_cq_ex(struct ibv_context *context, struct ibv_cq_init_attr_ex *attr)
{
	struct vrb_vcq *cq = create_cq(context, attr);

	if (!cq)
		return NULL;
	vrb_cq_ex_ops(cq, attr->wc_flags);
	return &cq->ibv;
}

#define OVERFLOWED \
	"the queue has overflowed and takes no more completions; destroy it and make a larger one"

int
ibv_resize_cq(struct ibv_cq *ibv, int cqe)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_vcq *cq = vrb_to_cq(ibv);
	int rc;

	if (cqe < 1 || cqe > VRB_MAX_CQE)
		return vrb_fail(EINVAL, "cqe is %d; it must be from 1 to %u", cqe, VRB_MAX_CQE);
	rc = vrb_enter(ctx);
	if (!rc) {
		rc = vrb_cq_resize(ctx->engine, cq->cq, (uint32_t)cqe);
		ibv->cqe = (int)cq->cq->size;
		vrb_leave(ctx);
	}
	if (rc == -EINVAL)
		return vrb_fail(
			EINVAL, "more than %d completions wait in the queue; poll them first", cqe);
	if (rc == -EIO)
		return vrb_fail(EIO, OVERFLOWED);
	return rc ? vrb_fail(-rc, "there is no memory for %d entries", cqe) : 0;
}

int
vrb_verbs_modify_cq(struct ibv_cq *ibv, struct ibv_modify_cq_attr *attr)
{
	const struct ibv_moderate_cq *m = &attr->moderate;
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_vcq *cq = vrb_to_cq(ibv);
	int rc;

	if (attr->attr_mask & ~(uint32_t)IBV_CQ_ATTR_MODERATE)
		return vrb_fail(EINVAL, "attr_mask is %#x; there is only IBV_CQ_ATTR_MODERATE",
			attr->attr_mask);
	rc = vrb_enter(ctx);
	if (!rc) {
		if (attr->attr_mask & IBV_CQ_ATTR_MODERATE)
			rc = vrb_cq_moderate(
				cq->cq, m->cq_count, m->cq_period, vrb_nic_now(cq->nic));
		vrb_leave(ctx);
	}
	if (rc == -EINVAL)
		return vrb_fail(EINVAL,
			"cq_count is %u and cq_period %u; they are at most %d and %d microseconds",
			m->cq_count, m->cq_period, VRB_MAX_CQ_COUNT, VRB_MAX_CQ_PERIOD);
	if (rc == -EIO)
		return vrb_fail(EIO, OVERFLOWED);
	return rc ? vrb_fail(-rc, "the device belongs to the process that this one was forked from")
		  : 0;
}

int
ibv_destroy_cq(struct ibv_cq *ibv)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_vcq *cq = vrb_to_cq(ibv);
	uint32_t users, comp = 0, err = 0;

	if (vrb_enter(ctx))
		return vrb_fail(
			ENODEV, "the device belongs to the process that this one was forked from");
	users = cq->cq->refs;
	if (!users) {
		if (ibv->channel)
			comp = vrb_evq_cancel(&vrb_to_channel(ibv->channel)->evq, &cq->comp);
		err = vrb_evq_cancel(&ctx->async, &cq->err);
	}
	vrb_leave(ctx);
	if (users)
		return vrb_fail(EBUSY, "%u queue pairs use it; destroy them first", users);
	/* Who has an event and has not acknowledged it may still poll and arm the queue. */
	vrb_evq_wait_acks(&ibv->mutex, &ibv->cond, &ibv->comp_events_completed, comp);
	vrb_evq_wait_acks(&ibv->mutex, &ibv->cond, &ibv->async_events_completed, err);
	vrb_nic_lock(ctx->nic);
	vrb_cq_destroy(ctx->engine, cq->cq);
	vrb_nic_unlock(ctx->nic);
	count_channel(cq, -1);
	vrb_obj_remove(ctx, VRB_KIND_CQ, &cq->obj);
	free_cq(cq);
	return 0;
}

void
vrb_cq_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx)
{
	struct vrb_vcq *cq = vrb_container(obj, struct vrb_vcq, obj);

	vrb_cq_destroy(ctx->engine, cq->cq);
	free_cq(cq);
}

int
vrb_verbs_req_notify_cq(struct ibv_cq *ibv, int solicited_only)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);

	if (vrb_enter(ctx))
		return ENODEV;
	vrb_cq_arm(vrb_to_cq(ibv)->cq, solicited_only != 0);
	vrb_leave(ctx);
	return 0;
}

/* struct vrb_cqe begins as struct ibv_wc does; verbs_abi.c asserts it. */
#define WC_SAME offsetof(struct ibv_wc, pkey_index)

static inline int
drain(struct vrb_cq *cq, int n, struct ibv_wc *wc)
{
	const struct vrb_cqe *cqe;
	int i;

	for (i = 0; i < n && (cqe = vrb_cq_peek(cq)); i++) {
		memcpy(&wc[i], cqe, WC_SAME);
		memset((char *)&wc[i] + WC_SAME, 0, sizeof(*wc) - WC_SAME);
		vrb_cq_pop(cq);
	}
	return i;
}

static inline int
drain_locked(struct vrb_vcq *cq, int n, struct ibv_wc *wc)
{
	int got;

	if (cq->single_threaded)
		return drain(cq->cq, n, wc);
	rte_spinlock_lock(&cq->cq->lock);
	got = drain(cq->cq, n, wc);
	rte_spinlock_unlock(&cq->cq->lock);
	return got;
}

/*
 * An empty queue is where a polling program lends its thread to the device. A queue that is not
 * empty is drained first: a program that goes on polling comes to its end.
 */
int
vrb_verbs_poll_cq(struct ibv_cq *ibv, int num_entries, struct ibv_wc *wc)
{
	struct vrb_vcq *cq = vrb_to_cq(ibv);
	int n;

	if (unlikely(vrb_forked))
		return -1;
	if (!vrb_cq_empty(cq->cq)) {
		n = drain_locked(cq, num_entries, wc);
		if (likely(n))
			return n;
	}
	vrb_nic_progress(cq->nic);
	return vrb_cq_empty(cq->cq) ? 0 : drain_locked(cq, num_entries, wc);
}
