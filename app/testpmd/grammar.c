/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which command a line is, and what is wrong with it when it is none.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "grammar.h"

int
tp_split(struct tp_words *w, const char *line)
{
	char *save = NULL;
	size_t len = strcspn(line, "#\r\n");

	w->num = 0;
	if (len >= sizeof(w->text))
		return -E2BIG;
	memcpy(w->text, line, len);
	w->text[len] = '\0';
	for (char *s = strtok_r(w->text, " \t", &save); s != NULL;
		s = strtok_r(NULL, " \t", &save)) {
		if (w->num == TP_MAX_WORDS || strlen(s) >= TP_MAX_WORD)
			return -E2BIG;
		w->word[w->num++] = s;
	}
	return 0;
}

static const struct tp_arg *
find_arg(const struct tp_cmd *cmd, const char *name, size_t len)
{
	for (const struct tp_arg *a = cmd->args; a != NULL && a->name != NULL; a++)
		if (strlen(a->name) == len && memcmp(a->name, name, len) == 0)
			return a;
	return NULL;
}

void
tp_pattern(const struct tp_cmd *cmd, struct tp_pattern *p)
{
	const char *s = cmd->pattern;

	p->num = 0;
	while (*s != '\0') {
		struct tp_item *item = &p->item[p->num++];
		size_t len = strcspn(s, " ");

		item->arg = *s == '<' ? find_arg(cmd, s + 1, len - 2) : NULL;
		snprintf(item->literal, sizeof(item->literal), "%.*s",
			item->arg != NULL ? 0 : (int)len, s);
		s += len;
		s += *s == ' ';
	}
}

bool
tp_is_positional(const struct tp_cmd *cmd, const struct tp_arg *arg)
{
	struct tp_pattern p;

	tp_pattern(cmd, &p);
	for (unsigned int i = 0; i < p.num; i++)
		if (p.item[i].arg == arg)
			return true;
	return false;
}

const struct tp_arg *
tp_option(const struct tp_cmd *cmd, const char *name)
{
	const struct tp_arg *a = find_arg(cmd, name, strlen(name));

	return a != NULL && !tp_is_positional(cmd, a) ? a : NULL;
}

unsigned int
tp_match(const struct tp_pattern *p, const char *const *word, unsigned int num,
	unsigned int *literals)
{
	unsigned int i;

	*literals = 0;
	for (i = 0; i < num && i < p->num; i++) {
		if (p->item[i].arg != NULL)
			continue;
		if (strcmp(p->item[i].literal, word[i]) != 0)
			break;
		(*literals)++;
	}
	return i;
}

/* How well the best command fits. */
struct fit {
	const struct tp_cmd *cmd; /* that fits as a whole, or NULL */
	unsigned int literals; /* of it, or the most that fit of any */
	unsigned int items; /* of its pattern */
};

static struct fit
find_command(const struct tp_words *w)
{
	struct fit whole = {0}, part = {0};
	struct tp_pattern p;
	unsigned int literals;

	for (int f = 0; tp_families[f] != NULL; f++) {
		for (unsigned int i = 0; i < tp_families[f]->num; i++) {
			const struct tp_cmd *cmd = &tp_families[f]->cmds[i];

			tp_pattern(cmd, &p);
			/* A literal word says more than any value would, and a value more than
			 * nothing. */
			if (tp_match(&p, w->word, w->num, &literals) == p.num &&
				(whole.cmd == NULL || literals > whole.literals ||
					(literals == whole.literals && p.num > whole.items)))
				whole = (struct fit){cmd, literals, p.num};
			part.literals = RTE_MAX(part.literals, literals);
		}
	}
	return whole.cmd != NULL ? whole : part;
}

#define LONGEST 32

/* Edits that make the one word of the other: a letter too many, missing, wrong, or two swapped. */
static unsigned int
distance(const char *a, const char *b)
{
	unsigned int d[LONGEST + 1][LONGEST + 1];
	unsigned int m = strnlen(a, LONGEST), n = strnlen(b, LONGEST);

	for (unsigned int i = 0; i <= m; i++) {
		for (unsigned int j = 0; j <= n; j++) {
			unsigned int best = i + j;

			if (i > 0 && j > 0)
				best = d[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
			if (i > 0 && d[i - 1][j] + 1 < best)
				best = d[i - 1][j] + 1;
			if (j > 0 && d[i][j - 1] + 1 < best)
				best = d[i][j - 1] + 1;
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				d[i - 2][j - 2] + 1 < best)
				best = d[i - 2][j - 2] + 1;
			d[i][j] = best;
		}
	}
	return d[m][n];
}

/* Whether a person may have meant the other word. */
static bool
is_near(const char *typed, const char *word)
{
	return distance(typed, word) < RTE_MIN(3u, strlen(typed)) ||
	       strncmp(typed, word, strlen(typed)) == 0;
}

static int
no_such_command(const char *word)
{
	char nearest[32] = "";
	unsigned int best = 3, d;
	struct tp_pattern p;

	for (int f = 0; tp_families[f] != NULL; f++) {
		for (unsigned int i = 0; i < tp_families[f]->num; i++) {
			tp_pattern(&tp_families[f]->cmds[i], &p);
			d = distance(word, p.item[0].literal);
			if (d >= best || d >= strlen(word))
				continue;
			best = d;
			snprintf(nearest, sizeof(nearest), "%s", p.item[0].literal);
		}
	}
	if (nearest[0] != '\0')
		return tp_refuse(-ENOENT,
			"there is no command \"%s\"; did you mean \"%s\"? (help lists all)", word,
			nearest);
	return tp_refuse(-ENOENT, "there is no command \"%s\" (help lists all)", word);
}

/*
 * The usage of the commands whose first words fit. @param near only of those whose next word is
 * near to what was typed
 */
static size_t
collect_usage(const struct tp_words *w, unsigned int literals, bool near, char *all, size_t len)
{
	char usage[1024];
	struct tp_pattern p;
	unsigned int k, matched;
	size_t used = 0;

	all[0] = '\0';
	for (int f = 0; tp_families[f] != NULL; f++) {
		for (unsigned int i = 0; i < tp_families[f]->num; i++) {
			tp_pattern(&tp_families[f]->cmds[i], &p);
			matched = tp_match(&p, w->word, w->num, &k);
			if (k != literals || used >= len)
				continue;
			if (near && (matched == w->num ||
					    !is_near(w->word[matched], p.item[matched].literal)))
				continue;
			tp_usage(&tp_families[f]->cmds[i], usage, sizeof(usage));
			used += snprintf(all + used, len - used, "\n  %s", usage);
		}
	}
	return used;
}

static int
nearest_usage(const struct tp_words *w, unsigned int literals)
{
	char all[3000];

	if (collect_usage(w, literals, true, all, sizeof(all)) == 0)
		collect_usage(w, literals, false, all, sizeof(all));
	return tp_refuse(-EINVAL, "this is not a whole command; it goes like this:%s", all);
}

static int
unknown_option(const struct tp_cmd *cmd, const char *word)
{
	char names[256] = "";
	size_t used = 0;

	for (const struct tp_arg *a = cmd->args; a != NULL && a->name != NULL; a++) {
		if (tp_is_positional(cmd, a))
			continue;
		used += snprintf(
			names + used, sizeof(names) - used, "%s%s", used > 0 ? ", " : "", a->name);
		used = RTE_MIN(used, sizeof(names) - 1);
	}
	if (used == 0)
		return tp_refuse(
			-EINVAL, "\"%s\" is too much: the command is \"%s\"", word, cmd->pattern);
	return tp_refuse(
		-EINVAL, "\"%s\" is no option of \"%s\"; these are: %s", word, cmd->pattern, names);
}

static int
parse_options(const struct tp_words *w, unsigned int i, struct tp_call *call)
{
	const struct tp_cmd *cmd = call->cmd;

	for (; i < w->num; i += 2) {
		const struct tp_arg *a = tp_option(cmd, w->word[i]);
		struct tp_value *v;
		int rc;

		if (a == NULL)
			return unknown_option(cmd, w->word[i]);
		v = &call->values[a - cmd->args];
		if (i + 1 == w->num)
			return tp_refuse(-EINVAL, "%s needs a value: %s", a->name, a->help);
		if (v->given)
			return tp_refuse(-EINVAL, "%s is given twice", a->name);
		rc = tp_parse_value(a, w->word[i + 1], v);
		if (rc < 0)
			return rc;
	}
	for (const struct tp_arg *a = cmd->args; a != NULL && a->name != NULL; a++)
		if (a->required && !call->values[a - cmd->args].given)
			return tp_refuse(-EINVAL, "%s is missing: %s", a->name, a->help);
	return 0;
}

static void
join_rest(const struct tp_words *w, unsigned int i, struct tp_call *call)
{
	size_t used = 0;

	call->rest[0] = '\0';
	for (; i < w->num; i++)
		used += snprintf(call->rest + used, sizeof(call->rest) - used, "%s%s",
			used > 0 ? " " : "", w->word[i]);
}

int
tp_parse(const struct tp_words *w, struct tp_call *call)
{
	struct fit fit = find_command(w);
	struct tp_pattern p;

	memset(call, 0, sizeof(*call));
	if (fit.cmd == NULL)
		return fit.literals == 0 ? no_such_command(w->word[0])
					 : nearest_usage(w, fit.literals);
	call->cmd = fit.cmd;
	tp_pattern(fit.cmd, &p);
	for (unsigned int i = 0; i < p.num; i++) {
		const struct tp_arg *a = p.item[i].arg;
		struct tp_value *v;
		int rc;

		if (a == NULL)
			continue;
		v = &call->values[a - fit.cmd->args];
		if (a->type == TP_REST) {
			join_rest(w, i, call);
			v->given = true;
			v->text = call->rest;
			return 0;
		}
		rc = tp_parse_value(a, w->word[i], v);
		if (rc < 0)
			return rc;
	}
	return parse_options(w, p.num, call);
}
