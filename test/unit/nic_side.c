/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC with one queue pair, and what a verbs library does with it (see nic_side.h).
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "nic_side.h"

void
side_check(int rc, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-rc));
	exit(1);
}

static void
notify(void *ctx, struct vrb_cq *cq)
{
	const uint64_t one = 1;

	side_check(write(*(int *)cq->user, &one, sizeof(one)) < 0 ? -errno : 0, "notify");
}

static void
async(void *ctx, enum vrb_event_type type, void *obj)
{
	fprintf(stderr, "async event %d\n", type);
}

static void
explain(void *ctx, const char *sentence)
{
	fprintf(stderr, "%s\n", sentence);
}

static const struct vrb_engine_ops ops = {.cq_notify = notify, .async = async, .explain = explain};

void
side_connect(struct side *s, const struct side_hello *peer)
{
	struct vrb_qp_attr a = {.state = VRB_QPS_INIT,
		.port_num = 1,
		.access =
			VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE_WRITE | VRB_ACCESS_REMOTE_READ};
	uint64_t now;

	s->peer = *peer;
	a.av.dgid = peer->gid;
	side_check(vrb_nic_resolve(s->nic, &peer->gid, a.av.dmac), "resolve");
	vrb_nic_lock(s->nic);
	now = vrb_nic_now(s->nic);
	side_check(
		vrb_qp_modify(s->qp, &a,
			VRB_QP_STATE | VRB_QP_PKEY_INDEX | VRB_QP_PORT | VRB_QP_ACCESS_FLAGS, now),
		"INIT");
	a.state = VRB_QPS_RTR;
	/* 256 is 1, 512 is 2 ... */
	a.path_mtu = __builtin_ctz(vrb_engine_max_mtu(s->engine)) - 7;
	a.dest_qpn = peer->qpn;
	a.rq_psn = a.sq_psn = 1000;
	a.max_rd_atomic = a.max_dest_rd_atomic = 16;
	a.min_rnr_timer = 12;
	a.av.hop_limit = 64;
	side_check(vrb_qp_modify(s->qp, &a,
			   VRB_QP_STATE | VRB_QP_AV | VRB_QP_PATH_MTU | VRB_QP_DEST_QPN |
				   VRB_QP_RQ_PSN | VRB_QP_MAX_DEST_RD_ATOMIC | VRB_QP_MIN_RNR_TIMER,
			   now),
		"RTR");
	a.state = VRB_QPS_RTS;
	a.timeout = 14;
	a.retry_cnt = a.rnr_retry = 7;
	side_check(vrb_qp_modify(s->qp, &a,
			   VRB_QP_STATE | VRB_QP_TIMEOUT | VRB_QP_RETRY_CNT | VRB_QP_RNR_RETRY |
				   VRB_QP_SQ_PSN | VRB_QP_MAX_QP_RD_ATOMIC,
			   now),
		"RTS");
	vrb_nic_unlock(s->nic);
}

void
side_open(struct side *s, struct vrb_nic_conf *conf, struct side_hello *hello)
{
	struct vrb_qp_init init = {.type = VRB_QPT_RC,
		.max_send_wr = SIDE_DEPTH,
		.max_recv_wr = SIDE_DEPTH,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_inline = 64};
	struct vrb_nic_info info;
	char why[300] = "";
	int rc;

	memset(s, 0, sizeof(*s));
	conf->ops = &ops;
	conf->ctx = s;
	rc = vrb_nic_open(conf, &s->nic, why, sizeof(why));
	side_check(rc, why);
	s->engine = vrb_nic_engine(s->nic);
	s->buf = aligned_alloc(4096, SIDE_BUFFER);
	memset(s->buf, 0, SIDE_BUFFER);
	s->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	vrb_nic_lock(s->nic);
	side_check(vrb_pd_create(s->engine, &s->pd), "pd");
	side_check(vrb_cq_create(s->engine, 4 * SIDE_DEPTH, &s->event, &s->cq), "cq");
	init.pd = s->pd;
	init.send_cq = init.recv_cq = s->cq;
	side_check(vrb_qp_create(s->engine, &init, &s->qp), "qp");
	side_check(
		vrb_mr_reg(s->engine, s->pd, (uintptr_t)s->buf, SIDE_BUFFER, (uintptr_t)s->buf,
			VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE_WRITE | VRB_ACCESS_REMOTE_READ,
			&s->mr),
		"mr");
	vrb_nic_unlock(s->nic);
	vrb_nic_query(s->nic, &info);
	*hello =
		(struct side_hello){info.gid[0], vrb_qp_num(s->qp), s->mr->rkey, (uintptr_t)s->buf};
}

void
side_close(struct side *s)
{
	vrb_nic_close(s->nic);
	free(s->buf);
	close(s->event);
}

void
side_post_recv(struct side *s, unsigned int n)
{
	struct vrb_rq *rq = vrb_qp_rq(s->qp);

	rte_spinlock_lock(&rq->lock);
	for (unsigned int i = 0; i < n; i++) {
		struct vrb_recv_wqe *w = vrb_rq_slot(rq, i);

		if (w == NULL)
			side_check(-ENOBUFS, "post_recv");
		w->wr_id = 0;
		w->num_sge = 1;
		w->length = SIDE_BUFFER / 2;
		w->sge[0] = (struct vrb_sge){(uintptr_t)s->buf, SIDE_BUFFER / 2, s->mr->lkey};
	}
	vrb_rq_commit(rq, n);
	rte_spinlock_unlock(&rq->lock);
}

void
side_post_send(struct side *s, enum vrb_wr_opcode op, uint32_t len)
{
	struct vrb_sq *sq = vrb_qp_sq(s->qp);
	struct vrb_send_wqe *w;

	rte_spinlock_lock(&sq->lock);
	w = vrb_sq_slot(sq, 0);
	if (w == NULL)
		side_check(-ENOBUFS, "post_send");
	w->wr_id = 1;
	w->opcode = op;
	w->flags = VRB_SEND_SIGNALED;
	w->num_sge = 1;
	w->length = len;
	w->imm = 0;
	w->rkey = s->peer.rkey;
	w->remote_addr = s->peer.addr;
	*(struct vrb_sge *)w->data = (struct vrb_sge){
		(uintptr_t)s->buf + (op == VRB_WR_RDMA_WRITE ? SIDE_BUFFER / 2 : 0), len,
		s->mr->lkey};
	if (len <= 64 && op != VRB_WR_RDMA_READ) {
		memcpy(w->data, s->buf + (op == VRB_WR_RDMA_WRITE ? SIDE_BUFFER / 2 : 0), len);
		w->flags |= VRB_SEND_INLINE;
		w->num_sge = 0;
	}
	side_check(vrb_qp_check_send(s->qp, w), "check_send");
	vrb_sq_commit(sq, 1);
	rte_spinlock_unlock(&sq->lock);
	vrb_nic_kick(s->nic, s->qp);
}

/* As ibv_poll_cq() of one entry. @return the opcode, -1: empty */
int
side_poll(struct side *s)
{
	struct vrb_cqe *c;
	int opcode = -1;

	rte_spinlock_lock(&s->cq->lock);
	c = vrb_cq_peek(s->cq);
	if (c == NULL) {
		rte_spinlock_unlock(&s->cq->lock);
		vrb_nic_progress(s->nic);
		rte_spinlock_lock(&s->cq->lock);
		c = vrb_cq_peek(s->cq);
	}
	if (c != NULL) {
		if (c->status != VRB_WC_SUCCESS)
			s->failed = c->status;
		opcode = c->opcode;
		vrb_cq_pop(s->cq);
	}
	rte_spinlock_unlock(&s->cq->lock);
	return opcode;
}

int
side_wait(struct side *s)
{
	int opcode;

	while ((opcode = side_poll(s)) < 0)
		rte_pause();
	return opcode;
}

bool
side_wait_event(struct side *s, int ms)
{
	struct pollfd pfd = {.fd = s->event, .events = POLLIN};
	uint64_t n;

	vrb_nic_lock(s->nic);
	vrb_cq_arm(s->cq, false);
	vrb_nic_unlock(s->nic);
	if (!vrb_cq_empty(s->cq))
		return true;
	if (poll(&pfd, 1, ms) <= 0)
		return false;
	if (read(s->event, &n, sizeof(n)) < 0 && errno != EAGAIN)
		side_check(-errno, "read");
	return true;
}
