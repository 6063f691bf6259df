/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that receive from ports. A driver that runs to completion, as net_verbena without service
 * cores does, works in them.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>

#include "backend.h"
#include "cli.h"
#include "ports.h"

#define BURST 32
/* Rounds without a frame after which others get the CPU, and after which the thread naps. */
#define ROUNDS_TO_YIELD 100
#define ROUNDS_TO_NAP 1000
#define NAP_NS 50000

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

static void *
poll_port(void *arg)
{
	static const struct timespec nap = {.tv_nsec = NAP_NS};
	struct tp_poller *p = arg;
	unsigned int idle = 0;

	/* With an id the mempools have a cache for this thread. */
	rte_thread_register();
	while (!atomic_load_explicit(&p->quit, memory_order_relaxed)) {
		bool any = false;

		for (uint16_t i = 0; i < p->num; i++)
			any |= poll_queue(p->port, &p->queue[i]);
		atomic_fetch_add_explicit(&p->rounds, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&p->empty, !any, memory_order_relaxed);
		idle = any ? 0 : idle + 1;
		if (idle >= ROUNDS_TO_NAP)
			nanosleep(&nap, NULL);
		else if (idle >= ROUNDS_TO_YIELD)
			sched_yield();
	}
	rte_thread_unregister();
	return NULL;
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
	sigset_t all, old;
	pthread_t thread;
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
	if (rc == 0) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		rc = -pthread_create(&thread, NULL, poll_port, p);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
		if (rc < 0)
			tp_refuse(rc, "a poller cannot be started: %s", strerror(-rc));
	}
	if (rc < 0) {
		free(p);
		return rc;
	}
	pthread_setname_np(thread, "testpmd-poller");
	p->thread = thread;
	p->next = pollers;
	pollers = p;
	return 0;
}

void
tp_poller_stop(struct tp_poller *poller)
{
	struct tp_poller **link = &pollers;

	atomic_store(&poller->quit, true);
	pthread_join((pthread_t)poller->thread, NULL);
	while (*link != poller)
		link = &(*link)->next;
	*link = poller->next;
	free(poller);
}

void
tp_pollers_end(void)
{
	while (pollers != NULL)
		tp_poller_stop(pollers);
}
