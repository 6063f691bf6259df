/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC on a kernel interface (net_af_packet): a veth pair between two network namespaces, so
 * that addresses and neighbours are the kernel's. Needs the right to make namespaces and packet
 * sockets; skipped without.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <time.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "nic_side.h"
#include "vrb_addr.h"

#define require(cond) \
	do { \
		if (!(cond)) { \
			fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #cond); \
			_exit(1); \
		} \
	} while (0)

struct end {
	pid_t pid;
	int sock;
};

static int
command(const char *format, ...)
{
	char buf[256];
	va_list ap;

	va_start(ap, format);
	vsnprintf(buf, sizeof(buf), format, ap);
	va_end(ap);
	return system(buf);
}

static void
tell(int sock)
{
	require(send(sock, "", 1, 0) == 1);
}

static void
hear(int sock)
{
	require(recv(sock, &(char){0}, 1, MSG_WAITALL) == 1);
}

static uint64_t
cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * UINT64_C(1000000000) + ts.tv_nsec;
}

static int
wait_by_event(struct side *s)
{
	int op;

	while ((op = side_poll(s)) < 0)
		require(side_wait_event(s, 10000));
	require(s->failed == 0);
	return op;
}

static void
open_interface(struct side *s, const char *ifname, int which, int sock)
{
	struct vrb_nic_conf conf = {0};
	struct side_hello mine, peer;
	struct vrb_nic_info info;
	char port[64];

	snprintf(port, sizeof(port), "net_af_packet0,iface=%s", ifname);
	conf.port = port;
	side_open(s, &conf, &mine);
	vrb_nic_query(s->nic, &info);
	require(info.icrc && info.max_mtu == 1024 && info.gid[0].raw[15] == which + 1 &&
		info.gid[1].raw[0] == 0xfe);
	require(send(sock, &mine, sizeof(mine), 0) == sizeof(mine));
	require(recv(sock, &peer, sizeof(peer), MSG_WAITALL) == sizeof(peer));
	/* Numbers are random, since processes on one interface share its address. */
	require(mine.qpn != peer.qpn);
	side_connect(s, &peer);
}

/*
 * The first asks the kernel for addresses that are there, that are not, and that no route leads to.
 */
static void
resolve(struct side *s)
{
	union vrb_gid gid;
	uint8_t mac[6];

	require(vrb_addr_parse("10.99.0.9", &gid) == 0);
	require(vrb_nic_resolve(s->nic, &gid, mac) == -ETIMEDOUT);
	require(vrb_addr_parse("10.98.0.9", &gid) == 0);
	require(vrb_nic_resolve(s->nic, &gid, mac) == -ENETUNREACH);
	require(vrb_addr_parse("10.99.0.2", &gid) == 0);
	require(vrb_nic_resolve(s->nic, &gid, mac) == 0);
}

static void
one_end(int which, int sock)
{
	const char *ifname = which == 0 ? "vrbt0" : "vrbt1";
	struct vrb_nic_conf wrong = {.ip = "10.99.0.77", .ops = &(struct vrb_engine_ops){0}};
	struct vrb_nic *nic;
	char why[300] = "", port[64];
	struct side s;
	uint64_t cpu;

	require(unshare(CLONE_NEWNET) == 0);
	tell(sock);
	hear(sock);
	require(command("ip addr add 10.99.0.%d/24 dev %s && ip link set %s up", which + 1, ifname,
			ifname) == 0);
	snprintf(port, sizeof(port), "net_af_packet0,iface=%s", ifname);
	wrong.port = port;
	require(vrb_nic_open(&wrong, &nic, why, sizeof(why)) == -EADDRNOTAVAIL &&
		strstr(why, "10.99.0.77") != NULL);
	open_interface(&s, ifname, which, sock);
	side_post_recv(&s, 50);
	tell(sock);
	hear(sock);
	for (int i = 0; i < 50; i++) {
		memset(s.buf + SIDE_BUFFER / 2, i + 1, 30000);
		if (which == 0) {
			side_post_send(&s, VRB_WR_RDMA_WRITE, 30000);
			require(wait_by_event(&s) == VRB_WC_RDMA_WRITE);
			side_post_send(&s, VRB_WR_RDMA_READ, 20000);
			require(wait_by_event(&s) == VRB_WC_RDMA_READ);
			require(s.buf[0] == i + 1 && s.buf[19999] == i + 1);
			side_post_send(&s, VRB_WR_SEND, 5000);
			require(wait_by_event(&s) == VRB_WC_SEND);
		} else {
			require(wait_by_event(&s) == VRB_WC_RECV);
			/* The peer may be ahead of us. */
			require(s.buf[29999] >= i + 1);
		}
	}
	tell(sock);
	hear(sock);
	/* The thread looks once in a while, though it would be woken: below 1 % of a core. */
	usleep(100000);
	cpu = cpu_ns();
	usleep(500000);
	require(cpu_ns() - cpu < 5000000);
	if (which == 0)
		resolve(&s);
	tell(sock);
	hear(sock);
	side_close(&s);
}

static struct end
start(int which)
{
	struct end e;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	e.pid = fork();
	assert_true(e.pid >= 0);
	if (e.pid == 0) {
		alarm(60);
		close(pair[0]);
		one_end(which, pair[1]);
		_exit(0);
	}
	close(pair[1]);
	e.sock = pair[0];
	return e;
}

/* Passes on what one end sends to the other, until either has gone. */
static void
relay(struct end *a, struct end *b)
{
	char buf[256];

	for (;;) {
		ssize_t n = recv(a->sock, buf, sizeof(buf), 0),
			m = recv(b->sock, buf + 128, 128, 0);

		if (n <= 0 || m <= 0 || send(b->sock, buf, n, MSG_NOSIGNAL) != n ||
			send(a->sock, buf + 128, m, MSG_NOSIGNAL) != m)
			break;
	}
}

static void
two_namespaces_talk_over_af_packet(void **state)
{
	struct end a, b;
	int status;

	if (system("unshare -n ip link >/dev/null 2>&1") != 0)
		skip();
	a = start(0);
	b = start(1);
	hear(a.sock);
	hear(b.sock);
	assert_int_equal(command("ip link add vrbt0 netns %d type veth peer name vrbt1 netns %d",
				 a.pid, b.pid),
		0);
	tell(a.sock);
	tell(b.sock);
	relay(&a, &b);
	close(a.sock);
	close(b.sock);
	assert_int_equal(waitpid(a.pid, &status, 0), a.pid);
	assert_int_equal(status, 0);
	assert_int_equal(waitpid(b.pid, &status, 0), b.pid);
	assert_int_equal(status, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(two_namespaces_talk_over_af_packet)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
