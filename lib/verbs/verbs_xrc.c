/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC: domains, and further handles of the queue pairs in them (IBTA annex A14; ibv_open_xrcd(3),
 * ibv_open_qp(3)).
 *
 * A domain lives in this process's device. Openings of one inode share it, also by way of several
 * contexts; another process that opens the same inode has a device of its own, and a domain of its
 * own there.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbs_private.h"

struct vrb_domain {
	TAILQ_ENTRY(vrb_domain) link;
	struct vrb_xrcd xrcd;
	uint32_t openings;
	int fd; /* keeps the inode, so that its number is not given to another file; -1: none */
	dev_t dev;
	ino_t ino;
};

static TAILQ_HEAD(, vrb_domain) domains = TAILQ_HEAD_INITIALIZER(domains); /* under the baton */

struct vrb_xrcd *
vrb_xrcd_of(const struct vrb_vxrcd *xrcd)
{
	return &xrcd->domain->xrcd;
}

static struct vrb_domain *
find_domain(const struct stat *st)
{
	struct vrb_domain *d;

	TAILQ_FOREACH (d, &domains, link)
		if (d->fd >= 0 && d->dev == st->st_dev && d->ino == st->st_ino)
			break;
	return d;
}

/* @param st of fd, or NULL without one. @return 0 or -errno */
static int
make_domain(int fd, const struct stat *st, struct vrb_domain **out)
{
	struct vrb_domain *d = calloc(1, sizeof(*d));
	int rc;

	if (!d)
		return -ENOMEM;
	d->fd = -1;
	if (st) {
		d->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
		if (d->fd < 0) {
			rc = -errno;
			free(d);
			return rc;
		}
		d->dev = st->st_dev;
		d->ino = st->st_ino;
	}
	TAILQ_INSERT_TAIL(&domains, d, link);
	*out = d;
	return 0;
}

/* The rules of O_CREAT and O_EXCL. Under the baton. @return 0 or -errno */
static int
join_domain(int fd, int oflags, const struct stat *st, struct vrb_domain **out)
{
	*out = st ? find_domain(st) : NULL;
	if (!*out)
		/* As the kernel has it for an inode: another process might create it. */
		return oflags & O_CREAT ? make_domain(fd, st, out) : st ? -EAGAIN : -EINVAL;
	return oflags & O_CREAT && oflags & O_EXCL ? -EINVAL : 0;
}

static void
leave_domain(struct vrb_domain *d)
{
	if (--d->openings)
		return;
	TAILQ_REMOVE(&domains, d, link);
	if (d->fd >= 0)
		close(d->fd);
	free(d);
}

static struct ibv_xrcd *
refuse_open(int err)
{
	switch (err) {
	case EAGAIN:
		return vrb_fail_null(err,
			"there is no domain for the file in this process, and oflags has no "
			"O_CREAT");
	case EINVAL:
		return vrb_fail_null(err,
			"oflags has O_EXCL, but there is a domain for the file; or fd is -1 and it "
			"has no O_CREAT");
	default:
		return vrb_fail_null(err, "the domain cannot be made");
	}
}

struct ibv_xrcd *
vrb_verbs_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr)
{
	const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct vrb_ctx *ctx = vrb_to_ctx(context);
	struct vrb_vxrcd *xrcd;
	struct stat st;
	int rc;

	if (attr->comp_mask & ~needed)
		return vrb_fail_null(EOPNOTSUPP, "comp_mask is %#x, with bits that are not defined",
			attr->comp_mask);
	if (attr->comp_mask != needed)
		return vrb_fail_null(EINVAL, "comp_mask is %#x, but fd and oflags are both needed",
			attr->comp_mask);
	if (attr->fd != -1 && fstat(attr->fd, &st) < 0)
		return vrb_fail_null(errno, "fd is %d, which is no open file", attr->fd);
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return vrb_fail_null(ENOMEM, "there is no memory");
	rc = vrb_enter(ctx);
	if (!rc) {
		rc = join_domain(
			attr->fd, attr->oflags, attr->fd == -1 ? NULL : &st, &xrcd->domain);
		if (!rc)
			xrcd->domain->openings++;
		vrb_leave(ctx);
	}
	if (rc) {
		free(xrcd);
		return refuse_open(-rc);
	}
	xrcd->ibv.context = context;
	vrb_obj_add(ctx, VRB_KIND_XRCD, &xrcd->obj);
	return &xrcd->ibv;
}

int
vrb_verbs_close_xrcd(struct ibv_xrcd *ibv)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_vxrcd *xrcd = vrb_to_xrcd(ibv);
	uint32_t users;

	if (vrb_enter(ctx))
		return vrb_fail(
			ENODEV, "the device belongs to the process that this one was forked from");
	users = xrcd->refs;
	if (!users)
		leave_domain(xrcd->domain);
	vrb_leave(ctx);
	if (users)
		return vrb_fail(EBUSY,
			"%u queue pairs and shared receive queues stand in the domain; destroy "
			"them first",
			users);
	vrb_obj_remove(ctx, VRB_KIND_XRCD, &xrcd->obj);
	free(xrcd);
	return 0;
}

void
vrb_xrcd_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx)
{
	struct vrb_vxrcd *xrcd = vrb_container(obj, struct vrb_vxrcd, obj);

	leave_domain(xrcd->domain);
	free(xrcd);
}

/* Makes @p qp a handle of the target of that number. Under the baton. @return 0 or -errno */
static int
share(struct vrb_ctx *ctx, struct vrb_vqp *qp, uint32_t num)
{
	void *user;
	struct vrb_qp *target = vrb_qp_find_target(ctx->engine, vrb_xrcd_of(qp->xrcd), num, &user);
	struct vrb_vqp *first = user;

	if (!target)
		return -EINVAL;
	qp->qp = target;
	qp->cap = first->cap;
	qp->sig_all = first->sig_all;
	qp->sq = first->sq;
	qp->ibv.qp_base.qp_num = num;
	qp->ibv.qp_base.state = (enum ibv_qp_state)vrb_qp_state(target);
	qp->next_handle = first->next_handle;
	first->next_handle = qp;
	qp->xrcd->refs++;
	return 0;
}

struct ibv_qp *
vrb_verbs_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr)
{
	const uint32_t needed =
		IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_XRC_RECV, .xrcd = attr->xrcd};
	struct vrb_ctx *ctx = vrb_to_ctx(context);
	struct vrb_vqp *qp;
	int rc;

	if (attr->comp_mask & ~(needed | IBV_QP_OPEN_ATTR_CONTEXT))
		return vrb_fail_null(EOPNOTSUPP, "comp_mask is %#x, with bits that are not defined",
			attr->comp_mask);
	if ((attr->comp_mask & needed) != needed)
		return vrb_fail_null(EINVAL,
			"comp_mask is %#x, but qp_num, xrcd and qp_type are all needed",
			attr->comp_mask);
	if (attr->qp_type != IBV_QPT_XRC_RECV || !attr->xrcd || attr->xrcd->context != context)
		return vrb_fail_null(EINVAL,
			"qp_type is not IBV_QPT_XRC_RECV, or xrcd belongs to another context");
	if (attr->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT)
		init.qp_context = attr->qp_context;
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return vrb_fail_null(ENOMEM, "there is no memory");
	vrb_qp_init(ctx, qp, &init);
	vrb_qp_ex_ops(qp, 0);
	rc = vrb_enter(ctx);
	if (!rc) {
		rc = share(ctx, qp, attr->qp_num);
		vrb_leave(ctx);
	}
	if (rc) {
		vrb_qp_free(qp);
		return vrb_fail_null(
			-rc, "there is no target with number %u in the domain", attr->qp_num);
	}
	qp->ibv.qp_base.handle = vrb_obj_add(ctx, VRB_KIND_QP, &qp->obj);
	return &qp->ibv.qp_base;
}
