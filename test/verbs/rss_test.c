/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs with an indirection table: a frame goes to the work queue that the hash and the table
 * foretell (ibv_create_qp_ex(3)).
 */
#include "wq_util.h"

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

/* What is given back is what can be asked for. */
static void
attributes_serve_for_another_queue_pair(void **state)
{
	struct rss s = open_rss(*state, IBV_RX_HASH_SRC_IPV4);
	const struct ibv_qp_cap none = {0};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	struct ibv_qp *qp, *other;

	qp = ibv_create_qp_ex(s.r->ctx, &s.attr);
	assert_non_null(qp);
	assert_memory_equal(&s.attr.cap, &none, sizeof(none));
	other = ibv_create_qp_ex(s.r->ctx, &s.attr);
	assert_non_null(other);
	assert_int_equal(ibv_query_qp(qp, &attr, IBV_QP_CAP, &init), 0);
	assert_memory_equal(&attr.cap, &none, sizeof(none));
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_qp(other), 0);
	close_rss(&s);
}

static void
queue_pair_has_no_queues_and_no_states(void **state)
{
	struct rss s = open_rss(*state, IBV_RX_HASH_SRC_IPV4);
	struct ibv_qp *qp = ibv_create_qp_ex(s.r->ctx, &s.attr);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	assert_non_null(qp);
	expect_errno(post_send(s.r, qp, 1, IBV_WR_SEND, s.r->buf, RSS_LEN), EINVAL);
	expect_errno(post_recv(s.r, qp, 1, s.r->buf, RSS_LEN), EINVAL);
	expect_errno(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	close_rss(&s);
}

static void
queue_that_is_not_ready_receives_nothing(void **state)
{
	struct rss s = open_rss(*state, 0);
	struct ibv_qp *qp = ibv_create_qp_ex(s.r->ctx, &s.attr), *tx = make_raw(s.r, s.r->cq, 0);
	struct ibv_flow *flow = steer(s.r, qp, NULL);

	/* Without fields all go to the first entry. */
	post_all(&s);
	assert_int_equal(wq_to(s.entries[0], IBV_WQS_RESET), 0);
	make_frame(s.r, s.r->buf, NULL, RSS_LEN, 1, 2);
	send_frame(s.r, tx, s.r->buf, RSS_LEN);
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
	make_frame(s.r, s.r->buf, NULL, RSS_LEN, 1, 2);
	send_frame(s.r, tx, s.r->buf, RSS_LEN);
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
		TEST_DEVICE(attributes_serve_for_another_queue_pair),
		TEST_DEVICE(queue_pair_has_no_queues_and_no_states),
		TEST_DEVICE(queue_that_is_not_ready_receives_nothing),
		TEST_DEVICE(wrong_key_of_a_receive_ends_the_work_queue),
		TEST_DEVICE(wrong_attributes_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
