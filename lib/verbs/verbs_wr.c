/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_wr_*(): work requests built in place in the send queue.
 *
 * From ibv_wr_start() on the send queue is locked. Each operation takes the next free entry, the
 * setters fill it, and ibv_wr_complete() publishes all of them, or none: the first error sticks,
 * and whatever follows it is left out.
 */
#include <errno.h>
#include <string.h>

#include "verbs_private.h"

static VRB_COLD void
fail(struct vrb_vqp *qp, int err, const char *why)
{
	qp->error = vrb_explain_call(err, "ibv_wr_complete",
		"%s (QP %#x, request number %u after ibv_wr_start)", why, qp->ibv.qp_base.qp_num,
		qp->built);
	qp->wqe = NULL;
}

/* The request that was built until now is complete: may it be posted? */
static inline void
finish(struct vrb_vqp *qp)
{
	int rc;

	if (!qp->wqe)
		return;
	rc = vrb_qp_check_send(qp->qp, qp->wqe);
	if (unlikely(rc))
		fail(qp, rc == -E2BIG || rc == -EOPNOTSUPP ? EINVAL : -rc,
			"the request does not fit the state or the limits of the queue pair");
}

static inline struct vrb_send_wqe *
begin(struct ibv_qp_ex *ibv, enum vrb_wr_opcode opcode)
{
	struct vrb_vqp *qp = vrb_to_qp_ex(ibv);
	struct vrb_send_wqe *wqe;

	finish(qp);
	if (unlikely(qp->error))
		return NULL;
	wqe = vrb_sq_slot(qp->sq, qp->built);
	if (unlikely(!wqe)) {
		fail(qp, ENOMEM, "the send queue is full");
		return NULL;
	}
	qp->built++;
	qp->wqe = wqe;
	wqe->wr_id = ibv->wr_id;
	wqe->opcode = (uint8_t)opcode;
	wqe->flags = (uint8_t)(ibv->wr_flags & (IBV_SEND_FENCE | IBV_SEND_SIGNALED |
						       IBV_SEND_SOLICITED | IBV_SEND_IP_CSUM));
	wqe->num_sge = 0;
	wqe->reserved = 0;
	wqe->length = 0;
	wqe->imm = 0;
	wqe->rkey = 0;
	wqe->remote_addr = 0;
	wqe->srqn = 0;
	/* Of datagrams: the address is set later; that there is one is checked at the end. */
	if (ibv->qp_base.qp_type == IBV_QPT_UD)
		wqe->ud.ah = NULL;
	return wqe;
}

/* The whole of an operation that is meant for addresses of the peer. */
static inline struct vrb_send_wqe *
begin_remote(struct ibv_qp_ex *ibv, enum vrb_wr_opcode opcode, uint32_t rkey, uint64_t remote_addr)
{
	struct vrb_send_wqe *wqe = begin(ibv, opcode);

	if (likely(wqe != NULL)) {
		wqe->rkey = rkey;
		wqe->remote_addr = remote_addr;
	}
	return wqe;
}

static inline void
begin_imm(struct ibv_qp_ex *ibv, enum vrb_wr_opcode opcode, uint32_t imm)
{
	struct vrb_send_wqe *wqe = begin(ibv, opcode);

	if (likely(wqe != NULL))
		wqe->imm = imm;
}

static void
wr_send(struct ibv_qp_ex *ibv)
{
	begin(ibv, VRB_WR_SEND);
}

static void
wr_send_imm(struct ibv_qp_ex *ibv, __be32 imm_data)
{
	begin_imm(ibv, VRB_WR_SEND_WITH_IMM, imm_data);
}

static void
wr_send_inv(struct ibv_qp_ex *ibv, uint32_t rkey)
{
	begin_imm(ibv, VRB_WR_SEND_WITH_INV, rkey);
}

static void
wr_local_inv(struct ibv_qp_ex *ibv, uint32_t rkey)
{
	begin_imm(ibv, VRB_WR_LOCAL_INV, rkey);
}

static void
wr_rdma_write(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(ibv, VRB_WR_RDMA_WRITE, rkey, remote_addr);
}

static void
wr_rdma_write_imm(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	struct vrb_send_wqe *wqe = begin_remote(ibv, VRB_WR_RDMA_WRITE_WITH_IMM, rkey, remote_addr);

	if (likely(wqe != NULL))
		wqe->imm = imm_data;
}

static void
wr_rdma_read(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr)
{
	begin_remote(ibv, VRB_WR_RDMA_READ, rkey, remote_addr);
}

static void
wr_atomic_cmp_swp(
	struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap)
{
	struct vrb_send_wqe *wqe = begin_remote(ibv, VRB_WR_ATOMIC_CMP_AND_SWP, rkey, remote_addr);

	if (likely(wqe != NULL)) {
		wqe->atomic.compare_add = compare;
		wqe->atomic.swap = swap;
	}
}

static void
wr_atomic_fetch_add(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	struct vrb_send_wqe *wqe =
		begin_remote(ibv, VRB_WR_ATOMIC_FETCH_AND_ADD, rkey, remote_addr);

	if (likely(wqe != NULL)) {
		wqe->atomic.compare_add = add;
		wqe->atomic.swap = 0;
	}
}

static void
wr_atomic_write(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr, const void *data)
{
	struct vrb_send_wqe *wqe = begin_remote(ibv, VRB_WR_ATOMIC_WRITE, rkey, remote_addr);

	if (likely(wqe != NULL)) {
		memcpy(&wqe->atomic.swap, data, sizeof(wqe->atomic.swap));
		wqe->length = sizeof(wqe->atomic.swap);
	}
}

static void
wr_bind_mw(struct ibv_qp_ex *ibv, struct ibv_mw *mw, uint32_t rkey,
	const struct ibv_mw_bind_info *info)
{
	struct vrb_vqp *qp = vrb_to_qp_ex(ibv);
	struct vrb_send_wqe *wqe = begin(ibv, VRB_WR_BIND_MW);
	int rc;

	if (unlikely(!wqe))
		return;
	rc = vrb_wqe_bind(wqe, mw, rkey, info);
	if (rc)
		fail(qp, -rc, "the window, its key and the region do not fit each other");
}

/* ---- operations that this queue pair was not made for, or that the device does not have ---- */

static void
refuse(struct ibv_qp_ex *ibv)
{
	struct vrb_vqp *qp = vrb_to_qp_ex(ibv);

	finish(qp);
	if (!qp->error)
		fail(qp, EOPNOTSUPP,
			"the operation was not in send_ops_flags when the queue pair was made");
}

static void
no_send(struct ibv_qp_ex *ibv)
{
	refuse(ibv);
}

static void
no_send_imm(struct ibv_qp_ex *ibv, __be32 imm_data)
{
	refuse(ibv);
}

static void
no_inv(struct ibv_qp_ex *ibv, uint32_t rkey)
{
	refuse(ibv);
}

static void
no_rdma(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr)
{
	refuse(ibv);
}

static void
no_rdma_write_imm(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr, __be32 imm_data)
{
	refuse(ibv);
}

static void
no_atomic_cmp_swp(
	struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr, uint64_t compare, uint64_t swap)
{
	refuse(ibv);
}

static void
no_atomic_fetch_add(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr, uint64_t add)
{
	refuse(ibv);
}

static void
no_atomic_write(struct ibv_qp_ex *ibv, uint32_t rkey, uint64_t remote_addr, const void *data)
{
	refuse(ibv);
}

static void
no_bind_mw(struct ibv_qp_ex *ibv, struct ibv_mw *mw, uint32_t rkey,
	const struct ibv_mw_bind_info *info)
{
	refuse(ibv);
}

static void
no_send_tso(struct ibv_qp_ex *ibv, void *hdr, uint16_t hdr_sz, uint16_t mss)
{
	refuse(ibv);
}

static void
no_setter(struct ibv_qp_ex *ibv)
{
	struct vrb_vqp *qp = vrb_to_qp_ex(ibv);

	if (!qp->error)
		fail(qp, EINVAL, "the setter is for queue pairs of another type");
}

static void
no_ud_addr(struct ibv_qp_ex *ibv, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
	no_setter(ibv);
}

static void
no_xrc_srqn(struct ibv_qp_ex *ibv, uint32_t remote_srqn)
{
	no_setter(ibv);
}

/* ---- setters ---- */

static void
wr_set_ud_addr(struct ibv_qp_ex *ibv, struct ibv_ah *ah, uint32_t remote_qpn, uint32_t remote_qkey)
{
	struct vrb_send_wqe *wqe = vrb_to_qp_ex(ibv)->wqe;

	if (unlikely(!wqe))
		return;
	wqe->ud.ah = ah ? vrb_to_ah(ah)->ah : NULL;
	wqe->ud.remote_qpn = remote_qpn & 0xffffff;
	wqe->ud.qkey = remote_qkey;
}

static void
wr_set_xrc_srqn(struct ibv_qp_ex *ibv, uint32_t remote_srqn)
{
	struct vrb_send_wqe *wqe = vrb_to_qp_ex(ibv)->wqe;

	if (likely(wqe != NULL))
		wqe->srqn = remote_srqn;
}

static void
wr_set_sge(struct ibv_qp_ex *ibv, uint32_t lkey, uint64_t addr, uint32_t length)
{
	struct vrb_vqp *qp = vrb_to_qp_ex(ibv);
	struct vrb_sge *sge;

	if (unlikely(!qp->wqe))
		return;
	if (unlikely(!qp->sq->max_sge)) {
		fail(qp, EINVAL, "the queue pair was made without send SGEs");
		return;
	}
	sge = (struct vrb_sge *)qp->wqe->data;
	sge->addr = addr;
	sge->length = length;
	sge->lkey = lkey;
	qp->wqe->num_sge = 1;
	qp->wqe->length = length;
}

static void
wr_set_sge_list(struct ibv_qp_ex *ibv, size_t num_sge, const struct ibv_sge *list)
{
	struct vrb_vqp *qp = vrb_to_qp_ex(ibv);
	uint64_t length = 0;
	size_t i;

	if (unlikely(!qp->wqe))
		return;
	if (unlikely(num_sge > qp->sq->max_sge)) {
		fail(qp, EINVAL, "there are more SGEs than max_send_sge");
		return;
	}
	/* The layouts are the same; verbs_abi.c asserts it. */
	memcpy(qp->wqe->data, list, num_sge * sizeof(*list));
	for (i = 0; i < num_sge; i++)
		length += list[i].length;
	if (unlikely(length > VRB_MAX_MSG)) {
		fail(qp, EINVAL, "the message is longer than 2^31 bytes");
		return;
	}
	qp->wqe->num_sge = (uint8_t)num_sge;
	qp->wqe->length = (uint32_t)length;
}

static void
wr_set_inline_data_list(struct ibv_qp_ex *ibv, size_t num_buf, const struct ibv_data_buf *list)
{
	struct vrb_vqp *qp = vrb_to_qp_ex(ibv);
	size_t i, length = 0;

	if (unlikely(!qp->wqe))
		return;
	for (i = 0; i < num_buf; i++) {
		if (unlikely(list[i].length > qp->sq->max_inline - length)) {
			fail(qp, EINVAL, "the inline data is longer than max_inline_data");
			return;
		}
		memcpy(qp->wqe->data + length, list[i].addr, list[i].length);
		length += list[i].length;
	}
	qp->wqe->flags |= VRB_SEND_INLINE;
	qp->wqe->num_sge = 0;
	qp->wqe->length = (uint32_t)length;
}

static void
wr_set_inline_data(struct ibv_qp_ex *ibv, void *addr, size_t length)
{
	const struct ibv_data_buf buf = {.addr = addr, .length = length};

	wr_set_inline_data_list(ibv, 1, &buf);
}

/* ---- the session ---- */

static void
wr_start(struct ibv_qp_ex *ibv)
{
	struct vrb_vqp *qp = vrb_to_qp_ex(ibv);

	/* In a forked child the lock may be held for ever by a thread that exists in the parent
	 * only. */
	if (likely(!vrb_forked))
		rte_spinlock_lock(&qp->sq->lock);
	qp->wqe = NULL;
	qp->built = 0;
	qp->error = unlikely(vrb_forked) ? ENODEV : 0;
}

static int
wr_complete(struct ibv_qp_ex *ibv)
{
	struct vrb_vqp *qp = vrb_to_qp_ex(ibv);
	uint32_t built = qp->built;
	int error;

	if (unlikely(vrb_forked))
		return ENODEV;
	finish(qp);
	error = qp->error;
	if (likely(!error && built))
		vrb_sq_commit(qp->sq, built);
	rte_spinlock_unlock(&qp->sq->lock);
	if (likely(!error && built))
		vrb_nic_kick(qp->nic, qp->qp);
	return error;
}

static void
wr_abort(struct ibv_qp_ex *ibv)
{
	if (likely(!vrb_forked))
		rte_spinlock_unlock(&vrb_to_qp_ex(ibv)->sq->lock);
}

void
vrb_qp_ex_ops(struct vrb_vqp *qp, uint64_t ops)
{
	struct ibv_qp_ex *q = &qp->ibv;

#define WANTED(op, yes, no) (ops & IBV_QP_EX_WITH_##op ? (yes) : (no))
	q->wr_send = WANTED(SEND, wr_send, no_send);
	q->wr_send_imm = WANTED(SEND_WITH_IMM, wr_send_imm, no_send_imm);
	q->wr_send_inv = WANTED(SEND_WITH_INV, wr_send_inv, no_inv);
	q->wr_local_inv = WANTED(LOCAL_INV, wr_local_inv, no_inv);
	q->wr_rdma_write = WANTED(RDMA_WRITE, wr_rdma_write, no_rdma);
	q->wr_rdma_write_imm = WANTED(RDMA_WRITE_WITH_IMM, wr_rdma_write_imm, no_rdma_write_imm);
	q->wr_rdma_read = WANTED(RDMA_READ, wr_rdma_read, no_rdma);
	q->wr_atomic_cmp_swp = WANTED(ATOMIC_CMP_AND_SWP, wr_atomic_cmp_swp, no_atomic_cmp_swp);
	q->wr_atomic_fetch_add =
		WANTED(ATOMIC_FETCH_AND_ADD, wr_atomic_fetch_add, no_atomic_fetch_add);
	q->wr_atomic_write = WANTED(ATOMIC_WRITE, wr_atomic_write, no_atomic_write);
	q->wr_bind_mw = WANTED(BIND_MW, wr_bind_mw, no_bind_mw);
#undef WANTED
	q->wr_send_tso = no_send_tso;
	q->wr_set_ud_addr = q->qp_base.qp_type == IBV_QPT_UD ? wr_set_ud_addr : no_ud_addr;
	q->wr_set_xrc_srqn = q->qp_base.qp_type == IBV_QPT_XRC_SEND ? wr_set_xrc_srqn : no_xrc_srqn;
	q->wr_set_sge = wr_set_sge;
	q->wr_set_sge_list = wr_set_sge_list;
	q->wr_set_inline_data = wr_set_inline_data;
	q->wr_set_inline_data_list = wr_set_inline_data_list;
	q->wr_start = wr_start;
	q->wr_complete = wr_complete;
	q->wr_abort = wr_abort;
}
