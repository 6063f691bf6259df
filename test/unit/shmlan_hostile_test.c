/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_shmlan against peers that break the rules: in what they say, in the rings that they hand
 * over, and in what they write into them. The test plays the peer itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rte_log.h>

#include "shmlan_conn.h"
#include "shmlan_util.h"

#define SLOTS 64u
#define DATA (64u << 10)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static uint64_t rnd_state = 1;

static uint32_t
rnd(void)
{
	rnd_state = rnd_state * 6364136223846793005ull + 1442695040888963407ull;
	return rnd_state >> 33;
}

static struct shm_port *
port_of(uint16_t port)
{
	return shm_port_of(&rte_eth_devices[port]);
}

static void
exchange(uint16_t from, uint16_t to, uint32_t seq)
{
	struct rte_ether_addr mac = su_mac(to);
	struct rte_mbuf *m;

	uint64_t end = su_now() + SU_PATIENCE;
	bool found = false;

	su_tx(from, su_frame(&mac, from, 200, seq, 1));
	/* What is left of a hostile ring may come before it. */
	while (!found && su_now() < end) {
		if (rte_eth_rx_burst(to, 0, &m, 1) == 0)
			continue;
		found = su_frame_is(m, 200, seq);
		rte_pktmbuf_free(m);
	}
	assert_true(found);
}

/* ---- a sender of our own ---- */

struct fake {
	int sock;
	void *map;
	size_t len;
	struct vrb_ring_tx tx;
};

static int
fake_connect(uint16_t port)
{
	struct shm_port *p = port_of(port);
	int fd = vrb_shmlan_reg_connect(&p->reg, p->reg.slot, p->reg.inc);

	assert_true(fd >= 0);
	return fd;
}

static struct shm_msg
fake_msg(uint16_t port)
{
	return (struct shm_msg){.magic = SHM_MSG_MAGIC,
		.type = SHM_MSG_RING,
		.slot = 900,
		.inc = 1,
		.to = port_of(port)->reg.inc,
		.nslots = SLOTS,
		.dsize = DATA};
}

static int
fake_memfd(size_t len, int seals, void **map)
{
	int fd = memfd_create("fake", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, len), 0);
	*map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_ptr_not_equal(*map, MAP_FAILED);
	if (seals != 0)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void
fake_open(struct fake *f, uint16_t port)
{
	struct shm_msg msg = fake_msg(port), answer;
	struct pollfd p;
	int fd, fds[SHM_MSG_FDS];

	f->len = vrb_ring_bytes(SLOTS, DATA);
	fd = fake_memfd(f->len, SEALS, &f->map);
	assert_int_equal(vrb_ring_tx_init(&f->tx, f->map, SLOTS, DATA), 0);
	f->sock = fake_connect(port);
	assert_int_equal(vrb_shmlan_msg_send(f->sock, &msg, &fd, 1), 0);
	close(fd);
	p = (struct pollfd){.fd = f->sock, .events = POLLIN};
	assert_int_equal(poll(&p, 1, SU_PATIENCE / 1000), 1);
	assert_int_equal(vrb_shmlan_msg_recv(f->sock, &answer, fds), sizeof(answer));
	assert_int_equal(answer.type, SHM_MSG_BELL);
	vrb_shmlan_msg_close_fds(fds);
}

static void
fake_close(struct fake *f)
{
	close(f->sock);
	munmap(f->map, f->len);
	vrb_ring_tx_fini(&f->tx);
}

/* The other side hangs up within a second. */
static bool
hangs_up(int sock)
{
	struct pollfd p = {.fd = sock, .events = POLLIN};
	char buf[64];
	ssize_t n;

	do {
		if (poll(&p, 1, SU_PATIENCE / 1000) != 1)
			return false;
		n = recv(sock, buf, sizeof(buf), MSG_DONTWAIT);
	} while (n > 0);
	return true;
}

/* Reads all frames that the port has; what is delivered is sound, whatever it says. */
static unsigned int
drain(uint16_t port)
{
	struct rte_mbuf *m[32], *s;
	unsigned int i, n, total = 0;

	while ((n = rte_eth_rx_burst(port, 0, m, 32)) != 0) {
		for (i = 0; i < n; i++) {
			uint32_t len = 0, sum = 0, k;

			for (s = m[i]; s != NULL; s = s->next) {
				for (k = 0; k < s->data_len; k++)
					sum += rte_pktmbuf_mtod(s, uint8_t *)[k];
				len += s->data_len;
			}
			assert_int_equal(len, m[i]->pkt_len);
			assert_in_range(len, RTE_ETHER_HDR_LEN, SHM_FRAME_MAX);
			assert_true(m[i]->data_len >= RTE_MIN(len, (uint32_t)VRB_SHMLAN_HDR_COPY));
			total += sum != 1;
		}
		rte_pktmbuf_free_bulk(m, n);
	}
	return total;
}

/* ---- what is said ---- */

static void
senseless_messages_are_hung_up_on(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct shm_msg good = fake_msg(b), msg;
	unsigned int i;
	void *map;
	int fd = fake_memfd(vrb_ring_bytes(SLOTS, DATA), SEALS, &map);
	struct vrb_ring_tx tx;

	assert_int_equal(vrb_ring_tx_init(&tx, map, SLOTS, DATA), 0);
	vrb_ring_tx_fini(&tx);
	for (i = 0; i < 11; i++) {
		int sock = fake_connect(b);

		msg = good;
		switch (i) {
		case 0:
			msg.magic = 0;
			break;
		case 1:
			msg.type = 0;
			break;
		case 2:
			msg.type = SHM_MSG_BELL;
			break;
		case 3:
			msg.to++;
			break;
		case 4:
			msg.slot = VRB_SHMLAN_MEMBERS;
			break;
		case 5:
			msg.nslots = 0;
			break;
		case 6:
			msg.nslots = SLOTS + 1;
			break;
		case 7:
			msg.dsize = 0;
			break;
		case 8:
			msg.nslots = SLOTS * 2;
			break;
		case 9:
			msg.dsize = UINT32_MAX;
			break;
		}
		if (i == 10)
			assert_int_equal(send(sock, "hello", 5, 0), 5);
		else
			assert_int_equal(vrb_shmlan_msg_send(sock, &msg, &fd, 1), 0);
		if (!hangs_up(sock))
			fail_msg("message %u was not refused", i);
		close(sock);
	}
	munmap(map, vrb_ring_bytes(SLOTS, DATA));
	close(fd);
	exchange(a, b, 1);
}

static void
refused(uint16_t port, int fd)
{
	struct shm_msg msg = fake_msg(port);
	int sock = fake_connect(port);

	assert_int_equal(vrb_shmlan_msg_send(sock, &msg, &fd, fd >= 0 ? 1 : 0), 0);
	assert_true(hangs_up(sock));
	close(sock);
}

static void
unsuitable_memory_is_refused(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	size_t len = vrb_ring_bytes(SLOTS, DATA);
	void *map;
	int fd;

	refused(b, -1);
	/* It could be shortened under the receiver. */
	fd = fake_memfd(len, 0, &map);
	refused(b, fd);
	munmap(map, len);
	close(fd);
	fd = fake_memfd(len, F_SEAL_SHRINK | F_SEAL_GROW, &map);
	refused(b, fd);
	munmap(map, len);
	close(fd);
	/* Too short, and too long. */
	fd = fake_memfd(len - 4096, SEALS, &map);
	refused(b, fd);
	munmap(map, len - 4096);
	close(fd);
	fd = fake_memfd(len + 4096, SEALS, &map);
	refused(b, fd);
	munmap(map, len + 4096);
	close(fd);
	/* Not what the header says. */
	fd = fake_memfd(len, SEALS, &map);
	refused(b, fd);
	munmap(map, len);
	close(fd);
	/* No memory at all. */
	fd = open("/dev/null", O_RDWR);
	refused(b, fd);
	close(fd);
	exchange(a, b, 1);
}

static void
descriptors_of_refused_messages_are_closed(void **state)
{
	uint16_t b = su_port(0, "t", NULL);
	char c;
	int p[2];
	unsigned int i;

	for (i = 0; i < 3; i++) {
		assert_int_equal(pipe(p), 0);
		refused(b, p[1]);
		close(p[1]);
		assert_int_equal(read(p[0], &c, 1), 0);
		close(p[0]);
	}
}

static void
answer_without_a_doorbell_is_refused(void **state)
{
	struct shm_msg msg = {.magic = SHM_MSG_MAGIC, .type = SHM_MSG_BELL, .bit = 1};
	struct shm_out out = {.evfd = -1};
	int fds[2], ev = eventfd(0, EFD_NONBLOCK), p[2], i, page;
	void *map;

	assert_int_equal(pipe(p), 0);
	for (i = 0; i < 5; i++) {
		page = fake_memfd(VRB_BELL_BYTES, i == 0 ? 0 : SEALS, &map);
		((struct vrb_bell_page *)map)->magic = i == 1 ? 0 : VRB_BELL_MAGIC;
		fds[0] = page;
		fds[1] = i == 2 ? p[1] : ev; /* writing to a pipe may block, or raise SIGPIPE */
		msg.bit = i == 3 ? VRB_BELL_RINGS : 1;
		assert_int_equal(vrb_shmlan_out_answer(&out, &msg, fds), i == 4 ? 0 : -EPROTO);
		munmap(map, VRB_BELL_BYTES);
		close(page);
	}
	/* Once. */
	fds[1] = ev;
	assert_int_equal(vrb_shmlan_out_answer(&out, &msg, fds), -EPROTO);
	munmap(out.new_page, VRB_BELL_BYTES);
	close(ev);
	close(p[0]);
	close(p[1]);
}

/* ---- what is written ---- */

static void
ring_that_breaks_the_rules_is_closed(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct fake f;
	unsigned int i, k;

	for (i = 0; i < 5; i++) {
		struct vrb_ring_slot *slot;

		fake_open(&f, b);
		slot = f.tx.slots;
		slot->off = i == 3 ? DATA - 64 : 0;
		slot->ctrl = i == 0   ? vrb_ring_ctrl(2, 60, 0, VRB_RING_KIND_INLINE)
			     : i == 1 ? vrb_ring_ctrl(1, 113, 0, VRB_RING_KIND_INLINE)
			     : i == 2 ? vrb_ring_ctrl(1, 9019, 0, VRB_RING_KIND_DATA)
			     : i == 3 ? vrb_ring_ctrl(1, 1000, 0, VRB_RING_KIND_DATA)
				      : vrb_ring_ctrl(1, 13, 0, VRB_RING_KIND_INLINE);
		for (k = 0; k < 1000 && su_xstat(b, "rx_bad_ring") == i; k++) {
			assert_int_equal(drain(b), 0);
			usleep(100);
		}
		assert_int_equal(su_xstat(b, "rx_bad_ring"), i + 1);
		assert_true(hangs_up(f.sock));
		fake_close(&f);
		exchange(a, b, i);
	}
}

/* A ring with some sound frames, and then damaged at random. */
static void
damage(struct fake *f, unsigned int n)
{
	uint32_t *words = f->map;
	uint8_t frame[SHM_FRAME_MAX];
	unsigned int i;

	for (i = 0; i < n; i++) {
		struct vrb_ring_slot *slot = &f->tx.slots[(f->tx.tail + rnd() % 4) & (SLOTS - 1)];
		uint32_t len = rnd() % 4 == 0 ? rnd() % 65536 : 14 + rnd() % 9000;

		switch (rnd() % 8) {
		case 0:
			words[rnd() % (f->len / 4)] = rnd();
			break;
		case 1:
			slot->off = rnd() % (2 * DATA) & ~63u;
			break;
		case 2:
			slot->ctrl =
				vrb_ring_ctrl(f->tx.tail + 1 + rnd() % 3, len, rnd(), rnd() % 4);
			break;
		default:
			len = RTE_MIN(len, (uint32_t)SHM_FRAME_MAX);
			memset(frame, rnd(), len);
			if (vrb_ring_tx_room(&f->tx, len) == 0) {
				vrb_ring_tx_put(&f->tx, frame, len, rnd());
				vrb_ring_tx_publish(&f->tx);
			}
		}
	}
}

static void
garbage(const char *args)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", args);
	unsigned int round, step, delivered = 0;
	struct fake f;

	assert_int_equal(rte_eth_promiscuous_enable(b), 0);
	for (round = 0; round < 200; round++) {
		fake_open(&f, b);
		for (step = 0; step < 20; step++) {
			damage(&f, 1 + rnd() % 8);
			delivered += drain(b);
		}
		fake_close(&f);
		exchange(a, b, round);
	}
	assert_true(delivered > 1000);
	assert_in_range(su_xstat(b, "rx_bad_ring"), 50, 200);
}

static void
garbage_is_survived(void **state)
{
	garbage(NULL);
}

static void
garbage_is_survived_without_copy(void **state)
{
	garbage("rx_zc=1");
}

static void
garbage_in_a_doorbell_page_is_survived(void **state)
{
	uint16_t a = su_port(0, "t", NULL), b = su_port(1, "t", NULL);
	struct vrb_bell_page *page = port_of(b)->bell->page;
	unsigned int i, k;

	for (i = 0; i < 300; i++) {
		atomic_store(&page->attention, rnd());
		for (k = 0; k < VRB_BELL_WORDS; k++)
			atomic_store(&page->pending[k], (uint64_t)rnd() << 33 ^ rnd());
		exchange(a, b, i);
	}
	assert_int_equal(rte_eth_dev_rx_intr_disable(b, 0), 0);
}

/* A receiver that claims to have read what was never sent: its sender hangs up, and goes on with
 * others. */
static void
receiver_that_breaks_the_rules_is_dropped(void **state)
{
	uint16_t a = su_port(0, "t", "slots=32"), b = su_port(1, "t", NULL),
		 c = su_port(2, "t", NULL);
	struct rte_ether_addr mac = su_mac(b);
	struct shm_out *out;
	struct rte_mbuf *m;
	unsigned int i;

	exchange(a, b, 1);
	out = port_of(a)->tx.outs[port_of(b)->reg.slot];
	assert_non_null(out);
	atomic_store(&out->r.hdr->head, 1000);
	for (i = 0; i < 40; i++)
		su_tx(a, su_frame(&mac, a, 60, i, 1));
	assert_int_equal(su_xstat(a, "tx_bad_ring"), 1);
	exchange(a, c, 2);
	while (rte_eth_rx_burst(b, 0, &m, 1) == 1)
		rte_pktmbuf_free(m);
	/* After a while it gets another chance. */
	usleep(150000);
	while (rte_eth_rx_burst(b, 0, &m, 1) == 1)
		rte_pktmbuf_free(m);
	exchange(a, b, 3);
}

static int
close_ports(void **state)
{
	su_close_all();
	assert_int_equal(rte_mempool_avail_count(su_pool()), SU_POOL_SIZE);
	assert_int_equal(su_dir_entries("t"), 0);
	return 0;
}

#define TEST(name) cmocka_unit_test_teardown(name, close_ports)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(senseless_messages_are_hung_up_on),
		TEST(unsuitable_memory_is_refused),
		TEST(descriptors_of_refused_messages_are_closed),
		TEST(answer_without_a_doorbell_is_refused),
		TEST(ring_that_breaks_the_rules_is_closed),
		TEST(garbage_is_survived),
		TEST(garbage_is_survived_without_copy),
		TEST(garbage_in_a_doorbell_page_is_survived),
		TEST(receiver_that_breaks_the_rules_is_dropped),
	};

	su_eal_init();
	/* What is logged here is what is expected. */
	rte_log_set_level(vrb_shmlan_logtype, RTE_LOG_CRIT);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
