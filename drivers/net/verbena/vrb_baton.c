/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting for the baton (see vrb_baton.h): a short spin, then a futex. On a machine with few cores
 * the holder may have been preempted by the very thread that waits, so spinning for long would be
 * waiting for oneself.
 */
#include <unistd.h>
#include <linux/futex.h>
#include <sys/syscall.h>

#include <rte_pause.h>

#include "vrb_baton.h"

/* About the time of a round of the poller. */
#define SPINS 200

static bool
take_from(struct vrb_baton *b, uint32_t held)
{
	uint32_t expected = VRB_BATON_FREE;

	return atomic_load(&b->state) == VRB_BATON_FREE &&
	       atomic_compare_exchange_strong(&b->state, &expected, held);
}

void
vrb_baton_lock(struct vrb_baton *b)
{
	bool taken = false;

	atomic_fetch_add(&b->waiters, 1);
	for (int i = 0; i < SPINS && !taken; i++) {
		taken = take_from(b, VRB_BATON_HELD);
		if (!taken)
			rte_pause();
	}
	/*
	 * Whoever has slept cannot know whether others still do, so it takes the baton as one that
	 * is slept for.
	 */
	while (!taken) {
		if (atomic_exchange(&b->state, VRB_BATON_SLEPT_FOR) == VRB_BATON_FREE)
			break;
		syscall(SYS_futex, &b->state, FUTEX_WAIT_PRIVATE, VRB_BATON_SLEPT_FOR, NULL, NULL,
			0);
	}
	atomic_fetch_sub(&b->waiters, 1);
}

void
vrb_baton_wake_waiter(struct vrb_baton *b)
{
	syscall(SYS_futex, &b->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
