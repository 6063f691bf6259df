/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the unit tests of the engine stand on: an engine with memory and a queue pair, whose peer is
 * the test itself, which builds and reads frames with test/sim/frame.h. Time is what the test says.
 */
#ifndef ROCE_RIG_H
#define ROCE_RIG_H

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>

#include <vrb_roce.h>

#include "frame.h"
#include "rand.h"

#define RIG_MEM (1u << 20)
#define RIG_FRAMES 256
#define RIG_FRAME_MAX 4400
#define RIG_EVENTS 32
/* PSNs that queue pairs start with: of the peer's requests, and of our own. */
#define RIG_RQ_PSN 0x1000u
#define RIG_SQ_PSN 0x2000u
#define RIG_PEER_QPN 0x77u
#define RIG_QKEY 0x11111111u

/** A frame that the engine has sent. */
struct rig_frame {
	uint32_t len;
	struct frame f;
	uint8_t data[RIG_FRAME_MAX];
};

struct rig {
	struct vrb_engine *e;
	struct vrb_pd *pd;
	struct vrb_mr *mr; /* all of mem, with all rights */
	struct vrb_cq *scq, *rcq;
	struct vrb_qp *qp;
	struct vrb_qp_attr attr; /* what it was connected with */
	struct vrb_qp_init init;
	struct vrb_srq *srq; /* where rig_post_recv() posts, or NULL */
	struct vrb_xrcd xrcd;
	uint8_t *mem;
	uint64_t now;
	unsigned int n_frames, next_frame;
	struct rig_frame *frames;
	unsigned int notified;
	unsigned int n_events;
	enum vrb_event_type events[RIG_EVENTS];
	void *event_obj[RIG_EVENTS];
	char why[512]; /* the last explanation */
	uint8_t mac[6], peer_mac[6];
	uint8_t ip[4], peer_ip[4];
	uint8_t ip6[16], peer_ip6[16];
};

/** Starts EAL, once for the whole program; for cmocka_run_group_tests(). @return 0 */
int rig_group(void **state);

/* What a test may want to be different, before the engine is made. */
struct rig_conf {
	bool no_icrc, zero_copy, v6, srq;
	enum vrb_qp_type type; /* 0: RC; XRC_RECV: with an SRQ, init.srq is NULL and srq has it */
	char side; /* 'A' or 'B': the addresses of the captures (test/data/captures) */
	uint16_t port_mtu; /* 0: 4176 */
	enum vrb_mtu mtu; /* 0: 1024 */
	uint32_t depth; /* of both queues, 0: 16 */
	uint32_t max_sge; /* 0: 4 */
	uint32_t max_rd_atomic; /* 0: 4; 255: none */
	uint32_t access; /* of the queue pair; 0: all; UINT32_MAX: none */
	uint8_t timeout; /* as given: 0 is no timer */
	uint8_t retry_cnt, rnr_retry; /* 0: 7; 255: none */
	uint32_t cq_size; /* 0: 64 */
	uint32_t sq_psn, rq_psn; /* 0: RIG_... */
	const struct vrb_direct_ops *direct; /* with the rig as their context */
	enum vrb_direct_mode direct_mode;
	struct vrb_board *board;
};

/** An engine with a queue pair in RTS. Aborts the test when that fails. */
struct rig *rig_new(const struct rig_conf *conf);
/** The same with no queue pair. */
struct rig *rig_bare(const struct rig_conf *conf);
/** Frees it, and checks that no mbuf is lost. */
void rig_free(struct rig *r);
/** Moves a queue pair from RESET to RTS by r->attr. @return the first error */
int rig_connect(struct rig *r, struct vrb_qp *qp);
struct vrb_qp *rig_qp(struct rig *r, enum vrb_qp_state state);

/** A frame from the peer to the queue pair, to be completed by the test. */
struct frame rig_packet(const struct rig *r, uint8_t opcode, uint32_t psn);
/** Hands it to the engine. */
void rig_receive(struct rig *r, const struct frame *f);
/** Hands bytes to the engine. @return whether it has left them */
bool rig_receive_raw(struct rig *r, const uint8_t *p, uint32_t len);
/** Lets the engine send, but at most @p max frames. @return how many there are that were not taken
 */
unsigned int rig_send_some(struct rig *r, unsigned int max);
/** Lets the engine send. @return how many frames there are that were not taken */
unsigned int rig_send(struct rig *r);
/** The next frame that the engine sent; fails the test when there is none. */
const struct frame *rig_take(struct rig *r);
/** Fails the test when the engine sends anything. */
void rig_expect_silence(struct rig *r);
/** Takes the next frame, which has to be an ACK or NAK with this syndrome kind (credits are not
 * compared) and PSN. */
const struct frame *rig_expect_ack(struct rig *r, uint8_t syndrome, uint32_t psn);
/** Takes the next frame, which has to have this opcode and PSN. */
const struct frame *rig_expect(struct rig *r, uint8_t opcode, uint32_t psn);
/** The peer acknowledges. */
void rig_ack(struct rig *r, uint8_t syndrome, uint32_t psn);

/** A send work request over the memory's first bytes, signalled. */
void rig_post(struct rig *r, uint8_t opcode, uint32_t off, uint32_t len, uint8_t flags);
/** The same with an entry that the caller fills in; rig_commit() posts it. */
struct vrb_send_wqe *rig_wqe(
	struct rig *r, uint8_t opcode, uint32_t off, uint32_t len, uint8_t flags);
int rig_commit(struct rig *r, struct vrb_send_wqe *w);
void rig_post_recv(struct rig *r, uint32_t off, uint32_t len);
/** The next completion has to have this status. @return it, valid until the next call */
const struct vrb_cqe *rig_poll(struct rig *r, struct vrb_cq *cq, enum vrb_wc_status status);
void rig_expect_empty(struct rig *r, struct vrb_cq *cq);
/** Takes flushed completions. @return how many */
unsigned int rig_flushed(struct rig *r, struct vrb_cq *cq);
/** Whether an event of this type came. */
bool rig_event(const struct rig *r, enum vrb_event_type type);
/** Lets time pass until the engine's next deadline. */
void rig_wait(struct rig *r);

#endif
