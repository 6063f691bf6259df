/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams: address handles, queue pairs of type UD, and multicast.
 */
#include "verbs_util.h"

#include <netinet/ip.h>
#include <stdlib.h>

#define QKEY 0x11111111
#define GRH 40

static struct ibv_qp *
ud_qp_flags(struct rig *r, uint32_t create_flags)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = r->cq,
		.recv_cq = r->cq,
		.cap = {.max_send_wr = 16, .max_recv_wr = 16, .max_send_sge = 2, .max_recv_sge = 2},
		.qp_type = IBV_QPT_UD,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS |
			     IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.pd = r->pd,
		.create_flags = create_flags,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM,
	};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY};
	struct ibv_qp *qp = ibv_create_qp_ex(r->ctx, &init);

	assert_non_null(qp);
	assert_int_equal(ibv_modify_qp(qp, &attr,
				 IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_QKEY),
		0);
	attr.qp_state = IBV_QPS_RTR;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE), 0);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
	return qp;
}

static struct ibv_qp *
ud_qp(struct rig *r)
{
	return ud_qp_flags(r, 0);
}

static struct ibv_ah_attr
address(const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1};

	attr.grh.dgid = *gid;
	attr.grh.hop_limit = 64;
	return attr;
}

static struct ibv_ah *
make_ah(struct rig *r, const union ibv_gid *gid)
{
	struct ibv_ah_attr attr = address(gid);
	struct ibv_ah *ah = ibv_create_ah(r->pd, &attr);

	assert_non_null(ah);
	return ah;
}

static int
send_to(struct rig *r, struct ibv_qp *from, struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
	uint32_t len)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	wr = make_wr(IBV_WR_SEND_WITH_IMM, &sge, r, r->buf, len);
	wr.wr_id = 1;
	wr.imm_data = htobe32(0x01020304);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = qpn;
	wr.wr.ud.remote_qkey = qkey;
	return ibv_post_send(from, &wr, &bad);
}

/* The completions of a datagram that arrives, in any order. */
static struct ibv_wc
expect_both(struct rig *r)
{
	struct ibv_wc wc[2];

	assert_true(poll_for(r->cq, &wc[0]));
	assert_true(poll_for(r->cq, &wc[1]));
	assert_int_equal(wc[0].status, IBV_WC_SUCCESS);
	assert_int_equal(wc[1].status, IBV_WC_SUCCESS);
	return wc[0].opcode == IBV_WC_RECV ? wc[0] : wc[1];
}

static void
create_ah_needs_is_global(void **state)
{
	struct rig *r = *state;
	struct ibv_ah_attr attr = address(&r->gid);

	attr.is_global = 0;
	expect_null(ibv_create_ah(r->pd, &attr), EINVAL);
}

static void
create_ah_refuses_bad_values(void **state)
{
	struct rig *r = *state;
	struct ibv_ah_attr attr = address(&r->gid);

	attr.port_num = 2;
	expect_null(ibv_create_ah(r->pd, &attr), EINVAL);
	attr = address(&r->gid);
	attr.grh.sgid_index = 200;
	expect_null(ibv_create_ah(r->pd, &attr), EINVAL);
	attr = address(&r->gid);
	attr.sl = 16;
	expect_null(ibv_create_ah(r->pd, &attr), EINVAL);
}

static void
dealloc_pd_is_busy_while_it_has_address_handles(void **state)
{
	struct rig *r = *state;
	struct ibv_pd *pd = ibv_alloc_pd(r->ctx);
	struct ibv_ah_attr attr = address(&r->gid);
	struct ibv_ah *ah = ibv_create_ah(pd, &attr);

	assert_non_null(ah);
	assert_ptr_equal(ah->pd, pd);
	assert_ptr_equal(ah->context, r->ctx);
	expect_errno(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void
datagram_arrives_behind_its_grh(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *a = ud_qp(r), *b = ud_qp(r);
	struct ibv_ah *ah = make_ah(r, &r->gid);
	char *at = r->buf + BUF_SIZE / 2;
	struct iphdr ip;
	struct ibv_wc wc;

	memcpy(r->buf, "datagram", 8);
	assert_int_equal(post_recv(r, b, 2, at, 256), 0);
	assert_int_equal(send_to(r, a, ah, b->qp_num, QKEY, 8), 0);
	wc = expect_both(r);
	assert_int_equal(wc.wr_id, 2);
	assert_int_equal(wc.byte_len, GRH + 8);
	assert_int_equal(wc.src_qp, a->qp_num);
	assert_int_equal(wc.qp_num, b->qp_num);
	assert_int_equal(wc.wc_flags, IBV_WC_GRH | IBV_WC_WITH_IMM);
	assert_int_equal(wc.imm_data, htobe32(0x01020304));
	assert_memory_equal(at + GRH, "datagram", 8);
	memcpy(&ip, at + 20, sizeof(ip));
	assert_int_equal(ip.version, 4);
	assert_memory_equal(&ip.saddr, r->gid.raw + 12, 4);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

static void
answer_by_the_address_in_the_completion(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *a = ud_qp(r), *b = ud_qp(r);
	struct ibv_ah *ah = make_ah(r, &r->gid), *back;
	struct ibv_grh *grh = (struct ibv_grh *)(r->buf + BUF_SIZE / 2);
	struct ibv_ah_attr attr;
	struct ibv_wc wc;

	assert_int_equal(post_recv(r, b, 2, grh, 256), 0);
	assert_int_equal(send_to(r, a, ah, b->qp_num, QKEY, 8), 0);
	wc = expect_both(r);
	assert_int_equal(ibv_init_ah_from_wc(r->ctx, 1, &wc, grh, &attr), 0);
	assert_memory_equal(&attr.grh.dgid, &r->gid, sizeof(r->gid));
	assert_int_equal(attr.grh.sgid_index, 0);
	back = ibv_create_ah_from_wc(r->pd, &wc, grh, 1);
	assert_non_null(back);
	assert_int_equal(post_recv(r, a, 3, r->buf + 1024, 256), 0);
	assert_int_equal(send_to(r, b, back, wc.src_qp, QKEY, 8), 0);
	assert_int_equal(expect_both(r).wr_id, 3);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_ah(back), 0);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

static void
wr_set_ud_addr_names_the_destination(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *a = ud_qp(r), *b = ud_qp(r);
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(a);
	struct ibv_ah *ah = make_ah(r, &r->gid);

	assert_int_equal(post_recv(r, b, 2, r->buf + BUF_SIZE / 2, 256), 0);
	ibv_wr_start(ex);
	ex->wr_id = 1;
	ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send(ex);
	ibv_wr_set_ud_addr(ex, ah, b->qp_num, QKEY);
	ibv_wr_set_sge(ex, r->mr->lkey, (uintptr_t)r->buf, 16);
	assert_int_equal(ibv_wr_complete(ex), 0);
	assert_int_equal(expect_both(r).byte_len, GRH + 16);
	/* Without an address nothing is posted. */
	ibv_wr_start(ex);
	ibv_wr_send(ex);
	ibv_wr_set_sge(ex, r->mr->lkey, (uintptr_t)r->buf, 16);
	expect_errno(ibv_wr_complete(ex), EINVAL);
	expect_no_completion(r->cq);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

static void
other_qkey_is_dropped_until_the_queue_pair_has_it(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *a = ud_qp(r), *b = ud_qp(r);
	struct ibv_ah *ah = make_ah(r, &r->gid);
	struct ibv_qp_attr attr = {.qkey = QKEY + 1};
	struct ibv_qp_init_attr init;

	assert_int_equal(post_recv(r, b, 2, r->buf + BUF_SIZE / 2, 256), 0);
	assert_int_equal(send_to(r, a, ah, b->qp_num, QKEY + 1, 8), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS); /* of the send alone */
	expect_no_completion(r->cq);
	assert_int_equal(ibv_modify_qp(b, &attr, IBV_QP_QKEY), 0);
	assert_int_equal(ibv_query_qp(b, &attr, IBV_QP_QKEY, &init), 0);
	assert_int_equal(attr.qkey, QKEY + 1);
	assert_int_equal(init.qp_type, IBV_QPT_UD);
	assert_int_equal(send_to(r, a, ah, b->qp_num, QKEY + 1, 8), 0);
	assert_int_equal(expect_both(r).wr_id, 2);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

static void
post_send_refuses_what_datagrams_cannot(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *a = ud_qp(r);

	expect_errno(send_to(r, a, NULL, 1, QKEY, 8), EINVAL);
	expect_errno(post_send(r, a, 1, IBV_WR_RDMA_WRITE, r->buf, 8), EINVAL);
	assert_int_equal(ibv_destroy_qp(a), 0);
}

static void
longer_than_the_mtu_takes_the_queue_pair_to_sqe(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *a = ud_qp(r);
	struct ibv_ah *ah = make_ah(r, &r->gid);
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
	struct ibv_port_attr port;

	assert_int_equal(ibv_query_port(r->ctx, 1, &port), 0);
	assert_int_equal(send_to(r, a, ah, a->qp_num, QKEY, (128u << port.active_mtu) + 1), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_LOC_LEN_ERR);
	assert_int_equal(state_of(a), IBV_QPS_SQE);
	assert_int_equal(ibv_modify_qp(a, &attr, IBV_QP_STATE), 0);
	assert_int_equal(send_to(r, a, ah, a->qp_num, QKEY, 128u << port.active_mtu), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_qp(a), 0);
}

/* ---- multicast ---- */

static const union ibv_gid group = {.raw = {[10] = 0xff, [11] = 0xff, [12] = 239, 1, 2, 3}};

static void
attach_mcast_is_for_datagrams_and_groups(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *rc = make_qp(r, NULL, NULL), *ud = ud_qp(r);

	expect_errno(ibv_attach_mcast(rc, &group, 0), EINVAL);
	expect_errno(ibv_attach_mcast(ud, &r->gid, 0), EINVAL);
	expect_errno(ibv_detach_mcast(ud, &group, 0), EINVAL);
	assert_int_equal(ibv_destroy_qp(rc), 0);
	assert_int_equal(ibv_destroy_qp(ud), 0);
}

/* ibv_destroy_qp(3): "fails if the QP is attached to a multicast group". */
static void
destroy_qp_is_busy_while_attached(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *ud = ud_qp(r);

	assert_int_equal(ibv_attach_mcast(ud, &group, 0), 0);
	expect_errno(ibv_destroy_qp(ud), EBUSY);
	assert_int_equal(ibv_detach_mcast(ud, &group, 0), 0);
	assert_int_equal(ibv_destroy_qp(ud), 0);
}

/* ibv_attach_mcast(3): "If a QP is attached to the same multicast group multiple times, the QP will
 * still receive a single copy". */
static void
each_attached_queue_pair_gets_one_copy(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *a = ud_qp(r), *b = ud_qp(r), *c = ud_qp(r), *other = ud_qp(r);
	struct ibv_ah *ah = make_ah(r, &group);
	unsigned int seen = 0;
	struct ibv_wc wc;
	int i;

	assert_int_equal(ibv_attach_mcast(b, &group, 0), 0);
	assert_int_equal(ibv_attach_mcast(b, &group, 0), 0);
	assert_int_equal(ibv_attach_mcast(c, &group, 0), 0);
	for (i = 0; i < 2; i++) {
		assert_int_equal(post_recv(r, b, 2, r->buf + BUF_SIZE / 2, 256), 0);
		assert_int_equal(post_recv(r, c, 4, r->buf + BUF_SIZE / 2 + 256, 256), 0);
	}
	assert_int_equal(post_recv(r, other, 8, r->buf + BUF_SIZE / 2, 256), 0);
	assert_int_equal(send_to(r, a, ah, 0xffffff, QKEY, 8), 0);
	for (i = 0; i < 3; i++) {
		assert_true(poll_for(r->cq, &wc));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		seen |= (unsigned int)wc.wr_id;
	}
	assert_int_equal(seen, 7);
	expect_no_completion(r->cq);
	assert_int_equal(ibv_detach_mcast(b, &group, 0), 0);
	assert_int_equal(ibv_detach_mcast(c, &group, 0), 0);
	assert_int_equal(send_to(r, a, ah, 0xffffff, QKEY, 8), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	expect_no_completion(r->cq);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
	assert_int_equal(ibv_destroy_qp(c), 0);
	assert_int_equal(ibv_destroy_qp(other), 0);
}

static void
sender_gets_its_own_unless_it_blocks_that(void **state)
{
	struct rig *r = *state;
	struct ibv_qp *a = ud_qp(r), *b = ud_qp_flags(r, IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
	struct ibv_ah *ah = make_ah(r, &group);

	assert_int_equal(ibv_attach_mcast(a, &group, 0), 0);
	assert_int_equal(post_recv(r, a, 2, r->buf + BUF_SIZE / 2, 256), 0);
	assert_int_equal(send_to(r, a, ah, 0xffffff, QKEY, 8), 0);
	assert_int_equal(expect_both(r).wr_id, 2);
	assert_int_equal(ibv_detach_mcast(a, &group, 0), 0);
	assert_int_equal(ibv_attach_mcast(b, &group, 0), 0);
	assert_int_equal(post_recv(r, b, 2, r->buf + BUF_SIZE / 2, 256), 0);
	assert_int_equal(send_to(r, b, ah, 0xffffff, QKEY, 8), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	expect_no_completion(r->cq);
	assert_int_equal(ibv_detach_mcast(b, &group, 0), 0);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	assert_int_equal(ibv_destroy_qp(a), 0);
	assert_int_equal(ibv_destroy_qp(b), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_DEVICE(create_ah_needs_is_global),
		TEST_DEVICE(create_ah_refuses_bad_values),
		TEST_DEVICE(dealloc_pd_is_busy_while_it_has_address_handles),
		TEST_DEVICE(datagram_arrives_behind_its_grh),
		TEST_DEVICE(answer_by_the_address_in_the_completion),
		TEST_DEVICE(wr_set_ud_addr_names_the_destination),
		TEST_DEVICE(other_qkey_is_dropped_until_the_queue_pair_has_it),
		TEST_DEVICE(post_send_refuses_what_datagrams_cannot),
		TEST_DEVICE(longer_than_the_mtu_takes_the_queue_pair_to_sqe),
		TEST_DEVICE(attach_mcast_is_for_datagrams_and_groups),
		TEST_DEVICE(destroy_qp_is_busy_while_attached),
		TEST_DEVICE(each_attached_queue_pair_gets_one_copy),
		TEST_DEVICE(sender_gets_its_own_unless_it_blocks_that),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
