/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Toeplitz hash with a key made ready: many times as fast as rte_softrss(), with the same
 * result. By the CPU's GFNI instructions where it has them, else by tables.
 */
#ifndef VRB_TOEPLITZ_H
#define VRB_TOEPLITZ_H

#include <stdint.h>

/* Longest key and longest input in bytes: an input byte is hashed with 32 + 8 bits of the key. */
#define VRB_TOEPLITZ_KEY 52
#define VRB_TOEPLITZ_INPUT (VRB_TOEPLITZ_KEY - 4)

struct vrb_toeplitz {
	/* For byte i of the input, bits of the key as an 8 x 8 matrix: of the key's byte i. */
	uint64_t matrix[VRB_TOEPLITZ_KEY];
	/* For half byte i of the input and each of its values, what it adds to the hash. */
	uint32_t nibble[2 * VRB_TOEPLITZ_INPUT][16];
};

/** Makes a key ready. @param len of the key, at most VRB_TOEPLITZ_KEY; what is missing is zero */
void vrb_toeplitz_init(struct vrb_toeplitz *t, const uint8_t *key, uint32_t len);

/** The hash of @p len bytes (at most VRB_TOEPLITZ_INPUT) in network byte order. */
typedef uint32_t vrb_toeplitz_fn(const struct vrb_toeplitz *t, const uint8_t *input, uint32_t len);

extern vrb_toeplitz_fn *vrb_toeplitz;

/* The two ways, for tests. */
vrb_toeplitz_fn vrb_toeplitz_table;
/** NULL: this CPU, or this build, has no GFNI. */
vrb_toeplitz_fn *vrb_toeplitz_gfni_get(void);

#endif
