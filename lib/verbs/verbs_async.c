/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engine tells: completion notifications and asynchronous events go into the event queues
 * of those whom they concern, explanations into the log. And how a program takes asynchronous
 * events.
 */
#include <errno.h>

#include "verbs_raw.h"

static void
notify_cq(void *arg, struct vrb_cq *cq)
{
	struct vrb_vcq *vcq = cq->user;

	if (vcq->ibv.channel)
		vrb_evq_post(&vrb_to_channel(vcq->ibv.channel)->evq, &vcq->comp);
}

static void
post_event(struct ibv_context *context, struct vrb_event *events, int n, enum vrb_event_type type)
{
	int i;

	for (i = 0; i < n; i++)
		if (events[i].type == (int)type)
			vrb_evq_post(&vrb_to_ctx(context)->async, &events[i]);
}

static void
async_event(void *arg, enum vrb_event_type type, void *obj)
{
	struct vrb_vcq *cq = obj;
	struct vrb_vsrq *srq = obj;
	struct vrb_vwq *wq = obj;
	struct vrb_vqp *qp = obj, *handle = qp;

	switch (type) {
	case VRB_EVENT_CQ_ERR:
		post_event(cq->ibv.context, &cq->err, 1, type);
		break;
	case VRB_EVENT_SRQ_ERR:
	case VRB_EVENT_SRQ_LIMIT_REACHED:
		post_event(srq->ibv.context, srq->events, VRB_SRQ_EVENTS, type);
		break;
	case VRB_EVENT_WQ_FATAL:
		post_event(wq->ibv.context, &wq->fatal, 1, type);
		break;
	case VRB_EVENT_QP_FATAL:
	case VRB_EVENT_QP_REQ_ERR:
	case VRB_EVENT_QP_ACCESS_ERR:
	case VRB_EVENT_COMM_EST:
	case VRB_EVENT_SQ_DRAINED:
	case VRB_EVENT_QP_LAST_WQE_REACHED:
		do {
			post_event(
				handle->ibv.qp_base.context, handle->events, VRB_QP_EVENTS, type);
			handle = handle->next_handle;
		} while (handle != qp);
		break;
	case VRB_EVENT_DEVICE_FATAL:
	case VRB_EVENT_PORT_ACTIVE:
	case VRB_EVENT_PORT_ERR:
		vrb_contexts_event(type);
		break;
	}
}

static void
explain(void *arg, const char *sentence)
{
	vrb_log_explain("%s", sentence);
}

const struct vrb_engine_ops vrb_verbs_engine_ops = {
	.cq_notify = notify_cq,
	.async = async_event,
};

const struct vrb_engine_ops vrb_verbs_engine_ops_explain = {
	.cq_notify = notify_cq,
	.async = async_event,
	.explain = explain,
};

int
ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event)
{
	struct vrb_event *e;

	if (unlikely(vrb_forked))
		return vrb_fail_minus1(
			ENODEV, "the device belongs to the process that this one was forked from");
	e = vrb_evq_get(&vrb_to_ctx(context)->async);
	if (!e)
		return -1;
	event->event_type = (enum ibv_event_type)e->type;
	if (e->obj)
		event->element.qp = e->obj; /* a pointer to any of the objects */
	else
		event->element.port_num = 1;
	return 0;
}

static void
ack(pthread_mutex_t *mutex, pthread_cond_t *cond, uint32_t *completed)
{
	pthread_mutex_lock(mutex);
	++*completed;
	pthread_cond_signal(cond);
	pthread_mutex_unlock(mutex);
}

void
ibv_ack_async_event(struct ibv_async_event *event)
{
	struct ibv_cq *cq = event->element.cq;
	struct ibv_qp *qp = event->element.qp;
	struct ibv_srq *srq = event->element.srq;
	struct ibv_wq *wq = event->element.wq;

	switch (event->event_type) {
	case IBV_EVENT_WQ_FATAL:
		ack(&wq->mutex, &wq->cond, &wq->events_completed);
		break;
	case IBV_EVENT_CQ_ERR:
		ack(&cq->mutex, &cq->cond, &cq->async_events_completed);
		break;
	case IBV_EVENT_SRQ_ERR:
	case IBV_EVENT_SRQ_LIMIT_REACHED:
		ack(&srq->mutex, &srq->cond, &srq->events_completed);
		break;
	case IBV_EVENT_QP_FATAL:
	case IBV_EVENT_QP_REQ_ERR:
	case IBV_EVENT_QP_ACCESS_ERR:
	case IBV_EVENT_COMM_EST:
	case IBV_EVENT_SQ_DRAINED:
	case IBV_EVENT_PATH_MIG:
	case IBV_EVENT_PATH_MIG_ERR:
	case IBV_EVENT_QP_LAST_WQE_REACHED:
		ack(&qp->mutex, &qp->cond, &qp->events_completed);
		break;
	default: /* of the port or the device: nobody waits */
		break;
	}
}
