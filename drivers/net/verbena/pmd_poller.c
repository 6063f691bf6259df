/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pollers: their life, and a round of one.
 *
 * Each poller has some of the lower port's queues, so the frames of one such queue are never
 * steered by two at the same time, and a flow keeps its order.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_service.h>
#include <rte_service_component.h>

#include "pmd_private.h"

/* ---- a round ---- */

static void
refill(struct pmd_port *port)
{
	for (uint16_t i = 0; i < port->num_rxq; i++) {
		if (port->rxq[i] != NULL && port->rxq[i]->cring->stock != NULL)
			pmd_cring_refill(port->rxq[i]->cring);
	}
}

static unsigned int
round_of(struct pmd_poller *p)
{
	struct pmd_port *port = p->port;
	struct rte_mbuf *pkts[PMD_BURST];
	unsigned int total = 0;

	if (p->copies)
		refill(port);
	for (uint16_t q = p->index; q < port->num_lower_rx; q += port->num_pollers) {
		unsigned int n = rte_eth_rx_burst(port->lower_id, q, pkts, PMD_BURST);

		if (n == 0)
			continue;
		total += n;
		pmd_steer(p, pkts, n, q);
		pmd_give_staged(p);
	}
	atomic_fetch_add_explicit(&p->rounds, 1, memory_order_relaxed);
	p->empty += total == 0;
	p->packets += total;
	return total;
}

unsigned int
pmd_poller_try(struct pmd_poller *p)
{
	struct pmd_port *port = p->port;
	bool crossed = false, roce = false;
	unsigned int n = 0;

	if (!vrb_baton_try(&p->baton)) {
		atomic_fetch_add_explicit(&p->busy, 1, memory_order_relaxed);
		return 0;
	}
	if (likely(port->started && !port->lower_gone && port->polled)) {
		n = round_of(p);
		crossed = p->crossed;
		p->crossed = false;
		roce = port->roce.engine != NULL;
	}
	vrb_baton_release(&p->baton);
	if (unlikely(crossed))
		pmd_events_raise(port, PMD_EVENT_THRESH);
	if (unlikely(roce))
		pmd_roce_run(port);
	return n;
}

/* ---- batons ---- */

void
pmd_pollers_lock(struct pmd_port *port)
{
	for (uint16_t i = 0; i < port->num_pollers; i++)
		vrb_baton_lock(&port->pollers[i].baton);
}

void
pmd_pollers_unlock(struct pmd_port *port)
{
	for (uint16_t i = port->num_pollers; i-- > 0;)
		vrb_baton_release(&port->pollers[i].baton);
}

/* ---- life ---- */

static void
free_arrays(struct pmd_poller *p)
{
	free(p->staged);
	free(p->fill);
	free(p->given);
}

void
pmd_pollers_fini(struct pmd_port *port)
{
	/* The figures go on where the next pollers start from 0. */
	for (uint16_t q = 0; q < port->pollers_queues; q++) {
		struct pmd_given sum;

		pmd_given_sum(port, q, &sum);
		port->given_base[q] = (struct pmd_given){0 - sum.packets, 0 - sum.bytes,
			0 - sum.full, 0 - sum.nombuf, 0 - sum.stopped};
	}
	if (port->num_pollers > 0) {
		struct pmd_lost lost;

		pmd_lost_sum(port, &lost);
		port->lost_base = (struct pmd_lost){0 - lost.flow, 0 - lost.isolated,
			0 - lost.filter, 0 - lost.mac, 0 - lost.bad_len, 0 - lost.roce_full,
			0 - lost.roce, 0 - lost.bytes};
	}
	for (uint16_t i = 0; i < port->num_pollers; i++)
		free_arrays(&port->pollers[i]);
	free(port->pollers);
	port->pollers = NULL;
	port->num_pollers = 0;
	port->pollers_queues = 0;
}

static int
init_one(struct pmd_port *port, uint16_t index)
{
	struct pmd_poller *p = &port->pollers[index];
	uint16_t n = RTE_MAX(port->num_rxq, 1);

	p->port = port;
	p->index = index;
	p->service_id = index < port->num_services ? port->service_ids[index] : UINT32_MAX;
	for (uint16_t q = index; q < port->num_lower_rx; q += port->num_pollers)
		p->num_lower++;
	for (uint16_t q = 0; q < port->num_rxq; q++)
		p->copies |= port->rxq[q]->cring->stock != NULL;
	p->staged = calloc((size_t)n * PMD_BURST, sizeof(*p->staged));
	p->fill = calloc(n, sizeof(*p->fill));
	p->given = calloc(n, sizeof(*p->given));
	return p->staged == NULL || p->fill == NULL || p->given == NULL ? -ENOMEM : 0;
}

int
pmd_pollers_init(struct pmd_port *port)
{
	uint16_t n = port->args.pollers != 0 ? port->args.pollers : port->num_lower_rx;
	int rc = 0;

	pmd_pollers_fini(port);
	n = RTE_MIN(n, port->num_lower_rx);
	n = RTE_MIN(n, PMD_MAX_POLLERS);
	n = RTE_MAX(n, 1);
	port->pollers = aligned_alloc(RTE_CACHE_LINE_SIZE, n * sizeof(*port->pollers));
	if (port->pollers == NULL)
		return -ENOMEM;
	memset(port->pollers, 0, n * sizeof(*port->pollers));
	port->num_pollers = n;
	port->pollers_queues = port->num_rxq;
	for (uint16_t i = 0; i < n && rc == 0; i++)
		rc = init_one(port, i);
	if (rc < 0)
		pmd_pollers_fini(port);
	return rc;
}

/* ---- services ---- */

/* Of the poller with that number, if there is one now. */
static int32_t
service_round(void *arg)
{
	struct pmd_service *s = arg;

	if (!atomic_load_explicit(&s->on, memory_order_acquire))
		return -EAGAIN;
	return pmd_poller_try(&s->port->pollers[s->index]) > 0 ? 0 : -EAGAIN;
}

int
pmd_services_init(struct pmd_port *port)
{
	uint16_t n = port->args.pollers != 0 ? port->args.pollers : 1;

	for (uint16_t i = 0; i < n; i++) {
		struct pmd_service *s = &port->services[i];
		struct rte_service_spec spec = {.callback = service_round,
			.callback_userdata = s,
			.capabilities = RTE_SERVICE_CAP_MT_SAFE,
			.socket_id = SOCKET_ID_ANY};
		int rc;

		s->port = port;
		s->index = i;
		snprintf(spec.name, sizeof(spec.name), "net_verbena_%u_%u", port->port_id, i);
		rc = rte_service_component_register(&spec, &port->service_ids[i]);
		if (rc < 0) {
			PMD_LOG(ERR, "port %u: cannot register a service: %s", port->port_id,
				strerror(-rc));
			return rc;
		}
		port->num_services++;
	}
	return 0;
}

/* A core that does not come round any more would be waited for in vain; the gate of "on" keeps it
 * out. */
static void
wait_until_idle(uint32_t id)
{
	for (unsigned int i = 0; i < 1000 && rte_service_may_be_active(id) == 1; i++)
		usleep(100);
}

/*
 * rte_eal_cleanup() ends the services before it removes the devices, and walks over the list of
 * virtual devices in a way that does not bear that a driver removes another one of them.
 */
bool
pmd_services_gone(const struct pmd_port *port)
{
	return port->num_services > 0 && rte_service_get_name(port->service_ids[0]) == NULL;
}

void
pmd_services_fini(struct pmd_port *port)
{
	if (pmd_services_gone(port))
		port->num_services = 0;
	for (uint16_t i = 0; i < port->num_services; i++) {
		rte_service_component_runstate_set(port->service_ids[i], 0);
		wait_until_idle(port->service_ids[i]);
		rte_service_component_unregister(port->service_ids[i]);
	}
	port->num_services = 0;
}

/* All pollers have a service that is on a core: the program does not have to run any. */
static bool
all_served(const struct pmd_port *port)
{
	if (port->num_services < port->num_pollers)
		return false;
	for (uint16_t i = 0; i < port->num_pollers; i++) {
		if (rte_service_runstate_get(port->service_ids[i]) != 1)
			return false;
	}
	return true;
}

void
pmd_services_run(struct pmd_port *port, bool run)
{
	uint16_t n = RTE_MIN(port->num_services, port->num_pollers);
	bool served;

	for (uint16_t i = 0; i < n && !pmd_services_gone(port); i++) {
		atomic_store_explicit(&port->services[i].on, run, memory_order_release);
		rte_service_component_runstate_set(port->service_ids[i], run);
		if (!run)
			wait_until_idle(port->service_ids[i]);
	}
	served = run && port->polled && all_served(port);
	pmd_gates_close(port);
	for (uint16_t i = 0; i < port->num_pollers; i++)
		port->pollers[i].by_service = served;
	for (uint16_t i = 0; i < port->num_rxq; i++) {
		if (port->rxq[i] != NULL) {
			port->rxq[i]->by_service = served;
			port->rxq[i]->helps = false;
			port->rxq[i]->seen_at = rte_rdtsc();
		}
	}
	pmd_gates_open(port);
}
