/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parent domains and thread domains, and regions that are registered anew.
 */
#include <stdlib.h>

#include "verbs_util.h"

#define HALF (BUF_SIZE / 2)

static struct ibv_pd *
make_parent(struct rig *r, struct ibv_td *td)
{
	struct ibv_parent_domain_init_attr attr = {.pd = r->pd, .td = td};
	struct ibv_pd *parent = ibv_alloc_parent_domain(r->ctx, &attr);

	assert_non_null(parent);
	return parent;
}

static void
parent_domain_is_interchangeable_with_its_pd(void **state)
{
	struct rig *r = *state;
	struct ibv_pd *parent = make_parent(r, NULL);
	struct ibv_mr *mr = ibv_reg_mr(parent, r->buf, BUF_SIZE, ALL_ACCESS);
	struct ibv_wc wc;

	assert_non_null(mr);
	assert_ptr_equal(mr->pd, parent);
	/* The queue pairs were made with the other handle. */
	assert_int_equal(post_recv(r, r->b, 1, r->buf + HALF, 64), 0);
	struct ibv_sge sge = {(uintptr_t)r->buf, 64, mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED};
	assert_int_equal(ibv_post_send(r->a, &wr, &bad), 0);
	assert_true(poll_for(r->cq, &wc) && wc.status == IBV_WC_SUCCESS);
	assert_true(poll_for(r->cq, &wc) && wc.status == IBV_WC_SUCCESS);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
}

static void
parent_domain_is_busy_while_an_object_refers_to_it(void **state)
{
	struct rig *r = *state;
	struct ibv_pd *parent = make_parent(r, NULL);
	struct ibv_cq_init_attr_ex cq_attr = {.cqe = 4,
		.wc_flags = IBV_WC_STANDARD_FLAGS,
		.comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
		.parent_domain = parent};
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_mr *mr = ibv_reg_mr(parent, r->buf, 64, 0);
	struct ibv_cq_ex *cq;
	struct ibv_srq *srq;

	expect_errno(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	srq = ibv_create_srq(parent, &srq_attr);
	expect_errno(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	cq = ibv_create_cq_ex(r->ctx, &cq_attr);
	assert_non_null(cq);
	expect_errno(ibv_dealloc_pd(parent), EBUSY);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
}

static void
pd_and_td_are_busy_while_a_parent_domain_has_them(void **state)
{
	struct rig *r = *state;
	struct ibv_td_init_attr td_attr = {0};
	struct ibv_td *td = ibv_alloc_td(r->ctx, &td_attr);
	struct ibv_parent_domain_init_attr attr = {.pd = ibv_alloc_pd(r->ctx), .td = td};
	struct ibv_pd *parent = ibv_alloc_parent_domain(r->ctx, &attr);

	assert_non_null(parent);
	expect_errno(ibv_dealloc_pd(attr.pd), EBUSY);
	expect_errno(ibv_dealloc_td(td), EBUSY);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
	assert_int_equal(ibv_dealloc_td(td), 0);
	assert_int_equal(ibv_dealloc_pd(attr.pd), 0);
}

static void
bad_parent_domains_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_pd *parent = make_parent(r, NULL);
	struct ibv_parent_domain_init_attr attr = {0};
	struct ibv_td_init_attr td_attr = {.comp_mask = 1};
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD, .parent_domain = r->pd};

	expect_null(ibv_alloc_parent_domain(r->ctx, &attr), EINVAL);
	attr.pd = parent;
	expect_null(ibv_alloc_parent_domain(r->ctx, &attr), EINVAL);
	attr.pd = r->pd;
	attr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
	expect_null(ibv_alloc_parent_domain(r->ctx, &attr), EOPNOTSUPP);
	attr.comp_mask = 1 << 5;
	expect_null(ibv_alloc_parent_domain(r->ctx, &attr), EINVAL);
	expect_null(ibv_alloc_td(r->ctx, &td_attr), EINVAL);
	expect_null(ibv_create_cq_ex(r->ctx, &cq_attr), EINVAL);
	assert_int_equal(ibv_dealloc_pd(parent), 0);
}

/* What ibv_rereg_mr() must leave alone. */
static void
expect_refused(
	struct rig *r, int flags, struct ibv_pd *pd, void *addr, size_t len, int access, int err)
{
	struct ibv_mr before = *r->mr;

	errno = 0;
	assert_int_equal(ibv_rereg_mr(r->mr, flags, pd, addr, len, access), IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, err);
	assert_ptr_equal(r->mr->addr, before.addr);
	assert_ptr_equal(r->mr->pd, before.pd);
	assert_int_equal(r->mr->length, before.length);
	assert_int_equal(r->mr->rkey, before.rkey);
}

static void
bad_changes_of_a_region_change_nothing(void **state)
{
	struct rig *r = *state;

	expect_refused(r, 0, NULL, NULL, 0, 0, EINVAL);
	expect_refused(r, 1 << 7, NULL, NULL, 0, 0, EINVAL);
	expect_refused(r, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0, EINVAL);
	expect_refused(r, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 64, 0, EINVAL);
	expect_refused(r, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, r->buf, 0, 0, EINVAL);
	expect_refused(r, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, (void *)16, 64, 0, EFAULT);
	expect_refused(r, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, r->buf, 64, IBV_ACCESS_LOCAL_WRITE,
		EINVAL);
	expect_refused(
		r, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, IBV_ACCESS_REMOTE_WRITE, EINVAL);
	/* The old region goes on working. */
	assert_int_equal(post_recv(r, r->b, 1, r->buf + HALF, 64), 0);
	assert_int_equal(post_send(r, r->a, 2, IBV_WR_SEND, r->buf, 64), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
}

static void
region_moves_to_other_memory(void **state)
{
	struct rig *r = *state;
	char *other = calloc(1, 4096);

	memset(r->buf, 'x', 64);
	assert_int_equal(
		ibv_rereg_mr(r->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, other, 4096, 0), 0);
	assert_ptr_equal(r->mr->addr, other);
	assert_int_equal(r->mr->length, 4096);
	memcpy(other, "here", 4);
	assert_int_equal(post_recv(r, r->b, 1, other + 1024, 64), 0);
	assert_int_equal(post_send(r, r->a, 2, IBV_WR_SEND, other, 64), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_memory_equal(other + 1024, "here", 4);
	/* Where it was it is no more. */
	assert_int_equal(post_send(r, r->a, 3, IBV_WR_SEND, r->buf, 64), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_dereg_mr(r->mr), 0);
	r->mr = ibv_reg_mr(r->pd, r->buf, BUF_SIZE, ALL_ACCESS);
	free(other);
}

static enum ibv_wc_status
write_remotely(struct rig *r)
{
	struct ibv_sge sge;
	struct ibv_send_wr *bad, wr = make_wr(IBV_WR_RDMA_WRITE, &sge, r, r->buf, 16);

	wr.wr.rdma.remote_addr = (uintptr_t)r->buf + HALF;
	wr.wr.rdma.rkey = r->mr->rkey;
	assert_int_equal(ibv_post_send(r->a, &wr, &bad), 0);
	return next_status(r->cq);
}

static void
rights_that_were_taken_away_are_gone(void **state)
{
	struct rig *r = *state;

	assert_int_equal(write_remotely(r), IBV_WC_SUCCESS);
	assert_int_equal(ibv_rereg_mr(r->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
				 IBV_ACCESS_LOCAL_WRITE),
		0);
	assert_int_equal(write_remotely(r), IBV_WC_REM_ACCESS_ERR);
}

static void
region_moves_to_another_domain(void **state)
{
	struct rig *r = *state;
	struct ibv_pd *pd = ibv_alloc_pd(r->ctx), *old = r->pd;

	assert_int_equal(ibv_rereg_mr(r->mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
	assert_ptr_equal(r->mr->pd, pd);
	expect_errno(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(write_remotely(r), IBV_WC_LOC_PROT_ERR);
	assert_int_equal(ibv_rereg_mr(r->mr, IBV_REREG_MR_CHANGE_PD, old, NULL, 0, 0), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_PAIR(parent_domain_is_interchangeable_with_its_pd),
		TEST_DEVICE(parent_domain_is_busy_while_an_object_refers_to_it),
		TEST_DEVICE(pd_and_td_are_busy_while_a_parent_domain_has_them),
		TEST_DEVICE(bad_parent_domains_are_refused),
		TEST_PAIR(bad_changes_of_a_region_change_nothing),
		TEST_PAIR(region_moves_to_other_memory),
		TEST_PAIR(rights_that_were_taken_away_are_gone),
		TEST_PAIR(region_moves_to_another_domain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
