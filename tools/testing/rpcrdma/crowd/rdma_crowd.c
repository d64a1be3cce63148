// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * rdma_crowd: many clients of an NFS/RDMA server, without mounts.
 *
 *	modprobe rdma_crowd addr=10.17.0.1 connections=1000
 *	grep -r . /sys/kernel/debug/rdma_crowd	# what has happened
 *	echo 1 >/sys/kernel/debug/rdma_crowd/call	# a Call on each connection
 *	echo 500 >/sys/kernel/debug/rdma_crowd/rate	# Calls per second, in turns
 *
 * It connects from the network namespace of who loads it, who does not wait for that. A connection
 * is up when its first Call was answered or, if it is deaf, when it is established. Then it rests.
 *
 * A Call is a GETATTR of NFSv3 if there is a file handle, else a NULL: it may be repeated, so all
 * of a connection have one XID. It goes inline, by version 1, without private data.
 */
#include <linux/debugfs.h>
#include <linux/delay.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/slab.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <rdma/rdma_cm.h>

#define AT_ONCE	32	/* connections that are made or freed at a time */
#define WAIT_MS	30000	/* for each step of connecting */
#define WORDS	256	/* of a Receive, by RFC 8166 */

static char *addr = "10.17.0.1";	/* IPv4 address of the server */
static ushort port = 20049;
static unsigned int connections = 1;
static unsigned int retry;		/* ms until one that was freed is made again; 0: never */
static u8 fh[64];			/* file handle, octet by octet */
static unsigned int fh_len;
static unsigned int window = 1;		/* credits to ask for, and to use if granted or not */
static bool deaf;			/* post no Receives */
static unsigned int rnr_retry = 6;	/* tries of what finds no Receive; 7: no limit */

module_param(addr, charp, 0444);
module_param(port, ushort, 0444);
module_param(connections, uint, 0444);
module_param(retry, uint, 0444);
module_param_array(fh, byte, &fh_len, 0444);
module_param(window, uint, 0444);
module_param(deaf, bool, 0444);
module_param(rnr_retry, uint, 0444);

enum crowd_state {
	CROWD_LOST = -2,	/* after it was up */
	CROWD_FAILED,		/* before it was up */
	CROWD_CONNECTING,	/* or there is none */
	CROWD_OPEN,		/* established: from now on something may be posted */
	CROWD_UP,
};

/*
 * A connection. Its work, which never runs twice at a time, makes it: the identifier and all that
 * follows. If that exists already, the work frees it and zeroes all. It is queued at first, when
 * the connection is lost, "retry" after it was freed, and when the module is unloaded.
 */
struct crowd_conn {
	struct delayed_work work;
	struct completion happened;	/* the next step of connecting was made, or failed */
	spinlock_t lock;		/* protects state and unanswered, and posting */
	struct rdma_cm_id *id;
	struct ib_pd *pd;
	struct ib_cq *cq;
	__be32 *messages;		/* "window" Receives, then the Call */
	u64 dma;
	enum crowd_state state;
	unsigned int unanswered;	/* Calls */
	unsigned int received;		/* the Receive that completes next */
};

static struct crowd_conn *conns;
static struct workqueue_struct *crowd_wq;
static struct net *crowd_net;
static struct sockaddr_in server = { .sin_family = AF_INET };
static bool stopping;

static struct dentry *debugfs;		/* folder with files for these: */
static u32 rate;
static u64 newest;			/* when the last one came up, in ns */
static atomic_t num_up, failed, lost;	/* now; attempts; connections that were up */
static atomic_t calls, replies, wrong;	/* the last are messages that are no answer */

/* The Call, but for credits, file handle, and the XIDs, which are the words 0 and 7 */
static unsigned int call_len = 22 * sizeof(__be32);
static __be32 call[WORDS] = {
	[1] = cpu_to_be32(1),		/* RPC-over-RDMA; then RDMA_MSG without chunks */
	[9] = cpu_to_be32(2),		/* CALL, by version 2 of RPC */
	[10] = cpu_to_be32(100003),	/* NFS */
	[11] = cpu_to_be32(3),
	[13] = cpu_to_be32(1),		/* AUTH_SYS, all zero, and no verifier */
	[14] = cpu_to_be32(20),
};

/* Go to the next state, if it is in the one before. */
static void crowd_advance(struct crowd_conn *conn, enum crowd_state state)
{
	spin_lock_bh(&conn->lock);
	if (conn->state == state - 1) {
		conn->state = state;
		if (state == CROWD_UP) {
			atomic_inc(&num_up);
			WRITE_ONCE(newest, ktime_get_real_ns());
		}
		complete(&conn->happened);
	}
	spin_unlock_bh(&conn->lock);
}

/* It has failed, is lost or shall end: nothing is posted any more. */
static void crowd_break(struct crowd_conn *conn)
{
	spin_lock_bh(&conn->lock);
	if (conn->state == CROWD_UP) {
		conn->state = CROWD_LOST;
		atomic_dec(&num_up);
		atomic_inc(&lost);
		queue_delayed_work(crowd_wq, &conn->work, 0);
	} else if (conn->state != CROWD_LOST) {
		conn->state = CROWD_FAILED;
	}
	complete(&conn->happened);
	spin_unlock_bh(&conn->lock);
}

static void crowd_sent(struct ib_cq *cq, struct ib_wc *wc)
{
	if (wc->status)
		crowd_break(wc->qp->qp_context);
}

static struct ib_cqe sent = { .done = crowd_sent };

/* As many Calls as it may send, up to a number. No answer is taken before all are posted. */
static void crowd_call(struct crowd_conn *conn, unsigned int most)
{
	struct ib_sge sge = { .length = call_len };
	struct ib_send_wr wr = { .wr_cqe = &sent, .sg_list = &sge, .num_sge = 1,
				 .opcode = IB_WR_SEND };

	spin_lock_bh(&conn->lock);
	while (most-- && conn->state >= CROWD_OPEN && conn->unanswered < window) {
		sge.addr = conn->dma + window * sizeof(call);
		sge.lkey = conn->pd->local_dma_lkey;
		if (ib_post_send(conn->id->qp, &wr, NULL))
			break;
		conn->unanswered++;
		atomic_inc(&calls);
	}
	spin_unlock_bh(&conn->lock);
}

static int crowd_post_receive(struct crowd_conn *conn, unsigned int i, struct ib_cqe *cqe)
{
	struct ib_sge sge = {
		.addr = conn->dma + i * sizeof(call),
		.length = sizeof(call),
		.lkey = conn->pd->local_dma_lkey,
	};
	struct ib_recv_wr wr = { .wr_cqe = cqe, .sg_list = &sge, .num_sge = 1 };

	return ib_post_recv(conn->id->qp, &wr, NULL);
}

/* Version 1, any credits, RDMA_MSG, no chunks; REPLY, no verifier, SUCCESS; GETATTR's status */
static bool crowd_is_answer(const struct crowd_conn *conn, const __be32 *reply, u32 len)
{
	__be32 xid = conn->messages[window * WORDS], one = cpu_to_be32(1);
	const __be32 wanted[14] = { xid, one, reply[2], [7] = xid, one };
	size_t size = (fh_len ? 14 : 13) * sizeof(*wanted);

	return len >= size && !memcmp(reply, wanted, size);
}

/* Receives complete in the order in which they are posted. */
static void crowd_received(struct ib_cq *cq, struct ib_wc *wc)
{
	struct crowd_conn *conn = wc->qp->qp_context;
	unsigned int i = conn->received++ % window;
	u64 dma = conn->dma + i * sizeof(call);
	bool answered;
	int ret = 0;

	if (wc->status) {
		crowd_break(conn);
		return;
	}
	ib_dma_sync_single_for_cpu(cq->device, dma, sizeof(call), DMA_BIDIRECTIONAL);
	spin_lock_bh(&conn->lock);
	answered = conn->unanswered &&
		   crowd_is_answer(conn, &conn->messages[i * WORDS], wc->byte_len);
	conn->unanswered -= answered;
	ib_dma_sync_single_for_device(cq->device, dma, sizeof(call), DMA_BIDIRECTIONAL);
	if (conn->state >= CROWD_OPEN)
		ret = crowd_post_receive(conn, i, wc->wr_cqe);
	spin_unlock_bh(&conn->lock);

	atomic_inc(answered ? &replies : &wrong);
	if (ret)
		crowd_break(conn);
	else if (answered)
		crowd_advance(conn, CROWD_UP);
}

static struct ib_cqe received = { .done = crowd_received };

static int crowd_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct crowd_conn *conn = id->context;

	if (event->event == RDMA_CM_EVENT_ADDR_RESOLVED ||
	    event->event == RDMA_CM_EVENT_ROUTE_RESOLVED)
		complete(&conn->happened);
	else if (event->event == RDMA_CM_EVENT_ESTABLISHED)
		crowd_advance(conn, CROWD_OPEN);
	else	/* A failure, or the end. A device that is removed waits for the work. */
		crowd_break(conn);
	return 0;
}

static int crowd_wait(struct crowd_conn *conn)
{
	if (!wait_for_completion_timeout(&conn->happened, msecs_to_jiffies(WAIT_MS)))
		return -ETIMEDOUT;
	return READ_ONCE(conn->state) == CROWD_FAILED || READ_ONCE(stopping) ? -ECONNABORTED : 0;
}

/* A Send may complete after its answer. ib_drain_qp() posts one more to each queue. */
#define SENDS		(2 * window + 1)
#define RECEIVES	(window + 1)

static int crowd_make_queues(struct crowd_conn *conn)
{
	struct ib_qp_init_attr attr = {
		.qp_context = conn,
		.qp_type = IB_QPT_RC,
		.sq_sig_type = IB_SIGNAL_ALL_WR,
		.cap = {
			.max_send_wr = SENDS,
			.max_recv_wr = RECEIVES,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};

	conn->pd = ib_alloc_pd(conn->id->device, 0);
	if (IS_ERR(conn->pd))
		return PTR_ERR(conn->pd);
	conn->cq = ib_cq_pool_get(conn->id->device, SENDS + RECEIVES, -1, IB_POLL_WORKQUEUE);
	if (IS_ERR(conn->cq))
		return PTR_ERR(conn->cq);
	attr.send_cq = conn->cq;
	attr.recv_cq = conn->cq;
	return rdma_create_qp(conn->id, conn->pd, &attr);
}

static int crowd_make_messages(struct crowd_conn *conn)
{
	size_t size = (window + 1) * sizeof(call);
	__be32 *messages = kzalloc(size, GFP_KERNEL);
	__be32 xid = cpu_to_be32(conn - conns + 1);
	unsigned int i;
	int ret = 0;

	if (!messages)
		return -ENOMEM;
	memcpy(&messages[window * WORDS], call, sizeof(call));
	messages[window * WORDS] = xid;
	messages[window * WORDS + 7] = xid;
	conn->dma = ib_dma_map_single(conn->id->device, messages, size, DMA_BIDIRECTIONAL);
	if (ib_dma_mapping_error(conn->id->device, conn->dma)) {
		kfree(messages);
		return -EIO;
	}
	conn->messages = messages;
	for (i = 0; i < window && !deaf && !ret; i++)
		ret = crowd_post_receive(conn, i, &received);
	return ret;
}

static int crowd_first_call(struct crowd_conn *conn)
{
	/* siw accepts a connection before it receives what arrives. */
	if (rdma_protocol_iwarp(conn->id->device, conn->id->port_num))
		msleep(50);
	if (deaf)
		crowd_advance(conn, CROWD_UP);
	else
		crowd_call(conn, 1);
	return crowd_wait(conn);
}

static int crowd_make(struct crowd_conn *conn)
{
	struct rdma_conn_param param = {
		.responder_resources = 1, .retry_count = 7, .rnr_retry_count = rnr_retry,
	};
	struct rdma_cm_id *id;

	id = rdma_create_id(crowd_net, crowd_event, conn, RDMA_PS_TCP, IB_QPT_RC);
	if (IS_ERR(id))
		return PTR_ERR(id);
	conn->id = id;
	return rdma_resolve_addr(id, NULL, (struct sockaddr *)&server, WAIT_MS) ?:
	       crowd_wait(conn) ?:
	       rdma_resolve_route(id, WAIT_MS) ?:
	       crowd_wait(conn) ?:
	       crowd_make_queues(conn) ?:
	       crowd_make_messages(conn) ?:
	       rdma_connect(id, &param) ?:
	       crowd_wait(conn) ?:
	       crowd_first_call(conn);
}

/* Also one of which only a part was made */
static void crowd_free(struct crowd_conn *conn)
{
	struct rdma_cm_id *id = conn->id;

	crowd_break(conn);
	if (id->qp) {
		rdma_disconnect(id);
		ib_drain_qp(id->qp);
		rdma_destroy_qp(id);
	}
	if (conn->messages)
		ib_dma_unmap_single(id->device, conn->dma, (window + 1) * sizeof(call),
				    DMA_BIDIRECTIONAL);
	kfree(conn->messages);
	if (!IS_ERR_OR_NULL(conn->cq))
		ib_cq_pool_put(conn->cq, SENDS + RECEIVES);
	if (!IS_ERR_OR_NULL(conn->pd))
		ib_dealloc_pd(conn->pd);
	rdma_destroy_id(id);
	/* No event comes any more. */
	reinit_completion(&conn->happened);
	spin_lock_bh(&conn->lock);
	memset_startat(conn, 0, id);
	spin_unlock_bh(&conn->lock);
}

static void crowd_work(struct work_struct *work)
{
	struct crowd_conn *conn = container_of(to_delayed_work(work), struct crowd_conn, work);

	if (!conn->id) {
		if (READ_ONCE(stopping) || !crowd_make(conn))
			return;
		atomic_inc(&failed);
	}
	if (conn->id)
		crowd_free(conn);
	if (retry && !READ_ONCE(stopping))
		queue_delayed_work(crowd_wq, &conn->work, msecs_to_jiffies(retry));
}

static int crowd_call_set(void *data, u64 most)
{
	unsigned int i;

	for (i = 0; i < connections; i++)
		crowd_call(&conns[i], most);
	return 0;
}

DEFINE_DEBUGFS_ATTRIBUTE(crowd_call_fops, NULL, crowd_call_set, "%llu\n");

/* If this is late, it sends more, but not for more than a second. */
static void crowd_tick(struct work_struct *work)
{
	static unsigned long ticked, next, owed;	/* owed: HZ for each Call */
	unsigned long now = jiffies;

	owed += READ_ONCE(rate) * min(now - ticked, (unsigned long)HZ);
	ticked = now;
	for (; owed >= HZ; owed -= HZ)
		crowd_call(&conns[next++ % connections], 1);
	schedule_delayed_work(to_delayed_work(work), READ_ONCE(rate) ? 1 : HZ / 10);
}

static DECLARE_DELAYED_WORK(tick, crowd_tick);

static int __init crowd_init(void)
{
	unsigned int i;

	if (!in4_pton(addr, -1, (u8 *)&server.sin_addr, -1, NULL) || !connections || !window)
		return -EINVAL;
	server.sin_port = htons(port);
	call[2] = cpu_to_be32(window);
	if (fh_len) {
		call[12] = cpu_to_be32(1);	/* GETATTR */
		call[22] = cpu_to_be32(fh_len);
		memcpy(&call[23], fh, fh_len);
		call_len += sizeof(*call) + round_up(fh_len, sizeof(*call));
	}
	conns = kvcalloc(connections, sizeof(*conns), GFP_KERNEL);
	if (!conns)
		return -ENOMEM;
	crowd_wq = alloc_workqueue("rdma_crowd", WQ_UNBOUND, AT_ONCE);
	if (!crowd_wq) {
		kvfree(conns);
		return -ENOMEM;
	}
	crowd_net = get_net(current->nsproxy->net_ns);
	for (i = 0; i < connections; i++) {
		spin_lock_init(&conns[i].lock);
		init_completion(&conns[i].happened);
		INIT_DELAYED_WORK(&conns[i].work, crowd_work);
		queue_delayed_work(crowd_wq, &conns[i].work, 0);
	}
	debugfs = debugfs_create_dir("rdma_crowd", NULL);
	debugfs_create_file("call", 0200, debugfs, NULL, &crowd_call_fops);
	debugfs_create_u32("rate", 0600, debugfs, &rate);
	debugfs_create_u64("newest", 0400, debugfs, &newest);
	debugfs_create_atomic_t("up", 0400, debugfs, &num_up);
	debugfs_create_atomic_t("failed", 0400, debugfs, &failed);
	debugfs_create_atomic_t("lost", 0400, debugfs, &lost);
	debugfs_create_atomic_t("calls", 0400, debugfs, &calls);
	debugfs_create_atomic_t("replies", 0400, debugfs, &replies);
	debugfs_create_atomic_t("wrong", 0400, debugfs, &wrong);
	schedule_delayed_work(&tick, 0);
	return 0;
}

static void __exit crowd_exit(void)
{
	unsigned int i;

	debugfs_remove(debugfs);
	cancel_delayed_work_sync(&tick);
	WRITE_ONCE(stopping, true);
	for (i = 0; i < connections; i++) {
		complete(&conns[i].happened);	/* if the work waits */
		mod_delayed_work(crowd_wq, &conns[i].work, 0);
	}
	flush_workqueue(crowd_wq);	/* When all are freed, only works queue works. */
	destroy_workqueue(crowd_wq);
	put_net(crowd_net);
	kvfree(conns);
}

module_init(crowd_init);
module_exit(crowd_exit);

MODULE_DESCRIPTION("Many clients of an NFS/RDMA server, without mounts");
MODULE_LICENSE("Dual BSD/GPL");
