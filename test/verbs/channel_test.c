/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels: each request for a notification gives one event, none is lost, and the
 * descriptor is readable exactly while an event waits.
 */
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include "events_util.h"

static void
take_event(struct events *e, struct ibv_cq *expected)
{
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(ibv_get_cq_event(e->ch, &cq, &context), 0);
	assert_ptr_equal(cq, expected);
	assert_ptr_equal(context, e);
	ibv_ack_cq_events(cq, 1);
}

static void
write_once(struct rig *r)
{
	assert_int_equal(post_send(r, r->a, 0, IBV_WR_RDMA_WRITE, r->buf, 1), 0);
}

static void
request_gives_one_event(void **state)
{
	struct events *e = *state;

	assert_int_equal(ibv_req_notify_cq(e->r->cq, 0), 0);
	assert_false(readable(e->ch, 0));
	write_once(e->r);
	write_once(e->r);
	assert_true(readable(e->ch, 5000));
	take_event(e, e->r->cq);
	assert_false(readable(e->ch, 20));
}

static void
completion_without_a_request_gives_no_event(void **state)
{
	struct events *e = *state;

	write_once(e->r);
	assert_int_equal(next_status(e->r->cq), IBV_WC_SUCCESS);
	assert_false(readable(e->ch, 20));
}

/* Sends from a to b, whose receives complete in the same CQ; the sends are not signalled. */
static void
send_to_b(struct rig *r, unsigned int flags)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	assert_int_equal(post_recv(r, r->b, 0, r->buf + BUF_SIZE / 2, 64), 0);
	wr = make_wr(IBV_WR_SEND, &sge, r, r->buf, 1);
	wr.send_flags = flags;
	assert_int_equal(ibv_post_send(r->a, &wr, &bad), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
}

static void
request_for_solicited_waits_for_a_solicited_one(void **state)
{
	struct events *e = *state;

	assert_int_equal(ibv_req_notify_cq(e->r->cq, 1), 0);
	send_to_b(e->r, 0);
	assert_false(readable(e->ch, 20));
	send_to_b(e->r, IBV_SEND_SOLICITED);
	assert_true(readable(e->ch, 5000));
	take_event(e, e->r->cq);
}

static void
request_for_solicited_is_met_by_an_error(void **state)
{
	struct events *e = *state;

	assert_int_equal(ibv_req_notify_cq(e->r->cq, 1), 0);
	assert_int_equal(post_recv(e->r, e->r->b, 0, e->r->buf, 1), 0);
	step(e->r, e->r->b, IBV_QPS_ERR, NULL);
	assert_true(readable(e->ch, 5000));
	take_event(e, e->r->cq);
}

static void
request_for_any_is_not_weakened_by_one_for_solicited(void **state)
{
	struct events *e = *state;

	assert_int_equal(ibv_req_notify_cq(e->r->cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(e->r->cq, 1), 0);
	send_to_b(e->r, 0);
	assert_true(readable(e->ch, 5000));
	take_event(e, e->r->cq);
}

static void
requests_met_before_the_first_event_is_taken_all_count(void **state)
{
	struct events *e = *state;
	int i;

	for (i = 0; i < 3; i++) {
		assert_int_equal(ibv_req_notify_cq(e->r->cq, 0), 0);
		write_once(e->r);
		assert_int_equal(next_status(e->r->cq), IBV_WC_SUCCESS);
	}
	for (i = 0; i < 3; i++)
		take_event(e, e->r->cq);
	assert_false(readable(e->ch, 20));
}

static void
nonblocking_channel_without_an_event_says_eagain(void **state)
{
	struct events *e = *state;
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(fcntl(e->ch->fd, F_SETFL, O_NONBLOCK), 0);
	expect_minus1(ibv_get_cq_event(e->ch, &cq, &context), EAGAIN);
	assert_int_equal(ibv_req_notify_cq(e->r->cq, 0), 0);
	write_once(e->r);
	assert_true(readable(e->ch, 5000));
	take_event(e, e->r->cq);
	expect_minus1(ibv_get_cq_event(e->ch, &cq, &context), EAGAIN);
}

static void *
write_later(void *arg)
{
	usleep(20000);
	write_once(arg);
	return NULL;
}

static void
blocking_channel_waits(void **state)
{
	struct events *e = *state;
	pthread_t t;

	assert_int_equal(ibv_req_notify_cq(e->r->cq, 0), 0);
	pthread_create(&t, NULL, write_later, e->r);
	take_event(e, e->r->cq);
	pthread_join(t, NULL);
}

static void
ignore(int sig)
{
}

/* As of read(2): a handler with SA_RESTART is not seen, one without is EINTR. */
static void
waiting_is_interrupted_as_reading_is(void **state)
{
	struct events *e = *state;
	struct itimerval timer = {.it_value.tv_usec = 5000}, off = {0};
	struct sigaction sa = {.sa_handler = ignore, .sa_flags = SA_RESTART};
	struct ibv_cq *cq;
	void *context;
	pthread_t t;

	sigaction(SIGALRM, &sa, NULL);
	assert_int_equal(ibv_req_notify_cq(e->r->cq, 0), 0);
	pthread_create(&t, NULL, write_later, e->r);
	setitimer(ITIMER_REAL, &timer, NULL);
	take_event(e, e->r->cq);
	pthread_join(t, NULL);
	sa.sa_flags = 0;
	sigaction(SIGALRM, &sa, NULL);
	timer.it_interval = timer.it_value; /* the first may come before the wait has begun */
	setitimer(ITIMER_REAL, &timer, NULL);
	expect_minus1(ibv_get_cq_event(e->ch, &cq, &context), EINTR);
	setitimer(ITIMER_REAL, &off, NULL);
	signal(SIGALRM, SIG_DFL);
}

static void
channel_is_busy_while_a_queue_uses_it(void **state)
{
	struct events *e = *state;

	expect_errno(ibv_destroy_comp_channel(e->ch), EBUSY);
}

static void
destroying_a_queue_removes_its_events(void **state)
{
	struct events *e = *state;
	struct rig *r = e->r, other = *r;

	other.cq = ibv_create_cq(r->ctx, 16, e, e->ch, 0);
	other.a = make_qp(&other, NULL, NULL);
	other.b = make_qp(&other, NULL, NULL);
	connect_qp(&other, other.a, other.b);
	connect_qp(&other, other.b, other.a);
	assert_int_equal(ibv_req_notify_cq(other.cq, 0), 0);
	assert_int_equal(ibv_req_notify_cq(r->cq, 0), 0);
	write_once(&other);
	write_once(r);
	assert_int_equal(next_status(other.cq), IBV_WC_SUCCESS);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_int_equal(ibv_destroy_qp(other.a), 0);
	assert_int_equal(ibv_destroy_qp(other.b), 0);
	assert_int_equal(ibv_destroy_cq(other.cq), 0);
	take_event(e, r->cq);
	assert_false(readable(e->ch, 20));
}

struct destroyer {
	struct ibv_cq *cq;
	atomic_int done;
};

static void *
destroy_cq(void *arg)
{
	struct destroyer *d = arg;

	assert_int_equal(ibv_destroy_cq(d->cq), 0);
	d->done = 1;
	return NULL;
}

static void
destroying_a_queue_waits_for_acknowledgements(void **state)
{
	struct events *e = *state;
	struct rig *r = e->r;
	struct destroyer d = {.cq = r->cq};
	struct ibv_cq *cq;
	void *context;
	pthread_t t;

	assert_int_equal(ibv_req_notify_cq(r->cq, 0), 0);
	write_once(r);
	assert_int_equal(ibv_get_cq_event(e->ch, &cq, &context), 0);
	assert_int_equal(ibv_destroy_qp(r->a), 0);
	assert_int_equal(ibv_destroy_qp(r->b), 0);
	pthread_create(&t, NULL, destroy_cq, &d);
	usleep(50000);
	assert_int_equal(d.done, 0);
	/* Until then the queue is there. */
	assert_int_equal(next_status(cq), IBV_WC_SUCCESS);
	assert_int_equal(ibv_req_notify_cq(cq, 0), 0);
	assert_int_equal(ibv_resize_cq(cq, 100), 0);
	ibv_ack_cq_events(cq, 1);
	pthread_join(t, NULL);
	assert_int_equal(d.done, 1);
	/* For closing. */
	r->cq = ibv_create_cq(r->ctx, 16, e, e->ch, 0);
	r->a = make_qp(r, NULL, NULL);
	r->b = make_qp(r, NULL, NULL);
}

static void
too_many_acknowledgements_do_not_hang(void **state)
{
	struct events *e = *state;

	ibv_ack_cq_events(e->r->cq, 3);
}

static void
running_out_of_descriptors_is_an_error(void **state)
{
	struct events *e = *state;
	struct rlimit limit, none;
	int fds[64], n = 0;

	getrlimit(RLIMIT_NOFILE, &limit);
	none = limit;
	none.rlim_cur = 40;
	setrlimit(RLIMIT_NOFILE, &none);
	while (n < 64 && (fds[n] = dup(e->ch->fd)) >= 0)
		n++;
	errno = 0;
	assert_null(ibv_create_comp_channel(e->r->ctx));
	assert_int_equal(errno, EMFILE);
	errno = 0;
	assert_null(ibv_open_device(e->r->ctx->device));
	assert_int_equal(errno, EMFILE);
	while (n)
		close(fds[--n]);
	setrlimit(RLIMIT_NOFILE, &limit);
}

/* ---- many queues, many readers ---- */

#define QUEUES 8
#define READERS 4
#define ROUNDS 300

struct crowd {
	struct events *e;
	struct rig rig[QUEUES];
	atomic_int arrived[QUEUES];
	atomic_int total;
	atomic_int stop;
};

/* Takes whatever event comes. The queue is empty again before the next request is made, by the
 * writer. */
static void *
reader(void *arg)
{
	struct crowd *c = arg;
	struct ibv_cq *cq;
	void *context;
	int i;

	while (!c->stop) {
		if (ibv_get_cq_event(c->e->ch, &cq, &context)) {
			assert_int_equal(errno, EAGAIN);
			poll(&(struct pollfd){.fd = c->e->ch->fd, .events = POLLIN}, 1, 10);
			continue;
		}
		for (i = 0; i < QUEUES; i++)
			if (c->rig[i].cq == cq)
				c->arrived[i]++;
		c->total++;
		ibv_ack_cq_events(cq, 1);
	}
	return NULL;
}

static void
wait_for(atomic_int *value, int goal)
{
	int i;

	for (i = 0; i < 50000 && *value < goal; i++)
		usleep(100);
	assert_int_equal(*value, goal);
}

static void
no_event_is_lost_among_many_queues_and_readers(void **state)
{
	struct crowd *c = calloc(1, sizeof(*c));
	pthread_t t[READERS];
	int i, round;

	c->e = *state;
	fcntl(c->e->ch->fd, F_SETFL, O_NONBLOCK);
	for (i = 0; i < QUEUES; i++) {
		struct rig *r = &c->rig[i];

		*r = *c->e->r;
		r->cq = ibv_create_cq(r->ctx, 16, NULL, c->e->ch, 0);
		r->a = make_qp(r, NULL, NULL);
		r->b = make_qp(r, NULL, NULL);
		connect_qp(r, r->a, r->b);
		connect_qp(r, r->b, r->a);
	}
	for (i = 0; i < READERS; i++)
		pthread_create(&t[i], NULL, reader, c);
	for (round = 1; round <= ROUNDS; round++) {
		for (i = 0; i < QUEUES; i++)
			assert_int_equal(ibv_req_notify_cq(c->rig[i].cq, 0), 0);
		for (i = 0; i < QUEUES; i++)
			write_once(&c->rig[i]);
		for (i = 0; i < QUEUES; i++)
			assert_int_equal(next_status(c->rig[i].cq), IBV_WC_SUCCESS);
		wait_for(&c->total, round * QUEUES);
	}
	c->stop = 1;
	for (i = 0; i < READERS; i++)
		pthread_join(t[i], NULL);
	for (i = 0; i < QUEUES; i++) {
		assert_int_equal(c->arrived[i], ROUNDS);
		ibv_destroy_qp(c->rig[i].a);
		ibv_destroy_qp(c->rig[i].b);
		assert_int_equal(ibv_destroy_cq(c->rig[i].cq), 0);
	}
	assert_false(readable(c->e->ch, 20));
	free(c);
}

#define TEST_EVENTS(name) cmocka_unit_test_setup_teardown(name, open_events, close_events)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_EVENTS(request_gives_one_event),
		TEST_EVENTS(completion_without_a_request_gives_no_event),
		TEST_EVENTS(request_for_solicited_waits_for_a_solicited_one),
		TEST_EVENTS(request_for_solicited_is_met_by_an_error),
		TEST_EVENTS(request_for_any_is_not_weakened_by_one_for_solicited),
		TEST_EVENTS(requests_met_before_the_first_event_is_taken_all_count),
		TEST_EVENTS(nonblocking_channel_without_an_event_says_eagain),
		TEST_EVENTS(blocking_channel_waits),
		TEST_EVENTS(waiting_is_interrupted_as_reading_is),
		TEST_EVENTS(channel_is_busy_while_a_queue_uses_it),
		TEST_EVENTS(destroying_a_queue_removes_its_events),
		TEST_EVENTS(destroying_a_queue_waits_for_acknowledgements),
		TEST_EVENTS(too_many_acknowledgements_do_not_hang),
		TEST_EVENTS(running_out_of_descriptors_is_an_error),
		TEST_EVENTS(no_event_is_lost_among_many_queues_and_readers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
