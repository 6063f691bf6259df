/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbena-testpmd: a prompt for the RoCE device and for ethdev ports.
 *
 * Commands come from a person at a terminal, by DPDK's cmdline library, or from a file or a pipe,
 * and then the first that fails ends the program with status 1.
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <cmdline.h>
#include <cmdline_socket.h>

#include "backend.h"
#include "commands.h"
#include "events.h"
#include "ports.h"
#include "wait.h"

#define PROMPT "verbena> "

struct options {
	struct tp_backend_conf backend;
	const char *file; /* commands, "-": standard input */
	bool interactive; /* also behind a file */
	bool keep_going;
	bool echo;
};

enum exit_status { EXIT_OK = 0, EXIT_COMMAND = 1, EXIT_USAGE = 2 };

static void
print_help(void)
{
	printf("Usage: verbena-testpmd [OPTIONS] [-- EAL OPTIONS]\n\n"
	       "A prompt to make shared receive queues, completion queues, work queues, "
	       "indirection\n"
	       "tables and queue pairs, to send traffic, and to watch. \"help\" at the prompt "
	       "shows its\n"
	       "commands.\n\n"
	       "  -f, --cmdline-file FILE  run the commands of a file (- is standard input) and "
	       "end;\n"
	       "                           the first that fails ends the program with status 1\n"
	       "  -i, --interactive        with a file: show the prompt afterwards\n"
	       "  -k, --keep-going         go on after a command that fails\n"
	       "  -e, --echo               print each command of a file before it is run\n"
	       "  -s, --segment NAME       network of shared memory to join\n"
	       "  -a, --ip ADDRESS         address on it; the first that is free\n"
	       "  -p, --port DEVARGS       another port than net_shmlan, like "
	       "net_af_packet0,iface=eth0\n"
	       "  -h, --help               this text\n"
	       "  -V, --version            the version\n\n"
	       "EAL options, like --vdev=net_null0, make more ports for the commands port, poller, "
	       "rss\n"
	       "and flow.\n");
}

static int
parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{"cmdline-file", required_argument, NULL, 'f'},
		{"interactive", no_argument, NULL, 'i'},
		{"keep-going", no_argument, NULL, 'k'},
		{"echo", no_argument, NULL, 'e'},
		{"segment", required_argument, NULL, 's'},
		{"ip", required_argument, NULL, 'a'},
		{"port", required_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},
		{"version", no_argument, NULL, 'V'},
		{NULL, 0, NULL, 0},
	};
	int opt;

	while ((opt = getopt_long(argc, argv, "f:ikes:a:p:hV", longs, NULL)) != -1) {
		if (opt == 'f')
			o->file = optarg;
		else if (opt == 'i')
			o->interactive = true;
		else if (opt == 'k')
			o->keep_going = true;
		else if (opt == 'e')
			o->echo = true;
		else if (opt == 's')
			o->backend.segment = optarg;
		else if (opt == 'a')
			o->backend.ip = optarg;
		else if (opt == 'p')
			o->backend.port = optarg;
		else
			return opt;
	}
	return 0;
}

/* What is behind the options, in one line. */
static char *
join(char **argv)
{
	size_t len = 1;
	char *line;

	for (int i = 0; argv[i] != NULL; i++)
		len += strlen(argv[i]) + 1;
	line = calloc(1, len);
	for (int i = 0; line != NULL && argv[i] != NULL; i++) {
		strcat(line, argv[i]);
		strcat(line, " ");
	}
	return line;
}

static void
interrupt(int sig)
{
	tp_interrupted = sig;
}

/* read(2) at the prompt ends at a signal, so there is no SA_RESTART. */
static void
catch_signals(void)
{
	struct sigaction sa = {.sa_handler = interrupt};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGHUP, &sa, NULL);
}

/* @return exit status */
static int
run_file(const struct options *o, FILE *f)
{
	char *line = NULL;
	size_t room = 0;
	int number = 0, status = EXIT_OK;

	while (!tp_quit && !tp_interrupted && getline(&line, &room, f) > 0) {
		number++;
		line[strcspn(line, "\n")] = '\0';
		if (o->echo && line[strspn(line, " \t")] != '\0')
			printf(PROMPT "%s\n", line);
		if (tp_run_line(line) == 0)
			continue;
		fprintf(stderr, "verbena-testpmd: %s:%d: \"%s\" failed\n", o->file, number, line);
		status = EXIT_COMMAND;
		if (!o->keep_going)
			break;
	}
	free(line);
	return tp_interrupted ? EXIT_COMMAND : status;
}

static int
run_batch(const struct options *o)
{
	FILE *f = strcmp(o->file, "-") == 0 ? stdin : fopen(o->file, "r");
	int status;

	if (f == NULL) {
		fprintf(stderr, "verbena-testpmd: %s: %s\n", o->file, strerror(errno));
		return EXIT_USAGE;
	}
	status = run_file(o, f);
	if (f != stdin)
		fclose(f);
	return status;
}

static int
run_prompt(void)
{
	struct cmdline *cl = tp_cmdline_new(PROMPT, STDIN_FILENO, STDOUT_FILENO);
	struct termios old, raw;
	int rc = EXIT_OK;

	if (cl == NULL || tcgetattr(STDIN_FILENO, &old) < 0) {
		fprintf(stderr, "verbena-testpmd: there is no terminal\n");
		return EXIT_USAGE;
	}
	/* As cmdline_stdin_new() does: characters at once, and Ctrl-C one of them. */
	raw = old;
	raw.c_lflag &= ~(ICANON | ECHO | ISIG);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	tp_at_terminal = true;
	cmdline_interact(cl);
	tcsetattr(STDIN_FILENO, TCSANOW, &old);
	if (!tp_quit)
		printf("\n");
	cmdline_free(cl);
	return rc;
}

static int
run(const struct options *o)
{
	int status = EXIT_OK;

	if (o->file != NULL)
		status = run_batch(o);
	if (!tp_quit && !tp_interrupted && (o->file == NULL || o->interactive) &&
		(status == EXIT_OK || o->interactive))
		status = run_prompt();
	tp_destroy_all();
	return status;
}

int
main(int argc, char **argv)
{
	struct options o = {.backend.ops = &tp_engine_ops};
	char why[512] = "";
	char *eal;
	int rc, opt = parse_options(argc, argv, &o);

	if (opt == 'h') {
		print_help();
		return EXIT_OK;
	}
	if (opt == 'V') {
		printf("verbena-testpmd %s\n", VERBENA_VERSION);
		return EXIT_OK;
	}
	if (opt != 0)
		return EXIT_USAGE;
	/* Commands that are piped in. */
	if (o.file == NULL && !isatty(STDIN_FILENO))
		o.file = "-";
	eal = join(argv + optind);
	o.backend.eal = eal;
	rc = tp_backend_open(&o.backend, why, sizeof(why));
	if (rc < 0) {
		fprintf(stderr, "verbena-testpmd: %s\n", why);
		free(eal);
		return EXIT_USAGE;
	}
	tp_after_command = tp_events_show;
	catch_signals();
	rc = run(&o);
	tp_ports_close();
	tp_backend_close();
	free(eal);
	return rc;
}
