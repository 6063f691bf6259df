/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_create_srq_ex(3), sentence by sentence; what it says of ibv_destroy_srq() is in
 * destroy_srq.c.
 */
#include "rules.h"
#include "srq_util.h"
#include "xrc_util.h"

static void
need_xrc(struct rig *r)
{
	if (!(device_attr(r).orig_attr.device_cap_flags & IBV_DEVICE_XRC))
		device_lacks("XRC");
}

static struct ibv_srq_init_attr_ex
basic(struct rig *r)
{
	return (struct ibv_srq_init_attr_ex){
		.srq_context = r,
		.attr = {.max_wr = 8, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD,
		.srq_type = IBV_SRQT_BASIC,
		.pd = r->pd,
	};
}

/* Makes it, which must succeed, and destroys it. */
static void
accept(struct rig *r, struct ibv_srq_init_attr_ex *attr)
{
	struct ibv_srq *srq = ibv_create_srq_ex(r->ctx, attr);

	assert_non_null(srq);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
refuse(struct rig *r, struct ibv_srq_init_attr_ex attr)
{
	expect_null(ibv_create_srq_ex(r->ctx, &attr), EINVAL);
}

/* What the device does not know, and what nobody knows. */
static void
refuse_unknown(struct rig *r, struct ibv_srq_init_attr_ex attr)
{
	errno = 0;
	assert_null(ibv_create_srq_ex(r->ctx, &attr));
	assert_true(errno == EOPNOTSUPP || errno == EINVAL);
}

static void
prototype(struct rig *r)
{
	struct ibv_srq *(*fn)(struct ibv_context * context,
		struct ibv_srq_init_attr_ex * srq_init_attr_ex) = ibv_create_srq_ex;
	struct ibv_srq_init_attr_ex attr = basic(r);
	struct ibv_srq *srq = fn(r->ctx, &attr);

	assert_non_null(srq);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
basic_mode_receives(struct rig *r)
{
	struct ibv_srq_init_attr_ex attr = basic(r);
	struct ibv_srq *srq = ibv_create_srq_ex(r->ctx, &attr);
	uint64_t i;

	assert_non_null(srq);
	pair_on_srq(r, srq);
	fill_srq(r, srq, 0, 8);
	for (i = 0; i < 8; i++)
		assert_int_equal(send_one(r, i % 2 ? r->a : r->b), i);
	destroy_pair_and_srq(r, srq);
}

/* Of one message. @return wr_id of the receive */
static uint64_t
both_completions(struct ibv_cq *send_cq, struct ibv_cq *recv_cq)
{
	struct ibv_wc wc;

	assert_int_equal(next_status(send_cq), IBV_WC_SUCCESS);
	assert_true(poll_for(recv_cq, &wc));
	assert_int_equal(wc.status, IBV_WC_SUCCESS);
	assert_int_equal(wc.opcode, IBV_WC_RECV);
	return wc.wr_id;
}

static void
xrc_mode_receives(struct rig *r)
{
	struct ibv_srq_init_attr_ex attr;
	struct ibv_cq *cq = ibv_create_cq(r->ctx, 16, NULL, NULL, 0);
	struct xrc_pair p;
	struct ibv_srq *srq;
	uint64_t i;

	need_xrc(r);
	p = open_pair(r);
	attr = xrc_srq_attr(r, p.xrcd);
	attr.cq = cq;
	srq = ibv_create_srq_ex(r->ctx, &attr);
	assert_non_null(srq);
	for (i = 0; i < 8; i++) {
		assert_int_equal(post_srq(r, srq, i), 0);
		memset(r->buf, (int)i + 1, 32);
		assert_int_equal(send_to(r, p.from, number_of(srq)), 0);
		assert_int_equal(both_completions(r->cq, cq), i);
		assert_memory_equal(r->buf + BUF_SIZE / 2, r->buf, 32);
	}
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	close_pair(&p);
}

static void
struct_is_read_and_written_within_its_bounds(struct rig *r)
{
	struct ibv_srq_init_attr_ex *attr = at_guard(sizeof(*attr));
	struct ibv_xrcd *xrcd;

	*attr = basic(r);
	accept(r, attr);
	if (!(device_attr(r).orig_attr.device_cap_flags & IBV_DEVICE_XRC))
		return;
	xrcd = open_domain(r->ctx, -1, O_CREAT);
	*attr = xrc_srq_attr(r, xrcd);
	accept(r, attr);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

/* A program that was compiled against older headers knows of no tag matching. */
static void
fields_behind_those_that_are_valid_are_not_touched(struct rig *r)
{
	const size_t size = offsetof(struct ibv_srq_init_attr_ex, xrcd);
	struct ibv_srq_init_attr_ex *attr = at_guard(size), whole = basic(r);
	struct ibv_srq *srq;

	memcpy(attr, &whole, size);
	srq = ibv_create_srq_ex(r->ctx, attr);
	assert_non_null(srq);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
context_is_the_programs(struct rig *r)
{
	struct ibv_srq_init_attr_ex attr = basic(r);
	struct ibv_srq *srq = ibv_create_srq_ex(r->ctx, &attr);
	struct ibv_xrcd *xrcd;

	assert_non_null(srq);
	assert_ptr_equal(srq->srq_context, r);
	assert_ptr_equal(srq->context, r->ctx);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	if (!(device_attr(r).orig_attr.device_cap_flags & IBV_DEVICE_XRC))
		return;
	xrcd = open_domain(r->ctx, -1, O_CREAT);
	attr = xrc_srq_attr(r, xrcd);
	attr.srq_context = &attr;
	srq = ibv_create_srq_ex(r->ctx, &attr);
	assert_non_null(srq);
	assert_ptr_equal(srq->srq_context, &attr);
	assert_ptr_equal(srq->context, r->ctx);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void
attributes_are_those_that_a_query_gives(struct rig *r)
{
	struct ibv_srq_init_attr_ex attr = basic(r);
	struct ibv_srq *srq = ibv_create_srq_ex(r->ctx, &attr);

	assert_non_null(srq);
	assert_int_equal(attr.attr.max_wr, srq_attr_of(srq).max_wr);
	assert_int_equal(attr.attr.max_sge, srq_attr_of(srq).max_sge);
	assert_int_equal(ibv_destroy_srq(srq), 0);
}

static void
bits_that_nobody_knows_are_refused(struct rig *r)
{
	struct ibv_srq_init_attr_ex attr = basic(r);
	int bit;

	for (bit = 0; bit < 32; bit++) {
		if (1u << bit < IBV_SRQ_INIT_ATTR_RESERVED)
			continue;
		attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | 1u << bit;
		refuse_unknown(r, attr);
	}
}

static void
fields_that_are_not_valid_are_not_read(struct rig *r)
{
	struct ibv_srq_init_attr_ex attr = basic(r);

	attr.comp_mask = IBV_SRQ_INIT_ATTR_PD;
	attr.srq_type = (enum ibv_srq_type)77; /* so it is basic */
	attr.xrcd = (struct ibv_xrcd *)1;
	attr.cq = (struct ibv_cq *)1;
	attr.tm_cap.max_num_tags = UINT32_MAX;
	attr.tm_cap.max_ops = UINT32_MAX;
	accept(r, &attr);
	attr.comp_mask |= IBV_SRQ_INIT_ATTR_TYPE;
	attr.srq_type = IBV_SRQT_BASIC;
	accept(r, &attr);
}

static void
fields_that_are_needed_must_be_valid(struct rig *r)
{
	static const uint32_t needed[] = {
		IBV_SRQ_INIT_ATTR_PD, IBV_SRQ_INIT_ATTR_XRCD, IBV_SRQ_INIT_ATTR_CQ};
	struct ibv_srq_init_attr_ex attr = basic(r);
	struct ibv_xrcd *xrcd;
	size_t i;

	attr.comp_mask = IBV_SRQ_INIT_ATTR_TYPE;
	refuse(r, attr);
	need_xrc(r);
	xrcd = open_domain(r->ctx, -1, O_CREAT);
	for (i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		attr = xrc_srq_attr(r, xrcd);
		attr.comp_mask &= ~needed[i];
		refuse(r, attr);
	}
	/* What failed uses nothing. */
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void
type_decides(struct rig *r)
{
	struct ibv_srq_init_attr_ex attr = basic(r);
	struct ibv_srq *srq = ibv_create_srq_ex(r->ctx, &attr);
	struct ibv_xrcd *xrcd;
	uint32_t num;

	/* Those of XRC have numbers, and others none. */
	assert_non_null(srq);
	assert_errno_value(ibv_get_srq_num(srq, &num));
	assert_int_equal(ibv_destroy_srq(srq), 0);
	need_xrc(r);
	xrcd = open_domain(r->ctx, -1, O_CREAT);
	attr = xrc_srq_attr(r, xrcd);
	srq = ibv_create_srq_ex(r->ctx, &attr);
	assert_non_null(srq);
	assert_int_equal(ibv_get_srq_num(srq, &num), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void
unknown_type_is_refused(struct rig *r)
{
	struct ibv_srq_init_attr_ex attr = basic(r);

	attr.srq_type = (enum ibv_srq_type)3;
	refuse_unknown(r, attr);
	attr.srq_type = (enum ibv_srq_type)77;
	refuse_unknown(r, attr);
}

static void
pd_is_busy_and_of_this_context(struct rig *r)
{
	struct ibv_context *other = open_device();
	struct ibv_pd *foreign = ibv_alloc_pd(other), *pd = ibv_alloc_pd(r->ctx);
	struct ibv_srq_init_attr_ex attr = basic(r);
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;

	attr.pd = pd;
	srq = ibv_create_srq_ex(r->ctx, &attr);
	assert_non_null(srq);
	assert_ptr_equal(srq->pd, pd);
	expect_errno(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	need_xrc(r);
	xrcd = open_domain(r->ctx, -1, O_CREAT);
	attr = xrc_srq_attr(r, xrcd);
	attr.pd = pd;
	srq = ibv_create_srq_ex(r->ctx, &attr);
	assert_non_null(srq);
	assert_ptr_equal(srq->pd, pd);
	expect_errno(ibv_dealloc_pd(pd), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	attr.pd = foreign;
	refuse(r, attr);
	attr.pd = NULL;
	refuse(r, attr);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_dealloc_pd(foreign), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

static void
xrcd_is_busy_and_of_this_context(struct rig *r)
{
	struct ibv_context *other = open_device();
	struct ibv_srq_init_attr_ex attr;
	struct ibv_xrcd *xrcd, *foreign;
	struct ibv_srq *srq;

	need_xrc(r);
	xrcd = open_domain(r->ctx, -1, O_CREAT);
	foreign = open_domain(other, -1, O_CREAT);
	attr = xrc_srq_attr(r, xrcd);
	srq = ibv_create_srq_ex(r->ctx, &attr);
	assert_non_null(srq);
	expect_errno(ibv_close_xrcd(xrcd), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	attr.xrcd = foreign;
	refuse(r, attr);
	attr.xrcd = NULL;
	refuse(r, attr);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
	assert_int_equal(ibv_close_xrcd(foreign), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

/* A message can only name an SRQ of the domain that its target is in. */
static void
only_targets_of_the_domain_reach_it(struct rig *r)
{
	struct ibv_xrcd *other;
	struct ibv_srq *srq;
	struct xrc_pair p;

	need_xrc(r);
	p = open_pair(r);
	other = open_domain(r->ctx, -1, O_CREAT);
	srq = make_xrc_srq(r, other);
	assert_int_equal(post_srq(r, srq, 1), 0);
	assert_int_equal(send_to(r, p.from, number_of(srq)), 0);
	assert_true(next_status(r->cq) != IBV_WC_SUCCESS);
	assert_int_equal(state_of(p.to), IBV_QPS_ERR);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(other), 0);
	close_pair(&p);
}

static void
cq_gets_the_completions_and_is_busy(struct rig *r)
{
	struct ibv_cq *cq = ibv_create_cq(r->ctx, 16, NULL, NULL, 0), *foreign;
	struct ibv_context *other = open_device();
	struct ibv_srq_init_attr_ex attr;
	struct xrc_pair p;
	struct ibv_srq *srq;

	need_xrc(r);
	foreign = ibv_create_cq(other, 16, NULL, NULL, 0);
	p = open_pair(r);
	attr = xrc_srq_attr(r, p.xrcd);
	attr.cq = cq;
	srq = ibv_create_srq_ex(r->ctx, &attr);
	assert_non_null(srq);
	expect_errno(ibv_destroy_cq(cq), EBUSY);
	assert_int_equal(post_srq(r, srq, 5), 0);
	assert_int_equal(send_to(r, p.from, number_of(srq)), 0);
	assert_int_equal(both_completions(r->cq, cq), 5);
	/* Another SRQ of the same target has another CQ. */
	assert_int_equal(post_srq(r, p.srq, 6), 0);
	assert_int_equal(send_to(r, p.from, number_of(p.srq)), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	expect_no_completion(cq);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	attr.cq = foreign;
	refuse(r, attr);
	attr.cq = NULL;
	refuse(r, attr);
	close_pair(&p);
	assert_int_equal(ibv_destroy_cq(foreign), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

/* Attributes of one with tag matching. */
static struct ibv_srq_init_attr_ex
with_tags(struct rig *r, uint32_t tags, uint32_t ops)
{
	struct ibv_srq_init_attr_ex attr = basic(r);

	attr.comp_mask |= IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM;
	attr.srq_type = IBV_SRQT_TM;
	attr.cq = r->cq;
	attr.tm_cap.max_num_tags = tags;
	attr.tm_cap.max_ops = ops;
	return attr;
}

/* As far as the device reports that it has tag matching; else it must not seem to. */
static void
tag_matching_is_as_reported(struct rig *r)
{
	struct ibv_tm_caps caps = device_attr(r).tm_caps;
	struct ibv_srq_init_attr_ex attr = with_tags(r, caps.max_num_tags, caps.max_ops);

	if (caps.max_num_tags)
		accept(r, &attr);
	else
		refuse_unknown(r, with_tags(r, 1, 1));
}

static void
more_tags_than_reported_are_refused(struct rig *r)
{
	struct ibv_srq_init_attr_ex attr = with_tags(r, device_attr(r).tm_caps.max_num_tags + 1, 1);

	refuse_unknown(r, attr);
	/* Nor is the mark that there are tags passed over in a basic SRQ. */
	attr.srq_type = IBV_SRQT_BASIC;
	refuse_unknown(r, attr);
}

static void
more_operations_than_reported_are_refused(struct rig *r)
{
	refuse_unknown(r, with_tags(r, 1, device_attr(r).tm_caps.max_ops + 1));
}

static void
as_many_receives_fit_as_were_granted(struct rig *r)
{
	struct ibv_srq_init_attr_ex attr = basic(r);
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq = ibv_create_srq_ex(r->ctx, &attr);

	assert_non_null(srq);
	fill_srq(r, srq, 0, attr.attr.max_wr);
	expect_errno(post_srq(r, srq, 0), ENOMEM);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	need_xrc(r);
	xrcd = open_domain(r->ctx, -1, O_CREAT);
	attr = xrc_srq_attr(r, xrcd);
	attr.attr.max_wr = 7;
	srq = ibv_create_srq_ex(r->ctx, &attr);
	assert_non_null(srq);
	fill_srq(r, srq, 0, attr.attr.max_wr);
	expect_errno(post_srq(r, srq, 0), ENOMEM);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void
limits_of_the_device_hold(struct rig *r)
{
	struct ibv_device_attr dev = device_attr(r).orig_attr;
	struct ibv_srq_init_attr_ex attr = basic(r);

	attr.attr.max_sge = (uint32_t)dev.max_srq_sge;
	attr.attr.max_wr = (uint32_t)dev.max_srq_wr;
	accept(r, &attr);
	attr.attr.max_sge = (uint32_t)dev.max_srq_sge + 1;
	refuse(r, attr);
	attr.attr.max_sge = 1;
	attr.attr.max_wr = (uint32_t)dev.max_srq_wr + 1;
	refuse(r, attr);
	attr.attr.max_wr = 0;
	refuse(r, attr);
}

/* The page does not say whether it arms the SRQ; but what a query then says must be so. */
static void
limit_is_what_a_query_says(struct rig *r)
{
	struct ibv_srq_init_attr_ex attr = basic(r);
	struct ibv_srq *srq;
	uint32_t armed;
	uint64_t i;

	attr.attr.srq_limit = 8;
	srq = ibv_create_srq_ex(r->ctx, &attr);
	assert_non_null(srq);
	fill_srq(r, srq, 0, 8);
	armed = srq_attr_of(srq).srq_limit;
	assert_true(armed == 0 || armed == 8);
	pair_on_srq(r, srq);
	for (i = 0; i < 8; i++)
		assert_int_equal(send_one(r, r->a), i);
	if (armed)
		expect_event(r, IBV_EVENT_SRQ_LIMIT_REACHED, srq);
	expect_no_event(r);
	destroy_pair_and_srq(r, srq);
}

static void
struct_tells_what_was_made(struct rig *r)
{
	struct ibv_srq_init_attr_ex attr = basic(r), asked = attr;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq = ibv_create_srq_ex(r->ctx, &attr);

	assert_non_null(srq);
	assert_int_equal(attr.attr.max_wr, srq_attr_of(srq).max_wr);
	assert_int_equal(attr.attr.max_sge, srq_attr_of(srq).max_sge);
	/* The rest is the caller's. */
	attr.attr.max_wr = asked.attr.max_wr;
	attr.attr.max_sge = asked.attr.max_sge;
	assert_memory_equal(&attr, &asked, sizeof(attr));
	assert_int_equal(ibv_destroy_srq(srq), 0);
	need_xrc(r);
	xrcd = open_domain(r->ctx, -1, O_CREAT);
	attr = xrc_srq_attr(r, xrcd);
	attr.attr.max_wr = 9;
	attr.attr.max_sge = 0;
	srq = ibv_create_srq_ex(r->ctx, &attr);
	assert_non_null(srq);
	assert_int_equal(attr.attr.max_wr, srq_attr_of(srq).max_wr);
	assert_int_equal(attr.attr.max_sge, srq_attr_of(srq).max_sge);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void
values_are_at_least_those_requested(struct rig *r)
{
	struct ibv_device_attr dev = device_attr(r).orig_attr;
	struct ibv_srq_init_attr_ex attr;
	uint32_t wr, sge = 1;

	for (wr = 1; wr <= (uint32_t)dev.max_srq_wr; wr += 1 + wr / 2) {
		attr = basic(r);
		attr.attr.max_wr = wr;
		attr.attr.max_sge = sge;
		accept(r, &attr);
		assert_in_range(attr.attr.max_wr, wr, dev.max_srq_wr);
		assert_in_range(attr.attr.max_sge, sge, dev.max_srq_sge);
		sge = sge % (uint32_t)dev.max_srq_sge + 1;
	}
}

static void
null_says_why(struct rig *r)
{
	struct ibv_srq_init_attr_ex attr = basic(r), before;
	int i;

	attr.attr.max_wr = 0;
	before = attr;
	for (i = 0; i < 1000; i++)
		expect_null(ibv_create_srq_ex(r->ctx, &attr), EINVAL);
	assert_memory_equal(&attr, &before, sizeof(attr));
	attr = basic(r);
	accept(r, &attr);
}

#define CREATES \
	"ibv_create_srq_ex() creates a shared receive queue (SRQ) supporting both basic and xrc " \
	"modes."
#define STRUCT \
	"The argument srq_init_attr_ex is an ibv_srq_init_attr_ex struct, as defined in " \
	"<infiniband/verbs.h>."
#define MASK "comp_mask; /* Identifies valid fields */"
#define TYPE "srq_type; /* Basic / XRC / tag matching */"
#define XRCD "xrcd; /* XRC domain to associate with the SRQ */"

static const struct rule rules[] = {
	RULE("struct ibv_srq *ibv_create_srq_ex(struct ibv_context *context, struct "
	     "ibv_srq_init_attr_ex *srq_init_attr_ex);",
		NULL, prototype),
	RULE(CREATES, "basic", basic_mode_receives),
	RULE(CREATES, "XRC", xrc_mode_receives),
	RULE(STRUCT, "nothing beyond its end is touched",
		struct_is_read_and_written_within_its_bounds),
	RULE(STRUCT, "nor what older programs do not have",
		fields_behind_those_that_are_valid_are_not_touched),
	RULE("srq_context; /* Associated context of the SRQ */", NULL, context_is_the_programs),
	RULE("attr; /* SRQ attributes */", "a query gives them",
		attributes_are_those_that_a_query_gives),
	RULE(MASK, "what is not defined is refused", bits_that_nobody_knows_are_refused),
	RULE(MASK, "other fields are not read", fields_that_are_not_valid_are_not_read),
	RULE(MASK, "what is needed must be among them", fields_that_are_needed_must_be_valid),
	RULE(TYPE, "it decides what the SRQ is", type_decides),
	RULE(TYPE, "another is refused", unknown_type_is_refused),
	RULE("pd; /* PD associated with the SRQ */", "it is busy, and of the same context",
		pd_is_busy_and_of_this_context),
	RULE(XRCD, "it is busy, and of the same context", xrcd_is_busy_and_of_this_context),
	RULE(XRCD, "targets of another do not reach it", only_targets_of_the_domain_reach_it),
	RULE("cq; /* CQ to associate with the SRQ for XRC mode */",
		"it gets the completions, is busy, and of the same context",
		cq_gets_the_completions_and_is_busy),
	RULE("tm_cap; /* Tag matching attributes */", "as far as the device reports them",
		tag_matching_is_as_reported),
	RULE("max_wr; /* Requested max number of outstanding work requests (WRs) in the SRQ */",
		"as many fit, and not one more", as_many_receives_fit_as_were_granted),
	RULE("max_sge; /* Requested max number of scatter elements per WR */",
		"limits of the device hold", limits_of_the_device_hold),
	RULE("srq_limit; /* The limit value of the SRQ */", "a query tells whether it is armed",
		limit_is_what_a_query_says),
	RULE("max_num_tags; /* Tag matching list size */", "more than reported is refused",
		more_tags_than_reported_are_refused),
	RULE("max_ops; /* Number of outstanding tag list operations */",
		"more than reported is refused", more_operations_than_reported_are_refused),
	RULE("The function ibv_create_srq_ex() will update the srq_init_attr_ex struct with the "
	     "original values of the SRQ that was created;",
		NULL, struct_tells_what_was_made),
	RULE("the values of max_wr and max_sge will be greater than or equal to the values "
	     "requested.",
		NULL, values_are_at_least_those_requested),
	RULE("ibv_create_srq_ex() returns a pointer to the created SRQ, or NULL if the request "
	     "fails.",
		"with an errno, and nothing changed", null_says_why),
	LAST_RULE,
};

int
main(int argc, char **argv)
{
	return run_rules(argc, argv, rules);
}
