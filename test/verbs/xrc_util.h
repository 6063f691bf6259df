/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of XRC share.
 */
#ifndef XRC_UTIL_H
#define XRC_UTIL_H

#include <fcntl.h>

#include "verbs_util.h"

/* ibv_open_xrcd() with its two attributes. @return NULL and errno when it is refused */
struct ibv_xrcd *open_domain(struct ibv_context *ctx, int fd, int oflags);
/* Attributes of an SRQ in the domain, on the rig's PD and CQ. */
struct ibv_srq_init_attr_ex xrc_srq_attr(struct rig *r, struct ibv_xrcd *xrcd);
struct ibv_srq *make_xrc_srq(struct rig *r, struct ibv_xrcd *xrcd);
struct ibv_qp *make_target(struct rig *r, struct ibv_xrcd *xrcd);
struct ibv_qp *make_initiator(struct rig *r);

/* Sends 32 bytes from the beginning of the buffer to the SRQ of that number. */
int send_to(struct rig *r, struct ibv_qp *qp, uint32_t srqn);
uint32_t number_of(struct ibv_srq *srq);

/* An initiator that is connected with a target. */
struct xrc_pair {
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq, *other;
	struct ibv_qp *from, *to;
};

struct xrc_pair open_pair(struct rig *r);
void close_pair(struct xrc_pair *p);

#endif
