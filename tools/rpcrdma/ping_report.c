// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What rpcrdma ping prints: lines as things happen, or one JSON object. */

#include <stdio.h>
#include <stdlib.h>
#include "fmt.h"
#include "json.h"
#include "ping.h"

static const char *on_or_off(bool on)
{
	return on ? "on" : "off";
}

static void print_params(const char *who, const struct rpcrdma_params *params, bool announced)
{
	if (announced)
		printf("%-9s Sends %u, Receives %u octets, remote invalidation %s\n",
		       who, params->send_size, params->recv_size, on_or_off(params->remote_inv));
	else
		printf("%-9s nothing announced (RFC 8797), so %u octets, remote invalidation off\n",
		       who, params->recv_size);
}

void ping_report_path(const struct ping_run *run)
{
	const struct rpcrdma_agreement *agreement = &run->agreement;
	const struct ping_path *path = run->path;

	if (run->options->json)
		return;
	printf("connected to %s port %s, from %s by %s port %u\n", path->peer,
	       run->options->host.port, path->local, path->device, path->device_port);
	print_params("here:", &run->ours, run->ours_sent);
	print_params("there:", &run->theirs, run->theirs_found);
	printf("agreed:   Calls %u, Replies %u octets inline, remote invalidation %s\n",
	       agreement->call_threshold, agreement->reply_threshold,
	       on_or_off(agreement->remote_inv));
	if (run->options->size)
		printf("Calls:    %u octets of arguments, %s\n", run->options->size,
		       run->is_inline ? "in one Send" : "in a Read chunk");
}

void ping_report_answer(const struct ping_run *run, uint64_t ns)
{
	if (!run->options->json && !run->options->quiet)
		printf("answer %u: %s, credits %u\n", run->sent, fmt_ns(ns).s, run->credits);
}

void ping_report_note(const struct ping_run *run, const char *note)
{
	if (!run->options->json)
		printf("Call %u: %s\n", run->sent, note);
}

static void print_sums(const struct ping_run *run)
{
	const struct ping_stats *stats = &run->stats;

	printf("%u sent, %u answered, %u messages ignored\n", run->sent,
	       run->answered, run->ignored);
	if (!run->answered)
		return;
	printf("program %u version %u, RPC-over-RDMA version %u, credits %u\n",
	       run->options->program, run->program_version, run->version, run->credits);
	printf("round trip: min %s, median %s, p99 %s\n", fmt_ns(ping_stats_rank(stats, 0)).s,
	       fmt_ns(ping_stats_rank(stats, 50)).s, fmt_ns(ping_stats_rank(stats, 99)).s);
}

/* JSON */

/* NULL becomes null. */
static json_t *params_json(const struct rpcrdma_params *params, bool announced)
{
	if (!announced)
		return NULL;
	return json_pack("{s:i, s:i, s:b}", "send-size", params->send_size, "receive-size",
			 params->recv_size, "remote-invalidation", params->remote_inv);
}

static json_t *if_answered(const struct ping_run *run, uint32_t value)
{
	return run->answered ? json_integer(value) : NULL;
}

static json_t *connection_json(const struct ping_run *run)
{
	const struct rpcrdma_agreement *agreement = &run->agreement;
	const struct ping_path *path = run->path;

	if (!path)
		return NULL;
	return json_pack("{s:s, s:s, s:s, s:i, s:o?, s:o?, s:{s:o?, s:i, s:i, s:b}, s:b}",
			 "peer", path->peer, "local", path->local, "device", path->device,
			 "device-port", path->device_port,
			 "announced-here", params_json(&run->ours, run->ours_sent),
			 "announced-there", params_json(&run->theirs, run->theirs_found),
			 "agreed", "version", if_answered(run, run->version),
			 "call-threshold", agreement->call_threshold,
			 "reply-threshold", agreement->reply_threshold,
			 "remote-invalidation", agreement->remote_inv, "inline", run->is_inline);
}

static json_t *round_trip_json(const struct ping_stats *stats)
{
	if (!stats->count)
		return NULL;
	return json_pack("{s:I, s:I, s:I}", "min", ping_stats_rank(stats, 0), "median",
			 ping_stats_rank(stats, 50), "p99", ping_stats_rank(stats, 99));
}

static void print_json(const struct ping_run *run)
{
	const struct ping_options *options = run->options;

	out_json(json_pack("{s:s, s:i, s:i, s:o?, s:I, s:o?, s:i, s:i, s:i, s:o?, s:o?, s:s?, s:i}",
			   "host", options->host.name, "port", atoi(options->host.port),
			   "size", options->size,
			   "connection", connection_json(run),
			   "program", (json_int_t)options->program,
			   "program-version", if_answered(run, run->program_version),
			   "sent", run->sent, "answered", run->answered,
			   "ignored", run->ignored, "credits", if_answered(run, run->credits),
			   "round-trip-ns", round_trip_json(&run->stats),
			   "error", *run->error ? run->error : NULL, "status", run->status));
}

void ping_report_end(struct ping_run *run)
{
	ping_stats_sort(&run->stats);
	if (run->options->json)
		print_json(run);
	else if (run->path)
		print_sums(run);
	if (run->error[0])
		fprintf(stderr, "rpcrdma: %s\n", run->error);
}
