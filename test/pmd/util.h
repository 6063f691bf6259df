/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A port of net_verbena whose wire is in the test's hands: its lower port is a net_ring of rings
 * that the test fills and empties.
 */
#ifndef PMD_UTIL_H
#define PMD_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <rte_ethdev.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "rte_pmd_verbena.h"

#define WIRE_QUEUES 4
#define WIRE_SIZE 4096

struct rig {
	uint16_t port, lower;
	unsigned int num_queues; /* of the lower port */
	struct rte_ring *to_port[WIRE_QUEUES], *from_port[WIRE_QUEUES];
	char name[32];
};

/** How a port is configured. */
struct setup {
	uint16_t rxq, txq, desc; /* 0: 1, 1, 1024 */
	uint64_t rss; /* types, 0: none */
	uint64_t rx_offloads, tx_offloads;
	const uint8_t *key;
	uint8_t key_len;
	struct rte_mempool *mp[8]; /* of each queue; NULL: the common one */
	uint16_t share_group; /* 0: none; queue i has share_qid i */
	uint16_t mtu;
	bool intr; /* Rx interrupts */
};

/** A frame to be made. Addresses and ports in the host's order. */
struct frame {
	bool v6, tcp, sctp, fragment, other;
	uint16_t vlan; /* 0: no tag */
	uint32_t src, dst;
	uint16_t sport, dport;
	uint32_t payload; /* bytes */
	uint32_t seq; /* in the first 4 bytes of the payload */
	bool sums; /* right checksums */
};

extern struct rte_mempool *pmd_pool;

/** Starts EAL once. For main(). */
void pmd_eal(int argc, char **argv);

/** Makes a wire and a port over it. @param args more devargs, with a comma in front, or "" */
void rig_make(struct rig *r, unsigned int queues, const char *args);
/** Configures, sets up and starts. @return 0 or -errno of the first call that failed */
int rig_start(const struct rig *r, const struct setup *s);
/** Stops and closes it, and fails if mbufs of the common pool are missing. */
void rig_close(struct rig *r);

struct rte_mbuf *frame_make(struct rte_mempool *mp, const struct frame *f);
/** The number in the payload. */
uint32_t frame_seq(const struct rte_mbuf *m);
/** What is hashed of it with addresses and ports, for rte_softrss(). @return words */
uint32_t frame_tuple(const struct frame *f, bool ports, uint32_t tuple[9]);
/** Puts a frame on the wire of a lower queue. */
void wire_put(const struct rig *r, unsigned int queue, const struct frame *f);
/** Receives until nothing comes any more from any queue, and frees. @param got for each queue */
unsigned int receive_all(const struct rig *r, uint16_t queues, unsigned int *got);
uint64_t xstat(uint16_t port, const char *name);
struct rte_eth_stats stats_of(uint16_t port);

#endif
