/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_modify_srq(3), sentence by sentence. What happens under load is in srq_load.c.
 */
#include "srq_load.h"

#define BOTH (IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)

static int
set_limit(struct ibv_srq *srq, uint32_t limit)
{
	struct ibv_srq_attr attr = {.srq_limit = limit};

	return ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT);
}

static int
set_max_wr(struct ibv_srq *srq, uint32_t max_wr)
{
	struct ibv_srq_attr attr = {.max_wr = max_wr};

	return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

static void
need_resize(struct rig *r)
{
	if (!(device_attr(r).orig_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE))
		device_lacks("SRQ that can be resized");
}

/* An SRQ of n entries with as many receives, numbered from 0. */
static struct ibv_srq *
full_srq(struct rig *r, uint32_t n)
{
	struct ibv_srq *srq = make_srq(r, n, 1);

	assert_non_null(srq);
	fill_srq(r, srq, 0, n);
	return srq;
}

/* Takes n receives, whose numbers go on from first. */
static void
take(struct rig *r, uint64_t first, uint64_t n)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		assert_int_equal(send_one(r, i % 2 ? r->a : r->b), first + i);
}

static void
expect_attr(struct ibv_srq *srq, struct ibv_srq_attr want)
{
	struct ibv_srq_attr is = srq_attr_of(srq);

	assert_int_equal(is.max_wr, want.max_wr);
	assert_int_equal(is.max_sge, want.max_sge);
	assert_int_equal(is.srq_limit, want.srq_limit);
}

static void
prototype(struct rig *r)
{
	int (*fn)(struct ibv_srq * srq, struct ibv_srq_attr * srq_attr, int srq_attr_mask) =
		ibv_modify_srq;
	struct ibv_srq *srq = full_srq(r, 4);
	struct ibv_srq_attr attr = {.srq_limit = 2};

	assert_int_equal(fn(srq, &attr, IBV_SRQ_LIMIT), 0);
	assert_int_equal(srq_attr_of(srq).srq_limit, 2);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
mask_decides_what_is_modified(struct rig *r)
{
	struct ibv_srq *srq = full_srq(r, 10);
	struct ibv_srq_attr before = srq_attr_of(srq), attr = {.max_wr = 100, .srq_limit = 5};

	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	before.srq_limit = 5;
	expect_attr(srq, before);
	need_resize(r);
	attr = (struct ibv_srq_attr){.max_wr = 100, .srq_limit = 7};
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(srq_attr_of(srq).srq_limit, 5);
	assert_in_range(srq_attr_of(srq).max_wr, 100, UINT32_MAX);
	attr = (struct ibv_srq_attr){.max_wr = 200, .srq_limit = 7};
	assert_int_equal(ibv_modify_srq(srq, &attr, BOTH), 0);
	assert_int_equal(srq_attr_of(srq).srq_limit, 7);
	assert_in_range(srq_attr_of(srq).max_wr, 200, UINT32_MAX);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
fields_without_a_bit_are_not_looked_at(struct rig *r)
{
	struct ibv_srq *srq = full_srq(r, 10);
	struct ibv_srq_attr attr;

	attr = (struct ibv_srq_attr){.max_wr = UINT32_MAX, .max_sge = UINT32_MAX, .srq_limit = 3};
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	attr = (struct ibv_srq_attr){.max_wr = 0, .srq_limit = 4};
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
	need_resize(r);
	attr = (struct ibv_srq_attr){.max_wr = 12, .max_sge = UINT32_MAX, .srq_limit = UINT32_MAX};
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_int_equal(srq_attr_of(srq).srq_limit, 4);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
other_srqs_are_left_alone(struct rig *r)
{
	struct ibv_srq *srq = full_srq(r, 10), *other = full_srq(r, 10);
	struct ibv_srq_attr before = srq_attr_of(other);

	assert_int_equal(set_limit(srq, 5), 0);
	expect_attr(other, before);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_srq(other), 0);
}

static void
struct_is_read_within_its_bounds(struct rig *r)
{
	struct ibv_srq_attr *attr = at_guard(sizeof(*attr));
	struct ibv_srq *srq = full_srq(r, 4);

	attr->srq_limit = 2;
	assert_int_equal(ibv_modify_srq(srq, attr, IBV_SRQ_LIMIT), 0);
	attr->max_wr = 8;
	if (device_attr(r).orig_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE)
		assert_int_equal(ibv_modify_srq(srq, attr, BOTH), 0);
	assert_int_equal(ibv_modify_srq(srq, attr, 0), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
as_many_receives_fit_afterwards(struct rig *r)
{
	static const uint32_t sizes[] = {1, 2, 3, 7, 64, 65, 1000, 5, 1};
	struct ibv_srq *srq = make_srq(r, 10, 1);
	uint32_t n;
	size_t i;

	need_resize(r);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(set_max_wr(srq, sizes[i]), 0);
		n = srq_attr_of(srq).max_wr;
		assert_in_range(n, sizes[i], UINT32_MAX);
		fill_srq(r, srq, 0, n);
		expect_errno(post_srq(r, srq, 0), ENOMEM);
		pair_on_srq(r, srq);
		take(r, 0, n);
		assert_int_equal(ibv_destroy_qp(r->a), 0);
		assert_int_equal(ibv_destroy_qp(r->b), 0);
		r->a = r->b = NULL;
	}
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
struct_tells_the_actual_size(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 10, 1);
	struct ibv_srq_attr attr = {.max_wr = 100};

	need_resize(r);
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_in_range(attr.max_wr, 100, srq_attr_of(srq).max_wr);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
number_of_elements_stays(struct rig *r)
{
	static const uint32_t given[] = {0, 1, 3, 5, UINT32_MAX};
	struct ibv_srq *srq = make_srq(r, 10, 3);
	uint32_t sge = srq_attr_of(srq).max_sge;
	size_t i;

	for (i = 0; i < sizeof(given) / sizeof(given[0]); i++) {
		struct ibv_srq_attr attr = {.max_wr = 10, .max_sge = given[i]};

		assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
		if (device_attr(r).orig_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE)
			assert_int_equal(ibv_modify_srq(srq, &attr, BOTH), 0);
		assert_int_equal(srq_attr_of(srq).max_sge, sge);
	}
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
limit_up_to_the_size_is_valid(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 10, 1);
	uint32_t n = srq_attr_of(srq).max_wr, i;

	fill_srq(r, srq, 0, n);
	for (i = 0; i <= n; i++) {
		assert_int_equal(set_limit(srq, i), 0);
		assert_int_equal(srq_attr_of(srq).srq_limit, i);
	}
	expect_errno(set_limit(srq, n + 1), EINVAL);
	expect_errno(set_limit(srq, UINT32_MAX), EINVAL);
	assert_int_equal(srq_attr_of(srq).srq_limit, n);
	expect_no_event(r);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
empty_mask_modifies_nothing(struct rig *r)
{
	struct ibv_srq *srq = full_srq(r, 10);
	struct ibv_srq_attr before, attr = {.max_wr = UINT32_MAX, .srq_limit = UINT32_MAX};

	assert_int_equal(set_limit(srq, 3), 0);
	before = srq_attr_of(srq);
	assert_int_equal(ibv_modify_srq(srq, &attr, 0), 0);
	expect_attr(srq, before);
	/* Nothing is pointed at, then. */
	assert_int_equal(ibv_modify_srq(srq, NULL, 0), 0);
	expect_attr(srq, before);
	pair_on_srq(r, srq);
	take(r, 0, 7);
	expect_no_event(r);
	take(r, 7, 1);
	expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	destroy_pair_and_srq(r, srq);
}

static void
other_bits_are_refused(struct rig *r)
{
	struct ibv_srq *srq = full_srq(r, 10);
	struct ibv_srq_attr before = srq_attr_of(srq), attr = {.max_wr = 20, .srq_limit = 3};
	int bit;

	for (bit = 2; bit < 32; bit++) {
		expect_errno(ibv_modify_srq(srq, &attr, (int)(1u << bit)), EINVAL);
		expect_errno(ibv_modify_srq(srq, &attr, (int)(1u << bit) | BOTH), EINVAL);
	}
	expect_errno(ibv_modify_srq(srq, &attr, -1), EINVAL);
	expect_attr(srq, before);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
resizing_keeps_what_is_posted(struct rig *r)
{
	static const uint32_t sizes[] = {20, 8, 1000, 9, 8, 64, 10};
	struct ibv_srq *srq = make_srq(r, 10, 1);
	size_t i;

	need_resize(r);
	pair_on_srq(r, srq);
	/* So that what is posted does not begin at the ring's beginning. */
	fill_srq(r, srq, 100, 6);
	take(r, 100, 6);
	fill_srq(r, srq, 0, 8);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		assert_int_equal(set_max_wr(srq, sizes[i]), 0);
	fill_srq(r, srq, 8, 2);
	take(r, 0, 10);
	destroy_pair_and_srq(r, srq);
}

static void
below_what_is_posted_is_refused(struct rig *r)
{
	struct ibv_srq *srq = full_srq(r, 10);
	struct ibv_srq_attr before = srq_attr_of(srq);
	uint32_t n;

	need_resize(r);
	for (n = 0; n < 10; n++)
		expect_errno(set_max_wr(srq, n), EINVAL);
	expect_attr(srq, before);
	assert_int_equal(set_max_wr(srq, 10), 0);
	pair_on_srq(r, srq);
	take(r, 0, 4);
	expect_errno(set_max_wr(srq, 5), EINVAL);
	assert_int_equal(set_max_wr(srq, 6), 0);
	take(r, 4, 6);
	destroy_pair_and_srq(r, srq);
}

static void
size_up_to_the_devices_is_valid(struct rig *r)
{
	struct ibv_srq *srq = full_srq(r, 10);
	uint32_t max = (uint32_t)device_attr(r).orig_attr.max_srq_wr;

	need_resize(r);
	assert_int_equal(set_max_wr(srq, max), 0);
	assert_int_equal(srq_attr_of(srq).max_wr, max);
	expect_errno(set_max_wr(srq, max + 1), EINVAL);
	expect_errno(set_max_wr(srq, UINT32_MAX), EINVAL);
	assert_int_equal(srq_attr_of(srq).max_wr, max);
	fill_srq(r, srq, 10, max - 10);
	expect_errno(post_srq(r, srq, 0), ENOMEM);
	expect_errno(set_max_wr(srq, max - 1), EINVAL);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
resizing_keeps_the_limit_armed(struct rig *r)
{
	struct ibv_srq *srq = full_srq(r, 10);

	need_resize(r);
	assert_int_equal(set_limit(srq, 8), 0);
	assert_int_equal(set_max_wr(srq, 1000), 0);
	assert_int_equal(set_max_wr(srq, 10), 0);
	pair_on_srq(r, srq);
	take(r, 0, 2);
	expect_no_event(r);
	take(r, 2, 1);
	expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	destroy_pair_and_srq(r, srq);
}

/* What a message has begun to fill is not in the queue any longer, and not lost. */
static void
resizing_leaves_messages_under_way_alone(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 4, 1);
	struct ibv_sge sge = {.addr = (uintptr_t)r->buf + BUF_SIZE / 2,
		.length = BUF_SIZE / 2,
		.lkey = r->mr->lkey};
	struct ibv_recv_wr *bad, wr = {.sg_list = &sge, .num_sge = 1};
	struct ibv_wc wc;
	int i, got;

	need_resize(r);
	pair_on_srq(r, srq);
	for (i = 0; i < BUF_SIZE / 2; i++)
		r->buf[i] = (char)(i * 31 >> 3);
	for (i = 0; i < 50; i++) {
		memset(r->buf + BUF_SIZE / 2, 0, BUF_SIZE / 2);
		assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
		assert_int_equal(post_send(r, r->a, 1, IBV_WR_SEND, r->buf, BUF_SIZE / 2), 0);
		for (got = 0; got < 2;) {
			assert_int_equal(set_max_wr(srq, 1 + (uint32_t)i % 9), 0);
			if (!ibv_poll_cq(r->cq, 1, &wc))
				continue;
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
			got++;
		}
		assert_memory_equal(r->buf + BUF_SIZE / 2, r->buf, BUF_SIZE / 2);
	}
	destroy_pair_and_srq(r, srq);
}

static void
resizing_under_load_loses_nothing(struct rig *r)
{
	need_resize(r);
	srq_load(r, LOAD_RESIZE);
}

static void
limit_is_set_and_replaced(struct rig *r)
{
	struct ibv_srq *srq = full_srq(r, 10);

	assert_int_equal(set_limit(srq, 9), 0);
	assert_int_equal(set_limit(srq, 4), 0);
	assert_int_equal(srq_attr_of(srq).srq_limit, 4);
	pair_on_srq(r, srq);
	take(r, 0, 6);
	expect_no_event(r);
	take(r, 6, 1);
	expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	destroy_pair_and_srq(r, srq);
}

static void
zero_disarms(struct rig *r)
{
	struct ibv_srq *srq = full_srq(r, 10);

	assert_int_equal(set_limit(srq, 9), 0);
	assert_int_equal(set_limit(srq, 0), 0);
	assert_int_equal(srq_attr_of(srq).srq_limit, 0);
	pair_on_srq(r, srq);
	take(r, 0, 10);
	expect_no_event(r);
	destroy_pair_and_srq(r, srq);
}

static void
zero_or_the_errno_itself(struct rig *r)
{
	struct ibv_srq *srq = full_srq(r, 10);
	int rc;

	assert_int_equal(set_limit(srq, 1), 0);
	errno = 0;
	rc = set_limit(srq, UINT32_MAX);
	assert_errno_value(rc);
	assert_int_equal(rc, EINVAL);
	errno = 0;
	rc = set_max_wr(srq, UINT32_MAX);
	assert_errno_value(rc);
	rc = set_max_wr(srq, 0);
	assert_errno_value(rc);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* @param attr one part of it is valid, the other is not */
static void
refuse_whole(struct rig *r, struct ibv_srq *srq, struct ibv_srq_attr attr, int mask)
{
	struct ibv_srq_attr before = srq_attr_of(srq), given = attr;

	expect_errno(ibv_modify_srq(srq, &attr, mask), EINVAL);
	expect_attr(srq, before);
	assert_memory_equal(&attr, &given, sizeof(attr));
}

static void
invalid_parts_change_nothing(struct rig *r)
{
	struct ibv_srq *srq = full_srq(r, 10);
	uint32_t max = (uint32_t)device_attr(r).orig_attr.max_srq_wr, n;

	need_resize(r);
	n = srq_attr_of(srq).max_wr;
	fill_srq(r, srq, 10, n - 10);
	assert_int_equal(set_limit(srq, 5), 0);
	/* The size is wrong, the limit right. */
	refuse_whole(r, srq, (struct ibv_srq_attr){.max_wr = n - 1, .srq_limit = 2}, BOTH);
	refuse_whole(r, srq, (struct ibv_srq_attr){.max_wr = 0, .srq_limit = 2}, BOTH);
	refuse_whole(r, srq, (struct ibv_srq_attr){.max_wr = 0, .srq_limit = 0}, BOTH);
	refuse_whole(r, srq, (struct ibv_srq_attr){.max_wr = max + 1, .srq_limit = 2}, BOTH);
	refuse_whole(r, srq, (struct ibv_srq_attr){.max_wr = UINT32_MAX, .srq_limit = 2}, BOTH);
	/* The limit is wrong, the size right. */
	refuse_whole(r, srq, (struct ibv_srq_attr){.max_wr = 4 * n, .srq_limit = max + 1}, BOTH);
	refuse_whole(r, srq, (struct ibv_srq_attr){.max_wr = 4 * n, .srq_limit = UINT32_MAX}, BOTH);
	/* Both are wrong. */
	refuse_whole(
		r, srq, (struct ibv_srq_attr){.max_wr = UINT32_MAX, .srq_limit = UINT32_MAX}, BOTH);
	/* What is armed still is: it is reached as before. */
	expect_no_event(r);
	pair_on_srq(r, srq);
	take(r, 0, n - 5);
	expect_no_event(r);
	take(r, n - 5, 1);
	expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	destroy_pair_and_srq(r, srq);
}

/* The new limit is measured against the new size. */
static void
limit_above_the_new_size_changes_nothing(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 100, 1);
	struct ibv_srq_attr attr = {.max_wr = 50};
	uint32_t n = srq_attr_of(srq).max_wr, shrunk;

	need_resize(r);
	fill_srq(r, srq, 0, n);
	refuse_whole(r, srq, (struct ibv_srq_attr){.srq_limit = n + 1}, IBV_SRQ_LIMIT);
	attr = (struct ibv_srq_attr){.max_wr = 2 * n, .srq_limit = n + 1};
	pair_on_srq(r, srq);
	take(r, 0, n);
	/* The same limit is valid together with a size that it fits. */
	assert_int_equal(ibv_modify_srq(srq, &attr, BOTH), 0);
	expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	assert_int_equal(set_max_wr(srq, 10), 0);
	shrunk = srq_attr_of(srq).max_wr;
	assert_int_equal(set_max_wr(srq, 2 * n), 0);
	refuse_whole(r, srq, (struct ibv_srq_attr){.max_wr = 10, .srq_limit = shrunk + 1}, BOTH);
	expect_no_event(r);
	destroy_pair_and_srq(r, srq);
}

static void
failing_raises_no_event(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 10, 1);
	uint32_t max = (uint32_t)device_attr(r).orig_attr.max_srq_wr;

	/* It is empty: any limit that was set, though but for a moment, would be reached. */
	refuse_whole(r, srq, (struct ibv_srq_attr){.max_wr = max + 1, .srq_limit = 3}, BOTH);
	refuse_whole(r, srq, (struct ibv_srq_attr){.max_wr = 0, .srq_limit = 3}, BOTH);
	refuse_whole(r, srq, (struct ibv_srq_attr){.max_wr = 20, .srq_limit = 3}, BOTH | 1 << 7);
	refuse_whole(r, srq, (struct ibv_srq_attr){.srq_limit = UINT32_MAX}, IBV_SRQ_LIMIT);
	expect_no_event(r);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

#ifdef CAN_RUN_OUT_OF_MEMORY
/* The attributes are valid; what fails is the device. */
static void
lack_of_memory_changes_nothing(struct rig *r)
{
	struct ibv_device_attr dev = device_attr(r).orig_attr;
	struct ibv_srq *srq = make_srq(r, 10, (uint32_t)dev.max_srq_sge);
	struct ibv_srq_attr attr = {.max_wr = (uint32_t)dev.max_srq_wr, .srq_limit = 9}, before;
	int i;

	need_resize(r);
	fill_srq(r, srq, 0, 10);
	assert_int_equal(set_limit(srq, 5), 0);
	before = srq_attr_of(srq);
	pair_on_srq(r, srq);
	run_out_of_memory();
	for (i = 0; i < 10; i++)
		expect_errno(ibv_modify_srq(srq, &attr, BOTH), ENOMEM);
	expect_attr(srq, before);
	take(r, 0, 5);
	expect_no_event(r);
	take(r, 5, 1);
	expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	have_memory_again();
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	take(r, 6, 4);
	destroy_pair_and_srq(r, srq);
}
#endif

static void
device_that_cannot_resize_says_so(struct rig *r)
{
	bool can = device_attr(r).orig_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE;
	struct ibv_srq *srq = full_srq(r, 10);
	struct ibv_srq_attr before = srq_attr_of(srq);

	if (can) {
		assert_int_equal(set_max_wr(srq, 2 * before.max_wr), 0);
		assert_in_range(srq_attr_of(srq).max_wr, 2 * before.max_wr, UINT32_MAX);
	} else {
		assert_errno_value(set_max_wr(srq, 2 * before.max_wr));
		expect_attr(srq, before);
	}
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
bit_tells_whether_it_can_be_resized(struct rig *r)
{
	struct ibv_device_attr_ex dev = device_attr(r);
	struct ibv_srq *srq = make_srq(r, 10, 1);
	bool bit = dev.orig_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE;

	assert_int_equal(set_max_wr(srq, srq_attr_of(srq).max_wr + 1) == 0, bit);
	assert_int_equal(!!(dev.device_cap_flags_ex & IBV_DEVICE_SRQ_RESIZE), bit);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
event_comes_when_the_number_drops_below(struct rig *r)
{
	uint32_t limit;

	for (limit = 1; limit <= 10; limit++) {
		struct ibv_srq *srq = full_srq(r, 10);

		assert_int_equal(set_limit(srq, limit), 0);
		pair_on_srq(r, srq);
		take(r, 0, 10 - limit);
		assert_int_equal(srq_attr_of(srq).srq_limit, limit);
		expect_no_event(r);
		take(r, 10 - limit, 1);
		expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
		assert_int_equal(srq_attr_of(srq).srq_limit, 0);
		destroy_pair_and_srq(r, srq);
	}
}

static void
event_comes_once(struct rig *r)
{
	struct ibv_srq *srq = full_srq(r, 10);
	uint64_t i;

	assert_int_equal(set_limit(srq, 5), 0);
	pair_on_srq(r, srq);
	take(r, 0, 10);
	/* To and fro across the limit: it is not armed any longer. */
	for (i = 1; i <= 3; i++) {
		fill_srq(r, srq, 10 * i, 10);
		take(r, 10 * i, 10);
	}
	expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	expect_no_event(r);
	destroy_pair_and_srq(r, srq);
}

static void
event_comes_once_for_each_arming(struct rig *r)
{
	struct ibv_srq *srq = full_srq(r, 10);
	uint64_t i;

	pair_on_srq(r, srq);
	/* They are read afterwards; none swallows another. */
	for (i = 0; i < 20; i++) {
		assert_int_equal(set_limit(srq, 10), 0);
		take(r, i, 1);
		assert_int_equal(post_srq(r, srq, 10 + i), 0);
	}
	for (i = 0; i < 20; i++)
		expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	expect_no_event(r);
	destroy_pair_and_srq(r, srq);
}

/* A program that arms it too late would otherwise never learn that it has to post. */
static void
event_comes_at_once_when_it_is_below_already(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 10, 1);
	uint32_t limit;

	for (limit = 1; limit <= 10; limit++) {
		assert_int_equal(set_limit(srq, limit), 0);
		expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
		assert_int_equal(srq_attr_of(srq).srq_limit, 0);
	}
	fill_srq(r, srq, 0, 4);
	assert_int_equal(set_limit(srq, 4), 0);
	expect_no_event(r);
	assert_int_equal(set_limit(srq, 5), 0);
	expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	expect_no_event(r);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
posting_moves_the_number_away_again(struct rig *r)
{
	struct ibv_srq *srq = full_srq(r, 10);

	assert_int_equal(set_limit(srq, 8), 0);
	pair_on_srq(r, srq);
	take(r, 0, 2);
	fill_srq(r, srq, 10, 2);
	take(r, 2, 2);
	expect_no_event(r);
	take(r, 4, 1);
	expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	destroy_pair_and_srq(r, srq);
}

static void
each_srq_has_its_own(struct rig *r)
{
	struct ibv_srq *srq = full_srq(r, 10), *other = full_srq(r, 10);

	assert_int_equal(set_limit(srq, 9), 0);
	assert_int_equal(set_limit(other, 9), 0);
	pair_on_srq(r, other);
	take(r, 0, 10);
	expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, other);
	expect_no_event(r);
	assert_int_equal(srq_attr_of(srq).srq_limit, 9);
	destroy_pair_and_srq(r, other);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
arming_under_load_gives_one_event_each(struct rig *r)
{
	srq_load(r, LOAD_LIMIT);
}

static void
arming_and_resizing_under_load(struct rig *r)
{
	need_resize(r);
	srq_load(r, LOAD_LIMIT | LOAD_RESIZE);
}

#define MODIFIES \
	"ibv_modify_srq() modifies the attributes of SRQ srq with the attributes in srq_attr " \
	"according to the mask srq_attr_mask."
#define MAX_WR "max_wr; /* maximum number of outstanding work requests (WRs) in the SRQ */"
#define MASK "The argument is either 0 or the bitwise OR of one or more of the following flags:"
#define RESIZE "IBV_SRQ_MAX_WR Resize the SRQ"
#define LIMIT "IBV_SRQ_LIMIT Set the SRQ limit"
#define NONE "If any of the modify attributes is invalid, none of the attributes will be modified."
#define ARMS \
	"Modifying the srq_limit arms the SRQ to produce an IBV_EVENT_SRQ_LIMIT_REACHED \"low " \
	"watermark\" asynchronous event once the number of WRs in the SRQ drops below srq_limit."

static const struct rule rules[] = {
	RULE("int ibv_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr, int "
	     "srq_attr_mask);",
		NULL, prototype),
	RULE(MODIFIES, "the mask decides", mask_decides_what_is_modified),
	RULE(MODIFIES, "other SRQs are left alone", other_srqs_are_left_alone),
	RULE("The argument srq_attr is an ibv_srq_attr struct, as defined in "
	     "<infiniband/verbs.h>.",
		"nothing beyond its end is touched", struct_is_read_within_its_bounds),
	RULE(MAX_WR, "as many fit afterwards, and not one more", as_many_receives_fit_afterwards),
	RULE(MAX_WR, "the struct tells the actual size", struct_tells_the_actual_size),
	RULE("max_sge; /* number of scatter elements per WR (irrelevant for ibv_modify_srq) */",
		"it is not looked at, and stays", number_of_elements_stays),
	RULE("srq_limit; /* the limit value of the SRQ */", "up to the size, and not more",
		limit_up_to_the_size_is_valid),
	RULE("The argument srq_attr_mask specifies the SRQ attributes to be modified.",
		"others are not looked at", fields_without_a_bit_are_not_looked_at),
	RULE(MASK, "0 modifies nothing", empty_mask_modifies_nothing),
	RULE(MASK, "other bits are refused", other_bits_are_refused),
	RULE(RESIZE, "what is posted stays, in order", resizing_keeps_what_is_posted),
	RULE(RESIZE, "below what is posted is refused", below_what_is_posted_is_refused),
	RULE(RESIZE, "up to the device's limit, and not more", size_up_to_the_devices_is_valid),
	RULE(RESIZE, "the limit stays armed", resizing_keeps_the_limit_armed),
	RULE(RESIZE, "a message under way arrives", resizing_leaves_messages_under_way_alone),
	RULE(RESIZE, "under load nothing is lost", resizing_under_load_loses_nothing),
	RULE(LIMIT, "another replaces it", limit_is_set_and_replaced),
	RULE(LIMIT, "0 disarms", zero_disarms),
	RULE("ibv_modify_srq() returns 0 on success, or the value of errno on failure (which "
	     "indicates the failure reason).",
		NULL, zero_or_the_errno_itself),
	RULE(NONE, "whichever part it is", invalid_parts_change_nothing),
	RULE(NONE, "a limit above the new size", limit_above_the_new_size_changes_nothing),
	RULE(NONE, "nor is an event raised", failing_raises_no_event),
#ifdef CAN_RUN_OUT_OF_MEMORY
	RULE(NONE, "nor when there is no memory", lack_of_memory_changes_nothing),
#endif
	RULE("Not all devices support resizing SRQs.", "either it works or it says so",
		device_that_cannot_resize_says_so),
	RULE("To check if a device supports it, check if the IBV_DEVICE_SRQ_RESIZE bit is set in "
	     "the device capabilities flags.",
		NULL, bit_tells_whether_it_can_be_resized),
	RULE(ARMS, "exactly there", event_comes_when_the_number_drops_below),
	RULE(ARMS, "one event", event_comes_once),
	RULE(ARMS, "one event for each arming", event_comes_once_for_each_arming),
	RULE(ARMS, "at once when it is below already",
		event_comes_at_once_when_it_is_below_already),
	RULE(ARMS, "posting counts", posting_moves_the_number_away_again),
	RULE(ARMS, "each SRQ has its own", each_srq_has_its_own),
	RULE(ARMS, "under load, one for each arming", arming_under_load_gives_one_event_each),
	RULE(ARMS, "under load, while it is resized", arming_and_resizing_under_load),
	LAST_RULE,
};

int
main(int argc, char **argv)
{
	return run_rules(argc, argv, rules);
}
