/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan: figures. The data path only counts up; a reset remembers where the counters stood.
 */
#include <stdio.h>

#include "shmlan_private.h"

/* Every reason for a loss has a counter of its own. */
static const struct {
	const char *name;
	bool tx;
	unsigned int idx;
} xstat_table[] = {
	/* Not for our address; longer than our MTU; rings whose sender broke the rules. */
	{"rx_drop_filter", false, SHM_RX_DROP_FILTER},
	{"rx_drop_mtu", false, SHM_RX_DROP_MTU},
	{"rx_bad_ring", false, SHM_RX_BAD_RING},
	/* Nobody has the address; its owner is stopped, or has just gone; no means for a ring. */
	{"tx_drop_unknown", true, SHM_TX_DROP_UNKNOWN},
	{"tx_drop_down", true, SHM_TX_DROP_DOWN},
	{"tx_drop_no_ring", true, SHM_TX_DROP_NO_RING},
	/* A copy of a flooded frame, for a member whose ring was full. */
	{"tx_drop_full", true, SHM_TX_DROP_FULL},
	/* The frame's memory has gone away; it is too short or too long, or does not add up. */
	{"tx_drop_fault", true, SHM_TX_DROP_FAULT},
	{"tx_drop_runt", true, SHM_TX_DROP_RUNT},
	{"tx_drop_long", true, SHM_TX_DROP_LONG},
	{"tx_drop_malformed", true, SHM_TX_DROP_MALFORMED},
	/* The ring's receiver broke its rules; sent, but not read before the peer went away. */
	{"tx_bad_ring", true, SHM_TX_BAD_RING},
	{"tx_lost", true, SHM_TX_LOST},
	/* No losses: bursts cut short by back-pressure, and sleeping receivers woken. */
	{"tx_full", true, SHM_TX_FULL},
	{"tx_kicks", true, SHM_TX_KICKS},
};

static uint64_t
rx_stat(const struct shm_port *port, enum shm_rx_stat i)
{
	return atomic_load_explicit(&port->rx.stat[i], memory_order_relaxed) - port->rx_base[i];
}

static uint64_t
tx_stat(const struct shm_port *port, enum shm_tx_stat i)
{
	return atomic_load_explicit(&port->tx.stat[i], memory_order_relaxed) - port->tx_base[i];
}

int
vrb_shmlan_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats)
{
	const struct shm_port *port = shm_port_of(dev);
	unsigned int i;

	stats->ipackets = stats->q_ipackets[0] = rx_stat(port, SHM_RX_PACKETS);
	stats->ibytes = stats->q_ibytes[0] = rx_stat(port, SHM_RX_BYTES);
	stats->opackets = stats->q_opackets[0] = tx_stat(port, SHM_TX_PACKETS);
	stats->obytes = stats->q_obytes[0] = tx_stat(port, SHM_TX_BYTES);
	stats->rx_nombuf = rx_stat(port, SHM_RX_NOMBUF);
	stats->ierrors = rx_stat(port, SHM_RX_DROP_MTU) + rx_stat(port, SHM_RX_BAD_RING);
	stats->oerrors = 0;
	for (i = SHM_TX_DROP_UNKNOWN; i <= SHM_TX_BAD_RING; i++)
		stats->oerrors += tx_stat(port, i);
	return 0;
}

int
vrb_shmlan_stats_reset(struct rte_eth_dev *dev)
{
	struct shm_port *port = shm_port_of(dev);
	unsigned int i;

	for (i = 0; i < SHM_RX_STATS; i++)
		port->rx_base[i] += rx_stat(port, i);
	for (i = 0; i < SHM_TX_STATS; i++)
		port->tx_base[i] += tx_stat(port, i);
	return 0;
}

int
vrb_shmlan_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *xs, unsigned int n)
{
	const struct shm_port *port = shm_port_of(dev);
	unsigned int i;

	if (xs == NULL || n < RTE_DIM(xstat_table))
		return RTE_DIM(xstat_table);
	for (i = 0; i < RTE_DIM(xstat_table); i++) {
		xs[i].id = i;
		xs[i].value = xstat_table[i].tx ? tx_stat(port, xstat_table[i].idx)
						: rx_stat(port, xstat_table[i].idx);
	}
	return RTE_DIM(xstat_table);
}

int
vrb_shmlan_xstats_names(struct rte_eth_dev *dev, struct rte_eth_xstat_name *names, unsigned int n)
{
	unsigned int i;

	RTE_SET_USED(dev);
	if (names == NULL || n < RTE_DIM(xstat_table))
		return RTE_DIM(xstat_table);
	for (i = 0; i < RTE_DIM(xstat_table); i++)
		snprintf(names[i].name, sizeof(names[i].name), "%s", xstat_table[i].name);
	return RTE_DIM(xstat_table);
}
