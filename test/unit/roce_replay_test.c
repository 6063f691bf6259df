/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Another implementation's half of a connection against ours: rxe's requests from the captures
 * against our responder, whose answers have to be rxe's, and rxe's answers against our requester,
 * whose requests have to be rxe's.
 *
 * Not compared: the IP identification (with its checksum and the ICRC, which cover it), the credits
 * in an ACK (rxe gives none), and AckReq in a batch (rxe asks with each message, we at the end).
 */
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "roce_capture.h"
#include "roce_rig.h"

/* Where scn's buffer lay in both guests. */
#define BUF 0x7fc9e1ec8000ull
#define A_OFF 8192u
#define B_RECV (RIG_MEM / 2)

struct scenario {
	const char *name;
	const char *ops; /* what A posted, as scn's arguments */
	bool batch, v6, srq, window;
	enum vrb_mtu mtu;
	uint32_t psn_a, psn_b;
	uint32_t flow; /* label of A's and B's address vectors */
	uint8_t tclass;
	uint8_t depth; /* of READs, 0: 16 */
	uint32_t access; /* of B's queue pair, 0: all */
	uint32_t mr_access; /* of B's memory, 0: all */
	bool no_depth; /* B answers no READs at all */
	uint32_t recv_len; /* 0: 32768 */
	bool bad_key, bad_recv, no_recv;
	uint8_t nak; /* our syndrome, where it is not rxe's */
	uint8_t rnr_retry, rnr_timer;
};

static const struct scenario scenarios[] = {
	{.name = "rc-send",
		.ops = "send:0 send:1 send:64 send:1023 send:1024 send:64,se send:64,inline"},
	{.name = "rc-send-imm", .ops = "sendimm:0 sendimm:33 sendimm:1024,se"},
	{.name = "rc-write", .ops = "write:0 write:1 write:64 write:1024"},
	{.name = "rc-write-imm", .ops = "writeimm:0 writeimm:10 writeimm:1024,se"},
	{.name = "rc-read", .ops = "read:0 read:1 read:1024"},
	{.name = "rc-atomic", .ops = "cas casfail fadd fadd"},
	{.name = "rc-psn-wrap",
		.ops = "send:2000 write:5000 read:5000 fadd",
		.psn_a = 0xfffffd,
		.psn_b = 0xfffffe},
	{.name = "rc-ipv6", .ops = "send:64 write:3000 read:3000 fadd", .v6 = true},
	{.name = "rc-tos-ecn",
		.ops = "send:64 write:3000 read:3000",
		.tclass = 0x6a,
		.flow = 0x12345},
	{.name = "rc-srq", .ops = "send:64 send:3000 sendimm:64 writeimm:64", .srq = true},
	{.name = "rc-local-mw", .ops = "skip skip send:16"},
	{.name = "rc-mw-sendinv", .ops = "write:64 read:64 sendinv:16 write:64", .window = true},
	{.name = "rc-write-then-send", .ops = "write:256 send:16 write:256 send:16", .batch = true},
	{.name = "rc-nak-inv-qp-atomic",
		.ops = "fadd",
		.access = VRB_ACCESS_REMOTE_WRITE | VRB_ACCESS_REMOTE_READ},
	{.name = "rc-nak-inv-qp-read", .ops = "read:64", .access = VRB_ACCESS_REMOTE_WRITE},
	{.name = "rc-nak-inv-qp-write", .ops = "write:64", .access = VRB_ACCESS_REMOTE_READ},
	{.name = "rc-nak-inv-rd-zero", .ops = "read:64", .no_depth = true},
	{.name = "rc-nak-operational", .ops = "send:64", .bad_recv = true},
	{.name = "rc-nak-perm-atomic", .ops = "fadd", .mr_access = 7},
	{.name = "rc-nak-perm-read", .ops = "read:64", .mr_access = 3},
	{.name = "rc-nak-perm-write", .ops = "write:64", .mr_access = 5},
	{.name = "rc-nak-rkey-atomic", .ops = "fadd", .bad_key = true},
	{.name = "rc-nak-rkey-read", .ops = "read:64", .bad_key = true},
	{.name = "rc-nak-inv-long", .ops = "send:200", .recv_len = 100, .nak = 0x61},
	{.name = "rc-nak-inv-long-multi",
		.ops = "send:5000",
		.recv_len = 1500,
		.nak = 0x61,
		.batch = true},
	{.name = "rc-rnr-exceeded",
		.ops = "send:64",
		.no_recv = true,
		.rnr_retry = 2,
		.rnr_timer = 14},
};

static void
fill(uint8_t *p, uint8_t add)
{
	const uint64_t first = 0x0123456789abcdefull;

	for (uint32_t i = 0; i < RIG_MEM; i++)
		p[i] = (uint8_t)(i * 7 + (i >> 8) + add);
	if (add != 0)
		memcpy(p, &first, 8);
}

/* Our end of the captured connection. */
static struct rig *
end(const struct scenario *s, const struct capture *c, char side)
{
	struct rig *r = rig_bare(&(struct rig_conf){.side = side, .v6 = s->v6, .cq_size = 256});
	const struct frame *to_us = capture_first(c, side == 'A' ? 'B' : 'A'),
			   *from_us = capture_first(c, side);
	uint32_t psn_a = s->psn_a ? s->psn_a : 0x1000, psn_b = s->psn_b ? s->psn_b : 0x2000;
	uint32_t wr = 64, sge = 1;

	fill(r->mem, side == 'A' ? 0 : 0x80);
	r->e->next_qpn = to_us->qpn;
	r->init = (struct vrb_qp_init){.type = VRB_QPT_RC,
		.pd = r->pd,
		.send_cq = r->scq,
		.recv_cq = r->rcq,
		.max_send_wr = 128,
		.max_recv_wr = 64,
		.max_send_sge = 1,
		.max_recv_sge = 1,
		.max_inline = 128,
		.user = r};
	if (s->srq && side == 'B')
		assert_int_equal(vrb_srq_create(r->e, r->pd, &wr, &sge, r, &r->srq), 0);
	r->init.srq = r->srq;
	r->attr = (struct vrb_qp_attr){.path_mtu = s->mtu ? s->mtu : VRB_MTU_1024,
		.dest_qpn = from_us->qpn,
		.port_num = 1,
		.rq_psn = side == 'A' ? psn_b : psn_a,
		.sq_psn = side == 'A' ? psn_a : psn_b,
		.access = s->access ? s->access : VRB_ACCESS_REMOTE,
		.max_rd_atomic = s->depth ? s->depth : 16,
		.max_dest_rd_atomic = s->no_depth ? 0 : 16,
		.min_rnr_timer = s->rnr_timer ? s->rnr_timer : 12,
		.timeout = 20,
		.retry_cnt = 7,
		.rnr_retry = s->rnr_retry ? s->rnr_retry : 7,
		.av = {.sgid_index = s->v6,
			.tclass = s->tclass,
			.flow_label = s->flow,
			.hop_limit = 64}};
	memcpy(r->attr.av.dmac, r->peer_mac, 6);
	if (s->v6) {
		memcpy(r->attr.av.dgid.raw, r->peer_ip6, 16);
	} else {
		memset(r->attr.av.dgid.raw + 10, 0xff, 2);
		memcpy(r->attr.av.dgid.raw + 12, r->peer_ip, 4);
	}
	r->qp = rig_qp(r, VRB_QPS_RTS);
	return r;
}

/* Field by field: what a reader of the wire sees. */
static void
same(const struct frame *ours, const struct frame *theirs, uint8_t nak, bool ackreq)
{
	size_t n = theirs->v6 ? 16 : 4;

	assert_int_equal(ours->opcode, theirs->opcode);
	assert_int_equal(ours->psn, theirs->psn);
	assert_int_equal(ours->qpn, theirs->qpn);
	assert_int_equal(ours->se, theirs->se);
	assert_int_equal(ours->migreq, theirs->migreq);
	assert_int_equal(ours->pad, theirs->pad);
	assert_int_equal(ours->pkey, theirs->pkey);
	if (ackreq)
		assert_int_equal(ours->ackreq, theirs->ackreq);
	assert_int_equal(ours->fecn_becn, theirs->fecn_becn);
	assert_int_equal(ours->va, theirs->va);
	assert_int_equal(ours->rkey, theirs->rkey);
	assert_int_equal(ours->dmalen, theirs->dmalen);
	assert_int_equal(ours->swap_add, theirs->swap_add);
	assert_int_equal(ours->compare, theirs->compare);
	assert_int_equal(ours->orig, theirs->orig);
	assert_int_equal(ours->imm, theirs->imm);
	assert_int_equal(ours->inv, theirs->inv);
	assert_int_equal(ours->msn, theirs->msn);
	if ((theirs->syndrome & 0xe0) == 0)
		assert_int_equal(ours->syndrome & 0xe0, 0);
	else
		assert_int_equal(ours->syndrome, nak ? nak : theirs->syndrome);
	assert_int_equal(ours->len, theirs->len);
	assert_memory_equal(ours->payload, theirs->payload, theirs->len + theirs->pad);
	assert_memory_equal(ours->dmac, theirs->dmac, 6);
	assert_memory_equal(ours->smac, theirs->smac, 6);
	assert_memory_equal(ours->saddr, theirs->saddr, n);
	assert_memory_equal(ours->daddr, theirs->daddr, n);
	assert_int_equal(ours->tos, theirs->tos);
	assert_int_equal(ours->ttl, theirs->ttl);
	assert_int_equal(ours->df, theirs->df);
	assert_int_equal(ours->sport, theirs->sport);
	assert_int_equal(ours->udp_csum, theirs->udp_csum);
	assert_true(ours->icrc_ok);
}

/* ---- our responder ---- */

static uint32_t
open_window(struct rig *r, const struct vrb_mr *mr)
{
	struct vrb_send_wqe *w = rig_wqe(r, VRB_WR_BIND_MW, 0, 0, 0);
	struct vrb_mr *mw;

	assert_int_equal(vrb_mw_alloc(r->e, r->pd, 2, &mw), 0);
	w->bind.mw = mw;
	w->bind.mr = (struct vrb_mr *)(uintptr_t)mr;
	w->bind.addr = mr->iova;
	w->bind.length = 65536;
	w->bind.access = VRB_ACCESS_REMOTE_WRITE | VRB_ACCESS_REMOTE_READ;
	w->bind.rkey = mw->rkey + 1;
	assert_int_equal(rig_commit(r, w), 0);
	rig_expect_silence(r);
	rig_poll(r, r->scq, VRB_WC_SUCCESS);
	return mw->rkey;
}

static void
respond(const struct scenario *s)
{
	struct capture *c = capture_read(s->name);
	struct rig *r = end(s, c, 'B');
	const uint32_t all = VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE | VRB_ACCESS_MW_BIND;
	struct vrb_mr *mr;
	uint32_t key;
	unsigned int answers = 0;

	assert_int_equal(vrb_mr_reg(r->e, r->pd, (uintptr_t)r->mem, RIG_MEM, BUF,
				 s->mr_access ? s->mr_access : all, &mr),
		0);
	key = s->window ? open_window(r, mr) : mr->rkey;
	for (unsigned int i = 0; i < 16 && !s->no_recv; i++) {
		rig_post_recv(r, B_RECV + i % 8 * 32768, s->recv_len ? s->recv_len : 32768);
		if (s->bad_recv)
			vrb_rq_at(vrb_qp_rq(r->qp), i)->sge[0].lkey ^= 0x5500;
	}
	for (unsigned int i = 0; i < c->n; i++) {
		if (c->p[i].side == 'B') {
			same(rig_take(r), &c->p[i].f, s->nak, true);
			answers++;
			continue;
		}
		/* Keys are each implementation's own. */
		if (!s->bad_key) {
			struct frame f = c->p[i].f;
			uint8_t buf[RIG_FRAME_MAX];
			uint32_t n;

			f.rkey = f.rkey ? key : 0;
			f.inv = f.inv ? key : 0;
			n = (uint32_t)frame_build(&f, buf, sizeof(buf));
			assert_int_equal(n, c->p[i].len);
			rig_receive_raw(r, buf, n);
		} else {
			rig_receive_raw(r, c->p[i].data, c->p[i].len);
		}
	}
	assert_true(answers > 0);
	rig_expect_silence(r);
	rig_free(r);
	capture_free(c);
}

static void
our_responder_answers_as_rxe(void **state)
{
	for (unsigned int i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		print_message("  %s\n", scenarios[i].name);
		respond(&scenarios[i]);
	}
}

/* ---- our requester ---- */

struct player {
	const struct scenario *s;
	struct capture *c;
	struct rig *r;
	unsigned int at; /* next packet of the capture */
	unsigned int n_ops;
};

/* The n-th packet of A that begins a request with an address. */
static const struct frame *
nth_address(const struct capture *c, unsigned int n)
{
	for (unsigned int i = 0; i < c->n; i++)
		if (c->p[i].side == 'A' && c->p[i].f.va != 0 && n-- == 0)
			return &c->p[i].f;
	return NULL;
}

static void
post(struct player *p, char *text, unsigned int index, unsigned int *addresses)
{
	static const struct {
		const char *name;
		uint8_t opcode;
	} names[] = {
		{"sendimm", VRB_WR_SEND_WITH_IMM},
		{"sendinv", VRB_WR_SEND_WITH_INV},
		{"send", VRB_WR_SEND},
		{"writeimm", VRB_WR_RDMA_WRITE_WITH_IMM},
		{"write", VRB_WR_RDMA_WRITE},
		{"read", VRB_WR_RDMA_READ},
		{"cas", VRB_WR_ATOMIC_CMP_AND_SWP},
		{"fadd", VRB_WR_ATOMIC_FETCH_AND_ADD},
	};
	const char *size = strchr(text, ':');
	uint32_t len = size != NULL ? (uint32_t)strtoul(size + 1, NULL, 10) : 64;
	uint8_t flags = (strstr(text, ",se") ? VRB_SEND_SOLICITED : 0) |
			(strstr(text, ",inline") ? VRB_SEND_INLINE : 0);
	struct vrb_send_wqe *w;
	unsigned int i = 0;
	uint32_t imm = htobe32(0xa5000000u + index);

	while (strncmp(text, names[i].name, strlen(names[i].name)) != 0)
		i++;
	if (names[i].opcode >= VRB_WR_ATOMIC_CMP_AND_SWP &&
		names[i].opcode <= VRB_WR_ATOMIC_FETCH_AND_ADD)
		len = 8;
	w = rig_wqe(p->r, names[i].opcode, A_OFF, len, flags);
	w->imm = names[i].opcode == VRB_WR_SEND_WITH_INV ? p->c->p[0].f.rkey : imm;
	if (names[i].opcode != VRB_WR_SEND && names[i].opcode != VRB_WR_SEND_WITH_IMM &&
		names[i].opcode != VRB_WR_SEND_WITH_INV) {
		const struct frame *f = nth_address(p->c, (*addresses)++);

		assert_non_null(f);
		w->remote_addr = f->va;
		w->rkey = f->rkey;
	}
	w->atomic.compare_add = names[i].opcode == VRB_WR_ATOMIC_FETCH_AND_ADD ? 5
				: strncmp(text, "casfail", 7) == 0	       ? 1
								   : 0x0123456789abcdefull;
	w->atomic.swap = 0xfedcba9876543210ull;
	assert_int_equal(rig_commit(p->r, w), 0);
}

/* Until everything that was posted has completed: what we send has to be what rxe sent, and what
 * rxe answered is fed to us. */
static void
play(struct player *p, unsigned int posted)
{
	struct rig *r = p->r;

	while (posted > 0 && p->at < p->c->n) {
		struct vrb_cqe *cqe;

		if (p->c->p[p->at].side == 'B') {
			rig_receive_raw(r, p->c->p[p->at].data, p->c->p[p->at].len);
		} else {
			if (rig_send(r) == 0)
				rig_wait(r); /* after an RNR NAK */
			same(rig_take(r), &p->c->p[p->at].f, 0, !p->s->batch);
		}
		p->at++;
		while ((cqe = vrb_cq_peek(r->scq)) != NULL) {
			vrb_cq_pop(r->scq);
			posted--;
		}
	}
	assert_int_equal(posted, 0);
}

static void
request(const struct scenario *s)
{
	struct player p = {.s = s, .c = capture_read(s->name)};
	unsigned int posted = 0, addresses = 0, index = 0;
	char *copy = strdup(s->ops), *save = NULL;

	p.r = end(s, p.c, 'A');
	for (char *text = strtok_r(copy, " ", &save); text != NULL;
		text = strtok_r(NULL, " ", &save), index++) {
		if (strcmp(text, "skip") == 0)
			continue;
		post(&p, text, index, &addresses);
		posted++;
		if (!s->batch) {
			play(&p, posted);
			posted = 0;
		}
	}
	if (s->batch)
		play(&p, posted);
	free(copy);
	rig_free(p.r);
	capture_free(p.c);
}

static void
our_requester_asks_as_rxe(void **state)
{
	for (unsigned int i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++) {
		print_message("  %s\n", scenarios[i].name);
		request(&scenarios[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_responder_answers_as_rxe),
		cmocka_unit_test(our_requester_asks_as_rxe),
	};

	return cmocka_run_group_tests_name("roce replay", tests, rig_group, NULL);
}
