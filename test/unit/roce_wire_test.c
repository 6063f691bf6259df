/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire format: captures of another implementation, every field, every opcode, every length,
 * every flipped bit.
 */
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "icrc.h"
#include "roce_capture.h"
#include "roce_rig.h"

/* The engine as the receiver of a captured packet. */
static struct rig *
receiver_of(const struct frame *f, char sender, enum vrb_mtu mtu)
{
	struct rig *r =
		rig_bare(&(struct rig_conf){.side = sender == 'A' ? 'B' : 'A', .v6 = f->v6});

	r->e->next_qpn = f->qpn;
	r->init = (struct vrb_qp_init){.type = VRB_QPT_RC,
		.pd = r->pd,
		.send_cq = r->scq,
		.recv_cq = r->rcq,
		.max_send_wr = 4,
		.max_recv_wr = 4,
		.max_send_sge = 1,
		.max_recv_sge = 1};
	r->attr = (struct vrb_qp_attr){.path_mtu = mtu,
		.dest_qpn = RIG_PEER_QPN,
		.rq_psn = f->psn,
		.port_num = 1,
		.access = VRB_ACCESS_REMOTE,
		.max_dest_rd_atomic = 4,
		.av.sgid_index = f->v6};
	memcpy(r->attr.av.dmac, r->peer_mac, 6);
	if (f->v6) {
		memcpy(r->attr.av.dgid.raw, r->peer_ip6, 16);
	} else {
		memset(r->attr.av.dgid.raw + 10, 0xff, 2);
		memcpy(r->attr.av.dgid.raw + 12, r->peer_ip, 4);
	}
	r->qp = rig_qp(r, VRB_QPS_RTS);
	assert_int_equal(vrb_qp_num(r->qp), f->qpn);
	return r;
}

static uint64_t
dropped(const struct rig *r)
{
	const struct vrb_stats *s = vrb_engine_stats(r->e);

	return s->rx_malformed + s->rx_icrc + s->rx_opcode + s->rx_no_qp + s->rx_qp_state +
	       s->rx_wrong_peer + s->rx_pkey;
}

static uint64_t
hex(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at == NULL ? 0 : strtoull(at + strlen(key), NULL, 16);
}

/* One packet, against what decode.py says, and by the engine's own functions. */
static void
check_packet(const uint8_t *data, uint32_t len, const struct frame *f, const char *line, char side)
{
	unsigned int op, qpn, psn, a, se, pad, n, icrc;
	const struct vrb_opcode_info *info;
	struct rte_mbuf *m;
	struct rig *r;

	assert_int_equal(sscanf(line, "%*s %*u %*c %u %x %x %u %u %u %u %x", &op, &qpn, &psn, &a,
				 &se, &pad, &n, &icrc),
		8);
	assert_true(f->icrc_ok);
	assert_int_equal(f->opcode, op);
	assert_int_equal(f->qpn, qpn);
	assert_int_equal(f->psn, psn);
	assert_int_equal(f->ackreq, a);
	assert_int_equal(f->se, se);
	assert_int_equal(f->pad, pad);
	assert_int_equal(f->len, n);
	assert_int_equal(f->icrc, icrc);
	assert_int_equal(f->va, hex(line, "va="));
	assert_int_equal(f->rkey, hex(line, " rkey="));
	assert_int_equal(f->dmalen, hex(line, "dmalen="));
	assert_int_equal(f->syndrome, hex(line, "syn="));
	assert_int_equal(f->msn, hex(line, "msn="));
	assert_int_equal(f->imm, hex(line, "imm="));
	assert_int_equal(f->inv, hex(line, "inv="));
	assert_int_equal(f->swap_add, hex(line, "swap="));
	assert_int_equal(f->compare, hex(line, "cmp="));
	assert_int_equal(f->orig, hex(line, "orig="));

	info = vrb_opcode_info(f->opcode);
	assert_non_null(info);
	assert_int_equal(f->bth_off + 12 + info->ext_len, f->payload_off);
	r = receiver_of(f, side, VRB_MTU_1024);
	m = rte_pktmbuf_alloc(r->e->conf.pool);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), data, len);
	assert_int_equal(vrb_icrc(m, f->l3_off, f->v6, f->end_off), icrc);
	rte_pktmbuf_free(m);
	assert_false(rig_receive_raw(r, data, len));
	assert_int_equal(dropped(r), 0);
	rig_send(r);
	rig_free(r);
}

static void
captures_are_read_as_another_dissector_reads_them(void **state)
{
	char line[512], name[64], last[64] = "";
	struct capture *c = NULL;
	FILE *in = fopen(CAPTURES "/decoded.txt", "r");
	unsigned int number, packets = 0;
	char side;

	assert_non_null(in);
	while (fgets(line, sizeof(line), in) != NULL) {
		if (line[0] == '#')
			continue;
		assert_int_equal(sscanf(line, "%63s %u %c", name, &number, &side), 3);
		if (strcmp(name, last) != 0) {
			if (c != NULL)
				capture_free(c);
			c = capture_read(name);
			strcpy(last, name);
		}
		assert_true(number >= 1 && number <= c->n);
		assert_int_equal(c->p[number - 1].side, side);
		check_packet(c->p[number - 1].data, c->p[number - 1].len, &c->p[number - 1].f, line,
			side);
		packets++;
	}
	fclose(in);
	assert_true(packets > 300);
	capture_free(c);
}

/* What routers may change is not covered: MACs, ToS, TTL, checksums, and the first byte of the
 * QPN's word. */
static bool
covered(const struct frame *f, uint32_t byte)
{
	uint32_t l3 = f->l3_off, udp = f->bth_off - 8;

	if (byte < 12 || byte == udp + 6 || byte == udp + 7 || byte == f->bth_off + 4)
		return false;
	if (f->v6)
		return byte >= l3 + 4 &&
		       byte != l3 + 7; /* the first word is version, traffic class, flow label */
	return byte != l3 + 1 && byte != l3 + 8 && byte != l3 + 10 && byte != l3 + 11;
}

static void
flipped_bits_are_found(void **state)
{
	static const char *const names[] = {"rc-write", "rc-ipv6", "rc-atomic", "rc-rnr-exceeded"};

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct capture *c = capture_read(names[i]);

		for (unsigned int k = 0; k < c->n; k++) {
			struct rig *r;

			if (c->p[k].len > 150)
				continue;
			r = receiver_of(&c->p[k].f, c->p[k].side, VRB_MTU_1024);
			for (uint32_t bit = 0; bit < c->p[k].len * 8; bit++) {
				uint64_t before = dropped(r);

				if (!covered(&c->p[k].f, bit / 8))
					continue;
				c->p[k].data[bit / 8] ^= (uint8_t)(1u << bit % 8);
				assert_true(rig_receive_raw(r, c->p[k].data, c->p[k].len) ||
					    dropped(r) == before + 1);
				c->p[k].data[bit / 8] ^= (uint8_t)(1u << bit % 8);
			}
			rig_expect_silence(r);
			/* The good one is still taken. */
			assert_false(rig_receive_raw(r, c->p[k].data, c->p[k].len));
			rig_free(r);
		}
		capture_free(c);
	}
}

/* The frame with another length at @p at. */
static void
lie(struct rig *r, const uint8_t *frame, uint32_t n, uint32_t at, uint32_t len)
{
	uint8_t copy[256];

	if ((uint32_t)(frame[at] << 8 | frame[at + 1]) == len)
		return;
	memcpy(copy, frame, n);
	copy[at] = (uint8_t)(len >> 8);
	copy[at + 1] = (uint8_t)len;
	frame_fix_icrc(copy, n);
	rig_receive_raw(r, copy, n);
}

/* A frame of each length, each a good one cut off, also in the middle of its headers. */
static void
every_length(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = rig_packet(r, OP_WRITE_ONLY_IMM, RIG_RQ_PSN);
	uint8_t buf[256];
	uint32_t n;

	for (unsigned int v6 = 0; v6 < 2; v6++) {
		f.payload = r->mem;
		f.len = f.dmalen = 16;
		n = (uint32_t)frame_build(&f, buf, sizeof(buf));
		for (uint32_t len = 1; len < n; len++)
			assert_true(rig_receive_raw(r, buf, len) || dropped(r) > 0);
		/* Lengths that lie, IP's and UDP's, with an ICRC that does not. */
		for (uint32_t len = 0; len < 0x10000; len += len < 300 ? 1 : 997) {
			lie(r, buf, n, v6 ? 18 : 16, len);
			lie(r, buf, n, v6 ? 58 : 38, len);
		}
		rig_expect_silence(r);
		vrb_qp_destroy(r->qp);
		r->attr.av.sgid_index = 1;
		memcpy(r->attr.av.dgid.raw, r->peer_ip6, 16);
		r->qp = rig_qp(r, VRB_QPS_RTS);
		f = rig_packet(r, OP_WRITE_ONLY_IMM, RIG_RQ_PSN);
	}
	rig_expect_empty(r, r->rcq);
	assert_int_equal(pattern_check(r->mem, RIG_MEM, 1, 0), -1);
	rig_free(r);
}

/* IBTA table 38: 0 to 23 without 21 are the reliable connection's; a queue pair of RC drops all
 * others. */
static void
every_opcode(void **state)
{
	for (unsigned int op = 0; op < 256; op++) {
		int has = op < 0x20 ? frame_opcode_has((uint8_t)op) : -1;
		struct rig *r = rig_new(&(struct rig_conf){0});
		struct frame f = rig_packet(r, (uint8_t)op, RIG_RQ_PSN);

		f.payload = r->mem;
		f.len = has < 0 ? 64 : 0;
		rig_receive(r, &f);
		if (has < 0) {
			assert_int_equal(dropped(r), 1);
			rig_expect_silence(r);
			assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_RTS);
		} else {
			const struct vrb_opcode_info *info = vrb_opcode_info((uint8_t)op);

			assert_non_null(info);
			assert_int_equal(!!(info->flags & VRB_OP_RETH), !!(has & HAS_RETH));
			assert_int_equal(!!(info->flags & VRB_OP_AETH), !!(has & HAS_AETH));
			assert_int_equal(!!(info->flags & VRB_OP_IMM), !!(has & HAS_IMM));
			assert_int_equal(!!(info->flags & VRB_OP_INV), !!(has & HAS_INV));
			assert_int_equal(!!(info->flags & VRB_OP_PAYLOAD), !!(has & HAS_PAYLOAD));
		}
		rig_free(r);
	}
}

/* CONVENTIONS, "BTH" and "Ethernet, IP, UDP": what has to be accepted, and what is dropped without
 * a word. */
static void
fields_that_may_differ(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame base, f;
	uint32_t psn = RIG_RQ_PSN;
	uint8_t buf[256];

#define TAKEN(change) \
	do { \
		f = base; \
		f.psn = psn++; \
		change; \
		rig_post_recv(r, 0, 0); \
		rig_receive(r, &f); \
		rig_expect_ack(r, 0, f.psn); \
		rig_poll(r, r->rcq, VRB_WC_SUCCESS); \
	} while (0)
#define DROPPED(counter, change) \
	do { \
		uint64_t before = vrb_engine_stats(r->e)->counter; \
		f = base; \
		f.psn = psn; \
		change; \
		rig_receive(r, &f); \
		rig_expect_silence(r); \
		assert_int_equal(vrb_engine_stats(r->e)->counter, before + 1); \
	} while (0)
	base = rig_packet(r, OP_SEND_ONLY, 0);
	TAKEN(f.migreq = true);
	TAKEN(f.fecn_becn = 0xff);
	TAKEN(f.resv7 = 0x7f);
	TAKEN(f.pkey = 0x7fff);
	TAKEN(f.sport = 1);
	TAKEN(f.sport = 4791);
	TAKEN(f.ttl = 1);
	TAKEN(f.tos = 0xff);
	TAKEN(f.df = false);
	TAKEN(f.ip_id = 0x1234);
	DROPPED(rx_malformed, f.tver = 1);
	DROPPED(rx_pkey, f.pkey = 0x1234);
	DROPPED(rx_wrong_peer, f.saddr[3] ^= 4);
	DROPPED(rx_no_qp, f.qpn ^= 0x10);
	DROPPED(rx_malformed, f.udp_csum = 0x1234);
	/* Longer frames than packets: Ethernet's pad. */
	f = base;
	f.psn = psn;
	rig_post_recv(r, 0, 0);
	memset(buf, 0xee, sizeof(buf));
	frame_build(&f, buf, sizeof(buf));
	assert_false(rig_receive_raw(r, buf, 200));
	rig_expect_ack(r, 0, psn);
#undef TAKEN
#undef DROPPED
	rig_free(r);
}

static void
frames_for_others_are_left(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = rig_packet(r, OP_SEND_ONLY, RIG_RQ_PSN);
	uint8_t buf[256], copy[256];
	uint32_t n;

	n = (uint32_t)frame_build(&f, buf, sizeof(buf));
#define LEFT(at, value) \
	do { \
		memcpy(copy, buf, n); \
		copy[at] = value; \
		assert_true(rig_receive_raw(r, copy, n)); \
	} while (0)
	LEFT(13, 0x06); /* ARP */
	LEFT(23, 6); /* TCP */
	LEFT(33, 77); /* another address */
	LEFT(37, 53); /* another port */
	LEFT(20, 0x20); /* a fragment */
	LEFT(14, 0x46); /* IP options */
#undef LEFT
	rig_expect_silence(r);
	rig_free(r);
}

/* Each field of a packet that is sent, and the checksum, over IPv4 and IPv6, for each MTU and with
 * chained memory. */
static void
sent_packets_are_right(void **state)
{
	for (unsigned int i = 0; i < 5 * 8; i++) {
		enum vrb_mtu mtu = (enum vrb_mtu)(i % 5 + 1);
		bool v6 = i / 5 & 1, icrc = i / 10 & 1, zero_copy = i / 20 & 1;
		struct rig *r = rig_new(&(struct rig_conf){
			.mtu = mtu, .v6 = v6, .no_icrc = !icrc, .zero_copy = zero_copy});
		uint32_t bytes = 128u << mtu;

		for (uint32_t len = bytes - 3; len <= bytes; len++) {
			const struct frame *f;
			const struct rig_frame *whole;

			rig_post(r, VRB_WR_SEND, len % 7, len, 0);
			rig_send(r);
			whole = &r->frames[r->next_frame % RIG_FRAMES];
			f = rig_take(r);
			assert_int_equal(f->v6, v6);
			assert_int_equal(f->opcode, OP_SEND_ONLY);
			assert_int_equal(f->pad, -len & 3);
			assert_memory_equal(f->payload, r->mem + len % 7, len);
			for (uint32_t k = 0; k < f->pad; k++)
				assert_int_equal(f->payload[len + k], 0);
			assert_int_equal(whole->len, f->end_off + 4);
			if (icrc)
				assert_true(f->icrc_ok);
			assert_memory_equal(f->dmac, r->peer_mac, 6);
			assert_memory_equal(f->smac, r->mac, 6);
			assert_memory_equal(f->saddr, v6 ? r->ip6 : r->ip, v6 ? 16 : 4);
			assert_memory_equal(f->daddr, v6 ? r->peer_ip6 : r->peer_ip, v6 ? 16 : 4);
			assert_true(v6 || f->df);
			assert_int_equal(f->udp_csum, 0);
			assert_int_equal(f->tver, 0);
		}
		rig_free(r);
	}
}

/* CONVENTIONS: flow label 0x12345 gives 58177; QPNs 0x11 and 0x11 without flow label give 49441. */
static void
source_port(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	vrb_qp_destroy(r->qp);
	r->e->next_qpn = 0x11;
	r->attr.dest_qpn = 0x11;
	r->qp = rig_qp(r, VRB_QPS_RTS);
	rig_post(r, VRB_WR_SEND, 0, 1, 0);
	assert_int_equal(rig_take(r)->sport, 49441);
	r->attr.av.flow_label = 0x12345;
	r->attr.av.tclass = 0x6a;
	r->qp = rig_qp(r, VRB_QPS_RTS);
	rig_post(r, VRB_WR_SEND, 0, 1, 0);
	assert_int_equal(rig_take(r)->sport, 58177);
	assert_int_equal(r->frames[r->next_frame - 1].f.tos, 0x6a);
	rig_free(r);
}

static void
psn_arithmetic(void **state)
{
	assert_int_equal(vrb_psn_diff(5, 3), 2);
	assert_int_equal(vrb_psn_diff(3, 5), -2);
	assert_int_equal(vrb_psn_diff(0, 0xffffff), 1);
	assert_int_equal(vrb_psn_diff(0xffffff, 0), -1);
	assert_int_equal(vrb_psn_diff(0x7fffff, 0), 0x7fffff);
	assert_int_equal(vrb_psn_diff(0x800000, 0), -0x800000);
	assert_int_equal(vrb_psn_add(0xffffff, 1), 0);
	assert_int_equal(vrb_psn_add(0, VRB_PSN_MASK), 0xffffff);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(captures_are_read_as_another_dissector_reads_them),
		cmocka_unit_test(flipped_bits_are_found),
		cmocka_unit_test(every_length),
		cmocka_unit_test(every_opcode),
		cmocka_unit_test(fields_that_may_differ),
		cmocka_unit_test(frames_for_others_are_left),
		cmocka_unit_test(sent_packets_are_right),
		cmocka_unit_test(source_port),
		cmocka_unit_test(psn_arithmetic),
	};

	return cmocka_run_group_tests_name("roce wire", tests, rig_group, NULL);
}
