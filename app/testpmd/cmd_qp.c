/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs: made, connected, shown, destroyed. What brings them from state to state is in
 * qp_state.c.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_random.h>

#include "backend.h"
#include "commands.h"
#include "post.h"
#include "qp_state.h"
#include "traffic.h"

#define DEFAULT_SIZE 128
#define DEFAULT_QKEY 0x11111111

static const char *const types[] = {"rc", "uc", "ud", "raw", "rss", NULL};
static const enum vrb_qp_type type_of[] = {
	VRB_QPT_RC, VRB_QPT_UC, VRB_QPT_UD, VRB_QPT_RAW_PACKET, VRB_QPT_RAW_PACKET};
#define TYPE_RSS 4

/* Bit i is bit i of VRB_RX_HASH_*, but for the last, which is VRB_RX_HASH_INNER. */
static const char *const hash_fields[] = {"src-ipv4", "dst-ipv4", "src-ipv6", "dst-ipv6",
	"src-port-tcp", "dst-port-tcp", "src-port-udp", "dst-port-udp", "inner", NULL};
#define FIELD_INNER (1u << 8)

static int
check_rss(const struct tp_call *call)
{
	static const char *const not_of_rss[] = {
		"cq", "recv-cq", "srq", "send-size", "recv-size", "inline", "psn", "qkey"};

	if (!tp_given(call, "ind-table"))
		return tp_refuse(-EINVAL, "a queue pair of type rss needs an ind-table");
	for (unsigned int i = 0; i < RTE_DIM(not_of_rss); i++)
		if (tp_given(call, not_of_rss[i]))
			return tp_refuse(-EINVAL,
				"a queue pair of type rss has no %s: its work queues receive",
				not_of_rss[i]);
	if (tp_given(call, "key") && tp_value(call, "key")->len != VRB_RSS_KEY_LEN)
		return tp_refuse(-EINVAL, "key has %u bytes; it must be %d",
			tp_value(call, "key")->len, VRB_RSS_KEY_LEN);
	return 0;
}

static int
check(const struct tp_call *call)
{
	static const char *const of_rss[] = {"ind-table", "hash", "key"};
	unsigned int type = tp_num(call, "type", 0);

	if (type == TYPE_RSS)
		return check_rss(call);
	for (unsigned int i = 0; i < RTE_DIM(of_rss); i++)
		if (tp_given(call, of_rss[i]))
			return tp_refuse(
				-EINVAL, "%s is for queue pairs of type rss only", of_rss[i]);
	if (!tp_given(call, "cq"))
		return tp_refuse(-EINVAL, "cq is missing: where completions go");
	if (tp_given(call, "srq") && tp_given(call, "recv-size"))
		return tp_refuse(-EINVAL,
			"recv-size and srq exclude each other: with an srq there is no own receive "
			"queue");
	if (tp_given(call, "srq") && type_of[type] == VRB_QPT_RAW_PACKET)
		return tp_refuse(-EINVAL, "a queue pair of type raw cannot use an srq");
	return 0;
}

static void
set_rss(struct vrb_rss *rss, const struct tp_call *call)
{
	/* The key that Microsoft's definition of RSS uses for its examples. */
	static const uint8_t default_key[VRB_RSS_KEY_LEN] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b,
		0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
		0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
		0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa};
	uint64_t fields = tp_num(call, "hash", VRB_RX_HASH_ALL & 0xff);

	memset(rss, 0, sizeof(*rss));
	vrb_rss_set_key(rss, tp_given(call, "key") ? tp_value(call, "key")->bytes : default_key,
		VRB_RSS_KEY_LEN);
	if (fields & FIELD_INNER)
		fields = (fields & ~(uint64_t)FIELD_INNER) | VRB_RX_HASH_INNER;
	vrb_rss_set_fields(rss, fields);
}

static void
set_init(struct vrb_qp_init *init, struct tp_qp *qp, const struct tp_call *call)
{
	qp->send_cq = tp_object_arg(call, "cq", TP_CQ);
	qp->recv_cq =
		tp_given(call, "recv-cq") ? tp_object_arg(call, "recv-cq", TP_CQ) : qp->send_cq;
	qp->srq = tp_object_arg(call, "srq", TP_SRQ);
	init->send_cq = qp->send_cq->cq;
	init->recv_cq = qp->recv_cq->cq;
	init->srq = qp->srq != NULL ? qp->srq->srq : NULL;
	init->max_send_wr = tp_num(call, "send-size", DEFAULT_SIZE);
	init->max_recv_wr = qp->srq != NULL ? 0 : tp_num(call, "recv-size", DEFAULT_SIZE);
	init->max_send_sge = init->max_recv_sge = 1;
	init->max_inline = tp_num(call, "inline", 64);
}

static int
create_in_engine(struct tp_qp *qp, const struct tp_call *call)
{
	struct vrb_qp_init init = {.type = qp->type, .pd = tp_pd(), .user = qp};
	struct vrb_rss rss;
	int rc;

	qp->ind_table = tp_object_arg(call, "ind-table", TP_IND_TABLE);
	if (qp->ind_table != NULL) {
		set_rss(&rss, call);
		init.ind_tbl = qp->ind_table->tbl;
		init.rss = &rss;
	} else {
		set_init(&init, qp, call);
	}
	tp_lock();
	rc = vrb_qp_create(tp_engine(), &init, &qp->qp);
	tp_unlock();
	qp->max_send_wr = init.max_send_wr;
	qp->max_recv_wr = init.max_recv_wr;
	qp->max_inline = init.max_inline;
	return rc < 0 ? tp_refuse_memory(TP_QP, rc) : 0;
}

static int
qp_create(const struct tp_call *call)
{
	struct tp_qp *qp;
	int rc = check(call);

	if (rc < 0)
		return rc;
	qp = tp_object_new(TP_QP, tp_num(call, "qp", 0), sizeof(*qp));
	if (qp == NULL)
		return tp_refuse_memory(TP_QP, -ENOMEM);
	qp->type = type_of[tp_num(call, "type", 0)];
	qp->psn = tp_num(call, "psn", rte_rand_max(1 << 24));
	qp->qkey = tp_num(call, "qkey", DEFAULT_QKEY);
	rc = create_in_engine(qp, call);
	if (rc < 0) {
		tp_object_free(&qp->obj);
		return rc;
	}
	/* As far as it gets by itself. */
	rc = qp->ind_table != NULL ? 0 : tp_qp_prepare(qp);
	if (rc < 0)
		tp_qp_destroy(qp);
	return rc;
}

/* ---- connecting ---- */

static struct tp_qp_peer
peer_of(const struct tp_call *call)
{
	return (struct tp_qp_peer){
		.mtu = tp_num(call, "mtu", 0),
		.timeout = tp_num(call, "timeout", 14),
		.retry = tp_num(call, "retries", 7),
		.rnr_retry = tp_num(call, "rnr-retries", 7),
	};
}

static int
connect_to(const struct tp_call *call)
{
	struct tp_qp *qp = tp_object_arg(call, "qp", TP_QP);
	struct tp_qp *other = tp_object_arg(call, "peer", TP_QP);
	struct tp_qp_peer peer = peer_of(call);
	struct tp_device dev;
	int rc;

	if (qp->type != other->type)
		return tp_refuse(-EINVAL, "qp %u and qp %u are of different types", qp->obj.id,
			other->obj.id);
	rc = tp_qp_may_connect(other);
	if (rc < 0)
		return rc;
	tp_device(&dev);
	peer.gid = dev.gid[0];
	peer.qpn = vrb_qp_num(other->qp);
	peer.psn = other->psn;
	peer.qkey = other->qkey;
	rc = tp_qp_connect(qp, &peer);
	if (rc < 0 || other == qp)
		return rc;
	peer.qpn = vrb_qp_num(qp->qp);
	peer.psn = qp->psn;
	peer.qkey = qp->qkey;
	return tp_qp_connect(other, &peer);
}

static int
connect_dest(const struct tp_call *call)
{
	struct tp_qp_peer peer = peer_of(call);

	memcpy(peer.gid.raw, tp_value(call, "gid")->bytes, sizeof(peer.gid.raw));
	peer.qpn = tp_num(call, "qpn", 0);
	peer.psn = tp_num(call, "psn", 0);
	peer.qkey = tp_num(call, "qkey", DEFAULT_QKEY);
	return tp_qp_connect(tp_object_arg(call, "qp", TP_QP), &peer);
}

static int
qp_modify(const struct tp_call *call)
{
	return tp_qp_to(tp_object_arg(call, "qp", TP_QP), tp_num(call, "state", 0));
}

static int
qp_post(const struct tp_call *call)
{
	struct tp_qp *qp = tp_object_arg(call, "qp", TP_QP);
	uint32_t count = tp_num(call, "count", 1), room;
	enum vrb_qp_state state = vrb_qp_state(qp->qp);
	struct vrb_rq *rq = vrb_qp_rq(qp->qp);

	if (qp->srq != NULL)
		return tp_refuse(-EINVAL, "qp %u receives by srq %u: srq post %u", qp->obj.id,
			qp->srq->obj.id, qp->srq->obj.id);
	if (qp->ind_table != NULL)
		return tp_refuse(-EINVAL, "qp %u receives by its work queues: wq post", qp->obj.id);
	if (state == VRB_QPS_RESET || state == VRB_QPS_ERR)
		return tp_refuse(-EINVAL, "qp %u is in state %s and takes no receives", qp->obj.id,
			tp_state_name(state));
	room = rq->max_wr - vrb_rq_count(rq);
	if (count > room)
		return tp_refuse(
			-ENOBUFS, "qp %u has room for %s", qp->obj.id, tp_plural(room, "receive"));
	return tp_job_buffers(&qp->obj, tp_num(call, "bytes", 4096) + tp_job_headroom(qp), count);
}

/* ---- showing ---- */

static void
show_queues(struct tp_qp *qp)
{
	struct vrb_sq *sq = vrb_qp_sq(qp->qp);
	struct vrb_rq *rq = vrb_qp_rq(qp->qp);

	if (qp->ind_table != NULL) {
		tp_row("ind-table", "%u", qp->ind_table->obj.id);
		tp_row("flows", "%u", vrb_qp_flows(qp->qp));
		return;
	}
	tp_row("cq", "%u", qp->send_cq->obj.id);
	if (qp->recv_cq != qp->send_cq)
		tp_row("recv-cq", "%u", qp->recv_cq->obj.id);
	tp_row("send-size", "%u", qp->max_send_wr);
	tp_row("sends", "%u",
		atomic_load_explicit(&sq->head, memory_order_relaxed) -
			atomic_load_explicit(&sq->tail, memory_order_acquire));
	if (qp->srq != NULL)
		tp_row("srq", "%u", qp->srq->obj.id);
	if (rq != NULL) {
		tp_row("recv-size", "%u", qp->max_recv_wr);
		tp_row("receives", "%u", vrb_rq_count(rq));
	}
	if (qp->type == VRB_QPT_RAW_PACKET)
		tp_row("flows", "%u", vrb_qp_flows(qp->qp));
}

static void
show_peer(struct tp_qp *qp, const struct vrb_qp_attr *a, enum vrb_qp_state state)
{
	char text[INET6_ADDRSTRLEN];

	if (qp->type == VRB_QPT_UD)
		tp_row("qkey", "%#x", qp->qkey);
	if (qp->type == VRB_QPT_UD && qp->ah != NULL)
		tp_row("peer-qpn", "%#x", qp->remote_qpn);
	if (qp->type == VRB_QPT_UD || state < VRB_QPS_RTR || state == VRB_QPS_ERR)
		return;
	tp_row("peer", "%s", tp_gid_text(&a->av.dgid, text));
	tp_row("peer-qpn", "%#x", a->dest_qpn);
	tp_row("peer-psn", "%u", a->rq_psn);
	tp_row("mtu", "%u", 128u << a->path_mtu);
}

static const char *
type_name(const struct tp_qp *qp)
{
	for (unsigned int i = 0; i < TYPE_RSS; i++)
		if (type_of[i] == qp->type && qp->ind_table == NULL)
			return types[i];
	return types[TYPE_RSS];
}

static void
show(struct tp_obj *obj)
{
	struct tp_qp *qp = (struct tp_qp *)obj;
	bool raw = qp->type == VRB_QPT_RAW_PACKET;
	char text[INET6_ADDRSTRLEN];
	struct vrb_qp_attr a;
	struct tp_device dev;

	tp_device(&dev);
	tp_lock();
	vrb_qp_query(qp->qp, &a);
	tp_row("qp", "%u", obj->id);
	tp_row("type", "%s", type_name(qp));
	tp_row("qpn", "%#x", vrb_qp_num(qp->qp));
	if (qp->ind_table == NULL)
		tp_row("state", "%s", tp_state_name(a.state));
	if (!raw)
		tp_row("psn", "%u", qp->psn);
	show_queues(qp);
	if (!raw)
		show_peer(qp, &a, a.state);
	if (qp->initiator != NULL || qp->sink != NULL)
		tp_row("traffic", "%s%s%s",
			qp->initiator != NULL ? tp_op_name(qp->initiator->conf.op) : "",
			qp->initiator != NULL && qp->sink != NULL ? "," : "",
			qp->sink != NULL ? "sink" : "");
	tp_row_end();
	tp_unlock();
	/* To be typed at the other side. */
	if (!raw)
		tp_print("  to connect to it: qp connect <qp> dest %s %#x %u\n",
			tp_gid_text(&dev.gid[0], text), vrb_qp_num(qp->qp), qp->psn);
}

static int
qp_show(const struct tp_call *call)
{
	return tp_show(call, TP_QP, show);
}

/* ---- destroying ---- */

int
tp_qp_destroy(struct tp_qp *qp)
{
	uint32_t flows = vrb_qp_flows(qp->qp);
	int rc = tp_refuse_traffic(&qp->obj);

	if (rc < 0)
		return rc;
	if (flows > 0)
		return tp_refuse_busy(&qp->obj, flows, "flow rule");
	tp_settle(qp->qp);
	tp_lock();
	vrb_qp_destroy(qp->qp);
	tp_cq_forget(qp->send_cq, qp);
	tp_cq_forget(qp->recv_cq, qp);
	if (qp->ah != NULL)
		vrb_ah_destroy(tp_engine(), qp->ah);
	tp_unlock();
	tp_buffers_free(&qp->buffers);
	tp_object_free(&qp->obj);
	return 0;
}

static int
qp_destroy(const struct tp_call *call)
{
	return tp_qp_destroy(tp_object_arg(call, "qp", TP_QP));
}

/* ---- the table ---- */

#define PATH_ARGS \
	{.name = "mtu", \
		.type = TP_NUM, \
		.min = 256, \
		.max = 4096, \
		.help = "path MTU, 256 to 4096; the largest of the port"}, \
		{.name = "timeout", \
			.type = TP_NUM, \
			.max = 31, \
			.help = "of the retransmission, 4.096 us times 2^n, 0: never; 14"}, \
		{.name = "retries", \
			.type = TP_NUM, \
			.max = 7, \
			.help = "when there is no answer; 7"}, \
	{ \
		.name = "rnr-retries", .type = TP_NUM, .max = 7, \
		.help = "when there is no receive, 7: without end; 7" \
	}

static const struct tp_arg create_args[] = {
	{.name = "qp", .type = TP_NEW_ID, .object = TP_QP, .help = "its number"},
	{.name = "type",
		.type = TP_CHOICE,
		.words = types,
		.help = "reliable, unreliable, datagram, raw frames, raw frames over a table; rc"},
	{.name = "cq", .type = TP_ID, .object = TP_CQ, .help = "where completions go"},
	{.name = "recv-cq",
		.type = TP_ID,
		.object = TP_CQ,
		.help = "where those of receives go, if elsewhere"},
	{.name = "srq", .type = TP_ID, .object = TP_SRQ, .help = "where it receives from"},
	{.name = "send-size",
		.type = TP_NUM,
		.min = 1,
		.max = VRB_MAX_QP_WR,
		.help = "sends that fit; 128"},
	{.name = "recv-size",
		.type = TP_NUM,
		.min = 1,
		.max = VRB_MAX_QP_WR,
		.help = "receives that fit; 128"},
	{.name = "inline",
		.type = TP_NUM,
		.max = VRB_MAX_INLINE,
		.help = "bytes up to which data is copied on posting; 64"},
	{.name = "psn", .type = TP_NUM, .max = 0xffffff, .help = "of its first packet; random"},
	{.name = "qkey", .type = TP_NUM, .max = UINT32_MAX, .help = "of a datagram's receiver"},
	{.name = "ind-table", .type = TP_ID, .object = TP_IND_TABLE, .help = "of type rss"},
	{.name = "hash",
		.type = TP_FLAGS,
		.words = hash_fields,
		.help = "fields that are hashed; all but inner"},
	{.name = "key", .type = TP_HEX, .help = "of the hash, 40 bytes; Microsoft's"},
	{NULL},
};
static const struct tp_arg to_args[] = {
	TP_QP_ARG,
	{.name = "peer", .type = TP_ID, .object = TP_QP, .help = "a queue pair, or itself"},
	PATH_ARGS,
	{NULL},
};
static const struct tp_arg dest_args[] = {
	TP_QP_ARG,
	{.name = "gid", .type = TP_GID, .help = "the address of the other host"},
	{.name = "qpn", .type = TP_NUM, .max = 0xffffff, .help = "number of its queue pair"},
	{.name = "psn", .type = TP_NUM, .max = 0xffffff, .help = "of the first packet it sends"},
	{.name = "qkey", .type = TP_NUM, .max = UINT32_MAX, .help = "of its queue pair of type ud"},
	PATH_ARGS,
	{NULL},
};
static const struct tp_arg modify_args[] = {
	TP_QP_ARG,
	{.name = "state",
		.type = TP_CHOICE,
		.words = tp_qp_targets,
		.required = true,
		.help = "reset forgets, error flushes, sqd drains, rts goes on"},
	{NULL},
};
static const struct tp_arg post_args[] = {
	TP_QP_ARG,
	{.name = "count", .type = TP_NUM, .min = 1, .max = VRB_MAX_QP_WR, .help = "how many; 1"},
	{.name = "bytes",
		.type = TP_NUM,
		.min = 1,
		.max = 1 << 20,
		.help = "bytes of each, the same for all of the queue pair; 4096"},
	{NULL},
};
static const struct tp_arg qp_args[] = {TP_QP_ARG, {NULL}};

static const struct tp_cmd cmds[] = {
	{"qp create <qp>", "makes a queue pair; of type ud, raw or rss it is ready to be used",
		create_args, qp_create},
	{"qp connect <qp> to <peer>", "connects two queue pairs of this program with each other",
		to_args, connect_to},
	{"qp connect <qp> dest <gid> <qpn> <psn>",
		"connects it to one of another program; qp show there tells these three", dest_args,
		connect_dest},
	{"qp modify <qp>", "takes it to another state", modify_args, qp_modify},
	{"qp post <qp>", "posts receives by hand", post_args, qp_post},
	{"qp show", "shows all queue pairs, and how others connect to them", NULL, qp_show},
	{"qp show <qp>", "shows a queue pair, and how others connect to it", qp_args, qp_show},
	{"qp destroy <qp>", "destroys it, in any state", qp_args, qp_destroy},
};

const struct tp_family tp_qp_family = TP_FAMILY("qp", "queue pairs", cmds);
