/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Being woken by a kernel interface whose DPDK driver has no Rx interrupts (net_af_packet): packet
 * sockets of our own that get one byte of each RoCE packet, and whose readiness is the interrupt.
 *
 * The kernel hands a packet first to the sockets for all protocols, as the driver's is, and then to
 * those for one protocol, as ours are, so a frame is in the driver's ring before we are woken for
 * it. A packet that is taken away between the two (bridges, tc) does not wake us, so a bridge's
 * interface gets no such sockets, and nobody relies on them for longer than VRB_BELL_TRUST_NS.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <sys/socket.h>

#include "vrb_port_private.h"

#define ROCE_PORT 4791

/*
 * UDP in IPv4, not a fragment but the first, to the port of RoCE: one byte. Offsets are those of
 * the IP header.
 */
static const struct sock_filter roce_v4[] = {
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 9),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 6),
	BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 6),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x1fff, 4, 0),
	BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
	BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ROCE_PORT, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, 1),
	BPF_STMT(BPF_RET | BPF_K, 0),
};

/* UDP directly behind the IPv6 header. */
static const struct sock_filter roce_v6[] = {
	BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 6),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 3),
	BPF_STMT(BPF_LD | BPF_H | BPF_ABS, 42),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ROCE_PORT, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, 1),
	BPF_STMT(BPF_RET | BPF_K, 0),
};

static int
open_bell(unsigned int ifindex, uint16_t ethertype, const struct sock_filter *filter,
	unsigned short n)
{
	struct sock_fprog prog = {.len = n, .filter = (struct sock_filter *)(uintptr_t)filter};
	struct sockaddr_ll sll = {.sll_family = AF_PACKET,
		.sll_protocol = htons(ethertype),
		.sll_ifindex = (int)ifindex};
	int small = 0, rc = 0;
	/* No protocol yet, so it gets nothing before the filter is there. */
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	/*
	 * The kernel makes it its minimum, a packet or two: what does not fit is dropped early, and
	 * the first wakes.
	 */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)) < 0 ||
		setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog, sizeof(prog)) < 0 ||
		bind(fd, (struct sockaddr *)&sll, sizeof(sll)) < 0)
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

static bool
is_in_a_bridge(unsigned int ifindex)
{
	char name[IF_NAMESIZE], path[64];

	if (if_indextoname(ifindex, name) == NULL)
		return true;
	snprintf(path, sizeof(path), "/sys/class/net/%s/master", name);
	return access(path, F_OK) == 0;
}

void
vrb_port_bell_open(struct vrb_port *p)
{
	if (is_in_a_bridge(p->ifindex))
		return;
	p->bell[0] = open_bell(p->ifindex, ETH_P_IP, roce_v4, RTE_DIM(roce_v4));
	p->bell[1] = open_bell(p->ifindex, ETH_P_IPV6, roce_v6, RTE_DIM(roce_v6));
	/* Both or none. */
	if (p->bell[0] < 0 || p->bell[1] < 0)
		vrb_port_bell_close(p);
}

void
vrb_port_bell_close(struct vrb_port *p)
{
	for (int i = 0; i < VRB_PORT_BELLS; i++) {
		if (p->bell[i] >= 0)
			close(p->bell[i]);
		p->bell[i] = -1;
	}
}

void
vrb_port_bell_empty(const struct vrb_port *p)
{
	char byte;

	for (int i = 0; i < VRB_PORT_BELLS; i++)
		while (recv(p->bell[i], &byte, 1, MSG_DONTWAIT) >= 0)
			continue;
}
