/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection domains and memory regions.
 *
 * Registering pins nothing: the device lives in the process and sees its memory as it is. But a bad
 * address is refused as hardware refuses it, and memory that goes away afterwards gives an error
 * completion.
 */
#include <errno.h>
#include <stdlib.h>

#include "guard.h"
#include "verbs_maps.h"
#include "verbs_private.h"

/* What the functions below check is a failure of the call that they are part of. */
#define refuse(err, ...) vrb_explain_call(err, call, __VA_ARGS__)

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *context)
{
	struct vrb_ctx *ctx = vrb_to_ctx(context);
	struct vrb_vpd *pd = calloc(1, sizeof(*pd));
	int rc;

	if (!pd)
		return vrb_fail_null(ENOMEM, "there is no memory");
	rc = vrb_enter(ctx);
	if (!rc) {
		rc = vrb_pd_create(ctx->engine, &pd->pd);
		vrb_leave(ctx);
	}
	if (rc) {
		free(pd);
		return vrb_fail_null(-rc, "there can be %d protection domains", VRB_MAX_PD);
	}
	pd->ibv.context = context;
	pd->ibv.handle = vrb_obj_add(ctx, VRB_KIND_PD, &pd->obj);
	return &pd->ibv;
}

int
ibv_dealloc_pd(struct ibv_pd *ibv)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_vpd *pd = vrb_to_pd(ibv);
	uint32_t users = 0;
	int rc;

	if (pd->parent_of)
		return vrb_parent_dealloc(pd);
	rc = vrb_enter(ctx);
	if (!rc) {
		users = pd->pd->refs + vrb_parents(pd);
		rc = users ? -EBUSY : vrb_pd_destroy(ctx->engine, pd->pd);
		vrb_leave(ctx);
	}
	if (rc)
		return vrb_fail(-rc,
			"%u objects stand in the protection domain; destroy them first", users);
	vrb_obj_remove(ctx, VRB_KIND_PD, &pd->obj);
	free(pd);
	return 0;
}

void
vrb_pd_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx)
{
	struct vrb_vpd *pd = vrb_container(obj, struct vrb_vpd, obj);

	/* A parent domain stands behind the one that it was made of, which takes all with it. */
	if (!pd->parent_of)
		vrb_pd_destroy(ctx->engine, pd->pd);
	free(pd);
}

#define ACCESS_KNOWN \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED)

/* A device may ignore each of them. */
#define HINTS ((unsigned int)IBV_ACCESS_OPTIONAL_RANGE)

/* The rules of ibv_reg_mr(3) for access flags. @return 0 or an errno */
static int
check_access(const char *call, unsigned int access)
{
	if (access & (IBV_ACCESS_ON_DEMAND | IBV_ACCESS_HUGETLB))
		return refuse(EOPNOTSUPP, "the device does not claim on-demand paging");
	if (access & ~(unsigned int)ACCESS_KNOWN)
		return refuse(EINVAL, "access is %#x, with bits that are not defined", access);
	if (access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC) &&
		!(access & IBV_ACCESS_LOCAL_WRITE))
		return refuse(EINVAL,
			"access is %#x, but remote write or atomic access needs local write "
			"access, too",
			access);
	return 0;
}

/* Whether the memory is there. @return 0 or an errno */
static int
check_memory(const char *call, uint64_t addr, uint64_t length, unsigned int access)
{
	bool write = access & IBV_ACCESS_LOCAL_WRITE;
	uint64_t bad;
	int rc;

	if (!length)
		return refuse(EINVAL, "length is 0");
	if (addr + length < addr || length > VRB_MAX_MR_SIZE)
		return refuse(
			EINVAL, "%#lx bytes at %#lx are more than can be mapped", length, addr);
	rc = vrb_maps_check(addr, length, write, &bad);
	if (rc == -EFAULT)
		return refuse(EFAULT,
			"the memory is not mapped%s at %#lx (%#lx bytes at %#lx were given)",
			write ? ", or not writable," : "", bad, length, addr);
	if (rc)
		return refuse(
			-rc, "/proc/self/maps cannot be read, so the address cannot be checked");
	return 0;
}

/* Registers what the caller has checked, for the call named @p call. @return NULL: errno */
static struct vrb_vmr *
add_region(const char *call, struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
	unsigned int access)
{
	struct vrb_ctx *ctx = vrb_to_ctx(pd->context);
	struct vrb_vmr *mr = calloc(1, sizeof(*mr));
	int rc;

	if (!mr) {
		errno = refuse(ENOMEM, "there is no memory");
		return NULL;
	}
	/* The program may have set handlers of its own since; ours has to see faults first. */
	vrb_guard_install();
	if (access & IBV_ACCESS_ZERO_BASED) {
		access &= ~(unsigned int)IBV_ACCESS_ZERO_BASED;
		iova = 0;
	}
	rc = vrb_enter(ctx);
	if (!rc) {
		rc = vrb_mr_reg(ctx->engine, vrb_to_pd(pd)->pd, (uintptr_t)addr, length, iova,
			access, &mr->mr);
		vrb_leave(ctx);
	}
	if (rc) {
		free(mr);
		errno = refuse(-rc,
			rc == -ENOMEM ? "there can be %d regions and windows"
				      : "the range wraps around the end of the addresses (%d)",
			VRB_MAX_MR);
		return NULL;
	}
	mr->ibv.context = pd->context;
	mr->ibv.pd = pd;
	mr->ibv.addr = addr;
	mr->ibv.length = length;
	mr->ibv.lkey = mr->mr->lkey;
	mr->ibv.rkey = mr->mr->rkey;
	mr->ibv.handle = vrb_obj_add(ctx, VRB_KIND_MR, &mr->obj);
	return mr;
}

static struct ibv_mr *
reg_mr(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	const char *call = "ibv_reg_mr";
	struct vrb_vmr *mr;

	access &= ~HINTS;
	errno = check_access(call, access);
	if (!errno)
		errno = check_memory(call, (uintptr_t)addr, length, access);
	if (errno)
		return NULL;
	mr = add_region(call, pd, addr, length, iova, access);
	return mr ? &mr->ibv : NULL;
}

struct ibv_mr *
vrb_reg_dm(struct ibv_pd *pd, void *mem, size_t length, unsigned int access, atomic_uint *users)
{
	const char *call = "ibv_reg_dm_mr";
	struct vrb_vmr *mr;

	access &= ~HINTS;
	errno = check_access(call, access);
	if (errno)
		return NULL;
	mr = add_region(call, pd, mem, length, 0, access);
	if (!mr)
		return NULL;
	/* What it is made of has no address that a program may use. */
	mr->ibv.addr = NULL;
	mr->dm_users = users;
	atomic_fetch_add(users, 1);
	return &mr->ibv;
}

struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return reg_mr(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

struct ibv_mr *
ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return reg_mr(pd, addr, length, iova, (unsigned int)access);
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	return reg_mr(pd, addr, length, iova, access);
}

#define REREG_FLAGS \
	(IBV_REREG_MR_CHANGE_TRANSLATION | IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_ACCESS)

/* @return 0 or an errno */
static int
check_rereg(
	const struct ibv_mr *mr, int flags, const struct ibv_pd *pd, const void *addr, int access)
{
	const char *call = "ibv_rereg_mr";

	if (!flags || flags & ~REREG_FLAGS)
		return refuse(EINVAL,
			"flags is %#x; it says what changes, in IBV_REREG_MR_CHANGE_*",
			(unsigned int)flags);
	if (((const struct vrb_vmr *)mr)->dm_users)
		return refuse(EINVAL, "the region is of device memory, which stays where it is");
	if (flags & IBV_REREG_MR_CHANGE_PD && (!pd || pd->context != mr->context))
		return refuse(EINVAL, "pd is missing, or belongs to another context");
	if (flags & IBV_REREG_MR_CHANGE_TRANSLATION && !addr)
		return refuse(EINVAL, "addr is missing");
	if (access && !(flags & IBV_REREG_MR_CHANGE_ACCESS))
		return refuse(EINVAL, "access is given without IBV_REREG_MR_CHANGE_ACCESS");
	return flags & IBV_REREG_MR_CHANGE_ACCESS
		       ? check_access(call, (unsigned int)access & ~HINTS)
		       : 0;
}

/* Whatever is refused, the region is as it was: always what ERR_INPUT tells. */
int
ibv_rereg_mr(
	struct ibv_mr *ibv, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_mr *mr = vrb_to_mr(ibv)->mr;
	bool moves = flags & IBV_REREG_MR_CHANGE_TRANSLATION;
	unsigned int rights =
		flags & IBV_REREG_MR_CHANGE_ACCESS ? (unsigned int)access & ~HINTS : mr->access;
	uint64_t iova = moves ? (uintptr_t)addr : mr->iova;
	int rc;

	errno = check_rereg(ibv, flags, pd, addr, access);
	if (errno)
		return IBV_REREG_MR_ERR_INPUT;
	addr = moves ? addr : ibv->addr;
	length = moves ? length : ibv->length;
	pd = flags & IBV_REREG_MR_CHANGE_PD ? pd : ibv->pd;
	if (flags != IBV_REREG_MR_CHANGE_PD)
		errno = check_memory("ibv_rereg_mr", (uintptr_t)addr, length, rights);
	if (errno)
		return IBV_REREG_MR_ERR_INPUT;
	if (rights & IBV_ACCESS_ZERO_BASED) {
		rights &= ~(unsigned int)IBV_ACCESS_ZERO_BASED;
		iova = 0;
	}
	rc = vrb_enter(ctx);
	if (!rc) {
		rc = vrb_mr_rereg(
			ctx->engine, mr, vrb_to_pd(pd)->pd, (uintptr_t)addr, length, iova, rights);
		vrb_leave(ctx);
	}
	if (rc) {
		errno = vrb_fail(-rc, "memory windows are bound to the region, or it wraps around "
				      "the end of the addresses");
		return IBV_REREG_MR_ERR_INPUT;
	}
	ibv->addr = addr;
	ibv->length = length;
	ibv->pd = pd;
	return 0;
}

int
ibv_dereg_mr(struct ibv_mr *ibv)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_vmr *mr = vrb_to_mr(ibv);
	int rc;

	rc = vrb_enter(ctx);
	if (!rc) {
		rc = vrb_mr_dereg(ctx->engine, mr->mr);
		vrb_leave(ctx);
	}
	if (rc)
		return vrb_fail(-rc,
			"memory windows are bound to the region; invalidate or free them first");
	vrb_obj_remove(ctx, VRB_KIND_MR, &mr->obj);
	if (mr->dm_users)
		atomic_fetch_sub(mr->dm_users, 1);
	free(mr);
	return 0;
}

void
vrb_mr_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx)
{
	struct vrb_vmr *mr = vrb_container(obj, struct vrb_vmr, obj);

	vrb_mr_dereg(ctx->engine, mr->mr);
	free(mr);
}
