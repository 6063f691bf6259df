/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that the device does not support and does not claim. Each one exists, and fails with
 * EOPNOTSUPP by the convention of its kind, so that a program finds a working answer wherever it
 * asks.
 */
#include <errno.h>

#include "verbs_private.h"

#define UNSUPPORTED "the device does not support it"

#define NO_POINTER(type, name, ...) \
	static type *vrb_verbs_##name(__VA_ARGS__) \
	{ \
		return vrb_fail_null(EOPNOTSUPP, UNSUPPORTED); \
	}

#define NO_INT(name, ...) \
	static int vrb_verbs_##name(__VA_ARGS__) \
	{ \
		return vrb_fail(EOPNOTSUPP, UNSUPPORTED); \
	}

NO_INT(advise_mr, struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
	struct ibv_sge *sg_list, uint32_t num_sges)
NO_POINTER(struct ibv_mr, alloc_null_mr, struct ibv_pd *pd)
NO_INT(modify_flow_action_esp, struct ibv_flow_action *action,
	struct ibv_flow_action_esp_attr *attr)
NO_INT(destroy_flow_action, struct ibv_flow_action *action)
NO_POINTER(struct ibv_flow_action, create_flow_action_esp, struct ibv_context *context,
	struct ibv_flow_action_esp_attr *attr)
NO_INT(modify_qp_rate_limit, struct ibv_qp *qp, struct ibv_qp_rate_limit_attr *attr)

static int
vrb_verbs_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *op, struct ibv_ops_wr **bad_op)
{
	*bad_op = op;
	return vrb_fail(EOPNOTSUPP, UNSUPPORTED);
}

/* Slots of libibverbs 1.0: nothing calls them since there are functions of those names. */
static int
compat_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	return ibv_query_device(context, attr);
}

static void *
compat_slot(void)
{
	errno = ENOSYS;
	return NULL;
}

static void
fill_compat_slots(struct ibv_context_ops *ops)
{
	ops->_compat_query_device = compat_query_device;
	ops->_compat_alloc_pd = compat_slot;
	ops->_compat_dealloc_pd = compat_slot;
	ops->_compat_reg_mr = compat_slot;
	ops->_compat_rereg_mr = compat_slot;
	ops->_compat_dereg_mr = compat_slot;
	ops->_compat_create_cq = compat_slot;
	ops->_compat_cq_event = compat_slot;
	ops->_compat_resize_cq = compat_slot;
	ops->_compat_destroy_cq = compat_slot;
	ops->_compat_create_srq = compat_slot;
	ops->_compat_modify_srq = compat_slot;
	ops->_compat_query_srq = compat_slot;
	ops->_compat_destroy_srq = compat_slot;
	ops->_compat_create_qp = compat_slot;
	ops->_compat_query_qp = compat_slot;
	ops->_compat_modify_qp = compat_slot;
	ops->_compat_destroy_qp = compat_slot;
	ops->_compat_create_ah = compat_slot;
	ops->_compat_destroy_ah = compat_slot;
	ops->_compat_attach_mcast = compat_slot;
	ops->_compat_detach_mcast = compat_slot;
	ops->_compat_async_event = compat_slot;
}

void
vrb_ops_unsupported(struct verbs_context *v)
{
	fill_compat_slots(&v->context.ops);
	v->advise_mr = vrb_verbs_advise_mr;
	v->alloc_null_mr = vrb_verbs_alloc_null_mr;
	v->modify_flow_action_esp = vrb_verbs_modify_flow_action_esp;
	v->destroy_flow_action = vrb_verbs_destroy_flow_action;
	v->create_flow_action_esp = vrb_verbs_create_flow_action_esp;
	v->modify_qp_rate_limit = vrb_verbs_modify_qp_rate_limit;
	v->post_srq_ops = vrb_verbs_post_srq_ops;
}

/* ---- functions with a symbol of their own ---- */

struct ibv_context *
ibv_import_device(int cmd_fd)
{
	return vrb_fail_null(EOPNOTSUPP, UNSUPPORTED);
}

struct ibv_pd *
ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	return vrb_fail_null(EOPNOTSUPP, UNSUPPORTED);
}

struct ibv_mr *
ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	return vrb_fail_null(EOPNOTSUPP, UNSUPPORTED);
}

struct ibv_dm *
ibv_import_dm(struct ibv_context *context, uint32_t dm_handle)
{
	return vrb_fail_null(EOPNOTSUPP, UNSUPPORTED);
}

/* Nothing was imported, so there is nothing to give back. */
void
ibv_unimport_pd(struct ibv_pd *pd)
{
}

void
ibv_unimport_mr(struct ibv_mr *mr)
{
}

void
ibv_unimport_dm(struct ibv_dm *dm)
{
}

struct ibv_mr *
ibv_reg_dmabuf_mr(
	struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	return vrb_fail_null(EOPNOTSUPP, UNSUPPORTED);
}
