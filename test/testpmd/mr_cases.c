/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions.
 */
#include <stdio.h>

#include "cases.h"

static void
reg_registers_and_fills(void)
{
	const struct vrb_mr *m;
	uint32_t refs = tp_pd()->refs;

	run("mr reg 1 size 10k access local-write,remote-read");
	m = mr_of(1)->mem.mr;
	assert_int_equal(m->length, 10240);
	assert_int_equal(m->access, VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE_READ);
	assert_int_equal(tp_memory_compare((uint8_t *)m->addr, m->length, m->iova), -1);
	assert_int_equal(tp_pd()->refs, refs + 1);
	run("mr reg 2 size 1");
	assert_int_equal(mr_of(2)->mem.mr->access, TP_ACCESS_ALL);
	run("mr reg 3 size 1 access none");
	assert_int_equal(mr_of(3)->mem.mr->access, 0);
	refuse(-EEXIST, "mr 1 exists already", "mr reg 1 size 1");
	refuse(-EINVAL, "need local-write as well", "mr reg 4 size 1 access remote-write");
	assert_null(tp_object_find(TP_MR, 4));
	assert_int_equal(tp_pd()->refs, refs + 3);
}

static void
check_shown(const char *out, const struct vrb_mr *m)
{
	assert_int_equal(number(out, "addr"), m->iova);
	assert_int_equal(number(out, "size"), m->length);
	assert_int_equal(number(out, "lkey"), m->lkey);
	assert_int_equal(number(out, "rkey"), m->rkey);
}

static void
show_tells_keys(void)
{
	const char *out;

	run("mr reg 5 size 4096 access local-write,remote-write");
	out = run("mr show 5");
	check_shown(out, mr_of(5)->mem.mr);
	holds(out, "access local-write,remote-write\n");
	refuse(-ENOENT, "there is no mr 6", "mr show 6");
}

static void
show_lists_all(void)
{
	const char *out;

	holds(run("mr show"), "no mr");
	run("mr reg 9 size 1");
	run("mr reg 2 size 1");
	out = run("mr show");
	/* By number. */
	check_shown(strstr(out, "mr 2"), mr_of(2)->mem.mr);
	check_shown(strstr(strstr(out, "mr 2"), "mr 9"), mr_of(9)->mem.mr);
}

static void
fill_mends_memory(void)
{
	struct tp_mem *mem;

	run("mr reg 1 size 1000");
	mem = &mr_of(1)->mem;
	memset(mem->addr + 100, 0xee, 100);
	assert_int_equal(tp_memory_compare(mem->addr, mem->size, mem->mr->iova), 100);
	run("mr fill 1");
	assert_int_equal(tp_memory_compare(mem->addr, mem->size, mem->mr->iova), -1);
}

static void
dump_shows_bytes(void)
{
	run("mr reg 1 size 64");
	memcpy(mr_of(1)->mem.addr + 16, "\x01\xab\xff", 3);
	holds(run("mr dump 1 offset 16 length 3"), "00000010: 01 ab ff\n");
	refuse(-ERANGE, "mr 1 has 64 bytes", "mr dump 1 offset 60 length 5");
}

static void
dereg_gives_it_back(void)
{
	uint32_t refs = tp_pd()->refs;

	run("mr reg 1 size 64");
	assert_int_equal(tp_pd()->refs, refs + 1);
	run("mr dereg 1");
	assert_null(tp_object_find(TP_MR, 1));
	assert_int_equal(tp_pd()->refs, refs);
	refuse(-ENOENT, "there is no mr 1", "mr dereg 1");
}

static const struct tp_case cases[] = {
	{"mr reg <mr>", reg_registers_and_fills},
	{"mr show", show_lists_all},
	{"mr show <mr>", show_tells_keys},
	{"mr fill <mr>", fill_mends_memory},
	{"mr dump <mr>", dump_shows_bytes},
	{"mr dereg <mr>", dereg_gives_it_back},
};

const struct tp_cases mr_cases = TP_CASES(cases);
