/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's clock: nanoseconds, from the TSC where it is the same on all CPUs and never stops,
 * else from CLOCK_MONOTONIC. It starts at CLOCK_MONOTONIC's value and is off by some parts in a
 * million from then on; it never runs backwards, in no thread.
 */
#ifndef VRB_CLOCK_H
#define VRB_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include <rte_branch_prediction.h>
#include <rte_cycles.h>

struct vrb_clock {
	uint64_t tsc; /* at the origin */
	uint64_t ns; /* at the origin */
	uint64_t mult; /* nanoseconds of a tick, times 2^32; 0: the TSC is of no use */
};

/** Begins to measure the TSC. */
void vrb_clock_begin(struct vrb_clock *c);
/** Ends it, at least 10 ms after vrb_clock_begin(), else it sleeps until then. */
void vrb_clock_end(struct vrb_clock *c);

static inline uint64_t
vrb_clock_monotonic(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}

static inline uint64_t
vrb_clock_now(const struct vrb_clock *c)
{
	uint64_t tsc;

	if (unlikely(c->mult == 0))
		return vrb_clock_monotonic();
	/*
	 * Not serialised: a reading may be early by the depth of the pipeline, which no timer
	 * notices.
	 */
	tsc = rte_rdtsc();
	return c->ns + (uint64_t)(((unsigned __int128)(tsc - c->tsc) * c->mult) >> 32);
}

#endif
