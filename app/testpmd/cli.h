/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The language of the prompt: what a command looks like, and how a line becomes a call.
 *
 * A command is a row of a table. Its pattern holds literal words and, in angle brackets, the names
 * of arguments: "qp connect <qp> to <peer>". Arguments that the pattern does not name are options:
 * "name value" pairs in any order behind it. From the table come parsing, completion, help and the
 * messages about wrong words, so they cannot disagree. DPDK's cmdline library edits lines, keeps
 * the history, and asks for completions; it sees one instruction whose tokens are made here.
 */
#ifndef TESTPMD_CLI_H
#define TESTPMD_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rte_common.h>

struct cmdline;

/** What the value of an argument is. */
enum tp_type {
	TP_NUM, /* a number, min..max */
	TP_ID, /* an object of the kind `object` that exists */
	TP_NEW_ID, /* a number that no object of the kind has */
	TP_PORT, /* an ethdev port that exists */
	TP_CHOICE, /* one of words[]; its index is the number */
	TP_FLAGS, /* words of words[], separated by commas; bit i for words[i] */
	TP_NUMS, /* numbers and ranges: 0,4,8-15 */
	TP_HEX, /* bytes, in hexadecimal */
	TP_GID, /* an IPv4 or IPv6 address */
	TP_MAC,
	TP_TEXT, /* one word */
	TP_REST, /* all words that are left; at the end of a pattern only */
};

struct tp_arg {
	const char *name;
	enum tp_type type;
	const char *help;
	uint64_t min, max; /* TP_NUM, and each of TP_NUMS */
	const char *const *words; /* ends with NULL */
	int object; /* enum tp_kind */
	bool required; /* an option that has to be there */
};

#define TP_MAX_ARGS 16
#define TP_MAX_WORDS 64
#define TP_MAX_BYTES 64

struct tp_value {
	bool given;
	const char *text; /* as it was typed */
	uint64_t num;
	uint8_t bytes[TP_MAX_BYTES];
	unsigned int len;
};

struct tp_cmd;

/** A command with its arguments, understood. */
struct tp_call {
	const struct tp_cmd *cmd;
	struct tp_value values[TP_MAX_ARGS]; /* beside cmd->args */
	char rest[512]; /* of TP_REST */
};

struct tp_cmd {
	const char *pattern;
	const char *help; /* one sentence */
	const struct tp_arg *args; /* ends with a name of NULL; may be NULL */
	/** @return 0, or what tp_refuse() returned */
	int (*run)(const struct tp_call *call);
};

/** Commands that begin with the same word. */
struct tp_family {
	const char *name;
	const char *help;
	const struct tp_cmd *cmds;
	unsigned int num;
};

#define TP_FAMILY(name_, help_, cmds_) \
	{ \
		.name = name_, .help = help_, .cmds = cmds_, .num = RTE_DIM(cmds_) \
	}

/** All families, in the order in which help shows them; ends with NULL. */
extern const struct tp_family *const tp_families[];

/* ---- within a command ---- */

bool tp_given(const struct tp_call *call, const char *name);
/** The number of an argument, or @p otherwise when it was not given. */
uint64_t tp_num(const struct tp_call *call, const char *name, uint64_t otherwise);
const char *tp_text(const struct tp_call *call, const char *name);
const struct tp_value *tp_value(const struct tp_call *call, const char *name);

/** Numbers of TP_NUMS. @return how many, at most @p max */
unsigned int tp_nums(const struct tp_value *value, uint32_t *nums, unsigned int max);

/** Tells why a command is refused: one sentence, without full stop. @return @p rc */
int tp_refuse(int rc, const char *format, ...) __attribute__((format(printf, 2, 3)));
/** What the last command refused, "" if it was not. */
const char *tp_why(void);

/* ---- output ---- */

/** Prints "key value" pairs on one line, and breaks it where it would become too long. */
void tp_row(const char *key, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tp_row_end(void);
void tp_print(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- lines ---- */

/** What has become of the lines so far. */
struct tp_results {
	unsigned int done, failed;
	int last; /* of the last command: 0 or -errno */
};

extern struct tp_results tp_results;

/** Called after each command with what it returned, for tests. */
extern void (*tp_observer)(const struct tp_cmd *cmd, int rc);
/** Called after each command, in order to tell what happened meanwhile. */
extern void (*tp_after_command)(void);

/** Runs a line. @return 0 or -errno, after a message */
int tp_run_line(const char *line);

/** A command line of DPDK's over the table. */
struct cmdline *tp_cmdline_new(const char *prompt, int in, int out);
/** The command line that runs a command now, for `quit`. */
struct cmdline *tp_cmdline_current(void);

/* ---- the table, for help and for the test that each command is tried ---- */

/** "srq create <srq> [size <n>] ...". */
void tp_usage(const struct tp_cmd *cmd, char *buf, size_t len);
/** What a value looks like: "<n>", "rc|uc|ud". */
void tp_placeholder(const struct tp_arg *arg, char *buf, size_t len);

#endif
