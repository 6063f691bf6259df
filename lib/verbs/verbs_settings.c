/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads and checks the environment variables VERBENA_*. A value that makes no sense is an error,
 * not a default: a program that should have run with other settings must not seem to work.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_log.h"
#include "verbs_settings.h"

static struct vrb_settings settings;
static int settings_error;
static pthread_once_t settings_once = PTHREAD_ONCE_INIT;

/* An empty variable counts as one that is not set. */
static const char *
value_of(const char *name)
{
	const char *v = getenv(name);

	return v && *v ? v : NULL;
}

static int
reject(const char *name, const char *value, const char *accepted)
{
	vrb_log(VRB_LOG_ERROR,
		"%s is \"%s\", but has to be %s; there is no RDMA device until it is corrected",
		name, value, accepted);
	return -EINVAL;
}

static int
read_log(void)
{
	const char *v = value_of("VERBENA_LOG"), *e = value_of("VERBENA_EXPLAIN"), *file = NULL;
	int level = VRB_LOG_ERROR, rc;
	bool explain = false;

	if (e) {
		if (strcmp(e, "0") && strcmp(e, "1"))
			return reject("VERBENA_EXPLAIN", e, "0 or 1");
		explain = *e == '1';
	}
	if (v) {
		size_t n = strcspn(v, ":");

		for (level = 0; level < VRB_LOG_LEVELS; level++)
			if (strlen(vrb_log_names[level]) == n &&
				!strncmp(vrb_log_names[level], v, n))
				break;
		if (level == VRB_LOG_LEVELS || (v[n] == ':' && !v[n + 1]))
			return reject("VERBENA_LOG", v,
				"error, warning, notice, info or debug, and :FILE behind it if "
				"wanted");
		if (v[n] == ':')
			file = v + n + 1;
	}
	rc = vrb_log_setup(level, file, explain);
	if (rc) {
		vrb_log(VRB_LOG_ERROR, "VERBENA_LOG is \"%s\", but the file cannot be opened: %s",
			v, strerror(-rc));
		return -EINVAL;
	}
	settings.eal_log = level >= VRB_LOG_INFO ? vrb_log_fd() : 0;
	return 0;
}

static int
read_ip(void)
{
	struct in6_addr a;

	settings.ip = value_of("VERBENA_IP");
	if (settings.ip && inet_pton(AF_INET, settings.ip, &a) != 1 &&
		inet_pton(AF_INET6, settings.ip, &a) != 1)
		return reject("VERBENA_IP", settings.ip,
			"an IPv4 or IPv6 address, for example 198.18.0.7");
	return 0;
}

static int
read_icrc(void)
{
	const char *v = value_of("VERBENA_ICRC");

	if (!v || !strcmp(v, "auto"))
		settings.icrc = VRB_ICRC_AUTO;
	else if (!strcmp(v, "on"))
		settings.icrc = VRB_ICRC_ON;
	else if (!strcmp(v, "off"))
		settings.icrc = VRB_ICRC_OFF;
	else
		return reject("VERBENA_ICRC", v, "auto, on or off");
	return 0;
}

static int
read_direct(void)
{
	const char *v = value_of("VERBENA_DIRECT");

	if (!v || !strcmp(v, "auto"))
		settings.direct = VRB_DIRECT_AUTO;
	else if (!strcmp(v, "off"))
		settings.direct = VRB_DIRECT_OFF;
	else if (!strcmp(v, "always"))
		settings.direct = VRB_DIRECT_ALWAYS;
	else
		return reject("VERBENA_DIRECT", v, "auto, off or always");
	return 0;
}

static void
read_all(void)
{
	settings_error = read_log();
	if (!settings_error)
		settings_error = read_ip();
	if (!settings_error)
		settings_error = read_icrc();
	if (!settings_error)
		settings_error = read_direct();
	settings.port = value_of("VERBENA_PORT");
	settings.segment = value_of("VERBENA_SEGMENT");
	settings.eal_args = value_of("VERBENA_EAL_ARGS");
}

int
vrb_settings_get(const struct vrb_settings **s)
{
	pthread_once(&settings_once, read_all);
	*s = &settings;
	return settings_error;
}
