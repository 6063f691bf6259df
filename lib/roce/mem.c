/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection domains, memory regions and memory windows, and the checks that stand before every
 * access (IBTA 10.6).
 *
 * L_Key and R_Key of a region are the same number: an index into the table of regions, and in the
 * low byte a tag that changes with each use of the index (for windows the tag is the consumer's,
 * IBTA 10.6.7.2).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "guard.h"

#define MR_TABLE_STEP 1024
#define NO_INDEX 0u /* index 0 is never given out, so that no key is 0 */

int
vrb_pd_create(struct vrb_engine *e, struct vrb_pd **out)
{
	struct vrb_pd *pd;

	if (e->num_pds >= VRB_MAX_PD)
		return -ENOMEM;
	pd = calloc(1, sizeof(*pd));
	if (pd == NULL)
		return -ENOMEM;
	e->num_pds++;
	LIST_INSERT_HEAD(&e->pds, pd, link);
	*out = pd;
	return 0;
}

int
vrb_pd_destroy(struct vrb_engine *e, struct vrb_pd *pd)
{
	if (pd->refs > 0)
		return -EBUSY;
	LIST_REMOVE(pd, link);
	e->num_pds--;
	free(pd);
	return 0;
}

static uint32_t
next_random(struct vrb_engine *e)
{
	/* xorshift32: keys need to change, not to be secret. */
	e->rnd ^= e->rnd << 13;
	e->rnd ^= e->rnd >> 17;
	e->rnd ^= e->rnd << 5;
	return e->rnd;
}

static int
grow(struct vrb_engine *e)
{
	uint32_t cap = e->mr_cap + MR_TABLE_STEP;
	struct vrb_mr **mrs = realloc(e->mrs, cap * sizeof(*mrs));

	if (mrs == NULL)
		return -ENOMEM;
	memset(mrs + e->mr_cap, 0, MR_TABLE_STEP * sizeof(*mrs));
	e->mrs = mrs;
	e->mr_cap = cap;
	return 0;
}

/** A free index, searched from where the last one was found: an index is not soon used again. */
static uint32_t
take_index(struct vrb_engine *e)
{
	uint32_t i, idx;

	if (e->num_mrs >= VRB_MAX_MR - 1)
		return NO_INDEX;
	/* Kept at most half full, so that the search is short. */
	if ((e->num_mrs + 1) * 2 > e->mr_cap && e->mr_cap < VRB_MAX_MR && grow(e) < 0)
		return NO_INDEX;
	for (i = 0; i < e->mr_cap; i++) {
		idx = e->mr_free + i;
		if (idx >= e->mr_cap)
			idx -= e->mr_cap;
		if (idx != NO_INDEX && e->mrs[idx] == NULL) {
			e->mr_free = idx + 1;
			return idx;
		}
	}
	return NO_INDEX;
}

/*
 * What was freed is kept and used again, and is never given back while the engine lives: a request
 * that binds a window may still be in a send queue and point to it. is_alive() then tells that it
 * has gone.
 */
static struct vrb_mr *
take_struct(struct vrb_engine *e)
{
	struct vrb_mr *mr = e->spare_mrs;

	if (mr == NULL)
		return calloc(1, sizeof(*mr));
	e->spare_mrs = mr->mr;
	memset(mr, 0, sizeof(*mr));
	return mr;
}

static bool
is_alive(const struct vrb_engine *e, const struct vrb_mr *mr)
{
	return e->mrs[mr->index] == mr;
}

static int
mr_new(struct vrb_engine *e, struct vrb_pd *pd, struct vrb_mr **out)
{
	struct vrb_mr *mr;
	uint32_t idx;

	idx = take_index(e);
	if (idx == NO_INDEX)
		return -ENOMEM;
	mr = take_struct(e);
	if (mr == NULL)
		return -ENOMEM;
	mr->index = idx;
	mr->rkey = idx << 8 | (next_random(e) & 0xff);
	mr->lkey = mr->rkey;
	mr->pd = pd;
	pd->refs++;
	e->mrs[idx] = mr;
	e->num_mrs++;
	*out = mr;
	return 0;
}

static void
mr_free(struct vrb_engine *e, struct vrb_mr *mr)
{
	e->mrs[mr->index] = NULL;
	e->num_mrs--;
	mr->pd->refs--;
	mr->mr = e->spare_mrs;
	e->spare_mrs = mr;
}

static bool
may_be_region(uint64_t addr, uint64_t length, uint64_t iova, uint32_t access)
{
	const uint32_t known = VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE | VRB_ACCESS_MW_BIND;

	if (access & ~known)
		return false;
	/* ibv_reg_mr(3): remote write or atomic needs local write. */
	if ((access & (VRB_ACCESS_REMOTE_WRITE | VRB_ACCESS_REMOTE_ATOMIC)) &&
		!(access & VRB_ACCESS_LOCAL_WRITE))
		return false;
	/* The last byte, not the one behind it: a region may end at the end of the address space.
	 */
	return length <= VRB_MAX_MR_SIZE &&
	       (length == 0 || (addr + length - 1 >= addr && iova + length - 1 >= iova));
}

int
vrb_mr_reg(struct vrb_engine *e, struct vrb_pd *pd, uint64_t addr, uint64_t length, uint64_t iova,
	uint32_t access, struct vrb_mr **out)
{
	int rc;

	if (!may_be_region(addr, length, iova, access))
		return -EINVAL;
	rc = mr_new(e, pd, out);
	if (rc < 0)
		return rc;
	(*out)->addr = addr;
	(*out)->length = length;
	(*out)->iova = iova;
	(*out)->access = access;
	(*out)->valid = 1;
	vrb_board_put_mr(e, *out);
	return 0;
}

int
vrb_mr_rereg(struct vrb_engine *e, struct vrb_mr *mr, struct vrb_pd *pd, uint64_t addr,
	uint64_t length, uint64_t iova, uint32_t access)
{
	if (!may_be_region(addr, length, iova, access))
		return -EINVAL;
	/* IBTA 11.2.8.5: as for deregistering. */
	if (mr->windows > 0)
		return -EBUSY;
	vrb_board_drop_mr(e, mr);
	mr->pd->refs--;
	pd->refs++;
	mr->pd = pd;
	mr->addr = addr;
	mr->length = length;
	mr->iova = iova;
	mr->access = access;
	vrb_board_put_mr(e, mr);
	return 0;
}

int
vrb_mr_dereg(struct vrb_engine *e, struct vrb_mr *mr)
{
	/* IBTA 10.6.7.2.1: a region cannot go while windows are bound to it. */
	if (mr->windows > 0)
		return -EBUSY;
	vrb_board_drop_mr(e, mr);
	mr_free(e, mr);
	return 0;
}

int
vrb_mw_alloc(struct vrb_engine *e, struct vrb_pd *pd, unsigned int type, struct vrb_mr **out)
{
	int rc;

	if (type != 1 && type != 2)
		return -EINVAL;
	rc = mr_new(e, pd, out);
	if (rc < 0)
		return rc;
	(*out)->is_mw = 1;
	(*out)->mw_type = (uint8_t)type;
	return 0;
}

static void
mw_unbind(struct vrb_mr *mw)
{
	if (!mw->valid)
		return;
	mw->valid = 0;
	if (mw->qp != NULL)
		mw->qp->windows--;
	mw->qp = NULL;
	mw->mr->windows--;
	mw->mr = NULL;
}

int
vrb_mw_free(struct vrb_engine *e, struct vrb_mr *mw)
{
	mw_unbind(mw);
	mr_free(e, mw);
	return 0;
}

struct vrb_mr *
vrb_mr_find(struct vrb_engine *e, uint32_t key)
{
	uint32_t idx = key >> 8;
	struct vrb_mr *mr = likely(idx < e->mr_cap) ? e->mrs[idx] : NULL;

	return mr != NULL && mr->rkey == key ? mr : NULL;
}

/** Whether [va, va + len) lies within the region, without overflow whatever the three are
 * (IBTA 10.6.3.1). */
static inline bool
in_bounds(const struct vrb_mr *mr, uint64_t va, uint64_t len)
{
	uint64_t off = va - mr->iova;

	return va >= mr->iova && off <= mr->length && len <= mr->length - off;
}

void *
vrb_mr_local(struct vrb_engine *e, struct vrb_pd *pd, uint32_t lkey, uint64_t addr, uint32_t len,
	uint32_t access, const char **why)
{
	struct vrb_mr *mr = vrb_mr_find(e, lkey);

	if (unlikely(mr == NULL || mr->is_mw))
		*why = "no memory region has this L_Key";
	else if (unlikely(mr->pd != pd))
		*why = "the memory region belongs to another protection domain";
	else if (unlikely(!in_bounds(mr, addr, len)))
		*why = "the address range is not within the memory region";
	else if (unlikely((mr->access & access) != access))
		*why = "the memory region was registered without local write";
	else
		return (void *)(uintptr_t)(mr->addr + (addr - mr->iova));
	return NULL;
}

bool
vrb_scatter(struct vrb_engine *e, struct vrb_pd *pd, const struct vrb_sge *sge, uint32_t num_sge,
	uint32_t pos, const struct vrb_pkt *pkt, const void *src, uint32_t len, const char **why)
{
	uint32_t i, from = 0;

	for (i = 0; i < num_sge && len > 0; i++) {
		uint32_t n;
		uint8_t *dst;
		int rc;

		if (pos >= sge[i].length) {
			pos -= sge[i].length;
			continue;
		}
		n = RTE_MIN(sge[i].length - pos, len);
		dst = vrb_mr_local(e, pd, sge[i].lkey, sge[i].addr, sge[i].length,
			VRB_ACCESS_LOCAL_WRITE, why);
		if (dst == NULL)
			return false;
		rc = src != NULL ? vrb_guard_copy(dst + pos, (const uint8_t *)src + from, n)
				 : vrb_pkt_read(pkt, from, dst + pos, n);
		if (rc < 0) {
			*why = "the memory behind the memory region is no longer mapped";
			return false;
		}
		from += n;
		len -= n;
		pos = 0;
	}
	return len == 0;
}

void *
vrb_mr_remote(struct vrb_engine *e, struct vrb_qp *qp, const struct vrb_pd *pd, uint32_t rkey,
	uint64_t va, uint32_t len, uint32_t access, const char **why)
{
	struct vrb_mr *mr = vrb_mr_find(e, rkey);

	if (mr == NULL) {
		*why = "no memory region or window has this R_Key";
		return NULL;
	}
	if (!mr->valid)
		*why = "the memory window is not bound";
	else if (mr->pd != pd)
		*why = "the R_Key belongs to another protection domain than the queue pair";
	else if (mr->is_mw && mr->mw_type == 2 && mr->qp != qp)
		*why = "the memory window was bound on another queue pair"; /* IBTA 10.6.7.2.3, type
									       2B */
	else if (!in_bounds(mr, va, len))
		*why = "the address range is not within the memory region or window";
	else if ((mr->access & access) != access)
		*why = "the memory region or window does not give this right";
	else
		return (void *)(uintptr_t)(mr->addr + (va - mr->iova));
	return NULL;
}

int
vrb_mw_bind(
	struct vrb_engine *e, struct vrb_qp *qp, const struct vrb_send_wqe *wqe, const char **why)
{
	struct vrb_mr *mw = wqe->bind.mw, *mr = wqe->bind.mr;
	const uint32_t needs_write = VRB_ACCESS_REMOTE_WRITE | VRB_ACCESS_REMOTE_ATOMIC;

	if (!is_alive(e, mw) || !mw->is_mw)
		*why = "the window was freed while the request waited";
	else if (mr != NULL && (!is_alive(e, mr) || mr->is_mw))
		*why = "the region was deregistered while the request waited";
	else if (mw->pd != qp->pd)
		*why = "the window belongs to another protection domain than the queue pair";
	/* IBTA 10.6.7.2.2. */
	else if (mw->mw_type == 2 && mw->valid)
		*why = "a window of type 2 has to be invalidated before it is bound again";
	else if (wqe->bind.length > 0 && mr == NULL)
		*why = "no memory region given";
	else if (wqe->bind.length > 0 && mr->pd != mw->pd)
		*why = "window and region belong to different protection domains";
	else if (wqe->bind.length > 0 && !(mr->access & VRB_ACCESS_MW_BIND))
		*why = "the region was registered without IBV_ACCESS_MW_BIND";
	else if (wqe->bind.length > 0 && !in_bounds(mr, wqe->bind.addr, wqe->bind.length))
		*why = "the range is not within the region";
	else if (wqe->bind.length > 0 && (wqe->bind.access & needs_write) &&
		 !(mr->access & VRB_ACCESS_LOCAL_WRITE))
		*why = "remote write or atomic needs a region with local write";
	else if (mw->mw_type == 2 && wqe->bind.length == 0)
		*why = "a window of type 2 cannot be bound to nothing; invalidate it instead";
	else
		goto ok;
	return -EINVAL;
ok:
	mw_unbind(mw);
	mw->rkey = mw->index << 8 | (wqe->bind.rkey & 0xff);
	/* A window of type 1 that is bound with length 0 is thereby closed (ibv_bind_mw(3)). */
	if (wqe->bind.length == 0)
		return 0;
	mw->mr = mr;
	mr->windows++;
	if (mw->mw_type == 2) {
		mw->qp = qp;
		qp->windows++;
	}
	mw->iova = wqe->bind.access & VRB_ACCESS_ZERO_BASED ? 0 : wqe->bind.addr;
	mw->addr = mr->addr + (wqe->bind.addr - mr->iova);
	mw->length = wqe->bind.length;
	mw->access = wqe->bind.access;
	mw->valid = 1;
	return 0;
}

int
vrb_mw_invalidate(struct vrb_engine *e, struct vrb_qp *qp, uint32_t rkey, const char **why)
{
	struct vrb_mr *mw = vrb_mr_find(e, rkey);

	if (mw == NULL)
		*why = "nothing has this R_Key";
	else if (!mw->is_mw || mw->mw_type != 2)
		*why = "only a memory window of type 2 can be invalidated";
	else if (mw->pd != qp->pd)
		*why = "the window belongs to another protection domain than the queue pair";
	else if (!mw->valid)
		*why = "the window is not bound";
	else if (mw->qp != qp)
		*why = "the window was bound on another queue pair";
	else {
		mw_unbind(mw);
		return 0;
	}
	return -EINVAL;
}

void
vrb_mw_forget_qp(struct vrb_engine *e, struct vrb_qp *qp)
{
	uint32_t i;

	for (i = 0; qp->windows > 0 && i < e->mr_cap; i++) {
		if (e->mrs[i] != NULL && e->mrs[i]->qp == qp)
			mw_unbind(e->mrs[i]);
	}
}
