/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Taking frames apart (see flow_key.h). The bytes come from the network: every header is bounded
 * before it is read.
 */
#include <string.h>

#include <netinet/in.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_sctp.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "flow_key.h"

#define VXLAN_PORT 4789
#define VXLAN_LEN 8
#define VXLAN_HAS_VNI 0x08 /* RFC 7348: the I flag */
#define ROCE_PORT 4791
#define BTH_LEN 12
#define BTH_QPN 5 /* where the destination queue pair number stands (IBTA 9.2) */
#define MAX_TAGS 2
#define MAX_IPV6_EXT 8

struct cursor {
	const uint8_t *data;
	uint32_t len, off;
};

/** The next @p n bytes, or NULL. */
static const void *
take(struct cursor *c, uint32_t n)
{
	const uint8_t *p = c->data + c->off;

	if (n > c->len - c->off)
		return NULL;
	c->off += n;
	return p;
}

/** @return the type of what follows, 0: nothing */
static uint16_t
take_ethernet(struct cursor *c, struct vrb_flow_stack *s, bool *cvlan)
{
	const struct rte_ether_hdr *eth = take(c, sizeof(*eth));
	uint16_t type;
	int i;

	*cvlan = false;
	if (eth == NULL)
		return 0;
	memcpy(s->dst_mac, &eth->dst_addr, sizeof(s->dst_mac));
	memcpy(s->src_mac, &eth->src_addr, sizeof(s->src_mac));
	type = eth->ether_type;
	for (i = 0; i < MAX_TAGS; i++) {
		const struct rte_vlan_hdr *tag;

		if (type != rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN) &&
			type != rte_cpu_to_be_16(RTE_ETHER_TYPE_QINQ))
			break;
		tag = take(c, sizeof(*tag));
		if (tag == NULL)
			return 0;
		if (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN) &&
			!(s->present & VRB_FLOW_VLAN)) {
			s->present |= VRB_FLOW_VLAN;
			s->vlan_tci = tag->vlan_tci;
			*cvlan = i == 0;
		}
		type = tag->eth_proto;
	}
	s->ether_type = type;
	return type;
}

static bool
take_ipv4(struct cursor *c, struct vrb_flow_stack *s)
{
	const struct rte_ipv4_hdr *ip = take(c, sizeof(*ip));
	uint16_t frag;

	if (ip == NULL || (ip->version_ihl >> 4) != 4 || rte_ipv4_hdr_len(ip) < sizeof(*ip) ||
		take(c, rte_ipv4_hdr_len(ip) - sizeof(*ip)) == NULL)
		return false;
	frag = rte_be_to_cpu_16(ip->fragment_offset);
	memcpy(s->src_ip, &ip->src_addr, 4);
	memcpy(s->dst_ip, &ip->dst_addr, 4);
	s->present |= VRB_FLOW_IPV4;
	s->proto = ip->next_proto_id;
	s->tos = ip->type_of_service;
	s->ttl = ip->time_to_live;
	if (frag & RTE_IPV4_HDR_DF_FLAG)
		s->ip_flags |= VRB_FLOW_DONT_FRAG;
	if (frag & RTE_IPV4_HDR_MF_FLAG)
		s->ip_flags |= VRB_FLOW_MORE_FRAG;
	if (frag & (RTE_IPV4_HDR_MF_FLAG | RTE_IPV4_HDR_OFFSET_MASK))
		s->present |= VRB_FLOW_FRAGMENT;
	return true;
}

/** Passes by the extension headers. @return whether the upper protocol was reached */
static bool
take_ipv6_extensions(struct cursor *c, struct vrb_flow_stack *s)
{
	int i;

	for (i = 0; i < MAX_IPV6_EXT; i++) {
		const uint8_t *ext;

		switch (s->proto) {
		case IPPROTO_HOPOPTS:
		case IPPROTO_ROUTING:
		case IPPROTO_DSTOPTS:
			ext = take(c, 8);
			if (ext == NULL || take(c, ext[1] * 8u) == NULL)
				return false;
			break;
		case IPPROTO_FRAGMENT:
			ext = take(c, 8);
			if (ext == NULL)
				return false;
			/* A fragment header on a whole datagram ("atomic", RFC 6946) changes
			 * nothing. */
			if (ext[2] != 0 || (ext[3] & 0xf9) != 0)
				s->present |= VRB_FLOW_FRAGMENT;
			break;
		default:
			return true;
		}
		s->proto = ext[0];
		/* What follows in a later fragment is not a header. */
		if (s->present & VRB_FLOW_FRAGMENT)
			return true;
	}
	return false;
}

static bool
take_ipv6(struct cursor *c, struct vrb_flow_stack *s)
{
	const struct rte_ipv6_hdr *ip = take(c, sizeof(*ip));
	uint32_t vtc;

	if (ip == NULL)
		return false;
	vtc = rte_be_to_cpu_32(ip->vtc_flow);
	if (vtc >> 28 != 6)
		return false;
	memcpy(s->src_ip, ip->src_addr, 16);
	memcpy(s->dst_ip, ip->dst_addr, 16);
	s->present |= VRB_FLOW_IPV6;
	s->flow_label = rte_cpu_to_be_32(vtc & 0xfffff);
	s->tos = (vtc >> 20) & 0xff;
	s->ttl = ip->hop_limits;
	s->proto = ip->proto;
	return take_ipv6_extensions(c, s);
}

/** Looks into the payload of UDP, which the cursor stays in front of. */
static void
look_at_bth(const struct cursor *c, struct vrb_flow_stack *s)
{
	if (s->dst_port != rte_cpu_to_be_16(ROCE_PORT) || c->len - c->off < BTH_LEN)
		return;
	s->present |= VRB_FLOW_BTH;
	memcpy(s->dst_qpn, c->data + c->off + BTH_QPN, sizeof(s->dst_qpn));
}

/** @return whether there is a header of TCP, UDP or SCTP; it is where the cursor was */
static bool
take_l4(struct cursor *c, struct vrb_flow_stack *s)
{
	/* All three begin with the ports. */
	const struct rte_udp_hdr *l4;

	if (s->present & VRB_FLOW_FRAGMENT)
		return false;
	switch (s->proto) {
	case IPPROTO_UDP:
		l4 = take(c, sizeof(struct rte_udp_hdr));
		s->present |= l4 != NULL ? VRB_FLOW_UDP : 0;
		break;
	case IPPROTO_TCP:
		l4 = take(c, sizeof(struct rte_tcp_hdr));
		s->present |= l4 != NULL ? VRB_FLOW_TCP : 0;
		break;
	case IPPROTO_SCTP:
		l4 = take(c, sizeof(struct rte_sctp_hdr));
		s->present |= l4 != NULL ? VRB_FLOW_SCTP : 0;
		break;
	default:
		return false;
	}
	if (l4 == NULL)
		return false;
	s->src_port = l4->src_port;
	s->dst_port = l4->dst_port;
	if (s->present & VRB_FLOW_UDP)
		look_at_bth(c, s);
	return true;
}

static bool
take_l3(struct cursor *c, struct vrb_flow_stack *s, uint16_t type)
{
	if (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4))
		return take_ipv4(c, s);
	if (type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6))
		return take_ipv6(c, s);
	return false;
}

static void
take_tunnel(struct cursor *c, struct vrb_flow_key *key)
{
	const uint8_t *vxlan;
	uint16_t type;
	bool cvlan;

	if (!(key->outer.present & VRB_FLOW_UDP) ||
		key->outer.dst_port != rte_cpu_to_be_16(VXLAN_PORT))
		return;
	vxlan = take(c, VXLAN_LEN);
	if (vxlan == NULL || !(vxlan[0] & VXLAN_HAS_VNI))
		return;
	key->tunnel = 1;
	memcpy((uint8_t *)&key->vni + 1, vxlan + 4, 3);
	type = take_ethernet(c, &key->inner, &cvlan);
	if (take_l3(c, &key->inner, type))
		take_l4(c, &key->inner);
}

void
vrb_frame_parse(const uint8_t *data, uint32_t len, struct vrb_frame *frame)
{
	struct cursor c = {.data = data, .len = len};
	uint16_t type;
	uint32_t off;

	memset(frame, 0, sizeof(*frame));
	type = take_ethernet(&c, &frame->key.outer, &frame->cvlan);
	off = c.off;
	if (!take_l3(&c, &frame->key.outer, type))
		return;
	frame->l3_off = (uint16_t)off;
	frame->l3_len = (uint16_t)(c.off - off);
	off = c.off;
	if (!take_l4(&c, &frame->key.outer))
		return;
	frame->l4_off = (uint16_t)off;
	take_tunnel(&c, &frame->key);
}
