/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the device, its port and the port's tables report. What is claimed here works, and what
 * works is claimed.
 */
#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <time.h>

#include "verbs_private.h"

/* The PCI ids of RDMA devices mean their makers; we have none, and say so as the kernel's software
 * devices do. */
#define VRB_VENDOR_ID 0xffffff

#define VRB_CAPS \
	(IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT | IBV_DEVICE_SYS_IMAGE_GUID | \
		IBV_DEVICE_RC_RNR_NAK_GEN | IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_MEM_WINDOW | \
		IBV_DEVICE_XRC | IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS | \
		IBV_DEVICE_RAW_IP_CSUM | IBV_DEVICE_MANAGED_FLOW_STEERING)

/* The kernel's IB_UVERBS_DEVICE_ATOMIC_WRITE, which older headers do not know. */
#define VRB_CAP_ATOMIC_WRITE (1ull << 40)

static void
fill_device_attr(struct ibv_device_attr *a)
{
	memset(a, 0, sizeof(*a));
	strcpy(a->fw_ver, VRB_VERSION);
	a->node_guid = vrb_device_guid();
	a->sys_image_guid = a->node_guid;
	a->max_mr_size = VRB_MAX_MR_SIZE;
	a->page_size_cap =
		~4095ull; /* memory is not mapped by us: any page size of 4 KiB and more will do */
	a->vendor_id = VRB_VENDOR_ID;
	a->max_qp = VRB_MAX_QP;
	a->max_qp_wr = VRB_MAX_QP_WR;
	a->device_cap_flags = VRB_CAPS;
	a->max_sge = VRB_MAX_SGE;
	a->max_sge_rd = VRB_MAX_SGE;
	a->max_cq = VRB_MAX_CQ;
	a->max_cqe = VRB_MAX_CQE;
	a->max_mr = VRB_MAX_MR;
	a->max_mw = VRB_MAX_MR;
	a->max_pd = VRB_MAX_PD;
	a->max_qp_rd_atom = VRB_MAX_RD_ATOM;
	a->max_res_rd_atom = VRB_MAX_RD_ATOM * VRB_MAX_QP;
	a->max_qp_init_rd_atom = VRB_MAX_RD_ATOM;
	/* The processor's own atomic instructions: one operation with those of the program and of
	 * other devices. */
	a->atomic_cap = IBV_ATOMIC_GLOB;
	a->max_ah = VRB_MAX_AH;
	a->max_mcast_grp = VRB_MAX_MCAST_GRP;
	a->max_mcast_qp_attach = VRB_MAX_MCAST_QP_ATTACH;
	a->max_total_mcast_qp_attach = VRB_MAX_MCAST_GRP * VRB_MAX_MCAST_QP_ATTACH;
	a->max_srq = VRB_MAX_SRQ;
	a->max_srq_wr = VRB_MAX_SRQ_WR;
	a->max_srq_sge = VRB_MAX_SRQ_SGE;
	a->max_pkeys = VRB_PKEYS;
	a->local_ca_ack_delay = 15; /* 4.096 us * 2^15: 134 ms, as a loaded machine may need */
	a->phys_port_cnt = 1;
}

int
ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr)
{
	fill_device_attr(attr);
	return 0;
}

int
vrb_verbs_query_device_ex(struct ibv_context *context,
	const struct ibv_query_device_ex_input *input, struct ibv_device_attr_ex *attr,
	size_t attr_size)
{
	struct ibv_device_attr_ex all = {0};

	if (input && input->comp_mask)
		return vrb_fail(
			EINVAL, "comp_mask is %#x, but no bit of it is defined", input->comp_mask);
	if (attr_size < offsetof(struct ibv_device_attr_ex, comp_mask) + sizeof(attr->comp_mask))
		return vrb_fail(EINVAL,
			"attr_size is %zu, too small for any version of the structure", attr_size);
	fill_device_attr(&all.orig_attr);
	all.completion_timestamp_mask = UINT64_MAX;
	all.hca_core_clock = 1000000; /* kHz: the clock counts nanoseconds */
	all.device_cap_flags_ex = VRB_CAPS | VRB_CAP_ATOMIC_WRITE;
	all.phys_port_cnt_ex = 1;
	all.cq_mod_caps.max_cq_count = VRB_MAX_CQ_COUNT;
	all.cq_mod_caps.max_cq_period = VRB_MAX_CQ_PERIOD;
	all.max_dm_size = VRB_MAX_DM_SIZE;
	vrb_raw_caps(&all);
	memset(attr, 0, attr_size);
	memcpy(attr, &all, RTE_MIN(attr_size, sizeof(all)));
	return 0;
}

int
vrb_verbs_query_rt_values(struct ibv_context *context, struct ibv_values_ex *values)
{
	if (values->comp_mask & ~IBV_VALUES_MASK_RAW_CLOCK)
		return vrb_fail(EINVAL,
			"comp_mask is %#x, but only IBV_VALUES_MASK_RAW_CLOCK can be asked for",
			values->comp_mask);
	if (unlikely(vrb_forked))
		return ENODEV;
	/* As other drivers have it: ticks of hca_core_clock, all of them in tv_nsec. */
	if (values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) {
		values->raw_clock.tv_sec = 0;
		values->raw_clock.tv_nsec = (long)vrb_nic_now(vrb_to_ctx(context)->nic);
	}
	return 0;
}

static enum ibv_mtu
mtu_of(uint32_t bytes)
{
	enum ibv_mtu mtu = IBV_MTU_256;

	while (mtu < IBV_MTU_4096 && 256u << mtu <= bytes)
		mtu++;
	return mtu;
}

/* Width and speed of an InfiniBand link about as fast as the port; see IBTA 14.2.5.6, table 155. */
static void
fill_speed(struct ibv_port_attr *a, uint32_t mbps)
{
	static const struct {
		uint32_t mbps;
		uint8_t width, speed;
	} links[] = {
		{1000, 1, 1}, /* 1X SDR */
		{10000, 1, 4}, /* 1X QDR */
		{25000, 1, 32}, /* 1X EDR */
		{40000, 2, 4}, /* 4X QDR */
		{50000, 1, 64}, /* 1X HDR */
		{100000, 2, 32}, /* 4X EDR */
		{200000, 2, 64}, /* 4X HDR */
		{400000, 2, 128}, /* 4X NDR */
	};
	size_t i, last = RTE_DIM(links) - 1;

	if (!mbps || mbps == UINT32_MAX)
		mbps = 100000;
	for (i = 0; i < last && links[i].mbps < mbps; i++)
		;
	a->active_width = links[i].width;
	a->active_speed = links[i].speed;
}

/* The port as it is now; the link may come and go. */
static void
fill_port_attr(struct vrb_ctx *ctx, struct ibv_port_attr *a)
{
	struct vrb_nic_info info;

	vrb_nic_query(ctx->nic, &info);
	memset(a, 0, sizeof(*a));
	a->state = info.link_up ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
	a->phys_state = info.link_up ? 5 : 3; /* LinkUp, Disabled */
	a->max_mtu = IBV_MTU_4096;
	a->active_mtu = mtu_of(info.max_mtu);
	a->gid_tbl_len = VRB_GIDS;
	a->port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS;
	a->max_msg_sz = VRB_MAX_MSG;
	a->pkey_tbl_len = VRB_PKEYS;
	a->max_vl_num = 1;
	a->link_layer = IBV_LINK_LAYER_ETHERNET;
	a->flags = IBV_QPF_GRH_REQUIRED;
	fill_speed(a, info.speed_mbps);
}

static int
check_port(uint32_t port_num)
{
	return port_num == 1 ? 0 : EINVAL;
}

int
vrb_verbs_query_port(
	struct ibv_context *context, uint8_t port_num, struct ibv_port_attr *attr, size_t attr_len)
{
	struct ibv_port_attr all;

	if (check_port(port_num))
		return vrb_fail(
			EINVAL, "port_num is %u, but the device has one port, number 1", port_num);
	fill_port_attr(vrb_to_ctx(context), &all);
	memset(attr, 0, attr_len);
	memcpy(attr, &all, RTE_MIN(attr_len, sizeof(all)));
	return 0;
}

/* What programs see that were built before port_cap_flags2 was added. */
int
ibv_query_port(struct ibv_context *context, uint8_t port_num, struct _compat_ibv_port_attr *attr)
{
	return vrb_verbs_query_port(context, port_num, (struct ibv_port_attr *)attr,
		offsetof(struct ibv_port_attr, port_cap_flags2));
}

static int
check_gid(uint32_t port_num, uint32_t index)
{
	return check_port(port_num) || index >= VRB_GIDS ? EINVAL : 0;
}

#define GID_RULE "port %u has no GID of index %d; there is port 1 with indices 0 to %d"

int
ibv_query_gid(struct ibv_context *context, uint8_t port_num, int index, union ibv_gid *gid)
{
	if (check_gid(port_num, (uint32_t)index))
		return vrb_fail_minus1(EINVAL, GID_RULE, port_num, index, VRB_GIDS - 1);
	memcpy(gid, &vrb_device_info()->gid[index], sizeof(*gid));
	return 0;
}

/* Upstream's library has it in a private node, and perftest and ibv_devinfo call it. */
VRB_PUBLIC int ibv_query_gid_type(
	struct ibv_context *context, uint8_t port_num, unsigned int index, int *type);

int
ibv_query_gid_type(struct ibv_context *context, uint8_t port_num, unsigned int index, int *type)
{
	/* The values of the private enum, in which InfiniBand and RoCE v1 are one. */
	enum { IB_ROCE_V1, ROCE_V2 };

	if (check_gid(port_num, index))
		return vrb_fail_minus1(EINVAL, GID_RULE, port_num, (int)index, VRB_GIDS - 1);
	*type = ROCE_V2;
	return 0;
}

static void
fill_gid_entry(struct ibv_gid_entry *entry, uint32_t index, size_t entry_size)
{
	struct ibv_gid_entry all = {0};

	memcpy(&all.gid, &vrb_device_info()->gid[index], sizeof(all.gid));
	all.gid_index = index;
	all.port_num = 1;
	all.gid_type = IBV_GID_TYPE_ROCE_V2;
	all.ndev_ifindex = if_nametoindex("lo");
	memset(entry, 0, entry_size);
	memcpy(entry, &all, RTE_MIN(entry_size, sizeof(all)));
}

int
_ibv_query_gid_ex(struct ibv_context *context, uint32_t port_num, uint32_t gid_index,
	struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	if (flags)
		return vrb_fail(EINVAL, "flags is %#x, but no bit of it is defined", flags);
	if (check_gid(port_num, gid_index))
		return vrb_fail(EINVAL, GID_RULE, port_num, (int)gid_index, VRB_GIDS - 1);
	fill_gid_entry(entry, gid_index, entry_size);
	return 0;
}

ssize_t
_ibv_query_gid_table(struct ibv_context *context, struct ibv_gid_entry *entries, size_t max_entries,
	uint32_t flags, size_t entry_size)
{
	uint32_t i;

	if (flags)
		return -vrb_fail(EINVAL, "flags is %#x, but no bit of it is defined", flags);
	if (max_entries < VRB_GIDS)
		return -vrb_fail(EINVAL, "there is room for %zu entries, but the table has %d",
			max_entries, VRB_GIDS);
	for (i = 0; i < VRB_GIDS; i++)
		fill_gid_entry(
			(struct ibv_gid_entry *)((char *)entries + i * entry_size), i, entry_size);
	return VRB_GIDS;
}

int
ibv_query_pkey(struct ibv_context *context, uint8_t port_num, int index, __be16 *pkey)
{
	/* Upstream reads a file, and reports what open(2) does. */
	if (check_port(port_num) || index < 0 || index >= VRB_PKEYS)
		return vrb_fail_minus1(ENOENT,
			"port %u has no P_Key of index %d; there is port 1 with index 0", port_num,
			index);
	*pkey = htobe16(VRB_PKEY);
	return 0;
}

int
ibv_get_pkey_index(struct ibv_context *context, uint8_t port_num, __be16 pkey)
{
	if (check_port(port_num) || pkey != htobe16(VRB_PKEY))
		return vrb_fail_minus1(ENOENT, "port %u has no P_Key %#x; there is port 1 with %#x",
			port_num, be16toh(pkey), VRB_PKEY);
	return 0;
}
