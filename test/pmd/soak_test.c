/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Everything at once for a while: one port with RSS whose table, key, rules, ring sizes, watermarks
 * and queues are changed by another thread, and two ports that share a queue whose mempool is
 * starved; all of them are stopped and started again now and then. In the end each frame has been
 * received, or is counted as lost, by exactly one cause.
 *
 *   pmd_soak_test [seconds]    3 when nothing is said
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include <rte_cycles.h>
#include <rte_flow.h>

#include "util.h"

#define QUEUES 4
#define KEPT 224 /* frames that the program holds back, of a mempool with little more */
#define STARVED_MBUFS 255
#define TYPES (RTE_ETH_RSS_NONFRAG_IPV4_UDP | RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_IPV6)

static unsigned int seconds = 3;
static _Atomic bool done;
/* Ports are stopped by who receives; control calls that need them started stand back. */
static pthread_mutex_t started = PTHREAD_MUTEX_INITIALIZER;
static _Atomic unsigned int changes[8], refused;

static void
change_reta(const struct rig *r)
{
	struct rte_eth_rss_reta_entry64 reta[2];

	for (int g = 0; g < 2; g++) {
		reta[g].mask = UINT64_MAX;
		for (int i = 0; i < 64; i++)
			reta[g].reta[i] = (uint16_t)(random() % QUEUES);
	}
	assert_int_equal(rte_eth_dev_rss_reta_update(r->port, reta, 128), 0);
}

static void
change_key(const struct rig *r)
{
	uint8_t key[40];
	struct rte_eth_rss_conf conf = {.rss_key = key, .rss_key_len = 40, .rss_hf = TYPES};

	for (unsigned int i = 0; i < sizeof(key); i++)
		key[i] = (uint8_t)random();
	assert_int_equal(rte_eth_dev_rss_hash_update(r->port, &conf), 0);
}

static void
change_flow(const struct rig *r)
{
	static struct rte_flow *rules[8];
	struct rte_flow_item_udp spec = {.hdr.dst_port = rte_cpu_to_be_16(random() % 16)};
	struct rte_flow_item_udp mask = {.hdr.dst_port = UINT16_MAX};
	struct rte_flow_item pattern[] = {{.type = RTE_FLOW_ITEM_TYPE_ETH},
		{.type = RTE_FLOW_ITEM_TYPE_IPV4},
		{.type = RTE_FLOW_ITEM_TYPE_UDP, .spec = &spec, .mask = &mask},
		{.type = RTE_FLOW_ITEM_TYPE_END}};
	struct rte_flow_action_queue queue = {.index = (uint16_t)(random() % QUEUES)};
	struct rte_flow_action actions[] = {
		{.type = random() % 2 ? RTE_FLOW_ACTION_TYPE_QUEUE : RTE_FLOW_ACTION_TYPE_DROP,
			.conf = &queue},
		{.type = RTE_FLOW_ACTION_TYPE_END}};
	struct rte_flow_attr attr = {.ingress = 1};
	unsigned int which = (unsigned int)random() % RTE_DIM(rules);
	struct rte_flow_error error;

	if (rules[which] != NULL)
		assert_int_equal(rte_flow_destroy(r->port, rules[which], &error), 0);
	/* NULL: there is one like it. */
	rules[which] = rte_flow_create(r->port, &attr, pattern, actions, &error);
}

static void
change_size(const struct rig *r, uint16_t queues)
{
	uint16_t queue = (uint16_t)(random() % queues);
	int rc = rte_pmd_verbena_rxq_resize(r->port, queue, 64 + (uint32_t)random() % 1000);

	assert_true(rc == 0 || rc == -EBUSY);
	refused += rc == -EBUSY;
}

static void
change_queue(const struct rig *r)
{
	uint16_t queue = (uint16_t)(random() % QUEUES);

	assert_int_equal(rte_eth_dev_rx_queue_stop(r->port, queue), 0);
	assert_int_equal(rte_eth_dev_rx_queue_start(r->port, queue), 0);
}

static void *
change_always(void *arg)
{
	const struct rig *rigs = arg;
	struct rte_eth_stats st;

	while (!atomic_load(&done)) {
		unsigned int what = (unsigned int)random() % RTE_DIM(changes);

		pthread_mutex_lock(&started);
		switch (what) {
		case 0:
			change_reta(&rigs[0]);
			break;
		case 1:
			change_key(&rigs[0]);
			break;
		case 2:
			change_flow(&rigs[0]);
			break;
		case 3:
			change_size(&rigs[0], QUEUES);
			break;
		case 4:
			change_queue(&rigs[0]);
			break;
		case 5:
			assert_int_equal(rte_eth_rx_avail_thresh_set(rigs[random() % 3].port, 0,
						 (uint8_t)(random() % 90)),
				0);
			break;
		case 6:
			/* A shared queue. */
			change_size(&rigs[1 + random() % 2], 1);
			break;
		default:
			assert_int_equal(rte_eth_stats_get(rigs[random() % 3].port, &st), 0);
			break;
		}
		pthread_mutex_unlock(&started);
		changes[what]++;
		rte_delay_us_block(20);
	}
	return NULL;
}

/* ---- traffic ---- */

struct traffic {
	struct rig rigs[3];
	uint64_t sent[3], got[3];
	struct rte_mbuf *kept[KEPT];
	unsigned int num_kept;
	unsigned int restarts;
};

static void
send_some(struct traffic *t)
{
	for (int i = 0; i < 3; i++) {
		for (unsigned int n = (unsigned int)random() % 64; n > 0; n--) {
			struct frame f = {.v6 = random() % 8 == 0,
				.tcp = random() % 3 == 0,
				.src = (uint32_t)random() % 256,
				.dst = 7,
				.sport = (uint16_t)(random() % 64),
				.dport = (uint16_t)(random() % 16),
				.payload = (uint32_t)random() % 200};

			if (rte_ring_count(t->rigs[i].to_port[0]) > 512)
				break;
			wire_put(&t->rigs[i], 0, &f);
			t->sent[i]++;
		}
	}
}

static void
count(struct traffic *t, const struct rte_mbuf *m)
{
	for (int i = 0; i < 3; i++)
		t->got[i] += m->port == t->rigs[i].port;
}

static void
free_kept(struct traffic *t)
{
	rte_pktmbuf_free_bulk(t->kept, t->num_kept);
	t->num_kept = 0;
}

static unsigned int
receive_some(struct traffic *t)
{
	struct rte_mbuf *pkts[32];
	unsigned int total = 0;

	for (uint16_t q = 0; q < QUEUES + 1; q++) {
		/* Of the shared queue any member will do. */
		bool shared = q == QUEUES;
		uint16_t port = t->rigs[shared ? 1 + random() % 2 : 0].port;
		uint16_t n = rte_eth_rx_burst(port, shared ? 0 : q, pkts, RTE_DIM(pkts));

		total += n;
		for (uint16_t i = 0; i < n; i++) {
			count(t, pkts[i]);
			if (!shared || t->num_kept == KEPT)
				rte_pktmbuf_free(pkts[i]);
			else
				t->kept[t->num_kept++] = pkts[i];
		}
	}
	if (random() % 16 == 0)
		free_kept(t);
	return total;
}

static void
restart(struct traffic *t)
{
	uint16_t port = t->rigs[random() % 3].port;

	pthread_mutex_lock(&started);
	assert_int_equal(rte_eth_dev_stop(port), 0);
	assert_int_equal(rte_eth_dev_start(port), 0);
	pthread_mutex_unlock(&started);
	t->restarts++;
}

static void
settle(struct traffic *t)
{
	unsigned int idle = 0;

	while (idle < 20)
		idle = receive_some(t) > 0 ? 0 : idle + 1;
	free_kept(t);
}

static void
check(struct traffic *t)
{
	static const char *const causes[] = {
		"rx_stopped_drop", "rx_flow_drop", "rx_isolated_drop", "rx_vlan_filter_drop"};

	for (int i = 0; i < 3; i++) {
		struct rte_eth_stats st = stats_of(t->rigs[i].port);
		uint64_t lost = st.imissed + st.ierrors + st.rx_nombuf;

		for (size_t k = 0; k < RTE_DIM(causes); k++)
			lost += xstat(t->rigs[i].port, causes[k]);
		print_message("port %d: %" PRIu64 " sent, %" PRIu64 " received, %" PRIu64
			      " counted as lost (%" PRIu64 " full, %" PRIu64 " without buffer)\n",
			i, t->sent[i], t->got[i], lost, st.imissed, st.rx_nombuf);
		assert_int_equal(st.ipackets, t->got[i]);
		assert_int_equal(t->sent[i], t->got[i] + lost);
	}
}

static void
every_frame_is_received_or_counted(void **state)
{
	struct rte_mempool *starved = rte_pktmbuf_pool_create(
		"starved", STARVED_MBUFS, 0, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
	struct setup rss = {.rxq = QUEUES, .rss = TYPES, .desc = 256};
	struct setup shared = {.share_group = 1, .desc = 512, .mp = {starved}};
	static struct traffic t;
	pthread_t thread;
	uint64_t end;

	(void)state;
	for (int i = 0; i < 3; i++) {
		rig_make(&t.rigs[i], 1, "");
		assert_int_equal(rig_start(&t.rigs[i], i == 0 ? &rss : &shared), 0);
	}
	assert_int_equal(pthread_create(&thread, NULL, change_always, t.rigs), 0);
	end = rte_get_timer_cycles() + seconds * rte_get_timer_hz();
	for (unsigned int round = 1; rte_get_timer_cycles() < end; round++) {
		send_some(&t);
		receive_some(&t);
		if (round % 4096 == 0)
			restart(&t);
	}
	atomic_store(&done, true);
	pthread_join(thread, NULL);
	settle(&t);
	for (unsigned int i = 0; i < RTE_DIM(changes); i++)
		assert_true(changes[i] > 0);
	print_message("changes: table %u, key %u, rules %u, sizes %u and %u (refused %u), queues "
		      "%u, watermarks %u; restarts %u\n",
		changes[0], changes[1], changes[2], changes[3], changes[6], refused, changes[4],
		changes[5], t.restarts);
	check(&t);
	for (int i = 2; i >= 0; i--)
		rig_close(&t.rigs[i]);
	assert_int_equal(rte_mempool_avail_count(starved), STARVED_MBUFS);
	rte_mempool_free(starved);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_frame_is_received_or_counted)};

	if (argc > 1)
		seconds = (unsigned int)strtoul(argv[1], NULL, 10);
	pmd_eal(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
