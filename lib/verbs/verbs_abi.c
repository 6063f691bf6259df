/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asserts, at compile time, that the engine's vocabulary is that of the verbs ABI, so that values
 * and structures can be passed through as they are.
 */
#include "verbs_private.h"

#define SAME(name) _Static_assert((int)VRB_##name == (int)IBV_##name, #name)

SAME(WC_SUCCESS);
SAME(WC_LOC_LEN_ERR);
SAME(WC_LOC_QP_OP_ERR);
SAME(WC_LOC_PROT_ERR);
SAME(WC_WR_FLUSH_ERR);
SAME(WC_MW_BIND_ERR);
SAME(WC_BAD_RESP_ERR);
SAME(WC_LOC_ACCESS_ERR);
SAME(WC_REM_INV_REQ_ERR);
SAME(WC_REM_ACCESS_ERR);
SAME(WC_REM_OP_ERR);
SAME(WC_RETRY_EXC_ERR);
SAME(WC_RNR_RETRY_EXC_ERR);
SAME(WC_FATAL_ERR);
SAME(WC_GENERAL_ERR);

SAME(WC_SEND);
SAME(WC_RDMA_WRITE);
SAME(WC_RDMA_READ);
SAME(WC_COMP_SWAP);
SAME(WC_FETCH_ADD);
SAME(WC_BIND_MW);
SAME(WC_LOCAL_INV);
SAME(WC_ATOMIC_WRITE);
SAME(WC_RECV);
SAME(WC_RECV_RDMA_WITH_IMM);

SAME(WC_GRH);
SAME(WC_WITH_IMM);
SAME(WC_IP_CSUM_OK);
SAME(WC_WITH_INV);

SAME(WR_RDMA_WRITE);
SAME(WR_RDMA_WRITE_WITH_IMM);
SAME(WR_SEND);
SAME(WR_SEND_WITH_IMM);
SAME(WR_RDMA_READ);
SAME(WR_ATOMIC_CMP_AND_SWP);
SAME(WR_ATOMIC_FETCH_AND_ADD);
SAME(WR_LOCAL_INV);
SAME(WR_BIND_MW);
SAME(WR_SEND_WITH_INV);
SAME(WR_ATOMIC_WRITE);

SAME(SEND_FENCE);
SAME(SEND_SIGNALED);
SAME(SEND_SOLICITED);
SAME(SEND_INLINE);
SAME(SEND_IP_CSUM);

SAME(ACCESS_LOCAL_WRITE);
SAME(ACCESS_REMOTE_WRITE);
SAME(ACCESS_REMOTE_READ);
SAME(ACCESS_REMOTE_ATOMIC);
SAME(ACCESS_MW_BIND);
SAME(ACCESS_ZERO_BASED);

SAME(QPT_RC);
SAME(QPT_UC);
SAME(QPT_UD);
SAME(QPT_RAW_PACKET);
SAME(QPT_XRC_SEND);
SAME(QPT_XRC_RECV);

SAME(QPS_RESET);
SAME(QPS_INIT);
SAME(QPS_RTR);
SAME(QPS_RTS);
SAME(QPS_SQD);
SAME(QPS_SQE);
SAME(QPS_ERR);

SAME(MTU_256);
SAME(MTU_512);
SAME(MTU_1024);
SAME(MTU_2048);
SAME(MTU_4096);

SAME(QP_STATE);
SAME(QP_CUR_STATE);
SAME(QP_EN_SQD_ASYNC_NOTIFY);
SAME(QP_ACCESS_FLAGS);
SAME(QP_PKEY_INDEX);
SAME(QP_PORT);
SAME(QP_QKEY);
SAME(QP_AV);
SAME(QP_PATH_MTU);
SAME(QP_TIMEOUT);
SAME(QP_RETRY_CNT);
SAME(QP_RNR_RETRY);
SAME(QP_RQ_PSN);
SAME(QP_MAX_QP_RD_ATOMIC);
SAME(QP_ALT_PATH);
SAME(QP_MIN_RNR_TIMER);
SAME(QP_SQ_PSN);
SAME(QP_MAX_DEST_RD_ATOMIC);
SAME(QP_PATH_MIG_STATE);
SAME(QP_CAP);
SAME(QP_DEST_QPN);
SAME(QP_RATE_LIMIT);

SAME(EVENT_CQ_ERR);
SAME(EVENT_QP_FATAL);
SAME(EVENT_QP_REQ_ERR);
SAME(EVENT_QP_ACCESS_ERR);
SAME(EVENT_COMM_EST);
SAME(EVENT_SQ_DRAINED);
SAME(EVENT_DEVICE_FATAL);
SAME(EVENT_PORT_ACTIVE);
SAME(EVENT_PORT_ERR);
SAME(EVENT_SRQ_ERR);
SAME(EVENT_SRQ_LIMIT_REACHED);
SAME(EVENT_QP_LAST_WQE_REACHED);
SAME(EVENT_WQ_FATAL);

#define SAME_PLACE(ours, field, theirs, other) \
	_Static_assert( \
		offsetof(struct ours, field) == offsetof(struct theirs, other) && \
			sizeof(((struct ours *)0)->field) == sizeof(((struct theirs *)0)->other), \
		#field)

SAME_PLACE(vrb_sge, addr, ibv_sge, addr);
SAME_PLACE(vrb_sge, length, ibv_sge, length);
SAME_PLACE(vrb_sge, lkey, ibv_sge, lkey);
_Static_assert(sizeof(struct vrb_sge) == sizeof(struct ibv_sge), "struct vrb_sge");
_Static_assert(sizeof(union vrb_gid) == sizeof(union ibv_gid), "union vrb_gid");

SAME_PLACE(vrb_cqe, wr_id, ibv_wc, wr_id);
SAME_PLACE(vrb_cqe, status, ibv_wc, status);
SAME_PLACE(vrb_cqe, opcode, ibv_wc, opcode);
SAME_PLACE(vrb_cqe, vendor_err, ibv_wc, vendor_err);
SAME_PLACE(vrb_cqe, byte_len, ibv_wc, byte_len);
SAME_PLACE(vrb_cqe, imm, ibv_wc, imm_data);
SAME_PLACE(vrb_cqe, qp_num, ibv_wc, qp_num);
SAME_PLACE(vrb_cqe, src_qp, ibv_wc, src_qp);
SAME_PLACE(vrb_cqe, wc_flags, ibv_wc, wc_flags);
_Static_assert(offsetof(struct ibv_wc, pkey_index) == offsetof(struct vrb_cqe, wc_flags) + 4,
	"end of the common part");

/* The structures of the ABI come first in ours. */
_Static_assert(offsetof(struct vrb_ctx, v) + sizeof(struct verbs_context) == sizeof(struct vrb_ctx),
	"struct vrb_ctx");
_Static_assert(offsetof(struct vrb_vcq, ibv) == 0 && offsetof(struct vrb_vqp, ibv) == 0,
	"struct ibv_cq, struct ibv_qp");
SAME_PLACE(ibv_cq_ex, context, ibv_cq, context);
SAME_PLACE(ibv_cq_ex, cond, ibv_cq, cond);
SAME_PLACE(ibv_cq_ex, async_events_completed, ibv_cq, async_events_completed);
