/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The devargs of net_verbena: dev(<devargs of the lower port>) or port=<name>, and settings.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pmd_private.h"

#define DEV "dev("

/** One setting that is a number. */
struct number {
	const char *name;
	unsigned long min, max;
	bool power_of_2;
	void (*set)(struct pmd_args *args, unsigned long value);
};

static void
set_pollers(struct pmd_args *args, unsigned long value)
{
	args->pollers = (uint16_t)value;
}

static void
set_lower_queues(struct pmd_args *args, unsigned long value)
{
	args->lower_queues = (uint16_t)value;
}

static void
set_reta(struct pmd_args *args, unsigned long value)
{
	args->reta = (uint16_t)value;
}

static void
set_key_len(struct pmd_args *args, unsigned long value)
{
	args->key_len = (uint8_t)value;
}

static void
set_rx_copy(struct pmd_args *args, unsigned long value)
{
	args->rx_copy = value != 0;
}

static void
set_rss_roce(struct pmd_args *args, unsigned long value)
{
	args->rss_roce = value != 0;
}

static void
set_mac_filter(struct pmd_args *args, unsigned long value)
{
	args->mac_filter = value != 0;
}

static const struct number numbers[] = {
	{"pollers", 1, PMD_MAX_POLLERS, false, set_pollers},
	{"lower_queues", 1, PMD_MAX_LOWER_RXQ, false, set_lower_queues},
	{"reta", PMD_RETA_MIN, PMD_RETA_MAX, true, set_reta},
	{"rss_key", VRB_RSS_KEY_LEN, VRB_RSS_KEY_MAX, false, set_key_len},
	{"rx_copy", 0, 1, false, set_rx_copy},
	{"rss_roce", 0, 1, false, set_rss_roce},
	{"mac_filter", 0, 1, false, set_mac_filter},
};

static int
take_number(
	const char *name, const char *key, const char *value, struct pmd_args *args, uint32_t *seen)
{
	char *end;

	for (uint32_t i = 0; i < RTE_DIM(numbers); i++) {
		const struct number *n = &numbers[i];
		unsigned long v;

		if (strcmp(key, n->name) != 0)
			continue;
		if (*seen & RTE_BIT32(i)) {
			PMD_LOG(ERR, "%s: %s= is given twice", name, key);
			return -EINVAL;
		}
		*seen |= RTE_BIT32(i);
		v = strtoul(value, &end, 10);
		if (*value < '0' || *value > '9' || *end != '\0' || v < n->min || v > n->max ||
			(n->power_of_2 && !rte_is_power_of_2((uint32_t)v)) ||
			(n->set == set_key_len && v != n->min && v != n->max)) {
			PMD_LOG(ERR, "%s: %s=%s is not %s%lu%s%lu", name, key, value,
				n->power_of_2 ? "a power of two from " : "", n->min,
				n->set == set_key_len ? " or " : " to ", n->max);
			return -EINVAL;
		}
		n->set(args, v);
		return 0;
	}
	PMD_LOG(ERR, "%s: \"%s\" is no argument of this driver", name, key);
	return -EINVAL;
}

static int
take_text(const char *name, const char *key, const char *value, char **to)
{
	if (*to != NULL || *value == '\0') {
		PMD_LOG(ERR, "%s: %s is %s", name, key, *to != NULL ? "given twice" : "empty");
		return -EINVAL;
	}
	*to = strdup(value);
	return *to == NULL ? -ENOMEM : 0;
}

/* One argument, which stands alone in @p text. */
static int
take(const char *name, char *text, struct pmd_args *args, uint32_t *seen)
{
	size_t len = strlen(text);
	char *value;

	if (strncmp(text, DEV, strlen(DEV)) == 0) {
		if (text[len - 1] != ')') {
			PMD_LOG(ERR, "%s: something stands behind the brackets of %s", name, text);
			return -EINVAL;
		}
		text[len - 1] = '\0';
		return take_text(name, "dev()", text + strlen(DEV), &args->dev);
	}
	value = strchr(text, '=');
	if (value == NULL) {
		PMD_LOG(ERR, "%s: \"%s\" is neither dev(...) nor name=value", name, text);
		return -EINVAL;
	}
	*value++ = '\0';
	if (strcmp(text, "port") == 0)
		return take_text(name, "port=", value, &args->port);
	if (strcmp(text, "ip") == 0)
		return take_text(name, "ip=", value, &args->ip);
	return take_number(name, text, value, args, seen);
}

/** Where the argument ends that begins at @p text: at a comma outside of all brackets. NULL: the
 * brackets do not match. */
static char *
end_of(char *text)
{
	int depth = 0;

	for (; *text != '\0' && (*text != ',' || depth > 0); text++) {
		depth += *text == '(' ? 1 : *text == ')' ? -1 : 0;
		if (depth < 0)
			return NULL;
	}
	return depth == 0 ? text : NULL;
}

static int
take_all(const char *name, char *text, struct pmd_args *args)
{
	uint32_t seen = 0;
	int rc = 0;

	while (rc == 0 && *text != '\0') {
		char *end = end_of(text);
		bool last;

		if (end == NULL) {
			PMD_LOG(ERR, "%s: the brackets do not match in \"%s\"", name, text);
			return -EINVAL;
		}
		last = *end == '\0';
		*end = '\0';
		if (end != text)
			rc = take(name, text, args, &seen);
		text = last ? end : end + 1;
	}
	return rc;
}

int
pmd_args_parse(const char *name, const char *text, struct pmd_args *args)
{
	char *copy;
	int rc;

	memset(args, 0, sizeof(*args));
	args->reta = PMD_RETA_DEFAULT;
	args->key_len = VRB_RSS_KEY_LEN;
	copy = strdup(text != NULL ? text : "");
	rc = copy == NULL ? -ENOMEM : take_all(name, copy, args);
	free(copy);
	if (rc == 0 && (args->dev != NULL) == (args->port != NULL)) {
		PMD_LOG(ERR,
			"%s: %s of dev(<devargs>) and port=<name> is needed to say which port "
			"is below",
			name, args->dev != NULL ? "only one" : "one");
		rc = -EINVAL;
	}
	if (rc < 0)
		pmd_args_free(args);
	return rc;
}

void
pmd_args_free(struct pmd_args *args)
{
	free(args->dev);
	free(args->port);
	free(args->ip);
	args->dev = args->port = args->ip = NULL;
}
