/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Between the parts of the prompt's language: words, patterns, values.
 */
#ifndef TESTPMD_GRAMMAR_H
#define TESTPMD_GRAMMAR_H

#include "cli.h"

#define TP_MAX_LINE 512
#define TP_MAX_WORD 256

/** A line in words. */
struct tp_words {
	char text[TP_MAX_LINE];
	const char *word[TP_MAX_WORDS];
	unsigned int num;
};

/** @return 0, or -E2BIG: the line is too long, or has too many words */
int tp_split(struct tp_words *w, const char *line);

/** One word of a pattern. */
struct tp_item {
	char literal[32]; /* or "" */
	const struct tp_arg *arg; /* of <name> */
};

struct tp_pattern {
	struct tp_item item[TP_MAX_ARGS];
	unsigned int num;
};

void tp_pattern(const struct tp_cmd *cmd, struct tp_pattern *p);
/** Whether the pattern names the argument; otherwise it is an option. */
bool tp_is_positional(const struct tp_cmd *cmd, const struct tp_arg *arg);
const struct tp_arg *tp_option(const struct tp_cmd *cmd, const char *name);
/** How many words, from the first on, the pattern takes. @param literals out: how many of them are
 * literal */
unsigned int tp_match(const struct tp_pattern *p, const char *const *word, unsigned int num,
	unsigned int *literals);

/** Understands a value. @return 0, or -errno after tp_refuse() */
int tp_parse_value(const struct tp_arg *arg, const char *text, struct tp_value *value);
/** Understands a line. @return 0, or -errno after tp_refuse() */
int tp_parse(const struct tp_words *w, struct tp_call *call);

/** Possible words at a place. */
struct tp_choices {
	struct {
		char word[TP_MAX_WORD];
		char what[64];
		const char *help;
	} choice[128];
	unsigned int num;
	/* When there is none: what is expected. */
	char expected[64];
	const char *help;
};

/** What may stand behind the words. */
void tp_choices(const char *const *word, unsigned int num, struct tp_choices *c);

#endif
