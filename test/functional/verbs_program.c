/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An ordinary program for verbs, linked with the system's libibverbs, that does what no program of
 * the distribution does: it stays idle in a known way, and it forks with a device open.
 *
 *   verbs_program open       opens the device and waits for ever
 *   verbs_program event      waits in ibv_get_cq_event() with an armed CQ and a connected queue
 * pair verbs_program fork       sends to itself, forks children that exit, exec or die, and sends
 * again
 *
 * Prints "ready" once it waits, "done" when all went well; says what failed and exits 1 otherwise.
 */
#include <errno.h>
#include <infiniband/verbs.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MESSAGE 10000 /* more than one packet at any path MTU */
#define POLLS (1L << 28)

struct loop {
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_qp *qp[2]; /* connected with each other */
	struct ibv_mr *mr;
	char *buffer; /* one half is sent, the other half received */
};

static void __attribute__((noreturn, format(printf, 1, 2))) die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vfprintf(stderr, format, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(1);
}

static void
ready(void)
{
	puts("ready");
	fflush(stdout);
}

static struct ibv_context *
open_first(void)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *context;

	if (!list || !list[0])
		die("no device");
	context = ibv_open_device(list[0]);
	if (!context)
		die("ibv_open_device: %s", strerror(errno));
	ibv_free_device_list(list);
	return context;
}

static struct ibv_qp *
make_qp(struct loop *l)
{
	struct ibv_qp_init_attr init = {
		.send_cq = l->cq,
		.recv_cq = l->cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct ibv_qp *qp = ibv_create_qp(l->pd, &init);

	if (!qp)
		die("ibv_create_qp: %s", strerror(errno));
	return qp;
}

static void
connect_qp(struct loop *l, struct ibv_qp *qp, uint32_t peer)
{
	struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT, .port_num = 1};
	int err;

	err = ibv_modify_qp(
		qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (err)
		die("to INIT: %s", strerror(err));
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_1024;
	a.dest_qp_num = peer;
	a.min_rnr_timer = 12;
	a.max_dest_rd_atomic = 1;
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	a.ah_attr.grh.hop_limit = 64;
	if (ibv_query_gid(l->context, 1, 0, &a.ah_attr.grh.dgid))
		die("ibv_query_gid: %s", strerror(errno));
	err = ibv_modify_qp(qp, &a,
		IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
	if (err)
		die("to RTR: %s", strerror(err));
	a.qp_state = IBV_QPS_RTS;
	a.timeout = 14;
	a.retry_cnt = 7;
	a.rnr_retry = 7;
	a.max_rd_atomic = 1;
	err = ibv_modify_qp(qp, &a,
		IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (err)
		die("to RTS: %s", strerror(err));
}

static void
make_loop(struct loop *l)
{
	l->context = open_first();
	l->pd = ibv_alloc_pd(l->context);
	l->channel = ibv_create_comp_channel(l->context);
	l->buffer = calloc(2, MESSAGE);
	if (!l->pd || !l->channel || !l->buffer)
		die("no PD, channel or memory: %s", strerror(errno));
	l->cq = ibv_create_cq(l->context, 16, NULL, l->channel, 0);
	l->mr = ibv_reg_mr(l->pd, l->buffer, 2 * MESSAGE, IBV_ACCESS_LOCAL_WRITE);
	if (!l->cq || !l->mr)
		die("no CQ or MR: %s", strerror(errno));
	l->qp[0] = make_qp(l);
	l->qp[1] = make_qp(l);
	connect_qp(l, l->qp[0], l->qp[1]->qp_num);
	connect_qp(l, l->qp[1], l->qp[0]->qp_num);
}

static void
await(struct loop *l, int completions)
{
	struct ibv_wc wc;
	long i;

	for (i = 0; i < POLLS && completions; i++) {
		int n = ibv_poll_cq(l->cq, 1, &wc);

		if (n < 0 || (n && wc.status))
			die("completion: %s", n < 0 ? "?" : ibv_wc_status_str(wc.status));
		completions -= n;
	}
	if (completions)
		die("a completion never came");
}

static void
send_message(struct loop *l, char value)
{
	struct ibv_sge from = {(uintptr_t)l->buffer, MESSAGE, l->mr->lkey};
	struct ibv_sge to = {(uintptr_t)l->buffer + MESSAGE, MESSAGE, l->mr->lkey};
	struct ibv_recv_wr recv = {.sg_list = &to, .num_sge = 1}, *bad_recv;
	struct ibv_send_wr send = {.sg_list = &from, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

	memset(l->buffer, value, MESSAGE);
	if (ibv_post_recv(l->qp[1], &recv, &bad_recv) || ibv_post_send(l->qp[0], &send, &bad))
		die("posting failed");
	await(l, 2);
	if (memcmp(l->buffer, l->buffer + MESSAGE, MESSAGE))
		die("what arrived differs from what was sent");
}

static void
free_loop(struct loop *l)
{
	if (ibv_destroy_qp(l->qp[0]) || ibv_destroy_qp(l->qp[1]) || ibv_destroy_cq(l->cq) ||
		ibv_destroy_comp_channel(l->channel) || ibv_dereg_mr(l->mr) ||
		ibv_dealloc_pd(l->pd) || ibv_close_device(l->context))
		die("something could not be destroyed: %s", strerror(errno));
	free(l->buffer);
}

/* How a child may end: with the destructors of all libraries, without, and as another program. */
static void
fork_child(int how)
{
	int status;
	pid_t pid = fork();

	if (pid < 0)
		die("fork: %s", strerror(errno));
	if (!pid) {
		if (how == 0)
			exit(0);
		if (how == 1)
			_exit(0);
		if (how == 2)
			kill(getpid(), SIGKILL);
		execlp("ibv_devices", "ibv_devices", (char *)NULL);
		_exit(1);
	}
	if (waitpid(pid, &status, 0) != pid)
		die("waitpid: %s", strerror(errno));
	if (how == 2 ? !WIFSIGNALED(status) : status)
		die("the child of kind %d ended with %#x", how, status);
}

static void
run_fork(void)
{
	struct loop l;
	int how;

	make_loop(&l);
	send_message(&l, 'a');
	for (how = 0; how < 4; how++) {
		fork_child(how);
		send_message(&l, 'b' + how);
	}
	free_loop(&l);
}

static void
run_event(void)
{
	struct ibv_cq *cq;
	struct loop l;
	void *context;

	make_loop(&l);
	send_message(&l, 'a');
	if (ibv_req_notify_cq(l.cq, 0))
		die("ibv_req_notify_cq failed");
	ready();
	ibv_get_cq_event(l.channel, &cq, &context);
	die("an event came, and nothing was sent");
}

int
main(int argc, char **argv)
{
	const char *mode = argc == 2 ? argv[1] : "";

	if (!strcmp(mode, "open")) {
		struct ibv_context *context = open_first();

		ready();
		pause();
		ibv_close_device(context);
	} else if (!strcmp(mode, "event")) {
		run_event();
	} else if (!strcmp(mode, "fork")) {
		run_fork();
	} else {
		die("usage: verbs_program open|event|fork");
	}
	puts("done");
	return 0;
}
