/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posting: ibv_post_send(), ibv_post_recv() and ibv_post_srq_recv(). Everything before the first
 * bad request is posted, and the engine is told once for a whole list.
 */
#include <errno.h>
#include <string.h>

#include "verbs_private.h"

/* Gathers the data of an inline request. */
static int
fill_inline(const struct vrb_sq *sq, struct vrb_send_wqe *wqe, const struct ibv_send_wr *wr)
{
	uint64_t length = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ibv_sge *sge = &wr->sg_list[i];

		if (length + sge->length > sq->max_inline)
			return -E2BIG;
		memcpy(wqe->data + length, (const void *)(uintptr_t)sge->addr, sge->length);
		length += sge->length;
	}
	wqe->num_sge = 0;
	wqe->length = (uint32_t)length;
	return 0;
}

static int
fill_sges(const struct vrb_sq *sq, struct vrb_send_wqe *wqe, const struct ibv_send_wr *wr)
{
	struct vrb_sge *sge = (struct vrb_sge *)wqe->data;
	uint64_t length = 0;
	int i;

	if (unlikely((uint32_t)wr->num_sge > sq->max_sge))
		return -EINVAL;
	for (i = 0; i < wr->num_sge; i++) {
		sge[i].addr = wr->sg_list[i].addr;
		sge[i].length = wr->sg_list[i].length;
		sge[i].lkey = wr->sg_list[i].lkey;
		length += wr->sg_list[i].length;
	}
	if (unlikely(length > VRB_MAX_MSG))
		return -E2BIG;
	wqe->num_sge = (uint8_t)wr->num_sge;
	wqe->length = (uint32_t)length;
	return 0;
}

#define SEND_FLAGS \
	(IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE | \
		IBV_SEND_IP_CSUM)

/* Where a datagram goes. */
static void
fill_ud(struct vrb_send_wqe *wqe, const struct ibv_send_wr *wr)
{
	struct ibv_ah *ah = wr->wr.ud.ah;

	wqe->ud.ah = ah ? vrb_to_ah(ah)->ah : NULL;
	wqe->ud.remote_qpn = wr->wr.ud.remote_qpn & 0xffffff;
	wqe->ud.qkey = wr->wr.ud.remote_qkey;
}

/* What depends on the opcode. @return 0 or -errno */
static int
fill_operation(struct vrb_send_wqe *wqe, const struct ibv_send_wr *wr)
{
	wqe->imm = 0;
	wqe->rkey = 0;
	wqe->remote_addr = 0;
	switch (wr->opcode) {
	case IBV_WR_SEND:
		return 0;
	case IBV_WR_SEND_WITH_IMM:
	case IBV_WR_SEND_WITH_INV:
	case IBV_WR_LOCAL_INV:
		wqe->imm = wr->imm_data; /* or invalidate_rkey, which shares its place */
		return 0;
	case IBV_WR_RDMA_WRITE_WITH_IMM:
		wqe->imm = wr->imm_data;
		/* fallthrough */
	case IBV_WR_RDMA_WRITE:
	case IBV_WR_RDMA_READ:
	case IBV_WR_ATOMIC_WRITE:
		wqe->remote_addr = wr->wr.rdma.remote_addr;
		wqe->rkey = wr->wr.rdma.rkey;
		return 0;
	case IBV_WR_ATOMIC_CMP_AND_SWP:
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wqe->remote_addr = wr->wr.atomic.remote_addr;
		wqe->rkey = wr->wr.atomic.rkey;
		wqe->atomic.compare_add = wr->wr.atomic.compare_add;
		wqe->atomic.swap = wr->wr.atomic.swap;
		return 0;
	case IBV_WR_BIND_MW:
		return vrb_wqe_bind(wqe, wr->bind_mw.mw, wr->bind_mw.rkey, &wr->bind_mw.bind_info);
	default:
		return -EOPNOTSUPP;
	}
}

static inline int
fill(const struct vrb_vqp *qp, struct vrb_send_wqe *wqe, const struct ibv_send_wr *wr)
{
	int rc;

	if (unlikely(wr->send_flags & ~(unsigned int)SEND_FLAGS || wr->num_sge < 0))
		return -EINVAL;
	wqe->wr_id = wr->wr_id;
	wqe->opcode = (uint8_t)wr->opcode;
	wqe->flags = (uint8_t)wr->send_flags;
	wqe->reserved = 0;
	if (wr->send_flags & IBV_SEND_INLINE)
		rc = fill_inline(qp->sq, wqe, wr);
	else
		rc = fill_sges(qp->sq, wqe, wr);
	if (likely(!rc))
		rc = fill_operation(wqe, wr);
	switch (qp->ibv.qp_base.qp_type) {
	case IBV_QPT_UD:
		/* The operations of datagrams leave that part of the entry free; others are
		 * refused. */
		fill_ud(wqe, wr);
		break;
	case IBV_QPT_XRC_SEND:
		wqe->srqn = wr->qp_type.xrc.remote_srqn;
		break;
	default:
		break;
	}
	return likely(!rc) ? vrb_qp_check_send(qp->qp, wqe) : rc;
}

/* Why the request was refused, and the errno that a program expects. */
static VRB_COLD int
explain_send(const struct vrb_vqp *qp, const struct ibv_send_wr *wr, int rc)
{
	const char *call = "ibv_post_send";

	switch (rc) {
	case -ENOMEM:
		if (!qp->sq->max_wr)
			return vrb_explain_call(
				EINVAL, call, "QP %#x has no send queue", qp->ibv.qp_base.qp_num);
		return vrb_explain_call(ENOMEM, call,
			"the send queue of QP %#x is full: all of its %u entries wait for "
			"completions to be polled",
			qp->ibv.qp_base.qp_num, qp->sq->max_wr);
	case -E2BIG:
		return vrb_explain_call(EINVAL, call, "wr_id %#lx is longer than %s (QP %#x)",
			(unsigned long)wr->wr_id,
			wr->send_flags & IBV_SEND_INLINE ? "max_inline_data"
							 : "a message may be, 2^31 bytes",
			qp->ibv.qp_base.qp_num);
	case -EOPNOTSUPP:
		return vrb_explain_call(EINVAL, call,
			"wr_id %#lx has opcode %d, which is not supported on QP %#x",
			(unsigned long)wr->wr_id, (int)wr->opcode, qp->ibv.qp_base.qp_num);
	default:
		if (qp->ibv.qp_base.qp_type == IBV_QPT_UD && !wr->wr.ud.ah)
			return vrb_explain_call(-rc, call,
				"wr_id %#lx has no address handle in wr.ud.ah (QP %#x)",
				(unsigned long)wr->wr_id, qp->ibv.qp_base.qp_num);
		if (vrb_qp_state(qp->qp) < VRB_QPS_RTS)
			return vrb_explain_call(-rc, call,
				"QP %#x is in state %s; requests can be posted from RTS on",
				qp->ibv.qp_base.qp_num, vrb_state_name(vrb_qp_state(qp->qp)));
		return vrb_explain_call(-rc, call,
			"wr_id %#lx with opcode %d, %d SGEs and flags %#x cannot be posted to QP "
			"%#x, which takes %u SGEs",
			(unsigned long)wr->wr_id, (int)wr->opcode, wr->num_sge, wr->send_flags,
			qp->ibv.qp_base.qp_num, qp->sq->max_sge);
	}
}

int
vrb_verbs_post_send(struct ibv_qp *ibv, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
	struct vrb_vqp *qp = vrb_to_qp(ibv);
	struct vrb_sq *sq = qp->sq;
	struct vrb_send_wqe *wqe;
	uint32_t n;
	int rc = 0;

	if (unlikely(vrb_forked)) {
		*bad = wr;
		return ENODEV;
	}
	rte_spinlock_lock(&sq->lock);
	for (n = 0; wr; wr = wr->next, n++) {
		wqe = vrb_sq_slot(sq, n);
		rc = likely(wqe != NULL) ? fill(qp, wqe, wr) : -ENOMEM;
		if (unlikely(rc))
			break;
	}
	if (likely(n))
		vrb_sq_commit(sq, n);
	rte_spinlock_unlock(&sq->lock);
	if (likely(n))
		vrb_nic_kick(qp->nic, qp->qp);
	if (likely(!rc))
		return 0;
	*bad = wr;
	return explain_send(qp, wr, rc);
}

static inline int
fill_recv(const struct vrb_rq *rq, struct vrb_recv_wqe *wqe, const struct ibv_recv_wr *wr)
{
	uint64_t length = 0;
	int i;

	if (unlikely((uint32_t)wr->num_sge > rq->max_sge))
		return -EINVAL;
	for (i = 0; i < wr->num_sge; i++) {
		wqe->sge[i].addr = wr->sg_list[i].addr;
		wqe->sge[i].length = wr->sg_list[i].length;
		wqe->sge[i].lkey = wr->sg_list[i].lkey;
		length += wr->sg_list[i].length;
	}
	if (unlikely(length > UINT32_MAX))
		return -EINVAL;
	wqe->wr_id = wr->wr_id;
	wqe->num_sge = (uint32_t)wr->num_sge;
	wqe->length = (uint32_t)length;
	return 0;
}

int
vrb_rq_post(struct vrb_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct vrb_recv_wqe *wqe;
	uint32_t n;
	int rc = 0;

	rte_spinlock_lock(&rq->lock);
	if (unlikely(rq->closed)) {
		rte_spinlock_unlock(&rq->lock);
		*bad = wr;
		return -ENOTCONN;
	}
	for (n = 0; wr; wr = wr->next, n++) {
		wqe = vrb_rq_slot(rq, n);
		rc = likely(wqe != NULL) ? fill_recv(rq, wqe, wr) : -ENOMEM;
		if (unlikely(rc))
			break;
	}
	vrb_rq_commit(rq, n);
	rte_spinlock_unlock(&rq->lock);
	if (unlikely(rc))
		*bad = wr;
	return rc;
}

static VRB_COLD int
explain_recv(struct vrb_rq *rq, const struct ibv_recv_wr *wr, int rc, const char *call)
{
	uint32_t max_wr;

	if (rc == -ENOMEM) {
		/* Of a shared queue it may be changed meanwhile. */
		rte_spinlock_lock(&rq->lock);
		max_wr = rq->max_wr;
		rte_spinlock_unlock(&rq->lock);
		return vrb_explain_call(
			ENOMEM, call, "the receive queue is full: it has %u entries", max_wr);
	}
	return vrb_explain_call(-rc, call,
		"wr_id %#lx has %d SGEs; the receive queue takes %u, and 4 GiB in all",
		(unsigned long)wr->wr_id, wr->num_sge, rq->max_sge);
}

/* @return 0 or an errno */
static inline int
check_recv(const struct vrb_vqp *qp)
{
	if (unlikely(vrb_forked))
		return ENODEV;
	if (unlikely(!qp->rq))
		return vrb_explain_call(EINVAL, "ibv_post_recv",
			"QP %#x has no receive queue of its own; use ibv_post_srq_recv",
			qp->ibv.qp_base.qp_num);
	return 0;
}

int
vrb_verbs_post_recv(struct ibv_qp *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct vrb_vqp *qp = vrb_to_qp(ibv);
	int rc;

	rc = check_recv(qp);
	if (unlikely(rc)) {
		*bad = wr;
		return rc;
	}
	rc = vrb_rq_post(qp->rq, wr, bad);
	/* IBTA 10.3.1: nothing can be posted in RESET. */
	if (unlikely(rc == -ENOTCONN))
		return vrb_explain_call(EINVAL, "ibv_post_recv",
			"QP %#x is in state RESET; move it to INIT first", ibv->qp_num);
	/*
	 * In the error state receives are flushed at once. Either the engine sees this post when it
	 * enters that state, or this sees the state: the fence orders the post before the load, as
	 * the engine orders its store before its look.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	if (unlikely(vrb_qp_state(qp->qp) == VRB_QPS_ERR))
		vrb_nic_kick(qp->nic, qp->qp);
	return likely(!rc) ? 0 : explain_recv(qp->rq, *bad, rc, "ibv_post_recv");
}

int
vrb_verbs_post_srq_recv(struct ibv_srq *ibv, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
	struct vrb_rq *rq = &vrb_to_srq(ibv)->srq->rq;
	int rc;

	if (unlikely(vrb_forked)) {
		*bad = wr;
		return ENODEV;
	}
	rc = vrb_rq_post(rq, wr, bad);
	return likely(!rc) ? 0 : explain_recv(rq, *bad, rc, "ibv_post_srq_recv");
}
