/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Extended polling: ibv_start_poll(), ibv_next_poll(), ibv_end_poll() and ibv_wc_read_*().
 *
 * A completion is copied out of the ring when it becomes the current one, so the ring's lock is
 * held for a moment only, and a program may call anything between start and end. Other pollers are
 * kept out by the session's lock.
 */
#include <errno.h>
#include <time.h>

#include "verbs_private.h"

static bool
take(struct vrb_vcq *cq)
{
	const struct vrb_cqe *cqe;

	if (!cq->single_threaded)
		rte_spinlock_lock(&cq->cq->lock);
	cqe = vrb_cq_peek(cq->cq);
	if (cqe) {
		cq->cur = *cqe;
		vrb_cq_pop(cq->cq);
	}
	if (!cq->single_threaded)
		rte_spinlock_unlock(&cq->cq->lock);
	if (!cqe)
		return false;
	cq->ibv.wr_id = cq->cur.wr_id;
	cq->ibv.status = (enum ibv_wc_status)cq->cur.status;
	return true;
}

static int
start_poll(struct ibv_cq_ex *ibv, struct ibv_poll_cq_attr *attr)
{
	struct vrb_vcq *cq = vrb_to_cq_ex(ibv);

	if (unlikely(vrb_forked))
		return ENODEV;
	if (unlikely(attr->comp_mask))
		return vrb_fail(
			EINVAL, "comp_mask is %#x, but no bit of it is defined", attr->comp_mask);
	if (!cq->single_threaded)
		rte_spinlock_lock(&cq->session);
	if (take(cq))
		return 0;
	vrb_nic_progress(cq->nic);
	if (take(cq))
		return 0;
	if (!cq->single_threaded)
		rte_spinlock_unlock(&cq->session);
	return ENOENT;
}

static int
next_poll(struct ibv_cq_ex *ibv)
{
	return take(vrb_to_cq_ex(ibv)) ? 0 : ENOENT;
}

static void
end_poll(struct ibv_cq_ex *ibv)
{
	struct vrb_vcq *cq = vrb_to_cq_ex(ibv);

	if (!cq->single_threaded)
		rte_spinlock_unlock(&cq->session);
}

static enum ibv_wc_opcode
read_opcode(struct ibv_cq_ex *ibv)
{
	return (enum ibv_wc_opcode)vrb_to_cq_ex(ibv)->cur.opcode;
}

static uint32_t
read_vendor_err(struct ibv_cq_ex *ibv)
{
	return vrb_to_cq_ex(ibv)->cur.vendor_err;
}

static uint32_t
read_byte_len(struct ibv_cq_ex *ibv)
{
	return vrb_to_cq_ex(ibv)->cur.byte_len;
}

static __be32
read_imm_data(struct ibv_cq_ex *ibv)
{
	return vrb_to_cq_ex(ibv)->cur.imm;
}

static uint32_t
read_qp_num(struct ibv_cq_ex *ibv)
{
	return vrb_to_cq_ex(ibv)->cur.qp_num;
}

static uint32_t
read_src_qp(struct ibv_cq_ex *ibv)
{
	return vrb_to_cq_ex(ibv)->cur.src_qp;
}

static unsigned int
read_wc_flags(struct ibv_cq_ex *ibv)
{
	return vrb_to_cq_ex(ibv)->cur.wc_flags;
}

/* There are no LIDs, service levels or path bits on Ethernet: what drivers of RoCE report is 0. */
static uint32_t
read_slid(struct ibv_cq_ex *ibv)
{
	return 0;
}

static uint8_t
read_sl(struct ibv_cq_ex *ibv)
{
	return 0;
}

static uint8_t
read_dlid_path_bits(struct ibv_cq_ex *ibv)
{
	return 0;
}

static uint64_t
read_completion_ts(struct ibv_cq_ex *ibv)
{
	return vrb_to_cq_ex(ibv)->cur.timestamp;
}

static uint64_t
read_completion_wallclock_ns(struct ibv_cq_ex *ibv)
{
	struct vrb_vcq *cq = vrb_to_cq_ex(ibv);
	uint64_t now = vrb_nic_now(cq->nic);
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec - (now - cq->cur.timestamp);
}

static uint16_t
read_cvlan(struct ibv_cq_ex *ibv)
{
	return vrb_to_cq_ex(ibv)->cur.cvlan;
}

static uint32_t
read_flow_tag(struct ibv_cq_ex *ibv)
{
	return vrb_to_cq_ex(ibv)->cur.flow_tag;
}

/* What was not asked for, or does not exist, reads as 0. */
static uint64_t
read_no_ts(struct ibv_cq_ex *ibv)
{
	return 0;
}

static uint16_t
read_no_cvlan(struct ibv_cq_ex *ibv)
{
	return 0;
}

static uint32_t
read_no_flow_tag(struct ibv_cq_ex *ibv)
{
	return 0;
}

static void
read_no_tm_info(struct ibv_cq_ex *ibv, struct ibv_wc_tm_info *tm_info)
{
	tm_info->tag = 0;
	tm_info->priv = 0;
}

void
vrb_cq_ex_ops(struct vrb_vcq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ops = &cq->ibv;

	ops->start_poll = start_poll;
	ops->next_poll = next_poll;
	ops->end_poll = end_poll;
	ops->read_opcode = read_opcode;
	ops->read_vendor_err = read_vendor_err;
	ops->read_byte_len = read_byte_len;
	ops->read_imm_data = read_imm_data;
	ops->read_qp_num = read_qp_num;
	ops->read_src_qp = read_src_qp;
	ops->read_wc_flags = read_wc_flags;
	ops->read_slid = read_slid;
	ops->read_sl = read_sl;
	ops->read_dlid_path_bits = read_dlid_path_bits;
	ops->read_completion_ts =
		wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP ? read_completion_ts : read_no_ts;
	ops->read_completion_wallclock_ns = wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK
						    ? read_completion_wallclock_ns
						    : read_no_ts;
	ops->read_cvlan = wc_flags & IBV_WC_EX_WITH_CVLAN ? read_cvlan : read_no_cvlan;
	ops->read_flow_tag = wc_flags & IBV_WC_EX_WITH_FLOW_TAG ? read_flow_tag : read_no_flow_tag;
	ops->read_tm_info = read_no_tm_info;
}
