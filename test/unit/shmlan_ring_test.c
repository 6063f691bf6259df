/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ring and the doorbell of net_shmlan by themselves: no EAL, no processes. The tests with two
 * threads are for the thread sanitizer as well.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "shmlan_ring.h"

#define SLOTS 64u
#define DATA (64u << 10)
#define FRAME_MAX 9018u
#define FRAMES 200000u

struct pair {
	void *map;
	struct vrb_ring_tx tx;
	struct vrb_ring_rx rx;
};

static int
setup(void **state)
{
	struct pair *p = calloc(1, sizeof(*p));
	size_t len = vrb_ring_bytes(SLOTS, DATA);

	assert_int_equal(posix_memalign(&p->map, 4096, len), 0);
	memset(p->map, 0, len);
	assert_int_equal(vrb_ring_tx_init(&p->tx, p->map, SLOTS, DATA), 0);
	assert_int_equal(vrb_ring_rx_init(&p->rx, p->map, SLOTS, DATA), 0);
	*state = p;
	return 0;
}

static int
teardown(void **state)
{
	struct pair *p = *state;

	vrb_ring_tx_fini(&p->tx);
	free(p->map);
	free(p);
	return 0;
}

static int
put(struct pair *p, uint32_t len, uint8_t byte)
{
	uint8_t frame[FRAME_MAX];
	int rc = vrb_ring_tx_room(&p->tx, len);

	if (rc != 0)
		return rc;
	memset(frame, byte, len);
	vrb_ring_tx_put(&p->tx, frame, len, byte & 1);
	vrb_ring_tx_publish(&p->tx);
	return 0;
}

/* Takes one frame and gives its slot back. Returns its length, 0 when there is none, -1 when it is
 * not as put() made it. */
static int
get(struct pair *p, uint8_t byte)
{
	const uint8_t *src;
	uint64_t ctrl = 0;
	uint32_t len, i;
	int rc = vrb_ring_rx_peek(&p->rx, 0, &ctrl);

	if (rc <= 0)
		return rc;
	src = vrb_ring_rx_frame(&p->rx, 0, ctrl, FRAME_MAX);
	if (src == NULL || vrb_ring_ctrl_flags(ctrl) != (byte & 1))
		return -1;
	len = vrb_ring_ctrl_len(ctrl);
	for (i = 0; i < len; i++) {
		if (src[i] != byte)
			return -1;
	}
	vrb_ring_rx_advance(&p->rx, 1);
	vrb_ring_rx_publish(&p->rx, p->rx.head);
	return len;
}

static void
new_ring_is_empty(void **state)
{
	struct pair *p = *state;
	uint64_t ctrl = 0;
	uint32_t i;

	for (i = 0; i < SLOTS; i++)
		assert_int_equal(vrb_ring_rx_peek(&p->rx, i, &ctrl), 0);
	assert_true(vrb_ring_tx_empty(&p->tx));
}

static void
every_length_goes_through(void **state)
{
	struct pair *p = *state;
	uint32_t len;

	for (len = 1; len <= FRAME_MAX; len++) {
		assert_int_equal(put(p, len, len), 0);
		assert_int_equal(get(p, len), len);
		assert_int_equal(get(p, len), 0);
	}
}

static void
ring_is_full_after_all_slots(void **state)
{
	struct pair *p = *state;
	uint32_t i;

	for (i = 0; i < SLOTS; i++)
		assert_int_equal(put(p, 60, i), 0);
	assert_int_equal(put(p, 60, 0), -EAGAIN);
	assert_int_equal(get(p, 0), 60);
	assert_int_equal(put(p, 60, SLOTS), 0);
	assert_int_equal(put(p, 60, 0), -EAGAIN);
	for (i = 1; i <= SLOTS; i++)
		assert_int_equal(get(p, i), 60);
	assert_int_equal(get(p, 0), 0);
}

static void
ring_is_full_when_the_data_area_is(void **state)
{
	struct pair *p = *state;
	uint32_t n = 0, i;

	while (put(p, 9000, n) == 0)
		n++;
	assert_int_equal(n, DATA / 9024);
	/* A short frame still fits: it needs no data. */
	assert_int_equal(put(p, 60, n), 0);
	assert_int_equal(get(p, 0), 9000);
	assert_int_equal(put(p, 9000, n + 1), 0);
	for (i = 1; i < n; i++)
		assert_int_equal(get(p, i), 9000);
	assert_int_equal(get(p, n), 60);
	assert_int_equal(get(p, n + 1), 9000);
}

static void
empty_ring_starts_at_the_hot_end(void **state)
{
	struct pair *p = *state;
	uint32_t i, max = 0;

	for (i = 0; i < 1000; i++) {
		assert_int_equal(put(p, 4096, i), 0);
		max = RTE_MAX(max, (uint32_t)atomic_load(&p->tx.slots[i % SLOTS].off));
		assert_int_equal(get(p, i), 4096);
	}
	assert_true(max <= VRB_RING_REWIND);
}

/* Nothing of a run is there before all of it is. */
static void
frames_of_a_run_appear_together(void **state)
{
	struct pair *p = *state;
	uint8_t frame[200];
	uint64_t ctrl;
	uint32_t i;

	for (i = 0; i < 20; i++) {
		uint32_t len = 40 + 8 * i;

		assert_int_equal(vrb_ring_tx_room(&p->tx, len), 0);
		memset(frame, i, len);
		vrb_ring_tx_put(&p->tx, frame, len, i & 1);
		assert_int_equal(vrb_ring_rx_peek(&p->rx, 0, &ctrl), 0);
	}
	vrb_ring_tx_publish(&p->tx);
	for (i = 0; i < 20; i++)
		assert_int_equal(get(p, i), 40 + 8 * i);
	vrb_ring_tx_publish(&p->tx);
	assert_int_equal(get(p, 0), 0);
}

/* Sequence numbers wrap after 2^32 slots. */
static void
sequence_wraps_around(void **state)
{
	struct pair *p = *state;
	uint32_t i, start = (uint32_t)-3 * SLOTS;

	p->tx.tail = p->tx.head = p->rx.head = p->rx.done = start;
	atomic_store(&p->tx.hdr->head, start);
	for (i = 0; i < SLOTS; i++)
		atomic_store(&p->rx.slots[i].ctrl, vrb_ring_ctrl(start + i + 1 - SLOTS, 0, 0, 1));
	for (i = 0; i < 6 * SLOTS; i++) {
		assert_int_equal(put(p, 60 + i, i), 0);
		assert_int_equal(get(p, i), 60 + i);
		assert_int_equal(get(p, i), 0);
	}
}

/* ---- rules ---- */

static void
slot_of_a_wrong_lap_breaks_the_rules(void **state)
{
	static const int32_t wrong[] = {2, -1, 1000, (int32_t)SLOTS, -2 * (int32_t)SLOTS};
	struct pair *p = *state;
	uint64_t ctrl = 0;
	uint32_t i;

	for (i = 0; i < RTE_DIM(wrong); i++) {
		atomic_store(&p->rx.slots[0].ctrl,
			vrb_ring_ctrl(1 + wrong[i], 60, 0, VRB_RING_KIND_INLINE));
		assert_int_equal(vrb_ring_rx_peek(&p->rx, 0, &ctrl), -EPROTO);
	}
	atomic_store(&p->rx.slots[0].ctrl, 1);
	assert_int_equal(vrb_ring_rx_peek(&p->rx, 0, &ctrl), -EPROTO);
}

static const uint8_t *
frame_of(struct pair *p, uint32_t len, uint32_t off, unsigned int kind)
{
	uint64_t ctrl = 0;

	atomic_store(&p->rx.slots[0].off, off);
	atomic_store(&p->rx.slots[0].ctrl, vrb_ring_ctrl(1, len, 0, kind));
	assert_int_equal(vrb_ring_rx_peek(&p->rx, 0, &ctrl), 1);
	return vrb_ring_rx_frame(&p->rx, 0, ctrl, FRAME_MAX);
}

static void
frame_outside_of_the_ring_breaks_the_rules(void **state)
{
	struct pair *p = *state;

	assert_non_null(frame_of(p, 112, 0, VRB_RING_KIND_INLINE));
	assert_null(frame_of(p, 113, 0, VRB_RING_KIND_INLINE));
	assert_null(frame_of(p, 65535, 0, VRB_RING_KIND_INLINE));
	assert_non_null(frame_of(p, FRAME_MAX, 0, VRB_RING_KIND_DATA));
	assert_null(frame_of(p, FRAME_MAX + 1, 0, VRB_RING_KIND_DATA));
	assert_null(frame_of(p, 60, 0, VRB_RING_KIND_DATA));
	assert_non_null(frame_of(p, 128, DATA - 128, VRB_RING_KIND_DATA));
	assert_null(frame_of(p, 129, DATA - 128, VRB_RING_KIND_DATA));
	assert_null(frame_of(p, 128, DATA, VRB_RING_KIND_DATA));
	assert_null(frame_of(p, 128, (uint32_t)-64, VRB_RING_KIND_DATA));
	assert_null(frame_of(p, 128, 1, VRB_RING_KIND_DATA));
	assert_null(frame_of(p, 60, 0, 0));
	assert_null(frame_of(p, 60, 0, 3));
}

static void
consumer_cannot_give_back_what_was_not_sent(void **state)
{
	struct pair *p = *state;
	uint32_t i;

	for (i = 0; i < SLOTS; i++)
		assert_int_equal(put(p, 60, i), 0);
	atomic_store(&p->tx.hdr->head, SLOTS + 1);
	assert_int_equal(put(p, 60, 0), -EPROTO);
	atomic_store(&p->tx.hdr->head, (uint32_t)-1);
	assert_int_equal(put(p, 60, 0), -EPROTO);
	atomic_store(&p->tx.hdr->head, SLOTS);
	assert_int_equal(put(p, 60, 0), 0);
}

static void
geometry_is_checked(void **state)
{
	struct pair *p = *state;

	assert_false(vrb_ring_geometry_ok(0, DATA));
	assert_false(vrb_ring_geometry_ok(SLOTS + 1, DATA));
	assert_false(vrb_ring_geometry_ok(VRB_RING_SLOTS_MAX * 2, DATA));
	assert_false(vrb_ring_geometry_ok(SLOTS, 0));
	assert_false(vrb_ring_geometry_ok(SLOTS, DATA - 64));
	assert_false(vrb_ring_geometry_ok(SLOTS, VRB_RING_DATA_MAX * 2));
	assert_int_equal(vrb_ring_rx_init(&p->rx, p->map, SLOTS * 2, DATA), -EPROTO);
	assert_int_equal(vrb_ring_rx_init(&p->rx, p->map, SLOTS, DATA * 2), -EPROTO);
}

/* ---- two threads ---- */

static uint32_t
length_of(uint32_t i)
{
	return 1 + i * 2654435761u % 700;
}

static void *
producer(void *arg)
{
	struct pair *p = arg;
	uint32_t i;

	for (i = 0; i < FRAMES; i++) {
		while (put(p, length_of(i), i) != 0)
			sched_yield();
	}
	return NULL;
}

static void
two_threads_lose_nothing(void **state)
{
	struct pair *p = *state;
	pthread_t thread;
	uint32_t i;
	int n;

	assert_int_equal(pthread_create(&thread, NULL, producer, p), 0);
	for (i = 0; i < FRAMES; i++) {
		while ((n = get(p, i)) == 0)
			sched_yield();
		assert_int_equal(n, length_of(i));
	}
	pthread_join(thread, NULL);
	assert_int_equal(get(p, 0), 0);
}

/* The doorbell's protocol, with a semaphore in the place of the eventfd. */
static struct vrb_bell_page page;
static _Atomic uint32_t kicks;

static void *
ringing_producer(void *arg)
{
	struct pair *p = arg;
	uint32_t i;

	for (i = 0; i < FRAMES; i++) {
		while (put(p, 60, i) != 0)
			sched_yield();
		if (vrb_bell_ring(&page, 3))
			atomic_fetch_add(&kicks, 1);
	}
	return NULL;
}

static void
consume_asleep(struct pair *p, bool bitmap)
{
	pthread_t thread;
	uint32_t i = 0, taken = 0;
	uint64_t ctrl, spins;

	memset(&page, 0, sizeof(page));
	atomic_store(&kicks, 0);
	if (bitmap)
		vrb_bell_set(&page, VRB_BELL_BITMAP);
	assert_int_equal(pthread_create(&thread, NULL, ringing_producer, p), 0);
	while (i < FRAMES) {
		if (bitmap)
			vrb_bell_take(&page, 0);
		while (get(p, i) == 60)
			i++;
		if (i == FRAMES)
			break;
		vrb_bell_set(&page, VRB_BELL_SLEEPING);
		if (bitmap ? atomic_load(&page.pending[0]) != 0
			   : vrb_ring_rx_peek(&p->rx, 0, &ctrl) != 0) {
			if ((vrb_bell_clear(&page, VRB_BELL_SLEEPING) & VRB_BELL_SLEEPING) == 0)
				taken++;
			continue;
		}
		/* Fewer than were taken: of one that was noticed by its flag the count is still
		 * due. */
		for (spins = 0; atomic_load(&kicks) <= taken; spins++) {
			/* Seconds: a wake-up was lost. */
			assert_true(spins < 20000000);
			sched_yield();
		}
		taken++;
	}
	pthread_join(thread, NULL);
	assert_true(taken <= atomic_load(&kicks));
}

static void
no_kick_is_lost(void **state)
{
	consume_asleep(*state, false);
}

static void
no_kick_is_lost_with_the_bitmap(void **state)
{
	consume_asleep(*state, true);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(new_ring_is_empty),
		TEST(every_length_goes_through),
		TEST(ring_is_full_after_all_slots),
		TEST(ring_is_full_when_the_data_area_is),
		TEST(empty_ring_starts_at_the_hot_end),
		TEST(frames_of_a_run_appear_together),
		TEST(sequence_wraps_around),
		TEST(slot_of_a_wrong_lap_breaks_the_rules),
		TEST(frame_outside_of_the_ring_breaks_the_rules),
		TEST(consumer_cannot_give_back_what_was_not_sent),
		TEST(geometry_is_checked),
		TEST(two_threads_lose_nothing),
		TEST(no_kick_is_lost),
		TEST(no_kick_is_lost_with_the_bitmap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
