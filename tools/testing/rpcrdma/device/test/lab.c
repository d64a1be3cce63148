// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What the KUnit suites of the device share: a device, and two queue pairs of it that are
 * connected to each other without the connection manager.
 */
#include <linux/delay.h>
#include <linux/etherdevice.h>
#include <linux/rtnetlink.h>
#include <rdma/ib_cache.h>

#include "lab.h"

#define LAB_NAME	"mem_kunit"
/* How often an answer is looked for, and how many us between */
#define LAB_TRIES	2000
#define LAB_PAUSE	1000

static netdev_tx_t lab_xmit(struct sk_buff *skb, struct net_device *ndev)
{
	dev_kfree_skb(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops lab_netdev_ops = { .ndo_start_xmit = lab_xmit };

static void lab_make_netdev(struct lab *lab)
{
	struct kunit *test = lab->test;
	struct net_device *ndev = alloc_etherdev(0);
	int ret;

	KUNIT_ASSERT_NOT_NULL(test, ndev);
	strscpy(ndev->name, LAB_NAME "%d", sizeof(ndev->name));
	ndev->netdev_ops = &lab_netdev_ops;
	eth_hw_addr_random(ndev);
	rtnl_lock();
	ret = register_netdevice(ndev);
	if (!ret)
		ret = dev_open(ndev, NULL);
	rtnl_unlock();
	KUNIT_ASSERT_EQ(test, ret, 0);
	lab->ndev = ndev;
}

static void lab_make_device(struct lab *lab, bool iwarp)
{
	long param = mem_param_iwarp;
	struct ib_device *ib;
	int ret;

	mem_param_iwarp = iwarp;
	ret = mem_device_add(LAB_NAME, lab->ndev);
	mem_param_iwarp = param;
	KUNIT_ASSERT_EQ(lab->test, ret, 0);
	ib = ib_device_get_by_netdev(lab->ndev, RDMA_DRIVER_UNKNOWN);
	KUNIT_ASSERT_NOT_NULL(lab->test, ib);
	lab->dev = to_mem_dev(ib);
	/* what the suites judge does not depend on the parameters */
	lab->dev->checksums = true;
	/* planted violations are counted, not printed */
	atomic_set(&lab->dev->lines, 0);
}

static void lab_event(struct ib_event *event, void *context)
{
	struct lab_side *side = context;

	side->events |= 1U << event->event;
}

static void lab_make_side(struct lab *lab, struct lab_side *side, bool srq)
{
	struct ib_device *ib = &lab->dev->ib;
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.event_handler = lab_event,
		.qp_context = side,
		.srq = srq ? lab->srq : NULL,
		.cap = {
			.max_send_wr = LAB_WRS, .max_recv_wr = srq ? 0 : LAB_WRS,
			.max_send_sge = LAB_SGE, .max_recv_sge = LAB_SGE,
			.max_inline_data = LAB_INLINE,
		},
	};
	struct kunit *test = lab->test;
	int i;

	side->cq = ib_alloc_cq(ib, NULL, LAB_CQES, 0, IB_POLL_DIRECT);
	KUNIT_ASSERT_FALSE(test, IS_ERR(side->cq));
	init.send_cq = side->cq;
	init.recv_cq = side->cq;
	side->qp = ib_create_qp(lab->pd, &init);
	KUNIT_ASSERT_FALSE(test, IS_ERR(side->qp));
	side->mr = ib_alloc_mr(lab->pd, IB_MR_TYPE_MEM_REG, LAB_MR_PAGES);
	KUNIT_ASSERT_FALSE(test, IS_ERR(side->mr));
	for (i = 0; i < ARRAY_SIZE(side->buffer); i++) {
		struct lab_buffer *buffer = &side->buffer[i];

		buffer->data = (u8 *)__get_free_pages(GFP_KERNEL | __GFP_ZERO,
						      get_order(LAB_LEN));
		KUNIT_ASSERT_NOT_NULL(test, buffer->data);
		buffer->addr = ib_dma_map_single(ib, buffer->data, LAB_LEN,
						 DMA_BIDIRECTIONAL);
		KUNIT_ASSERT_EQ(test, ib_dma_mapping_error(ib, buffer->addr), 0);
	}
}

/**
 * lab_make - make two queue pairs that are connected
 * @test: the test
 * @options: LAB_SRQ, LAB_IWARP
 *
 * Context: process context.
 * Return: the lab, for lab_end().
 */
struct lab *lab_make(struct kunit *test, unsigned int options)
{
	struct ib_srq_init_attr srq = {
		.attr = { .max_wr = LAB_WRS, .max_sge = 1 }, .srq_type = IB_SRQT_BASIC,
	};
	struct lab *lab = kunit_kzalloc(test, sizeof(*lab), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, lab);
	lab->test = test;
	lab_make_netdev(lab);
	lab_make_device(lab, options & LAB_IWARP);
	lab->pd = ib_alloc_pd(&lab->dev->ib, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(lab->pd));
	if (options & LAB_SRQ) {
		lab->srq = ib_create_srq(lab->pd, &srq);
		KUNIT_ASSERT_FALSE(test, IS_ERR(lab->srq));
	}
	lab_make_side(lab, &lab->side[0], false);
	lab_make_side(lab, &lab->side[1], options & LAB_SRQ);
	if (!(options & LAB_IWARP))
		lab_connect(lab);
	return lab;
}

static void lab_end_side(struct lab *lab, struct lab_side *side)
{
	struct ib_device *ib = &lab->dev->ib;
	int i;

	ib_destroy_qp(side->qp);
	ib_dereg_mr(side->mr);
	ib_free_cq(side->cq);
	for (i = 0; i < ARRAY_SIZE(side->buffer); i++) {
		ib_dma_unmap_single(ib, side->buffer[i].addr, LAB_LEN, DMA_BIDIRECTIONAL);
		free_pages((unsigned long)side->buffer[i].data, get_order(LAB_LEN));
	}
}

/**
 * lab_end - undo lab_make()
 * @lab: the lab
 *
 * Context: process context.
 */
void lab_end(struct lab *lab)
{
	lab_end_side(lab, &lab->side[0]);
	lab_end_side(lab, &lab->side[1]);
	if (lab->srq)
		ib_destroy_srq(lab->srq);
	ib_dealloc_pd(lab->pd);
	ib_unregister_device_and_put(&lab->dev->ib);
	unregister_netdev(lab->ndev);
	free_netdev(lab->ndev);
}

/* The device's first address */
static void lab_ah(struct lab *lab, struct rdma_ah_attr *ah)
{
	union ib_gid gid;

	KUNIT_ASSERT_EQ(lab->test, rdma_query_gid(&lab->dev->ib, 1, 0, &gid), 0);
	ah->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_grh(ah, &gid, 0, 0, 64, 0);
	rdma_ah_set_port_num(ah, 1);
}

static void lab_modify(struct lab *lab, int side, struct ib_qp_attr *attr, int mask)
{
	KUNIT_ASSERT_EQ(lab->test, ib_modify_qp(lab->side[side].qp, attr, mask), 0);
}

/**
 * lab_connect - connect both queue pairs, which are in the reset state
 * @lab: the lab
 *
 * Context: process context.
 */
void lab_connect(struct lab *lab)
{
	int side;

	for (side = 0; side < 2; side++) {
		struct ib_qp_attr attr = {
			.qp_state = IB_QPS_INIT, .port_num = 1,
			.qp_access_flags = IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_WRITE,
		};

		lab_modify(lab, side, &attr,
			   IB_QP_STATE | IB_QP_PKEY_INDEX | IB_QP_PORT | IB_QP_ACCESS_FLAGS);
		attr.qp_state = IB_QPS_RTR;
		attr.path_mtu = IB_MTU_1024;
		attr.dest_qp_num = lab->side[!side].qp->qp_num;
		attr.rq_psn = 100 + !side;
		attr.max_dest_rd_atomic = 1;
		attr.min_rnr_timer = 1;
		lab_ah(lab, &attr.ah_attr);
		lab_modify(lab, side, &attr,
			   IB_QP_STATE | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_DEST_QPN |
			   IB_QP_RQ_PSN | IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
		memset(&attr, 0, sizeof(attr));
		attr.qp_state = IB_QPS_RTS;
		attr.timeout = 1;
		attr.retry_cnt = 2;
		attr.rnr_retry = 2;
		attr.sq_psn = 100 + side;
		attr.max_rd_atomic = 1;
		lab_modify(lab, side, &attr,
			   IB_QP_STATE | IB_QP_TIMEOUT | IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			   IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
	}
}

/**
 * lab_sge - an SGE of a buffer
 * @lab: the lab
 * @side: 0 or 1
 * @buffer: 0 or 1
 * @len: octets
 *
 * Return: the SGE.
 */
struct ib_sge lab_sge(struct lab *lab, int side, int buffer, u32 len)
{
	return (struct ib_sge){
		.addr = lab->side[side].buffer[buffer].addr,
		.length = len,
		.lkey = lab->pd->local_dma_lkey,
	};
}

/**
 * lab_fill - write to a buffer
 * @lab: the lab
 * @side: 0 or 1
 * @buffer: 0 or 1
 * @offset: where
 * @value: of each octet
 * @len: octets
 */
void lab_fill(struct lab *lab, int side, int buffer, u32 offset, u8 value, u32 len)
{
	struct lab_buffer *own = &lab->side[side].buffer[buffer];

	ib_dma_sync_single_for_cpu(&lab->dev->ib, own->addr, LAB_LEN, DMA_BIDIRECTIONAL);
	memset(own->data + offset, value, len);
	ib_dma_sync_single_for_device(&lab->dev->ib, own->addr, LAB_LEN, DMA_BIDIRECTIONAL);
}

/**
 * lab_data - what is in a buffer
 * @lab: the lab
 * @side: 0 or 1
 * @buffer: 0 or 1
 *
 * Return: the data; to be read only.
 */
const u8 *lab_data(struct lab *lab, int side, int buffer)
{
	struct lab_buffer *own = &lab->side[side].buffer[buffer];

	ib_dma_sync_single_for_cpu(&lab->dev->ib, own->addr, LAB_LEN, DMA_BIDIRECTIONAL);
	return own->data;
}

/**
 * lab_recv - post a Receive
 * @lab: the lab
 * @side: 0 or 1
 * @buffer: 0 or 1
 * @len: octets
 *
 * Return: 0, or a negative errno.
 */
int lab_recv(struct lab *lab, int side, int buffer, u32 len)
{
	struct ib_sge sge = lab_sge(lab, side, buffer, len);
	struct ib_recv_wr wr = { .wr_id = 100 + buffer, .sg_list = &sge, .num_sge = 1 };

	ib_dma_sync_single_for_device(&lab->dev->ib, sge.addr, LAB_LEN, DMA_BIDIRECTIONAL);
	if (side && lab->srq)
		return ib_post_srq_recv(lab->srq, &wr, NULL);
	return ib_post_recv(lab->side[side].qp, &wr, NULL);
}

/**
 * lab_post - post a Send
 * @lab: the lab
 * @side: 0 or 1
 * @opcode: a Send's; Send with Invalidate invalidates the other side's registration
 * @buffer: 0 or 1
 * @len: octets
 * @flags: of the work request
 *
 * Return: 0, or a negative errno.
 */
int lab_post(struct lab *lab, int side, enum ib_wr_opcode opcode, int buffer, u32 len,
	     int flags)
{
	struct ib_sge sge = lab_sge(lab, side, buffer, len);
	struct ib_send_wr wr = {
		.wr_id = 200 + buffer, .opcode = opcode, .sg_list = &sge, .num_sge = 1,
		.send_flags = flags,
	};

	if (flags & IB_SEND_INLINE)
		sge.addr = (uintptr_t)lab->side[side].buffer[buffer].data;
	if (opcode == IB_WR_SEND_WITH_INV)
		wr.ex.invalidate_rkey = lab->side[!side].mr->rkey;
	else
		wr.ex.imm_data = cpu_to_be32(0x12345678);
	return ib_post_send(lab->side[side].qp, &wr, NULL);
}

/**
 * lab_rdma - post an RDMA Read or Write between the first buffer and the peer's memory
 * @lab: the lab
 * @side: 0 or 1
 * @opcode: what
 * @len: octets
 * @remote: the peer's address
 * @rkey: the key for it
 *
 * Return: 0, or a negative errno.
 */
int lab_rdma(struct lab *lab, int side, enum ib_wr_opcode opcode, u32 len, u64 remote,
	     u32 rkey)
{
	struct ib_sge sge = lab_sge(lab, side, 0, len);
	struct ib_rdma_wr wr = {
		.wr = {
			.wr_id = 300, .opcode = opcode, .sg_list = &sge, .num_sge = 1,
			.send_flags = IB_SEND_SIGNALED,
			.ex.imm_data = cpu_to_be32(0x12345678),
		},
		.remote_addr = remote,
		.rkey = rkey,
	};

	return ib_post_send(lab->side[side].qp, &wr.wr, NULL);
}

/**
 * lab_reg - post the registration of a side's second buffer
 * @lab: the lab
 * @side: 0 or 1
 * @access: its access flags
 *
 * Return: 0, or a negative errno.
 */
int lab_reg(struct lab *lab, int side, int access)
{
	struct lab_side *own = &lab->side[side];
	struct ib_reg_wr wr = {
		.wr = { .wr_id = 400, .opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED },
		.mr = own->mr,
		.access = access,
	};

	sg_init_table(own->sg, 1);
	sg_dma_address(own->sg) = own->buffer[1].addr;
	sg_dma_len(own->sg) = LAB_LEN;
	own->sg->length = LAB_LEN;
	KUNIT_EXPECT_EQ(lab->test, ib_map_mr_sg(own->mr, own->sg, 1, NULL, PAGE_SIZE), 1);
	ib_update_fast_reg_key(own->mr, own->mr->rkey + 1);
	wr.key = own->mr->rkey;
	return ib_post_send(own->qp, &wr.wr, NULL);
}

/**
 * lab_inv - post a local invalidation
 * @lab: the lab
 * @side: 0 or 1
 * @rkey: the key
 *
 * Return: 0, or a negative errno.
 */
int lab_inv(struct lab *lab, int side, u32 rkey)
{
	struct ib_send_wr wr = {
		.wr_id = 500, .opcode = IB_WR_LOCAL_INV, .send_flags = IB_SEND_SIGNALED,
		.ex.invalidate_rkey = rkey,
	};

	return ib_post_send(lab->side[side].qp, &wr, NULL);
}

/**
 * lab_wait - wait for a completion
 * @lab: the lab
 * @side: 0 or 1
 * @wc: returned, or NULL
 *
 * Return: its status, or -ETIMEDOUT if none comes.
 */
enum ib_wc_status lab_wait(struct lab *lab, int side, struct ib_wc *wc)
{
	struct ib_wc own;
	int i;

	if (!wc)
		wc = &own;
	for (i = 0; i < LAB_TRIES; i++) {
		if (ib_poll_cq(lab->side[side].cq, 1, wc) == 1)
			return wc->status;
		usleep_range(LAB_PAUSE, 2 * LAB_PAUSE);
	}
	return -ETIMEDOUT;
}

/**
 * lab_violations - how often was a rule broken?
 * @lab: the lab
 * @rule: the rule
 *
 * Return: how often; less than 0 if another rule was broken too.
 */
int lab_violations(struct lab *lab, enum mem_rule rule)
{
	int i;

	for (i = 0; i < MEM_NUM_RULES; i++)
		if (i != rule && atomic_read(&lab->dev->violations[i]))
			return -i - 1;
	return atomic_read(&lab->dev->violations[rule]);
}
