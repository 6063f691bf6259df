/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which attributes each change of state takes (IBTA table 91; ibv_modify_qp(3)), for each type of queue pair.
 *
 * ALT_PATH and PATH_MIG_STATE are missing: the device has no automatic path migration.
 */
#include "engine.h"

#define STATES [VRB_QPS_NUM][VRB_QPS_NUM]

/* Parts that recur. */
#define CONNECT (VRB_QP_AV | VRB_QP_PATH_MTU | VRB_QP_DEST_QPN | VRB_QP_RQ_PSN)
#define RESPOND (VRB_QP_MAX_DEST_RD_ATOMIC | VRB_QP_MIN_RNR_TIMER)
#define REQUEST (VRB_QP_TIMEOUT | VRB_QP_RETRY_CNT | VRB_QP_RNR_RETRY | VRB_QP_MAX_QP_RD_ATOMIC)
#define BASE (VRB_QP_PKEY_INDEX | VRB_QP_PORT)

static const struct vrb_transition rc STATES = {
	[VRB_QPS_RESET][VRB_QPS_INIT] = { true, BASE | VRB_QP_ACCESS_FLAGS, 0 },
	[VRB_QPS_INIT][VRB_QPS_INIT] = { true, 0, BASE | VRB_QP_ACCESS_FLAGS },
	[VRB_QPS_INIT][VRB_QPS_RTR] = { true, CONNECT | RESPOND, VRB_QP_ACCESS_FLAGS | VRB_QP_PKEY_INDEX },
	[VRB_QPS_RTR][VRB_QPS_RTS] = { true, REQUEST | VRB_QP_SQ_PSN,
		VRB_QP_CUR_STATE | VRB_QP_ACCESS_FLAGS | VRB_QP_MIN_RNR_TIMER },
	[VRB_QPS_RTS][VRB_QPS_RTS] = { true, 0, VRB_QP_CUR_STATE | VRB_QP_ACCESS_FLAGS | VRB_QP_MIN_RNR_TIMER },
	[VRB_QPS_RTS][VRB_QPS_SQD] = { true, 0, VRB_QP_EN_SQD_ASYNC_NOTIFY },
	[VRB_QPS_SQD][VRB_QPS_RTS] = { true, 0, VRB_QP_CUR_STATE | VRB_QP_ACCESS_FLAGS | VRB_QP_MIN_RNR_TIMER },
	[VRB_QPS_SQD][VRB_QPS_SQD] = { true, 0, VRB_QP_PORT | VRB_QP_AV | REQUEST | RESPOND | VRB_QP_ACCESS_FLAGS |
		VRB_QP_PKEY_INDEX },
};

static const struct vrb_transition uc STATES = {
	[VRB_QPS_RESET][VRB_QPS_INIT] = { true, BASE | VRB_QP_ACCESS_FLAGS, 0 },
	[VRB_QPS_INIT][VRB_QPS_INIT] = { true, 0, BASE | VRB_QP_ACCESS_FLAGS },
	[VRB_QPS_INIT][VRB_QPS_RTR] = { true, CONNECT, VRB_QP_ACCESS_FLAGS | VRB_QP_PKEY_INDEX },
	[VRB_QPS_RTR][VRB_QPS_RTS] = { true, VRB_QP_SQ_PSN, VRB_QP_CUR_STATE | VRB_QP_ACCESS_FLAGS },
	[VRB_QPS_RTS][VRB_QPS_RTS] = { true, 0, VRB_QP_CUR_STATE | VRB_QP_ACCESS_FLAGS },
	[VRB_QPS_RTS][VRB_QPS_SQD] = { true, 0, VRB_QP_EN_SQD_ASYNC_NOTIFY },
	[VRB_QPS_SQD][VRB_QPS_RTS] = { true, 0, VRB_QP_CUR_STATE | VRB_QP_ACCESS_FLAGS },
	[VRB_QPS_SQD][VRB_QPS_SQD] = { true, 0, VRB_QP_AV | VRB_QP_ACCESS_FLAGS | VRB_QP_PKEY_INDEX },
	[VRB_QPS_SQE][VRB_QPS_RTS] = { true, 0, VRB_QP_CUR_STATE | VRB_QP_ACCESS_FLAGS },
};

static const struct vrb_transition ud STATES = {
	[VRB_QPS_RESET][VRB_QPS_INIT] = { true, BASE | VRB_QP_QKEY, 0 },
	[VRB_QPS_INIT][VRB_QPS_INIT] = { true, 0, BASE | VRB_QP_QKEY },
	[VRB_QPS_INIT][VRB_QPS_RTR] = { true, 0, VRB_QP_PKEY_INDEX | VRB_QP_QKEY },
	[VRB_QPS_RTR][VRB_QPS_RTS] = { true, VRB_QP_SQ_PSN, VRB_QP_CUR_STATE | VRB_QP_QKEY },
	[VRB_QPS_RTS][VRB_QPS_RTS] = { true, 0, VRB_QP_CUR_STATE | VRB_QP_QKEY },
	[VRB_QPS_RTS][VRB_QPS_SQD] = { true, 0, VRB_QP_EN_SQD_ASYNC_NOTIFY },
	[VRB_QPS_SQD][VRB_QPS_RTS] = { true, 0, VRB_QP_CUR_STATE | VRB_QP_QKEY },
	[VRB_QPS_SQD][VRB_QPS_SQD] = { true, 0, VRB_QP_PKEY_INDEX | VRB_QP_QKEY },
	[VRB_QPS_SQE][VRB_QPS_RTS] = { true, 0, VRB_QP_CUR_STATE | VRB_QP_QKEY },
};

static const struct vrb_transition raw STATES = {
	[VRB_QPS_RESET][VRB_QPS_INIT] = { true, VRB_QP_PORT, 0 },
	[VRB_QPS_INIT][VRB_QPS_INIT] = { true, 0, VRB_QP_PORT },
	[VRB_QPS_INIT][VRB_QPS_RTR] = { true, 0, 0 },
	[VRB_QPS_RTR][VRB_QPS_RTS] = { true, 0, VRB_QP_CUR_STATE },
	[VRB_QPS_RTS][VRB_QPS_RTS] = { true, 0, VRB_QP_CUR_STATE },
	[VRB_QPS_RTS][VRB_QPS_SQD] = { true, 0, VRB_QP_EN_SQD_ASYNC_NOTIFY },
	[VRB_QPS_SQD][VRB_QPS_RTS] = { true, 0, VRB_QP_CUR_STATE },
	[VRB_QPS_SQD][VRB_QPS_SQD] = { true, 0, 0 },
	[VRB_QPS_SQE][VRB_QPS_RTS] = { true, 0, VRB_QP_CUR_STATE },
};

static const struct vrb_transition xrc_send STATES = {
	[VRB_QPS_RESET][VRB_QPS_INIT] = { true, BASE | VRB_QP_ACCESS_FLAGS, 0 },
	[VRB_QPS_INIT][VRB_QPS_INIT] = { true, 0, BASE | VRB_QP_ACCESS_FLAGS },
	[VRB_QPS_INIT][VRB_QPS_RTR] = { true, CONNECT, VRB_QP_ACCESS_FLAGS | VRB_QP_PKEY_INDEX },
	[VRB_QPS_RTR][VRB_QPS_RTS] = { true, REQUEST | VRB_QP_SQ_PSN, VRB_QP_CUR_STATE | VRB_QP_ACCESS_FLAGS },
	[VRB_QPS_RTS][VRB_QPS_RTS] = { true, 0, VRB_QP_CUR_STATE | VRB_QP_ACCESS_FLAGS },
	[VRB_QPS_RTS][VRB_QPS_SQD] = { true, 0, VRB_QP_EN_SQD_ASYNC_NOTIFY },
	[VRB_QPS_SQD][VRB_QPS_RTS] = { true, 0, VRB_QP_CUR_STATE | VRB_QP_ACCESS_FLAGS },
	[VRB_QPS_SQD][VRB_QPS_SQD] = { true, 0, VRB_QP_PORT | VRB_QP_AV | REQUEST | VRB_QP_ACCESS_FLAGS |
		VRB_QP_PKEY_INDEX },
};

static const struct vrb_transition xrc_recv STATES = {
	[VRB_QPS_RESET][VRB_QPS_INIT] = { true, BASE | VRB_QP_ACCESS_FLAGS, 0 },
	[VRB_QPS_INIT][VRB_QPS_INIT] = { true, 0, BASE | VRB_QP_ACCESS_FLAGS },
	[VRB_QPS_INIT][VRB_QPS_RTR] = { true, CONNECT | RESPOND, VRB_QP_ACCESS_FLAGS | VRB_QP_PKEY_INDEX },
	[VRB_QPS_RTR][VRB_QPS_RTS] = { true, VRB_QP_TIMEOUT | VRB_QP_SQ_PSN,
		VRB_QP_CUR_STATE | VRB_QP_ACCESS_FLAGS | VRB_QP_MIN_RNR_TIMER },
	[VRB_QPS_RTS][VRB_QPS_RTS] = { true, 0, VRB_QP_CUR_STATE | VRB_QP_ACCESS_FLAGS | VRB_QP_MIN_RNR_TIMER },
	[VRB_QPS_RTS][VRB_QPS_SQD] = { true, 0, VRB_QP_EN_SQD_ASYNC_NOTIFY },
	[VRB_QPS_SQD][VRB_QPS_RTS] = { true, 0, VRB_QP_CUR_STATE | VRB_QP_ACCESS_FLAGS | VRB_QP_MIN_RNR_TIMER },
	[VRB_QPS_SQD][VRB_QPS_SQD] = { true, 0, VRB_QP_PORT | VRB_QP_AV | VRB_QP_TIMEOUT | RESPOND |
		VRB_QP_ACCESS_FLAGS | VRB_QP_PKEY_INDEX },
};

const struct vrb_transition *
vrb_qp_transition(enum vrb_qp_type type, enum vrb_qp_state from, enum vrb_qp_state to)
{
	switch (type) {
	case VRB_QPT_UC:
		return &uc[from][to];
	case VRB_QPT_UD:
		return &ud[from][to];
	case VRB_QPT_RAW_PACKET:
		return &raw[from][to];
	case VRB_QPT_XRC_SEND:
		return &xrc_send[from][to];
	case VRB_QPT_XRC_RECV:
		return &xrc_recv[from][to];
	case VRB_QPT_RC:
		break;
	}
	return &rc[from][to];
}
