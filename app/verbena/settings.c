/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The settings of a process: one table from which the options, the environment variables below
 * them, the checks and the help are made. An option wins over the environment, the environment over
 * the default.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbena.h"

#define SEGMENT_CHARS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-"
#define SEGMENT_MAX 64

static int
reject(char *why, size_t len, const char *accepted)
{
	snprintf(why, len, "%s", accepted);
	return -EINVAL;
}

static int
check_port(const char *value, char *why, size_t len)
{
	const char *p;

	/* What stands before the first comma is for DPDK to judge: a driver's name or a PCI
	 * address. */
	if (!isalnum((unsigned char)value[0]))
		return reject(why, len,
			"DPDK device arguments, for example net_shmlan0 or "
			"net_af_packet0,iface=eth0");
	for (p = value; *p; p++)
		if (isspace((unsigned char)*p) || iscntrl((unsigned char)*p))
			return reject(why, len, "DPDK device arguments without spaces");
	return 0;
}

static int
check_segment(const char *value, char *why, size_t len)
{
	size_t n = strlen(value);

	if (!n || n > SEGMENT_MAX || strspn(value, SEGMENT_CHARS) != n || !strcmp(value, ".") ||
		!strcmp(value, ".."))
		return reject(why, len,
			"a name of 1 to 64 letters, digits, dots, underscores and dashes");
	return 0;
}

static int
check_ip(const char *value, char *why, size_t len)
{
	struct in6_addr a6;
	struct in_addr a;
	unsigned int first;
	bool host;

	if (inet_pton(AF_INET, value, &a) == 1) {
		first = ntohl(a.s_addr) >> 24;
		host = first != 0 && first != 127 && first < 224;
	} else if (inet_pton(AF_INET6, value, &a6) == 1) {
		host = !IN6_IS_ADDR_UNSPECIFIED(&a6) && !IN6_IS_ADDR_LOOPBACK(&a6) &&
		       !IN6_IS_ADDR_MULTICAST(&a6);
	} else {
		return reject(why, len, "an IPv4 or IPv6 address, for example 198.18.0.7");
	}
	if (!host)
		return reject(why, len,
			"the address of one host, not a loopback, multicast or broadcast address");
	return 0;
}

static int
check_icrc(const char *value, char *why, size_t len)
{
	if (strcmp(value, "auto") && strcmp(value, "on") && strcmp(value, "off"))
		return reject(why, len, "auto, on or off");
	return 0;
}

static int
check_direct(const char *value, char *why, size_t len)
{
	if (strcmp(value, "auto") && strcmp(value, "off") && strcmp(value, "always"))
		return reject(why, len, "auto, off or always");
	return 0;
}

static int
check_log(const char *value, char *why, size_t len)
{
	static const char *const levels[] = {"error", "warning", "notice", "info", "debug"};
	size_t n = strcspn(value, ":");
	size_t i;

	for (i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
		if (strlen(levels[i]) == n && !strncmp(levels[i], value, n))
			return value[n] == ':' && !value[n + 1]
				       ? reject(why, len,
						 "LEVEL:FILE with the name of a file after the "
						 "colon")
				       : 0;
	return reject(why, len,
		"error, warning, notice, info or debug, and a file after a colon if wanted");
}

static int
check_eal(const char *value, char *why, size_t len)
{
	return value[strspn(value, " ")] ? 0 : reject(why, len, "arguments for DPDK's EAL");
}

static int
check_explain(const char *value, char *why, size_t len)
{
	return strcmp(value, "0") && strcmp(value, "1") ? reject(why, len, "0 or 1") : 0;
}

const struct vrb_setting_desc vrb_setting_descs[VRB_SET_COUNT] = {
	[VRB_SET_PORT] = {"port", "DEVARGS", "VERBENA_PORT", "net_shmlan0",
		"the DPDK port below the device", check_port},
	[VRB_SET_SEGMENT] = {"segment", "NAME", "VERBENA_SEGMENT", "default",
		"the shared-memory network to join", check_segment},
	[VRB_SET_IP] = {"ip", "ADDRESS", "VERBENA_IP", "automatic", "the IP address of the device",
		check_ip},
	[VRB_SET_ICRC] = {"icrc", "auto|on|off", "VERBENA_ICRC", "auto",
		"checksums over what is sent", check_icrc},
	[VRB_SET_DIRECT] = {"direct", "auto|off|always", "VERBENA_DIRECT", "auto",
		"WRITEs and READs without packets", check_direct},
	[VRB_SET_LOG] = {"log", "LEVEL[:FILE]", "VERBENA_LOG", "error",
		"what to log, and where (default: stderr)", check_log},
	[VRB_SET_EAL] = {"eal", "\"ARGUMENTS\"", "VERBENA_EAL_ARGS", "none",
		"more arguments for DPDK's EAL", check_eal},
	[VRB_SET_EXPLAIN] = {"explain", NULL, "VERBENA_EXPLAIN", "0",
		"log one sentence for each call that fails", check_explain},
};

const char *
vrb_origin_name(enum vrb_origin origin)
{
	static const char *const names[] = {
		[VRB_FROM_DEFAULT] = "default",
		[VRB_FROM_ENVIRONMENT] = "environment",
		[VRB_FROM_OPTION] = "option",
	};

	return names[origin];
}

void
vrb_settings_help(void)
{
	char left[64];
	int i;

	for (i = 0; i < VRB_SET_COUNT; i++) {
		const struct vrb_setting_desc *d = &vrb_setting_descs[i];

		snprintf(left, sizeof(left), "--%s%s%s", d->option, d->metavar ? " " : "",
			d->metavar ? d->metavar : "");
		printf("  %-21s %s\n", left, d->help);
	}
}

static int
check_all(const struct vrb_settings *s, const char *command)
{
	char why[128];
	int i;

	for (i = 0; i < VRB_SET_COUNT; i++) {
		const struct vrb_setting *v = &s->set[i];
		const struct vrb_setting_desc *d = &vrb_setting_descs[i];
		bool option = v->origin == VRB_FROM_OPTION;

		if (!v->value || !d->check(v->value, why, sizeof(why)))
			continue;
		vrb_complain("%s: '%s' is not accepted for %s%s; it takes %s", command, v->value,
			option ? "--" : "", option ? d->option : d->variable, why);
		return -VRB_EXIT_USAGE;
	}
	return 0;
}

static void
read_environment(struct vrb_settings *s)
{
	int i;

	for (i = 0; i < VRB_SET_COUNT; i++) {
		const char *value = getenv(vrb_setting_descs[i].variable);

		/* Empty means not set, as for the library. */
		if (!value || !value[0])
			continue;
		s->set[i].value = value;
		s->set[i].origin = VRB_FROM_ENVIRONMENT;
	}
}

static int
bad_option(const char *command, int got, char **argv)
{
	if (got == ':')
		vrb_complain("%s: %s needs a value; 'verbena %s --help' shows which", command,
			argv[optind - 1], command);
	else
		vrb_complain("%s: '%s' is no option here; 'verbena %s --help' lists them", command,
			argv[optind - 1], command);
	return -VRB_EXIT_USAGE;
}

int
vrb_settings_read(
	struct vrb_settings *s, const char *command, void (*help)(void), int argc, char **argv)
{
	enum { OPT_ENV = VRB_SET_COUNT, OPT_HELP, OPT_COUNT };
	struct option options[OPT_COUNT + 1] = {
		[OPT_ENV] = {"env", no_argument, NULL, OPT_ENV + 1},
		[OPT_HELP] = {"help", no_argument, NULL, OPT_HELP + 1},
	};
	int got, i;

	memset(s, 0, sizeof(*s));
	read_environment(s);
	for (i = 0; i < VRB_SET_COUNT; i++) {
		options[i].name = vrb_setting_descs[i].option;
		options[i].has_arg = vrb_setting_descs[i].metavar ? required_argument : no_argument;
		options[i].val = i + 1; /* 0 would mean a flag to getopt_long() */
	}
	opterr = 0;
	/* '+': the first argument that is no option is the program, and what follows is its own. */
	while ((got = getopt_long(argc, argv, "+:h", options, NULL)) != -1) {
		if (got == '?' || got == ':')
			return bad_option(command, got, argv);
		if (got == 'h' || got == OPT_HELP + 1) {
			help();
			exit(VRB_EXIT_OK);
		}
		if (got == OPT_ENV + 1) {
			s->print_env = true;
			continue;
		}
		s->set[got - 1].value = optarg ? optarg : "1";
		s->set[got - 1].origin = VRB_FROM_OPTION;
	}
	i = check_all(s, command);
	return i ? i : optind;
}

int
vrb_settings_export(const struct vrb_settings *s)
{
	int i;

	for (i = 0; i < VRB_SET_COUNT; i++)
		if (s->set[i].value && setenv(vrb_setting_descs[i].variable, s->set[i].value, 1))
			return -errno;
	return 0;
}
