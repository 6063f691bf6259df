/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which queue a frame goes to: RoCE to the engine, then flow rules, then RSS, then the queue with
 * the number of the lower port's.
 */
#include <unistd.h>

#include <rte_cycles.h>
#include <rte_mbuf_dyn.h>

#include "flow_key.h"
#include "pmd_look.h"
#include "pmd_private.h"

/* So far ahead frames are fetched into the cache. */
#define AHEAD 4

/* ---- the hash ---- */

static uint32_t
hash_long(const struct pmd_hash *h, const struct vrb_flow_key *key, bool *hashed)
{
	uint8_t input[VRB_RSS_INPUT];
	uint32_t n = vrb_rss_input(&h->rss, key, input);

	*hashed = n > 0;
	return n == 0 ? 0 : vrb_toeplitz(&h->toeplitz, input, n);
}

static uint32_t
hash_odd(const struct pmd_hash *h, const struct rte_mbuf *m, bool *hashed)
{
	struct vrb_frame frame;

	vrb_frame_parse(rte_pktmbuf_mtod(m, const uint8_t *),
		RTE_MIN(m->data_len, VRB_FRAME_HEADERS), &frame);
	return hash_long(h, &frame.key, hashed);
}

static inline bool
is_roce_port(const struct rte_mbuf *m, const struct pmd_look *look)
{
	return pmd_load16(rte_pktmbuf_mtod_offset(m, const uint8_t *, look->l4_off + 2)) ==
	       rte_cpu_to_be_16(4791);
}

/* Addresses and ports stand one behind the other in the frame, so mostly it is its own input. */
static inline uint32_t
hash_frame(const struct pmd_hash *h, const struct rte_mbuf *m, const struct pmd_look *look,
	bool *hashed)
{
	const uint8_t *addresses;
	uint32_t len;
	uint8_t fields;

	*hashed = false;
	if (unlikely(look->odd || h->rss.inner || h->rss.symmetric))
		return hash_odd(h, m, hashed);
	if (unlikely(look->kind == VRB_RSS_KINDS))
		return 0;
	fields = h->rss.fields[look->kind];
	if (unlikely(h->roce) && look->l4_off != 0 && is_roce_port(m, look))
		return hash_odd(h, m, hashed);
	addresses = rte_pktmbuf_mtod_offset(m, const uint8_t *, look->ip_off + (look->v6 ? 8 : 12));
	len = look->v6 ? 32 : 8;
	if (likely(fields == (VRB_RSS_IPS | VRB_RSS_PORTS)))
		len += 4;
	else if (fields == 0)
		return 0;
	else if (unlikely(fields != VRB_RSS_IPS))
		return hash_odd(h, m, hashed);
	*hashed = true;
	return vrb_toeplitz(&h->toeplitz, addresses, len);
}

static inline void
set_hash(struct rte_mbuf *m, uint32_t hash)
{
	m->hash.rss = hash;
	m->ol_flags |= RTE_MBUF_F_RX_RSS_HASH;
}

static inline uint16_t
by_rss(const struct pmd_port *port, struct rte_mbuf *m, const struct pmd_look *look)
{
	bool hashed;
	uint32_t hash = hash_frame(&port->rss.hash, m, look, &hashed);

	if (likely(hashed))
		set_hash(m, hash);
	return port->rss.reta[hash & (port->rss.reta_size - 1u)];
}

/* ---- flow rules ---- */

struct hit {
	struct pmd_poller *p;
	struct rte_mbuf *m;
	struct vrb_frame *frame;
	bool decided, drop;
	uint16_t queue;
};

static uint16_t
by_flow_rss(const struct rte_flow *flow, const struct hit *hit)
{
	bool hashed;
	uint32_t hash = hash_long(&flow->rss->hash, &hit->frame->key, &hashed);

	if (hashed)
		set_hash(hit->m, hash);
	return flow->rss->table[hash & (flow->rss->num - 1u)];
}

/* A rule that has the frame. */
static void
take(void *ctx, struct vrb_flow_rule *rule)
{
	struct rte_flow *flow = rule->dest;
	struct hit *hit = ctx;

	if (hit->decided)
		return;
	if (flow->hits != NULL) {
		flow->hits[hit->p->index].packets++;
		flow->hits[hit->p->index].bytes += hit->m->pkt_len;
	}
	if (flow->flag)
		hit->m->ol_flags |= RTE_MBUF_F_RX_FDIR;
	if (flow->has_mark) {
		hit->m->ol_flags |= RTE_MBUF_F_RX_FDIR | RTE_MBUF_F_RX_FDIR_ID;
		hit->m->hash.fdir.hi = flow->mark;
	}
	if (flow->passthru)
		return;
	hit->decided = true;
	hit->drop = flow->drop;
	hit->queue = flow->rss != NULL ? by_flow_rss(flow, hit) : flow->queue;
}

/* @return whether a rule has decided */
static bool
by_rules(struct pmd_poller *p, struct rte_mbuf *m, struct hit *hit)
{
	struct vrb_frame frame;

	vrb_frame_parse(rte_pktmbuf_mtod(m, const uint8_t *),
		RTE_MIN(m->data_len, VRB_FRAME_HEADERS), &frame);
	/* A tag that the lower port has taken out is a part of the frame all the same. */
	if (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) {
		frame.key.outer.present |= VRB_FLOW_VLAN;
		frame.key.outer.vlan_tci = rte_cpu_to_be_16(m->vlan_tci);
	}
	*hit = (struct hit){.p = p, .m = m, .frame = &frame};
	vrb_flow_lookup(p->port->flows, &frame.key, m->pkt_len, take, hit);
	hit->frame = NULL;
	return hit->decided;
}

/* ---- staging ---- */

static inline void
stage(struct pmd_poller *p, uint16_t queue, struct rte_mbuf *m)
{
	uint16_t n = p->fill[queue]++;

	if (n == 0)
		p->touched[p->num_touched++] = queue;
	p->staged[queue * PMD_BURST + n] = m;
}

static void
lose(struct pmd_poller *p, struct rte_mbuf *m, uint64_t *cause)
{
	(*cause)++;
	p->lost.bytes += m->pkt_len;
	rte_pktmbuf_free(m);
}

/* @return false: the frame is gone */
static bool
to_engine(struct pmd_poller *p, struct rte_mbuf *m, const struct pmd_look *look)
{
	uint32_t len = m->pkt_len;

	if (!pmd_roce_is_ours(p->port, m, look))
		return false;
	if (pmd_roce_give(p->port, m)) {
		p->roce++;
		p->lost.roce++;
		p->lost.bytes += len;
	} else {
		lose(p, m, &p->lost.roce_full);
	}
	return true;
}

static void
steer_one(struct pmd_poller *p, struct rte_mbuf *m, uint16_t lower_queue)
{
	struct pmd_port *port = p->port;
	struct pmd_look look;
	struct hit hit = {0};
	bool ruled = false;

	/* An isolated port goes by its rules alone. */
	if (unlikely(port->mac.active) && !port->isolated && !pmd_mac_passes(port, m)) {
		lose(p, m, &p->lost.mac);
		return;
	}
	pmd_look(m, &look);
	if (unlikely(port->roce.engine != NULL) && to_engine(p, m, &look))
		return;
	if (unlikely(port->num_flows > 0))
		ruled = by_rules(p, m, &hit);
	if (unlikely(ruled)) {
		p->flow++;
		if (hit.drop) {
			lose(p, m, &p->lost.flow);
			return;
		}
	} else if (unlikely(port->isolated)) {
		lose(p, m, &p->lost.isolated);
		return;
	} else if (port->rss.on) {
		hit.queue = by_rss(port, m, &look);
	} else {
		hit.queue = lower_queue < port->num_rxq ? lower_queue : 0;
	}
	/* After the rules, which look at the frame as it came. */
	if (unlikely(!pmd_frame_offloads(port, m, &look))) {
		lose(p, m, &p->lost.filter);
		return;
	}
	stage(p, hit.queue, m);
}

/* When the poller has found them. */
static void
stamp(const struct pmd_port *port, struct rte_mbuf **pkts, unsigned int n)
{
	uint64_t now = rte_rdtsc();

	for (unsigned int i = 0; i < n; i++) {
		*RTE_MBUF_DYNFIELD(pkts[i], port->stamp_offset, rte_mbuf_timestamp_t *) = now;
		pkts[i]->ol_flags |= port->stamp_flag;
	}
}

void
pmd_steer(struct pmd_poller *p, struct rte_mbuf **pkts, unsigned int n, uint16_t lower_queue)
{
	unsigned int i;

	if (unlikely(p->port->rx_todo & RTE_ETH_RX_OFFLOAD_TIMESTAMP))
		stamp(p->port, pkts, n);

	for (i = 0; i < AHEAD && i < n; i++)
		rte_prefetch0(rte_pktmbuf_mtod(pkts[i], void *));
	for (i = 0; i < n; i++) {
		if (i + AHEAD < n)
			rte_prefetch0(rte_pktmbuf_mtod(pkts[i + AHEAD], void *));
		steer_one(p, pkts[i], lower_queue);
	}
}

/* ---- giving ---- */

/* Copies the frames of a queue that copies. @return how many are left, at the front */
static unsigned int
copy_all(struct pmd_poller *p, struct pmd_rxq *q, struct rte_mbuf **pkts, unsigned int n,
	struct pmd_given *given)
{
	struct pmd_cring *c = q->cring;
	bool scatter = q->port->dev->data->scattered_rx;
	unsigned int left = 0;

	for (unsigned int i = 0; i < n; i++) {
		struct rte_mbuf *copy;

		if (unlikely(pkts[i]->pkt_len > c->room && !scatter)) {
			lose(p, pkts[i], &p->lost.bad_len);
			continue;
		}
		copy = pmd_cring_copy(c, pkts[i]);
		if (likely(copy != NULL))
			pkts[left++] = copy;
		else if (rte_ring_count(c->ring) + left + PMD_REFILL > c->size)
			lose(p, pkts[i], &given->full);
		else
			lose(p, pkts[i], &given->nombuf);
	}
	return left;
}

/* Places have become few: told once, until the program arms it again. */
static void
check_watermark(struct pmd_poller *p, struct pmd_cring *c)
{
	uint32_t limit = atomic_load_explicit(&c->limit, memory_order_relaxed);

	if (likely(limit == 0) || pmd_cring_avail(c) >= limit)
		return;
	if (atomic_exchange(&c->limit, 0) == 0)
		return; /* another poller was first */
	atomic_store(&c->pending, 1);
	atomic_fetch_add_explicit(&c->thresh_events, 1, memory_order_relaxed);
	p->crossed = true;
}

static void
ring_bell(struct pmd_rxq *q)
{
	uint64_t one = 1;

	if (atomic_exchange(&q->intr, 0) != 0 && write(q->event, &one, sizeof(one)) < 0)
		return; /* it is readable already */
}

static void
after_put(struct pmd_poller *p, struct pmd_rxq *q)
{
	struct pmd_cring *c = q->cring;
	uint32_t used = rte_ring_count(c->ring);

	if (used > atomic_load_explicit(&c->high, memory_order_relaxed))
		atomic_store_explicit(&c->high, used, memory_order_relaxed);
	check_watermark(p, c);
	if (unlikely(atomic_load_explicit(&q->intr, memory_order_relaxed) != 0))
		ring_bell(q);
}

static void
give(struct pmd_poller *p, uint16_t queue, struct rte_mbuf **pkts, unsigned int n)
{
	struct pmd_rxq *q = p->port->rxq[queue];
	struct pmd_given *given = &p->given[queue];
	uint64_t bytes = 0;
	unsigned int put;

	if (unlikely(q == NULL || q->stopped)) {
		for (unsigned int i = 0; i < n; i++)
			lose(p, pkts[i], &given->stopped);
		return;
	}
	for (unsigned int i = 0; i < n; i++) {
		pkts[i]->port = p->port->port_id;
		bytes += pkts[i]->pkt_len;
	}
	if (q->cring->stock != NULL) {
		n = copy_all(p, q, pkts, n, given);
		bytes = 0;
		for (unsigned int i = 0; i < n; i++)
			bytes += pkts[i]->pkt_len;
	}
	put = rte_ring_enqueue_burst(q->cring->ring, (void **)pkts, n, NULL);
	for (unsigned int i = put; i < n; i++) {
		bytes -= pkts[i]->pkt_len;
		lose(p, pkts[i], &given->full);
	}
	given->packets += put;
	given->bytes += bytes;
	after_put(p, q);
}

void
pmd_give_staged(struct pmd_poller *p)
{
	for (uint16_t i = 0; i < p->num_touched; i++) {
		uint16_t queue = p->touched[i], n = p->fill[queue];

		p->fill[queue] = 0;
		give(p, queue, &p->staged[queue * PMD_BURST], n);
	}
	p->num_touched = 0;
}
