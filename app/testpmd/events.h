/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engine tells by itself: completions that were asked for, asynchronous events, and why
 * something failed. It comes from any thread, under the baton; the prompt shows it between
 * commands.
 */
#ifndef TESTPMD_EVENTS_H
#define TESTPMD_EVENTS_H

#include "vrb_roce.h"

extern const struct vrb_engine_ops tp_engine_ops;

/** From now on events of the port are remembered as well: link, removal, watermarks. */
void tp_events_port(uint16_t port);
/** Prints what has come since the last call, as "event ..." and "note ..." lines. */
void tp_events_show(void);
/** The engine's last sentence on why something failed since tp_events_clear_reason(), or "". */
const char *tp_events_reason(void);
void tp_events_clear_reason(void);

#endif
