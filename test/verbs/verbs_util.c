/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See verbs_util.h.
 */
#include <poll.h>
#include <stdlib.h>
#include <time.h>

#include "verbs_util.h"

#define PATIENCE_MS 5000
#define QUIET_MS 20

struct ibv_context *
open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx;

	assert_non_null(list);
	assert_non_null(list[0]);
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	assert_non_null(ctx);
	return ctx;
}

int
rig_open(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	*state = r;
	r->ctx = open_device();
	assert_int_equal(ibv_query_gid(r->ctx, 1, 0, &r->gid), 0);
	r->pd = ibv_alloc_pd(r->ctx);
	assert_non_null(r->pd);
	r->cq = ibv_create_cq(r->ctx, 256, NULL, NULL, 0);
	assert_non_null(r->cq);
	r->buf = aligned_alloc(4096, BUF_SIZE);
	assert_non_null(r->buf);
	memset(r->buf, 0, BUF_SIZE);
	r->mr = ibv_reg_mr(r->pd, r->buf, BUF_SIZE, ALL_ACCESS);
	assert_non_null(r->mr);
	return 0;
}

int
rig_open_pair(void **state)
{
	struct rig *r;

	rig_open(state);
	r = *state;
	r->a = make_qp(r, NULL, NULL);
	r->b = make_qp(r, NULL, NULL);
	connect_qp(r, r->a, r->b);
	connect_qp(r, r->b, r->a);
	return 0;
}

/* Every step is checked: a test that leaves something behind fails here. */
int
rig_close(void **state)
{
	struct rig *r = *state;

	if (r->a)
		assert_int_equal(ibv_destroy_qp(r->a), 0);
	if (r->b)
		assert_int_equal(ibv_destroy_qp(r->b), 0);
	if (r->mr)
		assert_int_equal(ibv_dereg_mr(r->mr), 0);
	assert_int_equal(ibv_destroy_cq(r->cq), 0);
	assert_int_equal(ibv_dealloc_pd(r->pd), 0);
	assert_int_equal(ibv_close_device(r->ctx), 0);
	free(r->buf);
	free(r);
	return 0;
}

static const struct ibv_qp_cap usual_cap = {
	.max_send_wr = 64,
	.max_recv_wr = 64,
	.max_send_sge = 4,
	.max_recv_sge = 4,
	.max_inline_data = 64,
};

struct ibv_qp *
make_qp(struct rig *r, struct ibv_qp_cap *cap, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.srq = srq,
		.cap = cap ? *cap : usual_cap,
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp *qp = ibv_create_qp(r->pd, &attr);

	assert_non_null(qp);
	if (cap)
		*cap = attr.cap;
	return qp;
}

struct ibv_qp *
make_qp_ex(struct rig *r, uint64_t send_ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.cap = usual_cap,
		.qp_type = IBV_QPT_RC,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = r->pd,
		.send_ops_flags = send_ops,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(r->ctx, &attr);

	assert_non_null(qp);
	return qp;
}

void
attr_for(struct rig *r, enum ibv_qp_state state, struct ibv_qp *peer, struct ibv_qp_attr *attr,
	int *mask)
{
	memset(attr, 0, sizeof(*attr));
	attr->qp_state = state;
	*mask = IBV_QP_STATE;
	switch (state) {
	case IBV_QPS_INIT:
		attr->port_num = 1;
		attr->qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
		*mask |= IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS;
		break;
	case IBV_QPS_RTR:
		attr->path_mtu = IBV_MTU_1024;
		attr->dest_qp_num = peer->qp_num;
		attr->rq_psn = 0x123456;
		attr->max_dest_rd_atomic = 4;
		attr->min_rnr_timer = 1;
		attr->ah_attr.is_global = 1;
		attr->ah_attr.port_num = 1;
		attr->ah_attr.grh.dgid = r->gid;
		attr->ah_attr.grh.hop_limit = 64;
		*mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			 IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
		break;
	case IBV_QPS_RTS:
		attr->sq_psn = 0x123456;
		attr->max_rd_atomic = 4;
		attr->timeout = 14;
		attr->retry_cnt = 7;
		attr->rnr_retry = 1;
		*mask |= IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT |
			 IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY;
		break;
	default:
		break;
	}
}

void
step(struct rig *r, struct ibv_qp *qp, enum ibv_qp_state state, struct ibv_qp *peer)
{
	struct ibv_qp_attr attr;
	int mask;

	attr_for(r, state, peer, &attr, &mask);
	assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
}

void
connect_qp(struct rig *r, struct ibv_qp *qp, struct ibv_qp *peer)
{
	step(r, qp, IBV_QPS_INIT, peer);
	step(r, qp, IBV_QPS_RTR, peer);
	step(r, qp, IBV_QPS_RTS, peer);
}

enum ibv_qp_state
state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init), 0);
	return attr.qp_state;
}

static uint64_t
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

bool
poll_for(struct ibv_cq *cq, struct ibv_wc *wc)
{
	uint64_t end = now_ms() + PATIENCE_MS;
	int n;

	do {
		n = ibv_poll_cq(cq, 1, wc);
		assert_in_range(n, 0, 1);
	} while (!n && now_ms() < end);
	return n;
}

enum ibv_wc_status
next_status(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	assert_true(poll_for(cq, &wc));
	return wc.status;
}

void
expect_no_completion(struct ibv_cq *cq)
{
	uint64_t end = now_ms() + QUIET_MS;
	struct ibv_wc wc;

	do
		assert_int_equal(ibv_poll_cq(cq, 1, &wc), 0);
	while (now_ms() < end);
}

bool
next_event(struct rig *r, struct ibv_async_event *event, int ms)
{
	struct pollfd fd = {.fd = r->ctx->async_fd, .events = POLLIN};

	if (poll(&fd, 1, ms) != 1)
		return false;
	assert_int_equal(ibv_get_async_event(r->ctx, event), 0);
	ibv_ack_async_event(event);
	return true;
}

struct ibv_send_wr
make_wr(enum ibv_wr_opcode op, struct ibv_sge *sge, struct rig *r, void *addr, uint32_t len)
{
	struct ibv_send_wr wr = {
		.sg_list = sge,
		.num_sge = 1,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
	};

	sge->addr = (uintptr_t)addr;
	sge->length = len;
	sge->lkey = r->mr->lkey;
	return wr;
}

int
post_send(struct rig *r, struct ibv_qp *qp, uint64_t id, enum ibv_wr_opcode op, void *addr,
	uint32_t len)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	wr = make_wr(op, &sge, r, addr, len);
	wr.wr_id = id;
	wr.wr.rdma.remote_addr = (uintptr_t)r->buf + BUF_SIZE / 2;
	wr.wr.rdma.rkey = r->mr->rkey;
	return ibv_post_send(qp, &wr, &bad);
}

int
post_recv(struct rig *r, struct ibv_qp *qp, uint64_t id, void *addr, uint32_t len)
{
	struct ibv_sge sge = {.addr = (uintptr_t)addr, .length = len, .lkey = r->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

	return ibv_post_recv(qp, &wr, &bad);
}
