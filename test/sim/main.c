/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulator's command line.
 */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_eal.h>

#include "sim.h"

struct options {
	const struct profile *prof;
	uint64_t first, last;
	uint64_t today; /* so many seeds more, from the date */
	bool verbose, keep_going;
	unsigned int seconds;
};

static int
eal_start(char *name)
{
	/* One string: EAL takes its arguments as char *, and literals are not. */
	static char args[] = "--no-huge\0--no-shconf\0--no-pci\0-m\000128\0--no-telemetry\0--log-"
			     "level=3\0-l\0000\0";
	char *argv[16] = {name};
	int argc = 1;

	for (char *a = args; *a != '\0'; a += strlen(a) + 1)
		argv[argc++] = a;
	return rte_eal_init(argc, argv) < 0 ? -1 : 0;
}

static void
usage(FILE *out, const char *name)
{
	fprintf(out,
		"usage: %s [options]\n"
		"Runs the RoCEv2 engine in virtual time: random work, on a wire that harms "
		"packets.\n\n"
		"  --seed N        one seed\n"
		"  --seeds A..B    seeds A to B\n"
		"  --today N       besides, N seeds that are others every day\n"
		"  --seconds N     stop after N seconds, whatever is left\n"
		"  --profile NAME  what the wire does, and what goes wrong (default: lossless)\n"
		"  -k              go on after a failure\n"
		"  -v              print every packet, post and completion\n\n"
		"Profiles:\n",
		name);
	for (unsigned int i = 0; i < n_profiles; i++)
		fprintf(out, "  %-14s  %s\n", profiles[i].name, profiles[i].help);
}

static int
parse_range(const char *arg, uint64_t *first, uint64_t *last)
{
	char *end;

	*first = strtoull(arg, &end, 0);
	if (strncmp(end, "..", 2) != 0)
		return -1;
	*last = strtoull(end + 2, &end, 0);
	return *end != '\0' || *last < *first ? -1 : 0;
}

static int
parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"seed", required_argument, NULL, 's'},
		{"seeds", required_argument, NULL, 'r'},
		{"today", required_argument, NULL, 't'},
		{"seconds", required_argument, NULL, 'd'},
		{"profile", required_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int c;

	while ((c = getopt_long(argc, argv, "vkh", longs, NULL)) != -1) {
		if (c == 's')
			o->first = o->last = strtoull(optarg, NULL, 0);
		else if (c == 'r' && parse_range(optarg, &o->first, &o->last) < 0)
			return -1;
		else if (c == 't')
			o->today = strtoull(optarg, NULL, 0);
		else if (c == 'd')
			o->seconds = (unsigned int)strtoul(optarg, NULL, 0);
		else if (c == 'p' && (o->prof = profile_find(optarg)) == NULL)
			return -1;
		else if (c == 'v')
			o->verbose = true;
		else if (c == 'k')
			o->keep_going = true;
		else if (c == 'h' || c == '?')
			return c == 'h' ? 1 : -1;
	}
	return optind < argc || o->last < o->first ? -1 : 0;
}

struct totals {
	unsigned long scenarios, failed;
	uint64_t messages, virtual_us, sent, lost, harmed;
};

static void
account(struct totals *t, const struct sim *s)
{
	t->scenarios++;
	t->messages += s->messages;
	t->virtual_us += s->now / 1000;
	t->sent += s->wire.sent;
	t->lost += s->wire.lost;
	t->harmed += s->wire.duplicated + s->wire.reordered + s->wire.corrupted;
}

/* @return whether to go on */
static bool
run(struct sim *s, const struct options *o, const char *name, uint64_t first, uint64_t last,
	struct totals *t)
{
	time_t start = time(NULL);

	printf("profile %s, seeds %llu..%llu\n", o->prof->name, (unsigned long long)first,
		(unsigned long long)last);
	for (uint64_t seed = first; seed <= last; seed++) {
		bool ok;

		if (o->seconds != 0 && time(NULL) - start >= (time_t)o->seconds)
			return true;
		ok = sim_run(s, o->prof, seed, o->verbose);
		account(t, s);
		if (ok)
			continue;
		t->failed++;
		printf("seed %llu FAILED at %.3f us: %s\n  again: %s --profile %s --seed %llu -v\n",
			(unsigned long long)seed, (double)s->now / 1000, s->why, name,
			o->prof->name, (unsigned long long)seed);
		if (!o->keep_going)
			return false;
	}
	return true;
}

static int
run_all(struct sim *s, const struct options *o, const char *name)
{
	uint64_t day = (uint64_t)time(NULL) / 86400 * 1000000;
	struct totals t = {0};

	if (run(s, o, name, o->first, o->last, &t) && o->today > 0)
		run(s, o, name, day, day + o->today - 1, &t);
	printf("%lu scenarios, %lu failed; %llu work requests, %llu packets (%llu lost, %llu "
	       "otherwise harmed), "
	       "%.1f s of virtual time\n",
		t.scenarios, t.failed, (unsigned long long)t.messages, (unsigned long long)t.sent,
		(unsigned long long)t.lost, (unsigned long long)t.harmed,
		(double)t.virtual_us / 1e6);
	return t.failed == 0 && t.scenarios > 0 ? 0 : 1;
}

int
main(int argc, char **argv)
{
	struct options o = {.prof = &profiles[0], .first = 1, .last = 100};
	struct sim *s = calloc(1, sizeof(*s));
	int rc = parse(argc, argv, &o);

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (rc != 0) {
		usage(rc > 0 ? stdout : stderr, argv[0]);
		free(s);
		return rc > 0 ? 0 : 2;
	}
	if (s == NULL || eal_start(argv[0]) < 0 || mem_init() < 0 || wire_init() < 0 ||
		host_pools() < 0) {
		fprintf(stderr,
			"the simulator cannot start: no memory, or EAL does not initialize\n");
		return 2;
	}
	rc = run_all(s, &o, argv[0]);
	free(s->wire.heap);
	free(s);
	rte_eal_cleanup();
	return rc;
}
