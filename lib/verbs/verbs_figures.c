/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figures of this process, for `verbena info --pid` and `verbena top` of the same user.
 *
 * A thread sleeps in accept(2) on a socket in a folder of the user's alone; it costs nothing until
 * somebody connects. Then it copies what the engine counts, under the baton for some microseconds,
 * writes it out as text without, and hangs up. Nothing is read from who has connected.
 *
 * The socket is FOLDER/.figures/PID, with FOLDER as shmlan.rst has it. What a process that was
 * killed leaves there is removed by the next who looks.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "figures.h"
#include "vrb_thread.h"
#include "verbs_private.h"

#define FORMAT 1 /* changes when the lines do */
#define TEXT_MAX (128 * 1024)
#define WRITE_SECONDS 2 /* for who has connected and does not read */

static struct {
	struct vrb_nic *nic;
	char segment[72];
	char path[sizeof(((struct sockaddr_un *)NULL)->sun_path)];
	int fd;
} figures = {.fd = -1};

/* ---- the text ---- */

struct text {
	char *buf;
	size_t len;
};

static void __attribute__((format(printf, 2, 3))) line(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(t->buf + t->len, TEXT_MAX - t->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		t->len += (size_t)n < TEXT_MAX - t->len ? (size_t)n : TEXT_MAX - 1 - t->len;
}

static void
add_stats(struct text *t, const struct vrb_stats *s)
{
#define STAT(name) \
	{ \
#name, s->name \
	}
	const struct {
		const char *name;
		uint64_t value;
	} stats[] = {
		STAT(rx_packets),
		STAT(rx_bytes),
		STAT(tx_packets),
		STAT(tx_bytes),
		STAT(rx_not_roce),
		STAT(rx_malformed),
		STAT(rx_icrc),
		STAT(rx_opcode),
		STAT(rx_no_qp),
		STAT(rx_qp_state),
		STAT(rx_wrong_peer),
		STAT(rx_pkey),
		STAT(rx_qkey),
		STAT(rx_no_recv),
		STAT(rx_dropped),
		STAT(rx_duplicate),
		STAT(rx_out_of_order),
		STAT(tx_acks),
		STAT(tx_nak_seq),
		STAT(tx_nak_rnr),
		STAT(tx_nak_error),
		STAT(rx_acks),
		STAT(rx_nak_seq),
		STAT(rx_nak_rnr),
		STAT(rx_nak_error),
		STAT(timeouts),
		STAT(retransmitted),
		STAT(read_gaps),
		STAT(no_mbuf),
		STAT(cq_overruns),
		STAT(direct_writes),
		STAT(direct_reads),
		STAT(direct_bytes),
	};
	size_t i;

	for (i = 0; i < RTE_DIM(stats); i++)
		line(t, "stat %s %lu\n", stats[i].name, (unsigned long)stats[i].value);
}

static const char *
type_name(uint32_t type)
{
	switch (type) {
	case VRB_QPT_RC:
		return "RC";
	case VRB_QPT_UC:
		return "UC";
	case VRB_QPT_UD:
		return "UD";
	case VRB_QPT_RAW_PACKET:
		return "RAW";
	case VRB_QPT_XRC_SEND:
		return "XRC-SEND";
	default:
		return "XRC-RECV";
	}
}

static void
add_objects(struct text *t, const struct vrb_figures *f)
{
	static const char *const wq_states[] = {"RESET", "RDY", "ERR"};
	uint32_t i;

	line(t, "objects %u %u %u %u %u %u %u %u\n", f->num_pds, f->num_mrs, f->num_qps, f->num_cqs,
		f->num_srqs, f->num_wqs, f->num_ind_tbls, f->num_flows);
	for (i = 0; i < f->srqs; i++)
		line(t, "srq %u %u %u %u %u %lu\n", f->srq[i].num, f->srq[i].max_wr,
			f->srq[i].posted, f->srq[i].limit, f->srq[i].users,
			(unsigned long)f->srq[i].dry);
	/* The engine has the latest first. */
	for (i = f->cqs; i-- > 0;)
		line(t, "cq %u %u %u %u %d %d\n", f->cq[i].num, f->cq[i].size, f->cq[i].waiting,
			f->cq[i].completions, f->cq[i].armed, f->cq[i].overrun);
	for (i = 0; i < f->wqs; i++)
		line(t, "wq %u %u %u %s\n", f->wq[i].num, f->wq[i].max_wr, f->wq[i].posted,
			wq_states[f->wq[i].state % RTE_DIM(wq_states)]);
	for (i = 0; i < f->qps; i++)
		line(t, "qp %u %s %s %u %u %u\n", f->qp[i].qpn, type_name(f->qp[i].type),
			vrb_state_name((int)f->qp[i].state), f->qp[i].sends, f->qp[i].receives,
			f->qp[i].srq);
}

static void
add_device(struct text *t, struct vrb_nic *nic)
{
	char address[INET6_ADDRSTRLEN] = "";
	struct vrb_nic_info info;
	const uint8_t *gid;

	vrb_nic_query(nic, &info);
	gid = info.gid[0].raw;
	if (IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)gid))
		inet_ntop(AF_INET, gid + 12, address, sizeof(address));
	else
		inet_ntop(AF_INET6, gid, address, sizeof(address));
	line(t, "verbena-figures %d\npid %d\nport %s %s\nsegment %s\naddress %s\n", FORMAT,
		(int)getpid(), info.port_name, info.driver, figures.segment, address);
}

/* ---- who looks ---- */

static bool
is_same_user(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) && cred.uid == geteuid();
}

static void
answer(int fd)
{
	const struct timeval patience = {.tv_sec = WRITE_SECONDS};
	struct vrb_figures *f = calloc(1, sizeof(*f));
	struct text t = {.buf = malloc(TEXT_MAX)};
	size_t done = 0;

	if (f && t.buf) {
		add_device(&t, figures.nic);
		vrb_nic_lock(figures.nic);
		vrb_engine_figures(vrb_nic_engine(figures.nic), f);
		vrb_nic_unlock(figures.nic);
		add_stats(&t, &f->stats);
		add_objects(&t, f);
		line(&t, "end\n");
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		while (done < t.len) {
			ssize_t n = send(fd, t.buf + done, t.len - done, MSG_NOSIGNAL);

			if (n <= 0)
				break;
			done += (size_t)n;
		}
	}
	free(t.buf);
	free(f);
}

static void *
figures_main(void *arg)
{
	int listener = (int)(intptr_t)arg; /* figures.fd is the main thread's */

	for (;;) {
		int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0) {
			if (errno == EBADF || errno == EINVAL)
				return NULL;
			/* No descriptor is left, for example: that may pass. */
			sleep(1);
			continue;
		}
		if (is_same_user(fd))
			answer(fd);
		close(fd);
	}
}

/* ---- the socket ---- */

/* Makes a folder of the user's alone, or finds it so. */
static bool
private_folder(const char *path)
{
	struct stat st;

	if (mkdir(path, 0700) && errno != EEXIST)
		return false;
	return !lstat(path, &st) && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       !(st.st_mode & 077);
}

/* The folder above the segments' (shmlan.rst), and the one of the sockets in it. */
static bool
make_folder(char *path, size_t len)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	struct stat st;
	int n;

	if (runtime && runtime[0] == '/' && !stat(runtime, &st) && S_ISDIR(st.st_mode) &&
		st.st_uid == geteuid())
		n = snprintf(path, len, "%s/verbena", runtime);
	else
		n = snprintf(path, len, "/tmp/verbena-%u", (unsigned int)geteuid());
	if (n < 0 || (size_t)n + sizeof("/.figures/") + 12 > len || !private_folder(path))
		return false;
	strcat(path, "/.figures");
	return private_folder(path);
}

static int
open_socket(void)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};
	int fd;

	if (!make_folder(sa.sun_path, sizeof(sa.sun_path)))
		return -1;
	snprintf(sa.sun_path + strlen(sa.sun_path), 14, "/%d", (int)getpid());
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -1;
	/* Of a process that was killed and had our number. */
	unlink(sa.sun_path);
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) || listen(fd, 4)) {
		close(fd);
		return -1;
	}
	memcpy(figures.path, sa.sun_path, sizeof(figures.path));
	return fd;
}

void
vrb_figures_open(struct vrb_nic *nic, const char *segment)
{
	pthread_t thread;

	figures.nic = nic;
	snprintf(figures.segment, sizeof(figures.segment), "%s", segment ? segment : "default");
	figures.fd = open_socket();
	if (figures.fd < 0) {
		vrb_log(VRB_LOG_INFO, "figures of this process cannot be shown: %s",
			strerror(errno));
		return;
	}
	if (!vrb_thread_create(
		    &thread, "vrb-figures", figures_main, (void *)(intptr_t)figures.fd)) {
		pthread_detach(thread);
		return;
	}
	vrb_figures_close();
}

void
vrb_figures_close(void)
{
	if (figures.fd < 0)
		return;
	unlink(figures.path);
	/* The thread stays in accept(2), or comes back to it, until the process has gone. */
	shutdown(figures.fd, SHUT_RDWR);
	figures.fd = -1;
}

void
vrb_figures_forked(void)
{
	if (figures.fd < 0)
		return;
	close(figures.fd);
	figures.fd = -1;
}
