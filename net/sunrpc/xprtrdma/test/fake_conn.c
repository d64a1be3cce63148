// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A connection over a device that the test plays, see fake_conn.h.
 */
#include <linux/delay.h>
#include <linux/slab.h>
#include <net/net_namespace.h>

#include "../conn/conn_private.h"
#include "fake_conn.h"

/* How long a teardown may take before somebody must have forgotten to leave */
#define FAKE_TEARDOWN_MS	5000

static struct fake_conn *fake_served;

static struct fake_conn *fake_of(const struct ib_device *ib)
{
	return container_of(ib, struct fake_conn, ib);
}

static struct fake_mr *fake_mr_of(struct ib_mr *mr)
{
	return container_of(mr, struct fake_mr, ib);
}

/* Verbs: registrations */

static struct ib_mr *fake_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
{
	struct fake_conn *fake = fake_of(pd->device);
	struct fake_mr *mr;

	if (!fake->mrs_left || fake->num_mrs == FAKE_MRS)
		return ERR_PTR(-ENOMEM);
	mr = kzalloc(sizeof(*mr), GFP_KERNEL);
	if (!mr)
		return ERR_PTR(-ENOMEM);
	/* The RDMA core knows nothing of this device. */
	rdma_restrack_no_track(&mr->ib.res);
	fake->mrs_left--;
	fake->live_mrs++;
	fake->mr[fake->num_mrs++] = mr;
	mr->ib.rkey = fake->num_mrs << 8;
	return &mr->ib;
}

static int fake_dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	struct fake_conn *fake = fake_of(mr->device);
	unsigned int i;

	for (i = 0; i < fake->num_mrs; i++)
		if (fake->mr[i] == fake_mr_of(mr))
			fake->mr[i] = NULL;
	fake->live_mrs--;
	kfree(fake_mr_of(mr));
	return 0;
}

static int fake_set_page(struct ib_mr *ib, u64 address)
{
	struct fake_mr *mr = fake_mr_of(ib);

	if (mr->num_pages == FAKE_MR_PAGES)
		return -ENOMEM;
	mr->page[mr->num_pages++] = address;
	return 0;
}

static int fake_map_mr_sg(struct ib_mr *mr, struct scatterlist *sgl, int nents,
			  unsigned int *offset)
{
	struct fake_conn *fake = fake_of(mr->device);

	if (fake->mapping)
		fake->mapping(fake);
	if (fake->map_result && !fake->maps_left)
		return fake->map_result;
	if (fake->maps_left)
		fake->maps_left--;
	fake->broken += fake_mr_of(mr)->valid;
	fake_mr_of(mr)->num_pages = 0;
	return ib_sg_to_pages(mr, sgl, nents, offset, fake_set_page);
}

static struct fake_mr *fake_find_mr(struct fake_conn *fake, u32 handle)
{
	unsigned int i;

	for (i = 0; i < fake->num_mrs; i++)
		if (fake->mr[i] && fake->mr[i]->valid && fake->mr[i]->ib.rkey == handle)
			return fake->mr[i];
	return NULL;
}

/* Verbs: the send queue */

static void fake_register(struct fake_conn *fake, const struct ib_send_wr *wr)
{
	const struct ib_reg_wr *reg = reg_wr(wr);
	struct fake_mr *mr = fake_mr_of(reg->mr);

	fake->broken += mr->valid || reg->key != mr->ib.rkey;
	mr->valid = true;
	mr->access = reg->access;
	mr->direction = container_of(reg, struct rpcrdma_mr, reg_wr)->direction;
	fake->registered++;
}

static void fake_invalidate(struct fake_conn *fake, u32 handle)
{
	struct fake_mr *mr = fake_find_mr(fake, handle);

	if (mr)
		mr->valid = false;
	else
		fake->broken++;
}

static void fake_send(struct fake_conn *fake, const struct ib_send_wr *wr)
{
	int i;

	fake->sent_len = 0;
	fake->sent_sges = wr->num_sge;
	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (fake->sent_len + sge->length > sizeof(fake->sent)) {
			fake->broken++;
			return;
		}
		memcpy(fake->sent + fake->sent_len, (void *)(uintptr_t)sge->addr, sge->length);
		fake->sent_len += sge->length;
	}
}

static void fake_execute(struct fake_conn *fake, const struct ib_send_wr *wr)
{
	switch (wr->opcode) {
	case IB_WR_REG_MR:
		fake_register(fake, wr);
		break;
	case IB_WR_LOCAL_INV:
		fake_invalidate(fake, wr->ex.invalidate_rkey);
		fake->invalidated++;
		break;
	case IB_WR_SEND:
		fake_send(fake, wr);
		break;
	default:
		fake->broken++;
	}
	if (wr->send_flags & IB_SEND_SIGNALED)
		fake->signalled[fake->num_signalled++ % FAKE_SQ_SIZE] = wr->wr_cqe;
}

static int fake_post_send(struct ib_qp *qp, const struct ib_send_wr *wr,
			  const struct ib_send_wr **bad)
{
	struct fake_conn *fake = fake_of(qp->device);

	if (fake->post_error)
		return fake->post_error;
	fake->posts++;
	for (; wr; wr = wr->next)
		fake_execute(fake, wr);
	if (fake->posted)
		fake->posted(fake);
	return 0;
}

/* Verbs: the rest */

static int fake_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad)
{
	struct fake_conn *fake = fake_of(qp->device);

	if (fake->reposting)
		fake->reposting(fake);
	for (; wr; wr = wr->next) {
		if (fake->num_recvs == FAKE_RECVS)
			return -ENOMEM;
		fake->recv[fake->num_recvs].cqe = wr->wr_cqe;
		fake->recv[fake->num_recvs++].data = (void *)(uintptr_t)wr->sg_list->addr;
	}
	return 0;
}

static int fake_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask,
			  struct ib_udata *udata)
{
	return 0;
}

static int fake_destroy_qp(struct ib_qp *qp, struct ib_udata *udata)
{
	return 0;
}

static void fake_drain(struct ib_qp *qp)
{
}

static int fake_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int fake_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	return 0;
}

/* The connection */

static void fake_device_make(struct fake_conn *fake)
{
	struct rpcrdma_device *device = &fake->device;

	fake->ib.port_data = &fake->port;
	fake->ib.ops.alloc_mr = fake_alloc_mr;
	fake->ib.ops.dereg_mr = fake_dereg_mr;
	fake->ib.ops.map_mr_sg = fake_map_mr_sg;
	fake->ib.ops.post_send = fake_post_send;
	fake->ib.ops.post_recv = fake_post_recv;
	fake->ib.ops.modify_qp = fake_modify_qp;
	fake->ib.ops.destroy_qp = fake_destroy_qp;
	fake->ib.ops.drain_sq = fake_drain;
	fake->ib.ops.drain_rq = fake_drain;
	fake->ib.ops.dealloc_pd = fake_dealloc_pd;
	device->ib = &fake->ib;
	device->max_mr_pages = FAKE_MR_PAGES;
	device->mr_type = IB_MR_TYPE_MEM_REG;
	kref_init(&device->ref);
	spin_lock_init(&device->lock);
	INIT_LIST_HEAD(&device->conns);
}

/* The RDMA core frees what the teardown destroys: the queue pair and the protection domain. */
static void fake_verbs_make(struct kunit *test, struct fake_conn *fake)
{
	struct rpcrdma_conn *conn = fake->conn;
	struct rdma_cm_id *id;
	struct ib_qp *qp;

	id = rdma_create_id(&init_net, fake_event, NULL, RDMA_PS_TCP, IB_QPT_RC);
	KUNIT_ASSERT_FALSE(test, IS_ERR(id));
	qp = kzalloc(sizeof(*qp), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, qp);
	conn->pd = kzalloc(sizeof(*conn->pd), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, conn->pd);
	qp->device = &fake->ib;
	qp->real_qp = qp;
	qp->qp_context = conn;
	spin_lock_init(&qp->mr_lock);
	INIT_LIST_HEAD(&qp->rdma_mrs);
	INIT_LIST_HEAD(&qp->sig_mrs);
	rpcrdma_compat_init_qp(qp);
	conn->pd->device = &fake->ib;
	id->qp = qp;
	conn->cm_id = id;
	conn->qp = qp;
}

static void fake_attach(struct fake_conn *fake)
{
	struct rpcrdma_conn *conn = fake->conn;

	conn->device = &fake->device;
	list_add(&conn->device_list, &fake->device.conns);
	kref_get(&fake->device.ref);
}

/*
 * As small as conn_make_resources() would make it, but for more messages. So few are reposted at
 * once.
 */
static void fake_queues_make(struct kunit *test, struct fake_conn *fake, u32 threshold,
			     u32 version)
{
	struct rpcrdma_conn *conn = fake->conn;
	u32 size = rpcrdma_wire_threshold(version, threshold);
	int ret;

	conn->credits = FAKE_CREDITS;
	conn->send_sges = FAKE_SEND_SGES;
	conn->depths.batch = FAKE_CREDITS;
	conn->depths.sends = FAKE_CREDITS;
	conn->max_chain = FAKE_SQ_SIZE / 2;
	rpcrdma_sq_init(&conn->sq, FAKE_SQ_SIZE);
	mutex_lock(&conn->setup);
	ret = rpcrdma_recv_create(conn, size) ?: rpcrdma_recv_open(conn);
	mutex_unlock(&conn->setup);
	KUNIT_ASSERT_EQ(test, ret, 0);
	KUNIT_ASSERT_EQ(test, fake->num_recvs, RPCRDMA_FIRST_CREDITS);
	KUNIT_ASSERT_EQ(test, rpcrdma_recv_expect(conn, FAKE_MESSAGES, 0), 0);
	KUNIT_ASSERT_EQ(test, rpcrdma_send_create(conn, size), 0);
}

static void fake_no_event(struct rpcrdma_conn *conn)
{
}

static void fake_not_received(struct rpcrdma_conn *conn, struct rpcrdma_recv *recv)
{
	rpcrdma_recv_put(recv);
}

static void fake_not_closed(struct rpcrdma_conn *conn, int status)
{
}

/* Of a connection until the test has a role for it */
static const struct rpcrdma_conn_ops fake_no_role = {
	.received = fake_not_received,
	.writable = fake_no_event,
	.closed = fake_not_closed,
};

/**
 * fake_conn_make - make a connection of a client
 * @test: the test
 * @fake: zeroed memory
 * @threshold: what both ends have agreed on
 * @version: the highest version of its messages
 *
 * It is established, and has no role until the test or fake_conn_serve() gives it one.
 */
void fake_conn_make(struct kunit *test, struct fake_conn *fake, u32 threshold, u32 version)
{
	struct rpcrdma_conn *conn;

	fake_device_make(fake);
	conn = rpcrdma_conn_alloc(false);
	KUNIT_ASSERT_NOT_NULL(test, conn);
	strscpy(conn->peer, "KUnit", sizeof(conn->peer));
	fake->conn = conn;
	conn->ops = &fake_no_role;
	fake_attach(fake);
	fake_verbs_make(test, fake);
	fake_queues_make(test, fake, threshold, version);
	conn->agreement.call_threshold = threshold;
	conn->agreement.reply_threshold = threshold;
	conn->config.version_max = version;
	conn->state = RPCRDMA_STATE_ESTABLISHED;
}

static bool fake_await_closed(const struct rpcrdma_conn *conn)
{
	unsigned int waited;

	for (waited = 0; waited < FAKE_TEARDOWN_MS; waited++) {
		if (READ_ONCE(conn->state) == RPCRDMA_STATE_CLOSED)
			return true;
		usleep_range(1000, 1100);
	}
	return false;
}

/**
 * fake_conn_close - close the connection, and wait until that is over
 * @test: the test, which fails if a thread has entered and does not leave; it ends here, and
 *	frees nothing, if more keeps the connection open
 * @fake: the connection
 */
void fake_conn_close(struct kunit *test, struct fake_conn *fake)
{
	struct rpcrdma_conn *conn = fake->conn;

	rpcrdma_conn_close(conn, -ECANCELED);
	if (!fake_await_closed(conn)) {
		KUNIT_FAIL(test, "a thread has not left the connection\n");
		rpcrdma_conn_leave(conn);
		KUNIT_ASSERT_TRUE(test, fake_await_closed(conn));
	}
	flush_workqueue(rpcrdma_teardown_wq);
}

/**
 * fake_conn_end - close the connection, and check that nobody holds anything of it
 * @test: the test
 * @fake: the connection, whose role is gone
 */
void fake_conn_end(struct kunit *test, struct fake_conn *fake)
{
	fake_conn_close(test, fake);
	KUNIT_EXPECT_EQ(test, fake->broken, 0);
	KUNIT_EXPECT_EQ(test, fake->live_mrs, 0);
	KUNIT_EXPECT_EQ(test, kref_read(&fake->device.ref), 1);
	KUNIT_EXPECT_EQ(test, kref_read(&fake->conn->ref), 1);
	rpcrdma_conn_put(fake->conn);
}

/*
 * A connection alone, of version 1. It is not KUnit's memory: if the test ends early, work items
 * still use it.
 */
struct fake_conn *fake_conn_new(struct kunit *test, u32 threshold)
{
	struct fake_conn *fake = kzalloc(sizeof(*fake), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, fake);
	fake_conn_make(test, fake, threshold, RPCRDMA_VERSION_ONE);
	return fake;
}

void fake_conn_delete(struct kunit *test, struct fake_conn *fake)
{
	fake_conn_end(test, fake);
	kfree(fake);
}

/* The seam: what client/ gets in place of a connection over rdma_cm */

void fake_conn_serve(struct fake_conn *fake)
{
	WRITE_ONCE(fake_served, fake);
}

/* As rpcrdma_conn_connect(), but the outcome is there when it returns. */
static struct rpcrdma_conn *fake_begin(struct fake_conn *fake, const struct sockaddr *source,
				       const struct rpcrdma_conn_config *config)
{
	struct rpcrdma_conn *conn = fake->conn;

	if (fake->connecting)
		fake->connecting(fake, source, config);
	if (fake->connect_error)
		return ERR_PTR(fake->connect_error);
	conn->config = *config;
	conn->config.in_wq = false;	/* each step of a test has an end */
	conn->backward_credits = config->backward_credits;
	conn->role = config->role;
	conn->ops = config->ops;
	/* Of the caller. The test keeps its own. */
	rpcrdma_conn_get(conn);
	if (fake->stalls) {
		conn->state = RPCRDMA_STATE_CONNECTING;
		fake->stalls(fake);
	} else {
		conn->ops->established(conn);
		if (fake->established)
			fake->established(fake);
	}
	return conn;
}

struct rpcrdma_conn *rpcrdma_test_connect(struct net *net, const struct sockaddr *src,
					  const struct sockaddr *dst,
					  const struct rpcrdma_conn_config *config)
{
	struct fake_conn *fake = READ_ONCE(fake_served);

	if (!fake)
		return rpcrdma_conn_connect(net, src, dst, config);
	fake->to = dst;
	return fake_begin(fake, src, config);
}

/* Let the connection have so many registrations more. It makes them as it always does. */
void fake_make_mrs(struct kunit *test, struct fake_conn *fake, unsigned int count)
{
	struct rpcrdma_conn *conn = fake->conn;
	unsigned int round;

	fake->mrs_left = count;
	for (round = 0; fake->mrs_left && round < 2 * count; round++) {
		conn->mrs.wanted = true;
		mod_delayed_work(rpcrdma_wq, &conn->mr_work, 0);
		flush_delayed_work(&conn->mr_work);
	}
	if (fake->mrs_left)
		KUNIT_FAIL(test, "%u registrations were not made\n", fake->mrs_left);
	fake->mrs_left = 0;
	fake_run_callbacks(fake);
}

/* Run ->writable if it is due. */
void fake_run_callbacks(struct fake_conn *fake)
{
	flush_work(&fake->conn->writable_work);
}

/* Complete all works that the device has to report. */
void fake_complete(struct fake_conn *fake)
{
	struct ib_wc wc = { .status = IB_WC_SUCCESS, .qp = fake->conn->qp };
	unsigned int i, count = fake->num_signalled;

	fake->num_signalled = 0;
	for (i = 0; i < count; i++) {
		wc.wr_cqe = fake->signalled[i];
		wc.wr_cqe->done(NULL, &wc);
	}
}

/* The Receive that was posted first. A message arrives in it. */
static struct rpcrdma_recv *fake_fill_recv(struct fake_conn *fake, const void *octets, u32 len)
{
	struct rpcrdma_recv *recv =
		container_of(fake->recv[0].cqe, struct rpcrdma_recv, cqe);

	memcpy(fake->recv[0].data, octets, len);
	fake->num_recvs--;
	memmove(fake->recv, fake->recv + 1, fake->num_recvs * sizeof(fake->recv[0]));
	recv->len = len;
	return recv;
}

/* As if ->received had got the message; for roles that the test plays itself. */
struct rpcrdma_recv *fake_take_recv(struct fake_conn *fake, const void *octets, u32 len)
{
	struct rpcrdma_recv *recv = fake_fill_recv(fake, octets, len);

	recv->resource.held = true;
	return recv;
}

/* The peer sends a message, with Invalidate if @invalidated is not zero. */
void fake_deliver(struct fake_conn *fake, const void *octets, u32 len, u32 invalidated)
{
	struct rpcrdma_recv *recv = fake_fill_recv(fake, octets, len);
	struct ib_wc wc = {
		.wr_cqe = &recv->cqe,
		.status = IB_WC_SUCCESS,
		.opcode = IB_WC_RECV,
		.qp = fake->conn->qp,
		.byte_len = len,
	};

	if (invalidated) {
		fake_invalidate(fake, invalidated);
		wc.wc_flags = IB_WC_WITH_INVALIDATE;
		wc.ex.invalidate_rkey = invalidated;
	}
	recv->cqe.done(NULL, &wc);
}

/* The address of an octet of a registration; NULL if it has fewer */
static u8 *fake_octet(const struct fake_mr *mr, u64 offset)
{
	u64 at = offset - mr->ib.iova + offset_in_page(mr->ib.iova);

	if (offset < mr->ib.iova || offset - mr->ib.iova >= mr->ib.length ||
	    at >> PAGE_SHIFT >= mr->num_pages)
		return NULL;
	return (u8 *)(uintptr_t)mr->page[at >> PAGE_SHIFT] + offset_in_page(at);
}

static struct fake_mr *fake_offered(struct fake_conn *fake, const struct rpcrdma_segment *segment,
				    int access, enum dma_data_direction direction)
{
	struct fake_mr *mr = fake_find_mr(fake, segment->handle);

	return mr && mr->access == access && mr->direction == direction ? mr : NULL;
}

bool fake_read(struct fake_conn *fake, const struct rpcrdma_segment *segment, void *to)
{
	struct fake_mr *mr = fake_offered(fake, segment, IB_ACCESS_REMOTE_READ, DMA_TO_DEVICE);
	u8 *octets = to;
	u32 i;

	for (i = 0; i < segment->length; i++) {
		u8 *octet = mr ? fake_octet(mr, segment->offset + i) : NULL;

		if (!octet)
			return false;
		octets[i] = *octet;
	}
	return true;
}

bool fake_write(struct fake_conn *fake, const struct rpcrdma_segment *segment, u8 value)
{
	struct fake_mr *mr = fake_offered(fake, segment,
					  IB_ACCESS_REMOTE_WRITE | IB_ACCESS_LOCAL_WRITE,
					  DMA_FROM_DEVICE);
	u32 i;

	for (i = 0; i < segment->length; i++) {
		u8 *octet = mr ? fake_octet(mr, segment->offset + i) : NULL;

		if (!octet)
			return false;
		*octet = value;
	}
	return true;
}

/* Registrations that anybody may take, with no memory mapped */
unsigned int fake_idle_mrs(const struct fake_conn *fake)
{
	const struct rpcrdma_mr *mr;
	unsigned int count = 0;

	list_for_each_entry(mr, &fake->conn->mrs.idle, pooled.list)
		count += !mr->mapped;
	return count;
}

/* Sends that somebody has, or that are posted */
unsigned int fake_busy_sends(const struct fake_conn *fake)
{
	return fake->conn->sends.num - fake->conn->sends.num_idle;
}
