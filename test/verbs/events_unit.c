/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event queues by themselves (lib/verbs/verbs_events.c), without a device, so that the thread
 * sanitizer sees all of it.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "verbs_private.h"

bool vrb_forked;

/* A write that takes long, as if its thread had lost the processor. */
#define LONG_WRITE 50000 /* microseconds */

static atomic_bool writes_are_long, write_has_begun;

ssize_t __real_write(int fd, const void *buf, size_t n);
ssize_t __wrap_write(int fd, const void *buf, size_t n);

ssize_t
__wrap_write(int fd, const void *buf, size_t n)
{
	if (writes_are_long) {
		write_has_begun = true;
		usleep(LONG_WRITE);
	}
	return __real_write(fd, buf, n);
}

static bool
readable(struct vrb_evq *q)
{
	struct pollfd fd = {.fd = q->fd, .events = POLLIN};

	return poll(&fd, 1, 0) == 1;
}

static int
open_queue(void **state)
{
	struct vrb_evq *q = calloc(1, sizeof(*q));

	*state = q;
	return vrb_evq_init(q);
}

static int
close_queue(void **state)
{
	vrb_evq_fini(*state);
	free(*state);
	return 0;
}

static void
descriptor_is_readable_while_an_event_waits(void **state)
{
	struct vrb_event a = {.type = 1}, b = {.type = 2};
	struct vrb_evq *q = *state;

	assert_false(readable(q));
	vrb_evq_post(q, &a);
	vrb_evq_post(q, &b);
	assert_true(readable(q));
	assert_ptr_equal(vrb_evq_get(q), &a);
	assert_true(readable(q));
	assert_ptr_equal(vrb_evq_get(q), &b);
	assert_false(readable(q));
}

static void
sources_take_turns(void **state)
{
	struct vrb_event a = {.type = 1}, b = {.type = 2};
	struct vrb_evq *q = *state;

	vrb_evq_post(q, &a);
	vrb_evq_post(q, &a);
	vrb_evq_post(q, &a);
	vrb_evq_post(q, &b);
	assert_ptr_equal(vrb_evq_get(q), &a);
	assert_ptr_equal(vrb_evq_get(q), &b);
	assert_ptr_equal(vrb_evq_get(q), &a);
	assert_ptr_equal(vrb_evq_get(q), &a);
	assert_int_equal(a.reported, 3);
	assert_false(readable(q));
}

static void
cancelled_events_are_gone(void **state)
{
	struct vrb_event a = {.type = 1}, b = {.type = 2};
	struct vrb_evq *q = *state;

	vrb_evq_post(q, &a);
	vrb_evq_post(q, &a);
	vrb_evq_post(q, &b);
	assert_ptr_equal(vrb_evq_get(q), &a);
	assert_int_equal(vrb_evq_cancel(q, &a), 1);
	assert_true(readable(q));
	assert_ptr_equal(vrb_evq_get(q), &b);
	assert_false(readable(q));
	vrb_evq_post(q, &b);
	assert_int_equal(vrb_evq_cancel(q, &b), 1);
	assert_false(readable(q));
	assert_int_equal(vrb_evq_cancel(q, &b), 1);
}

#define POSTERS 3
#define TAKERS 4
#define POSTS 20000

struct crowd {
	struct vrb_evq *q;
	struct vrb_event source[POSTERS];
	atomic_int next; /* number of a poster */
	atomic_uint taken;
};

static void *
poster(void *arg)
{
	struct crowd *c = arg;
	int me = c->next++, i;

	for (i = 0; i < POSTS; i++)
		vrb_evq_post(c->q, &c->source[me]);
	return NULL;
}

static void *
taker(void *arg)
{
	struct crowd *c = arg;

	while (c->taken < POSTERS * POSTS) {
		if (vrb_evq_get(c->q))
			c->taken++;
		else
			poll(&(struct pollfd){.fd = c->q->fd, .events = POLLIN}, 1, 1);
	}
	return NULL;
}

static void
every_event_is_taken_once(void **state)
{
	struct crowd c = {.q = *state};
	pthread_t t[POSTERS + TAKERS];
	int i;

	fcntl(c.q->fd, F_SETFL, O_NONBLOCK);
	for (i = 0; i < POSTERS + TAKERS; i++)
		pthread_create(&t[i], NULL, i < POSTERS ? poster : taker, &c);
	for (i = 0; i < POSTERS + TAKERS; i++)
		pthread_join(t[i], NULL);
	assert_int_equal(c.taken, POSTERS * POSTS);
	for (i = 0; i < POSTERS; i++)
		assert_int_equal(c.source[i].reported, POSTS);
	assert_false(readable(c.q));
}

/* Sources come, are cancelled and go, while others wait for the last one. */
static void *
comer_and_goer(void *arg)
{
	struct crowd *c = arg;
	struct vrb_event e;
	int i;

	for (i = 0; i < POSTS / 10; i++) {
		memset(&e, 0, sizeof(e));
		vrb_evq_post(c->q, &e);
		vrb_evq_post(c->q, &e);
		/* A taker may have it in hand; as with real objects, wait until it has let go. */
		while (vrb_evq_cancel(c->q, &e) != atomic_load(&c->taken))
			sched_yield();
		c->taken = 0;
	}
	c->next = 1;
	vrb_evq_post(c->q, &c->source[0]);
	return NULL;
}

static void *
blocked_taker(void *arg)
{
	struct crowd *c = arg;
	struct vrb_event *e;

	while ((e = vrb_evq_get(c->q)) != &c->source[0])
		c->taken++;
	return NULL;
}

static void
cancelling_and_taking_meet(void **state)
{
	struct crowd c = {.q = *state};
	pthread_t t[2];

	pthread_create(&t[0], NULL, comer_and_goer, &c);
	pthread_create(&t[1], NULL, blocked_taker, &c);
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	assert_int_equal(c.next, 1);
	assert_false(readable(c.q));
}

static void *
late_writer(void *arg)
{
	struct crowd *c = arg;

	vrb_evq_post(c->q, &c->source[0]);
	return NULL;
}

static void
cancelling_takes_back_a_token_on_its_way(void **state)
{
	struct crowd c = {.q = *state};
	pthread_t t;

	write_has_begun = false;
	writes_are_long = true;
	pthread_create(&t, NULL, late_writer, &c);
	while (!write_has_begun)
		sched_yield();
	vrb_evq_cancel(c.q, &c.source[0]);
	assert_false(readable(c.q));
	pthread_join(t, NULL);
	writes_are_long = false;
	assert_false(readable(c.q));
	/* The queue goes on as before. */
	vrb_evq_post(c.q, &c.source[1]);
	assert_true(readable(c.q));
	assert_ptr_equal(vrb_evq_get(c.q), &c.source[1]);
	assert_false(readable(c.q));
}

#define TEST_QUEUE(name) cmocka_unit_test_setup_teardown(name, open_queue, close_queue)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_QUEUE(descriptor_is_readable_while_an_event_waits),
		TEST_QUEUE(sources_take_turns),
		TEST_QUEUE(cancelled_events_are_gone),
		TEST_QUEUE(every_event_is_taken_once),
		TEST_QUEUE(cancelling_and_taking_meet),
		TEST_QUEUE(cancelling_takes_back_a_token_on_its_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
