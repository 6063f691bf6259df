/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Multicast of datagrams (IBTA 10.5): which queue pairs are attached to which group, and the copy
 * that each of them gets.
 *
 * On the wire the destination is queue pair 0xffffff, whatever the group (IBTA 9.8.3.1). What one
 * of our own queue pairs sends to a group goes to the port, and comes back to those of ours that
 * are attached, the sender among them unless it was made with block_self_mcast.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"

struct vrb_group {
	struct vrb_group *next;
	union vrb_gid gid;
	uint32_t num, cap;
	struct vrb_qp **qps;
};

bool
vrb_gid_is_multicast(const union vrb_gid *gid)
{
	return gid->raw[0] == 0xff || (vrb_gid_is_v4(gid) && (gid->raw[12] & 0xf0) == 0xe0);
}

static struct vrb_group **
bucket(struct vrb_engine *e, const union vrb_gid *gid)
{
	return &e->groups[(gid->raw[15] ^ gid->raw[14]) % RTE_DIM(e->groups)];
}

static struct vrb_group *
find(struct vrb_engine *e, const union vrb_gid *gid)
{
	struct vrb_group *g;

	for (g = *bucket(e, gid); g != NULL; g = g->next) {
		if (memcmp(&g->gid, gid, sizeof(*gid)) == 0)
			break;
	}
	return g;
}

struct vrb_group *
vrb_mcast_find(struct vrb_engine *e, const struct vrb_pkt *pkt)
{
	union vrb_gid gid = {.raw = {[10] = 0xff, [11] = 0xff}};

	if (pkt->v6)
		memcpy(gid.raw, ((const struct rte_ipv6_hdr *)pkt->l3)->dst_addr, sizeof(gid.raw));
	else
		gid.dword[3] = ((const struct rte_ipv4_hdr *)pkt->l3)->dst_addr;
	return find(e, &gid);
}

static struct vrb_group *
make(struct vrb_engine *e, const union vrb_gid *gid)
{
	struct vrb_group *g, **head = bucket(e, gid);

	if (e->num_groups >= VRB_MAX_MCAST_GRP)
		return NULL;
	g = calloc(1, sizeof(*g));
	if (g == NULL)
		return NULL;
	g->gid = *gid;
	g->next = *head;
	*head = g;
	e->num_groups++;
	return g;
}

static void
drop_if_empty(struct vrb_engine *e, struct vrb_group *g)
{
	struct vrb_group **link = bucket(e, &g->gid);

	if (g->num > 0)
		return;
	while (*link != g)
		link = &(*link)->next;
	*link = g->next;
	e->num_groups--;
	free(g->qps);
	free(g);
}

static uint32_t
index_of(const struct vrb_group *g, const struct vrb_qp *qp)
{
	uint32_t i;

	for (i = 0; i < g->num && g->qps[i] != qp; i++)
		;
	return i;
}

static int
add(struct vrb_group *g, struct vrb_qp *qp)
{
	struct vrb_qp **qps;

	if (g->num >= VRB_MAX_MCAST_QP_ATTACH)
		return -ENOMEM;
	if (g->num == g->cap) {
		qps = realloc(g->qps, (g->cap + 8) * sizeof(*qps));
		if (qps == NULL)
			return -ENOMEM;
		g->qps = qps;
		g->cap += 8;
	}
	g->qps[g->num++] = qp;
	qp->groups++;
	return 0;
}

int
vrb_mcast_attach(struct vrb_qp *qp, const union vrb_gid *gid)
{
	struct vrb_engine *e = qp->engine;
	struct vrb_group *g = find(e, gid);
	int rc;

	if (qp->transport != VRB_TRANSPORT_UD || !vrb_gid_is_multicast(gid))
		return -EINVAL;
	/* ibv_attach_mcast(3): attached twice it still gets a single copy. */
	if (g != NULL && index_of(g, qp) < g->num)
		return 0;
	if (g == NULL)
		g = make(e, gid);
	if (g == NULL)
		return -ENOMEM;
	rc = add(g, qp);
	drop_if_empty(e, g);
	return rc;
}

int
vrb_mcast_detach(struct vrb_qp *qp, const union vrb_gid *gid)
{
	struct vrb_group *g = find(qp->engine, gid);
	uint32_t i = g != NULL ? index_of(g, qp) : 0;

	if (g == NULL || i == g->num)
		return -EINVAL;
	g->qps[i] = g->qps[--g->num];
	qp->groups--;
	drop_if_empty(qp->engine, g);
	return 0;
}

uint32_t
vrb_mcast_groups(const struct vrb_qp *qp)
{
	return qp->groups;
}

void
vrb_mcast_forget(struct vrb_qp *qp)
{
	struct vrb_engine *e = qp->engine;
	struct vrb_group *g, *next;
	unsigned int i;

	for (i = 0; i < RTE_DIM(e->groups) && qp->groups > 0; i++) {
		for (g = e->groups[i]; g != NULL; g = next) {
			next = g->next;
			vrb_mcast_detach(qp, &g->gid);
		}
	}
}

void
vrb_mcast_deliver(struct vrb_engine *e, const struct vrb_pkt *pkt, bool from_us)
{
	const struct vrb_group *g = pkt->group;
	uint32_t i;

	for (i = 0; i < g->num; i++) {
		struct vrb_qp *qp = g->qps[i];
		enum vrb_qp_state state = vrb_qp_get_state(qp);

		if (from_us && qp->init.block_self_mcast && pkt->src_qpn == qp->qpn)
			continue;
		if (state < VRB_QPS_RTR || state == VRB_QPS_ERR)
			e->stats.rx_qp_state++;
		else
			vrb_ud_packet(qp, pkt);
	}
}

void
vrb_mcast_loop(struct vrb_engine *e, const struct rte_mbuf *m)
{
	struct rte_mbuf *copy =
		e->num_groups > 0 ? rte_pktmbuf_copy(m, e->conf.pool, 0, UINT32_MAX) : NULL;

	/* Without memory it is lost, as it may be on the wire. */
	if (copy != NULL)
		e->loop[e->loop_head++ % VRB_LOOP_SIZE] = copy;
}
