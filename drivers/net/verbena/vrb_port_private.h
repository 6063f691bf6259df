/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What vrb_port.c and vrb_port_addr.c share.
 */
#ifndef VRB_PORT_PRIVATE_H
#define VRB_PORT_PRIVATE_H

#include "vrb_port.h"

#define SHMLAN_DRIVER "net_shmlan"
/* Name of the mbuf flag that says that a frame's ICRC was left out (shmlan.h). */
#define ICRC_OMITTED "verbena_icrc_omitted"

/** The sentence of a DPDK call that failed, with what DPDK logged about it. @return rc */
int vrb_port_fail(char *why, size_t why_len, int rc, const char *what, const char *name);
/** Completes the devargs of a net_shmlan in @p buf. @return 0 or -EINVAL */
int vrb_port_shmlan_devargs(const struct vrb_nic_conf *conf, char *buf, size_t len);
/** Fills p->mac, p->gid, p->derived. */
int vrb_port_find_addresses(
	struct vrb_port *p, const struct vrb_nic_conf *conf, char *why, size_t why_len);
/** Makes p->bell of a kernel interface, as far as that is possible and allowed. */
void vrb_port_bell_open(struct vrb_port *p);
void vrb_port_bell_close(struct vrb_port *p);
int vrb_port_kernel_mtu(unsigned int ifindex, uint16_t *mtu);

#endif
