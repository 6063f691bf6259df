/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opcodes (IBTA 9.2.1, table 38) and what each carries. The upper three bits name the transport,
 * the lower five the operation, which is the same for every transport that has it. So the engine
 * works with the operation, in RC's names.
 */
#ifndef VRB_OPCODE_H
#define VRB_OPCODE_H

#include <stdint.h>

enum vrb_opcode {
	VRB_RC_SEND_FIRST = 0x00,
	VRB_RC_SEND_MIDDLE = 0x01,
	VRB_RC_SEND_LAST = 0x02,
	VRB_RC_SEND_LAST_IMM = 0x03,
	VRB_RC_SEND_ONLY = 0x04,
	VRB_RC_SEND_ONLY_IMM = 0x05,
	VRB_RC_WRITE_FIRST = 0x06,
	VRB_RC_WRITE_MIDDLE = 0x07,
	VRB_RC_WRITE_LAST = 0x08,
	VRB_RC_WRITE_LAST_IMM = 0x09,
	VRB_RC_WRITE_ONLY = 0x0a,
	VRB_RC_WRITE_ONLY_IMM = 0x0b,
	VRB_RC_READ_REQUEST = 0x0c,
	VRB_RC_READ_RESP_FIRST = 0x0d,
	VRB_RC_READ_RESP_MIDDLE = 0x0e,
	VRB_RC_READ_RESP_LAST = 0x0f,
	VRB_RC_READ_RESP_ONLY = 0x10,
	VRB_RC_ACK = 0x11,
	VRB_RC_ATOMIC_ACK = 0x12,
	VRB_RC_CMP_SWAP = 0x13,
	VRB_RC_FETCH_ADD = 0x14,
	VRB_RC_SEND_LAST_INV = 0x16,
	VRB_RC_SEND_ONLY_INV = 0x17,
	VRB_RC_ATOMIC_WRITE = 0x1d,
};

/* The transport: bits of the opcode. */
#define VRB_TRANSPORT_RC 0x00u
#define VRB_TRANSPORT_UC 0x20u
#define VRB_TRANSPORT_UD 0x60u
#define VRB_TRANSPORT_XRC 0xa0u
#define VRB_TRANSPORT_RAW 0xe0u /* none: frames as they are; no packet has it */
#define VRB_TRANSPORT_MASK 0xe0u
#define VRB_OPERATION_MASK 0x1fu

/* Flags of struct vrb_opcode_info. */
#define VRB_OP_FIRST 0x0001u /* begins a message */
#define VRB_OP_LAST 0x0002u /* ends it */
#define VRB_OP_SEND 0x0004u
#define VRB_OP_WRITE 0x0008u
#define VRB_OP_READ 0x0010u
#define VRB_OP_ATOMIC 0x0020u
#define VRB_OP_RESPONSE 0x0040u /* for the requester, not the responder */
#define VRB_OP_PAYLOAD 0x0080u
#define VRB_OP_RETH 0x0100u
#define VRB_OP_AETH 0x0200u
#define VRB_OP_IMM 0x0400u
#define VRB_OP_INV 0x0800u
#define VRB_OP_DETH 0x1000u /* datagram header */
#define VRB_OP_XRCETH 0x2000u /* XRC header: number of the SRQ */
#define VRB_OP_VALID 0x8000u

struct vrb_opcode_info {
	const char *name;
	uint16_t flags;
	uint8_t ext_len; /* bytes of the extended headers behind the BTH */
};

/** What @p opcode carries, or NULL when it is none that the device knows. */
const struct vrb_opcode_info *vrb_opcode_info(uint8_t opcode);

#endif
