/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * 64 queue pairs on one shared receive queue, which is resized up and down and whose limit is armed
 * again and again, while messages arrive and several threads post and poll. In between it runs dry,
 * with 1 to 4 receives for all: then senders have to wait (RNR), and nothing may be lost or hang.
 *
 * Two processes. The sender tells in the end how many messages it has sent on each queue pair. The
 * receiver has checked that those of a queue pair came in order, each once and with every byte,
 * that each receive was used once, and that every arming of the limit gave one event.
 */
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "stress.h"

#define QPS 64
#define POLLERS 2
#define POSTERS 2
#define SENDERS 2
#define SLOTS 1024 /* receive buffers */
#define MSG_MAX 6000
#define SEND_DEPTH 8
#define SRQ_MAX 1024
#define LIST_MAX 16
#define EVENT_PATIENCE_NS UINT64_C(20000000000)

/* What both sides tell each other first. */
struct hello {
	union ibv_gid gid;
	uint32_t qpn[QPS];
};

struct message {
	uint32_t qp, seq;
	uint64_t what;
};

/* Length of a message: from its number, so that both sides know it. Many short ones, some long. */
static uint32_t
length_of(uint64_t what)
{
	uint32_t max = (what & 7) == 0 ? MSG_MAX : 256;

	return (uint32_t)sizeof(struct message) +
	       (uint32_t)((what >> 8) % (max - sizeof(struct message) + 1));
}

static void
tell(int fd, const void *data, size_t len)
{
	STRESS_CHECK(write(fd, data, len) == (ssize_t)len, "the other process has gone");
}

static void
hear(int fd, void *data, size_t len)
{
	STRESS_CHECK(
		recv(fd, data, len, MSG_WAITALL) == (ssize_t)len, "the other process has gone");
}

/* ---- the sender ---- */

struct sender {
	struct stress_opts opts;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_qp *qp[QPS];
	uint32_t sent[QPS];
	uint64_t end;
};

struct sender_thread {
	struct sender *s;
	unsigned int index;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *buf;
	uint32_t done[QPS];
};

static void
send_one(struct sender_thread *t, uint32_t q)
{
	struct sender *s = t->s;
	uint32_t seq = s->sent[q]++;
	uint64_t what = stress_mix(s->opts.seed, q, seq);
	uint8_t *p = t->buf + (size_t)(q * SEND_DEPTH + seq % SEND_DEPTH) * MSG_MAX;
	struct message m = {q, seq, what};
	struct ibv_sge sge = {(uintptr_t)p, length_of(what), t->mr->lkey};
	struct ibv_send_wr *bad, wr = {.wr_id = (uint64_t)q << 32 | seq,
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = seq & 1 ? IBV_WR_SEND : IBV_WR_SEND_WITH_IMM,
					 .imm_data = seq,
					 .send_flags = IBV_SEND_SIGNALED};
	int rc;

	memcpy(p, &m, sizeof(m));
	stress_fill(p + sizeof(m), sge.length - (uint32_t)sizeof(m), what);
	rc = ibv_post_send(s->qp[q], &wr, &bad);
	STRESS_CHECK(!rc, "ibv_post_send of message %u on queue pair %u: %s", seq, q, strerror(rc));
}

static int
reap_sends(struct sender_thread *t)
{
	struct ibv_wc wc[16];
	int i, n = ibv_poll_cq(t->cq, 16, wc);

	for (i = 0; i < n; i++) {
		uint32_t q = (uint32_t)(wc[i].wr_id >> 32), seq = (uint32_t)wc[i].wr_id;

		STRESS_CHECK(wc[i].status == IBV_WC_SUCCESS,
			"message %u of queue pair %u was not sent: %s", seq, q,
			ibv_wc_status_str(wc[i].status));
		STRESS_CHECK(seq == t->done[q],
			"send %u of queue pair %u completed when %u was expected", seq, q,
			t->done[q]);
		t->done[q]++;
	}
	return n;
}

static void *
sender_main(void *arg)
{
	struct sender_thread *t = arg;
	struct sender *s = t->s;
	struct stress_rnd rnd = stress_rnd_init(s->opts.seed, 100 + t->index);
	uint64_t moved = stress_now(), now;
	uint32_t q, open;

	do {
		now = stress_now();
		open = 0;
		for (q = t->index; q < QPS; q += SENDERS) {
			uint32_t out = s->sent[q] - t->done[q];
			uint32_t n = stress_rnd_range(&rnd, 0, SEND_DEPTH);

			while (now < s->end && out < n) {
				send_one(t, q);
				out++;
			}
			open += out;
		}
		if (reap_sends(t) > 0)
			moved = now;
		STRESS_CHECK(now - moved < STRESS_PATIENCE_NS,
			"the sender hangs: %u messages of thread %u do not complete", open,
			t->index);
	} while (now < s->end || open);
	return NULL;
}

static void
run_sender(struct stress_opts opts, int fd)
{
	struct sender s = {.opts = opts};
	struct sender_thread t[SENDERS] = {0};
	pthread_t id[SENDERS];
	struct hello mine = {0}, peer;
	size_t size = (size_t)QPS * SEND_DEPTH * MSG_MAX;
	unsigned int i;

	s.ctx = open_device();
	s.pd = ibv_alloc_pd(s.ctx);
	ibv_query_gid(s.ctx, 1, 0, &mine.gid);
	for (i = 0; i < SENDERS; i++) {
		t[i].s = &s;
		t[i].index = i;
		t[i].cq = ibv_create_cq(s.ctx, QPS * SEND_DEPTH, NULL, NULL, 0);
		t[i].buf = malloc(size);
		t[i].mr = ibv_reg_mr(s.pd, t[i].buf, size, 0);
		STRESS_CHECK(
			s.pd && t[i].cq && t[i].mr, "the sender's objects: %s", strerror(errno));
	}
	for (i = 0; i < QPS; i++) {
		struct ibv_cq *cq = t[i % SENDERS].cq;

		s.qp[i] = stress_qp(s.pd, cq, cq, NULL, SEND_DEPTH, 1);
		mine.qpn[i] = s.qp[i]->qp_num;
	}
	tell(fd, &mine, sizeof(mine));
	hear(fd, &peer, sizeof(peer));
	for (i = 0; i < QPS; i++)
		stress_connect(s.qp[i], &peer.gid, peer.qpn[i]);
	s.end = stress_now() + opts.seconds * UINT64_C(1000000000);
	for (i = 0; i < SENDERS; i++)
		id[i] = stress_thread(sender_main, &t[i]);
	for (i = 0; i < SENDERS; i++)
		pthread_join(id[i], NULL);
	tell(fd, s.sent, sizeof(s.sent));
	/* The receiver has all, or has failed: then both go. */
	hear(fd, &i, 1);
	for (i = 0; i < QPS; i++)
		STRESS_CHECK(!ibv_destroy_qp(s.qp[i]), "a queue pair could not be destroyed");
	for (i = 0; i < SENDERS; i++) {
		STRESS_CHECK(!ibv_destroy_cq(t[i].cq) && !ibv_dereg_mr(t[i].mr),
			"the sender's objects could not be destroyed");
		free(t[i].buf);
	}
	STRESS_CHECK(!ibv_dealloc_pd(s.pd) && !ibv_close_device(s.ctx), "the device stays open");
}

/* ---- the receiver ---- */

struct receiver {
	struct stress_opts opts;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_srq *srq;
	struct ibv_cq *cq[POLLERS];
	struct ibv_qp *qp[QPS];
	uint8_t *buf;
	struct ibv_mr *mr;
	uint32_t got[QPS]; /* each by one poller */
	atomic_uint total;
	atomic_ullong bytes;
	/* receive buffers: in a list when free */
	pthread_mutex_t lock;
	uint16_t free[SLOTS];
	uint32_t num_free;
	bool posted[SLOTS]; /* under lock */
	atomic_uint max_wr; /* what the last change of size gave */
	atomic_uint target; /* how many receives shall be there */
	atomic_bool stop;
	atomic_uint resizes, refused, armings, limits, phases;
};

static uint32_t
outstanding(struct receiver *r)
{
	uint32_t n;

	pthread_mutex_lock(&r->lock);
	n = SLOTS - r->num_free;
	pthread_mutex_unlock(&r->lock);
	return n;
}

/* Under the lock. */
static void
give_back(struct receiver *r, uint16_t slot)
{
	STRESS_CHECK(r->posted[slot], "receive %u completed twice", slot);
	r->posted[slot] = false;
	r->free[r->num_free++] = slot;
}

/* Posts a list of receives; what the queue does not take stays free. */
static void
post_list(struct receiver *r, uint32_t n)
{
	struct ibv_recv_wr wr[LIST_MAX], *bad = NULL;
	struct ibv_sge sge[LIST_MAX];
	uint32_t i;
	int rc;

	pthread_mutex_lock(&r->lock);
	n = n < r->num_free ? n : r->num_free;
	for (i = 0; i < n; i++) {
		uint16_t slot = r->free[--r->num_free];

		r->posted[slot] = true;
		sge[i] = (struct ibv_sge){
			(uintptr_t)r->buf + (size_t)slot * MSG_MAX, MSG_MAX, r->mr->lkey};
		wr[i] = (struct ibv_recv_wr){
			.wr_id = slot, .sg_list = &sge[i], .num_sge = 1, .next = &wr[i + 1]};
	}
	pthread_mutex_unlock(&r->lock);
	if (!n)
		return;
	wr[n - 1].next = NULL;
	rc = ibv_post_srq_recv(r->srq, wr, &bad);
	STRESS_CHECK(!rc || (rc == ENOMEM && bad), "ibv_post_srq_recv: %s", strerror(rc));
	if (!rc)
		return;
	pthread_mutex_lock(&r->lock);
	for (; bad; bad = bad->next)
		give_back(r, (uint16_t)bad->wr_id);
	pthread_mutex_unlock(&r->lock);
}

static void *
poster_main(void *arg)
{
	struct receiver *r = arg;
	static atomic_uint next;
	struct stress_rnd rnd = stress_rnd_init(r->opts.seed, 200 + next++);

	while (!r->stop) {
		uint32_t have = outstanding(r), want = r->target;

		if (have < want) {
			uint32_t n = stress_rnd_range(&rnd, 1, LIST_MAX);

			post_list(r, n < want - have ? n : want - have);
		} else {
			sched_yield();
		}
	}
	return NULL;
}

static void
take_message(struct receiver *r, unsigned int poller, const struct ibv_wc *wc)
{
	uint16_t slot = (uint16_t)wc->wr_id;
	const uint8_t *p = r->buf + (size_t)slot * MSG_MAX;
	struct message m;
	uint64_t what;

	STRESS_CHECK(wc->status == IBV_WC_SUCCESS && wc->wr_id < SLOTS, "receive %llu failed: %s",
		(unsigned long long)wc->wr_id, ibv_wc_status_str(wc->status));
	memcpy(&m, p, sizeof(m));
	STRESS_CHECK(m.qp < QPS && r->qp[m.qp]->qp_num == wc->qp_num && m.qp % POLLERS == poller,
		"a message of queue pair %u was reported of number %#x", m.qp, wc->qp_num);
	STRESS_CHECK(m.seq == r->got[m.qp], "message %u of queue pair %u came when %u was expected",
		m.seq, m.qp, r->got[m.qp]);
	what = stress_mix(r->opts.seed, m.qp, m.seq);
	STRESS_CHECK(
		m.what == what && wc->byte_len == length_of(what) &&
			stress_is_filled(p + sizeof(m), wc->byte_len - (uint32_t)sizeof(m), what),
		"message %u of queue pair %u, of %u bytes, does not hold what was sent", m.seq,
		m.qp, wc->byte_len);
	STRESS_CHECK(m.seq & 1 ? !(wc->wc_flags & IBV_WC_WITH_IMM)
			       : wc->wc_flags & IBV_WC_WITH_IMM && wc->imm_data == m.seq,
		"message %u of queue pair %u has the wrong immediate data", m.seq, m.qp);
	r->got[m.qp]++;
	r->total++;
	r->bytes += wc->byte_len;
	pthread_mutex_lock(&r->lock);
	give_back(r, slot);
	pthread_mutex_unlock(&r->lock);
}

struct poller {
	struct receiver *r;
	unsigned int index;
};

static void *
poller_main(void *arg)
{
	struct poller *p = arg;
	struct receiver *r = p->r;
	struct ibv_wc wc[32];
	int i, n;

	while (!r->stop) {
		n = ibv_poll_cq(r->cq[p->index], 32, wc);
		STRESS_CHECK(n >= 0, "ibv_poll_cq: %d", n);
		for (i = 0; i < n; i++)
			take_message(r, p->index, &wc[i]);
		if (!n)
			sched_yield();
	}
	return NULL;
}

/* Up and down, and now and then to less than is there, which must change nothing. */
static void *
resizer_main(void *arg)
{
	struct receiver *r = arg;
	struct stress_rnd rnd = stress_rnd_init(r->opts.seed, 300);

	while (!r->stop) {
		struct ibv_srq_attr attr = {.max_wr = stress_rnd_range(&rnd, 1,
						    stress_rnd_range(&rnd, 0, 3) ? 64 : SRQ_MAX)};
		uint32_t want = attr.max_wr;
		int rc = ibv_modify_srq(r->srq, &attr, IBV_SRQ_MAX_WR);

		if (!rc) {
			STRESS_CHECK(attr.max_wr >= want, "max_wr %u was asked for, %u is there",
				want, attr.max_wr);
			r->max_wr = attr.max_wr;
			r->resizes++;
		} else {
			/* EINVAL, when more is posted; the limit may be above it as well. */
			STRESS_CHECK(rc == EINVAL, "ibv_modify_srq: %s", strerror(rc));
			ibv_query_srq(r->srq, &attr);
			STRESS_CHECK(attr.max_wr == r->max_wr,
				"a refused change made max_wr %u of %u", attr.max_wr, r->max_wr);
			r->refused++;
		}
		stress_sleep_us(stress_rnd_range(&rnd, 0, 300));
	}
	return NULL;
}

static void
await_limit(struct receiver *r)
{
	struct pollfd fd = {.fd = r->ctx->async_fd, .events = POLLIN};
	struct ibv_async_event event;
	uint64_t start = stress_now();

	while (poll(&fd, 1, 100) != 1) {
		if (r->stop)
			return;
		STRESS_CHECK(stress_now() - start < EVENT_PATIENCE_NS,
			"the limit was armed, the queue has run low, and no event came");
	}
	STRESS_CHECK(!ibv_get_async_event(r->ctx, &event), "ibv_get_async_event failed");
	STRESS_CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED && event.element.srq == r->srq,
		"the event %s came", ibv_event_type_str(event.event_type));
	ibv_ack_async_event(&event);
	r->limits++;
	/* One-shot: it does not come again by itself. */
	STRESS_CHECK(poll(&fd, 1, 0) == 0, "one arming gave two events");
}

static void *
armer_main(void *arg)
{
	struct receiver *r = arg;
	struct stress_rnd rnd = stress_rnd_init(r->opts.seed, 400);

	while (!r->stop) {
		struct ibv_srq_attr attr = {.srq_limit = stress_rnd_range(&rnd, 1, 8)};
		int rc = ibv_modify_srq(r->srq, &attr, IBV_SRQ_LIMIT);

		STRESS_CHECK(!rc || rc == EINVAL, "arming the limit: %s", strerror(rc));
		if (rc)
			continue; /* the queue is smaller just now */
		r->armings++;
		await_limit(r);
		ibv_query_srq(r->srq, &attr);
		STRESS_CHECK(r->stop || attr.srq_limit == 0,
			"the limit is %u after its event; it should be 0", attr.srq_limit);
	}
	return NULL;
}

/* Changes how many receives there are, and watches that messages go on arriving. */
static void
conduct(struct receiver *r, uint64_t end)
{
	struct stress_rnd rnd = stress_rnd_init(r->opts.seed, 500);
	uint32_t last = 0;
	uint64_t moved = stress_now(), now;

	while ((now = stress_now()) < end) {
		bool starve = stress_rnd_range(&rnd, 0, 1);

		r->target =
			starve ? stress_rnd_range(&rnd, 1, 4) : stress_rnd_range(&rnd, 16, SLOTS);
		r->phases++;
		stress_sleep_us(stress_rnd_range(&rnd, 1000, 30000));
		if (r->total != last)
			moved = now;
		last = r->total;
		STRESS_CHECK(now - moved < STRESS_PATIENCE_NS,
			"no message arrives any more, after %u; %u receives are posted", last,
			outstanding(r));
	}
	r->target = 32;
}

static void
await_rest(struct receiver *r, const uint32_t *sent)
{
	uint64_t start = stress_now();
	uint32_t q, all = 0;

	for (q = 0; q < QPS; q++)
		all += sent[q];
	while (r->total < all && stress_now() - start < STRESS_PATIENCE_NS)
		stress_sleep_us(1000);
	stress_sleep_us(20000); /* more than there were would come now */
	for (q = 0; q < QPS; q++)
		STRESS_CHECK(r->got[q] == sent[q],
			"queue pair %u: %u messages were sent, %u arrived", q, sent[q], r->got[q]);
}

static void
open_receiver(struct receiver *r)
{
	struct ibv_srq_init_attr init = {.attr = {.max_wr = 64, .max_sge = 2}};
	uint32_t i;

	r->ctx = open_device();
	r->pd = ibv_alloc_pd(r->ctx);
	r->buf = calloc(SLOTS, MSG_MAX);
	r->mr = ibv_reg_mr(r->pd, r->buf, (size_t)SLOTS * MSG_MAX, IBV_ACCESS_LOCAL_WRITE);
	r->srq = ibv_create_srq(r->pd, &init);
	STRESS_CHECK(r->pd && r->mr && r->srq, "the receiver's objects: %s", strerror(errno));
	r->max_wr = init.attr.max_wr;
	for (i = 0; i < POLLERS; i++) {
		r->cq[i] = ibv_create_cq(r->ctx, SLOTS + SRQ_MAX, NULL, NULL, 0);
		STRESS_CHECK(r->cq[i], "ibv_create_cq: %s", strerror(errno));
	}
	for (i = 0; i < QPS; i++)
		r->qp[i] = stress_qp(r->pd, r->cq[i % POLLERS], r->cq[i % POLLERS], r->srq, 1, 0);
	for (i = 0; i < SLOTS; i++)
		r->free[r->num_free++] = (uint16_t)i;
	r->target = 16;
	pthread_mutex_init(&r->lock, NULL);
}

static void
close_receiver(struct receiver *r)
{
	uint32_t i;

	STRESS_CHECK(ibv_destroy_srq(r->srq) == EBUSY, "a queue in use was destroyed");
	for (i = 0; i < QPS; i++)
		STRESS_CHECK(!ibv_destroy_qp(r->qp[i]), "a queue pair could not be destroyed");
	STRESS_CHECK(!ibv_destroy_srq(r->srq), "the shared receive queue could not be destroyed");
	for (i = 0; i < POLLERS; i++)
		STRESS_CHECK(!ibv_destroy_cq(r->cq[i]), "a CQ could not be destroyed");
	STRESS_CHECK(!ibv_dereg_mr(r->mr) && !ibv_dealloc_pd(r->pd) && !ibv_close_device(r->ctx),
		"the receiver's objects could not be destroyed");
	pthread_mutex_destroy(&r->lock);
	free(r->buf);
}

static void
run_receiver(struct stress_opts opts, int fd)
{
	struct receiver *r = calloc(1, sizeof(*r));
	struct poller pollers[POLLERS];
	pthread_t id[POLLERS + POSTERS + 2];
	struct hello mine = {0}, peer;
	uint32_t sent[QPS], i, n = 0;

	r->opts = opts;
	open_receiver(r);
	hear(fd, &peer, sizeof(peer));
	ibv_query_gid(r->ctx, 1, 0, &mine.gid);
	for (i = 0; i < QPS; i++) {
		stress_connect(r->qp[i], &peer.gid, peer.qpn[i]);
		mine.qpn[i] = r->qp[i]->qp_num;
	}
	for (i = 0; i < POLLERS; i++) {
		pollers[i] = (struct poller){r, i};
		id[n++] = stress_thread(poller_main, &pollers[i]);
	}
	for (i = 0; i < POSTERS; i++)
		id[n++] = stress_thread(poster_main, r);
	id[n++] = stress_thread(resizer_main, r);
	id[n++] = stress_thread(armer_main, r);
	tell(fd, &mine, sizeof(mine));
	conduct(r, stress_now() + opts.seconds * UINT64_C(1000000000));
	hear(fd, sent, sizeof(sent));
	await_rest(r, sent);
	r->stop = true;
	for (i = 0; i < n; i++)
		pthread_join(id[i], NULL);
	STRESS_CHECK(r->limits == r->armings || r->limits + 1 == r->armings,
		"%u armings gave %u events", r->armings, r->limits);
	tell(fd, "", 1);
	close_receiver(r);
	printf("%u messages, %llu bytes; %u changes of size and %u refused, %u limits reached, "
	       "%u phases\n",
		r->total, (unsigned long long)r->bytes, r->resizes, r->refused, r->limits,
		r->phases);
	STRESS_CHECK(r->total > 0 && r->resizes > 0 && r->limits > 0, "nothing has happened");
	free(r);
}

int
main(int argc, char **argv)
{
	struct stress_opts opts = stress_begin(argc, argv);
	int fd[2], status;
	pid_t child;

	STRESS_CHECK(!socketpair(AF_UNIX, SOCK_STREAM, 0, fd), "socketpair failed");
	child = fork();
	STRESS_CHECK(child >= 0, "fork failed");
	if (!child) {
		close(fd[0]);
		run_sender(opts, fd[1]);
		return 0;
	}
	close(fd[1]);
	run_receiver(opts, fd[0]);
	waitpid(child, &status, 0);
	STRESS_CHECK(status == 0, "the sender ended with status %#x", status);
	return 0;
}
