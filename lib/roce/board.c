/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The board, both sides of it: what the engine writes, and how a peer looks it up (board.h).
 */
#include <string.h>

#include "board.h"
#include "engine.h"

void
vrb_board_settle(struct vrb_engine *e)
{
	if (e->conf.direct != NULL)
		e->conf.direct->settle(e->conf.direct_ctx);
}

void
vrb_engine_no_direct(struct vrb_engine *e)
{
	e->conf.board = NULL;
	e->conf.direct = NULL;
}

void
vrb_board_shut(struct vrb_engine *e, bool shut)
{
	if (e->conf.board == NULL)
		return;
	atomic_store_explicit(&e->conf.board->shut, shut, memory_order_seq_cst);
	if (shut)
		vrb_board_settle(e);
}

void
vrb_engine_shut_board(struct vrb_engine *e)
{
	vrb_board_shut(e, true);
}

void
vrb_board_put_mr(struct vrb_engine *e, const struct vrb_mr *mr)
{
	struct vrb_board_mr *b;

	if (e->conf.board == NULL || !(mr->access & VRB_ACCESS_REMOTE))
		return;
	b = &e->conf.board->mr[mr->index];
	b->access = mr->access;
	b->pd = (uintptr_t)mr->pd;
	b->addr = mr->addr;
	b->iova = mr->iova;
	b->length = mr->length;
	atomic_store_explicit(&b->rkey, mr->rkey, memory_order_release);
}

void
vrb_board_drop_mr(struct vrb_engine *e, const struct vrb_mr *mr)
{
	struct vrb_board_mr *b;

	if (e->conf.board == NULL || !(mr->access & VRB_ACCESS_REMOTE))
		return;
	b = &e->conf.board->mr[mr->index];
	atomic_store_explicit(&b->rkey, 0, memory_order_seq_cst);
	vrb_board_settle(e);
}

/*
 * A queue pair that is ready to receive only is not shown before its first packet has come: that
 * raises an event, which a direct access would not.
 */
static bool
is_open(const struct vrb_qp *qp)
{
	enum vrb_qp_state state = vrb_qp_get_state(qp);

	return qp->init.type == VRB_QPT_RC && (state == VRB_QPS_RTS || state == VRB_QPS_SQD ||
						      (state == VRB_QPS_RTR && qp->comm_est));
}

void
vrb_board_drop_qp(struct vrb_qp *qp)
{
	struct vrb_board *board = qp->engine->conf.board;
	struct vrb_board_qp *b;

	if (board == NULL || !qp->on_board)
		return;
	b = &board->qp[qp->qpn & (VRB_MAX_QP - 1)];
	atomic_store_explicit(&b->gen, 0, memory_order_seq_cst);
	qp->on_board = false;
}

void
vrb_board_put_qp(struct vrb_qp *qp)
{
	struct vrb_board *board = qp->engine->conf.board;
	struct vrb_board_qp *b;

	if (board == NULL || !is_open(qp))
		return;
	b = &board->qp[qp->qpn & (VRB_MAX_QP - 1)];
	b->qpn = qp->qpn;
	b->dest_qpn = qp->attr.dest_qpn;
	b->rq_psn = qp->attr.rq_psn;
	b->access = qp->attr.access;
	/* A responder without resources for READs answers none. */
	if (qp->attr.max_dest_rd_atomic == 0)
		b->access &= ~VRB_ACCESS_REMOTE_READ;
	b->pd = (uintptr_t)qp->pd;
	b->peer = qp->attr.av.dgid;
	atomic_store_explicit(&b->gen, qp->gen, memory_order_release);
	qp->on_board = true;
}

uint64_t
vrb_board_check(const struct vrb_board *board, const struct vrb_board_req *req, uint32_t *gen)
{
	const struct vrb_board_qp *qp = &board->qp[req->qpn & (VRB_MAX_QP - 1)];
	const struct vrb_board_mr *mr = &board->mr[(req->rkey >> 8) & (VRB_MAX_MR - 1)];
	uint32_t access = req->write ? VRB_ACCESS_REMOTE_WRITE : VRB_ACCESS_REMOTE_READ;
	uint64_t off;

	/* What the owner invalidates while we have the lock it does not change before we give the
	 * lock back; what it invalidated before, taking the lock has shown us. */
	if (atomic_load_explicit(&board->shut, memory_order_acquire))
		return 0;
	*gen = atomic_load_explicit(&qp->gen, memory_order_acquire);
	if (*gen == 0 || (req->gen != 0 && req->gen != *gen))
		return 0;
	if (atomic_load_explicit(&mr->rkey, memory_order_acquire) != req->rkey || req->rkey == 0)
		return 0;
	/* The owner's connection is with us, and began where ours did. */
	if (qp->qpn != req->qpn || qp->dest_qpn != req->src_qpn || qp->rq_psn != req->sq_psn ||
		memcmp(&qp->peer, &req->src, sizeof(req->src)) != 0)
		return 0;
	off = req->va - mr->iova;
	if (!(qp->access & access) || !(mr->access & access) || mr->pd != qp->pd ||
		req->va < mr->iova || off > mr->length || req->len > mr->length - off)
		return 0;
	return mr->addr + off;
}
