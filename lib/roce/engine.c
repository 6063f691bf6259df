/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine: its life, what it does with received packets, and whose turn it is to send.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

/* Headers around a RoCE payload, in an IP packet: what active MTU the kernel derives from the
 * port's (ib_mtu_int_to_enum). */
#define VRB_MTU_OVERHEAD 80

static const struct vrb_engine_ops no_ops;

int
vrb_engine_create(const struct vrb_engine_conf *conf, struct vrb_engine **out)
{
	uint32_t room = rte_pktmbuf_data_room_size(conf->pool) - RTE_PKTMBUF_HEADROOM;
	struct vrb_engine *e;
	uint32_t mtu;

	if (conf->port_mtu < 256 + VRB_MTU_OVERHEAD || room < VRB_MBUF_ROOM)
		return -EINVAL;
	e = calloc(1, sizeof(*e));
	if (e == NULL)
		return -ENOMEM;
	e->conf = *conf;
	if (e->conf.ops == NULL)
		e->conf.ops = &no_ops;
	/*
	 * A checksum over memory that the program may change before the port has copied it would be
	 * a wrong checksum on a good packet: with ICRC the packet has a copy of its own.
	 */
	e->zero_copy = conf->zero_copy && !conf->icrc;
	for (mtu = 4096; mtu + VRB_MTU_OVERHEAD > conf->port_mtu; mtu /= 2)
		;
	e->max_mtu = mtu;
	if (!e->zero_copy && room < VRB_HDR_MAX + mtu) {
		free(e);
		return -EINVAL;
	}
	e->qps = calloc(VRB_MAX_QP, sizeof(*e->qps));
	if (e->qps == NULL) {
		free(e);
		return -ENOMEM;
	}
	TAILQ_INIT(&e->active);
	TAILQ_INIT(&e->flow_list);
	TAILQ_INIT(&e->wqs);
	TAILQ_INIT(&e->ind_tbls);
	e->next_qpn = RTE_MAX(conf->first_qpn & VRB_PSN_MASK, (uint32_t)VRB_QPN_FIRST);
	/* Any seed but 0; the MAC makes it differ from process to process. */
	memcpy(&e->rnd, conf->mac + 2, sizeof(e->rnd));
	e->rnd |= 1;
	*out = e;
	return 0;
}

void
vrb_engine_destroy(struct vrb_engine *e)
{
	uint32_t i;

	vrb_raw_forget(e);
	for (i = 0; i < VRB_MAX_QP; i++) {
		if (e->qps[i] != NULL)
			vrb_qp_destroy(e->qps[i]);
	}
	vrb_wq_forget(e);
	vrb_ah_forget(e);
	for (i = 0; e->srqs != NULL && i <= VRB_MAX_SRQ; i++) {
		if (e->srqs[i] != NULL)
			vrb_srq_destroy(e->srqs[i]);
	}
	for (i = 0; i < e->mr_cap; i++)
		free(e->mrs[i]);
	while (e->spare_mrs != NULL) {
		struct vrb_mr *mr = e->spare_mrs;

		e->spare_mrs = mr->mr;
		free(mr);
	}
	while (!LIST_EMPTY(&e->cqs)) {
		struct vrb_cq *cq = LIST_FIRST(&e->cqs);

		cq->refs = 0; /* nothing is left that could use it */
		vrb_cq_destroy(e, cq);
	}
	while (!LIST_EMPTY(&e->pds)) {
		struct vrb_pd *pd = LIST_FIRST(&e->pds);

		pd->refs = 0;
		vrb_pd_destroy(e, pd);
	}
	while (e->loop_tail != e->loop_head)
		rte_pktmbuf_free(e->loop[e->loop_tail++ % VRB_LOOP_SIZE]);
	free(e->mrs);
	free(e->heap);
	free(e->qps);
	free(e->srqs);
	free(e);
}

struct vrb_qp *
vrb_engine_qp(const struct vrb_engine *e, uint32_t qpn)
{
	struct vrb_qp *qp = e->qps[qpn & (VRB_MAX_QP - 1)];

	return qp != NULL && qp->qpn == qpn ? qp : NULL;
}

const struct vrb_stats *
vrb_engine_stats(const struct vrb_engine *e)
{
	return &e->stats;
}

uint32_t
vrb_engine_max_mtu(const struct vrb_engine *e)
{
	return e->max_mtu;
}

void
vrb_engine_async(struct vrb_engine *e, enum vrb_event_type type, void *obj)
{
	if (e->conf.ops->async != NULL)
		e->conf.ops->async(e->conf.ctx, type, obj);
}

void
vrb_explain(struct vrb_engine *e, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	if (likely(e->conf.ops->explain == NULL))
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	e->conf.ops->explain(e->conf.ctx, text);
}

static bool
overrun(const struct vrb_cq *cq)
{
	return cq != NULL && cq->overrun;
}

void
vrb_engine_overruns(struct vrb_engine *e)
{
	uint32_t i;

	/* Failing a QP flushes it, which may overrun its other CQ. */
	while (e->cq_overrun) {
		e->cq_overrun = false;
		for (i = 0; i < VRB_MAX_QP; i++) {
			struct vrb_qp *qp = e->qps[i];

			if (qp == NULL || vrb_qp_get_state(qp) == VRB_QPS_ERR ||
				!(overrun(qp->send_cq) || overrun(qp->recv_cq)))
				continue;
			vrb_qp_error(qp);
			vrb_engine_async(e, VRB_EVENT_QP_FATAL, qp->user);
		}
		vrb_wq_overruns(e);
	}
}

/* ---- doorbells and turns ---- */

void
vrb_engine_schedule(struct vrb_qp *qp)
{
	if (qp->is_active)
		return;
	qp->is_active = true;
	TAILQ_INSERT_TAIL(&qp->engine->active, qp, active);
}

void
vrb_engine_schedule_first(struct vrb_qp *qp)
{
	if (qp->is_active)
		TAILQ_REMOVE(&qp->engine->active, qp, active);
	qp->is_active = true;
	TAILQ_INSERT_HEAD(&qp->engine->active, qp, active);
}

void
vrb_engine_ring(struct vrb_qp *qp)
{
	struct vrb_engine *e = qp->engine;
	struct vrb_qp *top;

	/*
	 * Once on the list it needs no second ring: who takes it off clears the flag first and
	 * looks at the queues after, so work that was published before a ring that was skipped here
	 * is seen.
	 */
	if (atomic_exchange_explicit(&qp->rung, true, memory_order_seq_cst))
		return;
	top = atomic_load_explicit(&e->rung, memory_order_relaxed);
	do {
		qp->rung_next = top;
	} while (!atomic_compare_exchange_weak_explicit(
		&e->rung, &top, qp, memory_order_seq_cst, memory_order_relaxed));
}

bool
vrb_engine_doorbell(const struct vrb_engine *e)
{
	return atomic_load_explicit(&e->rung, memory_order_seq_cst) != NULL;
}

static void
take_doorbells(struct vrb_engine *e)
{
	struct vrb_qp *qp, *next;

	if (likely(atomic_load_explicit(&e->rung, memory_order_relaxed) == NULL))
		return;
	/* All at once: nothing is ever taken singly, so the stack has no ABA problem. */
	qp = atomic_exchange_explicit(&e->rung, NULL, memory_order_acquire);
	for (; qp != NULL; qp = next) {
		next = qp->rung_next;
		atomic_store_explicit(&qp->rung, false, memory_order_seq_cst);
		vrb_engine_schedule(qp);
	}
}

void
vrb_engine_forget(struct vrb_qp *qp)
{
	struct vrb_engine *e = qp->engine;

	take_doorbells(e);
	if (qp->is_active)
		TAILQ_REMOVE(&e->active, qp, active);
	qp->is_active = false;
	vrb_timer_remove(e, &qp->timer);
}

static void
run_timers(struct vrb_engine *e)
{
	struct vrb_timer *t;
	struct vrb_qp *qp;

	while ((t = vrb_timer_due(e, e->now)) != NULL) {
		if (t->of_cq) {
			vrb_cq_timer(container_of(t, struct vrb_cq, mod.timer));
			continue;
		}
		qp = container_of(t, struct vrb_qp, timer);
		vrb_comp_timer(qp, e->now);
		vrb_engine_schedule(qp);
	}
}

static inline bool
loop_full(const struct vrb_engine *e)
{
	return e->loop_head - e->loop_tail == VRB_LOOP_SIZE;
}

/** Hands a packet to the caller, or keeps it if it is for ourselves. @return how many the caller
 * gets */
static inline unsigned int
emit(struct vrb_engine *e, struct rte_mbuf *m, struct rte_mbuf **pkt)
{
	e->stats.tx_packets++;
	e->stats.tx_bytes += m->pkt_len;
	if (unlikely(e->sniffed))
		vrb_raw_sniff(e, m);
	if (unlikely(e->out_loop)) {
		e->loop[e->loop_head++ % VRB_LOOP_SIZE] = m;
		return 0;
	}
	if (unlikely(e->out_multicast))
		vrb_mcast_loop(e, m);
	*pkt = m;
	return 1;
}

/** One QP's turn. @return packets put into @p pkts; *more: it has more to send */
static unsigned int
turn(struct vrb_engine *e, struct vrb_qp *qp, struct rte_mbuf **pkts, unsigned int n, bool *more)
{
	unsigned int made = 0, sent;
	struct rte_mbuf *m = NULL;

	if (unlikely(vrb_qp_get_state(qp) >= VRB_QPS_SQE))
		vrb_qp_flush(qp);
	/* An acknowledgement is small, and the peer may wait for it: it does not stand behind data.
	 */
	if (vrb_resp_ack_due(qp) && !loop_full(e)) {
		m = vrb_resp_next(qp);
		if (m != NULL)
			made += emit(e, m, &pkts[made]);
	}
	for (sent = 0; sent < VRB_QP_BURST && made < n; sent++) {
		if (loop_full(e))
			break;
		m = vrb_req_next(qp, e->now);
		if (m == NULL)
			m = vrb_resp_next(qp);
		if (m == NULL)
			break;
		made += emit(e, m, &pkts[made]);
	}
	*more = m != NULL || e->starved || e->direct_left == 0 || loop_full(e);
	/* Answers do not wait for a requester that always has something to send. */
	if (sent == VRB_QP_BURST && made < n && !loop_full(e)) {
		m = vrb_resp_next(qp);
		if (m != NULL)
			made += emit(e, m, &pkts[made]);
	}
	return made;
}

unsigned int
vrb_engine_tx(struct vrb_engine *e, struct rte_mbuf **pkts, unsigned int n, uint64_t now)
{
	unsigned int made = 0;
	struct vrb_qp *qp;

	e->now = now;
	e->starved = false;
	e->direct_left = VRB_DIRECT_CALL;
	take_doorbells(e);
	run_timers(e);
	while (made < n && (qp = TAILQ_FIRST(&e->active)) != NULL) {
		bool more;

		TAILQ_REMOVE(&e->active, qp, active);
		qp->is_active = false;
		made += turn(e, qp, pkts + made, n - made, &more);
		if (more)
			vrb_engine_schedule(qp);
		/* Packets have to be sent, or those to ourselves received, before more can be made;
		 * or this call has moved enough itself. */
		if (e->starved || e->direct_left == 0 || loop_full(e))
			break;
	}
	if (unlikely(e->cq_overrun))
		vrb_engine_overruns(e);
	return made;
}

uint64_t
vrb_engine_deadline(struct vrb_engine *e)
{
	if (!TAILQ_EMPTY(&e->active) || vrb_engine_looped(e) || vrb_engine_doorbell(e))
		return 0;
	if (unlikely(e->num_held > 0))
		return RTE_MIN(vrb_timer_next(e), e->now + VRB_HOLD_LOOK_NS);
	return vrb_timer_next(e);
}

bool
vrb_engine_holds(const struct vrb_engine *e)
{
	return e->num_held > 0;
}

bool
vrb_engine_looped(const struct vrb_engine *e)
{
	return e->loop_head != e->loop_tail && e->num_held < VRB_HELD;
}

/* ---- receiving ---- */

/** A frame that is not RoCE. @param from_us it was sent by ourselves. @return whether a flow rule
 * has taken it */
static bool
receive_other(struct vrb_engine *e, struct rte_mbuf *m, bool from_us)
{
	e->stats.rx_not_roce++;
	if (likely(e->flows == NULL) || !vrb_raw_rx(e, m, from_us))
		return false;
	rte_pktmbuf_free(m);
	return true;
}

static bool
receive(struct vrb_engine *e, struct rte_mbuf *m, bool from_us)
{
	enum vrb_parse what;
	struct vrb_pkt pkt;
	struct vrb_qp *qp;

	what = vrb_pkt_parse(e, m, &pkt, &qp);
	/* What we have sent was seen when it was sent. */
	if (unlikely(e->sniffed) && what != VRB_PARSE_OTHER && !from_us)
		vrb_raw_sniff(e, m);
	switch (what) {
	case VRB_PARSE_OTHER:
		return receive_other(e, m, from_us);
	case VRB_PARSE_DROP:
		break;
	case VRB_PARSE_OK:
		if (unlikely(pkt.group != NULL))
			vrb_mcast_deliver(e, &pkt, from_us);
		else if (pkt.info->flags & VRB_OP_RESPONSE)
			vrb_comp_packet(qp, &pkt, e->now);
		else if (likely(qp->acked))
			vrb_resp_packet(qp, &pkt);
		else if (qp->transport == VRB_TRANSPORT_UC)
			vrb_uc_packet(qp, &pkt);
		else
			vrb_ud_packet(qp, &pkt);
		break;
	}
	rte_pktmbuf_free(m);
	return true;
}

unsigned int
vrb_engine_rx(struct vrb_engine *e, struct rte_mbuf **pkts, unsigned int n, uint64_t now)
{
	unsigned int i, left = 0;
	/* Not those that this call makes: it has to come to an end. */
	uint32_t loop_end = e->loop_head;

	e->now = now;
	if (unlikely(e->num_held > 0))
		vrb_raw_retry(e);
	for (i = 0; i < n; i++) {
		if (i + 1 < n)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i + 1], void *));
		if (!receive(e, pkts[i], false))
			pkts[left++] = pkts[i];
	}
	while (e->loop_tail != loop_end && e->num_held < VRB_HELD) {
		struct rte_mbuf *m = e->loop[e->loop_tail++ % VRB_LOOP_SIZE];

		if (!receive(e, m, true))
			rte_pktmbuf_free(m);
	}
	if (unlikely(e->cq_overrun))
		vrb_engine_overruns(e);
	return left;
}
