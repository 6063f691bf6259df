/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rx queues of ports: how full they are, their watermarks, and the size of the rings that
 * net_verbena puts behind them.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include <rte_ethdev.h>

#include "commands.h"
#include "ports.h"
#include "rte_pmd_verbena.h"

/* A queue of another driver: what ethdev tells. */
static void
show_plain(uint16_t port, uint16_t queue)
{
	struct rte_eth_rxq_info info;
	int count = rte_eth_rx_queue_count(port, queue);

	if (rte_eth_rx_queue_info_get(port, queue, &info) == 0)
		tp_row("size", "%u", info.nb_desc);
	if (count >= 0)
		tp_row("waiting", "%d", count);
	else
		tp_row("waiting", "unknown");
}

static void
show_verbena(const struct rte_pmd_verbena_rxq *q)
{
	if (q->direct) {
		tp_row("ring", "none: frames come straight from the port below");
		return;
	}
	tp_row("size", "%u", q->size);
	tp_row("waiting", "%u", q->count);
	tp_row("most", "%u", q->high);
	tp_row("threshold", "%u", q->avail_thresh);
	tp_row("threshold-events", "%" PRIu64, q->thresh_events);
	tp_row("frames", "%" PRIu64, q->packets);
	tp_row("full", "%" PRIu64, q->full);
	if (q->copies) {
		tp_row("posted", "%u", q->posted);
		tp_row("no-buffer", "%" PRIu64, q->nombuf);
	}
	if (q->shared) {
		tp_row("share-group", "%u", q->share_group);
		tp_row("members", "%u", q->members);
	}
}

static int
queue_show(const struct tp_call *call)
{
	uint16_t port = tp_num(call, "port", 0);
	struct rte_pmd_verbena_rxq q;
	struct rte_eth_dev_info info;
	int rc = tp_port_check_ours(port);

	if (rc == 0 && (rc = rte_eth_dev_info_get(port, &info)) < 0)
		tp_refuse(rc, "port %u does not tell its queues", port);
	for (uint16_t i = 0; rc == 0 && i < info.nb_rx_queues; i++) {
		tp_row("queue", "%u", i);
		if (rte_pmd_verbena_rxq_get(port, i, &q) == 0)
			show_verbena(&q);
		else
			show_plain(port, i);
		tp_row_end();
	}
	return rc;
}

static int
queue_resize(const struct tp_call *call)
{
	uint16_t port = tp_num(call, "port", 0), queue = tp_num(call, "queue", 0);
	uint32_t size = tp_num(call, "size", 0);
	int rc = tp_port_check_ours(port);

	if (rc < 0)
		return rc;
	rc = rte_pmd_verbena_rxq_resize(port, queue, size);
	switch (rc) {
	case 0:
		return 0;
	case -ENODEV:
		return tp_refuse(rc, "port %u is none of net_verbena", port);
	case -ENOTSUP:
		return tp_refuse(rc,
			"queue %u of port %u has no ring: its frames come straight from the port "
			"below",
			queue, port);
	case -EBUSY:
		return tp_refuse(
			rc, "more than %u frames wait in queue %u of port %u", size, queue, port);
	case -EINVAL:
		return tp_refuse(rc, "port %u has no queue %u", port, queue);
	default:
		return tp_refuse(
			rc, "queue %u of port %u is not resized: %s", queue, port, strerror(-rc));
	}
}

static int
queue_threshold(const struct tp_call *call)
{
	uint16_t port = tp_num(call, "port", 0), queue = tp_num(call, "queue", 0);
	int rc = tp_port_check_ours(port);

	if (rc == 0) {
		rc = rte_eth_rx_avail_thresh_set(port, queue, tp_num(call, "percent", 0));
		if (rc < 0)
			tp_refuse(rc, "queue %u of port %u does not take a watermark: %s", queue,
				port,
				rc == -ENOTSUP	? "its driver cannot"
				: rc == -EINVAL ? "there is no such queue"
						: strerror(-rc));
	}
	return rc;
}

static const struct tp_arg port_args[] = {TP_PORT_ARG, {NULL}};
static const struct tp_arg resize_args[] = {
	TP_PORT_ARG,
	TP_RX_QUEUE_ARG,
	{.name = "size", .type = TP_NUM, .min = 32, .max = 65536, .help = "frames that it holds"},
	{NULL},
};
static const struct tp_arg threshold_args[] = {
	TP_PORT_ARG,
	TP_RX_QUEUE_ARG,
	{.name = "percent",
		.type = TP_NUM,
		.max = 99,
		.help = "of its size: an event tells, once, that less is free; 0: none"},
	{NULL},
};

static const struct tp_cmd cmds[] = {
	{"queue show <port>", "shows the rx-queues of a port and how full they are", port_args,
		queue_show},
	{"queue resize <port> <queue> <size>",
		"gives the ring behind an rx-queue another size, also under traffic", resize_args,
		queue_resize},
	{"queue threshold <port> <queue> <percent>", "arms the watermark of an rx-queue",
		threshold_args, queue_threshold},
};

const struct tp_family tp_queue_family =
	TP_FAMILY("queue", "rx-queues of ports: fill level, size, watermark", cmds);
