/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of objects. The prompt's thread changes it; threads that carry traffic follow pointers
 * from jobs, and an object that a job uses is not freed.
 */
#include <stdlib.h>

#include "objects.h"

static struct tp_objs tables[TP_KINDS];
static bool initialized;

static const struct {
	const char *name, *title;
} kinds[TP_KINDS] = {
	[TP_MR] = {"mr", "memory region"},
	[TP_CQ] = {"cq", "completion queue"},
	[TP_SRQ] = {"srq", "shared receive queue"},
	[TP_WQ] = {"wq", "work queue"},
	[TP_IND_TABLE] = {"ind-table", "indirection table"},
	[TP_QP] = {"qp", "queue pair"},
	[TP_FLOW] = {"flow", "flow rule"},
};

const char *
tp_kind_name(enum tp_kind kind)
{
	return kinds[kind].name;
}

const char *
tp_kind_title(enum tp_kind kind)
{
	return kinds[kind].title;
}

struct tp_objs *
tp_objects(enum tp_kind kind)
{
	if (!initialized)
		for (int i = 0; i < TP_KINDS; i++)
			TAILQ_INIT(&tables[i]);
	initialized = true;
	return &tables[kind];
}

unsigned int
tp_object_count(enum tp_kind kind)
{
	struct tp_obj *obj;
	unsigned int n = 0;

	TAILQ_FOREACH (obj, tp_objects(kind), link)
		n++;
	return n;
}

struct tp_obj *
tp_object_find(enum tp_kind kind, uint32_t id)
{
	struct tp_obj *obj;

	TAILQ_FOREACH (obj, tp_objects(kind), link)
		if (obj->id == id)
			return obj;
	return NULL;
}

void *
tp_object_new(enum tp_kind kind, uint32_t id, size_t size)
{
	struct tp_obj *obj = calloc(1, size), *after;

	if (obj == NULL)
		return NULL;
	obj->kind = kind;
	obj->id = id;
	/* In the order of their numbers, as they are shown. */
	TAILQ_FOREACH_REVERSE(after, tp_objects(kind), tp_objs, link)
	if (after->id < id)
		break;
	if (after != NULL)
		TAILQ_INSERT_AFTER(tp_objects(kind), after, obj, link);
	else
		TAILQ_INSERT_HEAD(tp_objects(kind), obj, link);
	return obj;
}

void
tp_object_free(struct tp_obj *obj)
{
	TAILQ_REMOVE(tp_objects(obj->kind), obj, link);
	free(obj);
}
