/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The requester: turns send work requests into packets (IBTA 9.7.2, 9.7.3).
 *
 * What it sends next follows from two numbers: sq->next, the work request, and req.psn, the packet
 * within it. Going back for a retransmission is setting these two (vrb_req_seek()).
 *
 * A long READ is asked for in parts of VRB_READ_CHUNK packets, at fixed places of its PSN range, so
 * that neither the responder nor a network is overrun, and a lost response costs one part.
 */
#include <errno.h>
#include <string.h>

#include "engine.h"

#define RD_MASK (VRB_MAX_RD_ATOM - 1)
#define SGE_UNKNOWN UINT32_MAX

enum step {
	STEP_BLOCKED, /* nothing can be sent now */
	STEP_AGAIN, /* the WQE needed no packet: look at the next */
	STEP_PACKET,
};

static inline bool
is_local(const struct vrb_send_wqe *wqe)
{
	return wqe->opcode == VRB_WR_LOCAL_INV || wqe->opcode == VRB_WR_BIND_MW;
}

/** Whether it consumes a receive at the other side, and so needs credit. */
static inline bool
needs_credit(const struct vrb_send_wqe *wqe)
{
	return wqe->opcode == VRB_WR_SEND || wqe->opcode == VRB_WR_SEND_WITH_IMM ||
	       wqe->opcode == VRB_WR_SEND_WITH_INV || wqe->opcode == VRB_WR_RDMA_WRITE_WITH_IMM;
}

static inline uint32_t
head_of(const struct vrb_sq *sq)
{
	/* Pairs with vrb_sq_commit(): the entries before it are whole. */
	return atomic_load_explicit(&sq->head, memory_order_acquire);
}

static inline bool
out_of_credit(const struct vrb_requester *req)
{
	return req->credits && vrb_psn_diff(req->ssn, req->lsn) >= 0;
}

void
vrb_req_seek(struct vrb_qp *qp, uint32_t psn)
{
	struct vrb_requester *req = &qp->req;
	struct vrb_sq *sq = &qp->sq;
	uint32_t idx, head = head_of(sq);

	for (idx = atomic_load_explicit(&sq->tail, memory_order_relaxed); idx != head; idx++) {
		const struct vrb_send_wqe *wqe = vrb_sq_at(sq, idx);

		if (!wqe->started)
			break;
		if (!is_local(wqe) && vrb_psn_diff(psn, wqe->last_psn) <= 0)
			break;
	}
	sq->next = idx;
	req->psn = psn;
	req->sge_pos = SGE_UNKNOWN;
	req->since_ack = 0;
	/* What is asked for again is no longer in flight. */
	while (req->rd_head != req->rd_tail &&
		vrb_psn_diff(req->rd[(req->rd_head - 1) & RD_MASK].last, psn) >= 0)
		req->rd_head--;
}

void
vrb_req_fail(struct vrb_qp *qp, uint32_t psn, enum vrb_wc_status status)
{
	struct vrb_sq *sq = &qp->sq;
	uint32_t idx = atomic_load_explicit(&sq->tail, memory_order_relaxed), head = head_of(sq);

	for (; idx != head; idx++) {
		struct vrb_send_wqe *wqe = vrb_sq_at(sq, idx);
		bool here = !is_local(wqe) && wqe->started && vrb_psn_diff(psn, wqe->last_psn) <= 0;

		vrb_comp_retire(qp, idx, here ? status : VRB_WC_WR_FLUSH_ERR);
		if (here)
			break;
	}
	vrb_qp_error(qp);
}

/** Whether what was sent last before sq->next is a READ or atomic: its response is on its way
 * without being asked for. */
static bool
follows_rd_atomic(const struct vrb_qp *qp)
{
	uint32_t idx = qp->sq.next, tail = atomic_load_explicit(&qp->sq.tail, memory_order_relaxed);

	while (idx-- != tail) {
		const struct vrb_send_wqe *wqe = vrb_sq_at(&qp->sq, idx);

		if (!is_local(wqe))
			return vrb_wqe_is_rd_atomic(wqe);
	}
	return false;
}

/**
 * A WQE that cannot be executed for a reason on this side. It is reported when those before it have
 * completed; until then it stands at sq->next, so nothing behind it is sent.
 */
static enum step
fail_local(struct vrb_qp *qp, struct vrb_send_wqe *wqe, enum vrb_wc_status status, const char *why)
{
	struct vrb_requester *req = &qp->req;

	vrb_explain(qp->engine, "QP %#x: send work request %#llx (opcode %u): %s", qp->qpn,
		(unsigned long long)wqe->wr_id, wqe->opcode, why);
	wqe->done = 1;
	wqe->status = status;
	if (!wqe->started) {
		wqe->started = 1;
		wqe->first_psn = req->psn;
		wqe->last_psn = req->psn;
	}
	/* Those before it may wait for an acknowledgement that nobody has asked for: the last
	 * packet asks now. */
	if (qp->acked && req->since_ack > 0 && vrb_psn_diff(wqe->first_psn, req->una) > 0 &&
		!follows_rd_atomic(qp))
		vrb_req_seek(qp, vrb_psn_add(wqe->first_psn, VRB_PSN_MASK));
	vrb_comp_advance(qp);
	return STEP_BLOCKED;
}

static enum step
execute_local(struct vrb_qp *qp, struct vrb_send_wqe *wqe)
{
	const char *why = NULL;
	int rc;

	/* IBTA 10.8.3.3: an invalidation waits for everything before it. */
	if (wqe->opcode == VRB_WR_LOCAL_INV) {
		if (atomic_load_explicit(&qp->sq.tail, memory_order_relaxed) != qp->sq.next)
			return STEP_BLOCKED;
		rc = vrb_mw_invalidate(qp->engine, qp, wqe->imm, &why);
	} else {
		rc = vrb_mw_bind(qp->engine, qp, wqe, &why);
	}
	if (rc < 0)
		return fail_local(qp, wqe, VRB_WC_MW_BIND_ERR, why);
	wqe->started = 1;
	wqe->done = 1;
	wqe->status = VRB_WC_SUCCESS;
	qp->sq.next++;
	vrb_comp_advance(qp);
	return STEP_AGAIN;
}

/** Chooses how it goes to a peer that may be reached directly. @return false: it has to wait */
static bool
start_direct(struct vrb_qp *qp, const struct vrb_send_wqe *wqe, uint64_t now)
{
	enum vrb_direct_choice choice = vrb_direct_choose(qp, wqe, now);

	if (choice == VRB_DIRECTLY_LATER)
		return false;
	qp->direct.moving = choice == VRB_DIRECTLY;
	qp->direct.off = 0;
	return true;
}

/** Moves a part of a WQE to its peer, or from there. Nothing was sent of it, and it uses no PSN
 * unless it has to be sent in the end. */
static enum step
move(struct vrb_qp *qp, struct vrb_send_wqe *wqe)
{
	int rc = vrb_direct_move(qp, wqe);

	if (rc < 0) {
		qp->direct.moving = false;
		return STEP_PACKET;
	}
	if (rc == 1) {
		qp->direct.moving = false;
		wqe->done = 1;
		wqe->status = VRB_WC_SUCCESS;
		qp->sq.next++;
		vrb_comp_advance(qp);
	}
	return qp->engine->direct_left == 0 ? STEP_BLOCKED : STEP_AGAIN;
}

/** Begins a WQE, if it may be begun now. */
static enum step
start(struct vrb_qp *qp, struct vrb_send_wqe *wqe, uint64_t now)
{
	struct vrb_requester *req = &qp->req;
	uint32_t packets;

	if (vrb_qp_get_state(qp) == VRB_QPS_SQD)
		return STEP_BLOCKED;
	/* IBTA 10.8.3.3: a fence waits for READs and atomics before it. */
	if ((wqe->flags & VRB_SEND_FENCE) && vrb_req_rd_out(qp) > 0)
		return STEP_BLOCKED;
	if (is_local(wqe))
		return execute_local(qp, wqe);
	if (qp->transport == VRB_TRANSPORT_UD && wqe->length > qp->mtu)
		return fail_local(qp, wqe, VRB_WC_LOC_LEN_ERR,
			"a datagram cannot be longer than the port's active MTU");
	/* IBTA 10.2.2.2: address handles belong to a protection domain. */
	if (qp->transport == VRB_TRANSPORT_UD && wqe->ud.ah->pd != qp->pd)
		return fail_local(qp, wqe, VRB_WC_LOC_QP_OP_ERR,
			"the address handle belongs to another protection domain than the queue "
			"pair");
	if (vrb_wqe_is_rd_atomic(wqe) && qp->attr.max_rd_atomic == 0)
		return fail_local(qp, wqe, VRB_WC_LOC_QP_OP_ERR,
			"the queue pair was given max_rd_atomic 0, so it can send neither READs "
			"nor atomics");
	if (unlikely(qp->direct.peer != NULL) && !start_direct(qp, wqe, now))
		return STEP_BLOCKED;
	packets = wqe->length == 0 ? 1 : (wqe->length - 1) / qp->mtu + 1;
	wqe->first_psn = req->psn;
	wqe->last_psn = vrb_psn_add(req->psn, packets - 1);
	wqe->started = 1;
	return STEP_PACKET;
}

/** Whether this packet asks for an acknowledgement. Each that is not followed at once by another
 * has to. */
static bool
want_ack(const struct vrb_qp *qp, const struct vrb_send_wqe *wqe, bool last)
{
	const struct vrb_requester *req = &qp->req;
	const struct vrb_sq *sq = &qp->sq;
	const struct vrb_send_wqe *next;

	if (!qp->acked)
		return false;
	/* Half of a window, so that the other half is on its way meanwhile. */
	if (req->since_ack + 1 >= RTE_MIN((uint32_t)VRB_ACK_EVERY, req->window / 2) ||
		vrb_psn_diff(req->psn, req->una) + 1 >= (int32_t)req->window)
		return true;
	if (!last)
		return false;
	if (sq->next + 1 == head_of(sq) || vrb_psn_diff(req->psn, req->max_psn) < 0)
		return true;
	next = vrb_sq_at(sq, sq->next + 1);
	return next->done || is_local(next) || (next->flags & VRB_SEND_FENCE) ||
	       vrb_direct_waits(qp, next) || out_of_credit(req) ||
	       vrb_qp_get_state(qp) == VRB_QPS_SQD;
}

/** Puts the cursor at byte @p pos of the message. */
static void
seek_sge(struct vrb_requester *req, const struct vrb_send_wqe *wqe, uint32_t pos)
{
	const struct vrb_sge *sge = (const struct vrb_sge *)wqe->data;

	if (likely(req->sge_pos == pos))
		return;
	req->sge_idx = 0;
	req->sge_off = pos;
	while (req->sge_idx < wqe->num_sge && req->sge_off >= sge[req->sge_idx].length) {
		req->sge_off -= sge[req->sge_idx].length;
		req->sge_idx++;
	}
	req->sge_pos = pos;
}

/** Appends bytes [pos, pos + len) of the message. @return 0, -EINVAL (*why), -EFAULT, -ENOMEM */
static int
add_payload(struct vrb_qp *qp, const struct vrb_send_wqe *wqe, struct rte_mbuf *m, uint32_t pos,
	uint32_t len, const char **why)
{
	const struct vrb_sge *sge = (const struct vrb_sge *)wqe->data;
	struct vrb_requester *req = &qp->req;

	/* The WQE may be reused as soon as it is acknowledged, so inline data is copied, never
	 * chained. */
	if (wqe->flags & VRB_SEND_INLINE)
		return vrb_pkt_copy(qp->engine, m, wqe->data + pos, len);
	seek_sge(req, wqe, pos);
	while (len > 0) {
		const struct vrb_sge *s = &sge[req->sge_idx];
		uint32_t n = RTE_MIN(s->length - req->sge_off, len);
		void *src;
		int rc;

		if (n > 0) {
			/* IBTA 10.6.3.2: the whole SGE is checked, not only what this packet takes
			 * of it. */
			src = vrb_mr_local(qp->engine, qp->pd, s->lkey, s->addr, s->length, 0, why);
			if (unlikely(src == NULL))
				return -EINVAL;
			src = (uint8_t *)src + req->sge_off;
			/* An unreliable message completes before the port has taken it; then the
			 * memory is the program's. */
			rc = qp->acked ? vrb_pkt_payload(qp->engine, m, src, n)
				       : vrb_pkt_copy(qp->engine, m, src, n);
			if (unlikely(rc < 0))
				return rc;
		}
		req->sge_off += n;
		req->sge_pos += n;
		len -= n;
		if (req->sge_off == s->length) {
			req->sge_idx++;
			req->sge_off = 0;
		}
	}
	return 0;
}

static uint8_t
data_opcode(const struct vrb_send_wqe *wqe, bool first, bool last)
{
	/* by opcode of the WQE: First, Middle, Last, Only */
	static const uint8_t ops[VRB_WR_OPCODES][4] = {
		[VRB_WR_SEND] = {VRB_RC_SEND_FIRST, VRB_RC_SEND_MIDDLE, VRB_RC_SEND_LAST,
			VRB_RC_SEND_ONLY},
		[VRB_WR_SEND_WITH_IMM] = {VRB_RC_SEND_FIRST, VRB_RC_SEND_MIDDLE,
			VRB_RC_SEND_LAST_IMM, VRB_RC_SEND_ONLY_IMM},
		[VRB_WR_SEND_WITH_INV] = {VRB_RC_SEND_FIRST, VRB_RC_SEND_MIDDLE,
			VRB_RC_SEND_LAST_INV, VRB_RC_SEND_ONLY_INV},
		[VRB_WR_RDMA_WRITE] = {VRB_RC_WRITE_FIRST, VRB_RC_WRITE_MIDDLE, VRB_RC_WRITE_LAST,
			VRB_RC_WRITE_ONLY},
		[VRB_WR_RDMA_WRITE_WITH_IMM] = {VRB_RC_WRITE_FIRST, VRB_RC_WRITE_MIDDLE,
			VRB_RC_WRITE_LAST_IMM, VRB_RC_WRITE_ONLY_IMM},
	};

	if (first)
		return ops[wqe->opcode][last ? 3 : 0];
	return ops[wqe->opcode][last ? 2 : 1];
}

static void *
put_reth(void *ext, uint64_t va, uint32_t rkey, uint32_t length)
{
	struct vrb_reth *reth = ext;

	reth->va = rte_cpu_to_be_64(va);
	reth->rkey = rte_cpu_to_be_32(rkey);
	reth->length = rte_cpu_to_be_32(length);
	return reth + 1;
}

/** The header that only some transports have. @return where the others go */
static void *
put_transport(
	const struct vrb_qp *qp, const struct vrb_send_wqe *wqe, struct rte_mbuf *m, void *ext)
{
	if (qp->transport == VRB_TRANSPORT_XRC) {
		struct vrb_xrceth *eth = ext;

		eth->srqn = rte_cpu_to_be_32(wqe->srqn & 0xffffff);
		return eth + 1;
	}
	if (qp->transport == VRB_TRANSPORT_UD) {
		struct vrb_deth *eth = ext;
		struct rte_udp_hdr *udp = rte_pktmbuf_mtod_offset(
			m, struct rte_udp_hdr *, wqe->ud.ah->path.hdr_len - sizeof(*udp));

		/* IBTA 10.2.4.2: the upper bit asks for the Q_Key of the queue pair. */
		eth->qkey =
			rte_cpu_to_be_32(wqe->ud.qkey & 0x80000000u ? qp->attr.qkey : wqe->ud.qkey);
		eth->src_qpn = rte_cpu_to_be_32(qp->qpn);
		udp->src_port = rte_cpu_to_be_16(vrb_udp_sport(qp));
		return eth + 1;
	}
	return ext;
}

/** What happens after each packet: the PSN goes on, timers and counters follow. */
static void
sent(struct vrb_qp *qp, uint32_t psns, bool ackreq, uint64_t now)
{
	struct vrb_requester *req = &qp->req;
	bool again = vrb_psn_diff(req->psn, req->max_psn) < 0;

	if (again)
		qp->engine->stats.retransmitted++;
	req->psn = vrb_psn_add(req->psn, psns);
	if (vrb_psn_diff(req->psn, req->max_psn) > 0)
		req->max_psn = req->psn;
	if (!qp->acked) {
		req->una = req->psn;
		return;
	}
	req->since_ack = ackreq ? 0 : req->since_ack + 1;
	if (qp->timer.at == 0)
		vrb_req_timer(qp, now);
}

/** Gives up on the packet that is being made. */
static enum step
give_up(struct vrb_qp *qp, struct vrb_send_wqe *wqe, struct rte_mbuf *m, int rc, const char *why)
{
	rte_pktmbuf_free(m);
	qp->req.sge_pos = SGE_UNKNOWN;
	if (rc == -ENOMEM)
		return STEP_BLOCKED; /* the engine is starved, and calls again */
	if (rc == -EFAULT)
		why = "the memory behind the memory region is no longer mapped";
	return fail_local(qp, wqe, VRB_WC_LOC_PROT_ERR, why);
}

static enum step
send_data(struct vrb_qp *qp, struct vrb_send_wqe *wqe, uint64_t now, struct rte_mbuf **out)
{
	struct vrb_requester *req = &qp->req;
	uint32_t pos = (uint32_t)vrb_psn_diff(req->psn, wqe->first_psn) * qp->mtu;
	uint32_t len = RTE_MIN(wqe->length - pos, qp->mtu);
	bool first = pos == 0, last = pos + len == wqe->length, ackreq, fresh;
	const char *why = NULL;
	bool ud = qp->transport == VRB_TRANSPORT_UD;
	const struct vrb_path *path = ud ? &wqe->ud.ah->path : &qp->path;
	struct rte_mbuf *m;
	uint8_t opcode;
	void *ext;
	int rc;

	fresh = first && req->psn == req->max_psn;
	if (vrb_psn_diff(req->psn, req->una) >= (int32_t)req->window)
		return STEP_BLOCKED;
	/* IBTA 9.7.7.2.5: without credit one request may be sent, to learn of new credit. */
	if (fresh && needs_credit(wqe) && out_of_credit(req) && req->psn != req->una)
		return STEP_BLOCKED;
	opcode = data_opcode(wqe, first, last);
	if (fresh)
		req->ssn = vrb_psn_add(req->ssn, 1);
	ackreq = want_ack(qp, wqe, last);
	m = vrb_pkt_begin(qp, path, opcode, ud ? wqe->ud.remote_qpn : qp->attr.dest_qpn, req->psn,
		(ackreq ? VRB_BTH_ACKREQ : 0) |
			(last && (wqe->flags & VRB_SEND_SOLICITED) ? VRB_BTH_SE : 0),
		&ext);
	if (unlikely(m == NULL)) {
		if (fresh)
			req->ssn = vrb_psn_add(req->ssn, VRB_PSN_MASK);
		return STEP_BLOCKED;
	}
	ext = put_transport(qp, wqe, m, ext);
	if (vrb_opcode_info(opcode)->flags & VRB_OP_RETH)
		ext = put_reth(ext, wqe->remote_addr, wqe->rkey, wqe->length);
	if (vrb_opcode_info(opcode)->flags & VRB_OP_IMM)
		memcpy(ext, &wqe->imm, sizeof(wqe->imm));
	else if (vrb_opcode_info(opcode)->flags & VRB_OP_INV)
		((struct vrb_ieth *)ext)->rkey = rte_cpu_to_be_32(wqe->imm);
	rc = add_payload(qp, wqe, m, pos, len, &why);
	if (likely(rc == 0))
		rc = vrb_pkt_end(qp->engine, path, m, len);
	if (unlikely(rc < 0)) {
		if (fresh)
			req->ssn = vrb_psn_add(req->ssn, VRB_PSN_MASK);
		return give_up(qp, wqe, m, rc, why);
	}
	sent(qp, 1, ackreq, now);
	if (last)
		qp->sq.next++;
	/* Nothing answers an unreliable message: it is done when it is sent. */
	if (last && !qp->acked)
		vrb_comp_advance(qp);
	*out = m;
	return STEP_PACKET;
}

/** The value of an ATOMIC WRITE. @return as add_payload() */
static int
add_value(struct vrb_qp *qp, const struct vrb_send_wqe *wqe, struct rte_mbuf *m, const char **why)
{
	if (wqe->num_sge == 0 && !(wqe->flags & VRB_SEND_INLINE))
		return vrb_pkt_copy(qp->engine, m, &wqe->atomic.swap, sizeof(wqe->atomic.swap));
	return add_payload(qp, wqe, m, 0, wqe->length, why);
}

/**
 * READs and atomics that may be in flight: as much less as the window is narrow. A responder
 * answers all that it is asked for, one after the other, also what comes too early to be of use.
 */
static uint32_t
rd_limit(const struct vrb_qp *qp)
{
	const uint32_t wide = VRB_WINDOW - VRB_WINDOW_MIN;
	uint32_t n = qp->attr.max_rd_atomic * (qp->req.window - VRB_WINDOW_MIN) / wide;

	return RTE_MAX(n, 1u);
}

static enum step
send_rd_atomic(struct vrb_qp *qp, struct vrb_send_wqe *wqe, uint64_t now, struct rte_mbuf **out)
{
	struct vrb_requester *req = &qp->req;
	uint32_t done = (uint32_t)vrb_psn_diff(req->psn, wqe->first_psn), psns = 1, chunk_last;
	bool write = wqe->opcode == VRB_WR_ATOMIC_WRITE;
	const char *why = NULL;
	struct rte_mbuf *m;
	uint8_t opcode;
	void *ext;
	int rc = 0;

	if (vrb_req_rd_out(qp) >= rd_limit(qp))
		return STEP_BLOCKED;
	if (wqe->opcode == VRB_WR_RDMA_READ) {
		opcode = VRB_RC_READ_REQUEST;
		chunk_last = vrb_psn_add(
			wqe->first_psn, (done / VRB_READ_CHUNK + 1) * VRB_READ_CHUNK - 1);
		if (vrb_psn_diff(chunk_last, wqe->last_psn) > 0)
			chunk_last = wqe->last_psn;
		psns = (uint32_t)vrb_psn_diff(chunk_last, req->psn) + 1;
	} else if (write) {
		opcode = VRB_RC_ATOMIC_WRITE;
	} else {
		opcode = wqe->opcode == VRB_WR_ATOMIC_CMP_AND_SWP ? VRB_RC_CMP_SWAP
								  : VRB_RC_FETCH_ADD;
	}
	/* Never less of a READ than at first: asked for a range of which it has answered only the
	 * beginning, the responder would take it for no duplicate, nor for new. */
	if (vrb_psn_diff(vrb_psn_add(req->psn, psns), req->una) > VRB_WINDOW)
		return STEP_BLOCKED;
	/* READs and atomics are acknowledged by their response; they ask for it as the kernel does.
	 */
	m = vrb_pkt_begin(qp, &qp->path, opcode, qp->attr.dest_qpn, req->psn, VRB_BTH_ACKREQ, &ext);
	if (unlikely(m == NULL))
		return STEP_BLOCKED;
	ext = put_transport(qp, wqe, m, ext);
	if (opcode == VRB_RC_READ_REQUEST) {
		uint32_t off = done * qp->mtu;

		put_reth(ext, wqe->remote_addr + off, wqe->rkey,
			RTE_MIN(wqe->length - off, psns * qp->mtu));
	} else if (write) {
		put_reth(ext, wqe->remote_addr, wqe->rkey, wqe->length);
		rc = add_value(qp, wqe, m, &why);
	} else {
		struct vrb_atomic_eth *eth = ext;
		bool cas = opcode == VRB_RC_CMP_SWAP;

		eth->va = rte_cpu_to_be_64(wqe->remote_addr);
		eth->rkey = rte_cpu_to_be_32(wqe->rkey);
		eth->swap_add = rte_cpu_to_be_64(cas ? wqe->atomic.swap : wqe->atomic.compare_add);
		eth->compare = rte_cpu_to_be_64(cas ? wqe->atomic.compare_add : 0);
	}
	if (likely(rc == 0))
		rc = vrb_pkt_end(qp->engine, &qp->path, m, write ? wqe->length : 0);
	if (unlikely(rc < 0))
		return give_up(qp, wqe, m, rc, why);
	if (req->psn == req->max_psn)
		req->ssn = vrb_psn_add(req->ssn, 1);
	req->rd[req->rd_head & RD_MASK].first = req->psn;
	req->rd[req->rd_head & RD_MASK].last = vrb_psn_add(req->psn, psns - 1);
	req->rd_head++;
	sent(qp, psns, true, now);
	if (vrb_psn_diff(req->psn, wqe->last_psn) > 0)
		qp->sq.next++;
	*out = m;
	return STEP_PACKET;
}

struct rte_mbuf *
vrb_req_next(struct vrb_qp *qp, uint64_t now)
{
	enum vrb_qp_state state = vrb_qp_get_state(qp);
	struct rte_mbuf *m = NULL;
	enum step step;

	if (unlikely(qp->transport == VRB_TRANSPORT_RAW))
		return vrb_raw_next(qp);
	if ((state != VRB_QPS_RTS && state != VRB_QPS_SQD) || qp->req.rnr_wait)
		return NULL;
	do {
		struct vrb_send_wqe *wqe;

		if (qp->sq.next == head_of(&qp->sq))
			return NULL;
		wqe = vrb_sq_at(&qp->sq, qp->sq.next);
		if (wqe->done) {
			/* Executed here before: passed by on a retransmission; a failed one stops
			 * everything. */
			if (wqe->status != VRB_WC_SUCCESS)
				return NULL;
			qp->sq.next++;
			step = STEP_AGAIN;
			continue;
		}
		step = wqe->started ? STEP_PACKET : start(qp, wqe, now);
		if (step == STEP_PACKET && unlikely(qp->direct.moving))
			step = move(qp, wqe);
		if (step == STEP_PACKET)
			step = vrb_wqe_is_rd_atomic(wqe) ? send_rd_atomic(qp, wqe, now, &m)
							 : send_data(qp, wqe, now, &m);
		/* A failed WQE may have sent us back for the acknowledgement of those before it. */
		if (step == STEP_BLOCKED && wqe->done && vrb_qp_get_state(qp) == state &&
			vrb_sq_at(&qp->sq, qp->sq.next) != wqe)
			step = STEP_AGAIN;
	} while (step == STEP_AGAIN);
	return m;
}

/*
 * IBTA 9.7.6.1.3: the timer is at least 4.096 us * 2^timeout and at most four times that. A short
 * one takes the longest that is allowed: what answers is a program, which may have to wait for a
 * processor.
 */
#define TIMEOUT_UNIT_NS 4096ull
#define TIMEOUT_SHORT_NS 4000000ull

void
vrb_req_timer(struct vrb_qp *qp, uint64_t now)
{
	uint64_t t;

	if (qp->req.rnr_wait)
		return;
	/* IBTA: 0 means no timer at all. */
	if (qp->attr.timeout == 0 || qp->req.psn == qp->req.una) {
		vrb_timer_set(qp->engine, &qp->timer, 0);
		return;
	}
	t = TIMEOUT_UNIT_NS << qp->attr.timeout;
	if (t < TIMEOUT_SHORT_NS)
		t = RTE_MIN(4 * t, TIMEOUT_SHORT_NS);
	vrb_timer_set(qp->engine, &qp->timer, now + t);
}
