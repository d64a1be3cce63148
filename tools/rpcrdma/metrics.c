// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* rpcrdma metrics: text for Prometheus, by the textfile collector of node_exporter */

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <linux/rpcrdma.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "cmd.h"
#include "fmt.h"
#include "metrics.h"
#include "number.h"
#include "rules.h"
#include "sock.h"

#define SYNOPSIS	"metrics [-o|--output FILE] [--per-peer[=COUNT]]"

#define PEERS		20	/* if --per-peer does not say how many */

/* What is asked for, and the kernel's answers */
struct metrics {
	const char *output;	/* NULL: standard output */
	unsigned int per_peer;
	bool up;		/* if not, there are no answers */
	struct objects connections;
	struct objects peers;
	struct objects listeners;
	struct objects devices;
};

static const struct label none[] = { { } };

static unsigned int parse_count(const char *word)
{
	uint32_t count;

	if (!number_parse(word, 1, PEERS_MAX, &count))
		die(STATUS_USAGE, "metrics: COUNT has to be from 1 to %d (got %s)", PEERS_MAX,
		    word);
	return count;
}

static struct metrics parse(int argc, char **argv)
{
	static const struct option options[] = {
		{ "output", required_argument, NULL, 'o' },
		{ "per-peer", optional_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ }
	};
	struct metrics metrics = { };
	int c;

	while ((c = getopt_long(argc, argv, "o:h", options, NULL)) != -1) {
		if (c == 'o')
			metrics.output = optarg;
		else if (c == 'p')
			metrics.per_peer = optarg ? parse_count(optarg) : PEERS;
		else
			usage_of(c, STATUS_USAGE, SYNOPSIS);
	}
	if (optind < argc)
		die(STATUS_USAGE, "metrics: options alone (got %s)", argv[optind]);
	return metrics;
}

static void ask(struct metrics *metrics)
{
	struct nl *nl = nl_find();

	metrics->up = nl;
	if (!nl)
		return;
	metrics->connections = objects_get(nl, RPCRDMA_CMD_CONNECTION_GET, &connection_rules);
	metrics->peers = objects_get(nl, RPCRDMA_CMD_PEER_GET, &connection_rules);
	metrics->listeners = objects_get(nl, RPCRDMA_CMD_LISTENER_GET, &listener_rules);
	metrics->devices = objects_get(nl, RPCRDMA_CMD_DEVICE_GET, &device_rules);
	nl_close(nl);
}

void metric_begin(FILE *out, const struct metric *metric)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", metric->name, metric->help, metric->name,
		metric->type);
	if (metric->unit)
		fprintf(out, "# UNIT %s %s\n", metric->name, metric->unit);
}

void metric_sample(FILE *out, const char *name, const struct label *labels, uint64_t value)
{
	const char *before = "{", *c;

	fputs(name, out);
	for (; labels->name; labels++) {
		if (!*labels->value)
			continue;
		fprintf(out, "%s%s=\"", before, labels->name);
		for (c = labels->value; *c; c++)
			fprintf(out, *c == '"' || *c == '\\' ? "\\%c" : "%c", *c);
		fputc('"', out);
		before = ",";
	}
	fprintf(out, "%s %llu\n", *before == ',' ? "}" : "", (unsigned long long)value);
}

static void print_up(FILE *out, bool up)
{
	static const struct metric metric = {
		"rpcrdma_up", "gauge", NULL,
		"Whether a module is loaded that has the netlink family rpcrdma."
	};

	metric_begin(out, &metric);
	metric_sample(out, metric.name, none, up);
}

/* Those of sysctl, which are sums over all connections since the module was loaded */
static void print_server(FILE *out)
{
	static const struct {
		const char *file;
		struct metric metric;
	} counters[] = {
		{ "recv", { "rpcrdma_server_messages_received_total", "counter", NULL,
			    "Messages that the server has received." } },
		{ "read", { "rpcrdma_server_read_chunk_calls_total", "counter", NULL,
			    "Calls whose Read chunks the server had to read." } },
		{ "write", { "rpcrdma_server_write_chunk_replies_total", "counter", NULL,
			     "Replies with something in Write chunks or in a Reply chunk." } },
		{ "sq_starve", { "rpcrdma_server_send_queue_waits_total", "counter", NULL,
				 "Times that something had to wait for the send queue." } },
		{ "dropped", { "rpcrdma_server_messages_dropped_total", "counter", NULL,
			       "Messages that the server could not understand." } },
		{ "errors", { "rpcrdma_server_error_replies_total", "counter", NULL,
			      "Messages that the server answered with RDMA_ERROR." } },
		{ }
	}, *counter;
	unsigned long long value;
	char path[PATH_MAX];
	FILE *file;

	for (counter = counters; counter->file; counter++) {
		snprintf(path, sizeof(path), "%s/proc/sys/sunrpc/svc_rdma/rdma_stat_%s",
			 sock_root(), counter->file);
		file = fopen(path, "r");
		if (!file)
			continue;
		if (fscanf(file, "%llu", &value) == 1) {
			metric_begin(out, &counter->metric);
			metric_sample(out, counter->metric.name, none, value);
		}
		fclose(file);
	}
}

static uint64_t listens(const struct attrs *listener)
{
	return attr_number(listener, RPCRDMA_A_LISTENER_STATE) == RPCRDMA_LISTENER_STATE_LISTENING;
}

static uint64_t usable(const struct attrs *device)
{
	return attr_number(device, RPCRDMA_A_DEVICE_USABILITY) == RPCRDMA_USABILITY_USABLE;
}

/* Numbers of each object, which the attribute @name tells apart in a label */
static void print_numbers(FILE *out, const struct number *numbers, const struct objects *objects,
			  const char *label, unsigned int name)
{
	unsigned int i;

	for (; numbers->metric.name; numbers++) {
		metric_begin(out, &numbers->metric);
		for (i = 0; i < objects->count; i++) {
			const struct attrs *object = &objects->of[i];
			const struct label labels[] = { { label, attr_string(object, name) }, { } };

			metric_sample(out, numbers->metric.name, labels,
				      number_of(numbers, object));
		}
	}
}

static void print_listeners(FILE *out, const struct objects *listeners)
{
	static const struct number numbers[] = {
		{ { "rpcrdma_listener_up", "gauge", NULL,
		    "Whether clients can connect; 0 if the device of the address is gone." },
		  .of = listens },
		{ { "rpcrdma_listener_waiting", "gauge", NULL,
		    "Connection requests without an answer." }, RPCRDMA_A_LISTENER_WAITING },
		{ { "rpcrdma_listener_accepted_total", "counter", NULL,
		    "Connection requests that were accepted." }, RPCRDMA_A_LISTENER_ACCEPTED },
		{ { "rpcrdma_listener_refused_total", "counter", NULL,
		    "Connection requests that were refused." }, RPCRDMA_A_LISTENER_REFUSED },
		{ }
	};

	print_numbers(out, numbers, listeners, "local", RPCRDMA_A_LISTENER_LOCAL);
}

static void print_ports(FILE *out, const struct attrs *device, const char *name)
{
	const struct nlattr *last = NULL;
	struct attrs port;

	while (attrs_each(device, RPCRDMA_A_DEVICE_PORT, &last, &port)) {
		struct text number = fmt_print("%llu", (unsigned long long)
					       attr_number(&port, RPCRDMA_A_PORT_NUMBER));
		const struct label labels[] = {
			{ "device", attr_string(device, RPCRDMA_A_DEVICE_NAME) },
			{ "port", number.s },
			{ }
		};

		metric_sample(out, name, labels, attr_number(&port, RPCRDMA_A_PORT_STATE) ==
						 RPCRDMA_PORT_STATE_ACTIVE);
	}
}

static void print_devices(FILE *out, const struct objects *devices)
{
	static const struct number numbers[] = {
		{ { "rpcrdma_device_usable", "gauge", NULL,
		    "Whether connections can use the RDMA device." }, .of = usable },
		{ }
	};
	static const struct metric port = {
		"rpcrdma_port_active", "gauge", NULL,
		"Whether the port of the RDMA device is in the state active."
	};
	unsigned int i;

	print_numbers(out, numbers, devices, "device", RPCRDMA_A_DEVICE_NAME);
	metric_begin(out, &port);
	for (i = 0; i < devices->count; i++)
		print_ports(out, &devices->of[i], port.name);
}

static void print(FILE *out, const struct metrics *metrics)
{
	print_up(out, metrics->up);
	if (metrics->up) {
		print_devices(out, &metrics->devices);
		print_listeners(out, &metrics->listeners);
		print_server(out);
		metrics_of_connections(out, &metrics->connections, &metrics->peers,
				       metrics->per_peer);
	}
	fputs("# EOF\n", out);
}

/* Readers have either the old file or the new one. Return: 0 or an errno */
static int replace(const char *temporary, int fd, const struct metrics *metrics)
{
	FILE *file = fdopen(fd, "w");
	bool failed;

	if (!file)
		return errno;
	failed = fchmod(fd, 0644);
	if (!failed)
		print(file, metrics);
	failed |= ferror(file);
	if (fclose(file) || failed || rename(temporary, metrics->output))
		return errno ?: EIO;
	return 0;
}

static void write_file(const struct metrics *metrics)
{
	char temporary[PATH_MAX];
	int fd = -1, err = ENAMETOOLONG;
	struct stat old;

	if (!lstat(metrics->output, &old) && !S_ISREG(old.st_mode))	/* as /dev/null */
		die(STATUS_USAGE, "metrics: FILE has to be a regular file (got %s)",
		    metrics->output);
	if (snprintf(temporary, sizeof(temporary), "%s.XXXXXX", metrics->output) <
	    (int)sizeof(temporary)) {
		fd = mkstemp(temporary);
		err = fd < 0 ? errno : replace(temporary, fd, metrics);
	}
	if (fd >= 0 && err)
		unlink(temporary);
	if (err)
		die(STATUS_FAILED, "cannot write %s: %s", metrics->output, strerror(err));
}

int cmd_metrics(int argc, char **argv)
{
	struct metrics metrics = parse(argc, argv);

	ask(&metrics);
	if (metrics.output)
		write_file(&metrics);
	else
		print(stdout, &metrics);
	objects_free(&metrics.connections);
	objects_free(&metrics.peers);
	objects_free(&metrics.listeners);
	objects_free(&metrics.devices);
	return STATUS_OK;
}
