/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared Rx queues: queues of several ports, or of one, that have one completion ring and one stock
 * of buffers, told by share_group and share_qid. rx_burst on any member gives the frames of all,
 * and mbuf.port says whose they are.
 *
 * ethdev leaves it to the driver to check that the members agree. Those of this driver have to
 * agree in what the one ring and the one stock have for all of them.
 */
#include <errno.h>
#include <stdlib.h>

#include "pmd_private.h"

pthread_mutex_t pmd_share_lock;
static LIST_HEAD(, pmd_share) shares = LIST_HEAD_INITIALIZER(shares);

static void __attribute__((constructor)) make_locks(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&pmd_share_lock, &attr);
	pthread_mutexattr_destroy(&attr);
}

static int
mismatch(const struct pmd_rxq *q, const char *what)
{
	PMD_LOG(ERR,
		"port %u: Rx queue %u cannot join share group %u, queue %u: its %s differs from "
		"that of the members",
		q->port_id, q->queue, q->conf.share_group, q->conf.share_qid, what);
	return -EINVAL;
}

static int
match(const struct pmd_share *s, const struct pmd_rxq *q)
{
	const struct pmd_rxq *other = LIST_FIRST(&s->members);
	const struct rte_eth_dev_data *data = q->port->dev->data;
	const struct rte_eth_dev_data *theirs = other->port->dev->data;

	LIST_FOREACH (other, &s->members, link) {
		if (other->port == q->port) {
			PMD_LOG(ERR,
				"port %u: Rx queues %u and %u cannot both be share group %u, "
				"queue %u: mbuf.port would not tell them apart",
				q->port_id, other->queue, q->queue, s->group, s->qid);
			return -EINVAL;
		}
	}
	other = LIST_FIRST(&s->members);
	if (other->socket != q->socket)
		return mismatch(q, "NUMA socket");
	if (other->nb_desc != q->nb_desc)
		return mismatch(q, "number of descriptors");
	if (theirs->mtu != data->mtu)
		return mismatch(q, "MTU");
	if (theirs->dev_conf.intr_conf.rxq != data->dev_conf.intr_conf.rxq)
		return mismatch(q, "use of Rx interrupts");
	if (other->mp != q->mp)
		return mismatch(q, "mempool");
	if (other->conf.offloads != q->conf.offloads ||
		theirs->dev_conf.rxmode.offloads != data->dev_conf.rxmode.offloads)
		return mismatch(q, "set of offloads");
	if (other->conf.rx_deferred_start != q->conf.rx_deferred_start)
		return mismatch(q, "deferred start");
	return 0;
}

static struct pmd_share *
find(uint16_t group, uint16_t qid)
{
	struct pmd_share *s;

	LIST_FOREACH (s, &shares, link) {
		if (s->group == group && s->qid == qid)
			break;
	}
	return s;
}

static struct pmd_share *
make(const struct pmd_rxq *q)
{
	struct pmd_share *s = calloc(1, sizeof(*s));
	int rc;

	if (s == NULL)
		return NULL;
	s->group = q->conf.share_group;
	s->qid = q->conf.share_qid;
	LIST_INIT(&s->members);
	rc = pmd_cring_init(&s->cring, q->nb_desc, q->socket, true);
	if (rc == 0)
		rc = pmd_cring_add_stock(&s->cring, q->mp);
	if (rc < 0) {
		pmd_cring_fini(&s->cring);
		free(s);
		return NULL;
	}
	LIST_INSERT_HEAD(&shares, s, link);
	return s;
}

/* All who may look at the list of members are kept out. */
static void
members_gates(struct pmd_share *s, bool open)
{
	struct pmd_rxq *q;

	LIST_FOREACH (q, &s->members, link) {
		if (!open)
			pmd_gate_close(&q->gate);
		else if (q->port->started && !q->stopped)
			pmd_gate_open(&q->gate);
	}
}

int
pmd_share_join(struct pmd_rxq *q)
{
	struct pmd_share *s;
	int rc = 0;

	pthread_mutex_lock(&pmd_share_lock);
	s = find(q->conf.share_group, q->conf.share_qid);
	if (s != NULL)
		rc = match(s, q);
	else
		s = make(q);
	if (s == NULL)
		rc = -ENOMEM;
	if (rc == 0) {
		members_gates(s, false);
		q->share = s;
		q->cring = &s->cring;
		s->num_members++;
		LIST_INSERT_HEAD(&s->members, q, link);
		members_gates(s, true);
	}
	pthread_mutex_unlock(&pmd_share_lock);
	return rc;
}

void
pmd_share_leave(struct pmd_rxq *q)
{
	struct pmd_share *s = q->share;

	if (s == NULL)
		return;
	pthread_mutex_lock(&pmd_share_lock);
	members_gates(s, false);
	LIST_REMOVE(q, link);
	q->share = NULL;
	q->cring = &q->own;
	if (--s->num_members == 0) {
		LIST_REMOVE(s, link);
		pmd_cring_fini(&s->cring);
		free(s);
	} else {
		members_gates(s, true);
	}
	pthread_mutex_unlock(&pmd_share_lock);
}
