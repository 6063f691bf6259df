/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fuzzing of the engine: what the targets share. A target is LLVMFuzzerTestOneInput(), run by
 * libFuzzer, or by replay.c with any compiler.
 */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <stdint.h>

#include <vrb_roce.h>

#include "frame.h"
#include "rand.h"

#define FUZZ_MEM 65536u
#define FUZZ_QPS 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** Input, taken from the front; zeros when there is no more. */
struct input {
	const uint8_t *p;
	size_t left;
};
uint8_t in_u8(struct input *in);
uint32_t in_u32(struct input *in);
/** A number below @p n. */
uint32_t in_below(struct input *in, uint32_t n);
/** Up to @p max bytes. @return how many; *out is where */
uint32_t in_bytes(struct input *in, uint32_t max, const uint8_t **out);

/** An engine with memory between two guarded areas, a CQ, and room for queue pairs. */
struct side {
	unsigned int idx;
	struct vrb_engine *e;
	struct vrb_pd *pd;
	struct vrb_mr *mr, *read_only, *mw;
	struct vrb_cq *cq;
	struct vrb_srq *srq;
	struct vrb_qp *qp[FUZZ_QPS];
	uint8_t *mem;
	uint64_t now;
	uint32_t posted, polled;
};

/** Starts EAL, once. */
void fuzz_init(void);
void side_start(struct side *s, unsigned int idx);
/** Destroys everything and checks that no mbuf is lost and no byte outside the regions was written.
 */
void side_stop(struct side *s);
/** Moves a queue pair to @p state, by the path of the state machine. */
void side_connect(struct side *s, unsigned int i, uint32_t dest_qpn, uint32_t rq_psn,
	uint32_t sq_psn, enum vrb_qp_state state);
/** Posts one work request of any kind, or receives, as the input says. */
void side_post(struct side *s, struct input *in);
/** Takes completions. */
void side_poll(struct side *s);
/** Hands bytes to the engine. */
void side_receive(struct side *s, const uint8_t *p, uint32_t len);
/** Lets the engine send; each frame is given to @p to, or dropped when that is NULL. */
void side_send(struct side *s, void (*to)(void *ctx, const uint8_t *p, uint32_t len), void *ctx);

#endif
