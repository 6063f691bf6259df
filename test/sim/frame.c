/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RoCEv2 frames taken apart and put together (see frame.h). Written from the text of the InfiniBand
 * Architecture Specification (chapter 9 and annex A17), plainly and slowly.
 */
#include <stdlib.h>
#include <string.h>

#include "frame.h"

#define ETH_LEN 14
#define UDP_LEN 8
#define BTH_LEN 12
#define ICRC_LEN 4

static const struct {
	const char *name;
	int has;
} ops[] = {
	[OP_SEND_FIRST] = {"SEND First", HAS_PAYLOAD},
	[OP_SEND_MIDDLE] = {"SEND Middle", HAS_PAYLOAD},
	[OP_SEND_LAST] = {"SEND Last", HAS_PAYLOAD},
	[OP_SEND_LAST_IMM] = {"SEND Last Imm", HAS_PAYLOAD | HAS_IMM},
	[OP_SEND_ONLY] = {"SEND Only", HAS_PAYLOAD},
	[OP_SEND_ONLY_IMM] = {"SEND Only Imm", HAS_PAYLOAD | HAS_IMM},
	[OP_WRITE_FIRST] = {"WRITE First", HAS_PAYLOAD | HAS_RETH},
	[OP_WRITE_MIDDLE] = {"WRITE Middle", HAS_PAYLOAD},
	[OP_WRITE_LAST] = {"WRITE Last", HAS_PAYLOAD},
	[OP_WRITE_LAST_IMM] = {"WRITE Last Imm", HAS_PAYLOAD | HAS_IMM},
	[OP_WRITE_ONLY] = {"WRITE Only", HAS_PAYLOAD | HAS_RETH},
	[OP_WRITE_ONLY_IMM] = {"WRITE Only Imm", HAS_PAYLOAD | HAS_RETH | HAS_IMM},
	[OP_READ_REQ] = {"READ Req", HAS_RETH},
	[OP_RESP_FIRST] = {"READ Resp First", HAS_PAYLOAD | HAS_AETH},
	[OP_RESP_MIDDLE] = {"READ Resp Middle", HAS_PAYLOAD},
	[OP_RESP_LAST] = {"READ Resp Last", HAS_PAYLOAD | HAS_AETH},
	[OP_RESP_ONLY] = {"READ Resp Only", HAS_PAYLOAD | HAS_AETH},
	[OP_ACK] = {"ACK", HAS_AETH},
	[OP_ATOMIC_ACK] = {"ATOMIC ACK", HAS_AETH | HAS_ORIG},
	[OP_CAS] = {"CAS", HAS_ATOMIC},
	[OP_FADD] = {"FADD", HAS_ATOMIC},
	[OP_RESERVED] = {NULL, -1},
	[OP_SEND_LAST_INV] = {"SEND Last Inv", HAS_PAYLOAD | HAS_INV},
	[OP_SEND_ONLY_INV] = {"SEND Only Inv", HAS_PAYLOAD | HAS_INV},
	[OP_SEND_ONLY_INV + 1 ... OP_ATOMIC_WRITE - 1] = {NULL, -1},
	[OP_ATOMIC_WRITE] = {"ATOMIC WRITE", HAS_PAYLOAD | HAS_RETH},
};

int
frame_opcode_has(uint8_t opcode)
{
	uint8_t op = opcode & 0x1f, transport = opcode & 0xe0;
	int has = op < sizeof(ops) / sizeof(ops[0]) ? ops[op].has : -1;

	switch (transport) {
	case 0:
		return has;
	case OP_UC:
		return op <= OP_WRITE_ONLY_IMM ? has : -1;
	case OP_UD:
		return op == OP_SEND_ONLY || op == OP_SEND_ONLY_IMM ? has | HAS_DETH : -1;
	case OP_XRC:
		if (has < 0 || (op >= OP_RESP_FIRST && op <= OP_ATOMIC_ACK))
			return has;
		return has | HAS_XRCETH;
	default:
		return -1;
	}
}

const char *
frame_opcode_name(uint8_t opcode)
{
	return frame_opcode_has(opcode) < 0 ? "?" : ops[opcode & 0x1f].name;
}

static uint32_t
get(const uint8_t *p, int n)
{
	uint32_t v = 0;

	while (n-- > 0)
		v = v << 8 | *p++;
	return v;
}

static uint64_t
get64(const uint8_t *p)
{
	return (uint64_t)get(p, 4) << 32 | get(p + 4, 4);
}

static uint8_t *
put(uint8_t *p, uint64_t v, int n)
{
	for (int i = n - 1; i >= 0; i--)
		*p++ = (uint8_t)(v >> (8 * i));
	return p;
}

uint32_t
frame_crc32(uint32_t crc, const void *buf, size_t n)
{
	static uint32_t table[256];
	const uint8_t *p = buf;

	if (table[1] == 0) {
		for (uint32_t i = 0; i < 256; i++) {
			uint32_t c = i;

			for (int k = 0; k < 8; k++)
				c = c & 1 ? 0xedb88320u ^ (c >> 1) : c >> 1;
			table[i] = c;
		}
	}
	crc = ~crc;
	while (n-- > 0)
		crc = table[(crc ^ *p++) & 0xff] ^ (crc >> 8);
	return ~crc;
}

uint32_t
frame_icrc(const uint8_t *p, uint32_t l3_off, bool v6, size_t end)
{
	uint8_t head[8 + 40 + UDP_LEN + BTH_LEN];
	size_t l3_len = v6 ? 40 : 20;
	size_t n = l3_len + UDP_LEN + BTH_LEN;
	uint8_t *ip = head + 8;

	memset(head, 0xff, 8);
	memcpy(ip, p + l3_off, n);
	if (v6) {
		ip[0] |= 0x0f;
		memset(ip + 1, 0xff, 3);
		ip[7] = 0xff;
	} else {
		ip[1] = 0xff;
		ip[8] = 0xff;
		memset(ip + 10, 0xff, 2);
	}
	memset(ip + l3_len + 6, 0xff, 2);
	ip[l3_len + UDP_LEN + 4] = 0xff;
	return frame_crc32(frame_crc32(0, head, 8 + n), p + l3_off + n, end - l3_off - n);
}

/* IP and UDP. Returns the offset of the BTH and sets end_off, or 0. */
static uint32_t
parse_below(struct frame *f, const uint8_t *p, size_t n)
{
	uint32_t udp, total, type;
	const uint8_t *ip = p + ETH_LEN;

	if (n < ETH_LEN + 20)
		return 0;
	memcpy(f->dmac, p, 6);
	memcpy(f->smac, p + 6, 6);
	type = get(p + 12, 2);
	f->l3_off = ETH_LEN;
	if (type == 0x0800 && ip[0] == 0x45) {
		total = get(ip + 2, 2);
		f->tos = ip[1];
		f->ip_id = get(ip + 4, 2);
		f->df = ip[6] & 0x40;
		f->ttl = ip[8];
		if (ip[9] != 17 || (get(ip + 6, 2) & 0x3fff) != 0)
			return 0;
		memcpy(f->saddr, ip + 12, 4);
		memcpy(f->daddr, ip + 16, 4);
		udp = ETH_LEN + 20;
	} else if (type == 0x86dd && ip[0] >> 4 == 6 && n >= ETH_LEN + 40) {
		f->v6 = true;
		total = 40 + get(ip + 4, 2);
		f->tos = get(ip, 4) >> 20 & 0xff;
		f->flow = get(ip, 4) & 0xfffff;
		f->ttl = ip[7];
		if (ip[6] != 17)
			return 0;
		memcpy(f->saddr, ip + 8, 16);
		memcpy(f->daddr, ip + 24, 16);
		udp = ETH_LEN + 40;
	} else {
		return 0;
	}
	if (ETH_LEN + total > n || ETH_LEN + total < udp + UDP_LEN + BTH_LEN + ICRC_LEN)
		return 0;
	f->sport = get(p + udp, 2);
	f->dport = get(p + udp + 2, 2);
	f->udp_csum = get(p + udp + 6, 2);
	if (f->dport != 4791 || get(p + udp + 4, 2) != ETH_LEN + total - udp)
		return 0;
	f->end_off = ETH_LEN + total - ICRC_LEN;
	return udp + UDP_LEN;
}

static void
parse_bth(struct frame *f, const uint8_t *b)
{
	f->opcode = b[0];
	f->se = b[1] & 0x80;
	f->migreq = b[1] & 0x40;
	f->pad = b[1] >> 4 & 3;
	f->tver = b[1] & 15;
	f->pkey = get(b + 2, 2);
	f->fecn_becn = b[4];
	f->qpn = get(b + 5, 3);
	f->ackreq = b[8] & 0x80;
	f->resv7 = b[8] & 0x7f;
	f->psn = get(b + 9, 3);
}

/* The extended headers, in the order of IBTA 9.1. Returns where the payload begins. */
static const uint8_t *
parse_ext(struct frame *f, const uint8_t *b, int has)
{
	if (has & HAS_DETH) {
		f->qkey = get(b, 4);
		f->src_qpn = get(b + 5, 3);
		b += 8;
	}
	if (has & HAS_XRCETH) {
		f->srqn = get(b + 1, 3);
		b += 4;
	}
	if (has & HAS_RETH) {
		f->va = get64(b);
		f->rkey = get(b + 8, 4);
		f->dmalen = get(b + 12, 4);
		b += 16;
	}
	if (has & HAS_ATOMIC) {
		f->va = get64(b);
		f->rkey = get(b + 8, 4);
		f->swap_add = get64(b + 12);
		f->compare = get64(b + 20);
		b += 28;
	}
	if (has & HAS_AETH) {
		f->syndrome = b[0];
		f->msn = get(b + 1, 3);
		b += 4;
	}
	if (has & HAS_ORIG) {
		f->orig = get64(b);
		b += 8;
	}
	if (has & HAS_IMM) {
		f->imm = get(b, 4);
		b += 4;
	}
	if (has & HAS_INV) {
		f->inv = get(b, 4);
		b += 4;
	}
	return b;
}

static uint32_t
ext_len(int has)
{
	return (has & HAS_DETH ? 8 : 0) + (has & HAS_XRCETH ? 4 : 0) + (has & HAS_RETH ? 16 : 0) +
	       (has & HAS_ATOMIC ? 28 : 0) + (has & HAS_AETH ? 4 : 0) + (has & HAS_ORIG ? 8 : 0) +
	       (has & HAS_IMM ? 4 : 0) + (has & HAS_INV ? 4 : 0);
}

int
frame_parse(struct frame *f, const uint8_t *p, size_t n)
{
	int has;

	memset(f, 0, sizeof(*f));
	f->bth_off = parse_below(f, p, n);
	if (f->bth_off == 0)
		return -1;
	parse_bth(f, p + f->bth_off);
	has = frame_opcode_has(f->opcode);
	if (has < 0 || f->bth_off + BTH_LEN + ext_len(has) + f->pad > f->end_off)
		return -1;
	f->payload = parse_ext(f, p + f->bth_off + BTH_LEN, has);
	f->payload_off = (uint32_t)(f->payload - p);
	f->len = f->end_off - f->payload_off - f->pad;
	f->icrc = (uint32_t)p[f->end_off] | (uint32_t)p[f->end_off + 1] << 8 |
		  (uint32_t)p[f->end_off + 2] << 16 | (uint32_t)p[f->end_off + 3] << 24;
	f->icrc_ok = f->icrc == frame_icrc(p, f->l3_off, f->v6, f->end_off);
	return 0;
}

static uint16_t
ip_checksum(const uint8_t *p)
{
	uint32_t sum = 0;

	for (int i = 0; i < 20; i += 2)
		sum += get(p + i, 2);
	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

static uint8_t *
build_below(const struct frame *f, uint8_t *p, uint32_t udp_len)
{
	memcpy(p, f->dmac, 6);
	memcpy(p + 6, f->smac, 6);
	p = put(p + 12, f->v6 ? 0x86dd : 0x0800, 2);
	if (f->v6) {
		p = put(p, 6u << 28 | (uint32_t)f->tos << 20 | f->flow, 4);
		p = put(p, udp_len, 2);
		p = put(p, 17, 1);
		p = put(p, f->ttl, 1);
		memcpy(p, f->saddr, 16);
		memcpy(p + 16, f->daddr, 16);
		p += 32;
	} else {
		uint8_t *ip = p;

		p = put(p, 0x4500u | f->tos, 2);
		p = put(p, 20 + udp_len, 2);
		p = put(p, f->ip_id, 2);
		p = put(p, f->df ? 0x4000 : 0, 2);
		p = put(p, (uint32_t)f->ttl << 8 | 17, 2);
		p = put(p, 0, 2);
		memcpy(p, f->saddr, 4);
		memcpy(p + 4, f->daddr, 4);
		p += 8;
		put(ip + 10, ip_checksum(ip), 2);
	}
	p = put(p, f->sport, 2);
	p = put(p, f->dport, 2);
	p = put(p, udp_len, 2);
	return put(p, f->udp_csum, 2);
}

static uint8_t *
build_transport(const struct frame *f, uint8_t *p, int has)
{
	*p++ = f->opcode;
	*p++ = (uint8_t)(f->se << 7 | f->migreq << 6 | f->pad << 4 | f->tver);
	p = put(p, f->pkey, 2);
	p = put(p, (uint32_t)f->fecn_becn << 24 | f->qpn, 4);
	p = put(p, (uint32_t)f->ackreq << 31 | (uint32_t)f->resv7 << 24 | f->psn, 4);
	if (has & HAS_DETH) {
		p = put(p, f->qkey, 4);
		p = put(p, f->src_qpn, 4);
	}
	if (has & HAS_XRCETH)
		p = put(p, f->srqn, 4);
	if (has & (HAS_RETH | HAS_ATOMIC)) {
		p = put(p, f->va, 8);
		p = put(p, f->rkey, 4);
	}
	if (has & HAS_RETH)
		p = put(p, f->dmalen, 4);
	if (has & HAS_ATOMIC) {
		p = put(p, f->swap_add, 8);
		p = put(p, f->compare, 8);
	}
	if (has & HAS_AETH)
		p = put(p, (uint32_t)f->syndrome << 24 | f->msn, 4);
	if (has & HAS_ORIG)
		p = put(p, f->orig, 8);
	if (has & HAS_IMM)
		p = put(p, f->imm, 4);
	if (has & HAS_INV)
		p = put(p, f->inv, 4);
	return p;
}

size_t
frame_build(const struct frame *f, uint8_t *p, size_t room)
{
	int has = frame_opcode_has(f->opcode);
	uint32_t body, total;
	uint32_t l3_len = f->v6 ? 40 : 20;
	uint8_t *q;

	if (has < 0)
		has = HAS_PAYLOAD; /* an opcode that nobody knows: the payload follows the BTH */
	body = BTH_LEN + ext_len(has) + f->len + f->pad + ICRC_LEN;
	total = ETH_LEN + l3_len + UDP_LEN + body;
	if (total > room)
		abort();
	q = build_below(f, p, UDP_LEN + body);
	q = build_transport(f, q, has);
	if (f->len > 0)
		memcpy(q, f->payload, f->len);
	memset(q + f->len, 0, f->pad);
	frame_fix_icrc(p, total);
	return total;
}

void
frame_fix_icrc(uint8_t *p, size_t n)
{
	bool v6 = get(p + 12, 2) == 0x86dd;
	uint32_t icrc = frame_icrc(p, ETH_LEN, v6, n - ICRC_LEN);

	for (int i = 0; i < 4; i++)
		p[n - ICRC_LEN + i] = (uint8_t)(icrc >> (8 * i));
}

void
frame_print(FILE *out, const struct frame *f)
{
	int has = frame_opcode_has(f->opcode);

	fprintf(out, "%-16s qp=%06x psn=%06x%s%s len=%u", frame_opcode_name(f->opcode), f->qpn,
		f->psn, f->ackreq ? " A" : "", f->se ? " SE" : "", f->len);
	if (has < 0)
		return;
	if (has & (HAS_RETH | HAS_ATOMIC))
		fprintf(out, " va=%llx rkey=%x", (unsigned long long)f->va, f->rkey);
	if (has & HAS_RETH)
		fprintf(out, " dlen=%u", f->dmalen);
	if (has & HAS_AETH)
		fprintf(out, " syn=%02x msn=%u", f->syndrome, f->msn);
	if (has & HAS_IMM)
		fprintf(out, " imm=%x", f->imm);
	if (has & HAS_INV)
		fprintf(out, " inv=%x", f->inv);
	if (!f->icrc_ok)
		fprintf(out, " ICRC WRONG");
}
