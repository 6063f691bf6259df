/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses and neighbours of a kernel interface: the kernel knows them, and does ARP and neighbour
 * discovery for us. A datagram to the discard port makes it look for a neighbour that it does not
 * know yet.
 */
#include <errno.h>
#include <ifaddrs.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <linux/neighbour.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>

#include "vrb_addr.h"
#include "vrb_nic_private.h"

/* How long to wait for a neighbour: the kernel asks three times, a second apart. */
#define NEIGH_TRIES 330
#define NEIGH_WAIT_MS 10
#define DISCARD_PORT 9

/* The kernel's form of an address: family, bytes, length. */
struct kaddr {
	uint8_t family;
	uint8_t len;
	uint8_t bytes[16];
};

static struct kaddr
to_kernel(const union vrb_gid *gid)
{
	struct kaddr a = {.family = AF_INET6, .len = 16};

	if (vrb_addr_is_v4(gid)) {
		a.family = AF_INET;
		a.len = 4;
		memcpy(a.bytes, &gid->raw[12], 4);
	} else {
		memcpy(a.bytes, gid->raw, 16);
	}
	return a;
}

static bool
from_sockaddr(const struct sockaddr *sa, union vrb_gid *gid)
{
	if (sa != NULL && sa->sa_family == AF_INET)
		vrb_addr_from_v4(
			((const struct sockaddr_in *)(const void *)sa)->sin_addr.s_addr, gid);
	else if (sa != NULL && sa->sa_family == AF_INET6)
		memcpy(gid->raw, &((const struct sockaddr_in6 *)(const void *)sa)->sin6_addr, 16);
	else
		return false;
	return true;
}

/* Calls fn for each address of the interface until it returns true. */
static bool
each_address(unsigned int ifindex, bool (*fn)(const union vrb_gid *, void *), void *arg)
{
	char name[IF_NAMESIZE];
	struct ifaddrs *list;
	union vrb_gid gid;
	bool found = false;

	if (if_indextoname(ifindex, name) == NULL || getifaddrs(&list) < 0)
		return false;
	for (struct ifaddrs *i = list; i != NULL && !found; i = i->ifa_next)
		found = strcmp(i->ifa_name, name) == 0 && from_sockaddr(i->ifa_addr, &gid) &&
			fn(&gid, arg);
	freeifaddrs(list);
	return found;
}

static bool
is_same(const union vrb_gid *gid, void *arg)
{
	return memcmp(gid, arg, sizeof(*gid)) == 0;
}

bool
vrb_neigh_is_own(unsigned int ifindex, const union vrb_gid *gid)
{
	union vrb_gid wanted = *gid;

	return each_address(ifindex, is_same, &wanted);
}

/* The first IPv4 address, else the first global IPv6 address; and the first link-local one. */
static bool
collect(const union vrb_gid *gid, void *arg)
{
	static const union vrb_gid none;
	union vrb_gid *found = arg;
	int i = vrb_addr_is_link_local(gid) ? 1 : 0;

	if (!vrb_addr_is_host(gid))
		return false;
	if (memcmp(&found[i], &none, sizeof(none)) == 0 ||
		(i == 0 && vrb_addr_is_v4(gid) && !vrb_addr_is_v4(&found[0])))
		found[i] = *gid;
	return false;
}

int
vrb_neigh_addresses(unsigned int ifindex, const uint8_t mac[6], union vrb_gid gid[VRB_GIDS])
{
	static const union vrb_gid none;

	memset(gid, 0, VRB_GIDS * sizeof(*gid));
	each_address(ifindex, collect, gid);
	if (memcmp(&gid[1], &none, sizeof(none)) == 0)
		vrb_addr_link_local(mac, &gid[1]);
	return memcmp(&gid[0], &none, sizeof(none)) == 0 ? -EADDRNOTAVAIL : 0;
}

struct request {
	struct nlmsghdr nh;
	union {
		struct rtmsg rt;
		struct ndmsg nd;
	};
	char attrs[64];
};

static void
add_attr(struct request *r, uint16_t type, const void *data, size_t len)
{
	struct rtattr *a = (struct rtattr *)(void *)((char *)r + NLMSG_ALIGN(r->nh.nlmsg_len));

	a->rta_type = type;
	a->rta_len = RTA_LENGTH(len);
	memcpy(RTA_DATA(a), data, len);
	r->nh.nlmsg_len = NLMSG_ALIGN(r->nh.nlmsg_len) + RTA_ALIGN(a->rta_len);
}

/* Sends a request for one object and reads the answer into buf. @return its length or -errno */
static int
ask(struct request *r, void *buf, size_t len)
{
	struct nlmsghdr *nh = buf;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t n;

	if (fd < 0)
		return -errno;
	r->nh.nlmsg_flags = NLM_F_REQUEST;
	n = send(fd, r, r->nh.nlmsg_len, 0);
	if (n >= 0)
		n = recv(fd, buf, len, 0);
	if (n < 0)
		n = -errno;
	close(fd);
	if (n < 0)
		return n;
	if (!NLMSG_OK(nh, n))
		return -EPROTO;
	if (nh->nlmsg_type == NLMSG_ERROR)
		return ((struct nlmsgerr *)NLMSG_DATA(nh))->error;
	return n;
}

/* The attribute of that type behind a fixed header, or NULL. */
static struct rtattr *
find_attr(struct nlmsghdr *nh, size_t header, uint16_t type)
{
	struct rtattr *a = (struct rtattr *)(void *)((char *)NLMSG_DATA(nh) + NLMSG_ALIGN(header));
	int len = (int)(nh->nlmsg_len - NLMSG_LENGTH(NLMSG_ALIGN(header)));

	for (; RTA_OK(a, len); a = RTA_NEXT(a, len))
		if (a->rta_type == type)
			return a;
	return NULL;
}

/* Asks for the route to an address by way of the interface. @return as ask() */
static int
route(unsigned int ifindex, const struct kaddr *a, unsigned int flags, void *buf, size_t len)
{
	struct request r = {
		.nh = {.nlmsg_type = RTM_GETROUTE, .nlmsg_len = NLMSG_LENGTH(sizeof(r.rt))},
		.rt = {.rtm_family = a->family, .rtm_dst_len = a->len * 8, .rtm_flags = flags}};
	uint32_t oif = ifindex;

	add_attr(&r, RTA_DST, a->bytes, a->len);
	add_attr(&r, RTA_OIF, &oif, sizeof(oif));
	return ask(&r, buf, len);
}

/*
 * Replaces the destination by the gateway if there is one on the way. Asked for an interface the
 * kernel takes an address that it has no route for as being on the link, so whether an entry of its
 * tables matches is asked first.
 */
static int
next_hop(unsigned int ifindex, struct kaddr *a)
{
	char buf[4096] __rte_aligned(8);
	struct nlmsghdr *nh = (struct nlmsghdr *)(void *)buf;
	struct rtattr *gw;

	if (route(ifindex, a, RTM_F_FIB_MATCH, buf, sizeof(buf)) < 0 ||
		route(ifindex, a, 0, buf, sizeof(buf)) < 0)
		return -ENETUNREACH;
	if (((struct rtmsg *)NLMSG_DATA(nh))->rtm_type != RTN_UNICAST)
		return -ENETUNREACH;
	gw = find_attr(nh, sizeof(struct rtmsg), RTA_GATEWAY);
	if (gw != NULL && RTA_PAYLOAD(gw) == a->len)
		memcpy(a->bytes, RTA_DATA(gw), a->len);
	return 0;
}

/* @return 0, -EAGAIN: not known (yet), -EHOSTUNREACH: the kernel has given up */
static int
look_up(unsigned int ifindex, const struct kaddr *a, uint8_t mac[6])
{
	struct request r = {
		.nh = {.nlmsg_type = RTM_GETNEIGH, .nlmsg_len = NLMSG_LENGTH(sizeof(r.nd))},
		.nd = {.ndm_family = a->family, .ndm_ifindex = (int)ifindex}};
	char buf[4096] __rte_aligned(8);
	struct nlmsghdr *nh = (struct nlmsghdr *)(void *)buf;
	struct rtattr *lladdr;
	struct ndmsg *nd = NLMSG_DATA(nh);

	add_attr(&r, NDA_DST, a->bytes, a->len);
	if (ask(&r, buf, sizeof(buf)) < 0)
		return -EAGAIN;
	if (nd->ndm_state & NUD_FAILED)
		return -EHOSTUNREACH;
	lladdr = find_attr(nh, sizeof(*nd), NDA_LLADDR);
	if (lladdr == NULL || RTA_PAYLOAD(lladdr) != 6 || (nd->ndm_state & NUD_INCOMPLETE))
		return -EAGAIN;
	memcpy(mac, RTA_DATA(lladdr), 6);
	return 0;
}

/* One byte to the discard port by way of the interface: the kernel asks for the neighbour's MAC. */
static void
provoke(unsigned int ifindex, const struct kaddr *a)
{
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(DISCARD_PORT)};
	struct sockaddr_in6 v6 = {.sin6_family = AF_INET6,
		.sin6_port = htons(DISCARD_PORT),
		.sin6_scope_id = ifindex};
	const struct sockaddr *sa =
		a->family == AF_INET ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
	int fd = socket(a->family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	uint32_t oif = htonl(ifindex);

	if (fd < 0)
		return;
	memcpy(&v4.sin_addr, a->bytes, 4);
	memcpy(&v6.sin6_addr, a->bytes, 16);
	setsockopt(fd, a->family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6,
		a->family == AF_INET ? IP_UNICAST_IF : IPV6_UNICAST_IF, &oif, sizeof(oif));
	/*
	 * An error is no news: the neighbour does not become known, and that is found out anyway.
	 */
	(void)!sendto(fd, "", 1, 0, sa, a->family == AF_INET ? sizeof(v4) : sizeof(v6));
	close(fd);
}

int
vrb_neigh_resolve(unsigned int ifindex, const union vrb_gid *dgid, uint8_t mac[6])
{
	struct kaddr a = to_kernel(dgid);
	int rc = next_hop(ifindex, &a);

	if (rc < 0)
		return rc;
	rc = look_up(ifindex, &a, mac);
	if (rc == 0)
		return 0;
	provoke(ifindex, &a);
	for (int i = 0; i < NEIGH_TRIES; i++) {
		poll(NULL, 0, i < 5 ? 1 : NEIGH_WAIT_MS);
		rc = look_up(ifindex, &a, mac);
		if (rc == 0)
			return 0;
		if (rc == -EHOSTUNREACH)
			break;
	}
	return -ETIMEDOUT;
}
