/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies that survive memory which has gone away: the handler and the copy (see guard.h).
 */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <pthread.h>

#include "guard.h"

/*
 * Where to go on after a fault; NULL outside a guarded copy. Not initial-exec: the library would
 * then need room in the static TLS of a program that loads it late by dlopen(3), and there is
 * hardly any. So the first access of a thread may allocate, which a handler must not; but the
 * threads whose faults we catch have made theirs before, in the guarded copy.
 */
static __thread void **volatile guard_resume;

static struct sigaction old_segv, old_bus;
static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;

static void
chain(const struct sigaction *old, int sig, siginfo_t *info, void *uc)
{
	if (old->sa_flags & SA_SIGINFO) {
		old->sa_sigaction(sig, info, uc);
		return;
	}
	if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
		old->sa_handler(sig);
		return;
	}
	/* The default action: with it restored, returning repeats the fault and the kernel ends the
	 * process. */
	signal(sig, SIG_DFL);
	/* Sent by kill(2) or raise(3), nothing would repeat it. */
	if (info->si_code <= 0)
		raise(sig);
}

static void
on_fault(int sig, siginfo_t *info, void *uc)
{
	void **resume = guard_resume;

	if (resume != NULL && info->si_code > 0) {
		sigset_t set;

		guard_resume = NULL;
		/* We do not return from the handler, so the signal has to be let in again by hand.
		 */
		sigemptyset(&set);
		sigaddset(&set, sig);
		pthread_sigmask(SIG_UNBLOCK, &set, NULL);
		__builtin_longjmp(resume, 1);
	}
	chain(sig == SIGSEGV ? &old_segv : &old_bus, sig, info, uc);
}

static int
install_one(int sig, struct sigaction *old)
{
	struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	struct sigaction cur;

	if (sigaction(sig, NULL, &cur) < 0)
		return -errno;
	if ((cur.sa_flags & SA_SIGINFO) && cur.sa_sigaction == on_fault)
		return 0;
	sigemptyset(&sa.sa_mask);
	*old = cur;
	return sigaction(sig, &sa, NULL) < 0 ? -errno : 0;
}

int
vrb_guard_install(void)
{
	int rc;

	pthread_mutex_lock(&install_lock);
	rc = install_one(SIGSEGV, &old_segv);
	if (rc == 0)
		rc = install_one(SIGBUS, &old_bus);
	pthread_mutex_unlock(&install_lock);
	return rc;
}

/*
 * __builtin_setjmp stores three words and has no call, which is what makes a guard for every packet
 * affordable. Its function may not be inlined into a caller that the compiler could reorder around
 * it.
 */
#define GUARDED(statement) \
	do { \
		void *buf[5]; \
		void **volatile *resume = &guard_resume; \
		__asm__("" : "+r"(resume)); /* finding it is a call: do it once */ \
		if (__builtin_setjmp(buf) != 0) \
			return -EFAULT; \
		*resume = buf; \
		__asm__ volatile("" ::: "memory"); \
		statement; \
		__asm__ volatile("" ::: "memory"); \
		*resume = NULL; \
		return 0; \
	} while (0)

__attribute__((noinline)) int
vrb_guard_copy(void *dst, const void *src, size_t n)
{
	/* memcpy() may not be given these, and the compiler counts on it. */
	if (dst == NULL || src == NULL)
		return n == 0 ? 0 : -EFAULT;
	GUARDED(memcpy(dst, src, n));
}

/*
 * The compiler believes that control can come back to __builtin_setjmp() only out of a call. An
 * atomic operation is none: without one it removes the way back. So the operation stands in a
 * function of its own about which nothing is concluded.
 */
#if __has_attribute(noipa)
#define OPAQUE __attribute__((noipa))
#else
#define OPAQUE __attribute__((noinline, optnone))
#endif

OPAQUE static void
cmp_swap(uint64_t *p, uint64_t *old, uint64_t swap)
{
	__atomic_compare_exchange_n(p, old, swap, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

OPAQUE static void
fetch_add(uint64_t *p, uint64_t add, uint64_t *old)
{
	*old = __atomic_fetch_add(p, add, __ATOMIC_SEQ_CST);
}

OPAQUE static void
store(uint64_t *p, uint64_t value)
{
	__atomic_store_n(p, value, __ATOMIC_SEQ_CST);
}

__attribute__((noinline)) int
vrb_guard_cmp_swap(uint64_t *p, uint64_t compare, uint64_t swap, uint64_t *old)
{
	*old = compare;
	GUARDED(cmp_swap(p, old, swap));
}

__attribute__((noinline)) int
vrb_guard_fetch_add(uint64_t *p, uint64_t add, uint64_t *old)
{
	GUARDED(fetch_add(p, add, old));
}

__attribute__((noinline)) int
vrb_guard_store(uint64_t *p, uint64_t value)
{
	GUARDED(store(p, value));
}
