/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deadlines of queue pairs and of completion queues: a binary heap that is lazy about postponing.
 *
 * A retransmission timer is pushed back with every acknowledgement and hardly ever fires. So a
 * timer's place in the heap (key) is allowed to be too early: it is corrected when it gets to the
 * top.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "engine.h"

int
vrb_timer_add(struct vrb_engine *e)
{
	struct vrb_timer **heap;

	if (e->num_timers + 2 > e->heap_cap) {
		heap = realloc(e->heap, (e->heap_cap + 64) * sizeof(*heap));
		if (heap == NULL)
			return -ENOMEM;
		e->heap = heap;
		e->heap_cap += 64;
	}
	e->num_timers++;
	return 0;
}

void
vrb_timer_drop(struct vrb_engine *e, struct vrb_timer *t)
{
	vrb_timer_remove(e, t);
	e->num_timers--;
}

static void
place(struct vrb_engine *e, uint32_t pos, struct vrb_timer *t)
{
	e->heap[pos] = t;
	t->pos = pos;
}

static void
sift_up(struct vrb_engine *e, uint32_t pos)
{
	struct vrb_timer *t = e->heap[pos];

	while (pos > 1 && e->heap[pos / 2]->key > t->key) {
		place(e, pos, e->heap[pos / 2]);
		pos /= 2;
	}
	place(e, pos, t);
}

static void
sift_down(struct vrb_engine *e, uint32_t pos)
{
	struct vrb_timer *t = e->heap[pos];
	uint32_t child;

	while ((child = pos * 2) <= e->heap_len) {
		if (child < e->heap_len && e->heap[child + 1]->key < e->heap[child]->key)
			child++;
		if (e->heap[child]->key >= t->key)
			break;
		place(e, pos, e->heap[child]);
		pos = child;
	}
	place(e, pos, t);
}

void
vrb_timer_remove(struct vrb_engine *e, struct vrb_timer *t)
{
	uint32_t pos = t->pos;
	struct vrb_timer *last;

	t->at = 0;
	if (pos == 0)
		return;
	t->pos = 0;
	last = e->heap[e->heap_len--];
	if (last == t)
		return;
	place(e, pos, last);
	sift_up(e, pos);
	sift_down(e, last->pos);
}

void
vrb_timer_set(struct vrb_engine *e, struct vrb_timer *t, uint64_t when)
{
	t->at = when;
	if (when == 0)
		return; /* its place in the heap goes when it gets to the top */
	if (t->pos == 0) {
		/* The heap has room for every timer: it grows with their number (vrb_timer_add()).
		 */
		t->key = when;
		place(e, ++e->heap_len, t);
		sift_up(e, t->pos);
	} else if (when < t->key) {
		t->key = when;
		sift_up(e, t->pos);
	}
}

/** Makes the top of the heap tell the truth. */
static struct vrb_timer *
settle(struct vrb_engine *e)
{
	while (e->heap_len > 0) {
		struct vrb_timer *t = e->heap[1];

		if (t->at == 0) {
			vrb_timer_remove(e, t);
		} else if (t->at > t->key) {
			t->key = t->at;
			sift_down(e, 1);
		} else {
			return t;
		}
	}
	return NULL;
}

struct vrb_timer *
vrb_timer_due(struct vrb_engine *e, uint64_t now)
{
	struct vrb_timer *t;

	/* The common case costs one comparison. */
	if (e->heap_len == 0 || e->heap[1]->key > now)
		return NULL;
	t = settle(e);
	if (t == NULL || t->at > now)
		return NULL;
	vrb_timer_remove(e, t);
	return t;
}

uint64_t
vrb_timer_next(struct vrb_engine *e)
{
	struct vrb_timer *t = settle(e);

	return t == NULL ? UINT64_MAX : t->at;
}
