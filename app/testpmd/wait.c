/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waiting in the middle of a command. See wait.h.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "wait.h"

#define CTRL_C 3

bool tp_at_terminal;
volatile sig_atomic_t tp_interrupted;

static unsigned int
now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000u + ts.tv_nsec / 1000000;
}

/* What is typed meanwhile and ends nothing is lost: it was typed at a running command. */
static bool
key_ends(void)
{
	char c;

	if (read(STDIN_FILENO, &c, 1) != 1)
		return true;
	return c == CTRL_C || c == 'q' || c == '\r' || c == '\n';
}

bool
tp_wait(unsigned int ms)
{
	struct pollfd pfd = {.fd = tp_at_terminal ? STDIN_FILENO : -1, .events = POLLIN};
	unsigned int began = now_ms(), gone = 0;

	fflush(stdout);
	do {
		int n = poll(&pfd, 1, ms - gone);

		if (tp_interrupted)
			return true;
		if (n > 0 && key_ends())
			return true;
		gone = now_ms() - began;
	} while (gone < ms);
	return false;
}

void
tp_pause(unsigned int ms)
{
	const struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&ts, NULL);
}

bool
tp_can_overwrite(void)
{
	return tp_at_terminal && isatty(STDOUT_FILENO);
}

void
tp_overwrite(unsigned int lines)
{
	if (lines > 0)
		printf("\033[%uA\r\033[J", lines);
}
