/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests: memory for them, receives, sends, and taking completions.
 */
#ifndef TESTPMD_POST_H
#define TESTPMD_POST_H

#include "objects.h"

/* What a wr_id of ours tells: what was posted, and an index. */
#define TP_WR_RECV (UINT64_C(1) << 63) /* of a buffer */
#define TP_WR_ECHO (UINT64_C(1) << 62) /* a send from a receive buffer */
#define TP_WR_CHECK (UINT64_C(1) << 61) /* a READ that verifies what was written */
#define TP_WR_INDEX UINT64_C(0xffffffff)

/** Bytes in front of a datagram that is received: room for the GRH. */
#define TP_GRH_SIZE 40

#define TP_ACCESS_ALL \
	(VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE_WRITE | VRB_ACCESS_REMOTE_READ | \
		VRB_ACCESS_REMOTE_ATOMIC)

/** Maps zeroed memory and registers it. @return 0, or -errno after tp_refuse() */
int tp_mem_alloc(struct tp_mem *mem, size_t size, uint32_t access);
/** @return 0 or -EBUSY: a window is bound to it */
int tp_mem_free(struct tp_mem *mem);

/**
 * Makes buffers for a receive queue, unless it has some.
 * @param num how many the queue may ever hold
 * @return 0, or -errno after tp_refuse()
 */
int tp_buffers_make(struct tp_buffers *b, struct vrb_rq *rq, uint32_t num, uint32_t size);
/** All are free: what was posted has been forgotten. */
void tp_buffers_reset(struct tp_buffers *b);
void tp_buffers_free(struct tp_buffers *b);
static inline uint8_t *
tp_buffer_at(const struct tp_buffers *b, uint32_t i)
{
	return b->mem.addr + (size_t)i * b->size;
}
/** Posts up to @p num free buffers. @return how many */
uint32_t tp_buffers_post(struct tp_buffers *b, uint32_t num);
/** A completion has given it back. */
void tp_buffers_put(struct tp_buffers *b, uint32_t i);
/** The buffers that an object receives into: a queue pair's own or its SRQ's, or a work queue's. */
struct tp_buffers *tp_buffers_of(struct tp_obj *obj);

struct tp_send {
	enum vrb_wr_opcode opcode;
	uint64_t wr_id;
	const uint8_t *addr;
	uint32_t length;
	uint32_t lkey;
	uint64_t remote_addr;
	uint32_t rkey;
};

/** Posts a signaled send; the engine is to be told with tp_kick(). @return 0, -ENOBUFS: the queue
 * is full; or another -errno: it cannot be sent */
int tp_post_send(struct tp_qp *qp, const struct tp_send *send);

/** Takes completions. @return how many */
unsigned int tp_cq_take(struct tp_cq *cq, struct vrb_cqe *cqes, unsigned int max);
/** Entries that wait in it. */
uint32_t tp_cq_count(const struct vrb_cq *cq);
/** The object goes: its completions that still wait are nobody's. Under the baton. */
void tp_cq_forget(struct tp_cq *cq, const void *user);

const char *tp_status_name(enum vrb_wc_status status);
const char *tp_state_name(enum vrb_qp_state state);

#endif
