/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a flow rule looks at: the pattern of rte_flow, turned into a value and a mask of what frames
 * are taken apart into (flow_key.h).
 */
#include <errno.h>
#include <string.h>

#include <rte_flow.h>

#include "pmd_private.h"

/** Where in a pattern we are. */
struct walk {
	struct vrb_flow_rule *rule;
	struct vrb_flow_stack *val, *mask; /* of the outer frame, or of the inner one */
	bool eth, vlan, l3, l4, udp, v6; /* seen in this stack */
	uint16_t eth_type; /* asked for by ETH, 0: none */
	struct rte_flow_error *error;
};

static int
refuse(struct walk *w, const struct rte_flow_item *item, const char *why)
{
	return rte_flow_error_set(w->error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM, item, why);
}

/* Copies the bits of a field that are asked for. */
static void
want(void *val, void *mask, const void *spec, const void *bits, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		((uint8_t *)mask)[i] = ((const uint8_t *)bits)[i];
		((uint8_t *)val)[i] = ((const uint8_t *)spec)[i] & ((const uint8_t *)bits)[i];
	}
}

#define WANT(w, field, spec, bits) \
	want(&(w)->val->field, &(w)->mask->field, &(spec), &(bits), sizeof((w)->val->field))

static void
want_present(struct walk *w, uint8_t present)
{
	w->val->present |= present;
	w->mask->present |= present;
}

static bool
is_zero(const void *p, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (((const uint8_t *)p)[i] != 0)
			return false;
	}
	return true;
}

/* ---- items; each gets a spec and a mask that are not NULL ---- */

static int
take_eth(struct walk *w, const struct rte_flow_item *item, const void *s, const void *m)
{
	const struct rte_flow_item_eth *spec = s, *mask = m;

	if (w->eth || w->vlan || w->l3)
		return refuse(w, item, "ETH has to be the first item of its stack");
	w->eth = true;
	WANT(w, dst_mac, spec->dst, mask->dst);
	WANT(w, src_mac, spec->src, mask->src);
	if (mask->has_vlan) {
		w->mask->present |= VRB_FLOW_VLAN;
		w->val->present |= spec->has_vlan ? VRB_FLOW_VLAN : 0;
	}
	if (mask->type == 0)
		return 0;
	if (mask->type != UINT16_MAX)
		return refuse(w, item, "the type of ETH is matched as a whole, or not");
	w->eth_type = spec->type;
	if (spec->type == rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN))
		want_present(w, VRB_FLOW_VLAN);
	else
		WANT(w, ether_type, spec->type, mask->type);
	return 0;
}

static int
take_vlan(struct walk *w, const struct rte_flow_item *item, const void *s, const void *m)
{
	const struct rte_flow_item_vlan *spec = s, *mask = m;

	if (w->vlan || w->l3)
		return refuse(w, item, "one VLAN item is possible, behind ETH");
	if (w->eth_type != 0 && w->eth_type != rte_cpu_to_be_16(RTE_ETHER_TYPE_VLAN))
		return refuse(w, item, "the type of ETH is not that of a VLAN tag");
	if (mask->has_more_vlan)
		return refuse(w, item, "a second VLAN tag cannot be matched");
	w->vlan = true;
	want_present(w, VRB_FLOW_VLAN);
	WANT(w, vlan_tci, spec->tci, mask->tci);
	if (mask->inner_type != 0)
		WANT(w, ether_type, spec->inner_type, mask->inner_type);
	return 0;
}

static int
enter_l3(struct walk *w, const struct rte_flow_item *item, uint16_t type)
{
	uint16_t wanted = w->mask->ether_type;

	if (w->l3)
		return refuse(w, item, "IP within IP cannot be matched");
	if (wanted != 0 && ((w->val->ether_type ^ rte_cpu_to_be_16(type)) & wanted) != 0)
		return refuse(w, item, "the type in front of it is not that of this item");
	w->l3 = true;
	return 0;
}

static int
take_ipv4(struct walk *w, const struct rte_flow_item *item, const void *s, const void *m)
{
	const struct rte_flow_item_ipv4 *spec = s, *mask = m;
	struct rte_ipv4_hdr rest = mask->hdr;
	int rc = enter_l3(w, item, RTE_ETHER_TYPE_IPV4);

	if (rc < 0)
		return rc;
	rest.src_addr = rest.dst_addr = 0;
	rest.type_of_service = rest.time_to_live = rest.next_proto_id = 0;
	if (!is_zero(&rest, sizeof(rest)))
		return refuse(w, item,
			"of IPV4 the addresses, type of service, time to live and protocol are "
			"matched, and nothing else");
	want_present(w, VRB_FLOW_IPV4);
	want(w->val->src_ip, w->mask->src_ip, &spec->hdr.src_addr, &mask->hdr.src_addr, 4);
	want(w->val->dst_ip, w->mask->dst_ip, &spec->hdr.dst_addr, &mask->hdr.dst_addr, 4);
	WANT(w, tos, spec->hdr.type_of_service, mask->hdr.type_of_service);
	WANT(w, ttl, spec->hdr.time_to_live, mask->hdr.time_to_live);
	WANT(w, proto, spec->hdr.next_proto_id, mask->hdr.next_proto_id);
	return 0;
}

static int
take_ipv6(struct walk *w, const struct rte_flow_item *item, const void *s, const void *m)
{
	const struct rte_flow_item_ipv6 *spec = s, *mask = m;
	struct rte_flow_item_ipv6 rest = *mask;
	uint32_t vtc = rte_be_to_cpu_32(spec->hdr.vtc_flow);
	uint32_t vtc_mask = rte_be_to_cpu_32(mask->hdr.vtc_flow);
	int rc = enter_l3(w, item, RTE_ETHER_TYPE_IPV6);

	if (rc < 0)
		return rc;
	memset(&rest.hdr.src_addr, 0, sizeof(rest.hdr.src_addr));
	memset(&rest.hdr.dst_addr, 0, sizeof(rest.hdr.dst_addr));
	rest.hdr.vtc_flow = 0;
	rest.hdr.proto = rest.hdr.hop_limits = 0;
	rest.has_frag_ext = 0;
	if (!is_zero(&rest, sizeof(rest)))
		return refuse(w, item,
			"of IPV6 the addresses, traffic class, flow label, hop limit, protocol and "
			"has_frag_ext are matched, and nothing else");
	w->v6 = true;
	want_present(w, VRB_FLOW_IPV6);
	WANT(w, src_ip, spec->hdr.src_addr, mask->hdr.src_addr);
	WANT(w, dst_ip, spec->hdr.dst_addr, mask->hdr.dst_addr);
	w->mask->flow_label = rte_cpu_to_be_32(vtc_mask & 0xfffff);
	w->val->flow_label = rte_cpu_to_be_32(vtc & vtc_mask & 0xfffff);
	w->mask->tos = (vtc_mask >> 20) & 0xff;
	w->val->tos = (vtc >> 20) & w->mask->tos;
	WANT(w, ttl, spec->hdr.hop_limits, mask->hdr.hop_limits);
	WANT(w, proto, spec->hdr.proto, mask->hdr.proto);
	if (mask->has_frag_ext) {
		w->mask->present |= VRB_FLOW_FRAGMENT;
		w->val->present |= spec->has_frag_ext ? VRB_FLOW_FRAGMENT : 0;
	}
	return 0;
}

/* All three L4 headers begin with the ports. */
static int
take_l4(struct walk *w, const struct rte_flow_item *item, const uint8_t *spec, const uint8_t *mask,
	size_t len, uint8_t present)
{
	if (w->l4)
		return refuse(w, item, "it has to stand behind IPV4 or IPV6, once");
	if (!is_zero(mask + 4, len - 4))
		return refuse(w, item, "of TCP, UDP and SCTP only the ports are matched");
	w->l4 = true;
	want_present(w, present);
	WANT(w, src_port, spec[0], mask[0]);
	WANT(w, dst_port, spec[2], mask[2]);
	return 0;
}

static int
take_udp(struct walk *w, const struct rte_flow_item *item, const void *s, const void *m)
{
	w->udp = true;
	return take_l4(w, item, s, m, sizeof(struct rte_flow_item_udp), VRB_FLOW_UDP);
}

static int
take_tcp(struct walk *w, const struct rte_flow_item *item, const void *s, const void *m)
{
	return take_l4(w, item, s, m, sizeof(struct rte_flow_item_tcp), VRB_FLOW_TCP);
}

static int
take_sctp(struct walk *w, const struct rte_flow_item *item, const void *s, const void *m)
{
	return take_l4(w, item, s, m, sizeof(struct rte_flow_item_sctp), VRB_FLOW_SCTP);
}

static int
take_vxlan(struct walk *w, const struct rte_flow_item *item, const void *s, const void *m)
{
	const struct rte_flow_item_vxlan *spec = s, *mask = m;
	struct vrb_flow_key *val_key = &w->rule->val, *mask_key = &w->rule->mask;

	if (!w->udp || w->val != &val_key->outer)
		return refuse(w, item, "VXLAN has to stand behind UDP of the outer frame");
	if (mask->flags != 0 || mask->rsvd1 != 0 || !is_zero(mask->rsvd0, sizeof(mask->rsvd0)))
		return refuse(w, item, "of VXLAN only the VNI is matched");
	val_key->tunnel = mask_key->tunnel = 1;
	want((uint8_t *)&val_key->vni + 1, (uint8_t *)&mask_key->vni + 1, spec->vni, mask->vni, 3);
	w->val = &val_key->inner;
	w->mask = &mask_key->inner;
	w->eth = w->vlan = w->l3 = w->l4 = w->udp = w->v6 = false;
	w->eth_type = 0;
	return 0;
}

static const struct kind {
	enum rte_flow_item_type type;
	size_t len;
	const void *mask; /* when the rule gives none */
	int (*take)(struct walk *w, const struct rte_flow_item *item, const void *spec,
		const void *mask);
} kinds[] = {
	{RTE_FLOW_ITEM_TYPE_ETH, sizeof(struct rte_flow_item_eth), &rte_flow_item_eth_mask,
		take_eth},
	{RTE_FLOW_ITEM_TYPE_VLAN, sizeof(struct rte_flow_item_vlan), &rte_flow_item_vlan_mask,
		take_vlan},
	{RTE_FLOW_ITEM_TYPE_IPV4, sizeof(struct rte_flow_item_ipv4), &rte_flow_item_ipv4_mask,
		take_ipv4},
	{RTE_FLOW_ITEM_TYPE_IPV6, sizeof(struct rte_flow_item_ipv6), &rte_flow_item_ipv6_mask,
		take_ipv6},
	{RTE_FLOW_ITEM_TYPE_UDP, sizeof(struct rte_flow_item_udp), &rte_flow_item_udp_mask,
		take_udp},
	{RTE_FLOW_ITEM_TYPE_TCP, sizeof(struct rte_flow_item_tcp), &rte_flow_item_tcp_mask,
		take_tcp},
	{RTE_FLOW_ITEM_TYPE_SCTP, sizeof(struct rte_flow_item_sctp), &rte_flow_item_sctp_mask,
		take_sctp},
	{RTE_FLOW_ITEM_TYPE_VXLAN, sizeof(struct rte_flow_item_vxlan), &rte_flow_item_vxlan_mask,
		take_vxlan},
};

static int
take_item(struct walk *w, const struct rte_flow_item *item)
{
	static const uint8_t none[sizeof(struct rte_flow_item_ipv6)];
	const void *spec = item->spec, *mask = item->mask;

	_Static_assert(sizeof(none) >= sizeof(struct rte_flow_item_eth), "the largest of all");
	for (uint32_t i = 0; i < RTE_DIM(kinds); i++) {
		const struct kind *k = &kinds[i];

		if (k->type != item->type)
			continue;
		if (spec == NULL && (mask != NULL || item->last != NULL))
			return rte_flow_error_set(w->error, EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_SPEC,
				item, "a mask or a last value without a spec");
		if (item->last != NULL && memcmp(item->last, spec, k->len) != 0)
			return rte_flow_error_set(w->error, ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_LAST,
				item, "ranges cannot be matched");
		/* Without a spec the item has to be there, whatever it says. */
		if (spec == NULL)
			spec = mask = none;
		else if (mask == NULL)
			mask = k->mask;
		return k->take(w, item, spec, mask);
	}
	return refuse(w, item, "ETH, VLAN, IPV4, IPV6, TCP, UDP, SCTP and VXLAN are matched");
}

int
pmd_flow_pattern(const struct rte_flow_item pattern[], struct vrb_flow_rule *rule,
	struct rte_flow_error *error)
{
	struct walk w = {
		.rule = rule, .val = &rule->val.outer, .mask = &rule->mask.outer, .error = error};

	if (pattern == NULL)
		return rte_flow_error_set(
			error, EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_NUM, NULL, "there is no pattern");
	for (; pattern->type != RTE_FLOW_ITEM_TYPE_END; pattern++) {
		int rc = pattern->type == RTE_FLOW_ITEM_TYPE_VOID ? 0 : take_item(&w, pattern);

		if (rc < 0)
			return rc;
	}
	return 0;
}
