/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine and a port that only count, for tests of the poller: who runs them and when, not what
 * they do. Both are reached by the symbols that the poller calls, so neither DPDK nor lib/roce is
 * linked, and the sanitizers see all of it.
 */
#ifndef NIC_FAKE_H
#define NIC_FAKE_H

#include "vrb_nic_private.h"

struct fake {
	struct vrb_nic *nic;
	int intr_fd;
	/* The wire's side: any thread. */
	_Atomic uint32_t arrived; /* frames that wait in the port */
	_Atomic bool armed; /* Rx interrupt enabled */
	_Atomic uint32_t room; /* frames that the port takes */
	/* The engine, as doorbells see it: any thread. */
	_Atomic uint32_t posted;
	_Atomic bool doorbell;
	/* Under the baton, and atomic because tests look on. */
	_Atomic uint32_t executed; /* of those posted */
	_Atomic uint32_t received, sent;
	_Atomic uint32_t replies; /* packets to be sent that received ones gave rise to */
	_Atomic bool to_ourselves; /* what is posted gives rise to a packet to ourselves */
	_Atomic uint32_t looped; /* such packets that were not received */
	_Atomic uint64_t deadline; /* what the engine waits for, UINT64_MAX: nothing */
	_Atomic uint32_t timeouts; /* deadlines that were kept */
	_Atomic uint64_t last_timeout; /* when, by the NIC's clock */
	_Atomic uint64_t last_received;
	uint32_t inside; /* not atomic: two holders at once are a data race */
	uint32_t next_tag, last_tag; /* order of the frames sent */
};

extern struct fake fake;

/** A NIC over the fakes; @p thread: with its background thread. */
void fake_start(bool thread);
void fake_stop(void);
/** A frame arrives. */
void fake_arrive(void);
/** Posts one piece of work and kicks, as a program does. */
void fake_post(void);
/** Waits until @p *what is at least @p n. @return whether that was so in time */
bool fake_wait(_Atomic uint32_t *what, uint32_t n, unsigned int ms);
/** CPU time of the background thread in nanoseconds. */
uint64_t fake_thread_cpu(void);

#endif
