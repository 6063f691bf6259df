/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the programs share (see rules.h).
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "rules.h"

struct ibv_device_attr_ex
device_attr(struct rig *r)
{
	struct ibv_device_attr_ex attr;

	assert_int_equal(ibv_query_device_ex(r->ctx, NULL, &attr), 0);
	return attr;
}

void *
at_guard(size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len = (size + page - 1) / page * page;
	char *p =
		mmap(NULL, len + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	assert_int_equal(mprotect(p + len, page, PROT_NONE), 0);
	return p + len - size;
}

#ifdef CAN_RUN_OUT_OF_MEMORY
static void
limit_memory(rlim_t size)
{
	struct rlimit limit;

	assert_int_equal(getrlimit(RLIMIT_AS, &limit), 0);
	limit.rlim_cur = size < limit.rlim_max ? size : limit.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_AS, &limit), 0);
}

struct block {
	struct block *next;
	char rest[(1 << 20) - sizeof(struct block *)];
};

static struct block *blocks;

static void
free_block(void)
{
	struct block *next = blocks->next;

	free(blocks);
	blocks = next;
}

void
run_out_of_memory(void)
{
	struct block *block;
	FILE *f = fopen("/proc/self/statm", "r");
	unsigned long pages;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	limit_memory(pages * (rlim_t)sysconf(_SC_PAGESIZE) + (1 << 20));
	/* What malloc() has in reserve. */
	while ((block = malloc(sizeof(*block)))) {
		block->next = blocks;
		blocks = block;
	}
	if (blocks)
		free_block();
}

void
have_memory_again(void)
{
	while (blocks)
		free_block();
	limit_memory(RLIM_INFINITY);
}
#endif

void
expect_no_event(struct rig *r)
{
	struct ibv_async_event event;

	if (next_event(r, &event, 20))
		fail_msg("event %s", ibv_event_type_str(event.event_type));
}

void
expect_event(struct rig *r, enum ibv_event_type type, const void *obj)
{
	struct ibv_async_event event;

	assert_true(next_event(r, &event, 5000));
	assert_int_equal(event.event_type, type);
	assert_ptr_equal(event.element.srq, obj);
}

static void
connect_one(struct rig *r, struct ibv_qp *qp, struct ibv_qp *peer)
{
	struct ibv_qp_attr attr;
	int mask;

	step(r, qp, IBV_QPS_INIT, peer);
	step(r, qp, IBV_QPS_RTR, peer);
	attr_for(r, IBV_QPS_RTS, peer, &attr, &mask);
	attr.rnr_retry = 7; /* for ever */
	assert_int_equal(ibv_modify_qp(qp, &attr, mask), 0);
}

void
connect_patient(struct rig *r)
{
	connect_one(r, r->a, r->b);
	connect_one(r, r->b, r->a);
}
