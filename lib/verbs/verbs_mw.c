/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory windows: type 1, bound by a call, and type 2, bound by a work request.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs_private.h"

struct ibv_mw *
vrb_verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct vrb_ctx *ctx = vrb_to_ctx(pd->context);
	struct vrb_vmw *mw;
	int rc;

	if (type != IBV_MW_TYPE_1 && type != IBV_MW_TYPE_2)
		return vrb_fail_null(EINVAL, "type is %d; there are types 1 and 2", (int)type);
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return vrb_fail_null(ENOMEM, "there is no memory");
	rc = vrb_enter(ctx);
	if (!rc) {
		rc = vrb_mw_alloc(ctx->engine, vrb_to_pd(pd)->pd, type, &mw->mw);
		vrb_leave(ctx);
	}
	if (rc) {
		free(mw);
		return vrb_fail_null(-rc, "there can be %d regions and windows", VRB_MAX_MR);
	}
	mw->ibv.context = pd->context;
	mw->ibv.pd = pd;
	mw->ibv.rkey = mw->mw->rkey;
	mw->ibv.type = type;
	mw->ibv.handle = vrb_obj_add(ctx, VRB_KIND_MW, &mw->obj);
	return &mw->ibv;
}

int
vrb_verbs_dealloc_mw(struct ibv_mw *ibv)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_vmw *mw = vrb_to_mw(ibv);
	int rc;

	rc = vrb_enter(ctx);
	if (!rc) {
		rc = vrb_mw_free(ctx->engine, mw->mw);
		vrb_leave(ctx);
	}
	if (rc)
		return vrb_fail(-rc, "the window cannot be freed");
	vrb_obj_remove(ctx, VRB_KIND_MW, &mw->obj);
	free(mw);
	return 0;
}

void
vrb_mw_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx)
{
	struct vrb_vmw *mw = vrb_container(obj, struct vrb_vmw, obj);

	vrb_mw_free(ctx->engine, mw->mw);
	free(mw);
}

int
vrb_wqe_bind(struct vrb_send_wqe *wqe, struct ibv_mw *mw, uint32_t rkey,
	const struct ibv_mw_bind_info *info)
{
	if (!mw || (!info->mr && (info->addr || info->length)))
		return -EINVAL;
	if (info->mr && info->mr->pd != mw->pd)
		return -EPERM;
	/* IBTA 10.6.7.2.2: the key part is the program's to choose, the index is not. */
	if ((rkey ^ mw->rkey) & ~0xffu)
		return -EINVAL;
	wqe->num_sge = 0;
	wqe->length = 0;
	wqe->bind.mw = vrb_to_mw(mw)->mw;
	wqe->bind.mr = info->mr ? vrb_to_mr(info->mr)->mr : NULL;
	wqe->bind.addr = info->addr;
	wqe->bind.length = info->length;
	wqe->bind.access = info->mw_access_flags;
	wqe->bind.rkey = rkey;
	return 0;
}

/* The binding of a window of type 1 is a work request, too; the caller names no key, so it gets the
 * next one. */
int
vrb_verbs_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind)
{
	struct ibv_mw_bind_info *info = &bind->bind_info;
	struct ibv_send_wr *bad,
		wr = {
			.wr_id = bind->wr_id,
			.opcode = IBV_WR_BIND_MW,
			.send_flags = bind->send_flags,
			.bind_mw = {.mw = mw, .rkey = ibv_inc_rkey(mw->rkey), .bind_info = *info},
		};
	int rc;

	if (qp->pd != mw->pd)
		return vrb_fail(EPERM,
			"the queue pair and the window stand in different protection domains");
	if (info->mr && info->mw_access_flags & IBV_ACCESS_ZERO_BASED)
		return vrb_fail(EINVAL, "a window of type 1 cannot be zero-based");
	rc = vrb_verbs_post_send(qp, &wr, &bad);
	if (!rc)
		mw->rkey = wr.bind_mw.rkey;
	return rc;
}
