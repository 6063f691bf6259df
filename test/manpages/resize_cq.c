/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_resize_cq(3), sentence by sentence. What happens under load is in cq_load.c.
 */
#include <limits.h>
#include <poll.h>

#include "cq_load.h"

#define WAITING 32 /* completions that are left in the CQ by most rules */

static void
expect_waiting(struct cq_rig *c, uint32_t first, uint32_t n)
{
	struct ibv_wc wc;
	uint32_t i;

	for (i = 0; i < n; i++) {
		assert_true(poll_for(c->cq, &wc));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		assert_int_equal(wc.opcode, IBV_WC_RECV);
		assert_int_equal(wc.wr_id, first + i);
		assert_int_equal(ntohl(wc.imm_data), first + i);
		assert_int_equal(wc.byte_len, 8);
		assert_int_equal(wc.qp_num, c->r->b->qp_num);
		assert_int_equal(wc.wc_flags & IBV_WC_WITH_IMM, IBV_WC_WITH_IMM);
	}
	expect_no_completion(c->cq);
}

static void
prototype(struct rig *r)
{
	int (*fn)(struct ibv_cq * cq, int cqe) = ibv_resize_cq;

	assert_int_equal(fn(r->cq, 1000), 0);
	assert_in_range(r->cq->cqe, 1000, INT_MAX);
}

static void
as_many_completions_fit_afterwards(struct rig *r)
{
	struct cq_rig c = open_cq_rig(r, 1, NULL);
	uint32_t n;

	assert_int_equal(ibv_resize_cq(c.cq, 500), 0);
	n = (uint32_t)c.cq->cqe;
	complete(&c, 0, n < 1000 ? n : 1000);
	expect_no_event(r);
	expect_waiting(&c, 0, n < 1000 ? n : 1000);
	close_cq_rig(&c);
}

static void
sizes_up_to_the_devices_can_be_had(struct rig *r)
{
	int max = device_attr(r).orig_attr.max_cqe, size;

	for (size = 1; size < max; size += 1 + size / 2) {
		assert_int_equal(ibv_resize_cq(r->cq, size), 0);
		assert_in_range(r->cq->cqe, size, INT_MAX);
	}
	assert_int_equal(ibv_resize_cq(r->cq, max), 0);
	assert_in_range(r->cq->cqe, max, INT_MAX);
	assert_int_equal(ibv_resize_cq(r->cq, 1), 0);
}

static void
what_waits_stays_in_order(struct rig *r)
{
	static const int sizes[] = {64, 1000, 65, 40, 4096, WAITING, 33, 32, 100};
	struct cq_rig c = open_cq_rig(r, 50, NULL);
	size_t i;

	/* So that what waits goes across the ring's end. */
	complete(&c, 0, 45);
	expect_waiting(&c, 0, 45);
	complete(&c, 45, WAITING);
	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		assert_int_equal(ibv_resize_cq(c.cq, sizes[i]), 0);
		assert_in_range(c.cq->cqe, sizes[i], INT_MAX);
	}
	expect_waiting(&c, 45, WAITING);
	complete(&c, 77, WAITING);
	expect_waiting(&c, 77, WAITING);
	close_cq_rig(&c);
}

static void
polling_and_resizing_take_turns(struct rig *r)
{
	struct cq_rig c = open_cq_rig(r, WAITING, NULL);
	uint32_t left;
	struct ibv_wc wc;

	complete(&c, 0, WAITING);
	for (left = WAITING; left; left--) {
		assert_int_equal(ibv_resize_cq(c.cq, (int)left), 0);
		assert_true(poll_for(c.cq, &wc));
		assert_int_equal(wc.wr_id, WAITING - left);
	}
	assert_int_equal(ibv_resize_cq(c.cq, 1), 0);
	expect_no_completion(c.cq);
	close_cq_rig(&c);
}

static void
completions_go_on_between_resizes(struct rig *r)
{
	struct cq_rig c = open_cq_rig(r, 1, NULL);
	uint32_t i;

	for (i = 0; i < 200; i++) {
		assert_int_equal(ibv_resize_cq(c.cq, 200 + (int)i % 77), 0);
		complete(&c, i, 1);
	}
	expect_waiting(&c, 0, 200);
	close_cq_rig(&c);
}

/* What the program has of the completion that it stands at is its own. */
static void
within_extended_polling(struct rig *r)
{
	struct ibv_poll_cq_attr attr = {.comp_mask = 0};
	struct ibv_cq_init_attr_ex init = {
		.cqe = 64, .wc_flags = IBV_WC_EX_WITH_BYTE_LEN | IBV_WC_EX_WITH_IMM};
	struct ibv_cq_ex *ex = ibv_create_cq_ex(r->ctx, &init);
	struct cq_rig c;
	uint32_t i;

	if (!ex)
		device_lacks("extended CQs");
	c = open_cq_rig(r, 0, ibv_cq_ex_to_cq(ex));
	complete(&c, 0, WAITING);
	assert_int_equal(ibv_start_poll(ex, &attr), 0);
	for (i = 0; i < WAITING; i++) {
		assert_int_equal(ibv_resize_cq(c.cq, i % 2 ? WAITING : 1000 + (int)i), 0);
		assert_int_equal(ex->status, IBV_WC_SUCCESS);
		assert_int_equal(ex->wr_id, i);
		assert_int_equal(ntohl(ibv_wc_read_imm_data(ex)), i);
		assert_int_equal(ibv_wc_read_byte_len(ex), 8);
		assert_int_equal(ibv_next_poll(ex), i + 1 < WAITING ? 0 : ENOENT);
	}
	ibv_end_poll(ex);
	assert_ptr_equal(c.cq, ibv_cq_ex_to_cq(ex));
	assert_in_range(ex->cqe, 1, INT_MAX);
	close_cq_rig(&c);
}

static bool
notified(struct ibv_comp_channel *ch, int ms)
{
	struct pollfd fd = {.fd = ch->fd, .events = POLLIN};
	struct ibv_cq *cq;
	void *context;

	if (poll(&fd, 1, ms) != 1)
		return false;
	assert_int_equal(ibv_get_cq_event(ch, &cq, &context), 0);
	ibv_ack_cq_events(cq, 1);
	return true;
}

static void
notification_that_was_asked_for_comes(struct rig *r)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(r->ctx);
	struct cq_rig c = open_cq_rig(r, 0, ibv_create_cq(r->ctx, 16, NULL, ch, 0));

	assert_int_equal(ibv_req_notify_cq(c.cq, 0), 0);
	assert_int_equal(ibv_resize_cq(c.cq, 64), 0);
	assert_int_equal(ibv_resize_cq(c.cq, 8), 0);
	assert_false(notified(ch, 20));
	complete(&c, 0, 1);
	assert_true(notified(ch, 5000));
	/* Once. */
	assert_int_equal(ibv_resize_cq(c.cq, 64), 0);
	complete(&c, 1, 1);
	assert_false(notified(ch, 20));
	close_cq_rig(&c);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

static void
notification_that_was_not_asked_for_does_not(struct rig *r)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(r->ctx);
	struct cq_rig c = open_cq_rig(r, 0, ibv_create_cq(r->ctx, 16, NULL, ch, 0));

	complete(&c, 0, 4);
	assert_int_equal(ibv_resize_cq(c.cq, 64), 0);
	complete(&c, 4, 4);
	assert_false(notified(ch, 20));
	/* For a solicited one, it stays one for a solicited one. */
	assert_int_equal(ibv_req_notify_cq(c.cq, 1), 0);
	assert_int_equal(ibv_resize_cq(c.cq, 32), 0);
	complete(&c, 8, 4);
	assert_false(notified(ch, 20));
	c.solicited = true;
	complete(&c, 12, 1);
	assert_true(notified(ch, 5000));
	close_cq_rig(&c);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

static void
event_that_is_not_acknowledged_yet(struct rig *r)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(r->ctx);
	struct cq_rig c = open_cq_rig(r, 0, ibv_create_cq(r->ctx, 16, r, ch, 0));
	struct ibv_cq *cq;
	void *context;

	assert_int_equal(ibv_req_notify_cq(c.cq, 0), 0);
	complete(&c, 0, 1);
	assert_int_equal(ibv_get_cq_event(ch, &cq, &context), 0);
	/* Destruction has to wait for the acknowledgement, resizing has not. */
	assert_int_equal(ibv_resize_cq(c.cq, 1000), 0);
	assert_ptr_equal(cq, c.cq);
	assert_ptr_equal(context, r);
	ibv_ack_cq_events(cq, 1);
	close_cq_rig(&c);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

static void
under_load_no_completion_is_lost(struct rig *r)
{
	cq_load(r, LOAD_POLL);
}

static void
under_load_no_notification_is_lost(struct rig *r)
{
	cq_load(r, LOAD_NOTIFY);
}

static void
under_load_by_several_threads(struct rig *r)
{
	cq_load(r, LOAD_POLL | LOAD_TWO_RESIZERS);
}

static void
below_the_unpolled_is_refused(struct rig *r)
{
	struct cq_rig c = open_cq_rig(r, 64, NULL);
	int size = c.cq->cqe, n;

	complete(&c, 0, WAITING);
	for (n = 1; n < WAITING; n++) {
		expect_errno(ibv_resize_cq(c.cq, n), EINVAL);
		assert_int_equal(c.cq->cqe, size);
	}
	/* As many as before still fit. */
	complete(&c, WAITING, (uint32_t)size - WAITING);
	expect_no_event(r);
	expect_waiting(&c, 0, (uint32_t)size);
	close_cq_rig(&c);
}

static void
as_many_as_the_unpolled_is_enough(struct rig *r)
{
	struct cq_rig c = open_cq_rig(r, 64, NULL);
	struct ibv_wc wc;
	uint32_t i;

	complete(&c, 0, WAITING);
	assert_int_equal(ibv_resize_cq(c.cq, WAITING), 0);
	/* Only those that have not been polled count. */
	for (i = 0; i < 10; i++)
		assert_true(poll_for(c.cq, &wc));
	expect_errno(ibv_resize_cq(c.cq, WAITING - 11), EINVAL);
	assert_int_equal(ibv_resize_cq(c.cq, WAITING - 10), 0);
	expect_waiting(&c, 10, WAITING - 10);
	close_cq_rig(&c);
}

static void
refusal_leaves_the_notification(struct rig *r)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(r->ctx);
	struct cq_rig c = open_cq_rig(r, 0, ibv_create_cq(r->ctx, 16, NULL, ch, 0));

	complete(&c, 0, 4);
	assert_int_equal(ibv_req_notify_cq(c.cq, 0), 0);
	expect_errno(ibv_resize_cq(c.cq, 3), EINVAL);
	assert_false(notified(ch, 20));
	complete(&c, 4, 1);
	assert_true(notified(ch, 5000));
	expect_waiting(&c, 0, 5);
	close_cq_rig(&c);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

static void
less_than_the_current_size_is_valid(struct rig *r)
{
	struct cq_rig c = open_cq_rig(r, 500, NULL);
	int size = c.cq->cqe, n;

	for (n = 499; n > 0; n -= 7) {
		assert_int_equal(ibv_resize_cq(c.cq, n), 0);
		/* It may stay what it was, but does not grow. */
		assert_in_range(c.cq->cqe, n, size);
		size = c.cq->cqe;
	}
	complete(&c, 0, (uint32_t)size);
	expect_no_event(r);
	expect_waiting(&c, 0, (uint32_t)size);
	close_cq_rig(&c);
}

static void
the_current_size_is_valid(struct rig *r)
{
	struct cq_rig c = open_cq_rig(r, 50, NULL);
	int size = c.cq->cqe;

	complete(&c, 0, WAITING);
	assert_int_equal(ibv_resize_cq(c.cq, size), 0);
	assert_in_range(c.cq->cqe, size, INT_MAX);
	expect_waiting(&c, 0, WAITING);
	close_cq_rig(&c);
}

static void
zero_or_the_errno_itself(struct rig *r)
{
	int max = device_attr(r).orig_attr.max_cqe, size = r->cq->cqe, rc;
	const int wrong[] = {0, -1, INT_MIN, max + 1, INT_MAX};
	size_t i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		if (wrong[i] == max)
			continue;
		errno = 0;
		rc = ibv_resize_cq(r->cq, wrong[i]);
		assert_errno_value(rc);
		assert_int_equal(rc, EINVAL);
		assert_int_equal(r->cq->cqe, size);
	}
	assert_int_equal(ibv_resize_cq(r->cq, size + 1), 0);
}

#ifdef CAN_RUN_OUT_OF_MEMORY
static void
lack_of_memory_changes_nothing(struct rig *r)
{
	struct cq_rig c = open_cq_rig(r, 64, NULL);
	int max = device_attr(r).orig_attr.max_cqe, size = c.cq->cqe, i;

	complete(&c, 0, WAITING);
	run_out_of_memory();
	for (i = 0; i < 10; i++) {
		expect_errno(ibv_resize_cq(c.cq, max), ENOMEM);
		assert_int_equal(c.cq->cqe, size);
	}
	complete(&c, WAITING, (uint32_t)size - WAITING);
	expect_no_event(r);
	have_memory_again();
	assert_int_equal(ibv_resize_cq(c.cq, max), 0);
	expect_waiting(&c, 0, (uint32_t)size);
	close_cq_rig(&c);
}
#endif

static void
size_is_at_least_the_requested(struct rig *r)
{
	uint32_t seed = 1;
	int i, size;

	for (i = 0; i < 500; i++) {
		seed = seed * 1664525 + 1013904223;
		size = 1 + (int)(seed >> 12) % device_attr(r).orig_attr.max_cqe % 10000;
		assert_int_equal(ibv_resize_cq(r->cq, size), 0);
		assert_in_range(r->cq->cqe, size, INT_MAX);
	}
}

/* One more than it says is too many; it would be silently lost, were the size another. */
static void
member_is_the_size_at_which_it_overflows(struct rig *r)
{
	static const int sizes[] = {20, 7, 1};
	struct cq_rig c;
	struct ibv_wc wc;
	uint32_t n;
	size_t i;

	for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct ibv_async_event event;

		c = open_cq_rig(r, 10, NULL);
		assert_int_equal(ibv_resize_cq(c.cq, sizes[i]), 0);
		n = (uint32_t)c.cq->cqe;
		complete(&c, 0, n);
		expect_no_event(r);
		overflow(&c, n);
		assert_true(next_event(r, &event, 5000));
		while (event.event_type != IBV_EVENT_CQ_ERR)
			assert_true(next_event(r, &event, 5000));
		assert_ptr_equal(event.element.cq, c.cq);
		/* The queue pair that lost it is in error, which it tells, too. */
		assert_int_equal(state_of(r->b), IBV_QPS_ERR);
		while (next_event(r, &event, 50))
			;
		while (ibv_poll_cq(c.send_cq, 1, &wc) > 0)
			;
		close_cq_rig(&c);
	}
}

static void
member_follows_each_resize(struct rig *r)
{
	struct ibv_cq_init_attr_ex init = {.cqe = 10};
	struct ibv_cq_ex *ex = ibv_create_cq_ex(r->ctx, &init);
	int before = r->cq->cqe;

	assert_int_equal(ibv_resize_cq(r->cq, before * 4), 0);
	assert_in_range(r->cq->cqe, before * 4, INT_MAX);
	if (!ex)
		device_lacks("extended CQs");
	/* Others have a size of their own. */
	assert_in_range(ex->cqe, 10, before * 4 - 1);
	assert_int_equal(ibv_resize_cq(ibv_cq_ex_to_cq(ex), before * 8), 0);
	assert_in_range(ex->cqe, before * 8, INT_MAX);
	assert_in_range(r->cq->cqe, before * 4, before * 8 - 1);
	assert_int_equal(ibv_destroy_cq(ibv_cq_ex_to_cq(ex)), 0);
}

static void
nothing_else_of_it_changes(struct rig *r)
{
	struct ibv_comp_channel *ch = ibv_create_comp_channel(r->ctx);
	struct ibv_cq *cq = ibv_create_cq(r->ctx, 16, r, ch, 0);

	assert_int_equal(ibv_resize_cq(cq, 1000), 0);
	assert_ptr_equal(cq->context, r->ctx);
	assert_ptr_equal(cq->channel, ch);
	assert_ptr_equal(cq->cq_context, r);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(ch), 0);
}

#define RESIZES "ibv_resize_cq() resizes the completion queue (CQ) cq to have at least cqe entries."
#define UNPOLLED "cqe must be at least the number of unpolled entries in the CQ cq."
#define LESS \
	"If cqe is a valid value less than the current CQ size, ibv_resize_cq() may not do " \
	"anything, since this function is only guaranteed to resize the CQ to a size at least as " \
	"big as the requested size."
#define RETURNS \
	"ibv_resize_cq() returns 0 on success, or the value of errno on failure (which indicates " \
	"the failure reason)."
#define MEMBER "The cqe member of cq will be updated to the actual size."

static const struct rule rules[] = {
	RULE("int ibv_resize_cq(struct ibv_cq *cq, int cqe);", NULL, prototype),
	RULE(RESIZES, "as many completions fit", as_many_completions_fit_afterwards),
	RULE(RESIZES, "up to the device's limit", sizes_up_to_the_devices_can_be_had),
	RULE(RESIZES, "what waits stays, in order", what_waits_stays_in_order),
	RULE(RESIZES, "in turn with polling", polling_and_resizing_take_turns),
	RULE(RESIZES, "in turn with completions", completions_go_on_between_resizes),
	RULE(RESIZES, "within extended polling", within_extended_polling),
	RULE(RESIZES, "a notification that was asked for comes, once",
		notification_that_was_asked_for_comes),
	RULE(RESIZES, "one that was not asked for does not",
		notification_that_was_not_asked_for_does_not),
	RULE(RESIZES, "with an event that is not acknowledged", event_that_is_not_acknowledged_yet),
	RULE(RESIZES, "nothing else of it changes", nothing_else_of_it_changes),
	RULE(RESIZES, "under load no completion is lost", under_load_no_completion_is_lost),
	RULE(RESIZES, "under load no notification is lost", under_load_no_notification_is_lost),
	RULE(RESIZES, "under load, by several threads", under_load_by_several_threads),
	RULE(UNPOLLED, "less is refused, and nothing changed", below_the_unpolled_is_refused),
	RULE(UNPOLLED, "as many are enough", as_many_as_the_unpolled_is_enough),
	RULE(UNPOLLED, "a refusal leaves the notification", refusal_leaves_the_notification),
	RULE(LESS, "it is no error, and what fits is what it says",
		less_than_the_current_size_is_valid),
	RULE(LESS, "nor is the same size", the_current_size_is_valid),
	RULE(RETURNS, "the value, and not -1", zero_or_the_errno_itself),
#ifdef CAN_RUN_OUT_OF_MEMORY
	RULE(RETURNS, "ENOMEM, and nothing changed", lack_of_memory_changes_nothing),
#endif
	RULE("ibv_resize_cq() may assign a CQ size greater than or equal to the requested size.",
		"and not a smaller one", size_is_at_least_the_requested),
	RULE(MEMBER, "one more overflows", member_is_the_size_at_which_it_overflows),
	RULE(MEMBER, "each time, and of this CQ", member_follows_each_resize),
	LAST_RULE,
};

int
main(int argc, char **argv)
{
	return run_rules(argc, argv, rules);
}
