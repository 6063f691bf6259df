/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs: their life, the checks at posting, and what happens to their work in the error
 * state.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "wq.h"

static void *
alloc_zeroed(size_t size)
{
	void *p;

	size = RTE_ALIGN_CEIL(size, RTE_CACHE_LINE_SIZE);
	p = aligned_alloc(RTE_CACHE_LINE_SIZE, size);
	if (p != NULL)
		memset(p, 0, size);
	return p;
}

static int
sq_init(struct vrb_sq *sq, const struct vrb_qp_init *init)
{
	uint32_t entries = rte_align32pow2(RTE_MAX(init->max_send_wr, 1u));
	uint32_t room =
		RTE_MAX(init->max_send_sge * (uint32_t)sizeof(struct vrb_sge), init->max_inline);

	sq->stride =
		RTE_ALIGN_CEIL((uint32_t)sizeof(struct vrb_send_wqe) + room, RTE_CACHE_LINE_SIZE);
	sq->ring = alloc_zeroed((size_t)entries * sq->stride);
	if (sq->ring == NULL)
		return -ENOMEM;
	sq->mask = entries - 1;
	sq->max_wr = init->max_send_wr;
	sq->max_sge = init->max_send_sge;
	sq->max_inline = RTE_MIN(
		sq->stride - (uint32_t)sizeof(struct vrb_send_wqe), (uint32_t)VRB_MAX_INLINE);
	sq->sig_all = init->sig_all;
	rte_spinlock_init(&sq->lock);
	return 0;
}

static int
queues_init(struct vrb_qp *qp, struct vrb_qp_init *init)
{
	if (sq_init(&qp->sq, init) < 0)
		return -ENOMEM;
	/* XRC receives into the SRQ that each request names. */
	if (init->type == VRB_QPT_XRC_SEND || init->type == VRB_QPT_XRC_RECV) {
		init->max_recv_wr = 0;
		init->max_recv_sge = 0;
		if (init->type == VRB_QPT_XRC_SEND)
			return 0;
		qp->resp.srq_copy = malloc(
			sizeof(struct vrb_recv_wqe) + VRB_MAX_SRQ_SGE * sizeof(struct vrb_sge));
		return qp->resp.srq_copy == NULL ? -ENOMEM : 0;
	}
	if (init->srq != NULL) {
		qp->srq = init->srq;
		qp->rq = &init->srq->rq;
		init->max_recv_wr = 0;
		init->max_recv_sge = 0;
		qp->resp.srq_copy = malloc(qp->rq->stride);
		return qp->resp.srq_copy == NULL ? -ENOMEM : 0;
	}
	qp->rq = &qp->own_rq;
	if (vrb_rq_init(&qp->own_rq, init->max_recv_wr, RTE_MAX(init->max_recv_sge, 1u)) < 0)
		return -ENOMEM;
	qp->own_rq.closed = true;
	return 0;
}

static void
queues_free(struct vrb_qp *qp)
{
	free(qp->sq.ring);
	free(qp->own_rq.ring);
	free(qp->resp.srq_copy);
	free(qp->resp.ops);
	free(qp->resp.saved);
}

/** A number whose place in the table is free; going up, so that a number is not soon used again. */
static uint32_t
take_qpn(struct vrb_engine *e)
{
	uint32_t qpn = e->next_qpn;

	/* There is a free place: the number of QPs is below the table's size. */
	while (e->qps[qpn & (VRB_MAX_QP - 1)] != NULL || qpn < VRB_QPN_FIRST || qpn >= VRB_PSN_MASK)
		qpn = qpn >= VRB_PSN_MASK ? VRB_QPN_FIRST : qpn + 1;
	e->next_qpn = qpn + 1;
	return qpn;
}

/** The transport of a type of queue pair. @return false when there is no such type */
static bool
transport_of(enum vrb_qp_type type, uint8_t *transport)
{
	switch (type) {
	case VRB_QPT_RC:
		*transport = VRB_TRANSPORT_RC;
		return true;
	case VRB_QPT_UC:
		*transport = VRB_TRANSPORT_UC;
		return true;
	case VRB_QPT_UD:
		*transport = VRB_TRANSPORT_UD;
		return true;
	case VRB_QPT_RAW_PACKET:
		*transport = VRB_TRANSPORT_RAW;
		return true;
	case VRB_QPT_XRC_SEND:
	case VRB_QPT_XRC_RECV:
		*transport = VRB_TRANSPORT_XRC;
		return true;
	}
	return false;
}

/** XRC: an initiator has only a send queue, a target only a domain; the others have both queues and
 * no domain. */
static int
check_parts(const struct vrb_qp_init *init)
{
	bool target = init->type == VRB_QPT_XRC_RECV,
	     xrc = target || init->type == VRB_QPT_XRC_SEND;

	/* Raw frames: a table of work queues in the place of queues and CQs. */
	if (init->ind_tbl != NULL)
		return init->type == VRB_QPT_RAW_PACKET && init->pd != NULL && init->rss != NULL &&
				       init->send_cq == NULL && init->recv_cq == NULL &&
				       init->srq == NULL && init->max_send_wr == 0 &&
				       init->max_recv_wr == 0 && init->xrcd == NULL
			       ? 0
			       : -EINVAL;
	if (target != (init->xrcd != NULL) || target != (init->send_cq == NULL) ||
		target != (init->pd == NULL))
		return -EINVAL;
	if (xrc)
		return init->srq == NULL ? 0 : -EINVAL;
	/* An XRC SRQ receives for targets only. */
	if (init->recv_cq == NULL || (init->srq != NULL && init->srq->xrcd != NULL))
		return -EINVAL;
	return 0;
}

static int
check_init(const struct vrb_engine *e, const struct vrb_qp_init *init)
{
	uint8_t transport;

	if (!transport_of(init->type, &transport))
		return -EOPNOTSUPP;
	if (check_parts(init) < 0)
		return -EINVAL;
	if (init->max_send_wr > VRB_MAX_QP_WR || init->max_send_sge > VRB_MAX_SGE ||
		init->max_inline > VRB_MAX_INLINE)
		return -EINVAL;
	if (init->srq == NULL &&
		(init->max_recv_wr > VRB_MAX_QP_WR || init->max_recv_sge > VRB_MAX_SGE))
		return -EINVAL;
	return e->num_qps >= VRB_MAX_QP ? -ENOMEM : 0;
}

/** The operations that a type of queue pair can be asked for, as bits. */
static uint32_t
operations(enum vrb_qp_type type)
{
	const uint32_t ud = RTE_BIT32(VRB_WR_SEND) | RTE_BIT32(VRB_WR_SEND_WITH_IMM);
	const uint32_t uc = ud | RTE_BIT32(VRB_WR_RDMA_WRITE) |
			    RTE_BIT32(VRB_WR_RDMA_WRITE_WITH_IMM) | RTE_BIT32(VRB_WR_LOCAL_INV) |
			    RTE_BIT32(VRB_WR_BIND_MW);

	const uint32_t xrc =
		uc | RTE_BIT32(VRB_WR_RDMA_READ) | RTE_BIT32(VRB_WR_ATOMIC_CMP_AND_SWP) |
		RTE_BIT32(VRB_WR_ATOMIC_FETCH_AND_ADD) | RTE_BIT32(VRB_WR_SEND_WITH_INV);

	switch (type) {
	case VRB_QPT_RAW_PACKET:
		return RTE_BIT32(VRB_WR_SEND);
	case VRB_QPT_UD:
		return ud;
	case VRB_QPT_UC:
		return uc;
	case VRB_QPT_XRC_RECV:
		return 0;
	case VRB_QPT_XRC_SEND:
		return xrc;
	case VRB_QPT_RC:
		break;
	}
	return xrc | RTE_BIT32(VRB_WR_ATOMIC_WRITE);
}

/** Counts the QP where it stands. @param n 1 or -1 */
static void
count_refs(const struct vrb_qp_init *init, int n)
{
	if (init->pd != NULL)
		init->pd->refs += n;
	if (init->send_cq != NULL)
		init->send_cq->refs += n;
	if (init->recv_cq != NULL)
		init->recv_cq->refs += n;
	if (init->srq != NULL)
		init->srq->refs += n;
	if (init->xrcd != NULL)
		init->xrcd->refs += n;
	if (init->ind_tbl != NULL)
		init->ind_tbl->refs += n;
}

int
vrb_qp_create(struct vrb_engine *e, struct vrb_qp_init *init, struct vrb_qp **out)
{
	struct vrb_qp *qp;
	int rc = check_init(e, init);

	if (rc < 0)
		return rc;
	qp = alloc_zeroed(sizeof(*qp));
	if (qp == NULL)
		return -ENOMEM;
	if (queues_init(qp, init) < 0 || vrb_timer_add(e) < 0) {
		queues_free(qp);
		free(qp);
		return -ENOMEM;
	}
	init->max_inline = qp->sq.max_inline;
	if (qp->rq == &qp->own_rq)
		init->max_recv_sge = qp->own_rq.max_sge;
	qp->engine = e;
	qp->init = *init;
	transport_of(init->type, &qp->transport);
	qp->acked = qp->transport == VRB_TRANSPORT_RC || qp->transport == VRB_TRANSPORT_XRC;
	qp->operations = operations(init->type);
	qp->xrcd = init->xrcd;
	qp->pd = init->pd;
	qp->send_cq = init->send_cq;
	qp->recv_cq = init->recv_cq;
	qp->user = init->user;
	qp->attr.path_mtu = VRB_MTU_1024;
	if (init->ind_tbl != NULL) {
		qp->rss = *init->rss;
		qp->init.rss = NULL; /* the caller's */
		/* It receives from the start, and has no other state. */
		qp->own_rq.closed = false;
		atomic_store_explicit(&qp->state, VRB_QPS_RTR, memory_order_relaxed);
	}
	qp->qpn = take_qpn(e);
	e->qps[qp->qpn & (VRB_MAX_QP - 1)] = qp;
	e->num_qps++;
	count_refs(&qp->init, 1);
	*out = qp;
	return 0;
}

void
vrb_qp_destroy(struct vrb_qp *qp)
{
	struct vrb_engine *e = qp->engine;

	if (qp->on_board) {
		vrb_board_drop_qp(qp);
		vrb_board_settle(e);
	}
	vrb_direct_close(qp);
	vrb_engine_forget(qp);
	vrb_timer_drop(e, &qp->timer);
	vrb_mcast_forget(qp);
	vrb_mw_forget_qp(e, qp);
	vrb_raw_unhold(e, &qp->raw);
	e->qps[qp->qpn & (VRB_MAX_QP - 1)] = NULL;
	e->num_qps--;
	count_refs(&qp->init, -1);
	queues_free(qp);
	free(qp);
}

struct vrb_sq *
vrb_qp_sq(struct vrb_qp *qp)
{
	return &qp->sq;
}

struct vrb_rq *
vrb_qp_rq(struct vrb_qp *qp)
{
	return qp->rq == &qp->own_rq ? &qp->own_rq : NULL;
}

uint32_t
vrb_qp_num(const struct vrb_qp *qp)
{
	return qp->qpn;
}

struct vrb_qp *
vrb_qp_find_target(struct vrb_engine *e, const struct vrb_xrcd *xrcd, uint32_t qpn, void **user)
{
	struct vrb_qp *qp = vrb_engine_qp(e, qpn);

	*user = NULL;
	if (qp == NULL || qp->xrcd != xrcd)
		return NULL;
	*user = qp->user;
	return qp;
}

void
vrb_qp_set_user(struct vrb_qp *qp, void *user)
{
	qp->user = user;
}

enum vrb_qp_state
vrb_qp_state(const struct vrb_qp *qp)
{
	return vrb_qp_get_state(qp);
}

int
vrb_qp_check_send(const struct vrb_qp *qp, const struct vrb_send_wqe *wqe)
{
	if (unlikely(wqe->opcode >= VRB_WR_OPCODES || !(qp->operations & RTE_BIT32(wqe->opcode))))
		return -EOPNOTSUPP;
	/* IBTA 10.8.2.1: refused at once in RESET, INIT and RTR; flushed in the error state. */
	if (unlikely(vrb_qp_get_state(qp) < VRB_QPS_RTS || wqe->num_sge > qp->sq.max_sge))
		return -EINVAL;
	/* A frame has a header; and only frames have checksums that are left to us. */
	if (qp->transport == VRB_TRANSPORT_RAW ? unlikely(wqe->length < RTE_ETHER_HDR_LEN)
					       : unlikely(wqe->flags & VRB_SEND_IP_CSUM))
		return -EINVAL;
	if (unlikely(wqe->length > VRB_MAX_MSG))
		return -E2BIG;
	if (qp->transport == VRB_TRANSPORT_UD && unlikely(wqe->ud.ah == NULL))
		return -EINVAL;
	if (wqe->flags & VRB_SEND_INLINE) {
		if (unlikely(wqe->length > qp->sq.max_inline))
			return -E2BIG;
		/* Data that comes back cannot be inline. */
		if (unlikely(vrb_wqe_is_rd_atomic(wqe) && wqe->opcode != VRB_WR_ATOMIC_WRITE))
			return -EINVAL;
	}
	if ((wqe->opcode == VRB_WR_ATOMIC_CMP_AND_SWP ||
		    wqe->opcode == VRB_WR_ATOMIC_FETCH_AND_ADD ||
		    wqe->opcode == VRB_WR_ATOMIC_WRITE) &&
		unlikely(wqe->length != sizeof(uint64_t)))
		return -EINVAL;
	return 0;
}

/* ---- the error state ---- */

static void
flush_sq(struct vrb_qp *qp)
{
	struct vrb_sq *sq = &qp->sq;
	uint32_t head = atomic_load_explicit(&sq->head, memory_order_acquire);
	uint32_t idx = atomic_load_explicit(&sq->tail, memory_order_relaxed);

	if (idx == head)
		return;
	for (; idx != head; idx++)
		vrb_comp_retire(qp, idx, VRB_WC_WR_FLUSH_ERR);
	sq->next = idx;
}

static void
flush_rq(struct vrb_qp *qp)
{
	struct vrb_rq *rq = qp->rq;
	uint32_t head, idx;

	if (rq != &qp->own_rq) {
		/* Receives of an SRQ stay for the others; only the one that this QP has taken is
		 * its own. */
		if (qp->resp.wqe != NULL)
			vrb_resp_cqe_error(qp, qp->resp.wqe->wr_id, VRB_WC_WR_FLUSH_ERR);
		qp->resp.wqe = NULL;
		return;
	}
	qp->resp.wqe = NULL;
	head = atomic_load_explicit(&rq->head, memory_order_acquire);
	idx = atomic_load_explicit(&rq->tail, memory_order_relaxed);
	if (idx == head)
		return;
	for (; idx != head; idx++) {
		uint64_t wr_id = vrb_rq_at(rq, idx)->wr_id;

		/* The slot first, as everywhere. */
		atomic_store_explicit(&rq->tail, idx + 1, memory_order_release);
		vrb_resp_cqe_error(qp, wr_id, VRB_WC_WR_FLUSH_ERR);
	}
}

void
vrb_qp_flush(struct vrb_qp *qp)
{
	flush_sq(qp);
	if (vrb_qp_get_state(qp) == VRB_QPS_ERR)
		flush_rq(qp);
}

void
vrb_qp_sq_error(struct vrb_qp *qp)
{
	atomic_store_explicit(&qp->state, VRB_QPS_SQE, memory_order_relaxed);
	/* As in vrb_qp_error(). */
	atomic_thread_fence(memory_order_seq_cst);
	flush_sq(qp);
}

void
vrb_qp_error(struct vrb_qp *qp)
{
	enum vrb_qp_state old = vrb_qp_get_state(qp);

	if (old == VRB_QPS_ERR)
		return;
	/* From here on what is posted is flushed, and not refused. */
	if (old == VRB_QPS_RESET && qp->rq == &qp->own_rq)
		vrb_rq_open(&qp->own_rq);
	atomic_store_explicit(&qp->state, VRB_QPS_ERR, memory_order_relaxed);
	vrb_board_drop_qp(qp);
	qp->direct.moving = false;
	/* The state before the look at the queues: who posts after that look sees the state and
	 * rings. */
	atomic_thread_fence(memory_order_seq_cst);
	vrb_timer_set(qp->engine, &qp->timer, 0);
	/* A NAK that ends the connection still goes out, and the answers before it. */
	if (!qp->resp.nak_final) {
		qp->resp.ops_tail = qp->resp.ops_head;
		qp->resp.ack_pending = false;
	}
	vrb_qp_flush(qp);
	/* IBTA o11-5.2.5: no more receives of the SRQ will complete on this QP. */
	if (qp->init.srq != NULL && old != VRB_QPS_RESET)
		vrb_engine_async(qp->engine, VRB_EVENT_QP_LAST_WQE_REACHED, qp->user);
	/* For the NAK that may be pending. */
	vrb_engine_schedule(qp);
}
