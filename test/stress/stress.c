/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See stress.h.
 */
#include <getopt.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "stress.h"

static const char *program = "stress";

struct stress_opts
stress_begin(int argc, char **argv)
{
	static const struct option options[] = {
		{"seed", required_argument, NULL, 's'},
		{"seconds", required_argument, NULL, 't'},
		{"at-least", required_argument, NULL, 'n'},
		{NULL, 0, NULL, 0},
	};
	struct stress_opts o = {.seed = (uint64_t)time(NULL), .seconds = 10};
	int got;

	program = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];
	while ((got = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (got) {
		case 's':
			o.seed = strtoull(optarg, NULL, 0);
			break;
		case 't':
			o.seconds = (unsigned int)strtoul(optarg, NULL, 0);
			break;
		case 'n':
			o.at_least = strtoul(optarg, NULL, 0);
			break;
		default:
			fprintf(stderr, "Usage: %s [--seed N] [--seconds S] [--at-least N]\n",
				program);
			exit(2);
		}
	}
	printf("%s --seed %llu --seconds %u\n", program, (unsigned long long)o.seed, o.seconds);
	fflush(stdout);
	return o;
}

void
stress_fail(const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fprintf(stderr, "%s: FAILED: %s\n", program, text);
	fflush(stderr);
	_exit(1);
}

uint64_t
stress_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

void
stress_sleep_us(unsigned int us)
{
	struct timespec ts = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	nanosleep(&ts, NULL);
}

/* splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators). */
static uint64_t
scramble(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

struct stress_rnd
stress_rnd_init(uint64_t seed, unsigned int stream)
{
	return (struct stress_rnd){scramble(seed + 1) ^ scramble(stream + 1)};
}

uint64_t
stress_rnd_next(struct stress_rnd *rnd)
{
	rnd->state += UINT64_C(0x9e3779b97f4a7c15);
	return scramble(rnd->state);
}

uint32_t
stress_rnd_range(struct stress_rnd *rnd, uint32_t low, uint32_t high)
{
	return low + (uint32_t)(stress_rnd_next(rnd) % (high - low + 1));
}

uint64_t
stress_mix(uint64_t a, uint64_t b, uint64_t c)
{
	return scramble(scramble(scramble(a + 1) + b) + c);
}

void
stress_fill(void *buf, uint32_t len, uint64_t what)
{
	uint8_t *p = buf;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(p, &what, 8);
		what += UINT64_C(0x9e3779b97f4a7c15);
	}
	memcpy(p, &what, len);
}

bool
stress_is_filled(const void *buf, uint32_t len, uint64_t what)
{
	const uint8_t *p = buf;

	for (; len >= 8; len -= 8, p += 8) {
		if (memcmp(p, &what, 8))
			return false;
		what += UINT64_C(0x9e3779b97f4a7c15);
	}
	return !memcmp(p, &what, len);
}

pthread_t
stress_thread(void *(*body)(void *), void *arg)
{
	pthread_t t;
	int rc = pthread_create(&t, NULL, body, arg);

	STRESS_CHECK(!rc, "a thread could not be started: %s", strerror(rc));
	return t;
}

struct ibv_qp *
stress_qp(struct ibv_pd *pd, struct ibv_cq *send_cq, struct ibv_cq *recv_cq, struct ibv_srq *srq,
	uint32_t send_wr, uint32_t recv_wr)
{
	struct ibv_qp_init_attr init = {.send_cq = send_cq,
		.recv_cq = recv_cq,
		.srq = srq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = send_wr,
			.max_recv_wr = recv_wr,
			.max_send_sge = 2,
			.max_recv_sge = 2}};
	struct ibv_qp *qp = ibv_create_qp(pd, &init);

	STRESS_CHECK(qp, "ibv_create_qp: %s", strerror(errno));
	return qp;
}

static void
modify(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
	int rc = ibv_modify_qp(qp, attr, mask | IBV_QP_STATE);

	STRESS_CHECK(!rc, "ibv_modify_qp to state %d: %s", (int)attr->qp_state, strerror(rc));
}

void
stress_connect(struct ibv_qp *qp, const union ibv_gid *dgid, uint32_t dest_qpn)
{
	struct ibv_qp_attr init = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
	struct ibv_qp_attr rtr = {.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = dest_qpn,
		.rq_psn = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 1,
		.ah_attr = {
			.is_global = 1, .port_num = 1, .grh = {.dgid = *dgid, .hop_limit = 64}}};
	struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS,
		.sq_psn = 1,
		.max_rd_atomic = 1,
		.timeout = 17,
		.retry_cnt = 7,
		.rnr_retry = 7 /* for ever */};

	modify(qp, &init, IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);
	modify(qp, &rtr,
		IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	modify(qp, &rts,
		IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY);
}
