/* SPDX-License-Identifier: BSD-3-Clause */
/**
 * @file
 * net_shmlan: what a user of the port may rely on beyond ethdev.
 *
 * The port is a DPDK virtual device, `net_shmlan0,segment=NAME,...`; doc/guides/shmlan.rst lists
 * its arguments. It has one Rx and one Tx queue. rx_burst() and tx_burst() may be called by
 * different threads at a time, as ethdev allows, but each of them only by one, and neither while
 * the port is stopped.
 *
 * Sleeping until a frame comes:
 * @code
 *   fd = rte_eth_dev_rx_intr_ctl_q_get_fd(port, 0); // an eventfd
 *   rte_eth_dev_rx_intr_enable(port, 0);            // by the thread that receives
 *   poll(fd);                                       // returns at once if a frame is there
 *   rte_eth_dev_rx_intr_disable(port, 0);           // also empties the eventfd
 *   rte_eth_rx_burst(...);
 * @endcode
 * rx_intr_enable() looks at the rings after it has announced the sleep, and makes the eventfd
 * readable itself when something is there, so no check between it and poll() is needed;
 * rte_eth_rx_queue_count() is there for those who want one. The eventfd also becomes readable when
 * a member connects or disappears. A wake-up without a frame is possible.
 *
 * The MTU of the port is VRB_SHMLAN_MTU_DEFAULT after probing. rte_eth_dev_configure() sets it to
 * rxmode.mtu, and to 1500 when that is 0: whoever wants the default has to say so. Frames that are
 * longer are dropped by the receiver.
 */
#ifndef VRB_SHMLAN_H
#define VRB_SHMLAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** MTU of a port until it is configured. */
#define VRB_SHMLAN_MTU_DEFAULT 4352
#define VRB_SHMLAN_MTU_MIN 68
#define VRB_SHMLAN_MTU_MAX 9000

/** Members of a segment. */
#define VRB_SHMLAN_MEMBERS 1024

/** Multicast addresses of a port, see rte_eth_dev_set_mc_addr_list(). */
#define VRB_SHMLAN_MC_MAX 64

/** The first bytes of a received frame that always are in private memory, also with rx_zc=1. */
#define VRB_SHMLAN_HDR_COPY 128

/**
 * Name of the dynamic mbuf flag that travels with a frame: the sender left the frame's invariant
 * CRC out. The driver registers it when a port is probed; users look it up with
 * rte_mbuf_dynflag_lookup(). On Tx the flag is carried along, on Rx it is set in the first segment
 * when the sender had set it.
 */
#define VRB_SHMLAN_DYNFLAG_ICRC_OMITTED "verbena_icrc_omitted"

/**
 * Tells whether the last tx_burst() of the calling thread met a frame whose memory has gone away
 * (an external buffer that is no longer mapped).
 *
 * tx_burst() drops such a frame, counts it (xstat tx_drop_fault) and returns at once with it as the
 * last frame it took: after `n = rte_eth_tx_burst(port, 0, pkts, nb)`, a true result says that
 * `pkts[n - 1]` was that frame. The frames before it are sent; those after it were not looked at.
 */
bool vrb_shmlan_tx_fault(void);

/** A member of the segment. */
struct vrb_shmlan_peer {
	unsigned int slot; /* below VRB_SHMLAN_MEMBERS; no other living member has it */
	uint64_t inc; /* different for each member that ever used the slot */
	uint32_t pid; /* as the member sees it: in another PID namespace it is somebody else's */
	int board; /* descriptor that it has put up for the others, or -1 */
};

/**
 * Finds the member with an address, ourselves too. Thread-safe while the port is not closed.
 *
 * @return 0, -ENODEV (no port of net_shmlan), -ENOENT
 */
int vrb_shmlan_find(uint16_t port_id, const uint8_t mac[6], struct vrb_shmlan_peer *peer);

/**
 * Tells the others the number of a descriptor of ours, which they may open by way of /proc. It
 * stays the caller's, who takes it back with -1.
 *
 * @return 0, -ENODEV
 */
int vrb_shmlan_put_up(uint16_t port_id, int fd);

/** Makes and maps a zeroed file of @p len bytes in memory that keeps its size for ever. @return its
 * descriptor, or -errno */
int vrb_shmlan_memfd_make(const char *name, size_t len, void **map);

/** Maps such a file of another member. @return NULL if it is none, or not of @p len bytes */
void *vrb_shmlan_memfd_map(int fd, size_t len);

#endif
