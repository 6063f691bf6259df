/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The vocabulary of RDMA verbs, for the layers that know nothing of libibverbs.
 *
 * Every value is that of the verbs ABI (<infiniband/verbs.h>), so that the shim passes them
 * through; lib/verbs asserts each of them at compile time. Immediate data is kept in network byte
 * order, everything else in the host's.
 */
#ifndef VRB_TYPES_H
#define VRB_TYPES_H

#include <stdbool.h>
#include <stdint.h>

enum vrb_wc_status {
	VRB_WC_SUCCESS = 0,
	VRB_WC_LOC_LEN_ERR = 1,
	VRB_WC_LOC_QP_OP_ERR = 2,
	VRB_WC_LOC_PROT_ERR = 4,
	VRB_WC_WR_FLUSH_ERR = 5,
	VRB_WC_MW_BIND_ERR = 6,
	VRB_WC_BAD_RESP_ERR = 7,
	VRB_WC_LOC_ACCESS_ERR = 8,
	VRB_WC_REM_INV_REQ_ERR = 9,
	VRB_WC_REM_ACCESS_ERR = 10,
	VRB_WC_REM_OP_ERR = 11,
	VRB_WC_RETRY_EXC_ERR = 12,
	VRB_WC_RNR_RETRY_EXC_ERR = 13,
	VRB_WC_FATAL_ERR = 19,
	VRB_WC_GENERAL_ERR = 21,
};

enum vrb_wc_opcode {
	VRB_WC_SEND = 0,
	VRB_WC_RDMA_WRITE = 1,
	VRB_WC_RDMA_READ = 2,
	VRB_WC_COMP_SWAP = 3,
	VRB_WC_FETCH_ADD = 4,
	VRB_WC_BIND_MW = 5,
	VRB_WC_LOCAL_INV = 6,
	VRB_WC_ATOMIC_WRITE = 9,
	VRB_WC_RECV = 128,
	VRB_WC_RECV_RDMA_WITH_IMM = 129,
};

/* Bits of vrb_cqe.wc_flags. */
#define VRB_WC_GRH (1u << 0)
#define VRB_WC_WITH_IMM (1u << 1)
#define VRB_WC_IP_CSUM_OK (1u << 2)
#define VRB_WC_WITH_INV (1u << 3)

enum vrb_wr_opcode {
	VRB_WR_RDMA_WRITE = 0,
	VRB_WR_RDMA_WRITE_WITH_IMM = 1,
	VRB_WR_SEND = 2,
	VRB_WR_SEND_WITH_IMM = 3,
	VRB_WR_RDMA_READ = 4,
	VRB_WR_ATOMIC_CMP_AND_SWP = 5,
	VRB_WR_ATOMIC_FETCH_AND_ADD = 6,
	VRB_WR_LOCAL_INV = 7,
	VRB_WR_BIND_MW = 8,
	VRB_WR_SEND_WITH_INV = 9,
	VRB_WR_ATOMIC_WRITE = 15,
	VRB_WR_OPCODES = 16, /* some in between are not the device's */
};

/* Bits of vrb_send_wqe.flags. */
#define VRB_SEND_FENCE (1u << 0)
#define VRB_SEND_SIGNALED (1u << 1)
#define VRB_SEND_SOLICITED (1u << 2)
#define VRB_SEND_INLINE (1u << 3)
#define VRB_SEND_IP_CSUM (1u << 4)

/* Access rights of memory regions, windows and QPs. */
#define VRB_ACCESS_LOCAL_WRITE (1u << 0)
#define VRB_ACCESS_REMOTE_WRITE (1u << 1)
#define VRB_ACCESS_REMOTE_READ (1u << 2)
#define VRB_ACCESS_REMOTE_ATOMIC (1u << 3)
#define VRB_ACCESS_MW_BIND (1u << 4)
#define VRB_ACCESS_ZERO_BASED (1u << 5)
#define VRB_ACCESS_REMOTE \
	(VRB_ACCESS_REMOTE_WRITE | VRB_ACCESS_REMOTE_READ | VRB_ACCESS_REMOTE_ATOMIC)

enum vrb_qp_type {
	VRB_QPT_RC = 2,
	VRB_QPT_UC = 3,
	VRB_QPT_UD = 4,
	VRB_QPT_RAW_PACKET = 8,
	VRB_QPT_XRC_SEND = 9,
	VRB_QPT_XRC_RECV = 10,
};

enum vrb_qp_state {
	VRB_QPS_RESET = 0,
	VRB_QPS_INIT = 1,
	VRB_QPS_RTR = 2,
	VRB_QPS_RTS = 3,
	VRB_QPS_SQD = 4,
	VRB_QPS_SQE = 5,
	VRB_QPS_ERR = 6,
	VRB_QPS_NUM = 7,
};

enum vrb_mtu {
	VRB_MTU_256 = 1,
	VRB_MTU_512 = 2,
	VRB_MTU_1024 = 3,
	VRB_MTU_2048 = 4,
	VRB_MTU_4096 = 5,
};

/* Bits of the mask of vrb_qp_modify(). */
#define VRB_QP_STATE (1u << 0)
#define VRB_QP_CUR_STATE (1u << 1)
#define VRB_QP_EN_SQD_ASYNC_NOTIFY (1u << 2)
#define VRB_QP_ACCESS_FLAGS (1u << 3)
#define VRB_QP_PKEY_INDEX (1u << 4)
#define VRB_QP_PORT (1u << 5)
#define VRB_QP_QKEY (1u << 6)
#define VRB_QP_AV (1u << 7)
#define VRB_QP_PATH_MTU (1u << 8)
#define VRB_QP_TIMEOUT (1u << 9)
#define VRB_QP_RETRY_CNT (1u << 10)
#define VRB_QP_RNR_RETRY (1u << 11)
#define VRB_QP_RQ_PSN (1u << 12)
#define VRB_QP_MAX_QP_RD_ATOMIC (1u << 13)
#define VRB_QP_ALT_PATH (1u << 14)
#define VRB_QP_MIN_RNR_TIMER (1u << 15)
#define VRB_QP_SQ_PSN (1u << 16)
#define VRB_QP_MAX_DEST_RD_ATOMIC (1u << 17)
#define VRB_QP_PATH_MIG_STATE (1u << 18)
#define VRB_QP_CAP (1u << 19)
#define VRB_QP_DEST_QPN (1u << 20)
#define VRB_QP_RATE_LIMIT (1u << 25)

enum vrb_event_type {
	VRB_EVENT_CQ_ERR = 0,
	VRB_EVENT_QP_FATAL = 1,
	VRB_EVENT_QP_REQ_ERR = 2,
	VRB_EVENT_QP_ACCESS_ERR = 3,
	VRB_EVENT_COMM_EST = 4,
	VRB_EVENT_SQ_DRAINED = 5,
	VRB_EVENT_DEVICE_FATAL = 8,
	VRB_EVENT_PORT_ACTIVE = 9,
	VRB_EVENT_PORT_ERR = 10,
	VRB_EVENT_SRQ_ERR = 14,
	VRB_EVENT_SRQ_LIMIT_REACHED = 15,
	VRB_EVENT_QP_LAST_WQE_REACHED = 16,
	VRB_EVENT_WQ_FATAL = 19,
};

/** One piece of a program's memory; laid out as struct ibv_sge. */
struct vrb_sge {
	uint64_t addr;
	uint32_t length;
	uint32_t lkey;
};

/** An address of the network: IPv4-mapped (::ffff:a.b.c.d) or IPv6, in network byte order, as in a
 * GID. */
union vrb_gid {
	uint8_t raw[16];
	uint32_t dword[4];
};

#endif
