/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `verbena info`: what a program would see, in the terms of ibv_devinfo, and how it would be
 * configured. It asks the same library that a program gets, by the same calls, so that what it
 * prints cannot drift from that.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <infiniband/verbs.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbena.h"

#define GIDS_MAX 32

/* The calls of the library that no inline function of <infiniband/verbs.h> makes for us. */
struct verbs_calls {
	void *handle;
	struct ibv_device **(*get_device_list)(int *n);
	void (*free_device_list)(struct ibv_device **list);
	struct ibv_context *(*open_device)(struct ibv_device *device);
	int (*close_device)(struct ibv_context *context);
	int (*query_device)(struct ibv_context *context, struct ibv_device_attr *attr);
	const char *(*port_state_str)(enum ibv_port_state state);
	ssize_t (*query_gid_table)(struct ibv_context *context, struct ibv_gid_entry *entries,
		size_t max, uint32_t flags, size_t entry_size);
};

void
vrb_info_help(void)
{
	printf("Usage: verbena info [OPTIONS]\n"
	       "       verbena info --pid N\n\n"
	       "Shows the device that a program would see under 'verbena run' with the same "
	       "options,\n"
	       "where each setting comes from, and who has the device open. With --pid: what a\n"
	       "running process does with it.\n\n"
	       "Options:\n");
	vrb_settings_help();
	printf("  %-21s %s\n", "--pid N", "figures and queues of this process of yours");
	printf("  %-21s %s\n", "-h, --help", "print this help");
	printf("\nThe exit status is 0, 1 when the device cannot be opened, 2 for a bad option.\n");
}

static void row(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void
row(const char *name, const char *format, ...)
{
	va_list ap;

	printf("  %-18s ", name);
	va_start(ap, format);
	vprintf(format, ap);
	va_end(ap);
	putchar('\n');
}

static int
load_calls(struct verbs_calls *v, const char *path)
{
	const struct {
		const char *name;
		void *slot;
	} wanted[] = {
		{"ibv_get_device_list", &v->get_device_list},
		{"ibv_free_device_list", &v->free_device_list},
		{"ibv_open_device", &v->open_device},
		{"ibv_close_device", &v->close_device},
		{"ibv_query_device", &v->query_device},
		{"ibv_port_state_str", &v->port_state_str},
		{"_ibv_query_gid_table", &v->query_gid_table},
	};
	size_t i;

	v->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!v->handle) {
		vrb_complain("info: the library cannot be loaded: %s", dlerror());
		return -ENOENT;
	}
	for (i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		void *symbol = dlsym(v->handle, wanted[i].name);

		if (!symbol) {
			vrb_complain(
				"info: %s has no %s; build Verbena again", path, wanted[i].name);
			return -ENOENT;
		}
		memcpy(wanted[i].slot, &symbol, sizeof(symbol));
	}
	return 0;
}

static void
print_guid(const char *name, __be64 guid)
{
	uint64_t g = be64toh(guid);

	row(name, "%04x:%04x:%04x:%04x", (unsigned int)(g >> 48) & 0xffff,
		(unsigned int)(g >> 32) & 0xffff, (unsigned int)(g >> 16) & 0xffff,
		(unsigned int)g & 0xffff);
}

static void
print_limits(const struct ibv_device_attr *a)
{
	row("limits", "%d QPs of %d work requests, %d SGEs each", a->max_qp, a->max_qp_wr,
		a->max_sge);
	row("", "%d CQs of %d entries", a->max_cq, a->max_cqe);
	row("", "%d SRQs of %d work requests, %d SGEs each", a->max_srq, a->max_srq_wr,
		a->max_srq_sge);
	row("", "%d MRs of up to %" PRIu64 " bytes, %d PDs", a->max_mr, a->max_mr_size, a->max_pd);
	row("", "%d READs and atomics at a time for a QP", a->max_qp_rd_atom);
}

static void
print_port(struct ibv_context *context, const struct verbs_calls *v, int port)
{
	struct verbs_context *vctx = verbs_get_ctx_op(context, query_port);
	struct ibv_port_attr a = {0};
	char name[16];

	snprintf(name, sizeof(name), "port %d", port);
	if (!vctx || vctx->query_port(context, port, &a, sizeof(a))) {
		row(name, "cannot be queried");
		return;
	}
	row(name, "%s, %s, MTU %d of at most %d, messages of up to %u bytes",
		v->port_state_str(a.state),
		a.link_layer == IBV_LINK_LAYER_ETHERNET ? "Ethernet" : "InfiniBand",
		128 << a.active_mtu, 128 << a.max_mtu, a.max_msg_sz);
}

static void
print_gids(struct ibv_context *context, const struct verbs_calls *v)
{
	struct ibv_gid_entry entries[GIDS_MAX];
	char text[INET6_ADDRSTRLEN];
	char name[24];
	ssize_t i, n;

	n = v->query_gid_table(context, entries, GIDS_MAX, 0, sizeof(entries[0]));
	if (n < 0)
		row("GIDs", "cannot be queried: %s", strerror(-n));
	for (i = 0; i < n; i++) {
		inet_ntop(AF_INET6, &entries[i].gid, text, sizeof(text));
		snprintf(name, sizeof(name), "GID %u", entries[i].gid_index);
		row(name, "%s (%s)", text,
			entries[i].gid_type == IBV_GID_TYPE_ROCE_V2 ? "RoCEv2" : "not RoCEv2");
	}
}

static int
print_device(struct ibv_device *device, const struct verbs_calls *v)
{
	struct ibv_device_attr attr;
	struct ibv_context *context;
	int err, i;

	context = v->open_device(device);
	if (!context) {
		vrb_complain("info: %s cannot be opened: %s", device->name, strerror(errno));
		return VRB_EXIT_FAILED;
	}
	row("device", "%s", device->name);
	err = v->query_device(context, &attr);
	if (err) {
		vrb_complain("info: %s cannot be queried: %s", device->name, strerror(err));
	} else {
		print_guid("node GUID", attr.node_guid);
		print_guid("system image GUID", attr.sys_image_guid);
		for (i = 1; i <= attr.phys_port_cnt; i++)
			print_port(context, v, i);
		print_gids(context, v);
		print_limits(&attr);
	}
	v->close_device(context);
	return err ? VRB_EXIT_FAILED : VRB_EXIT_OK;
}

static int
print_devices(const char *shim)
{
	struct ibv_device **list = NULL;
	int i, n = 0, status = VRB_EXIT_OK;
	struct verbs_calls v;

	if (load_calls(&v, shim))
		return VRB_EXIT_FAILED;
	printf("What a program sees\n");
	list = v.get_device_list(&n);
	if (!list || !n) {
		vrb_complain("info: there is no device%s%s", list ? "" : ": ",
			list ? "; set --log info to see why" : strerror(errno));
		status = VRB_EXIT_FAILED;
	}
	for (i = 0; i < n; i++) {
		int one = print_device(list[i], &v);

		status = one ? one : status;
	}
	if (list)
		v.free_device_list(list);
	return status;
}

/* Where the network of shared memory is, as doc/guides/shmlan.rst has it; other ports have none. */
static void
print_folder(const struct vrb_settings *s)
{
	const char *port = s->set[VRB_SET_PORT].value;
	const char *segment = s->set[VRB_SET_SEGMENT].value;
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;

	/* A port that names them itself is taken at its word. */
	if (port && (strncmp(port, "net_shmlan", 10) || strstr(port, "segment=") ||
			    strstr(port, "dir=")))
		return;
	if (!segment)
		segment = vrb_setting_descs[VRB_SET_SEGMENT].fallback;
	/* One of somebody else, as after su, does not count. */
	if (runtime && runtime[0] && !stat(runtime, &st) && S_ISDIR(st.st_mode) &&
		st.st_uid == getuid())
		row("folder", "%s/verbena/%s", runtime, segment);
	else
		row("folder", "/tmp/verbena-%u/%s", (unsigned int)getuid(), segment);
}

static void
print_settings(const struct vrb_settings *s, const struct vrb_preload *preload)
{
	int i;

	printf("\nHow it is configured\n");
	for (i = 0; i < VRB_SET_COUNT; i++) {
		const struct vrb_setting *v = &s->set[i];
		const struct vrb_setting_desc *d = &vrb_setting_descs[i];

		row(d->option, "%s (%s%s%s)", v->value ? v->value : d->fallback,
			vrb_origin_name(v->origin), v->origin == VRB_FROM_ENVIRONMENT ? " " : "",
			v->origin == VRB_FROM_ENVIRONMENT ? d->variable : "");
	}
	print_folder(s);
	row("library", "%s", preload->shim);
	row("system's library", "%s", preload->upstream[0] ? preload->upstream : "none installed");
}

int
vrb_info(int argc, char **argv)
{
	struct vrb_settings settings;
	struct vrb_preload preload;
	int first, status;

	if (argc == 3 && !strcmp(argv[1], "--pid"))
		return vrb_process_info(argv[2]);
	if (argc == 2 && !strncmp(argv[1], "--pid=", 6))
		return vrb_process_info(argv[1] + 6);
	first = vrb_settings_read(&settings, "info", vrb_info_help, argc, argv);
	if (first < 0)
		return -first;
	if (settings.print_env || first < argc) {
		vrb_complain(
			"info: '%s' is not wanted here; 'verbena info --help' lists the options",
			settings.print_env ? "--env" : argv[first]);
		return VRB_EXIT_USAGE;
	}
	if (vrb_preload_init(&preload))
		return VRB_EXIT_SELF;
	if (vrb_settings_export(&settings)) {
		vrb_complain("info: out of memory");
		status = VRB_EXIT_FAILED;
	} else {
		status = print_devices(preload.shim);
		fflush(stdout);
		print_settings(&settings, &preload);
		vrb_process_list(settings.set[VRB_SET_SEGMENT].value
					 ? settings.set[VRB_SET_SEGMENT].value
					 : vrb_setting_descs[VRB_SET_SEGMENT].fallback);
	}
	vrb_preload_fini(&preload);
	return status;
}
