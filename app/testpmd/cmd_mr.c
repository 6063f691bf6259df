/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions: memory of this process, filled so that who reads it can verify what it got.
 */
#include <errno.h>
#include <inttypes.h>

#include "backend.h"
#include "commands.h"
#include "pattern.h"
#include "post.h"

#define MAX_SIZE (UINT64_C(1) << 34)
#define DUMP_MAX 4096

/* Bit i is VRB_ACCESS_*, whose bits stand in the same order. */
static const char *const access_words[] = {
	"local-write", "remote-write", "remote-read", "remote-atomic", NULL};

static int
mr_reg(const struct tp_call *call)
{
	struct tp_mr *mr = tp_object_new(TP_MR, tp_num(call, "mr", 0), sizeof(*mr));
	int rc;

	if (mr == NULL)
		return tp_refuse_memory(TP_MR, -ENOMEM);
	rc = tp_mem_alloc(&mr->mem, tp_num(call, "size", 0), tp_num(call, "access", TP_ACCESS_ALL));
	if (rc < 0) {
		tp_object_free(&mr->obj);
		return rc;
	}
	tp_memory_fill(mr->mem.addr, mr->mem.size, mr->mem.mr->iova);
	return 0;
}

static void
show(struct tp_obj *obj)
{
	const struct vrb_mr *m = ((struct tp_mr *)obj)->mem.mr;
	char access[80] = "";
	size_t used = 0;

	for (int i = 0; access_words[i] != NULL; i++)
		if (m->access & 1u << i)
			used += snprintf(access + used, sizeof(access) - used, "%s%s",
				used > 0 ? "," : "", access_words[i]);
	tp_row("mr", "%u", obj->id);
	tp_row("addr", "%#" PRIx64, m->iova);
	tp_row("size", "%" PRIu64, m->length);
	tp_row("lkey", "%#x", m->lkey);
	tp_row("rkey", "%#x", m->rkey);
	tp_row("access", "%s", used > 0 ? access : "none");
	tp_row_end();
}

static int
mr_show(const struct tp_call *call)
{
	return tp_show(call, TP_MR, show);
}

static int
mr_fill(const struct tp_call *call)
{
	struct tp_mr *mr = tp_object_arg(call, "mr", TP_MR);

	tp_memory_fill(mr->mem.addr, mr->mem.size, mr->mem.mr->iova);
	return 0;
}

static int
mr_dump(const struct tp_call *call)
{
	struct tp_mr *mr = tp_object_arg(call, "mr", TP_MR);
	uint64_t off = tp_num(call, "offset", 0), len = tp_num(call, "length", 64);

	if (off >= mr->mem.size || len > mr->mem.size - off)
		return tp_refuse(-ERANGE, "mr %u has %zu bytes", mr->obj.id, mr->mem.size);
	for (uint64_t i = 0; i < len; i++) {
		if (i % 16 == 0)
			tp_print("%s%08" PRIx64 ":", i > 0 ? "\n" : "", off + i);
		tp_print(" %02x", mr->mem.addr[off + i]);
	}
	tp_print("\n");
	return 0;
}

int
tp_mr_destroy(struct tp_mr *mr)
{
	if (tp_mem_free(&mr->mem) < 0)
		return tp_refuse(-EBUSY, "a memory window is bound to mr %u", mr->obj.id);
	tp_object_free(&mr->obj);
	return 0;
}

static int
mr_dereg(const struct tp_call *call)
{
	return tp_mr_destroy(tp_object_arg(call, "mr", TP_MR));
}

static const struct tp_arg reg_args[] = {
	{.name = "mr", .type = TP_NEW_ID, .object = TP_MR, .help = "its number"},
	{.name = "size",
		.type = TP_NUM,
		.min = 1,
		.max = MAX_SIZE,
		.required = true,
		.help = "bytes"},
	{.name = "access",
		.type = TP_FLAGS,
		.words = access_words,
		.help = "who may do what, separated by commas, or none; all if not given"},
	{NULL},
};
static const struct tp_arg mr_args[] = {
	{.name = "mr", .type = TP_ID, .object = TP_MR, .help = "a memory region"}, {NULL}};
static const struct tp_arg dump_args[] = {
	{.name = "mr", .type = TP_ID, .object = TP_MR, .help = "a memory region"},
	{.name = "offset", .type = TP_NUM, .max = MAX_SIZE, .help = "the first byte; 0"},
	{.name = "length", .type = TP_NUM, .min = 1, .max = DUMP_MAX, .help = "bytes; 64"},
	{NULL},
};

static const struct tp_cmd cmds[] = {
	{"mr reg <mr>", "maps memory, fills it with data that can be verified, and registers it",
		reg_args, mr_reg},
	{"mr show", "shows all memory regions; addr and rkey are what the other side needs", NULL,
		mr_show},
	{"mr show <mr>", "shows a memory region", mr_args, mr_show},
	{"mr fill <mr>", "fills the memory anew, after others have written to it", mr_args,
		mr_fill},
	{"mr dump <mr>", "shows bytes of the memory", dump_args, mr_dump},
	{"mr dereg <mr>", "deregisters and frees the memory", mr_args, mr_dereg},
};

const struct tp_family tp_mr_family = TP_FAMILY("mr", "memory regions", cmds);
