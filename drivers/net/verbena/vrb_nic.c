/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A NIC: made, asked, and taken down.
 */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <rte_errno.h>

#include "guard.h"
#include "vrb_addr.h"
#include "vrb_eal.h"
#include "vrb_nic_private.h"

/* All NICs of the process; and the lock under which EAL is used for anything but packets. */
static pthread_mutex_t nics_lock = PTHREAD_MUTEX_INITIALIZER;
static struct vrb_nic *nics;
static struct vrb_clock clock_state;

/* In the child of a fork there is one thread, and the lock is whatever it was at that moment. */
static void
after_fork_in_child(void)
{
	for (struct vrb_nic *nic = nics; nic != NULL; nic = nic->next) {
		atomic_store(&nic->forked, true);
		/* The board is shared with the parent, whom it speaks of. */
		if (nic->engine != NULL)
			vrb_engine_no_direct(nic->engine);
	}
	pthread_mutex_unlock(&nics_lock);
}

static void
before_fork(void)
{
	pthread_mutex_lock(&nics_lock);
}

static void
after_fork_in_parent(void)
{
	pthread_mutex_unlock(&nics_lock);
}

/*
 * Whoever forks takes the locks in the opposite order of registration: first those of the callers,
 * who register when they open a device, then ours, then those of the drivers, who have a higher
 * priority.
 */
RTE_INIT(install_atfork)
{
	pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

bool
vrb_nic_forked(const struct vrb_nic *nic)
{
	return vrb_is_forked(nic);
}

struct vrb_engine *
vrb_nic_engine(struct vrb_nic *nic)
{
	return nic->engine;
}

uint64_t
vrb_nic_now(const struct vrb_nic *nic)
{
	return vrb_now(nic);
}

/* Runs in EAL's interrupt thread. */
static int
link_changed(uint16_t port_id, enum rte_eth_event_type event, void *arg, void *ret)
{
	struct vrb_nic *nic = arg;
	uint32_t speed;
	bool up = vrb_port_link_up(&nic->port, &speed);

	vrb_nic_lock(nic);
	if (nic->ops->async != NULL)
		nic->ops->async(nic->ctx, up ? VRB_EVENT_PORT_ACTIVE : VRB_EVENT_PORT_ERR, NULL);
	vrb_nic_unlock(nic);
	return 0;
}

static int
make_engine(struct vrb_nic *nic, const struct vrb_nic_conf *conf, char *why, size_t why_len)
{
	const struct vrb_port *p = &nic->port;
	struct vrb_engine_conf ec = {
		.ops = conf->ops,
		.ctx = conf->ctx,
		.pool = p->tx_pool,
		.gid = {p->gid[0], p->gid[1]},
		.port_mtu = p->mtu,
		.icrc_omitted = p->icrc_omitted,
		.icrc = p->icrc,
		.zero_copy = p->zero_copy,
	};
	int rc;

	memcpy(ec.mac, p->mac, sizeof(ec.mac));
	/* Processes on one kernel interface share its address, so only numbers keep their queue
	 * pairs apart. Without a random one they start where all do. */
	if (p->kind == VRB_PORT_KERNEL &&
		getrandom(&ec.first_qpn, sizeof(ec.first_qpn), GRND_NONBLOCK) < 0)
		ec.first_qpn = 0;
	if (p->kind == VRB_PORT_SHMLAN && conf->direct != VRB_DIRECT_OFF)
		nic->direct = vrb_direct_path_open(p->id, p->mac);
	if (nic->direct != NULL) {
		ec.direct = &vrb_direct_path_ops;
		ec.direct_ctx = nic->direct;
		ec.direct_mode = conf->direct;
		ec.board = vrb_direct_path_board(nic->direct);
	}
	rc = vrb_engine_create(&ec, &nic->engine);
	if (rc == -EINVAL)
		snprintf(why, why_len, "the MTU of %s, %u bytes, is too small for RoCE", p->name,
			p->mtu);
	else if (rc < 0)
		snprintf(why, why_len, "cannot make the engine: %s", strerror(-rc));
	return rc;
}

/* Begun at the first open, so that starting EAL is the time that it is measured over. */
static const struct vrb_clock *
measured_clock(void)
{
	static bool done;

	if (!done)
		vrb_clock_end(&clock_state);
	done = true;
	return &clock_state;
}

/* All but EAL. What has been made when it fails is taken down by vrb_nic_close(). */
static int
bring_up(struct vrb_nic *nic, const struct vrb_nic_conf *conf, char *why, size_t why_len)
{
	int rc = vrb_port_open(&nic->port, conf, why, why_len);

	if (rc == 0)
		rc = make_engine(nic, conf, why, why_len);
	if (rc == 0)
		rc = vrb_port_start(&nic->port, why, why_len);
	if (rc < 0)
		return rc;
	nic->clock = *measured_clock();
	rc = vrb_background_start(nic);
	if (rc < 0) {
		snprintf(why, why_len, "cannot start the background thread: %s", strerror(-rc));
		return rc;
	}
	if (nic->port.kind != VRB_PORT_SHMLAN)
		rte_eth_dev_callback_register(
			nic->port.id, RTE_ETH_EVENT_INTR_LSC, link_changed, nic);
	return 0;
}

int
vrb_nic_open(const struct vrb_nic_conf *conf, struct vrb_nic **out, char *why, size_t why_len)
{
	struct vrb_nic *nic;
	int rc;

	rc = vrb_guard_install();
	if (rc < 0) {
		snprintf(why, why_len, "cannot handle SIGSEGV and SIGBUS: %s", strerror(-rc));
		return rc;
	}
	pthread_mutex_lock(&nics_lock);
	if (clock_state.ns == 0)
		vrb_clock_begin(&clock_state);
	rc = vrb_eal_start(conf->eal_args, conf->eal_log, why, why_len);
	nic = rc == 0 ? aligned_alloc(RTE_CACHE_LINE_SIZE, sizeof(*nic)) : NULL;
	if (nic == NULL && rc == 0) {
		snprintf(why, why_len, "no memory");
		rc = -ENOMEM;
	}
	if (rc < 0) {
		pthread_mutex_unlock(&nics_lock);
		return rc;
	}
	memset(nic, 0, sizeof(*nic));
	nic->ops = conf->ops;
	nic->ctx = conf->ctx;
	nic->lcore = rte_get_main_lcore();
	nic->bell = nic->epfd = -1;
	nic->next = nics;
	nics = nic;
	rc = bring_up(nic, conf, why, why_len);
	pthread_mutex_unlock(&nics_lock);
	if (rc < 0) {
		vrb_nic_close(nic);
		return rc;
	}
	*out = nic;
	return 0;
}

static void
unlink_nic(struct vrb_nic *nic)
{
	struct vrb_nic **link = &nics;

	while (*link != NULL && *link != nic)
		link = &(*link)->next;
	if (*link != NULL)
		*link = nic->next;
}

/* How long a thread that holds the baton is waited for. */
#define LEAVE_TRIES 100
#define LEAVE_WAIT_NS 1000000

void
vrb_nic_leave(struct vrb_nic *nic)
{
	static const struct timespec wait = {.tv_nsec = LEAVE_WAIT_NS};
	unsigned int old_lcore, sent = 0, tries = 0;

	if (vrb_is_forked(nic))
		return;
	/* The holder may be this very thread, interrupted by the signal whose handler exits. */
	while (!vrb_baton_try(&nic->baton)) {
		if (++tries == LEAVE_TRIES)
			return;
		nanosleep(&wait, NULL);
	}
	/* The baton is kept: nobody runs the engine any more. */
	old_lcore = vrb_lcore_enter(nic);
	vrb_poller_tx(nic, vrb_now(nic), &sent);
	atomic_store_explicit(&nic->forked, true, memory_order_relaxed);
	/* The memory goes to whoever else cleans up behind us. */
	vrb_engine_shut_board(nic->engine);
	vrb_port_leave(&nic->port);
	vrb_lcore_leave(old_lcore);
}

void
vrb_nic_close(struct vrb_nic *nic)
{
	unsigned int old_lcore;

	/*
	 * The parent's: its threads are not here, and its port is not ours to take down. Only the
	 * memory of this struct is left alone too, since threads that fork elsewhere may still look
	 * at it.
	 */
	if (vrb_is_forked(nic))
		return;
	pthread_mutex_lock(&nics_lock);
	/* -EAGAIN: it is being called. */
	while (nic->port.started && nic->port.kind != VRB_PORT_SHMLAN &&
		rte_eth_dev_callback_unregister(
			nic->port.id, RTE_ETH_EVENT_INTR_LSC, link_changed, nic) == -EAGAIN)
		sched_yield();
	vrb_background_stop(nic);
	vrb_baton_lock(&nic->baton);
	old_lcore = vrb_lcore_enter(nic);
	vrb_poller_drop(nic);
	if (nic->engine != NULL)
		vrb_engine_destroy(nic->engine);
	if (nic->direct != NULL)
		vrb_direct_path_close(nic->direct);
	vrb_port_close(&nic->port);
	vrb_lcore_leave(old_lcore);
	vrb_baton_release(&nic->baton);
	unlink_nic(nic);
	pthread_mutex_unlock(&nics_lock);
	free(nic);
}

void
vrb_nic_query(struct vrb_nic *nic, struct vrb_nic_info *info)
{
	const struct vrb_port *p = &nic->port;

	memset(info, 0, sizeof(*info));
	memcpy(info->mac, p->mac, sizeof(info->mac));
	memcpy(info->gid, p->gid, sizeof(info->gid));
	info->port_mtu = p->mtu;
	info->max_mtu = vrb_engine_max_mtu(nic->engine);
	info->icrc = p->icrc;
	info->direct = nic->direct != NULL;
	info->port_name = p->name;
	info->driver = p->driver;
	/* A child must not ask the port: its driver's state is shared with the parent's threads. */
	info->link_up = !vrb_is_forked(nic) && vrb_port_link_up(p, &info->speed_mbps);
}

int
vrb_nic_resolve(struct vrb_nic *nic, const union vrb_gid *dgid, uint8_t mac[6])
{
	const struct vrb_port *p = &nic->port;

	if (vrb_addr_group_mac(dgid, mac) == 0)
		return 0;
	if (!vrb_addr_is_host(dgid))
		return -EINVAL;
	for (int i = 0; i < VRB_GIDS; i++) {
		if (memcmp(dgid, &p->gid[i], sizeof(*dgid)) == 0) {
			memcpy(mac, p->mac, 6);
			return 0;
		}
	}
	if (p->kind == VRB_PORT_KERNEL)
		return vrb_neigh_resolve(p->ifindex, dgid, mac);
	if (p->kind == VRB_PORT_SHMLAN || p->derived)
		return vrb_addr_to_mac(dgid, mac);
	if (nic->ops->explain != NULL) {
		vrb_nic_lock(nic);
		nic->ops->explain(nic->ctx, "the network port cannot ask for the MAC address of "
					    "its peers (no ARP yet): "
					    "use net_shmlan or a kernel interface (net_af_packet)");
		vrb_nic_unlock(nic);
	}
	return -ENETUNREACH;
}
