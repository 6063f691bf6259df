/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Checksums of raw frames (see raw_csum.h), on DPDK's and on ISA-L's CRC-32.
 */
#include <string.h>

#include <isa-l/crc.h>
#include <rte_ip.h>
#include <rte_mbuf.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "raw_csum.h"

/** Sum over the L4 part with its pseudo header: 0xffff when the checksum in it is right. */
static bool
l4_sum(const struct rte_mbuf *m, const struct vrb_frame *f, const void *l3, uint32_t l4_len,
	uint16_t *sum)
{
	bool v4 = (f->key.outer.present & VRB_FLOW_IPV4) != 0;
	uint32_t all;

	if (f->l4_off + l4_len > m->pkt_len || rte_raw_cksum_mbuf(m, f->l4_off, l4_len, sum) < 0)
		return false;
	all = *sum;
	if (v4) {
		all += rte_ipv4_phdr_cksum(l3, 0);
	} else {
		/* With extension headers the length and protocol of the header are not those of L4
		 * (RFC 8200, 8.1). */
		struct rte_ipv6_hdr ip = *(const struct rte_ipv6_hdr *)l3;

		ip.payload_len = rte_cpu_to_be_16((uint16_t)l4_len);
		ip.proto = f->key.outer.proto;
		all += rte_ipv6_phdr_cksum(&ip, 0);
	}
	all = (all & 0xffff) + (all >> 16);
	*sum = (uint16_t)((all & 0xffff) + (all >> 16));
	return true;
}

/** Length of the L4 part, from the IP header. @return false when the header cannot be right */
static bool
l4_length(const struct vrb_frame *f, const void *l3, uint32_t *len)
{
	uint32_t total;

	if (f->key.outer.present & VRB_FLOW_IPV4)
		total = rte_be_to_cpu_16(((const struct rte_ipv4_hdr *)l3)->total_length);
	else
		total = sizeof(struct rte_ipv6_hdr) +
			rte_be_to_cpu_16(((const struct rte_ipv6_hdr *)l3)->payload_len);
	if (total < f->l3_len)
		return false;
	*len = total - f->l3_len;
	return *len >= (f->key.outer.present & VRB_FLOW_UDP ? sizeof(struct rte_udp_hdr)
							    : sizeof(struct rte_tcp_hdr));
}

static bool
has_l4_sum(const struct vrb_frame *f)
{
	return f->l4_off != 0 && (f->key.outer.present & (VRB_FLOW_TCP | VRB_FLOW_UDP)) != 0;
}

bool
vrb_csum_ok(const struct rte_mbuf *m, const struct vrb_frame *f, const uint8_t *hdr)
{
	const void *l3 = hdr + f->l3_off;
	uint16_t sum;
	uint32_t len;

	if (!(f->key.outer.present & VRB_FLOW_IPV4) || !has_l4_sum(f) ||
		rte_raw_cksum(l3, f->l3_len) != 0xffff)
		return false;
	if (f->key.outer.present & VRB_FLOW_UDP) {
		const struct rte_udp_hdr *udp = (const struct rte_udp_hdr *)(hdr + f->l4_off);

		if (udp->dgram_cksum == 0)
			return true; /* RFC 768: the sender has made none */
	}
	return l4_length(f, l3, &len) && l4_sum(m, f, l3, len, &sum) && sum == 0xffff;
}

void
vrb_csum_make(struct rte_mbuf *m)
{
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *);
	struct vrb_frame f;
	uint16_t *field, sum;
	uint32_t len;
	void *l3;

	vrb_frame_parse(p, m->data_len, &f);
	if (f.l3_off == 0)
		return;
	l3 = p + f.l3_off;
	if (f.key.outer.present & VRB_FLOW_IPV4) {
		struct rte_ipv4_hdr *ip = l3;

		ip->hdr_checksum = 0;
		ip->hdr_checksum = (uint16_t)~rte_raw_cksum(ip, f.l3_len);
	}
	if (!has_l4_sum(&f) || !l4_length(&f, l3, &len))
		return;
	if (f.key.outer.present & VRB_FLOW_UDP)
		field = &((struct rte_udp_hdr *)(p + f.l4_off))->dgram_cksum;
	else
		field = &((struct rte_tcp_hdr *)(p + f.l4_off))->cksum;
	*field = 0;
	if (!l4_sum(m, &f, l3, len, &sum))
		return;
	/* A UDP checksum of 0 would mean that there is none; for TCP the other zero is as good. */
	*field = sum == 0xffff ? 0xffff : (uint16_t)~sum;
}

uint32_t
vrb_frame_fcs(const struct rte_mbuf *m)
{
	uint32_t crc = 0;

	for (; m != NULL; m = m->next)
		crc = crc32_gzip_refl(crc, rte_pktmbuf_mtod(m, const uint8_t *), m->data_len);
	return rte_cpu_to_le_32(crc);
}
