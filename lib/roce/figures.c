/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See figures.h.
 */
#include "engine.h"
#include "figures.h"
#include "flow.h"

static void
add_srqs(const struct vrb_engine *e, struct vrb_figures *f)
{
	uint32_t i, left = e->num_srqs;

	for (i = 0; left > 0 && f->srqs < VRB_FIGURES_MAX; i++) {
		const struct vrb_srq *srq = e->srqs[i];

		if (srq == NULL)
			continue;
		left--;
		f->srq[f->srqs++] = (struct vrb_srq_figures){.num = srq->num,
			.max_wr = srq->rq.max_wr,
			.posted = vrb_rq_count(&srq->rq),
			.limit = srq->limit,
			.users = srq->refs,
			.dry = srq->dry};
	}
}

static void
add_cqs(const struct vrb_engine *e, struct vrb_figures *f)
{
	const struct vrb_cq *cq;
	uint32_t head;

	LIST_FOREACH (cq, &e->cqs, link) {
		if (f->cqs == VRB_FIGURES_MAX)
			break;
		head = atomic_load_explicit(&cq->head, memory_order_relaxed);
		f->cq[f->cqs++] = (struct vrb_cq_figures){.num = cq->num,
			.size = cq->size,
			.waiting = head - atomic_load_explicit(&cq->tail, memory_order_relaxed),
			.completions = head,
			.armed = cq->armed != VRB_CQ_DISARMED,
			.overrun = cq->overrun != 0};
	}
}

static void
add_qps(const struct vrb_engine *e, struct vrb_figures *f)
{
	uint32_t i, left = e->num_qps;

	for (i = 0; i < VRB_MAX_QP && left > 0 && f->qps < VRB_FIGURES_MAX; i++) {
		const struct vrb_qp *qp = e->qps[i];

		if (qp == NULL)
			continue;
		left--;
		f->qp[f->qps++] = (struct vrb_qp_figures){.qpn = qp->qpn,
			.type = qp->init.type,
			.state = vrb_qp_get_state(qp),
			.sends = atomic_load_explicit(&qp->sq.head, memory_order_relaxed) -
				 atomic_load_explicit(&qp->sq.tail, memory_order_relaxed),
			.receives = qp->rq == &qp->own_rq ? vrb_rq_count(qp->rq) : 0,
			.srq = qp->srq != NULL ? qp->srq->num : 0};
	}
}

static void
add_wqs(const struct vrb_engine *e, struct vrb_figures *f)
{
	const struct vrb_wq *wq;

	TAILQ_FOREACH (wq, &e->wqs, link) {
		if (f->wqs == VRB_FIGURES_MAX)
			break;
		f->wq[f->wqs++] = (struct vrb_wq_figures){.num = wq->num,
			.max_wr = wq->rq.max_wr,
			.posted = vrb_rq_count(&wq->rq),
			.state = vrb_wq_state(wq)};
	}
}

void
vrb_engine_figures(const struct vrb_engine *e, struct vrb_figures *f)
{
	f->stats = e->stats;
	f->num_pds = e->num_pds;
	f->num_mrs = e->num_mrs;
	f->num_qps = e->num_qps;
	f->num_cqs = e->num_cqs;
	f->num_srqs = e->num_srqs;
	f->num_wqs = e->num_wqs;
	f->num_ind_tbls = e->num_ind_tbls;
	f->num_flows = e->flows != NULL ? vrb_flow_rules(e->flows) : 0;
	f->srqs = f->cqs = f->qps = f->wqs = 0;
	add_srqs(e, f);
	add_cqs(e, f);
	add_qps(e, f);
	add_wqs(e, f);
}
