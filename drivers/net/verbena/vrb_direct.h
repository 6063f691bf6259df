/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The direct path between processes of one user on one segment of net_shmlan (lib/roce/direct.c):
 * the board that our peers look at, and the system calls by which memory is moved.
 */
#ifndef VRB_DIRECT_H
#define VRB_DIRECT_H

#include "vrb_roce.h"

struct vrb_direct_path;

extern const struct vrb_direct_ops vrb_direct_path_ops;

/**
 * Makes the board of a port of net_shmlan.
 * @param mac its address. @return NULL: there is no direct path (no such port, no memory)
 */
struct vrb_direct_path *vrb_direct_path_open(uint16_t port_id, const uint8_t mac[6]);
struct vrb_board *vrb_direct_path_board(struct vrb_direct_path *path);
/**
 * Lets the peers see the board. Called by a thread that lives as long as the port: when it ends,
 * however it ends, they take us for dead.
 */
void vrb_direct_path_show(struct vrb_direct_path *path);
/** By the same thread, before it ends. */
void vrb_direct_path_hide(struct vrb_direct_path *path);
/** No engine uses it any more. */
void vrb_direct_path_close(struct vrb_direct_path *path);

#endif
