/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What stands in the library's list of symbols besides the verbs: fork support, files of /sys, and
 * copies between structures of the kernel's ABI and of the library's, which librdmacm calls.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "verbs_private.h"

#include <infiniband/sa.h>
#include <rdma/ib_user_sa.h>
#include <rdma/ib_user_verbs.h>

VRB_PUBLIC int ibv_dontfork_range(void *base, size_t size);
VRB_PUBLIC int ibv_dofork_range(void *base, size_t size);
VRB_PUBLIC const char *ibv_get_sysfs_path(void);
VRB_PUBLIC int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
VRB_PUBLIC void ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src);
VRB_PUBLIC void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);
VRB_PUBLIC void ibv_copy_path_rec_from_kern(
	struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src);
VRB_PUBLIC void ibv_copy_path_rec_to_kern(
	struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src);

/*
 * On hardware fork(2) may move pages away from under the device, since the child's copy-on-write
 * gives the parent new ones. Nothing is pinned here: the device reads the process's memory by its
 * addresses.
 */
int
ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status
ibv_is_fork_initialized(void)
{
	return IBV_FORK_UNNEEDED;
}

int
ibv_dontfork_range(void *base, size_t size)
{
	return 0;
}

int
ibv_dofork_range(void *base, size_t size)
{
	return 0;
}

const char *
ibv_get_sysfs_path(void)
{
	static char path[IBV_SYSFS_PATH_MAX];
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const char *env;

	pthread_mutex_lock(&lock);
	if (!*path) {
		/* As upstream: the variable counts unless the program runs with rights that its
		 * user does not have. */
		env = secure_getenv("SYSFS_PATH");
		snprintf(path, sizeof(path), "%s", env && *env ? env : "/sys");
		while (strlen(path) > 1 && path[strlen(path) - 1] == '/')
			path[strlen(path) - 1] = 0;
	}
	pthread_mutex_unlock(&lock);
	return path;
}

/* @return bytes read, without the newline at the end; -1: errno */
int
ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, file) >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	n = read(fd, buf, size);
	close(fd);
	if (n < 0)
		return -1;
	if (n > 0 && buf[n - 1] == '\n')
		buf[--n] = 0;
	else if ((size_t)n < size)
		buf[n] = 0;
	return (int)n;
}

void
ibv_copy_ah_attr_from_kern(struct ibv_ah_attr *dst, struct ib_uverbs_ah_attr *src)
{
	memcpy(dst->grh.dgid.raw, src->grh.dgid, sizeof(dst->grh.dgid));
	dst->grh.flow_label = src->grh.flow_label;
	dst->grh.sgid_index = src->grh.sgid_index;
	dst->grh.hop_limit = src->grh.hop_limit;
	dst->grh.traffic_class = src->grh.traffic_class;
	dst->dlid = src->dlid;
	dst->sl = src->sl;
	dst->src_path_bits = src->src_path_bits;
	dst->static_rate = src->static_rate;
	dst->is_global = src->is_global;
	dst->port_num = src->port_num;
}

/* qp_state is not copied: the caller has put there which state it asked for. */
void
ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src)
{
	dst->cur_qp_state = src->cur_qp_state;
	dst->path_mtu = src->path_mtu;
	dst->path_mig_state = src->path_mig_state;
	dst->qkey = src->qkey;
	dst->rq_psn = src->rq_psn;
	dst->sq_psn = src->sq_psn;
	dst->dest_qp_num = src->dest_qp_num;
	dst->qp_access_flags = src->qp_access_flags;
	dst->cap.max_send_wr = src->max_send_wr;
	dst->cap.max_recv_wr = src->max_recv_wr;
	dst->cap.max_send_sge = src->max_send_sge;
	dst->cap.max_recv_sge = src->max_recv_sge;
	dst->cap.max_inline_data = src->max_inline_data;
	ibv_copy_ah_attr_from_kern(&dst->ah_attr, &src->ah_attr);
	ibv_copy_ah_attr_from_kern(&dst->alt_ah_attr, &src->alt_ah_attr);
	dst->pkey_index = src->pkey_index;
	dst->alt_pkey_index = src->alt_pkey_index;
	dst->en_sqd_async_notify = src->en_sqd_async_notify;
	dst->sq_draining = src->sq_draining;
	dst->max_rd_atomic = src->max_rd_atomic;
	dst->max_dest_rd_atomic = src->max_dest_rd_atomic;
	dst->min_rnr_timer = src->min_rnr_timer;
	dst->port_num = src->port_num;
	dst->timeout = src->timeout;
	dst->retry_cnt = src->retry_cnt;
	dst->rnr_retry = src->rnr_retry;
	dst->alt_port_num = src->alt_port_num;
	dst->alt_timeout = src->alt_timeout;
}

/* The two structures of a path record have the same names of fields in another order. */
#define COPY_PATH_REC(dst, src) \
	do { \
		(dst)->dlid = (src)->dlid; \
		(dst)->slid = (src)->slid; \
		(dst)->raw_traffic = (src)->raw_traffic; \
		(dst)->flow_label = (src)->flow_label; \
		(dst)->reversible = (src)->reversible; \
		(dst)->mtu = (src)->mtu; \
		(dst)->pkey = (src)->pkey; \
		(dst)->hop_limit = (src)->hop_limit; \
		(dst)->traffic_class = (src)->traffic_class; \
		(dst)->numb_path = (src)->numb_path; \
		(dst)->sl = (src)->sl; \
		(dst)->mtu_selector = (src)->mtu_selector; \
		(dst)->rate_selector = (src)->rate_selector; \
		(dst)->rate = (src)->rate; \
		(dst)->packet_life_time_selector = (src)->packet_life_time_selector; \
		(dst)->packet_life_time = (src)->packet_life_time; \
		(dst)->preference = (src)->preference; \
	} while (0)

void
ibv_copy_path_rec_from_kern(struct ibv_sa_path_rec *dst, struct ib_user_path_rec *src)
{
	memcpy(dst->dgid.raw, src->dgid, sizeof(dst->dgid));
	memcpy(dst->sgid.raw, src->sgid, sizeof(dst->sgid));
	COPY_PATH_REC(dst, src);
}

void
ibv_copy_path_rec_to_kern(struct ib_user_path_rec *dst, struct ibv_sa_path_rec *src)
{
	memcpy(dst->dgid, src->dgid.raw, sizeof(dst->dgid));
	memcpy(dst->sgid, src->sgid.raw, sizeof(dst->sgid));
	COPY_PATH_REC(dst, src);
}
