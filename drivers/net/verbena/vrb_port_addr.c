/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The addresses of the lower port.
 *
 *   net_shmlan        the MAC is derived from the IP address that is given, or the segment chooses
 *                     a free one, which tells the IP address
 *   kernel interface  the interface's own; one that is given has to be among them. The kernel sees
 *                     our peers' packets as well and, having no socket for their port, may answer
 *                     with ICMP errors: no RoCE implementation minds them
 *   other ports       the IP address has to be given. Software ports (ring, memif, null) get the
 *                     MAC derived from it; other ports keep their own, and their peers cannot be
 *                     found until there is ARP
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "vrb_addr.h"
#include "vrb_nic_private.h"
#include "vrb_port_private.h"

static int
append(char *buf, size_t len, const char *text)
{
	size_t used = strlen(buf);

	if (used + strlen(text) >= len)
		return -EINVAL;
	strcpy(buf + used, text);
	return 0;
}

int
vrb_port_shmlan_devargs(const struct vrb_nic_conf *conf, char *buf, size_t len)
{
	union vrb_gid gid;
	uint8_t mac[6];
	char arg[128];
	int rc = 0;

	if (strstr(buf, ",segment=") == NULL && conf->segment != NULL) {
		snprintf(arg, sizeof(arg), ",segment=%s", conf->segment);
		rc = append(buf, len, arg);
	}
	if (rc == 0 && conf->ip != NULL && strstr(buf, ",mac=") == NULL) {
		rc = vrb_addr_parse(conf->ip, &gid);
		if (rc == 0 && vrb_addr_is_link_local(&gid))
			rc = -EINVAL;
		if (rc == 0)
			rc = vrb_addr_to_mac(&gid, mac);
		if (rc < 0)
			return rc;
		snprintf(arg, sizeof(arg), ",mac=%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1],
			mac[2], mac[3], mac[4], mac[5]);
		rc = append(buf, len, arg);
	}
	if (rc == 0 && strstr(buf, ",rx_zc=") == NULL)
		rc = append(buf, len, ",rx_zc=1");
	return rc;
}

int
vrb_port_kernel_mtu(unsigned int ifindex, uint16_t *mtu)
{
	struct ifreq ifr = {0};
	int fd, rc = 0;

	if (if_indextoname(ifindex, ifr.ifr_name) == NULL)
		return -errno;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (ioctl(fd, SIOCGIFMTU, &ifr) < 0)
		rc = -errno;
	else
		*mtu = RTE_MIN(ifr.ifr_mtu, UINT16_MAX);
	close(fd);
	return rc;
}

/* The address that was asked for. @return 0, -ENOENT: none was, -EINVAL */
static int
given(const struct vrb_nic_conf *conf, union vrb_gid *gid, char *why, size_t why_len)
{
	if (conf->ip == NULL)
		return -ENOENT;
	if (vrb_addr_parse(conf->ip, gid) == 0 && !vrb_addr_is_link_local(gid))
		return 0;
	snprintf(why, why_len, "\"%s\" is no IPv4 or global IPv6 address that a host can have",
		conf->ip);
	return -EINVAL;
}

static int
shmlan_addresses(struct vrb_port *p, const struct vrb_nic_conf *conf, char *why, size_t why_len)
{
	int rc = given(conf, &p->gid[0], why, why_len);

	if (rc == -ENOENT)
		rc = vrb_addr_from_mac(p->mac, &p->gid[0]);
	if (rc < 0 && conf->ip == NULL)
		snprintf(why, why_len,
			"the MAC address of %s tells no IP address; give an IP address, or a MAC "
			"02:00:a:b:c:d",
			p->name);
	return rc;
}

static int
kernel_addresses(struct vrb_port *p, const struct vrb_nic_conf *conf, char *why, size_t why_len)
{
	char name[IF_NAMESIZE] = "?";
	union vrb_gid own[VRB_GIDS];
	int rc = vrb_neigh_addresses(p->ifindex, p->mac, own);
	int rc_given = given(conf, &p->gid[0], why, why_len);

	if_indextoname(p->ifindex, name);
	p->gid[1] = own[1];
	if (rc_given == -ENOENT && rc == 0) {
		p->gid[0] = own[0];
		return 0;
	}
	if (rc_given == -ENOENT) {
		snprintf(why, why_len,
			"the interface %s has no IP address; give it one (ip addr add)", name);
		return rc;
	}
	/* What leaves a tap is received by this host, so the address on it is the other end's. */
	if (rc_given == 0 && !vrb_neigh_is_own(p->ifindex, &p->gid[0]) &&
		strcmp(p->driver, "net_tap") != 0) {
		snprintf(why, why_len,
			"the interface %s does not have the address %s, so nobody would find it "
			"there",
			name, conf->ip);
		return -EADDRNOTAVAIL;
	}
	return rc_given;
}

static bool
is_software_port(const struct vrb_port *p)
{
	return strcmp(p->driver, "net_ring") == 0 || strcmp(p->driver, "net_memif") == 0 ||
	       strcmp(p->driver, "net_null") == 0;
}

static int
other_addresses(struct vrb_port *p, const struct vrb_nic_conf *conf, char *why, size_t why_len)
{
	struct rte_ether_addr derived;
	int rc = given(conf, &p->gid[0], why, why_len);

	if (rc == -ENOENT) {
		snprintf(why, why_len, "the port %s has no address of its own; give an IP address",
			p->name);
		return -EINVAL;
	}
	if (rc < 0)
		return rc;
	rc = vrb_addr_to_mac(&p->gid[0], derived.addr_bytes);
	if (rc == 0 && is_software_port(p) &&
		rte_eth_dev_default_mac_addr_set(p->id, &derived) == 0)
		memcpy(p->mac, derived.addr_bytes, 6);
	return rc;
}

int
vrb_port_find_addresses(
	struct vrb_port *p, const struct vrb_nic_conf *conf, char *why, size_t why_len)
{
	struct rte_ether_addr mac;
	uint8_t derived[6];
	int rc = rte_eth_macaddr_get(p->id, &mac);

	if (rc < 0)
		return vrb_port_fail(why, why_len, rc, "the port has no MAC address", p->name);
	memcpy(p->mac, mac.addr_bytes, 6);
	switch (p->kind) {
	case VRB_PORT_SHMLAN:
		rc = shmlan_addresses(p, conf, why, why_len);
		break;
	case VRB_PORT_KERNEL:
		rc = kernel_addresses(p, conf, why, why_len);
		break;
	case VRB_PORT_OTHER:
		rc = other_addresses(p, conf, why, why_len);
		break;
	}
	if (rc < 0)
		return rc;
	if (p->kind != VRB_PORT_KERNEL)
		vrb_addr_link_local(p->mac, &p->gid[1]);
	p->derived = vrb_addr_to_mac(&p->gid[0], derived) == 0 && memcmp(derived, p->mac, 6) == 0;
	return 0;
}
