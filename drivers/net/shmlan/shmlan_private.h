/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan: the structures of a port and who may touch them.
 *
 * Three parties work on a port: the thread that calls rx_burst(), the one that calls tx_burst(),
 * and the control side (EAL's interrupt thread, and whoever calls ethdev's operations). The data
 * path takes no lock. What the control side has to tell it lies behind port->lock, with a word
 * (rxq.change, txq.change) that the data path looks at when a burst starts. Only if that word is
 * set the data path tries the lock and takes the changes over.
 *
 *   rxq, txq     the data path; the control side only while the port is stopped, with the lock
 *   in[], conns  with the lock
 *   tx.outs[]    made and freed by the Tx path, with the lock
 *   reg          its shared words are atomics; to change the file takes reg.lock and flock(2)
 *
 * Order of locks: ports list, port->lock, reg.lock.
 */
#ifndef VRB_SHMLAN_PRIVATE_H
#define VRB_SHMLAN_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include <ethdev_driver.h>
#include <rte_ether.h>
#include <rte_interrupts.h>
#include <rte_log.h>
#include <rte_mbuf.h>

#include "shmlan.h"
#include "shmlan_ring.h"

#define SHM_NAME_MAX 64 /* of a segment */
#define SHM_HDR_LEN (RTE_ETHER_HDR_LEN + RTE_VLAN_HLEN)
#define SHM_FRAME_MAX (VRB_SHMLAN_MTU_MAX + SHM_HDR_LEN)
#define SHM_SLOTS_DEFAULT 512u
#define SHM_DATA_DEFAULT (512u << 10)
/* With more incoming rings than ON only those with a pending bit are looked at, with OFF all again.
 */
#define SHM_BITMAP_ON 8
#define SHM_BITMAP_OFF 4
#define SHM_ZC_MIN 1024 /* shorter frames are copied, also with rx_zc=1 */
#define SHM_FLAG_ICRC_OMITTED 1u
#define SHM_MAC_MASK 0xffffffffffffull

extern int vrb_shmlan_logtype;

#define SHM_LOG(level, fmt, ...) \
	rte_log(RTE_LOG_##level, vrb_shmlan_logtype, "net_shmlan: " fmt "\n", ##__VA_ARGS__)

/* What the device arguments say. */
struct shm_args {
	char segment[SHM_NAME_MAX + 1];
	char dir[PATH_MAX]; /* empty: chosen from the environment */
	struct rte_ether_addr mac;
	bool has_mac;
	bool rx_zc;
	uint32_t slots;
	uint32_t data;
};

int vrb_shmlan_args_parse(const char *dev, const char *params, struct shm_args *args);

/* ---- registry (shmlan_member.c) ---- */

#define SHM_ENTRY_USED (1ull << 48)
#define SHM_ENTRY_UP (1ull << 49) /* started */
#define SHM_ENTRY_PROMISC (1ull << 50) /* wants frames for unknown addresses */

struct shm_entry {
	_Atomic uint64_t word; /* MAC in network byte order in the low 48 bits, SHM_ENTRY_* above */
	_Atomic uint64_t inc; /* incarnation: different for each member that ever used the slot */
	_Atomic uint32_t pid; /* as the member sees it; nothing is decided by it alone */
	_Atomic uint32_t board; /* vrb_shmlan_put_up(): the descriptor + 1, or 0 */
	uint32_t pad[2];
};

struct shm_reg_file {
	_Atomic uint64_t magic;
	uint32_t members;
	uint8_t pad0[52];
	_Atomic uint64_t next_inc;
	uint8_t pad1[56];
	_Atomic uint32_t gen; /* changes after every change of an entry */
	_Atomic uint32_t high; /* no entry from here on has ever been used */
	uint8_t pad2[56];
	struct shm_entry entry[VRB_SHMLAN_MEMBERS];
};

struct shm_reg {
	pthread_mutex_t lock;
	struct shm_reg_file *file;
	int basefd; /* directory above the segment's, -1 when it is not ours to tidy */
	int dirfd;
	int fd; /* the open file that holds our locks */
	int listenfd;
	unsigned int slot;
	uint64_t inc;
	char segment[SHM_NAME_MAX + 1];
	char path[PATH_MAX]; /* for messages */
};

void vrb_shmlan_reg_init(struct shm_reg *reg);
int vrb_shmlan_reg_join(
	struct shm_reg *reg, const struct shm_args *args, struct rte_ether_addr *mac);
void vrb_shmlan_reg_leave(struct shm_reg *reg);
void vrb_shmlan_reg_abandon(struct shm_reg *reg);
int vrb_shmlan_reg_set_mac(struct shm_reg *reg, const struct rte_ether_addr *mac);
int vrb_shmlan_reg_set_flags(struct shm_reg *reg, uint64_t set, uint64_t clear);
int vrb_shmlan_reg_scan(struct shm_reg *reg, bool *suspect);
void vrb_shmlan_sock_name(char *buf, size_t len, unsigned int slot, uint64_t inc);
int vrb_shmlan_reg_listen(struct shm_reg *reg);
int vrb_shmlan_reg_connect(const struct shm_reg *reg, unsigned int slot, uint64_t inc);
void vrb_shmlan_reg_poke(const struct shm_reg *reg);
unsigned int vrb_shmlan_reg_others_up(const struct shm_reg *reg);
bool vrb_shmlan_reg_next(const struct shm_reg *reg, unsigned int *slot, uint64_t *inc);
int vrb_shmlan_opendir(const struct shm_args *args, int *basefd, char *path, size_t len);
bool vrb_shmlan_peer_is_us(int sock);

static inline uint64_t
shm_mac_key(const struct rte_ether_addr *mac)
{
	uint64_t v = 0;

	memcpy(&v, mac->addr_bytes, sizeof(mac->addr_bytes));
	return v;
}

/* ---- doorbell: shared by a port and by the frames lent out of its rings ---- */

struct shm_bell {
	struct vrb_bell_page *page;
	int pagefd;
	int evfd;
	_Atomic uint32_t refs;
};

struct shm_bell *vrb_shmlan_bell_create(void);
void vrb_shmlan_bell_put(struct shm_bell *bell);
void vrb_shmlan_bell_kick(struct shm_bell *bell);
void vrb_shmlan_bell_wake(struct shm_bell *bell);

/* ---- connections (shmlan_link.c, shmlan_conn.c) ---- */

enum shm_conn_kind {
	SHM_CONN_LISTEN,
	SHM_CONN_CTL, /* eventfd: the data path wants the control side to look at the rings */
	SHM_CONN_TIMER, /* timerfd: look for dead members again */
	SHM_CONN_NEW, /* accepted, has not said yet what it wants */
	SHM_CONN_IN, /* somebody's ring to us */
	SHM_CONN_OUT, /* our ring to somebody */
	SHM_CONN_WATCH, /* our watch on a member */
	SHM_CONN_WATCHED, /* somebody's watch on us */
};

struct shm_conn {
	enum shm_conn_kind kind;
	int fd;
	unsigned int slot; /* of the peer */
	uint64_t inc;
	LIST_ENTRY(shm_conn) next;
};

LIST_HEAD(shm_conn_list, shm_conn);

/* A ring that we receive from. */
struct shm_in {
	struct shm_conn conn; /* control side; first */
	struct vrb_ring_rx r; /* Rx path */
	uint32_t idx; /* in port->in[], and its bit in the doorbell page */
	bool adopted; /* is in rxq.rings[] */
	_Atomic bool eof; /* the sender is gone; what it has sent is still delivered */
	_Atomic bool broken;
	_Atomic uint32_t refs; /* the port, and each frame lent out */
	_Atomic uint8_t *held; /* for each slot: lent out; NULL without rx_zc */
	struct shm_bell *bell;
	void *map;
	size_t maplen;
};

/* A ring that we send into. */
struct shm_out {
	struct shm_conn conn; /* first */
	struct vrb_ring_tx r; /* Tx path */
	struct vrb_bell_page *page; /* the receiver's; NULL until it has answered. Set with the
				       lock, by the Tx path */
	int evfd;
	uint32_t bit;
	uint32_t run; /* work since frames were handed over, see RUN */
	bool touched; /* written to in this burst */
	bool closed; /* out of use until it is freed: the peer is gone or broke the rules */
	/* The answer, put here by the control side. */
	struct vrb_bell_page *new_page;
	_Atomic bool eof;
	void *map;
	size_t maplen;
};

/* ---- the two halves of the data path (shmlan_rx.c, shmlan_tx.c) ---- */

/* Values of the change words; more than one bit may be set. */
#define SHM_CHANGE_RINGS 1u
#define SHM_CHANGE_FILTER 2u /* Rx: has to be taken over before anything is received */
#define SHM_CHANGE_FORKED 0x80000000u /* we are the child: the port is the parent's */

enum shm_rx_stat {
	SHM_RX_PACKETS,
	SHM_RX_BYTES,
	SHM_RX_NOMBUF,
	SHM_RX_DROP_FILTER,
	SHM_RX_DROP_MTU,
	SHM_RX_BAD_RING,
	SHM_RX_STATS
};

enum shm_tx_stat {
	SHM_TX_PACKETS,
	SHM_TX_BYTES,
	SHM_TX_DROP_UNKNOWN,
	SHM_TX_DROP_DOWN,
	SHM_TX_DROP_NO_RING,
	SHM_TX_DROP_FULL,
	SHM_TX_DROP_FAULT,
	SHM_TX_DROP_RUNT,
	SHM_TX_DROP_LONG,
	SHM_TX_DROP_MALFORMED,
	SHM_TX_BAD_RING,
	SHM_TX_LOST,
	SHM_TX_FULL,
	SHM_TX_KICKS,
	SHM_TX_STATS
};

/* One writer, readers anywhere. */
static inline void
shm_count(_Atomic uint64_t *counter, uint64_t n)
{
	atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + n,
		memory_order_relaxed);
}

struct shm_filter {
	uint64_t mac;
	bool promisc;
	bool allmulti;
	uint32_t max_len;
	unsigned int nmc;
	uint64_t mc[VRB_SHMLAN_MC_MAX];
};

struct shm_rxq {
	_Atomic uint32_t change;
	unsigned int nrings;
	unsigned int next; /* ring that is looked at first in the next burst: place in rings[], or
			      with bitmap, in by_idx[] */
	unsigned int nwords; /* of the bitmap, that may have bits set */
	bool bitmap;
	bool zc;
	uint16_t port_id;
	uint16_t room; /* bytes of a frame in one mbuf */
	uint64_t dynflag;
	struct rte_mempool *pool;
	struct shm_bell *bell;
	struct shm_port *port;
	struct shm_filter filter;
	uint64_t ready[VRB_BELL_WORDS];
	struct shm_in *rings[VRB_BELL_RINGS];
	struct shm_in *by_idx[VRB_BELL_RINGS]; /* the same, by their bit */
	_Atomic uint64_t stat[SHM_RX_STATS];
} __rte_cache_aligned;

#define SHM_HASH_SIZE 4096u /* four times the members: chains stay short */

struct shm_txq {
	_Atomic uint32_t change;
	uint32_t gen;
	uint64_t dynflag;
	struct shm_reg_file *file;
	struct shm_port *port;
	uint64_t self; /* our own address */
	uint64_t last_key;
	struct shm_out *last_out;
	unsigned int nup;
	unsigned int npromisc; /* of them, those that want frames for unknown addresses */
	unsigned int promisc; /* slot of one of these */
	unsigned int ntouched;
	struct shm_out *outs[VRB_SHMLAN_MEMBERS];
	struct shm_out *touched[VRB_SHMLAN_MEMBERS];
	uint64_t inc[VRB_SHMLAN_MEMBERS];
	uint64_t retry[VRB_SHMLAN_MEMBERS]; /* no new ring before this time (TSC) */
	uint16_t up[VRB_SHMLAN_MEMBERS]; /* slots of the other started members */
	uint64_t word[VRB_SHMLAN_MEMBERS];
	uint64_t hash[SHM_HASH_SIZE]; /* MAC << 16 | 0x8000 | slot, 0 when free */
	_Atomic uint64_t stat[SHM_TX_STATS];
	uint8_t gathered[RTE_ALIGN_CEIL(SHM_FRAME_MAX, 64)]; /* a frame of several segments */
} __rte_cache_aligned;

struct shm_port {
	struct shm_rxq rx;
	struct shm_txq tx;
	pthread_mutex_t lock;
	uint16_t port_id;
	pid_t pid;
	bool started;
	bool link_told; /* what the last LSC event said */
	struct rte_eth_dev *dev;
	struct shm_args args;
	struct rte_ether_addr mac;
	struct shm_reg reg;
	struct shm_bell *bell;
	struct shm_filter filter; /* what rx.filter becomes */
	int epfd;
	struct rte_intr_handle *ctl_intr; /* on epfd */
	struct rte_intr_handle *rx_intr;
	struct shm_conn listen, ctl, timer;
	struct shm_conn watch; /* fd -1 when nobody is watched */
	bool scan; /* somebody has disappeared: look for dead members */
	unsigned int scan_tries;
	struct shm_conn_list conns; /* NEW and WATCHED */
	struct shm_in *in[VRB_BELL_RINGS];
	uint64_t rx_base[SHM_RX_STATS], tx_base[SHM_TX_STATS];
	LIST_ENTRY(shm_port) next;
};

/* What the data path needs of the control side, all with port->lock held. */
int vrb_shmlan_link_open(struct shm_port *port);
void vrb_shmlan_link_detach(struct shm_port *port);
void vrb_shmlan_link_close(struct shm_port *port);
void vrb_shmlan_link_state(struct shm_port *port);
int vrb_shmlan_out_open(
	struct shm_port *port, unsigned int slot, uint64_t inc, struct shm_out **out);
void vrb_shmlan_out_free(struct shm_port *port, struct shm_out *out);
void vrb_shmlan_in_remove(struct shm_port *port, struct shm_in *in);
void vrb_shmlan_in_put(struct shm_in *in);
void vrb_shmlan_ctl_kick(struct shm_port *port);
int vrb_shmlan_conn_add(struct shm_port *port, struct shm_conn *conn);
void vrb_shmlan_conn_drop(struct shm_port *port, struct shm_conn *conn);

uint16_t vrb_shmlan_rx_burst(void *rxq, struct rte_mbuf **pkts, uint16_t n);
uint16_t vrb_shmlan_tx_burst(void *txq, struct rte_mbuf **pkts, uint16_t n);
uint32_t vrb_shmlan_rx_count(void *rxq);
bool vrb_shmlan_rx_any(struct shm_rxq *q);
int vrb_shmlan_rx_desc_status(void *rxq, uint16_t offset);
int vrb_shmlan_tx_desc_status(void *txq, uint16_t offset);
void vrb_shmlan_rx_sync(struct shm_port *port);
int vrb_shmlan_tx_sync(struct shm_port *port);
void vrb_shmlan_rx_discard(struct shm_port *port);

/* ---- figures (shmlan_stats.c) ---- */
int vrb_shmlan_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats);
int vrb_shmlan_stats_reset(struct rte_eth_dev *dev);
int vrb_shmlan_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *xs, unsigned int n);
int vrb_shmlan_xstats_names(
	struct rte_eth_dev *dev, struct rte_eth_xstat_name *names, unsigned int n);

/* ---- fork(2) (shmlan_fork.c) ---- */
void vrb_shmlan_fork_add(struct shm_port *port);
void vrb_shmlan_fork_remove(struct shm_port *port);

static inline struct shm_port *
shm_port_of(const struct rte_eth_dev *dev)
{
	return *(struct shm_port **)dev->data->dev_private;
}

#endif
