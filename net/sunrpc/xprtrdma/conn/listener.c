// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A listener: connection requests arrive here and wait for the role.
 */
#define pr_fmt(fmt) "rpcrdma: " fmt

#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <rdma/ib_addr.h>

#include "conn_private.h"
#include "../status/status.h"

/* Requests that the iWARP CM keeps until it has reported them */
#define BACKLOG		512

/* While requests wait and none may be taken, they are looked at again after this time. */
#define LOOK_DELAY	(HZ / 50)

/* How long a request may wait for memory */
#define MEMORY_WAIT_MS	5000

/* How long to wait before listening again, at an address whose device was removed */
#define RELISTEN_DELAY	(5 * HZ)

DEFINE_MUTEX(rpcrdma_listeners_lock);	/* protects these */
LIST_HEAD(rpcrdma_listeners);
static u32 listener_last_id;

static int listener_on_request(struct rpcrdma_listener *listener, struct rdma_cm_id *id,
			       const struct rdma_cm_event *event)
{
	const struct sockaddr_storage *local = &id->route.addr.src_addr;
	const struct sockaddr_storage *peer = &id->route.addr.dst_addr;
	struct rpcrdma_conn *conn;

	if (!rpcrdma_admission_may(peer, RPCRDMA_ADMISSION_WAITING)) {
		pr_warn_ratelimited("%pISc: refused: too many connection requests wait\n", peer);
		rpcrdma_listener_refused(listener, RPCRDMA_REFUSAL_BACKLOG, -ECONNREFUSED, local,
					 peer);
		return -ECONNREFUSED;
	}
	conn = rpcrdma_conn_request(listener->net, id, event);
	if (!conn) {
		rpcrdma_listener_refused(listener, RPCRDMA_REFUSAL_MEMORY, -ENOMEM, local, peer);
		return -ENOMEM;
	}
	spin_lock_bh(&listener->lock);
	list_add_tail(&conn->pending_list, &listener->pending[rpcrdma_admission_host(peer)]);
	listener->num_pending++;
	spin_unlock_bh(&listener->lock);
	listener->incoming(listener->role);
	return 0;
}

/*
 * Events of the listener's identifier. The identifier of a connection gets its own
 * handler in rpcrdma_conn_request(). If this returns an error, rdma_cm rejects the
 * request.
 */
static int listener_event(struct rdma_cm_id *id, struct rdma_cm_event *event)
{
	struct rpcrdma_listener *listener = id->context;

	switch (event->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		return listener_on_request(listener, id, event);
	case RDMA_CM_EVENT_ADDR_CHANGE:
	case RDMA_CM_EVENT_DEVICE_REMOVAL:
		/* rdma_cm holds the identifier's lock here, so the work destroys it. */
		mod_delayed_work(rpcrdma_wq, &listener->relisten, 0);
		break;
	default:
		break;
	}
	return 0;
}

static int listener_listen(struct rpcrdma_listener *listener)
{
	struct sockaddr *addr = (struct sockaddr *)&listener->addr;
	/* rdma_cm allocates under a lock that clients need as well, to connect and to close. */
	unsigned int noio = memalloc_noio_save();
	struct rdma_cm_id *id;
	int err;

	id = rdma_create_id(listener->net, listener_event, listener, RDMA_PS_TCP, IB_QPT_RC);
	err = PTR_ERR_OR_ZERO(id);
	/* Otherwise no IPv4 listener could use the same port. */
	if (!err && addr->sa_family == AF_INET6)
		err = rdma_set_afonly(id, 1);
	if (!err)
		err = rdma_bind_addr(id, addr);
	if (!err)
		err = rdma_listen(id, BACKLOG);
	if (err && !IS_ERR(id))
		rdma_destroy_id(id);
	memalloc_noio_restore(noio);
	if (err)
		return err;
	/* The address now has the port that rdma_cm has chosen, if @addr had none. */
	listener->addr = id->route.addr.src_addr;
	listener->state_since = ktime_get();
	WRITE_ONCE(listener->cm_id, id);
	return 0;
}

static void listener_close(struct rpcrdma_listener *listener)
{
	struct rdma_cm_id *id = listener->cm_id;

	if (!id)
		return;
	rdma_destroy_id(id);
	listener->state_since = ktime_get();
	WRITE_ONCE(listener->cm_id, NULL);
}

static void listener_relisten_work(struct work_struct *work)
{
	struct rpcrdma_listener *listener = container_of(to_delayed_work(work),
							 struct rpcrdma_listener, relisten);

	mutex_lock(&listener->setup);
	listener_close(listener);
	if (!listener->dead && listener_listen(listener))
		queue_delayed_work(rpcrdma_wq, &listener->relisten, RELISTEN_DELAY);
	mutex_unlock(&listener->setup);
}

/*
 * Need a request not wait: the role may take it, or it is closed, or it is to be refused, because
 * all the time there was no memory for it. That others begin and may take what there is, is no
 * reason to refuse it.
 */
static bool listener_may_take_locked(struct rpcrdma_listener *listener,
				     const struct rpcrdma_conn *conn, bool *refuse)
{
	ktime_t *lacking = &listener->lacking[rpcrdma_admission_host(&conn->peer_addr)];
	bool has_memory = rpcrdma_admission_has_memory(&conn->peer_addr, true);
	ktime_t now = ktime_get();

	lockdep_assert_held(&listener->lock);
	*refuse = false;
	if (READ_ONCE(conn->state) != RPCRDMA_STATE_PENDING)
		return true;
	if (has_memory || rpcrdma_admission_has_memory(&conn->peer_addr, false))
		*lacking = 0;
	else if (!*lacking)
		*lacking = now;
	else
		*refuse = ktime_ms_delta(now, max(*lacking, READ_ONCE(conn->state_since))) >=
			  MEMORY_WAIT_MS;
	return (has_memory || *refuse) &&
	       rpcrdma_admission_may(&conn->peer_addr, RPCRDMA_ADMISSION_BEGINNING);
}

/*
 * The next request that need not wait: the first of each host in turn. All of a host share its
 * limits, so the others need no look. If requests wait and none may be taken, @look looks again
 * later.
 */
static struct rpcrdma_conn *listener_next_locked(struct rpcrdma_listener *listener, bool *refuse)
{
	struct rpcrdma_conn *conn;
	unsigned int i;

	lockdep_assert_held(&listener->lock);
	if (!listener->num_pending)
		return NULL;
	for (i = 0; i < RPCRDMA_HOSTS; i++, listener->turn++) {
		conn = list_first_entry_or_null(&listener->pending[listener->turn % RPCRDMA_HOSTS],
						struct rpcrdma_conn, pending_list);
		if (conn && listener_may_take_locked(listener, conn, refuse))
			return conn;
	}
	queue_delayed_work(rpcrdma_wq, &listener->look, LOOK_DELAY);
	return NULL;
}

static void listener_look_work(struct work_struct *work)
{
	struct rpcrdma_listener *listener = container_of(to_delayed_work(work),
							 struct rpcrdma_listener, look);
	bool any, refuse;

	spin_lock_bh(&listener->lock);
	any = listener_next_locked(listener, &refuse);
	spin_unlock_bh(&listener->lock);
	if (any)
		listener->incoming(listener->role);
}

/**
 * rpcrdma_listener_create - listen for connection requests
 * @net: network namespace of @addr; the caller keeps it until the listener is destroyed
 * @addr: address to listen at, may be the wildcard; port zero: any free port
 * @incoming: called when rpcrdma_listener_next() may have something. Runs in rdma_cm's
 *	event handler or in a work item. Must not sleep for long or destroy the
 *	listener.
 * @role: passed to @incoming
 *
 * Context: may sleep.
 * Return: the listener, owned by the caller; or an ERR_PTR.
 */
struct rpcrdma_listener *rpcrdma_listener_create(struct net *net, const struct sockaddr *addr,
						 void (*incoming)(void *role), void *role)
{
	struct rpcrdma_listener *listener;
	unsigned int host;
	int err;

	if (addr->sa_family != AF_INET && !(IS_ENABLED(CONFIG_IPV6) && addr->sa_family == AF_INET6))
		return ERR_PTR(-EAFNOSUPPORT);
	listener = kzalloc(sizeof(*listener), GFP_KERNEL);
	if (!listener)
		return ERR_PTR(-ENOMEM);
	listener->net = net;
	listener->incoming = incoming;
	listener->role = role;
	memcpy(&listener->addr, addr, rdma_addr_size(addr));
	mutex_init(&listener->setup);
	INIT_DELAYED_WORK(&listener->relisten, listener_relisten_work);
	spin_lock_init(&listener->lock);
	INIT_LIST_HEAD(&listener->all);
	for (host = 0; host < RPCRDMA_HOSTS; host++)
		INIT_LIST_HEAD(&listener->pending[host]);
	INIT_DELAYED_WORK(&listener->look, listener_look_work);

	mutex_lock(&listener->setup);
	err = listener_listen(listener);
	mutex_unlock(&listener->setup);
	if (err) {
		/* A request may have come before it failed. */
		rpcrdma_listener_destroy(listener);
		return ERR_PTR(err);
	}
	mutex_lock(&rpcrdma_listeners_lock);
	listener->id = ++listener_last_id;
	list_add_tail(&listener->all, &rpcrdma_listeners);
	mutex_unlock(&rpcrdma_listeners_lock);
	return listener;
}

/* Its port is never zero. Valid until the listener is destroyed. */
const struct sockaddr *rpcrdma_listener_address(struct rpcrdma_listener *listener)
{
	return (const struct sockaddr *)&listener->addr;
}

/* Refuse a request that has left the listener, and was not closed. */
static void listener_refuse(struct rpcrdma_listener *listener, struct rpcrdma_conn *conn,
			    enum rpcrdma_refusal why, int err)
{
	rpcrdma_listener_refused(listener, why, err, &conn->local_addr, &conn->peer_addr);
	rpcrdma_conn_close(conn, err);
}

/**
 * rpcrdma_listener_next - take a connection request
 * @listener: the listener
 *
 * Requests wait while too many connections begin or end, or memory is short. ->incoming is called
 * when one may be taken. One that has waited too long for memory is refused.
 *
 * Return: the connection, with a reference for the caller, who calls rpcrdma_conn_accept(), or
 * rpcrdma_conn_close() to refuse it; or NULL if no request may be taken now.
 */
struct rpcrdma_conn *rpcrdma_listener_next(struct rpcrdma_listener *listener)
{
	struct rpcrdma_conn *conn;
	bool refuse;

	for (;;) {
		spin_lock_bh(&listener->lock);
		conn = listener_next_locked(listener, &refuse);
		if (conn) {
			list_del_init(&conn->pending_list);
			listener->num_pending--;
			listener->turn++;
		}
		spin_unlock_bh(&listener->lock);
		if (!conn)
			return NULL;
		if (rpcrdma_admission_begin(conn)) {
			if (!refuse)
				return conn;
			pr_warn_ratelimited("%pISc: refused: too little memory for another connection: add memory, or use fewer connections\n",
					    &conn->peer_addr);
			listener_refuse(listener, conn, RPCRDMA_REFUSAL_MEMORY, -ENOMEM);
		}
		rpcrdma_conn_put(conn);
	}
}

/**
 * rpcrdma_listener_destroy - stop listening, and refuse the requests that wait
 * @listener: the listener; the caller makes sure that nothing else uses it
 *
 * When this returns, ->incoming does not run and will not be called.
 *
 * Context: may sleep.
 */
void rpcrdma_listener_destroy(struct rpcrdma_listener *listener)
{
	struct rpcrdma_conn *conn, *next;
	unsigned int host;
	LIST_HEAD(pending);

	mutex_lock(&rpcrdma_listeners_lock);
	list_del(&listener->all);
	mutex_unlock(&rpcrdma_listeners_lock);
	mutex_lock(&listener->setup);
	listener->dead = true;
	listener_close(listener);
	mutex_unlock(&listener->setup);
	cancel_delayed_work_sync(&listener->relisten);
	cancel_delayed_work_sync(&listener->look);

	/* No lock: nothing adds or takes requests any more. */
	for (host = 0; host < RPCRDMA_HOSTS; host++)
		list_splice(&listener->pending[host], &pending);
	list_for_each_entry_safe(conn, next, &pending, pending_list) {
		list_del_init(&conn->pending_list);
		if (rpcrdma_admission_begin(conn))
			listener_refuse(listener, conn, RPCRDMA_REFUSAL_SERVICE, -ESHUTDOWN);
		rpcrdma_conn_put(conn);
	}
	mutex_destroy(&listener->setup);
	kfree(listener);
}

/* For status/. The role has accepted a connection request. */
void rpcrdma_listener_accepted(struct rpcrdma_listener *listener)
{
	spin_lock_bh(&listener->lock);
	listener->accepted++;
	spin_unlock_bh(&listener->lock);
}

/* For status/. A connection request was refused, by the role or by this layer. */
void rpcrdma_listener_refused(struct rpcrdma_listener *listener, enum rpcrdma_refusal why, int err,
			      const struct sockaddr_storage *local,
			      const struct sockaddr_storage *peer)
{
	spin_lock_bh(&listener->lock);
	listener->refused++;
	spin_unlock_bh(&listener->lock);
	rpcrdma_status_refused(listener->net, why, err, local, peer);
}
