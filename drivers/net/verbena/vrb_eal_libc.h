/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What EAL may not take from libc, because it belongs to the program that we are a guest of.
 *
 * The copy of librte_eal.a that we link has some of its references to libc renamed (vrb_eal.syms,
 * by objcopy), so that they come here:
 *
 *   getopt_long, opt*       libc's parser has state that the program may be in the middle of
 *   puts, printf ...        stdout is the program's; what EAL prints there is dropped
 *   fprintf                 to stderr likewise (EAL announces a failed start there), unless the log
 *                           is wanted
 *   openlog, syslog         would replace the program's ident
 *   exit, abort             in rte_eal_init() they end the thread that starts EAL: the start has
 *                           failed
 *   memfd_create            EAL's memory stays private: after fork(2) a child that writes does not
 *                           harm its parent, and programs that are executed do not inherit it
 *   pipe, epoll_create,     programs that are executed do not inherit the descriptors
 *   timerfd_create
 *   pthread_setaffinity_np  EAL's threads may run where those of the process may, not on one CPU
 *   pthread_setname_np      names of threads start with our prefix
 *   nanosleep               EAL measures the TSC for 100 ms; nothing here depends on what it finds,
 *                           so 5 ms are enough
 *   access                  EAL looks for each of 128 CPUs in each of 32 NUMA nodes, which takes
 *                           13 ms; those that do not exist are skipped
 */
#ifndef VRB_EAL_LIBC_H
#define VRB_EAL_LIBC_H

#include <getopt.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <sys/types.h>
#include <pthread.h>

/** Where exit() and abort() of EAL lead in the thread that has set it; NULL elsewhere. */
extern __thread jmp_buf *vrb_eal_escape;
/** Where what EAL prints to stderr goes, 0: nowhere. */
extern int vrb_eal_log_fd;

/* The renamed functions; their contracts are those of the names without prefix. */
extern char *vrb_eal_optarg;
extern int vrb_eal_optind, vrb_eal_optopt;
int vrb_eal_getopt_long(
	int argc, char *const *argv, const char *shorts, const struct option *longs, int *index);
int vrb_eal_printf_chk(int flag, const char *format, ...);
int vrb_eal_fprintf_chk(FILE *f, int flag, const char *format, ...);
int vrb_eal_puts(const char *s);
int vrb_eal_putchar(int c);
void vrb_eal_syslog_chk(int priority, int flag, const char *format, ...);
void vrb_eal_openlog(const char *ident, int option, int facility);
void vrb_eal_exit(int status) __attribute__((noreturn));
void vrb_eal_abort(void) __attribute__((noreturn));
int vrb_eal_memfd_create(const char *name, unsigned int flags);
int vrb_eal_nanosleep(const struct timespec *req, struct timespec *rem);
int vrb_eal_access(const char *path, int mode);
int vrb_eal_pipe(int fds[2]);
int vrb_eal_epoll_create(int size);
int vrb_eal_timerfd_create(int clock, int flags);
int vrb_eal_setaffinity(pthread_t thread, size_t size, const cpu_set_t *set);
int vrb_eal_setname(pthread_t thread, const char *name);

#endif
