// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * rdma_bare: how fast a device does RDMA Writes, for the benchmark.
 *
 *	insmod rdma_bare.ko addr=10.17.0.1 size=1048576 depth=16 ms=1000
 *
 * The module connects to itself over the device that has the address, and the
 * requester keeps "depth" RDMA Writes of "size" octets posted. insmod returns
 * when the time is over. Then the parameters writes and nanoseconds say how many
 * were completed in how long; rmmod before the next loop.
 *
 * It expects a device that stays while insmod runs.
 */
#include <linux/inet.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <rdma/rdma_cm.h>

#define WAIT_MS		5000
#define PORT		20050

static char *addr = "10.17.0.1";
module_param(addr, charp, 0444);
MODULE_PARM_DESC(addr, "IPv4 address of the device");

static unsigned int size = 1 << 20;
module_param(size, uint, 0444);
MODULE_PARM_DESC(size, "octets of an RDMA Write, whole pages");

static unsigned int depth = 16;
module_param(depth, uint, 0444);
MODULE_PARM_DESC(depth, "RDMA Writes that are posted at a time");

static unsigned int ms = 1000;
module_param(ms, uint, 0444);
MODULE_PARM_DESC(ms, "how long to post, in milliseconds");

static unsigned long writes;
module_param(writes, ulong, 0444);
MODULE_PARM_DESC(writes, "result: RDMA Writes that were completed");

static unsigned long nanoseconds;
module_param(nanoseconds, ulong, 0444);
MODULE_PARM_DESC(nanoseconds, "result: how long they took");

/*
 * One end of the connection. There are two, static ones. bare_end_up() makes what an
 * end has once its identifier has a device, and bare_end_down() frees it when no more
 * event can come.
 */
struct bare_end {
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct page *pages;
	u64 dma;
	struct completion happened;	/* the next step of connecting was made, or failed */
	int status;			/* of that step */
	bool closing;			/* the handler of events must not post any more */
};

static struct bare_end requester, responder;
static struct rdma_cm_id *listener;

/* The responder's memory, which the requester writes to */
static struct ib_mr *target;
static struct scatterlist target_sg;

/*
 * The loop. Its completions come one after the other from one CQ, which is what
 * protects this; bare_loop() reads it when "finished" is complete.
 */
static struct {
	struct ib_cqe cqe;
	struct ib_sge sge;
	struct ib_rdma_wr wr;
	ktime_t end;
	unsigned int posted;		/* RDMA Writes */
	int status;
	struct completion finished;
} loop;

static void bare_happened(struct bare_end *end, int status)
{
	end->status = status;
	complete(&end->happened);
}

static int bare_wait(struct bare_end *end)
{
	if (!wait_for_completion_timeout(&end->happened, msecs_to_jiffies(WAIT_MS)))
		return -ETIMEDOUT;
	return end->status;
}

/* Ends */

static int bare_make_queues(struct bare_end *end)
{
	struct ib_qp_init_attr attr = {
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = depth + 1,	/* for ib_drain_qp() */
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};

	end->pd = ib_alloc_pd(end->id->device, 0);
	if (IS_ERR(end->pd))
		return PTR_ERR(end->pd);
	end->cq = ib_alloc_cq(end->id->device, end, depth + 2, 0, IB_POLL_WORKQUEUE);
	if (IS_ERR(end->cq))
		return PTR_ERR(end->cq);
	attr.send_cq = end->cq;
	attr.recv_cq = end->cq;
	return rdma_create_qp(end->id, end->pd, &attr);
}

static int bare_make_memory(struct bare_end *end)
{
	end->pages = alloc_pages(GFP_KERNEL | __GFP_ZERO | __GFP_COMP, get_order(size));
	if (!end->pages)
		return -ENOMEM;
	end->dma = ib_dma_map_page(end->id->device, end->pages, 0, size, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(end->id->device, end->dma)) {
		__free_pages(end->pages, get_order(size));
		end->pages = NULL;
		return -EIO;
	}
	return 0;
}

static int bare_end_up(struct bare_end *end)
{
	return bare_make_queues(end) ?: bare_make_memory(end);
}

/* Also of an end of which only a part was made */
static void bare_end_down(struct bare_end *end)
{
	if (!end->id)
		return;
	rdma_lock_handler(end->id);
	end->closing = true;
	rdma_unlock_handler(end->id);
	if (end->id->qp) {
		rdma_disconnect(end->id);
		ib_drain_qp(end->id->qp);
		rdma_destroy_qp(end->id);
	}
	if (end == &responder && !IS_ERR_OR_NULL(target))
		ib_dereg_mr(target);
	if (end->pages) {
		ib_dma_unmap_page(end->id->device, end->dma, size, DMA_BIDIRECTIONAL);
		__free_pages(end->pages, get_order(size));
	}
	if (!IS_ERR_OR_NULL(end->cq))
		ib_free_cq(end->cq);
	if (!IS_ERR_OR_NULL(end->pd))
		ib_dealloc_pd(end->pd);
	rdma_destroy_id(end->id);
}

/* The responder's memory */

static void bare_registered(struct ib_cq *cq, struct ib_wc *wc)
{
	bare_happened(&responder, wc->status ? -EIO : 0);
}

static struct ib_cqe registered = { .done = bare_registered };

static int bare_make_target(void)
{
	unsigned int pages = size >> PAGE_SHIFT;

	target = ib_alloc_mr(responder.pd, IB_MR_TYPE_MEM_REG, pages);
	if (IS_ERR(target))
		return PTR_ERR(target);
	/* The memory is mapped in one piece. */
	sg_init_table(&target_sg, 1);
	sg_set_page(&target_sg, responder.pages, size, 0);
	sg_dma_address(&target_sg) = responder.dma;
	sg_dma_len(&target_sg) = size;
	return ib_map_mr_sg(target, &target_sg, 1, NULL, PAGE_SIZE) == 1 ? 0 : -EINVAL;
}

/* Work requests can be posted once the connection is established. */
static int bare_register_target(void)
{
	struct ib_reg_wr wr = {
		.wr = {
			.wr_cqe = &registered,
			.opcode = IB_WR_REG_MR,
			.send_flags = IB_SEND_SIGNALED,
		},
		.mr = target,
		.key = target->rkey,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE,
	};

	return ib_post_send(responder.id->qp, &wr.wr, NULL);
}

/* Connecting */

static int bare_accept(struct rdma_cm_id *id)
{
	struct rdma_conn_param param = { .rnr_retry_count = 7 };
	int ret;

	responder.id = id;
	ret = bare_end_up(&responder) ?: bare_make_target() ?: rdma_accept(id, &param);
	if (ret)
		bare_happened(&responder, ret);
	/* bare_end_down() destroys the identifier, in any case. */
	return 0;
}

static int bare_responder_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	int ret;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		/* There is one connection. */
		return responder.id ? -EBUSY : bare_accept(id);
	case RDMA_CM_EVENT_ESTABLISHED:
		ret = responder.closing ? -ECANCELED : bare_register_target();
		if (ret)
			bare_happened(&responder, ret);
		break;
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
		bare_happened(&responder, -ECONNABORTED);
		break;
	default:
		break;
	}
	return 0;
}

static int bare_requester_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	switch (event->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
	case RDMA_CM_EVENT_ESTABLISHED:
		bare_happened(&requester, 0);
		break;
	case RDMA_CM_EVENT_ADDR_ERROR:
	case RDMA_CM_EVENT_ROUTE_ERROR:
	case RDMA_CM_EVENT_CONNECT_ERROR:
	case RDMA_CM_EVENT_UNREACHABLE:
	case RDMA_CM_EVENT_REJECTED:
		bare_happened(&requester, -ECONNREFUSED);
		break;
	default:
		break;
	}
	return 0;
}

static int bare_listen(struct sockaddr_in *sin)
{
	listener = rdma_create_id(&init_net, bare_responder_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(listener))
		return PTR_ERR(listener);
	return rdma_bind_addr(listener, (struct sockaddr *)sin) ?: rdma_listen(listener, 1);
}

static int bare_connect(struct sockaddr_in *sin)
{
	struct rdma_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rdma_cm_id *id;

	id = rdma_create_id(&init_net, bare_requester_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	requester.id = id;
	return rdma_resolve_addr(id, NULL, (struct sockaddr *)sin, WAIT_MS) ?:
	       bare_wait(&requester) ?:
	       rdma_resolve_route(id, WAIT_MS) ?:
	       bare_wait(&requester) ?:
	       bare_end_up(&requester) ?:
	       rdma_connect(id, &param) ?:
	       bare_wait(&requester) ?:
	       bare_wait(&responder);
}

/* The loop */

static void bare_post(void)
{
	int ret = ib_post_send(requester.id->qp, &loop.wr.wr, NULL);

	if (ret)
		loop.status = ret;
	else
		loop.posted++;
}

static void bare_written(struct ib_cq *cq, struct ib_wc *wc)
{
	loop.posted--;
	if (wc->status)
		loop.status = -EIO;
	else
		writes++;
	if (!loop.status && ktime_before(ktime_get(), loop.end))
		bare_post();
	if (!loop.posted)
		complete(&loop.finished);
}

static void bare_prepare(ktime_t start)
{
	loop.cqe.done = bare_written;
	loop.sge = (struct ib_sge) {
		.addr = requester.dma,
		.length = size,
		.lkey = requester.pd->local_dma_lkey,
	};
	loop.wr = (struct ib_rdma_wr) {
		.wr = {
			.wr_cqe = &loop.cqe,
			.sg_list = &loop.sge,
			.num_sge = 1,
			.opcode = IB_WR_RDMA_WRITE,
			.send_flags = IB_SEND_SIGNALED,
		},
		.remote_addr = target->iova,
		.rkey = target->rkey,
	};
	loop.end = ktime_add_ms(start, ms);
}

/* The first Writes are one chain, so that the first completion finds all of them counted. */
static int bare_loop(void)
{
	struct ib_rdma_wr *chain;
	ktime_t start = ktime_get();
	unsigned int i;
	int ret;

	chain = kcalloc(depth, sizeof(*chain), GFP_KERNEL);
	if (!chain)
		return -ENOMEM;
	bare_prepare(start);
	for (i = 0; i < depth; i++) {
		chain[i] = loop.wr;
		chain[i].wr.next = i + 1 < depth ? &chain[i + 1].wr : NULL;
	}
	loop.posted = depth;
	ret = ib_post_send(requester.id->qp, &chain->wr, NULL);
	kfree(chain);
	if (ret) {
		loop.status = ret;	/* bare_end_down() waits for those that were posted. */
		return ret;
	}
	wait_for_completion(&loop.finished);
	nanoseconds = ktime_to_ns(ktime_sub(ktime_get(), start));
	return loop.status;
}

/* The module */

static void bare_down(void)
{
	if (!IS_ERR_OR_NULL(listener))
		rdma_destroy_id(listener);
	bare_end_down(&requester);
	bare_end_down(&responder);
}

static int __init bare_init(void)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(PORT) };
	int ret;

	if (!in4_pton(addr, -1, (u8 *)&sin.sin_addr, -1, NULL) || !depth || !size ||
	    size % PAGE_SIZE)
		return -EINVAL;
	init_completion(&requester.happened);
	init_completion(&responder.happened);
	init_completion(&loop.finished);
	ret = bare_listen(&sin) ?: bare_connect(&sin) ?: bare_loop();
	bare_down();
	if (ret)
		pr_err("rdma_bare: %d\n", ret);
	else
		pr_info("rdma_bare: %lu RDMA Writes of %u octets in %lu ns\n", writes, size,
			nanoseconds);
	return ret;
}

/* Without this the module could not be unloaded. */
static void __exit bare_exit(void)
{
}

module_init(bare_init);
module_exit(bare_exit);

MODULE_DESCRIPTION("A loop of RDMA Writes");
MODULE_LICENSE("Dual BSD/GPL");
