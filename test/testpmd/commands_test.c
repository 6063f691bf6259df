/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs the cases of all commands, and makes sure that each command of the table has one that runs
 * it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmdline.h>
#include <rte_cycles.h>
#include <rte_eal.h>

#include "cases.h"
#include "eal.h"
#include "events.h"
#include "worker.h"

#define MAX_CASES 256
#define LOOP_PORT "net_verbena1"
#define LOOP_RXQ 4
#define LOOP_TXQ 2
/* Rounds of a poller without a frame after which none is on its way. */
#define DRY 20
#define PATIENCE_MS 5000

static const struct tp_cases *const all[] = {&base_cases, &mr_cases, &cq_cases, &srq_cases,
	&wq_cases, &qp_cases, &port_cases, &rss_cases, &flow_cases, &traffic_cases, &watch_cases};

static char dir[] = "/tmp/testpmd-XXXXXX";
static struct cmdline *cl;
static int capture; /* what a command prints */
static char printed[65536];
/* Of the case that runs: whether its command has been run with success. */
static const struct tp_case *now;
static bool was_run;

/* ---- typing ---- */

static void
type(const char *format, va_list ap)
{
	char line[600];
	int out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
	unsigned int before = tp_results.done;
	ssize_t n;

	vsnprintf(line, sizeof(line) - 1, format, ap);
	strcat(line, "\n");
	fflush(stdout);
	fflush(stderr);
	assert_return_code(ftruncate(capture, 0), errno);
	lseek(capture, 0, SEEK_SET);
	dup2(capture, STDOUT_FILENO);
	dup2(capture, STDERR_FILENO);
	cmdline_in(cl, line, strlen(line));
	fflush(stdout);
	fflush(stderr);
	dup2(out, STDOUT_FILENO);
	dup2(err, STDERR_FILENO);
	close(out);
	close(err);
	n = pread(capture, printed, sizeof(printed) - 1, 0);
	printed[n > 0 ? n : 0] = '\0';
	assert_int_equal(tp_results.done, before + 1);
}

const char *
run(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	type(format, ap);
	va_end(ap);
	if (tp_results.last != 0)
		fail_msg("\"%s\" is refused: %s", format, tp_why());
	return printed;
}

void
refuse(int rc, const char *part, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	type(format, ap);
	va_end(ap);
	if (strstr(tp_why(), part) == NULL)
		fail_msg("\"%s\" does not tell of \"%s\" but \"%s\"", format, part, tp_why());
	assert_int_equal(tp_results.last, rc);
	holds(printed, tp_why());
}

static const char *
find(const char *out, const char *key)
{
	size_t len = strlen(key);

	for (const char *s = strstr(out, key); s != NULL; s = strstr(s + 1, key))
		if ((s == out || s[-1] == ' ' || s[-1] == '\n') && s[len] == ' ')
			return s + len + 1;
	return NULL;
}

uint64_t
number(const char *out, const char *key)
{
	const char *s = find(out, key);

	if (s == NULL)
		fail_msg("there is no \"%s\" in \"%s\"", key, out);
	return strtoull(s, NULL, 0);
}

void
holds(const char *out, const char *part)
{
	if (strstr(out, part) == NULL)
		fail_msg("there is no \"%s\" in \"%s\"", part, out);
}

/* ---- objects ---- */

static void *
object(enum tp_kind kind, uint32_t id)
{
	struct tp_obj *obj = tp_object_find(kind, id);

	if (obj == NULL)
		fail_msg("there is no %s %u", tp_kind_name(kind), id);
	return obj;
}

struct tp_mr *
mr_of(uint32_t id)
{
	return object(TP_MR, id);
}

struct tp_cq *
cq_of(uint32_t id)
{
	return object(TP_CQ, id);
}

struct tp_srq *
srq_of(uint32_t id)
{
	return object(TP_SRQ, id);
}

struct tp_wq *
wq_of(uint32_t id)
{
	return object(TP_WQ, id);
}

struct tp_ind_table *
table_of(uint32_t id)
{
	return object(TP_IND_TABLE, id);
}

struct tp_qp *
qp_of(uint32_t id)
{
	return object(TP_QP, id);
}

void
make_pair(const char *type_)
{
	run("cq create 1");
	run("qp create 1 type %s cq 1", type_);
	run("qp create 2 type %s cq 1", type_);
	run("qp connect 1 to 2");
}

void
make_rss(void)
{
	run("cq create 1");
	run("wq create 1 cq 1");
	run("wq create 2 cq 1");
	run("wq modify 1 state ready");
	run("wq modify 2 state ready");
	run("ind-table create 1 wqs 1-2 size 4");
	run("qp create 1 type rss ind-table 1");
	run("qp create 2 type raw cq 1");
}

uint16_t
loop_port(void)
{
	uint16_t port;

	assert_return_code(rte_eth_dev_get_port_by_name(LOOP_PORT, &port), ENODEV);
	return port;
}

uint64_t
xstat(const char *name)
{
	uint64_t id, value;

	assert_return_code(rte_eth_xstats_get_id_by_name(loop_port(), name, &id), EINVAL);
	assert_int_equal(rte_eth_xstats_get_by_id(loop_port(), &id, &value, 1), 1);
	return value;
}

uint64_t
queue_frames(uint16_t queue)
{
	char name[RTE_ETH_XSTATS_NAME_SIZE];

	snprintf(name, sizeof(name), "rx_q%u_packets", queue);
	return xstat(name);
}

void
wait_until(uint64_t (*get)(void *arg), void *arg, uint64_t want)
{
	static const struct timespec ms = {.tv_nsec = 1000000};

	for (int i = 0; i < PATIENCE_MS && get(arg) != want; i++)
		nanosleep(&ms, NULL);
	assert_int_equal(get(arg), want);
}

/* ---- the tests ---- */

static void
observe(const struct tp_cmd *cmd, int rc)
{
	was_run |= rc == 0 && strcmp(cmd->pattern, now->pattern) == 0;
}

static void
run_case(void **state)
{
	now = *state;
	was_run = false;
	now->run();
	if (!was_run)
		fail_msg("the case of \"%s\" does not run it", now->pattern);
}

/* Also after a case that has failed in the middle. */
static void
restore_loop_port(void)
{
	const struct tp_port_conf conf = {
		.rx_queues = LOOP_RXQ, .tx_queues = LOOP_TXQ, .rx_size = 512, .tx_size = 512};
	uint16_t port = loop_port();
	struct rte_eth_dev_info info;

	rte_eth_dev_info_get(port, &info);
	if (info.nb_rx_queues != LOOP_RXQ || info.nb_tx_queues != LOOP_TXQ) {
		if (tp_port_is_started(port))
			tp_port_stop(port);
		tp_port_configure(port, &conf);
	}
	if (!tp_port_is_started(port))
		tp_port_start(port);
	/* No frame of the last case comes in the next. */
	tp_poller_start(port, NULL, 0);
	for (int i = 0; i < PATIENCE_MS && atomic_load(&tp_poller_of(port)->empty) < DRY; i++)
		rte_delay_ms(1);
	tp_poller_stop(tp_poller_of(port));
}

static int
clean(void **state)
{
	uint32_t refs;

	tp_destroy_all();
	if (tp_quit) {
		cmdline_free(cl);
		cl = tp_cmdline_new("", -1, -1);
		tp_quit = false;
	}
	restore_loop_port();
	tp_lock();
	refs = tp_pd()->refs;
	tp_unlock();
	return refs == 0 ? 0 : -1;
}

static const struct tp_case *
find_case(const char *pattern)
{
	const struct tp_case *found = NULL;

	for (unsigned int g = 0; g < RTE_DIM(all); g++)
		for (unsigned int i = 0; i < all[g]->num; i++)
			if (strcmp(all[g]->cases[i].pattern, pattern) == 0)
				found = &all[g]->cases[i];
	return found;
}

static void
each_command_has_a_case(void **state)
{
	unsigned int commands = 0, missing = 0, cases = 0;

	for (int f = 0; tp_families[f] != NULL; f++) {
		for (unsigned int i = 0; i < tp_families[f]->num; i++) {
			commands++;
			if (find_case(tp_families[f]->cmds[i].pattern) != NULL)
				continue;
			print_error("\"%s\" has no case\n", tp_families[f]->cmds[i].pattern);
			missing++;
		}
	}
	for (unsigned int g = 0; g < RTE_DIM(all); g++)
		cases += all[g]->num;
	assert_int_equal(missing, 0);
	/* Nor is there a case of a command that is gone. */
	assert_int_equal(cases, commands);
}

/* "<name>" in a pattern without an argument of that name would be a literal word. */
static void
each_pattern_names_its_arguments(void **state)
{
	for (int f = 0; tp_families[f] != NULL; f++) {
		for (unsigned int i = 0; i < tp_families[f]->num; i++) {
			const struct tp_cmd *cmd = &tp_families[f]->cmds[i];
			const char *s = cmd->pattern;

			assert_true(strlen(cmd->help) > 8);
			while ((s = strchr(s, '<')) != NULL) {
				size_t len = strcspn(++s, ">");
				const struct tp_arg *a = cmd->args;

				while (a != NULL && a->name != NULL &&
					(strlen(a->name) != len || memcmp(a->name, s, len) != 0))
					a++;
				assert_true(a != NULL && a->name != NULL);
			}
		}
	}
}

static void
wrong_lines_tell_the_nearest_usage(void **state)
{
	static const struct tp_case none = {.pattern = ""};

	now = &none;
	refuse(-ENOENT, "did you mean \"srq\"?", "sqr create 1");
	refuse(-ENOENT, "help lists all", "nonsense");
	refuse(-EINVAL, "srq create <srq> [size <number>]", "srq creat 1");
	refuse(-EINVAL, "qp connect <qp> dest <gid> <qpn> <psn>", "qp connect 1");
	refuse(-EINVAL, "these are: size, sge", "srq create 1 siz 5");
	refuse(-EINVAL, "size needs a value", "srq create 1 size");
	refuse(-EINVAL, "size is given twice", "srq create 1 size 5 size 6");
	refuse(-ERANGE, "size is from 1 to 65536", "srq create 1 size 0");
	refuse(-EINVAL, "size is a number", "srq create 1 size many");
	refuse(-ENOENT, "there is no srq 1", "srq destroy 1");
	refuse(-ENODEV, "there is no port 77", "port show 77");
	refuse(-EINVAL, "size is missing", "mr reg 1");
	refuse(-EINVAL, "\"more\" is too much", "quit more");
}

static void
completion_offers_what_can_follow(void **state)
{
	static const struct tp_case none = {.pattern = ""};
	char dst[256];
	int st = 0;

	now = &none;
	run("srq create 17");
	/* One choice: it is completed. */
	assert_int_equal(cmdline_complete(cl, "srq des", &st, dst, sizeof(dst)), 2);
	assert_string_equal(dst, "troy ");
	st = 0;
	assert_int_equal(cmdline_complete(cl, "srq destroy 1", &st, dst, sizeof(dst)), 2);
	assert_string_equal(dst, "7 ");
	st = 0;
	assert_int_equal(cmdline_complete(cl, "srq modify 17 li", &st, dst, sizeof(dst)), 2);
	assert_string_equal(dst, "mit ");
	/* Several: they are listed, each with its help. */
	st = 0;
	assert_int_equal(cmdline_complete(cl, "qp create 1 type r", &st, dst, sizeof(dst)), 1);
	holds(dst, "rc [type]: ");
	assert_int_equal(cmdline_complete(cl, "qp create 1 type r", &st, dst, sizeof(dst)), 1);
	holds(dst, "raw [type]: ");
	st = 0;
	assert_int_equal(cmdline_complete(cl, "srq ", &st, dst, sizeof(dst)), 1);
	assert_string_equal(dst, "create [command]: makes a shared receive queue");
	st = 0;
	assert_int_equal(cmdline_complete(cl, "nonsense ", &st, dst, sizeof(dst)), 1);
}

static int
start(void **state)
{
	static char vdev[256];
	const char *argv[] = {"commands_test", vdev, "--vdev=" LOOP_PORT ",dev(net_ring0)",
		"--vdev=net_ring1", "--rxq=4", "--txq=2", NULL};
	struct tp_options o;

	/* *state stays NULL, or the cases would not be in it. */
	if (mkdtemp(dir) == NULL)
		return -1;
	snprintf(vdev, sizeof(vdev), "--vdev=net_verbena0,dev(net_shmlan0,dir=%s)", dir);
	capture = memfd_create("printed", MFD_CLOEXEC);
	cl = tp_cmdline_new("", -1, -1);
	if (capture < 0 || cl == NULL || tp_options_parse(6, argv, &o) < 0 ||
		tp_eal_start(&o) < 0 || tp_backend_open(o.rx_queues, o.tx_queues) < 0 ||
		tp_ports_open(tp_device_port(), o.rx_queues, o.tx_queues) < 0) {
		print_error("%s\n", tp_why());
		return -1;
	}
	tp_observer = observe;
	tp_after_command = tp_events_show;
	return 0;
}

static int
stop(void **state)
{
	char command[64];

	tp_destroy_all();
	tp_worker_stop();
	tp_ports_stop();
	tp_backend_close();
	tp_ports_close();
	rte_eal_cleanup();
	cmdline_free(cl);
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

int
main(void)
{
	struct CMUnitTest tests[MAX_CASES];
	size_t n = 0;

	tests[n++] = (struct CMUnitTest)cmocka_unit_test(each_command_has_a_case);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test(each_pattern_names_its_arguments);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test_teardown(
		wrong_lines_tell_the_nearest_usage, clean);
	tests[n++] = (struct CMUnitTest)cmocka_unit_test_teardown(
		completion_offers_what_can_follow, clean);
	for (unsigned int g = 0; g < RTE_DIM(all); g++) {
		for (unsigned int i = 0; i < all[g]->num && n < MAX_CASES; i++) {
			tests[n++] = (struct CMUnitTest){
				.name = all[g]->cases[i].pattern,
				.test_func = run_case,
				.teardown_func = clean,
				.initial_state = (void *)(uintptr_t)&all[g]->cases[i],
			};
		}
	}
	return _cmocka_run_group_tests("testpmd", tests, n, start, stop);
}
