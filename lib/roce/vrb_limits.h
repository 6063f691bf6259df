/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every limit of the device, in one place: what is reported is what is enforced, and the
 * documentation's table is made from this file. A limit is a plain number so that a script can read
 * it.
 */
#ifndef VRB_LIMITS_H
#define VRB_LIMITS_H

#define VRB_MAX_QP 16384 /* queue pairs; a power of two (the QPN's low bits index a table) */
#define VRB_MAX_QP_WR 16384 /* work requests of a send or receive queue */
#define VRB_MAX_SGE 32 /* scatter-gather elements of a work request */
#define VRB_MAX_INLINE 1024 /* bytes of inline data */
#define VRB_MAX_CQ 65536 /* completion queues */
#define VRB_MAX_CQE 4194303 /* entries of a completion queue */
#define VRB_MAX_CQ_COUNT 65535 /* completions of an event, with CQ moderation */
#define VRB_MAX_CQ_PERIOD 4095 /* microseconds that CQ moderation holds an event back */
#define VRB_MAX_SRQ 16384 /* shared receive queues */
#define VRB_MAX_SRQ_WR 65536 /* work requests of a shared receive queue */
#define VRB_MAX_SRQ_SGE 32 /* scatter-gather elements of a shared receive queue's work request */
#define VRB_MAX_MR 1048576 /* memory regions and windows together; a power of two */
#define VRB_MAX_PD 65536 /* protection domains */
#define VRB_MAX_MSG 0x80000000u /* bytes of a message: 2^31 (IBTA 9.7.2) */
#define VRB_MAX_MR_SIZE (1ull << 47) /* bytes of a memory region: what a process can map */
#define VRB_MAX_DM_SIZE 1048576 /* bytes of device memory */
#define VRB_MAX_DM_LOG_ALIGN 20 /* log2 of the alignment of device memory */
#define VRB_DM_LOG_ALIGN 6 /* at least; a cache line */
#define VRB_DM_WORD 4 /* bytes: copies to and from device memory are of words */
#define VRB_MAX_RD_ATOM \
	128 /* READs and atomics in flight, either direction, for each queue pair \
	     */
#define VRB_MAX_AH 65536 /* address handles */
#define VRB_MAX_MCAST_GRP 1024 /* multicast groups */
#define VRB_MAX_MCAST_QP_ATTACH 1024 /* queue pairs attached to one of them */
#define VRB_MAX_WQ 65536 /* work queues */
#define VRB_MAX_WQ_WR 16384 /* work requests of a work queue */
#define VRB_MAX_IND_TBL 16384 /* receive indirection tables */
#define VRB_MAX_IND_TBL_SIZE 4096 /* entries of one; a power of two */
#define VRB_MAX_FLOW 1048576 /* flow rules */
#define VRB_PKEY 0xffff /* the one partition key, at index 0 */
#define VRB_PKEYS 1
#define VRB_GIDS 2 /* GID 0: IPv4-mapped, GID 1: IPv6 link-local */

/* Inside the engine. */
#define VRB_MCAST_QPN 0xffffff /* destination of every multicast (IBTA 9.8.3.1) */
#define VRB_WINDOW 256 /* packets of a requester that may be unacknowledged */
#define VRB_WINDOW_MIN 8 /* the same after a timeout: the peer may be slow */
#define VRB_ACK_EVERY \
	32 /* packets of a requester after which it asks for an acknowledgement at the latest */
#define VRB_READ_CHUNK 128 /* packets of a READ that are requested at once */
#define VRB_QP_BURST 16 /* packets that a queue pair may send before it is the next one's turn */
#define VRB_HELD 128 /* raw frames that found no receive and are held */
#define VRB_HOLD_NS \
	50000000 /* how long they are, ns: a program that lacks a processor comes back in that \
		    time */
#define VRB_HOLD_LOOK_NS 50000 /* how often is looked for receives, ns */
#define VRB_TX_COPY \
	512 /* payload up to which it is copied behind the headers instead of being chained */
#define VRB_DIRECT_CALL 1048576 /* bytes that are moved directly in one call of the engine */
#define VRB_DIRECT_LARGE 16384 /* messages from here on are faster moved than sent in packets */
#define VRB_DIRECT_WAIT \
	65536 /* and from here on even when what was sent before has to be answered first */
#define VRB_QPN_FIRST \
	0x11 /* 0 and 1 are the special queue pairs; the kernel's rxe starts here as well */

#endif
