/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_create_srq(3), sentence by sentence; what it says of ibv_destroy_srq() is in destroy_srq.c.
 */
#include <stdlib.h>

#include "rules.h"
#include "srq_util.h"

static struct ibv_srq_init_attr
asking(uint32_t max_wr, uint32_t max_sge)
{
	return (struct ibv_srq_init_attr){.attr = {.max_wr = max_wr, .max_sge = max_sge}};
}

static void
prototype(struct rig *r)
{
	struct ibv_srq *(*fn)(struct ibv_pd * pd, struct ibv_srq_init_attr * srq_init_attr) =
		ibv_create_srq;
	struct ibv_srq_init_attr init = asking(1, 1);
	struct ibv_srq *srq = fn(r->pd, &init);

	assert_non_null(srq);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
several_queue_pairs_take_from_it(struct rig *r)
{
	struct ibv_srq *srq = make_srq(r, 30, 1);
	uint64_t i;

	pair_on_srq(r, srq);
	fill_srq(r, srq, 0, 30);
	/* Whoever gets a message takes the oldest receive. */
	for (i = 0; i < 30; i++)
		assert_int_equal(send_one(r, i % 3 ? r->a : r->b), i);
	destroy_pair_and_srq(r, srq);
}

static void
belongs_to_the_pd(struct rig *r)
{
	struct ibv_pd *pd = ibv_alloc_pd(r->ctx);
	struct ibv_srq_init_attr init = asking(1, 1);
	struct ibv_srq *srq = ibv_create_srq(pd, &init);

	assert_non_null(srq);
	assert_ptr_equal(srq->pd, pd);
	assert_ptr_equal(srq->context, r->ctx);
	expect_errno(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

/* A queue pair of another protection domain receives by the domain of the SRQ. */
static void
its_pd_rules_over_the_receives(struct rig *r)
{
	struct ibv_pd *pd = ibv_alloc_pd(r->ctx);
	char *buf = aligned_alloc(4096, 4096);
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, 4096, IBV_ACCESS_LOCAL_WRITE);
	struct ibv_srq_init_attr init = asking(4, 1);
	struct ibv_srq *srq = ibv_create_srq(pd, &init);
	struct ibv_sge sge = {.addr = (uintptr_t)buf, .length = 8, .lkey = mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = 7, .sg_list = &sge, .num_sge = 1};
	struct ibv_wc wc;
	int i;

	pair_on_srq(r, srq);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	memcpy(r->buf, "into it", 8);
	assert_int_equal(send_one(r, r->a), 7);
	assert_string_equal(buf, "into it");
	/* A key of the queue pair's own domain is a foreign one here. */
	assert_int_equal(post_srq(r, srq, 8), 0);
	assert_int_equal(post_send(r, r->a, 9, IBV_WR_SEND, r->buf, 8), 0);
	for (i = 0; i < 2; i++) {
		assert_true(poll_for(r->cq, &wc));
		assert_int_equal(
			wc.status, wc.wr_id == 8 ? IBV_WC_LOC_PROT_ERR : IBV_WC_REM_OP_ERR);
	}
	destroy_pair_and_srq(r, srq);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	free(buf);
}

static void
as_many_as_the_device_says_exist_at_once(struct rig *r)
{
	int n = device_attr(r).orig_attr.max_srq, i;
	struct ibv_srq **srqs;

	/* Some hardware has millions. */
	n = n < 20000 ? n : 20000;
	srqs = calloc((size_t)n, sizeof(*srqs));
	assert_non_null(srqs);
	for (i = 0; i < n; i++) {
		srqs[i] = make_srq(r, 1, 1);
		assert_non_null(srqs[i]);
	}
	assert_int_equal(post_srq(r, srqs[n - 1], 0), 0);
	for (i = 0; i < n; i++)
		assert_int_equal(ibv_destroy_srq(srqs[i]), 0);
	free(srqs);
}

static void
struct_is_read_and_written_within_its_bounds(struct rig *r)
{
	struct ibv_srq_init_attr *init = at_guard(sizeof(*init));
	struct ibv_srq *srq;

	*init = asking(3, 1);
	srq = ibv_create_srq(r->pd, init);
	assert_non_null(srq);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	/* It is the caller's, and not needed any longer. */
	*init = asking(3, 1);
	srq = ibv_create_srq(r->pd, init);
	memset(init, 0xff, sizeof(*init));
	assert_int_equal(post_srq(r, srq, 0), 0);
	assert_true(srq_attr_of(srq).max_wr >= 3);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
context_is_the_programs(struct rig *r)
{
	void *contexts[] = {r, NULL, (void *)1, (void *)UINTPTR_MAX};
	size_t i;

	for (i = 0; i < sizeof(contexts) / sizeof(contexts[0]); i++) {
		struct ibv_srq_init_attr init = {
			.srq_context = contexts[i], .attr = {.max_wr = 1, .max_sge = 1}};
		struct ibv_srq *srq = ibv_create_srq(r->pd, &init);

		assert_non_null(srq);
		assert_ptr_equal(srq->srq_context, contexts[i]);
		assert_ptr_equal(init.srq_context, contexts[i]);
		assert_int_equal(ibv_destroy_srq(srq), 0);
	}
}

static void
attributes_are_those_that_a_query_gives(struct rig *r)
{
	struct ibv_srq_init_attr init = asking(100, 3);
	struct ibv_srq *srq = ibv_create_srq(r->pd, &init);
	struct ibv_srq_attr attr;

	assert_non_null(srq);
	attr = srq_attr_of(srq);
	assert_int_equal(attr.max_wr, init.attr.max_wr);
	assert_int_equal(attr.max_sge, init.attr.max_sge);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
as_many_receives_fit_as_were_granted(struct rig *r)
{
	static const uint32_t sizes[] = {1, 2, 3, 5, 8, 100, 1025};
	struct ibv_srq_init_attr init;
	struct ibv_srq *srq;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		init = asking(sizes[i], 1);
		srq = ibv_create_srq(r->pd, &init);
		assert_non_null(srq);
		fill_srq(r, srq, 0, init.attr.max_wr);
		expect_errno(post_srq(r, srq, 0), ENOMEM);
		assert_int_equal(ibv_destroy_srq(srq), 0);
	}
}

static void
a_list_is_posted_as_far_as_it_fits(struct rig *r)
{
	struct ibv_srq_init_attr init = asking(5, 1);
	struct ibv_srq *srq = ibv_create_srq(r->pd, &init);
	uint32_t n = init.attr.max_wr, i;
	struct ibv_recv_wr *wr = calloc(n + 2, sizeof(*wr)), *bad = NULL;

	assert_non_null(srq);
	for (i = 0; i < n + 2; i++) {
		wr[i].wr_id = i;
		wr[i].next = i < n + 1 ? &wr[i + 1] : NULL;
	}
	expect_errno(ibv_post_srq_recv(srq, wr, &bad), ENOMEM);
	assert_ptr_equal(bad, &wr[n]);
	free(wr);
	/* Those before it are there; they have no SGE, so only empty messages fit. */
	pair_on_srq(r, srq);
	for (i = 0; i < n; i++) {
		struct ibv_wc wc;

		assert_int_equal(post_send(r, r->a, 1000, IBV_WR_SEND, r->buf, 0), 0);
		do {
			assert_true(poll_for(r->cq, &wc));
			assert_int_equal(wc.status, IBV_WC_SUCCESS);
		} while (wc.opcode != IBV_WC_RECV);
		assert_int_equal(wc.wr_id, i);
	}
	destroy_pair_and_srq(r, srq);
}

static void
what_was_taken_makes_room(struct rig *r)
{
	struct ibv_srq_init_attr init = asking(1, 1);
	struct ibv_srq *srq = ibv_create_srq(r->pd, &init);
	uint64_t i, n = init.attr.max_wr;

	assert_non_null(srq);
	pair_on_srq(r, srq);
	fill_srq(r, srq, 0, n);
	for (i = 0; i < 100; i++) {
		expect_errno(post_srq(r, srq, 0), ENOMEM);
		assert_int_equal(send_one(r, r->a), i);
		assert_int_equal(post_srq(r, srq, n + i), 0);
	}
	destroy_pair_and_srq(r, srq);
}

static void
more_than_the_device_has_is_refused(struct rig *r)
{
	struct ibv_device_attr dev = device_attr(r).orig_attr;
	struct ibv_srq *srq;

	expect_null(make_srq(r, (uint32_t)dev.max_srq_wr + 1, 1), EINVAL);
	expect_null(make_srq(r, UINT32_MAX, 1), EINVAL);
	expect_null(make_srq(r, 1u << 31, 1), EINVAL);
	expect_null(make_srq(r, 0, 1), EINVAL);
	srq = make_srq(r, (uint32_t)dev.max_srq_wr, 1);
	assert_non_null(srq);
	fill_srq(r, srq, 0, (uint64_t)dev.max_srq_wr);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

/* Posts a receive of n SGEs of 4 bytes each, from the last to the first place. */
static int
post_scattered(struct rig *r, struct ibv_srq *srq, uint32_t n)
{
	struct ibv_sge *sge = calloc(n, sizeof(*sge));
	struct ibv_recv_wr *bad, wr = {.wr_id = n, .sg_list = sge, .num_sge = (int)n};
	uint32_t i;
	int rc;

	assert_non_null(sge);
	for (i = 0; i < n; i++) {
		sge[i].addr = (uintptr_t)r->buf + BUF_SIZE / 2 + 4 * (n - 1 - i);
		sge[i].length = 4;
		sge[i].lkey = r->mr->lkey;
	}
	rc = ibv_post_srq_recv(srq, &wr, &bad);
	if (rc)
		assert_ptr_equal(bad, &wr);
	free(sge);
	return rc;
}

static void
each_number_of_elements_up_to_it_is_filled(struct rig *r)
{
	uint32_t max = (uint32_t)device_attr(r).orig_attr.max_srq_sge, n, i;
	struct ibv_srq *srq = make_srq(r, 1, max);
	uint32_t *from = (uint32_t *)r->buf, *to = (uint32_t *)(r->buf + BUF_SIZE / 2);

	assert_non_null(srq);
	pair_on_srq(r, srq);
	for (n = 1; n <= max; n++) {
		for (i = 0; i < n; i++)
			from[i] = n << 16 | i;
		assert_int_equal(post_scattered(r, srq, n), 0);
		assert_int_equal(post_send(r, r->a, 1, IBV_WR_SEND, from, 4 * n), 0);
		assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
		assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
		for (i = 0; i < n; i++)
			assert_int_equal(to[n - 1 - i], n << 16 | i);
	}
	destroy_pair_and_srq(r, srq);
}

static void
more_elements_than_granted_are_refused(struct rig *r)
{
	uint32_t max = (uint32_t)device_attr(r).orig_attr.max_srq_sge, n;

	for (n = 0; n <= max; n++) {
		struct ibv_srq_init_attr init = asking(4, n);
		struct ibv_srq *srq = ibv_create_srq(r->pd, &init);

		assert_non_null(srq);
		if (init.attr.max_sge)
			assert_int_equal(post_scattered(r, srq, init.attr.max_sge), 0);
		expect_errno(post_scattered(r, srq, init.attr.max_sge + 1), EINVAL);
		assert_int_equal(ibv_destroy_srq(srq), 0);
	}
	expect_null(make_srq(r, 1, max + 1), EINVAL);
	expect_null(make_srq(r, 1, UINT32_MAX), EINVAL);
}

static void
limit_is_not_looked_at(struct rig *r)
{
	static const uint32_t limits[] = {1, 2, 4, 5, UINT32_MAX};
	size_t i, k;

	for (i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct ibv_srq_init_attr init = asking(4, 1);
		struct ibv_srq *srq;

		init.attr.srq_limit = limits[i];
		srq = ibv_create_srq(r->pd, &init);
		assert_non_null(srq);
		assert_int_equal(srq_attr_of(srq).srq_limit, 0);
		pair_on_srq(r, srq);
		fill_srq(r, srq, 0, 4);
		for (k = 0; k < 4; k++)
			assert_int_equal(send_one(r, r->a), k);
		expect_no_event(r);
		destroy_pair_and_srq(r, srq);
	}
}

static void
struct_tells_what_was_made(struct rig *r)
{
	struct ibv_srq_init_attr init = {.srq_context = r, .attr = {.max_wr = 3, .max_sge = 2}};
	struct ibv_srq *srq = ibv_create_srq(r->pd, &init);

	assert_non_null(srq);
	assert_int_equal(init.attr.max_wr, srq_attr_of(srq).max_wr);
	assert_int_equal(init.attr.max_sge, srq_attr_of(srq).max_sge);
	fill_srq(r, srq, 0, init.attr.max_wr);
	expect_errno(post_srq(r, srq, 0), ENOMEM);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
struct_is_left_alone_by_failure(struct rig *r)
{
	struct ibv_srq_init_attr init = asking(UINT32_MAX, 3), before;

	init.srq_context = r;
	init.attr.srq_limit = 9;
	before = init;
	assert_null(ibv_create_srq(r->pd, &init));
	assert_memory_equal(&init, &before, sizeof(init));
}

static void
values_are_at_least_those_requested(struct rig *r)
{
	struct ibv_device_attr dev = device_attr(r).orig_attr;
	uint32_t wr, sge = 1;

	for (wr = 1; wr <= (uint32_t)dev.max_srq_wr; wr += 1 + wr / 3) {
		struct ibv_srq_init_attr init = asking(wr, sge);
		struct ibv_srq *srq = ibv_create_srq(r->pd, &init);

		assert_non_null(srq);
		assert_in_range(init.attr.max_wr, wr, dev.max_srq_wr);
		assert_in_range(init.attr.max_sge, sge, dev.max_srq_sge);
		assert_int_equal(ibv_destroy_srq(srq), 0);
		sge = sge % (uint32_t)dev.max_srq_sge + 1;
	}
}

static void
null_says_why(struct rig *r)
{
	struct ibv_device_attr dev = device_attr(r).orig_attr;
	struct ibv_srq *srq;
	int i;

	for (i = 0; i < 1000; i++) {
		expect_null(make_srq(r, 0, 1), EINVAL);
		expect_null(make_srq(r, 1, (uint32_t)dev.max_srq_sge + 1), EINVAL);
	}
	/* Failures leave nothing behind: the PD is not in use. */
	srq = make_srq(r, 1, 1);
	assert_non_null(srq);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

#ifdef CAN_RUN_OUT_OF_MEMORY
static void
lack_of_memory_is_told(struct rig *r)
{
	struct ibv_device_attr dev = device_attr(r).orig_attr;
	uint32_t wr = (uint32_t)dev.max_srq_wr, sge = (uint32_t)dev.max_srq_sge;
	struct ibv_srq *srq;
	int i;

	run_out_of_memory();
	for (i = 0; i < 10; i++)
		expect_null(make_srq(r, wr, sge), ENOMEM);
	have_memory_again();
	srq = make_srq(r, wr, sge);
	assert_non_null(srq);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}
#endif

#define CREATES \
	"ibv_create_srq() creates a shared receive queue (SRQ) associated with the protection " \
	"domain pd."
#define STRUCT \
	"The argument srq_init_attr is an ibv_srq_init_attr struct, as defined in " \
	"<infiniband/verbs.h>."
#define MAX_WR "max_wr; /* Requested max number of outstanding work requests (WRs) in the SRQ */"
#define MAX_SGE "max_sge; /* Requested max number of scatter elements per WR */"
#define RETURNS \
	"ibv_create_srq() returns a pointer to the created SRQ, or NULL if the request fails."
#define UPDATES \
	"The function ibv_create_srq() will update the srq_init_attr struct with the original " \
	"values of the SRQ that was created;"

static const struct rule rules[] = {
	RULE("struct ibv_srq *ibv_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr "
	     "*srq_init_attr);",
		NULL, prototype),
	RULE(CREATES, "several queue pairs take from it", several_queue_pairs_take_from_it),
	RULE(CREATES, "it belongs to the domain, which is busy", belongs_to_the_pd),
	RULE(CREATES, "receives are bound by its domain", its_pd_rules_over_the_receives),
	RULE(CREATES, "as many as the device says exist at once",
		as_many_as_the_device_says_exist_at_once),
	RULE(STRUCT, "nothing beyond its end is touched",
		struct_is_read_and_written_within_its_bounds),
	RULE("srq_context; /* Associated context of the SRQ */", NULL, context_is_the_programs),
	RULE("attr; /* SRQ attributes */", "a query gives them",
		attributes_are_those_that_a_query_gives),
	RULE(MAX_WR, "as many fit, and not one more", as_many_receives_fit_as_were_granted),
	RULE(MAX_WR, "a list is posted as far as it fits", a_list_is_posted_as_far_as_it_fits),
	RULE(MAX_WR, "what was taken makes room", what_was_taken_makes_room),
	RULE(MAX_WR, "none, and more than the device has, is refused",
		more_than_the_device_has_is_refused),
	RULE(MAX_SGE, "each number up to it is filled in order",
		each_number_of_elements_up_to_it_is_filled),
	RULE(MAX_SGE, "more is refused", more_elements_than_granted_are_refused),
	RULE("srq_limit; /* The limit value of the SRQ (irrelevant for ibv_create_srq) */",
		"it is not looked at, and nothing is armed", limit_is_not_looked_at),
	RULE(UPDATES, "it tells what was made", struct_tells_what_was_made),
	RULE(UPDATES, "when none was created it is left alone", struct_is_left_alone_by_failure),
	RULE("the values of max_wr and max_sge will be greater than or equal to the values "
	     "requested.",
		NULL, values_are_at_least_those_requested),
	RULE(RETURNS, "with an errno, and nothing left behind", null_says_why),
#ifdef CAN_RUN_OUT_OF_MEMORY
	RULE(RETURNS, "when there is no memory", lack_of_memory_is_told),
#endif
	LAST_RULE,
};

int
main(int argc, char **argv)
{
	return run_rules(argc, argv, rules);
}
