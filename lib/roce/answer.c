/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder's answers: acknowledgements, responses to READs and atomics, made when it is the
 * queue pair's turn to send (IBTA 9.7.5.1, 9.7.5.2).
 */
#include <errno.h>
#include <string.h>

#include "engine.h"

/** The five credit bits of an ACK (IBTA table 45): receives that wait, rounded down. An SRQ gives
 * no credit. */
static uint32_t
credit_code(const struct vrb_qp *qp)
{
	uint32_t n, log;

	if (qp->srq != NULL || qp->rq == NULL)
		return VRB_AETH_NO_CREDITS;
	n = vrb_rq_count(qp->rq) - (qp->resp.wqe != NULL);
	if (n < 2)
		return n;
	log = rte_fls_u32(n) - 1;
	return RTE_MIN(2 * log + ((n >> (log - 1)) & 1), 30u);
}

static void
put_aeth(void *ext, uint8_t syndrome, uint32_t msn)
{
	((struct vrb_aeth *)ext)->smsn = rte_cpu_to_be_32((uint32_t)syndrome << 24 | msn);
}

static struct rte_mbuf *
make_ack(struct vrb_qp *qp)
{
	struct vrb_responder *resp = &qp->resp;
	uint8_t syndrome = resp->ack_syndrome;
	struct rte_mbuf *m;
	void *ext;

	m = vrb_pkt_begin(qp, &qp->path, VRB_RC_ACK, qp->attr.dest_qpn, resp->ack_psn, 0, &ext);
	if (unlikely(m == NULL))
		return NULL;
	if (syndrome == VRB_AETH_ACK) {
		syndrome |= credit_code(qp);
		qp->engine->stats.tx_acks++;
	}
	put_aeth(ext, syndrome, resp->msn);
	if (unlikely(vrb_pkt_end(qp->engine, &qp->path, m, 0) < 0)) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	resp->ack_pending = false;
	return m;
}

static struct rte_mbuf *
make_atomic_ack(struct vrb_qp *qp, struct vrb_resp_op *op)
{
	struct rte_mbuf *m;
	void *ext;

	m = vrb_pkt_begin(qp, &qp->path, VRB_RC_ATOMIC_ACK, qp->attr.dest_qpn, op->psn, 0, &ext);
	if (unlikely(m == NULL))
		return NULL;
	put_aeth(ext, VRB_AETH_ACK | credit_code(qp), op->msn);
	((struct vrb_atomic_ack_eth *)((uint8_t *)ext + sizeof(struct vrb_aeth)))->orig =
		rte_cpu_to_be_64(op->orig);
	if (unlikely(vrb_pkt_end(qp->engine, &qp->path, m, 0) < 0)) {
		rte_pktmbuf_free(m);
		return NULL;
	}
	return m;
}

static uint8_t
read_opcode(const struct vrb_resp_op *op)
{
	bool first = op->psn == op->first_psn, last = op->psn == op->last_psn;

	if (first)
		return last ? VRB_RC_READ_RESP_ONLY : VRB_RC_READ_RESP_FIRST;
	return last ? VRB_RC_READ_RESP_LAST : VRB_RC_READ_RESP_MIDDLE;
}

/** The region has gone between request and response. */
static void
fail_read(struct vrb_qp *qp, struct vrb_resp_op *op, const char *why)
{
	uint32_t psn = op->psn;

	/* The peer has had its answer, and may have closed the window since: no fault of anybody's.
	 */
	if (op->again) {
		qp->resp.ops_tail++;
		vrb_engine_schedule(qp);
		return;
	}
	qp->resp.ops_tail = qp->resp.ops_head;
	if (vrb_qp_get_state(qp) != VRB_QPS_ERR)
		vrb_resp_refuse(qp, VRB_NAK_REM_ACCESS, psn, "READ Request", why);
}

static struct rte_mbuf *
make_read_response(struct vrb_qp *qp, struct vrb_resp_op *op)
{
	uint32_t off = (uint32_t)vrb_psn_diff(op->psn, op->first_psn) * qp->mtu;
	uint32_t len = RTE_MIN(op->length - off, qp->mtu);
	const char *why = "the memory behind the memory region is no longer mapped";
	uint8_t opcode = read_opcode(op);
	const void *src = NULL;
	struct rte_mbuf *m;
	void *ext;
	int rc = 0;

	if (len > 0) {
		src = vrb_mr_remote(qp->engine, qp, op->pd, op->rkey, op->va + off, len,
			VRB_ACCESS_REMOTE_READ, &why);
		if (unlikely(src == NULL)) {
			fail_read(qp, op, why);
			return NULL;
		}
	}
	m = vrb_pkt_begin(qp, &qp->path, opcode, qp->attr.dest_qpn, op->psn, 0, &ext);
	if (unlikely(m == NULL))
		return NULL;
	if (opcode != VRB_RC_READ_RESP_MIDDLE)
		put_aeth(ext, VRB_AETH_ACK | credit_code(qp), op->msn);
	if (len > 0)
		rc = vrb_pkt_payload(qp->engine, m, src, len);
	if (likely(rc == 0))
		rc = vrb_pkt_end(qp->engine, &qp->path, m, len);
	if (unlikely(rc < 0)) {
		rte_pktmbuf_free(m);
		if (rc == -EFAULT)
			fail_read(qp, op, why);
		return NULL;
	}
	return m;
}

struct rte_mbuf *
vrb_resp_next(struct vrb_qp *qp)
{
	struct vrb_responder *resp = &qp->resp;
	struct vrb_resp_op *op;
	struct rte_mbuf *m;

	if (resp->ops_head == resp->ops_tail)
		return resp->ack_pending ? make_ack(qp) : NULL;
	op = &resp->ops[resp->ops_tail & resp->ops_mask];
	m = op->atomic ? make_atomic_ack(qp, op) : make_read_response(qp, op);
	/* A READ that failed has become a NAK, which scheduled the QP. */
	if (unlikely(m == NULL))
		return NULL;
	if (op->psn == op->last_psn)
		resp->ops_tail++;
	else
		op->psn = vrb_psn_add(op->psn, 1);
	return m;
}
