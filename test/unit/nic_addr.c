/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses (drivers/net/verbena/vrb_addr.h).
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <arpa/inet.h>

#include <cmocka.h>

#include "vrb_addr.h"

static union vrb_gid
parse(const char *text)
{
	union vrb_gid gid;

	assert_int_equal(vrb_addr_parse(text, &gid), 0);
	return gid;
}

static void
assert_mac(const char *text, const uint8_t expected[6])
{
	union vrb_gid gid = parse(text);
	uint8_t mac[6];

	assert_int_equal(vrb_addr_to_mac(&gid, mac), 0);
	assert_memory_equal(mac, expected, 6);
}

static void
ipv4_becomes_a_mapped_gid_and_back(void **state)
{
	static const uint8_t raw[16] = {[10] = 0xff, 0xff, 198, 18, 0, 1};
	union vrb_gid gid = parse("198.18.0.1");
	char text[INET6_ADDRSTRLEN];

	assert_memory_equal(gid.raw, raw, 16);
	assert_true(vrb_addr_is_v4(&gid));
	assert_string_equal(vrb_addr_format(&gid, text, sizeof(text)), "198.18.0.1");
	gid = parse("2001:db8::7");
	assert_false(vrb_addr_is_v4(&gid));
	assert_string_equal(vrb_addr_format(&gid, text, sizeof(text)), "2001:db8::7");
}

static void
macs_are_derived_by_the_table(void **state)
{
	static const uint8_t v4[] = {2, 0, 198, 18, 3, 4}, ll[] = {2, 0, 198, 18, 3, 4};
	union vrb_gid v6 = parse("2001:db8::7"), gid;
	uint8_t mac[6], again[6];

	assert_mac("198.18.3.4", v4);
	vrb_addr_link_local(ll, &gid);
	assert_int_equal(vrb_addr_to_mac(&gid, mac), 0);
	assert_memory_equal(mac, ll, 6);
	assert_true(vrb_addr_is_link_local(&gid));
	assert_int_equal(vrb_addr_to_mac(&v6, mac), 0);
	assert_int_equal(vrb_addr_to_mac(&v6, again), 0);
	assert_memory_equal(mac, again, 6);
	assert_int_equal(mac[0], 2);
	assert_int_equal(mac[1], 1);
	v6.raw[15]++;
	assert_int_equal(vrb_addr_to_mac(&v6, again), 0);
	assert_memory_not_equal(mac, again, 6);
}

static void
a_mac_tells_its_ipv4_address(void **state)
{
	static const uint8_t good[] = {2, 0, 198, 18, 0, 1}, v6[] = {2, 1, 198, 18, 0, 1},
			     bad[] = {2, 0, 0, 0, 0, 1};
	union vrb_gid gid, expected = parse("198.18.0.1");

	assert_int_equal(vrb_addr_from_mac(good, &gid), 0);
	assert_memory_equal(&gid, &expected, sizeof(gid));
	assert_int_equal(vrb_addr_from_mac(v6, &gid), -EINVAL);
	assert_int_equal(vrb_addr_from_mac(bad, &gid), -EINVAL);
}

static void
what_no_host_can_have_is_refused(void **state)
{
	static const char *const texts[] = {"0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255",
		"::", "::1", "ff02::1", "", "198.18.0", "198.18.0.1/16", "host",
		"::ffff:127.0.0.1"};
	union vrb_gid gid, odd = {.raw = {0xfe, 0x80, [15] = 1}};
	uint8_t mac[6];

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(vrb_addr_parse(texts[i], &gid), -EINVAL);
	/* Link-local, but no EUI-64: nothing tells the MAC. */
	assert_int_equal(vrb_addr_to_mac(&odd, mac), -EINVAL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ipv4_becomes_a_mapped_gid_and_back),
		cmocka_unit_test(macs_are_derived_by_the_table),
		cmocka_unit_test(a_mac_tells_its_ipv4_address),
		cmocka_unit_test(what_no_host_can_have_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
