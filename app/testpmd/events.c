/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A short memory of what happened: the oldest is forgotten when nobody looks.
 */
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_spinlock.h>

#include "cli.h"
#include "events.h"
#include "objects.h"

#define REMEMBERED 32

static rte_spinlock_t lock = RTE_SPINLOCK_INITIALIZER;
static char lines[REMEMBERED][320];
static unsigned int first, num;
static unsigned int forgotten;
static char reason[320];

static char *
next_line(void)
{
	if (num == REMEMBERED) {
		first = (first + 1) % REMEMBERED;
		num--;
		forgotten++;
	}
	return lines[(first + num++) % REMEMBERED];
}

static void
cq_notify(void *ctx, struct vrb_cq *cq)
{
	struct tp_cq *c = cq->user;

	atomic_fetch_add(&c->notified, 1);
	rte_spinlock_lock(&lock);
	snprintf(next_line(), sizeof(lines[0]), "event cq-notified  cq %u", c->obj.id);
	rte_spinlock_unlock(&lock);
}

static const char *
event_name(enum vrb_event_type type)
{
	static const char *const names[] = {
		[VRB_EVENT_CQ_ERR] = "cq-error",
		[VRB_EVENT_QP_FATAL] = "qp-fatal",
		[VRB_EVENT_QP_REQ_ERR] = "qp-request-error",
		[VRB_EVENT_QP_ACCESS_ERR] = "qp-access-error",
		[VRB_EVENT_COMM_EST] = "communication-established",
		[VRB_EVENT_SQ_DRAINED] = "send-queue-drained",
		[VRB_EVENT_DEVICE_FATAL] = "device-fatal",
		[VRB_EVENT_PORT_ACTIVE] = "port-active",
		[VRB_EVENT_PORT_ERR] = "port-down",
		[VRB_EVENT_SRQ_ERR] = "srq-error",
		[VRB_EVENT_SRQ_LIMIT_REACHED] = "srq-limit-reached",
		[VRB_EVENT_QP_LAST_WQE_REACHED] = "last-receive-reached",
		[VRB_EVENT_WQ_FATAL] = "wq-fatal",
	};

	return (unsigned int)type < RTE_DIM(names) && names[type] != NULL ? names[type] : "unknown";
}

static void
async(void *ctx, enum vrb_event_type type, void *user)
{
	const struct tp_obj *obj = user;

	if (type == VRB_EVENT_SRQ_LIMIT_REACHED)
		atomic_fetch_add(&((struct tp_srq *)user)->limit_events, 1);
	rte_spinlock_lock(&lock);
	if (obj != NULL)
		snprintf(next_line(), sizeof(lines[0]), "event %s  %s %u", event_name(type),
			tp_kind_name(obj->kind), obj->id);
	else
		snprintf(next_line(), sizeof(lines[0]), "event %s", event_name(type));
	rte_spinlock_unlock(&lock);
}

static void
explain(void *ctx, const char *sentence)
{
	rte_spinlock_lock(&lock);
	snprintf(next_line(), sizeof(lines[0]), "note %s", sentence);
	snprintf(reason, sizeof(reason), "%s", sentence);
	rte_spinlock_unlock(&lock);
}

const struct vrb_engine_ops tp_engine_ops = {
	.cq_notify = cq_notify,
	.async = async,
	.explain = explain,
};

/* Runs in whichever thread a driver tells it. */
static int
port_event(uint16_t port, enum rte_eth_event_type type, void *arg, void *ret)
{
	uint16_t queue = 0;
	uint8_t threshold;

	rte_spinlock_lock(&lock);
	if (type == RTE_ETH_EVENT_RX_AVAIL_THRESH) {
		if (rte_eth_rx_avail_thresh_query(port, &queue, &threshold) > 0)
			snprintf(next_line(), sizeof(lines[0]),
				"event rx-threshold  port %u  queue %u  percent %u", port, queue,
				threshold);
	} else {
		snprintf(next_line(), sizeof(lines[0]), "event %s  port %u",
			type == RTE_ETH_EVENT_INTR_LSC ? "link-changed" : "removed", port);
	}
	rte_spinlock_unlock(&lock);
	return 0;
}

void
tp_events_port(uint16_t port)
{
	static const enum rte_eth_event_type types[] = {
		RTE_ETH_EVENT_INTR_LSC, RTE_ETH_EVENT_INTR_RMV, RTE_ETH_EVENT_RX_AVAIL_THRESH};

	for (unsigned int i = 0; i < RTE_DIM(types); i++)
		rte_eth_dev_callback_register(port, types[i], port_event, NULL);
}

void
tp_events_show(void)
{
	char line[sizeof(lines[0])];
	unsigned int lost;
	bool more;

	for (;;) {
		rte_spinlock_lock(&lock);
		lost = forgotten;
		forgotten = 0;
		more = num > 0;
		if (more) {
			memcpy(line, lines[first], sizeof(line));
			first = (first + 1) % REMEMBERED;
			num--;
		}
		rte_spinlock_unlock(&lock);
		if (lost > 0)
			tp_print("note %u older events were forgotten\n", lost);
		if (!more)
			return;
		tp_print("%s\n", line);
	}
}

const char *
tp_events_reason(void)
{
	static char copy[sizeof(reason)];

	rte_spinlock_lock(&lock);
	memcpy(copy, reason, sizeof(copy));
	rte_spinlock_unlock(&lock);
	return copy;
}

void
tp_events_clear_reason(void)
{
	rte_spinlock_lock(&lock);
	reason[0] = '\0';
	rte_spinlock_unlock(&lock);
}
