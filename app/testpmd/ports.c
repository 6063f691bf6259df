/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports. See ports.h.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mempool.h>
#include <rte_service.h>

#include "cli.h"
#include "events.h"
#include "ports.h"
#include "traffic.h"

#define MBUFS_PER_QUEUE 1024
#define MBUF_CACHE 256
#define QUEUE_SIZE 512
#define BURST 32u
/* Bursts that may be refused one after the other before sending is given up. */
#define TRIES 1000

static struct rte_mempool *pools[RTE_MAX_ETHPORTS];
static bool started[RTE_MAX_ETHPORTS];

const char *
tp_port_owner(uint16_t port)
{
	static struct rte_eth_dev_owner owner;

	if (rte_eth_dev_owner_get(port, &owner) < 0 || owner.id == RTE_ETH_DEV_NO_OWNER)
		return "";
	return owner.name;
}

bool
tp_port_is_ours(uint16_t port)
{
	return tp_port_owner(port)[0] == '\0';
}

int
tp_port_check_ours(uint16_t port)
{
	return tp_port_is_ours(port)
		       ? 0
		       : tp_refuse(-EBUSY, "port %u belongs to %s", port, tp_port_owner(port));
}

bool
tp_port_is_started(uint16_t port)
{
	return started[port];
}

const char *
tp_port_state(uint16_t port)
{
	struct rte_eth_dev_info info;
	struct rte_eth_rxq_info rx;

	if (tp_port_is_ours(port))
		return started[port] ? "started" : "stopped";
	/* ethdev tells it of queues only, and not of every driver's. */
	if (rte_eth_dev_info_get(port, &info) < 0 || info.nb_rx_queues == 0 ||
		rte_eth_rx_queue_info_get(port, 0, &rx) < 0)
		return "unknown";
	return rx.queue_state == RTE_ETH_QUEUE_STATE_STARTED ? "started" : "stopped";
}

/*
 * A pool whose frames may still be under way, in a ring below the port, is not freed before the
 * end: it goes on being used, or another takes its place.
 */
static int
make_pool(uint16_t port, const struct tp_port_conf *conf, uint16_t mtu)
{
	static unsigned int made;
	char name[RTE_MEMPOOL_NAMESIZE];
	uint32_t room = RTE_PKTMBUF_HEADROOM + RTE_ALIGN_CEIL(RTE_MAX(mtu + 18, 2048), 64);
	uint32_t num =
		conf->rx_queues * RTE_MAX(conf->rx_size, MBUFS_PER_QUEUE) + 2 * MBUFS_PER_QUEUE;
	struct rte_mempool *pool = pools[port];

	room = RTE_MIN(room, (uint32_t)UINT16_MAX);
	if (pool != NULL && pool->size >= num && rte_pktmbuf_data_room_size(pool) >= room)
		return 0;
	snprintf(name, sizeof(name), "testpmd_%u_%u", port, made++);
	pool = rte_pktmbuf_pool_create(name, num, MBUF_CACHE, 0, room, SOCKET_ID_ANY);
	if (pool == NULL)
		return tp_refuse(-ENOMEM, "there is no memory for %u frames of port %u", num, port);
	pools[port] = pool;
	return 0;
}

static int
set_up_queues(uint16_t port, const struct tp_port_conf *conf, const struct rte_eth_dev_info *info)
{
	uint16_t rx_size = conf->rx_size, tx_size = conf->tx_size;
	int rc = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx_size, &tx_size);

	for (uint16_t q = 0; q < conf->rx_queues && rc == 0; q++)
		rc = rte_eth_rx_queue_setup(
			port, q, rx_size, SOCKET_ID_ANY, &info->default_rxconf, pools[port]);
	for (uint16_t q = 0; q < conf->tx_queues && rc == 0; q++)
		rc = rte_eth_tx_queue_setup(port, q, tx_size, SOCKET_ID_ANY, &info->default_txconf);
	return rc;
}

int
tp_port_configure(uint16_t port, const struct tp_port_conf *conf)
{
	struct rte_eth_conf ec = {0};
	struct rte_eth_dev_info info;
	uint16_t mtu = conf->mtu;
	int rc = rte_eth_dev_info_get(port, &info);

	if (rc < 0)
		return tp_refuse(rc, "port %u does not tell what it can: %s", port, strerror(-rc));
	if (conf->rx_queues > info.max_rx_queues || conf->tx_queues > info.max_tx_queues)
		return tp_refuse(-EINVAL, "port %u has up to %u rx-queues and %u tx-queues", port,
			info.max_rx_queues, info.max_tx_queues);
	if (conf->rx_queues > 1 && info.flow_type_rss_offloads != 0) {
		ec.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		ec.rx_adv_conf.rss_conf.rss_hf =
			info.flow_type_rss_offloads &
			(RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_SCTP);
	}
	if (mtu == 0 && rte_eth_dev_get_mtu(port, &mtu) < 0)
		mtu = RTE_ETHER_MTU;
	ec.rxmode.mtu = mtu;
	rc = make_pool(port, conf, mtu);
	if (rc < 0)
		return rc;
	rc = rte_eth_dev_configure(port, conf->rx_queues, conf->tx_queues, &ec);
	if (rc == 0)
		rc = set_up_queues(port, conf, &info);
	return rc < 0 ? tp_refuse(rc, "port %u cannot be configured: %s", port, strerror(-rc)) : 0;
}

int
tp_port_start(uint16_t port)
{
	int rc = tp_port_check_ours(port);

	if (rc < 0)
		return rc;
	if (tp_port_is_started(port))
		return tp_refuse(-EALREADY, "port %u is started", port);
	rc = rte_eth_dev_start(port);
	started[port] = rc == 0;
	return rc < 0 ? tp_refuse(rc, "port %u does not start: %s", port, strerror(-rc)) : 0;
}

int
tp_port_stop(uint16_t port)
{
	int rc = tp_port_check_ours(port);

	if (rc < 0)
		return rc;
	if (!tp_port_is_started(port))
		return tp_refuse(-EALREADY, "port %u is stopped", port);
	if (tp_poller_of(port) != NULL)
		return tp_refuse(
			-EBUSY, "a poller receives from port %u: poller stop %u first", port, port);
	rc = rte_eth_dev_stop(port);
	started[port] = rc < 0;
	return rc < 0 ? tp_refuse(rc, "port %u does not stop: %s", port, strerror(-rc)) : 0;
}

int
tp_port_send(uint16_t port, uint16_t queue, const struct tp_job_conf *frames)
{
	struct rte_mbuf *pkts[BURST];
	uint64_t done = 0;
	unsigned int full = 0;

	while (done < frames->count && full < TRIES) {
		uint16_t n = RTE_MIN(BURST, frames->count - done), sent;

		if (rte_pktmbuf_alloc_bulk(pools[port], pkts, n) < 0)
			return tp_refuse(-ENOMEM, "there is no memory for frames after %lu",
				(unsigned long)done);
		for (uint16_t i = 0; i < n; i++) {
			uint8_t *buf = (uint8_t *)rte_pktmbuf_append(pkts[i], frames->size);

			if (buf == NULL) {
				rte_pktmbuf_free_bulk(pkts, n);
				return tp_refuse(-EMSGSIZE, "frames of port %u have up to %u bytes",
					port, rte_pktmbuf_tailroom(pkts[0]));
			}
			tp_frame_fill(buf, frames->size, frames, done + i);
		}
		sent = rte_eth_tx_burst(port, queue, pkts, n);
		rte_pktmbuf_free_bulk(&pkts[sent], n - sent);
		done += sent;
		/* Whoever empties the other end needs a moment. */
		full = sent > 0 ? 0 : full + 1;
		if (sent < n)
			sched_yield();
	}
	return done;
}

static int
open_port(uint16_t port, uint16_t device, const struct tp_port_conf *conf)
{
	struct tp_port_conf own = *conf;
	struct rte_eth_dev_info info;
	int rc = 0;

	if (port != device) {
		/* As many queues as were asked for, or as it has. */
		if (rte_eth_dev_info_get(port, &info) == 0) {
			own.rx_queues = RTE_MIN(own.rx_queues, info.max_rx_queues);
			own.tx_queues = RTE_MIN(own.tx_queues, info.max_tx_queues);
		}
		rc = tp_port_configure(port, &own);
	}
	tp_events_port(port);
	if (rc == 0)
		rc = tp_port_start(port);
	if (rc == 0 && rte_service_lcore_count() == 0)
		rc = tp_poller_start(port, NULL, 0);
	return rc;
}

int
tp_ports_open(uint16_t device, uint16_t rx_queues, uint16_t tx_queues)
{
	struct tp_port_conf conf = {
		.rx_queues = rx_queues,
		.tx_queues = tx_queues,
		.rx_size = QUEUE_SIZE,
		.tx_size = QUEUE_SIZE,
	};
	uint16_t port;
	int rc;

	RTE_ETH_FOREACH_DEV (port) {
		rc = open_port(port, device, &conf);
		if (rc < 0)
			return rc;
	}
	return 0;
}

void
tp_ports_stop(void)
{
	uint16_t port;

	tp_pollers_end();
	RTE_ETH_FOREACH_DEV (port)
		if (started[port])
			tp_port_stop(port);
}

void
tp_ports_close(void)
{
	uint16_t port;

	/* The memory of frames goes with EAL. */
	RTE_ETH_FOREACH_DEV (port)
		rte_eth_dev_close(port);
}
