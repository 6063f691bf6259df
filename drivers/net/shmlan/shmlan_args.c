/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan: device arguments.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <rte_kvargs.h>

#include "shmlan_private.h"

static int
bad(const char *key, const char *value, const char *rule)
{
	SHM_LOG(ERR, "argument %s=%s: %s", key, value == NULL ? "" : value, rule);
	return -EINVAL;
}

static int
arg_segment(const char *key, const char *value, void *opaque)
{
	static const char ok[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	struct shm_args *args = opaque;
	size_t len = value == NULL ? 0 : strlen(value);

	if (len == 0 || len > SHM_NAME_MAX || strspn(value, ok) != len || strcmp(value, ".") == 0 ||
		strcmp(value, "..") == 0)
		return bad(key, value,
			"a segment's name has 1 to 64 of the characters A-Z a-z 0-9 . _ -");
	memcpy(args->segment, value, len + 1);
	return 0;
}

static int
arg_dir(const char *key, const char *value, void *opaque)
{
	struct shm_args *args = opaque;
	size_t len = value == NULL ? 0 : strlen(value);

	if (len == 0 || value[0] != '/' || len >= sizeof(args->dir) - SHM_NAME_MAX - 1)
		return bad(key, value, "an absolute path of a directory is wanted");
	memcpy(args->dir, value, len + 1);
	return 0;
}

static int
arg_mac(const char *key, const char *value, void *opaque)
{
	struct shm_args *args = opaque;

	if (value == NULL || rte_ether_unformat_addr(value, &args->mac) != 0 ||
		!rte_is_valid_assigned_ether_addr(&args->mac))
		return bad(key, value, "a unicast MAC address is wanted, like 02:00:00:00:00:01");
	args->has_mac = true;
	return 0;
}

static int
number(const char *value, uint32_t *n)
{
	unsigned long v;
	char *end;

	if (value == NULL || value[0] < '0' || value[0] > '9')
		return -EINVAL;
	errno = 0;
	v = strtoul(value, &end, 10);
	if (errno != 0 || *end != '\0' || v > UINT32_MAX)
		return -EINVAL;
	*n = v;
	return 0;
}

static int
arg_slots(const char *key, const char *value, void *opaque)
{
	struct shm_args *args = opaque;

	if (number(value, &args->slots) != 0 ||
		!vrb_ring_geometry_ok(args->slots, VRB_RING_DATA_MIN))
		return bad(key, value, "slots of a ring are a power of two from 32 to 8192");
	return 0;
}

static int
arg_data(const char *key, const char *value, void *opaque)
{
	struct shm_args *args = opaque;
	uint32_t kib;

	if (number(value, &kib) != 0 || kib > VRB_RING_DATA_MAX >> 10 ||
		!vrb_ring_geometry_ok(VRB_RING_SLOTS_MIN, kib << 10))
		return bad(key, value,
			"KiB of a ring's data area are a power of two from 64 to 16384");
	args->data = kib << 10;
	return 0;
}

static int
arg_zc(const char *key, const char *value, void *opaque)
{
	struct shm_args *args = opaque;
	uint32_t v;

	if (number(value, &v) != 0 || v > 1)
		return bad(key, value, "0 or 1 is wanted");
	args->rx_zc = v == 1;
	return 0;
}

static const struct {
	const char *key;
	arg_handler_t handler;
} arg_table[] = {
	{"segment", arg_segment},
	{"dir", arg_dir},
	{"mac", arg_mac},
	{"slots", arg_slots},
	{"data", arg_data},
	{"rx_zc", arg_zc},
};

static int
parse_all(struct rte_kvargs *kv, struct shm_args *args)
{
	unsigned int i;
	int rc;

	for (i = 0; i < RTE_DIM(arg_table); i++) {
		const char *key = arg_table[i].key;

		if (rte_kvargs_count(kv, key) > 1)
			return bad(key, "...", "given more than once");
		rc = rte_kvargs_process(kv, key, arg_table[i].handler, args);
		if (rc != 0)
			return -EINVAL;
	}
	return 0;
}

/* Parses @params of the device @dev. Returns 0, or -EINVAL after a log line that says what is
 * wrong. */
int
vrb_shmlan_args_parse(const char *dev, const char *params, struct shm_args *args)
{
	const char *keys[RTE_DIM(arg_table) + 1] = {NULL};
	struct rte_kvargs *kv;
	unsigned int i;
	int rc;

	memset(args, 0, sizeof(*args));
	strcpy(args->segment, "default");
	args->slots = SHM_SLOTS_DEFAULT;
	args->data = SHM_DATA_DEFAULT;
	if (params == NULL || params[0] == '\0')
		return 0;

	for (i = 0; i < RTE_DIM(arg_table); i++)
		keys[i] = arg_table[i].key;
	kv = rte_kvargs_parse(params, keys);
	if (kv == NULL) {
		SHM_LOG(ERR,
			"%s: cannot read the arguments \"%s\"; known are segment, dir, mac, slots, "
			"data and rx_zc",
			dev, params);
		return -EINVAL;
	}
	rc = parse_all(kv, args);
	rte_kvargs_free(kv);
	return rc;
}
