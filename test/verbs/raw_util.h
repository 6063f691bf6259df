/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of raw frames share: queue pairs of them, and frames of UDP in IPv4.
 */
#ifndef RAW_UTIL_H
#define RAW_UTIL_H

#include "verbs_util.h"

/* Ethernet, IPv4 and UDP. */
#define FRAME_HEADERS 42
#define VLAN_TAG 4

extern const uint8_t group_mac[6];

/* Of the device. */
void own_mac(struct rig *r, uint8_t *mac);

/* A frame of @p len bytes to @p dst (or with NULL to our own address), without checksums. */
void make_frame(
	struct rig *r, void *buf, const uint8_t *dst, uint32_t len, uint16_t sport, uint16_t dport);
/* Puts an 802.1Q tag into it, which makes it longer. */
void add_vlan(void *buf, uint32_t len, uint16_t tci);

/* A queue pair in RTS, on the rig's CQ or another. */
struct ibv_qp *make_raw(struct rig *r, struct ibv_cq *cq, uint32_t create_flags);
void raw_to(struct ibv_qp *qp, enum ibv_qp_state state);

/* Sends and expects a completion without error on the rig's CQ. */
void send_frame(struct rig *r, struct ibv_qp *qp, void *buf, uint32_t len);

/* A flow rule with one specification of Ethernet, for the test to change. */
struct eth_rule {
	struct ibv_flow_attr attr;
	struct ibv_flow_spec_eth eth;
};
struct eth_rule rule_to(struct rig *r, const uint8_t *dst);
/* Frames to our own address or to @p dst go to the queue pair. */
struct ibv_flow *steer(struct rig *r, struct ibv_qp *qp, const uint8_t *dst);

#endif
