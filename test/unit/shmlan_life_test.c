/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan: the life of ports and their sleep, with many ports in one process.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_bus_vdev.h>

#include "shmlan.h"
#include "shmlan_util.h"

#define MANY 24

static const struct rte_ether_addr broadcast = {{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

static void
exchange(uint16_t from, uint16_t to, uint32_t len, uint32_t seq)
{
	struct rte_ether_addr mac = su_mac(to);
	struct rte_mbuf *m;

	su_tx(from, su_frame(&mac, from, len, seq, 1));
	assert_int_equal(su_rx(to, &m, 1), 1);
	assert_true(su_frame_is(m, len, seq));
	rte_pktmbuf_free(m);
}

/* ---- link ---- */

static void
link_is_up_when_another_member_is(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b;
	struct rte_eth_link link;

	su_wait_link(a, false);
	b = su_port(1, "t", NULL);
	su_wait_link(a, true);
	su_wait_link(b, true);
	assert_int_equal(rte_eth_link_get(a, &link), 0);
	assert_int_equal(link.link_duplex, RTE_ETH_LINK_FULL_DUPLEX);
	assert_int_equal(rte_eth_dev_stop(b), 0);
	su_wait_link(a, false);
	assert_int_equal(rte_eth_dev_start(b), 0);
	su_wait_link(a, true);
	su_close(b);
	su_wait_link(a, false);
}

struct lsc {
	int events;
	int status;
};

static int
on_lsc(uint16_t port, enum rte_eth_event_type type, void *arg, void *ret)
{
	struct lsc *l = arg;
	struct rte_eth_link link;

	rte_eth_link_get_nowait(port, &link);
	__atomic_store_n(&l->status, link.link_status, __ATOMIC_RELAXED);
	__atomic_fetch_add(&l->events, 1, __ATOMIC_RELEASE);
	return 0;
}

static void
wait_lsc(struct lsc *l, int events, int status)
{
	uint64_t end = su_now() + SU_PATIENCE;

	while (__atomic_load_n(&l->events, __ATOMIC_ACQUIRE) < events && su_now() < end)
		usleep(200);
	assert_int_equal(l->events, events);
	assert_int_equal(l->status, status);
}

static void
link_changes_are_events(void **state)
{
	struct lsc l = {0};
	uint16_t a = su_port(0, "t", NULL), b;

	assert_int_equal(rte_eth_dev_callback_register(a, RTE_ETH_EVENT_INTR_LSC, on_lsc, &l), 0);
	b = su_port(1, "t", NULL);
	wait_lsc(&l, 1, 1);
	/* A third member changes nothing. */
	su_port(2, "t", NULL);
	su_close(b);
	usleep(20000);
	wait_lsc(&l, 1, 1);
	su_close(2);
	wait_lsc(&l, 2, 0);
	assert_int_equal(rte_eth_dev_callback_unregister(a, RTE_ETH_EVENT_INTR_LSC, on_lsc, &l), 0);
}

/* ---- start, stop, close ---- */

static void
stopped_port_gets_nothing_and_stops_nobody(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL), c = su_port(2, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);
	unsigned int i;

	exchange(a, b, 60, 1);
	su_tx(a, su_frame(&mac, a, 60, 2, 1));
	assert_int_equal(rte_eth_dev_stop(b), 0);
	/* Far more than a ring holds. */
	for (i = 0; i < 2000; i++)
		su_tx(a, su_frame(&mac, a, 60, 3, 1));
	assert_int_equal(su_xstat(a, "tx_drop_down"), 2000);
	exchange(a, c, 60, 4);
	assert_int_equal(rte_eth_dev_start(b), 0);
	su_expect_nothing(b);
	exchange(a, b, 60, 5);
	exchange(b, a, 60, 6);
}

static void
close_and_probe_again_many_times(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b;
	unsigned int i;

	for (i = 0; i < 50; i++) {
		b = su_port(1, "t", i & 1 ? "rx_zc=1" : NULL);
		exchange(a, b, 60, i);
		exchange(b, a, 4000, i);
		su_close(b);
		assert_int_equal(su_dir_entries("t"), 2);
	}
}

static void
frames_nobody_has_read_are_counted_as_lost(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);
	unsigned int i;

	exchange(a, b, 60, 1);
	for (i = 0; i < 5; i++)
		su_tx(a, su_frame(&mac, a, 60, i, 1));
	su_close(b);
	su_tx(a, su_frame(&mac, a, 60, 9, 1));
	assert_int_equal(su_xstat(a, "tx_lost"), 5);
	assert_int_equal(su_xstat(a, "tx_drop_unknown"), 1);
}

static unsigned int
open_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* EAL's interrupt thread opens its own set anew now and then, so there may be one less for a
 * moment. */
static void
expect_open_fds(unsigned int fds)
{
	uint64_t end = su_now() + SU_PATIENCE;

	while (open_fds() != fds && su_now() < end)
		usleep(1000);
	assert_int_equal(open_fds(), fds);
}

static unsigned int
shared_maps(void)
{
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];
	unsigned int n = 0;

	while (fgets(line, sizeof(line), f) != NULL)
		n += strstr(line, "verbena-") != NULL || strstr(line, "/members") != NULL;
	fclose(f);
	return n;
}

static void
close_leaves_nothing_behind(void **state)
{
	unsigned int fds, i;

	usleep(20000);
	fds = open_fds();

	for (i = 0; i < 5; i++) {
		uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", "rx_zc=1");

		exchange(a, b, 5000, 1);
		exchange(b, a, 5000, 1);
		assert_true(shared_maps() >= 6);
		su_close(a);
		su_close(b);
		assert_int_equal(shared_maps(), 0);
		expect_open_fds(fds);
		assert_int_equal(su_dir_entries("t"), 0);
	}
}

static void
port_that_was_never_configured_can_be_closed(void **state)
{
	int port = su_probe(0, "t", NULL);

	assert_true(port >= 0);
	su_close(port);
	assert_int_equal(su_dir_entries("t"), 0);
}

static void
failed_probe_leaves_nothing_behind(void **state)
{
	unsigned int fds;

	su_port(0, "t", "mac=02:00:00:00:00:01");
	usleep(20000);
	fds = open_fds();
	assert_int_equal(su_probe(1, "t", "mac=02:00:00:00:00:01"), -EADDRINUSE);
	expect_open_fds(fds);
	assert_int_equal(su_dir_entries("t"), 2);
}

static void
hot_unplug_of_a_started_port(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);

	exchange(a, b, 60, 1);
	assert_int_equal(rte_eal_hotplug_remove("vdev", "net_shmlan1"), 0);
	su_wait_link(a, false);
	assert_int_equal(su_dir_entries("t"), 2);
}

/* ---- frames that are lent out ---- */

static void
lent_frames_outlive_ring_and_port(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", "rx_zc=1");
	struct rte_ether_addr mac = su_mac(b);
	struct rte_mbuf *m[8];
	unsigned int i;

	for (i = 0; i < 8; i++)
		su_tx(a, su_frame(&mac, a, 4160, i, 1));
	assert_int_equal(su_rx(b, m, 8), 8);
	assert_int_equal(m[0]->nb_segs, 2);
	assert_int_equal(m[0]->data_len, VRB_SHMLAN_HDR_COPY);
	assert_true(RTE_MBUF_HAS_EXTBUF(m[0]->next));
	su_close(a);
	assert_int_equal(rte_eth_rx_burst(b, 0, m, 0), 0);
	su_close(b);
	for (i = 0; i < 8; i++)
		assert_true(su_frame_is(m[i], 4160, i));
	assert_true(shared_maps() >= 1);
	rte_pktmbuf_free_bulk(m, 8);
	assert_int_equal(shared_maps(), 0);
}

static void
lent_frames_hold_the_ring_back_in_order(void **state)
{
	uint16_t a = su_port(0, "t", "slots=32"), b = su_port(1, "t", "rx_zc=1");
	struct rte_ether_addr mac = su_mac(b);
	struct rte_mbuf *m[33], *x;
	unsigned int i;

	for (i = 0; i < 32; i++)
		su_tx(a, su_frame(&mac, a, 2000, i, 1));
	assert_int_equal(su_rx(b, m, 32), 32);
	x = su_frame(&mac, a, 60, 32, 1);
	assert_int_equal(rte_eth_tx_burst(a, 0, &x, 1), 0);
	/* The second alone frees nothing; with the first one, two slots. */
	rte_pktmbuf_free(m[1]);
	assert_int_equal(rte_eth_rx_burst(b, 0, m + 32, 1), 0);
	assert_int_equal(rte_eth_tx_burst(a, 0, &x, 1), 0);
	rte_pktmbuf_free(m[0]);
	assert_int_equal(rte_eth_rx_burst(b, 0, m + 32, 1), 0);
	assert_int_equal(rte_eth_tx_burst(a, 0, &x, 1), 1);
	su_tx(a, su_frame(&mac, a, 60, 33, 1));
	x = su_frame(&mac, a, 60, 34, 1);
	assert_int_equal(rte_eth_tx_burst(a, 0, &x, 1), 0);
	rte_pktmbuf_free(x);
	for (i = 2; i < 32; i++)
		assert_true(su_frame_is(m[i], 2000, i));
	rte_pktmbuf_free_bulk(m + 2, 30);
	assert_int_equal(su_rx(b, m, 2), 2);
	rte_pktmbuf_free_bulk(m, 2);
}

/* ---- sleep ---- */

static int
rx_fd(uint16_t port)
{
	int fd = rte_eth_dev_rx_intr_ctl_q_get_fd(port, 0);

	assert_true(fd >= 0);
	return fd;
}

static bool
readable(int fd, int ms)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, ms) == 1;
}

static void
settle(uint16_t port)
{
	struct rte_mbuf *m;
	unsigned int i;

	/* Until connections are answered, wake-ups without a frame are to be expected. */
	for (i = 0; i < 20; i++) {
		assert_int_equal(rte_eth_rx_burst(port, 0, &m, 1), 0);
		usleep(1000);
	}
	assert_int_equal(rte_eth_dev_rx_intr_disable(port, 0), 0);
}

static void
frame_wakes_a_sleeper(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);
	struct rte_mbuf *m;
	unsigned int i;

	exchange(a, b, 60, 0);
	settle(b);
	for (i = 0; i < 100; i++) {
		assert_int_equal(rte_eth_dev_rx_intr_enable(b, 0), 0);
		assert_false(readable(rx_fd(b), i < 10 ? 5 : 0));
		su_tx(a, su_frame(&mac, a, 60, i, 1));
		su_tx(a, su_frame(&mac, a, 60, i, 1));
		assert_true(readable(rx_fd(b), SU_PATIENCE / 1000));
		assert_int_equal(rte_eth_dev_rx_intr_disable(b, 0), 0);
		assert_false(readable(rx_fd(b), 0));
		assert_int_equal(su_rx(b, &m, 1), 1);
		rte_pktmbuf_free(m);
		assert_int_equal(su_rx(b, &m, 1), 1);
		rte_pktmbuf_free(m);
	}
	/* One kick for the two frames of each round. */
	assert_in_range(su_xstat(a, "tx_kicks"), 100, 110);
}

static void
frame_before_the_sleep_is_noticed(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);
	struct rte_mbuf *m;

	exchange(a, b, 60, 0);
	settle(b);
	su_tx(a, su_frame(&mac, a, 60, 1, 1));
	assert_int_equal(rte_eth_dev_rx_intr_enable(b, 0), 0);
	assert_true(readable(rx_fd(b), 0));
	assert_int_equal(rte_eth_dev_rx_intr_disable(b, 0), 0);
	assert_int_equal(su_rx(b, &m, 1), 1);
	rte_pktmbuf_free(m);
}

static void
first_frame_of_a_connection_wakes_a_sleeper(void **state)
{
	uint16_t b = su_port(0, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);
	struct rte_mbuf *m;
	unsigned int i, n;

	for (i = 0; i < 30; i++) {
		uint16_t a = su_port(1, "t", NULL);

		assert_int_equal(rte_eth_dev_rx_intr_enable(b, 0), 0);
		su_tx(a, su_frame(&mac, a, 60, i, 1));
		for (n = 0; n == 0;) {
			assert_true(readable(rx_fd(b), SU_PATIENCE / 1000));
			assert_int_equal(rte_eth_dev_rx_intr_disable(b, 0), 0);
			n = rte_eth_rx_burst(b, 0, &m, 1);
			assert_int_equal(rte_eth_dev_rx_intr_enable(b, 0), 0);
		}
		assert_true(su_frame_is(m, 60, i));
		rte_pktmbuf_free(m);
		/* So does its end. */
		su_close(a);
		assert_true(readable(rx_fd(b), SU_PATIENCE / 1000));
		assert_int_equal(rte_eth_dev_rx_intr_disable(b, 0), 0);
	}
}

static void
epoll_interface_works(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);
	struct rte_epoll_event ev;
	struct rte_mbuf *m;

	exchange(a, b, 60, 0);
	settle(b);
	assert_int_equal(
		rte_eth_dev_rx_intr_ctl_q(b, 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_ADD, NULL), 0);
	assert_int_equal(rte_eth_dev_rx_intr_enable(b, 0), 0);
	assert_int_equal(rte_epoll_wait(RTE_EPOLL_PER_THREAD, &ev, 1, 0), 0);
	su_tx(a, su_frame(&mac, a, 60, 1, 1));
	assert_int_equal(rte_epoll_wait(RTE_EPOLL_PER_THREAD, &ev, 1, SU_PATIENCE / 1000), 1);
	assert_int_equal(rte_eth_dev_rx_intr_disable(b, 0), 0);
	assert_int_equal(su_rx(b, &m, 1), 1);
	rte_pktmbuf_free(m);
	assert_int_equal(
		rte_eth_dev_rx_intr_ctl_q(b, 0, RTE_EPOLL_PER_THREAD, RTE_INTR_EVENT_DEL, NULL), 0);
}

static void
freeing_a_lent_frame_wakes_a_sleeper(void **state)
{
	uint16_t a = su_port(0, "t", "slots=32"), b = su_port(1, "t", "rx_zc=1");
	struct rte_ether_addr mac = su_mac(b);
	struct rte_mbuf *m[32], *x;
	unsigned int i;

	for (i = 0; i < 32; i++)
		su_tx(a, su_frame(&mac, a, 2000, i, 1));
	assert_int_equal(su_rx(b, m, 32), 32);
	settle(b);
	x = su_frame(&mac, a, 60, 32, 1);
	assert_int_equal(rte_eth_tx_burst(a, 0, &x, 1), 0);
	assert_int_equal(rte_eth_dev_rx_intr_enable(b, 0), 0);
	assert_false(readable(rx_fd(b), 5));
	rte_pktmbuf_free_bulk(m, 32);
	assert_true(readable(rx_fd(b), 0));
	assert_int_equal(rte_eth_dev_rx_intr_disable(b, 0), 0);
	assert_int_equal(rte_eth_rx_burst(b, 0, m, 1), 0);
	assert_int_equal(rte_eth_tx_burst(a, 0, &x, 1), 1);
}

/* ---- two threads: nothing may be lost between sleeping and waking ---- */

struct flow {
	uint16_t from, to;
	uint32_t frames;
	bool ok;
};

static void *
sleepy_receiver(void *arg)
{
	struct flow *f = arg;
	struct rte_mbuf *m[32];
	uint32_t want = 0;
	uint16_t i, n;

	while (want < f->frames) {
		n = rte_eth_rx_burst(f->to, 0, m, 32);
		for (i = 0; i < n; i++) {
			uint32_t seq;

			memcpy(&seq, rte_pktmbuf_mtod_offset(m[i], void *, SU_HDR), 4);
			if (seq != want++)
				return NULL;
		}
		rte_pktmbuf_free_bulk(m, n);
		if (n != 0)
			continue;
		rte_eth_dev_rx_intr_enable(f->to, 0);
		if (!readable(rte_eth_dev_rx_intr_ctl_q_get_fd(f->to, 0), SU_PATIENCE / 1000))
			return NULL;
		rte_eth_dev_rx_intr_disable(f->to, 0);
	}
	f->ok = true;
	return NULL;
}

static void
no_wakeup_is_lost(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);
	struct flow f = {.from = a, .to = b, .frames = 20000};
	pthread_t thread;
	uint32_t seq;
	unsigned int rnd = 1;

	assert_int_equal(pthread_create(&thread, NULL, sleepy_receiver, &f), 0);
	for (seq = 0; seq < f.frames; seq++) {
		struct rte_mbuf *m = su_frame(&mac, a, 60, seq, 1);

		while (rte_eth_tx_burst(a, 0, &m, 1) == 0)
			sched_yield();
		/* Now and then long enough for the other one to fall asleep. */
		if (rand_r(&rnd) % 8 == 0)
			rte_delay_us_block(rand_r(&rnd) % 30);
	}
	pthread_join(thread, NULL);
	assert_true(f.ok);
}

/* ---- many members ---- */

static void
many_members_all_talk_to_all(void **state)
{
	uint16_t p[MANY];
	struct rte_mbuf *m;
	unsigned int i, j, round;

	for (i = 0; i < MANY; i++)
		p[i] = su_port(i, "t", NULL);
	for (round = 0; round < 3; round++) {
		for (i = 0; i < MANY; i++) {
			for (j = 0; j < MANY; j++) {
				if (i != j)
					exchange(p[i], p[j], 60 + j, i);
			}
		}
	}
	su_tx(p[3], su_frame(&broadcast, p[3], 60, 1, 1));
	for (j = 0; j < MANY; j++) {
		if (j == 3)
			continue;
		assert_int_equal(su_rx(p[j], &m, 1), 1);
		rte_pktmbuf_free(m);
	}
	/* Fewer again: the receiver looks at all rings once more. */
	for (i = 4; i < MANY; i++)
		su_close(p[i]);
	for (i = 1; i < 4; i++)
		exchange(p[i], p[0], 60, i);
}

static void
busy_member_does_not_starve_the_others(void **state)
{
	uint16_t p[MANY];
	unsigned int i, k, others = 0;
	struct rte_ether_addr mac;
	struct rte_mbuf *m;

	for (i = 0; i < MANY; i++)
		p[i] = su_port(i, "t", NULL);
	mac = su_mac(p[0]);
	for (i = 1; i < MANY; i++)
		exchange(p[i], p[0], 60, i);
	for (i = 1; i < MANY; i++) {
		for (k = 0; k < (i == 1 ? 500 : 1); k++)
			su_tx(p[i], su_frame(&mac, p[i], 60, i, 1));
	}
	/* One frame at a time: each has been served long before the busy one is through. */
	for (k = 0; k < 300 && others < MANY - 2; k++) {
		assert_int_equal(su_rx(p[0], &m, 1), 1);
		others += su_frame_seq(m) != 1;
		rte_pktmbuf_free(m);
	}
	assert_int_equal(others, MANY - 2);
	while (rte_eth_rx_burst(p[0], 0, &m, 1) != 0)
		rte_pktmbuf_free(m);
}

static void
sleeper_with_many_members_is_woken_by_each(void **state)
{
	uint16_t p[MANY];
	struct rte_mbuf *m;
	struct rte_ether_addr mac;
	unsigned int i, round;

	for (i = 0; i < MANY; i++)
		p[i] = su_port(i, "t", NULL);
	mac = su_mac(p[0]);
	for (i = 1; i < MANY; i++)
		exchange(p[i], p[0], 60, i);
	settle(p[0]);
	for (round = 0; round < 3; round++) {
		for (i = 1; i < MANY; i++) {
			assert_int_equal(rte_eth_dev_rx_intr_enable(p[0], 0), 0);
			assert_false(readable(rx_fd(p[0]), 0));
			su_tx(p[i], su_frame(&mac, p[i], 60, i, 1));
			assert_true(readable(rx_fd(p[0]), SU_PATIENCE / 1000));
			assert_int_equal(rte_eth_dev_rx_intr_disable(p[0], 0), 0);
			assert_int_equal(su_rx(p[0], &m, 1), 1);
			assert_int_equal(su_frame_seq(m), i);
			rte_pktmbuf_free(m);
		}
	}
}

/* ---- fork ---- */

static int
in_child(uint16_t a, uint16_t b)
{
	struct rte_ether_addr mac = su_mac(b);
	struct rte_mbuf *m = NULL;

	if (rte_eth_rx_burst(a, 0, &m, 1) != 0 || rte_eth_tx_burst(a, 0, &m, 1) != 0)
		return 1;
	if (mac.addr_bytes[0] != 2 || rte_eth_dev_stop(a) == 0)
		return 2;
	/* With atexit() and destructors. */
	exit(shared_maps() == 0 ? 3 : 0);
}

static void
child_of_fork_disturbs_nothing(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	int status;
	pid_t pid;

	exchange(a, b, 60, 1);
	exchange(b, a, 60, 2);
	fflush(NULL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		_exit(in_child(a, b));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(su_dir_entries("t"), 3);
	exchange(a, b, 60, 3);
	exchange(b, a, 60, 4);
}

/* A child that lives on must not keep its parent's membership alive. */
static void
child_that_lives_on_does_not_hold_the_segment(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b;
	int pipefd[2];
	pid_t pid;

	b = su_port(1, "t", NULL);
	exchange(a, b, 60, 1);
	assert_int_equal(pipe(pipefd), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		char c;

		close(pipefd[1]);
		_exit(read(pipefd[0], &c, 1) == 0 ? 0 : 1);
	}
	su_close(b);
	su_wait_link(a, false);
	assert_int_equal(su_dir_entries("t"), 2);
	b = su_port(1, "t", NULL);
	exchange(a, b, 60, 2);
	close(pipefd[0]);
	close(pipefd[1]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* ---- who may enter ---- */

static void
directory_open_to_others_is_refused(void **state)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/open", su_dir());
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(su_probe(0, "open", NULL), -EPERM);
	assert_int_equal(rmdir(path), 0);
}

static void
symbolic_link_as_directory_is_refused(void **state)
{
	char path[256], target[256];

	snprintf(path, sizeof(path), "%s/link", su_dir());
	snprintf(target, sizeof(target), "%s/target", su_dir());
	assert_int_equal(mkdir(target, 0700), 0);
	assert_int_equal(symlink(target, path), 0);
	assert_true(su_probe(0, "link", NULL) < 0);
	assert_int_equal(unlink(path), 0);
	/* As the registry. */
	snprintf(path, sizeof(path), "%s/target/members", su_dir());
	assert_int_equal(symlink("/dev/null", path), 0);
	assert_true(su_probe(0, "target", NULL) < 0);
	assert_int_equal(unlink(path), 0);
	rmdir(target);
}

static void
registry_of_another_version_is_made_anew_when_unused(void **state)
{
	char path[256];
	int fd;
	uint16_t a, b;

	snprintf(path, sizeof(path), "%s/t", su_dir());
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/t/members", su_dir());
	fd = open(path, O_CREAT | O_RDWR, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "something else, and older", 25), 25);
	close(fd);
	a = su_port(0, "t", NULL);
	b = su_port(1, "t", NULL);
	exchange(a, b, 60, 1);
}

static int
close_ports(void **state)
{
	su_close_all();
	assert_int_equal(rte_mempool_avail_count(su_pool()), SU_POOL_SIZE);
	assert_int_equal(su_dir_entries("t"), 0);
	return 0;
}

#define TEST(name) cmocka_unit_test_teardown(name, close_ports)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(link_is_up_when_another_member_is),
		TEST(link_changes_are_events),
		TEST(stopped_port_gets_nothing_and_stops_nobody),
		TEST(close_and_probe_again_many_times),
		TEST(frames_nobody_has_read_are_counted_as_lost),
		TEST(close_leaves_nothing_behind),
		TEST(port_that_was_never_configured_can_be_closed),
		TEST(failed_probe_leaves_nothing_behind),
		TEST(hot_unplug_of_a_started_port),
		TEST(lent_frames_outlive_ring_and_port),
		TEST(lent_frames_hold_the_ring_back_in_order),
		TEST(frame_wakes_a_sleeper),
		TEST(frame_before_the_sleep_is_noticed),
		TEST(first_frame_of_a_connection_wakes_a_sleeper),
		TEST(epoll_interface_works),
		TEST(freeing_a_lent_frame_wakes_a_sleeper),
		TEST(no_wakeup_is_lost),
		TEST(many_members_all_talk_to_all),
		TEST(busy_member_does_not_starve_the_others),
		TEST(sleeper_with_many_members_is_woken_by_each),
		TEST(child_of_fork_disturbs_nothing),
		TEST(child_that_lives_on_does_not_hold_the_segment),
		TEST(directory_open_to_others_is_refused),
		TEST(symbolic_link_as_directory_is_refused),
		TEST(registry_of_another_version_is_made_anew_when_unused),
	};

	su_eal_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
