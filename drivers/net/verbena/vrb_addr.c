/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * IP addresses, GIDs and MAC addresses: where one tells the other (see vrb_addr.h).
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <arpa/inet.h>

#include "vrb_addr.h"

static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};

bool
vrb_addr_is_v4(const union vrb_gid *gid)
{
	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

bool
vrb_addr_is_link_local(const union vrb_gid *gid)
{
	return gid->raw[0] == 0xfe && (gid->raw[1] & 0xc0) == 0x80;
}

bool
vrb_addr_is_host(const union vrb_gid *gid)
{
	static const union vrb_gid loopback = {.raw = {[15] = 1}}, none;

	if (vrb_addr_is_v4(gid)) /* RFC 1122 3.2.1.3; from 224 on: multicast, reserved, broadcast */
		return gid->raw[12] != 0 && gid->raw[12] != 127 && gid->raw[12] < 224;
	return gid->raw[0] != 0xff && memcmp(gid, &loopback, sizeof(*gid)) != 0 &&
	       memcmp(gid, &none, sizeof(*gid)) != 0;
}

void
vrb_addr_from_v4(uint32_t v4, union vrb_gid *gid)
{
	memcpy(gid->raw, mapped, sizeof(mapped));
	gid->dword[3] = v4;
}

int
vrb_addr_parse(const char *text, union vrb_gid *gid)
{
	struct in_addr v4;

	if (inet_pton(AF_INET, text, &v4) == 1)
		vrb_addr_from_v4(v4.s_addr, gid);
	else if (inet_pton(AF_INET6, text, gid->raw) != 1)
		return -EINVAL;
	return vrb_addr_is_host(gid) ? 0 : -EINVAL;
}

const char *
vrb_addr_format(const union vrb_gid *gid, char *buf, size_t len)
{
	if (vrb_addr_is_v4(gid))
		return inet_ntop(AF_INET, &gid->raw[12], buf, len);
	return inet_ntop(AF_INET6, gid->raw, buf, len);
}

void
vrb_addr_link_local(const uint8_t mac[6], union vrb_gid *gid)
{
	*gid = (union vrb_gid){.raw = {0xfe, 0x80, 0, 0, 0, 0, 0, 0, mac[0] ^ 0x02, mac[1], mac[2],
				       0xff, 0xfe, mac[3], mac[4], mac[5]}};
}

static uint32_t
fnv1a(const uint8_t *p, size_t n)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ p[i]) * 16777619u;
	return h;
}

int
vrb_addr_to_mac(const union vrb_gid *gid, uint8_t mac[6])
{
	const uint8_t *raw = gid->raw;
	uint32_t h;

	if (!vrb_addr_is_host(gid))
		return -EINVAL;
	if (vrb_addr_is_v4(gid)) {
		memcpy(mac, (const uint8_t[]){0x02, 0x00, raw[12], raw[13], raw[14], raw[15]}, 6);
		return 0;
	}
	if (!vrb_addr_is_link_local(gid)) {
		h = fnv1a(raw, 16);
		memcpy(mac, (const uint8_t[]){0x02, 0x01, h >> 24, h >> 16, h >> 8, h}, 6);
		return 0;
	}
	if (raw[11] != 0xff || raw[12] != 0xfe)
		return -EINVAL;
	memcpy(mac, (const uint8_t[]){raw[8] ^ 0x02, raw[9], raw[10], raw[13], raw[14], raw[15]},
		6);
	return 0;
}

int
vrb_addr_group_mac(const union vrb_gid *gid, uint8_t mac[6])
{
	const uint8_t *raw = gid->raw;

	if (vrb_addr_is_v4(gid) && (raw[12] & 0xf0) == 0xe0) /* RFC 1112 6.4 */
		memcpy(mac, (const uint8_t[]){0x01, 0x00, 0x5e, raw[13] & 0x7f, raw[14], raw[15]},
			6);
	else if (raw[0] == 0xff) /* RFC 2464, 7 */
		memcpy(mac, (const uint8_t[]){0x33, 0x33, raw[12], raw[13], raw[14], raw[15]}, 6);
	else
		return -EINVAL;
	return 0;
}

int
vrb_addr_from_mac(const uint8_t mac[6], union vrb_gid *gid)
{
	uint32_t v4;

	if (mac[0] != 0x02 || mac[1] != 0x00)
		return -EINVAL;
	memcpy(&v4, &mac[2], 4);
	vrb_addr_from_v4(v4, gid);
	return vrb_addr_is_host(gid) ? 0 : -EINVAL;
}
