/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive work queue indirection tables (ibv_create_rwq_ind_table(3)).
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs_raw.h"

/* The protection domains of the work queues may differ: each is its own queue's, for its scatter
 * lists. @return 0 or an errno */
static int
check_tbl_attr(struct ibv_context *context, const struct ibv_rwq_ind_table_init_attr *attr)
{
	const char *call = "ibv_create_rwq_ind_table";
	uint32_t i;

	if (attr->comp_mask)
		return vrb_explain_call(EINVAL, call,
			"comp_mask is %#x, but no bit of it is defined", attr->comp_mask);
	if (attr->log_ind_tbl_size > 31 || 1u << attr->log_ind_tbl_size > VRB_MAX_IND_TBL_SIZE)
		return vrb_explain_call(EINVAL, call,
			"log_ind_tbl_size is %u; a table has at most %d entries",
			attr->log_ind_tbl_size, VRB_MAX_IND_TBL_SIZE);
	if (!attr->ind_tbl)
		return vrb_explain_call(EINVAL, call, "ind_tbl is NULL");
	for (i = 0; i < 1u << attr->log_ind_tbl_size; i++)
		if (!attr->ind_tbl[i] || attr->ind_tbl[i]->context != context)
			return vrb_explain_call(EINVAL, call,
				"ind_tbl[%u] is missing, or belongs to another context", i);
	return 0;
}

static int
create_in_engine(struct vrb_ctx *ctx, const struct ibv_rwq_ind_table_init_attr *attr,
	struct vrb_ind_tbl **tbl)
{
	uint32_t size = 1u << attr->log_ind_tbl_size, i;
	struct vrb_wq **wqs = calloc(size, sizeof(*wqs));
	int rc;

	if (!wqs)
		return -ENOMEM;
	for (i = 0; i < size; i++)
		wqs[i] = vrb_to_wq(attr->ind_tbl[i])->wq;
	rc = vrb_enter(ctx);
	if (!rc) {
		rc = vrb_ind_tbl_create(ctx->engine, wqs, size, tbl);
		vrb_leave(ctx);
	}
	free(wqs);
	return rc;
}

struct ibv_rwq_ind_table *
vrb_verbs_create_rwq_ind_table(
	struct ibv_context *context, struct ibv_rwq_ind_table_init_attr *attr)
{
	struct vrb_ctx *ctx = vrb_to_ctx(context);
	struct vrb_vtbl *tbl;
	int rc;

	errno = check_tbl_attr(context, attr);
	if (errno)
		return NULL;
	tbl = calloc(1, sizeof(*tbl));
	if (!tbl)
		return vrb_fail_null(ENOMEM, "there is no memory");
	rc = create_in_engine(ctx, attr, &tbl->tbl);
	if (rc) {
		free(tbl);
		return vrb_fail_null(-rc,
			"there can be %d indirection tables, as far as there is memory",
			VRB_MAX_IND_TBL);
	}
	tbl->ibv.context = context;
	tbl->ibv.ind_tbl_num = (int)tbl->tbl->num;
	tbl->ibv.ind_tbl_handle = (int)vrb_obj_add(ctx, VRB_KIND_IND_TBL, &tbl->obj);
	return &tbl->ibv;
}

int
vrb_verbs_destroy_rwq_ind_table(struct ibv_rwq_ind_table *ibv)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_vtbl *tbl = vrb_to_tbl(ibv);
	int rc;

	rc = vrb_enter(ctx);
	if (!rc) {
		rc = vrb_ind_tbl_destroy(tbl->tbl);
		vrb_leave(ctx);
	}
	if (rc)
		return vrb_fail(-rc, "a queue pair uses the table; destroy it first");
	vrb_obj_remove(ctx, VRB_KIND_IND_TBL, &tbl->obj);
	free(tbl);
	return 0;
}

void
vrb_ind_tbl_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx)
{
	struct vrb_vtbl *tbl = vrb_container(obj, struct vrb_vtbl, obj);

	vrb_ind_tbl_destroy(tbl->tbl);
	free(tbl);
}
