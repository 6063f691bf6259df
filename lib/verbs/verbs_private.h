/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of the verbs library share: the objects behind the structures of the ABI, and the
 * few rules below.
 *
 * Each structure of the ABI is the first member of ours, so that one pointer is both. What a
 * program may read of it (qp->state, cq->cqe, mr->lkey ...) is kept right; everything else is
 * behind it.
 *
 * Locks, in the order in which they are taken:
 *   1. vrb_verbs_lock()   opening and closing the device
 *   2. the baton          vrb_nic_lock(): every control call. Never held while waiting for anything
 * else.
 *   3. sq, rq, cq locks   of vrb_queue.h, for posting and polling
 *   4. evq->lock          an event queue; taken under the baton by the engine's notifications
 * The mutexes of the ABI's own structures (context, cq, qp, srq) stand alone: nothing is taken
 * under them.
 *
 * After fork(2) a child has the parent's objects in its memory and must not touch them: every entry
 * point looks at vrb_forked first.
 */
#ifndef VERBS_PRIVATE_H
#define VERBS_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/queue.h>

/* What the ABI declares is what the library exports. */
#pragma GCC visibility push(default)
#include <infiniband/verbs.h>
#pragma GCC visibility pop

#include "vrb_nic.h"

#include "verbs_log.h"

/* The inline wrappers of the header shall not stand in the way of the functions behind them. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define VRB_PUBLIC __attribute__((visibility("default")))
#define VRB_COLD __attribute__((cold, noinline))

#define vrb_container(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* ---- the three return conventions, at the edge ---- */

/** For calls that return the errno. @p err is positive. */
#define vrb_fail(err, ...) vrb_explain_call(err, __func__, __VA_ARGS__)
/** For calls that return a pointer: NULL, and errno is set. */
#define vrb_fail_null(err, ...) (errno = vrb_fail(err, __VA_ARGS__), NULL)
/** For calls that return -1, and errno is set. */
#define vrb_fail_minus1(err, ...) (errno = vrb_fail(err, __VA_ARGS__), -1)

/* ---- the device ---- */

/** True in a child of a process that had opened the device. */
extern bool vrb_forked;

struct vrb_device {
	struct ibv_device ibv;
	/* Upstream's struct verbs_device has its driver's ops here, and its providers ask whether
	 * they are theirs. */
	const void *ops;
	void *reserved[15];
};

/**
 * The NIC, opened at the first need and kept until the process ends. Takes the lock.
 * @return 0, or -errno after a sentence in the log
 */
int vrb_device_nic(struct vrb_nic **nic);
const struct vrb_nic_info *vrb_device_info(void);
uint64_t vrb_device_guid(void);
void vrb_verbs_lock(void);
void vrb_verbs_unlock(void);

/* ---- events, completion and asynchronous ---- */

/** A source of events: it stands in its queue once, with a count. */
struct vrb_event {
	TAILQ_ENTRY(vrb_event) link;
	uint32_t pending; /* events that wait */
	uint32_t reported; /* events that the program has taken */
	bool closed; /* its object is being destroyed: no more are added */
	void *obj;
	int type;
};

struct vrb_evq {
	pthread_mutex_t lock;
	TAILQ_HEAD(, vrb_event) events;
	uint64_t written; /* tokens that were put into fd, or will be at once */
	_Atomic uint64_t sent; /* those of them that are there */
	uint64_t taken; /* tokens whose taker has looked at the list */
	int fd;
};

/** @return 0 or -errno of eventfd(2) */
int vrb_evq_init(struct vrb_evq *q);
void vrb_evq_fini(struct vrb_evq *q);
/** Adds one event of @p e. Does not wait for a reader. */
void vrb_evq_post(struct vrb_evq *q, struct vrb_event *e);
/** Takes the oldest event; waits for one unless the descriptor is O_NONBLOCK. @return NULL: errno
 * of read(2) */
struct vrb_event *vrb_evq_get(struct vrb_evq *q);
/** Removes what waits of @p e, and takes no more. @return how many events of it the program has
 * taken, in all */
uint32_t vrb_evq_cancel(struct vrb_evq *q, struct vrb_event *e);
/** Waits until *completed has reached @p reported. */
void vrb_evq_wait_acks(
	pthread_mutex_t *mutex, pthread_cond_t *cond, const uint32_t *completed, uint32_t reported);

/* ---- objects ---- */

/* In the order in which what is left is destroyed when a context is closed. */
enum vrb_kind {
	VRB_KIND_FLOW,
	VRB_KIND_COUNTERS,
	VRB_KIND_QP,
	VRB_KIND_IND_TBL,
	VRB_KIND_WQ,
	VRB_KIND_AH,
	VRB_KIND_MW,
	VRB_KIND_MR,
	VRB_KIND_DM,
	VRB_KIND_SRQ,
	VRB_KIND_CQ,
	VRB_KIND_XRCD,
	VRB_KIND_CHANNEL,
	VRB_KIND_PD,
	VRB_KIND_TD,
	VRB_KINDS,
};

struct vrb_obj {
	TAILQ_ENTRY(vrb_obj) link;
};

/* Events of the port and the device, one of each a context. */
enum {
	VRB_CTX_EV_PORT_ACTIVE,
	VRB_CTX_EV_PORT_ERR,
	VRB_CTX_EV_DEVICE_FATAL,
	VRB_CTX_EVENTS,
};

struct vrb_ctx {
	TAILQ_ENTRY(vrb_ctx) link;
	struct vrb_nic *nic;
	struct vrb_engine *engine;
	TAILQ_HEAD(, vrb_obj) objs[VRB_KINDS]; /* under context.mutex */
	uint32_t next_handle; /* under context.mutex */
	struct vrb_evq async;
	struct vrb_event events[VRB_CTX_EVENTS];
	struct verbs_context v; /* last, as struct ibv_context is the last of it */
};

/* A thread domain: a promise of the program (ibv_alloc_td(3)). */
struct vrb_vtd {
	struct ibv_td ibv;
	uint32_t refs; /* parent domains; under context.mutex */
	struct vrb_obj obj;
};

/* A protection domain, or a parent domain: another handle of one. */
struct vrb_vpd {
	struct ibv_pd ibv;
	struct vrb_pd *pd;
	struct vrb_vpd *parent_of; /* of a parent domain; NULL: it is none */
	struct vrb_vtd *td; /* of a parent domain, or NULL */
	uint32_t parents; /* parent domains made of it; under context.mutex */
	struct vrb_obj obj;
};

struct vrb_vmr {
	struct ibv_mr ibv;
	struct vrb_mr *mr;
	atomic_uint *dm_users; /* of device memory: counts the regions on it; or NULL */
	struct vrb_obj obj;
};

struct vrb_vmw {
	struct ibv_mw ibv;
	struct vrb_mr *mw;
	struct vrb_obj obj;
};

struct vrb_vah {
	struct ibv_ah ibv;
	struct vrb_ah *ah;
	struct vrb_obj obj;
};

struct vrb_domain;

/* One opening of a domain of XRC. */
struct vrb_vxrcd {
	struct ibv_xrcd ibv;
	struct vrb_domain *domain;
	uint32_t refs; /* objects made with it; under the baton */
	struct vrb_obj obj;
};

struct vrb_channel {
	struct ibv_comp_channel ibv;
	struct vrb_evq evq;
	struct vrb_obj obj;
};

struct vrb_vcq {
	struct ibv_cq_ex ibv; /* begins as struct ibv_cq does */
	struct vrb_cq *cq;
	struct vrb_nic *nic;
	struct ibv_pd *parent; /* the parent domain that it was made with, or NULL */
	bool single_threaded;
	rte_spinlock_t session; /* from ibv_start_poll() to ibv_end_poll() */
	struct vrb_cqe cur; /* the completion that ibv_wc_read_*() speak of */
	struct vrb_event comp, err;
	struct vrb_obj obj;
};

enum {
	VRB_SRQ_EV_ERR,
	VRB_SRQ_EV_LIMIT,
	VRB_SRQ_EVENTS,
};

struct vrb_vsrq {
	struct ibv_srq ibv;
	struct vrb_srq *srq;
	struct vrb_vxrcd *xrcd; /* of XRC, or NULL */
	struct vrb_event events[VRB_SRQ_EVENTS];
	struct vrb_obj obj;
};

enum {
	VRB_QP_EV_FATAL,
	VRB_QP_EV_REQ_ERR,
	VRB_QP_EV_ACCESS_ERR,
	VRB_QP_EV_COMM_EST,
	VRB_QP_EV_SQ_DRAINED,
	VRB_QP_EV_LAST_WQE,
	VRB_QP_EVENTS,
};

struct vrb_vqp {
	struct ibv_qp_ex ibv; /* begins as struct ibv_qp does */
	struct vrb_qp *qp;
	struct vrb_sq *sq;
	struct vrb_rq *rq; /* NULL with an SRQ */
	struct vrb_nic *nic;
	/* Targets of XRC: the domain, and a ring of all handles of the queue pair; under the baton.
	 */
	struct vrb_vxrcd *xrcd;
	struct vrb_vqp *next_handle;
	bool extended; /* made with send_ops_flags: ibv_wr_*() work */
	/* From ibv_wr_start() to ibv_wr_complete(), under sq->lock. */
	struct vrb_send_wqe *wqe; /* the one being built */
	uint32_t built; /* entries, wqe among them */
	int error; /* the first one; sticky */
	/* Written once. */
	struct ibv_qp_cap cap;
	int sig_all;
	struct vrb_event events[VRB_QP_EVENTS];
	struct vrb_obj obj;
};

static inline struct vrb_ctx *
vrb_to_ctx(struct ibv_context *c)
{
	return vrb_container(c, struct vrb_ctx, v.context);
}

#define VRB_TO(name, type, abi) \
	static inline struct type *vrb_to_##name(struct abi *p) \
	{ \
		return (struct type *)p; \
	}

VRB_TO(pd, vrb_vpd, ibv_pd)
VRB_TO(td, vrb_vtd, ibv_td)
VRB_TO(mr, vrb_vmr, ibv_mr)
VRB_TO(mw, vrb_vmw, ibv_mw)
VRB_TO(ah, vrb_vah, ibv_ah)
VRB_TO(xrcd, vrb_vxrcd, ibv_xrcd)
VRB_TO(channel, vrb_channel, ibv_comp_channel)
VRB_TO(cq, vrb_vcq, ibv_cq)
VRB_TO(cq_ex, vrb_vcq, ibv_cq_ex)
VRB_TO(srq, vrb_vsrq, ibv_srq)
VRB_TO(qp, vrb_vqp, ibv_qp)
VRB_TO(qp_ex, vrb_vqp, ibv_qp_ex)

/** Enters an object into its context's list. @return a handle for it, unique in the context */
uint32_t vrb_obj_add(struct vrb_ctx *ctx, enum vrb_kind kind, struct vrb_obj *obj);
void vrb_obj_remove(struct vrb_ctx *ctx, enum vrb_kind kind, struct vrb_obj *obj);

/** Starts a control call: takes the baton. @return 0, or -ENODEV in a forked child */
static inline int
vrb_enter(struct vrb_ctx *ctx)
{
	if (unlikely(vrb_forked))
		return -ENODEV;
	vrb_nic_lock(ctx->nic);
	return 0;
}

static inline void
vrb_leave(struct vrb_ctx *ctx)
{
	vrb_nic_unlock(ctx->nic);
}

/* ---- functions that reach a program by way of its context only ---- */

extern const struct vrb_engine_ops vrb_verbs_engine_ops;
extern const struct vrb_engine_ops vrb_verbs_engine_ops_explain;

/** Posts an event of the port to every open context. Under the baton. */
void vrb_contexts_event(enum vrb_event_type type);

/** Fills in the ops of a context: all of them, those that are not supported with functions that say
 * so. */
void vrb_ops_unsupported(struct verbs_context *v);
void vrb_qp_ex_ops(struct vrb_vqp *qp, uint64_t send_ops);
void vrb_cq_ex_ops(struct vrb_vcq *cq, uint64_t wc_flags);

int vrb_verbs_query_device_ex(struct ibv_context *context,
	const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *attr,
	size_t attr_size);
int vrb_verbs_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values);
int vrb_verbs_query_port(
	struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr, size_t attr_len);
struct ibv_mw *vrb_verbs_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int vrb_verbs_dealloc_mw(struct ibv_mw *mw);
int vrb_verbs_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw, struct ibv_mw_bind *bind);
int vrb_verbs_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
struct ibv_cq_ex *vrb_verbs_create_cq_ex(
	struct ibv_context *context, struct ibv_cq_init_attr_ex *attr);
int vrb_verbs_poll_cq(struct ibv_cq *cq, int num_entries, struct ibv_wc *wc);
int vrb_verbs_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct ibv_srq *vrb_verbs_create_srq_ex(
	struct ibv_context *context, struct ibv_srq_init_attr_ex *attr);
int vrb_verbs_get_srq_num(struct ibv_srq *srq, uint32_t *num);
int vrb_verbs_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_qp *vrb_verbs_create_qp_ex(
	struct ibv_context *context, struct ibv_qp_init_attr_ex *attr);
struct ibv_qp *vrb_verbs_open_qp(struct ibv_context *context, struct ibv_qp_open_attr *attr);
struct ibv_xrcd *vrb_verbs_open_xrcd(struct ibv_context *context, struct ibv_xrcd_init_attr *attr);
int vrb_verbs_close_xrcd(struct ibv_xrcd *xrcd);
/* Queue pairs of raw frames (verbs_raw.c). */
/** Whether one with an indirection table is asked for. */
bool vrb_is_rss(const struct ibv_qp_init_attr_ex *attr);
/** What is peculiar to them. @return 0 or an errno */
int vrb_raw_check(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr);
/** @param rss room for what init refers to */
void vrb_raw_init(
	struct vrb_qp_init *init, struct vrb_rss *rss, const struct ibv_qp_init_attr_ex *attr);
/** ibv_attach_mcast() and ibv_detach_mcast() of theirs. @return 0 or an errno */
int vrb_raw_attach(struct ibv_qp *qp, const union ibv_gid *gid);
int vrb_raw_detach(struct ibv_qp *qp, const union ibv_gid *gid);
void vrb_raw_ops(struct verbs_context *v);
void vrb_raw_caps(struct ibv_device_attr_ex *attr);
int vrb_verbs_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int vrb_verbs_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* Figures for `verbena info --pid` and `verbena top` (verbs_figures.c). */
/** The device was opened: lets others of the user look. Without them if it cannot. */
void vrb_figures_open(struct vrb_nic *nic, const char *segment);
/** The process ends. */
void vrb_figures_close(void);
/** In a child after fork(2): it has no device to tell of. */
void vrb_figures_forked(void);

/* Parent and thread domains (verbs_parent.c). */
void vrb_parent_ops(struct verbs_context *v);
/** ibv_dealloc_pd() of a parent domain. @return 0 or an errno */
int vrb_parent_dealloc(struct vrb_vpd *parent);
/** How many parent domains were made of a protection domain. */
uint32_t vrb_parents(struct vrb_vpd *pd);

/* Device memory (verbs_dm.c). */
void vrb_dm_ops(struct verbs_context *v);
/**
 * Registers device memory, of which @p users counts the regions.
 * @return the region, or NULL: errno
 */
struct ibv_mr *vrb_reg_dm(
	struct ibv_pd *pd, void *mem, size_t length, unsigned int access, atomic_uint *users);

/** The domain behind an opening of it. */
struct vrb_xrcd *vrb_xrcd_of(const struct vrb_vxrcd *xrcd);

/**
 * Checks an address for the call named @p call.
 * @param multicast whether a group will do. @return 0 or an errno
 */
int vrb_check_av(const struct ibv_ah_attr *attr, bool multicast, const char *call);
/** Everything but the MAC address. */
void vrb_av_to_engine(const struct ibv_ah_attr *attr, struct vrb_av *av);
/**
 * Finds the MAC address, for the call named @p call. May ask the network and wait: not under the
 * baton.
 * @return 0 or an errno
 */
int vrb_av_resolve(struct vrb_ctx *ctx, struct vrb_av *av, const char *call);

/** The lower port receives what flow rules and groups want. Under the baton. @return 0 or -errno */
int vrb_filter_update(struct vrb_ctx *ctx);

/* Of a new handle of a queue pair, and of one that goes away. */
void vrb_qp_init(struct vrb_ctx *ctx, struct vrb_vqp *qp, const struct ibv_qp_init_attr_ex *attr);
void vrb_qp_free(struct vrb_vqp *qp);

/** "RESET", "INIT" ... */
const char *vrb_state_name(int state);

/** Fills the part of @p wqe that opens a window. @return 0 or -errno */
int vrb_wqe_bind(struct vrb_send_wqe *wqe, struct ibv_mw *mw, uint32_t rkey,
	const struct ibv_mw_bind_info *info);

/** Posts receives to a receive queue. @return 0, or with *bad set -ENOTCONN (the queue is in RESET)
 * or another -errno */
int vrb_rq_post(struct vrb_rq *rq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* Destroying what a closed context has left behind; under the baton. */
void vrb_flow_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx);
void vrb_counters_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx);
void vrb_ind_tbl_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx);
void vrb_wq_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx);
void vrb_qp_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx);
void vrb_cq_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx);
void vrb_srq_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx);
void vrb_ah_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx);
void vrb_xrcd_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx);
void vrb_mr_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx);
void vrb_dm_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx);
void vrb_mw_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx);
void vrb_pd_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx);
void vrb_td_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx);
void vrb_channel_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx);

#endif
