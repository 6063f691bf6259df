/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XRC: domains (ibv_open_xrcd(3)), their shared receive queues, initiators, targets, and further
 * handles of a target (ibv_open_qp(3)).
 */
#include <stdlib.h>
#include <unistd.h>

#include "srq_util.h"
#include "xrc_util.h"

static int
temp_file(void)
{
	char name[] = "/tmp/verbs_xrc.XXXXXX";
	int fd = mkstemp(name);

	assert_true(fd >= 0);
	unlink(name);
	return fd;
}

static void
open_xrcd_without_inode_needs_o_creat(void **state)
{
	struct rig *r = *state;
	struct ibv_xrcd *a, *b;

	expect_null(open_domain(r->ctx, -1, 0), EINVAL);
	a = open_domain(r->ctx, -1, O_CREAT);
	b = open_domain(r->ctx, -1, O_CREAT | O_EXCL); /* another one */
	assert_non_null(a);
	assert_non_null(b);
	assert_ptr_equal(a->context, r->ctx);
	assert_int_equal(ibv_close_xrcd(a), 0);
	assert_int_equal(ibv_close_xrcd(b), 0);
}

static void
open_xrcd_needs_fd_and_oflags(void **state)
{
	struct rig *r = *state;
	struct ibv_xrcd_init_attr attr = {.comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1};

	expect_null(ibv_open_xrcd(r->ctx, &attr), EINVAL);
	expect_null(open_domain(r->ctx, 9999, O_CREAT), EBADF);
}

/* ibv_open_xrcd(3): "If the XRCD exists, this flag has no effect except as noted under O_EXCL"; "If
 * O_EXCL and O_CREAT are set, open will fail if an XRCD associated with the inode exists". */
static void
open_xrcd_follows_o_creat_and_o_excl(void **state)
{
	struct rig *r = *state;
	int fd = temp_file(), again = dup(fd);
	struct ibv_xrcd *a, *b, *c;

	expect_null(open_domain(r->ctx, fd, 0), EAGAIN);
	a = open_domain(r->ctx, fd, O_CREAT | O_EXCL);
	assert_non_null(a);
	expect_null(open_domain(r->ctx, again, O_CREAT | O_EXCL), EINVAL);
	b = open_domain(r->ctx, again, O_CREAT);
	c = open_domain(r->ctx, fd, 0);
	assert_non_null(b);
	assert_non_null(c);
	assert_int_equal(ibv_close_xrcd(a), 0);
	assert_int_equal(ibv_close_xrcd(b), 0);
	/* "If this is the last reference, the XRCD will be destroyed." */
	assert_int_equal(ibv_close_xrcd(c), 0);
	expect_null(open_domain(r->ctx, fd, 0), EAGAIN);
	close(fd);
	close(again);
}

static void
close_xrcd_is_busy_while_objects_stand_in_it(void **state)
{
	struct rig *r = *state;
	struct ibv_xrcd *xrcd = open_domain(r->ctx, -1, O_CREAT);
	struct ibv_srq *srq = make_xrc_srq(r, xrcd);
	struct ibv_qp *target;

	expect_errno(ibv_close_xrcd(xrcd), EBUSY);
	expect_errno(ibv_destroy_cq(r->cq), EBUSY);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	target = make_target(r, xrcd);
	expect_errno(ibv_close_xrcd(xrcd), EBUSY);
	assert_int_equal(ibv_destroy_qp(target), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void
only_xrc_srqs_have_numbers(void **state)
{
	struct rig *r = *state;
	struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};
	struct ibv_xrcd *xrcd = open_domain(r->ctx, -1, O_CREAT);
	struct ibv_srq *a = make_xrc_srq(r, xrcd), *b = make_xrc_srq(r, xrcd);
	struct ibv_srq *basic = ibv_create_srq(r->pd, &attr);
	uint32_t num;

	assert_int_not_equal(number_of(a), number_of(b));
	expect_errno(ibv_get_srq_num(basic, &num), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_srq(a), 0);
	assert_int_equal(ibv_destroy_srq(b), 0);
	assert_int_equal(ibv_destroy_srq(basic), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void
create_refuses_missing_parts(void **state)
{
	struct rig *r = *state;
	struct ibv_xrcd *xrcd = open_domain(r->ctx, -1, O_CREAT);
	struct ibv_qp_init_attr_ex target = {.qp_type = IBV_QPT_XRC_RECV};
	struct ibv_qp_init_attr rc = {.send_cq = r->cq, .recv_cq = r->cq, .qp_type = IBV_QPT_RC};
	struct ibv_srq_init_attr_ex attr = {
		.attr = {.max_wr = 8, .max_sge = 1},
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_XRCD,
		.srq_type = IBV_SRQT_XRC,
		.pd = r->pd,
		.xrcd = xrcd,
	};

	expect_null(ibv_create_srq_ex(r->ctx, &attr), EINVAL);
	expect_null(ibv_create_qp_ex(r->ctx, &target), EINVAL);
	/* Its receives are for targets only. */
	rc.srq = make_xrc_srq(r, xrcd);
	expect_null(ibv_create_qp(r->pd, &rc), EINVAL);
	assert_int_equal(ibv_destroy_srq(rc.srq), 0);
	assert_int_equal(ibv_close_xrcd(xrcd), 0);
}

static void
send_arrives_in_the_srq_that_it_names(void **state)
{
	struct rig *r = *state;
	struct xrc_pair p = open_pair(r);
	struct ibv_wc wc;

	assert_int_equal(post_srq(r, p.srq, 5), 0);
	assert_int_equal(post_srq(r, p.other, 6), 0);
	memcpy(r->buf, "to the other", 12);
	assert_int_equal(send_to(r, p.from, number_of(p.other)), 0);
	for (int i = 0; i < 2; i++) {
		assert_true(poll_for(r->cq, &wc));
		assert_int_equal(wc.status, IBV_WC_SUCCESS);
		if (wc.opcode != IBV_WC_RECV)
			continue;
		assert_int_equal(wc.wr_id, 6);
		assert_int_equal(wc.qp_num, p.to->qp_num);
		assert_int_equal(wc.byte_len, 32);
	}
	assert_memory_equal(r->buf + BUF_SIZE / 2, "to the other", 12);
	close_pair(&p);
}

static void
target_has_no_queues_to_post_to(void **state)
{
	struct rig *r = *state;
	struct xrc_pair p = open_pair(r);

	expect_errno(post_send(r, p.to, 1, IBV_WR_SEND, r->buf, 8), EINVAL);
	expect_errno(post_recv(r, p.to, 1, r->buf, 8), EINVAL);
	expect_errno(post_recv(r, p.from, 1, r->buf, 8), EINVAL);
	close_pair(&p);
}

static void
wrong_srq_number_is_a_remote_invalid_request(void **state)
{
	struct rig *r = *state;
	struct xrc_pair p = open_pair(r);
	struct ibv_async_event event;

	assert_int_equal(send_to(r, p.from, 0xabcdef), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(state_of(p.to), IBV_QPS_ERR);
	do {
		assert_int_equal(ibv_get_async_event(r->ctx, &event), 0);
		assert_ptr_equal(event.element.qp, p.to);
		ibv_ack_async_event(&event);
	} while (event.event_type != IBV_EVENT_QP_REQ_ERR);
	close_pair(&p);
}

static struct ibv_qp *
open_target(struct rig *r, struct ibv_xrcd *xrcd, uint32_t num, void *context)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE |
			     IBV_QP_OPEN_ATTR_CONTEXT,
		.qp_num = num,
		.xrcd = xrcd,
		.qp_context = context,
		.qp_type = IBV_QPT_XRC_RECV,
	};

	return ibv_open_qp(r->ctx, &attr);
}

/* ibv_open_qp(3): "will fail if it is asked to open a QP that does not exist within the xrcd with
 * the specified qp_num and qp_type". */
static void
open_qp_finds_targets_of_the_domain_only(void **state)
{
	struct rig *r = *state;
	struct ibv_xrcd *other = open_domain(r->ctx, -1, O_CREAT);
	struct xrc_pair p = open_pair(r);

	expect_null(open_target(r, other, p.to->qp_num, NULL), EINVAL);
	expect_null(open_target(r, p.xrcd, p.from->qp_num, NULL), EINVAL);
	expect_null(open_target(r, p.xrcd, 0xfffff0, NULL), EINVAL);
	assert_int_equal(ibv_close_xrcd(other), 0);
	close_pair(&p);
}

/* ibv_open_qp(3): "ibv_destroy_qp() closes the opened QP and destroys the underlying QP if it has
 * no other references". */
static void
target_lives_as_long_as_one_handle_of_it(void **state)
{
	struct rig *r = *state;
	struct xrc_pair p = open_pair(r);
	struct ibv_qp *second = open_target(r, p.xrcd, p.to->qp_num, r);
	struct ibv_async_event event;

	assert_non_null(second);
	assert_int_equal(second->qp_num, p.to->qp_num);
	assert_ptr_equal(second->qp_context, r);
	assert_int_equal(state_of(second), IBV_QPS_RTS);
	assert_int_equal(ibv_destroy_qp(p.to), 0);
	assert_int_equal(post_srq(r, p.srq, 5), 0);
	assert_int_equal(send_to(r, p.from, number_of(p.srq)), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	assert_int_equal(next_status(r->cq), IBV_WC_SUCCESS);
	/* Events go to the handle that is left. */
	assert_int_equal(send_to(r, p.from, 0xabcdef), 0);
	assert_int_equal(next_status(r->cq), IBV_WC_REM_INV_REQ_ERR);
	assert_int_equal(ibv_get_async_event(r->ctx, &event), 0);
	while (event.event_type != IBV_EVENT_QP_REQ_ERR) {
		ibv_ack_async_event(&event);
		assert_int_equal(ibv_get_async_event(r->ctx, &event), 0);
	}
	assert_ptr_equal(event.element.qp, second);
	ibv_ack_async_event(&event);
	p.to = second;
	close_pair(&p);
}

static void
closing_the_device_takes_all_along(void **state)
{
	struct rig *r = *state;
	struct ibv_context *mine = r->ctx, *ctx = open_device();
	int fd = temp_file();
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_XRC_RECV, .comp_mask = IBV_QP_INIT_ATTR_XRCD};

	attr.xrcd = open_domain(ctx, fd, O_CREAT);
	assert_non_null(ibv_create_qp_ex(ctx, &attr));
	assert_int_equal(ibv_close_device(ctx), 0);
	expect_null(open_domain(mine, fd, 0), EAGAIN);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_DEVICE(open_xrcd_without_inode_needs_o_creat),
		TEST_DEVICE(open_xrcd_needs_fd_and_oflags),
		TEST_DEVICE(open_xrcd_follows_o_creat_and_o_excl),
		TEST_DEVICE(close_xrcd_is_busy_while_objects_stand_in_it),
		TEST_DEVICE(only_xrc_srqs_have_numbers),
		TEST_DEVICE(create_refuses_missing_parts),
		TEST_DEVICE(send_arrives_in_the_srq_that_it_names),
		TEST_DEVICE(target_has_no_queues_to_post_to),
		TEST_DEVICE(wrong_srq_number_is_a_remote_invalid_request),
		TEST_DEVICE(open_qp_finds_targets_of_the_domain_only),
		TEST_DEVICE(target_lives_as_long_as_one_handle_of_it),
		TEST_DEVICE(closing_the_device_takes_all_along),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
