/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC as the layers above see it: a lower Ethernet port, an engine, and the poller that runs
 * the one on the other.
 *
 * A poller is run by whoever holds its baton. The program's own threads take it in passing
 * (vrb_nic_kick() after posting, vrb_nic_progress() when a CQ is empty), the background thread has
 * it when nobody else does anything, and sleeps when there is nothing to do.
 */
#ifndef VRB_NIC_H
#define VRB_NIC_H

#include "vrb_roce.h"

struct vrb_nic;

enum vrb_icrc_mode {
	VRB_ICRC_AUTO, /* left out where frames carry a flag that says so (net_shmlan), else
			  computed */
	VRB_ICRC_ON,
	VRB_ICRC_OFF,
};

struct vrb_nic_conf {
	const char *port; /* devargs of the lower port; NULL: "net_shmlan0" */
	const char *segment; /* net_shmlan: name of the segment; NULL: "default" */
	const char *ip; /* IPv4 or IPv6 address in text; NULL: automatic */
	enum vrb_icrc_mode icrc;
	enum vrb_direct_mode direct;
	const char
		*eal_args; /* more arguments for rte_eal_init(), separated by blanks; NULL: none */
	int eal_log; /* descriptor that DPDK's log goes to, 0: none */
	const struct vrb_engine_ops *ops;
	void *ctx;
};

struct vrb_nic_info {
	uint8_t mac[6];
	union vrb_gid gid[VRB_GIDS];
	uint16_t port_mtu; /* bytes of an IP packet */
	uint32_t max_mtu; /* largest path MTU */
	bool link_up;
	bool icrc; /* computed on sending */
	bool direct; /* there is a direct path to peers of the same user */
	const char *port_name; /* ethdev name of the lower port */
	const char *driver; /* its driver */
	uint32_t speed_mbps; /* 0: unknown */
};

/**
 * Starts EAL if need be (in a thread of its own, so that the caller's affinity and signal handlers
 * stay as they are), probes and takes ownership of the lower port, makes the engine and starts the
 * background thread.
 *
 * @param why on failure: one sentence with what failed and what to do, without newline
 * @return 0, or -errno: -EADDRINUSE (address taken on the segment), -EINVAL (a setting), -EACCES,
 * -ENODEV ...
 */
int vrb_nic_open(const struct vrb_nic_conf *conf, struct vrb_nic **nic, char *why, size_t why_len);

/**
 * The process ends: what is due is sent, and the port leaves the network, so that the peers know.
 * Unlike vrb_nic_close() it may be called while other threads use the NIC, also by a signal
 * handler's exit(3): what cannot be had within a short while is left to the kernel. Afterwards all
 * calls do nothing, and nothing is freed.
 */
void vrb_nic_leave(struct vrb_nic *nic);

/** Stops the thread, frees the engine with all its objects, closes the port. */
void vrb_nic_close(struct vrb_nic *nic);

/**
 * In a child after fork(2): the NIC of the parent is not ours to run. Everything that touches it
 * becomes a no-op, without freeing or sending anything. Called by the atfork handler that
 * vrb_nic_open() installs.
 */
bool vrb_nic_forked(const struct vrb_nic *nic);

struct vrb_engine *vrb_nic_engine(struct vrb_nic *nic);
void vrb_nic_query(struct vrb_nic *nic, struct vrb_nic_info *info);

/** Takes the baton, waiting for it; the poller steps back for those who wait. Not recursive. */
void vrb_nic_lock(struct vrb_nic *nic);
/**
 * Before @p qp is destroyed or leaves the connection: what it owes its peer is sent, if the port
 * takes it within some milliseconds. With the baton.
 */
void vrb_nic_settle(struct vrb_nic *nic, struct vrb_qp *qp);

/** Gives it back, after running what others rang for meanwhile. */
void vrb_nic_unlock(struct vrb_nic *nic);

/** Work was posted to @p qp: run it now if the baton is free, else leave a doorbell for its holder.
 * Any thread, without the baton. */
void vrb_nic_kick(struct vrb_nic *nic, struct vrb_qp *qp);

/** A CQ was found empty: one round of the poller, if the baton is free. Any thread, without the
 * baton. */
void vrb_nic_progress(struct vrb_nic *nic);

/**
 * What the lower port receives besides frames to its own address: frames to any address, and to any
 * group. Under the baton.
 * @return 0, or -errno: the port cannot
 */
int vrb_nic_filter(struct vrb_nic *nic, bool promiscuous, bool allmulticast);

/** Nanoseconds of the engine's clock (CLOCK_MONOTONIC by way of the TSC). */
uint64_t vrb_nic_now(const struct vrb_nic *nic);

/**
 * Finds the MAC address behind a GID. @return 0, -EINVAL (not an address of this network's kind),
 * -ETIMEDOUT, -ENETUNREACH
 */
int vrb_nic_resolve(struct vrb_nic *nic, const union vrb_gid *dgid, uint8_t mac[6]);

#endif
