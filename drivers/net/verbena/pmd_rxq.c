/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rx queues: set up and released, started and stopped, watermarks, sizes; and the functions that
 * the program receives with.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_power_intrinsics.h>

#include "pmd_private.h"
#include "pmd_trace.h"

/* ---- receiving ---- */

/* All that is done to a frame on the direct way. Bytes are the lower port's to count: each line of
 * an mbuf that is looked at costs more than the rest of this layer. */
static inline void
stamp(struct pmd_rxq *q, struct rte_mbuf **pkts, uint16_t n)
{
	const uint16_t port_id = q->port_id;

	for (uint16_t i = 0; i < n; i++)
		pkts[i]->port = port_id;
	atomic_store_explicit(&q->packets,
		atomic_load_explicit(&q->packets, memory_order_relaxed) + n, memory_order_relaxed);
}

/* The pollers of the port, its own first, until one has had frames. */
static void
run_port(struct pmd_port *port, uint16_t own, uint16_t *turn)
{
	uint16_t n = port->num_pollers;

	if (pmd_poller_try(&port->pollers[own % n]) > 0 || n == 1)
		return;
	/* The lower port may have frames for this queue in any of its queues. */
	if (++*turn >= n)
		*turn = 0;
	if (*turn != own % n)
		pmd_poller_try(&port->pollers[*turn]);
}

static inline void
run_member(struct pmd_rxq *q, struct pmd_rxq *member)
{
	if (member->port->started && (!member->by_service || q->helps))
		run_port(member->port, member->queue, &q->next_poller);
}

/* No service does it for us. */
static void
run_pollers(struct pmd_rxq *q)
{
	struct pmd_rxq *member;
	unsigned int i = 0, first;

	if (q->share == NULL) {
		run_port(q->port, q->queue, &q->next_poller);
		return;
	}
	/* Each is the first one in turn: who comes last finds the fewest buffers. */
	first = atomic_fetch_add_explicit(&q->share->turn, 1, memory_order_relaxed) %
		q->share->num_members;
	LIST_FOREACH (member, &q->share->members, link) {
		if (i++ >= first)
			run_member(q, member);
	}
	i = 0;
	LIST_FOREACH (member, &q->share->members, link) {
		if (i++ < first)
			run_member(q, member);
	}
}

/*
 * A core that is set to run a service need not do it: it may not have been started, or be stuck in
 * another service. After a while without a round nobody relies on it any more.
 */
#define LOOK_AFTER 1024 /* empty bursts; a power of two */
#define PATIENCE_MS 100

static void __rte_noinline
look_at_service(struct pmd_rxq *q)
{
	uint64_t rounds = 0, now = rte_rdtsc();

	for (uint16_t i = 0; i < q->port->num_pollers; i++)
		rounds += atomic_load_explicit(&q->port->pollers[i].rounds, memory_order_relaxed);
	if (rounds != q->seen_rounds) {
		q->seen_rounds = rounds;
		q->seen_at = now;
	} else if (now - q->seen_at > rte_get_tsc_hz() / 1000 * PATIENCE_MS) {
		q->helps = true;
	}
}

static inline bool
is_served(struct pmd_rxq *q, uint16_t got)
{
	if (!q->by_service || q->helps)
		return false;
	if (got == 0 && (++q->empty & (LOOK_AFTER - 1)) == 0)
		look_at_service(q);
	return true;
}

static uint16_t
rx_polled(struct pmd_rxq *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t got = rte_ring_sc_dequeue_burst(q->cring->ring, (void **)pkts, n, NULL);

	if (got == n || is_served(q, got))
		return got;
	run_pollers(q);
	return got + rte_ring_sc_dequeue_burst(q->cring->ring, (void **)&pkts[got], n - got, NULL);
}

uint16_t
pmd_rx_burst(void *rxq, struct rte_mbuf **pkts, uint16_t n)
{
	struct pmd_rxq *q = rxq;
	uint16_t got;

	if (unlikely(!pmd_gate_enter(&q->gate)))
		return 0;
	if (q->direct) {
		got = rte_eth_rx_burst(q->lower_id, q->queue, pkts, n);
		stamp(q, pkts, got);
	} else {
		got = rx_polled(q, pkts, n);
	}
	pmd_gate_leave(&q->gate);
	return got;
}

/* The same for a port that is direct now: it may be so no more when this has been called. */
uint16_t
pmd_rx_direct(void *rxq, struct rte_mbuf **pkts, uint16_t n)
{
	struct pmd_rxq *q = rxq;
	uint16_t got;

	if (unlikely(!pmd_gate_enter(&q->gate)))
		return 0;
	if (unlikely(!q->direct)) {
		got = rx_polled(q, pkts, n);
	} else {
		got = rte_eth_rx_burst(q->lower_id, q->queue, pkts, n);
		stamp(q, pkts, got);
	}
	pmd_gate_leave(&q->gate);
	return got;
}

/* Each can do what the other one does. */
void
pmd_rx_choose(struct pmd_port *port)
{
	port->dev->rx_pkt_burst = port->polled ? pmd_rx_burst : pmd_rx_direct;
}

/* ---- what stands in it ---- */

uint32_t
pmd_rx_count(void *rxq)
{
	struct pmd_rxq *q = rxq;
	int n;

	if (!q->direct)
		return rte_ring_count(q->cring->ring);
	n = rte_eth_rx_queue_count(q->lower_id, q->queue);
	return n < 0 ? 0 : (uint32_t)n;
}

int
pmd_rx_desc_status(void *rxq, uint16_t offset)
{
	struct pmd_rxq *q = rxq;

	if (q->direct)
		return rte_eth_rx_descriptor_status(q->lower_id, q->queue, offset);
	if (offset >= q->cring->size)
		return -EINVAL;
	return offset < rte_ring_count(q->cring->ring) ? RTE_ETH_RX_DESC_DONE
						       : RTE_ETH_RX_DESC_AVAIL;
}

static int
has_moved(const uint64_t value, const uint64_t opaque[RTE_POWER_MONITOR_OPAQUE_SZ])
{
	/* -1: do not sleep. */
	return value != opaque[0] ? -1 : 0;
}

/* Without a service it is the program itself that puts frames there. */
int
pmd_rx_monitor(void *rxq, struct rte_power_monitor_cond *cond)
{
	struct pmd_rxq *q = rxq;
	struct rte_ring *ring = q->cring->ring;

	if (q->direct)
		return rte_eth_get_monitor_addr(q->lower_id, q->queue, cond);
	if (!q->by_service)
		return -ENOTSUP;
	cond->addr = &ring->prod.tail;
	cond->opaque[0] = ring->cons.head;
	cond->fn = has_moved;
	cond->size = sizeof(ring->prod.tail);
	return 0;
}

void
pmd_rxq_info(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_rxq_info *info)
{
	const struct pmd_rxq *q = dev->data->rx_queues[queue];

	info->mp = q->mp;
	info->conf = q->conf;
	info->scattered_rx = dev->data->scattered_rx;
	info->nb_desc = q->nb_desc;
	info->rx_buf_size = (uint16_t)(rte_pktmbuf_data_room_size(q->mp) - RTE_PKTMBUF_HEADROOM);
	info->avail_thresh = atomic_load(&q->cring->thresh);
}

int
pmd_rx_burst_mode(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_burst_mode *mode)
{
	const struct pmd_rxq *q = dev->data->rx_queues[queue];

	snprintf(mode->info, sizeof(mode->info), "%s%s%s",
		q->direct	? "Direct"
		: q->by_service ? "Pollers on service cores"
				: "Pollers",
		q->cring->stock != NULL ? ", copied" : "", q->share != NULL ? ", shared" : "");
	return 0;
}

/* ---- set up ---- */

/* Frame without CRC. */
static uint32_t
longest(const struct pmd_port *port)
{
	return (uint32_t)port->dev->data->mtu + RTE_ETHER_HDR_LEN;
}

static uint32_t
room_of(const struct rte_mempool *mp)
{
	return rte_pktmbuf_data_room_size((struct rte_mempool *)(uintptr_t)mp) -
	       RTE_PKTMBUF_HEADROOM;
}

static bool
scatters(const struct pmd_port *port, uint64_t offloads)
{
	offloads |= port->dev->data->dev_conf.rxmode.offloads;
	return (offloads & RTE_ETH_RX_OFFLOAD_SCATTER) != 0;
}

static int
check_setup(const struct pmd_port *port, uint16_t queue, uint16_t ndesc,
	const struct rte_eth_rxconf *conf, const struct rte_mempool *mp)
{
	if (mp == NULL) {
		PMD_LOG(ERR, "port %u: Rx queue %u has no mempool; buffers cannot be split",
			port->port_id, queue);
		return -EINVAL;
	}
	if (ndesc < PMD_RING_MIN) {
		PMD_LOG(ERR, "port %u: Rx queue %u has %u descriptors, less than %u", port->port_id,
			queue, ndesc, PMD_RING_MIN);
		return -EINVAL;
	}
	if (port->started && port->dev->data->dev_conf.intr_conf.rxq != 0) {
		PMD_LOG(ERR,
			"port %u: Rx queue %u cannot be set up while the port runs with Rx "
			"interrupts",
			port->port_id, queue);
		return -ENOTSUP;
	}
	/* The lower port goes on filling them. */
	if (port->started && port->lower_mp != NULL && port->lower_mp != mp) {
		PMD_LOG(ERR,
			"port %u: Rx queue %u cannot change its mempool while the port runs; with "
			"rx_copy=1 it could",
			port->port_id, queue);
		return -ENOTSUP;
	}
	/* As other drivers do: what does not fit is found out when it comes. */
	if (room_of(mp) < longest(port) && !scatters(port, conf->offloads))
		PMD_LOG(WARNING,
			"port %u: Rx queue %u has buffers of %u bytes, too small for an MTU of %u "
			"without scattered Rx",
			port->port_id, queue, room_of(mp), port->dev->data->mtu);
	return 0;
}

/* Whether frames have to be put into buffers of the queue's own mempool. */
static bool
must_copy(const struct pmd_port *port, const struct pmd_rxq *q)
{
	uint32_t room = rte_pktmbuf_data_room_size(q->mp) - RTE_PKTMBUF_HEADROOM;

	if (port->args.rx_copy)
		return true;
	/* The lower port cannot spread a long frame over buffers. */
	if (room < longest(port) && !(port->lower.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER))
		return true;
	/* Frames come from the lower port's queue, whichever of ours they are for. */
	for (uint16_t i = 0; i < port->num_rxq; i++) {
		if (port->rxq[i] != NULL && port->rxq[i] != q && port->rxq[i]->mp != q->mp)
			return true;
	}
	return false;
}

static int
make_ring(struct pmd_rxq *q)
{
	if (q->conf.share_group > 0)
		return pmd_share_join(q);
	q->cring = &q->own;
	return pmd_cring_init(&q->own, q->nb_desc, q->socket, true);
}

int
pmd_rxq_prepare(struct pmd_port *port)
{
	int rc = 0;

	for (uint16_t i = 0; i < port->num_rxq && rc == 0; i++) {
		struct pmd_rxq *q = port->rxq[i];

		if (q->cring->stock == NULL && must_copy(port, q))
			rc = pmd_cring_add_stock(q->cring, q->mp);
	}
	return rc;
}

static void
rxq_free(struct pmd_rxq *q)
{
	pmd_share_leave(q);
	pmd_cring_fini(&q->own);
	if (q->event >= 0)
		close(q->event);
	if (q->epoll >= 0)
		close(q->epoll);
	free(q);
}

/* Of a port that runs: pollers see the queue when it is complete. */
static int
join_running(struct pmd_rxq *q)
{
	struct pmd_port *port = q->port;
	int rc = 0;

	q->stopped = true;
	q->by_service = port->pollers[0].by_service;
	q->seen_at = rte_rdtsc();
	if (q->cring->stock == NULL && must_copy(port, q))
		rc = pmd_cring_add_stock(q->cring, q->mp);
	if (rc < 0)
		return rc;
	pmd_pollers_lock(port);
	for (uint16_t i = 0; i < port->num_pollers; i++)
		port->pollers[i].copies |= q->cring->stock != NULL;
	port->rxq[q->queue] = q;
	pmd_pollers_unlock(port);
	return 0;
}

int
pmd_rxq_setup(struct rte_eth_dev *dev, uint16_t queue, uint16_t ndesc, unsigned int socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *mp)
{
	struct pmd_port *port = pmd_port_of(dev);
	struct pmd_rxq *q;
	int rc = check_setup(port, queue, ndesc, conf, mp);

	if (rc < 0)
		return rc;
	q = aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*q));
	if (q == NULL)
		return -ENOMEM;
	memset(q, 0, sizeof(*q));
	q->event = q->epoll = -1;
	q->port = port;
	q->port_id = port->port_id;
	q->lower_id = port->lower_id;
	q->queue = queue;
	q->mp = mp;
	q->conf = *conf;
	q->nb_desc = ndesc;
	q->socket = socket;
	atomic_init(&q->gate.closed, 1);
	pthread_mutex_lock(&port->lock);
	rc = make_ring(q);
	if (rc == 0 && port->started)
		rc = join_running(q);
	if (rc == 0) {
		port->rxq[queue] = q;
		dev->data->rx_queues[queue] = q;
		if (room_of(mp) < longest(port) && scatters(port, conf->offloads))
			dev->data->scattered_rx = 1;
	} else {
		rxq_free(q);
	}
	pthread_mutex_unlock(&port->lock);
	return rc;
}

void
pmd_rxq_release(struct rte_eth_dev *dev, uint16_t queue)
{
	struct pmd_port *port = pmd_port_of(dev);
	struct pmd_rxq *q = port->rxq[queue];

	if (q == NULL)
		return;
	pthread_mutex_lock(&port->lock);
	/* Others may be running our pollers for the sake of a shared queue. */
	pmd_gates_close(port);
	pmd_pollers_lock(port);
	/* What has come directly is told by the port from now on. */
	if (port->started)
		port->given_base[queue].packets -=
			atomic_load_explicit(&q->packets, memory_order_relaxed) - q->base_packets;
	port->rxq[queue] = NULL;
	dev->data->rx_queues[queue] = NULL;
	pmd_mode_update(port);
	pmd_pollers_unlock(port);
	rxq_free(q);
	pmd_gates_open(port);
	pthread_mutex_unlock(&port->lock);
}

/* ---- started and stopped ---- */

/* What waits is lost, and counted as what comes to a stopped queue. With gates and batons. */
void
pmd_rxq_drain(struct pmd_rxq *q)
{
	struct pmd_poller *p = &q->port->pollers[0];
	struct rte_mbuf *m;

	while (rte_ring_dequeue(q->cring->ring, (void **)&m) == 0) {
		p->given[q->queue].packets--;
		p->given[q->queue].bytes -= m->pkt_len;
		p->given[q->queue].stopped++;
		p->lost.bytes += m->pkt_len;
		rte_pktmbuf_free(m);
	}
}

static int
set_stopped(struct rte_eth_dev *dev, uint16_t queue, bool stopped)
{
	struct pmd_port *port = pmd_port_of(dev);
	struct pmd_rxq *q = port->rxq[queue];

	pthread_mutex_lock(&port->lock);
	pmd_gates_close(port);
	pmd_pollers_lock(port);
	if (stopped && q->share == NULL)
		pmd_rxq_drain(q);
	q->stopped = stopped;
	pmd_mode_update(port);
	dev->data->rx_queue_state[queue] =
		stopped ? RTE_ETH_QUEUE_STATE_STOPPED : RTE_ETH_QUEUE_STATE_STARTED;
	pmd_pollers_unlock(port);
	pmd_gates_open(port);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

int
pmd_rxq_start(struct rte_eth_dev *dev, uint16_t queue)
{
	return set_stopped(dev, queue, false);
}

int
pmd_rxq_stop(struct rte_eth_dev *dev, uint16_t queue)
{
	return set_stopped(dev, queue, true);
}

/* ---- watermarks ---- */

int
pmd_thresh_set(struct rte_eth_dev *dev, uint16_t queue, uint8_t thresh)
{
	struct pmd_port *port = pmd_port_of(dev);
	struct pmd_rxq *q = port->rxq[queue];

	if (q == NULL)
		return -EINVAL;
	pthread_mutex_lock(&port->lock);
	pmd_gates_close(port);
	pmd_pollers_lock(port);
	pmd_cring_arm(q->cring, thresh);
	pmd_mode_update(port);
	pmd_pollers_unlock(port);
	pmd_gates_open(port);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

int
pmd_thresh_query(struct rte_eth_dev *dev, uint16_t *queue, uint8_t *thresh)
{
	struct pmd_port *port = pmd_port_of(dev);
	uint16_t n, i;

	pthread_mutex_lock(&port->lock);
	n = port->num_rxq;
	/* The program asks for one after the other, from the queue on that it names. */
	for (i = 0; i < n; i++) {
		uint16_t which = (uint16_t)((*queue + i) % n);
		struct pmd_rxq *q = port->rxq[which];

		if (q == NULL || atomic_exchange(&q->cring->pending, 0) == 0)
			continue;
		*queue = which;
		*thresh = atomic_load(&q->cring->thresh);
		break;
	}
	pthread_mutex_unlock(&port->lock);
	return i < n ? 1 : 0;
}

/* ---- sizes ---- */

static int
resize(struct pmd_rxq *q, uint32_t size)
{
	struct pmd_port *port = q->port;
	struct pmd_rxq *member;
	int rc;

	if (q->direct && port->started)
		return -ENOTSUP;
	pmd_gates_close(port);
	/* All who fill it. */
	if (q->share != NULL) {
		LIST_FOREACH (member, &q->share->members, link)
			pmd_pollers_lock(member->port);
	} else {
		pmd_pollers_lock(port);
	}
	rc = pmd_cring_resize(q->cring, size);
	if (q->share != NULL) {
		LIST_FOREACH (member, &q->share->members, link)
			pmd_pollers_unlock(member->port);
	} else {
		pmd_pollers_unlock(port);
	}
	pmd_gates_open(port);
	pmd_trace_resize(port->port_id, q->queue, size, rc);
	return rc;
}

int
rte_pmd_verbena_rxq_resize(uint16_t port_id, uint16_t queue_id, uint32_t size)
{
	struct pmd_port *port = pmd_port_find(port_id);
	int rc;

	if (port == NULL)
		return -ENODEV;
	if (size < PMD_RING_MIN || size > PMD_RING_MAX || queue_id >= port->num_rxq)
		return -EINVAL;
	pthread_mutex_lock(&port->lock);
	rc = port->rxq[queue_id] == NULL ? -EINVAL : resize(port->rxq[queue_id], size);
	pthread_mutex_unlock(&port->lock);
	return rc;
}
