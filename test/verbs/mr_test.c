/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection domains and memory regions: which addresses and rights are taken, and what becomes of
 * memory that goes away.
 */
#include <stdlib.h>
#include <sys/mman.h>

#include "verbs_util.h"

#define PAGE 4096

static char *
map(size_t size, int prot)
{
	/* Where nobody else maps anything: holes that a test makes stay holes. */
	char *p = mmap((void *)0x200000000000, size, prot,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	return p;
}

static void
pd_is_busy_while_a_region_stands_in_it(void **state)
{
	struct rig *r = *state;

	expect_errno(ibv_dealloc_pd(r->pd), EBUSY);
}

static void
region_reports_what_was_registered(void **state)
{
	struct rig *r = *state;

	assert_ptr_equal(r->mr->addr, r->buf);
	assert_int_equal(r->mr->length, BUF_SIZE);
	assert_ptr_equal(r->mr->pd, r->pd);
	assert_ptr_equal(r->mr->context, r->ctx);
	assert_int_not_equal(r->mr->lkey, 0);
}

static void
remote_write_needs_local_write(void **state)
{
	struct rig *r = *state;

	expect_null(ibv_reg_mr(r->pd, r->buf, PAGE, IBV_ACCESS_REMOTE_WRITE), EINVAL);
	expect_null(ibv_reg_mr(r->pd, r->buf, PAGE, IBV_ACCESS_REMOTE_ATOMIC), EINVAL);
}

static void
unknown_rights_are_refused(void **state)
{
	struct rig *r = *state;

	expect_null(ibv_reg_mr(r->pd, r->buf, PAGE, 1 << 15), EINVAL);
	expect_null(ibv_reg_mr(r->pd, r->buf, PAGE, IBV_ACCESS_ON_DEMAND), EOPNOTSUPP);
}

static void
optional_rights_are_let_pass(void **state)
{
	struct rig *r = *state;
	struct ibv_mr *mr = ibv_reg_mr(
		r->pd, r->buf, PAGE, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);

	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_mr_iova2(
		r->pd, r->buf, PAGE, 0, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_OPTIONAL_RANGE);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void
lengths_that_make_no_sense_are_refused(void **state)
{
	struct rig *r = *state;

	expect_null(ibv_reg_mr(r->pd, r->buf, 0, 0), EINVAL);
	expect_null(ibv_reg_mr(r->pd, r->buf, SIZE_MAX, 0), EINVAL);
	expect_null(ibv_reg_mr(r->pd, (void *)(UINTPTR_MAX - PAGE), 2 * PAGE, 0), EINVAL);
}

static void
unmapped_memory_is_refused(void **state)
{
	struct rig *r = *state;
	char *p = map(3 * PAGE, PROT_READ | PROT_WRITE);

	assert_int_equal(munmap(p + PAGE, PAGE), 0);
	expect_null(ibv_reg_mr(r->pd, p + PAGE, PAGE, 0), EFAULT);
	expect_null(ibv_reg_mr(r->pd, p, 3 * PAGE, 0), EFAULT);
	expect_null(ibv_reg_mr(r->pd, p + PAGE - 1, 2, 0), EFAULT);
	expect_null(ibv_reg_mr(r->pd, p + 2 * PAGE - 1, 2, 0), EFAULT);
	expect_null(ibv_reg_mr(r->pd, NULL, 1, 0), EFAULT);
	munmap(p, 3 * PAGE);
}

static void
memory_beside_a_hole_is_taken(void **state)
{
	struct rig *r = *state;
	char *p = map(3 * PAGE, PROT_READ | PROT_WRITE);
	struct ibv_mr *below, *above;

	assert_int_equal(munmap(p + PAGE, PAGE), 0);
	below = ibv_reg_mr(r->pd, p, PAGE, IBV_ACCESS_LOCAL_WRITE);
	above = ibv_reg_mr(r->pd, p + 2 * PAGE, PAGE, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(below);
	assert_non_null(above);
	ibv_dereg_mr(below);
	ibv_dereg_mr(above);
	munmap(p, 3 * PAGE);
}

/* Several mappings in a row, of different rights, so that they do not become one. */
static void
memory_of_several_mappings_is_taken(void **state)
{
	struct rig *r = *state;
	char *p = map(5 * PAGE, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr;

	assert_int_equal(mprotect(p + PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	assert_int_equal(mprotect(p + 3 * PAGE, PAGE, PROT_READ | PROT_WRITE | PROT_EXEC), 0);
	mr = ibv_reg_mr(r->pd, p + 7, 5 * PAGE - 7, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	ibv_dereg_mr(mr);
	munmap(p, 5 * PAGE);
}

static void
read_only_memory_is_taken_for_reading_only(void **state)
{
	struct rig *r = *state;
	char *p = map(2 * PAGE, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr;

	assert_int_equal(mprotect(p + PAGE, PAGE, PROT_READ), 0);
	expect_null(ibv_reg_mr(r->pd, p, 2 * PAGE, IBV_ACCESS_LOCAL_WRITE), EFAULT);
	mr = ibv_reg_mr(r->pd, p, 2 * PAGE, IBV_ACCESS_REMOTE_READ);
	assert_non_null(mr);
	ibv_dereg_mr(mr);
	assert_int_equal(mprotect(p + PAGE, PAGE, PROT_NONE), 0);
	expect_null(ibv_reg_mr(r->pd, p, 2 * PAGE, 0), EFAULT);
	munmap(p, 2 * PAGE);
}

static void
huge_region_is_taken_without_being_touched(void **state)
{
	struct rig *r = *state;
	const size_t size = 1ul << 38;
	char *p = map(size, PROT_READ | PROT_WRITE);
	unsigned char resident = 1;
	struct ibv_mr *mr;

	mr = ibv_reg_mr(r->pd, p, size, ALL_ACCESS);
	assert_non_null(mr);
	assert_int_equal(mincore(p + size / 2, PAGE, &resident), 0);
	assert_int_equal(resident & 1, 0);
	ibv_dereg_mr(mr);
	munmap(p, size);
}

static void
keys_of_a_gone_region_do_not_come_back_at_once(void **state)
{
	struct rig *r = *state;
	struct ibv_mr *mr = ibv_reg_mr(r->pd, r->buf, PAGE, 0);
	uint32_t lkey = mr->lkey, rkey = mr->rkey;

	ibv_dereg_mr(mr);
	mr = ibv_reg_mr(r->pd, r->buf, PAGE, 0);
	assert_true(mr->lkey != lkey && mr->rkey != rkey);
	ibv_dereg_mr(mr);
}

/* Writes b's half by way of a region that is registered at another address. */
static void
write_by_iova(struct rig *r, struct ibv_mr *mr, uint64_t iova)
{
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	strcpy(r->buf, "by another name");
	memset(r->buf + BUF_SIZE / 2, 0, 64);
	wr = make_wr(IBV_WR_RDMA_WRITE, &sge, r, r->buf, 16);
	wr.wr.rdma.remote_addr = iova + 8;
	wr.wr.rdma.rkey = mr->rkey;
	assert_int_equal(ibv_post_send(r->a, &wr, &bad), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_string_equal(r->buf + BUF_SIZE / 2 + 8, "by another name");
}

static void
region_is_reached_by_its_iova(void **state)
{
	struct rig *r = *state;
	struct ibv_mr *mr =
		ibv_reg_mr_iova(r->pd, r->buf + BUF_SIZE / 2, 64, 0xabcd000, ALL_ACCESS);

	assert_non_null(mr);
	write_by_iova(r, mr, 0xabcd000);
	ibv_dereg_mr(mr);
}

static void
zero_based_region_is_reached_by_offsets(void **state)
{
	struct rig *r = *state;
	struct ibv_mr *mr =
		ibv_reg_mr(r->pd, r->buf + BUF_SIZE / 2, 64, ALL_ACCESS | IBV_ACCESS_ZERO_BASED);

	assert_non_null(mr);
	write_by_iova(r, mr, 0);
	ibv_dereg_mr(mr);
}

static void
memory_gone_under_a_region_fails_the_sender(void **state)
{
	struct rig *r = *state;
	char *p = map(PAGE, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = ibv_reg_mr(r->pd, p, PAGE, ALL_ACCESS);
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	assert_non_null(mr);
	munmap(p, PAGE);
	wr = make_wr(IBV_WR_RDMA_WRITE, &sge, r, p, PAGE);
	sge.lkey = mr->lkey;
	wr.wr.rdma.remote_addr = (uintptr_t)r->buf + BUF_SIZE / 2;
	wr.wr.rdma.rkey = r->mr->rkey;
	assert_int_equal(ibv_post_send(r->a, &wr, &bad), 0);
	assert_int_not_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_int_equal(state_of(r->a), IBV_QPS_ERR);
	ibv_dereg_mr(mr);
}

static void
memory_gone_under_a_region_fails_the_writer(void **state)
{
	struct rig *r = *state;
	char *p = map(PAGE, PROT_READ | PROT_WRITE);
	struct ibv_mr *mr = ibv_reg_mr(r->pd, p, PAGE, ALL_ACCESS);
	struct ibv_send_wr wr, *bad;
	struct ibv_sge sge;

	assert_non_null(mr);
	munmap(p, PAGE);
	wr = make_wr(IBV_WR_RDMA_WRITE, &sge, r, r->buf, PAGE);
	wr.wr.rdma.remote_addr = (uintptr_t)p;
	wr.wr.rdma.rkey = mr->rkey;
	assert_int_equal(ibv_post_send(r->a, &wr, &bad), 0);
	assert_in_range(next_status(r->cq), IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_OP_ERR);
	ibv_dereg_mr(mr);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_DEVICE(pd_is_busy_while_a_region_stands_in_it),
		TEST_DEVICE(region_reports_what_was_registered),
		TEST_DEVICE(remote_write_needs_local_write),
		TEST_DEVICE(unknown_rights_are_refused),
		TEST_DEVICE(optional_rights_are_let_pass),
		TEST_DEVICE(lengths_that_make_no_sense_are_refused),
		TEST_DEVICE(unmapped_memory_is_refused),
		TEST_DEVICE(memory_beside_a_hole_is_taken),
		TEST_DEVICE(memory_of_several_mappings_is_taken),
		TEST_DEVICE(read_only_memory_is_taken_for_reading_only),
		TEST_DEVICE(huge_region_is_taken_without_being_touched),
		TEST_DEVICE(keys_of_a_gone_region_do_not_come_back_at_once),
		TEST_PAIR(region_is_reached_by_its_iova),
		TEST_PAIR(zero_based_region_is_reached_by_offsets),
		TEST_PAIR(memory_gone_under_a_region_fails_the_sender),
		TEST_PAIR(memory_gone_under_a_region_fails_the_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
