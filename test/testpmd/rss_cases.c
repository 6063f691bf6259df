/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RSS of ports.
 */
#include <stdio.h>

#include "cases.h"

static void
get_conf(struct rte_eth_rss_conf *conf, uint8_t *key)
{
	struct rte_eth_dev_info info;

	assert_return_code(rte_eth_dev_info_get(loop_port(), &info), EINVAL);
	*conf = (struct rte_eth_rss_conf){.rss_key = key, .rss_key_len = info.hash_key_size};
	assert_return_code(rte_eth_dev_rss_hash_conf_get(loop_port(), conf), EINVAL);
}

static void
key_to_text(const uint8_t *key, unsigned int len, char *text)
{
	for (unsigned int i = 0; i < len; i++)
		sprintf(text + 2 * i, "%02x", key[i]);
}

static void
key_set_sets_the_key(void)
{
	uint8_t before[64], key[64], now[64];
	struct rte_eth_rss_conf conf;
	uint64_t fields;
	char text[160];

	get_conf(&conf, before);
	fields = conf.rss_hf;
	for (unsigned int i = 0; i < conf.rss_key_len; i++)
		key[i] = 3 * i + 1;
	key_to_text(key, conf.rss_key_len, text);
	run("rss key set net_verbena1 %s", text);
	get_conf(&conf, now);
	assert_memory_equal(now, key, conf.rss_key_len);
	/* And nothing else. */
	assert_int_equal(conf.rss_hf, fields);
	refuse(-EINVAL, "bytes, not 2", "rss key set net_verbena1 0102");
	refuse(-EINVAL, "two hexadecimal digits", "rss key set net_verbena1 012");
	key_to_text(before, conf.rss_key_len, text);
	run("rss key set net_verbena1 %s", text);
	get_conf(&conf, now);
	assert_memory_equal(now, before, conf.rss_key_len);
}

static void
key_show_tells_the_key(void)
{
	struct rte_eth_rss_conf conf;
	uint8_t key[64];
	char text[160];

	get_conf(&conf, key);
	key_to_text(key, conf.rss_key_len, text);
	holds(run("rss key show net_verbena1"), text);
	refuse(-ENOTSUP, "its driver cannot", "rss key show net_ring1");
}

static void
hash_set_sets_the_fields(void)
{
	struct rte_eth_rss_conf conf;
	uint8_t key[64];

	run("rss hash set net_verbena1 ipv4-udp,ipv6-tcp");
	get_conf(&conf, key);
	assert_int_equal(conf.rss_hf, RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV6_TCP);
	refuse(-EINVAL, "fields is one of ipv4,", "rss hash set net_verbena1 arp");
	run("rss hash set net_verbena1 ipv4,ipv4-udp,ipv4-tcp,ipv6,ipv6-udp,ipv6-tcp");
	get_conf(&conf, key);
	assert_true(conf.rss_hf & RTE_ETH_RSS_IPV4);
}

static void
hash_show_tells_the_fields(void)
{
	struct rte_eth_rss_conf conf;
	uint8_t key[64];
	const char *out = run("rss hash show net_verbena1");

	get_conf(&conf, key);
	assert_int_equal(
		strstr(out, "ipv4-udp") != NULL, (conf.rss_hf & RTE_ETH_RSS_NONFRAG_IPV4_UDP) != 0);
	assert_int_equal(strstr(out, "ipv6-sctp") != NULL,
		(conf.rss_hf & RTE_ETH_RSS_NONFRAG_IPV6_SCTP) != 0);
}

static uint16_t
get_reta(uint16_t *queues)
{
	struct rte_eth_rss_reta_entry64 reta[16];
	struct rte_eth_dev_info info;

	assert_return_code(rte_eth_dev_info_get(loop_port(), &info), EINVAL);
	for (unsigned int i = 0; i < RTE_DIM(reta); i++)
		reta[i].mask = UINT64_MAX;
	assert_return_code(rte_eth_dev_rss_reta_query(loop_port(), reta, info.reta_size), EINVAL);
	for (uint16_t i = 0; i < info.reta_size; i++)
		queues[i] = reta[i / 64].reta[i % 64];
	return info.reta_size;
}

static void
reta_set_moves_frames(void)
{
	uint16_t before[1024], now[1024], size = get_reta(before);

	run("rss reta set net_verbena1 queues 3,1 entries 0,2,10-12");
	get_reta(now);
	assert_int_equal(now[0], 3);
	assert_int_equal(now[1], before[1]);
	assert_int_equal(now[2], 1);
	assert_int_equal(now[10], 3);
	assert_int_equal(now[11], 1);
	assert_int_equal(now[12], 3);
	refuse(-ERANGE, "has rx-queues 0 to 3", "rss reta set net_verbena1 queues 4");
	refuse(-ERANGE, "has entries 0 to", "rss reta set net_verbena1 queues 0 entries %u", size);
	run("rss reta set net_verbena1 queues 2");
	get_reta(now);
	for (uint16_t i = 0; i < size; i++)
		assert_int_equal(now[i], 2);
	/* Whatever their hash is, frames go to queue 2. */
	rte_eth_xstats_reset(loop_port());
	run("poller start net_verbena1");
	run("port send net_verbena1 count 100 flows 100");
	run("sleep 20");
	run("poller stop net_verbena1");
	assert_int_equal(queue_frames(2), 100);
	assert_int_equal(queue_frames(0) + queue_frames(1) + queue_frames(3), 0);
	run("rss reta set net_verbena1 queues 0-3");
	get_reta(now);
	assert_int_equal(now[7], 3);
}

static void
reta_show_tells_queues(void)
{
	uint16_t queues[1024], size = get_reta(queues);
	const char *out = run("rss reta show net_verbena1");

	for (uint16_t i = 0; i < size; i++) {
		char *end;

		if (i % 16 == 0) {
			assert_int_equal(number(out, "entry"), i);
			out = strstr(out, "queues ") + strlen("queues ");
		}
		assert_int_equal(strtoul(out, &end, 10), queues[i]);
		out = end;
	}
	refuse(-ENOTSUP, "has no table of queues", "rss reta show net_ring1");
}

static const struct tp_case cases[] = {
	{"rss key show <port>", key_show_tells_the_key},
	{"rss key set <port> <key>", key_set_sets_the_key},
	{"rss hash show <port>", hash_show_tells_the_fields},
	{"rss hash set <port> <fields>", hash_set_sets_the_fields},
	{"rss reta show <port>", reta_show_tells_queues},
	{"rss reta set <port>", reta_set_moves_frames},
};

const struct tp_cases rss_cases = TP_CASES(cases);
