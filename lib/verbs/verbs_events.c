/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event queues: what completion channels and asynchronous events are made of.
 *
 * The descriptor that a program polls is an eventfd. Its bytes are ours to define, since programs
 * read it by way of ibv_get_cq_event() and ibv_get_async_event() only; what they rely on is that it
 * is readable exactly while an event waits. So the eventfd holds at most one token, whatever the
 * number of events, and can never be full. The events themselves are counts in their sources, which
 * stand in a list: posting allocates nothing.
 *
 * A reader takes the token by a plain read(2) on the descriptor, which gives it blocking,
 * O_NONBLOCK, signals and cancellation just as a program knows them, and looks at the list
 * afterwards. In between the token is in nobody's view, so the rule is, whenever the lock is given
 * up:
 *
 *   - events wait: a token is in the descriptor, on its way there, or in the hand of a reader
 *   - no event waits: no token is in the descriptor
 *
 * written and taken count the tokens; when they are equal, there is none anywhere. The write is
 * made after the lock was given up, so that the reader that it wakes finds the lock free; sent
 * counts the writes that are over. While a token is on its way no reader has one, so only
 * cancelling can empty the list then. It waits for the write, and takes the token back.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "verbs_private.h"

#define WRITE_PATIENCE 20 /* microseconds; the system call takes about one */

int
vrb_evq_init(struct vrb_evq *q)
{
	TAILQ_INIT(&q->events);
	q->written = q->taken = 0;
	atomic_init(&q->sent, 0);
	q->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
	if (q->fd < 0)
		return -errno;
	pthread_mutex_init(&q->lock, NULL);
	return 0;
}

/* Waits until no thread is in between having unlocked the queue and having written its token. */
static void
await_writes(struct vrb_evq *q)
{
	while (atomic_load_explicit(&q->sent, memory_order_acquire) != q->written)
		usleep(WRITE_PATIENCE);
}

void
vrb_evq_fini(struct vrb_evq *q)
{
	/* The threads of a forked child's parent are not there. */
	if (!vrb_forked)
		await_writes(q);
	close(q->fd);
	pthread_mutex_destroy(&q->lock);
}

/* Makes the tokens fit the list. @return whether the caller has to write one, after unlocking */
static bool
settle(struct vrb_evq *q)
{
	struct iovec iov;
	uint64_t token;

	if (!TAILQ_EMPTY(&q->events)) {
		if (q->written != q->taken)
			return false;
		q->written++;
		return true;
	}
	iov.iov_base = &token;
	iov.iov_len = sizeof(token);
	while (q->written != q->taken) {
		await_writes(q);
		/* EAGAIN: a reader has it, and will look. EOPNOTSUPP (before Linux 5.8): that
		 * reader finds nothing and waits on. */
		if (preadv2(q->fd, &iov, 1, -1, RWF_NOWAIT) != sizeof(token))
			break;
		q->taken++;
	}
	return false;
}

/* The system calls in between must not be where a thread is cancelled. */
static int
evq_lock(struct vrb_evq *q)
{
	int state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	pthread_mutex_lock(&q->lock);
	return state;
}

static void
evq_unlock(struct vrb_evq *q, int state)
{
	static const uint64_t token = 1;
	bool signal = settle(q);
	ssize_t rc;

	pthread_mutex_unlock(&q->lock);
	if (signal) {
		do {
			rc = write(q->fd, &token, sizeof(token));
		} while (rc < 0 && errno == EINTR);
		/* The last touch of the queue, which may be freed from now on. */
		atomic_fetch_add_explicit(&q->sent, 1, memory_order_release);
	}
	pthread_setcancelstate(state, NULL);
}

void
vrb_evq_post(struct vrb_evq *q, struct vrb_event *e)
{
	int state = evq_lock(q);

	if (!e->closed && !e->pending++)
		TAILQ_INSERT_TAIL(&q->events, e, link);
	evq_unlock(q, state);
}

/* The oldest source goes to the end when it has more: several sources take turns. */
static struct vrb_event *
pop(struct vrb_evq *q)
{
	struct vrb_event *e = TAILQ_FIRST(&q->events);

	if (!e)
		return NULL;
	TAILQ_REMOVE(&q->events, e, link);
	if (--e->pending)
		TAILQ_INSERT_TAIL(&q->events, e, link);
	e->reported++;
	return e;
}

struct vrb_event *
vrb_evq_get(struct vrb_evq *q)
{
	struct vrb_event *e;
	uint64_t token;
	int state;

	do {
		if (read(q->fd, &token, sizeof(token)) != sizeof(token))
			return NULL;
		state = evq_lock(q);
		q->taken++;
		e = pop(q);
		evq_unlock(q, state);
	} while (!e);
	return e;
}

uint32_t
vrb_evq_cancel(struct vrb_evq *q, struct vrb_event *e)
{
	int state = evq_lock(q);
	uint32_t reported = e->reported;

	e->closed = true;
	if (e->pending) {
		TAILQ_REMOVE(&q->events, e, link);
		e->pending = 0;
	}
	evq_unlock(q, state);
	return reported;
}

void
vrb_evq_wait_acks(
	pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed, uint32_t reported)
{
	pthread_mutex_lock(mutex);
	/* A program that acknowledges more than it was given does not wait for ever. */
	while ((int32_t)(reported - *completed) > 0)
		pthread_cond_wait(cond, mutex);
	pthread_mutex_unlock(mutex);
}
