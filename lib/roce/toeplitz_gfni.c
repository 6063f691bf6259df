/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Toeplitz hash by GFNI. The only file that is compiled for more than the rest of the tree asks
 * of a CPU; what it gives is asked for at run time.
 */
#include <stddef.h>

#include "toeplitz.h"

#if defined(__GFNI__) && defined(__AVX512F__) && defined(__AVX512VBMI__)
#include <rte_thash.h>

static uint32_t
hash_gfni(const struct vrb_toeplitz *t, const uint8_t *input, uint32_t len)
{
	/* Of the common lengths the compiler unrolls the loop. */
	switch (len) {
	case 8:
		return rte_thash_gfni(t->matrix, input, 8);
	case 12:
		return rte_thash_gfni(t->matrix, input, 12);
	case 32:
		return rte_thash_gfni(t->matrix, input, 32);
	case 36:
		return rte_thash_gfni(t->matrix, input, 36);
	default:
		return rte_thash_gfni(t->matrix, input, (int)len);
	}
}

vrb_toeplitz_fn *
vrb_toeplitz_gfni_get(void)
{
	__builtin_cpu_init();
	return __builtin_cpu_supports("gfni") && __builtin_cpu_supports("avx512f") &&
			       __builtin_cpu_supports("avx512bw") &&
			       __builtin_cpu_supports("avx512vl") &&
			       __builtin_cpu_supports("avx512dq") &&
			       __builtin_cpu_supports("avx512vbmi")
		       ? hash_gfni
		       : NULL;
}
#else
vrb_toeplitz_fn *
vrb_toeplitz_gfni_get(void)
{
	return NULL;
}
#endif
