/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports and receiving from them.
 */
#include <rte_ether.h>
#include <rte_pmd_verbena.h>

#include "cases.h"

static struct rte_eth_stats
stats_of(uint16_t port)
{
	struct rte_eth_stats s;

	assert_return_code(rte_eth_stats_get(port, &s), EIO);
	return s;
}

static bool
is_started(uint16_t port)
{
	struct rte_eth_rxq_info info;

	assert_return_code(rte_eth_rx_queue_info_get(port, 0, &info), EINVAL);
	return info.queue_state == RTE_ETH_QUEUE_STATE_STARTED;
}

static void
check_shown(const char *out, uint16_t port)
{
	char text[RTE_ETHER_ADDR_FMT_SIZE];
	struct rte_eth_dev_info info;
	struct rte_ether_addr mac;
	uint16_t mtu;

	assert_return_code(rte_eth_dev_info_get(port, &info), EINVAL);
	assert_return_code(rte_eth_macaddr_get(port, &mac), EINVAL);
	assert_return_code(rte_eth_dev_get_mtu(port, &mtu), EINVAL);
	assert_int_equal(number(out, "rx-queues"), info.nb_rx_queues);
	assert_int_equal(number(out, "tx-queues"), info.nb_tx_queues);
	assert_int_equal(number(out, "reta-size"), info.reta_size);
	assert_int_equal(number(out, "mtu"), mtu);
	holds(out, info.driver_name);
	rte_ether_format_addr(text, sizeof(text), &mac);
	holds(out, text);
}

static void
show_tells_properties(void)
{
	const char *out = run("port show net_verbena1");

	assert_int_equal(number(out, "port"), loop_port());
	check_shown(out, loop_port());
	holds(out, "state started");
	assert_true(is_started(loop_port()));
}

static void
show_lists_owned_ones_too(void)
{
	const char *out = run("port show");
	unsigned int shown = 0;
	uint16_t port;

	for (const char *s = out; s != NULL; s = strstr(s + 1, "\nport "))
		shown++;
	assert_int_equal(shown, rte_eth_dev_count_total());
	RTE_ETH_FOREACH_DEV (port) {
		char start[16];

		snprintf(start, sizeof(start), "port %u  ", port);
		check_shown(strstr(out, start), port);
	}
	/* What is below the device. */
	holds(out, "name net_shmlan0");
	holds(out, "owner net_verbena");
}

static void
stop_stops(void)
{
	run("poller start net_verbena1");
	refuse(-EBUSY, "poller stop", "port stop net_verbena1");
	assert_true(is_started(loop_port()));
	run("poller stop net_verbena1");
	run("port stop net_verbena1");
	assert_false(is_started(loop_port()));
	refuse(-EALREADY, "is stopped", "port stop net_verbena1");
	refuse(-EBUSY, "belongs to net_verbena", "port stop net_shmlan0");
}

static void
start_starts(void)
{
	refuse(-EALREADY, "is started", "port start net_verbena1");
	run("port stop net_verbena1");
	assert_false(is_started(loop_port()));
	run("port start net_verbena1");
	assert_true(is_started(loop_port()));
}

static void
config_changes_queues(void)
{
	struct rte_eth_dev_info info;

	refuse(-EBUSY, "port stop first", "port config net_verbena1 rx-queues 2");
	run("port stop net_verbena1");
	run("port config net_verbena1 rx-queues 2 tx-queues 1 rx-size 256");
	rte_eth_dev_info_get(loop_port(), &info);
	assert_int_equal(info.nb_rx_queues, 2);
	assert_int_equal(info.nb_tx_queues, 1);
	run("port stop net_ring1");
	refuse(-EINVAL, "tx-queues", "port config net_ring1 tx-queues 64");
	run("port start net_ring1");
	run("port config net_verbena1 rx-queues 4 tx-queues 2");
	rte_eth_dev_info_get(loop_port(), &info);
	assert_int_equal(info.nb_rx_queues, 4);
	run("port start net_verbena1");
}

static void
set_changes_properties(void)
{
	uint16_t mtu, before;

	rte_eth_dev_get_mtu(loop_port(), &before);
	run("port set net_verbena1 mtu 1400 promiscuous on allmulticast on");
	rte_eth_dev_get_mtu(loop_port(), &mtu);
	assert_int_equal(mtu, 1400);
	assert_int_equal(rte_eth_promiscuous_get(loop_port()), 1);
	assert_int_equal(rte_eth_allmulticast_get(loop_port()), 1);
	run("port set net_verbena1 mtu %u promiscuous off allmulticast off", before);
	assert_int_equal(rte_eth_promiscuous_get(loop_port()), 0);
	assert_int_equal(rte_eth_allmulticast_get(loop_port()), 0);
	refuse(-EINVAL, "nothing to set", "port set net_verbena1");
	refuse(-ENOTSUP, "does not set mtu to 1400", "port set net_ring1 mtu 1400");
	refuse(-EBUSY, "belongs to net_verbena", "port set net_shmlan0 mtu 1400");
}

static uint64_t
received(void *arg)
{
	return stats_of(loop_port()).ipackets;
}

static void
send_sends(void)
{
	rte_eth_stats_reset(loop_port());
	run("poller start net_verbena1");
	run("port send net_verbena1 count 300 size 100 flows 30 queue 1");
	assert_int_equal(stats_of(loop_port()).opackets, 300);
	/* The ring brings them back. */
	wait_until(received, NULL, 300);
	run("poller stop net_verbena1");
	refuse(-EINVAL, "has no tx-queue 9", "port send net_verbena1 queue 9");
	/* With nobody to receive there is no room for so many. */
	refuse(-ENOBUFS, "is full", "port send net_verbena1 count 100000");
	run("poller start net_verbena1");
}

static void
stats_show_tells_figures(void)
{
	struct rte_eth_stats s;
	const char *out;

	run("poller start net_verbena1");
	run("port send net_verbena1 count 70 size 90");
	run("sleep 20");
	run("poller stop net_verbena1");
	s = stats_of(loop_port());
	out = run("port stats show net_verbena1");
	assert_true(s.opackets >= 70);
	assert_int_equal(number(out, "rx-packets"), s.ipackets);
	assert_int_equal(number(out, "rx-bytes"), s.ibytes);
	assert_int_equal(number(out, "rx-missed"), s.imissed);
	assert_int_equal(number(out, "tx-packets"), s.opackets);
	assert_int_equal(number(out, "tx-bytes"), s.obytes);
}

static void
stats_clear_clears(void)
{
	run("poller start net_verbena1");
	run("port send net_verbena1 count 10");
	run("sleep 20");
	assert_true(stats_of(loop_port()).opackets > 0);
	run("port stats clear net_verbena1");
	assert_int_equal(stats_of(loop_port()).opackets, 0);
	assert_int_equal(stats_of(loop_port()).ipackets, 0);
}

static void
xstats_show_tells_figures(void)
{
	const char *out;

	run("poller start net_verbena1");
	run("port send net_verbena1 count 123 flows 50");
	run("sleep 20");
	run("poller stop net_verbena1");
	out = run("port xstats show net_verbena1");
	assert_true(xstat("tx_good_packets") >= 123);
	assert_int_equal(number(out, "tx_good_packets"), xstat("tx_good_packets"));
	assert_int_equal(number(out, "rx_good_packets"), xstat("rx_good_packets"));
	assert_int_equal(number(out, "rx_q2_packets"), xstat("rx_q2_packets"));
	assert_int_equal(number(out, "rx_ring_full"), xstat("rx_ring_full"));
}

static void
xstats_clear_clears(void)
{
	run("poller start net_verbena1");
	run("port send net_verbena1 count 10");
	run("sleep 20");
	run("poller stop net_verbena1");
	assert_true(xstat("tx_good_packets") > 0);
	run("port xstats clear net_verbena1");
	assert_int_equal(xstat("tx_good_packets"), 0);
	assert_int_equal(xstat("rx_good_packets"), 0);
}

/* ---- receiving ---- */

static int
waiting(void)
{
	int n = 0;

	for (uint16_t q = 0; q < 4; q++)
		n += rte_eth_rx_queue_count(loop_port(), q);
	return n;
}

static uint64_t
missing(void *arg)
{
	return waiting();
}

static void
poller_start_empties_queues(void)
{
	run("port send net_verbena1 count 40 flows 40");
	run("poller start net_verbena1");
	wait_until(missing, NULL, 0);
	assert_non_null(tp_poller_of(loop_port()));
	refuse(-EALREADY, "has a poller", "poller start net_verbena1");
	run("poller stop net_verbena1");
	refuse(-EINVAL, "has rx-queues 0 to 3", "poller start net_verbena1 queues 4");
	refuse(-EBUSY, "belongs to", "poller start net_shmlan0");
	run("poller start net_verbena1 queues 1,3");
	assert_int_equal(tp_poller_of(loop_port())->num, 2);
}

static void
poller_stop_lets_queues_fill(void)
{
	struct rte_eth_stats s;

	run("poller start net_verbena1");
	run("poller stop net_verbena1");
	assert_null(tp_poller_of(loop_port()));
	rte_eth_stats_reset(loop_port());
	run("port send net_verbena1 count 20 flows 20");
	run("sleep 20");
	s = stats_of(loop_port());
	assert_int_equal(s.opackets, 20);
	assert_int_equal(s.ipackets, 0);
	refuse(-ENOENT, "has no poller", "poller stop net_verbena1");
	run("poller start net_verbena1");
	wait_until(received, NULL, 20);
}

static uint64_t
frames_polled(void *arg)
{
	uint64_t n = 0;

	for (uint16_t i = 0; i < tp_poller_of(loop_port())->num; i++)
		n += atomic_load(&tp_poller_of(loop_port())->queue[i].frames);
	return n;
}

static void
poller_show_tells_frames(void)
{
	struct rte_eth_stats s;

	holds(run("poller show"), "no poller");
	rte_eth_stats_reset(loop_port());
	run("poller start net_verbena1");
	run("port send net_verbena1 count 55 flows 9");
	wait_until(frames_polled, NULL, 55);
	s = stats_of(loop_port());
	assert_int_equal(number(run("poller show"), "frames"), s.ipackets);
	assert_int_equal(number(run("poller show"), "port"), loop_port());
}

static void
poller_stats_show_tells_queues(void)
{
	const char *out;
	uint64_t all = 0;

	rte_eth_stats_reset(loop_port());
	run("poller start net_verbena1");
	run("port send net_verbena1 count 200 flows 100");
	wait_until(frames_polled, NULL, 200);
	out = run("poller stats show net_verbena1");
	for (int q = 0; q < 4; q++) {
		assert_int_equal(number(out, "queue"), q);
		assert_int_equal(number(out, "frames"), queue_frames(q));
		all += number(out, "frames");
		out = strchr(out, '\n') + 1;
	}
	assert_int_equal(all, 200);
}

static void
poller_stats_clear_clears(void)
{
	run("poller start net_verbena1");
	run("port send net_verbena1 count 30");
	wait_until(frames_polled, NULL, 30);
	run("poller stats clear net_verbena1");
	assert_int_equal(frames_polled(NULL), 0);
}

/* ---- queues ---- */

static struct rte_pmd_verbena_rxq
rxq(uint16_t queue)
{
	struct rte_pmd_verbena_rxq q;

	assert_return_code(rte_pmd_verbena_rxq_get(loop_port(), queue, &q), EINVAL);
	return q;
}

static uint64_t
waiting_in_queue_2(void *arg)
{
	rte_pmd_verbena_progress(loop_port());
	return rxq(2).count;
}

/* So many frames that wait in queue 2. */
static void
fill_queue(unsigned int n)
{
	run("rss reta set net_verbena1 queues 2");
	run("port send net_verbena1 count %u", n);
	wait_until(waiting_in_queue_2, NULL, n);
	run("rss reta set net_verbena1 queues 0-3");
}

static void
queue_show_tells_fill_levels(void)
{
	const char *out;

	fill_queue(33);
	out = run("queue show net_verbena1");
	out = strstr(out, "queue 2");
	assert_int_equal(number(out, "waiting"), rte_eth_rx_queue_count(loop_port(), 2));
	assert_int_equal(number(out, "waiting"), 33);
	assert_int_equal(number(out, "size"), rxq(2).size);
	assert_int_equal(number(out, "frames"), rxq(2).packets);
	/* Of other drivers as far as ethdev knows. */
	holds(run("queue show net_ring1"), "waiting ");
	refuse(-EBUSY, "belongs to", "queue show net_shmlan0");
}

static void
queue_resize_keeps_frames(void)
{
	uint32_t before = rxq(2).size;

	fill_queue(100);
	run("queue resize net_verbena1 2 4000");
	assert_true(rxq(2).size >= 4000);
	assert_int_equal(rxq(2).count, 100);
	refuse(-EBUSY, "more than 32 frames wait", "queue resize net_verbena1 2 32");
	assert_true(rxq(2).size >= 4000);
	run("queue resize net_verbena1 2 %u", before);
	assert_int_equal(rxq(2).size, before);
	assert_int_equal(rxq(2).count, 100);
	refuse(-EINVAL, "has no queue 9", "queue resize net_verbena1 9 100");
	refuse(-ENODEV, "is none of net_verbena", "queue resize net_ring1 0 100");
}

static void
queue_threshold_tells_once(void)
{
	uint64_t before = rxq(2).thresh_events;

	run("queue threshold net_verbena1 2 90");
	assert_int_equal(rxq(2).avail_thresh, 90);
	fill_queue(rxq(2).size / 4);
	assert_int_equal(rxq(2).thresh_events, before + 1);
	holds(run("sleep 0"), "");
	refuse(-ENOTSUP, "its driver cannot", "queue threshold net_ring1 0 10");
	run("queue threshold net_verbena1 2 0");
	assert_int_equal(rxq(2).avail_thresh, 0);
}

static const struct tp_case cases[] = {
	{"queue show <port>", queue_show_tells_fill_levels},
	{"queue resize <port> <queue> <size>", queue_resize_keeps_frames},
	{"queue threshold <port> <queue> <percent>", queue_threshold_tells_once},
	{"port show", show_lists_owned_ones_too},
	{"port show <port>", show_tells_properties},
	{"port start <port>", start_starts},
	{"port stop <port>", stop_stops},
	{"port config <port>", config_changes_queues},
	{"port set <port>", set_changes_properties},
	{"port send <port>", send_sends},
	{"port stats show <port>", stats_show_tells_figures},
	{"port stats clear <port>", stats_clear_clears},
	{"port xstats show <port>", xstats_show_tells_figures},
	{"port xstats clear <port>", xstats_clear_clears},
	{"poller show", poller_show_tells_frames},
	{"poller start <port>", poller_start_empties_queues},
	{"poller stop <port>", poller_stop_lets_queues_fill},
	{"poller stats show <port>", poller_stats_show_tells_queues},
	{"poller stats clear <port>", poller_stats_clear_clears},
};

const struct tp_cases port_cases = TP_CASES(cases);
