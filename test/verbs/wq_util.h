/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of work queues and of receive-side scaling share.
 */
#ifndef WQ_UTIL_H
#define WQ_UTIL_H

#include "raw_util.h"

/* A queue of 10 receives on the rig's PD and CQ. */
struct ibv_wq_init_attr wq_attr(struct rig *r);
struct ibv_wq *make_wq(struct rig *r);
/* @return what ibv_modify_wq() says */
int wq_to(struct ibv_wq *wq, enum ibv_wq_state state);
int post_wq(struct rig *r, struct ibv_wq *wq, uint64_t id);

#define RSS_LOG_SIZE 3
#define RSS_SIZE (1 << RSS_LOG_SIZE)
#define RSS_QUEUES 4
#define RSS_LEN 100 /* bytes of the frames that are sent */

/* Work queues with a CQ each, a table of them, and attributes of a queue pair with that table. */
struct rss {
	struct rig *r;
	struct ibv_wq *wq[RSS_QUEUES];
	struct ibv_cq *cq[RSS_QUEUES];
	struct ibv_wq *entries[RSS_SIZE];
	struct ibv_rwq_ind_table *tbl;
	struct ibv_qp_init_attr_ex attr;
};

/* @param fields IBV_RX_HASH_* */
struct rss open_rss(struct rig *r, uint64_t fields);
void close_rss(struct rss *s);

/* Fills each of the queues with receives. */
void post_all(struct rss *s);

/* Sends frames of many flows, and looks whether each has come by the queue that the hash and the
 * table foretell. @param off, len of what is hashed, in the frame */
void check_traffic(struct rss *s, uint32_t off, uint32_t len);

#endif
