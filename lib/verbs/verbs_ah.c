/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses: address handles, what a received datagram tells about its sender, and the MAC address
 * behind a GID.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_private.h"

int
vrb_check_av(const struct ibv_ah_attr *av, bool multicast, const char *call)
{
	/* RoCE Annex A16.4.4: the address is the GRH's. */
	if (!av->is_global)
		return vrb_explain_call(EINVAL, call,
			"ah_attr.is_global is 0, but on Ethernet the address is the GID in "
			"ah_attr.grh");
	if (av->port_num != 1)
		return vrb_explain_call(EINVAL, call,
			"ah_attr.port_num is %u; the device has one port, number 1", av->port_num);
	if (av->grh.sgid_index >= VRB_GIDS)
		return vrb_explain_call(EINVAL, call,
			"ah_attr.grh.sgid_index is %u; the table has indices 0 to %d",
			av->grh.sgid_index, VRB_GIDS - 1);
	if (!multicast && vrb_gid_is_multicast((const union vrb_gid *)&av->grh.dgid))
		return vrb_explain_call(EINVAL, call, "ah_attr.grh.dgid is a multicast address");
	if (av->sl > 15)
		return vrb_explain_call(
			EINVAL, call, "ah_attr.sl is %u; there are 0 to 15", av->sl);
	return 0;
}

void
vrb_av_to_engine(const struct ibv_ah_attr *a, struct vrb_av *av)
{
	memset(av, 0, sizeof(*av));
	memcpy(&av->dgid, &a->grh.dgid, sizeof(av->dgid));
	av->sgid_index = a->grh.sgid_index;
	av->hop_limit = a->grh.hop_limit;
	av->tclass = a->grh.traffic_class;
	av->flow_label = a->grh.flow_label & 0xfffff;
	av->sl = a->sl;
	av->src_path_bits = a->src_path_bits;
	av->static_rate = a->static_rate;
}

static const char *
gid_text(const union vrb_gid *gid, char *buf, socklen_t len)
{
	if (!gid->dword[0] && !gid->dword[1] && gid->dword[2] == htonl(0xffff))
		return inet_ntop(AF_INET, gid->raw + 12, buf, len);
	return inet_ntop(AF_INET6, gid->raw, buf, len);
}

int
vrb_av_resolve(struct vrb_ctx *ctx, struct vrb_av *av, const char *call)
{
	char text[INET6_ADDRSTRLEN];
	int rc = vrb_nic_resolve(ctx->nic, &av->dgid, av->dmac);

	return rc ? vrb_explain_call(-rc, call,
			    "the MAC address of %s cannot be found; is that host there, on this "
			    "network?",
			    gid_text(&av->dgid, text, sizeof(text)))
		  : 0;
}

struct ibv_ah *
ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct vrb_ctx *ctx = vrb_to_ctx(pd->context);
	struct vrb_vah *ah;
	struct vrb_av av;
	int rc;

	if (unlikely(vrb_forked))
		return vrb_fail_null(
			ENODEV, "the device belongs to the process that this one was forked from");
	errno = vrb_check_av(attr, true, __func__);
	if (errno)
		return NULL;
	vrb_av_to_engine(attr, &av);
	errno = vrb_av_resolve(ctx, &av, __func__);
	if (errno)
		return NULL;
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return vrb_fail_null(ENOMEM, "there is no memory");
	vrb_nic_lock(ctx->nic);
	rc = vrb_ah_create(ctx->engine, vrb_to_pd(pd)->pd, &av, &ah->ah);
	vrb_nic_unlock(ctx->nic);
	if (rc)
		free(ah);
	if (rc == -EINVAL)
		return vrb_fail_null(
			EINVAL, "the GID at sgid_index is of another address family than dgid");
	if (rc)
		return vrb_fail_null(-rc, "there can be %d address handles", VRB_MAX_AH);
	ah->ibv.context = pd->context;
	ah->ibv.pd = pd;
	ah->ibv.handle = vrb_obj_add(ctx, VRB_KIND_AH, &ah->obj);
	return &ah->ibv;
}

int
ibv_destroy_ah(struct ibv_ah *ibv)
{
	struct vrb_ctx *ctx = vrb_to_ctx(ibv->context);
	struct vrb_vah *ah = vrb_to_ah(ibv);

	if (vrb_enter(ctx))
		return vrb_fail(
			ENODEV, "the device belongs to the process that this one was forked from");
	vrb_ah_destroy(ctx->engine, ah->ah);
	vrb_leave(ctx);
	vrb_obj_remove(ctx, VRB_KIND_AH, &ah->obj);
	free(ah);
	return 0;
}

void
vrb_ah_abandon(struct vrb_obj *obj, struct vrb_ctx *ctx)
{
	struct vrb_vah *ah = vrb_container(obj, struct vrb_vah, obj);

	vrb_ah_destroy(ctx->engine, ah->ah);
	free(ah);
}

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
