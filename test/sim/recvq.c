/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive queues: which receives are posted, when, and into which buffers.
 */
#include <string.h>

#include <rte_common.h>

#include "sim.h"

#define BURST_MAX 8

void
recvq_init(struct sim *s, struct recvq *q, struct vrb_rq *rq, struct arena *a, struct simcq *cq,
	uint64_t id, uint32_t n)
{
	q->rq = rq;
	q->arena = a;
	q->cq = cq;
	q->id = id;
	q->n = n;
	q->rng = rng_fork(&s->rng);
	q->recv = mem_model(n * sizeof(*q->recv));
	q->spare = mem_model(n * sizeof(*q->spare));
	q->level = (uint32_t)rng_range(&s->rng, 1, rq->max_wr);
	q->delay = rng_chance(&s->rng, 300) ? 100 : rng_range(&s->rng, 100, US(50));
	if (rng_chance(&s->rng, s->prof->late_recv))
		q->delay = rng_range(&s->rng, US(50), MS(3));
	q->next = s->now + (rng_chance(&s->rng, s->prof->late_recv) ? q->delay : 0);
	if (q->bad_at == 0)
		q->bad_at = UINT32_MAX;
	if (q->stop_at == 0)
		q->stop_at = n;
}

/* A buffer that was used before, or a new one. Both are full of bytes that belong to no message. */
static bool
buffer_get(struct recvq *q, struct buf *b)
{
	/* Half of them longer than they need be. */
	uint32_t len = q->len + (uint32_t)(rng_chance(&q->rng, 300) ? rng_below(&q->rng, 200) : 0);

	if (q->n_spare > 0 && rng_chance(&q->rng, 800)) {
		uint32_t i = (uint32_t)rng_below(&q->rng, q->n_spare);

		*b = q->spare[i];
		q->spare[i] = q->spare[--q->n_spare];
		return true;
	}
	return buf_take(b, q->arena, &q->rng, len, q->max_sge);
}

static void
recv_fill(const struct sim *s, struct recvq *q, uint32_t idx, struct vrb_recv_wqe *w)
{
	const struct buf *b = &q->recv[idx].buf;

	w->wr_id = wr_id(s, q->id, idx);
	w->num_sge = b->n;
	w->length = b->len;
	for (uint32_t i = 0; i < b->n; i++) {
		w->sge[i] = b->piece[i].sge;
		if (idx == q->bad_at)
			w->sge[i].lkey ^= 0x5500;
	}
}

static uint32_t
outstanding(const struct recvq *q)
{
	uint32_t n = q->posted - q->completed;

	return n - RTE_MIN(n, q->lost);
}

uint32_t
recvq_post(struct sim *s, struct recvq *q)
{
	uint32_t n = (uint32_t)rng_range(&q->rng, 1, BURST_MAX), k = 0;

	q->next = s->now + rng_range(&q->rng, 100, 2 * q->delay);
	/* Nothing to do until one completes. */
	if (q->posted == RTE_MIN(q->n, q->stop_at) ||
		outstanding(q) >= RTE_MIN(q->level, q->cq->quota))
		q->next = SIM_NEVER;
	rte_spinlock_lock(&q->rq->lock);
	while (k < n && q->posted < q->n && q->posted < q->stop_at) {
		uint32_t out = outstanding(q);
		struct vrb_recv_wqe *w = vrb_rq_slot(q->rq, k);
		struct recv *r = &q->recv[q->posted];

		if (w == NULL)
			q->next = SIM_NEVER; /* full: a completion will tell */
		if (w == NULL || out >= q->level || out >= q->cq->quota || !buffer_get(q, &r->buf))
			break;
		recv_fill(s, q, q->posted, w);
		r->posted = true;
		q->posted++;
		k++;
	}
	vrb_rq_commit(q->rq, k);
	rte_spinlock_unlock(&q->rq->lock);
	/* In the error state somebody has to flush them. */
	if (k > 0 && q->ep != NULL && vrb_qp_state(q->ep->qp) == VRB_QPS_ERR)
		vrb_engine_ring(q->ep->qp);
	return k;
}
