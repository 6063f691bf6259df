/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the fuzz targets share (see fuzz.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_eal.h>
#include <rte_mbuf.h>

#include "fuzz.h"
#include "guard.h"

#define POOL_SIZE 255
#define ROOM (VRB_HDR_MAX + 4096)
#define PAGE 4096u

static struct rte_mempool *pool;

/* What must not happen, whatever the input. */
#define REQUIRE(x) \
	do { \
		if (!(x)) { \
			fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #x); \
			abort(); \
		} \
	} while (0)

uint8_t
in_u8(struct input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->p++;
}

uint32_t
in_u32(struct input *in)
{
	uint32_t v = in_u8(in);

	v |= (uint32_t)in_u8(in) << 8;
	v |= (uint32_t)in_u8(in) << 16;
	return v | (uint32_t)in_u8(in) << 24;
}

uint32_t
in_below(struct input *in, uint32_t n)
{
	return (n <= 256 ? in_u8(in) : in_u32(in)) % n;
}

uint32_t
in_bytes(struct input *in, uint32_t max, const uint8_t **out)
{
	uint32_t n = (uint32_t)RTE_MIN((size_t)max, in->left);

	*out = in->p;
	in->p += n;
	in->left -= n;
	return n;
}

void
fuzz_init(void)
{
	static char args[] = "fuzz\0--no-huge\0--no-shconf\0--no-pci\0-m\00064\0--no-telemetry\0--"
			     "log-level=3\0-l\0000\0";
	char *argv[16];
	int argc = 0;

	if (pool != NULL)
		return;
	for (char *a = args; *a != '\0'; a += strlen(a) + 1)
		argv[argc++] = a;
	REQUIRE(rte_eal_init(argc, argv) >= 0);
	pool = rte_pktmbuf_pool_create(
		"fuzz", POOL_SIZE, 0, 0, RTE_PKTMBUF_HEADROOM + ROOM, SOCKET_ID_ANY);
	REQUIRE(pool != NULL);
	REQUIRE(vrb_guard_install() == 0);
}

static const struct vrb_engine_ops no_ops;

static void
gid_of(union vrb_gid *gid, unsigned int idx)
{
	memset(gid, 0, sizeof(*gid));
	gid->raw[10] = gid->raw[11] = 0xff;
	memcpy(gid->raw + 12, (uint8_t[]){10, 77, 0, idx + 1}, 4);
}

/* Memory that is mapped for good: the same for every input, between two pages that are not. */
static uint8_t *
memory_of(unsigned int idx)
{
	static uint8_t *mem[2];

	if (mem[idx] == NULL) {
		uint8_t *p = mmap(
			NULL, FUZZ_MEM + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		REQUIRE(p != MAP_FAILED);
		REQUIRE(mprotect(p + PAGE, FUZZ_MEM, PROT_READ | PROT_WRITE) == 0);
		mem[idx] = p + PAGE;
	}
	return mem[idx];
}

/* Registered are the middle of the memory, with all rights, and a part behind it, for reading. */
#define OPEN_OFF 8192u
#define OPEN_LEN 32768u
#define RO_OFF 49152u
#define RO_LEN 8192u

void
side_start(struct side *s, unsigned int idx)
{
	struct vrb_engine_conf c = {.ops = &no_ops,
		.ctx = s,
		.pool = pool,
		.port_mtu = 4096 + 80,
		.icrc = true,
		.mac = {0x52, 0x54, 0, 0x77, 0, idx + 1}};
	uint32_t wr = 8, sge = 2;

	memset(s, 0, sizeof(*s));
	s->idx = idx;
	s->now = 1000;
	s->mem = memory_of(idx);
	pattern_fill(s->mem, FUZZ_MEM, idx + 1, 0);
	gid_of(&c.gid[0], idx);
	memcpy(c.gid[1].raw,
		(uint8_t[]){
			0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0x50, 0x54, 0, 0xff, 0xfe, 0x77, 0, idx + 1},
		16);
	REQUIRE(vrb_engine_create(&c, &s->e) == 0);
	REQUIRE(vrb_pd_create(s->e, &s->pd) == 0);
	REQUIRE(vrb_mr_reg(s->e, s->pd, (uintptr_t)s->mem + OPEN_OFF, OPEN_LEN, 0x10000,
			VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE | VRB_ACCESS_MW_BIND,
			&s->mr) == 0);
	REQUIRE(vrb_mr_reg(s->e, s->pd, (uintptr_t)s->mem + RO_OFF, RO_LEN, 0x20000,
			VRB_ACCESS_REMOTE_READ, &s->read_only) == 0);
	REQUIRE(vrb_mw_alloc(s->e, s->pd, 2, &s->mw) == 0);
	REQUIRE(vrb_cq_create(s->e, 16, NULL, &s->cq) == 0);
	REQUIRE(vrb_srq_create(s->e, s->pd, &wr, &sge, NULL, &s->srq) == 0);
	for (unsigned int i = 0; i < FUZZ_QPS; i++) {
		struct vrb_qp_init init = {.type = VRB_QPT_RC,
			.pd = s->pd,
			.send_cq = s->cq,
			.recv_cq = s->cq,
			.srq = i % 4 == 3 ? s->srq : NULL,
			.max_send_wr = 4,
			.max_recv_wr = i % 4 == 3 ? 0 : 4,
			.max_send_sge = 3,
			.max_recv_sge = i % 4 == 3 ? 0 : 3,
			.max_inline = 64};

		REQUIRE(vrb_qp_create(s->e, &init, &s->qp[i]) == 0);
	}
}

void
side_stop(struct side *s)
{
	for (unsigned int i = 0; i < FUZZ_QPS; i++)
		vrb_qp_destroy(s->qp[i]);
	REQUIRE(vrb_srq_destroy(s->srq) == 0);
	REQUIRE(vrb_mw_free(s->e, s->mw) == 0);
	REQUIRE(vrb_mr_dereg(s->e, s->mr) == 0);
	REQUIRE(vrb_mr_dereg(s->e, s->read_only) == 0);
	REQUIRE(vrb_cq_destroy(s->e, s->cq) == 0);
	REQUIRE(vrb_pd_destroy(s->e, s->pd) == 0);
	vrb_engine_destroy(s->e);
	/* Not a byte outside what is open for writing. */
	REQUIRE(pattern_check(s->mem, OPEN_OFF, s->idx + 1, 0) < 0);
	REQUIRE(pattern_check(s->mem + OPEN_OFF + OPEN_LEN, FUZZ_MEM - OPEN_OFF - OPEN_LEN,
			s->idx + 1, OPEN_OFF + OPEN_LEN) < 0);
	REQUIRE(rte_mempool_avail_count(pool) == POOL_SIZE || s->idx > 0);
}

void
side_connect(struct side *s, unsigned int i, uint32_t dest_qpn, uint32_t rq_psn, uint32_t sq_psn,
	enum vrb_qp_state state)
{
	struct vrb_qp_attr a = {.path_mtu = (enum vrb_mtu)(i % 5 + 1),
		.dest_qpn = dest_qpn,
		.rq_psn = rq_psn,
		.sq_psn = sq_psn,
		.access = VRB_ACCESS_REMOTE,
		.max_rd_atomic = 2,
		.max_dest_rd_atomic = 2,
		.min_rnr_timer = 1,
		.timeout = 8,
		.retry_cnt = 3,
		.rnr_retry = 2,
		.port_num = 1,
		.av.dmac = {0x52, 0x54, 0, 0x77, 0, !s->idx + 1}};
	static const struct {
		enum vrb_qp_state to;
		uint32_t mask;
	} way[] = {
		{VRB_QPS_INIT, VRB_QP_PKEY_INDEX | VRB_QP_PORT | VRB_QP_ACCESS_FLAGS},
		{VRB_QPS_RTR, VRB_QP_AV | VRB_QP_PATH_MTU | VRB_QP_DEST_QPN | VRB_QP_RQ_PSN |
				      VRB_QP_MAX_DEST_RD_ATOMIC | VRB_QP_MIN_RNR_TIMER},
		{VRB_QPS_RTS, VRB_QP_SQ_PSN | VRB_QP_TIMEOUT | VRB_QP_RETRY_CNT | VRB_QP_RNR_RETRY |
				      VRB_QP_MAX_QP_RD_ATOMIC},
		{VRB_QPS_SQD, 0},
	};

	gid_of(&a.av.dgid, !s->idx);
	for (unsigned int k = 0; k < RTE_DIM(way); k++) {
		if (state < way[k].to && state != VRB_QPS_ERR)
			return;
		a.state = way[k].to;
		REQUIRE(vrb_qp_modify(s->qp[i], &a, VRB_QP_STATE | way[k].mask, s->now) == 0);
		if (state == VRB_QPS_ERR && way[k].to == VRB_QPS_RTS) {
			a.state = VRB_QPS_ERR;
			REQUIRE(vrb_qp_modify(s->qp[i], &a, VRB_QP_STATE, s->now) == 0);
			return;
		}
	}
}

static struct vrb_sge
some_sge(struct side *s, struct input *in)
{
	uint8_t kind = in_u8(in);
	const struct vrb_mr *mr = kind & 1 ? s->read_only : s->mr;
	struct vrb_sge g = {.lkey = mr->lkey,
		.length = in_below(in, 6000),
		.addr = mr->iova + in_below(in, 4096)};

	if (kind >= 250)
		g.addr = in_u32(in); /* anywhere */
	if (kind >= 253)
		g.lkey ^= 0x100;
	return g;
}

static void
post_recv(struct side *s, struct input *in, unsigned int q)
{
	struct vrb_rq *rq = vrb_qp_rq(s->qp[q]);
	struct vrb_recv_wqe *w;

	if (rq == NULL)
		rq = &s->srq->rq;
	w = vrb_rq_slot(rq, 0);
	if (w == NULL)
		return;
	w->wr_id = s->posted++;
	w->num_sge = in_below(in, rq->max_sge + 1);
	w->length = 0;
	for (uint32_t i = 0; i < w->num_sge; i++) {
		w->sge[i] = some_sge(s, in);
		w->length += w->sge[i].length;
	}
	vrb_rq_commit(rq, 1);
}

static void
post_send(struct side *s, struct input *in, unsigned int q)
{
	struct vrb_send_wqe *w = vrb_sq_slot(vrb_qp_sq(s->qp[q]), 0);

	if (w == NULL)
		return;
	memset(w, 0, sizeof(*w));
	w->wr_id = s->posted++;
	w->opcode = (uint8_t)in_below(in, VRB_WR_OPCODES + 1);
	w->flags = in_u8(in) & 0xf;
	w->rkey = in_u8(in) < 240 ? s->mr->rkey : in_u32(in);
	w->remote_addr = in_u8(in) < 240 ? 0x10000 + (in_u32(in) & 0x3ff8) : in_u32(in);
	w->imm = in_u8(in) < 128 ? s->mw->rkey : in_u32(in);
	w->atomic.compare_add = in_u8(in);
	w->atomic.swap = in_u8(in);
	if (w->opcode == VRB_WR_BIND_MW) {
		w->bind.mw = s->mw;
		w->bind.mr = s->mr;
		w->bind.addr = s->mr->iova + in_u8(in);
		w->bind.length = in_u32(in) & 0xffff;
		w->bind.access = in_u8(in) & 0x2f;
		w->bind.rkey = in_u8(in);
	} else if (w->flags & VRB_SEND_INLINE) {
		w->length = in_below(in, 65);
		memset(w->data, 0x5a, w->length);
	} else {
		w->num_sge = (uint8_t)in_below(in, 4);
		for (unsigned int i = 0; i < w->num_sge; i++) {
			((struct vrb_sge *)w->data)[i] = some_sge(s, in);
			w->length += ((struct vrb_sge *)w->data)[i].length;
		}
	}
	if (vrb_qp_check_send(s->qp[q], w) < 0)
		return;
	vrb_sq_commit(vrb_qp_sq(s->qp[q]), 1);
	vrb_engine_ring(s->qp[q]);
}

void
side_post(struct side *s, struct input *in)
{
	unsigned int q = in_below(in, FUZZ_QPS);

	if (in_u8(in) & 1)
		post_recv(s, in, q);
	else
		post_send(s, in, q);
}

void
side_poll(struct side *s)
{
	struct vrb_cqe *c;

	while ((c = vrb_cq_peek(s->cq)) != NULL) {
		/* Nothing completes that was not posted, nor more often. */
		REQUIRE(c->wr_id < s->posted);
		REQUIRE(++s->polled <= s->posted);
		vrb_cq_pop(s->cq);
	}
}

void
side_receive(struct side *s, const uint8_t *p, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(pool);
	unsigned int left;

	if (m == NULL || len == 0 || len > rte_pktmbuf_tailroom(m)) {
		rte_pktmbuf_free(m);
		return;
	}
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), p, len);
	left = vrb_engine_rx(s->e, &m, 1, s->now);
	REQUIRE(left <= 1);
	if (left > 0)
		rte_pktmbuf_free(m);
}

void
side_send(struct side *s, void (*to)(void *ctx, const uint8_t *p, uint32_t len), void *ctx)
{
	struct rte_mbuf *pkts[16];
	uint8_t buf[4400];
	unsigned int n, rounds = 0;

	do {
		n = vrb_engine_tx(s->e, pkts, RTE_DIM(pkts), s->now);
		for (unsigned int i = 0; i < n; i++) {
			const uint8_t *p = rte_pktmbuf_read(pkts[i], 0, pkts[i]->pkt_len, buf);
			struct frame f;

			/* Whatever comes in, what goes out is right. */
			REQUIRE(pkts[i]->pkt_len <= sizeof(buf));
			REQUIRE(frame_parse(&f, p, pkts[i]->pkt_len) == 0 && f.icrc_ok);
			if (to != NULL)
				to(ctx, p, pkts[i]->pkt_len);
			rte_pktmbuf_free(pkts[i]);
		}
	} while (n == RTE_DIM(pkts) && ++rounds < 1000);
	REQUIRE(rounds < 1000);
}
