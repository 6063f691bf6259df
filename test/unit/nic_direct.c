/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The direct path between processes: bytes arrive, what a target takes back stays its own, and what
 * cannot be done directly ends as it does with packets.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "nic_remote.h"

#define AREA (1u << 20) /* the target's memory that comes and goes */
#define WAIT_MS 10000

static void
tell(int sock, const void *what, size_t len)
{
	require(send(sock, what, len, MSG_NOSIGNAL) == (ssize_t)len);
}

static void
hear(int sock, void *what, size_t len)
{
	require(recv(sock, what, len, MSG_WAITALL) == (ssize_t)len);
}

/* Connected, until the other side has had enough. */
static void
be_target(struct side *s, int sock)
{
	tell(sock, "", 1);
	require(recv(sock, &(char){0}, 1, 0) == 0);
}

static void
fill(uint8_t *p, uint32_t len, uint32_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		p[i] = (uint8_t)(seed + i * 7 + (i >> 8));
}

static uint64_t
direct_messages(const struct side *s)
{
	const struct vrb_stats *stats = vrb_engine_stats(s->engine);

	return stats->direct_writes + stats->direct_reads;
}

/* ---- bytes ---- */

static const uint32_t sizes[] = {1, 7, 8, 9, 63, 64, 65, 4095, 4096, 4097, 65536, 100001,
	(1u << 20) - 1, 1u << 20, (1u << 20) + 3, SIDE_BUFFER / 2};

/* Writes, and reads back. @return how many messages that were */
static unsigned int
move_all_sizes(struct side *s)
{
	uint8_t *from = s->buf + SIDE_BUFFER / 2;

	for (unsigned int i = 0; i < RTE_DIM(sizes); i++) {
		fill(from, sizes[i], i);
		side_post_send(s, VRB_WR_RDMA_WRITE, sizes[i]);
		require(side_wait(s) == VRB_WC_RDMA_WRITE && s->failed == 0);
		memset(s->buf, 0xee, SIDE_BUFFER / 2);
		side_post_send(s, VRB_WR_RDMA_READ, sizes[i]);
		require(side_wait(s) == VRB_WC_RDMA_READ && s->failed == 0);
		require(memcmp(s->buf, from, sizes[i]) == 0);
		require(sizes[i] == SIDE_BUFFER / 2 || s->buf[sizes[i]] == 0xee);
	}
	return 2 * RTE_DIM(sizes);
}

static void
move_in_mode(enum vrb_direct_mode mode)
{
	struct remote r = start_remote(be_target, mode);
	unsigned int messages;
	struct side s;

	open_remote(&s, r.sock, mode);
	hear(r.sock, &(char){0}, 1);
	messages = move_all_sizes(&s);
	if (mode == VRB_DIRECT_ALWAYS)
		require(direct_messages(&s) == messages);
	else if (mode == VRB_DIRECT_OFF)
		require(direct_messages(&s) == 0);
	else
		/* At least those that are large. */
		require(direct_messages(&s) >= 12);
	end_remote(&r);
	side_close(&s);
}

static void
all_directly(void)
{
	move_in_mode(VRB_DIRECT_ALWAYS);
}

static void
as_it_thinks_best(void)
{
	move_in_mode(VRB_DIRECT_AUTO);
}

static void
all_in_packets(void)
{
	move_in_mode(VRB_DIRECT_OFF);
}

static void
bytes_of_all_sizes_arrive(void **state)
{
	run_in_child(all_directly);
	run_in_child(as_it_thinks_best);
	run_in_child(all_in_packets);
}

/* ---- what a target takes back ---- */

#define TURNS 12

static void
back_to_reset(struct side *s)
{
	struct vrb_qp_attr a = {.state = VRB_QPS_RESET};

	vrb_nic_lock(s->nic);
	require(vrb_qp_modify(s->qp, &a, VRB_QP_STATE, vrb_nic_now(s->nic)) == 0);
	vrb_nic_unlock(s->nic);
}

static void
deregister(struct side *s, struct vrb_mr *mr)
{
	vrb_nic_lock(s->nic);
	require(vrb_mr_dereg(s->engine, mr) == 0);
	vrb_nic_unlock(s->nic);
}

struct offer {
	uint64_t addr;
	uint32_t rkey;
};

/* Nobody has written to it since it was taken back. */
static void
check_untouched(const uint8_t *area)
{
	usleep(2000);
	for (uint32_t i = 0; i < AREA; i++)
		require(area[i] == 0x55);
}

static void
take_back(struct side *s, int sock)
{
	uint8_t *area =
		mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct side_hello peer;
	struct vrb_mr *mr;

	require(area != MAP_FAILED);
	hear(sock, &peer, sizeof(peer));
	for (unsigned int turn = 0; turn < TURNS; turn++) {
		struct offer offer = {.addr = (uintptr_t)area};

		vrb_nic_lock(s->nic);
		require(vrb_mr_reg(s->engine, s->pd, (uintptr_t)area, AREA, (uintptr_t)area,
				VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE_WRITE, &mr) == 0);
		vrb_nic_unlock(s->nic);
		offer.rkey = mr->rkey;
		back_to_reset(s);
		side_connect(s, &peer);
		tell(sock, &offer, sizeof(offer));
		/* The last page is written when the first WRITE has arrived. */
		while (*(volatile uint8_t *)(area + AREA - 1) != (uint8_t)(turn + 1))
			usleep(10);
		usleep(turn * 37);
		/* Either of the two has to be enough. */
		if (turn % 2 == 0)
			back_to_reset(s);
		else
			deregister(s, mr);
		memset(area, 0x55, AREA);
		check_untouched(area);
		if (turn % 2 == 0)
			deregister(s, mr);
		/* Nothing of this connection comes any more when the next begins. */
		hear(sock, &(char){0}, 1);
	}
	be_target(s, sock);
}

/* WRITEs until one fails. @return its status */
static int
write_until_refused(struct side *s, unsigned int turn)
{
	s->failed = 0;
	memset(s->buf + SIDE_BUFFER / 2, turn + 1, AREA);
	while (s->failed == 0) {
		side_post_send(
			s, VRB_WR_RDMA_WRITE, turn % 3 == 0 ? AREA : AREA - 4096 * (turn % 7));
		require(side_wait(s) >= 0);
	}
	return s->failed;
}

static void
write_to_what_is_taken_back(void)
{
	struct remote r = start_remote(take_back, VRB_DIRECT_ALWAYS);
	struct vrb_nic_info info;
	struct side_hello mine;
	struct offer offer;
	struct side s;

	open_remote(&s, r.sock, VRB_DIRECT_ALWAYS);
	vrb_nic_query(s.nic, &info);
	mine = (struct side_hello){info.gid[0], vrb_qp_num(s.qp), s.mr->rkey, (uintptr_t)s.buf};
	tell(r.sock, &mine, sizeof(mine));
	for (unsigned int turn = 0; turn < TURNS; turn++) {
		struct side_hello to = s.peer;

		hear(r.sock, &offer, sizeof(offer));
		to.addr = offer.addr;
		to.rkey = offer.rkey;
		back_to_reset(&s);
		side_connect(&s, &to);
		/* The first touches the last byte. */
		s.failed = 0;
		memset(s.buf + SIDE_BUFFER / 2, turn + 1, AREA);
		side_post_send(&s, VRB_WR_RDMA_WRITE, AREA);
		require(side_wait(&s) == VRB_WC_RDMA_WRITE);
		require(write_until_refused(&s, turn) ==
			(turn % 2 == 0 ? VRB_WC_RETRY_EXC_ERR : VRB_WC_REM_ACCESS_ERR));
		tell(r.sock, "", 1);
	}
	require(direct_messages(&s) >= TURNS);
	hear(r.sock, &(char){0}, 1);
	end_remote(&r);
	side_close(&s);
}

static void
nothing_is_written_after_it_was_taken_back(void **state)
{
	run_in_child(write_to_what_is_taken_back);
}

/* ---- errors ---- */

static void
unmap_and_wait(struct side *s, int sock)
{
	uint8_t *area =
		mmap(NULL, AREA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct offer offer = {.addr = (uintptr_t)area};
	struct vrb_mr *mr;

	vrb_nic_lock(s->nic);
	require(vrb_mr_reg(s->engine, s->pd, offer.addr, AREA, offer.addr,
			VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE_WRITE, &mr) == 0);
	vrb_nic_unlock(s->nic);
	offer.rkey = mr->rkey;
	require(munmap(area + AREA / 2, AREA / 2) == 0);
	tell(sock, &offer, sizeof(offer));
	be_target(s, sock);
}

static void
write_to_what_is_gone(void)
{
	struct remote r = start_remote(unmap_and_wait, VRB_DIRECT_ALWAYS);
	struct offer offer;
	struct side s;

	open_remote(&s, r.sock, VRB_DIRECT_ALWAYS);
	hear(r.sock, &offer, sizeof(offer));
	hear(r.sock, &(char){0}, 1);
	s.peer.addr = offer.addr;
	s.peer.rkey = offer.rkey;
	side_post_send(&s, VRB_WR_RDMA_WRITE, AREA / 2);
	require(side_wait(&s) == VRB_WC_RDMA_WRITE && s.failed == 0);
	require(direct_messages(&s) == 1);
	side_post_send(&s, VRB_WR_RDMA_WRITE, AREA);
	require(side_wait(&s) >= 0);
	require(s.failed == VRB_WC_REM_OP_ERR || s.failed == VRB_WC_REM_ACCESS_ERR);
	end_remote(&r);
	side_close(&s);
}

static void
memory_that_is_gone_is_an_error_of_the_target(void **state)
{
	run_in_child(write_to_what_is_gone);
}

static void
become_another_program(struct side *s, int sock)
{
	char name[] = "sleep", arg[] = "20";

	tell(sock, "", 1);
	hear(sock, &(char){0}, 1);
	execlp(name, name, arg, (char *)NULL);
	_exit(1);
}

/* WRITEs while the target ends. @return the status of the one that failed */
static int
write_while_it_ends(void (*target)(struct side *s, int sock), bool by_signal)
{
	struct remote r = start_remote(target, VRB_DIRECT_ALWAYS);
	struct side s;
	int failed;

	open_remote(&s, r.sock, VRB_DIRECT_ALWAYS);
	hear(r.sock, &(char){0}, 1);
	for (unsigned int i = 0; i < 1000 && s.failed == 0; i++) {
		side_post_send(&s, VRB_WR_RDMA_WRITE, AREA);
		require(side_wait(&s) >= 0);
		if (i == 20 && by_signal)
			kill(r.pid, SIGKILL);
		else if (i == 20)
			tell(r.sock, "", 1);
	}
	require(direct_messages(&s) >= 20);
	failed = s.failed;
	while (failed == 0) {
		side_post_send(&s, VRB_WR_RDMA_WRITE, AREA);
		require(side_wait_event(&s, WAIT_MS));
		side_poll(&s);
		failed = s.failed;
	}
	kill(r.pid, SIGKILL);
	require(waitpid(r.pid, NULL, 0) == r.pid);
	close(r.sock);
	side_close(&s);
	return failed;
}

static void
target_is_killed(void)
{
	require(write_while_it_ends(be_target, true) == VRB_WC_RETRY_EXC_ERR);
}

static void
target_becomes_another_program(void)
{
	require(write_while_it_ends(become_another_program, false) == VRB_WC_RETRY_EXC_ERR);
}

static void
a_target_that_has_gone_is_not_written_to(void **state)
{
	run_in_child(target_is_killed);
	run_in_child(target_becomes_another_program);
}

/* ---- where the kernel does not allow it ---- */

/* A process that has changed its user may not be looked into by that user (PR_SET_DUMPABLE). */
static void
not_allowed(void)
{
	struct remote r;
	struct side s;

	if (geteuid() == 0)
		require(chmod(getenv("XDG_RUNTIME_DIR"), 0755) == 0 &&
			setenv("XDG_RUNTIME_DIR", "", 1) == 0 &&
			setresuid(65534, 65534, 65534) == 0);
	else
		require(prctl(PR_SET_DUMPABLE, 0) == 0);
	r = start_remote(be_target, VRB_DIRECT_ALWAYS);
	open_remote(&s, r.sock, VRB_DIRECT_ALWAYS);
	hear(r.sock, &(char){0}, 1);
	move_all_sizes(&s);
	require(direct_messages(&s) == 0);
	end_remote(&r);
	side_close(&s);
}

static void
without_the_right_all_goes_in_packets(void **state)
{
	run_in_child(not_allowed);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_of_all_sizes_arrive),
		cmocka_unit_test(nothing_is_written_after_it_was_taken_back),
		cmocka_unit_test(memory_that_is_gone_is_an_error_of_the_target),
		cmocka_unit_test(a_target_that_has_gone_is_not_written_to),
		cmocka_unit_test(without_the_right_all_goes_in_packets),
	};

	return cmocka_run_group_tests(tests, remote_make_dir, remote_remove_dir);
}
