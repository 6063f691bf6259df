/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RoCE engine beside the queues. Pollers put its frames into a ring; whoever gets the engine's
 * baton takes them out, and sends. The rules about doorbells are those of vrb_baton.h, and a frame
 * in the ring counts as a doorbell.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf_dyn.h>

#include "guard.h"
#include "pmd_look.h"
#include "pmd_private.h"
#include "vrb_addr.h"
#include "vrb_nic_private.h"

#define RX_RING 1024
#define TX_BURSTS 4
#define ROUNDS 4
#define POOL_MBUFS 4095
#define POOL_CACHE 256
#define ROCE_PORT 4791
#define SHMLAN "net_shmlan"
/* Of shmlan.h: frames whose ICRC was left out. */
#define ICRC_OMITTED "verbena_icrc_omitted"

/* ---- frames ---- */

bool
pmd_roce_is_ours(const struct pmd_port *port, const struct rte_mbuf *m, const struct pmd_look *look)
{
	const uint8_t *d = rte_pktmbuf_mtod(m, const uint8_t *);
	const union vrb_gid *gid = port->roce.gid;

	if ((look->kind != VRB_RSS_IPV4_UDP && look->kind != VRB_RSS_IPV6_UDP) || look->tagged ||
		pmd_load16(d + look->l4_off + 2) != rte_cpu_to_be_16(ROCE_PORT))
		return false;
	/* The engine knows its groups. */
	if (d[0] & 1)
		return true;
	if (look->v6)
		return memcmp(d + look->ip_off + 24, &gid[0], 16) == 0 ||
		       memcmp(d + look->ip_off + 24, &gid[1], 16) == 0;
	return vrb_addr_is_v4(&gid[0]) && memcmp(d + look->ip_off + 16, &gid[0].dword[3], 4) == 0;
}

bool
pmd_roce_give(struct pmd_port *port, struct rte_mbuf *m)
{
	return rte_ring_mp_enqueue(port->roce.rx, m) == 0;
}

static uint16_t
send_burst(struct pmd_port *port, struct rte_mbuf **pkts, uint16_t n)
{
	struct pmd_roce *r = &port->roce;
	uint64_t bytes = 0;
	uint16_t sent;

	for (uint16_t i = 0; i < n; i++)
		bytes += pkts[i]->pkt_len;
	if (r->tx_lock != NULL)
		rte_spinlock_lock(r->tx_lock);
	sent = rte_eth_tx_burst(port->lower_id, r->txq, pkts, n);
	if (r->tx_lock != NULL)
		rte_spinlock_unlock(r->tx_lock);
	for (uint16_t i = sent; i < n; i++)
		bytes -= pkts[i]->pkt_len;
	r->tx_packets += sent;
	r->tx_bytes += bytes;
	return sent;
}

/* @return whether the port has taken all that was refused */
static bool
send_refused(struct pmd_port *port)
{
	struct pmd_roce *r = &port->roce;
	uint16_t sent = send_burst(port, &r->refused[r->first_refused], r->num_refused);

	r->first_refused += sent;
	r->num_refused -= sent;
	return r->num_refused == 0;
}

static void
engine_tx(struct pmd_port *port, uint64_t now)
{
	struct pmd_roce *r = &port->roce;
	struct rte_mbuf *pkts[PMD_BURST];

	if (r->num_refused > 0 && !send_refused(port)) {
		/* The port is full. Timers go on all the same. */
		vrb_engine_tx(r->engine, pkts, 0, now);
		return;
	}
	for (int i = 0; i < TX_BURSTS; i++) {
		unsigned int n = vrb_engine_tx(r->engine, pkts, PMD_BURST, now);
		uint16_t sent;

		if (n == 0)
			return;
		sent = send_burst(port, pkts, n);
		if (sent < n) {
			memcpy(r->refused, &pkts[sent], (n - sent) * sizeof(*pkts));
			r->first_refused = 0;
			r->num_refused = n - sent;
			return;
		}
		if (n < PMD_BURST)
			return;
	}
}

static void
engine_rx(struct pmd_port *port, uint64_t now)
{
	struct pmd_roce *r = &port->roce;
	struct rte_mbuf *pkts[PMD_BURST];
	unsigned int n = rte_ring_sc_dequeue_burst(r->rx, (void **)pkts, PMD_BURST, NULL);

	/* What is for none of its groups. */
	n = vrb_engine_rx(r->engine, pkts, n, now);
	rte_pktmbuf_free_bulk(pkts, n);
}

/* With the baton. */
static void
run(struct pmd_port *port)
{
	struct pmd_roce *r = &port->roce;
	uint64_t now = vrb_clock_now(&port->clock), deadline;

	if (!port->started || port->lower_gone)
		return;
	engine_rx(port, now);
	engine_tx(port, now);
	deadline = r->num_refused > 0 ? 0 : vrb_engine_deadline(r->engine);
	atomic_store_explicit(&r->deadline, deadline, memory_order_relaxed);
}

static bool
has_work(const struct pmd_roce *r)
{
	return !rte_ring_empty(r->rx) || vrb_engine_doorbell(r->engine);
}

/* Gives the baton back, and takes it again for what has come meanwhile. */
static void
give_back(struct pmd_port *port)
{
	struct pmd_roce *r = &port->roce;

	for (int i = 0;; i++) {
		vrb_baton_release(&r->baton);
		/* Enough done for others: the next poller goes on. */
		if (i == ROUNDS || !port->started || !has_work(r) || !vrb_baton_try(&r->baton))
			return;
		run(port);
	}
}

void
pmd_roce_run(struct pmd_port *port)
{
	struct pmd_roce *r = &port->roce;

	if (!has_work(r) && atomic_load_explicit(&r->deadline, memory_order_relaxed) >
				    vrb_clock_now(&port->clock))
		return;
	if (!vrb_baton_try(&r->baton))
		return;
	run(port);
	give_back(port);
}

/* ---- life ---- */

int
pmd_roce_start(struct pmd_port *port)
{
	struct pmd_roce *r = &port->roce;
	uint16_t program = port->dev->data->nb_tx_queues;

	r->tx_lock = NULL;
	if (r->engine == NULL)
		return 0;
	if (port->num_lower_rx == 0 || port->num_lower_tx == 0) {
		PMD_LOG(ERR, "port %u: RoCE needs an Rx and a Tx queue", port->port_id);
		return -EINVAL;
	}
	/* A queue of its own, if there is one. */
	r->txq = port->num_lower_tx > program ? port->num_lower_tx - 1 : 0;
	if (port->num_lower_tx <= program)
		r->tx_lock = &port->tx_locks[0];
	atomic_store(&r->deadline, 0);
	return 0;
}

/* What waits to be sent or received is lost, as on a wire; the engine goes on when the port does.
 */
void
pmd_roce_stop(struct pmd_port *port)
{
	struct pmd_roce *r = &port->roce;
	struct rte_mbuf *m;

	if (r->engine == NULL)
		return;
	vrb_baton_lock(&r->baton);
	while (rte_ring_sc_dequeue(r->rx, (void **)&m) == 0)
		rte_pktmbuf_free(m);
	rte_pktmbuf_free_bulk(&r->refused[r->first_refused], r->num_refused);
	r->num_refused = 0;
	vrb_baton_release(&r->baton);
}

static int
make_engine(struct pmd_port *port, const struct vrb_engine_ops *ops, void *ctx)
{
	int bit = rte_mbuf_dynflag_lookup(ICRC_OMITTED, NULL);
	bool shmlan = strcmp(port->lower.driver_name, SHMLAN) == 0 && bit >= 0;
	struct pmd_roce *r = &port->roce;
	struct vrb_engine_conf conf = {.ops = ops,
		.ctx = ctx,
		.pool = r->pool,
		.port_mtu = port->dev->data->mtu,
		.icrc = !shmlan,
		.icrc_omitted = shmlan ? RTE_BIT64(bit) : 0};

	memcpy(conf.mac, &port->dev->data->mac_addrs[0], sizeof(conf.mac));
	memcpy(conf.gid, r->gid, sizeof(conf.gid));
	return vrb_engine_create(&conf, &r->engine);
}

static int
open_engine(struct pmd_port *port, const struct vrb_engine_ops *ops, void *ctx)
{
	uint32_t room = RTE_MAX(port->dev->data->mtu + RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN,
		VRB_MBUF_ROOM + VRB_HDR_MAX);
	struct pmd_roce *r = &port->roce;
	char name[RTE_MEMPOOL_NAMESIZE];
	int rc;

	if (!r->has_ip)
		return -EADDRNOTAVAIL;
	/* Programs' memory may go away under the engine. */
	rc = vrb_guard_install();
	if (rc < 0)
		return rc;
	snprintf(name, sizeof(name), "vrb_roce_%u", port->port_id);
	r->pool = rte_pktmbuf_pool_create(name, POOL_MBUFS, POOL_CACHE, 0,
		(uint16_t)(RTE_ALIGN_CEIL(room, 64) + RTE_PKTMBUF_HEADROOM), SOCKET_ID_ANY);
	snprintf(name, sizeof(name), "vrb_rx_%u", port->port_id);
	r->rx = rte_ring_create(name, RX_RING, SOCKET_ID_ANY, RING_F_SC_DEQ);
	if (r->pool == NULL || r->rx == NULL)
		return -ENOMEM;
	return make_engine(port, ops, ctx);
}

void
pmd_roce_fini(struct pmd_port *port)
{
	struct pmd_roce *r = &port->roce;

	if (r->engine != NULL) {
		pmd_roce_stop(port);
		vrb_engine_destroy(r->engine);
	}
	r->engine = NULL;
	rte_ring_free(r->rx);
	rte_mempool_free(r->pool);
	r->rx = NULL;
	r->pool = NULL;
}

static int
roce_open(struct pmd_port *port, const struct vrb_engine_ops *ops, void *ctx)
{
	int rc;

	if (port->started || port->roce.engine != NULL)
		return -EBUSY;
	rc = open_engine(port, ops, ctx);
	if (rc < 0)
		pmd_roce_fini(port);
	return rc;
}

/* ---- addresses ---- */

/* Ports on which the address that belongs to an IP address can be had. */
static bool
takes_any_mac(const struct pmd_port *port)
{
	static const char *const drivers[] = {"net_ring", "net_null", "net_memif", SHMLAN};

	for (uint32_t i = 0; i < RTE_DIM(drivers); i++) {
		if (strcmp(port->lower.driver_name, drivers[i]) == 0)
			return true;
	}
	return false;
}

int
pmd_roce_set_ip(struct pmd_port *port, const char *ip)
{
	struct pmd_roce *r = &port->roce;
	struct rte_ether_addr mac;
	union vrb_gid gid;

	if (vrb_addr_parse(ip, &gid) < 0 || vrb_addr_is_link_local(&gid)) {
		PMD_LOG(ERR,
			"port %u: \"%s\" is no IPv4 or global IPv6 address that a host can have",
			port->port_id, ip);
		return -EINVAL;
	}
	if (takes_any_mac(port) && vrb_addr_to_mac(&gid, mac.addr_bytes) == 0 &&
		rte_eth_dev_default_mac_addr_set(port->lower_id, &mac) == 0) {
		rte_ether_addr_copy(&mac, &port->dev->data->mac_addrs[0]);
		rte_ether_addr_copy(&mac, &port->mac.uni[0]);
	}
	r->gid[0] = gid;
	vrb_addr_link_local(port->dev->data->mac_addrs[0].addr_bytes, &r->gid[1]);
	r->has_ip = true;
	return 0;
}

static const struct pmd_neigh *
find_neigh(const struct pmd_roce *r, const union vrb_gid *gid)
{
	for (unsigned int i = 0; i < r->num_neigh; i++) {
		if (memcmp(&r->neigh[i].gid, gid, sizeof(*gid)) == 0)
			return &r->neigh[i];
	}
	return NULL;
}

static int
resolve(struct pmd_port *port, const union vrb_gid *gid, uint8_t mac[6])
{
	const struct pmd_neigh *n;

	if (vrb_addr_group_mac(gid, mac) == 0)
		return 0;
	if (!vrb_addr_is_host(gid))
		return -EINVAL;
	for (int i = 0; i < VRB_GIDS; i++) {
		if (memcmp(gid, &port->roce.gid[i], sizeof(*gid)) == 0) {
			memcpy(mac, &port->dev->data->mac_addrs[0], 6);
			return 0;
		}
	}
	pthread_mutex_lock(&port->lock);
	n = find_neigh(&port->roce, gid);
	if (n != NULL)
		memcpy(mac, n->mac, 6);
	pthread_mutex_unlock(&port->lock);
	if (n != NULL)
		return 0;
	if (port->lower.if_index != 0)
		return vrb_neigh_resolve(port->lower.if_index, gid, mac);
	return vrb_addr_to_mac(gid, mac) == 0 ? 0 : -ENETUNREACH;
}

/* ---- the public calls ---- */

int
rte_pmd_verbena_ip_set(uint16_t port_id, const char *ip)
{
	struct pmd_port *port = pmd_port_find(port_id);
	int rc;

	if (port == NULL)
		return -ENODEV;
	pthread_mutex_lock(&port->lock);
	rc = port->roce.engine != NULL ? -EBUSY : pmd_roce_set_ip(port, ip);
	pthread_mutex_unlock(&port->lock);
	return rc;
}

int
rte_pmd_verbena_roce_open(uint16_t port_id, const struct vrb_engine_ops *ops, void *ctx)
{
	struct pmd_port *port = pmd_port_find(port_id);
	int rc;

	if (port == NULL)
		return -ENODEV;
	pthread_mutex_lock(&port->lock);
	rc = roce_open(port, ops, ctx);
	pthread_mutex_unlock(&port->lock);
	return rc;
}

int
rte_pmd_verbena_roce_close(uint16_t port_id)
{
	struct pmd_port *port = pmd_port_find(port_id);
	int rc = 0;

	if (port == NULL)
		return -ENODEV;
	pthread_mutex_lock(&port->lock);
	if (port->started)
		rc = -EBUSY;
	else
		pmd_roce_fini(port);
	pthread_mutex_unlock(&port->lock);
	return rc;
}

struct vrb_engine *
rte_pmd_verbena_engine(uint16_t port_id)
{
	struct pmd_port *port = pmd_port_find(port_id);

	if (port == NULL)
		return NULL;
	pthread_mutex_lock(&port->lock);
	if (port->roce.engine == NULL)
		roce_open(port, NULL, NULL);
	pthread_mutex_unlock(&port->lock);
	return port->roce.engine;
}

void
rte_pmd_verbena_lock(uint16_t port_id)
{
	struct pmd_port *port = pmd_port_find(port_id);

	if (port != NULL)
		vrb_baton_lock(&port->roce.baton);
}

void
rte_pmd_verbena_unlock(uint16_t port_id)
{
	struct pmd_port *port = pmd_port_find(port_id);

	if (port == NULL)
		return;
	if (port->roce.engine == NULL) {
		vrb_baton_release(&port->roce.baton);
		return;
	}
	run(port);
	give_back(port);
}

void
rte_pmd_verbena_kick(uint16_t port_id, struct vrb_qp *qp)
{
	struct pmd_port *port = pmd_port_find(port_id);

	if (port == NULL || port->roce.engine == NULL)
		return;
	if (vrb_baton_try(&port->roce.baton)) {
		vrb_engine_schedule(qp);
	} else {
		vrb_engine_ring(qp);
		rte_atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!vrb_baton_try(&port->roce.baton))
			return; /* its holder sees the doorbell */
	}
	run(port);
	give_back(port);
}

void
rte_pmd_verbena_progress(uint16_t port_id)
{
	struct pmd_port *port = pmd_port_find(port_id);

	if (port == NULL)
		return;
	/* Against the end of the port's pollers: program and driver agree that it is not closed
	 * meanwhile. */
	for (uint16_t i = 0; i < port->num_pollers; i++)
		pmd_poller_try(&port->pollers[i]);
	if (port->roce.engine != NULL && port->started)
		pmd_roce_run(port);
}

uint64_t
rte_pmd_verbena_now(uint16_t port_id)
{
	struct pmd_port *port = pmd_port_find(port_id);

	return port == NULL ? 0 : vrb_clock_now(&port->clock);
}

int
rte_pmd_verbena_gid_get(uint16_t port_id, unsigned int index, union vrb_gid *gid)
{
	struct pmd_port *port = pmd_port_find(port_id);

	if (port == NULL)
		return -ENODEV;
	if (index >= VRB_GIDS)
		return -EINVAL;
	if (!port->roce.has_ip)
		return -EADDRNOTAVAIL;
	*gid = port->roce.gid[index];
	return 0;
}

int
rte_pmd_verbena_resolve(uint16_t port_id, const union vrb_gid *gid, uint8_t mac[6])
{
	struct pmd_port *port = pmd_port_find(port_id);

	return port == NULL ? -ENODEV : resolve(port, gid, mac);
}

int
rte_pmd_verbena_neigh_set(uint16_t port_id, const union vrb_gid *gid, const uint8_t mac[6])
{
	struct pmd_port *port = pmd_port_find(port_id);
	struct pmd_neigh *n;
	int rc = 0;

	if (port == NULL)
		return -ENODEV;
	pthread_mutex_lock(&port->lock);
	n = (struct pmd_neigh *)(uintptr_t)find_neigh(&port->roce, gid);
	if (n == NULL && port->roce.num_neigh < PMD_MAX_NEIGH)
		n = &port->roce.neigh[port->roce.num_neigh++];
	if (n != NULL) {
		n->gid = *gid;
		memcpy(n->mac, mac, 6);
	} else {
		rc = -ENOSPC;
	}
	pthread_mutex_unlock(&port->lock);
	return rc;
}
