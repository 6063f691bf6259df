/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device that the commands work on: the RoCE engine of a port of net_verbena, its lock, and
 * whoever runs it. The commands know nothing else of where it comes from.
 */
#ifndef TESTPMD_BACKEND_H
#define TESTPMD_BACKEND_H

#include "vrb_roce.h"

struct tp_device {
	uint16_t port_id;
	char port[64]; /* ethdev name of the port */
	char driver[32]; /* of the port below it */
	uint8_t mac[6];
	union vrb_gid gid[VRB_GIDS];
	uint16_t port_mtu; /* bytes of an IP packet */
	uint32_t max_mtu; /* largest path MTU */
	bool link_up;
};

/**
 * Finds the first port of net_verbena, gives it an address if it has none and its network tells
 * one, configures it, and opens its engine. The port is not started.
 *
 * @return 0, or -errno after tp_refuse()
 */
int tp_backend_open(uint16_t rx_queues, uint16_t tx_queues);
/** Destroys the engine's objects that are not the prompt's. The port is stopped. */
void tp_backend_close(void);

uint16_t tp_device_port(void);
struct vrb_engine *tp_engine(void);
/** The one protection domain of all objects. */
struct vrb_pd *tp_pd(void);
void tp_device(struct tp_device *dev);

/** The baton. Not recursive. */
void tp_lock(void);
void tp_unlock(void);
void tp_kick(struct vrb_qp *qp);
void tp_progress(void);
uint64_t tp_now(void);
/** @return 0 or -errno: nobody is there */
int tp_resolve(const union vrb_gid *gid, uint8_t mac[6]);
/** What the queue pair owes its peer is sent before it goes. Without the baton. */
void tp_settle(struct vrb_qp *qp);
/** Lets the port receive what the flow rules of queue pairs want. @return 0 or -errno: it cannot */
int tp_filter(void);
/**
 * Frames that were received from the device's port, for its queue pairs of raw frames. @return how
 * many are left, at the front of @p pkts
 */
uint16_t tp_take_frames(struct rte_mbuf **pkts, uint16_t n);

#endif
