/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Toeplitz hash by tables, and the choice between that and GFNI (see toeplitz.h).
 */
#include <string.h>

#include "toeplitz.h"

/** The 32 bits of the key from bit @p pos on. */
static uint32_t
key_bits(const uint8_t *key, uint32_t pos)
{
	uint64_t bits = 0;
	uint32_t i;

	for (i = 0; i < 5; i++)
		bits = bits << 8 | (pos / 8 + i < VRB_TOEPLITZ_KEY ? key[pos / 8 + i] : 0);
	return (uint32_t)(bits >> (8 - pos % 8));
}

void
vrb_toeplitz_init(struct vrb_toeplitz *t, const uint8_t *key, uint32_t len)
{
	uint8_t whole[VRB_TOEPLITZ_KEY] = {0};
	uint32_t i, j, value;

	memcpy(whole, key, len < sizeof(whole) ? len : sizeof(whole));
	for (i = 0; i < VRB_TOEPLITZ_KEY; i++) {
		uint64_t m = 0;

		/* Row j, in the order of bytes in memory, is the key from bit 8 * i + j on. */
		for (j = 0; j < 8; j++)
			m |= (uint64_t)(uint8_t)(key_bits(whole, 8 * i + j) >> 24) << (8 * j);
		t->matrix[i] = m;
	}
	memset(t->nibble, 0, sizeof(t->nibble));
	for (i = 0; i < 2 * VRB_TOEPLITZ_INPUT; i++) {
		for (value = 1; value < 16; value++) {
			for (j = 0; j < 4; j++) {
				/* Bit 3 of a half byte comes first. */
				if (value & (8u >> j))
					t->nibble[i][value] ^= key_bits(whole, 4 * i + j);
			}
		}
	}
}

uint32_t
vrb_toeplitz_table(const struct vrb_toeplitz *t, const uint8_t *input, uint32_t len)
{
	uint32_t hash = 0, i;

	for (i = 0; i < len; i++)
		hash ^= t->nibble[2 * i][input[i] >> 4] ^ t->nibble[2 * i + 1][input[i] & 0xf];
	return hash;
}

vrb_toeplitz_fn *vrb_toeplitz = vrb_toeplitz_table;

static void __attribute__((constructor)) choose(void)
{
	vrb_toeplitz_fn *gfni = vrb_toeplitz_gfni_get();

	if (gfni != NULL)
		vrb_toeplitz = gfni;
}
