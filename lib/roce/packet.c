/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets: taking a received one apart, and putting together one to send.
 *
 * A packet to send starts as a copy of the path's template (Ethernet, IP, UDP), so building one is
 * a copy of 42 or 62 bytes, the BTH, and two lengths.
 */
#include <errno.h>
#include <string.h>

#include "engine.h"
#include "guard.h"
#include "icrc.h"

/*
 * In every packet, as the kernel does: it puts the route's limit in the place of the address
 * vector's, in which many programs leave 1.
 */
#define VRB_TTL 64

#define VRB_TAIL_MAX (3 + VRB_ICRC_LEN)

/* ---- receiving ---- */

/** Whether the frame is UDP to port 4791 at one of our addresses; finds L3 and what lies behind
 * UDP. */
static bool
find_roce(struct vrb_engine *e, const struct rte_mbuf *m, struct vrb_pkt *pkt, uint32_t *l3_len,
	uint32_t *udp_len)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	const struct rte_udp_hdr *udp;
	unsigned int i;

	if (m->data_len < VRB_L2_LEN + sizeof(struct rte_ipv4_hdr) + sizeof(*udp))
		return false;
	pkt->l3 = eth + 1;
	if (eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4)) {
		const struct rte_ipv4_hdr *ip = pkt->l3;

		/* RoCE packets have no options and are never fragmented. */
		if (ip->version_ihl != RTE_IPV4_VHL_DEF || ip->next_proto_id != IPPROTO_UDP ||
			(ip->fragment_offset & rte_cpu_to_be_16(0x3fff)) != 0)
			return false;
		for (i = 0; i < VRB_GIDS; i++) {
			if (vrb_gid_is_v4(&e->conf.gid[i]) &&
				e->conf.gid[i].dword[3] == ip->dst_addr)
				break;
		}
		*l3_len = sizeof(*ip);
		*udp_len = rte_be_to_cpu_16(ip->total_length) - (uint32_t)sizeof(*ip);
		pkt->v6 = false;
	} else if (eth->ether_type == rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6)) {
		const struct rte_ipv6_hdr *ip = pkt->l3;

		if (m->data_len < VRB_L2_LEN + sizeof(*ip) + sizeof(*udp) ||
			ip->proto != IPPROTO_UDP ||
			(ip->vtc_flow & rte_cpu_to_be_32(0xf0000000)) !=
				rte_cpu_to_be_32(0x60000000))
			return false;
		for (i = 0; i < VRB_GIDS; i++) {
			if (memcmp(e->conf.gid[i].raw, ip->dst_addr, 16) == 0)
				break;
		}
		*l3_len = sizeof(*ip);
		*udp_len = rte_be_to_cpu_16(ip->payload_len);
		pkt->v6 = true;
	} else {
		return false;
	}
	pkt->group = unlikely(i == VRB_GIDS && e->num_groups > 0) ? vrb_mcast_find(e, pkt) : NULL;
	udp = (const struct rte_udp_hdr *)((const uint8_t *)pkt->l3 + *l3_len);
	return (i < VRB_GIDS || pkt->group != NULL) &&
	       udp->dst_port == rte_cpu_to_be_16(VRB_ROCE_PORT);
}

static bool
checksums_ok(const struct rte_mbuf *m, const struct vrb_pkt *pkt, const struct rte_udp_hdr *udp,
	uint32_t l4_off)
{
	if (!pkt->v6) {
		/* The checksum of a good header with its checksum field is all ones, that is, zero
		 * in complement. */
		uint16_t sum = rte_raw_cksum(pkt->l3, sizeof(struct rte_ipv4_hdr));

		if (sum != 0xffff)
			return false;
	}
	/* UDP: 0 means none, also on IPv6 (A17.3.2); what is there has to be right. */
	if (likely(udp->dgram_cksum == 0))
		return true;
	return (pkt->v6 ? rte_ipv6_udptcp_cksum_mbuf_verify(m, pkt->l3, l4_off)
			: rte_ipv4_udptcp_cksum_mbuf_verify(m, pkt->l3, l4_off)) == 0;
}

static bool
icrc_ok(const struct vrb_engine *e, const struct rte_mbuf *m, const struct vrb_pkt *pkt,
	uint32_t off)
{
	uint32_t icrc;
	const uint8_t *wire;
	uint8_t buf[VRB_ICRC_LEN];

	if (e->conf.icrc_omitted != 0 && (m->ol_flags & e->conf.icrc_omitted) != 0)
		return true;
	icrc = vrb_icrc(m, VRB_L2_LEN, pkt->v6, off);
	wire = rte_pktmbuf_read(m, off, VRB_ICRC_LEN, buf);
	return wire != NULL && icrc == (wire[0] | (uint32_t)wire[1] << 8 | (uint32_t)wire[2] << 16 |
					       (uint32_t)wire[3] << 24);
}

/** The headers that only some transports have; leaves ext at those that all have. */
static void
take_extended(struct vrb_pkt *pkt, const uint8_t *ext)
{
	if (pkt->info->flags & VRB_OP_DETH) {
		const struct vrb_deth *deth = (const struct vrb_deth *)ext;

		pkt->qkey = rte_be_to_cpu_32(deth->qkey);
		pkt->src_qpn = rte_be_to_cpu_32(deth->src_qpn) & 0xffffff;
		ext += sizeof(*deth);
	} else if (pkt->info->flags & VRB_OP_XRCETH) {
		pkt->srqn = rte_be_to_cpu_32(((const struct vrb_xrceth *)ext)->srqn) & 0xffffff;
		ext += sizeof(struct vrb_xrceth);
	}
	pkt->ext = ext;
}

/** Packets of a connection from elsewhere than its peer are dropped (CONVENTIONS: source address).
 */
static bool
from_peer(const struct vrb_qp *qp, const struct vrb_pkt *pkt)
{
	if (qp->transport == VRB_TRANSPORT_UD)
		return true;
	if (qp->path.v6 != pkt->v6)
		return false;
	if (pkt->v6)
		return memcmp(((const struct rte_ipv6_hdr *)pkt->l3)->src_addr,
			       qp->attr.av.dgid.raw, 16) == 0;
	return ((const struct rte_ipv4_hdr *)pkt->l3)->src_addr == qp->attr.av.dgid.dword[3];
}

enum vrb_parse
vrb_pkt_parse(struct vrb_engine *e, struct rte_mbuf *m, struct vrb_pkt *pkt, struct vrb_qp **out)
{
	const struct rte_udp_hdr *udp;
	const struct vrb_bth *bth;
	uint32_t l3_len, udp_len, bth_off, pad;
	struct vrb_qp *qp;

	if (!find_roce(e, m, pkt, &l3_len, &udp_len))
		return VRB_PARSE_OTHER;
	e->stats.rx_packets++;
	e->stats.rx_bytes += m->pkt_len;
	pkt->m = m;
	bth_off = VRB_L2_LEN + l3_len + sizeof(*udp);
	udp = (const struct rte_udp_hdr *)((const uint8_t *)pkt->l3 + l3_len);
	bth = (const struct vrb_bth *)(udp + 1);
	/* The frame may be longer than the packet (Ethernet pads), never shorter. */
	if (udp_len < sizeof(*udp) + sizeof(*bth) + VRB_ICRC_LEN ||
		VRB_L2_LEN + l3_len + udp_len > m->pkt_len ||
		rte_be_to_cpu_16(udp->dgram_len) != udp_len ||
		m->data_len < bth_off + sizeof(*bth) || (bth->flags & VRB_BTH_TVER) != 0)
		goto malformed;
	pkt->opcode = bth->opcode & VRB_OPERATION_MASK;
	pkt->info = vrb_opcode_info(bth->opcode);
	if (unlikely(pkt->info == NULL)) {
		e->stats.rx_opcode++;
		return VRB_PARSE_DROP;
	}
	pad = vrb_bth_pad(bth);
	pkt->payload_off = bth_off + sizeof(*bth) + pkt->info->ext_len;
	if (m->data_len < pkt->payload_off ||
		udp_len < sizeof(*udp) + sizeof(*bth) + pkt->info->ext_len + pad + VRB_ICRC_LEN)
		goto malformed;
	pkt->payload_len =
		udp_len - sizeof(*udp) - sizeof(*bth) - pkt->info->ext_len - pad - VRB_ICRC_LEN;
	if (!(pkt->info->flags & VRB_OP_PAYLOAD) && pkt->payload_len + pad != 0)
		goto malformed;
	if (unlikely(!checksums_ok(m, pkt, udp, VRB_L2_LEN + l3_len)))
		goto malformed;
	if (unlikely(!icrc_ok(e, m, pkt, VRB_L2_LEN + l3_len + udp_len - VRB_ICRC_LEN))) {
		e->stats.rx_icrc++;
		return VRB_PARSE_DROP;
	}
	/* The upper bit of a P_Key tells full from limited membership (IBTA 10.9.3). */
	if (unlikely((rte_be_to_cpu_16(bth->pkey) & 0x7fff) != (VRB_PKEY & 0x7fff))) {
		e->stats.rx_pkey++;
		return VRB_PARSE_DROP;
	}
	pkt->psn = vrb_bth_psn(bth);
	pkt->ackreq = (bth->apsn & rte_cpu_to_be_32(VRB_BTH_ACKREQ)) != 0;
	pkt->solicited = (bth->flags & VRB_BTH_SE) != 0;
	take_extended(pkt, (const uint8_t *)(bth + 1));
	*out = NULL;
	if (unlikely(pkt->group != NULL)) {
		/* IBTA 9.8.3.1: a datagram, to the one number that stands for all. */
		if (vrb_bth_qpn(bth) == VRB_MCAST_QPN && (pkt->info->flags & VRB_OP_DETH))
			return VRB_PARSE_OK;
		e->stats.rx_no_qp++;
		return VRB_PARSE_DROP;
	}
	qp = vrb_engine_qp(e, vrb_bth_qpn(bth));
	if (unlikely(qp == NULL)) {
		e->stats.rx_no_qp++;
		return VRB_PARSE_DROP;
	}
	if (unlikely(vrb_qp_get_state(qp) < VRB_QPS_RTR || vrb_qp_get_state(qp) == VRB_QPS_ERR)) {
		e->stats.rx_qp_state++;
		return VRB_PARSE_DROP;
	}
	if (unlikely((bth->opcode & VRB_TRANSPORT_MASK) != qp->transport)) {
		e->stats.rx_opcode++;
		return VRB_PARSE_DROP;
	}
	if (unlikely(!from_peer(qp, pkt))) {
		e->stats.rx_wrong_peer++;
		return VRB_PARSE_DROP;
	}
	*out = qp;
	return VRB_PARSE_OK;

malformed:
	e->stats.rx_malformed++;
	return VRB_PARSE_DROP;
}

int
vrb_pkt_read(const struct vrb_pkt *pkt, uint32_t off, void *dst, uint32_t len)
{
	const struct rte_mbuf *m = pkt->m;
	uint8_t *to = dst;

	off += pkt->payload_off;
	while (len > 0) {
		uint32_t n;

		if (off >= m->data_len) {
			off -= m->data_len;
			m = m->next;
			continue;
		}
		n = RTE_MIN(m->data_len - off, len);
		if (unlikely(vrb_guard_copy(to, rte_pktmbuf_mtod_offset(m, const void *, off), n) <
			     0))
			return -EFAULT;
		to += n;
		len -= n;
		off += n;
	}
	return 0;
}

/* ---- sending ---- */

uint16_t
vrb_udp_sport(const struct vrb_qp *qp)
{
	uint32_t fl = qp->attr.av.flow_label & 0xfffff;

	/* So that networks spread connections: from the flow label, or from the QPNs when there is
	 * none. */
	if (qp->transport == VRB_TRANSPORT_UD)
		return (uint16_t)(0xc000 + ((uint32_t)(qp->qpn * 0x61c88647u) >> 18));
	if (fl == 0) {
		uint64_t v = (uint64_t)qp->qpn * qp->attr.dest_qpn;

		v ^= v >> 20;
		v ^= v >> 40;
		fl = v & 0xfffff;
	}
	return 0xc000 | ((fl & 0x3fff) ^ ((fl >> 14) & 0x3f));
}

void
vrb_path_init(
	const struct vrb_engine *e, const struct vrb_av *av, uint16_t sport, struct vrb_path *path)
{
	const struct vrb_engine_conf *conf = &e->conf;
	struct rte_ether_hdr *eth = (struct rte_ether_hdr *)path->hdr;
	struct rte_udp_hdr *udp;

	memset(path, 0, sizeof(*path));
	memcpy(eth->dst_addr.addr_bytes, av->dmac, RTE_ETHER_ADDR_LEN);
	memcpy(eth->src_addr.addr_bytes, conf->mac, RTE_ETHER_ADDR_LEN);
	path->v6 = !vrb_gid_is_v4(&av->dgid);
	path->multicast = vrb_gid_is_multicast(&av->dgid);
	path->loopback = memcmp(av->dmac, conf->mac, RTE_ETHER_ADDR_LEN) == 0;
	if (path->v6) {
		struct rte_ipv6_hdr *ip = (struct rte_ipv6_hdr *)(eth + 1);

		eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV6);
		ip->vtc_flow = rte_cpu_to_be_32(
			0x60000000 | (uint32_t)av->tclass << 20 | (av->flow_label & 0xfffff));
		ip->proto = IPPROTO_UDP;
		ip->hop_limits = VRB_TTL;
		memcpy(ip->src_addr, conf->gid[av->sgid_index].raw, 16);
		memcpy(ip->dst_addr, av->dgid.raw, 16);
		udp = (struct rte_udp_hdr *)(ip + 1);
	} else {
		struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(eth + 1);

		eth->ether_type = rte_cpu_to_be_16(RTE_ETHER_TYPE_IPV4);
		ip->version_ihl = RTE_IPV4_VHL_DEF;
		ip->type_of_service = av->tclass;
		/* Never fragmented, so the identification may be 0 (RFC 6864, 4.1). */
		ip->fragment_offset = rte_cpu_to_be_16(RTE_IPV4_HDR_DF_FLAG);
		ip->time_to_live = VRB_TTL;
		ip->next_proto_id = IPPROTO_UDP;
		ip->src_addr = conf->gid[av->sgid_index].dword[3];
		ip->dst_addr = av->dgid.dword[3];
		path->ip_sum = rte_raw_cksum(ip, sizeof(*ip));
		udp = (struct rte_udp_hdr *)(ip + 1);
	}
	udp->src_port = rte_cpu_to_be_16(sport);
	udp->dst_port = rte_cpu_to_be_16(VRB_ROCE_PORT);
	path->hdr_len = (uint32_t)((uint8_t *)(udp + 1) - path->hdr);
}

struct rte_mbuf *
vrb_pkt_begin(struct vrb_qp *qp, const struct vrb_path *path, uint8_t opcode, uint32_t dest_qpn,
	uint32_t psn, uint32_t flags, void **ext)
{
	struct vrb_engine *e = qp->engine;
	struct rte_mbuf *m = rte_pktmbuf_alloc(e->conf.pool);
	const struct vrb_opcode_info *info;
	struct vrb_bth *bth;
	uint8_t *p;

	if (unlikely(m == NULL)) {
		e->stats.no_mbuf++;
		e->starved = true;
		return NULL;
	}
	opcode |= qp->transport;
	info = vrb_opcode_info(opcode);
	e->out_loop = path->loopback;
	e->out_multicast = path->multicast;
	p = rte_pktmbuf_mtod(m, uint8_t *);
	memcpy(p, path->hdr, path->hdr_len);
	bth = (struct vrb_bth *)(p + path->hdr_len);
	bth->opcode = opcode;
	bth->flags = flags & VRB_BTH_SE;
	bth->pkey = rte_cpu_to_be_16(VRB_PKEY);
	bth->qpn = rte_cpu_to_be_32(dest_qpn);
	bth->apsn = rte_cpu_to_be_32(psn | (flags & VRB_BTH_ACKREQ));
	*ext = bth + 1;
	m->data_len = path->hdr_len + sizeof(*bth) + info->ext_len;
	m->pkt_len = m->data_len;
	return m;
}

static void
ext_free(void *addr __rte_unused, void *opaque __rte_unused)
{
	/* The memory is the program's. */
}

/** Chains @p len bytes of the program's memory as they are. */
static int
chain(struct vrb_engine *e, struct rte_mbuf *m, const void *src, uint32_t len)
{
	struct rte_mbuf *seg = rte_pktmbuf_alloc(e->conf.pool);
	struct rte_mbuf_ext_shared_info *info;

	if (unlikely(seg == NULL)) {
		e->stats.no_mbuf++;
		e->starved = true;
		return -ENOMEM;
	}
	/* The shared info stands in the segment's own buffer, which is free now; a count of 1 is
	 * given back without atomics. */
	info = seg->buf_addr;
	info->free_cb = ext_free;
	info->fcb_opaque = NULL;
	rte_mbuf_ext_refcnt_set(info, 1);
	rte_pktmbuf_attach_extbuf(seg, (void *)(uintptr_t)src, RTE_BAD_IOVA, len, info);
	seg->data_off = 0;
	seg->data_len = len;
	rte_pktmbuf_lastseg(m)->next = seg;
	m->nb_segs++;
	m->pkt_len += len;
	return 0;
}

/** A new last segment, or NULL. */
static struct rte_mbuf *
add_segment(struct vrb_engine *e, struct rte_mbuf *m)
{
	struct rte_mbuf *seg = rte_pktmbuf_alloc(e->conf.pool);

	if (unlikely(seg == NULL)) {
		e->stats.no_mbuf++;
		e->starved = true;
		return NULL;
	}
	rte_pktmbuf_lastseg(m)->next = seg;
	m->nb_segs++;
	return seg;
}

int
vrb_pkt_copy(struct vrb_engine *e, struct rte_mbuf *m, const void *src, uint32_t len)
{
	struct rte_mbuf *last = rte_pktmbuf_lastseg(m);

	while (len > 0) {
		/* What is left behind it is for the pad and the ICRC. */
		uint32_t room = RTE_MBUF_HAS_EXTBUF(last) ? 0 : rte_pktmbuf_tailroom(last), n;

		if (room <= VRB_TAIL_MAX) {
			last = add_segment(e, m);
			if (unlikely(last == NULL))
				return -ENOMEM;
			room = rte_pktmbuf_tailroom(last);
		}
		n = RTE_MIN(len, room - VRB_TAIL_MAX);
		if (unlikely(vrb_guard_copy(rte_pktmbuf_mtod_offset(last, void *, last->data_len),
				     src, n) < 0))
			return -EFAULT;
		last->data_len += n;
		m->pkt_len += n;
		src = (const uint8_t *)src + n;
		len -= n;
	}
	return 0;
}

int
vrb_pkt_payload(struct vrb_engine *e, struct rte_mbuf *m, const void *src, uint32_t len)
{
	return e->zero_copy && len > VRB_TX_COPY ? chain(e, m, src, len)
						 : vrb_pkt_copy(e, m, src, len);
}

int
vrb_pkt_end(
	struct vrb_engine *e, const struct vrb_path *path, struct rte_mbuf *m, uint32_t payload_len)
{
	uint8_t *p = rte_pktmbuf_mtod(m, uint8_t *), *tail;
	uint32_t pad = -payload_len & 3u, udp_len;
	struct rte_udp_hdr *udp = (struct rte_udp_hdr *)(p + path->hdr_len - sizeof(*udp));

	((struct vrb_bth *)(udp + 1))->flags |= pad << VRB_BTH_PAD_SHIFT;
	if (RTE_MBUF_HAS_EXTBUF(rte_pktmbuf_lastseg(m)) && unlikely(add_segment(e, m) == NULL))
		return -ENOMEM;
	tail = (uint8_t *)rte_pktmbuf_append(m, pad + VRB_ICRC_LEN);
	memset(tail, 0, pad + VRB_ICRC_LEN);
	udp_len = m->pkt_len - path->hdr_len + sizeof(*udp);
	udp->dgram_len = rte_cpu_to_be_16((uint16_t)udp_len);
	if (path->v6) {
		((struct rte_ipv6_hdr *)(p + VRB_L2_LEN))->payload_len = udp->dgram_len;
	} else {
		struct rte_ipv4_hdr *ip = (struct rte_ipv4_hdr *)(p + VRB_L2_LEN);
		uint32_t sum;

		ip->total_length = rte_cpu_to_be_16((uint16_t)(udp_len + sizeof(*ip)));
		sum = path->ip_sum + ip->total_length;
		sum = (sum & 0xffff) + (sum >> 16);
		ip->hdr_checksum = (uint16_t)~sum;
	}
	if (e->conf.icrc) {
		uint32_t icrc = vrb_icrc(m, VRB_L2_LEN, path->v6, m->pkt_len - VRB_ICRC_LEN);
		struct rte_mbuf *last = rte_pktmbuf_lastseg(m);
		uint8_t *wire =
			rte_pktmbuf_mtod_offset(last, uint8_t *, last->data_len - VRB_ICRC_LEN);

		wire[0] = icrc & 0xff;
		wire[1] = (icrc >> 8) & 0xff;
		wire[2] = (icrc >> 16) & 0xff;
		wire[3] = icrc >> 24;
	} else {
		m->ol_flags |= e->conf.icrc_omitted;
	}
	return 0;
}
