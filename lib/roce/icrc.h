/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariant CRC of RoCEv2 (IBTA 7.8 and A17.3.3): CRC-32 over the packet with the fields that
 * routers may change taken as ones.
 */
#ifndef VRB_ICRC_H
#define VRB_ICRC_H

#include <stdint.h>

#include <rte_mbuf.h>

/**
 * The ICRC of a frame, as the number whose least significant byte goes on the wire first.
 *
 * @param m the frame; its first segment holds the headers up to the BTH
 * @param l3_off offset of the IP header
 * @param v6 whether it is IPv6
 * @param end offset behind the last byte that is covered (where the ICRC stands); within the frame
 */
uint32_t vrb_icrc(const struct rte_mbuf *m, uint32_t l3_off, bool v6, uint32_t end);

#endif
