/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device that the commands work on: a RoCE engine, its lock, and whoever runs it. The commands
 * know nothing else of where it comes from.
 */
#ifndef TESTPMD_BACKEND_H
#define TESTPMD_BACKEND_H

#include "vrb_roce.h"

struct tp_backend_conf {
	const char *port; /* devargs or name of the port; NULL: the default */
	const char *segment; /* of net_shmlan; NULL: the default */
	const char *ip; /* NULL: automatic */
	const char *eal; /* more arguments of EAL, or NULL */
	const struct vrb_engine_ops *ops;
};

struct tp_device {
	char port[64]; /* ethdev name of the port that carries it */
	char driver[32];
	uint8_t mac[6];
	union vrb_gid gid[VRB_GIDS];
	uint16_t port_mtu; /* bytes of an IP packet */
	uint32_t max_mtu; /* largest path MTU */
	bool icrc; /* computed on sending */
	bool link_up;
};

/** @return 0, or -errno and a sentence */
int tp_backend_open(const struct tp_backend_conf *conf, char *why, size_t len);
void tp_backend_close(void);

struct vrb_engine *tp_engine(void);
/** The one protection domain of all objects. */
struct vrb_pd *tp_pd(void);
void tp_device(struct tp_device *dev);

/** The baton. Not recursive. */
void tp_lock(void);
void tp_unlock(void);
void tp_kick(struct vrb_qp *qp);
void tp_progress(void);
uint64_t tp_now(void);
/** @return 0 or -errno: nobody is there */
int tp_resolve(const union vrb_gid *gid, uint8_t mac[6]);
/** What the queue pair owes its peer is sent before it goes. Under the baton. */
void tp_settle(struct vrb_qp *qp);
/** Lets the port receive what the flow rules of queue pairs want. Under the baton. @return 0 or
 * -errno: it cannot */
int tp_filter(void);

#endif
