/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine and a port that only count (see nic_fake.h).
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/eventfd.h>

#include <rte_ethdev.h>

#include "nic_fake.h"

struct fake fake;

/* ---- what DPDK would define ---- */

RTE_DEFINE_PER_LCORE(unsigned int, _lcore_id);
struct rte_eth_fp_ops rte_eth_fp_ops[RTE_MAX_ETHPORTS];

/* Nobody installs callbacks on the fake port. */
uint16_t
rte_eth_call_rx_callbacks(
	uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, uint16_t max, void *arg)
{
	abort();
}

uint16_t
rte_eth_call_tx_callbacks(
	uint16_t port, uint16_t queue, struct rte_mbuf **pkts, uint16_t n, void *arg)
{
	abort();
}

/* A frame is an mbuf that is never looked into but for its tag. */
static struct rte_mbuf frames[1024];
static void *queues[1];

static uint16_t
port_rx(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	uint32_t have = atomic_load(&fake.arrived);
	uint16_t k = have < n ? have : n;

	for (uint16_t i = 0; i < k; i++)
		pkts[i] = &frames[i];
	atomic_fetch_sub(&fake.arrived, k);
	return k;
}

static uint16_t
port_tx(void *queue, struct rte_mbuf **pkts, uint16_t n)
{
	uint32_t room = atomic_load(&fake.room);
	uint16_t k = room < n ? room : n;

	for (uint16_t i = 0; i < k; i++) {
		/* In the order in which the engine made them, none left out. */
		if (pkts[i]->hash.rss != fake.last_tag + 1)
			abort();
		fake.last_tag = pkts[i]->hash.rss;
	}
	atomic_fetch_sub(&fake.room, k);
	atomic_fetch_add(&fake.sent, k);
	return k;
}

void
rte_pktmbuf_free_bulk(struct rte_mbuf **pkts, unsigned int n)
{
}

int
rte_eth_dev_rx_intr_enable(uint16_t port, uint16_t queue)
{
	atomic_store(&fake.armed, true);
	return 0;
}

/* The fake port is no kernel interface. */
void
vrb_port_bell_empty(const struct vrb_port *p)
{
	abort();
}

int
rte_eth_dev_rx_intr_disable(uint16_t port, uint16_t queue)
{
	atomic_store(&fake.armed, false);
	return 0;
}

/* ---- the engine ---- */

static void
enter(void)
{
	if (fake.inside++ != 0)
		abort();
}

static void
leave(void)
{
	fake.inside--;
}

void
vrb_engine_ring(struct vrb_qp *qp)
{
	atomic_store(&fake.doorbell, true);
}

bool
vrb_qp_owes(const struct vrb_qp *qp)
{
	return false;
}

bool
vrb_engine_doorbell(const struct vrb_engine *e)
{
	return atomic_load(&fake.doorbell);
}

void
vrb_engine_schedule(struct vrb_qp *qp)
{
	enter();
	atomic_store(&fake.doorbell, true);
	leave();
}

unsigned int
vrb_engine_rx(struct vrb_engine *e, struct rte_mbuf **pkts, unsigned int n, uint64_t now)
{
	enter();
	atomic_fetch_add(&fake.received, n);
	atomic_fetch_add(&fake.replies, n + atomic_exchange(&fake.looped, 0));
	if (n > 0)
		atomic_store(&fake.last_received, now);
	leave();
	return 0;
}

bool
vrb_engine_holds(const struct vrb_engine *e)
{
	(void)e;
	return false;
}

bool
vrb_engine_looped(const struct vrb_engine *e)
{
	return atomic_load(&fake.looped) > 0;
}

unsigned int
vrb_engine_tx(struct vrb_engine *e, struct rte_mbuf **pkts, unsigned int n, uint64_t now)
{
	unsigned int made = 0;

	enter();
	if (atomic_exchange(&fake.doorbell, false)) {
		atomic_store(&fake.executed, atomic_load(&fake.posted));
		atomic_fetch_add(&fake.looped, atomic_load(&fake.to_ourselves));
	}
	if (atomic_load(&fake.deadline) <= now) {
		atomic_store(&fake.deadline, UINT64_MAX);
		atomic_store(&fake.last_timeout, now);
		atomic_fetch_add(&fake.timeouts, 1);
	}
	while (made < n && atomic_load(&fake.replies) > 0) {
		uint32_t tag = ++fake.next_tag;

		pkts[made] = &frames[tag % RTE_DIM(frames)];
		pkts[made++]->hash.rss = tag;
		atomic_fetch_sub(&fake.replies, 1);
	}
	leave();
	return made;
}

uint64_t
vrb_engine_deadline(struct vrb_engine *e)
{
	uint64_t deadline;

	enter();
	deadline = atomic_load(&fake.replies) + atomic_load(&fake.looped) > 0
			   ? 0
			   : atomic_load(&fake.deadline);
	leave();
	return deadline;
}

/* ---- the test's side ---- */

void
fake_start(bool thread)
{
	struct vrb_nic *nic = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*nic));

	memset(&fake, 0, sizeof(fake));
	memset(nic, 0, sizeof(*nic));
	atomic_store(&fake.room, UINT32_MAX / 2);
	atomic_store(&fake.deadline, UINT64_MAX);
	fake.intr_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	fake.nic = nic;
	rte_eth_fp_ops[0].rx_pkt_burst = port_rx;
	rte_eth_fp_ops[0].tx_pkt_burst = port_tx;
	rte_eth_fp_ops[0].rxq.data = rte_eth_fp_ops[0].txq.data = queues;
	rte_eth_fp_ops[0].rxq.clbk = rte_eth_fp_ops[0].txq.clbk = queues;
	nic->engine = (struct vrb_engine *)&fake;
	nic->port.intr_fd = fake.intr_fd;
	nic->port.intr_enable = true;
	nic->port.bell[0] = nic->port.bell[1] = -1;
	nic->bell = nic->epfd = -1;
	vrb_clock_begin(&nic->clock);
	vrb_clock_end(&nic->clock);
	if (thread && vrb_background_start(nic) < 0)
		abort();
}

void
fake_stop(void)
{
	vrb_background_stop(fake.nic);
	close(fake.intr_fd);
	free(fake.nic);
	fake.nic = NULL;
}

/* A NIC without a direct path. */
void
vrb_direct_path_show(struct vrb_direct_path *path)
{
	abort();
}

void
vrb_direct_path_hide(struct vrb_direct_path *path)
{
	abort();
}

void
fake_arrive(void)
{
	static const uint64_t one = 1;

	atomic_fetch_add(&fake.arrived, 1);
	/* As net_shmlan: the frame is there before the sleeper is looked for. */
	if (atomic_exchange(&fake.armed, false) && write(fake.intr_fd, &one, sizeof(one)) < 0)
		abort();
}

void
fake_post(void)
{
	atomic_fetch_add(&fake.posted, 1);
	vrb_nic_kick(fake.nic, NULL);
}

bool
fake_wait(_Atomic uint32_t *what, uint32_t n, unsigned int ms)
{
	for (unsigned int i = 0; i < ms * 20 && atomic_load(what) < n; i++)
		usleep(50);
	return atomic_load(what) >= n;
}

uint64_t
fake_thread_cpu(void)
{
	struct timespec ts;
	clockid_t clock;

	if (pthread_getcpuclockid(fake.nic->thread, &clock) != 0 || clock_gettime(clock, &ts) < 0)
		abort();
	return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}
