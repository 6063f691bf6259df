/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See wq_util.h. The hash is computed here anew, from its definition.
 */
#include "wq_util.h"

struct ibv_wq_init_attr
wq_attr(struct rig *r)
{
	return (struct ibv_wq_init_attr){
		.wq_type = IBV_WQT_RQ, .max_wr = 10, .max_sge = 2, .pd = r->pd, .cq = r->cq};
}

struct ibv_wq *
make_wq(struct rig *r)
{
	struct ibv_wq_init_attr attr = wq_attr(r);
	struct ibv_wq *wq = ibv_create_wq(r->ctx, &attr);

	assert_non_null(wq);
	return wq;
}

int
wq_to(struct ibv_wq *wq, enum ibv_wq_state state)
{
	struct ibv_wq_attr attr = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = state};

	return ibv_modify_wq(wq, &attr);
}

int
post_wq(struct rig *r, struct ibv_wq *wq, uint64_t id)
{
	struct ibv_sge sge = {.addr = (uintptr_t)r->buf, .length = 2000, .lkey = r->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1};

	return ibv_post_wq_recv(wq, &wr, &bad);
}

static uint8_t key[40] = {
	0x2c,
	0xc6,
	0x81,
	0xd1,
	0x5b,
	0xdb,
	0xf4,
	0xf7,
	0xfc,
	0xa2,
	0x83,
	0x19,
	0xdb,
	0x1a,
	0x3e,
	0x94,
	0x6b,
	0x9e,
	0x38,
	0xd9,
	0x2c,
	0x9c,
	0x03,
	0xd1,
	0xad,
	0x99,
	0x44,
	0xa7,
	0xd9,
	0x56,
	0x3d,
	0x59,
	0x06,
	0x3c,
	0x25,
	0xf3,
	0xfc,
	0x1f,
	0xdc,
	0x2a,
};

/* For each bit of the input that is set, the 32 bits of the key that begin there. */
static uint32_t
toeplitz(const uint8_t *input, uint32_t len)
{
	uint32_t hash = 0, window = (uint32_t)key[0] << 24 | key[1] << 16 | key[2] << 8 | key[3], i,
		 bit;

	for (i = 0; i < len; i++) {
		for (bit = 0; bit < 8; bit++) {
			if (input[i] & 0x80 >> bit)
				hash ^= window;
			window = window << 1 | (key[i + 4] >> (7 - bit) & 1);
		}
	}
	return hash;
}

struct rss
open_rss(struct rig *r, uint64_t fields)
{
	struct rss s = {.r = r};
	struct ibv_rwq_ind_table_init_attr tbl = {.log_ind_tbl_size = RSS_LOG_SIZE};
	int i;

	for (i = 0; i < RSS_QUEUES; i++) {
		struct ibv_wq_init_attr attr = {
			.wq_type = IBV_WQT_RQ, .max_wr = 64, .max_sge = 1, .pd = r->pd};

		s.cq[i] = attr.cq = ibv_create_cq(r->ctx, 64, NULL, NULL, 0);
		s.wq[i] = ibv_create_wq(r->ctx, &attr);
		assert_non_null(s.wq[i]);
		assert_int_equal(wq_to(s.wq[i], IBV_WQS_RDY), 0);
	}
	for (i = 0; i < RSS_SIZE; i++)
		s.entries[i] = s.wq[(i * 3 + 1) % RSS_QUEUES];
	tbl.ind_tbl = s.entries;
	s.tbl = ibv_create_rwq_ind_table(r->ctx, &tbl);
	assert_non_null(s.tbl);
	s.attr = (struct ibv_qp_init_attr_ex){
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.pd = r->pd,
		.rwq_ind_tbl = s.tbl,
		.rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
			.rx_hash_key_len = sizeof(key),
			.rx_hash_key = key,
			.rx_hash_fields_mask = fields},
	};
	return s;
}

void
close_rss(struct rss *s)
{
	int i;

	assert_int_equal(ibv_destroy_rwq_ind_table(s->tbl), 0);
	for (i = 0; i < RSS_QUEUES; i++) {
		assert_int_equal(ibv_destroy_wq(s->wq[i]), 0);
		assert_int_equal(ibv_destroy_cq(s->cq[i]), 0);
	}
}

void
post_all(struct rss *s)
{
	struct ibv_sge sge = {.addr = (uintptr_t)s->r->buf + BUF_SIZE / 2,
		.length = 2000,
		.lkey = s->r->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
	int i, rc;

	for (i = 0; i < RSS_QUEUES; i++) {
		do
			rc = ibv_post_wq_recv(s->wq[i], &wr, &bad);
		while (!rc);
		expect_errno(rc, ENOMEM);
	}
}

void
check_traffic(struct rss *s, uint32_t off, uint32_t len)
{
	struct ibv_qp *qp = ibv_create_qp_ex(s->r->ctx, &s->attr),
		      *tx = make_raw(s->r, s->r->cq, 0);
	struct ibv_flow *flow;
	uint32_t i, used = 0;

	assert_non_null(qp);
	flow = steer(s->r, qp, NULL);
	post_all(s);
	for (i = 0; i < 64; i++) {
		struct ibv_wc wc;
		uint32_t queue, q;

		make_frame(s->r, s->r->buf, NULL, RSS_LEN, (uint16_t)(1000 + i * 37), 2000);
		s->r->buf[29] = (char)i;
		queue = toeplitz((uint8_t *)s->r->buf + off, len) & (RSS_SIZE - 1);
		send_frame(s->r, tx, s->r->buf, RSS_LEN);
		for (q = 0; s->wq[q] != s->entries[queue]; q++)
			;
		assert_true(poll_for(s->cq[q], &wc));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.qp_num, s->wq[q]->wq_num);
		assert_memory_equal(s->r->buf + BUF_SIZE / 2, s->r->buf, RSS_LEN);
		used |= 1u << q;
	}
	assert_int_equal(used, (1 << RSS_QUEUES) - 1);
	assert_int_equal(ibv_destroy_flow(flow), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_qp(tx), 0);
}
