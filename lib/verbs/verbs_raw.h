/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of raw frames share: work queues, indirection tables, flow rules and counters.
 */
#ifndef VERBS_RAW_H
#define VERBS_RAW_H

#include "raw.h"
#include "verbs_private.h"

struct vrb_vwq {
	struct ibv_wq ibv;
	struct vrb_wq *wq;
	struct vrb_nic *nic;
	struct vrb_event fatal;
	struct vrb_obj obj;
};

struct vrb_vtbl {
	struct ibv_rwq_ind_table ibv;
	struct vrb_ind_tbl *tbl;
	struct vrb_obj obj;
};

/* What ibv_read_counters() fills in at an index: packets or bytes. */
struct vrb_counter_point {
	uint32_t index;
	enum ibv_counter_description what;
};

#define VRB_COUNTER_POINTS 64

struct vrb_vcounters {
	struct ibv_counters ibv;
	struct vrb_flow_count count; /* of all rules that count here */
	uint32_t flows; /* such rules; under the baton, as the points */
	uint32_t num_points;
	struct vrb_counter_point points[VRB_COUNTER_POINTS];
	struct vrb_obj obj;
};

struct vrb_vflow {
	struct ibv_flow ibv;
	struct vrb_flow *flow;
	struct vrb_vcounters *counters; /* or NULL */
	bool group; /* of ibv_attach_mcast() */
	struct vrb_obj obj;
};

VRB_TO(wq, vrb_vwq, ibv_wq)
VRB_TO(tbl, vrb_vtbl, ibv_rwq_ind_table)
VRB_TO(counters, vrb_vcounters, ibv_counters)
VRB_TO(flow, vrb_vflow, ibv_flow)

struct ibv_wq *vrb_verbs_create_wq(struct ibv_context *context, struct ibv_wq_init_attr *attr);
int vrb_verbs_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr);
int vrb_verbs_destroy_wq(struct ibv_wq *wq);
struct ibv_rwq_ind_table *vrb_verbs_create_rwq_ind_table(
	struct ibv_context *context, struct ibv_rwq_ind_table_init_attr *attr);
int vrb_verbs_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table);
struct ibv_flow *vrb_verbs_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *attr);
int vrb_verbs_destroy_flow(struct ibv_flow *flow);
struct ibv_counters *vrb_verbs_create_counters(
	struct ibv_context *context, struct ibv_counters_init_attr *attr);
int vrb_verbs_destroy_counters(struct ibv_counters *counters);
int vrb_verbs_attach_counters_point_flow(
	struct ibv_counters *counters, struct ibv_counter_attach_attr *attr, struct ibv_flow *flow);
int vrb_verbs_read_counters(
	struct ibv_counters *counters, uint64_t *values, uint32_t n, uint32_t flags);

/* verbs_flow_spec.c */
/** Makes a rule of the attributes. @param counters out: of its count action, or NULL. @return 0 or
 * an errno */
int vrb_flow_from_attr(const struct ibv_flow_attr *attr, struct vrb_flow_rule *rule,
	struct ibv_counters **counters);

#endif
