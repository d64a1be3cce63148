/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Tracepoints of all layers: the states of a connection, the form of each Call
 * and Reply, and errors. Strings are arrays of fixed size, because the
 * arguments of __assign_str() differ between kernel versions.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rpcrdma

#if !defined(RPCRDMA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RPCRDMA_TRACE_H

#include <linux/string.h>
#include <linux/tracepoint.h>
#include <rdma/ib_cm.h>
#include <rdma/ib_verbs.h>
#include <rdma/rdma_cm.h>
#include <trace/misc/rdma.h>

#include "conn/conn.h"
#include "wire/message.h"

#ifndef RPCRDMA_TRACE_ONCE
#define RPCRDMA_TRACE_ONCE

/* The form of a message. None of these: all of it is inline. */
enum {
	RPCRDMA_FORM_LONG = 1,		/* Position Zero Read chunk */
	RPCRDMA_FORM_READ = 2,		/* any other Read chunk */
	RPCRDMA_FORM_WRITE = 4,		/* Write chunk: offered, or filled */
	RPCRDMA_FORM_REPLY = 8,		/* Reply chunk: offered, or filled */
};

static inline unsigned int
rpcrdma_form_of_call(const struct rpcrdma_message *msg)
{
	bool zero = rpcrdma_position_zero(msg);

	return (zero ? RPCRDMA_FORM_LONG : 0) |
	       (msg->num_reads > zero ? RPCRDMA_FORM_READ : 0) |
	       (msg->num_writes ? RPCRDMA_FORM_WRITE : 0) |
	       (msg->has_reply_chunk ? RPCRDMA_FORM_REPLY : 0);
}

static inline unsigned int
rpcrdma_form_of_reply(const struct rpcrdma_message *msg)
{
	unsigned int form = 0, i;

	for (i = 0; i < msg->num_writes; i++)
		if (msg->write[i].written)
			form |= RPCRDMA_FORM_WRITE;
	if (msg->has_reply_chunk && msg->reply_chunk.written)
		form |= RPCRDMA_FORM_REPLY;
	return form;
}

#endif /* RPCRDMA_TRACE_ONCE */

/* Values that traces print by name. EM_END is for the last one of a list. */

#define RPCRDMA_FORMS							\
	EM(RPCRDMA_FORM_LONG, "long") EM(RPCRDMA_FORM_READ, "read")	\
	EM(RPCRDMA_FORM_WRITE, "write") EM_END(RPCRDMA_FORM_REPLY, "reply")

#define RPCRDMA_PROCS							\
	EM(RPCRDMA_MSG, "RDMA_MSG") EM(RPCRDMA_NOMSG, "RDMA_NOMSG")	\
	EM(RPCRDMA_MSGP, "RDMA_MSGP") EM(RPCRDMA_DONE, "RDMA_DONE")	\
	EM(RPCRDMA_OPTIONAL, "RDMA2_OPTIONAL")				\
	EM_END(RPCRDMA_ERROR, "RDMA_ERROR")

#define RPCRDMA_ERR(name) EM(RPCRDMA_ERR_##name, #name)

#define RPCRDMA_ERRORS							\
	RPCRDMA_ERR(VERS) RPCRDMA_ERR(BAD_XDR) RPCRDMA_ERR(CANT_REPLY)	\
	RPCRDMA_ERR(INVAL_PROC)						\
	EM_END(RPCRDMA_ERR_INVAL_OPTION, "INVAL_OPTION")

#define RPCRDMA_STATES							\
	EM(RPCRDMA_STATE_RESOLVING, "RESOLVING")			\
	EM(RPCRDMA_STATE_CONNECTING, "CONNECTING")			\
	EM(RPCRDMA_STATE_PENDING, "PENDING")				\
	EM(RPCRDMA_STATE_ACCEPTING, "ACCEPTING")			\
	EM(RPCRDMA_STATE_ESTABLISHED, "ESTABLISHED")			\
	EM(RPCRDMA_STATE_CLOSING, "CLOSING")				\
	EM_END(RPCRDMA_STATE_CLOSED, "CLOSED")

#define RPCRDMA_BAD(name) EM(RPCRDMA_BAD_##name, #name)

#define RPCRDMA_REASONS							\
	RPCRDMA_BAD(SHORT) RPCRDMA_BAD(VERSION) RPCRDMA_BAD(PROC)	\
	RPCRDMA_BAD(MSGP) RPCRDMA_BAD(DONE) RPCRDMA_BAD(ERROR)		\
	RPCRDMA_BAD(TRUNCATED) RPCRDMA_BAD(DISCRIMINATOR)		\
	RPCRDMA_BAD(SEGMENT_COUNT) RPCRDMA_BAD(CHUNK_COUNT)		\
	RPCRDMA_BAD(SEGMENT_RANGE) RPCRDMA_BAD(CHUNK_LENGTH)		\
	RPCRDMA_BAD(POSITION_ALIGN) RPCRDMA_BAD(POSITION_HEAD)		\
	RPCRDMA_BAD(POSITION_OVERLAP) RPCRDMA_BAD(POSITION_BEYOND)	\
	RPCRDMA_BAD(READ_IN_REPLY) RPCRDMA_BAD(NO_PAYLOAD)		\
	RPCRDMA_BAD(PAYLOAD_SHORT) RPCRDMA_BAD(MSG_TYPE)		\
	RPCRDMA_BAD(MSG_DIRECTION) RPCRDMA_BAD(OPTION)			\
	RPCRDMA_BAD(XID) RPCRDMA_BAD(DIRECTION)				\
	EM_END(RPCRDMA_OK, "OK")

#undef EM
#undef EM_END
#define EM(value, name) TRACE_DEFINE_ENUM(value);
#define EM_END(value, name) TRACE_DEFINE_ENUM(value);
RPCRDMA_FORMS RPCRDMA_PROCS RPCRDMA_ERRORS RPCRDMA_STATES RPCRDMA_REASONS

#undef EM
#undef EM_END
#define EM(value, name) { value, name },
#define EM_END(value, name) { value, name }

#define rpcrdma_show_form(form)						\
	((form) ? __print_flags(form, "+", RPCRDMA_FORMS) : "inline")
#define rpcrdma_show_proc(proc) __print_symbolic(proc, RPCRDMA_PROCS)
#define rpcrdma_show_error(error)					\
	((error) ? __print_symbolic(error, RPCRDMA_ERRORS) : "none")
#define rpcrdma_show_state(state) __print_symbolic(state, RPCRDMA_STATES)
#define rpcrdma_show_reason(reason) __print_symbolic(reason, RPCRDMA_REASONS)

/* The life of a connection */

TRACE_EVENT(rpcrdma_conn_state,
	TP_PROTO(const struct rpcrdma_conn *conn, unsigned int state,
		 int status),
	TP_ARGS(conn, state, status),
	TP_STRUCT__entry(
		__field(u32, id)
		__array(char, peer, RPCRDMA_PEER_LEN)
		__field(unsigned int, state)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->id = conn->id;
		memcpy(__entry->peer, conn->peer, RPCRDMA_PEER_LEN);
		__entry->state = state;
		__entry->status = status;
	),
	TP_printk("conn=%u peer=%s state=%s status=%d",
		  __entry->id, __entry->peer,
		  rpcrdma_show_state(__entry->state), __entry->status)
);

TRACE_EVENT(rpcrdma_conn_event,
	TP_PROTO(const struct rpcrdma_conn *conn,
		 const struct rdma_cm_event *event),
	TP_ARGS(conn, event),
	TP_STRUCT__entry(
		__field(u32, id)
		__array(char, peer, RPCRDMA_PEER_LEN)
		__field(unsigned long, event)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->id = conn->id;
		memcpy(__entry->peer, conn->peer, RPCRDMA_PEER_LEN);
		__entry->event = event->event;
		__entry->status = event->status;
	),
	TP_printk("conn=%u peer=%s event=%s status=%d",
		  __entry->id, __entry->peer,
		  rdma_show_cm_event(__entry->event), __entry->status)
);

/* What the log says of a new connection, where that line is rate limited */
TRACE_EVENT(rpcrdma_conn_agreed,
	TP_PROTO(const struct rpcrdma_conn *conn),
	TP_ARGS(conn),
	TP_STRUCT__entry(
		__field(u32, id)
		__array(char, peer, RPCRDMA_PEER_LEN)
		__field(u32, call_threshold)
		__field(u32, reply_threshold)
		__field(bool, client_inv)
		__field(bool, server_inv)
		__field(unsigned int, credits)
		__field(unsigned int, reads)
		__field(u32, version_max)
	),
	TP_fast_assign(
		__entry->id = conn->id;
		memcpy(__entry->peer, conn->peer, RPCRDMA_PEER_LEN);
		__entry->call_threshold = conn->agreement.call_threshold;
		__entry->reply_threshold = conn->agreement.reply_threshold;
		__entry->client_inv = conn->agreement.client_inv;
		__entry->server_inv = conn->agreement.server_inv;
		__entry->credits = conn->credits;
		__entry->reads = conn->read_depth;
		__entry->version_max = conn->config.version_max;
	),
	TP_printk("conn=%u peer=%s inline=%u/%u remote_inv=%d/%d credits=%u reads=%u version_max=%u",
		  __entry->id, __entry->peer, __entry->call_threshold,
		  __entry->reply_threshold, __entry->client_inv,
		  __entry->server_inv, __entry->credits, __entry->reads,
		  __entry->version_max)
);

/* A connection that could use several versions of the protocol uses this one. */
TRACE_EVENT(rpcrdma_conn_version,
	TP_PROTO(const struct rpcrdma_conn *conn, u32 version),
	TP_ARGS(conn, version),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(u32, version)
		__field(u32, call_threshold)
		__field(u32, reply_threshold)
	),
	TP_fast_assign(
		__entry->id = conn->id;
		__entry->version = version;
		__entry->call_threshold = rpcrdma_conn_call_threshold(conn, version);
		__entry->reply_threshold = rpcrdma_conn_reply_threshold(conn, version);
	),
	TP_printk("conn=%u version=%u inline=%u/%u", __entry->id,
		  __entry->version, __entry->call_threshold,
		  __entry->reply_threshold)
);

/* The client takes the server for one of version 1. @status: why the connection closed */
TRACE_EVENT(rpcrdma_version_lost,
	TP_PROTO(const struct rpcrdma_conn *conn, int status),
	TP_ARGS(conn, status),
	TP_STRUCT__entry(
		__field(u32, id)
		__array(char, peer, RPCRDMA_PEER_LEN)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->id = conn->id;
		memcpy(__entry->peer, conn->peer, RPCRDMA_PEER_LEN);
		__entry->status = status;
	),
	TP_printk("conn=%u peer=%s status=%d",
		  __entry->id, __entry->peer, __entry->status)
);

/* The queues */

TRACE_EVENT(rpcrdma_receive,
	TP_PROTO(const struct rpcrdma_conn *conn,
		 const struct rpcrdma_recv *recv),
	TP_ARGS(conn, recv),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(u32, len)
		__field(u32, inv_handle)
		__field(bool, invalidated)
	),
	TP_fast_assign(
		__entry->id = conn->id;
		__entry->len = recv->len;
		__entry->inv_handle = recv->inv_handle;
		__entry->invalidated = recv->invalidated;
	),
	TP_printk("conn=%u len=%u invalidated=%d handle=0x%08x",
		  __entry->id, __entry->len, __entry->invalidated,
		  __entry->inv_handle)
);

TRACE_EVENT(rpcrdma_post_recvs,
	TP_PROTO(const struct rpcrdma_conn *conn, unsigned int count,
		 int status),
	TP_ARGS(conn, count, status),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(unsigned int, count)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->id = conn->id;
		__entry->count = count;
		__entry->status = status;
	),
	TP_printk("conn=%u count=%u status=%d",
		  __entry->id, __entry->count, __entry->status)
);

TRACE_EVENT(rpcrdma_post,
	TP_PROTO(const struct rpcrdma_conn *conn, unsigned int wrs,
		 bool signalled, unsigned int opcode),
	TP_ARGS(conn, wrs, signalled, opcode),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(unsigned int, wrs)
		__field(unsigned int, sq_free)
		__field(unsigned int, opcode)
		__field(bool, signalled)
	),
	TP_fast_assign(
		__entry->id = conn->id;
		__entry->wrs = wrs;
		__entry->sq_free = conn->sq.free;
		__entry->opcode = opcode;
		__entry->signalled = signalled;
	),
	TP_printk("conn=%u wrs=%u signalled=%d last=%s sq_free=%u",
		  __entry->id, __entry->wrs, __entry->signalled,
		  __print_symbolic(__entry->opcode,
			{ IB_WR_SEND,			"SEND" },
			{ IB_WR_SEND_WITH_INV,		"SEND_WITH_INV" },
			{ IB_WR_RDMA_READ,		"RDMA_READ" },
			{ IB_WR_RDMA_WRITE,		"RDMA_WRITE" },
			{ IB_WR_RDMA_READ_WITH_INV,	"RDMA_READ_WITH_INV" },
			{ IB_WR_LOCAL_INV,		"LOCAL_INV" },
			{ IB_WR_REG_MR,			"REG_MR" }),
		  __entry->sq_free)
);

/* The send queue had no room for a chain; ->writable follows. */
TRACE_EVENT(rpcrdma_post_full,
	TP_PROTO(const struct rpcrdma_conn *conn, unsigned int wrs),
	TP_ARGS(conn, wrs),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(unsigned int, wrs)
		__field(unsigned int, sq_free)
	),
	TP_fast_assign(
		__entry->id = conn->id;
		__entry->wrs = wrs;
		__entry->sq_free = conn->sq.free;
	),
	TP_printk("conn=%u wrs=%u sq_free=%u",
		  __entry->id, __entry->wrs, __entry->sq_free)
);

TRACE_EVENT(rpcrdma_wc_error,
	TP_PROTO(const struct rpcrdma_conn *conn, const struct ib_wc *wc),
	TP_ARGS(conn, wc),
	TP_STRUCT__entry(
		__field(u32, id)
		__array(char, peer, RPCRDMA_PEER_LEN)
		__field(unsigned long, status)
		__field(u32, vendor_err)
	),
	TP_fast_assign(
		__entry->id = conn->id;
		memcpy(__entry->peer, conn->peer, RPCRDMA_PEER_LEN);
		__entry->status = wc->status;
		__entry->vendor_err = wc->vendor_err;
	),
	TP_printk("conn=%u peer=%s status=%s vendor_err=0x%x",
		  __entry->id, __entry->peer,
		  rdma_show_wc_status(__entry->status), __entry->vendor_err)
);

/* Registrations */

DECLARE_EVENT_CLASS(rpcrdma_mr_class,
	TP_PROTO(const struct rpcrdma_conn *conn, const struct rpcrdma_mr *mr),
	TP_ARGS(conn, mr),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(u32, handle)
		__field(u32, length)
		__field(u64, offset)
		__field(unsigned int, pages)
		__field(unsigned int, direction)
	),
	TP_fast_assign(
		__entry->id = conn->id;
		__entry->handle = mr->segment.handle;
		__entry->length = mr->segment.length;
		__entry->offset = mr->segment.offset;
		__entry->pages = mr->num_sg;
		__entry->direction = mr->direction;
	),
	TP_printk("conn=%u handle=0x%08x length=%u offset=0x%llx pages=%u for=%s",
		  __entry->id, __entry->handle, __entry->length,
		  (unsigned long long)__entry->offset, __entry->pages,
		  __entry->direction == DMA_TO_DEVICE ? "reading" : "writing")
);

#undef rpcrdma_mr_event
#define rpcrdma_mr_event(name)						\
DEFINE_EVENT(rpcrdma_mr_class, name,					\
	TP_PROTO(const struct rpcrdma_conn *conn,			\
		 const struct rpcrdma_mr *mr),				\
	TP_ARGS(conn, mr))

rpcrdma_mr_event(rpcrdma_mr_map);
rpcrdma_mr_event(rpcrdma_mr_invalidate);
rpcrdma_mr_event(rpcrdma_mr_unmap);

TRACE_EVENT(rpcrdma_mr_pool,
	TP_PROTO(const struct rpcrdma_conn *conn, unsigned int added, unsigned int idle),
	TP_ARGS(conn, added, idle),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(unsigned int, added)
		__field(unsigned int, idle)
	),
	TP_fast_assign(
		__entry->id = conn->id;
		__entry->added = added;
		__entry->idle = idle;
	),
	TP_printk("conn=%u added=%u idle=%u", __entry->id, __entry->added, __entry->idle)
);

/*
 * Messages. Both the sender and the receiver trace each message, in the forward
 * and in the backward direction. @len: octets of the Send. @msg->error is valid
 * in an RDMA_ERROR alone.
 */

DECLARE_EVENT_CLASS(rpcrdma_form_class,
	TP_PROTO(const struct rpcrdma_conn *conn,
		 const struct rpcrdma_message *msg, u32 len, bool sent),
	TP_ARGS(conn, msg, len, sent),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(u32, xid)
		__field(u32, credits)
		__field(unsigned int, proc)
		__field(unsigned int, form)
		__field(unsigned int, reads)
		__field(unsigned int, writes)
		__field(unsigned int, segments)
		__field(u32, len)
		__field(u32, version)
		__field(unsigned int, error)
		__field(bool, sent)
	),
	TP_fast_assign(
		__entry->id = conn->id;
		__entry->xid = be32_to_cpu(msg->xid);
		__entry->credits = msg->credits;
		__entry->proc = msg->proc;
		__entry->form = msg->direction == RPCRDMA_CALL ?
				rpcrdma_form_of_call(msg) :
				rpcrdma_form_of_reply(msg);
		__entry->reads = msg->num_reads;
		__entry->writes = msg->num_writes;
		__entry->segments = msg->num_segments;
		__entry->len = len;
		__entry->version = msg->version;
		__entry->error = msg->proc == RPCRDMA_ERROR ? msg->error : 0;
		__entry->sent = sent;
	),
	TP_printk("conn=%u xid=0x%08x %s %s form=%s len=%u credits=%u reads=%u writes=%u segments=%u version=%u error=%s",
		  __entry->id, __entry->xid,
		  __entry->sent ? "sent" : "received",
		  rpcrdma_show_proc(__entry->proc),
		  rpcrdma_show_form(__entry->form), __entry->len,
		  __entry->credits, __entry->reads, __entry->writes,
		  __entry->segments, __entry->version,
		  rpcrdma_show_error(__entry->error))
);

#undef rpcrdma_form_event
#define rpcrdma_form_event(name)					\
DEFINE_EVENT(rpcrdma_form_class, name,					\
	TP_PROTO(const struct rpcrdma_conn *conn,			\
		 const struct rpcrdma_message *msg, u32 len, bool sent),\
	TP_ARGS(conn, msg, len, sent))

rpcrdma_form_event(rpcrdma_call_form);
rpcrdma_form_event(rpcrdma_reply_form);

/* A responder posts a chain of RDMA Reads for a Call; the chain completes. */
TRACE_EVENT(rpcrdma_pull,
	TP_PROTO(const struct rpcrdma_conn *conn, __be32 xid, u32 octets,
		 unsigned int transfers),
	TP_ARGS(conn, xid, octets, transfers),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(u32, xid)
		__field(u32, octets)
		__field(unsigned int, transfers)
	),
	TP_fast_assign(
		__entry->id = conn->id;
		__entry->xid = be32_to_cpu(xid);
		__entry->octets = octets;
		__entry->transfers = transfers;
	),
	TP_printk("conn=%u xid=0x%08x octets=%u transfers=%u",
		  __entry->id, __entry->xid, __entry->octets,
		  __entry->transfers)
);

TRACE_EVENT(rpcrdma_pulled,
	TP_PROTO(const struct rpcrdma_conn *conn, __be32 xid, int status),
	TP_ARGS(conn, xid, status),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(u32, xid)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->id = conn->id;
		__entry->xid = be32_to_cpu(xid);
		__entry->status = status;
	),
	TP_printk("conn=%u xid=0x%08x status=%d",
		  __entry->id, __entry->xid, __entry->status)
);

/* A responder's Reply: what the header traced by rpcrdma_reply_form lacks */
TRACE_EVENT(rpcrdma_reply,
	TP_PROTO(const struct rpcrdma_conn *conn, __be32 xid, u32 len,
		 u32 written, unsigned int pages, u32 inv_handle),
	TP_ARGS(conn, xid, len, written, pages, inv_handle),
	TP_STRUCT__entry(
		__field(u32, id)
		__field(u32, xid)
		__field(u32, len)
		__field(u32, written)
		__field(unsigned int, pages)
		__field(u32, inv_handle)
	),
	TP_fast_assign(
		__entry->id = conn->id;
		__entry->xid = be32_to_cpu(xid);
		__entry->len = len;
		__entry->written = written;
		__entry->pages = pages;
		__entry->inv_handle = inv_handle;
	),
	TP_printk("conn=%u xid=0x%08x len=%u written=%u pages=%u invalidate=0x%08x",
		  __entry->id, __entry->xid, __entry->len, __entry->written,
		  __entry->pages, __entry->inv_handle)
);

/* A message that breaks a rule of the protocol. @reason: enum rpcrdma_reason */
TRACE_EVENT(rpcrdma_bad_message,
	TP_PROTO(const struct rpcrdma_conn *conn, __be32 xid, u32 len,
		 unsigned int reason),
	TP_ARGS(conn, xid, len, reason),
	TP_STRUCT__entry(
		__field(u32, id)
		__array(char, peer, RPCRDMA_PEER_LEN)
		__field(u32, xid)
		__field(u32, len)
		__field(unsigned int, reason)
	),
	TP_fast_assign(
		__entry->id = conn->id;
		memcpy(__entry->peer, conn->peer, RPCRDMA_PEER_LEN);
		__entry->xid = be32_to_cpu(xid);
		__entry->len = len;
		__entry->reason = reason;
	),
	TP_printk("conn=%u peer=%s xid=0x%08x len=%u reason=%s",
		  __entry->id, __entry->peer, __entry->xid, __entry->len,
		  rpcrdma_show_reason(__entry->reason))
);

/*
 * A valid message that is dropped: a Reply whose Call is unknown, or a backward
 * Call that exceeds the credits
 */
TRACE_EVENT(rpcrdma_dropped_message,
	TP_PROTO(const struct rpcrdma_conn *conn, __be32 xid, u32 len),
	TP_ARGS(conn, xid, len),
	TP_STRUCT__entry(
		__field(u32, id)
		__array(char, peer, RPCRDMA_PEER_LEN)
		__field(u32, xid)
		__field(u32, len)
	),
	TP_fast_assign(
		__entry->id = conn->id;
		memcpy(__entry->peer, conn->peer, RPCRDMA_PEER_LEN);
		__entry->xid = be32_to_cpu(xid);
		__entry->len = len;
	),
	TP_printk("conn=%u peer=%s xid=0x%08x len=%u",
		  __entry->id, __entry->peer, __entry->xid, __entry->len)
);

#endif /* RPCRDMA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
