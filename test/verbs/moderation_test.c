/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CQ moderation (ibv_modify_cq(3)): how many events come, and when, seen by a program that waits.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "events_util.h"

static int
moderate(struct ibv_cq *cq, uint16_t count, uint16_t period)
{
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE,
		.moderate = {.cq_count = count, .cq_period = period}};

	return ibv_modify_cq(cq, &attr);
}

static void
take_event(struct events *e)
{
	struct ibv_cq *cq;
	void *context;

	assert_true(readable(e->ch, 5000));
	assert_int_equal(ibv_get_cq_event(e->ch, &cq, &context), 0);
	assert_ptr_equal(cq, e->r->cq);
	ibv_ack_cq_events(cq, 1);
}

static void
write_once(struct rig *r)
{
	assert_int_equal(post_send(r, r->a, 0, IBV_WR_RDMA_WRITE, r->buf, 1), 0);
}

static void
complete(struct rig *r)
{
	write_once(r);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
}

static uint64_t
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void
limits_are_told_and_kept(void **state)
{
	struct events *e = *state;
	struct ibv_device_attr_ex dev;
	struct ibv_cq *cq = e->r->cq;

	assert_int_equal(ibv_query_device_ex(e->r->ctx, NULL, &dev), 0);
	assert_true(dev.cq_mod_caps.max_cq_count > 0 && dev.cq_mod_caps.max_cq_period > 0);
	assert_int_equal(
		moderate(cq, dev.cq_mod_caps.max_cq_count, dev.cq_mod_caps.max_cq_period), 0);
	if (dev.cq_mod_caps.max_cq_count < UINT16_MAX)
		expect_errno(moderate(cq, (uint16_t)(dev.cq_mod_caps.max_cq_count + 1), 1), EINVAL);
	if (dev.cq_mod_caps.max_cq_period < UINT16_MAX)
		expect_errno(
			moderate(cq, 1, (uint16_t)(dev.cq_mod_caps.max_cq_period + 1)), EINVAL);
}

static void
unknown_attributes_change_nothing(void **state)
{
	struct events *e = *state;
	struct ibv_modify_cq_attr attr = {.attr_mask = IBV_CQ_ATTR_MODERATE | IBV_CQ_ATTR_RESERVED,
		.moderate = {.cq_count = 100, .cq_period = 4000}};

	expect_errno(ibv_modify_cq(e->r->cq, &attr), EINVAL);
	attr.attr_mask = 0;
	assert_int_equal(ibv_modify_cq(e->r->cq, &attr), 0);
	assert_int_equal(ibv_req_notify_cq(e->r->cq, 0), 0);
	complete(e->r);
	assert_true(readable(e->ch, 0));
	take_event(e);
}

static void
event_comes_with_the_count(void **state)
{
	struct events *e = *state;
	int i;

	assert_int_equal(moderate(e->r->cq, 4, 0), 0);
	assert_int_equal(ibv_req_notify_cq(e->r->cq, 0), 0);
	for (i = 0; i < 3; i++)
		complete(e->r);
	assert_false(readable(e->ch, 20));
	complete(e->r);
	take_event(e);
	for (i = 0; i < 8; i++)
		complete(e->r);
	assert_false(readable(e->ch, 20));
}

/* The program sleeps: nobody but the device itself sees the time pass. */
static void
event_comes_with_the_period(void **state)
{
	struct events *e = *state;
	uint64_t start, took;

	assert_int_equal(moderate(e->r->cq, 1000, 3000), 0);
	assert_int_equal(ibv_req_notify_cq(e->r->cq, 0), 0);
	start = now_us();
	write_once(e->r);
	take_event(e);
	took = now_us() - start;
	assert_in_range(took, 3000, 1000000);
	assert_int_equal(next_status(e->r->cq), IBV_WC_SUCCESS);
	assert_false(readable(e->ch, 20));
}

static void
every_period_ends_in_an_event(void **state)
{
	struct events *e = *state;
	uint64_t start = now_us();
	int i;

	assert_int_equal(moderate(e->r->cq, 1000, 100), 0);
	for (i = 0; i < 300; i++) {
		assert_int_equal(ibv_req_notify_cq(e->r->cq, 0), 0);
		write_once(e->r);
		if (i % 3)
			assert_int_equal(next_status(e->r->cq), IBV_WC_SUCCESS);
		take_event(e);
		if (i % 3 == 0)
			assert_int_equal(next_status(e->r->cq), IBV_WC_SUCCESS);
	}
	assert_true(now_us() - start >= 300 * 100);
	assert_false(readable(e->ch, 20));
}

static void
event_that_is_held_back_comes_when_moderation_ends(void **state)
{
	struct events *e = *state;

	assert_int_equal(moderate(e->r->cq, 1000, 0), 0);
	assert_int_equal(ibv_req_notify_cq(e->r->cq, 0), 0);
	complete(e->r);
	assert_false(readable(e->ch, 20));
	assert_int_equal(moderate(e->r->cq, 0, 0), 0);
	take_event(e);
	/* And from without a period to one that is over. */
	assert_int_equal(moderate(e->r->cq, 1000, 0), 0);
	assert_int_equal(ibv_req_notify_cq(e->r->cq, 0), 0);
	complete(e->r);
	usleep(2000);
	assert_int_equal(moderate(e->r->cq, 1000, 1000), 0);
	assert_true(readable(e->ch, 0));
	take_event(e);
}

static void
resizing_keeps_the_event_that_is_held_back(void **state)
{
	struct events *e = *state;

	assert_int_equal(moderate(e->r->cq, 1000, 2000), 0);
	assert_int_equal(ibv_req_notify_cq(e->r->cq, 0), 0);
	write_once(e->r);
	assert_int_equal(ibv_resize_cq(e->r->cq, 2048), 0);
	assert_int_equal(ibv_resize_cq(e->r->cq, 64), 0);
	take_event(e);
	assert_int_equal(next_status(e->r->cq), IBV_WC_SUCCESS);
	assert_false(readable(e->ch, 20));
}

static void
failures_are_not_held_back(void **state)
{
	struct events *e = *state;

	assert_int_equal(moderate(e->r->cq, 1000, 0), 0);
	assert_int_equal(ibv_req_notify_cq(e->r->cq, 0), 0);
	assert_int_equal(post_recv(e->r, e->r->b, 0, e->r->buf, 1), 0);
	step(e->r, e->r->b, IBV_QPS_ERR, NULL);
	assert_true(readable(e->ch, 0));
	take_event(e);
}

static void
destroying_a_queue_takes_the_event_that_is_held_back(void **state)
{
	struct events *e = *state;
	struct rig other = *e->r;

	other.cq = ibv_create_cq(other.ctx, 16, e, e->ch, 0);
	other.a = make_qp(&other, NULL, NULL);
	other.b = make_qp(&other, NULL, NULL);
	connect_qp(&other, other.a, other.b);
	connect_qp(&other, other.b, other.a);
	assert_int_equal(moderate(other.cq, 1000, 3000), 0);
	assert_int_equal(ibv_req_notify_cq(other.cq, 0), 0);
	complete(&other);
	assert_int_equal(ibv_destroy_qp(other.a), 0);
	assert_int_equal(ibv_destroy_qp(other.b), 0);
	assert_int_equal(ibv_destroy_cq(other.cq), 0);
	/* It may have come before, on a slow machine; now it is gone in any case. */
	assert_false(readable(e->ch, 20));
}

/* ---- several producers, and everything changes meanwhile ---- */

#define PRODUCERS 3
#define EACH 3000
#define DEPTH 32

struct crowd {
	struct events *e;
	struct ibv_qp *a[PRODUCERS], *b[PRODUCERS];
	atomic_int next, failed, stop;
	atomic_int done[PRODUCERS];
};

/* cmocka's asserts are for the main thread; the others count. */
static void *
produce(void *arg)
{
	struct crowd *c = arg;
	int me = c->next++, i;

	for (i = 0; i < EACH && !c->stop; i++) {
		while (i - c->done[me] >= DEPTH && !c->stop)
			sched_yield();
		if (post_send(c->e->r, c->a[me], (uint64_t)me, IBV_WR_RDMA_WRITE, c->e->r->buf, 8))
			c->failed++;
	}
	return NULL;
}

static void *
disturb(void *arg)
{
	struct crowd *c = arg;
	struct ibv_cq *cq = c->e->r->cq;
	unsigned int i;

	for (i = 0; !c->stop; i++) {
		if (moderate(cq, (uint16_t)(i % 5 ? 1 + i % 40 : 0), (uint16_t)(1 + i % 300)))
			c->failed++;
		if (ibv_resize_cq(cq, 200 + (int)(i % 7) * 50))
			c->failed++;
		usleep(200);
	}
	return NULL;
}

/* As any program that sleeps. @return how many events there were */
static int
consume(struct crowd *c)
{
	int seen = 0, events = 1, i, n;
	struct ibv_wc wc[16];

	/* Armed before the first completion, it sleeps once before it polls: later it may always
	 * find some. */
	take_event(c->e);
	while (seen < PRODUCERS * EACH) {
		assert_int_equal(ibv_req_notify_cq(c->e->r->cq, 0), 0);
		while ((n = ibv_poll_cq(c->e->r->cq, 16, wc)) > 0) {
			for (i = 0; i < n; i++) {
				assert_int_equal(wc[i].status, IBV_WC_SUCCESS);
				c->done[wc[i].wr_id]++;
			}
			seen += n;
		}
		assert_int_equal(n, 0);
		if (seen < PRODUCERS * EACH) {
			take_event(c->e);
			events++;
		}
	}
	return events;
}

static int
run_crowd(struct events *e, bool disturbed)
{
	struct crowd *c = calloc(1, sizeof(*c));
	pthread_t t[PRODUCERS + 1];
	int i, events, failed;

	c->e = e;
	for (i = 0; i < PRODUCERS; i++) {
		c->a[i] = make_qp(e->r, NULL, NULL);
		c->b[i] = make_qp(e->r, NULL, NULL);
		connect_qp(e->r, c->a[i], c->b[i]);
		connect_qp(e->r, c->b[i], c->a[i]);
	}
	assert_int_equal(ibv_req_notify_cq(e->r->cq, 0), 0);
	for (i = 0; i < PRODUCERS; i++)
		pthread_create(&t[i], NULL, produce, c);
	if (disturbed)
		pthread_create(&t[PRODUCERS], NULL, disturb, c);
	events = consume(c);
	c->stop = 1;
	for (i = 0; i < PRODUCERS + disturbed; i++)
		pthread_join(t[i], NULL);
	failed = c->failed;
	for (i = 0; i < PRODUCERS; i++) {
		assert_int_equal(ibv_destroy_qp(c->a[i]), 0);
		assert_int_equal(ibv_destroy_qp(c->b[i]), 0);
	}
	free(c);
	assert_int_equal(failed, 0);
	return events;
}

static void
completions_of_several_threads_share_events(void **state)
{
	struct events *e = *state;
	int events;

	assert_int_equal(moderate(e->r->cq, 16, 4000), 0);
	events = run_crowd(e, false);
	/* But for the last, an event stands for 16 completions, or for a pause of 4 ms. */
	assert_in_range(events, 1, PRODUCERS * EACH / 8);
}

static void
no_event_is_lost_whatever_is_changed_meanwhile(void **state)
{
	run_crowd(*state, true);
}

#define TEST_EVENTS(name) cmocka_unit_test_setup_teardown(name, open_events, close_events)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_EVENTS(limits_are_told_and_kept),
		TEST_EVENTS(unknown_attributes_change_nothing),
		TEST_EVENTS(event_comes_with_the_count),
		TEST_EVENTS(event_comes_with_the_period),
		TEST_EVENTS(every_period_ends_in_an_event),
		TEST_EVENTS(event_that_is_held_back_comes_when_moderation_ends),
		TEST_EVENTS(resizing_keeps_the_event_that_is_held_back),
		TEST_EVENTS(failures_are_not_held_back),
		TEST_EVENTS(destroying_a_queue_takes_the_event_that_is_held_back),
		TEST_EVENTS(completions_of_several_threads_share_events),
		TEST_EVENTS(no_event_is_lost_whatever_is_changed_meanwhile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
