/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Tracepoints of all layers. Strings are arrays of fixed size, because the arguments of
 * __assign_str() differ between kernel versions.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM rpcrdma

#if !defined(RPCRDMA_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define RPCRDMA_TRACE_H

#include <linux/tracepoint.h>
#include <rdma/ib_cm.h>
#include <trace/misc/rdma.h>

#include "conn/conn.h"

/* Values that traces print by name. EM_END is for the last one of a list. */

#define RPCRDMA_FORMS										\
	EM(RPCRDMA_TRACE_LONG, "long") EM(RPCRDMA_TRACE_READ, "read")				\
	EM(RPCRDMA_TRACE_WRITE, "write") EM_END(RPCRDMA_TRACE_REPLY, "reply")

#define RPCRDMA_PROCS										\
	EM(RPCRDMA_MSG, "RDMA_MSG") EM(RPCRDMA_NOMSG, "RDMA_NOMSG")				\
	EM(RPCRDMA_MSGP, "RDMA_MSGP") EM(RPCRDMA_DONE, "RDMA_DONE")				\
	EM(RPCRDMA_OPTIONAL, "RDMA2_OPTIONAL") EM_END(RPCRDMA_ERROR, "RDMA_ERROR")

#define RPCRDMA_ERR(name) EM(RPCRDMA_ERR_##name, #name)

#define RPCRDMA_ERRORS										\
	RPCRDMA_ERR(VERS) RPCRDMA_ERR(BAD_XDR) RPCRDMA_ERR(CANT_REPLY)				\
	RPCRDMA_ERR(INVAL_PROC) EM_END(RPCRDMA_ERR_INVAL_OPTION, "INVAL_OPTION")

#define RPCRDMA_STATE(name) EM(RPCRDMA_STATE_##name, #name)

#define RPCRDMA_STATES										\
	RPCRDMA_STATE(RESOLVING) RPCRDMA_STATE(CONNECTING) RPCRDMA_STATE(PENDING)		\
	RPCRDMA_STATE(ACCEPTING) RPCRDMA_STATE(ESTABLISHED) RPCRDMA_STATE(CLOSING)		\
	EM_END(RPCRDMA_STATE_CLOSED, "CLOSED")

#define RPCRDMA_BAD(name) EM(RPCRDMA_BAD_##name, #name)

#define RPCRDMA_REASONS										\
	RPCRDMA_BAD(SHORT) RPCRDMA_BAD(VERSION) RPCRDMA_BAD(PROC) RPCRDMA_BAD(MSGP)		\
	RPCRDMA_BAD(DONE) RPCRDMA_BAD(ERROR) RPCRDMA_BAD(TRUNCATED) RPCRDMA_BAD(DISCRIMINATOR)	\
	RPCRDMA_BAD(SEGMENT_COUNT) RPCRDMA_BAD(CHUNK_COUNT) RPCRDMA_BAD(SEGMENT_RANGE)		\
	RPCRDMA_BAD(CHUNK_LENGTH) RPCRDMA_BAD(POSITION_ALIGN) RPCRDMA_BAD(POSITION_HEAD)	\
	RPCRDMA_BAD(POSITION_OVERLAP) RPCRDMA_BAD(POSITION_BEYOND) RPCRDMA_BAD(READ_IN_REPLY)	\
	RPCRDMA_BAD(NO_PAYLOAD) RPCRDMA_BAD(PAYLOAD_SHORT) RPCRDMA_BAD(MSG_TYPE)		\
	RPCRDMA_BAD(MSG_DIRECTION) RPCRDMA_BAD(OPTION) RPCRDMA_BAD(XID) RPCRDMA_BAD(DIRECTION)	\
	EM_END(RPCRDMA_OK, "UNEXPECTED")

#undef EM
#undef EM_END
#define EM(value, name) TRACE_DEFINE_ENUM(value);
#define EM_END(value, name) TRACE_DEFINE_ENUM(value);
RPCRDMA_FORMS RPCRDMA_PROCS RPCRDMA_ERRORS RPCRDMA_STATES RPCRDMA_REASONS

#undef EM
#undef EM_END
#define EM(value, name) { value, name },
#define EM_END(value, name) { value, name }

/* The life of a connection */

TRACE_EVENT(rpcrdma_conn_state,
	TP_PROTO(const struct rpcrdma_conn *conn, unsigned int state, int status),
	TP_ARGS(conn, state, status),
	TP_STRUCT__entry(
		__field(u32, conn)
		__array(char, peer, RPCRDMA_PEER_LEN)
		__field(unsigned int, state)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->conn = conn->id;
		memcpy(__entry->peer, conn->peer, RPCRDMA_PEER_LEN);
		__entry->state = state;
		__entry->status = status;
	),
	TP_printk("conn=%u peer=%s state=%s status=%d", __entry->conn, __entry->peer,
		  __print_symbolic(__entry->state, RPCRDMA_STATES), __entry->status)
);

TRACE_EVENT(rpcrdma_conn_event,
	TP_PROTO(const struct rpcrdma_conn *conn, const struct rdma_cm_event *event),
	TP_ARGS(conn, event),
	TP_STRUCT__entry(
		__field(u32, conn)
		__field(unsigned long, event)
		__field(int, status)
	),
	TP_fast_assign(
		__entry->conn = conn->id;
		__entry->event = event->event;
		__entry->status = event->status;
	),
	TP_printk("conn=%u event=%s status=%d", __entry->conn,
		  rdma_show_cm_event(__entry->event), __entry->status)
);

/* As the lines of the log, but not limited in rate. @version: 0 until it is settled */
TRACE_EVENT(rpcrdma_conn_agreed,
	TP_PROTO(const struct rpcrdma_conn *conn, u32 version),
	TP_ARGS(conn, version),
	TP_STRUCT__entry(
		__field(u32, conn)
		__field(u32, version)
		__field(u32, call_threshold)
		__field(u32, reply_threshold)
		__field(bool, client_inv)
		__field(bool, server_inv)
		__field(unsigned int, credits)
		__field(unsigned int, reads)
	),
	TP_fast_assign(
		__entry->conn = conn->id;
		__entry->version = version;
		__entry->call_threshold = rpcrdma_conn_call_threshold(conn, version);
		__entry->reply_threshold = rpcrdma_conn_reply_threshold(conn, version);
		__entry->client_inv = conn->agreement.client_inv;
		__entry->server_inv = conn->agreement.server_inv;
		__entry->credits = conn->credits;
		__entry->reads = conn->read_depth;
	),
	TP_printk("conn=%u version=%u inline=%u/%u remote_inv=%d/%d credits=%u reads=%u",
		  __entry->conn, __entry->version, __entry->call_threshold,
		  __entry->reply_threshold, __entry->client_inv, __entry->server_inv,
		  __entry->credits, __entry->reads)
);

TRACE_EVENT(rpcrdma_wc_error,
	TP_PROTO(const struct rpcrdma_conn *conn, const struct ib_wc *wc),
	TP_ARGS(conn, wc),
	TP_STRUCT__entry(
		__field(u32, conn)
		__field(unsigned long, status)
		__field(u32, vendor_err)
	),
	TP_fast_assign(
		__entry->conn = conn->id;
		__entry->status = wc->status;
		__entry->vendor_err = wc->vendor_err;
	),
	TP_printk("conn=%u status=%s vendor_err=0x%x", __entry->conn,
		  rdma_show_wc_status(__entry->status), __entry->vendor_err)
);

/* Registrations */

DECLARE_EVENT_CLASS(rpcrdma_mr_class,
	TP_PROTO(const struct rpcrdma_conn *conn, const struct rpcrdma_mr *mr),
	TP_ARGS(conn, mr),
	TP_STRUCT__entry(
		__field(u32, conn)
		__field(u32, handle)
		__field(u32, length)
		__field(u64, offset)
		__field(unsigned int, pages)
		__field(unsigned int, direction)
	),
	TP_fast_assign(
		__entry->conn = conn->id;
		__entry->handle = mr->segment.handle;
		__entry->length = mr->segment.length;
		__entry->offset = mr->segment.offset;
		__entry->pages = mr->num_sg;
		__entry->direction = mr->direction;
	),
	TP_printk("conn=%u handle=0x%08x length=%u offset=0x%llx pages=%u for=%s",
		  __entry->conn, __entry->handle, __entry->length,
		  (unsigned long long)__entry->offset, __entry->pages,
		  __entry->direction == DMA_TO_DEVICE ? "reading" : "writing")
);

#undef rpcrdma_mr_event
#define rpcrdma_mr_event(name)									\
	DEFINE_EVENT(rpcrdma_mr_class, name,							\
		     TP_PROTO(const struct rpcrdma_conn *conn, const struct rpcrdma_mr *mr),	\
		     TP_ARGS(conn, mr))

rpcrdma_mr_event(rpcrdma_mr_map);
rpcrdma_mr_event(rpcrdma_mr_invalidate);
rpcrdma_mr_event(rpcrdma_mr_unmap);

/* Messages */

TRACE_EVENT(rpcrdma_receive,
	TP_PROTO(const struct rpcrdma_conn *conn, const struct rpcrdma_recv *recv),
	TP_ARGS(conn, recv),
	TP_STRUCT__entry(
		__field(u32, conn)
		__field(u32, len)
		__field(u32, handle)
		__field(bool, invalidated)
	),
	TP_fast_assign(
		__entry->conn = conn->id;
		__entry->len = recv->len;
		__entry->handle = recv->inv_handle;
		__entry->invalidated = recv->invalidated;
	),
	TP_printk("conn=%u len=%u invalidated=%d handle=0x%08x",
		  __entry->conn, __entry->len, __entry->invalidated, __entry->handle)
);

/*
 * Both the sender and the receiver trace each message, in the forward and in the backward
 * direction. @len: octets of the Send. @msg->error is valid only in an RDMA_ERROR.
 */
DECLARE_EVENT_CLASS(rpcrdma_form_class,
	TP_PROTO(const struct rpcrdma_conn *conn, const struct rpcrdma_message *msg, u32 len,
		 bool sent),
	TP_ARGS(conn, msg, len, sent),
	TP_STRUCT__entry(
		__field(u32, conn)
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
		__entry->conn = conn->id;
		__entry->xid = be32_to_cpu(msg->xid);
		__entry->credits = msg->credits;
		__entry->proc = msg->proc;
		__entry->form = rpcrdma_trace_form(msg);
		__entry->reads = msg->num_reads;
		__entry->writes = msg->num_writes;
		__entry->segments = msg->num_segments;
		__entry->len = len;
		__entry->version = msg->version;
		__entry->error = msg->proc == RPCRDMA_ERROR ? msg->error : 0;
		__entry->sent = sent;
	),
	TP_printk("conn=%u xid=0x%08x %s %s form=%s len=%u credits=%u reads=%u writes=%u segments=%u version=%u error=%s",
		  __entry->conn, __entry->xid, __entry->sent ? "sent" : "received",
		  __print_symbolic(__entry->proc, RPCRDMA_PROCS),
		  __entry->form ? __print_flags(__entry->form, "+", RPCRDMA_FORMS) : "inline",
		  __entry->len, __entry->credits, __entry->reads, __entry->writes,
		  __entry->segments, __entry->version,
		  __entry->error ? __print_symbolic(__entry->error, RPCRDMA_ERRORS) : "none")
);

#undef rpcrdma_form_event
#define rpcrdma_form_event(name)								\
	DEFINE_EVENT(rpcrdma_form_class, name,							\
		     TP_PROTO(const struct rpcrdma_conn *conn,					\
			      const struct rpcrdma_message *msg, u32 len, bool sent),		\
		     TP_ARGS(conn, msg, len, sent))

rpcrdma_form_event(rpcrdma_call_form);
rpcrdma_form_event(rpcrdma_reply_form);

/* A server posts a chain of RDMA Reads for a Call. */
TRACE_EVENT(rpcrdma_pull,
	TP_PROTO(const struct rpcrdma_conn *conn, __be32 xid, u32 octets, unsigned int transfers),
	TP_ARGS(conn, xid, octets, transfers),
	TP_STRUCT__entry(
		__field(u32, conn)
		__field(u32, xid)
		__field(u32, octets)
		__field(unsigned int, transfers)
	),
	TP_fast_assign(
		__entry->conn = conn->id;
		__entry->xid = be32_to_cpu(xid);
		__entry->octets = octets;
		__entry->transfers = transfers;
	),
	TP_printk("conn=%u xid=0x%08x octets=%u transfers=%u",
		  __entry->conn, __entry->xid, __entry->octets, __entry->transfers)
);

/* A server's Reply: what the header traced by rpcrdma_reply_form does not tell */
TRACE_EVENT(rpcrdma_reply,
	TP_PROTO(const struct rpcrdma_conn *conn, __be32 xid, u32 len, u32 written,
		 unsigned int pages, u32 invalidate),
	TP_ARGS(conn, xid, len, written, pages, invalidate),
	TP_STRUCT__entry(
		__field(u32, conn)
		__field(u32, xid)
		__field(u32, len)
		__field(u32, written)
		__field(unsigned int, pages)
		__field(u32, invalidate)
	),
	TP_fast_assign(
		__entry->conn = conn->id;
		__entry->xid = be32_to_cpu(xid);
		__entry->len = len;
		__entry->written = written;
		__entry->pages = pages;
		__entry->invalidate = invalidate;
	),
	TP_printk("conn=%u xid=0x%08x len=%u written=%u pages=%u invalidate=0x%08x",
		  __entry->conn, __entry->xid, __entry->len, __entry->written,
		  __entry->pages, __entry->invalidate)
);

/*
 * A message that breaks a rule of the protocol, or that nobody waits for: a Reply whose Call is
 * unknown, or a backward Call that exceeds the credits
 */
TRACE_EVENT(rpcrdma_bad_message,
	TP_PROTO(const struct rpcrdma_conn *conn, const struct rpcrdma_message *msg, u32 len),
	TP_ARGS(conn, msg, len),
	TP_STRUCT__entry(
		__field(u32, conn)
		__field(u32, xid)
		__field(u32, len)
		__field(unsigned int, reason)
	),
	TP_fast_assign(
		__entry->conn = conn->id;
		__entry->xid = be32_to_cpu(msg->xid);
		__entry->len = len;
		__entry->reason = msg->reason;
	),
	TP_printk("conn=%u xid=0x%08x len=%u reason=%s", __entry->conn, __entry->xid,
		  __entry->len, __print_symbolic(__entry->reason, RPCRDMA_REASONS))
);

#endif /* RPCRDMA_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
