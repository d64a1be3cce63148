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

static void print_params(const char *who, const struct rpcrdma_params *params,
			 bool announced)
{
	if (announced)
		printf("%-9s Sends %u, Receives %u octets, remote invalidation %s\n",
		       who, params->send_size, params->recv_size,
		       on_or_off(params->remote_inv));
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
	       run->options->port, path->local, path->device,
	       path->device_port);
	print_params("here:", &run->ours, run->ours_sent);
	print_params("there:", &run->theirs, run->theirs_found);
	printf("agreed:   Calls %u, Replies %u octets inline, remote invalidation %s\n",
	       agreement->call_threshold, agreement->reply_threshold,
	       on_or_off(agreement->remote_inv));
}

void ping_report_answer(const struct ping_run *run, uint64_t ns)
{
	if (!run->options->json && !run->options->quiet)
		printf("answer %u: %s, credits %u\n", run->sent,
		       fmt_ns(ns).s, run->credits);
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
	       run->options->program, run->program_version, run->version,
	       run->credits);
	printf("round trip: min %s, median %s, p99 %s\n",
	       fmt_ns(ping_stats_rank(stats, 0)).s,
	       fmt_ns(ping_stats_rank(stats, 50)).s,
	       fmt_ns(ping_stats_rank(stats, 99)).s);
}

/* JSON */

static json_t *params_json(const struct rpcrdma_params *params, bool announced)
{
	json_t *object;

	if (!announced)
		return json_null();
	object = json_object();
	json_add(object, "send_size", json_integer(params->send_size));
	json_add(object, "receive_size", json_integer(params->recv_size));
	json_add(object, "remote_invalidation",
		 json_boolean(params->remote_inv));
	return object;
}

static json_t *agreed_json(const struct ping_run *run)
{
	json_t *object = json_object();

	json_add(object, "version", run->answered ?
		 json_integer(run->version) : json_null());
	json_add(object, "call_threshold",
		 json_integer(run->agreement.call_threshold));
	json_add(object, "reply_threshold",
		 json_integer(run->agreement.reply_threshold));
	json_add(object, "remote_invalidation",
		 json_boolean(run->agreement.remote_inv));
	return object;
}

static json_t *connection_json(const struct ping_run *run)
{
	const struct ping_path *path = run->path;
	json_t *object;

	if (!path)
		return json_null();
	object = json_object();
	json_add(object, "peer", json_string(path->peer));
	json_add(object, "local", json_string(path->local));
	json_add(object, "device", json_string(path->device));
	json_add(object, "device_port", json_integer(path->device_port));
	json_add(object, "announced_here",
		 params_json(&run->ours, run->ours_sent));
	json_add(object, "announced_there",
		 params_json(&run->theirs, run->theirs_found));
	json_add(object, "agreed", agreed_json(run));
	return object;
}

static json_t *round_trip_json(const struct ping_stats *stats)
{
	json_t *object;

	if (!stats->count)
		return json_null();
	object = json_object();
	json_add(object, "min", json_integer(ping_stats_rank(stats, 0)));
	json_add(object, "median", json_integer(ping_stats_rank(stats, 50)));
	json_add(object, "p99", json_integer(ping_stats_rank(stats, 99)));
	return object;
}

static void print_json(const struct ping_run *run)
{
	json_t *object = json_object();
	bool answered = run->answered;

	json_add(object, "host", json_string(run->options->host));
	json_add(object, "port", json_integer(atoi(run->options->port)));
	json_add(object, "connection", connection_json(run));
	json_add(object, "program", json_integer(run->options->program));
	json_add(object, "program_version", answered ?
		 json_integer(run->program_version) : json_null());
	json_add(object, "sent", json_integer(run->sent));
	json_add(object, "answered", json_integer(run->answered));
	json_add(object, "ignored", json_integer(run->ignored));
	json_add(object, "credits", answered ?
		 json_integer(run->credits) : json_null());
	json_add(object, "round_trip_ns", round_trip_json(&run->stats));
	json_add(object, "error", run->error[0] ?
		 json_string(run->error) : json_null());
	json_add(object, "status", json_integer(run->status));
	out_json(object);
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
