/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work queues, and the indirection tables over which a queue pair spreads what it receives.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "backend.h"
#include "commands.h"
#include "post.h"
#include "traffic.h"

/* ---- work queues ---- */

static const char *const wq_states[] = {"reset", "ready", "error", NULL};
static const char *const wq_flags[] = {"strip-vlan", "scatter-fcs", NULL};

static int
wq_create(const struct tp_call *call)
{
	struct tp_wq *wq = tp_object_new(TP_WQ, tp_num(call, "wq", 0), sizeof(*wq));
	uint32_t size = tp_num(call, "size", 256), sge = 1;
	int rc;

	if (wq == NULL)
		return tp_refuse_memory(TP_WQ, -ENOMEM);
	wq->cq = tp_object_arg(call, "cq", TP_CQ);
	tp_lock();
	rc = vrb_wq_create(tp_engine(), tp_pd(), wq->cq->cq, &size, &sge, tp_num(call, "flags", 0),
		wq, &wq->wq);
	tp_unlock();
	if (rc < 0) {
		tp_object_free(&wq->obj);
		return tp_refuse_memory(TP_WQ, rc);
	}
	return 0;
}

static int
wq_modify(const struct tp_call *call)
{
	struct tp_wq *wq = tp_object_arg(call, "wq", TP_WQ);
	enum vrb_wq_state from = vrb_wq_state(wq->wq), to = tp_num(call, "state", 0);
	int rc;

	if (wq->sink != NULL)
		return tp_refuse_traffic(&wq->obj);
	tp_lock();
	rc = vrb_wq_modify(wq->wq, to, tp_now());
	tp_unlock();
	if (rc < 0)
		return tp_refuse(rc, "wq %u cannot go from state %s to %s", wq->obj.id,
			wq_states[from], wq_states[to]);
	if (to == VRB_WQS_RESET) {
		tp_cq_forget(wq->cq, wq);
		tp_buffers_reset(&wq->buffers);
	}
	return 0;
}

static int
wq_post(const struct tp_call *call)
{
	struct tp_wq *wq = tp_object_arg(call, "wq", TP_WQ);
	uint32_t count = tp_num(call, "count", 1);
	uint32_t room = wq->wq->rq.max_wr - vrb_rq_count(&wq->wq->rq);

	if (vrb_wq_state(wq->wq) != VRB_WQS_RDY)
		return tp_refuse(-EINVAL, "wq %u is in state %s: wq modify %u state ready first",
			wq->obj.id, wq_states[vrb_wq_state(wq->wq)], wq->obj.id);
	if (count > room)
		return tp_refuse(
			-ENOBUFS, "wq %u has room for %s", wq->obj.id, tp_plural(room, "receive"));
	return tp_job_buffers(&wq->obj, tp_num(call, "bytes", 2048), count);
}

static void
show_wq(struct tp_obj *obj)
{
	struct tp_wq *wq = (struct tp_wq *)obj;

	tp_lock();
	tp_row("wq", "%u", obj->id);
	tp_row("state", "%s", wq_states[vrb_wq_state(wq->wq)]);
	tp_row("number", "%#x", wq->wq->num);
	tp_row("cq", "%u", wq->cq->obj.id);
	tp_row("size", "%u", wq->wq->rq.max_wr);
	tp_row("posted", "%u", vrb_rq_count(&wq->wq->rq));
	tp_row("frames", "%" PRIu64, atomic_load(&wq->frames));
	tp_row("bytes", "%" PRIu64, atomic_load(&wq->bytes));
	tp_row("entries", "%u", wq->wq->refs);
	tp_row_end();
	tp_unlock();
}

static int
wq_show(const struct tp_call *call)
{
	return tp_show(call, TP_WQ, show_wq);
}

int
tp_wq_destroy(struct tp_wq *wq)
{
	uint32_t refs = wq->wq->refs;
	int rc;

	tp_lock();
	rc = vrb_wq_destroy(wq->wq);
	if (rc == 0)
		tp_cq_forget(wq->cq, wq);
	tp_unlock();
	if (rc < 0)
		return tp_refuse(rc, "wq %u stands in %s of indirection tables: destroy them first",
			wq->obj.id, refs == 1 ? "an entry" : tp_plural(refs, "entrie"));
	tp_buffers_free(&wq->buffers);
	tp_object_free(&wq->obj);
	return 0;
}

static int
wq_destroy(const struct tp_call *call)
{
	return tp_wq_destroy(tp_object_arg(call, "wq", TP_WQ));
}

/* ---- indirection tables ---- */

/* The work queues of the list, again and again, until the table is full. */
static int
fill_table(struct tp_ind_table *t, const struct tp_call *call)
{
	uint32_t ids[VRB_MAX_IND_TBL_SIZE];
	unsigned int n = tp_nums(tp_value(call, "wqs"), ids, RTE_DIM(ids));

	t->num = tp_num(call, "size", rte_align32pow2(n));
	if (!rte_is_power_of_2(t->num))
		return tp_refuse(-EINVAL, "size is a power of two, not %u", t->num);
	if (n > t->num)
		return tp_refuse(
			-EINVAL, "%u work queues do not fit into a table of %u entries", n, t->num);
	t->wqs = calloc(t->num, sizeof(struct tp_wq *));
	if (t->wqs == NULL)
		return tp_refuse_memory(TP_IND_TABLE, -ENOMEM);
	for (uint32_t i = 0; i < t->num; i++) {
		t->wqs[i] = (struct tp_wq *)tp_object_find(TP_WQ, ids[i % n]);
		if (t->wqs[i] == NULL)
			return tp_refuse(
				-ENOENT, "there is no wq %u (wq show lists them)", ids[i % n]);
	}
	return 0;
}

static int
create_table(struct tp_ind_table *t)
{
	struct vrb_wq **wqs = calloc(t->num, sizeof(*wqs));
	int rc;

	if (wqs == NULL)
		return tp_refuse_memory(TP_IND_TABLE, -ENOMEM);
	for (uint32_t i = 0; i < t->num; i++)
		wqs[i] = t->wqs[i]->wq;
	tp_lock();
	rc = vrb_ind_tbl_create(tp_engine(), wqs, t->num, &t->tbl);
	tp_unlock();
	free(wqs);
	return rc < 0 ? tp_refuse_memory(TP_IND_TABLE, rc) : 0;
}

static int
ind_table_create(const struct tp_call *call)
{
	struct tp_ind_table *t = tp_object_new(TP_IND_TABLE, tp_num(call, "table", 0), sizeof(*t));
	int rc;

	if (t == NULL)
		return tp_refuse_memory(TP_IND_TABLE, -ENOMEM);
	rc = fill_table(t, call);
	if (rc == 0)
		rc = create_table(t);
	if (rc < 0) {
		free(t->wqs);
		tp_object_free(&t->obj);
	}
	return rc;
}

static void
show_table(struct tp_obj *obj)
{
	struct tp_ind_table *t = (struct tp_ind_table *)obj;

	tp_row("ind-table", "%u", obj->id);
	tp_row("number", "%#x", t->tbl->num);
	tp_row("size", "%u", t->num);
	tp_row("queue-pairs", "%u", t->tbl->refs);
	tp_row_end();
	for (uint32_t i = 0; i < t->num; i++) {
		if (i % 16 == 0)
			tp_print("%s  entry %4u  wqs", i > 0 ? "\n" : "", i);
		tp_print(" %u", t->wqs[i]->obj.id);
	}
	tp_print("\n");
}

static int
ind_table_show(const struct tp_call *call)
{
	struct tp_obj *obj;

	if (call->cmd->args != NULL) {
		show_table(tp_object_arg(call, "table", TP_IND_TABLE));
		return 0;
	}
	TAILQ_FOREACH (obj, tp_objects(TP_IND_TABLE), link)
		show_table(obj);
	if (TAILQ_EMPTY(tp_objects(TP_IND_TABLE)))
		tp_print("no ind-table\n");
	return 0;
}

int
tp_ind_table_destroy(struct tp_ind_table *t)
{
	uint32_t refs = t->tbl->refs;
	int rc;

	tp_lock();
	rc = vrb_ind_tbl_destroy(t->tbl);
	tp_unlock();
	if (rc < 0)
		return tp_refuse_busy(&t->obj, refs, "queue pair");
	free(t->wqs);
	tp_object_free(&t->obj);
	return 0;
}

static int
ind_table_destroy(const struct tp_call *call)
{
	return tp_ind_table_destroy(tp_object_arg(call, "table", TP_IND_TABLE));
}

/* ---- the tables ---- */

#define WQ_ARG \
	{ \
		.name = "wq", .type = TP_ID, .object = TP_WQ, .help = "a work queue" \
	}

static const struct tp_arg create_args[] = {
	{.name = "wq", .type = TP_NEW_ID, .object = TP_WQ, .help = "its number"},
	{.name = "cq",
		.type = TP_ID,
		.object = TP_CQ,
		.required = true,
		.help = "where its completions go"},
	{.name = "size",
		.type = TP_NUM,
		.min = 1,
		.max = VRB_MAX_WQ_WR,
		.help = "receives that fit at least; 256"},
	{.name = "flags",
		.type = TP_FLAGS,
		.words = wq_flags,
		.help = "what is done to frames: the VLAN tag taken out, the FCS added"},
	{NULL},
};
static const struct tp_arg modify_args[] = {
	WQ_ARG,
	{.name = "state",
		.type = TP_CHOICE,
		.words = wq_states,
		.required = true,
		.help = "reset forgets what is posted, error flushes it"},
	{NULL},
};
static const struct tp_arg post_args[] = {
	WQ_ARG,
	{.name = "count", .type = TP_NUM, .min = 1, .max = VRB_MAX_WQ_WR, .help = "how many; 1"},
	{.name = "bytes",
		.type = TP_NUM,
		.min = 64,
		.max = 65536,
		.help = "bytes of each, the same for all of the queue; 2048"},
	{NULL},
};
static const struct tp_arg wq_args[] = {WQ_ARG, {NULL}};

static const struct tp_cmd wq_cmds[] = {
	{"wq create <wq>", "makes a work queue, in state reset", create_args, wq_create},
	{"wq modify <wq>", "takes it to another state", modify_args, wq_modify},
	{"wq post <wq>", "posts receives by hand", post_args, wq_post},
	{"wq show", "shows all work queues and how full they are", NULL, wq_show},
	{"wq show <wq>", "shows a work queue", wq_args, wq_show},
	{"wq destroy <wq>", "destroys it, unless it is used", wq_args, wq_destroy},
};

static const struct tp_arg table_create_args[] = {
	{.name = "table", .type = TP_NEW_ID, .object = TP_IND_TABLE, .help = "its number"},
	{.name = "wqs",
		.type = TP_NUMS,
		.max = TP_MAX_ID,
		.required = true,
		.help = "work queues that stand in it in turn, like 0-3 or 0,0,1"},
	{.name = "size",
		.type = TP_NUM,
		.min = 1,
		.max = VRB_MAX_IND_TBL_SIZE,
		.help = "entries, a power of two; as many as there are work queues"},
	{NULL},
};
static const struct tp_arg table_args[] = {
	{.name = "table", .type = TP_ID, .object = TP_IND_TABLE, .help = "an indirection table"},
	{NULL}};

static const struct tp_cmd table_cmds[] = {
	{"ind-table create <table>", "makes a table of work queues, which a hash indexes",
		table_create_args, ind_table_create},
	{"ind-table show", "shows all indirection tables with their entries", NULL, ind_table_show},
	{"ind-table show <table>", "shows an indirection table", table_args, ind_table_show},
	{"ind-table destroy <table>", "destroys it, unless it is used", table_args,
		ind_table_destroy},
};

const struct tp_family tp_wq_family =
	TP_FAMILY("wq", "work queues, which receive frames for an indirection table", wq_cmds);
const struct tp_family tp_ind_table_family = TP_FAMILY("ind-table",
	"indirection tables, by which a queue pair of type rss spreads frames", table_cmds);
