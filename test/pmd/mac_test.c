/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses: what a port receives over a lower port that has no filter. A net_ring gives all that
 * comes, takes no further addresses, and has promiscuous mode in name only.
 */
#include <errno.h>

#include "util.h"

static const struct rte_ether_addr other = {.addr_bytes = {2, 0, 0, 0, 0x33, 1}};
static const struct rte_ether_addr group = {.addr_bytes = {1, 0, 0x5e, 0, 0, 9}};
static const struct rte_ether_addr group2 = {.addr_bytes = {0x33, 0x33, 0, 0, 0, 9}};
static const struct rte_ether_addr all = {.addr_bytes = {255, 255, 255, 255, 255, 255}};

/* @return whether a frame to that address comes */
static bool
comes(const struct rig *r, const struct rte_ether_addr *to)
{
	struct rte_mbuf *m = frame_make(pmd_pool, &(struct frame){.src = 1});

	memcpy(rte_pktmbuf_mtod(m, void *), to, sizeof(*to));
	assert_int_equal(rte_ring_enqueue(r->to_port[0], m), 0);
	return receive_all(r, 1, NULL) == 1;
}

static struct rte_ether_addr
own_address(const struct rig *r)
{
	struct rte_ether_addr mac;

	assert_int_equal(rte_eth_macaddr_get(r->port, &mac), 0);
	return mac;
}

static void
make(struct rig *r, const char *args)
{
	struct setup s = {.rxq = 1};

	rig_make(r, 1, args);
	assert_int_equal(rig_start(r, &s), 0);
}

static void
expect_direct(const struct rig *r, bool direct)
{
	struct rte_eth_burst_mode mode;

	assert_int_equal(rte_eth_rx_burst_mode_get(r->port, 0, &mode), 0);
	assert_int_equal(strcmp(mode.info, "Direct") == 0, direct);
}

static void
filter_lets_through_what_a_nic_would(void **state)
{
	struct rte_ether_addr own, list[2] = {group, group2};
	struct rig r;

	(void)state;
	make(&r, ",mac_filter=1");
	own = own_address(&r);
	assert_true(comes(&r, &own));
	assert_true(comes(&r, &all));
	assert_false(comes(&r, &other));
	assert_false(comes(&r, &group));
	assert_int_equal(rte_eth_dev_set_mc_addr_list(r.port, list, 2), 0);
	assert_true(comes(&r, &group));
	assert_true(comes(&r, &group2));
	assert_int_equal(rte_eth_dev_set_mc_addr_list(r.port, list, 1), 0);
	assert_false(comes(&r, &group2));
	assert_int_equal(rte_eth_allmulticast_enable(r.port), 0);
	assert_true(comes(&r, &group2));
	assert_false(comes(&r, &other));
	assert_int_equal(rte_eth_allmulticast_disable(r.port), 0);
	assert_false(comes(&r, &group2));
	assert_int_equal(rte_eth_promiscuous_enable(r.port), 0);
	assert_true(comes(&r, &other));
	expect_direct(&r, true);
	assert_int_equal(rte_eth_promiscuous_disable(r.port), 0);
	assert_false(comes(&r, &other));
	expect_direct(&r, false);
	assert_int_equal(xstat(r.port, "rx_mac_filter_drop"), 6);
	assert_int_equal(stats_of(r.port).ipackets, 6);
	rig_close(&r);
}

static void
addresses_are_added_and_removed(void **state)
{
	struct rte_ether_addr main_mac = {.addr_bytes = {2, 0, 0, 0, 0x44, 1}};
	struct rte_ether_addr own, mac = other;
	struct rig r;

	(void)state;
	make(&r, "");
	/* Nothing has been asked for that the lower port could not do. */
	expect_direct(&r, true);
	assert_true(comes(&r, &other));
	/* Its own is 0, which counts as a free place. */
	assert_int_equal(rte_eth_dev_default_mac_addr_set(r.port, &main_mac), 0);
	own = own_address(&r);
	for (uint8_t i = 1; i < 64; i++) {
		mac.addr_bytes[5] = i;
		assert_int_equal(rte_eth_dev_mac_addr_add(r.port, &mac, 0), 0);
	}
	mac.addr_bytes[5] = 64;
	assert_int_equal(rte_eth_dev_mac_addr_add(r.port, &mac, 0), -ENOSPC);
	assert_false(comes(&r, &mac));
	mac.addr_bytes[5] = 63;
	assert_true(comes(&r, &mac));
	assert_true(comes(&r, &own));
	assert_int_equal(rte_eth_promiscuous_get(r.lower), 1);
	/* They stay across stop and start. */
	assert_int_equal(rte_eth_dev_stop(r.port), 0);
	assert_int_equal(rte_eth_dev_start(r.port), 0);
	assert_true(comes(&r, &mac));
	assert_int_equal(rte_eth_dev_mac_addr_remove(r.port, &mac), 0);
	assert_false(comes(&r, &mac));
	mac.addr_bytes[5] = 7;
	assert_int_equal(rte_eth_dev_mac_addr_remove(r.port, &mac), 0);
	assert_false(comes(&r, &mac));
	assert_false(comes(&r, &(struct rte_ether_addr){0}));
	mac.addr_bytes[5] = 62;
	assert_true(comes(&r, &mac));
	rig_close(&r);
}

static void
main_address_is_changed(void **state)
{
	struct rte_ether_addr own, mac = other;
	struct rig r;

	(void)state;
	make(&r, "");
	own = own_address(&r);
	assert_int_equal(rte_eth_dev_default_mac_addr_set(r.port, &mac), 0);
	assert_true(comes(&r, &mac));
	assert_false(comes(&r, &own));
	assert_int_equal(rte_eth_dev_stop(r.port), 0);
	assert_int_equal(rte_eth_dev_start(r.port), 0);
	assert_true(comes(&r, &mac));
	assert_false(comes(&r, &own));
	mac = own_address(&r);
	assert_memory_equal(&mac, &other, sizeof(mac));
	rig_close(&r);
}

static void
too_long_a_list_changes_nothing(void **state)
{
	struct rte_ether_addr list[257] = {group};
	struct rig r;

	(void)state;
	make(&r, "");
	assert_true(comes(&r, &group2));
	for (unsigned int i = 1; i < RTE_DIM(list); i++) {
		list[i] = group;
		list[i].addr_bytes[4] = (uint8_t)(i >> 8);
		list[i].addr_bytes[5] = (uint8_t)i;
	}
	assert_int_equal(rte_eth_dev_set_mc_addr_list(r.port, list, 1), 0);
	assert_int_equal(rte_eth_dev_set_mc_addr_list(r.port, list, 257), -ENOSPC);
	assert_true(comes(&r, &list[0]));
	assert_false(comes(&r, &list[255]));
	assert_int_equal(rte_eth_dev_set_mc_addr_list(r.port, list, 256), 0);
	assert_true(comes(&r, &list[255]));
	rig_close(&r);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(filter_lets_through_what_a_nic_would),
		cmocka_unit_test(addresses_are_added_and_removed),
		cmocka_unit_test(main_address_is_changed),
		cmocka_unit_test(too_long_a_list_changes_nothing),
	};

	pmd_eal(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
