/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "backend.h"
#include "commands.h"
#include "post.h"
#include "traffic.h"

static int
cq_create(const struct tp_call *call)
{
	struct tp_cq *cq = tp_object_new(TP_CQ, tp_num(call, "cq", 0), sizeof(*cq));
	int rc;

	if (cq == NULL)
		return tp_refuse_memory(TP_CQ, -ENOMEM);
	tp_lock();
	rc = vrb_cq_create(tp_engine(), tp_num(call, "size", 1024), cq, &cq->cq);
	tp_unlock();
	if (rc < 0) {
		tp_object_free(&cq->obj);
		return tp_refuse_memory(TP_CQ, rc);
	}
	return 0;
}

static int
cq_resize(const struct tp_call *call)
{
	struct tp_cq *cq = tp_object_arg(call, "cq", TP_CQ);
	uint32_t size = tp_num(call, "size", 0), waits;
	int rc;

	tp_lock();
	waits = tp_cq_count(cq->cq);
	rc = vrb_cq_resize(tp_engine(), cq->cq, size);
	tp_unlock();
	if (rc == -EINVAL)
		return tp_refuse(rc, "%s wait in cq %u, more than %u: cq poll %u takes them",
			tp_plural(waits, "completion"), cq->obj.id, size, cq->obj.id);
	if (rc == -EIO)
		return tp_refuse(
			rc, "cq %u has overflowed, and takes no more completions", cq->obj.id);
	return rc < 0 ? tp_refuse_memory(TP_CQ, rc) : 0;
}

static int
cq_arm(const struct tp_call *call)
{
	struct tp_cq *cq = tp_object_arg(call, "cq", TP_CQ);

	tp_lock();
	vrb_cq_arm(cq->cq, tp_num(call, "solicited", 0));
	tp_unlock();
	return 0;
}

static void
print_completion(const struct tp_cq *cq, const struct vrb_cqe *cqe)
{
	const struct tp_obj *obj = cqe->qp_user;
	static const char *const opcodes[] = {
		"send", "write", "read", "compare-swap", "fetch-add", "bind-window", "invalidate"};

	tp_row("completion", "cq %u", cq->obj.id);
	if (obj != NULL)
		tp_row(tp_kind_name(obj->kind), "%u", obj->id);
	tp_row("opcode", "%s",
		cqe->wr_id & TP_WR_RECV		 ? "receive"
		: cqe->opcode < RTE_DIM(opcodes) ? opcodes[cqe->opcode]
						 : "unknown");
	tp_row("status", "\"%s\"", tp_status_name(cqe->status));
	if (cqe->wr_id & TP_WR_RECV)
		tp_row("bytes", "%u", cqe->byte_len);
	tp_row_end();
}

static int
cq_poll(const struct tp_call *call)
{
	struct tp_cq *cq = tp_object_arg(call, "cq", TP_CQ);
	uint32_t max = tp_num(call, "count", 1), n;
	struct vrb_cqe cqe;
	int rc = tp_refuse_traffic(&cq->obj);

	if (rc < 0)
		return rc;
	tp_progress();
	for (n = 0; n < max && tp_cq_take(cq, &cqe, 1) == 1; n++) {
		print_completion(cq, &cqe);
		if (cqe.qp_user != NULL && cqe.wr_id & TP_WR_RECV)
			tp_buffers_put(tp_buffers_of(cqe.qp_user), cqe.wr_id & TP_WR_INDEX);
	}
	tp_print("taken %u\n", n);
	return 0;
}

static void
show(struct tp_obj *obj)
{
	static const char *const armed[] = {"no", "solicited", "any"};
	struct tp_cq *cq = (struct tp_cq *)obj;

	tp_lock();
	tp_row("cq", "%u", obj->id);
	tp_row("size", "%u", cq->cq->size);
	tp_row("waiting", "%u", tp_cq_count(cq->cq));
	tp_row("taken", "%" PRIu64, atomic_load(&cq->taken));
	tp_row("armed", "%s", armed[cq->cq->armed]);
	tp_row("notified", "%" PRIu64, atomic_load(&cq->notified));
	tp_row("overrun", "%s", cq->cq->overrun ? "yes" : "no");
	tp_row("used-by", "%u", cq->cq->refs);
	tp_row_end();
	tp_unlock();
}

static int
cq_show(const struct tp_call *call)
{
	return tp_show(call, TP_CQ, show);
}

int
tp_cq_destroy(struct tp_cq *cq)
{
	uint32_t refs = cq->cq->refs;
	int rc;

	tp_lock();
	rc = vrb_cq_destroy(tp_engine(), cq->cq);
	tp_unlock();
	if (rc < 0)
		return tp_refuse_busy(&cq->obj, refs, "queue");
	tp_object_free(&cq->obj);
	return 0;
}

static int
cq_destroy(const struct tp_call *call)
{
	return tp_cq_destroy(tp_object_arg(call, "cq", TP_CQ));
}

#define CQ_ARG \
	{ \
		.name = "cq", .type = TP_ID, .object = TP_CQ, .help = "a completion queue" \
	}

static const struct tp_arg create_args[] = {
	{.name = "cq", .type = TP_NEW_ID, .object = TP_CQ, .help = "its number"},
	{.name = "size",
		.type = TP_NUM,
		.min = 1,
		.max = VRB_MAX_CQE,
		.help = "completions that it holds at least; 1024"},
	{NULL},
};
static const struct tp_arg resize_args[] = {
	CQ_ARG,
	{.name = "size",
		.type = TP_NUM,
		.min = 1,
		.max = VRB_MAX_CQE,
		.help = "completions that it shall hold"},
	{NULL},
};
static const struct tp_arg arm_args[] = {
	CQ_ARG,
	{.name = "solicited",
		.type = TP_CHOICE,
		.words = tp_on_off,
		.help = "on: only for solicited or failed ones; off"},
	{NULL},
};
static const struct tp_arg poll_args[] = {
	CQ_ARG,
	{.name = "count", .type = TP_NUM, .min = 1, .max = 65536, .help = "how many at most; 1"},
	{NULL},
};
static const struct tp_arg cq_args[] = {CQ_ARG, {NULL}};

static const struct tp_cmd cmds[] = {
	{"cq create <cq>", "makes a completion queue", create_args, cq_create},
	{"cq resize <cq> <size>", "gives it another size, also while it is filled and emptied",
		resize_args, cq_resize},
	{"cq arm <cq>", "asks for one notification, which is shown as an event", arm_args, cq_arm},
	{"cq poll <cq>", "takes completions out by hand", poll_args, cq_poll},
	{"cq show", "shows all completion queues and how full they are", NULL, cq_show},
	{"cq show <cq>", "shows a completion queue", cq_args, cq_show},
	{"cq destroy <cq>", "destroys it, unless it is used", cq_args, cq_destroy},
};

const struct tp_family tp_cq_family = TP_FAMILY("cq", "completion queues", cmds);
