/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `verbena run`: sets the loader and the environment, then becomes the program. There is no process
 * in between, so that its exit status, its signals and its terminal are its own.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbena.h"

void
vrb_run_help(void)
{
	printf("Usage: verbena run [OPTIONS] [--] PROGRAM [ARGUMENTS]\n"
	       "       verbena run [OPTIONS] --env\n\n"
	       "Runs a program with a verbs device 'vrb0', with no RDMA hardware and no root.\n\n"
	       "Options:\n");
	vrb_settings_help();
	printf("  %-21s %s\n", "--env", "run nothing; print the settings for a shell's eval");
	printf("  %-21s %s\n", "-h, --help", "print this help");
	printf("\nThe exit status is the program's; 2 for a bad option, 125 when the library of\n"
	       "Verbena is missing, 126 when the program cannot be run, 127 when it is not found.\n"
	       "\nExample, in two terminals:\n"
	       "  verbena run -- ibv_rc_pingpong -g 0\n"
	       "  verbena run -- ibv_rc_pingpong -g 0 127.0.0.1\n");
}

static void
print_export(const char *name, const char *value)
{
	const char *p;

	printf("export %s='", name);
	for (p = value; *p; p++) {
		if (*p == '\'')
			fputs("'\\''", stdout);
		else
			putchar(*p);
	}
	puts("'");
}

static int
print_environment(const struct vrb_settings *s, const struct vrb_preload *preload)
{
	int i;

	print_export("LD_PRELOAD", preload->value);
	for (i = 0; i < VRB_SET_COUNT; i++)
		if (s->set[i].value)
			print_export(vrb_setting_descs[i].variable, s->set[i].value);
	return VRB_EXIT_OK;
}

static int
become_program(const struct vrb_settings *s, const struct vrb_preload *preload, char **argv)
{
	struct vrb_program program;
	int err, status;

	status = vrb_program_find(&program, argv[0]);
	if (status)
		return status;
	err = vrb_settings_export(s);
	if (err || setenv("LD_PRELOAD", preload->value, 1)) {
		vrb_complain(
			"run: the environment could not be set: %s", strerror(err ? -err : errno));
		return VRB_EXIT_SELF;
	}
	execv(program.path, argv);
	vrb_complain("run: %s could not be run: %s", program.path, strerror(errno));
	return errno == ENOENT ? VRB_EXIT_NOT_FOUND : VRB_EXIT_CANNOT_INVOKE;
}

int
vrb_run(int argc, char **argv)
{
	struct vrb_settings settings;
	struct vrb_preload preload;
	int first, status;

	first = vrb_settings_read(&settings, "run", vrb_run_help, argc, argv);
	if (first < 0)
		return -first;
	if (settings.print_env && first < argc) {
		vrb_complain("run: --env prints the settings and runs nothing; leave '%s' away",
			argv[first]);
		return VRB_EXIT_USAGE;
	}
	if (!settings.print_env && first >= argc) {
		vrb_complain(
			"run: the program to run is missing; 'verbena run --help' has an example");
		return VRB_EXIT_USAGE;
	}
	if (vrb_preload_init(&preload))
		return VRB_EXIT_SELF;
	status = settings.print_env ? print_environment(&settings, &preload)
				    : become_program(&settings, &preload, argv + first);
	vrb_preload_fini(&preload);
	return status;
}
