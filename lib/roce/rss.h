/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive-side scaling: the Toeplitz hash of a frame, by which a table of queues is indexed. One
 * code for the queue pairs of verbs and for an ethdev port. What rte_softrss() predicts is what
 * comes out:
 *
 *   input   the chosen fields of the frame, one behind the other: source address, destination
 *           address, source port, destination port; a field that is not chosen is left out
 *   queue   table[hash & (size - 1)]; a frame with none of the chosen fields has the hash 0
 *
 * A fragment has no ports: all fragments of a datagram go to one queue. RoCE packets may be hashed
 * by their destination queue pair number (32 bits, the upper 8 are zero) in the place of ports.
 * With symmetric fields both addresses are replaced by the exclusive or of them, and both ports
 * likewise, so that both directions of a conversation have one hash.
 */
#ifndef VRB_RSS_H
#define VRB_RSS_H

#include <stdbool.h>
#include <stdint.h>

#include "flow_key.h"

/* Length of a key: as far as IPv6 with ports needs it, and the longer one that some NICs have. */
#define VRB_RSS_KEY_LEN 40
#define VRB_RSS_KEY_MAX 52

/* What is hashed. */
#define VRB_RSS_SRC_IP (1u << 0)
#define VRB_RSS_DST_IP (1u << 1)
#define VRB_RSS_SRC_PORT (1u << 2)
#define VRB_RSS_DST_PORT (1u << 3)
#define VRB_RSS_DST_QPN (1u << 4)
#define VRB_RSS_IPS (VRB_RSS_SRC_IP | VRB_RSS_DST_IP)
#define VRB_RSS_PORTS (VRB_RSS_SRC_PORT | VRB_RSS_DST_PORT)

/** Kinds of frames, each with a choice of its own. */
enum vrb_rss_kind {
	VRB_RSS_IPV4, /* none of those below */
	VRB_RSS_IPV4_FRAG,
	VRB_RSS_IPV4_TCP,
	VRB_RSS_IPV4_UDP,
	VRB_RSS_IPV4_SCTP,
	VRB_RSS_IPV4_ROCE,
	VRB_RSS_IPV6,
	VRB_RSS_IPV6_FRAG,
	VRB_RSS_IPV6_TCP,
	VRB_RSS_IPV6_UDP,
	VRB_RSS_IPV6_SCTP,
	VRB_RSS_IPV6_ROCE,
	VRB_RSS_KINDS,
};

struct vrb_rss {
	uint32_t key[VRB_RSS_KEY_MAX / 4]; /* as numbers: rte_convert_rss_key() */
	uint8_t fields[VRB_RSS_KINDS]; /* VRB_RSS_SRC_IP ... */
	bool inner; /* of the frame within a tunnel, where there is one */
	bool symmetric;
};

/** Sets the key. @param len at most VRB_RSS_KEY_MAX, a multiple of four; the rest is zero */
void vrb_rss_set_key(struct vrb_rss *rss, const uint8_t *key, uint32_t len);

/* Fields as verbs name them: the values of enum ibv_rx_hash_fields. */
#define VRB_RX_HASH_SRC_IPV4 (1u << 0)
#define VRB_RX_HASH_DST_IPV4 (1u << 1)
#define VRB_RX_HASH_SRC_IPV6 (1u << 2)
#define VRB_RX_HASH_DST_IPV6 (1u << 3)
#define VRB_RX_HASH_SRC_PORT_TCP (1u << 4)
#define VRB_RX_HASH_DST_PORT_TCP (1u << 5)
#define VRB_RX_HASH_SRC_PORT_UDP (1u << 6)
#define VRB_RX_HASH_DST_PORT_UDP (1u << 7)
#define VRB_RX_HASH_INNER (1ull << 31)
#define VRB_RX_HASH_ALL (0xffull | VRB_RX_HASH_INNER)

/** Chooses the fields as verbs do: each applies to the frames that have it. @return 0, or
 * -EOPNOTSUPP for an unknown one */
int vrb_rss_set_fields(struct vrb_rss *rss, uint64_t fields);

/* Two IPv6 addresses and two ports. */
#define VRB_RSS_INPUT 36

/** What is hashed of a frame, in network byte order. @return its length, 0: nothing */
uint32_t vrb_rss_input(
	const struct vrb_rss *rss, const struct vrb_flow_key *key, uint8_t input[VRB_RSS_INPUT]);

uint32_t vrb_rss_hash(const struct vrb_rss *rss, const struct vrb_flow_key *key);

#endif
