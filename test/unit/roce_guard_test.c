/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * lib/base/guard: copies over memory that is not there, and the program's own handlers.
 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "guard.h"

/* cmocka has a handler for these signals while a test runs: ours has to be in front of it. */
static void
install(void)
{
	assert_int_equal(vrb_guard_install(), 0);
}

static uint8_t *
pages(size_t n)
{
	uint8_t *p =
		mmap(NULL, n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

static void
copies(void **state)
{
	uint8_t a[100], b[100];

	install();
	memset(a, 7, sizeof(a));
	memset(b, 0, sizeof(b));
	assert_int_equal(vrb_guard_copy(b, a, sizeof(a)), 0);
	assert_memory_equal(a, b, sizeof(a));
}

static void
unmapped_memory(void **state)
{
	uint8_t *p = pages(2), buf[8192] = {0};

	install();
	munmap(p + 4096, 4096);
	assert_int_equal(vrb_guard_copy(buf, p, 4096), 0);
	assert_int_equal(vrb_guard_copy(buf, p, 4097), -EFAULT);
	assert_int_equal(vrb_guard_copy(p, buf, 8192), -EFAULT);
	assert_int_equal(vrb_guard_copy(p + 4096, buf, 1), -EFAULT);
	/* And again, as often as one likes. */
	for (unsigned int i = 0; i < 1000; i++)
		assert_int_equal(vrb_guard_copy(buf, p + 4096, 1), -EFAULT);
	assert_int_equal(vrb_guard_copy((void *)(uintptr_t)0xdead000000000000ull, buf, 8),
		-EFAULT); /* not canonical */
	munmap(p, 4096);
}

static void
read_only_memory(void **state)
{
	uint8_t *p = pages(1), buf[16] = {0};
	uint64_t old;

	install();
	mprotect(p, 4096, PROT_READ);
	assert_int_equal(vrb_guard_copy(buf, p, 16), 0);
	assert_int_equal(vrb_guard_copy(p, buf, 16), -EFAULT);
	assert_int_equal(vrb_guard_fetch_add((uint64_t *)p, 1, &old), -EFAULT);
	assert_int_equal(vrb_guard_cmp_swap((uint64_t *)p, 0, 1, &old), -EFAULT);
	assert_int_equal(vrb_guard_store((uint64_t *)p, 1), -EFAULT);
	munmap(p, 4096);
}

static void
truncated_file(void **state)
{
	char name[] = "/tmp/roce_guard_XXXXXX";
	int fd = mkstemp(name);
	uint8_t *p, buf[16];

	install();
	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(ftruncate(fd, 8192), 0);
	p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED);
	assert_int_equal(ftruncate(fd, 4096), 0);
	assert_int_equal(vrb_guard_copy(buf, p, 16), 0);
	assert_int_equal(vrb_guard_copy(buf, p + 4096, 16), -EFAULT); /* SIGBUS */
	munmap(p, 8192);
	close(fd);
}

static void
atomics(void **state)
{
	uint64_t v = 5, old = 0;

	install();
	assert_int_equal(vrb_guard_fetch_add(&v, 7, &old), 0);
	assert_int_equal(old, 5);
	assert_int_equal(v, 12);
	assert_int_equal(vrb_guard_cmp_swap(&v, 1, 9, &old), 0);
	assert_int_equal(old, 12);
	assert_int_equal(v, 12);
	assert_int_equal(vrb_guard_cmp_swap(&v, 12, 9, &old), 0);
	assert_int_equal(v, 9);
}

static void *
other_thread(void *arg)
{
	uint8_t buf[8];

	for (unsigned int i = 0; i < 10000; i++)
		if (vrb_guard_copy(buf, arg, 8) != -EFAULT)
			return arg;
	return NULL;
}

static void
threads_do_not_disturb_each_other(void **state)
{
	uint8_t *p = pages(1);
	pthread_t t;
	void *bad;

	install();
	/* Not unmapped: the other thread's stack could come to lie there. */
	mprotect(p, 4096, PROT_NONE);
	assert_int_equal(pthread_create(&t, NULL, other_thread, p), 0);
	assert_null(other_thread(p));
	pthread_join(t, &bad);
	assert_null(bad);
	munmap(p, 4096);
}

/* ---- handlers: each in a child, since they end it ---- */

static int
in_child(void (*what)(void))
{
	int status = 0;
	pid_t pid = fork();

	if (pid == 0) {
		/* No core dump, and cmocka's own handlers are not ours to test. */
		signal(SIGABRT, SIG_DFL);
		what();
		_exit(0);
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void
on_own(int sig)
{
	(void)sig;
	_exit(42);
}

static void
on_own_info(int sig, siginfo_t *info, void *uc)
{
	(void)uc;
	_exit(sig == SIGSEGV && info->si_addr == (void *)16 ? 43 : 1);
}

static void
fault(void)
{
	volatile uintptr_t nowhere = 16; /* the compiler does not let us say so */

	*(volatile int *)nowhere = 1;
}

static void
own_handler_then_fault(void)
{
	signal(SIGSEGV, on_own);
	if (vrb_guard_install() < 0)
		_exit(1);
	fault();
}

static void
own_info_handler_then_fault(void)
{
	struct sigaction sa = {.sa_sigaction = on_own_info, .sa_flags = SA_SIGINFO};

	sigaction(SIGSEGV, &sa, NULL);
	if (vrb_guard_install() < 0)
		_exit(1);
	fault();
}

static void
default_then_fault(void)
{
	signal(SIGSEGV, SIG_DFL);
	if (vrb_guard_install() < 0)
		_exit(1);
	fault();
}

static void
default_then_kill(void)
{
	signal(SIGSEGV, SIG_DFL);
	if (vrb_guard_install() < 0)
		_exit(1);
	kill(getpid(), SIGSEGV);
	pause();
}

/* The program puts its handler in front later; installing once more makes copies safe again, and
 * keeps theirs. */
static void
replaced_and_installed_again(void)
{
	uint8_t *p = pages(1), b;

	if (vrb_guard_install() < 0)
		_exit(1);
	signal(SIGSEGV, on_own);
	if (vrb_guard_install() < 0)
		_exit(2);
	munmap(p, 4096);
	if (vrb_guard_copy(&b, p, 1) != -EFAULT)
		_exit(3);
	fault();
}

static void
foreign_handlers_are_chained(void **state)
{
	int s = in_child(own_handler_then_fault);

	assert_true(WIFEXITED(s) && WEXITSTATUS(s) == 42);
	s = in_child(own_info_handler_then_fault);
	assert_true(WIFEXITED(s) && WEXITSTATUS(s) == 43);
	s = in_child(replaced_and_installed_again);
	assert_true(WIFEXITED(s) && WEXITSTATUS(s) == 42);
}

static void
without_a_handler_the_default_is_taken(void **state)
{
	int s = in_child(default_then_fault);

	assert_true(WIFSIGNALED(s) && WTERMSIG(s) == SIGSEGV);
	s = in_child(default_then_kill);
	assert_true(WIFSIGNALED(s) && WTERMSIG(s) == SIGSEGV);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies),
		cmocka_unit_test(unmapped_memory),
		cmocka_unit_test(read_only_memory),
		cmocka_unit_test(truncated_file),
		cmocka_unit_test(atomics),
		cmocka_unit_test(threads_do_not_disturb_each_other),
		cmocka_unit_test(foreign_handlers_are_chained),
		cmocka_unit_test(without_a_handler_the_default_is_taken),
	};

	return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
