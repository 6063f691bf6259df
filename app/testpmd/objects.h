/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects that a person has made at the prompt, each with a number of the person's choice that
 * is unique among those of its kind.
 */
#ifndef TESTPMD_OBJECTS_H
#define TESTPMD_OBJECTS_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/queue.h>

#include "raw.h"
#include "vrb_roce.h"

enum tp_kind {
	TP_MR,
	TP_CQ,
	TP_SRQ,
	TP_WQ,
	TP_IND_TABLE,
	TP_QP,
	TP_FLOW,
	TP_KINDS,
};

#define TP_MAX_ID 65535

/** First member of each object. */
struct tp_obj {
	enum tp_kind kind;
	uint32_t id;
	TAILQ_ENTRY(tp_obj) link;
};

TAILQ_HEAD(tp_objs, tp_obj);

/** Memory of ours, registered. */
struct tp_mem {
	uint8_t *addr;
	size_t size;
	struct vrb_mr *mr;
};

struct tp_mr {
	struct tp_obj obj;
	struct tp_mem mem;
};

struct tp_cq {
	struct tp_obj obj;
	struct vrb_cq *cq;
	_Atomic uint64_t notified; /* notifications */
	_Atomic uint64_t taken; /* completions that were taken out */
};

/** Buffers for a receive queue, one for each of its entries. */
struct tp_buffers {
	struct vrb_rq *rq;
	struct tp_mem mem;
	uint32_t size; /* bytes of one */
	uint32_t num;
	uint32_t num_free;
	uint32_t *free; /* a stack of indices */
};

struct tp_srq {
	struct tp_obj obj;
	struct vrb_srq *srq;
	struct tp_buffers buffers;
	_Atomic uint64_t limit_events;
};

struct tp_job;

struct tp_wq {
	struct tp_obj obj;
	struct vrb_wq *wq;
	struct tp_cq *cq;
	struct tp_buffers buffers;
	_Atomic uint64_t frames, bytes; /* received by a sink */
	struct tp_job *sink; /* or NULL */
};

struct tp_ind_table {
	struct tp_obj obj;
	struct vrb_ind_tbl *tbl;
	uint32_t num; /* of its entries */
	struct tp_wq **wqs;
};

struct tp_qp {
	struct tp_obj obj;
	struct vrb_qp *qp;
	enum vrb_qp_type type;
	struct tp_cq *send_cq, *recv_cq;
	struct tp_srq *srq;
	struct tp_ind_table *ind_table;
	struct tp_buffers buffers;
	uint32_t psn; /* the first that we send */
	uint32_t qkey;
	uint32_t max_inline, max_send_wr, max_recv_wr, max_sge;
	/* UD: where it sends to */
	struct vrb_ah *ah;
	uint32_t remote_qpn, remote_qkey;
	/* What sends and what receives by it now, or NULL. */
	struct tp_job *initiator, *sink;
};

struct rte_flow;

struct tp_flow {
	struct tp_obj obj;
	char *text; /* the rule, as it was typed */
	/* of a port */
	uint16_t port;
	struct rte_flow *rule;
	/* or of a queue pair */
	struct tp_qp *qp;
	struct vrb_flow *flow;
	struct vrb_flow_count count;
};

/** The word for a kind: "srq". */
const char *tp_kind_name(enum tp_kind kind);
/** "shared receive queue". */
const char *tp_kind_title(enum tp_kind kind);

struct tp_objs *tp_objects(enum tp_kind kind);
unsigned int tp_object_count(enum tp_kind kind);
/** @return NULL: there is none of that number */
struct tp_obj *tp_object_find(enum tp_kind kind, uint32_t id);
/** A zeroed object of @p size bytes, in the table. @return NULL: no memory */
void *tp_object_new(enum tp_kind kind, uint32_t id, size_t size);
/** Takes it out of the table and frees it. */
void tp_object_free(struct tp_obj *obj);

#endif
