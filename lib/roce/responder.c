/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder: executes the peer's requests in PSN order and answers them (IBTA 9.7.4, 9.7.5).
 *
 * SENDs and WRITEs are executed packet by packet as they arrive. READs and atomics put an entry
 * into a queue of answers, from which the packets are made when it is the QP's turn to send. One
 * acknowledgement stands behind that queue, for the newest request: acknowledgements are
 * cumulative, so those of a burst become one.
 */
#include <errno.h>
#include <string.h>

#include "engine.h"
#include "guard.h"

bool
vrb_qp_owes(const struct vrb_qp *qp)
{
	return qp->resp.ops_head != qp->resp.ops_tail || qp->resp.ack_pending;
}

static void
acknowledge(struct vrb_qp *qp, uint32_t psn)
{
	struct vrb_responder *resp = &qp->resp;

	/* A NAK that is not sent yet says more, and acknowledges what is before it. */
	if (!resp->ack_pending) {
		resp->ack_pending = true;
		resp->ack_syndrome = VRB_AETH_ACK;
		vrb_engine_schedule_first(qp);
	}
	if ((resp->ack_syndrome & VRB_AETH_KIND) == VRB_AETH_ACK)
		resp->ack_psn = psn;
}

static void
nak(struct vrb_qp *qp, uint8_t syndrome, uint32_t psn)
{
	if (!qp->acked)
		return;
	qp->resp.ack_pending = true;
	qp->resp.ack_syndrome = syndrome;
	qp->resp.ack_psn = psn;
	vrb_engine_schedule(qp);
}

/** Refuses a request for good: the NAK goes out, and the QP is in error (IBTA 9.9.3). */
void
vrb_resp_refuse(
	struct vrb_qp *qp, uint8_t syndrome, uint32_t psn, const char *what, const char *why)
{
	if (!qp->acked) {
		/* IBTA 9.8.3: what is wrong with a request of UC is not answered; the message is
		 * dropped. */
		qp->engine->stats.rx_dropped++;
		qp->resp.in_msg = 0;
		vrb_explain(qp->engine, "QP %#x: dropped the peer's %s (PSN %u): %s", qp->qpn, what,
			psn, why);
		return;
	}
	qp->engine->stats.tx_nak_error++;
	vrb_explain(
		qp->engine, "QP %#x: refused the peer's %s (PSN %u): %s", qp->qpn, what, psn, why);
	nak(qp, syndrome, psn);
	qp->resp.nak_final = true;
	vrb_qp_error(qp);
	/* IBTA C9-222.1.1 and 11.6.3.2: an error that no completion tells of is an event. */
	if (syndrome == VRB_NAK_REM_ACCESS)
		vrb_engine_async(qp->engine, VRB_EVENT_QP_ACCESS_ERR, qp->user);
	else if (syndrome == VRB_NAK_INV_REQ)
		vrb_engine_async(qp->engine, VRB_EVENT_QP_REQ_ERR, qp->user);
}

void
vrb_resp_release_wqe(struct vrb_qp *qp)
{
	struct vrb_rq *rq = qp->rq;

	qp->resp.wqe = NULL;
	if (qp->srq == NULL) {
		uint32_t tail = atomic_load_explicit(&rq->tail, memory_order_relaxed);

		atomic_store_explicit(&rq->tail, tail + 1, memory_order_release);
	}
}

void
vrb_resp_cqe_error(struct vrb_qp *qp, uint64_t wr_id, enum vrb_wc_status status)
{
	struct vrb_cqe *cqe = vrb_cq_reserve(qp->recv_cq);

	memset(cqe, 0, sizeof(*cqe));
	cqe->wr_id = wr_id;
	cqe->status = status;
	cqe->opcode = VRB_WC_RECV;
	cqe->qp_num = qp->qpn;
	cqe->timestamp = qp->engine->now;
	cqe->qp_user = qp->user;
	vrb_cq_publish(qp->recv_cq, true);
}

/** The receive itself is at fault: it completes with an error, the peer is told, the QP ends. */
static void
fail_recv(struct vrb_qp *qp, enum vrb_wc_status status, uint8_t syndrome, uint32_t psn,
	const char *why)
{
	uint64_t wr_id = qp->resp.wqe->wr_id;

	if (qp->acked)
		qp->engine->stats.tx_nak_error++;
	vrb_explain(qp->engine, "QP %#x: receive %#llx failed: %s", qp->qpn,
		(unsigned long long)wr_id, why);
	vrb_resp_release_wqe(qp);
	vrb_resp_cqe_error(qp, wr_id, status);
	nak(qp, syndrome, psn);
	qp->resp.nak_final = qp->acked;
	vrb_qp_error(qp);
}

/** Takes the receive that the message needs. @return false when there is none: the peer is to wait
 */
static bool
need_wqe(struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	struct vrb_responder *resp = &qp->resp;

	if (resp->wqe != NULL)
		return true;
	resp->wqe = vrb_rq_take(qp);
	resp->sge_idx = 0;
	resp->sge_off = 0;
	if (likely(resp->wqe != NULL))
		return true;
	if (!qp->acked) {
		qp->engine->stats.rx_no_recv++;
		resp->in_msg = 0;
		return false;
	}
	qp->engine->stats.tx_nak_rnr++;
	nak(qp, VRB_AETH_RNR_NAK | qp->attr.min_rnr_timer, pkt->psn);
	/* What follows it is lost on purpose; no sequence NAK until it has come again. */
	resp->nak_sent = true;
	return false;
}

/** Puts a SEND's payload where the receive says. */
static bool
store_send(struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	struct vrb_responder *resp = &qp->resp;
	const struct vrb_recv_wqe *wqe = resp->wqe;
	/* IBTA 10.2.9.4: the receives of an SRQ are checked against the SRQ's protection domain. */
	struct vrb_pd *pd = qp->srq != NULL ? qp->srq->pd : qp->pd;
	uint32_t len = pkt->payload_len, from = 0;
	const char *why = "";

	if (unlikely(len > wqe->length - resp->msg_off) && !qp->acked) {
		/* IBTA 9.9.3.2, class D: the message is dropped, the receive serves the next. */
		vrb_resp_refuse(qp, 0, pkt->psn, pkt->info->name,
			"the message is longer than the buffers of the receive");
		return false;
	}
	if (unlikely(len > wqe->length - resp->msg_off)) {
		fail_recv(qp, VRB_WC_LOC_LEN_ERR, VRB_NAK_INV_REQ, pkt->psn,
			"the message is longer than its buffers");
		return false;
	}
	while (len > 0) {
		const struct vrb_sge *s = &wqe->sge[resp->sge_idx];
		uint32_t n = RTE_MIN(s->length - resp->sge_off, len);
		uint8_t *dst;

		if (n == 0) {
			resp->sge_idx++;
			resp->sge_off = 0;
			continue;
		}
		dst = vrb_mr_local(
			qp->engine, pd, s->lkey, s->addr, s->length, VRB_ACCESS_LOCAL_WRITE, &why);
		if (likely(dst != NULL) &&
			unlikely(vrb_pkt_read(pkt, from, dst + resp->sge_off, n) < 0)) {
			why = "the memory behind the memory region is no longer mapped";
			dst = NULL;
		}
		if (unlikely(dst == NULL)) {
			fail_recv(qp, VRB_WC_LOC_PROT_ERR, VRB_NAK_REM_OP, pkt->psn, why);
			return false;
		}
		resp->sge_off += n;
		from += n;
		len -= n;
	}
	return true;
}

/** Puts a WRITE's payload where the R_Key allows. */
static bool
store_write(struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	struct vrb_responder *resp = &qp->resp;
	const char *why = "";
	void *dst;

	if (pkt->payload_len == 0)
		return true;
	/* Looked up for each packet: the region may have gone since the first. */
	dst = vrb_mr_remote(qp->engine, qp, qp->pd, resp->rkey, resp->va, pkt->payload_len,
		VRB_ACCESS_REMOTE_WRITE, &why);
	if (likely(dst != NULL) && unlikely(vrb_pkt_read(pkt, 0, dst, pkt->payload_len) < 0)) {
		why = "the memory behind the memory region is no longer mapped";
		dst = NULL;
	}
	if (unlikely(dst == NULL)) {
		vrb_resp_refuse(qp, VRB_NAK_REM_ACCESS, pkt->psn, pkt->info->name, why);
		return false;
	}
	resp->va += pkt->payload_len;
	resp->left -= pkt->payload_len;
	return true;
}

/** A WRITE's first packet names the target; it is checked as a whole before a byte is stored. */
static bool
begin_write(struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	const struct vrb_reth *reth = (const struct vrb_reth *)pkt->ext;
	struct vrb_responder *resp = &qp->resp;
	const char *why = "";

	resp->va = rte_be_to_cpu_64(reth->va);
	resp->rkey = rte_be_to_cpu_32(reth->rkey);
	resp->left = rte_be_to_cpu_32(reth->length);
	if (!(qp->attr.access & VRB_ACCESS_REMOTE_WRITE)) {
		vrb_resp_refuse(qp, VRB_NAK_INV_REQ, pkt->psn, pkt->info->name,
			"the queue pair does not allow remote writes");
		return false;
	}
	if (resp->left > VRB_MAX_MSG) {
		vrb_resp_refuse(qp, VRB_NAK_INV_REQ, pkt->psn, pkt->info->name,
			"the message is longer than 2^31 bytes");
		return false;
	}
	/* Of length 0 neither key nor address is looked at (IBTA 9.7.4.1.3). */
	if (resp->left > 0 && vrb_mr_remote(qp->engine, qp, qp->pd, resp->rkey, resp->va,
				      resp->left, VRB_ACCESS_REMOTE_WRITE, &why) == NULL) {
		vrb_resp_refuse(qp, VRB_NAK_REM_ACCESS, pkt->psn, pkt->info->name, why);
		return false;
	}
	return true;
}

/** The receive's completion: of a SEND, or of a WRITE with immediate. */
static bool
complete_recv(struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	struct vrb_responder *resp = &qp->resp;
	bool write = resp->in_msg == VRB_OP_WRITE;
	const uint8_t *ext =
		pkt->ext + (pkt->info->flags & VRB_OP_RETH ? sizeof(struct vrb_reth) : 0);
	struct vrb_cqe *cqe;
	const char *why = "";
	uint32_t imm = 0, flags = 0;

	if (pkt->info->flags & VRB_OP_IMM) {
		memcpy(&imm, ext, sizeof(imm));
		flags = VRB_WC_WITH_IMM;
	} else if (pkt->info->flags & VRB_OP_INV) {
		imm = rte_be_to_cpu_32(((const struct vrb_ieth *)ext)->rkey);
		flags = VRB_WC_WITH_INV;
		if (vrb_mw_invalidate(qp->engine, qp, imm, &why) < 0) {
			fail_recv(qp, VRB_WC_MW_BIND_ERR, VRB_NAK_REM_ACCESS, pkt->psn, why);
			return false;
		}
	}
	cqe = vrb_cq_reserve(qp->recv_cq);
	cqe->wr_id = resp->wqe->wr_id;
	cqe->status = VRB_WC_SUCCESS;
	cqe->opcode = write ? VRB_WC_RECV_RDMA_WITH_IMM : VRB_WC_RECV;
	cqe->vendor_err = 0;
	cqe->byte_len = resp->msg_off;
	cqe->imm = imm;
	cqe->qp_num = qp->qpn;
	cqe->src_qp = qp->attr.dest_qpn;
	cqe->wc_flags = flags;
	cqe->timestamp = qp->engine->now;
	cqe->qp_user = qp->user;
	/* The slot first: who has seen the completion can post again. */
	vrb_resp_release_wqe(qp);
	vrb_cq_publish(qp->recv_cq, pkt->solicited);
	return true;
}

/** Whether a packet of a message has a length that its place allows (IBTA 9.7.4.1.6). */
static const char *
bad_length(const struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	bool first = pkt->info->flags & VRB_OP_FIRST, last = pkt->info->flags & VRB_OP_LAST;

	if (!last && pkt->payload_len != qp->mtu)
		return "a First or Middle packet is not as long as the path MTU; do both sides "
		       "have the same path_mtu?";
	if (pkt->payload_len > qp->mtu)
		return "a packet is longer than the path MTU; do both sides have the same "
		       "path_mtu?";
	if (last && !first && pkt->payload_len == 0)
		return "a Last packet without payload";
	if ((pkt->info->flags & VRB_OP_WRITE) &&
		(last ? pkt->payload_len != qp->resp.left : pkt->payload_len >= qp->resp.left))
		return "the payload does not add up to the length of the request";
	return NULL;
}

bool
vrb_resp_data(struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	struct vrb_responder *resp = &qp->resp;
	bool send = pkt->info->flags & VRB_OP_SEND, last = pkt->info->flags & VRB_OP_LAST;
	const char *why;

	/* A receive that is needed is made sure of before anything is changed: the packet will come
	 * again. */
	if ((send || (pkt->info->flags & VRB_OP_IMM)) && !need_wqe(qp, pkt))
		return false;
	if (pkt->info->flags & VRB_OP_FIRST) {
		resp->msg_off = 0;
		if (!send && !begin_write(qp, pkt))
			return false;
	}
	why = bad_length(qp, pkt);
	if (unlikely(why != NULL)) {
		vrb_resp_refuse(qp, VRB_NAK_INV_REQ, pkt->psn, pkt->info->name, why);
		return false;
	}
	if (!(send ? store_send(qp, pkt) : store_write(qp, pkt)))
		return false;
	resp->in_msg = send ? VRB_OP_SEND : VRB_OP_WRITE;
	resp->msg_off += pkt->payload_len;
	if (!last)
		return true;
	if ((send || (pkt->info->flags & VRB_OP_IMM)) && !complete_recv(qp, pkt))
		return false;
	resp->in_msg = 0;
	resp->msn = vrb_psn_add(resp->msn, 1);
	return true;
}

/* ---- READs and atomics ---- */

/** A free entry at the end of the queue of answers, or NULL. */
static struct vrb_resp_op *
new_op(struct vrb_qp *qp)
{
	struct vrb_responder *resp = &qp->resp;

	if (resp->ops == NULL || resp->ops_head - resp->ops_tail > resp->ops_mask)
		return NULL;
	return &resp->ops[resp->ops_head & resp->ops_mask];
}

/**
 * The same for a request that comes again: it leaves room for as many new ones as may be in flight,
 * since they are refused for good where there is none.
 */
static struct vrb_resp_op *
new_op_again(struct vrb_qp *qp)
{
	struct vrb_responder *resp = &qp->resp;

	if (resp->ops_head - resp->ops_tail + resp->saved_num > resp->ops_mask)
		return NULL;
	return new_op(qp);
}

static void
queue_op(struct vrb_qp *qp)
{
	qp->resp.ops_head++;
	vrb_engine_schedule(qp);
}

/** The protection domain that a request is checked against; also of a duplicate, while another SRQ
 * is the current one. */
static struct vrb_pd *
request_pd(const struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	const struct vrb_srq *srq;

	if (likely(qp->transport != VRB_TRANSPORT_XRC))
		return qp->pd;
	srq = vrb_srq_find(qp->engine, pkt->srqn);
	return srq != NULL && srq->xrcd == qp->xrcd ? srq->pd : NULL;
}

/** Fills an entry from a READ request. @return why not, or NULL; *syndrome the NAK for it */
static const char *
parse_read(struct vrb_qp *qp, const struct vrb_pkt *pkt, struct vrb_resp_op *op, uint8_t *syndrome)
{
	const struct vrb_reth *reth = (const struct vrb_reth *)pkt->ext;
	const char *why = NULL;

	*syndrome = VRB_NAK_INV_REQ;
	op->atomic = false;
	op->again = false;
	op->va = rte_be_to_cpu_64(reth->va);
	op->rkey = rte_be_to_cpu_32(reth->rkey);
	op->length = rte_be_to_cpu_32(reth->length);
	if (!(qp->attr.access & VRB_ACCESS_REMOTE_READ))
		return "the queue pair does not allow remote reads";
	if (op->length > VRB_MAX_MSG)
		return "the message is longer than 2^31 bytes";
	*syndrome = VRB_NAK_REM_ACCESS;
	op->pd = request_pd(qp, pkt);
	if (op->length > 0 && vrb_mr_remote(qp->engine, qp, op->pd, op->rkey, op->va, op->length,
				      VRB_ACCESS_REMOTE_READ, &why) == NULL)
		return why;
	op->first_psn = pkt->psn;
	op->psn = pkt->psn;
	op->last_psn = vrb_psn_add(pkt->psn, op->length == 0 ? 0 : (op->length - 1) / qp->mtu);
	return NULL;
}

static bool
read_request(struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	struct vrb_resp_op *op = new_op(qp);
	uint8_t syndrome;
	const char *why;

	if (op == NULL) {
		vrb_resp_refuse(qp, VRB_NAK_INV_REQ, pkt->psn, pkt->info->name,
			"more READs and atomics are in flight than max_dest_rd_atomic of the queue "
			"pair allows");
		return false;
	}
	why = parse_read(qp, pkt, op, &syndrome);
	if (why != NULL) {
		vrb_resp_refuse(qp, syndrome, pkt->psn, pkt->info->name, why);
		return false;
	}
	qp->resp.msn = vrb_psn_add(qp->resp.msn, 1);
	op->msn = qp->resp.msn;
	/* A READ takes as many PSNs as its response has packets (IBTA 9.7.2). */
	qp->resp.epsn = op->last_psn;
	queue_op(qp);
	return true;
}

static const char *
execute_atomic(struct vrb_qp *qp, const struct vrb_pkt *pkt, uint64_t *orig, uint8_t *syndrome)
{
	const struct vrb_atomic_eth *eth = (const struct vrb_atomic_eth *)pkt->ext;
	uint64_t va = rte_be_to_cpu_64(eth->va);
	const char *why = NULL;
	uint64_t *p;
	int rc;

	*syndrome = VRB_NAK_INV_REQ;
	if (!(qp->attr.access & VRB_ACCESS_REMOTE_ATOMIC))
		return "the queue pair does not allow remote atomics";
	if (va % sizeof(uint64_t) != 0)
		return "the address is not a multiple of 8"; /* IBTA 9.4.5.2 */
	*syndrome = VRB_NAK_REM_ACCESS;
	p = vrb_mr_remote(qp->engine, qp, qp->pd, rte_be_to_cpu_32(eth->rkey), va, sizeof(*p),
		VRB_ACCESS_REMOTE_ATOMIC, &why);
	if (p == NULL)
		return why;
	if ((uintptr_t)p % sizeof(*p) != 0)
		return "the memory behind the address is not aligned to 8 bytes";
	/* Atomic for the program's own threads too: they are on the same processors. */
	if (pkt->opcode == VRB_RC_CMP_SWAP)
		rc = vrb_guard_cmp_swap(
			p, rte_be_to_cpu_64(eth->compare), rte_be_to_cpu_64(eth->swap_add), orig);
	else
		rc = vrb_guard_fetch_add(p, rte_be_to_cpu_64(eth->swap_add), orig);
	return rc < 0 ? "the memory behind the memory region is no longer mapped" : NULL;
}

static void
queue_atomic_ack(struct vrb_qp *qp, struct vrb_resp_op *op, uint32_t psn, uint64_t orig)
{
	op->atomic = true;
	op->first_psn = psn;
	op->last_psn = psn;
	op->psn = psn;
	op->orig = orig;
	op->msn = qp->resp.msn;
	queue_op(qp);
}

/** The answer to an ATOMIC WRITE is a READ response of no length (IBTA A19.4). */
static void
queue_write_ack(struct vrb_qp *qp, struct vrb_resp_op *op, uint32_t psn)
{
	op->atomic = false;
	op->again = false;
	op->first_psn = psn;
	op->last_psn = psn;
	op->psn = psn;
	op->length = 0;
	op->msn = qp->resp.msn;
	queue_op(qp);
}

/** Stores the eight bytes of an ATOMIC WRITE, as they are. @return as execute_atomic() */
static const char *
execute_write(struct vrb_qp *qp, const struct vrb_pkt *pkt, uint8_t *syndrome)
{
	const struct vrb_reth *reth = (const struct vrb_reth *)pkt->ext;
	uint64_t va = rte_be_to_cpu_64(reth->va), value;
	const char *why = NULL;
	uint64_t *p;

	*syndrome = VRB_NAK_INV_REQ;
	if (!(qp->attr.access & VRB_ACCESS_REMOTE_WRITE))
		return "the queue pair does not allow remote writes";
	if (rte_be_to_cpu_32(reth->length) != sizeof(value) || pkt->payload_len != sizeof(value))
		return "an ATOMIC WRITE is of 8 bytes";
	if (va % sizeof(value) != 0)
		return "the address is not a multiple of 8"; /* IBTA A19.4.2 */
	*syndrome = VRB_NAK_REM_ACCESS;
	p = vrb_mr_remote(qp->engine, qp, qp->pd, rte_be_to_cpu_32(reth->rkey), va, sizeof(value),
		VRB_ACCESS_REMOTE_WRITE, &why);
	if (p == NULL)
		return why;
	if ((uintptr_t)p % sizeof(*p) != 0)
		return "the memory behind the address is not aligned to 8 bytes";
	if (vrb_pkt_read(pkt, 0, &value, sizeof(value)) < 0 || vrb_guard_store(p, value) < 0)
		return "the memory behind the memory region is no longer mapped";
	return NULL;
}

static bool
atomic_request(struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	struct vrb_responder *resp = &qp->resp;
	struct vrb_resp_op *op = new_op(qp);
	bool write = pkt->opcode == VRB_RC_ATOMIC_WRITE;
	struct vrb_atomic_saved *saved;
	uint8_t syndrome;
	const char *why;
	uint64_t orig = 0;

	if (op == NULL) {
		vrb_resp_refuse(qp, VRB_NAK_INV_REQ, pkt->psn, pkt->info->name,
			"more READs and atomics are in flight than max_dest_rd_atomic of the queue "
			"pair allows");
		return false;
	}
	why = write ? execute_write(qp, pkt, &syndrome) : execute_atomic(qp, pkt, &orig, &syndrome);
	if (why != NULL) {
		vrb_resp_refuse(qp, syndrome, pkt->psn, pkt->info->name, why);
		return false;
	}
	resp->msn = vrb_psn_add(resp->msn, 1);
	saved = &resp->saved[resp->saved_next];
	saved->psn = pkt->psn;
	saved->orig = orig;
	saved->write = write;
	saved->valid = true;
	resp->saved_next = (resp->saved_next + 1) % resp->saved_num;
	if (write)
		queue_write_ack(qp, op, pkt->psn);
	else
		queue_atomic_ack(qp, op, pkt->psn, orig);
	return true;
}

/* ---- duplicates and gaps ---- */

/** IBTA 9.7.5.1.4: a duplicate READ is executed again. */
static void
duplicate_read(struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	struct vrb_responder *resp = &qp->resp;
	struct vrb_resp_op *op, tmp;
	uint8_t syndrome;
	uint32_t i;

	if (parse_read(qp, pkt, &tmp, &syndrome) != NULL)
		return; /* it was good once; now it only makes noise */
	if (vrb_psn_diff(tmp.last_psn, resp->epsn) >= 0)
		return; /* not a duplicate of anything */
	for (i = resp->ops_tail; i != resp->ops_head; i++) {
		op = &resp->ops[i & resp->ops_mask];
		/* Still to be sent as a whole, and nothing has been sent behind it. */
		if (op->first_psn == tmp.first_psn && op->last_psn == tmp.last_psn) {
			op->psn = op->first_psn;
			return;
		}
	}
	op = new_op_again(qp);
	if (op == NULL)
		return; /* the peer will ask again */
	tmp.msn = resp->msn;
	tmp.again = true;
	*op = tmp;
	queue_op(qp);
}

/** IBTA 9.7.5.1.5: a duplicate atomic is answered from the saved result, never executed again. */
static void
duplicate_atomic(struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	struct vrb_responder *resp = &qp->resp;
	struct vrb_resp_op *op;
	uint32_t i;

	for (i = resp->ops_tail; i != resp->ops_head; i++) {
		if (resp->ops[i & resp->ops_mask].first_psn == pkt->psn)
			return; /* its answer is still to be sent */
	}
	for (i = 0; i < resp->saved_num; i++) {
		if (!resp->saved[i].valid || resp->saved[i].psn != pkt->psn)
			continue;
		op = new_op_again(qp);
		if (op != NULL && resp->saved[i].write)
			queue_write_ack(qp, op, pkt->psn);
		else if (op != NULL)
			queue_atomic_ack(qp, op, pkt->psn, resp->saved[i].orig);
		return;
	}
}

static void
duplicate(struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	qp->engine->stats.rx_duplicate++;
	if (pkt->info->flags & VRB_OP_READ)
		duplicate_read(qp, pkt);
	else if (pkt->info->flags & VRB_OP_ATOMIC)
		duplicate_atomic(qp, pkt);
	else
		/* IBTA 9.7.5.1.2: with the newest PSN, not the duplicate's. */
		acknowledge(qp, vrb_psn_add(qp->resp.epsn, VRB_PSN_MASK));
}

static void
out_of_order(struct vrb_qp *qp)
{
	qp->engine->stats.rx_out_of_order++;
	/* IBTA 9.7.5.2.7: once, then silence until the expected packet comes. */
	if (qp->resp.nak_sent)
		return;
	qp->resp.nak_sent = true;
	qp->engine->stats.tx_nak_seq++;
	nak(qp, VRB_NAK_PSN_SEQ, qp->resp.epsn);
}

bool
vrb_resp_in_sequence(const struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	if (qp->resp.in_msg == 0)
		return pkt->info->flags & VRB_OP_FIRST;
	return (pkt->info->flags & (VRB_OP_FIRST | qp->resp.in_msg)) == qp->resp.in_msg;
}

/** XRC: the request names the SRQ that it is for, and by it the protection domain and the CQ (IBTA
 * A14.3.2). */
static bool
find_xrc_srq(struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	struct vrb_srq *srq = qp->xrcd != NULL ? vrb_srq_find(qp->engine, pkt->srqn) : NULL;

	if (srq == NULL || srq->xrcd != qp->xrcd) {
		vrb_resp_refuse(qp, VRB_NAK_INV_REQ, pkt->psn, pkt->info->name,
			"it names no XRC shared receive queue of the target's domain");
		return false;
	}
	if (qp->resp.in_msg != 0 && srq != qp->srq) {
		vrb_resp_refuse(qp, VRB_NAK_INV_REQ, pkt->psn, pkt->info->name,
			"it names another shared receive queue than the packet before it");
		return false;
	}
	qp->srq = srq;
	qp->rq = &srq->rq;
	qp->pd = srq->pd;
	qp->recv_cq = srq->cq;
	return true;
}

void
vrb_resp_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	struct vrb_responder *resp = &qp->resp;
	int32_t ahead = vrb_psn_diff(pkt->psn, resp->epsn);
	bool done;

	if (unlikely(ahead != 0)) {
		if (ahead < 0)
			duplicate(qp, pkt);
		else
			out_of_order(qp);
		return;
	}
	/* IBTA 11.6.3.1: the program may not have moved to RTS yet; it can be told that the peer
	 * has. */
	if (unlikely(!qp->comm_est && vrb_qp_get_state(qp) == VRB_QPS_RTR)) {
		qp->comm_est = true;
		vrb_board_put_qp(qp);
		vrb_engine_async(qp->engine, VRB_EVENT_COMM_EST, qp->user);
	}
	if (unlikely(qp->transport == VRB_TRANSPORT_XRC) && !find_xrc_srq(qp, pkt))
		return;
	if (unlikely(!vrb_resp_in_sequence(qp, pkt))) {
		vrb_resp_refuse(qp, VRB_NAK_INV_REQ, pkt->psn, pkt->info->name,
			"it does not follow the packet before it");
		return;
	}
	if (pkt->info->flags & VRB_OP_READ)
		done = read_request(qp, pkt);
	else if (pkt->info->flags & VRB_OP_ATOMIC)
		done = atomic_request(qp, pkt);
	else
		done = vrb_resp_data(qp, pkt);
	if (!done)
		return;
	resp->epsn = vrb_psn_add(resp->epsn, 1);
	resp->nak_sent = false;
	if (pkt->ackreq && !(pkt->info->flags & (VRB_OP_READ | VRB_OP_ATOMIC)))
		acknowledge(qp, pkt->psn);
}
