/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan: doorbells, and how rings change hands.
 *
 * The sender makes a ring in a sealed memfd and sends it over a new connection to the receiver's
 * socket. It can write frames at once: connecting and sending succeed before the receiver has
 * noticed anything. The receiver answers with its doorbell: the page that says whether it sleeps,
 * and the eventfd that wakes it. Until that answer is there the sender sends a byte over the
 * connection in its place, which wakes the receiver's control thread. The connection stays open for
 * as long as the ring is in use: its end tells either side that the other one is gone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <rte_cycles.h>

#include "shmlan_conn.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

int
vrb_shmlan_memfd_make(const char *name, size_t len, void **map)
{
	int fd, rc;

	fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return -errno;
	if (ftruncate(fd, len) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		goto fail;
	*map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*map != MAP_FAILED)
		return fd;
fail:
	rc = -errno;
	close(fd);
	return rc;
}

void *
vrb_shmlan_memfd_map(int fd, size_t len)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;
	void *map;

	/* Without the seals the peer could shorten the file under us, and the next access would be
	 * SIGBUS. */
	if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &st) < 0 || st.st_size != (off_t)len)
		return NULL;
	map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return map == MAP_FAILED ? NULL : map;
}

/* ---- doorbells ---- */

struct shm_bell *
vrb_shmlan_bell_create(void)
{
	struct shm_bell *bell = calloc(1, sizeof(*bell));
	void *map;

	if (bell == NULL)
		return NULL;
	bell->evfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	bell->pagefd =
		bell->evfd < 0 ? -1 : vrb_shmlan_memfd_make("verbena-bell", VRB_BELL_BYTES, &map);
	if (bell->pagefd < 0) {
		if (bell->evfd >= 0)
			close(bell->evfd);
		free(bell);
		return NULL;
	}
	bell->page = map;
	bell->page->magic = VRB_BELL_MAGIC;
	atomic_init(&bell->refs, 1);
	return bell;
}

void
vrb_shmlan_bell_put(struct shm_bell *bell)
{
	if (atomic_fetch_sub_explicit(&bell->refs, 1, memory_order_acq_rel) != 1)
		return;
	munmap(bell->page, VRB_BELL_BYTES);
	close(bell->pagefd);
	close(bell->evfd);
	free(bell);
}

void
vrb_shmlan_kick(int evfd)
{
	uint64_t one = 1;

	/* The only error of a non-blocking eventfd is that it is readable already. */
	if (write(evfd, &one, sizeof(one)) < 0)
		return;
}

/* Makes the receiver's eventfd readable. */
void
vrb_shmlan_bell_kick(struct shm_bell *bell)
{
	vrb_shmlan_kick(bell->evfd);
}

/* Wakes the receiver if it sleeps. */
void
vrb_shmlan_bell_wake(struct shm_bell *bell)
{
	vrb_bell_fence();
	if (vrb_bell_clear(bell->page, VRB_BELL_SLEEPING) & VRB_BELL_SLEEPING)
		vrb_shmlan_bell_kick(bell);
}

/* ---- messages ---- */

/* Sends a message with @nfds descriptors, without waiting. */
int
vrb_shmlan_msg_send(int sock, const struct shm_msg *msg, const int *fds, unsigned int nfds)
{
	char control[CMSG_SPACE(SHM_MSG_FDS * sizeof(int))] = {0};
	struct iovec iov = {.iov_base = (void *)(uintptr_t)msg, .iov_len = sizeof(*msg)};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	if (nfds != 0) {
		struct cmsghdr *cm;

		mh.msg_control = control;
		mh.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, nfds * sizeof(int));
	}
	if (sendmsg(sock, &mh, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return -errno;
	return 0;
}

/*
 * Receives a message. Returns its length, 0 at the end of the connection, -EAGAIN when there is
 * none, or another -errno.
 * @fds: the descriptors that came with it, -1 for those that did not; more than SHM_MSG_FDS are
 * closed by the kernel.
 */
int
vrb_shmlan_msg_recv(int sock, struct shm_msg *msg, int *fds)
{
	char control[CMSG_SPACE(SHM_MSG_FDS * sizeof(int))];
	struct iovec iov = {.iov_base = msg, .iov_len = sizeof(*msg)};
	struct msghdr mh = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control)};
	struct cmsghdr *cm;
	unsigned int i;
	ssize_t n;

	for (i = 0; i < SHM_MSG_FDS; i++)
		fds[i] = -1;
	n = recvmsg(sock, &mh, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n < 0)
		return -errno;
	for (cm = CMSG_FIRSTHDR(&mh); cm != NULL; cm = CMSG_NXTHDR(&mh, cm)) {
		if (cm->cmsg_level != SOL_SOCKET || cm->cmsg_type != SCM_RIGHTS)
			continue;
		memcpy(fds, CMSG_DATA(cm),
			RTE_MIN(cm->cmsg_len - CMSG_LEN(0), SHM_MSG_FDS * sizeof(int)));
	}
	return n;
}

void
vrb_shmlan_msg_close_fds(int *fds)
{
	unsigned int i;

	for (i = 0; i < SHM_MSG_FDS; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/* ---- connections in the port's epoll set; all with port->lock ---- */

int
vrb_shmlan_conn_add(struct shm_port *port, struct shm_conn *conn)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = conn};

	return epoll_ctl(port->epfd, EPOLL_CTL_ADD, conn->fd, &ev) < 0 ? -errno : 0;
}

/* Removes a connection from the set and closes it. Closing alone would not do: a child of fork(2)
 * may have the descriptor too. */
void
vrb_shmlan_conn_drop(struct shm_port *port, struct shm_conn *conn)
{
	if (conn->fd < 0)
		return;
	epoll_ctl(port->epfd, EPOLL_CTL_DEL, conn->fd, NULL);
	close(conn->fd);
	conn->fd = -1;
}

/* ---- the sender's side ---- */

/* Makes the ring of @out and hands it over on @out->conn.fd. */
static int
out_hand_over(struct shm_port *port, struct shm_out *out)
{
	struct shm_msg msg = {.magic = SHM_MSG_MAGIC,
		.type = SHM_MSG_RING,
		.slot = port->reg.slot,
		.inc = port->reg.inc,
		.to = out->conn.inc,
		.nslots = port->args.slots,
		.dsize = port->args.data};
	int fd, rc;

	out->maplen = vrb_ring_bytes(msg.nslots, msg.dsize);
	fd = vrb_shmlan_memfd_make("verbena-ring", out->maplen, &out->map);
	if (fd < 0)
		return fd;
	rc = vrb_ring_tx_init(&out->r, out->map, msg.nslots, msg.dsize);
	if (rc == 0)
		rc = vrb_shmlan_msg_send(out->conn.fd, &msg, &fd, 1);
	close(fd);
	return rc;
}

/*
 * Makes a ring to the member @inc in @slot. Nothing waits for the peer.
 * Returns 0; -EAGAIN when the peer has too many connections to accept; -ECONNREFUSED or -ENOENT
 * when it is gone; another -errno when we lack the means.
 */
int
vrb_shmlan_out_open(struct shm_port *port, unsigned int slot, uint64_t inc, struct shm_out **res)
{
	struct shm_out *out = calloc(1, sizeof(*out));
	int rc;

	if (out == NULL)
		return -ENOMEM;
	out->map = NULL;
	out->evfd = -1;
	out->conn.kind = SHM_CONN_OUT;
	out->conn.slot = slot;
	out->conn.inc = inc;
	out->conn.fd = vrb_shmlan_reg_connect(&port->reg, slot, inc);
	rc = out->conn.fd < 0 ? out->conn.fd : out_hand_over(port, out);
	if (rc == 0)
		rc = vrb_shmlan_conn_add(port, &out->conn);
	if (rc != 0) {
		vrb_shmlan_out_free(port, out);
		return rc;
	}
	*res = out;
	return 0;
}

/* Precondition: the Tx path does not use @out any more. */
void
vrb_shmlan_out_free(struct shm_port *port, struct shm_out *out)
{
	vrb_shmlan_conn_drop(port, &out->conn);
	vrb_ring_tx_fini(&out->r);
	if (out->map != NULL)
		munmap(out->map, out->maplen);
	if (out->new_page != NULL)
		munmap(out->new_page, VRB_BELL_BYTES);
	if (out->evfd >= 0)
		close(out->evfd);
	free(out);
}

/* True if @fd is an eventfd: anything else might block us or raise SIGPIPE when written to. */
static bool
is_eventfd(int fd)
{
	static const char want[] = "anon_inode:[eventfd]";
	char path[40], target[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, target, sizeof(target));
	return n == sizeof(want) - 1 && memcmp(target, want, n) == 0;
}

/* Takes the receiver's answer: @fds are its page and its eventfd. */
int
vrb_shmlan_out_answer(struct shm_out *out, const struct shm_msg *msg, int *fds)
{
	struct vrb_bell_page *page;

	if (out->new_page != NULL || msg->bit >= VRB_BELL_RINGS || fds[0] < 0 || fds[1] < 0 ||
		!is_eventfd(fds[1]) || fcntl(fds[1], F_SETFL, O_NONBLOCK) < 0)
		return -EPROTO;
	page = vrb_shmlan_memfd_map(fds[0], VRB_BELL_BYTES);
	if (page == NULL)
		return -EPROTO;
	if (page->magic != VRB_BELL_MAGIC) {
		munmap(page, VRB_BELL_BYTES);
		return -EPROTO;
	}
	out->bit = msg->bit;
	out->evfd = fds[1];
	fds[1] = -1;
	out->new_page = page;
	return 0;
}

/* ---- the receiver's side ---- */

static int
in_slot_free(const struct shm_port *port, uint32_t *idx)
{
	for (*idx = 0; *idx < VRB_BELL_RINGS; (*idx)++) {
		if (port->in[*idx] == NULL)
			return 0;
	}
	return -ENOSPC;
}

static int
in_init(struct shm_port *port, struct shm_in *in, const struct shm_msg *msg, int memfd)
{
	int rc;

	if (!vrb_ring_geometry_ok(msg->nslots, msg->dsize))
		return -EPROTO;
	in->maplen = vrb_ring_bytes(msg->nslots, msg->dsize);
	in->map = vrb_shmlan_memfd_map(memfd, in->maplen);
	if (in->map == NULL)
		return -EPROTO;
	rc = vrb_ring_rx_init(&in->r, in->map, msg->nslots, msg->dsize);
	if (rc != 0)
		return rc;
	if (port->args.rx_zc) {
		in->held = calloc(msg->nslots, 1);
		if (in->held == NULL)
			return -ENOMEM;
	}
	return in_slot_free(port, &in->idx);
}

/*
 * Takes a ring that a peer hands over in @msg on the connection @fd, which it takes over when it
 * succeeds, and answers. The Rx path finds it in port->in[].
 */
int
vrb_shmlan_in_open(
	struct shm_port *port, int fd, const struct shm_msg *msg, int memfd, struct shm_in **res)
{
	struct shm_msg answer = {.magic = SHM_MSG_MAGIC, .type = SHM_MSG_BELL};
	int fds[2] = {port->bell->pagefd, port->bell->evfd};
	struct shm_in *in = calloc(1, sizeof(*in));
	int rc;

	if (in == NULL)
		return -ENOMEM;
	atomic_init(&in->refs, 1);
	in->bell = port->bell;
	atomic_fetch_add_explicit(&in->bell->refs, 1, memory_order_relaxed);
	in->conn.kind = SHM_CONN_IN;
	in->conn.fd = -1;
	in->conn.slot = msg->slot;
	in->conn.inc = msg->inc;
	rc = in_init(port, in, msg, memfd);
	if (rc == 0) {
		answer.bit = in->idx;
		rc = vrb_shmlan_msg_send(fd, &answer, fds, 2);
		/* A sender that is gone already may have left frames. */
		if (rc == -EPIPE || rc == -ECONNRESET)
			rc = 0;
	}
	if (rc != 0) {
		vrb_shmlan_in_put(in);
		return rc;
	}
	in->conn.fd = fd;
	port->in[in->idx] = in;
	*res = in;
	return 0;
}

/*
 * Ends the port's use of a ring. Frames lent out keep the mapping.
 * Precondition: the ring is not in rxq.rings[] any more.
 */
void
vrb_shmlan_in_remove(struct shm_port *port, struct shm_in *in)
{
	vrb_shmlan_conn_drop(port, &in->conn);
	port->in[in->idx] = NULL;
	vrb_shmlan_in_put(in);
}

/* Drops one reference to a ring; the last one unmaps it. */
void
vrb_shmlan_in_put(struct shm_in *in)
{
	if (atomic_fetch_sub_explicit(&in->refs, 1, memory_order_acq_rel) != 1)
		return;
	if (in->map != NULL)
		munmap(in->map, in->maplen);
	vrb_shmlan_bell_put(in->bell);
	free((void *)(uintptr_t)in->held);
	free(in);
}
