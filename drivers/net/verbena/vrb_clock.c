/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measuring the TSC (see vrb_clock.h).
 */
#include <errno.h>
#if defined(__x86_64__) || defined(__i386__)
#include <cpuid.h>
#endif

#include "vrb_clock.h"

#define MEASURE_NS UINT64_C(10000000)

static bool
tsc_is_steady(void)
{
#if defined(__x86_64__) || defined(__i386__)
	unsigned int a, b, c, d;

	/*
	 * AMD APM vol. 3, Fn8000_0007 EDX[8]; Intel SDM 18.17: the TSC runs at a constant rate in
	 * all states.
	 */
	return __get_cpuid(0x80000007, &a, &b, &c, &d) != 0 && (d & (1u << 8)) != 0;
#else
	return true;
#endif
}

/*
 * The TSC and the time at one instant: of some tries the one in which the clock was read fastest.
 */
static void
sample(uint64_t *tsc, uint64_t *ns)
{
	uint64_t best = UINT64_MAX;

	for (int i = 0; i < 8; i++) {
		uint64_t t0 = rte_rdtsc_precise();
		uint64_t now = vrb_clock_monotonic();
		uint64_t t1 = rte_rdtsc_precise();

		if (t1 - t0 >= best)
			continue;
		best = t1 - t0;
		*tsc = t0 + best / 2;
		*ns = now;
	}
}

void
vrb_clock_begin(struct vrb_clock *c)
{
	*c = (struct vrb_clock){0};
	sample(&c->tsc, &c->ns);
}

void
vrb_clock_end(struct vrb_clock *c)
{
	uint64_t tsc, ns, since = vrb_clock_monotonic() - c->ns;

	if (!tsc_is_steady())
		return;
	if (since < MEASURE_NS) {
		struct timespec ts = {.tv_nsec = (long)(MEASURE_NS - since)};

		while (nanosleep(&ts, &ts) < 0 && errno == EINTR)
			continue;
	}
	sample(&tsc, &ns);
	if (tsc > c->tsc)
		c->mult = (uint64_t)(((unsigned __int128)(ns - c->ns) << 32) / (tsc - c->tsc));
}
