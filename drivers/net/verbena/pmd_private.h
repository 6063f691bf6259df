/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of net_verbena share.
 *
 *   pmd_args.c       devargs
 *   pmd_lower.c      the lower port: found, owned, configured, its events
 *   pmd_ethdev.c     probe and remove, and what the port says of itself
 *   pmd_control.c    configure, start, stop, close, and what is passed to the lower port
 *   pmd_mode.c       which way frames take: direct or by pollers; the change from one to the other
 *   pmd_mac.c        addresses, where the lower port does not filter them
 *   pmd_rxq.c        Rx queues: set up, watermarks, resize; Rx burst functions
 *   pmd_share.c      queues that several ports share
 *   pmd_cring.c      completion rings, and the buffers posted to queues that copy
 *   pmd_poller.c     pollers: from the lower port's queues to ours
 *   pmd_steer.c      which queue a frame goes to
 *   pmd_frame.c      what is read from a frame's headers, and the Rx offloads done here
 *   pmd_rss.c        RSS: key, types and indirection table
 *   pmd_flow.c       rte_flow; pmd_flow_pattern.c and pmd_flow_action.c what its rules say
 *   pmd_tx.c         Tx queues, and the Tx offloads done here
 *   pmd_intr.c       Rx interrupts, and events that the data path gives rise to
 *   pmd_roce.c       the engine beside the queues
 *   pmd_stats.c      figures
 *   pmd_telemetry.c  the same, over telemetry and as text
 *   pmd_trace.c      trace points
 *
 * Two ways. A port whose queues are those of the lower port, and on which nothing is to be done in
 * software, is *direct*: rx_burst is the lower port's, but for mbuf.port. On all other ports
 * *pollers* take frames from the lower port's queues, look at each once, and put it into the
 * completion ring of the queue that it belongs to, from which rx_burst takes it. A poller is run by
 * whoever holds its baton: a service core, or the program's threads within rx_burst.
 *
 * Locks. Control calls hold port->lock. What pollers read (flow rules, RETA, rings, the set of
 * queues) is changed with the batons of all pollers of the port; what rx_burst reads, with the
 * queue's gate closed, and gates are closed and opened under pmd_share_lock, which also protects
 * the lists of shared queues. The order is: port->lock, pmd_share_lock and gates, batons in the
 * order of their ports and numbers, the engine's baton. The first two are recursive, because an
 * event may come out of a call of the lower port.
 */
#ifndef PMD_PRIVATE_H
#define PMD_PRIVATE_H

#include <pthread.h>
#include <sys/queue.h>

#include <ethdev_driver.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_ring.h>
#include <rte_spinlock.h>

#include "flow.h"
#include "pmd_gate.h"
#include "rss.h"
#include "rte_pmd_verbena.h"
#include "toeplitz.h"
#include "vrb_baton.h"
#include "vrb_clock.h"

#define PMD_DRIVER net_verbena
#define PMD_NAME_LEN RTE_ETH_NAME_MAX_LEN

#define PMD_BURST 64 /* frames taken from a lower queue at once */
#define PMD_MAX_RXQ 128
#define PMD_MAX_TXQ 128
#define PMD_MAX_POLLERS 16
#define PMD_MAX_LOWER_RXQ 128
#define PMD_MAX_MACS 64
#define PMD_MAX_MULTI 256
#define PMD_MAX_NEIGH 256
#define PMD_MAX_PTYPES 32
#define PMD_RING_MIN 32 /* frames in a completion ring */
#define PMD_RING_MAX 32768
#define PMD_RING_DEFAULT 1024
#define PMD_RETA_MIN 64
#define PMD_RETA_MAX 1024
#define PMD_RETA_DEFAULT 128
#define PMD_REFILL 32 /* buffers taken from a mempool at once */
#define PMD_NO_QUEUE UINT16_MAX

extern int pmd_logtype;
#define PMD_LOG(level, fmt, ...) \
	rte_log(RTE_LOG_##level, pmd_logtype, "net_verbena: " fmt "\n", ##__VA_ARGS__)

struct pmd_port;
struct pmd_rxq;

/* ---- devargs (pmd_args.c) ---- */

struct pmd_args {
	char *dev; /* devargs of the lower port to be made, or NULL */
	char *port; /* name of a lower port that is there, or NULL */
	char *ip; /* or NULL */
	uint16_t pollers; /* 0: one for each queue of the lower port */
	uint16_t lower_queues; /* 0: as many as the program's */
	uint16_t reta; /* entries */
	uint8_t key_len; /* of RSS: 40 or 52 */
	bool rx_copy; /* all queues copy */
	bool mac_filter; /* addresses are filtered here from the beginning */
	bool rss_roce; /* RoCE is hashed by its destination QPN in the place of ports */
};

/** @return 0, or -errno with a line in the log */
int pmd_args_parse(const char *name, const char *text, struct pmd_args *args);
void pmd_args_free(struct pmd_args *args);

/* ---- completion rings (pmd_cring.c) ---- */

/** Where frames wait for the program: of one queue, or of all members of a shared queue. */
struct pmd_cring {
	struct rte_ring *ring;
	uint32_t size;
	unsigned int socket;
	bool multi; /* several pollers may fill it at once */
	/* Buffers posted by queues that copy; NULL: frames are handed on as they are. */
	struct rte_ring *stock;
	struct rte_mempool *mp;
	uint32_t room; /* bytes of a frame that fit into a buffer */
	/* Figures that pollers of several ports add to. */
	_Atomic uint64_t refills, refilled, refill_fails;
	_Atomic uint32_t high;
	_Atomic uint64_t thresh_events;
	uint64_t resizes;
	/* Watermark: frames go below limit places left. */
	_Atomic uint32_t limit; /* 0: none is armed */
	_Atomic uint8_t thresh; /* percent */
	_Atomic uint8_t pending; /* crossed, and not asked for yet */
};

int pmd_cring_init(struct pmd_cring *c, uint32_t size, unsigned int socket, bool multi);
/** Makes the queue copy frames into buffers of @p mp. */
int pmd_cring_add_stock(struct pmd_cring *c, struct rte_mempool *mp);
void pmd_cring_fini(struct pmd_cring *c);
/** With the batons of all who fill it, and the gates closed of all who empty it. */
int pmd_cring_resize(struct pmd_cring *c, uint32_t size);
/** Takes buffers from the mempool in bursts, as far as they have room. */
void pmd_cring_refill(struct pmd_cring *c);
/** Places for frames to come. */
uint32_t pmd_cring_avail(const struct pmd_cring *c);
/** A copy of @p m in posted buffers; @p m is freed. NULL: no buffer, and @p m stays. */
struct rte_mbuf *pmd_cring_copy(struct pmd_cring *c, struct rte_mbuf *m);
void pmd_cring_arm(struct pmd_cring *c, uint8_t thresh);

/* ---- shared queues (pmd_share.c) ---- */

struct pmd_share {
	LIST_ENTRY(pmd_share) link;
	LIST_HEAD(, pmd_rxq) members;
	uint16_t group, qid;
	uint16_t num_members;
	_Atomic uint32_t turn; /* which member's frames are fetched first */
	struct pmd_cring cring;
};

extern pthread_mutex_t pmd_share_lock;
extern pthread_mutex_t pmd_ports_lock;
/** Finds or makes the shared queue of q->conf and makes @p q a member. @return 0 or -errno */
int pmd_share_join(struct pmd_rxq *q);
void pmd_share_leave(struct pmd_rxq *q);

/* ---- queues ---- */

/** An Rx queue of the program's. */
struct pmd_rxq {
	/* What rx_burst reads. */
	struct pmd_gate gate;
	bool direct; /* changed with the gate closed */
	bool by_service; /* service cores run the pollers */
	uint16_t port_id;
	uint16_t lower_id; /* port */
	uint16_t queue;
	uint16_t next_poller; /* in turn, by the one thread that receives */
	struct pmd_cring *cring; /* own, or the shared queue's */
	struct pmd_port *port;
	struct pmd_share *share;
	/* What rx_burst writes. */
	_Atomic uint64_t packets __rte_cache_aligned; /* that came directly */
	/* Whether the service cores come round. */
	uint32_t empty; /* bursts without a frame */
	bool helps; /* they do not: it polls as well */
	uint64_t seen_rounds, seen_at; /* TSC */
	/* Set up. */
	struct pmd_cring own __rte_cache_aligned;
	struct rte_mempool *mp;
	struct rte_eth_rxconf conf;
	uint16_t nb_desc;
	unsigned int socket;
	bool stopped; /* by rx_queue_stop, or deferred: frames for it are dropped */
	int event; /* eventfd of its interrupt, or -1 */
	int epoll; /* what a program waits for, or -1 */
	bool intr_on;
	_Atomic uint32_t intr; /* its interrupt is enabled */
	uint64_t base_packets; /* at the last reset */
	LIST_ENTRY(pmd_rxq) link; /* in pmd_share.members */
};

/** A Tx queue of the program's. */
struct pmd_txq {
	struct pmd_port *port;
	uint16_t lower_id, lower_queue;
	uint16_t queue;
	uint64_t todo; /* of mbuf.ol_flags: to be done here */
	bool udp, tcp; /* checksums to be made here */
	bool work; /* anything is */
	_Atomic bool stopped;
	_Atomic bool held; /* it is stopped or limited */
	_Atomic uint32_t rate; /* Mbit/s; 0: no limit, or the lower port's */
	int64_t credit; /* by the thread that sends */
	uint64_t earned_at; /* TSC */
	bool linear; /* the lower port takes frames of one segment only */
	rte_spinlock_t *lock; /* of the lower queue where several share it, or NULL */
	uint64_t dropped, base_dropped; /* could not be made ready */
	struct rte_eth_txconf conf;
	uint16_t nb_desc;
	unsigned int socket;
};

/* ---- pollers (pmd_poller.c) ---- */

/** What a poller has given to a queue. */
struct pmd_given {
	uint64_t packets, bytes;
	uint64_t full, nombuf, stopped;
};

/** Frames dropped or taken away by a poller, by cause. */
struct pmd_lost {
	uint64_t flow, isolated, filter, mac, bad_len, roce_full;
	uint64_t roce; /* not lost, but the engine's */
	uint64_t bytes; /* of all frames that did not come to a queue */
};

struct pmd_poller {
	struct vrb_baton baton;
	struct pmd_port *port;
	uint32_t service_id;
	bool by_service;
	bool copies; /* a queue of the port copies frames */
	uint16_t index;
	/* Queues of the lower port that it polls: index, index + num_pollers ... */
	uint16_t num_lower;
	/* Under the baton. */
	struct rte_mbuf **staged; /* for each queue PMD_BURST */
	uint16_t *fill; /* for each queue, how many */
	uint16_t touched[PMD_BURST]; /* queues with staged frames */
	uint16_t num_touched;
	struct pmd_given *given; /* for each queue */
	struct pmd_lost lost;
	_Atomic uint64_t rounds;
	uint64_t empty, packets, roce, flow;
	bool crossed; /* a watermark: to be told when the baton is given back */
	_Atomic uint64_t busy __rte_cache_aligned;
};

/** Makes the pollers for the port's configuration. */
int pmd_pollers_init(struct pmd_port *port);
void pmd_pollers_fini(struct pmd_port *port);
/** Takes the batons of all pollers: until they are given back no frame moves. */
void pmd_pollers_lock(struct pmd_port *port);
void pmd_pollers_unlock(struct pmd_port *port);
/** Runs a poller once if nobody else does. @return frames received */
unsigned int pmd_poller_try(struct pmd_poller *p);

/** A service, which runs the poller of the same number. */
struct pmd_service {
	struct pmd_port *port;
	uint16_t index;
	_Atomic bool on;
};

int pmd_services_init(struct pmd_port *port);
void pmd_services_fini(struct pmd_port *port);
/** Whether EAL is being cleaned up. */
bool pmd_services_gone(const struct pmd_port *port);
void pmd_services_run(struct pmd_port *port, bool run);

/* ---- steering (pmd_steer.c, pmd_frame.c) ---- */

struct pmd_look;

/** Does the Rx offloads that the lower port does not, by the frame's headers. @return whether the
 * frame is let through */
bool pmd_frame_offloads(
	const struct pmd_port *port, struct rte_mbuf *m, const struct pmd_look *look);
/** Steers a burst from the lower port's queue @p lower_queue: frames are staged for queues, given
 * to the engine, or dropped and counted. */
void pmd_steer(struct pmd_poller *p, struct rte_mbuf **pkts, unsigned int n, uint16_t lower_queue);
/** Gives staged frames to their queues. */
void pmd_give_staged(struct pmd_poller *p);

/* ---- RSS (pmd_rss.c) ---- */

/** A hash, made ready. */
struct pmd_hash {
	struct vrb_rss rss;
	struct vrb_toeplitz toeplitz;
	bool roce; /* RoCE is hashed by other fields than UDP */
};

struct pmd_rss {
	bool on; /* frames are distributed */
	struct pmd_hash hash;
	uint64_t types; /* RTE_ETH_RSS_* */
	uint16_t reta_size; /* a power of two */
	bool reta_set; /* by the program: it stays */
	uint16_t reta_queues; /* for how many queues the default was made */
	uint16_t reta[PMD_RETA_MAX];
	uint8_t key[VRB_RSS_KEY_MAX];
	uint8_t key_len;
};

/** @return whether all of @p types can be hashed */
bool pmd_rss_types_ok(uint64_t types);
uint64_t pmd_rss_types(void);
/** Sets fields and key of a hash. */
void pmd_hash_make(
	struct pmd_hash *hash, uint64_t types, const uint8_t *key, uint32_t key_len, bool roce);
void pmd_rss_init(struct pmd_port *port);
int pmd_rss_configure(struct pmd_port *port);
int pmd_reta_update(struct rte_eth_dev *dev, struct rte_eth_rss_reta_entry64 *reta, uint16_t size);
int pmd_reta_query(struct rte_eth_dev *dev, struct rte_eth_rss_reta_entry64 *reta, uint16_t size);
int pmd_rss_hash_update(struct rte_eth_dev *dev, struct rte_eth_rss_conf *conf);
int pmd_rss_hash_conf_get(struct rte_eth_dev *dev, struct rte_eth_rss_conf *conf);

/* ---- flow rules (pmd_flow*.c) ---- */

/** Queues and hash of a flow rule's RSS action. */
struct pmd_flow_rss {
	struct pmd_hash hash;
	uint16_t num; /* of table: a power of two */
	uint16_t num_queues;
	uint16_t table[PMD_RETA_MAX];
	uint64_t types;
};

struct pmd_flow_hits {
	uint64_t packets, bytes;
} __rte_cache_aligned;

struct rte_flow {
	TAILQ_ENTRY(rte_flow) link;
	struct vrb_flow_rule rule;
	bool drop, passthru, flag, has_mark;
	uint32_t mark;
	uint16_t queue; /* or PMD_NO_QUEUE */
	struct pmd_flow_rss *rss; /* or NULL */
	struct pmd_flow_hits *hits; /* COUNT: of each poller; else NULL */
};

int pmd_flow_pattern(const struct rte_flow_item pattern[], struct vrb_flow_rule *rule,
	struct rte_flow_error *error);
int pmd_flow_actions(struct pmd_port *port, const struct rte_flow_action actions[],
	struct rte_flow *flow, struct rte_flow_error *error);
int pmd_flow_ops_get(struct rte_eth_dev *dev, const struct rte_flow_ops **ops);
/** Whether the rules do with @p n Rx queues. @return 0 or -EBUSY */
int pmd_flow_check_queues(const struct pmd_port *port, uint16_t n);
void pmd_flow_fini(struct pmd_port *port);

/* ---- RoCE (pmd_roce.c) ---- */

struct pmd_neigh {
	union vrb_gid gid;
	uint8_t mac[6];
};

struct pmd_roce {
	bool has_ip;
	union vrb_gid gid[VRB_GIDS];
	struct vrb_engine *engine; /* or NULL */
	struct rte_mempool *pool;
	struct vrb_baton baton;
	struct rte_ring *rx; /* frames for the engine, from all pollers */
	uint16_t txq; /* the lower port's */
	rte_spinlock_t *tx_lock; /* where the program sends by the same queue, else NULL */
	struct rte_mbuf *refused[PMD_BURST]; /* under the baton: not taken by the port */
	uint16_t num_refused, first_refused;
	uint64_t tx_packets, tx_bytes; /* under the baton */
	_Atomic uint64_t deadline; /* when the engine has to run at the latest */
	unsigned int num_neigh;
	struct pmd_neigh neigh[PMD_MAX_NEIGH];
};

/** Whether the frame is for the engine. */
bool pmd_roce_is_ours(
	const struct pmd_port *port, const struct rte_mbuf *m, const struct pmd_look *look);
/** Hands a frame to the engine. @return whether there was room */
bool pmd_roce_give(struct pmd_port *port, struct rte_mbuf *m);
/** One round of the engine if nobody else runs it and there is something to do. */
void pmd_roce_run(struct pmd_port *port);
int pmd_roce_start(struct pmd_port *port);
void pmd_roce_stop(struct pmd_port *port);
void pmd_roce_fini(struct pmd_port *port);
int pmd_roce_set_ip(struct pmd_port *port, const char *ip);

/* ---- addresses (pmd_mac.c) ---- */

/** What the program asks for, and whether it is done here. Under the batons. */
struct pmd_macs {
	bool on; /* done here */
	bool active; /* and frames have to be looked at */
	bool promisc, allmulti;
	bool lifted; /* the lower port has been made promiscuous */
	uint32_t num_uni, num_multi;
	struct rte_ether_addr uni[PMD_MAX_MACS], multi[PMD_MAX_MULTI];
};

/** Whether the frame is for the port. */
bool pmd_mac_passes(const struct pmd_port *port, const struct rte_mbuf *m);
void pmd_mac_init(struct pmd_port *port);
/** Lets the lower port receive what is to be filtered here. */
int pmd_mac_start(struct pmd_port *port);
/** Leaves the lower port as it was. */
void pmd_mac_close(struct pmd_port *port);
int pmd_promisc_on(struct rte_eth_dev *dev);
int pmd_promisc_off(struct rte_eth_dev *dev);
int pmd_allmulti_on(struct rte_eth_dev *dev);
int pmd_allmulti_off(struct rte_eth_dev *dev);
int pmd_mac_set(struct rte_eth_dev *dev, struct rte_ether_addr *mac);
int pmd_mac_add(struct rte_eth_dev *dev, struct rte_ether_addr *mac, uint32_t index, uint32_t pool);
void pmd_mac_remove(struct rte_eth_dev *dev, uint32_t index);
int pmd_mc_list(struct rte_eth_dev *dev, struct rte_ether_addr *list, uint32_t n);

/* ---- the port ---- */

struct pmd_port {
	struct rte_eth_dev *dev;
	uint16_t port_id;
	pthread_mutex_t lock;
	LIST_ENTRY(pmd_port) link; /* all of the process */
	struct pmd_args args;
	/* The lower port. */
	uint16_t lower_id;
	bool lower_probed; /* by us, so removed by us */
	bool lower_owned, lower_configured, lower_started;
	_Atomic bool lower_gone; /* unplugged */
	struct rte_eth_dev_owner owner;
	struct rte_device *lower_dev;
	struct rte_eth_dev_info lower;
	uint16_t num_lower_rx, num_lower_tx;
	uint64_t lower_rx_offloads, lower_tx_offloads; /* those that the lower port does */
	struct rte_mempool *lower_mp; /* the program's, if the lower port fills buffers of it */
	struct rte_mempool *lower_pool; /* of frames that are copied afterwards, or NULL */
	rte_spinlock_t tx_locks[PMD_MAX_TXQ]; /* of the lower port's Tx queues */
	/* Offloads done here. */
	uint64_t rx_todo; /* RTE_ETH_RX_OFFLOAD_* */
	uint64_t tx_todo; /* RTE_MBUF_F_TX_IP_CKSUM, _VLAN */
	bool tx_udp, tx_tcp, tx_linear;
	uint32_t max_frame;
	struct rte_mempool *tx_pool; /* of frames copied before sending, or NULL */
	uint64_t vlans[4096 / 64]; /* let through */
	int stamp_offset; /* of timestamps in mbufs */
	uint64_t stamp_flag;
	/* Which way frames take. */
	bool polled;
	_Atomic bool started;
	uint16_t num_pollers, num_services;
	struct pmd_poller *pollers;
	uint16_t pollers_queues; /* for how many queues they were made */
	struct pmd_service services[PMD_MAX_POLLERS];
	uint32_t service_ids[PMD_MAX_POLLERS];
	uint16_t num_rxq;
	struct pmd_rxq *rxq[PMD_MAX_RXQ]; /* while they are set up */
	/* Under the batons. */
	struct pmd_rss rss;
	struct vrb_flow_table *flows; /* NULL: there are none */
	TAILQ_HEAD(, rte_flow) flow_list;
	uint32_t num_flows;
	bool isolated;
	struct pmd_macs mac;
	struct pmd_roce roce;
	struct vrb_clock clock;
	/* Events. */
	int event_fd;
	struct rte_intr_handle *event_intr;
	struct rte_intr_handle *rx_intr;
	uint16_t intr_users; /* queues whose interrupt is enabled */
	_Atomic uint32_t events; /* PMD_EVENT_* */
	/* Figures. */
	struct rte_eth_stats lower_base; /* at the last reset */
	struct pmd_lost lost_base;
	struct pmd_given given_base[PMD_MAX_RXQ];
	uint64_t tx_gone; /* dropped by queues that are no more */
	uint64_t base_roce_packets, base_roce_bytes;
	struct vrb_stats base_engine;
	struct rte_ether_addr macs[PMD_MAX_MACS]; /* ethdev's */
	uint32_t ptypes[PMD_MAX_PTYPES];
};

#define PMD_EVENT_THRESH (1u << 0)
#define PMD_EVENT_REMOVED (1u << 1)

static inline struct pmd_port *
pmd_port_of(const struct rte_eth_dev *dev)
{
	return *(struct pmd_port **)dev->data->dev_private;
}

/** The port of net_verbena with that id, or NULL. */
struct pmd_port *pmd_port_find(uint16_t port_id);

/* ---- the lower port (pmd_lower.c) ---- */

int pmd_lower_open(struct pmd_port *port);
/** @param ending EAL is being cleaned up, and removes the device itself */
void pmd_lower_close(struct pmd_port *port, bool ending);
/** Configures it and sets up its queues. */
int pmd_lower_configure(struct pmd_port *port);
int pmd_lower_start(struct pmd_port *port);
int pmd_lower_stop(struct pmd_port *port);

/* ---- modes (pmd_mode.c) ---- */

/** Whether frames have to take the way by pollers. */
bool pmd_mode_wants_pollers(const struct pmd_port *port);
/** Takes the way that is wanted now; of a started port. */
void pmd_mode_update(struct pmd_port *port);
/** From now on by pollers. With the gates closed. */
void pmd_mode_leave_direct(struct pmd_port *port);
/** Keeps all threads out of the port's Rx queues, and of those that share with them. */
void pmd_gates_close(struct pmd_port *port);
/** Lets them in again where queue and port are started. */
void pmd_gates_open(struct pmd_port *port);

/* ---- queues (pmd_rxq.c, pmd_tx.c) ---- */

int pmd_rxq_setup(struct rte_eth_dev *dev, uint16_t queue, uint16_t ndesc, unsigned int socket,
	const struct rte_eth_rxconf *conf, struct rte_mempool *mp);
/** Now that all queues are set up: which of them copy. */
int pmd_rxq_prepare(struct pmd_port *port);
/** Frees what waits in a queue that is not shared. */
void pmd_rxq_drain(struct pmd_rxq *q);
void pmd_rxq_release(struct rte_eth_dev *dev, uint16_t queue);
uint16_t pmd_rx_burst(void *rxq, struct rte_mbuf **pkts, uint16_t n);
uint16_t pmd_rx_direct(void *rxq, struct rte_mbuf **pkts, uint16_t n);
/** The function to receive with, for ethdev to take over when the port is started. */
void pmd_rx_choose(struct pmd_port *port);
uint32_t pmd_rx_count(void *rxq);
int pmd_rx_desc_status(void *rxq, uint16_t offset);
int pmd_rx_monitor(void *rxq, struct rte_power_monitor_cond *cond);
void pmd_rxq_info(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_rxq_info *info);
int pmd_rxq_start(struct rte_eth_dev *dev, uint16_t queue);
int pmd_rxq_stop(struct rte_eth_dev *dev, uint16_t queue);
int pmd_rx_burst_mode(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_burst_mode *mode);
int pmd_thresh_set(struct rte_eth_dev *dev, uint16_t queue, uint8_t thresh);
int pmd_thresh_query(struct rte_eth_dev *dev, uint16_t *queue, uint8_t *thresh);

int pmd_txq_setup(struct rte_eth_dev *dev, uint16_t queue, uint16_t ndesc, unsigned int socket,
	const struct rte_eth_txconf *conf);
void pmd_txq_release(struct rte_eth_dev *dev, uint16_t queue);
uint16_t pmd_tx_direct(void *txq, struct rte_mbuf **pkts, uint16_t n);
uint16_t pmd_tx_burst(void *txq, struct rte_mbuf **pkts, uint16_t n);
/** Of a queue that is stopped or limited. */
uint16_t pmd_tx_held(struct pmd_txq *q, struct rte_mbuf **pkts, uint16_t n);
int pmd_tx_rate(struct rte_eth_dev *dev, uint16_t queue, uint32_t rate);
void pmd_tx_choose(struct pmd_port *port);
/** Nothing is sent any more: the lower port is gone. */
void pmd_tx_end(struct pmd_port *port);
int pmd_tx_desc_status(void *txq, uint16_t offset);
int pmd_tx_done(void *txq, uint32_t n);
void pmd_txq_info(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_txq_info *info);
int pmd_txq_start(struct rte_eth_dev *dev, uint16_t queue);
int pmd_txq_stop(struct rte_eth_dev *dev, uint16_t queue);
int pmd_tx_burst_mode(struct rte_eth_dev *dev, uint16_t queue, struct rte_eth_burst_mode *mode);

/* ---- events and interrupts (pmd_intr.c) ---- */

int pmd_events_open(struct pmd_port *port);
void pmd_events_close(struct pmd_port *port);
/** From the data path: the interrupt thread tells the program of it. */
void pmd_events_raise(struct pmd_port *port, uint32_t event);
int pmd_intr_setup(struct pmd_port *port);
void pmd_intr_fini(struct pmd_port *port);
int pmd_intr_enable(struct rte_eth_dev *dev, uint16_t queue);
int pmd_intr_disable(struct rte_eth_dev *dev, uint16_t queue);

/* ---- figures (pmd_stats.c, pmd_telemetry.c) ---- */

/* control calls (pmd_control.c) */
int pmd_configure(struct rte_eth_dev *dev);
int pmd_start(struct rte_eth_dev *dev);
int pmd_stop(struct rte_eth_dev *dev);
int pmd_mtu_set(struct rte_eth_dev *dev, uint16_t mtu);
int pmd_link_update(struct rte_eth_dev *dev, int wait);
int pmd_set_link_up(struct rte_eth_dev *dev);
int pmd_set_link_down(struct rte_eth_dev *dev);
int pmd_flow_ctrl_get(struct rte_eth_dev *dev, struct rte_eth_fc_conf *conf);
int pmd_flow_ctrl_set(struct rte_eth_dev *dev, struct rte_eth_fc_conf *conf);
int pmd_read_clock(struct rte_eth_dev *dev, uint64_t *clock);
int pmd_vlan_filter(struct rte_eth_dev *dev, uint16_t vlan, int on);
int pmd_vlan_offload(struct rte_eth_dev *dev, int mask);

int pmd_stats_get(struct rte_eth_dev *dev, struct rte_eth_stats *stats);
int pmd_stats_reset(struct rte_eth_dev *dev);
int pmd_xstats_get(struct rte_eth_dev *dev, struct rte_eth_xstat *xstats, unsigned int n);
int pmd_xstats_names(struct rte_eth_dev *dev, struct rte_eth_xstat_name *names, unsigned int n);
/** Sums over the pollers, since the last reset. */
void pmd_given_sum(const struct pmd_port *port, uint16_t queue, struct pmd_given *sum);
void pmd_lost_sum(const struct pmd_port *port, struct pmd_lost *sum);
int pmd_priv_dump(struct rte_eth_dev *dev, FILE *file);
void pmd_telemetry_init(void);

LIST_HEAD(pmd_ports, pmd_port);
extern struct pmd_ports pmd_ports;

#endif
