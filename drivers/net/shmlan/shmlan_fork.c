/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan: fork(2).
 *
 * A child has copies of all descriptors until it calls exec(2), and may outlive its parent: then
 * connections would not end and locks would not be released when the parent dies, and its peers
 * would take it for alive. So the child closes them at once. Its ports are marked, and neither send
 * nor receive: the rings are its parent's, and each has one producer and one consumer. All changes
 * of descriptors happen with port->lock, which is held across the fork.
 */
#include <pthread.h>
#include <unistd.h>

#include "shmlan_private.h"

static LIST_HEAD(, shm_port) ports = LIST_HEAD_INITIALIZER(ports);
static pthread_mutex_t ports_lock = PTHREAD_MUTEX_INITIALIZER;

static void
before(void)
{
	struct shm_port *port;

	pthread_mutex_lock(&ports_lock);
	LIST_FOREACH (port, &ports, next) {
		pthread_mutex_lock(&port->lock);
		pthread_mutex_lock(&port->reg.lock);
	}
}

static void
after(void)
{
	struct shm_port *port;

	LIST_FOREACH (port, &ports, next) {
		pthread_mutex_unlock(&port->reg.lock);
		pthread_mutex_unlock(&port->lock);
	}
	pthread_mutex_unlock(&ports_lock);
}

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void
close_conns(struct shm_port *port)
{
	struct shm_conn *conn;
	unsigned int i;

	LIST_FOREACH (conn, &port->conns, next)
		close_fd(&conn->fd);
	for (i = 0; i < VRB_BELL_RINGS; i++) {
		if (port->in[i] != NULL)
			close_fd(&port->in[i]->conn.fd);
	}
	for (i = 0; i < VRB_SHMLAN_MEMBERS; i++) {
		if (port->tx.outs[i] != NULL) {
			close_fd(&port->tx.outs[i]->conn.fd);
			close_fd(&port->tx.outs[i]->evfd);
		}
	}
	close_fd(&port->watch.fd);
}

static void
child(void)
{
	struct shm_port *port;

	LIST_FOREACH (port, &ports, next) {
		atomic_store_explicit(&port->rx.change, SHM_CHANGE_FORKED, memory_order_relaxed);
		atomic_store_explicit(&port->tx.change, SHM_CHANGE_FORKED, memory_order_relaxed);
		close_conns(port);
		close_fd(&port->epfd);
		close_fd(&port->ctl.fd);
		close_fd(&port->timer.fd);
		if (port->bell != NULL) {
			close_fd(&port->bell->pagefd);
			close_fd(&port->bell->evfd);
		}
		close_fd(&port->reg.listenfd);
		close_fd(&port->reg.fd);
		close_fd(&port->reg.dirfd);
		close_fd(&port->reg.basefd);
	}
	after();
}

/*
 * When the program is loaded, before others register what they do at a fork: who forks takes the
 * locks in the opposite order of registration, and those under which a port is made come first.
 */
RTE_INIT_PRIO(shm_fork_install, CLASS)
{
	pthread_atfork(before, after, child);
}

void
vrb_shmlan_fork_add(struct shm_port *port)
{
	pthread_mutex_lock(&ports_lock);
	LIST_INSERT_HEAD(&ports, port, next);
	pthread_mutex_unlock(&ports_lock);
}

void
vrb_shmlan_fork_remove(struct shm_port *port)
{
	pthread_mutex_lock(&ports_lock);
	LIST_REMOVE(port, next);
	pthread_mutex_unlock(&ports_lock);
}
