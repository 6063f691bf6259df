/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NICs over net_shmlan: opened, asked, used from several processes, killed and forked. Each test's
 * segment is in a directory of its own, which is removed afterwards.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "nic_remote.h"

#define WAIT_MS 5000

static void
open_pair(struct side *a, struct side *b)
{
	struct vrb_nic_conf ca = {.segment = "pair"}, cb = {.segment = "pair"};
	struct side_hello ha, hb;

	side_open(a, &ca, &ha);
	side_open(b, &cb, &hb);
	side_connect(a, &hb);
	side_connect(b, &ha);
}

static int
wait_by_event(struct side *s)
{
	int op;

	while ((op = side_poll(s)) < 0)
		require(side_wait_event(s, WAIT_MS));
	require(s->failed == 0);
	return op;
}

/* ---- one process, two NICs ---- */

static void
exchange(void)
{
	struct side a, b;

	open_pair(&a, &b);
	side_post_recv(&b, 100);
	for (int i = 0; i < 100; i++) {
		uint32_t len = i < 50 ? i + 1 : i * 997;

		memset(a.buf, i + 1, len);
		side_post_send(&a, VRB_WR_SEND, len);
		require(wait_by_event(&b) == VRB_WC_RECV);
		require(wait_by_event(&a) == VRB_WC_SEND);
		require(b.buf[0] == i + 1 && b.buf[len - 1] == i + 1);
	}
	memset(a.buf + SIDE_BUFFER / 2, 0x5a, 1 << 20);
	side_post_send(&a, VRB_WR_RDMA_WRITE, 1 << 20);
	require(wait_by_event(&a) == VRB_WC_RDMA_WRITE);
	require(memcmp(b.buf, a.buf + SIDE_BUFFER / 2, 1 << 20) == 0);
	side_post_send(&b, VRB_WR_RDMA_READ, 1 << 20);
	require(wait_by_event(&b) == VRB_WC_RDMA_READ);
	require(memcmp(b.buf, a.buf, 1 << 20) == 0);
	side_close(&a);
	side_close(&b);
}

static void
two_nics_of_a_process_talk(void **state)
{
	run_in_child(exchange);
}

static void
to_itself(void)
{
	struct vrb_nic_conf conf = {.segment = "self"};
	struct side_hello hello;
	struct side s;
	int got[2];

	side_open(&s, &conf, &hello);
	side_connect(&s, &hello);
	side_post_recv(&s, 1);
	s.buf[0] = 77;
	side_post_send(&s, VRB_WR_SEND, 100);
	got[0] = wait_by_event(&s);
	got[1] = wait_by_event(&s);
	require(got[0] + got[1] == VRB_WC_RECV + VRB_WC_SEND);
	side_close(&s);
}

static void
a_nic_talks_to_itself(void **state)
{
	run_in_child(to_itself);
}

/* ---- what the NIC says of itself ---- */

static void
addresses(void)
{
	struct vrb_nic_conf automatic = {.segment = "addr", .ops = &(struct vrb_engine_ops){0}};
	struct vrb_nic_conf given = automatic, taken, v6 = automatic, bad = automatic;
	static const uint8_t first[6] = {2, 0, 198, 18, 0, 1}, seventh[6] = {2, 0, 10, 7, 7, 7};
	struct vrb_nic *a, *b, *c, *d;
	struct vrb_nic_info ia, ib, ic;
	uint8_t mac[6];
	char why[300];

	require(vrb_nic_open(&automatic, &a, why, sizeof(why)) == 0);
	vrb_nic_query(a, &ia);
	require(memcmp(ia.mac, first, 6) == 0 && ia.gid[0].raw[15] == 1 &&
		ia.gid[0].raw[12] == 198);
	require(ia.link_up && ia.max_mtu == 4096 && !ia.icrc &&
		strcmp(ia.driver, "net_shmlan") == 0);
	given.ip = "10.7.7.7";
	require(vrb_nic_open(&given, &b, why, sizeof(why)) == 0);
	vrb_nic_query(b, &ib);
	require(memcmp(ib.mac, seventh, 6) == 0);
	v6.ip = "2001:db8::1";
	v6.icrc = VRB_ICRC_ON;
	require(vrb_nic_open(&v6, &c, why, sizeof(why)) == 0);
	vrb_nic_query(c, &ic);
	require(ic.gid[0].raw[0] == 0x20 && ic.icrc);
	/* Each finds the others by either GID. */
	for (int i = 0; i < VRB_GIDS; i++) {
		require(vrb_nic_resolve(a, &ib.gid[i], mac) == 0 && memcmp(mac, ib.mac, 6) == 0);
		require(vrb_nic_resolve(a, &ic.gid[i], mac) == 0 && memcmp(mac, ic.mac, 6) == 0);
		require(vrb_nic_resolve(c, &ia.gid[i], mac) == 0 && memcmp(mac, ia.mac, 6) == 0);
		require(vrb_nic_resolve(a, &ia.gid[i], mac) == 0 && memcmp(mac, ia.mac, 6) == 0);
	}
	require(vrb_nic_resolve(a, &(union vrb_gid){0}, mac) == -EINVAL);
	taken = given;
	why[0] = '\0';
	require(vrb_nic_open(&taken, &d, why, sizeof(why)) == -EADDRINUSE && strlen(why) > 20);
	bad.ip = "127.0.0.1";
	why[0] = '\0';
	require(vrb_nic_open(&bad, &d, why, sizeof(why)) == -EINVAL &&
		strstr(why, "127.0.0.1") != NULL);
	bad.ip = NULL;
	bad.port = "net_nonsense0";
	why[0] = '\0';
	require(vrb_nic_open(&bad, &d, why, sizeof(why)) < 0 &&
		strstr(why, "net_nonsense0") != NULL);
	bad.port = "net_null0";
	require(vrb_nic_open(&bad, &d, why, sizeof(why)) == -EINVAL &&
		strstr(why, "IP address") != NULL);
	vrb_nic_close(b);
	require(vrb_nic_open(&taken, &b, why, sizeof(why)) == 0);
	vrb_nic_close(a);
	vrb_nic_close(b);
	vrb_nic_close(c);
}

static void
addresses_are_given_derived_and_unique(void **state)
{
	run_in_child(addresses);
}

static void
guest(void)
{
	struct vrb_nic_conf conf = {.segment = "guest", .ops = &(struct vrb_engine_ops){0}};
	cpu_set_t before, after;
	sigset_t mask_before, mask_after;
	struct vrb_nic *nic;
	char why[300], out[16];
	char words[][8] = {"x", "-a", "value", "-b", "rest"};
	char *const argv[] = {words[0], words[1], words[2], words[3], words[4], NULL};
	int fds[2], old, opt;

	/*
	 * In the middle of an option list, with stdout watched, bound to a CPU, and with little
	 * memory to lock.
	 */
	setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){65536, 65536});
	require(pipe(fds) == 0 && (old = dup(1)) >= 0 && dup2(fds[1], 1) == 1);
	optind = 1;
	opt = getopt(5, argv, "a:b");
	require(opt == 'a' && strcmp(optarg, "value") == 0);
	CPU_ZERO(&before);
	CPU_SET(sched_getcpu(), &before);
	require(sched_setaffinity(0, sizeof(before), &before) == 0);
	/* The kernel's set is smaller than libc's. */
	memset(&mask_before, 0, sizeof(mask_before));
	memset(&mask_after, 0, sizeof(mask_after));
	pthread_sigmask(SIG_SETMASK, NULL, &mask_before);
	require(vrb_nic_open(&conf, &nic, why, sizeof(why)) == 0);
	vrb_nic_close(nic);
	require(strcmp(optarg, "value") == 0 && getopt(5, argv, "a:b") == 'b');
	require(sched_getaffinity(0, sizeof(after), &after) == 0 && CPU_EQUAL(&before, &after));
	pthread_sigmask(SIG_SETMASK, NULL, &mask_after);
	require(memcmp(&mask_before, &mask_after, sizeof(mask_before)) == 0);
	fflush(stdout);
	require(fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0 && read(fds[0], out, sizeof(out)) < 0);
	dup2(old, 1);
}

static void
the_program_does_not_notice_eal(void **state)
{
	run_in_child(guest);
}

static void
bad_eal_arguments(void)
{
	struct vrb_nic_conf conf = {.segment = "bad", .ops = &(struct vrb_engine_ops){0}};
	struct vrb_nic *nic;
	char why[300] = "", out[16];
	int fds[2], old;

	conf.eal_args = "--help";
	require(pipe(fds) == 0 && (old = dup(1)) >= 0 && dup2(fds[1], 1) == 1);
	require(vrb_nic_open(&conf, &nic, why, sizeof(why)) < 0);
	require(strstr(why, "--help") != NULL);
	fflush(stdout);
	require(fcntl(fds[0], F_SETFL, O_NONBLOCK) == 0 && read(fds[0], out, sizeof(out)) < 0);
	dup2(old, 1);
}

static void
an_eal_that_fails_gives_a_sentence(void **state)
{
	run_in_child(bad_eal_arguments);
}

/* ---- sleeping ---- */

static uint64_t
cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}

static void
idle(void)
{
	struct side a, b;
	uint64_t cpu;

	open_pair(&a, &b);
	side_post_recv(&b, 2);
	side_post_send(&a, VRB_WR_SEND, 8);
	require(wait_by_event(&b) == VRB_WC_RECV && wait_by_event(&a) == VRB_WC_SEND);
	/* Armed, and nothing comes. */
	require(!side_wait_event(&b, 100));
	cpu = cpu_ns();
	require(!side_wait_event(&b, 1000));
	/* 1 % of a core; both NICs. */
	require(cpu_ns() - cpu < 10000000);
	side_post_send(&a, VRB_WR_SEND, 8);
	require(side_wait_event(&b, WAIT_MS));
	side_close(&a);
	side_close(&b);
}

static void
waiting_for_an_event_costs_no_cpu(void **state)
{
	run_in_child(idle);
}

/* ---- two processes ---- */

static void
echo(struct side *s, int sock)
{
	side_post_recv(s, 100);
	require(send(sock, "", 1, 0) == 1);
	for (int i = 0; i < 300; i++) {
		int op;

		do
			op = i < 100 ? side_wait(s) : wait_by_event(s);
		while (op != VRB_WC_RECV);
		side_post_recv(s, 1);
		side_post_send(s, VRB_WR_SEND, 4096);
	}
	while (side_wait(s) != VRB_WC_SEND)
		;
	/* The target of one-sided operations sleeps in the kernel. */
	require(send(sock, "", 1, 0) == 1);
	require(recv(sock, &(char){0}, 1, 0) == 0);
}

static void
two_processes(void)
{
	struct remote r = start_remote(echo, VRB_DIRECT_AUTO);
	struct side s;

	open_remote(&s, r.sock, VRB_DIRECT_AUTO);
	side_post_recv(&s, 100);
	require(recv(r.sock, &(char){0}, 1, 0) == 1);
	for (int i = 0; i < 300; i++) {
		side_post_send(&s, VRB_WR_SEND, 4096);
		for (int need = 2; need > 0; need--)
			if ((i < 200 ? side_wait(&s) : wait_by_event(&s)) == VRB_WC_RECV)
				side_post_recv(&s, 1);
	}
	require(recv(r.sock, &(char){0}, 1, 0) == 1);
	for (int i = 0; i < 50; i++) {
		memset(s.buf + SIDE_BUFFER / 2, i, 100000);
		side_post_send(&s, VRB_WR_RDMA_WRITE, 100000);
		require(side_wait(&s) == VRB_WC_RDMA_WRITE);
		side_post_send(&s, VRB_WR_RDMA_READ, 100000);
		require(side_wait(&s) == VRB_WC_RDMA_READ);
		require(s.buf[0] == i && s.buf[99999] == i);
	}
	require(s.failed == 0);
	end_remote(&r);
	side_close(&s);
}

static void
two_processes_talk(void **state)
{
	run_in_child(two_processes);
}

static void
sleep_for_ever(struct side *s, int sock)
{
	side_post_recv(s, 100);
	require(send(sock, "", 1, 0) == 1);
	pause();
}

static void
peer_is_killed(void)
{
	struct remote r = start_remote(sleep_for_ever, VRB_DIRECT_AUTO);
	struct side s;
	int status;

	open_remote(&s, r.sock, VRB_DIRECT_AUTO);
	require(recv(r.sock, &(char){0}, 1, 0) == 1);
	side_post_send(&s, VRB_WR_SEND, 100);
	require(side_wait(&s) == VRB_WC_SEND && s.failed == 0);
	kill(r.pid, SIGKILL);
	require(waitpid(r.pid, &status, 0) == r.pid);
	/*
	 * Nobody acknowledges it: the retry counter runs out (7 x 67 ms), found out by a thread
	 * that slept.
	 */
	side_post_send(&s, VRB_WR_SEND, 100);
	require(side_wait_event(&s, WAIT_MS));
	side_poll(&s);
	require(s.failed == VRB_WC_RETRY_EXC_ERR);
	close(r.sock);
	side_close(&s);
}

static void
a_killed_peer_is_noticed_while_asleep(void **state)
{
	run_in_child(peer_is_killed);
}

static void
fork_goes_on(void)
{
	struct side a, b;
	pid_t pid;
	int status;

	open_pair(&a, &b);
	side_post_recv(&b, 20);
	for (int i = 0; i < 10; i++) {
		pid = fork();
		require(pid >= 0);
		if (pid == 0) {
			/* All of it without effect. */
			require(vrb_nic_forked(a.nic));
			side_post_send(&a, VRB_WR_SEND, 10);
			require(side_poll(&a) < 0);
			vrb_nic_close(a.nic);
			vrb_nic_close(b.nic);
			exit(0); /* not _exit(): destructors run as well */
		}
		side_post_send(&a, VRB_WR_SEND, 1000);
		require(wait_by_event(&b) == VRB_WC_RECV && wait_by_event(&a) == VRB_WC_SEND);
		require(waitpid(pid, &status, 0) == pid && status == 0);
		require(!vrb_nic_forked(a.nic));
	}
	side_close(&a);
	side_close(&b);
}

static void
a_forked_child_does_not_disturb(void **state)
{
	run_in_child(fork_goes_on);
}

static void
fork_then_open(void)
{
	struct vrb_nic_conf conf = {.segment = "late", .ops = &(struct vrb_engine_ops){0}};
	struct vrb_nic *nic;
	char why[300] = "";
	int status;
	pid_t pid;

	require(vrb_nic_open(&conf, &nic, why, sizeof(why)) == 0);
	pid = fork();
	require(pid >= 0);
	if (pid == 0) {
		require(vrb_nic_open(&conf, &nic, why, sizeof(why)) == -ENOTSUP &&
			strstr(why, "fork") != NULL);
		_exit(0);
	}
	require(waitpid(pid, &status, 0) == pid && status == 0);
	vrb_nic_close(nic);
}

static void
opening_in_a_forked_child_is_refused_with_a_sentence(void **state)
{
	run_in_child(fork_then_open);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_nics_of_a_process_talk),
		cmocka_unit_test(a_nic_talks_to_itself),
		cmocka_unit_test(addresses_are_given_derived_and_unique),
		cmocka_unit_test(the_program_does_not_notice_eal),
		cmocka_unit_test(an_eal_that_fails_gives_a_sentence),
		cmocka_unit_test(waiting_for_an_event_costs_no_cpu),
		cmocka_unit_test(two_processes_talk),
		cmocka_unit_test(a_killed_peer_is_noticed_while_asleep),
		cmocka_unit_test(a_forked_child_does_not_disturb),
		cmocka_unit_test(opening_in_a_forked_child_is_refused_with_a_sentence),
	};

	return cmocka_run_group_tests(tests, remote_make_dir, remote_remove_dir);
}
