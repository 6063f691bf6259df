/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * What a port of net_verbena offers beyond ethdev: the RoCEv2 engine that stands beside its Rx
 * queues, and the software queues and pollers behind them.
 *
 * All functions take the port id of a port of net_verbena. Of any other port they answer -ENODEV,
 * or NULL, or do nothing.
 *
 * **RoCE.** rte_pmd_verbena_roce_open() gives the port an engine; it has to be called while the
 * port is stopped, because a port without one hands frames through without looking at them. From
 * rte_eth_dev_start() on RoCEv2 packets to the port's IP addresses go to the engine, and all other
 * frames to the Rx queues. The engine is worked on under a lock, the *baton* (vrb_roce.h says which
 * calls need it):
 *
 * @code
 * rte_pmd_verbena_ip_set(port, "198.18.0.1");
 * rte_pmd_verbena_roce_open(port, &ops, ctx);
 * rte_eth_dev_start(port);
 * e = rte_pmd_verbena_engine(port);
 * rte_pmd_verbena_lock(port);
 * vrb_pd_create(e, &pd);
 * rte_pmd_verbena_unlock(port);
 * ... fill vrb_qp_sq(qp) under its own lock ...
 * rte_pmd_verbena_kick(port, qp);
 * while (vrb_cq_empty(cq))
 *         rte_pmd_verbena_progress(port);
 * @endcode
 *
 * The engine goes on by itself whenever a poller of the port runs: in rte_eth_rx_burst() on any of
 * its queues, on a service core, or in rte_pmd_verbena_progress().
 */
#ifndef RTE_PMD_VERBENA_H
#define RTE_PMD_VERBENA_H

#include <stdbool.h>
#include <stdint.h>

#include "vrb_roce.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The plugin hides everything else. */
#pragma GCC visibility push(default)

/* ---- RoCE ---- */

/**
 * Sets the IP address of the port's engine; without it the devarg ip= has to be there. While no
 * engine is open.
 *
 * On software ports (net_ring, net_null, net_memif, net_shmlan) the port takes the MAC address that
 * belongs to the IP address, so that peers of the same kind find each other without a neighbour
 * protocol.
 *
 * @param ip
 *   An IPv4 or a global IPv6 address in text.
 * @return
 *   0, -EINVAL (no such address), -EBUSY (an engine is open), -ENODEV.
 */
int rte_pmd_verbena_ip_set(uint16_t port_id, const char *ip);

/**
 * Opens the port's engine. While the port is stopped; it may be configured before or after.
 *
 * @param ops
 *   What the engine calls, under the baton; NULL: nothing.
 * @param ctx
 *   First argument of the ops.
 * @return
 *   0, -EADDRNOTAVAIL (the port has no IP address yet), -EBUSY (the port is started, or it is open
 *   already), -ENOMEM, -ENODEV.
 */
int rte_pmd_verbena_roce_open(uint16_t port_id, const struct vrb_engine_ops *ops, void *ctx);

/**
 * Destroys the engine with all its objects. While the port is stopped. Closing the port does it
 * too.
 * @return
 *   0, -EBUSY (the port is started), -ENODEV.
 */
int rte_pmd_verbena_roce_close(uint16_t port_id);

/**
 * The engine of the port. Made by this call, without ops, if none is open and the port is stopped
 * and has an IP address.
 * @return
 *   NULL: there is none, and none can be made now.
 */
struct vrb_engine *rte_pmd_verbena_engine(uint16_t port_id);

/** Takes the baton of the port's engine, waiting for it. Not recursive. */
void rte_pmd_verbena_lock(uint16_t port_id);
/** Gives it back, after sending what has become due. */
void rte_pmd_verbena_unlock(uint16_t port_id);

/** Work was posted to @p qp: it is sent now, or by whoever holds the baton. Without the baton. */
void rte_pmd_verbena_kick(uint16_t port_id, struct vrb_qp *qp);

/**
 * Runs the pollers and the engine once, as far as nobody else does. Frames that are not RoCE go to
 * their Rx queues. Any thread, without the baton.
 */
void rte_pmd_verbena_progress(uint16_t port_id);

/** Nanoseconds of the engine's clock, for the calls of vrb_roce.h that want the time. */
uint64_t rte_pmd_verbena_now(uint16_t port_id);

/**
 * The address table of the port.
 * @param index
 *   0: the IP address (IPv4-mapped, or IPv6), 1: the IPv6 link-local one.
 * @return
 *   0, -EINVAL (index), -EADDRNOTAVAIL (no address is set yet), -ENODEV.
 */
int rte_pmd_verbena_gid_get(uint16_t port_id, unsigned int index, union vrb_gid *gid);

/**
 * Finds the MAC address behind a GID: of this port itself, of a group, one set by
 * rte_pmd_verbena_neigh_set(), the kernel's neighbour if the lower port is a kernel interface, else
 * the one that belongs to the IP address. Without the baton; it may take a while.
 * @return
 *   0, -EINVAL (no address of a host or group), -ENETUNREACH, -ETIMEDOUT, -ENODEV.
 */
int rte_pmd_verbena_resolve(uint16_t port_id, const union vrb_gid *gid, uint8_t mac[6]);

/** Tells the MAC address of a neighbour. @return 0, -ENOSPC (too many), -ENODEV */
int rte_pmd_verbena_neigh_set(uint16_t port_id, const union vrb_gid *gid, const uint8_t mac[6]);

/* ---- Rx queues ---- */

/** Figures of an Rx queue. */
struct rte_pmd_verbena_rxq {
	uint32_t size; /**< frames that the completion ring holds */
	uint32_t count; /**< frames in it now */
	uint32_t high; /**< most frames that were in it since the last reset of statistics */
	uint32_t posted; /**< buffers posted to a queue that copies; 0 of others */
	uint32_t avail; /**< places for frames to come: free entries, or posted buffers if less */
	uint8_t avail_thresh; /**< watermark, percent of size; 0: none is armed */
	bool direct; /**< frames come straight from the lower port's queue */
	bool copies; /**< frames are copied into buffers that the queue keeps posted */
	bool shared; /**< it is a member of a shared queue: the figures are that queue's */
	uint16_t share_group, share_qid;
	uint16_t members; /**< of the shared queue */
	uint64_t packets, bytes; /**< frames given to the queue */
	uint64_t full; /**< frames dropped because the ring was full */
	uint64_t nombuf; /**< frames dropped because no buffer was posted */
	uint64_t refills, refilled; /**< bursts of buffers taken from the mempool, and their sum */
	uint64_t refill_fails; /**< times that the mempool had none */
	uint64_t thresh_events; /**< times that the watermark was crossed and told */
	uint64_t resizes;
};

/** @return 0, -EINVAL (no such queue, or not set up), -ENODEV */
int rte_pmd_verbena_rxq_get(uint16_t port_id, uint16_t queue_id, struct rte_pmd_verbena_rxq *rxq);

/**
 * Gives the completion ring of an Rx queue another size while pollers fill it and the program
 * empties it. Nothing is lost, duplicated or reordered. Of a shared queue it is the ring of all its
 * members. Stays until the queue is set up again.
 *
 * @param size
 *   Frames, 32 to 32768.
 * @return
 *   0, -EINVAL (size, or no such queue), -EBUSY (more frames wait in it than would fit: nothing is
 *   changed), -ENOTSUP (the queue is direct: it has no ring), -ENOMEM, -ENODEV.
 */
int rte_pmd_verbena_rxq_resize(uint16_t port_id, uint16_t queue_id, uint32_t size);

/* ---- pollers ---- */

/** Figures of a poller. */
struct rte_pmd_verbena_poller {
	uint32_t service_id; /**< its service, UINT32_MAX: none */
	bool by_service; /**< a service core runs it: rte_eth_rx_burst() does not */
	uint16_t num_queues; /**< queues of the lower port that it polls */
	uint64_t rounds; /**< times that it has run */
	uint64_t empty; /**< of these, without a frame */
	uint64_t packets; /**< frames received from the lower port */
	uint64_t roce; /**< of these, for the engine */
	uint64_t flow; /**< of these, taken by a flow rule */
	uint64_t busy; /**< times that a thread found it run by another */
};

/** @return how many pollers the port has; 0: its queues are direct. -ENODEV */
int rte_pmd_verbena_poller_count(uint16_t port_id);
/** @return 0, -EINVAL (no such poller), -ENODEV */
int rte_pmd_verbena_poller_get(
	uint16_t port_id, uint16_t poller, struct rte_pmd_verbena_poller *figures);

/** The id of the lower port. @return 0, -ENODEV (also: it was unplugged) */
int rte_pmd_verbena_lower(uint16_t port_id, uint16_t *lower_port_id);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif
