/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figures over telemetry, as dpdk-telemetry.py asks for them, and as text.
 *
 *   /verbena/list            ids of our ports
 *   /verbena/port,<id>       the port: lower port, way of the frames, RSS, rules
 *   /verbena/rxq,<id>,<q>    an Rx queue
 *   /verbena/poller,<id>,<n> a poller
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <rte_telemetry.h>

#include "pmd_private.h"

/* The numbers behind the command. @return how many */
static int
numbers(const char *params, unsigned long *n, int max)
{
	char *end;
	int i;

	for (i = 0; i < max && params != NULL && *params >= '0' && *params <= '9'; i++) {
		n[i] = strtoul(params, &end, 10);
		params = *end == ',' ? end + 1 : NULL;
	}
	return i;
}

static int
list(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct pmd_port *port;

	RTE_SET_USED(cmd);
	RTE_SET_USED(params);
	rte_tel_data_start_array(d, RTE_TEL_INT_VAL);
	pthread_mutex_lock(&pmd_ports_lock);
	LIST_FOREACH (port, &pmd_ports, link)
		rte_tel_data_add_array_int(d, port->port_id);
	pthread_mutex_unlock(&pmd_ports_lock);
	return 0;
}

static int
tell_port(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct pmd_port *port;
	unsigned long id;

	RTE_SET_USED(cmd);
	if (numbers(params, &id, 1) != 1 || id > UINT16_MAX)
		return -EINVAL;
	port = pmd_port_find((uint16_t)id);
	if (port == NULL)
		return -ENODEV;
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_string(
		d, "lower", port->lower_gone ? "gone" : port->lower.driver_name);
	rte_tel_data_add_dict_int(d, "lower_port", port->lower_id);
	rte_tel_data_add_dict_string(d, "way", port->polled ? "pollers" : "direct");
	rte_tel_data_add_dict_int(d, "started", port->started);
	rte_tel_data_add_dict_int(d, "rx_queues", port->num_rxq);
	rte_tel_data_add_dict_int(d, "lower_rx_queues", port->num_lower_rx);
	rte_tel_data_add_dict_int(d, "lower_tx_queues", port->num_lower_tx);
	rte_tel_data_add_dict_int(d, "pollers", port->num_pollers);
	rte_tel_data_add_dict_int(d, "rss", port->rss.on);
	rte_tel_data_add_dict_int(d, "reta_size", port->rss.reta_size);
	rte_tel_data_add_dict_int(d, "flow_rules", (int)port->num_flows);
	rte_tel_data_add_dict_int(d, "isolated", port->isolated);
	rte_tel_data_add_dict_int(d, "roce", port->roce.engine != NULL);
	return 0;
}

static int
tell_rxq(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct rte_pmd_verbena_rxq q;
	unsigned long n[2];
	int rc;

	RTE_SET_USED(cmd);
	if (numbers(params, n, 2) != 2 || n[0] > UINT16_MAX || n[1] > UINT16_MAX)
		return -EINVAL;
	rc = rte_pmd_verbena_rxq_get((uint16_t)n[0], (uint16_t)n[1], &q);
	if (rc < 0)
		return rc;
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_int(d, "size", (int)q.size);
	rte_tel_data_add_dict_int(d, "count", (int)q.count);
	rte_tel_data_add_dict_int(d, "high", (int)q.high);
	rte_tel_data_add_dict_int(d, "posted", (int)q.posted);
	rte_tel_data_add_dict_int(d, "avail", (int)q.avail);
	rte_tel_data_add_dict_int(d, "avail_thresh", q.avail_thresh);
	rte_tel_data_add_dict_int(d, "direct", q.direct);
	rte_tel_data_add_dict_int(d, "shared", q.shared);
	rte_tel_data_add_dict_int(d, "members", q.members);
	rte_tel_data_add_dict_u64(d, "packets", q.packets);
	rte_tel_data_add_dict_u64(d, "bytes", q.bytes);
	rte_tel_data_add_dict_u64(d, "ring_full", q.full);
	rte_tel_data_add_dict_u64(d, "no_posted_buffer", q.nombuf);
	rte_tel_data_add_dict_u64(d, "refills", q.refills);
	rte_tel_data_add_dict_u64(d, "refilled_buffers", q.refilled);
	rte_tel_data_add_dict_u64(d, "refill_failures", q.refill_fails);
	rte_tel_data_add_dict_u64(d, "thresh_events", q.thresh_events);
	rte_tel_data_add_dict_u64(d, "resizes", q.resizes);
	return 0;
}

static int
tell_poller(const char *cmd, const char *params, struct rte_tel_data *d)
{
	struct rte_pmd_verbena_poller p;
	unsigned long n[2];
	int rc;

	RTE_SET_USED(cmd);
	if (numbers(params, n, 2) != 2 || n[0] > UINT16_MAX || n[1] > UINT16_MAX)
		return -EINVAL;
	rc = rte_pmd_verbena_poller_get((uint16_t)n[0], (uint16_t)n[1], &p);
	if (rc < 0)
		return rc;
	rte_tel_data_start_dict(d);
	rte_tel_data_add_dict_int(d, "service", (int)p.service_id);
	rte_tel_data_add_dict_int(d, "by_service", p.by_service);
	rte_tel_data_add_dict_int(d, "lower_queues", p.num_queues);
	rte_tel_data_add_dict_u64(d, "rounds", p.rounds);
	rte_tel_data_add_dict_u64(d, "empty", p.empty);
	rte_tel_data_add_dict_u64(d, "packets", p.packets);
	rte_tel_data_add_dict_u64(d, "roce", p.roce);
	rte_tel_data_add_dict_u64(d, "flow", p.flow);
	rte_tel_data_add_dict_u64(d, "busy", p.busy);
	return 0;
}

void
pmd_telemetry_init(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	rte_telemetry_register_cmd(
		"/verbena/list", list, "Ids of the ports of net_verbena. Takes no parameters");
	rte_telemetry_register_cmd("/verbena/port", tell_port, "A port. Parameters: int port_id");
	rte_telemetry_register_cmd(
		"/verbena/rxq", tell_rxq, "An Rx queue. Parameters: int port_id, int queue_id");
	rte_telemetry_register_cmd(
		"/verbena/poller", tell_poller, "A poller. Parameters: int port_id, int poller");
}

/* ---- text ---- */

static void
dump_rxq(const struct pmd_port *port, uint16_t queue, FILE *file)
{
	struct rte_pmd_verbena_rxq q;

	if (rte_pmd_verbena_rxq_get(port->port_id, queue, &q) < 0)
		return;
	fprintf(file, "rxq %u: %s, size %u, count %u, high %u, posted %u, avail %u%s", queue,
		q.direct ? "direct" : "by pollers", q.size, q.count, q.high, q.posted, q.avail,
		q.copies ? ", copies" : "");
	if (q.shared)
		fprintf(file, ", share group %u queue %u of %u members", q.share_group, q.share_qid,
			q.members);
	fprintf(file, "; packets %" PRIu64 ", full %" PRIu64 ", nombuf %" PRIu64 "\n", q.packets,
		q.full, q.nombuf);
}

int
pmd_priv_dump(struct rte_eth_dev *dev, FILE *file)
{
	struct pmd_port *port = pmd_port_of(dev);

	pthread_mutex_lock(&port->lock);
	fprintf(file, "lower port: %u, driver %s%s\n", port->lower_id,
		port->lower_gone ? "gone" : port->lower.driver_name,
		port->lower_probed ? ", made by this port" : "");
	fprintf(file, "way of frames: %s; lower queues: %u Rx, %u Tx; pollers: %u\n",
		port->polled ? "pollers" : "direct", port->num_lower_rx, port->num_lower_tx,
		port->num_pollers);
	fprintf(file, "done here: Rx offloads %#" PRIx64 ", Tx flags %#" PRIx64 "%s%s%s\n",
		port->rx_todo, port->tx_todo, port->tx_udp ? ", UDP checksums" : "",
		port->tx_tcp ? ", TCP checksums" : "", port->tx_linear ? ", linear frames" : "");
	fprintf(file, "RSS: %s, types %#" PRIx64 ", table of %u\n", port->rss.on ? "on" : "off",
		port->rss.types, port->rss.reta_size);
	fprintf(file, "flow rules: %u%s; RoCE: %s\n", port->num_flows,
		port->isolated ? ", isolated" : "", port->roce.engine != NULL ? "open" : "none");
	for (uint16_t i = 0; i < port->num_rxq; i++)
		dump_rxq(port, i, file);
	pthread_mutex_unlock(&port->lock);
	return 0;
}
