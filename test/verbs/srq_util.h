/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of shared receive queues share.
 */
#ifndef SRQ_UTIL_H
#define SRQ_UTIL_H

#include "verbs_util.h"

/* On the rig's PD, with the rig as its context. @return NULL and errno when it is refused */
struct ibv_srq *make_srq(struct rig *r, uint32_t max_wr, uint32_t max_sge);

/* Posts a receive of 64 bytes at the upper half of the buffer. */
int post_srq(struct rig *r, struct ibv_srq *srq, uint64_t id);
/* Posts n of them, numbered from first. */
void fill_srq(struct rig *r, struct ibv_srq *srq, uint64_t first, uint64_t n);

/* The rig's queue pairs become two that receive from the SRQ, each sending to the other. */
void pair_on_srq(struct rig *r, struct ibv_srq *srq);
/* Destroys the rig's queue pairs, then the SRQ. */
void destroy_pair_and_srq(struct rig *r, struct ibv_srq *srq);

/* Sends one message; both completions are polled. @return wr_id of the receive */
uint64_t send_one(struct rig *r, struct ibv_qp *qp);

/* Attributes as the SRQ now reports them. */
struct ibv_srq_attr srq_attr_of(struct ibv_srq *srq);

#endif
