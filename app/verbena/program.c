/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program that is to be run: where it is, and whether a preloaded library can reach it at all.
 * A static program, one of another architecture or a set-user-ID one would run as if nothing had
 * been asked, and find no device; saying so before is kinder than letting a person look for the
 * reason.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "verbena.h"

#define SCRIPT_DEPTH 4 /* as in the kernel: scripts that interpret scripts */
#define SCRIPT_LINE 256
#define PHDRS_MAX 256 /* far more than any linker makes */

static bool
is_runnable(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* Looks along PATH; true when found. Denied tells of a file that is there and may not be run. */
static bool
search_path(struct vrb_program *p, const char *name, bool *denied)
{
	const char *dirs = getenv("PATH");
	const char *end;

	for (dirs = dirs ? dirs : "/bin:/usr/bin"; dirs; dirs = *end ? end + 1 : NULL) {
		int n;

		end = strchrnul(dirs, ':');
		n = end - dirs;
		/* An empty entry is the current folder. */
		if (snprintf(p->path, sizeof(p->path), "%.*s%s%s", n, dirs, n ? "/" : "", name) >=
			(int)sizeof(p->path))
			continue;
		if (is_runnable(p->path))
			return true;
		if (!access(p->path, F_OK))
			*denied = true;
	}
	return false;
}

static int
locate(struct vrb_program *p, const char *name)
{
	bool denied = false;

	if (!strchr(name, '/')) {
		if (name[0] && search_path(p, name, &denied))
			return VRB_EXIT_OK;
		if (denied)
			vrb_complain(
				"run: '%s' is in the PATH but is no program you may run", name);
		else
			vrb_complain("run: there is no program '%s' in the PATH", name);
		return denied ? VRB_EXIT_CANNOT_INVOKE : VRB_EXIT_NOT_FOUND;
	}
	if (strlcpy(p->path, name, sizeof(p->path)) >= sizeof(p->path) || access(name, F_OK)) {
		vrb_complain("run: there is no program '%s'", name);
		return VRB_EXIT_NOT_FOUND;
	}
	if (is_runnable(name))
		return VRB_EXIT_OK;
	vrb_complain("run: '%s' is no program you may run", name);
	return VRB_EXIT_CANNOT_INVOKE;
}

/* The loader leaves LD_PRELOAD away when the kernel says that the program gains rights (AT_SECURE).
 */
static int
check_rights(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return VRB_EXIT_OK;
	if (((st.st_mode & S_ISUID) && st.st_uid != getuid()) ||
		((st.st_mode & S_ISGID) && st.st_gid != getgid())) {
		vrb_complain("run: %s is set-user-ID or set-group-ID: the loader ignores preloaded "
			     "libraries for it",
			path);
		return VRB_EXIT_CANNOT_INVOKE;
	}
	if (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0) {
		vrb_complain(
			"run: %s has file capabilities: the loader ignores preloaded libraries "
			"for it",
			path);
		return VRB_EXIT_CANNOT_INVOKE;
	}
	return VRB_EXIT_OK;
}

/* Name of the loader that the file asks for, empty when it asks for none; -errno when it cannot be
 * told. */
static int
read_interpreter(int fd, const ElfW(Ehdr) * ehdr, char *name, size_t len)
{
	ElfW(Phdr) ph;
	ssize_t n;
	int i;

	name[0] = '\0';
	if (ehdr->e_phentsize != sizeof(ph) || ehdr->e_phnum > PHDRS_MAX)
		return -ENOEXEC;
	for (i = 0; i < ehdr->e_phnum; i++) {
		if (pread(fd, &ph, sizeof(ph), ehdr->e_phoff + i * sizeof(ph)) != sizeof(ph))
			return -ENOEXEC;
		if (ph.p_type != PT_INTERP)
			continue;
		n = pread(fd, name, len - 1, ph.p_offset);
		name[n > 0 ? n : 0] = '\0';
		return 0;
	}
	return 0;
}

static int
check_elf(int fd, const char *path, const ElfW(Ehdr) * ehdr)
{
	const char *why = NULL;
	char interp[PATH_MAX];

	if (ehdr->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32)) {
		vrb_complain(
			"run: %s is a program for another word size than Verbena's library", path);
		return VRB_EXIT_CANNOT_INVOKE;
	}
	/* What cannot be told is left to the kernel, which says it better. */
	if (read_interpreter(fd, ehdr, interp, sizeof(interp)))
		return VRB_EXIT_OK;
	/* The loader itself has no interpreter either, and honours LD_PRELOAD for what it loads. */
	if (!interp[0] && !strstr(path, "/ld-linux") && !strstr(path, "/ld.so"))
		why = "is statically linked, so that no library can be put in front of it";
	else if (strstr(interp, "ld-musl"))
		why = "is made for musl, and Verbena's library for glibc";
	if (!why)
		return VRB_EXIT_OK;
	vrb_complain("run: %s %s", path, why);
	return VRB_EXIT_CANNOT_INVOKE;
}

/* The interpreter of a "#!" line, cut out in place; NULL when there is none. */
static char *
script_interpreter(char *line)
{
	char *name;

	if (strncmp(line, "#!", 2))
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	name = line + 2 + strspn(line + 2, " \t");
	name[strcspn(name, " \t")] = '\0';
	return name[0] ? name : NULL;
}

static int
check_file(const char *path, int depth)
{
	union {
		ElfW(Ehdr) ehdr;
		char line[SCRIPT_LINE];
	} head = {0};
	const char *next;
	int fd, status;
	ssize_t n;

	status = check_rights(path);
	if (status)
		return status;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return VRB_EXIT_OK; /* may be run and not read: the kernel decides */
	n = pread(fd, &head, sizeof(head.line) - 1, 0);
	if (n >= (ssize_t)sizeof(head.ehdr) && !memcmp(head.ehdr.e_ident, ELFMAG, SELFMAG)) {
		status = check_elf(fd, path, &head.ehdr);
	} else {
		next = n > 0 ? script_interpreter(head.line) : NULL;
		status = next && depth < SCRIPT_DEPTH ? check_file(next, depth + 1) : VRB_EXIT_OK;
	}
	close(fd);
	return status;
}

int
vrb_program_find(struct vrb_program *p, const char *name)
{
	int status = locate(p, name);

	return status ? status : check_file(p->path, 0);
}
