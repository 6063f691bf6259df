/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting in the middle of a command, so that a person can end it.
 */
#ifndef TESTPMD_WAIT_H
#define TESTPMD_WAIT_H

#include <signal.h>
#include <stdbool.h>

/** A person types at a terminal, which the cmdline library has set to pass Ctrl-C as a character.
 */
extern bool tp_at_terminal;
/** Set by signal handlers. */
extern volatile sig_atomic_t tp_interrupted;

/** Waits. @return true: it was interrupted, by Ctrl-C, q, Enter or a signal */
bool tp_wait(unsigned int ms);
/** Waits, whatever is typed. */
void tp_pause(unsigned int ms);
/** Whether what is printed can be written over: the output is a terminal. */
bool tp_can_overwrite(void);
/** Goes up @p lines lines and clears what is below. */
void tp_overwrite(unsigned int lines);

#endif
