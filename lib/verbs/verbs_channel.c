/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels: an event queue that completion queues share.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs_private.h"

struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *context)
{
	struct vrb_channel *ch;
	int rc;

	if (unlikely(vrb_forked))
		return vrb_fail_null(
			ENODEV, "the device belongs to the process that this one was forked from");
	ch = calloc(1, sizeof(*ch));
	if (!ch)
		return vrb_fail_null(ENOMEM, "there is no memory");
	rc = vrb_evq_init(&ch->evq);
	if (rc) {
		free(ch);
		return vrb_fail_null(-rc, "the channel's descriptor cannot be made; see ulimit -n");
	}
	ch->ibv.context = context;
	ch->ibv.fd = ch->evq.fd;
	vrb_obj_add(vrb_to_ctx(context), VRB_KIND_CHANNEL, &ch->obj);
	return &ch->ibv;
}

static void
free_channel(struct vrb_channel *ch)
{
	vrb_evq_fini(&ch->evq);
	free(ch);
}

int
ibv_destroy_comp_channel(struct ibv_comp_channel *channel)
{
	struct ibv_context *context = channel->context;
	int users;

	if (unlikely(vrb_forked))
		return vrb_fail(
			ENODEV, "the device belongs to the process that this one was forked from");
	pthread_mutex_lock(&context->mutex);
	users = channel->refcnt;
	pthread_mutex_unlock(&context->mutex);
	if (users)
		return vrb_fail(
			EBUSY, "%d completion queues use the channel; destroy them first", users);
	vrb_obj_remove(vrb_to_ctx(context), VRB_KIND_CHANNEL, &vrb_to_channel(channel)->obj);
	free_channel(vrb_to_channel(channel));
	return 0;
}

void
vrb_channel_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx)
{
	free_channel(vrb_container(obj, struct vrb_channel, obj));
}

int
ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context)
{
	struct vrb_event *e;

	if (unlikely(vrb_forked))
		return vrb_fail_minus1(
			ENODEV, "the device belongs to the process that this one was forked from");
	e = vrb_evq_get(&vrb_to_channel(channel)->evq);
	if (!e)
		return -1;
	*cq = e->obj;
	*cq_context = (*cq)->cq_context;
	return 0;
}

void
ibv_ack_cq_events(struct ibv_cq *cq, unsigned int nevents)
{
	pthread_mutex_lock(&cq->mutex);
	cq->comp_events_completed += nevents;
	pthread_cond_signal(&cq->cond);
	pthread_mutex_unlock(&cq->mutex);
}
