/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receiving from ports, by the worker. A driver that runs to completion, as net_verbena without
 * service cores does, works in there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>

#include "backend.h"
#include "cli.h"
#include "ports.h"
#include "worker.h"

#define BURST 32

static struct tp_poller *pollers;

struct tp_poller *
tp_pollers(void)
{
	return pollers;
}

struct tp_poller *
tp_poller_of(uint16_t port)
{
	struct tp_poller *p = pollers;

	while (p != NULL && p->port != port)
		p = p->next;
	return p;
}

static bool
poll_queue(uint16_t port, struct tp_poller_queue *q)
{
	struct rte_mbuf *pkts[BURST];
	uint16_t n = rte_eth_rx_burst(port, q->id, pkts, BURST), left;
	uint64_t bytes = 0;

	if (n == 0)
		return false;
	for (uint16_t i = 0; i < n; i++)
		bytes += rte_pktmbuf_pkt_len(pkts[i]);
	left = port == tp_device_port() ? tp_take_frames(pkts, n) : n;
	rte_pktmbuf_free_bulk(pkts, left);
	atomic_fetch_add_explicit(&q->frames, n, memory_order_relaxed);
	atomic_fetch_add_explicit(&q->bytes, bytes, memory_order_relaxed);
	return true;
}

bool
tp_pollers_work(void)
{
	bool any = false;

	for (struct tp_poller *p = pollers; p != NULL; p = p->next) {
		bool some = false;

		for (uint16_t i = 0; i < p->num; i++)
			some |= poll_queue(p->port, &p->queue[i]);
		atomic_fetch_add_explicit(&p->rounds, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&p->empty, !some, memory_order_relaxed);
		any |= some;
	}
	return any;
}

static int
choose_queues(struct tp_poller *p, const uint32_t *queues, unsigned int num)
{
	struct rte_eth_dev_info info;
	int rc = rte_eth_dev_info_get(p->port, &info);

	if (rc < 0)
		return tp_refuse(rc, "port %u does not tell its queues", p->port);
	p->num = RTE_MIN(num > 0 ? num : info.nb_rx_queues, TP_MAX_QUEUES);
	for (uint16_t i = 0; i < p->num; i++) {
		p->queue[i].id = num > 0 ? queues[i] : i;
		if (p->queue[i].id >= info.nb_rx_queues)
			return tp_refuse(-EINVAL, "port %u has rx-queues 0 to %d", p->port,
				info.nb_rx_queues - 1);
	}
	return 0;
}

int
tp_poller_start(uint16_t port, const uint32_t *queues, unsigned int num)
{
	struct tp_poller *p;
	int rc = tp_port_check_ours(port);

	if (rc < 0)
		return rc;
	if (tp_poller_of(port) != NULL)
		return tp_refuse(-EALREADY, "port %u has a poller: poller stop %u", port, port);
	if (!tp_port_is_started(port))
		return tp_refuse(-ENETDOWN, "port %u is stopped: port start %u", port, port);
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return tp_refuse(-ENOMEM, "there is no memory");
	p->port = port;
	rc = choose_queues(p, queues, num);
	if (rc == 0)
		rc = tp_worker_start();
	if (rc < 0) {
		free(p);
		return rc;
	}
	tp_worker_lock();
	p->next = pollers;
	pollers = p;
	tp_worker_unlock();
	return 0;
}

void
tp_poller_stop(struct tp_poller *poller)
{
	struct tp_poller **link = &pollers;

	tp_worker_lock();
	while (*link != poller)
		link = &(*link)->next;
	*link = poller->next;
	tp_worker_unlock();
	free(poller);
}

void
tp_pollers_end(void)
{
	while (pollers != NULL)
		tp_poller_stop(pollers);
}
