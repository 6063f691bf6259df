/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Raw frames: how they are sent, and how they get into receives (see raw.h).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "raw.h"
#include "raw_csum.h"

#define VLAN_OFF (2 * RTE_ETHER_ADDR_LEN)
#define VLAN_LEN 4
#define FCS_LEN 4

/* ---- receiving ---- */

/** A frame on its way to those that want it. */
struct rx {
	struct vrb_engine *e;
	const struct rte_mbuf *m;
	const uint8_t *hdr; /* its first bytes */
	const struct vrb_qp *from; /* of our own that has sent it to a group, or NULL */
	struct vrb_frame frame;
	bool sums_known, sums_ok;
};

struct vrb_cqe *
vrb_raw_cqe(struct vrb_cq *cq, uint32_t num, void *user, uint64_t wr_id, enum vrb_wc_status status,
	uint32_t len)
{
	struct vrb_cqe *cqe = vrb_cq_reserve(cq);

	cqe->wr_id = wr_id;
	cqe->status = status;
	cqe->opcode = VRB_WC_RECV;
	cqe->vendor_err = 0;
	cqe->byte_len = len;
	cqe->imm = 0;
	cqe->qp_num = num;
	cqe->src_qp = 0;
	cqe->wc_flags = 0;
	cqe->timestamp = cq->engine->now;
	cqe->qp_user = user;
	return cqe;
}

/** Where a frame goes: a receive queue with what belongs to it. */
struct target {
	struct vrb_pd *pd;
	struct vrb_cq *cq;
	uint32_t flags; /* VRB_RX_* */
	uint32_t num;
	void *user;
	uint32_t tag;
};

static enum vrb_wc_status
scatter(struct rx *rx, const struct target *t, const struct vrb_recv_wqe *wqe, uint32_t *len)
{
	bool strip = (t->flags & VRB_RX_STRIP_CVLAN) && rx->frame.cvlan;
	uint32_t frame_len = rx->m->pkt_len - (strip ? VLAN_LEN : 0), pos = 0;
	struct vrb_pkt pkt = {.m = (struct rte_mbuf *)(uintptr_t)rx->m};
	const char *why = "";
	bool ok = true;

	*len = frame_len + (t->flags & VRB_RX_SCATTER_FCS ? FCS_LEN : 0);
	if (unlikely(*len > wqe->length)) {
		vrb_explain(rx->e,
			"queue %#x: a frame of %u bytes does not fit into receive %#llx, which has "
			"%u",
			t->num, *len, (unsigned long long)wqe->wr_id, wqe->length);
		return VRB_WC_LOC_LEN_ERR;
	}
	if (strip) {
		ok = vrb_scatter(
			rx->e, t->pd, wqe->sge, wqe->num_sge, 0, &pkt, NULL, VLAN_OFF, &why);
		pos = VLAN_OFF;
		pkt.payload_off = VLAN_OFF + VLAN_LEN;
	}
	ok = ok && vrb_scatter(rx->e, t->pd, wqe->sge, wqe->num_sge, pos, &pkt, NULL,
			   frame_len - pos, &why);
	if (ok && (t->flags & VRB_RX_SCATTER_FCS)) {
		uint32_t fcs = vrb_frame_fcs(rx->m);

		ok = vrb_scatter(
			rx->e, t->pd, wqe->sge, wqe->num_sge, frame_len, NULL, &fcs, FCS_LEN, &why);
	}
	if (likely(ok))
		return VRB_WC_SUCCESS;
	vrb_explain(rx->e, "queue %#x: receive %#llx failed: %s", t->num,
		(unsigned long long)wqe->wr_id, why);
	return VRB_WC_LOC_PROT_ERR;
}

/** Puts the frame into a receive and completes it. @return whether the queue is still good */
static bool
receive(struct rx *rx, const struct target *t, const struct vrb_recv_wqe *wqe)
{
	enum vrb_wc_status status;
	struct vrb_cqe *cqe;
	uint32_t len;

	status = scatter(rx, t, wqe, &len);
	cqe = vrb_raw_cqe(t->cq, t->num, t->user, wqe->wr_id, status, len);
	if (unlikely(status != VRB_WC_SUCCESS))
		return status == VRB_WC_LOC_LEN_ERR;
	if (!rx->sums_known) {
		rx->sums_known = true;
		rx->sums_ok = vrb_csum_ok(rx->m, &rx->frame, rx->hdr);
	}
	if (rx->sums_ok)
		cqe->wc_flags |= VRB_WC_IP_CSUM_OK;
	cqe->flow_tag = t->tag;
	if ((t->flags & VRB_RX_STRIP_CVLAN) && rx->frame.cvlan)
		cqe->cvlan = rte_be_to_cpu_16(rx->frame.key.outer.vlan_tci);
	return true;
}

/* ---- frames that find no receive ---- */

static bool
held_full(const struct vrb_engine *e)
{
	return e->num_held == VRB_HELD;
}

/**
 * Keeps a frame for a queue that has no receive, or drops it. Kept frames stop the port from being
 * read, and so the sender on a network that waits; that is for a program which falls behind, not
 * for one that does not receive at all.
 */
static void
hold(struct rx *rx, const struct vrb_flow_rule *rule, struct vrb_qp *qp, struct vrb_wq *wq,
	struct vrb_raw_queue *q)
{
	struct vrb_engine *e = rx->e;
	struct vrb_held *h;

	if (rule->type == VRB_FLOW_SNIFFER || q->gave_up || held_full(e)) {
		e->stats.rx_no_recv++;
		return;
	}
	if (e->num_held == 0)
		e->held_until = e->now + VRB_HOLD_NS;
	h = &e->held[e->num_held++];
	h->m = (struct rte_mbuf *)(uintptr_t)rx->m;
	rte_pktmbuf_refcnt_update(h->m, 1);
	h->qp = qp;
	h->wq = wq;
	h->tag = rule->tag;
	q->held++;
}

static bool
is_dry(const struct vrb_rq *rq)
{
	return vrb_rq_count(rq) == 0;
}

static void
to_wq(struct rx *rx, struct vrb_wq *wq, uint32_t tag)
{
	struct target t = {wq->pd, wq->cq, wq->flags, wq->num, wq->user, tag};
	uint32_t tail = atomic_load_explicit(&wq->rq.tail, memory_order_relaxed);
	bool ok;

	wq->raw.gave_up = false;
	ok = receive(rx, &t, vrb_rq_at(&wq->rq, tail));
	atomic_store_explicit(&wq->rq.tail, tail + 1, memory_order_release);
	vrb_cq_publish(wq->cq, !ok);
	if (likely(ok))
		return;
	vrb_wq_error(wq);
	vrb_engine_async(rx->e, VRB_EVENT_WQ_FATAL, wq->user);
}

static void
to_qp(struct rx *rx, struct vrb_qp *qp, uint32_t tag)
{
	struct target t = {qp->srq != NULL ? qp->srq->pd : qp->pd, qp->recv_cq, qp->init.rx_flags,
		qp->qpn, qp->user, tag};
	bool ok;

	qp->raw.gave_up = false;
	qp->resp.wqe = vrb_rq_take(qp);
	ok = receive(rx, &t, qp->resp.wqe);
	vrb_resp_release_wqe(qp);
	vrb_cq_publish(qp->recv_cq, !ok);
	if (likely(ok))
		return;
	vrb_qp_error(qp);
	vrb_engine_async(rx->e, VRB_EVENT_QP_FATAL, qp->user);
}

static bool
wq_receives(const struct vrb_wq *wq)
{
	return vrb_wq_state(wq) == VRB_WQS_RDY;
}

static bool
qp_receives(const struct vrb_qp *qp)
{
	enum vrb_qp_state state = vrb_qp_get_state(qp);

	return state >= VRB_QPS_RTR && state != VRB_QPS_ERR;
}

static void
offer_wq(struct rx *rx, const struct vrb_flow_rule *rule, struct vrb_wq *wq)
{
	if (!wq_receives(wq) || wq->raw.epoch == rx->e->epoch)
		return;
	wq->raw.epoch = rx->e->epoch;
	if (unlikely(wq->raw.held > 0 || is_dry(&wq->rq)))
		hold(rx, rule, NULL, wq, &wq->raw);
	else
		to_wq(rx, wq, rule->tag);
}

static void
offer_qp(struct rx *rx, const struct vrb_flow_rule *rule, struct vrb_qp *qp)
{
	if (!qp_receives(qp) || qp->raw.epoch == rx->e->epoch)
		return;
	qp->raw.epoch = rx->e->epoch;
	if (unlikely(qp->raw.held > 0 || is_dry(qp->rq)))
		hold(rx, rule, qp, NULL, &qp->raw);
	else
		to_qp(rx, qp, rule->tag);
}

/** For vrb_flow_lookup(). A queue gets a frame once, whatever the rules that give it to it. */
static void
take(void *ctx, struct vrb_flow_rule *rule)
{
	struct vrb_qp *qp = rule->dest;
	struct rx *rx = ctx;

	if (rule->drop || qp == rx->from)
		return;
	if (qp->init.ind_tbl != NULL) {
		const struct vrb_ind_tbl *tbl = qp->init.ind_tbl;

		offer_wq(rx, rule, tbl->wqs[vrb_rss_hash(&qp->rss, &rx->frame.key) & tbl->mask]);
		return;
	}
	offer_qp(rx, rule, qp);
}

/** The first bytes of a frame in one piece, and its headers. @param buf room for VRB_FRAME_HEADERS
 */
static bool
open_frame(struct rx *rx, uint8_t *buf)
{
	struct vrb_pkt pkt = {.m = (struct rte_mbuf *)(uintptr_t)rx->m};
	uint32_t len = RTE_MIN(rx->m->pkt_len, (uint32_t)VRB_FRAME_HEADERS);

	if (likely(rx->m->data_len >= len)) {
		rx->hdr = rte_pktmbuf_mtod(rx->m, const uint8_t *);
	} else {
		if (vrb_pkt_read(&pkt, 0, buf, len) < 0)
			return false;
		rx->hdr = buf;
	}
	if (len < RTE_ETHER_HDR_LEN)
		return false;
	vrb_frame_parse(rx->hdr, len, &rx->frame);
	return true;
}

bool
vrb_raw_rx(struct vrb_engine *e, const struct rte_mbuf *m, bool from_us)
{
	struct rx rx = {.e = e, .m = m};
	uint8_t buf[VRB_FRAME_HEADERS];

	if (!open_frame(&rx, buf))
		return false;
	/* What comes back of a group's frame has its sender's number with it (vrb_raw_next()). */
	if (from_us && rte_is_multicast_ether_addr((const struct rte_ether_addr *)rx.hdr))
		rx.from = vrb_engine_qp(e, m->hash.usr);
	e->epoch++;
	return vrb_flow_lookup(e->flows, &rx.frame.key, m->pkt_len, take, &rx);
}

void
vrb_raw_sniff(struct vrb_engine *e, const struct rte_mbuf *m)
{
	struct rx rx = {.e = e, .m = m};
	uint8_t buf[VRB_FRAME_HEADERS];

	if (!open_frame(&rx, buf))
		return;
	e->epoch++;
	vrb_flow_sniff(e->flows, m->pkt_len, take, &rx);
}

/** The queue that a held frame is for. */
static struct vrb_raw_queue *
queue_of(const struct vrb_held *h)
{
	return h->qp != NULL ? &h->qp->raw : &h->wq->raw;
}

/** @return whether the frame is done with: received, or not wanted any more */
static bool
try_held(struct vrb_engine *e, const struct vrb_held *h)
{
	struct rx rx = {.e = e, .m = h->m};
	uint8_t buf[VRB_FRAME_HEADERS];

	if (h->qp != NULL ? !qp_receives(h->qp) : !wq_receives(h->wq))
		return true;
	if (is_dry(h->qp != NULL ? h->qp->rq : &h->wq->rq))
		return false;
	if (!open_frame(&rx, buf))
		return true;
	if (h->qp != NULL)
		to_qp(&rx, h->qp, h->tag);
	else
		to_wq(&rx, h->wq, h->tag);
	e->held_until = e->now + VRB_HOLD_NS;
	return true;
}

void
vrb_raw_retry(struct vrb_engine *e)
{
	uint32_t i, left = 0;
	bool late = e->now >= e->held_until;

	for (i = 0; i < e->num_held; i++) {
		struct vrb_held h = e->held[i];

		if (try_held(e, &h)) {
			/* done */
		} else if (late) {
			/* The program does not receive: from now on its frames are dropped at once,
			 * until it does. */
			queue_of(&h)->gave_up = true;
			e->stats.rx_no_recv++;
		} else {
			e->held[left++] = h;
			continue;
		}
		queue_of(&h)->held--;
		rte_pktmbuf_free(h.m);
	}
	e->num_held = left;
}

void
vrb_raw_unhold(struct vrb_engine *e, const struct vrb_raw_queue *q)
{
	uint32_t i, left = 0;

	for (i = 0; i < e->num_held; i++) {
		if (queue_of(&e->held[i]) == q)
			rte_pktmbuf_free(e->held[i].m);
		else
			e->held[left++] = e->held[i];
	}
	e->num_held = left;
}

/* ---- sending ---- */

/**
 * Puts the message into the frame, as a copy: the program has its memory back when it sees the
 * completion, which is at once.
 * @return 0, -EINVAL (*why), -EFAULT, -ENOMEM
 */
static int
gather(struct vrb_qp *qp, const struct vrb_send_wqe *wqe, struct rte_mbuf *m, const char **why)
{
	const struct vrb_sge *sge = (const struct vrb_sge *)wqe->data;
	uint32_t i;
	int rc = 0;

	if (wqe->flags & VRB_SEND_INLINE)
		return vrb_pkt_copy(qp->engine, m, wqe->data, wqe->length);
	for (i = 0; i < wqe->num_sge && rc == 0; i++) {
		const void *src;

		if (sge[i].length == 0)
			continue;
		src = vrb_mr_local(
			qp->engine, qp->pd, sge[i].lkey, sge[i].addr, sge[i].length, 0, why);
		if (unlikely(src == NULL))
			return -EINVAL;
		rc = vrb_pkt_copy(qp->engine, m, src, sge[i].length);
	}
	return rc;
}

/** The longest frame that the port carries, with the tag if it has one. */
static bool
too_long(const struct vrb_engine *e, const struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	uint32_t max = e->conf.port_mtu + RTE_ETHER_HDR_LEN;

	if (eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN))
		max += VLAN_LEN;
	return m->pkt_len > max;
}

/** Makes the frame. @return the status, or -ENOMEM */
static int
build(struct vrb_qp *qp, const struct vrb_send_wqe *wqe, struct rte_mbuf **out)
{
	struct vrb_engine *e = qp->engine;
	const char *why = "the memory behind the memory region is no longer mapped";
	struct rte_mbuf *m;
	int rc;

	*out = NULL;
	if (unlikely(wqe->length > (uint32_t)e->conf.port_mtu + RTE_ETHER_HDR_LEN + VLAN_LEN))
		goto length;
	m = rte_pktmbuf_alloc(e->conf.pool);
	if (unlikely(m == NULL)) {
		e->stats.no_mbuf++;
		e->starved = true;
		return -ENOMEM;
	}
	*out = m;
	rc = gather(qp, wqe, m, &why);
	if (unlikely(rc == -ENOMEM))
		return rc;
	if (unlikely(rc < 0)) {
		vrb_explain(e, "QP %#x: send work request %#llx: %s", qp->qpn,
			(unsigned long long)wqe->wr_id, why);
		return VRB_WC_LOC_PROT_ERR;
	}
	if (unlikely(too_long(e, m)))
		goto length;
	if (wqe->flags & VRB_SEND_IP_CSUM)
		vrb_csum_make(m);
	return VRB_WC_SUCCESS;

length:
	vrb_explain(e,
		"QP %#x: send work request %#llx: a frame of %u bytes is longer than the port's "
		"MTU of %u allows",
		qp->qpn, (unsigned long long)wqe->wr_id, wqe->length, e->conf.port_mtu);
	return VRB_WC_LOC_LEN_ERR;
}

/** A group's frame is for ourselves as well, if there is anybody who may want it. */
static void
loop_copy(struct vrb_qp *qp, struct rte_mbuf *m)
{
	struct vrb_engine *e = qp->engine;
	struct rte_mbuf *copy;

	if (e->flows == NULL)
		return;
	copy = rte_pktmbuf_copy(m, e->conf.pool, 0, UINT32_MAX);
	if (copy == NULL) {
		e->stats.no_mbuf++;
		return;
	}
	copy->hash.usr = qp->qpn;
	e->loop[e->loop_head++ % VRB_LOOP_SIZE] = copy;
}

struct rte_mbuf *
vrb_raw_next(struct vrb_qp *qp)
{
	struct vrb_engine *e = qp->engine;
	struct vrb_sq *sq = &qp->sq;
	const struct rte_ether_addr *dst;
	struct vrb_send_wqe *wqe;
	struct rte_mbuf *m;
	int status;

	/* Pairs with vrb_sq_commit(): the entries before it are whole. */
	if (vrb_qp_get_state(qp) != VRB_QPS_RTS ||
		sq->next == atomic_load_explicit(&sq->head, memory_order_acquire))
		return NULL;
	wqe = vrb_sq_at(sq, sq->next);
	status = build(qp, wqe, &m);
	if (unlikely(status != VRB_WC_SUCCESS)) {
		rte_pktmbuf_free(m);
		if (status == -ENOMEM)
			return NULL; /* the engine is starved, and calls again */
	}
	vrb_comp_retire(qp, sq->next++, (enum vrb_wc_status)status);
	atomic_store_explicit(&sq->tail, sq->next, memory_order_release);
	if (unlikely(status != VRB_WC_SUCCESS)) {
		vrb_qp_sq_error(qp);
		return NULL;
	}
	dst = rte_pktmbuf_mtod(m, const struct rte_ether_addr *);
	e->out_loop = memcmp(dst, e->conf.mac, sizeof(*dst)) == 0;
	e->out_multicast = false;
	if (rte_is_multicast_ether_addr(dst))
		loop_copy(qp, m);
	return m;
}

/* ---- rules ---- */

/** Without rules frames pass by as if there had never been any. */
static void
drop_empty_table(struct vrb_engine *e)
{
	if (e->flows == NULL || vrb_flow_rules(e->flows) > 0)
		return;
	vrb_flow_table_free(e->flows);
	e->flows = NULL;
}

/** Sniffers see packets only: nobody moves bytes past them. */
static void
note_sniffers(struct vrb_engine *e)
{
	bool sniffed = vrb_flow_has_sniffers(e->flows);

	if (sniffed != e->sniffed)
		vrb_board_shut(e, sniffed);
	e->sniffed = sniffed;
}

int
vrb_flow_create(struct vrb_engine *e, struct vrb_qp *qp, const struct vrb_flow_rule *rule,
	struct vrb_flow **out)
{
	struct vrb_flow *flow;

	if (qp->transport != VRB_TRANSPORT_RAW)
		return -EINVAL;
	flow = calloc(1, sizeof(*flow));
	if (flow == NULL)
		return -ENOMEM;
	if (e->flows == NULL)
		e->flows = vrb_flow_table_new(e->conf.mac);
	flow->rule = *rule;
	flow->rule.dest = qp;
	if (e->flows == NULL || vrb_flow_rules(e->flows) >= VRB_MAX_FLOW ||
		vrb_flow_add(e->flows, &flow->rule) < 0) {
		free(flow);
		drop_empty_table(e);
		return -ENOMEM;
	}
	flow->qp = qp;
	TAILQ_INSERT_TAIL(&e->flow_list, flow, link);
	qp->flows++;
	note_sniffers(e);
	*out = flow;
	return 0;
}

void
vrb_flow_destroy(struct vrb_engine *e, struct vrb_flow *flow)
{
	vrb_flow_remove(e->flows, &flow->rule);
	TAILQ_REMOVE(&e->flow_list, flow, link);
	flow->qp->flows--;
	free(flow);
	note_sniffers(e);
	drop_empty_table(e);
}

void
vrb_raw_forget(struct vrb_engine *e)
{
	while (!TAILQ_EMPTY(&e->flow_list))
		vrb_flow_destroy(e, TAILQ_FIRST(&e->flow_list));
}

uint32_t
vrb_qp_flows(const struct vrb_qp *qp)
{
	return qp->flows;
}

void
vrb_flow_filter(const struct vrb_engine *e, bool *promiscuous, bool *allmulticast)
{
	*promiscuous = e->flows != NULL && vrb_flow_wants_promiscuous(e->flows);
	*allmulticast =
		e->num_groups > 0 || (e->flows != NULL && vrb_flow_wants_allmulticast(e->flows));
}
