/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan: the control side of a port, in EAL's interrupt thread.
 *
 * Everything that happens to a port arrives at one epoll set, whose descriptor is registered with
 * EAL: peers that connect, rings that they hand over, connections that end, pokes after a change of
 * the registry.
 *
 * Who notices a death: everybody who has a ring from or to the dead member, and the member before
 * it in the order of slots, which keeps a watch on it for just that. Who notices removes the dead
 * from the registry and pokes all others. A watcher that dies in the middle of this is watched
 * itself, and who comes after it looks at all members, not only at one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

#include <rte_interrupts.h>

#include "shmlan_conn.h"

#define EVENTS 32 /* handled with the lock held once */
#define SCAN_TRIES 12 /* after 1, 2, 4 ... ms: some 4 seconds */
#define BUSY_PAUSE_MS 10

static void
timer_arm(struct shm_port *port, unsigned int ms)
{
	struct itimerspec its = {
		.it_value = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L}};

	timerfd_settime(port->timer.fd, 0, &its, NULL);
}

/* Tells the data path that there is something to take over. Release: what was changed before is
 * visible. */
static void
change(_Atomic uint32_t *word)
{
	atomic_fetch_or_explicit(word, SHM_CHANGE_RINGS, memory_order_release);
}

/* A connection to another member has ended: it is dead, unless it has left or just does not want
 * us. */
static void
peer_gone(struct shm_port *port, const struct shm_conn *conn)
{
	const struct shm_entry *e = &port->reg.file->entry[conn->slot];

	if (atomic_load_explicit(&e->word, memory_order_acquire) == 0 ||
		atomic_load_explicit(&e->inc, memory_order_relaxed) != conn->inc)
		return;
	port->scan = true;
	port->scan_tries = 0;
}

static void
conn_free(struct shm_port *port, struct shm_conn *conn)
{
	vrb_shmlan_conn_drop(port, conn);
	LIST_REMOVE(conn, next);
	free(conn);
}

/* The first message of a ring's sender. The connection changes hands: from @conn to the new ring.
 */
static void
on_ring(struct shm_port *port, struct shm_conn *conn, const struct shm_msg *msg, int memfd)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP};
	struct shm_in *in;
	int rc;

	rc = vrb_shmlan_in_open(port, conn->fd, msg, memfd, &in);
	if (rc != 0) {
		SHM_LOG(WARNING, "port %u: refused the ring of member %u: %s", port->port_id,
			msg->slot, strerror(-rc));
		conn_free(port, conn);
		return;
	}
	ev.data.ptr = &in->conn;
	epoll_ctl(port->epfd, EPOLL_CTL_MOD, conn->fd, &ev);
	LIST_REMOVE(conn, next);
	free(conn);
	change(&port->rx.change);
	vrb_shmlan_bell_wake(port->bell);
}

static void
on_new(struct shm_port *port, struct shm_conn *conn)
{
	struct shm_msg msg;
	int fds[SHM_MSG_FDS];
	int n;

	n = vrb_shmlan_msg_recv(conn->fd, &msg, fds);
	if (n == -EAGAIN || n == -EINTR)
		return;
	/* A poke ends here: the end of a connection on which nothing was said. */
	if (n != sizeof(msg) || msg.magic != SHM_MSG_MAGIC || msg.to != port->reg.inc ||
		msg.slot >= VRB_SHMLAN_MEMBERS) {
		conn_free(port, conn);
	} else if (msg.type == SHM_MSG_RING) {
		on_ring(port, conn, &msg, fds[0]);
	} else if (msg.type == SHM_MSG_WATCH) {
		conn->kind = SHM_CONN_WATCHED;
		conn->slot = msg.slot;
		conn->inc = msg.inc;
	} else {
		conn_free(port, conn);
	}
	vrb_shmlan_msg_close_fds(fds);
}

static void
on_listen(struct shm_port *port)
{
	struct shm_conn *conn;
	int fd;

	while ((fd = accept4(port->listen.fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		conn = vrb_shmlan_peer_is_us(fd) ? calloc(1, sizeof(*conn)) : NULL;
		if (conn == NULL) {
			close(fd);
			continue;
		}
		conn->kind = SHM_CONN_NEW;
		conn->fd = fd;
		LIST_INSERT_HEAD(&port->conns, conn, next);
		if (vrb_shmlan_conn_add(port, conn) != 0)
			conn_free(port, conn);
		else
			on_new(port, conn);
	}
	if (errno == EMFILE || errno == ENFILE) {
		/* The set reports the socket again and again: one line a second, and time for
		 * others. */
		SHM_LOG(ERR,
			"port %u: too many open files to accept a peer; raise the limit (ulimit "
			"-n)",
			port->port_id);
		epoll_ctl(port->epfd, EPOLL_CTL_DEL, port->listen.fd, NULL);
		timer_arm(port, 1000);
	}
}

static void
on_in(struct shm_port *port, struct shm_conn *conn)
{
	struct shm_in *in = (struct shm_in *)conn;
	char byte[16];
	ssize_t n;

	while ((n = recv(conn->fd, byte, sizeof(byte), MSG_DONTWAIT)) > 0) {
		if (vrb_bell_ring(port->bell->page, in->idx))
			vrb_shmlan_bell_kick(port->bell);
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	vrb_shmlan_conn_drop(port, conn);
	atomic_store_explicit(&in->eof, true, memory_order_relaxed);
	change(&port->rx.change);
	vrb_shmlan_bell_wake(port->bell);
	peer_gone(port, conn);
}

static void
on_out(struct shm_port *port, struct shm_conn *conn)
{
	struct shm_out *out = (struct shm_out *)conn;
	struct shm_msg msg;
	int fds[SHM_MSG_FDS];
	int n;

	n = vrb_shmlan_msg_recv(conn->fd, &msg, fds);
	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n != sizeof(msg) || msg.magic != SHM_MSG_MAGIC || msg.type != SHM_MSG_BELL ||
		vrb_shmlan_out_answer(out, &msg, fds) != 0) {
		/* Not closed before the Tx path has stopped using it: it may be about to send. */
		epoll_ctl(port->epfd, EPOLL_CTL_DEL, conn->fd, NULL);
		atomic_store_explicit(&out->eof, true, memory_order_relaxed);
		vrb_shmlan_bell_wake(port->bell);
		peer_gone(port, conn);
	}
	vrb_shmlan_msg_close_fds(fds);
	change(&port->tx.change);
}

/* The Rx path has found rings that break the rules: hang up, so that their senders know. */
static void
on_ctl(struct shm_port *port)
{
	uint64_t n;
	unsigned int i;

	if (read(port->ctl.fd, &n, sizeof(n)) < 0)
		return;
	for (i = 0; i < VRB_BELL_RINGS; i++) {
		struct shm_in *in = port->in[i];

		if (in == NULL || !atomic_load_explicit(&in->broken, memory_order_relaxed))
			continue;
		SHM_LOG(WARNING, "port %u: the ring of member %u broke the rules and was closed",
			port->port_id, in->conn.slot);
		vrb_shmlan_conn_drop(port, &in->conn);
	}
	change(&port->rx.change);
}

static void
on_timer(struct shm_port *port)
{
	uint64_t n;

	if (read(port->timer.fd, &n, sizeof(n)) < 0)
		return;
	port->scan = true;
	/* Again, if on_listen() took it out. */
	vrb_shmlan_conn_add(port, &port->listen);
}

static void
on_watched(struct shm_port *port, struct shm_conn *conn)
{
	char byte;
	ssize_t n = recv(conn->fd, &byte, 1, MSG_DONTWAIT);

	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	peer_gone(port, conn);
	if (conn->kind == SHM_CONN_WATCH)
		vrb_shmlan_conn_drop(port, conn);
	else
		conn_free(port, conn);
}

/* Frees no other connection than @conn, as the caller's list of events may hold others. */
static void
on_event(struct shm_port *port, struct shm_conn *conn)
{
	switch (conn->kind) {
	case SHM_CONN_LISTEN:
		on_listen(port);
		break;
	case SHM_CONN_CTL:
		on_ctl(port);
		break;
	case SHM_CONN_TIMER:
		on_timer(port);
		break;
	case SHM_CONN_NEW:
		on_new(port, conn);
		break;
	case SHM_CONN_IN:
		on_in(port, conn);
		break;
	case SHM_CONN_OUT:
		on_out(port, conn);
		break;
	case SHM_CONN_WATCH:
	case SHM_CONN_WATCHED:
		on_watched(port, conn);
		break;
	}
}

/* Removes the dead from the registry; looks again a little later if none was found. */
static void
scan(struct shm_port *port)
{
	bool suspect;
	int rc;

	port->scan = false;
	rc = vrb_shmlan_reg_scan(&port->reg, &suspect);
	if (rc == -EAGAIN) {
		timer_arm(port, BUSY_PAUSE_MS);
	} else if (rc == 0 && suspect && port->scan_tries < SCAN_TRIES) {
		timer_arm(port, 1u << port->scan_tries);
		port->scan_tries++;
	}
}

/* Watches the next member, if that is not done yet. With the lock. */
static void
watch(struct shm_port *port)
{
	struct shm_msg msg = {.magic = SHM_MSG_MAGIC,
		.type = SHM_MSG_WATCH,
		.slot = port->reg.slot,
		.inc = port->reg.inc};
	struct shm_conn *w = &port->watch;
	unsigned int slot;

	if (!vrb_shmlan_reg_next(&port->reg, &slot, &msg.to)) {
		vrb_shmlan_conn_drop(port, w);
		return;
	}
	if (w->fd >= 0 && w->slot == slot && w->inc == msg.to)
		return;
	vrb_shmlan_conn_drop(port, w);
	w->slot = slot;
	w->inc = msg.to;
	w->fd = vrb_shmlan_reg_connect(&port->reg, slot, msg.to);
	if (w->fd >= 0 && vrb_shmlan_msg_send(w->fd, &msg, NULL, 0) == 0 &&
		vrb_shmlan_conn_add(port, w) == 0)
		return;
	/* It dies just now, or we lack descriptors: once more, when the scan comes round. */
	vrb_shmlan_conn_drop(port, w);
	if (port->scan_tries < SCAN_TRIES) {
		timer_arm(port, 1u << port->scan_tries);
		port->scan_tries++;
	}
}

/* Brings the link's state up to date and tells the application when it has changed. Without the
 * lock. */
void
vrb_shmlan_link_state(struct shm_port *port)
{
	struct rte_eth_link link = {.link_speed = RTE_ETH_SPEED_NUM_100G,
		.link_duplex = RTE_ETH_LINK_FULL_DUPLEX,
		.link_autoneg = RTE_ETH_LINK_FIXED};
	bool tell;

	pthread_mutex_lock(&port->lock);
	link.link_status = port->started && vrb_shmlan_reg_others_up(&port->reg) != 0;
	rte_eth_linkstatus_set(port->dev, &link);
	tell = port->started && port->link_told != link.link_status &&
	       port->dev->data->dev_conf.intr_conf.lsc != 0;
	port->link_told = link.link_status;
	pthread_mutex_unlock(&port->lock);
	/* Last, as the application may close the port in its callback. */
	if (tell)
		rte_eth_dev_callback_process(port->dev, RTE_ETH_EVENT_INTR_LSC, NULL);
}

static void
control(void *arg)
{
	struct epoll_event ev[EVENTS];
	struct shm_port *port = arg;
	int i, n;

	pthread_mutex_lock(&port->lock);
	/* With the lock, so that no connection in the list has been freed since. */
	n = epoll_wait(port->epfd, ev, EVENTS, 0);
	for (i = 0; i < n; i++)
		on_event(port, ev[i].data.ptr);
	if (!port->started) {
		vrb_shmlan_rx_sync(port);
		vrb_shmlan_tx_sync(port);
	}
	pthread_mutex_unlock(&port->lock);

	if (port->scan)
		scan(port);
	pthread_mutex_lock(&port->lock);
	watch(port);
	pthread_mutex_unlock(&port->lock);
	vrb_shmlan_link_state(port);
}

/* Makes the control thread look at the rings; for the Rx path. */
void
vrb_shmlan_ctl_kick(struct shm_port *port)
{
	vrb_shmlan_kick(port->ctl.fd);
}

static int
epoll_open(struct shm_port *port)
{
	struct shm_conn *conn[] = {&port->listen, &port->ctl, &port->timer};
	unsigned int i;
	int rc;

	port->listen.kind = SHM_CONN_LISTEN;
	port->listen.fd = port->reg.listenfd;
	port->ctl.kind = SHM_CONN_CTL;
	port->ctl.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	port->timer.kind = SHM_CONN_TIMER;
	port->timer.fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	port->watch.kind = SHM_CONN_WATCH;
	port->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (port->ctl.fd < 0 || port->timer.fd < 0 || port->epfd < 0)
		return -errno;
	for (i = 0; i < RTE_DIM(conn); i++) {
		rc = vrb_shmlan_conn_add(port, conn[i]);
		if (rc != 0)
			return rc;
	}
	return 0;
}

/*
 * Starts the control side of a port that has joined its segment. Returns 0, or -errno, and then
 * vrb_shmlan_link_detach() and _close() have to be called as well.
 */
int
vrb_shmlan_link_open(struct shm_port *port)
{
	int rc;

	rc = epoll_open(port);
	if (rc != 0)
		return rc;
	port->ctl_intr = rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE);
	if (port->ctl_intr == NULL)
		return -ENOMEM;
	rte_intr_type_set(port->ctl_intr, RTE_INTR_HANDLE_EXT);
	rte_intr_fd_set(port->ctl_intr, port->epfd);
	rc = rte_intr_callback_register(port->ctl_intr, control, port);
	if (rc < 0) {
		rte_intr_instance_free(port->ctl_intr);
		port->ctl_intr = NULL;
		return rc;
	}
	/* The others look when they are poked; the first look is on us. */
	vrb_shmlan_reg_poke(&port->reg);
	vrb_shmlan_ctl_kick(port);
	return 0;
}

/* Stops the control thread's use of the port. Precondition: the port is stopped. */
void
vrb_shmlan_link_detach(struct shm_port *port)
{
	int rc;

	if (port->ctl_intr == NULL)
		return;
	if (rte_thread_is_intr()) {
		/* In a callback. In one of ours, EAL removes it when we return, and link_state()
		 * touches nothing more. */
		rc = rte_intr_callback_unregister(port->ctl_intr, control, port);
		if (rc == -EAGAIN)
			rte_intr_callback_unregister_pending(port->ctl_intr, control, port, NULL);
	} else {
		rte_intr_callback_unregister_sync(port->ctl_intr, control, port);
	}
	rte_intr_instance_free(port->ctl_intr);
	port->ctl_intr = NULL;
	/* All that control() did is seen from here on, also by a sanitizer that cannot look into
	 * EAL. */
	pthread_mutex_lock(&port->lock);
	pthread_mutex_unlock(&port->lock);
}

/* Ends all connections. Precondition: vrb_shmlan_link_detach(). */
void
vrb_shmlan_link_close(struct shm_port *port)
{
	struct shm_conn *conn;
	unsigned int i;

	pthread_mutex_lock(&port->lock);
	while ((conn = LIST_FIRST(&port->conns)) != NULL)
		conn_free(port, conn);
	vrb_shmlan_conn_drop(port, &port->watch);
	for (i = 0; i < VRB_SHMLAN_MEMBERS; i++) {
		if (port->tx.outs[i] != NULL)
			vrb_shmlan_out_free(port, port->tx.outs[i]);
		port->tx.outs[i] = NULL;
	}
	port->rx.nrings = 0;
	for (i = 0; i < VRB_BELL_RINGS; i++) {
		if (port->in[i] != NULL)
			vrb_shmlan_in_remove(port, port->in[i]);
	}
	vrb_shmlan_conn_drop(port, &port->ctl);
	vrb_shmlan_conn_drop(port, &port->timer);
	if (port->epfd >= 0)
		close(port->epfd);
	port->epfd = -1;
	pthread_mutex_unlock(&port->lock);
}
