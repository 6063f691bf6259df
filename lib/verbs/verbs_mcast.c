/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast groups (ibv_attach_mcast(3)). There is no subnet administrator on Ethernet: who is
 * attached receives, and the port is told that groups are wanted.
 */
#include <errno.h>
#include <string.h>

#include "verbs_private.h"

/* Under the baton. */
static int
attach(struct vrb_ctx *ctx, struct vrb_qp *qp, const union vrb_gid *gid)
{
	uint32_t before = vrb_mcast_groups(qp);
	int rc = vrb_mcast_attach(qp, gid);

	/* The lower port. */
	if (!rc)
		rc = vrb_filter_update(ctx);
	if (rc && vrb_mcast_groups(qp) > before)
		vrb_mcast_detach(qp, gid);
	return rc;
}

/* The LID is InfiniBand's; Ethernet has none. */
int
ibv_attach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	union vrb_gid group;
	int rc;

	if (ibv->qp_type == IBV_QPT_RAW_PACKET)
		return vrb_raw_attach(ibv, gid);
	memcpy(&group, gid, sizeof(group));
	rc = vrb_enter(ctx);
	if (!rc) {
		rc = attach(ctx, vrb_to_qp(ibv)->qp, &group);
		vrb_leave(ctx);
	}
	if (rc == -EINVAL)
		return vrb_fail(EINVAL,
			"QP %#x is not of type IBV_QPT_UD, or the GID is no multicast address",
			ibv->qp_num);
	return rc ? vrb_fail(-rc,
			    "there can be %d groups with %d queue pairs each, and the port has to "
			    "be able to receive them",
			    VRB_MAX_MCAST_GRP, VRB_MAX_MCAST_QP_ATTACH)
		  : 0;
}

int
ibv_detach_mcast(struct ibv_qp *ibv, const union ibv_gid *gid, uint16_t lid)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	union vrb_gid group;
	int rc;

	if (ibv->qp_type == IBV_QPT_RAW_PACKET)
		return vrb_raw_detach(ibv, gid);
	memcpy(&group, gid, sizeof(group));
	rc = vrb_enter(ctx);
	if (!rc) {
		rc = vrb_mcast_detach(vrb_to_qp(ibv)->qp, &group);
		/* A port that goes on receiving what nobody wants does no harm. */
		if (!rc)
			(void)vrb_filter_update(ctx);
		vrb_leave(ctx);
	}
	return rc ? vrb_fail(-rc, "QP %#x is not attached to the group", ibv->qp_num) : 0;
}
