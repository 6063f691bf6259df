/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread beside the prompt. See worker.h.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include <rte_lcore.h>

#include "backend.h"
#include "cli.h"
#include "ports.h"
#include "traffic.h"
#include "worker.h"

/* After so long without work others get the CPU, and after so long the thread naps. */
#define YIELD_AFTER_NS 20000
#define NAP_AFTER_NS 200000
#define NAP_NS 50000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int waiting; /* for the lock */
static pthread_t thread;
static bool running;
static _Atomic bool quit;
static rte_cpuset_t own_cpus;
static bool has_own_cpus;

void
tp_worker_cpus(rte_cpuset_t cpus)
{
	own_cpus = cpus;
	has_own_cpus = true;
}

/* A mutex is not fair, and the thread would have it again at once: it lets others go first. */
void
tp_worker_lock(void)
{
	atomic_fetch_add(&waiting, 1);
	pthread_mutex_lock(&lock);
	atomic_fetch_sub(&waiting, 1);
}

void
tp_worker_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

static bool
work(void)
{
	bool any;

	pthread_mutex_lock(&lock);
	any = tp_pollers_work();
	any |= tp_jobs_work();
	pthread_mutex_unlock(&lock);
	return any;
}

static void
rest(uint64_t idle_ns)
{
	static const struct timespec nap = {.tv_nsec = NAP_NS};

	if (idle_ns >= NAP_AFTER_NS)
		nanosleep(&nap, NULL);
	else if (idle_ns >= YIELD_AFTER_NS)
		sched_yield();
}

static void *
run(void *arg)
{
	uint64_t last = tp_now();

	/* With an id the mempools have a cache for this thread. */
	rte_thread_register();
	while (!atomic_load_explicit(&quit, memory_order_relaxed)) {
		if (work()) {
			last = tp_now();
		} else {
			tp_progress();
			rest(tp_now() - last);
		}
		while (atomic_load_explicit(&waiting, memory_order_relaxed) > 0)
			sched_yield();
	}
	rte_thread_unregister();
	return NULL;
}

int
tp_worker_start(void)
{
	sigset_t all, old;
	int rc;

	if (running)
		return 0;
	atomic_store(&quit, false);
	/* Signals are the prompt's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&thread, NULL, run, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc != 0)
		return tp_refuse(
			-rc, "the thread beside the prompt cannot be started: %s", strerror(rc));
	if (has_own_cpus)
		pthread_setaffinity_np(thread, sizeof(own_cpus), &own_cpus);
	pthread_setname_np(thread, "testpmd-worker");
	running = true;
	return 0;
}

void
tp_worker_stop(void)
{
	if (!running)
		return;
	atomic_store(&quit, true);
	pthread_join(thread, NULL);
	running = false;
}
