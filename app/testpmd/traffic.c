/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completions on their way to jobs, and the life of jobs.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend.h"
#include "cli.h"
#include "events.h"
#include "post.h"
#include "traffic.h"
#include "worker.h"

/* How long a job that is to end waits for what is in flight. */
#define END_NS UINT64_C(3000000000)

static struct tp_jobs jobs = TAILQ_HEAD_INITIALIZER(jobs);

struct tp_jobs *
tp_jobs(void)
{
	return &jobs;
}

const char *
tp_op_name(enum tp_op op)
{
	static const char *const names[] = {"send", "write", "read", "ping", "sink"};

	return names[op];
}

static const struct tp_job_ops *
ops_of(const struct tp_job *job)
{
	switch (job->conf.op) {
	case TP_OP_PING:
		return &tp_ping_ops;
	case TP_OP_SINK:
		return &tp_sink_ops;
	default:
		return &tp_initiator_ops;
	}
}

static void
finish(struct tp_job *job, enum tp_job_state state)
{
	job->ended = tp_now();
	atomic_store_explicit(&job->state, state, memory_order_release);
}

void
tp_job_fail(struct tp_job *job, const char *format, ...)
{
	va_list ap;

	if (tp_job_state(job) == TP_JOB_FAILED)
		return;
	va_start(ap, format);
	vsnprintf(job->trouble, sizeof(job->trouble), format, ap);
	va_end(ap);
	finish(job, TP_JOB_FAILED);
}

void
tp_job_done(struct tp_job *job)
{
	finish(job, TP_JOB_DONE);
}

bool
tp_job_failed_by(struct tp_job *job, const struct vrb_cqe *cqe)
{
	const char *reason = tp_events_reason();

	if (cqe->status == VRB_WC_SUCCESS)
		return false;
	tp_job_fail(job, "%s by qp %u failed: %s%s%s", tp_op_name(job->conf.op),
		job->conf.qp->obj.id, tp_status_name(cqe->status), *reason ? "; " : "", reason);
	return true;
}

void
tp_job_count(struct tp_job *job, uint64_t bytes, bool verified)
{
	atomic_fetch_add_explicit(&job->bytes, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&job->verified, verified, memory_order_relaxed);
	atomic_fetch_add_explicit(&job->messages, 1, memory_order_relaxed);
}

uint32_t
tp_job_headroom(const struct tp_qp *qp)
{
	return qp->type == VRB_QPT_UD ? TP_GRH_SIZE : 0;
}

/* ---- completions ---- */

static void
give_back(struct tp_obj *obj, const struct vrb_cqe *cqe)
{
	if (cqe->wr_id & TP_WR_RECV)
		tp_buffers_put(tp_buffers_of(obj), cqe->wr_id & TP_WR_INDEX);
}

static void
dispatch(const struct vrb_cqe *cqe)
{
	struct tp_obj *obj = cqe->qp_user;
	struct tp_job *job;

	if (obj == NULL)
		return;
	if (obj->kind == TP_WQ) {
		job = ((struct tp_wq *)obj)->sink;
	} else {
		struct tp_qp *qp = (struct tp_qp *)obj;

		job = cqe->wr_id & (TP_WR_RECV | TP_WR_ECHO) && qp->sink != NULL ? qp->sink
										 : qp->initiator;
	}
	if (job == NULL || job->conf.op == TP_OP_SEND || job->conf.op == TP_OP_WRITE ||
		job->conf.op == TP_OP_READ) {
		if (job == NULL || cqe->wr_id & TP_WR_RECV) {
			give_back(obj, cqe);
			return;
		}
	}
	ops_of(job)->complete(job, obj, cqe);
}

static unsigned int
take(struct tp_cq *cq)
{
	struct vrb_cqe cqes[32];
	unsigned int n;

	if (cq == NULL)
		return 0;
	n = tp_cq_take(cq, cqes, RTE_DIM(cqes));
	for (unsigned int i = 0; i < n; i++)
		dispatch(&cqes[i]);
	return n;
}

static unsigned int
take_of_job(struct tp_job *job)
{
	struct tp_qp *qp = job->conf.qp;
	unsigned int n = take(qp->send_cq);

	if (qp->recv_cq != qp->send_cq)
		n += take(qp->recv_cq);
	if (qp->ind_table != NULL)
		for (uint32_t i = 0; i < qp->ind_table->num; i++)
			n += take(qp->ind_table->wqs[i]->cq);
	return n;
}

bool
tp_jobs_work(void)
{
	struct tp_job *job;
	bool any = false;

	TAILQ_FOREACH (job, &jobs, link) {
		any |= take_of_job(job) > 0;
		if (tp_job_state(job) < TP_JOB_DONE)
			any |= ops_of(job)->step(job);
	}
	return any;
}

/* ---- jobs ---- */

static void
free_job(struct tp_job *job)
{
	tp_mem_free(&job->mem);
	free(job->numbers);
	free(job->trips);
	free(job->pending);
	free(job);
}

static void
set_sink(struct tp_qp *qp, struct tp_job *sink)
{
	qp->sink = sink;
	if (qp->ind_table != NULL)
		for (uint32_t i = 0; i < qp->ind_table->num; i++)
			qp->ind_table->wqs[i]->sink = sink;
}

int
tp_job_start(const struct tp_job_conf *conf, struct tp_job **out)
{
	struct tp_job *job = calloc(1, sizeof(*job));
	int rc;

	if (job == NULL)
		return tp_refuse(-ENOMEM, "there is no memory");
	job->conf = *conf;
	rc = tp_worker_start();
	if (rc == 0) {
		tp_events_clear_reason();
		rc = ops_of(job)->start(job);
	}
	if (rc < 0) {
		free_job(job);
		return rc;
	}
	tp_worker_lock();
	job->began = tp_now();
	if (conf->op == TP_OP_SINK)
		set_sink(conf->qp, job);
	else
		conf->qp->initiator = job;
	TAILQ_INSERT_TAIL(&jobs, job, link);
	tp_worker_unlock();
	*out = job;
	return 0;
}

void
tp_job_stop(struct tp_job *job)
{
	tp_worker_lock();
	if (tp_job_state(job) == TP_JOB_RUNS)
		atomic_store(&job->state, TP_JOB_STOPS);
	tp_worker_unlock();
}

void
tp_job_end(struct tp_job *job)
{
	static const struct timespec wait = {.tv_nsec = 200000};
	uint64_t until = tp_now() + END_NS;

	tp_job_stop(job);
	while (tp_job_state(job) < TP_JOB_DONE && tp_now() < until)
		nanosleep(&wait, NULL);
	tp_worker_lock();
	TAILQ_REMOVE(&jobs, job, link);
	if (job->conf.op == TP_OP_SINK)
		set_sink(job->conf.qp, NULL);
	else
		job->conf.qp->initiator = NULL;
	tp_worker_unlock();
	free_job(job);
}

void
tp_traffic_end(void)
{
	while (!TAILQ_EMPTY(&jobs))
		tp_job_end(TAILQ_FIRST(&jobs));
}
