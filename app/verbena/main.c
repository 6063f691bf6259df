/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command `verbena`: finds the subcommand and hands over to it.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "verbena.h"

struct command {
	const char *name;
	const char *what;
	int (*run)(int argc, char **argv);
	void (*help)(void);
};

static int help_command(int argc, char **argv);
static void print_help(void);

static const struct command commands[] = {
	{"run", "run a program with a verbs device", vrb_run, vrb_run_help},
	{"info", "show what a program would see, and how it would be configured", vrb_info,
		vrb_info_help},
	{"top", "show what running processes do, again and again", vrb_top, vrb_top_help},
	{"help", "explain a command", help_command, print_help},
};

#define N_COMMANDS (sizeof(commands) / sizeof(commands[0]))

void
vrb_complain(const char *format, ...)
{
	va_list ap;

	fputs("verbena: ", stderr);
	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
}

static void
print_help(void)
{
	size_t i;

	printf("Usage: verbena COMMAND [OPTIONS] ...\n\n"
	       "Runs programs written for RDMA verbs on a network card made of software.\n\n"
	       "Commands:\n");
	for (i = 0; i < N_COMMANDS; i++)
		printf("  %-6s %s\n", commands[i].name, commands[i].what);
	printf("\n'verbena help COMMAND' or 'verbena COMMAND --help' explains one;"
	       " 'verbena --version' prints the version.\n");
}

static const struct command *
find_command(const char *name)
{
	size_t i;

	for (i = 0; i < N_COMMANDS; i++)
		if (!strcmp(commands[i].name, name))
			return &commands[i];
	vrb_complain("there is no command '%s'; 'verbena help' lists them", name);
	return NULL;
}

static int
help_command(int argc, char **argv)
{
	const struct command *c;

	if (argc > 2) {
		vrb_complain("help: one command at a time");
		return VRB_EXIT_USAGE;
	}
	if (argc < 2 || !strcmp(argv[1], "--help")) {
		print_help();
		return VRB_EXIT_OK;
	}
	c = find_command(argv[1]);
	if (!c)
		return VRB_EXIT_USAGE;
	c->help();
	return VRB_EXIT_OK;
}

int
main(int argc, char **argv)
{
	const struct command *c;

	if (argc < 2) {
		vrb_complain("a command is missing; 'verbena help' lists them");
		return VRB_EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		print_help();
		return VRB_EXIT_OK;
	}
	if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V")) {
		printf("verbena %s\n", VERBENA_VERSION);
		return VRB_EXIT_OK;
	}
	if (argv[1][0] == '-') {
		vrb_complain("unknown option '%s'; 'verbena help' shows what there is", argv[1]);
		return VRB_EXIT_USAGE;
	}
	c = find_command(argv[1]);
	return c ? c->run(argc - 1, argv + 1) : VRB_EXIT_USAGE;
}
