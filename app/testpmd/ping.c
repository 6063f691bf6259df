/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Round trips: a message, and the same back from a sink that echoes. One at a time.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "cli.h"
#include "pattern.h"
#include "post.h"
#include "traffic.h"

/* Receives that are kept posted: the answer, and one for the next. */
#define RECEIVES 2
/* How long an answer is waited for. */
#define PATIENCE_NS UINT64_C(5000000000)

static int
start(struct tp_job *job)
{
	const struct tp_job_conf *c = &job->conf;
	int rc;

	job->trips = calloc(c->count > 0 ? RTE_MIN(c->count, (uint64_t)TP_MAX_TRIPS) : TP_MAX_TRIPS,
		sizeof(*job->trips));
	if (job->trips == NULL)
		return tp_refuse(-ENOMEM, "there is no memory");
	rc = tp_job_buffers(&c->qp->obj, c->size + tp_job_headroom(c->qp), RECEIVES);
	return rc < 0 ? rc : tp_mem_alloc(&job->mem, c->size, 0);
}

static bool
step(struct tp_job *job)
{
	const struct tp_job_conf *c = &job->conf;
	bool over = tp_job_state(job) == TP_JOB_STOPS || (c->count > 0 && job->posted == c->count);
	struct tp_send send = {
		.opcode = VRB_WR_SEND,
		.addr = job->mem.addr,
		.length = c->size,
		.lkey = job->mem.mr->lkey,
	};

	if (job->in_flight > 0 || job->waits) {
		/* An answer that does not come is not waited for when the job is to end. */
		if (tp_job_state(job) == TP_JOB_STOPS && job->in_flight == 0)
			tp_job_done(job);
		else if (tp_now() - job->sent_at > PATIENCE_NS)
			tp_job_fail(job, "message %" PRIu64 " was not sent back within %d seconds",
				job->posted - 1, (int)(PATIENCE_NS / UINT64_C(1000000000)));
		return false;
	}
	if (over) {
		tp_job_done(job);
		return false;
	}
	if (c->rate > 0 && tp_now() < job->began + job->posted * 1e9 / c->rate)
		return false;
	tp_message_fill(job->mem.addr, c->size, job->posted);
	job->sent_at = tp_now();
	if (tp_post_send(c->qp, &send) < 0) {
		tp_job_fail(job, "a message cannot be posted to qp %u in state %s", c->qp->obj.id,
			tp_state_name(vrb_qp_state(c->qp->qp)));
		return false;
	}
	job->posted++;
	job->in_flight++;
	job->waits = true;
	tp_kick(c->qp->qp);
	return true;
}

static void
answer(struct tp_job *job, const struct vrb_cqe *cqe)
{
	const struct tp_job_conf *c = &job->conf;
	struct tp_buffers *b = tp_buffers_of(&c->qp->obj);
	uint32_t headroom = tp_job_headroom(c->qp), i = cqe->wr_id & TP_WR_INDEX;
	uint64_t trip = tp_now() - job->sent_at;
	bool good = cqe->byte_len == c->size + headroom &&
		    tp_message_compare(tp_buffer_at(b, i) + headroom, c->size, job->posted - 1) < 0;

	tp_buffers_put(b, i);
	tp_buffers_post(b, 1);
	if (!job->waits)
		return;
	job->waits = false;
	if (!good) {
		tp_job_fail(job, "answer %" PRIu64 " is not the message that was sent: %u bytes",
			job->posted - 1, cqe->byte_len - headroom);
		return;
	}
	if (job->num_trips < TP_MAX_TRIPS)
		job->trips[job->num_trips++] = RTE_MIN(trip, UINT32_MAX);
	tp_job_count(job, c->size, true);
}

static void
complete(struct tp_job *job, struct tp_obj *obj, const struct vrb_cqe *cqe)
{
	if (tp_job_state(job) == TP_JOB_FAILED || tp_job_failed_by(job, cqe)) {
		if (cqe->wr_id & TP_WR_RECV)
			tp_buffers_put(tp_buffers_of(obj), cqe->wr_id & TP_WR_INDEX);
		return;
	}
	if (cqe->wr_id & TP_WR_RECV)
		answer(job, cqe);
	else if (job->in_flight > 0)
		job->in_flight--;
}

const struct tp_job_ops tp_ping_ops = {.start = start, .step = step, .complete = complete};
