/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_verbena as a port: made and closed, hidden lower port, frames both ways, figures, restarts,
 * and what it refuses.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_dev.h>

#include "util.h"

static void
send_and_receive(const struct rig *r, unsigned int n)
{
	struct rte_mbuf *pkts[32];
	unsigned int got = 0;

	for (unsigned int i = 0; i < n; i++) {
		struct frame f = {.src = i, .dst = 2, .seq = i};

		wire_put(r, 0, &f);
	}
	while (got < n) {
		uint16_t k = rte_eth_rx_burst(r->port, 0, pkts, 32);

		assert_true(k > 0);
		for (uint16_t i = 0; i < k; i++) {
			assert_int_equal(frame_seq(pkts[i]), got + i);
			assert_int_equal(pkts[i]->port, r->port);
		}
		assert_int_equal(rte_eth_tx_burst(r->port, 0, pkts, k), k);
		got += k;
	}
	assert_int_equal(rte_eth_rx_burst(r->port, 0, pkts, 32), 0);
	assert_int_equal(rte_ring_count(r->from_port[0]), n);
	for (unsigned int i = 0; i < n; i++) {
		assert_int_equal(rte_ring_dequeue(r->from_port[0], (void **)&pkts[0]), 0);
		assert_int_equal(frame_seq(pkts[0]), i);
		rte_pktmbuf_free(pkts[0]);
	}
}

static void
frames_pass_directly_and_in_order(void **state)
{
	struct setup s = {0};
	struct rte_eth_stats st;
	struct rte_pmd_verbena_rxq q;
	struct rig r;

	(void)state;
	rig_make(&r, 1, "");
	assert_int_equal(rig_start(&r, &s), 0);
	assert_int_equal(rte_pmd_verbena_poller_count(r.port), 0);
	assert_int_equal(rte_pmd_verbena_rxq_get(r.port, 0, &q), 0);
	assert_true(q.direct);
	send_and_receive(&r, 100);
	st = stats_of(r.port);
	assert_int_equal(st.ipackets, 100);
	assert_int_equal(st.opackets, 100);
	assert_int_equal(st.q_ipackets[0], 100);
	assert_int_equal(rte_eth_stats_reset(r.port), 0);
	st = stats_of(r.port);
	assert_int_equal(st.ipackets + st.opackets + st.ibytes + st.obytes, 0);
	rig_close(&r);
}

static void
frames_pass_by_pollers_in_order(void **state)
{
	struct setup s = {0};
	struct rte_eth_stats st;
	struct rig r;

	(void)state;
	rig_make(&r, 1, ",pollers=1");
	assert_int_equal(rig_start(&r, &s), 0);
	assert_int_equal(rte_pmd_verbena_poller_count(r.port), 1);
	send_and_receive(&r, 100);
	st = stats_of(r.port);
	assert_int_equal(st.ipackets, 100);
	assert_int_equal(st.opackets, 100);
	assert_int_equal(st.ibytes, 100 * (14 + 20 + 8 + 4));
	assert_int_equal(st.q_ipackets[0], 100);
	assert_int_equal(rte_eth_stats_reset(r.port), 0);
	send_and_receive(&r, 10);
	assert_int_equal(stats_of(r.port).ipackets, 10);
	rig_close(&r);
}

static void
figures_and_frames_survive_restarts(void **state)
{
	struct setup s = {0};
	struct rig r;

	(void)state;
	rig_make(&r, 1, ",pollers=1");
	for (unsigned int i = 1; i <= 5; i++) {
		assert_int_equal(rig_start(&r, &s), 0);
		send_and_receive(&r, 50);
		assert_int_equal(stats_of(r.port).ipackets, 50 * i);
		assert_int_equal(rte_eth_dev_stop(r.port), 0);
	}
	/* Without being configured anew. */
	assert_int_equal(rte_eth_dev_start(r.port), 0);
	send_and_receive(&r, 50);
	assert_int_equal(stats_of(r.port).ipackets, 300);
	rig_close(&r);
}

static void
frames_that_wait_are_freed_at_stop(void **state)
{
	struct rte_mbuf *m;
	struct setup s = {0};
	struct rig r;

	(void)state;
	rig_make(&r, 1, ",pollers=1");
	assert_int_equal(rig_start(&r, &s), 0);
	for (unsigned int i = 0; i < 10; i++) {
		struct frame f = {.src = i};

		wire_put(&r, 0, &f);
	}
	assert_int_equal(rte_eth_rx_burst(r.port, 0, &m, 1), 1);
	rte_pktmbuf_free(m);
	assert_int_equal(rte_eth_rx_queue_count(r.port, 0), 9);
	assert_int_equal(rte_eth_rx_descriptor_status(r.port, 0, 8), RTE_ETH_RX_DESC_DONE);
	assert_int_equal(rte_eth_rx_descriptor_status(r.port, 0, 9), RTE_ETH_RX_DESC_AVAIL);
	assert_int_equal(rte_eth_dev_stop(r.port), 0);
	assert_int_equal(rte_eth_dev_start(r.port), 0);
	assert_int_equal(rte_eth_rx_burst(r.port, 0, &m, 1), 0);
	rig_close(&r);
}

static void
lower_port_is_hidden_and_given_back(void **state)
{
	struct rte_eth_dev_owner owner;
	uint16_t port, seen = 0;
	struct rig r;

	(void)state;
	rig_make(&r, 1, "");
	RTE_ETH_FOREACH_DEV (port) {
		assert_int_equal(port, r.port);
		seen++;
	}
	assert_int_equal(seen, 1);
	assert_int_equal(rte_eth_dev_owner_get(r.lower, &owner), 0);
	assert_int_not_equal(owner.id, RTE_ETH_DEV_NO_OWNER);
	assert_int_equal(rte_pmd_verbena_lower(r.port, &port), 0);
	assert_int_equal(port, r.lower);
	assert_int_equal(rte_eth_dev_close(r.port), 0);
	assert_int_equal(rte_eth_dev_owner_get(r.lower, &owner), 0);
	assert_int_equal(owner.id, RTE_ETH_DEV_NO_OWNER);
	rig_close(&r);
}

static void
lower_port_of_another_is_refused(void **state)
{
	char lower[RTE_ETH_NAME_MAX_LEN], args[128];
	struct rig r;

	(void)state;
	rig_make(&r, 1, "");
	assert_int_equal(rte_eth_dev_get_name_by_port(r.lower, lower), 0);
	snprintf(args, sizeof(args), "port=%s", lower);
	assert_true(rte_vdev_init("net_verbena_second", args) < 0);
	/* And the first one works on. */
	send_and_receive((assert_int_equal(rig_start(&r, &(struct setup){0}), 0), &r), 10);
	rig_close(&r);
}

static void
lower_port_is_made_and_taken_away(void **state)
{
	uint16_t port, lower;

	(void)state;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(
			rte_vdev_init("net_verbena_own", "dev(net_null_own,size=128,copy=0)"), 0);
		assert_int_equal(rte_eth_dev_get_port_by_name("net_verbena_own", &port), 0);
		assert_int_equal(rte_eth_dev_get_port_by_name("net_null_own", &lower), 0);
		assert_int_equal(rte_eth_dev_close(port), 0);
		assert_true(rte_eth_dev_get_port_by_name("net_null_own", &lower) < 0);
		assert_int_equal(rte_vdev_uninit("net_verbena_own"), 0);
	}
}

static void
ports_nest(void **state)
{
	uint16_t port;

	(void)state;
	assert_int_equal(rte_vdev_init("net_verbena_outer",
				 "dev(net_verbena_inner,dev(net_null_in,size=64,copy=0),reta=64),"
				 "reta=256"),
		0);
	assert_int_equal(rte_eth_dev_get_port_by_name("net_verbena_inner", &port), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name("net_null_in", &port), 0);
	assert_int_equal(rte_vdev_uninit("net_verbena_outer"), 0);
	assert_true(rte_eth_dev_get_port_by_name("net_null_in", &port) < 0);
}

static void
wrong_arguments_are_refused(void **state)
{
	static const char *const wrong[] = {
		"",
		"dev(net_null_x",
		"dev(net_null_x))",
		"dev(net_null_x)y",
		"dev()",
		"dev(net_null_x),port=net_null_y",
		"port=",
		"port=net_not_there",
		"dev(net_not_there0)",
		"dev(net_null_x),reta=100",
		"dev(net_null_x),reta=32",
		"dev(net_null_x),reta=2048",
		"dev(net_null_x),reta=128x",
		"dev(net_null_x),reta=128,reta=128",
		"dev(net_null_x),rss_key=41",
		"dev(net_null_x),pollers=0",
		"dev(net_null_x),pollers=-1",
		"dev(net_null_x),nonsense=1",
		"dev(net_null_x),nonsense",
		"dev(net_null_x),ip=300.1.1.1",
		"dev(net_null_x),ip=224.0.0.1",
	};
	uint16_t port;

	(void)state;
	for (size_t i = 0; i < RTE_DIM(wrong); i++) {
		assert_true(rte_vdev_init("net_verbena_wrong", wrong[i]) < 0);
		/* Nothing is left behind. */
		assert_true(rte_eth_dev_get_port_by_name("net_verbena_wrong", &port) < 0);
		assert_true(rte_eth_dev_get_port_by_name("net_null_x", &port) < 0);
	}
}

/* ---- hot unplug ---- */

static _Atomic int removals;

static int
count_removal(uint16_t port, enum rte_eth_event_type type, void *arg, void *ret)
{
	(void)port;
	(void)arg;
	(void)ret;
	assert_int_equal(type, RTE_ETH_EVENT_INTR_RMV);
	removals++;
	return 0;
}

static void
unplugged(const char *args)
{
	struct rte_mbuf *m = NULL;
	struct setup s = {0};
	char lower[RTE_ETH_NAME_MAX_LEN];
	struct rte_eth_link link;
	struct rig r;

	rig_make(&r, 1, args);
	assert_int_equal(rig_start(&r, &s), 0);
	rte_eth_dev_callback_register(r.port, RTE_ETH_EVENT_INTR_RMV, count_removal, NULL);
	removals = 0;
	assert_int_equal(rte_eth_dev_get_name_by_port(r.lower, lower), 0);
	assert_int_equal(rte_vdev_uninit(lower), 0);
	for (int i = 0; i < 500 && removals == 0; i++)
		usleep(10000);
	assert_int_equal(removals, 1);
	/* The port goes on in name only. */
	assert_int_equal(rte_eth_rx_burst(r.port, 0, &m, 1), 0);
	m = frame_make(pmd_pool, &(struct frame){.src = 1});
	assert_int_equal(rte_eth_tx_burst(r.port, 0, &m, 1), 0);
	rte_pktmbuf_free(m);
	assert_int_equal(rte_eth_link_get_nowait(r.port, &link), 0);
	assert_int_equal(link.link_status, RTE_ETH_LINK_DOWN);
	assert_true(rte_eth_promiscuous_enable(r.port) < 0);
	assert_true(rte_pmd_verbena_lower(r.port, &(uint16_t){0}) < 0);
	assert_int_equal(rte_eth_dev_stop(r.port), 0);
	assert_true(rte_eth_dev_start(r.port) < 0);
	rig_close(&r);
}

static void
unplugged_lower_port_is_told_when_direct(void **state)
{
	(void)state;
	unplugged("");
}

static void
unplugged_lower_port_is_told_with_pollers(void **state)
{
	(void)state;
	unplugged(",pollers=1");
}

/* ---- the rest ---- */

static void
extended_figures_have_names(void **state)
{
	struct rte_eth_xstat_name names[256];
	struct rte_eth_xstat values[256];
	struct rig r;
	int n;

	(void)state;
	rig_make(&r, 1, "");
	n = rte_eth_xstats_get_names(r.port, NULL, 0);
	assert_in_range(n, 40, 256);
	assert_int_equal(rte_eth_xstats_get_names(r.port, names, 256), n);
	assert_int_equal(rte_eth_xstats_get(r.port, values, 256), n);
	for (int i = 0; i < n; i++) {
		assert_true(names[i].name[0] != '\0');
		for (int k = 0; k < i; k++)
			assert_string_not_equal(names[i].name, names[k].name);
	}
	rig_close(&r);
}

static void
more_tx_queues_than_the_lower_port_share(void **state)
{
	struct setup s = {.txq = 4};
	struct rte_mbuf *m;
	struct rig r;

	(void)state;
	rig_make(&r, 1, "");
	assert_int_equal(rig_start(&r, &s), 0);
	for (uint16_t q = 0; q < 4; q++) {
		m = frame_make(pmd_pool, &(struct frame){.src = q});
		assert_int_equal(rte_eth_tx_burst(r.port, q, &m, 1), 1);
	}
	assert_int_equal(rte_ring_count(r.from_port[0]), 4);
	rig_close(&r);
}

static void
queues_of_the_lower_port_are_ours_one_by_one(void **state)
{
	struct setup s = {.rxq = 4, .txq = 4};
	struct rte_mbuf *m;
	struct rig r;

	(void)state;
	rig_make(&r, 4, "");
	assert_int_equal(rig_start(&r, &s), 0);
	assert_int_equal(rte_pmd_verbena_poller_count(r.port), 0);
	for (uint16_t q = 0; q < 4; q++) {
		struct frame f = {.src = q, .seq = q};

		wire_put(&r, q, &f);
		assert_int_equal(rte_eth_rx_burst(r.port, q, &m, 1), 1);
		assert_int_equal(frame_seq(m), q);
		assert_int_equal(rte_eth_tx_burst(r.port, q, &m, 1), 1);
		assert_int_equal(rte_ring_count(r.from_port[q]), 1);
	}
	rig_close(&r);
}

static void
port_tells_about_itself(void **state)
{
	struct setup s = {0};
	struct rte_eth_burst_mode mode;
	struct rte_eth_rxq_info rxq;
	struct rte_eth_dev_info info;
	char version[64];
	FILE *file;
	struct rig r;

	(void)state;
	rig_make(&r, 1, ",reta=512,rss_key=52");
	assert_int_equal(rig_start(&r, &s), 0);
	assert_int_equal(rte_eth_dev_info_get(r.port, &info), 0);
	assert_int_equal(info.reta_size, 512);
	assert_int_equal(info.hash_key_size, 52);
	assert_true(info.dev_capa & RTE_ETH_DEV_CAPA_RXQ_SHARE);
	assert_int_equal(rte_eth_rx_queue_info_get(r.port, 0, &rxq), 0);
	assert_ptr_equal(rxq.mp, pmd_pool);
	assert_int_equal(rxq.nb_desc, 1024);
	assert_int_equal(rte_eth_rx_burst_mode_get(r.port, 0, &mode), 0);
	assert_string_equal(mode.info, "Direct");
	assert_int_equal(rte_eth_dev_fw_version_get(r.port, version, sizeof(version)), 0);
	assert_memory_equal(version, "Verbena", 7);
	file = fopen("/dev/null", "w");
	assert_int_equal(rte_eth_dev_priv_dump(r.port, file), 0);
	fclose(file);
	rig_close(&r);
}

static void
calls_of_other_ports_answer_enodev(void **state)
{
	struct rte_pmd_verbena_rxq q;
	uint16_t port;

	(void)state;
	assert_int_equal(rte_vdev_init("net_null_other", ""), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name("net_null_other", &port), 0);
	assert_int_equal(rte_pmd_verbena_rxq_get(port, 0, &q), -ENODEV);
	assert_int_equal(rte_pmd_verbena_poller_count(port), -ENODEV);
	assert_int_equal(rte_pmd_verbena_ip_set(port, "198.18.0.1"), -ENODEV);
	assert_null(rte_pmd_verbena_engine(port));
	rte_pmd_verbena_progress(port);
	assert_int_equal(rte_vdev_uninit("net_null_other"), 0);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_pass_directly_and_in_order),
		cmocka_unit_test(frames_pass_by_pollers_in_order),
		cmocka_unit_test(figures_and_frames_survive_restarts),
		cmocka_unit_test(frames_that_wait_are_freed_at_stop),
		cmocka_unit_test(lower_port_is_hidden_and_given_back),
		cmocka_unit_test(lower_port_of_another_is_refused),
		cmocka_unit_test(lower_port_is_made_and_taken_away),
		cmocka_unit_test(ports_nest),
		cmocka_unit_test(wrong_arguments_are_refused),
		cmocka_unit_test(unplugged_lower_port_is_told_when_direct),
		cmocka_unit_test(unplugged_lower_port_is_told_with_pollers),
		cmocka_unit_test(extended_figures_have_names),
		cmocka_unit_test(more_tx_queues_than_the_lower_port_share),
		cmocka_unit_test(queues_of_the_lower_port_are_ours_one_by_one),
		cmocka_unit_test(port_tells_about_itself),
		cmocka_unit_test(calls_of_other_ports_answer_enodev),
	};

	pmd_eal(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
