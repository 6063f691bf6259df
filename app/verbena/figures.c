/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See figures.h. What comes from a process is of the same user, and taken as text all the same:
 * every line is checked, and unknown ones are passed over.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "figures.h"

#define ANSWER_SECONDS 2
#define TEXT_MAX (256 * 1024)

/* The folder of the sockets, as the library chooses it. @return whether it is this user's alone */
static bool
find_folder(char *path, size_t len)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;
	int n;

	if (runtime && runtime[0] == '/' && !stat(runtime, &st) && S_ISDIR(st.st_mode) &&
		st.st_uid == geteuid())
		n = snprintf(path, len, "%s/verbena/.figures", runtime);
	else
		n = snprintf(path, len, "/tmp/verbena-%u/.figures", (unsigned int)geteuid());
	return n > 0 && (size_t)n + 12 < len && !lstat(path, &st) && S_ISDIR(st.st_mode) &&
	       st.st_uid == geteuid() && !(st.st_mode & 077);
}

static int
by_number(const void *a, const void *b)
{
	return *(const pid_t *)a - *(const pid_t *)b;
}

int
vrb_figures_pids(pid_t *pids, int max)
{
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	const struct dirent *entry;
	DIR *dir;
	int n = 0;

	if (!find_folder(path, sizeof(path)))
		return 0;
	dir = opendir(path);
	if (!dir)
		return 0;
	while (n < max && (entry = readdir(dir)) != NULL)
		if (isdigit((unsigned char)entry->d_name[0]))
			pids[n++] = (pid_t)strtol(entry->d_name, NULL, 10);
	closedir(dir);
	qsort(pids, (size_t)n, sizeof(*pids), by_number);
	return n;
}

static bool
is_same_user(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) && cred.uid == geteuid();
}

/* @return a connected socket or -errno */
static int
connect_to(pid_t pid)
{
	const struct timeval patience = {.tv_sec = ANSWER_SECONDS};
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd, rc = 0;

	if (!find_folder(sa.sun_path, sizeof(sa.sun_path)))
		return -ENOENT;
	snprintf(sa.sun_path + strlen(sa.sun_path), 13, "/%d", (int)pid);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
		rc = -errno;
	else if (!is_same_user(fd))
		rc = -EPERM;
	if (!rc)
		return fd;
	close(fd);
	/* Left behind by a process that was killed. */
	if (rc == -ECONNREFUSED)
		unlink(sa.sun_path);
	return rc == -ECONNREFUSED ? -ENOENT : rc;
}

static int
read_all(int fd, char *text)
{
	size_t len = 0;
	ssize_t n;

	while ((n = read(fd, text + len, TEXT_MAX - 1 - len)) > 0)
		len += (size_t)n;
	if (n < 0)
		return -errno;
	text[len] = '\0';
	return 0;
}

static void
parse_line(struct vrb_figures *f, const char *line)
{
#define NEXT(kind) f->kind[f->num_##kind]
#define ROOM(kind) (f->num_##kind < (int)(sizeof(f->kind) / sizeof(f->kind[0])))
	if (ROOM(stat) && sscanf(line, "stat %31s %lu", NEXT(stat).name, &NEXT(stat).value) == 2)
		f->num_stat++;
	else if (ROOM(srq) && sscanf(line, "srq %u %u %u %u %u %lu", &NEXT(srq).num,
				      &NEXT(srq).max_wr, &NEXT(srq).posted, &NEXT(srq).limit,
				      &NEXT(srq).users, &NEXT(srq).dry) == 6)
		f->num_srq++;
	else if (ROOM(cq) && sscanf(line, "cq %u %u %u %u %d %d", &NEXT(cq).num, &NEXT(cq).size,
				     &NEXT(cq).waiting, &NEXT(cq).completions, &NEXT(cq).armed,
				     &NEXT(cq).overrun) == 6)
		f->num_cq++;
	else if (ROOM(wq) && sscanf(line, "wq %u %u %u %7s", &NEXT(wq).num, &NEXT(wq).max_wr,
				     &NEXT(wq).posted, NEXT(wq).state) == 4)
		f->num_wq++;
	else if (ROOM(qp) &&
		 sscanf(line, "qp %u %11s %7s %u %u %u", &NEXT(qp).num, NEXT(qp).type,
			 NEXT(qp).state, &NEXT(qp).sends, &NEXT(qp).receives, &NEXT(qp).srq) == 6)
		f->num_qp++;
	else if (sscanf(line, "port %63s %63s", f->port, f->driver) == 2 ||
		 sscanf(line, "segment %71s", f->segment) == 1 ||
		 sscanf(line, "address %63s", f->address) == 1)
		return;
	else
		sscanf(line, "objects %u %u %u %u %u %u %u %u", &f->pds, &f->mrs, &f->qps, &f->cqs,
			&f->srqs, &f->wqs, &f->ind_tbls, &f->flows);
}

static int
parse(struct vrb_figures *f, char *text)
{
	char *line, *rest;
	int version;

	if (sscanf(text, "verbena-figures %d", &version) != 1)
		return -EPROTO;
	/* Cut off: the process ended meanwhile. */
	if (!strstr(text, "\nend\n"))
		return -ENOENT;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		parse_line(f, line);
	return 0;
}

static void
find_name(struct vrb_figures *f)
{
	char path[48];
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)f->pid);
	file = fopen(path, "re");
	if (!file || !fgets(f->name, sizeof(f->name), file))
		strcpy(f->name, "?");
	f->name[strcspn(f->name, "\n")] = '\0';
	if (file)
		fclose(file);
}

int
vrb_figures_read(pid_t pid, struct vrb_figures *f)
{
	char *text = malloc(TEXT_MAX);
	int fd, rc;

	if (!text)
		return -ENOMEM;
	memset(f, 0, sizeof(*f));
	f->pid = pid;
	fd = connect_to(pid);
	rc = fd < 0 ? fd : read_all(fd, text);
	if (fd >= 0)
		close(fd);
	if (!rc)
		rc = parse(f, text);
	free(text);
	find_name(f);
	return rc;
}

uint64_t
vrb_figures_stat(const struct vrb_figures *f, const char *name)
{
	int i;

	for (i = 0; i < f->num_stat; i++)
		if (!strcmp(f->stat[i].name, name))
			return f->stat[i].value;
	return 0;
}
