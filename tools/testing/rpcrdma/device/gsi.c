// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Datagrams of QP 1: those of the connection manager, which ib_mad sends and receives.
 *
 * A datagram goes to the device that has the destination's GID. Its Receive begins with
 * the network's header, in 40 octets as that of RoCE v2: an IPv6 header, or an IPv4 header
 * at the end. ib_core takes the sender's and the receiver's address from there, and
 * nothing else of it. A datagram may be lost, like any: without a receiver, without a
 * Receive, or because a fault says so.
 */
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <rdma/ib_cache.h>

#include "mem.h"

static DEFINE_SPINLOCK(mem_gsi_lock);	/* protects gsi_devices and mem_dev.gsi */
static LIST_HEAD(gsi_devices);

int mem_create_ah(struct ib_ah *ib, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	const struct ib_global_route *grh = rdma_ah_read_grh(init->ah_attr);
	struct mem_ah *ah = container_of(ib, struct mem_ah, ib);

	if (udata || !(rdma_ah_get_ah_flags(init->ah_attr) & IB_AH_GRH) || !grh->sgid_attr)
		return -EINVAL;
	ah->route.sgid = grh->sgid_attr->gid;
	ah->route.dgid = grh->dgid;
	ah->route.network_type = rdma_gid_attr_network_type(grh->sgid_attr);
	ah->route.hop_limit = grh->hop_limit;
	ah->route.traffic_class = grh->traffic_class;
	if (ah->route.network_type != RDMA_NETWORK_IPV4 &&
	    ah->route.network_type != RDMA_NETWORK_IPV6)
		return -EINVAL;
	atomic_inc(&to_mem_dev(ib->device)->num_ahs);
	return 0;
}

int mem_destroy_ah(struct ib_ah *ib, u32 flags)
{
	atomic_dec(&to_mem_dev(ib->device)->num_ahs);
	return 0;
}

/**
 * mem_gsi_add - let a device take datagrams
 * @qp: its QP 1
 *
 * Context: process context.
 */
void mem_gsi_add(struct mem_qp *qp)
{
	spin_lock_bh(&mem_gsi_lock);
	qp->dev->gsi = qp;
	list_add_tail(&qp->dev->gsi_entry, &gsi_devices);
	spin_unlock_bh(&mem_gsi_lock);
}

/**
 * mem_gsi_remove - undo mem_gsi_add()
 * @qp: the device's QP 1
 *
 * Context: process context.
 */
void mem_gsi_remove(struct mem_qp *qp)
{
	spin_lock_bh(&mem_gsi_lock);
	qp->dev->gsi = NULL;
	list_del(&qp->dev->gsi_entry);
	spin_unlock_bh(&mem_gsi_lock);
}

/**
 * mem_has_gid - does a device have an address?
 * @dev: the device, which has a queue pair
 * @gid: the address
 *
 * Context: any but hard interrupts.
 * Return: whether it has.
 */
bool mem_has_gid(struct mem_dev *dev, const union ib_gid *gid)
{
	const struct ib_gid_attr *attr;

	attr = rdma_find_gid(&dev->ib, gid, IB_GID_TYPE_ROCE_UDP_ENCAP, NULL);
	if (IS_ERR(attr))
		return false;
	rdma_put_gid_attr(attr);
	return true;
}

/* QP 1 of the device that has a GID, with a reference. The sender's is asked first. */
static struct mem_qp *gsi_find(struct mem_qp *from, const union ib_gid *dgid)
{
	struct mem_qp *found = NULL;
	struct mem_dev *dev;

	spin_lock_bh(&mem_gsi_lock);
	if (from->dev->gsi && mem_has_gid(from->dev, dgid))
		found = from->dev->gsi;
	if (!found) {
		list_for_each_entry(dev, &gsi_devices, gsi_entry) {
			if (!mem_has_gid(dev, dgid))
				continue;
			found = dev->gsi;
			break;
		}
	}
	if (found)
		refcount_inc(&found->ref);
	spin_unlock_bh(&mem_gsi_lock);
	return found;
}

static void gsi_header(union rdma_network_hdr *header, const struct mem_route *route,
		       u32 length)
{
	memset(header, 0, sizeof(*header));
	if (route->network_type == RDMA_NETWORK_IPV4) {
		struct iphdr *ip = &header->roce4grh;

		ip->version = 4;
		ip->ihl = sizeof(*ip) / 4;
		ip->tos = route->traffic_class;
		ip->tot_len = htons(length + sizeof(*ip));
		ip->ttl = route->hop_limit;
		ip->protocol = IPPROTO_UDP;
		/* an IPv4-mapped GID */
		memcpy(&ip->saddr, route->sgid.raw + 12, sizeof(ip->saddr));
		memcpy(&ip->daddr, route->dgid.raw + 12, sizeof(ip->daddr));
		ip->check = ip_fast_csum(ip, ip->ihl);
		return;
	}
	header->ibgrh.version_tclass_flow = htonl(6U << 28 | route->traffic_class << 20);
	header->ibgrh.paylen = htons(length);
	header->ibgrh.next_hdr = IPPROTO_UDP;
	header->ibgrh.hop_limit = route->hop_limit;
	header->ibgrh.sgid = route->sgid;
	header->ibgrh.dgid = route->dgid;
}

static void gsi_receive(struct mem_qp *to, struct mem_qp *qp, struct mem_swqe *wqe,
			struct mem_list *from)
{
	struct ib_wc wc = {
		.byte_len = sizeof(union rdma_network_hdr) + wqe->length,
		.src_qp = 1,
		.wc_flags = IB_WC_GRH | IB_WC_WITH_NETWORK_HDR_TYPE,
		.network_hdr_type = wqe->route.network_type,
	};
	struct ib_sge sge[MEM_MAX_SGE];
	union rdma_network_hdr header;
	struct mem_rwqe rwqe;
	struct mem_list list;
	bool limit;

	if (!mem_rq_take(to->rq, &rwqe, sge, &limit)) {
		mem_count(qp->dev, MEM_STAT_DATAGRAMS_LOST);
		return;
	}
	wc.status = mem_list_open(&list, to->dev, to->ib.pd, sge, rwqe.num_sge,
				  IB_ACCESS_LOCAL_WRITE);
	if (!wc.status) {
		if (list.length < wc.byte_len) {
			wc.status = IB_WC_LOC_LEN_ERR;
		} else {
			gsi_header(&header, &wqe->route, wqe->length);
			mem_list_put(&list, &header, sizeof(header));
			mem_list_copy(&list, from, wqe->length);
		}
		mem_list_close(&list);
	}
	mem_wire_receive_done(to, &rwqe, &wc, wqe->flags & IB_SEND_SOLICITED);
}

static void gsi_deliver(struct mem_qp *qp, struct mem_swqe *wqe)
{
	struct mem_qp *to = gsi_find(qp, &wqe->route.dgid);
	struct mem_list from;
	enum ib_qp_state state;

	if (!to) {
		mem_count(qp->dev, MEM_STAT_DATAGRAMS_LOST);
		return;
	}
	atomic_inc(&to->inbound);
	smp_mb__after_atomic();	/* pairs with mem_qp_wait_inbound() */
	/* pairs with mem_modify_qp() */
	state = smp_load_acquire(&to->state);
	if ((state != IB_QPS_RTR && state != IB_QPS_RTS) || !READ_ONCE(to->dev->port_up) ||
	    !READ_ONCE(qp->dev->port_up)) {
		mem_count(qp->dev, MEM_STAT_DATAGRAMS_LOST);
	} else if (!mem_list_open(&from, qp->dev, qp->ib.pd, wqe->sge, wqe->num_sge, 0)) {
		gsi_receive(to, qp, wqe, &from);
		mem_list_close(&from);
	}
	atomic_dec_return_release(&to->inbound);
	mem_qp_put(to);
}

/**
 * mem_gsi_send - execute a Send of QP 1
 * @qp: the device's QP 1
 * @wqe: the work request
 *
 * Context: softirq, with no lock held.
 * Return: the status of the work request. It succeeds whether or not the datagram arrives.
 */
enum ib_wc_status mem_gsi_send(struct mem_qp *qp, struct mem_swqe *wqe)
{
	struct mem_verdict verdict = mem_fault(qp->dev, MEM_OP_DATAGRAM);

	mem_count(qp->dev, MEM_STAT_DATAGRAMS);
	switch (verdict.action) {
	case MEM_ACTION_STATUS:
		return verdict.status;
	case MEM_ACTION_LOSE:
		mem_count(qp->dev, MEM_STAT_DATAGRAMS_LOST);
		return IB_WC_SUCCESS;
	case MEM_ACTION_DUPLICATE:
		gsi_deliver(qp, wqe);
		break;
	default:
		mem_engine_fault(qp, false, &verdict);
		break;
	}
	gsi_deliver(qp, wqe);
	return IB_WC_SUCCESS;
}
