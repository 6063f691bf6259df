/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who runs the engine, and when (drivers/net/verbena/vrb_poller.c, vrb_background.c): no doorbell,
 * frame or deadline is lost, and nothing uses the CPU when there is nothing to do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <poll.h>
#include <unistd.h>
#include <pthread.h>

#include <cmocka.h>

#include "nic_fake.h"

#define KICKERS 3
#define ROUNDS 3000

/* The bounds of time are generous: other programs share the machine. */
#define SOON_MS 2000

static int
without_thread(void **state)
{
	fake_start(false);
	return 0;
}

static int
with_thread(void **state)
{
	fake_start(true);
	return 0;
}

/* The thread is said to sleep, until nothing is due. */
static int
as_if_asleep(void **state)
{
	fake_start(false);
	atomic_store(&fake.nic->sleep_until, UINT64_MAX);
	atomic_store(&fake.nic->background, VRB_BG_SLEEPS);
	return 0;
}

static int
stop(void **state)
{
	fake_stop();
	return 0;
}

/* Waits until the background thread sleeps; it says so before it does. */
static void
wait_for_sleep(void)
{
	for (int i = 0; i < SOON_MS && atomic_load(&fake.nic->background) != VRB_BG_SLEEPS; i++)
		usleep(1000);
	assert_int_equal(atomic_load(&fake.nic->background), VRB_BG_SLEEPS);
	usleep(2000);
}

static pthread_barrier_t barrier;

static void *
kicker(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		pthread_barrier_wait(&barrier);
		fake_post();
		pthread_barrier_wait(&barrier);
		/* All have returned: what was posted has been executed, by whomever. */
		assert_int_equal(atomic_load(&fake.executed), (i + 1) * KICKERS);
		assert_false(atomic_load(&fake.doorbell));
	}
	return NULL;
}

static void
no_doorbell_is_lost(void **state)
{
	pthread_t t[KICKERS];

	pthread_barrier_init(&barrier, NULL, KICKERS);
	for (int i = 0; i < KICKERS; i++)
		assert_int_equal(pthread_create(&t[i], NULL, kicker, NULL), 0);
	for (int i = 0; i < KICKERS; i++)
		pthread_join(t[i], NULL);
	pthread_barrier_destroy(&barrier);
	assert_int_equal(atomic_load(&fake.executed), ROUNDS * KICKERS);
}

static void *
locker(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		vrb_nic_lock(fake.nic);
		vrb_engine_deadline(fake.nic->engine);
		vrb_nic_unlock(fake.nic);
	}
	return NULL;
}

static void *
poster(void *arg)
{
	for (int i = 0; i < ROUNDS; i++) {
		fake_post();
		vrb_nic_progress(fake.nic);
	}
	return NULL;
}

static void
control_calls_and_posts_mix(void **state)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, i < 2 ? poster : locker, NULL), 0);
	for (int i = 0; i < ROUNDS; i++) {
		fake_arrive();
		if (i % 64 == 0)
			usleep(100);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	assert_true(fake_wait(&fake.executed, 2 * ROUNDS, SOON_MS));
	assert_true(fake_wait(&fake.received, ROUNDS, SOON_MS));
	assert_true(fake_wait(&fake.sent, ROUNDS, SOON_MS));
	assert_int_equal(atomic_load(&fake.executed), 2 * ROUNDS);
}

static void
a_frame_wakes_the_thread(void **state)
{
	for (uint32_t i = 1; i <= 200; i++) {
		if (i % 20 == 0)
			wait_for_sleep();
		fake_arrive();
		assert_true(fake_wait(&fake.received, i, SOON_MS));
		assert_true(fake_wait(&fake.sent, i, SOON_MS));
	}
}

/*
 * A deadline that a program's thread leaves behind while the background thread sleeps without one.
 */
static void
a_deadline_wakes_the_thread(void **state)
{
	for (uint32_t i = 1; i <= 10; i++) {
		uint64_t due;

		wait_for_sleep();
		due = vrb_now(fake.nic) + 3000000;
		vrb_nic_lock(fake.nic);
		atomic_store(&fake.deadline, due);
		vrb_nic_unlock(fake.nic);
		assert_true(fake_wait(&fake.timeouts, i, SOON_MS));
		assert_true(atomic_load(&fake.last_timeout) >= due);
	}
}

/* A kick that leaves work undone: the port has no room for the packet. */
static void
work_that_is_left_wakes_the_thread(void **state)
{
	wait_for_sleep();
	atomic_store(&fake.room, 0);
	vrb_nic_lock(fake.nic);
	atomic_fetch_add(&fake.replies, 5);
	vrb_nic_unlock(fake.nic);
	usleep(20000);
	assert_int_equal(atomic_load(&fake.sent), 0);
	atomic_store(&fake.room, 2);
	assert_true(fake_wait(&fake.sent, 2, SOON_MS));
	atomic_store(&fake.room, 1000);
	/* The fake port insists on the order. */
	assert_true(fake_wait(&fake.sent, 5, SOON_MS));
}

static void
idle_costs_nothing(void **state)
{
	uint64_t cpu;

	wait_for_sleep();
	usleep(50000); /* it lingers for a while */
	cpu = fake_thread_cpu();
	usleep(300000);
	assert_int_equal(fake_thread_cpu(), cpu);
}

static void *
poll_until_told(void *arg)
{
	_Atomic bool *told = arg;

	while (!atomic_load(told))
		vrb_nic_progress(fake.nic);
	return NULL;
}

static void
the_thread_steps_back_while_the_program_polls(void **state)
{
	_Atomic bool told = false;
	bool napped = false;
	pthread_t t;
	uint64_t cpu;

	assert_int_equal(pthread_create(&t, NULL, poll_until_told, &told), 0);
	fake_arrive(); /* wakes the thread, so that it notices */
	for (int i = 0; i < SOON_MS * 20 && !napped; i++) {
		napped = atomic_load(&fake.nic->background) == VRB_BG_NAPS;
		fake_arrive();
		usleep(50);
	}
	assert_true(napped);
	cpu = fake_thread_cpu();
	usleep(200000);
	cpu = fake_thread_cpu() - cpu;
	atomic_store(&told, true);
	pthread_join(t, NULL);
	/* A thread that did not step back would have had half of the time. */
	assert_true(cpu < 50000000);
	/* And it takes over when the program stops. */
	napped = fake_wait(
		&fake.received, atomic_load(&fake.received) + atomic_load(&fake.arrived), SOON_MS);
	assert_true(napped);
	wait_for_sleep();
}

/* That a message within the process costs a system call was seen by strace alone. */
static void
packets_to_ourselves_do_not_wake_the_thread(void **state)
{
	struct pollfd bell = {.fd = fake.nic->bell, .events = POLLIN};

	atomic_store(&fake.to_ourselves, true);
	for (int i = 0; i < 100; i++) {
		fake_post();
		assert_int_equal(atomic_load(&fake.looped), 0);
	}
	/* Without a thread nobody silences the bell. */
	assert_int_equal(poll(&bell, 1, 0), 0);
}

static void
a_child_of_fork_does_nothing(void **state)
{
	uint32_t executed = atomic_load(&fake.executed);

	atomic_store(&fake.nic->forked, true);
	vrb_baton_lock(&fake.nic->baton); /* as a thread of the parent may have had it */
	fake_post();
	vrb_nic_progress(fake.nic);
	vrb_nic_lock(fake.nic);
	vrb_nic_unlock(fake.nic);
	assert_int_equal(atomic_load(&fake.executed), executed);
	assert_int_equal(atomic_load(&fake.nic->baton.state), VRB_BATON_HELD);
}

static void
the_clock_agrees_with_the_kernels_and_never_runs_backwards(void **state)
{
	uint64_t t0 = vrb_now(fake.nic), k0 = vrb_clock_monotonic(), last = t0;

	while (last - t0 < 100000000) {
		uint64_t t = vrb_now(fake.nic);

		assert_true(t >= last);
		last = t;
	}
	/* Within a thousandth, and a preemption between the two clocks. */
	assert_in_range(vrb_clock_monotonic() - k0, last - t0 - 100000, last - t0 + 20000000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_doorbell_is_lost, without_thread, stop),
		cmocka_unit_test_setup_teardown(control_calls_and_posts_mix, with_thread, stop),
		cmocka_unit_test_setup_teardown(a_frame_wakes_the_thread, with_thread, stop),
		cmocka_unit_test_setup_teardown(a_deadline_wakes_the_thread, with_thread, stop),
		cmocka_unit_test_setup_teardown(
			work_that_is_left_wakes_the_thread, with_thread, stop),
		cmocka_unit_test_setup_teardown(idle_costs_nothing, with_thread, stop),
		cmocka_unit_test_setup_teardown(
			the_thread_steps_back_while_the_program_polls, with_thread, stop),
		cmocka_unit_test_setup_teardown(
			packets_to_ourselves_do_not_wake_the_thread, as_if_asleep, stop),
		cmocka_unit_test_setup_teardown(a_child_of_fork_does_nothing, without_thread, stop),
		cmocka_unit_test_setup_teardown(
			the_clock_agrees_with_the_kernels_and_never_runs_backwards, without_thread,
			stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
