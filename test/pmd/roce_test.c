/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCE beside the queues of net_verbena: two ports, whose wires are tied together, with a queue
 * pair each, while other frames pass to the program.
 */
#include <errno.h>

#include <rte_bus_vdev.h>
#include <rte_eth_ring.h>

#include "util.h"

#define LEN 100000
#define DEPTH 64

struct end {
	struct rig rig;
	struct vrb_engine *e;
	struct vrb_pd *pd;
	struct vrb_cq *cq;
	struct vrb_qp *qp;
	struct vrb_mr *mr;
	union vrb_gid gid;
	uint8_t *mem;
};

static void
make_objects(struct end *n)
{
	struct vrb_qp_init init = {.type = VRB_QPT_RC,
		.max_send_wr = DEPTH,
		.max_recv_wr = DEPTH,
		.max_send_sge = 1,
		.max_recv_sge = 1};

	rte_pmd_verbena_lock(n->rig.port);
	assert_int_equal(vrb_pd_create(n->e, &n->pd), 0);
	assert_int_equal(vrb_cq_create(n->e, 4 * DEPTH, NULL, &n->cq), 0);
	init.pd = n->pd;
	init.send_cq = init.recv_cq = n->cq;
	assert_int_equal(vrb_qp_create(n->e, &init, &n->qp), 0);
	assert_int_equal(vrb_mr_reg(n->e, n->pd, (uintptr_t)n->mem, 2 * LEN, (uintptr_t)n->mem,
				 VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE_WRITE, &n->mr),
		0);
	rte_pmd_verbena_unlock(n->rig.port);
}

static void
connect_to(struct end *n, const struct end *peer)
{
	struct vrb_qp_attr a = {.state = VRB_QPS_INIT,
		.port_num = 1,
		.access = VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE_WRITE,
		.path_mtu = VRB_MTU_1024,
		.dest_qpn = vrb_qp_num(peer->qp),
		.rq_psn = 7,
		.sq_psn = 7,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 7,
		.rnr_retry = 7};
	uint64_t now = rte_pmd_verbena_now(n->rig.port);

	a.av.dgid = peer->gid;
	a.av.hop_limit = 64;
	assert_int_equal(rte_pmd_verbena_resolve(n->rig.port, &peer->gid, a.av.dmac), 0);
	rte_pmd_verbena_lock(n->rig.port);
	assert_int_equal(
		vrb_qp_modify(n->qp, &a,
			VRB_QP_STATE | VRB_QP_PKEY_INDEX | VRB_QP_PORT | VRB_QP_ACCESS_FLAGS, now),
		0);
	a.state = VRB_QPS_RTR;
	assert_int_equal(
		vrb_qp_modify(n->qp, &a,
			VRB_QP_STATE | VRB_QP_AV | VRB_QP_PATH_MTU | VRB_QP_DEST_QPN |
				VRB_QP_RQ_PSN | VRB_QP_MAX_DEST_RD_ATOMIC | VRB_QP_MIN_RNR_TIMER,
			now),
		0);
	a.state = VRB_QPS_RTS;
	assert_int_equal(vrb_qp_modify(n->qp, &a,
				 VRB_QP_STATE | VRB_QP_TIMEOUT | VRB_QP_RETRY_CNT |
					 VRB_QP_RNR_RETRY | VRB_QP_SQ_PSN | VRB_QP_MAX_QP_RD_ATOMIC,
				 now),
		0);
	rte_pmd_verbena_unlock(n->rig.port);
}

static void
open_end(struct end *n, const char *ip, unsigned int queues)
{
	struct setup s = {0};

	memset(n, 0, sizeof(*n));
	n->mem = calloc(2, LEN);
	rig_make(&n->rig, queues, "");
	assert_null(rte_pmd_verbena_engine(n->rig.port)); /* no address yet */
	assert_int_equal(rte_pmd_verbena_ip_set(n->rig.port, ip), 0);
	assert_int_equal(rte_pmd_verbena_roce_open(n->rig.port, NULL, NULL), 0);
	assert_int_equal(rte_pmd_verbena_roce_open(n->rig.port, NULL, NULL), -EBUSY);
	assert_int_equal(rig_start(&n->rig, &s), 0);
	assert_int_equal(rte_pmd_verbena_roce_close(n->rig.port), -EBUSY);
	n->e = rte_pmd_verbena_engine(n->rig.port);
	assert_non_null(n->e);
	assert_int_equal(rte_pmd_verbena_gid_get(n->rig.port, 0, &n->gid), 0);
	make_objects(n);
}

static void
close_end(struct end *n)
{
	rig_close(&n->rig);
	free(n->mem);
}

static void
carry_one_way(const struct end *from, const struct end *to)
{
	struct rte_mbuf *m;

	for (unsigned int i = 0; i < from->rig.num_queues; i++) {
		while (rte_ring_dequeue(from->rig.from_port[i], (void **)&m) == 0)
			assert_int_equal(rte_ring_enqueue(to->rig.to_port[0], m), 0);
	}
}

/* The wires, and what the program does: it receives. @return frames that it has got */
static unsigned int
carry(struct end *a, struct end *b)
{
	carry_one_way(a, b);
	carry_one_way(b, a);
	return receive_all(&a->rig, 1, NULL) + receive_all(&b->rig, 1, NULL);
}

static void
post_recv(struct end *n, uint64_t id)
{
	struct vrb_rq *rq = vrb_qp_rq(n->qp);
	struct vrb_recv_wqe *w;

	rte_spinlock_lock(&rq->lock);
	w = vrb_rq_slot(rq, 0);
	assert_non_null(w);
	w->wr_id = id;
	w->num_sge = 1;
	w->length = LEN;
	w->sge[0] = (struct vrb_sge){(uintptr_t)n->mem + LEN, LEN, n->mr->lkey};
	vrb_rq_commit(rq, 1);
	rte_spinlock_unlock(&rq->lock);
}

static void
post_send(struct end *n, uint64_t id, uint32_t len)
{
	struct vrb_sq *sq = vrb_qp_sq(n->qp);
	struct vrb_send_wqe *w;

	rte_spinlock_lock(&sq->lock);
	w = vrb_sq_slot(sq, 0);
	assert_non_null(w);
	w->wr_id = id;
	w->opcode = VRB_WR_SEND;
	w->imm = 0;
	w->flags = VRB_SEND_SIGNALED;
	w->num_sge = 1;
	w->length = len;
	*(struct vrb_sge *)w->data = (struct vrb_sge){(uintptr_t)n->mem, len, n->mr->lkey};
	vrb_sq_commit(sq, 1);
	rte_spinlock_unlock(&sq->lock);
	rte_pmd_verbena_kick(n->rig.port, n->qp);
}

static void
expect_completion(struct end *n, enum vrb_wc_opcode opcode, uint64_t id)
{
	struct vrb_cqe *cqe;

	rte_spinlock_lock(&n->cq->lock);
	cqe = vrb_cq_peek(n->cq);
	assert_non_null(cqe);
	assert_int_equal(cqe->status, VRB_WC_SUCCESS);
	assert_int_equal(cqe->opcode, opcode);
	assert_int_equal(cqe->wr_id, id);
	vrb_cq_pop(n->cq);
	rte_spinlock_unlock(&n->cq->lock);
}

static void
messages_pass(unsigned int queues)
{
	struct frame f = {.src = 1, .dst = 2};
	unsigned int others = 0;
	struct end a, b;

	open_end(&a, "198.18.0.1", queues);
	open_end(&b, "198.18.0.2", queues);
	connect_to(&a, &b);
	connect_to(&b, &a);
	for (unsigned int i = 0; i < LEN; i++)
		a.mem[i] = (uint8_t)(i * 7 + i / 256);
	for (uint64_t round = 0; round < 20; round++) {
		post_recv(&b, round);
		post_send(&a, 100 + round, LEN);
		/* Something else on the same wire. */
		wire_put(&b.rig, 0, &f);
		for (int i = 0; i < 1000 && (vrb_cq_empty(a.cq) || vrb_cq_empty(b.cq)); i++)
			others += carry(&a, &b);
		expect_completion(&b, VRB_WC_RECV, round);
		expect_completion(&a, VRB_WC_SEND, 100 + round);
		assert_memory_equal(a.mem, b.mem + LEN, LEN);
		memset(b.mem + LEN, 0, LEN);
	}
	others += carry(&a, &b);
	assert_int_equal(others, 20);
	assert_int_equal(stats_of(b.rig.port).ipackets, 20);
	assert_int_equal(stats_of(a.rig.port).ipackets, 0);
	assert_int_equal(stats_of(a.rig.port).opackets, 0);
	assert_true(xstat(a.rig.port, "roce_tx_packets") >= 20 * (LEN / 1024));
	assert_int_equal(xstat(b.rig.port, "roce_rx_icrc"), 0);
	assert_int_equal(
		xstat(b.rig.port, "roce_rx_packets"), xstat(b.rig.port, "rx_roce_packets"));
	close_end(&a);
	close_end(&b);
}

static void
messages_pass_by_a_tx_queue_that_is_shared(void **state)
{
	(void)state;
	messages_pass(1);
}

static void
messages_pass_by_a_tx_queue_of_their_own(void **state)
{
	(void)state;
	messages_pass(2);
}

static void
engine_survives_a_restart_of_the_port(void **state)
{
	struct end a, b;

	(void)state;
	open_end(&a, "198.18.0.3", 1);
	open_end(&b, "198.18.0.4", 1);
	connect_to(&a, &b);
	connect_to(&b, &a);
	post_recv(&b, 1);
	assert_int_equal(rte_eth_dev_stop(b.rig.port), 0);
	assert_int_equal(rte_eth_dev_start(b.rig.port), 0);
	post_send(&a, 2, 5000);
	for (int i = 0; i < 1000 && (vrb_cq_empty(a.cq) || vrb_cq_empty(b.cq)); i++)
		carry(&a, &b);
	expect_completion(&b, VRB_WC_RECV, 1);
	expect_completion(&a, VRB_WC_SEND, 2);
	close_end(&a);
	close_end(&b);
}

static void
addresses_are_checked_and_resolved(void **state)
{
	const uint8_t told[6] = {2, 9, 9, 9, 9, 9};
	union vrb_gid gid;
	uint8_t mac[6];
	struct rig r;

	(void)state;
	rig_make(&r, 1, "");
	assert_int_equal(rte_pmd_verbena_gid_get(r.port, 0, &gid), -EADDRNOTAVAIL);
	assert_int_equal(rte_pmd_verbena_ip_set(r.port, "nonsense"), -EINVAL);
	assert_int_equal(rte_pmd_verbena_ip_set(r.port, "127.0.0.1"), -EINVAL);
	assert_int_equal(rte_pmd_verbena_ip_set(r.port, "fe80::1"), -EINVAL);
	assert_int_equal(rte_pmd_verbena_ip_set(r.port, "198.18.1.2"), 0);
	assert_int_equal(rte_pmd_verbena_gid_get(r.port, 2, &gid), -EINVAL);
	assert_int_equal(rte_pmd_verbena_gid_get(r.port, 0, &gid), 0);
	assert_memory_equal(&gid.raw[12], "\xc6\x12\x01\x02", 4);
	gid.raw[15] = 9;
	assert_int_equal(rte_pmd_verbena_resolve(r.port, &gid, mac), 0);
	assert_memory_equal(mac, "\x02\x00\xc6\x12\x01\x09", 6);
	assert_int_equal(rte_pmd_verbena_neigh_set(r.port, &gid, told), 0);
	assert_int_equal(rte_pmd_verbena_resolve(r.port, &gid, mac), 0);
	assert_memory_equal(mac, told, 6);
	rig_close(&r);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_pass_by_a_tx_queue_that_is_shared),
		cmocka_unit_test(messages_pass_by_a_tx_queue_of_their_own),
		cmocka_unit_test(engine_survives_a_restart_of_the_port),
		cmocka_unit_test(addresses_are_checked_and_resolved),
	};

	pmd_eal(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
