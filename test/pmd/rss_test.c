/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RSS of net_verbena: what rte_softrss() predicts is what comes out, and the table can be changed
 * at any time.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include <rte_thash.h>

#include "util.h"

#define QUEUES 4
#define TYPES \
	(RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV4_TCP | \
		RTE_ETH_RSS_IPV6 | RTE_ETH_RSS_NONFRAG_IPV6_UDP | RTE_ETH_RSS_NONFRAG_IPV6_TCP)
#define FLOWS 64
#define FRAMES 60000
#define IN_FLIGHT 1024 /* fewer than a queue holds */

static uint8_t key[52];

static void
random_key(void)
{
	srandom(7);
	for (unsigned int i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)random();
}

static struct frame
random_frame(unsigned int i)
{
	bool other = (i & 48) == 48;

	return (struct frame){.v6 = i & 1,
		.tcp = (i & 2) && !other,
		.vlan = i & 4 ? 5 : 0,
		.fragment = (i & 9) == 8,
		.other = other,
		.src = (uint32_t)random(),
		.dst = (uint32_t)random(),
		.sport = (uint16_t)random(),
		.dport = (uint16_t)random(),
		.seq = i};
}

static void
expect(const struct rte_mbuf *m, const struct frame *f, uint16_t queue,
	const struct rte_eth_rss_reta_entry64 *reta, uint16_t size)
{
	uint32_t tuple[9], hash;
	uint32_t n = frame_tuple(f, !f->fragment && !f->other, tuple);
	uint32_t entry;

	hash = rte_softrss(tuple, n, key);
	entry = hash & (size - 1u);
	assert_true(m->ol_flags & RTE_MBUF_F_RX_RSS_HASH);
	assert_int_equal(m->hash.rss, hash);
	assert_int_equal(queue, reta[entry / 64].reta[entry % 64]);
}

static void
frames_go_where_softrss_says(uint16_t size, const char *args, uint8_t key_len)
{
	struct setup s = {.rxq = QUEUES, .rss = TYPES, .key = key, .key_len = key_len};
	struct rte_eth_rss_reta_entry64 reta[16];
	struct rte_mbuf *pkts[32];
	struct frame f[256];
	unsigned int got = 0;
	struct rig r;

	rig_make(&r, 1, args);
	assert_int_equal(rig_start(&r, &s), 0);
	memset(reta, 0xff, sizeof(reta));
	assert_int_equal(rte_eth_dev_rss_reta_query(r.port, reta, size), 0);
	for (unsigned int i = 0; i < RTE_DIM(f); i++) {
		f[i] = random_frame(i);
		wire_put(&r, 0, &f[i]);
	}
	while (got < RTE_DIM(f)) {
		for (uint16_t q = 0; q < QUEUES; q++) {
			uint16_t n = rte_eth_rx_burst(r.port, q, pkts, 32);

			for (uint16_t i = 0; i < n; i++)
				expect(pkts[i], &f[frame_seq(pkts[i])], q, reta, size);
			rte_pktmbuf_free_bulk(pkts, n);
			got += n;
		}
	}
	rig_close(&r);
}

static void
table_of_128_with_a_key_of_40(void **state)
{
	(void)state;
	frames_go_where_softrss_says(128, "", 40);
}

static void
table_of_1024_with_a_key_of_52(void **state)
{
	(void)state;
	frames_go_where_softrss_says(1024, ",reta=1024,rss_key=52", 52);
}

static void
table_of_64(void **state)
{
	(void)state;
	frames_go_where_softrss_says(64, ",reta=64", 40);
}

static void
update_reta(uint16_t port, uint16_t queue)
{
	struct rte_eth_rss_reta_entry64 reta[2];

	for (int g = 0; g < 2; g++) {
		reta[g].mask = UINT64_MAX;
		for (int i = 0; i < 64; i++)
			reta[g].reta[i] = queue;
	}
	assert_int_equal(rte_eth_dev_rss_reta_update(port, reta, 128), 0);
}

static uint16_t
query_reta(uint16_t port, unsigned int entry)
{
	struct rte_eth_rss_reta_entry64 reta[2];

	memset(reta, 0xff, sizeof(reta));
	assert_int_equal(rte_eth_dev_rss_reta_query(port, reta, 128), 0);
	return reta[entry / 64].reta[entry % 64];
}

static void
send_random(const struct rig *r, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		struct frame f = random_frame(i);

		wire_put(r, 0, &f);
	}
}

static void
table_set_before_start_stays_across_restarts(void **state)
{
	struct setup s = {.rxq = QUEUES, .rss = TYPES};
	struct rte_eth_conf conf = {
		.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS, .rx_adv_conf.rss_conf.rss_hf = TYPES};
	unsigned int got[QUEUES] = {0};
	struct rig r;

	(void)state;
	rig_make(&r, 1, "");
	assert_int_equal(rte_eth_dev_configure(r.port, QUEUES, 1, &conf), 0);
	assert_int_equal(query_reta(r.port, 5), 1);
	update_reta(r.port, 2);
	assert_int_equal(rig_start(&r, &s), 0);
	assert_int_equal(query_reta(r.port, 5), 2);
	send_random(&r, 100);
	assert_int_equal(receive_all(&r, QUEUES, got), 100);
	assert_int_equal(got[2], 100);
	rte_eth_dev_stop(r.port);
	update_reta(r.port, 3);
	assert_int_equal(rte_eth_dev_start(r.port), 0);
	send_random(&r, 100);
	receive_all(&r, QUEUES, got);
	assert_int_equal(got[3], 100);
	rig_close(&r);
}

static void
update_changes_the_masked_entries_only(void **state)
{
	struct setup s = {.rxq = QUEUES, .rss = TYPES};
	struct rte_eth_rss_reta_entry64 reta[2] = {{.mask = RTE_BIT64(7), .reta[7] = 0}};
	struct rig r;

	(void)state;
	rig_make(&r, 1, "");
	assert_int_equal(rig_start(&r, &s), 0);
	update_reta(r.port, 3);
	assert_int_equal(rte_eth_dev_rss_reta_update(r.port, reta, 128), 0);
	for (unsigned int i = 0; i < 128; i++)
		assert_int_equal(query_reta(r.port, i), i == 7 ? 0 : 3);
	/* What cannot be is refused, and changes nothing. */
	reta[0].mask = UINT64_MAX;
	reta[0].reta[3] = QUEUES;
	assert_int_equal(rte_eth_dev_rss_reta_update(r.port, reta, 128), -EINVAL);
	assert_int_equal(rte_eth_dev_rss_reta_update(r.port, reta, 64), -EINVAL);
	assert_int_equal(query_reta(r.port, 3), 3);
	rig_close(&r);
}

static void
port_without_rss_refuses_tables_and_keys(void **state)
{
	struct rte_eth_rss_reta_entry64 reta[2] = {{.mask = 1}};
	struct rte_eth_rss_conf conf = {.rss_hf = RTE_ETH_RSS_IPV4};
	struct setup s = {.rxq = 1};
	struct rig r;

	(void)state;
	rig_make(&r, 1, "");
	assert_int_equal(rig_start(&r, &s), 0);
	assert_int_equal(rte_eth_dev_rss_reta_update(r.port, reta, 128), -ENOTSUP);
	assert_int_equal(rte_eth_dev_rss_hash_update(r.port, &conf), -ENOTSUP);
	rig_close(&r);
}

static void
key_and_types_are_changed_while_it_runs(void **state)
{
	struct setup s = {.rxq = QUEUES, .rss = TYPES};
	uint8_t back[40];
	struct rte_eth_rss_conf conf = {
		.rss_key = key, .rss_key_len = 40, .rss_hf = RTE_ETH_RSS_IPV4};
	struct frame f = {.src = 0x0a000001, .dst = 0x0a000002, .sport = 1, .dport = 2};
	uint32_t tuple[9], n = frame_tuple(&f, false, tuple);
	struct rte_mbuf *m = NULL;
	struct rig r;

	(void)state;
	rig_make(&r, 1, "");
	assert_int_equal(rig_start(&r, &s), 0);
	assert_int_equal(rte_eth_dev_rss_hash_update(r.port, &conf), 0);
	conf.rss_key = back;
	memset(back, 0, sizeof(back));
	assert_int_equal(rte_eth_dev_rss_hash_conf_get(r.port, &conf), 0);
	assert_memory_equal(back, key, 40);
	assert_int_equal(conf.rss_hf, RTE_ETH_RSS_IPV4);
	wire_put(&r, 0, &f);
	for (uint16_t q = 0; q < QUEUES && m == NULL; q++)
		rte_eth_rx_burst(r.port, q, &m, 1);
	assert_non_null(m);
	assert_int_equal(m->hash.rss, rte_softrss(tuple, n, key));
	rte_pktmbuf_free(m);
	/* The length has to be right. */
	conf.rss_key_len = 52;
	conf.rss_key = key;
	assert_int_equal(rte_eth_dev_rss_hash_update(r.port, &conf), -EINVAL);
	rig_close(&r);
}

static void
roce_is_spread_by_queue_pair_when_asked(void **state)
{
	struct setup s = {
		.rxq = QUEUES, .rss = RTE_ETH_RSS_NONFRAG_IPV4_UDP, .key = key, .key_len = 40};
	struct frame f = {.src = 1, .dst = 2, .sport = 3, .dport = 4791, .payload = 64};
	uint32_t tuple[3] = {1, 2, 0x000102};
	struct rte_mbuf *m = NULL;
	struct rig r;

	(void)state;
	rig_make(&r, 1, ",rss_roce=1");
	assert_int_equal(rig_start(&r, &s), 0);
	m = frame_make(pmd_pool, &f);
	/* The destination queue pair number of the base transport header. */
	memcpy(rte_pktmbuf_mtod_offset(m, void *, 14 + 20 + 8 + 5), "\x00\x01\x02", 3);
	assert_int_equal(rte_ring_enqueue(r.to_port[0], m), 0);
	m = NULL;
	for (uint16_t q = 0; q < QUEUES && m == NULL; q++)
		rte_eth_rx_burst(r.port, q, &m, 1);
	assert_non_null(m);
	assert_int_equal(m->hash.rss, rte_softrss(tuple, 3, key));
	rte_pktmbuf_free(m);
	rig_close(&r);
}

/* ---- under traffic ---- */

static _Atomic bool stop_updates;

static void *
update_always(void *arg)
{
	const struct rig *r = arg;
	uint16_t queue = 0;

	while (!atomic_load(&stop_updates)) {
		update_reta(r->port, queue);
		queue = (queue + 1) % QUEUES;
	}
	return NULL;
}

/*
 * One thread receives from all queues in turn, another one changes the table all the time. Nothing
 * is lost, and the frames of one burst of the wire that are of one flow come in order.
 */
static void
updates_under_traffic_lose_nothing(void **state)
{
	struct setup s = {.rxq = QUEUES, .rss = TYPES, .desc = 4096};
	uint32_t sent = 0, got = 0, last[QUEUES][FLOWS];
	struct rte_mbuf *pkts[32];
	struct rte_eth_stats st;
	pthread_t updater;
	struct rig r;

	(void)state;
	memset(last, 0, sizeof(last));
	rig_make(&r, 1, "");
	assert_int_equal(rig_start(&r, &s), 0);
	atomic_store(&stop_updates, false);
	assert_int_equal(pthread_create(&updater, NULL, update_always, &r), 0);
	while (got < FRAMES) {
		for (; sent - got < IN_FLIGHT && sent < FRAMES; sent++) {
			struct frame f = {.src = sent % FLOWS,
				.dst = 9,
				.sport = (uint16_t)(sent % FLOWS),
				.dport = 9,
				.seq = sent + 1};

			wire_put(&r, 0, &f);
		}
		for (uint16_t q = 0; q < QUEUES; q++) {
			uint16_t n = rte_eth_rx_burst(r.port, q, pkts, 32);

			for (uint16_t i = 0; i < n; i++) {
				uint32_t seq = frame_seq(pkts[i]), flow = (seq - 1) % FLOWS;

				/* Within a queue, as a NIC has it. */
				assert_true(seq > last[q][flow]);
				last[q][flow] = seq;
			}
			rte_pktmbuf_free_bulk(pkts, n);
			got += n;
		}
	}
	atomic_store(&stop_updates, true);
	pthread_join(updater, NULL);
	st = stats_of(r.port);
	assert_int_equal(st.ipackets, FRAMES);
	assert_int_equal(st.imissed + st.ierrors + st.rx_nombuf, 0);
	rig_close(&r);
}

/* ---- many threads, many queues of the lower port ---- */

#define THREADS 2
#define WIRES 4

struct receiver {
	pthread_t thread;
	const struct rig *rig;
	uint16_t first; /* of two queues */
	uint32_t got;
	uint32_t last[QUEUES][WIRES][FLOWS];
};

static _Atomic uint32_t received;
static _Atomic bool all_sent;

/* A flow has a wire of its own, as a lower port with RSS has it. */
static void
take_in_order(struct receiver *r, uint16_t queue, const struct rte_mbuf *m)
{
	uint32_t seq = frame_seq(m), wire = seq % WIRES, flow = seq / WIRES % FLOWS;

	assert_true(seq + 1 > r->last[queue][wire][flow]);
	r->last[queue][wire][flow] = seq + 1;
}

static void *
receive_two_queues(void *arg)
{
	struct rte_mbuf *pkts[32];
	struct receiver *r = arg;
	unsigned int idle = 0;

	while (idle < 1000) {
		for (uint16_t q = r->first; q < r->first + QUEUES / THREADS; q++) {
			uint16_t n = rte_eth_rx_burst(r->rig->port, q, pkts, RTE_DIM(pkts));

			for (uint16_t i = 0; i < n; i++)
				take_in_order(r, q, pkts[i]);
			rte_pktmbuf_free_bulk(pkts, n);
			r->got += n;
			atomic_fetch_add(&received, n);
			if (n > 0)
				idle = 0;
		}
		idle += atomic_load(&all_sent);
	}
	return NULL;
}

static void
threads_share_the_work_and_keep_flows_in_order(void **state)
{
	static struct receiver receivers[THREADS];
	struct setup s = {.rxq = QUEUES, .rss = TYPES, .desc = 2048};
	uint64_t spread = 0;
	struct rte_eth_stats st;
	struct rig r;

	(void)state;
	rig_make(&r, WIRES, "");
	assert_int_equal(rig_start(&r, &s), 0);
	assert_int_equal(rte_pmd_verbena_poller_count(r.port), WIRES);
	atomic_store(&received, 0);
	atomic_store(&all_sent, false);
	for (int i = 0; i < THREADS; i++) {
		receivers[i].rig = &r;
		receivers[i].first = (uint16_t)(i * QUEUES / THREADS);
		assert_int_equal(pthread_create(&receivers[i].thread, NULL, receive_two_queues,
					 &receivers[i]),
			0);
	}
	for (uint32_t seq = 0; seq < FRAMES; seq++) {
		uint32_t flow = seq / WIRES % FLOWS;
		struct frame f = {.src = flow,
			.dst = seq % WIRES,
			.sport = (uint16_t)flow,
			.dport = 5,
			.seq = seq};

		while (seq - atomic_load(&received) > IN_FLIGHT)
			sched_yield();
		wire_put(&r, seq % WIRES, &f);
	}
	atomic_store(&all_sent, true);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(receivers[i].thread, NULL);
		spread += receivers[i].got > 0;
	}
	/* What one thread has put into queues of the other, which had finished. */
	assert_int_equal(atomic_load(&received) + receive_all(&r, QUEUES, NULL), FRAMES);
	assert_int_equal(spread, THREADS);
	st = stats_of(r.port);
	assert_int_equal(st.ipackets, FRAMES);
	assert_int_equal(st.imissed, 0);
	rig_close(&r);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(table_of_128_with_a_key_of_40),
		cmocka_unit_test(table_of_1024_with_a_key_of_52),
		cmocka_unit_test(table_of_64),
		cmocka_unit_test(table_set_before_start_stays_across_restarts),
		cmocka_unit_test(update_changes_the_masked_entries_only),
		cmocka_unit_test(port_without_rss_refuses_tables_and_keys),
		cmocka_unit_test(key_and_types_are_changed_while_it_runs),
		cmocka_unit_test(roce_is_spread_by_queue_pair_when_asked),
		cmocka_unit_test(updates_under_traffic_lose_nothing),
		cmocka_unit_test(threads_share_the_work_and_keep_flows_in_order),
	};

	pmd_eal(argc, argv);
	random_key();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
