/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two engines: the input says what is posted, when which of them runs, and what happens to the
 * packets on the way: lost, doubled, kept back, or with other bytes and a right ICRC (a peer that
 * misbehaves).
 */
#include <string.h>

#include <rte_common.h>

#include "fuzz.h"

#define QUEUE 64

struct wire {
	struct input *in;
	struct {
		uint8_t data[4400];
		uint32_t len;
	} kept[QUEUE];
	unsigned int n;
};

static void
keep(void *ctx, const uint8_t *p, uint32_t len)
{
	struct wire *w = ctx;

	/* A full wire loses. */
	if (w->n == QUEUE)
		return;
	memcpy(w->kept[w->n].data, p, len);
	w->kept[w->n++].len = len;
}

static void
change(struct input *in, uint8_t *p, uint32_t len)
{
	uint32_t at = 42 + in_below(in, 44);

	if (at < len - 4)
		p[at] = in_u8(in);
	frame_fix_icrc(p, len);
}

static void
deliver(struct wire *w, struct side *to, struct input *in)
{
	unsigned int i = 0;
	uint8_t what;

	if (w->n == 0)
		return;
	what = in_u8(in);
	if (what & 0x40)
		i = in_below(in, w->n);
	if ((what & 7) == 0) {
		change(in, w->kept[i].data, w->kept[i].len);
		side_receive(to, w->kept[i].data, w->kept[i].len);
	} else if ((what & 7) != 1) {
		side_receive(to, w->kept[i].data, w->kept[i].len);
	}
	if ((what & 0x38) == 0x38)
		return; /* it stays, and comes again */
	w->n--;
	memmove(&w->kept[i], &w->kept[i + 1], (w->n - i) * sizeof(w->kept[0]));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct wire wire[2];
	struct input in = {data, size};
	struct side s[2];

	fuzz_init();
	for (unsigned int k = 0; k < 2; k++) {
		side_start(&s[k], k);
		wire[k].n = 0;
	}
	for (unsigned int i = 0; i < FUZZ_QPS; i++) {
		side_connect(&s[0], i, vrb_qp_num(s[1].qp[i]), 0xfffff0, 0x1000, VRB_QPS_RTS);
		side_connect(&s[1], i, vrb_qp_num(s[0].qp[i]), 0x1000, 0xfffff0, VRB_QPS_RTS);
	}
	for (unsigned int steps = 0; in.left > 0 && steps < 400; steps++) {
		uint8_t op = in_u8(&in);
		unsigned int k = op & 1;

		switch (op >> 1 & 7) {
		case 0:
		case 1:
			side_post(&s[k], &in);
			break;
		case 2:
			s[k].now += 1u << in_below(&in, 26);
			/* fall through */
		case 3:
			side_send(&s[k], keep, &wire[!k]);
			side_poll(&s[k]);
			break;
		case 4:
			side_send(&s[0], keep, &wire[1]);
			side_send(&s[1], keep, &wire[0]);
			break;
		default:
			deliver(&wire[k], &s[k], &in);
		}
	}
	side_poll(&s[0]);
	side_poll(&s[1]);
	side_stop(&s[1]);
	side_stop(&s[0]);
	return 0;
}
