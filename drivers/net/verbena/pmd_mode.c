/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which way frames take, direct or by pollers (see pmd_private.h), and the change from the one to
 * the other while the program's threads receive.
 */
#include "pmd_private.h"
#include "pmd_trace.h"

/* Each queue is a queue of the lower port's, and nothing else has to be done there. */
static bool
queue_wants_poller(const struct pmd_rxq *q)
{
	return q->share != NULL || q->cring->stock != NULL || q->stopped ||
	       atomic_load_explicit(&q->cring->limit, memory_order_relaxed) != 0;
}

bool
pmd_mode_wants_pollers(const struct pmd_port *port)
{
	if (port->rss.on || port->num_flows > 0 || port->isolated || port->rx_todo != 0 ||
		port->mac.active || port->roce.engine != NULL ||
		port->num_lower_rx != port->num_rxq || port->args.pollers != 0 || port->lower_gone)
		return true;
	for (uint16_t i = 0; i < port->num_rxq; i++) {
		/* One that is being set up anew: its frames have to be dropped. */
		if (port->rxq[i] == NULL || queue_wants_poller(port->rxq[i]))
			return true;
	}
	return false;
}

void
pmd_mode_leave_direct(struct pmd_port *port)
{
	if (!port->polled)
		pmd_trace_mode(port->port_id, 1);
	port->polled = true;
	for (uint16_t i = 0; i < port->num_rxq; i++) {
		if (port->rxq[i] != NULL)
			port->rxq[i]->direct = false;
	}
}

/* With the gates closed and the batons held. */
void
pmd_mode_update(struct pmd_port *port)
{
	if (!port->started)
		return;
	if (pmd_mode_wants_pollers(port)) {
		pmd_mode_leave_direct(port);
		return;
	}
	/* What waits in a ring comes before what waits in the lower port. */
	for (uint16_t i = 0; i < port->num_rxq; i++) {
		if (!rte_ring_empty(port->rxq[i]->cring->ring))
			return;
	}
	if (port->polled)
		pmd_trace_mode(port->port_id, 0);
	port->polled = false;
	for (uint16_t i = 0; i < port->num_rxq; i++)
		port->rxq[i]->direct = true;
}

/* ---- gates ---- */

static void
each_gate(struct pmd_port *port, void (*fn)(struct pmd_rxq *q))
{
	for (uint16_t i = 0; i < PMD_MAX_RXQ; i++) {
		struct pmd_rxq *q = port->rxq[i], *other;

		if (q == NULL)
			continue;
		fn(q);
		if (q->share == NULL)
			continue;
		LIST_FOREACH (other, &q->share->members, link) {
			if (other->port != port)
				fn(other);
		}
	}
}

static void
close_one(struct pmd_rxq *q)
{
	pmd_gate_close(&q->gate);
}

static void
open_one(struct pmd_rxq *q)
{
	if (q->port->started && !q->stopped)
		pmd_gate_open(&q->gate);
}

void
pmd_gates_close(struct pmd_port *port)
{
	pthread_mutex_lock(&pmd_share_lock);
	each_gate(port, close_one);
}

void
pmd_gates_open(struct pmd_port *port)
{
	each_gate(port, open_one);
	pthread_mutex_unlock(&pmd_share_lock);
}
