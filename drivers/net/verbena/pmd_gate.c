/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rare side of gates (see pmd_gate.h).
 */
#include <sched.h>
#include <unistd.h>
#include <linux/membarrier.h>
#include <sys/syscall.h>

#include "pmd_gate.h"

bool pmd_gate_fence;

void
pmd_gate_init(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) != 0)
		pmd_gate_fence = true;
}

void
pmd_gate_close(struct pmd_gate *g)
{
	atomic_store(&g->closed, 1);
	if (!PMD_GATE_FENCE && syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0)
		sched_yield(); /* cannot fail once it is registered (membarrier(2)) */
	atomic_thread_fence(memory_order_seq_cst);
	/* A burst of the lower port; its thread may have been preempted. */
	while (atomic_load_explicit(&g->inside, memory_order_acquire) != 0)
		sched_yield();
}
