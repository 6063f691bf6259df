/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The families of commands, one file each, and what they share.
 */
#ifndef TESTPMD_COMMANDS_H
#define TESTPMD_COMMANDS_H

#include "cli.h"
#include "objects.h"

extern const struct tp_family tp_base_family, tp_device_family, tp_port_family, tp_queue_family,
	tp_poller_family, tp_mr_family, tp_cq_family, tp_srq_family, tp_wq_family,
	tp_ind_table_family, tp_qp_family, tp_rss_family, tp_flow_family, tp_traffic_family,
	tp_watch_family;

/* Arguments that many commands have. */
#define TP_PORT_ARG \
	{ \
		.name = "port", .type = TP_PORT, .help = "number or name of a port" \
	}
#define TP_QP_ARG \
	{ \
		.name = "qp", .type = TP_ID, .object = TP_QP, .help = "a queue pair" \
	}
#define TP_RX_QUEUE_ARG \
	{ \
		.name = "queue", .type = TP_NUM, .max = TP_MAX_QUEUES - 1, .help = "an rx-queue" \
	}

/** `quit` was typed. */
extern bool tp_quit;

extern const char *const tp_on_off[]; /* "off", "on" */

/** "198.18.0.1", or the IPv6 address. @param buf of INET6_ADDRSTRLEN bytes. @return buf */
const char *tp_gid_text(const union vrb_gid *gid, char *buf);

/** The object that an argument of TP_ID names; NULL if it was not given. */
void *tp_object_arg(const struct tp_call *call, const char *name, enum tp_kind kind);
/** "1 queue pair", "2 queue pairs". @return a buffer that the next call but three overwrites */
const char *tp_plural(unsigned int n, const char *what);
/** Refuses what an object is used for. */
int tp_refuse_busy(const struct tp_obj *obj, unsigned int n, const char *what);
/** A call of the engine failed for want of memory, or for a limit. */
int tp_refuse_memory(enum tp_kind kind, int rc);

/** Calls @p show for the object that the command names in @p name, or for all of the kind. */
int tp_show(const struct tp_call *call, enum tp_kind kind, void (*show)(struct tp_obj *obj));

/** Destroys everything that was made, traffic first. */
void tp_destroy_all(void);
/* Each for its kind. @return 0, or -errno after tp_refuse() */
int tp_mr_destroy(struct tp_mr *mr);
int tp_cq_destroy(struct tp_cq *cq);
int tp_srq_destroy(struct tp_srq *srq);
int tp_wq_destroy(struct tp_wq *wq);
int tp_ind_table_destroy(struct tp_ind_table *t);
int tp_qp_destroy(struct tp_qp *qp);
int tp_flow_destroy(struct tp_flow *flow);
/** Stops what receives on ports. */
void tp_pollers_end(void);

/** Which job works on the object, or NULL. */
struct tp_job *tp_job_on(const struct tp_obj *obj);
/** Refuses because of a job, if there is one. @return 0 or -EBUSY */
int tp_refuse_traffic(const struct tp_obj *obj);

#endif
