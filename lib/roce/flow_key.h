/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What of a frame can be looked at by flow rules and by RSS: its headers, taken apart once, in a
 * form that is compared by words. A rule is two such keys, a value and a mask, so what a frame has
 * and what a rule wants meet in one structure.
 *
 * All fields are in network byte order.
 */
#ifndef VRB_FLOW_KEY_H
#define VRB_FLOW_KEY_H

#include <stdbool.h>
#include <stdint.h>

/* Bits of vrb_flow_stack.present. */
#define VRB_FLOW_VLAN (1u << 0)
#define VRB_FLOW_IPV4 (1u << 1)
#define VRB_FLOW_IPV6 (1u << 2)
#define VRB_FLOW_TCP (1u << 3)
#define VRB_FLOW_UDP (1u << 4)
#define VRB_FLOW_FRAGMENT \
	(1u << 5) /* a part of a datagram: it has no L4 header, also the first one not */
#define VRB_FLOW_SCTP (1u << 6)
#define VRB_FLOW_BTH (1u << 7) /* UDP to RoCE's port, with InfiniBand's base transport header */

/* Bits of vrb_flow_stack.ip_flags, where struct ibv_flow_ipv4_ext_filter has them. */
#define VRB_FLOW_DONT_FRAG 0x2u
#define VRB_FLOW_MORE_FRAG 0x4u

/** The headers of a frame, or of the frame within a tunnel. */
struct vrb_flow_stack {
	uint8_t dst_mac[6], src_mac[6];
	uint16_t ether_type; /* behind the VLAN tags */
	uint16_t vlan_tci; /* of the first 802.1Q tag */
	uint8_t src_ip[16], dst_ip[16]; /* IPv4 in the first four bytes */
	uint32_t flow_label;
	uint8_t present; /* VRB_FLOW_* */
	uint8_t proto; /* behind IPv6's extension headers */
	uint8_t tos, ttl; /* or traffic class, hop limit */
	uint16_t src_port, dst_port;
	uint8_t ip_flags;
	uint8_t dst_qpn[3]; /* of the base transport header */
};

struct vrb_flow_key {
	struct vrb_flow_stack outer, inner;
	uint32_t vni; /* VXLAN network identifier, in the lower 24 bits */
	uint8_t tunnel; /* 1: VXLAN, and inner is filled */
	uint8_t pad[3];
};

#define VRB_FLOW_WORDS (sizeof(struct vrb_flow_key) / sizeof(uint64_t))
_Static_assert(sizeof(struct vrb_flow_stack) == 64, "compared by words");
_Static_assert(sizeof(struct vrb_flow_key) == 136, "compared by words");

/** A frame, taken apart. */
struct vrb_frame {
	struct vrb_flow_key key;
	uint16_t l3_off, l3_len; /* of the outer IP header, with options; 0: there is none */
	uint16_t l4_off; /* of the outer TCP, UDP or SCTP header; 0: there is none */
	bool cvlan; /* an 802.1Q tag stands right behind the addresses */
};

/* So many bytes hold all headers that are looked at, unless there are options without end. */
#define VRB_FRAME_HEADERS 256

/**
 * Takes a frame apart, as far as its first bytes go. What is cut off or malformed is not there.
 * @param data the first @p len bytes of the frame
 */
void vrb_frame_parse(const uint8_t *data, uint32_t len, struct vrb_frame *frame);

#endif
