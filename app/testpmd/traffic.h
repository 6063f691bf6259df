/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic: jobs that send, read, write, ping or receive by a queue pair, run by the worker, so that
 * the prompt stays free. A command that sends in the foreground starts a job and waits for it.
 *
 * The worker looks at jobs, takes completions, and calls what belongs to them, under its lock; the
 * prompt takes it when it starts or ends a job. An object that a job works on must not be destroyed
 * or reset: the commands refuse it.
 */
#ifndef TESTPMD_TRAFFIC_H
#define TESTPMD_TRAFFIC_H

#include "objects.h"

enum tp_op {
	TP_OP_SEND,
	TP_OP_WRITE,
	TP_OP_READ,
	TP_OP_PING,
	TP_OP_SINK,
};

enum tp_job_state {
	TP_JOB_RUNS,
	TP_JOB_STOPS, /* waits for what is in flight, and verifies */
	TP_JOB_DONE,
	TP_JOB_FAILED,
};

struct tp_job_conf {
	enum tp_op op;
	struct tp_qp *qp;
	uint32_t size; /* bytes of a message; sink: of the largest */
	uint32_t depth; /* messages in flight, or receives posted */
	uint64_t count; /* messages, 0: without end */
	uint64_t rate; /* messages a second, 0: as many as go */
	bool verify;
	bool echo; /* sink: sends back what it gets */
	/* WRITE and READ */
	uint64_t remote_addr;
	uint32_t rkey;
	/* SEND of raw frames */
	uint32_t flows; /* different source ports */
	uint8_t dst_mac[6], src_mac[6];
};

struct tp_job {
	TAILQ_ENTRY(tp_job) link;
	struct tp_job_conf conf;
	_Atomic int state; /* enum tp_job_state */
	/* What has completed. */
	_Atomic uint64_t messages, bytes;
	_Atomic uint64_t verified; /* of the messages */
	_Atomic uint64_t missing; /* sink: numbers that were skipped */
	uint64_t began, ended; /* ns */
	char trouble[480]; /* of TP_JOB_FAILED */
	/* The thread's. */
	uint64_t posted;
	uint32_t in_flight;
	uint32_t checked; /* WRITE: slots that were asked back */
	uint64_t expected; /* sink: the next number */
	bool expects; /* it has got one */
	bool waits; /* ping: for the answer */
	uint64_t sent_at; /* ping: ns */
	/* Memory of `depth` messages, and of a WRITE again for reading them back. */
	struct tp_mem mem;
	uint64_t
		*numbers; /* of the messages in the slots; a sink that echoes: lengths in buffers */
	/* Ping: round trips in ns, as many as there is room for. */
	uint32_t *trips;
	uint32_t num_trips;
	/* Sink that echoes: buffers that wait for room in the send queue. */
	uint32_t *pending;
	uint32_t num_pending;
};

#define TP_MAX_TRIPS UINT64_C(1000000)

/** Starts a job. @return 0, or -errno after tp_refuse() */
int tp_job_start(const struct tp_job_conf *conf, struct tp_job **job);
/** Ends it, waiting for a while for what is in flight, and frees it. */
void tp_job_end(struct tp_job *job);
/** Tells it not to begin anything new. */
void tp_job_stop(struct tp_job *job);
TAILQ_HEAD(tp_jobs, tp_job);
struct tp_jobs *tp_jobs(void);
/** Ends all jobs. */
void tp_traffic_end(void);
/** A round of the worker over all jobs. @return whether there was something to do */
bool tp_jobs_work(void);

static inline enum tp_job_state
tp_job_state(const struct tp_job *job)
{
	return (enum tp_job_state)atomic_load_explicit(&job->state, memory_order_acquire);
}

const char *tp_op_name(enum tp_op op);

/* ---- between the files of traffic, under the lock ---- */

/** One kind of job. */
struct tp_job_ops {
	/** @return 0, or -errno after tp_refuse() */
	int (*start)(struct tp_job *job);
	/** @return whether it has done something */
	bool (*step)(struct tp_job *job);
	/** A completion of its queue pair, or of a work queue of it. */
	void (*complete)(struct tp_job *job, struct tp_obj *obj, const struct vrb_cqe *cqe);
};

extern const struct tp_job_ops tp_initiator_ops, tp_ping_ops, tp_sink_ops;

void tp_job_fail(struct tp_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tp_job_done(struct tp_job *job);
/** A completion that is no success fails the job. @return whether it was one */
bool tp_job_failed_by(struct tp_job *job, const struct vrb_cqe *cqe);
/** Adds to the counters of the job. */
void tp_job_count(struct tp_job *job, uint64_t bytes, bool verified);
/** Receives of @p size for the queue pair or work queue. @return 0, or -errno after tp_refuse() */
int tp_job_buffers(struct tp_obj *obj, uint32_t size, uint32_t depth);
/** Bytes in front of a received message. */
uint32_t tp_job_headroom(const struct tp_qp *qp);

/** Makes frame @p number of a raw job. */
void tp_frame_fill(uint8_t *buf, uint32_t len, const struct tp_job_conf *conf, uint64_t number);

#endif
