/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs of raw frames, with queues of their own or with an indirection table
 * (ibv_create_qp_ex(3)).
 */
#include <errno.h>

#include "verbs_raw.h"

/* What the functions below check is a failure of the call that they are part of. */
#define refuse(err, ...) vrb_explain_call(err, "ibv_create_qp", __VA_ARGS__)

#define RSS_ATTRS ((uint32_t)(IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH))
#define CREATE_FLAGS ((uint32_t)(IBV_QP_CREATE_SCATTER_FCS | IBV_QP_CREATE_CVLAN_STRIPPING))

_Static_assert(VRB_RX_HASH_SRC_IPV4 == (int)IBV_RX_HASH_SRC_IPV4 &&
		       VRB_RX_HASH_DST_IPV4 == (int)IBV_RX_HASH_DST_IPV4 &&
		       VRB_RX_HASH_SRC_IPV6 == (int)IBV_RX_HASH_SRC_IPV6 &&
		       VRB_RX_HASH_DST_IPV6 == (int)IBV_RX_HASH_DST_IPV6 &&
		       VRB_RX_HASH_SRC_PORT_TCP == (int)IBV_RX_HASH_SRC_PORT_TCP &&
		       VRB_RX_HASH_DST_PORT_TCP == (int)IBV_RX_HASH_DST_PORT_TCP &&
		       VRB_RX_HASH_SRC_PORT_UDP == (int)IBV_RX_HASH_SRC_PORT_UDP &&
		       VRB_RX_HASH_DST_PORT_UDP == (int)IBV_RX_HASH_DST_PORT_UDP &&
		       VRB_RX_HASH_INNER == (uint64_t)IBV_RX_HASH_INNER,
	"fields are passed on");

bool
vrb_is_rss(const struct ibv_qp_init_attr_ex *attr)
{
	return attr->qp_type == IBV_QPT_RAW_PACKET && attr->comp_mask & RSS_ATTRS;
}

static uint32_t
create_flags(const struct ibv_qp_init_attr_ex *attr)
{
	return attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS ? attr->create_flags : 0;
}

/* @return 0 or an errno */
static int
check_hash(const struct ibv_rx_hash_conf *conf)
{
	if (conf->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ)
		return refuse(EOPNOTSUPP,
			"rx_hash_function is %#x; the device has IBV_RX_HASH_FUNC_TOEPLITZ",
			conf->rx_hash_function);
	if (conf->rx_hash_key_len != VRB_RSS_KEY_LEN || !conf->rx_hash_key)
		return refuse(
			EINVAL, "rx_hash_key is missing, or not of %d bytes", VRB_RSS_KEY_LEN);
	if (conf->rx_hash_fields_mask & ~(uint64_t)VRB_RX_HASH_ALL)
		return refuse(EOPNOTSUPP, "rx_hash_fields_mask is %#lx; the device has %#lx",
			(unsigned long)conf->rx_hash_fields_mask, (unsigned long)VRB_RX_HASH_ALL);
	return 0;
}

/* @return 0 or an errno */
static int
check_rss(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_qp_cap *cap = &attr->cap;

	if ((attr->comp_mask & RSS_ATTRS) != RSS_ATTRS)
		return refuse(EINVAL, "an indirection table and a hash can be given together only");
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		return refuse(EINVAL, "a queue pair with an indirection table has no send queue; "
				      "send_ops_flags cannot be given");
	if (create_flags(attr))
		return refuse(EOPNOTSUPP, "create_flags is %#x; give the flags to the work queues",
			create_flags(attr));
	if (!attr->rwq_ind_tbl || attr->rwq_ind_tbl->context != context)
		return refuse(EINVAL, "rwq_ind_tbl is missing, or belongs to another context");
	if (attr->send_cq || attr->recv_cq || attr->srq || cap->max_send_wr || cap->max_recv_wr ||
		cap->max_send_sge || cap->max_recv_sge || cap->max_inline_data)
		return refuse(EINVAL, "a queue pair with an indirection table has no queues of its "
				      "own; send_cq, recv_cq, srq "
				      "and cap must be zero");
	return check_hash(&attr->rx_hash_conf);
}

int
vrb_raw_check(struct ibv_context *context, const struct ibv_qp_init_attr_ex *attr)
{
	if (vrb_is_rss(attr))
		return check_rss(context, attr);
	if (create_flags(attr) & ~CREATE_FLAGS)
		return refuse(EOPNOTSUPP,
			"create_flags is %#x; queue pairs of raw frames have "
			"IBV_QP_CREATE_SCATTER_FCS and "
			"IBV_QP_CREATE_CVLAN_STRIPPING",
			create_flags(attr));
	return 0;
}

void
vrb_raw_init(struct vrb_qp_init *init, struct vrb_rss *rss, const struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_rx_hash_conf *conf = &attr->rx_hash_conf;

	init->rx_flags =
		(create_flags(attr) & IBV_QP_CREATE_SCATTER_FCS ? VRB_RX_SCATTER_FCS : 0) |
		(create_flags(attr) & IBV_QP_CREATE_CVLAN_STRIPPING ? VRB_RX_STRIP_CVLAN : 0);
	if (!vrb_is_rss(attr))
		return;
	vrb_rss_set_key(rss, conf->rx_hash_key, conf->rx_hash_key_len);
	vrb_rss_set_fields(rss, conf->rx_hash_fields_mask);
	init->rss = rss;
	init->ind_tbl = vrb_to_tbl(attr->rwq_ind_tbl)->tbl;
	init->pd = vrb_to_pd(attr->pd)->pd;
}

void
vrb_raw_ops(struct verbs_context *v)
{
	v->create_wq = vrb_verbs_create_wq;
	v->modify_wq = vrb_verbs_modify_wq;
	v->destroy_wq = vrb_verbs_destroy_wq;
	v->create_rwq_ind_table = vrb_verbs_create_rwq_ind_table;
	v->destroy_rwq_ind_table = vrb_verbs_destroy_rwq_ind_table;
	v->ibv_create_flow = vrb_verbs_create_flow;
	v->ibv_destroy_flow = vrb_verbs_destroy_flow;
	/* Where programs built against libibverbs 1.1.8 look for the two functions above. */
	v->ABI_placeholder1 = (void (*)(void))vrb_verbs_create_flow;
	v->ABI_placeholder2 = (void (*)(void))vrb_verbs_destroy_flow;
	v->create_counters = vrb_verbs_create_counters;
	v->destroy_counters = vrb_verbs_destroy_counters;
	v->attach_counters_point_flow = vrb_verbs_attach_counters_point_flow;
	v->read_counters = vrb_verbs_read_counters;
}

void
vrb_raw_caps(struct ibv_device_attr_ex *attr)
{
	attr->rss_caps.supported_qpts = 1u << IBV_QPT_RAW_PACKET;
	attr->rss_caps.max_rwq_indirection_tables = VRB_MAX_IND_TBL;
	attr->rss_caps.max_rwq_indirection_table_size = VRB_MAX_IND_TBL_SIZE;
	attr->rss_caps.rx_hash_fields_mask = VRB_RX_HASH_ALL;
	attr->rss_caps.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ;
	attr->max_wq_type_rq = VRB_MAX_WQ;
	attr->raw_packet_caps = IBV_RAW_PACKET_CAP_CVLAN_STRIPPING |
				IBV_RAW_PACKET_CAP_SCATTER_FCS | IBV_RAW_PACKET_CAP_IP_CSUM |
				IBV_RAW_PACKET_CAP_DELAY_DROP;
	attr->device_cap_flags_ex |= IBV_DEVICE_RAW_SCATTER_FCS;
}
