/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared receive queues.
 */
#include <errno.h>
#include <inttypes.h>

#include "backend.h"
#include "commands.h"
#include "post.h"
#include "traffic.h"

#define DEFAULT_SIZE 512

static int
srq_create(const struct tp_call *call)
{
	struct tp_srq *srq = tp_object_new(TP_SRQ, tp_num(call, "srq", 0), sizeof(*srq));
	uint32_t size = tp_num(call, "size", DEFAULT_SIZE), sge = tp_num(call, "sge", 1);
	int rc;

	if (srq == NULL)
		return tp_refuse_memory(TP_SRQ, -ENOMEM);
	tp_lock();
	rc = vrb_srq_create(tp_engine(), tp_pd(), &size, &sge, srq, &srq->srq);
	tp_unlock();
	if (rc < 0) {
		tp_object_free(&srq->obj);
		return tp_refuse_memory(TP_SRQ, rc);
	}
	return 0;
}

static int
srq_modify(const struct tp_call *call)
{
	struct tp_srq *srq = tp_object_arg(call, "srq", TP_SRQ);
	uint32_t size = tp_num(call, "size", 0), limit = tp_num(call, "limit", UINT32_MAX);
	uint32_t posted, now;
	int rc;

	if (!tp_given(call, "size") && !tp_given(call, "limit"))
		return tp_refuse(-EINVAL, "nothing to modify: give size, limit, or both");
	tp_lock();
	posted = vrb_rq_count(&srq->srq->rq);
	now = srq->srq->rq.max_wr;
	rc = vrb_srq_modify(srq->srq, &size, limit);
	tp_unlock();
	if (rc != -EINVAL)
		return rc < 0 ? tp_refuse_memory(TP_SRQ, rc) : 0;
	if (tp_given(call, "size") && tp_num(call, "size", 0) < posted)
		return tp_refuse(rc, "%s are posted to srq %u; it cannot become smaller",
			tp_plural(posted, "receive"), srq->obj.id);
	return tp_refuse(
		rc, "limit %u is above the size, %" PRIu64, limit, tp_num(call, "size", now));
}

static int
srq_query(const struct tp_call *call)
{
	struct tp_srq *srq = tp_object_arg(call, "srq", TP_SRQ);

	tp_lock();
	tp_row("srq", "%u", srq->obj.id);
	tp_row("size", "%u", srq->srq->rq.max_wr);
	tp_row("sge", "%u", srq->srq->rq.max_sge);
	tp_row("limit", "%u", srq->srq->limit);
	tp_row_end();
	tp_unlock();
	return 0;
}

static int
srq_post(const struct tp_call *call)
{
	struct tp_srq *srq = tp_object_arg(call, "srq", TP_SRQ);
	uint32_t count = tp_num(call, "count", 1);
	uint32_t room = srq->srq->rq.max_wr - vrb_rq_count(&srq->srq->rq);
	int rc;

	if (count > room)
		return tp_refuse(-ENOBUFS, "srq %u has room for %s", srq->obj.id,
			tp_plural(room, "receive"));
	rc = tp_job_buffers(&srq->obj, tp_num(call, "bytes", 4096), count);
	return rc;
}

static void
show(struct tp_obj *obj)
{
	struct tp_srq *s = (struct tp_srq *)obj;

	tp_lock();
	tp_row("srq", "%u", obj->id);
	tp_row("size", "%u", s->srq->rq.max_wr);
	tp_row("posted", "%u", vrb_rq_count(&s->srq->rq));
	tp_row("limit", "%u", s->srq->limit);
	tp_row("limit-events", "%" PRIu64, atomic_load(&s->limit_events));
	tp_row("found-empty", "%" PRIu64, s->srq->dry);
	tp_row("queue-pairs", "%u", s->srq->refs);
	tp_row_end();
	tp_unlock();
}

static int
srq_show(const struct tp_call *call)
{
	return tp_show(call, TP_SRQ, show);
}

int
tp_srq_destroy(struct tp_srq *srq)
{
	uint32_t refs = srq->srq->refs;
	int rc;

	tp_lock();
	rc = vrb_srq_destroy(srq->srq);
	tp_unlock();
	if (rc < 0)
		return tp_refuse_busy(&srq->obj, refs, "queue pair");
	tp_buffers_free(&srq->buffers);
	tp_object_free(&srq->obj);
	return 0;
}

static int
srq_destroy(const struct tp_call *call)
{
	return tp_srq_destroy(tp_object_arg(call, "srq", TP_SRQ));
}

#define SRQ_ARG \
	{ \
		.name = "srq", .type = TP_ID, .object = TP_SRQ, .help = "a shared receive queue" \
	}

static const struct tp_arg create_args[] = {
	{.name = "srq", .type = TP_NEW_ID, .object = TP_SRQ, .help = "its number"},
	{.name = "size",
		.type = TP_NUM,
		.min = 1,
		.max = VRB_MAX_SRQ_WR,
		.help = "receives that fit at least; 512"},
	{.name = "sge",
		.type = TP_NUM,
		.min = 1,
		.max = VRB_MAX_SRQ_SGE,
		.help = "pieces of memory of one; 1"},
	{NULL},
};
static const struct tp_arg modify_args[] = {
	SRQ_ARG,
	{.name = "size",
		.type = TP_NUM,
		.min = 1,
		.max = VRB_MAX_SRQ_WR,
		.help = "receives that shall fit"},
	{.name = "limit",
		.type = TP_NUM,
		.max = VRB_MAX_SRQ_WR,
		.help = "low watermark: an event tells, once, that fewer are posted; 0: none"},
	{NULL},
};
static const struct tp_arg post_args[] = {
	SRQ_ARG,
	{.name = "count", .type = TP_NUM, .min = 1, .max = VRB_MAX_SRQ_WR, .help = "how many; 1"},
	{.name = "bytes",
		.type = TP_NUM,
		.min = 1,
		.max = 1 << 20,
		.help = "bytes of each, the same for all of the queue; 4096"},
	{NULL},
};
static const struct tp_arg srq_args[] = {SRQ_ARG, {NULL}};

static const struct tp_cmd cmds[] = {
	{"srq create <srq>", "makes a shared receive queue", create_args, srq_create},
	{"srq modify <srq>", "changes its size or arms its low watermark, while it is used",
		modify_args, srq_modify},
	{"srq query <srq>", "tells its attributes as ibv_query_srq does", srq_args, srq_query},
	{"srq post <srq>", "posts receives by hand", post_args, srq_post},
	{"srq show", "shows all shared receive queues and how full they are", NULL, srq_show},
	{"srq show <srq>", "shows a shared receive queue", srq_args, srq_show},
	{"srq destroy <srq>", "destroys it, unless it is used", srq_args, srq_destroy},
};

const struct tp_family tp_srq_family = TP_FAMILY("srq", "shared receive queues", cmds);
