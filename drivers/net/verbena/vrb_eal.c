/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Starting DPDK's EAL inside a program that knows nothing of it (see vrb_eal.h).
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include <rte_eal.h>
#include <rte_eal_memconfig.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_memory.h>

#include "vrb_eal.h"
#include "vrb_eal_libc.h"
#include "vrb_thread.h"

/* Megabytes of address space for mempools and rings. Pages that are not used cost nothing. */
#define EAL_MEMORY "192"
#define EAL_MAX_ARGS 64

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static bool started;
static pid_t start_pid;
static int start_rc;
static char start_why[256];

/*
 * The first error that DPDK has logged, to be told in the sentence of the call that failed: the
 * cause is logged where it is found, and what follows says only that something failed.
 */
static pthread_mutex_t error_lock = PTHREAD_MUTEX_INITIALIZER;
static char first_error[200];

struct eal_start {
	const char *args;
	int argc;
	char *argv[EAL_MAX_ARGS];
	char *words; /* what argv points into */
	int rc;
};

static ssize_t
log_write(void *cookie, const char *buf, size_t size)
{
	if (rte_log_cur_msg_loglevel() <= (int)RTE_LOG_ERR) {
		size_t n = size < sizeof(first_error) ? size : sizeof(first_error) - 1;

		pthread_mutex_lock(&error_lock);
		if (first_error[0] == '\0') {
			memcpy(first_error, buf, n);
			first_error[n] = '\0';
			first_error[strcspn(first_error, "\n")] = '\0';
		}
		pthread_mutex_unlock(&error_lock);
	}
	/* A short count would be an error of the stream, so what cannot be written is dropped. */
	if (vrb_eal_log_fd > 0 && write(vrb_eal_log_fd, buf, size) < 0)
		return size;
	return size;
}

void
vrb_eal_error(char *buf, size_t len)
{
	pthread_mutex_lock(&error_lock);
	snprintf(buf, len, "%s", first_error);
	pthread_mutex_unlock(&error_lock);
}

void
vrb_eal_clear_error(void)
{
	pthread_mutex_lock(&error_lock);
	first_error[0] = '\0';
	pthread_mutex_unlock(&error_lock);
}

static int
make_args(struct eal_start *s)
{
	static const char *const ours[] = {"verbena", "--no-huge", "--no-shconf", "--no-pci",
		"--no-telemetry", "--iova-mode=va", "-m", EAL_MEMORY,
		/* One lcore; on which CPU it says it is does not matter, since EAL binds no thread
		   (vrb_eal_libc.h). */
		"--lcores=0@0"};
	char *save = NULL;

	for (size_t i = 0; i < RTE_DIM(ours); i++)
		s->argv[s->argc++] = (char *)(uintptr_t)ours[i];
	s->words = strdup(s->args != NULL ? s->args : "");
	if (s->words == NULL)
		return -ENOMEM;
	for (char *w = strtok_r(s->words, " \t", &save); w != NULL;
		w = strtok_r(NULL, " \t", &save)) {
		if (s->argc == EAL_MAX_ARGS - 1)
			return -E2BIG;
		s->argv[s->argc++] = w;
	}
	s->argv[s->argc] = NULL;
	return 0;
}

static void *
eal_thread(void *arg)
{
	struct eal_start *s = arg;
	jmp_buf escape;

	if (setjmp(escape) != 0) {
		s->rc = -ECANCELED;
	} else {
		vrb_eal_escape = &escape;
		s->rc = rte_eal_init(s->argc, s->argv) < 0 ? -rte_errno : 0;
	}
	vrb_eal_escape = NULL;
	return NULL;
}

/* EAL's memory is anonymous: let the kernel use large pages for it, if it is willing. */
static int
advise(const struct rte_memseg_list *msl, void *arg)
{
	return madvise(msl->base_va, msl->len, MADV_HUGEPAGE) < 0 ? 1 : 0;
}

static int
start(const char *eal_args, int log_fd)
{
	static const cookie_io_functions_t io = {.write = log_write};
	struct eal_start s = {.args = eal_args};
	char error[sizeof(first_error)];
	pthread_t thread;
	FILE *stream;
	int rc = make_args(&s);

	if (rc < 0) {
		snprintf(start_why, sizeof(start_why), "cannot make the arguments of DPDK: %s",
			strerror(-rc));
		free(s.words);
		return rc;
	}
	stream = fopencookie(NULL, "w", io);
	if (stream != NULL) {
		setvbuf(stream, NULL, _IOLBF, BUFSIZ);
		rte_openlog_stream(stream);
	}
	vrb_eal_log_fd = log_fd;
	rc = vrb_thread_create(&thread, "vrb-eal", eal_thread, &s);
	if (rc == 0) {
		pthread_join(thread, NULL);
		rc = s.rc;
	}
	free(s.words);
	if (rc < 0) {
		vrb_eal_error(error, sizeof(error));
		snprintf(start_why, sizeof(start_why), "DPDK does not start: %s%s%s%s",
			error[0] != '\0' ? error : strerror(-rc),
			eal_args != NULL && *eal_args ? " (arguments \"" : "",
			eal_args != NULL ? eal_args : "",
			eal_args != NULL && *eal_args ? "\")" : "");
		return rc;
	}
	rte_memseg_list_walk(advise, NULL);
	return 0;
}

int
vrb_eal_start(const char *eal_args, int log_fd, char *why, size_t why_len)
{
	int rc;

	pthread_mutex_lock(&start_lock);
	if (!started) {
		started = true;
		start_pid = getpid();
		start_rc = start(eal_args, log_fd);
	}
	rc = start_rc;
	if (start_pid != getpid()) {
		rc = -ENOTSUP;
		snprintf(why, why_len,
			"the process was forked after its parent had opened the device; open it "
			"after fork, or exec");
	} else if (rc < 0) {
		snprintf(why, why_len, "%s", start_why);
	}
	pthread_mutex_unlock(&start_lock);
	return rc;
}
