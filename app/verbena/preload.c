/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What goes into LD_PRELOAD.
 *
 * Our libibverbs.so.1 comes first and so answers every public call. Programs as they come from a
 * distribution also need libmlx5 and libefa, which import internal symbols of upstream's library
 * and are linked with BIND_NOW: where that library is installed it follows ours, and those symbols
 * come from it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verbena.h"

#define SONAME "libibverbs.so.1"
#define SEPARATORS " :" /* of LD_PRELOAD, ld.so(8) */

/* Beside the command in the build tree; from <prefix>/bin when installed. VERBENA_LIBDIR is
 * relative, so that an installed tree can be moved as a whole.
 */
static const char *const shim_places[] = {
	"../../lib/verbs/" SONAME,
	"../" VERBENA_LIBDIR "/verbena/" SONAME,
};

static bool
same_file(const char *a, const char *b)
{
	struct stat x, y;

	return !stat(a, &x) && !stat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int
find_shim(char *shim, size_t len)
{
	char self[PATH_MAX], place[2 * PATH_MAX], real[PATH_MAX];
	size_t i;
	ssize_t n;

	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (n < 0) {
		vrb_complain(
			"/proc/self/exe cannot be read, so Verbena's library cannot be found: %s",
			strerror(errno));
		return -ENOENT;
	}
	self[n] = '\0';
	*strrchr(self, '/') = '\0';
	for (i = 0; i < sizeof(shim_places) / sizeof(shim_places[0]); i++) {
		snprintf(place, sizeof(place), "%s/%s", self, shim_places[i]);
		if (realpath(place, real) && strlcpy(shim, real, len) < len)
			return 0;
	}
	vrb_complain("Verbena's library " SONAME
		     " is neither in %s/../../lib/verbs nor in %s/../%s; "
		     "build or install Verbena again",
		self, self, VERBENA_LIBDIR "/verbena");
	return -ENOENT;
}

/* The library that the loader would take for a program without us, by the loader's own word. */
static void
ask_loader(char *path, size_t len)
{
	void *handle = dlopen(SONAME, RTLD_LAZY | RTLD_LOCAL);
	struct link_map *map;

	if (!handle)
		return;
	if (!dlinfo(handle, RTLD_DI_LINKMAP, &map))
		strlcpy(path, map->l_name, len);
	dlclose(handle);
}

/* The first one in the folders that the loader searches that is not ours. */
static void
search_folders(char *path, size_t len, const char *shim)
{
	Dl_serinfo size, *info;
	unsigned int i;
	void *self = dlopen(NULL, RTLD_LAZY);
	char place[PATH_MAX];

	if (!self || dlinfo(self, RTLD_DI_SERINFOSIZE, &size))
		return;
	info = malloc(size.dls_size);
	if (!info)
		return;
	if (!dlinfo(self, RTLD_DI_SERINFOSIZE, info) && !dlinfo(self, RTLD_DI_SERINFO, info)) {
		for (i = 0; i < info->dls_cnt && !path[0]; i++) {
			snprintf(place, sizeof(place), "%s/" SONAME, info->dls_serpath[i].dls_name);
			if (!access(place, R_OK) && !same_file(place, shim))
				strlcpy(path, place, len);
		}
	}
	free(info);
}

/* Empty when the system has none, which is fine: nothing that needs it can be installed either. */
static void
find_upstream(char *path, size_t len, const char *shim)
{
	path[0] = '\0';
	ask_loader(path, len);
	/* Below another `verbena run`, or with our folder in LD_LIBRARY_PATH, the loader finds
	 * ours. */
	if (path[0] && same_file(path, shim)) {
		path[0] = '\0';
		search_folders(path, len, shim);
	}
}

/* A sanitizer's runtime must be first of all, or it ends the program. */
static bool
must_be_first(const char *entry)
{
	const char *name = strrchr(entry, '/');

	name = name ? name + 1 : entry;
	return !strncmp(name, "libasan", 7) || !strncmp(name, "libtsan", 7) ||
	       !strncmp(name, "liblsan", 7) || !strncmp(name, "libubsan", 8) ||
	       !strncmp(name, "libclang_rt.", 12);
}

static void
append(char *list, const char *entry)
{
	if (!entry[0])
		return;
	if (list[0])
		strcat(list, ":");
	strcat(list, entry);
}

static void
append_matching(char *list, const char *old, bool first, const struct vrb_preload *p)
{
	char *copy = strdup(old);
	char *save = NULL, *entry;

	for (entry = strtok_r(copy, SEPARATORS, &save); entry;
		entry = strtok_r(NULL, SEPARATORS, &save))
		if (must_be_first(entry) == first && !same_file(entry, p->shim) &&
			!same_file(entry, p->upstream))
			append(list, entry);
	free(copy);
}

static int
compose(struct vrb_preload *p)
{
	const char *old = getenv("LD_PRELOAD");

	old = old ? old : "";
	p->value = calloc(1, strlen(p->shim) + strlen(p->upstream) + strlen(old) + 4);
	if (!p->value) {
		vrb_complain("out of memory");
		return -ENOMEM;
	}
	append_matching(p->value, old, true, p);
	append(p->value, p->shim);
	append(p->value, p->upstream);
	append_matching(p->value, old, false, p);
	return 0;
}

int
vrb_preload_init(struct vrb_preload *p)
{
	int err;

	memset(p, 0, sizeof(*p));
	err = find_shim(p->shim, sizeof(p->shim));
	if (err)
		return err;
	if (strpbrk(p->shim, SEPARATORS)) {
		vrb_complain(
			"the folder of %s has a space or a colon in its name, which LD_PRELOAD "
			"cannot express; move it",
			p->shim);
		return -EINVAL;
	}
	find_upstream(p->upstream, sizeof(p->upstream), p->shim);
	return compose(p);
}

void
vrb_preload_fini(struct vrb_preload *p)
{
	free(p->value);
	p->value = NULL;
}
