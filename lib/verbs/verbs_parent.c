/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parent domains and thread domains.
 *
 * A parent domain is another handle of a protection domain: what is made with the one can be used
 * with what is made with the other. A thread domain in it is the promise that only one thread at a
 * time uses what is made with it; completion queues then do without their lock.
 */
#include <errno.h>
#include <stdlib.h>

#include "verbs_raw.h"

static struct ibv_td *
vrb_verbs_alloc_td(struct ibv_context *context, struct ibv_td_init_attr *attr)
{
	struct vrb_ctx *ctx = vrb_to_ctx(context);
	struct vrb_vtd *td;

	if (attr->comp_mask)
		return vrb_fail_null(EINVAL, "comp_mask is %#x, with bits that are not defined",
			attr->comp_mask);
	td = calloc(1, sizeof(*td));
	if (!td)
		return vrb_fail_null(ENOMEM, "there is no memory");
	td->ibv.context = context;
	vrb_obj_add(ctx, VRB_KIND_TD, &td->obj);
	return &td->ibv;
}

static int
vrb_verbs_dealloc_td(struct ibv_td *ibv)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_vtd *td = vrb_to_td(ibv);
	uint32_t users;

	pthread_mutex_lock(&ibv->context->mutex);
	users = td->refs;
	pthread_mutex_unlock(&ibv->context->mutex);
	if (users)
		return vrb_fail(EBUSY, "%u parent domains hold it; deallocate them first", users);
	vrb_obj_remove(ctx, VRB_KIND_TD, &td->obj);
	free(td);
	return 0;
}

void
vrb_td_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx)
{
	free(vrb_container(obj, struct vrb_vtd, obj));
}

/* @return 0 or an errno */
static int
check_parent_attr(struct ibv_context *context, const struct ibv_parent_domain_init_attr *attr)
{
	const char *call = "ibv_alloc_parent_domain";

	if (!attr->pd || attr->pd->context != context)
		return vrb_explain_call(
			EINVAL, call, "pd is missing, or belongs to another context");
	if (vrb_to_pd(attr->pd)->parent_of)
		return vrb_explain_call(EINVAL, call, "pd is a parent domain itself");
	if (attr->td && attr->td->context != context)
		return vrb_explain_call(EINVAL, call, "td belongs to another context");
	/* The queues are made under the baton, where nothing may wait; and the allocators of a
	 * program may wait for a thread that waits for the baton. */
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS)
		return vrb_explain_call(
			EOPNOTSUPP, call, "the device makes its queues in memory of its own");
	if (attr->comp_mask & ~(uint32_t)IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		return vrb_explain_call(EINVAL, call,
			"comp_mask is %#x, with bits that are not defined", attr->comp_mask);
	return 0;
}

static void
count(struct vrb_vpd *parent, uint32_t n)
{
	pthread_mutex_lock(&parent->ibv.context->mutex);
	parent->parent_of->parents += n;
	if (parent->td)
		parent->td->refs += n;
	pthread_mutex_unlock(&parent->ibv.context->mutex);
}

static struct ibv_pd *
vrb_verbs_alloc_parent_domain(struct ibv_context *context, struct ibv_parent_domain_init_attr *attr)
{
	struct vrb_ctx *ctx = vrb_to_ctx(context);
	struct vrb_vpd *parent;

	errno = check_parent_attr(context, attr);
	if (errno)
		return NULL;
	parent = calloc(1, sizeof(*parent));
	if (!parent)
		return vrb_fail_null(ENOMEM, "there is no memory");
	parent->ibv.context = context;
	parent->parent_of = vrb_to_pd(attr->pd);
	parent->pd = parent->parent_of->pd;
	parent->td = attr->td ? vrb_to_td(attr->td) : NULL;
	count(parent, 1);
	parent->ibv.handle = vrb_obj_add(ctx, VRB_KIND_PD, &parent->obj);
	return &parent->ibv;
}

uint32_t
vrb_parents(struct vrb_vpd *pd)
{
	uint32_t n;

	pthread_mutex_lock(&pd->ibv.context->mutex);
	n = pd->parents;
	pthread_mutex_unlock(&pd->ibv.context->mutex);
	return n;
}

/* What of a kind of object tells the domain that it was made with. */
#define USER(k, type, member) \
	{ \
		VRB_KIND_##k, (ptrdiff_t)offsetof(struct type, member) - \
				      (ptrdiff_t)offsetof(struct type, obj) \
	}

/* How many objects were made with the domain: they refer to it. */
static uint32_t
count_users(const struct vrb_vpd *parent)
{
	static const struct {
		enum vrb_kind kind;
		ptrdiff_t pd;
	} users[] = {
		USER(MR, vrb_vmr, ibv.pd),
		USER(MW, vrb_vmw, ibv.pd),
		USER(AH, vrb_vah, ibv.pd),
		USER(QP, vrb_vqp, ibv.qp_base.pd),
		USER(SRQ, vrb_vsrq, ibv.pd),
		USER(WQ, vrb_vwq, ibv.pd),
		USER(CQ, vrb_vcq, parent),
	};
	struct vrb_ctx *ctx = vrb_to_ctx(parent->ibv.context);
	const struct vrb_obj *obj;
	uint32_t n = 0;
	size_t i;

	pthread_mutex_lock(&parent->ibv.context->mutex);
	for (i = 0; i < RTE_DIM(users); i++)
		TAILQ_FOREACH (obj, &ctx->objs[users[i].kind], link)
			n += *(struct ibv_pd *const *)((const char *)obj + users[i].pd) ==
			     &parent->ibv;
	pthread_mutex_unlock(&parent->ibv.context->mutex);
	return n;
}

int
vrb_parent_dealloc(struct vrb_vpd *parent)
{
	uint32_t users = count_users(parent);

	if (users)
		return vrb_explain_call(EBUSY, "ibv_dealloc_pd",
			"%u objects were made with the parent domain; destroy them first", users);
	count(parent, -1u);
	vrb_obj_remove(vrb_to_ctx(parent->ibv.context), VRB_KIND_PD, &parent->obj);
	free(parent);
	return 0;
}

void
vrb_parent_ops(struct verbs_context *v)
{
	v->alloc_td = vrb_verbs_alloc_td;
	v->dealloc_td = vrb_verbs_dealloc_td;
	v->alloc_parent_domain = vrb_verbs_alloc_parent_domain;
}
