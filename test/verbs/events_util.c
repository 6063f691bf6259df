/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels in tests (see events_util.h).
 */
#include <poll.h>
#include <stdlib.h>

#include "events_util.h"

int
open_events(void **state)
{
	struct events *e = calloc(1, sizeof(*e));
	void *rig;

	rig_open(&rig);
	e->r = rig;
	e->ch = ibv_create_comp_channel(e->r->ctx);
	assert_non_null(e->ch);
	assert_int_equal(ibv_destroy_cq(e->r->cq), 0);
	e->r->cq = ibv_create_cq(e->r->ctx, 1024, e, e->ch, 0);
	e->r->a = make_qp(e->r, NULL, NULL);
	e->r->b = make_qp(e->r, NULL, NULL);
	connect_qp(e->r, e->r->a, e->r->b);
	connect_qp(e->r, e->r->b, e->r->a);
	*state = e;
	return 0;
}

int
close_events(void **state)
{
	struct events *e = *state;
	struct rig *r = e->r;

	assert_int_equal(ibv_destroy_qp(r->a), 0);
	assert_int_equal(ibv_destroy_qp(r->b), 0);
	assert_int_equal(ibv_destroy_cq(r->cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(e->ch), 0);
	r->a = r->b = NULL;
	r->cq = ibv_create_cq(r->ctx, 1, NULL, NULL, 0);
	rig_close((void **)&e->r);
	free(e);
	return 0;
}

bool
readable(struct ibv_comp_channel *ch, int ms)
{
	struct pollfd fd = {.fd = ch->fd, .events = POLLIN};

	return poll(&fd, 1, ms) == 1;
}
