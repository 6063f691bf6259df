/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the stress programs share: options, a clock, random numbers that a seed repeats, and failing
 * with one sentence.
 *
 * The same seed gives the same sizes, targets and choices to the same thread. When they meet is up
 * to the scheduler, so a failure is repeated by its seed and some patience.
 */
#ifndef STRESS_H
#define STRESS_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>

#include "verbs_util.h"

/* So long without any progress is a hang. */
#define STRESS_PATIENCE_NS UINT64_C(30000000000)

struct stress_opts {
	uint64_t seed;
	unsigned int seconds;
	unsigned long at_least; /* of what the program counts, however long it takes */
};

/** Reads --seed, --seconds and --at-least, and prints the seed, before anything else. */
struct stress_opts stress_begin(int argc, char **argv);

/** Ends the program, and all its threads, with a sentence. Any thread. */
void stress_fail(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));
#define STRESS_CHECK(cond, ...) \
	do { \
		if (!(cond)) \
			stress_fail(__VA_ARGS__); \
	} while (0)

uint64_t stress_now(void);
void stress_sleep_us(unsigned int us);

/* Random numbers of a thread. */
struct stress_rnd {
	uint64_t state;
};
struct stress_rnd stress_rnd_init(uint64_t seed, unsigned int stream);
uint64_t stress_rnd_next(struct stress_rnd *rnd);
/** From @p low to @p high, both included. */
uint32_t stress_rnd_range(struct stress_rnd *rnd, uint32_t low, uint32_t high);

/** A number that depends on all three, to fill and to check messages with. */
uint64_t stress_mix(uint64_t a, uint64_t b, uint64_t c);
/** Fills @p len bytes that stress_is_filled() knows again. */
void stress_fill(void *buf, uint32_t len, uint64_t what);
bool stress_is_filled(const void *buf, uint32_t len, uint64_t what);

/** Starts a thread, or fails. */
pthread_t stress_thread(void *(*body)(void *), void *arg);

/** Makes a queue pair of RC that waits for a busy receiver for ever. */
struct ibv_qp *stress_qp(struct ibv_pd *pd, struct ibv_cq *send_cq, struct ibv_cq *recv_cq,
	struct ibv_srq *srq, uint32_t send_wr, uint32_t recv_wr);
void stress_connect(struct ibv_qp *qp, const union ibv_gid *dgid, uint32_t dest_qpn);

#endif
