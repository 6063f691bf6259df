/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses: what a received datagram tells about its sender, and the MAC address behind a GID.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <string.h>

#include "verbs_private.h"

/* The 40 bytes before a datagram hold an IPv6 header, or an IPv4 header in the last 20 (RoCE Annex
 * A17.4.5.1). */
#define IPV4_OFFSET (sizeof(struct ibv_grh) - sizeof(struct iphdr))

static bool
ipv4_sum_fits(const struct iphdr *ip)
{
	uint16_t word[sizeof(*ip) / 2];
	uint32_t sum = 0;
	size_t i;

	memcpy(word, ip, sizeof(word));
	for (i = 0; i < RTE_DIM(word); i++)
		sum += word[i];
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)(sum + (sum >> 16)) == 0xffff;
}

/* 4, 6, or 0 for neither. The first 20 bytes are undefined with IPv4, and may look like IPv6. */
static int
ip_version(const struct ibv_grh *grh, const struct iphdr *ip)
{
	if (ip->version == 4 && ip->ihl == 5 && ipv4_sum_fits(ip))
		return 4;
	return be32toh(grh->version_tclass_flow) >> 28 == 6 ? 6 : 0;
}

static void
map_ipv4(uint32_t addr, union ibv_gid *gid)
{
	memset(gid, 0, 10);
	memset(gid->raw + 10, 0xff, 2);
	memcpy(gid->raw + 12, &addr, sizeof(addr));
}

static int
find_gid(const union ibv_gid *gid)
{
	int i;

	for (i = 0; i < VRB_GIDS; i++)
		if (!memcmp(gid, &vrb_device_info()->gid[i], sizeof(*gid)))
			return i;
	return -1;
}

int
ibv_init_ah_from_wc(struct ibv_context *context, uint8_t port_num, struct ibv_wc *wc,
	struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	union ibv_gid local;
	struct iphdr ip;
	uint32_t word;
	int index;

	memset(attr, 0, sizeof(*attr));
	attr->dlid = wc->slid;
	attr->sl = wc->sl;
	attr->src_path_bits = wc->dlid_path_bits;
	attr->port_num = port_num;
	if (!(wc->wc_flags & IBV_WC_GRH))
		return 0;
	attr->is_global = 1;
	memcpy(&ip, (const char *)grh + IPV4_OFFSET, sizeof(ip));
	switch (ip_version(grh, &ip)) {
	case 4:
		map_ipv4(ip.daddr, &local);
		map_ipv4(ip.saddr, &attr->grh.dgid);
		attr->grh.hop_limit = ip.ttl;
		attr->grh.traffic_class = ip.tos;
		break;
	case 6:
		word = be32toh(grh->version_tclass_flow);
		local = grh->dgid;
		attr->grh.dgid = grh->sgid;
		attr->grh.flow_label = word & 0xfffff;
		attr->grh.hop_limit = grh->hop_limit;
		attr->grh.traffic_class = (word >> 20) & 0xff;
		break;
	default:
		return vrb_fail_minus1(EPROTONOSUPPORT, "the header is neither IPv4 nor IPv6");
	}
	index = find_gid(&local);
	if (index < 0)
		return vrb_fail_minus1(
			EINVAL, "the header's destination is none of the port's GIDs");
	attr->grh.sgid_index = (uint8_t)index;
	return 0;
}

struct ibv_ah *
ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr))
		return NULL;
	return ibv_create_ah(pd, &attr);
}

/* Returns 0 or -errno, unlike any other call. */
int
ibv_resolve_eth_l2_from_gid(struct ibv_context *context, struct ibv_ah_attr *attr,
	uint8_t eth_mac[ETHERNET_LL_SIZE], uint16_t *vid)
{
	union vrb_gid gid;
	int rc;

	if (unlikely(vrb_forked))
		return -ENODEV;
	if (attr->port_num != 1 || attr->grh.sgid_index >= VRB_GIDS)
		return -vrb_fail(EINVAL,
			"port %u has no GID of index %u; there is port 1 with indices 0 to %d",
			attr->port_num, attr->grh.sgid_index, VRB_GIDS - 1);
	memcpy(&gid, &attr->grh.dgid, sizeof(gid));
	rc = vrb_nic_resolve(vrb_to_ctx(context)->nic, &gid, eth_mac);
	if (rc)
		return -vrb_fail(-rc, "the MAC address behind the GID cannot be found");
	if (vid)
		*vid = 0xffff; /* no VLAN */
	return 0;
}
