/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Things that go wrong on purpose, and what may come of them: which work request ends with which
 * status, at which end.
 */
#include <string.h>

#include <rte_common.h>

#include "sim.h"

#define NO_KEY 0x7f000000u /* no table is that large */

static const struct {
	const char *name;
	uint8_t opcode; /* of the work request that fails; it may be changed by fault_spoil() */
	uint8_t status; /* at the end that posted it */
	uint8_t recv_status; /* at the other end's receive queue */
	bool local; /* the other end notices nothing */
} faults[FAULTS] = {
	[FAULT_NONE] = {.name = "nothing goes wrong here"},
	[FAULT_RKEY] = {"unknown R_Key", VRB_WR_RDMA_WRITE, VRB_WC_REM_ACCESS_ERR,
		VRB_WC_WR_FLUSH_ERR, false},
	[FAULT_RANGE] = {"beyond the region", VRB_WR_RDMA_READ, VRB_WC_REM_ACCESS_ERR,
		VRB_WC_WR_FLUSH_ERR, false},
	[FAULT_RIGHTS] = {"right missing in the region", VRB_WR_RDMA_WRITE, VRB_WC_REM_ACCESS_ERR,
		VRB_WC_WR_FLUSH_ERR, false},
	[FAULT_QP_RIGHTS] = {"right missing in the queue pair", VRB_WR_RDMA_READ,
		VRB_WC_REM_INV_REQ_ERR, VRB_WC_WR_FLUSH_ERR, false},
	[FAULT_MISALIGNED] = {"misaligned atomic", VRB_WR_ATOMIC_FETCH_AND_ADD,
		VRB_WC_REM_INV_REQ_ERR, VRB_WC_WR_FLUSH_ERR, false},
	[FAULT_LONG_SEND] = {"SEND longer than the receive", VRB_WR_SEND, VRB_WC_REM_INV_REQ_ERR,
		VRB_WC_LOC_LEN_ERR, false},
	[FAULT_RECV_LKEY] = {"wrong L_Key in a receive", VRB_WR_SEND, VRB_WC_REM_OP_ERR,
		VRB_WC_LOC_PROT_ERR, false},
	[FAULT_SEND_LKEY] = {"wrong L_Key in a SEND", VRB_WR_SEND, VRB_WC_LOC_PROT_ERR,
		VRB_WC_WR_FLUSH_ERR, true},
	[FAULT_READ_LKEY] = {"wrong L_Key in a READ", VRB_WR_RDMA_READ, VRB_WC_LOC_PROT_ERR,
		VRB_WC_WR_FLUSH_ERR, true},
	[FAULT_STALE_WINDOW] = {"closed window", VRB_WR_RDMA_WRITE, VRB_WC_REM_ACCESS_ERR,
		VRB_WC_WR_FLUSH_ERR, false},
	[FAULT_BAD_INVALIDATE] = {"invalidate of a region", VRB_WR_SEND, VRB_WC_REM_ACCESS_ERR,
		VRB_WC_MW_BIND_ERR, false},
	[FAULT_BIND] = {"bind that is not allowed", VRB_WR_SEND, VRB_WC_MW_BIND_ERR,
		VRB_WC_WR_FLUSH_ERR, true},
	[FAULT_MODIFY_ERR] = {.name = "moved to ERR"},
	[FAULT_RESET] = {.name = "moved to RESET"},
	[FAULT_DESTROY] = {.name = "destroyed"},
	[FAULT_BLACKOUT] = {.name = "dead wire"},
	[FAULT_RNR] = {.name = "receives never posted"},
};

const char *
fault_name(enum fault f)
{
	return faults[f].name;
}

static void
choose_op_fault(struct sim *s, struct ep *a, struct ep *b)
{
	a->fault_at = (uint32_t)rng_below(&s->rng, a->n_ops);
	if (a->fault == FAULT_QP_RIGHTS) {
		static const uint32_t rights[] = {
			VRB_ACCESS_REMOTE_READ, VRB_ACCESS_REMOTE_WRITE, VRB_ACCESS_REMOTE_ATOMIC};

		a->avoid = rights[rng_below(&s->rng, RTE_DIM(rights))];
		b->attr.access &= ~a->avoid;
	}
	if (a->fault == FAULT_RECV_LKEY)
		b->rq.bad_at = RTE_MAX(a->fault_at, 1u); /* 0 stands for none */
	if (a->fault == FAULT_RECV_LKEY)
		a->fault_at = b->rq.bad_at;
}

void
fault_choose(struct sim *s, struct ep *a, struct ep *b)
{
	struct rng *r = &s->rng;

	if (s->prof->blackout && a->host != b->host) {
		a->fault = b->fault = FAULT_BLACKOUT;
		a->attr.retry_cnt = (uint8_t)rng_below(r, 8);
		b->attr.retry_cnt = (uint8_t)rng_below(r, 8);
		/* 0: no timer at all. */
		if (rng_chance(r, 100))
			a->attr.timeout = 0;
		return;
	}
	if (s->prof->rnr && a != b) {
		a->fault = b->fault = FAULT_RNR;
		a->culprit = true;
		a->attr.rnr_retry = (uint8_t)rng_below(r, 7);
		b->rq.stop_at = (uint32_t)rng_range(r, 1, a->n_ops);
		return;
	}
	if (a == b || !rng_chance(r, s->prof->fault))
		return;
	a->fault = b->fault = (enum fault)rng_range(r, FAULT_NONE + 1, FAULT_BLACKOUT - 1);
	a->culprit = true;
	if (a->fault < FAULT_OPS_END)
		choose_op_fault(s, a, b);
	else
		a->fault_at = (uint32_t)rng_below(r, a->n_ops);
}

bool
fault_due(const struct ep *ep, uint8_t *opcode, uint32_t *len)
{
	uint32_t at = ep->fault == FAULT_RECV_LKEY ? ep->messages : ep->posted;

	if (!ep->culprit || ep->fault >= FAULT_OPS_END || ep->struck || at != ep->fault_at)
		return false;
	*opcode = faults[ep->fault].opcode;
	if (ep->fault == FAULT_QP_RIGHTS && ep->avoid == VRB_ACCESS_REMOTE_WRITE)
		*opcode = ep->n_ops % 2 ? VRB_WR_ATOMIC_WRITE : VRB_WR_RDMA_WRITE;
	if (ep->fault == FAULT_MISALIGNED && ep->n_ops % 2)
		*opcode = VRB_WR_ATOMIC_WRITE;
	if (ep->fault == FAULT_QP_RIGHTS && ep->avoid == VRB_ACCESS_REMOTE_ATOMIC)
		*opcode = VRB_WR_ATOMIC_FETCH_AND_ADD;
	if (ep->fault == FAULT_RKEY && ep->n_ops % 3 == 0)
		*opcode = VRB_WR_RDMA_READ;
	if (ep->fault == FAULT_RKEY && ep->n_ops % 3 == 1)
		*opcode = VRB_WR_ATOMIC_CMP_AND_SWP;
	return true;
}

static void
spoil_remote(struct ep *ep, struct vrb_send_wqe *w)
{
	const struct vrb_mr *target = ep->peer->target.mr[0], *naked = ep->peer->naked.mr[0];

	switch (ep->fault) {
	case FAULT_RKEY:
		w->rkey ^= NO_KEY;
		break;
	case FAULT_RANGE:
		w->rkey = target->rkey;
		w->remote_addr = target->iova + target->length - w->length + 1;
		break;
	case FAULT_RIGHTS:
		w->rkey = naked->rkey;
		w->remote_addr = naked->iova + 64;
		break;
	case FAULT_STALE_WINDOW:
		w->rkey ^= 1; /* the key of the region, or of a window, as it was or will be */
		break;
	case FAULT_MISALIGNED:
		w->remote_addr += 4;
		break;
	default:
		break;
	}
}

/* A single piece that is longer than any receive of the other end. */
static void
spoil_length(struct ep *ep, struct op *op, struct vrb_send_wqe *w)
{
	struct vrb_sge *sge = (struct vrb_sge *)w->data;
	const struct recvq *q = ep->peer->srq != NULL ? &ep->peer->srq->q : &ep->peer->rq;

	sge->addr = ep->local.mr[0]->iova;
	sge->lkey = ep->local.mr[0]->lkey;
	sge->length = q->len + 201 + (uint32_t)rng_below(&ep->rng, 3000);
	w->num_sge = 1;
	w->length = op->len = sge->length;
	op->buf.n = 0;
}

void
fault_spoil(struct ep *ep, struct op *op, struct vrb_send_wqe *w)
{
	struct vrb_sge *sge = (struct vrb_sge *)w->data;

	ep->struck = true;
	op->status = faults[ep->fault].status;
	switch (ep->fault) {
	case FAULT_LONG_SEND:
		spoil_length(ep, op, w);
		break;
	case FAULT_SEND_LKEY:
	case FAULT_READ_LKEY:
		sge[w->num_sge - 1].lkey ^= NO_KEY;
		break;
	case FAULT_BAD_INVALIDATE:
		w->opcode = op->opcode = VRB_WR_SEND_WITH_INV;
		w->imm = ep->peer->target.mr[0]->rkey;
		break;
	case FAULT_BIND:
		w->opcode = op->opcode = VRB_WR_BIND_MW;
		w->num_sge = 0;
		w->length = 0;
		op->recv = false;
		w->bind.mw = ep->win[0].mw;
		w->bind.mr = ep->local.mr[0];
		w->bind.addr = ep->local.mr[0]->iova;
		w->bind.length = 64;
		w->bind.access = VRB_ACCESS_REMOTE_READ;
		w->bind.rkey = ep->win[0].mw->rkey + 1;
		break;
	default:
		spoil_remote(ep, w);
	}
}

/* Everything that has completed is taken first, so that whatever comes later is known to come too
 * late. */
static void
drain(struct ep *ep)
{
	struct sim *s = ep->sim;

	while (!s->failed && !vrb_cq_empty(ep->scq->cq))
		cq_poll(s, ep->scq);
	while (!s->failed && !vrb_cq_empty(ep->rcq->cq))
		cq_poll(s, ep->rcq);
}

void
fault_strike(struct ep *ep)
{
	struct vrb_qp_attr a = {.state = VRB_QPS_RESET};
	int rc = 0;

	if (!ep->culprit || ep->struck || ep->fault < FAULT_OPS_END ||
		ep->fault >= FAULT_BLACKOUT || ep->posted < ep->fault_at ||
		!rng_chance(&ep->rng, 100))
		return;
	ep->struck = true;
	sim_trace(ep->sim, "end %u: %s", ep->idx, fault_name(ep->fault));
	if (ep->fault == FAULT_MODIFY_ERR) {
		rc = ep_to_error(ep);
	} else {
		drain(ep);
		ep->gone = true;
		/* One that a message had begun to fill goes with it. */
		if (ep->srq != NULL) {
			ep->srq->q.lost++;
			ep->srq->q.next = ep->sim->now;
		}
		ep->next = ep->rq.next = SIM_NEVER;
		if (ep->fault == FAULT_RESET) {
			rc = vrb_qp_modify(ep->qp, &a, VRB_QP_STATE, ep->sim->now);
		} else {
			vrb_qp_destroy(ep->qp);
			ep->qp = NULL;
		}
	}
	ep->host->next = ep->sim->now;
	if (rc < 0)
		sim_fail(ep->sim, "end %u cannot be %s: %s", ep->idx, fault_name(ep->fault),
			strerror(-rc));
}

/* Whether answers can be lost or overtaken, so that an error shows as silence, or comes too early.
 */
static bool
lossy(const struct sim *s)
{
	return s->wire.lose || s->wire.corrupt || s->wire.burst || s->wire.reorder;
}

static bool
allows_op_fault(const struct ep *ep, const struct op *op, uint32_t status)
{
	bool local = faults[ep->fault].local;

	if (!ep->culprit) {
		/* The other end's queue pair fails with the request, or waits in vain for answers
		 * of one that failed. */
		return local ? status == VRB_WC_RETRY_EXC_ERR : status == VRB_WC_WR_FLUSH_ERR;
	}
	if (op->bad)
		return status == op->status ||
		       (status == VRB_WC_RETRY_EXC_ERR && !local && lossy(ep->sim));
	/*
	 * The answer to an earlier READ or atomic is lost, and then the NAK comes: the other end's
	 * queue pair has failed, so that answer will never come, nor can what was posted behind it
	 * complete before it.
	 */
	return ep->struck && !local && lossy(ep->sim) &&
	       (status == VRB_WC_RETRY_EXC_ERR || status == VRB_WC_WR_FLUSH_ERR);
}

bool
fault_allows_send(const struct ep *ep, const struct op *op, uint32_t status)
{
	switch (ep->fault) {
	case FAULT_NONE:
		return false;
	case FAULT_MODIFY_ERR:
		return ep->culprit ? ep->struck && status == VRB_WC_WR_FLUSH_ERR
				   : status == VRB_WC_RETRY_EXC_ERR;
	case FAULT_RESET:
	case FAULT_DESTROY:
		return !ep->culprit && status == VRB_WC_RETRY_EXC_ERR;
	case FAULT_BLACKOUT:
		if (ep->attr.timeout == 0)
			return status == VRB_WC_WR_FLUSH_ERR && ep->sim->teardown;
		return status == VRB_WC_RETRY_EXC_ERR && ep->sim->wire.dead;
	case FAULT_RNR:
		if (ep->culprit)
			return status == VRB_WC_RNR_RETRY_EXC_ERR && op->recv;
		return status == VRB_WC_RETRY_EXC_ERR;
	default:
		return allows_op_fault(ep, op, status);
	}
}

bool
fault_allows_recv(const struct ep *ep, uint32_t status)
{
	if (status == VRB_WC_WR_FLUSH_ERR)
		return ep->send_failed || vrb_qp_state(ep->qp) == VRB_QPS_ERR;
	return !ep->culprit && ep->fault < FAULT_OPS_END && ep->fault != FAULT_NONE &&
	       status == faults[ep->fault].recv_status;
}

/* A dead wire: no sooner and not much later than timeout and retry count say (IBTA 9.7.6.1.3). */
static void
verify_blackout(struct ep *ep)
{
	struct sim *s = ep->sim;
	uint64_t t = 4096ull << ep->attr.timeout, since = s->wire.dead_since;

	if (!ep->send_failed || ep->attr.timeout == 0)
		return;
	since = RTE_MAX(since, ep->last_post);
	if (ep->fail_time < s->wire.dead_since + ep->attr.retry_cnt * t)
		sim_fail(s, "end %u gave up after %llu us of %u retries of %llu us each", ep->idx,
			(unsigned long long)(ep->fail_time - s->wire.dead_since) / 1000,
			ep->attr.retry_cnt, (unsigned long long)t / 1000);
	/* The wire may have died while an RNR NAK's time was running: up to 655.36 ms (IBTA table
	 * 46). */
	if (ep->fail_time > since + (ep->attr.retry_cnt + 1) * 2 * t + MS(656) + MS(20))
		sim_fail(s, "end %u gave up only after %llu us of %u retries of %llu us each",
			ep->idx, (unsigned long long)(ep->fail_time - since) / 1000,
			ep->attr.retry_cnt, (unsigned long long)t / 1000);
}

void
fault_verify(struct ep *ep)
{
	struct sim *s = ep->sim;
	const struct op *bad =
		ep->culprit && ep->fault < FAULT_OPS_END && ep->struck ? ep->ops : NULL;

	for (; bad != NULL && !bad->bad; bad++)
		;
	if (bad != NULL && !ep->send_failed)
		sim_fail(s, "end %u, op %u was meant to fail and did not (%s)", ep->idx, bad->idx,
			fault_name(ep->fault));
	if (ep->fault == FAULT_BLACKOUT)
		verify_blackout(ep);
	if (ep->fault == FAULT_RNR && ep->culprit && !ep->send_failed &&
		ep->messages > ep->peer->rq.stop_at)
		sim_fail(s, "end %u sent %u messages to %u receives", ep->idx, ep->messages,
			ep->peer->rq.stop_at);
	/* What was reported as arrived did arrive, whatever went wrong afterwards. */
	if (ep->peer->gone)
		return;
	for (uint32_t i = 0; i < ep->n_ops; i++)
		if (ep->ops[i].done && ep->ops[i].recv && i >= ep->peer->rx_next)
			sim_fail(s,
				"end %u, op %u completed, but the other end received only up to %u",
				ep->idx, i, ep->peer->rx_next);
}
