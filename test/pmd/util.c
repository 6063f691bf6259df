/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports of net_verbena over wires of the test's own (see util.h).
 */
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_sctp.h>

#include "util.h"

#define MBUFS 8191

struct rte_mempool *pmd_pool;
static unsigned int pool_before;

void
pmd_eal(int argc, char **argv)
{
	static const char *args[] = {"pmd_test", "--no-huge", "--no-shconf", "--no-pci",
		"--no-telemetry", "-m", "192", "-l", "0", "--log-level=lib.ethdev:1",
		"--log-level=pmd.net.verbena:1"};
	cpu_set_t all;

	if (rte_eal_init(RTE_DIM(args), (char **)(uintptr_t)args) < 0)
		exit(1);
	/* EAL has put this thread, and with it all that it makes, on one CPU. */
	CPU_ZERO(&all);
	for (long i = 0; i < sysconf(_SC_NPROCESSORS_CONF); i++)
		CPU_SET(i, &all);
	sched_setaffinity(0, sizeof(all), &all);
	pmd_pool = rte_pktmbuf_pool_create(
		"common", MBUFS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	if (pmd_pool == NULL)
		exit(1);
	pool_before = rte_mempool_avail_count(pmd_pool);
}

void
rig_make(struct rig *r, unsigned int queues, const char *args)
{
	static unsigned int number;
	char name[32], all[128];
	int lower;

	memset(r, 0, sizeof(*r));
	r->num_queues = queues;
	for (unsigned int i = 0; i < queues; i++) {
		snprintf(name, sizeof(name), "to%u_%u", number, i);
		r->to_port[i] = rte_ring_create(name, WIRE_SIZE, SOCKET_ID_ANY, 0);
		snprintf(name, sizeof(name), "from%u_%u", number, i);
		r->from_port[i] = rte_ring_create(name, WIRE_SIZE, SOCKET_ID_ANY, 0);
		assert_non_null(r->to_port[i]);
		assert_non_null(r->from_port[i]);
	}
	snprintf(name, sizeof(name), "wire%u", number);
	lower = rte_eth_from_rings(name, r->to_port, queues, r->from_port, queues, 0);
	assert_true(lower >= 0);
	r->lower = (uint16_t)lower;
	assert_int_equal(rte_eth_dev_get_name_by_port(r->lower, name), 0);
	snprintf(r->name, sizeof(r->name), "net_verbena%u", number++);
	snprintf(all, sizeof(all), "port=%s%s", name, args);
	assert_int_equal(rte_vdev_init(r->name, all), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name(r->name, &r->port), 0);
}

static int
setup_queues(const struct rig *r, const struct setup *s, uint16_t rxq, uint16_t txq)
{
	uint16_t desc = s->desc != 0 ? s->desc : 1024;
	struct rte_eth_rxconf rxconf = {.offloads = s->rx_offloads};
	int rc = 0;

	for (uint16_t q = 0; q < rxq && rc == 0; q++) {
		rxconf.share_group = s->share_group;
		rxconf.share_qid = q;
		rc = rte_eth_rx_queue_setup(r->port, q, desc, 0, &rxconf,
			q < RTE_DIM(s->mp) && s->mp[q] != NULL ? s->mp[q] : pmd_pool);
	}
	for (uint16_t q = 0; q < txq && rc == 0; q++)
		rc = rte_eth_tx_queue_setup(r->port, q, 512, 0, NULL);
	return rc;
}

int
rig_start(const struct rig *r, const struct setup *s)
{
	struct rte_eth_conf conf = {0};
	uint16_t rxq = s->rxq != 0 ? s->rxq : 1, txq = s->txq != 0 ? s->txq : 1;
	int rc;

	conf.rxmode.mtu = s->mtu;
	conf.intr_conf.rxq = s->intr;
	conf.rxmode.offloads = s->rx_offloads;
	conf.txmode.offloads = s->tx_offloads;
	if (s->rss != 0) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = s->rss;
		conf.rx_adv_conf.rss_conf.rss_key = (uint8_t *)(uintptr_t)s->key;
		conf.rx_adv_conf.rss_conf.rss_key_len = s->key_len;
	}
	rc = rte_eth_dev_configure(r->port, rxq, txq, &conf);
	if (rc == 0)
		rc = setup_queues(r, s, rxq, txq);
	return rc == 0 ? rte_eth_dev_start(r->port) : rc;
}

static void
empty(struct rte_ring *ring)
{
	struct rte_mbuf *m;

	while (rte_ring_dequeue(ring, (void **)&m) == 0)
		rte_pktmbuf_free(m);
	rte_ring_free(ring);
}

void
rig_close(struct rig *r)
{
	if (rte_eth_dev_is_valid_port(r->port)) {
		rte_eth_dev_stop(r->port);
		assert_int_equal(rte_eth_dev_close(r->port), 0);
	}
	rte_vdev_uninit(r->name);
	/* A port that was found is not taken away, but given back. */
	if (rte_eth_dev_is_valid_port(r->lower)) {
		char name[RTE_ETH_NAME_MAX_LEN];

		assert_int_equal(rte_eth_dev_get_name_by_port(r->lower, name), 0);
		assert_int_equal(rte_vdev_uninit(name), 0);
	}
	for (unsigned int i = 0; i < r->num_queues; i++) {
		empty(r->to_port[i]);
		empty(r->from_port[i]);
	}
	assert_int_equal(rte_mempool_avail_count(pmd_pool), pool_before);
}

/* ---- frames ---- */

static uint8_t *
put_ip(uint8_t *p, const struct frame *f, uint8_t proto, uint16_t l4_len)
{
	struct rte_ipv4_hdr v4 = {.version_ihl = RTE_IPV4_VHL_DEF,
		.time_to_live = 64,
		.next_proto_id = proto,
		.total_length = rte_cpu_to_be_16(sizeof(v4) + l4_len),
		.fragment_offset = f->fragment ? rte_cpu_to_be_16(RTE_IPV4_HDR_MF_FLAG) : 0,
		.src_addr = rte_cpu_to_be_32(f->src),
		.dst_addr = rte_cpu_to_be_32(f->dst)};
	struct rte_ipv6_hdr v6 = {.vtc_flow = rte_cpu_to_be_32(0x60000000),
		.payload_len = rte_cpu_to_be_16(l4_len),
		.proto = proto,
		.hop_limits = 64};

	if (f->v6) {
		v6.src_addr[0] = v6.dst_addr[0] = 0x20;
		memcpy(&v6.src_addr[12], &v4.src_addr, 4);
		memcpy(&v6.dst_addr[12], &v4.dst_addr, 4);
		memcpy(p, &v6, sizeof(v6));
		return p + sizeof(v6);
	}
	if (f->sums)
		v4.hdr_checksum = rte_ipv4_cksum(&v4);
	memcpy(p, &v4, sizeof(v4));
	return p + sizeof(v4);
}

static uint16_t
l4_header(const struct frame *f)
{
	if (f->tcp)
		return sizeof(struct rte_tcp_hdr);
	return f->sctp ? sizeof(struct rte_sctp_hdr) : sizeof(struct rte_udp_hdr);
}

static void
put_sums(const struct frame *f, uint8_t *ip, uint8_t *l4)
{
	uint16_t *field = f->tcp ? &((struct rte_tcp_hdr *)l4)->cksum
				 : &((struct rte_udp_hdr *)l4)->dgram_cksum;

	if (!f->sums || f->sctp || f->other)
		return;
	*field = 0;
	*field = f->v6 ? rte_ipv6_udptcp_cksum((struct rte_ipv6_hdr *)ip, l4)
		       : rte_ipv4_udptcp_cksum((struct rte_ipv4_hdr *)ip, l4);
}

struct rte_mbuf *
frame_make(struct rte_mempool *mp, const struct frame *f)
{
	uint8_t proto = f->other ? 89 : f->tcp ? 6 : f->sctp ? 132 : 17;
	uint32_t payload = RTE_MAX(f->payload, 4u);
	uint16_t l4_len = (uint16_t)(l4_header(f) + payload);
	struct rte_mbuf *m = rte_pktmbuf_alloc(mp);
	uint16_t ports[2] = {rte_cpu_to_be_16(f->sport), rte_cpu_to_be_16(f->dport)};
	uint32_t seq = rte_cpu_to_be_32(f->seq);
	uint8_t *begin, *p, *ip;

	assert_non_null(m);
	begin = p = (uint8_t *)rte_pktmbuf_append(
		m, (uint16_t)(14 + (f->vlan ? 4 : 0) + (f->v6 ? 40 : 20) + l4_len));
	assert_non_null(begin);
	memset(p, 0, m->data_len);
	memcpy(p, "\x02\0\0\0\0\x01\x02\0\0\0\0\x02", 12);
	p += 12;
	if (f->vlan) {
		const uint8_t tag[4] = {0x81, 0, (uint8_t)(f->vlan >> 8), (uint8_t)f->vlan};

		memcpy(p, tag, sizeof(tag));
		p += sizeof(tag);
	}
	*p++ = f->v6 ? 0x86 : 0x08;
	*p++ = f->v6 ? 0xdd : 0x00;
	ip = p;
	p = put_ip(p, f, proto, l4_len);
	memcpy(p, ports, sizeof(ports));
	if (f->tcp)
		((struct rte_tcp_hdr *)p)->data_off = 0x50;
	else if (!f->sctp)
		((struct rte_udp_hdr *)p)->dgram_len = rte_cpu_to_be_16(l4_len);
	memcpy(p + l4_header(f), &seq, sizeof(seq));
	put_sums(f, ip, p);
	return m;
}

uint32_t
frame_seq(const struct rte_mbuf *m)
{
	const uint8_t *p = rte_pktmbuf_mtod(m, const uint8_t *) + 12;
	uint32_t seq;
	uint8_t proto;

	if (p[0] == 0x81)
		p += 4;
	proto = p[0] == 0x86 ? p[2 + 6] : p[2 + 9];
	p += 2 + (p[0] == 0x86 ? 40 : 20);
	p += proto == 6 ? 20 : proto == 132 ? 12 : 8;
	memcpy(&seq, p, sizeof(seq));
	return rte_be_to_cpu_32(seq);
}

uint32_t
frame_tuple(const struct frame *f, bool ports, uint32_t tuple[9])
{
	uint32_t n = 0;

	if (f->v6) {
		memset(tuple, 0, 9 * sizeof(*tuple));
		tuple[0] = tuple[4] = 0x20000000;
		tuple[3] = f->src;
		tuple[7] = f->dst;
		n = 8;
	} else {
		tuple[n++] = f->src;
		tuple[n++] = f->dst;
	}
	if (ports)
		tuple[n++] = (uint32_t)f->sport << 16 | f->dport;
	return n;
}

void
wire_put(const struct rig *r, unsigned int queue, const struct frame *f)
{
	assert_int_equal(rte_ring_enqueue(r->to_port[queue], frame_make(pmd_pool, f)), 0);
}

unsigned int
receive_all(const struct rig *r, uint16_t queues, unsigned int *got)
{
	struct rte_mbuf *pkts[32];
	unsigned int total = 0, idle = 0;

	while (idle < 2) {
		unsigned int before = total;

		for (uint16_t q = 0; q < queues; q++) {
			uint16_t n = rte_eth_rx_burst(r->port, q, pkts, RTE_DIM(pkts));

			for (uint16_t i = 0; i < n; i++)
				assert_int_equal(pkts[i]->port, r->port);
			rte_pktmbuf_free_bulk(pkts, n);
			total += n;
			if (got != NULL)
				got[q] += n;
		}
		idle = total == before ? idle + 1 : 0;
	}
	return total;
}

uint64_t
xstat(uint16_t port, const char *name)
{
	uint64_t id, value = 0;

	assert_int_equal(rte_eth_xstats_get_id_by_name(port, name, &id), 0);
	assert_int_equal(rte_eth_xstats_get_by_id(port, &id, &value, 1), 1);
	return value;
}

struct rte_eth_stats
stats_of(uint16_t port)
{
	struct rte_eth_stats s;

	assert_int_equal(rte_eth_stats_get(port, &s), 0);
	return s;
}
