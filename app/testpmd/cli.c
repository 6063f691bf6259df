/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines: DPDK's cmdline library on the one side, the table of commands on the other.
 *
 * The library knows one instruction. Its tokens are made here, one a word, when the library asks
 * for them (cmdline_parse.h, "dynamic tokens"): while it completes, a token tells what may stand at
 * its place behind the words that were seen before it. When a line is to be run, the one token
 * takes all of it, so that what is wrong with it is told here, by name, and not as "Bad arguments".
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmdline.h>
#include <cmdline_parse.h>

#include "grammar.h"

struct tp_results tp_results;
void (*tp_observer)(const struct tp_cmd *cmd, int rc);
void (*tp_after_command)(void);

static char why[4096];
static unsigned int column; /* of the row that is being printed */
static struct cmdline *current;

#define ROW_WIDTH 100

int
tp_refuse(int rc, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(why, sizeof(why), format, ap);
	va_end(ap);
	return rc;
}

const char *
tp_why(void)
{
	return why;
}

void
tp_print(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
}

void
tp_row(const char *key, const char *format, ...)
{
	char value[600];
	unsigned int len;
	va_list ap;

	va_start(ap, format);
	vsnprintf(value, sizeof(value), format, ap);
	va_end(ap);
	len = strlen(key) + 1 + strlen(value);
	if (column > 0 && column + 2 + len > ROW_WIDTH) {
		printf("\n");
		column = 0;
		printf("  ");
	} else if (column > 0) {
		printf("  ");
	}
	column += len + 2;
	printf("%s %s", key, value);
}

void
tp_row_end(void)
{
	printf("\n");
	column = 0;
}

struct cmdline *
tp_cmdline_current(void)
{
	return current;
}

int
tp_run_line(const char *line)
{
	struct tp_words words;
	struct tp_call call;
	int rc;

	why[0] = '\0';
	if (tp_split(&words, line) < 0) {
		rc = tp_refuse(-E2BIG, "a line has at most %d characters and %d words", TP_MAX_LINE,
			TP_MAX_WORDS);
	} else {
		if (words.num == 0)
			return 0;
		rc = tp_parse(&words, &call);
		if (rc == 0)
			rc = call.cmd->run(&call);
		if (tp_observer != NULL && call.cmd != NULL)
			tp_observer(call.cmd, rc);
	}
	tp_results.done++;
	tp_results.failed += rc < 0;
	tp_results.last = rc;
	if (tp_after_command != NULL)
		tp_after_command();
	if (rc < 0) {
		fflush(stdout);
		fprintf(stderr, "error: %s\n", why);
	}
	fflush(stdout);
	return rc;
}

/* ---- tokens ---- */

/* Words that the library has shown us of the line that it works on. */
static struct {
	char text[TP_MAX_WORDS][TP_MAX_WORD];
	unsigned int num;
} seen;

/* The line is to be run: one token has taken all of it. */
static bool whole_line;
static struct tp_choices choices;
/* What the library shows behind a choice. */
static char help_of_choice[256];
static char what_of_choice[64];

static unsigned int
word_length(const char *s)
{
	return strcspn(s, " \t#\r\n");
}

/* The library passes a buffer for the result when it runs a line, and none when it completes one.
 */
static int
token_parse(cmdline_parse_token_hdr_t *token, const char *buf, void *result, unsigned int size)
{
	unsigned int len = result != NULL ? strcspn(buf, "\r\n") : word_length(buf);

	whole_line = result != NULL;
	if (result != NULL)
		snprintf(result, size, "%.*s", (int)len, buf);
	else if (len >= TP_MAX_WORD || seen.num == TP_MAX_WORDS)
		return -1;
	else
		snprintf(seen.text[seen.num++], TP_MAX_WORD, "%.*s", (int)len, buf);
	return len;
}

static int
token_choices(cmdline_parse_token_hdr_t *token)
{
	const char *word[TP_MAX_WORDS];

	for (unsigned int i = 0; i < seen.num; i++)
		word[i] = seen.text[i];
	tp_choices(word, seen.num, &choices);
	snprintf(what_of_choice, sizeof(what_of_choice), "%s", choices.expected);
	snprintf(help_of_choice, sizeof(help_of_choice), "%s",
		choices.help != NULL ? choices.help : "nothing more");
	return choices.num;
}

static int
token_choice(cmdline_parse_token_hdr_t *token, int i, char *buf, unsigned int size)
{
	snprintf(buf, size, "%s", choices.choice[i].word);
	snprintf(what_of_choice, sizeof(what_of_choice), "%s", choices.choice[i].what);
	snprintf(help_of_choice, sizeof(help_of_choice), "%s", choices.choice[i].help);
	return 0;
}

static int
token_help(cmdline_parse_token_hdr_t *token, char *buf, unsigned int size)
{
	snprintf(buf, size, "%s", what_of_choice);
	return 0;
}

static struct cmdline_token_ops word_ops = {
	.parse = token_parse,
	.complete_get_nb = token_choices,
	.complete_get_elt = token_choice,
	.get_help = token_help,
};

static cmdline_parse_token_hdr_t word_token = {.ops = &word_ops};

static void instruction_call(void *parsed, struct cmdline *cl, void *data);

static cmdline_parse_inst_t instruction = {
	.f = instruction_call,
	.help_str = help_of_choice,
	.tokens = {NULL},
};

static cmdline_parse_ctx_t instructions[] = {&instruction, NULL};

static void
instruction_call(void *parsed, struct cmdline *cl, void *data)
{
	if (cl == NULL) {
		/* A token is asked for: cmdline_parse.h. */
		cmdline_parse_token_hdr_t **token = parsed;
		unsigned int i = (cmdline_parse_token_hdr_t **)data - instruction.tokens;

		if (i == 0) {
			seen.num = 0;
			whole_line = false;
		}
		*token = i < TP_MAX_WORDS && !whole_line ? &word_token : NULL;
		return;
	}
	current = cl;
	tp_run_line(parsed);
	current = NULL;
}

struct cmdline *
tp_cmdline_new(const char *prompt, int in, int out)
{
	return cmdline_new(instructions, prompt, in, out);
}
