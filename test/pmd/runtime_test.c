/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queues of a port that runs: set up anew, and limited in their rate.
 */
#include <errno.h>

#include <ethdev_driver.h>
#include <rte_cycles.h>

#include "util.h"

static void
put(const struct rig *r, unsigned int queue, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		wire_put(r, queue, &(struct frame){.src = 1, .seq = i});
}

static void
start(struct rig *r, const char *args)
{
	struct setup s = {.rxq = 2, .txq = 2};

	rig_make(r, 2, args);
	assert_int_equal(rig_start(r, &s), 0);
}

static int
setup_rx(const struct rig *r, uint16_t queue, uint16_t desc, struct rte_mempool *mp)
{
	return rte_eth_rx_queue_setup(r->port, queue, desc, 0, NULL, mp);
}

/* ---- Rx ---- */

static void
rx_queue_is_set_up_anew_while_the_port_runs(void **state)
{
	struct rte_eth_rxq_info info;
	unsigned int got[2] = {0};
	struct rig r;

	(void)state;
	start(&r, "");
	put(&r, 0, 5);
	put(&r, 1, 7);
	assert_int_equal(receive_all(&r, 2, got), 12);
	assert_int_equal(setup_rx(&r, 1, 256, pmd_pool), -EBUSY);
	assert_int_equal(rte_eth_dev_rx_queue_stop(r.port, 1), 0);
	assert_int_equal(setup_rx(&r, 1, 256, pmd_pool), 0);
	assert_int_equal(rte_eth_rx_queue_info_get(r.port, 1, &info), 0);
	assert_int_equal(info.nb_desc, 256);
	/* Until it is started its frames are dropped, and the other one goes on. */
	put(&r, 0, 3);
	put(&r, 1, 4);
	for (int i = 0; i < 50; i++)
		rte_pmd_verbena_progress(r.port);
	assert_int_equal(receive_all(&r, 1, got), 3);
	assert_int_equal(xstat(r.port, "rx_stopped_drop"), 4);
	assert_int_equal(rte_eth_dev_rx_queue_start(r.port, 1), 0);
	put(&r, 1, 6);
	assert_int_equal(receive_all(&r, 2, got), 6);
	assert_int_equal(got[0], 8);
	assert_int_equal(got[1], 13);
	/* What it had before counts too. */
	assert_int_equal(stats_of(r.port).ipackets, 21);
	assert_int_equal(stats_of(r.port).q_ipackets[1], 13);
	rig_close(&r);
}

static void
port_goes_on_without_a_queue_that_is_refused(void **state)
{
	struct rte_mempool *mp = rte_pktmbuf_pool_create(
		"another", 255, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	struct rig r;

	(void)state;
	assert_non_null(mp);
	start(&r, "");
	assert_int_equal(rte_eth_dev_rx_queue_stop(r.port, 1), 0);
	/* The lower port's buffers are of the common pool. */
	assert_int_equal(setup_rx(&r, 1, 256, mp), -ENOTSUP);
	assert_true(rte_eth_dev_rx_queue_start(r.port, 1) < 0);
	put(&r, 0, 3);
	put(&r, 1, 4);
	for (int i = 0; i < 50; i++)
		rte_pmd_verbena_progress(r.port);
	assert_int_equal(receive_all(&r, 1, NULL), 3);
	assert_int_equal(xstat(r.port, "rx_stopped_drop"), 4);
	assert_int_equal(rte_eth_dev_stop(r.port), 0);
	assert_true(rte_eth_dev_start(r.port) < 0);
	rig_close(&r);
	rte_mempool_free(mp);
}

static void
queue_that_copies_changes_its_pool(void **state)
{
	struct rte_mempool *mp = rte_pktmbuf_pool_create(
		"copies", 511, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	struct rte_mbuf *m;
	struct rig r;

	(void)state;
	assert_non_null(mp);
	start(&r, ",rx_copy=1");
	assert_int_equal(rte_eth_dev_rx_queue_stop(r.port, 1), 0);
	assert_int_equal(setup_rx(&r, 1, 64, mp), 0);
	assert_int_equal(rte_eth_dev_rx_queue_start(r.port, 1), 0);
	put(&r, 1, 1);
	assert_int_equal(rte_eth_rx_burst(r.port, 1, &m, 1), 1);
	assert_ptr_equal(m->pool, mp);
	rte_pktmbuf_free(m);
	rig_close(&r);
	assert_int_equal(rte_mempool_avail_count(mp), 511);
	rte_mempool_free(mp);
}

/* ---- Tx ---- */

static uint16_t
send_one(const struct rig *r, uint16_t queue)
{
	struct rte_mbuf *m = frame_make(pmd_pool, &(struct frame){.payload = 1000});
	uint16_t n = rte_eth_tx_burst(r->port, queue, &m, 1);

	if (n == 0)
		rte_pktmbuf_free(m);
	return n;
}

static void
tx_queue_is_set_up_anew_while_the_port_runs(void **state)
{
	struct rte_eth_txq_info info;
	struct rig r;

	(void)state;
	start(&r, "");
	assert_int_equal(send_one(&r, 1), 1);
	assert_int_equal(rte_eth_tx_queue_setup(r.port, 1, 256, 0, NULL), -EBUSY);
	assert_int_equal(rte_eth_dev_tx_queue_stop(r.port, 1), 0);
	assert_int_equal(rte_eth_tx_queue_setup(r.port, 1, 256, 0, NULL), 0);
	assert_int_equal(rte_eth_tx_queue_info_get(r.port, 1, &info), 0);
	assert_int_equal(info.nb_desc, 256);
	assert_int_equal(send_one(&r, 1), 0);
	assert_int_equal(send_one(&r, 0), 1);
	assert_int_equal(rte_eth_dev_tx_queue_start(r.port, 1), 0);
	assert_int_equal(send_one(&r, 1), 1);
	assert_int_equal(rte_ring_count(r.from_port[1]), 2);
	assert_int_equal(rte_ring_count(r.from_port[0]), 1);
	rig_close(&r);
}

static void
drain(const struct rig *r, unsigned int queue)
{
	struct rte_mbuf *m;

	while (rte_ring_dequeue(r->from_port[queue], (void **)&m) == 0)
		rte_pktmbuf_free(m);
}

/* Sends as much as the queue takes. @return bytes */
static uint64_t
send_for(const struct rig *r, uint16_t queue, uint64_t cycles)
{
	uint64_t begin = rte_rdtsc();
	unsigned int n = 0;

	while (rte_rdtsc() - begin < cycles) {
		n += send_one(r, queue);
		if (n % 64 == 0)
			drain(r, queue);
	}
	drain(r, queue);
	return n * UINT64_C(1042);
}

/* @return whether all of 300 frames are taken, 30 milliseconds' worth at 80 Mbit/s */
static bool
is_unlimited(const struct rig *r, uint16_t queue)
{
	unsigned int n = 0;

	for (unsigned int i = 0; i < 300; i++)
		n += send_one(r, queue);
	drain(r, queue);
	return n == 300;
}

static void
rate_of_a_queue_is_limited(void **state)
{
	const uint64_t rate = 80; /* Mbit/s: 10 bytes a microsecond */
	uint64_t hz = rte_get_tsc_hz(), begin, bytes, us;
	struct rig r;

	(void)state;
	start(&r, "");
	assert_true(rte_eth_set_queue_rate_limit(r.port, 2, 80) < 0);
	assert_int_equal(rte_eth_set_queue_rate_limit(r.port, 1, rate), 0);
	begin = rte_rdtsc();
	bytes = send_for(&r, 1, hz / 10);
	us = (rte_rdtsc() - begin) / (hz / 1000000);
	/* And a millisecond's worth and a frame at the beginning, and one frame that is begun. */
	assert_in_range(bytes, 10 * 100000 / 8, 10 * (us + 1000) + 2 * 1600);
	/* The other one is not, and it is no more when the limit is taken away. */
	assert_true(is_unlimited(&r, 0));
	/* It stays across stop and start. */
	assert_int_equal(rte_eth_dev_stop(r.port), 0);
	assert_int_equal(rte_eth_dev_start(r.port), 0);
	begin = rte_rdtsc();
	bytes = send_for(&r, 1, hz / 50);
	us = (rte_rdtsc() - begin) / (hz / 1000000);
	assert_true(bytes <= 10 * (us + 1000) + 2 * 1600);
	assert_int_equal(rte_eth_set_queue_rate_limit(r.port, 1, 0), 0);
	assert_true(is_unlimited(&r, 1));
	rig_close(&r);
}

/* ---- a lower port that can ---- */

static struct {
	uint16_t queue;
	uint32_t rate, cleaned;
	struct rte_eth_fc_conf fc;
} told;

static int
take_rate(struct rte_eth_dev *dev, uint16_t queue, uint32_t rate)
{
	(void)dev;
	told.queue = queue;
	told.rate = rate;
	return 0;
}

static int
take_fc(struct rte_eth_dev *dev, struct rte_eth_fc_conf *fc)
{
	(void)dev;
	told.fc = *fc;
	return 0;
}

static int
give_fc(struct rte_eth_dev *dev, struct rte_eth_fc_conf *fc)
{
	(void)dev;
	*fc = told.fc;
	return 0;
}

static int
clean(void *txq, uint32_t n)
{
	(void)txq;
	told.cleaned = n;
	return 3;
}

static void
calls_are_passed_to_a_lower_port_that_can(void **state)
{
	struct rte_eth_fc_conf fc = {.mode = RTE_ETH_FC_FULL, .high_water = 77}, back = {0};
	const struct eth_dev_ops *before;
	struct eth_dev_ops able;
	struct rig r;

	(void)state;
	start(&r, "");
	assert_int_equal(rte_eth_dev_flow_ctrl_get(r.port, &back), -ENOTSUP);
	assert_int_equal(rte_eth_tx_done_cleanup(r.port, 1, 8), -ENOTSUP);
	before = rte_eth_devices[r.lower].dev_ops;
	able = *before;
	able.set_queue_rate_limit = take_rate;
	able.flow_ctrl_set = take_fc;
	able.flow_ctrl_get = give_fc;
	able.tx_done_cleanup = clean;
	rte_eth_devices[r.lower].dev_ops = &able;
	assert_int_equal(rte_eth_set_queue_rate_limit(r.port, 1, 80), 0);
	assert_int_equal(told.queue, 1);
	assert_int_equal(told.rate, 80);
	/* It is not limited a second time. */
	assert_true(is_unlimited(&r, 1));
	assert_int_equal(rte_eth_dev_flow_ctrl_set(r.port, &fc), 0);
	assert_int_equal(rte_eth_dev_flow_ctrl_get(r.port, &back), 0);
	assert_int_equal(back.mode, RTE_ETH_FC_FULL);
	assert_int_equal(back.high_water, 77);
	assert_int_equal(rte_eth_tx_done_cleanup(r.port, 1, 8), 3);
	assert_int_equal(told.cleaned, 8);
	rte_eth_devices[r.lower].dev_ops = before;
	rig_close(&r);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rx_queue_is_set_up_anew_while_the_port_runs),
		cmocka_unit_test(port_goes_on_without_a_queue_that_is_refused),
		cmocka_unit_test(queue_that_copies_changes_its_pool),
		cmocka_unit_test(tx_queue_is_set_up_anew_while_the_port_runs),
		cmocka_unit_test(rate_of_a_queue_is_limited),
		cmocka_unit_test(calls_are_passed_to_a_lower_port_that_can),
	};

	pmd_eal(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
