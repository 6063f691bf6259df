/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts: an engine with a port. The port hands received frames over in chains of segments, refuses
 * packets now and then, and takes the engine at its word about when it wants to be run.
 */
#include <string.h>

#include <rte_mempool.h>
#include <rte_mbuf.h>

#include "sim.h"

#define POOL_SIZE 1023
#define SMALL_POOL_SIZE 31
#define WHOLE_ROOM \
	(VRB_HDR_MAX + 4096) /* of a packet that is not chained to the program's memory */
#define RX_POOL_SIZE 1023
#define RX_ROOM 2048
#define BURST 32
#define SPINS_MAX 2000
#define ICRC_OMITTED_FLAG RTE_MBUF_F_FIRST_FREE

/* Enough mbufs and hardly any; each for whole packets, and for headers before external buffers. */
static struct rte_mempool *pools[SIM_HOSTS][2][2], *rx_pool;

static struct rte_mempool *
pool_make(const char *kind, unsigned int i, unsigned int n, unsigned int room)
{
	char name[32];

	snprintf(name, sizeof(name), "%s%u", kind, i);
	return rte_pktmbuf_pool_create(
		name, n, 0, 0, (uint16_t)(RTE_PKTMBUF_HEADROOM + room), SOCKET_ID_ANY);
}

int
host_pools(void)
{
	for (unsigned int i = 0; i < SIM_HOSTS; i++) {
		for (unsigned int k = 0; k < 4; k++) {
			struct rte_mempool **mp = &pools[i][k / 2][k % 2];

			*mp = pool_make("sim", i * 4 + k, k / 2 ? SMALL_POOL_SIZE : POOL_SIZE,
				k % 2 ? VRB_MBUF_ROOM : WHOLE_ROOM);
			if (*mp == NULL)
				return -1;
		}
	}
	rx_pool = pool_make("simrx", 0, RX_POOL_SIZE, RX_ROOM);
	return rx_pool == NULL ? -1 : 0;
}

static void
pool_check(struct sim *s, const struct rte_mempool *mp)
{
	unsigned int n = rte_mempool_avail_count(mp);

	if (n != mp->size)
		sim_fail(s, "%u mbufs of pool %s are lost", mp->size - n, mp->name);
}

void
host_pools_check(struct sim *s)
{
	for (unsigned int i = 0; i < SIM_HOSTS; i++) {
		for (unsigned int k = 0; k < 4; k++)
			pool_check(s, pools[i][k / 2][k % 2]);
	}
	pool_check(s, rx_pool);
}

static void
on_cq(void *ctx, struct vrb_cq *cq)
{
	struct host *h = ctx;

	for (unsigned int i = 0; i < h->sim->n_cqs; i++) {
		if (h->sim->cq[i].cq == cq) {
			h->sim->cq[i].notified = true;
			return;
		}
	}
	sim_fail(h->sim, "host %u was told of a CQ that it has not", h->idx);
}

static void
on_async(void *ctx, enum vrb_event_type type, void *obj)
{
	struct host *h = ctx;

	if ((unsigned int)type < RTE_DIM(h->events))
		h->events[type]++;
	sim_trace(h->sim, "host %u: asynchronous event %d", h->idx, type);
}

static void
on_explain(void *ctx, const char *sentence)
{
	struct host *h = ctx;

	sim_trace(h->sim, "host %u: %s", h->idx, sentence);
}

static const struct vrb_engine_ops ops = {
	.cq_notify = on_cq, .async = on_async, .explain = on_explain};

int
host_start(struct sim *s, struct host *h)
{
	struct vrb_engine_conf conf = {.ops = &ops, .ctx = h};
	struct rng *r = &s->rng;
	bool small = rng_chance(r, s->prof->small_pool);

	h->sim = s;
	h->in_tail = &h->in_head;
	/* Bits that flip are found by the ICRC only. */
	h->icrc = s->prof->corrupt || rng_chance(r, 500);
	h->zero_copy = !h->icrc && rng_chance(r, 600);
	h->pool = pools[h->idx][small][h->zero_copy];
	h->next = SIM_NEVER;
	conf.pool = h->pool;
	conf.zero_copy = h->zero_copy;
	conf.icrc = h->icrc;
	conf.icrc_omitted = s->prof->corrupt ? 0 : ICRC_OMITTED_FLAG;
	conf.port_mtu = 4096 + 80;
	memcpy(conf.mac, (uint8_t[]){2, 0, 0, 0, 0, h->idx + 1}, 6);
	memcpy(conf.gid[0].raw + 10, (uint8_t[]){0xff, 0xff, 10, 0, 0, h->idx + 1}, 6);
	memcpy(conf.gid[1].raw,
		(uint8_t[]){0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, h->idx + 1},
		16);
	return vrb_engine_create(&conf, &h->e);
}

void
host_stop(struct sim *s, struct host *h)
{
	struct packet *p;

	for (unsigned int i = 0; i < h->n_held; i++)
		rte_pktmbuf_free(h->held[i]);
	h->n_held = 0;
	while ((p = h->in_head) != NULL) {
		h->in_head = p->next;
		wire_free(p);
	}
	h->in_tail = &h->in_head;
	vrb_engine_destroy(h->e);
	h->e = NULL;
}

/* A received frame in one segment or several; the first holds all headers (vrb_engine_rx()). */
static struct rte_mbuf *
to_mbuf(struct sim *s, const struct packet *p)
{
	struct rng *r = &s->wire.rng;
	struct rte_mbuf *head = NULL, *m, *last = NULL;
	uint32_t at = 0;

	while (at < p->len) {
		uint32_t n = RTE_MIN(p->len - at, (uint32_t)RX_ROOM);

		if (p->len - at > VRB_HDR_MAX && rng_chance(r, 200))
			n = (uint32_t)rng_range(r, head == NULL ? VRB_HDR_MAX : 1, n);
		m = rte_pktmbuf_alloc(rx_pool);
		if (m == NULL) {
			rte_pktmbuf_free(head);
			return NULL;
		}
		memcpy(rte_pktmbuf_append(m, (uint16_t)n), p->data + at, n);
		at += n;
		if (head == NULL) {
			head = m;
		} else {
			last->next = m;
			head->nb_segs++;
			head->pkt_len += n;
		}
		last = m;
	}
	if (p->icrc_omitted)
		head->ol_flags |= ICRC_OMITTED_FLAG;
	return head;
}

/* Every frame that is not for the engine comes back, in order, and no other; of damaged ones either
 * may be true. */
static void
check_left(struct sim *s, struct host *h, struct rte_mbuf **left, unsigned int n,
	struct rte_mbuf **junk, unsigned int n_junk, unsigned int n_corrupt)
{
	unsigned int found = 0;

	for (unsigned int i = 0; i < n; i++)
		if (found < n_junk && left[i] == junk[found])
			found++;
	if (found != n_junk || n > n_junk + n_corrupt)
		sim_fail(s,
			"host %u: of %u foreign frames the engine left %u, and %u frames in all",
			h->idx, n_junk, found, n);
}

static unsigned int
take_in(struct sim *s, struct host *h)
{
	struct rte_mbuf *pkts[BURST], *junk[BURST];
	unsigned int n = 0, n_junk = 0, n_corrupt = 0, left;
	unsigned int max = (unsigned int)rng_range(&s->wire.rng, 1, BURST);

	while (n < max && h->in_head != NULL) {
		struct packet *p = h->in_head;

		pkts[n] = to_mbuf(s, p);
		h->in_head = p->next;
		if (h->in_head == NULL)
			h->in_tail = &h->in_head;
		if (pkts[n] != NULL) {
			if (p->junk)
				junk[n_junk++] = pkts[n];
			n_corrupt += p->corrupt;
			n++;
		}
		wire_free(p);
	}
	left = vrb_engine_rx(h->e, pkts, n, s->now);
	check_left(s, h, pkts, left, junk, n_junk, n_corrupt);
	rte_pktmbuf_free_bulk(pkts, left);
	return n;
}

/* The port copies the packet, as shared memory does. */
static void
put_on_wire(struct sim *s, struct host *h, struct rte_mbuf *m)
{
	struct packet *p = wire_packet();
	uint32_t at = 0;

	if (m->pkt_len > sizeof(p->data) - 64) {
		sim_fail(s, "host %u sent a frame of %u bytes", h->idx, m->pkt_len);
		wire_free(p);
		rte_pktmbuf_free(m);
		return;
	}
	for (const struct rte_mbuf *seg = m; seg != NULL; seg = seg->next) {
		memcpy(p->data + at, rte_pktmbuf_mtod(seg, const void *), seg->data_len);
		at += seg->data_len;
	}
	if (at != m->pkt_len)
		sim_fail(s, "host %u: a frame's length is not that of its segments", h->idx);
	p->len = at;
	p->icrc_omitted = m->ol_flags & ICRC_OMITTED_FLAG;
	if (p->icrc_omitted && h->icrc)
		sim_fail(s, "host %u left out an ICRC", h->idx);
	rte_pktmbuf_free(m);
	wire_send(s, h, p);
}

/* Whether the port refuses packets now. Without copies they cannot be kept: then it never does. */
static bool
refuses(struct sim *s, struct host *h)
{
	if (h->closed_until > s->now)
		return true;
	if (h->zero_copy || !rng_chance(&s->wire.rng, s->prof->refuse))
		return false;
	h->closed_until = s->now + rng_range(&s->wire.rng, 100, US(50));
	return true;
}

/* Returns how many packets the engine made; *more tells that the port took all of them. */
static unsigned int
give_out(struct sim *s, struct host *h, bool *more)
{
	struct rte_mbuf *pkts[BURST];
	unsigned int n, sent = 0, want;

	for (unsigned int i = 0; i < h->n_held; i++)
		put_on_wire(s, h, h->held[i]);
	h->n_held = 0;
	do {
		want = (unsigned int)rng_range(&s->wire.rng, 1, BURST);
		n = vrb_engine_tx(h->e, pkts, want, s->now);
		sent += n;
		for (unsigned int i = 0; i < n; i++) {
			if (refuses(s, h))
				h->held[h->n_held++] = pkts[i];
			else
				put_on_wire(s, h, pkts[i]);
		}
		/* In order: once one was refused, so are the others. */
		*more = h->n_held == 0;
	} while (n == want && *more && !s->failed);
	return sent;
}

void
host_run(struct sim *s, struct host *h)
{
	while (!s->failed) {
		unsigned int did = take_in(s, h);
		bool more = true;
		uint64_t next;

		if (h->closed_until > s->now) {
			h->next = h->closed_until;
			if (h->in_head == NULL)
				return;
			continue;
		}
		did += give_out(s, h, &more);
		next = vrb_engine_deadline(h->e);
		h->next = more ? next : h->closed_until;
		if (h->in_head != NULL || (h->next <= s->now && did > 0))
			continue;
		if (h->next > s->now) {
			h->spins = 0;
			return;
		}
		/* It has nothing to do and yet wants to be called: fine while it waits for mbufs,
		 * but not for ever. */
		h->next = s->now + 1000;
		if (++h->spins > SPINS_MAX)
			sim_fail(s,
				"host %u: the engine wants to run at once, again and again, and "
				"does nothing",
				h->idx);
		return;
	}
}

uint64_t
host_next(const struct host *h)
{
	if (h->in_head != NULL)
		return 0;
	/* While the port takes nothing, a doorbell has to wait. */
	return vrb_engine_doorbell(h->e) ? RTE_MIN(h->next, h->closed_until) : h->next;
}
