/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs of raw frames: they send frames as the program has made them, and receive what flow
 * rules give them.
 *
 * Sending. A frame is complete when it was handed to the port, or to ourselves: one that is
 * addressed to our own MAC address does not leave the engine, one to a group is copied to it. A
 * group's frame does not come back to the queue pair that has sent it.
 *
 * Receiving. A frame that is longer than the receive completes it with LOC_LEN_ERR, and the queue
 * goes on: what arrives is anybody's, and must not stop it. A frame that finds no receive is held
 * for a while, during which nothing is received from the port; when none was posted in that time it
 * is dropped and counted, and so are those that follow, at once, until the program posts receives
 * again. RoCE packets to our addresses are the engine's and go by no rule; sniffers see a copy of
 * them, and of what is sent.
 */
#ifndef VRB_RAW_H
#define VRB_RAW_H

#include "flow.h"
#include "rss.h"
#include "wq.h"

/** A flow rule of a queue pair. */
struct vrb_flow {
	struct vrb_flow_rule rule;
	struct vrb_qp *qp;
	TAILQ_ENTRY(vrb_flow) link;
};

/**
 * Sends frames that match to a queue pair of raw frames.
 * @param rule what is wanted; copied. dest is filled in. @return 0, -EINVAL (type of the queue
 * pair), -ENOMEM
 */
int vrb_flow_create(struct vrb_engine *e, struct vrb_qp *qp, const struct vrb_flow_rule *rule,
	struct vrb_flow **flow);
void vrb_flow_destroy(struct vrb_engine *e, struct vrb_flow *flow);
/** Rules that send frames to the queue pair. */
uint32_t vrb_qp_flows(const struct vrb_qp *qp);

/** What the rules want the port to receive besides frames to its own address. */
void vrb_flow_filter(const struct vrb_engine *e, bool *promiscuous, bool *allmulticast);

#endif
