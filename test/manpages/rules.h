/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a manual page is tested sentence by sentence.
 *
 * There is a program for each call. It holds a table of rules: a sentence, or a part of one, in the
 * words of the page, and a function that tries whether it is so. Each rule is run in a process of
 * its own. The programs know nothing of the device but <infiniband/verbs.h>, and run on hardware as
 * they are.
 */
#ifndef RULES_H
#define RULES_H

#include "verbs_util.h"

struct rule {
	const char *quote; /* as on the page, but for white space */
	const char *what; /* which consequence of it is tried, or NULL when there is but one */
	void (*test)(struct rig *r);
};

#define RULE(words, consequence, fn) \
	{ \
		.quote = words, .what = consequence, .test = fn \
	}
#define LAST_RULE \
	{ \
		.quote = NULL \
	}

/* A program's main() is this. @param rules ends with LAST_RULE. @return the status to
 * exit with */
int run_rules(int argc, char **argv, const struct rule *rules);

/* Ends the rule: the device says by its attributes that it cannot do this. */
_Noreturn void device_lacks(const char *what);

/* ---- what the programs share ---- */

struct ibv_device_attr_ex device_attr(struct rig *r);

/* Zeroed memory with a page behind it that cannot be touched: who reads or writes beyond the end
 * crashes. It is never freed; a rule has its process for itself. */
void *at_guard(size_t size);

/* From here on, about a megabyte can still be had from the system. The sanitizers have allocators
 * of their own, which end the program when there is no memory. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CAN_RUN_OUT_OF_MEMORY
void run_out_of_memory(void);
/* Lifts it again. */
void have_memory_again(void);
#endif

/* No asynchronous event comes for a while. */
void expect_no_event(struct rig *r);
/* The next asynchronous event is this one, and it comes within some seconds. */
void expect_event(struct rig *r, enum ibv_event_type type, const void *obj);

/* Connects the rig's queue pairs so that they wait for receives as long as it takes. */
void connect_patient(struct rig *r);

/* An errno as the value of a call, which -1 is not. */
#define assert_errno_value(rc) assert_in_range(rc, 1, 4095)

#endif
