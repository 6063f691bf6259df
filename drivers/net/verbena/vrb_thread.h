/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that leave the program's signals alone, and that are not bound to the CPU of whoever
 * makes them.
 */
#ifndef VRB_THREAD_H
#define VRB_THREAD_H

#include <sched.h>
#include <pthread.h>

/** Largest number of a CPU, and one. */
#define VRB_MAX_CPUS 8192

/**
 * The CPUs that the process could use when this code was loaded: for the shim that is before
 * main(), so before the program has bound its threads to anything.
 *
 * @param size bytes of the set
 */
const cpu_set_t *vrb_thread_cpus(size_t *size);

/**
 * As pthread_create(3): a thread that may run on vrb_thread_cpus() and has all signals blocked,
 * except those of faults in guarded copies.
 *
 * @return 0 or -errno
 */
int vrb_thread_create(pthread_t *thread, const char *name, void *(*fn)(void *), void *arg);

#endif
