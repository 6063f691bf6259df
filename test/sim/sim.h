/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The simulator: engines on a wire, in virtual time, driven by one seed.
 *
 * A scenario is made from a seed and a profile: hosts (an engine each, with memory of its own),
 * connections between them or inside one, completion queues, shared receive queues, and a list of
 * work for each end of each connection. While the engines work on it, a model knows what has to
 * come of it: which bytes have to be where, which completion comes next, and what each field of it
 * says. Whatever the model does not expect ends the scenario with a message.
 *
 * All memory of the hosts lies in one mapping (the area), and each byte of it has a twin in a
 * second one (the shadow) that holds what the byte has to be. At the end the two are compared, so
 * that a byte that was written where it should not have been is found as well.
 */
#ifndef SIM_H
#define SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <vrb_roce.h>

#include "rand.h"

#define SIM_HOSTS 3
#define SIM_EPS 16 /* ends of connections */
#define SIM_CQS (2 * SIM_EPS)
#define SIM_SRQS 4
#define SIM_WINDOWS 2 /* memory windows of an end */
#define SIM_COUNTERS 4 /* counters for atomics of an end */
#define SIM_MEM (1ull << 30)
#define SIM_NEVER UINT64_MAX

#define US(x) ((uint64_t)(x)*1000)
#define MS(x) ((uint64_t)(x)*1000000)
#define SEC(x) ((uint64_t)(x)*1000000000)

struct sim;
struct ep;
struct op;

/** What the wire does and how scenarios of this kind look. Chances are in thousandths. */
struct profile {
	const char *name;
	const char *help;
	uint32_t lose, dup, reorder, corrupt;
	uint32_t burst; /* chance of a packet to begin a burst of losses */
	uint32_t refuse; /* the port takes no packets for a moment */
	uint32_t junk; /* frames that are not for the engine */
	uint32_t small_pool; /* scenarios with hardly any mbufs */
	uint32_t late_recv; /* ends that post their receives late */
	uint32_t big; /* scenarios with messages of megabytes */
	uint32_t fault; /* connections in which something goes wrong */
	uint8_t timeout_lo, timeout_hi;
	bool blackout; /* the wire goes dead; what the timers do then is checked */
	bool rnr; /* receives that never come */
};

/** Part of a host's memory that is registered. */
struct arena {
	uint8_t *base;
	uint64_t cap, used;
	struct vrb_mr *mr[2]; /* the same memory twice, the second time under another address */
	unsigned int n_mr;
};

/** A piece of a scatter-gather list. */
struct piece {
	uint8_t *p;
	uint32_t len;
	struct vrb_sge sge;
};

struct buf {
	struct piece *piece;
	uint32_t n, len;
};

/** Memory at the other end that WRITEs and READs of one end name. */
struct range {
	uint8_t *p;
	uint32_t len;
	uint64_t tag; /* its contents after everything that was posted */
	uint32_t version; /* WRITEs posted to it */
	uint32_t readers; /* READs of it that have not completed */
	struct window *win; /* it is reached through this window */
	struct range *next;
};

struct window {
	struct vrb_mr *mw;
	struct range *range;
	uint32_t rkey;
	bool zero_based;
	uint32_t users; /* operations of the other end on it that have not completed */
	enum { WIN_FREE, WIN_BINDING, WIN_BOUND, WIN_CLOSING } state;
};

struct counter {
	uint8_t *p;
	uint64_t value; /* after everything that was posted */
};

/** A send work request and what has to come of it. */
struct op {
	uint32_t idx;
	uint8_t opcode;
	uint8_t flags;
	bool recv; /* takes a receive at the other end */
	bool atomic_known; /* the old value is known in advance */
	bool bad; /* the work request that is meant to fail */
	uint8_t status; /* what it has to end with */
	uint32_t len;
	uint64_t tag;
	struct buf buf;
	struct range *range;
	uint32_t range_off, version;
	struct counter *ctr;
	uint64_t old;
	uint32_t imm;
	struct window *win;
	uint32_t status_seen;
	bool done;
};

struct recv {
	struct buf buf;
	bool posted, done;
};

/** A receive queue as the model sees it: of an end, or shared. */
struct recvq {
	struct vrb_rq *rq;
	struct ep *ep; /* whose it is; NULL: shared */
	struct arena *arena;
	struct simcq *cq;
	struct rng rng;
	struct recv *recv; /* every receive there will be */
	uint32_t n, posted, completed, level;
	uint32_t len, max_sge; /* of each */
	uint64_t id; /* upper half of its wr_ids */
	uint32_t lost; /* that a queue pair may have taken with it when it was destroyed */
	uint32_t bad_at; /* this one has wrong keys */
	uint32_t stop_at; /* no more than so many are posted */
	struct buf *spare; /* buffers that can be used again */
	uint32_t n_spare;
	uint64_t next; /* when more are posted */
	uint64_t delay; /* how long that takes */
};

struct simcq {
	struct vrb_cq *cq;
	struct host *host;
	uint32_t size, least, users, quota; /* each queue that uses it may have quota work requests
					whose completion was not polled */
	enum { CQ_POLL, CQ_EVENT, CQ_EVENT_SOLICITED } mode;
	bool notified;
	uint64_t next, period;
};

struct simsrq {
	struct vrb_srq *srq;
	struct vrb_pd *pd;
	struct recvq q;
	struct host *host;
	struct arena arena;
	uint32_t max_sge;
};

struct packet {
	uint64_t at, seq;
	struct host *src, *dst;
	struct packet *next;
	uint32_t len;
	bool icrc_omitted, junk, corrupt;
	uint8_t data[4400];
};

struct host {
	struct sim *sim;
	unsigned int idx;
	struct vrb_engine *e;
	struct rte_mempool *pool;
	bool zero_copy, icrc, loopback;
	uint64_t next; /* when the engine has to run */
	uint64_t closed_until; /* the port takes nothing before */
	uint32_t spins;
	struct packet *in_head, **in_tail;
	struct rte_mbuf *held[64]; /* what the port has refused */
	unsigned int n_held;
	uint64_t link_free; /* the sending side of its cable is busy until then */
	uint64_t events[32]; /* asynchronous events, by type */
	struct vrb_pd *pd;
};

/** What goes wrong in a connection. */
enum fault {
	FAULT_NONE,
	/* work requests that fail */
	FAULT_RKEY, /* a key that there is not */
	FAULT_RANGE, /* beyond the end of the region */
	FAULT_RIGHTS, /* the region does not grant it */
	FAULT_QP_RIGHTS, /* the queue pair does not grant it */
	FAULT_MISALIGNED, /* atomic */
	FAULT_LONG_SEND, /* longer than the receive */
	FAULT_RECV_LKEY, /* receive with a wrong key */
	FAULT_SEND_LKEY, /* SEND or WRITE from memory with a wrong key */
	FAULT_READ_LKEY, /* READ into memory with a wrong key */
	FAULT_STALE_WINDOW, /* through a window that was closed */
	FAULT_BAD_INVALIDATE, /* SEND with invalidate of a region's key */
	FAULT_BIND, /* window on a region that does not allow it */
	FAULT_OPS_END,
	/* things that happen to a queue pair */
	FAULT_MODIFY_ERR = FAULT_OPS_END,
	FAULT_RESET,
	FAULT_DESTROY,
	FAULT_BLACKOUT,
	FAULT_RNR, /* receives are never posted */
	FAULTS,
};

/** One end of a connection. */
struct ep {
	struct sim *sim;
	struct host *host;
	struct ep *peer; /* itself, for a queue pair that is connected to itself */
	unsigned int idx;
	struct vrb_qp *qp;
	struct simcq *scq, *rcq;
	struct simsrq *srq;
	struct rng rng;
	uint32_t qpn, depth, unsignaled;
	struct vrb_qp_attr attr;
	uint32_t mtu, max_sge, max_inline, max_recv_sge;
	bool sig_all, all_solicited;

	struct arena local, target, naked; /* naked: grants nothing to the other end */
	struct range *ranges; /* in the peer's target arena */
	struct range *source; /* of READs, never written */
	struct counter ctr[SIM_COUNTERS]; /* in the peer's target arena */
	struct window win[SIM_WINDOWS];
	unsigned int n_win;

	struct op *ops;
	uint32_t n_ops, posted, completed;
	uint32_t reads; /* READs and atomics that have not completed */
	uint64_t next; /* when more is posted */
	bool drains; /* it is moved to SQD now and then, and back */
	uint64_t drained_until; /* it is in SQD until then; 0: it is not */
	uint64_t gap;
	uint32_t max_len, max_send; /* of WRITEs and READs, and of SENDs */
	uint32_t messages; /* ops made so far that take a receive */
	uint32_t avoid; /* rights that the peer's queue pair does not grant */

	struct recvq rq; /* its own receive queue */
	uint32_t rx_next; /* next of the peer's ops that may take a receive */
	uint32_t rx_count; /* receives completed successfully */

	enum fault fault; /* of the connection; the same at both ends */
	bool culprit; /* this end causes it */
	bool struck; /* it has happened */
	bool gone; /* the queue pair was destroyed or reset */
	uint32_t fault_at; /* index of the op that fails, or after which it happens */
	bool send_failed, recv_failed;
	uint32_t send_ok; /* ops that completed successfully */
	uint64_t last_progress; /* time of the last completion, or of the start */
	uint64_t last_post, fail_time;
};

struct wire {
	struct rng rng;
	struct packet **heap;
	uint32_t n, room;
	uint64_t seq;
	uint64_t delay, jitter, rate; /* ns, ns, bytes a microsecond */
	uint32_t lose, dup, reorder, corrupt, burst;
	uint32_t burst_left;
	bool dead;
	uint64_t dies, dead_since; /* blackout */
	uint8_t harm[65536]; /* how often a packet was harmed already, by hash */
	uint64_t sent, lost, duplicated, reordered, corrupted, merciful;
};

struct sim {
	uint64_t seed;
	const struct profile *prof;
	bool verbose;
	uint64_t now;
	struct rng rng;
	struct wire wire;
	struct host host[SIM_HOSTS];
	unsigned int n_hosts;
	struct ep ep[SIM_EPS];
	unsigned int n_eps;
	struct simcq cq[SIM_CQS];
	unsigned int n_cqs;
	struct simsrq srq[SIM_SRQS];
	unsigned int n_srqs;
	uint64_t mem_used;
	uint64_t salt; /* upper bits of every wr_id */
	bool big, teardown;
	uint64_t steps, progress; /* time of the last completion of all */
	uint64_t quiet_limit; /* without a completion for so long it hangs */
	uint64_t messages, bytes;
	bool failed;
	char why[512];
};

/** Ends the scenario as failed; the first reason counts. */
void sim_fail(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** One line of the trace, with -v. */
void sim_trace(struct sim *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* ---- memory (memory.c) ---- */

int mem_init(void);
/** Zeroed memory that lives until the end of the scenario. */
void *mem_model(size_t n);
void mem_reset(void);
static inline uint8_t *
shadow_of(const uint8_t *p)
{
	return (uint8_t *)(uintptr_t)p + SIM_MEM;
}
/** An arena of @p cap bytes, not registered yet. */
void arena_init(struct sim *s, struct arena *a, uint64_t cap);
/** @return 0 or -errno of vrb_mr_reg() */
int arena_register(struct sim *s, struct arena *a, struct host *h, struct vrb_pd *pd,
	uint32_t access, unsigned int times);
/** @p n bytes, surrounded by bytes that nobody may write; NULL when the arena is full. */
uint8_t *arena_take(struct arena *a, struct rng *r, uint64_t n, uint64_t align);
/** A buffer of @p len bytes in up to @p max_sge pieces of odd sizes. @return false when the arena
 * is full */
bool buf_take(struct buf *b, struct arena *a, struct rng *r, uint32_t len, uint32_t max_sge);
/** Fills a buffer with the contents of @p tag, in the area and in the shadow. */
void buf_fill(const struct buf *b, uint64_t tag);
/** @return the first byte of @p len that is not as @p tag says, or -1 */
long buf_check(const struct buf *b, uint32_t len, uint64_t tag, uint64_t off);
/** @return whether the bytes behind @p len are untouched */
bool buf_rest_untouched(const struct buf *b, uint32_t len);
/** Writes over a buffer that nobody may read or write from now on. */
void buf_scribble(const struct buf *b, struct rng *r);
/** What happened to these bytes cannot be known: takes them over into the shadow. */
void mem_forget(uint8_t *p, uint64_t n);
/** Compares area and shadow. */
void mem_compare(struct sim *s);

/* ---- wire (wire.c) ---- */

int wire_init(void);
void wire_start(struct sim *s);
struct packet *wire_packet(void);
void wire_free(struct packet *p);
/** Sends a packet of @p src, with everything that may happen to it on the way. */
void wire_send(struct sim *s, struct host *src, struct packet *p);
uint64_t wire_next(const struct wire *w);
/** Hands over what has arrived to the hosts. */
void wire_arrive(struct sim *s);
void wire_clear(struct sim *s);
/** Frames that are not for any engine. */
void wire_junk(struct sim *s);

/* ---- hosts (host.c) ---- */

int host_pools(void);
int host_start(struct sim *s, struct host *h);
void host_stop(struct sim *s, struct host *h);
/** Runs the engine as long as it has something to do now. */
void host_run(struct sim *s, struct host *h);
/** When the engine has to run next. */
uint64_t host_next(const struct host *h);
void host_pools_check(struct sim *s);

/* ---- ends of connections (ep.c) ---- */

/** Makes queue pairs, memory and queues for all connections of a scenario. */
int eps_build(struct sim *s);
/** Destroys everything, in the order that the references allow. */
void eps_destroy(struct sim *s);
/** Moves a queue pair to RTS. */
int ep_connect(struct ep *ep);
int ep_to_error(struct ep *ep);
/** The registration and the address by which the other end names @p p. */
void target_name(
	struct ep *ep, const struct range *range, uint32_t off, uint64_t *va, uint32_t *rkey);
struct range *range_new(struct ep *ep, uint32_t len);

/* ---- work (work.c, recvq.c) ---- */

/** Posts some send work requests, if there is room. */
void ep_post(struct ep *ep);
/** Makes up one work request. @return false when this is not the moment */
bool op_make(struct ep *ep, struct op *op);
/** What the send work request has to look like. */
void op_fill(struct ep *ep, struct op *op, struct vrb_send_wqe *wqe);
/** Prepares a receive queue; len and max_sge of @p q are set already. */
void recvq_init(struct sim *s, struct recvq *q, struct vrb_rq *rq, struct arena *a,
	struct simcq *cq, uint64_t id, uint32_t n);
/** Posts receives up to the queue's level. @return how many */
uint32_t recvq_post(struct sim *s, struct recvq *q);

/* ---- completions (complete.c) ---- */

/* Upper halves of wr_ids: who posted it. */
#define ID_SEND 0x100u
#define ID_RECV 0x200u
#define ID_SRQ 0x300u
static inline uint64_t
wr_id(const struct sim *s, uint64_t id, uint32_t idx)
{
	return s->salt ^ (id << 32 | idx);
}
/** Takes completions from a CQ and checks each. */
void cq_poll(struct sim *s, struct simcq *cq);

/* ---- things that go wrong (fault.c) ---- */

/** Decides what goes wrong in a connection. */
void fault_choose(struct sim *s, struct ep *a, struct ep *b);
/** Whether the op that is to be made is the one that fails, and which opcode it has to have. */
bool fault_due(const struct ep *ep, uint8_t *opcode, uint32_t *len);
/** Makes the work request fail. */
void fault_spoil(struct ep *ep, struct op *op, struct vrb_send_wqe *wqe);
/** What happens to queue pairs instead of work requests, when its time has come. */
void fault_strike(struct ep *ep);
/** Whether @p status may be the first failure of @p ep's send queue, at @p op. */
bool fault_allows_send(const struct ep *ep, const struct op *op, uint32_t status);
/** Whether @p status may be the first failure of @p ep's receive queue. */
bool fault_allows_recv(const struct ep *ep, uint32_t status);
/** At the end: what has to have happened. */
void fault_verify(struct ep *ep);
/** Whether something goes wrong here, so that not everything has to arrive. */
static inline bool
ep_faulty(const struct ep *ep)
{
	return ep->fault != FAULT_NONE;
}
const char *fault_name(enum fault f);

/* ---- scenarios (scenario.c, profile.c) ---- */

const struct profile *profile_find(const char *name);
extern const struct profile profiles[];
extern const unsigned int n_profiles;
/** Runs one seed. @return whether all went well */
bool sim_run(struct sim *s, const struct profile *p, uint64_t seed, bool verbose);

#endif
