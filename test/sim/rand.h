/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random numbers that are the same on every machine, and contents of messages that can be told from
 * each other.
 *
 * Every decision of the simulator comes from one such generator, so that a seed is a scenario.
 */
#ifndef SIM_RAND_H
#define SIM_RAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rng {
	uint64_t s;
};

/* The finalizer of splitmix64: a bijection without visible structure. */
static inline uint64_t
mix64(uint64_t z)
{
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static inline uint64_t
rng_u64(struct rng *r)
{
	r->s += 0x9e3779b97f4a7c15ull;
	return mix64(r->s);
}

/** A number below @p n, which is not 0. */
static inline uint64_t
rng_below(struct rng *r, uint64_t n)
{
	return rng_u64(r) % n;
}

/** A number from @p lo to @p hi, both included. */
static inline uint64_t
rng_range(struct rng *r, uint64_t lo, uint64_t hi)
{
	return lo + rng_below(r, hi - lo + 1);
}

/** True in @p permille of a thousand cases. */
static inline bool
rng_chance(struct rng *r, uint32_t permille)
{
	return rng_below(r, 1000) < permille;
}

/** A generator that does not depend on how often the first is used from now on. */
static inline struct rng
rng_fork(struct rng *r)
{
	return (struct rng){.s = rng_u64(r)};
}

/** Fills @p n bytes with the contents of message @p tag from its byte @p off on. */
void pattern_fill(void *p, size_t n, uint64_t tag, uint64_t off);

/** @return the index of the first byte that differs from the contents of message @p tag from @p off
 * on, or -1 */
long pattern_check(const void *p, size_t n, uint64_t tag, uint64_t off);

#endif
