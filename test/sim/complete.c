/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions: polled in different ways, and each compared with what the model expects next.
 */
#include <string.h>

#include <rte_common.h>

#include "sim.h"

static const uint32_t wc_opcode[VRB_WR_OPCODES] = {
	[VRB_WR_RDMA_WRITE] = VRB_WC_RDMA_WRITE,
	[VRB_WR_RDMA_WRITE_WITH_IMM] = VRB_WC_RDMA_WRITE,
	[VRB_WR_SEND] = VRB_WC_SEND,
	[VRB_WR_SEND_WITH_IMM] = VRB_WC_SEND,
	[VRB_WR_SEND_WITH_INV] = VRB_WC_SEND,
	[VRB_WR_RDMA_READ] = VRB_WC_RDMA_READ,
	[VRB_WR_ATOMIC_CMP_AND_SWP] = VRB_WC_COMP_SWAP,
	[VRB_WR_ATOMIC_FETCH_AND_ADD] = VRB_WC_FETCH_ADD,
	[VRB_WR_ATOMIC_WRITE] = VRB_WC_ATOMIC_WRITE,
	[VRB_WR_LOCAL_INV] = VRB_WC_LOCAL_INV,
	[VRB_WR_BIND_MW] = VRB_WC_BIND_MW,
};

/* ---- send queue ---- */

/* Contents of a range, unless a later WRITE to it was posted meanwhile. */
static void
check_range(struct ep *ep, const struct op *op, const char *when)
{
	long bad;

	if (op->range->version != op->version)
		return;
	bad = pattern_check(op->range->p, op->len, op->tag, 0);
	if (bad >= 0)
		sim_fail(ep->sim, "end %u, op %u (WRITE of %u bytes): byte %ld is not in place %s",
			ep->idx, op->idx, op->len, bad, when);
}

static void
finish_write(struct ep *ep, struct op *op)
{
	struct range *g = op->range;

	check_range(ep, op, "when the WRITE completes");
	/* A duplicate that comes late and is executed again shows. */
	if (g->version == op->version && g->readers == 0 && rng_chance(&ep->rng, 500) &&
		!ep_faulty(ep)) {
		g->tag = rng_u64(&ep->rng);
		g->version++;
		pattern_fill(g->p, g->len, g->tag, 0);
		mem_forget(g->p, g->len);
	}
}

static void
finish_read(struct ep *ep, struct op *op)
{
	long bad = buf_check(&op->buf, op->len, op->tag, op->range_off);

	if (bad >= 0)
		sim_fail(ep->sim, "end %u, op %u (READ of %u bytes): byte %ld is wrong", ep->idx,
			op->idx, op->len, bad);
	op->range->readers--;
	ep->reads--;
}

static void
finish_atomic(struct ep *ep, struct op *op)
{
	uint64_t old;

	memcpy(&old, op->buf.piece[0].p, 8);
	if (old != op->old)
		sim_fail(ep->sim, "end %u, op %u (atomic): the old value is %llx instead of %llx",
			ep->idx, op->idx, (unsigned long long)old, (unsigned long long)op->old);
	ep->reads--;
}

/* What it has stored is seen unless something later was posted to the same place. */
static void
finish_atomic_write(struct ep *ep, struct op *op)
{
	uint64_t value;

	pattern_fill((uint8_t *)&value, 8, op->tag, 0);
	if (op->ctr->value == value && memcmp(op->ctr->p, &value, 8) != 0)
		sim_fail(ep->sim, "end %u, op %u (ATOMIC WRITE): the value is not in place",
			ep->idx, op->idx);
	ep->reads--;
}

static void
op_finish(struct ep *ep, struct op *op)
{
	op->done = true;
	ep->send_ok++;
	switch (op->opcode) {
	case VRB_WR_RDMA_WRITE:
	case VRB_WR_RDMA_WRITE_WITH_IMM:
		finish_write(ep, op);
		break;
	case VRB_WR_RDMA_READ:
		finish_read(ep, op);
		break;
	case VRB_WR_ATOMIC_CMP_AND_SWP:
	case VRB_WR_ATOMIC_FETCH_AND_ADD:
		finish_atomic(ep, op);
		break;
	case VRB_WR_ATOMIC_WRITE:
		finish_atomic_write(ep, op);
		break;
	case VRB_WR_BIND_MW:
		op->win->state = WIN_BOUND;
		op->win->mw->rkey = op->win->rkey;
		break;
	case VRB_WR_LOCAL_INV:
		op->win->state = WIN_FREE;
		break;
	default:
		break;
	}
	if (op->range != NULL && op->win != NULL)
		op->win->users--;
	/* From here on the engine neither reads nor writes the buffer. */
	buf_scribble(&op->buf, &ep->rng);
}

static void
send_ok(struct ep *ep, struct op *op, const struct vrb_cqe *cqe)
{
	struct sim *s = ep->sim;

	if (ep->send_failed)
		sim_fail(s, "end %u, op %u succeeded after an earlier one had failed", ep->idx,
			op->idx);
	else if (op->bad)
		sim_fail(s, "end %u, op %u succeeded, but was meant to fail (%s)", ep->idx, op->idx,
			fault_name(ep->fault));
	else if (!(op->flags & VRB_SEND_SIGNALED) && !ep->sig_all)
		sim_fail(s, "end %u, op %u completed though unsignalled", ep->idx, op->idx);
	else if (cqe->opcode != wc_opcode[op->opcode])
		sim_fail(s, "end %u, op %u: completion has opcode %u", ep->idx, op->idx,
			cqe->opcode);
	else if ((op->opcode == VRB_WR_RDMA_READ || op->ctr != NULL) && cqe->byte_len != op->len)
		sim_fail(s, "end %u, op %u: completion says %u bytes", ep->idx, op->idx,
			cqe->byte_len);
	else if (cqe->wc_flags & (VRB_WC_WITH_IMM | VRB_WC_WITH_INV))
		sim_fail(s, "end %u, op %u: completion has flags %x", ep->idx, op->idx,
			cqe->wc_flags);
	else
		op_finish(ep, op);
}

static void
send_error(struct ep *ep, struct op *op, const struct vrb_cqe *cqe)
{
	struct sim *s = ep->sim;

	if (ep->send_failed) {
		if (cqe->status != VRB_WC_WR_FLUSH_ERR &&
			!(op->bad && fault_allows_send(ep, op, cqe->status)))
			sim_fail(s, "end %u, op %u: status %u behind a failed one", ep->idx,
				op->idx, cqe->status);
		return;
	}
	if (!fault_allows_send(ep, op, cqe->status))
		sim_fail(s, "end %u, op %u (opcode %u): status %u, which has no reason (%s)",
			ep->idx, op->idx, op->opcode, cqe->status, fault_name(ep->fault));
	ep->send_failed = true;
	ep->fail_time = s->now;
	op->status_seen = cqe->status;
}

static void
handle_send(struct ep *ep, uint32_t idx, const struct vrb_cqe *cqe)
{
	struct sim *s = ep->sim;

	if (ep->gone || idx < ep->completed || idx >= ep->posted) {
		sim_fail(s, "end %u: completion of op %u, but %u to %u are outstanding%s", ep->idx,
			idx, ep->completed, ep->posted,
			ep->gone ? " of a queue pair that is gone" : "");
		return;
	}
	while (ep->completed < idx && !s->failed) {
		struct op *op = &ep->ops[ep->completed];

		/* Passed over: only unsignalled ones that succeeded. */
		if ((op->flags & VRB_SEND_SIGNALED) || ep->send_failed || op->bad)
			sim_fail(s, "end %u: op %u completed, but op %u did not", ep->idx, idx,
				op->idx);
		else
			op_finish(ep, op);
		ep->completed++;
	}
	if (s->failed)
		return;
	if (cqe->status == VRB_WC_SUCCESS)
		send_ok(ep, &ep->ops[idx], cqe);
	else
		send_error(ep, &ep->ops[idx], cqe);
	ep->completed++;
	ep->last_progress = s->now;
	if (ep->next == SIM_NEVER && ep->posted < ep->n_ops)
		ep->next = s->now + rng_below(&ep->rng, ep->gap);
}

/* ---- receive queue ---- */

/* All WRITEs that the peer posted before this message are in place: what programs rely on. */
static void
check_writes_before(struct ep *peer, uint32_t idx)
{
	for (uint32_t i = peer->completed; i < idx; i++) {
		const struct op *op = &peer->ops[i];

		if (op->opcode == VRB_WR_RDMA_WRITE || op->opcode == VRB_WR_RDMA_WRITE_WITH_IMM)
			check_range(peer, op, "when a later message arrives");
	}
}

static void
check_recv_fields(struct ep *ep, const struct op *op, const struct vrb_cqe *cqe)
{
	struct sim *s = ep->sim;
	bool write = op->opcode == VRB_WR_RDMA_WRITE_WITH_IMM;
	uint32_t want_flags = 0;

	if (write || op->opcode == VRB_WR_SEND_WITH_IMM)
		want_flags = VRB_WC_WITH_IMM;
	if (op->opcode == VRB_WR_SEND_WITH_INV)
		want_flags = VRB_WC_WITH_INV;
	if (cqe->opcode != (write ? VRB_WC_RECV_RDMA_WITH_IMM : VRB_WC_RECV))
		sim_fail(s, "end %u: receive completion has opcode %u", ep->idx, cqe->opcode);
	else if (cqe->byte_len != op->len)
		sim_fail(s, "end %u: received %u bytes instead of %u", ep->idx, cqe->byte_len,
			op->len);
	else if ((cqe->wc_flags & (VRB_WC_WITH_IMM | VRB_WC_WITH_INV)) != want_flags)
		sim_fail(s, "end %u: receive completion has flags %x", ep->idx, cqe->wc_flags);
	else if (want_flags == VRB_WC_WITH_IMM && cqe->imm != op->imm)
		sim_fail(s, "end %u: immediate data %x instead of %x", ep->idx, cqe->imm, op->imm);
	else if (want_flags == VRB_WC_WITH_INV && cqe->imm != op->win->rkey)
		sim_fail(s, "end %u: invalidated key %x instead of %x", ep->idx, cqe->imm,
			op->win->rkey);
}

static void
check_recv_data(struct ep *ep, const struct op *op, const struct buf *b)
{
	bool write = op->opcode == VRB_WR_RDMA_WRITE_WITH_IMM;
	uint32_t len = write ? 0 : op->len;
	long bad = buf_check(b, len, op->tag, 0);

	if (bad >= 0)
		sim_fail(ep->sim,
			"end %u: byte %ld of a received message (op %u, %u bytes) is wrong",
			ep->idx, bad, op->idx, op->len);
	else if (!buf_rest_untouched(b, len))
		sim_fail(ep->sim, "end %u: a receive buffer was written behind the message",
			ep->idx);
	if (write)
		check_range(ep->peer, op, "when its receive completes");
}

static void
recv_ok(struct ep *ep, struct recvq *q, uint32_t idx, const struct vrb_cqe *cqe)
{
	struct sim *s = ep->sim;
	struct ep *peer = ep->peer;
	struct op *op;

	while (ep->rx_next < peer->posted && !peer->ops[ep->rx_next].recv)
		ep->rx_next++;
	if (ep->rx_next == peer->posted || ep->recv_failed) {
		sim_fail(s, "end %u: a receive completed, but nothing was sent", ep->idx);
		return;
	}
	op = &peer->ops[ep->rx_next++];
	if (op->bad)
		sim_fail(s, "end %u: received op %u, which was meant to fail", ep->idx, op->idx);
	check_recv_fields(ep, op, cqe);
	check_recv_data(ep, op, &q->recv[idx].buf);
	check_writes_before(peer, op->idx);
	ep->rx_count++;
	if (op->opcode == VRB_WR_SEND_WITH_INV)
		op->win->state = WIN_FREE;
	buf_scribble(&q->recv[idx].buf, &ep->rng);
	q->spare[q->n_spare++] = q->recv[idx].buf;
}

static void
recv_error(struct ep *ep, struct recvq *q, uint32_t idx, const struct vrb_cqe *cqe)
{
	struct sim *s = ep->sim;

	if (ep->recv_failed ? cqe->status != VRB_WC_WR_FLUSH_ERR
			    : !fault_allows_recv(ep, cqe->status))
		sim_fail(s, "end %u: a receive ends with status %u, which has no reason (%s)",
			ep->idx, cqe->status, fault_name(ep->fault));
	/* An SRQ's receives stay there; only one that a message had begun to fill can be flushed.
	 */
	if (q != &ep->rq && ep->recv_failed)
		sim_fail(s, "end %u: more than one receive of an SRQ was flushed", ep->idx);
	ep->recv_failed = true;
	for (uint32_t i = 0; i < q->recv[idx].buf.n; i++)
		mem_forget(q->recv[idx].buf.piece[i].p, q->recv[idx].buf.piece[i].len);
}

static struct ep *
ep_of(struct sim *s, const struct simcq *c, const struct vrb_cqe *cqe)
{
	for (unsigned int i = 0; i < s->n_eps; i++)
		if (s->ep[i].rcq == c && s->ep[i].qpn == cqe->qp_num)
			return &s->ep[i];
	return NULL;
}

static void
handle_recv(struct sim *s, const struct simcq *c, struct recvq *q, bool shared, uint32_t idx,
	const struct vrb_cqe *cqe)
{
	struct ep *ep = ep_of(s, c, cqe);

	if (ep == NULL || (shared ? ep->srq == NULL || &ep->srq->q != q : &ep->rq != q)) {
		sim_fail(s, "a receive completed for the wrong queue pair %x", cqe->qp_num);
		return;
	}
	if (idx >= q->posted || q->recv[idx].done || (!shared && idx != q->completed) || ep->gone) {
		sim_fail(s, "end %u: receive %u completed, but %u to %u are outstanding%s", ep->idx,
			idx, q->completed, q->posted,
			ep->gone ? " of a queue pair that is gone" : "");
		return;
	}
	q->recv[idx].done = true;
	q->completed++;
	if (cqe->status == VRB_WC_SUCCESS)
		recv_ok(ep, q, idx, cqe);
	else
		recv_error(ep, q, idx, cqe);
	if (q->next == SIM_NEVER && q->posted < RTE_MIN(q->n, q->stop_at))
		q->next = s->now + rng_below(&q->rng, q->delay);
}

/* ---- polling ---- */

static void
handle(struct sim *s, struct simcq *c, const struct vrb_cqe *cqe)
{
	uint64_t id = cqe->wr_id ^ s->salt;
	unsigned int who = (unsigned int)(id >> 32), n = who & 0xff;
	uint32_t idx = (uint32_t)id;

	sim_trace(s, "host %u: completion, status %u opcode %u len %u flags %x of %s %u, work %u",
		c->host->idx, cqe->status, cqe->opcode, cqe->byte_len, cqe->wc_flags,
		who < ID_RECV  ? "end"
		: who < ID_SRQ ? "receives of"
			       : "SRQ",
		n, idx);
	s->progress = s->now;
	if (cqe->timestamp > s->now)
		sim_fail(s, "a completion comes from the future");
	if ((who & ~0xffu) == ID_SEND && n < s->n_eps && s->ep[n].scq == c &&
		s->ep[n].qpn == cqe->qp_num && cqe->qp_user == &s->ep[n])
		handle_send(&s->ep[n], idx, cqe);
	else if ((who & ~0xffu) == ID_RECV && n < s->n_eps && cqe->qp_user == &s->ep[n])
		handle_recv(s, c, &s->ep[n].rq, false, idx, cqe);
	else if ((who & ~0xffu) == ID_SRQ && n < s->n_srqs)
		handle_recv(s, c, &s->srq[n].q, true, idx, cqe);
	else
		sim_fail(s,
			"a completion that belongs to nothing: wr_id %llx (salt %llx), queue pair "
			"%x",
			(unsigned long long)cqe->wr_id, (unsigned long long)s->salt, cqe->qp_num);
}

void
cq_poll(struct sim *s, struct simcq *c)
{
	uint32_t n = c->mode == CQ_POLL ? (uint32_t)rng_range(&s->rng, 1, 16) : UINT32_MAX;

	c->next = SIM_NEVER;
	if (c->mode != CQ_POLL) {
		/* As a program does: first ask for the next event, then take what is there. */
		c->notified = false;
		vrb_cq_arm(c->cq, c->mode == CQ_EVENT_SOLICITED);
	}
	rte_spinlock_lock(&c->cq->lock);
	while (n-- > 0 && !s->failed) {
		struct vrb_cqe *slot = vrb_cq_peek(c->cq), cqe;

		if (slot == NULL)
			break;
		cqe = *slot;
		vrb_cq_pop(c->cq);
		handle(s, c, &cqe);
	}
	rte_spinlock_unlock(&c->cq->lock);
}
