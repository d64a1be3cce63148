// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Written by rules.py from Documentation/netlink/specs/rpcrdma.yaml */

#include <linux/rpcrdma.h>
#include "rules.h"

static const char * const connection_role[] = {
	"client", "server", NULL
};

static const char * const state[] = {
	"resolving", "connecting", "pending", "accepting", "established", "closing", "closed", NULL
};

static const char * const listener_state[] = {
	"listening", "waiting", NULL
};

static const char * const usability[] = {
	"usable", "no-registration", "no-page-list", NULL
};

static const char * const port_state[] = {
	"nop", "down", "init", "armed", "active", "active-defer", NULL
};

static const char * const port_protocol[] = {
	"other", "infiniband", "roce", "iwarp", NULL
};

static const char * const refusal[] = {
	"backlog", "memory", "service", "setup", "peer", NULL
};

static const struct attr_rule port_rule[] = {
	[RPCRDMA_A_PORT_NUMBER] = { "number", ATTR_U32 },
	[RPCRDMA_A_PORT_STATE] = { "state", ATTR_U32, .words = port_state },
	[RPCRDMA_A_PORT_PROTOCOL] = { "protocol", ATTR_U32, .words = port_protocol },
	[RPCRDMA_A_PORT_IFINDEX] = { "ifindex", ATTR_U32 },
};

static const struct attr_rules port_rules = ATTR_RULES(port_rule);

static const struct attr_rule device_rule[] = {
	[RPCRDMA_A_DEVICE_NAME] = { "name", ATTR_STRING },
	[RPCRDMA_A_DEVICE_INDEX] = { "index", ATTR_U32 },
	[RPCRDMA_A_DEVICE_NODE_GUID] = { "node-guid", ATTR_STRING },
	[RPCRDMA_A_DEVICE_USABILITY] = { "usability", ATTR_U32, .words = usability },
	[RPCRDMA_A_DEVICE_PORT_COUNT] = { "port-count", ATTR_U32 },
	[RPCRDMA_A_DEVICE_PORT] = { "port", ATTR_LIST, .nested = &port_rules },
	[RPCRDMA_A_DEVICE_MAX_QUEUE_WRS] = { "max-queue-wrs", ATTR_U32 },
	[RPCRDMA_A_DEVICE_MAX_CQES] = { "max-cqes", ATTR_U32 },
	[RPCRDMA_A_DEVICE_MAX_SEND_SGES] = { "max-send-sges", ATTR_U32 },
	[RPCRDMA_A_DEVICE_MAX_RECV_SGES] = { "max-recv-sges", ATTR_U32 },
	[RPCRDMA_A_DEVICE_MAX_PAGE_LIST] = { "max-page-list", ATTR_U32 },
	[RPCRDMA_A_DEVICE_MAX_MR_SIZE] = { "max-mr-size", ATTR_UINT },
	[RPCRDMA_A_DEVICE_MAX_MRS] = { "max-mrs", ATTR_UINT },
	[RPCRDMA_A_DEVICE_MAX_QPS] = { "max-qps", ATTR_UINT },
	[RPCRDMA_A_DEVICE_MR_PAGES] = { "mr-pages", ATTR_U32 },
	[RPCRDMA_A_DEVICE_SG_GAPS] = { "sg-gaps", ATTR_FLAG },
	[RPCRDMA_A_DEVICE_MAX_READS_SERVED] = { "max-reads-served", ATTR_U32 },
	[RPCRDMA_A_DEVICE_MAX_READS_ISSUED] = { "max-reads-issued", ATTR_U32 },
	[RPCRDMA_A_DEVICE_SHARED_RECEIVES] = { "shared-receives", ATTR_U32 },
	[RPCRDMA_A_DEVICE_SHARED_LIMITS] = { "shared-limits", ATTR_UINT },
	[RPCRDMA_A_DEVICE_SHARED_EMPTY] = { "shared-empty", ATTR_UINT },
	[RPCRDMA_A_DEVICE_CREDITS_EXCEEDED] = { "credits-exceeded", ATTR_UINT },
};

const struct attr_rules device_rules = ATTR_RULES(device_rule);

static const struct attr_rule listener_rule[] = {
	[RPCRDMA_A_LISTENER_LOCAL] = { "local", ATTR_STRING },
	[RPCRDMA_A_LISTENER_FAMILY] = { "family", ATTR_U32 },
	[RPCRDMA_A_LISTENER_LOCAL_PORT] = { "local-port", ATTR_U32 },
	[RPCRDMA_A_LISTENER_STATE] = { "state", ATTR_U32, .words = listener_state },
	[RPCRDMA_A_LISTENER_STATE_AGE] = { "state-age", ATTR_UINT },
	[RPCRDMA_A_LISTENER_ACCEPTED] = { "accepted", ATTR_UINT },
	[RPCRDMA_A_LISTENER_REFUSED] = { "refused", ATTR_UINT },
	[RPCRDMA_A_LISTENER_WAITING] = { "waiting", ATTR_U32 },
};

const struct attr_rules listener_rules = ATTR_RULES(listener_rule);

static const struct attr_rule traffic_rule[] = {
	[RPCRDMA_A_TRAFFIC_INLINE] = { "inline", ATTR_UINT },
	[RPCRDMA_A_TRAFFIC_READ_CHUNK] = { "read-chunk", ATTR_UINT },
	[RPCRDMA_A_TRAFFIC_LONG_CALL] = { "long-call", ATTR_UINT },
	[RPCRDMA_A_TRAFFIC_WRITE_CHUNK] = { "write-chunk", ATTR_UINT },
	[RPCRDMA_A_TRAFFIC_REPLY_CHUNK] = { "reply-chunk", ATTR_UINT },
	[RPCRDMA_A_TRAFFIC_ERROR] = { "error", ATTR_UINT },
	[RPCRDMA_A_TRAFFIC_BACKWARD] = { "backward", ATTR_UINT },
	[RPCRDMA_A_TRAFFIC_INLINE_OCTETS] = { "inline-octets", ATTR_UINT },
	[RPCRDMA_A_TRAFFIC_PLACED_OCTETS] = { "placed-octets", ATTR_UINT },
	[RPCRDMA_A_TRAFFIC_COPIED_OCTETS] = { "copied-octets", ATTR_UINT },
};

static const struct attr_rules traffic_rules = ATTR_RULES(traffic_rule);

static const struct attr_rule waits_rule[] = {
	[RPCRDMA_A_WAITS_CREDIT] = { "credit", ATTR_UINT },
	[RPCRDMA_A_WAITS_REGISTRATION] = { "registration", ATTR_UINT },
	[RPCRDMA_A_WAITS_SEND_BUFFER] = { "send-buffer", ATTR_UINT },
	[RPCRDMA_A_WAITS_SEND_QUEUE] = { "send-queue", ATTR_UINT },
	[RPCRDMA_A_WAITS_RECEIVE_BUFFER] = { "receive-buffer", ATTR_UINT },
	[RPCRDMA_A_WAITS_MEMORY] = { "memory", ATTR_UINT },
	[RPCRDMA_A_WAITS_READ] = { "read", ATTR_UINT },
};

static const struct attr_rules waits_rules = ATTR_RULES(waits_rule);

static const struct attr_rule errors_rule[] = {
	[RPCRDMA_A_ERRORS_BAD_HEADER] = { "bad-header", ATTR_UINT },
	[RPCRDMA_A_ERRORS_UNMATCHED] = { "unmatched", ATTR_UINT },
	[RPCRDMA_A_ERRORS_NOT_SENT] = { "not-sent", ATTR_UINT },
	[RPCRDMA_A_ERRORS_REPLY_SPACE] = { "reply-space", ATTR_UINT },
	[RPCRDMA_A_ERRORS_DENIED] = { "denied", ATTR_UINT },
	[RPCRDMA_A_ERRORS_DROPPED] = { "dropped", ATTR_UINT },
};

static const struct attr_rules errors_rules = ATTR_RULES(errors_rule);

static const struct attr_rule connection_rule[] = {
	[RPCRDMA_A_CONNECTION_ID] = { "id", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_ROLE] = { "role", ATTR_U32, .words = connection_role },
	[RPCRDMA_A_CONNECTION_FAMILY] = { "family", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_PEER] = { "peer", ATTR_STRING },
	[RPCRDMA_A_CONNECTION_PEER_PORT] = { "peer-port", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_LOCAL] = { "local", ATTR_STRING },
	[RPCRDMA_A_CONNECTION_LOCAL_PORT] = { "local-port", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_DEVICE] = { "device", ATTR_STRING },
	[RPCRDMA_A_CONNECTION_PORT] = { "port", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_XPRT_ID] = { "xprt-id", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_STATE] = { "state", ATTR_U32, .words = state },
	[RPCRDMA_A_CONNECTION_STATE_AGE] = { "state-age", ATTR_UINT },
	[RPCRDMA_A_CONNECTION_CAUSE] = { "cause", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_VERSION] = { "version", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_CALL_THRESHOLD] = { "call-threshold", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_REPLY_THRESHOLD] = { "reply-threshold", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_REMOTE_INVALIDATION] = { "remote-invalidation", ATTR_FLAG },
	[RPCRDMA_A_CONNECTION_INITIATOR_DEPTH] = { "initiator-depth", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_RESPONDER_RESOURCES] = { "responder-resources", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_CREDITS_REQUESTED] = { "credits-requested", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_CREDITS_GRANTED] = { "credits-granted", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_CREDITS_IN_USE] = { "credits-in-use", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_CREDITS_WAITING] = { "credits-waiting", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_SENT] = { "sent", ATTR_NEST, .nested = &traffic_rules },
	[RPCRDMA_A_CONNECTION_RECEIVED] = { "received", ATTR_NEST, .nested = &traffic_rules },
	[RPCRDMA_A_CONNECTION_REGISTRATIONS_IN_USE] = { "registrations-in-use", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_REGISTRATIONS_IDLE] = { "registrations-idle", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_WAITS] = { "waits", ATTR_NEST, .nested = &waits_rules },
	[RPCRDMA_A_CONNECTION_ERRORS] = { "errors", ATTR_NEST, .nested = &errors_rules },
	[RPCRDMA_A_CONNECTION_RECEIVES_POSTED] = { "receives-posted", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_RECEIVES] = { "receives", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_SEND_QUEUE_USED] = { "send-queue-used", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_SEND_QUEUE_SIZE] = { "send-queue-size", ATTR_U32 },
	[RPCRDMA_A_CONNECTION_MEMORY] = { "memory", ATTR_UINT },
	[RPCRDMA_A_CONNECTION_LATENCY] = { "latency", ATTR_SERIES },
	[RPCRDMA_A_CONNECTION_REFUSAL] = { "refusal", ATTR_U32, .words = refusal },
	[RPCRDMA_A_CONNECTION_SHARED_RECEIVES] = { "shared-receives", ATTR_FLAG },
	[RPCRDMA_A_CONNECTION_CONNECTS] = { "connects", ATTR_UINT },
};

const struct attr_rules connection_rules = ATTR_RULES(connection_rule);
