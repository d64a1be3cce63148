// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The device: its life, what it reports about itself and its port, and the table of its
 * operations.
 *
 * Its parent is a platform device, so that addresses in work requests are DMA addresses,
 * with bounce buffers if the kernel wants them. With dma=0, or if the kernel has no DMA
 * for such a device, they are virtual addresses instead, as those of rxe and siw are.
 */
#include <linux/dma-mapping.h>
#include <linux/inetdevice.h>
#include <linux/module.h>
#include <linux/random.h>
#include <net/addrconf.h>
#include <rdma/ib_mad.h>
#include <rdma/iw_cm.h>

#include "mem.h"

static bool dma = true;
module_param(dma, bool, 0644);
MODULE_PARM_DESC(dma, "devices have a parent that does DMA (default: yes)");

static unsigned int dma_bits = 64;
module_param(dma_bits, uint, 0644);
MODULE_PARM_DESC(dma_bits, "how many bits its DMA addresses have (default: 64)");

static bool own_lkeys;
module_param(own_lkeys, bool, 0644);
MODULE_PARM_DESC(own_lkeys, "no local_dma_lkey: protection domains have their own (default: no)");

static bool fast_reg = true;
module_param(fast_reg, bool, 0644);
MODULE_PARM_DESC(fast_reg, "report that it registers memory by work request (default: yes)");

static bool checksums = true;
module_param(checksums, bool, 0644);
MODULE_PARM_DESC(checksums, "check that posted buffers do not change and are synced (default: yes)");

static unsigned int burst = 256 * 1024;
module_param(burst, uint, 0644);
MODULE_PARM_DESC(burst, "octets that a queue pair copies while others wait (default: 262144)");

static unsigned int max_lines = 100;
module_param(max_lines, uint, 0644);
MODULE_PARM_DESC(max_lines, "violations that a device prints (default: 100)");

/*
 * All devices. A network interface may have devices of other drivers beside one of these,
 * so ib_device_get_by_netdev() does not serve.
 */
static LIST_HEAD(mem_devs);
static DEFINE_MUTEX(mem_devs_lock);

static struct mem_dev *mem_dev_of(struct net_device *ndev)
{
	struct mem_dev *dev;

	lockdep_assert_held(&mem_devs_lock);
	list_for_each_entry(dev, &mem_devs, entry)
		if (dev->ndev == ndev)
			return dev;
	return NULL;
}

static int mem_query_device(struct ib_device *ib, struct ib_device_attr *attr,
			    struct ib_udata *udata)
{
	struct mem_dev *dev = to_mem_dev(ib);

	memset(attr, 0, sizeof(*attr));
	attr->page_size_cap = ~(u64)(PAGE_SIZE - 1) & GENMASK_ULL(30, 0);
	attr->vendor_id = 0x4d454d;
	attr->max_cq = INT_MAX;
	attr->max_pd = INT_MAX;
	attr->max_ah = INT_MAX;
	attr->max_res_rd_atom = INT_MAX;
	attr->max_pkeys = 1;
	attr->cq_caps.max_cq_moderation_count = U16_MAX;
	attr->cq_caps.max_cq_moderation_period = U16_MAX;
	attr->device_cap_flags = IB_DEVICE_PORT_ACTIVE_EVENT | IB_DEVICE_SYS_IMAGE_GUID;
	if (!dev->limits.iwarp)
		attr->device_cap_flags |= IB_DEVICE_RC_RNR_NAK_GEN;
	if (dev->fast_reg)
		attr->device_cap_flags |= IB_DEVICE_MEM_MGT_EXTENSIONS;
	attr->sys_image_guid = ib->node_guid;
	attr->kernel_cap_flags = IBK_ALLOW_USER_UNREG;
	if (!dev->own_lkeys)
		attr->kernel_cap_flags |= IBK_LOCAL_DMA_LKEY;
	mem_limits_apply(dev, attr);
	return 0;
}

static int mem_query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	bool up = READ_ONCE(to_mem_dev(ib)->port_up);
	bool iwarp = to_mem_dev(ib)->limits.iwarp;

	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->gid_tbl_len = iwarp ? 1 : 256;
	attr->pkey_tbl_len = iwarp ? 0 : 1;
	attr->max_msg_sz = 1U << 31;
	attr->max_vl_num = 1;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_HDR;
	attr->state = up ? IB_PORT_ACTIVE : IB_PORT_DOWN;
	attr->phys_state = up ? IB_PORT_PHYS_STATE_LINK_UP :
				IB_PORT_PHYS_STATE_DISABLED;
	return 0;
}

static int mem_port_immutable(struct ib_device *ib, u32 port,
			      struct ib_port_immutable *immutable)
{
	bool iwarp = to_mem_dev(ib)->limits.iwarp;
	struct ib_port_attr attr = {};
	/* Not ib_query_port(): it asks for the port's protocol, which is only told here. */
	int ret = mem_query_port(ib, port, &attr);

	if (ret)
		return ret;
	immutable->core_cap_flags = iwarp ? RDMA_CORE_PORT_IWARP :
					    RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	immutable->pkey_tbl_len = attr.pkey_tbl_len;
	immutable->gid_tbl_len = attr.gid_tbl_len;
	immutable->max_mad_size = iwarp ? 0 : IB_MGMT_MAD_SIZE;
	return 0;
}

static int mem_query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

static enum rdma_link_layer mem_link_layer(struct ib_device *ib, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}

/* ib_core offers a device to the kernel only if it has this. Users get no memory. */
static struct ib_mr *mem_reg_user_mr(struct ib_pd *pd, MEM_REG_USER_MR_ARGS,
				     struct ib_udata *udata)
{
	return ERR_PTR(-EOPNOTSUPP);
}

/* Tell the users of a device when its port goes up or down. */
static void mem_port_update(struct mem_dev *dev)
{
	bool up = netif_running(dev->ndev) && netif_carrier_ok(dev->ndev);
	struct ib_event event = {
		.device = &dev->ib,
		.element.port_num = 1,
		.event = up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR,
	};

	if (dev->port_up == up)
		return;
	WRITE_ONCE(dev->port_up, up);
	mem_count(dev, MEM_STAT_ASYNC_EVENTS);
	ib_dispatch_event(&event);
}

/**
 * mem_netdev_changed - a network interface goes up or down, or has got a device
 * @ndev: the interface
 *
 * Context: process context; RTNL may be held.
 */
void mem_netdev_changed(struct net_device *ndev)
{
	struct mem_dev *dev;

	mutex_lock(&mem_devs_lock);
	dev = mem_dev_of(ndev);
	if (dev && ib_device_try_get(&dev->ib)) {
		mem_port_update(dev);
		ib_device_put(&dev->ib);
	}
	mutex_unlock(&mem_devs_lock);
}

/**
 * mem_netdev_gone - a network interface is removed, and so is its device
 * @ndev: the interface
 *
 * Context: process context, RTNL is held.
 */
void mem_netdev_gone(struct net_device *ndev)
{
	struct mem_dev *dev;

	mutex_lock(&mem_devs_lock);
	dev = mem_dev_of(ndev);
	if (dev && ib_device_try_get(&dev->ib)) {
		ib_unregister_device_queued(&dev->ib);
		ib_device_put(&dev->ib);
	}
	mutex_unlock(&mem_devs_lock);
}

/* The last that happens to a device, or to one that was not registered. */
static void mem_dealloc_driver(struct ib_device *ib)
{
	struct mem_dev *dev = to_mem_dev(ib);

	mutex_lock(&mem_devs_lock);
	list_del(&dev->entry);
	mutex_unlock(&mem_devs_lock);
	mem_check_left(dev);
	mem_debugfs_remove(dev);
	mem_fault_free(dev);
	if (dev->parent)
		platform_device_unregister(dev->parent);
	xa_destroy(&dev->mrs);
	xa_destroy(&dev->maps);
	free_percpu(dev->stats);
}

static const struct ib_device_ops mem_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = 1,

	.alloc_mr = mem_alloc_mr,
	.alloc_pd = mem_alloc_pd,
	.create_ah = mem_create_ah,
	.create_cq = mem_create_cq,
	.create_qp = mem_create_qp,
	.dealloc_driver = mem_dealloc_driver,
	.dealloc_pd = mem_dealloc_pd,
	.dereg_mr = mem_dereg_mr,
	.destroy_ah = mem_destroy_ah,
	.destroy_cq = mem_destroy_cq,
	.destroy_qp = mem_destroy_qp,
	.get_dma_mr = mem_get_dma_mr,
	.get_link_layer = mem_link_layer,
	.get_port_immutable = mem_port_immutable,
	.map_mr_sg = mem_map_mr_sg,
	.modify_cq = mem_modify_cq,
	.modify_qp = mem_modify_qp,
	.poll_cq = mem_poll_cq,
	.post_recv = mem_post_recv,
	.post_send = mem_post_send,
	.query_device = mem_query_device,
	.query_pkey = mem_query_pkey,
	.query_port = mem_query_port,
	.query_qp = mem_query_qp,
	.reg_user_mr = mem_reg_user_mr,
	.req_notify_cq = mem_req_notify_cq,

	INIT_RDMA_OBJ_SIZE(ib_ah, mem_ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, mem_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, mem_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, mem_qp, ib),
};

static const struct ib_device_ops mem_srq_ops = {
	.create_srq = mem_create_srq,
	.destroy_srq = mem_destroy_srq,
	.modify_srq = mem_modify_srq,
	.post_srq_recv = mem_post_srq_recv,
	.query_srq = mem_query_srq,

	INIT_RDMA_OBJ_SIZE(ib_srq, mem_srq, ib),
};

static const struct ib_device_ops mem_iw_ops = {
	.iw_accept = mem_iw_accept,
	.iw_add_ref = mem_iw_add_ref,
	.iw_connect = mem_iw_connect,
	.iw_create_listen = mem_iw_create_listen,
	.iw_destroy_listen = mem_iw_destroy_listen,
	.iw_get_qp = mem_iw_get_qp,
	.iw_reject = mem_iw_reject,
	.iw_rem_ref = mem_iw_rem_ref,
	.query_gid = mem_iw_query_gid,
};

static int mem_parent_add(struct mem_dev *dev)
{
	struct platform_device *parent;

	parent = platform_device_register_simple("rdma_mem", PLATFORM_DEVID_AUTO, NULL, 0);
	if (IS_ERR(parent))
		return PTR_ERR(parent);
	dev->parent = parent;
	/* Bounce buffers of dma.c may have any address. */
	if (dev->checksums && dma_bits == 64)
		mem_map_init(dev);
	if (dma_set_mask_and_coherent(&parent->dev, DMA_BIT_MASK(dma_bits)))
		return -EINVAL;
	dma_set_max_seg_size(&parent->dev, UINT_MAX);
	return 0;
}

static void mem_gone(struct work_struct *work)
{
	struct mem_dev *dev = container_of(work, struct mem_dev, gone_work);

	ib_unregister_device_and_put(&dev->ib);
}

/* What mem_dealloc_driver() needs, however far mem_device_add() comes */
static void mem_device_prepare(struct mem_dev *dev)
{
	INIT_LIST_HEAD(&dev->entry);
	spin_lock_init(&dev->wire_lock);
	spin_lock_init(&dev->fault_lock);
	spin_lock_init(&dev->qps_lock);
	INIT_LIST_HEAD(&dev->faults);
	INIT_LIST_HEAD(&dev->qps);
	INIT_WORK(&dev->gone_work, mem_gone);
	xa_init_flags(&dev->mrs, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_BH);
	xa_init_flags(&dev->maps, XA_FLAGS_LOCK_IRQ);
}

static int mem_device_init(struct mem_dev *dev, struct net_device *ndev)
{
	struct ib_device *ib = &dev->ib;
	int ret;

	atomic_set(&dev->lines, max_lines);
	dev->own_lkeys = own_lkeys;
	dev->fast_reg = fast_reg;
	dev->checksums = checksums;
	dev->burst = max(burst, 1U);
	dev->port_up = netif_running(ndev) && netif_carrier_ok(ndev);
	ret = mem_limits_get(&dev->limits);
	if (ret)
		return ret;
	dev->stats = alloc_percpu(struct mem_stats);
	if (!dev->stats)
		return -ENOMEM;
	if (dma)
		ret = mem_parent_add(dev);
	if (ret)
		return ret;

	ib->node_type = dev->limits.iwarp ? RDMA_NODE_RNIC : RDMA_NODE_IB_CA;
	ib->phys_port_cnt = 1;
	ib->num_comp_vectors = num_possible_cpus();
	/* No registration has it: their indices start at 1. */
	ib->local_dma_lkey = get_random_u32() % 255 + 1;
	strscpy(ib->node_desc, "rdma_mem", sizeof(ib->node_desc));
	addrconf_addr_eui48((u8 *)&ib->node_guid, ndev->dev_addr);
	ib_set_device_ops(ib, &mem_ops);
	mem_set_resize_cq(ib, mem_resize_cq);
	if (dev->limits.max_srq)
		ib_set_device_ops(ib, &mem_srq_ops);
	if (dev->limits.iwarp) {
		ib_set_device_ops(ib, &mem_iw_ops);
		/* the addresses are those of the interface; there are no ports to translate */
		strscpy(ib->iw_ifname, ndev->name, sizeof(ib->iw_ifname));
		ib->iw_driver_flags = IW_F_NO_PORT_MAP;
	}
	return ib_device_set_netdev(ib, ndev, 1);
}

/* An interface has at most one of these devices. */
static int mem_device_list(struct mem_dev *dev, struct net_device *ndev)
{
	int ret = -EEXIST;

	mutex_lock(&mem_devs_lock);
	if (!mem_dev_of(ndev)) {
		dev->ndev = ndev;
		list_add(&dev->entry, &mem_devs);
		ret = 0;
	}
	mutex_unlock(&mem_devs_lock);
	return ret;
}

/**
 * mem_device_add - add a device
 * @name: its name
 * @ndev: the network interface whose addresses it has
 *
 * Context: process context.
 * Return: 0, -EEXIST if @ndev has one, or another negative errno.
 */
int mem_device_add(const char *name, struct net_device *ndev)
{
	struct mem_dev *dev;
	int ret;

	dev = ib_alloc_device(mem_dev, ib);
	if (!dev)
		return -ENOMEM;
	mem_device_prepare(dev);
	ret = mem_device_list(dev, ndev);
	if (!ret)
		ret = mem_device_init(dev, ndev);
	if (ret)
		goto err;
	mem_debugfs_add(dev, name);
	ret = ib_register_device(&dev->ib, name, dev->parent ? &dev->parent->dev : NULL);
	if (ret)
		goto err;
	/* before this, events of the interface did not find the device */
	mem_netdev_changed(ndev);
	return 0;

err:
	if (!dev->ib.ops.dealloc_driver)
		mem_dealloc_driver(&dev->ib);
	ib_dealloc_device(&dev->ib);
	return ret;
}
