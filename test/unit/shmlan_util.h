/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Helpers of the net_shmlan tests: an EAL without huge pages, ports on a segment of the test's own,
 * frames with a sequence number and a checksum.
 */
#ifndef SHMLAN_UTIL_H
#define SHMLAN_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#define SU_POOL_SIZE 8191
#define SU_HDR 14

/** Microseconds until what has to happen has not happened: long, as machines may be busy. */
#define SU_PATIENCE 20000000

/** Starts the EAL; the arguments of the program are not used. Ends the process when that fails. */
void su_eal_init(void);

/** Makes the directory that the tests' segments live in; it is removed at exit of the process that
 * made it. */
const char *su_dir(void);

/** Uses a directory that another process has made with su_dir(). */
void su_use_dir(const char *path);

/** Number of entries in the directory of the segment; 0 when it does not exist. */
unsigned int su_dir_entries(const char *segment);

/** The mempool of all ports, 2 KiB of data a mbuf. */
struct rte_mempool *su_pool(void);

/** Probes net_shmlan<n> with "segment=<segment>,dir=<su_dir>" and @p more. Returns the port id or
 * -errno. */
int su_probe(unsigned int n, const char *segment, const char *more);

/** Configures and starts a probed port, with the largest MTU. */
void su_start(uint16_t port);

/** su_probe() and su_start(); must succeed. */
uint16_t su_port(unsigned int n, const char *segment, const char *more);

/** Stops (if started), closes and removes the port. */
void su_close(uint16_t port);

/** Closes all ports. */
void su_close_all(void);

/** The port's address. */
struct rte_ether_addr su_mac(uint16_t port);

/** Waits until the link of a port is @p up, up to SU_PATIENCE. */
void su_wait_link(uint16_t port, bool up);

/**
 * A frame of @p len bytes (from SU_HDR on) for @p dst, whose payload is a function of @p seq: the
 * sequence number, then bytes that follow from it, as far as they fit. @p segs: in how many
 * segments.
 */
struct rte_mbuf *su_frame(const struct rte_ether_addr *dst, uint16_t from, uint32_t len,
	uint32_t seq, unsigned int segs);

/** True if the frame is the one that su_frame() made with this @p len and @p seq. */
bool su_frame_is(const struct rte_mbuf *m, uint32_t len, uint32_t seq);

/** The sequence number of a frame of at least SU_HDR + 4 bytes, after its whole content was
 * checked. */
uint32_t su_frame_seq(const struct rte_mbuf *m);

/** Receives exactly @p n frames, waiting up to SU_PATIENCE; returns how many came. */
unsigned int su_rx(uint16_t port, struct rte_mbuf **pkts, unsigned int n);

/** Sends one frame; must be taken. */
void su_tx(uint16_t port, struct rte_mbuf *m);

/** Nothing comes within some milliseconds. */
void su_expect_nothing(uint16_t port);

/** Value of a named extended statistic. */
uint64_t su_xstat(uint16_t port, const char *name);

/** Microseconds since some time. */
uint64_t su_now(void);

#endif
