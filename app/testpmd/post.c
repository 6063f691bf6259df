/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Work requests. See post.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backend.h"
#include "cli.h"
#include "post.h"

int
tp_mem_alloc(struct tp_mem *mem, size_t size, uint32_t access)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	int rc;

	if (p == MAP_FAILED)
		return tp_refuse(-ENOMEM, "there is no memory of %zu bytes", size);
	tp_lock();
	rc = vrb_mr_reg(tp_engine(), tp_pd(), (uintptr_t)p, size, (uintptr_t)p, access, &mem->mr);
	tp_unlock();
	if (rc < 0) {
		munmap(p, size);
		return tp_refuse(rc, "the memory cannot be registered: %s",
			rc == -EINVAL ? "remote write and atomics need local-write as well"
				      : strerror(-rc));
	}
	mem->addr = p;
	mem->size = size;
	return 0;
}

int
tp_mem_free(struct tp_mem *mem)
{
	int rc = 0;

	if (mem->addr == NULL)
		return 0;
	tp_lock();
	rc = vrb_mr_dereg(tp_engine(), mem->mr);
	tp_unlock();
	if (rc < 0)
		return rc;
	munmap(mem->addr, mem->size);
	memset(mem, 0, sizeof(*mem));
	return 0;
}

int
tp_buffers_make(struct tp_buffers *b, struct vrb_rq *rq, uint32_t num, uint32_t size)
{
	int rc;

	if (b->num > 0)
		return 0;
	b->free = malloc(num * sizeof(*b->free));
	if (b->free == NULL)
		return tp_refuse(-ENOMEM, "there is no memory for %u buffers", num);
	size = RTE_ALIGN_CEIL(size, 64);
	rc = tp_mem_alloc(&b->mem, (size_t)num * size, VRB_ACCESS_LOCAL_WRITE);
	if (rc < 0) {
		free(b->free);
		b->free = NULL;
		return rc;
	}
	b->rq = rq;
	b->num = num;
	b->size = size;
	tp_buffers_reset(b);
	return 0;
}

void
tp_buffers_reset(struct tp_buffers *b)
{
	/* The first is taken first. */
	for (b->num_free = 0; b->num_free < b->num; b->num_free++)
		b->free[b->num_free] = b->num - 1 - b->num_free;
}

void
tp_buffers_free(struct tp_buffers *b)
{
	tp_mem_free(&b->mem);
	free(b->free);
	memset(b, 0, sizeof(*b));
}

uint32_t
tp_buffers_post(struct tp_buffers *b, uint32_t num)
{
	struct vrb_rq *rq = b->rq;
	uint32_t n;

	rte_spinlock_lock(&rq->lock);
	for (n = 0; n < num && b->num_free > 0; n++) {
		struct vrb_recv_wqe *w = vrb_rq_slot(rq, n);
		uint32_t i;

		if (w == NULL)
			break;
		i = b->free[--b->num_free];
		w->wr_id = TP_WR_RECV | i;
		w->num_sge = 1;
		w->length = b->size;
		w->sge[0] =
			(struct vrb_sge){(uintptr_t)tp_buffer_at(b, i), b->size, b->mem.mr->lkey};
	}
	vrb_rq_commit(rq, n);
	rte_spinlock_unlock(&rq->lock);
	return n;
}

void
tp_buffers_put(struct tp_buffers *b, uint32_t i)
{
	rte_spinlock_lock(&b->rq->lock);
	if (i < b->num && b->num_free < b->num)
		b->free[b->num_free++] = i;
	rte_spinlock_unlock(&b->rq->lock);
}

struct tp_buffers *
tp_buffers_of(struct tp_obj *obj)
{
	if (obj->kind == TP_WQ)
		return &((struct tp_wq *)obj)->buffers;
	if (obj->kind == TP_SRQ)
		return &((struct tp_srq *)obj)->buffers;
	if (((struct tp_qp *)obj)->srq != NULL)
		return &((struct tp_qp *)obj)->srq->buffers;
	return &((struct tp_qp *)obj)->buffers;
}

int
tp_post_send(struct tp_qp *qp, const struct tp_send *send)
{
	struct vrb_sq *sq = vrb_qp_sq(qp->qp);
	struct vrb_send_wqe *w;
	bool in_line = send->opcode != VRB_WR_RDMA_READ && send->length <= qp->max_inline;
	int rc = -ENOBUFS;

	rte_spinlock_lock(&sq->lock);
	w = vrb_sq_slot(sq, 0);
	if (w != NULL) {
		w->wr_id = send->wr_id;
		w->opcode = send->opcode;
		w->flags = VRB_SEND_SIGNALED | (in_line ? VRB_SEND_INLINE : 0);
		w->num_sge = in_line ? 0 : 1;
		w->length = send->length;
		w->imm = 0;
		w->rkey = send->rkey;
		w->remote_addr = send->remote_addr;
		if (qp->type == VRB_QPT_UD) {
			w->ud.ah = qp->ah;
			w->ud.remote_qpn = qp->remote_qpn;
			w->ud.qkey = qp->remote_qkey;
		}
		if (in_line)
			memcpy(w->data, send->addr, send->length);
		else
			*(struct vrb_sge *)w->data =
				(struct vrb_sge){(uintptr_t)send->addr, send->length, send->lkey};
		rc = vrb_qp_check_send(qp->qp, w);
		if (rc == 0)
			vrb_sq_commit(sq, 1);
	}
	rte_spinlock_unlock(&sq->lock);
	return rc;
}

unsigned int
tp_cq_take(struct tp_cq *cq, struct vrb_cqe *cqes, unsigned int max)
{
	struct vrb_cqe *c;
	unsigned int n;

	rte_spinlock_lock(&cq->cq->lock);
	for (n = 0; n < max && (c = vrb_cq_peek(cq->cq)) != NULL; n++) {
		cqes[n] = *c;
		vrb_cq_pop(cq->cq);
	}
	rte_spinlock_unlock(&cq->cq->lock);
	atomic_fetch_add_explicit(&cq->taken, n, memory_order_relaxed);
	return n;
}

uint32_t
tp_cq_count(const struct vrb_cq *cq)
{
	return atomic_load_explicit(&cq->head, memory_order_acquire) -
	       atomic_load_explicit(&cq->tail, memory_order_relaxed);
}

void
tp_cq_forget(struct tp_cq *cq, const void *user)
{
	uint32_t i, head;

	if (cq == NULL)
		return;
	rte_spinlock_lock(&cq->cq->lock);
	head = atomic_load_explicit(&cq->cq->head, memory_order_acquire);
	for (i = atomic_load_explicit(&cq->cq->tail, memory_order_relaxed); i != head; i++)
		if (cq->cq->ring[i & cq->cq->mask].qp_user == user)
			cq->cq->ring[i & cq->cq->mask].qp_user = NULL;
	rte_spinlock_unlock(&cq->cq->lock);
}

const char *
tp_status_name(enum vrb_wc_status status)
{
	static const char *const names[] = {
		[VRB_WC_SUCCESS] = "success",
		[VRB_WC_LOC_LEN_ERR] = "local length error",
		[VRB_WC_LOC_QP_OP_ERR] = "local queue pair operation error",
		[VRB_WC_LOC_PROT_ERR] = "local protection error",
		[VRB_WC_WR_FLUSH_ERR] = "flushed",
		[VRB_WC_MW_BIND_ERR] = "memory window bind error",
		[VRB_WC_BAD_RESP_ERR] = "bad response",
		[VRB_WC_LOC_ACCESS_ERR] = "local access error",
		[VRB_WC_REM_INV_REQ_ERR] = "remote invalid request",
		[VRB_WC_REM_ACCESS_ERR] = "remote access error",
		[VRB_WC_REM_OP_ERR] = "remote operation error",
		[VRB_WC_RETRY_EXC_ERR] = "no answer: retries exceeded",
		[VRB_WC_RNR_RETRY_EXC_ERR] = "the other side has no receives: RNR retries exceeded",
		[VRB_WC_FATAL_ERR] = "fatal error",
		[VRB_WC_GENERAL_ERR] = "general error",
	};

	return (unsigned int)status < RTE_DIM(names) && names[status] != NULL ? names[status]
									      : "unknown status";
}

const char *
tp_state_name(enum vrb_qp_state state)
{
	static const char *const names[VRB_QPS_NUM] = {
		"reset", "init", "rtr", "rts", "sqd", "sqe", "error"};

	return state < VRB_QPS_NUM ? names[state] : "unknown";
}
