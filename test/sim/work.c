/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Send work requests: made up at random, with what has to come of each.
 *
 * Order within a queue pair is what makes results predictable: WRITEs to the same range, READs of
 * it and atomics on a counter come one after the other. What the transport does not order (a WRITE
 * behind a READ of the same bytes) is fenced, as a program would do it.
 */
#include <string.h>

#include <rte_common.h>

#include "sim.h"

#define BURST_MAX 6

static bool
takes_recv(uint8_t opcode)
{
	return opcode == VRB_WR_SEND || opcode == VRB_WR_SEND_WITH_IMM ||
	       opcode == VRB_WR_SEND_WITH_INV || opcode == VRB_WR_RDMA_WRITE_WITH_IMM;
}

/* Into the buffer, where others take data from it. */
static bool
brings_data(const struct op *op)
{
	return op->opcode == VRB_WR_RDMA_READ ||
	       (op->ctr != NULL && op->opcode != VRB_WR_ATOMIC_WRITE);
}

static uint8_t
opcode_choose(struct ep *ep)
{
	static const uint8_t mix[] = {
		VRB_WR_SEND,
		VRB_WR_SEND,
		VRB_WR_SEND,
		VRB_WR_SEND_WITH_IMM,
		VRB_WR_SEND_WITH_INV,
		VRB_WR_SEND_WITH_INV,
		VRB_WR_RDMA_WRITE,
		VRB_WR_RDMA_WRITE,
		VRB_WR_RDMA_WRITE,
		VRB_WR_RDMA_WRITE_WITH_IMM,
		VRB_WR_RDMA_READ,
		VRB_WR_RDMA_READ,
		VRB_WR_RDMA_READ,
		VRB_WR_ATOMIC_CMP_AND_SWP,
		VRB_WR_ATOMIC_FETCH_AND_ADD,
		VRB_WR_ATOMIC_FETCH_AND_ADD,
		VRB_WR_ATOMIC_WRITE,
		VRB_WR_LOCAL_INV,
		VRB_WR_BIND_MW,
		VRB_WR_BIND_MW,
	};

	return mix[rng_below(&ep->rng, sizeof(mix))];
}

/* Sizes around what is special: nothing, one byte, multiples of the MTU. */
static uint32_t
length_choose(struct ep *ep, uint32_t max)
{
	struct rng *r = &ep->rng;
	uint64_t len;

	switch (rng_below(r, 6)) {
	case 0:
		len = rng_below(r, 4);
		break;
	case 1:
	case 2:
		len = rng_below(r, 300);
		break;
	case 3:
		len = rng_range(r, 1, 4) * ep->mtu + rng_below(r, 5) - 2;
		break;
	default:
		len = rng_below(r, (uint64_t)max + 1);
	}
	return (uint32_t)RTE_MIN(len, max);
}

static struct window *
window_find(struct ep *owner, int state)
{
	unsigned int first = (unsigned int)rng_below(&owner->rng, SIM_WINDOWS);

	for (unsigned int i = 0; i < owner->n_win; i++) {
		struct window *w = &owner->win[(first + i) % owner->n_win];

		if ((int)w->state == state)
			return w;
	}
	return NULL;
}

static bool
usable(const struct range *g)
{
	return g->win == NULL || g->win->state == WIN_BOUND;
}

static struct range *
range_find(struct ep *ep)
{
	unsigned int skip = (unsigned int)rng_below(&ep->rng, 8);
	struct range *found = NULL;

	for (struct range *g = ep->ranges; g != NULL; g = g->next) {
		if (!usable(g))
			continue;
		found = g;
		if (skip-- == 0)
			break;
	}
	return found;
}

static void
range_use(struct op *op, struct range *g)
{
	op->range = g;
	if (g->win != NULL) {
		op->win = g->win;
		g->win->users++;
	}
}

static bool
make_write(struct ep *ep, struct op *op)
{
	struct range *g = rng_chance(&ep->rng, 500) ? range_find(ep) : NULL;

	if (g == NULL) {
		g = range_new(ep, length_choose(ep, ep->max_len));
		if (g == NULL)
			return false;
		g->next = ep->ranges;
		ep->ranges = g;
	}
	/* A READ that is repeated later would see what this WRITE puts there. */
	if (g->readers > 0)
		op->flags |= VRB_SEND_FENCE;
	op->len = g->len;
	if (op->len > ep->max_inline)
		op->flags &= ~VRB_SEND_INLINE;
	if (!(op->flags & VRB_SEND_INLINE) &&
		!buf_take(&op->buf, &ep->local, &ep->rng, op->len, ep->max_sge))
		return false;
	range_use(op, g);
	op->version = ++g->version;
	g->tag = op->tag;
	pattern_fill(shadow_of(g->p), g->len, g->tag, 0);
	return true;
}

static bool
make_read(struct ep *ep, struct op *op)
{
	struct range *g = rng_chance(&ep->rng, 500) ? range_find(ep) : NULL;

	if (g == NULL)
		g = ep->source;
	op->len = length_choose(ep, g->len);
	op->range_off = (uint32_t)rng_below(&ep->rng, g->len - op->len + 1);
	if (!buf_take(&op->buf, &ep->local, &ep->rng, op->len, ep->max_sge))
		return false;
	op->tag = g->tag;
	range_use(op, g);
	g->readers++;
	ep->reads++;
	return true;
}

static bool
make_atomic(struct ep *ep, struct op *op)
{
	struct counter *c = &ep->ctr[rng_below(&ep->rng, SIM_COUNTERS)];
	bool write = op->opcode == VRB_WR_ATOMIC_WRITE;

	op->len = 8;
	if (op->len > ep->max_inline)
		op->flags &= ~VRB_SEND_INLINE;
	if (!(op->flags & VRB_SEND_INLINE) &&
		!buf_take(&op->buf, &ep->local, &ep->rng, 8, write ? ep->max_sge : 1))
		return false;
	op->ctr = c;
	op->old = c->value;
	op->tag = rng_u64(&ep->rng);
	if (write)
		pattern_fill((uint8_t *)&c->value, 8, op->tag, 0);
	else if (op->opcode == VRB_WR_ATOMIC_FETCH_AND_ADD)
		c->value += op->tag;
	else if (op->tag & 1) /* a compare-and-swap that finds what it expects */
		c->value = ~op->tag;
	memcpy(shadow_of(c->p), &c->value, 8);
	ep->reads++;
	return true;
}

static bool
make_send(struct ep *ep, struct op *op)
{
	if (op->opcode == VRB_WR_SEND_WITH_INV) {
		op->win = window_find(ep->peer, WIN_BOUND);
		if (op->win == NULL)
			return false;
		/* READs of it may have to be repeated. */
		if (ep->reads > 0)
			op->flags |= VRB_SEND_FENCE;
	}
	op->len = length_choose(ep, ep->max_send);
	if (!(op->flags & VRB_SEND_INLINE) &&
		!buf_take(&op->buf, &ep->local, &ep->rng, op->len, ep->max_sge))
		return false;
	if (op->opcode == VRB_WR_SEND_WITH_INV)
		op->win->state = WIN_CLOSING;
	return true;
}

static bool
make_local(struct ep *ep, struct op *op)
{
	bool bind = op->opcode == VRB_WR_BIND_MW;

	op->win = window_find(ep, bind ? WIN_FREE : WIN_BOUND);
	if (op->win == NULL || (!bind && op->win->users > 0))
		return false;
	op->win->state = bind ? WIN_BINDING : WIN_CLOSING;
	op->flags &= ~(VRB_SEND_INLINE | VRB_SEND_SOLICITED);
	if (bind) {
		op->win->rkey = (op->win->mw->rkey & ~0xffu) | ((op->win->mw->rkey + 1) & 0xff);
		op->win->zero_based = rng_chance(&ep->rng, 300);
	}
	return true;
}

static void
flags_choose(struct ep *ep, struct op *op)
{
	struct rng *r = &ep->rng;
	uint32_t limit = RTE_MIN(ep->depth, ep->scq->quota);

	if (rng_chance(r, 600) || ep->sig_all || ep->unsignaled + 2 >= limit ||
		op->idx + 1 == ep->n_ops)
		op->flags |= VRB_SEND_SIGNALED;
	if (rng_chance(r, 60))
		op->flags |= VRB_SEND_FENCE;
	if (takes_recv(op->opcode) && (ep->all_solicited || rng_chance(r, 200)))
		op->flags |= VRB_SEND_SOLICITED;
	if (ep->max_inline > 0 && rng_chance(r, 300) && op->opcode != VRB_WR_RDMA_READ &&
		op->opcode != VRB_WR_ATOMIC_CMP_AND_SWP &&
		op->opcode != VRB_WR_ATOMIC_FETCH_AND_ADD)
		op->flags |= VRB_SEND_INLINE;
}

static bool
make_body(struct ep *ep, struct op *op)
{
	switch (op->opcode) {
	case VRB_WR_RDMA_WRITE:
	case VRB_WR_RDMA_WRITE_WITH_IMM:
		return !(ep->avoid & VRB_ACCESS_REMOTE_WRITE) && make_write(ep, op);
	case VRB_WR_RDMA_READ:
		return !(ep->avoid & VRB_ACCESS_REMOTE_READ) && make_read(ep, op);
	case VRB_WR_ATOMIC_CMP_AND_SWP:
	case VRB_WR_ATOMIC_FETCH_AND_ADD:
		return !(ep->avoid & VRB_ACCESS_REMOTE_ATOMIC) && make_atomic(ep, op);
	case VRB_WR_ATOMIC_WRITE:
		return !(ep->avoid & VRB_ACCESS_REMOTE_WRITE) && make_atomic(ep, op);
	case VRB_WR_LOCAL_INV:
	case VRB_WR_BIND_MW:
		return make_local(ep, op);
	default:
		return make_send(ep, op);
	}
}

bool
op_make(struct ep *ep, struct op *op)
{
	uint32_t bad_len = UINT32_MAX, idx = ep->posted;
	uint32_t max_len = ep->max_len, max_send = ep->max_send, avoid = ep->avoid;
	bool ok;

	memset(op, 0, sizeof(*op));
	op->idx = idx;
	op->opcode = opcode_choose(ep);
	op->bad = fault_due(ep, &op->opcode, &bad_len);
	op->tag = rng_u64(&ep->rng);
	op->imm = (uint32_t)op->tag;
	flags_choose(ep, op);
	if (op->bad) {
		op->flags &= ~VRB_SEND_INLINE;
		ep->max_len = RTE_MAX(max_len, 64u);
		ep->max_send = RTE_MAX(max_send, 64u);
		ep->avoid = 0;
	}
	/* Inline data has a limit of its own. */
	if (op->flags & VRB_SEND_INLINE) {
		ep->max_len = RTE_MIN(ep->max_len, ep->max_inline);
		ep->max_send = RTE_MIN(ep->max_send, ep->max_inline);
	}
	ok = make_body(ep, op);
	ep->max_len = max_len;
	ep->max_send = max_send;
	ep->avoid = avoid;
	if (!ok || (op->bad && op->len == 0))
		return false;
	op->recv = takes_recv(op->opcode);
	return true;
}

static void
fill_bind(struct ep *ep, struct op *op, struct vrb_send_wqe *w)
{
	const struct range *g = op->win->range;

	w->bind.mw = op->win->mw;
	w->bind.mr = ep->target.mr[0];
	w->bind.addr = w->bind.mr->iova + (uint64_t)(g->p - ep->target.base);
	w->bind.length = g->len;
	w->bind.access = VRB_ACCESS_REMOTE | (op->win->zero_based ? VRB_ACCESS_ZERO_BASED : 0);
	w->bind.rkey = op->win->rkey;
}

static void
fill_data(struct op *op, struct vrb_send_wqe *w)
{
	w->length = op->len;
	if (op->flags & VRB_SEND_INLINE) {
		pattern_fill(w->data, op->len, op->tag, 0);
		return;
	}
	w->num_sge = (uint8_t)op->buf.n;
	for (uint32_t i = 0; i < op->buf.n; i++)
		((struct vrb_sge *)w->data)[i] = op->buf.piece[i].sge;
}

void
op_fill(struct ep *ep, struct op *op, struct vrb_send_wqe *w)
{
	memset(w, 0, sizeof(*w));
	w->wr_id = wr_id(ep->sim, ID_SEND | ep->idx, op->idx);
	w->opcode = op->opcode;
	w->flags = op->flags;
	w->imm = op->imm;
	switch (op->opcode) {
	case VRB_WR_BIND_MW:
		fill_bind(ep, op, w);
		return;
	case VRB_WR_LOCAL_INV:
		w->imm = op->win->rkey;
		return;
	case VRB_WR_SEND_WITH_INV:
		w->imm = op->win->rkey;
		break;
	case VRB_WR_ATOMIC_CMP_AND_SWP:
	case VRB_WR_ATOMIC_FETCH_AND_ADD:
	case VRB_WR_ATOMIC_WRITE: {
		const struct range r = {.p = op->ctr->p};

		/* Aligned under either address of the memory, or the first is taken. */
		do {
			target_name(ep, &r, 0, &w->remote_addr, &w->rkey);
		} while (w->remote_addr % 8 != 0);
		if (op->opcode == VRB_WR_ATOMIC_WRITE)
			break;
		w->atomic.compare_add = op->opcode == VRB_WR_ATOMIC_FETCH_AND_ADD ? op->tag
					: op->tag & 1				  ? op->old
										  : ~op->old;
		w->atomic.swap = ~op->tag;
		break;
	}
	default:
		break;
	}
	fill_data(op, w);
	if (op->range != NULL)
		target_name(ep, op->range, op->range_off, &w->remote_addr, &w->rkey);
	if (!brings_data(op))
		buf_fill(&op->buf, op->tag);
}

/* Counts, and what the trace says. */
static void
op_posted(struct ep *ep, const struct op *op)
{
	struct sim *s = ep->sim;

	ep->unsignaled = op->flags & VRB_SEND_SIGNALED ? 0 : ep->unsignaled + 1;
	ep->messages += op->recv;
	ep->posted++;
	ep->last_post = s->now;
	s->messages++;
	s->bytes += op->len;
	sim_trace(s, "end %u: posts %u, opcode %u, flags %x, %u bytes in %u pieces%s", ep->idx,
		op->idx, op->opcode, op->flags, op->len, op->buf.n,
		op->bad ? ", meant to fail" : "");
}

void
ep_post(struct ep *ep)
{
	struct vrb_sq *sq = vrb_qp_sq(ep->qp);
	uint32_t n = (uint32_t)rng_range(&ep->rng, 1, BURST_MAX), k = 0;

	ep->next = ep->sim->now + rng_range(&ep->rng, 1, 2 * ep->gap);
	if (ep->posted == ep->n_ops || ep->posted - ep->completed >= ep->scq->quota)
		ep->next = SIM_NEVER;
	rte_spinlock_lock(&sq->lock);
	while (k < n && ep->posted < ep->n_ops && ep->posted - ep->completed < ep->scq->quota) {
		struct vrb_send_wqe *w = vrb_sq_slot(sq, k);
		struct op *op = &ep->ops[ep->posted];
		int rc;

		if (w == NULL && ep->posted > ep->completed)
			ep->next = SIM_NEVER; /* a completion will tell */
		if (w == NULL || !op_make(ep, op))
			break;
		op_fill(ep, op, w);
		if (op->bad)
			fault_spoil(ep, op, w);
		rc = vrb_qp_check_send(ep->qp, w);
		if (rc < 0) {
			sim_fail(ep->sim, "end %u: a good work request (opcode %u) was refused: %s",
				ep->idx, op->opcode, strerror(-rc));
			break;
		}
		op_posted(ep, op);
		k++;
	}
	vrb_sq_commit(sq, k);
	rte_spinlock_unlock(&sq->lock);
	if (k == 0)
		return;
	if (rng_chance(&ep->rng, 500))
		vrb_engine_ring(ep->qp);
	else
		vrb_engine_schedule(ep->qp);
	/* A doorbell is taken up by the next vrb_engine_tx(), and that is to be called now. */
	ep->host->next = ep->sim->now;
}
