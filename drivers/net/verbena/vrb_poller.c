/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rounds of the engine, run by whoever holds the baton; here by the program's threads in passing.
 *
 * A round sends, receives, and sends what the receiving gave rise to. So a program that stops
 * polling leaves nothing behind that its peer waits for, but an acknowledgement that it was
 * expected to send along with a reply (leave_to_reply()).
 *
 * A program that polls while the background thread sleeps disables the Rx interrupt until something
 * has arrived (watch_instead()). Should it stop polling before that, the thread finds what has come
 * when it looks the next time: within VRB_WATCH_NS, for only then does the program do it.
 */
#include <sched.h>

#include <rte_ethdev.h>

#include "vrb_nic_private.h"

/* Bursts that one round sends at most, so that a thread of the program is not kept for long. */
#define TX_BURSTS 4
/* A program that only posts receives in one of so many calls: a power of two. */
#define KICKS_PER_RX 8
/* What a queue pair sends to another of this process, and the answer to that. */
#define OWN_ROUNDS 2
#define LONG_CALL 4
/*
 * A program that has polled for so long in vain offers its CPU to others, and again after twice the
 * time: on a machine with few cores the peer that it waits for may be waiting for this CPU.
 */
#define YIELD_AFTER_NS 20000
/* Polling for so long is no mere look. */
#define WATCH_AFTER_NS 500
/* How long a queue pair that goes waits for its last answer to be taken by the port. */
#define SETTLE_NS UINT64_C(5000000)
/* How often a thread that gives the baton back takes it again for the doorbells of others. */
#define DOORBELL_ROUNDS 4
/* Messages that the program has answered at once before it is expected to go on with that. */
#define REPLIES_SURE 4

static bool
flush_refused(struct vrb_nic *nic)
{
	uint16_t n = nic->run.num_refused;
	uint16_t sent =
		rte_eth_tx_burst(nic->port.id, 0, &nic->run.refused[nic->run.first_refused], n);

	nic->run.first_refused += sent;
	nic->run.num_refused -= sent;
	return sent == n;
}

static void
keep_refused(struct vrb_nic *nic, struct rte_mbuf **pkts, uint16_t n)
{
	for (uint16_t i = 0; i < n; i++)
		nic->run.refused[i] = pkts[i];
	nic->run.first_refused = 0;
	nic->run.num_refused = n;
}

bool
vrb_poller_tx(struct vrb_nic *nic, uint64_t now, unsigned int *sent)
{
	struct rte_mbuf *pkts[VRB_BURST];

	if (unlikely(nic->run.num_refused > 0) && !flush_refused(nic)) {
		/* The port is full. Timers go on all the same. */
		vrb_engine_tx(nic->engine, pkts, 0, now);
		return false;
	}
	for (int i = 0; i < TX_BURSTS; i++) {
		unsigned int n = vrb_engine_tx(nic->engine, pkts, VRB_BURST, now);
		uint16_t took;

		if (n == 0)
			return true;
		took = rte_eth_tx_burst(nic->port.id, 0, pkts, n);
		*sent += took;
		if (unlikely(took < n)) {
			keep_refused(nic, &pkts[took], n - took);
			return false;
		}
		if (n < VRB_BURST)
			return true;
	}
	return false;
}

unsigned int
vrb_poller_rx(struct vrb_nic *nic, uint64_t now)
{
	struct rte_mbuf *pkts[VRB_BURST];
	/* What the engine cannot place yet stays in the port, which tells the sender where the
	 * network can. */
	unsigned int n = unlikely(vrb_engine_holds(nic->engine))
				 ? 0
				 : rte_eth_rx_burst(nic->port.id, 0, pkts, VRB_BURST);
	unsigned int left = vrb_engine_rx(nic->engine, pkts, n, now);

	/* Not RoCE; the engine has counted them. */
	if (unlikely(left > 0))
		rte_pktmbuf_free_bulk(pkts, left);
	return n;
}

/*
 * Packets to ourselves are received at once, and answered: what is left behind would wake the
 * background thread, for each message anew.
 */
static void
take_own(struct vrb_nic *nic, uint64_t now, unsigned int *sent)
{
	struct rte_mbuf *none[1];

	for (int i = 0; i < OWN_ROUNDS && unlikely(vrb_engine_looped(nic->engine)); i++) {
		vrb_engine_rx(nic->engine, none, 0, now);
		vrb_poller_tx(nic, now, sent);
	}
}

uint64_t
vrb_poller_deadline(struct vrb_nic *nic)
{
	return nic->run.num_refused > 0 ? 0 : vrb_engine_deadline(nic->engine);
}

void
vrb_poller_arm(struct vrb_nic *nic)
{
	/* While frames are held none is received, and the deadline is near: an interrupt would only
	 * disturb. */
	if (nic->run.armed || vrb_engine_holds(nic->engine))
		return;
	if (nic->port.intr_enable)
		rte_eth_dev_rx_intr_enable(nic->port.id, 0);
	else if (nic->port.bell[0] >= 0)
		vrb_port_bell_empty(&nic->port);
	nic->run.armed = true;
}

void
vrb_poller_disarm(struct vrb_nic *nic)
{
	if (!nic->run.armed)
		return;
	if (nic->port.intr_enable)
		rte_eth_dev_rx_intr_disable(nic->port.id, 0);
	nic->run.armed = false;
}

void
vrb_poller_drop(struct vrb_nic *nic)
{
	rte_pktmbuf_free_bulk(&nic->run.refused[nic->run.first_refused], nic->run.num_refused);
	nic->run.num_refused = 0;
}

static inline bool
background_sleeps(struct vrb_nic *nic)
{
	return atomic_load_explicit(&nic->background, memory_order_relaxed) == VRB_BG_SLEEPS;
}

/*
 * A program that answers each message with one of its own sends the acknowledgement along with it,
 * which saves the time of a frame between the two. It is expected to do so when it has the last
 * times. Should it not, the acknowledgement is sent by its next call, or by the background thread,
 * which looks again soon.
 */
static inline bool
leave_to_reply(struct vrb_nic *nic, uint64_t now)
{
	if (vrb_poller_deadline(nic) != 0)
		return false; /* what came was no request */
	nic->run.reply_awaited = true;
	return nic->run.replies == REPLIES_SURE &&
	       (!background_sleeps(nic) || atomic_load_explicit(&nic->sleep_until,
						   memory_order_relaxed) < now + VRB_WATCH_NS);
}

/* The program's next call after something came: whether it was the reply. */
static inline void
note_reply(struct vrb_nic *nic, bool reply)
{
	if (!nic->run.reply_awaited)
		return;
	nic->run.reply_awaited = false;
	if (!reply)
		nic->run.replies = 0;
	else if (nic->run.replies < REPLIES_SURE)
		nic->run.replies++;
}

/*
 * Whether the background thread has to be woken for what the holder leaves behind. While it naps it
 * comes back soon by itself. It goes to sleep under the baton, so a holder either comes before, and
 * the thread has seen what it left, or sees that the thread sleeps.
 */
static bool
must_wake(struct vrb_nic *nic)
{
	return atomic_load_explicit(&nic->background, memory_order_relaxed) == VRB_BG_SLEEPS &&
	       vrb_poller_deadline(nic) <
		       atomic_load_explicit(&nic->sleep_until, memory_order_relaxed);
}

/*
 * Gives the baton back, and takes it again as long as doorbells have been rung at it meanwhile (see
 * vrb_baton.h).
 */
static void
give_back(struct vrb_nic *nic, unsigned int old_lcore, bool left_to_reply)
{
	bool wake = !left_to_reply && must_wake(nic);

	for (int i = 0;; i++) {
		unsigned int sent = 0;

		vrb_lcore_leave(old_lcore);
		vrb_baton_release(&nic->baton);
		if (likely(!vrb_engine_doorbell(nic->engine)))
			break;
		if (i == DOORBELL_ROUNDS) {
			/* Enough done for others: the background thread goes on. */
			wake = true;
			break;
		}
		if (!vrb_baton_try(&nic->baton))
			break;
		old_lcore = vrb_lcore_enter(nic);
		vrb_poller_tx(nic, vrb_now(nic), &sent);
		wake = wake || must_wake(nic);
	}
	if (unlikely(wake))
		vrb_background_wake(nic);
}

/* @return the time */
static inline uint64_t
note_call(struct vrb_nic *nic)
{
	uint64_t now = vrb_now(nic);

	int64_t gap = (int64_t)(now - atomic_load_explicit(&nic->last_call, memory_order_relaxed));

	/* Signed: another thread's time may be later than ours. */
	if (unlikely(gap > VRB_CALL_GAP_NS)) {
		atomic_store_explicit(&nic->polls_since, now, memory_order_relaxed);
		atomic_store_explicit(&nic->pauses,
			atomic_load_explicit(&nic->pauses, memory_order_relaxed) + 1,
			memory_order_relaxed);
	}
	atomic_store_explicit(&nic->last_call, now, memory_order_relaxed);
	atomic_store_explicit(&nic->calls,
		atomic_load_explicit(&nic->calls, memory_order_relaxed) + 1, memory_order_relaxed);
	return now;
}

/*
 * A call that moves many packets takes longer than the gap between two calls may be, and its length
 * is no pause.
 */
static inline void
note_end(struct vrb_nic *nic, unsigned int packets)
{
	if (packets >= LONG_CALL)
		atomic_store_explicit(&nic->last_call, vrb_now(nic), memory_order_relaxed);
}

void
vrb_nic_kick(struct vrb_nic *nic, struct vrb_qp *qp)
{
	unsigned int old_lcore, sent = 0;
	uint64_t now;

	if (vrb_is_forked(nic))
		return;
	now = note_call(nic);
	if (likely(vrb_baton_try(&nic->baton))) {
		vrb_engine_schedule(qp);
	} else {
		vrb_engine_ring(qp);
		rte_atomic_thread_fence(__ATOMIC_SEQ_CST);
		if (!vrb_baton_try(&nic->baton))
			return; /* its holder sees the doorbell */
	}
	old_lcore = vrb_lcore_enter(nic);
	note_reply(nic, true);
	vrb_poller_tx(nic, now, &sent);
	/* Nothing sent: what was posted may have been for ourselves. */
	if (sent == 0)
		take_own(nic, now, &sent);
	if ((++nic->run.kicks & (KICKS_PER_RX - 1)) == 0 || sent == 0)
		sent += vrb_poller_rx(nic, now);
	note_end(nic, sent);
	give_back(nic, old_lcore, false);
}

/*
 * The program waits for something by polling, and the background thread sleeps and would be woken
 * by it as well: a system call for the sender, and our CPU for a thread that comes too late. So no
 * interrupt until something has arrived, if the thread looks again soon.
 */
static void
watch_instead(struct vrb_nic *nic, uint64_t now)
{
	if (now - atomic_load_explicit(&nic->polls_since, memory_order_relaxed) <= WATCH_AFTER_NS)
		return;
	nic->run.watch_wanted = true;
	if (atomic_load_explicit(&nic->sleep_until, memory_order_relaxed) < now + VRB_WATCH_NS)
		vrb_poller_disarm(nic);
}

/* What the program polled for is there, or it does something else: it may stop polling. */
static void
watch_no_more(struct vrb_nic *nic, uint64_t now)
{
	if (nic->run.armed)
		return;
	vrb_poller_arm(nic);
	vrb_poller_rx(nic, now);
}

static inline bool
out_of_patience(struct vrb_nic *nic, uint64_t now, unsigned int packets)
{
	if (packets > 0) {
		nic->run.useful = now;
		nic->run.patience = YIELD_AFTER_NS;
		return false;
	}
	if (likely(now - nic->run.useful <= nic->run.patience))
		return false;
	nic->run.patience *= 2;
	return true;
}

void
vrb_nic_progress(struct vrb_nic *nic)
{
	unsigned int old_lcore, sent = 0;
	uint64_t now;
	unsigned int received;
	bool yield, left = false;

	if (vrb_is_forked(nic))
		return;
	now = note_call(nic);
	if (!vrb_baton_try(&nic->baton))
		return;
	old_lcore = vrb_lcore_enter(nic);
	note_reply(nic, false);
	vrb_poller_tx(nic, now, &sent);
	received = vrb_poller_rx(nic, now);
	if (background_sleeps(nic)) {
		if (received > 0)
			watch_no_more(nic, now);
		else if (nic->run.armed && nic->port.intr_enable)
			watch_instead(nic, now);
	}
	if (received > 0) {
		left = leave_to_reply(nic, now);
		if (!left)
			vrb_poller_tx(nic, now, &sent);
	}
	if (sent + received == 0)
		take_own(nic, now, &sent);
	note_end(nic, sent + received);
	yield = out_of_patience(nic, now, sent + received);
	give_back(nic, old_lcore, left);
	if (unlikely(yield)) {
		sched_yield();
		/* The others' time was no pause of the program's. */
		atomic_store_explicit(&nic->last_call, vrb_now(nic), memory_order_relaxed);
	}
}

void
vrb_nic_lock(struct vrb_nic *nic)
{
	if (vrb_is_forked(nic))
		return;
	vrb_baton_lock(&nic->baton);
	nic->run.saved_lcore = vrb_lcore_enter(nic);
}

void
vrb_nic_settle(struct vrb_nic *nic, struct vrb_qp *qp)
{
	uint64_t start;

	if (vrb_is_forked(nic))
		return;
	start = vrb_now(nic);
	while (vrb_qp_owes(qp)) {
		uint64_t now = vrb_now(nic);
		unsigned int sent = 0;

		vrb_poller_tx(nic, now, &sent);
		if (now - start > SETTLE_NS)
			break;
		if (sent == 0)
			sched_yield(); /* the peer has to make room */
	}
}

void
vrb_nic_unlock(struct vrb_nic *nic)
{
	uint64_t now = vrb_now(nic);
	unsigned int sent = 0;
	bool naps;

	if (vrb_is_forked(nic))
		return;
	if (background_sleeps(nic))
		watch_no_more(nic, now);
	if (vrb_engine_doorbell(nic->engine) || vrb_poller_deadline(nic) == 0)
		vrb_poller_tx(nic, now, &sent);
	atomic_store_explicit(&nic->controlled, now, memory_order_relaxed);
	naps = atomic_load_explicit(&nic->background, memory_order_relaxed) == VRB_BG_NAPS;
	give_back(nic, nic->run.saved_lcore, false);
	/*
	 * Who makes a control call does not just poll: it may have armed a CQ in order to sleep
	 * until it is notified.
	 */
	if (naps)
		vrb_background_wake(nic);
}
