/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues and indirection tables (see wq.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "wq.h"

/* Numbers of work queues begin here, so that completions of theirs are not taken for a queue
 * pair's. */
#define FIRST_WQ 0x800000u
#define LAST_WQ 0xffffffu

static uint32_t
take_num(struct vrb_engine *e)
{
	e->next_wq = e->next_wq < FIRST_WQ || e->next_wq >= LAST_WQ ? FIRST_WQ : e->next_wq + 1;
	return e->next_wq;
}

int
vrb_wq_create(struct vrb_engine *e, struct vrb_pd *pd, struct vrb_cq *cq, uint32_t *max_wr,
	uint32_t *max_sge, uint32_t flags, void *user, struct vrb_wq **out)
{
	struct vrb_wq *wq;

	if (*max_wr == 0 || *max_wr > VRB_MAX_WQ_WR || *max_sge > VRB_MAX_SGE)
		return -EINVAL;
	if (e->num_wqs >= VRB_MAX_WQ)
		return -ENOMEM;
	wq = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(sizeof(*wq), RTE_CACHE_LINE_SIZE));
	if (wq == NULL)
		return -ENOMEM;
	memset(wq, 0, sizeof(*wq));
	if (vrb_rq_init(&wq->rq, *max_wr, RTE_MAX(*max_sge, 1u)) < 0) {
		free(wq);
		return -ENOMEM;
	}
	wq->rq.closed = true;
	wq->engine = e;
	wq->pd = pd;
	wq->cq = cq;
	wq->user = user;
	wq->flags = flags;
	wq->num = take_num(e);
	*max_wr = wq->rq.max_wr;
	*max_sge = wq->rq.max_sge;
	pd->refs++;
	cq->refs++;
	e->num_wqs++;
	TAILQ_INSERT_TAIL(&e->wqs, wq, link);
	*out = wq;
	return 0;
}

int
vrb_wq_destroy(struct vrb_wq *wq)
{
	if (wq->refs > 0)
		return -EBUSY;
	vrb_raw_unhold(wq->engine, &wq->raw);
	TAILQ_REMOVE(&wq->engine->wqs, wq, link);
	wq->engine->num_wqs--;
	wq->pd->refs--;
	wq->cq->refs--;
	free(wq->rq.ring);
	free(wq);
	return 0;
}

static void
flush(struct vrb_wq *wq)
{
	struct vrb_rq *rq = &wq->rq;
	uint32_t head = atomic_load_explicit(&rq->head, memory_order_acquire);
	uint32_t idx = atomic_load_explicit(&rq->tail, memory_order_relaxed);

	for (; idx != head; idx++) {
		vrb_raw_cqe(wq->cq, wq->num, wq->user, vrb_rq_at(rq, idx)->wr_id,
			VRB_WC_WR_FLUSH_ERR, 0);
		/* The slot first: who has seen the completion can post again. */
		atomic_store_explicit(&rq->tail, idx + 1, memory_order_release);
		vrb_cq_publish(wq->cq, true);
	}
}

void
vrb_wq_flush(struct vrb_wq *wq, uint64_t now)
{
	wq->engine->now = now;
	if (vrb_wq_state(wq) == VRB_WQS_ERR)
		flush(wq);
	vrb_engine_overruns(wq->engine);
}

void
vrb_wq_error(struct vrb_wq *wq)
{
	if (vrb_wq_state(wq) == VRB_WQS_ERR)
		return;
	/* As in vrb_qp_error(): what is posted is flushed from here on, also out of RESET. */
	vrb_rq_open(&wq->rq);
	atomic_store_explicit(&wq->state, VRB_WQS_ERR, memory_order_relaxed);
	/* As in vrb_qp_error(): who posts after the look at the queue sees the state. */
	atomic_thread_fence(memory_order_seq_cst);
	flush(wq);
}

int
vrb_wq_modify(struct vrb_wq *wq, enum vrb_wq_state to, uint64_t now)
{
	static const bool allowed[VRB_WQS_NUM][VRB_WQS_NUM] = {
		[VRB_WQS_RESET] = {[VRB_WQS_RESET] = true, [VRB_WQS_RDY] = true},
		[VRB_WQS_RDY] =
			{[VRB_WQS_RESET] = true, [VRB_WQS_RDY] = true, [VRB_WQS_ERR] = true},
		[VRB_WQS_ERR] = {[VRB_WQS_RESET] = true, [VRB_WQS_ERR] = true},
	};

	if ((unsigned int)to >= VRB_WQS_NUM || !allowed[vrb_wq_state(wq)][to])
		return -EINVAL;
	wq->engine->now = now;
	if (to == VRB_WQS_ERR) {
		vrb_wq_error(wq);
	} else {
		atomic_store_explicit(&wq->state, to, memory_order_relaxed);
		if (to == VRB_WQS_RESET)
			vrb_rq_close(&wq->rq); /* without completions */
		else
			vrb_rq_open(&wq->rq);
	}
	vrb_engine_overruns(wq->engine);
	return 0;
}

void
vrb_wq_overruns(struct vrb_engine *e)
{
	struct vrb_wq *wq;

	TAILQ_FOREACH (wq, &e->wqs, link) {
		if (!wq->cq->overrun || vrb_wq_state(wq) == VRB_WQS_ERR)
			continue;
		vrb_wq_error(wq);
		vrb_engine_async(e, VRB_EVENT_WQ_FATAL, wq->user);
	}
}

int
vrb_ind_tbl_create(
	struct vrb_engine *e, struct vrb_wq *const *wqs, uint32_t size, struct vrb_ind_tbl **out)
{
	struct vrb_ind_tbl *tbl;
	uint32_t i;

	if (!rte_is_power_of_2(size) || size > VRB_MAX_IND_TBL_SIZE)
		return -EINVAL;
	if (e->num_ind_tbls >= VRB_MAX_IND_TBL)
		return -ENOMEM;
	tbl = calloc(1, sizeof(*tbl) + size * sizeof(*tbl->wqs));
	if (tbl == NULL)
		return -ENOMEM;
	tbl->engine = e;
	tbl->mask = size - 1;
	tbl->num = ++e->next_ind_tbl;
	for (i = 0; i < size; i++) {
		tbl->wqs[i] = wqs[i];
		wqs[i]->refs++;
	}
	e->num_ind_tbls++;
	TAILQ_INSERT_TAIL(&e->ind_tbls, tbl, link);
	*out = tbl;
	return 0;
}

int
vrb_ind_tbl_destroy(struct vrb_ind_tbl *tbl)
{
	uint32_t i;

	if (tbl->refs > 0)
		return -EBUSY;
	for (i = 0; i <= tbl->mask; i++)
		tbl->wqs[i]->refs--;
	tbl->engine->num_ind_tbls--;
	TAILQ_REMOVE(&tbl->engine->ind_tbls, tbl, link);
	free(tbl);
	return 0;
}

void
vrb_wq_forget(struct vrb_engine *e)
{
	while (!TAILQ_EMPTY(&e->ind_tbls))
		vrb_ind_tbl_destroy(TAILQ_FIRST(&e->ind_tbls));
	while (!TAILQ_EMPTY(&e->wqs))
		vrb_wq_destroy(TAILQ_FIRST(&e->wqs));
}
