// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What the server tells of a connection.
 */
#include "../conn/status.h"
#include "server_private.h"

static u32 svcrdma_tally_read_octets(const struct rpcrdma_message *msg)
{
	u32 octets = 0;
	unsigned int i;

	for (i = 0; i < msg->num_reads; i++)
		octets += msg->read[i].length;
	return octets;
}

/* How much of the inline part is copied: see pull.c. */
static u32 svcrdma_tally_copied(const struct svcrdma_request *request)
{
	const struct rpcrdma_message *msg = &request->msg;

	if (request->args == SVCRDMA_ARGS_STREAM)
		return msg->payload_len;
	if (request->args == SVCRDMA_ARGS_WRITE && msg->num_reads)
		return msg->payload_len - min(msg->payload_len, msg->read[0].position);
	return 0;
}

/**
 * svcrdma_tally_octets - the tally of a request that has not only inline octets
 * @request: the request
 *
 * Context: the thread that has the request.
 * Return: the tally, whose members are valid from now on.
 */
struct svcrdma_tally *svcrdma_tally_octets(struct svcrdma_request *request)
{
	struct svcrdma_tally *tally = &request->tally;

	if (!(tally->notes & SVCRDMA_NOTE_OCTETS)) {
		tally->notes |= SVCRDMA_NOTE_OCTETS;
		tally->received_placed = 0;
		tally->received_copied = 0;
		tally->sent_placed = 0;
		tally->sent_gathered = 0;
	}
	return tally;
}

/**
 * svcrdma_tally_call_pages - svcrdma_tally_call() for a Call that goes to pages
 * @request: the Call
 *
 * Context: the thread that has the request.
 */
void svcrdma_tally_call_pages(struct svcrdma_request *request)
{
	const struct rpcrdma_message *msg = &request->msg;

	svcrdma_tally_octets(request)->received_copied = svcrdma_tally_copied(request);
	if (msg->num_reads)
		request->tally.received = rpcrdma_position_zero(msg) ?
			RPCRDMA_A_TRAFFIC_LONG_CALL : RPCRDMA_A_TRAFFIC_READ_CHUNK;
}

/**
 * svcrdma_tally_pulled - note how much of a Call RDMA Reads have moved
 * @request: a Call that is read to its end
 *
 * Context: the thread that has the request.
 */
void svcrdma_tally_pulled(struct svcrdma_request *request)
{
	svcrdma_tally_octets(request)->received_placed = svcrdma_tally_read_octets(&request->msg);
}

static void svcrdma_tally_notes(struct rpcrdma_counters *counters,
				const struct svcrdma_tally *tally)
{
	u8 notes = tally->notes;

	if (notes & SVCRDMA_NOTE_OCTETS) {
		counters->received.placed_octets += tally->received_placed;
		counters->received.copied_octets += tally->received_copied;
		counters->sent.placed_octets += tally->sent_placed;
		counters->sent.gathered_octets += tally->sent_gathered;
	}
	counters->waits[RPCRDMA_A_WAITS_READ] += !!(notes & SVCRDMA_NOTE_WAITED_READ);
	counters->waits[RPCRDMA_A_WAITS_SEND_BUFFER] += !!(notes & SVCRDMA_NOTE_WAITED_SEND);
	counters->errors[RPCRDMA_A_ERRORS_BAD_HEADER] += !!(notes & SVCRDMA_NOTE_BAD_HEADER);
	counters->errors[RPCRDMA_A_ERRORS_REPLY_SPACE] += !!(notes & SVCRDMA_NOTE_REPLY_SPACE);
}

/**
 * svcrdma_tally_locked - add what a request did to the counters of its connection
 * @request: the request, which is no longer used
 *
 * Context: service->lock is held.
 */
void svcrdma_tally_locked(struct svcrdma_request *request)
{
	struct rpcrdma_counters *counters = &request->service->conn->counters;
	struct svcrdma_tally *tally = &request->tally;

	lockdep_assert_held(&request->service->lock);
	counters->received.messages[tally->received]++;
	counters->received.inline_octets += tally->received_inline;
	counters->sent.messages[tally->sent]++;
	counters->sent.inline_octets += tally->sent_inline;
	counters->latency[tally->latency]++;
	if (tally->notes)
		svcrdma_tally_notes(counters, tally);
	svcrdma_tally_clear(request);
}

/**
 * svcrdma_describe - the rpcrdma_conn_ops's describe
 * @conn: the connection
 * @status: filled in
 *
 * Context: as rpcrdma_conn_ops's describe.
 */
void svcrdma_describe(struct rpcrdma_conn *conn, struct rpcrdma_role_status *status)
{
	struct svcrdma_service *service = conn->role;
	size_t request = sizeof(struct svcrdma_request) +
			 service->max_pages * sizeof(struct page *);

	status->version = READ_ONCE(service->version);
	status->requested = READ_ONCE(service->requested);
	status->granted = READ_ONCE(service->grant.granted);
	status->in_use = atomic_read(&service->calls_held);
	status->memory = sizeof(*service) +
			 (u64)atomic_read(&service->num_requests) * request +
			 (u64)(atomic_read(&service->num_spares) +
			       atomic_read(&service->num_held)) * PAGE_SIZE;
}
