/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `verbena top`: what the processes of this user do with the device, again and again.
 */
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "figures.h"
#include "verbena.h"

#define PROCESSES_MAX 256
#define BAR 20
#define SHOWN_MAX 8 /* queues of a kind, for each process */

struct sample {
	struct vrb_figures *f;
	uint64_t ns;
};

struct top {
	double delay; /* seconds */
	long count; /* of views; 0: for ever */
	const char *segment; /* or NULL: all */
	pid_t pid; /* or 0: all */
	bool terminal;
	struct sample now[PROCESSES_MAX], before[PROCESSES_MAX];
	int num_now, num_before;
};

void
vrb_top_help(void)
{
	printf("Usage: verbena top [OPTIONS]\n\n"
	       "Shows what the processes of this user do with the device, and goes on showing it "
	       "until\n"
	       "it is interrupted.\n\n"
	       "Options:\n"
	       "  %-21s %s\n  %-21s %s\n  %-21s %s\n  %-21s %s\n  %-21s %s\n\n"
	       "A program is not slowed down by being looked at, and nothing runs when nobody "
	       "looks."
	       "\n",
		"-d, --delay SECONDS", "between two views; 1 unless it is given", "-n, --count N",
		"show N views, then end", "--segment NAME", "only processes on this network",
		"--pid N", "only this process", "-h, --help", "print this help");
}

/* ---- looking ---- */

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static void
forget(struct sample *samples, int *n)
{
	while (*n > 0)
		free(samples[--*n].f);
}

static void
look(struct top *t)
{
	pid_t pids[PROCESSES_MAX];
	int i, n = vrb_figures_pids(pids, PROCESSES_MAX);

	forget(t->before, &t->num_before);
	memcpy(t->before, t->now, sizeof(t->now));
	t->num_before = t->num_now;
	t->num_now = 0;
	for (i = 0; i < n; i++) {
		struct vrb_figures *f;

		if (t->pid && pids[i] != t->pid)
			continue;
		f = malloc(sizeof(*f));
		if (!f || vrb_figures_read(pids[i], f) ||
			(t->segment && strcmp(f->segment, t->segment) != 0)) {
			free(f);
			continue;
		}
		t->now[t->num_now++] = (struct sample){f, now_ns()};
	}
}

static const struct sample *
find_before(const struct top *t, pid_t pid)
{
	int i;

	for (i = 0; i < t->num_before; i++)
		if (t->before[i].f->pid == pid)
			return &t->before[i];
	return NULL;
}

/* Completions since then: of CQs that were there then as well, whose counts may have wrapped. */
static uint64_t
completions_since(const struct vrb_figures *now, const struct vrb_figures *before)
{
	uint64_t sum = 0;
	int i, k;

	for (i = 0; i < now->num_cq; i++)
		for (k = 0; k < before->num_cq; k++)
			if (before->cq[k].num == now->cq[i].num)
				sum += now->cq[i].completions - before->cq[k].completions;
	return sum;
}

/* ---- showing ---- */

static const char *
rate(char *buf, size_t len, double per_second)
{
	if (per_second >= 1e6)
		snprintf(buf, len, "%.2fM", per_second / 1e6);
	else if (per_second >= 1e4)
		snprintf(buf, len, "%.1fk", per_second / 1e3);
	else
		snprintf(buf, len, "%.0f", per_second);
	return buf;
}

static void
print_bar(uint32_t level, uint32_t max)
{
	char bar[BAR + 1];
	uint32_t full = max ? (uint32_t)(((uint64_t)level * BAR + max - 1) / max) : 0;

	memset(bar, '.', BAR);
	memset(bar, '#', full < BAR ? full : BAR);
	bar[BAR] = '\0';
	printf("[%s]", bar);
}

static void
print_queues(const struct vrb_figures *f)
{
	int i;

	for (i = 0; i < f->num_srq && i < SHOWN_MAX; i++) {
		printf("    SRQ %-4u ", f->srq[i].num);
		print_bar(f->srq[i].posted, f->srq[i].max_wr);
		printf(" %u of %u, limit %u, %u QPs, ran dry %lu times\n", f->srq[i].posted,
			f->srq[i].max_wr, f->srq[i].limit, f->srq[i].users, f->srq[i].dry);
	}
	if (f->srqs > SHOWN_MAX)
		printf("    and %u SRQs more\n", f->srqs - SHOWN_MAX);
	for (i = 0; i < f->num_cq && i < SHOWN_MAX; i++) {
		printf("    CQ  %-4u ", f->cq[i].num);
		print_bar(f->cq[i].waiting, f->cq[i].size);
		printf(" %u of %u%s%s\n", f->cq[i].waiting, f->cq[i].size,
			f->cq[i].armed ? ", armed" : "", f->cq[i].overrun ? ", OVERFLOWED" : "");
	}
	if (f->cqs > SHOWN_MAX)
		printf("    and %u CQs more\n", f->cqs - SHOWN_MAX);
}

static void
print_process(const struct top *t, const struct sample *s)
{
	const struct sample *b = find_before(t, s->f->pid);
	char rx[16] = "-", tx[16] = "-", msg[16] = "-";

	if (b) {
		double seconds = (double)(s->ns - b->ns) / 1e9;

#define PER_SECOND(name) \
	((double)(vrb_figures_stat(s->f, name) - vrb_figures_stat(b->f, name)) / seconds)
		rate(rx, sizeof(rx), PER_SECOND("rx_packets"));
		rate(tx, sizeof(tx), PER_SECOND("tx_packets"));
		rate(msg, sizeof(msg), (double)completions_since(s->f, b->f) / seconds);
	}
	printf("%-16.16s %8d %-16s %9s %9s %9s %5u %5u %5u\n", s->f->name, (int)s->f->pid,
		s->f->address, rx, tx, msg, s->f->qps, s->f->srqs, s->f->cqs);
	print_queues(s->f);
}

static void
show(const struct top *t)
{
	int i;

	if (t->terminal)
		fputs("\033[H\033[2J", stdout);
	printf("%-16s %8s %-16s %9s %9s %9s %5s %5s %5s\n", "PROGRAM", "PID", "ADDRESS", "RX pkt/s",
		"TX pkt/s", "compl/s", "QPs", "SRQs", "CQs");
	for (i = 0; i < t->num_now; i++)
		print_process(t, &t->now[i]);
	if (!t->num_now)
		puts("no process has the device open");
	fflush(stdout);
}

/* ---- the command ---- */

/* @return 0, or 1: done, or -VRB_EXIT_USAGE after a message */
static int
read_options(struct top *t, int argc, char **argv)
{
	static const struct option options[] = {
		{"delay", required_argument, NULL, 'd'},
		{"count", required_argument, NULL, 'n'},
		{"segment", required_argument, NULL, 's'},
		{"pid", required_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	char *end = NULL;
	int got;

	opterr = 0;
	while ((got = getopt_long(argc, argv, ":d:n:h", options, NULL)) != -1) {
		switch (got) {
		case 'd':
			t->delay = strtod(optarg, &end);
			break;
		case 'n':
			t->count = strtol(optarg, &end, 10);
			break;
		case 'p':
			t->pid = (pid_t)strtol(optarg, &end, 10);
			break;
		case 's':
			t->segment = optarg;
			break;
		case 'h':
			vrb_top_help();
			return 1;
		default:
			vrb_complain("top: '%s' is no option here, or lacks its value; 'verbena "
				     "top --help' lists them",
				argv[optind - 1]);
			return -VRB_EXIT_USAGE;
		}
		if ((end && *end) || !(t->delay >= 0.05 && t->delay <= 86400) || t->count < 0 ||
			t->pid < 0) {
			vrb_complain("top: '%s' is not accepted; --delay takes seconds from 0.05 "
				     "on, --count and --pid a number",
				optarg);
			return -VRB_EXIT_USAGE;
		}
	}
	if (optind < argc) {
		vrb_complain("top: '%s' is not wanted here; 'verbena top --help' lists the options",
			argv[optind]);
		return -VRB_EXIT_USAGE;
	}
	return 0;
}

int
vrb_top(int argc, char **argv)
{
	struct top t = {.delay = 1, .terminal = isatty(STDOUT_FILENO)};
	struct timespec ts;
	long i;
	int rc;

	rc = read_options(&t, argc, argv);
	if (rc)
		return rc < 0 ? -rc : VRB_EXIT_OK;
	ts.tv_sec = (time_t)t.delay;
	ts.tv_nsec = (long)((t.delay - (double)ts.tv_sec) * 1e9);
	/* The first view has rates, too. */
	look(&t);
	for (i = 0; !t.count || i < t.count; i++) {
		nanosleep(&ts, NULL);
		look(&t);
		if (i && !t.terminal)
			putchar('\n');
		show(&t);
	}
	forget(t.now, &t.num_now);
	forget(t.before, &t.num_before);
	return VRB_EXIT_OK;
}
