/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The invariant CRC of RoCEv2, on ISA-L's CRC-32 (see icrc.h).
 */
#include <string.h>

#include <isa-l/crc.h>
#include <rte_ip.h>
#include <rte_udp.h>

#include "hdr.h"
#include "icrc.h"

/* Eight bytes of ones stand for the LRH that RoCE has not (A17.3.3). */
#define LRH_LEN 8

uint32_t
vrb_icrc(const struct rte_mbuf *m, uint32_t l3_off, bool v6, uint32_t end)
{
	uint8_t masked[LRH_LEN + sizeof(struct rte_ipv6_hdr) + sizeof(struct rte_udp_hdr) +
		       sizeof(struct vrb_bth)];
	uint32_t l3_len = v6 ? sizeof(struct rte_ipv6_hdr) : sizeof(struct rte_ipv4_hdr);
	uint32_t len = l3_len + sizeof(struct rte_udp_hdr) + sizeof(struct vrb_bth);
	uint32_t off = l3_off + len;
	struct rte_udp_hdr *udp;
	struct vrb_bth *bth;
	uint32_t crc;

	memset(masked, 0xff, LRH_LEN);
	memcpy(masked + LRH_LEN, rte_pktmbuf_mtod_offset(m, const uint8_t *, l3_off), len);
	if (v6) {
		struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(masked + LRH_LEN);

		ip->vtc_flow |= rte_cpu_to_be_32(0x0fffffff);
		ip->hop_limits = 0xff;
	} else {
		struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(masked + LRH_LEN);

		ip->type_of_service = 0xff;
		ip->time_to_live = 0xff;
		ip->hdr_checksum = 0xffff;
	}
	udp = (struct rte_udp_hdr *)(masked + LRH_LEN + l3_len);
	udp->dgram_cksum = 0xffff;
	bth = (struct vrb_bth *)(udp + 1);
	bth->qpn |= rte_cpu_to_be_32(0xff000000);
	crc = crc32_gzip_refl(0, masked, LRH_LEN + len);

	/* The rest as it stands, through the segments. */
	end -= off;
	for (; end > 0 && m != NULL; m = m->next) {
		uint32_t n;

		if (off >= m->data_len) {
			off -= m->data_len;
			continue;
		}
		n = RTE_MIN(m->data_len - off, end);
		crc = crc32_gzip_refl(crc, rte_pktmbuf_mtod_offset(m, const uint8_t *, off), n);
		end -= n;
		off = 0;
	}
	return crc;
}
