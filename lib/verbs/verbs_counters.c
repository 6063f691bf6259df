/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters of flow rules (ibv_create_counters(3) and what it refers to).
 *
 * A counters object is bound by the count action of rules, when they are made; it adds up what all
 * of them have taken. Which figure stands at which index is said before the first of them is made.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_raw.h"

struct ibv_counters *
vrb_verbs_create_counters(struct ibv_context *context, struct ibv_counters_init_attr *attr)
{
	struct vrb_vcounters *c;

	if (unlikely(vrb_forked))
		return vrb_fail_null(
			ENODEV, "the device belongs to the process that this one was forked from");
	if (attr->comp_mask)
		return vrb_fail_null(
			EINVAL, "comp_mask is %#x, but no bit of it is defined", attr->comp_mask);
	c = calloc(1, sizeof(*c));
	if (!c)
		return vrb_fail_null(ENOMEM, "there is no memory");
	c->ibv.context = context;
	vrb_obj_add(vrb_to_ctx(context), VRB_KIND_COUNTERS, &c->obj);
	return &c->ibv;
}

int
vrb_verbs_destroy_counters(struct ibv_counters *ibv)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_vcounters *c = vrb_to_counters(ibv);
	uint32_t flows;

	if (vrb_enter(ctx))
		return vrb_fail(
			ENODEV, "the device belongs to the process that this one was forked from");
	flows = c->flows;
	vrb_leave(ctx);
	if (flows)
		return vrb_fail(EBUSY, "%u flows count in it; destroy them first", flows);
	vrb_obj_remove(ctx, VRB_KIND_COUNTERS, &c->obj);
	free(c);
	return 0;
}

void
vrb_counters_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx)
{
	free(vrb_container(obj, struct vrb_vcounters, obj));
}

/* Under the baton. @return 0 or an errno */
static int
add_point(struct vrb_vcounters *c, const struct ibv_counter_attach_attr *attr)
{
	if (c->flows)
		return EBUSY;
	if (c->num_points == VRB_COUNTER_POINTS)
		return ENOMEM;
	c->points[c->num_points].index = attr->index;
	c->points[c->num_points].what = attr->counter_desc;
	c->num_points++;
	return 0;
}

int
vrb_verbs_attach_counters_point_flow(
	struct ibv_counters *ibv, struct ibv_counter_attach_attr *attr, struct ibv_flow *flow)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	int rc;

	if (flow)
		return vrb_fail(ENOTSUP, "flow is not NULL; counters are bound by the flow's count "
					 "action, when it is made");
	if (attr->comp_mask)
		return vrb_fail(
			EINVAL, "comp_mask is %#x, but no bit of it is defined", attr->comp_mask);
	if (attr->counter_desc != IBV_COUNTER_PACKETS && attr->counter_desc != IBV_COUNTER_BYTES)
		return vrb_fail(ENOTSUP, "counter_desc is %d; flows count packets and bytes",
			(int)attr->counter_desc);
	if (vrb_enter(ctx))
		return vrb_fail(
			ENODEV, "the device belongs to the process that this one was forked from");
	rc = add_point(vrb_to_counters(ibv), attr);
	vrb_leave(ctx);
	if (rc == EBUSY)
		return vrb_fail(EBUSY, "flows count in it already");
	return rc ? vrb_fail(rc, "there can be %d points", VRB_COUNTER_POINTS) : 0;
}

/* Under the baton. @return 0, or the first index plus one that has no place */
static uint32_t
fill_values(const struct vrb_vcounters *c, uint64_t *values, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < c->num_points; i++)
		if (c->points[i].index >= n)
			return c->points[i].index + 1;
	memset(values, 0, n * sizeof(*values));
	for (i = 0; i < c->num_points; i++)
		values[c->points[i].index] += c->points[i].what == IBV_COUNTER_PACKETS
						      ? c->count.packets
						      : c->count.bytes;
	return 0;
}

int
vrb_verbs_read_counters(struct ibv_counters *ibv, uint64_t *values, uint32_t n, uint32_t flags)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	uint32_t beyond;

	/* There is no cache to prefer: the figures are at hand. */
	if (flags & ~(uint32_t)IBV_READ_COUNTERS_ATTR_PREFER_CACHED)
		return vrb_fail(EINVAL, "flags is %#x, with bits that are not defined", flags);
	if (vrb_enter(ctx))
		return vrb_fail(
			ENODEV, "the device belongs to the process that this one was forked from");
	beyond = fill_values(vrb_to_counters(ibv), values, n);
	vrb_leave(ctx);
	if (beyond)
		return vrb_fail(EINVAL, "there is room for %u counters, but one has index %u", n,
			beyond - 1);
	return 0;
}
