/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watching: fill levels, rates and distributions as bars of text. At a terminal they are drawn over
 * each other; otherwise each look is a block of lines.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>

#include "backend.h"
#include "commands.h"
#include "post.h"
#include "ports.h"
#include "rte_pmd_verbena.h"
#include "traffic.h"
#include "wait.h"

#define BAR 50u
#define MAX_LINES 64

/* ---- bars ---- */

static void
print_bar(uint64_t value, uint64_t of)
{
	char bar[BAR + 1];
	/* What is not nothing is seen. */
	unsigned int n = of == 0 ? 0 : (value * BAR + of - 1) / of;

	n = RTE_MIN(n, BAR);
	memset(bar, '#', n);
	memset(bar + n, '.', BAR - n);
	bar[BAR] = '\0';
	tp_print("[%s]", bar);
}

/* ---- what is watched: each prints its lines and tells how many ---- */

struct watched {
	void *obj;
	uint16_t port, queue;
	uint64_t before[MAX_LINES]; /* counters at the last look */
	uint64_t at; /* when that was */
	double gone; /* seconds since then, 0: this is the first look */
};

typedef unsigned int look_t(struct watched *w);

static void
print_level(const char *kind, uint32_t id, uint32_t value, uint32_t of)
{
	tp_print("%s %u  ", kind, id);
	print_bar(value, of);
	tp_print("  %u of %u", value, of);
}

static unsigned int
look_srq(struct watched *w)
{
	struct tp_srq *s = w->obj;

	tp_lock();
	print_level("srq", s->obj.id, vrb_rq_count(&s->srq->rq), s->srq->rq.max_wr);
	tp_print("  limit %u  limit-events %" PRIu64 "  found-empty %" PRIu64 "\n", s->srq->limit,
		atomic_load(&s->limit_events), s->srq->dry);
	tp_unlock();
	return 1;
}

static unsigned int
look_cq(struct watched *w)
{
	struct tp_cq *c = w->obj;

	tp_lock();
	print_level("cq", c->obj.id, tp_cq_count(c->cq), c->cq->size);
	tp_print("  taken %" PRIu64 "%s\n", atomic_load(&c->taken),
		c->cq->overrun ? "  overrun yes" : "");
	tp_unlock();
	return 1;
}

static unsigned int
look_wq(struct watched *w)
{
	struct tp_wq *q = w->obj;

	tp_lock();
	print_level("wq", q->obj.id, vrb_rq_count(&q->wq->rq), q->wq->rq.max_wr);
	tp_print("  frames %" PRIu64 "\n", atomic_load(&q->frames));
	tp_unlock();
	return 1;
}

static unsigned int
look_job(const struct tp_job *job, uint64_t *before, double gone)
{
	uint64_t messages, bytes;

	if (job == NULL)
		return 0;
	messages = atomic_load(&job->messages);
	bytes = atomic_load(&job->bytes);
	tp_row(tp_op_name(job->conf.op), "qp %u", job->conf.qp->obj.id);
	tp_row("messages", "%" PRIu64, messages);
	if (gone > 0) {
		tp_row("messages/s", "%.0f", (messages - before[0]) / gone);
		tp_row("MB/s", "%.2f", (bytes - before[1]) / gone / 1e6);
	}
	tp_row_end();
	before[0] = messages;
	before[1] = bytes;
	return 1;
}

static unsigned int
look_qp(struct watched *w)
{
	struct tp_qp *qp = w->obj;
	struct vrb_sq *sq = vrb_qp_sq(qp->qp);
	struct vrb_rq *rq = vrb_qp_rq(qp->qp);
	unsigned int n = 0;

	if (qp->ind_table == NULL) {
		print_level("sends of qp", qp->obj.id,
			atomic_load(&sq->head) - atomic_load(&sq->tail), qp->max_send_wr);
		tp_print("\n");
		n++;
	}
	if (rq != NULL && qp->ind_table == NULL) {
		print_level("receives of qp", qp->obj.id, vrb_rq_count(rq), qp->max_recv_wr);
		tp_print("\n");
		n++;
	}
	n += look_job(qp->initiator, &w->before[0], w->gone);
	return n + look_job(qp->sink, &w->before[2], w->gone);
}

/* Shares of all that came since the last look, or ever. */
static unsigned int
print_shares(struct watched *w, const char *what, const uint64_t *now, const uint32_t *ids,
	unsigned int num)
{
	uint64_t all = 0, n;

	for (unsigned int i = 0; i < num; i++)
		all += now[i] - w->before[i];
	for (unsigned int i = 0; i < num; i++) {
		n = now[i] - w->before[i];
		tp_print("%s %u  ", what, ids[i]);
		print_bar(n, all);
		tp_print("  %5.1f %%  frames %" PRIu64, all > 0 ? 100.0 * n / all : 0.0, now[i]);
		if (w->gone > 0)
			tp_print("  frames/s %.0f", n / w->gone);
		tp_print("\n");
		w->before[i] = now[i];
	}
	return num;
}

static unsigned int
look_ind_table(struct watched *w)
{
	struct tp_ind_table *t = w->obj;
	uint32_t ids[MAX_LINES];
	uint64_t now[MAX_LINES];
	unsigned int num = 0;

	for (uint32_t i = 0; i < t->num && num < MAX_LINES; i++) {
		bool known = false;

		for (unsigned int j = 0; j < num; j++)
			known |= ids[j] == t->wqs[i]->obj.id;
		if (known)
			continue;
		ids[num] = t->wqs[i]->obj.id;
		now[num++] = atomic_load(&t->wqs[i]->frames);
	}
	return print_shares(w, "wq", now, ids, num);
}

/* By queue, from the extended statistics, which go beyond the 16 queues of the basic ones. */
static unsigned int
look_rss(struct watched *w)
{
	uint32_t ids[MAX_LINES];
	uint64_t now[MAX_LINES];
	unsigned int num = 0;
	uint64_t id;
	char name[RTE_ETH_XSTATS_NAME_SIZE];

	for (unsigned int q = 0; q < MAX_LINES; q++) {
		snprintf(name, sizeof(name), "rx_q%u_packets", q);
		if (rte_eth_xstats_get_id_by_name(w->port, name, &id) < 0 ||
			rte_eth_xstats_get_by_id(w->port, &id, &now[num], 1) != 1)
			break;
		ids[num++] = q;
	}
	if (num > 0)
		return print_shares(w, "queue", now, ids, num);
	tp_print("port %u does not count by queue\n", w->port);
	return 1;
}

static unsigned int
look_queue(struct watched *w)
{
	struct rte_pmd_verbena_rxq q;
	int count = rte_eth_rx_queue_count(w->port, w->queue);
	struct rte_eth_rxq_info info;

	if (rte_pmd_verbena_rxq_get(w->port, w->queue, &q) == 0 && !q.direct) {
		print_level("queue", w->queue, q.count, q.size);
		tp_print("  threshold %u  frames %" PRIu64 "  full %" PRIu64 "\n", q.avail_thresh,
			q.packets, q.full);
	} else if (count >= 0 && rte_eth_rx_queue_info_get(w->port, w->queue, &info) == 0) {
		print_level("queue", w->queue, count, info.nb_desc);
		tp_print("\n");
	} else {
		tp_print("queue %u of port %u does not tell how full it is\n", w->queue, w->port);
	}
	return 1;
}

static unsigned int
look_port(struct watched *w)
{
	struct rte_eth_stats s;
	uint64_t now[4];

	if (rte_eth_stats_get(w->port, &s) < 0)
		memset(&s, 0, sizeof(s));
	now[0] = s.ipackets;
	now[1] = s.ibytes;
	now[2] = s.opackets;
	now[3] = s.obytes;
	tp_row("port", "%u", w->port);
	tp_row("rx-packets", "%" PRIu64, now[0]);
	tp_row("tx-packets", "%" PRIu64, now[2]);
	if (w->gone > 0) {
		tp_row("rx-packets/s", "%.0f", (now[0] - w->before[0]) / w->gone);
		tp_row("rx-MB/s", "%.2f", (now[1] - w->before[1]) / w->gone / 1e6);
		tp_row("tx-packets/s", "%.0f", (now[2] - w->before[2]) / w->gone);
		tp_row("tx-MB/s", "%.2f", (now[3] - w->before[3]) / w->gone / 1e6);
	}
	tp_row_end();
	memcpy(w->before, now, sizeof(now));
	return 1;
}

/* ---- the loop ---- */

static int
watch(const struct tp_call *call, struct watched *w, look_t *look)
{
	/* Into a file it goes on for a while only. */
	uint64_t count = tp_num(call, "count", tp_at_terminal ? 0 : 10);
	unsigned int interval = tp_num(call, "interval", tp_at_terminal ? 200 : 1000), lines = 0;

	for (uint64_t i = 0; count == 0 || i < count; i++) {
		uint64_t now;

		if (i > 0 && tp_wait(interval))
			return 0;
		now = tp_now();
		w->gone = i > 0 ? (now - w->at) / 1e9 : 0;
		w->at = now;
		if (tp_can_overwrite())
			tp_overwrite(lines);
		lines = look(w);
	}
	return 0;
}

static int
watch_object(const struct tp_call *call, enum tp_kind kind, const char *name, look_t *look)
{
	struct watched w = {.obj = tp_object_arg(call, name, kind)};

	return watch(call, &w, look);
}

static int
watch_srq(const struct tp_call *call)
{
	return watch_object(call, TP_SRQ, "srq", look_srq);
}

static int
watch_cq(const struct tp_call *call)
{
	return watch_object(call, TP_CQ, "cq", look_cq);
}

static int
watch_wq(const struct tp_call *call)
{
	return watch_object(call, TP_WQ, "wq", look_wq);
}

static int
watch_qp(const struct tp_call *call)
{
	return watch_object(call, TP_QP, "qp", look_qp);
}

static int
watch_ind_table(const struct tp_call *call)
{
	return watch_object(call, TP_IND_TABLE, "table", look_ind_table);
}

static int
watch_rss(const struct tp_call *call)
{
	struct watched w = {.port = tp_num(call, "port", 0)};

	return watch(call, &w, look_rss);
}

static int
watch_queue(const struct tp_call *call)
{
	struct watched w = {.port = tp_num(call, "port", 0), .queue = tp_num(call, "queue", 0)};

	return watch(call, &w, look_queue);
}

static int
watch_port(const struct tp_call *call)
{
	struct watched w = {.port = tp_num(call, "port", 0)};

	return watch(call, &w, look_port);
}

/* ---- the table ---- */

#define WATCH_ARGS \
	{.name = "interval", \
		.type = TP_NUM, \
		.min = 10, \
		.max = 60000, \
		.help = "milliseconds between two looks; 200, into a file 1000"}, \
	{ \
		.name = "count", .type = TP_NUM, .max = UINT32_MAX, \
		.help = "looks, 0: until a key is pressed; 0, into a file 10" \
	}
#define OBJECT_ARGS(name_, kind_) \
	{ \
		{.name = name_, .type = TP_ID, .object = kind_, .help = "its number"}, WATCH_ARGS, \
		{ \
			NULL \
		} \
	}

static const struct tp_arg srq_args[] = OBJECT_ARGS("srq", TP_SRQ);
static const struct tp_arg cq_args[] = OBJECT_ARGS("cq", TP_CQ);
static const struct tp_arg wq_args[] = OBJECT_ARGS("wq", TP_WQ);
static const struct tp_arg qp_args[] = OBJECT_ARGS("qp", TP_QP);
static const struct tp_arg table_args[] = OBJECT_ARGS("table", TP_IND_TABLE);
static const struct tp_arg queue_args[] = {TP_PORT_ARG, TP_RX_QUEUE_ARG, WATCH_ARGS, {NULL}};
static const struct tp_arg port_args[] = {TP_PORT_ARG, WATCH_ARGS, {NULL}};

static const struct tp_cmd cmds[] = {
	{"watch srq <srq>", "shows how many receives are posted", srq_args, watch_srq},
	{"watch cq <cq>", "shows how many completions wait", cq_args, watch_cq},
	{"watch wq <wq>", "shows how many receives are posted", wq_args, watch_wq},
	{"watch qp <qp>", "shows its queues, and the rates of its traffic", qp_args, watch_qp},
	{"watch ind-table <table>", "shows how frames spread over its work queues", table_args,
		watch_ind_table},
	{"watch queue <port> <queue>", "shows how full an rx-queue of a port is", queue_args,
		watch_queue},
	{"watch rss <port>", "shows how frames spread over the rx-queues of a port", port_args,
		watch_rss},
	{"watch port <port>", "shows the rates of a port", port_args, watch_port},
};

const struct tp_family tp_watch_family = TP_FAMILY(
	"watch", "fill levels, rates and distributions as bars, until a key is pressed", cmds);
