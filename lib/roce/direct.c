/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The direct path: a requester moves the payload of a WRITE or READ itself, without the peer's
 * doing and without packets.
 *
 * A message goes directly only when everything before it has been answered, and the next one starts
 * when it is there: so order is kept with nothing to be done for it. It uses no PSN, so the
 * responder knows nothing of it. Whatever is not as it should be (a key, a range, memory that is
 * gone, a peer that has died) sends the message in packets, which give it the error it deserves.
 *
 * Messages of VRB_DIRECT_LARGE bytes and more always go this way when they can. For a small one the
 * system call takes longer than a packet and its answer, if the peer answers at once; but a peer
 * that does not poll, say because it spins on the memory that is written, has to be woken, which
 * takes tens of microseconds. So small messages go this way while
 *
 *   - packets were answered late the last times that one was sent alone, and
 *   - the program leaves more time between them than a system call takes: when it does not, it has
 *     many of them in flight, of which packets carry more.
 *
 * Both can change, so now and then some messages go in packets to see.
 */
#include <errno.h>
#include <string.h>

#include "engine.h"

/* An answer that takes so long is late. */
#define LATE_NS 5000
/* What a small message costs directly. */
#define COST_NS 3000
#define GAP_MAX_NS 1000000
/* When some were refused one after the other, so many at most go in packets without asking. */
#define REFUSED_MAX 63
/* Messages of a trial by packets; and those that go directly between two of them. */
#define TRIAL 8
#define RUN_MIN 32
#define RUN_MAX 8192
/* Messages over which times are averaged. */
#define WINDOW 128

void
vrb_direct_open(struct vrb_qp *qp)
{
	const struct vrb_engine *e = qp->engine;

	vrb_direct_close(qp);
	if (e->conf.direct == NULL || e->conf.direct_mode == VRB_DIRECT_OFF ||
		qp->init.type != VRB_QPT_RC || qp->path.loopback)
		return;
	qp->direct.peer = e->conf.direct->open(e->conf.direct_ctx, qp->attr.av.dmac);
	qp->direct.run = RUN_MIN;
}

void
vrb_direct_close(struct vrb_qp *qp)
{
	const struct vrb_engine *e = qp->engine;

	if (qp->direct.peer != NULL && e->conf.direct != NULL)
		e->conf.direct->close(e->conf.direct_ctx, qp->direct.peer);
	memset(&qp->direct, 0, sizeof(qp->direct));
}

void
vrb_direct_answered(struct vrb_qp *qp, uint64_t now)
{
	struct vrb_direct *d = &qp->direct;
	uint32_t took;

	if (vrb_psn_diff(qp->req.una, d->ask_psn) <= 0)
		return;
	d->asked = false;
	took = (uint32_t)RTE_MIN(now - d->ask_time, (uint64_t)GAP_MAX_NS);
	d->answer = d->answer == 0 ? took : (d->answer + took) / 2;
}

/** Average time from the start of one message to that of the next. */
static uint32_t
gap(const struct vrb_direct *d)
{
	return d->gaps == 0 ? 0 : (uint32_t)(d->gap_sum / d->gaps);
}

/** Small messages go the other way from now on. */
static void
turn(struct vrb_direct *d, bool small)
{
	d->small = small;
	d->count = 0;
	d->gap_sum = 0;
	d->gaps = 0;
	if (!small)
		d->answer = 0;
}

/** A message starts. */
static void
note_start(struct vrb_direct *d, uint64_t now)
{
	if (d->started != 0 && now > d->started)
		d->gap_sum += RTE_MIN(now - d->started, (uint64_t)GAP_MAX_NS);
	d->started = now;
	d->count++;
	if (++d->gaps == 2 * WINDOW) {
		d->gap_sum /= 2;
		d->gaps = WINDOW;
	}
}

/** Whether a small message that nothing is in flight before goes directly. */
static bool
small_directly(struct vrb_direct *d)
{
	if (d->small) {
		/* Look again what packets would do, more seldom each time. */
		if (d->count < d->run && (d->count < WINDOW || gap(d) > COST_NS))
			return true;
		turn(d, false);
		return false;
	}
	if (d->count < TRIAL || d->answer <= LATE_NS || gap(d) <= COST_NS)
		return false;
	/* A trial that has changed nothing. */
	d->run = d->count < WINDOW ? RTE_MIN(2 * d->run, (uint32_t)RUN_MAX) : RUN_MIN;
	turn(d, true);
	return true;
}

enum vrb_direct_choice
vrb_direct_choose(struct vrb_qp *qp, const struct vrb_send_wqe *wqe, uint64_t now)
{
	struct vrb_requester *req = &qp->req;
	struct vrb_direct *d = &qp->direct;
	bool alone = req->una == req->psn && req->psn == req->max_psn && vrb_req_rd_out(qp) == 0;

	if ((wqe->opcode != VRB_WR_RDMA_WRITE && wqe->opcode != VRB_WR_RDMA_READ) ||
		wqe->length == 0)
		return VRB_BY_PACKETS;
	note_start(d, now);
	/* A sniffer wants to see packets. */
	if (unlikely(d->refused > 0 || qp->engine->sniffed)) {
		d->refused -= d->refused > 0;
		return VRB_BY_PACKETS;
	}
	if (!alone)
		return wqe->length >= VRB_DIRECT_WAIT ? VRB_DIRECTLY_LATER : VRB_BY_PACKETS;
	if (wqe->length >= VRB_DIRECT_LARGE || qp->engine->conf.direct_mode == VRB_DIRECT_ALWAYS ||
		small_directly(d))
		return VRB_DIRECTLY;
	d->asked = true;
	d->ask_psn = req->psn;
	d->ask_time = now;
	return VRB_BY_PACKETS;
}

/** Bytes [off, off + len) of the message, as they lie in our memory. @return the number of pieces,
 * 0: an SGE is bad */
static unsigned int
gather(struct vrb_qp *qp, const struct vrb_send_wqe *wqe, uint32_t off, uint32_t len,
	struct iovec *iov)
{
	const struct vrb_sge *sge = (const struct vrb_sge *)wqe->data;
	uint32_t access = wqe->opcode == VRB_WR_RDMA_READ ? VRB_ACCESS_LOCAL_WRITE : 0, i;
	unsigned int num = 0;
	const char *why;

	if (wqe->flags & VRB_SEND_INLINE) {
		iov[0] = (struct iovec){(uint8_t *)(uintptr_t)wqe->data + off, len};
		return 1;
	}
	/* All of them, not only those of this part: nothing is moved when one is bad. */
	for (i = 0; i < wqe->num_sge; i++) {
		uint32_t n, skip = RTE_MIN(off, sge[i].length);
		uint8_t *p;

		if (sge[i].length == 0)
			continue;
		p = vrb_mr_local(
			qp->engine, qp->pd, sge[i].lkey, sge[i].addr, sge[i].length, access, &why);
		if (p == NULL)
			return 0;
		n = RTE_MIN(sge[i].length - skip, len);
		off -= skip;
		len -= n;
		if (n > 0)
			iov[num++] = (struct iovec){p + skip, n};
	}
	return num;
}

int
vrb_direct_move(struct vrb_qp *qp, const struct vrb_send_wqe *wqe)
{
	struct vrb_engine *e = qp->engine;
	struct vrb_direct *d = &qp->direct;
	struct vrb_board_req req = {
		.write = wqe->opcode == VRB_WR_RDMA_WRITE,
		.qpn = qp->attr.dest_qpn,
		.gen = d->gen,
		.src_qpn = qp->qpn,
		.sq_psn = qp->attr.sq_psn,
		.src = e->conf.gid[qp->attr.av.sgid_index],
		.rkey = wqe->rkey,
		.va = wqe->remote_addr,
		.len = wqe->length,
	};
	uint32_t left = wqe->length - d->off, n = RTE_MIN(left, e->direct_left);
	struct iovec iov[VRB_MAX_SGE];
	unsigned int num;
	int rc;

	num = gather(qp, wqe, d->off, n, iov);
	if (num == 0)
		return -EINVAL;
	rc = e->conf.direct->move(
		e->conf.direct_ctx, d->peer, &req, d->off, n, iov, num, n == left, &d->gen);
	if (rc < 0) {
		if (rc == -EAGAIN) {
			d->refused = d->refusals;
			d->refusals = RTE_MIN(2 * d->refusals + 1, (uint32_t)REFUSED_MAX);
		} else {
			vrb_direct_close(qp);
		}
		return rc;
	}
	d->refusals = 0;
	e->direct_left -= n;
	e->stats.direct_bytes += n;
	d->off += n;
	if (n < left)
		return 0;
	if (req.write)
		e->stats.direct_writes++;
	else
		e->stats.direct_reads++;
	return 1;
}
