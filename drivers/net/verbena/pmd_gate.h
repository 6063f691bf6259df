/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gates: how a control call keeps a data path function out without costing it anything.
 *
 * The data path says in a variable of its own that it is inside, and then looks whether the gate is
 * open. The control call closes the gate, and then waits until nobody is inside. Between the store
 * and the load on each side there has to be a full fence; the rare side does it for both, with
 * membarrier(2), so the data path pays for two stores and a load:
 *
 *     data path                         control call
 *     D1  inside = 1                    C1  closed = 1
 *     D2  (compiler barrier)            C2  fence on all CPUs that run threads of this process
 *     D3  look at closed                C3  wait for inside == 0
 *
 * Where the kernel has no membarrier, and under TSan, D2 is a fence.
 */
#ifndef PMD_GATE_H
#define PMD_GATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rte_branch_prediction.h>

#if defined(__SANITIZE_THREAD__)
#define PMD_GATE_FENCE true
#else
#define PMD_GATE_FENCE unlikely(pmd_gate_fence)
#endif

/** The data path has to fence by itself. */
extern bool pmd_gate_fence;

struct pmd_gate {
	_Atomic uint32_t inside; /* written by the data path */
	_Atomic uint32_t closed; /* written by control calls */
};

/** Once, before a gate is used. */
void pmd_gate_init(void);
/** Closes the gate and waits until nobody is inside. Control calls come one at a time. */
void pmd_gate_close(struct pmd_gate *g);

static inline void
pmd_gate_open(struct pmd_gate *g)
{
	atomic_store_explicit(&g->closed, 0, memory_order_release);
}

/** @return whether the caller is inside: it may go on, and has to leave. One thread at a time. */
static inline bool
pmd_gate_enter(struct pmd_gate *g)
{
	atomic_store_explicit(&g->inside, 1, memory_order_relaxed);
	if (PMD_GATE_FENCE)
		atomic_thread_fence(memory_order_seq_cst);
	atomic_signal_fence(memory_order_seq_cst);
	if (likely(atomic_load_explicit(&g->closed, memory_order_acquire) == 0))
		return true;
	atomic_store_explicit(&g->inside, 0, memory_order_release);
	return false;
}

static inline void
pmd_gate_leave(struct pmd_gate *g)
{
	atomic_store_explicit(&g->inside, 0, memory_order_release);
}

#endif
