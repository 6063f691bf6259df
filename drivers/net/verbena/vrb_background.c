/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The background thread: runs the engine when the program does not.
 *
 * It is in one of three states.
 *
 *   awake    It runs rounds as long as they find something to do, and for a little while longer if looking
 *            has paid off lately.
 *   naps     The program polls continuously (a call each two microseconds or more often), so it does the work, and better: the
 *            thread only looks again every 50 to 200 us. Nobody wakes it for work, because whatever the program leaves behind is
 *            at most a nap late. A control call wakes it: the program may be about to wait for an event.
 *   sleeps   Nothing to do. In epoll_pwait2() until a frame raises the Rx interrupt, until the engine's next deadline, or until
 *            the bell (an eventfd) is rung.
 *
 * No wake-up is lost. To go to sleep the thread, holding the baton,
 *
 *   S1  enables the Rx interrupt,
 *   S2  receives once more, and goes on working if that gave a frame: after S1 every frame raises the interrupt, so one
 *       that is not found here will,
 *   S3  asks for the engine's deadline and stores it in sleep_until, and VRB_BG_SLEEPS in background,
 *   S4  releases the baton, and goes on working if a doorbell was rung that nobody took up.
 *
 * Whoever holds the baton after S4 has seen S3, and rings the bell when the work it leaves is due before
 * sleep_until. Whoever held it before S1 left what S2 and S3 find. Who failed to take the baton rang a doorbell, which its
 * holder answers (vrb_baton.h): another thread, bound by the rule of the previous sentence, or this one in S4. The interrupt and the bell are
 * edge-triggered file descriptors: an event between S1 and epoll_pwait2() is there when that starts. Deadlines that move to later
 * need no wake-up, so in steady traffic the bell is rung at most once in the time of a retransmission timer.
 *
 * A thread that sleeps until an infinite deadline uses no CPU. Ports without Rx interrupts are looked at every
 * POLL_MIN_NS to POLL_MAX_NS instead.
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

/* The program polls continuously if so many nanoseconds pass from call to call on average, over a window at least so long. */
#define CALL_NS UINT64_C(2000)
#define WINDOW_NS UINT64_C(16000)
#define NAP_MIN_US 50
#define NAP_MAX_US 200
/* Looking for frames before going to sleep. */
#define SPIN_MIN_NS 5000
#define SPIN_MAX_NS 50000
#define SPIN_HOLDOFF_MAX 256
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

static void
open_window(struct vrb_nic *nic, uint64_t now)
{
	nic->bg.window_start = now;
	nic->bg.window_calls = atomic_load_explicit(&nic->calls, memory_order_relaxed);
}

/* Whether the program's threads have called continuously in the window that ends now. */
static bool
program_polls(struct vrb_nic *nic, uint64_t now)
{
	uint64_t length = now - nic->bg.window_start;
	uint32_t calls;

	if (length < WINDOW_NS)
		return false;
	calls = atomic_load_explicit(&nic->calls, memory_order_relaxed) - nic->bg.window_calls;
	open_window(nic, now);
	return calls * CALL_NS >= length;
}

static void
nap(struct vrb_nic *nic)
{
	struct pollfd pfd = { .fd = nic->bell, .events = POLLIN };
	struct timespec ts = { .tv_nsec = nic->bg.nap_us * 1000L };

	atomic_store_explicit(&nic->background, VRB_BG_NAPS, memory_order_relaxed);
	if (ppoll(&pfd, 1, &ts, NULL) > 0) {
		/* A control call: count anew from here. */
		silence_bell(nic);
		open_window(nic, vrb_now(nic));
		nic->bg.nap_us = NAP_MIN_US;
	} else {
		nic->bg.nap_us = RTE_MIN(2 * nic->bg.nap_us, (uint32_t)NAP_MAX_US);
	}
	atomic_store_explicit(&nic->background, VRB_BG_AWAKE, memory_order_relaxed);
}

/*
 * How long to look for frames before going to sleep. Looking costs the program its CPU if there is no other one, and what it gains
 * is the time of a wake-up. So it is done when it would have helped the last time, and given up for a while, for longer
 * each time, when it was in vain.
 */
static void
spin_was_in_vain(struct vrb_nic *nic)
{
	if (nic->bg.spin_ns == 0)
		return;
	nic->bg.spin_failures = RTE_MIN(2 * nic->bg.spin_failures + 1, (uint32_t)SPIN_HOLDOFF_MAX);
	nic->bg.spin_holdoff = nic->bg.spin_failures;
	nic->bg.spin_ns = 0;
}

static void
spin_paid_off(struct vrb_nic *nic)
{
	nic->bg.spin_failures = 0;
	nic->bg.spin_ns = SPIN_MAX_NS;
}

static void
woken_by_frame(struct vrb_nic *nic, uint64_t slept)
{
	if (slept > SPIN_MAX_NS)
		return;
	if (nic->bg.spin_holdoff > 0)
		nic->bg.spin_holdoff--;
	else
		nic->bg.spin_ns = RTE_MAX(2 * nic->bg.spin_ns, (uint32_t)SPIN_MIN_NS);
}

/* @return whether it was a frame that ended the wait */
static bool
wait_for_event(struct vrb_nic *nic, uint64_t ns)
{
	struct timespec ts = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };
	struct epoll_event ev[2];
	bool frame = false;
	int n = epoll_pwait2(nic->epfd, ev, RTE_DIM(ev), ns == UINT64_MAX ? NULL : &ts, NULL);

	if (n < 0 && errno == ENOSYS) /* Linux before 5.11 */
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
	uint64_t now = vrb_now(nic), deadline;

	if (port->intr_enable)
		rte_eth_dev_rx_intr_enable(port->id, 0);
	if (vrb_poller_rx(nic, now) > 0) {
		nic->bg.active = now;
		deadline = 0;
	} else {
		deadline = vrb_engine_deadline(nic->engine);
		if (nic->run.num_refused > 0 || port->intr_fd < 0)
			deadline = RTE_MIN(deadline, now + poll_interval(now - nic->bg.active));
	}
	atomic_store_explicit(&nic->sleep_until, deadline, memory_order_relaxed);
	atomic_store_explicit(&nic->background, VRB_BG_SLEEPS, memory_order_relaxed);
	vrb_lcore_leave(old_lcore);
	vrb_baton_release(&nic->baton);
	if (deadline > now && !vrb_engine_doorbell(nic->engine) && !atomic_load(&nic->stop) &&
		wait_for_event(nic, deadline == UINT64_MAX ? UINT64_MAX : deadline - now))
		woken_by_frame(nic, vrb_now(nic) - now);
	atomic_store_explicit(&nic->background, VRB_BG_AWAKE, memory_order_relaxed);
	if (port->intr_enable)
		rte_eth_dev_rx_intr_disable(port->id, 0);
}

/* One round. @return whether there was something to do */
static bool
run_round(struct vrb_nic *nic, uint64_t now)
{
	unsigned int work = 0;
	bool done;

	work += vrb_poller_rx(nic, now);
	done = vrb_poller_tx(nic, now, &work);
	return work > 0 || (!done && nic->run.num_refused == 0);
}

/* One turn of the thread's loop: a nap, a round, or a sleep. */
static void
take_turn(struct vrb_nic *nic)
{
	uint64_t now = vrb_now(nic);
	unsigned int old_lcore;

	if (program_polls(nic, now)) {
		nap(nic);
		return;
	}
	if (!vrb_baton_try(&nic->baton)) {
		/* Someone is at it. If it is not running, it needs our CPU more than we do. */
		sched_yield();
		return;
	}
	old_lcore = vrb_lcore_enter(nic);
	if (run_round(nic, now)) {
		if (now - nic->bg.active < SPIN_MAX_NS && nic->bg.spin_ns > 0)
			spin_paid_off(nic);
		nic->bg.active = now;
	} else if (now - nic->bg.active >= nic->bg.spin_ns) {
		spin_was_in_vain(nic);
		sleep_until_needed(nic, old_lcore);
		return;
	}
	vrb_lcore_leave(old_lcore);
	vrb_baton_release(&nic->baton);
	rte_pause();
}

/*
 * A short slice of the scheduler (EEVDF, Linux 6.12) gives the thread an early deadline when it wakes up, so that it preempts a
 * program's thread that spins on the same CPU. Other kernels refuse it or take no notice.
 */
static void
ask_for_short_slice(void)
{
	/* struct sched_attr of the first version; its header redefines struct sched_param of libc's. */
	struct {
		uint32_t size, policy;
		uint64_t flags;
		int32_t nice;
		uint32_t priority;
		uint64_t runtime, deadline, period;
	} attr = { .size = sizeof(attr), .policy = SCHED_OTHER, .nice = getpriority(PRIO_PROCESS, 0),
		.runtime = 100000 };

	syscall(SYS_sched_setattr, 0, &attr, 0);
	/* Naps of 50 us shall not take 100. */
	prctl(PR_SET_TIMERSLACK, 1000, 0, 0, 0);
}

static void *
background_main(void *arg)
{
	struct vrb_nic *nic = arg;

	ask_for_short_slice();
	nic->bg.nap_us = NAP_MIN_US;
	nic->bg.active = vrb_now(nic);
	open_window(nic, nic->bg.active);
	while (!atomic_load_explicit(&nic->stop, memory_order_acquire))
		take_turn(nic);
	return NULL;
}

static int
watch(struct vrb_nic *nic, int fd, uint32_t what)
{
	struct epoll_event ev = { .events = EPOLLIN | EPOLLET, .data.u32 = what };

	return epoll_ctl(nic->epfd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

int
vrb_background_start(struct vrb_nic *nic)
{
	int rc = 0;

	nic->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	nic->epfd = epoll_create1(EPOLL_CLOEXEC);
	if (nic->bell < 0 || nic->epfd < 0)
		rc = -errno;
	if (rc == 0)
		rc = watch(nic, nic->bell, RING_BELL);
	if (rc == 0 && nic->port.intr_fd >= 0)
		rc = watch(nic, nic->port.intr_fd, RX_INTERRUPT);
	if (rc == 0)
		rc = vrb_thread_create(&nic->thread, "vrb-poller", background_main, nic);
	nic->thread_runs = rc == 0;
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
	}
	if (nic->bell >= 0)
		close(nic->bell);
	if (nic->epfd >= 0)
		close(nic->epfd);
	nic->bell = nic->epfd = -1;
}
