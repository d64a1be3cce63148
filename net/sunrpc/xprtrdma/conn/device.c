// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Devices: what they can do, what happens when one is removed, and buffers that are
 * mapped for them.
 */
#define pr_fmt(fmt) "rpcrdma: " fmt

#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "conn_private.h"

/* The pages of a MiB, the largest payload of most NFS peers. More would rarely be used. */
#define MR_PAGES_MAX	((1U << 20) >> PAGE_SHIFT)

/*
 * Protects the list, and the client data of ib_devices: who reads it takes a reference under
 * this lock.
 */
DEFINE_MUTEX(rpcrdma_devices_lock);
LIST_HEAD(rpcrdma_devices);
static u32 device_last_id;

/* A bounce buffer has a limit of its own; in a confidential guest all memory is bounced. */
static unsigned int device_max_sg_len(struct ib_device *ib)
{
	size_t len = ib_dma_max_seg_size(ib);

	if (!ib_uses_virt_dma(ib))
		len = min(len, dma_max_mapping_size(ib->dma_device));
	return max(len, PAGE_SIZE);
}

/* Some devices register less memory at once than their page lists have space for. */
static unsigned int device_max_mr_pages(const struct ib_device_attr *attrs)
{
	u64 pages = min(attrs->max_fast_reg_page_list_len, MR_PAGES_MAX);

	if (!attrs->max_mr_size)	/* not told */
		return pages;
	return clamp_t(u64, attrs->max_mr_size >> PAGE_SHIFT, 1, pages);
}

static void device_limits(struct rpcrdma_device *device)
{
	const struct ib_device_attr *attrs = &device->ib->attrs;
	bool gaps = attrs->kernel_cap_flags & IBK_SG_GAPS_REG;

	/* Some register no pages of 64 KiB, and their drivers do not notice. */
	device->usable = attrs->device_cap_flags & IB_DEVICE_MEM_MGT_EXTENSIONS &&
			 attrs->max_fast_reg_page_list_len && attrs->page_size_cap & PAGE_SIZE;
	/* Its driver posts registrations, but no invalidations, and no attribute tells. */
	device->no_clients = device->ib->ops.driver_id == RDMA_DRIVER_HNS;
	device->max_mr_pages = device_max_mr_pages(attrs);
	device->max_sg_len = device_max_sg_len(device->ib);
	device->mr_type = gaps ? IB_MR_TYPE_SG_GAPS : IB_MR_TYPE_MEM_REG;
	device->max_read_responder = min_t(u32, attrs->max_qp_rd_atom, RPCRDMA_READS_MAX);
	device->max_read_initiator = min_t(u32, attrs->max_qp_init_rd_atom, RPCRDMA_READS_MAX);
}

static int device_add_one(struct ib_device *ib)
{
	struct rpcrdma_device *device;

	device = kzalloc(sizeof(*device), GFP_KERNEL);
	if (!device) {
		/* The RDMA core does not call ->add for it again. */
		pr_err("%s: not usable: no memory; load the module again\n", ib->name);
		return -ENOMEM;
	}
	device->ib = ib;
	device_limits(device);
	if (!device->usable)
		pr_err("%s: not usable: no memory management extensions for pages of %lu octets\n",
		       ib->name, PAGE_SIZE);
	else if (device->no_clients)
		pr_notice("%s: not usable by clients: its driver invalidates no registrations\n",
			  ib->name);
	kref_init(&device->ref);
	spin_lock_init(&device->lock);
	INIT_LIST_HEAD(&device->conns);
	init_completion(&device->unused);
	mutex_init(&device->shared_lock);
	INIT_LIST_HEAD(&device->shared);

	mutex_lock(&rpcrdma_devices_lock);
	device->id = ++device_last_id;
	list_add_tail(&device->all, &rpcrdma_devices);
	ib_set_client_data(ib, &rpcrdma_device_client, device);
	mutex_unlock(&rpcrdma_devices_lock);
	return 0;
}

static void device_unused(struct kref *ref)
{
	complete(&container_of(ref, struct rpcrdma_device, ref)->unused);
}

/*
 * Close all connections of the device and wait for their teardowns. This does not wait
 * for roles: what a role still owns then is plain memory.
 */
static void device_remove_one(struct ib_device *ib, void *client_data)
{
	struct rpcrdma_device *device = client_data;
	struct rpcrdma_conn *conn;

	mutex_lock(&rpcrdma_devices_lock);
	list_del(&device->all);
	ib_set_client_data(ib, &rpcrdma_device_client, NULL);
	mutex_unlock(&rpcrdma_devices_lock);

	/* No other connection is attached any more. */
	spin_lock_bh(&device->lock);
	list_for_each_entry(conn, &device->conns, device_list)
		rpcrdma_conn_close(conn, -ENODEV);
	spin_unlock_bh(&device->lock);

	kref_put(&device->ref, device_unused);
	wait_for_completion(&device->unused);
	rpcrdma_shared_stop(device);
	/* A connection that the device did not stop keeps its shared queue for good. */
	if (list_empty(&device->shared))
		kfree(device);
}

/* For all devices that exist or are added later */
struct ib_client rpcrdma_device_client = {
	.name = "rpcrdma",
	.add = device_add_one,
	.remove = device_remove_one,
};

/*
 * Give a connection a reference to its device. conn->cm_id keeps the ib_device in place
 * meanwhile. Return: -ENODEV if the device is not usable by this end or is being removed.
 */
int rpcrdma_device_attach(struct rpcrdma_conn *conn)
{
	struct rpcrdma_device *device;

	mutex_lock(&rpcrdma_devices_lock);
	device = ib_get_client_data(conn->cm_id->device, &rpcrdma_device_client);
	if (device && device->usable && (conn->server || !device->no_clients)) {
		kref_get(&device->ref);
		conn->device = device;
		spin_lock_bh(&device->lock);
		list_add_tail(&conn->device_list, &device->conns);
		spin_unlock_bh(&device->lock);
	}
	mutex_unlock(&rpcrdma_devices_lock);
	return conn->device ? 0 : -ENODEV;
}

/* The connection has no verbs resources any more, and perhaps no device. */
void rpcrdma_device_detach(struct rpcrdma_conn *conn)
{
	struct rpcrdma_device *device = conn->device;

	if (!device)
		return;
	conn->device = NULL;
	spin_lock_bh(&device->lock);
	list_del(&conn->device_list);
	spin_unlock_bh(&device->lock);
	kref_put(&device->ref, device_unused);
}

/*
 * Allocate a buffer, map it for the device, and let @sge describe it. Return: NULL, or the
 * buffer, for kfree() after the end of its mapping; for a Receive see recv_unmap().
 */
void *rpcrdma_device_map_buffer(struct ib_pd *pd, struct ib_sge *sge, u32 size,
				enum dma_data_direction direction, gfp_t gfp)
{
	struct ib_device *ib = pd->device;
	void *buffer = kmalloc_node(size, gfp, ibdev_to_node(ib));

	if (!buffer)
		return NULL;
	sge->addr = ib_dma_map_single(ib, buffer, size, direction);
	if (ib_dma_mapping_error(ib, sge->addr)) {
		kfree(buffer);
		return NULL;
	}
	sge->length = size;
	sge->lkey = pd->local_dma_lkey;
	return buffer;
}
