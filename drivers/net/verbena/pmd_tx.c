/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tx queues. A queue is one of the lower port's, or shares one with others, under a lock. What the
 * lower port cannot do for a frame is done here first; a frame that must not be written to, or that
 * has segments which the lower port would not take, is copied, and the copy sent.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "pmd_private.h"

#define L4_MASK RTE_MBUF_F_TX_L4_MASK

/* ---- making ready ---- */

static void
sum_l3(struct rte_mbuf *m)
{
	struct rte_ipv4_hdr *ip = rte_pktmbuf_mtod_offset(m, struct rte_ipv4_hdr *, m->l2_len);

	ip->hdr_checksum = 0;
	ip->hdr_checksum = (uint16_t)~rte_raw_cksum(ip, m->l3_len);
	m->ol_flags &= ~RTE_MBUF_F_TX_IP_CKSUM;
}

/* The field holds the sum of the pseudo-header when hardware is expected; it starts anew. */
static void
sum_l4(struct rte_mbuf *m)
{
	uint16_t off = m->l2_len + m->l3_len, *field;
	const void *ip = rte_pktmbuf_mtod_offset(m, const void *, m->l2_len);

	if ((m->ol_flags & L4_MASK) == RTE_MBUF_F_TX_UDP_CKSUM)
		field = &rte_pktmbuf_mtod_offset(m, struct rte_udp_hdr *, off)->dgram_cksum;
	else
		field = &rte_pktmbuf_mtod_offset(m, struct rte_tcp_hdr *, off)->cksum;
	*field = 0;
	*field = (m->ol_flags & RTE_MBUF_F_TX_IPV4) ? rte_ipv4_udptcp_cksum_mbuf(m, ip, off)
						    : rte_ipv6_udptcp_cksum_mbuf(m, ip, off);
	m->ol_flags &= ~L4_MASK;
}

static inline bool
l4_wanted(const struct pmd_txq *q, uint64_t flags)
{
	uint64_t l4 = flags & L4_MASK;

	/* A number, not bits: 1 TCP, 2 SCTP, 3 UDP. */
	return (l4 == RTE_MBUF_F_TX_UDP_CKSUM && q->udp) ||
	       (l4 == RTE_MBUF_F_TX_TCP_CKSUM && q->tcp);
}

static inline bool
writable(const struct rte_mbuf *m)
{
	return RTE_MBUF_DIRECT(m) && rte_mbuf_refcnt_read(m) == 1;
}

/* The frame in one segment of our own. @return NULL: no buffer */
static struct rte_mbuf *
copy(const struct pmd_txq *q, const struct rte_mbuf *m)
{
	struct rte_mbuf *c = rte_pktmbuf_alloc(q->port->tx_pool);
	const void *from;
	char *to;

	if (c == NULL)
		return NULL;
	to = rte_pktmbuf_append(c, (uint16_t)m->pkt_len);
	if (to == NULL) {
		rte_pktmbuf_free(c);
		return NULL;
	}
	from = rte_pktmbuf_read(m, 0, m->pkt_len, to);
	if (from != to)
		rte_memcpy(to, from, m->pkt_len);
	c->ol_flags = m->ol_flags & ~(RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT);
	c->tx_offload = m->tx_offload;
	c->vlan_tci = m->vlan_tci;
	c->vlan_tci_outer = m->vlan_tci_outer;
	c->packet_type = m->packet_type;
	memcpy(c->dynfield1, m->dynfield1, sizeof(c->dynfield1));
	return c;
}

/* Headers lie whole in the first segment, as tx_prepare asks for elsewhere. */
static bool
headers_fit(const struct rte_mbuf *m)
{
	uint32_t need = m->l2_len + m->l3_len;

	if ((m->ol_flags & L4_MASK) == RTE_MBUF_F_TX_UDP_CKSUM)
		need += sizeof(struct rte_udp_hdr);
	else if ((m->ol_flags & L4_MASK) == RTE_MBUF_F_TX_TCP_CKSUM)
		need += sizeof(struct rte_tcp_hdr);
	return need <= m->data_len && (m->l3_len >= sizeof(struct rte_ipv4_hdr));
}

/*
 * Makes @p m ready, or a copy of it, which is what *out is then. @return 0, -ENOBUFS: there is no
 * buffer for a copy at the moment, -EINVAL: it cannot be made ready
 */
static int
prepare(const struct pmd_txq *q, struct rte_mbuf *m, struct rte_mbuf **out)
{
	bool l3 = (q->todo & m->ol_flags & RTE_MBUF_F_TX_IP_CKSUM) != 0;
	bool l4 = l4_wanted(q, m->ol_flags);
	bool vlan = (q->todo & m->ol_flags & RTE_MBUF_F_TX_VLAN) != 0;

	*out = m;
	if ((q->linear && m->nb_segs > 1) || ((l3 || l4 || vlan) && !writable(m)) ||
		((l3 || l4) && !headers_fit(m))) {
		if (m->pkt_len > q->port->max_frame)
			return -EINVAL;
		*out = copy(q, m);
		if (*out == NULL)
			return -ENOBUFS;
	}
	if ((l3 || l4) && !headers_fit(*out))
		goto fail;
	if (l3)
		sum_l3(*out);
	if (l4)
		sum_l4(*out);
	if (!vlan || rte_vlan_insert(out) == 0)
		return 0;
fail:
	if (*out != m)
		rte_pktmbuf_free(*out);
	return -EINVAL;
}

/* ---- sending ---- */

static inline uint16_t
send_burst(struct pmd_txq *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t sent;

	if (q->lock == NULL)
		return rte_eth_tx_burst(q->lower_id, q->lower_queue, pkts, n);
	rte_spinlock_lock(q->lock);
	sent = rte_eth_tx_burst(q->lower_id, q->lower_queue, pkts, n);
	rte_spinlock_unlock(q->lock);
	return sent;
}

uint16_t
pmd_tx_direct(void *txq, struct rte_mbuf **pkts, uint16_t n)
{
	struct pmd_txq *q = txq;

	if (unlikely(atomic_load_explicit(&q->held, memory_order_relaxed)))
		return pmd_tx_held(q, pkts, n);
	return rte_eth_tx_burst(q->lower_id, q->lower_queue, pkts, n);
}

/* One piece of a burst. @return how many of it were taken */
static uint16_t
send_piece(struct pmd_txq *q, struct rte_mbuf **pkts, uint16_t n)
{
	struct rte_mbuf *out[PMD_BURST];
	uint16_t ready = 0, sent, i;
	int rc = 0;

	for (; ready < n && rc == 0; ready += rc == 0)
		rc = prepare(q, pkts[ready], &out[ready]);
	sent = ready > 0 ? send_burst(q, out, ready) : 0;
	for (i = 0; i < sent; i++) {
		if (out[i] != pkts[i])
			rte_pktmbuf_free(pkts[i]);
	}
	/* What the lower port has not taken is the program's as it was. */
	for (i = sent; i < ready; i++) {
		if (out[i] != pkts[i])
			rte_pktmbuf_free(out[i]);
	}
	if (sent < ready || rc != -EINVAL)
		return sent;
	/* As a NIC does with a frame that it cannot send: it is gone, and counted. */
	q->dropped++;
	rte_pktmbuf_free(pkts[ready]);
	return ready + 1;
}

static uint16_t
send_all(struct pmd_txq *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t done = 0;

	if (!q->work)
		return send_burst(q, pkts, n);
	while (done < n) {
		uint16_t piece = RTE_MIN(n - done, PMD_BURST), took;

		took = send_piece(q, &pkts[done], piece);
		done += took;
		if (took == 0)
			break; /* no room, or no buffers: the program comes again */
	}
	return done;
}

uint16_t
pmd_tx_burst(void *txq, struct rte_mbuf **pkts, uint16_t n)
{
	struct pmd_txq *q = txq;

	if (unlikely(atomic_load_explicit(&q->held, memory_order_relaxed)))
		return pmd_tx_held(q, pkts, n);
	return send_all(q, pkts, n);
}

/* ---- held back ---- */

static void
set_held(struct pmd_txq *q)
{
	atomic_store(&q->held, q->stopped || q->rate != 0);
}

/* What the queue may send grows with time, up to a millisecond's worth and a frame. Mbit/s are
 * 125000 bytes a second; credit is in bytes times the frequency of the clock. */
static void
earn(struct pmd_txq *q, uint64_t rate)
{
	uint64_t now = rte_rdtsc(), hz = rte_get_tsc_hz(), time = now - q->earned_at;
	int64_t most = (int64_t)(rate * 125000 * (hz / 1000) + (uint64_t)q->port->max_frame * hz);

	if (q->credit > most || time > (uint64_t)(most - q->credit) / (rate * 125000))
		q->credit = most;
	else
		q->credit += (int64_t)(time * rate * 125000);
	q->earned_at = now;
}

/* The first frames for which there is credit; the last one may take it below 0. */
static uint16_t
send_limited(struct pmd_txq *q, struct rte_mbuf **pkts, uint16_t n, uint64_t rate)
{
	int64_t hz = (int64_t)rte_get_tsc_hz();
	uint16_t sent = 0;

	earn(q, rate);
	while (sent < n && q->credit > 0) {
		int64_t cost = (int64_t)pkts[sent]->pkt_len * hz;

		if (send_all(q, &pkts[sent], 1) == 0)
			break;
		q->credit -= cost;
		sent++;
	}
	return sent;
}

uint16_t
pmd_tx_held(struct pmd_txq *q, struct rte_mbuf **pkts, uint16_t n)
{
	uint64_t rate = atomic_load_explicit(&q->rate, memory_order_relaxed);

	if (atomic_load_explicit(&q->stopped, memory_order_relaxed))
		return 0;
	return rate == 0 ? send_all(q, pkts, n) : send_limited(q, pkts, n, rate);
}

int
pmd_tx_rate(struct rte_eth_dev *dev, uint16_t queue, uint32_t rate)
{
	struct pmd_port *port = pmd_port_of(dev);
	struct pmd_txq *q;
	int rc = -ENOTSUP;

	if (queue >= dev->data->nb_tx_queues || dev->data->tx_queues[queue] == NULL)
		return -EINVAL;
	pthread_mutex_lock(&port->lock);
	q = dev->data->tx_queues[queue];
	/* The lower port's, if it knows of the queue already, and the queue is this one's alone. */
	if (port->lower_gone)
		rc = -EIO;
	else if (port->started && q->lock == NULL)
		rc = rte_eth_set_queue_rate_limit(port->lower_id, q->lower_queue, rate);
	if (rc == 0 || rc == -ENOTSUP) {
		atomic_store(&q->rate, rc == 0 ? 0 : rate);
		set_held(q);
		rc = 0;
	}
	pthread_mutex_unlock(&port->lock);
	return rc;
}

/* ---- which queue below ---- */

/* What a queue of a started port does. @return whether frames can go as they are */
static bool
choose(struct pmd_port *port, struct pmd_txq *q)
{
	uint16_t lower = port->num_lower_tx;

	q->lower_queue = lower > 0 ? q->queue % lower : 0;
	q->todo = port->tx_todo;
	q->work = port->tx_todo != 0 || port->tx_udp || port->tx_tcp || port->tx_linear;
	q->udp = port->tx_udp;
	q->tcp = port->tx_tcp;
	q->linear = port->tx_linear;
	q->lock = NULL;
	if (port->dev->data->nb_tx_queues > lower ||
		port->roce.tx_lock == &port->tx_locks[q->lower_queue])
		q->lock = &port->tx_locks[q->lower_queue];
	return !q->work && q->lock == NULL;
}

/* Which queue of the lower port each has, and who shares one. */
void
pmd_tx_choose(struct pmd_port *port)
{
	struct rte_eth_dev_data *data = port->dev->data;
	eth_tx_burst_t fn = pmd_tx_direct;

	for (uint16_t i = 0; i < data->nb_tx_queues; i++) {
		struct pmd_txq *q = data->tx_queues[i];

		q->stopped = q->conf.tx_deferred_start != 0;
		set_held(q);
		if (!choose(port, q))
			fn = pmd_tx_burst;
	}
	port->dev->tx_pkt_burst = fn;
}

/* ---- set up ---- */

int
pmd_txq_setup(struct rte_eth_dev *dev, uint16_t queue, uint16_t ndesc, unsigned int socket,
	const struct rte_eth_txconf *conf)
{
	struct pmd_txq *q =
		aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(sizeof(*q), RTE_CACHE_LINE_SIZE));

	if (q == NULL)
		return -ENOMEM;
	memset(q, 0, sizeof(*q));
	q->port = pmd_port_of(dev);
	q->lower_id = q->port->lower_id;
	q->queue = queue;
	q->conf = *conf;
	q->nb_desc = ndesc;
	q->socket = socket;
	pthread_mutex_lock(&q->port->lock);
	if (q->port->started) {
		q->stopped = true;
		set_held(q);
		choose(q->port, q);
	}
	dev->data->tx_queues[queue] = q;
	pthread_mutex_unlock(&q->port->lock);
	return 0;
}

void
pmd_txq_release(struct rte_eth_dev *dev, uint16_t queue)
{
	struct pmd_port *port = pmd_port_of(dev);
	struct pmd_txq *q = dev->data->tx_queues[queue];

	if (q == NULL)
		return;
	pthread_mutex_lock(&port->lock);
	port->tx_gone += q->dropped - q->base_dropped;
	dev->data->tx_queues[queue] = NULL;
	pthread_mutex_unlock(&port->lock);
	free(q);
}

int
pmd_tx_desc_status(void *txq, uint16_t offset)
{
	struct pmd_txq *q = txq;

	return rte_eth_tx_descriptor_status(q->lower_id, q->lower_queue, offset);
}

int
pmd_tx_done(void *txq, uint32_t n)
{
	struct pmd_txq *q = txq;

	return rte_eth_tx_done_cleanup(q->lower_id, q->lower_queue, n);
}

void
pmd_txq_info(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_txq_info *info)
{
	const struct pmd_txq *q = dev->data->tx_queues[queue];

	info->conf = q->conf;
	info->nb_desc = q->nb_desc;
}

int
pmd_tx_burst_mode(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_burst_mode *mode)
{
	const struct pmd_txq *q = dev->data->tx_queues[queue];

	snprintf(mode->info, sizeof(mode->info), "%s%s%s",
		!q->work ? "Direct" : "Software offloads", q->linear ? ", linearised" : "",
		q->lock != NULL ? ", shared queue" : "");
	return 0;
}

void
pmd_tx_end(struct pmd_port *port)
{
	for (uint16_t i = 0; i < port->dev->data->nb_tx_queues; i++) {
		struct pmd_txq *q = port->dev->data->tx_queues[i];

		if (q != NULL) {
			q->stopped = true;
			set_held(q);
		}
	}
}

static int
set_stopped(struct rte_eth_dev *dev, uint16_t queue, bool stopped)
{
	struct pmd_port *port = pmd_port_of(dev);
	struct pmd_txq *q = dev->data->tx_queues[queue];

	pthread_mutex_lock(&port->lock);
	q->stopped = stopped;
	set_held(q);
	dev->data->tx_queue_state[queue] =
		stopped ? RTE_ETH_QUEUE_STATE_STOPPED : RTE_ETH_QUEUE_STATE_STARTED;
	pthread_mutex_unlock(&port->lock);
	return 0;
}

int
pmd_txq_start(struct rte_eth_dev *dev, uint16_t queue)
{
	return set_stopped(dev, queue, false);
}

int
pmd_txq_stop(struct rte_eth_dev *dev, uint16_t queue)
{
	return set_stopped(dev, queue, true);
}
