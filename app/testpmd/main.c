/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * verbena-testpmd: a prompt for the RoCE device and for ethdev ports.
 *
 * Commands come from a person at a terminal, by DPDK's cmdline library, or from a file or a pipe,
 * and then the first that fails ends the program with status 1.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

#include <cmdline.h>
#include <rte_eal.h>

#include "backend.h"
#include "commands.h"
#include "eal.h"
#include "events.h"
#include "ports.h"
#include "wait.h"
#include "worker.h"

#define PROMPT "verbena> "

enum exit_status { EXIT_OK = 0, EXIT_COMMAND = 1, EXIT_START = 2 };

static void
print_help(void)
{
	printf("Usage: verbena-testpmd [OPTIONS] [EAL OPTIONS]\n\n"
	       "A prompt to make shared receive queues, completion queues, work queues, "
	       "indirection\n"
	       "tables and queue pairs on a port of net_verbena, to send traffic, to set RSS and "
	       "flow\n"
	       "rules, and to watch. \"help\" at the prompt shows its commands.\n\n"
	       "  -f, --cmdline-file FILE  run the commands of a file (- is standard input) and "
	       "end;\n"
	       "                           the first that fails ends the program with status 1\n"
	       "  -i, --interactive        with a file: show the prompt afterwards\n"
	       "  -k, --keep-going         go on after a command that fails\n"
	       "  -e, --echo               print each command of a file before it is run\n"
	       "      --segment NAME       network of shared memory to join\n"
	       "      --ip ADDRESS         address of the device; on shared memory the first that "
	       "is "
	       "free\n"
	       "      --port DEVARGS       port below the device, like net_af_packet0,iface=eth0;\n"
	       "                           net_shmlan0\n"
	       "      --rxq N, --txq N     queues of each port; 1\n"
	       "      --hugepages          let DPDK use hugepages\n"
	       "  -h, --help               this text\n"
	       "  -V, --version            the version\n\n"
	       "EAL's options may stand among them: -l, --vdev=net_verbena0,dev(...),ip=..., "
	       "--vdev=net_null0,\n-S for service cores, and so on. The first port of net_verbena "
	       "is the "
	       "RoCE device; without one\nit is made over the port of --port.\n");
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
run_file(const struct tp_options *o, FILE *f)
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
run_batch(const struct tp_options *o)
{
	FILE *f = strcmp(o->file, "-") == 0 ? stdin : fopen(o->file, "r");
	int status;

	if (f == NULL) {
		fprintf(stderr, "verbena-testpmd: %s: %s\n", o->file, strerror(errno));
		return EXIT_START;
	}
	status = run_file(o, f);
	if (f != stdin)
		fclose(f);
	return status;
}

static int
run_prompt(void)
{
	struct cmdline *cl;
	struct termios old, raw;

	if (tcgetattr(STDIN_FILENO, &old) < 0) {
		fprintf(stderr, "verbena-testpmd: --interactive needs a terminal\n");
		return EXIT_START;
	}
	/* As cmdline_stdin_new() does: characters at once, and Ctrl-C one of them. */
	raw = old;
	raw.c_lflag &= ~(ICANON | ECHO | ISIG);
	tcsetattr(STDIN_FILENO, TCSANOW, &raw);
	tp_at_terminal = true;
	cl = tp_cmdline_new(PROMPT, STDIN_FILENO, STDOUT_FILENO);
	if (cl != NULL)
		cmdline_interact(cl);
	tcsetattr(STDIN_FILENO, TCSANOW, &old);
	tp_at_terminal = false;
	if (!tp_quit)
		printf("\n");
	cmdline_free(cl);
	return EXIT_OK;
}

static int
run(const struct tp_options *o)
{
	int status = EXIT_OK;

	if (o->file != NULL)
		status = run_batch(o);
	if (!tp_quit && !tp_interrupted && (o->file == NULL || o->interactive))
		status = run_prompt();
	return status;
}

static int
start(const struct tp_options *o)
{
	int rc = tp_eal_start(o);

	if (rc == 0)
		rc = tp_backend_open(o->rx_queues, o->tx_queues);
	if (rc == 0)
		rc = tp_ports_open(tp_device_port(), o->rx_queues, o->tx_queues);
	return rc;
}

int
main(int argc, char **argv)
{
	struct tp_options o;
	int status;

	if (tp_options_parse(argc, (const char *const *)argv, &o) < 0) {
		fprintf(stderr, "verbena-testpmd: %s\n", tp_why());
		return EXIT_START;
	}
	if (o.help) {
		print_help();
		return EXIT_OK;
	}
	if (o.version) {
		printf("verbena-testpmd %s\n", VERBENA_VERSION);
		return EXIT_OK;
	}
	/* Commands that are piped in. */
	if (o.file == NULL && !isatty(STDIN_FILENO))
		o.file = "-";
	if (start(&o) < 0) {
		fprintf(stderr, "verbena-testpmd: %s\n", tp_why());
		tp_worker_stop();
		tp_ports_stop();
		rte_eal_cleanup();
		return EXIT_START;
	}
	tp_after_command = tp_events_show;
	catch_signals();
	status = run(&o);
	tp_destroy_all();
	tp_worker_stop();
	tp_ports_stop();
	tp_backend_close();
	tp_ports_close();
	rte_eal_cleanup();
	return status;
}
