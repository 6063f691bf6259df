/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tests of NICs in processes of their own (see nic_remote.h).
 */
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "nic_remote.h"

static char dir[] = "/tmp/verbena-nic.XXXXXX";

void
run_in_child(void (*fn)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		alarm(30);
		fn();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

void
open_remote(struct side *s, int sock, enum vrb_direct_mode direct)
{
	struct vrb_nic_conf conf = {.segment = "remote", .direct = direct};
	struct side_hello mine, peer;

	side_open(s, &conf, &mine);
	require(send(sock, &mine, sizeof(mine), 0) == sizeof(mine));
	require(recv(sock, &peer, sizeof(peer), MSG_WAITALL) == sizeof(peer));
	side_connect(s, &peer);
}

struct remote
start_remote(void (*fn)(struct side *s, int sock), enum vrb_direct_mode direct)
{
	struct remote r;
	struct side s;
	int pair[2];

	require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	r.pid = fork();
	require(r.pid >= 0);
	if (r.pid == 0) {
		/* When the test fails, so does its peer. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		open_remote(&s, pair[1], direct);
		fn(&s, pair[1]);
		side_close(&s);
		_exit(0);
	}
	close(pair[1]);
	r.sock = pair[0];
	return r;
}

void
end_remote(struct remote *r)
{
	int status;

	close(r->sock);
	require(waitpid(r->pid, &status, 0) == r->pid && status == 0);
}

int
remote_make_dir(void **state)
{
	return mkdtemp(dir) != NULL && setenv("XDG_RUNTIME_DIR", dir, 1) == 0 ? 0 : -1;
}

int
remote_remove_dir(void **state)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp("rm", "rm", "-rf", dir, (char *)NULL);
		_exit(1);
	}
	return pid > 0 && waitpid(pid, NULL, 0) == pid ? 0 : -1;
}
