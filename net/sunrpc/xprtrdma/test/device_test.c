// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of conn/: what is used of a device, and how it goes away. A copy of device.c is
 * compiled here, because the RDMA core does not know the devices of this file.
 */
#define pr_fmt(fmt) "rpcrdma: " fmt

#include <kunit/test.h>
#include <linux/dma-map-ops.h>
#include <linux/sizes.h>

/* The names of the copy */
#define rpcrdma_device_attach		device_test_attach
#define rpcrdma_device_detach		device_test_detach
#define rpcrdma_device_map_buffer	device_test_map_buffer
#define rpcrdma_devices			device_test_devices
#define rpcrdma_devices_lock		device_test_devices_lock
#define rpcrdma_device_client		device_test_client

#include "../conn/conn_private.h"

#define DEVICES		3

/* Tests run one at a time. */
static struct ib_device *ibs;
static struct rpcrdma_device *client_data[DEVICES];

static void set_client_data(struct ib_device *ib, struct ib_client *client, void *data)
{
	client_data[ib - ibs] = data;
}

static void *get_client_data(struct ib_device *ib, struct ib_client *client)
{
	return client_data[ib - ibs];
}

#define ib_set_client_data	set_client_data
#define ib_get_client_data	get_client_data

#include "../conn/device.c"

static int devices_make(struct kunit *test)
{
	unsigned int i;

	ibs = kunit_kcalloc(test, DEVICES, sizeof(*ibs), GFP_KERNEL);
	if (!ibs)
		return -ENOMEM;
	for (i = 0; i < DEVICES; i++) {
		ibs[i].attrs.device_cap_flags = IB_DEVICE_MEM_MGT_EXTENSIONS;
		ibs[i].attrs.max_fast_reg_page_list_len = 1;
		ibs[i].attrs.page_size_cap = PAGE_SIZE;
	}
	return 0;
}

struct limit_row {
	const char *name;
	struct ib_device_attr attrs;
	unsigned int mr_pages;
	unsigned int served;
	unsigned int issued;
};

#define MIB_PAGES	(SZ_1M / PAGE_SIZE)

static const struct limit_row limit_rows[] = {
	{ "a MiB is enough", { .max_fast_reg_page_list_len = 65536 }, MIB_PAGES },
	{ "a small page list", { .max_fast_reg_page_list_len = 16 }, 16 },
	{ "small registrations",
	  { .max_fast_reg_page_list_len = 16, .max_mr_size = 4 * PAGE_SIZE }, 4 },
	{ "large registrations",
	  { .max_fast_reg_page_list_len = 16, .max_mr_size = U64_MAX }, 16 },
	{ "many Reads", { .max_qp_rd_atom = 128, .max_qp_init_rd_atom = 255 }, 0, 32, 32 },
	{ "few Reads", { .max_qp_rd_atom = 16, .max_qp_init_rd_atom = 1 }, 0, 16, 1 },
	{ "no Reads", {} },
};

KUNIT_ARRAY_PARAM_DESC(limit, limit_rows, name);

static void test_limits(struct kunit *test)
{
	const struct limit_row *row = test->param_value;
	struct rpcrdma_device device = { .ib = &ibs[0] };

	ibs[0].attrs = row->attrs;
	device_limits(&device);
	KUNIT_EXPECT_EQ(test, device.max_mr_pages, row->mr_pages);
	KUNIT_EXPECT_EQ(test, device.max_read_responder, row->served);
	KUNIT_EXPECT_EQ(test, device.max_read_initiator, row->issued);
}

/* It has to register pages as large as the kernel's. */
static void test_page_size(struct kunit *test)
{
	struct rpcrdma_device device = { .ib = &ibs[0] };

	device_limits(&device);
	KUNIT_EXPECT_TRUE(test, device.usable);
	ibs[0].attrs.page_size_cap = ~(u64)PAGE_SIZE;
	device_limits(&device);
	KUNIT_EXPECT_FALSE(test, device.usable);
}

/* The driver of hns cannot invalidate, as a client has to. */
static void test_no_clients(struct kunit *test)
{
	struct rdma_cm_id id = { .device = &ibs[0] };
	unsigned int server;

	ibs[0].ops.driver_id = RDMA_DRIVER_HNS;
	KUNIT_ASSERT_EQ(test, device_add_one(&ibs[0]), 0);
	for (server = 0; server <= 1; server++) {
		struct rpcrdma_conn *conn = rpcrdma_conn_alloc(server);

		KUNIT_ASSERT_NOT_NULL(test, conn);
		conn->cm_id = &id;
		KUNIT_EXPECT_EQ(test, rpcrdma_device_attach(conn), server ? 0 : -ENODEV);
		conn->cm_id = NULL;
		rpcrdma_conn_close(conn, -ESHUTDOWN);
		flush_workqueue(rpcrdma_teardown_wq);
		rpcrdma_conn_put(conn);
	}
	device_remove_one(&ibs[0], client_data[0]);
}

static size_t mapping_size;

static size_t max_mapping_size(struct device *parent)
{
	return mapping_size;
}

static const struct dma_map_ops limiting_ops = { .max_mapping_size = max_mapping_size };

/* Both the device and bouncing have a limit for an element of a scatterlist. */
static void test_max_sg_len(struct kunit *test)
{
	struct device_dma_parameters limits = { .max_segment_size = 4 * PAGE_SIZE };
	struct device *parent = kunit_kzalloc(test, sizeof(*parent), GFP_KERNEL);

	if (!IS_ENABLED(CONFIG_ARCH_HAS_DMA_OPS))
		kunit_skip(test, "devices have no DMA operations of their own here");
	KUNIT_ASSERT_NOT_NULL(test, parent);
	parent->dma_mask = &parent->coherent_dma_mask;
	parent->dma_parms = &limits;
	set_dma_ops(parent, &limiting_ops);
	ibs[0].dma_device = parent;
	mapping_size = 2 * PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, device_max_sg_len(&ibs[0]), 2 * PAGE_SIZE);
	mapping_size = 8 * PAGE_SIZE;
	KUNIT_EXPECT_EQ(test, device_max_sg_len(&ibs[0]), 4 * PAGE_SIZE);
	mapping_size = 1;
	KUNIT_EXPECT_EQ(test, device_max_sg_len(&ibs[0]), PAGE_SIZE);
}

/* The list is in the order of the numbers, and has each device until it is removed. */
static void test_device_list(struct kunit *test)
{
	struct rpcrdma_device *device;
	unsigned int i, listed = 0;
	u32 last = 0;

	for (i = 0; i < DEVICES; i++)
		KUNIT_ASSERT_EQ(test, device_add_one(&ibs[i]), 0);
	list_for_each_entry(device, &rpcrdma_devices, all) {
		listed = listed * 10 + (device->ib - ibs) + 1;
		KUNIT_EXPECT_GT(test, device->id, last);
		last = device->id;
	}
	KUNIT_EXPECT_EQ(test, listed, 123);
	for (i = 0; i < DEVICES; i++)
		device_remove_one(&ibs[i], client_data[i]);
	KUNIT_EXPECT_TRUE(test, list_empty(&rpcrdma_devices));
}

/* Removing a device ends its connections, and none can attach to it afterwards. */
static void test_device_removed(struct kunit *test)
{
	struct rpcrdma_conn *conn = rpcrdma_conn_alloc(false);
	struct rdma_cm_id id = { .device = &ibs[0] };

	KUNIT_ASSERT_NOT_NULL(test, conn);
	strscpy(conn->peer, "KUnit", sizeof(conn->peer));
	KUNIT_ASSERT_EQ(test, device_add_one(&ibs[0]), 0);
	conn->cm_id = &id;
	KUNIT_EXPECT_EQ(test, rpcrdma_device_attach(conn), 0);
	conn->cm_id = NULL;
	KUNIT_EXPECT_PTR_EQ(test, conn->device, client_data[0]);
	device_remove_one(&ibs[0], client_data[0]);
	flush_workqueue(rpcrdma_teardown_wq);
	KUNIT_EXPECT_EQ(test, conn->state, RPCRDMA_STATE_CLOSED);
	KUNIT_EXPECT_EQ(test, conn->status, -ENODEV);
	KUNIT_EXPECT_NULL(test, conn->device);
	conn->cm_id = &id;
	KUNIT_EXPECT_EQ(test, rpcrdma_device_attach(conn), -ENODEV);
	KUNIT_EXPECT_NULL(test, conn->device);
	conn->cm_id = NULL;
	rpcrdma_conn_put(conn);
}

static struct kunit_case device_cases[] = {
	KUNIT_CASE_PARAM(test_limits, limit_gen_params),
	KUNIT_CASE(test_page_size),
	KUNIT_CASE(test_no_clients),
	KUNIT_CASE(test_max_sg_len),
	KUNIT_CASE(test_device_list),
	KUNIT_CASE(test_device_removed),
	{}
};

static struct kunit_suite device_suite = {
	.name = "rpcrdma_device",
	.init = devices_make,
	.test_cases = device_cases,
};

kunit_test_suites(&device_suite);
