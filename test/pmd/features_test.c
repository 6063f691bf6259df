/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The guide's table of features against what a port says of itself and does when asked: each row
 * has a check here, and each check a row there.
 */
#include <errno.h>
#include <stdio.h>

#include <rte_flow.h>

#include "util.h"

static struct rig rig;
static struct rte_eth_dev_info info;

static bool
has_rx(uint64_t offloads)
{
	return (info.rx_offload_capa & offloads) == offloads;
}

static bool
has_tx(uint64_t offloads)
{
	return (info.tx_offload_capa & offloads) == offloads;
}

static bool
link_status(void)
{
	struct rte_eth_link link;

	return rte_eth_link_get_nowait(rig.port, &link) == 0 && link.link_status;
}

static bool
removal(void)
{
	return (*info.dev_flags & RTE_ETH_DEV_INTR_RMV) != 0;
}

/* net_ring has no interrupts: it has to be said. */
static bool
rx_interrupt(void)
{
	return rte_eth_dev_rx_intr_enable(rig.port, 0) < 0;
}

static bool
fast_free(void)
{
	return has_tx(RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE);
}

static bool
queue_start_stop(void)
{
	return rte_eth_dev_rx_queue_stop(rig.port, 1) == 0 &&
	       rte_eth_dev_rx_queue_start(rig.port, 1) == 0 &&
	       rte_eth_dev_tx_queue_stop(rig.port, 1) == 0 &&
	       rte_eth_dev_tx_queue_start(rig.port, 1) == 0;
}

static bool
runtime_setup(void)
{
	return (info.dev_capa & RTE_ETH_DEV_CAPA_RUNTIME_RX_QUEUE_SETUP) != 0 &&
	       (info.dev_capa & RTE_ETH_DEV_CAPA_RUNTIME_TX_QUEUE_SETUP) != 0 &&
	       rte_eth_dev_tx_queue_stop(rig.port, 1) == 0 &&
	       rte_eth_tx_queue_setup(rig.port, 1, 64, 0, NULL) == 0 &&
	       rte_eth_dev_tx_queue_start(rig.port, 1) == 0;
}

static bool
burst_mode(void)
{
	struct rte_eth_burst_mode rx, tx;

	return rte_eth_rx_burst_mode_get(rig.port, 0, &rx) == 0 &&
	       rte_eth_tx_burst_mode_get(rig.port, 0, &tx) == 0;
}

static bool
mtu(void)
{
	uint16_t value;

	return rte_eth_dev_set_mtu(rig.port, 1300) == 0 &&
	       rte_eth_dev_get_mtu(rig.port, &value) == 0 && value == 1300;
}

static bool
scattered(void)
{
	return has_rx(RTE_ETH_RX_OFFLOAD_SCATTER) && has_tx(RTE_ETH_TX_OFFLOAD_MULTI_SEGS);
}

static bool
promiscuous(void)
{
	return rte_eth_promiscuous_enable(rig.port) == 0 &&
	       rte_eth_promiscuous_get(rig.port) == 1 && rte_eth_allmulticast_enable(rig.port) == 0;
}

static bool
mac_addresses(void)
{
	struct rte_ether_addr more = {.addr_bytes = {2, 0, 0, 0, 0, 77}};

	return info.max_mac_addrs == 64 && rte_eth_dev_mac_addr_add(rig.port, &more, 0) == 0 &&
	       rte_eth_dev_set_mc_addr_list(rig.port, NULL, 0) == 0;
}

static bool
rss_hash(void)
{
	return has_rx(RTE_ETH_RX_OFFLOAD_RSS_HASH) &&
	       (info.flow_type_rss_offloads & RTE_ETH_RSS_NONFRAG_IPV6_SCTP) != 0;
}

static bool
rss_key(void)
{
	struct rte_eth_rss_conf conf = {.rss_hf = RTE_ETH_RSS_IPV4};

	return info.hash_key_size == 40 && rte_eth_dev_rss_hash_update(rig.port, &conf) == 0;
}

static bool
rss_reta(void)
{
	struct rte_eth_rss_reta_entry64 reta[2] = {{.mask = 1}};

	return info.reta_size == 128 && rte_eth_dev_rss_reta_update(rig.port, reta, 128) == 0;
}

static bool
shared_rxq(void)
{
	return (info.dev_capa & RTE_ETH_DEV_CAPA_RXQ_SHARE) != 0;
}

static bool
avail_thresh(void)
{
	return rte_eth_rx_avail_thresh_set(rig.port, 0, 10) == 0;
}

static bool
vlan(void)
{
	return has_rx(RTE_ETH_RX_OFFLOAD_VLAN_STRIP | RTE_ETH_RX_OFFLOAD_VLAN_FILTER) &&
	       has_tx(RTE_ETH_TX_OFFLOAD_VLAN_INSERT);
}

static bool
checksums(void)
{
	return has_rx(RTE_ETH_RX_OFFLOAD_CHECKSUM) &&
	       has_tx(RTE_ETH_TX_OFFLOAD_IPV4_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM |
		       RTE_ETH_TX_OFFLOAD_UDP_CKSUM);
}

static bool
rate_limit(void)
{
	return rte_eth_set_queue_rate_limit(rig.port, 0, 100) == 0;
}

/* net_ring has neither. */
static bool
passed_on(void)
{
	struct rte_eth_fc_conf fc = {0};

	return rte_eth_dev_flow_ctrl_get(rig.port, &fc) == -ENOTSUP &&
	       rte_eth_tx_done_cleanup(rig.port, 0, 0) == -ENOTSUP;
}

static bool
timestamps(void)
{
	uint64_t clock;

	return has_rx(RTE_ETH_RX_OFFLOAD_TIMESTAMP) && rte_eth_read_clock(rig.port, &clock) == 0;
}

/* Who polls by itself has nothing to watch. */
static bool
monitor(void)
{
	struct rte_power_monitor_cond cond;

	return rte_eth_get_monitor_addr(rig.port, 0, &cond) == -ENOTSUP;
}

static bool
packet_types(void)
{
	return rte_eth_dev_get_supported_ptypes(rig.port, RTE_PTYPE_L4_MASK, NULL, 0) > 2;
}

static bool
descriptor_status(void)
{
	return rte_eth_rx_descriptor_status(rig.port, 0, 0) == RTE_ETH_RX_DESC_AVAIL &&
	       rte_eth_rx_queue_count(rig.port, 0) == 0;
}

static bool
statistics(void)
{
	struct rte_eth_stats st;

	return rte_eth_stats_get(rig.port, &st) == 0 &&
	       rte_eth_xstats_get_names(rig.port, NULL, 0) > 40;
}

static bool
flow_rules(void)
{
	struct rte_flow_error error;

	return rte_flow_flush(rig.port, &error) == 0;
}

static const struct {
	const char *row;
	bool (*check)(void);
} features[] = {
	{"Speed, link status", link_status},
	{"Link status event", NULL}, /* net_shmlan's test has it */
	{"Removal event", removal},
	{"Rx interrupt", rx_interrupt},
	{"Power management monitor", monitor},
	{"Fast mbuf free", fast_free},
	{"Queue start, stop", queue_start_stop},
	{"Runtime queue setup", runtime_setup},
	{"Burst mode info", burst_mode},
	{"MTU update", mtu},
	{"Scattered Rx", scattered},
	{"Promiscuous, allmulticast", promiscuous},
	{"MAC addresses", mac_addresses},
	{"Rate limitation", rate_limit},
	{"Flow control", passed_on},
	{"Free Tx mbuf on demand", passed_on},
	{"RSS hash", rss_hash},
	{"RSS key update", rss_key},
	{"RSS reta update", rss_reta},
	{"Shared Rx queue", shared_rxq},
	{"Rx avail threshold", avail_thresh},
	{"VLAN filter, offload", vlan},
	{"L3, L4 checksum offload", checksums},
	{"Timestamp offload", timestamps},
	{"Packet type parsing", packet_types},
	{"Descriptor status", descriptor_status},
	{"Basic, queue, extended", statistics},
	{"Flow rules", flow_rules},
};

/* The rows of the table behind the heading, in order: the first column without blanks behind. */
static void
every_row_of_the_guide_holds(void **state)
{
	struct setup s = {.rxq = 2, .txq = 2, .rss = RTE_ETH_RSS_IPV4};
	FILE *guide = fopen(GUIDE, "r");
	bool in_features = false, in_table = false;
	char line[256];
	size_t next = 0;

	(void)state;
	assert_non_null(guide);
	rig_make(&rig, 2, "");
	assert_int_equal(rig_start(&rig, &s), 0);
	assert_int_equal(rte_eth_dev_info_get(rig.port, &info), 0);
	while (fgets(line, sizeof(line), guide) != NULL) {
		if (strcmp(line, "Features\n") == 0)
			in_features = true;
		if (in_features && strncmp(line, "===", 3) == 0) {
			if (in_table)
				break;
			in_table = true;
			continue;
		}
		/* Lines that go on. */
		if (!in_table || line[0] == ' ')
			continue;
		assert_true(next < RTE_DIM(features));
		assert_memory_equal(line, features[next].row, strlen(features[next].row));
		assert_int_equal(line[strlen(features[next].row)], ' ');
		if (features[next].check != NULL && !features[next].check())
			fail_msg("what the guide says of \"%s\" does not hold", features[next].row);
		next++;
	}
	assert_int_equal(next, RTE_DIM(features));
	fclose(guide);
	rig_close(&rig);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_row_of_the_guide_holds)};

	pmd_eal(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
