/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lower port of a NIC: found or probed, owned, configured and started (see vrb_port.h). Its
 * addresses are found out in vrb_port_addr.c.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_dev.h>
#include <rte_mbuf_dyn.h>

#include "vrb_addr.h"
#include "vrb_eal.h"
#include "vrb_port_private.h"

#define OWNER "verbena"

int
vrb_port_fail(char *why, size_t why_len, int rc, const char *what, const char *name)
{
	char error[200];

	vrb_eal_error(error, sizeof(error));
	snprintf(why, why_len, "%s (%s): %s%s%s", what, name, strerror(-rc),
		error[0] != '\0' ? "; " : "", error);
	return rc;
}

/* The device's name: what stands before the first comma of its devargs. */
static int
device_name(const char *devargs, char *name, size_t len)
{
	size_t n = strcspn(devargs, ",");

	if (n == 0 || n >= len)
		return -EINVAL;
	memcpy(name, devargs, n);
	name[n] = '\0';
	return 0;
}

/* The devargs of the port, and its name. */
static int
make_devargs(struct vrb_port *p, const struct vrb_nic_conf *conf, char *buf, size_t len, char *why,
	size_t why_len)
{
	uint16_t id;
	int n, rc;

	if (conf->port != NULL) {
		n = snprintf(buf, len, "%s", conf->port);
	} else {
		int i = 0;

		/* Further NICs of the process have further ports. */
		do
			n = snprintf(buf, len, "net_shmlan%d", i++);
		while (rte_eth_dev_get_port_by_name(buf, &id) == 0);
	}
	if (n < 0 || (size_t)n >= len || device_name(buf, p->name, sizeof(p->name)) < 0) {
		snprintf(why, why_len, "\"%s\" does not name a DPDK device", conf->port);
		return -EINVAL;
	}
	if (strncmp(p->name, SHMLAN_DRIVER, strlen(SHMLAN_DRIVER)) != 0)
		return 0;
	rc = vrb_port_shmlan_devargs(conf, buf, len);
	if (rc < 0)
		snprintf(why, why_len,
			"\"%s\" is no IPv4 or global IPv6 address of a host, or the devargs are "
			"too long",
			conf->ip != NULL ? conf->ip : "");
	return rc;
}

static int
probe(struct vrb_port *p, const struct vrb_nic_conf *conf, char *why, size_t why_len)
{
	char devargs[512];
	int rc = make_devargs(p, conf, devargs, sizeof(devargs), why, why_len);

	if (rc < 0)
		return rc;
	p->rx_zc = strstr(devargs, ",rx_zc=1") != NULL;
	vrb_eal_clear_error();
	/* A port that --vdev of eal_args has made is taken as it is. */
	if (rte_eth_dev_get_port_by_name(p->name, &p->id) < 0) {
		rc = rte_dev_probe(devargs);
		if (rc == -EADDRINUSE && conf->ip != NULL) {
			snprintf(why, why_len,
				"the address %s is taken by another process of the segment \"%s\"; "
				"give another one, or "
				"none to get the first that is free",
				conf->ip, conf->segment != NULL ? conf->segment : "default");
			return rc;
		}
		if (rc == -EPERM)
			return vrb_port_fail(why, why_len, rc,
				"cannot start the network port without root or the capability that "
				"it needs (CAP_NET_RAW for packet sockets)",
				devargs);
		if (rc < 0)
			return vrb_port_fail(
				why, why_len, rc, "cannot start the network port", devargs);
		p->probed = true;
	}
	rc = rte_eth_dev_get_port_by_name(p->name, &p->id);
	if (rc < 0)
		return vrb_port_fail(
			why, why_len, rc, "the device has no port of that name", p->name);
	return 0;
}

static int
own(struct vrb_port *p, char *why, size_t why_len)
{
	struct rte_eth_dev_owner owner = {.name = OWNER};
	int rc = rte_eth_dev_owner_new(&owner.id);

	if (rc == 0)
		rc = rte_eth_dev_owner_set(p->id, &owner);
	if (rc < 0)
		return vrb_port_fail(
			why, why_len, rc, "the port belongs to somebody else", p->name);
	p->owner = owner.id;
	p->owned = true;
	return 0;
}

static bool
driver_is(const struct vrb_port *p, const char *name)
{
	return strcmp(p->driver, name) == 0;
}

/*
 * The largest MTU that the port carries: what it says, bounded by the frame that it can receive,
 * and what the interface below has.
 */
static uint16_t
find_mtu(const struct vrb_port *p, const struct rte_eth_dev_info *info)
{
	uint32_t overhead = RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN;
	uint16_t mtu = RTE_ETHER_MTU, kernel;

	rte_eth_dev_get_mtu(p->id, &mtu);
	if (info->max_mtu != UINT16_MAX && info->max_rx_pktlen > info->max_mtu)
		overhead = info->max_rx_pktlen - info->max_mtu;
	if (info->max_rx_pktlen != 0 && info->max_rx_pktlen - overhead < mtu)
		mtu = info->max_rx_pktlen - overhead;
	if (p->ifindex != 0 && vrb_port_kernel_mtu(p->ifindex, &kernel) == 0 && kernel < mtu)
		mtu = kernel;
	return RTE_MIN(mtu, info->max_mtu);
}

static void
classify(struct vrb_port *p, const struct vrb_nic_conf *conf, const struct rte_eth_dev_info *info)
{
	int bit = rte_mbuf_dynflag_lookup(ICRC_OMITTED, NULL);

	snprintf(p->driver, sizeof(p->driver), "%s", info->driver_name);
	p->ifindex = info->if_index;
	if (driver_is(p, SHMLAN_DRIVER))
		p->kind = VRB_PORT_SHMLAN;
	else
		p->kind = p->ifindex != 0 ? VRB_PORT_KERNEL : VRB_PORT_OTHER;
	if (p->kind == VRB_PORT_SHMLAN && bit >= 0)
		p->icrc_omitted = UINT64_C(1) << bit;
	p->icrc =
		conf->icrc == VRB_ICRC_ON || (conf->icrc == VRB_ICRC_AUTO && p->icrc_omitted == 0);
	/*
	 * The program's memory is sent as it is only by ports that have copied it when their
	 * tx_burst returns, and that survive its having gone away: af_packet and tap also copy, but
	 * the one faults and the other never gets past such a frame. With an ICRC the engine makes
	 * a copy anyway, since the memory may change after it was computed.
	 */
	p->zero_copy = !p->icrc && (info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0 &&
		       (driver_is(p, SHMLAN_DRIVER) || driver_is(p, "net_null"));
	p->mtu = find_mtu(p, info);
}

static struct rte_mempool *
make_pool(const struct vrb_port *p, const char *what, unsigned int n, uint16_t room)
{
	char name[RTE_MEMPOOL_NAMESIZE];
	struct rte_mempool *mp;
	const char *ops = "ring_sp_sc";

	/*
	 * All of it happens under the baton, so the ring below the cache has one producer and one
	 * consumer.
	 */
	snprintf(name, sizeof(name), "vrb_%s_%u", what, p->id);
	mp = rte_pktmbuf_pool_create_by_ops(
		name, n, VRB_PORT_MBUF_CACHE, 0, RTE_PKTMBUF_HEADROOM + room, SOCKET_ID_ANY, ops);
	return mp;
}

static int
make_pools(struct vrb_port *p, char *why, size_t why_len)
{
	/* net_af_packet wants room for a block of its ring (2 KiB by default), whatever the MTU. */
	uint16_t frame =
		RTE_ALIGN_CEIL(RTE_MAX(p->mtu + RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN, 2048), 64);

	p->tx_pool = make_pool(p, "tx", VRB_PORT_TX_MBUFS,
		p->zero_copy ? VRB_MBUF_ROOM : RTE_MAX(frame, VRB_MBUF_ROOM));
	p->rx_pool = make_pool(p, "rx", VRB_PORT_RX_MBUFS, p->rx_zc ? SHMLAN_ZC_ROOM : frame);
	if (p->tx_pool != NULL && p->rx_pool != NULL)
		return 0;
	return vrb_port_fail(why, why_len, -ENOMEM, "no memory for packets", p->name);
}

static int
configure(struct vrb_port *p, const struct rte_eth_dev_info *info)
{
	struct rte_eth_conf conf = {.rxmode = {.mtu = p->mtu}, .intr_conf = {.rxq = 1}};
	uint16_t rxd = VRB_PORT_DESC, txd = VRB_PORT_DESC;
	struct rte_eth_txconf txconf = info->default_txconf;
	struct rte_eth_rxconf rxconf = info->default_rxconf;
	int rc;

	conf.txmode.offloads = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
	conf.rxmode.offloads = info->rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
	if (p->kind != VRB_PORT_SHMLAN && (*info->dev_flags & RTE_ETH_DEV_INTR_LSC))
		conf.intr_conf.lsc = 1;
	rc = rte_eth_dev_configure(p->id, 1, 1, &conf);
	if (rc < 0) {
		/* A port that has no Rx interrupts may refuse them only now. */
		conf.intr_conf.rxq = 0;
		rc = rte_eth_dev_configure(p->id, 1, 1, &conf);
	}
	if (rc == 0)
		rc = rte_eth_dev_adjust_nb_rx_tx_desc(p->id, &rxd, &txd);
	txconf.offloads = conf.txmode.offloads;
	rxconf.offloads = conf.rxmode.offloads;
	if (rc == 0)
		rc = rte_eth_rx_queue_setup(p->id, 0, rxd, SOCKET_ID_ANY, &rxconf, p->rx_pool);
	if (rc == 0)
		rc = rte_eth_tx_queue_setup(p->id, 0, txd, SOCKET_ID_ANY, &txconf);
	return rc;
}

int
vrb_port_open(struct vrb_port *p, const struct vrb_nic_conf *conf, char *why, size_t why_len)
{
	struct rte_eth_dev_info info;
	int rc;

	memset(p, 0, sizeof(*p));
	p->intr_fd = p->bell[0] = p->bell[1] = -1;
	rc = probe(p, conf, why, why_len);
	if (rc == 0)
		rc = own(p, why, why_len);
	if (rc < 0)
		return rc;
	rc = rte_eth_dev_info_get(p->id, &info);
	if (rc < 0)
		return vrb_port_fail(
			why, why_len, rc, "the port does not tell its capabilities", p->name);
	classify(p, conf, &info);
	rc = vrb_port_find_addresses(p, conf, why, why_len);
	if (rc == 0)
		rc = make_pools(p, why, why_len);
	if (rc < 0)
		return rc;
	rc = configure(p, &info);
	if (rc < 0)
		return vrb_port_fail(why, why_len, rc, "cannot configure the port", p->name);
	return 0;
}

int
vrb_port_start(struct vrb_port *p, char *why, size_t why_len)
{
	int rc = rte_eth_dev_start(p->id);

	if (rc < 0)
		return vrb_port_fail(why, why_len, rc, "cannot start the port", p->name);
	p->started = true;
	p->intr_fd = rte_eth_dev_rx_intr_ctl_q_get_fd(p->id, 0);
	/*
	 * net_tap's descriptor is readable whenever there is a frame, and there is nothing to
	 * enable.
	 */
	if (p->intr_fd < 0 && p->kind == VRB_PORT_KERNEL)
		vrb_port_bell_open(p);
	p->intr_enable = p->intr_fd >= 0 && rte_eth_dev_rx_intr_disable(p->id, 0) == 0;
	return 0;
}

void
vrb_port_leave(struct vrb_port *p)
{
	if (p->started)
		rte_eth_dev_stop(p->id);
	if (p->probed)
		rte_eth_dev_close(p->id);
}

void
vrb_port_close(struct vrb_port *p)
{
	struct rte_eth_dev_info info;
	bool known = p->owned && rte_eth_dev_info_get(p->id, &info) == 0;

	vrb_port_bell_close(p);
	if (p->started)
		rte_eth_dev_stop(p->id);
	if (p->owned)
		rte_eth_dev_owner_unset(p->id, p->owner);
	if (p->probed && known) {
		rte_eth_dev_close(p->id);
		rte_dev_remove(info.device);
	} else if (p->probed) {
		rte_eal_hotplug_remove("vdev", p->name);
	}
	rte_mempool_free(p->tx_pool);
	rte_mempool_free(p->rx_pool);
	memset(p, 0, sizeof(*p));
	p->intr_fd = p->bell[0] = p->bell[1] = -1;
}

bool
vrb_port_link_up(const struct vrb_port *p, uint32_t *speed_mbps)
{
	struct rte_eth_link link = {0};
	int rc = rte_eth_link_get_nowait(p->id, &link);

	*speed_mbps = rc < 0 || link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
	/*
	 * Alone on a segment a host has a port all the same: it can talk to itself, and programs
	 * refuse a port that is down.
	 */
	return p->kind == VRB_PORT_SHMLAN || (rc == 0 && link.link_status == RTE_ETH_LINK_UP);
}
