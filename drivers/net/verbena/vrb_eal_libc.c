/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What EAL may not take from libc, because it belongs to the program that we are a guest of (see
 * vrb_eal_libc.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>

#include "vrb_eal_libc.h"

__thread jmp_buf *vrb_eal_escape;
int vrb_eal_log_fd;

char *vrb_eal_optarg;
int vrb_eal_optind = 1, vrb_eal_optopt;

/* "--name", "--name=value", "--name value" */
static int
parse_long(int argc, char *const *argv, const struct option *longs, int *index)
{
	const char *name = argv[vrb_eal_optind++] + 2;
	size_t len = strcspn(name, "=");

	for (int i = 0; longs[i].name != NULL; i++) {
		if (strlen(longs[i].name) != len || strncmp(longs[i].name, name, len) != 0)
			continue;
		if (name[len] == '=')
			vrb_eal_optarg = (char *)(uintptr_t)&name[len + 1];
		else if (longs[i].has_arg == required_argument && vrb_eal_optind < argc)
			vrb_eal_optarg = argv[vrb_eal_optind++];
		if (vrb_eal_optarg == NULL ? longs[i].has_arg == required_argument
					   : longs[i].has_arg == no_argument)
			break;
		if (index != NULL)
			*index = i;
		if (longs[i].flag == NULL)
			return longs[i].val;
		*longs[i].flag = longs[i].val;
		return 0;
	}
	return '?';
}

/* "-x", "-xvalue", "-x value"; not several flags behind one dash, which nobody gives EAL. */
static int
parse_short(int argc, char *const *argv, const char *shorts)
{
	char *arg = argv[vrb_eal_optind++];
	const char *s = arg[1] == ':' ? NULL : strchr(shorts, arg[1]);

	vrb_eal_optopt = arg[1];
	if (s == NULL)
		return '?';
	if (s[1] != ':')
		return arg[2] == '\0' ? arg[1] : '?';
	if (arg[2] != '\0')
		vrb_eal_optarg = &arg[2];
	else if (vrb_eal_optind < argc)
		vrb_eal_optarg = argv[vrb_eal_optind++];
	return vrb_eal_optarg != NULL ? arg[1] : '?';
}

/* Stops at the first word that is no option: EAL has no others. */
int
vrb_eal_getopt_long(
	int argc, char *const *argv, const char *shorts, const struct option *longs, int *index)
{
	const char *arg;

	vrb_eal_optarg = NULL;
	if (vrb_eal_optind >= argc)
		return -1;
	arg = argv[vrb_eal_optind];
	if (arg[0] != '-' || arg[1] == '\0')
		return -1;
	if (arg[1] != '-')
		return parse_short(argc, argv, shorts);
	if (arg[2] != '\0')
		return parse_long(argc, argv, longs, index);
	vrb_eal_optind++;
	return -1;
}

int
vrb_eal_printf_chk(int flag, const char *format, ...)
{
	return 0;
}

int
vrb_eal_fprintf_chk(FILE *f, int flag, const char *format, ...)
{
	va_list ap;
	int n;

	if (f == stdout || (f == stderr && vrb_eal_log_fd <= 0))
		return 0;
	va_start(ap, format);
	n = f == stderr ? vdprintf(vrb_eal_log_fd, format, ap) : vfprintf(f, format, ap);
	va_end(ap);
	return n;
}

int
vrb_eal_puts(const char *s)
{
	return 0;
}

int
vrb_eal_putchar(int c)
{
	return c;
}

void
vrb_eal_syslog_chk(int priority, int flag, const char *format, ...)
{
}

void
vrb_eal_openlog(const char *ident, int option, int facility)
{
}

void
vrb_eal_exit(int status)
{
	if (vrb_eal_escape != NULL)
		longjmp(*vrb_eal_escape, 1);
	exit(status);
}

void
vrb_eal_abort(void)
{
	if (vrb_eal_escape != NULL)
		longjmp(*vrb_eal_escape, 1);
	abort();
}

int
vrb_eal_memfd_create(const char *name, unsigned int flags)
{
	errno = ENOSYS;
	return -1;
}

int
vrb_eal_pipe(int fds[2])
{
	return pipe2(fds, O_CLOEXEC);
}

int
vrb_eal_epoll_create(int size)
{
	return epoll_create1(EPOLL_CLOEXEC);
}

int
vrb_eal_timerfd_create(int clock, int flags)
{
	return timerfd_create(clock, flags | TFD_CLOEXEC);
}

int
vrb_eal_setaffinity(pthread_t thread, size_t size, const cpu_set_t *set)
{
	return 0;
}

int
vrb_eal_setname(pthread_t thread, const char *name)
{
	char buf[16] = "vrb-";

	/* Names have 15 characters; EAL's own start with its own prefix. */
	if (strncmp(name, "eal-", 4) == 0 || strncmp(name, "rte-", 4) == 0 ||
		strncmp(name, "vrb-", 4) == 0)
		name += 4;
	strncat(buf, name, sizeof(buf) - 5);
	return pthread_setname_np(thread, buf);
}

int
vrb_eal_nanosleep(const struct timespec *req, struct timespec *rem)
{
	static const struct timespec brief = {.tv_nsec = 5000000};

	if (vrb_eal_escape != NULL && (req->tv_sec > 0 || req->tv_nsec > brief.tv_nsec))
		req = &brief;
	return nanosleep(req, rem);
}

int
vrb_eal_access(const char *path, int mode)
{
	const char *cpu =
		strncmp(path, "/sys/devices/system/", 20) == 0 ? strstr(path, "/cpu") : NULL;
	static long cpus; /* only the thread that starts EAL gets here with such paths */
	int n;

	/*
	 * "/sys/devices/system/node/node0/cpu17", "/sys/devices/system/cpu/cpu17/topology/core_id"
	 */
	if (cpu != NULL && strncmp(cpu, "/cpu/cpu", 8) == 0)
		cpu += 4;
	if (cpu != NULL && cpus == 0)
		cpus = sysconf(_SC_NPROCESSORS_CONF);
	if (cpu != NULL && sscanf(cpu, "/cpu%d", &n) == 1 && n >= cpus) {
		errno = ENOENT;
		return -1;
	}
	return access(path, mode);
}
