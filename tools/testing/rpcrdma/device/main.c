// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * rdma_mem: an RDMA device for tests whose wire is memory.
 *
 * The user of a device (a kernel client of ib_core) posts work requests and rings the
 * doorbell. The engine of the queue pair, a tasklet, executes them: it copies the payload
 * from the poster's pages to the peer's, and adds completions. A completion queue that is
 * armed raises an interrupt. The peer is a queue pair of the same kernel, found by its
 * number; its device has to have the destination's GID.
 *
 *	post.c -> engine.c -> wire.c -> memory.c, mr.c	the way of a work request
 *	dma.c						mappings, and bounce buffers
 *	rq.c						Receives and SRQs
 *	cq.c						completions and interrupts
 *	qp.c, gsi.c, device.c				queue pairs, datagrams, the device
 *	preset.c, fault.c, check.c			limits, faults, broken rules
 *
 * This file: the module, the link type "mem", and events of network interfaces.
 *
 *	rdma link add mem0 type mem netdev eth0
 */
#include <linux/module.h>
#include <linux/netdevice.h>
#include <rdma/rdma_netlink.h>

#include "mem.h"

/* Queue pairs of all devices by their number. The xa_lock protects looking one up. */
DEFINE_XARRAY_FLAGS(mem_qps, XA_FLAGS_ALLOC1 | XA_FLAGS_LOCK_IRQ);

/* Removes devices that a fault makes go away */
struct workqueue_struct *mem_wq;

static struct rdma_link_ops mem_link_ops = {
	.type = "mem",
	.newlink = mem_device_add,
};

static int mem_netdev_event(struct notifier_block *nb, unsigned long event, void *info)
{
	struct net_device *ndev = netdev_notifier_info_to_dev(info);

	switch (event) {
	case NETDEV_UNREGISTER:
		mem_netdev_gone(ndev);
		break;
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
		mem_netdev_changed(ndev);
		break;
	}
	return NOTIFY_OK;
}

static struct notifier_block mem_netdev_notifier = { .notifier_call = mem_netdev_event };

/* The driver of parents, whose name the DMA API's debugging prints */
static int mem_parent_probe(struct platform_device *parent)
{
	return 0;
}

static struct platform_driver mem_parent_driver = {
	.probe = mem_parent_probe,
	.driver = { .name = "rdma_mem" },
};

static int __init mem_module_init(void)
{
	int ret;

	mem_wq = alloc_workqueue("rdma_mem", WQ_UNBOUND, 0);
	if (!mem_wq)
		return -ENOMEM;
	ret = platform_driver_register(&mem_parent_driver);
	if (ret)
		goto err_wq;
	ret = register_netdevice_notifier(&mem_netdev_notifier);
	if (ret)
		goto err_driver;
	mem_debugfs_init();
	rdma_link_register(&mem_link_ops);
	return 0;

err_driver:
	platform_driver_unregister(&mem_parent_driver);
err_wq:
	destroy_workqueue(mem_wq);
	return ret;
}

static void __exit mem_module_exit(void)
{
	rdma_link_unregister(&mem_link_ops);
	unregister_netdevice_notifier(&mem_netdev_notifier);
	flush_workqueue(mem_wq);
	ib_unregister_driver(RDMA_DRIVER_UNKNOWN);
	destroy_workqueue(mem_wq);
	mem_debugfs_exit();
	platform_driver_unregister(&mem_parent_driver);
	/* Registrations and bounce buffers are freed after a grace period, the latter by us. */
	rcu_barrier();
	WARN_ON(!xa_empty(&mem_qps));
}

module_init(mem_module_init);
module_exit(mem_module_exit);
MODULE_DESCRIPTION("RDMA device for tests whose wire is memory");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_ALIAS_RDMA_LINK("mem");
