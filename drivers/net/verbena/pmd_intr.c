/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events that the data path gives rise to, told to the program by EAL's interrupt thread, under no
 * lock; and Rx interrupts.
 *
 * What a program waits for is a descriptor of epoll(7) for each queue. In it are an eventfd, which
 * a poller on a service core writes to, and the descriptors of the lower port's queues, because
 * without service cores somebody has to wake up in order to poll them.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <rte_interrupts.h>

#include "pmd_private.h"
#include "pmd_trace.h"

/* ---- events ---- */

static void
tell(void *arg)
{
	struct pmd_port *port = arg;
	uint32_t events;
	uint64_t n;

	if (read(port->event_fd, &n, sizeof(n)) < 0)
		return;
	events = atomic_exchange(&port->events, 0);
	pmd_trace_thresh(port->port_id, events);
	if (events & PMD_EVENT_THRESH)
		rte_eth_dev_callback_process(port->dev, RTE_ETH_EVENT_RX_AVAIL_THRESH, NULL);
	if (events & PMD_EVENT_REMOVED)
		rte_eth_dev_callback_process(port->dev, RTE_ETH_EVENT_INTR_RMV, NULL);
}

void
pmd_events_raise(struct pmd_port *port, uint32_t event)
{
	uint64_t one = 1;

	atomic_fetch_or(&port->events, event);
	if (write(port->event_fd, &one, sizeof(one)) < 0)
		return; /* it is readable already */
}

int
pmd_events_open(struct pmd_port *port)
{
	struct rte_intr_handle *h = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	int rc = -ENOMEM;

	port->event_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (h != NULL && port->event_fd >= 0 && rte_intr_fd_set(h, port->event_fd) == 0 &&
		rte_intr_type_set(h, RTE_INTR_HANDLE_EXT) == 0)
		rc = rte_intr_callback_register(h, tell, port);
	if (rc == 0) {
		port->event_intr = h;
		return 0;
	}
	rte_intr_instance_free(h);
	if (port->event_fd >= 0)
		close(port->event_fd);
	port->event_fd = -1;
	PMD_LOG(ERR, "port %u: no interrupt for events", port->port_id);
	return rc;
}

void
pmd_events_close(struct pmd_port *port)
{
	if (port->event_intr != NULL) {
		rte_intr_callback_unregister_sync(port->event_intr, tell, port);
		rte_intr_instance_free(port->event_intr);
	}
	port->event_intr = NULL;
	if (port->event_fd >= 0)
		close(port->event_fd);
	port->event_fd = -1;
}

/* ---- Rx interrupts ---- */

static int
add_fd(int epfd, int fd)
{
	struct epoll_event ev = {.events = EPOLLIN};

	return epoll_ctl(epfd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* The descriptors that a queue's frames may be announced by. */
static int
fill_epoll(struct pmd_port *port, struct pmd_rxq *q)
{
	int rc = add_fd(q->epoll, q->event);

	for (uint16_t i = 0; i < port->num_lower_rx && rc == 0; i++) {
		int fd = rte_eth_dev_rx_intr_ctl_q_get_fd(port->lower_id, i);

		if (fd >= 0)
			rc = add_fd(q->epoll, fd);
	}
	return rc;
}

static int
open_queue(struct pmd_port *port, struct pmd_rxq *q)
{
	if (q->event < 0)
		q->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (q->epoll >= 0)
		close(q->epoll);
	q->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (q->event < 0 || q->epoll < 0)
		return -errno;
	return fill_epoll(port, q);
}

static int
make_handle(struct pmd_port *port)
{
	struct rte_intr_handle *h = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	int n = port->num_rxq;

	if (h == NULL)
		return -ENOMEM;
	port->rx_intr = h;
	if (rte_intr_vec_list_alloc(h, NULL, n) != 0 || rte_intr_nb_efd_set(h, n) != 0 ||
		rte_intr_max_intr_set(h, n + 1) != 0 ||
		rte_intr_type_set(h, RTE_INTR_HANDLE_VDEV) != 0 ||
		/* Nothing is to be read from it: it stays readable until what is in it is not. */
		rte_intr_efd_counter_size_set(h, 0) != 0)
		return -ENOMEM;
	for (int i = 0; i < n; i++) {
		if (rte_intr_vec_list_index_set(h, i, RTE_INTR_VEC_RXTX_OFFSET + i) != 0 ||
			rte_intr_efds_index_set(h, i, port->rxq[i]->epoll) != 0)
			return -ENOMEM;
	}
	port->dev->intr_handle = h;
	return 0;
}

int
pmd_intr_setup(struct pmd_port *port)
{
	int rc = 0;

	pmd_intr_fini(port);
	if (port->dev->data->dev_conf.intr_conf.rxq == 0)
		return 0;
	if (port->num_rxq > RTE_MAX_RXTX_INTR_VEC_ID) {
		PMD_LOG(ERR, "port %u: at most %u queues can have interrupts", port->port_id,
			RTE_MAX_RXTX_INTR_VEC_ID);
		return -EINVAL;
	}
	for (uint16_t i = 0; i < port->num_rxq && rc == 0; i++)
		rc = open_queue(port, port->rxq[i]);
	if (rc == 0)
		rc = make_handle(port);
	if (rc < 0) {
		pmd_intr_fini(port);
		PMD_LOG(ERR, "port %u: no Rx interrupts: %s", port->port_id, strerror(-rc));
	}
	return rc;
}

void
pmd_intr_fini(struct pmd_port *port)
{
	port->intr_users = 0;
	for (uint16_t i = 0; i < PMD_MAX_RXQ; i++) {
		struct pmd_rxq *q = port->rxq[i];

		if (q == NULL)
			continue;
		atomic_store(&q->intr, 0);
		q->intr_on = false;
		if (q->epoll >= 0)
			close(q->epoll);
		q->epoll = -1;
	}
	if (port->rx_intr == NULL)
		return;
	port->dev->intr_handle = NULL;
	rte_intr_vec_list_free(port->rx_intr);
	rte_intr_instance_free(port->rx_intr);
	port->rx_intr = NULL;
}

static void
lower_enable(struct pmd_port *port)
{
	for (uint16_t i = 0; i < port->num_lower_rx; i++)
		rte_eth_dev_rx_intr_enable(port->lower_id, i);
}

/* What the driver of the lower port has its descriptors read by (eal_interrupts.c). */
static void
clear_fd(const struct pmd_port *port, uint16_t queue)
{
	const struct rte_intr_handle *h = rte_eth_devices[port->lower_id].intr_handle;
	struct pollfd p = {
		.fd = rte_eth_dev_rx_intr_ctl_q_get_fd(port->lower_id, queue), .events = POLLIN};
	uint64_t n;

	if (p.fd < 0 || (rte_intr_type_get(h) == RTE_INTR_HANDLE_VDEV &&
				rte_intr_efd_counter_size_get(h) != sizeof(n)))
		return;
	if (poll(&p, 1, 0) == 1 && read(p.fd, &n, sizeof(n)) < 0)
		return; /* somebody else has read it */
}

static void
lower_disable(struct pmd_port *port)
{
	for (uint16_t i = 0; i < port->num_lower_rx; i++) {
		rte_eth_dev_rx_intr_disable(port->lower_id, i);
		clear_fd(port, i);
	}
}

/* Whether frames can announce themselves at all. */
static bool
can_wake(const struct pmd_port *port, const struct pmd_rxq *q)
{
	return q->by_service || port->num_lower_rx == 0 ||
	       rte_eth_dev_rx_intr_ctl_q_get_fd(port->lower_id, 0) >= 0;
}

int
pmd_intr_enable(struct rte_eth_dev *dev, uint16_t queue)
{
	struct pmd_port *port = pmd_port_of(dev);
	struct pmd_rxq *q = port->rxq[queue];
	uint64_t one = 1;

	if (port->rx_intr == NULL || port->lower_gone)
		return -EIO;
	if (!can_wake(port, q))
		return -ENOTSUP;
	pthread_mutex_lock(&port->lock);
	if (!q->intr_on) {
		q->intr_on = true;
		if (port->intr_users++ == 0 && !q->by_service)
			lower_enable(port);
	}
	pthread_mutex_unlock(&port->lock);
	atomic_store(&q->intr, 1);
	/* Frames that a poller has put there before it could see that. */
	if (!q->direct && !rte_ring_empty(q->cring->ring) && atomic_exchange(&q->intr, 0) != 0 &&
		write(q->event, &one, sizeof(one)) < 0)
		return 0;
	return 0;
}

int
pmd_intr_disable(struct rte_eth_dev *dev, uint16_t queue)
{
	struct pmd_port *port = pmd_port_of(dev);
	struct pmd_rxq *q = port->rxq[queue];
	uint64_t n;

	if (port->rx_intr == NULL || port->lower_gone)
		return -EIO;
	atomic_store(&q->intr, 0);
	pthread_mutex_lock(&port->lock);
	if (q->intr_on) {
		q->intr_on = false;
		if (--port->intr_users == 0 && !q->by_service)
			lower_disable(port);
	}
	pthread_mutex_unlock(&port->lock);
	if (read(q->event, &n, sizeof(n)) < 0)
		return 0; /* it was not readable */
	return 0;
}
