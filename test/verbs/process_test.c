/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The library in its process: fork, exec, environment, exit. Each test runs in a child, so that the
 * device is opened there.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_util.h"

/* For the address sanitizer: children end with objects that are not theirs to destroy. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);

const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}

static char log_file[] = "/tmp/verbs_process.XXXXXX";

/* Runs it in a child whose stderr goes to the log file. @return its exit status, or 128 + signal */
static int
in_child(int (*run)(void))
{
	int status, fd;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		fd = open(log_file, O_WRONLY | O_TRUNC);
		dup2(fd, STDERR_FILENO);
		_exit(run());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static const char *
logged(void)
{
	static char text[4096];
	int fd = open(log_file, O_RDONLY);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n > 0 ? n : 0] = 0;
	return text;
}

static struct ibv_context *
try_open(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list ? ibv_open_device(list[0]) : NULL;
	int saved = errno;

	if (list)
		ibv_free_device_list(list);
	errno = saved;
	return ctx;
}

/* ---- settings ---- */

static int
open_with_bad_settings(void)
{
	struct ibv_device **list;
	int n = -1;

	errno = 0;
	list = ibv_get_device_list(&n);
	return !list && errno == EINVAL && n == 0 ? 0 : 1;
}

static void
expect_bad(const char *name, const char *value)
{
	setenv(name, value, 1);
	if (in_child(open_with_bad_settings))
		fail_msg("%s=%s was accepted", name, value);
	unsetenv(name);
	/* The sentence names the variable and the value. */
	assert_non_null(strstr(logged(), name));
	assert_non_null(strstr(logged(), value));
}

static void
bad_settings_are_named_and_leave_no_device(void **state)
{
	expect_bad("VERBENA_ICRC", "maybe");
	expect_bad("VERBENA_IP", "198.18.0");
	expect_bad("VERBENA_LOG", "loud");
	expect_bad("VERBENA_LOG", "error:");
	expect_bad("VERBENA_LOG", "error:/nonexistent/file");
	expect_bad("VERBENA_EXPLAIN", "yes");
}

static int
open_fails_with_a_sentence(void)
{
	errno = 0;
	return !try_open() && errno ? 0 : 1;
}

static void
port_that_cannot_be_had_is_told(void **state)
{
	setenv("VERBENA_PORT", "net_nonesuch0", 1);
	assert_int_equal(in_child(open_fails_with_a_sentence), 0);
	unsetenv("VERBENA_PORT");
	assert_non_null(strstr(logged(), "net_nonesuch0"));
}

static int
open_and_compare_address(void)
{
	static const uint8_t addr[4] = {198, 18, 7, 9};
	struct ibv_context *ctx = try_open();
	union ibv_gid gid;

	return ctx && !ibv_query_gid(ctx, 1, 0, &gid) && !memcmp(gid.raw + 12, addr, 4) ? 0 : 1;
}

static void
address_that_is_asked_for_is_taken(void **state)
{
	setenv("VERBENA_IP", "198.18.7.9", 1);
	assert_int_equal(in_child(open_and_compare_address), 0);
	unsetenv("VERBENA_IP");
}

static int
open_says_nothing(void)
{
	struct ibv_context *ctx = try_open();

	return ctx && !ibv_close_device(ctx) ? 0 : 1;
}

static void
nothing_is_logged_without_need(void **state)
{
	assert_int_equal(in_child(open_says_nothing), 0);
	assert_string_equal(logged(), "");
}

static int
fail_a_call(void)
{
	struct ibv_context *ctx = try_open();

	return ctx && !ibv_create_cq(ctx, 0, NULL, NULL, 0) ? 0 : 1;
}

static void
failing_calls_are_explained_when_asked_for(void **state)
{
	assert_int_equal(in_child(fail_a_call), 0);
	assert_string_equal(logged(), "");
	setenv("VERBENA_EXPLAIN", "1", 1);
	assert_int_equal(in_child(fail_a_call), 0);
	unsetenv("VERBENA_EXPLAIN");
	assert_non_null(strstr(logged(), "ibv_create_cq failed with EINVAL: cqe is 0"));
}

static int
fail_many_calls(void)
{
	struct ibv_context *ctx = try_open();
	int i;

	for (i = 0; i < 10000; i++)
		if (ibv_create_cq(ctx, 0, NULL, NULL, 0))
			return 1;
	return 0;
}

static void
log_does_not_flood(void **state)
{
	const char *p;
	int lines = 0;

	setenv("VERBENA_EXPLAIN", "1", 1);
	assert_int_equal(in_child(fail_many_calls), 0);
	unsetenv("VERBENA_EXPLAIN");
	for (p = logged(); (p = strchr(p, '\n')); p++)
		lines++;
	assert_in_range(lines, 1, 1000);
}

/* ---- fork and exec ---- */

static int
child_of_an_open_device_fails(void)
{
	struct ibv_context *ctx = try_open();
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 4, NULL, NULL, 0);
	struct ibv_modify_cq_attr moderate = {.attr_mask = IBV_CQ_ATTR_MODERATE};
	struct ibv_async_event event;
	struct ibv_wc wc;
	int status;

	if (!ctx || !pd || !channel || !cq)
		return 1;
	if (!fork()) {
		alarm(5);
		if (ibv_alloc_pd(ctx) || errno != ENODEV)
			_exit(2);
		if (ibv_dealloc_pd(pd) != ENODEV)
			_exit(3);
		if (ibv_poll_cq(cq, 1, &wc) >= 0)
			_exit(4);
		if (ibv_req_notify_cq(cq, 0) != ENODEV)
			_exit(5);
		if (ibv_get_async_event(ctx, &event) != -1 || errno != ENODEV)
			_exit(6);
		if (try_open() || errno != ENODEV)
			_exit(7);
		if (ibv_destroy_comp_channel(channel) != ENODEV)
			_exit(8);
		if (ibv_resize_cq(cq, 8) != ENODEV || ibv_modify_cq(cq, &moderate) != ENODEV)
			_exit(9);
		ibv_close_device(ctx);
		exit(0); /* with the destructors */
	}
	wait(&status);
	if (status)
		return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
	/* The parent goes on undisturbed. */
	return ibv_destroy_cq(cq) || ibv_destroy_comp_channel(channel) || ibv_dealloc_pd(pd) ||
			       ibv_close_device(ctx)
		       ? 10
		       : 0;
}

static void
child_is_told_whose_the_device_is(void **state)
{
	setenv("VERBENA_EXPLAIN", "1", 1);
	assert_int_equal(in_child(child_of_an_open_device_fails), 0);
	unsetenv("VERBENA_EXPLAIN");
	assert_non_null(strstr(logged(), "ibv_dealloc_pd failed with ENODEV: the device belongs to "
					 "the process that this one was forked from"));
	assert_non_null(strstr(logged(), "ibv_resize_cq failed with ENODEV: the device belongs"));
	assert_non_null(strstr(logged(), "ibv_modify_cq failed with ENODEV: the device belongs"));
}

static void
child_cannot_use_its_parents_device(void **state)
{
	assert_int_equal(in_child(child_of_an_open_device_fails), 0);
	assert_non_null(strstr(logged(), "fork"));
}

static int
child_opens_its_own(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	int status;

	if (!list)
		return 1;
	if (!fork()) {
		struct ibv_context *ctx = ibv_open_device(list[0]);

		exit(ctx && !ibv_close_device(ctx) ? 0 : 1);
	}
	wait(&status);
	return status ? 2 : 0;
}

static void
child_opens_a_device_that_its_parent_has_only_listed(void **state)
{
	assert_int_equal(in_child(child_opens_its_own), 0);
}

static int
exec_after_open(void)
{
	if (!try_open())
		return 1;
	execl("/bin/sh", "sh", "-c", "exit 0", (char *)NULL);
	return 2;
}

static void
program_with_an_open_device_can_exec(void **state)
{
	assert_int_equal(in_child(exec_after_open), 0);
}

static int
exec_in_child(void)
{
	struct ibv_context *ctx = try_open();

	if (!ctx || system("exit 0"))
		return 1;
	return ibv_close_device(ctx);
}

static void
program_with_an_open_device_can_call_system(void **state)
{
	assert_int_equal(in_child(exec_in_child), 0);
}

static int
open_close_again(void)
{
	int i;

	for (i = 0; i < 20; i++) {
		struct ibv_context *ctx = try_open();

		if (!ctx || ibv_close_device(ctx))
			return 1;
	}
	return 0;
}

static void
device_can_be_opened_again_and_again(void **state)
{
	assert_int_equal(in_child(open_close_again), 0);
}

/* Threads of the device are just beginning when it is over; several at once, so that some of them
 * are late. */
static void
program_may_end_right_after_opening(void **state)
{
	pid_t pids[8];
	int round, i, status;

	for (round = 0; round < 8; round++) {
		fflush(NULL);
		for (i = 0; i < 8; i++) {
			pids[i] = fork();
			assert_true(pids[i] >= 0);
			if (!pids[i])
				exit(!try_open());
		}
		for (i = 0; i < 8; i++) {
			assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
			assert_int_equal(status, 0);
		}
	}
}

static int
make_log(void **state)
{
	int fd = mkstemp(log_file);

	close(fd);
	return fd < 0;
}

static int
remove_log(void **state)
{
	return unlink(log_file);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bad_settings_are_named_and_leave_no_device),
		cmocka_unit_test(port_that_cannot_be_had_is_told),
		cmocka_unit_test(address_that_is_asked_for_is_taken),
		cmocka_unit_test(nothing_is_logged_without_need),
		cmocka_unit_test(failing_calls_are_explained_when_asked_for),
		cmocka_unit_test(log_does_not_flood),
		cmocka_unit_test(child_cannot_use_its_parents_device),
		cmocka_unit_test(child_is_told_whose_the_device_is),
		cmocka_unit_test(child_opens_a_device_that_its_parent_has_only_listed),
		cmocka_unit_test(program_with_an_open_device_can_exec),
		cmocka_unit_test(program_with_an_open_device_can_call_system),
		cmocka_unit_test(device_can_be_opened_again_and_again),
		cmocka_unit_test(program_may_end_right_after_opening),
	};

	return cmocka_run_group_tests(tests, make_log, remove_log);
}
