/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The background thread: runs the engine when the program does not.
 *
 * It is in one of three states.
 *
 *   awake   It runs rounds as long as they find something to do, and for a little while longer if
 *           looking has paid off lately.
 *   naps    The program polls without a pause, or holds the baton, so it does the work, and
 *           better: the thread only looks again after a while, twice as long each time, at most
 *           2 ms. Nobody wakes it for work, because a program's round leaves nothing behind that a
 *           peer waits for, or hardly ever (vrb_poller.c). A control call wakes it: the program may
 *           be about to wait for an event.
 *   sleeps  Nothing to do. In epoll_pwait2() until a frame raises the Rx interrupt, until the
 *           engine's next deadline, or until the bell (an eventfd) is rung.
 *
 * No wake-up is lost. To go to sleep the thread, holding the baton,
 *
 *   S1  enables the Rx interrupt,
 *   S2  receives once more, and goes on working if that gave a frame: after S1 every frame raises
 *       the interrupt, so one that is not found here will,
 *   S3  asks for the engine's deadline and stores it in sleep_until, and VRB_BG_SLEEPS in
 *       background,
 *   S4  releases the baton, and goes on working if a doorbell was rung that nobody took up.
 *
 * Whoever holds the baton after S4 has seen S3, and rings the bell when the work it leaves is due
 * before sleep_until. Whoever held it before S1 left what S2 and S3 find. Who failed to take the
 * baton rang a doorbell, which its holder answers (vrb_baton.h): another thread, bound by the rule
 * of the previous sentence, or this one in S4. The interrupt and the bell are edge-triggered file
 * descriptors: an event between S1 and epoll_pwait2() is there when that starts. Deadlines that
 * move to later need no wake-up. While there is traffic the thread sleeps for LINGER_NS or
 * VRB_WATCH_NS at the longest, so the timers of new requests, which are longer as a rule, ring no
 * bell.
 *
 * One exception has a bound: a program that polls may disable the interrupt for the time of its
 * polling (vrb_poller.c), if sleep_until is at most VRB_WATCH_NS away.
 *
 * A thread that sleeps until an infinite deadline uses no CPU. Where a driver has no Rx interrupts,
 * packet sockets stand in for them on a kernel interface (vrb_port_bell.c); other ports are looked
 * at every POLL_MIN_NS to POLL_MAX_NS instead.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <rte_ethdev.h>
#include <rte_pause.h>

#include "vrb_nic_private.h"
#include "vrb_thread.h"

/*
 * A program calls often when so much time passes from call to call, over a time at least so long,
 * with a pause in so much time at most: the machine makes some of its own.
 */
#define OFTEN_NS UINT64_C(2000)
#define WINDOW_MIN_NS UINT64_C(16000)
#define PAUSES_NS UINT64_C(100000)
#define NO_NAPS_NS UINT64_C(10000000)
/* When the program has polled for so long without a pause, it is left alone for a while. */
#define POLLS_NS UINT64_C(30000)
#define NAP_MIN_NS UINT64_C(30000)
#define NAP_MAX_NS UINT64_C(2000000)
/*
 * Looking for frames before going to sleep; how often the CPU is offered to others meanwhile, and
 * when that took long.
 */
#define SPIN_MAX_NS 50000
#define SPIN_YIELD_NS 5000
#define YIELD_LONG_NS 3000
/* After a round with so many frames the next are close: a short look is worth while in any case. */
#define STREAM_BURST 4
#define SPIN_STREAM_NS 5000u
#define SPIN_PENALTY_MIN_NS 100000
#define SPIN_PENALTY_MAX_NS 10000000
#define SPIN_PENALTY_CROWDED_NS 1000000000
/*
 * When something has happened within this time the thread does not sleep for longer: then a
 * deadline that a program's thread leaves behind is hardly ever earlier, and needs no bell.
 * Retransmission timers are longer as a rule.
 */
#define LINGER_NS UINT64_C(10000000)
/*
 * The baton is held by someone else: tries to get it, and how long to wait then at first. Twice as
 * long the next time, up to VRB_WATCH_NS.
 */
#define BUSY_TRIES 20
#define BUSY_NS UINT64_C(10000)
/* A port without interrupts; a port that takes no more frames. */
#define POLL_MIN_NS UINT64_C(10000)
#define POLL_MAX_NS UINT64_C(1000000)

#define RING_BELL 0
#define RX_INTERRUPT 1

void
vrb_background_wake(struct vrb_nic *nic)
{
	static const uint64_t one = 1;
	ssize_t n = write(nic->bell, &one, sizeof(one));

	/* It fails only when the counter is full: then the bell is ringing. */
	(void)n;
}

static void
silence_bell(struct vrb_nic *nic)
{
	uint64_t count;
	ssize_t n = read(nic->bell, &count, sizeof(count));

	/* EAGAIN: it did not ring. */
	(void)n;
}

/* For how long the program's threads have been calling without a pause. */
static uint64_t
program_polls(const struct vrb_nic *nic, uint64_t now)
{
	uint64_t last = atomic_load_explicit(&nic->last_call, memory_order_relaxed);
	uint64_t since = atomic_load_explicit(&nic->polls_since, memory_order_relaxed);

	/* A call may be later than the time that we took. */
	if (now > last + VRB_CALL_GAP_NS)
		return 0;
	since = RTE_MAX(since, atomic_load_explicit(&nic->controlled, memory_order_relaxed));
	return now > since ? now - since : 0;
}

/* On a shared CPU it was our look that kept a program that polls from calling: that is no pause. */
static void
excuse_program(struct vrb_nic *nic)
{
	atomic_store_explicit(&nic->last_call, vrb_now(nic), memory_order_relaxed);
}

/*
 * The thread has slept. A program that was calling until just now does the work itself: there is
 * nothing for the thread to look out for. Where both share a CPU that would keep the program from
 * calling, and look like a pause of it, so that the next frame would wake the thread again. A call
 * right after a control call is no sign: that is how one waits for an event.
 */
static void
note_wakeup(struct vrb_nic *nic)
{
	uint64_t last = atomic_load_explicit(&nic->last_call, memory_order_relaxed);
	uint64_t controlled = atomic_load_explicit(&nic->controlled, memory_order_relaxed);

	nic->bg.woken = vrb_now(nic);
	nic->bg.program_called =
		nic->bg.woken <= last + VRB_CALL_GAP_NS && last > controlled + OFTEN_NS;
}

static bool
disturbs_program(const struct vrb_nic *nic, uint64_t now)
{
	return nic->bg.program_called && now - nic->bg.woken < SPIN_MAX_NS;
}

/* The thread is about to sleep: calls are counted from here. */
static void
open_window(struct vrb_nic *nic)
{
	nic->bg.window_start = vrb_now(nic);
	nic->bg.window_calls = atomic_load_explicit(&nic->calls, memory_order_relaxed);
	nic->bg.window_pauses = atomic_load_explicit(&nic->pauses, memory_order_relaxed);
}

/*
 * Whether the program called often, and without a pause, while the thread slept. On a shared CPU
 * that tells more than the time since its last call, which is the time of the thread's own wake-up.
 * One pause is that wake-up. A program that does pause (it spins on memory that a peer writes, and
 * polls in between) is served at once for a while.
 */
static bool
program_calls_often(struct vrb_nic *nic, uint64_t now)
{
	uint64_t slept = now - nic->bg.window_start;
	uint32_t calls =
		atomic_load_explicit(&nic->calls, memory_order_relaxed) - nic->bg.window_calls;
	uint32_t pauses =
		atomic_load_explicit(&nic->pauses, memory_order_relaxed) - nic->bg.window_pauses;

	if (slept < WINDOW_MIN_NS || calls * OFTEN_NS < slept)
		return false;
	if (pauses > 1 + slept / PAUSES_NS) {
		nic->bg.no_naps = now + NO_NAPS_NS;
		return false;
	}
	return atomic_load_explicit(&nic->controlled, memory_order_relaxed) < nic->bg.window_start;
}

/* @return whether a control call ended it: look at calls anew from here. */
static bool
nap_for(struct vrb_nic *nic, uint64_t ns)
{
	struct pollfd pfd = {.fd = nic->bell, .events = POLLIN};
	struct timespec ts = {.tv_nsec = (long)ns};
	bool rung;

	atomic_store_explicit(&nic->background, VRB_BG_NAPS, memory_order_relaxed);
	excuse_program(nic);
	open_window(nic);
	rung = ppoll(&pfd, 1, &ts, NULL) > 0;
	if (rung)
		silence_bell(nic);
	atomic_store_explicit(&nic->background, VRB_BG_AWAKE, memory_order_relaxed);
	return rung;
}

/* The longer the program has polled, the longer it may be expected to go on. */
static void
leave_to_program(struct vrb_nic *nic, uint64_t polls)
{
	uint64_t ns = RTE_MAX(polls / 2, nic->bg.nap_ns);

	ns = RTE_MIN(ns, NAP_MAX_NS);
	if (nap_for(nic, ns)) {
		nic->bg.nap_ns = NAP_MIN_NS;
		return;
	}
	nic->bg.nap_ns = 2 * ns;
	/* Not one call: it had stopped. */
	if (atomic_load_explicit(&nic->calls, memory_order_relaxed) == nic->bg.window_calls)
		nic->bg.no_naps = vrb_now(nic) + NO_NAPS_NS;
}

/* The baton is held by someone else, who does the work. */
static void
leave_to_holder(struct vrb_nic *nic)
{
	uint64_t ns = nic->bg.busy_ns;

	nic->bg.busy_ns = nap_for(nic, ns) ? BUSY_NS : RTE_MIN(2 * ns, VRB_WATCH_NS);
}

/*
 * Looking for frames for a while before going to sleep saves the time of a wake-up, but is harmful
 * where a thread of the program waits for the CPU meanwhile. So it is done when it would have
 * helped the last time; and given up for a while, for longer each time, when it was in vain, or
 * when others turn out to want the CPU: then sched_yield() takes long.
 */
static void
spin_no_more(struct vrb_nic *nic, uint64_t now, uint32_t penalty_max)
{
	nic->bg.spin_ns = 0;
	nic->bg.spin_after = now + nic->bg.spin_penalty;
	nic->bg.spin_penalty = RTE_MIN(2 * nic->bg.spin_penalty, penalty_max);
}

static void
spin_paid_off(struct vrb_nic *nic)
{
	nic->bg.spin_penalty = SPIN_PENALTY_MIN_NS;
}

static void
woken_by_frame(struct vrb_nic *nic, uint64_t slept, uint64_t now)
{
	if (slept < SPIN_MAX_NS && now > nic->bg.spin_after)
		nic->bg.spin_ns = SPIN_MAX_NS;
}

static void
spin(struct vrb_nic *nic, uint64_t now)
{
	uint64_t took;

	if (now - RTE_MAX(nic->bg.yielded, nic->bg.active) < SPIN_YIELD_NS) {
		rte_pause();
		return;
	}
	sched_yield();
	nic->bg.yielded = vrb_now(nic);
	took = nic->bg.yielded - now;
	if (took > YIELD_LONG_NS)
		spin_no_more(nic, nic->bg.yielded, SPIN_PENALTY_CROWDED_NS);
}

/* @return whether it was a frame that ended the wait */
static bool
wait_for_event(struct vrb_nic *nic, uint64_t ns)
{
	struct timespec ts = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000};
	struct epoll_event ev[4];
	bool frame = false;
	int n = epoll_pwait2(nic->epfd, ev, RTE_DIM(ev), ns == UINT64_MAX ? NULL : &ts, NULL);

	if (n < 0 && errno != EINTR) /* Linux before 5.11, or a sandbox that does not know it */
		n = epoll_wait(nic->epfd, ev, RTE_DIM(ev),
			ns == UINT64_MAX ? -1 : (int)RTE_MIN(ns / 1000000 + 1, UINT64_C(1000000)));
	for (int i = 0; i < n; i++) {
		if (ev[i].data.u32 == RING_BELL)
			silence_bell(nic);
		else
			frame = true;
	}
	return frame;
}

/* The longer nothing has happened, the longer until the next look. */
static uint64_t
poll_interval(uint64_t idle)
{
	if (idle / 8 < POLL_MIN_NS)
		return POLL_MIN_NS;
	return idle / 8 > POLL_MAX_NS ? POLL_MAX_NS : idle / 8;
}

/* Called with the baton, which it gives back. S1 to S4 are those of the head of this file. */
static void
sleep_until_needed(struct vrb_nic *nic, unsigned int old_lcore)
{
	struct vrb_port *port = &nic->port;
	uint64_t now = vrb_now(nic), deadline, recent, woken;

	vrb_poller_arm(nic);
	/* Not armed: the engine held frames back. If that has just ended, S1 is still to be done.
	 */
	if (vrb_poller_rx(nic, now) > 0 || (!nic->run.armed && !vrb_engine_holds(nic->engine))) {
		nic->bg.active = now;
		deadline = 0;
	} else {
		deadline = vrb_engine_deadline(nic->engine);
		recent = RTE_MAX(nic->bg.active,
			atomic_load_explicit(&nic->last_call, memory_order_relaxed));
		if (nic->run.watch_wanted)
			deadline = RTE_MIN(deadline, now + VRB_WATCH_NS);
		else if (now < recent + LINGER_NS)
			deadline = RTE_MIN(deadline, now + LINGER_NS);
		nic->run.watch_wanted = false;
		if (nic->run.num_refused > 0 || (port->intr_fd < 0 && port->bell[0] < 0))
			deadline = RTE_MIN(deadline, now + poll_interval(now - nic->bg.active));
		if (port->bell[0] >= 0)
			deadline = RTE_MIN(deadline, now + VRB_BELL_TRUST_NS);
	}
	atomic_store_explicit(&nic->sleep_until, deadline, memory_order_relaxed);
	atomic_store_explicit(&nic->background, VRB_BG_SLEEPS, memory_order_relaxed);
	if (disturbs_program(nic, now))
		excuse_program(nic);
	open_window(nic);
	vrb_lcore_leave(old_lcore);
	vrb_baton_release(&nic->baton);
	if (deadline > now && !vrb_engine_doorbell(nic->engine) && !atomic_load(&nic->stop) &&
		wait_for_event(nic, deadline == UINT64_MAX ? UINT64_MAX : deadline - now)) {
		woken = vrb_now(nic);
		woken_by_frame(nic, woken - now, woken);
	}
	atomic_store_explicit(&nic->background, VRB_BG_AWAKE, memory_order_relaxed);
	note_wakeup(nic);
}

/* One round. @return how much there was to do */
static unsigned int
run_round(struct vrb_nic *nic, uint64_t now)
{
	unsigned int work = 0;
	bool done;

	work += vrb_poller_rx(nic, now);
	done = vrb_poller_tx(nic, now, &work);
	return work + (!done && nic->run.num_refused == 0);
}

/*
 * A short wait is worth while if the holder runs. If it does not, because we have preempted it,
 * only sleeping lets it go on at once: yielding would also cost our right to be scheduled soon the
 * next time.
 */
static bool
try_for_a_while(struct vrb_nic *nic)
{
	for (int i = 0; i < BUSY_TRIES; i++) {
		if (vrb_baton_try(&nic->baton))
			return true;
		rte_pause();
	}
	return false;
}

/* One turn of the thread's loop: a nap, a round, or a sleep. */
static void
take_turn(struct vrb_nic *nic)
{
	uint64_t now = vrb_now(nic), polls = program_polls(nic, now), spin_ns;
	unsigned int old_lcore, work;

	if (now >= nic->bg.no_naps && (polls >= POLLS_NS || program_calls_often(nic, now))) {
		leave_to_program(nic, polls);
		return;
	}
	nic->bg.nap_ns = NAP_MIN_NS;
	if (!try_for_a_while(nic)) {
		leave_to_holder(nic);
		return;
	}
	nic->bg.busy_ns = BUSY_NS;
	old_lcore = vrb_lcore_enter(nic);
	vrb_poller_disarm(nic);
	work = run_round(nic, now);
	spin_ns = RTE_MAX(nic->bg.spin_ns, nic->bg.stream ? SPIN_STREAM_NS : 0u);
	if (work > 0) {
		nic->bg.stream = work >= STREAM_BURST;
		if (nic->bg.spin_ns > 0 && now - nic->bg.active < SPIN_MAX_NS)
			spin_paid_off(nic);
		nic->bg.active = now;
	} else if (now - nic->bg.active >= spin_ns || disturbs_program(nic, now)) {
		if (nic->bg.spin_ns > 0)
			spin_no_more(nic, now, SPIN_PENALTY_MAX_NS);
		sleep_until_needed(nic, old_lcore);
		return;
	}
	vrb_lcore_leave(old_lcore);
	vrb_baton_release(&nic->baton);
	if (work == 0)
		spin(nic, now);
}

/*
 * A short slice of the scheduler (EEVDF, Linux 6.12) gives the thread an early deadline when it
 * wakes up, so that it preempts a program's thread that spins on the same CPU. Other kernels refuse
 * it or take no notice.
 */
static void
ask_for_short_slice(void)
{
	/*
	 * struct sched_attr of the first version; its header redefines struct sched_param of
	 * libc's.
	 */
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = {.size = sizeof(attr),
		.policy = SCHED_OTHER,
		.nice = getpriority(PRIO_PROCESS, 0),
		.runtime = 100000};

	syscall(SYS_sched_setattr, 0, &attr, 0);
	/* Naps of 50 us shall not take 100. */
	prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
}

static void *
background_main(void *arg)
{
	struct vrb_nic *nic = arg;

	ask_for_short_slice();
	nic->bg.active = vrb_now(nic);
	nic->bg.busy_ns = BUSY_NS;
	nic->bg.spin_penalty = SPIN_PENALTY_MIN_NS;
	if (nic->direct != NULL)
		vrb_direct_path_show(nic->direct);
	sem_post(&nic->runs);
	while (!atomic_load_explicit(&nic->stop, memory_order_acquire))
		take_turn(nic);
	if (nic->direct != NULL)
		vrb_direct_path_hide(nic->direct);
	return NULL;
}

static int
watch(struct vrb_nic *nic, int fd, uint32_t what)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET, .data.u32 = what};

	return epoll_ctl(nic->epfd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

int
vrb_background_start(struct vrb_nic *nic)
{
	int rc = 0;

	sem_init(&nic->runs, 0, 0);
	nic->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	nic->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (nic->bell < 0 || nic->epfd < 0)
		rc = -errno;
	if (rc == 0)
		rc = watch(nic, nic->bell, RING_BELL);
	if (rc == 0 && nic->port.intr_fd >= 0)
		rc = watch(nic, nic->port.intr_fd, RX_INTERRUPT);
	for (int i = 0; rc == 0 && i < VRB_PORT_BELLS; i++)
		if (nic->port.bell[i] >= 0)
			rc = watch(nic, nic->port.bell[i], RX_INTERRUPT);
	if (rc == 0)
		rc = vrb_thread_create(&nic->thread, "vrb-poller", background_main, nic);
	nic->thread_runs = rc == 0;
	/* Whoever is told of us from here on finds our board, and the port is not left before. */
	while (nic->thread_runs && sem_wait(&nic->runs) < 0)
		continue;
	if (rc < 0)
		vrb_background_stop(nic);
	return rc;
}

void
vrb_background_stop(struct vrb_nic *nic)
{
	if (nic->thread_runs) {
		atomic_store(&nic->stop, true);
		vrb_background_wake(nic);
		pthread_join(nic->thread, NULL);
		nic->thread_runs = false;
		sem_destroy(&nic->runs);
	}
	if (nic->bell >= 0)
		close(nic->bell);
	if (nic->epfd >= 0)
		close(nic->epfd);
	nic->bell = nic->epfd = -1;
}
