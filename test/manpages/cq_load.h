/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A completion queue that is resized: filled on purpose, and under load.
 */
#ifndef CQ_LOAD_H
#define CQ_LOAD_H

#include <arpa/inet.h>

#include "rules.h"

/* A CQ that gets completions of receives only; those of sends go to another. */
struct cq_rig {
	struct rig *r; /* its queue pairs are used: a sends, b receives */
	struct ibv_cq *cq, *send_cq;
	bool solicited; /* messages ask for a solicited event */
};

/* @param cq the one to use, or NULL: one of @p cqe entries is made. The rig takes it over. */
struct cq_rig open_cq_rig(struct rig *r, int cqe, struct ibv_cq *cq);
void close_cq_rig(struct cq_rig *c);

/* Puts n completions into the CQ, whose wr_id and immediate data are the numbers from first on. */
void complete(struct cq_rig *c, uint32_t first, uint32_t n);
/* Sends one message whose completion does not fit. */
void overflow(struct cq_rig *c, uint32_t number);

/* How completions are taken while the CQ is resized. */
#define LOAD_POLL 1u
#define LOAD_NOTIFY 2u /* waiting for events when there is none */
#define LOAD_TWO_RESIZERS 4u

/* Every completion comes, once and in order. */
void cq_load(struct rig *r, unsigned int what);

#endif
