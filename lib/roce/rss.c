/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hash of RSS (see rss.h), on rte_thash.
 */
#include <errno.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_thash.h>

#include "rss.h"

/* Two IPv6 addresses and two ports. */
#define INPUT_WORDS 9

void
vrb_rss_set_key(struct vrb_rss *rss, const uint8_t *key, uint32_t len)
{
	uint32_t i, word;

	memset(rss->key, 0, sizeof(rss->key));
	for (i = 0; i < len / 4; i++) {
		memcpy(&word, key + 4 * i, sizeof(word));
		rss->key[i] = rte_be_to_cpu_32(word);
	}
}

int
vrb_rss_set_fields(struct vrb_rss *rss, uint64_t fields)
{
	uint8_t v4 = 0, v6 = 0, tcp = 0, udp = 0;

	if (fields & ~VRB_RX_HASH_ALL)
		return -EOPNOTSUPP;
	v4 |= fields & VRB_RX_HASH_SRC_IPV4 ? VRB_RSS_SRC_IP : 0;
	v4 |= fields & VRB_RX_HASH_DST_IPV4 ? VRB_RSS_DST_IP : 0;
	v6 |= fields & VRB_RX_HASH_SRC_IPV6 ? VRB_RSS_SRC_IP : 0;
	v6 |= fields & VRB_RX_HASH_DST_IPV6 ? VRB_RSS_DST_IP : 0;
	tcp |= fields & VRB_RX_HASH_SRC_PORT_TCP ? VRB_RSS_SRC_PORT : 0;
	tcp |= fields & VRB_RX_HASH_DST_PORT_TCP ? VRB_RSS_DST_PORT : 0;
	udp |= fields & VRB_RX_HASH_SRC_PORT_UDP ? VRB_RSS_SRC_PORT : 0;
	udp |= fields & VRB_RX_HASH_DST_PORT_UDP ? VRB_RSS_DST_PORT : 0;
	rss->fields[VRB_RSS_IPV4] = v4;
	rss->fields[VRB_RSS_IPV4_TCP] = v4 | tcp;
	rss->fields[VRB_RSS_IPV4_UDP] = v4 | udp;
	rss->fields[VRB_RSS_IPV6] = v6;
	rss->fields[VRB_RSS_IPV6_TCP] = v6 | tcp;
	rss->fields[VRB_RSS_IPV6_UDP] = v6 | udp;
	rss->inner = (fields & VRB_RX_HASH_INNER) != 0;
	return 0;
}

/** The kind of the frame, as a place in vrb_rss.fields; VRB_RSS_KINDS: it is not IP. */
static enum vrb_rss_kind
kind_of(const struct vrb_flow_stack *s)
{
	enum vrb_rss_kind kind;

	if (s->present & VRB_FLOW_IPV4)
		kind = VRB_RSS_IPV4;
	else if (s->present & VRB_FLOW_IPV6)
		kind = VRB_RSS_IPV6;
	else
		return VRB_RSS_KINDS;
	if (s->present & VRB_FLOW_TCP)
		kind += VRB_RSS_IPV4_TCP - VRB_RSS_IPV4;
	else if (s->present & VRB_FLOW_UDP)
		kind += VRB_RSS_IPV4_UDP - VRB_RSS_IPV4;
	return kind;
}

static uint32_t
add_address(uint32_t *input, uint32_t n, const uint8_t *ip, bool v6)
{
	uint32_t i, words = v6 ? 4 : 1;

	for (i = 0; i < words; i++) {
		memcpy(&input[n + i], ip + 4 * i, sizeof(*input));
		input[n + i] = rte_be_to_cpu_32(input[n + i]);
	}
	return n + words;
}

uint32_t
vrb_rss_hash(const struct vrb_rss *rss, const struct vrb_flow_key *key)
{
	const struct vrb_flow_stack *s = rss->inner && key->tunnel ? &key->inner : &key->outer;
	enum vrb_rss_kind kind = kind_of(s);
	uint32_t input[INPUT_WORDS], n = 0;
	bool v6 = (s->present & VRB_FLOW_IPV6) != 0;
	uint8_t fields;

	if (kind == VRB_RSS_KINDS)
		return 0;
	fields = rss->fields[kind];
	if (fields & VRB_RSS_SRC_IP)
		n = add_address(input, n, s->src_ip, v6);
	if (fields & VRB_RSS_DST_IP)
		n = add_address(input, n, s->dst_ip, v6);
	/* A lone port is the upper half of its word: zeros behind it add nothing to the hash. */
	if ((fields & VRB_RSS_SRC_PORT) && (fields & VRB_RSS_DST_PORT))
		input[n++] = (uint32_t)rte_be_to_cpu_16(s->src_port) << 16 |
			     rte_be_to_cpu_16(s->dst_port);
	else if (fields & VRB_RSS_SRC_PORT)
		input[n++] = (uint32_t)rte_be_to_cpu_16(s->src_port) << 16;
	else if (fields & VRB_RSS_DST_PORT)
		input[n++] = (uint32_t)rte_be_to_cpu_16(s->dst_port) << 16;
	return rte_softrss_be(input, n, (const uint8_t *)rss->key);
}
