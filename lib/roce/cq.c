/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues: the engine's side, and their life.
 */
#include <errno.h>
#include <string.h>

#include <rte_malloc.h>

#include "engine.h"

static struct vrb_cqe *
ring_alloc(uint32_t size, uint32_t *entries)
{
	*entries = rte_align32pow2(size);
	/* Big CQs are common (perftest asks for thousands) and mostly unused: rte_malloc would take
	 * hold of all of it. */
	return aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(struct vrb_cqe) * (size_t)*entries);
}

int
vrb_cq_create(struct vrb_engine *e, uint32_t size, void *user, struct vrb_cq **out)
{
	struct vrb_cq *cq;
	uint32_t entries;

	if (size == 0 || size > VRB_MAX_CQE)
		return -EINVAL;
	if (e->num_cqs >= VRB_MAX_CQ)
		return -ENOMEM;
	cq = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*cq));
	if (cq == NULL)
		return -ENOMEM;
	memset(cq, 0, sizeof(*cq));
	cq->ring = ring_alloc(size, &entries);
	if (cq->ring == NULL || vrb_timer_add(e) < 0) {
		free(cq->ring);
		free(cq);
		return -ENOMEM;
	}
	cq->mask = entries - 1;
	cq->size = size;
	cq->user = user;
	cq->engine = e;
	cq->num = ++e->next_cq;
	cq->mod.timer.of_cq = true;
	rte_spinlock_init(&cq->lock);
	LIST_INSERT_HEAD(&e->cqs, cq, link);
	e->num_cqs++;
	*out = cq;
	return 0;
}

int
vrb_cq_destroy(struct vrb_engine *e, struct vrb_cq *cq)
{
	if (cq->refs > 0)
		return -EBUSY;
	vrb_timer_drop(e, &cq->mod.timer);
	LIST_REMOVE(cq, link);
	e->num_cqs--;
	free(cq->ring);
	free(cq);
	return 0;
}

/** Tells that completions wait; once for each arming. */
static void
notify(struct vrb_cq *cq)
{
	cq->armed = VRB_CQ_DISARMED;
	cq->mod.held = 0;
	vrb_timer_set(cq->engine, &cq->mod.timer, 0);
	cq->engine->conf.ops->cq_notify(cq->engine->conf.ctx, cq);
}

static bool
full(const struct vrb_cq *cq)
{
	return atomic_load_explicit(&cq->head, memory_order_relaxed) -
		       atomic_load_explicit(&cq->tail, memory_order_acquire) >=
	       cq->size;
}

/** Whether what is held back is to be told now. */
static bool
mod_is_over(const struct vrb_cq *cq)
{
	const struct vrb_cq_moderation *mod = &cq->mod;

	if (mod->count == 0 && mod->period == 0)
		return true;
	if (mod->count != 0 && mod->held >= mod->count)
		return true;
	if (mod->period != 0 && cq->engine->now >= mod->first + mod->period)
		return true;
	/* The next one would overflow it: a program that sleeps has to know. */
	return full(cq);
}

int
vrb_cq_moderate(struct vrb_cq *cq, uint32_t count, uint32_t period_us, uint64_t now)
{
	struct vrb_cq_moderation *mod = &cq->mod;

	if (count > VRB_MAX_CQ_COUNT || period_us > VRB_MAX_CQ_PERIOD)
		return -EINVAL;
	if (cq->overrun)
		return -EIO;
	cq->engine->now = now;
	mod->count = count;
	mod->period = period_us * UINT64_C(1000);
	if (mod->held == 0)
		return 0;
	if (mod_is_over(cq))
		notify(cq);
	else
		vrb_timer_set(
			cq->engine, &mod->timer, mod->period != 0 ? mod->first + mod->period : 0);
	return 0;
}

void
vrb_cq_timer(struct vrb_cq *cq)
{
	/* Set only while something is held back. */
	notify(cq);
}

int
vrb_cq_resize(struct vrb_engine *e, struct vrb_cq *cq, uint32_t size)
{
	uint32_t head, tail, entries, i;
	struct vrb_cqe *ring;

	if (size == 0 || size > VRB_MAX_CQE)
		return -EINVAL;
	if (cq->overrun)
		return -EIO;
	ring = ring_alloc(size, &entries);
	if (ring == NULL)
		return -ENOMEM;
	/* With the baton and the lock both sides stand still, so entries keep their order and none
	 * is lost. */
	rte_spinlock_lock(&cq->lock);
	head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	if (head - tail > size) {
		rte_spinlock_unlock(&cq->lock);
		free(ring);
		return -EINVAL;
	}
	for (i = tail; i != head; i++)
		ring[i & (entries - 1)] = cq->ring[i & cq->mask];
	free(cq->ring);
	cq->ring = ring;
	cq->mask = entries - 1;
	cq->size = size;
	rte_spinlock_unlock(&cq->lock);
	if (cq->mod.held > 0 && mod_is_over(cq))
		notify(cq);
	return 0;
}

void
vrb_cq_forget(struct vrb_cq *cq, const struct vrb_qp *qp)
{
	uint32_t head, tail, from, to;

	rte_spinlock_lock(&cq->lock);
	head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	tail = atomic_load_explicit(&cq->tail, memory_order_relaxed);
	/* Those that stay move up to the head, which the program may be looking at. */
	for (from = to = head; from != tail;) {
		const struct vrb_cqe *cqe = &cq->ring[--from & cq->mask];

		/* Numbers of work queues may be the same. */
		if (cqe->qp_num == qp->qpn && cqe->qp_user == qp->user)
			continue;
		if (--to != from)
			cq->ring[to & cq->mask] = *cqe;
	}
	cq->seen_head = head;
	atomic_store_explicit(&cq->tail, to, memory_order_release);
	rte_spinlock_unlock(&cq->lock);
}

void
vrb_cq_arm(struct vrb_cq *cq, bool solicited_only)
{
	uint32_t want = solicited_only ? VRB_CQ_ARMED_SOLICITED : VRB_CQ_ARMED_ANY;

	/* IBTA 11.4.2.2: a request for the next completion is not weakened by one for a solicited
	 * one. */
	if (cq->armed < want)
		cq->armed = want;
}

/* Where completions of an overrun CQ go. */
static struct vrb_cqe scratch;

struct vrb_cqe *
vrb_cq_reserve(struct vrb_cq *cq)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);
	struct vrb_cqe *cqe;

	if (unlikely(cq->overrun))
		return &scratch;
	if (unlikely(head - cq->seen_tail >= cq->size)) {
		/* Pairs with vrb_cq_pop(): the program has read what stands in the slot. */
		cq->seen_tail = atomic_load_explicit(&cq->tail, memory_order_acquire);
		if (head - cq->seen_tail >= cq->size) {
			/* IBTA 10.2.6.3: never silently. The QPs follow when the current packet is
			 * done with. */
			cq->overrun = 1;
			cq->engine->cq_overrun = true;
			cq->engine->stats.cq_overruns++;
			vrb_explain(cq->engine,
				"completion queue overflow: its %u entries are all waiting to be "
				"polled; "
				"make it as large as all work requests that can be outstanding on "
				"its queue pairs",
				cq->size);
			vrb_engine_async(cq->engine, VRB_EVENT_CQ_ERR, cq->user);
			/* No more will come that could end the wait. */
			if (cq->mod.held > 0)
				notify(cq);
			return &scratch;
		}
	}
	/* What only frames have; in the line that is about to be written anyway. */
	cqe = &cq->ring[head & cq->mask];
	cqe->flow_tag = 0;
	cqe->cvlan = 0;
	return cqe;
}

/** A completion that an armed CQ was waiting for. @return whether it is not to be told yet */
static bool
hold_back(struct vrb_cq *cq, uint32_t status)
{
	struct vrb_cq_moderation *mod = &cq->mod;

	/* A failure is not what a program wants to hear late. */
	if (status != VRB_WC_SUCCESS)
		return false;
	if (mod->held++ == 0) {
		mod->first = cq->engine->now;
		if (mod->period != 0)
			vrb_timer_set(cq->engine, &mod->timer, mod->first + mod->period);
	}
	return !mod_is_over(cq);
}

void
vrb_cq_publish(struct vrb_cq *cq, bool solicited)
{
	uint32_t head = atomic_load_explicit(&cq->head, memory_order_relaxed);

	if (unlikely(cq->overrun))
		return;
	/* The entry, and the data it announces, before the index. */
	atomic_store_explicit(&cq->head, head + 1, memory_order_release);
	if (cq->armed == VRB_CQ_DISARMED || (cq->armed == VRB_CQ_ARMED_SOLICITED && !solicited))
		return;
	if (unlikely(cq->mod.count != 0 || cq->mod.period != 0) &&
		hold_back(cq, cq->ring[head & cq->mask].status))
		return;
	notify(cq);
}
