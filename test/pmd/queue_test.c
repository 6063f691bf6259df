/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rx queues of net_verbena: shared ones, buffers kept posted, watermarks, sizes changed under
 * traffic, and where every frame went.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include <rte_service.h>

#include "util.h"

static struct rte_pmd_verbena_rxq
figures(const struct rig *r, uint16_t queue)
{
	struct rte_pmd_verbena_rxq q;

	assert_int_equal(rte_pmd_verbena_rxq_get(r->port, queue, &q), 0);
	return q;
}

static void
put_many(const struct rig *r, unsigned int n, uint32_t first)
{
	for (unsigned int i = 0; i < n; i++) {
		struct frame f = {.src = 1, .dst = 2, .seq = first + i};

		wire_put(r, 0, &f);
	}
}

/* The pollers run, and nothing is taken out. */
static void
poll_only(const struct rig *r)
{
	for (int i = 0; i < 200; i++)
		rte_pmd_verbena_progress(r->port);
}

/* ---- full rings ---- */

static void
frames_beyond_the_ring_are_counted(void **state)
{
	struct setup s = {.desc = 64};
	struct rte_eth_stats st;
	struct rig r;

	(void)state;
	rig_make(&r, 1, ",pollers=1");
	assert_int_equal(rig_start(&r, &s), 0);
	put_many(&r, 100, 0);
	poll_only(&r);
	assert_int_equal(figures(&r, 0).count, 64);
	assert_int_equal(figures(&r, 0).full, 36);
	assert_int_equal(receive_all(&r, 1, NULL), 64);
	st = stats_of(r.port);
	assert_int_equal(st.ipackets, 64);
	assert_int_equal(st.imissed, 36);
	assert_int_equal(st.q_errors[0], 36);
	assert_int_equal(xstat(r.port, "rx_ring_full"), 36);
	assert_int_equal(figures(&r, 0).high, 64);
	rig_close(&r);
}

/* ---- posted buffers ---- */

static struct rte_mempool *
small_pool(const char *name, unsigned int n)
{
	struct rte_mempool *mp =
		rte_pktmbuf_pool_create(name, n, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);

	assert_non_null(mp);
	return mp;
}

static void
empty_pool_costs_only_its_frames_and_recovers(void **state)
{
	struct rte_mempool *mp = small_pool("starved", 63);
	struct setup s = {.desc = 256, .mp = {mp}};
	struct rte_mbuf *kept[64], *m;
	struct rte_eth_stats st;
	unsigned int n = 0;
	struct rig r;

	(void)state;
	rig_make(&r, 1, ",rx_copy=1");
	assert_int_equal(rig_start(&r, &s), 0);
	put_many(&r, 100, 0);
	/* The program keeps what it gets. */
	while (rte_eth_rx_burst(r.port, 0, &m, 1) == 1) {
		assert_ptr_equal(m->pool, mp);
		assert_int_equal(frame_seq(m), n);
		kept[n++] = m;
	}
	assert_int_equal(n, 63);
	assert_int_equal(figures(&r, 0).nombuf, 37);
	assert_true(figures(&r, 0).refill_fails > 0);
	st = stats_of(r.port);
	assert_int_equal(st.ipackets, 63);
	assert_int_equal(st.rx_nombuf, 37);
	assert_int_equal(st.imissed, 0);
	rte_pktmbuf_free_bulk(kept, n);
	/* By itself. */
	put_many(&r, 20, 1000);
	for (unsigned int i = 0; i < 20; i++) {
		assert_int_equal(rte_eth_rx_burst(r.port, 0, &m, 1), 1);
		assert_int_equal(frame_seq(m), 1000 + i);
		rte_pktmbuf_free(m);
	}
	assert_int_equal(stats_of(r.port).rx_nombuf, 37);
	rig_close(&r);
	assert_int_equal(rte_mempool_avail_count(mp), 63);
	rte_mempool_free(mp);
}

static void
buffers_are_posted_ahead_and_not_beyond_the_ring(void **state)
{
	struct rte_mempool *mp = small_pool("ahead", 1023);
	struct setup s = {.desc = 256, .mp = {mp}};
	struct rig r;

	(void)state;
	rig_make(&r, 1, ",rx_copy=1");
	assert_int_equal(rig_start(&r, &s), 0);
	poll_only(&r);
	assert_int_equal(figures(&r, 0).posted, 256);
	assert_int_equal(rte_mempool_avail_count(mp), 1023 - 256);
	put_many(&r, 100, 0);
	poll_only(&r);
	/* Posted ones and those with frames together are as many as the ring has places. */
	assert_int_equal(figures(&r, 0).count, 100);
	assert_int_equal(figures(&r, 0).posted, 156);
	assert_int_equal(rte_mempool_avail_count(mp), 1023 - 256);
	assert_int_equal(receive_all(&r, 1, NULL), 100);
	poll_only(&r);
	assert_int_equal(figures(&r, 0).posted + 32 > 256, true);
	rig_close(&r);
	assert_int_equal(rte_mempool_avail_count(mp), 1023);
	rte_mempool_free(mp);
}

static void
queues_with_pools_of_their_own_get_frames_of_them(void **state)
{
	struct rte_mempool *a = small_pool("first", 511), *b = small_pool("second", 511);
	struct setup s = {.rxq = 2, .rss = RTE_ETH_RSS_NONFRAG_IPV4_UDP, .mp = {a, b}, .desc = 128};
	unsigned int got[2] = {0};
	struct rte_mbuf *m;
	struct rig r;

	(void)state;
	rig_make(&r, 1, "");
	assert_int_equal(rig_start(&r, &s), 0);
	for (unsigned int i = 0; i < 64; i++) {
		struct frame f = {.src = i, .dst = 2, .sport = (uint16_t)i, .payload = 500};

		wire_put(&r, 0, &f);
	}
	for (int i = 0; i < 200; i++) {
		for (uint16_t q = 0; q < 2; q++) {
			if (rte_eth_rx_burst(r.port, q, &m, 1) == 0)
				continue;
			assert_ptr_equal(m->pool, q == 0 ? a : b);
			assert_int_equal(m->pkt_len, 14 + 20 + 8 + 500);
			rte_pktmbuf_free(m);
			got[q]++;
		}
	}
	assert_int_equal(got[0] + got[1], 64);
	assert_true(got[0] > 0 && got[1] > 0);
	rig_close(&r);
	rte_mempool_free(a);
	rte_mempool_free(b);
}

static void
long_frames_are_scattered_over_buffers(void **state)
{
	struct rte_mempool *mp = rte_pktmbuf_pool_create(
		"short", 511, 0, 0, RTE_PKTMBUF_HEADROOM + 256, SOCKET_ID_ANY);
	struct setup s = {.mp = {mp}, .desc = 128, .rx_offloads = RTE_ETH_RX_OFFLOAD_SCATTER};
	struct frame f = {.src = 1, .dst = 2, .seq = 77, .payload = 1400};
	struct rte_mbuf *m;
	struct rig r;

	(void)state;
	rig_make(&r, 1, ",rx_copy=1");
	assert_int_equal(rig_start(&r, &s), 0);
	wire_put(&r, 0, &f);
	assert_int_equal(rte_eth_rx_burst(r.port, 0, &m, 1), 1);
	assert_int_equal(m->pkt_len, 14 + 20 + 8 + 1400);
	assert_int_equal(m->nb_segs, 6);
	assert_int_equal(rte_mbuf_check(m, 1, &(const char *){NULL}), 0);
	assert_int_equal(frame_seq(m), 77);
	rte_pktmbuf_free(m);
	rig_close(&r);
	/* Without scattering they find no buffer that is large enough. */
	rig_make(&r, 1, ",rx_copy=1");
	s.rx_offloads = 0;
	assert_int_equal(rig_start(&r, &s), 0);
	wire_put(&r, 0, &f);
	assert_int_equal(rte_eth_rx_burst(r.port, 0, &m, 1), 0);
	assert_int_equal(stats_of(r.port).ierrors, 1);
	assert_int_equal(xstat(r.port, "rx_length_errors"), 1);
	rig_close(&r);
	assert_int_equal(rte_mempool_avail_count(mp), 511);
	rte_mempool_free(mp);
}

/* ---- watermarks ---- */

static _Atomic int crossings;

static int
count_crossing(uint16_t port, enum rte_eth_event_type type, void *arg, void *ret)
{
	uint16_t queue = 0;
	uint8_t thresh;

	(void)arg;
	(void)ret;
	assert_int_equal(type, RTE_ETH_EVENT_RX_AVAIL_THRESH);
	/* No lock is held: the program may ask right here. */
	while (rte_eth_rx_avail_thresh_query(port, &queue, &thresh) == 1) {
		assert_int_equal(queue, 0);
		assert_int_equal(thresh, 50);
		crossings++;
	}
	return 0;
}

static void
await_crossings(int n)
{
	for (int i = 0; i < 300 && crossings < n; i++)
		usleep(10000);
	assert_int_equal(crossings, n);
}

static void
watermark(const char *args)
{
	struct setup s = {.desc = 128};
	struct rig r;

	crossings = 0;
	rig_make(&r, 1, args);
	assert_int_equal(rig_start(&r, &s), 0);
	assert_int_equal(rte_eth_dev_callback_register(
				 r.port, RTE_ETH_EVENT_RX_AVAIL_THRESH, count_crossing, NULL),
		0);
	assert_int_equal(rte_eth_rx_avail_thresh_set(r.port, 0, 50), 0);
	assert_int_equal(rte_eth_rx_avail_thresh_set(r.port, 0, 100), -EINVAL);
	assert_int_equal(rte_eth_rx_avail_thresh_set(r.port, 1, 50), -EINVAL);
	put_many(&r, 40, 0);
	poll_only(&r);
	usleep(20000);
	assert_int_equal(crossings, 0);
	put_many(&r, 40, 0);
	poll_only(&r);
	await_crossings(1);
	/* Once, until it is armed again. */
	put_many(&r, 10, 0);
	poll_only(&r);
	usleep(20000);
	assert_int_equal(crossings, 1);
	assert_int_equal(receive_all(&r, 1, NULL), 90);
	assert_int_equal(rte_eth_rx_avail_thresh_set(r.port, 0, 50), 0);
	put_many(&r, 100, 0);
	poll_only(&r);
	await_crossings(2);
	assert_int_equal(xstat(r.port, "rx_avail_thresh_events"), 2);
	receive_all(&r, 1, NULL);
	/* Stopping disarms it. */
	assert_int_equal(rte_eth_rx_avail_thresh_set(r.port, 0, 50), 0);
	assert_int_equal(rte_eth_dev_stop(r.port), 0);
	assert_int_equal(rte_eth_dev_start(r.port), 0);
	put_many(&r, 100, 0);
	poll_only(&r);
	usleep(20000);
	assert_int_equal(crossings, 2);
	rte_eth_dev_callback_unregister(
		r.port, RTE_ETH_EVENT_RX_AVAIL_THRESH, count_crossing, NULL);
	rig_close(&r);
}

static void
watermark_is_told_once_when_crossed(void **state)
{
	(void)state;
	watermark(",pollers=1");
}

static void
watermark_turns_a_direct_port_to_pollers(void **state)
{
	struct rig r;
	struct setup s = {0};

	(void)state;
	rig_make(&r, 1, "");
	assert_int_equal(rig_start(&r, &s), 0);
	assert_true(figures(&r, 0).direct);
	assert_int_equal(rte_eth_rx_avail_thresh_set(r.port, 0, 10), 0);
	assert_false(figures(&r, 0).direct);
	assert_int_equal(rte_eth_rx_avail_thresh_set(r.port, 0, 0), 0);
	assert_true(figures(&r, 0).direct);
	rig_close(&r);
	watermark("");
}

static void
watermark_of_posted_buffers(void **state)
{
	(void)state;
	watermark(",rx_copy=1");
}

/* ---- shared queues ---- */

static void
frames_of_all_members_come_from_any(void **state)
{
	struct setup s = {.share_group = 1, .desc = 256};
	unsigned int of_a = 0, of_b = 0;
	struct rte_mbuf *pkts[32];
	struct rig a, b;

	(void)state;
	rig_make(&a, 1, "");
	rig_make(&b, 1, "");
	assert_int_equal(rig_start(&a, &s), 0);
	assert_int_equal(rig_start(&b, &s), 0);
	assert_int_equal(figures(&a, 0).members, 2);
	assert_true(figures(&b, 0).shared);
	for (unsigned int i = 0; i < 50; i++) {
		put_many(&a, 1, i);
		put_many(&b, 1, 1000 + i);
	}
	for (int round = 0; round < 20; round++) {
		uint16_t n = rte_eth_rx_burst(round % 2 ? a.port : b.port, 0, pkts, 32);

		for (uint16_t i = 0; i < n; i++) {
			if (pkts[i]->port == a.port)
				assert_int_equal(frame_seq(pkts[i]), of_a++);
			else
				assert_int_equal(frame_seq(pkts[i]), 1000 + of_b++);
		}
		rte_pktmbuf_free_bulk(pkts, n);
	}
	assert_int_equal(of_a, 50);
	assert_int_equal(of_b, 50);
	assert_int_equal(stats_of(a.port).ipackets, 50);
	assert_int_equal(stats_of(b.port).ipackets, 50);
	/* One port leaves, and the other one goes on. */
	rte_eth_dev_stop(a.port);
	rte_eth_dev_close(a.port);
	assert_int_equal(figures(&b, 0).members, 1);
	put_many(&b, 5, 0);
	assert_int_equal(receive_all(&b, 1, NULL), 5);
	rig_close(&b);
	rig_close(&a);
}

static void
members_have_to_agree(void **state)
{
	struct rte_mempool *mp = small_pool("strange", 511);
	struct setup good = {.share_group = 3, .desc = 128}, s;
	struct rig a, b;

	(void)state;
	rig_make(&a, 1, "");
	assert_int_equal(rig_start(&a, &good), 0);
	rig_make(&b, 1, "");
	s = good;
	s.desc = 256;
	assert_int_equal(rig_start(&b, &s), -EINVAL);
	s = good;
	s.mp[0] = mp;
	assert_int_equal(rig_start(&b, &s), -EINVAL);
	s = good;
	s.rx_offloads = RTE_ETH_RX_OFFLOAD_SCATTER;
	assert_int_equal(rig_start(&b, &s), -EINVAL);
	s = good;
	s.mtu = 1400;
	assert_int_equal(rig_start(&b, &s), -EINVAL);
	assert_int_equal(rig_start(&b, &good), 0);
	rig_close(&b);
	rig_close(&a);
	rte_mempool_free(mp);
}

static void
starved_shared_queue_counts_and_recovers(void **state)
{
	struct rte_mempool *mp = small_pool("shared", 127);
	struct setup s = {.share_group = 2, .desc = 512, .mp = {mp}};
	struct rte_mbuf *kept[128];
	unsigned int n = 0;
	struct rig a, b;
	uint64_t nombuf;

	(void)state;
	rig_make(&a, 1, "");
	rig_make(&b, 1, "");
	assert_int_equal(rig_start(&a, &s), 0);
	assert_int_equal(rig_start(&b, &s), 0);
	put_many(&a, 100, 0);
	put_many(&b, 100, 0);
	for (uint16_t k = 1; k != 0; n += k)
		k = rte_eth_rx_burst(a.port, 0, &kept[n], 1);
	assert_int_equal(n, 127);
	nombuf = stats_of(a.port).rx_nombuf + stats_of(b.port).rx_nombuf;
	assert_int_equal(nombuf, 200 - 127);
	rte_pktmbuf_free_bulk(kept, n);
	put_many(&b, 30, 0);
	for (n = 0; rte_eth_rx_burst(b.port, 0, kept, 1) == 1; n++)
		rte_pktmbuf_free(kept[0]);
	assert_int_equal(n, 30);
	rig_close(&b);
	rig_close(&a);
	assert_int_equal(rte_mempool_avail_count(mp), 127);
	rte_mempool_free(mp);
}

/* ---- started and stopped queues ---- */

static void
stopped_queue_drops_and_counts(void **state)
{
	struct setup s = {.rxq = 2, .rss = RTE_ETH_RSS_NONFRAG_IPV4_UDP};
	unsigned int got[2] = {0};
	struct rte_eth_stats st;
	struct rig r;

	(void)state;
	rig_make(&r, 1, "");
	assert_int_equal(rig_start(&r, &s), 0);
	assert_int_equal(rte_eth_dev_rx_queue_stop(r.port, 1), 0);
	for (unsigned int i = 0; i < 100; i++) {
		struct frame f = {.src = i, .dst = 2, .sport = (uint16_t)i};

		wire_put(&r, 0, &f);
	}
	receive_all(&r, 1, got);
	poll_only(&r);
	receive_all(&r, 1, got);
	st = stats_of(r.port);
	assert_int_equal(st.ipackets, got[0]);
	assert_int_equal(got[0] + xstat(r.port, "rx_stopped_drop"), 100);
	assert_true(xstat(r.port, "rx_stopped_drop") > 0);
	assert_int_equal(rte_eth_dev_rx_queue_start(r.port, 1), 0);
	for (unsigned int i = 0; i < 100; i++) {
		struct frame f = {.src = i, .dst = 2, .sport = (uint16_t)i};

		wire_put(&r, 0, &f);
	}
	assert_int_equal(receive_all(&r, 2, got), 100);
	assert_true(got[1] > 0);
	rig_close(&r);
}

/* ---- sizes ---- */

static void
ring_too_small_for_its_frames_is_refused(void **state)
{
	struct setup s = {.desc = 256};
	struct rig r;

	(void)state;
	rig_make(&r, 1, ",pollers=1");
	assert_int_equal(rig_start(&r, &s), 0);
	put_many(&r, 100, 0);
	poll_only(&r);
	assert_int_equal(rte_pmd_verbena_rxq_resize(r.port, 0, 64), -EBUSY);
	assert_int_equal(rte_pmd_verbena_rxq_resize(r.port, 0, 0), -EINVAL);
	assert_int_equal(rte_pmd_verbena_rxq_resize(r.port, 0, 1u << 20), -EINVAL);
	assert_int_equal(rte_pmd_verbena_rxq_resize(r.port, 7, 64), -EINVAL);
	assert_int_equal(figures(&r, 0).size, 256);
	assert_int_equal(figures(&r, 0).count, 100);
	assert_int_equal(rte_pmd_verbena_rxq_resize(r.port, 0, 100), 0);
	assert_int_equal(figures(&r, 0).size, 100);
	assert_int_equal(receive_all(&r, 1, NULL), 100);
	rig_close(&r);
	rig_make(&r, 1, "");
	assert_int_equal(rig_start(&r, &s), 0);
	assert_int_equal(rte_pmd_verbena_rxq_resize(r.port, 0, 128), -ENOTSUP);
	rig_close(&r);
}

static _Atomic bool done;
static _Atomic unsigned int resizes;

static void *
resize_always(void *arg)
{
	static const uint32_t sizes[] = {2048, 1500, 4096, 1024, 3000};
	const struct rig *r = arg;
	unsigned int i = 0;

	while (!atomic_load(&done)) {
		int rc = rte_pmd_verbena_rxq_resize(r->port, 0, sizes[i++ % RTE_DIM(sizes)]);

		assert_true(rc == 0 || rc == -EBUSY);
		atomic_fetch_add(&resizes, rc == 0);
	}
	return NULL;
}

static void
resized_under_traffic(const char *args)
{
	struct setup s = {.desc = 1024};
	uint32_t sent = 0, got = 0;
	struct rte_mbuf *pkts[32];
	struct rte_eth_stats st;
	pthread_t thread;
	struct rig r;

	rig_make(&r, 1, args);
	assert_int_equal(rig_start(&r, &s), 0);
	atomic_store(&done, false);
	atomic_store(&resizes, 0);
	assert_int_equal(pthread_create(&thread, NULL, resize_always, &r), 0);
	while (got < 20000 || atomic_load(&resizes) < 20) {
		uint16_t n;

		for (; sent - got < 700; sent++)
			put_many(&r, 1, sent);
		n = rte_eth_rx_burst(r.port, 0, pkts, 32);
		for (uint16_t i = 0; i < n; i++)
			assert_int_equal(frame_seq(pkts[i]), got + i);
		rte_pktmbuf_free_bulk(pkts, n);
		got += n;
	}
	atomic_store(&done, true);
	pthread_join(thread, NULL);
	got += receive_all(&r, 1, NULL);
	st = stats_of(r.port);
	assert_int_equal(got, sent);
	assert_int_equal(st.ipackets, sent);
	assert_int_equal(st.imissed + st.rx_nombuf, 0);
	assert_int_equal(figures(&r, 0).resizes, atomic_load(&resizes));
	rig_close(&r);
}

static void
resizing_under_traffic_keeps_all_in_order(void **state)
{
	(void)state;
	resized_under_traffic(",pollers=1");
}

static void
resizing_a_queue_that_copies_keeps_all_in_order(void **state)
{
	(void)state;
	resized_under_traffic(",rx_copy=1");
}

/* ---- services ---- */

static bool
readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

/* What a sleeping program waits for becomes readable when a poller has put a frame there. */
static void
interrupt_is_raised_by_a_service(void **state)
{
	struct setup s = {.rxq = 2, .rss = RTE_ETH_RSS_NONFRAG_IPV4_UDP, .intr = true};
	struct rte_pmd_verbena_poller p;
	struct rte_eth_rss_reta_entry64 reta[2];
	int fd[2];
	struct rig r;

	(void)state;
	memset(reta, 0, sizeof(reta));
	reta[0].mask = reta[1].mask = UINT64_MAX; /* all to queue 0 */
	rig_make(&r, 1, ",pollers=1");
	assert_int_equal(rig_start(&r, &s), 0);
	/* Without a service nobody would wake up: net_ring has no interrupts. */
	assert_int_equal(rte_eth_dev_rx_intr_enable(r.port, 0), -ENOTSUP);
	assert_int_equal(rte_pmd_verbena_poller_get(r.port, 0, &p), 0);
	assert_int_equal(rte_eth_dev_stop(r.port), 0);
	rte_service_set_runstate_mapped_check(p.service_id, 0);
	rte_service_runstate_set(p.service_id, 1);
	assert_int_equal(rte_eth_dev_start(r.port), 0);
	assert_int_equal(rte_eth_dev_rss_reta_update(r.port, reta, 128), 0);
	for (uint16_t q = 0; q < 2; q++) {
		fd[q] = rte_eth_dev_rx_intr_ctl_q_get_fd(r.port, q);
		assert_true(fd[q] >= 0);
		assert_int_equal(rte_eth_dev_rx_intr_enable(r.port, q), 0);
	}
	put_many(&r, 1, 0);
	assert_false(readable(fd[0]));
	assert_int_equal(rte_service_run_iter_on_app_lcore(p.service_id, 0), 0);
	assert_true(readable(fd[0]));
	assert_false(readable(fd[1]));
	assert_int_equal(rte_eth_dev_rx_intr_disable(r.port, 0), 0);
	assert_false(readable(fd[0]));
	/* What is there already raises it at once. */
	assert_int_equal(rte_eth_dev_rx_intr_enable(r.port, 0), 0);
	assert_true(readable(fd[0]));
	assert_int_equal(rte_eth_dev_rx_intr_disable(r.port, 0), 0);
	assert_int_equal(receive_all(&r, 2, NULL), 1);
	rig_close(&r);
}

static void
service_polls_in_the_place_of_the_program(void **state)
{
	struct setup s = {.desc = 128};
	struct rte_pmd_verbena_poller p;
	struct rte_mbuf *m;
	struct rig r;

	(void)state;
	rig_make(&r, 1, ",pollers=1");
	assert_int_equal(rig_start(&r, &s), 0);
	assert_int_equal(rte_pmd_verbena_poller_get(r.port, 0, &p), 0);
	assert_false(p.by_service);
	assert_int_equal(rte_eth_dev_stop(r.port), 0);
	/* As if a service core had it. */
	assert_int_equal(rte_service_set_runstate_mapped_check(p.service_id, 0), 0);
	assert_int_equal(rte_service_runstate_set(p.service_id, 1), 0);
	assert_int_equal(rte_eth_dev_start(r.port), 0);
	assert_int_equal(rte_pmd_verbena_poller_get(r.port, 0, &p), 0);
	assert_true(p.by_service);
	put_many(&r, 10, 0);
	assert_int_equal(rte_eth_rx_burst(r.port, 0, &m, 1), 0);
	assert_int_equal(rte_service_run_iter_on_app_lcore(p.service_id, 0), 0);
	assert_int_equal(figures(&r, 0).count, 10);
	assert_int_equal(receive_all(&r, 1, NULL), 10);
	/* A stopped port's service does nothing, and comes back with it. */
	assert_int_equal(rte_eth_dev_stop(r.port), 0);
	assert_true(rte_service_run_iter_on_app_lcore(p.service_id, 0) < 0);
	assert_int_equal(rte_eth_dev_start(r.port), 0);
	put_many(&r, 3, 0);
	assert_int_equal(rte_service_run_iter_on_app_lcore(p.service_id, 0), 0);
	assert_int_equal(receive_all(&r, 1, NULL), 3);
	rig_close(&r);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_beyond_the_ring_are_counted),
		cmocka_unit_test(empty_pool_costs_only_its_frames_and_recovers),
		cmocka_unit_test(buffers_are_posted_ahead_and_not_beyond_the_ring),
		cmocka_unit_test(queues_with_pools_of_their_own_get_frames_of_them),
		cmocka_unit_test(long_frames_are_scattered_over_buffers),
		cmocka_unit_test(watermark_is_told_once_when_crossed),
		cmocka_unit_test(watermark_turns_a_direct_port_to_pollers),
		cmocka_unit_test(watermark_of_posted_buffers),
		cmocka_unit_test(frames_of_all_members_come_from_any),
		cmocka_unit_test(members_have_to_agree),
		cmocka_unit_test(starved_shared_queue_counts_and_recovers),
		cmocka_unit_test(stopped_queue_drops_and_counts),
		cmocka_unit_test(ring_too_small_for_its_frames_is_refused),
		cmocka_unit_test(resizing_under_traffic_keeps_all_in_order),
		cmocka_unit_test(interrupt_is_raised_by_a_service),
		cmocka_unit_test(service_polls_in_the_place_of_the_program),
		cmocka_unit_test(resizing_a_queue_that_copies_keeps_all_in_order),
	};

	pmd_eal(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
