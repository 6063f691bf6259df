/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that is not linked with libibverbs and loads it as NCCL does: by its SONAME, each call
 * with its version node, into a scope of its own. Prints the names of the devices.
 */
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *
call(void *library, const char *name, const char *node)
{
	void *symbol = dlvsym(library, name, node);

	if (!symbol) {
		fprintf(stderr, "no %s at %s: %s\n", name, node, dlerror());
		exit(1);
	}
	return symbol;
}

int
main(void)
{
	struct ibv_device **(*get_list)(int *);
	struct ibv_context *(*open_device)(struct ibv_device *);
	int (*close_device)(struct ibv_context *);
	struct ibv_context *context;
	struct ibv_device **list;
	void *library;
	int i, n = 0;

	library = dlopen("libibverbs.so.1", RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	*(void **)&get_list = call(library, "ibv_get_device_list", "IBVERBS_1.1");
	*(void **)&open_device = call(library, "ibv_open_device", "IBVERBS_1.1");
	*(void **)&close_device = call(library, "ibv_close_device", "IBVERBS_1.1");
	list = get_list(&n);
	for (i = 0; list && i < n; i++) {
		context = open_device(list[i]);
		if (!context || close_device(context)) {
			fprintf(stderr, "%s could not be opened and closed\n", list[i]->name);
			return 1;
		}
		printf("%s\n", list[i]->name);
	}
	return n > 0 ? 0 : 1;
}
