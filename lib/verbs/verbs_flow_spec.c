/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The attributes of a flow rule, made into a value and a mask (ibv_create_flow(3)).
 *
 * Specifications may come in any order, each once, and once more for the frame within a tunnel. A
 * specification of a layer wants that layer to be there, whatever its mask. What can never match is
 * refused.
 */
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "verbs_raw.h"

#include <rte_ether.h>

/* What the functions below check is a failure of the call that they are part of. */
#define refuse(err, ...) vrb_explain_call(err, "ibv_create_flow", __VA_ARGS__)

#define FLAGS ((uint32_t)(IBV_FLOW_ATTR_FLAGS_DONT_TRAP | IBV_FLOW_ATTR_FLAGS_EGRESS))
#define MAX_TAG 0xffffffu
#define MAX_VNI 0xffffffu
#define MAX_FLOW_LABEL 0xfffffu

/* Layers of specifications that were seen, to find doubles; those of the inner frame stand 16 bits
 * higher. */
#define HAS_ETH (1u << 0)
#define HAS_L3 (1u << 1)
#define HAS_L4 (1u << 2)
#define HAS_TUNNEL (1u << 3)
#define HAS_TAG (1u << 4)
#define HAS_DROP (1u << 5)
#define HAS_COUNT (1u << 6)
#define INNER_SHIFT 16

struct parse {
	struct vrb_flow_rule *rule;
	struct ibv_counters *counters;
	uint32_t seen;
};

static int
see(struct parse *p, uint32_t what, bool inner)
{
	what <<= inner ? INNER_SHIFT : 0;
	if (p->seen & what)
		return refuse(
			EINVAL, "two specifications are of the same layer, or the same action");
	p->seen |= what;
	return 0;
}

/* Value and mask of one stack of headers. */
struct stacks {
	struct vrb_flow_stack *val, *mask;
};

static void
want(struct stacks s, uint8_t present)
{
	s.val->present |= present;
	s.mask->present |= present;
}

#define COPY(to, from, field) memcpy(&(to), &(from).field, sizeof((from).field))
#define TAKE(s, to, spec, from) \
	do { \
		_Static_assert(sizeof((s).val->to) >= sizeof((spec)->val.from), #to); \
		COPY((s).val->to, (spec)->val, from); \
		COPY((s).mask->to, (spec)->mask, from); \
	} while (0)

static void
take_eth(struct stacks s, const struct ibv_flow_spec_eth *spec)
{
	TAKE(s, dst_mac, spec, dst_mac);
	TAKE(s, src_mac, spec, src_mac);
	TAKE(s, ether_type, spec, ether_type);
	TAKE(s, vlan_tci, spec, vlan_tag);
	if (spec->mask.vlan_tag)
		want(s, VRB_FLOW_VLAN);
}

static void
take_ipv4(struct stacks s, const struct ibv_flow_spec_ipv4 *spec)
{
	TAKE(s, src_ip, spec, src_ip);
	TAKE(s, dst_ip, spec, dst_ip);
	want(s, VRB_FLOW_IPV4);
}

static void
take_ipv4_ext(struct stacks s, const struct ibv_flow_spec_ipv4_ext *spec)
{
	TAKE(s, src_ip, spec, src_ip);
	TAKE(s, dst_ip, spec, dst_ip);
	TAKE(s, proto, spec, proto);
	TAKE(s, tos, spec, tos);
	TAKE(s, ttl, spec, ttl);
	TAKE(s, ip_flags, spec, flags);
	want(s, VRB_FLOW_IPV4);
}

static int
take_ipv6(struct stacks s, const struct ibv_flow_spec_ipv6 *spec)
{
	if (ntohl(spec->val.flow_label) > MAX_FLOW_LABEL ||
		ntohl(spec->mask.flow_label) > MAX_FLOW_LABEL)
		return refuse(EINVAL, "flow_label has more than 20 bits");
	TAKE(s, src_ip, spec, src_ip);
	TAKE(s, dst_ip, spec, dst_ip);
	TAKE(s, flow_label, spec, flow_label);
	TAKE(s, proto, spec, next_hdr);
	TAKE(s, tos, spec, traffic_class);
	TAKE(s, ttl, spec, hop_limit);
	want(s, VRB_FLOW_IPV6);
	return 0;
}

static void
take_l4(struct stacks s, const struct ibv_flow_spec_tcp_udp *spec, uint8_t present)
{
	TAKE(s, src_port, spec, src_port);
	TAKE(s, dst_port, spec, dst_port);
	want(s, present);
}

static int
take_tunnel(struct vrb_flow_rule *rule, const struct ibv_flow_spec_tunnel *spec)
{
	if (ntohl(spec->val.tunnel_id) > MAX_VNI || ntohl(spec->mask.tunnel_id) > MAX_VNI)
		return refuse(EINVAL, "tunnel_id has more than 24 bits");
	rule->val.vni = spec->val.tunnel_id;
	rule->mask.vni = spec->mask.tunnel_id;
	rule->val.tunnel = rule->mask.tunnel = 1;
	return 0;
}

/* The sizes that specifications have; 0: there is no such specification. */
static size_t
size_of(uint32_t type)
{
	switch (type) {
	case IBV_FLOW_SPEC_ETH:
		return sizeof(struct ibv_flow_spec_eth);
	case IBV_FLOW_SPEC_IPV4:
		return sizeof(struct ibv_flow_spec_ipv4);
	case IBV_FLOW_SPEC_IPV6:
		return sizeof(struct ibv_flow_spec_ipv6);
	case IBV_FLOW_SPEC_IPV4_EXT:
		return sizeof(struct ibv_flow_spec_ipv4_ext);
	case IBV_FLOW_SPEC_ESP:
		return sizeof(struct ibv_flow_spec_esp);
	case IBV_FLOW_SPEC_TCP:
	case IBV_FLOW_SPEC_UDP:
		return sizeof(struct ibv_flow_spec_tcp_udp);
	case IBV_FLOW_SPEC_VXLAN_TUNNEL:
		return sizeof(struct ibv_flow_spec_tunnel);
	case IBV_FLOW_SPEC_GRE:
		return sizeof(struct ibv_flow_spec_gre);
	case IBV_FLOW_SPEC_MPLS:
		return sizeof(struct ibv_flow_spec_mpls);
	case IBV_FLOW_SPEC_ACTION_TAG:
		return sizeof(struct ibv_flow_spec_action_tag);
	case IBV_FLOW_SPEC_ACTION_DROP:
		return sizeof(struct ibv_flow_spec_action_drop);
	case IBV_FLOW_SPEC_ACTION_HANDLE:
		return sizeof(struct ibv_flow_spec_action_handle);
	case IBV_FLOW_SPEC_ACTION_COUNT:
		return sizeof(struct ibv_flow_spec_counter_action);
	default:
		return 0;
	}
}

/* @return 0 or an errno */
static int
take_action(struct parse *p, const struct ibv_flow_spec *spec)
{
	int rc;

	switch ((int)spec->hdr.type) {
	case IBV_FLOW_SPEC_ACTION_TAG:
		if (spec->flow_tag.tag_id > MAX_TAG)
			return refuse(
				EINVAL, "tag_id is %#x; it has 24 bits", spec->flow_tag.tag_id);
		p->rule->tag = spec->flow_tag.tag_id;
		return see(p, HAS_TAG, false);
	case IBV_FLOW_SPEC_ACTION_DROP:
		p->rule->drop = true;
		return see(p, HAS_DROP, false);
	case IBV_FLOW_SPEC_ACTION_COUNT:
		rc = see(p, HAS_COUNT, false);
		p->counters = spec->flow_count.counters;
		return rc || p->counters ? rc : refuse(EINVAL, "counters is NULL");
	default:
		return refuse(EOPNOTSUPP, "the device has no action of type %#x",
			(unsigned int)spec->hdr.type);
	}
}

/* @return 0 or an errno */
static int
take_match(struct parse *p, const struct ibv_flow_spec *spec)
{
	uint32_t type = (uint32_t)spec->hdr.type & ~(uint32_t)IBV_FLOW_SPEC_INNER;
	bool inner = (uint32_t)spec->hdr.type & IBV_FLOW_SPEC_INNER;
	struct vrb_flow_rule *r = p->rule;
	struct stacks s = {
		inner ? &r->val.inner : &r->val.outer, inner ? &r->mask.inner : &r->mask.outer};

	/* Only a frame in a tunnel has one within. */
	if (inner)
		r->val.tunnel = r->mask.tunnel = 1;
	switch (type) {
	case IBV_FLOW_SPEC_ETH:
		take_eth(s, &spec->eth);
		return see(p, HAS_ETH, inner);
	case IBV_FLOW_SPEC_IPV4:
		take_ipv4(s, &spec->ipv4);
		return see(p, HAS_L3, inner);
	case IBV_FLOW_SPEC_IPV4_EXT:
		take_ipv4_ext(s, &spec->ipv4_ext);
		return see(p, HAS_L3, inner);
	case IBV_FLOW_SPEC_IPV6:
		return see(p, HAS_L3, inner) ?: take_ipv6(s, &spec->ipv6);
	case IBV_FLOW_SPEC_TCP:
		take_l4(s, &spec->tcp_udp, VRB_FLOW_TCP);
		return see(p, HAS_L4, inner);
	case IBV_FLOW_SPEC_UDP:
		take_l4(s, &spec->tcp_udp, VRB_FLOW_UDP);
		return see(p, HAS_L4, inner);
	case IBV_FLOW_SPEC_VXLAN_TUNNEL:
		if (!inner)
			return see(p, HAS_TUNNEL, false) ?: take_tunnel(r, &spec->tunnel);
		return refuse(EOPNOTSUPP, "the device does not look into a tunnel within a tunnel");
	default:
		return refuse(EOPNOTSUPP, "the device does not look at headers of type %#x", type);
	}
}

/* What was asked for can be there at once. @return 0 or an errno */
static int
check_stack(const struct vrb_flow_stack *val, const struct vrb_flow_stack *mask)
{
	uint16_t type = val->present & VRB_FLOW_IPV6 ? RTE_ETHER_TYPE_IPV6 : RTE_ETHER_TYPE_IPV4;
	uint8_t proto = val->present & VRB_FLOW_TCP ? IPPROTO_TCP : IPPROTO_UDP;

	if (val->present & (VRB_FLOW_IPV4 | VRB_FLOW_IPV6) &&
		(val->ether_type ^ htons(type)) & mask->ether_type)
		return refuse(EINVAL, "ether_type and the specification of the IP header are of "
				      "different protocols");
	if (val->present & (VRB_FLOW_TCP | VRB_FLOW_UDP) && (val->proto ^ proto) & mask->proto)
		return refuse(EINVAL, "the protocol in the IP header and the specification of TCP "
				      "or UDP are different");
	return 0;
}

/* @return 0 or an errno */
static int
check_attr(const struct ibv_flow_attr *attr)
{
	if (attr->comp_mask)
		return refuse(
			EINVAL, "comp_mask is %#x, but no bit of it is defined", attr->comp_mask);
	if (attr->type > IBV_FLOW_ATTR_SNIFFER)
		return refuse(EINVAL, "type is %d, which is no type", (int)attr->type);
	if (attr->port != 1)
		return refuse(EINVAL, "port is %u; the device has one port, number 1", attr->port);
	if (attr->flags & ~FLAGS)
		return refuse(EINVAL, "flags is %#x, with bits that are not defined", attr->flags);
	if (attr->flags & IBV_FLOW_ATTR_FLAGS_EGRESS)
		return refuse(EOPNOTSUPP, "the device has no rules for what is sent");
	if (attr->flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP && attr->type != IBV_FLOW_ATTR_NORMAL)
		return refuse(
			EINVAL, "only rules of type IBV_FLOW_ATTR_NORMAL can let frames go on");
	return 0;
}

/*
 * How many specifications follow is what num_of_specs says. attr->size says nothing: upstream's
 * library never looks at it, and programs (pyverbs, perftest) put into it what they like. @return 0
 * or an errno
 */
static int
take_spec(struct parse *p, enum ibv_flow_attr_type type, const uint8_t *at, size_t *size)
{
	struct ibv_flow_spec spec;

	/* The list need not be aligned as the structures are. */
	memcpy(&spec.hdr, at, sizeof(spec.hdr));
	*size = size_of((uint32_t)spec.hdr.type & ~(uint32_t)IBV_FLOW_SPEC_INNER);
	if (!*size ||
		((uint32_t)spec.hdr.type & 0x1000 && (uint32_t)spec.hdr.type & IBV_FLOW_SPEC_INNER))
		return refuse(EINVAL, "there is no specification of type %#x",
			(unsigned int)spec.hdr.type);
	if (spec.hdr.size != *size)
		return refuse(EINVAL, "the specification of type %#x has size %u instead of %zu",
			(unsigned int)spec.hdr.type, spec.hdr.size, *size);
	memcpy(&spec, at, *size);
	if ((uint32_t)spec.hdr.type & 0x1000)
		return take_action(p, &spec);
	if (type != IBV_FLOW_ATTR_NORMAL)
		return refuse(EINVAL, "only rules of type IBV_FLOW_ATTR_NORMAL look at headers");
	return take_match(p, &spec);
}

/* What is outside of the mask counts for nothing, and equal rules shall look equal. */
static void
apply_mask(struct vrb_flow_rule *rule)
{
	uint8_t *val = (uint8_t *)&rule->val;
	const uint8_t *mask = (const uint8_t *)&rule->mask;
	size_t i;

	for (i = 0; i < sizeof(rule->val); i++)
		val[i] &= mask[i];
}

int
vrb_flow_from_attr(const struct ibv_flow_attr *attr, struct vrb_flow_rule *rule,
	struct ibv_counters **counters)
{
	const uint8_t *at = (const uint8_t *)(attr + 1);
	struct parse p = {.rule = rule};
	size_t size = 0;
	int rc, i;

	memset(rule, 0, sizeof(*rule));
	rc = check_attr(attr);
	if (rc)
		return rc;
	rule->type = (enum vrb_flow_type)attr->type;
	rule->priority = attr->priority;
	rule->dont_trap = attr->flags & IBV_FLOW_ATTR_FLAGS_DONT_TRAP;
	for (i = 0; i < attr->num_of_specs && !rc; i++) {
		rc = take_spec(&p, attr->type, at, &size);
		at += size;
	}
	if (!rc)
		rc = check_stack(&rule->val.outer, &rule->mask.outer);
	if (!rc)
		rc = check_stack(&rule->val.inner, &rule->mask.inner);
	if (rc)
		return rc;
	apply_mask(rule);
	*counters = p.counters;
	return 0;
}
