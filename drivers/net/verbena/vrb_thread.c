/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that leave the program's signals and CPUs alone (see vrb_thread.h).
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>
#include <sys/syscall.h>

#include "vrb_thread.h"

static unsigned long cpus[VRB_MAX_CPUS / (8 * sizeof(long))];
static size_t cpus_size;

__attribute__((constructor)) static void
remember_cpus(void)
{
	/* Unlike the library's function the system call tells how large the kernel's set is. */
	long n = syscall(SYS_sched_getaffinity, 0, sizeof(cpus), cpus);

	cpus_size = n > 0 ? (size_t)n : 0;
}

const cpu_set_t *
vrb_thread_cpus(size_t *size)
{
	*size = cpus_size;
	return (const cpu_set_t *)cpus;
}

int
vrb_thread_create(pthread_t *thread, const char *name, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, old;
	size_t size;
	const cpu_set_t *set = vrb_thread_cpus(&size);
	int rc = pthread_attr_init(&attr);

	if (rc != 0)
		return -rc;
	if (size > 0)
		pthread_attr_setaffinity_np(&attr, size, set);
	sigfillset(&all);
	/* Faults of guarded copies have to reach their handler. */
	sigdelset(&all, SIGSEGV);
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(thread, &attr, fn, arg);
	/* The set may have become invalid since it was read. */
	if (rc == EINVAL)
		rc = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	if (rc == 0)
		pthread_setname_np(*thread, name);
	return -rc;
}
