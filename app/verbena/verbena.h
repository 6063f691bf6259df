/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the parts of the command `verbena` share: the settings that a process can be given, the
 * program that is to be run, and the library that is put in front of it.
 */
#ifndef VERBENA_H
#define VERBENA_H

#include <stdbool.h>
#include <stddef.h>

/* Exit statuses, after env(1) and sysexits of old: the program's own status passes through
 * untouched. */
enum vrb_exit {
	VRB_EXIT_OK = 0,
	VRB_EXIT_FAILED = 1, /* info: the device could not be opened */
	VRB_EXIT_USAGE = 2, /* a bad command line or a bad setting */
	VRB_EXIT_SELF = 125, /* run: the library that makes it work was not found */
	VRB_EXIT_CANNOT_INVOKE = 126, /* run: the program is there and cannot be run with it */
	VRB_EXIT_NOT_FOUND = 127, /* run: there is no such program */
};

enum vrb_setting_id {
	VRB_SET_PORT,
	VRB_SET_SEGMENT,
	VRB_SET_IP,
	VRB_SET_ICRC,
	VRB_SET_DIRECT,
	VRB_SET_LOG,
	VRB_SET_EAL,
	VRB_SET_EXPLAIN,
	VRB_SET_COUNT,
};

enum vrb_origin {
	VRB_FROM_DEFAULT,
	VRB_FROM_ENVIRONMENT,
	VRB_FROM_OPTION,
};

/** A setting as it stands for this process: its value (NULL: the library's own choice) and who gave
 * it. */
struct vrb_setting {
	const char *value;
	enum vrb_origin origin;
};

/** All settings of a process, and how the command line wants them used. */
struct vrb_settings {
	struct vrb_setting set[VRB_SET_COUNT];
	bool print_env; /* --env: print them for a shell */
};

/** What does not change about a setting. */
struct vrb_setting_desc {
	const char *option; /* long option without the dashes */
	const char *metavar; /* what stands for its value in the help, NULL when it takes none */
	const char *variable; /* the environment variable below it */
	const char *fallback; /* what info shows when nobody gave a value */
	const char *help;
	/* Returns 0 when the value is well formed; otherwise writes what is accepted to why. */
	int (*check)(const char *value, char *why, size_t len);
};

extern const struct vrb_setting_desc vrb_setting_descs[VRB_SET_COUNT];

/** Where a setting came from, for a person. */
const char *vrb_origin_name(enum vrb_origin origin);

/**
 * Reads the options of `verbena run` or `verbena info` and the environment below them, and checks
 * every value.
 *
 * @param command  "run" or "info", for messages
 * @param help     prints the help of the command; called for --help, then the process ends
 * @return index of the first argument that is no option, or -VRB_EXIT_USAGE after a message
 */
int vrb_settings_read(
	struct vrb_settings *s, const char *command, void (*help)(void), int argc, char **argv);

/** Puts every setting that has a value into the environment. */
int vrb_settings_export(const struct vrb_settings *s);

/** Prints the options that set something, for --help. */
void vrb_settings_help(void);

/** Prints one message, prefixed with the name of the command, to stderr. */
void vrb_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** A program file that was looked up and looked at. */
struct vrb_program {
	char path[4096];
};

/**
 * Finds a program as execvp(3) does and tells whether a preloaded library can reach it.
 *
 * @return VRB_EXIT_OK, or the exit status to end with, after a message
 */
int vrb_program_find(struct vrb_program *p, const char *name);

/** The libraries that are put in front of a program. */
struct vrb_preload {
	char shim[4096]; /* our libibverbs.so.1 */
	char upstream[4096]; /* the system's libibverbs.so.1, empty when there is none */
	char *value; /* what LD_PRELOAD becomes; vrb_preload_fini() frees it */
};

/**
 * Finds our library beside this command, in the build tree or installed, and the system's own.
 *
 * @return 0, or -ENOENT or -EINVAL after a message
 */
int vrb_preload_init(struct vrb_preload *p);

/** Frees what vrb_preload_init() made. */
void vrb_preload_fini(struct vrb_preload *p);

/** The commands; each returns the exit status. */
int vrb_run(int argc, char **argv);
int vrb_info(int argc, char **argv);
int vrb_top(int argc, char **argv);

/** The helps of the commands, on stdout. */
void vrb_run_help(void);
void vrb_info_help(void);
void vrb_top_help(void);

/** Prints which processes of this user have the device open on a network. */
void vrb_process_list(const char *segment);
/** `verbena info --pid`: all of one process. @param text its number. @return the exit status */
int vrb_process_info(const char *text);

#endif
