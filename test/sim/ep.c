/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ends of connections: queue pairs with memory, queues and windows, made and taken down again.
 */
#include <errno.h>
#include <string.h>

#include <rte_common.h>

#include "sim.h"

#define ALL_REMOTE (VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE)

static uint32_t
mtu_bytes(enum vrb_mtu m)
{
	return 128u << m;
}

/* Queue sizes: mostly small, so that they wrap and fill up. */
static uint32_t
some_depth(struct rng *r)
{
	return (uint32_t)(rng_chance(r, 300) ? rng_range(r, 1, 4) : rng_range(r, 4, 64));
}

static struct simcq *
cq_new(struct sim *s, struct host *h)
{
	struct simcq *c = &s->cq[s->n_cqs];

	memset(c, 0, sizeof(*c));
	c->host = h;
	c->period = rng_chance(&s->rng, 500) ? 500 : rng_range(&s->rng, 100, US(100));
	c->mode = rng_chance(&s->rng, 400) ? CQ_EVENT : CQ_POLL;
	c->next = c->mode == CQ_POLL ? s->now : SIM_NEVER;
	s->n_cqs++;
	return c;
}

static struct simcq *
cq_choose(struct sim *s, struct host *h)
{
	/* A third of them is shared. */
	for (unsigned int i = 0; i < s->n_cqs; i++)
		if (s->cq[i].host == h && s->cq[i].mode != CQ_EVENT_SOLICITED &&
			rng_chance(&s->rng, 200))
			return &s->cq[i];
	return cq_new(s, h);
}

static struct simsrq *
srq_choose(struct sim *s, struct host *h)
{
	for (unsigned int i = 0; i < s->n_srqs; i++)
		if (s->srq[i].host == h && rng_chance(&s->rng, 700))
			return &s->srq[i];
	if (s->n_srqs == SIM_SRQS)
		return NULL;
	memset(&s->srq[s->n_srqs], 0, sizeof(s->srq[0]));
	s->srq[s->n_srqs].host = h;
	return &s->srq[s->n_srqs++];
}

/* What a pair of ends has in common, and what each is by itself. */
static void
ep_choose(struct sim *s, struct ep *ep, struct host *h, enum vrb_mtu mtu)
{
	struct rng *r = &s->rng;
	struct vrb_qp_attr *a = &ep->attr;

	ep->sim = s;
	ep->host = h;
	ep->idx = (unsigned int)(ep - s->ep);
	ep->rng = rng_fork(r);
	ep->mtu = mtu_bytes(mtu);
	ep->max_sge = (uint32_t)(rng_chance(r, 300)
					 ? 1
					 : rng_range(r, 1, rng_chance(r, 100) ? VRB_MAX_SGE : 5));
	ep->max_recv_sge = (uint32_t)(rng_chance(r, 300) ? 1 : rng_range(r, 1, 6));
	ep->max_inline = (uint32_t)(rng_chance(r, 500) ? 0 : rng_below(r, 300));
	ep->sig_all = rng_chance(r, 150);
	ep->drains = rng_chance(r, 150);
	ep->gap = rng_chance(r, 300) ? 200 : rng_range(r, 200, US(60));
	ep->next = s->now + rng_below(r, ep->gap);
	ep->max_send = (uint32_t)rng_range(r, 0, s->big ? 300000 : 4 * ep->mtu);
	ep->max_len = (uint32_t)rng_range(r, 1, s->big ? 4000000 : 6 * ep->mtu);
	ep->n_ops = (uint32_t)rng_range(r, s->big ? 2 : 10, s->big ? 12 : 120);
	ep->last_progress = s->now;
	a->path_mtu = mtu;
	/* Often just before it wraps. */
	a->sq_psn = (uint32_t)(rng_chance(r, 500) ? 0xffffff - rng_below(r, 64)
						  : rng_below(r, 1 << 24));
	a->access = VRB_ACCESS_REMOTE;
	a->max_rd_atomic = (uint8_t)rng_range(r, 1, rng_chance(r, 300) ? 128 : 4);
	a->min_rnr_timer = (uint8_t)(rng_chance(r, 100) ? rng_below(r, 32) : rng_range(r, 1, 14));
	a->timeout = (uint8_t)rng_range(r, s->prof->timeout_lo, s->prof->timeout_hi);
	a->retry_cnt = 7;
	a->rnr_retry = 7;
	a->port_num = 1;
	a->av.hop_limit = 64;
	a->av.tclass = (uint8_t)(rng_chance(r, 200) ? rng_below(r, 256) : 0);
	a->av.flow_label = (uint32_t)(rng_chance(r, 200) ? rng_below(r, 1 << 20) : 0);
}

static void
ep_pair(struct sim *s, struct ep *a, struct ep *b)
{
	uint8_t gid = (uint8_t)(rng_chance(&s->rng, 300) ? 1 : 0);
	struct ep *ends[2] = {a, b};

	a->peer = b;
	b->peer = a;
	a->attr.rq_psn = b->attr.sq_psn;
	b->attr.rq_psn = a->attr.sq_psn;
	a->attr.max_dest_rd_atomic =
		(uint8_t)(rng_chance(&s->rng, 500) ? b->attr.max_rd_atomic : 128);
	b->attr.max_dest_rd_atomic =
		(uint8_t)(rng_chance(&s->rng, 500) ? a->attr.max_rd_atomic : 128);
	if (a->host == b->host)
		a->host->loopback = true;
	for (unsigned int i = 0; i < 2; i++) {
		struct vrb_av *av = &ends[i]->attr.av;
		unsigned int to = ends[i]->peer->host->idx + 1;

		av->sgid_index = gid;
		memcpy(av->dmac, (uint8_t[]){2, 0, 0, 0, 0, to}, 6);
		memset(av->dgid.raw, 0, 16);
		if (gid == 0)
			memcpy(av->dgid.raw + 10, (uint8_t[]){0xff, 0xff, 10, 0, 0, to}, 6);
		else
			memcpy(av->dgid.raw,
				(uint8_t[]){0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0,
					to},
				16);
	}
}

/* Which CQs and SRQ an end uses; they are made once it is known how large they have to be. */
static void
ep_queues(struct sim *s, struct ep *ep)
{
	ep->scq = cq_choose(s, ep->host);
	ep->srq = rng_chance(&s->rng, 250) && ep->fault != FAULT_RECV_LKEY && ep->fault != FAULT_RNR
			  ? srq_choose(s, ep->host)
			  : NULL;
	if (ep->srq != NULL && ep->srq->q.cq != NULL) {
		ep->rcq = ep->srq->q.cq;
	} else {
		ep->rcq = cq_choose(s, ep->host);
		if (ep->srq != NULL)
			ep->srq->q.cq = ep->rcq;
	}
	ep->scq->users++;
	if (ep->srq == NULL || ep->srq->q.len == 0)
		ep->rcq->users++;
	ep->rq.len = RTE_MAX(ep->peer->max_send, 64u) + 1;
	ep->rq.max_sge = ep->max_recv_sge;
	if (ep->srq != NULL) {
		ep->srq->q.len = RTE_MAX(ep->srq->q.len, ep->rq.len);
		ep->srq->q.n += ep->peer->n_ops;
	}
	/* A CQ of its own for receives can wait for solicited ones only, when all are. */
	if (ep->srq == NULL && rng_chance(&s->rng, 150)) {
		ep->rcq->users--;
		ep->rcq = cq_new(s, ep->host);
		ep->rcq->users++;
		ep->rcq->mode = CQ_EVENT_SOLICITED;
		ep->rcq->next = SIM_NEVER;
		ep->peer->all_solicited = true;
	}
}

static int
cqs_create(struct sim *s)
{
	for (unsigned int i = 0; i < s->n_cqs; i++) {
		struct simcq *c = &s->cq[i];
		int rc;

		c->quota = (uint32_t)rng_range(&s->rng, 2, rng_chance(&s->rng, 500) ? 8 : 80);
		c->users = RTE_MAX(c->users, 1u);
		/* What a queue pair took with it when it was destroyed may be posted once more. */
		c->least = c->quota * c->users + (s->prof->fault ? SIM_EPS : 0);
		c->size = c->least;
		rc = vrb_cq_create(c->host->e, c->size, c, &c->cq);
		if (rc < 0)
			return rc;
		if (c->mode != CQ_POLL)
			vrb_cq_arm(c->cq, c->mode == CQ_EVENT_SOLICITED);
	}
	return 0;
}

static int
srqs_create(struct sim *s)
{
	for (unsigned int i = 0; i < s->n_srqs; i++) {
		struct simsrq *q = &s->srq[i];
		uint32_t wr = (uint32_t)rng_range(&s->rng, 1, 32);
		int rc;

		q->q.max_sge = q->max_sge = (uint32_t)rng_range(&s->rng, 1, 5);
		rc = vrb_srq_create(q->host->e, q->host->pd, &wr, &q->max_sge, q, &q->srq);
		if (rc < 0)
			return rc;
		arena_init(s, &q->arena, s->big ? 24 << 20 : 2 << 20);
		rc = arena_register(s, &q->arena, q->host, q->host->pd, VRB_ACCESS_LOCAL_WRITE, 1);
		if (rc < 0)
			return rc;
		recvq_init(s, &q->q, &q->srq->rq, &q->arena, q->q.cq, ID_SRQ | i, q->q.n + 64);
	}
	return 0;
}

static int
ep_memory(struct sim *s, struct ep *ep)
{
	struct host *h = ep->host;
	int rc;

	arena_init(s, &ep->local, s->big ? 48 << 20 : 4 << 20);
	arena_init(s, &ep->target, s->big ? 32 << 20 : 2 << 20);
	arena_init(s, &ep->naked, 64 << 10);
	rc = arena_register(
		s, &ep->local, h, h->pd, VRB_ACCESS_LOCAL_WRITE, rng_chance(&s->rng, 500) ? 2 : 1);
	if (rc == 0)
		rc = arena_register(s, &ep->target, h, h->pd, ALL_REMOTE | VRB_ACCESS_MW_BIND,
			rng_chance(&s->rng, 500) ? 2 : 1);
	if (rc == 0)
		rc = arena_register(s, &ep->naked, h, h->pd, VRB_ACCESS_LOCAL_WRITE, 1);
	return rc;
}

struct range *
range_new(struct ep *ep, uint32_t len)
{
	struct range *g = mem_model(sizeof(*g));

	g->p = arena_take(&ep->peer->target, &ep->rng, len, 1);
	if (g->p == NULL)
		return NULL;
	g->len = len;
	g->tag = rng_u64(&ep->rng);
	pattern_fill(g->p, len, g->tag, 0);
	mem_forget(g->p, len);
	return g;
}

/* Memory at the other end: a source of READs, counters, and windows there that this end may use. */
static int
ep_remote(struct ep *ep)
{
	struct ep *peer = ep->peer;

	ep->source = range_new(ep, ep->max_len);
	if (ep->source == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < SIM_COUNTERS; i++) {
		struct counter *c = &ep->ctr[i];

		c->p = arena_take(&peer->target, &ep->rng, 8, 8);
		if (c->p == NULL)
			return -ENOMEM;
		c->value = rng_u64(&ep->rng);
		memcpy(c->p, &c->value, 8);
		mem_forget(c->p, 8);
	}
	arena_take(&peer->naked, &ep->rng, 1024, 1);
	peer->n_win =
		(unsigned int)rng_range(&ep->rng, peer->fault == FAULT_BIND ? 1 : 0, SIM_WINDOWS);
	for (unsigned int i = 0; i < peer->n_win; i++) {
		struct window *w = &peer->win[i];
		int rc = vrb_mw_alloc(peer->host->e, peer->host->pd, 2, &w->mw);

		if (rc < 0)
			return rc;
		w->range = range_new(
			ep, (uint32_t)rng_range(&ep->rng, 1, RTE_MIN(ep->max_len, 8192u)));
		if (w->range == NULL)
			return -ENOMEM;
		w->range->win = w;
		w->range->next = ep->ranges;
		ep->ranges = w->range;
	}
	return 0;
}

static int
ep_create(struct sim *s, struct ep *ep)
{
	struct vrb_qp_init init = {
		.type = VRB_QPT_RC,
		.pd = ep->host->pd,
		.send_cq = ep->scq->cq,
		.recv_cq = ep->rcq->cq,
		.srq = ep->srq != NULL ? ep->srq->srq : NULL,
		.max_send_wr = some_depth(&s->rng),
		.max_recv_wr = ep->srq != NULL ? 0 : some_depth(&s->rng),
		.max_send_sge = ep->max_sge,
		.max_recv_sge = ep->srq != NULL ? 0 : ep->max_recv_sge,
		.max_inline = ep->max_inline,
		.sig_all = ep->sig_all,
		.user = ep,
	};
	int rc = vrb_qp_create(ep->host->e, &init, &ep->qp);

	if (rc < 0)
		return rc;
	if (init.max_send_sge < ep->max_sge || init.max_inline < ep->max_inline)
		sim_fail(s, "a queue pair got less than it asked for");
	ep->qpn = vrb_qp_num(ep->qp);
	ep->depth = vrb_qp_sq(ep->qp)->max_wr;
	ep->ops = mem_model(ep->n_ops * sizeof(*ep->ops));
	if (ep->srq == NULL) {
		ep->rq.ep = ep;
		recvq_init(s, &ep->rq, vrb_qp_rq(ep->qp), &ep->local, ep->rcq, ID_RECV | ep->idx,
			ep->peer->n_ops + 64);
	}
	return 0;
}

int
ep_connect(struct ep *ep)
{
	struct vrb_qp_attr a = ep->attr;
	uint64_t now = ep->sim->now;
	int rc;

	a.dest_qpn = ep->peer->qpn;
	a.state = VRB_QPS_INIT;
	rc = vrb_qp_modify(ep->qp, &a,
		VRB_QP_STATE | VRB_QP_PKEY_INDEX | VRB_QP_PORT | VRB_QP_ACCESS_FLAGS, now);
	if (rc < 0)
		return rc;
	a.state = VRB_QPS_RTR;
	rc = vrb_qp_modify(ep->qp, &a,
		VRB_QP_STATE | VRB_QP_AV | VRB_QP_PATH_MTU | VRB_QP_DEST_QPN | VRB_QP_RQ_PSN |
			VRB_QP_MAX_DEST_RD_ATOMIC | VRB_QP_MIN_RNR_TIMER,
		now);
	if (rc < 0)
		return rc;
	a.state = VRB_QPS_RTS;
	return vrb_qp_modify(ep->qp, &a,
		VRB_QP_STATE | VRB_QP_SQ_PSN | VRB_QP_TIMEOUT | VRB_QP_RETRY_CNT |
			VRB_QP_RNR_RETRY | VRB_QP_MAX_QP_RD_ATOMIC,
		now);
}

int
ep_to_error(struct ep *ep)
{
	struct vrb_qp_attr a = {.state = VRB_QPS_ERR};

	return vrb_qp_modify(ep->qp, &a, VRB_QP_STATE, ep->sim->now);
}

void
target_name(struct ep *ep, const struct range *g, uint32_t off, uint64_t *va, uint32_t *rkey)
{
	const struct arena *a = &ep->peer->target;
	const struct vrb_mr *mr = a->mr[rng_below(&ep->rng, a->n_mr)];

	if (g->win != NULL) {
		*rkey = g->win->rkey;
		*va = (g->win->zero_based ? 0 : (uintptr_t)g->p) + off;
		return;
	}
	*rkey = mr->rkey;
	*va = mr->iova + (uint64_t)(g->p - a->base) + off;
}

static void
connections_choose(struct sim *s)
{
	unsigned int n = (unsigned int)rng_range(&s->rng, 1, s->big ? 2 : SIM_EPS / 2);

	while (n-- > 0) {
		struct host *a = &s->host[rng_below(&s->rng, s->n_hosts)];
		struct host *b =
			rng_chance(&s->rng, 150) ? a : &s->host[rng_below(&s->rng, s->n_hosts)];
		enum vrb_mtu mtu = (enum vrb_mtu)rng_range(&s->rng, VRB_MTU_256, VRB_MTU_4096);
		struct ep *x = &s->ep[s->n_eps++];

		memset(x, 0, sizeof(*x));
		ep_choose(s, x, a, mtu);
		if (a == b && rng_chance(&s->rng, 300)) {
			ep_pair(s, x, x);
		} else {
			struct ep *y = &s->ep[s->n_eps++];

			memset(y, 0, sizeof(*y));
			ep_choose(s, y, b, mtu);
			ep_pair(s, x, y);
		}
		fault_choose(s, x, x->peer);
	}
}

int
eps_build(struct sim *s)
{
	int rc = 0;

	connections_choose(s);
	for (unsigned int i = 0; i < s->n_eps; i++)
		ep_queues(s, &s->ep[i]);
	for (unsigned int i = 0; i < s->n_hosts && rc == 0; i++)
		rc = vrb_pd_create(s->host[i].e, &s->host[i].pd);
	if (rc == 0)
		rc = cqs_create(s);
	if (rc == 0)
		rc = srqs_create(s);
	for (unsigned int i = 0; i < s->n_eps && rc == 0; i++) {
		rc = ep_memory(s, &s->ep[i]);
		if (rc == 0)
			rc = ep_create(s, &s->ep[i]);
	}
	for (unsigned int i = 0; i < s->n_eps && rc == 0; i++)
		rc = ep_remote(&s->ep[i]);
	for (unsigned int i = 0; i < s->n_eps && rc == 0; i++)
		rc = ep_connect(&s->ep[i]);
	return rc;
}

static void
arena_release(struct sim *s, struct arena *a, struct host *h)
{
	for (unsigned int i = 0; i < a->n_mr; i++) {
		int rc = vrb_mr_dereg(h->e, a->mr[i]);

		if (rc < 0)
			sim_fail(s, "a memory region cannot be deregistered: %s", strerror(-rc));
	}
}

static void
ep_destroy(struct sim *s, struct ep *ep)
{
	if (ep->qp != NULL && vrb_cq_destroy(ep->host->e, ep->scq->cq) != -EBUSY)
		sim_fail(s, "a CQ was destroyed under a queue pair");
	if (s->failed)
		return;
	if (ep->qp != NULL)
		vrb_qp_destroy(ep->qp);
	for (unsigned int i = 0; i < ep->n_win; i++)
		vrb_mw_free(ep->host->e, ep->win[i].mw);
	arena_release(s, &ep->local, ep->host);
	arena_release(s, &ep->target, ep->host);
	arena_release(s, &ep->naked, ep->host);
}

void
eps_destroy(struct sim *s)
{
	for (unsigned int i = 0; i < s->n_eps && !s->failed; i++)
		ep_destroy(s, &s->ep[i]);
	for (unsigned int i = 0; i < s->n_srqs && !s->failed; i++) {
		if (vrb_srq_destroy(s->srq[i].srq) < 0)
			sim_fail(s, "SRQ %u cannot be destroyed", i);
		arena_release(s, &s->srq[i].arena, s->srq[i].host);
	}
	for (unsigned int i = 0; i < s->n_cqs && !s->failed; i++)
		if (vrb_cq_destroy(s->cq[i].host->e, s->cq[i].cq) < 0)
			sim_fail(s, "CQ %u cannot be destroyed", i);
	for (unsigned int i = 0; i < s->n_hosts && !s->failed; i++)
		if (vrb_pd_destroy(s->host[i].e, s->host[i].pd) < 0)
			sim_fail(s, "the protection domain of host %u is still in use", i);
}
