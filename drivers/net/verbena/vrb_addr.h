/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IP addresses, GIDs and MAC addresses: where one tells the other.
 *
 * On a network of ours (net_shmlan) there is nobody to ask for a MAC address and no need to:
 *
 *   address of the host          its MAC
 *   IPv4 a.b.c.d                 02:00:a:b:c:d
 *   IPv6, global                 02:01: and the FNV-1a hash (32 bits) of the address
 *   IPv6, fe80::/64 and EUI-64   the MAC that the EUI-64 was made from (RFC 4291, appendix A)
 */
#ifndef VRB_ADDR_H
#define VRB_ADDR_H

#include <stdbool.h>
#include <stdint.h>

#include "vrb_types.h"

/** IPv4 or IPv6 in text to a GID. @return 0, or -EINVAL: not an address, or not one of a host */
int vrb_addr_parse(const char *text, union vrb_gid *gid);
/** In text; at least INET6_ADDRSTRLEN bytes. IPv4-mapped ones as IPv4. */
const char *vrb_addr_format(const union vrb_gid *gid, char *buf, size_t len);
bool vrb_addr_is_v4(const union vrb_gid *gid);
bool vrb_addr_is_link_local(const union vrb_gid *gid);
/** Whether a host can have it: not unspecified, loopback, multicast or broadcast. */
bool vrb_addr_is_host(const union vrb_gid *gid);
/** @param v4 in network byte order */
void vrb_addr_from_v4(uint32_t v4, union vrb_gid *gid);
/** fe80:: and the EUI-64 of @p mac. */
void vrb_addr_link_local(const uint8_t mac[6], union vrb_gid *gid);
/** The MAC address by the table above. @return 0, or -EINVAL: nothing tells it */
int vrb_addr_to_mac(const union vrb_gid *gid, uint8_t mac[6]);
/** The MAC address of a multicast group. @return 0, or -EINVAL: it is none */
int vrb_addr_group_mac(const union vrb_gid *gid, uint8_t mac[6]);
/** The IPv4 address in a MAC of the table's first row. @return 0 or -EINVAL */
int vrb_addr_from_mac(const uint8_t mac[6], union vrb_gid *gid);

#endif
