/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan: the registry of a segment's members.
 *
 * The file "members" in the segment's directory is mapped by all. Entries are changed under
 * flock(2), which the kernel releases when its holder dies, and read without it: an entry's state
 * is one atomic word, and gen tells that something has changed. Whether a member lives is not read
 * from the file: each holds an open-file-description lock on the byte of its slot for as long as it
 * lives. The kernel releases that too, at kill -9, and a reused process id means nothing.
 *
 * Each member listens on a socket "m<slot>-<incarnation>" in the directory, so a name never means
 * another member than the one it was read for. Whoever changes the registry connects to all the
 * others and hangs up, to make them look.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "shmlan_private.h"

#define REG_NAME "members"
#define REG_MAGIC 0x31304e414c4d4853ull /* changes with the layout */
#define LOCK_TRIES 500 /* times 10 ms */

/* Takes the lock for changes, without waiting. reg->lock keeps threads that share the descriptor
 * apart. */
static int
reg_trylock(struct shm_reg *reg)
{
	int rc;

	pthread_mutex_lock(&reg->lock);
	if (flock(reg->fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	rc = errno == EWOULDBLOCK || errno == EINTR ? -EAGAIN : -errno;
	pthread_mutex_unlock(&reg->lock);
	return rc;
}

/* The same for callers that may wait; not for ever, because the holder may be a stopped process. */
static int
reg_lock(struct shm_reg *reg)
{
	struct timespec pause = {.tv_nsec = 10000000};
	int i, rc;

	for (i = 0; i < LOCK_TRIES; i++) {
		rc = reg_trylock(reg);
		if (rc != -EAGAIN)
			return rc;
		nanosleep(&pause, NULL);
	}
	SHM_LOG(ERR, "segment %s is locked by another process since 5 seconds", reg->path);
	return -EBUSY;
}

static void
reg_unlock(struct shm_reg *reg)
{
	flock(reg->fd, LOCK_UN);
	pthread_mutex_unlock(&reg->lock);
}

/* Release: whoever sees the new number sees the entries. */
static void
reg_changed(struct shm_reg *reg)
{
	atomic_fetch_add_explicit(&reg->file->gen, 1, memory_order_release);
}

static int
member_lock(int fd, unsigned int slot, int cmd, struct flock *fl)
{
	*fl = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot, .l_len = 1};
	return fcntl(fd, cmd, fl) < 0 ? -errno : 0;
}

/* True if some open file other than @fd holds the lock of @slot. In doubt a member lives. */
static bool
member_lives(int fd, unsigned int slot)
{
	struct flock fl;

	return member_lock(fd, slot, F_OFD_GETLK, &fl) != 0 || fl.l_type != F_UNLCK;
}

/* Removes a member's entry and its socket. With the lock. */
static void
entry_remove(struct shm_reg *reg, unsigned int slot)
{
	struct shm_entry *e = &reg->file->entry[slot];
	char name[40];

	vrb_shmlan_sock_name(
		name, sizeof(name), slot, atomic_load_explicit(&e->inc, memory_order_relaxed));
	atomic_store_explicit(&e->word, 0, memory_order_relaxed);
	atomic_store_explicit(&e->pid, 0, memory_order_relaxed);
	unlinkat(reg->dirfd, name, 0);
}

static unsigned int
high(const struct shm_reg *reg)
{
	uint32_t n = atomic_load_explicit(&reg->file->high, memory_order_relaxed);

	return RTE_MIN(n, (uint32_t)VRB_SHMLAN_MEMBERS);
}

/* Removes the entries of the dead. With the lock. Returns how many. */
static unsigned int
remove_dead(struct shm_reg *reg, unsigned int self)
{
	unsigned int i, n = 0;

	for (i = 0; i < high(reg); i++) {
		if (i == self ||
			atomic_load_explicit(&reg->file->entry[i].word, memory_order_relaxed) ==
				0 ||
			member_lives(reg->fd, i))
			continue;
		SHM_LOG(INFO, "segment %s: member %u (process %u) is dead", reg->path, i,
			atomic_load_explicit(&reg->file->entry[i].pid, memory_order_relaxed));
		entry_remove(reg, i);
		n++;
	}
	return n;
}

static bool
any_member(const struct shm_reg *reg)
{
	unsigned int i;

	for (i = 0; i < high(reg); i++) {
		if (atomic_load_explicit(&reg->file->entry[i].word, memory_order_relaxed) != 0)
			return true;
	}
	return false;
}

/* Removes sockets without an entry: their owner died between making the one and the other. With the
 * lock. */
static void
remove_orphans(struct shm_reg *reg)
{
	int fd = openat(reg->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;

	if (dir == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((de = readdir(dir)) != NULL) {
		unsigned long long inc;
		unsigned int slot;
		struct shm_entry *e;

		if (sscanf(de->d_name, "m%u-%llx", &slot, &inc) != 2 || slot >= VRB_SHMLAN_MEMBERS)
			continue;
		e = &reg->file->entry[slot];
		if (atomic_load_explicit(&e->word, memory_order_relaxed) == 0 ||
			atomic_load_explicit(&e->inc, memory_order_relaxed) != inc)
			unlinkat(reg->dirfd, de->d_name, 0);
	}
	closedir(dir);
}

/* Opens, locks and maps the registry. -EAGAIN: it was removed under us, to be tried again from the
 * directory on. */
static int
reg_open(struct shm_reg *reg)
{
	struct stat st;
	int rc;

	reg->fd = openat(reg->dirfd, REG_NAME, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (reg->fd < 0)
		return errno == ENOENT ? -EAGAIN : -errno;
	rc = reg_lock(reg);
	if (rc != 0)
		goto fail_close;
	if (fstat(reg->fd, &st) < 0) {
		rc = -errno;
		goto fail_unlock;
	}
	rc = -EAGAIN;
	if (st.st_nlink == 0)
		goto fail_unlock;
	rc = -EPERM;
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0) {
		SHM_LOG(ERR, "%s/%s is not a private file of ours", reg->path, REG_NAME);
		goto fail_unlock;
	}
	if (st.st_size != sizeof(*reg->file) && ftruncate(reg->fd, sizeof(*reg->file)) < 0) {
		rc = -errno;
		goto fail_unlock;
	}
	reg->file = mmap(NULL, sizeof(*reg->file), PROT_READ | PROT_WRITE, MAP_SHARED, reg->fd, 0);
	if (reg->file != MAP_FAILED)
		return 0;
	rc = -errno;
fail_unlock:
	reg->file = NULL;
	reg_unlock(reg);
fail_close:
	close(reg->fd);
	reg->fd = -1;
	return rc;
}

/* Initialises a new registry, or one of another version that nobody uses any more. With the lock.
 */
static int
reg_prepare(struct shm_reg *reg)
{
	struct timespec now;
	struct flock fl;

	if (atomic_load_explicit(&reg->file->magic, memory_order_relaxed) == REG_MAGIC &&
		reg->file->members == VRB_SHMLAN_MEMBERS)
		return 0;
	fl = (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
	if (fcntl(reg->fd, F_OFD_GETLK, &fl) == 0 && fl.l_type != F_UNLCK) {
		SHM_LOG(ERR, "segment %s is in use by another version of net_shmlan", reg->path);
		return -EPROTO;
	}
	memset(reg->file, 0, sizeof(*reg->file));
	reg->file->members = VRB_SHMLAN_MEMBERS;
	/* Not from 0: names of sockets that a former registry's members may still know should not
	 * come back. */
	clock_gettime(CLOCK_REALTIME, &now);
	atomic_store_explicit(&reg->file->next_inc, (uint64_t)now.tv_sec << 20 | now.tv_nsec >> 10,
		memory_order_relaxed);
	atomic_store_explicit(&reg->file->magic, REG_MAGIC, memory_order_release);
	return 0;
}

/* True if a living member other than @self has the address. With the lock, after remove_dead(). */
static bool
mac_taken(const struct shm_reg *reg, uint64_t key, unsigned int self)
{
	unsigned int i;

	for (i = 0; i < high(reg); i++) {
		uint64_t w = atomic_load_explicit(&reg->file->entry[i].word, memory_order_relaxed);

		if (i != self && (w & SHM_ENTRY_USED) && (w & SHM_MAC_MASK) == key)
			return true;
	}
	return false;
}

/*
 * The lowest free of 02:00 + 198.18.x.y, the network of RFC 2544 for tests. There are more
 * addresses than members, so one is always free; a bitmap keeps this from being quadratic.
 */
static void
mac_choose(const struct shm_reg *reg, struct rte_ether_addr *mac)
{
	static const uint8_t prefix[4] = {0x02, 0x00, 0xc6, 0x12};
	uint8_t used[65536 / 8] = {0};
	unsigned int i, host;

	for (i = 0; i < high(reg); i++) {
		uint64_t w = atomic_load_explicit(&reg->file->entry[i].word, memory_order_relaxed);
		uint8_t b[8];

		memcpy(b, &w, sizeof(b));
		if ((w & SHM_ENTRY_USED) && memcmp(b, prefix, sizeof(prefix)) == 0)
			used[b[4] << 5 | b[5] >> 3] |= 1 << (b[5] & 7);
	}
	for (host = 1; host < 65536; host++) {
		if ((host & 0xff) != 0 && (host & 0xff) != 0xff &&
			(used[host >> 3] & 1 << (host & 7)) == 0)
			break;
	}
	memcpy(mac->addr_bytes, prefix, sizeof(prefix));
	mac->addr_bytes[4] = host >> 8;
	mac->addr_bytes[5] = host;
}

static int
mac_claim(const struct shm_reg *reg, const struct shm_args *args, struct rte_ether_addr *mac)
{
	char text[RTE_ETHER_ADDR_FMT_SIZE];

	if (!args->has_mac) {
		mac_choose(reg, mac);
		return 0;
	}
	*mac = args->mac;
	if (!mac_taken(reg, shm_mac_key(mac), VRB_SHMLAN_MEMBERS))
		return 0;
	rte_ether_format_addr(text, sizeof(text), mac);
	SHM_LOG(ERR, "the address %s is in use by another living member of segment %s", text,
		reg->path);
	return -EADDRINUSE;
}

/* Takes a free slot and its lock. With the lock. */
static int
slot_take(struct shm_reg *reg)
{
	struct flock fl;
	unsigned int i;

	for (i = 0; i < VRB_SHMLAN_MEMBERS; i++) {
		if (atomic_load_explicit(&reg->file->entry[i].word, memory_order_relaxed) != 0)
			continue;
		if (member_lock(reg->fd, i, F_OFD_SETLK, &fl) == 0) {
			reg->slot = i;
			return 0;
		}
	}
	SHM_LOG(ERR, "segment %s is full: it has %u members", reg->path, VRB_SHMLAN_MEMBERS);
	return -ENOSPC;
}

/* Everything that joining does with the lock. What it has done when it fails,
 * vrb_shmlan_reg_abandon() undoes. */
static int
join_locked(struct shm_reg *reg, const struct shm_args *args, struct rte_ether_addr *mac)
{
	struct shm_entry *e;
	int rc;

	rc = reg_prepare(reg);
	if (rc != 0)
		return rc;
	if (remove_dead(reg, VRB_SHMLAN_MEMBERS) != 0)
		reg_changed(reg);
	remove_orphans(reg);
	rc = mac_claim(reg, args, mac);
	if (rc == 0)
		rc = slot_take(reg);
	if (rc != 0)
		return rc;
	reg->inc = atomic_fetch_add_explicit(&reg->file->next_inc, 1, memory_order_relaxed);
	/* The socket first: a member that can be seen can be reached. */
	rc = vrb_shmlan_reg_listen(reg);
	if (rc != 0)
		return rc;

	e = &reg->file->entry[reg->slot];
	atomic_store_explicit(&e->inc, reg->inc, memory_order_relaxed);
	atomic_store_explicit(&e->pid, getpid(), memory_order_relaxed);
	atomic_store_explicit(&e->board, 0, memory_order_relaxed);
	atomic_store_explicit(&e->word, shm_mac_key(mac) | SHM_ENTRY_USED, memory_order_release);
	if (reg->slot >= high(reg))
		atomic_store_explicit(&reg->file->high, reg->slot + 1, memory_order_release);
	reg_changed(reg);
	return 0;
}

void
vrb_shmlan_reg_init(struct shm_reg *reg)
{
	memset(reg, 0, sizeof(*reg));
	reg->fd = reg->basefd = reg->dirfd = reg->listenfd = -1;
	pthread_mutex_init(&reg->lock, NULL);
}

/*
 * Joins the segment that @args names, with the address given there or a free one, which is returned
 * in @mac. Returns 0, or -errno after a log line.
 */
int
vrb_shmlan_reg_join(struct shm_reg *reg, const struct shm_args *args, struct rte_ether_addr *mac)
{
	int rc, tries = 100;

	memcpy(reg->segment, args->segment, sizeof(reg->segment));
	do {
		reg->dirfd = vrb_shmlan_opendir(args, &reg->basefd, reg->path, sizeof(reg->path));
		rc = reg->dirfd < 0 ? reg->dirfd : reg_open(reg);
		if (rc == -ENOENT || rc == -EAGAIN) {
			rc = -EAGAIN;
			vrb_shmlan_reg_abandon(reg);
		}
	} while (rc == -EAGAIN && --tries > 0);
	if (rc == 0) {
		rc = join_locked(reg, args, mac);
		reg_unlock(reg);
	}
	if (rc != 0) {
		SHM_LOG(ERR, "cannot join segment %s: %s", reg->path, strerror(-rc));
		vrb_shmlan_reg_leave(reg);
	}
	return rc;
}

/* Closes what is open, and leaves the registry as it is: another process's, or another try's. */
void
vrb_shmlan_reg_abandon(struct shm_reg *reg)
{
	int *fds[] = {&reg->listenfd, &reg->fd, &reg->dirfd, &reg->basefd};
	unsigned int i;

	/* With the lock for fork(2): a child must not close what we have closed already, and others
	 * opened since. */
	pthread_mutex_lock(&reg->lock);
	if (reg->file != NULL)
		munmap(reg->file, sizeof(*reg->file));
	reg->file = NULL;
	for (i = 0; i < RTE_DIM(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
	pthread_mutex_unlock(&reg->lock);
}

/* Removes our entry and socket; the last one also removes the registry and, if nothing else is in
 * it, the directory. */
void
vrb_shmlan_reg_leave(struct shm_reg *reg)
{
	bool member = reg->listenfd >= 0;

	if (reg->file != NULL && reg_lock(reg) == 0) {
		if (member) {
			entry_remove(reg, reg->slot);
			reg_changed(reg);
		}
		remove_dead(reg, VRB_SHMLAN_MEMBERS);
		if (any_member(reg)) {
			reg_unlock(reg);
			vrb_shmlan_reg_poke(reg);
		} else {
			unlinkat(reg->dirfd, REG_NAME, 0);
			unlinkat(reg->basefd, reg->segment, AT_REMOVEDIR);
			reg_unlock(reg);
		}
	}
	vrb_shmlan_reg_abandon(reg);
}

/* Changes our address. -EADDRINUSE if a living member has it. */
int
vrb_shmlan_reg_set_mac(struct shm_reg *reg, const struct rte_ether_addr *mac)
{
	struct shm_entry *e = &reg->file->entry[reg->slot];
	uint64_t w;
	int rc;

	rc = reg_lock(reg);
	if (rc != 0)
		return rc;
	remove_dead(reg, reg->slot);
	rc = -EADDRINUSE;
	if (!mac_taken(reg, shm_mac_key(mac), reg->slot)) {
		w = atomic_load_explicit(&e->word, memory_order_relaxed);
		atomic_store_explicit(
			&e->word, (w & ~SHM_MAC_MASK) | shm_mac_key(mac), memory_order_release);
		rc = 0;
	}
	reg_changed(reg);
	reg_unlock(reg);
	return rc;
}

/* Changes our SHM_ENTRY_UP and _PROMISC, and tells the others. */
int
vrb_shmlan_reg_set_flags(struct shm_reg *reg, uint64_t set, uint64_t clear)
{
	struct shm_entry *e = &reg->file->entry[reg->slot];
	uint64_t w, old;
	int rc;

	rc = reg_lock(reg);
	if (rc != 0)
		return rc;
	old = atomic_load_explicit(&e->word, memory_order_relaxed);
	w = (old & ~clear) | set;
	if (w != old) {
		atomic_store_explicit(&e->word, w, memory_order_release);
		reg_changed(reg);
	}
	reg_unlock(reg);
	if ((w ^ old) & SHM_ENTRY_UP)
		vrb_shmlan_reg_poke(reg);
	return 0;
}

/*
 * Looks for dead members, removes them and tells the others. @suspect: set when nothing was found,
 * in which case a caller that saw a connection end should look again a little later: a dying
 * process closes its sockets and gives up its locks in no particular order. Returns 0, or -EAGAIN
 * when another process has the lock.
 */
int
vrb_shmlan_reg_scan(struct shm_reg *reg, bool *suspect)
{
	unsigned int n;
	int rc;

	rc = reg_trylock(reg);
	if (rc != 0)
		return rc;
	n = remove_dead(reg, reg->slot);
	if (n != 0)
		reg_changed(reg);
	reg_unlock(reg);
	*suspect = n == 0;
	if (n != 0)
		vrb_shmlan_reg_poke(reg);
	return 0;
}

/* Makes all other members look at the registry: a connection wakes each, that it ends at once tells
 * it why. */
void
vrb_shmlan_reg_poke(const struct shm_reg *reg)
{
	unsigned int i;
	int fd;

	for (i = 0; i < high(reg); i++) {
		struct shm_entry *e = &reg->file->entry[i];

		if (i == reg->slot || atomic_load_explicit(&e->word, memory_order_acquire) == 0)
			continue;
		fd = vrb_shmlan_reg_connect(
			reg, i, atomic_load_explicit(&e->inc, memory_order_relaxed));
		if (fd >= 0)
			close(fd);
	}
}

/* Number of other members that are started. */
unsigned int
vrb_shmlan_reg_others_up(const struct shm_reg *reg)
{
	unsigned int i, n = 0;

	for (i = 0; i < high(reg); i++) {
		uint64_t w = atomic_load_explicit(&reg->file->entry[i].word, memory_order_relaxed);

		if (i != reg->slot && (w & SHM_ENTRY_UP))
			n++;
	}
	return n;
}

/* The next member after us, in the order of slots and around the end. False when there is no other.
 */
bool
vrb_shmlan_reg_next(const struct shm_reg *reg, unsigned int *slot, uint64_t *inc)
{
	unsigned int i, n = high(reg);

	for (i = 1; i < n; i++) {
		unsigned int s = (reg->slot + i) % n;
		struct shm_entry *e = &reg->file->entry[s];

		if (atomic_load_explicit(&e->word, memory_order_acquire) == 0 || s == reg->slot)
			continue;
		*slot = s;
		*inc = atomic_load_explicit(&e->inc, memory_order_relaxed);
		return true;
	}
	return false;
}
