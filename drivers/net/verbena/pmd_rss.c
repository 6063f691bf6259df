/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RSS: key, types and indirection table. A change is made with the batons of all pollers, so each
 * burst is distributed by the old or by the new table, and no frame is lost by it.
 */
#include <errno.h>
#include <string.h>

#include "pmd_private.h"
#include "pmd_trace.h"

#define ONLY \
	(RTE_ETH_RSS_L3_SRC_ONLY | RTE_ETH_RSS_L3_DST_ONLY | RTE_ETH_RSS_L4_SRC_ONLY | \
		RTE_ETH_RSS_L4_DST_ONLY)
#define V4_L4 \
	(RTE_ETH_RSS_NONFRAG_IPV4_TCP | RTE_ETH_RSS_NONFRAG_IPV4_UDP | \
		RTE_ETH_RSS_NONFRAG_IPV4_SCTP)
#define V6_L4 \
	(RTE_ETH_RSS_NONFRAG_IPV6_TCP | RTE_ETH_RSS_NONFRAG_IPV6_UDP | \
		RTE_ETH_RSS_NONFRAG_IPV6_SCTP | RTE_ETH_RSS_IPV6_TCP_EX | RTE_ETH_RSS_IPV6_UDP_EX)
#define ALL \
	(RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_FRAG_IPV4 | RTE_ETH_RSS_NONFRAG_IPV4_OTHER | V4_L4 | \
		RTE_ETH_RSS_IPV6 | RTE_ETH_RSS_FRAG_IPV6 | RTE_ETH_RSS_NONFRAG_IPV6_OTHER | \
		V6_L4 | RTE_ETH_RSS_IPV6_EX | ONLY)

/* Of Microsoft's specification, as most NICs have it. */
static const uint8_t default_key[VRB_RSS_KEY_MAX] = {0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2,
	0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30,
	0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac,
	0x01, 0xfa};

uint64_t
pmd_rss_types(void)
{
	return ALL;
}

bool
pmd_rss_types_ok(uint64_t types)
{
	return (types & ~ALL) == 0;
}

/* Of one version of IP, by the types that stand for its kinds. */
struct kinds {
	uint64_t ip, frag, other, tcp, udp, sctp;
};

static void
set_fields(uint8_t *fields, const struct kinds *k, uint64_t types, bool roce)
{
	uint8_t ips = VRB_RSS_IPS, ports = VRB_RSS_PORTS;

	/* Both of a pair stand for neither, as ethdev has it. */
	if (types & RTE_ETH_RSS_L3_SRC_ONLY)
		ips = VRB_RSS_SRC_IP;
	if (types & RTE_ETH_RSS_L3_DST_ONLY)
		ips = VRB_RSS_DST_IP;
	if (types & RTE_ETH_RSS_L4_SRC_ONLY)
		ports = VRB_RSS_SRC_PORT;
	if (types & RTE_ETH_RSS_L4_DST_ONLY)
		ports = VRB_RSS_DST_PORT;
	/* Asked for ports alone, no addresses are hashed. */
	if ((types & (RTE_ETH_RSS_L4_SRC_ONLY | RTE_ETH_RSS_L4_DST_ONLY)) &&
		!(types & (RTE_ETH_RSS_L3_SRC_ONLY | RTE_ETH_RSS_L3_DST_ONLY)))
		ips = 0;
	if ((types & (RTE_ETH_RSS_L3_SRC_ONLY | RTE_ETH_RSS_L3_DST_ONLY)) &&
		!(types & (RTE_ETH_RSS_L4_SRC_ONLY | RTE_ETH_RSS_L4_DST_ONLY)))
		ports = 0;
	memset(fields, 0, VRB_RSS_IPV6 - VRB_RSS_IPV4);
	if (types & k->ip)
		memset(fields, ips != 0 ? ips : VRB_RSS_IPS, VRB_RSS_IPV6 - VRB_RSS_IPV4);
	if (types & k->frag)
		fields[VRB_RSS_IPV4_FRAG] = ips != 0 ? ips : VRB_RSS_IPS;
	if (types & k->other)
		fields[VRB_RSS_IPV4] = ips != 0 ? ips : VRB_RSS_IPS;
	if (types & k->tcp)
		fields[VRB_RSS_IPV4_TCP] = ips | ports;
	if (types & k->udp)
		fields[VRB_RSS_IPV4_UDP] = ips | ports;
	if (types & k->sctp)
		fields[VRB_RSS_IPV4_SCTP] = ips | ports;
	fields[VRB_RSS_IPV4_ROCE] = fields[VRB_RSS_IPV4_UDP];
	if (roce && (types & k->udp))
		fields[VRB_RSS_IPV4_ROCE] = VRB_RSS_IPS | VRB_RSS_DST_QPN;
}

void
pmd_hash_make(
	struct pmd_hash *hash, uint64_t types, const uint8_t *key, uint32_t key_len, bool roce)
{
	static const struct kinds v4 = {RTE_ETH_RSS_IPV4, RTE_ETH_RSS_FRAG_IPV4,
		RTE_ETH_RSS_NONFRAG_IPV4_OTHER, RTE_ETH_RSS_NONFRAG_IPV4_TCP,
		RTE_ETH_RSS_NONFRAG_IPV4_UDP, RTE_ETH_RSS_NONFRAG_IPV4_SCTP};
	static const struct kinds v6 = {RTE_ETH_RSS_IPV6 | RTE_ETH_RSS_IPV6_EX,
		RTE_ETH_RSS_FRAG_IPV6, RTE_ETH_RSS_NONFRAG_IPV6_OTHER,
		RTE_ETH_RSS_NONFRAG_IPV6_TCP | RTE_ETH_RSS_IPV6_TCP_EX,
		RTE_ETH_RSS_NONFRAG_IPV6_UDP | RTE_ETH_RSS_IPV6_UDP_EX,
		RTE_ETH_RSS_NONFRAG_IPV6_SCTP};

	hash->rss.inner = hash->rss.symmetric = false;
	hash->roce = roce;
	set_fields(&hash->rss.fields[VRB_RSS_IPV4], &v4, types, roce);
	set_fields(&hash->rss.fields[VRB_RSS_IPV6], &v6, types, roce);
	vrb_rss_set_key(&hash->rss, key, key_len);
	vrb_toeplitz_init(&hash->toeplitz, key, key_len);
}

static void
make(struct pmd_port *port)
{
	struct pmd_rss *r = &port->rss;

	pmd_hash_make(&r->hash, r->types, r->key, r->key_len, port->args.rss_roce);
}

void
pmd_rss_init(struct pmd_port *port)
{
	struct pmd_rss *r = &port->rss;

	r->reta_size = port->args.reta;
	r->key_len = port->args.key_len;
	memcpy(r->key, default_key, sizeof(r->key));
	make(port);
}

static int
take_conf(struct pmd_rss *r, const struct rte_eth_rss_conf *conf, uint16_t port_id)
{
	if (!pmd_rss_types_ok(conf->rss_hf)) {
		PMD_LOG(ERR, "port %u: RSS types %#" PRIx64 " cannot be hashed", port_id,
			conf->rss_hf & ~(uint64_t)ALL);
		return -EINVAL;
	}
	if (conf->rss_key != NULL && conf->rss_key_len != 0 && conf->rss_key_len != r->key_len) {
		PMD_LOG(ERR, "port %u: the RSS key has %u bytes, and not %u", port_id,
			conf->rss_key_len, r->key_len);
		return -EINVAL;
	}
	if (conf->rss_key != NULL)
		memcpy(r->key, conf->rss_key, r->key_len);
	r->types = conf->rss_hf;
	return 0;
}

int
pmd_rss_configure(struct pmd_port *port)
{
	const struct rte_eth_conf *conf = &port->dev->data->dev_conf;
	uint16_t n = port->dev->data->nb_rx_queues;
	struct pmd_rss *r = &port->rss;
	int rc;

	r->on = (conf->rxmode.mq_mode & RTE_ETH_MQ_RX_RSS_FLAG) != 0 &&
		(n > 1 || (conf->rxmode.offloads & RTE_ETH_RX_OFFLOAD_RSS_HASH));
	if (conf->rxmode.mq_mode & RTE_ETH_MQ_RX_RSS_FLAG) {
		rc = take_conf(r, &conf->rx_adv_conf.rss_conf, port->port_id);
		if (rc < 0)
			return rc;
		make(port);
	}
	/* What the program has set stays, as long as it fits. */
	if (r->reta_set && r->reta_queues == n)
		return 0;
	r->reta_set = false;
	r->reta_queues = n;
	for (uint16_t i = 0; i < r->reta_size; i++)
		r->reta[i] = n == 0 ? 0 : i % n;
	return 0;
}

/* ---- while it runs ---- */

static int
check_size(const struct pmd_port *port, uint16_t size)
{
	if (size == port->rss.reta_size)
		return 0;
	PMD_LOG(ERR, "port %u: the RSS table has %u entries, and not %u", port->port_id,
		port->rss.reta_size, size);
	return -EINVAL;
}

int
pmd_reta_update(struct rte_eth_dev *dev, struct rte_eth_rss_reta_entry64 *reta, uint16_t size)
{
	struct pmd_port *port = pmd_port_of(dev);
	int rc = check_size(port, size);

	if (rc < 0)
		return rc;
	pthread_mutex_lock(&port->lock);
	pmd_pollers_lock(port);
	for (uint16_t i = 0; i < size; i++) {
		const struct rte_eth_rss_reta_entry64 *group = &reta[i / RTE_ETH_RETA_GROUP_SIZE];

		if (group->mask & RTE_BIT64(i % RTE_ETH_RETA_GROUP_SIZE))
			port->rss.reta[i] = group->reta[i % RTE_ETH_RETA_GROUP_SIZE];
	}
	port->rss.reta_set = true;
	pmd_pollers_unlock(port);
	pthread_mutex_unlock(&port->lock);
	pmd_trace_reta(port->port_id, size);
	return 0;
}

int
pmd_reta_query(struct rte_eth_dev *dev, struct rte_eth_rss_reta_entry64 *reta, uint16_t size)
{
	struct pmd_port *port = pmd_port_of(dev);
	int rc = check_size(port, size);

	if (rc < 0)
		return rc;
	pthread_mutex_lock(&port->lock);
	for (uint16_t i = 0; i < size; i++) {
		struct rte_eth_rss_reta_entry64 *group = &reta[i / RTE_ETH_RETA_GROUP_SIZE];

		if (group->mask & RTE_BIT64(i % RTE_ETH_RETA_GROUP_SIZE))
			group->reta[i % RTE_ETH_RETA_GROUP_SIZE] = port->rss.reta[i];
	}
	pthread_mutex_unlock(&port->lock);
	return 0;
}

int
pmd_rss_hash_update(struct rte_eth_dev *dev, struct rte_eth_rss_conf *conf)
{
	struct pmd_port *port = pmd_port_of(dev);
	int rc;

	if (!(dev->data->dev_conf.rxmode.mq_mode & RTE_ETH_MQ_RX_RSS_FLAG)) {
		PMD_LOG(ERR, "port %u: the port is not configured for RSS", port->port_id);
		return -ENOTSUP;
	}
	pthread_mutex_lock(&port->lock);
	pmd_pollers_lock(port);
	rc = take_conf(&port->rss, conf, port->port_id);
	if (rc == 0)
		make(port);
	pmd_pollers_unlock(port);
	pthread_mutex_unlock(&port->lock);
	return rc;
}

int
pmd_rss_hash_conf_get(struct rte_eth_dev *dev, struct rte_eth_rss_conf *conf)
{
	struct pmd_port *port = pmd_port_of(dev);

	pthread_mutex_lock(&port->lock);
	if (conf->rss_key != NULL) {
		if (conf->rss_key_len >= port->rss.key_len)
			memcpy(conf->rss_key, port->rss.key, port->rss.key_len);
		conf->rss_key_len = port->rss.key_len;
	}
	conf->rss_hf = port->rss.types;
	pthread_mutex_unlock(&port->lock);
	return 0;
}
