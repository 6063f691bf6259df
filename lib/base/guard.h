/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies that survive memory which has gone away.
 *
 * The device reads and writes memory of the program that it lives in. The program may unmap a
 * registered buffer without deregistering it, or truncate the file behind it. On hardware that is
 * an error completion; here it would be SIGSEGV or SIGBUS in the middle of a memcpy(). A guarded
 * copy records where to go on, and the handler for those two signals goes there when the fault
 * happened inside a guarded copy, and to the handler that was there before it otherwise.
 */
#ifndef VRB_GUARD_H
#define VRB_GUARD_H

#include <stddef.h>
#include <stdint.h>

/**
 * Installs the handler for SIGSEGV and SIGBUS. Safe to call more than once: it checks whether the
 * handler is still ours and puts it back in front if the program has replaced it since.
 *
 * @return 0, or -errno of sigaction(2)
 */
int vrb_guard_install(void);

/**
 * Copies @p n bytes; the areas do not overlap. Thread-safe and async-signal-safe.
 *
 * @return 0, or -EFAULT when part of either area is not mapped (or not writable); how much was
 * copied is then undefined
 */
int vrb_guard_copy(void *dst, const void *src, size_t n);

/**
 * Atomic operations of the CPU on a naturally aligned 64-bit word, sequentially consistent.
 *
 * @param old out: the value before
 * @return 0, or -EFAULT when the word is not mapped writable
 */
int vrb_guard_cmp_swap(uint64_t *p, uint64_t compare, uint64_t swap, uint64_t *old);
int vrb_guard_fetch_add(uint64_t *p, uint64_t add, uint64_t *old);
int vrb_guard_store(uint64_t *p, uint64_t value);

#endif
