/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Contents of messages (see rand.h): the k-th eight bytes of a message are a hash of its tag and of
 * k.
 */
#include <string.h>

#include "rand.h"

static inline uint64_t
word_of(uint64_t tag, uint64_t k)
{
	return mix64(tag + k * 0x9e3779b97f4a7c15ull);
}

void
pattern_fill(void *p, size_t n, uint64_t tag, uint64_t off)
{
	uint8_t *d = p;

	while (n > 0) {
		uint64_t w = word_of(tag, off / 8);
		size_t skip = off % 8;
		size_t len = 8 - skip < n ? 8 - skip : n;

		memcpy(d, (const uint8_t *)&w + skip, len);
		d += len;
		off += len;
		n -= len;
	}
}

long
pattern_check(const void *p, size_t n, uint64_t tag, uint64_t off)
{
	const uint8_t *d = p;
	size_t at = 0;

	while (at < n) {
		uint64_t w = word_of(tag, (off + at) / 8);
		size_t skip = (off + at) % 8;
		size_t len = 8 - skip < n - at ? 8 - skip : n - at;

		if (memcmp(d + at, (const uint8_t *)&w + skip, len) != 0) {
			while (d[at] == ((const uint8_t *)&w)[(off + at) % 8])
				at++;
			return (long)at;
		}
		at += len;
	}
	return -1;
}
