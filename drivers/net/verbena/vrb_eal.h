/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starting DPDK's EAL inside a program that knows nothing of it.
 */
#ifndef VRB_EAL_H
#define VRB_EAL_H

#include <stdbool.h>
#include <stddef.h>

/**
 * Starts EAL, once a process; later calls give the result of the first. Thread-safe.
 *
 * It runs in a thread of its own that has all signals blocked, so that the caller keeps its CPU
 * affinity and its signal mask; EAL's threads may run on every CPU that the caller may run on.
 * Nothing is written to stdout. In a process that was forked after the start it fails.
 *
 * @param eal_args more arguments, separated by blanks, or NULL
 * @param log_fd descriptor that EAL's log goes to, 0: none
 * @param why on failure: one sentence
 * @return 0 or -errno
 */
int vrb_eal_start(const char *eal_args, int log_fd, char *why, size_t why_len);

/** The first line of DPDK's log that told of an error since vrb_eal_clear_error(), without its
 * newline; "" if there was none. */
void vrb_eal_error(char *buf, size_t len);
/** Forgets it. */
void vrb_eal_clear_error(void);

#endif
