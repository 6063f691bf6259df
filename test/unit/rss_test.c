/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The hash of RSS against rte_softrss(), for every choice of fields and every kind of frame; and
 * how frames are taken apart.
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <cmocka.h>

#include <rte_byteorder.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_thash.h>
#include <rte_udp.h>

#include "rss.h"
#include "toeplitz.h"

/* The key of Microsoft's specification, whose examples are known answers. */
static const uint8_t key[VRB_RSS_KEY_LEN] = {
	0x6d,
	0x5a,
	0x56,
	0xda,
	0x25,
	0x5b,
	0x0e,
	0xc2,
	0x41,
	0x67,
	0x25,
	0x3d,
	0x43,
	0xa3,
	0x8f,
	0xb0,
	0xd0,
	0xca,
	0x2b,
	0xcb,
	0xae,
	0x7b,
	0x30,
	0xb4,
	0x77,
	0xcb,
	0x2d,
	0xa3,
	0x80,
	0x30,
	0xf2,
	0x0c,
	0x6a,
	0x42,
	0xb7,
	0x3b,
	0xbe,
	0xac,
	0x01,
	0xfa,
};

/** What a test frame is made of; addresses and ports in the host's order. */
struct made {
	bool v6, fragment, vlan;
	uint8_t proto;
	uint32_t src[4], dst[4];
	uint16_t sport, dport;
};

static uint8_t *
put_ports(uint8_t *p, const struct made *f)
{
	uint16_t ports[2] = {rte_cpu_to_be_16(f->sport), rte_cpu_to_be_16(f->dport)};

	memset(p, 0, sizeof(struct rte_tcp_hdr));
	memcpy(p, ports, sizeof(ports));
	return p + sizeof(struct rte_tcp_hdr);
}

static uint8_t *
put_ip(uint8_t *p, const struct made *f)
{
	uint32_t i, w;

	if (!f->v6) {
		struct rte_ipv4_hdr ip = {.version_ihl = RTE_IPV4_VHL_DEF,
			.next_proto_id = f->proto,
			.src_addr = rte_cpu_to_be_32(f->src[0]),
			.dst_addr = rte_cpu_to_be_32(f->dst[0]),
			.fragment_offset =
				f->fragment ? rte_cpu_to_be_16(RTE_IPV4_HDR_MF_FLAG) : 0};

		memcpy(p, &ip, sizeof(ip));
		return p + sizeof(ip);
	}
	memset(p, 0, sizeof(struct rte_ipv6_hdr));
	p[0] = 0x60;
	p[6] = f->fragment ? IPPROTO_FRAGMENT : f->proto;
	for (i = 0; i < 4; i++) {
		w = rte_cpu_to_be_32(f->src[i]);
		memcpy(p + 8 + 4 * i, &w, 4);
		w = rte_cpu_to_be_32(f->dst[i]);
		memcpy(p + 24 + 4 * i, &w, 4);
	}
	p += sizeof(struct rte_ipv6_hdr);
	if (f->fragment) {
		const uint8_t ext[8] = {f->proto, 0, 0, 1};

		memcpy(p, ext, sizeof(ext));
		p += sizeof(ext);
	}
	return p;
}

static uint32_t
make(const struct made *f, uint8_t *buf)
{
	static const uint8_t tag[4] = {0x81, 0x00, 0x60, 0x07};
	uint8_t *p = buf;

	memset(p, 0x02, 12);
	p += 12;
	if (f->vlan) {
		memcpy(p, tag, sizeof(tag));
		p += sizeof(tag);
	}
	*p++ = f->v6 ? 0x86 : 0x08;
	*p++ = f->v6 ? 0xdd : 0x00;
	return (uint32_t)(put_ports(put_ip(p, f), f) - buf);
}

static uint32_t
hash_of(uint64_t fields, const struct made *f)
{
	struct vrb_frame frame;
	struct vrb_rss rss;
	uint8_t buf[160];

	vrb_rss_set_key(&rss, key, sizeof(key));
	assert_int_equal(vrb_rss_set_fields(&rss, fields), 0);
	vrb_frame_parse(buf, make(f, buf), &frame);
	return vrb_rss_hash(&rss, &frame.key);
}

static bool
has(uint64_t fields, uint64_t field)
{
	return (fields & field) != 0;
}

/** What rte_softrss() makes of the chosen fields, put one behind the other here. */
static uint32_t
predicted(uint64_t fields, const struct made *f)
{
	bool tcp = f->proto == IPPROTO_TCP && !f->fragment,
	     udp = f->proto == IPPROTO_UDP && !f->fragment;
	bool src = has(fields, f->v6 ? VRB_RX_HASH_SRC_IPV6 : VRB_RX_HASH_SRC_IPV4);
	bool dst = has(fields, f->v6 ? VRB_RX_HASH_DST_IPV6 : VRB_RX_HASH_DST_IPV4);
	bool sport = (tcp && has(fields, VRB_RX_HASH_SRC_PORT_TCP)) ||
		     (udp && has(fields, VRB_RX_HASH_SRC_PORT_UDP));
	bool dport = (tcp && has(fields, VRB_RX_HASH_DST_PORT_TCP)) ||
		     (udp && has(fields, VRB_RX_HASH_DST_PORT_UDP));
	uint32_t input[10] = {0}, n = 0, i;

	for (i = 0; src && i < (f->v6 ? 4 : 1); i++)
		input[n++] = f->src[i];
	for (i = 0; dst && i < (f->v6 ? 4 : 1); i++)
		input[n++] = f->dst[i];
	if (sport)
		input[n] = (uint32_t)f->sport << 16;
	if (dport)
		input[n] |= (uint32_t)f->dport << (sport ? 0 : 16);
	return rte_softrss(input, n + (sport || dport), key);
}

static void
random_frame(struct made *f)
{
	uint32_t i;

	for (i = 0; i < 4; i++) {
		f->src[i] = (uint32_t)random();
		f->dst[i] = (uint32_t)random() ^ 0x80000000u;
	}
	f->sport = (uint16_t)random();
	f->dport = (uint16_t)random();
}

static void
hash_is_that_of_softrss_for_every_field_set(void **state)
{
	static const uint8_t protos[] = {IPPROTO_TCP, IPPROTO_UDP, IPPROTO_SCTP};
	uint64_t fields;
	uint32_t kind;

	(void)state;
	srandom(1);
	for (fields = 0; fields < 256; fields++) {
		for (kind = 0; kind < 24; kind++) {
			struct made f = {.v6 = kind & 1,
				.fragment = kind & 2,
				.vlan = kind & 4,
				.proto = protos[kind / 8]};

			random_frame(&f);
			assert_int_equal(hash_of(fields, &f), predicted(fields, &f));
		}
	}
}

static void
hash_is_that_of_microsofts_examples(void **state)
{
	/* 66.9.149.187:2794 to 161.142.100.80:1766, and the first of IPv6. */
	const struct made v4 = {.proto = IPPROTO_TCP,
		.src = {0x420995bb},
		.dst = {0xa18e6450},
		.sport = 2794,
		.dport = 1766};
	const struct made v6 = {.v6 = true,
		.proto = IPPROTO_TCP,
		.src = {0x3ffe2501, 0x02001fff, 0, 7},
		.dst = {0x3ffe2501, 0x02000003, 0, 1},
		.sport = 2794,
		.dport = 1766};

	(void)state;
	assert_int_equal(hash_of(0x03, &v4), 0x323e8fc2);
	assert_int_equal(hash_of(0x33, &v4), 0x51ccc178);
	assert_int_equal(hash_of(0x0c, &v6), 0x2cc18cd5);
	assert_int_equal(hash_of(0x3c, &v6), 0x40207d3d);
}

static void
fragments_of_a_datagram_share_a_hash(void **state)
{
	struct made f = {.proto = IPPROTO_UDP, .fragment = true};
	uint32_t hash;

	(void)state;
	random_frame(&f);
	hash = hash_of(0xff, &f);
	f.sport ^= 0x1234;
	f.dport ^= 0x4321;
	assert_int_equal(hash_of(0xff, &f), hash);
}

static void
frame_without_ip_has_the_hash_0(void **state)
{
	static const uint8_t arp[60] = {[12] = 0x08, [13] = 0x06};
	struct vrb_frame frame;
	struct vrb_rss rss;

	(void)state;
	vrb_rss_set_key(&rss, key, sizeof(key));
	vrb_rss_set_fields(&rss, 0xff);
	vrb_frame_parse(arp, sizeof(arp), &frame);
	assert_int_equal(vrb_rss_hash(&rss, &frame.key), 0);
}

static void
unknown_fields_are_refused(void **state)
{
	struct vrb_rss rss;

	(void)state;
	assert_int_equal(vrb_rss_set_fields(&rss, 1u << 8), -EOPNOTSUPP);
}

/* 4096 flows over 8 queues: each within a quarter of the mean, which is seven times the deviation
 * of a fair choice. */
static void
flows_are_spread_evenly(void **state)
{
	uint32_t queue[8] = {0}, i;

	(void)state;
	srandom(2);
	for (i = 0; i < 4096; i++) {
		struct made f = {.proto = IPPROTO_UDP};

		random_frame(&f);
		queue[hash_of(0xff, &f) & 7]++;
	}
	for (i = 0; i < 8; i++)
		assert_in_range(queue[i], 384, 640);
}

/** A frame in VXLAN, with the inner one of @p in. */
static uint32_t
make_vxlan(const struct made *in, uint8_t *buf)
{
	const struct made out = {
		.proto = IPPROTO_UDP, .src = {1}, .dst = {2}, .sport = 3, .dport = 4789};
	static const uint8_t vxlan[8] = {0x08, 0, 0, 0, 0x12, 0x34, 0x56, 0};
	/* make() leaves room for TCP; UDP is shorter. */
	uint32_t len = make(&out, buf) - sizeof(struct rte_tcp_hdr) + sizeof(struct rte_udp_hdr);

	memcpy(buf + len, vxlan, sizeof(vxlan));
	return len + sizeof(vxlan) + make(in, buf + len + sizeof(vxlan));
}

static void
tunnel_is_hashed_inside_when_asked(void **state)
{
	struct made in = {.proto = IPPROTO_TCP, .vlan = true};
	struct vrb_frame frame;
	struct vrb_rss rss;
	uint8_t buf[256];
	uint32_t len;

	(void)state;
	random_frame(&in);
	len = make_vxlan(&in, buf);
	vrb_frame_parse(buf, len, &frame);
	assert_int_equal(frame.key.tunnel, 1);
	assert_int_equal(frame.key.vni, rte_cpu_to_be_32(0x123456));
	vrb_rss_set_key(&rss, key, sizeof(key));
	vrb_rss_set_fields(&rss, 0xff | VRB_RX_HASH_INNER);
	assert_int_equal(vrb_rss_hash(&rss, &frame.key), predicted(0xff, &in));
	vrb_rss_set_fields(&rss, 0xff);
	assert_int_not_equal(vrb_rss_hash(&rss, &frame.key), predicted(0xff, &in));
}

/* Every length from nothing on, from a buffer of just that size: AddressSanitizer sees each read
 * behind it. */
static void
cut_frames_are_read_no_further_than_they_go(void **state)
{
	struct made in = {.v6 = true, .fragment = true, .proto = IPPROTO_UDP};
	struct vrb_frame whole, frame;
	uint8_t buf[256], *exact;
	uint32_t len, cut;

	(void)state;
	len = make_vxlan(&in, buf);
	vrb_frame_parse(buf, len, &whole);
	for (cut = 0; cut <= len; cut++) {
		exact = malloc(cut + !cut);
		memcpy(exact, buf, cut);
		vrb_frame_parse(exact, cut, &frame);
		free(exact);
		/* What is there is what is there in the whole frame, or nothing. */
		assert_int_equal(frame.key.outer.present & ~whole.key.outer.present, 0);
		assert_int_equal(frame.key.inner.present & ~whole.key.inner.present, 0);
	}
	assert_int_equal(frame.key.inner.present, VRB_FLOW_IPV6 | VRB_FLOW_FRAGMENT);
}

/* Both ways of the fast hash, for every length that goes with a key of 52 bytes. */
static void
fast_hash_is_that_of_softrss(void **state)
{
	vrb_toeplitz_fn *gfni = vrb_toeplitz_gfni_get();
	static struct vrb_toeplitz t;
	uint8_t input[VRB_TOEPLITZ_INPUT], k[VRB_TOEPLITZ_KEY];
	uint32_t words[VRB_TOEPLITZ_INPUT / 4], round, len, i, soft;

	(void)state;
	srandom(4);
	for (round = 0; round < 200; round++) {
		for (i = 0; i < sizeof(k); i++)
			k[i] = (uint8_t)random();
		vrb_toeplitz_init(&t, k, sizeof(k));
		for (len = 4; len <= sizeof(input); len += 4) {
			for (i = 0; i < sizeof(input); i++)
				input[i] = (uint8_t)random();
			memcpy(words, input, sizeof(words));
			for (i = 0; i < len / 4; i++)
				words[i] = rte_be_to_cpu_32(words[i]);
			soft = rte_softrss(words, len / 4, k);
			assert_int_equal(vrb_toeplitz_table(&t, input, len), soft);
			assert_int_equal(vrb_toeplitz(&t, input, len), soft);
			if (gfni != NULL)
				assert_int_equal(gfni(&t, input, len), soft);
		}
	}
}

static void
symmetric_hash_is_that_of_the_other_direction(void **state)
{
	struct made there = {.v6 = true, .proto = IPPROTO_TCP}, back;
	struct vrb_frame frame;
	struct vrb_rss rss;
	uint32_t hash, round;
	uint8_t buf[160];

	(void)state;
	vrb_rss_set_key(&rss, key, sizeof(key));
	vrb_rss_set_fields(&rss, 0xff);
	rss.symmetric = true;
	for (round = 0; round < 100; round++) {
		there.v6 = round & 1;
		random_frame(&there);
		back = there;
		memcpy(back.src, there.dst, sizeof(back.src));
		memcpy(back.dst, there.src, sizeof(back.dst));
		back.sport = there.dport;
		back.dport = there.sport;
		vrb_frame_parse(buf, make(&there, buf), &frame);
		hash = vrb_rss_hash(&rss, &frame.key);
		vrb_frame_parse(buf, make(&back, buf), &frame);
		assert_int_equal(vrb_rss_hash(&rss, &frame.key), hash);
		back.dport ^= 1;
		vrb_frame_parse(buf, make(&back, buf), &frame);
		assert_int_not_equal(vrb_rss_hash(&rss, &frame.key), hash);
	}
}

static void
roce_is_hashed_by_its_destination_qpn(void **state)
{
	struct made f = {.proto = IPPROTO_UDP, .src = {1}, .dst = {2}, .sport = 3, .dport = 4791};
	uint32_t input[3] = {1, 2, 0x123456};
	struct vrb_frame frame;
	struct vrb_rss rss;
	uint8_t buf[160];
	uint32_t len, l4;

	(void)state;
	len = make(&f, buf);
	l4 = len - (uint32_t)sizeof(struct rte_tcp_hdr);
	memcpy(buf + l4 + sizeof(struct rte_udp_hdr) + 5, "\x12\x34\x56", 3);
	vrb_frame_parse(buf, len, &frame);
	assert_true(frame.key.outer.present & VRB_FLOW_BTH);
	assert_memory_equal(frame.key.outer.dst_qpn, "\x12\x34\x56", 3);
	vrb_rss_set_key(&rss, key, sizeof(key));
	vrb_rss_set_fields(&rss, 0xff);
	assert_int_equal(vrb_rss_hash(&rss, &frame.key), predicted(0xff, &f));
	rss.fields[VRB_RSS_IPV4_ROCE] = VRB_RSS_IPS | VRB_RSS_DST_QPN;
	assert_int_equal(vrb_rss_hash(&rss, &frame.key), rte_softrss(input, 3, key));
	/* Too short for the header: it is UDP. */
	vrb_frame_parse(buf, len - 1, &frame);
	assert_false(frame.key.outer.present & VRB_FLOW_BTH);
}

static void
random_bytes_do_no_harm(void **state)
{
	struct vrb_frame frame;
	uint8_t *buf;
	uint32_t i, j, len;

	(void)state;
	srandom(3);
	for (i = 0; i < 20000; i++) {
		len = (uint32_t)random() % 200;
		buf = malloc(len + 1);
		for (j = 0; j < len; j++)
			buf[j] = (uint8_t)random();
		/* Mostly something that looks like IP. */
		if (len > 20) {
			buf[12] = i & 1 ? 0x86 : 0x08;
			buf[13] = i & 1 ? 0xdd : 0x00;
			buf[14] = i & 1 ? 0x60 : 0x40 | (buf[14] & 0x0f);
		}
		vrb_frame_parse(buf, len, &frame);
		assert_true(frame.l4_off == 0 ||
			    (frame.l4_off >= frame.l3_off + frame.l3_len && frame.l4_off < len));
		free(buf);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hash_is_that_of_softrss_for_every_field_set),
		cmocka_unit_test(hash_is_that_of_microsofts_examples),
		cmocka_unit_test(fragments_of_a_datagram_share_a_hash),
		cmocka_unit_test(frame_without_ip_has_the_hash_0),
		cmocka_unit_test(unknown_fields_are_refused),
		cmocka_unit_test(flows_are_spread_evenly),
		cmocka_unit_test(tunnel_is_hashed_inside_when_asked),
		cmocka_unit_test(cut_frames_are_read_no_further_than_they_go),
		cmocka_unit_test(fast_hash_is_that_of_softrss),
		cmocka_unit_test(symmetric_hash_is_that_of_the_other_direction),
		cmocka_unit_test(roce_is_hashed_by_its_destination_qpn),
		cmocka_unit_test(random_bytes_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
