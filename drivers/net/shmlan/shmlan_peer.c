/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan: what the layer above may know of the other members, besides sending frames to them.
 */
#include <errno.h>
#include <string.h>

#include "shmlan_private.h"

static struct shm_port *
port_by_id(uint16_t port_id)
{
	const struct rte_eth_dev *dev;

	if (!rte_eth_dev_is_valid_port(port_id))
		return NULL;
	dev = &rte_eth_devices[port_id];
	return dev->rx_pkt_burst != NULL && dev->device != NULL && dev->device->driver != NULL &&
			       strcmp(dev->device->driver->name, "net_shmlan") == 0
		       ? shm_port_of(dev)
		       : NULL;
}

int
vrb_shmlan_find(uint16_t port_id, const uint8_t mac[6], struct vrb_shmlan_peer *peer)
{
	struct shm_port *port = port_by_id(port_id);
	struct rte_ether_addr addr;
	struct shm_reg_file *file;
	uint64_t key;
	uint32_t i, n;

	if (port == NULL)
		return -ENODEV;
	memcpy(&addr, mac, sizeof(addr));
	key = shm_mac_key(&addr);
	file = port->reg.file;
	n = RTE_MIN(atomic_load_explicit(&file->high, memory_order_acquire),
		(uint32_t)VRB_SHMLAN_MEMBERS);
	for (i = 0; i < n; i++) {
		struct shm_entry *e = &file->entry[i];
		uint64_t word = atomic_load_explicit(&e->word, memory_order_acquire);

		if (!(word & SHM_ENTRY_USED) || (word & SHM_MAC_MASK) != key)
			continue;
		peer->slot = i;
		peer->inc = atomic_load_explicit(&e->inc, memory_order_relaxed);
		peer->pid = atomic_load_explicit(&e->pid, memory_order_relaxed);
		peer->board = (int)atomic_load_explicit(&e->board, memory_order_acquire) - 1;
		return 0;
	}
	return -ENOENT;
}

int
vrb_shmlan_put_up(uint16_t port_id, int fd)
{
	struct shm_port *port = port_by_id(port_id);

	if (port == NULL)
		return -ENODEV;
	atomic_store_explicit(&port->reg.file->entry[port->reg.slot].board, (uint32_t)(fd + 1),
		memory_order_release);
	return 0;
}
