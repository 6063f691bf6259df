/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The figures of running processes, as lib/verbs/verbs_figures.c writes them out.
 */
#ifndef VERBENA_FIGURES_H
#define VERBENA_FIGURES_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define VRB_LISTED_MAX 256 /* of a kind of object */
#define VRB_STATS_MAX 64

struct vrb_figures {
	pid_t pid;
	char name[32]; /* of the program */
	char segment[72], address[64], port[64], driver[64];
	uint32_t pds, mrs, qps, cqs, srqs, wqs, ind_tbls, flows;
	int num_stat, num_srq, num_cq, num_wq, num_qp;
	struct {
		char name[32];
		uint64_t value;
	} stat[VRB_STATS_MAX];
	struct {
		uint32_t num, max_wr, posted, limit, users;
		uint64_t dry;
	} srq[VRB_LISTED_MAX];
	struct {
		uint32_t num, size, waiting, completions;
		int armed, overrun;
	} cq[VRB_LISTED_MAX];
	struct {
		uint32_t num, max_wr, posted;
		char state[8];
	} wq[VRB_LISTED_MAX];
	struct {
		uint32_t num, sends, receives, srq;
		char type[12], state[8];
	} qp[VRB_LISTED_MAX];
};

/**
 * The processes of this user that have the device open.
 *
 * @param pids room for @p max
 * @return how many there are, at most @p max
 */
int vrb_figures_pids(pid_t *pids, int max);

/** @return 0; -ENOENT: there is no such process with the device; -errno, -EPROTO: another version
 */
int vrb_figures_read(pid_t pid, struct vrb_figures *f);

/** A figure by its name; 0 when there is none. */
uint64_t vrb_figures_stat(const struct vrb_figures *f, const char *name);

#endif
