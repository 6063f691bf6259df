/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The captures of test/data/captures, read into memory.
 */
#ifndef ROCE_CAPTURE_H
#define ROCE_CAPTURE_H

#include "frame.h"

#define CAPTURE_MAX 256

struct capture {
	unsigned int n;
	struct {
		uint8_t *data;
		uint32_t len;
		struct frame f; /* points into data */
		char side; /* 'A' or 'B': who sent it */
	} p[CAPTURE_MAX];
};

/** Reads NAME.pcap from the folder of captures. Aborts the test when it is not there, or no capture
 * of RC packets. */
struct capture *capture_read(const char *name);
void capture_free(struct capture *c);
/** The first packet of @p side, or NULL. */
const struct frame *capture_first(const struct capture *c, char side);

#endif
