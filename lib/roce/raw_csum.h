/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checksums of raw frames: what hardware would make of them, and find in them.
 */
#ifndef VRB_RAW_CSUM_H
#define VRB_RAW_CSUM_H

#include <rte_mbuf.h>

#include "flow_key.h"

/**
 * Whether the checksums of a received IPv4 header and of the TCP or UDP behind it are right.
 * @param hdr the frame's first bytes
 */
bool vrb_csum_ok(const struct rte_mbuf *m, const struct vrb_frame *f, const uint8_t *hdr);
/** Fills in the checksums of IPv4, TCP and UDP as far as the frame has them. Its headers stand in
 * the first segment. */
void vrb_csum_make(struct rte_mbuf *m);
/** The frame check sequence that the frame has on a wire, its first byte in the lowest bits (IEEE
 * 802.3, 3.2.9). */
uint32_t vrb_frame_fcs(const struct rte_mbuf *m);

#endif
