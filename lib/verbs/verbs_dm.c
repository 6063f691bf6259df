/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device memory: memory of the device's own that a program writes and reads by calls, and that
 * requests reach by way of a region (ibv_alloc_dm(3)).
 *
 * The device lives in the process, so its memory is a buffer of the process that the program has no
 * address of. As on hardware, there is a limited amount of it.
 *
 * A buffer belongs to the process that has allocated it, of which a forked child has a copy only.
 * A child may allocate its own, as that touches nothing of its parent's.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "guard.h"
#include "verbs_private.h"

/* What the functions below check is a failure of the call that they are part of. */
#define refuse(err, ...) vrb_explain_call(err, call, __VA_ARGS__)

#define NOT_OURS "the memory belongs to the process that this one was forked from"

struct vrb_vdm {
	struct ibv_dm ibv;
	uint8_t *mem;
	size_t length;
	atomic_uint regions;
	bool of_child; /* allocated in a forked child: in no list */
	struct vrb_obj obj;
};

static _Atomic size_t allocated; /* bytes of all of them; at most VRB_MAX_DM_SIZE */

static struct vrb_vdm *
to_dm(struct ibv_dm *ibv)
{
	return (struct vrb_vdm *)ibv;
}

static bool
reserve(size_t length)
{
	size_t was = atomic_load(&allocated);

	do {
		if (length > VRB_MAX_DM_SIZE - was)
			return false;
	} while (!atomic_compare_exchange_weak(&allocated, &was, was + length));
	return true;
}

static void
free_dm(struct vrb_vdm *dm)
{
	atomic_fetch_sub(&allocated, dm->length);
	free(dm->mem);
	free(dm);
}

/* @return 0 or an errno */
static int
check_copy(const char *call, const struct vrb_vdm *dm, uint64_t offset, size_t length)
{
	if (dm->of_child != vrb_forked)
		return refuse(ENODEV, NOT_OURS);
	if (offset % VRB_DM_WORD || length % VRB_DM_WORD)
		return refuse(EINVAL,
			"offset is %lu and length %zu; device memory is accessed in words of %d "
			"bytes",
			(unsigned long)offset, length, VRB_DM_WORD);
	if (offset > dm->length || length > dm->length - offset)
		return refuse(EINVAL,
			"%zu bytes at offset %lu are not within the %zu of the memory", length,
			(unsigned long)offset, dm->length);
	return 0;
}

static int
memcpy_to_dm(struct ibv_dm *ibv, uint64_t offset, const void *host_addr, size_t length)
{
	const char *call = "ibv_memcpy_to_dm";
	struct vrb_vdm *dm = to_dm(ibv);
	int rc = check_copy(call, dm, offset, length);

	if (!rc && vrb_guard_copy(dm->mem + offset, host_addr, length))
		rc = refuse(EFAULT, "host_addr is %p; no %zu bytes can be read there", host_addr,
			length);
	return rc;
}

static int
memcpy_from_dm(void *host_addr, struct ibv_dm *ibv, uint64_t offset, size_t length)
{
	const char *call = "ibv_memcpy_from_dm";
	struct vrb_vdm *dm = to_dm(ibv);
	int rc = check_copy(call, dm, offset, length);

	if (!rc && vrb_guard_copy(host_addr, dm->mem + offset, length))
		rc = refuse(EFAULT, "host_addr is %p; no %zu bytes can be written there", host_addr,
			length);
	return rc;
}

/* @return the memory, zeroed, or NULL: errno */
static struct vrb_vdm *
make_dm(size_t length, uint32_t log_align)
{
	size_t align = (size_t)1 << RTE_MAX(log_align, (uint32_t)VRB_DM_LOG_ALIGN);
	struct vrb_vdm *dm = calloc(1, sizeof(*dm));
	void *mem;

	if (!dm)
		return NULL;
	errno = posix_memalign(&mem, align, length);
	if (errno) {
		free(dm);
		return NULL;
	}
	dm->mem = memset(mem, 0, length);
	dm->length = length;
	return dm;
}

static struct ibv_dm *
vrb_verbs_alloc_dm(struct ibv_context *context, struct ibv_alloc_dm_attr *attr)
{
	struct vrb_vdm *dm;

	if (attr->comp_mask)
		return vrb_fail_null(
			EINVAL, "comp_mask is %#x, but no bit of it is defined", attr->comp_mask);
	if (!attr->length || attr->log_align_req > VRB_MAX_DM_LOG_ALIGN)
		return vrb_fail_null(EINVAL,
			"length is %zu, log_align_req %u; they must be at least 1 and at most %d",
			attr->length, attr->log_align_req, VRB_MAX_DM_LOG_ALIGN);
	if (!reserve(attr->length))
		return vrb_fail_null(ENOMEM,
			"length is %zu; the device has %d bytes of memory, of which %zu are taken",
			attr->length, VRB_MAX_DM_SIZE, atomic_load(&allocated));
	dm = make_dm(attr->length, attr->log_align_req);
	if (!dm) {
		atomic_fetch_sub(&allocated, attr->length);
		return vrb_fail_null(ENOMEM, "there is no memory");
	}
	vrb_guard_install();
	dm->ibv.context = context;
	dm->ibv.memcpy_to_dm = memcpy_to_dm;
	dm->ibv.memcpy_from_dm = memcpy_from_dm;
	dm->ibv.comp_mask = IBV_DM_MASK_HANDLE;
	dm->of_child = vrb_forked;
	/* The lock of the list may be held in a child, by a thread that is not there. */
	if (!dm->of_child)
		dm->ibv.handle = vrb_obj_add(vrb_to_ctx(context), VRB_KIND_DM, &dm->obj);
	return &dm->ibv;
}

static int
vrb_verbs_free_dm(struct ibv_dm *ibv)
{
	struct vrb_vdm *dm = to_dm(ibv);
	unsigned int regions = atomic_load(&dm->regions);

	if (dm->of_child != vrb_forked)
		return vrb_fail(ENODEV, NOT_OURS);
	if (regions)
		return vrb_fail(EBUSY, "%u regions stand on it; deregister them first", regions);
	if (!dm->of_child)
		vrb_obj_remove(vrb_to_ctx(ibv->context), VRB_KIND_DM, &dm->obj);
	free_dm(dm);
	return 0;
}

void
vrb_dm_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx)
{
	free_dm(vrb_container(obj, struct vrb_vdm, obj));
}

static struct ibv_mr *
vrb_verbs_reg_dm_mr(
	struct ibv_pd *pd, struct ibv_dm *ibv, uint64_t offset, size_t length, unsigned int access)
{
	struct vrb_vdm *dm = to_dm(ibv);

	if (ibv->context != pd->context)
		return vrb_fail_null(EINVAL, "memory and protection domain are of two contexts");
	if (offset > dm->length || length > dm->length - offset)
		return vrb_fail_null(EINVAL,
			"%zu bytes at offset %lu are not within the %zu of the memory", length,
			(unsigned long)offset, dm->length);
	if (!(access & IBV_ACCESS_ZERO_BASED))
		return vrb_fail_null(EINVAL,
			"access is %#x, without IBV_ACCESS_ZERO_BASED: the memory has no address",
			access);
	return vrb_reg_dm(pd, dm->mem + offset, length, access, &dm->regions);
}

void
vrb_dm_ops(struct verbs_context *v)
{
	v->alloc_dm = vrb_verbs_alloc_dm;
	v->free_dm = vrb_verbs_free_dm;
	v->reg_dm_mr = vrb_verbs_reg_dm_mr;
}
