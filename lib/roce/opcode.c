/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of opcodes (see opcode.h).
 */
#include <stddef.h>

#include "hdr.h"
#include "opcode.h"

#define RETH ((uint8_t)sizeof(struct vrb_reth))
#define AETH ((uint8_t)sizeof(struct vrb_aeth))
#define ATOMIC ((uint8_t)sizeof(struct vrb_atomic_eth))
#define ATOMIC_ACK ((uint8_t)(AETH + sizeof(struct vrb_atomic_ack_eth)))
#define IMM 4
#define INV ((uint8_t)sizeof(struct vrb_ieth))

#define OP(code, str, len, fl) [code] = { .name = str, .flags = VRB_OP_VALID | (fl), .ext_len = (len) }

static const struct vrb_opcode_info table[VRB_RC_OPCODES] = {
	OP(VRB_RC_SEND_FIRST, "SEND First", 0, VRB_OP_SEND | VRB_OP_FIRST | VRB_OP_PAYLOAD),
	OP(VRB_RC_SEND_MIDDLE, "SEND Middle", 0, VRB_OP_SEND | VRB_OP_PAYLOAD),
	OP(VRB_RC_SEND_LAST, "SEND Last", 0, VRB_OP_SEND | VRB_OP_LAST | VRB_OP_PAYLOAD),
	OP(VRB_RC_SEND_LAST_IMM, "SEND Last with immediate", IMM,
		VRB_OP_SEND | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_IMM),
	OP(VRB_RC_SEND_ONLY, "SEND Only", 0, VRB_OP_SEND | VRB_OP_FIRST | VRB_OP_LAST | VRB_OP_PAYLOAD),
	OP(VRB_RC_SEND_ONLY_IMM, "SEND Only with immediate", IMM,
		VRB_OP_SEND | VRB_OP_FIRST | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_IMM),
	OP(VRB_RC_WRITE_FIRST, "WRITE First", RETH,
		VRB_OP_WRITE | VRB_OP_FIRST | VRB_OP_PAYLOAD | VRB_OP_RETH),
	OP(VRB_RC_WRITE_MIDDLE, "WRITE Middle", 0, VRB_OP_WRITE | VRB_OP_PAYLOAD),
	OP(VRB_RC_WRITE_LAST, "WRITE Last", 0, VRB_OP_WRITE | VRB_OP_LAST | VRB_OP_PAYLOAD),
	OP(VRB_RC_WRITE_LAST_IMM, "WRITE Last with immediate", IMM,
		VRB_OP_WRITE | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_IMM),
	OP(VRB_RC_WRITE_ONLY, "WRITE Only", RETH,
		VRB_OP_WRITE | VRB_OP_FIRST | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_RETH),
	OP(VRB_RC_WRITE_ONLY_IMM, "WRITE Only with immediate", RETH + IMM,
		VRB_OP_WRITE | VRB_OP_FIRST | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_RETH | VRB_OP_IMM),
	OP(VRB_RC_READ_REQUEST, "READ Request", RETH, VRB_OP_READ | VRB_OP_FIRST | VRB_OP_LAST | VRB_OP_RETH),
	OP(VRB_RC_READ_RESP_FIRST, "READ Response First", AETH,
		VRB_OP_RESPONSE | VRB_OP_READ | VRB_OP_FIRST | VRB_OP_PAYLOAD | VRB_OP_AETH),
	OP(VRB_RC_READ_RESP_MIDDLE, "READ Response Middle", 0, VRB_OP_RESPONSE | VRB_OP_READ | VRB_OP_PAYLOAD),
	OP(VRB_RC_READ_RESP_LAST, "READ Response Last", AETH,
		VRB_OP_RESPONSE | VRB_OP_READ | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_AETH),
	OP(VRB_RC_READ_RESP_ONLY, "READ Response Only", AETH,
		VRB_OP_RESPONSE | VRB_OP_READ | VRB_OP_FIRST | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_AETH),
	OP(VRB_RC_ACK, "Acknowledge", AETH, VRB_OP_RESPONSE | VRB_OP_AETH),
	OP(VRB_RC_ATOMIC_ACK, "Atomic Acknowledge", ATOMIC_ACK,
		VRB_OP_RESPONSE | VRB_OP_ATOMIC | VRB_OP_AETH),
	OP(VRB_RC_CMP_SWAP, "Compare and Swap", ATOMIC, VRB_OP_ATOMIC | VRB_OP_FIRST | VRB_OP_LAST),
	OP(VRB_RC_FETCH_ADD, "Fetch and Add", ATOMIC, VRB_OP_ATOMIC | VRB_OP_FIRST | VRB_OP_LAST),
	OP(VRB_RC_SEND_LAST_INV, "SEND Last with invalidate", INV,
		VRB_OP_SEND | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_INV),
	OP(VRB_RC_SEND_ONLY_INV, "SEND Only with invalidate", INV,
		VRB_OP_SEND | VRB_OP_FIRST | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_INV),
};

const struct vrb_opcode_info *
vrb_opcode_info(uint8_t opcode)
{
	if (opcode >= VRB_RC_OPCODES || !(table[opcode].flags & VRB_OP_VALID))
		return NULL;
	return &table[opcode];
}
