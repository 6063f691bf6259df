/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs on their way through their states.
 */
#ifndef TESTPMD_QP_STATE_H
#define TESTPMD_QP_STATE_H

#include "objects.h"

/** The other side. */
struct tp_qp_peer {
	union vrb_gid gid;
	uint32_t qpn, psn, qkey;
	uint32_t mtu; /* bytes, 0: the largest */
	uint8_t timeout, retry, rnr_retry;
};

/** Words for the states that a person can take it to. */
extern const char *const tp_qp_targets[];

/** After creation or a reset: as far as it gets without a peer. @return 0, or -errno after
 * tp_refuse() */
int tp_qp_prepare(struct tp_qp *qp);
/** @return 0, or -errno after tp_refuse(): its type, or its state */
int tp_qp_may_connect(const struct tp_qp *qp);
int tp_qp_connect(struct tp_qp *qp, const struct tp_qp_peer *peer);
/** Gives up what it sends: to state error. @return 0, or -errno after tp_refuse() */
int tp_qp_flush(struct tp_qp *qp);
/** @param target index of tp_qp_targets */
int tp_qp_to(struct tp_qp *qp, unsigned int target);

#endif
