/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What `verbena info` tells of running processes: which there are, and with --pid all of one.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "figures.h"
#include "verbena.h"

#define PROCESSES_MAX 256

void
vrb_process_list(const char *segment)
{
	pid_t pids[PROCESSES_MAX];
	int i, shown = 0, n = vrb_figures_pids(pids, PROCESSES_MAX);
	struct vrb_figures *f = malloc(sizeof(*f));

	printf("\nWho has the device open\n");
	for (i = 0; f && i < n; i++) {
		/* This command has it open as well, to show it. */
		if (pids[i] == getpid() || vrb_figures_read(pids[i], f) ||
			strcmp(f->segment, segment) != 0)
			continue;
		printf("  %-18d %-16s %s\n", (int)f->pid, f->address, f->name);
		shown++;
	}
	if (!shown)
		puts("  nobody");
	free(f);
}

static void
print_stats(const struct vrb_figures *f)
{
	int i;

	printf("\nFigures that are not 0\n");
	for (i = 0; i < f->num_stat; i++)
		if (f->stat[i].value)
			printf("  %-18s %lu\n", f->stat[i].name, f->stat[i].value);
}

static void
print_more(uint32_t all, int listed)
{
	if (all > (uint32_t)listed)
		printf("  and %u more\n", all - (uint32_t)listed);
}

static void
print_queues(const struct vrb_figures *f)
{
	int i;

	printf("\nShared receive queues: %u\n", f->srqs);
	for (i = 0; i < f->num_srq; i++)
		printf("  SRQ %-14u %u of %u receives posted, limit %u, %u QPs, ran dry %lu "
		       "times\n",
			f->srq[i].num, f->srq[i].posted, f->srq[i].max_wr, f->srq[i].limit,
			f->srq[i].users, f->srq[i].dry);
	print_more(f->srqs, f->num_srq);
	printf("\nCompletion queues: %u\n", f->cqs);
	for (i = 0; i < f->num_cq; i++)
		printf("  CQ %-15u %u of %u completions wait%s%s\n", f->cq[i].num, f->cq[i].waiting,
			f->cq[i].size, f->cq[i].armed ? ", armed" : "",
			f->cq[i].overrun ? ", overflowed" : "");
	print_more(f->cqs, f->num_cq);
	printf("\nWork queues: %u, in %u indirection tables; %u flow rules\n", f->wqs, f->ind_tbls,
		f->flows);
	for (i = 0; i < f->num_wq; i++)
		printf("  WQ %-15u %s, %u of %u receives posted\n", f->wq[i].num, f->wq[i].state,
			f->wq[i].posted, f->wq[i].max_wr);
	print_more(f->wqs, f->num_wq);
}

static void
print_qps(const struct vrb_figures *f)
{
	int i;

	printf("\nQueue pairs: %u\n", f->qps);
	for (i = 0; i < f->num_qp; i++) {
		printf("  QP %#-15x %s, %s, %u sends wait, ", f->qp[i].num, f->qp[i].type,
			f->qp[i].state, f->qp[i].sends);
		if (f->qp[i].srq)
			printf("receives by SRQ %u\n", f->qp[i].srq);
		else
			printf("%u receives posted\n", f->qp[i].receives);
	}
	print_more(f->qps, f->num_qp);
}

int
vrb_process_info(const char *text)
{
	struct vrb_figures *f = malloc(sizeof(*f));
	char *end;
	long pid = strtol(text, &end, 10);
	int rc;

	if (!text[0] || *end || pid <= 0) {
		vrb_complain("info: '%s' is not accepted for --pid; it takes the number of a "
			     "process",
			text);
		free(f);
		return VRB_EXIT_USAGE;
	}
	rc = f ? vrb_figures_read((pid_t)pid, f) : -ENOMEM;
	if (rc) {
		if (rc == -ENOENT)
			vrb_complain("info: no process %ld of this user has the device open", pid);
		else
			vrb_complain("info: process %ld does not tell its figures: %s", pid,
				strerror(-rc));
		free(f);
		return VRB_EXIT_FAILED;
	}
	printf("%s, process %ld, on %s\n", f->name, pid, f->segment);
	printf("  %-18s %s\n  %-18s %s (%s)\n", "address", f->address, "port", f->port, f->driver);
	printf("  %-18s %u protection domains, %u regions and windows\n", "objects", f->pds,
		f->mrs);
	print_stats(f);
	print_queues(f);
	print_qps(f);
	free(f);
	return VRB_EXIT_OK;
}
