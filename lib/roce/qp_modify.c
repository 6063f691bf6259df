/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state machine of queue pairs and their attributes (IBTA 10.3, 11.2.5.2; ibv_modify_qp(3)).
 *
 * A call is checked as a whole, and what may fail is done, before anything is changed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

bool
vrb_gid_is_v4(const union vrb_gid *gid)
{
	return gid->dword[0] == 0 && gid->dword[1] == 0 &&
	       gid->dword[2] == rte_cpu_to_be_32(0xffff);
}

static int
refuse(struct vrb_qp *qp, const char *why)
{
	vrb_explain(qp->engine, "modify QP %#x: %s", qp->qpn, why);
	return -EINVAL;
}

static int
check_transition(struct vrb_qp *qp, enum vrb_qp_state from, enum vrb_qp_state to, uint32_t mask)
{
	static const char *const names[VRB_QPS_NUM] = {
		"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
	const struct vrb_transition *t;

	mask &= ~VRB_QP_STATE;
	/* From any state, with nothing else. */
	if (to == VRB_QPS_RESET || to == VRB_QPS_ERR)
		return (mask & ~VRB_QP_CUR_STATE) == 0
			       ? 0
			       : refuse(qp, "going to RESET or ERR takes no other attribute");
	t = vrb_qp_transition(qp->init.type, from, to);
	if (!t->valid) {
		vrb_explain(qp->engine, "modify QP %#x: it cannot go from %s to %s", qp->qpn,
			names[from], names[to]);
		return -EINVAL;
	}
	if ((mask & t->required) != t->required) {
		vrb_explain(qp->engine, "modify QP %#x from %s to %s: the mask lacks %#x", qp->qpn,
			names[from], names[to], t->required & ~mask);
		return -EINVAL;
	}
	if (mask & ~(t->required | t->optional)) {
		vrb_explain(qp->engine,
			"modify QP %#x from %s to %s: the mask has %#x, which may not be set there",
			qp->qpn, names[from], names[to], mask & ~(t->required | t->optional));
		return -EINVAL;
	}
	return 0;
}

const char *
vrb_av_check(const struct vrb_engine *e, const struct vrb_av *av)
{
	if (av->sgid_index >= VRB_GIDS)
		return "sgid_index is beyond the GID table";
	if (vrb_gid_is_v4(&av->dgid) != vrb_gid_is_v4(&e->conf.gid[av->sgid_index]))
		return "the GID at sgid_index is of another address family than the destination's";
	if (av->flow_label > 0xfffff)
		return "flow_label has more than 20 bits";
	return NULL;
}

/** The values, as far as the mask names them. */
static int
check_values(struct vrb_qp *qp, const struct vrb_qp_attr *a, uint32_t mask)
{
	const uint32_t access = VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE | VRB_ACCESS_MW_BIND;
	const char *why;

	if ((mask & VRB_QP_CUR_STATE) && a->cur_state != vrb_qp_get_state(qp))
		return refuse(qp, "cur_qp_state is not the state that it is in");
	if ((mask & VRB_QP_PKEY_INDEX) && a->pkey_index >= VRB_PKEYS)
		return refuse(qp, "pkey_index is beyond the P_Key table");
	if ((mask & VRB_QP_PORT) && a->port_num != 1)
		return refuse(qp, "the device has port 1 only");
	if ((mask & VRB_QP_ACCESS_FLAGS) && (a->access & ~access))
		return refuse(qp, "unknown access flags");
	if ((mask & VRB_QP_PATH_MTU) && (a->path_mtu < VRB_MTU_256 || a->path_mtu > VRB_MTU_4096 ||
						(128u << a->path_mtu) > qp->engine->max_mtu))
		return refuse(qp, "path_mtu is larger than the port's active MTU, or not an MTU");
	if ((mask & VRB_QP_DEST_QPN) && a->dest_qpn > VRB_PSN_MASK)
		return refuse(qp, "dest_qp_num has more than 24 bits");
	if ((mask & VRB_QP_MAX_QP_RD_ATOMIC) && a->max_rd_atomic > VRB_MAX_RD_ATOM)
		return refuse(qp, "max_rd_atomic is above the device's max_qp_init_rd_atom");
	if ((mask & VRB_QP_MAX_DEST_RD_ATOMIC) && a->max_dest_rd_atomic > VRB_MAX_RD_ATOM)
		return refuse(qp, "max_dest_rd_atomic is above the device's max_qp_rd_atom");
	if ((mask & VRB_QP_MIN_RNR_TIMER) && a->min_rnr_timer > 31)
		return refuse(qp, "min_rnr_timer is above 31");
	if ((mask & VRB_QP_TIMEOUT) && a->timeout > 31)
		return refuse(qp, "timeout is above 31");
	if ((mask & VRB_QP_RETRY_CNT) && a->retry_cnt > 7)
		return refuse(qp, "retry_cnt is above 7");
	if ((mask & VRB_QP_RNR_RETRY) && a->rnr_retry > 7)
		return refuse(qp, "rnr_retry is above 7");
	why = mask & VRB_QP_AV ? vrb_av_check(qp->engine, &a->av) : NULL;
	return why != NULL ? refuse(qp, why) : 0;
}

/** Room for the answers that are waiting, and for the saved results of atomics. */
static int
make_resp_queues(struct vrb_qp *qp, uint32_t max_dest)
{
	struct vrb_responder *resp = &qp->resp;
	struct vrb_resp_op *ops;
	struct vrb_atomic_saved *saved;
	/* As many requests as may be in flight, and as many duplicates of them. */
	uint32_t n = rte_align32pow2(2 * max_dest), i;

	if (max_dest == 0)
		return 0;
	ops = calloc(n, sizeof(*ops));
	saved = calloc(max_dest, sizeof(*saved));
	if (ops == NULL || saved == NULL) {
		free(ops);
		free(saved);
		return -ENOMEM;
	}
	/* Changed in SQD: what waits to be answered, and what may be asked for again, is taken
	 * along. */
	for (i = resp->ops_tail; i != resp->ops_head && i - resp->ops_tail < n; i++)
		ops[i & (n - 1)] = resp->ops[i & resp->ops_mask];
	resp->ops_head = i;
	for (i = 0; i < resp->saved_num && i < max_dest; i++)
		saved[i] =
			resp->saved[(resp->saved_next + resp->saved_num - 1 - i) % resp->saved_num];
	free(resp->ops);
	free(resp->saved);
	resp->ops = ops;
	resp->ops_mask = n - 1;
	resp->saved = saved;
	resp->saved_num = max_dest;
	resp->saved_next = i % max_dest;
	return 0;
}

static void
copy_attrs(struct vrb_qp *qp, const struct vrb_qp_attr *a, uint32_t mask)
{
	struct vrb_qp_attr *to = &qp->attr;

	if (mask & VRB_QP_EN_SQD_ASYNC_NOTIFY)
		to->en_sqd_async_notify = a->en_sqd_async_notify;
	if (mask & VRB_QP_ACCESS_FLAGS)
		to->access = a->access;
	if (mask & VRB_QP_PKEY_INDEX)
		to->pkey_index = a->pkey_index;
	if (mask & VRB_QP_QKEY)
		to->qkey = a->qkey;
	if (mask & VRB_QP_PORT)
		to->port_num = a->port_num;
	if (mask & VRB_QP_PATH_MTU)
		to->path_mtu = a->path_mtu;
	if (mask & VRB_QP_TIMEOUT)
		to->timeout = a->timeout;
	if (mask & VRB_QP_RETRY_CNT)
		to->retry_cnt = a->retry_cnt;
	if (mask & VRB_QP_RNR_RETRY)
		to->rnr_retry = a->rnr_retry;
	if (mask & VRB_QP_RQ_PSN)
		to->rq_psn = a->rq_psn & VRB_PSN_MASK;
	if (mask & VRB_QP_SQ_PSN)
		to->sq_psn = a->sq_psn & VRB_PSN_MASK;
	if (mask & VRB_QP_MAX_QP_RD_ATOMIC)
		to->max_rd_atomic = a->max_rd_atomic;
	if (mask & VRB_QP_MAX_DEST_RD_ATOMIC)
		to->max_dest_rd_atomic = a->max_dest_rd_atomic;
	if (mask & VRB_QP_MIN_RNR_TIMER)
		to->min_rnr_timer = a->min_rnr_timer;
	if (mask & VRB_QP_DEST_QPN)
		to->dest_qpn = a->dest_qpn;
	if (mask & VRB_QP_AV)
		to->av = a->av;
	if (mask & (VRB_QP_AV | VRB_QP_DEST_QPN))
		vrb_path_init(qp->engine, &qp->attr.av, vrb_udp_sport(qp), &qp->path);
	if (mask & VRB_QP_AV)
		vrb_direct_open(qp);
}

static void
to_rtr(struct vrb_qp *qp)
{
	qp->mtu =
		qp->transport == VRB_TRANSPORT_UD ? qp->engine->max_mtu : 128u << qp->attr.path_mtu;
	qp->resp.epsn = qp->attr.rq_psn;
	qp->resp.msn = 0;
	qp->comm_est = false;
	if (++qp->engine->next_gen == 0)
		qp->engine->next_gen = 1;
	qp->gen = qp->engine->next_gen;
}

static void
from_rtr_to_rts(struct vrb_qp *qp)
{
	struct vrb_requester *req = &qp->req;

	req->psn = qp->attr.sq_psn;
	req->max_psn = req->psn;
	req->una = req->psn;
}

/**
 * Everything as after creation; what was posted is forgotten without completion, and so are its
 * completions that were not polled (ibv_modify_qp to RESET): those of the next connection are not
 * to be taken for them.
 */
static void
to_reset(struct vrb_qp *qp)
{
	struct vrb_recv_wqe *copy = qp->resp.srq_copy;
	struct vrb_sq *sq = &qp->sq;
	uint32_t idx, head;

	/* Before the lock of the send queue is taken: who posts after that sees it. */
	atomic_store_explicit(&qp->state, VRB_QPS_RESET, memory_order_relaxed);
	vrb_timer_set(qp->engine, &qp->timer, 0);
	vrb_direct_close(qp);
	vrb_mw_forget_qp(qp->engine, qp);
	if (qp->send_cq != NULL)
		vrb_cq_forget(qp->send_cq, qp);
	if (qp->recv_cq != NULL && qp->recv_cq != qp->send_cq)
		vrb_cq_forget(qp->recv_cq, qp);
	rte_spinlock_lock(&sq->lock);
	head = atomic_load_explicit(&sq->head, memory_order_relaxed);
	for (idx = atomic_load_explicit(&sq->tail, memory_order_relaxed); idx != head; idx++)
		vrb_sq_renew(vrb_sq_at(sq, idx));
	atomic_store_explicit(&sq->tail, head, memory_order_release);
	sq->next = head;
	rte_spinlock_unlock(&sq->lock);
	if (qp->rq == &qp->own_rq)
		vrb_rq_close(&qp->own_rq);
	free(qp->resp.ops);
	free(qp->resp.saved);
	memset(&qp->req, 0, sizeof(qp->req));
	memset(&qp->comp, 0, sizeof(qp->comp));
	memset(&qp->resp, 0, sizeof(qp->resp));
	memset(&qp->attr, 0, sizeof(qp->attr));
	qp->resp.srq_copy = copy;
	if (qp->xrcd != NULL) {
		qp->srq = NULL;
		qp->rq = NULL;
		qp->pd = NULL;
		qp->recv_cq = NULL;
	}
	qp->attr.path_mtu = VRB_MTU_1024;
	qp->drained = false;
}

static void
enter(struct vrb_qp *qp, enum vrb_qp_state from, enum vrb_qp_state to)
{
	if (to == VRB_QPS_ERR) {
		vrb_qp_error(qp);
		return;
	}
	if (to == VRB_QPS_RESET)
		to_reset(qp);
	else if (to == VRB_QPS_INIT && qp->rq == &qp->own_rq)
		vrb_rq_open(&qp->own_rq);
	else if (to == VRB_QPS_RTR)
		to_rtr(qp);
	else if (to == VRB_QPS_RTS && from == VRB_QPS_RTR)
		from_rtr_to_rts(qp);
	else if (to == VRB_QPS_SQD && from == VRB_QPS_RTS)
		qp->drained = false;
	if (to == VRB_QPS_RTS) {
		qp->req.window = VRB_WINDOW;
		qp->req.recover = qp->req.una;
		qp->req.retry_left = qp->attr.retry_cnt;
		qp->req.rnr_left = qp->attr.rnr_retry;
	}
	atomic_store_explicit(&qp->state, to, memory_order_relaxed);
	if (to == VRB_QPS_SQD)
		vrb_comp_advance(qp); /* it may be drained already */
	vrb_engine_schedule(qp);
}

int
vrb_qp_modify(struct vrb_qp *qp, const struct vrb_qp_attr *attr, uint32_t mask, uint64_t now)
{
	enum vrb_qp_state from = vrb_qp_get_state(qp), to = from;
	int rc;

	qp->engine->now = now;
	if (qp->init.ind_tbl != NULL) {
		vrb_explain(qp->engine,
			"modify QP %#x: it has an indirection table, and only the state that it "
			"was made in",
			qp->qpn);
		return -EOPNOTSUPP;
	}
	if (mask & VRB_QP_STATE) {
		to = attr->state;
		if ((unsigned int)to >= VRB_QPS_NUM)
			return refuse(qp, "qp_state is not a state");
	}
	/* Without a new state, ERR and RESET take nothing at all. */
	if (!(mask & VRB_QP_STATE) && (from == VRB_QPS_RESET || from == VRB_QPS_ERR))
		return mask == 0 ? 0 : refuse(qp, "in RESET and ERR no attribute can be changed");
	rc = check_transition(qp, from, to, mask);
	if (rc == 0)
		rc = check_values(qp, attr, mask);
	if (rc == 0 && (mask & VRB_QP_MAX_DEST_RD_ATOMIC))
		rc = make_resp_queues(qp, attr->max_dest_rd_atomic);
	if (rc < 0)
		return rc;
	/* What peers do themselves by the attributes of before comes to an end first. */
	if (qp->on_board) {
		vrb_board_drop_qp(qp);
		vrb_board_settle(qp->engine);
	}
	copy_attrs(qp, attr, mask);
	if (mask & VRB_QP_STATE)
		enter(qp, from, to);
	vrb_board_put_qp(qp);
	if (unlikely(qp->engine->cq_overrun))
		vrb_engine_overruns(qp->engine);
	return 0;
}

void
vrb_qp_query(const struct vrb_qp *qp, struct vrb_qp_attr *attr)
{
	*attr = qp->attr;
	attr->state = vrb_qp_get_state(qp);
	attr->cur_state = attr->state;
	attr->sq_draining = attr->state == VRB_QPS_SQD && !qp->drained;
}
