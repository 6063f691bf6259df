/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan: a segment belongs to one user. Needs root, to become somebody else: with more
 * arguments the program runs as nobody. Without root the tests are skipped.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <grp.h>
#include <dirent.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_bus_vdev.h>
#include <rte_eal.h>

#include "shmlan_util.h"

#define NOBODY 65534

/* Results of the process that runs as nobody. */
enum { JOINED = 10, REFUSED = 11, CONNECTED = 12, HUNG_UP = 13, ODD = 14 };

static int
become_nobody(void)
{
	return setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0 ? 0 : -errno;
}

/* Tries to join. */
static int
nobody_join(const char *dir, const char *segment)
{
	char run[] = "/tmp/shmlan-nobody.XXXXXX", dpdk[64];
	int rc;

	/* Where EAL puts its own files, which must not stay. */
	if (mkdtemp(run) == NULL || setenv("XDG_RUNTIME_DIR", run, 1) != 0)
		return ODD;
	su_use_dir(dir);
	su_eal_init();
	rc = su_probe(0, segment, NULL) >= 0 ? JOINED : REFUSED;
	rmdir(rte_eal_get_runtime_dir());
	snprintf(dpdk, sizeof(dpdk), "%s/dpdk", run);
	rmdir(dpdk);
	return rmdir(run) == 0 ? rc : ODD;
}

/* Tries to talk to a member's socket. */
static int
nobody_connect(const char *path)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	char c;

	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0)
		return errno == EACCES ? REFUSED : ODD;
	if (poll(&p, 1, 1000) != 1)
		return CONNECTED;
	return recv(fd, &c, 1, 0) <= 0 ? HUNG_UP : CONNECTED;
}

static int
as_nobody(const char *what, const char *arg1, const char *arg2)
{
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		execl("/proc/self/exe", "shmlan_user_test", what, arg1, arg2, NULL);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void
need_root(void)
{
	if (geteuid() != 0) {
		print_message("needs root, to become another user\n");
		skip();
	}
	/* So that nobody can get as far as the segment. */
	assert_int_equal(chmod(su_dir(), 0711), 0);
}

static void
second_user_cannot_join(void **state)
{
	need_root();
	su_port(0, "t", NULL);
	assert_int_equal(as_nobody("join", su_dir(), "t"), REFUSED);
	assert_int_equal(su_dir_entries("t"), 2);
}

static void
find_socket(char *path, size_t len)
{
	char dir[128];
	struct dirent *de;
	DIR *d;

	snprintf(dir, sizeof(dir), "%s/t", su_dir());
	d = opendir(dir);
	assert_non_null(d);
	while ((de = readdir(d)) != NULL) {
		if (strncmp(de->d_name, "m0-", 3) == 0)
			snprintf(path, len, "%.120s/%.64s", dir, de->d_name);
	}
	closedir(d);
	assert_true(path[0] != '\0');
}

static void
second_user_cannot_reach_a_member(void **state)
{
	char path[256] = "", dir[128];

	need_root();
	su_port(0, "t", NULL);
	find_socket(path, sizeof(path));
	assert_int_equal(as_nobody("connect", path, ""), REFUSED);
	/* And if the directory's mode is changed later, the member itself refuses. */
	snprintf(dir, sizeof(dir), "%s/t", su_dir());
	assert_int_equal(chmod(dir, 0711), 0);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(as_nobody("connect", path, ""), HUNG_UP);
}

static void
root_does_not_join_another_users_segment(void **state)
{
	char dir[128];

	need_root();
	snprintf(dir, sizeof(dir), "%s/theirs", su_dir());
	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(chown(dir, NOBODY, NOBODY), 0);
	assert_int_equal(su_probe(0, "theirs", NULL), -EPERM);
	assert_int_equal(rmdir(dir), 0);
}

static void
runtime_directory_of_another_user_is_not_used(void **state)
{
	char theirs[128], made[160], args[64], ours[64], segment[32];
	uint16_t port;
	struct stat st;

	need_root();
	snprintf(theirs, sizeof(theirs), "%s/run", su_dir());
	assert_int_equal(mkdir(theirs, 0700), 0);
	assert_int_equal(chown(theirs, NOBODY, NOBODY), 0);
	assert_int_equal(setenv("XDG_RUNTIME_DIR", theirs, 1), 0);
	snprintf(segment, sizeof(segment), "user-test-%d", getpid());
	snprintf(args, sizeof(args), "segment=%s", segment);
	assert_int_equal(rte_vdev_init("net_shmlan0", args), 0);
	assert_int_equal(rte_eth_dev_get_port_by_name("net_shmlan0", &port), 0);
	snprintf(made, sizeof(made), "%s/verbena", theirs);
	assert_int_equal(stat(made, &st), -1);
	snprintf(ours, sizeof(ours), "/tmp/verbena-0/%s", segment);
	assert_int_equal(stat(ours, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	su_close(port);
	assert_int_equal(stat(ours, &st), -1);
	assert_int_equal(rmdir(theirs), 0);
}

static int
close_ports(void **state)
{
	su_close_all();
	return 0;
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(second_user_cannot_join, close_ports),
		cmocka_unit_test_teardown(second_user_cannot_reach_a_member, close_ports),
		cmocka_unit_test_teardown(root_does_not_join_another_users_segment, close_ports),
		cmocka_unit_test_teardown(
			runtime_directory_of_another_user_is_not_used, close_ports),
	};

	if (argc == 4) {
		if (become_nobody() != 0)
			return ODD;
		return strcmp(argv[1], "join") == 0 ? nobody_join(argv[2], argv[3])
						    : nobody_connect(argv[2]);
	}
	su_eal_init();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
