/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The direct path: what goes by it and what does not, in which order, and what a board lets peers
 * do. In the place of the NIC's system calls stands a copy, in that of the peer a board that the
 * test fills.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "board.h"
#include "roce_rig.h"

/* Where rig_wqe() sends to. */
#define THEIR_RKEY 0x4567u
#define THEIR_VA UINT64_C(0x123456789000)
#define THEIR_LEN (4u << 20)
#define ALL (VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE)

static struct {
	struct vrb_board *board; /* the peer's */
	uint8_t *mem;
	int result; /* of the next moves, if not 0 */
	unsigned int moves, opened, closed, settled;
	uint64_t most; /* bytes that were moved at once */
} peer;

static void *
fake_open(void *ctx, const uint8_t mac[6])
{
	const struct rig *r = ctx;

	assert_memory_equal(mac, r->peer_mac, 6);
	peer.opened++;
	return &peer;
}

static void
fake_close(void *ctx, void *handle)
{
	assert_ptr_equal(handle, &peer);
	peer.closed++;
}

static int
fake_move(void *ctx, void *handle, const struct vrb_board_req *req, uint64_t off, uint64_t len,
	const struct iovec *iov, unsigned int num_iov, bool last, uint32_t *gen)
{
	uint64_t addr = vrb_board_check(peer.board, req, gen);

	if (peer.result != 0)
		return peer.result;
	if (addr == 0)
		return -EAGAIN;
	peer.moves++;
	peer.most = RTE_MAX(peer.most, len);
	assert_int_equal(last, off + len == req->len);
	addr += off;
	for (unsigned int i = 0; i < num_iov; i++) {
		void *there = (void *)(uintptr_t)addr;

		memcpy(req->write ? there : iov[i].iov_base, req->write ? iov[i].iov_base : there,
			iov[i].iov_len);
		addr += iov[i].iov_len;
		len -= iov[i].iov_len;
	}
	assert_int_equal(len, 0);
	return 0;
}

static void
fake_settle(void *ctx)
{
	peer.settled++;
}

static const struct vrb_direct_ops fake_ops = {fake_open, fake_close, fake_move, fake_settle};

static struct vrb_board_qp *
their_qp(void)
{
	return &peer.board->qp[RIG_PEER_QPN & (VRB_MAX_QP - 1)];
}

static struct vrb_board_mr *
their_mr(void)
{
	return &peer.board->mr[THEIR_RKEY >> 8];
}

/* An initiator whose peer allows everything. */
static struct rig *
initiator(enum vrb_direct_mode mode)
{
	struct rig *r;
	struct vrb_board_qp *qp;

	memset(&peer, 0, sizeof(peer));
	peer.board = calloc(1, sizeof(*peer.board));
	peer.mem = calloc(1, THEIR_LEN);
	assert_true(peer.board != NULL && peer.mem != NULL);
	r = rig_new(&(struct rig_conf){.depth = 256,
		.cq_size = 512,
		.timeout = 14,
		.direct = &fake_ops,
		.direct_mode = mode});
	qp = their_qp();
	qp->qpn = RIG_PEER_QPN;
	qp->dest_qpn = vrb_qp_num(r->qp);
	qp->rq_psn = RIG_SQ_PSN;
	qp->access = ALL;
	qp->pd = 1;
	qp->peer.raw[10] = qp->peer.raw[11] = 0xff;
	memcpy(qp->peer.raw + 12, r->ip, 4);
	qp->gen = 5;
	*their_mr() = (struct vrb_board_mr){.rkey = THEIR_RKEY,
		.access = ALL,
		.pd = 1,
		.addr = (uintptr_t)peer.mem,
		.iova = THEIR_VA,
		.length = THEIR_LEN};
	return r;
}

static void
finish(struct rig *r)
{
	rig_free(r);
	assert_int_equal(peer.opened, peer.closed);
	free(peer.board);
	free(peer.mem);
}

static void
write_and_read_need_no_packets(void **state)
{
	struct rig *r = initiator(VRB_DIRECT_ALWAYS);
	struct vrb_send_wqe *w;

	rig_post(r, VRB_WR_RDMA_WRITE, 100, 5000, 0);
	rig_expect_silence(r);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->opcode, VRB_WC_RDMA_WRITE);
	assert_memory_equal(peer.mem, r->mem + 100, 5000);
	rig_post(r, VRB_WR_RDMA_WRITE, 300, 8, VRB_SEND_INLINE);
	rig_expect_silence(r);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	assert_memory_equal(peer.mem, r->mem + 300, 8);
	pattern_fill(peer.mem, 6000, 9, 0);
	w = rig_wqe(r, VRB_WR_RDMA_READ, 0, 6000, 0);
	w->num_sge = 3;
	for (uint32_t i = 0; i < 3; i++)
		((struct vrb_sge *)w->data)[i] = (struct vrb_sge){
			(uintptr_t)r->mem + 10000 * i, 1000 * (i + 1), r->mr->lkey};
	rig_commit(r, w);
	rig_expect_silence(r);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->opcode, VRB_WC_RDMA_READ);
	assert_memory_equal(r->mem, peer.mem, 1000);
	assert_memory_equal(r->mem + 10000, peer.mem + 1000, 2000);
	assert_memory_equal(r->mem + 20000, peer.mem + 3000, 3000);
	assert_int_equal(vrb_engine_stats(r->e)->direct_writes, 2);
	assert_int_equal(vrb_engine_stats(r->e)->direct_reads, 1);
	assert_int_equal(vrb_engine_stats(r->e)->direct_bytes, 5000 + 8 + 6000);
	/* No PSN was used. */
	rig_post(r, VRB_WR_SEND, 0, 10, 0);
	rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN);
	finish(r);
}

static void
other_operations_and_other_modes_go_in_packets(void **state)
{
	struct rig *r = initiator(VRB_DIRECT_ALWAYS);

	rig_post(r, VRB_WR_RDMA_WRITE_WITH_IMM, 0, 100000, 0);
	rig_expect(r, OP_WRITE_FIRST, RIG_SQ_PSN);
	assert_int_equal(peer.moves, 0);
	finish(r);
	r = initiator(VRB_DIRECT_ALWAYS);
	rig_post(r, VRB_WR_RDMA_WRITE, 0, 0, 0);
	rig_expect(r, OP_WRITE_ONLY, RIG_SQ_PSN);
	assert_int_equal(peer.moves, 0);
	finish(r);
	r = initiator(VRB_DIRECT_OFF);
	assert_int_equal(peer.opened, 0);
	rig_post(r, VRB_WR_RDMA_WRITE, 0, 1 << 20, 0);
	rig_expect(r, OP_WRITE_FIRST, RIG_SQ_PSN);
	assert_int_equal(peer.moves, 0);
	finish(r);
}

static void
nothing_overtakes_what_is_in_flight(void **state)
{
	struct rig *r = initiator(VRB_DIRECT_ALWAYS);

	rig_post(r, VRB_WR_SEND, 0, 10, 0);
	rig_post(r, VRB_WR_RDMA_WRITE, 0, 20, 0);
	rig_post(r, VRB_WR_RDMA_WRITE, 0, VRB_DIRECT_WAIT, 0);
	rig_post(r, VRB_WR_SEND, 0, 30, 0);
	/* The small one follows at once, the large one waits for the acknowledgement, for which the
	 * last packet before it asks. */
	assert_false(rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN)->ackreq);
	assert_true(rig_expect(r, OP_WRITE_ONLY, RIG_SQ_PSN + 1)->ackreq);
	rig_expect_silence(r);
	assert_int_equal(peer.moves, 0);
	rig_ack(r, 0x1f, RIG_SQ_PSN);
	rig_expect_silence(r);
	assert_int_equal(peer.moves, 0);
	rig_ack(r, 0x1f, RIG_SQ_PSN + 1);
	rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN + 2);
	assert_int_equal(peer.moves, 1);
	for (int i = 0; i < 3; i++)
		rig_poll(r, r->scq, VRB_WC_SUCCESS);
	rig_expect_empty(r, r->scq);
	rig_ack(r, 0x1f, RIG_SQ_PSN + 2);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	finish(r);
}

static void
a_long_message_is_moved_in_parts(void **state)
{
	struct rig *r = initiator(VRB_DIRECT_AUTO);
	struct rte_mbuf *m;

	rig_post(r, VRB_WR_RDMA_WRITE, 0, RIG_MEM, 0);
	rig_post(r, VRB_WR_RDMA_WRITE, 0, RIG_MEM, 0);
	rig_post(r, VRB_WR_RDMA_READ, 0, 20000, 0);
	assert_int_equal(vrb_engine_tx(r->e, &m, 1, r->now), 0);
	assert_int_equal(peer.moves, 1);
	/* There is more to do, and whoever runs the engine is told so. */
	assert_int_equal(vrb_engine_deadline(r->e), 0);
	assert_int_equal(vrb_engine_tx(r->e, &m, 1, r->now), 0);
	assert_int_equal(vrb_engine_tx(r->e, &m, 1, r->now), 0);
	assert_int_equal(peer.moves, 3);
	assert_true(peer.most <= VRB_DIRECT_CALL);
	for (int i = 0; i < 3; i++)
		rig_poll(r, r->scq, VRB_WC_SUCCESS);
	assert_int_equal(vrb_engine_deadline(r->e), UINT64_MAX);
	finish(r);
}

/* What the board refuses goes in packets, whole, and the next message tries again. */
static void
expect_refused(struct rig *r, uint32_t psn)
{
	unsigned int moves = peer.moves;
	const struct frame *f;

	rig_post(r, VRB_WR_RDMA_WRITE, 0, 900, 0);
	f = rig_expect(r, OP_WRITE_ONLY, psn);
	assert_int_equal(f->rkey, THEIR_RKEY);
	assert_int_equal(f->va, THEIR_VA);
	assert_int_equal(f->len, 900);
	assert_int_equal(peer.moves, moves);
	rig_ack(r, 0x1f, psn);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
}

static void
what_the_board_refuses_goes_in_packets(void **state)
{
	static const struct vrb_board_mr bad_mrs[] = {
		{.rkey = 0, .access = ALL, .pd = 1, .iova = THEIR_VA, .length = THEIR_LEN},
		{.rkey = THEIR_RKEY ^ 1, .access = ALL, .pd = 1, .iova = THEIR_VA, .length = 900},
		{.rkey = THEIR_RKEY,
			.access = VRB_ACCESS_REMOTE_READ,
			.pd = 1,
			.iova = THEIR_VA,
			.length = 900},
		{.rkey = THEIR_RKEY, .access = ALL, .pd = 2, .iova = THEIR_VA, .length = 900},
		{.rkey = THEIR_RKEY, .access = ALL, .pd = 1, .iova = THEIR_VA, .length = 899},
		{.rkey = THEIR_RKEY, .access = ALL, .pd = 1, .iova = THEIR_VA + 1, .length = 900},
		{.rkey = THEIR_RKEY, .access = ALL, .pd = 1, .iova = 0, .length = 900},
	};
	struct vrb_board_mr good_mr;
	struct vrb_board_qp good_qp, *qp;
	struct rig *r;

	for (unsigned int i = 0; i < RTE_DIM(bad_mrs); i++) {
		r = initiator(VRB_DIRECT_ALWAYS);
		good_mr = *their_mr();
		*their_mr() = bad_mrs[i];
		expect_refused(r, RIG_SQ_PSN);
		*their_mr() = good_mr;
		rig_post(r, VRB_WR_RDMA_WRITE, 0, 900, 0);
		rig_expect_silence(r);
		rig_poll(r, r->scq, VRB_WC_SUCCESS);
		finish(r);
	}
	for (unsigned int i = 0; i < 7; i++) {
		r = initiator(VRB_DIRECT_ALWAYS);
		qp = their_qp();
		good_qp = *qp;
		qp->gen *= i != 0;
		qp->qpn ^= (i == 1) << 20;
		qp->dest_qpn ^= i == 2;
		qp->rq_psn ^= i == 3;
		qp->access &= i == 4 ? ~VRB_ACCESS_REMOTE_WRITE : ~0u;
		qp->peer.raw[15] ^= i == 5;
		peer.board->shut = i == 6;
		expect_refused(r, RIG_SQ_PSN);
		*qp = good_qp;
		peer.board->shut = 0;
		rig_post(r, VRB_WR_RDMA_WRITE, 0, 900, 0);
		rig_expect_silence(r);
		rig_poll(r, r->scq, VRB_WC_SUCCESS);
		/* A queue pair that was connected anew is another one. */
		qp->gen++;
		expect_refused(r, RIG_SQ_PSN + 1);
		finish(r);
	}
}

static void
a_peer_that_cannot_be_reached_is_given_up(void **state)
{
	struct rig *r = initiator(VRB_DIRECT_ALWAYS);

	peer.result = -EPIPE;
	expect_refused(r, RIG_SQ_PSN);
	assert_int_equal(peer.closed, 1);
	peer.result = 0;
	expect_refused(r, RIG_SQ_PSN + 1);
	finish(r);
}

static void
a_bad_sge_fails_as_with_packets(void **state)
{
	struct rig *r = initiator(VRB_DIRECT_ALWAYS);
	struct vrb_send_wqe *w = rig_wqe(r, VRB_WR_RDMA_WRITE, 0, 900, 0);

	((struct vrb_sge *)w->data)->lkey ^= 1;
	rig_commit(r, w);
	rig_expect_silence(r);
	rig_poll(r, r->scq, VRB_WC_LOC_PROT_ERR);
	assert_int_equal(peer.moves, 0);
	assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_ERR);
	finish(r);
}

/* One small WRITE, answered after @p ns if it comes in a packet. @return whether it did */
static bool
small_write(struct rig *r, uint32_t *psn, uint64_t ns)
{
	unsigned int moves = peer.moves;

	rig_post(r, VRB_WR_RDMA_WRITE, 0, 8, 0);
	if (rig_send(r) == 0) {
		assert_int_equal(peer.moves, moves + 1);
		rig_poll(r, r->scq, VRB_WC_SUCCESS);
		return false;
	}
	rig_expect(r, OP_WRITE_ONLY, *psn);
	r->now += ns;
	rig_ack(r, 0x1f, (*psn)++);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	return true;
}

static void
small_messages_go_the_faster_way(void **state)
{
	struct rig *r = initiator(VRB_DIRECT_AUTO);
	uint32_t psn = RIG_SQ_PSN;
	unsigned int packets = 0, i;

	/* Answered at once: packets. */
	for (i = 0; i < 1000; i++)
		assert_true(small_write(r, &psn, 1000));
	/* Answered late: hardly any. */
	for (i = 0; i < 10000; i++) {
		packets += small_write(r, &psn, 50000);
		r->now += 5000;
	}
	assert_in_range(packets, 8, 500);
	/* Answered at once again: that is noticed within some time. */
	for (i = 0; i < 20000; i++) {
		small_write(r, &psn, 1000);
		r->now += 1000;
	}
	for (i = 0; i < 100; i++)
		assert_true(small_write(r, &psn, 1000));
	finish(r);
}

static void
many_small_messages_at_once_stay_in_packets(void **state)
{
	struct rig *r = initiator(VRB_DIRECT_AUTO);
	uint32_t psn = RIG_SQ_PSN;

	for (unsigned int turn = 0; turn < 50; turn++) {
		for (unsigned int i = 0; i < 128; i++) {
			rig_post(r, VRB_WR_RDMA_WRITE, 0, 8, 0);
			rig_expect(r, OP_WRITE_ONLY, psn++);
			r->now += 300;
		}
		r->now += 60000;
		rig_ack(r, 0x1f, psn - 1);
		for (unsigned int i = 0; i < 128; i++)
			rig_poll(r, r->scq, VRB_WC_SUCCESS);
	}
	assert_int_equal(peer.moves, 0);
	finish(r);
}

/* ---- the owner of a board ---- */

static struct rig *
owner(uint32_t access)
{
	memset(&peer, 0, sizeof(peer));
	peer.board = calloc(1, sizeof(*peer.board));
	assert_non_null(peer.board);
	return rig_new(&(struct rig_conf){.direct = &fake_ops,
		.direct_mode = VRB_DIRECT_AUTO,
		.board = peer.board,
		.access = access});
}

/* What a peer of the owner may do: its queue pair is the one that the owner is connected to. */
static uint64_t
allowed(const struct rig *r, bool write, uint32_t rkey, uint64_t va, uint64_t len)
{
	struct vrb_board_req req = {.write = write,
		.qpn = vrb_qp_num(r->qp),
		.src_qpn = RIG_PEER_QPN,
		.sq_psn = RIG_RQ_PSN,
		.rkey = rkey,
		.va = va,
		.len = len};
	uint32_t gen;

	req.src.raw[10] = req.src.raw[11] = 0xff;
	memcpy(req.src.raw + 12, r->peer_ip, 4);
	return vrb_board_check(peer.board, &req, &gen);
}

static void
finish_owner(struct rig *r)
{
	rig_free(r);
	free(peer.board);
}

static void
a_board_shows_regions_as_long_as_they_live(void **state)
{
	struct rig *r = owner(0);
	uint64_t mem = (uintptr_t)r->mem;
	struct vrb_mr *mr;
	unsigned int settled;
	uint32_t rkey;

	assert_int_equal(allowed(r, true, r->mr->rkey, mem + 8, 100), mem + 8);
	assert_int_equal(allowed(r, true, r->mr->rkey, mem + RIG_MEM - 99, 100), 0);
	assert_int_equal(vrb_mr_reg(r->e, r->pd, mem, 1000, 0, VRB_ACCESS_REMOTE_READ, &mr), 0);
	rkey = mr->rkey;
	assert_int_equal(allowed(r, false, rkey, 900, 100), mem + 900);
	assert_int_equal(allowed(r, true, rkey, 900, 100), 0);
	settled = peer.settled;
	assert_int_equal(vrb_mr_rereg(r->e, mr, r->pd, mem + 64, 1000, 0, ALL), 0);
	assert_int_equal(peer.settled, settled + 1);
	assert_int_equal(allowed(r, true, rkey, 900, 100), mem + 964);
	assert_int_equal(vrb_mr_dereg(r->e, mr), 0);
	assert_int_equal(peer.settled, settled + 2);
	assert_int_equal(allowed(r, false, rkey, 900, 100), 0);
	/* A region that is for ourselves only is nobody's business. */
	assert_int_equal(vrb_mr_reg(r->e, r->pd, mem, 1000, 0, VRB_ACCESS_LOCAL_WRITE, &mr), 0);
	assert_int_equal(allowed(r, true, mr->rkey, 0, 100), 0);
	assert_int_equal(vrb_mr_dereg(r->e, mr), 0);
	assert_int_equal(peer.settled, settled + 2);
	finish_owner(r);
}

static void
a_board_shows_queue_pairs_as_long_as_they_are_connected(void **state)
{
	struct rig *r = owner(VRB_ACCESS_REMOTE_READ);
	struct vrb_qp_attr a = {.state = VRB_QPS_RTS, .access = VRB_ACCESS_REMOTE_WRITE};
	uint64_t mem = (uintptr_t)r->mem;
	uint32_t rkey = r->mr->rkey;
	unsigned int settled = peer.settled;

	assert_int_equal(allowed(r, false, rkey, mem, 10), mem);
	assert_int_equal(allowed(r, true, rkey, mem, 10), 0);
	assert_int_equal(vrb_qp_modify(r->qp, &a, VRB_QP_STATE | VRB_QP_ACCESS_FLAGS, r->now), 0);
	assert_int_equal(peer.settled, settled + 1);
	assert_int_equal(allowed(r, true, rkey, mem, 10), mem);
	assert_int_equal(allowed(r, false, rkey, mem, 10), 0);
	a.state = VRB_QPS_ERR;
	assert_int_equal(vrb_qp_modify(r->qp, &a, VRB_QP_STATE, r->now), 0);
	assert_int_equal(peer.settled, settled + 2);
	assert_int_equal(allowed(r, true, rkey, mem, 10), 0);
	finish_owner(r);
}

static void
a_queue_pair_that_only_receives_is_shown_after_its_first_packet(void **state)
{
	struct rig *r = owner(0);
	uint64_t mem = (uintptr_t)r->mem;
	struct vrb_qp_attr a = {.state = VRB_QPS_RESET};
	struct frame f;

	assert_int_equal(vrb_qp_modify(r->qp, &a, VRB_QP_STATE, r->now), 0);
	a = r->attr;
	a.state = VRB_QPS_INIT;
	assert_int_equal(
		vrb_qp_modify(r->qp, &a,
			VRB_QP_STATE | VRB_QP_PKEY_INDEX | VRB_QP_PORT | VRB_QP_ACCESS_FLAGS,
			r->now),
		0);
	a.state = VRB_QPS_RTR;
	assert_int_equal(
		vrb_qp_modify(r->qp, &a,
			VRB_QP_STATE | VRB_QP_AV | VRB_QP_PATH_MTU | VRB_QP_DEST_QPN |
				VRB_QP_RQ_PSN | VRB_QP_MAX_DEST_RD_ATOMIC | VRB_QP_MIN_RNR_TIMER,
			r->now),
		0);
	assert_int_equal(allowed(r, true, r->mr->rkey, mem, 10), 0);
	f = rig_packet(r, OP_WRITE_ONLY, RIG_RQ_PSN);
	f.dmalen = 0;
	rig_receive(r, &f);
	assert_true(rig_event(r, VRB_EVENT_COMM_EST));
	assert_int_equal(allowed(r, true, r->mr->rkey, mem, 10), mem);
	finish_owner(r);
}

static void
a_board_that_is_shut_shows_nothing(void **state)
{
	struct rig *r = owner(0);
	uint64_t mem = (uintptr_t)r->mem;
	unsigned int settled = peer.settled;

	assert_int_equal(allowed(r, true, r->mr->rkey, mem, 10), mem);
	vrb_engine_shut_board(r->e);
	assert_int_equal(peer.settled, settled + 1);
	assert_int_equal(allowed(r, true, r->mr->rkey, mem, 10), 0);
	finish_owner(r);
}

static void
a_child_of_fork_leaves_the_board_alone(void **state)
{
	struct rig *r = owner(0);
	uint64_t mem = (uintptr_t)r->mem;
	uint32_t rkey = r->mr->rkey;
	unsigned int settled = peer.settled;

	vrb_engine_no_direct(r->e);
	assert_int_equal(vrb_mr_dereg(r->e, r->mr), 0);
	vrb_qp_destroy(r->qp);
	assert_int_equal(peer.settled, settled);
	assert_int_equal(peer.board->mr[rkey >> 8].rkey, rkey);
	assert_int_equal(peer.board->mr[rkey >> 8].addr, mem);
	finish_owner(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(write_and_read_need_no_packets),
		cmocka_unit_test(other_operations_and_other_modes_go_in_packets),
		cmocka_unit_test(nothing_overtakes_what_is_in_flight),
		cmocka_unit_test(a_long_message_is_moved_in_parts),
		cmocka_unit_test(what_the_board_refuses_goes_in_packets),
		cmocka_unit_test(a_peer_that_cannot_be_reached_is_given_up),
		cmocka_unit_test(a_bad_sge_fails_as_with_packets),
		cmocka_unit_test(small_messages_go_the_faster_way),
		cmocka_unit_test(many_small_messages_at_once_stay_in_packets),
		cmocka_unit_test(a_board_shows_regions_as_long_as_they_live),
		cmocka_unit_test(a_board_shows_queue_pairs_as_long_as_they_are_connected),
		cmocka_unit_test(a_queue_pair_that_only_receives_is_shown_after_its_first_packet),
		cmocka_unit_test(a_board_that_is_shut_shows_nothing),
		cmocka_unit_test(a_child_of_fork_leaves_the_board_alone),
	};

	return cmocka_run_group_tests(tests, rig_group, NULL);
}
