/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The baton: the lock that says who runs the engine.
 *
 * Program threads and the background thread only ever *try* to take it. Control calls wait for it,
 * and those who try stand back while someone waits, so a busy poller cannot starve a control call.
 *
 * The holder is responsible for every doorbell that was rung while it held the baton. Nobody's work
 * is lost:
 *
 *     who rings                         who holds
 *     R1  ring the doorbell             H1  release: exchange(state, FREE), seq_cst
 *     R2  full fence                    H2  look at the doorbell; if it is rung, try to take the
 *     R3  try: load waiters and state       baton again
 *
 * If R3 finds the baton held, the holder's H1 comes after R3 in the total order of these
 * operations, so H2 comes after R1 and sees the doorbell. If R3 stands back for a waiter, that
 * waiter has not yet taken the baton (it lowers the count after it has); it is a holder later, and
 * its H2 sees the doorbell. If H2's try fails, somebody else has taken the baton or waits for it
 * after H1, and becomes the one responsible; R3 or H2 succeeding, the work is done at once.
 */
#ifndef VRB_BATON_H
#define VRB_BATON_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>

#define VRB_BATON_FREE 0u
#define VRB_BATON_HELD 1u
#define VRB_BATON_SLEPT_FOR 2u /* held, and somebody sleeps until it is released */

struct vrb_baton {
	_Atomic uint32_t state __rte_cache_aligned;
	/*
	 * Control calls that wait. A line of its own: it is read at each try, and written seldom.
	 */
	_Atomic uint32_t waiters __rte_cache_aligned;
};

/** Takes it if it is free and nobody waits. */
static inline bool
vrb_baton_try(struct vrb_baton *b)
{
	uint32_t expected = VRB_BATON_FREE;

	if (atomic_load(&b->waiters) != 0 || atomic_load(&b->state) != VRB_BATON_FREE)
		return false;
	return atomic_compare_exchange_strong(&b->state, &expected, VRB_BATON_HELD);
}

/** Waits for it, in the order in which the kernel wakes. Not recursive. */
void vrb_baton_lock(struct vrb_baton *b);

void vrb_baton_wake_waiter(struct vrb_baton *b);

/** Gives it back. A full fence: what the caller loads afterwards is not older than the release. */
static inline void
vrb_baton_release(struct vrb_baton *b)
{
	if (unlikely(atomic_exchange(&b->state, VRB_BATON_FREE) == VRB_BATON_SLEPT_FOR))
		vrb_baton_wake_waiter(b);
}

#endif
