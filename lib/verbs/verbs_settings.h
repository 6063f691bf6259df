/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The environment variables VERBENA_*: the interface below `verbena run`.
 */
#ifndef VERBS_SETTINGS_H
#define VERBS_SETTINGS_H

#include "vrb_nic.h"

struct vrb_settings {
	const char *port;
	const char *segment;
	const char *ip;
	const char *eal_args;
	enum vrb_icrc_mode icrc;
	enum vrb_direct_mode direct;
	int eal_log; /* descriptor of the log, for DPDK's messages; 0: none */
};

/**
 * Reads the environment, at the first call, and sets up the log.
 *
 * @return 0, or -EINVAL after a sentence in the log
 */
int vrb_settings_get(const struct vrb_settings **settings);

#endif
