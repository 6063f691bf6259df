/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan with several ports in one process: who gets which frame, and what it looks like.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <rte_mbuf_dyn.h>

#include "shmlan.h"
#include "shmlan_util.h"


static int
close_ports(void **state)
{
	su_close_all();
	assert_int_equal(rte_mempool_avail_count(su_pool()), SU_POOL_SIZE);
	assert_int_equal(su_dir_entries("t"), 0);
	return 0;
}

static void
send_and_expect(uint16_t from, uint16_t to, const struct rte_ether_addr *dst, uint32_t len, uint32_t seq)
{
	struct rte_mbuf *m;

	su_tx(from, su_frame(dst, from, len, seq, 1));
	assert_int_equal(su_rx(to, &m, 1), 1);
	assert_int_equal(m->port, to);
	assert_true(su_frame_is(m, len, seq));
	rte_pktmbuf_free(m);
}

static void
first_frame_arrives(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);

	send_and_expect(a, b, &mac, 60, 1);
	mac = su_mac(a);
	send_and_expect(b, a, &mac, 60, 2);
}

static void
unicast_reaches_only_its_owner(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL), c = su_port(2, "t", NULL);
	struct rte_ether_addr mac = su_mac(c);

	send_and_expect(a, c, &mac, 100, 7);
	su_expect_nothing(b);
	su_expect_nothing(a);
}

static void
automatic_addresses_are_the_lowest_free(void **state)
{
	static const struct rte_ether_addr first = { { 2, 0, 0xc6, 0x12, 0, 1 } };
	static const struct rte_ether_addr second = { { 2, 0, 0xc6, 0x12, 0, 2 } };
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(a);

	assert_true(rte_is_same_ether_addr(&mac, &first));
	mac = su_mac(b);
	assert_true(rte_is_same_ether_addr(&mac, &second));
	su_close(a);
	a = su_port(0, "t", NULL);
	mac = su_mac(a);
	assert_true(rte_is_same_ether_addr(&mac, &first));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(first_frame_arrives, close_ports),
		cmocka_unit_test_teardown(unicast_reaches_only_its_owner, close_ports),
		cmocka_unit_test_teardown(automatic_addresses_are_the_lowest_free, close_ports),
	};

	su_eal_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
