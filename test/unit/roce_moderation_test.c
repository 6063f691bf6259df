/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CQ moderation: when the notification of an armed completion queue comes, in virtual time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "roce_rig.h"

#include "engine.h"

#define US UINT64_C(1000)
#define NEVER UINT64_MAX

/* A message of the peer's comes, and with it a completion. */
static void
receive(struct rig *r, bool solicited)
{
	/* Each was answered by one acknowledgement. */
	struct frame f = rig_packet(r, OP_SEND_ONLY, RIG_RQ_PSN + r->n_frames);

	f.se = solicited;
	rig_post_recv(r, 0, 0);
	rig_receive(r, &f);
}

static void
arrive(struct rig *r, bool solicited)
{
	receive(r, solicited);
	rig_send(r);
}

static struct rig *
moderated(const struct rig_conf *conf, uint32_t count, uint32_t period_us)
{
	struct rig *r = rig_new(conf);

	rig_send(r); /* going to RTS has scheduled it */
	assert_int_equal(vrb_cq_moderate(r->rcq, count, period_us, r->now), 0);
	vrb_cq_arm(r->rcq, false);
	return r;
}

static void
pass(struct rig *r, uint64_t ns)
{
	r->now += ns;
	rig_send(r);
}

static void
count_ends_the_wait(void **state)
{
	struct rig *r = moderated(&(struct rig_conf){0}, 3, 0);

	arrive(r, false);
	arrive(r, true);
	assert_true(vrb_engine_deadline(r->e) == NEVER);
	assert_int_equal(r->notified, 0);
	arrive(r, false);
	assert_int_equal(r->notified, 1);
	arrive(r, false);
	assert_int_equal(r->notified, 1);
	rig_free(r);
}

static void
period_ends_the_wait(void **state)
{
	struct rig *r = moderated(&(struct rig_conf){0}, 10, 50);
	uint64_t start = r->now;

	arrive(r, false);
	assert_true(vrb_engine_deadline(r->e) == start + 50 * US);
	pass(r, 30 * US);
	arrive(r, false); /* the period is that of the first */
	assert_true(vrb_engine_deadline(r->e) == start + 50 * US);
	pass(r, 20 * US - 1);
	assert_int_equal(r->notified, 0);
	pass(r, 1);
	assert_int_equal(r->notified, 1);
	assert_true(vrb_engine_deadline(r->e) == NEVER);
	pass(r, 100 * US);
	assert_int_equal(r->notified, 1);
	rig_free(r);
}

/* No timer is needed for what is late already. */
static void
completion_after_the_period_is_told_at_once(void **state)
{
	struct rig *r = moderated(&(struct rig_conf){0}, 10, 50);

	arrive(r, false);
	r->now += 60 * US;
	receive(r, false);
	assert_int_equal(r->notified, 1);
	rig_free(r);
}

static void
count_takes_the_deadline_away(void **state)
{
	struct rig *r = moderated(&(struct rig_conf){0}, 2, 50);

	arrive(r, false);
	arrive(r, false);
	assert_int_equal(r->notified, 1);
	assert_true(vrb_engine_deadline(r->e) == NEVER);
	pass(r, 100 * US);
	assert_int_equal(r->notified, 1);
	rig_free(r);
}

static void
arming_again_does_not_postpone(void **state)
{
	struct rig *r = moderated(&(struct rig_conf){0}, 3, 50);
	uint64_t start = r->now;

	arrive(r, false);
	pass(r, 30 * US);
	vrb_cq_arm(r->rcq, false);
	assert_true(vrb_engine_deadline(r->e) == start + 50 * US);
	arrive(r, false);
	vrb_cq_arm(r->rcq, true);
	arrive(r, false);
	assert_int_equal(r->notified, 1);
	rig_free(r);
}

static void
completions_before_the_arming_do_not_count(void **state)
{
	struct rig *r = moderated(&(struct rig_conf){0}, 2, 50);

	arrive(r, false);
	arrive(r, false);
	assert_int_equal(r->notified, 1);
	arrive(r, false); /* not armed: nobody waits */
	assert_true(vrb_engine_deadline(r->e) == NEVER);
	vrb_cq_arm(r->rcq, false);
	arrive(r, false);
	assert_int_equal(r->notified, 1);
	arrive(r, false);
	assert_int_equal(r->notified, 2);
	rig_free(r);
}

static void
arming_for_solicited_counts_those_only(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	rig_send(r);
	assert_int_equal(vrb_cq_moderate(r->rcq, 2, 50, r->now), 0);
	vrb_cq_arm(r->rcq, true);
	arrive(r, false);
	assert_true(vrb_engine_deadline(r->e) == NEVER);
	pass(r, 10 * US);
	arrive(r, true);
	assert_true(vrb_engine_deadline(r->e) == r->now + 50 * US);
	arrive(r, false);
	assert_int_equal(r->notified, 0);
	arrive(r, true);
	assert_int_equal(r->notified, 1);
	rig_free(r);
}

static void
failure_is_told_at_once(void **state)
{
	struct rig *r = moderated(&(struct rig_conf){0}, 100, 4000);

	arrive(r, false);
	rig_post_recv(r, 9, 0);
	assert_int_equal(vrb_qp_modify(r->qp, &(struct vrb_qp_attr){.state = VRB_QPS_ERR},
				 VRB_QP_STATE, r->now),
		0);
	assert_int_equal(r->notified, 1);
	rig_send(r);
	assert_true(vrb_engine_deadline(r->e) == NEVER);
	rig_free(r);
}

static void
full_queue_is_told_at_once(void **state)
{
	struct rig *r = moderated(&(struct rig_conf){.cq_size = 3}, 100, 0);

	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(r->notified, 0);
		arrive(r, false);
	}
	assert_int_equal(r->notified, 1);
	rig_free(r);
}

/* The one that is held back is solicited, those that fill the queue are not. */
static void
overflow_is_told_at_once(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.cq_size = 3});

	rig_send(r);
	assert_int_equal(vrb_cq_moderate(r->rcq, 100, 0, r->now), 0);
	vrb_cq_arm(r->rcq, true);
	arrive(r, true);
	arrive(r, false);
	arrive(r, false);
	assert_int_equal(r->notified, 0);
	arrive(r, false);
	assert_true(rig_event(r, VRB_EVENT_CQ_ERR));
	assert_int_equal(r->notified, 1);
	assert_int_equal(vrb_cq_moderate(r->rcq, 1, 1, r->now), -EIO);
	assert_int_equal(vrb_cq_resize(r->e, r->rcq, 64), -EIO);
	assert_int_equal(r->rcq->size, 3);
	for (unsigned int i = 0; i < 3; i++)
		rig_poll(r, r->rcq, VRB_WC_SUCCESS);
	assert_int_equal(vrb_cq_resize(r->e, r->rcq, 64), -EIO);
	rig_free(r);
}

static void
values_above_the_limits_change_nothing(void **state)
{
	struct rig *r = moderated(&(struct rig_conf){0}, 2, 50);

	assert_int_equal(vrb_cq_moderate(r->rcq, VRB_MAX_CQ_COUNT + 1, 1, r->now), -EINVAL);
	assert_int_equal(vrb_cq_moderate(r->rcq, 1, VRB_MAX_CQ_PERIOD + 1, r->now), -EINVAL);
	arrive(r, false);
	assert_true(vrb_engine_deadline(r->e) == r->now + 50 * US);
	arrive(r, false);
	assert_int_equal(r->notified, 1);
	assert_int_equal(vrb_cq_moderate(r->rcq, VRB_MAX_CQ_COUNT, VRB_MAX_CQ_PERIOD, r->now), 0);
	rig_free(r);
}

static void
new_values_go_for_what_is_held_back(void **state)
{
	static const struct {
		uint32_t count, period;
		uint64_t deadline; /* us from the first completion; 0: at once */
	} cases[] = {
		{0, 0, 0}, /* switched off */
		{2, 100, 0}, /* so many are there */
		{3, 0, NEVER},
		{10, 20, 0}, /* so long it has been */
		{10, 40, 40},
		{10, 2000, 2000},
	};

	for (unsigned int i = 0; i < RTE_DIM(cases); i++) {
		struct rig *r = moderated(&(struct rig_conf){0}, 10, 100);
		uint64_t start = r->now;

		arrive(r, false);
		pass(r, 30 * US);
		arrive(r, false);
		assert_int_equal(
			vrb_cq_moderate(r->rcq, cases[i].count, cases[i].period, r->now), 0);
		assert_int_equal(r->notified, cases[i].deadline == 0);
		if (cases[i].deadline == 0 || cases[i].deadline == NEVER)
			assert_true(vrb_engine_deadline(r->e) == NEVER);
		else
			assert_true(vrb_engine_deadline(r->e) == start + cases[i].deadline * US);
		rig_free(r);
	}
}

static void
resizing_keeps_the_wait(void **state)
{
	struct rig *r = moderated(&(struct rig_conf){.cq_size = 8}, 4, 50);
	uint64_t start = r->now;

	arrive(r, false);
	arrive(r, false);
	assert_int_equal(vrb_cq_resize(r->e, r->rcq, 1000), 0);
	assert_int_equal(r->notified, 0);
	assert_true(vrb_engine_deadline(r->e) == start + 50 * US);
	arrive(r, false);
	assert_int_equal(vrb_cq_resize(r->e, r->rcq, 3), 0); /* and now it is full */
	assert_int_equal(r->notified, 1);
	assert_true(vrb_engine_deadline(r->e) == NEVER);
	rig_free(r);
}

/* As on hardware: an event for what has come, not for what waits. */
static void
polling_does_not_take_the_event_away(void **state)
{
	struct rig *r = moderated(&(struct rig_conf){0}, 4, 50);

	arrive(r, false);
	rig_poll(r, r->rcq, VRB_WC_SUCCESS);
	pass(r, 50 * US);
	assert_int_equal(r->notified, 1);
	rig_free(r);
}

static void
destroyed_queue_leaves_no_deadline(void **state)
{
	struct rig *r = moderated(&(struct rig_conf){0}, 4, 50);

	arrive(r, false);
	vrb_qp_destroy(r->qp);
	assert_true(vrb_engine_deadline(r->e) != NEVER);
	assert_int_equal(vrb_cq_destroy(r->e, r->rcq), 0);
	r->rcq = NULL;
	assert_true(vrb_engine_deadline(r->e) == NEVER);
	pass(r, 100 * US);
	assert_int_equal(r->notified, 0);
	rig_free(r);
}

/* ---- at random, against a model that is as simple as the rule ---- */

#define CQS 12
#define STEPS 200000

struct model {
	struct vrb_cq *cq;
	uint32_t armed, count, size, held, waiting;
	uint64_t period, first;
};

struct world {
	struct rig *r;
	struct rng rng;
	struct model m[CQS];
	unsigned int notified;
};

static bool
over(const struct world *w, const struct model *m)
{
	if (m->held == 0)
		return false;
	return (m->count == 0 && m->period == 0) || (m->count != 0 && m->held >= m->count) ||
	       (m->period != 0 && w->r->now >= m->first + m->period) || m->waiting >= m->size;
}

static void
model_settle(struct world *w, struct model *m)
{
	if (!over(w, m))
		return;
	m->armed = 0;
	m->held = 0;
	w->notified++;
}

static void
complete(struct world *w, struct model *m)
{
	bool solicited = (uint32_t)rng_below(&w->rng, 2);

	if (m->waiting == m->size)
		return;
	vrb_cq_reserve(m->cq)->status = VRB_WC_SUCCESS;
	vrb_cq_publish(m->cq, solicited);
	m->waiting++;
	if (m->armed == 0 || (m->armed == VRB_CQ_ARMED_SOLICITED && !solicited))
		return;
	if (m->held++ == 0)
		m->first = w->r->now;
	model_settle(w, m);
}

static void
moderate(struct world *w, struct model *m)
{
	uint32_t period = (uint32_t)rng_below(&w->rng, 2) ? (uint32_t)rng_below(&w->rng, 200) : 0;

	m->count = (uint32_t)rng_below(&w->rng, 2) ? (uint32_t)rng_below(&w->rng, 12) : 0;
	m->period = period * US;
	assert_int_equal(vrb_cq_moderate(m->cq, m->count, period, w->r->now), 0);
	model_settle(w, m);
}

static void
resize(struct world *w, struct model *m)
{
	uint32_t size = (uint32_t)rng_below(&w->rng, 20) + 1;

	if (size < m->waiting)
		return;
	assert_int_equal(vrb_cq_resize(w->r->e, m->cq, size), 0);
	m->size = size;
	model_settle(w, m);
}

static void
renew(struct world *w, struct model *m)
{
	if (m->cq != NULL)
		assert_int_equal(vrb_cq_destroy(w->r->e, m->cq), 0);
	*m = (struct model){.size = 8};
	assert_int_equal(vrb_cq_create(w->r->e, m->size, w->r, &m->cq), 0);
}

static void
do_step(struct world *w, struct model *m)
{
	uint32_t what = (uint32_t)rng_below(&w->rng, 100);

	if (what < 50) {
		complete(w, m);
	} else if (what < 65 && m->waiting > 0) {
		rig_poll(w->r, m->cq, VRB_WC_SUCCESS);
		m->waiting--;
	} else if (what < 85) {
		uint32_t kind = 1 + (uint32_t)rng_below(&w->rng, 2);

		vrb_cq_arm(m->cq, kind == VRB_CQ_ARMED_SOLICITED);
		m->armed = RTE_MAX(m->armed, kind);
	} else if (what < 90) {
		moderate(w, m);
	} else if (what < 93) {
		resize(w, m);
	} else if (what < 94) {
		renew(w, m);
	} else {
		pass(w->r, (uint32_t)rng_below(&w->rng, 40 * (uint32_t)US));
		for (unsigned int i = 0; i < CQS; i++)
			if (w->m[i].period != 0 && w->r->now >= w->m[i].first + w->m[i].period)
				model_settle(w, &w->m[i]);
	}
}

static uint64_t
model_deadline(const struct world *w)
{
	uint64_t deadline = NEVER;

	for (unsigned int i = 0; i < CQS; i++)
		if (w->m[i].held > 0 && w->m[i].period != 0)
			deadline = RTE_MIN(deadline, w->m[i].first + w->m[i].period);
	return deadline;
}

static void
any_sequence_gives_the_events_of_the_rule(void **state)
{
	struct world w = {.r = rig_bare(&(struct rig_conf){0})};

	w.rng.s = 20240117;
	w.r->now = 1000;
	for (unsigned int i = 0; i < CQS; i++)
		renew(&w, &w.m[i]);
	for (unsigned int i = 0; i < STEPS; i++) {
		pass(w.r, 0); /* the engine's idea of now is ours */
		do_step(&w, &w.m[rng_below(&w.rng, CQS)]);
		assert_int_equal(w.r->notified, w.notified);
		assert_true(vrb_engine_deadline(w.r->e) == model_deadline(&w));
	}
	assert_true(w.notified > STEPS / 100);
	for (unsigned int i = 0; i < CQS; i++)
		assert_int_equal(vrb_cq_destroy(w.r->e, w.m[i].cq), 0);
	rig_free(w.r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(count_ends_the_wait),
		cmocka_unit_test(period_ends_the_wait),
		cmocka_unit_test(completion_after_the_period_is_told_at_once),
		cmocka_unit_test(count_takes_the_deadline_away),
		cmocka_unit_test(arming_again_does_not_postpone),
		cmocka_unit_test(completions_before_the_arming_do_not_count),
		cmocka_unit_test(arming_for_solicited_counts_those_only),
		cmocka_unit_test(failure_is_told_at_once),
		cmocka_unit_test(full_queue_is_told_at_once),
		cmocka_unit_test(overflow_is_told_at_once),
		cmocka_unit_test(values_above_the_limits_change_nothing),
		cmocka_unit_test(new_values_go_for_what_is_held_back),
		cmocka_unit_test(resizing_keeps_the_wait),
		cmocka_unit_test(polling_does_not_take_the_event_away),
		cmocka_unit_test(destroyed_queue_leaves_no_deadline),
		cmocka_unit_test(any_sequence_gives_the_events_of_the_rule),
	};

	return cmocka_run_group_tests_name("CQ moderation", tests, rig_group, NULL);
}
