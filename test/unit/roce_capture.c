/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reading captures: libpcap's format with microseconds, written by a machine of our byte order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "roce_capture.h"

static uint32_t
word(FILE *in)
{
	uint32_t v = 0;

	assert_int_equal(fread(&v, 4, 1, in), 1);
	return v;
}

static void
read_packet(FILE *in, struct capture *c)
{
	uint32_t len;

	assert_true(c->n < CAPTURE_MAX);
	(void)word(in); /* microseconds */
	len = word(in);
	assert_int_equal(len, word(in)); /* whole */
	c->p[c->n].data = malloc(len);
	c->p[c->n].len = len;
	assert_int_equal(fread(c->p[c->n].data, len, 1, in), 1);
	assert_int_equal(frame_parse(&c->p[c->n].f, c->p[c->n].data, len), 0);
	/* The last byte of either address tells. */
	c->p[c->n].side = c->p[c->n].f.saddr[c->p[c->n].f.v6 ? 15 : 3] == 1 ? 'A' : 'B';
	c->n++;
}

struct capture *
capture_read(const char *name)
{
	struct capture *c = calloc(1, sizeof(*c));
	char path[512];
	uint32_t seconds;
	FILE *in;

	snprintf(path, sizeof(path), "%s/%s.pcap", CAPTURES, name);
	in = fopen(path, "rb");
	if (in == NULL || c == NULL)
		fail_msg("%s cannot be read", path);
	assert_int_equal(word(in), 0xa1b2c3d4);
	assert_int_equal(fseek(in, 24, SEEK_SET), 0);
	while (fread(&seconds, 4, 1, in) == 1)
		read_packet(in, c);
	fclose(in);
	return c;
}

void
capture_free(struct capture *c)
{
	for (unsigned int i = 0; i < c->n; i++)
		free(c->p[i].data);
	free(c);
}

const struct frame *
capture_first(const struct capture *c, char side)
{
	for (unsigned int i = 0; i < c->n; i++)
		if (c->p[i].side == side)
			return &c->p[i].f;
	return NULL;
}
