/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs with an indirection table: a frame goes to the work queue that the hash and the table
 * foretell (ibv_create_qp_ex(3)). The hash is computed here anew, from its definition.
 */
#include "raw_util.h"

#define LOG_SIZE 3
#define QUEUES 4
#define LEN 100

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

struct rss {
	struct rig *r;
	struct ibv_wq *wq[QUEUES];
	struct ibv_cq *cq[QUEUES];
	struct ibv_wq *entries[1 << LOG_SIZE];
	struct ibv_rwq_ind_table *tbl;
	struct ibv_qp_init_attr_ex attr;
};

static struct rss
open_rss(struct rig *r, uint64_t fields)
{
	struct rss s = {.r = r};
	struct ibv_rwq_ind_table_init_attr tbl = {.log_ind_tbl_size = LOG_SIZE};
	struct ibv_wq_attr ready = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};
	int i;

	for (i = 0; i < QUEUES; i++) {
		struct ibv_wq_init_attr attr = {
			.wq_type = IBV_WQT_RQ, .max_wr = 64, .max_sge = 1, .pd = r->pd};

		s.cq[i] = attr.cq = ibv_create_cq(r->ctx, 64, NULL, NULL, 0);
		s.wq[i] = ibv_create_wq(r->ctx, &attr);
		assert_non_null(s.wq[i]);
		assert_int_equal(ibv_modify_wq(s.wq[i], &ready), 0);
	}
	for (i = 0; i < 1 << LOG_SIZE; i++)
		s.entries[i] = s.wq[(i * 3 + 1) % QUEUES];
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

static void
close_rss(struct rss *s)
{
	int i;

	assert_int_equal(ibv_destroy_rwq_ind_table(s->tbl), 0);
	for (i = 0; i < QUEUES; i++) {
		assert_int_equal(ibv_destroy_wq(s->wq[i]), 0);
		assert_int_equal(ibv_destroy_cq(s->cq[i]), 0);
	}
}

static void
post_all(struct rss *s)
{
	struct ibv_sge sge = {.addr = (uintptr_t)s->r->buf + BUF_SIZE / 2,
		.length = 2000,
		.lkey = s->r->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
	int i, k;

	for (i = 0; i < QUEUES; i++)
		for (k = 0; k < 64; k++)
			assert_int_equal(ibv_post_wq_recv(s->wq[i], &wr, &bad), 0);
}

/* Sends frames of many flows, and looks whether each has come by the queue that was foretold.
 * @param off, len of the input in the frame */
static void
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

		make_frame(s->r, s->r->buf, NULL, LEN, (uint16_t)(1000 + i * 37), 2000);
		s->r->buf[29] = (char)i;
		queue = toeplitz((uint8_t *)s->r->buf + off, len) & ((1 << LOG_SIZE) - 1);
		send_frame(s->r, tx, s->r->buf, LEN);
		for (q = 0; s->wq[q] != s->entries[queue]; q++)
			;
		assert_true(poll_for(s->cq[q], &wc));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.qp_num, s->wq[q]->wq_num);
		assert_memory_equal(s->r->buf + BUF_SIZE / 2, s->r->buf, LEN);
		used |= 1u << q;
	}
	assert_int_equal(used, (1 << QUEUES) - 1);
	assert_int_equal(ibv_destroy_flow(flow), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_qp(tx), 0);
}

static void
frames_go_where_hash_and_table_foretell(void **state)
{
	struct rss s =
		open_rss(*state, IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 |
					 IBV_RX_HASH_SRC_PORT_UDP | IBV_RX_HASH_DST_PORT_UDP);

	check_traffic(&s, 26, 12);
	close_rss(&s);
}

static void
addresses_alone_can_be_hashed(void **state)
{
	struct rss s = open_rss(
		*state, IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_PORT_TCP);

	check_traffic(&s, 26, 8);
	close_rss(&s);
}

static void
one_field_alone_can_be_hashed(void **state)
{
	struct rss s = open_rss(*state, IBV_RX_HASH_SRC_PORT_UDP);

	check_traffic(&s, 34, 2);
	close_rss(&s);
}

static void
table_is_busy_while_a_queue_pair_uses_it(void **state)
{
	struct rss s = open_rss(*state, IBV_RX_HASH_SRC_IPV4);
	struct ibv_qp *qp = ibv_create_qp_ex(s.r->ctx, &s.attr);

	assert_non_null(qp);
	expect_errno(ibv_destroy_rwq_ind_table(s.tbl), EBUSY);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	close_rss(&s);
}

static void
queue_pair_has_no_queues_and_no_states(void **state)
{
	struct rss s = open_rss(*state, IBV_RX_HASH_SRC_IPV4);
	struct ibv_qp *qp = ibv_create_qp_ex(s.r->ctx, &s.attr);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	assert_non_null(qp);
	expect_errno(post_send(s.r, qp, 1, IBV_WR_SEND, s.r->buf, LEN), EINVAL);
	expect_errno(post_recv(s.r, qp, 1, s.r->buf, LEN), EINVAL);
	expect_errno(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	close_rss(&s);
}

static void
queue_that_is_not_ready_receives_nothing(void **state)
{
	struct rss s = open_rss(*state, 0);
	struct ibv_qp *qp = ibv_create_qp_ex(s.r->ctx, &s.attr), *tx = make_raw(s.r, s.r->cq, 0);
	struct ibv_wq_attr reset = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RESET};
	struct ibv_flow *flow = steer(s.r, qp, NULL);

	/* Without fields all go to the first entry. */
	post_all(&s);
	assert_int_equal(ibv_modify_wq(s.entries[0], &reset), 0);
	make_frame(s.r, s.r->buf, NULL, LEN, 1, 2);
	send_frame(s.r, tx, s.r->buf, LEN);
	expect_no_completion(s.entries[0]->cq);
	assert_int_equal(ibv_destroy_flow(flow), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_qp(tx), 0);
	close_rss(&s);
}

static void
wrong_key_of_a_receive_ends_the_work_queue(void **state)
{
	struct rss s = open_rss(*state, 0);
	struct ibv_qp *qp = ibv_create_qp_ex(s.r->ctx, &s.attr), *tx = make_raw(s.r, s.r->cq, 0);
	struct ibv_sge sge = {
		.addr = (uintptr_t)s.r->buf, .length = 2000, .lkey = s.r->mr->lkey ^ 0x100};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
	struct ibv_flow *flow = steer(s.r, qp, NULL);
	struct ibv_async_event event;

	assert_int_equal(ibv_post_wq_recv(s.entries[0], &wr, &bad), 0);
	make_frame(s.r, s.r->buf, NULL, LEN, 1, 2);
	send_frame(s.r, tx, s.r->buf, LEN);
	assert_int_equal(next_status(s.entries[0]->cq), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_get_async_event(s.r->ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_WQ_FATAL);
	assert_ptr_equal(event.element.wq, s.entries[0]);
	ibv_ack_async_event(&event);
	assert_int_equal(ibv_destroy_flow(flow), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_qp(tx), 0);
	close_rss(&s);
}

static void
wrong_attributes_are_refused(void **state)
{
	struct rss s = open_rss(*state, IBV_RX_HASH_SRC_IPV4);
	struct ibv_qp_init_attr_ex bad;

#define REFUSED(err, ...) \
	do { \
		bad = s.attr; \
		__VA_ARGS__; \
		expect_null(ibv_create_qp_ex(s.r->ctx, &bad), err); \
	} while (0)
	REFUSED(EINVAL, bad.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_RX_HASH);
	REFUSED(EINVAL, bad.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_IND_TABLE);
	REFUSED(EINVAL, bad.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_PD);
	REFUSED(EINVAL, bad.rwq_ind_tbl = NULL);
	REFUSED(EINVAL, bad.send_cq = s.r->cq);
	REFUSED(EINVAL, bad.recv_cq = s.r->cq);
	REFUSED(EINVAL, bad.cap.max_send_wr = 1);
	REFUSED(EINVAL, bad.cap.max_recv_wr = 1);
	REFUSED(EOPNOTSUPP, bad.rx_hash_conf.rx_hash_function = 0);
	REFUSED(EINVAL, bad.rx_hash_conf.rx_hash_key_len = 39);
	REFUSED(EINVAL, bad.rx_hash_conf.rx_hash_key = NULL);
	REFUSED(EOPNOTSUPP, bad.rx_hash_conf.rx_hash_fields_mask = IBV_RX_HASH_IPSEC_SPI);
	REFUSED(EOPNOTSUPP, bad.qp_type = IBV_QPT_UD);
	close_rss(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_DEVICE(frames_go_where_hash_and_table_foretell),
		TEST_DEVICE(addresses_alone_can_be_hashed),
		TEST_DEVICE(one_field_alone_can_be_hashed),
		TEST_DEVICE(table_is_busy_while_a_queue_pair_uses_it),
		TEST_DEVICE(queue_pair_has_no_queues_and_no_states),
		TEST_DEVICE(queue_that_is_not_ready_receives_nothing),
		TEST_DEVICE(wrong_key_of_a_receive_ends_the_work_queue),
		TEST_DEVICE(wrong_attributes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
