/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lower port: found or made, owned, so that the program does not see it, configured as far as
 * it can do what the program wants, and its events forwarded.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_dev.h>

#include "pmd_private.h"

/* The offloads that the lower port does when it can; the others are done here, always. */
#define LOWER_RX \
	(RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_VLAN_STRIP | RTE_ETH_RX_OFFLOAD_SCATTER)
#define LOWER_TX \
	(RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM | \
		RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_VLAN_INSERT | \
		RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE)
#define LOWER_DESC 1024
#define POOL_CACHE 256

/* ---- events ---- */

/*
 * ethdev keeps the callbacks of a port that is gone, for the next one of that number; so they are
 * given our port's number, and not its memory.
 */
static struct pmd_port *
port_above(uint16_t lower_id, void *arg)
{
	struct pmd_port *port = pmd_port_find((uint16_t)(uintptr_t)arg);

	return port != NULL && port->lower_id == lower_id && !port->lower_gone ? port : NULL;
}

static int
link_changed(uint16_t lower_id, enum rte_eth_event_type type, void *arg, void *ret)
{
	struct pmd_port *port = port_above(lower_id, arg);
	struct rte_eth_link link;

	RTE_SET_USED(type);
	RTE_SET_USED(ret);
	if (port == NULL || rte_eth_link_get_nowait(lower_id, &link) < 0)
		return 0;
	rte_eth_linkstatus_set(port->dev, &link);
	rte_eth_dev_callback_process(port->dev, RTE_ETH_EVENT_INTR_LSC, NULL);
	return 0;
}

/*
 * The lower port's device goes, or has gone. After the last event it is not ours to touch any more;
 * what becomes of our port is the program's choice.
 */
static int
removed(uint16_t lower_id, enum rte_eth_event_type type, void *arg, void *ret)
{
	struct rte_eth_link down = {.link_status = RTE_ETH_LINK_DOWN};
	struct pmd_port *port = port_above(lower_id, arg);

	RTE_SET_USED(ret);
	if (port == NULL)
		return 0;
	pthread_mutex_lock(&port->lock);
	if (type == RTE_ETH_EVENT_DESTROY && !port->lower_gone) {
		pmd_gates_close(port);
		pmd_pollers_lock(port);
		port->lower_gone = true;
		pmd_mode_leave_direct(port);
		pmd_tx_end(port);
		pmd_pollers_unlock(port);
		pmd_gates_open(port);
	}
	pthread_mutex_unlock(&port->lock);
	rte_eth_linkstatus_set(port->dev, &down);
	pmd_events_raise(port, PMD_EVENT_REMOVED);
	return 0;
}

static void
watch(struct pmd_port *port, bool on)
{
	void *arg = (void *)(uintptr_t)port->port_id;
	static const struct {
		enum rte_eth_event_type type;
		rte_eth_dev_cb_fn fn;
	} events[] = {
		{RTE_ETH_EVENT_INTR_LSC, link_changed},
		{RTE_ETH_EVENT_INTR_RMV, removed},
		{RTE_ETH_EVENT_DESTROY, removed},
	};

	for (uint32_t i = 0; i < RTE_DIM(events); i++) {
		if (on)
			rte_eth_dev_callback_register(
				port->lower_id, events[i].type, events[i].fn, arg);
		/* -EAGAIN: it is being called. */
		while (!on && rte_eth_dev_callback_unregister(
				      port->lower_id, events[i].type, events[i].fn, arg) == -EAGAIN)
			rte_pause();
	}
}

/* ---- found, made, owned ---- */

/*
 * Many programs count on the ports that they see being numbered from 0 without gaps. So lower ports
 * are made in the upper half of the numbers, with the free ones of the lower half taken meanwhile.
 */
static unsigned int
hold_numbers(const struct pmd_port *port, struct rte_eth_dev *held[RTE_MAX_ETHPORTS])
{
	char name[PMD_NAME_LEN];
	unsigned int n = 0;

	while (n < RTE_MAX_ETHPORTS) {
		snprintf(name, sizeof(name), "vrb_hold_%u_%u", port->port_id, n);
		held[n] = rte_eth_dev_allocate(name);
		if (held[n] == NULL)
			break;
		if (held[n]->data->port_id >= RTE_MAX_ETHPORTS / 2) {
			rte_eth_dev_release_port(held[n]);
			break;
		}
		n++;
	}
	return n;
}

static int
probe_high(const struct pmd_port *port)
{
	struct rte_eth_dev *held[RTE_MAX_ETHPORTS];
	unsigned int n = hold_numbers(port, held);
	int rc = rte_dev_probe(port->args.dev);

	while (n > 0)
		rte_eth_dev_release_port(held[--n]);
	return rc;
}

static int
probe(struct pmd_port *port)
{
	size_t n = strcspn(port->args.dev, ",(");
	char name[PMD_NAME_LEN];
	struct rte_devargs da;
	int rc;

	memset(&da, 0, sizeof(da));
	rc = rte_devargs_parse(&da, port->args.dev);
	if (rc < 0 || n == 0) {
		PMD_LOG(ERR, "port %u: \"%s\" names no device of any bus", port->port_id,
			port->args.dev);
		return -EINVAL;
	}
	strlcpy(name, da.name, sizeof(name));
	rte_devargs_reset(&da);
	/* One that --vdev has made already is taken as it is. */
	if (rte_eth_dev_get_port_by_name(name, &port->lower_id) == 0)
		return 0;
	rc = probe_high(port);
	if (rc < 0) {
		PMD_LOG(ERR, "port %u: cannot make the lower port %s: %s", port->port_id,
			port->args.dev, strerror(-rc));
		return rc;
	}
	port->lower_probed = true;
	rc = rte_eth_dev_get_port_by_name(name, &port->lower_id);
	if (rc < 0)
		PMD_LOG(ERR, "port %u: the device %s has made no port of that name", port->port_id,
			name);
	return rc;
}

static int
find(struct pmd_port *port)
{
	int rc = rte_eth_dev_get_port_by_name(port->args.port, &port->lower_id);

	if (rc < 0)
		PMD_LOG(ERR, "port %u: there is no port %s", port->port_id, port->args.port);
	return rc;
}

static int
own(struct pmd_port *port)
{
	int rc = rte_eth_dev_owner_new(&port->owner.id);

	snprintf(port->owner.name, sizeof(port->owner.name), "net_verbena_%u", port->port_id);
	if (rc == 0)
		rc = rte_eth_dev_owner_set(port->lower_id, &port->owner);
	if (rc < 0) {
		PMD_LOG(ERR, "port %u: the lower port belongs to somebody else", port->port_id);
		return rc;
	}
	port->lower_owned = true;
	return 0;
}

int
pmd_lower_open(struct pmd_port *port)
{
	int rc = port->args.dev != NULL ? probe(port) : find(port);

	if (rc == 0)
		rc = own(port);
	if (rc == 0)
		rc = rte_eth_dev_info_get(port->lower_id, &port->lower);
	if (rc < 0)
		return rc;
	port->lower_dev = port->lower.device;
	watch(port, true);
	return 0;
}

void
pmd_lower_close(struct pmd_port *port, bool ending)
{
	if (port->lower_owned && !port->lower_gone) {
		watch(port, false);
		pmd_mac_close(port);
		if (port->lower_started)
			rte_eth_dev_stop(port->lower_id);
		rte_eth_dev_owner_unset(port->lower_id, port->owner.id);
	}
	port->lower_started = port->lower_owned = false;
	if (port->lower_probed && !port->lower_gone) {
		rte_eth_dev_close(port->lower_id);
		if (port->lower_dev != NULL && !ending)
			rte_dev_remove(port->lower_dev);
	}
	port->lower_probed = false;
	rte_mempool_free(port->lower_pool);
	port->lower_pool = NULL;
}

/* ---- configured ---- */

/* What the program wants is shared out between the lower port and us. */
static void
share_out(struct pmd_port *port)
{
	const struct rte_eth_conf *conf = &port->dev->data->dev_conf;
	uint64_t rx = conf->rxmode.offloads, tx = conf->txmode.offloads;

	for (uint16_t i = 0; i < port->num_rxq; i++) {
		if (port->rxq[i] != NULL)
			rx |= port->rxq[i]->conf.offloads;
	}
	port->lower_rx_offloads = rx & LOWER_RX & port->lower.rx_offload_capa;
	/* A tag that the lower port takes out is told in the mbuf, so a filter here sees it. */
	port->rx_todo = rx & ~port->lower_rx_offloads &
			(RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_VLAN_STRIP |
				RTE_ETH_RX_OFFLOAD_VLAN_FILTER | RTE_ETH_RX_OFFLOAD_TIMESTAMP);
	port->lower_tx_offloads = tx & LOWER_TX & port->lower.tx_offload_capa;
	tx &= ~port->lower_tx_offloads;
	port->tx_todo = 0;
	if (tx & RTE_ETH_TX_OFFLOAD_IPV4_CKSUM)
		port->tx_todo |= RTE_MBUF_F_TX_IP_CKSUM;
	if (tx & RTE_ETH_TX_OFFLOAD_VLAN_INSERT)
		port->tx_todo |= RTE_MBUF_F_TX_VLAN;
	port->tx_udp = (tx & RTE_ETH_TX_OFFLOAD_UDP_CKSUM) != 0;
	port->tx_tcp = (tx & RTE_ETH_TX_OFFLOAD_TCP_CKSUM) != 0;
	port->tx_linear = (tx & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
}

static void
count_queues(struct pmd_port *port)
{
	uint16_t rx = port->args.lower_queues != 0 ? port->args.lower_queues : port->num_rxq;
	uint16_t tx = port->dev->data->nb_tx_queues + (port->roce.engine != NULL ? 1 : 0);

	rx = RTE_MIN(rx, port->lower.max_rx_queues);
	tx = RTE_MIN(tx, port->lower.max_tx_queues);
	port->num_lower_rx = RTE_MIN(rx, PMD_MAX_LOWER_RXQ);
	port->num_lower_tx = RTE_MIN(tx, PMD_MAX_TXQ);
}

/* Whether frames are copied, so that the lower port has buffers of its own. */
static struct rte_mempool *
common_pool(const struct pmd_port *port)
{
	struct rte_mempool *mp = NULL;

	for (uint16_t i = 0; i < port->num_rxq; i++) {
		const struct pmd_rxq *q = port->rxq[i];

		if (q == NULL)
			continue;
		if (q->cring->stock != NULL || (mp != NULL && q->mp != mp))
			return NULL;
		mp = q->mp;
	}
	return mp;
}

static struct rte_mempool *
own_pool(struct pmd_port *port, uint16_t desc)
{
	unsigned int n = port->num_lower_rx * (desc + PMD_BURST) + 2 * POOL_CACHE;
	uint32_t room = RTE_ALIGN_CEIL(RTE_MAX(port->max_frame, 2048u) + RTE_PKTMBUF_HEADROOM, 64);
	char name[RTE_MEMPOOL_NAMESIZE];

	rte_mempool_free(port->lower_pool);
	snprintf(name, sizeof(name), "vrb_lower_%u", port->port_id);
	port->lower_pool = rte_pktmbuf_pool_create(name, n, POOL_CACHE, 0,
		(uint16_t)RTE_MIN(room, (uint32_t)UINT16_MAX), port->dev->data->numa_node);
	if (port->lower_pool == NULL)
		PMD_LOG(ERR, "port %u: no memory for %u buffers of the lower port", port->port_id,
			n);
	return port->lower_pool;
}

static int
setup_queues(struct pmd_port *port)
{
	struct rte_eth_rxconf rxconf = port->lower.default_rxconf;
	struct rte_eth_txconf txconf = port->lower.default_txconf;
	struct rte_mempool *mp = common_pool(port);
	uint16_t rxd = LOWER_DESC, txd = LOWER_DESC, i;
	int rc;

	for (i = 0; i < port->num_rxq && port->rxq[0] != NULL; i++)
		rxd = i == 0 ? port->rxq[0]->nb_desc : rxd;
	if (port->dev->data->nb_tx_queues > 0 && port->dev->data->tx_queues[0] != NULL)
		txd = ((struct pmd_txq *)port->dev->data->tx_queues[0])->nb_desc;
	rc = rte_eth_dev_adjust_nb_rx_tx_desc(port->lower_id, &rxd, &txd);
	if (rc < 0)
		return rc;
	port->lower_mp = mp;
	if (mp == NULL && port->num_lower_rx > 0)
		mp = own_pool(port, rxd);
	if (mp == NULL && port->num_lower_rx > 0)
		return -ENOMEM;
	rxconf.offloads = port->lower_rx_offloads & port->lower.rx_queue_offload_capa;
	rxconf.rx_deferred_start = 0;
	txconf.offloads = port->lower_tx_offloads & port->lower.tx_queue_offload_capa;
	for (i = 0; i < port->num_lower_rx; i++) {
		rc = rte_eth_rx_queue_setup(
			port->lower_id, i, rxd, (unsigned int)SOCKET_ID_ANY, &rxconf, mp);
		if (rc < 0)
			return rc;
	}
	for (i = 0; i < port->num_lower_tx; i++) {
		rc = rte_eth_tx_queue_setup(
			port->lower_id, i, txd, (unsigned int)SOCKET_ID_ANY, &txconf);
		if (rc < 0)
			return rc;
	}
	return 0;
}

int
pmd_lower_configure(struct pmd_port *port)
{
	const struct rte_eth_conf *wanted = &port->dev->data->dev_conf;
	struct rte_eth_conf conf = {.rxmode.mtu = port->dev->data->mtu};
	int rc;

	share_out(port);
	count_queues(port);
	conf.rxmode.offloads = port->lower_rx_offloads;
	conf.txmode.offloads = port->lower_tx_offloads;
	conf.link_speeds = wanted->link_speeds;
	conf.intr_conf.rxq = wanted->intr_conf.rxq;
	if (*port->lower.dev_flags & RTE_ETH_DEV_INTR_LSC)
		conf.intr_conf.lsc = 1;
	if (*port->lower.dev_flags & RTE_ETH_DEV_INTR_RMV)
		conf.intr_conf.rmv = 1;
	if (port->lower.min_mtu > conf.rxmode.mtu || port->lower.max_mtu < conf.rxmode.mtu)
		conf.rxmode.mtu = 0;
	rc = rte_eth_dev_configure(port->lower_id, port->num_lower_rx, port->num_lower_tx, &conf);
	if (rc < 0 && conf.intr_conf.rxq != 0) {
		/* A port that has no Rx interrupts may refuse them only now. */
		conf.intr_conf.rxq = 0;
		rc = rte_eth_dev_configure(
			port->lower_id, port->num_lower_rx, port->num_lower_tx, &conf);
	}
	if (rc == 0)
		rc = setup_queues(port);
	if (rc < 0)
		PMD_LOG(ERR, "port %u: the lower port cannot be configured: %s", port->port_id,
			strerror(-rc));
	return rc;
}

int
pmd_lower_start(struct pmd_port *port)
{
	int rc = rte_eth_dev_start(port->lower_id);

	if (rc < 0) {
		PMD_LOG(ERR, "port %u: the lower port cannot be started: %s", port->port_id,
			strerror(-rc));
		return rc;
	}
	port->lower_started = true;
	return 0;
}

int
pmd_lower_stop(struct pmd_port *port)
{
	int rc = 0;

	if (port->lower_started && !port->lower_gone)
		rc = rte_eth_dev_stop(port->lower_id);
	port->lower_started = false;
	return rc;
}
