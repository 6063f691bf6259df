/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs that send: messages, WRITEs, READs, raw frames. A WRITE is verified by reading back, at the
 * end, what was written last; a READ against what `mr reg` and `mr fill` put into memory; a message
 * by the sink that receives it.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "backend.h"
#include "cli.h"
#include "pattern.h"
#include "post.h"
#include "traffic.h"

static uint8_t *
slot_at(const struct tp_job *job, uint32_t i)
{
	return job->mem.addr + (size_t)i * job->conf.size;
}

static bool
checks_back(const struct tp_job *job)
{
	return job->conf.op == TP_OP_WRITE && job->conf.verify;
}

static int
start(struct tp_job *job)
{
	const struct tp_job_conf *c = &job->conf;
	size_t slots = (size_t)c->depth * (checks_back(job) ? 2 : 1);
	uint32_t access = c->op == TP_OP_READ || checks_back(job) ? VRB_ACCESS_LOCAL_WRITE : 0;

	job->numbers = calloc(c->depth, sizeof(*job->numbers));
	if (job->numbers == NULL)
		return tp_refuse(-ENOMEM, "there is no memory");
	return tp_mem_alloc(&job->mem, slots * c->size, access);
}

static void
fill(struct tp_job *job, uint8_t *buf, uint64_t number)
{
	const struct tp_job_conf *c = &job->conf;

	if (c->qp->type == VRB_QPT_RAW_PACKET)
		tp_frame_fill(buf, c->size, c, number);
	else if (c->op != TP_OP_READ && c->verify)
		tp_message_fill(buf, c->size, number);
}

/* @return whether it was posted */
static bool
post(struct tp_job *job, const struct tp_send *send)
{
	int rc = tp_post_send(job->conf.qp, send);

	if (rc == 0)
		job->in_flight++;
	else if (rc != -ENOBUFS)
		tp_job_fail(job, "a %s cannot be posted to qp %u in state %s: %s",
			tp_op_name(job->conf.op), job->conf.qp->obj.id,
			tp_state_name(vrb_qp_state(job->conf.qp->qp)),
			rc == -E2BIG ? "the message is too long for its type" : "it is refused");
	return rc == 0;
}

static bool
post_next(struct tp_job *job)
{
	static const enum vrb_wr_opcode opcodes[] = {
		[TP_OP_SEND] = VRB_WR_SEND,
		[TP_OP_WRITE] = VRB_WR_RDMA_WRITE,
		[TP_OP_READ] = VRB_WR_RDMA_READ,
	};
	const struct tp_job_conf *c = &job->conf;
	uint32_t slot = job->posted % c->depth;
	struct tp_send send = {
		.opcode = opcodes[c->op],
		.wr_id = slot,
		.addr = slot_at(job, slot),
		.length = c->size,
		.lkey = job->mem.mr->lkey,
		.remote_addr = c->remote_addr + (uint64_t)slot * c->size,
		.rkey = c->rkey,
	};

	fill(job, slot_at(job, slot), job->posted);
	if (!post(job, &send))
		return false;
	job->numbers[slot] = job->posted++;
	return true;
}

/* How many may be posted now. */
static uint32_t
allowance(const struct tp_job *job)
{
	const struct tp_job_conf *c = &job->conf;
	uint64_t n = c->depth - job->in_flight, due;

	if (c->count > 0)
		n = RTE_MIN(n, c->count - job->posted);
	if (c->rate > 0) {
		due = (uint64_t)((tp_now() - job->began) / 1e9 * c->rate) + 1;
		n = RTE_MIN(n, due > job->posted ? due - job->posted : 0);
	}
	return n;
}

/* Reads the slots back. @return whether something was posted */
static bool
check_back(struct tp_job *job)
{
	const struct tp_job_conf *c = &job->conf;
	uint32_t used = RTE_MIN(job->posted, c->depth), before = job->checked;

	while (job->checked < used && job->in_flight < c->depth) {
		struct tp_send send = {
			.opcode = VRB_WR_RDMA_READ,
			.wr_id = TP_WR_CHECK | job->checked,
			.addr = slot_at(job, c->depth + job->checked),
			.length = c->size,
			.lkey = job->mem.mr->lkey,
			.remote_addr = c->remote_addr + (uint64_t)job->checked * c->size,
			.rkey = c->rkey,
		};

		if (!post(job, &send))
			break;
		job->checked++;
	}
	if (job->checked == used && job->in_flight == 0)
		tp_job_done(job);
	return job->checked > before;
}

static bool
step(struct tp_job *job)
{
	const struct tp_job_conf *c = &job->conf;
	bool over = tp_job_state(job) == TP_JOB_STOPS || (c->count > 0 && job->posted == c->count);
	bool any = false;

	if (over && job->checked == 0 && job->in_flight > 0)
		return false;
	if (over && checks_back(job)) {
		any = check_back(job);
	} else if (over) {
		tp_job_done(job);
	} else {
		for (uint32_t n = allowance(job); n > 0 && post_next(job); n--)
			any = true;
	}
	if (any)
		tp_kick(c->qp->qp);
	return any;
}

static void
check_slot(struct tp_job *job, uint32_t slot)
{
	const struct tp_job_conf *c = &job->conf;
	ssize_t off =
		tp_message_compare(slot_at(job, c->depth + slot), c->size, job->numbers[slot]);

	if (off < 0)
		atomic_fetch_add_explicit(&job->verified, 1, memory_order_relaxed);
	else
		tp_job_fail(job,
			"what was written to %#" PRIx64
			" is not there: byte %zd of message %" PRIu64 " differs",
			c->remote_addr + (uint64_t)slot * c->size, off, job->numbers[slot]);
}

static bool
check_read(struct tp_job *job, uint32_t slot)
{
	const struct tp_job_conf *c = &job->conf;
	uint64_t addr = c->remote_addr + (uint64_t)slot * c->size;
	ssize_t off = tp_memory_compare(slot_at(job, slot), c->size, addr);

	if (off < 0)
		return true;
	tp_job_fail(job,
		"what was read at %#" PRIx64
		" is not what mr reg put there; was it written to since? "
		"(mr fill puts it there again; verify off reads anything)",
		addr + off);
	return false;
}

static void
complete(struct tp_job *job, struct tp_obj *obj, const struct vrb_cqe *cqe)
{
	const struct tp_job_conf *c = &job->conf;
	uint32_t slot = cqe->wr_id & TP_WR_INDEX;
	bool verified = false;

	/* The others of a queue pair in error are flushed. */
	if (tp_job_state(job) == TP_JOB_FAILED)
		return;
	if (tp_job_failed_by(job, cqe) || job->in_flight == 0)
		return;
	job->in_flight--;
	if (cqe->wr_id & TP_WR_CHECK) {
		check_slot(job, slot);
		return;
	}
	if (c->op == TP_OP_READ && c->verify) {
		verified = check_read(job, slot);
		if (!verified)
			return;
	}
	tp_job_count(job, c->size, verified);
}

const struct tp_job_ops tp_initiator_ops = {.start = start, .step = step, .complete = complete};
