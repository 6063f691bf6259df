/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log: where it goes, what it looks like, and how it is kept from flooding.
 *
 * A message is one write(2), so that the lines of threads and processes do not mix. Messages beyond
 * the limit of a second are counted, and the next second begins with their number.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "verbs_private.h"

#define LINES_A_SECOND 50
#define LINE_MAX_BYTES 1024

const char *const vrb_log_names[VRB_LOG_LEVELS] = {"error", "warning", "notice", "info", "debug"};

bool vrb_explaining;

static int log_fd = STDERR_FILENO;
static enum vrb_log_level log_level = VRB_LOG_ERROR;

static _Atomic int64_t second;
static _Atomic uint32_t lines;

int
vrb_log_setup(enum vrb_log_level level, const char *file, bool explain)
{
	if (file) {
		int fd = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);

		if (fd < 0)
			return -errno;
		log_fd = fd;
	}
	log_level = level;
	vrb_explaining = explain;
	return 0;
}

int
vrb_log_fd(void)
{
	return log_fd;
}

/* Writes one line; what does not fit is cut, the newline stays. */
static void
write_line(const char *label, const char *fmt, va_list ap)
{
	char line[LINE_MAX_BYTES];
	size_t n, max = sizeof(line) - 1;
	ssize_t rc;

	n = (size_t)snprintf(line, max, "verbena[%d]: %s: ", (int)getpid(), label);
	n += (size_t)vsnprintf(line + n, max - n, fmt, ap);
	if (n > max - 1)
		n = max - 1;
	line[n++] = '\n';
	do {
		rc = write(log_fd, line, n);
	} while (rc < 0 && errno == EINTR);
}

static void __attribute__((format(printf, 2, 3)))
write_note(const char *label, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_line(label, fmt, ap);
	va_end(ap);
}

/* Whether one more line may be written in this second. */
static bool
may_write(void)
{
	struct timespec ts;
	int64_t was = atomic_load(&second);
	uint32_t n;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	if (was != ts.tv_sec && atomic_compare_exchange_strong(&second, &was, ts.tv_sec)) {
		n = atomic_exchange(&lines, 0);
		if (n > LINES_A_SECOND)
			write_note("notice", "%u more messages were left out", n - LINES_A_SECOND);
	}
	return atomic_fetch_add(&lines, 1) < LINES_A_SECOND;
}

void
vrb_log(enum vrb_log_level level, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (level <= log_level && may_write()) {
		va_start(ap, fmt);
		write_line(vrb_log_names[level], fmt, ap);
		va_end(ap);
	}
	errno = saved;
}

void
vrb_log_explain(const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (vrb_explaining && may_write()) {
		va_start(ap, fmt);
		write_line("explain", fmt, ap);
		va_end(ap);
	}
	errno = saved;
}

/* The function of the program's view: our own names end in the name of the call. */
static const char *
call_name(const char *func, char *buf, size_t len)
{
	static const char prefix[] = "vrb_verbs_";

	if (strncmp(func, prefix, sizeof(prefix) - 1))
		return func;
	snprintf(buf, len, "ibv_%s", func + sizeof(prefix) - 1);
	return buf;
}

int
vrb_explain_call(int err, const char *func, const char *fmt, ...)
{
	char call[64], text[512];
	const char *name;
	va_list ap;

	if (!vrb_explaining)
		return err;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* Whatever the call had to do, it did not come to it. */
	if (err == ENODEV && vrb_forked)
		snprintf(text, sizeof(text),
			"the device belongs to the process that this one was forked from");
	name = strerrorname_np(err);
	vrb_log_explain("%s failed with %s: %s", call_name(func, call, sizeof(call)),
		name ? name : "an unknown error", text);
	return err;
}
