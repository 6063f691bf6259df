/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data that can be checked. See pattern.h.
 */
#include <string.h>

#include "pattern.h"

#define MAGIC UINT64_C(0x5652000000000000)
#define MAGIC_MASK UINT64_C(0xffff000000000000)
#define SPREAD UINT64_C(0x9e3779b97f4a7c15)

/* @return how many bytes are the same */
static size_t
same(const uint8_t *buf, const uint64_t *word, size_t n)
{
	const uint8_t *want = (const uint8_t *)word;
	size_t i = 0;

	while (i < n && buf[i] == want[i])
		i++;
	return i;
}

static uint64_t
word_of(uint64_t head, uint64_t i)
{
	return i == 0 ? head : head * SPREAD + i;
}

void
tp_message_fill(uint8_t *buf, uint32_t len, uint64_t number)
{
	uint64_t head = MAGIC | (number & ~MAGIC_MASK), word;
	uint32_t i;

	for (i = 0; i + 8 <= len; i += 8) {
		word = word_of(head, i / 8);
		memcpy(buf + i, &word, 8);
	}
	word = word_of(head, i / 8);
	memcpy(buf + i, &word, len - i);
}

ssize_t
tp_message_compare(const uint8_t *buf, uint32_t len, uint64_t number)
{
	uint64_t head = MAGIC | (number & ~MAGIC_MASK), word;
	uint32_t i, n;

	for (i = 0; i < len; i += n) {
		n = len - i < 8 ? len - i : 8;
		word = word_of(head, i / 8);
		if (memcmp(buf + i, &word, n) != 0)
			return i + same(buf + i, &word, n);
	}
	return -1;
}

enum tp_message
tp_message_check(const uint8_t *buf, uint32_t len, uint64_t *number)
{
	uint64_t head;

	if (len < sizeof(head))
		return TP_MESSAGE_UNKNOWN;
	memcpy(&head, buf, sizeof(head));
	if ((head & MAGIC_MASK) != MAGIC)
		return TP_MESSAGE_UNKNOWN;
	*number = head & ~MAGIC_MASK;
	return tp_message_compare(buf, len, *number) < 0 ? TP_MESSAGE_GOOD : TP_MESSAGE_BAD;
}

static uint64_t
word_at(uint64_t addr)
{
	return (addr | 1) * SPREAD;
}

void
tp_memory_fill(uint8_t *buf, size_t len, uint64_t addr)
{
	uint64_t word;
	size_t i = 0;

	while (i < len) {
		uint64_t off = (addr + i) & 7;
		size_t n = 8 - off < len - i ? 8 - off : len - i;

		word = word_at((addr + i) & ~UINT64_C(7)) >> (8 * off);
		memcpy(buf + i, &word, n);
		i += n;
	}
}

ssize_t
tp_memory_compare(const uint8_t *buf, size_t len, uint64_t addr)
{
	uint64_t word;
	size_t i = 0;

	while (i < len) {
		uint64_t off = (addr + i) & 7;
		size_t n = 8 - off < len - i ? 8 - off : len - i;

		word = word_at((addr + i) & ~UINT64_C(7)) >> (8 * off);
		if (memcmp(buf + i, &word, n) != 0)
			return i + same(buf + i, &word, n);
		i += n;
	}
	return -1;
}
