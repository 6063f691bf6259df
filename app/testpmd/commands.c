/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the commands share, and the list of their families.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "traffic.h"

const struct tp_family *const tp_families[] = {
	&tp_base_family,
	&tp_device_family,
	&tp_port_family,
	&tp_queue_family,
	&tp_poller_family,
	&tp_mr_family,
	&tp_cq_family,
	&tp_srq_family,
	&tp_wq_family,
	&tp_ind_table_family,
	&tp_qp_family,
	&tp_rss_family,
	&tp_flow_family,
	&tp_traffic_family,
	&tp_watch_family,
	NULL,
};

const char *const tp_on_off[] = {"off", "on", NULL};

void *
tp_object_arg(const struct tp_call *call, const char *name, enum tp_kind kind)
{
	const struct tp_value *v = tp_value(call, name);

	return v->given ? tp_object_find(kind, v->num) : NULL;
}

const char *
tp_plural(unsigned int n, const char *what)
{
	static char bufs[4][64];
	static unsigned int next;
	char *buf = bufs[next++ % RTE_DIM(bufs)];

	snprintf(buf, sizeof(bufs[0]), "%u %s%s", n, what, n == 1 ? "" : "s");
	return buf;
}

int
tp_refuse_busy(const struct tp_obj *obj, unsigned int n, const char *what)
{
	return tp_refuse(-EBUSY, "%s %u is used by %s: destroy %s first", tp_kind_name(obj->kind),
		obj->id, tp_plural(n, what), n == 1 ? "it" : "them");
}

int
tp_refuse_memory(enum tp_kind kind, int rc)
{
	return tp_refuse(rc, "no %s can be made: %s", tp_kind_title(kind), strerror(-rc));
}

int
tp_show(const struct tp_call *call, enum tp_kind kind, void (*show)(struct tp_obj *obj))
{
	struct tp_obj *obj;

	if (call->cmd->args != NULL) {
		show(tp_object_arg(call, tp_kind_name(kind), kind));
		return 0;
	}
	TAILQ_FOREACH (obj, tp_objects(kind), link)
		show(obj);
	if (TAILQ_EMPTY(tp_objects(kind)))
		tp_print("no %s\n", tp_kind_name(kind));
	return 0;
}

static bool
works_on(const struct tp_job *job, const struct tp_obj *obj)
{
	const struct tp_qp *qp = job->conf.qp;

	if (&qp->obj == obj)
		return true;
	if (obj->kind == TP_CQ && (&qp->send_cq->obj == obj || &qp->recv_cq->obj == obj))
		return true;
	if (qp->ind_table == NULL)
		return false;
	for (uint32_t i = 0; i < qp->ind_table->num; i++)
		if (&qp->ind_table->wqs[i]->obj == obj || &qp->ind_table->wqs[i]->cq->obj == obj)
			return true;
	return false;
}

struct tp_job *
tp_job_on(const struct tp_obj *obj)
{
	struct tp_job *job;

	TAILQ_FOREACH (job, tp_jobs(), link)
		if (works_on(job, obj))
			return job;
	return NULL;
}

int
tp_refuse_traffic(const struct tp_obj *obj)
{
	const struct tp_job *job = tp_job_on(obj);

	if (job == NULL)
		return 0;
	return tp_refuse(-EBUSY, "a %s of qp %u works on %s %u: %s stop %u first",
		job->conf.op == TP_OP_SINK ? "sink" : "generator", job->conf.qp->obj.id,
		tp_kind_name(obj->kind), obj->id, job->conf.op == TP_OP_SINK ? "sink" : "generator",
		job->conf.qp->obj.id);
}

static int
destroy(struct tp_obj *obj)
{
	switch (obj->kind) {
	case TP_MR:
		return tp_mr_destroy((struct tp_mr *)obj);
	case TP_CQ:
		return tp_cq_destroy((struct tp_cq *)obj);
	case TP_SRQ:
		return tp_srq_destroy((struct tp_srq *)obj);
	case TP_WQ:
		return tp_wq_destroy((struct tp_wq *)obj);
	case TP_IND_TABLE:
		return tp_ind_table_destroy((struct tp_ind_table *)obj);
	case TP_QP:
		return tp_qp_destroy((struct tp_qp *)obj);
	case TP_FLOW:
		return tp_flow_destroy((struct tp_flow *)obj);
	case TP_KINDS:
		break;
	}
	return -EINVAL;
}

void
tp_destroy_all(void)
{
	/* Who uses comes before what is used. */
	static const enum tp_kind order[] = {
		TP_FLOW, TP_QP, TP_IND_TABLE, TP_WQ, TP_SRQ, TP_CQ, TP_MR};
	struct tp_obj *obj;

	tp_traffic_end();
	tp_pollers_end();
	for (unsigned int i = 0; i < RTE_DIM(order); i++)
		while ((obj = TAILQ_FIRST(tp_objects(order[i]))) != NULL && destroy(obj) == 0)
			;
}
