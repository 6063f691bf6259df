/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan: the private directory of a segment, the sockets in it, and who may talk to us.
 *
 * A segment belongs to one user. Its directory is 0700 and ours, which is checked on the open
 * directory, not on its name; all further names are taken relative to that descriptor and without
 * following symbolic links.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "shmlan_private.h"

/* Checks that the open directory @fd is ours alone. */
static int
check_private(int fd, const char *path)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid()) {
		SHM_LOG(ERR,
			"%s belongs to user %u, not to us (%u): a segment is never shared between "
			"users",
			path, st.st_uid, geteuid());
		return -EPERM;
	}
	if (st.st_mode & 077) {
		SHM_LOG(ERR, "%s has mode %03o: it must be 0700, others must not read or enter it",
			path, st.st_mode & 0777);
		return -EPERM;
	}
	return 0;
}

/* Opens the directory @name below @parent, made if missing, and checks it. Returns a descriptor or
 * -errno. */
static int
open_private(int parent, const char *name, const char *path)
{
	int fd, rc;

	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST) {
		rc = -errno;
		SHM_LOG(ERR, "cannot make the directory %s: %s", path, strerror(-rc));
		return rc;
	}
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0) {
		rc = -errno;
		if (rc !=
			-ENOENT) /* removed by the last member that left: the caller tries again */
			SHM_LOG(ERR, "cannot open the directory %s: %s", path,
				rc == -ELOOP || rc == -ENOTDIR ? "it is not a directory"
							       : strerror(-rc));
		return rc;
	}
	rc = check_private(fd, path);
	if (rc != 0) {
		close(fd);
		return rc;
	}
	return fd;
}

/* Opens $XDG_RUNTIME_DIR if it is a directory of ours. */
static int
open_xdg(const char **dir)
{
	struct stat st;
	int fd;

	*dir = getenv("XDG_RUNTIME_DIR");
	if (*dir == NULL || (*dir)[0] != '/' || strlen(*dir) > PATH_MAX / 2)
		return -1;
	fd = open(*dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	/* After su(1) or sudo -E it may be somebody else's. */
	if (fstat(fd, &st) < 0 || st.st_uid != geteuid()) {
		SHM_LOG(INFO, "XDG_RUNTIME_DIR=%s is not ours, using /tmp", *dir);
		close(fd);
		return -1;
	}
	return fd;
}

/* Opens the directory that holds the segments, when no dir= was given. */
static int
open_base(char *path, size_t len)
{
	const char *xdg;
	char name[32];
	int parent, fd;

	parent = open_xdg(&xdg);
	if (parent >= 0) {
		snprintf(name, sizeof(name), "verbena");
		snprintf(path, len, "%s/%s", xdg, name);
	} else {
		snprintf(name, sizeof(name), "verbena-%u", geteuid());
		snprintf(path, len, "/tmp/%s", name);
		parent = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (parent < 0)
			return -errno;
	}
	fd = open_private(parent, name, path);
	close(parent);
	return fd;
}

static int
open_given(const char *dir, char *path, size_t len)
{
	int fd;

	snprintf(path, len, "%s", dir);
	if (mkdir(dir, 0700) < 0 && errno != EEXIST) {
		fd = -errno;
		SHM_LOG(ERR, "cannot make the directory %s: %s", dir, strerror(-fd));
		return fd;
	}
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0) {
		fd = -errno;
		SHM_LOG(ERR, "cannot open the directory %s: %s", dir, strerror(-fd));
	}
	return fd;
}

/*
 * Opens the segment's directory. Returns its descriptor, that of the directory above it in @basefd,
 * and its name, for messages, in @path; or -errno after a log line. -ENOENT: removed meanwhile, to
 * be tried again.
 */
int
vrb_shmlan_opendir(const struct shm_args *args, int *basefd, char *path, size_t len)
{
	size_t used;
	int base, fd;

	base = args->dir[0] != '\0' ? open_given(args->dir, path, len) : open_base(path, len);
	if (base < 0)
		return base;
	used = strlen(path);
	snprintf(path + used, len - used, "/%s", args->segment);
	fd = open_private(base, args->segment, path);
	if (fd < 0) {
		close(base);
		return fd;
	}
	*basefd = base;
	return fd;
}

/* True if the process at the other end of a Unix socket has our user id. */
bool
vrb_shmlan_peer_is_us(int sock)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return false;
	if (cred.uid == geteuid())
		return true;
	SHM_LOG(WARNING, "refused a connection of user %u (process %d)", cred.uid, cred.pid);
	return false;
}

/* ---- sockets ---- */

/* Name of the socket of a member. */
void
vrb_shmlan_sock_name(char *buf, size_t len, unsigned int slot, uint64_t inc)
{
	snprintf(buf, len, "m%u-%llx", slot, (unsigned long long)inc);
}

/* A socket address relative to @dirfd, so that a long path of the directory does not matter. */
static int
sock_addr(struct sockaddr_un *sa, int dirfd, unsigned int slot, uint64_t inc)
{
	char name[40];

	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	vrb_shmlan_sock_name(name, sizeof(name), slot, inc);
	if (snprintf(sa->sun_path, sizeof(sa->sun_path), "/proc/self/fd/%d/%s", dirfd, name) >=
		(int)sizeof(sa->sun_path))
		return -ENAMETOOLONG;
	return 0;
}

/* Opens the socket that makes us reachable: reg->listenfd. */
int
vrb_shmlan_reg_listen(struct shm_reg *reg)
{
	struct sockaddr_un sa;
	int fd, rc;

	rc = sock_addr(&sa, reg->dirfd, reg->slot, reg->inc);
	if (rc != 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0 || listen(fd, SOMAXCONN) < 0) {
		rc = -errno;
		close(fd);
		return rc;
	}
	reg->listenfd = fd;
	return 0;
}

/* Connects to a member, without waiting. Returns a socket or -errno; -ECONNREFUSED and -ENOENT: it
 * is gone. */
int
vrb_shmlan_reg_connect(const struct shm_reg *reg, unsigned int slot, uint64_t inc)
{
	struct sockaddr_un sa;
	int fd, rc;

	rc = sock_addr(&sa, reg->dirfd, slot, inc);
	if (rc != 0)
		return rc;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		rc = -errno;
	else if (!vrb_shmlan_peer_is_us(fd))
		rc = -EPERM;
	if (rc != 0) {
		close(fd);
		return rc;
	}
	return fd;
}
