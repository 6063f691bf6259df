/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands about the prompt and the device.
 */
#include <stdio.h>

#include <rte_cycles.h>
#include <rte_pmd_verbena.h>

#include "cases.h"

static void
help_lists_all_families(void)
{
	const char *out = run("help");

	for (int f = 0; tp_families[f] != NULL; f++)
		holds(out, tp_families[f]->help);
}

static void
help_tells_commands_and_options(void)
{
	const char *out = run("help srq");

	holds(out, "srq create <srq> [size <number>] [sge <number>]");
	holds(out, "srq destroy <srq>");
	out = run("help qp create");
	holds(out, "rc|uc|ud|raw|rss");
	assert_null(strstr(out, "qp destroy"));
	/* A command that stands in a family of another name. */
	holds(run("help ping"), "measures round trips");
	refuse(-ENOENT, "there is no command \"nonsense\"", "help nonsense");
}

static void
sleep_waits(void)
{
	uint64_t began = tp_now();

	run("sleep 20");
	assert_true(tp_now() - began >= 20000000);
}

static void
quit_ends_the_prompt(void)
{
	assert_false(tp_quit);
	run("quit");
	assert_true(tp_quit);
}

static void
device_show_tells_addresses(void)
{
	const char *out = run("device show");
	union vrb_gid gid;
	char text[64];
	uint16_t mtu;

	assert_int_equal(number(out, "port"), tp_device_port());
	assert_return_code(rte_pmd_verbena_gid_get(tp_device_port(), 0, &gid), ENODEV);
	tp_gid_text(&gid, text);
	holds(out, text);
	assert_return_code(rte_eth_dev_get_mtu(tp_device_port(), &mtu), ENODEV);
	assert_int_equal(number(out, "mtu"), mtu);
	assert_int_equal(number(out, "path-mtu"), vrb_engine_max_mtu(tp_engine()));
}

static void
device_stats_tells_the_counters(void)
{
	const struct vrb_stats *s = vrb_engine_stats(tp_engine());
	const char *out;

	make_pair("rc");
	run("sink start 1");
	run("send 2 count 10");
	out = run("device stats");
	assert_true(s->tx_packets > 0);
	assert_int_equal(number(out, "tx-packets"), s->tx_packets);
	assert_int_equal(number(out, "rx-bytes"), s->rx_bytes);
	assert_int_equal(number(out, "tx-acks"), s->tx_acks);
}

static const struct tp_case cases[] = {
	{"help", help_lists_all_families},
	{"help <command>", help_tells_commands_and_options},
	{"sleep <ms>", sleep_waits},
	{"quit", quit_ends_the_prompt},
	{"device show", device_show_tells_addresses},
	{"device stats", device_stats_tells_the_counters},
};

const struct tp_cases base_cases = TP_CASES(cases);
