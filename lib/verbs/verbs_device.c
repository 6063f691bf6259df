/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The list of devices, which holds ours alone, and the NIC behind it.
 *
 * The NIC is opened when something needs it that only it knows: its address, or a context. So a
 * program that asks for the list and goes on without RDMA pays nothing. It stays open until the
 * process ends: addresses that a program has seen remain valid, and DPDK can be started only once a
 * process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_private.h"
#include "verbs_settings.h"

bool vrb_forked;

static pthread_mutex_t verbs_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct vrb_nic *verbs_nic;
static struct vrb_nic_info verbs_info;

static struct vrb_device verbs_device = {
	.ibv =
		{
			.node_type = IBV_NODE_CA,
			.transport_type = IBV_TRANSPORT_IB,
			.name = "vrb0",
			.dev_name = "uverbs0",
			.dev_path = "/sys/class/infiniband_verbs/uverbs0",
			.ibdev_path = "/sys/class/infiniband/vrb0",
		},
	/* Not NULL, and not what any driver of upstream takes for its own. */
	.ops = &verbs_device,
};

void
vrb_verbs_lock(void)
{
	pthread_mutex_lock(&verbs_mutex);
}

void
vrb_verbs_unlock(void)
{
	pthread_mutex_unlock(&verbs_mutex);
}

static void
child_after_fork(void)
{
	vrb_forked = verbs_nic != NULL;
	vrb_figures_forked();
	pthread_mutex_unlock(&verbs_mutex);
}

static int
open_nic(void)
{
	const struct vrb_settings *s;
	struct vrb_nic_conf conf = {0};
	char why[256] = "";
	int rc;

	rc = vrb_settings_get(&s);
	if (rc)
		return rc;
	conf.port = s->port;
	conf.segment = s->segment;
	conf.ip = s->ip;
	conf.icrc = s->icrc;
	conf.eal_args = s->eal_args;
	conf.direct = s->direct;
	conf.eal_log = s->eal_log;
	conf.ops = vrb_explaining ? &vrb_verbs_engine_ops_explain : &vrb_verbs_engine_ops;
	rc = vrb_nic_open(&conf, &verbs_nic, why, sizeof(why));
	if (rc) {
		verbs_nic = NULL;
		vrb_log(VRB_LOG_ERROR, "%s", *why ? why : strerror(-rc));
		return rc;
	}
	vrb_nic_query(verbs_nic, &verbs_info);
	vrb_figures_open(verbs_nic, s->segment);
	vrb_log(VRB_LOG_INFO, "vrb0 is open on %s (%s), path MTU up to %u", verbs_info.port_name,
		verbs_info.driver, verbs_info.max_mtu);
	return 0;
}

int
vrb_device_nic(struct vrb_nic **nic)
{
	static bool watched;
	int rc = 0;

	if (vrb_forked) {
		vrb_log(VRB_LOG_ERROR,
			"the RDMA device was opened before this process was forked, and belongs to "
			"its "
			"parent; open it after fork(2), or start a new program with execve(2)");
		return -ENODEV;
	}
	vrb_verbs_lock();
	if (!watched) {
		pthread_atfork(vrb_verbs_lock, vrb_verbs_unlock, child_after_fork);
		watched = true;
	}
	if (!verbs_nic)
		rc = open_nic();
	*nic = verbs_nic;
	vrb_verbs_unlock();
	return rc;
}

const struct vrb_nic_info *
vrb_device_info(void)
{
	return &verbs_info;
}

/* EUI-64 of the MAC address, in network byte order. */
uint64_t
vrb_device_guid(void)
{
	const uint8_t *m = verbs_info.mac;
	const uint8_t eui[8] = {m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]};
	uint64_t guid;

	memcpy(&guid, eui, sizeof(guid));
	return guid;
}

/*
 * Acknowledgements of what the program has received may still be due: hardware would have sent them
 * long ago, and the peer would report a lost connection. Then the network is left, with nothing of
 * ours on it.
 */
static void __attribute__((destructor)) leave_at_exit(void)
{
	if (!verbs_nic || vrb_forked)
		return;
	vrb_figures_close();
	vrb_nic_progress(verbs_nic);
	vrb_nic_progress(verbs_nic);
	vrb_nic_leave(verbs_nic);
}

struct ibv_device **
ibv_get_device_list(int *num_devices)
{
	const struct vrb_settings *s;
	struct ibv_device **list;
	int rc;

	if (num_devices)
		*num_devices = 0;
	rc = vrb_settings_get(&s);
	if (rc) {
		errno = -rc;
		return NULL;
	}
	list = calloc(2, sizeof(*list));
	if (!list)
		return vrb_fail_null(ENOMEM, "there is no memory");
	list[0] = &verbs_device.ibv;
	if (num_devices)
		*num_devices = 1;
	return list;
}

void
ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *
ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

int
ibv_get_device_index(struct ibv_device *device)
{
	return 0;
}

__be64
ibv_get_device_guid(struct ibv_device *device)
{
	struct vrb_nic *nic;
	int rc = vrb_device_nic(&nic);

	if (rc) {
		errno = -rc;
		return 0;
	}
	return vrb_device_guid();
}
