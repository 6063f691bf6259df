/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs a fuzz target without libFuzzer: over files, or over random inputs of a seed. So the targets
 * are part of the normal tests, with any compiler, and an input that libFuzzer has found can be
 * looked at in a debugger.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"

#define SIZE_MAX_INPUT 4096

static int
run_file(const char *path)
{
	static uint8_t buf[1 << 20];
	FILE *in = fopen(path, "rb");
	size_t n;

	if (in == NULL) {
		fprintf(stderr, "%s cannot be read\n", path);
		return 1;
	}
	n = fread(buf, 1, sizeof(buf), in);
	fclose(in);
	return LLVMFuzzerTestOneInput(buf, n);
}

static void
run_random(uint64_t seed)
{
	struct rng r = {.s = mix64(seed)};
	uint8_t buf[SIZE_MAX_INPUT];
	size_t n = rng_below(&r, sizeof(buf)) + 1;

	for (size_t i = 0; i < n; i++)
		buf[i] = (uint8_t)rng_u64(&r);
	LLVMFuzzerTestOneInput(buf, n);
}

int
main(int argc, char **argv)
{
	unsigned long long first, n;

	if (argc == 4 && strcmp(argv[1], "--random") == 0) {
		first = strtoull(argv[2], NULL, 0);
		n = strtoull(argv[3], NULL, 0);
		for (unsigned long long i = 0; i < n; i++) {
			/* Said before, so that a crash has a name. */
			if (i % 1000 == 0)
				printf("seeds %llu..\n", first + i);
			run_random(first + i);
		}
		return 0;
	}
	if (argc < 2 || argv[1][0] == '-') {
		fprintf(stderr, "usage: %s FILE... | --random SEED COUNT\n", argv[0]);
		return 2;
	}
	for (int i = 1; i < argc; i++)
		if (run_file(argv[i]) != 0)
			return 1;
	return 0;
}
