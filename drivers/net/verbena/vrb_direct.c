/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The direct path: boards in shared memory, and process_vm_readv(2) and process_vm_writev(2).
 *
 * A board is a sealed memfd. Its owner writes the descriptor's number into the registry of the
 * segment, and a peer opens it by way of /proc/PID/fd: the kernel asks for the same rights there as
 * for moving memory (ptrace(2)). That the board found there is the member's also proves that the
 * PID is the member's, in our PID namespace too.
 *
 * Locks in the board, all robust, so that the kernel gives them back when their holder dies:
 *
 *   alive    held by a thread of the owner for its whole life. Who finds it free does not move
 *            anything: the PID may be somebody else's by now, or have become another program.
 *   user[i]  held by the member in slot i while it looks at the board and moves bytes. The owner
 *            takes each for a moment after it has made an entry invalid.
 *
 * A peer never waits for such a lock; it sends packets then. The owner waits, for as long as a
 * system call takes; for longer when the peer was stopped (SIGSTOP, a debugger) between taking its
 * lock and giving it back, because that peer will go on writing when it is continued.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <rte_common.h>

#include "board.h"
#include "shmlan.h"
#include "vrb_direct.h"

#define CACHE_LINE 64u

struct user {
	pthread_mutex_t lock __rte_aligned(64);
	_Atomic uint32_t used;
};

struct page {
	struct vrb_board board;
	_Atomic uint64_t inc; /* of the owner, as in the registry */
	pthread_mutex_t alive __rte_aligned(64);
	_Atomic uint32_t users; /* one above the highest slot whose user has ever looked */
	struct user user[VRB_SHMLAN_MEMBERS];
};

struct peer {
	LIST_ENTRY(peer) next;
	struct page *page;
	struct user *me; /* our lock in it */
	pid_t pid;
	uint64_t inc;
	uint32_t refs;
	bool broken; /* the kernel does not let us, or it has died */
};

struct vrb_direct_path {
	uint16_t port_id;
	int fd;
	struct page *page;
	struct vrb_shmlan_peer self;
	LIST_HEAD(, peer) peers;
};

static int
lock_init(pthread_mutex_t *lock)
{
	pthread_mutexattr_t attr;
	int rc = -pthread_mutexattr_init(&attr);

	if (rc < 0)
		return rc;
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	rc = -pthread_mutex_init(lock, &attr);
	pthread_mutexattr_destroy(&attr);
	return rc;
}

static int
locks_init(struct page *page)
{
	int rc = lock_init(&page->alive);

	for (unsigned int i = 0; rc == 0 && i < VRB_SHMLAN_MEMBERS; i++)
		rc = lock_init(&page->user[i].lock);
	return rc;
}

/* ---- the owner ---- */

struct vrb_direct_path *
vrb_direct_path_open(uint16_t port_id, const uint8_t mac[6])
{
	struct vrb_direct_path *path = calloc(1, sizeof(*path));
	void *map;

	if (path == NULL)
		return NULL;
	path->port_id = port_id;
	path->fd = -1;
	if (vrb_shmlan_find(port_id, mac, &path->self) == 0)
		path->fd = vrb_shmlan_memfd_make("verbena-board", sizeof(struct page), &map);
	if (path->fd < 0) {
		free(path);
		return NULL;
	}
	path->page = map;
	/* Hardly any of it is ever touched, and none of it helps to find out why a program died. */
	madvise(map, sizeof(struct page), MADV_DONTDUMP);
	if (locks_init(path->page) < 0) {
		vrb_direct_path_close(path);
		return NULL;
	}
	path->page->board.magic = VRB_BOARD_MAGIC;
	atomic_store_explicit(&path->page->inc, path->self.inc, memory_order_release);
	return path;
}

struct vrb_board *
vrb_direct_path_board(struct vrb_direct_path *path)
{
	return &path->page->board;
}

void
vrb_direct_path_show(struct vrb_direct_path *path)
{
	if (pthread_mutex_lock(&path->page->alive) == 0)
		vrb_shmlan_put_up(path->port_id, path->fd);
}

void
vrb_direct_path_hide(struct vrb_direct_path *path)
{
	vrb_shmlan_put_up(path->port_id, -1);
	pthread_mutex_unlock(&path->page->alive);
}

void
vrb_direct_path_close(struct vrb_direct_path *path)
{
	struct peer *peer;

	while ((peer = LIST_FIRST(&path->peers)) != NULL) {
		LIST_REMOVE(peer, next);
		munmap(peer->page, sizeof(struct page));
		free(peer);
	}
	munmap(path->page, sizeof(struct page));
	close(path->fd);
	free(path);
}

/* After its holder died: it was only there to be waited for. */
static bool
taken(pthread_mutex_t *lock, int rc)
{
	if (rc == EOWNERDEAD)
		rc = pthread_mutex_consistent(lock);
	return rc == 0;
}

static void
settle(void *ctx)
{
	struct vrb_direct_path *path = ctx;
	struct page *page = path->page;
	uint32_t n;

	/* Who uses the board for the first time says so before it looks at the entries. */
	atomic_thread_fence(memory_order_seq_cst);
	n = RTE_MIN(atomic_load_explicit(&page->users, memory_order_seq_cst),
		(uint32_t)VRB_SHMLAN_MEMBERS);
	for (uint32_t i = 0; i < n; i++) {
		pthread_mutex_t *lock = &page->user[i].lock;

		if (atomic_load_explicit(&page->user[i].used, memory_order_relaxed) &&
			taken(lock, pthread_mutex_lock(lock)))
			pthread_mutex_unlock(lock);
	}
}

/* ---- a peer ---- */

/* Opens a descriptor of another process, if it is a regular file: opening may have effects on
 * anything else. */
static int
open_theirs(uint32_t pid, int number)
{
	char name[64];
	struct stat st;
	int fd, file;

	snprintf(name, sizeof(name), "/proc/%u/fd/%d", pid, number);
	fd = open(name, O_PATH | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		return -EPROTO;
	}
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	file = open(name, O_RDWR | O_CLOEXEC);
	if (file < 0)
		file = -errno;
	close(fd);
	return file;
}

static struct page *
map_theirs(const struct vrb_shmlan_peer *them)
{
	struct page *page;
	int fd = open_theirs(them->pid, them->board);

	if (fd < 0)
		return NULL;
	page = vrb_shmlan_memfd_map(fd, sizeof(*page));
	close(fd);
	if (page == NULL)
		return NULL;
	if (page->board.magic != VRB_BOARD_MAGIC ||
		atomic_load_explicit(&page->inc, memory_order_acquire) != them->inc) {
		munmap(page, sizeof(*page));
		return NULL;
	}
	madvise(page, sizeof(*page), MADV_DONTDUMP);
	return page;
}

/* From now on the owner waits for us. */
static void
sign_in(struct page *page, unsigned int slot)
{
	uint32_t users = atomic_load_explicit(&page->users, memory_order_relaxed);

	atomic_store_explicit(&page->user[slot].used, 1, memory_order_relaxed);
	while (users < slot + 1 && !atomic_compare_exchange_weak_explicit(&page->users, &users,
					   slot + 1, memory_order_seq_cst, memory_order_relaxed))
		continue;
	atomic_thread_fence(memory_order_seq_cst);
}

static void *
open_peer(void *ctx, const uint8_t mac[6])
{
	struct vrb_direct_path *path = ctx;
	struct vrb_shmlan_peer them;
	struct peer *peer;

	if (vrb_shmlan_find(path->port_id, mac, &them) < 0 || them.board < 0 ||
		them.inc == path->self.inc)
		return NULL;
	LIST_FOREACH (peer, &path->peers, next) {
		if (peer->inc == them.inc) {
			peer->refs++;
			return peer;
		}
	}
	peer = calloc(1, sizeof(*peer));
	if (peer == NULL)
		return NULL;
	peer->page = map_theirs(&them);
	if (peer->page == NULL) {
		free(peer);
		return NULL;
	}
	peer->me = &peer->page->user[path->self.slot];
	peer->pid = (pid_t)them.pid;
	peer->inc = them.inc;
	peer->refs = 1;
	sign_in(peer->page, path->self.slot);
	LIST_INSERT_HEAD(&path->peers, peer, next);
	return peer;
}

static void
close_peer(void *ctx, void *handle)
{
	struct peer *peer = handle;

	if (--peer->refs > 0)
		return;
	LIST_REMOVE(peer, next);
	munmap(peer->page, sizeof(struct page));
	free(peer);
}

static bool
is_alive(struct page *page)
{
	int rc = pthread_mutex_trylock(&page->alive);

	/* Nobody makes it consistent, so that all find it so. */
	if (rc == 0 || rc == EOWNERDEAD)
		pthread_mutex_unlock(&page->alive);
	return rc == EBUSY;
}

/*
 * A program may wait for a message by looking at its last bytes. The kernel copies as the CPU likes
 * within a piece, so these are a piece of their own, unless all is in one cache line.
 */
static unsigned int
split(struct iovec remote[2], uint64_t addr, uint64_t len, bool write_end)
{
	const uint64_t end = sizeof(uint64_t);

	remote[0] = (struct iovec){(void *)(uintptr_t)addr, len};
	if (!write_end || len <= end || addr / CACHE_LINE == (addr + len - 1) / CACHE_LINE)
		return 1;
	remote[0].iov_len -= end;
	remote[1] = (struct iovec){(void *)(uintptr_t)(addr + len - end), end};
	return 2;
}

static int
move_bytes(struct peer *peer, bool write, const struct iovec *local, unsigned int num,
	const struct iovec *remote, unsigned int num_remote, uint64_t len)
{
	ssize_t n = write ? process_vm_writev(peer->pid, local, num, remote, num_remote, 0)
			  : process_vm_readv(peer->pid, local, num, remote, num_remote, 0);

	if (n >= 0 && (uint64_t)n == len)
		return 0;
	/* Memory that is not there, here or there: packets tell whose fault it is. */
	if (n >= 0 || errno == EFAULT || errno == ENOMEM)
		return -EAGAIN;
	peer->broken = true;
	return -EPIPE;
}

static int
move(void *ctx, void *handle, const struct vrb_board_req *req, uint64_t off, uint64_t len,
	const struct iovec *iov, unsigned int num_iov, bool last, uint32_t *gen)
{
	struct peer *peer = handle;
	struct iovec remote[2];
	unsigned int n;
	uint64_t addr;
	int rc;

	if (peer->broken)
		return -EPIPE;
	if (!taken(&peer->me->lock, pthread_mutex_trylock(&peer->me->lock)))
		return -EAGAIN;
	addr = vrb_board_check(&peer->page->board, req, gen);
	if (addr == 0) {
		rc = -EAGAIN;
	} else if (!is_alive(peer->page)) {
		peer->broken = true;
		rc = -EPIPE;
	} else {
		n = split(remote, addr + off, len, req->write && last);
		rc = move_bytes(peer, req->write, iov, num_iov, remote, n, len);
	}
	pthread_mutex_unlock(&peer->me->lock);
	return rc;
}

const struct vrb_direct_ops vrb_direct_path_ops = {
	.open = open_peer,
	.close = close_peer,
	.move = move,
	.settle = settle,
};
