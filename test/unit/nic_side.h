/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC with one queue pair, and what a verbs library does with it: for tests and the benchmark.
 * What fails ends the process.
 */
#ifndef NIC_SIDE_H
#define NIC_SIDE_H

#include "vrb_nic.h"

#define SIDE_DEPTH 512 /* work requests of the send and of the receive queue */
#define SIDE_BUFFER \
	(4u << 20) /* receives go to its first half; WRITEs come from its second, all others from \
		      its first */

/** What the other side has to know. */
struct side_hello {
	union vrb_gid gid;
	uint32_t qpn, rkey;
	uint64_t addr;
};

struct side {
	struct vrb_nic *nic;
	struct vrb_engine *engine;
	struct vrb_pd *pd;
	struct vrb_cq *cq;
	struct vrb_qp *qp;
	struct vrb_mr *mr;
	uint8_t *buf;
	int event; /* eventfd of the CQ's notifications */
	int failed; /* status of the last completion that was none of success */
	struct side_hello peer;
};

/** Ends the process with @p what unless @p rc is 0 or more. */
void side_check(int rc, const char *what);
/** @param conf ops and ctx are set here */
void side_open(struct side *s, struct vrb_nic_conf *conf, struct side_hello *hello);
void side_connect(struct side *s, const struct side_hello *peer);
void side_close(struct side *s);
void side_post_recv(struct side *s, unsigned int n);
void side_post_send(struct side *s, enum vrb_wr_opcode op, uint32_t len);
/** As ibv_poll_cq() of one entry. @return the opcode, -1: empty */
int side_poll(struct side *s);
/** Polls until there is one. */
int side_wait(struct side *s);
/** Sleeps until there is one. @return whether there was in time */
bool side_wait_event(struct side *s, int ms);

#endif
