/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the NIC share.
 *
 *   vrb_nic.c         open, close, query, resolve, fork
 *   vrb_port.c        the lower port
 *   vrb_poller.c      rounds of the engine by the program's threads
 *   vrb_background.c  the thread that runs the engine when the program does not; how it sleeps and
 *                     who wakes it
 */
#ifndef VRB_NIC_PRIVATE_H
#define VRB_NIC_PRIVATE_H

#include <pthread.h>
#include <semaphore.h>

#include <rte_lcore.h>

#include "vrb_baton.h"
#include "vrb_clock.h"
#include "vrb_direct.h"
#include "vrb_nic.h"
#include "vrb_port.h"

#define VRB_BURST 32
/*
 * A program polls as long as its calls are no further apart. Being preempted by the background
 * thread, or waking a peer, takes 10 to 20 us on a virtual machine, and is no pause.
 */
#define VRB_CALL_GAP_NS 25000
/*
 * When a program polls now and then the background thread sleeps no longer than this, so that the
 * interrupt can be disabled while the program polls: at the worst a frame that comes when it has
 * stopped waits for so long.
 */
#define VRB_WATCH_NS UINT64_C(300000)

/** What the background thread does. */
enum vrb_background {
	VRB_BG_AWAKE, /* it runs rounds, or is about to look again */
	VRB_BG_NAPS, /* the program polls continuously; looks again soon */
	VRB_BG_SLEEPS, /* until a frame arrives, sleep_until, or somebody wakes it. Set under the
			  baton. */
};

struct vrb_nic {
	/* Written at open. */
	struct vrb_engine *engine;
	unsigned int lcore; /* lcore id of whoever holds the baton: its mempool caches */
	_Atomic bool forked;
	struct vrb_clock clock;
	struct vrb_port port;
	struct vrb_direct_path *direct; /* or NULL */
	const struct vrb_engine_ops *ops;
	void *ctx;
	int epfd;
	int bell; /* eventfd that wakes the background thread */
	pthread_t thread;
	bool thread_runs;
	sem_t runs; /* posted when the thread does */
	struct vrb_nic *next; /* all NICs of the process, for fork */

	struct vrb_baton baton;

	/* Under the baton. */
	struct {
		struct rte_mbuf *refused[VRB_BURST]; /* what the port did not take, in order */
		uint16_t first_refused, num_refused;
		uint16_t kicks;
		uint8_t replies; /* messages in a row that the program answered at once */
		bool reply_awaited; /* one has come, and its next call tells */
		uint64_t useful; /* the last call of the program that moved packets */
		uint64_t patience; /* after that time without use it offers its CPU to others */
		bool armed; /* the Rx interrupt is enabled */
		bool watch_wanted; /* the program has polled, and might disable it meanwhile */
		unsigned int saved_lcore; /* of the holder, between vrb_nic_lock() and
					     vrb_nic_unlock() */
	} run __rte_cache_aligned;

	/*
	 * Calls of the program's threads: how the background thread knows that they poll. Roughly:
	 * they may overwrite each other's figures.
	 */
	_Atomic uint64_t last_call __rte_cache_aligned;
	_Atomic uint64_t polls_since; /* start of an unbroken series of calls */
	_Atomic uint64_t controlled; /* the last control call: what came before does not count */
	_Atomic uint32_t pauses; /* series that have ended */
	_Atomic uint32_t calls; /* roughly: threads may overwrite each other's count */

	/* The background thread's, read by the others. */
	_Atomic uint32_t background __rte_cache_aligned; /* enum vrb_background */
	_Atomic uint64_t sleep_until;
	_Atomic bool stop;
	/* The background thread's alone. */
	struct {
		uint64_t window_start; /* when it went to sleep the last time */
		uint32_t window_calls, window_pauses; /* the counts then */
		uint64_t no_naps; /* until when the program is known to pause */
		uint64_t busy_ns; /* the next wait for the baton */
		uint64_t nap_ns; /* the next nap, if the program goes on calling */
		uint64_t woken; /* when it last woke up, but from naps */
		bool program_called; /* the program was calling then */
		uint64_t active; /* the last round that had something to do */
		bool stream; /* that round had many frames */
		uint32_t spin_ns; /* how long it looks for frames before it sleeps */
		uint32_t spin_penalty; /* how long it does without when that was in vain */
		uint64_t spin_after; /* not before that time */
		uint64_t yielded;
	} bg __rte_cache_aligned;
};

static inline uint64_t
vrb_now(const struct vrb_nic *nic)
{
	return vrb_clock_now(&nic->clock);
}

static inline bool
vrb_is_forked(const struct vrb_nic *nic)
{
	return unlikely(atomic_load_explicit(&nic->forked, memory_order_relaxed));
}

/** Each pool's cache belongs to an lcore id, and the one id that the NIC uses to whoever holds the
 * baton. */
static inline unsigned int
vrb_lcore_enter(const struct vrb_nic *nic)
{
	unsigned int old = RTE_PER_LCORE(_lcore_id);

	RTE_PER_LCORE(_lcore_id) = nic->lcore;
	return old;
}

static inline void
vrb_lcore_leave(unsigned int old)
{
	RTE_PER_LCORE(_lcore_id) = old;
}

/* ---- rounds (vrb_poller.c); all under the baton ---- */

/** Sends what there is, within bounds. @return whether nothing is left to be sent now */
bool vrb_poller_tx(struct vrb_nic *nic, uint64_t now, unsigned int *sent);
/** Receives one burst, and what the engine sent to itself. @return frames received */
unsigned int vrb_poller_rx(struct vrb_nic *nic, uint64_t now);
/** When the next round has to be, at the latest. */
uint64_t vrb_poller_deadline(struct vrb_nic *nic);
/** Enables the Rx interrupt, if that is not so. A frame that came before raises none: receive
 * again. */
void vrb_poller_arm(struct vrb_nic *nic);
void vrb_poller_disarm(struct vrb_nic *nic);
/** Frees the frames that the port has not taken. */
void vrb_poller_drop(struct vrb_nic *nic);

/* ---- the background thread (vrb_background.c) ---- */

int vrb_background_start(struct vrb_nic *nic);
void vrb_background_stop(struct vrb_nic *nic);
/** Wakes it. */
void vrb_background_wake(struct vrb_nic *nic);

/* ---- neighbours of a kernel interface (vrb_neigh.c) ---- */

/** The first address of each kind that the interface has; @p gid[0] all zero if it has no global
 * one. */
int vrb_neigh_addresses(unsigned int ifindex, const uint8_t mac[6], union vrb_gid gid[VRB_GIDS]);
/** Whether @p gid is an address of the interface. */
bool vrb_neigh_is_own(unsigned int ifindex, const union vrb_gid *gid);
/** The MAC of the next hop towards @p dgid by way of the interface. @return 0, -ENETUNREACH,
 * -ETIMEDOUT, -errno */
int vrb_neigh_resolve(unsigned int ifindex, const union vrb_gid *dgid, uint8_t mac[6]);

#endif
