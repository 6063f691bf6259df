/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figures: what an engine is doing, for a person who looks from outside. A copy made under the
 * baton, so that it can be written out without; nothing on the data path knows of it.
 */
#ifndef VRB_FIGURES_H
#define VRB_FIGURES_H

#include "vrb_roce.h"

/* So many of each kind are listed; the counts tell of all. */
#define VRB_FIGURES_MAX 256

struct vrb_srq_figures {
	uint32_t num, max_wr, posted, limit;
	uint32_t users; /* queue pairs */
	uint64_t dry; /* messages that found it empty */
};

struct vrb_cq_figures {
	uint32_t num, size, waiting;
	uint32_t completions; /* ever, modulo 2^32 */
	bool armed, overrun;
};

struct vrb_qp_figures {
	uint32_t qpn, type, state; /* enum vrb_qp_type, enum vrb_qp_state */
	uint32_t sends, receives; /* requests that wait */
	uint32_t srq; /* its number; 0: none */
};

struct vrb_wq_figures {
	uint32_t num, max_wr, posted, state;
};

struct vrb_figures {
	struct vrb_stats stats;
	uint32_t num_pds, num_mrs, num_qps, num_cqs, num_srqs, num_wqs, num_ind_tbls, num_flows;
	/* listed */
	uint32_t srqs, cqs, qps, wqs;
	struct vrb_srq_figures srq[VRB_FIGURES_MAX];
	struct vrb_cq_figures cq[VRB_FIGURES_MAX];
	struct vrb_qp_figures qp[VRB_FIGURES_MAX];
	struct vrb_wq_figures wq[VRB_FIGURES_MAX];
};

/** With the baton. */
void vrb_engine_figures(const struct vrb_engine *e, struct vrb_figures *f);

#endif
