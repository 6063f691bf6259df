/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ethdev ports of the program, by the public calls of ethdev only, and who receives from them.
 */
#ifndef TESTPMD_PORTS_H
#define TESTPMD_PORTS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TP_MAX_QUEUES 64u

struct tp_job_conf;

struct tp_port_conf {
	uint16_t rx_queues, tx_queues, rx_size, tx_size;
	uint16_t mtu; /* 0: as it is */
};

/** Whether the port is ours to configure: it has no owner. */
bool tp_port_is_ours(uint16_t port);
/** A driver on top of it, or another part of the program, has it. @return its name, or "" */
const char *tp_port_owner(uint16_t port);
/** @return -EBUSY after tp_refuse(), if it is not ours */
int tp_port_check_ours(uint16_t port);
bool tp_port_is_started(uint16_t port);
/** "started", "stopped", or "unknown": somebody else has it, and its driver does not tell. */
const char *tp_port_state(uint16_t port);
/** Sends frames as tp_frame_fill() makes them. @return how many the port took, or -errno after
 * tp_refuse() */
int tp_port_send(uint16_t port, uint16_t queue, const struct tp_job_conf *frames);
/** Configures a stopped port, with RSS if it can. @return 0, or -errno after tp_refuse() */
int tp_port_configure(uint16_t port, const struct tp_port_conf *conf);
int tp_port_start(uint16_t port);
int tp_port_stop(uint16_t port);
/** Configures the ports that are ours, but for @p device, which is already, and starts them all,
 * each with a poller unless service cores run it. @return 0, or -errno after tp_refuse() */
int tp_ports_open(uint16_t device, uint16_t rx_queues, uint16_t tx_queues);
/** Stops all ports. */
void tp_ports_stop(void);
/** Closes them. */
void tp_ports_close(void);

/** What a poller has received from a queue. */
struct tp_poller_queue {
	uint16_t id;
	_Atomic uint64_t frames, bytes;
};

/** Queues of a port that the worker receives from, counts, and frees. */
struct tp_poller {
	struct tp_poller *next;
	uint16_t port;
	uint16_t num;
	struct tp_poller_queue queue[TP_MAX_QUEUES];
	_Atomic uint64_t rounds, empty;
};

struct tp_poller *tp_pollers(void);
struct tp_poller *tp_poller_of(uint16_t port);
/** @param num 0: all queues. @return 0, or -errno after tp_refuse() */
int tp_poller_start(uint16_t port, const uint32_t *queues, unsigned int num);
void tp_poller_stop(struct tp_poller *poller);
void tp_pollers_end(void);
/** A round of the worker over all pollers. @return whether there was a frame */
bool tp_pollers_work(void);

#endif
