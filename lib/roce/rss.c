/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hash of RSS (see rss.h), on rte_thash.
 */
#include <errno.h>
#include <string.h>

#include <rte_byteorder.h>
#include <rte_thash.h>

#include "rss.h"

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

/* Of the kinds of one version of IP. RoCE is UDP. */
static void
set_kinds(uint8_t *fields, uint8_t ip, uint8_t tcp, uint8_t udp)
{
	fields[VRB_RSS_IPV4] = ip;
	fields[VRB_RSS_IPV4_FRAG] = ip;
	fields[VRB_RSS_IPV4_TCP] = ip | tcp;
	fields[VRB_RSS_IPV4_UDP] = ip | udp;
	fields[VRB_RSS_IPV4_SCTP] = ip;
	fields[VRB_RSS_IPV4_ROCE] = ip | udp;
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
	set_kinds(&rss->fields[VRB_RSS_IPV4], v4, tcp, udp);
	set_kinds(&rss->fields[VRB_RSS_IPV6], v6, tcp, udp);
	rss->inner = (fields & VRB_RX_HASH_INNER) != 0;
	rss->symmetric = false;
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
	if (s->present & VRB_FLOW_FRAGMENT)
		return kind + VRB_RSS_IPV4_FRAG - VRB_RSS_IPV4;
	if (s->present & VRB_FLOW_TCP)
		return kind + VRB_RSS_IPV4_TCP - VRB_RSS_IPV4;
	if (s->present & VRB_FLOW_BTH)
		return kind + VRB_RSS_IPV4_ROCE - VRB_RSS_IPV4;
	if (s->present & VRB_FLOW_UDP)
		return kind + VRB_RSS_IPV4_UDP - VRB_RSS_IPV4;
	if (s->present & VRB_FLOW_SCTP)
		return kind + VRB_RSS_IPV4_SCTP - VRB_RSS_IPV4;
	return kind;
}

/** Appends @p a if it is wanted; symmetric: the exclusive or with @p b. */
static uint32_t
add(uint8_t *input, uint32_t n, const void *a, const void *b, uint32_t len, bool symmetric)
{
	uint32_t i;

	memcpy(input + n, a, len);
	for (i = 0; symmetric && i < len; i++)
		input[n + i] ^= ((const uint8_t *)b)[i];
	return n + len;
}

uint32_t
vrb_rss_input(
	const struct vrb_rss *rss, const struct vrb_flow_key *key, uint8_t input[VRB_RSS_INPUT])
{
	const struct vrb_flow_stack *s = rss->inner && key->tunnel ? &key->inner : &key->outer;
	enum vrb_rss_kind kind = kind_of(s);
	uint32_t n = 0, ip_len = s->present & VRB_FLOW_IPV6 ? 16 : 4;
	bool sym = rss->symmetric;
	uint8_t fields;

	if (kind == VRB_RSS_KINDS)
		return 0;
	fields = rss->fields[kind];
	if (fields & VRB_RSS_SRC_IP)
		n = add(input, n, s->src_ip, s->dst_ip, ip_len, sym);
	if (fields & VRB_RSS_DST_IP)
		n = add(input, n, s->dst_ip, s->src_ip, ip_len, sym);
	if (fields & VRB_RSS_DST_QPN) {
		input[n++] = 0;
		return add(input, n, s->dst_qpn, NULL, sizeof(s->dst_qpn), false);
	}
	if (fields & VRB_RSS_SRC_PORT)
		n = add(input, n, &s->src_port, &s->dst_port, 2, sym);
	if (fields & VRB_RSS_DST_PORT)
		n = add(input, n, &s->dst_port, &s->src_port, 2, sym);
	return n;
}

uint32_t
vrb_rss_hash(const struct vrb_rss *rss, const struct vrb_flow_key *key)
{
	uint32_t words[VRB_RSS_INPUT / 4] = {0}, n, i;

	/* A lone port is the upper half of its word: zeros behind it add nothing to the hash. */
	n = vrb_rss_input(rss, key, (uint8_t *)words);
	n = (n + 3) / 4;
	for (i = 0; i < n; i++)
		words[i] = rte_be_to_cpu_32(words[i]);
	return rte_softrss_be(words, n, (const uint8_t *)rss->key);
}
