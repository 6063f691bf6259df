/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Raw frames to send: UDP over IPv4 between addresses of the range for benchmarks (RFC 2544), with
 * a source port for each flow.
 */
#include <string.h>

#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "traffic.h"

#define SRC_ADDR 0xc6120001 /* 198.18.0.1 */
#define DST_ADDR 0xc6130001 /* 198.19.0.1 */
#define FIRST_PORT 1024
#define DST_PORT 9 /* discard */

void
tp_frame_fill(uint8_t *buf, uint32_t len, const struct tp_job_conf *conf, uint64_t number)
{
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)buf;
	struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(eth + 1);
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(ip + 1);
	uint32_t flow = number % conf->flows;

	memcpy(&eth->dst_addr, conf->dst_mac, RTE_ETHER_ADDR_LEN);
	memcpy(&eth->src_addr, conf->src_mac, RTE_ETHER_ADDR_LEN);
	eth->ether_type = RTE_BE16(RTE_ETHER_TYPE_IPV4);
	memset(ip, 0, sizeof(*ip) + sizeof(*udp));
	ip->version_ihl = RTE_IPV4_VHL_DEF;
	ip->total_length = rte_cpu_to_be_16(len - sizeof(*eth));
	ip->time_to_live = 64;
	ip->next_proto_id = IPPROTO_UDP;
	ip->src_addr = RTE_BE32(SRC_ADDR);
	ip->dst_addr = RTE_BE32(DST_ADDR);
	ip->hdr_checksum = rte_ipv4_cksum(ip);
	udp->src_port = rte_cpu_to_be_16(FIRST_PORT + flow);
	udp->dst_port = RTE_BE16(DST_PORT);
	udp->dgram_len = rte_cpu_to_be_16(len - sizeof(*eth) - sizeof(*ip));
}
