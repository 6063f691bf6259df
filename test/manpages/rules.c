/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See rules.h: runs rules, each by this program anew, and reports them by the Test Anything
 * Protocol.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rules.h"

#define STATUS_LACKS 77
#define RULE_SECONDS 50

/* Of the process of a rule. */
static const struct rule *current;

/* For the thread sanitizer, which otherwise sleeps for a second at the end of each process. */
__attribute__((visibility("default"))) const char *__tsan_default_options(void);

const char *
__tsan_default_options(void)
{
	return "atexit_sleep_ms=50";
}

_Noreturn void
device_lacks(const char *what)
{
	printf("the device has no %s\n", what);
	fflush(NULL);
	_exit(STATUS_LACKS);
}

static void
test_current(void **state)
{
	current->test(*state);
}

static int
run_here(const struct rule *rule)
{
	const struct CMUnitTest test[] = {
		{
			.name = rule->quote,
			.test_func = test_current,
			.setup_func = rig_open,
			.teardown_func = rig_close,
		},
	};

	current = rule;
	alarm(RULE_SECONDS);
	return cmocka_run_group_tests(test, NULL, NULL) ? 1 : 0;
}

static void
print_name(const struct rule *rule)
{
	printf("\"%s\"", rule->quote);
	if (rule->what)
		printf(": %s", rule->what);
}

/* Prints what the rule's process has printed, each line as a comment. @param once the first line
 * only, without a newline, as the reason of a skip */
static void
print_output(FILE *out, bool once)
{
	char line[500];

	rewind(out);
	while (fgets(line, sizeof(line), out)) {
		line[strcspn(line, "\n")] = '\0';
		if (once) {
			printf(" # SKIP %s", line);
			return;
		}
		printf("# %s\n", line);
	}
}

/* The process of a rule: this program again, its output in a file, gone when we are gone. */
static void
become_rule(long number, FILE *out)
{
	char arg[24];

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(arg, sizeof(arg), "%ld", number);
	dup2(fileno(out), STDOUT_FILENO);
	dup2(fileno(out), STDERR_FILENO);
	execl("/proc/self/exe", "rule", "--here", arg, (char *)NULL);
	_exit(126);
}

static bool
lacks(int status)
{
	return WIFEXITED(status) && WEXITSTATUS(status) == STATUS_LACKS;
}

/* @return whether it passed, or was skipped and may be */
static bool
run_apart(const struct rule *rule, long number, int nth, bool no_skip)
{
	FILE *out = tmpfile();
	bool ok, skipped;
	int status;
	pid_t pid;

	if (!out) {
		perror("tmpfile");
		exit(1);
	}
	pid = fork();
	if (pid == 0)
		become_rule(number, out);
	if (pid < 0 || waitpid(pid, &status, 0) != pid) {
		perror("fork");
		exit(1);
	}
	skipped = lacks(status) && !no_skip;
	ok = !status || skipped;
	printf("%sok %d - ", ok ? "" : "not ", nth);
	print_name(rule);
	if (skipped)
		print_output(out, true);
	putchar('\n');
	if (WIFSIGNALED(status))
		printf("# ended by signal %d, %s\n", WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (!ok)
		print_output(out, false);
	fflush(stdout);
	fclose(out);
	return ok;
}

/* @param arg number or part of the name, or NULL: all */
static bool
is_wanted(const struct rule *rule, long number, const char *arg)
{
	char *end;
	long n;

	if (!arg)
		return true;
	n = strtol(arg, &end, 10);
	if (*arg && !*end)
		return n == number;
	return strstr(rule->quote, arg) || (rule->what && strstr(rule->what, arg));
}

static int
run_wanted(const struct rule *rules, const char *arg, bool no_skip)
{
	int n = 0, bad = 0;
	long i;

	for (i = 0; rules[i].quote; i++)
		n += is_wanted(&rules[i], i + 1, arg);
	printf("1..%d\n", n);
	fflush(stdout);
	for (n = 0, i = 0; rules[i].quote; i++)
		if (is_wanted(&rules[i], i + 1, arg))
			bad += !run_apart(&rules[i], i + 1, ++n, no_skip);
	return bad || !n;
}

static int
list(const struct rule *rules)
{
	long i;

	for (i = 0; rules[i].quote; i++) {
		printf("%ld: ", i + 1);
		print_name(&rules[i]);
		putchar('\n');
	}
	return 0;
}

/* @return 1, as the status to exit with when it is shown instead of what was asked for */
static int
usage(const char *name)
{
	printf("usage: %s [--no-skip] [NUMBER | PART-OF-NAME]\n"
	       "       %s --list\n"
	       "       %s --here NUMBER\n\n"
	       "Tries rules of a manual page: all of them, or those that are named, each in a\n"
	       "process of its own.\n\n"
	       "  --no-skip  what the device lacks is a failure\n"
	       "  --list     names the rules\n"
	       "  --here     runs a rule in this process, for a debugger\n",
		name, name, name);
	return 1;
}

int
run_rules(int argc, char **argv, const struct rule *rules)
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'},
		{"here", required_argument, NULL, 'H'},
		{"list", no_argument, NULL, 'l'},
		{"no-skip", no_argument, NULL, 'n'},
		{NULL, 0, NULL, 0},
	};
	bool no_skip = false;
	long i, n = 0;
	int opt;

	while (rules[n].quote)
		n++;
	while ((opt = getopt_long(argc, argv, "h", options, NULL)) != -1) {
		switch (opt) {
		case 'h':
			return usage(argv[0]) - 1;
		case 'H':
			i = strtol(optarg, NULL, 10);
			return i < 1 || i > n ? usage(argv[0]) : run_here(&rules[i - 1]);
		case 'l':
			return list(rules);
		case 'n':
			no_skip = true;
			break;
		default:
			return usage(argv[0]);
		}
	}
	return run_wanted(rules, argv[optind], no_skip);
}
