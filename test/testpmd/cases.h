/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of the commands of verbena-testpmd: one case for each, named by its pattern. A case types
 * lines as a person would, by way of cmdline_in(), and looks by the public calls of the engine and
 * of ethdev at what has become of it. Of a command that shows, the figures are compared with those
 * that the calls tell.
 */
#ifndef TESTPMD_CASES_H
#define TESTPMD_CASES_H

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <rte_ethdev.h>

#include "backend.h"
#include "commands.h"
#include "pattern.h"
#include "ports.h"
#include "post.h"
#include "traffic.h"

struct tp_case {
	const char *pattern;
	void (*run)(void);
};

struct tp_cases {
	const struct tp_case *cases;
	unsigned int num;
};

#define TP_CASES(cases_) \
	{ \
		.cases = cases_, .num = RTE_DIM(cases_) \
	}

extern const struct tp_cases base_cases, mr_cases, cq_cases, srq_cases, wq_cases, qp_cases,
	port_cases, rss_cases, flow_cases, traffic_cases, watch_cases;

/** Types a line that must do. @return what it printed, until the next line */
const char *run(const char *format, ...) __attribute__((format(printf, 1, 2)));
/** Types a line that must be refused with @p rc and a reason that holds @p part. */
void refuse(int rc, const char *part, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/** The number behind the word @p key. Fails if there is none. */
uint64_t number(const char *out, const char *key);
/** Fails unless @p out holds @p part. */
void holds(const char *out, const char *part);

/** The objects of that number; fail if there are none. */
struct tp_mr *mr_of(uint32_t id);
struct tp_cq *cq_of(uint32_t id);
struct tp_srq *srq_of(uint32_t id);
struct tp_wq *wq_of(uint32_t id);
struct tp_ind_table *table_of(uint32_t id);
struct tp_qp *qp_of(uint32_t id);

/** CQ 1 and the queue pairs 1 and 2 of a type, connected with each other. */
void make_pair(const char *type);
/** CQ 1, ready WQs 1 and 2, table 1 over both, queue pair 1 over it, and 2 for raw frames. */
void make_rss(void);
/** Port of net_verbena over net_ring, whose frames come back: 4 Rx queues, 2 Tx queues. */
uint16_t loop_port(void);
/** An extended statistic of loop_port(). */
uint64_t xstat(const char *name);
/** What its Rx queue has received, by the extended statistics. */
uint64_t queue_frames(uint16_t queue);
/** Runs until a counter is @p want. Fails after some seconds. */
void wait_until(uint64_t (*get)(void *arg), void *arg, uint64_t want);

#endif
