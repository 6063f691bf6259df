/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Control calls: configure, start and stop, and what is passed on to the lower port.
 */
#include <errno.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_mbuf_dyn.h>

#include "pmd_private.h"
#include "pmd_trace.h"

/* Ethernet header, CRC and two VLAN tags around the MTU. */
#define FRAME_OVERHEAD (RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN + 2 * RTE_VLAN_HLEN)
#define TX_POOL_MBUFS 1023
#define TX_POOL_CACHE 128

int
pmd_configure(struct rte_eth_dev *dev)
{
	struct pmd_port *port = pmd_port_of(dev);
	int rc;

	pthread_mutex_lock(&port->lock);
	rc = port->lower_gone ? -EIO : pmd_flow_check_queues(port, dev->data->nb_rx_queues);
	if (rc == 0) {
		port->num_rxq = dev->data->nb_rx_queues;
		port->max_frame = dev->data->mtu + FRAME_OVERHEAD;
		rc = pmd_rss_configure(port);
	}
	pthread_mutex_unlock(&port->lock);
	return rc;
}

/* ---- start and stop ---- */

static int
check_queues(const struct pmd_port *port)
{
	const struct rte_eth_dev_data *data = port->dev->data;

	for (uint16_t i = 0; i < port->num_rxq; i++) {
		if (port->rxq[i] == NULL) {
			PMD_LOG(ERR, "port %u: Rx queue %u is not set up", port->port_id, i);
			return -EINVAL;
		}
	}
	for (uint16_t i = 0; i < data->nb_tx_queues; i++) {
		if (data->tx_queues[i] == NULL) {
			PMD_LOG(ERR, "port %u: Tx queue %u is not set up", port->port_id, i);
			return -EINVAL;
		}
	}
	if (port->num_rxq > 0 && port->lower.max_rx_queues == 0) {
		PMD_LOG(ERR, "port %u: the lower port receives nothing", port->port_id);
		return -EINVAL;
	}
	return 0;
}

/* Frames that the lower port could not take as they are. */
static int
make_tx_pool(struct pmd_port *port)
{
	uint32_t room = RTE_ALIGN_CEIL(port->max_frame + RTE_PKTMBUF_HEADROOM, 64);
	char name[RTE_MEMPOOL_NAMESIZE];

	rte_mempool_free(port->tx_pool);
	port->tx_pool = NULL;
	if (port->tx_todo == 0 && !port->tx_udp && !port->tx_tcp && !port->tx_linear)
		return 0;
	snprintf(name, sizeof(name), "vrb_copy_%u", port->port_id);
	port->tx_pool = rte_pktmbuf_pool_create(name, TX_POOL_MBUFS, TX_POOL_CACHE, 0,
		(uint16_t)RTE_MIN(room, (uint32_t)UINT16_MAX), SOCKET_ID_ANY);
	if (port->tx_pool == NULL)
		PMD_LOG(ERR, "port %u: no memory for frames to be copied", port->port_id);
	return port->tx_pool == NULL ? -ENOMEM : 0;
}

static void
set_queue_states(struct pmd_port *port, bool started)
{
	struct rte_eth_dev_data *data = port->dev->data;
	uint8_t off = RTE_ETH_QUEUE_STATE_STOPPED;

	for (uint16_t i = 0; i < port->num_rxq; i++) {
		if (port->rxq[i] == NULL)
			continue; /* not set up again before the port is stopped */
		port->rxq[i]->stopped = port->rxq[i]->conf.rx_deferred_start != 0;
		data->rx_queue_state[i] =
			started && !port->rxq[i]->stopped ? RTE_ETH_QUEUE_STATE_STARTED : off;
	}
	for (uint16_t i = 0; i < data->nb_tx_queues; i++) {
		const struct pmd_txq *q = data->tx_queues[i];

		data->tx_queue_state[i] =
			started && !q->conf.tx_deferred_start ? RTE_ETH_QUEUE_STATE_STARTED : off;
	}
}

static int
start(struct pmd_port *port)
{
	int rc = port->lower_gone ? -EIO : check_queues(port);

	if (rc == 0)
		rc = pmd_rxq_prepare(port);
	if (rc == 0)
		rc = pmd_lower_configure(port);
	if (rc == 0)
		rc = make_tx_pool(port);
	if (rc == 0 && (port->rx_todo & RTE_ETH_RX_OFFLOAD_TIMESTAMP) &&
		rte_mbuf_dyn_rx_timestamp_register(&port->stamp_offset, &port->stamp_flag) < 0)
		rc = -rte_errno;
	if (rc == 0)
		rc = pmd_pollers_init(port);
	if (rc == 0)
		rc = pmd_roce_start(port);
	if (rc == 0)
		rc = pmd_lower_start(port);
	if (rc == 0)
		rc = pmd_mac_start(port);
	if (rc == 0)
		rc = pmd_intr_setup(port);
	return rc;
}

int
pmd_start(struct rte_eth_dev *dev)
{
	struct pmd_port *port = pmd_port_of(dev);
	int rc;

	pthread_mutex_lock(&port->lock);
	pmd_gates_close(port);
	rc = start(port);
	if (rc == 0) {
		/* Last, so that pollers which others may run see all of it. */
		pmd_pollers_lock(port);
		set_queue_states(port, true);
		port->started = true;
		port->polled = false;
		pmd_mode_update(port);
		pmd_pollers_unlock(port);
		pmd_rx_choose(port);
		pmd_tx_choose(port);
	}
	pmd_gates_open(port);
	if (rc == 0)
		pmd_services_run(port, true);
	else
		pmd_lower_stop(port);
	pthread_mutex_unlock(&port->lock);
	pmd_trace_start(port->port_id, port->num_rxq, port->polled ? port->num_pollers : 0, rc);
	if (rc == 0)
		pmd_link_update(dev, 0);
	return rc;
}

int
pmd_stop(struct rte_eth_dev *dev)
{
	struct pmd_port *port = pmd_port_of(dev);
	struct rte_eth_link down = {.link_status = RTE_ETH_LINK_DOWN};
	int rc;

	pthread_mutex_lock(&port->lock);
	pmd_services_run(port, false);
	pmd_gates_close(port);
	pmd_pollers_lock(port);
	port->started = false;
	set_queue_states(port, false);
	pmd_roce_stop(port);
	pmd_pollers_unlock(port);
	/* Without the batons: it may tell of events. Nobody touches the port any more. */
	rc = pmd_lower_stop(port);
	pmd_pollers_lock(port);
	for (uint16_t i = 0; i < port->num_rxq; i++) {
		/* Frames of others in a shared queue are theirs. */
		if (port->rxq[i] != NULL && port->rxq[i]->share == NULL) {
			pmd_rxq_drain(port->rxq[i]);
			pmd_cring_arm(port->rxq[i]->cring, 0);
		}
	}
	atomic_fetch_and(&port->events, ~PMD_EVENT_THRESH);
	pmd_pollers_unlock(port);
	pmd_gates_open(port);
	rte_eth_linkstatus_set(dev, &down);
	pthread_mutex_unlock(&port->lock);
	pmd_trace_stop(port->port_id);
	return rc;
}

/* ---- passed on ---- */

int
pmd_mtu_set(struct rte_eth_dev *dev, uint16_t mtu)
{
	struct pmd_port *port = pmd_port_of(dev);
	int rc = 0;

	pthread_mutex_lock(&port->lock);
	/* Until it is started the lower port has not been configured for this. */
	if (port->lower_started)
		rc = rte_eth_dev_set_mtu(port->lower_id, mtu);
	if (rc == -ENOTSUP) /* it takes frames of any length */
		rc = 0;
	if (rc == 0) {
		pmd_pollers_lock(port);
		port->max_frame = mtu + FRAME_OVERHEAD;
		pmd_pollers_unlock(port);
	}
	pthread_mutex_unlock(&port->lock);
	return rc;
}

int
pmd_link_update(struct rte_eth_dev *dev, int wait)
{
	struct pmd_port *port = pmd_port_of(dev);
	struct rte_eth_link link = {.link_status = RTE_ETH_LINK_DOWN};

	if (!port->lower_gone && port->started) {
		if (wait)
			rte_eth_link_get(port->lower_id, &link);
		else
			rte_eth_link_get_nowait(port->lower_id, &link);
	}
	return rte_eth_linkstatus_set(dev, &link);
}

int
pmd_set_link_up(struct rte_eth_dev *dev)
{
	struct pmd_port *port = pmd_port_of(dev);

	return port->lower_gone ? -EIO : rte_eth_dev_set_link_up(port->lower_id);
}

int
pmd_set_link_down(struct rte_eth_dev *dev)
{
	struct pmd_port *port = pmd_port_of(dev);

	return port->lower_gone ? -EIO : rte_eth_dev_set_link_down(port->lower_id);
}

int
pmd_flow_ctrl_get(struct rte_eth_dev *dev, struct rte_eth_fc_conf *conf)
{
	struct pmd_port *port = pmd_port_of(dev);

	return port->lower_gone ? -EIO : rte_eth_dev_flow_ctrl_get(port->lower_id, conf);
}

int
pmd_flow_ctrl_set(struct rte_eth_dev *dev, struct rte_eth_fc_conf *conf)
{
	struct pmd_port *port = pmd_port_of(dev);

	return port->lower_gone ? -EIO : rte_eth_dev_flow_ctrl_set(port->lower_id, conf);
}

/* What frames are stamped by. */
int
pmd_read_clock(struct rte_eth_dev *dev, uint64_t *clock)
{
	RTE_SET_USED(dev);
	*clock = rte_rdtsc();
	return 0;
}

/* ---- VLAN ---- */

int
pmd_vlan_filter(struct rte_eth_dev *dev, uint16_t vlan, int on)
{
	struct pmd_port *port = pmd_port_of(dev);

	pthread_mutex_lock(&port->lock);
	pmd_pollers_lock(port);
	if (on)
		port->vlans[vlan / 64] |= RTE_BIT64(vlan % 64);
	else
		port->vlans[vlan / 64] &= ~RTE_BIT64(vlan % 64);
	pmd_pollers_unlock(port);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

/* ethdev has changed rxmode.offloads already. What was given to the lower port at start stays
 * there; of the rest the pollers do more or less from now on. */
int
pmd_vlan_offload(struct rte_eth_dev *dev, int mask)
{
	struct pmd_port *port = pmd_port_of(dev);
	uint64_t wanted = dev->data->dev_conf.rxmode.offloads &
			  (RTE_ETH_RX_OFFLOAD_VLAN_STRIP | RTE_ETH_RX_OFFLOAD_VLAN_FILTER);
	int rc = 0;

	if (mask & ~(RTE_ETH_VLAN_STRIP_MASK | RTE_ETH_VLAN_FILTER_MASK))
		return -ENOTSUP;
	pthread_mutex_lock(&port->lock);
	if (!port->started) {
		pthread_mutex_unlock(&port->lock);
		return 0; /* shared out at start */
	}
	if (port->lower_rx_offloads & RTE_ETH_RX_OFFLOAD_VLAN_STRIP) {
		int lower =
			rte_eth_dev_get_vlan_offload(port->lower_id) & ~RTE_ETH_VLAN_STRIP_OFFLOAD;

		if (wanted & RTE_ETH_RX_OFFLOAD_VLAN_STRIP)
			lower |= RTE_ETH_VLAN_STRIP_OFFLOAD;
		rc = rte_eth_dev_set_vlan_offload(port->lower_id, lower);
		wanted &= ~RTE_ETH_RX_OFFLOAD_VLAN_STRIP;
	}
	if (rc == 0) {
		pmd_gates_close(port);
		pmd_pollers_lock(port);
		port->rx_todo &=
			~(uint64_t)(RTE_ETH_RX_OFFLOAD_VLAN_STRIP | RTE_ETH_RX_OFFLOAD_VLAN_FILTER);
		port->rx_todo |= wanted;
		pmd_mode_update(port);
		pmd_pollers_unlock(port);
		pmd_gates_open(port);
	}
	pthread_mutex_unlock(&port->lock);
	return rc;
}
