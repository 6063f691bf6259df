/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The other side of verbena-testpmd as a program of verbs: one RC queue pair that receives, and
 * memory that may be read and written.
 *
 * It prints "dest GID QPN PSN addr ADDRESS rkey KEY", takes a line "GID QPN PSN" from its input,
 * connects, and prints "received N" when its input ends.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define DEPTH 64
#define MESSAGE 4096
#define MEMORY (1 << 20)
#define PSN 4711
#define GID_INDEX 0

static struct ibv_context *ctx;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static char memory[MEMORY];

static void
check(int ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "verbs_peer: %s failed\n", what);
	exit(1);
}

static void
make(void)
{
	struct ibv_device **devices = ibv_get_device_list(NULL);
	struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1,
			.max_recv_wr = DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1}};
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE};
	struct ibv_pd *pd;

	check(devices != NULL && devices[0] != NULL, "ibv_get_device_list");
	ctx = ibv_open_device(devices[0]);
	check(ctx != NULL, "ibv_open_device");
	ibv_free_device_list(devices);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 2 * DEPTH, NULL, NULL, 0);
	check(pd != NULL && cq != NULL, "ibv_create_cq");
	mr = ibv_reg_mr(pd, memory, sizeof(memory),
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	check(mr != NULL, "ibv_reg_mr");
	init.send_cq = init.recv_cq = cq;
	qp = ibv_create_qp(pd, &init);
	check(qp != NULL, "ibv_create_qp");
	check(ibv_modify_qp(qp, &attr,
		      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0,
		"ibv_modify_qp to INIT");
}

static void
post_recv(void)
{
	struct ibv_sge sge = {(uintptr_t)memory, MESSAGE, mr->lkey};
	struct ibv_recv_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;

	check(ibv_post_recv(qp, &wr, &bad) == 0, "ibv_post_recv");
}

static void
tell(void)
{
	char text[INET6_ADDRSTRLEN];
	union ibv_gid gid;

	check(ibv_query_gid(ctx, 1, GID_INDEX, &gid) == 0, "ibv_query_gid");
	inet_ntop(AF_INET6, gid.raw, text, sizeof(text));
	printf("dest %s %#x %d addr %#lx rkey %#x\n", text, qp->qp_num, PSN,
		(unsigned long)(uintptr_t)memory, mr->rkey);
	fflush(stdout);
}

static void
join(void)
{
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_4096,
		.max_dest_rd_atomic = 16,
		.min_rnr_timer = 12,
		.ah_attr = {.is_global = 1,
			.port_num = 1,
			.grh = {.sgid_index = GID_INDEX, .hop_limit = 64}}};
	char gid[64];

	check(scanf("%63s %i %i", gid, (int *)&attr.dest_qp_num, (int *)&attr.rq_psn) == 3,
		"scanf");
	check(inet_pton(AF_INET6, gid, attr.ah_attr.grh.dgid.raw) == 1, "inet_pton");
	check(ibv_modify_qp(qp, &attr,
		      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
		"ibv_modify_qp to RTR");
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 14;
	attr.retry_cnt = attr.rnr_retry = 7;
	attr.sq_psn = PSN;
	attr.max_rd_atomic = 1;
	check(ibv_modify_qp(qp, &attr,
		      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC) == 0,
		"ibv_modify_qp to RTS");
	printf("connected\n");
	fflush(stdout);
}

int
main(void)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	unsigned long received = 0;
	struct ibv_wc wc;

	make();
	for (int i = 0; i < DEPTH; i++)
		post_recv();
	tell();
	join();
	/* Until its input ends. */
	while (poll(&in, 1, 0) == 0) {
		while (ibv_poll_cq(cq, 1, &wc) == 1) {
			check(wc.status == IBV_WC_SUCCESS, ibv_wc_status_str(wc.status));
			received++;
			post_recv();
		}
	}
	printf("received %lu\n", received);
	return 0;
}
