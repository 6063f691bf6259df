/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine for unit tests (see roce_rig.h).
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_mbuf.h>

#include "guard.h"
#include "roce_rig.h"

#define POOL_SIZE 511
#define ROOM (VRB_HDR_MAX + 4096)

static struct rte_mempool *pool;

int
rig_group(void **state)
{
	static char args[] = "roce\0--no-huge\0--no-shconf\0--no-pci\0-m\00064\0--no-telemetry\0--"
			     "log-level=3\0-l\0000\0";
	char *argv[16];
	int argc = 0;

	(void)state;
	for (char *a = args; *a != '\0'; a += strlen(a) + 1)
		argv[argc++] = a;
	if (rte_eal_init(argc, argv) < 0)
		return -1;
	pool = rte_pktmbuf_pool_create(
		"rig", POOL_SIZE, 0, 0, RTE_PKTMBUF_HEADROOM + ROOM, SOCKET_ID_ANY);
	return pool == NULL ? -1 : 0;
}

static void
on_cq(void *ctx, struct vrb_cq *cq)
{
	(void)cq;
	((struct rig *)ctx)->notified++;
}

static void
on_async(void *ctx, enum vrb_event_type type, void *obj)
{
	struct rig *r = ctx;

	assert_true(r->n_events < RIG_EVENTS);
	r->event_obj[r->n_events] = obj;
	r->events[r->n_events++] = type;
}

static void
on_explain(void *ctx, const char *sentence)
{
	snprintf(((struct rig *)ctx)->why, sizeof(((struct rig *)ctx)->why), "%s", sentence);
}

static void
gid_v4(union vrb_gid *gid, const uint8_t *ip)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, ip, 4);
}

static void
choose_addresses(struct rig *r, char side)
{
	static const uint8_t macs[2][2][6] = {
		{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}},
		{{0x52, 0x54, 0, 0x77, 0, 1}, {0x52, 0x54, 0, 0x77, 0, 2}},
	};
	static const uint8_t ips[2][2][4] = {
		{{198, 18, 0, 1}, {198, 18, 0, 2}}, {{10, 77, 0, 1}, {10, 77, 0, 2}}};
	static const uint8_t ip6s[2][2][16] = {
		{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 1},
			{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 2}},
		{{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x50, 0x54, 0, 0xff, 0xfe, 0x77, 0, 1},
			{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x50, 0x54, 0, 0xff, 0xfe, 0x77, 0, 2}},
	};
	unsigned int set = side != 0, me = side == 'B';

	memcpy(r->mac, macs[set][me], 6);
	memcpy(r->peer_mac, macs[set][!me], 6);
	memcpy(r->ip, ips[set][me], 4);
	memcpy(r->peer_ip, ips[set][!me], 4);
	memcpy(r->ip6, ip6s[set][me], 16);
	memcpy(r->peer_ip6, ip6s[set][!me], 16);
}

struct rig *
rig_bare(const struct rig_conf *conf)
{
	static const struct vrb_engine_ops ops = {
		.cq_notify = on_cq, .async = on_async, .explain = on_explain};
	struct vrb_engine_conf ec = {
		.ops = &ops, .pool = pool, .icrc = !conf->no_icrc, .zero_copy = conf->zero_copy};
	struct rig *r = calloc(1, sizeof(*r));
	const uint32_t all = VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE | VRB_ACCESS_MW_BIND;
	uint32_t cq_size = conf->cq_size ? conf->cq_size : 64;

	assert_non_null(r);
	/* cmocka has put its handlers in front for this test. */
	assert_int_equal(vrb_guard_install(), 0);
	choose_addresses(r, conf->side);
	r->frames = calloc(RIG_FRAMES, sizeof(*r->frames));
	r->mem = aligned_alloc(64, RIG_MEM);
	assert_true(r->frames != NULL && r->mem != NULL);
	pattern_fill(r->mem, RIG_MEM, 1, 0);
	r->now = 1000000;
	ec.ctx = r;
	ec.port_mtu = conf->port_mtu ? conf->port_mtu : 4096 + 80;
	ec.direct = conf->direct;
	ec.direct_ctx = r;
	ec.direct_mode = conf->direct_mode;
	ec.board = conf->board;
	memcpy(ec.mac, r->mac, 6);
	gid_v4(&ec.gid[0], r->ip);
	memcpy(ec.gid[1].raw, r->ip6, 16);
	assert_int_equal(vrb_engine_create(&ec, &r->e), 0);
	assert_int_equal(vrb_pd_create(r->e, &r->pd), 0);
	assert_int_equal(
		vrb_mr_reg(r->e, r->pd, (uintptr_t)r->mem, RIG_MEM, (uintptr_t)r->mem, all, &r->mr),
		0);
	assert_int_equal(vrb_cq_create(r->e, cq_size, r, &r->scq), 0);
	assert_int_equal(vrb_cq_create(r->e, cq_size, r, &r->rcq), 0);
	return r;
}

static void
choose_attr(struct rig *r, const struct rig_conf *c)
{
	struct vrb_qp_attr *a = &r->attr;

	a->path_mtu = c->mtu ? c->mtu : VRB_MTU_1024;
	a->dest_qpn = RIG_PEER_QPN;
	a->qkey = RIG_QKEY;
	a->rq_psn = c->rq_psn ? c->rq_psn : RIG_RQ_PSN;
	a->sq_psn = c->sq_psn ? c->sq_psn : RIG_SQ_PSN;
	a->access = c->access == UINT32_MAX ? 0 : c->access ? c->access : VRB_ACCESS_REMOTE;
	a->max_rd_atomic = c->max_rd_atomic == 255 ? 0 : c->max_rd_atomic ? c->max_rd_atomic : 4;
	a->max_dest_rd_atomic = a->max_rd_atomic;
	a->min_rnr_timer = 12;
	a->timeout = c->timeout;
	a->retry_cnt = c->retry_cnt == 255 ? 0 : c->retry_cnt ? c->retry_cnt : 7;
	a->rnr_retry = c->rnr_retry == 255 ? 0 : c->rnr_retry ? c->rnr_retry : 7;
	a->port_num = 1;
	memcpy(a->av.dmac, r->peer_mac, 6);
	a->av.sgid_index = c->v6;
	if (c->v6)
		memcpy(a->av.dgid.raw, r->peer_ip6, 16);
	else
		gid_v4(&a->av.dgid, r->peer_ip);
}

struct rig *
rig_new(const struct rig_conf *conf)
{
	struct rig *r = rig_bare(conf);
	uint32_t depth = conf->depth ? conf->depth : 16,
		 max_sge = conf->max_sge ? conf->max_sge : 4;

	choose_attr(r, conf);
	r->init = (struct vrb_qp_init){.type = conf->type ? conf->type : VRB_QPT_RC,
		.pd = r->pd,
		.send_cq = r->scq,
		.recv_cq = r->rcq,
		.max_send_wr = depth,
		.max_recv_wr = depth,
		.max_send_sge = max_sge,
		.max_recv_sge = max_sge,
		.max_inline = 256,
		.user = r};
	if (conf->type == VRB_QPT_XRC_RECV) {
		assert_int_equal(vrb_srq_create_xrc(r->e, r->pd, &r->xrcd, r->rcq, &depth, &max_sge,
					 r, &r->srq),
			0);
		r->init = (struct vrb_qp_init){.type = conf->type, .xrcd = &r->xrcd, .user = r};
	} else if (conf->type == VRB_QPT_XRC_SEND) {
		r->init.recv_cq = NULL;
	} else if (conf->srq) {
		assert_int_equal(vrb_srq_create(r->e, r->pd, &depth, &max_sge, r, &r->srq), 0);
		r->init.srq = r->srq;
	}
	r->qp = rig_qp(r, VRB_QPS_RTS);
	return r;
}

int
rig_connect(struct rig *r, struct vrb_qp *qp)
{
	const uint32_t connect = VRB_QP_AV | VRB_QP_PATH_MTU | VRB_QP_DEST_QPN | VRB_QP_RQ_PSN;
	const uint32_t respond = VRB_QP_MAX_DEST_RD_ATOMIC | VRB_QP_MIN_RNR_TIMER;
	const uint32_t request =
		VRB_QP_TIMEOUT | VRB_QP_RETRY_CNT | VRB_QP_RNR_RETRY | VRB_QP_MAX_QP_RD_ATOMIC;
	enum vrb_qp_type type = r->init.type;
	bool responds = type == VRB_QPT_RC || type == VRB_QPT_XRC_RECV;
	bool requests = type == VRB_QPT_RC || type == VRB_QPT_XRC_SEND;
	struct vrb_qp_attr a = r->attr;
	int rc;

	a.state = VRB_QPS_INIT;
	rc = vrb_qp_modify(qp, &a,
		VRB_QP_STATE | VRB_QP_PKEY_INDEX | VRB_QP_PORT |
			(type == VRB_QPT_UD ? VRB_QP_QKEY : VRB_QP_ACCESS_FLAGS),
		r->now);
	a.state = VRB_QPS_RTR;
	if (rc == 0)
		rc = vrb_qp_modify(qp, &a,
			VRB_QP_STATE | (type == VRB_QPT_UD ? 0 : connect) |
				(responds ? respond : 0),
			r->now);
	a.state = VRB_QPS_RTS;
	if (rc == 0)
		rc = vrb_qp_modify(qp, &a,
			VRB_QP_STATE | VRB_QP_SQ_PSN | (requests ? request : 0) |
				(type == VRB_QPT_XRC_RECV ? VRB_QP_TIMEOUT : 0),
			r->now);
	return rc;
}

struct vrb_qp *
rig_qp(struct rig *r, enum vrb_qp_state state)
{
	struct vrb_qp_init init = r->init;
	struct vrb_qp *qp;

	assert_int_equal(vrb_qp_create(r->e, &init, &qp), 0);
	if (state == VRB_QPS_RTS)
		assert_int_equal(rig_connect(r, qp), 0);
	return qp;
}

void
rig_free(struct rig *r)
{
	vrb_engine_destroy(r->e);
	free(r->frames);
	free(r->mem);
	free(r);
	assert_int_equal(rte_mempool_avail_count(pool), POOL_SIZE);
}

struct frame
rig_packet(const struct rig *r, uint8_t opcode, uint32_t psn)
{
	struct frame f = {.ttl = 64,
		.df = true,
		.sport = 0xc001,
		.dport = 4791,
		.opcode = opcode,
		.pkey = 0xffff,
		.psn = psn,
		.va = (uintptr_t)r->mem,
		.rkey = r->mr != NULL ? r->mr->rkey : 0};

	f.qpn = vrb_qp_num(r->qp);
	memcpy(f.dmac, r->mac, 6);
	memcpy(f.smac, r->peer_mac, 6);
	f.v6 = r->attr.av.sgid_index == 1;
	if (f.v6) {
		memcpy(f.daddr, r->ip6, 16);
		memcpy(f.saddr, r->peer_ip6, 16);
	} else {
		memcpy(f.daddr, r->ip, 4);
		memcpy(f.saddr, r->peer_ip, 4);
	}
	f.qkey = RIG_QKEY;
	f.src_qpn = RIG_PEER_QPN;
	f.srqn = r->srq != NULL ? r->srq->num : 0;
	f.ackreq = opcode < OP_RESP_FIRST || opcode > OP_ATOMIC_ACK;
	return f;
}

bool
rig_receive_raw(struct rig *r, const uint8_t *p, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	unsigned int left;

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), p, len);
	left = vrb_engine_rx(r->e, &m, 1, r->now);
	if (left > 0)
		rte_pktmbuf_free(m);
	return left > 0;
}

void
rig_receive(struct rig *r, const struct frame *f)
{
	uint8_t buf[RIG_FRAME_MAX];

	assert_false(rig_receive_raw(r, buf, (uint32_t)frame_build(f, buf, sizeof(buf))));
}

static void
keep_frame(struct rig *r, struct rte_mbuf *pkt)
{
	struct rig_frame *to = &r->frames[r->n_frames++ % RIG_FRAMES];
	uint32_t at = 0;

	for (struct rte_mbuf *m = pkt; m != NULL; m = m->next) {
		memcpy(to->data + at, rte_pktmbuf_mtod(m, void *), m->data_len);
		at += m->data_len;
	}
	to->len = at;
	assert_int_equal(at, pkt->pkt_len);
	assert_int_equal(frame_parse(&to->f, to->data, at), 0);
	rte_pktmbuf_free(pkt);
}

unsigned int
rig_send_some(struct rig *r, unsigned int max)
{
	struct rte_mbuf *pkts[32];
	unsigned int n, want;

	do {
		/* Also those of the engine to itself. */
		(void)vrb_engine_rx(r->e, NULL, 0, r->now);
		want = RTE_MIN(max, (unsigned int)RTE_DIM(pkts));
		n = vrb_engine_tx(r->e, pkts, want, r->now);
		for (unsigned int i = 0; i < n; i++)
			keep_frame(r, pkts[i]);
		max -= n;
	} while (max > 0 && n == want);
	assert_true(r->n_frames - r->next_frame <= RIG_FRAMES);
	return r->n_frames - r->next_frame;
}

unsigned int
rig_send(struct rig *r)
{
	return rig_send_some(r, UINT_MAX);
}

const struct frame *
rig_take(struct rig *r)
{
	if (r->next_frame == r->n_frames)
		rig_send(r);
	assert_true(r->next_frame < r->n_frames);
	return &r->frames[r->next_frame++ % RIG_FRAMES].f;
}

void
rig_expect_silence(struct rig *r)
{
	assert_int_equal(rig_send(r), 0);
}

const struct frame *
rig_expect(struct rig *r, uint8_t opcode, uint32_t psn)
{
	const struct frame *f = rig_take(r);

	assert_int_equal(f->opcode, opcode);
	assert_int_equal(f->psn, psn);
	assert_int_equal(f->qpn, RIG_PEER_QPN);
	return f;
}

const struct frame *
rig_expect_ack(struct rig *r, uint8_t syndrome, uint32_t psn)
{
	const struct frame *f = rig_expect(r, OP_ACK, psn);

	if (syndrome == 0)
		assert_int_equal(f->syndrome & 0xe0, 0);
	else
		assert_int_equal(f->syndrome, syndrome);
	return f;
}

void
rig_ack(struct rig *r, uint8_t syndrome, uint32_t psn)
{
	struct frame f = rig_packet(r, OP_ACK, psn);

	f.syndrome = syndrome;
	rig_receive(r, &f);
}

struct vrb_send_wqe *
rig_wqe(struct rig *r, uint8_t opcode, uint32_t off, uint32_t len, uint8_t flags)
{
	struct vrb_sq *sq = vrb_qp_sq(r->qp);
	struct vrb_send_wqe *w = vrb_sq_slot(sq, 0);

	if (w == NULL)
		abort();
	memset(w, 0, sizeof(*w));
	w->wr_id = off;
	w->opcode = opcode;
	w->flags = flags | VRB_SEND_SIGNALED;
	w->length = len;
	w->remote_addr = 0x123456789000ull;
	w->rkey = 0x4567;
	if (flags & VRB_SEND_INLINE) {
		memcpy(w->data, r->mem + off, len);
	} else if (len > 0) {
		w->num_sge = 1;
		*(struct vrb_sge *)w->data =
			(struct vrb_sge){(uintptr_t)r->mem + off, len, r->mr->lkey};
	}
	return w;
}

int
rig_commit(struct rig *r, struct vrb_send_wqe *w)
{
	int rc = vrb_qp_check_send(r->qp, w);

	if (rc < 0)
		return rc;
	vrb_sq_commit(vrb_qp_sq(r->qp), 1);
	vrb_engine_ring(r->qp);
	return 0;
}

void
rig_post(struct rig *r, uint8_t opcode, uint32_t off, uint32_t len, uint8_t flags)
{
	assert_int_equal(rig_commit(r, rig_wqe(r, opcode, off, len, flags)), 0);
}

void
rig_post_recv(struct rig *r, uint32_t off, uint32_t len)
{
	struct vrb_rq *rq = r->srq != NULL ? &r->srq->rq : vrb_qp_rq(r->qp);
	struct vrb_recv_wqe *w = vrb_rq_slot(rq, 0);

	assert_non_null(w);
	w->wr_id = off;
	w->num_sge = len > 0;
	w->length = len;
	if (len > 0)
		w->sge[0] = (struct vrb_sge){(uintptr_t)r->mem + off, len, r->mr->lkey};
	vrb_rq_commit(rq, 1);
}

const struct vrb_cqe *
rig_poll(struct rig *r, struct vrb_cq *cq, enum vrb_wc_status status)
{
	static struct vrb_cqe copy;
	struct vrb_cqe *c = vrb_cq_peek(cq);

	(void)r;
	assert_non_null(c);
	copy = *c;
	vrb_cq_pop(cq);
	assert_int_equal(copy.status, status);
	return &copy;
}

void
rig_expect_empty(struct rig *r, struct vrb_cq *cq)
{
	(void)r;
	assert_null(vrb_cq_peek(cq));
}

unsigned int
rig_flushed(struct rig *r, struct vrb_cq *cq)
{
	unsigned int n = 0;

	for (; vrb_cq_peek(cq) != NULL; n++)
		rig_poll(r, cq, VRB_WC_WR_FLUSH_ERR);
	return n;
}

bool
rig_event(const struct rig *r, enum vrb_event_type type)
{
	for (unsigned int i = 0; i < r->n_events; i++)
		if (r->events[i] == type)
			return true;
	return false;
}

void
rig_wait(struct rig *r)
{
	uint64_t t;

	/* What is to be done now comes first. */
	rig_send(r);
	t = vrb_engine_deadline(r->e);
	assert_true(t != UINT64_MAX);
	if (t > r->now)
		r->now = t;
}
