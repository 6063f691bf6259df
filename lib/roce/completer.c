/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completer: what comes back to the requester (acknowledgements, READ responses, NAKs,
 * silence), and the completions that follow (IBTA 9.7.5, 9.7.6).
 *
 * All of it rests on one number, req.una, the oldest PSN without answer. It moves past a READ or
 * atomic only with the response itself; an acknowledgement from beyond tells that the response was
 * lost.
 */
#include <string.h>

#include "engine.h"

#define RD_MASK (VRB_MAX_RD_ATOM - 1)

uint64_t
vrb_rnr_ns(uint8_t timer)
{
	/* IBTA table 46, in units of 10 us; 0 stands for the longest. */
	static const uint32_t units[32] = {65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128,
		192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384,
		24576, 32768, 49152};

	return units[timer & 31] * 10000ull;
}

/** What the five credit bits of an ACK stand for (IBTA table 45): 0 1 2 3 4 6 8 12 16 ... */
static uint32_t
credit_count(uint32_t code)
{
	if (code < 2)
		return code;
	return (code & 1 ? 3u : 2u) << (code / 2 - 1);
}

static void
take_credits(struct vrb_qp *qp, uint32_t aeth)
{
	struct vrb_requester *req = &qp->req;
	uint32_t code = (aeth >> 24) & VRB_AETH_VALUE, lsn;

	if (((aeth >> 24) & VRB_AETH_KIND) != VRB_AETH_ACK)
		return;
	if (code == VRB_AETH_NO_CREDITS) {
		req->credits = false;
		return;
	}
	lsn = vrb_psn_add(aeth & VRB_PSN_MASK, credit_count(code));
	/* An older acknowledgement that was overtaken takes nothing back. */
	if (!req->credits || vrb_psn_diff(lsn, req->lsn) > 0)
		req->lsn = lsn;
	req->credits = true;
}

void
vrb_comp_retire(struct vrb_qp *qp, uint32_t idx, enum vrb_wc_status status)
{
	static const uint8_t opcodes[VRB_WR_OPCODES] = {
		[VRB_WR_RDMA_WRITE] = VRB_WC_RDMA_WRITE,
		[VRB_WR_RDMA_WRITE_WITH_IMM] = VRB_WC_RDMA_WRITE,
		[VRB_WR_SEND] = VRB_WC_SEND,
		[VRB_WR_SEND_WITH_IMM] = VRB_WC_SEND,
		[VRB_WR_RDMA_READ] = VRB_WC_RDMA_READ,
		[VRB_WR_ATOMIC_CMP_AND_SWP] = VRB_WC_COMP_SWAP,
		[VRB_WR_ATOMIC_FETCH_AND_ADD] = VRB_WC_FETCH_ADD,
		[VRB_WR_LOCAL_INV] = VRB_WC_LOCAL_INV,
		[VRB_WR_BIND_MW] = VRB_WC_BIND_MW,
		[VRB_WR_SEND_WITH_INV] = VRB_WC_SEND,
		[VRB_WR_ATOMIC_WRITE] = VRB_WC_ATOMIC_WRITE,
	};
	struct vrb_send_wqe *wqe = vrb_sq_at(&qp->sq, idx);
	struct vrb_cqe *cqe;

	/* Only success can be left unsaid (IBTA 10.8.6). */
	if (status == VRB_WC_SUCCESS && !(wqe->flags & VRB_SEND_SIGNALED) && !qp->sq.sig_all) {
		vrb_sq_renew(wqe);
		return;
	}
	cqe = vrb_cq_reserve(qp->send_cq);
	cqe->wr_id = wqe->wr_id;
	cqe->status = status;
	cqe->opcode = opcodes[wqe->opcode];
	cqe->vendor_err = 0;
	cqe->byte_len = wqe->length;
	cqe->imm = 0;
	cqe->qp_num = qp->qpn;
	cqe->src_qp = 0;
	cqe->wc_flags = 0;
	cqe->timestamp = qp->engine->now;
	cqe->qp_user = qp->user;
	/* The slot first: who has seen the completion can post again. */
	vrb_sq_renew(wqe);
	atomic_store_explicit(&qp->sq.tail, idx + 1, memory_order_release);
	vrb_cq_publish(qp->send_cq, status != VRB_WC_SUCCESS);
}

static void
check_drained(struct vrb_qp *qp)
{
	const struct vrb_sq *sq = &qp->sq;

	if (vrb_qp_get_state(qp) != VRB_QPS_SQD || qp->drained ||
		atomic_load_explicit(&sq->tail, memory_order_relaxed) != sq->next)
		return;
	/* A message whose first packets are out is finished first (IBTA 10.3.1.5). */
	if (sq->next != atomic_load_explicit(&sq->head, memory_order_acquire) &&
		vrb_sq_at(sq, sq->next)->started)
		return;
	qp->drained = true;
	if (qp->attr.en_sqd_async_notify)
		vrb_engine_async(qp->engine, VRB_EVENT_SQ_DRAINED, qp->user);
}

void
vrb_comp_advance(struct vrb_qp *qp)
{
	struct vrb_sq *sq = &qp->sq;
	uint32_t idx = atomic_load_explicit(&sq->tail, memory_order_relaxed), start = idx;

	while (idx != sq->next || vrb_sq_at(sq, idx)->done) {
		struct vrb_send_wqe *wqe = vrb_sq_at(sq, idx);
		enum vrb_wc_status status = VRB_WC_SUCCESS;

		if (idx - start > sq->mask || !wqe->started)
			break;
		if (wqe->done)
			status = wqe->status;
		else if (vrb_psn_diff(qp->req.una, wqe->last_psn) <= 0)
			break;
		vrb_comp_retire(qp, idx, status);
		/* One that was executed here, and that the requester on its way back has not passed
		 * yet. */
		if (idx == sq->next)
			sq->next++;
		idx++;
		if (status != VRB_WC_SUCCESS) {
			if (qp->acked)
				vrb_qp_error(qp);
			else
				vrb_qp_sq_error(qp);
			return;
		}
	}
	if (idx != start)
		atomic_store_explicit(&sq->tail, idx, memory_order_release);
	check_drained(qp);
}

/** Everything before @p una is answered. */
static void
progress(struct vrb_qp *qp, uint32_t una, uint64_t now)
{
	struct vrb_requester *req = &qp->req;

	if (una == req->una)
		return;
	if (vrb_psn_diff(una, req->recover) >= 0) {
		req->window += (uint32_t)vrb_psn_diff(una, req->una);
		req->window = RTE_MIN(req->window, (uint32_t)VRB_WINDOW);
		req->recover = una;
	}
	req->una = una;
	req->retry_left = qp->attr.retry_cnt;
	req->rnr_left = qp->attr.rnr_retry;
	qp->comp.gap = false;
	req->rnr_wait = false;
	/* Answers to packets that were about to be sent once more make that unnecessary. */
	if (vrb_psn_diff(una, req->psn) > 0)
		vrb_req_seek(qp, una);
	if (unlikely(qp->direct.asked))
		vrb_direct_answered(qp, now);
	vrb_comp_advance(qp);
	if (vrb_qp_get_state(qp) == VRB_QPS_ERR)
		return;
	vrb_req_timer(qp, now);
	vrb_engine_schedule(qp);
}

/** The next response packet of a READ or atomic that is awaited. */
static inline uint32_t
awaited(const struct vrb_requester *req)
{
	uint32_t first = req->rd[req->rd_tail & RD_MASK].first;

	return vrb_psn_diff(req->una, first) > 0 ? req->una : first;
}

/**
 * The oldest PSN before @p psn that only a response can answer, or @p psn. Besides what is in
 * flight that is what was in flight until a retransmission put it back into the queue.
 */
static uint32_t
first_missing(const struct vrb_qp *qp, uint32_t psn)
{
	const struct vrb_requester *req = &qp->req;
	uint32_t idx, head, first;

	if (vrb_req_rd_out(qp) > 0) {
		first = awaited(req);
		return vrb_psn_diff(psn, first) > 0 ? first : psn;
	}
	if (likely(vrb_psn_diff(psn, req->psn) <= 0))
		return psn;
	head = atomic_load_explicit(&qp->sq.head, memory_order_acquire);
	for (idx = qp->sq.next; idx != head; idx++) {
		const struct vrb_send_wqe *wqe = vrb_sq_at(&qp->sq, idx);

		if (!wqe->started)
			break;
		if (!vrb_wqe_is_rd_atomic(wqe))
			continue;
		first = vrb_psn_diff(req->psn, wqe->first_psn) > 0 ? req->psn : wqe->first_psn;
		return vrb_psn_diff(psn, first) > 0 ? first : psn;
	}
	return psn;
}

/**
 * Something is missing, but most of what was sent may still be answered, and need not be sent again
 * then: no more of it than asks for that.
 */
static void
tread_softly(struct vrb_requester *req)
{
	req->window = VRB_WINDOW_MIN;
	req->recover = req->max_psn;
}

/** A response is missing: asks for it again, once; after that the timer does. */
static void
fill_gap(struct vrb_qp *qp, uint32_t psn)
{
	if (qp->comp.gap && qp->comp.gap_psn == psn)
		return;
	qp->engine->stats.read_gaps++;
	qp->comp.gap = true;
	qp->comp.gap_psn = psn;
	tread_softly(&qp->req);
	vrb_req_seek(qp, psn);
	vrb_engine_schedule(qp);
}

/**
 * Everything before @p psn is acknowledged, as far as no READ or atomic without response stands in
 * between.
 * @return whether it was all
 */
static bool
acknowledge(struct vrb_qp *qp, uint32_t psn, uint64_t now)
{
	uint32_t missing = first_missing(qp, psn);

	progress(qp, missing, now);
	if (vrb_qp_get_state(qp) == VRB_QPS_ERR)
		return false;
	if (missing != psn)
		fill_gap(qp, missing);
	return missing == psn;
}

static void
rnr_nak(struct vrb_qp *qp, uint32_t psn, uint8_t timer, uint64_t now)
{
	struct vrb_requester *req = &qp->req;

	qp->engine->stats.rx_nak_rnr++;
	if (!acknowledge(qp, psn, now) || req->rnr_wait)
		return;
	/* 7 is for ever (IBTA 9.7.5.2.8). */
	if (qp->attr.rnr_retry != 7) {
		if (req->rnr_left == 0) {
			vrb_explain(qp->engine,
				"QP %#x: the peer (QP %#x) had no receive posted, %u times in a "
				"row; post "
				"receives earlier, or raise rnr_retry (7: for ever)",
				qp->qpn, qp->attr.dest_qpn, qp->attr.rnr_retry + 1);
			vrb_req_fail(qp, psn, VRB_WC_RNR_RETRY_EXC_ERR);
			return;
		}
		req->rnr_left--;
	}
	vrb_req_seek(qp, psn);
	req->rnr_wait = true;
	vrb_timer_set(qp->engine, &qp->timer, now + vrb_rnr_ns(timer));
}

/**
 * Packets were lost: fewer are sent ahead until that many more are acknowledged. A peer or a switch
 * that cannot keep up would lose those that are sent again as well, until the retries are used up.
 */
static void
narrow_window(struct vrb_requester *req)
{
	req->window = RTE_MAX(req->window / 2, (uint32_t)VRB_WINDOW_MIN);
}

static void
seq_nak(struct vrb_qp *qp, uint32_t psn, uint64_t now)
{
	struct vrb_requester *req = &qp->req;

	qp->engine->stats.rx_nak_seq++;
	/* Behind an RNR NAK the responder misses what we hold back on purpose. */
	if (!acknowledge(qp, psn, now) || req->rnr_wait)
		return;
	if (req->psn == psn)
		return; /* about to be sent again already */
	if (req->retry_left == 0) {
		vrb_explain(qp->engine,
			"QP %#x: the peer reports a missing packet (PSN %u) again and again; "
			"retry_cnt is "
			"used up",
			qp->qpn, psn);
		vrb_req_fail(qp, psn, VRB_WC_RETRY_EXC_ERR);
		return;
	}
	req->retry_left--;
	narrow_window(req);
	vrb_req_seek(qp, psn);
	vrb_engine_schedule(qp);
}

static void
error_nak(struct vrb_qp *qp, uint32_t psn, uint8_t syndrome, uint64_t now)
{
	static const struct {
		enum vrb_wc_status status;
		const char *why;
	} naks[] = {
		[VRB_NAK_INV_REQ & VRB_AETH_VALUE] = {VRB_WC_REM_INV_REQ_ERR,
			"invalid request: the message is longer than the receive, the operation is "
			"not enabled on the peer's "
			"queue pair, or an atomic's address is not a multiple of 8"},
		[VRB_NAK_REM_ACCESS & VRB_AETH_VALUE] = {VRB_WC_REM_ACCESS_ERR,
			"remote access error: R_Key unknown or of another protection domain, range "
			"not within it, or right "
			"not given"},
		[VRB_NAK_REM_OP & VRB_AETH_VALUE] = {VRB_WC_REM_OP_ERR,
			"remote operational error: the peer could not complete the request on its "
			"side"},
	};
	uint32_t code = syndrome & VRB_AETH_VALUE;
	enum vrb_wc_status status = VRB_WC_REM_OP_ERR;

	qp->engine->stats.rx_nak_error++;
	/* The peer has ended the connection: what is still without answer before the PSN will never
	 * get one. */
	(void)acknowledge(qp, psn, now);
	if (vrb_qp_get_state(qp) == VRB_QPS_ERR)
		return;
	if (code < RTE_DIM(naks)) {
		status = naks[code].status;
		vrb_explain(qp->engine, "QP %#x: the peer (QP %#x) refused a request: %s", qp->qpn,
			qp->attr.dest_qpn, naks[code].why);
	}
	vrb_req_fail(qp, psn, status);
}

static void
ack_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt, uint64_t now)
{
	uint32_t aeth = rte_be_to_cpu_32(((const struct vrb_aeth *)pkt->ext)->smsn);
	uint8_t syndrome = aeth >> 24;

	switch (syndrome & VRB_AETH_KIND) {
	case VRB_AETH_ACK:
		qp->engine->stats.rx_acks++;
		take_credits(qp, aeth);
		acknowledge(qp, vrb_psn_add(pkt->psn, 1), now);
		vrb_engine_schedule(qp);
		break;
	case VRB_AETH_RNR_NAK:
		rnr_nak(qp, pkt->psn, syndrome & VRB_AETH_VALUE, now);
		break;
	case VRB_AETH_NAK:
		if (syndrome == VRB_NAK_PSN_SEQ)
			seq_nak(qp, pkt->psn, now);
		else
			error_nak(qp, pkt->psn, syndrome, now);
		break;
	default:
		qp->engine->stats.rx_malformed++;
	}
}

/** A response that fits nothing that was asked for (IBTA 9.9.2.4). */
static void
bad_response(struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	vrb_explain(qp->engine, "QP %#x: unexpected %s with PSN %u and %u bytes", qp->qpn,
		pkt->info->name, pkt->psn, pkt->payload_len);
	vrb_req_fail(qp, pkt->psn, VRB_WC_BAD_RESP_ERR);
}

static void
rd_response(struct vrb_qp *qp, const struct vrb_pkt *pkt, uint64_t now)
{
	struct vrb_requester *req = &qp->req;
	bool atomic = pkt->opcode == VRB_RC_ATOMIC_ACK;
	struct vrb_send_wqe *wqe;
	const char *why = "";
	uint32_t pos, len;
	uint64_t orig = 0;
	uint32_t next;
	int32_t ahead;

	/* In flight, or about to be asked for again. */
	next = first_missing(qp, req->max_psn);
	if (next == req->max_psn)
		return; /* a duplicate of one that was taken */
	ahead = vrb_psn_diff(pkt->psn, next);
	if (ahead < 0)
		return;
	/* A response acknowledges all requests before it. */
	if (!acknowledge(qp, ahead > 0 ? vrb_psn_add(next, 1) : pkt->psn, now))
		return;
	wqe = vrb_sq_at(&qp->sq, atomic_load_explicit(&qp->sq.tail, memory_order_relaxed));
	if (atomic ? (wqe->opcode != VRB_WR_ATOMIC_CMP_AND_SWP &&
			     wqe->opcode != VRB_WR_ATOMIC_FETCH_AND_ADD)
		   : (wqe->opcode != VRB_WR_RDMA_READ && wqe->opcode != VRB_WR_ATOMIC_WRITE)) {
		bad_response(qp, pkt);
		return;
	}
	pos = (uint32_t)vrb_psn_diff(pkt->psn, wqe->first_psn) * qp->mtu;
	len = RTE_MIN(wqe->length - pos, qp->mtu);
	if (wqe->opcode == VRB_WR_ATOMIC_WRITE)
		len = 0; /* nothing comes back but the answer itself */
	if (atomic) {
		const struct vrb_atomic_ack_eth *eth =
			(const struct vrb_atomic_ack_eth *)(pkt->ext + sizeof(struct vrb_aeth));

		/* Big endian on the wire, a number of the host in memory. */
		orig = rte_be_to_cpu_64(eth->orig);
	} else if (pkt->payload_len != len) {
		bad_response(qp, pkt);
		return;
	}
	if (len > 0 && unlikely(!vrb_scatter(qp->engine, qp->pd, (const struct vrb_sge *)wqe->data,
			       wqe->num_sge, pos, pkt, atomic ? &orig : NULL, len, &why))) {
		vrb_explain(qp->engine,
			"QP %#x: READ or atomic %#llx: its result cannot be stored: %s", qp->qpn,
			(unsigned long long)wqe->wr_id, why);
		vrb_req_fail(qp, pkt->psn, VRB_WC_LOC_PROT_ERR);
		return;
	}
	if (pkt->info->flags & VRB_OP_AETH)
		take_credits(qp, rte_be_to_cpu_32(((const struct vrb_aeth *)pkt->ext)->smsn));
	if (vrb_req_rd_out(qp) > 0 && pkt->psn == req->rd[req->rd_tail & RD_MASK].last)
		req->rd_tail++;
	progress(qp, vrb_psn_add(pkt->psn, 1), now);
}

void
vrb_comp_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt, uint64_t now)
{
	enum vrb_qp_state state = vrb_qp_get_state(qp);

	if (state != VRB_QPS_RTS && state != VRB_QPS_SQD)
		return;
	/* Before una: answered already. From max_psn on: never sent (a "ghost", IBTA 9.7.5.1.2). */
	if (vrb_psn_diff(pkt->psn, qp->req.una) < 0 ||
		vrb_psn_diff(pkt->psn, qp->req.max_psn) >= 0) {
		qp->engine->stats.rx_duplicate++;
		return;
	}
	if (pkt->opcode == VRB_RC_ACK)
		ack_packet(qp, pkt, now);
	else
		rd_response(qp, pkt, now);
}

void
vrb_comp_timer(struct vrb_qp *qp, uint64_t now)
{
	struct vrb_requester *req = &qp->req;

	if (req->rnr_wait) {
		req->rnr_wait = false;
		return;
	}
	if (req->psn == req->una)
		return;
	qp->engine->stats.timeouts++;
	if (req->retry_left == 0) {
		vrb_explain(qp->engine,
			"QP %#x: no answer from the peer (QP %#x) after %u retries; it has gone, "
			"its queue "
			"pair is not ready to receive, or packets are lost",
			qp->qpn, qp->attr.dest_qpn, qp->attr.retry_cnt);
		vrb_req_fail(qp, req->una, VRB_WC_RETRY_EXC_ERR);
		return;
	}
	req->retry_left--;
	tread_softly(req);
	qp->comp.gap = false;
	vrb_req_seek(qp, req->una);
}
