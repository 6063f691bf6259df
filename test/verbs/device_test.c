/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device list, contexts, and what the device, its port and their tables report.
 */
#include <endian.h>
#include <fcntl.h>
#include <unistd.h>

#include "verbs_util.h"

static void
list_names_our_device_alone(void **state)
{
	int n = -1;
	struct ibv_device **list = ibv_get_device_list(&n);

	assert_non_null(list);
	assert_int_equal(n, 1);
	assert_string_equal(ibv_get_device_name(list[0]), "vrb0");
	assert_int_equal(list[0]->node_type, IBV_NODE_CA);
	assert_int_equal(list[0]->transport_type, IBV_TRANSPORT_IB);
	assert_null(list[1]);
	ibv_free_device_list(list);
}

static void
guid_is_made_from_the_address(void **state)
{
	struct rig *r = *state;
	struct ibv_device_attr attr;
	uint64_t guid = ibv_get_device_guid(r->ctx->device);

	assert_int_equal(ibv_query_device(r->ctx, &attr), 0);
	assert_int_not_equal(guid, 0);
	assert_int_equal(be64toh(guid) >> 24 & 0xffff, 0xfffe);
	assert_int_equal(attr.node_guid, guid);
	assert_int_equal(attr.sys_image_guid, guid);
}

static void
link_local_gid_ends_in_the_guid(void **state)
{
	struct rig *r = *state;
	union ibv_gid gid;

	assert_int_equal(ibv_query_gid(r->ctx, 1, 1, &gid), 0);
	assert_int_equal(be64toh(gid.global.subnet_prefix), 0xfe80000000000000);
	assert_int_equal(gid.global.interface_id, ibv_get_device_guid(r->ctx->device));
}

static void
first_gid_is_ipv4_mapped(void **state)
{
	static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
	struct rig *r = *state;

	assert_memory_equal(r->gid.raw, prefix, sizeof(prefix));
}

static void
device_opens_twice_with_objects_apart(void **state)
{
	struct rig *r = *state;
	struct ibv_context *other = open_device();

	assert_ptr_not_equal(r->ctx, other);
	assert_int_not_equal(r->ctx->async_fd, other->async_fd);
	expect_null(ibv_create_cq(other, 1, NULL, NULL, 1), EINVAL);
	assert_int_equal(ibv_close_device(other), 0);
}

static void
closing_takes_what_was_left_behind(void **state)
{
	struct rig *r = *state, other = *r;
	struct ibv_qp_cap cap = {
		.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1};
	struct ibv_comp_channel *ch;

	other.ctx = open_device();
	other.pd = ibv_alloc_pd(other.ctx);
	ch = ibv_create_comp_channel(other.ctx);
	other.cq = ibv_create_cq(other.ctx, 1, NULL, ch, 0);
	make_qp(&other, &cap, NULL);
	assert_non_null(ibv_reg_mr(other.pd, r->buf, BUF_SIZE, ALL_ACCESS));
	assert_non_null(ibv_alloc_mw(other.pd, IBV_MW_TYPE_1));
	assert_int_equal(ibv_close_device(other.ctx), 0);
}

static void
descriptors_close_on_exec(void **state)
{
	struct rig *r = *state;

	assert_true(fcntl(r->ctx->async_fd, F_GETFD) & FD_CLOEXEC);
	assert_true(fcntl(r->ctx->cmd_fd, F_GETFD) & FD_CLOEXEC);
}

/* The shortest version of the structure, and one that is longer than today's. */
static void
query_device_ex_honours_the_size(void **state)
{
	struct rig *r = *state;
	struct verbs_context *v = verbs_get_ctx_op(r->ctx, query_device_ex);
	struct {
		struct ibv_device_attr_ex attr;
		char more[32];
	} big;
	const size_t least = offsetof(struct ibv_device_attr_ex, comp_mask) + sizeof(uint32_t);
	size_t i;

	assert_non_null(v);
	memset(&big, 0x5a, sizeof(big));
	assert_int_equal(v->query_device_ex(r->ctx, NULL, &big.attr, sizeof(big)), 0);
	for (i = 0; i < sizeof(big.more); i++)
		assert_int_equal(big.more[i], 0);
	assert_int_equal(big.attr.phys_port_cnt_ex, 1);
	memset(&big, 0x5a, sizeof(big));
	assert_int_equal(v->query_device_ex(r->ctx, NULL, &big.attr, least), 0);
	assert_int_equal(big.attr.orig_attr.phys_port_cnt, 1);
	assert_int_equal(((unsigned char *)&big)[least], 0x5a);
	expect_errno(v->query_device_ex(r->ctx, NULL, &big.attr, least - 1), EINVAL);
}

static void
query_device_ex_refuses_an_unknown_mask(void **state)
{
	struct rig *r = *state;
	struct ibv_query_device_ex_input input = {.comp_mask = 1};
	struct ibv_device_attr_ex attr;

	expect_errno(ibv_query_device_ex(r->ctx, &input, &attr), EINVAL);
}

static void
clock_runs_forward_in_the_unit_that_is_told(void **state)
{
	struct rig *r = *state;
	struct ibv_values_ex before = {.comp_mask = IBV_VALUES_MASK_RAW_CLOCK}, after = before;
	struct ibv_device_attr_ex attr;
	uint64_t ticks;

	assert_int_equal(ibv_query_device_ex(r->ctx, NULL, &attr), 0);
	assert_int_equal(ibv_query_rt_values_ex(r->ctx, &before), 0);
	usleep(10000);
	assert_int_equal(ibv_query_rt_values_ex(r->ctx, &after), 0);
	ticks = (uint64_t)(after.raw_clock.tv_nsec - before.raw_clock.tv_nsec);
	assert_true(ticks >= attr.hca_core_clock * 10);
	before.comp_mask = IBV_VALUES_MASK_RESERVED;
	expect_errno(ibv_query_rt_values_ex(r->ctx, &before), EINVAL);
}

static void
port_is_active_on_ethernet(void **state)
{
	struct rig *r = *state;
	struct ibv_port_attr attr;

	assert_int_equal(ibv_query_port(r->ctx, 1, &attr), 0);
	assert_int_equal(attr.state, IBV_PORT_ACTIVE);
	assert_int_equal(attr.phys_state, 5);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(attr.lid, 0);
	assert_true(attr.flags & IBV_QPF_GRH_REQUIRED);
	assert_in_range(attr.active_mtu, IBV_MTU_256, attr.max_mtu);
	assert_true(attr.gid_tbl_len >= 2);
	assert_true(attr.pkey_tbl_len >= 1);
	assert_true(attr.active_width && attr.active_speed);
}

/* What programs built before 2019 call: a shorter structure. */
static void
old_query_port_writes_no_byte_too_many(void **state)
{
#undef ibv_query_port
	struct rig *r = *state;
	struct ibv_port_attr attr;

	memset(&attr, 0x5a, sizeof(attr));
	assert_int_equal(ibv_query_port(r->ctx, 1, (struct _compat_ibv_port_attr *)&attr), 0);
	assert_int_equal(attr.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(attr.port_cap_flags2, 0x5a5a);
	expect_errno(ibv_query_port(r->ctx, 2, (struct _compat_ibv_port_attr *)&attr), EINVAL);
#define ibv_query_port(context, port_num, port_attr) ___ibv_query_port(context, port_num, port_attr)
}

static void
unknown_ports_and_indices_are_refused(void **state)
{
	struct rig *r = *state;
	struct ibv_port_attr port;
	struct ibv_gid_entry entry;
	union ibv_gid gid;
	__be16 pkey;

	expect_errno(ibv_query_port(r->ctx, 0, &port), EINVAL);
	expect_errno(ibv_query_port(r->ctx, 2, &port), EINVAL);
	expect_minus1(ibv_query_gid(r->ctx, 2, 0, &gid), EINVAL);
	expect_minus1(ibv_query_gid(r->ctx, 1, 1000, &gid), EINVAL);
	expect_minus1(ibv_query_gid(r->ctx, 1, -1, &gid), EINVAL);
	expect_errno(ibv_query_gid_ex(r->ctx, 2, 0, &entry, 0), EINVAL);
	expect_errno(ibv_query_gid_ex(r->ctx, 1, 1000, &entry, 0), EINVAL);
	expect_errno(ibv_query_gid_ex(r->ctx, 1, 0, &entry, 1), EINVAL);
	expect_minus1(ibv_query_pkey(r->ctx, 2, 0, &pkey), ENOENT);
	expect_minus1(ibv_query_pkey(r->ctx, 1, 1000, &pkey), ENOENT);
	expect_minus1(ibv_get_pkey_index(r->ctx, 1, htobe16(0x1234)), ENOENT);
}

static void
gid_table_tells_what_the_single_queries_tell(void **state)
{
	struct rig *r = *state;
	struct ibv_gid_entry table[16], entry;
	ssize_t n, i;

	n = ibv_query_gid_table(r->ctx, table, 16, 0);
	assert_true(n >= 2);
	for (i = 0; i < n; i++) {
		assert_int_equal(
			ibv_query_gid_ex(r->ctx, table[i].port_num, table[i].gid_index, &entry, 0),
			0);
		assert_memory_equal(&entry, &table[i], sizeof(entry));
		assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	}
	assert_int_equal(ibv_query_gid_table(r->ctx, table, 1, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(r->ctx, table, 16, 1), -EINVAL);
}

static void
pkey_is_the_default_one(void **state)
{
	struct rig *r = *state;
	__be16 pkey = 0;

	assert_int_equal(ibv_query_pkey(r->ctx, 1, 0, &pkey), 0);
	assert_int_equal(be16toh(pkey), 0xffff);
	assert_int_equal(ibv_get_pkey_index(r->ctx, 1, pkey), 0);
}

static void
own_gid_resolves_to_own_mac(void **state)
{
	struct rig *r = *state;
	struct ibv_ah_attr attr = {.is_global = 1, .port_num = 1, .grh.dgid = r->gid};
	uint64_t guid = be64toh(ibv_get_device_guid(r->ctx->device));
	uint8_t mac[6];
	uint16_t vid;

	assert_int_equal(ibv_resolve_eth_l2_from_gid(r->ctx, &attr, mac, &vid), 0);
	assert_int_equal(mac[0] ^ 2, guid >> 56);
	assert_int_equal(mac[5], guid & 0xff);
	attr.port_num = 2;
	assert_int_equal(ibv_resolve_eth_l2_from_gid(r->ctx, &attr, mac, &vid), -EINVAL);
}

/* An IPv6 header in the 40 bytes before a datagram. */
static void
address_of_a_sender_comes_out_of_its_header(void **state)
{
	struct rig *r = *state;
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_grh grh = {.version_tclass_flow = htobe32(6u << 28 | 0x12u << 20 | 0x34567),
		.next_hdr = 17,
		.hop_limit = 9,
		.sgid = {.raw = {0xfe, 0x80, [15] = 7}}};
	struct ibv_ah_attr attr;

	assert_int_equal(ibv_query_gid(r->ctx, 1, 1, &grh.dgid), 0);
	assert_int_equal(ibv_init_ah_from_wc(r->ctx, 1, &wc, &grh, &attr), 0);
	assert_int_equal(attr.is_global, 1);
	assert_int_equal(attr.grh.sgid_index, 1);
	assert_int_equal(attr.grh.traffic_class, 0x12);
	assert_int_equal(attr.grh.flow_label, 0x34567);
	assert_int_equal(attr.grh.hop_limit, 9);
	assert_memory_equal(&attr.grh.dgid, &grh.sgid, sizeof(grh.sgid));
	grh.dgid.raw[15] ^= 1;
	expect_minus1(ibv_init_ah_from_wc(r->ctx, 1, &wc, &grh, &attr), EINVAL);
	memset(&grh, 0, sizeof(grh));
	expect_minus1(ibv_init_ah_from_wc(r->ctx, 1, &wc, &grh, &attr), EPROTONOSUPPORT);
}

/* Everything inline in the header goes through these tables, and some of it does not look before it
 * jumps. */
static void
no_operation_is_null(void **state)
{
	struct rig *r = *state;
	void *const *op = (void *const *)&r->ctx->ops;
	struct verbs_context *v = verbs_get_ctx(r->ctx);
	void *const *first = (void *const *)v, *const *last = (void *const *)&v->_ABI_placeholder3;
	size_t i;

	for (i = 0; i < sizeof(r->ctx->ops) / sizeof(*op); i++)
		assert_non_null(op[i]);
	for (; first < last; first++)
		if (first != (void *const *)&v->priv)
			assert_non_null(*first);
	assert_int_equal(v->sz, sizeof(*v));
}

static void
unsupported_calls_say_so(void **state)
{
	struct rig *r = *state;
	struct ibv_sge sge = {0};

	expect_null(ibv_alloc_null_mr(r->pd), EOPNOTSUPP);
	expect_null(ibv_reg_dmabuf_mr(r->pd, 0, 4096, 0, -1, 0), EOPNOTSUPP);
	expect_null(ibv_import_device(r->ctx->cmd_fd), EOPNOTSUPP);
	expect_null(ibv_import_pd(r->ctx, 0), EOPNOTSUPP);
	expect_null(ibv_import_mr(r->pd, 0), EOPNOTSUPP);
	expect_null(ibv_import_dm(r->ctx, 0), EOPNOTSUPP);
	expect_errno(ibv_advise_mr(r->pd, IBV_ADVISE_MR_ADVICE_PREFETCH, 0, &sge, 1), EOPNOTSUPP);
}

static void
fork_needs_no_preparation(void **state)
{
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(list_names_our_device_alone),
		TEST_DEVICE(guid_is_made_from_the_address),
		TEST_DEVICE(link_local_gid_ends_in_the_guid),
		TEST_DEVICE(first_gid_is_ipv4_mapped),
		TEST_DEVICE(device_opens_twice_with_objects_apart),
		TEST_DEVICE(closing_takes_what_was_left_behind),
		TEST_DEVICE(descriptors_close_on_exec),
		TEST_DEVICE(query_device_ex_honours_the_size),
		TEST_DEVICE(query_device_ex_refuses_an_unknown_mask),
		TEST_DEVICE(clock_runs_forward_in_the_unit_that_is_told),
		TEST_DEVICE(port_is_active_on_ethernet),
		TEST_DEVICE(old_query_port_writes_no_byte_too_many),
		TEST_DEVICE(unknown_ports_and_indices_are_refused),
		TEST_DEVICE(gid_table_tells_what_the_single_queries_tell),
		TEST_DEVICE(pkey_is_the_default_one),
		TEST_DEVICE(own_gid_resolves_to_own_mac),
		TEST_DEVICE(address_of_a_sender_comes_out_of_its_header),
		TEST_DEVICE(no_operation_is_null),
		TEST_DEVICE(unsupported_calls_say_so),
		cmocka_unit_test(fork_needs_no_preparation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
