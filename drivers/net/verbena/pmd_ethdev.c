/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_verbena: probe and remove, and what the port says of itself.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <bus_vdev_driver.h>
#include <ethdev_vdev.h>
#include <rte_errno.h>

#include "pmd_private.h"

#define VERSION "Verbena " PMD_VERSION

RTE_LOG_REGISTER(pmd_logtype, pmd.net.verbena, NOTICE)

struct pmd_ports pmd_ports = LIST_HEAD_INITIALIZER(pmd_ports);
pthread_mutex_t pmd_ports_lock = PTHREAD_MUTEX_INITIALIZER;
static uint16_t domain = RTE_ETH_DEV_SWITCH_DOMAIN_ID_INVALID;

/* ---- what it can ---- */

static int
infos_get(struct rte_eth_dev *dev, struct rte_eth_dev_info *info)
{
	struct pmd_port *port = pmd_port_of(dev);
	const struct rte_eth_dev_info *lower = &port->lower;

	info->min_mtu = lower->min_mtu;
	info->max_mtu = lower->max_mtu;
	info->max_rx_pktlen = lower->max_rx_pktlen;
	info->min_rx_bufsize = lower->min_rx_bufsize;
	info->if_index = lower->if_index;
	info->speed_capa = lower->speed_capa;
	info->max_mac_addrs = PMD_MAX_MACS;
	info->max_hash_mac_addrs = 0;
	info->max_rx_queues = lower->max_rx_queues == 0 ? 0 : PMD_MAX_RXQ;
	info->max_tx_queues = lower->max_tx_queues == 0 ? 0 : PMD_MAX_TXQ;
	info->rx_offload_capa = RTE_ETH_RX_OFFLOAD_VLAN_STRIP | RTE_ETH_RX_OFFLOAD_VLAN_FILTER |
				RTE_ETH_RX_OFFLOAD_CHECKSUM | RTE_ETH_RX_OFFLOAD_SCATTER |
				RTE_ETH_RX_OFFLOAD_RSS_HASH | RTE_ETH_RX_OFFLOAD_TIMESTAMP;
	info->tx_offload_capa = RTE_ETH_TX_OFFLOAD_VLAN_INSERT | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM |
				RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM |
				RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
	info->reta_size = port->args.reta;
	info->hash_key_size = port->args.key_len;
	info->flow_type_rss_offloads = pmd_rss_types();
	info->dev_capa = RTE_ETH_DEV_CAPA_RXQ_SHARE | RTE_ETH_DEV_CAPA_FLOW_RULE_KEEP |
			 RTE_ETH_DEV_CAPA_RUNTIME_RX_QUEUE_SETUP |
			 RTE_ETH_DEV_CAPA_RUNTIME_TX_QUEUE_SETUP;
	info->switch_info.name = "net_verbena";
	info->switch_info.domain_id = domain;
	info->switch_info.port_id = dev->data->port_id;
	/* Any two ports of this driver may share. */
	info->switch_info.rx_domain = 1;
	info->rx_desc_lim = (struct rte_eth_desc_lim){
		.nb_max = PMD_RING_MAX, .nb_min = PMD_RING_MIN, .nb_align = 1};
	info->tx_desc_lim = lower->tx_desc_lim;
	info->default_rxportconf = (struct rte_eth_dev_portconf){
		.burst_size = 32, .ring_size = PMD_RING_DEFAULT, .nb_queues = 1};
	info->default_txportconf = lower->default_txportconf;
	return 0;
}

static const uint32_t *
ptypes_get(struct rte_eth_dev *dev)
{
	static const uint32_t all[] = {RTE_PTYPE_L2_ETHER, RTE_PTYPE_L2_ETHER_VLAN,
		RTE_PTYPE_L3_IPV4, RTE_PTYPE_L3_IPV4_EXT, RTE_PTYPE_L3_IPV6, RTE_PTYPE_L3_IPV6_EXT,
		RTE_PTYPE_L4_TCP, RTE_PTYPE_L4_UDP, RTE_PTYPE_L4_SCTP, RTE_PTYPE_L4_FRAG,
		RTE_PTYPE_UNKNOWN};
	struct pmd_port *port = pmd_port_of(dev);
	int n;

	if (port->polled)
		return all;
	/* Nobody here looks at the frames. */
	n = rte_eth_dev_get_supported_ptypes(
		port->lower_id, RTE_PTYPE_ALL_MASK, port->ptypes, PMD_MAX_PTYPES - 1);
	if (n <= 0 || n >= PMD_MAX_PTYPES)
		return NULL;
	port->ptypes[n] = RTE_PTYPE_UNKNOWN;
	return port->ptypes;
}

static int
fw_version(struct rte_eth_dev *dev, char *buf, size_t len)
{
	RTE_SET_USED(dev);
	if (len < sizeof(VERSION))
		return sizeof(VERSION);
	memcpy(buf, VERSION, sizeof(VERSION));
	return 0;
}

/* ---- life ---- */

static void
port_free(struct pmd_port *port)
{
	bool ending = pmd_services_gone(port);

	pmd_events_close(port);
	pmd_services_fini(port);
	pmd_intr_fini(port);
	pmd_roce_fini(port);
	pmd_flow_fini(port);
	pmd_pollers_fini(port);
	pmd_lower_close(port, ending);
	rte_mempool_free(port->tx_pool);
	pmd_args_free(&port->args);
	pthread_mutex_destroy(&port->lock);
	free(port);
}

static int
close_port(struct rte_eth_dev *dev)
{
	struct pmd_port *port = pmd_port_of(dev);

	if (rte_eal_process_type() != RTE_PROC_PRIMARY || port == NULL)
		return 0;
	pthread_mutex_lock(&pmd_ports_lock);
	LIST_REMOVE(port, link);
	pthread_mutex_unlock(&pmd_ports_lock);
	/* From here on no event asks about queues. */
	pmd_events_close(port);
	/* ethdev forgets them without a call. */
	for (uint16_t i = 0; i < PMD_MAX_RXQ; i++)
		pmd_rxq_release(dev, i);
	for (uint16_t i = 0; i < dev->data->nb_tx_queues; i++)
		pmd_txq_release(dev, i);
	*(struct pmd_port **)dev->data->dev_private = NULL;
	dev->data->mac_addrs = NULL; /* part of the port */
	port_free(port);
	return 0;
}

static int
reset_port(struct rte_eth_dev *dev)
{
	struct pmd_port *port = pmd_port_of(dev);

	if (port->lower_gone)
		return -EIO;
	/* The program configures it anew, and with it the lower port. */
	if (rte_eth_dev_reset(port->lower_id) < 0)
		PMD_LOG(INFO, "port %u: the lower port has no reset of its own", port->port_id);
	return 0;
}

static const struct eth_dev_ops ops = {
	.dev_configure = pmd_configure,
	.dev_start = pmd_start,
	.dev_stop = pmd_stop,
	.dev_close = close_port,
	.dev_reset = reset_port,
	.dev_set_link_up = pmd_set_link_up,
	.dev_set_link_down = pmd_set_link_down,
	.dev_infos_get = infos_get,
	.dev_supported_ptypes_get = ptypes_get,
	.fw_version_get = fw_version,
	.link_update = pmd_link_update,
	.mtu_set = pmd_mtu_set,
	.promiscuous_enable = pmd_promisc_on,
	.promiscuous_disable = pmd_promisc_off,
	.allmulticast_enable = pmd_allmulti_on,
	.allmulticast_disable = pmd_allmulti_off,
	.mac_addr_set = pmd_mac_set,
	.mac_addr_add = pmd_mac_add,
	.mac_addr_remove = pmd_mac_remove,
	.set_mc_addr_list = pmd_mc_list,
	.flow_ctrl_get = pmd_flow_ctrl_get,
	.flow_ctrl_set = pmd_flow_ctrl_set,
	.read_clock = pmd_read_clock,
	.vlan_filter_set = pmd_vlan_filter,
	.vlan_offload_set = pmd_vlan_offload,
	.rx_queue_setup = pmd_rxq_setup,
	.rx_queue_release = pmd_rxq_release,
	.rx_queue_start = pmd_rxq_start,
	.rx_queue_stop = pmd_rxq_stop,
	.rx_queue_intr_enable = pmd_intr_enable,
	.rx_queue_intr_disable = pmd_intr_disable,
	.rx_queue_avail_thresh_set = pmd_thresh_set,
	.rx_queue_avail_thresh_query = pmd_thresh_query,
	.get_monitor_addr = pmd_rx_monitor,
	.rxq_info_get = pmd_rxq_info,
	.rx_burst_mode_get = pmd_rx_burst_mode,
	.tx_queue_setup = pmd_txq_setup,
	.tx_queue_release = pmd_txq_release,
	.tx_queue_start = pmd_txq_start,
	.tx_queue_stop = pmd_txq_stop,
	.tx_done_cleanup = pmd_tx_done,
	.set_queue_rate_limit = pmd_tx_rate,
	.txq_info_get = pmd_txq_info,
	.tx_burst_mode_get = pmd_tx_burst_mode,
	.reta_update = pmd_reta_update,
	.reta_query = pmd_reta_query,
	.rss_hash_update = pmd_rss_hash_update,
	.rss_hash_conf_get = pmd_rss_hash_conf_get,
	.flow_ops_get = pmd_flow_ops_get,
	.stats_get = pmd_stats_get,
	.stats_reset = pmd_stats_reset,
	.xstats_get = pmd_xstats_get,
	.xstats_get_names = pmd_xstats_names,
	.xstats_reset = pmd_stats_reset,
	.eth_dev_priv_dump = pmd_priv_dump,
};

struct pmd_port *
pmd_port_find(uint16_t port_id)
{
	struct rte_eth_dev *dev;

	if (!rte_eth_dev_is_valid_port(port_id))
		return NULL;
	dev = &rte_eth_devices[port_id];
	return dev->dev_ops == &ops ? pmd_port_of(dev) : NULL;
}

static void
dev_fill(struct rte_eth_dev *dev, struct pmd_port *port)
{
	struct rte_eth_dev_data *data = dev->data;

	data->mac_addrs = port->macs;
	data->dev_flags |= RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS | RTE_ETH_DEV_INTR_RMV |
			   (*port->lower.dev_flags & RTE_ETH_DEV_INTR_LSC);
	rte_eth_dev_get_mtu(port->lower_id, &data->mtu);
	data->numa_node = rte_eth_dev_socket_id(port->lower_id);
	dev->dev_ops = &ops;
	dev->rx_pkt_burst = pmd_rx_burst;
	dev->tx_pkt_burst = pmd_tx_burst;
	dev->rx_queue_count = pmd_rx_count;
	dev->rx_descriptor_status = pmd_rx_desc_status;
	dev->tx_descriptor_status = pmd_tx_desc_status;
}

static struct pmd_port *
port_new(struct rte_eth_dev *dev)
{
	struct pmd_port *port = aligned_alloc(
		RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL(sizeof(*port), RTE_CACHE_LINE_SIZE));
	pthread_mutexattr_t attr;

	if (port == NULL)
		return NULL;
	memset(port, 0, sizeof(*port));
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&port->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	TAILQ_INIT(&port->flow_list);
	port->dev = dev;
	port->port_id = dev->data->port_id;
	port->event_fd = -1;
	for (uint32_t i = 0; i < RTE_DIM(port->tx_locks); i++)
		rte_spinlock_init(&port->tx_locks[i]);
	return port;
}

static int
bring_up(struct pmd_port *port, struct rte_eth_dev *dev)
{
	int rc;

	vrb_clock_begin(&port->clock);
	rc = pmd_lower_open(port);
	if (rc == 0)
		rc = rte_eth_macaddr_get(port->lower_id, &port->macs[0]);
	if (rc == 0)
		rc = pmd_events_open(port);
	if (rc == 0)
		rc = pmd_services_init(port);
	if (rc < 0)
		return rc;
	pmd_rss_init(port);
	pmd_mac_init(port);
	dev_fill(dev, port);
	if (port->args.ip != NULL)
		rc = pmd_roce_set_ip(port, port->args.ip);
	vrb_clock_end(&port->clock);
	return rc;
}

static int
probe(struct rte_vdev_device *vdev)
{
	const char *name = rte_vdev_device_name(vdev);
	struct pmd_args args;
	struct rte_eth_dev *dev;
	struct pmd_port *port;
	int rc;

	if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
		PMD_LOG(ERR,
			"%s: not available in a secondary process: its queues and pollers are in "
			"the memory of the primary one",
			name);
		return -ENOTSUP;
	}
	rc = pmd_args_parse(name, rte_vdev_device_args(vdev), &args);
	if (rc < 0)
		return rc;
	pmd_gate_init();
	pmd_telemetry_init();
	if (domain == RTE_ETH_DEV_SWITCH_DOMAIN_ID_INVALID)
		rte_eth_switch_domain_alloc(&domain);
	dev = rte_eth_vdev_allocate(vdev, sizeof(struct pmd_port *));
	port = dev == NULL ? NULL : port_new(dev);
	if (port == NULL) {
		pmd_args_free(&args);
		if (dev != NULL)
			rte_eth_dev_release_port(dev);
		return -ENOMEM;
	}
	port->args = args;
	rc = bring_up(port, dev);
	if (rc < 0) {
		dev->data->mac_addrs = NULL;
		rte_eth_dev_release_port(dev);
		port_free(port);
		return rc;
	}
	*(struct pmd_port **)dev->data->dev_private = port;
	pthread_mutex_lock(&pmd_ports_lock);
	LIST_INSERT_HEAD(&pmd_ports, port, link);
	pthread_mutex_unlock(&pmd_ports_lock);
	rte_eth_dev_probing_finish(dev);
	return 0;
}

static int
remove_port(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));

	if (dev == NULL)
		return 0; /* closed already */
	if (dev->data->dev_started)
		rte_eth_dev_stop(dev->data->port_id);
	return rte_eth_dev_close(dev->data->port_id);
}

static struct rte_vdev_driver driver = {
	.probe = probe,
	.remove = remove_port,
};

RTE_PMD_REGISTER_VDEV(net_verbena, driver);
RTE_PMD_REGISTER_PARAM_STRING(net_verbena,
	"dev(<devargs>) port=<name> ip=<address> pollers=<n> lower_queues=<n> reta=<64..1024> "
	"rss_key=<40|52> rx_copy=<0|1> rss_roce=<0|1> mac_filter=<0|1>");
