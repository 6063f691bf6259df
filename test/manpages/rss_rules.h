/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the rules of indirection tables share.
 */
#ifndef RSS_RULES_H
#define RSS_RULES_H

#include "rules.h"
#include "wq_util.h"

/* Addresses and ports of UDP in IPv4, and where they stand in a frame. */
#define UDP_FIELDS \
	((uint64_t)IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 | IBV_RX_HASH_SRC_PORT_UDP | \
		IBV_RX_HASH_DST_PORT_UDP)

static inline void
check_udp(struct rss *s)
{
	check_traffic(s, 26, 12);
}

static inline void
need_rss(struct rig *r)
{
	if (!device_attr(r).rss_caps.max_rwq_indirection_tables)
		device_lacks("indirection tables");
}

#endif
