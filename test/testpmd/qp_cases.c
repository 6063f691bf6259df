/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Queue pairs.
 */
#include "cases.h"

static struct vrb_qp_attr
attr_of(uint32_t id)
{
	struct vrb_qp_attr a;

	tp_lock();
	vrb_qp_query(qp_of(id)->qp, &a);
	tp_unlock();
	return a;
}

static void
create_makes_each_type(void)
{
	run("cq create 1");
	run("cq create 2");
	run("srq create 1");
	run("qp create 1 cq 1 recv-cq 2 srq 1 send-size 10 inline 100 psn 77");
	assert_int_equal(attr_of(1).state, VRB_QPS_INIT);
	assert_int_equal(cq_of(1)->cq->refs, 1);
	assert_int_equal(cq_of(2)->cq->refs, 1);
	assert_int_equal(srq_of(1)->srq->refs, 1);
	assert_true(vrb_qp_sq(qp_of(1)->qp)->max_wr >= 10);
	assert_true(vrb_qp_sq(qp_of(1)->qp)->max_inline >= 100);
	assert_int_equal(qp_of(1)->psn, 77);
	run("qp create 2 type uc cq 1 recv-size 20");
	assert_int_equal(attr_of(2).state, VRB_QPS_INIT);
	assert_true(vrb_qp_rq(qp_of(2)->qp)->max_wr >= 20);
	run("qp create 3 type ud cq 1 qkey 0x1234");
	assert_int_equal(attr_of(3).state, VRB_QPS_RTS);
	assert_int_equal(attr_of(3).qkey, 0x1234);
	run("qp create 4 type raw cq 1");
	assert_int_equal(attr_of(4).state, VRB_QPS_RTS);
	run("wq create 1 cq 1");
	run("ind-table create 1 wqs 1");
	run("qp create 5 type rss ind-table 1 hash src-ipv4,dst-ipv4");
	assert_int_equal(table_of(1)->tbl->refs, 1);
}

static void
create_refuses_what_does_not_fit(void)
{
	create_makes_each_type();
	refuse(-EINVAL, "cq is missing", "qp create 9");
	refuse(-EINVAL, "recv-size and srq exclude each other",
		"qp create 9 cq 1 srq 1 recv-size 5");
	refuse(-EINVAL, "needs an ind-table", "qp create 9 type rss");
	refuse(-EINVAL, "has no cq", "qp create 9 type rss ind-table 1 cq 1");
	refuse(-EINVAL, "key has 2 bytes", "qp create 9 type rss ind-table 1 key 0102");
	refuse(-EINVAL, "hash is for queue pairs of type rss only",
		"qp create 9 cq 1 hash src-ipv4");
	refuse(-EINVAL, "cannot use an srq", "qp create 9 type raw cq 1 srq 1");
	refuse(-EINVAL, "type is one of rc, uc, ud, raw, rss", "qp create 9 cq 1 type xrc");
	assert_null(tp_object_find(TP_QP, 9));
}

static void
connect_to_joins_both(void)
{
	struct vrb_qp_attr a, b;

	make_pair("rc");
	a = attr_of(1);
	b = attr_of(2);
	assert_int_equal(a.state, VRB_QPS_RTS);
	assert_int_equal(b.state, VRB_QPS_RTS);
	assert_int_equal(a.dest_qpn, vrb_qp_num(qp_of(2)->qp));
	assert_int_equal(b.dest_qpn, vrb_qp_num(qp_of(1)->qp));
	assert_int_equal(a.rq_psn, b.sq_psn);
	assert_int_equal(b.rq_psn, a.sq_psn);
	refuse(-EISCONN, "qp 2 is in state rts", "qp connect 1 to 2");
	run("qp create 3 type uc cq 1");
	refuse(-EINVAL, "different types", "qp connect 1 to 3");
	run("qp create 4 type raw cq 1");
	refuse(-EINVAL, "connected to nobody", "qp connect 4 to 4");
	/* With itself. */
	run("qp connect 3 to 3 mtu 512");
	assert_int_equal(attr_of(3).path_mtu, VRB_MTU_512);
	assert_int_equal(attr_of(3).dest_qpn, vrb_qp_num(qp_of(3)->qp));
}

static void
connect_dest_takes_an_address(void)
{
	char gid[64];
	struct tp_device dev;
	struct vrb_qp_attr a;

	tp_device(&dev);
	tp_gid_text(&dev.gid[0], gid);
	run("cq create 1");
	run("qp create 1 cq 1");
	run("qp connect 1 dest %s 0x1234 5678 mtu 1024 timeout 10 retries 3 rnr-retries 2", gid);
	a = attr_of(1);
	assert_int_equal(a.state, VRB_QPS_RTS);
	assert_memory_equal(&a.av.dgid, &dev.gid[0], sizeof(a.av.dgid));
	assert_memory_equal(a.av.dmac, dev.mac, 6);
	assert_int_equal(a.dest_qpn, 0x1234);
	assert_int_equal(a.rq_psn, 5678);
	assert_int_equal(a.path_mtu, VRB_MTU_1024);
	assert_int_equal(a.timeout, 10);
	assert_int_equal(a.retry_cnt, 3);
	assert_int_equal(a.rnr_retry, 2);
	run("qp create 2 cq 1");
	refuse(-EINVAL, "mtu is 256, 512, 1024", "qp connect 2 dest %s 1 1 mtu 1000", gid);
	refuse(-EINVAL, "gid is an IPv4 or IPv6 address", "qp connect 2 dest nobody 1 1");
	refuse(-ERANGE, "psn is from 0 to 16777215", "qp connect 2 dest %s 1 16777216", gid);
	refuse(-EINVAL, "it is no address of this network", "qp connect 2 dest 127.0.0.1 1 1");
	assert_int_equal(attr_of(2).state, VRB_QPS_INIT);
	/* By the link-local address. */
	tp_gid_text(&dev.gid[1], gid);
	run("qp connect 2 dest %s 1 1", gid);
	assert_int_equal(attr_of(2).av.sgid_index, 1);
}

static void
modify_changes_the_state(void)
{
	make_pair("rc");
	run("qp post 1 count 3");
	run("qp modify 1 state sqd");
	assert_int_equal(attr_of(1).state, VRB_QPS_SQD);
	run("qp modify 1 state rts");
	assert_int_equal(attr_of(1).state, VRB_QPS_RTS);
	run("qp modify 1 state error");
	assert_int_equal(attr_of(1).state, VRB_QPS_ERR);
	assert_int_equal(tp_cq_count(cq_of(1)->cq), 3);
	run("qp modify 1 state reset");
	assert_int_equal(attr_of(1).state, VRB_QPS_RESET);
	run("qp modify 1 state init");
	assert_int_equal(attr_of(1).state, VRB_QPS_INIT);
	refuse(-ENOTCONN, "qp 1 has no peer", "qp modify 1 state rts");
	refuse(-EINVAL, "qp 1 does not go from state init to sqd", "qp modify 1 state sqd");
	run("qp modify 2 state reset");
	run("qp modify 2 state init");
	run("qp connect 1 to 2");
	run("sink start 1");
	run("send 2 count 10");
	refuse(-EBUSY, "sink stop 1 first", "qp modify 1 state reset");
}

static void
post_posts_receives(void)
{
	make_pair("rc");
	run("qp post 1 count 5 bytes 100");
	assert_int_equal(vrb_rq_count(vrb_qp_rq(qp_of(1)->qp)), 5);
	refuse(-ENOBUFS, "qp 1 has room for", "qp post 1 count 16000");
	run("srq create 1");
	run("qp create 3 cq 1 srq 1");
	refuse(-EINVAL, "qp 3 receives by srq 1", "qp post 3");
	run("qp modify 2 state error");
	refuse(-EINVAL, "qp 2 is in state error", "qp post 2");
}

static void
check_shown(const char *out, uint32_t id)
{
	struct vrb_qp_attr a = attr_of(id);

	assert_int_equal(number(out, "qpn"), vrb_qp_num(qp_of(id)->qp));
	assert_int_equal(number(out, "psn"), a.sq_psn);
	assert_int_equal(number(out, "peer-qpn"), a.dest_qpn);
	assert_int_equal(number(out, "peer-psn"), a.rq_psn);
	assert_int_equal(number(out, "mtu"), 128u << a.path_mtu);
	assert_int_equal(number(out, "receives"), vrb_rq_count(vrb_qp_rq(qp_of(id)->qp)));
}

static void
show_tells_how_to_connect(void)
{
	char want[128], gid[64];
	struct tp_device dev;
	const char *out;

	make_pair("rc");
	run("qp post 1 count 4");
	tp_device(&dev);
	out = run("qp show 1");
	check_shown(out, 1);
	holds(out, "type rc");
	holds(out, "state rts");
	snprintf(want, sizeof(want), "qp connect <qp> dest %s %#x %u\n",
		tp_gid_text(&dev.gid[0], gid), vrb_qp_num(qp_of(1)->qp), qp_of(1)->psn);
	holds(out, want);
}

static void
show_lists_all(void)
{
	const char *out;

	holds(run("qp show"), "no qp");
	make_pair("uc");
	out = run("qp show");
	check_shown(strstr(out, "qp 1"), 1);
	check_shown(strstr(out, "qp 2"), 2);
}

static void
destroy_frees_what_it_used(void)
{
	make_pair("rc");
	run("sink start 1");
	refuse(-EBUSY, "sink stop 1 first", "qp destroy 1");
	run("send 2 count 10");
	run("sink stop 1");
	/* Completions that nobody has taken belong to nobody. */
	run("qp modify 1 state error");
	assert_true(tp_cq_count(cq_of(1)->cq) > 0);
	run("qp destroy 1");
	assert_null(tp_object_find(TP_QP, 1));
	assert_int_equal(cq_of(1)->cq->refs, 2);
	assert_null(strstr(run("cq poll 1 count 1000"), "qp 1"));
	run("qp destroy 2");
	assert_int_equal(cq_of(1)->cq->refs, 0);
}

static void
create(void)
{
	create_refuses_what_does_not_fit();
}

static const struct tp_case cases[] = {
	{"qp create <qp>", create},
	{"qp connect <qp> to <peer>", connect_to_joins_both},
	{"qp connect <qp> dest <gid> <qpn> <psn>", connect_dest_takes_an_address},
	{"qp modify <qp>", modify_changes_the_state},
	{"qp post <qp>", post_posts_receives},
	{"qp show", show_lists_all},
	{"qp show <qp>", show_tells_how_to_connect},
	{"qp destroy <qp>", destroy_frees_what_it_used},
};

const struct tp_cases qp_cases = TP_CASES(cases);
