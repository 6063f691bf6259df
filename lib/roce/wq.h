/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues, and the tables of them by which RSS queue pairs spread what they receive.
 *
 * A work queue is a receive queue with a CQ and a state of its own. Its states and who may go where
 * (ibv_modify_wq(3)):
 *
 *            to  RESET  RDY  ERR
 *   from RESET    x     x
 *        RDY      x     x    x
 *        ERR      x          x
 *
 * In RESET nothing can be posted, and frames are dropped; in ERR what is posted is flushed.
 */
#ifndef VRB_WQ_H
#define VRB_WQ_H

#include <sys/queue.h>

#include "vrb_roce.h"

/** Values of enum ibv_wq_state. */
enum vrb_wq_state {
	VRB_WQS_RESET = 0,
	VRB_WQS_RDY = 1,
	VRB_WQS_ERR = 2,
	VRB_WQS_NUM = 3,
};

/* What is done to a frame on its way into a receive. Values of enum ibv_wq_flags. */
#define VRB_RX_STRIP_CVLAN (1u << 0) /* the 802.1Q tag goes into the completion */
#define VRB_RX_SCATTER_FCS (1u << 1) /* the frame check sequence is added */

/** What a queue that receives frames has besides. */
struct vrb_raw_queue {
	uint32_t epoch; /* the frame that it got last */
	uint32_t held; /* frames that are held for it */
	bool gave_up; /* they were dropped, since nothing was posted */
};

struct vrb_wq {
	struct vrb_rq rq;
	struct vrb_engine *engine;
	struct vrb_pd *pd;
	struct vrb_cq *cq;
	void *user;
	_Atomic uint32_t state; /* enum vrb_wq_state; written under the baton */
	uint32_t flags; /* VRB_RX_* */
	uint32_t num;
	uint32_t refs; /* entries of tables */
	struct vrb_raw_queue raw;
	TAILQ_ENTRY(vrb_wq) link;
};

/**
 * Makes a work queue in RESET.
 * @param max_wr, max_sge in: what is wanted, out: what there is. @return 0, -EINVAL (limits),
 * -ENOMEM
 */
int vrb_wq_create(struct vrb_engine *e, struct vrb_pd *pd, struct vrb_cq *cq, uint32_t *max_wr,
	uint32_t *max_sge, uint32_t flags, void *user, struct vrb_wq **wq);
/** @return 0, or -EBUSY while a table has it */
int vrb_wq_destroy(struct vrb_wq *wq);
/** @return 0, or -EINVAL: the state cannot be gone to */
int vrb_wq_modify(struct vrb_wq *wq, enum vrb_wq_state to, uint64_t now);
/** Flushes what was posted to a queue in ERR. */
void vrb_wq_flush(struct vrb_wq *wq, uint64_t now);

/** Needs no baton. */
static inline enum vrb_wq_state
vrb_wq_state(const struct vrb_wq *wq)
{
	return (enum vrb_wq_state)atomic_load_explicit(&wq->state, memory_order_relaxed);
}

/** A table of work queues, indexed by a hash. */
struct vrb_ind_tbl {
	struct vrb_engine *engine;
	uint32_t refs; /* queue pairs that use it */
	uint32_t num;
	uint32_t mask; /* size - 1 */
	TAILQ_ENTRY(vrb_ind_tbl) link;
	struct vrb_wq *wqs[];
};

/** @param size a power of two up to VRB_MAX_IND_TBL_SIZE; a work queue may stand in it many times.
 * @return 0, -EINVAL, -ENOMEM */
int vrb_ind_tbl_create(
	struct vrb_engine *e, struct vrb_wq *const *wqs, uint32_t size, struct vrb_ind_tbl **tbl);
/** @return 0, or -EBUSY while a queue pair uses it */
int vrb_ind_tbl_destroy(struct vrb_ind_tbl *tbl);

#endif
