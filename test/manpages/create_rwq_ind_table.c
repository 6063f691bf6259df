/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_create_rwq_ind_table(3), sentence by sentence; what it says of ibv_destroy_rwq_ind_table() is
 * in destroy_rwq_ind_table.c.
 */
#include <stdlib.h>

#include "rss_rules.h"

static struct ibv_rwq_ind_table *
make_table(struct rig *r, uint32_t log_size, struct ibv_wq **entries)
{
	struct ibv_rwq_ind_table_init_attr attr = {
		.log_ind_tbl_size = log_size, .ind_tbl = entries};

	return ibv_create_rwq_ind_table(r->ctx, &attr);
}

/* n entries with the same work queue. */
static struct ibv_wq **
entries_of(struct ibv_wq *wq, size_t n)
{
	struct ibv_wq **entries = calloc(n, sizeof(*entries));
	size_t i;

	assert_non_null(entries);
	for (i = 0; i < n; i++)
		entries[i] = wq;
	return entries;
}

static void
expect_refused(struct rig *r, struct ibv_rwq_ind_table_init_attr attr)
{
	struct ibv_rwq_ind_table_init_attr given = attr;

	expect_null(ibv_create_rwq_ind_table(r->ctx, &attr), EINVAL);
	assert_memory_equal(&attr, &given, sizeof(attr));
}

static void
prototype(struct rig *r)
{
	struct ibv_rwq_ind_table *(*fn)(struct ibv_context * context,
		struct ibv_rwq_ind_table_init_attr * init_attr) = ibv_create_rwq_ind_table;
	struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = 0};
	struct ibv_rwq_ind_table *tbl;
	struct ibv_wq *wq;

	need_rss(r);
	wq = make_wq(r);
	attr.ind_tbl = &wq;
	tbl = fn(r->ctx, &attr);
	assert_non_null(tbl);
	assert_int_equal(ibv_destroy_rwq_ind_table(tbl), 0);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
belongs_to_the_context(struct rig *r)
{
	struct ibv_rwq_ind_table *tbl;
	struct ibv_wq *wq;

	need_rss(r);
	wq = make_wq(r);
	tbl = make_table(r, 0, &wq);
	assert_non_null(tbl);
	assert_ptr_equal(tbl->context, r->ctx);
	assert_int_equal(ibv_destroy_rwq_ind_table(tbl), 0);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
work_queues_are_of_the_same_context(struct rig *r)
{
	struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = 1};
	struct ibv_context *other = open_device();
	struct ibv_wq_init_attr init;
	struct ibv_wq *entries[2];
	struct ibv_pd *pd;
	struct ibv_cq *cq;

	need_rss(r);
	pd = ibv_alloc_pd(other);
	cq = ibv_create_cq(other, 16, NULL, NULL, 0);
	init = wq_attr(r);
	init.pd = pd;
	init.cq = cq;
	entries[0] = make_wq(r);
	entries[1] = ibv_create_wq(other, &init);
	assert_non_null(entries[1]);
	attr.ind_tbl = entries;
	expect_refused(r, attr);
	expect_null(ibv_create_rwq_ind_table(other, &attr), EINVAL);
	/* What was refused holds neither of them. */
	assert_int_equal(ibv_destroy_wq(entries[0]), 0);
	assert_int_equal(ibv_destroy_wq(entries[1]), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
	assert_int_equal(ibv_close_device(other), 0);
}

static void
each_has_a_number(struct rig *r)
{
	struct ibv_rwq_ind_table *a, *b;
	struct ibv_wq *wq;

	need_rss(r);
	wq = make_wq(r);
	a = make_table(r, 0, &wq);
	b = make_table(r, 0, &wq);
	assert_non_null(a);
	assert_non_null(b);
	assert_int_not_equal(a->ind_tbl_num, b->ind_tbl_num);
	assert_int_not_equal(a->ind_tbl_handle, b->ind_tbl_handle);
	assert_int_equal(ibv_destroy_rwq_ind_table(a), 0);
	assert_int_equal(ibv_destroy_rwq_ind_table(b), 0);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
as_many_as_the_device_says_exist_at_once(struct rig *r)
{
	struct ibv_rwq_ind_table **tables;
	struct ibv_wq *wq;
	uint32_t n, i;

	need_rss(r);
	n = device_attr(r).rss_caps.max_rwq_indirection_tables;
	/* Some hardware has millions. */
	n = n < 20000 ? n : 20000;
	tables = calloc(n, sizeof(struct ibv_rwq_ind_table *));
	assert_non_null(tables);
	wq = make_wq(r);
	for (i = 0; i < n; i++) {
		tables[i] = make_table(r, 0, &wq);
		assert_non_null(tables[i]);
	}
	for (i = 0; i < n; i++)
		assert_int_equal(ibv_destroy_rwq_ind_table(tables[i]), 0);
	free(tables);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
struct_is_read_within_its_bounds(struct rig *r)
{
	struct ibv_rwq_ind_table_init_attr *attr = at_guard(sizeof(*attr));
	struct ibv_wq **entries = at_guard(4 * sizeof(*entries));
	struct ibv_rwq_ind_table *tbl;
	int i;

	need_rss(r);
	entries[0] = make_wq(r);
	for (i = 1; i < 4; i++)
		entries[i] = entries[0];
	attr->log_ind_tbl_size = 2;
	attr->ind_tbl = entries;
	tbl = ibv_create_rwq_ind_table(r->ctx, attr);
	assert_non_null(tbl);
	assert_int_equal(ibv_destroy_rwq_ind_table(tbl), 0);
	assert_int_equal(ibv_destroy_wq(entries[0]), 0);
}

static void
every_power_of_two_up_to_the_devices(struct rig *r)
{
	struct ibv_rwq_ind_table *tbl;
	struct ibv_wq *wq, **entries;
	uint32_t max, log;

	need_rss(r);
	max = device_attr(r).rss_caps.max_rwq_indirection_table_size;
	wq = make_wq(r);
	entries = entries_of(wq, max);
	for (log = 0; 1u << log <= max; log++) {
		tbl = make_table(r, log, entries);
		assert_non_null(tbl);
		assert_int_equal(ibv_destroy_rwq_ind_table(tbl), 0);
	}
	free(entries);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
larger_sizes_are_refused(struct rig *r)
{
	struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = 0};
	uint32_t max, log;
	struct ibv_wq *wq;

	need_rss(r);
	max = device_attr(r).rss_caps.max_rwq_indirection_table_size;
	wq = make_wq(r);
	/* As many entries as would be read if the size were not looked at first. */
	attr.ind_tbl = entries_of(wq, 2 * (size_t)max);
	for (log = 0; log < 70; log++) {
		attr.log_ind_tbl_size = log;
		if (log > 31 || 1u << log > max)
			expect_refused(r, attr);
	}
	attr.log_ind_tbl_size = UINT32_MAX;
	expect_refused(r, attr);
	attr.log_ind_tbl_size = 1u << 31;
	expect_refused(r, attr);
	free(attr.ind_tbl);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
frames_go_by_the_entries(struct rig *r)
{
	struct rss s;

	need_rss(r);
	s = open_rss(r, UDP_FIELDS);
	check_udp(&s);
	close_rss(&s);
}

static void
entries_may_repeat(struct rig *r)
{
	struct ibv_wq *entries[RSS_SIZE];
	struct rss s;
	int i;

	need_rss(r);
	s = open_rss(r, UDP_FIELDS);
	assert_int_equal(ibv_destroy_rwq_ind_table(s.tbl), 0);
	/* Seven of eight are the first; check_traffic() wants each queue to be used. */
	for (i = 0; i < RSS_SIZE; i++)
		entries[i] = s.wq[i < RSS_QUEUES ? i : 0];
	memcpy(s.entries, entries, sizeof(entries));
	s.tbl = make_table(r, RSS_LOG_SIZE, entries);
	assert_non_null(s.tbl);
	s.attr.rwq_ind_tbl = s.tbl;
	/* The table has taken what it needs. */
	memset(entries, 0xff, sizeof(entries));
	check_udp(&s);
	close_rss(&s);
}

static void
no_entry_may_be_missing(struct rig *r)
{
	struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = 2};
	struct ibv_wq *wq, *entries[4];
	int i, k;

	need_rss(r);
	wq = make_wq(r);
	attr.ind_tbl = entries;
	for (i = 0; i < 4; i++) {
		for (k = 0; k < 4; k++)
			entries[k] = k == i ? NULL : wq;
		expect_refused(r, attr);
	}
	attr.ind_tbl = NULL;
	expect_refused(r, attr);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
queues_may_be_in_any_state(struct rig *r)
{
	struct ibv_rwq_ind_table *tbl;
	struct ibv_wq *entries[4];
	int i;

	need_rss(r);
	for (i = 0; i < 4; i++)
		entries[i] = make_wq(r);
	assert_int_equal(wq_to(entries[1], IBV_WQS_RDY), 0);
	assert_int_equal(wq_to(entries[2], IBV_WQS_RDY), 0);
	assert_int_equal(wq_to(entries[2], IBV_WQS_ERR), 0);
	tbl = make_table(r, 2, entries);
	assert_non_null(tbl);
	/* And change it there. */
	assert_int_equal(wq_to(entries[0], IBV_WQS_RDY), 0);
	assert_int_equal(wq_to(entries[2], IBV_WQS_RESET), 0);
	assert_int_equal(post_wq(r, entries[0], 1), 0);
	assert_int_equal(ibv_destroy_rwq_ind_table(tbl), 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(ibv_destroy_wq(entries[i]), 0);
}

static void
domains_of_the_queues_may_differ(struct rig *r)
{
	struct ibv_pd *pd = ibv_alloc_pd(r->ctx);
	struct ibv_wq_init_attr init = wq_attr(r);
	struct ibv_rwq_ind_table *tbl;
	struct ibv_wq *entries[2];

	need_rss(r);
	init.pd = pd;
	entries[0] = make_wq(r);
	entries[1] = ibv_create_wq(r->ctx, &init);
	assert_non_null(entries[1]);
	tbl = make_table(r, 1, entries);
	/* The page is silent; what is made must be destroyed. */
	if (tbl)
		assert_int_equal(ibv_destroy_rwq_ind_table(tbl), 0);
	else
		assert_int_equal(errno, EINVAL);
	assert_int_equal(ibv_destroy_wq(entries[0]), 0);
	assert_int_equal(ibv_destroy_wq(entries[1]), 0);
	assert_int_equal(ibv_dealloc_pd(pd), 0);
}

static void
bits_that_nobody_knows_are_refused(struct rig *r)
{
	struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = 0};
	struct ibv_wq *wq;
	int bit;

	need_rss(r);
	wq = make_wq(r);
	attr.ind_tbl = &wq;
	for (bit = 0; bit < 32; bit++) {
		if (1u << bit < IBV_CREATE_IND_TABLE_RESERVED)
			continue;
		attr.comp_mask = 1u << bit;
		errno = 0;
		assert_null(ibv_create_rwq_ind_table(r->ctx, &attr));
		assert_true(errno == EINVAL || errno == EOPNOTSUPP);
	}
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
queues_are_busy_while_it_holds_them(struct rig *r)
{
	struct ibv_wq *entries[4];
	struct ibv_rwq_ind_table *tbl;
	int i;

	need_rss(r);
	for (i = 0; i < 4; i++)
		entries[i] = make_wq(r);
	tbl = make_table(r, 2, entries);
	assert_non_null(tbl);
	for (i = 0; i < 4; i++)
		expect_errno(ibv_destroy_wq(entries[i]), EBUSY);
	/* They are as before. */
	assert_int_equal(wq_to(entries[3], IBV_WQS_RDY), 0);
	assert_int_equal(post_wq(r, entries[3], 3), 0);
	assert_int_equal(ibv_destroy_rwq_ind_table(tbl), 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(ibv_destroy_wq(entries[i]), 0);
}

static void
one_queue_stands_in_several_tables(struct rig *r)
{
	struct ibv_rwq_ind_table *a, *b;
	struct ibv_wq *wq, *entries[2];

	need_rss(r);
	entries[0] = entries[1] = wq = make_wq(r);
	a = make_table(r, 1, entries);
	b = make_table(r, 0, entries);
	assert_non_null(a);
	assert_non_null(b);
	assert_int_equal(ibv_destroy_rwq_ind_table(a), 0);
	expect_errno(ibv_destroy_wq(wq), EBUSY);
	assert_int_equal(ibv_destroy_rwq_ind_table(b), 0);
	assert_int_equal(ibv_destroy_wq(wq), 0);
}

static void
null_says_why(struct rig *r)
{
	struct ibv_rwq_ind_table_init_attr attr = {.log_ind_tbl_size = 1};
	struct ibv_wq *entries[2] = {NULL, NULL};
	int i;

	need_rss(r);
	entries[0] = make_wq(r);
	attr.ind_tbl = entries;
	/* The first was looked at before it failed, and is not held. */
	for (i = 0; i < 1000; i++)
		expect_refused(r, attr);
	assert_int_equal(ibv_destroy_wq(entries[0]), 0);
}

static void
hash_configuration_decides(struct rig *r)
{
	struct rss s;

	need_rss(r);
	s = open_rss(r, IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4);
	check_traffic(&s, 26, 8);
	s.attr.rx_hash_conf.rx_hash_fields_mask = IBV_RX_HASH_SRC_PORT_UDP;
	check_traffic(&s, 34, 2);
	close_rss(&s);
}

static void
queue_pairs_may_share_it(struct rig *r)
{
	struct ibv_qp *other;
	struct rss s;

	need_rss(r);
	s = open_rss(r, UDP_FIELDS);
	other = ibv_create_qp_ex(r->ctx, &s.attr);
	assert_non_null(other);
	check_udp(&s);
	assert_int_equal(ibv_destroy_qp(other), 0);
	check_udp(&s);
	close_rss(&s);
}

static void
only_there_it_is_used(struct rig *r)
{
	struct ibv_qp_init_attr_ex attr;
	struct rss s;

	need_rss(r);
	s = open_rss(r, UDP_FIELDS);
	/* The table without a hash, the hash without a table, and another kind of queue pair. */
	attr = s.attr;
	attr.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_RX_HASH;
	assert_null(ibv_create_qp_ex(r->ctx, &attr));
	attr = s.attr;
	attr.comp_mask &= ~(uint32_t)IBV_QP_INIT_ATTR_IND_TABLE;
	assert_null(ibv_create_qp_ex(r->ctx, &attr));
	attr = s.attr;
	attr.qp_type = IBV_QPT_RC;
	assert_null(ibv_create_qp_ex(r->ctx, &attr));
	/* None of them holds the table. */
	close_rss(&s);
}

#define CREATES \
	"ibv_create_rwq_ind_table() creates a RWQ IND TBL associated with the ibv_context " \
	"context."
#define LOG "log_ind_tbl_size; /* Log, base 2, of Indirection table size */"
#define ENTRY "ind_tbl; /* Each entry is a pointer to Receive Work Queue */"
#define HOLDS \
	"The function ibv_create_rwq_ind_table() will create a RWQ IND TBL that holds a table of " \
	"Receive Work Queue."
#define USED \
	"The created object should be used as part of ibv_create_qp_ex() to enable dispatching " \
	"of incoming packets based on some RX hash configuration."

static const struct rule rules[] = {
	RULE("struct ibv_rwq_ind_table *ibv_create_rwq_ind_table(struct ibv_context *context, "
	     "struct ibv_rwq_ind_table_init_attr *init_attr);",
		NULL, prototype),
	RULE(CREATES, "it tells so", belongs_to_the_context),
	RULE(CREATES, "as its work queues must be", work_queues_are_of_the_same_context),
	RULE(CREATES, "each has a number", each_has_a_number),
	RULE(CREATES, "as many as the device says exist at once",
		as_many_as_the_device_says_exist_at_once),
	RULE("The argument init_attr is an ibv_rwq_ind_table_init_attr struct, as defined in "
	     "<infiniband/verbs.h>.",
		"nothing beyond its end is touched", struct_is_read_within_its_bounds),
	RULE(LOG, "every one up to the device's", every_power_of_two_up_to_the_devices),
	RULE(LOG, "a larger one is refused", larger_sizes_are_refused),
	RULE(ENTRY, "frames go by them", frames_go_by_the_entries),
	RULE(ENTRY, "they may repeat, and are copied", entries_may_repeat),
	RULE(ENTRY, "none may be missing", no_entry_may_be_missing),
	RULE(ENTRY, "in any state", queues_may_be_in_any_state),
	RULE(ENTRY, "of several protection domains", domains_of_the_queues_may_differ),
	RULE("comp_mask; /* Identifies valid fields. Use ibv_ind_table_init_attr_mask */",
		"what is not defined is refused", bits_that_nobody_knows_are_refused),
	RULE(HOLDS, "they are busy", queues_are_busy_while_it_holds_them),
	RULE(HOLDS, "one may stand in several", one_queue_stands_in_several_tables),
	RULE("ibv_create_rwq_ind_table() returns a pointer to the created RWQ IND TBL, or NULL if "
	     "the request fails.",
		"with an errno, and nothing held", null_says_why),
	RULE(USED, "which decides", hash_configuration_decides),
	RULE(USED, "by several queue pairs", queue_pairs_may_share_it),
	RULE(USED, "and not otherwise", only_there_it_is_used),
	LAST_RULE,
};

int
main(int argc, char **argv)
{
	return run_rules(argc, argv, rules);
}
