/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names and rates are those of upstream's library, whose path is the argument.
 */
#include <dlfcn.h>
#include <stdio.h>

#include "verbs_util.h"

static void *upstream;

/* The function of that name in upstream's library, which is not the one that this program is linked
 * with. */
static void *
theirs(const char *name, void *ours)
{
	void *f = dlsym(upstream, name);

	assert_non_null(f);
	assert_ptr_not_equal(f, ours);
	return f;
}

#define SAME_STRINGS(test, function, type) \
	static void test(void **state) \
	{ \
		const char *(*other)(type) = theirs(#function, (void *)function); \
		int i; \
\
		for (i = -3; i < 64; i++) \
			assert_string_equal(function((type)i), other((type)i)); \
	}

SAME_STRINGS(node_types_have_upstreams_names, ibv_node_type_str, enum ibv_node_type)
SAME_STRINGS(port_states_have_upstreams_names, ibv_port_state_str, enum ibv_port_state)
SAME_STRINGS(events_have_upstreams_names, ibv_event_type_str, enum ibv_event_type)
SAME_STRINGS(statuses_have_upstreams_names, ibv_wc_status_str, enum ibv_wc_status)

static void
rates_convert_as_upstreams(void **state)
{
	int (*mult)(enum ibv_rate) = theirs("ibv_rate_to_mult", (void *)ibv_rate_to_mult);
	int (*mbps)(enum ibv_rate) = theirs("ibv_rate_to_mbps", (void *)ibv_rate_to_mbps);
	int i;

	for (i = -3; i < 64; i++) {
		assert_int_equal(ibv_rate_to_mult((enum ibv_rate)i), mult((enum ibv_rate)i));
		assert_int_equal(ibv_rate_to_mbps((enum ibv_rate)i), mbps((enum ibv_rate)i));
	}
}

static void
rates_convert_back_as_upstreams(void **state)
{
	enum ibv_rate (*mult)(int) = theirs("mult_to_ibv_rate", (void *)mult_to_ibv_rate);
	enum ibv_rate (*mbps)(int) = theirs("mbps_to_ibv_rate", (void *)mbps_to_ibv_rate);
	int i;

	for (i = -3; i < 1000; i++)
		assert_int_equal(mult_to_ibv_rate(i), mult(i));
	for (i = -3; i < 1500000; i++)
		if (mbps_to_ibv_rate(i) != mbps(i))
			fail_msg("%d Mbit/s", i);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(node_types_have_upstreams_names),
		cmocka_unit_test(port_states_have_upstreams_names),
		cmocka_unit_test(events_have_upstreams_names),
		cmocka_unit_test(statuses_have_upstreams_names),
		cmocka_unit_test(rates_convert_as_upstreams),
		cmocka_unit_test(rates_convert_back_as_upstreams),
	};

	upstream = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
	if (!upstream) {
		fprintf(stderr, "upstream's library cannot be loaded: %s\n",
			argc > 1 ? dlerror() : "no argument");
		return 77; /* skipped */
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
