/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One look at the first bytes of a frame: enough for RSS, packet types and checksums of what most
 * frames are. What it takes for odd goes the long way (vrb_frame_parse()).
 */
#ifndef PMD_LOOK_H
#define PMD_LOOK_H

#include <string.h>
#include <netinet/in.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>

#include "rss.h"

struct pmd_look {
	uint8_t kind; /* enum vrb_rss_kind; VRB_RSS_KINDS: not IP, as far as can be seen */
	bool v6;
	bool tagged; /* an 802.1Q tag stands behind the addresses */
	bool odd; /* a second tag, options, extension headers, or cut off */
	uint16_t tci;
	uint16_t ip_off, l4_off; /* l4_off 0: there is no L4 header that we know */
};

static inline uint16_t
pmd_load16(const uint8_t *p)
{
	uint16_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* @return what the protocol adds to the kind, 0: nothing */
static inline uint8_t
pmd_look_l4(uint8_t proto, uint32_t left)
{
	/* Each at least as far as its ports, and UDP and SCTP as a whole. */
	if (proto == IPPROTO_TCP && left >= 20)
		return VRB_RSS_IPV4_TCP;
	if (proto == IPPROTO_UDP && left >= 8)
		return VRB_RSS_IPV4_UDP;
	if (proto == IPPROTO_SCTP && left >= 12)
		return VRB_RSS_IPV4_SCTP;
	return 0;
}

static inline void
pmd_look_v4(const uint8_t *d, uint32_t len, struct pmd_look *look)
{
	const uint8_t *ip = d + look->ip_off;
	uint32_t left = len - look->ip_off;

	if (unlikely(left < sizeof(struct rte_ipv4_hdr) || ip[0] != RTE_IPV4_VHL_DEF)) {
		look->odd = true;
		return;
	}
	look->kind = VRB_RSS_IPV4;
	if (unlikely((pmd_load16(ip + 6) & rte_cpu_to_be_16(0x3fff)) != 0)) {
		look->kind = VRB_RSS_IPV4_FRAG;
		return;
	}
	look->kind += pmd_look_l4(ip[9], left - sizeof(struct rte_ipv4_hdr));
	if (look->kind != VRB_RSS_IPV4)
		look->l4_off = look->ip_off + sizeof(struct rte_ipv4_hdr);
}

static inline void
pmd_look_v6(const uint8_t *d, uint32_t len, struct pmd_look *look)
{
	const uint8_t *ip = d + look->ip_off;
	uint32_t left = len - look->ip_off;

	if (unlikely(left < sizeof(struct rte_ipv6_hdr) || ip[0] >> 4 != 6)) {
		look->odd = true;
		return;
	}
	look->kind = VRB_RSS_IPV6;
	look->v6 = true;
	if (unlikely(ip[6] == IPPROTO_HOPOPTS || ip[6] == IPPROTO_ROUTING ||
		     ip[6] == IPPROTO_FRAGMENT || ip[6] == IPPROTO_DSTOPTS)) {
		look->odd = true;
		return;
	}
	look->kind += pmd_look_l4(ip[6], left - sizeof(struct rte_ipv6_hdr));
	if (look->kind != VRB_RSS_IPV6)
		look->l4_off = look->ip_off + sizeof(struct rte_ipv6_hdr);
}

static inline void
pmd_look(const struct rte_mbuf *m, struct pmd_look *look)
{
	const uint8_t *d = rte_pktmbuf_mtod(m, const uint8_t *);
	uint32_t len = m->data_len;
	uint16_t type;

	*look = (struct pmd_look){.kind = VRB_RSS_KINDS, .ip_off = RTE_ETHER_HDR_LEN};
	if (unlikely(len < RTE_ETHER_HDR_LEN)) {
		look->odd = true;
		return;
	}
	type = pmd_load16(d + 12);
	if (unlikely(type == rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN))) {
		if (len < RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN) {
			look->odd = true;
			return;
		}
		look->tagged = true;
		look->tci = rte_be_to_cpu_16(pmd_load16(d + 14));
		look->ip_off += RTE_VLAN_HLEN;
		type = pmd_load16(d + 16);
	}
	if (likely(type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4)))
		pmd_look_v4(d, len, look);
	else if (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6))
		pmd_look_v6(d, len, look);
	else if (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN) ||
		 type == rte_cpu_to_be_16(RTE_ETHER_TYPE_QINQ))
		look->odd = true;
}

#endif
