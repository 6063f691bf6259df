/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic: send, write, read and ping, which last until they are done, and generators and sinks,
 * which go on beside the prompt.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "backend.h"
#include "commands.h"
#include "events.h"
#include "post.h"
#include "qp_state.h"
#include "traffic.h"
#include "wait.h"

#define DEFAULT_COUNT 1000
#define DEFAULT_SIZE 64
#define DEFAULT_DEPTH 64u
#define DEFAULT_SINK_SIZE 65536
#define MIN_FRAME 60
#define MAX_FRAME 9000
#define MAX_SIZE (1u << 30)
/* How often a command looks whether its job is done. */
#define LOOK_MS 2
/* How long it waits for what is in flight when it is to end. */
#define END_MS 3000

static const char *const ops[] = {"send", "write", "read", NULL};

/* ---- what is printed ---- */

static double
seconds(const struct tp_job *job)
{
	uint64_t end = tp_job_state(job) >= TP_JOB_DONE ? job->ended : tp_now();

	return end > job->began ? (end - job->began) / 1e9 : 1e-9;
}

static void
print_rate(uint64_t messages, uint64_t bytes, double s)
{
	tp_row("messages/s", "%.0f", messages / s);
	tp_row("MB/s", "%.2f", bytes / s / 1e6);
}

static int
compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void
print_trips(struct tp_job *job)
{
	uint32_t n = job->num_trips;

	if (n == 0)
		return;
	qsort(job->trips, n, sizeof(*job->trips), compare);
	tp_row("min-us", "%.2f", job->trips[0] / 1e3);
	tp_row("median-us", "%.2f", job->trips[n / 2] / 1e3);
	tp_row("p99-us", "%.2f", job->trips[n * 99ull / 100] / 1e3);
	tp_row("max-us", "%.2f", job->trips[n - 1] / 1e3);
}

static void
print_job(struct tp_job *job)
{
	static const char *const states[] = {"running", "stopping", "done", "failed"};
	uint64_t messages = atomic_load(&job->messages), bytes = atomic_load(&job->bytes);
	enum tp_op op = job->conf.op;

	tp_row(tp_op_name(op), "qp %u", job->conf.qp->obj.id);
	tp_row("state", "%s", states[tp_job_state(job)]);
	tp_row("messages", "%" PRIu64, messages);
	tp_row("bytes", "%" PRIu64, bytes);
	tp_row("seconds", "%.3f", seconds(job));
	print_rate(messages, bytes, seconds(job));
	if (op == TP_OP_WRITE)
		tp_row("read-back", "%" PRIu64, atomic_load(&job->verified));
	else if (op != TP_OP_SEND)
		tp_row("verified", "%" PRIu64, atomic_load(&job->verified));
	if (op == TP_OP_SINK)
		tp_row("missing", "%" PRIu64, atomic_load(&job->missing));
	/* The thread adds to the trips of a ping that runs. */
	if (op == TP_OP_PING && tp_job_state(job) >= TP_JOB_DONE)
		print_trips(job);
	tp_row_end();
	if (tp_job_state(job) == TP_JOB_FAILED)
		tp_print("  because %s\n", job->trouble);
}

/* ---- waiting for a job ---- */

/* What has been told of a job's progress. */
struct progress {
	uint64_t messages, bytes, at;
	unsigned int lines;
};

static void
print_progress(struct tp_job *job, struct progress *p)
{
	uint64_t messages = atomic_load(&job->messages), bytes = atomic_load(&job->bytes);
	uint64_t now = tp_now();

	if (tp_can_overwrite())
		tp_overwrite(p->lines);
	tp_row("progress", "%" PRIu64, messages);
	print_rate(messages - p->messages, bytes - p->bytes, (now - p->at) / 1e9);
	tp_row_end();
	*p = (struct progress){messages, bytes, now, 1};
}

/* Nothing goes on: say what is the most likely reason. */
static void
print_hint(const struct tp_job *job, const struct vrb_stats *before)
{
	const struct vrb_stats *now = vrb_engine_stats(tp_engine());

	if (now->rx_nak_rnr > before->rx_nak_rnr)
		tp_print("note the other side has no receives posted: sink start <qp> there\n");
	else if (job->conf.op == TP_OP_PING)
		tp_print("note nothing comes back: sink start <qp> echo on, at the other side\n");
	else if (now->timeouts > before->timeouts)
		tp_print("note the other side does not answer\n");
}

static int
wait_for(struct tp_job *job, const struct tp_call *call)
{
	struct vrb_stats before = *vrb_engine_stats(tp_engine());
	uint64_t interval = tp_num(call, "interval", 1000) * 1000000;
	uint64_t until = tp_num(call, "seconds", 0) * UINT64_C(1000000000);
	struct progress p = {.at = job->began};
	bool hinted = false, interrupted = false, stands;

	while (tp_job_state(job) < TP_JOB_DONE && !interrupted) {
		interrupted = tp_wait(LOOK_MS);
		if (until > 0 && tp_now() - job->began >= until)
			tp_job_stop(job);
		if (tp_now() - p.at < interval)
			continue;
		stands = atomic_load(&job->messages) == p.messages;
		print_progress(job, &p);
		tp_events_show();
		if (stands && !hinted) {
			print_hint(job, &before);
			hinted = true;
			p.lines = 0;
		}
	}
	return interrupted ? -EINTR : 0;
}

/* ---- starting ---- */

/* What is over makes room for what comes next. */
static void
end_what_is_over(struct tp_qp *qp)
{
	if (qp->initiator != NULL && tp_job_state(qp->initiator) >= TP_JOB_DONE)
		tp_job_end(qp->initiator);
	if (qp->sink != NULL && tp_job_state(qp->sink) >= TP_JOB_DONE)
		tp_job_end(qp->sink);
}

static int
check_free(struct tp_qp *qp, enum tp_op op)
{
	end_what_is_over(qp);
	if (op != TP_OP_SINK && qp->initiator != NULL)
		return tp_refuse(-EBUSY, "a %s by qp %u is going on already: generator stop %u",
			tp_op_name(qp->initiator->conf.op), qp->obj.id, qp->obj.id);
	if ((op == TP_OP_SINK || op == TP_OP_PING) && qp->sink != NULL)
		return tp_refuse(
			-EBUSY, "qp %u has a sink already: sink stop %u", qp->obj.id, qp->obj.id);
	if (op == TP_OP_SINK && qp->initiator != NULL && qp->initiator->conf.op == TP_OP_PING)
		return tp_refuse(-EBUSY, "the answers to a ping come to qp %u", qp->obj.id);
	return 0;
}

static int
check_initiator(const struct tp_job_conf *c)
{
	const struct tp_qp *qp = c->qp;
	enum vrb_qp_state state = vrb_qp_state(qp->qp);
	bool one_sided = c->op == TP_OP_WRITE || c->op == TP_OP_READ;
	struct tp_device dev;

	tp_device(&dev);
	if (qp->ind_table != NULL)
		return tp_refuse(-EINVAL, "qp %u only receives", qp->obj.id);
	if (qp->type == VRB_QPT_UD && qp->ah == NULL)
		return tp_refuse(-ENOTCONN, "qp %u has nobody to send to: qp connect %u",
			qp->obj.id, qp->obj.id);
	if (state != VRB_QPS_RTS)
		return tp_refuse(-ENOTCONN, "qp %u is in state %s and does not send: qp connect %u",
			qp->obj.id, tp_state_name(state), qp->obj.id);
	if (one_sided && qp->type != VRB_QPT_RC && (c->op == TP_OP_READ || qp->type != VRB_QPT_UC))
		return tp_refuse(
			-EOPNOTSUPP, "the type of qp %u has no %s", qp->obj.id, tp_op_name(c->op));
	if (c->op == TP_OP_PING && qp->type == VRB_QPT_RAW_PACKET)
		return tp_refuse(-EOPNOTSUPP, "raw frames are not answered");
	if (qp->type == VRB_QPT_UD && c->size > dev.max_mtu)
		return tp_refuse(
			-EMSGSIZE, "a datagram has up to %u bytes, the path MTU", dev.max_mtu);
	if (qp->type == VRB_QPT_RAW_PACKET && (c->size < MIN_FRAME || c->size > MAX_FRAME))
		return tp_refuse(
			-EMSGSIZE, "a frame has from %d to %d bytes", MIN_FRAME, MAX_FRAME);
	if (c->depth > qp->max_send_wr)
		return tp_refuse(-EINVAL, "depth %u is more than the send queue of qp %u holds, %u",
			c->depth, qp->obj.id, qp->max_send_wr);
	return 0;
}

static int
set_target(struct tp_job_conf *c, const struct tp_call *call)
{
	struct tp_mr *mr = tp_object_arg(call, "mr", TP_MR);
	uint64_t room;

	if (mr == NULL) {
		if (!tp_given(call, "addr") || !tp_given(call, "rkey"))
			return tp_refuse(-EINVAL,
				"a %s needs a place: addr and rkey as mr show tells them at the "
				"other side, or mr of this program",
				tp_op_name(c->op));
		c->remote_addr = tp_num(call, "addr", 0);
		c->rkey = tp_num(call, "rkey", 0);
		return 0;
	}
	if (tp_given(call, "addr") || tp_given(call, "rkey"))
		return tp_refuse(-EINVAL, "give either mr, or addr and rkey");
	c->remote_addr = mr->mem.mr->iova;
	c->rkey = mr->mem.mr->rkey;
	room = mr->mem.size / c->size;
	if (room == 0)
		return tp_refuse(-EMSGSIZE, "mr %u has %zu bytes, less than one message of %u",
			mr->obj.id, mr->mem.size, c->size);
	/* Each message in flight has a place of its own. */
	if (room < c->depth && tp_given(call, "depth"))
		return tp_refuse(-EMSGSIZE,
			"mr %u has room for %" PRIu64
			" messages of %u bytes, and depth has a place for each of %u",
			mr->obj.id, room, c->size, c->depth);
	c->depth = RTE_MIN(room, c->depth);
	return 0;
}

static void
set_frames(struct tp_job_conf *c, const struct tp_call *call)
{
	struct tp_device dev;

	tp_device(&dev);
	memcpy(c->src_mac, dev.mac, sizeof(c->src_mac));
	memcpy(c->dst_mac, tp_given(call, "dst-mac") ? tp_value(call, "dst-mac")->bytes : dev.mac,
		sizeof(c->dst_mac));
	c->flows = tp_num(call, "flows", 1);
}

static int
start_initiator(const struct tp_call *call, enum tp_op op, uint64_t count, struct tp_job **job)
{
	struct tp_qp *qp = tp_object_arg(call, "qp", TP_QP);
	struct tp_job_conf c = {
		.op = op,
		.qp = qp,
		.size = tp_num(call, "size", DEFAULT_SIZE),
		.depth = qp->max_send_wr == 0 ? 1 : RTE_MIN(DEFAULT_DEPTH, qp->max_send_wr),
		.count = count,
		.rate = tp_num(call, "rate", 0),
		.verify = true,
	};
	int rc = check_free(qp, op);

	if (op != TP_OP_PING) {
		c.depth = tp_num(call, "depth", c.depth);
		/* An unreliable WRITE may be lost, and cannot be read back. */
		c.verify =
			tp_num(call, "verify", 1) && !(op == TP_OP_WRITE && qp->type == VRB_QPT_UC);
	}
	if (rc == 0)
		rc = check_initiator(&c);
	if (rc == 0 && (op == TP_OP_WRITE || op == TP_OP_READ))
		rc = set_target(&c, call);
	if (rc == 0 && op == TP_OP_SEND)
		set_frames(&c, call);
	return rc < 0 ? rc : tp_job_start(&c, job);
}

/* Memory of messages in flight must not go, so they are taken back. */
static int
abandon(struct tp_job *job)
{
	struct tp_qp *qp = job->conf.qp;
	uint32_t n = job->in_flight;
	int rc = tp_qp_flush(qp);

	if (rc < 0)
		return rc;
	return tp_refuse(-ETIMEDOUT,
		"%s did not complete in time, so qp %u was taken to state error: qp modify %u "
		"state "
		"reset",
		tp_plural(n, "message"), qp->obj.id, qp->obj.id);
}

/* Waits for what is in flight, shows what the job did, and frees it. */
static int
finish(struct tp_job *job)
{
	int rc = 0;

	for (int ms = 0; tp_job_state(job) < TP_JOB_DONE && ms < END_MS; ms += LOOK_MS)
		tp_pause(LOOK_MS);
	print_job(job);
	if (tp_job_state(job) == TP_JOB_FAILED)
		rc = tp_refuse(-EIO, "%s", job->trouble);
	else if (tp_job_state(job) < TP_JOB_DONE)
		rc = abandon(job);
	tp_job_end(job);
	return rc;
}

static int
run_initiator(const struct tp_call *call, enum tp_op op)
{
	uint64_t count = tp_num(call, "count", tp_given(call, "seconds") ? 0 : DEFAULT_COUNT);
	struct tp_job *job;
	int rc = start_initiator(call, op, count, &job);

	if (rc < 0)
		return rc;
	if (wait_for(job, call) < 0)
		tp_job_stop(job);
	return finish(job);
}

static int
do_send(const struct tp_call *call)
{
	return run_initiator(call, TP_OP_SEND);
}

static int
do_write(const struct tp_call *call)
{
	return run_initiator(call, TP_OP_WRITE);
}

static int
do_read(const struct tp_call *call)
{
	return run_initiator(call, TP_OP_READ);
}

static int
do_ping(const struct tp_call *call)
{
	return run_initiator(call, TP_OP_PING);
}

/* ---- generators and sinks ---- */

static int
generator_start(const struct tp_call *call)
{
	struct tp_job *job;

	return start_initiator(
		call, (enum tp_op)tp_num(call, "op", 0), tp_num(call, "count", 0), &job);
}

/* Receives that fit. */
static uint32_t
room_of(const struct tp_qp *qp)
{
	if (qp->ind_table != NULL)
		return qp->ind_table->wqs[0]->wq->rq.max_wr;
	return qp->srq != NULL ? qp->srq->srq->rq.max_wr : qp->max_recv_wr;
}

static int
sink_start(const struct tp_call *call)
{
	struct tp_qp *qp = tp_object_arg(call, "qp", TP_QP);
	enum vrb_qp_state state = vrb_qp_state(qp->qp);
	struct tp_job_conf c = {
		.op = TP_OP_SINK,
		.qp = qp,
		.size = tp_num(call, "size",
			qp->type == VRB_QPT_RAW_PACKET ? MAX_FRAME : DEFAULT_SINK_SIZE),
		.depth = RTE_MIN(tp_num(call, "depth", DEFAULT_DEPTH), room_of(qp)),
		.verify = tp_num(call, "verify", 1),
		.echo = tp_num(call, "echo", 0),
	};
	struct tp_job *job;
	int rc = check_free(qp, TP_OP_SINK);

	if (rc < 0)
		return rc;
	if (qp->ind_table == NULL && (state == VRB_QPS_RESET || state == VRB_QPS_ERR))
		return tp_refuse(-EINVAL, "qp %u is in state %s and takes no receives", qp->obj.id,
			tp_state_name(state));
	if (c.echo && qp->type == VRB_QPT_RAW_PACKET)
		return tp_refuse(-EINVAL, "raw frames are not sent back");
	if (c.echo && qp->type == VRB_QPT_UD && qp->ah == NULL)
		return tp_refuse(-ENOTCONN, "qp %u has nobody to answer: qp connect %u", qp->obj.id,
			qp->obj.id);
	for (uint32_t i = 0; qp->ind_table != NULL && i < qp->ind_table->num; i++)
		if (vrb_wq_state(qp->ind_table->wqs[i]->wq) != VRB_WQS_RDY)
			return tp_refuse(-EINVAL, "wq %u is not ready: wq modify %u state ready",
				qp->ind_table->wqs[i]->obj.id, qp->ind_table->wqs[i]->obj.id);
	return tp_job_start(&c, &job);
}

static int
stop(struct tp_job *job, const struct tp_qp *qp, const char *what)
{
	if (job == NULL)
		return tp_refuse(
			-ENOENT, "qp %u has no %s (%s show lists them)", qp->obj.id, what, what);
	tp_job_stop(job);
	return finish(job);
}

static int
generator_stop(const struct tp_call *call)
{
	struct tp_qp *qp = tp_object_arg(call, "qp", TP_QP);

	return stop(qp->initiator, qp, "generator");
}

static int
sink_stop(const struct tp_call *call)
{
	struct tp_qp *qp = tp_object_arg(call, "qp", TP_QP);

	return stop(qp->sink, qp, "sink");
}

static int
show_jobs(bool sinks)
{
	unsigned int n = 0;
	struct tp_job *job;

	TAILQ_FOREACH (job, tp_jobs(), link) {
		if ((job->conf.op == TP_OP_SINK) != sinks)
			continue;
		print_job(job);
		n++;
	}
	if (n == 0)
		tp_print("no %s\n", sinks ? "sink" : "generator");
	return 0;
}

static int
generator_show(const struct tp_call *call)
{
	return show_jobs(false);
}

static int
sink_show(const struct tp_call *call)
{
	return show_jobs(true);
}

/* ---- the tables ---- */

#define COUNT_ARGS \
	{.name = "size", \
		.type = TP_NUM, \
		.min = 1, \
		.max = MAX_SIZE, \
		.help = "bytes of a message; 64"}, \
		{.name = "count", \
			.type = TP_NUM, \
			.max = UINT64_MAX, \
			.help = "messages, 0: until it is stopped; 1000, without end for a " \
				"generator"}, \
	{ \
		.name = "rate", .type = TP_NUM, .max = 1000000000, \
		.help = "messages a second at most; 0: as many as go" \
	}
#define WAIT_ARGS \
	{.name = "seconds", .type = TP_NUM, .min = 1, .max = 86400, .help = "how long at most"}, \
	{ \
		.name = "interval", .type = TP_NUM, .min = 10, .max = 60000, \
		.help = "milliseconds between two looks at the rate; 1000" \
	}
#define DEPTH_ARGS \
	{.name = "depth", \
		.type = TP_NUM, \
		.min = 1, \
		.max = VRB_MAX_QP_WR, \
		.help = "messages in flight; 64"}, \
	{ \
		.name = "verify", .type = TP_CHOICE, .words = tp_on_off, \
		.help = "the data is made and verified, which takes time; on" \
	}
#define FRAME_ARGS \
	{.name = "flows", \
		.type = TP_NUM, \
		.min = 1, \
		.max = 60000, \
		.help = "of raw frames: different source ports; 1"}, \
	{ \
		.name = "dst-mac", .type = TP_MAC, .help = "of raw frames: where to; ourselves" \
	}
#define TARGET_ARGS \
	{.name = "mr", .type = TP_ID, .object = TP_MR, .help = "memory of this program"}, \
		{.name = "addr", \
			.type = TP_NUM, \
			.max = UINT64_MAX, \
			.help = "memory of the other side"}, \
	{ \
		.name = "rkey", .type = TP_NUM, .max = UINT32_MAX, .help = "its key" \
	}

static const struct tp_arg send_args[] = {
	TP_QP_ARG, COUNT_ARGS, DEPTH_ARGS, FRAME_ARGS, WAIT_ARGS, {NULL}};
static const struct tp_arg target_args[] = {
	TP_QP_ARG, TARGET_ARGS, COUNT_ARGS, DEPTH_ARGS, WAIT_ARGS, {NULL}};
static const struct tp_arg ping_args[] = {TP_QP_ARG, COUNT_ARGS, WAIT_ARGS, {NULL}};
static const struct tp_arg generator_args[] = {
	TP_QP_ARG,
	{.name = "op", .type = TP_CHOICE, .words = ops, .help = "what it does; send"},
	TARGET_ARGS,
	COUNT_ARGS,
	DEPTH_ARGS,
	FRAME_ARGS,
	{NULL},
};
static const struct tp_arg sink_args[] = {
	TP_QP_ARG,
	{.name = "size",
		.type = TP_NUM,
		.min = 1,
		.max = MAX_SIZE,
		.help = "bytes of the largest message; 65536"},
	{.name = "depth",
		.type = TP_NUM,
		.min = 1,
		.max = VRB_MAX_SRQ_WR,
		.help = "receives that it keeps posted; 64"},
	{.name = "verify", .type = TP_CHOICE, .words = tp_on_off, .help = "the data; on"},
	{.name = "echo",
		.type = TP_CHOICE,
		.words = tp_on_off,
		.help = "on: each message is sent back, as ping wants it; off"},
	{NULL},
};
static const struct tp_arg qp_args[] = {TP_QP_ARG, {NULL}};

static const struct tp_cmd cmds[] = {
	{"send <qp>", "sends messages to a sink, and tells the rate", send_args, do_send},
	{"write <qp>", "writes into memory of the other side, and reads back what it wrote last",
		target_args, do_write},
	{"read <qp>", "reads memory of the other side, and verifies what mr reg put there",
		target_args, do_read},
	{"ping <qp>", "measures round trips to a sink that echoes", ping_args, do_ping},
	{"generator start <qp>", "sends, writes or reads beside the prompt, until it is stopped",
		generator_args, generator_start},
	{"generator show", "shows what is going on, with the rates since the start", NULL,
		generator_show},
	{"generator stop <qp>", "stops it and shows what it did", qp_args, generator_stop},
	{"sink start <qp>", "receives and verifies beside the prompt, until it is stopped",
		sink_args, sink_start},
	{"sink show", "shows what has been received, with the rates since the start", NULL,
		sink_show},
	{"sink stop <qp>", "stops it and shows what it did", qp_args, sink_stop},
};

const struct tp_family tp_traffic_family = TP_FAMILY(
	"traffic", "send, write, read, ping; generators and sinks beside the prompt", cmds);
