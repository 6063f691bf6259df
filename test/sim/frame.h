/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCEv2 frames as the tests see them: a dissector, an ICRC and a builder that share no code with
 * the engine, so that a mistake of the engine is not made twice.
 */
#ifndef SIM_FRAME_H
#define SIM_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Opcodes of the reliable connection (IBTA 9.2.1, table 38); of other transports: with one of OP_UC
 * ... added. */
enum {
	OP_SEND_FIRST = 0,
	OP_SEND_MIDDLE,
	OP_SEND_LAST,
	OP_SEND_LAST_IMM,
	OP_SEND_ONLY,
	OP_SEND_ONLY_IMM,
	OP_WRITE_FIRST,
	OP_WRITE_MIDDLE,
	OP_WRITE_LAST,
	OP_WRITE_LAST_IMM,
	OP_WRITE_ONLY,
	OP_WRITE_ONLY_IMM,
	OP_READ_REQ,
	OP_RESP_FIRST,
	OP_RESP_MIDDLE,
	OP_RESP_LAST,
	OP_RESP_ONLY,
	OP_ACK,
	OP_ATOMIC_ACK,
	OP_CAS,
	OP_FADD,
	OP_RESERVED,
	OP_SEND_LAST_INV,
	OP_SEND_ONLY_INV,
	OP_ATOMIC_WRITE = 0x1d,
};

#define OP_UC 0x20
#define OP_UD 0x60
#define OP_XRC 0xa0

/** The fields of a frame, in host order. To build one: fill in what the opcode carries. */
struct frame {
	uint8_t dmac[6], smac[6];
	bool v6;
	uint8_t saddr[16], daddr[16]; /* IPv4: the first four bytes */
	uint8_t tos, ttl;
	uint16_t ip_id;
	bool df;
	uint32_t flow;
	uint16_t sport, dport, udp_csum;
	uint8_t opcode, pad, tver;
	bool se, migreq, ackreq;
	uint8_t fecn_becn, resv7; /* the upper byte of the destination QPN; the bits below AckReq */
	uint16_t pkey;
	uint32_t qpn, psn;
	uint64_t va;
	uint32_t rkey, dmalen;
	uint64_t swap_add, compare, orig;
	uint8_t syndrome;
	uint32_t msn;
	uint32_t imm, inv;
	uint32_t qkey, src_qpn; /* UD */
	uint32_t srqn; /* XRC */
	const uint8_t *payload;
	uint32_t len; /* of the payload, without pad */
	uint32_t icrc; /* as a number, least significant byte first on the wire */
	bool icrc_ok;
	/* offsets in the dissected bytes */
	uint32_t l3_off, bth_off, payload_off, end_off;
};

/** What extended headers an opcode has. */
enum {
	HAS_RETH = 1,
	HAS_AETH = 2,
	HAS_IMM = 4,
	HAS_INV = 8,
	HAS_ATOMIC = 16,
	HAS_ORIG = 32,
	HAS_PAYLOAD = 64,
	HAS_DETH = 128,
	HAS_XRCETH = 256,
};

/** @return HAS_* of an opcode, or -1 when no transport has it */
int frame_opcode_has(uint8_t opcode);

/** @return a name for people */
const char *frame_opcode_name(uint8_t opcode);

/**
 * Takes a frame apart. @p f points into @p p afterwards.
 *
 * @return 0, or -1 when it is no RoCEv2 packet, or a malformed one
 */
int frame_parse(struct frame *f, const uint8_t *p, size_t n);

/** The ICRC of a RoCEv2 frame whose ICRC stands at @p end. */
uint32_t frame_icrc(const uint8_t *p, uint32_t l3_off, bool v6, size_t end);

/**
 * Puts a frame together, with right lengths, checksum and ICRC.
 *
 * @param room bytes at @p p
 * @return its length; aborts when there is no room
 */
size_t frame_build(const struct frame *f, uint8_t *p, size_t room);

/** Computes the ICRC of a frame again, after something in it was changed. */
void frame_fix_icrc(uint8_t *p, size_t n);

/** One line about a frame, without newline. */
void frame_print(FILE *out, const struct frame *f);

/** A CRC-32 as zlib computes it, going on from @p crc (0 to begin). */
uint32_t frame_crc32(uint32_t crc, const void *p, size_t n);

#endif
