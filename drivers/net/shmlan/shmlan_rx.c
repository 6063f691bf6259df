/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan: receiving. What is in a ring is hostile: see shmlan_ring.h for the rules.
 */
#include <errno.h>
#include <string.h>

#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "shmlan_private.h"

#define CHUNK 32 /* frames that are looked at together */

/* A piece of a ring that an mbuf points into. Lives in the unused data room of that mbuf. */
struct zc_loan {
	struct rte_mbuf_ext_shared_info shinfo;
	struct shm_in *in;
	uint32_t slot;
};

/* ---- frames lent out ---- */

/*
 * A lent frame comes back, in any thread. The Rx path gives the slot back to the sender in its next
 * burst; if it sleeps it has to be woken for that, since the sender may be waiting for room.
 * seq_cst: the same two fences as in vrb_bell_ring().
 */
static void
loan_return(void *addr, void *opaque)
{
	struct zc_loan *loan = opaque;
	struct shm_in *in = loan->in;

	RTE_SET_USED(addr);
	atomic_store_explicit(&in->held[loan->slot], 0, memory_order_release);
	vrb_bell_fence();
	if ((atomic_load_explicit(&in->bell->page->attention, memory_order_relaxed) &
		    VRB_BELL_SLEEPING) &&
		(vrb_bell_clear(in->bell->page, VRB_BELL_SLEEPING) & VRB_BELL_SLEEPING))
		vrb_shmlan_bell_kick(in->bell);
	vrb_shmlan_in_put(in);
}

/* Chains @m, an empty mbuf, over @len bytes of the ring's data behind @head. */
static void
loan_make(struct rte_mbuf *head, struct rte_mbuf *m, struct shm_in *in, uint32_t slot,
	const uint8_t *data, uint16_t len)
{
	struct zc_loan *loan = (struct zc_loan *)RTE_PTR_ALIGN(m->buf_addr, sizeof(void *));

	loan->in = in;
	loan->slot = slot;
	loan->shinfo.free_cb = loan_return;
	loan->shinfo.fcb_opaque = loan;
	rte_mbuf_ext_refcnt_set(&loan->shinfo, 1);
	atomic_store_explicit(&in->held[slot], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&in->refs, 1, memory_order_relaxed);
	rte_pktmbuf_attach_extbuf(m, (void *)(uintptr_t)data, RTE_BAD_IOVA, len, &loan->shinfo);
	m->data_off = 0;
	m->data_len = len;
	head->next = m;
	head->nb_segs = 2;
}

/* Gives back what can be given back: everything up to the first slot that is lent out. */
static void
ring_publish(struct shm_in *in)
{
	struct vrb_ring_rx *r = &in->r;
	uint32_t done = r->head;

	if (in->held != NULL) {
		done = r->done;
		/* Acquire: whoever had the frame has read it. */
		while (done != r->head && atomic_load_explicit(&in->held[done & (r->nslots - 1)],
						  memory_order_acquire) == 0)
			done++;
	}
	vrb_ring_rx_publish(r, done);
}

/* ---- from a slot to an mbuf ---- */

static bool
filter_pass(const struct shm_filter *f, const uint8_t *frame)
{
	uint64_t dst;
	unsigned int i;

	memcpy(&dst, frame, sizeof(dst));
	dst &= SHM_MAC_MASK;
	if (dst == f->mac || f->promisc)
		return true;
	if ((frame[0] & 1) == 0)
		return false;
	if (f->allmulti || dst == SHM_MAC_MASK)
		return true;
	for (i = 0; i < f->nmc; i++) {
		if (dst == f->mc[i])
			return true;
	}
	return false;
}

/* Copies a frame that is longer than one mbuf into a chain. */
static int
fill_chain(struct shm_rxq *q, struct rte_mbuf *head, const uint8_t *src, uint32_t len)
{
	struct rte_mbuf *last = head;
	uint32_t n = RTE_MIN(len, q->room);

	memcpy(rte_pktmbuf_mtod(head, void *), src, n);
	head->data_len = n;
	for (src += n, len -= n; len != 0; src += n, len -= n) {
		struct rte_mbuf *m = rte_pktmbuf_alloc(q->pool);

		if (m == NULL)
			return -ENOMEM;
		n = RTE_MIN(len, (uint32_t)rte_pktmbuf_tailroom(m));
		memcpy(rte_pktmbuf_mtod(m, void *), src, n);
		m->data_len = n;
		last->next = m;
		last = m;
		head->nb_segs++;
	}
	return 0;
}

static int
fill_loan(struct shm_rxq *q, struct rte_mbuf *head, struct shm_in *in, uint32_t slot,
	const uint8_t *src, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(q->pool);

	if (m == NULL)
		return -ENOMEM;
	memcpy(rte_pktmbuf_mtod(head, void *), src, VRB_SHMLAN_HDR_COPY);
	head->data_len = VRB_SHMLAN_HDR_COPY;
	loan_make(head, m, in, slot, src + VRB_SHMLAN_HDR_COPY, len - VRB_SHMLAN_HDR_COPY);
	return 0;
}

/* Undoes a fill that failed half-way or a frame that is not wanted: @m is an empty mbuf again. */
static void
unfill(struct rte_mbuf *m)
{
	rte_pktmbuf_free(m->next);
	m->next = NULL;
	m->nb_segs = 1;
}

/*
 * Moves the frame of a slot into @m. Returns 1 when it is to be delivered, 0 when it is dropped
 * (and counted), -EPROTO when the slot breaks the rules, -ENOMEM when there are no mbufs for it.
 */
static inline int
slot_to_mbuf(
	struct shm_rxq *q, struct shm_in *in, uint32_t ahead, uint64_t ctrl, struct rte_mbuf *m)
{
	const uint8_t *src = vrb_ring_rx_frame(&in->r, ahead, ctrl, SHM_FRAME_MAX);
	uint32_t len = vrb_ring_ctrl_len(ctrl);

	if (unlikely(src == NULL || len < RTE_ETHER_HDR_LEN))
		return -EPROTO;
	if (unlikely(len > q->filter.max_len)) {
		shm_count(&q->stat[SHM_RX_DROP_MTU], 1);
		return 0;
	}
	m->pkt_len = len;
	m->port = q->port_id;
	if (vrb_ring_ctrl_flags(ctrl) & SHM_FLAG_ICRC_OMITTED)
		m->ol_flags |= q->dynflag;
	if (likely(len < SHM_ZC_MIN || !q->zc) && likely(len <= q->room)) {
		rte_memcpy(rte_pktmbuf_mtod(m, void *), src, len);
		m->data_len = len;
	} else {
		uint32_t slot = (in->r.head + ahead) & (in->r.nslots - 1);
		int rc = q->zc && len >= SHM_ZC_MIN ? fill_loan(q, m, in, slot, src, len)
						    : fill_chain(q, m, src, len);

		if (rc != 0) {
			unfill(m);
			return rc;
		}
	}
	/* On the private copy: the ring may say something else by now. */
	if (unlikely(!filter_pass(&q->filter, rte_pktmbuf_mtod(m, uint8_t *)))) {
		shm_count(&q->stat[SHM_RX_DROP_FILTER], 1);
		unfill(m);
		m->ol_flags = 0;
		return 0;
	}
	return 1;
}

/* ---- one ring ---- */

/* Takes a ring out of use that breaks the rules; the control thread hangs up. */
static void
ring_broken(struct shm_rxq *q, struct shm_in *in)
{
	shm_count(&q->stat[SHM_RX_BAD_RING], 1);
	atomic_store_explicit(&in->broken, true, memory_order_relaxed);
	vrb_shmlan_ctl_kick(q->port);
}

/* Control words of the frames that are there, up to @max. @bad: the one after them breaks the
 * rules. */
static inline unsigned int
ring_look(struct shm_in *in, uint64_t *ctrl, unsigned int max, bool *bad)
{
	unsigned int n;

	*bad = false;
	for (n = 0; n < max; n++) {
		int rc = vrb_ring_rx_peek(&in->r, n, &ctrl[n]);

		if (rc != 1) {
			*bad = rc < 0;
			break;
		}
		vrb_ring_rx_prefetch(&in->r, n, ctrl[n]);
	}
	return n;
}

/* As many as there are, up to @n: an empty mempool should not stop what still fits. */
static unsigned int
mbufs_get(struct shm_rxq *q, struct rte_mbuf **m, unsigned int n)
{
	unsigned int i;

	if (likely(rte_pktmbuf_alloc_bulk(q->pool, m, n) == 0))
		return n;
	for (i = 0; i < n; i++) {
		m[i] = rte_pktmbuf_alloc(q->pool);
		if (m[i] == NULL)
			break;
	}
	return i;
}

/*
 * Receives up to CHUNK frames of one ring. @taken: how many slots were read, of which the result
 * tells how many were delivered.
 */
static unsigned int
ring_chunk(struct shm_rxq *q, struct shm_in *in, struct rte_mbuf **pkts, unsigned int max,
	unsigned int *taken)
{
	struct rte_mbuf *mb[CHUNK];
	uint64_t ctrl[CHUNK], bytes = 0;
	unsigned int n, got, i, used = 0;
	bool bad;
	int rc = 1;

	*taken = 0;
	n = ring_look(in, ctrl, RTE_MIN(max, (unsigned int)CHUNK), &bad);
	if (n == 0) {
		if (unlikely(bad))
			ring_broken(q, in);
		return 0;
	}
	got = mbufs_get(q, mb, n);
	for (i = 0; i < got; i++) {
		rc = slot_to_mbuf(q, in, i, ctrl[i], mb[used]);
		if (unlikely(rc < 0))
			break;
		if (likely(rc == 1)) {
			bytes += mb[used]->pkt_len;
			pkts[used] = mb[used];
			used++;
		}
	}
	if (unlikely(used != got))
		rte_pktmbuf_free_bulk(&mb[used], got - used);
	if (unlikely(rc == -EPROTO))
		ring_broken(q, in);
	else if (unlikely(rc == -ENOMEM || got < n))
		shm_count(&q->stat[SHM_RX_NOMBUF], 1);
	vrb_ring_rx_advance(&in->r, i);
	*taken = i;
	shm_count(&q->stat[SHM_RX_PACKETS], used);
	shm_count(&q->stat[SHM_RX_BYTES], bytes);
	return used;
}

static unsigned int
ring_rx(struct shm_rxq *q, struct shm_in *in, struct rte_mbuf **pkts, unsigned int max)
{
	unsigned int n = 0, taken;

	if (unlikely(atomic_load_explicit(&in->broken, memory_order_relaxed)))
		return 0;
	/* The second line of the slot comes along with the first one that is polled. */
	rte_prefetch0(&in->r.slots[in->r.head & (in->r.nslots - 1)].data[48]);
	do {
		n += ring_chunk(q, in, pkts + n, max - n, &taken);
	} while (taken == CHUNK && n < max);
	if (in->r.done != in->r.head)
		ring_publish(in);
	return n;
}

/* True if the ring needs to be looked at again without being asked to: frames are left, or lent
 * out. */
static bool
ring_busy(const struct shm_in *in)
{
	uint64_t ctrl;

	return in->r.done != in->r.head || vrb_ring_rx_peek(&in->r, 0, &ctrl) != 0;
}

/* ---- changes from the control side; with port->lock ---- */

static void
bitmap_switch(struct shm_rxq *q)
{
	unsigned int i;

	if (!q->bitmap && q->nrings > SHM_BITMAP_ON) {
		q->bitmap = true;
		vrb_bell_set(q->bell->page, VRB_BELL_BITMAP);
		for (i = 0; i < q->nrings; i++)
			q->ready[q->rings[i]->idx / 64] |= 1ull << q->rings[i]->idx % 64;
	} else if (q->bitmap && q->nrings <= SHM_BITMAP_OFF) {
		q->bitmap = false;
		vrb_bell_clear(q->bell->page, VRB_BELL_BITMAP);
	}
}

static void
ring_adopt(struct shm_rxq *q, struct shm_in *in)
{
	in->adopted = true;
	q->rings[q->nrings++] = in;
	q->by_idx[in->idx] = in;
	q->nwords = RTE_MAX(q->nwords, in->idx / 64 + 1);
	q->ready[in->idx / 64] |= 1ull << in->idx % 64;
}

static void
ring_forget(struct shm_rxq *q, struct shm_in *in)
{
	unsigned int i;

	for (i = 0; i < q->nrings; i++) {
		if (q->rings[i] == in) {
			q->rings[i] = q->rings[--q->nrings];
			break;
		}
	}
	q->by_idx[in->idx] = NULL;
	q->ready[in->idx / 64] &= ~(1ull << in->idx % 64);
	q->next = 0;
}

/*
 * Takes new rings into use and removes those that are at their end: of senders that are gone, when
 * all that they sent has been read. Called by the Rx path when rxq.change is set, or by the control
 * side while the port is stopped.
 */
void
vrb_shmlan_rx_sync(struct shm_port *port)
{
	struct shm_rxq *q = &port->rx;
	bool draining = false;
	unsigned int i;

	/* Acquire: what was changed before the word was set. A change after this sets it anew. */
	if (atomic_exchange_explicit(&q->change, 0, memory_order_acquire) & SHM_CHANGE_FORKED) {
		atomic_store_explicit(&q->change, SHM_CHANGE_FORKED, memory_order_relaxed);
		return;
	}
	q->filter = port->filter;
	for (i = 0; i < VRB_BELL_RINGS; i++) {
		struct shm_in *in = port->in[i];
		uint64_t ctrl;

		if (in == NULL)
			continue;
		if (!in->adopted)
			ring_adopt(q, in);
		if (!atomic_load_explicit(&in->broken, memory_order_relaxed)) {
			if (!atomic_load_explicit(&in->eof, memory_order_relaxed))
				continue;
			if (port->started && vrb_ring_rx_peek(&in->r, 0, &ctrl) == 1) {
				draining = true;
				continue;
			}
		}
		ring_forget(q, in);
		vrb_shmlan_in_remove(port, in);
	}
	bitmap_switch(q);
	if (draining)
		atomic_fetch_or_explicit(&q->change, SHM_CHANGE_RINGS, memory_order_relaxed);
}

/* Throws away what has come while nobody received. With port->lock; the port is stopped. */
void
vrb_shmlan_rx_discard(struct shm_port *port)
{
	struct shm_rxq *q = &port->rx;
	uint64_t ctrl;
	unsigned int i;

	vrb_shmlan_rx_sync(port);
	for (i = 0; i < q->nrings; i++) {
		struct shm_in *in = q->rings[i];
		uint32_t n;

		/* One lap at most: a sender may be writing all the time. */
		for (n = 0; n < in->r.nslots && vrb_ring_rx_peek(&in->r, 0, &ctrl) == 1; n++)
			vrb_ring_rx_advance(&in->r, 1);
		ring_publish(in);
	}
}

/*
 * Called when the change word is set: takes changes over. Those of rings can wait until the control
 * side does not have the lock; those of the filter cannot, as the next frame may depend on them.
 * Returns false in a child of fork(2).
 */
static __rte_noinline bool
take_changes(struct shm_rxq *q)
{
	uint32_t change = atomic_load_explicit(&q->change, memory_order_relaxed);

	if (change & SHM_CHANGE_FORKED)
		return false;
	if (change & SHM_CHANGE_FILTER)
		pthread_mutex_lock(&q->port->lock);
	else if (pthread_mutex_trylock(&q->port->lock) != 0)
		return true;
	vrb_shmlan_rx_sync(q->port);
	pthread_mutex_unlock(&q->port->lock);
	return true;
}

/* ---- ethdev's entry points ---- */

/* Serves the rings of @todo, bits of word @w. */
static unsigned int
rx_word(struct shm_rxq *q, unsigned int w, uint64_t todo, struct rte_mbuf **pkts, unsigned int max)
{
	unsigned int n = 0;

	for (; todo != 0 && n < max; todo &= todo - 1) {
		unsigned int idx = w * 64 + __builtin_ctzll(todo);
		struct shm_in *in = q->by_idx[idx];

		/* Start after the last one that was served, so that a busy ring cannot starve the
		 * others. */
		q->next = idx + 1;
		/* A bit may be left from a ring that had this place before. */
		if (in != NULL) {
			n += ring_rx(q, in, pkts + n, max - n);
			if (ring_busy(in))
				continue;
		}
		q->ready[w] &= ~(1ull << idx % 64);
	}
	return n;
}

/* Receives from those rings whose bit is set. */
static unsigned int
rx_bitmap(struct shm_rxq *q, struct rte_mbuf **pkts, unsigned int max)
{
	unsigned int first = q->next % (q->nwords * 64), w, k, n = 0;
	uint64_t mask = ~0ull << first % 64;

	for (w = 0; w < q->nwords; w++)
		q->ready[w] |= vrb_bell_take(q->bell->page, w);
	w = first / 64;
	n = rx_word(q, w, q->ready[w] & mask, pkts, max);
	for (k = 1; k < q->nwords && n < max; k++) {
		w = w + 1 == q->nwords ? 0 : w + 1;
		n += rx_word(q, w, q->ready[w], pkts + n, max - n);
	}
	w = first / 64;
	return n + rx_word(q, w, q->ready[w] & ~mask, pkts + n, max - n);
}

uint16_t
vrb_shmlan_rx_burst(void *rxq, struct rte_mbuf **pkts, uint16_t max)
{
	struct shm_rxq *q = rxq;
	unsigned int i, first, n = 0;

	if (unlikely(atomic_load_explicit(&q->change, memory_order_acquire) != 0) &&
		!take_changes(q))
		return 0;
	if (q->bitmap)
		return rx_bitmap(q, pkts, max);
	first = q->next;
	for (i = 0; i < q->nrings && n < max; i++) {
		unsigned int k = first + i;

		if (k >= q->nrings)
			k -= q->nrings;
		n += ring_rx(q, q->rings[k], pkts + n, max - n);
	}
	/* Start after the one that was served last, so that a busy ring cannot starve the others.
	 */
	if (q->nrings > 1 && n == max) {
		first += i;
		q->next = first >= q->nrings ? first - q->nrings : first;
	}
	return n;
}

static uint32_t
ring_count(const struct shm_in *in)
{
	uint64_t ctrl;
	uint32_t n = 0;

	if (atomic_load_explicit(&in->broken, memory_order_relaxed))
		return 0;
	while (n < in->r.nslots && vrb_ring_rx_peek(&in->r, n, &ctrl) == 1)
		n++;
	return n;
}

/* Frames that are ready to be received. By the thread that receives. */
uint32_t
vrb_shmlan_rx_count(void *rxq)
{
	struct shm_rxq *q = rxq;
	uint32_t n = 0;
	unsigned int i;

	if (atomic_load_explicit(&q->change, memory_order_acquire) != 0 && !take_changes(q))
		return 0;
	for (i = 0; i < q->nrings; i++)
		n += ring_count(q->rings[i]);
	return n;
}

/*
 * True if there is something to do for rx_burst(). By the thread that receives. Who asks is about
 * to sleep, so changes wait for the lock: told to come back for them, the thread would do so until
 * the control side lets the lock go, and on a shared CPU keep it from doing that.
 */
bool
vrb_shmlan_rx_any(struct shm_rxq *q)
{
	unsigned int i;

	if (atomic_load_explicit(&q->change, memory_order_acquire) & SHM_CHANGE_RINGS) {
		pthread_mutex_lock(&q->port->lock);
		vrb_shmlan_rx_sync(q->port);
		pthread_mutex_unlock(&q->port->lock);
	}
	if (atomic_load_explicit(&q->change, memory_order_acquire) != 0)
		return true;
	for (i = 0; q->bitmap && i < q->nwords; i++) {
		if (atomic_load_explicit(&q->bell->page->pending[i], memory_order_relaxed) != 0)
			return true;
	}
	for (i = 0; i < q->nrings; i++) {
		const struct shm_in *in = q->rings[i];
		uint64_t ctrl;

		/* With the bitmap, only those that have a frame left from the last burst, or lent
		 * out. */
		if ((!q->bitmap || (q->ready[in->idx / 64] & 1ull << in->idx % 64)) &&
			vrb_ring_rx_peek(&in->r, 0, &ctrl) == 1)
			return true;
	}
	return false;
}

int
vrb_shmlan_rx_desc_status(void *rxq, uint16_t offset)
{
	struct shm_rxq *q = rxq;

	if (offset >= q->port->args.slots)
		return -EINVAL;
	return offset < vrb_shmlan_rx_count(rxq) ? RTE_ETH_RX_DESC_DONE : RTE_ETH_RX_DESC_AVAIL;
}
