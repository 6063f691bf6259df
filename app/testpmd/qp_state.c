/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs on their way through their states. See qp_state.h; ibv_modify_qp(3) has the table of
 * what each step needs.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "backend.h"
#include "commands.h"
#include "events.h"
#include "post.h"
#include "qp_state.h"

const char *const tp_qp_targets[] = {"reset", "init", "sqd", "rts", "error", NULL};
enum target { TO_RESET, TO_INIT, TO_SQD, TO_RTS, TO_ERROR };

#define HOP_LIMIT 64
#define MIN_RNR_TIMER 12 /* 0.64 ms: IBTA table 45 */
#define READS_AT_ONCE 16

/* One step. @return 0, or -errno after tp_refuse() */
static int
step(struct tp_qp *qp, struct vrb_qp_attr *a, enum vrb_qp_state to, uint32_t mask)
{
	enum vrb_qp_state from = vrb_qp_state(qp->qp);
	int rc;

	a->state = to;
	tp_events_clear_reason();
	if (to == VRB_QPS_RESET || to == VRB_QPS_ERR)
		tp_settle(qp->qp);
	tp_lock();
	rc = vrb_qp_modify(qp->qp, a, VRB_QP_STATE | mask, tp_now());
	tp_unlock();
	if (rc == 0)
		return 0;
	return tp_refuse(rc, "qp %u does not go from state %s to %s: %s", qp->obj.id,
		tp_state_name(from), tp_state_name(to),
		*tp_events_reason() ? tp_events_reason() : strerror(-rc));
}

static int
to_init(struct tp_qp *qp)
{
	struct vrb_qp_attr a = {.port_num = 1, .access = TP_ACCESS_ALL, .qkey = qp->qkey};

	switch (qp->type) {
	case VRB_QPT_RAW_PACKET:
		return step(qp, &a, VRB_QPS_INIT, VRB_QP_PORT);
	case VRB_QPT_UD:
		return step(qp, &a, VRB_QPS_INIT, VRB_QP_PKEY_INDEX | VRB_QP_PORT | VRB_QP_QKEY);
	case VRB_QPT_UC:
		a.access = VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE_WRITE;
		break;
	default:
		break;
	}
	return step(qp, &a, VRB_QPS_INIT, VRB_QP_PKEY_INDEX | VRB_QP_PORT | VRB_QP_ACCESS_FLAGS);
}

int
tp_qp_prepare(struct tp_qp *qp)
{
	struct vrb_qp_attr a = {.sq_psn = qp->psn};
	int rc = to_init(qp);

	if (rc < 0 || qp->type == VRB_QPT_RC || qp->type == VRB_QPT_UC)
		return rc;
	rc = step(qp, &a, VRB_QPS_RTR, 0);
	if (rc < 0)
		return rc;
	return step(qp, &a, VRB_QPS_RTS, qp->type == VRB_QPT_UD ? VRB_QP_SQ_PSN : 0);
}

int
tp_qp_may_connect(const struct tp_qp *qp)
{
	enum vrb_qp_state state = vrb_qp_state(qp->qp);

	if (qp->type == VRB_QPT_RAW_PACKET)
		return tp_refuse(
			-EINVAL, "qp %u has raw frames and is connected to nobody", qp->obj.id);
	if (qp->type == VRB_QPT_UD)
		return 0;
	if (state == VRB_QPS_INIT)
		return 0;
	return tp_refuse(-EISCONN,
		"qp %u is in state %s, and is connected from state init only: qp modify %u state "
		"reset, and then init",
		qp->obj.id, tp_state_name(state), qp->obj.id);
}

/* @return 0, or -errno after tp_refuse() */
static int
address(const struct tp_qp_peer *peer, struct vrb_av *av)
{
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
	bool v4 = memcmp(peer->gid.raw, mapped, sizeof(mapped)) == 0;
	char text[INET6_ADDRSTRLEN];
	struct tp_device dev;
	int rc;

	tp_device(&dev);
	memset(av, 0, sizeof(*av));
	av->dgid = peer->gid;
	/* Its own address of the same family. */
	av->sgid_index = v4 == (memcmp(dev.gid[0].raw, mapped, sizeof(mapped)) == 0) ? 0 : 1;
	av->hop_limit = HOP_LIMIT;
	rc = tp_resolve(&peer->gid, av->dmac);
	if (rc < 0)
		return tp_refuse(rc, "no way is known to %s: %s", tp_gid_text(&peer->gid, text),
			rc == -EINVAL ? "it is no address of this network" : strerror(-rc));
	return 0;
}

static int
connect_datagrams(struct tp_qp *qp, const struct tp_qp_peer *peer, const struct vrb_av *av)
{
	struct vrb_ah *ah;
	int rc = tp_refuse_traffic(&qp->obj);

	if (rc < 0)
		return rc;
	tp_lock();
	rc = vrb_ah_create(tp_engine(), tp_pd(), av, &ah);
	if (rc == 0 && qp->ah != NULL)
		vrb_ah_destroy(tp_engine(), qp->ah);
	tp_unlock();
	if (rc < 0)
		return tp_refuse(rc, "no address handle can be made: %s", strerror(-rc));
	qp->ah = ah;
	qp->remote_qpn = peer->qpn;
	qp->remote_qkey = peer->qkey;
	return 0;
}

static int
path_mtu(const struct tp_qp_peer *peer, enum vrb_mtu *mtu)
{
	struct tp_device dev;
	uint32_t bytes = peer->mtu;

	tp_device(&dev);
	if (bytes == 0)
		bytes = dev.max_mtu;
	if (!rte_is_power_of_2(bytes) || bytes > dev.max_mtu)
		return tp_refuse(-EINVAL,
			"mtu is 256, 512, 1024, 2048 or 4096, and not above what the port carries, "
			"%u",
			dev.max_mtu);
	/* 256 is 1, 512 is 2 ... */
	*mtu = (enum vrb_mtu)(__builtin_ctz(bytes) - 7);
	return 0;
}

int
tp_qp_connect(struct tp_qp *qp, const struct tp_qp_peer *peer)
{
	bool rc_type = qp->type == VRB_QPT_RC;
	struct vrb_qp_attr a = {
		.dest_qpn = peer->qpn,
		.rq_psn = peer->psn,
		.sq_psn = qp->psn,
		.max_rd_atomic = READS_AT_ONCE,
		.max_dest_rd_atomic = READS_AT_ONCE,
		.min_rnr_timer = MIN_RNR_TIMER,
		.timeout = peer->timeout,
		.retry_cnt = peer->retry,
		.rnr_retry = peer->rnr_retry,
	};
	int rc = tp_qp_may_connect(qp);

	if (rc == 0)
		rc = address(peer, &a.av);
	if (rc < 0)
		return rc;
	if (qp->type == VRB_QPT_UD)
		return connect_datagrams(qp, peer, &a.av);
	rc = path_mtu(peer, &a.path_mtu);
	if (rc == 0)
		rc = step(qp, &a, VRB_QPS_RTR,
			VRB_QP_AV | VRB_QP_PATH_MTU | VRB_QP_DEST_QPN | VRB_QP_RQ_PSN |
				(rc_type ? VRB_QP_MAX_DEST_RD_ATOMIC | VRB_QP_MIN_RNR_TIMER : 0));
	if (rc < 0)
		return rc;
	return step(qp, &a, VRB_QPS_RTS,
		VRB_QP_SQ_PSN | (rc_type ? VRB_QP_TIMEOUT | VRB_QP_RETRY_CNT | VRB_QP_RNR_RETRY |
							VRB_QP_MAX_QP_RD_ATOMIC
					 : 0));
}

static int
reset(struct tp_qp *qp)
{
	struct vrb_qp_attr a = {0};
	int rc = tp_refuse_traffic(&qp->obj);

	if (rc == 0)
		rc = step(qp, &a, VRB_QPS_RESET, 0);
	if (rc < 0)
		return rc;
	/* What was posted is forgotten, and so is what has completed. */
	tp_lock();
	tp_cq_forget(qp->send_cq, qp);
	tp_cq_forget(qp->recv_cq, qp);
	tp_unlock();
	if (qp->buffers.num > 0)
		tp_buffers_reset(&qp->buffers);
	return 0;
}

int
tp_qp_flush(struct tp_qp *qp)
{
	struct vrb_qp_attr a = {0};

	return step(qp, &a, VRB_QPS_ERR, 0);
}

int
tp_qp_to(struct tp_qp *qp, unsigned int target)
{
	struct vrb_qp_attr a = {0};

	if (qp->ind_table != NULL)
		return tp_refuse(-EOPNOTSUPP,
			"qp %u has an indirection table, and no other state than it was made in",
			qp->obj.id);
	switch (target) {
	case TO_RESET:
		return reset(qp);
	case TO_INIT:
		return to_init(qp);
	case TO_SQD:
		return step(qp, &a, VRB_QPS_SQD, 0);
	case TO_RTS:
		if (vrb_qp_state(qp->qp) != VRB_QPS_INIT)
			return step(qp, &a, VRB_QPS_RTS, 0);
		if (qp->type == VRB_QPT_RC || qp->type == VRB_QPT_UC)
			return tp_refuse(-ENOTCONN, "qp %u has no peer: qp connect %u", qp->obj.id,
				qp->obj.id);
		a.sq_psn = qp->psn;
		if (step(qp, &a, VRB_QPS_RTR, 0) < 0)
			return -EINVAL;
		return step(qp, &a, VRB_QPS_RTS, qp->type == VRB_QPT_UD ? VRB_QP_SQ_PSN : 0);
	case TO_ERROR:
	default:
		return tp_qp_flush(qp);
	}
}
