/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The command line: our options, and those of EAL among them.
 */
#ifndef TESTPMD_EAL_H
#define TESTPMD_EAL_H

#include <stdbool.h>
#include <stdint.h>

struct tp_options {
	const char *file; /* commands, "-": standard input */
	bool interactive; /* also behind a file */
	bool keep_going;
	bool echo;
	bool hugepages;
	bool help, version;
	uint16_t rx_queues, tx_queues; /* of each port */
	/* The device, unless EAL's options make a port of net_verbena. */
	const char *port, *segment, *ip;
};

/**
 * Takes our options out of the command line and starts EAL with the others.
 *
 * @return 0, or -errno after tp_refuse()
 */
int tp_options_parse(int argc, const char *const *argv, struct tp_options *o);
/** Starts EAL with what tp_options_parse() has left. @return 0, or -errno after tp_refuse() */
int tp_eal_start(const struct tp_options *o);

#endif
