/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs of raw frames: what is sent and what is received.
 */
#include "raw_util.h"

#define LEN 200

/* The sender's completions go to the rig's CQ, the receiver's to one of its own. */
struct pair {
	struct rig *r;
	struct ibv_cq *cq;
	struct ibv_qp *tx, *rx;
	struct ibv_flow *flow;
	char *sent, *got; /* in the rig's buffer */
};

static struct pair
open_pair(struct rig *r, uint32_t flags, const uint8_t *dst)
{
	struct pair p = {.r = r, .sent = r->buf, .got = r->buf + BUF_SIZE / 2};

	p.cq = ibv_create_cq(r->ctx, 64, NULL, NULL, 0);
	assert_non_null(p.cq);
	p.tx = make_raw(r, r->cq, 0);
	p.rx = make_raw(r, p.cq, flags);
	p.flow = steer(r, p.rx, dst);
	make_frame(r, p.sent, dst, LEN, 1000, 2000);
	return p;
}

static void
close_pair(struct pair *p)
{
	assert_int_equal(ibv_destroy_flow(p->flow), 0);
	assert_int_equal(ibv_destroy_qp(p->tx), 0);
	assert_int_equal(ibv_destroy_qp(p->rx), 0);
	assert_int_equal(ibv_destroy_cq(p->cq), 0);
}

static struct ibv_wc
receive(struct pair *p)
{
	struct ibv_wc wc;

	assert_true(poll_for(p->cq, &wc));
	return wc;
}

static void
frame_to_own_address_arrives_whole(void **state)
{
	struct pair p = open_pair(*state, 0, NULL);
	struct ibv_wc wc;

	assert_int_equal(post_recv(p.r, p.rx, 7, p.got, 2000), 0);
	send_frame(p.r, p.tx, p.sent, LEN);
	wc = receive(&p);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	assert_int_equal(wc.wr_id, 7);
	assert_int_equal(wc.byte_len, LEN);
	assert_int_equal(wc.qp_num, p.rx->qp_num);
	assert_memory_equal(p.got, p.sent, LEN);
	close_pair(&p);
}

static void
frame_to_a_group_reaches_others_but_not_its_sender(void **state)
{
	struct pair p = open_pair(*state, 0, group_mac);
	struct ibv_flow *own = steer(p.r, p.tx, group_mac);

	assert_int_equal(post_recv(p.r, p.tx, 1, p.got + 4096, 2000), 0);
	assert_int_equal(post_recv(p.r, p.rx, 2, p.got, 2000), 0);
	send_frame(p.r, p.tx, p.sent, LEN);
	assert_int_equal(receive(&p).byte_len, LEN);
	expect_no_completion(p.r->cq);
	assert_int_equal(ibv_destroy_flow(own), 0);
	close_pair(&p);
}

static void
frame_without_rule_reaches_nobody(void **state)
{
	struct pair p = open_pair(*state, 0, group_mac);

	make_frame(p.r, p.sent, NULL, LEN, 1000, 2000);
	assert_int_equal(post_recv(p.r, p.rx, 2, p.got, 2000), 0);
	send_frame(p.r, p.tx, p.sent, LEN);
	expect_no_completion(p.cq);
	close_pair(&p);
}

static void
frame_is_gathered_from_pieces(void **state)
{
	struct pair p = open_pair(*state, 0, NULL);
	struct ibv_sge sge[3];
	struct ibv_send_wr wr, *bad;

	wr = make_wr(IBV_WR_SEND, sge, p.r, p.sent, 10);
	sge[1] = (struct ibv_sge){.addr = (uintptr_t)p.sent + 10, .length = 1, .lkey = sge[0].lkey};
	sge[2] = (struct ibv_sge){
		.addr = (uintptr_t)p.sent + 11, .length = LEN - 11, .lkey = sge[0].lkey};
	wr.num_sge = 3;
	assert_int_equal(post_recv(p.r, p.rx, 2, p.got, 2000), 0);
	assert_int_equal(ibv_post_send(p.tx, &wr, &bad), 0);
	assert_int_equal(next_status(p.r->cq), IBV_WC_SUCCESS);
	assert_int_equal(receive(&p).byte_len, LEN);
	assert_memory_equal(p.got, p.sent, LEN);
	close_pair(&p);
}

static void
frame_can_be_inline_and_built_in_place(void **state)
{
	struct pair p = open_pair(*state, 0, NULL);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(p.tx);
	char copy[LEN];

	assert_int_equal(post_recv(p.r, p.rx, 2, p.got, 2000), 0);
	memcpy(copy, p.sent, LEN);
	ibv_wr_start(ex);
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_inline_data(ex, copy, LEN);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(next_status(p.r->cq), IBV_WC_SUCCESS);
	assert_int_equal(receive(&p).byte_len, LEN);
	assert_memory_equal(p.got, p.sent, LEN);
	close_pair(&p);
}

static void
frame_longer_than_the_port_carries_fails_alone(void **state)
{
	struct pair p = open_pair(*state, 0, NULL);

	assert_int_equal(post_send(p.r, p.tx, 1, IBV_WR_SEND, p.sent, 16384), 0);
	assert_int_equal(next_status(p.r->cq), IBV_WC_LOC_LEN_ERR);
	assert_int_equal(state_of(p.tx), IBV_QPS_SQE);
	assert_int_equal(post_recv(p.r, p.rx, 2, p.got, 2000), 0);
	raw_to(p.tx, IBV_QPS_RTS);
	send_frame(p.r, p.tx, p.sent, LEN);
	assert_int_equal(receive(&p).status, IBV_WC_SUCCESS);
	close_pair(&p);
}

static void
frame_shorter_than_its_header_is_refused(void **state)
{
	struct pair p = open_pair(*state, 0, NULL);

	expect_errno(post_send(p.r, p.tx, 1, IBV_WR_SEND, p.sent, 13), EINVAL);
	close_pair(&p);
}

static void
only_sends_can_be_posted(void **state)
{
	struct pair p = open_pair(*state, 0, NULL);

	expect_errno(post_send(p.r, p.tx, 1, IBV_WR_RDMA_WRITE, p.sent, LEN), EINVAL);
	expect_errno(post_send(p.r, p.tx, 1, IBV_WR_SEND_WITH_IMM, p.sent, LEN), EINVAL);
	close_pair(&p);
}

static void
wrong_key_fails_the_send(void **state)
{
	struct pair p = open_pair(*state, 0, NULL);
	struct ibv_sge sge;
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND, &sge, p.r, p.sent, LEN), *bad;

	sge.lkey ^= 0x100;
	assert_int_equal(ibv_post_send(p.tx, &wr, &bad), 0);
	assert_int_equal(next_status(p.r->cq), IBV_WC_LOC_PROT_ERR);
	close_pair(&p);
}

static void
receive_that_is_too_small_fails_and_the_next_goes_on(void **state)
{
	struct pair p = open_pair(*state, 0, NULL);
	struct ibv_wc wc;

	assert_int_equal(post_recv(p.r, p.rx, 1, p.got, LEN - 1), 0);
	assert_int_equal(post_recv(p.r, p.rx, 2, p.got, LEN), 0);
	send_frame(p.r, p.tx, p.sent, LEN);
	send_frame(p.r, p.tx, p.sent, LEN);
	wc = receive(&p);
	assert_int_equal(wc.status, IBV_WC_LOC_LEN_ERR);
	assert_int_equal(wc.wr_id, 1);
	wc = receive(&p);
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.wr_id, 2);
	close_pair(&p);
}

static void
wrong_key_of_a_receive_ends_the_queue_pair(void **state)
{
	struct pair p = open_pair(*state, 0, NULL);
	struct ibv_sge sge = {
		.addr = (uintptr_t)p.got, .length = 2000, .lkey = p.r->mr->lkey ^ 0x100};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_async_event event;

	assert_int_equal(ibv_post_recv(p.rx, &wr, &bad), 0);
	send_frame(p.r, p.tx, p.sent, LEN);
	assert_int_equal(receive(&p).status, IBV_WC_LOC_PROT_ERR);
	assert_int_equal(state_of(p.rx), IBV_QPS_ERR);
	assert_int_equal(ibv_get_async_event(p.r->ctx, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_FATAL);
	assert_ptr_equal(event.element.qp, p.rx);
	ibv_ack_async_event(&event);
	close_pair(&p);
}

/* @return whether all frames were there, in order; they wait for a while only, and this machine may
 * have been busy longer */
static bool
frames_waited(struct pair *p)
{
	struct ibv_wc wc;
	int i;

	for (i = 0; i < 20; i++) {
		p->sent[LEN - 1] = (char)i;
		send_frame(p->r, p->tx, p->sent, LEN);
	}
	for (i = 0; i < 20; i++) {
		assert_int_equal(post_recv(p->r, p->rx, (uint64_t)i, p->got, 2000), 0);
		if (!poll_for(p->cq, &wc))
			return false;
		assert_int_equal(wc.wr_id, i);
		if (p->got[LEN - 1] != i)
			return false;
	}
	return true;
}

/* A program that is late. */
static void
frames_wait_for_receives_that_are_late(void **state)
{
	struct pair p = open_pair(*state, 0, NULL);
	struct ibv_wc wc;
	int attempts = 5;

	while (!frames_waited(&p)) {
		assert_true(--attempts > 0);
		raw_to(p.rx, IBV_QPS_RESET);
		while (ibv_poll_cq(p.cq, 1, &wc) > 0)
			;
		raw_to(p.rx, IBV_QPS_INIT);
		raw_to(p.rx, IBV_QPS_RTR);
	}
	close_pair(&p);
}

static uint16_t
sum(const uint8_t *p, uint32_t len, uint32_t s)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		s += (uint32_t)p[i] << (i & 1 ? 0 : 8);
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return (uint16_t)s;
}

static void
checksums_are_made_when_asked_and_found_right(void **state)
{
	struct pair p = open_pair(*state, 0, NULL);
	const uint8_t *got = (const uint8_t *)p.got;
	struct ibv_sge sge;
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND, &sge, p.r, p.sent, LEN), *bad;

	wr.send_flags |= IBV_SEND_IP_CSUM;
	assert_int_equal(post_recv(p.r, p.rx, 2, p.got, 2000), 0);
	assert_int_equal(ibv_post_send(p.tx, &wr, &bad), 0);
	assert_int_equal(next_status(p.r->cq), IBV_WC_SUCCESS);
	assert_true(receive(&p).wc_flags & IBV_WC_IP_CSUM_OK);
	assert_int_equal(sum(got + 14, 20, 0), 0xffff);
	/* RFC 768: addresses, protocol and length are summed as well. */
	assert_int_not_equal(got[40] | got[41], 0);
	assert_int_equal(sum(got + 26, 8 + LEN - 34, 17 + LEN - 34), 0xffff);
	/* As it came, but for one bit. */
	memcpy(p.sent, p.got, LEN);
	p.sent[LEN - 1] ^= 1;
	assert_int_equal(post_recv(p.r, p.rx, 3, p.got, 2000), 0);
	send_frame(p.r, p.tx, p.sent, LEN);
	assert_false(receive(&p).wc_flags & IBV_WC_IP_CSUM_OK);
	close_pair(&p);
}

static void
checksum_flag_is_for_raw_frames_only(void **state)
{
	struct rig *r = *state;
	struct ibv_sge sge;
	struct ibv_send_wr wr = make_wr(IBV_WR_SEND, &sge, r, r->buf, 100), *bad;

	wr.send_flags |= IBV_SEND_IP_CSUM;
	expect_errno(ibv_post_send(r->a, &wr, &bad), EINVAL);
}

static void
fcs_is_added_when_asked(void **state)
{
	struct pair p = open_pair(*state, IBV_QP_CREATE_SCATTER_FCS, NULL);
	uint32_t crc = 0xffffffff, i, bit;
	uint8_t fcs[4];

	assert_int_equal(post_recv(p.r, p.rx, 2, p.got, 2000), 0);
	send_frame(p.r, p.tx, p.sent, LEN);
	assert_int_equal(receive(&p).byte_len, LEN + 4);
	for (i = 0; i < LEN; i++)
		for (crc ^= (uint8_t)p.sent[i], bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	for (i = 0; i < 4; i++)
		fcs[i] = (uint8_t)(~crc >> 8 * i);
	assert_memory_equal(p.got, p.sent, LEN);
	assert_memory_equal(p.got + LEN, fcs, 4);
	close_pair(&p);
}

static void
vlan_tag_is_taken_out_and_told(void **state)
{
	struct rig *r = *state;
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = 16,
		.wc_flags = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG};
	struct ibv_cq_ex *cq = ibv_create_cq_ex(r->ctx, &cq_attr);
	struct ibv_poll_cq_attr poll = {0};
	struct ibv_qp *tx, *rx;
	struct ibv_flow *flow;

	assert_non_null(cq);
	tx = make_raw(r, r->cq, 0);
	rx = make_raw(r, ibv_cq_ex_to_cq(cq), IBV_QP_CREATE_CVLAN_STRIPPING);
	flow = steer(r, rx, NULL);
	make_frame(r, r->buf, NULL, LEN, 1, 2);
	memcpy(r->buf + 4096, r->buf, LEN);
	add_vlan(r->buf + 4096, LEN, 0xa123);
	assert_int_equal(post_recv(r, rx, 1, r->buf + 8192, 2000), 0);
	send_frame(r, tx, r->buf + 4096, LEN + VLAN_TAG);
	while (ibv_start_poll(cq, &poll))
		;
	assert_int_equal(cq->status, IBV_WC_SUCCESS);
	assert_int_equal(ibv_wc_read_byte_len(cq), LEN);
	assert_int_equal(ibv_wc_read_cvlan(cq), 0xa123);
	assert_int_equal(ibv_wc_read_flow_tag(cq), 0);
	ibv_end_poll(cq);
	assert_memory_equal(r->buf + 8192, r->buf, LEN);
	assert_int_equal(ibv_destroy_flow(flow), 0);
	assert_int_equal(ibv_destroy_qp(tx), 0);
	assert_int_equal(ibv_destroy_qp(rx), 0);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
}

static void
frames_go_into_a_shared_queue(void **state)
{
	struct rig *r = *state;
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(r->pd, &srq_attr);
	struct ibv_qp_init_attr attr = {.send_cq = r->cq,
		.recv_cq = r->cq,
		.srq = srq,
		.qp_type = IBV_QPT_RAW_PACKET,
		.cap = {.max_send_wr = 1, .max_send_sge = 1}};
	struct ibv_sge sge = {
		.addr = (uintptr_t)r->buf + 4096, .length = 2000, .lkey = r->mr->lkey};
	struct ibv_recv_wr wr = {.wr_id = 5, .sg_list = &sge, .num_sge = 1}, *bad;
	struct ibv_qp *qp = ibv_create_qp(r->pd, &attr);
	struct ibv_flow *flow;
	struct ibv_wc wc;

	assert_non_null(qp);
	raw_to(qp, IBV_QPS_INIT);
	raw_to(qp, IBV_QPS_RTR);
	raw_to(qp, IBV_QPS_RTS);
	flow = steer(r, qp, NULL);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	make_frame(r, r->buf, NULL, LEN, 1, 2);
	assert_int_equal(post_send(r, qp, 1, IBV_WR_SEND, r->buf, LEN), 0);
	assert_true(poll_for(r->cq, &wc));
	assert_true(poll_for(r->cq, &wc));
	assert_int_equal(wc.wr_id, 5);
	assert_memory_equal(r->buf + 4096, r->buf, LEN);
	assert_int_equal(ibv_destroy_flow(flow), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* The masks of the InfiniBand core for raw packets: a port, and states. */
static void
states_take_a_port_and_nothing_else(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_init_attr init = {.send_cq = r->cq,
		.recv_cq = r->cq,
		.qp_type = IBV_QPT_RAW_PACKET,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 1};
	struct ibv_qp *qp = ibv_create_qp(r->pd, &init);

	assert_non_null(qp);
	expect_errno(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	expect_errno(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT | IBV_QP_QKEY), EINVAL);
	raw_to(qp, IBV_QPS_INIT);
	attr.qp_state = IBV_QPS_RTS;
	expect_errno(ibv_modify_qp(qp, &attr, IBV_QP_STATE), EINVAL);
	raw_to(qp, IBV_QPS_RTR);
	attr.sq_psn = 1;
	expect_errno(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), EINVAL);
	raw_to(qp, IBV_QPS_RTS);
	raw_to(qp, IBV_QPS_ERR);
	raw_to(qp, IBV_QPS_RESET);
	assert_int_equal(ibv_destroy_qp(qp), 0);
}

static void
receives_are_flushed_in_the_error_state(void **state)
{
	struct pair p = open_pair(*state, 0, NULL);

	assert_int_equal(post_recv(p.r, p.rx, 1, p.got, 2000), 0);
	raw_to(p.rx, IBV_QPS_ERR);
	assert_int_equal(receive(&p).status, IBV_WC_WR_FLUSH_ERR);
	close_pair(&p);
}

static void
unknown_creation_flags_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_qp_init_attr_ex attr = {.send_cq = r->cq,
		.recv_cq = r->cq,
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = r->pd,
		.create_flags = IBV_QP_CREATE_PCI_WRITE_END_PADDING};

	expect_null(ibv_create_qp_ex(r->ctx, &attr), EOPNOTSUPP);
}

static void
device_claims_what_works(void **state)
{
	struct rig *r = *state;
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(r->ctx, NULL, &attr), 0);
	assert_true(attr.orig_attr.device_cap_flags & IBV_DEVICE_RAW_IP_CSUM);
	assert_true(attr.orig_attr.device_cap_flags & IBV_DEVICE_MANAGED_FLOW_STEERING);
	assert_true(attr.device_cap_flags_ex & IBV_DEVICE_RAW_SCATTER_FCS);
	assert_true(attr.raw_packet_caps & IBV_RAW_PACKET_CAP_CVLAN_STRIPPING);
	assert_true(attr.raw_packet_caps & IBV_RAW_PACKET_CAP_SCATTER_FCS);
	assert_true(attr.raw_packet_caps & IBV_RAW_PACKET_CAP_IP_CSUM);
	assert_int_equal(attr.rss_caps.supported_qpts, 1 << IBV_QPT_RAW_PACKET);
	assert_true(attr.rss_caps.max_rwq_indirection_table_size >= 1024);
	assert_true(attr.rss_caps.max_rwq_indirection_tables > 0);
	assert_int_equal(attr.rss_caps.rx_hash_function, IBV_RX_HASH_FUNC_TOEPLITZ);
	assert_true(attr.max_wq_type_rq > 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_DEVICE(frame_to_own_address_arrives_whole),
		TEST_DEVICE(frame_to_a_group_reaches_others_but_not_its_sender),
		TEST_DEVICE(frame_without_rule_reaches_nobody),
		TEST_DEVICE(frame_is_gathered_from_pieces),
		TEST_DEVICE(frame_can_be_inline_and_built_in_place),
		TEST_DEVICE(frame_longer_than_the_port_carries_fails_alone),
		TEST_DEVICE(frame_shorter_than_its_header_is_refused),
		TEST_DEVICE(only_sends_can_be_posted),
		TEST_DEVICE(wrong_key_fails_the_send),
		TEST_DEVICE(receive_that_is_too_small_fails_and_the_next_goes_on),
		TEST_DEVICE(wrong_key_of_a_receive_ends_the_queue_pair),
		TEST_DEVICE(frames_wait_for_receives_that_are_late),
		TEST_DEVICE(checksums_are_made_when_asked_and_found_right),
		TEST_PAIR(checksum_flag_is_for_raw_frames_only),
		TEST_DEVICE(fcs_is_added_when_asked),
		TEST_DEVICE(vlan_tag_is_taken_out_and_told),
		TEST_DEVICE(frames_go_into_a_shared_queue),
		TEST_DEVICE(states_take_a_port_and_nothing_else),
		TEST_DEVICE(receives_are_flushed_in_the_error_state),
		TEST_DEVICE(unknown_creation_flags_are_refused),
		TEST_DEVICE(device_claims_what_works),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
