/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCEv2 on the wire: headers as they stand in a packet, and accessors for their fields (IBTA 9.2
 * to 9.5, annex A17). Everything is big endian but the ICRC, whose least significant byte goes
 * first.
 */
#ifndef VRB_HDR_H
#define VRB_HDR_H

#include <stdint.h>

#include <rte_byteorder.h>
#include <rte_common.h>

#define VRB_ROCE_PORT 4791
#define VRB_ICRC_LEN 4
#define VRB_PSN_MASK 0xffffffu

/** Base transport header. */
struct vrb_bth {
	uint8_t opcode;
	uint8_t flags; /* SE, MigReq, PadCnt, TVer */
	rte_be16_t pkey;
	rte_be32_t qpn; /* FECN, BECN, 6 bits reserved; destination QPN */
	rte_be32_t apsn; /* AckReq, 7 bits reserved; PSN */
} __rte_packed;

#define VRB_BTH_SE 0x80u
#define VRB_BTH_PAD_SHIFT 4
#define VRB_BTH_TVER 0x0fu
#define VRB_BTH_ACKREQ 0x80000000u

/** RDMA extended transport header: of WRITEs and READs. */
struct vrb_reth {
	rte_be64_t va;
	rte_be32_t rkey;
	rte_be32_t length;
} __rte_packed;

struct vrb_atomic_eth {
	rte_be64_t va;
	rte_be32_t rkey;
	rte_be64_t swap_add;
	rte_be64_t compare;
} __rte_packed;

/** Acknowledge header: syndrome and message sequence number. */
struct vrb_aeth {
	rte_be32_t smsn;
} __rte_packed;

struct vrb_atomic_ack_eth {
	rte_be64_t orig;
} __rte_packed;

/** Of a SEND with invalidate. */
struct vrb_ieth {
	rte_be32_t rkey;
} __rte_packed;

/** Datagram extended transport header: of UD. */
struct vrb_deth {
	rte_be32_t qkey;
	rte_be32_t src_qpn; /* 8 bits reserved; source QPN */
} __rte_packed;

/** XRC extended transport header: which SRQ the request is for. */
struct vrb_xrceth {
	rte_be32_t srqn; /* 8 bits reserved; number of the SRQ */
} __rte_packed;

/* AETH syndromes (IBTA 9.7.5.2.1): the three upper bits tell the kind, the five lower ones its
 * value. */
#define VRB_AETH_KIND 0xe0u
#define VRB_AETH_VALUE 0x1fu
#define VRB_AETH_ACK 0x00u
#define VRB_AETH_RNR_NAK 0x20u
#define VRB_AETH_NAK 0x60u
#define VRB_AETH_NO_CREDITS 0x1fu /* value of an ACK: no credit count is given */
#define VRB_NAK_PSN_SEQ 0x60u
#define VRB_NAK_INV_REQ 0x61u
#define VRB_NAK_REM_ACCESS 0x62u
#define VRB_NAK_REM_OP 0x63u

static inline uint32_t
vrb_bth_qpn(const struct vrb_bth *b)
{
	return rte_be_to_cpu_32(b->qpn) & 0xffffffu;
}

static inline uint32_t
vrb_bth_psn(const struct vrb_bth *b)
{
	return rte_be_to_cpu_32(b->apsn) & VRB_PSN_MASK;
}

static inline unsigned int
vrb_bth_pad(const struct vrb_bth *b)
{
	return (b->flags >> VRB_BTH_PAD_SHIFT) & 3u;
}

/** How far PSN @p a is after @p b: negative before it. PSNs are compared in a circle of 2^24
 * (IBTA 9.7.1). */
static inline int32_t
vrb_psn_diff(uint32_t a, uint32_t b)
{
	return (int32_t)((a - b) << 8) >> 8;
}

static inline uint32_t
vrb_psn_add(uint32_t psn, uint32_t n)
{
	return (psn + n) & VRB_PSN_MASK;
}

#endif
