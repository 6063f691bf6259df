/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread beside the prompt: it carries the traffic of jobs and receives from ports. One for
 * all, so that two of these programs have a CPU each on a machine with two.
 */
#ifndef TESTPMD_WORKER_H
#define TESTPMD_WORKER_H

#include <rte_os.h>

/** Where it is to run, if not where the prompt does. Before it is started. */
void tp_worker_cpus(rte_cpuset_t cpus);
/** Starts it, unless it runs. @return 0, or -errno after tp_refuse() */
int tp_worker_start(void);
void tp_worker_stop(void);
/** While it is held the thread does nothing: what it works on may be changed. */
void tp_worker_lock(void);
void tp_worker_unlock(void);

#endif
