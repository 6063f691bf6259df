/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The memory of the simulated hosts: the area, its shadow, and buffers in it (see sim.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rte_common.h>

#include "sim.h"

#define GUARD_MIN 16
#define MODEL_ROOM (256ull << 20)

static uint8_t *area;
static uint8_t *model;
static size_t model_used;

int
mem_init(void)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

	area = mmap(NULL, 2 * SIM_MEM, PROT_READ | PROT_WRITE, flags, -1, 0);
	model = mmap(NULL, MODEL_ROOM, PROT_READ | PROT_WRITE, flags, -1, 0);
	return area == MAP_FAILED || model == MAP_FAILED ? -errno : 0;
}

void *
mem_model(size_t n)
{
	void *p = model + model_used;

	n = RTE_ALIGN_CEIL(n, 64);
	if (model_used + n > MODEL_ROOM)
		abort();
	model_used += n;
	memset(p, 0, n);
	return p;
}

void
mem_reset(void)
{
	model_used = 0;
}

void
arena_init(struct sim *s, struct arena *a, uint64_t cap)
{
	memset(a, 0, sizeof(*a));
	/* Regions begin and end at odd addresses, and do not touch each other. */
	s->mem_used += 64 + rng_below(&s->rng, 64);
	if (s->mem_used + cap > SIM_MEM)
		abort();
	a->base = area + s->mem_used;
	a->cap = cap;
	s->mem_used += cap;
}

int
arena_register(struct sim *s, struct arena *a, struct host *h, struct vrb_pd *pd, uint32_t access,
	unsigned int times)
{
	uint64_t addr = (uintptr_t)a->base;

	for (; a->n_mr < times; a->n_mr++) {
		/* Also at the very end of the address space. */
		uint64_t iova = a->n_mr == 0		   ? addr
				: rng_chance(&s->rng, 500) ? rng_u64(&s->rng) >> 1
							   : 0 - a->cap;
		int rc = vrb_mr_reg(h->e, pd, addr, a->cap, iova, access, &a->mr[a->n_mr]);

		if (rc < 0)
			return rc;
	}
	return 0;
}

static void
both_fill(uint8_t *p, uint64_t n, uint64_t tag)
{
	pattern_fill(p, n, tag, 0);
	memcpy(shadow_of(p), p, n);
}

uint8_t *
arena_take(struct arena *a, struct rng *r, uint64_t n, uint64_t align)
{
	uint64_t guard = GUARD_MIN + rng_below(r, 16);
	uint64_t at = a->used + guard;

	at += (align - ((uintptr_t)a->base + at) % align) % align;
	if (at + n + GUARD_MIN > a->cap)
		return NULL;
	both_fill(a->base + a->used, at + n + GUARD_MIN - a->used, rng_u64(r));
	a->used = at + n;
	return a->base + at;
}

static void
piece_set(struct piece *p, const struct arena *a, struct rng *r)
{
	const struct vrb_mr *mr = a->mr[rng_below(r, a->n_mr)];

	p->sge.addr = mr->iova + (uint64_t)(p->p - a->base);
	p->sge.length = p->len;
	p->sge.lkey = mr->lkey;
}

bool
buf_take(struct buf *b, struct arena *a, struct rng *r, uint32_t len, uint32_t max_sge)
{
	uint32_t n = rng_chance(r, 500) ? 1 : (uint32_t)rng_range(r, 1, max_sge);
	uint32_t left = len;

	if (n > len)
		n = len;
	if (n > max_sge)
		n = max_sge;
	b->piece = mem_model(n * sizeof(*b->piece));
	b->n = n;
	b->len = len;
	for (uint32_t i = 0; i < n; i++) {
		struct piece *p = &b->piece[i];

		p->len = i + 1 == n ? left
				    : (uint32_t)rng_range(r, 1,
					      RTE_MAX(1u, 2 * (left - (n - i - 1)) / (n - i)));
		if (p->len > left - (n - i - 1))
			p->len = left - (n - i - 1);
		left -= p->len;
		p->p = arena_take(a, r, p->len, 1);
		if (p->p == NULL)
			return false;
		piece_set(p, a, r);
	}
	return true;
}

void
buf_fill(const struct buf *b, uint64_t tag)
{
	uint64_t off = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		pattern_fill(b->piece[i].p, b->piece[i].len, tag, off);
		memcpy(shadow_of(b->piece[i].p), b->piece[i].p, b->piece[i].len);
		off += b->piece[i].len;
	}
}

long
buf_check(const struct buf *b, uint32_t len, uint64_t tag, uint64_t off)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < b->n && at < len; i++) {
		uint32_t n = RTE_MIN(b->piece[i].len, len - at);
		long bad = pattern_check(b->piece[i].p, n, tag, off + at);

		if (bad >= 0)
			return (long)at + bad;
		at += n;
	}
	return at < len ? (long)at : -1;
}

bool
buf_rest_untouched(const struct buf *b, uint32_t len)
{
	uint32_t at = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		const struct piece *p = &b->piece[i];
		uint32_t skip = at >= len ? 0 : RTE_MIN(p->len, len - at);

		if (memcmp(p->p + skip, shadow_of(p->p) + skip, p->len - skip) != 0)
			return false;
		at += p->len;
	}
	return true;
}

void
buf_scribble(const struct buf *b, struct rng *r)
{
	for (uint32_t i = 0; i < b->n; i++)
		both_fill(b->piece[i].p, b->piece[i].len, rng_u64(r));
}

void
mem_forget(uint8_t *p, uint64_t n)
{
	memcpy(shadow_of(p), p, n);
}

static void
arena_compare(
	struct sim *s, const struct arena *a, const char *who, unsigned int idx, const char *what)
{
	uint64_t n = a->used == 0 ? 0 : a->used + GUARD_MIN;

	if (n == 0 || memcmp(a->base, shadow_of(a->base), n) == 0)
		return;
	for (uint64_t i = 0; i < n; i++) {
		if (a->base[i] != shadow_of(a->base)[i]) {
			sim_fail(s,
				"%s %u, %s memory: byte %llu (at %p) was changed and should not "
				"have been",
				who, idx, what, (unsigned long long)i, (void *)(a->base + i));
			return;
		}
	}
}

void
mem_compare(struct sim *s)
{
	for (unsigned int i = 0; i < s->n_eps; i++) {
		arena_compare(s, &s->ep[i].local, "end", i, "local");
		arena_compare(s, &s->ep[i].target, "end", i, "target");
		arena_compare(s, &s->ep[i].naked, "end", i, "private");
	}
	for (unsigned int i = 0; i < s->n_srqs; i++)
		arena_compare(s, &s->srq[i].arena, "SRQ", i, "receive");
}
