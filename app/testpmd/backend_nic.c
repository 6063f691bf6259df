/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device of the verbs library: a lower port with an engine on it, run by those who use it and
 * by a thread.
 */
#include <stdio.h>

#include "backend.h"
#include "raw.h"
#include "vrb_nic.h"

static struct vrb_nic *nic;
static struct vrb_pd *pd;

int
tp_backend_open(const struct tp_backend_conf *conf, char *why, size_t len)
{
	struct vrb_nic_conf nc = {
		.port = conf->port,
		.segment = conf->segment,
		.ip = conf->ip,
		.eal_args = conf->eal,
		.ops = conf->ops,
	};
	int rc = vrb_nic_open(&nc, &nic, why, len);

	if (rc < 0)
		return rc;
	vrb_nic_lock(nic);
	rc = vrb_pd_create(vrb_nic_engine(nic), &pd);
	vrb_nic_unlock(nic);
	if (rc < 0)
		snprintf(why, len, "there is no memory for a protection domain");
	return rc;
}

void
tp_backend_close(void)
{
	vrb_nic_close(nic);
	nic = NULL;
	pd = NULL;
}

struct vrb_engine *
tp_engine(void)
{
	return vrb_nic_engine(nic);
}

struct vrb_pd *
tp_pd(void)
{
	return pd;
}

void
tp_device(struct tp_device *dev)
{
	struct vrb_nic_info info;

	vrb_nic_query(nic, &info);
	snprintf(dev->port, sizeof(dev->port), "%s", info.port_name);
	snprintf(dev->driver, sizeof(dev->driver), "%s", info.driver);
	memcpy(dev->mac, info.mac, sizeof(dev->mac));
	memcpy(dev->gid, info.gid, sizeof(dev->gid));
	dev->port_mtu = info.port_mtu;
	dev->max_mtu = info.max_mtu;
	dev->icrc = info.icrc;
	dev->link_up = info.link_up;
}

void
tp_lock(void)
{
	vrb_nic_lock(nic);
}

void
tp_unlock(void)
{
	vrb_nic_unlock(nic);
}

void
tp_kick(struct vrb_qp *qp)
{
	vrb_nic_kick(nic, qp);
}

void
tp_progress(void)
{
	vrb_nic_progress(nic);
}

uint64_t
tp_now(void)
{
	return vrb_nic_now(nic);
}

int
tp_resolve(const union vrb_gid *gid, uint8_t mac[6])
{
	return vrb_nic_resolve(nic, gid, mac);
}

void
tp_settle(struct vrb_qp *qp)
{
	vrb_nic_settle(nic, qp);
}

int
tp_filter(void)
{
	bool promiscuous, allmulticast;

	vrb_flow_filter(vrb_nic_engine(nic), &promiscuous, &allmulticast);
	return vrb_nic_filter(nic, promiscuous, allmulticast);
}
