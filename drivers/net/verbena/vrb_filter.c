/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the lower port receives besides frames to its own address: everything, or all groups (see
 * vrb_nic_filter()).
 */
#include <errno.h>

#include <rte_ethdev.h>

#include "vrb_nic_private.h"

/* @return 0 or -errno; ports that are as wanted already are left alone */
static int
set(int (*get)(uint16_t), int (*enable)(uint16_t), int (*disable)(uint16_t), uint16_t port, bool on)
{
	if ((get(port) == 1) == on)
		return 0;
	return on ? enable(port) : disable(port);
}

int
vrb_nic_filter(struct vrb_nic *nic, bool promiscuous, bool allmulticast)
{
	uint16_t port = nic->port.id;
	int rc;

	if (vrb_is_forked(nic))
		return -ENODEV;
	rc = set(rte_eth_allmulticast_get, rte_eth_allmulticast_enable,
		rte_eth_allmulticast_disable, port, allmulticast);
	/* Some ports have the one switch only. */
	if (rc == -ENOTSUP && allmulticast)
		promiscuous = true;
	else if (rc < 0 && rc != -ENOTSUP)
		return rc;
	return set(rte_eth_promiscuous_get, rte_eth_promiscuous_enable, rte_eth_promiscuous_disable,
		port, promiscuous);
}
