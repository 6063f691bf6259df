/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Rx offloads that are done here: checksums, VLAN tags, packet types.
 */
#include <rte_ip.h>
#include <rte_net.h>
#include <rte_udp.h>

#include "pmd_look.h"
#include "pmd_private.h"

static const uint32_t types[VRB_RSS_KINDS] = {
	[VRB_RSS_IPV4] = RTE_PTYPE_L3_IPV4,
	[VRB_RSS_IPV4_FRAG] = RTE_PTYPE_L3_IPV4 | RTE_PTYPE_L4_FRAG,
	[VRB_RSS_IPV4_TCP] = RTE_PTYPE_L3_IPV4 | RTE_PTYPE_L4_TCP,
	[VRB_RSS_IPV4_UDP] = RTE_PTYPE_L3_IPV4 | RTE_PTYPE_L4_UDP,
	[VRB_RSS_IPV4_SCTP] = RTE_PTYPE_L3_IPV4 | RTE_PTYPE_L4_SCTP,
	[VRB_RSS_IPV6] = RTE_PTYPE_L3_IPV6,
	[VRB_RSS_IPV6_TCP] = RTE_PTYPE_L3_IPV6 | RTE_PTYPE_L4_TCP,
	[VRB_RSS_IPV6_UDP] = RTE_PTYPE_L3_IPV6 | RTE_PTYPE_L4_UDP,
	[VRB_RSS_IPV6_SCTP] = RTE_PTYPE_L3_IPV6 | RTE_PTYPE_L4_SCTP,
};

static inline uint32_t
packet_type(const struct rte_mbuf *m, const struct pmd_look *look)
{
	if (unlikely(look->odd))
		return rte_net_get_ptype(m, NULL, RTE_PTYPE_ALL_MASK);
	return (look->tagged ? RTE_PTYPE_L2_ETHER_VLAN : RTE_PTYPE_L2_ETHER) |
	       (look->kind < VRB_RSS_KINDS ? types[look->kind] : 0);
}

/* ---- checksums ---- */

/* Where the headers are, also of an odd frame. @return whether it is IP */
static bool
find_headers(const struct rte_mbuf *m, const struct pmd_look *look, uint32_t *l2, uint32_t *l3,
	uint32_t *ptype)
{
	struct rte_net_hdr_lens lens;

	*ptype = rte_net_get_ptype(m, &lens, RTE_PTYPE_ALL_MASK);
	*l2 = lens.l2_len;
	*l3 = lens.l3_len;
	if (look->odd)
		return RTE_ETH_IS_IPV4_HDR(*ptype) || RTE_ETH_IS_IPV6_HDR(*ptype);
	return look->kind < VRB_RSS_KINDS;
}

static uint64_t
check_l4(const struct rte_mbuf *m, const void *ip, bool v4, uint32_t l4_off, uint64_t todo,
	uint32_t ptype)
{
	uint32_t l4 = ptype & RTE_PTYPE_L4_MASK;

	if (l4 == RTE_PTYPE_L4_UDP && (todo & RTE_ETH_RX_OFFLOAD_UDP_CKSUM)) {
		const struct rte_udp_hdr *udp =
			rte_pktmbuf_mtod_offset(m, const struct rte_udp_hdr *, l4_off);

		/* RFC 768: none was made. RFC 8200 forbids it for IPv6, RoCE does it all the same.
		 */
		if (udp->dgram_cksum == 0)
			return RTE_MBUF_F_RX_L4_CKSUM_GOOD;
	} else if (l4 != RTE_PTYPE_L4_TCP || !(todo & RTE_ETH_RX_OFFLOAD_TCP_CKSUM)) {
		return 0;
	}
	if ((v4 ? rte_ipv4_udptcp_cksum_mbuf_verify(m, ip, l4_off)
		: rte_ipv6_udptcp_cksum_mbuf_verify(m, ip, l4_off)) != 0)
		return RTE_MBUF_F_RX_L4_CKSUM_BAD;
	return RTE_MBUF_F_RX_L4_CKSUM_GOOD;
}

/* The length that the IP header tells must not reach behind the frame, or below its header. */
static bool
length_fits(const struct rte_mbuf *m, const void *l3, bool v4, uint32_t l2, uint32_t l3_len)
{
	uint32_t len;

	if (v4) {
		len = rte_be_to_cpu_16(((const struct rte_ipv4_hdr *)l3)->total_length);
		return len >= l3_len + 8 && l2 + len <= m->pkt_len;
	}
	len = rte_be_to_cpu_16(((const struct rte_ipv6_hdr *)l3)->payload_len);
	return len + sizeof(struct rte_ipv6_hdr) >= l3_len + 8 &&
	       l2 + sizeof(struct rte_ipv6_hdr) + len <= m->pkt_len;
}

static void
check_sums(struct rte_mbuf *m, const struct pmd_look *look, uint64_t todo)
{
	uint32_t l2, l3_len, ptype;
	uint64_t flags = 0;
	const void *l3;
	bool v4;

	if (!find_headers(m, look, &l2, &l3_len, &ptype) || l2 + l3_len > m->data_len)
		return;
	v4 = RTE_ETH_IS_IPV4_HDR(ptype);
	if (l3_len < (v4 ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr)))
		return;
	l3 = rte_pktmbuf_mtod_offset(m, const void *, l2);
	if (v4 && (todo & RTE_ETH_RX_OFFLOAD_IPV4_CKSUM))
		flags |= rte_raw_cksum(l3, l3_len) == 0xffff ? RTE_MBUF_F_RX_IP_CKSUM_GOOD
							     : RTE_MBUF_F_RX_IP_CKSUM_BAD;
	if (l2 + l3_len + 8 <= m->data_len && length_fits(m, l3, v4, l2, l3_len))
		flags |= check_l4(m, l3, v4, l2 + l3_len, todo, ptype);
	m->ol_flags |= flags;
}

/* ---- VLAN ---- */

static bool
vlan_passes(const struct pmd_port *port, const struct rte_mbuf *m, const struct pmd_look *look)
{
	uint16_t vlan;

	if (look->tagged)
		vlan = look->tci & 0xfff;
	else if (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED)
		vlan = m->vlan_tci & 0xfff;
	else
		return true; /* as NICs do: the filter is for tagged frames */
	/* A frame with a priority tag is in no VLAN (802.1Q). */
	return vlan == 0 || (port->vlans[vlan / 64] & RTE_BIT64(vlan % 64)) != 0;
}

static void
strip(struct rte_mbuf *m, const struct pmd_look *look)
{
	uint8_t *d = rte_pktmbuf_mtod(m, uint8_t *);

	memmove(d + RTE_VLAN_HLEN, d, 2 * RTE_ETHER_ADDR_LEN);
	rte_pktmbuf_adj(m, RTE_VLAN_HLEN);
	m->vlan_tci = look->tci;
	m->ol_flags |= RTE_MBUF_F_RX_VLAN | RTE_MBUF_F_RX_VLAN_STRIPPED;
}

bool
pmd_frame_offloads(const struct pmd_port *port, struct rte_mbuf *m, const struct pmd_look *look)
{
	uint64_t todo = port->rx_todo;

	if (m->packet_type == 0)
		m->packet_type = packet_type(m, look);
	if (likely(todo == 0))
		return true;
	if ((todo & RTE_ETH_RX_OFFLOAD_VLAN_FILTER) && !vlan_passes(port, m, look))
		return false;
	if (todo & RTE_ETH_RX_OFFLOAD_CHECKSUM)
		check_sums(m, look, todo);
	/* A buffer that others read too keeps its tag, as the flags say. */
	if ((todo & RTE_ETH_RX_OFFLOAD_VLAN_STRIP) && look->tagged &&
		rte_mbuf_refcnt_read(m) == 1 && RTE_MBUF_DIRECT(m))
		strip(m, look);
	return true;
}
