/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device, by the public calls of net_verbena. See backend.h.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ether.h>

#include "backend.h"
#include "cli.h"
#include "events.h"
#include "objects.h"
#include "ports.h"
#include "raw.h"
#include "rte_pmd_verbena.h"

#define DRIVER "net_verbena"
#define SHMLAN "net_shmlan"
#define QUEUE_SIZE 512
/* How long what is owed is waited for. */
#define SETTLE_NS UINT64_C(5000000)

static uint16_t port_id;
static struct vrb_engine *engine;
static struct vrb_pd *pd;
/* There are rules that give frames to queue pairs. */
static _Atomic bool has_rules;

/* @return the driver of the port below, "" if there is none */
static const char *
lower_driver(uint16_t port, uint16_t *max_mtu)
{
	struct rte_eth_dev_info info;
	uint16_t lower;

	if (rte_pmd_verbena_lower(port, &lower) < 0 || rte_eth_dev_info_get(lower, &info) < 0)
		return "";
	*max_mtu = info.max_mtu;
	return info.driver_name;
}

/* On a network of shared memory the address stands in the MAC address that the port has got. */
static bool
has_address(uint16_t port)
{
	union vrb_gid gid;
	struct rte_ether_addr mac;
	char ip[32];
	uint16_t mtu;
	const uint8_t *b = mac.addr_bytes;

	if (rte_pmd_verbena_gid_get(port, 0, &gid) == 0)
		return true;
	if (strcmp(lower_driver(port, &mtu), SHMLAN) != 0 || rte_eth_macaddr_get(port, &mac) < 0)
		return false;
	snprintf(ip, sizeof(ip), "%u.%u.%u.%u", b[2], b[3], b[4], b[5]);
	return rte_pmd_verbena_ip_set(port, ip) == 0;
}

static int
find_port(void)
{
	struct rte_eth_dev_info info;
	bool any = false;

	RTE_ETH_FOREACH_DEV (port_id) {
		if (rte_eth_dev_info_get(port_id, &info) < 0 ||
			strcmp(info.driver_name, DRIVER) != 0)
			continue;
		if (has_address(port_id))
			return 0;
		any = true;
	}
	if (any)
		return tp_refuse(-EADDRNOTAVAIL, "no port of net_verbena has an IP address: give "
						 "one with ip= in its devargs, or "
						 "with --ip");
	return tp_refuse(-ENODEV, "there is no port of net_verbena");
}

int
tp_backend_open(uint16_t rx_queues, uint16_t tx_queues)
{
	struct tp_port_conf conf = {
		.rx_queues = rx_queues,
		.tx_queues = tx_queues,
		.rx_size = QUEUE_SIZE,
		.tx_size = QUEUE_SIZE,
	};
	uint16_t max_mtu = 0;
	int rc = find_port();

	if (rc < 0)
		return rc;
	/* Shared memory carries the largest path MTU; of a wire nobody knows. */
	if (strcmp(lower_driver(port_id, &max_mtu), SHMLAN) == 0)
		conf.mtu = max_mtu;
	rc = tp_port_configure(port_id, &conf);
	if (rc < 0)
		return rc;
	rc = rte_pmd_verbena_roce_open(port_id, &tp_engine_ops, NULL);
	if (rc < 0)
		return tp_refuse(
			rc, "the engine of port %u does not open: %s", port_id, strerror(-rc));
	engine = rte_pmd_verbena_engine(port_id);
	tp_lock();
	rc = vrb_pd_create(engine, &pd);
	tp_unlock();
	return rc < 0 ? tp_refuse(rc, "there is no memory for a protection domain") : 0;
}

void
tp_backend_close(void)
{
	if (pd == NULL)
		return;
	tp_lock();
	vrb_pd_destroy(engine, pd);
	tp_unlock();
	pd = NULL;
	engine = NULL;
}

uint16_t
tp_device_port(void)
{
	return port_id;
}

struct vrb_engine *
tp_engine(void)
{
	return engine;
}

struct vrb_pd *
tp_pd(void)
{
	return pd;
}

void
tp_device(struct tp_device *dev)
{
	struct rte_eth_link link = {0};
	uint16_t mtu;

	memset(dev, 0, sizeof(*dev));
	dev->port_id = port_id;
	rte_eth_dev_get_name_by_port(port_id, dev->port);
	snprintf(dev->driver, sizeof(dev->driver), "%s", lower_driver(port_id, &mtu));
	rte_eth_macaddr_get(port_id, (struct rte_ether_addr *)dev->mac);
	for (unsigned int i = 0; i < VRB_GIDS; i++)
		rte_pmd_verbena_gid_get(port_id, i, &dev->gid[i]);
	rte_eth_dev_get_mtu(port_id, &dev->port_mtu);
	dev->max_mtu = vrb_engine_max_mtu(engine);
	dev->link_up = rte_eth_link_get_nowait(port_id, &link) == 0 && link.link_status;
}

void
tp_lock(void)
{
	rte_pmd_verbena_lock(port_id);
}

void
tp_unlock(void)
{
	rte_pmd_verbena_unlock(port_id);
}

void
tp_kick(struct vrb_qp *qp)
{
	rte_pmd_verbena_kick(port_id, qp);
}

void
tp_progress(void)
{
	rte_pmd_verbena_progress(port_id);
}

uint64_t
tp_now(void)
{
	return rte_pmd_verbena_now(port_id);
}

int
tp_resolve(const union vrb_gid *gid, uint8_t mac[6])
{
	return rte_pmd_verbena_resolve(port_id, gid, mac);
}

void
tp_settle(struct vrb_qp *qp)
{
	uint64_t until = tp_now() + SETTLE_NS;
	bool owes;

	do {
		tp_progress();
		tp_lock();
		owes = vrb_qp_owes(qp);
		tp_unlock();
	} while (owes && tp_now() < until);
}

int
tp_filter(void)
{
	bool promiscuous, allmulticast;
	int rc;

	atomic_store(&has_rules, tp_object_count(TP_FLOW) > 0);
	tp_lock();
	vrb_flow_filter(engine, &promiscuous, &allmulticast);
	tp_unlock();
	rc = promiscuous ? rte_eth_promiscuous_enable(port_id)
			 : rte_eth_promiscuous_disable(port_id);
	if (rc < 0 && rc != -ENOTSUP)
		return rc;
	/* A port that cannot choose receives everything or not: only what is wanted is a failure.
	 */
	if (rc < 0 && promiscuous)
		return rc;
	rc = allmulticast ? rte_eth_allmulticast_enable(port_id)
			  : rte_eth_allmulticast_disable(port_id);
	return rc < 0 && allmulticast ? rc : 0;
}

uint16_t
tp_take_frames(struct rte_mbuf **pkts, uint16_t n)
{
	uint16_t left;

	if (likely(!atomic_load_explicit(&has_rules, memory_order_relaxed)))
		return n;
	tp_lock();
	left = vrb_engine_rx(engine, pkts, n, tp_now());
	tp_unlock();
	return left;
}
