/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rules of rte_flow in words. See flow_rule.h.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_ethdev.h>
#include <rte_ether.h>

#include "cli.h"
#include "flow_rule.h"
#include "grammar.h"

/* Where the parser stands. */
struct reader {
	struct tp_words words;
	unsigned int next;
};

static const char *
peek(const struct reader *r)
{
	return r->next < r->words.num ? r->words.word[r->next] : "";
}

static bool
take_if(struct reader *r, const char *word)
{
	if (strcmp(peek(r), word) != 0)
		return false;
	r->next++;
	return true;
}

static const char *
take(struct reader *r)
{
	const char *word = peek(r);

	if (r->next < r->words.num)
		r->next++;
	return word;
}

/* ---- items ---- */

enum field_type { NUMBER, MAC, IP4, IP6 };

struct field {
	const char *name;
	enum field_type type;
	uint8_t offset, size;
	uint32_t mask; /* of a number that is a part of the field; 0: all of it */
};

#define FIELD(name_, type_, struct_, member_) \
	{ \
		name_, type_, offsetof(struct struct_, member_), \
			sizeof(((struct struct_ *)0)->member_), 0 \
	}

static const struct field eth_fields[] = {
	FIELD("dst", MAC, rte_flow_item_eth, dst),
	FIELD("src", MAC, rte_flow_item_eth, src),
	FIELD("type", NUMBER, rte_flow_item_eth, type),
	{NULL},
};
static const struct field vlan_fields[] = {
	{"vid", NUMBER, offsetof(struct rte_flow_item_vlan, tci), 2, 0xfff},
	FIELD("tci", NUMBER, rte_flow_item_vlan, tci),
	FIELD("inner-type", NUMBER, rte_flow_item_vlan, inner_type),
	{NULL},
};
static const struct field ipv4_fields[] = {
	FIELD("src", IP4, rte_flow_item_ipv4, hdr.src_addr),
	FIELD("dst", IP4, rte_flow_item_ipv4, hdr.dst_addr),
	FIELD("proto", NUMBER, rte_flow_item_ipv4, hdr.next_proto_id),
	FIELD("tos", NUMBER, rte_flow_item_ipv4, hdr.type_of_service),
	FIELD("ttl", NUMBER, rte_flow_item_ipv4, hdr.time_to_live),
	{NULL},
};
static const struct field ipv6_fields[] = {
	FIELD("src", IP6, rte_flow_item_ipv6, hdr.src_addr),
	FIELD("dst", IP6, rte_flow_item_ipv6, hdr.dst_addr),
	FIELD("proto", NUMBER, rte_flow_item_ipv6, hdr.proto),
	FIELD("hop", NUMBER, rte_flow_item_ipv6, hdr.hop_limits),
	{NULL},
};
static const struct field udp_fields[] = {
	FIELD("src", NUMBER, rte_flow_item_udp, hdr.src_port),
	FIELD("dst", NUMBER, rte_flow_item_udp, hdr.dst_port),
	{NULL},
};
static const struct field tcp_fields[] = {
	FIELD("src", NUMBER, rte_flow_item_tcp, hdr.src_port),
	FIELD("dst", NUMBER, rte_flow_item_tcp, hdr.dst_port),
	{NULL},
};
static const struct field sctp_fields[] = {
	FIELD("src", NUMBER, rte_flow_item_sctp, hdr.src_port),
	FIELD("dst", NUMBER, rte_flow_item_sctp, hdr.dst_port),
	{NULL},
};
static const struct field vxlan_fields[] = {
	FIELD("vni", NUMBER, rte_flow_item_vxlan, vni),
	{NULL},
};

static const struct item {
	const char *name;
	enum rte_flow_item_type type;
	const struct field *fields;
} items[] = {
	{"eth", RTE_FLOW_ITEM_TYPE_ETH, eth_fields},
	{"vlan", RTE_FLOW_ITEM_TYPE_VLAN, vlan_fields},
	{"ipv4", RTE_FLOW_ITEM_TYPE_IPV4, ipv4_fields},
	{"ipv6", RTE_FLOW_ITEM_TYPE_IPV6, ipv6_fields},
	{"udp", RTE_FLOW_ITEM_TYPE_UDP, udp_fields},
	{"tcp", RTE_FLOW_ITEM_TYPE_TCP, tcp_fields},
	{"sctp", RTE_FLOW_ITEM_TYPE_SCTP, sctp_fields},
	{"vxlan", RTE_FLOW_ITEM_TYPE_VXLAN, vxlan_fields},
};

_Static_assert(sizeof(struct rte_flow_item_ipv6) <= TP_RULE_BYTES, "the largest item");

static int
parse_number(const char *text, uint64_t *num)
{
	char *end;

	*num = strtoull(text, &end, 0);
	return *text == '\0' || *end != '\0' ? -EINVAL : 0;
}

/* Network byte order, in so many bytes. */
static void
put(uint8_t *to, uint64_t num, unsigned int size)
{
	for (unsigned int i = 0; i < size; i++)
		to[i] = num >> 8 * (size - 1 - i);
}

static int
put_number(const struct field *f, const char *text, uint8_t *spec, uint8_t *mask)
{
	uint64_t num, most = f->mask != 0 ? f->mask : UINT64_MAX >> (64 - 8 * f->size);

	if (parse_number(text, &num) < 0 || num > most)
		return tp_refuse(-EINVAL, "%s is a number up to %lu, not \"%s\"", f->name,
			(unsigned long)most, text);
	put(spec + f->offset, num, f->size);
	put(mask + f->offset, most, f->size);
	return 0;
}

/* An address, with the length of a prefix behind it or not. */
static int
put_address(const struct field *f, const char *text, uint8_t *spec, uint8_t *mask)
{
	unsigned int bits = 8 * f->size;
	char copy[INET6_ADDRSTRLEN + 4];
	uint64_t len = bits;
	char *slash;

	snprintf(copy, sizeof(copy), "%s", text);
	slash = strchr(copy, '/');
	if (slash != NULL)
		*slash = '\0';
	if (inet_pton(f->type == IP4 ? AF_INET : AF_INET6, copy, spec + f->offset) != 1 ||
		(slash != NULL && (parse_number(slash + 1, &len) < 0 || len > bits)))
		return tp_refuse(-EINVAL, "%s is an address like %s, not \"%s\"", f->name,
			f->type == IP4 ? "10.0.0.1 or 10.0.0.0/8" : "2001:db8::1 or 2001:db8::/32",
			text);
	for (unsigned int i = 0; i < len; i++)
		mask[f->offset + i / 8] |= 0x80 >> i % 8;
	return 0;
}

static int
put_field(const struct field *f, const char *text, uint8_t *spec, uint8_t *mask)
{
	switch (f->type) {
	case NUMBER:
		return put_number(f, text, spec, mask);
	case IP4:
	case IP6:
		return put_address(f, text, spec, mask);
	case MAC:
		break;
	}
	if (rte_ether_unformat_addr(text, (struct rte_ether_addr *)(spec + f->offset)) < 0)
		return tp_refuse(-EINVAL, "%s is a MAC address, not \"%s\"", f->name, text);
	memset(mask + f->offset, 0xff, RTE_ETHER_ADDR_LEN);
	return 0;
}

static int
parse_fields(struct reader *r, const struct item *item, struct tp_rule *rule)
{
	struct rte_flow_item *out = &rule->items[rule->num_items];
	uint8_t *spec = rule->spec[rule->num_items], *mask = rule->mask[rule->num_items];

	while (!take_if(r, "/")) {
		const char *name = take(r);
		const struct field *f = item->fields;
		int rc;

		while (f->name != NULL && strcmp(f->name, name) != 0)
			f++;
		if (f->name == NULL)
			return tp_refuse(-EINVAL,
				*name ? "%s has no field \"%s\"" : "behind %s stands \"/\"%s",
				item->name, name);
		if (!take_if(r, "is"))
			return tp_refuse(-EINVAL, "behind %s stands \"is\" and a value", name);
		rc = put_field(f, take(r), spec, mask);
		if (rc < 0)
			return rc;
		out->spec = spec;
		out->mask = mask;
	}
	return 0;
}

static int
parse_items(struct reader *r, struct tp_rule *rule)
{
	while (!take_if(r, "end")) {
		const char *name = take(r);
		const struct item *item = NULL;
		int rc;

		for (unsigned int i = 0; i < RTE_DIM(items); i++)
			if (strcmp(items[i].name, name) == 0)
				item = &items[i];
		if (item == NULL)
			return tp_refuse(-EINVAL,
				"\"%s\" is no item of a pattern: eth, vlan, ipv4, ipv6, udp, tcp, "
				"sctp, vxlan, end",
				name);
		if (rule->num_items == TP_RULE_ITEMS)
			return tp_refuse(-E2BIG, "a pattern has up to %d items", TP_RULE_ITEMS);
		rule->items[rule->num_items].type = item->type;
		rc = parse_fields(r, item, rule);
		if (rc < 0)
			return rc;
		rule->num_items++;
	}
	rule->items[rule->num_items].type = RTE_FLOW_ITEM_TYPE_END;
	return 0;
}

/* ---- actions ---- */

static int
number_of(struct reader *r, const char *action, const char *name, uint64_t max, uint64_t *num)
{
	const char *text;

	if (!take_if(r, name))
		return tp_refuse(-EINVAL, "behind %s stands \"%s\" and a number", action, name);
	text = take(r);
	if (parse_number(text, num) < 0 || *num > max)
		return tp_refuse(-EINVAL, "%s of %s is a number, not \"%s\"", name, action, text);
	return 0;
}

static int
parse_queues(const char *text, struct tp_rule *rule, struct rte_flow_action_rss *rss)
{
	static const struct tp_arg queues = {
		.name = "queues", .type = TP_NUMS, .max = TP_RULE_QUEUES - 1};
	uint32_t nums[TP_RULE_QUEUES];
	struct tp_value v = {0};
	int rc = tp_parse_value(&queues, text, &v);

	if (rc < 0)
		return rc;
	rss->queue_num = tp_nums(&v, nums, RTE_DIM(nums));
	for (uint32_t i = 0; i < rss->queue_num; i++)
		rule->queues[i] = nums[i];
	rss->queue = rule->queues;
	return 0;
}

static int
parse_rss(struct reader *r, struct tp_rule *rule, struct rte_flow_action_rss *rss)
{
	static const struct tp_arg key = {.name = "key", .type = TP_HEX};
	struct tp_value v = {0};
	int rc = -EINVAL;

	rss->func = RTE_ETH_HASH_FUNCTION_DEFAULT;
	rss->types = RTE_ETH_RSS_IP | RTE_ETH_RSS_UDP | RTE_ETH_RSS_TCP;
	while (strcmp(peek(r), "/") != 0) {
		if (take_if(r, "queues")) {
			rc = parse_queues(take(r), rule, rss);
		} else if (take_if(r, "key")) {
			rc = tp_parse_value(&key, take(r), &v);
			memcpy(rule->key, v.bytes, sizeof(rule->key));
			rss->key = rule->key;
			rss->key_len = v.len;
		} else {
			return tp_refuse(-EINVAL,
				"behind rss stand \"queues\" and a list, or \"key\" and bytes");
		}
		if (rc < 0)
			return rc;
	}
	return rss->queue_num > 0 ? 0 : tp_refuse(-EINVAL, "rss needs queues, like 0-3");
}

static int
parse_action(struct reader *r, struct tp_rule *rule)
{
	struct rte_flow_action *a = &rule->actions[rule->num_actions];
	const char *name = take(r);
	uint64_t num = 0;
	int rc = 0;

	a->conf = &rule->conf[rule->num_actions];
	if (strcmp(name, "queue") == 0) {
		a->type = RTE_FLOW_ACTION_TYPE_QUEUE;
		rc = number_of(r, name, "index", UINT16_MAX, &num);
		rule->conf[rule->num_actions].queue.index = num;
	} else if (strcmp(name, "mark") == 0) {
		a->type = RTE_FLOW_ACTION_TYPE_MARK;
		rc = number_of(r, name, "id", UINT32_MAX, &num);
		rule->conf[rule->num_actions].mark.id = num;
	} else if (strcmp(name, "rss") == 0) {
		a->type = RTE_FLOW_ACTION_TYPE_RSS;
		rc = parse_rss(r, rule, &rule->conf[rule->num_actions].rss);
	} else if (strcmp(name, "count") == 0) {
		a->type = RTE_FLOW_ACTION_TYPE_COUNT;
	} else if (strcmp(name, "drop") == 0 || strcmp(name, "flag") == 0 ||
		   strcmp(name, "passthru") == 0) {
		a->type = *name == 'd'	 ? RTE_FLOW_ACTION_TYPE_DROP
			  : *name == 'f' ? RTE_FLOW_ACTION_TYPE_FLAG
					 : RTE_FLOW_ACTION_TYPE_PASSTHRU;
		a->conf = NULL;
	} else {
		return tp_refuse(-EINVAL,
			"\"%s\" is no action: queue, rss, drop, mark, flag, count, passthru, end",
			name);
	}
	if (rc < 0)
		return rc;
	rule->num_actions++;
	return take_if(r, "/") ? 0 : tp_refuse(-EINVAL, "behind %s stands \"/\"", name);
}

static int
parse_actions(struct reader *r, struct tp_rule *rule)
{
	while (!take_if(r, "end")) {
		int rc;

		if (rule->num_actions == TP_RULE_ACTIONS)
			return tp_refuse(-E2BIG, "a rule has up to %d actions", TP_RULE_ACTIONS);
		rc = parse_action(r, rule);
		if (rc < 0)
			return rc;
	}
	rule->actions[rule->num_actions].type = RTE_FLOW_ACTION_TYPE_END;
	return 0;
}

/* ---- the rule ---- */

int
tp_rule_parse(struct tp_rule *rule, const char *text)
{
	struct reader r = {0};
	uint64_t num = 0;
	int rc = 0;

	memset(rule, 0, sizeof(*rule));
	rule->attr.ingress = 1;
	tp_split(&r.words, text);
	while (rc == 0 && strcmp(peek(&r), "pattern") != 0) {
		const char *word = peek(&r);

		if (strcmp(word, "priority") == 0) {
			rc = number_of(&r, "a rule", word, UINT32_MAX, &num);
			rule->attr.priority = num;
		} else if (strcmp(word, "group") == 0) {
			rc = number_of(&r, "a rule", word, UINT32_MAX, &num);
			rule->attr.group = num;
		} else if (!take_if(&r, "ingress")) {
			rc = tp_refuse(-EINVAL,
				"a rule is: [ingress] [priority <n>] [group <n>] pattern <items> / "
				"end "
				"actions <actions> / end; not \"%s\"",
				word);
		}
	}
	if (rc < 0)
		return rc;
	take(&r);
	rc = parse_items(&r, rule);
	if (rc < 0)
		return rc;
	if (!take_if(&r, "actions"))
		return tp_refuse(-EINVAL, "behind the pattern's \"end\" stands \"actions\"");
	rc = parse_actions(&r, rule);
	if (rc == 0 && r.next < r.words.num)
		return tp_refuse(-EINVAL, "\"%s\" is too much", peek(&r));
	return rc;
}
