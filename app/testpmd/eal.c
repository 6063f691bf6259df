/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line. Ours are long options that EAL does not have, and a few letters that it does
 * not use, so both may be mixed; a "--" between them, which DPDK programs want, is allowed.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_lcore.h>
#include <rte_log.h>

#include "cli.h"
#include "eal.h"
#include "worker.h"

#define MAX_ARGS 128
#define MAX_QUEUES 64
#define MEMORY_MB "512"

static char *args[MAX_ARGS];
static int num_args;

static void
add(const char *arg)
{
	if (num_args < MAX_ARGS - 1)
		args[num_args++] = (char *)(uintptr_t)arg;
}

static bool
was_given(const char *start)
{
	for (int i = 0; i < num_args; i++)
		if (strncmp(args[i], start, strlen(start)) == 0)
			return true;
	return false;
}

static int
parse_queues(const char *name, const char *text, uint16_t *queues)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (*text == '\0' || *end != '\0' || n < 1 || n > MAX_QUEUES)
		return tp_refuse(
			-EINVAL, "%s is a number from 1 to %d, not \"%s\"", name, MAX_QUEUES, text);
	*queues = n;
	return 0;
}

struct flag {
	const char *name, *letter;
	bool *set;
};

struct setting {
	const char *name, *letter;
	const char **value;
};

static bool
is_option(const char *arg, const char *name, const char *letter)
{
	return strcmp(arg, name) == 0 || (letter != NULL && strcmp(arg, letter) == 0);
}

/* @return the value of an option behind it or behind "=", or NULL: it is another */
static const char *
value_of(const char *const *argv, int *i, const char *name, const char *letter)
{
	size_t len = strlen(name);

	if (strncmp(argv[*i], name, len) == 0 && argv[*i][len] == '=')
		return argv[*i] + len + 1;
	if (!is_option(argv[*i], name, letter))
		return NULL;
	(*i)++;
	return argv[*i] != NULL ? argv[*i] : "";
}

/* @return 1: it was one of ours, 0: it was not, or -errno after tp_refuse() */
static int
parse_one(const char *const *argv, int *i, struct tp_options *o)
{
	const struct flag flags[] = {
		{"--interactive", "-i", &o->interactive},
		{"--keep-going", "-k", &o->keep_going},
		{"--echo", "-e", &o->echo},
		{"--hugepages", NULL, &o->hugepages},
		{"--help", "-h", &o->help},
		{"--version", "-V", &o->version},
	};
	const struct setting settings[] = {
		{"--cmdline-file", "-f", &o->file},
		{"--segment", NULL, &o->segment},
		{"--ip", NULL, &o->ip},
		{"--port", NULL, &o->port},
	};
	const char *value;
	int rc;

	for (unsigned int f = 0; f < RTE_DIM(flags); f++) {
		if (!is_option(argv[*i], flags[f].name, flags[f].letter))
			continue;
		*flags[f].set = true;
		return 1;
	}
	for (unsigned int s = 0; s < RTE_DIM(settings); s++) {
		value = value_of(argv, i, settings[s].name, settings[s].letter);
		if (value == NULL)
			continue;
		if (*value == '\0')
			return tp_refuse(-EINVAL, "%s needs a value", settings[s].name);
		*settings[s].value = value;
		return 1;
	}
	value = value_of(argv, i, "--rxq", NULL);
	if (value != NULL) {
		rc = parse_queues("--rxq", value, &o->rx_queues);
		return rc < 0 ? rc : 1;
	}
	value = value_of(argv, i, "--txq", NULL);
	if (value == NULL)
		return 0;
	rc = parse_queues("--txq", value, &o->tx_queues);
	return rc < 0 ? rc : 1;
}

int
tp_options_parse(int argc, const char *const *argv, struct tp_options *o)
{
	memset(o, 0, sizeof(*o));
	o->rx_queues = o->tx_queues = 1;
	num_args = 0;
	add("verbena-testpmd");
	for (int i = 1; i < argc; i++) {
		int rc;

		if (strcmp(argv[i], "--") == 0)
			continue;
		rc = parse_one(argv, &i, o);
		if (rc < 0)
			return rc;
		if (rc == 0)
			add(argv[i]);
	}
	return 0;
}

/* Whether a port of net_verbena is asked for that will have an address, or has the default's name.
 */
static bool
has_device(void)
{
	for (int i = 0; i < num_args; i++) {
		const char *vdev = strstr(args[i], "net_verbena");

		if (vdev != NULL &&
			(strncmp(vdev, "net_verbena0", 12) == 0 || strstr(vdev, ",ip=") != NULL ||
				strstr(vdev, "net_shmlan") != NULL))
			return true;
	}
	return false;
}

/* The device, unless there is one. */
static void
add_device(const struct tp_options *o)
{
	static char vdev[512];
	unsigned int b[4];
	size_t used;

	if (has_device())
		return;
	used = snprintf(vdev, sizeof(vdev), "--vdev=net_verbena0,dev(%s",
		o->port != NULL ? o->port : "net_shmlan0");
	if (o->segment != NULL)
		used += snprintf(vdev + used, sizeof(vdev) - used, ",segment=%s", o->segment);
	/* On shared memory the one address stands in the other. */
	if (o->ip != NULL && o->port == NULL &&
		sscanf(o->ip, "%u.%u.%u.%u", &b[0], &b[1], &b[2], &b[3]) == 4)
		used += snprintf(vdev + used, sizeof(vdev) - used, ",mac=02:00:%02x:%02x:%02x:%02x",
			b[0], b[1], b[2], b[3]);
	used += snprintf(vdev + used, sizeof(vdev) - used, ")");
	if (o->ip != NULL && used < sizeof(vdev))
		snprintf(vdev + used, sizeof(vdev) - used, ",ip=%s", o->ip);
	add(vdev);
}

/*
 * EAL binds this thread to one CPU, and the worker, which it starts, would have to share it.
 * Without a choice of lcores both may run anywhere; with one the worker has the second of them.
 */
static void
choose_cpus(const cpu_set_t *before)
{
	unsigned int second = rte_get_next_lcore(-1, true, false);
	bool chosen = was_given("-l") || was_given("-c") || was_given("--lcores");

	if (!chosen)
		pthread_setaffinity_np(pthread_self(), sizeof(*before), before);
	else if (second < RTE_MAX_LCORE)
		tp_worker_cpus(rte_lcore_cpuset(second));
}

int
tp_eal_start(const struct tp_options *o)
{
	cpu_set_t cpus;

	/* So that it runs for everybody and beside every other program of DPDK. */
	if (!o->hugepages) {
		add("--no-huge");
		add("--iova-mode=va");
		if (!was_given("-m"))
			add("-m" MEMORY_MB);
	}
	if (!was_given("--file-prefix") && !was_given("--proc-type"))
		add("--no-shconf");
	if (!was_given("-a") && !was_given("--allow"))
		add("--no-pci");
	add_device(o);
	if (!was_given("--log-level")) {
		rte_log_set_global_level(RTE_LOG_WARNING);
		/* It warns that a socket of old is not there. */
		add("--log-level=lib.telemetry:error");
	}
	args[num_args] = NULL;
	pthread_getaffinity_np(pthread_self(), sizeof(cpus), &cpus);
	if (rte_eal_init(num_args, args) < 0)
		return tp_refuse(-rte_errno, "DPDK does not start: %s", rte_strerror(rte_errno));
	choose_cpus(&cpus);
	return 0;
}
