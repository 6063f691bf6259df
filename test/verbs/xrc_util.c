/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See xrc_util.h.
 */
#include "xrc_util.h"

#define XRCD_MASK (IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS)

struct ibv_xrcd *
open_domain(struct ibv_context *ctx, int fd, int oflags)
{
	struct ibv_xrcd_init_attr attr = {.comp_mask = XRCD_MASK, .fd = fd, .oflags = oflags};

	return ibv_open_xrcd(ctx, &attr);
}

struct ibv_srq_init_attr_ex
xrc_srq_attr(struct rig *r, struct ibv_xrcd *xrcd)
{
	return (struct ibv_srq_init_attr_ex){
		.attr = {.max_wr = 8, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
		.pd = r->pd,
		.xrcd = xrcd,
		.cq = r->cq,
	};
}

struct ibv_srq *
make_xrc_srq(struct rig *r, struct ibv_xrcd *xrcd)
{
	struct ibv_srq_init_attr_ex attr = xrc_srq_attr(r, xrcd);
	struct ibv_srq *srq = ibv_create_srq_ex(r->ctx, &attr);

	assert_non_null(srq);
	return srq;
}

struct ibv_qp *
make_target(struct rig *r, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
		.xrcd = xrcd,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(r->ctx, &attr);

	assert_non_null(qp);
	return qp;
}

struct ibv_qp *
make_initiator(struct rig *r)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = r->cq,
		.cap = {.max_send_wr = 8, .max_send_sge = 1},
		.qp_type = IBV_QPT_XRC_SEND,
	};
	struct ibv_qp *qp = ibv_create_qp(r->pd, &attr);

	assert_non_null(qp);
	return qp;
}

int
send_to(struct rig *r, struct ibv_qp *qp, uint32_t srqn)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	wr = make_wr(IBV_WR_SEND, &sge, r, r->buf, 32);
	wr.qp_type.xrc.remote_srqn = srqn;
	return ibv_post_send(qp, &wr, &bad);
}

uint32_t
number_of(struct ibv_srq *srq)
{
	uint32_t num;

	assert_int_equal(ibv_get_srq_num(srq, &num), 0);
	return num;
}

struct xrc_pair
open_pair(struct rig *r)
{
	struct xrc_pair p;

	p.xrcd = open_domain(r->ctx, -1, O_CREAT);
	p.srq = make_xrc_srq(r, p.xrcd);
	p.other = make_xrc_srq(r, p.xrcd);
	p.from = make_initiator(r);
	p.to = make_target(r, p.xrcd);
	/* With the attributes of RC, as programs do. */
	connect_qp(r, p.to, p.from);
	connect_qp(r, p.from, p.to);
	return p;
}

void
close_pair(struct xrc_pair *p)
{
	assert_int_equal(ibv_destroy_qp(p->from), 0);
	assert_int_equal(ibv_destroy_qp(p->to), 0);
	assert_int_equal(ibv_destroy_srq(p->srq), 0);
	assert_int_equal(ibv_destroy_srq(p->other), 0);
	assert_int_equal(ibv_close_xrcd(p->xrcd), 0);
}
