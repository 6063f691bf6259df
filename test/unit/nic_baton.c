/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The baton (drivers/net/verbena/vrb_baton.h): one holder at a time, nobody who waits is starved.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>
#include <pthread.h>

#include <cmocka.h>

#include "vrb_baton.h"

static struct vrb_baton baton;
static uint64_t inside, total; /* not atomic: a second holder is a data race */
static _Atomic bool stop;

static void
hold(void)
{
	assert_int_equal(inside++, 0);
	total++;
	for (int i = 0; i < 50; i++)
		__asm__ volatile("" ::: "memory");
	inside--;
}

static void *
try_always(void *arg)
{
	uint64_t *got = arg;

	while (!atomic_load(&stop)) {
		if (!vrb_baton_try(&baton))
			continue;
		hold();
		(*got)++;
		vrb_baton_release(&baton);
	}
	return NULL;
}

static void *
lock_often(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		vrb_baton_lock(&baton);
		hold();
		vrb_baton_release(&baton);
	}
	return NULL;
}

static void
one_holder_at_a_time_and_waiters_get_it(void **state)
{
	uint64_t got[2] = {0};
	pthread_t pollers[2], lockers[2];

	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&pollers[i], NULL, try_always, &got[i]), 0);
	for (int i = 0; i < 2; i++)
		assert_int_equal(pthread_create(&lockers[i], NULL, lock_often, NULL), 0);
	/* Those who wait come to an end though the others never stop trying. */
	for (int i = 0; i < 2; i++)
		pthread_join(lockers[i], NULL);
	atomic_store(&stop, true);
	for (int i = 0; i < 2; i++)
		pthread_join(pollers[i], NULL);
	assert_int_equal(total, 4000 + got[0] + got[1]);
	assert_int_equal(atomic_load(&baton.state), VRB_BATON_FREE);
	assert_int_equal(atomic_load(&baton.waiters), 0);
}

static void
try_stands_back_for_a_waiter(void **state)
{
	atomic_store(&baton.waiters, 1);
	assert_false(vrb_baton_try(&baton));
	atomic_store(&baton.waiters, 0);
	assert_true(vrb_baton_try(&baton));
	assert_false(vrb_baton_try(&baton));
	vrb_baton_release(&baton);
}

static void *
lock_once(void *arg)
{
	vrb_baton_lock(&baton);
	atomic_store((_Atomic bool *)arg, true);
	vrb_baton_release(&baton);
	return NULL;
}

static void
a_waiter_sleeps_and_is_woken(void **state)
{
	_Atomic bool got = false;
	struct timespec cpu;
	clockid_t clock;
	pthread_t t;

	assert_true(vrb_baton_try(&baton));
	assert_int_equal(pthread_create(&t, NULL, lock_once, &got), 0);
	usleep(100000);
	assert_false(atomic_load(&got));
	assert_int_equal(pthread_getcpuclockid(t, &clock), 0);
	assert_int_equal(clock_gettime(clock, &cpu), 0);
	assert_true(cpu.tv_nsec < 20000000);
	vrb_baton_release(&baton);
	pthread_join(t, NULL);
	assert_true(atomic_load(&got));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(try_stands_back_for_a_waiter),
		cmocka_unit_test(one_holder_at_a_time_and_waiters_get_it),
		cmocka_unit_test(a_waiter_sleeps_and_is_woken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
