/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Deadlines of queue pairs: a binary heap that is lazy about postponing.
 *
 * A retransmission timer is pushed back with every acknowledgement and hardly ever fires. So a QP's
 * place in the heap (timer_key) is allowed to be too early: it is corrected when it gets to the
 * top.
 */
#include <stdint.h>

#include "engine.h"

static void
place(struct vrb_engine *e, uint32_t pos, struct vrb_qp *qp)
{
	e->heap[pos] = qp;
	qp->timer_pos = pos;
}

static void
sift_up(struct vrb_engine *e, uint32_t pos)
{
	struct vrb_qp *qp = e->heap[pos];

	while (pos > 1 && e->heap[pos / 2]->timer_key > qp->timer_key) {
		place(e, pos, e->heap[pos / 2]);
		pos /= 2;
	}
	place(e, pos, qp);
}

static void
sift_down(struct vrb_engine *e, uint32_t pos)
{
	struct vrb_qp *qp = e->heap[pos];
	uint32_t child;

	while ((child = pos * 2) <= e->heap_len) {
		if (child < e->heap_len &&
			e->heap[child + 1]->timer_key < e->heap[child]->timer_key)
			child++;
		if (e->heap[child]->timer_key >= qp->timer_key)
			break;
		place(e, pos, e->heap[child]);
		pos = child;
	}
	place(e, pos, qp);
}

void
vrb_timer_remove(struct vrb_qp *qp)
{
	struct vrb_engine *e = qp->engine;
	uint32_t pos = qp->timer_pos;
	struct vrb_qp *last;

	qp->timer = 0;
	if (pos == 0)
		return;
	qp->timer_pos = 0;
	last = e->heap[e->heap_len--];
	if (last == qp)
		return;
	place(e, pos, last);
	sift_up(e, pos);
	sift_down(e, last->timer_pos);
}

void
vrb_timer_set(struct vrb_qp *qp, uint64_t when)
{
	struct vrb_engine *e = qp->engine;

	qp->timer = when;
	if (when == 0)
		return; /* its place in the heap goes when it gets to the top */
	if (qp->timer_pos == 0) {
		/* The heap has room for every QP: it grows with their number (vrb_qp_create()). */
		qp->timer_key = when;
		place(e, ++e->heap_len, qp);
		sift_up(e, qp->timer_pos);
	} else if (when < qp->timer_key) {
		qp->timer_key = when;
		sift_up(e, qp->timer_pos);
	}
}

/** Makes the top of the heap tell the truth. */
static struct vrb_qp *
settle(struct vrb_engine *e)
{
	while (e->heap_len > 0) {
		struct vrb_qp *qp = e->heap[1];

		if (qp->timer == 0) {
			vrb_timer_remove(qp);
		} else if (qp->timer > qp->timer_key) {
			qp->timer_key = qp->timer;
			sift_down(e, 1);
		} else {
			return qp;
		}
	}
	return NULL;
}

struct vrb_qp *
vrb_timer_due(struct vrb_engine *e, uint64_t now)
{
	struct vrb_qp *qp;

	/* The common case costs one comparison. */
	if (e->heap_len == 0 || e->heap[1]->timer_key > now)
		return NULL;
	qp = settle(e);
	if (qp == NULL || qp->timer > now)
		return NULL;
	vrb_timer_remove(qp);
	return qp;
}

uint64_t
vrb_timer_next(struct vrb_engine *e)
{
	struct vrb_qp *qp = settle(e);

	return qp == NULL ? UINT64_MAX : qp->timer;
}
