/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The log of the verbs library: one line a message, to stderr or a file, never more than a bounded
 * number a second. It leaves errno alone.
 */
#ifndef VERBS_LOG_H
#define VERBS_LOG_H

#include <stdbool.h>

enum vrb_log_level {
	VRB_LOG_ERROR,
	VRB_LOG_WARNING,
	VRB_LOG_NOTICE,
	VRB_LOG_INFO,
	VRB_LOG_DEBUG,
	VRB_LOG_LEVELS,
};

/** Names of the levels, as VERBENA_LOG has them. */
extern const char *const vrb_log_names[VRB_LOG_LEVELS];

/** @param file NULL: stderr. @return 0, or -errno of open(2) */
int vrb_log_setup(enum vrb_log_level level, const char *file, bool explain);

/** Where the log goes. */
int vrb_log_fd(void);

void vrb_log(enum vrb_log_level level, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/** Whether VERBENA_EXPLAIN=1. */
extern bool vrb_explaining;

/** One sentence on why something failed, whatever the level. Only with VERBENA_EXPLAIN=1. */
void vrb_log_explain(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** Explains that the call @p func fails with @p err. @return err */
int vrb_explain_call(int err, const char *func, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), cold));

#endif
