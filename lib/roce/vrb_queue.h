/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The rings between a program and the engine: send queue, receive queue (private or shared) and
 * completion queue.
 *
 * Each has one producer and one consumer at a time:
 *
 *   ring   producer                              consumer
 *   SQ     the program, under sq->lock           the engine (requester), under the baton
 *   RQ     the program, under rq->lock           the engine (responder), under the baton
 *   CQ     the engine, under the baton           the program, under cq->lock
 *
 * Indices run freely (32 bits) and are masked on use; the index of each side stands in a cache line
 * that only that side writes. An entry is filled before the producer's index is stored with
 * release, and read after that index was loaded with acquire. Changing the ring itself (resize,
 * destroy) takes both the lock and the baton.
 */
#ifndef VRB_QUEUE_H
#define VRB_QUEUE_H

#include <stdatomic.h>
#include <stddef.h>
#include <sys/queue.h>

#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_spinlock.h>

#include "vrb_types.h"

struct vrb_engine;
struct vrb_qp;

/** A send work request as the engine executes it. The program fills the first part, the requester
 * owns the second. */
struct vrb_send_wqe {
	/* filled by the poster */
	uint64_t wr_id;
	uint8_t opcode; /* enum vrb_wr_opcode */
	uint8_t flags; /* VRB_SEND_* */
	uint8_t num_sge; /* 0 with VRB_SEND_INLINE */
	uint8_t reserved;
	uint32_t length; /* bytes of the message: sum of the SGEs, or of the inline data */
	uint32_t imm; /* immediate data (network order), or the R_Key to invalidate */
	uint32_t rkey;
	uint64_t remote_addr;
	union {
		struct {
			uint64_t compare_add; /* the value to compare with, or to add */
			uint64_t swap; /* ATOMIC WRITE without SGEs and inline data: the value */
		} atomic;
		struct {
			struct vrb_mr *mw; /* the window */
			struct vrb_mr *mr; /* the region it opens; with length 0 unused */
			uint64_t addr;
			uint64_t length;
			uint32_t access;
			uint32_t rkey; /* the window's new R_Key */
		} bind;
		struct {
			const struct vrb_ah *ah;
			uint32_t remote_qpn;
			uint32_t qkey; /* with the upper bit set: the queue pair's own instead */
		} ud;
	};
	uint32_t srqn; /* XRC: number of the shared receive queue at the other side */
	/* the requester's, from the first packet on */
	uint32_t first_psn;
	uint32_t last_psn;
	uint8_t started;
	uint8_t done; /* executed, waits for its predecessors */
	uint8_t status; /* enum vrb_wc_status, with done */
	uint8_t pad;
	/* then: struct vrb_sge[max_sge], or the inline data */
	uint8_t data[] __rte_aligned(16);
};

struct vrb_sq {
	/* written once */
	uint8_t *ring;
	uint32_t mask;
	uint32_t stride; /* bytes of an entry */
	uint32_t max_wr; /* entries that may be outstanding; at most mask + 1 */
	uint32_t max_sge;
	uint32_t max_inline;
	uint32_t sig_all;
	/* the poster's */
	rte_spinlock_t lock __rte_cache_aligned;
	uint32_t seen_tail; /* the last value of tail that the poster has loaded */
	_Atomic uint32_t head;
	/* the requester's */
	_Atomic uint32_t tail __rte_cache_aligned; /* oldest entry that has not completed */
	uint32_t next; /* the entry whose packets are being sent */
};

static inline struct vrb_send_wqe *
vrb_sq_at(const struct vrb_sq *sq, uint32_t idx)
{
	return (struct vrb_send_wqe *)(sq->ring + (size_t)(idx & sq->mask) * sq->stride);
}

/**
 * The @p k-th entry after those committed, or NULL when the queue is full. The caller holds
 * sq->lock, fills the entry (its first part only) and commits.
 */
static inline struct vrb_send_wqe *
vrb_sq_slot(struct vrb_sq *sq, uint32_t k)
{
	uint32_t idx = atomic_load_explicit(&sq->head, memory_order_relaxed) + k;

	if (unlikely(idx - sq->seen_tail >= sq->max_wr)) {
		/* Pairs with the release in the requester: a freed entry is no longer read. */
		sq->seen_tail = atomic_load_explicit(&sq->tail, memory_order_acquire);
		if (idx - sq->seen_tail >= sq->max_wr)
			return NULL;
	}
	return vrb_sq_at(sq, idx);
}

/** Publishes @p n filled entries. The caller holds sq->lock; afterwards the engine has to be told
 * (vrb_engine_ring()). */
static inline void
vrb_sq_commit(struct vrb_sq *sq, uint32_t n)
{
	uint32_t head = atomic_load_explicit(&sq->head, memory_order_relaxed);

	atomic_store_explicit(&sq->head, head + n, memory_order_release);
}

/** A receive work request. */
struct vrb_recv_wqe {
	uint64_t wr_id;
	uint32_t num_sge;
	uint32_t length; /* sum of the SGEs */
	struct vrb_sge sge[];
};

/** A receive queue: a QP's own, or an SRQ's. */
struct vrb_rq {
	uint8_t *ring;
	uint32_t mask;
	uint32_t stride;
	uint32_t max_wr;
	uint32_t max_sge;
	rte_spinlock_t lock __rte_cache_aligned;
	bool closed; /* of a queue in RESET: nothing is posted; under lock */
	uint32_t seen_tail;
	_Atomic uint32_t head;
	_Atomic uint32_t tail __rte_cache_aligned; /* next entry that the responder takes */
};

static inline struct vrb_recv_wqe *
vrb_rq_at(const struct vrb_rq *rq, uint32_t idx)
{
	return (struct vrb_recv_wqe *)(rq->ring + (size_t)(idx & rq->mask) * rq->stride);
}

/** As vrb_sq_slot(). */
static inline struct vrb_recv_wqe *
vrb_rq_slot(struct vrb_rq *rq, uint32_t k)
{
	uint32_t idx = atomic_load_explicit(&rq->head, memory_order_relaxed) + k;

	if (unlikely(idx - rq->seen_tail >= rq->max_wr)) {
		rq->seen_tail = atomic_load_explicit(&rq->tail, memory_order_acquire);
		if (idx - rq->seen_tail >= rq->max_wr)
			return NULL;
	}
	return vrb_rq_at(rq, idx);
}

static inline void
vrb_rq_commit(struct vrb_rq *rq, uint32_t n)
{
	uint32_t head = atomic_load_explicit(&rq->head, memory_order_relaxed);

	atomic_store_explicit(&rq->head, head + n, memory_order_release);
}

/** Entries posted and not yet taken; exact only for who holds the lock and the baton. */
static inline uint32_t
vrb_rq_count(const struct vrb_rq *rq)
{
	return atomic_load_explicit(&rq->head, memory_order_acquire) -
	       atomic_load_explicit(&rq->tail, memory_order_relaxed);
}

/** A completion. One cache line, so that no two completions share one. */
struct vrb_cqe {
	uint64_t wr_id;
	uint32_t status; /* enum vrb_wc_status */
	uint32_t opcode; /* enum vrb_wc_opcode */
	uint32_t vendor_err;
	uint32_t byte_len;
	uint32_t imm; /* immediate data (network order), or the invalidated R_Key */
	uint32_t qp_num;
	uint32_t src_qp;
	uint32_t wc_flags; /* VRB_WC_* */
	uint64_t timestamp; /* nanoseconds of the engine's clock */
	void *qp_user; /* vrb_qp_init.user of the QP */
	uint32_t flow_tag; /* of the flow rule that a frame came by; 0: none */
	uint16_t cvlan; /* VLAN tag that was taken out of a frame; 0: none */
	uint16_t reserved;
} __rte_cache_aligned;

/* What vrb_cq.armed holds. */
#define VRB_CQ_DISARMED 0u
#define VRB_CQ_ARMED_SOLICITED 1u
#define VRB_CQ_ARMED_ANY 2u

/** A deadline of the engine (timer.c), as part of whom it is for. */
struct vrb_timer {
	uint64_t at; /* when it is due, ns; 0: never */
	uint64_t key; /* its key in the heap: at most at */
	uint32_t pos; /* its place in the heap, from 1; 0: not in it */
	bool of_cq; /* a CQ's, not a queue pair's */
};

/** How long the notification of an armed CQ is held back. Under the baton. */
struct vrb_cq_moderation {
	uint32_t count; /* completions that end it; 0: no number does */
	uint64_t period; /* ns after the first of them; 0: no time does */
	/* Since the CQ was armed; 0 and unset when nothing is held back. */
	uint32_t held; /* completions that are to be told */
	uint64_t first; /* when the first of them came */
	struct vrb_timer timer;
};

struct vrb_cq {
	struct vrb_cqe *ring;
	uint32_t mask;
	uint32_t size; /* entries that fit: what cq->cqe tells */
	void *user;
	struct vrb_engine *engine;
	uint32_t refs; /* queue pairs that use it */
	uint32_t overrun; /* it has overflowed: nothing more is added */
	LIST_ENTRY(vrb_cq) link;
	uint32_t num; /* counts the CQs of the engine, so that a person can tell them apart */
	/* the program's */
	rte_spinlock_t lock __rte_cache_aligned;
	uint32_t seen_head;
	_Atomic uint32_t tail;
	/* the engine's */
	_Atomic uint32_t head __rte_cache_aligned;
	uint32_t seen_tail;
	uint32_t armed; /* under the baton */
	struct vrb_cq_moderation mod;
};

/** The oldest completion, or NULL. The caller holds cq->lock; the entry is valid until
 * vrb_cq_pop(). */
static inline struct vrb_cqe *
vrb_cq_peek(struct vrb_cq *cq)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	if (tail == cq->seen_head) {
		/* Pairs with the release of the engine: the entry, and the data it announces, are
		 * visible. */
		cq->seen_head = atomic_load_explicit(&cq->head, memory_order_acquire);
		if (tail == cq->seen_head)
			return NULL;
	}
	return &cq->ring[tail & cq->mask];
}

/** Gives back the entry that vrb_cq_peek() returned. The caller holds cq->lock. */
static inline void
vrb_cq_pop(struct vrb_cq *cq)
{
	uint32_t tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);

	/* Pairs with the engine's acquire before it writes over the entry. */
	atomic_store_explicit(&cq->tail, tail + 1, memory_order_release);
}

/** Whether a completion waits; without the lock, a hint. */
static inline bool
vrb_cq_empty(const struct vrb_cq *cq)
{
	return atomic_load_explicit(&cq->head, memory_order_acquire) ==
	       atomic_load_explicit(&cq->tail, memory_order_relaxed);
}

#endif
