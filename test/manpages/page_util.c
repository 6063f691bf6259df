/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the programs share (see rules.h).
 */
#include <sys/mman.h>
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
