/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What arrives on the unreliable transports: UC, where a message that misses a packet is lost as a
 * whole (IBTA 9.8.2), and UD, whose messages are single packets from anywhere (IBTA 9.8.3). Nothing
 * is ever answered. Also address handles.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

/* IBTA 11.4.1.2: room for a GRH in front of every datagram. */
#define GRH_LEN 40

void
vrb_uc_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	struct vrb_responder *resp = &qp->resp;
	bool gap = pkt->psn != resp->epsn;

	resp->epsn = vrb_psn_add(pkt->psn, 1);
	/*
	 * After a gap, and when a message begins before the last one has ended, that one is lost;
	 * its receive serves the next. A whole message may begin at any PSN.
	 */
	if (gap || (pkt->info->flags & VRB_OP_FIRST)) {
		if (resp->in_msg != 0)
			qp->engine->stats.rx_dropped++;
		resp->in_msg = 0;
		resp->sge_idx = 0;
		resp->sge_off = 0;
	}
	if (!vrb_resp_in_sequence(qp, pkt)) {
		qp->engine->stats.rx_out_of_order++;
		return;
	}
	vrb_resp_data(qp, pkt);
}

/** The 40 bytes before a datagram's payload: an IPv6 header, or 20 bytes of zeros and an IPv4
 * header (A17.4.5.2). */
static void
make_grh(const struct vrb_pkt *pkt, uint8_t grh[GRH_LEN])
{
	if (pkt->v6) {
		memcpy(grh, pkt->l3, sizeof(struct rte_ipv6_hdr));
		return;
	}
	memset(grh, 0, GRH_LEN - sizeof(struct rte_ipv4_hdr));
	memcpy(grh + GRH_LEN - sizeof(struct rte_ipv4_hdr), pkt->l3, sizeof(struct rte_ipv4_hdr));
}

/** Whether the next receive takes @p len bytes. One that does not stays: the datagram is dropped
 * (IBTA 9.8.3.2.4). */
static bool
next_fits(const struct vrb_qp *qp, uint32_t len)
{
	const struct vrb_rq *rq = qp->rq;
	uint32_t tail = atomic_load_explicit(&rq->tail, memory_order_relaxed);

	if (tail == atomic_load_explicit(&rq->head, memory_order_acquire))
		return true; /* for vrb_rq_take() to notice */
	return vrb_rq_at(rq, tail)->length >= len;
}

static void
complete_ud(struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	struct vrb_cqe *cqe = vrb_cq_reserve(qp->recv_cq);

	cqe->wr_id = qp->resp.wqe->wr_id;
	cqe->status = VRB_WC_SUCCESS;
	cqe->opcode = VRB_WC_RECV;
	cqe->vendor_err = 0;
	cqe->byte_len = GRH_LEN + pkt->payload_len;
	cqe->imm = 0;
	cqe->qp_num = qp->qpn;
	cqe->src_qp = pkt->src_qpn;
	cqe->wc_flags = VRB_WC_GRH;
	cqe->timestamp = qp->engine->now;
	cqe->qp_user = qp->user;
	if (pkt->info->flags & VRB_OP_IMM) {
		memcpy(&cqe->imm, pkt->ext, sizeof(cqe->imm));
		cqe->wc_flags |= VRB_WC_WITH_IMM;
	}
	vrb_resp_release_wqe(qp);
	vrb_cq_publish(qp->recv_cq, pkt->solicited);
}

void
vrb_ud_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	struct vrb_pd *pd = qp->srq != NULL ? qp->srq->pd : qp->pd;
	struct vrb_engine *e = qp->engine;
	struct vrb_recv_wqe *wqe;
	uint8_t grh[GRH_LEN];
	const char *why = "";
	uint64_t wr_id;

	if (unlikely(pkt->qkey != qp->attr.qkey)) {
		e->stats.rx_qkey++;
		vrb_explain(e,
			"QP %#x: dropped a datagram from QP %#x with Q_Key %#x; the queue pair's "
			"is %#x",
			qp->qpn, pkt->src_qpn, pkt->qkey, qp->attr.qkey);
		return;
	}
	if (unlikely(!next_fits(qp, GRH_LEN + pkt->payload_len))) {
		e->stats.rx_dropped++;
		vrb_explain(e,
			"QP %#x: dropped a datagram of %u bytes: the next receive has no room for "
			"it and the 40 bytes "
			"that stand before it",
			qp->qpn, pkt->payload_len);
		return;
	}
	wqe = vrb_rq_take(qp);
	if (unlikely(wqe == NULL)) {
		e->stats.rx_no_recv++;
		return;
	}
	qp->resp.wqe = wqe;
	make_grh(pkt, grh);
	if (likely(vrb_scatter(e, pd, wqe->sge, wqe->num_sge, 0, pkt, grh, GRH_LEN, &why) &&
		    vrb_scatter(e, pd, wqe->sge, wqe->num_sge, GRH_LEN, pkt, NULL, pkt->payload_len,
			    &why))) {
		complete_ud(qp, pkt);
		return;
	}
	/* The receive is at fault, and the queue pair with it (IBTA table 58). */
	wr_id = wqe->wr_id;
	vrb_explain(e, "QP %#x: receive %#llx failed: %s", qp->qpn, (unsigned long long)wr_id, why);
	vrb_resp_release_wqe(qp);
	vrb_resp_cqe_error(qp, wr_id, VRB_WC_LOC_PROT_ERR);
	vrb_qp_error(qp);
}

int
vrb_ah_create(struct vrb_engine *e, struct vrb_pd *pd, const struct vrb_av *av, struct vrb_ah **out)
{
	const char *why = vrb_av_check(e, av);
	struct vrb_ah *ah;

	if (why != NULL) {
		vrb_explain(e, "create address handle: %s", why);
		return -EINVAL;
	}
	if (e->num_ahs >= VRB_MAX_AH)
		return -ENOMEM;
	ah = calloc(1, sizeof(*ah));
	if (ah == NULL)
		return -ENOMEM;
	ah->pd = pd;
	ah->av = *av;
	/* The source port is that of the queue pair which sends. */
	vrb_path_init(e, av, 0, &ah->path);
	pd->refs++;
	e->num_ahs++;
	*out = ah;
	return 0;
}

/** Whether a datagram that is still to be sent names it. */
static bool
is_named(const struct vrb_engine *e, const struct vrb_ah *ah)
{
	uint32_t i, idx, head;

	for (i = 0; i < VRB_MAX_QP; i++) {
		const struct vrb_qp *qp = e->qps[i];

		if (qp == NULL || qp->transport != VRB_TRANSPORT_UD)
			continue;
		head = atomic_load_explicit(&qp->sq.head, memory_order_acquire);
		idx = atomic_load_explicit(&qp->sq.tail, memory_order_relaxed);
		for (; idx != head; idx++) {
			if (vrb_sq_at(&qp->sq, idx)->ud.ah == ah)
				return true;
		}
	}
	return false;
}

static void
free_unnamed(struct vrb_engine *e)
{
	struct vrb_ah **link = &e->dead_ahs, *ah;

	while ((ah = *link) != NULL) {
		if (is_named(e, ah)) {
			link = &ah->next;
			continue;
		}
		*link = ah->next;
		free(ah);
	}
}

int
vrb_ah_destroy(struct vrb_engine *e, struct vrb_ah *ah)
{
	ah->pd->refs--;
	e->num_ahs--;
	/* Programs destroy it while datagrams to it wait, as hardware lets them; then its memory
	 * stays. */
	ah->next = e->dead_ahs;
	e->dead_ahs = ah;
	free_unnamed(e);
	return 0;
}

void
vrb_ah_forget(struct vrb_engine *e)
{
	struct vrb_ah *ah;

	while ((ah = e->dead_ahs) != NULL) {
		e->dead_ahs = ah->next;
		free(ah);
	}
}
