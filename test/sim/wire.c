/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire: packets on their way, in order of arrival, and what may happen to them.
 *
 * A packet (the same PSN, in the same direction) is harmed at most MERCY times. A queue pair gives
 * up after seven retries, and a scenario with loss has to end well all the same; without that rule
 * one in some thousands would not.
 */
#include <stdlib.h>
#include <string.h>

#include <rte_common.h>

#include "frame.h"
#include "sim.h"

#define MERCY 2
#define HEAP_ROOM 65536

static struct packet *spare;

int
wire_init(void)
{
	return 0;
}

struct packet *
wire_packet(void)
{
	struct packet *p = spare;

	if (p != NULL)
		spare = p->next;
	else
		p = malloc(sizeof(*p));
	if (p == NULL)
		abort();
	p->next = NULL;
	p->icrc_omitted = p->junk = p->corrupt = false;
	return p;
}

void
wire_free(struct packet *p)
{
	p->next = spare;
	spare = p;
}

void
wire_start(struct sim *s)
{
	struct wire *w = &s->wire;
	struct packet **heap = w->heap;

	memset(w, 0, sizeof(*w));
	w->heap = heap != NULL ? heap : calloc(HEAP_ROOM, sizeof(*heap));
	if (w->heap == NULL)
		abort();
	w->room = HEAP_ROOM;
	w->rng = rng_fork(&s->rng);
	w->delay = rng_range(&s->rng, 200, US(30));
	w->jitter = rng_range(&s->rng, 500, US(20));
	w->rate = rng_range(&s->rng, 1250, 50000); /* 10 to 400 Gbit/s */
	if (s->prof->lose)
		w->lose = (uint32_t)rng_below(&s->rng, s->prof->lose + 1);
	if (s->prof->dup)
		w->dup = (uint32_t)rng_below(&s->rng, s->prof->dup + 1);
	if (s->prof->reorder)
		w->reorder = (uint32_t)rng_below(&s->rng, s->prof->reorder + 1);
	if (s->prof->corrupt)
		w->corrupt = (uint32_t)rng_below(&s->rng, s->prof->corrupt + 1);
	if (s->prof->burst)
		w->burst = (uint32_t)rng_below(&s->rng, s->prof->burst + 1);
}

static bool
before(const struct packet *a, const struct packet *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void
heap_push(struct wire *w, struct packet *p)
{
	uint32_t i = w->n++;

	if (w->n > w->room)
		abort();
	p->seq = w->seq++;
	for (; i > 0 && before(p, w->heap[(i - 1) / 2]); i = (i - 1) / 2)
		w->heap[i] = w->heap[(i - 1) / 2];
	w->heap[i] = p;
}

static struct packet *
heap_pop(struct wire *w)
{
	struct packet *top = w->heap[0], *last = w->heap[--w->n];
	uint32_t i = 0;

	for (;;) {
		uint32_t c = 2 * i + 1;

		if (c >= w->n)
			break;
		if (c + 1 < w->n && before(w->heap[c + 1], w->heap[c]))
			c++;
		if (!before(w->heap[c], last))
			break;
		w->heap[i] = w->heap[c];
		i = c;
	}
	if (w->n > 0)
		w->heap[i] = last;
	return top;
}

static struct host *
find_host(struct sim *s, const struct packet *p)
{
	for (unsigned int i = 0; i < s->n_hosts; i++)
		if (p->data[5] == s->host[i].idx + 1 && p->data[0] == 0x02)
			return &s->host[i];
	return NULL;
}

/* Whether this packet may be harmed once more. */
static bool
may_harm(struct wire *w, const struct packet *p, const struct frame *f)
{
	bool response = f->opcode >= OP_RESP_FIRST && f->opcode <= OP_ATOMIC_ACK;
	uint64_t key = (uint64_t)f->psn << 32 | f->qpn << 4 | p->dst->idx << 1 | response;
	uint8_t *n = &w->harm[mix64(key) % RTE_DIM(w->harm)];

	if (*n >= MERCY) {
		w->merciful++;
		return false;
	}
	(*n)++;
	return true;
}

/* What every frame has to be like, whatever it carries. */
static void
inspect(struct sim *s, const struct host *src, const struct packet *p, const struct frame *f)
{
	if (!p->icrc_omitted && (p->len < 200 || rng_chance(&s->wire.rng, 100)) && !f->icrc_ok)
		sim_fail(s, "host %u sent a packet with a wrong ICRC", src->idx);
	if (f->pkey != 0xffff || f->tver != 0 || f->fecn_becn != 0 || f->resv7 != 0 ||
		f->udp_csum != 0)
		sim_fail(s, "host %u sent a packet with odd fixed fields", src->idx);
	if (f->sport < 0xc000 || f->smac[5] != src->idx + 1)
		sim_fail(s, "host %u sent a packet with a wrong source", src->idx);
	if (f->len > 4096)
		sim_fail(s, "host %u sent a payload of %u bytes", src->idx, f->len);
}

static void
flip_bits(struct sim *s, struct packet *p)
{
	unsigned int n = (unsigned int)rng_range(&s->wire.rng, 1, 4);

	p->corrupt = true;
	while (n-- > 0)
		p->data[rng_below(&s->wire.rng, p->len)] ^=
			(uint8_t)(1u << rng_below(&s->wire.rng, 8));
	/* The source and destination MAC are no part of the ICRC, but then it is another's packet.
	 */
}

static bool
lost(struct sim *s, struct wire *w, const struct packet *p, const struct frame *f)
{
	if (w->dead)
		return true;
	if (w->burst_left == 0 && rng_chance(&w->rng, w->burst))
		w->burst_left = (uint32_t)rng_range(&w->rng, 2, 40);
	if (w->burst_left > 0) {
		w->burst_left--;
		return may_harm(w, p, f);
	}
	return rng_chance(&w->rng, w->lose) && may_harm(w, p, f);
}

static void
depart(struct sim *s, struct host *src, struct packet *p, const struct frame *f)
{
	struct wire *w = &s->wire;
	uint64_t start = RTE_MAX(src->link_free, s->now);

	src->link_free = start + (uint64_t)p->len * 1000 / w->rate;
	p->at = src->link_free + w->delay;
	p->src = src;
	if (rng_chance(&w->rng, w->reorder) && may_harm(w, p, f)) {
		p->at += rng_range(&w->rng, 1, w->jitter);
		w->reordered++;
	}
	if (rng_chance(&w->rng, w->dup)) {
		struct packet *twin = wire_packet();

		*twin = *p;
		twin->at += rng_below(&w->rng, w->jitter);
		w->duplicated++;
		heap_push(w, twin);
	}
	if (rng_chance(&w->rng, w->corrupt) && may_harm(w, p, f)) {
		flip_bits(s, p);
		w->corrupted++;
	}
	/* What an Ethernet port appends to short frames, or a switch to any. */
	if (rng_chance(&w->rng, 20) && p->len + 64 < sizeof(p->data))
		p->len += (uint32_t)rng_below(&w->rng, 32);
	heap_push(w, p);
}

void
wire_send(struct sim *s, struct host *src, struct packet *p)
{
	struct wire *w = &s->wire;
	struct frame f;

	w->sent++;
	p->dst = find_host(s, p);
	if (frame_parse(&f, p->data, p->len) < 0 || p->dst == NULL) {
		sim_fail(s, "host %u sent a malformed frame of %u bytes", src->idx, p->len);
		wire_free(p);
		return;
	}
	inspect(s, src, p, &f);
	if (lost(s, w, p, &f)) {
		w->lost++;
		if (s->verbose) {
			printf("%12.3f  %u>%u ", (double)s->now / 1000, src->idx, p->dst->idx);
			frame_print(stdout, &f);
			printf("  LOST\n");
		}
		wire_free(p);
		return;
	}
	if (s->verbose) {
		printf("%12.3f  %u>%u ", (double)s->now / 1000, src->idx, p->dst->idx);
		frame_print(stdout, &f);
		printf("\n");
	}
	depart(s, src, p, &f);
}

uint64_t
wire_next(const struct wire *w)
{
	return w->n == 0 ? SIM_NEVER : w->heap[0]->at;
}

void
wire_arrive(struct sim *s)
{
	struct wire *w = &s->wire;

	while (w->n > 0 && w->heap[0]->at <= s->now) {
		struct packet *p = heap_pop(w);

		p->next = NULL;
		*p->dst->in_tail = p;
		p->dst->in_tail = &p->next;
		p->dst->next = s->now;
	}
}

void
wire_clear(struct sim *s)
{
	while (s->wire.n > 0)
		wire_free(s->wire.heap[--s->wire.n]);
}

/* ARP, TCP, UDP to another port, RoCE to another address, and nonsense. */
static void
junk_make(struct sim *s, struct packet *p, const struct host *dst)
{
	struct rng *r = &s->wire.rng;
	struct frame f = {.dport = 4791,
		.ttl = 64,
		.df = true,
		.sport = 0xc123,
		.pkey = 0xffff,
		.opcode = OP_SEND_ONLY,
		.qpn = 0x11,
		.daddr = {10, 0, 0, dst->idx + 1},
		.saddr = {10, 0, 0, 99}};
	unsigned int kind = (unsigned int)rng_below(r, 5);

	f.v6 = rng_chance(r, 300);
	f.dmac[0] = f.smac[0] = 2;
	f.dmac[5] = dst->idx + 1;
	f.smac[5] = 99;
	if (kind == 0)
		f.daddr[3] = 77;
	if (f.v6)
		memset(f.daddr, 0x20, 16);
	if (kind == 1)
		f.dport = 53;
	p->len = (uint32_t)frame_build(&f, p->data, sizeof(p->data));
	if (kind == 2)
		p->data[f.v6 ? 20 : 23] = 6; /* TCP */
	if (kind == 3)
		p->data[13] = 0x06; /* ARP */
	if (kind == 4) {
		p->len = (uint32_t)rng_range(r, 1, 90);
		for (uint32_t i = 12; i < p->len; i++)
			p->data[i] = (uint8_t)rng_u64(r);
		p->data[12] = 0x88; /* neither IPv4 nor IPv6 */
	}
	if (kind != 4 && kind != 3 && kind != 2 && kind != 1 && !f.v6)
		p->data[33] = 77;
}

void
wire_junk(struct sim *s)
{
	struct wire *w = &s->wire;
	struct packet *p;

	if (!rng_chance(&w->rng, s->prof->junk))
		return;
	p = wire_packet();
	p->dst = &s->host[rng_below(&w->rng, s->n_hosts)];
	p->src = p->dst;
	p->junk = true;
	junk_make(s, p, p->dst);
	p->at = s->now;
	heap_push(w, p);
}
