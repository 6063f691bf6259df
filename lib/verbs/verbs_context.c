/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contexts: opening and closing the device, what lives in a context, and what it reports of itself,
 * its port and their tables.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "verbs_private.h"

static TAILQ_HEAD(, vrb_ctx) contexts = TAILQ_HEAD_INITIALIZER(contexts); /* under the baton */

static void
fill_ops(struct verbs_context *v)
{
	struct ibv_context_ops *ops = &v->context.ops;

	vrb_ops_unsupported(v);
	ops->alloc_mw = vrb_verbs_alloc_mw;
	ops->bind_mw = vrb_verbs_bind_mw;
	ops->dealloc_mw = vrb_verbs_dealloc_mw;
	ops->poll_cq = vrb_verbs_poll_cq;
	ops->req_notify_cq = vrb_verbs_req_notify_cq;
	ops->post_srq_recv = vrb_verbs_post_srq_recv;
	ops->post_send = vrb_verbs_post_send;
	ops->post_recv = vrb_verbs_post_recv;
	ops->_compat_query_port = ibv_query_port;
	v->query_port = vrb_verbs_query_port;
	v->query_device_ex = vrb_verbs_query_device_ex;
	v->query_rt_values = vrb_verbs_query_rt_values;
	v->create_cq_ex = vrb_verbs_create_cq_ex;
	v->modify_cq = vrb_verbs_modify_cq;
	v->create_srq_ex = vrb_verbs_create_srq_ex;
	v->get_srq_num = vrb_verbs_get_srq_num;
	v->create_qp_ex = vrb_verbs_create_qp_ex;
	vrb_raw_ops(v);
	vrb_parent_ops(v);
	vrb_dm_ops(v);
	v->open_qp = vrb_verbs_open_qp;
	v->open_xrcd = vrb_verbs_open_xrcd;
	v->close_xrcd = vrb_verbs_close_xrcd;
	v->sz = sizeof(*v);
	v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
}

/*
 * Programs duplicate and pass on cmd_fd, which is the kernel's device on hardware. There is no
 * such device here; so it is a descriptor that does nothing.
 */
static int
make_fds(struct vrb_ctx *ctx)
{
	int rc;

	ctx->v.context.cmd_fd = eventfd(0, EFD_CLOEXEC);
	if (ctx->v.context.cmd_fd < 0)
		return -errno;
	rc = vrb_evq_init(&ctx->async);
	if (rc)
		close(ctx->v.context.cmd_fd);
	return rc;
}

struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	static const int types[VRB_CTX_EVENTS] = {
		[VRB_CTX_EV_PORT_ACTIVE] = IBV_EVENT_PORT_ACTIVE,
		[VRB_CTX_EV_PORT_ERR] = IBV_EVENT_PORT_ERR,
		[VRB_CTX_EV_DEVICE_FATAL] = IBV_EVENT_DEVICE_FATAL,
	};
	struct vrb_nic *nic;
	struct vrb_ctx *ctx;
	int i, rc;

	rc = vrb_device_nic(&nic);
	if (rc)
		return vrb_fail_null(-rc, "the device cannot be opened");
	ctx = calloc(1, sizeof(*ctx));
	if (!ctx)
		return vrb_fail_null(ENOMEM, "there is no memory");
	rc = make_fds(ctx);
	if (rc) {
		free(ctx);
		return vrb_fail_null(-rc, "a descriptor cannot be made; see ulimit -n");
	}
	for (i = 0; i < VRB_KINDS; i++)
		TAILQ_INIT(&ctx->objs[i]);
	for (i = 0; i < VRB_CTX_EVENTS; i++)
		ctx->events[i].type = types[i];
	ctx->nic = nic;
	ctx->engine = vrb_nic_engine(nic);
	fill_ops(&ctx->v);
	ctx->v.context.device = device;
	ctx->v.context.async_fd = ctx->async.fd;
	ctx->v.context.num_comp_vectors = 1;
	pthread_mutex_init(&ctx->v.context.mutex, NULL);
	vrb_nic_lock(nic);
	TAILQ_INSERT_TAIL(&contexts, ctx, link);
	vrb_nic_unlock(nic);
	return &ctx->v.context;
}

/* What the program has left behind goes as the kernel would let it go, users before what they use.
 */
static void
abandon_all(struct vrb_ctx *ctx)
{
	static void (*const abandon[VRB_KINDS])(struct vrb_obj *, struct vrb_ctx *) = {
		[VRB_KIND_FLOW] = vrb_flow_abandon,
		[VRB_KIND_COUNTERS] = vrb_counters_abandon,
		[VRB_KIND_QP] = vrb_qp_abandon,
		[VRB_KIND_IND_TBL] = vrb_ind_tbl_abandon,
		[VRB_KIND_WQ] = vrb_wq_abandon,
		[VRB_KIND_AH] = vrb_ah_abandon,
		[VRB_KIND_MW] = vrb_mw_abandon,
		[VRB_KIND_MR] = vrb_mr_abandon,
		[VRB_KIND_DM] = vrb_dm_abandon,
		[VRB_KIND_SRQ] = vrb_srq_abandon,
		[VRB_KIND_CQ] = vrb_cq_abandon,
		[VRB_KIND_XRCD] = vrb_xrcd_abandon,
		[VRB_KIND_CHANNEL] = vrb_channel_abandon,
		[VRB_KIND_PD] = vrb_pd_abandon,
		[VRB_KIND_TD] = vrb_td_abandon,
	};
	struct vrb_obj *obj;
	int i;

	for (i = 0; i < VRB_KINDS; i++)
		while ((obj = TAILQ_FIRST(&ctx->objs[i]))) {
			TAILQ_REMOVE(&ctx->objs[i], obj, link);
			abandon[i](obj, ctx);
		}
}

int
ibv_close_device(struct ibv_context *context)
{
	struct vrb_ctx *ctx = vrb_to_ctx(context);

	if (!vrb_enter(ctx)) {
		abandon_all(ctx);
		TAILQ_REMOVE(&contexts, ctx, link);
		vrb_leave(ctx);
	}
	vrb_evq_fini(&ctx->async);
	close(context->cmd_fd);
	pthread_mutex_destroy(&context->mutex);
	free(ctx);
	return 0;
}

void
vrb_contexts_event(enum vrb_event_type type)
{
	struct vrb_ctx *ctx;
	int i;

	TAILQ_FOREACH (ctx, &contexts, link)
		for (i = 0; i < VRB_CTX_EVENTS; i++)
			if (ctx->events[i].type == (int)type)
				vrb_evq_post(&ctx->async, &ctx->events[i]);
}

uint32_t
vrb_obj_add(struct vrb_ctx *ctx, enum vrb_kind kind, struct vrb_obj *obj)
{
	uint32_t handle;

	pthread_mutex_lock(&ctx->v.context.mutex);
	TAILQ_INSERT_TAIL(&ctx->objs[kind], obj, link);
	handle = ctx->next_handle++;
	pthread_mutex_unlock(&ctx->v.context.mutex);
	return handle;
}

void
vrb_obj_remove(struct vrb_ctx *ctx, enum vrb_kind kind, struct vrb_obj *obj)
{
	pthread_mutex_lock(&ctx->v.context.mutex);
	TAILQ_REMOVE(&ctx->objs[kind], obj, link);
	pthread_mutex_unlock(&ctx->v.context.mutex);
}
