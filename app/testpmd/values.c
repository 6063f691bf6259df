/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of arguments: from what was typed to what it means.
 */
#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ether.h>

#include "grammar.h"
#include "objects.h"

static int
to_number(const char *text, const char **end, uint64_t *num)
{
	char *e;

	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	/* Decimal or 0x...: a number with a leading zero is no octal one to those who type here. */
	*num = strtoull(text, &e, strncasecmp(text, "0x", 2) == 0 ? 16 : 10);
	*end = e;
	return errno != 0 ? -ERANGE : 0;
}

static int
parse_num(const struct tp_arg *a, const char *text, struct tp_value *v)
{
	const char *end = text;
	uint64_t unit = 1;

	if (to_number(text, &end, &v->num) < 0)
		return tp_refuse(-EINVAL, "%s is a number, not \"%s\"", a->name, text);
	if (*end == 'k' || *end == 'K')
		unit = 1ull << 10;
	else if (*end == 'm' || *end == 'M')
		unit = 1ull << 20;
	else if (*end == 'g' || *end == 'G')
		unit = 1ull << 30;
	if (end[unit > 1] != '\0' || v->num > UINT64_MAX / unit)
		return tp_refuse(-EINVAL, "%s is a number, not \"%s\"", a->name, text);
	v->num *= unit;
	if (v->num < a->min || v->num > a->max)
		return tp_refuse(-ERANGE, "%s is from %" PRIu64 " to %" PRIu64 ", not %s", a->name,
			a->min, a->max, text);
	return 0;
}

static int
parse_id(const struct tp_arg *a, const char *text, struct tp_value *v)
{
	const char *end, *kind = tp_kind_name(a->object), *title = tp_kind_title(a->object);
	bool there;

	if (to_number(text, &end, &v->num) < 0 || *end != '\0' || v->num > TP_MAX_ID)
		return tp_refuse(-EINVAL, "a %s has a number from 0 to %d, not \"%s\"", title,
			TP_MAX_ID, text);
	there = tp_object_find(a->object, v->num) != NULL;
	if (a->type == TP_NEW_ID && there)
		return tp_refuse(-EEXIST, "%s %s exists already", kind, text);
	if (a->type == TP_ID && !there)
		return tp_refuse(
			-ENOENT, "there is no %s %s (%s show lists them)", kind, text, kind);
	return 0;
}

static int
parse_port(const struct tp_arg *a, const char *text, struct tp_value *v)
{
	const char *end;
	uint16_t port;

	if (to_number(text, &end, &v->num) == 0 && *end == '\0') {
		if (v->num < RTE_MAX_ETHPORTS && rte_eth_dev_is_valid_port(v->num))
			return 0;
	} else if (rte_eth_dev_get_port_by_name(text, &port) == 0) {
		v->num = port;
		return 0;
	}
	return tp_refuse(-ENODEV, "there is no port %s (port show lists them)", text);
}

static int
find_word(const struct tp_arg *a, const char *text, size_t len, uint64_t *num)
{
	for (uint64_t i = 0; a->words[i] != NULL; i++) {
		if (strlen(a->words[i]) == len && memcmp(a->words[i], text, len) == 0) {
			*num = i;
			return 0;
		}
	}
	return -ENOENT;
}

static int
wrong_word(const struct tp_arg *a, const char *text, size_t len)
{
	char words[512] = "";
	size_t used = 0;

	for (int i = 0; a->words[i] != NULL && used < sizeof(words); i++)
		used += snprintf(
			words + used, sizeof(words) - used, "%s%s", i > 0 ? ", " : "", a->words[i]);
	return tp_refuse(-EINVAL, "%s is one of %s, not \"%.*s\"", a->name, words, (int)len, text);
}

static int
parse_flags(const struct tp_arg *a, const char *text, struct tp_value *v)
{
	uint64_t bit;

	v->num = 0;
	if (strcmp(text, "none") == 0)
		return 0;
	while (*text != '\0') {
		size_t len = strcspn(text, ",");

		if (find_word(a, text, len, &bit) < 0)
			return wrong_word(a, text, len);
		v->num |= UINT64_C(1) << bit;
		text += len;
		text += *text == ',';
	}
	return 0;
}

/* One number or range. @return what stands behind it, or NULL */
static const char *
next_range(const char *text, uint64_t *from, uint64_t *to)
{
	const char *end;

	if (to_number(text, &end, from) < 0)
		return NULL;
	*to = *from;
	if (*end == '-' && to_number(end + 1, &end, to) < 0)
		return NULL;
	if (*end != '\0' && *end != ',')
		return NULL;
	return end + (*end == ',');
}

unsigned int
tp_nums(const struct tp_value *value, uint32_t *nums, unsigned int max)
{
	const char *s = value->text;
	unsigned int n = 0;
	uint64_t from, to;

	while (s != NULL && *s != '\0') {
		s = next_range(s, &from, &to);
		for (; s != NULL && from <= to && n < max; from++)
			nums[n++] = from;
	}
	return n;
}

static int
parse_nums(const struct tp_arg *a, const char *text, struct tp_value *v)
{
	const char *s = text;
	uint64_t from, to;

	while (*s != '\0') {
		s = next_range(s, &from, &to);
		if (s == NULL)
			return tp_refuse(-EINVAL,
				"%s is a list of numbers and ranges, like 0,4,8-15; not \"%s\"",
				a->name, text);
		if (from > to || from < a->min || to > a->max)
			return tp_refuse(-ERANGE,
				"%s has numbers from %" PRIu64 " to %" PRIu64 "; not %" PRIu64
				"-%" PRIu64,
				a->name, a->min, a->max, from, to);
		v->num += to - from + 1;
	}
	return 0;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = tolower((unsigned char)c);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int
parse_hex(const struct tp_arg *a, const char *text, struct tp_value *v)
{
	v->len = 0;
	for (const char *s = text; *s != '\0'; s += 2) {
		int high = hex_digit(s[0]), low = high < 0 ? -1 : hex_digit(s[1]);

		if (low < 0)
			return tp_refuse(-EINVAL,
				"%s is bytes of two hexadecimal digits each, not \"%s\"", a->name,
				text);
		if (v->len == TP_MAX_BYTES)
			return tp_refuse(
				-EINVAL, "%s has more than %d bytes", a->name, TP_MAX_BYTES);
		v->bytes[v->len++] = high << 4 | low;
	}
	return 0;
}

static int
parse_gid(const struct tp_arg *a, const char *text, struct tp_value *v)
{
	v->len = 16;
	memset(v->bytes, 0, 16);
	if (inet_pton(AF_INET, text, &v->bytes[12]) == 1) {
		v->bytes[10] = v->bytes[11] = 0xff;
		return 0;
	}
	if (inet_pton(AF_INET6, text, v->bytes) == 1)
		return 0;
	return tp_refuse(-EINVAL, "%s is an IPv4 or IPv6 address, not \"%s\"", a->name, text);
}

static int
parse_mac(const struct tp_arg *a, const char *text, struct tp_value *v)
{
	v->len = RTE_ETHER_ADDR_LEN;
	if (rte_ether_unformat_addr(text, (struct rte_ether_addr *)v->bytes) == 0)
		return 0;
	return tp_refuse(
		-EINVAL, "%s is a MAC address like 02:00:00:00:00:01, not \"%s\"", a->name, text);
}

int
tp_parse_value(const struct tp_arg *a, const char *text, struct tp_value *v)
{
	v->given = true;
	v->text = text;
	switch (a->type) {
	case TP_NUM:
		return parse_num(a, text, v);
	case TP_ID:
	case TP_NEW_ID:
		return parse_id(a, text, v);
	case TP_PORT:
		return parse_port(a, text, v);
	case TP_CHOICE:
		if (find_word(a, text, strlen(text), &v->num) < 0)
			return wrong_word(a, text, strlen(text));
		return 0;
	case TP_FLAGS:
		return parse_flags(a, text, v);
	case TP_NUMS:
		return parse_nums(a, text, v);
	case TP_HEX:
		return parse_hex(a, text, v);
	case TP_GID:
		return parse_gid(a, text, v);
	case TP_MAC:
		return parse_mac(a, text, v);
	case TP_TEXT:
	case TP_REST:
		break;
	}
	return 0;
}

const struct tp_value *
tp_value(const struct tp_call *call, const char *name)
{
	const struct tp_arg *a = call->cmd->args;

	while (a->name != NULL && strcmp(a->name, name) != 0)
		a++;
	/* A name that the table does not have is a mistake of this program. */
	RTE_VERIFY(a->name != NULL);
	return &call->values[a - call->cmd->args];
}

bool
tp_given(const struct tp_call *call, const char *name)
{
	return tp_value(call, name)->given;
}

uint64_t
tp_num(const struct tp_call *call, const char *name, uint64_t otherwise)
{
	const struct tp_value *v = tp_value(call, name);

	return v->given ? v->num : otherwise;
}

const char *
tp_text(const struct tp_call *call, const char *name)
{
	return tp_value(call, name)->text;
}
