/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The board: what an engine lets its peers know, so that they can move the payload of a WRITE or
 * READ themselves (the direct path): its memory regions, and its queue pairs that are connected. It
 * stands in memory that the peers have mapped too.
 *
 * The owner writes it under the baton. A peer looks at it, and moves bytes, only while it holds a
 * lock that the owner can wait for. So an entry does not change while somebody goes by it:
 *
 *   owner  fills an entry, then marks it valid; to change or remove it, marks it invalid and waits
 *          until nobody who may have seen it valid is still moving bytes (vrb_direct_ops.settle)
 *   peer   takes its lock, finds the entries valid, moves the bytes, gives the lock back
 *
 * Only what would go well is found here. Whatever the board refuses is sent in packets, and gets
 * the answer that it deserves from the responder.
 */
#ifndef VRB_BOARD_H
#define VRB_BOARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "vrb_limits.h"
#include "vrb_types.h"

/* Changes with the layout. */
#define VRB_BOARD_MAGIC UINT64_C(0x31304452424f5256)

struct vrb_board_mr {
	_Atomic uint32_t rkey; /* 0: the entry is invalid */
	uint32_t access;
	uint64_t pd;
	uint64_t addr, iova, length;
};

struct vrb_board_qp {
	_Atomic uint32_t gen; /* of the connection; 0: the entry is invalid */
	uint32_t qpn, dest_qpn, rq_psn;
	uint32_t access;
	uint32_t pad;
	uint64_t pd;
	union vrb_gid peer;
};

struct vrb_board {
	uint64_t magic;
	_Atomic uint32_t shut; /* everything has to come in packets */
	uint8_t pad[52];
	struct vrb_board_qp qp[VRB_MAX_QP]; /* by the low bits of the QPN */
	struct vrb_board_mr mr[VRB_MAX_MR]; /* by key >> 8; mostly never touched */
};

/** What a peer wants to do. */
struct vrb_board_req {
	bool write;
	uint32_t qpn; /* the owner's queue pair */
	uint32_t gen; /* of its connection, as it was found the first time; 0: this is it */
	uint32_t src_qpn, sq_psn; /* the peer's queue pair, and the PSN that it started with */
	union vrb_gid src; /* its address */
	uint32_t rkey;
	uint64_t va;
	uint64_t len; /* of the whole message */
};

/**
 * Looks a request up, as a responder would (vrb_mr_remote()). With the peer's lock.
 *
 * @param board another process's: it may hold anything
 * @param gen out: of the connection
 * @return the address in the owner's memory, or 0: to be sent in packets
 */
uint64_t vrb_board_check(
	const struct vrb_board *board, const struct vrb_board_req *req, uint32_t *gen);

#endif
