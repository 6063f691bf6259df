/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of the verbs library share: a device, and two connected queue pairs in one
 * process.
 *
 * The tests know nothing of the library but <infiniband/verbs.h>, and would run on hardware.
 */
#ifndef VERBS_UTIL_H
#define VERBS_UTIL_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <infiniband/verbs.h>

#define BUF_SIZE 65536
#define ALL_ACCESS \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | \
		IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND)

#define ALL_SEND_OPS \
	(IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM | IBV_QP_EX_WITH_SEND | \
		IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_RDMA_READ | \
		IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD | \
		IBV_QP_EX_WITH_LOCAL_INV | IBV_QP_EX_WITH_BIND_MW | IBV_QP_EX_WITH_SEND_WITH_INV | \
		IBV_QP_EX_WITH_ATOMIC_WRITE)

/* A device and what most tests need of it. */
struct rig {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq; /* of both queue pairs */
	struct ibv_qp *a, *b; /* connected to each other, once rig_connect() was called */
	struct ibv_mr *mr;
	char *buf; /* BUF_SIZE bytes, the lower half a's, the upper half b's */
	union ibv_gid gid;
};

/* For cmocka: a rig with a device, a PD, a CQ and a registered buffer; and one with connected queue
 * pairs as well. */
int rig_open(void **state);
int rig_open_pair(void **state);
int rig_close(void **state);

struct ibv_context *open_device(void);

/* Queue pairs of 64 WRs and 4 SGEs a side and 64 bytes of inline data, unless the test asks for
 * others. */
struct ibv_qp *make_qp(struct rig *r, struct ibv_qp_cap *cap, struct ibv_srq *srq);
struct ibv_qp *make_qp_ex(struct rig *r, uint64_t send_ops);

/* The usual attributes for the step to a state, and the usual mask. */
void attr_for(struct rig *r, enum ibv_qp_state state, struct ibv_qp *peer, struct ibv_qp_attr *attr,
	int *mask);
/* Takes the queue pair one step further; fails the test when it cannot. */
void step(struct rig *r, struct ibv_qp *qp, enum ibv_qp_state state, struct ibv_qp *peer);
void connect_qp(struct rig *r, struct ibv_qp *qp, struct ibv_qp *peer);
enum ibv_qp_state state_of(struct ibv_qp *qp);

/* Polls until a completion comes, for some seconds. @return whether one came */
bool poll_for(struct ibv_cq *cq, struct ibv_wc *wc);
/* As above, but a completion must come; @return its status. */
enum ibv_wc_status next_status(struct ibv_cq *cq);
/* Polls for a while; no completion may come. */
void expect_no_completion(struct ibv_cq *cq);

/* The next asynchronous event, acknowledged, if one comes in that time. */
bool next_event(struct rig *r, struct ibv_async_event *event, int ms);

/* Posting of one WR with one SGE. */
int post_send(struct rig *r, struct ibv_qp *qp, uint64_t id, enum ibv_wr_opcode op, void *addr,
	uint32_t len);
int post_recv(struct rig *r, struct ibv_qp *qp, uint64_t id, void *addr, uint32_t len);
/* A WR for the caller to change. The SGE lives in the test's frame. */
struct ibv_send_wr make_wr(
	enum ibv_wr_opcode op, struct ibv_sge *sge, struct rig *r, void *addr, uint32_t len);

/* Expect that the expression fails by the convention of its kind. */
#define expect_null(expr, err) \
	do { \
		errno = 0; \
		assert_null(expr); \
		assert_int_equal(errno, err); \
	} while (0)
#define expect_minus1(expr, err) \
	do { \
		errno = 0; \
		assert_int_equal(expr, -1); \
		assert_int_equal(errno, err); \
	} while (0)
#define expect_errno(expr, err) assert_int_equal(expr, err)

#define TEST_DEVICE(name) cmocka_unit_test_setup_teardown(name, rig_open, rig_close)
#define TEST_PAIR(name) cmocka_unit_test_setup_teardown(name, rig_open_pair, rig_close)

#endif
