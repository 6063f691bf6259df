/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See srq_util.h.
 */
#include "srq_util.h"

struct ibv_srq *
make_srq(struct rig *r, uint32_t max_wr, uint32_t max_sge)
{
	struct ibv_srq_init_attr attr = {
		.srq_context = r, .attr = {.max_wr = max_wr, .max_sge = max_sge}};

	return ibv_create_srq(r->pd, &attr);
}

int
post_srq(struct rig *r, struct ibv_srq *srq, uint64_t id)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)r->buf + BUF_SIZE / 2, .length = 64, .lkey = r->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

	return ibv_post_srq_recv(srq, &wr, &bad);
}

void
fill_srq(struct rig *r, struct ibv_srq *srq, uint64_t first, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		assert_int_equal(post_srq(r, srq, first + i), 0);
}

void
pair_on_srq(struct rig *r, struct ibv_srq *srq)
{
	r->a = make_qp(r, NULL, srq);
	r->b = make_qp(r, NULL, srq);
	connect_qp(r, r->a, r->b);
	connect_qp(r, r->b, r->a);
}

void
destroy_pair_and_srq(struct rig *r, struct ibv_srq *srq)
{
	assert_int_equal(ibv_destroy_qp(r->a), 0);
	assert_int_equal(ibv_destroy_qp(r->b), 0);
	r->a = r->b = NULL;
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

uint64_t
send_one(struct rig *r, struct ibv_qp *qp)
{
	struct ibv_wc wc;
	uint64_t id = UINT64_MAX;
	int i;

	assert_int_equal(post_send(r, qp, 1000, IBV_WR_SEND, r->buf, 8), 0);
	for (i = 0; i < 2; i++) {
		assert_true(poll_for(r->cq, &wc));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode == IBV_WC_RECV)
			id = wc.wr_id;
	}
	return id;
}

struct ibv_srq_attr
srq_attr_of(struct ibv_srq *srq)
{
	struct ibv_srq_attr attr;

	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	return attr;
}
