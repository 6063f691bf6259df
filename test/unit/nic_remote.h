/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of NICs in processes of their own. EAL starts once a process, so each test runs in a child,
 * and a peer in a child of that. Their segments are in a directory of their own.
 */
#ifndef NIC_REMOTE_H
#define NIC_REMOTE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/types.h>

#include <cmocka.h>

#include "nic_side.h"

/* In the child, where cmocka's assertions would return into the parent's loop. */
#define require(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
			_exit(1); \
		} \
	} while (0)

/** A process at the other end of a socket, with a NIC that is connected to ours. */
struct remote {
	pid_t pid;
	int sock;
};

void run_in_child(void (*fn)(void));
/** Starts a process whose NIC runs @p fn when it is connected. */
struct remote start_remote(void (*fn)(struct side *s, int sock), enum vrb_direct_mode direct);
/** Opens a NIC and connects it to the one of the process at the other end of the socket. */
void open_remote(struct side *s, int sock, enum vrb_direct_mode direct);
/** Lets it end, which it has to do well. */
void end_remote(struct remote *r);

/** Set-up and tear-down of the directory, for cmocka_run_group_tests(). */
int remote_make_dir(void **state);
int remote_remove_dir(void **state);

#endif
