/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which addresses the port receives. It is left to the lower port as long as that one does what the
 * program asks for. From the first call on that it refuses, or from the beginning with
 * mac_filter=1, it is made promiscuous, and pollers filter frames as a NIC does.
 */
#include <errno.h>
#include <string.h>

#include "pmd_private.h"

/* ---- the filter ---- */

static bool
is_listed(const struct rte_ether_addr *list, uint32_t n, const struct rte_ether_addr *mac)
{
	for (uint32_t i = 0; i < n; i++) {
		if (rte_is_same_ether_addr(&list[i], mac))
			return true;
	}
	return false;
}

bool
pmd_mac_passes(const struct pmd_port *port, const struct rte_mbuf *m)
{
	const struct pmd_macs *macs = &port->mac;
	const struct rte_ether_addr *to = rte_pktmbuf_mtod(m, const struct rte_ether_addr *);

	if (unlikely(m->data_len < sizeof(*to)))
		return false;
	if (likely(rte_is_unicast_ether_addr(to)))
		return is_listed(macs->uni, macs->num_uni, to);
	return macs->allmulti || rte_is_broadcast_ether_addr(to) ||
	       is_listed(macs->multi, macs->num_multi, to);
}

/* ---- on and off ---- */

/* No thread looks at the filter until end_change(). */
static void
begin_change(struct pmd_port *port)
{
	pthread_mutex_lock(&port->lock);
	pmd_gates_close(port);
	pmd_pollers_lock(port);
}

static void
end_change(struct pmd_port *port)
{
	port->mac.active = port->mac.on && !port->mac.promisc;
	pmd_mode_update(port);
	pmd_pollers_unlock(port);
	pmd_gates_open(port);
	pthread_mutex_unlock(&port->lock);
}

int
pmd_mac_start(struct pmd_port *port)
{
	int rc;

	if (!port->mac.on || rte_eth_promiscuous_get(port->lower_id) == 1)
		return 0;
	rc = rte_eth_promiscuous_enable(port->lower_id);
	if (rc == 0)
		port->mac.lifted = true;
	/* A port without such a mode has no filter that could be switched off. */
	return rc == -ENOTSUP ? 0 : rc;
}

void
pmd_mac_close(struct pmd_port *port)
{
	if (port->mac.lifted && !port->mac.promisc)
		rte_eth_promiscuous_disable(port->lower_id);
	port->mac.lifted = false;
}

/* @return whether it is a thing that the lower port cannot do, and that can be done here */
static bool
can_not(int rc)
{
	return rc == -ENOTSUP || rc == -ENOSPC;
}

/* @return 0, or -errno: the lower port cannot be made to hear what is to be filtered */
static int
filter_here(struct pmd_port *port)
{
	int rc = 0;

	port->mac.on = true;
	if (port->started)
		rc = pmd_mac_start(port);
	if (rc < 0)
		port->mac.on = false;
	return rc;
}

/* ---- modes ---- */

static int
set_promisc(struct pmd_port *port, bool on)
{
	int rc = 0;

	if (!port->mac.on) {
		rc = on ? rte_eth_promiscuous_enable(port->lower_id)
			: rte_eth_promiscuous_disable(port->lower_id);
		/* Said again at start, it asks for nothing new. */
		if (can_not(rc) && !on && port->mac.promisc)
			rc = filter_here(port);
	}
	if (rc == 0)
		port->mac.promisc = on;
	return rc;
}

static int
set_allmulti(struct pmd_port *port, bool on)
{
	int rc = 0;

	if (!port->mac.on) {
		rc = on ? rte_eth_allmulticast_enable(port->lower_id)
			: rte_eth_allmulticast_disable(port->lower_id);
		if (can_not(rc) && (on || port->mac.allmulti))
			rc = filter_here(port);
	}
	if (rc == 0)
		port->mac.allmulti = on;
	return rc;
}

static int
set_mode(struct rte_eth_dev *dev, int (*set)(struct pmd_port *port, bool on), bool on)
{
	struct pmd_port *port = pmd_port_of(dev);
	int rc;

	if (port->lower_gone)
		return -EIO;
	begin_change(port);
	rc = set(port, on);
	end_change(port);
	return rc;
}

int
pmd_promisc_on(struct rte_eth_dev *dev)
{
	return set_mode(dev, set_promisc, true);
}

int
pmd_promisc_off(struct rte_eth_dev *dev)
{
	return set_mode(dev, set_promisc, false);
}

int
pmd_allmulti_on(struct rte_eth_dev *dev)
{
	return set_mode(dev, set_allmulti, true);
}

int
pmd_allmulti_off(struct rte_eth_dev *dev)
{
	return set_mode(dev, set_allmulti, false);
}

/* ---- addresses ---- */

/* Stands in places without an address: no unicast frame has it. */
static const struct rte_ether_addr nobody = {.addr_bytes = {255, 255, 255, 255, 255, 255}};

static void
put(struct pmd_macs *macs, uint32_t index, const struct rte_ether_addr *mac)
{
	while (macs->num_uni < index)
		macs->uni[macs->num_uni++] = nobody;
	macs->uni[index] = *mac;
	macs->num_uni = RTE_MAX(macs->num_uni, index + 1);
}

void
pmd_mac_init(struct pmd_port *port)
{
	put(&port->mac, 0, &port->macs[0]);
	port->mac.on = port->mac.active = port->args.mac_filter;
}

int
pmd_mac_set(struct rte_eth_dev *dev, struct rte_ether_addr *mac)
{
	struct pmd_port *port = pmd_port_of(dev);
	bool other = !rte_is_same_ether_addr(mac, &dev->data->mac_addrs[0]);
	int rc;

	if (port->lower_gone)
		return -EIO;
	if (port->roce.engine != NULL && other) {
		PMD_LOG(ERR, "port %u: the address cannot be changed while a RoCE engine is open",
			port->port_id);
		return -EBUSY;
	}
	begin_change(port);
	rc = rte_eth_dev_default_mac_addr_set(port->lower_id, mac);
	if (can_not(rc))
		rc = port->mac.on || !other ? 0 : filter_here(port);
	if (rc == 0)
		put(&port->mac, 0, mac);
	end_change(port);
	return rc;
}

int
pmd_mac_add(struct rte_eth_dev *dev, struct rte_ether_addr *mac, uint32_t index, uint32_t pool)
{
	struct pmd_port *port = pmd_port_of(dev);
	int rc = 0;

	if (port->lower_gone)
		return -EIO;
	if (index >= PMD_MAX_MACS)
		return -ENOSPC;
	begin_change(port);
	if (!port->mac.on)
		rc = rte_eth_dev_mac_addr_add(port->lower_id, mac, pool);
	if (can_not(rc))
		rc = filter_here(port);
	if (rc == 0)
		put(&port->mac, index, mac);
	end_change(port);
	return rc;
}

void
pmd_mac_remove(struct rte_eth_dev *dev, uint32_t index)
{
	struct pmd_port *port = pmd_port_of(dev);

	if (port->lower_gone)
		return;
	begin_change(port);
	/* Of addresses that were added before it was filtered here the lower port has some. */
	rte_eth_dev_mac_addr_remove(port->lower_id, &dev->data->mac_addrs[index]);
	port->mac.uni[index] = nobody;
	while (port->mac.num_uni > 1 &&
		rte_is_same_ether_addr(&port->mac.uni[port->mac.num_uni - 1], &nobody))
		port->mac.num_uni--;
	end_change(port);
}

int
pmd_mc_list(struct rte_eth_dev *dev, struct rte_ether_addr *list, uint32_t n)
{
	struct pmd_port *port = pmd_port_of(dev);
	int rc = 0;

	if (port->lower_gone)
		return -EIO;
	if (n > PMD_MAX_MULTI)
		return -ENOSPC;
	begin_change(port);
	if (!port->mac.on)
		rc = rte_eth_dev_set_mc_addr_list(port->lower_id, list, n);
	if (can_not(rc))
		rc = filter_here(port);
	if (rc == 0) {
		if (n > 0)
			memcpy(port->mac.multi, list, n * sizeof(*list));
		port->mac.num_multi = n;
	}
	end_change(port);
	return rc;
}
