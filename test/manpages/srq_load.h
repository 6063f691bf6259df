/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A shared receive queue under load: messages arrive and receives are posted while threads resize
 * it, arm its limit and query it.
 */
#ifndef SRQ_LOAD_H
#define SRQ_LOAD_H

#include "rules.h"
#include "srq_util.h"

/* What is done to it meanwhile. */
#define LOAD_RESIZE 1u
#define LOAD_LIMIT 2u
#define LOAD_QUERY 4u

/* Every message arrives, in the receive that was posted for it, and every arming of the limit gives
 * one event. */
void srq_load(struct rig *r, unsigned int what);

#endif
