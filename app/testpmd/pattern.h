/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Data that can be checked where it arrives.
 *
 * A message carries its number in its first eight bytes, and behind it words that follow from the
 * number. Memory that is read carries at each address a word that follows from the address.
 */
#ifndef TESTPMD_PATTERN_H
#define TESTPMD_PATTERN_H

#include <stdint.h>
#include <sys/types.h>

void tp_message_fill(uint8_t *buf, uint32_t len, uint64_t number);
/** What a received message is. */
enum tp_message {
	TP_MESSAGE_GOOD,
	TP_MESSAGE_UNKNOWN, /* shorter than a number, or not of ours */
	TP_MESSAGE_BAD,
};
/** @param number out: its number, unless it is unknown */
enum tp_message tp_message_check(const uint8_t *buf, uint32_t len, uint64_t *number);
/** @return offset of the first byte that is not as message @p number has it, or -1 */
ssize_t tp_message_compare(const uint8_t *buf, uint32_t len, uint64_t number);

void tp_memory_fill(uint8_t *buf, size_t len, uint64_t addr);
/** @return offset of the first byte that is not as memory at @p addr has it, or -1 */
ssize_t tp_memory_compare(const uint8_t *buf, size_t len, uint64_t addr);

#endif
