/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the engine: its state, that of a queue pair, and what its parts offer each other.
 *
 * Who writes what: the three parts of a queue pair (req, comp, resp) have a struct each. The
 * completer moves the requester back (vrb_req_seek()) and on (una); nobody else writes another's
 * part. All of it is under the baton.
 */
#ifndef VRB_ENGINE_H
#define VRB_ENGINE_H

#include <sys/queue.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_udp.h>

#include "board.h"
#include "hdr.h"
#include "opcode.h"
#include "rss.h"
#include "vrb_roce.h"
#include "wq.h"

#define VRB_LOOP_SIZE 1024 /* packets of the engine to itself that may wait; a power of two */
#define VRB_L2_LEN ((uint32_t)sizeof(struct rte_ether_hdr))
#define VRB_HDR_TEMPLATE (VRB_L2_LEN + sizeof(struct rte_ipv6_hdr) + sizeof(struct rte_udp_hdr))

/** How to reach an address: what every packet to it starts with. */
struct vrb_path {
	uint32_t hdr_len; /* Ethernet, IP, UDP */
	uint32_t ip_sum; /* IPv4: sum of the header without length */
	bool v6;
	bool loopback; /* it is this engine's own port */
	bool multicast;
	uint8_t hdr[VRB_HDR_TEMPLATE] __rte_aligned(4); /* read as the headers that it holds */
};

/** An address handle. */
struct vrb_ah {
	struct vrb_pd *pd;
	struct vrb_av av;
	struct vrb_path path;
	struct vrb_ah *next; /* in vrb_engine.dead_ahs */
};

/** A received packet, taken apart. Points into the first segment of the mbuf. */
struct vrb_pkt {
	struct rte_mbuf *m;
	const struct vrb_opcode_info *info;
	const uint8_t *ext; /* extended headers */
	const void *l3;
	uint32_t psn;
	uint32_t payload_off;
	uint32_t payload_len; /* without pad */
	uint32_t qkey, src_qpn; /* UD */
	uint32_t srqn; /* XRC */
	struct vrb_group *group; /* multicast: to whom it goes; NULL: to one queue pair */
	uint8_t opcode; /* the operation, in RC's names */
	bool v6;
	bool ackreq;
	bool solicited;
};

/** A READ or atomic request that the responder has accepted and not yet answered whole. */
struct vrb_resp_op {
	uint32_t first_psn, last_psn;
	uint32_t psn; /* next response packet */
	uint32_t rkey;
	uint32_t length;
	uint32_t msn;
	uint64_t va;
	uint64_t orig; /* atomic: the value before */
	struct vrb_pd *pd; /* READ: of XRC, the one of the SRQ that it named */
	bool atomic;
	bool again; /* READ: of a duplicate request */
};

/** An atomic's result, kept for duplicates (IBTA 9.7.5.1.5). */
struct vrb_atomic_saved {
	uint32_t psn;
	bool valid;
	bool write; /* ATOMIC WRITE, which has no result */
	uint64_t orig;
};

struct vrb_requester {
	uint32_t psn; /* of the next packet */
	uint32_t max_psn; /* one behind the highest that was sent */
	uint32_t una; /* oldest that is not acknowledged */
	uint32_t since_ack; /* packets sent since one asked for an acknowledgement */
	uint32_t window; /* packets that may be unacknowledged: fewer when some were lost */
	uint32_t recover; /* PSN up to which it stays as it is */
	uint32_t ssn; /* requests sent, for end-to-end credits */
	uint32_t lsn; /* up to which the responder gives credit */
	bool credits; /* it gives them at all */
	bool rnr_wait;
	uint8_t retry_left, rnr_left;
	/* where in the current WQE's SGEs the next payload byte is */
	uint32_t sge_idx, sge_off, sge_pos;
	/* READ requests and atomics in flight, oldest first: the PSNs of their responses */
	uint32_t rd_head, rd_tail;
	struct {
		uint32_t first, last;
	} rd[VRB_MAX_RD_ATOM];
};

/** The direct path of a queue pair (direct.c). */
struct vrb_direct {
	void *peer; /* NULL: packets only */
	uint32_t gen; /* of the peer's connection, 0: not known yet */
	bool moving; /* the WQE at sq->next is being moved, and no packet of it was sent */
	uint32_t off; /* so many bytes of it are there */
	uint32_t refused; /* messages that go in packets, because one was refused */
	uint32_t refusals; /* the next value of that */
	/* whether small messages go this way */
	bool small;
	bool asked; /* the answer to ask_psn is awaited */
	uint32_t ask_psn;
	uint32_t count; /* messages since that was decided */
	uint32_t run; /* messages that go directly between two trials */
	uint32_t gaps; /* number, and sum in ns, of the times from one message to the next */
	uint64_t gap_sum;
	uint32_t answer; /* average time from a message that is alone to its answer, ns; 0: unknown
			  */
	uint64_t started; /* when the last message was */
	uint64_t ask_time;
};

struct vrb_completer {
	uint32_t gap_psn; /* where a missing response has been asked for again */
	bool gap;
};

struct vrb_responder {
	uint32_t epsn; /* expected PSN */
	uint32_t msn;
	bool nak_sent; /* a sequence or RNR NAK is out for epsn: silence until it comes */
	bool ack_pending;
	uint8_t ack_syndrome;
	uint32_t ack_psn;
	/* the message that is arriving */
	uint8_t in_msg; /* VRB_OP_SEND, VRB_OP_WRITE or 0 */
	bool nak_final; /* the pending answer is the last: the QP is in error */
	uint32_t msg_off; /* bytes that have arrived */
	uint32_t sge_idx, sge_off;
	uint64_t va; /* WRITE: where the next byte goes */
	uint32_t rkey, left;
	struct vrb_recv_wqe
		*wqe; /* the receive of the message, or NULL: in the RQ, or a copy of the SRQ's */
	struct vrb_recv_wqe *srq_copy;
	/* answers that wait to be sent, oldest first */
	struct vrb_resp_op *ops;
	uint32_t ops_mask, ops_head, ops_tail;
	struct vrb_atomic_saved *saved;
	uint32_t saved_num, saved_next;
};

struct vrb_qp {
	struct vrb_sq sq;
	struct vrb_rq own_rq;
	struct vrb_rq *rq; /* own_rq, or the SRQ's */
	struct vrb_srq *srq;
	struct vrb_engine *engine;
	struct vrb_pd *pd;
	struct vrb_cq *send_cq, *recv_cq;
	struct vrb_xrcd *xrcd;
	void *user;
	uint32_t operations; /* that it can be asked for: bits of enum vrb_wr_opcode */
	uint32_t qpn;
	_Atomic uint32_t state; /* enum vrb_qp_state */
	uint32_t mtu; /* bytes of the path MTU */
	struct vrb_qp_attr attr;
	struct vrb_qp_init init;
	uint8_t transport; /* VRB_TRANSPORT_*, of its opcodes */
	bool acked; /* a reliable transport: RC or XRC */
	uint32_t windows; /* windows of type 2 that were bound on it */
	uint32_t groups; /* of multicast that it is attached to */
	struct vrb_rss rss; /* raw, with a table */
	uint32_t flows; /* raw: rules that send frames to it */
	struct vrb_raw_queue raw;
	bool comm_est; /* that event was raised */
	bool drained;

	/* scheduling */
	TAILQ_ENTRY(vrb_qp) active;
	bool is_active;
	_Atomic bool rung;
	struct vrb_qp *rung_next;
	struct vrb_timer timer;

	struct vrb_path path; /* to the peer; of UD unused */
	bool on_board;
	uint32_t gen; /* of the connection: the board's */

	struct vrb_requester req;
	struct vrb_direct direct;
	struct vrb_completer comp;
	struct vrb_responder resp;
};

/** A raw frame that waits for a receive. */
struct vrb_held {
	struct rte_mbuf *m;
	struct vrb_qp *qp; /* for this one, or for */
	struct vrb_wq *wq;
	uint32_t tag;
};

struct vrb_engine {
	struct vrb_engine_conf conf;
	struct vrb_stats stats;
	uint64_t now;
	bool zero_copy;
	bool out_loop; /* the packet that is being made is for ourselves */
	bool out_multicast; /* it is for a group */
	bool starved; /* the mempool ran dry in this call */
	bool cq_overrun; /* a CQ overflowed: its QPs are to fail */
	uint32_t direct_left; /* bytes that this call may still move directly */
	uint32_t next_gen;
	uint32_t max_mtu;
	TAILQ_HEAD(, vrb_qp) active;
	_Atomic(struct vrb_qp *) rung;
	/* heap of timers by key; heap[1] is the earliest */
	struct vrb_timer **heap;
	uint32_t heap_len, heap_cap, num_timers;
	struct vrb_qp **qps; /* by QPN & (VRB_MAX_QP - 1) */
	uint32_t num_qps, next_qpn;
	struct vrb_mr **mrs; /* by key >> 8 */
	struct vrb_mr *spare_mrs; /* freed, to be used again; linked by their mr */
	struct vrb_srq **srqs; /* by number, 1 to VRB_MAX_SRQ */
	LIST_HEAD(, vrb_cq) cqs;
	LIST_HEAD(, vrb_pd) pds;
	uint32_t next_srq;
	struct vrb_flow_table *flows; /* NULL: there are no rules */
	bool sniffed; /* sniffers are among them */
	uint32_t epoch; /* counts the frames that go by rules */
	struct vrb_held held[VRB_HELD]; /* oldest first */
	uint32_t num_held;
	uint64_t held_until;
	TAILQ_HEAD(, vrb_flow) flow_list;
	TAILQ_HEAD(, vrb_wq) wqs;
	TAILQ_HEAD(, vrb_ind_tbl) ind_tbls;
	uint32_t num_wqs, next_wq, num_ind_tbls, next_ind_tbl;
	uint32_t num_ahs;
	struct vrb_group *groups[64]; /* of multicast, by a hash of the GID */
	uint32_t num_groups;
	struct vrb_ah
		*dead_ahs; /* destroyed, but named by datagrams that were not sent when it was */
	uint32_t mr_cap, num_mrs, mr_free, num_pds, num_cqs, next_cq, num_srqs;
	uint32_t rnd;
	struct rte_mbuf *loop[VRB_LOOP_SIZE];
	uint32_t loop_head, loop_tail;
};

/* engine.c */
struct vrb_qp *vrb_engine_qp(const struct vrb_engine *e, uint32_t qpn);
void vrb_engine_async(struct vrb_engine *e, enum vrb_event_type type, void *obj);
void vrb_explain(struct vrb_engine *e, const char *fmt, ...) __rte_format_printf(2, 3);
/** Takes a QP off every list of the engine. */
void vrb_engine_forget(struct vrb_qp *qp);
/** It is the QP's turn next. */
void vrb_engine_schedule_first(struct vrb_qp *qp);
/** Puts the QPs of overrun CQs into the error state. */
void vrb_engine_overruns(struct vrb_engine *e);

/* timer.c */
/** Makes room for one more timer. @return 0 or -ENOMEM */
int vrb_timer_add(struct vrb_engine *e);
/** The reverse; @p t is gone from the heap. */
void vrb_timer_drop(struct vrb_engine *e, struct vrb_timer *t);
/** @param when 0: never */
void vrb_timer_set(struct vrb_engine *e, struct vrb_timer *t, uint64_t when);
void vrb_timer_remove(struct vrb_engine *e, struct vrb_timer *t);
/** The next timer that is due, cleared; NULL: none. */
struct vrb_timer *vrb_timer_due(struct vrb_engine *e, uint64_t now);
uint64_t vrb_timer_next(struct vrb_engine *e);

/* packet.c */
enum vrb_parse {
	VRB_PARSE_OK,
	VRB_PARSE_OTHER, /* not for this engine */
	VRB_PARSE_DROP,
};
enum vrb_parse vrb_pkt_parse(
	struct vrb_engine *e, struct rte_mbuf *m, struct vrb_pkt *pkt, struct vrb_qp **qp);
/**
 * Prepares the path to an address.
 * @param sport source port of UDP
 */
void vrb_path_init(
	const struct vrb_engine *e, const struct vrb_av *av, uint16_t sport, struct vrb_path *path);
/** The source port for the QP's packets (CONVENTIONS, "UDP source port"). */
uint16_t vrb_udp_sport(const struct vrb_qp *qp);
/**
 * Starts a packet: headers up to the BTH. @return the mbuf with room for the rest, NULL: none left
 * @param opcode the operation; the QP's transport is added
 * @param ext out: where the extended headers go
 */
struct rte_mbuf *vrb_pkt_begin(struct vrb_qp *qp, const struct vrb_path *path, uint8_t opcode,
	uint32_t dest_qpn, uint32_t psn, uint32_t flags, void **ext);
/** Appends payload out of memory that was checked. @return 0, -EFAULT (memory is gone), -ENOMEM */
int vrb_pkt_payload(struct vrb_engine *e, struct rte_mbuf *m, const void *src, uint32_t len);
/** The same, but never chained: the memory can change as soon as this returns. */
int vrb_pkt_copy(struct vrb_engine *e, struct rte_mbuf *m, const void *src, uint32_t len);
/** Pads, fills in the lengths and the ICRC. @return 0, or -ENOMEM */
int vrb_pkt_end(struct vrb_engine *e, const struct vrb_path *path, struct rte_mbuf *m,
	uint32_t payload_len);
/** Copies @p len bytes of the packet's payload, from @p off on. @return 0 or -EFAULT */
int vrb_pkt_read(const struct vrb_pkt *pkt, uint32_t off, void *dst, uint32_t len);

/* mem.c */
struct vrb_mr *vrb_mr_find(struct vrb_engine *e, uint32_t key);
/** Local access by L_Key. @return the address or NULL; *why tells the reason in words */
void *vrb_mr_local(struct vrb_engine *e, struct vrb_pd *pd, uint32_t lkey, uint64_t addr,
	uint32_t len, uint32_t access, const char **why);
/**
 * Scatters @p len bytes to [pos, pos + len) of @p sge: those at @p src, or with NULL those of the
 * packet's payload.
 * @return whether all went well; if not, *why
 */
bool vrb_scatter(struct vrb_engine *e, struct vrb_pd *pd, const struct vrb_sge *sge,
	uint32_t num_sge, uint32_t pos, const struct vrb_pkt *pkt, const void *src, uint32_t len,
	const char **why);
/** Remote access by R_Key, on behalf of @p qp; @p pd is its protection domain, or that of the SRQ
 * which an XRC request names. */
void *vrb_mr_remote(struct vrb_engine *e, struct vrb_qp *qp, const struct vrb_pd *pd, uint32_t rkey,
	uint64_t va, uint32_t len, uint32_t access, const char **why);
int vrb_mw_bind(
	struct vrb_engine *e, struct vrb_qp *qp, const struct vrb_send_wqe *wqe, const char **why);
/** LOCAL_INV, or a SEND with invalidate. @return 0 or -EINVAL */
int vrb_mw_invalidate(struct vrb_engine *e, struct vrb_qp *qp, uint32_t rkey, const char **why);

/** Invalidates the windows of type 2 that were bound on a QP which is going away. */
void vrb_mw_forget_qp(struct vrb_engine *e, struct vrb_qp *qp);

/* board.c */
void vrb_board_put_mr(struct vrb_engine *e, const struct vrb_mr *mr);
/** Nobody accesses the region any more when it returns. */
void vrb_board_drop_mr(struct vrb_engine *e, const struct vrb_mr *mr);
/** Shows the queue pair as it is now, if it is connected. */
void vrb_board_put_qp(struct vrb_qp *qp);
/** Without waiting for those that are moving bytes: vrb_board_settle() does. */
void vrb_board_drop_qp(struct vrb_qp *qp);
void vrb_board_settle(struct vrb_engine *e);
/** Closes it, or opens it again: nobody moves bytes while it is closed. */
void vrb_board_shut(struct vrb_engine *e, bool shut);

/* direct.c */
enum vrb_direct_choice {
	VRB_BY_PACKETS,
	VRB_DIRECTLY,
	VRB_DIRECTLY_LATER, /* when all before it is acknowledged */
};
/** Which way a WQE goes that is about to start. There is a peer. */
enum vrb_direct_choice vrb_direct_choose(
	struct vrb_qp *qp, const struct vrb_send_wqe *wqe, uint64_t now);
/** Moves the next part. @return 1: the WQE is done, 0: there is more to it, -errno: it is sent in
 * packets, from its start */
int vrb_direct_move(struct vrb_qp *qp, const struct vrb_send_wqe *wqe);
/** What was sent has been answered up to req.una. */
void vrb_direct_answered(struct vrb_qp *qp, uint64_t now);
/** To the peer that the address vector names. */
void vrb_direct_open(struct vrb_qp *qp);
void vrb_direct_close(struct vrb_qp *qp);
/** Whether it has to wait for an acknowledgement of everything before it. */
static inline bool
vrb_direct_waits(const struct vrb_qp *qp, const struct vrb_send_wqe *wqe)
{
	return qp->direct.peer != NULL && wqe->length >= VRB_DIRECT_WAIT &&
	       (wqe->opcode == VRB_WR_RDMA_WRITE || wqe->opcode == VRB_WR_RDMA_READ);
}

/* cq.c */
/** The entry to fill, never NULL: of an overrun CQ a scratch one. */
struct vrb_cqe *vrb_cq_reserve(struct vrb_cq *cq);
/** Makes the reserved entry visible. @param solicited counts for a solicited-only arming */
void vrb_cq_publish(struct vrb_cq *cq, bool solicited);
/** The period of a moderated CQ is over: notifies. */
void vrb_cq_timer(struct vrb_cq *cq);
/** Removes the completions of a QP that the program has not polled. */
void vrb_cq_forget(struct vrb_cq *cq, const struct vrb_qp *qp);

/* srq.c */
int vrb_rq_init(struct vrb_rq *rq, uint32_t max_wr, uint32_t max_sge);
/** The queue goes to RESET: forgets what was posted, and takes no more until vrb_rq_open(). */
void vrb_rq_close(struct vrb_rq *rq);
void vrb_rq_open(struct vrb_rq *rq);
/** The SRQ that XRC requests name by @p num, or NULL. */
struct vrb_srq *vrb_srq_find(const struct vrb_engine *e, uint32_t num);
/** The next receive of the QP's queue (an SRQ's is copied and its slot freed), or NULL. */
struct vrb_recv_wqe *vrb_rq_take(struct vrb_qp *qp);

/* qp.c */
static inline enum vrb_qp_state
vrb_qp_get_state(const struct vrb_qp *qp)
{
	return (enum vrb_qp_state)atomic_load_explicit(&qp->state, memory_order_relaxed);
}
/** Moves the QP to the error state and flushes it. */
void vrb_qp_error(struct vrb_qp *qp);
/** Flushes what was posted to a QP in the error state, or to the send queue of one in SQE. */
void vrb_qp_flush(struct vrb_qp *qp);
/** The send queue of an unreliable QP fails; it goes on receiving (IBTA 10.3.1, SQE). */
void vrb_qp_sq_error(struct vrb_qp *qp);

/* qp_table.c */
/** What a transition needs and what it may bring along; the state itself is not listed. */
struct vrb_transition {
	bool valid;
	uint32_t required;
	uint32_t optional;
};
const struct vrb_transition *vrb_qp_transition(
	enum vrb_qp_type type, enum vrb_qp_state from, enum vrb_qp_state to);

/* qp_modify.c */
bool vrb_gid_is_v4(const union vrb_gid *gid);
/** Whether packets can be sent so. @return NULL, or why not */
const char *vrb_av_check(const struct vrb_engine *e, const struct vrb_av *av);

/* requester.c */
struct rte_mbuf *vrb_req_next(struct vrb_qp *qp, uint64_t now);
/** Goes on sending at @p psn, which is between una and max_psn. */
void vrb_req_seek(struct vrb_qp *qp, uint32_t psn);
/** Fails the WQE that @p psn belongs to, flushes what is before and behind it, and ends the QP. */
void vrb_req_fail(struct vrb_qp *qp, uint32_t psn, enum vrb_wc_status status);
/** Sets or clears the retransmission timer as the state wants it. */
void vrb_req_timer(struct vrb_qp *qp, uint64_t now);
static inline bool
vrb_wqe_is_rd_atomic(const struct vrb_send_wqe *wqe)
{
	return wqe->opcode == VRB_WR_RDMA_READ || wqe->opcode == VRB_WR_ATOMIC_CMP_AND_SWP ||
	       wqe->opcode == VRB_WR_ATOMIC_FETCH_AND_ADD || wqe->opcode == VRB_WR_ATOMIC_WRITE;
}

/** Makes a completed entry ready for its next use, before the poster can have it. */
static inline void
vrb_sq_renew(struct vrb_send_wqe *wqe)
{
	wqe->started = 0;
	wqe->done = 0;
}

static inline uint32_t
vrb_req_rd_out(const struct vrb_qp *qp)
{
	return qp->req.rd_head - qp->req.rd_tail;
}

/* completer.c */
void vrb_comp_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt, uint64_t now);
void vrb_comp_timer(struct vrb_qp *qp, uint64_t now);
/** Reports what has completed. */
void vrb_comp_advance(struct vrb_qp *qp);
/**
 * Completes the WQE at @p idx, the oldest: its CQE, if it gets one, and its slot. The slot of one
 * without CQE is free when the caller, or the next CQE, moves the tail.
 */
void vrb_comp_retire(struct vrb_qp *qp, uint32_t idx, enum vrb_wc_status status);
/** The time that an RNR NAK's timer field means, in ns (IBTA table 46). */
uint64_t vrb_rnr_ns(uint8_t timer);

/* responder.c */
void vrb_resp_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt);
/** Executes a packet of a SEND or WRITE. @return whether it was; if not, it was answered or dropped
 */
bool vrb_resp_data(struct vrb_qp *qp, const struct vrb_pkt *pkt);
/** Whether the opcode may follow what came before (IBTA 9.7.4.1.2). */
bool vrb_resp_in_sequence(const struct vrb_qp *qp, const struct vrb_pkt *pkt);
/** Gives back the receive of the current message: its slot in the queue is free. */
void vrb_resp_release_wqe(struct vrb_qp *qp);
/** Whether an acknowledgement can be sent at once: no other answer is to come before it. */
static inline bool
vrb_resp_ack_due(const struct vrb_qp *qp)
{
	return qp->resp.ack_pending && qp->resp.ops_head == qp->resp.ops_tail;
}
/** Completes a receive with an error; its slot is free already. */
void vrb_resp_cqe_error(struct vrb_qp *qp, uint64_t wr_id, enum vrb_wc_status status);

/* raw.c */
struct rte_mbuf *vrb_raw_next(struct vrb_qp *qp);
/**
 * Gives a frame that is not RoCE to those whose rules want it. There is a table of rules.
 * @param from_us it comes from ourselves. @return whether a rule has taken it; the frame stays the
 * caller's
 */
bool vrb_raw_rx(struct vrb_engine *e, const struct rte_mbuf *m, bool from_us);
/** Gives a frame to the sniffers, of which there are some. */
void vrb_raw_sniff(struct vrb_engine *e, const struct rte_mbuf *m);
/** Looks whether there are receives for the frames that are held now. */
void vrb_raw_retry(struct vrb_engine *e);
/** Drops what is held for a queue that is going away. */
void vrb_raw_unhold(struct vrb_engine *e, const struct vrb_raw_queue *q);
/** Destroys the rules, all of them. */
void vrb_raw_forget(struct vrb_engine *e);
/** A CQE of a receive, to be published. */
struct vrb_cqe *vrb_raw_cqe(struct vrb_cq *cq, uint32_t num, void *user, uint64_t wr_id,
	enum vrb_wc_status status, uint32_t len);

/* wq.c */
/** Moves it to the error state and flushes it. */
void vrb_wq_error(struct vrb_wq *wq);
/** Destroys tables and work queues, which no queue pair uses any more. */
void vrb_wq_forget(struct vrb_engine *e);
/** Puts the work queues of overrun CQs into the error state. */
void vrb_wq_overruns(struct vrb_engine *e);

/**
 * Refuses a request for good: the NAK goes out, and the QP is in error (IBTA 9.9.3). Of UC the
 * message is dropped.
 */
void vrb_resp_refuse(
	struct vrb_qp *qp, uint8_t syndrome, uint32_t psn, const char *what, const char *why);

/* answer.c */
/** The next answer, or NULL. */
struct rte_mbuf *vrb_resp_next(struct vrb_qp *qp);

/* unreliable.c */
void vrb_uc_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt);
void vrb_ud_packet(struct vrb_qp *qp, const struct vrb_pkt *pkt);
/* mcast.c */
/** The group that the packet's destination address names, or NULL: nobody is attached to it. */
struct vrb_group *vrb_mcast_find(struct vrb_engine *e, const struct vrb_pkt *pkt);
/** Gives each attached queue pair its copy. */
void vrb_mcast_deliver(struct vrb_engine *e, const struct vrb_pkt *pkt, bool from_us);
/** Keeps a copy of a packet to a group, for those of ours that are attached. */
void vrb_mcast_loop(struct vrb_engine *e, const struct rte_mbuf *m);
/** Detaches a queue pair that goes away. */
void vrb_mcast_forget(struct vrb_qp *qp);

/* unreliable.c */
/** Frees what vrb_ah_destroy() has left. */
void vrb_ah_forget(struct vrb_engine *e);

#endif
