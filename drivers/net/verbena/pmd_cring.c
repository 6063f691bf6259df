/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion rings: where frames wait for the program, and the buffers that queues which copy keep
 * posted for them.
 *
 * A queue that copies owns at most as many buffers as its ring has entries, posted ones and those
 * with frames in them together. So a program that does not take its frames finds the queue without
 * posted buffers, as it would a NIC's.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "pmd_private.h"

/* rte_ring_create() would name it in a memzone, of which there are few. */
static struct rte_ring *
ring_new(uint32_t size, unsigned int flags)
{
	ssize_t bytes = rte_ring_get_memsize(rte_align32pow2(size + 1));
	struct rte_ring *r;

	if (bytes < 0)
		return NULL;
	r = aligned_alloc(RTE_CACHE_LINE_SIZE, RTE_ALIGN_CEIL((size_t)bytes, RTE_CACHE_LINE_SIZE));
	if (r == NULL)
		return NULL;
	if (rte_ring_init(r, "vrb", size, flags | RING_F_EXACT_SZ) != 0) {
		free(r);
		return NULL;
	}
	return r;
}

static struct rte_ring *
completion_ring(const struct pmd_cring *c, uint32_t size)
{
	return ring_new(size, RING_F_SC_DEQ | (c->multi ? 0 : RING_F_SP_ENQ));
}

int
pmd_cring_init(struct pmd_cring *c, uint32_t size, unsigned int socket, bool multi)
{
	memset(c, 0, sizeof(*c));
	c->size = size;
	c->socket = socket;
	c->multi = multi;
	c->ring = completion_ring(c, size);
	return c->ring == NULL ? -ENOMEM : 0;
}

int
pmd_cring_add_stock(struct pmd_cring *c, struct rte_mempool *mp)
{
	c->mp = mp;
	c->room = rte_pktmbuf_data_room_size(mp) - RTE_PKTMBUF_HEADROOM;
	c->stock = ring_new(c->size, c->multi ? 0 : RING_F_SP_ENQ | RING_F_SC_DEQ);
	return c->stock == NULL ? -ENOMEM : 0;
}

static void
drain(struct rte_ring *r)
{
	struct rte_mbuf *pkts[PMD_BURST];
	unsigned int n;

	while ((n = rte_ring_dequeue_burst(r, (void **)pkts, PMD_BURST, NULL)) > 0)
		rte_pktmbuf_free_bulk(pkts, n);
}

void
pmd_cring_fini(struct pmd_cring *c)
{
	if (c->ring != NULL)
		drain(c->ring);
	if (c->stock != NULL)
		drain(c->stock);
	free(c->ring);
	free(c->stock);
	c->ring = c->stock = NULL;
}

/* Moves all entries, in order. */
static void
move(struct rte_ring *from, struct rte_ring *to)
{
	void *objs[PMD_BURST];
	unsigned int n;

	while ((n = rte_ring_dequeue_burst(from, objs, PMD_BURST, NULL)) > 0)
		rte_ring_enqueue_bulk(to, objs, n, NULL);
}

int
pmd_cring_resize(struct pmd_cring *c, uint32_t size)
{
	struct rte_ring *ring, *stock = NULL;

	if (rte_ring_count(c->ring) > size)
		return -EBUSY;
	ring = completion_ring(c, size);
	if (c->stock != NULL)
		stock = ring_new(size, c->multi ? 0 : RING_F_SP_ENQ | RING_F_SC_DEQ);
	if (ring == NULL || (c->stock != NULL && stock == NULL)) {
		free(ring);
		free(stock);
		return -ENOMEM;
	}
	move(c->ring, ring);
	free(c->ring);
	c->ring = ring;
	if (c->stock != NULL) {
		/* Buffers are all alike: those that are too many go back. */
		while (rte_ring_count(c->stock) + rte_ring_count(ring) > size) {
			struct rte_mbuf *m;

			if (rte_ring_dequeue(c->stock, (void **)&m) == 0)
				rte_pktmbuf_free(m);
		}
		move(c->stock, stock);
		free(c->stock);
		c->stock = stock;
	}
	c->size = size;
	c->resizes++;
	pmd_cring_arm(c, atomic_load(&c->thresh));
	return 0;
}

void
pmd_cring_arm(struct pmd_cring *c, uint8_t thresh)
{
	atomic_store(&c->thresh, thresh);
	/* At least one place: a watermark that can be reached. */
	atomic_store(&c->limit, thresh == 0 ? 0 : RTE_MAX(1u, c->size * thresh / 100));
	if (thresh == 0)
		atomic_store(&c->pending, 0);
}

uint32_t
pmd_cring_avail(const struct pmd_cring *c)
{
	uint32_t used = rte_ring_count(c->ring);
	uint32_t room = used < c->size ? c->size - used : 0;

	return c->stock == NULL ? room : RTE_MIN(room, rte_ring_count(c->stock));
}

static inline void
count(_Atomic uint64_t *what, uint64_t n)
{
	atomic_fetch_add_explicit(what, n, memory_order_relaxed);
}

void
pmd_cring_refill(struct pmd_cring *c)
{
	struct rte_mbuf *bufs[PMD_REFILL];

	for (;;) {
		uint32_t held = rte_ring_count(c->stock) + rte_ring_count(c->ring);
		unsigned int put;

		if (held + PMD_REFILL > c->size)
			return;
		if (rte_pktmbuf_alloc_bulk(c->mp, bufs, PMD_REFILL) != 0) {
			/* A pool that has less than a burst is emptied singly. */
			bufs[0] = rte_pktmbuf_alloc(c->mp);
			if (bufs[0] == NULL) {
				count(&c->refill_fails, 1);
				return;
			}
			put = rte_ring_enqueue_burst(c->stock, (void **)bufs, 1, NULL);
			rte_pktmbuf_free_bulk(&bufs[put], 1 - put);
			count(&c->refills, 1);
			count(&c->refilled, put);
			if (rte_mempool_avail_count(c->mp) == 0)
				return;
			continue;
		}
		/* Another poller may have been faster. */
		put = rte_ring_enqueue_burst(c->stock, (void **)bufs, PMD_REFILL, NULL);
		if (put < PMD_REFILL)
			rte_pktmbuf_free_bulk(&bufs[put], PMD_REFILL - put);
		count(&c->refills, 1);
		count(&c->refilled, put);
		if (put < PMD_REFILL)
			return;
	}
}

/* A posted buffer, cleared for use. */
static struct rte_mbuf *
take_posted(struct pmd_cring *c)
{
	struct rte_mbuf *m;

	if (rte_ring_dequeue(c->stock, (void **)&m) == 0)
		return m;
	pmd_cring_refill(c);
	return rte_ring_dequeue(c->stock, (void **)&m) == 0 ? m : NULL;
}

/* What the lower port has told about the frame. */
static void
copy_meta(struct rte_mbuf *to, const struct rte_mbuf *from)
{
	to->ol_flags = from->ol_flags & ~(RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT);
	to->port = from->port;
	to->packet_type = from->packet_type;
	to->vlan_tci = from->vlan_tci;
	to->vlan_tci_outer = from->vlan_tci_outer;
	to->hash = from->hash;
	memcpy(to->dynfield1, from->dynfield1, sizeof(to->dynfield1));
	to->pkt_len = from->pkt_len;
}

struct rte_mbuf *
pmd_cring_copy(struct pmd_cring *c, struct rte_mbuf *m)
{
	struct rte_mbuf *head = NULL, *tail = NULL;
	uint32_t off = 0, left = m->pkt_len;

	do {
		uint32_t len = RTE_MIN(left, c->room);
		struct rte_mbuf *seg = take_posted(c);
		const void *from;
		void *to;

		if (seg == NULL) {
			rte_pktmbuf_free(head);
			return NULL;
		}
		to = rte_pktmbuf_mtod(seg, void *);
		from = rte_pktmbuf_read(m, off, len, to);
		if (from != to && from != NULL)
			rte_memcpy(to, from, len);
		seg->data_len = len;
		if (head == NULL) {
			head = seg;
			copy_meta(head, m);
		} else {
			tail->next = seg;
			head->nb_segs++;
		}
		tail = seg;
		off += len;
		left -= len;
	} while (left > 0);
	rte_pktmbuf_free(m);
	return head;
}
