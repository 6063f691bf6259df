/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Device memory: its allocation, copies to and from it, and regions of it.
 */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "verbs_util.h"

#define SIZE 4096
#define RIGHTS (ALL_ACCESS | IBV_ACCESS_ZERO_BASED)

static struct ibv_dm *
alloc(struct rig *r, size_t length, uint32_t log_align)
{
	struct ibv_alloc_dm_attr attr = {.length = length, .log_align_req = log_align};

	return ibv_alloc_dm(r->ctx, &attr);
}

static size_t
max_size(struct rig *r)
{
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(r->ctx, NULL, &attr), 0);
	return attr.max_dm_size;
}

static void
memory_is_as_large_as_the_device_reports(void **state)
{
	struct rig *r = *state;
	size_t max = max_size(r);
	struct ibv_dm *dm, *other;

	assert_true(max > SIZE);
	expect_null(alloc(r, max + 1, 0), ENOMEM);
	expect_null(alloc(r, SIZE_MAX, 0), ENOMEM);
	dm = alloc(r, max - SIZE, 0);
	assert_non_null(dm);
	expect_null(alloc(r, SIZE + 1, 0), ENOMEM);
	other = alloc(r, SIZE, 0);
	assert_non_null(other);
	assert_int_equal(ibv_free_dm(dm), 0);
	assert_int_equal(ibv_free_dm(other), 0);
	dm = alloc(r, max, 0);
	assert_non_null(dm);
	assert_int_equal(ibv_free_dm(dm), 0);
}

static void
attributes_that_make_no_sense_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_alloc_dm_attr attr = {.length = SIZE, .comp_mask = 1};

	expect_null(ibv_alloc_dm(r->ctx, &attr), EINVAL);
	expect_null(alloc(r, 0, 0), EINVAL);
	expect_null(alloc(r, SIZE, 64), EINVAL);
	expect_null(alloc(r, SIZE, UINT32_MAX), EINVAL);
}

static void
what_is_copied_there_is_copied_back(void **state)
{
	struct rig *r = *state;
	struct ibv_dm *dm = alloc(r, SIZE, 12);
	char zeros[64] = {0}, text[16] = "device memory";
	uint32_t i;

	assert_non_null(dm);
	/* Nothing of what was in that memory before is to be seen. */
	for (i = 0; i < SIZE; i += sizeof(zeros)) {
		assert_int_equal(ibv_memcpy_from_dm(r->buf, dm, i, sizeof(zeros)), 0);
		assert_memory_equal(r->buf, zeros, sizeof(zeros));
	}
	assert_int_equal(ibv_memcpy_to_dm(dm, SIZE - sizeof(text), text, sizeof(text)), 0);
	memset(r->buf, 0x55, SIZE);
	assert_int_equal(ibv_memcpy_from_dm(r->buf, dm, 0, SIZE), 0);
	assert_memory_equal(r->buf + SIZE - sizeof(text), text, sizeof(text));
	assert_memory_equal(r->buf + SIZE - sizeof(text) - sizeof(zeros), zeros, sizeof(zeros));
	assert_int_equal(ibv_free_dm(dm), 0);
}

static void
copies_out_of_bounds_are_refused(void **state)
{
	static const struct {
		uint64_t offset;
		size_t length;
	} bad[] = {{0, SIZE + 4}, {SIZE, 4}, {SIZE - 4, 8}, {SIZE + 4, 0}, {UINT64_MAX - 3, 8},
		{4, SIZE_MAX - 3}, {1, 4}, {4, 1}, {2, 2}};
	struct rig *r = *state;
	struct ibv_dm *dm = alloc(r, SIZE, 0);
	unsigned int i;

	assert_non_null(dm);
	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		expect_errno(ibv_memcpy_to_dm(dm, bad[i].offset, r->buf, bad[i].length), EINVAL);
		expect_errno(ibv_memcpy_from_dm(r->buf, dm, bad[i].offset, bad[i].length), EINVAL);
	}
	expect_errno(ibv_memcpy_to_dm(dm, 0, NULL, 8), EFAULT);
	expect_errno(ibv_memcpy_from_dm(NULL, dm, 0, 8), EFAULT);
	assert_int_equal(ibv_free_dm(dm), 0);
}

static void
regions_lie_within_the_memory_and_are_zero_based(void **state)
{
	struct rig *r = *state;
	struct ibv_dm *dm = alloc(r, SIZE, 0);
	struct ibv_mr *mr;

	assert_non_null(dm);
	expect_null(ibv_reg_dm_mr(r->pd, dm, 0, SIZE, ALL_ACCESS), EINVAL);
	expect_null(ibv_reg_dm_mr(r->pd, dm, 0, SIZE + 1, RIGHTS), EINVAL);
	expect_null(ibv_reg_dm_mr(r->pd, dm, SIZE, 1, RIGHTS), EINVAL);
	expect_null(ibv_reg_dm_mr(r->pd, dm, UINT64_MAX, 2, RIGHTS), EINVAL);
	expect_null(
		ibv_reg_dm_mr(r->pd, dm, 0, SIZE, IBV_ACCESS_ZERO_BASED | IBV_ACCESS_REMOTE_WRITE),
		EINVAL);
	mr = ibv_reg_dm_mr(r->pd, dm, SIZE / 2, SIZE / 2, RIGHTS);
	assert_non_null(mr);
	assert_null(mr->addr);
	assert_int_equal(mr->length, SIZE / 2);
	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, r->pd, NULL, 0, 0),
		IBV_REREG_MR_ERR_INPUT);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

static void
memory_is_busy_while_a_region_stands_on_it(void **state)
{
	struct rig *r = *state;
	struct ibv_dm *dm = alloc(r, SIZE, 0);
	struct ibv_mr *a, *b;

	assert_non_null(dm);
	a = ibv_reg_dm_mr(r->pd, dm, 0, SIZE, RIGHTS);
	b = ibv_reg_dm_mr(r->pd, dm, 8, 8, RIGHTS);
	assert_true(a && b);
	expect_errno(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_dereg_mr(a), 0);
	expect_errno(ibv_free_dm(dm), EBUSY);
	assert_int_equal(ibv_dereg_mr(b), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

/* Posts one request between r's buffer and the region, at @p offset of it. */
static enum ibv_wc_status
reach(struct rig *r, const struct ibv_mr *mr, enum ibv_wr_opcode op, uint64_t offset)
{
	struct ibv_send_wr *bad, wr;
	struct ibv_sge sge;

	wr = make_wr(op, &sge, r, r->buf, 64);
	wr.wr.rdma.remote_addr = offset;
	wr.wr.rdma.rkey = mr->rkey;
	assert_int_equal(ibv_post_send(r->a, &wr, &bad), 0);
	return next_status(r->cq);
}

static void
requests_reach_the_memory_by_offsets(void **state)
{
	struct rig *r = *state;
	struct ibv_dm *dm = alloc(r, SIZE, 0);
	struct ibv_mr *mr = ibv_reg_dm_mr(r->pd, dm, 128, SIZE - 128, RIGHTS);
	char got[64];

	assert_non_null(mr);
	memset(r->buf, 'w', 64);
	assert_int_equal(reach(r, mr, IBV_WR_RDMA_WRITE, 256), IBV_WC_SUCCESS);
	assert_int_equal(ibv_memcpy_from_dm(got, dm, 128 + 256, 64), 0);
	assert_memory_equal(got, r->buf, 64);
	memset(r->buf, 0, 64);
	assert_int_equal(reach(r, mr, IBV_WR_RDMA_READ, 256), IBV_WC_SUCCESS);
	assert_memory_equal(got, r->buf, 64);
	assert_int_equal(reach(r, mr, IBV_WR_RDMA_WRITE, SIZE - 128 - 32), IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

static void
requests_gather_from_and_scatter_to_the_memory(void **state)
{
	struct rig *r = *state;
	struct ibv_dm *dm = alloc(r, SIZE, 0);
	struct ibv_mr *mr = ibv_reg_dm_mr(r->pd, dm, 0, SIZE, RIGHTS);
	struct ibv_sge from = {.addr = 0, .length = 64}, to = {.addr = 512, .length = 64};
	struct ibv_send_wr *bad, wr = {.sg_list = &from,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_recv_wr *bad_recv, recv = {.sg_list = &to, .num_sge = 1};
	char got[64];

	assert_non_null(mr);
	from.lkey = to.lkey = mr->lkey;
	memset(r->buf, 's', 64);
	assert_int_equal(ibv_memcpy_to_dm(dm, 0, r->buf, 64), 0);
	assert_int_equal(ibv_post_recv(r->b, &recv, &bad_recv), 0);
	assert_int_equal(ibv_post_send(r->a, &wr, &bad), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_int_equal(ibv_memcpy_from_dm(got, dm, 512, 64), 0);
	assert_memory_equal(got, r->buf, 64);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

/* In the child. @return 0, or the number of what went wrong */
static int
use_in_child(struct rig *r, struct ibv_dm *parents)
{
	struct ibv_dm *dm;
	uint64_t word = 1;

	if (ibv_memcpy_to_dm(parents, 0, &word, sizeof(word)) != ENODEV ||
		ibv_memcpy_from_dm(&word, parents, 0, sizeof(word)) != ENODEV ||
		ibv_free_dm(parents) != ENODEV)
		return 1;
	dm = alloc(r, SIZE, 0);
	if (!dm || ibv_memcpy_to_dm(dm, 0, &word, sizeof(word)))
		return 2;
	if (ibv_reg_dm_mr(r->pd, dm, 0, SIZE, RIGHTS) || errno != ENODEV)
		return 3;
	return ibv_free_dm(dm) ? 4 : 0;
}

static void
child_has_memory_of_its_own_only(void **state)
{
	struct rig *r = *state;
	struct ibv_dm *dm = alloc(r, SIZE, 0);
	int status;
	pid_t pid;

	assert_non_null(dm);
	pid = fork();
	if (!pid)
		_exit(use_in_child(r, dm));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(ibv_free_dm(dm), 0);
}

static void
closing_the_device_frees_what_is_left(void **state)
{
	struct rig *r = *state, other = {.ctx = open_device()};
	struct ibv_dm *dm = alloc(&other, max_size(r), 0);

	assert_non_null(dm);
	assert_non_null(ibv_reg_dm_mr(ibv_alloc_pd(other.ctx), dm, 0, 64, RIGHTS));
	expect_null(ibv_reg_dm_mr(r->pd, dm, 0, 64, RIGHTS), EINVAL);
	assert_int_equal(ibv_close_device(other.ctx), 0);
	dm = alloc(r, max_size(r), 0);
	assert_non_null(dm);
	assert_int_equal(ibv_free_dm(dm), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_DEVICE(memory_is_as_large_as_the_device_reports),
		TEST_DEVICE(attributes_that_make_no_sense_are_refused),
		TEST_DEVICE(what_is_copied_there_is_copied_back),
		TEST_DEVICE(copies_out_of_bounds_are_refused),
		TEST_DEVICE(regions_lie_within_the_memory_and_are_zero_based),
		TEST_DEVICE(memory_is_busy_while_a_region_stands_on_it),
		TEST_PAIR(requests_reach_the_memory_by_offsets),
		TEST_PAIR(requests_gather_from_and_scatter_to_the_memory),
		TEST_DEVICE(child_has_memory_of_its_own_only),
		TEST_DEVICE(closing_the_device_frees_what_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
