/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Receive-side scaling of ethdev ports: key, hashed fields, and the table of queues. That of queue
 * pairs is made with them (qp create type rss).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>

#include "commands.h"
#include "ports.h"

#define MAX_KEY 64
#define MAX_RETA 1024

static const char *const hash_words[] = {"ipv4", "ipv4-frag", "ipv4-tcp", "ipv4-udp", "ipv4-sctp",
	"ipv4-other", "ipv6", "ipv6-frag", "ipv6-tcp", "ipv6-udp", "ipv6-sctp", "ipv6-other",
	"l3-src-only", "l3-dst-only", "l4-src-only", "l4-dst-only", "port", NULL};
static const uint64_t hash_bits[] = {RTE_ETH_RSS_IPV4, RTE_ETH_RSS_FRAG_IPV4,
	RTE_ETH_RSS_NONFRAG_IPV4_TCP, RTE_ETH_RSS_NONFRAG_IPV4_UDP, RTE_ETH_RSS_NONFRAG_IPV4_SCTP,
	RTE_ETH_RSS_NONFRAG_IPV4_OTHER, RTE_ETH_RSS_IPV6, RTE_ETH_RSS_FRAG_IPV6,
	RTE_ETH_RSS_NONFRAG_IPV6_TCP, RTE_ETH_RSS_NONFRAG_IPV6_UDP, RTE_ETH_RSS_NONFRAG_IPV6_SCTP,
	RTE_ETH_RSS_NONFRAG_IPV6_OTHER, RTE_ETH_RSS_L3_SRC_ONLY, RTE_ETH_RSS_L3_DST_ONLY,
	RTE_ETH_RSS_L4_SRC_ONLY, RTE_ETH_RSS_L4_DST_ONLY, RTE_ETH_RSS_PORT};

_Static_assert(RTE_DIM(hash_words) == RTE_DIM(hash_bits) + 1, "a word for each bit");

static int
cannot(int rc, uint16_t port, const char *what)
{
	return tp_refuse(rc, "port %u %s: %s", port, what,
		rc == -ENOTSUP ? "its driver cannot, or it was not configured with RSS"
			       : strerror(-rc));
}

/* ---- key and hash ---- */

static int
get_conf(uint16_t port, struct rte_eth_rss_conf *conf, uint8_t *key)
{
	struct rte_eth_dev_info info;
	int rc = rte_eth_dev_info_get(port, &info);

	if (rc < 0)
		return cannot(rc, port, "does not tell what it can");
	*conf = (struct rte_eth_rss_conf){
		.rss_key = key,
		.rss_key_len = info.hash_key_size > 0 ? RTE_MIN(info.hash_key_size, MAX_KEY) : 40,
	};
	rc = rte_eth_dev_rss_hash_conf_get(port, conf);
	return rc < 0 ? cannot(rc, port, "does not tell its hash") : 0;
}

static int
key_show(const struct tp_call *call)
{
	uint16_t port = tp_num(call, "port", 0);
	uint8_t key[MAX_KEY] = {0};
	struct rte_eth_rss_conf conf;
	int rc = get_conf(port, &conf, key);

	if (rc < 0)
		return rc;
	tp_print("port %u  key ", port);
	for (unsigned int i = 0; i < conf.rss_key_len; i++)
		tp_print("%02x", key[i]);
	tp_print("\n");
	return 0;
}

static int
key_set(const struct tp_call *call)
{
	const struct tp_value *key = tp_value(call, "key");
	uint16_t port = tp_num(call, "port", 0);
	uint8_t bytes[TP_MAX_BYTES], now[MAX_KEY];
	struct rte_eth_rss_conf conf;
	int rc = tp_port_check_ours(port);

	if (rc == 0)
		rc = get_conf(port, &conf, now);
	if (rc < 0)
		return rc;
	if (key->len != conf.rss_key_len)
		return tp_refuse(-EINVAL, "the key of port %u has %u bytes, not %u", port,
			conf.rss_key_len, key->len);
	memcpy(bytes, key->bytes, sizeof(bytes));
	conf.rss_key = bytes;
	rc = rte_eth_dev_rss_hash_update(port, &conf);
	return rc < 0 ? cannot(rc, port, "does not take the key") : 0;
}

static int
hash_show(const struct tp_call *call)
{
	uint16_t port = tp_num(call, "port", 0);
	uint8_t key[MAX_KEY];
	struct rte_eth_rss_conf conf;
	bool any = false;
	int rc = get_conf(port, &conf, key);

	if (rc < 0)
		return rc;
	tp_print("port %u  hash ", port);
	for (unsigned int i = 0; i < RTE_DIM(hash_bits); i++) {
		if (!(conf.rss_hf & hash_bits[i]))
			continue;
		tp_print("%s%s", any ? "," : "", hash_words[i]);
		any = true;
	}
	tp_print("%s\n", any ? "" : "none");
	return 0;
}

static int
hash_set(const struct tp_call *call)
{
	uint16_t port = tp_num(call, "port", 0);
	uint64_t words = tp_num(call, "fields", 0);
	struct rte_eth_rss_conf conf = {0};
	struct rte_eth_dev_info info;
	int rc = tp_port_check_ours(port);

	if (rc == 0 && (rc = rte_eth_dev_info_get(port, &info)) < 0)
		cannot(rc, port, "does not tell what it can");
	if (rc < 0)
		return rc;
	for (unsigned int i = 0; i < RTE_DIM(hash_bits); i++) {
		if (!(words & UINT64_C(1) << i))
			continue;
		if (hash_bits[i] < RTE_ETH_RSS_L4_DST_ONLY &&
			!(info.flow_type_rss_offloads & hash_bits[i]))
			return tp_refuse(-ENOTSUP, "port %u cannot hash %s", port, hash_words[i]);
		conf.rss_hf |= hash_bits[i];
	}
	rc = rte_eth_dev_rss_hash_update(port, &conf);
	return rc < 0 ? cannot(rc, port, "does not take the hash") : 0;
}

/* ---- the table ---- */

static int
reta_size(uint16_t port, uint16_t *size, uint16_t *queues)
{
	struct rte_eth_dev_info info;
	int rc = rte_eth_dev_info_get(port, &info);

	if (rc < 0)
		return cannot(rc, port, "does not tell what it can");
	if (info.reta_size == 0)
		return tp_refuse(-ENOTSUP, "port %u has no table of queues", port);
	*size = RTE_MIN(info.reta_size, MAX_RETA);
	*queues = info.nb_rx_queues;
	return 0;
}

static int
reta_show(const struct tp_call *call)
{
	struct rte_eth_rss_reta_entry64 reta[MAX_RETA / RTE_ETH_RETA_GROUP_SIZE];
	uint16_t port = tp_num(call, "port", 0), size, queues;
	int rc = reta_size(port, &size, &queues);

	if (rc < 0)
		return rc;
	memset(reta, 0, sizeof(reta));
	for (unsigned int i = 0; i < RTE_DIM(reta); i++)
		reta[i].mask = UINT64_MAX;
	rc = rte_eth_dev_rss_reta_query(port, reta, size);
	if (rc < 0)
		return cannot(rc, port, "does not tell its table");
	for (unsigned int i = 0; i < size; i++) {
		if (i % 16 == 0)
			tp_print("%sport %u  entry %4u  queues", i > 0 ? "\n" : "", port, i);
		tp_print(
			" %u", reta[i / RTE_ETH_RETA_GROUP_SIZE].reta[i % RTE_ETH_RETA_GROUP_SIZE]);
	}
	tp_print("\n");
	return 0;
}

static int
reta_set(const struct tp_call *call)
{
	struct rte_eth_rss_reta_entry64 reta[MAX_RETA / RTE_ETH_RETA_GROUP_SIZE];
	uint32_t entries[MAX_RETA], to[MAX_RETA];
	uint16_t port = tp_num(call, "port", 0), size, queues;
	unsigned int num, num_to = tp_nums(tp_value(call, "queues"), to, MAX_RETA);
	int rc = tp_port_check_ours(port);

	if (rc == 0)
		rc = reta_size(port, &size, &queues);
	if (rc < 0)
		return rc;
	num = tp_nums(tp_value(call, "entries"), entries, MAX_RETA);
	if (!tp_given(call, "entries"))
		for (num = 0; num < size; num++)
			entries[num] = num;
	memset(reta, 0, sizeof(reta));
	for (unsigned int i = 0; i < num; i++) {
		struct rte_eth_rss_reta_entry64 *group;

		if (entries[i] >= size)
			return tp_refuse(-ERANGE, "the table of port %u has entries 0 to %d", port,
				size - 1);
		if (to[i % num_to] >= queues)
			return tp_refuse(
				-ERANGE, "port %u has rx-queues 0 to %d", port, queues - 1);
		group = &reta[entries[i] / RTE_ETH_RETA_GROUP_SIZE];
		group->mask |= UINT64_C(1) << entries[i] % RTE_ETH_RETA_GROUP_SIZE;
		group->reta[entries[i] % RTE_ETH_RETA_GROUP_SIZE] = to[i % num_to];
	}
	rc = rte_eth_dev_rss_reta_update(port, reta, size);
	return rc < 0 ? cannot(rc, port, "does not take the table") : 0;
}

/* ---- the table of commands ---- */

static const struct tp_arg port_args[] = {TP_PORT_ARG, {NULL}};
static const struct tp_arg key_args[] = {
	TP_PORT_ARG, {.name = "key", .type = TP_HEX, .help = "all bytes of the key"}, {NULL}};
static const struct tp_arg hash_args[] = {
	TP_PORT_ARG,
	{.name = "fields",
		.type = TP_FLAGS,
		.words = hash_words,
		.help = "kinds of packets whose addresses and ports are hashed, or none"},
	{NULL},
};
static const struct tp_arg reta_args[] = {
	TP_PORT_ARG,
	{.name = "queues",
		.type = TP_NUMS,
		.max = TP_MAX_QUEUES - 1,
		.required = true,
		.help = "rx-queues that the entries get in turn, like 0-3 or 0,0,1"},
	{.name = "entries",
		.type = TP_NUMS,
		.max = MAX_RETA - 1,
		.help = "which entries, like 0-63; all"},
	{NULL},
};

static const struct tp_cmd cmds[] = {
	{"rss key show <port>", "shows the key of the hash", port_args, key_show},
	{"rss key set <port> <key>", "sets the key of the hash", key_args, key_set},
	{"rss hash show <port>", "shows what is hashed", port_args, hash_show},
	{"rss hash set <port> <fields>", "sets what is hashed", hash_args, hash_set},
	{"rss reta show <port>", "shows the table of queues, which the hash indexes", port_args,
		reta_show},
	{"rss reta set <port>", "sets entries of the table of queues", reta_args, reta_set},
};

const struct tp_family tp_rss_family =
	TP_FAMILY("rss", "receive-side scaling of ports: key, hash, table of queues", cmds);
