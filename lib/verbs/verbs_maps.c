/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reads /proc/self/maps, whose lines are in the order of the addresses: "start-end rwxp ...".
 * Reading stops behind the range, so the cost does not depend on the range's size, and hardly on
 * what else the process has mapped. (mincore(2) would cost by the page, and knows nothing of access
 * rights.)
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "verbs_maps.h"

struct reader {
	int fd;
	size_t pos, end;
	char buf[4096];
};

static int
get_char(struct reader *r)
{
	ssize_t n;

	if (r->pos == r->end) {
		do {
			n = read(r->fd, r->buf, sizeof(r->buf));
		} while (n < 0 && errno == EINTR);
		if (n <= 0)
			return n ? -errno : 0;
		r->pos = 0;
		r->end = (size_t)n;
	}
	return (unsigned char)r->buf[r->pos++];
}

/* Reads a hexadecimal number and the character behind it. */
static int
get_hex(struct reader *r, uint64_t *value)
{
	int c;

	*value = 0;
	while ((c = get_char(r)) > 0) {
		if (c >= '0' && c <= '9')
			*value = *value << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			*value = *value << 4 | (uint64_t)(c - 'a' + 10);
		else
			break;
	}
	return c;
}

/* Whether the rights of the mapping allow the access; leaves the reader at the next line. */
static bool
get_rights(struct reader *r, bool write)
{
	bool readable = get_char(r) == 'r', writable = get_char(r) == 'w';
	char *eol;
	int c;

	while (!(eol = memchr(r->buf + r->pos, '\n', r->end - r->pos))) {
		r->pos = r->end;
		c = get_char(r);
		if (c <= 0 || c == '\n')
			return readable && (writable || !write);
	}
	r->pos = (size_t)(eol - r->buf) + 1;
	return readable && (writable || !write);
}

static int
check(struct reader *r, uint64_t addr, uint64_t end, bool write, uint64_t *bad)
{
	uint64_t from, to;
	bool fits;
	int c;

	*bad = addr;
	while (*bad < end) {
		c = get_hex(r, &from);
		if (c < 0)
			return c;
		if (c != '-' || get_hex(r, &to) != ' ')
			return -EFAULT; /* behind the last mapping */
		fits = get_rights(r, write);
		if (to <= *bad)
			continue;
		if (from > *bad || !fits)
			return -EFAULT;
		*bad = to;
	}
	return 0;
}

int
vrb_maps_check(uint64_t addr, uint64_t length, bool write, uint64_t *bad)
{
	struct reader r;
	int rc;

	r.pos = r.end = 0;
	r.fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (r.fd < 0)
		return -errno;
	rc = check(&r, addr, addr + length, write, bad);
	close(r.fd);
	return rc;
}
