/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan between processes that are killed at any time: the survivors go on, nothing that a
 * living member sent is lost or damaged, and places in the segment are used again. Each process has
 * an EAL of its own, so they are started with exec(2): "shmlan_kill_test member <dir> <number>" is
 * such a member.
 *
 * VERBENA_TEST_SEED in the environment repeats a run.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_eal.h>

#include "shmlan_private.h"
#include "shmlan_util.h"

#define CHILDREN 3
#define KILLS 25
#define HOSTS 8 /* addresses that members may have */
#define BURST 32

/* A sequence number says who sent it: 12 bits of the sender's number, 20 bits of count for this
 * receiver. */
#define SEQ(id, n) ((uint32_t)(id) << 20 | ((n)&0xfffff))

struct host {
	uint32_t expect; /* next sequence number from this address */
	bool known;
	uint32_t sent;
	struct rte_mbuf *held[BURST]; /* did not fit, to be sent first */
	unsigned int nheld;
	uint64_t last; /* when a burst was tried that did not fit */
	uint64_t stuck; /* for how long none has fitted */
};

struct member {
	uint16_t port;
	uint32_t id;
	unsigned int rnd;
	struct host host[HOSTS];
	uint64_t received;
	uint64_t restarts;
};

static struct rte_ether_addr
host_mac(unsigned int n)
{
	return (struct rte_ether_addr){{2, 0, 0xc6, 0x12, 0, n + 1}};
}

/* Frames of one sender come in order and without a gap; another sender at the same address starts
 * at 0. */
static bool
check(struct member *me, const struct rte_mbuf *m)
{
	const struct rte_ether_hdr *eth = rte_pktmbuf_mtod(m, const struct rte_ether_hdr *);
	unsigned int n = eth->src_addr.addr_bytes[5] - 1;
	struct host *h;
	uint32_t seq;

	if (n >= HOSTS || m->pkt_len < SU_HDR + 4)
		return false;
	h = &me->host[n];
	memcpy(&seq, rte_pktmbuf_mtod_offset(m, const void *, SU_HDR), sizeof(seq));
	if (!su_frame_is(m, m->pkt_len, seq))
		return false;
	if (!h->known || seq != h->expect) {
		if ((seq & 0xfffff) != 0 || (h->known && seq >> 20 == h->expect >> 20)) {
			fprintf(stderr, "from %u: got %x, expected %x\n", n, seq, h->expect);
			return false;
		}
		me->restarts++;
	}
	h->known = true;
	h->expect = SEQ(seq >> 20, seq + 1);
	me->received++;
	return true;
}

static bool
receive(struct member *me)
{
	struct rte_mbuf *m[BURST];
	unsigned int i, n = rte_eth_rx_burst(me->port, 0, m, BURST);
	bool ok = true;

	for (i = 0; i < n; i++)
		ok &= check(me, m[i]);
	rte_pktmbuf_free_bulk(m, n);
	return ok;
}

/* Sends a burst to one address, or the rest of the one before. False when a ring stays full for
 * seconds. */
static bool
transmit(struct member *me, unsigned int n)
{
	struct rte_ether_addr mac = host_mac(n);
	struct host *h = &me->host[n];
	unsigned int i, sent;

	if (h->nheld == 0) {
		unsigned int count = 1 + rand_r(&me->rnd) % BURST;

		for (i = 0; i < count; i++) {
			uint32_t len = rand_r(&me->rnd) % 4 == 0 ? 60 + rand_r(&me->rnd) % 4000
								 : 60 + rand_r(&me->rnd) % 60;

			h->held[h->nheld++] =
				su_frame(&mac, me->port, len, SEQ(me->id, h->sent), 1);
			h->sent++;
		}
	}
	sent = rte_eth_tx_burst(me->port, 0, h->held, h->nheld);
	memmove(h->held, h->held + sent, (h->nheld - sent) * sizeof(h->held[0]));
	h->nheld -= sent;
	if (sent != 0) {
		h->stuck = h->last = 0;
		return true;
	}
	/* Time in which we did not run does not count: the peer may not have run either. */
	if (h->last != 0)
		h->stuck += RTE_MIN(su_now() - h->last, (uint64_t)1000);
	h->last = su_now();
	return h->stuck < SU_PATIENCE / 2;
}

/*
 * The slot of the member at an address, if it can receive. A frame to an address that nobody has is
 * dropped, which would be a gap in the sequence, so the numbers start anew with each new owner.
 */
static bool
host_ready(struct member *me, unsigned int n, uint64_t *inc)
{
	struct shm_reg *reg = &shm_port_of(&rte_eth_devices[me->port])->reg;
	struct rte_ether_addr mac = host_mac(n);
	unsigned int i;

	for (i = 0; i < VRB_SHMLAN_MEMBERS; i++) {
		uint64_t w = atomic_load(&reg->file->entry[i].word);

		if ((w & SHM_ENTRY_UP) && (w & SHM_MAC_MASK) == shm_mac_key(&mac) &&
			i != reg->slot) {
			*inc = atomic_load(&reg->file->entry[i].inc);
			return true;
		}
	}
	return false;
}

static int
step(struct member *me)
{
	static uint64_t owner[HOSTS];
	unsigned int n = rand_r(&me->rnd) % HOSTS;
	struct host *h = &me->host[n];
	uint64_t inc;

	if (!receive(me))
		return 3;
	if (!host_ready(me, n, &inc))
		return 0;
	if (owner[n] != inc) {
		owner[n] = inc;
		rte_pktmbuf_free_bulk(h->held, h->nheld);
		h->nheld = 0;
		h->stuck = h->last = 0;
		/* A new name with it: what is still on its way to the former owner does not matter.
		 */
		h->sent = 0;
	}
	return transmit(me, n) ? 0 : 4;
}

static int
member_main(const char *dir, unsigned int id)
{
	struct member me = {.id = id & 0xfff, .rnd = id};
	int rc = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	su_use_dir(dir);
	su_eal_init();
	me.port = su_port(0, "t", id & 1 ? "rx_zc=1" : NULL);
	while (rc == 0)
		rc = step(&me);
	fprintf(stderr, "member %u: %s\n", id,
		rc == 3 ? "received something wrong" : "a ring stays full");
	return rc;
}

/* ---- the survivor ---- */

static pid_t child[CHILDREN];
static unsigned int next_id = 1;

static pid_t
start_member(void)
{
	char id[16];
	pid_t pid;

	snprintf(id, sizeof(id), "%u", ++next_id);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", "shmlan_kill_test", "member", su_dir(), id, NULL);
		_exit(127);
	}
	return pid;
}

static bool
members_fine(void)
{
	unsigned int i;
	int status;

	for (i = 0; i < CHILDREN; i++) {
		if (child[i] > 0 && waitpid(child[i], &status, WNOHANG) != 0) {
			fprintf(stderr, "member ended by itself: status %x\n", status);
			child[i] = 0;
			return false;
		}
	}
	return true;
}

static void
kill_member(unsigned int i)
{
	char path[PATH_MAX];
	char *name;

	if (child[i] <= 0)
		return;
	kill(child[i], SIGKILL);
	waitpid(child[i], NULL, 0);
	/* What its EAL has left, beside ours. */
	snprintf(path, sizeof(path), "%s", rte_eal_get_runtime_dir());
	name = strrchr(path, '/') + 1;
	snprintf(name, path + sizeof(path) - name, "shmlan-test-%d", child[i]);
	rmdir(path);
	child[i] = 0;
}

static int
kill_all(void **state)
{
	unsigned int i;

	for (i = 0; i < CHILDREN; i++)
		kill_member(i);
	su_close_all();
	return 0;
}

static void
run_for(struct member *me, unsigned int us)
{
	uint64_t end = su_now() + us;

	do {
		assert_int_equal(step(me), 0);
	} while (su_now() < end);
}

static void
wait_for_members(struct member *me, unsigned int n)
{
	uint64_t end = su_now() + SU_PATIENCE;
	struct shm_reg *reg = &shm_port_of(&rte_eth_devices[me->port])->reg;

	while (vrb_shmlan_reg_others_up(reg) != n && su_now() < end) {
		assert_int_equal(step(me), 0);
		assert_true(members_fine());
	}
	assert_int_equal(vrb_shmlan_reg_others_up(reg), n);
}

static void
survivors_go_on_when_members_are_killed(void **state)
{
	const char *seed = getenv("VERBENA_TEST_SEED");
	struct member me = {.id = 1, .rnd = seed != NULL ? atoi(seed) : getpid()};
	struct shm_reg *reg;
	unsigned int i, k;

	print_message("VERBENA_TEST_SEED=%u\n", me.rnd);
	me.port = su_port(0, "t", NULL);
	reg = &shm_port_of(&rte_eth_devices[me.port])->reg;
	for (i = 0; i < CHILDREN; i++)
		child[i] = start_member();
	wait_for_members(&me, CHILDREN);
	for (k = 0; k < KILLS; k++) {
		run_for(&me, rand_r(&me.rnd) % 30000);
		assert_true(members_fine());
		i = rand_r(&me.rnd) % CHILDREN;
		kill_member(i);
		child[i] = start_member();
		/* Often while the new one is starting, and sometimes when all are there. */
		if (k % 4 == 0)
			wait_for_members(&me, CHILDREN);
	}
	wait_for_members(&me, CHILDREN);
	run_for(&me, 50000);
	assert_true(members_fine());
	assert_true(me.received > 1000);
	assert_true(me.restarts >= CHILDREN);
	/* Places are used again: a few more than members, as a new one may come before the old one
	 * is noticed. */
	assert_true(atomic_load(&reg->file->high) <= CHILDREN + 1 + 2);

	for (i = 0; i < CHILDREN; i++)
		kill_member(i);
	su_wait_link(me.port, false);
	assert_int_equal(su_dir_entries("t"), 2);
	for (i = 0; i < HOSTS; i++)
		rte_pktmbuf_free_bulk(me.host[i].held, me.host[i].nheld);
}

/* Nobody is left to notice: whoever comes next cleans up. */
static void
segment_of_dead_members_is_used_again(void **state)
{
	uint64_t end = su_now() + SU_PATIENCE;
	struct rte_ether_addr mac, first = host_mac(0);
	unsigned int i;
	uint16_t port;

	for (i = 0; i < CHILDREN; i++)
		child[i] = start_member();
	while (su_dir_entries("t") != CHILDREN + 1 && su_now() < end)
		usleep(1000);
	for (i = 0; i < CHILDREN; i++)
		kill(child[i], SIGSTOP);
	for (i = 0; i < CHILDREN; i++)
		kill_member(i);
	assert_int_equal(su_dir_entries("t"), CHILDREN + 1);
	port = su_port(0, "t", NULL);
	mac = su_mac(port);
	assert_true(rte_is_same_ether_addr(&mac, &first));
	assert_int_equal(su_dir_entries("t"), 2);
	su_wait_link(port, false);
	su_close(port);
	assert_int_equal(su_dir_entries("t"), 0);
}

/* A member that is stopped, and not dead, is back-pressure for unicast and nothing more. */
static void
stopped_process_holds_up_only_its_own_frames(void **state)
{
	struct rte_ether_addr first = host_mac(0);
	struct rte_mbuf *m;
	unsigned int i;
	uint16_t port;

	child[0] = start_member();
	while (su_dir_entries("t") != 2)
		usleep(1000);
	port = su_port(0, "t", NULL);
	su_wait_link(port, true);
	kill(child[0], SIGSTOP);
	for (i = 0; i < 3000; i++) {
		m = su_frame(&first, port, 60, SEQ(1, i), 1);
		if (rte_eth_tx_burst(port, 0, &m, 1) == 0) {
			rte_pktmbuf_free(m);
			break;
		}
	}
	assert_int_equal(i, SHM_SLOTS_DEFAULT);
	/* Its death ends that. */
	kill_member(0);
	su_wait_link(port, false);
	m = su_frame(&first, port, 60, 0, 1);
	assert_int_equal(rte_eth_tx_burst(port, 0, &m, 1), 1);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(survivors_go_on_when_members_are_killed, kill_all),
		cmocka_unit_test_teardown(segment_of_dead_members_is_used_again, kill_all),
		cmocka_unit_test_teardown(stopped_process_holds_up_only_its_own_frames, kill_all),
	};

	if (argc == 4 && strcmp(argv[1], "member") == 0)
		return member_main(argv[2], atoi(argv[3]));
	su_eal_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
