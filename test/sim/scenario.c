/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A scenario from its seed to its last check.
 */
#include <stdarg.h>
#include <string.h>

#include <rte_common.h>

#include "sim.h"

#define STEPS_MAX 20000000u

void
sim_fail(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (s->failed)
		return;
	s->failed = true;
	va_start(ap, fmt);
	vsnprintf(s->why, sizeof(s->why), fmt, ap);
	va_end(ap);
}

void
sim_trace(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	if (!s->verbose)
		return;
	printf("%12.3f  ", (double)s->now / 1000);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	printf("\n");
}

/* Everything but what lives longer than a scenario. */
static void
sim_reset(struct sim *s, const struct profile *p, uint64_t seed, bool verbose)
{
	struct packet **heap = s->wire.heap;
	uint64_t salt = 0;

	for (const char *c = p->name; *c != '\0'; c++)
		salt = mix64(salt + (uint8_t)*c);
	memset(s, 0, offsetof(struct sim, failed));
	s->failed = false;
	s->why[0] = '\0';
	s->wire.heap = heap;
	s->seed = seed;
	s->prof = p;
	s->verbose = verbose;
	s->rng.s = mix64(seed) ^ salt;
	s->now = SEC(1);
	s->salt = rng_u64(&s->rng) << 48;
	s->big = rng_chance(&s->rng, p->big);
	mem_reset();
}

static int
build(struct sim *s)
{
	int rc = 0;

	s->n_hosts = rng_chance(&s->rng, 50) ? 1 : rng_chance(&s->rng, 800) ? 2 : 3;
	for (unsigned int i = 0; i < s->n_hosts; i++)
		s->host[i].idx = i;
	wire_start(s);
	for (unsigned int i = 0; i < s->n_hosts && rc == 0; i++)
		rc = host_start(s, &s->host[i]);
	if (rc == 0)
		rc = eps_build(s);
	if (s->prof->blackout)
		s->wire.dies = s->now + rng_below(&s->rng, MS(2));
	s->quiet_limit = SEC(100) + 20 * (4096ull << s->prof->timeout_hi);
	s->progress = s->now;
	return rc;
}

static uint64_t
earliest(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
next_event(const struct sim *s)
{
	uint64_t t = wire_next(&s->wire);

	for (unsigned int i = 0; i < s->n_hosts; i++)
		t = earliest(t, host_next(&s->host[i]));
	for (unsigned int i = 0; i < s->n_eps; i++) {
		if (!s->teardown && s->ep[i].drained_until != 0)
			t = earliest(t, s->ep[i].drained_until);
		t = earliest(t, earliest(s->ep[i].next,
					s->ep[i].srq == NULL ? s->ep[i].rq.next : SIM_NEVER));
	}
	for (unsigned int i = 0; i < s->n_srqs; i++)
		t = earliest(t, s->srq[i].q.next);
	for (unsigned int i = 0; i < s->n_cqs; i++)
		t = earliest(t, s->cq[i].notified ? 0 : s->cq[i].next);
	return t;
}

static void
run_cqs(struct sim *s)
{
	for (unsigned int i = 0; i < s->n_cqs && !s->failed; i++) {
		struct simcq *c = &s->cq[i];

		if (c->notified || c->next <= s->now)
			cq_poll(s, c);
		/* A program that polls finds it sooner or later. */
		if (c->mode == CQ_POLL && c->next == SIM_NEVER && !vrb_cq_empty(c->cq))
			c->next = s->now + rng_below(&s->rng, c->period);
		if (rng_chance(&s->rng, 1)) {
			uint32_t size = c->least + (uint32_t)rng_below(&s->rng, 50);
			int rc = vrb_cq_resize(c->host->e, c->cq, size);

			if (rc < 0)
				sim_fail(s, "a CQ cannot be resized: %s", strerror(-rc));
		}
	}
}

/* To SQD, where what was begun is finished and nothing else is, and back. */
static void
drain_or_go_on(struct sim *s, struct ep *ep)
{
	struct vrb_qp_attr a = {.state = VRB_QPS_SQD};
	int rc;

	if (ep_faulty(ep) || !ep->drains || s->now < ep->drained_until)
		return;
	if (ep->drained_until != 0) {
		a.state = VRB_QPS_RTS;
		ep->drained_until = 0;
	} else if (rng_chance(&ep->rng, 5)) {
		ep->drained_until = s->now + rng_range(&ep->rng, 100, US(300));
	} else {
		return;
	}
	rc = vrb_qp_modify(ep->qp, &a, VRB_QP_STATE, s->now);
	if (rc < 0)
		sim_fail(s, "end %u cannot be moved to state %d: %s", ep->idx, a.state,
			strerror(-rc));
	ep->host->next = s->now;
}

static void
run_programs(struct sim *s)
{
	for (unsigned int i = 0; i < s->n_eps && !s->failed; i++) {
		struct ep *ep = &s->ep[i];

		if (ep->srq == NULL && ep->rq.next <= s->now)
			recvq_post(s, &ep->rq);
		if (ep->next <= s->now)
			ep_post(ep);
		fault_strike(ep);
		if (!s->teardown)
			drain_or_go_on(s, ep);
	}
	for (unsigned int i = 0; i < s->n_srqs; i++)
		if (s->srq[i].q.next <= s->now)
			recvq_post(s, &s->srq[i].q);
}

/* One step of virtual time. */
static void
step(struct sim *s, uint64_t t)
{
	s->now = RTE_MAX(s->now, t);
	s->steps++;
	if (s->wire.dies != 0 && s->now >= s->wire.dies && !s->wire.dead) {
		s->wire.dead = true;
		s->wire.dead_since = s->now;
		sim_trace(s, "the wire is dead");
	}
	if (s->prof->junk)
		wire_junk(s);
	wire_arrive(s);
	for (unsigned int i = 0; i < s->n_hosts && !s->failed; i++)
		if (host_next(&s->host[i]) <= s->now)
			host_run(s, &s->host[i]);
	run_cqs(s);
	run_programs(s);
}

static bool
ep_done(const struct ep *ep)
{
	if (ep->gone)
		return true;
	if (ep->posted < ep->n_ops || ep->completed < ep->posted)
		return false;
	if (ep_faulty(ep))
		return true;
	return ep->rx_count == ep->peer->messages;
}

static bool
all_done(const struct sim *s)
{
	for (unsigned int i = 0; i < s->n_eps; i++)
		if (!ep_done(&s->ep[i]))
			return false;
	return true;
}

/* With timeout 0 nothing is ever repeated, and a dead wire is not noticed. */
static bool
waits_for_ever(const struct sim *s)
{
	for (unsigned int i = 0; i < s->n_eps; i++) {
		const struct ep *ep = &s->ep[i];

		if (!ep_done(ep) && !(ep->fault == FAULT_BLACKOUT && ep->attr.timeout == 0))
			return false;
	}
	return true;
}

static void
report_hang(struct sim *s, const char *how)
{
	char text[300];
	size_t n = 0;

	for (unsigned int i = 0; i < s->n_eps && n < sizeof(text) - 80; i++) {
		const struct ep *ep = &s->ep[i];

		if (!ep_done(ep))
			n += (size_t)snprintf(text + n, sizeof(text) - n,
				"; end %u: %u posted, %u completed of %u, %u of %u received", i,
				ep->posted, ep->completed, ep->n_ops, ep->rx_count,
				ep->peer->messages);
	}
	text[RTE_MIN(n, sizeof(text) - 1)] = '\0';
	sim_fail(s, "%s%s", how, text);
}

static void
run_traffic(struct sim *s)
{
	while (!s->failed && !all_done(s)) {
		uint64_t t = next_event(s);

		if (t == SIM_NEVER) {
			if (!waits_for_ever(s))
				report_hang(s, "nothing is going to happen any more");
			return;
		}
		step(s, t);
		if (s->now - s->progress > s->quiet_limit && !waits_for_ever(s))
			report_hang(s, "no progress");
		if (s->steps > STEPS_MAX)
			report_hang(s, "no end");
	}
}

/* Until nobody has anything to do: also the engines have to come to rest. */
static void
run_quiet(struct sim *s)
{
	uint64_t end = s->now + s->quiet_limit, t;

	while (!s->failed && (t = next_event(s)) != SIM_NEVER) {
		step(s, t);
		if (s->now > end)
			sim_fail(s, "all work is done, but the engines do not come to rest");
	}
}

/* On a wire that loses nothing nothing is repeated, unless a receive was missing. */
static void
check_counters(struct sim *s)
{
	uint64_t repeats = 0, rnr = 0;
	const struct profile *p = s->prof;

	for (unsigned int i = 0; i < s->n_hosts; i++) {
		const struct vrb_stats *st = vrb_engine_stats(s->host[i].e);

		repeats += st->timeouts + st->retransmitted + st->rx_out_of_order + st->tx_nak_seq;
		rnr += st->tx_nak_rnr;
		if (st->cq_overruns > 0)
			sim_fail(s, "host %u: a CQ has overflowed", i);
		if ((st->rx_icrc > 0 || st->rx_malformed > 0) && !p->corrupt)
			sim_fail(s,
				"host %u: %llu packets with a wrong ICRC, %llu malformed, on a "
				"wire that changes none",
				i, (unsigned long long)st->rx_icrc,
				(unsigned long long)st->rx_malformed);
		if (st->tx_nak_error + st->rx_nak_error > 0 && !p->fault)
			sim_fail(s, "host %u: an error NAK, though nothing is wrong", i);
		if (s->verbose)
			printf("host %u: rx %llu tx %llu acks %llu/%llu nak seq %llu rnr %llu err "
			       "%llu timeouts %llu "
			       "retransmitted %llu duplicates %llu out of order %llu gaps %llu "
			       "icrc %llu no mbuf %llu\n",
				i, (unsigned long long)st->rx_packets,
				(unsigned long long)st->tx_packets, (unsigned long long)st->tx_acks,
				(unsigned long long)st->rx_acks, (unsigned long long)st->tx_nak_seq,
				(unsigned long long)st->tx_nak_rnr,
				(unsigned long long)st->tx_nak_error,
				(unsigned long long)st->timeouts,
				(unsigned long long)st->retransmitted,
				(unsigned long long)st->rx_duplicate,
				(unsigned long long)st->rx_out_of_order,
				(unsigned long long)st->read_gaps, (unsigned long long)st->rx_icrc,
				(unsigned long long)st->no_mbuf);
	}
	if (repeats > 0 && rnr == 0 && !p->lose && !p->dup && !p->reorder && !p->fault &&
		!p->blackout)
		sim_fail(s, "something was sent twice on a wire that loses nothing");
}

/* All queue pairs go to the error state: receives that are left are flushed, in order, and none is
 * missing. */
static void
run_teardown(struct sim *s)
{
	s->teardown = true;
	for (unsigned int i = 0; i < s->n_eps && !s->failed; i++) {
		struct ep *ep = &s->ep[i];
		int rc = ep->qp == NULL || ep->gone ? 0 : ep_to_error(ep);

		if (rc < 0)
			sim_fail(s, "end %u cannot be moved to ERR: %s", i, strerror(-rc));
		ep->next = ep->rq.next = SIM_NEVER;
		ep->host->next = s->now;
	}
	for (unsigned int i = 0; i < s->n_srqs; i++)
		s->srq[i].q.next = SIM_NEVER;
	run_quiet(s);
	for (unsigned int i = 0; i < s->n_eps && !s->failed; i++) {
		const struct ep *ep = &s->ep[i];

		if (ep->gone)
			continue;
		if (ep->completed != ep->posted)
			sim_fail(s, "end %u: %u send work requests were posted, %u completed", i,
				ep->posted, ep->completed);
		if (ep->srq == NULL && ep->rq.completed != ep->rq.posted)
			sim_fail(s, "end %u: %u receives were posted, %u completed", i,
				ep->rq.posted, ep->rq.completed);
	}
}

/* Where something went wrong, some contents cannot be known. */
static void
forget_faulty(struct sim *s)
{
	for (unsigned int i = 0; i < s->n_eps; i++) {
		struct ep *ep = &s->ep[i];

		if (!ep_faulty(ep))
			continue;
		for (struct range *g = ep->ranges; g != NULL; g = g->next)
			mem_forget(g->p, g->len);
		for (unsigned int k = 0; k < SIM_COUNTERS; k++)
			mem_forget(ep->ctr[k].p, 8);
		for (uint32_t k = 0; k < ep->posted; k++)
			for (uint32_t n = 0; n < ep->ops[k].buf.n; n++)
				mem_forget(ep->ops[k].buf.piece[n].p, ep->ops[k].buf.piece[n].len);
		if (ep->srq != NULL)
			mem_forget(ep->srq->arena.base, ep->srq->arena.used);
		for (uint32_t k = 0; ep->srq == NULL && k < ep->rq.posted; k++)
			for (uint32_t n = 0; n < ep->rq.recv[k].buf.n; n++)
				mem_forget(ep->rq.recv[k].buf.piece[n].p,
					ep->rq.recv[k].buf.piece[n].len);
	}
}

bool
sim_run(struct sim *s, const struct profile *p, uint64_t seed, bool verbose)
{
	int rc;

	sim_reset(s, p, seed, verbose);
	rc = build(s);
	if (rc < 0)
		sim_fail(s, "the scenario cannot be built: %s", strerror(-rc));
	if (!s->failed)
		run_traffic(s);
	if (!s->failed)
		run_teardown(s);
	for (unsigned int i = 0; i < s->n_eps && !s->failed; i++)
		fault_verify(&s->ep[i]);
	if (!s->failed) {
		check_counters(s);
		forget_faulty(s);
		mem_compare(s);
	}
	if (!s->failed)
		eps_destroy(s);
	wire_clear(s);
	for (unsigned int i = 0; i < s->n_hosts; i++)
		if (s->host[i].e != NULL)
			host_stop(s, &s->host[i]);
	host_pools_check(s);
	return !s->failed;
}
