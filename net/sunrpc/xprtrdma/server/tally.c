// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What a request adds to the counters of its connection.
 */
#include "server_private.h"

/* Note how a Call arrived. request->args is set. */
void svcrdma_tally_call(struct svcrdma_request *request)
{
	const struct rpcrdma_message *msg = &request->msg;
	struct svcrdma_tally *tally = &request->tally;

	tally->received = RPCRDMA_A_TRAFFIC_INLINE;
	if (request->args != SVCRDMA_ARGS_INLINE && msg->num_reads)
		tally->received = rpcrdma_position_zero(msg) ? RPCRDMA_A_TRAFFIC_LONG_CALL :
							       RPCRDMA_A_TRAFFIC_READ_CHUNK;
	tally->received_inline = msg->payload_len;
	/* Inline parts that go to pages are copied (pull.c). */
	if (request->args == SVCRDMA_ARGS_STREAM)
		tally->received_copied = msg->payload_len;
	else if (request->args == SVCRDMA_ARGS_WRITE && msg->num_reads)
		tally->received_copied = msg->payload_len -
					 min(msg->payload_len, msg->read[0].position);
}

/* Note that RDMA Reads have moved all of the Read chunks of a Call. */
void svcrdma_tally_pulled(struct svcrdma_request *request)
{
	const struct rpcrdma_message *msg = &request->msg;
	unsigned int i;

	for (i = 0; i < msg->num_reads; i++)
		request->tally.received_placed += msg->read[i].length;
}

/* Add the tally to the counters of the connection. The request is no longer used. */
void svcrdma_tally_locked(struct svcrdma_request *request)
{
	struct rpcrdma_counters *counters = &request->service->conn->counters;
	struct svcrdma_tally *tally = &request->tally;

	lockdep_assert_held(&request->service->lock);
	counters->received.messages[tally->received]++;
	counters->received.inline_octets += tally->received_inline;
	counters->received.placed_octets += tally->received_placed;
	counters->received.copied_octets += tally->received_copied;
	counters->sent.messages[tally->sent]++;
	counters->sent.inline_octets += tally->sent_inline;
	counters->sent.placed_octets += tally->sent_placed;
	counters->sent.copied_octets += tally->sent_copied;
	counters->latency[tally->latency]++;
	counters->errors[tally->error]++;
	counters->waits[RPCRDMA_A_WAITS_READ] += tally->waited_read;
	counters->waits[RPCRDMA_A_WAITS_SEND_BUFFER] += tally->waited_send;
	*tally = (struct svcrdma_tally){};
}
