/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UC and UD: what is lost is lost without a trace, and what comes after it is not
 * (IBTA 9.8.2, 9.8.3). Where rxe departs from the specification (CONVENTIONS, "UC and UD"), the
 * specification counts.
 */
#include <stdlib.h>
#include <string.h>

#include "roce_rig.h"

#define MTU 1024u
#define GRH 40u

static uint8_t pattern[8192];

static struct rig *
uc_rig(void)
{
	return rig_new(&(struct rig_conf){.type = VRB_QPT_UC});
}

static struct rig *
ud_rig(void)
{
	return rig_new(&(struct rig_conf){.type = VRB_QPT_UD, .port_mtu = 1500});
}

static struct frame
packet(const struct rig *r, uint8_t opcode, uint32_t psn, uint32_t off, uint32_t len)
{
	struct frame f = rig_packet(r, opcode, psn);

	f.payload = pattern + off;
	f.len = len;
	f.pad = -len & 3;
	f.dmalen = len;
	return f;
}

static void
receive(struct rig *r, uint8_t opcode, uint32_t psn, uint32_t off, uint32_t len)
{
	struct frame f = packet(r, opcode, psn, off, len);

	rig_receive(r, &f);
}

/* A completed receive of that many bytes of the pattern from off on, at the receive's own place. */
static void
expect_recv(struct rig *r, uint32_t id, uint32_t off, uint32_t len)
{
	const struct vrb_cqe *c = rig_poll(r, r->rcq, VRB_WC_SUCCESS);

	assert_int_equal(c->wr_id, id);
	assert_int_equal(c->byte_len, len);
	assert_memory_equal(r->mem + id, pattern + off, len);
}

/* ---- UC ---- */

static void
uc_message_completes_without_an_answer(void **state)
{
	struct rig *r = uc_rig();

	rig_post_recv(r, 0, 4096);
	receive(r, OP_UC | OP_SEND_FIRST, RIG_RQ_PSN, 0, MTU);
	receive(r, OP_UC | OP_SEND_MIDDLE, RIG_RQ_PSN + 1, MTU, MTU);
	receive(r, OP_UC | OP_SEND_LAST, RIG_RQ_PSN + 2, 2 * MTU, 5);
	expect_recv(r, 0, 0, 2 * MTU + 5);
	rig_expect_silence(r);
	rig_free(r);
}

static void
uc_gap_between_messages_is_harmless(void **state)
{
	struct rig *r = uc_rig();

	rig_post_recv(r, 0, 64);
	rig_post_recv(r, 64, 64);
	receive(r, OP_UC | OP_SEND_ONLY, RIG_RQ_PSN + 1000, 0, 64);
	receive(r, OP_UC | OP_SEND_ONLY, RIG_RQ_PSN - 1000, 7, 64);
	expect_recv(r, 0, 0, 64);
	expect_recv(r, 64, 7, 64);
	rig_free(r);
}

/* rxe loses the message after it as well. */
static void
uc_gap_inside_a_message_loses_that_message_only(void **state)
{
	struct rig *r = uc_rig();
	uint32_t psn = RIG_RQ_PSN;

	rig_post_recv(r, 0, 4096);
	rig_post_recv(r, 4096, 4096);
	receive(r, OP_UC | OP_SEND_FIRST, psn, 100, MTU);
	receive(r, OP_UC | OP_SEND_LAST, psn + 2, 200, 10);
	rig_expect_empty(r, r->rcq);
	receive(r, OP_UC | OP_SEND_ONLY, psn + 3, 0, 64);
	receive(r, OP_UC | OP_SEND_FIRST, psn + 4, 300, MTU);
	receive(r, OP_UC | OP_SEND_LAST, psn + 5, 300 + MTU, 10);
	/* The receive of the lost message serves the next, from its first byte. */
	expect_recv(r, 0, 0, 64);
	expect_recv(r, 4096, 300, MTU + 10);
	rig_expect_silence(r);
	rig_free(r);
}

static void
uc_lost_last_packet_loses_that_message_only(void **state)
{
	struct rig *r = uc_rig();

	rig_post_recv(r, 0, 4096);
	receive(r, OP_UC | OP_SEND_FIRST, RIG_RQ_PSN, 0, MTU);
	receive(r, OP_UC | OP_SEND_FIRST, RIG_RQ_PSN + 2, 50, MTU);
	receive(r, OP_UC | OP_SEND_LAST, RIG_RQ_PSN + 3, 50 + MTU, 3);
	expect_recv(r, 0, 50, MTU + 3);
	rig_expect_empty(r, r->rcq);
	rig_free(r);
}

static void
uc_lost_first_packet_loses_that_message_only(void **state)
{
	struct rig *r = uc_rig();

	rig_post_recv(r, 0, 4096);
	receive(r, OP_UC | OP_SEND_MIDDLE, RIG_RQ_PSN + 1, 0, MTU);
	receive(r, OP_UC | OP_SEND_LAST, RIG_RQ_PSN + 2, 0, 10);
	rig_expect_empty(r, r->rcq);
	receive(r, OP_UC | OP_SEND_ONLY, RIG_RQ_PSN + 3, 9, 10);
	expect_recv(r, 0, 9, 10);
	rig_free(r);
}

static void
uc_send_without_receive_is_dropped(void **state)
{
	struct rig *r = uc_rig();

	receive(r, OP_UC | OP_SEND_FIRST, RIG_RQ_PSN, 0, MTU);
	/* One that comes too late for the message is kept for the next. */
	rig_post_recv(r, 0, 4096);
	receive(r, OP_UC | OP_SEND_LAST, RIG_RQ_PSN + 1, 0, 8);
	rig_expect_empty(r, r->rcq);
	receive(r, OP_UC | OP_SEND_ONLY, RIG_RQ_PSN + 2, 1, 8);
	expect_recv(r, 0, 1, 8);
	rig_expect_silence(r);
	rig_free(r);
}

static void
uc_send_longer_than_the_receive_is_dropped(void **state)
{
	struct rig *r = uc_rig();

	rig_post_recv(r, 0, 100);
	receive(r, OP_UC | OP_SEND_ONLY, RIG_RQ_PSN, 0, 101);
	rig_expect_empty(r, r->rcq);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_RTS);
	assert_true(r->why[0] != '\0');
	receive(r, OP_UC | OP_SEND_ONLY, RIG_RQ_PSN + 1, 2, 100);
	expect_recv(r, 0, 2, 100);
	rig_free(r);
}

static void
uc_wrong_length_in_a_message_drops_it(void **state)
{
	struct rig *r = uc_rig();

	rig_post_recv(r, 0, 4096);
	receive(r, OP_UC | OP_SEND_FIRST, RIG_RQ_PSN, 0, MTU - 4);
	receive(r, OP_UC | OP_SEND_LAST, RIG_RQ_PSN + 1, 0, 8);
	rig_expect_empty(r, r->rcq);
	receive(r, OP_UC | OP_SEND_ONLY, RIG_RQ_PSN + 2, 5, 8);
	expect_recv(r, 0, 5, 8);
	rig_free(r);
}

static void
uc_receive_with_a_bad_key_ends_the_queue_pair(void **state)
{
	struct rig *r = uc_rig();
	struct vrb_recv_wqe *w;

	rig_post_recv(r, 0, 64);
	w = vrb_rq_at(vrb_qp_rq(r->qp), 0);
	w->sge[0].lkey ^= 1;
	receive(r, OP_UC | OP_SEND_ONLY, RIG_RQ_PSN, 0, 64);
	rig_poll(r, r->rcq, VRB_WC_LOC_PROT_ERR);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_ERR);
	rig_expect_silence(r);
	rig_free(r);
}

static void
uc_write_stores_and_a_refused_one_leaves_no_trace(void **state)
{
	struct rig *r = uc_rig();
	struct frame f = packet(r, OP_UC | OP_WRITE_ONLY, RIG_RQ_PSN, 0, 64);

	rig_receive(r, &f);
	assert_memory_equal(r->mem, pattern, 64);
	f.psn++;
	f.rkey ^= 1;
	f.va += 64;
	memset(r->mem + 64, 0xee, 64);
	rig_receive(r, &f);
	assert_int_equal(r->mem[64], 0xee);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_RTS);
	assert_int_equal(r->n_events, 0);
	rig_expect_silence(r);
	rig_free(r);
}

static void
uc_write_with_immediate_takes_a_receive(void **state)
{
	struct rig *r = uc_rig();
	struct frame f = packet(r, OP_UC | OP_WRITE_ONLY_IMM, RIG_RQ_PSN, 0, 64);
	const struct vrb_cqe *c;

	f.imm = 0x01020304;
	rig_receive(r, &f); /* none is there */
	rig_expect_empty(r, r->rcq);
	rig_post_recv(r, 512, 0);
	f.psn++;
	rig_receive(r, &f);
	c = rig_poll(r, r->rcq, VRB_WC_SUCCESS);
	assert_int_equal(c->opcode, VRB_WC_RECV_RDMA_WITH_IMM);
	assert_memory_equal(&c->imm, "\1\2\3\4", 4);
	rig_free(r);
}

static void
uc_lost_middle_of_a_write_spares_the_next(void **state)
{
	struct rig *r = uc_rig();
	struct frame f = packet(r, OP_UC | OP_WRITE_FIRST, RIG_RQ_PSN, 0, MTU);

	f.dmalen = 2 * MTU + 10;
	rig_receive(r, &f);
	receive(r, OP_UC | OP_WRITE_LAST, RIG_RQ_PSN + 2, 0, 10);
	rig_post_recv(r, 0, 0);
	receive(r, OP_UC | OP_WRITE_ONLY_IMM, RIG_RQ_PSN + 3, 11, 20);
	rig_poll(r, r->rcq, VRB_WC_SUCCESS);
	assert_memory_equal(r->mem, pattern + 11, 20);
	rig_free(r);
}

static void
uc_sending_completes_at_once_and_asks_for_nothing(void **state)
{
	struct rig *r = uc_rig();

	rig_post(r, VRB_WR_SEND, 0, 2 * MTU + 1, 0);
	assert_false(rig_expect(r, OP_UC | OP_SEND_FIRST, RIG_SQ_PSN)->ackreq);
	assert_false(rig_expect(r, OP_UC | OP_SEND_MIDDLE, RIG_SQ_PSN + 1)->ackreq);
	assert_false(rig_expect(r, OP_UC | OP_SEND_LAST, RIG_SQ_PSN + 2)->ackreq);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	assert_true(vrb_engine_deadline(r->e) == UINT64_MAX);
	rig_free(r);
}

/* What is sent must not be read from the program's memory after the completion. */
static void
unreliable_payload_is_copied_before_the_completion(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){
		.type = VRB_QPT_UC, .no_icrc = true, .zero_copy = true, .mtu = VRB_MTU_4096});
	struct rte_mbuf *pkts[2], *m;
	unsigned int n;

	rig_post(r, VRB_WR_SEND, 0, 4096, 0);
	n = vrb_engine_tx(r->e, pkts, 2, r->now);
	assert_int_equal(n, 1);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	for (m = pkts[0]; m != NULL; m = m->next)
		assert_false(RTE_MBUF_HAS_EXTBUF(m));
	rte_pktmbuf_free(pkts[0]);
	rig_free(r);
}

static void
sqe_after_a_send_error_and_back_to_rts(void **state)
{
	struct rig *r = uc_rig();
	struct vrb_qp_attr a = {.state = VRB_QPS_RTS};
	struct vrb_send_wqe *w;

	w = rig_wqe(r, VRB_WR_SEND, 0, 64, 0);
	((struct vrb_sge *)w->data)->lkey ^= 1;
	assert_int_equal(rig_commit(r, w), 0);
	rig_post(r, VRB_WR_SEND, 64, 64, 0);
	rig_expect_silence(r);
	rig_poll(r, r->scq, VRB_WC_LOC_PROT_ERR);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_SQE);
	rig_poll(r, r->scq, VRB_WC_WR_FLUSH_ERR);
	/* It goes on receiving, and flushes what is posted. */
	rig_post_recv(r, 0, 64);
	receive(r, OP_UC | OP_SEND_ONLY, RIG_RQ_PSN, 3, 64);
	expect_recv(r, 0, 3, 64);
	rig_post(r, VRB_WR_SEND, 0, 64, 0);
	rig_expect_silence(r);
	assert_int_equal(rig_flushed(r, r->scq), 1);
	assert_int_equal(vrb_qp_modify(r->qp, &a, VRB_QP_STATE, r->now), 0);
	rig_post(r, VRB_WR_SEND, 0, 64, 0);
	assert_int_equal(rig_take(r)->opcode, OP_UC | OP_SEND_ONLY);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	rig_free(r);
}

/* ---- UD ---- */

static void
ud_receive_has_the_grh_before_the_payload(void **state)
{
	struct rig *r = ud_rig();
	struct frame f = packet(r, OP_UD | OP_SEND_ONLY_IMM, 0x777, 0, 100);
	const struct vrb_cqe *c;
	uint8_t zeros[20] = {0};

	f.imm = 0xa1a2a3a4;
	f.tos = 0x12;
	rig_post_recv(r, 0, GRH + 100);
	memset(r->mem, 0xee, GRH + 100);
	rig_receive(r, &f);
	c = rig_poll(r, r->rcq, VRB_WC_SUCCESS);
	assert_int_equal(c->byte_len, GRH + 100);
	assert_int_equal(c->wc_flags, VRB_WC_GRH | VRB_WC_WITH_IMM);
	assert_int_equal(c->src_qp, RIG_PEER_QPN);
	assert_memory_equal(&c->imm, "\xa1\xa2\xa3\xa4", 4);
	assert_memory_equal(r->mem, zeros, 20);
	assert_int_equal(r->mem[20], 0x45);
	assert_int_equal(r->mem[21], 0x12);
	assert_memory_equal(r->mem + 32, r->peer_ip, 4);
	assert_memory_equal(r->mem + 36, r->ip, 4);
	assert_memory_equal(r->mem + GRH, pattern, 100);
	rig_expect_silence(r);
	rig_free(r);
}

static void
ud_receive_over_ipv6_has_its_header(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.type = VRB_QPT_UD, .v6 = true});
	struct frame f = packet(r, OP_UD | OP_SEND_ONLY, 1, 0, 8);

	rig_post_recv(r, 0, GRH + 8);
	rig_receive(r, &f);
	rig_poll(r, r->rcq, VRB_WC_SUCCESS);
	assert_int_equal(r->mem[0] >> 4, 6);
	assert_memory_equal(r->mem + 8, f.saddr, 16);
	assert_memory_equal(r->mem + 24, f.daddr, 16);
	rig_free(r);
}

static void
ud_wrong_qkey_is_dropped_silently(void **state)
{
	struct rig *r = ud_rig();
	struct frame f = packet(r, OP_UD | OP_SEND_ONLY, 1, 0, 8);

	rig_post_recv(r, 0, 256);
	f.qkey ^= 1;
	rig_receive(r, &f);
	rig_expect_empty(r, r->rcq);
	rig_expect_silence(r);
	assert_int_equal(vrb_engine_stats(r->e)->rx_qkey, 1);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_RTS);
	rig_free(r);
}

static void
ud_datagram_that_does_not_fit_is_dropped_and_the_receive_stays(void **state)
{
	struct rig *r = ud_rig();

	rig_post_recv(r, 0, GRH + 8);
	receive(r, OP_UD | OP_SEND_ONLY, 1, 0, 9);
	rig_expect_empty(r, r->rcq);
	receive(r, OP_UD | OP_SEND_ONLY, 2, 0, 8);
	rig_poll(r, r->rcq, VRB_WC_SUCCESS);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_RTS);
	rig_free(r);
}

static void
ud_psn_is_not_looked_at(void **state)
{
	struct rig *r = ud_rig();
	const uint32_t psns[] = {5, 5, 0xffffff, 0};

	for (unsigned int i = 0; i < 4; i++) {
		rig_post_recv(r, i * 64, 64);
		receive(r, OP_UD | OP_SEND_ONLY, psns[i], 0, 8);
		assert_int_equal(rig_poll(r, r->rcq, VRB_WC_SUCCESS)->wr_id, i * 64);
	}
	rig_free(r);
}

static void
ud_takes_the_receives_of_an_srq(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.type = VRB_QPT_UD, .srq = true});

	receive(r, OP_UD | OP_SEND_ONLY, 1, 0, 8);
	rig_expect_empty(r, r->rcq);
	assert_int_equal(r->srq->dry, 1);
	rig_post_recv(r, 0, 64);
	receive(r, OP_UD | OP_SEND_ONLY, 1, 0, 8);
	rig_poll(r, r->rcq, VRB_WC_SUCCESS);
	assert_int_equal(vrb_rq_count(&r->srq->rq), 0);
	rig_free(r);
}

static struct vrb_ah *
make_ah(struct rig *r, struct vrb_pd *pd)
{
	struct vrb_ah *ah;

	assert_int_equal(vrb_ah_create(r->e, pd, &r->attr.av, &ah), 0);
	return ah;
}

static struct vrb_send_wqe *
datagram(struct rig *r, const struct vrb_ah *ah, uint32_t len)
{
	struct vrb_send_wqe *w = rig_wqe(r, VRB_WR_SEND, 0, len, 0);

	w->ud.ah = ah;
	w->ud.remote_qpn = RIG_PEER_QPN;
	w->ud.qkey = 0x1234;
	return w;
}

static void
ud_sends_to_the_address_handle(void **state)
{
	struct rig *r = ud_rig();
	struct vrb_ah *ah = make_ah(r, r->pd);
	const struct frame *f;
	struct vrb_send_wqe *w;

	assert_int_equal(rig_commit(r, datagram(r, ah, 64)), 0);
	f = rig_expect(r, OP_UD | OP_SEND_ONLY, RIG_SQ_PSN);
	assert_int_equal(f->qkey, 0x1234);
	assert_int_equal(f->src_qpn, vrb_qp_num(r->qp));
	assert_memory_equal(f->dmac, r->peer_mac, 6);
	assert_memory_equal(f->daddr, r->peer_ip, 4);
	assert_true(f->icrc_ok && !f->ackreq);
	assert_int_equal(f->sport, 0xc000 + ((uint32_t)(vrb_qp_num(r->qp) * 0x61c88647u) >> 18));
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	/* IBTA 10.2.4.2: the upper bit asks for the queue pair's own. */
	w = datagram(r, ah, 64);
	w->ud.qkey = 0x80000000u;
	assert_int_equal(rig_commit(r, w), 0);
	assert_int_equal(rig_take(r)->qkey, RIG_QKEY);
	vrb_ah_destroy(r->e, ah);
	rig_free(r);
}

static void
ud_longer_than_the_mtu_is_a_local_length_error(void **state)
{
	struct rig *r = ud_rig();
	struct vrb_ah *ah = make_ah(r, r->pd);

	assert_int_equal(rig_commit(r, datagram(r, ah, MTU)), 0);
	rig_take(r);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	assert_int_equal(rig_commit(r, datagram(r, ah, MTU + 1)), 0);
	rig_expect_silence(r);
	rig_poll(r, r->scq, VRB_WC_LOC_LEN_ERR);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_SQE);
	vrb_ah_destroy(r->e, ah);
	rig_free(r);
}

static void
ud_address_handle_of_another_domain_is_an_operation_error(void **state)
{
	struct rig *r = ud_rig();
	struct vrb_pd *pd;
	struct vrb_ah *ah;

	assert_int_equal(vrb_pd_create(r->e, &pd), 0);
	ah = make_ah(r, pd);
	assert_int_equal(rig_commit(r, datagram(r, ah, 8)), 0);
	rig_expect_silence(r);
	rig_poll(r, r->scq, VRB_WC_LOC_QP_OP_ERR);
	vrb_ah_destroy(r->e, ah);
	assert_int_equal(vrb_pd_destroy(r->e, pd), 0);
	rig_free(r);
}

static void
ud_without_address_handle_is_refused(void **state)
{
	struct rig *r = ud_rig();

	assert_int_equal(rig_commit(r, datagram(r, NULL, 8)), -EINVAL);
	rig_free(r);
}

static void
ud_address_handle_destroyed_before_the_datagram_is_sent(void **state)
{
	struct rig *r = ud_rig();
	struct vrb_ah *ah = make_ah(r, r->pd), *other = make_ah(r, r->pd);

	assert_int_equal(rig_commit(r, datagram(r, ah, 8)), 0);
	vrb_ah_destroy(r->e, ah);
	vrb_ah_destroy(r->e, other);
	assert_memory_equal(rig_expect(r, OP_UD | OP_SEND_ONLY, RIG_SQ_PSN)->dmac, r->peer_mac, 6);
	rig_free(r);
}

static void
ud_takes_no_other_operation(void **state)
{
	struct rig *r = ud_rig();

	assert_int_equal(rig_commit(r, rig_wqe(r, VRB_WR_RDMA_WRITE, 0, 8, 0)), -EOPNOTSUPP);
	assert_int_equal(rig_commit(r, rig_wqe(r, VRB_WR_RDMA_READ, 0, 8, 0)), -EOPNOTSUPP);
	receive(r, OP_UC | OP_SEND_ONLY, 0, 0, 8);
	receive(r, OP_SEND_ONLY, 0, 0, 8);
	assert_int_equal(vrb_engine_stats(r->e)->rx_opcode, 2);
	rig_free(r);
}

/* ---- multicast ---- */

static const union vrb_gid group = {.raw = {[10] = 0xff, [11] = 0xff, 239, 9, 8, 7}};

static struct frame
to_group(const struct rig *r)
{
	struct frame f = packet(r, OP_UD | OP_SEND_ONLY, 1, 0, 8);

	memcpy(f.dmac, "\x01\x00\x5e\x09\x08\x07", 6);
	memcpy(f.daddr, group.raw + 12, 4);
	f.qpn = 0xffffff;
	return f;
}

static void
multicast_is_not_ours_until_somebody_is_attached(void **state)
{
	struct rig *r = ud_rig();
	struct frame f = to_group(r);
	uint8_t buf[256];
	uint32_t len = (uint32_t)frame_build(&f, buf, sizeof(buf));

	rig_post_recv(r, 0, 64);
	assert_true(rig_receive_raw(r, buf, len));
	assert_int_equal(vrb_mcast_attach(r->qp, &group), 0);
	assert_false(rig_receive_raw(r, buf, len));
	assert_int_equal(rig_poll(r, r->rcq, VRB_WC_SUCCESS)->byte_len, GRH + 8);
	assert_memory_equal(r->mem + 36, group.raw + 12, 4);
	assert_int_equal(vrb_mcast_detach(r->qp, &group), 0);
	assert_true(rig_receive_raw(r, buf, len));
	rig_expect_empty(r, r->rcq);
	rig_free(r);
}

static void
multicast_reaches_every_attached_queue_pair_that_has_a_receive(void **state)
{
	struct rig *r = ud_rig();
	struct vrb_qp *first = r->qp, *without = rig_qp(r, VRB_QPS_RTS),
		      *reset = rig_qp(r, VRB_QPS_RESET), *last = rig_qp(r, VRB_QPS_RTS);
	struct frame f = to_group(r);

	assert_int_equal(vrb_mcast_attach(first, &group), 0);
	assert_int_equal(vrb_mcast_attach(without, &group), 0);
	assert_int_equal(vrb_mcast_attach(reset, &group), 0);
	assert_int_equal(vrb_mcast_attach(last, &group), 0);
	rig_post_recv(r, 0, 64);
	r->qp = last;
	rig_post_recv(r, 64, 64);
	rig_receive(r, &f);
	assert_int_equal(rig_poll(r, r->rcq, VRB_WC_SUCCESS)->qp_num, vrb_qp_num(first));
	assert_int_equal(rig_poll(r, r->rcq, VRB_WC_SUCCESS)->qp_num, vrb_qp_num(last));
	rig_expect_empty(r, r->rcq);
	/* One that goes away while it is attached. */
	vrb_qp_destroy(last);
	r->qp = first;
	rig_post_recv(r, 0, 64);
	rig_receive(r, &f);
	assert_int_equal(rig_poll(r, r->rcq, VRB_WC_SUCCESS)->qp_num, vrb_qp_num(first));
	rig_free(r);
}

static void
multicast_to_one_queue_pair_or_of_another_transport_is_dropped(void **state)
{
	struct rig *r = ud_rig();
	struct frame f = to_group(r);

	assert_int_equal(vrb_mcast_attach(r->qp, &group), 0);
	rig_post_recv(r, 0, 64);
	f.qpn = vrb_qp_num(r->qp);
	rig_receive(r, &f);
	f = to_group(r);
	f.opcode = OP_SEND_ONLY;
	rig_receive(r, &f);
	/* And the number alone makes no multicast. */
	f = packet(r, OP_UD | OP_SEND_ONLY, 1, 0, 8);
	f.qpn = 0xffffff;
	rig_receive(r, &f);
	rig_expect_empty(r, r->rcq);
	assert_int_equal(vrb_engine_stats(r->e)->rx_no_qp, 3);
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uc_message_completes_without_an_answer),
		cmocka_unit_test(uc_gap_between_messages_is_harmless),
		cmocka_unit_test(uc_gap_inside_a_message_loses_that_message_only),
		cmocka_unit_test(uc_lost_last_packet_loses_that_message_only),
		cmocka_unit_test(uc_lost_first_packet_loses_that_message_only),
		cmocka_unit_test(uc_send_without_receive_is_dropped),
		cmocka_unit_test(uc_send_longer_than_the_receive_is_dropped),
		cmocka_unit_test(uc_wrong_length_in_a_message_drops_it),
		cmocka_unit_test(uc_receive_with_a_bad_key_ends_the_queue_pair),
		cmocka_unit_test(uc_write_stores_and_a_refused_one_leaves_no_trace),
		cmocka_unit_test(uc_write_with_immediate_takes_a_receive),
		cmocka_unit_test(uc_lost_middle_of_a_write_spares_the_next),
		cmocka_unit_test(uc_sending_completes_at_once_and_asks_for_nothing),
		cmocka_unit_test(unreliable_payload_is_copied_before_the_completion),
		cmocka_unit_test(sqe_after_a_send_error_and_back_to_rts),
		cmocka_unit_test(ud_receive_has_the_grh_before_the_payload),
		cmocka_unit_test(ud_receive_over_ipv6_has_its_header),
		cmocka_unit_test(ud_wrong_qkey_is_dropped_silently),
		cmocka_unit_test(ud_datagram_that_does_not_fit_is_dropped_and_the_receive_stays),
		cmocka_unit_test(ud_psn_is_not_looked_at),
		cmocka_unit_test(ud_takes_the_receives_of_an_srq),
		cmocka_unit_test(ud_sends_to_the_address_handle),
		cmocka_unit_test(ud_longer_than_the_mtu_is_a_local_length_error),
		cmocka_unit_test(ud_address_handle_of_another_domain_is_an_operation_error),
		cmocka_unit_test(ud_without_address_handle_is_refused),
		cmocka_unit_test(ud_address_handle_destroyed_before_the_datagram_is_sent),
		cmocka_unit_test(ud_takes_no_other_operation),
		cmocka_unit_test(multicast_is_not_ours_until_somebody_is_attached),
		cmocka_unit_test(multicast_reaches_every_attached_queue_pair_that_has_a_receive),
		cmocka_unit_test(multicast_to_one_queue_pair_or_of_another_transport_is_dropped),
	};

	for (unsigned int i = 0; i < sizeof(pattern); i++)
		pattern[i] = (uint8_t)(i * 7 + (i >> 8));
	return cmocka_run_group_tests(tests, rig_group, NULL);
}
