/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan: the ethdev port: probe and remove, and ethdev's operations.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ethdev_driver.h>
#include <ethdev_vdev.h>
#include <bus_vdev_driver.h>
#include <rte_mbuf_dyn.h>

#include "guard.h"
#include "shmlan_private.h"

RTE_LOG_REGISTER(vrb_shmlan_logtype, pmd.net.shmlan, NOTICE)

/* ---- configuration ---- */

/* With port->lock: the Rx path takes port->filter over when its next burst starts. */
static void
filter_changed(struct shm_port *port)
{
	atomic_fetch_or_explicit(&port->rx.change, SHM_CHANGE_FILTER, memory_order_release);
}

static int
shm_configure(struct rte_eth_dev *dev)
{
	struct shm_port *port = shm_port_of(dev);

	pthread_mutex_lock(&port->lock);
	port->filter.max_len = dev->data->mtu + SHM_HDR_LEN;
	filter_changed(port);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

static int
shm_mtu_set(struct rte_eth_dev *dev, uint16_t mtu)
{
	struct shm_port *port = shm_port_of(dev);

	pthread_mutex_lock(&port->lock);
	port->filter.max_len = mtu + SHM_HDR_LEN;
	filter_changed(port);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

static int
shm_infos_get(struct rte_eth_dev *dev, struct rte_eth_dev_info *info)
{
	const struct shm_port *port = shm_port_of(dev);

	info->min_mtu = VRB_SHMLAN_MTU_MIN;
	info->max_mtu = VRB_SHMLAN_MTU_MAX;
	info->max_rx_pktlen = SHM_FRAME_MAX;
	info->min_rx_bufsize = VRB_SHMLAN_HDR_COPY;
	info->max_rx_queues = 1;
	info->max_tx_queues = 1;
	info->max_mac_addrs = 1;
	info->if_index = 0;
	info->speed_capa = RTE_ETH_LINK_SPEED_100G | RTE_ETH_LINK_SPEED_FIXED;
	info->rx_offload_capa = RTE_ETH_RX_OFFLOAD_SCATTER;
	info->tx_offload_capa = RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	/* The rings are made by the senders; the numbers of descriptors are those of one such ring.
	 */
	info->rx_desc_lim =
		(struct rte_eth_desc_lim){.nb_max = VRB_RING_SLOTS_MAX, .nb_min = 1, .nb_align = 1};
	info->tx_desc_lim = (struct rte_eth_desc_lim){.nb_max = VRB_RING_SLOTS_MAX,
		.nb_min = 1,
		.nb_align = 1,
		.nb_seg_max = UINT16_MAX,
		.nb_mtu_seg_max = UINT16_MAX};
	info->default_rxportconf = (struct rte_eth_dev_portconf){
		.burst_size = 32, .nb_queues = 1, .ring_size = port->args.slots};
	info->default_txportconf = info->default_rxportconf;
	return 0;
}

static int
shm_rx_queue_setup(struct rte_eth_dev *dev, uint16_t queue, uint16_t ndesc, unsigned int socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *pool)
{
	struct shm_port *port = shm_port_of(dev);
	unsigned int size = rte_pktmbuf_data_room_size(pool);

	RTE_SET_USED(ndesc);
	RTE_SET_USED(socket);
	RTE_SET_USED(conf);
	if (size < RTE_PKTMBUF_HEADROOM + VRB_SHMLAN_HDR_COPY) {
		SHM_LOG(ERR, "port %u: mbufs of %u bytes are too small, at least %u are needed",
			port->port_id, size, RTE_PKTMBUF_HEADROOM + VRB_SHMLAN_HDR_COPY);
		return -EINVAL;
	}
	port->rx.pool = pool;
	port->rx.room = size - RTE_PKTMBUF_HEADROOM;
	/* Mbufs whose buffer is pinned cannot be attached to another one. */
	port->rx.zc = port->args.rx_zc &&
		      (rte_pktmbuf_priv_flags(pool) & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF) == 0;
	dev->data->rx_queues[queue] = &port->rx;
	return 0;
}

static int
shm_tx_queue_setup(struct rte_eth_dev *dev, uint16_t queue, uint16_t ndesc, unsigned int socket,
	const struct rte_eth_txconf *conf)
{
	RTE_SET_USED(ndesc);
	RTE_SET_USED(socket);
	RTE_SET_USED(conf);
	dev->data->tx_queues[queue] = &shm_port_of(dev)->tx;
	return 0;
}

static void
shm_rx_queue_release(struct rte_eth_dev *dev, uint16_t queue)
{
	RTE_SET_USED(queue);
	shm_port_of(dev)->rx.pool = NULL;
}

static void
shm_rxq_info(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_rxq_info *info)
{
	const struct shm_port *port = shm_port_of(dev);

	RTE_SET_USED(queue);
	info->mp = port->rx.pool;
	info->nb_desc = port->args.slots;
	info->scattered_rx = dev->data->scattered_rx;
}

static void
shm_txq_info(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_txq_info *info)
{
	RTE_SET_USED(queue);
	info->nb_desc = shm_port_of(dev)->args.slots;
}

static int
shm_rx_burst_mode(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_burst_mode *mode)
{
	RTE_SET_USED(queue);
	snprintf(mode->info, sizeof(mode->info), "%s",
		shm_port_of(dev)->rx.zc ? "Copied headers, payload in place" : "Copied");
	return 0;
}

static int
shm_tx_burst_mode(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_burst_mode *mode)
{
	RTE_SET_USED(dev);
	RTE_SET_USED(queue);
	snprintf(mode->info, sizeof(mode->info), "Copied");
	return 0;
}

/* ---- start, stop, link ---- */

static int
shm_start(struct rte_eth_dev *dev)
{
	struct shm_port *port = shm_port_of(dev);
	int rc;

	if (port->pid != getpid())
		return -EPERM;
	/* As other drivers do: chains are made when they are needed, asked for or not. */
	dev->data->scattered_rx =
		port->rx.zc || dev->data->mtu + SHM_HDR_LEN > port->rx.room ||
		(dev->data->dev_conf.rxmode.offloads & RTE_ETH_RX_OFFLOAD_SCATTER) != 0;
	pthread_mutex_lock(&port->lock);
	vrb_shmlan_rx_discard(port);
	vrb_bell_clear(port->bell->page, VRB_BELL_SLEEPING);
	port->started = true;
	port->link_told = false;
	pthread_mutex_unlock(&port->lock);

	rc = vrb_shmlan_reg_set_flags(&port->reg, SHM_ENTRY_UP, 0);
	if (rc != 0) {
		port->started = false;
		return rc;
	}
	dev->data->rx_queue_state[0] = RTE_ETH_QUEUE_STATE_STARTED;
	dev->data->tx_queue_state[0] = RTE_ETH_QUEUE_STATE_STARTED;
	/* The control thread tells the link's state: an event must not come out of
	 * rte_eth_dev_start(). */
	vrb_shmlan_ctl_kick(port);
	return 0;
}

static int
shm_stop(struct rte_eth_dev *dev)
{
	struct shm_port *port = shm_port_of(dev);
	struct rte_eth_link link = {.link_status = RTE_ETH_LINK_DOWN};

	if (port->pid != getpid())
		return -EPERM;
	pthread_mutex_lock(&port->lock);
	port->started = false;
	rte_eth_linkstatus_set(dev, &link);
	pthread_mutex_unlock(&port->lock);
	dev->data->rx_queue_state[0] = RTE_ETH_QUEUE_STATE_STOPPED;
	dev->data->tx_queue_state[0] = RTE_ETH_QUEUE_STATE_STOPPED;
	return vrb_shmlan_reg_set_flags(&port->reg, 0, SHM_ENTRY_UP);
}

static int
shm_link_update(struct rte_eth_dev *dev, int wait)
{
	struct shm_port *port = shm_port_of(dev);
	struct rte_eth_link link = {.link_speed = RTE_ETH_SPEED_NUM_100G,
		.link_duplex = RTE_ETH_LINK_FULL_DUPLEX,
		.link_autoneg = RTE_ETH_LINK_FIXED};

	RTE_SET_USED(wait);
	link.link_status = port->started && vrb_shmlan_reg_others_up(&port->reg) != 0;
	return rte_eth_linkstatus_set(dev, &link);
}

/* ---- addresses ---- */

static int
shm_set_promisc(struct rte_eth_dev *dev, bool on)
{
	struct shm_port *port = shm_port_of(dev);
	int rc;

	rc = vrb_shmlan_reg_set_flags(
		&port->reg, on ? SHM_ENTRY_PROMISC : 0, on ? 0 : SHM_ENTRY_PROMISC);
	if (rc != 0)
		return rc;
	pthread_mutex_lock(&port->lock);
	port->filter.promisc = on;
	filter_changed(port);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

static int
shm_promisc_on(struct rte_eth_dev *dev)
{
	return shm_set_promisc(dev, true);
}

static int
shm_promisc_off(struct rte_eth_dev *dev)
{
	return shm_set_promisc(dev, false);
}

static int
shm_set_allmulti(struct rte_eth_dev *dev, bool on)
{
	struct shm_port *port = shm_port_of(dev);

	pthread_mutex_lock(&port->lock);
	port->filter.allmulti = on;
	filter_changed(port);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

static int
shm_allmulti_on(struct rte_eth_dev *dev)
{
	return shm_set_allmulti(dev, true);
}

static int
shm_allmulti_off(struct rte_eth_dev *dev)
{
	return shm_set_allmulti(dev, false);
}

static int
shm_mac_set(struct rte_eth_dev *dev, struct rte_ether_addr *mac)
{
	struct shm_port *port = shm_port_of(dev);
	char text[RTE_ETHER_ADDR_FMT_SIZE];
	int rc;

	rc = vrb_shmlan_reg_set_mac(&port->reg, mac);
	if (rc == -EADDRINUSE) {
		rte_ether_format_addr(text, sizeof(text), mac);
		SHM_LOG(ERR,
			"port %u: the address %s is in use by another living member of segment %s",
			port->port_id, text, port->reg.path);
	}
	if (rc != 0)
		return rc;
	pthread_mutex_lock(&port->lock);
	port->mac = *mac;
	port->filter.mac = shm_mac_key(mac);
	filter_changed(port);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

static int
shm_mc_list(struct rte_eth_dev *dev, struct rte_ether_addr *list, uint32_t n)
{
	struct shm_port *port = shm_port_of(dev);
	uint32_t i;

	if (n > VRB_SHMLAN_MC_MAX) {
		SHM_LOG(ERR,
			"port %u: %u multicast addresses, at most %u are possible; use "
			"allmulticast",
			port->port_id, n, VRB_SHMLAN_MC_MAX);
		return -ENOSPC;
	}
	for (i = 0; i < n; i++) {
		if (!rte_is_multicast_ether_addr(&list[i]))
			return -EINVAL;
	}
	pthread_mutex_lock(&port->lock);
	for (i = 0; i < n; i++)
		port->filter.mc[i] = shm_mac_key(&list[i]);
	port->filter.nmc = n;
	filter_changed(port);
	pthread_mutex_unlock(&port->lock);
	return 0;
}

/* ---- sleep ---- */

/* By the thread that receives. See shmlan.h for how it is used. */
static int
shm_intr_enable(struct rte_eth_dev *dev, uint16_t queue)
{
	struct shm_port *port = shm_port_of(dev);

	RTE_SET_USED(queue);
	vrb_bell_set(port->bell->page, VRB_BELL_SLEEPING);
	/* A frame that was written before its sender could see the flag, or a change nobody will
	 * announce again. */
	if (vrb_shmlan_rx_any(&port->rx))
		vrb_shmlan_bell_wake(port->bell);
	return 0;
}

static int
shm_intr_disable(struct rte_eth_dev *dev, uint16_t queue)
{
	struct shm_port *port = shm_port_of(dev);
	uint64_t n;

	RTE_SET_USED(queue);
	/* Somebody who has cleared the flag may be about to write: that wakes the next sleep for
	 * nothing, which is allowed. */
	if ((vrb_bell_clear(port->bell->page, VRB_BELL_SLEEPING) & VRB_BELL_SLEEPING) == 0 &&
		read(port->bell->evfd, &n, sizeof(n)) < 0)
		return 0;
	return 0;
}

/* What rte_eth_dev_rx_intr_ctl*() look at: one vector, one eventfd. */
static int
rx_intr_open(struct shm_port *port)
{
	struct rte_intr_handle *h = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);

	if (h == NULL)
		return -ENOMEM;
	port->rx_intr = h;
	if (rte_intr_vec_list_alloc(h, NULL, 1) != 0 || rte_intr_vec_list_index_set(h, 0, 0) != 0 ||
		rte_intr_efds_index_set(h, 0, port->bell->evfd) != 0 ||
		rte_intr_nb_efd_set(h, 1) != 0 || rte_intr_max_intr_set(h, 2) != 0 ||
		rte_intr_type_set(h, RTE_INTR_HANDLE_VDEV) != 0 ||
		rte_intr_efd_counter_size_set(h, sizeof(uint64_t)) != 0)
		return -ENOMEM;
	port->dev->intr_handle = h;
	return 0;
}

/* ---- the life of a port ---- */

static void
port_free(struct shm_port *port)
{
	vrb_shmlan_fork_remove(port);
	if (port->rx_intr != NULL) {
		port->dev->intr_handle = NULL;
		rte_intr_vec_list_free(port->rx_intr);
		rte_intr_instance_free(port->rx_intr);
	}
	if (port->bell != NULL)
		vrb_shmlan_bell_put(port->bell);
	pthread_mutex_destroy(&port->reg.lock);
	pthread_mutex_destroy(&port->lock);
	free(port);
}

/* First out of the registry, then hang up: so peers see that we have left, and do not look for the
 * dead. */
static void
port_leave(struct shm_port *port)
{
	vrb_shmlan_link_detach(port);
	vrb_shmlan_reg_leave(&port->reg);
	vrb_shmlan_link_close(port);
}

static int
shm_close(struct rte_eth_dev *dev)
{
	struct shm_port *port = shm_port_of(dev);

	if (port == NULL)
		return 0;
	/* A child of fork(2) has nothing to close: what it sees is its parent's. */
	if (port->pid != getpid())
		return -EPERM;
	port_leave(port);
	*(struct shm_port **)dev->data->dev_private = NULL;
	dev->data->mac_addrs = NULL; /* part of the port */
	port_free(port);
	return 0;
}

static const struct eth_dev_ops shm_ops = {
	.dev_configure = shm_configure,
	.dev_start = shm_start,
	.dev_stop = shm_stop,
	.dev_close = shm_close,
	.dev_infos_get = shm_infos_get,
	.rx_queue_setup = shm_rx_queue_setup,
	.rx_queue_release = shm_rx_queue_release,
	.tx_queue_setup = shm_tx_queue_setup,
	.rxq_info_get = shm_rxq_info,
	.txq_info_get = shm_txq_info,
	.rx_burst_mode_get = shm_rx_burst_mode,
	.tx_burst_mode_get = shm_tx_burst_mode,
	.rx_queue_intr_enable = shm_intr_enable,
	.rx_queue_intr_disable = shm_intr_disable,
	.mtu_set = shm_mtu_set,
	.link_update = shm_link_update,
	.promiscuous_enable = shm_promisc_on,
	.promiscuous_disable = shm_promisc_off,
	.allmulticast_enable = shm_allmulti_on,
	.allmulticast_disable = shm_allmulti_off,
	.mac_addr_set = shm_mac_set,
	.set_mc_addr_list = shm_mc_list,
	.stats_get = vrb_shmlan_stats_get,
	.stats_reset = vrb_shmlan_stats_reset,
	.xstats_get = vrb_shmlan_xstats_get,
	.xstats_get_names = vrb_shmlan_xstats_names,
	.xstats_reset = vrb_shmlan_stats_reset,
};

/* Makes the port's private half: it joins the segment and is reachable, but stopped. */
static int
port_create(struct rte_eth_dev *dev, const struct shm_args *args, struct shm_port **res)
{
	struct shm_port *port;
	int rc, flag;

	/* Not from EAL's memory, which may be shared with children of fork(2). */
	if (posix_memalign((void **)&port, RTE_CACHE_LINE_SIZE, sizeof(*port)) != 0)
		return -ENOMEM;
	memset(port, 0, sizeof(*port));
	pthread_mutex_init(&port->lock, NULL);
	LIST_INIT(&port->conns);
	port->dev = dev;
	port->pid = getpid();
	port->port_id = port->rx.port_id = dev->data->port_id;
	port->args = *args;
	port->epfd = port->ctl.fd = port->timer.fd = port->watch.fd = -1;
	port->rx.port = port->tx.port = port;
	flag = rte_mbuf_dynflag_lookup(VRB_SHMLAN_DYNFLAG_ICRC_OMITTED, NULL);
	port->rx.dynflag = port->tx.dynflag = RTE_BIT64(flag);
	vrb_shmlan_reg_init(&port->reg);
	vrb_shmlan_fork_add(port);

	port->bell = vrb_shmlan_bell_create();
	rc = port->bell == NULL ? -ENOMEM : rx_intr_open(port);
	if (rc == 0)
		rc = vrb_shmlan_reg_join(&port->reg, args, &port->mac);
	if (rc != 0) {
		port_free(port);
		return rc;
	}
	port->rx.bell = port->bell;
	port->tx.file = port->reg.file;
	port->filter.mac = shm_mac_key(&port->mac);
	port->filter.max_len = VRB_SHMLAN_MTU_DEFAULT + SHM_HDR_LEN;
	port->rx.change = port->tx.change = SHM_CHANGE_RINGS;
	rc = vrb_shmlan_link_open(port);
	if (rc != 0) {
		port_leave(port);
		port_free(port);
		return rc;
	}
	*res = port;
	return 0;
}

static void
dev_fill(struct rte_eth_dev *dev, struct shm_port *port)
{
	struct rte_eth_dev_data *data = dev->data;

	*(struct shm_port **)data->dev_private = port;
	data->mac_addrs = &port->mac;
	data->mtu = VRB_SHMLAN_MTU_DEFAULT;
	data->dev_flags |= RTE_ETH_DEV_INTR_LSC | RTE_ETH_DEV_AUTOFILL_QUEUE_XSTATS;
	dev->dev_ops = &shm_ops;
	dev->rx_pkt_burst = vrb_shmlan_rx_burst;
	dev->tx_pkt_burst = vrb_shmlan_tx_burst;
	dev->rx_queue_count = vrb_shmlan_rx_count;
	dev->rx_descriptor_status = vrb_shmlan_rx_desc_status;
	dev->tx_descriptor_status = vrb_shmlan_tx_desc_status;
}

static int
dynflag_register(void)
{
	static const struct rte_mbuf_dynflag flag = {.name = VRB_SHMLAN_DYNFLAG_ICRC_OMITTED};

	return rte_mbuf_dynflag_register(&flag) < 0 ? -rte_errno : 0;
}

static int
shm_probe(struct rte_vdev_device *vdev)
{
	const char *name = rte_vdev_device_name(vdev);
	struct rte_eth_dev *dev;
	struct shm_port *port;
	struct shm_args args;
	int rc;

	if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
		SHM_LOG(ERR,
			"%s: not available in a secondary process; let it join the segment with a "
			"port of "
			"its own",
			name);
		return -ENOTSUP;
	}
	rc = vrb_shmlan_args_parse(name, rte_vdev_device_args(vdev), &args);
	if (rc == 0)
		rc = dynflag_register();
	if (rc == 0)
		rc = vrb_guard_install();
	if (rc != 0)
		return rc;
	dev = rte_eth_vdev_allocate(vdev, sizeof(struct shm_port *));
	if (dev == NULL)
		return -ENOMEM;
	rc = port_create(dev, &args, &port);
	if (rc != 0) {
		rte_eth_dev_release_port(dev);
		return rc;
	}
	dev_fill(dev, port);
	rte_eth_dev_probing_finish(dev);
	return 0;
}

static int
shm_remove(struct rte_vdev_device *vdev)
{
	struct rte_eth_dev *dev = rte_eth_dev_allocated(rte_vdev_device_name(vdev));

	if (dev == NULL)
		return 0; /* closed already */
	if (dev->data->dev_started)
		rte_eth_dev_stop(dev->data->port_id);
	return rte_eth_dev_close(dev->data->port_id);
}

static struct rte_vdev_driver shm_driver = {
	.probe = shm_probe,
	.remove = shm_remove,
};

RTE_PMD_REGISTER_VDEV(net_shmlan, shm_driver);
RTE_PMD_REGISTER_PARAM_STRING(
	net_shmlan, "segment=<name> dir=<path> mac=<addr> slots=<n> data=<KiB> rx_zc=<0|1>");
