/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Indirection tables, work queues, RSS queue pairs and flow rules that come and go under traffic.
 *
 * A process sends frames of UDP to 16 ports from many addresses. In the other, threads build
 * generations: a random table of work queues, an RSS queue pair with a random key and choice of
 * fields, and a rule that gives it the frames of one port and counts them; and take the oldest down
 * again. What no generation wants goes to a rule of lower priority that drops and counts. So, of
 * all frames that were sent, each was counted by one rule; and of each generation, as many arrive
 * as its rule has counted, each once, whole, and on the work queue that the hash and the table
 * foretell.
 *
 * The sender is never more frames ahead than each work queue has receives: nothing is dropped for
 * want of them.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "raw_util.h"
#include "stress.h"

#define PORT_FIRST 7000
#define PORTS 16
#define BUILDERS 2
#define LIVE 3 /* generations of a builder at a time */
#define WQS 8
#define POLLERS 2
#define SENDERS 2
#define WINDOW 512 /* frames that are not yet accounted for */
#define FRAME_MAX 600
#define TABLE_MAX 64
#define KEY_LEN 40
#define SEEN 65536
#define BATCH 16

/* Between the two processes. */
struct shared {
	atomic_ullong sent[SENDERS];
	atomic_ullong received; /* by work queues, and posted again */
	atomic_ullong dropped; /* by the rule for the rest, as far as it was read */
	atomic_bool stop;
	uint8_t mac[6];
};

struct payload {
	uint32_t sender, seq;
	uint64_t what;
};

static struct shared *shared;

/* ---- the sender ---- */

struct sender {
	struct rig *r;
	struct stress_opts opts;
	uint32_t index;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	uint8_t *buf;
};

static uint32_t
build_frame(struct sender *s, struct stress_rnd *rnd, uint32_t seq, uint8_t *p)
{
	struct payload load = {s->index, seq, stress_rnd_next(rnd)};
	uint32_t len = stress_rnd_range(rnd, FRAME_HEADERS + sizeof(load), FRAME_MAX);
	uint32_t ip = htonl(stress_rnd_range(rnd, 0x0a000001, 0x0a00ffff));
	uint16_t sport = (uint16_t)stress_rnd_range(rnd, 1024, 65535);
	uint16_t dport = (uint16_t)(PORT_FIRST + stress_rnd_range(rnd, 0, PORTS - 1));

	make_frame(s->r, p, shared->mac, len, sport, dport);
	memcpy(p + 26, &ip, sizeof(ip));
	memcpy(p + FRAME_HEADERS, &load, sizeof(load));
	stress_fill(p + FRAME_HEADERS + sizeof(load), len - FRAME_HEADERS - (uint32_t)sizeof(load),
		load.what);
	return len;
}

static void
send_batch(struct sender *s, struct stress_rnd *rnd, uint32_t *seq)
{
	struct ibv_send_wr wr[BATCH], *bad;
	struct ibv_sge sge[BATCH];
	uint32_t i, n = stress_rnd_range(rnd, 1, BATCH), done = 0;
	uint64_t start = stress_now();
	struct ibv_wc wc[BATCH];
	int rc;

	for (i = 0; i < n; i++) {
		uint8_t *p = s->buf + i * FRAME_MAX;

		sge[i] = (struct ibv_sge){
			(uintptr_t)p, build_frame(s, rnd, (*seq)++, p), s->mr->lkey};
		wr[i] = (struct ibv_send_wr){.sg_list = &sge[i],
			.num_sge = 1,
			.opcode = IBV_WR_SEND,
			.send_flags = IBV_SEND_SIGNALED,
			.next = i + 1 < n ? &wr[i + 1] : NULL};
	}
	/* Before the first of them can arrive. */
	shared->sent[s->index] += n;
	rc = ibv_post_send(s->qp, wr, &bad);
	STRESS_CHECK(!rc, "ibv_post_send of frames: %s", strerror(rc));
	while (done < n) {
		int got = ibv_poll_cq(s->cq, BATCH, wc);

		for (rc = 0; rc < got; rc++)
			STRESS_CHECK(wc[rc].status == IBV_WC_SUCCESS, "a frame was not sent: %s",
				ibv_wc_status_str(wc[rc].status));
		done += (uint32_t)got;
		STRESS_CHECK(stress_now() - start < STRESS_PATIENCE_NS,
			"frames that were sent do not complete");
	}
}

static uint64_t
unaccounted(void)
{
	return shared->sent[0] + shared->sent[1] - shared->received - shared->dropped;
}

static void *
sender_main(void *arg)
{
	struct sender *s = arg;
	struct stress_rnd rnd = stress_rnd_init(s->opts.seed, 10 + s->index);
	uint64_t moved = stress_now();
	uint32_t seq = 0;

	while (!shared->stop) {
		if (unaccounted() + SENDERS * BATCH > WINDOW) {
			STRESS_CHECK(stress_now() - moved < STRESS_PATIENCE_NS,
				"%llu frames were sent and are not accounted for",
				(unsigned long long)unaccounted());
			sched_yield();
			continue;
		}
		send_batch(s, &rnd, &seq);
		moved = stress_now();
	}
	return NULL;
}

static void
run_sender(struct stress_opts opts, int fd)
{
	struct sender s[SENDERS];
	pthread_t id[SENDERS];
	void *state;
	uint32_t i;
	char c;

	rig_open(&state);
	for (i = 0; i < SENDERS; i++) {
		struct rig *r = state;

		s[i] = (struct sender){.r = r, .opts = opts, .index = i};
		s[i].cq = ibv_create_cq(r->ctx, 64, NULL, NULL, 0);
		s[i].buf = calloc(BATCH, FRAME_MAX);
		s[i].mr = ibv_reg_mr(r->pd, s[i].buf, BATCH * FRAME_MAX, 0);
		STRESS_CHECK(s[i].cq && s[i].mr, "the sender's objects: %s", strerror(errno));
		r->cq = s[i].cq; /* make_raw() sends on the rig's */
		s[i].qp = make_raw(r, s[i].cq, 0);
	}
	STRESS_CHECK(read(fd, &c, 1) == 1, "the receiver has gone");
	for (i = 0; i < SENDERS; i++)
		id[i] = stress_thread(sender_main, &s[i]);
	for (i = 0; i < SENDERS; i++)
		pthread_join(id[i], NULL);
	STRESS_CHECK(write(fd, &c, 1) == 1, "the receiver has gone");
	/* Until all has arrived. */
	STRESS_CHECK(read(fd, &c, 1) == 1, "the receiver has failed");
	_exit(0);
}

/* ---- the receiver ---- */

struct queue {
	uint32_t index;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *buf;
	pthread_mutex_t lock;
	struct ibv_wq *wq; /* under lock, as is its life */
	uint32_t life;
	atomic_uint empties; /* how often the poller has found the CQ empty */
	uint32_t last[SENDERS]; /* the poller's: the last frame of each sender */
};

struct generation {
	struct ibv_rwq_ind_table *tbl;
	struct ibv_qp *qp;
	struct ibv_flow *flow;
	struct ibv_counters *counters;
	uint32_t mask;
	uint8_t map[TABLE_MAX]; /* places in receiver.queue */
	uint8_t key[KEY_LEN];
	uint64_t fields;
	atomic_ullong arrived;
	uint64_t counted; /* once the rule has gone */
};

struct receiver {
	struct rig *r;
	struct stress_opts opts;
	struct queue queue[WQS];
	pthread_mutex_t queues_lock; /* queues stay while a table is made of them */
	struct generation gen[PORTS]; /* the latest of each port */
	_Atomic uint32_t seen[SENDERS][SEEN];
	atomic_bool stop;
	atomic_ullong counted; /* by rules that have gone */
	atomic_uint generations, renewed;
	struct ibv_qp *rest;
	struct ibv_flow *rest_flow;
	struct ibv_counters *rest_counters;
};

static const uint64_t field_bits[] = {IBV_RX_HASH_SRC_IPV4, IBV_RX_HASH_DST_IPV4,
	IBV_RX_HASH_SRC_PORT_UDP, IBV_RX_HASH_DST_PORT_UDP};
/* Where they are in a frame, in the order in which they are hashed. */
static const struct {
	uint32_t off, len;
} field_place[] = {{26, 4}, {30, 4}, {34, 2}, {36, 2}};

/* For each bit of the input that is set, the 32 bits of the key that begin there. */
static uint32_t
toeplitz(const uint8_t *key, const uint8_t *input, uint32_t len)
{
	uint32_t window = (uint32_t)key[0] << 24 | key[1] << 16 | key[2] << 8 | key[3];
	uint32_t hash = 0, i, bit;

	for (i = 0; i < len; i++) {
		for (bit = 0; bit < 8; bit++) {
			if (input[i] & 0x80 >> bit)
				hash ^= window;
			window = window << 1 | (key[i + 4] >> (7 - bit) & 1);
		}
	}
	return hash;
}

static uint32_t
foretell(const struct generation *g, const uint8_t *frame)
{
	uint8_t input[12];
	uint32_t i, n = 0;

	for (i = 0; i < 4; i++) {
		if (!(g->fields & field_bits[i]))
			continue;
		memcpy(input + n, frame + field_place[i].off, field_place[i].len);
		n += field_place[i].len;
	}
	return g->map[toeplitz(g->key, input, n) & g->mask];
}

/* ---- polling ---- */

static void
post_frame(struct queue *q, struct ibv_wq *wq, uint32_t life, uint32_t i)
{
	struct ibv_sge sge = {(uintptr_t)q->buf + i * FRAME_MAX, FRAME_MAX, q->mr->lkey};
	struct ibv_recv_wr *bad, wr = {
					 .wr_id = (uint64_t)life << 32 | i,
					 .sg_list = &sge,
					 .num_sge = 1,
				 };
	int rc = ibv_post_wq_recv(wq, &wr, &bad);

	STRESS_CHECK(!rc, "ibv_post_wq_recv: %s", strerror(rc));
}

static void
take_frame(struct receiver *r, struct queue *q, const struct ibv_wc *wc)
{
	const uint8_t *p = q->buf + (wc->wr_id & 0xffff) * FRAME_MAX;
	struct generation *g;
	struct payload load;
	uint32_t port;

	STRESS_CHECK(wc->status == IBV_WC_SUCCESS, "a receive failed: %s",
		ibv_wc_status_str(wc->status));
	port = ((uint32_t)p[36] << 8 | p[37]) - PORT_FIRST;
	memcpy(&load, p + FRAME_HEADERS, sizeof(load));
	STRESS_CHECK(
		wc->byte_len >= FRAME_HEADERS + sizeof(load) && port < PORTS &&
			load.sender < SENDERS &&
			stress_is_filled(p + FRAME_HEADERS + sizeof(load),
				wc->byte_len - FRAME_HEADERS - (uint32_t)sizeof(load), load.what),
		"a frame of %u bytes does not hold what was sent", wc->byte_len);
	STRESS_CHECK(load.seq + 1 > q->last[load.sender],
		"frame %u of sender %u came on work queue %u behind frame %u", load.seq,
		load.sender, q->index, q->last[load.sender] - 1);
	q->last[load.sender] = load.seq + 1;
	STRESS_CHECK(atomic_exchange(&r->seen[load.sender][load.seq % SEEN], load.seq + 1) !=
			     load.seq + 1,
		"frame %u of sender %u came twice", load.seq, load.sender);
	g = &r->gen[port];
	STRESS_CHECK(foretell(g, p) == q->index,
		"a frame to port %u came on work queue %u; hash and table say %u",
		port + PORT_FIRST, q->index, foretell(g, p));
	g->arrived++;
}

static int
poll_queue(struct receiver *r, struct queue *q)
{
	struct ibv_wc wc[BATCH];
	int i, n = ibv_poll_cq(q->cq, BATCH, wc);

	STRESS_CHECK(n >= 0, "ibv_poll_cq: %d", n);
	for (i = 0; i < n; i++) {
		take_frame(r, q, &wc[i]);
		pthread_mutex_lock(&q->lock);
		/* The work queue may have been replaced, with receives of its own. */
		if (q->wq && wc[i].wr_id >> 32 == q->life)
			post_frame(q, q->wq, q->life, (uint32_t)wc[i].wr_id & 0xffff);
		pthread_mutex_unlock(&q->lock);
	}
	shared->received += (unsigned int)n;
	if (!n)
		q->empties++;
	return n;
}

struct poller {
	struct receiver *r;
	uint32_t index;
};

static void *
poller_main(void *arg)
{
	struct poller *p = arg;
	struct receiver *r = p->r;
	uint32_t i;
	int n;

	while (!r->stop) {
		n = 0;
		for (i = p->index; i < WQS; i += POLLERS)
			n += poll_queue(r, &r->queue[i]);
		if (!n)
			sched_yield();
	}
	return NULL;
}

/* ---- work queues, tables, queue pairs, rules ---- */

static struct ibv_wq *
open_wq(struct receiver *r, struct queue *q, uint32_t life)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = WINDOW, .max_sge = 1, .pd = r->r->pd, .cq = q->cq};
	struct ibv_wq_attr ready = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};
	struct ibv_wq *wq = ibv_create_wq(r->r->ctx, &attr);
	uint32_t i;

	STRESS_CHECK(wq && !ibv_modify_wq(wq, &ready), "a work queue: %s", strerror(errno));
	for (i = 0; i < WINDOW; i++)
		post_frame(q, wq, life, i);
	return wq;
}

/* Replaces a work queue, if no table has it. */
static void
renew_queue(struct receiver *r, struct queue *q)
{
	uint64_t start = stress_now();
	struct ibv_wq *wq;
	uint32_t empties;
	int rc;

	pthread_mutex_lock(&q->lock);
	rc = ibv_destroy_wq(q->wq);
	STRESS_CHECK(!rc || rc == EBUSY, "ibv_destroy_wq: %s", strerror(rc));
	if (rc) {
		pthread_mutex_unlock(&q->lock);
		return;
	}
	q->wq = NULL;
	pthread_mutex_unlock(&q->lock);
	/* What has completed is still to be looked at: its memory is used again then. */
	empties = q->empties;
	while (q->empties - empties < 2) {
		STRESS_CHECK(stress_now() - start < STRESS_PATIENCE_NS,
			"work queue %u was destroyed, and its CQ does not run empty", q->index);
		sched_yield();
	}
	wq = open_wq(r, q, q->life + 1);
	pthread_mutex_lock(&q->lock);
	q->life++;
	q->wq = wq;
	pthread_mutex_unlock(&q->lock);
	r->renewed++;
}

static void
make_table(struct receiver *r, struct generation *g, struct stress_rnd *rnd)
{
	struct ibv_wq *entries[TABLE_MAX];
	struct ibv_rwq_ind_table_init_attr init = {
		.log_ind_tbl_size = stress_rnd_range(rnd, 0, 6), .ind_tbl = entries};
	uint32_t first = stress_rnd_range(rnd, 0, WQS - 1), few = stress_rnd_range(rnd, 0, 2);
	uint32_t i, size = 1u << init.log_ind_tbl_size;

	g->mask = size - 1;
	pthread_mutex_lock(&r->queues_lock);
	renew_queue(r, &r->queue[stress_rnd_range(rnd, 0, WQS - 1)]);
	for (i = 0; i < size; i++) {
		/* Few of them, so that some are in no table at times. */
		g->map[i] = (uint8_t)((first + stress_rnd_range(rnd, 0, few)) % WQS);
		entries[i] = r->queue[g->map[i]].wq;
	}
	g->tbl = ibv_create_rwq_ind_table(r->r->ctx, &init);
	STRESS_CHECK(g->tbl, "ibv_create_rwq_ind_table: %s", strerror(errno));
	STRESS_CHECK(ibv_destroy_wq(entries[0]) == EBUSY, "a work queue in a table was destroyed");
	pthread_mutex_unlock(&r->queues_lock);
}

static void
make_rss_qp(struct receiver *r, struct generation *g, struct stress_rnd *rnd)
{
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.pd = r->r->pd,
		.rwq_ind_tbl = g->tbl};
	uint32_t i;

	for (i = 0; i < KEY_LEN; i++)
		g->key[i] = (uint8_t)stress_rnd_next(rnd);
	g->fields = 0;
	for (i = 0; i < 4; i++)
		if (stress_rnd_range(rnd, 0, 2))
			g->fields |= field_bits[i];
	init.rx_hash_conf = (struct ibv_rx_hash_conf){.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
		.rx_hash_key_len = KEY_LEN,
		.rx_hash_key = g->key,
		.rx_hash_fields_mask = g->fields};
	g->qp = ibv_create_qp_ex(r->r->ctx, &init);
	STRESS_CHECK(g->qp, "ibv_create_qp_ex of RSS: %s", strerror(errno));
	STRESS_CHECK(ibv_destroy_rwq_ind_table(g->tbl) == EBUSY, "a table in use was destroyed");
}

static struct ibv_counters *
make_counters(struct receiver *r)
{
	struct ibv_counters_init_attr init = {0};
	struct ibv_counter_attach_attr attach = {.counter_desc = IBV_COUNTER_PACKETS};
	struct ibv_counters *counters = ibv_create_counters(r->r->ctx, &init);

	STRESS_CHECK(counters && !ibv_attach_counters_point_flow(counters, &attach, NULL),
		"counters of a rule: %s", strerror(errno));
	return counters;
}

static uint64_t
read_counter(struct ibv_counters *counters)
{
	uint64_t value = 0;

	STRESS_CHECK(!ibv_read_counters(counters, &value, 1, 0), "ibv_read_counters failed");
	return value;
}

static struct ibv_flow *
make_rule(struct receiver *r, struct ibv_qp *qp, uint32_t port, struct ibv_counters *counters)
{
	struct __attribute__((packed)) {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
		struct ibv_flow_spec_ipv4 ip;
		struct ibv_flow_spec_tcp_udp udp;
		struct ibv_flow_spec_counter_action count;
	} rule = {
		.attr = {.type = IBV_FLOW_ATTR_NORMAL,
			.size = sizeof(rule),
			.num_of_specs = 4,
			.port = 1},
		.eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth)},
		.ip = {.type = IBV_FLOW_SPEC_IPV4, .size = sizeof(rule.ip)},
		.udp = {.type = IBV_FLOW_SPEC_UDP,
			.size = sizeof(rule.udp),
			.val = {.dst_port = htons((uint16_t)port)},
			.mask = {.dst_port = 0xffff}},
		.count = {.type = IBV_FLOW_SPEC_ACTION_COUNT,
			.size = sizeof(rule.count),
			.counters = counters},
	};
	struct ibv_flow *flow;

	memcpy(rule.eth.val.dst_mac, shared->mac, 6);
	memset(rule.eth.mask.dst_mac, 0xff, 6);
	flow = ibv_create_flow(qp, &rule.attr);
	STRESS_CHECK(flow, "ibv_create_flow: %s", strerror(errno));
	return flow;
}

/* For what no generation wants. */
static void
make_rest_rule(struct receiver *r)
{
	struct __attribute__((packed)) {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
		struct ibv_flow_spec_action_drop drop;
		struct ibv_flow_spec_counter_action count;
	} rule = {
		.attr = {.type = IBV_FLOW_ATTR_NORMAL,
			.size = sizeof(rule),
			.priority = 7,
			.num_of_specs = 3,
			.port = 1},
		.eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth)},
		.drop = {.type = IBV_FLOW_SPEC_ACTION_DROP, .size = sizeof(rule.drop)},
		.count = {.type = IBV_FLOW_SPEC_ACTION_COUNT, .size = sizeof(rule.count)},
	};

	r->rest = make_raw(r->r, r->r->cq, 0);
	rule.count.counters = r->rest_counters = make_counters(r);
	memcpy(rule.eth.val.dst_mac, shared->mac, 6);
	memset(rule.eth.mask.dst_mac, 0xff, 6);
	r->rest_flow = ibv_create_flow(r->rest, &rule.attr);
	STRESS_CHECK(r->rest_flow, "the rule for the rest: %s", strerror(errno));
}

static void
take_down(struct receiver *r, struct generation *g)
{
	STRESS_CHECK(!ibv_destroy_flow(g->flow), "a rule could not be destroyed");
	g->counted = read_counter(g->counters);
	r->counted += g->counted;
	STRESS_CHECK(!ibv_destroy_counters(g->counters) && !ibv_destroy_qp(g->qp) &&
			     !ibv_destroy_rwq_ind_table(g->tbl),
		"an RSS queue pair could not be destroyed");
	g->flow = NULL;
}

/* Of a generation that was taken down all frames arrive that its rule has counted. */
static void
await_frames(struct generation *g, uint32_t port)
{
	uint64_t start = stress_now();

	while (g->arrived < g->counted) {
		STRESS_CHECK(stress_now() - start < STRESS_PATIENCE_NS,
			"the rule for port %u has counted %llu frames, and %llu arrived", port,
			(unsigned long long)g->counted, (unsigned long long)g->arrived);
		sched_yield();
	}
	STRESS_CHECK(g->arrived == g->counted, "port %u: %llu frames arrived, %llu were counted",
		port, (unsigned long long)g->arrived, (unsigned long long)g->counted);
}

struct builder {
	struct receiver *r;
	uint32_t index;
};

static void *
builder_main(void *arg)
{
	struct builder *b = arg;
	struct receiver *r = b->r;
	struct stress_rnd rnd = stress_rnd_init(r->opts.seed, 20 + b->index);
	uint32_t n = 0, i;

	/* The port of the n-th generation of this builder. */
#define PORT_OF(n) ((n) % (PORTS / BUILDERS) * BUILDERS + b->index)
	while (!shared->stop) {
		struct generation *g = &r->gen[PORT_OF(n)];

		if (n >= PORTS / BUILDERS)
			await_frames(g, PORT_FIRST + PORT_OF(n));
		g->arrived = 0;
		g->counted = 0;
		make_table(r, g, &rnd);
		make_rss_qp(r, g, &rnd);
		g->counters = make_counters(r);
		g->flow = make_rule(r, g->qp, PORT_FIRST + PORT_OF(n), g->counters);
		n++;
		r->generations++;
		stress_sleep_us(stress_rnd_range(&rnd, 0, 3000));
		if (n >= LIVE)
			take_down(r, &r->gen[PORT_OF(n - LIVE)]);
	}
	for (i = n >= LIVE ? n - LIVE + 1 : 0; i < n; i++)
		take_down(r, &r->gen[PORT_OF(i)]);
	for (i = 0; i < PORTS / BUILDERS; i++)
		await_frames(&r->gen[PORT_OF(i)], PORT_FIRST + PORT_OF(i));
	return NULL;
}

static void
open_receiver(struct receiver *r)
{
	uint32_t i;

	own_mac(r->r, shared->mac);
	pthread_mutex_init(&r->queues_lock, NULL);
	for (i = 0; i < WQS; i++) {
		struct queue *q = &r->queue[i];

		q->index = i;
		q->cq = ibv_create_cq(r->r->ctx, 2 * WINDOW, NULL, NULL, 0);
		q->buf = calloc(WINDOW, FRAME_MAX);
		q->mr = ibv_reg_mr(
			r->r->pd, q->buf, (size_t)WINDOW * FRAME_MAX, IBV_ACCESS_LOCAL_WRITE);
		STRESS_CHECK(q->cq && q->mr, "the receiver's objects: %s", strerror(errno));
		pthread_mutex_init(&q->lock, NULL);
		q->wq = open_wq(r, q, 0);
	}
	make_rest_rule(r);
}

static void
close_receiver(struct receiver *r)
{
	uint32_t i;

	STRESS_CHECK(!ibv_destroy_flow(r->rest_flow) && !ibv_destroy_counters(r->rest_counters) &&
			     !ibv_destroy_qp(r->rest),
		"the rule for the rest could not be destroyed");
	for (i = 0; i < WQS; i++) {
		struct queue *q = &r->queue[i];

		STRESS_CHECK(
			!ibv_destroy_wq(q->wq) && !ibv_destroy_cq(q->cq) && !ibv_dereg_mr(q->mr),
			"a work queue could not be destroyed");
		pthread_mutex_destroy(&q->lock);
		free(q->buf);
	}
	pthread_mutex_destroy(&r->queues_lock);
}

/* Tells the sender what was dropped, until all that it sent is accounted for. */
static void
account(struct receiver *r, int fd)
{
	uint64_t end = stress_now() + r->opts.seconds * UINT64_C(1000000000), start;
	char c;

	while (stress_now() < end) {
		shared->dropped = read_counter(r->rest_counters);
		stress_sleep_us(200);
	}
	shared->stop = true;
	STRESS_CHECK(read(fd, &c, 1) == 1, "the sender has gone");
	start = stress_now();
	do {
		shared->dropped = read_counter(r->rest_counters);
		STRESS_CHECK(stress_now() - start < STRESS_PATIENCE_NS,
			"%llu frames were sent and never accounted for",
			(unsigned long long)unaccounted());
		stress_sleep_us(1000);
	} while (unaccounted());
}

static void
run_receiver(struct stress_opts opts, int fd)
{
	struct receiver *r = calloc(1, sizeof(*r));
	struct builder builders[BUILDERS];
	struct poller pollers[POLLERS];
	pthread_t polling[POLLERS], building[BUILDERS];
	uint64_t sent;
	void *state;
	uint32_t i;

	rig_open(&state);
	r->r = state;
	r->opts = opts;
	open_receiver(r);
	for (i = 0; i < POLLERS; i++) {
		pollers[i] = (struct poller){r, i};
		polling[i] = stress_thread(poller_main, &pollers[i]);
	}
	for (i = 0; i < BUILDERS; i++) {
		builders[i] = (struct builder){r, i};
		building[i] = stress_thread(builder_main, &builders[i]);
	}
	STRESS_CHECK(write(fd, "", 1) == 1, "the sender has gone");
	account(r, fd);
	for (i = 0; i < BUILDERS; i++)
		pthread_join(building[i], NULL);
	r->stop = true;
	for (i = 0; i < POLLERS; i++)
		pthread_join(polling[i], NULL);
	sent = shared->sent[0] + shared->sent[1];
	STRESS_CHECK(sent == r->counted + shared->dropped && r->counted == shared->received,
		"of %llu frames rules have counted %llu and dropped %llu, and %llu arrived",
		(unsigned long long)sent, (unsigned long long)r->counted,
		(unsigned long long)shared->dropped, (unsigned long long)shared->received);
	STRESS_CHECK(write(fd, "", 1) == 1, "the sender has gone");
	printf("%llu frames, %llu received, %llu dropped; %u generations, %u work queues\n",
		(unsigned long long)sent, (unsigned long long)shared->received,
		(unsigned long long)shared->dropped, r->generations, r->renewed);
	STRESS_CHECK(shared->received && shared->dropped && r->generations > PORTS,
		"nothing has happened");
	close_receiver(r);
	rig_close(&state);
	free(r);
}

int
main(int argc, char **argv)
{
	struct stress_opts opts = stress_begin(argc, argv);
	int fd[2], status;
	pid_t child;

	shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	STRESS_CHECK(shared != MAP_FAILED && !socketpair(AF_UNIX, SOCK_STREAM, 0, fd),
		"there is no memory, or no socket");
	child = fork();
	STRESS_CHECK(child >= 0, "fork failed");
	if (!child) {
		close(fd[0]);
		run_sender(opts, fd[1]);
	}
	close(fd[1]);
	run_receiver(opts, fd[0]);
	waitpid(child, &status, 0);
	STRESS_CHECK(status == 0, "the sender ended with status %#x", status);
	return 0;
}
