/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan: sending.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <rte_cycles.h>
#include <rte_mbuf.h>

#include "guard.h"
#include "shmlan_conn.h"

/*
 * Frames are handed over in runs of so much work at most: one for each frame and each 512 bytes.
 * Long runs are cheaper, but the receiver should start on the first frame while others are written.
 */
#define RUN 32
#define RETRY_MS 100 /* before a peer that hung up is tried again */

static __thread bool tx_fault;

bool
vrb_shmlan_tx_fault(void)
{
	return tx_fault;
}

/* ---- the table of members: private to the Tx path, made anew when the registry has changed ----
 */

static inline unsigned int
hash_of(uint64_t key)
{
	return (key * 0x9e3779b97f4a7c15ull) >> 52 & (SHM_HASH_SIZE - 1);
}

static void
hash_insert(struct shm_txq *q, uint64_t key, unsigned int slot)
{
	unsigned int h = hash_of(key);

	while (q->hash[h] != 0)
		h = (h + 1) & (SHM_HASH_SIZE - 1);
	q->hash[h] = key << 16 | 0x8000 | slot;
}

/* Slot of the member that has the address, or -1. */
static inline int
hash_find(const struct shm_txq *q, uint64_t key)
{
	unsigned int h;

	for (h = hash_of(key); q->hash[h] != 0; h = (h + 1) & (SHM_HASH_SIZE - 1)) {
		if (q->hash[h] >> 16 == key)
			return q->hash[h] & 0x3ff;
	}
	return -1;
}

_Static_assert(VRB_SHMLAN_MEMBERS == 0x400, "a slot fits the low bits of a hash entry");

/* Ends the use of a ring. What its receiver has not read is lost, and counted. */
static void
out_close(struct shm_txq *q, unsigned int slot)
{
	struct vrb_ring_tx *r = &q->outs[slot]->r;

	vrb_ring_tx_refresh(r);
	shm_count(&q->stat[SHM_TX_LOST], r->tail - r->head);
	vrb_shmlan_out_free(q->port, q->outs[slot]);
	q->outs[slot] = NULL;
	q->last_out = NULL;
}

/* Reads the registry. Acquire: the entries are at least as new as gen. */
static void
table_load(struct shm_port *port)
{
	struct shm_txq *q = &port->tx;
	unsigned int i, n;

	q->gen = atomic_load_explicit(&q->file->gen, memory_order_acquire);
	memset(q->hash, 0, sizeof(q->hash));
	q->nup = q->npromisc = 0;
	q->last_out = NULL;
	q->self = shm_mac_key(&port->mac);
	n = RTE_MIN(atomic_load_explicit(&q->file->high, memory_order_relaxed),
		(uint32_t)VRB_SHMLAN_MEMBERS);
	for (i = 0; i < n; i++) {
		struct shm_entry *e = &q->file->entry[i];
		uint64_t word = atomic_load_explicit(&e->word, memory_order_acquire);
		uint64_t inc = atomic_load_explicit(&e->inc, memory_order_relaxed);

		if (i == port->reg.slot)
			word = 0;
		if (q->outs[i] != NULL && (word == 0 || q->outs[i]->conn.inc != inc))
			out_close(q, i);
		if (q->inc[i] != inc)
			q->retry[i] = 0;
		q->word[i] = word;
		q->inc[i] = inc;
		if ((word & SHM_ENTRY_USED) == 0)
			continue;
		hash_insert(q, word & SHM_MAC_MASK, i);
		if ((word & SHM_ENTRY_UP) == 0)
			continue;
		q->up[q->nup++] = i;
		if (word & SHM_ENTRY_PROMISC) {
			q->promisc = i;
			q->npromisc++;
		}
	}
}

/*
 * Takes over what has changed in the registry and on the connections. With port->lock. Called by
 * the Tx path, or by the control side while the port is stopped. Returns -EAGAIN in a child of
 * fork(2).
 */
int
vrb_shmlan_tx_sync(struct shm_port *port)
{
	struct shm_txq *q = &port->tx;
	unsigned int i;

	if (atomic_exchange_explicit(&q->change, 0, memory_order_acquire) & SHM_CHANGE_FORKED) {
		atomic_store_explicit(&q->change, SHM_CHANGE_FORKED, memory_order_relaxed);
		return -EAGAIN;
	}
	for (i = 0; i < VRB_SHMLAN_MEMBERS; i++) {
		struct shm_out *out = q->outs[i];

		if (out == NULL)
			continue;
		out->page = out->new_page;
		if (!out->closed && !atomic_load_explicit(&out->eof, memory_order_relaxed))
			continue;
		out_close(q, i);
		q->retry[i] = rte_get_tsc_cycles() + rte_get_tsc_hz() * RETRY_MS / 1000;
	}
	table_load(port);
	return 0;
}

static __rte_noinline int
take_changes(struct shm_txq *q)
{
	int rc;

	if (atomic_load_explicit(&q->change, memory_order_relaxed) & SHM_CHANGE_FORKED)
		return -EAGAIN;
	/* Waits for the control side, which never holds the lock for long: a short burst without a
	 * full ring would be a lie. */
	pthread_mutex_lock(&q->port->lock);
	rc = vrb_shmlan_tx_sync(q->port);
	pthread_mutex_unlock(&q->port->lock);
	return rc;
}

/* ---- one frame to one ring ---- */

/* A frame of one burst that cannot be sent: why. */
enum tx_result {
	TX_SENT = 0,
	TX_AGAIN = -1, /* no room: back-pressure */
	TX_DROP = -2, /* counted by whoever says so */
	TX_FAULT = -3,
};

static enum tx_result
drop(struct shm_txq *q, enum shm_tx_stat why)
{
	shm_count(&q->stat[why], 1);
	return TX_DROP;
}

/* The first use of a ring to the member in @slot. Nothing here waits for it. */
static __rte_noinline enum tx_result
out_first(struct shm_txq *q, unsigned int slot, struct shm_out **out)
{
	struct shm_port *port = q->port;
	int rc;

	if (q->retry[slot] != 0 && rte_get_tsc_cycles() < q->retry[slot])
		return drop(q, SHM_TX_DROP_DOWN);
	pthread_mutex_lock(&port->lock);
	rc = vrb_shmlan_out_open(port, slot, q->inc[slot], out);
	pthread_mutex_unlock(&port->lock);
	if (rc == 0) {
		q->outs[slot] = *out;
		return TX_SENT;
	}
	if (rc == -EAGAIN)
		return TX_AGAIN;
	q->retry[slot] = rte_get_tsc_cycles() + rte_get_tsc_hz() * RETRY_MS / 1000;
	if (rc == -ECONNREFUSED || rc == -ENOENT)
		return drop(q, SHM_TX_DROP_DOWN);
	SHM_LOG(WARNING, "port %u: cannot make a ring to member %u: %s", port->port_id, slot,
		strerror(-rc));
	return drop(q, SHM_TX_DROP_NO_RING);
}

/* The ring to the member in @slot. */
static inline enum tx_result
out_get(struct shm_txq *q, unsigned int slot, struct shm_out **out)
{
	*out = q->outs[slot];
	if (unlikely((q->word[slot] & SHM_ENTRY_UP) == 0))
		return drop(q, SHM_TX_DROP_DOWN);
	if (unlikely(*out == NULL))
		return out_first(q, slot, out);
	return (*out)->closed ? drop(q, SHM_TX_DROP_DOWN) : TX_SENT;
}

/*
 * Copies a frame's segments to private memory. Memory of a mempool stays; that of a program may go
 * away while it is read. -EINVAL: the segments do not add up to the frame's length.
 */
static int
gather(uint8_t *dst, const struct rte_mbuf *m, uint32_t len)
{
	uint32_t off = 0;

	for (; m != NULL; m = m->next) {
		const void *src = rte_pktmbuf_mtod(m, const void *);

		if (unlikely(m->data_len > len - off))
			return -EINVAL;
		if (!RTE_MBUF_HAS_EXTBUF(m))
			rte_memcpy(dst + off, src, m->data_len);
		else if (unlikely(vrb_guard_copy(dst + off, src, m->data_len) != 0))
			return -EFAULT;
		off += m->data_len;
	}
	return likely(off == len) ? 0 : -EINVAL;
}

/* The frame in one piece that can be read without a fault. */
static inline int
frame_ready(struct shm_txq *q, const struct rte_mbuf *m, const uint8_t **frame)
{
	if (likely(m->nb_segs == 1 && m->data_len == m->pkt_len && !RTE_MBUF_HAS_EXTBUF(m))) {
		*frame = rte_pktmbuf_mtod(m, const uint8_t *);
		return 0;
	}
	*frame = q->gathered;
	return gather(q->gathered, m, m->pkt_len);
}

static __rte_noinline enum tx_result
out_broken(struct shm_txq *q, struct shm_out *out)
{
	out->closed = true;
	q->last_out = NULL;
	atomic_fetch_or_explicit(&q->change, SHM_CHANGE_RINGS, memory_order_relaxed);
	SHM_LOG(WARNING, "port %u: member %u broke the rules of its ring, which was closed",
		q->port->port_id, out->conn.slot);
	return drop(q, SHM_TX_BAD_RING);
}

static inline enum tx_result
out_send(struct shm_txq *q, struct shm_out *out, const struct rte_mbuf *m)
{
	uint8_t flags = m->ol_flags & q->dynflag ? SHM_FLAG_ICRC_OMITTED : 0;
	const uint8_t *frame;
	int rc;

	rc = vrb_ring_tx_room(&out->r, m->pkt_len);
	if (unlikely(rc != 0))
		return rc == -EAGAIN ? TX_AGAIN : out_broken(q, out);
	rc = frame_ready(q, m, &frame);
	if (unlikely(rc != 0)) {
		if (rc == -EINVAL)
			return drop(q, SHM_TX_DROP_MALFORMED);
		shm_count(&q->stat[SHM_TX_DROP_FAULT], 1);
		return TX_FAULT;
	}
	vrb_ring_tx_put(&out->r, frame, m->pkt_len, flags);
	out->run += 1 + m->pkt_len / 512;
	if (out->run >= RUN) {
		vrb_ring_tx_publish(&out->r);
		out->run = 0;
	}
	if (!out->touched) {
		out->touched = true;
		q->touched[q->ntouched++] = out;
	}
	return TX_SENT;
}

/* ---- one frame to whom it is for ---- */

/*
 * To all others, or to those that want frames for unknown addresses. A full ring loses the frame
 * for that member only: one slow member must not stop a broadcast for all.
 */
static __rte_noinline enum tx_result
flood(struct shm_txq *q, const struct rte_mbuf *m, uint64_t flags)
{
	unsigned int i, sent = 0, wanted = 0;

	for (i = 0; i < q->nup; i++) {
		struct shm_out *out;
		enum tx_result res;

		if ((q->word[q->up[i]] & flags) != flags)
			continue;
		wanted++;
		res = out_get(q, q->up[i], &out);
		if (res == TX_SENT)
			res = out_send(q, out, m);
		if (res == TX_FAULT)
			return res;
		if (res == TX_AGAIN)
			shm_count(&q->stat[SHM_TX_DROP_FULL], 1);
		sent += res == TX_SENT;
	}
	if (wanted == 0)
		return drop(q, SHM_TX_DROP_UNKNOWN);
	return sent != 0 ? TX_SENT : TX_DROP;
}

/* The first bytes of a frame, when they are not in one piece or may fault. Returns NULL on a fault.
 */
static __rte_noinline const uint8_t *
header_gather(const struct rte_mbuf *m, uint8_t *buf, uint32_t want)
{
	uint32_t n, have = 0;

	for (; m != NULL && have < want; m = m->next, have += n) {
		n = RTE_MIN(want - have, (uint32_t)m->data_len);
		if (vrb_guard_copy(buf + have, rte_pktmbuf_mtod(m, const void *), n) != 0)
			return NULL;
	}
	return buf;
}

static inline enum tx_result
frame_send(struct shm_txq *q, const struct rte_mbuf *m)
{
	uint8_t gathered[RTE_ETHER_ADDR_LEN + 2] = {0};
	struct shm_out *out;
	const uint8_t *hdr;
	enum tx_result res;
	uint64_t key;
	int slot;

	if (unlikely(m->pkt_len < RTE_ETHER_HDR_LEN))
		return drop(q, SHM_TX_DROP_RUNT);
	if (unlikely(m->pkt_len > SHM_FRAME_MAX))
		return drop(q, SHM_TX_DROP_LONG);
	hdr = rte_pktmbuf_mtod(m, const uint8_t *);
	if (unlikely(m->data_len < sizeof(key) || RTE_MBUF_HAS_EXTBUF(m))) {
		hdr = header_gather(m, gathered, sizeof(gathered));
		if (hdr == NULL) {
			shm_count(&q->stat[SHM_TX_DROP_FAULT], 1);
			return TX_FAULT;
		}
	}
	memcpy(&key, hdr, sizeof(key));
	key &= SHM_MAC_MASK;
	if (likely(key == q->last_key && q->last_out != NULL))
		return out_send(q, q->last_out, m);
	if (hdr[0] & 1)
		return flood(q, m, 0);
	slot = hash_find(q, key);
	if (unlikely(slot < 0)) {
		/* To ourselves: the layer above does that. */
		if (key == q->self)
			return drop(q, SHM_TX_DROP_UNKNOWN);
		/* A single member that wants it, such as a switch, has it as its own: with
		 * back-pressure. */
		if (q->npromisc != 1)
			return flood(q, m, SHM_ENTRY_PROMISC);
		slot = q->promisc;
	}
	res = out_get(q, slot, &out);
	if (unlikely(res != TX_SENT))
		return res;
	q->last_key = key;
	q->last_out = out;
	return out_send(q, out, m);
}

/* ---- the end of a burst ---- */

/* Wakes the receiver of a ring if it sleeps. */
static inline void
out_wake(struct shm_txq *q, struct shm_out *out)
{
	if (likely(out->page != NULL)) {
		if (unlikely(vrb_bell_ring(out->page, out->bit))) {
			vrb_shmlan_kick(out->evfd);
			shm_count(&q->stat[SHM_TX_KICKS], 1);
		}
		return;
	}
	/*
	 * It has not told us its doorbell yet: its control thread has to ring it. When the socket
	 * is full of such bytes, one of them is still to be read, and that is all that is wanted.
	 */
	send(out->conn.fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
	shm_count(&q->stat[SHM_TX_KICKS], 1);
}

static inline void
wake_all(struct shm_txq *q)
{
	unsigned int i;

	for (i = 0; i < q->ntouched; i++) {
		q->touched[i]->touched = false;
		q->touched[i]->run = 0;
		vrb_ring_tx_publish(&q->touched[i]->r);
		out_wake(q, q->touched[i]);
	}
	q->ntouched = 0;
}

uint16_t
vrb_shmlan_tx_burst(void *txq, struct rte_mbuf **pkts, uint16_t max)
{
	struct shm_txq *q = txq;
	unsigned int n = 0, sent = 0;
	uint64_t bytes = 0;

	tx_fault = false;
	if (unlikely(atomic_load_explicit(&q->change, memory_order_acquire) != 0 ||
		     atomic_load_explicit(&q->file->gen, memory_order_acquire) != q->gen) &&
		take_changes(q) != 0)
		return 0;
	while (n < max) {
		enum tx_result res = frame_send(q, pkts[n]);

		if (unlikely(res == TX_AGAIN)) {
			shm_count(&q->stat[SHM_TX_FULL], 1);
			break;
		}
		if (likely(res == TX_SENT)) {
			bytes += pkts[n]->pkt_len;
			sent++;
		}
		n++;
		if (unlikely(res == TX_FAULT)) {
			tx_fault = true;
			break;
		}
	}
	if (likely(n != 0)) {
		wake_all(q);
		rte_pktmbuf_free_bulk(pkts, n);
		shm_count(&q->stat[SHM_TX_PACKETS], sent);
		shm_count(&q->stat[SHM_TX_BYTES], bytes);
	}
	return n;
}

/* By the thread that sends. FULL if some ring has less room than that. */
int
vrb_shmlan_tx_desc_status(void *txq, uint16_t offset)
{
	struct shm_txq *q = txq;
	unsigned int i;

	if (offset >= q->port->args.slots)
		return -EINVAL;
	for (i = 0; i < q->nup; i++) {
		struct shm_out *out = q->outs[q->up[i]];

		if (out != NULL && vrb_ring_tx_refresh(&out->r) == 0 &&
			offset >= vrb_ring_tx_free_slots(&out->r))
			return RTE_ETH_TX_DESC_FULL;
	}
	return RTE_ETH_TX_DESC_DONE;
}
