/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs that receive: they keep receives posted, verify what comes, and may send it back.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "backend.h"
#include "cli.h"
#include "pattern.h"
#include "post.h"
#include "traffic.h"

int
tp_job_buffers(struct tp_obj *obj, uint32_t size, uint32_t depth)
{
	struct tp_buffers *b = tp_buffers_of(obj);
	struct tp_qp *qp = (struct tp_qp *)obj;
	struct vrb_rq *rq;
	uint32_t num;
	int rc;

	if (obj->kind == TP_WQ) {
		rq = &((struct tp_wq *)obj)->wq->rq;
		num = rq->max_wr;
	} else if (obj->kind == TP_SRQ || qp->srq != NULL) {
		rq = obj->kind == TP_SRQ ? &((struct tp_srq *)obj)->srq->rq : &qp->srq->srq->rq;
		num = VRB_MAX_SRQ_WR; /* it may grow */
	} else {
		rq = vrb_qp_rq(qp->qp);
		num = rq->max_wr;
	}
	if (b->num > 0 && b->size < size) {
		if (b->num_free < b->num)
			return tp_refuse(-EBUSY,
				"receives of %u bytes are posted already, and %u are needed",
				b->size, size);
		tp_buffers_free(b);
	}
	rc = tp_buffers_make(b, rq, num, size);
	if (rc == 0)
		tp_buffers_post(b, depth);
	return rc;
}

static int
start(struct tp_job *job)
{
	const struct tp_job_conf *c = &job->conf;
	struct tp_ind_table *t = c->qp->ind_table;
	int rc = 0;

	if (c->echo) {
		job->pending = calloc(VRB_MAX_SRQ_WR, sizeof(*job->pending));
		job->numbers = calloc(VRB_MAX_SRQ_WR, sizeof(*job->numbers));
		if (job->pending == NULL || job->numbers == NULL)
			return tp_refuse(-ENOMEM, "there is no memory");
	}
	if (t == NULL)
		return tp_job_buffers(&c->qp->obj, c->size + tp_job_headroom(c->qp), c->depth);
	for (uint32_t i = 0; i < t->num && rc == 0; i++)
		if (vrb_rq_count(&t->wqs[i]->wq->rq) < c->depth)
			rc = tp_job_buffers(&t->wqs[i]->obj, c->size,
				c->depth - vrb_rq_count(&t->wqs[i]->wq->rq));
	return rc;
}

/* @return whether it was posted */
static bool
echo(struct tp_job *job, uint32_t i)
{
	struct tp_qp *qp = job->conf.qp;
	struct tp_buffers *b = tp_buffers_of(&qp->obj);
	struct tp_send send = {
		.opcode = VRB_WR_SEND,
		.wr_id = TP_WR_ECHO | i,
		.addr = tp_buffer_at(b, i) + tp_job_headroom(qp),
		.length = job->numbers[i],
		.lkey = b->mem.mr->lkey,
	};
	int rc = tp_post_send(qp, &send);

	if (rc != 0 && rc != -ENOBUFS)
		tp_job_fail(job, "an answer cannot be posted to qp %u in state %s", qp->obj.id,
			tp_state_name(vrb_qp_state(qp->qp)));
	return rc == 0;
}

static bool
step(struct tp_job *job)
{
	uint32_t n;

	if (tp_job_state(job) == TP_JOB_STOPS) {
		tp_job_done(job);
		return false;
	}
	/* Oldest first: answers keep the order of the messages. */
	for (n = 0; n < job->num_pending && echo(job, job->pending[n]); n++)
		;
	if (n == 0)
		return false;
	job->num_pending -= n;
	for (uint32_t i = 0; i < job->num_pending; i++)
		job->pending[i] = job->pending[n + i];
	tp_kick(job->conf.qp->qp);
	return true;
}

static void
repost(struct tp_job *job, struct tp_obj *obj, uint32_t i)
{
	struct tp_buffers *b = tp_buffers_of(obj);

	tp_buffers_put(b, i);
	if (tp_job_state(job) == TP_JOB_RUNS)
		tp_buffers_post(b, 1);
}

/* @return whether it could be verified */
static bool
verify(struct tp_job *job, const uint8_t *buf, uint32_t len)
{
	uint64_t number;

	switch (tp_message_check(buf, len, &number)) {
	case TP_MESSAGE_UNKNOWN:
		return false;
	case TP_MESSAGE_BAD:
		tp_job_fail(job,
			"message %" PRIu64
			" of qp %u has other data than was sent, from byte %zd on",
			number, job->conf.qp->obj.id, tp_message_compare(buf, len, number));
		return false;
	case TP_MESSAGE_GOOD:
		break;
	}
	/* Number 0: the sender has begun anew. */
	if (job->expects && number > job->expected)
		atomic_fetch_add_explicit(
			&job->missing, number - job->expected, memory_order_relaxed);
	if (job->expects && number < job->expected && number != 0)
		tp_job_fail(job, "message %" PRIu64 " of qp %u came when %" PRIu64 " was due",
			number, job->conf.qp->obj.id, job->expected);
	job->expected = number + 1;
	job->expects = true;
	return true;
}

static void
receive(struct tp_job *job, struct tp_obj *obj, const struct vrb_cqe *cqe)
{
	const struct tp_job_conf *c = &job->conf;
	struct tp_buffers *b = tp_buffers_of(obj);
	uint32_t headroom = tp_job_headroom(c->qp), i = cqe->wr_id & TP_WR_INDEX;
	uint32_t len = cqe->byte_len - RTE_MIN(headroom, cqe->byte_len);
	/* Frames of one queue pair are spread over many queues, and have no order. */
	bool ordered = c->verify && c->qp->type != VRB_QPT_RAW_PACKET;
	bool good = ordered && verify(job, tp_buffer_at(b, i) + headroom, len);

	tp_job_count(job, len, good);
	if (obj->kind == TP_WQ) {
		struct tp_wq *wq = (struct tp_wq *)obj;

		atomic_fetch_add_explicit(&wq->frames, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&wq->bytes, len, memory_order_relaxed);
	}
	if (!c->echo) {
		repost(job, obj, i);
		return;
	}
	job->numbers[i] = len;
	job->pending[job->num_pending++] = i;
}

static void
complete(struct tp_job *job, struct tp_obj *obj, const struct vrb_cqe *cqe)
{
	uint32_t i = cqe->wr_id & TP_WR_INDEX;

	if (tp_job_state(job) == TP_JOB_FAILED || tp_job_failed_by(job, cqe)) {
		tp_buffers_put(tp_buffers_of(obj), i);
		return;
	}
	/* An answer has gone: its buffer is free again. */
	if (cqe->wr_id & TP_WR_ECHO)
		repost(job, obj, i);
	else
		receive(job, obj, cqe);
}

const struct tp_job_ops tp_sink_ops = {.start = start, .step = step, .complete = complete};
