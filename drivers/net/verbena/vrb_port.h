/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lower port of a NIC: found, owned, configured and started.
 */
#ifndef VRB_PORT_H
#define VRB_PORT_H

#include <net/if.h>

#include <rte_ethdev.h>

#include "vrb_nic.h"

/*
 * Packets to send, and frames to receive, that may be out at once; the pools are that large. Frames
 * leave tx_burst copied or go back soon, so this is room for the port's rings (512 descriptors) and
 * the mempool's cache beside them.
 */
#define VRB_PORT_TX_MBUFS 4095
#define VRB_PORT_RX_MBUFS 2047
#define VRB_PORT_MBUF_CACHE 256
#define VRB_PORT_DESC 512
/*
 * With rx_zc=1 net_shmlan puts the headers and small frames here; the rest of a frame stays where
 * it is.
 */
#define SHMLAN_ZC_ROOM 1024

#define VRB_PORT_BELLS 2
/*
 * For how long at most it is believed that a bell that does not ring means that no frame has come.
 */
#define VRB_BELL_TRUST_NS UINT64_C(100000000)

/** Where the addresses of the network come from. */
enum vrb_port_kind {
	VRB_PORT_SHMLAN, /* the MAC tells the IP address */
	VRB_PORT_KERNEL, /* a kernel interface: its addresses, the kernel's neighbours */
	VRB_PORT_OTHER, /* any other port: the address is given */
};

struct vrb_port {
	uint16_t id;
	enum vrb_port_kind kind;
	bool probed; /* by us, so removed by us */
	bool owned, started;
	bool rx_zc; /* payload of large frames stays where it was received */
	bool icrc; /* computed on sending */
	bool zero_copy; /* the program's memory is sent as it is */
	bool derived; /* our MAC is the one derived from our IP: so are those of our peers */
	bool intr_enable; /* Rx interrupts have to be enabled to be raised */
	int intr_fd; /* becomes readable when a frame arrives, or -1 */
	int bell[VRB_PORT_BELLS]; /* likewise, of a kernel interface whose driver has no interrupts:
				     all or none */
	unsigned int ifindex; /* of a kernel interface, or 0 */
	uint16_t mtu; /* bytes of an IP packet */
	uint64_t icrc_omitted; /* mbuf flag, or 0 */
	uint64_t owner;
	struct rte_mempool *tx_pool, *rx_pool;
	uint8_t mac[6];
	union vrb_gid gid[VRB_GIDS];
	char name[RTE_ETH_NAME_MAX_LEN];
	char driver[32];
};

/** The process ends: takes the port off the network. Frees nothing that is the NIC's. */
void vrb_port_leave(struct vrb_port *p);

/** Finds or probes the port, takes ownership, finds out the addresses, makes the pools. Not started
 * yet. */
int vrb_port_open(struct vrb_port *p, const struct vrb_nic_conf *conf, char *why, size_t why_len);
int vrb_port_start(struct vrb_port *p, char *why, size_t why_len);
/** Also of a port that is open in part only. */
void vrb_port_close(struct vrb_port *p);
/** Makes the bells ring for the next frame. */
void vrb_port_bell_empty(const struct vrb_port *p);
bool vrb_port_link_up(const struct vrb_port *p, uint32_t *speed_mbps);

#endif
