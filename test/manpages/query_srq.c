/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_query_srq(3), sentence by sentence.
 */
#include <sys/wait.h>
#include <unistd.h>

#include "srq_load.h"

static void
set_limit(struct ibv_srq *srq, uint32_t limit)
{
	struct ibv_srq_attr attr = {.srq_limit = limit};

	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT), 0);
}

static void
prototype(struct rig *r)
{
	int (*fn)(struct ibv_srq * srq, struct ibv_srq_attr * srq_attr) = ibv_query_srq;
	struct ibv_srq *srq = make_srq(r, 4, 1);
	struct ibv_srq_attr attr;

	assert_int_equal(fn(srq, &attr), 0);
	assert_in_range(attr.max_wr, 4, UINT32_MAX);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
each_srq_has_its_own(struct rig *r)
{
	struct ibv_srq *a = make_srq(r, 4, 1), *b = make_srq(r, 100, 3);

	fill_srq(r, b, 0, 50);
	set_limit(b, 40);
	assert_in_range(srq_attr_of(a).max_wr, 4, 99);
	assert_int_equal(srq_attr_of(a).srq_limit, 0);
	assert_in_range(srq_attr_of(b).max_wr, 100, UINT32_MAX);
	assert_in_range(srq_attr_of(b).max_sge, 3, UINT32_MAX);
	assert_int_equal(srq_attr_of(b).srq_limit, 40);
	assert_int_equal(ibv_destroy_srq(a), 0);
	assert_int_equal(ibv_destroy_srq(b), 0);
}

static void
querying_changes_nothing(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 10, 1);
	uint64_t i;
	int k;

	pair_on_srq(r, srq);
	fill_srq(r, srq, 0, 10);
	set_limit(srq, 5);
	for (i = 0; i < 10; i++) {
		for (k = 0; k < 10; k++)
			assert_int_equal(srq_attr_of(srq).srq_limit, i < 6 ? 5 : 0);
		assert_int_equal(send_one(r, r->a), i);
	}
	expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	expect_no_event(r);
	destroy_pair_and_srq(r, srq);
}

static void
under_load_the_attributes_fit_together(struct rig *r)
{
	bool can = device_attr(r).orig_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE;

	srq_load(r, LOAD_QUERY | LOAD_LIMIT | (can ? LOAD_RESIZE : 0));
}

static void
struct_is_written_within_its_bounds(struct rig *r)
{
	struct ibv_srq_attr *attr = at_guard(sizeof(*attr));
	struct ibv_srq *srq = make_srq(r, 4, 1);

	memset(attr, 0xff, sizeof(*attr));
	assert_int_equal(ibv_query_srq(srq, attr), 0);
	/* All of it is written. */
	assert_int_not_equal(attr->max_wr, UINT32_MAX);
	assert_int_not_equal(attr->max_sge, UINT32_MAX);
	assert_int_not_equal(attr->srq_limit, UINT32_MAX);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
as_many_receives_fit_as_it_says(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 37, 1);
	uint32_t n = srq_attr_of(srq).max_wr;

	fill_srq(r, srq, 0, n);
	expect_errno(post_srq(r, srq, 0), ENOMEM);
	/* It is the maximum, and not what is left. */
	assert_int_equal(srq_attr_of(srq).max_wr, n);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
size_follows_a_modification(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 10, 1);
	struct ibv_srq_attr attr = {.max_wr = 1000};

	if (!(device_attr(r).orig_attr.device_cap_flags & IBV_DEVICE_SRQ_RESIZE))
		device_lacks("SRQ that can be resized");
	assert_int_equal(ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
	assert_in_range(srq_attr_of(srq).max_wr, 1000, UINT32_MAX);
	fill_srq(r, srq, 0, srq_attr_of(srq).max_wr);
	expect_errno(post_srq(r, srq, 0), ENOMEM);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
as_many_elements_fit_as_it_says(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 4, 2);
	struct ibv_sge sge[64] = {0};
	struct ibv_recv_wr *bad, wr = {.sg_list = sge};

	wr.num_sge = (int)srq_attr_of(srq).max_sge;
	assert_in_range(wr.num_sge, 2, 63);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	wr.num_sge++;
	expect_errno(ibv_post_srq_recv(srq, &wr, &bad), EINVAL);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
limit_is_what_was_set(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 10, 1);
	uint32_t i;

	fill_srq(r, srq, 0, 10);
	for (i = 0; i <= 10; i++) {
		set_limit(srq, i);
		assert_int_equal(srq_attr_of(srq).srq_limit, i);
	}
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* There is hardly a way to make a query fail. A child has no part in its parent's device; what it
 * is told is an errno, if it is not told the truth. */
static void
zero_or_the_errno_itself(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 10, 1);
	struct ibv_srq_attr attr, mine = srq_attr_of(srq);
	int status, rc;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		memset(&attr, 0xff, sizeof(attr));
		rc = ibv_query_srq(srq, &attr);
		_exit(rc ? rc < 0 || rc > 200 : attr.max_wr != mine.max_wr);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(ibv_query_srq(srq, &attr), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
not_armed_at_first(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 10, 1);
	uint64_t i;

	assert_int_equal(srq_attr_of(srq).srq_limit, 0);
	pair_on_srq(r, srq);
	fill_srq(r, srq, 0, 10);
	for (i = 0; i < 10; i++)
		assert_int_equal(send_one(r, r->a), i);
	expect_no_event(r);
	destroy_pair_and_srq(r, srq);
}

static void
no_longer_armed_when_it_was_reached(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 10, 1);
	uint64_t i;

	pair_on_srq(r, srq);
	fill_srq(r, srq, 0, 10);
	set_limit(srq, 7);
	for (i = 0; i < 4; i++) {
		assert_int_equal(srq_attr_of(srq).srq_limit, 7);
		assert_int_equal(send_one(r, r->a), i);
	}
	/* Whether or not the event has been read. */
	assert_int_equal(srq_attr_of(srq).srq_limit, 0);
	expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	assert_int_equal(srq_attr_of(srq).srq_limit, 0);
	destroy_pair_and_srq(r, srq);
}

static void
until_it_is_rearmed(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 10, 1);
	uint64_t i, round;

	pair_on_srq(r, srq);
	for (round = 0; round < 5; round++) {
		fill_srq(r, srq, 0, 10);
		for (i = 0; i < 5; i++)
			assert_int_equal(send_one(r, r->b), i);
		assert_int_equal(srq_attr_of(srq).srq_limit, 0);
		expect_no_event(r);
		set_limit(srq, 4);
		assert_int_equal(srq_attr_of(srq).srq_limit, 4);
		for (; i < 10; i++)
			assert_int_equal(send_one(r, r->b), i);
		assert_int_equal(srq_attr_of(srq).srq_limit, 0);
		expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
		expect_no_event(r);
	}
	destroy_pair_and_srq(r, srq);
}

static void
when_it_was_disarmed(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 10, 1);
	uint64_t i;

	pair_on_srq(r, srq);
	fill_srq(r, srq, 0, 10);
	set_limit(srq, 7);
	set_limit(srq, 0);
	assert_int_equal(srq_attr_of(srq).srq_limit, 0);
	for (i = 0; i < 10; i++)
		assert_int_equal(send_one(r, r->a), i);
	expect_no_event(r);
	destroy_pair_and_srq(r, srq);
}

#define GETS \
	"ibv_query_srq() gets the attributes of the SRQ srq and returns them through the pointer " \
	"srq_attr."
#define MAX_WR "max_wr; /* maximum number of outstanding work requests (WRs) in the SRQ */"
#define ZERO \
	"If the value returned for srq_limit is 0, then the SRQ limit reached (\"low " \
	"watermark\") " \
	"event is not (or no longer) armed, and no asynchronous events will be generated until " \
	"the event is rearmed."

static const struct rule rules[] = {
	RULE("int ibv_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *srq_attr);", NULL,
		prototype),
	RULE(GETS, "of this one", each_srq_has_its_own),
	RULE(GETS, "and changes nothing", querying_changes_nothing),
	RULE(GETS, "under load they fit together", under_load_the_attributes_fit_together),
	RULE("The argument srq_attr is an ibv_srq_attr struct, as defined in "
	     "<infiniband/verbs.h>.",
		"all of it is written, and nothing beyond", struct_is_written_within_its_bounds),
	RULE(MAX_WR, "as many fit", as_many_receives_fit_as_it_says),
	RULE(MAX_WR, "it follows a modification", size_follows_a_modification),
	RULE("max_sge; /* maximum number of scatter elements per WR */", NULL,
		as_many_elements_fit_as_it_says),
	RULE("srq_limit; /* the limit value of the SRQ */", NULL, limit_is_what_was_set),
	RULE("ibv_query_srq() returns 0 on success, or the value of errno on failure (which "
	     "indicates the failure reason).",
		NULL, zero_or_the_errno_itself),
	RULE(ZERO, "so at first", not_armed_at_first),
	RULE(ZERO, "when it was reached", no_longer_armed_when_it_was_reached),
	RULE(ZERO, "when it was disarmed", when_it_was_disarmed),
	RULE(ZERO, "and then again and again", until_it_is_rearmed),
	LAST_RULE,
};

int
main(int argc, char **argv)
{
	return run_rules(argc, argv, rules);
}
