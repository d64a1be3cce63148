// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Connections of an iWARP device: what its driver does for the core's iw_cm.
 *
 * iw_cm leaves TCP and MPA (RFC 5044) to the driver. Here a request goes straight to the
 * listener that has the address, on any device, in any network namespace; the wire is
 * memory. Both ends learn of the end of a connection at once, whoever ends it, as by TCP.
 *
 * A request has a number, by which iw_cm's user answers it: iw_cm may drop a request without
 * an answer, and a number that is not known any more does no harm. The client then learns
 * it from a timer, or from the end of the listener.
 */
#include <linux/inetdevice.h>
#include <linux/slab.h>
#include <net/addrconf.h>
#include <rdma/iw_cm.h>

#include "mem.h"

/* How many jiffies a client waits for an answer. The unit tests change it. */
unsigned long mem_iw_connect_timeout = 10 * HZ;

/* TCP's time until it sends again, in the unit of QPs: 4096 ns << 12 is 17 ms */
#define IW_ACK_TIMEOUT	12

enum { IW_CLIENT, IW_SERVER };

/* A listener. It is in the list until destroy_listen, which frees it. */
struct mem_iw_listener {
	struct list_head entry;		/* in listeners */
	struct iw_cm_id *id;		/* a reference */
};

/* One end of a connection. A request has a client only. */
struct mem_iw_end {
	struct mem_qp *qp;		/* its iw is this connection */
	struct iw_cm_id *id;		/* a reference */
};

/*
 * A connection, or the request for one. Its queue pairs refer to it, and have one reference
 * together; the timer of a request has another one.
 */
struct mem_iw {
	struct kref ref;
	struct list_head entry;		/* a request's, in requests; else empty */
	unsigned long number;		/* never 0 */
	struct mem_iw_listener *listener;	/* a request's */
	struct mem_iw_end end[2];
	u32 ord, ird;			/* the client's: RDMA Reads that it sends, and takes */
	struct delayed_work timeout;
};

/* Protects what follows, mem_qp.iw and the connections. Held while iw_cm is told. */
static DEFINE_SPINLOCK(mem_iw_lock);
static LIST_HEAD(listeners);
static LIST_HEAD(requests);
static unsigned long next_number;

static void iw_release(struct kref *ref)
{
	kfree(container_of(ref, struct mem_iw, ref));
}

static void iw_put(struct mem_iw *iw)
{
	kref_put(&iw->ref, iw_release);
}

/*
 * Tell iw_cm something without data. iw_cm has allocated the work item of these events before,
 * so this cannot fail.
 */
static void iw_tell(struct iw_cm_id *id, enum iw_cm_event_type type)
{
	struct iw_cm_event event = { .event = type };

	id->event_handler(id, &event);
}

static int iw_send_reply(struct iw_cm_id *id, struct iw_cm_event *event)
{
	event->event = IW_CM_EVENT_CONNECT_REPLY;
	event->local_addr = id->local_addr;
	event->remote_addr = id->remote_addr;
	return id->event_handler(id, event);
}

/* Tell a client that it has no connection. If its data cannot be told, the rest is. */
static void iw_tell_refused(struct iw_cm_id *id, int status, const void *data, u8 len)
{
	struct iw_cm_event event = {
		.status = status, .private_data = (void *)data, .private_data_len = len,
	};

	if (!iw_send_reply(id, &event))
		return;
	event.private_data_len = 0;
	iw_send_reply(id, &event);
}

/* A request is a request no more. */
static void iw_answered(struct mem_iw *iw)
{
	lockdep_assert_held(&mem_iw_lock);
	list_del_init(&iw->entry);
	if (cancel_delayed_work(&iw->timeout))
		iw_put(iw);
}

/* Nothing comes of a request: tell the client, and forget it. */
static void iw_refuse(struct mem_iw *iw, int status, const void *data, u8 len)
{
	struct mem_iw_end *client = &iw->end[IW_CLIENT];

	iw_answered(iw);
	WRITE_ONCE(client->qp->iw, NULL);
	iw_tell_refused(client->id, status, data, len);
	client->id->rem_ref(client->id);
	iw_put(iw);
}

static void iw_timeout(struct work_struct *work)
{
	struct mem_iw *iw = container_of(to_delayed_work(work), struct mem_iw, timeout);

	spin_lock_irq(&mem_iw_lock);
	if (!list_empty(&iw->entry))
		iw_refuse(iw, -ETIMEDOUT, NULL, 0);
	spin_unlock_irq(&mem_iw_lock);
	iw_put(iw);
}

static bool iw_has_ipv4(struct net_device *ndev, __be32 addr)
{
	struct in_device *in_dev;
	const struct in_ifaddr *ifa;
	bool found = false;

	rcu_read_lock();
	in_dev = __in_dev_get_rcu(ndev);
	if (in_dev) {
		in_dev_for_each_ifa_rcu(ifa, in_dev)
			found |= ifa->ifa_local == addr;
	}
	rcu_read_unlock();
	return found;
}

static bool iw_has_ipv6(struct net_device *ndev, const struct in6_addr *addr)
{
	return IS_ENABLED(CONFIG_IPV6) && ipv6_chk_addr(dev_net(ndev), addr, ndev, 1);
}

static bool iw_listens4(const struct iw_cm_id *id, const struct sockaddr_in *addr)
{
	const struct sockaddr_in *own = (const void *)&id->local_addr;

	if (own->sin_port != addr->sin_port)
		return false;
	if (own->sin_addr.s_addr == htonl(INADDR_ANY))
		return iw_has_ipv4(to_mem_dev(id->device)->ndev, addr->sin_addr.s_addr);
	return own->sin_addr.s_addr == addr->sin_addr.s_addr;
}

static bool iw_listens6(const struct iw_cm_id *id, const struct sockaddr_in6 *addr)
{
	const struct sockaddr_in6 *own = (const void *)&id->local_addr;

	if (own->sin6_port != addr->sin6_port)
		return false;
	if (ipv6_addr_any(&own->sin6_addr))
		return iw_has_ipv6(to_mem_dev(id->device)->ndev, &addr->sin6_addr);
	return ipv6_addr_equal(&own->sin6_addr, &addr->sin6_addr);
}

/* Does a listener have an address? One of any address has those of its interface. */
static bool iw_listens(const struct iw_cm_id *id, const struct sockaddr_storage *addr)
{
	if (id->local_addr.ss_family != addr->ss_family)
		return false;
	return addr->ss_family == AF_INET ? iw_listens4(id, (const void *)addr) :
					    iw_listens6(id, (const void *)addr);
}

static struct mem_iw_listener *iw_find_listener(const struct sockaddr_storage *addr)
{
	struct mem_iw_listener *listener;

	lockdep_assert_held(&mem_iw_lock);
	list_for_each_entry(listener, &listeners, entry)
		if (iw_listens(listener->id, addr))
			return listener;
	return NULL;
}

static bool iw_port_up(const struct iw_cm_id *id)
{
	return READ_ONCE(to_mem_dev(id->device)->port_up);
}

/*
 * The queue pair that is to get a connection. The caller holds the lock, which keeps it:
 * mem_destroy_qp() ends its connection when nobody finds it any more.
 */
static struct mem_qp *iw_qp(const struct iw_cm_id *id, const struct iw_cm_conn_param *param)
{
	struct mem_qp *qp = mem_qp_find(param->qpn);
	struct mem_dev *dev = to_mem_dev(id->device);
	enum ib_qp_state state;

	lockdep_assert_held(&mem_iw_lock);
	if (!qp)
		return NULL;
	state = READ_ONCE(qp->state);
	mem_qp_put(qp);
	if (qp->dev != dev || qp->iw || (state != IB_QPS_INIT && state != IB_QPS_RTR))
		return NULL;
	if (param->ord > dev->limits.max_qp_init_rd_atom ||
	    param->ird > dev->limits.max_qp_rd_atom) {
		mem_violation(dev, MEM_RULE_LIMIT, "QP %u: %u RDMA Reads sent, %u taken",
			      qp->number, param->ord, param->ird);
		return NULL;
	}
	return qp;
}

/* Give a request to the listener that has the address. Return: 0, or what the client hears. */
static int iw_request(struct mem_iw *iw, const struct iw_cm_conn_param *param)
{
	const struct iw_cm_id *id = iw->end[IW_CLIENT].id;
	struct iw_cm_event event = {
		.event = IW_CM_EVENT_CONNECT_REQUEST,
		.local_addr = id->remote_addr,
		.remote_addr = id->local_addr,
		.private_data = (void *)param->private_data,
		.private_data_len = param->private_data_len,
		/* what the server may send, and has to take */
		.ird = param->ird,
		.ord = param->ord,
	};

	iw->listener = iw_find_listener(&id->remote_addr);
	if (!iw_port_up(id) || (iw->listener && !iw_port_up(iw->listener->id)))
		return -ETIMEDOUT;
	if (!iw->listener)
		return -ECONNRESET;
	iw->number = ++next_number;
	event.provider_data = (void *)iw->number;
	/* It fails if there are more requests than the user wants at once. */
	if (iw->listener->id->event_handler(iw->listener->id, &event))
		return -ECONNRESET;
	list_add_tail(&iw->entry, &requests);
	kref_get(&iw->ref);
	queue_delayed_work(mem_wq, &iw->timeout, mem_iw_connect_timeout);
	return 0;
}

int mem_iw_connect(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct mem_iw *iw;
	struct mem_qp *qp;
	int status;

	if (id->remote_addr.ss_family != AF_INET && id->remote_addr.ss_family != AF_INET6)
		return -EAFNOSUPPORT;
	if (param->private_data_len > U8_MAX)
		return -EINVAL;
	iw = kzalloc(sizeof(*iw), GFP_KERNEL);
	if (!iw)
		return -ENOMEM;
	kref_init(&iw->ref);
	INIT_LIST_HEAD(&iw->entry);
	INIT_DELAYED_WORK(&iw->timeout, iw_timeout);
	iw->ord = param->ord;
	iw->ird = param->ird;

	spin_lock_irq(&mem_iw_lock);
	qp = iw_qp(id, param);
	if (!qp) {
		spin_unlock_irq(&mem_iw_lock);
		iw_put(iw);
		return -EINVAL;
	}
	id->add_ref(id);
	iw->end[IW_CLIENT] = (struct mem_iw_end){ .qp = qp, .id = id };
	WRITE_ONCE(qp->iw, iw);
	status = iw_request(iw, param);
	if (status)
		iw_refuse(iw, status, NULL, 0);
	spin_unlock_irq(&mem_iw_lock);
	return 0;
}

static struct mem_iw *iw_find_request(const struct iw_cm_id *id)
{
	struct mem_iw *iw;

	lockdep_assert_held(&mem_iw_lock);
	list_for_each_entry(iw, &requests, entry)
		if (iw->number == (unsigned long)id->provider_data)
			return iw;
	return NULL;
}

/* Connect one end. Return: whether its user has not ended it meanwhile. */
static bool iw_join(struct mem_qp *qp, const struct mem_qp *peer, u32 ord, u32 ird)
{
	bool ok;

	lockdep_assert_held(&mem_iw_lock);
	spin_lock(&qp->lock);
	ok = qp->state == IB_QPS_INIT || qp->state == IB_QPS_RTR;
	if (ok) {
		qp->attr.dest_qp_num = peer->number;
		qp->attr.max_rd_atomic = ord;
		qp->attr.max_dest_rd_atomic = ird;
		qp->attr.timeout = IW_ACK_TIMEOUT;
		qp->path_checked = true;
		smp_store_release(&qp->state, IB_QPS_RTS);	/* see engine_peer() */
	}
	spin_unlock(&qp->lock);
	return ok;
}

/* Move one end to the error state. */
static void iw_break(struct mem_qp *qp)
{
	lockdep_assert_held(&mem_iw_lock);
	spin_lock(&qp->lock);
	if (qp->state == IB_QPS_RTS)
		WRITE_ONCE(qp->state, IB_QPS_ERR);
	spin_unlock(&qp->lock);
	mem_engine_ring(qp);
}

/* Make a connection of a request. Return: 0, or an error, and no end is told. */
static int iw_establish(struct mem_iw *iw, struct mem_iw_end *server,
			const struct iw_cm_conn_param *param)
{
	struct mem_iw_end *client = &iw->end[IW_CLIENT];
	struct iw_cm_event event = {
		.private_data = (void *)param->private_data,
		.private_data_len = param->private_data_len,
		.ird = param->ird,
		.ord = param->ord,
	};

	if (!iw_join(server->qp, client->qp, param->ord, param->ird))
		return -ECONNRESET;
	/* The client learns only now how many Reads the server takes. */
	if (!iw_join(client->qp, server->qp, min(iw->ord, param->ird), iw->ird) ||
	    iw_send_reply(client->id, &event)) {
		iw_break(server->qp);
		iw_break(client->qp);
		return -ECONNRESET;
	}
	iw_answered(iw);
	iw->end[IW_SERVER] = *server;
	server->id->add_ref(server->id);
	WRITE_ONCE(server->qp->iw, iw);
	event = (struct iw_cm_event){
		.event = IW_CM_EVENT_ESTABLISHED, .ird = param->ord, .ord = param->ird,
	};
	server->id->event_handler(server->id, &event);
	return 0;
}

int mem_iw_accept(struct iw_cm_id *id, struct iw_cm_conn_param *param)
{
	struct mem_iw_end server = { .id = id };
	int ret = -ECONNRESET;
	struct mem_iw *iw;

	spin_lock_irq(&mem_iw_lock);
	iw = iw_find_request(id);
	if (!iw)
		goto unlock;
	server.qp = iw_qp(id, param);
	if (!server.qp || param->private_data_len > U8_MAX)
		ret = -EINVAL;
	else
		ret = iw_establish(iw, &server, param);
	if (ret)
		iw_refuse(iw, -ECONNRESET, NULL, 0);
unlock:
	spin_unlock_irq(&mem_iw_lock);
	return ret;
}

int mem_iw_reject(struct iw_cm_id *id, const void *data, u8 len)
{
	struct mem_iw *iw;

	spin_lock_irq(&mem_iw_lock);
	iw = iw_find_request(id);
	if (iw)
		iw_refuse(iw, -ECONNREFUSED, data, len);
	spin_unlock_irq(&mem_iw_lock);
	return iw ? 0 : -ECONNRESET;
}

int mem_iw_create_listen(struct iw_cm_id *id, int backlog)
{
	struct mem_iw_listener *listener;

	if (id->local_addr.ss_family != AF_INET && id->local_addr.ss_family != AF_INET6)
		return -EAFNOSUPPORT;
	listener = kzalloc(sizeof(*listener), GFP_KERNEL);
	if (!listener)
		return -ENOMEM;
	id->add_ref(id);
	id->provider_data = listener;
	listener->id = id;
	atomic_inc(&to_mem_dev(id->device)->num_listeners);
	spin_lock_irq(&mem_iw_lock);
	list_add_tail(&listener->entry, &listeners);
	spin_unlock_irq(&mem_iw_lock);
	return 0;
}

int mem_iw_destroy_listen(struct iw_cm_id *id)
{
	struct mem_iw_listener *listener = id->provider_data;
	struct mem_iw *iw, *next;

	spin_lock_irq(&mem_iw_lock);
	list_del(&listener->entry);
	list_for_each_entry_safe(iw, next, &requests, entry)
		if (iw->listener == listener)
			iw_refuse(iw, -ECONNRESET, NULL, 0);
	spin_unlock_irq(&mem_iw_lock);
	atomic_dec(&to_mem_dev(id->device)->num_listeners);
	id->rem_ref(id);
	kfree(listener);
	return 0;
}

/* End a connection: both ends are told, and the other one goes to the error state. */
static void iw_end(struct mem_iw *iw, const struct mem_qp *qp)
{
	int i;

	lockdep_assert_held(&mem_iw_lock);
	for (i = 0; i < ARRAY_SIZE(iw->end); i++) {
		struct mem_iw_end *end = &iw->end[i];

		WRITE_ONCE(end->qp->iw, NULL);
		if (end->qp != qp) {
			iw_break(end->qp);
			iw_tell(end->id, IW_CM_EVENT_DISCONNECT);
		}
		iw_tell(end->id, IW_CM_EVENT_CLOSE);
		end->id->rem_ref(end->id);
	}
	iw_put(iw);
}

/**
 * mem_iw_close - end the connection of a queue pair, or its request for one
 * @qp: the queue pair, which leaves the state that it has with a connection
 *
 * Does nothing on RoCE, or if there is no connection.
 *
 * Context: any but hard interrupts, with no lock held.
 */
void mem_iw_close(struct mem_qp *qp)
{
	unsigned long flags;

	spin_lock_irqsave(&mem_iw_lock, flags);
	if (qp->iw && !list_empty(&qp->iw->entry))
		iw_refuse(qp->iw, -ECONNRESET, NULL, 0);
	else if (qp->iw)
		iw_end(qp->iw, qp);
	spin_unlock_irqrestore(&mem_iw_lock, flags);
}

void mem_iw_add_ref(struct ib_qp *qp)
{
	refcount_inc(&to_mem_qp(qp)->ref);
}

void mem_iw_rem_ref(struct ib_qp *qp)
{
	mem_qp_put(to_mem_qp(qp));
}

/* iw_cm's user keeps the queue pair, so that it can have a reference next. */
struct ib_qp *mem_iw_get_qp(struct ib_device *ib, int number)
{
	struct mem_qp *qp = mem_qp_find(number);

	if (!qp)
		return NULL;
	mem_qp_put(qp);
	return qp->dev == to_mem_dev(ib) ? &qp->ib : NULL;
}

/* The only GID of an iWARP port is the MAC address of its interface. */
int mem_iw_query_gid(struct ib_device *ib, u32 port, int index, union ib_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	memcpy(gid->raw, to_mem_dev(ib)->ndev->dev_addr, ETH_ALEN);
	return 0;
}

/**
 * mem_iw_modify_ok - may the user of an iWARP queue pair change this?
 * @from: its state
 * @to: its next state
 * @mask: what is changed
 *
 * The device itself moves it to RTS, when there is a connection, and knows its peer.
 *
 * Context: any.
 * Return: whether it may.
 */
bool mem_iw_modify_ok(enum ib_qp_state from, enum ib_qp_state to, int mask)
{
	if (mask & ~(IB_QP_STATE | IB_QP_ACCESS_FLAGS | IB_QP_PORT))
		return false;
	return to == from || to == IB_QPS_ERR || to == IB_QPS_RESET ||
	       (to <= IB_QPS_RTR && to == from + 1);
}
