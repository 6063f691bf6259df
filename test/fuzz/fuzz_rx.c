/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Raw frames into vrb_engine_rx(), with queue pairs in every state and work outstanding.
 *
 * The input is a list of steps. A frame is taken as it is, or has its ICRC made right, or the
 * headers of a good one are put before it, so that the fuzzer gets past the checks that it would
 * not pass by chance.
 */
#include <string.h>

#include <rte_common.h>

#include "fuzz.h"

static const enum vrb_qp_state states[FUZZ_QPS] = {
	VRB_QPS_RTS,
	VRB_QPS_RTS,
	VRB_QPS_RTR,
	VRB_QPS_RTS,
	VRB_QPS_SQD,
	VRB_QPS_ERR,
	VRB_QPS_INIT,
	VRB_QPS_RESET,
};

/* A frame that is right up to the transport, for one of the queue pairs, with the input's
 * transport. */
static void
good_headers(struct side *s, struct input *in)
{
	struct frame f = {.ttl = 64,
		.df = true,
		.sport = 0xc001,
		.dport = 4791,
		.pkey = 0xffff,
		.dmac = {0x52, 0x54, 0, 0x77, 0, 1},
		.smac = {0x52, 0x54, 0, 0x77, 0, 2},
		.saddr = {10, 77, 0, 2},
		.daddr = {10, 77, 0, 1}};
	uint8_t buf[4400], kind;

	f.opcode = in_u8(in);
	f.qpn = vrb_qp_num(s->qp[in_below(in, FUZZ_QPS)]);
	f.psn = (0x1000u * (1 + (in_u8(in) & 1)) + in_u8(in) - 8) & 0xffffff;
	kind = in_u8(in);
	f.se = kind & 1;
	f.ackreq = kind & 2;
	f.rkey = kind & 4    ? s->mr->rkey
		 : kind & 8  ? s->read_only->rkey
		 : kind & 16 ? s->mw->rkey
			     : in_u32(in);
	f.inv = kind & 32 ? s->mw->rkey : in_u32(in);
	f.va = kind & 64 ? 0x10000 + (in_u32(in) & 0x3fff) : in_u32(in);
	f.syndrome = in_u8(in);
	f.msn = in_u8(in);
	f.swap_add = in_u8(in);
	f.compare = in_u8(in);
	f.len = kind & 128 ? (256u << in_below(in, 5)) : in_below(in, 64);
	f.dmalen = in_u8(in) < 128 ? f.len : in_u32(in);
	f.pad = -f.len & 3;
	f.payload = s->mem;
	side_receive(s, buf, (uint32_t)frame_build(&f, buf, sizeof(buf)));
}

static void
raw(struct side *s, struct input *in, bool fix)
{
	uint32_t n = in_u8(in) | (uint32_t)(in_u8(in) & 3) << 8;
	uint8_t buf[1024];
	const uint8_t *p;

	n = in_bytes(in, n, &p);
	if (n == 0)
		return;
	memcpy(buf, p, n);
	if (fix && n >= 14 + 40 + 8 + 12 + 4)
		frame_fix_icrc(buf, n);
	side_receive(s, buf, n);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input in = {data, size};
	struct side s;

	fuzz_init();
	side_start(&s, 0);
	for (unsigned int i = 0; i < FUZZ_QPS; i++)
		side_connect(&s, i, 0x11 + i, 0x1000, 0x2000, states[i]);
	for (unsigned int steps = 0; in.left > 0 && steps < 200; steps++) {
		switch (in_u8(&in) % 8) {
		case 0:
			raw(&s, &in, false);
			break;
		case 1:
			raw(&s, &in, true);
			break;
		case 2:
			side_post(&s, &in);
			break;
		case 3:
			s.now += 1u << in_below(&in, 26);
			/* fall through */
		case 4:
			side_send(&s, NULL, NULL);
			side_poll(&s);
			break;
		default:
			good_headers(&s, &in);
		}
	}
	side_send(&s, NULL, NULL);
	side_poll(&s);
	side_stop(&s);
	return 0;
}
