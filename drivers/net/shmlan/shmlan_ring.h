/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring between two members of a segment, and the doorbell page of a receiver.
 *
 * A ring has one producer and one consumer, which live in different processes and do not trust each
 * other. It is one shared mapping, made by the producer:
 *
 *   header (256 bytes) | slots, 128 bytes each | data, a power of two
 *
 * A slot carries its own control word, written last with release, so that the consumer polls the
 * slot that it is going to read anyway and no index travels in this direction. A frame of up to
 * VRB_RING_INLINE bytes lies in the slot, a longer one in the data area, in one piece. In the other
 * direction travels one index, in a line of its own.
 *
 * Who trusts whom: all that the consumer knows of the producer is the control word and the offset
 * of a slot. Both are read once, into a local, and checked before use. All that the producer knows
 * of the consumer is its index, which is checked against what was sent. Where the data of a slot
 * ends is kept in private memory of the producer.
 *
 * The sequence number of slot i in lap n is n * nslots + i + 1, modulo 2^32. A slot that has not
 * been written in this lap holds the number of the lap before (or 0, in the first lap); any other
 * value breaks the rules.
 */
#ifndef VRB_SHMLAN_RING_H
#define VRB_SHMLAN_RING_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __AVX2__
#include <immintrin.h>
#endif

#include <rte_atomic.h>
#include <rte_branch_prediction.h>
#include <rte_common.h>
#include <rte_memcpy.h>
#include <rte_prefetch.h>

#define VRB_RING_MAGIC 0x31474e5242525656ull
#define VRB_RING_INLINE 112u /* longest frame within a slot */
#define VRB_RING_LINE0 48u /* of it, the bytes in the slot's first line */
#define VRB_RING_STREAM 256u /* frames of this length and more are written past the caches */
#define VRB_RING_SLOTS_MIN 32u
#define VRB_RING_SLOTS_MAX 8192u
#define VRB_RING_DATA_MIN (64u << 10)
#define VRB_RING_DATA_MAX (16u << 20)
#define VRB_RING_DATA_ALIGN 64u
/* After so many bytes the producer looks whether the ring is empty and it can start at the hot end
 * again. */
#define VRB_RING_REWIND (64u << 10)

/* Where the frame of a slot lies; bits 0-7 of the control word. */
enum vrb_ring_kind { VRB_RING_KIND_INLINE = 1, VRB_RING_KIND_DATA = 2 };

struct vrb_ring_hdr {
	uint64_t magic;
	uint32_t nslots;
	uint32_t dsize;
	uint8_t pad0[112];
	_Atomic uint32_t head; /* consumer: number of slots given back */
	uint8_t pad1[124];
};

struct vrb_ring_slot {
	_Atomic uint64_t ctrl;
	_Atomic uint32_t off;
	uint32_t pad;
	uint8_t data[VRB_RING_INLINE];
} __rte_aligned(128);

_Static_assert(sizeof(struct vrb_ring_hdr) == 256, "slots start at a multiple of 128");
_Static_assert(sizeof(struct vrb_ring_slot) == 128, "a slot is two cache lines");

/* The producer's private half. */
struct vrb_ring_tx {
	struct vrb_ring_slot *slots;
	uint8_t *data;
	struct vrb_ring_hdr *hdr;
	uint32_t *dend; /* for each slot: the data cursor after it */
	uint32_t nslots;
	uint32_t dsize;
	uint32_t tail; /* slots written, free-running */
	uint32_t head; /* slots known to be given back */
	uint32_t dtail; /* data cursor, free-running */
	uint32_t dhead; /* data known to be given back */
	struct vrb_ring_slot *first; /* of a run that has not been published, or NULL */
	uint64_t first_ctrl;
	uint32_t dmark; /* cursor when the consumer's index was last read on account of
			   VRB_RING_REWIND */
};

/* The consumer's private half. */
struct vrb_ring_rx {
	struct vrb_ring_slot *slots;
	const uint8_t *data;
	struct vrb_ring_hdr *hdr;
	uint32_t nslots;
	uint32_t dsize;
	uint32_t head; /* slots read, free-running */
	uint32_t done; /* slots given back: behind head while frames are lent out */
};

/*
 * Copies whole lines to where only the other side will look: past our caches, without fetching the
 * lines that the other side has had since the lap before. That fetch, line after line, is what
 * limits a sender on another core (measured with 4160 bytes: 4 against 0.5 million frames a
 * second, and a round trip of 1.7 us against 4.9). @dst and @n are multiples of 64. What was
 * streamed becomes visible by vrb_ring_stream_fence().
 */
static inline void
vrb_ring_stream(void *dst, const void *src, size_t n)
{
#ifdef __AVX2__
	size_t i;

	for (i = 0; i < n; i += 64) {
		__m256i a = _mm256_loadu_si256((const __m256i *)((const char *)src + i));
		__m256i b = _mm256_loadu_si256((const __m256i *)((const char *)src + i + 32));

		_mm256_stream_si256((__m256i *)((char *)dst + i), a);
		_mm256_stream_si256((__m256i *)((char *)dst + i + 32), b);
	}
#else
	memcpy(dst, src, n);
#endif
}

/* Lines that were streamed are visible before any store that follows. */
static inline void
vrb_ring_stream_fence(void)
{
#ifdef __AVX2__
	_mm_sfence();
#endif
}

static inline uint64_t
vrb_ring_ctrl(uint32_t seq, uint16_t len, uint8_t flags, enum vrb_ring_kind kind)
{
	return (uint64_t)seq << 32 | (uint64_t)len << 16 | (uint64_t)flags << 8 | kind;
}

static inline uint32_t
vrb_ring_ctrl_seq(uint64_t ctrl)
{
	return ctrl >> 32;
}

static inline uint32_t
vrb_ring_ctrl_len(uint64_t ctrl)
{
	return ctrl >> 16 & 0xffff;
}

static inline uint8_t
vrb_ring_ctrl_flags(uint64_t ctrl)
{
	return ctrl >> 8 & 0xff;
}

static inline uint8_t
vrb_ring_ctrl_kind(uint64_t ctrl)
{
	return ctrl & 0xff;
}

static inline bool
vrb_ring_geometry_ok(uint32_t nslots, uint32_t dsize)
{
	return nslots >= VRB_RING_SLOTS_MIN && nslots <= VRB_RING_SLOTS_MAX &&
	       (nslots & (nslots - 1)) == 0 && dsize >= VRB_RING_DATA_MIN &&
	       dsize <= VRB_RING_DATA_MAX && (dsize & (dsize - 1)) == 0;
}

/* Bytes of a ring's mapping. Precondition: vrb_ring_geometry_ok(). */
static inline size_t
vrb_ring_bytes(uint32_t nslots, uint32_t dsize)
{
	size_t n =
		sizeof(struct vrb_ring_hdr) + (size_t)nslots * sizeof(struct vrb_ring_slot) + dsize;

	return (n + 4095) & ~(size_t)4095;
}

/*
 * Makes a ring in @map, which is zeroed memory of vrb_ring_bytes(), not seen by anybody else yet.
 * Precondition: vrb_ring_geometry_ok(). Returns 0 or -ENOMEM.
 */
static inline int
vrb_ring_tx_init(struct vrb_ring_tx *r, void *map, uint32_t nslots, uint32_t dsize)
{
	memset(r, 0, sizeof(*r));
	r->dend = calloc(nslots, sizeof(*r->dend));
	if (r->dend == NULL)
		return -ENOMEM;
	r->hdr = map;
	r->slots = (struct vrb_ring_slot *)(r->hdr + 1);
	r->data = (uint8_t *)(r->slots + nslots);
	r->nslots = nslots;
	r->dsize = dsize;
	r->hdr->nslots = nslots;
	r->hdr->dsize = dsize;
	r->hdr->magic = VRB_RING_MAGIC;
	return 0;
}

static inline void
vrb_ring_tx_fini(struct vrb_ring_tx *r)
{
	free(r->dend);
	r->dend = NULL;
}

/*
 * Attaches the consumer to a mapping of vrb_ring_bytes(nslots, dsize). The geometry is the one that
 * was agreed on when the ring was handed over; that in the header is not used, only compared.
 */
static inline int
vrb_ring_rx_init(struct vrb_ring_rx *r, void *map, uint32_t nslots, uint32_t dsize)
{
	struct vrb_ring_hdr *hdr = map;

	if (hdr->magic != VRB_RING_MAGIC || hdr->nslots != nslots || hdr->dsize != dsize)
		return -EPROTO;
	memset(r, 0, sizeof(*r));
	r->hdr = hdr;
	r->slots = (struct vrb_ring_slot *)(hdr + 1);
	r->data = (const uint8_t *)(r->slots + nslots);
	r->nslots = nslots;
	r->dsize = dsize;
	return 0;
}

/*
 * Producer: learns how far the consumer is. Acquire: pairs with the release in
 * vrb_ring_rx_publish(), so that what the consumer read from a slot was read before we write it
 * anew. Returns 0, or -EPROTO when the consumer claims slots that were never sent.
 */
static inline int
vrb_ring_tx_refresh(struct vrb_ring_tx *r)
{
	uint32_t head = atomic_load_explicit(&r->hdr->head, memory_order_acquire);

	if (unlikely(head - r->head > r->tail - r->head))
		return -EPROTO;
	if (head == r->head)
		return 0;
	r->head = head;
	r->dhead = head == r->tail ? r->dtail : r->dend[(head - 1) & (r->nslots - 1)];
	return 0;
}

/* Producer: true when every frame has been given back, as far as is known. */
static inline bool
vrb_ring_tx_empty(const struct vrb_ring_tx *r)
{
	return r->tail == r->head;
}

/* Producer: bytes that a frame of @len occupies at the data cursor, with what is skipped at the end
 * of the area. */
static inline uint32_t
vrb_ring_tx_need(const struct vrb_ring_tx *r, uint32_t len)
{
	uint32_t pos = r->dtail & (r->dsize - 1);
	uint32_t n = RTE_ALIGN_CEIL(len, VRB_RING_DATA_ALIGN);

	return pos + n > r->dsize ? r->dsize - pos + n : n;
}

static inline bool
vrb_ring_tx_fits(const struct vrb_ring_tx *r, uint32_t len)
{
	if (r->tail - r->head >= r->nslots)
		return false;
	return len <= VRB_RING_INLINE || r->dtail - r->dhead + vrb_ring_tx_need(r, len) <= r->dsize;
}

/* Producer: when the ring is empty, go back to the start of the data area, which is still in the
 * caches. */
static inline int
vrb_ring_tx_rewind(struct vrb_ring_tx *r)
{
	int rc = vrb_ring_tx_refresh(r);

	if (vrb_ring_tx_empty(r)) {
		r->dtail = RTE_ALIGN_CEIL(r->dtail, r->dsize);
		r->dhead = r->dtail;
	}
	r->dmark = r->dtail;
	return rc;
}

/*
 * Producer: makes room for a frame of @len bytes. Precondition: len <= dsize / 2.
 * Returns 0, -EAGAIN when the ring is full, -EPROTO when the consumer broke the rules.
 */
static inline int
vrb_ring_tx_room(struct vrb_ring_tx *r, uint32_t len)
{
	int rc;

	if (len > VRB_RING_INLINE && r->dtail - r->dmark >= VRB_RING_REWIND) {
		rc = vrb_ring_tx_rewind(r);
		if (unlikely(rc != 0))
			return rc;
	}
	if (likely(vrb_ring_tx_fits(r, len)))
		return 0;
	rc = vrb_ring_tx_refresh(r);
	if (rc != 0)
		return rc;
	return vrb_ring_tx_fits(r, len) ? 0 : -EAGAIN;
}

/*
 * Producer: hands all frames that were put over. Release: the bytes of the frames and their other
 * control words are visible to whoever sees this one.
 */
static inline void
vrb_ring_tx_publish(struct vrb_ring_tx *r)
{
	if (r->first == NULL)
		return;
	vrb_ring_stream_fence();
	atomic_store_explicit(&r->first->ctrl, r->first_ctrl, memory_order_release);
	r->first = NULL;
}

/* Writes a frame longer than VRB_RING_INLINE into the data area; returns its offset. */
static inline uint32_t
vrb_ring_tx_put_data(struct vrb_ring_tx *r, const uint8_t *frame, uint32_t len)
{
	uint32_t whole = RTE_ALIGN_FLOOR(len, VRB_RING_DATA_ALIGN);
	uint32_t off;

	r->dtail += vrb_ring_tx_need(r, len);
	off = (r->dtail - RTE_ALIGN_CEIL(len, VRB_RING_DATA_ALIGN)) & (r->dsize - 1);
	if (len >= VRB_RING_STREAM)
		vrb_ring_stream(r->data + off, frame, whole);
	else
		rte_memcpy(r->data + off, frame, whole);
	if (whole != len)
		memcpy(r->data + off + whole, frame + whole, len - whole);
	return off;
}

/*
 * Producer: puts a frame of @len bytes of private memory into the ring. It is handed over by
 * vrb_ring_tx_publish(), together with others. Precondition: vrb_ring_tx_room() of the same @len.
 *
 * The control word of the first frame of such a run is written last. A consumer that waits for it
 * does not look at the slots behind it, so what these say may become visible in any order before,
 * and one fence is enough for the whole run.
 */
static inline void
vrb_ring_tx_put(struct vrb_ring_tx *r, const void *frame, uint32_t len, uint8_t flags)
{
	struct vrb_ring_slot *slot = &r->slots[r->tail & (r->nslots - 1)];
	enum vrb_ring_kind kind = VRB_RING_KIND_INLINE;
	uint64_t ctrl;

	if (len > VRB_RING_LINE0 && len <= VRB_RING_INLINE) {
		/* No store across the lines: it would need both at a time. */
		rte_memcpy(slot->data + VRB_RING_LINE0, (const uint8_t *)frame + VRB_RING_LINE0,
			len - VRB_RING_LINE0);
		memcpy(slot->data, frame, VRB_RING_LINE0);
	} else if (len <= VRB_RING_LINE0) {
		rte_memcpy(slot->data, frame, len);
	} else {
		kind = VRB_RING_KIND_DATA;
		atomic_store_explicit(
			&slot->off, vrb_ring_tx_put_data(r, frame, len), memory_order_relaxed);
	}
	r->dend[r->tail & (r->nslots - 1)] = r->dtail;
	r->tail++;
	ctrl = vrb_ring_ctrl(r->tail, len, flags, kind);
	if (r->first != NULL) {
		atomic_store_explicit(&slot->ctrl, ctrl, memory_order_release);
		return;
	}
	r->first = slot;
	r->first_ctrl = ctrl;
}

/* Producer: slots that can be written without looking at the consumer's index again. */
static inline uint32_t
vrb_ring_tx_free_slots(const struct vrb_ring_tx *r)
{
	return r->nslots - (r->tail - r->head);
}

/*
 * Consumer: looks at the slot @ahead places behind the next one. Acquire: pairs with
 * vrb_ring_tx_commit(). Returns 1 and the control word in @ctrl when a frame is there, 0 when none
 * is, -EPROTO when the slot holds what no producer may have written.
 */
static inline int
vrb_ring_rx_peek(const struct vrb_ring_rx *r, uint32_t ahead, uint64_t *ctrl)
{
	uint32_t pos = r->head + ahead;
	uint64_t c =
		atomic_load_explicit(&r->slots[pos & (r->nslots - 1)].ctrl, memory_order_acquire);
	uint32_t seq = vrb_ring_ctrl_seq(c);

	if (seq == pos + 1) {
		*ctrl = c;
		return 1;
	}
	if (likely(seq == pos + 1 - r->nslots))
		return 0;
	return c == 0 && pos < r->nslots ? 0 : -EPROTO;
}

/*
 * Consumer: fetches what the slot @ahead places behind the next one holds beyond its first line.
 * The offset is not trusted: it only chooses a line within the ring.
 */
static inline void
vrb_ring_rx_prefetch(const struct vrb_ring_rx *r, uint32_t ahead, uint64_t ctrl)
{
	const struct vrb_ring_slot *slot = &r->slots[(r->head + ahead) & (r->nslots - 1)];
	const uint8_t *data;

	if (vrb_ring_ctrl_kind(ctrl) == VRB_RING_KIND_INLINE) {
		rte_prefetch0(&slot->data[48]);
		return;
	}
	data = r->data + (atomic_load_explicit(&slot->off, memory_order_relaxed) & (r->dsize - 64));
	rte_prefetch0(data);
	rte_prefetch0(data + 64);
}

/*
 * Consumer: where the frame of the slot @ahead places behind the next one lies. @ctrl is the local
 * copy that vrb_ring_rx_peek() made. Everything is checked here: the whole frame lies within the
 * ring. The bytes themselves may still change at any time. Returns NULL when the slot breaks the
 * rules.
 */
static inline const uint8_t *
vrb_ring_rx_frame(const struct vrb_ring_rx *r, uint32_t ahead, uint64_t ctrl, uint32_t max)
{
	const struct vrb_ring_slot *slot = &r->slots[(r->head + ahead) & (r->nslots - 1)];
	uint32_t len = vrb_ring_ctrl_len(ctrl);
	uint32_t off;

	if (vrb_ring_ctrl_kind(ctrl) == VRB_RING_KIND_INLINE)
		return len <= VRB_RING_INLINE ? slot->data : NULL;
	if (vrb_ring_ctrl_kind(ctrl) != VRB_RING_KIND_DATA || len > max || len <= VRB_RING_INLINE)
		return NULL;
	off = atomic_load_explicit(&slot->off, memory_order_relaxed);
	if (off % VRB_RING_DATA_ALIGN != 0 || off >= r->dsize || len > r->dsize - off)
		return NULL;
	return r->data + off;
}

/* Consumer: @n frames have been read. Their slots are not given back yet. */
static inline void
vrb_ring_rx_advance(struct vrb_ring_rx *r, uint32_t n)
{
	r->head += n;
}

/*
 * Consumer: gives all slots before @done back. Release: all reads of these slots come before.
 * Precondition: done is between r->done and r->head.
 */
static inline void
vrb_ring_rx_publish(struct vrb_ring_rx *r, uint32_t done)
{
	if (done == r->done)
		return;
	r->done = done;
	atomic_store_explicit(&r->hdr->head, done, memory_order_release);
}

/*
 * The doorbell page: one for each receiver, mapped by all who send to it.
 *
 * A receiver that is going to sleep sets VRB_BELL_SLEEPING and then looks at its rings once more. A
 * sender writes a slot and then looks at this word. Between the two steps on each side stands a
 * full fence, so at least one of them sees what the other one wrote: the receiver the frame, or the
 * sender the flag. Who clears the flag writes to the eventfd: one write a sleep.
 *
 * A receiver of many rings does not want to look at each. It sets VRB_BELL_BITMAP, looks at all
 * rings once, and from then on only at those whose bit is set in pending[]. The same two fences
 * make it safe: a sender whose frame was not seen by that look sees the flag. A receiver clears a
 * bit (a full fence) before it looks at the ring, so a sender that found the bit still set wrote
 * its frame before that look.
 */
#define VRB_BELL_MAGIC 0x314c4c4542525656ull
#define VRB_BELL_SLEEPING 1u
#define VRB_BELL_BITMAP 2u
#define VRB_BELL_RINGS 1024u /* incoming rings of one receiver */
#define VRB_BELL_WORDS (VRB_BELL_RINGS / 64)
#define VRB_BELL_BYTES 4096u

struct vrb_bell_page {
	uint64_t magic;
	uint8_t pad0[120];
	_Atomic uint32_t attention;
	uint8_t pad1[124];
	_Atomic uint64_t pending[VRB_BELL_WORDS];
};

_Static_assert(sizeof(struct vrb_bell_page) <= VRB_BELL_BYTES, "one page");

/* Full fence between a store and a load of different words. */
static inline void
vrb_bell_fence(void)
{
	/* Not atomic_thread_fence(), which the thread sanitizer does not know; every word around it
	 * is atomic. */
	rte_smp_mb();
}

/* Sets the bit of a ring. seq_cst: a full fence, ordered before the caller's look at the flag
 * SLEEPING. */
static inline void
vrb_bell_mark(struct vrb_bell_page *p, uint32_t bit)
{
	_Atomic uint64_t *word = &p->pending[bit / 64];
	uint64_t mask = 1ull << bit % 64;

	if ((atomic_load_explicit(word, memory_order_relaxed) & mask) == 0)
		atomic_fetch_or_explicit(word, mask, memory_order_seq_cst);
}

/*
 * Sender: after the last commit to a ring. Returns true when the caller has to write to the
 * eventfd. Precondition: bit < VRB_BELL_RINGS.
 */
static inline bool
vrb_bell_ring(struct vrb_bell_page *p, uint32_t bit)
{
	uint32_t a;

	vrb_bell_fence();
	a = atomic_load_explicit(&p->attention, memory_order_relaxed);
	if (likely(a == 0))
		return false;
	if (a & VRB_BELL_BITMAP)
		vrb_bell_mark(p, bit);
	/* Read again: the receiver may have gone to sleep after the load above and before the bit
	 * was set. */
	if ((atomic_load_explicit(&p->attention, memory_order_seq_cst) & VRB_BELL_SLEEPING) == 0)
		return false;
	return atomic_fetch_and_explicit(&p->attention, ~VRB_BELL_SLEEPING, memory_order_seq_cst) &
	       VRB_BELL_SLEEPING;
}

/* Receiver: sets flags; a full fence before the look at the rings that has to follow. */
static inline void
vrb_bell_set(struct vrb_bell_page *p, uint32_t flags)
{
	atomic_fetch_or_explicit(&p->attention, flags, memory_order_seq_cst);
	vrb_bell_fence();
}

/* Receiver: clears flags; returns what was set before. */
static inline uint32_t
vrb_bell_clear(struct vrb_bell_page *p, uint32_t flags)
{
	return atomic_fetch_and_explicit(&p->attention, ~flags, memory_order_seq_cst);
}

/*
 * Receiver: takes the bits of one word. An empty word is only loaded. The fence stands between
 * the clearing of a bit and the look at its ring.
 */
static inline uint64_t
vrb_bell_take(struct vrb_bell_page *p, uint32_t word)
{
	uint64_t bits;

	if (atomic_load_explicit(&p->pending[word], memory_order_relaxed) == 0)
		return 0;
	bits = atomic_exchange_explicit(&p->pending[word], 0, memory_order_seq_cst);
	vrb_bell_fence();
	return bits;
}

#endif
