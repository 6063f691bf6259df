/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive queues, shared and private: life, resizing, and taking the next receive.
 */
#include <errno.h>
#include <string.h>

#include "engine.h"

static size_t
recv_stride(uint32_t max_sge)
{
	return sizeof(struct vrb_recv_wqe) + max_sge * sizeof(struct vrb_sge);
}

int
vrb_rq_init(struct vrb_rq *rq, uint32_t max_wr, uint32_t max_sge)
{
	uint32_t entries = rte_align32pow2(RTE_MAX(max_wr, 1u));

	memset(rq, 0, sizeof(*rq));
	rq->stride = recv_stride(max_sge);
	rq->ring = calloc(entries, rq->stride);
	if (rq->ring == NULL)
		return -ENOMEM;
	rq->mask = entries - 1;
	rq->max_wr = max_wr;
	rq->max_sge = max_sge;
	rte_spinlock_init(&rq->lock);
	return 0;
}

void
vrb_rq_close(struct vrb_rq *rq)
{
	/* Under the lock: a post comes before, and is forgotten, or after, and is refused. */
	rte_spinlock_lock(&rq->lock);
	rq->closed = true;
	atomic_store_explicit(&rq->tail, atomic_load_explicit(&rq->head, memory_order_relaxed),
		memory_order_release);
	rte_spinlock_unlock(&rq->lock);
}

void
vrb_rq_open(struct vrb_rq *rq)
{
	rte_spinlock_lock(&rq->lock);
	rq->closed = false;
	rte_spinlock_unlock(&rq->lock);
}

struct vrb_srq *
vrb_srq_find(const struct vrb_engine *e, uint32_t num)
{
	return num <= VRB_MAX_SRQ && e->srqs != NULL ? e->srqs[num] : NULL;
}

/** A free number, or 0: it is not given out, so that programs can tell it from none. */
static uint32_t
take_num(struct vrb_engine *e)
{
	uint32_t i;

	if (e->srqs == NULL)
		e->srqs = calloc(VRB_MAX_SRQ + 1, sizeof(*e->srqs));
	if (e->srqs == NULL)
		return 0;
	for (i = 0; i < VRB_MAX_SRQ; i++) {
		e->next_srq = e->next_srq % VRB_MAX_SRQ + 1;
		if (e->srqs[e->next_srq] == NULL)
			return e->next_srq;
	}
	return 0;
}

int
vrb_srq_create_xrc(struct vrb_engine *e, struct vrb_pd *pd, struct vrb_xrcd *xrcd,
	struct vrb_cq *cq, uint32_t *max_wr, uint32_t *max_sge, void *user, struct vrb_srq **out)
{
	int rc = vrb_srq_create(e, pd, max_wr, max_sge, user, out);

	if (rc < 0)
		return rc;
	(*out)->xrcd = xrcd;
	(*out)->cq = cq;
	xrcd->refs++;
	cq->refs++;
	return 0;
}

int
vrb_srq_create(struct vrb_engine *e, struct vrb_pd *pd, uint32_t *max_wr, uint32_t *max_sge,
	void *user, struct vrb_srq **out)
{
	struct vrb_srq *srq;
	uint32_t num;

	if (*max_wr == 0 || *max_wr > VRB_MAX_SRQ_WR || *max_sge > VRB_MAX_SRQ_SGE)
		return -EINVAL;
	num = take_num(e);
	if (num == 0)
		return -ENOMEM;
	srq = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(sizeof(*srq), RTE_CACHE_LINE_SIZE));
	if (srq == NULL)
		return -ENOMEM;
	memset(srq, 0, sizeof(*srq));
	if (vrb_rq_init(&srq->rq, *max_wr, RTE_MAX(*max_sge, 1u)) < 0) {
		free(srq);
		return -ENOMEM;
	}
	srq->pd = pd;
	srq->engine = e;
	srq->user = user;
	srq->num = num;
	e->srqs[num] = srq;
	*max_wr = srq->rq.max_wr;
	*max_sge = srq->rq.max_sge;
	pd->refs++;
	e->num_srqs++;
	*out = srq;
	return 0;
}

/** The targets that last received into an XRC SRQ forget it; a message that has begun there is
 * lost. */
static void
leave_targets(struct vrb_srq *srq)
{
	struct vrb_engine *e = srq->engine;
	uint32_t i;

	for (i = 0; i < VRB_MAX_QP; i++) {
		struct vrb_qp *qp = e->qps[i];

		if (qp == NULL || qp->srq != srq)
			continue;
		qp->srq = NULL;
		qp->rq = NULL;
		qp->pd = NULL;
		qp->recv_cq = NULL;
		qp->resp.wqe = NULL;
	}
	srq->xrcd->refs--;
	srq->cq->refs--;
}

int
vrb_srq_destroy(struct vrb_srq *srq)
{
	if (srq->refs > 0)
		return -EBUSY;
	if (srq->xrcd != NULL)
		leave_targets(srq);
	srq->engine->srqs[srq->num] = NULL;
	srq->pd->refs--;
	srq->engine->num_srqs--;
	free(srq->rq.ring);
	free(srq);
	return 0;
}

/** IBTA 11.2.3.3: the event is raised once when fewer than limit receives are there, also when they
 * already are. */
static void
check_limit(struct vrb_srq *srq)
{
	if (srq->limit == 0 || vrb_rq_count(&srq->rq) >= srq->limit)
		return;
	srq->limit = 0;
	vrb_engine_async(srq->engine, VRB_EVENT_SRQ_LIMIT_REACHED, srq->user);
}

static int
resize(struct vrb_srq *srq, uint32_t max_wr)
{
	struct vrb_rq *rq = &srq->rq;
	uint32_t entries = rte_align32pow2(max_wr), head, tail, i;
	uint8_t *ring = calloc(entries, rq->stride);

	if (ring == NULL)
		return -ENOMEM;
	rte_spinlock_lock(&rq->lock);
	head = atomic_load_explicit(&rq->head, memory_order_relaxed);
	tail = atomic_load_explicit(&rq->tail, memory_order_relaxed);
	if (head - tail > max_wr) {
		rte_spinlock_unlock(&rq->lock);
		free(ring);
		return -EINVAL;
	}
	for (i = tail; i != head; i++)
		memcpy(ring + (size_t)(i & (entries - 1)) * rq->stride, vrb_rq_at(rq, i),
			rq->stride);
	free(rq->ring);
	rq->ring = ring;
	rq->mask = entries - 1;
	rq->max_wr = max_wr;
	rte_spinlock_unlock(&rq->lock);
	return 0;
}

int
vrb_srq_modify(struct vrb_srq *srq, uint32_t *max_wr, uint32_t limit)
{
	uint32_t size = *max_wr != 0 ? *max_wr : srq->rq.max_wr;
	int rc;

	if (size > VRB_MAX_SRQ_WR || (limit != UINT32_MAX && limit > size))
		return -EINVAL;
	if (*max_wr != 0) {
		rc = resize(srq, size);
		if (rc < 0)
			return rc;
	}
	if (limit != UINT32_MAX) {
		srq->limit = limit;
		check_limit(srq);
	}
	*max_wr = srq->rq.max_wr;
	return 0;
}

struct vrb_recv_wqe *
vrb_rq_take(struct vrb_qp *qp)
{
	struct vrb_rq *rq = qp->rq;
	uint32_t tail = atomic_load_explicit(&rq->tail, memory_order_relaxed);
	struct vrb_recv_wqe *wqe;

	/* Pairs with vrb_rq_commit(): the entry is whole. */
	if (tail == atomic_load_explicit(&rq->head, memory_order_acquire)) {
		if (qp->srq != NULL)
			qp->srq->dry++;
		return NULL;
	}
	wqe = vrb_rq_at(rq, tail);
	if (qp->srq == NULL)
		return wqe; /* its slot is freed when the message is complete */
	/*
	 * Messages of different QPs end in any order, so an SRQ's slot cannot wait for its message:
	 * the receive is copied, read once, and the slot is free again.
	 */
	memcpy(qp->resp.srq_copy, wqe, sizeof(*wqe) + wqe->num_sge * sizeof(struct vrb_sge));
	atomic_store_explicit(&rq->tail, tail + 1, memory_order_release);
	check_limit(qp->srq);
	return qp->resp.srq_copy;
}
