/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the queues of this device cost, as ratios: a shared receive queue against a private one, a
 * CQ that was resized against one that was not, and an RSS queue pair against one with a queue of
 * its own.
 *
 *   verbena run -- queue_bench [-t turns] [-n messages]
 *
 * Everything is done by one thread in one process, which sends to itself: nobody waits for another,
 * so that a figure is the cost in instructions and caches of posting a receive, sending into it and
 * polling both completions. Each turn samples both sides of each comparison, in an order that
 * changes; medians of the samples are printed, and the median of the turns' ratios.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <infiniband/verbs.h>

#define DEPTH 64
#define LEN 64
#define FRAME 128
#define WQS 8
#define QPS 16

static unsigned int turns = 200, messages = 2000;

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static uint8_t *buf;
static union ibv_gid gid;

static void
check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "queue_bench: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* ---- messages ---- */

/* Pairs of queue pairs whose receives come from queues of their own or from a shared one. */
struct lane {
	struct ibv_cq *cq; /* of sends and receives */
	struct ibv_srq *srq;
	struct ibv_qp *a[QPS], *b[QPS];
	unsigned int qps, next;
};

static struct ibv_qp *
make_qp(struct lane *l, struct ibv_srq *srq)
{
	struct ibv_qp_init_attr init = {.send_cq = l->cq,
		.recv_cq = l->cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	check(qp, "ibv_create_qp");
	return qp;
}

static void
connect_qp(struct ibv_qp *qp, struct ibv_qp *peer)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qp_num,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1, .port_num = 1, .grh = {.dgid = gid, .hop_limit = 64}}};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS, .timeout = 14, .retry_cnt = 7, .rnr_retry = 7};

	check(!ibv_modify_qp(qp, &init,
		      IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS) &&
			!ibv_modify_qp(qp, &rtr,
				IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
					IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
					IBV_QP_MIN_RNR_TIMER) &&
			!ibv_modify_qp(qp, &rts,
				IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC |
					IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY),
		"ibv_modify_qp");
}

static void
post_recv(struct lane *l, unsigned int q, unsigned int i)
{
	struct ibv_sge sge = {(uintptr_t)buf + (size_t)i * LEN, LEN, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = i, .sg_list = &sge, .num_sge = 1};

	if (l->srq)
		check(!ibv_post_srq_recv(l->srq, &wr, &bad), "ibv_post_srq_recv");
	else
		check(!ibv_post_recv(l->b[q], &wr, &bad), "ibv_post_recv");
}

static struct lane
open_lane(unsigned int qps, bool shared, int cqe, const int *sizes)
{
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = DEPTH * QPS, .max_sge = 1}};
	struct lane l = {.qps = qps};
	unsigned int q, i;

	l.cq = ibv_create_cq(ctx, cqe, NULL, NULL, 0);
	check(l.cq, "ibv_create_cq");
	for (; sizes && *sizes; sizes++)
		check(!ibv_resize_cq(l.cq, *sizes), "ibv_resize_cq");
	if (shared) {
		l.srq = ibv_create_srq(pd, &srq);
		check(l.srq, "ibv_create_srq");
	}
	for (q = 0; q < qps; q++) {
		l.a[q] = make_qp(&l, NULL);
		l.b[q] = make_qp(&l, l.srq);
		connect_qp(l.a[q], l.b[q]);
		connect_qp(l.b[q], l.a[q]);
		for (i = 0; i < DEPTH / 2; i++)
			post_recv(&l, q, i);
	}
	return l;
}

/* One message: its receive, its send, both completions. */
static void
pass_message(struct lane *l)
{
	unsigned int q = l->next++ % l->qps, got = 0;
	struct ibv_sge sge = {(uintptr_t)buf + (size_t)DEPTH * LEN, LEN, mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED};
	struct ibv_wc wc[2];
	int i, n;

	post_recv(l, q, l->next % DEPTH);
	check(!ibv_post_send(l->a[q], &wr, &bad), "ibv_post_send");
	while (got < 2) {
		n = ibv_poll_cq(l->cq, 2, wc);
		for (i = 0; i < n; i++)
			check(wc[i].status == IBV_WC_SUCCESS, ibv_wc_status_str(wc[i].status));
		got += (unsigned int)n;
	}
}

static double
sample_messages(void *arg)
{
	double start = now_ns();
	unsigned int i;

	for (i = 0; i < messages; i++)
		pass_message(arg);
	return (now_ns() - start) / messages;
}

/* ---- frames ---- */

/* A receiver of frames of its own UDP port. */
struct raw_lane {
	struct ibv_cq *send_cq, *cq;
	struct ibv_qp *tx, *rx;
	struct ibv_wq *wq[WQS]; /* of RSS */
	struct ibv_rwq_ind_table *tbl;
	uint16_t port;
	unsigned int next;
};

static void
ready(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT, .port_num = 1};

	check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT), "INIT");
	attr.qp_state = IBV_QPS_RTR;
	check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RTR");
	attr.qp_state = IBV_QPS_RTS;
	check(!ibv_modify_qp(qp, &attr, IBV_QP_STATE), "RTS");
}

static struct ibv_qp *
make_raw(struct ibv_cq *send_cq, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {.send_cq = send_cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RAW_PACKET,
		.cap = {.max_send_wr = DEPTH,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	check(qp, "ibv_create_qp of frames");
	ready(qp);
	return qp;
}

static void
own_mac(uint8_t *mac)
{
	union ibv_gid ll;

	check(!ibv_query_gid(ctx, 1, 1, &ll), "ibv_query_gid");
	memcpy(mac, ll.raw + 8, 3);
	memcpy(mac + 3, ll.raw + 13, 3);
	mac[0] ^= 2;
}

static void
make_rss(struct raw_lane *l)
{
	static uint8_t key[40] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67};
	struct ibv_wq_attr rdy = {.attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY};
	struct ibv_rwq_ind_table_init_attr tbl = {.log_ind_tbl_size = 3, .ind_tbl = l->wq};
	struct ibv_qp_init_attr_ex init = {.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
		.pd = pd,
		.rx_hash_conf = {.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
			.rx_hash_key_len = sizeof(key),
			.rx_hash_key = key,
			.rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 | IBV_RX_HASH_DST_IPV4 |
					       IBV_RX_HASH_SRC_PORT_UDP |
					       IBV_RX_HASH_DST_PORT_UDP}};
	unsigned int i;

	for (i = 0; i < WQS; i++) {
		struct ibv_wq_init_attr wq = {.wq_type = IBV_WQT_RQ,
			.max_wr = DEPTH,
			.max_sge = 1,
			.pd = pd,
			.cq = l->cq};

		l->wq[i] = ibv_create_wq(ctx, &wq);
		check(l->wq[i] && !ibv_modify_wq(l->wq[i], &rdy), "ibv_create_wq");
	}
	l->tbl = ibv_create_rwq_ind_table(ctx, &tbl);
	check(l->tbl, "ibv_create_rwq_ind_table");
	init.rwq_ind_tbl = l->tbl;
	l->rx = ibv_create_qp_ex(ctx, &init);
	check(l->rx, "ibv_create_qp_ex");
}

static void
steer(struct raw_lane *l)
{
	struct __attribute__((packed)) {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
		struct ibv_flow_spec_ipv4 ip;
		struct ibv_flow_spec_tcp_udp udp;
	} rule = {
		.attr = {.type = IBV_FLOW_ATTR_NORMAL,
			.size = sizeof(rule),
			.num_of_specs = 3,
			.port = 1},
		.eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth)},
		.ip = {.type = IBV_FLOW_SPEC_IPV4, .size = sizeof(rule.ip)},
		.udp = {.type = IBV_FLOW_SPEC_UDP,
			.size = sizeof(rule.udp),
			.val = {.dst_port = htons(l->port)},
			.mask = {.dst_port = 0xffff}},
	};

	own_mac(rule.eth.val.dst_mac);
	memset(rule.eth.mask.dst_mac, 0xff, 6);
	check(ibv_create_flow(l->rx, &rule.attr), "ibv_create_flow");
}

static void
post_frame(struct raw_lane *l, unsigned int wq)
{
	struct ibv_sge sge = {(uintptr_t)buf, FRAME, mr->lkey};
	struct ibv_recv_wr *bad, wr = {.wr_id = wq, .sg_list = &sge, .num_sge = 1};

	check(!(l->tbl ? ibv_post_wq_recv(l->wq[wq], &wr, &bad) : ibv_post_recv(l->rx, &wr, &bad)),
		"posting a receive for a frame");
}

static struct raw_lane
open_raw(bool rss, uint16_t port)
{
	struct raw_lane l = {.port = port};
	unsigned int i;

	l.send_cq = ibv_create_cq(ctx, DEPTH, NULL, NULL, 0);
	l.cq = ibv_create_cq(ctx, DEPTH * WQS, NULL, NULL, 0);
	check(l.send_cq && l.cq, "ibv_create_cq");
	l.tx = make_raw(l.send_cq, l.send_cq);
	if (rss)
		make_rss(&l);
	else
		l.rx = make_raw(l.send_cq, l.cq);
	steer(&l);
	for (i = 0; i < (rss ? WQS * DEPTH / 2 : DEPTH / 2); i++)
		post_frame(&l, i % WQS);
	return l;
}

/* One frame of one of many flows: sent, received, its receive posted again. */
static void
pass_frame(struct raw_lane *l)
{
	uint8_t *p = buf + 4096;
	struct ibv_sge sge = {(uintptr_t)p, FRAME, mr->lkey};
	struct ibv_send_wr *bad, wr = {.sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_SEND,
					 .send_flags = IBV_SEND_SIGNALED};
	const uint16_t ports[2] = {htons((uint16_t)(1024 + l->next++ * 7 % 5000)), htons(l->port)};
	struct ibv_wc wc;
	int n;

	memcpy(p + 34, ports, sizeof(ports));
	check(!ibv_post_send(l->tx, &wr, &bad), "sending a frame");
	while ((n = ibv_poll_cq(l->send_cq, 1, &wc)) == 0)
		;
	check(n == 1 && wc.status == IBV_WC_SUCCESS, "the send of a frame");
	while ((n = ibv_poll_cq(l->cq, 1, &wc)) == 0)
		;
	check(n == 1 && wc.status == IBV_WC_SUCCESS, "the receive of a frame");
	post_frame(l, (unsigned int)wc.wr_id);
}

static double
sample_frames(void *arg)
{
	double start = now_ns();
	unsigned int i;

	for (i = 0; i < messages; i++)
		pass_frame(arg);
	return (now_ns() - start) / messages;
}

static void
build_frame(void)
{
	const uint16_t ip_len = htons(FRAME - 14), udp_len = htons(FRAME - 34);
	uint8_t *p = buf + 4096;

	own_mac(p);
	own_mac(p + 6);
	p[12] = 0x08;
	p[14] = 0x45;
	memcpy(p + 16, &ip_len, 2);
	p[22] = 64;
	p[23] = 17;
	memcpy(p + 26, "\x0a\x01\x02\x03\x0a\x04\x05\x06", 8);
	memcpy(p + 38, &udp_len, 2);
}

/* ---- comparing ---- */

struct comparison {
	const char *name;
	double (*sample)(void *arg);
	void *base, *other;
	double *base_ns, *other_ns, *ratio; /* of each turn */
};

static int
by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double
quantile(double *v, unsigned int quarter)
{
	qsort(v, turns, sizeof(*v), by_value);
	return v[(turns - 1) * quarter / 4];
}

static void
take_turn(struct comparison *c, unsigned int turn)
{
	bool other_first = turn & 1;

	if (other_first)
		c->other_ns[turn] = c->sample(c->other);
	c->base_ns[turn] = c->sample(c->base);
	if (!other_first)
		c->other_ns[turn] = c->sample(c->other);
	c->ratio[turn] = c->other_ns[turn] / c->base_ns[turn];
}

static void
tell(struct comparison *c)
{
	double low = quantile(c->ratio, 1), middle = quantile(c->ratio, 2),
	       high = quantile(c->ratio, 3);

	printf("%-44s %6.0f ns %6.0f ns   %.3f  (%.3f to %.3f)\n", c->name, quantile(c->base_ns, 2),
		quantile(c->other_ns, 2), middle, low, high);
}

static void
open_device(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	check(list && list[0], "there is no device");
	ctx = ibv_open_device(list[0]);
	check(ctx, "ibv_open_device");
	pd = ibv_alloc_pd(ctx);
	buf = aligned_alloc(4096, 65536);
	memset(buf, 0, 65536);
	mr = ibv_reg_mr(pd, buf, 65536, IBV_ACCESS_LOCAL_WRITE);
	check(pd && mr && !ibv_query_gid(ctx, 1, 0, &gid), "the device's objects");
}

int
main(int argc, char **argv)
{
	static const int sizes[] = {64, 3000, 256, 8192, 2048, 0};
	struct lane own, shared, many_own, many_shared, resized;
	struct raw_lane one, rss;
	struct comparison all[] = {
		{"SRQ against private RQ, 1 QP", sample_messages, &own, &shared, NULL, NULL, NULL},
		{"SRQ against private RQs, 16 QPs", sample_messages, &many_own, &many_shared, NULL,
			NULL, NULL},
		{"CQ resized 5 times against a fresh one", sample_messages, &own, &resized, NULL,
			NULL, NULL},
		{"RSS to 8 work queues against one queue", sample_frames, &one, &rss, NULL, NULL,
			NULL},
	};
	unsigned int i, turn, n = sizeof(all) / sizeof(all[0]);
	int opt;

	while ((opt = getopt(argc, argv, "t:n:")) != -1) {
		if (opt == 't')
			turns = (unsigned int)strtoul(optarg, NULL, 0);
		else if (opt == 'n')
			messages = (unsigned int)strtoul(optarg, NULL, 0);
		else
			return 2;
	}
	open_device();
	build_frame();
	own = open_lane(1, false, 2048, NULL);
	shared = open_lane(1, true, 2048, NULL);
	many_own = open_lane(QPS, false, 2048, NULL);
	many_shared = open_lane(QPS, true, 2048, NULL);
	resized = open_lane(1, false, 16, sizes);
	one = open_raw(false, 5001);
	rss = open_raw(true, 5002);
	for (i = 0; i < n; i++) {
		all[i].base_ns = calloc(turns, sizeof(double));
		all[i].other_ns = calloc(turns, sizeof(double));
		all[i].ratio = calloc(turns, sizeof(double));
		take_turn(&all[i], 0); /* to warm up; sampled again */
	}
	for (turn = 0; turn < turns; turn++)
		for (i = 0; i < n; i++)
			take_turn(&all[i], turn);
	printf("%-44s %9s %9s   %s\n", "a message, medians", "base", "other", "ratio (quartiles)");
	for (i = 0; i < n; i++)
		tell(&all[i]);
	return 0;
}
