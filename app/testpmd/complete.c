/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What may stand at a place of a line: for completion, and for the usage that messages show.
 */
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>

#include "grammar.h"
#include "objects.h"

static void
join_words(const struct tp_arg *arg, char separator, char *buf, size_t len)
{
	size_t used = 0;

	for (int i = 0; arg->words[i] != NULL && used < len; i++) {
		/* A long list is told by help and by completion. */
		if (i == 6) {
			snprintf(buf + used, len - used, "%c...", separator);
			return;
		}
		if (i > 0 && used + 1 < len)
			buf[used++] = separator;
		used += snprintf(buf + used, len - used, "%s", arg->words[i]);
	}
}

void
tp_placeholder(const struct tp_arg *arg, char *buf, size_t len)
{
	static const char *const shapes[] = {
		[TP_NUM] = "<number>",
		[TP_PORT] = "<port>",
		[TP_NUMS] = "<list>",
		[TP_HEX] = "<bytes>",
		[TP_GID] = "<address>",
		[TP_MAC] = "<mac>",
		[TP_TEXT] = "<word>",
		[TP_REST] = "...",
	};

	if (arg->type == TP_CHOICE)
		join_words(arg, '|', buf, len);
	else if (arg->type == TP_FLAGS)
		join_words(arg, ',', buf, len);
	else if (arg->type == TP_ID || arg->type == TP_NEW_ID)
		snprintf(buf, len, "<%s>", tp_kind_name(arg->object));
	else
		snprintf(buf, len, "%s", shapes[arg->type]);
}

void
tp_usage(const struct tp_cmd *cmd, char *buf, size_t len)
{
	size_t used = snprintf(buf, len, "%s", cmd->pattern);
	char value[160];

	for (const struct tp_arg *a = cmd->args; a != NULL && a->name != NULL; a++) {
		if (tp_is_positional(cmd, a) || used >= len)
			continue;
		tp_placeholder(a, value, sizeof(value));
		used += snprintf(buf + used, len - used, a->required ? " %s %s" : " [%s %s]",
			a->name, value);
	}
}

static void
add(struct tp_choices *c, const char *word, const char *what, const char *help)
{
	for (unsigned int i = 0; i < c->num; i++)
		if (strcmp(c->choice[i].word, word) == 0)
			return;
	if (c->num == RTE_DIM(c->choice))
		return;
	snprintf(c->choice[c->num].word, sizeof(c->choice[0].word), "%s", word);
	snprintf(c->choice[c->num].what, sizeof(c->choice[0].what), "%s", what);
	c->choice[c->num++].help = help;
}

static void
add_value(struct tp_choices *c, const struct tp_arg *a)
{
	char word[16];
	struct tp_obj *obj;
	uint16_t port;

	if (a->type == TP_CHOICE || a->type == TP_FLAGS) {
		for (int i = 0; a->words[i] != NULL; i++)
			add(c, a->words[i], a->name, a->help);
	} else if (a->type == TP_ID) {
		TAILQ_FOREACH (obj, tp_objects(a->object), link) {
			snprintf(word, sizeof(word), "%u", obj->id);
			add(c, word, tp_kind_name(a->object), a->help);
		}
	} else if (a->type == TP_PORT) {
		for (port = 0; port < RTE_MAX_ETHPORTS; port++) {
			if (!rte_eth_dev_is_valid_port(port))
				continue;
			snprintf(word, sizeof(word), "%u", port);
			add(c, word, "port", a->help);
		}
	}
	tp_placeholder(a, c->expected, sizeof(c->expected));
	c->help = a->help;
}

static void
add_options(
	struct tp_choices *c, const struct tp_cmd *cmd, const char *const *word, unsigned int num)
{
	char value[64];

	/* Behind a name stands its value. */
	if (num % 2 == 1) {
		const struct tp_arg *a = tp_option(cmd, word[num - 1]);

		if (a != NULL)
			add_value(c, a);
		return;
	}
	for (const struct tp_arg *a = cmd->args; a != NULL && a->name != NULL; a++) {
		bool used = tp_is_positional(cmd, a);

		for (unsigned int i = 0; i < num; i += 2)
			used = used || strcmp(word[i], a->name) == 0;
		tp_placeholder(a, value, sizeof(value));
		if (!used)
			add(c, a->name, value, a->help);
	}
}

static void
add_command(struct tp_choices *c, const struct tp_family *family, const struct tp_cmd *cmd,
	const char *const *word, unsigned int num)
{
	struct tp_pattern p;
	unsigned int literals;
	const struct tp_item *item;

	tp_pattern(cmd, &p);
	if (tp_match(&p, word, num, &literals) < RTE_MIN(num, p.num))
		return;
	if (num >= p.num) {
		if (p.item[p.num - 1].arg == NULL || p.item[p.num - 1].arg->type != TP_REST)
			add_options(c, cmd, word + p.num, num - p.num);
		return;
	}
	item = &p.item[num];
	if (item->arg != NULL)
		add_value(c, item->arg);
	else
		/* Several commands begin with the name of their family. */
		add(c, item->literal, "command",
			num == 0 && strcmp(item->literal, family->name) == 0 ? family->help
									     : cmd->help);
}

void
tp_choices(const char *const *word, unsigned int num, struct tp_choices *c)
{
	c->num = 0;
	c->expected[0] = '\0';
	c->help = NULL;
	for (int f = 0; tp_families[f] != NULL; f++)
		for (unsigned int i = 0; i < tp_families[f]->num; i++)
			add_command(c, tp_families[f], &tp_families[f]->cmds[i], word, num);
}
