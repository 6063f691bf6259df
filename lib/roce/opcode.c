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
#define DETH ((uint8_t)sizeof(struct vrb_deth))
#define XRCETH ((uint8_t)sizeof(struct vrb_xrceth))

/*
 * x, xfl: what a transport puts in front of the extended headers of its requests.
 */
#define OP(code, str, len, fl) \
	[code] = {.name = str, .flags = VRB_OP_VALID | (fl), .ext_len = (uint8_t)(len)}

#define SEND_WRITE_OPS(t, str, x, xfl) \
	OP((t) | VRB_RC_SEND_FIRST, str " SEND First", 0 + (x), \
		VRB_OP_SEND | VRB_OP_FIRST | VRB_OP_PAYLOAD | (xfl)), \
		OP((t) | VRB_RC_SEND_MIDDLE, str " SEND Middle", 0 + (x), \
			VRB_OP_SEND | VRB_OP_PAYLOAD | (xfl)), \
		OP((t) | VRB_RC_SEND_LAST, str " SEND Last", 0 + (x), \
			VRB_OP_SEND | VRB_OP_LAST | VRB_OP_PAYLOAD | (xfl)), \
		OP((t) | VRB_RC_SEND_LAST_IMM, str " SEND Last with immediate", IMM + (x), \
			VRB_OP_SEND | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_IMM | (xfl)), \
		OP((t) | VRB_RC_SEND_ONLY, str " SEND Only", 0 + (x), \
			VRB_OP_SEND | VRB_OP_FIRST | VRB_OP_LAST | VRB_OP_PAYLOAD | (xfl)), \
		OP((t) | VRB_RC_SEND_ONLY_IMM, str " SEND Only with immediate", IMM + (x), \
			VRB_OP_SEND | VRB_OP_FIRST | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_IMM | \
				(xfl)), \
		OP((t) | VRB_RC_WRITE_FIRST, str " WRITE First", RETH + (x), \
			VRB_OP_WRITE | VRB_OP_FIRST | VRB_OP_PAYLOAD | VRB_OP_RETH | (xfl)), \
		OP((t) | VRB_RC_WRITE_MIDDLE, str " WRITE Middle", 0 + (x), \
			VRB_OP_WRITE | VRB_OP_PAYLOAD | (xfl)), \
		OP((t) | VRB_RC_WRITE_LAST, str " WRITE Last", 0 + (x), \
			VRB_OP_WRITE | VRB_OP_LAST | VRB_OP_PAYLOAD | (xfl)), \
		OP((t) | VRB_RC_WRITE_LAST_IMM, str " WRITE Last with immediate", IMM + (x), \
			VRB_OP_WRITE | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_IMM | (xfl)), \
		OP((t) | VRB_RC_WRITE_ONLY, str " WRITE Only", RETH + (x), \
			VRB_OP_WRITE | VRB_OP_FIRST | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_RETH | \
				(xfl)), \
		OP((t) | VRB_RC_WRITE_ONLY_IMM, str " WRITE Only with immediate", \
			RETH + IMM + (x), \
			VRB_OP_WRITE | VRB_OP_FIRST | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_RETH | \
				VRB_OP_IMM | (xfl))

#define RELIABLE_OPS(t, str, x, xfl) \
	OP((t) | VRB_RC_READ_REQUEST, str " READ Request", RETH + (x), \
		VRB_OP_READ | VRB_OP_FIRST | VRB_OP_LAST | VRB_OP_RETH | (xfl)), \
		OP((t) | VRB_RC_READ_RESP_FIRST, str " READ Response First", AETH, \
			VRB_OP_RESPONSE | VRB_OP_READ | VRB_OP_FIRST | VRB_OP_PAYLOAD | \
				VRB_OP_AETH), \
		OP((t) | VRB_RC_READ_RESP_MIDDLE, str " READ Response Middle", 0, \
			VRB_OP_RESPONSE | VRB_OP_READ | VRB_OP_PAYLOAD), \
		OP((t) | VRB_RC_READ_RESP_LAST, str " READ Response Last", AETH, \
			VRB_OP_RESPONSE | VRB_OP_READ | VRB_OP_LAST | VRB_OP_PAYLOAD | \
				VRB_OP_AETH), \
		OP((t) | VRB_RC_READ_RESP_ONLY, str " READ Response Only", AETH, \
			VRB_OP_RESPONSE | VRB_OP_READ | VRB_OP_FIRST | VRB_OP_LAST | \
				VRB_OP_PAYLOAD | VRB_OP_AETH), \
		OP((t) | VRB_RC_ACK, str " Acknowledge", AETH, VRB_OP_RESPONSE | VRB_OP_AETH), \
		OP((t) | VRB_RC_ATOMIC_ACK, str " Atomic Acknowledge", ATOMIC_ACK, \
			VRB_OP_RESPONSE | VRB_OP_ATOMIC | VRB_OP_AETH), \
		OP((t) | VRB_RC_CMP_SWAP, str " Compare and Swap", ATOMIC + (x), \
			VRB_OP_ATOMIC | VRB_OP_FIRST | VRB_OP_LAST | (xfl)), \
		OP((t) | VRB_RC_FETCH_ADD, str " Fetch and Add", ATOMIC + (x), \
			VRB_OP_ATOMIC | VRB_OP_FIRST | VRB_OP_LAST | (xfl)), \
		OP((t) | VRB_RC_SEND_LAST_INV, str " SEND Last with invalidate", INV + (x), \
			VRB_OP_SEND | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_INV | (xfl)), \
		OP((t) | VRB_RC_SEND_ONLY_INV, str " SEND Only with invalidate", INV + (x), \
			VRB_OP_SEND | VRB_OP_FIRST | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_INV | \
				(xfl))

static const struct vrb_opcode_info table[256] = {
	SEND_WRITE_OPS(VRB_TRANSPORT_RC, "RC", 0, 0),
	RELIABLE_OPS(VRB_TRANSPORT_RC, "RC", 0, 0),
	/* IBTA A19.4. A READ Response Only without payload answers it. */
	OP(VRB_TRANSPORT_RC | VRB_RC_ATOMIC_WRITE, "RC ATOMIC WRITE", RETH,
		VRB_OP_ATOMIC | VRB_OP_FIRST | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_RETH),
	SEND_WRITE_OPS(VRB_TRANSPORT_UC, "UC", 0, 0),
	OP(VRB_TRANSPORT_UD | VRB_RC_SEND_ONLY, "UD SEND Only", DETH,
		VRB_OP_SEND | VRB_OP_FIRST | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_DETH),
	OP(VRB_TRANSPORT_UD | VRB_RC_SEND_ONLY_IMM, "UD SEND Only with immediate", DETH + IMM,
		VRB_OP_SEND | VRB_OP_FIRST | VRB_OP_LAST | VRB_OP_PAYLOAD | VRB_OP_IMM |
			VRB_OP_DETH),
	SEND_WRITE_OPS(VRB_TRANSPORT_XRC, "XRC", XRCETH, VRB_OP_XRCETH),
	RELIABLE_OPS(VRB_TRANSPORT_XRC, "XRC", XRCETH, VRB_OP_XRCETH),
};

const struct vrb_opcode_info *
vrb_opcode_info(uint8_t opcode)
{
	return table[opcode].flags & VRB_OP_VALID ? &table[opcode] : NULL;
}
