/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ethdev ports and what receives from them.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_ether.h>

#include "commands.h"
#include "ports.h"
#include "rte_pmd_verbena.h"
#include "traffic.h"

/* ---- showing ---- */

static void
show_link(uint16_t port)
{
	struct rte_eth_link link;

	if (rte_eth_link_get_nowait(port, &link) < 0)
		return;
	tp_row("link", "%s", link.link_status == RTE_ETH_LINK_UP ? "up" : "down");
	if (link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		tp_row("speed", "%u", link.link_speed);
}

static void
show(uint16_t port)
{
	char text[RTE_ETHER_ADDR_FMT_SIZE], name[RTE_ETH_NAME_MAX_LEN];
	struct rte_eth_dev_info info;
	struct rte_ether_addr mac;
	uint16_t mtu;

	tp_row("port", "%u", port);
	if (rte_eth_dev_get_name_by_port(port, name) == 0)
		tp_row("name", "%s", name);
	if (rte_eth_dev_info_get(port, &info) == 0) {
		tp_row("driver", "%s", info.driver_name);
		tp_row("rx-queues", "%u", info.nb_rx_queues);
		tp_row("tx-queues", "%u", info.nb_tx_queues);
		tp_row("reta-size", "%u", info.reta_size);
	}
	if (rte_eth_macaddr_get(port, &mac) == 0) {
		rte_ether_format_addr(text, sizeof(text), &mac);
		tp_row("mac", "%s", text);
	}
	if (rte_eth_dev_get_mtu(port, &mtu) == 0)
		tp_row("mtu", "%u", mtu);
	tp_row("state", "%s", tp_port_state(port));
	show_link(port);
	tp_row("promiscuous", "%s", tp_on_off[rte_eth_promiscuous_get(port) == 1]);
	tp_row("allmulticast", "%s", tp_on_off[rte_eth_allmulticast_get(port) == 1]);
	if (!tp_port_is_ours(port))
		tp_row("owner", "%s", tp_port_owner(port));
	tp_row_end();
}

static int
port_show(const struct tp_call *call)
{
	unsigned int n = 0;

	if (call->cmd->args != NULL) {
		show(tp_num(call, "port", 0));
		return 0;
	}
	for (uint16_t port = 0; port < RTE_MAX_ETHPORTS; port++) {
		if (!rte_eth_dev_is_valid_port(port))
			continue;
		show(port);
		n++;
	}
	if (n == 0)
		tp_print("no port\n");
	return 0;
}

static int
stats_show(const struct tp_call *call)
{
	uint16_t port = tp_num(call, "port", 0);
	struct rte_eth_stats s;
	int rc = rte_eth_stats_get(port, &s);

	if (rc < 0)
		return tp_refuse(rc, "port %u has no statistics: %s", port, strerror(-rc));
	tp_row("port", "%u", port);
	tp_row("rx-packets", "%" PRIu64, s.ipackets);
	tp_row("rx-bytes", "%" PRIu64, s.ibytes);
	tp_row("rx-missed", "%" PRIu64, s.imissed);
	tp_row("rx-errors", "%" PRIu64, s.ierrors);
	tp_row("rx-nombuf", "%" PRIu64, s.rx_nombuf);
	tp_row("tx-packets", "%" PRIu64, s.opackets);
	tp_row("tx-bytes", "%" PRIu64, s.obytes);
	tp_row("tx-errors", "%" PRIu64, s.oerrors);
	tp_row_end();
	return 0;
}

static int
stats_clear(const struct tp_call *call)
{
	uint16_t port = tp_num(call, "port", 0);
	int rc = rte_eth_stats_reset(port);

	return rc < 0 ? tp_refuse(rc, "port %u does not clear its statistics: %s", port,
				strerror(-rc))
		      : 0;
}

static int
xstats_show(const struct tp_call *call)
{
	uint16_t port = tp_num(call, "port", 0);
	int n = rte_eth_xstats_get_names(port, NULL, 0), rc = -ENOMEM;
	struct rte_eth_xstat_name *names = calloc(RTE_MAX(n, 1), sizeof(*names));
	struct rte_eth_xstat *values = calloc(RTE_MAX(n, 1), sizeof(*values));

	if (n < 0)
		rc = n;
	else if (names != NULL && values != NULL)
		rc = rte_eth_xstats_get_names(port, names, n) == n &&
				     rte_eth_xstats_get(port, values, n) == n
			     ? 0
			     : -EAGAIN;
	for (int i = 0; rc == 0 && i < n; i++)
		tp_print("%s %" PRIu64 "\n", names[values[i].id].name, values[i].value);
	free(names);
	free(values);
	return rc < 0 ? tp_refuse(rc, "port %u has no extended statistics: %s", port, strerror(-rc))
		      : 0;
}

static int
xstats_clear(const struct tp_call *call)
{
	uint16_t port = tp_num(call, "port", 0);
	int rc = rte_eth_xstats_reset(port);

	return rc < 0 ? tp_refuse(rc, "port %u does not clear its extended statistics: %s", port,
				strerror(-rc))
		      : 0;
}

/* ---- changing ---- */

static int
port_start(const struct tp_call *call)
{
	return tp_port_start(tp_num(call, "port", 0));
}

static int
port_stop(const struct tp_call *call)
{
	return tp_port_stop(tp_num(call, "port", 0));
}

static int
port_config(const struct tp_call *call)
{
	uint16_t port = tp_num(call, "port", 0);
	struct rte_eth_dev_info info;
	struct tp_port_conf conf = {0};
	int rc = tp_port_check_ours(port);

	if (rc < 0)
		return rc;
	if (tp_port_is_started(port))
		return tp_refuse(
			-EBUSY, "port %u is started: poller stop and port stop first", port);
	rc = rte_eth_dev_info_get(port, &info);
	if (rc < 0)
		return tp_refuse(rc, "port %u does not tell what it can", port);
	conf.rx_queues = tp_num(call, "rx-queues", RTE_MAX(info.nb_rx_queues, 1));
	conf.tx_queues = tp_num(call, "tx-queues", RTE_MAX(info.nb_tx_queues, 1));
	conf.rx_size = tp_num(call, "rx-size", 512);
	conf.tx_size = tp_num(call, "tx-size", 512);
	return tp_port_configure(port, &conf);
}

static int
port_set(const struct tp_call *call)
{
	uint16_t port = tp_num(call, "port", 0);
	const char *what = NULL;
	int rc = tp_port_check_ours(port);

	if (rc < 0)
		return rc;
	if (tp_given(call, "mtu")) {
		what = "mtu";
		rc = rte_eth_dev_set_mtu(port, tp_num(call, what, 0));
	}
	if (rc == 0 && tp_given(call, "promiscuous")) {
		what = "promiscuous";
		rc = tp_num(call, what, 0) ? rte_eth_promiscuous_enable(port)
					   : rte_eth_promiscuous_disable(port);
	}
	if (rc == 0 && tp_given(call, "allmulticast")) {
		what = "allmulticast";
		rc = tp_num(call, what, 0) ? rte_eth_allmulticast_enable(port)
					   : rte_eth_allmulticast_disable(port);
	}
	if (rc == 0 && tp_given(call, "link")) {
		what = "link";
		rc = tp_num(call, what, 0) ? rte_eth_dev_set_link_up(port)
					   : rte_eth_dev_set_link_down(port);
	}
	if (what == NULL)
		return tp_refuse(
			-EINVAL, "nothing to set: give mtu, promiscuous, allmulticast or link");
	return rc < 0 ? tp_refuse(rc, "port %u does not set %s to %s: %s", port, what,
				tp_text(call, what), strerror(-rc))
		      : 0;
}

static int
port_send(const struct tp_call *call)
{
	uint16_t port = tp_num(call, "port", 0), queue = tp_num(call, "queue", 0);
	struct tp_job_conf frames = {
		.size = tp_num(call, "size", 64),
		.count = tp_num(call, "count", 1000),
		.flows = tp_num(call, "flows", 1),
	};
	struct rte_eth_dev_info info;
	int rc = tp_port_check_ours(port);

	if (rc < 0)
		return rc;
	if (!tp_port_is_started(port))
		return tp_refuse(-ENETDOWN, "port %u is stopped: port start %u", port, port);
	if (rte_eth_dev_info_get(port, &info) < 0 || queue >= info.nb_tx_queues)
		return tp_refuse(-EINVAL, "port %u has no tx-queue %u", port, queue);
	rte_eth_macaddr_get(port, (struct rte_ether_addr *)frames.src_mac);
	memcpy(frames.dst_mac,
		tp_given(call, "dst-mac") ? tp_value(call, "dst-mac")->bytes : frames.src_mac,
		sizeof(frames.dst_mac));
	rc = tp_port_send(port, queue, &frames);
	if (rc < 0)
		return rc;
	tp_print("port %u  sent %d\n", port, rc);
	if ((uint64_t)rc < frames.count)
		return tp_refuse(
			-ENOBUFS, "port %u is full: nobody takes frames at its other end", port);
	return 0;
}

/* ---- pollers ---- */

static int
poller_start(const struct tp_call *call)
{
	uint32_t queues[TP_MAX_QUEUES];
	unsigned int num = tp_nums(tp_value(call, "queues"), queues, RTE_DIM(queues));

	return tp_poller_start(tp_num(call, "port", 0), queues, num);
}

static struct tp_poller *
find_poller(const struct tp_call *call)
{
	uint16_t port = tp_num(call, "port", 0);
	struct tp_poller *p = tp_poller_of(port);

	if (p == NULL)
		tp_refuse(-ENOENT, "port %u has no poller (poller show lists them)", port);
	return p;
}

static int
poller_stop(const struct tp_call *call)
{
	struct tp_poller *p = find_poller(call);

	if (p == NULL)
		return -ENOENT;
	tp_poller_stop(p);
	return 0;
}

/* What works within the driver: in rte_eth_rx_burst(), or on a service core. */
static void
show_driver_pollers(uint16_t port)
{
	int n = rte_pmd_verbena_poller_count(port);

	for (int i = 0; i < n; i++) {
		struct rte_pmd_verbena_poller p;

		if (rte_pmd_verbena_poller_get(port, i, &p) < 0)
			continue;
		tp_row("driver-poller", "port %u", port);
		tp_row("number", "%d", i);
		tp_row("run-by", "%s", p.by_service ? "service" : "rx-burst");
		tp_row("lower-queues", "%u", p.num_queues);
		tp_row("rounds", "%" PRIu64, p.rounds);
		tp_row("empty", "%" PRIu64, p.empty);
		tp_row("packets", "%" PRIu64, p.packets);
		tp_row("roce", "%" PRIu64, p.roce);
		tp_row("flow", "%" PRIu64, p.flow);
		tp_row("busy", "%" PRIu64, p.busy);
		tp_row_end();
	}
}

static int
poller_show(const struct tp_call *call)
{
	uint16_t port;

	for (struct tp_poller *p = tp_pollers(); p != NULL; p = p->next) {
		uint64_t frames = 0;

		for (uint16_t i = 0; i < p->num; i++)
			frames += atomic_load(&p->queue[i].frames);
		tp_row("poller", "port %u", p->port);
		tp_row("queues", "%u", p->num);
		tp_row("frames", "%" PRIu64, frames);
		tp_row("rounds", "%" PRIu64, atomic_load(&p->rounds));
		tp_row("empty", "%" PRIu64, atomic_load(&p->empty));
		tp_row_end();
	}
	if (tp_pollers() == NULL)
		tp_print("no poller\n");
	RTE_ETH_FOREACH_DEV (port)
		show_driver_pollers(port);
	return 0;
}

static int
poller_stats_show(const struct tp_call *call)
{
	struct tp_poller *p = find_poller(call);

	if (p == NULL)
		return -ENOENT;
	for (uint16_t i = 0; i < p->num; i++) {
		tp_row("poller", "port %u", p->port);
		tp_row("queue", "%u", p->queue[i].id);
		tp_row("frames", "%" PRIu64, atomic_load(&p->queue[i].frames));
		tp_row("bytes", "%" PRIu64, atomic_load(&p->queue[i].bytes));
		tp_row_end();
	}
	return 0;
}

static int
poller_stats_clear(const struct tp_call *call)
{
	struct tp_poller *p = find_poller(call);

	if (p == NULL)
		return -ENOENT;
	for (uint16_t i = 0; i < p->num; i++) {
		atomic_store(&p->queue[i].frames, 0);
		atomic_store(&p->queue[i].bytes, 0);
	}
	atomic_store(&p->rounds, 0);
	atomic_store(&p->empty, 0);
	return 0;
}

/* ---- the tables ---- */

#define QUEUES_MAX TP_MAX_QUEUES

static const char *const link_words[] = {"down", "up", NULL};

static const struct tp_arg port_args[] = {TP_PORT_ARG, {NULL}};
static const struct tp_arg config_args[] = {
	TP_PORT_ARG,
	{.name = "rx-queues",
		.type = TP_NUM,
		.min = 1,
		.max = QUEUES_MAX,
		.help = "more than one: with RSS; as it has now"},
	{.name = "tx-queues", .type = TP_NUM, .min = 1, .max = QUEUES_MAX, .help = "as it has now"},
	{.name = "rx-size",
		.type = TP_NUM,
		.min = 1,
		.max = 32768,
		.help = "descriptors of an rx-queue; 512"},
	{.name = "tx-size",
		.type = TP_NUM,
		.min = 1,
		.max = 32768,
		.help = "descriptors of a tx-queue; 512"},
	{NULL},
};
static const struct tp_arg set_args[] = {
	TP_PORT_ARG,
	{.name = "mtu", .type = TP_NUM, .min = 68, .max = 65535, .help = "bytes of an IP packet"},
	{.name = "promiscuous",
		.type = TP_CHOICE,
		.words = tp_on_off,
		.help = "it receives frames to any address"},
	{.name = "allmulticast",
		.type = TP_CHOICE,
		.words = tp_on_off,
		.help = "it receives frames to any group"},
	{.name = "link", .type = TP_CHOICE, .words = link_words, .help = "of the port"},
	{NULL},
};
static const struct tp_arg send_args[] = {
	TP_PORT_ARG,
	{.name = "count", .type = TP_NUM, .min = 1, .max = 1000000000, .help = "frames; 1000"},
	{.name = "size", .type = TP_NUM, .min = 60, .max = 9000, .help = "bytes of a frame; 64"},
	{.name = "flows",
		.type = TP_NUM,
		.min = 1,
		.max = 60000,
		.help = "different source ports; 1"},
	{.name = "dst-mac", .type = TP_MAC, .help = "where to; the port's own address"},
	{.name = "queue", .type = TP_NUM, .max = TP_MAX_QUEUES - 1, .help = "its tx-queue; 0"},
	{NULL},
};
static const struct tp_arg poller_args[] = {
	TP_PORT_ARG,
	{.name = "queues",
		.type = TP_NUMS,
		.max = TP_MAX_QUEUES - 1,
		.help = "which rx-queues, like 0,2-3; all"},
	{NULL},
};

static const struct tp_cmd port_cmds[] = {
	{"port show", "shows all ports, also those that belong to a driver above them", NULL,
		port_show},
	{"port show <port>", "shows a port", port_args, port_show},
	{"port start <port>", "starts it, so that it sends and receives", port_args, port_start},
	{"port stop <port>", "stops it, for example to configure it", port_args, port_stop},
	{"port config <port>", "gives a stopped port other queues", config_args, port_config},
	{"port set <port>", "changes a property of it while it runs", set_args, port_set},
	{"port send <port>", "sends UDP frames by ethdev, for example to see how RSS spreads them",
		send_args, port_send},
	{"port stats show <port>", "shows its basic statistics", port_args, stats_show},
	{"port stats clear <port>", "sets its basic statistics to zero", port_args, stats_clear},
	{"port xstats show <port>", "shows its extended statistics", port_args, xstats_show},
	{"port xstats clear <port>", "sets its extended statistics to zero", port_args,
		xstats_clear},
};

static const struct tp_cmd poller_cmds[] = {
	{"poller show", "shows which ports are received from, and the pollers within net_verbena",
		NULL, poller_show},
	{"poller start <port>", "receives from rx-queues beside the prompt, counts, and frees",
		poller_args, poller_start},
	{"poller stop <port>", "ends that, so that rx-queues fill up", port_args, poller_stop},
	{"poller stats show <port>", "shows what it received, by queue", port_args,
		poller_stats_show},
	{"poller stats clear <port>", "sets its counters to zero", port_args, poller_stats_clear},
};

const struct tp_family tp_port_family =
	TP_FAMILY("port", "ethdev ports: state, statistics, properties", port_cmds);
const struct tp_family tp_poller_family =
	TP_FAMILY("poller", "receiving from ports beside the prompt", poller_cmds);
