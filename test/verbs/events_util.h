/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of completion channels and of moderation share.
 */
#ifndef EVENTS_UTIL_H
#define EVENTS_UTIL_H

#include "verbs_util.h"

/* A rig whose CQ has a channel. */
struct events {
	struct rig *r;
	struct ibv_comp_channel *ch;
};

/* Set-up and tear-down of a test; the state is a struct events. The context of the CQ is the same.
 */
int open_events(void **state);
int close_events(void **state);
/* @return whether the channel's descriptor is, or becomes so within a time */
bool readable(struct ibv_comp_channel *ch, int ms);

#endif
