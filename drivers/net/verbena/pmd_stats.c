/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figures. What a queue was given is counted by each poller for itself and summed up here; a reset
 * remembers the sums. Every frame that the lower port has received is in exactly one of ipackets,
 * imissed, ierrors, rx_nombuf, and the extended figures rx_roce_packets, rx_flow_drop,
 * rx_isolated_drop, rx_vlan_filter_drop, rx_mac_filter_drop and rx_stopped_drop.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "pmd_private.h"

/* ---- sums ---- */

void
pmd_given_sum(const struct pmd_port *port, uint16_t queue, struct pmd_given *sum)
{
	const struct pmd_given *base = &port->given_base[queue];

	*sum = (struct pmd_given){0};
	for (uint16_t i = 0; i < port->num_pollers && queue < port->pollers_queues; i++) {
		const struct pmd_given *g = &port->pollers[i].given[queue];

		sum->packets += g->packets;
		sum->bytes += g->bytes;
		sum->full += g->full;
		sum->nombuf += g->nombuf;
		sum->stopped += g->stopped;
	}
	sum->packets -= base->packets;
	sum->bytes -= base->bytes;
	sum->full -= base->full;
	sum->nombuf -= base->nombuf;
	sum->stopped -= base->stopped;
}

/* struct pmd_lost is figures and nothing else. */
#define LOST_WORDS (sizeof(struct pmd_lost) / sizeof(uint64_t))

void
pmd_lost_sum(const struct pmd_port *port, struct pmd_lost *sum)
{
	const uint64_t *base = (const uint64_t *)&port->lost_base;
	uint64_t *to = (uint64_t *)sum;

	memset(sum, 0, sizeof(*sum));
	for (uint32_t w = 0; w < LOST_WORDS; w++) {
		for (uint16_t i = 0; i < port->num_pollers; i++)
			to[w] += ((const uint64_t *)&port->pollers[i].lost)[w];
		to[w] -= base[w];
	}
}

static uint64_t
direct_packets(const struct pmd_rxq *q)
{
	return atomic_load_explicit(&q->packets, memory_order_relaxed);
}

static void
queue_figures(const struct pmd_port *port, uint16_t queue, struct pmd_given *g)
{
	const struct pmd_rxq *q = port->rxq[queue];

	pmd_given_sum(port, queue, g);
	if (q == NULL)
		return;
	/* And what came directly. */
	g->packets += direct_packets(q) - q->base_packets;
}

/* ---- basic ---- */

static void
lower_stats(const struct pmd_port *port, struct rte_eth_stats *s)
{
	memset(s, 0, sizeof(*s));
	if (!port->lower_gone)
		rte_eth_stats_get(port->lower_id, s);
	s->imissed -= port->lower_base.imissed;
	s->ierrors -= port->lower_base.ierrors;
	s->rx_nombuf -= port->lower_base.rx_nombuf;
	s->oerrors -= port->lower_base.oerrors;
	s->opackets -= port->lower_base.opackets;
	s->obytes -= port->lower_base.obytes;
	s->ibytes -= port->lower_base.ibytes;
	for (unsigned int i = 0; i < RTE_ETHDEV_QUEUE_STAT_CNTRS; i++) {
		s->q_ibytes[i] -= port->lower_base.q_ibytes[i];
		s->q_opackets[i] -= port->lower_base.q_opackets[i];
		s->q_obytes[i] -= port->lower_base.q_obytes[i];
	}
}

/* The engine's frames left by the lower port too. */
static void
tx_stats(
	const struct pmd_port *port, const struct rte_eth_stats *lower, struct rte_eth_stats *stats)
{
	uint64_t roce = port->roce.tx_packets - port->base_roce_packets;
	uint64_t roce_bytes = port->roce.tx_bytes - port->base_roce_bytes;
	uint16_t n = port->dev->data->nb_tx_queues;

	stats->opackets = lower->opackets - RTE_MIN(lower->opackets, roce);
	stats->obytes = lower->obytes - RTE_MIN(lower->obytes, roce_bytes);
	stats->oerrors = lower->oerrors + port->tx_gone;
	for (uint16_t i = 0; i < n; i++) {
		const struct pmd_txq *q = port->dev->data->tx_queues[i];

		if (q != NULL)
			stats->oerrors += q->dropped - q->base_dropped;
		/* Queues that share one of the lower port's cannot be told apart. */
		if (i < RTE_ETHDEV_QUEUE_STAT_CNTRS && n <= port->num_lower_tx) {
			stats->q_opackets[i] = lower->q_opackets[i];
			stats->q_obytes[i] = lower->q_obytes[i];
		}
	}
}

int
pmd_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats)
{
	struct pmd_port *port = pmd_port_of(dev);
	struct rte_eth_stats lower;
	struct pmd_lost lost;

	/* With the batons: all figures are of one instant. */
	pthread_mutex_lock(&port->lock);
	pmd_pollers_lock(port);
	lower_stats(port, &lower);
	pmd_lost_sum(port, &lost);
	stats->imissed = lower.imissed + lost.roce_full;
	stats->ierrors = lower.ierrors + lost.bad_len;
	stats->rx_nombuf = lower.rx_nombuf;
	for (uint16_t i = 0; i < port->num_rxq; i++) {
		struct pmd_given g;

		queue_figures(port, i, &g);
		stats->ipackets += g.packets;
		stats->ibytes += g.bytes;
		stats->imissed += g.full;
		stats->rx_nombuf += g.nombuf;
		if (i < RTE_ETHDEV_QUEUE_STAT_CNTRS) {
			stats->q_ipackets[i] = g.packets;
			stats->q_ibytes[i] = g.bytes;
			if (port->rxq[i] != NULL && port->rxq[i]->direct)
				stats->q_ibytes[i] = RTE_MAX(g.bytes, lower.q_ibytes[i]);
			stats->q_errors[i] = g.full + g.nombuf + g.stopped;
		}
	}
	/* What the pollers have not seen came directly, if the lower port counts bytes at all. */
	if (lower.ibytes > stats->ibytes + lost.bytes)
		stats->ibytes = lower.ibytes - lost.bytes;
	tx_stats(port, &lower, stats);
	pmd_pollers_unlock(port);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

static void
reset_pollers(struct pmd_port *port)
{
	for (uint16_t i = 0; i < PMD_MAX_RXQ; i++) {
		struct pmd_rxq *q = port->rxq[i];
		struct pmd_given g;

		pmd_given_sum(port, i, &g);
		port->given_base[i].packets += g.packets;
		port->given_base[i].bytes += g.bytes;
		port->given_base[i].full += g.full;
		port->given_base[i].nombuf += g.nombuf;
		port->given_base[i].stopped += g.stopped;
		if (q == NULL)
			continue;
		q->base_packets = direct_packets(q);
		atomic_store(&q->cring->high, 0);
	}
}

int
pmd_stats_reset(struct rte_eth_dev *dev)
{
	struct pmd_port *port = pmd_port_of(dev);
	struct pmd_lost lost;

	pthread_mutex_lock(&port->lock);
	pmd_pollers_lock(port);
	if (!port->lower_gone)
		rte_eth_stats_get(port->lower_id, &port->lower_base);
	pmd_lost_sum(port, &lost);
	for (uint32_t w = 0; w < LOST_WORDS; w++)
		((uint64_t *)&port->lost_base)[w] += ((uint64_t *)&lost)[w];
	reset_pollers(port);
	for (uint16_t i = 0; i < dev->data->nb_tx_queues; i++) {
		struct pmd_txq *q = dev->data->tx_queues[i];

		if (q != NULL)
			q->base_dropped = q->dropped;
	}
	port->tx_gone = 0;
	port->base_roce_packets = port->roce.tx_packets;
	port->base_roce_bytes = port->roce.tx_bytes;
	if (port->roce.engine != NULL)
		port->base_engine = *vrb_engine_stats(port->roce.engine);
	pmd_pollers_unlock(port);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

/* ---- extended ---- */

struct engine_name {
	const char *name;
	size_t offset;
};

#define ENGINE(field) \
	{ \
		"roce_" #field, offsetof(struct vrb_stats, field) \
	}
static const struct engine_name engine_names[] = {ENGINE(rx_packets), ENGINE(rx_bytes),
	ENGINE(tx_packets), ENGINE(tx_bytes), ENGINE(rx_malformed), ENGINE(rx_icrc),
	ENGINE(rx_opcode), ENGINE(rx_no_qp), ENGINE(rx_qp_state), ENGINE(rx_wrong_peer),
	ENGINE(rx_pkey), ENGINE(rx_qkey), ENGINE(rx_no_recv), ENGINE(rx_dropped),
	ENGINE(rx_duplicate), ENGINE(rx_out_of_order), ENGINE(tx_acks), ENGINE(tx_nak_seq),
	ENGINE(tx_nak_rnr), ENGINE(tx_nak_error), ENGINE(rx_acks), ENGINE(rx_nak_seq),
	ENGINE(rx_nak_rnr), ENGINE(rx_nak_error), ENGINE(timeouts), ENGINE(retransmitted),
	ENGINE(read_gaps), ENGINE(no_mbuf), ENGINE(cq_overruns)};

/* Of the whole port. */
enum port_figure {
	RX_FULL,
	RX_NOMBUF,
	RX_STOPPED,
	RX_FLOW,
	RX_ISOLATED,
	RX_FILTER,
	RX_MAC,
	RX_LENGTH,
	RX_ROCE,
	RX_ROCE_FULL,
	TX_DROP,
	REFILLS,
	REFILLED,
	REFILL_FAILS,
	THRESH_EVENTS,
	RESIZES,
	POLLS,
	POLLS_EMPTY,
	POLLS_BUSY,
	FLOW_RULES,
	FLOW_PACKETS,
	PORT_FIGURES,
};

static const char *const port_names[PORT_FIGURES] = {
	[RX_FULL] = "rx_ring_full",
	[RX_NOMBUF] = "rx_no_posted_buffer",
	[RX_STOPPED] = "rx_stopped_drop",
	[RX_FLOW] = "rx_flow_drop",
	[RX_ISOLATED] = "rx_isolated_drop",
	[RX_FILTER] = "rx_vlan_filter_drop",
	[RX_MAC] = "rx_mac_filter_drop",
	[RX_LENGTH] = "rx_length_errors",
	[RX_ROCE] = "rx_roce_packets",
	[RX_ROCE_FULL] = "rx_roce_ring_full",
	[TX_DROP] = "tx_prepare_drop",
	[REFILLS] = "rx_refills",
	[REFILLED] = "rx_refilled_buffers",
	[REFILL_FAILS] = "rx_refill_failures",
	[THRESH_EVENTS] = "rx_avail_thresh_events",
	[RESIZES] = "rx_ring_resizes",
	[POLLS] = "poller_rounds",
	[POLLS_EMPTY] = "poller_empty_rounds",
	[POLLS_BUSY] = "poller_busy",
	[FLOW_RULES] = "flow_rules",
	[FLOW_PACKETS] = "rx_flow_packets",
};

static void
ring_figures(const struct pmd_port *port, uint64_t f[PORT_FIGURES])
{
	for (uint16_t i = 0; i < port->num_rxq; i++) {
		struct pmd_given g;
		const struct pmd_cring *c;

		queue_figures(port, i, &g);
		f[RX_FULL] += g.full;
		f[RX_NOMBUF] += g.nombuf;
		f[RX_STOPPED] += g.stopped;
		if (port->rxq[i] == NULL)
			continue;
		c = port->rxq[i]->cring;
		f[REFILLS] += atomic_load(&c->refills);
		f[REFILLED] += atomic_load(&c->refilled);
		f[REFILL_FAILS] += atomic_load(&c->refill_fails);
		f[THRESH_EVENTS] += atomic_load(&c->thresh_events);
		f[RESIZES] += c->resizes;
	}
}

static void
port_figures(const struct pmd_port *port, uint64_t f[PORT_FIGURES])
{
	struct pmd_lost lost;

	memset(f, 0, PORT_FIGURES * sizeof(*f));
	pmd_lost_sum(port, &lost);
	ring_figures(port, f);
	f[RX_FLOW] = lost.flow;
	f[RX_ISOLATED] = lost.isolated;
	f[RX_FILTER] = lost.filter;
	f[RX_MAC] = lost.mac;
	f[RX_LENGTH] = lost.bad_len;
	f[RX_ROCE] = lost.roce;
	f[RX_ROCE_FULL] = lost.roce_full;
	f[FLOW_RULES] = port->num_flows;
	f[TX_DROP] = port->tx_gone;
	for (uint16_t i = 0; i < port->dev->data->nb_tx_queues; i++) {
		const struct pmd_txq *q = port->dev->data->tx_queues[i];

		f[TX_DROP] += q == NULL ? 0 : q->dropped - q->base_dropped;
	}
	for (uint16_t i = 0; i < port->num_pollers; i++) {
		f[POLLS] += port->pollers[i].rounds;
		f[POLLS_EMPTY] += port->pollers[i].empty;
		f[POLLS_BUSY] += atomic_load(&port->pollers[i].busy);
		f[FLOW_PACKETS] += port->pollers[i].flow;
	}
}

static uint64_t
engine_figure(const struct pmd_port *port, const struct engine_name *name)
{
	const char *now;

	if (port->roce.engine == NULL)
		return 0;
	now = (const char *)vrb_engine_stats(port->roce.engine);
	return *(const uint64_t *)(const void *)(now + name->offset) -
	       *(const uint64_t *)(const void *)((const char *)&port->base_engine + name->offset);
}

#define XSTATS (PORT_FIGURES + RTE_DIM(engine_names))

int
pmd_xstats_names(struct rte_eth_dev *dev, struct rte_eth_xstat_name *names, unsigned int n)
{
	RTE_SET_USED(dev);
	if (names == NULL || n < XSTATS)
		return XSTATS;
	for (uint32_t i = 0; i < PORT_FIGURES; i++)
		strlcpy(names[i].name, port_names[i], sizeof(names[i].name));
	for (uint32_t i = 0; i < RTE_DIM(engine_names); i++)
		strlcpy(names[PORT_FIGURES + i].name, engine_names[i].name, sizeof(names[0].name));
	return XSTATS;
}

int
pmd_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *xstats, unsigned int n)
{
	struct pmd_port *port = pmd_port_of(dev);
	uint64_t f[PORT_FIGURES];

	if (xstats == NULL || n < XSTATS)
		return XSTATS;
	pthread_mutex_lock(&port->lock);
	pmd_pollers_lock(port);
	port_figures(port, f);
	pmd_pollers_unlock(port);
	for (uint32_t i = 0; i < PORT_FIGURES; i++)
		xstats[i] = (struct rte_eth_xstat){.id = i, .value = f[i]};
	for (uint32_t i = 0; i < RTE_DIM(engine_names); i++)
		xstats[PORT_FIGURES + i] = (struct rte_eth_xstat){
			.id = PORT_FIGURES + i, .value = engine_figure(port, &engine_names[i])};
	pthread_mutex_unlock(&port->lock);
	return XSTATS;
}

/* ---- for programs that know us ---- */

static void
fill_rxq(struct pmd_port *port, uint16_t queue, struct rte_pmd_verbena_rxq *f)
{
	const struct pmd_rxq *q = port->rxq[queue];
	const struct pmd_cring *c = q->cring;
	struct pmd_given g;

	queue_figures(port, queue, &g);
	*f = (struct rte_pmd_verbena_rxq){.size = c->size,
		.count = rte_ring_count(c->ring),
		.high = atomic_load(&c->high),
		.posted = c->stock == NULL ? 0 : rte_ring_count(c->stock),
		.avail = pmd_cring_avail(c),
		.avail_thresh = atomic_load(&c->limit) == 0 ? 0 : atomic_load(&c->thresh),
		.direct = q->direct,
		.copies = c->stock != NULL,
		.shared = q->share != NULL,
		.share_group = q->conf.share_group,
		.share_qid = q->conf.share_qid,
		.members = q->share == NULL ? 1 : q->share->num_members,
		.packets = g.packets,
		.bytes = g.bytes,
		.full = g.full,
		.nombuf = g.nombuf,
		.refills = atomic_load(&c->refills),
		.refilled = atomic_load(&c->refilled),
		.refill_fails = atomic_load(&c->refill_fails),
		.thresh_events = atomic_load(&c->thresh_events),
		.resizes = c->resizes};
}

int
rte_pmd_verbena_rxq_get(uint16_t port_id, uint16_t queue_id, struct rte_pmd_verbena_rxq *rxq)
{
	struct pmd_port *port = pmd_port_find(port_id);
	int rc = 0;

	if (port == NULL)
		return -ENODEV;
	pthread_mutex_lock(&port->lock);
	if (queue_id >= port->num_rxq || port->rxq[queue_id] == NULL)
		rc = -EINVAL;
	if (rc == 0) {
		pmd_pollers_lock(port);
		fill_rxq(port, queue_id, rxq);
		pmd_pollers_unlock(port);
	}
	pthread_mutex_unlock(&port->lock);
	return rc;
}

int
rte_pmd_verbena_poller_count(uint16_t port_id)
{
	struct pmd_port *port = pmd_port_find(port_id);

	if (port == NULL)
		return -ENODEV;
	return port->started && port->polled ? port->num_pollers : 0;
}

int
rte_pmd_verbena_poller_get(
	uint16_t port_id, uint16_t poller, struct rte_pmd_verbena_poller *figures)
{
	struct pmd_port *port = pmd_port_find(port_id);
	int rc = -EINVAL;

	if (port == NULL)
		return -ENODEV;
	pthread_mutex_lock(&port->lock);
	if (poller < port->num_pollers) {
		struct pmd_poller *p = &port->pollers[poller];

		vrb_baton_lock(&p->baton);
		*figures = (struct rte_pmd_verbena_poller){.service_id = p->service_id,
			.by_service = p->by_service,
			.num_queues = p->num_lower,
			.rounds = p->rounds,
			.empty = p->empty,
			.packets = p->packets,
			.roce = p->roce,
			.flow = p->flow,
			.busy = atomic_load(&p->busy)};
		vrb_baton_release(&p->baton);
		rc = 0;
	}
	pthread_mutex_unlock(&port->lock);
	return rc;
}

int
rte_pmd_verbena_lower(uint16_t port_id, uint16_t *lower_port_id)
{
	struct pmd_port *port = pmd_port_find(port_id);

	if (port == NULL || port->lower_gone)
		return -ENODEV;
	*lower_port_id = port->lower_id;
	return 0;
}
