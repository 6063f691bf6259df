/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan: the messages of a connection, and what the control thread does with them.
 *
 * A connection carries one of these first, from the side that connected:
 *   RING   with a memfd: a ring from the sender to the receiver. Answered with BELL.
 *   WATCH  nothing but the wish to notice the end of the connection.
 * and on a ring's connection, from its sender, single bytes: frames were written before BELL was
 * received.
 */
#ifndef VRB_SHMLAN_CONN_H
#define VRB_SHMLAN_CONN_H

#include "shmlan_private.h"

#define SHM_MSG_MAGIC 0x314d4853u
#define SHM_MSG_FDS 2

enum shm_msg_type { SHM_MSG_RING = 1, SHM_MSG_WATCH, SHM_MSG_BELL };

struct shm_msg {
	uint32_t magic;
	uint32_t type;
	uint32_t slot; /* of the side that connected */
	uint32_t bit; /* BELL: of this ring in the page */
	uint64_t inc;
	uint64_t to; /* incarnation of the member that is meant */
	uint32_t nslots;
	uint32_t dsize;
};

int vrb_shmlan_msg_send(int sock, const struct shm_msg *msg, const int *fds, unsigned int nfds);
int vrb_shmlan_msg_recv(int sock, struct shm_msg *msg, int *fds);
void vrb_shmlan_msg_close_fds(int *fds);
int vrb_shmlan_out_answer(struct shm_out *out, const struct shm_msg *msg, int *fds);
int vrb_shmlan_in_open(
	struct shm_port *port, int fd, const struct shm_msg *msg, int memfd, struct shm_in **in);
void vrb_shmlan_kick(int evfd);

#endif
