/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a range of addresses of this process is mapped, and how.
 */
#ifndef VERBS_MAPS_H
#define VERBS_MAPS_H

#include <stdbool.h>
#include <stdint.h>

/**
 * Checks [addr, addr + length) without touching the memory. @p length is not 0 and the range does
 * not wrap.
 *
 * @param write whether it has to be writable, too
 * @param bad on -EFAULT: the first address that does not fit
 * @return 0, -EFAULT, or -errno when it cannot be found out
 */
int vrb_maps_check(uint64_t addr, uint64_t length, bool write, uint64_t *bad);

#endif
