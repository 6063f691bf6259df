/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * See raw_util.h.
 */
#include <arpa/inet.h>
#include <endian.h>

#include "raw_util.h"

const uint8_t group_mac[6] = {0x01, 0x00, 0x5e, 0x01, 0x02, 0x03};

void
own_mac(struct rig *r, uint8_t *mac)
{
	union ibv_gid gid;

	/* The second half of a link-local address is made of it (RFC 4291, appendix A). */
	assert_int_equal(ibv_query_gid(r->ctx, 1, 1, &gid), 0);
	memcpy(mac, gid.raw + 8, 3);
	memcpy(mac + 3, gid.raw + 13, 3);
	mac[0] ^= 2;
}

void
make_frame(
	struct rig *r, void *buf, const uint8_t *dst, uint32_t len, uint16_t sport, uint16_t dport)
{
	const uint16_t ip_len = htons((uint16_t)(len - 14)), udp_len = htons((uint16_t)(len - 34));
	const uint16_t ports[2] = {htons(sport), htons(dport)};
	uint8_t *p = buf;
	uint32_t i;

	memset(p, 0, FRAME_HEADERS);
	own_mac(r, p + 6);
	memcpy(p, dst ? dst : p + 6, 6);
	p[12] = 0x08;
	p[14] = 0x45;
	memcpy(p + 16, &ip_len, 2);
	p[22] = 64;
	p[23] = 17;
	memcpy(p + 26, "\x0a\x01\x02\x03\x0a\x04\x05\x06", 8);
	memcpy(p + 34, ports, 4);
	memcpy(p + 38, &udp_len, 2);
	for (i = FRAME_HEADERS; i < len; i++)
		p[i] = (uint8_t)(i * 7);
}

void
add_vlan(void *buf, uint32_t len, uint16_t tci)
{
	uint8_t *p = buf;

	memmove(p + 16, p + 12, len - 12);
	p[12] = 0x81;
	p[13] = 0x00;
	p[14] = (uint8_t)(tci >> 8);
	p[15] = (uint8_t)tci;
}

void
raw_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
	struct ibv_qp_attr attr = {.qp_state = state, .port_num = 1};

	assert_int_equal(
		ibv_modify_qp(qp, &attr, IBV_QP_STATE | (state == IBV_QPS_INIT ? IBV_QP_PORT : 0)),
		0);
}

struct ibv_qp *
make_raw(struct rig *r, struct ibv_cq *cq, uint32_t create_flags)
{
	struct ibv_qp_init_attr_ex attr = {
		.send_cq = r->cq,
		.recv_cq = cq,
		.cap = {.max_send_wr = 64,
			.max_recv_wr = 64,
			.max_send_sge = 4,
			.max_recv_sge = 4,
			.max_inline_data = 256},
		.qp_type = IBV_QPT_RAW_PACKET,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = r->pd,
		.create_flags = create_flags,
		.send_ops_flags = IBV_QP_EX_WITH_SEND,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(r->ctx, &attr);

	assert_non_null(qp);
	raw_to(qp, IBV_QPS_INIT);
	raw_to(qp, IBV_QPS_RTR);
	raw_to(qp, IBV_QPS_RTS);
	return qp;
}

void
send_frame(struct rig *r, struct ibv_qp *qp, void *buf, uint32_t len)
{
	assert_int_equal(post_send(r, qp, 99, IBV_WR_SEND, buf, len), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
}

struct eth_rule
rule_to(struct rig *r, const uint8_t *dst)
{
	struct eth_rule rule = {
		.attr = {.type = IBV_FLOW_ATTR_NORMAL,
			.size = sizeof(rule),
			.num_of_specs = 1,
			.port = 1},
		.eth = {.type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth)},
	};

	if (dst)
		memcpy(rule.eth.val.dst_mac, dst, 6);
	else
		own_mac(r, rule.eth.val.dst_mac);
	memset(rule.eth.mask.dst_mac, 0xff, 6);
	return rule;
}

struct ibv_flow *
steer(struct rig *r, struct ibv_qp *qp, const uint8_t *dst)
{
	struct eth_rule rule = rule_to(r, dst);
	struct ibv_flow *flow = ibv_create_flow(qp, &rule.attr);

	assert_non_null(flow);
	return flow;
}
