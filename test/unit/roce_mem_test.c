/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory regions and windows: bounds, keys, rights, rules of binding; memory that has gone away;
 * huge messages.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "roce_rig.h"

#define ALL (VRB_ACCESS_LOCAL_WRITE | VRB_ACCESS_REMOTE | VRB_ACCESS_MW_BIND)

static int
reg(struct rig *r, uint64_t addr, uint64_t len, uint64_t iova, uint32_t access)
{
	struct vrb_mr *mr;
	int rc = vrb_mr_reg(r->e, r->pd, addr, len, iova, access, &mr);

	if (rc == 0)
		vrb_mr_dereg(r->e, mr);
	return rc;
}

static void
registration_is_checked(void **state)
{
	struct rig *r = rig_bare(&(struct rig_conf){0});

	assert_int_equal(reg(r, 0x1000, 0x1000, 0x1000, ALL), 0);
	assert_int_equal(reg(r, 0x1000, 0, 0x1000, 0), 0);
	assert_int_equal(reg(r, 0x1000, 1, 0x1000, VRB_ACCESS_REMOTE_READ), 0);
	assert_int_equal(reg(r, 0x1000, 1, 0x1000, VRB_ACCESS_REMOTE_WRITE), -EINVAL);
	assert_int_equal(reg(r, 0x1000, 1, 0x1000, VRB_ACCESS_REMOTE_ATOMIC), -EINVAL);
	assert_int_equal(reg(r, 0x1000, 1, 0x1000, 1u << 30), -EINVAL);
	/* Up to the last byte of the address space, not over it. */
	assert_int_equal(reg(r, 0x1000, 0x1000, UINT64_MAX - 0xfff, 0), 0);
	assert_int_equal(reg(r, 0x1000, 0x1001, UINT64_MAX - 0xfff, 0), -EINVAL);
	assert_int_equal(reg(r, UINT64_MAX - 0xfff, 0x1001, 0, 0), -EINVAL);
	assert_int_equal(reg(r, 0, UINT64_MAX, 0, 0), -EINVAL);
	rig_free(r);
}

static void
keys_are_distinct_and_change(void **state)
{
	struct rig *r = rig_bare(&(struct rig_conf){0});
	struct vrb_mr *mr[3000];
	uint32_t old;

	for (unsigned int i = 0; i < 3000; i++) {
		assert_int_equal(vrb_mr_reg(r->e, r->pd, 0x1000, 1, 0x1000, 0, &mr[i]), 0);
		assert_true(mr[i]->rkey != 0);
		assert_int_equal(mr[i]->rkey, mr[i]->lkey);
		for (unsigned int k = 0; k < i; k += 97)
			assert_true(mr[i]->rkey != mr[k]->rkey);
	}
	old = mr[7]->rkey;
	vrb_mr_dereg(r->e, mr[7]);
	/* Not soon the same again. */
	for (unsigned int i = 0; i < 100; i++) {
		assert_int_equal(vrb_mr_reg(r->e, r->pd, 0x1000, 1, 0x1000, 0, &mr[7]), 0);
		assert_true(mr[7]->rkey != old);
		vrb_mr_dereg(r->e, mr[7]);
	}
	rig_free(r);
}

static void
references_keep_objects(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	assert_int_equal(vrb_pd_destroy(r->e, r->pd), -EBUSY);
	assert_int_equal(vrb_cq_destroy(r->e, r->scq), -EBUSY);
	vrb_qp_destroy(r->qp);
	assert_int_equal(vrb_cq_destroy(r->e, r->scq), 0);
	assert_int_equal(vrb_cq_destroy(r->e, r->rcq), 0);
	assert_int_equal(vrb_pd_destroy(r->e, r->pd), -EBUSY);
	assert_int_equal(vrb_mr_dereg(r->e, r->mr), 0);
	assert_int_equal(vrb_pd_destroy(r->e, r->pd), 0);
	rig_free(r);
}

/* A region under another address, at the very end of the address space. */
static void
bounds_at_the_end_of_the_address_space(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	const uint64_t iova = 0 - (uint64_t)64;
	struct vrb_mr *mr;
	static const struct {
		uint64_t off;
		uint32_t len;
		bool good;
	} cases[] = {
		{0, 64, true},
		{63, 1, true},
		{0, 65, false},
		{63, 2, false},
		{64, 1, false},
		{(uint64_t)-1, 1, false},
		{1, 64, false},
		{32, 0x7fffffff, false},
	};

	assert_int_equal(vrb_mr_reg(r->e, r->pd, (uintptr_t)r->mem, 64, iova, ALL, &mr), 0);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct frame f = rig_packet(r, OP_READ_REQ, RIG_RQ_PSN);

		f.va = iova + cases[i].off;
		f.dmalen = cases[i].len;
		f.rkey = mr->rkey;
		rig_receive(r, &f);
		if (cases[i].good)
			assert_memory_equal(rig_expect(r, OP_RESP_ONLY, RIG_RQ_PSN)->payload,
				r->mem + cases[i].off, cases[i].len);
		else
			rig_expect_ack(r, 0x62, RIG_RQ_PSN);
		vrb_qp_destroy(r->qp);
		r->qp = rig_qp(r, VRB_QPS_RTS);
	}
	rig_free(r);
}

/* ---- windows ---- */

static enum vrb_wc_status
bind(struct rig *r, struct vrb_mr *mw, struct vrb_mr *mr, uint64_t off, uint64_t len,
	uint32_t access)
{
	struct vrb_send_wqe *w = rig_wqe(r, VRB_WR_BIND_MW, 1, 0, 0);
	struct vrb_cqe *c;
	enum vrb_wc_status status;

	w->bind.mw = mw;
	w->bind.mr = mr;
	w->bind.addr = mr == NULL ? 0 : mr->iova + off;
	w->bind.length = len;
	w->bind.access = access;
	w->bind.rkey = mw->rkey + 1;
	assert_int_equal(rig_commit(r, w), 0);
	rig_expect_silence(r);
	c = vrb_cq_peek(r->scq);
	assert_non_null(c);
	status = c->status;
	assert_int_equal(c->opcode, VRB_WC_BIND_MW);
	vrb_cq_pop(r->scq);
	return status;
}

static struct vrb_mr *
window(struct rig *r, unsigned int type)
{
	struct vrb_mr *mw;

	assert_int_equal(vrb_mw_alloc(r->e, r->pd, type, &mw), 0);
	return mw;
}

/* What the peer gets: the syndrome, or 0 when the WRITE of one byte went through. */
static uint8_t
write_one(struct rig *r, uint32_t rkey, uint64_t va)
{
	struct frame f = rig_packet(r, OP_WRITE_ONLY, RIG_RQ_PSN);
	uint8_t syndrome;

	f.rkey = rkey;
	f.va = va;
	f.payload = (const uint8_t *)"!";
	f.len = f.dmalen = 1;
	f.pad = 3;
	rig_receive(r, &f);
	syndrome = rig_expect(r, OP_ACK, RIG_RQ_PSN)->syndrome;
	return syndrome < 0x20 ? 0 : syndrome;
}

static void
window_narrows_its_region(void **state)
{
	static const struct {
		uint64_t off;
		uint8_t syndrome;
	} cases[] = {{99, 0x62}, {100, 0}, {149, 0}, {150, 0x62}};

	for (unsigned int i = 0; i < 8; i++) {
		struct rig *r = rig_new(&(struct rig_conf){0});
		struct vrb_mr *mw = window(r, 2);
		bool zero = i >= 4;
		uint64_t va = zero ? cases[i % 4].off - 100 : (uintptr_t)r->mem + cases[i % 4].off;
		uint32_t key = mw->rkey + 1;

		assert_int_equal(
			bind(r, mw, r->mr, 100, 50,
				VRB_ACCESS_REMOTE_WRITE | (zero ? VRB_ACCESS_ZERO_BASED : 0)),
			0);
		assert_int_equal(mw->rkey & 0xff, key & 0xff); /* the tag is the program's */
		assert_int_equal(write_one(r, mw->rkey, va), cases[i % 4].syndrome);
		if (cases[i % 4].syndrome == 0)
			assert_int_equal(r->mem[cases[i % 4].off], '!');
		rig_free(r);
	}
}

static void
window_gives_only_its_rights(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct vrb_mr *mw = window(r, 2);

	assert_int_equal(bind(r, mw, r->mr, 0, 50, VRB_ACCESS_REMOTE_READ), 0);
	assert_int_equal(write_one(r, mw->rkey, (uintptr_t)r->mem), 0x62);
	rig_free(r);
}

static void
unbound_window_is_closed(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});

	assert_int_equal(write_one(r, window(r, 2)->rkey, (uintptr_t)r->mem), 0x62);
	rig_free(r);
}

/* IBTA 10.6.7.2.3: a window of type 2B belongs to the queue pair that bound it. */
static void
window_of_another_queue_pair(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct vrb_mr *mw = window(r, 2);
	struct vrb_qp *first = r->qp;

	assert_int_equal(bind(r, mw, r->mr, 0, 50, VRB_ACCESS_REMOTE_WRITE), 0);
	r->qp = rig_qp(r, VRB_QPS_RTS);
	assert_int_equal(write_one(r, mw->rkey, (uintptr_t)r->mem), 0x62);
	r->qp = first;
	assert_int_equal(write_one(r, mw->rkey, (uintptr_t)r->mem), 0);
	rig_free(r);
}

/* It must not be taken over by the next queue pair that happens to get the same memory. */
static void
window_ends_with_its_queue_pair(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct vrb_mr *mw = window(r, 2);

	assert_int_equal(bind(r, mw, r->mr, 0, 50, VRB_ACCESS_REMOTE_WRITE), 0);
	vrb_qp_destroy(r->qp);
	assert_false(mw->valid);
	r->qp = rig_qp(r, VRB_QPS_RTS);
	assert_int_equal(write_one(r, mw->rkey, (uintptr_t)r->mem), 0x62);
	assert_int_equal(vrb_mr_dereg(r->e, r->mr), 0);
	rig_free(r);
}

static void
binds_that_are_refused(void **state)
{
	for (unsigned int i = 0; i < 7; i++) {
		struct rig *r = rig_new(&(struct rig_conf){0});
		struct vrb_mr *mw = window(r, 2), *mr = r->mr;
		uint64_t off = 0, len = 50;
		struct vrb_pd *pd;

		assert_int_equal(vrb_pd_create(r->e, &pd), 0);
		switch (i) {
		case 0: /* not registered for it */
			assert_int_equal(vrb_mr_reg(r->e, r->pd, (uintptr_t)r->mem, 100, 0,
						 VRB_ACCESS_LOCAL_WRITE, &mr),
				0);
			break;
		case 1: /* its region may not be written */
			assert_int_equal(vrb_mr_reg(r->e, r->pd, (uintptr_t)r->mem, 100, 0,
						 VRB_ACCESS_MW_BIND, &mr),
				0);
			break;
		case 2: /* beyond it */
			off = RIG_MEM - 49;
			break;
		case 3: /* another protection domain */
			assert_int_equal(
				vrb_mr_reg(r->e, pd, (uintptr_t)r->mem, 100, 0, ALL, &mr), 0);
			break;
		case 4:
			vrb_mw_free(r->e, mw);
			assert_int_equal(vrb_mw_alloc(r->e, pd, 2, &mw), 0);
			break;
		case 5: /* bound already */
			assert_int_equal(bind(r, mw, r->mr, 0, 50, VRB_ACCESS_REMOTE_READ), 0);
			break;
		default: /* to nothing */
			len = 0;
		}
		assert_int_equal(
			bind(r, mw, mr, off, len, VRB_ACCESS_REMOTE_WRITE), VRB_WC_MW_BIND_ERR);
		assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_ERR);
		rig_free(r);
	}
}

static void
window_of_type_1_can_be_moved_and_closed(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct vrb_mr *mw = window(r, 1);
	uint32_t old;

	assert_int_equal(bind(r, mw, r->mr, 0, 50, VRB_ACCESS_REMOTE_WRITE), 0);
	old = mw->rkey;
	assert_int_equal(vrb_mr_dereg(r->e, r->mr), -EBUSY);
	assert_int_equal(bind(r, mw, r->mr, 100, 50, VRB_ACCESS_REMOTE_WRITE), 0);
	assert_true(mw->rkey != old);
	assert_int_equal(bind(r, mw, NULL, 0, 0, 0), 0);
	assert_int_equal(write_one(r, mw->rkey, (uintptr_t)r->mem + 100), 0x62);
	assert_int_equal(vrb_mr_dereg(r->e, r->mr), 0);
	rig_free(r);
}

static void
local_invalidate(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct vrb_mr *mw = window(r, 2);
	struct vrb_send_wqe *w;

	assert_int_equal(bind(r, mw, r->mr, 0, 50, VRB_ACCESS_REMOTE_WRITE), 0);
	/* It waits for what is before it. */
	rig_post(r, VRB_WR_SEND, 3, 1, 0);
	w = rig_wqe(r, VRB_WR_LOCAL_INV, 4, 0, 0);
	w->imm = mw->rkey;
	rig_commit(r, w);
	rig_expect(r, OP_SEND_ONLY, RIG_SQ_PSN);
	assert_true(mw->valid);
	rig_ack(r, 0x1f, RIG_SQ_PSN);
	rig_expect_silence(r);
	assert_false(mw->valid);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->wr_id, 3);
	assert_int_equal(rig_poll(r, r->scq, VRB_WC_SUCCESS)->opcode, VRB_WC_LOCAL_INV);
	assert_int_equal(write_one(r, mw->rkey, (uintptr_t)r->mem), 0x62);
	rig_free(r);
}

/* ---- memory that has gone ---- */

static uint8_t *
pages(size_t n)
{
	uint8_t *p =
		mmap(NULL, n * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

static void
unmapped_source_of_a_send(void **state)
{
	for (unsigned int i = 0; i < 2; i++) {
		struct rig *r = rig_new(&(struct rig_conf){0});
		struct vrb_send_wqe *w;
		uint8_t *p = pages(2);
		struct vrb_mr *mr;

		assert_int_equal(
			vrb_mr_reg(r->e, r->pd, (uintptr_t)p, 8192, (uintptr_t)p, ALL, &mr), 0);
		w = rig_wqe(r, VRB_WR_SEND, 0, 100, 0);
		*(struct vrb_sge *)w->data =
			(struct vrb_sge){(uintptr_t)p + 4096 - (i ? 50 : 0), 100, mr->lkey};
		munmap(p + 4096, 4096);
		rig_commit(r, w);
		rig_expect_silence(r);
		rig_poll(r, r->scq, VRB_WC_LOC_PROT_ERR);
		munmap(p, 4096);
		rig_free(r);
	}
}

static void
unmapped_target_of_a_read(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct vrb_send_wqe *w;
	uint8_t *p = pages(1);
	struct vrb_mr *mr;
	struct frame f;

	assert_int_equal(vrb_mr_reg(r->e, r->pd, (uintptr_t)p, 4096, (uintptr_t)p, ALL, &mr), 0);
	w = rig_wqe(r, VRB_WR_RDMA_READ, 0, 4, 0);
	*(struct vrb_sge *)w->data = (struct vrb_sge){(uintptr_t)p, 4, mr->lkey};
	rig_commit(r, w);
	rig_take(r);
	mprotect(p, 4096, PROT_READ);
	f = rig_packet(r, OP_RESP_ONLY, RIG_SQ_PSN);
	f.syndrome = 0x1f;
	f.payload = (const uint8_t *)"abcd";
	f.len = 4;
	rig_receive(r, &f);
	rig_poll(r, r->scq, VRB_WC_LOC_PROT_ERR);
	munmap(p, 4096);
	rig_free(r);
}

static void
unmapped_memory_at_the_responder(void **state)
{
	static const uint8_t ops[] = {OP_WRITE_ONLY, OP_READ_REQ, OP_CAS, OP_FADD};

	for (unsigned int i = 0; i < sizeof(ops); i++) {
		struct rig *r = rig_new(&(struct rig_conf){0});
		struct frame f = rig_packet(r, ops[i], RIG_RQ_PSN);
		uint8_t *p = pages(1);
		struct vrb_mr *mr;

		assert_int_equal(
			vrb_mr_reg(r->e, r->pd, (uintptr_t)p, 4096, (uintptr_t)p, ALL, &mr), 0);
		munmap(p, 4096);
		f.rkey = mr->rkey;
		f.va = (uintptr_t)p;
		f.dmalen = 4;
		f.payload = (const uint8_t *)"abcd";
		f.len = ops[i] == OP_WRITE_ONLY ? 4 : 0;
		rig_receive(r, &f);
		rig_expect_ack(r, 0x62, RIG_RQ_PSN);
		assert_int_equal(vrb_qp_state(r->qp), VRB_QPS_ERR);
		rig_free(r);
	}
}

static void
truncated_file_behind_a_receive(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){0});
	struct frame f = rig_packet(r, OP_SEND_ONLY, RIG_RQ_PSN);
	char name[] = "/tmp/roce_mem_XXXXXX";
	int fd = mkstemp(name);
	struct vrb_recv_wqe *w;
	struct vrb_mr *mr;
	uint8_t *p;

	assert_true(fd >= 0);
	unlink(name);
	assert_int_equal(ftruncate(fd, 4096), 0);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(p != MAP_FAILED);
	assert_int_equal(ftruncate(fd, 0), 0);
	close(fd);
	assert_int_equal(vrb_mr_reg(r->e, r->pd, (uintptr_t)p, 4096, (uintptr_t)p, ALL, &mr), 0);
	rig_post_recv(r, 0, 100);
	w = vrb_rq_at(vrb_qp_rq(r->qp), 0);
	w->sge[0] = (struct vrb_sge){(uintptr_t)p, 100, mr->lkey};
	f.payload = (const uint8_t *)"abcd";
	f.len = 4;
	rig_receive(r, &f);
	rig_expect_ack(r, 0x63, RIG_RQ_PSN);
	rig_poll(r, r->rcq, VRB_WC_LOC_PROT_ERR);
	munmap(p, 4096);
	rig_free(r);
}

/* ---- 2^31 bytes ---- */

/* Packet by packet it would take minutes: the start, and the end after acknowledgements of
 * everything in between. */
static void
largest_read(void **state)
{
	struct rig *r = rig_new(&(struct rig_conf){.mtu = VRB_MTU_256, .sq_psn = 0xfffff0});
	uint8_t *p = mmap(NULL, VRB_MAX_MSG, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	const uint32_t packets = VRB_MAX_MSG / 256;
	static uint8_t zeros[256];
	struct vrb_send_wqe *w;
	struct vrb_mr *mr;
	struct frame f = {0};
	uint8_t buf[512];
	uint32_t asked = 0, n;

	assert_true(p != MAP_FAILED);
	assert_int_equal(
		vrb_mr_reg(r->e, r->pd, (uintptr_t)p, VRB_MAX_MSG, (uintptr_t)p, ALL, &mr), 0);
	w = rig_wqe(r, VRB_WR_RDMA_READ, 0, VRB_MAX_MSG, 0);
	*(struct vrb_sge *)w->data = (struct vrb_sge){(uintptr_t)p, VRB_MAX_MSG, mr->lkey};
	assert_int_equal(rig_commit(r, w), 0);
	/* As it is zero everywhere, the zero page is all that is ever mapped; only the first chunks
	 * and the last are answered. */
	for (uint32_t i = 0; i < 3 * VRB_READ_CHUNK; i++) {
		rig_send(r);
		while (r->next_frame < r->n_frames) {
			const struct frame *a = rig_take(r);

			assert_int_equal(a->psn, (0xfffff0 + asked) & 0xffffff);
			assert_int_equal(a->va, 0x123456789000ull + (uint64_t)asked * 256);
			asked += a->dmalen / 256;
		}
		f = rig_packet(r, OP_RESP_MIDDLE, (0xfffff0 + i) & 0xffffff);
		f.payload = zeros;
		f.len = 256;
		n = (uint32_t)frame_build(&f, buf, sizeof(buf));
		assert_false(rig_receive_raw(r, buf, n));
		assert_true(asked > i);
	}
	rig_expect_empty(r, r->scq);
	assert_true(asked < packets);
	munmap(p, VRB_MAX_MSG);
	rig_free(r);
}

static void
largest_read_at_the_responder(void **state)
{
	struct rig *r = rig_new(
		&(struct rig_conf){.mtu = VRB_MTU_4096, .no_icrc = true, .zero_copy = true});
	uint8_t *p = mmap(NULL, VRB_MAX_MSG, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct frame f = rig_packet(r, OP_READ_REQ, RIG_RQ_PSN);
	const uint32_t packets = VRB_MAX_MSG / 4096;
	struct vrb_mr *mr;

	assert_true(p != MAP_FAILED);
	assert_int_equal(
		vrb_mr_reg(r->e, r->pd, (uintptr_t)p, VRB_MAX_MSG, (uintptr_t)p, ALL, &mr), 0);
	f.va = (uintptr_t)p;
	f.rkey = mr->rkey;
	f.dmalen = VRB_MAX_MSG;
	rig_receive(r, &f);
	rig_send_some(r, 20);
	for (uint32_t i = 0; i < 20; i++)
		rig_expect(r, i == 0 ? OP_RESP_FIRST : OP_RESP_MIDDLE, RIG_RQ_PSN + i);
	/* The request behind it has the PSN behind all its packets. */
	f.psn = RIG_RQ_PSN + packets;
	f.dmalen = 8;
	rig_receive(r, &f);
	assert_int_equal(vrb_engine_stats(r->e)->rx_out_of_order, 0);
	assert_int_equal(vrb_engine_stats(r->e)->rx_duplicate, 0);
	munmap(p, VRB_MAX_MSG);
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(registration_is_checked),
		cmocka_unit_test(keys_are_distinct_and_change),
		cmocka_unit_test(references_keep_objects),
		cmocka_unit_test(bounds_at_the_end_of_the_address_space),
		cmocka_unit_test(window_narrows_its_region),
		cmocka_unit_test(window_gives_only_its_rights),
		cmocka_unit_test(unbound_window_is_closed),
		cmocka_unit_test(window_of_another_queue_pair),
		cmocka_unit_test(window_ends_with_its_queue_pair),
		cmocka_unit_test(binds_that_are_refused),
		cmocka_unit_test(window_of_type_1_can_be_moved_and_closed),
		cmocka_unit_test(local_invalidate),
		cmocka_unit_test(unmapped_source_of_a_send),
		cmocka_unit_test(unmapped_target_of_a_read),
		cmocka_unit_test(unmapped_memory_at_the_responder),
		cmocka_unit_test(truncated_file_behind_a_receive),
		cmocka_unit_test(largest_read),
		cmocka_unit_test(largest_read_at_the_responder),
	};

	return cmocka_run_group_tests_name("roce memory", tests, rig_group, NULL);
}
