/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RoCEv2 engine: packets in, packets out, work requests, completions, and a clock that is an
 * argument.
 *
 * The engine does no I/O, has no threads and reads no clock, so the same code runs in a driver, in
 * the simulator and under a fuzzer. One engine is one device: its objects and its packets are
 * worked on by one thread at a time, the holder of the *baton* (a lock of the layer above). Unless
 * a function says otherwise the caller holds the baton. What needs no baton: filling and emptying
 * the rings of vrb_queue.h under their own locks, vrb_engine_ring() and vrb_engine_doorbell().
 *
 * Time is in nanoseconds since an origin of the caller's choice, and never runs backwards.
 */
#ifndef VRB_ROCE_H
#define VRB_ROCE_H

#include <sys/uio.h>

#include <rte_mbuf.h>

#include "vrb_limits.h"
#include "vrb_queue.h"
#include "vrb_types.h"

struct vrb_mr;
struct vrb_srq;

/** Room that an mbuf of vrb_engine_conf.pool needs behind its headroom. */
#define VRB_MBUF_ROOM 768
/** Largest size of the headers of a packet, Ethernet to ICRC, without payload and pad. */
#define VRB_HDR_MAX 128

/** What the engine tells the layer above. Called under the baton; must not call the engine. */
struct vrb_engine_ops {
	/** An armed CQ got a completion (that counts). The CQ is disarmed. */
	void (*cq_notify)(void *ctx, struct vrb_cq *cq);
	/** An asynchronous event; @p obj is the user pointer of the QP, CQ or SRQ that @p type
	 * speaks of. */
	void (*async)(void *ctx, enum vrb_event_type type, void *obj);
	/** One sentence, without newline, on why something failed. NULL: not wanted, and none are
	 * made. */
	void (*explain)(void *ctx, const char *sentence);
};

/** How the direct path goes: payload of a WRITE or READ moved by the initiator alone. */
enum vrb_direct_mode {
	VRB_DIRECT_AUTO, /* where it is faster than packets */
	VRB_DIRECT_OFF,
	VRB_DIRECT_ALWAYS, /* wherever it can be: for tests */
};

struct vrb_board;
struct vrb_board_req;

/** The direct path, as the layer above provides it. Called under the baton; must not call the
 * engine. */
struct vrb_direct_ops {
	/** A handle of the peer with that MAC address, or NULL: packets only. */
	void *(*open)(void *ctx, const uint8_t mac[6]);
	void (*close)(void *ctx, void *peer);
	/**
	 * Moves @p len bytes between @p iov here and the peer's memory, @p off bytes behind what
	 * @p req names, if the peer's board allows it. Bytes of a WRITE become visible in
	 * ascending order at least so far that the last eight come last.
	 * @param gen out: of the peer's connection
	 * @param last these are the last bytes of the message
	 * @return 0; -EAGAIN: not this one; another -errno: none any more. Some bytes may have been
	 * moved then
	 */
	int (*move)(void *ctx, void *peer, const struct vrb_board_req *req, uint64_t off,
		uint64_t len, const struct iovec *iov, unsigned int num_iov, bool last,
		uint32_t *gen);
	/** Waits until no peer is moving bytes by an entry of our board that is invalid now. */
	void (*settle)(void *ctx);
};

struct vrb_engine_conf {
	const struct vrb_engine_ops *ops;
	void *ctx; /* first argument of the ops */
	struct rte_mempool
		*pool; /* packets to send; data room RTE_PKTMBUF_HEADROOM + VRB_MBUF_ROOM */
	uint8_t mac[6];
	union vrb_gid gid[VRB_GIDS];
	uint16_t port_mtu; /* of the Ethernet port: bytes of an IP packet */
	uint32_t first_qpn; /* number that queue pairs start with; 0: VRB_QPN_FIRST */
	bool icrc; /* compute it on sending */
	uint64_t icrc_omitted; /* flag in mbuf.ol_flags that says that the ICRC was left out; 0:
				* none. Set on sending without icrc, and believed on receiving. */
	bool zero_copy; /* payload may be sent as external buffers over the program's memory: the
			 * port copies it before its tx_burst returns */
	const struct vrb_direct_ops *direct; /* NULL: everything goes in packets */
	void *direct_ctx; /* first argument of its functions */
	struct vrb_board *board; /* zeroed memory for ours, or NULL: nobody moves bytes here */
	enum vrb_direct_mode direct_mode;
};

/** Counters, each by its cause. Read without the baton they are a snapshot that may be torn between
 * each other. */
struct vrb_stats {
	uint64_t rx_packets, rx_bytes, tx_packets, tx_bytes;
	uint64_t rx_not_roce, rx_malformed, rx_icrc, rx_opcode, rx_no_qp, rx_qp_state,
		rx_wrong_peer, rx_pkey;
	uint64_t rx_qkey, rx_no_recv, rx_dropped; /* of UC and UD, which do not answer */
	uint64_t rx_duplicate, rx_out_of_order;
	uint64_t tx_acks, tx_nak_seq, tx_nak_rnr, tx_nak_error;
	uint64_t rx_acks, rx_nak_seq, rx_nak_rnr, rx_nak_error;
	uint64_t timeouts, retransmitted, read_gaps;
	uint64_t no_mbuf, cq_overruns;
	uint64_t direct_writes, direct_reads, direct_bytes; /* messages that were moved directly */
};

/**
 * Makes an engine. @return 0, -ENOMEM, or -EINVAL when the mempool's data room is too small or the
 * MTU below 256 + VRB_HDR_MAX
 */
int vrb_engine_create(const struct vrb_engine_conf *conf, struct vrb_engine **e);

/** In a child after fork(2): the board is the parent's. */
void vrb_engine_no_direct(struct vrb_engine *e);
/** The process ends: no peer moves bytes here any more when it returns. */
void vrb_engine_shut_board(struct vrb_engine *e);

/** Frees the engine and every object that is left. */
void vrb_engine_destroy(struct vrb_engine *e);

/**
 * Takes received frames. RoCEv2 packets addressed to this engine's port are consumed; the others
 * are left to the caller, moved to the front of @p pkts. Frames may be chained; the first segment
 * holds the first VRB_HDR_MAX bytes or the whole frame. Packets of this engine to itself do not
 * pass here: they are taken up by the same call, also with n = 0.
 *
 * @return how many frames are left in @p pkts
 */
unsigned int vrb_engine_rx(
	struct vrb_engine *e, struct rte_mbuf **pkts, unsigned int n, uint64_t now);

/**
 * Whether raw frames are held for want of receives (raw.h): until that is no longer so the caller
 * had better not receive more, but go on calling vrb_engine_rx() with none.
 */
bool vrb_engine_holds(const struct vrb_engine *e);

/** Whether packets of this engine to itself wait for vrb_engine_rx(). */
bool vrb_engine_looped(const struct vrb_engine *e);

/**
 * Takes up doorbells, runs due timers and makes up to @p n packets to be sent. The caller owns
 * them, sends them in this order, and frees what it cannot send (that is loss). @return how many
 * were made; less than n: there is nothing to send now
 */
unsigned int vrb_engine_tx(
	struct vrb_engine *e, struct rte_mbuf **pkts, unsigned int n, uint64_t now);

/**
 * When vrb_engine_tx() has to be called again if nothing else happens: 0 at once, UINT64_MAX never.
 */
uint64_t vrb_engine_deadline(struct vrb_engine *e);

/** Tells the engine that @p qp has new work. Needs no baton; any thread. */
void vrb_engine_ring(struct vrb_qp *qp);

/** Whether a doorbell was rung that vrb_engine_tx() has not taken up. Needs no baton. */
bool vrb_engine_doorbell(const struct vrb_engine *e);

/** Under the baton, instead of vrb_engine_ring(): no atomic operation. */
void vrb_engine_schedule(struct vrb_qp *qp);

const struct vrb_stats *vrb_engine_stats(const struct vrb_engine *e);
/** The largest path MTU in bytes (256 .. 4096) that the port carries. */
uint32_t vrb_engine_max_mtu(const struct vrb_engine *e);

/* ---- protection domains, memory regions and windows ---- */

struct vrb_pd {
	uint32_t refs; /* objects that stand in it */
	LIST_ENTRY(vrb_pd) link;
};

/** A memory region or window. Read-only for the layers above. */
struct vrb_mr {
	uint32_t lkey;
	uint32_t rkey;
	uint32_t access; /* VRB_ACCESS_* */
	uint8_t is_mw;
	uint8_t mw_type; /* 1 or 2 */
	uint8_t valid; /* a window that is bound; a region always */
	uint64_t addr; /* where the memory is */
	uint64_t iova; /* the address that requests name it by */
	uint64_t length;
	struct vrb_pd *pd;
	struct vrb_mr *mr; /* window: the region it opens */
	struct vrb_qp *qp; /* window of type 2: the queue pair that bound it */
	uint32_t windows; /* region: windows bound to it */
	uint32_t index;
	void *user;
};

/** @return 0 or -ENOMEM (limit reached, or no memory) */
int vrb_pd_create(struct vrb_engine *e, struct vrb_pd **pd);
/** @return 0, or -EBUSY while an object stands in it */
int vrb_pd_destroy(struct vrb_engine *e, struct vrb_pd *pd);

/**
 * Registers memory. The caller has checked that it is mapped.
 *
 * @param access VRB_ACCESS_*; other bits are -EINVAL, and so are REMOTE_WRITE or REMOTE_ATOMIC
 * without LOCAL_WRITE (ibv_reg_mr(3))
 * @return 0, -EINVAL (range wraps, access), -ENOMEM
 */
int vrb_mr_reg(struct vrb_engine *e, struct vrb_pd *pd, uint64_t addr, uint64_t length,
	uint64_t iova, uint32_t access, struct vrb_mr **mr);
/**
 * Changes a region; its keys stay. All of it is given, also what stays as it is.
 * @return 0, -EINVAL as vrb_mr_reg(), -EBUSY while a window is bound to it; then nothing has
 * changed
 */
int vrb_mr_rereg(struct vrb_engine *e, struct vrb_mr *mr, struct vrb_pd *pd, uint64_t addr,
	uint64_t length, uint64_t iova, uint32_t access);
/** @return 0, or -EBUSY while a window is bound to it */
int vrb_mr_dereg(struct vrb_engine *e, struct vrb_mr *mr);
/** Memory window of @p type 1 or 2. @return 0, -EINVAL, -ENOMEM */
int vrb_mw_alloc(struct vrb_engine *e, struct vrb_pd *pd, unsigned int type, struct vrb_mr **mw);
/** @return 0 */
int vrb_mw_free(struct vrb_engine *e, struct vrb_mr *mw);

/* ---- completion queues ---- */

/** @param size entries wanted; the CQ has at least so many. @return 0, -EINVAL (0, or above
 * VRB_MAX_CQE), -ENOMEM */
int vrb_cq_create(struct vrb_engine *e, uint32_t size, void *user, struct vrb_cq **cq);
/** @return 0, or -EBUSY while a queue pair uses it */
int vrb_cq_destroy(struct vrb_engine *e, struct vrb_cq *cq);
/**
 * Gives the CQ another size, both ways; completions in it and its being armed stay. Takes cq->lock
 * itself.
 * @return 0, -EINVAL (size 0, above the limit, or below what waits in it), -EIO (it has overflowed,
 * and takes no more completions whatever its size), -ENOMEM; then nothing is changed
 */
int vrb_cq_resize(struct vrb_engine *e, struct vrb_cq *cq, uint32_t size);
/** Asks for one notification: at the next completion, or at the next solicited or failed one. An
 * arming for any is not weakened. */
void vrb_cq_arm(struct vrb_cq *cq, bool solicited_only);
/**
 * Holds back the notification of an armed CQ until @p count completions have come since it was
 * armed, or @p period_us microseconds have passed since the first of them, whichever is first. Of
 * the two, 0 is none; both 0 (as made) hold nothing back. For a CQ that is armed for solicited
 * completions only those count. A failed completion, and one that fills the CQ, is told at once.
 * What is held back already goes by the new values from here on.
 * @return 0, or -EINVAL (above VRB_MAX_CQ_COUNT or VRB_MAX_CQ_PERIOD), -EIO (the CQ has
 * overflowed); then nothing is changed
 */
int vrb_cq_moderate(struct vrb_cq *cq, uint32_t count, uint32_t period_us, uint64_t now);

/* ---- shared receive queues ---- */

struct vrb_srq {
	struct vrb_rq rq;
	struct vrb_pd *pd;
	struct vrb_engine *engine;
	void *user;
	uint32_t limit; /* armed low watermark, 0: none */
	uint32_t refs; /* queue pairs that use it */
	uint64_t dry; /* messages that found it empty */
	uint32_t num; /* its number: what XRC requests name it by */
	struct vrb_xrcd *xrcd; /* XRC: its domain, or NULL */
	struct vrb_cq *cq; /* XRC: where its completions go */
};

struct vrb_xrcd;

/** In: what is wanted, out: what there is. @return 0, -EINVAL (limits), -ENOMEM */
int vrb_srq_create(struct vrb_engine *e, struct vrb_pd *pd, uint32_t *max_wr, uint32_t *max_sge,
	void *user, struct vrb_srq **srq);
/**
 * @param max_wr new size, or 0 for none; out: what there is
 * @param limit new watermark, or UINT32_MAX to leave it
 * @return 0, -EINVAL (above a limit, below what is posted, watermark above the size: nothing is
 * changed), -ENOMEM
 */
int vrb_srq_modify(struct vrb_srq *srq, uint32_t *max_wr, uint32_t limit);
/** @return 0, or -EBUSY while a queue pair uses it */
int vrb_srq_destroy(struct vrb_srq *srq);

/** A domain of XRC: its SRQs receive through its target queue pairs (IBTA annex A14). */
struct vrb_xrcd {
	uint32_t refs; /* SRQs and queue pairs in it */
};

/** An SRQ for XRC: its completions go to @p cq. Otherwise as vrb_srq_create(). */
int vrb_srq_create_xrc(struct vrb_engine *e, struct vrb_pd *pd, struct vrb_xrcd *xrcd,
	struct vrb_cq *cq, uint32_t *max_wr, uint32_t *max_sge, void *user, struct vrb_srq **srq);

/* ---- address handles ---- */

struct vrb_av;
struct vrb_ah;

/** @return 0, -EINVAL (address family, index of the GID, flow label), -ENOMEM */
int vrb_ah_create(
	struct vrb_engine *e, struct vrb_pd *pd, const struct vrb_av *av, struct vrb_ah **ah);
/** Datagrams that were posted before are still sent. @return 0 */
int vrb_ah_destroy(struct vrb_engine *e, struct vrb_ah *ah);

/* ---- multicast ---- */

bool vrb_gid_is_multicast(const union vrb_gid *gid);
/** @return 0 (also when it is attached already), -EINVAL (type of the queue pair, GID), -ENOMEM
 * (memory or a limit) */
int vrb_mcast_attach(struct vrb_qp *qp, const union vrb_gid *gid);
/** @return 0, or -EINVAL: it is not attached */
int vrb_mcast_detach(struct vrb_qp *qp, const union vrb_gid *gid);
/** How many groups the queue pair is attached to. */
uint32_t vrb_mcast_groups(const struct vrb_qp *qp);

/* ---- queue pairs ---- */

/** Where packets go. The MAC is the layer above's to find. */
struct vrb_av {
	union vrb_gid dgid;
	uint8_t dmac[6];
	uint8_t sgid_index;
	uint8_t hop_limit;
	uint8_t tclass;
	uint8_t sl;
	uint8_t src_path_bits;
	uint8_t static_rate;
	uint32_t flow_label;
};

struct vrb_ind_tbl;
struct vrb_rss;

struct vrb_qp_init {
	enum vrb_qp_type type;
	struct vrb_pd *pd; /* XRC target: NULL */
	struct vrb_cq *send_cq; /* XRC target: NULL */
	struct vrb_cq *recv_cq; /* XRC: NULL */
	struct vrb_srq *srq; /* or NULL */
	struct vrb_xrcd *xrcd; /* XRC target only */
	/* Raw frames only. With a table the queue pair just receives, into its work queues: it has
	 * no queues and no CQ. */
	struct vrb_ind_tbl *ind_tbl;
	const struct vrb_rss *rss; /* with a table: what is hashed */
	uint32_t rx_flags; /* VRB_RX_* */
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline;
	bool sig_all;
	bool block_self_mcast; /* UD: it does not get what it sends to a group that it is attached
				  to */
	void *user;
};

struct vrb_qp_attr {
	enum vrb_qp_state state, cur_state;
	enum vrb_mtu path_mtu;
	uint32_t qkey, rq_psn, sq_psn, dest_qpn;
	uint32_t access;
	struct vrb_av av;
	uint16_t pkey_index;
	uint8_t en_sqd_async_notify, sq_draining;
	uint8_t max_rd_atomic, max_dest_rd_atomic;
	uint8_t min_rnr_timer, port_num, timeout, retry_cnt, rnr_retry;
};

/**
 * Makes a queue pair in RESET.
 * @param init in: what is wanted, out: the actual capabilities, at least that
 * @return 0, -EINVAL (a limit exceeded), -EOPNOTSUPP (type), -ENOMEM
 */
int vrb_qp_create(struct vrb_engine *e, struct vrb_qp_init *init, struct vrb_qp **qp);
/** Whether an answer to the peer is still to be sent. Destroying the QP now would let the peer wait
 * in vain. */
bool vrb_qp_owes(const struct vrb_qp *qp);
/** Destroys it in any state; work that is outstanding gives no completion. */
void vrb_qp_destroy(struct vrb_qp *qp);
/**
 * Changes attributes and state as ibv_modify_qp(3) and IBTA 10.3.1, table 91 and following, say. On
 * failure nothing is changed.
 * @return 0, -EINVAL, -ENOMEM
 */
int vrb_qp_modify(struct vrb_qp *qp, const struct vrb_qp_attr *attr, uint32_t mask, uint64_t now);
/** All attributes as they are now. */
void vrb_qp_query(const struct vrb_qp *qp, struct vrb_qp_attr *attr);

/* Parts of a queue pair that the poster works on. */
struct vrb_sq *vrb_qp_sq(struct vrb_qp *qp);
struct vrb_rq *vrb_qp_rq(struct vrb_qp *qp); /* its own; NULL with an SRQ */
uint32_t vrb_qp_num(const struct vrb_qp *qp);
/** The XRC target with number @p qpn in the domain, or NULL. @param user out: vrb_qp_init.user */
struct vrb_qp *vrb_qp_find_target(
	struct vrb_engine *e, const struct vrb_xrcd *xrcd, uint32_t qpn, void **user);
/** Changes vrb_qp_init.user. */
void vrb_qp_set_user(struct vrb_qp *qp, void *user);
/** Needs no baton. */
enum vrb_qp_state vrb_qp_state(const struct vrb_qp *qp);

/**
 * Whether @p wqe, filled but not committed, may be posted: state, opcode, number of SGEs, length,
 * inline data, of UD the address. Under sq->lock.
 * @return 0, -EINVAL (also for a QP below RTS), -EOPNOTSUPP (opcode), -E2BIG (message or inline
 * data too long)
 */
int vrb_qp_check_send(const struct vrb_qp *qp, const struct vrb_send_wqe *wqe);

#endif
