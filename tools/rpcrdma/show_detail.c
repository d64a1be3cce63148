// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <linux/rpcrdma.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include "connection.h"
#include "fmt.h"
#include "histogram.h"
#include "show.h"
#include "users.h"
#include "xprt_switch.h"

#define BAR	40	/* characters of the longest bar */

#define COUNT(attrs, number)	fmt_count(attr_number(attrs, number)).s
#define SIZE(attrs, number)	fmt_size(attr_number(attrs, number)).s

/* The first line of an object */
__attribute__((format(printf, 1, 2)))
static void title(const char *format, ...)
{
	va_list args;

	fputs(term_colour(COLOUR_HEAD), stdout);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	puts(term_plain(COLOUR_HEAD));
}

__attribute__((format(printf, 2, 3)))
static void line(const char *name, const char *format, ...)
{
	va_list args;

	printf("  %-14s ", name);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

/* A number by its name: octets as a size, all else as a count */
static struct text named(const struct attrs *attrs, unsigned int i)
{
	const char *name = attrs->rules->rules[i].name;

	return fmt_print("%s %s", name, strstr(name, "octets") ? SIZE(attrs, i) : COUNT(attrs, i));
}

/*
 * The numbers of a nest that are not zero, by their names. The line goes on
 * below itself, so that it fits 100 columns.
 */
static void numbers(const char *name, const struct attrs *attrs, enum colour colour)
{
	unsigned int i, column = 0, len;
	const char *separator = "";
	struct text text;

	printf("  %-14s ", name);
	for (i = 0; i < attrs->rules->count; i++) {
		if (!attr_number(attrs, i))
			continue;
		text = named(attrs, i);
		len = strlen(text.s);
		if (column + len > 72) {
			printf(",\n%17s", "");
			separator = "";
			column = 0;
		}
		printf("%s%s%s%s", separator, term_colour(colour), text.s, term_plain(colour));
		separator = ", ";
		column += len + 2;
	}
	puts(column ? "" : "none");
}

static void agreed(const struct attrs *c)
{
	if (!attr_has(c, RPCRDMA_A_CONNECTION_CALL_THRESHOLD))
		return;
	line("agreed", "version %u, Calls to %s and Replies to %s inline, %s",
	     (unsigned int)attr_number(c, RPCRDMA_A_CONNECTION_VERSION),
	     SIZE(c, RPCRDMA_A_CONNECTION_CALL_THRESHOLD),
	     SIZE(c, RPCRDMA_A_CONNECTION_REPLY_THRESHOLD),
	     attr_has(c, RPCRDMA_A_CONNECTION_REMOTE_INVALIDATION) ?
	     "remote invalidation" : "no remote invalidation");
	line("RDMA Reads", "%s at a time by this end, %s by the peer",
	     COUNT(c, RPCRDMA_A_CONNECTION_INITIATOR_DEPTH),
	     COUNT(c, RPCRDMA_A_CONNECTION_RESPONDER_RESOURCES));
}

/* Servers request none, and a connection that has only begun has none at all. */
static void credits(const struct attrs *c)
{
	static const struct {
		unsigned int attr;
		const char *words;
	} parts[] = {
		{ RPCRDMA_A_CONNECTION_CREDITS_REQUESTED, "requested" },
		{ RPCRDMA_A_CONNECTION_CREDITS_GRANTED, "granted" },
		{ RPCRDMA_A_CONNECTION_CREDITS_IN_USE, "in use" },
		{ RPCRDMA_A_CONNECTION_CREDITS_WAITING, "RPCs waiting" },
		{ }
	};
	unsigned int printed = 0;
	size_t i;

	for (i = 0; parts[i].words; i++) {
		if (!attr_has(c, parts[i].attr))
			continue;
		if (printed++)
			printf(", ");
		else
			printf("  %-14s ", "credits");
		printf("%s %s", COUNT(c, parts[i].attr), parts[i].words);
	}
	if (printed)
		putchar('\n');
}

static void resources(const struct attrs *c)
{
	credits(c);
	if (attr_has(c, RPCRDMA_A_CONNECTION_REGISTRATIONS_IN_USE))
		line("registrations", "%s in use, %s idle",
		     COUNT(c, RPCRDMA_A_CONNECTION_REGISTRATIONS_IN_USE),
		     COUNT(c, RPCRDMA_A_CONNECTION_REGISTRATIONS_IDLE));
	if (!attr_has(c, RPCRDMA_A_CONNECTION_RECEIVES))
		return;
	if (attr_has(c, RPCRDMA_A_CONNECTION_SHARED_RECEIVES))
		line("Receives", "shared, %s in use", COUNT(c, RPCRDMA_A_CONNECTION_RECEIVES));
	line("queues", "%s of %s Receives posted, %s of %s of the send queue used",
	     COUNT(c, RPCRDMA_A_CONNECTION_RECEIVES_POSTED),
	     COUNT(c, RPCRDMA_A_CONNECTION_RECEIVES),
	     COUNT(c, RPCRDMA_A_CONNECTION_SEND_QUEUE_USED),
	     COUNT(c, RPCRDMA_A_CONNECTION_SEND_QUEUE_SIZE));
	line("memory", "%s", SIZE(c, RPCRDMA_A_CONNECTION_MEMORY));
}

static void traffic(const struct attrs *c, unsigned int direction, const char *name)
{
	struct attrs messages = attrs_nested(c, direction);

	numbers(name, &messages, COLOUR_NONE);
}

/* Where a bucket begins and ends, as 64us..128us */
static struct text range(const struct histogram *histogram, unsigned int i)
{
	if (i == histogram->buckets - 1)
		return fmt_print("%s..", fmt_ns(histogram_from(i)).s);
	return fmt_print("%s..%s", fmt_ns(histogram_from(i)).s, fmt_ns(histogram_from(i + 1)).s);
}

static void latency(const struct attrs *c)
{
	struct histogram histogram = histogram_get(c);
	uint64_t most = 0;
	unsigned int i;

	for (i = 0; i < histogram.buckets; i++)
		if (histogram.of[i] > most)
			most = histogram.of[i];
	if (!most)
		return;
	line("latency", "p50 %s, p90 %s, p99 %s", fmt_ns(histogram_percentile(&histogram, 50)).s,
	     fmt_ns(histogram_percentile(&histogram, 90)).s,
	     fmt_ns(histogram_percentile(&histogram, 99)).s);
	for (i = 0; i < histogram.buckets; i++)
		if (histogram.of[i])
			printf("  %14s %7s %.*s\n", range(&histogram, i).s,
			       fmt_count(histogram.of[i]).s,
			       1 + (int)(histogram.of[i] * (BAR - 1.0) / most),
			       "########################################");
}

static void sunrpc(const struct attrs *c)
{
	int number = xprt_switch_of(c);

	if (attr_has(c, RPCRDMA_A_CONNECTION_XPRT_ID))
		line("sunrpc", "transport %u, in /sys/kernel/sunrpc/xprt-switches%s",
		     (unsigned int)attr_number(c, RPCRDMA_A_CONNECTION_XPRT_ID),
		     number < 0 ? "" : fmt_print("/switch-%d", number).s);
}

static void print_user(const char *name, void *data)
{
	char *plain = strdupa(name);

	fmt_plain(plain);
	line(data, "%s", plain);
}

static void counters(const struct attrs *c)
{
	struct attrs waits = attrs_nested(c, RPCRDMA_A_CONNECTION_WAITS);
	struct attrs errors = attrs_nested(c, RPCRDMA_A_CONNECTION_ERRORS);

	traffic(c, RPCRDMA_A_CONNECTION_SENT, "sent");
	traffic(c, RPCRDMA_A_CONNECTION_RECEIVED, "received");
	numbers("waits", &waits, COLOUR_WARN);
	numbers("errors", &errors, COLOUR_BAD);
	latency(c);
}

void details_of_connection(const struct attrs *c)
{
	bool client = connection_is(c, RPCRDMA_CONNECTION_ROLE_CLIENT);

	title("connection %u %s %s: %s for %s",
	      (unsigned int)attr_number(c, RPCRDMA_A_CONNECTION_ID),
	      client ? "to the server" : "of the client",
	      attr_string(c, RPCRDMA_A_CONNECTION_PEER), attr_word(c, RPCRDMA_A_CONNECTION_STATE),
	      age_of(c, RPCRDMA_A_CONNECTION_STATE_AGE).s);
	if (attr_number(c, RPCRDMA_A_CONNECTION_CAUSE))
		line("cause", "%s", strerror(attr_number(c, RPCRDMA_A_CONNECTION_CAUSE)));
	if (attr_has(c, RPCRDMA_A_CONNECTION_LOCAL))
		line("local", "%s by %s", attr_string(c, RPCRDMA_A_CONNECTION_LOCAL),
		     connection_device(c).s);
	users_of(&(struct connections){ 1, &c }, print_user, client ? "mount" : "client");
	sunrpc(c);
	agreed(c);
	resources(c);
	counters(c);
}

void details_of_peer(const struct attrs *p)
{
	title("%s %s: since %s",
	      connection_is(p, RPCRDMA_CONNECTION_ROLE_CLIENT) ? "server" : "client",
	      peer_name(p).s, age_of(p, RPCRDMA_A_CONNECTION_STATE_AGE).s);
	line("connections", "%s established so far", COUNT(p, RPCRDMA_A_CONNECTION_CONNECTS));
	counters(p);
}

void details_of_listener(const struct attrs *l)
{
	title("listener %s: %s for %s", attr_string(l, RPCRDMA_A_LISTENER_LOCAL),
	      attr_word(l, RPCRDMA_A_LISTENER_STATE), age_of(l, RPCRDMA_A_LISTENER_STATE_AGE).s);
	line("requests", "%s accepted, %s refused, %s waiting",
	     COUNT(l, RPCRDMA_A_LISTENER_ACCEPTED), COUNT(l, RPCRDMA_A_LISTENER_REFUSED),
	     COUNT(l, RPCRDMA_A_LISTENER_WAITING));
}

static void ports(const struct attrs *device)
{
	const struct nlattr *last = NULL;
	char name[IF_NAMESIZE];
	struct attrs port;
	bool has_name;

	while (attrs_each(device, RPCRDMA_A_DEVICE_PORT, &last, &port)) {
		has_name = attr_has(&port, RPCRDMA_A_PORT_IFINDEX) &&
			   if_indextoname(attr_number(&port, RPCRDMA_A_PORT_IFINDEX), name);
		line("port", "%u: %s, %s, %s%s", (unsigned int)
		     attr_number(&port, RPCRDMA_A_PORT_NUMBER),
		     attr_word(&port, RPCRDMA_A_PORT_STATE),
		     attr_word(&port, RPCRDMA_A_PORT_PROTOCOL), has_name ? "network interface " :
		     "no network interface here", has_name ? name : "");
	}
}

void details_of_device(const struct attrs *d)
{
	title("device %s, node %s: %s", attr_string(d, RPCRDMA_A_DEVICE_NAME),
	      attr_string(d, RPCRDMA_A_DEVICE_NODE_GUID), attr_word(d, RPCRDMA_A_DEVICE_USABILITY));
	ports(d);
	line("queues", "%s work requests, %s completions, at most",
	     COUNT(d, RPCRDMA_A_DEVICE_MAX_QUEUE_WRS), COUNT(d, RPCRDMA_A_DEVICE_MAX_CQES));
	line("elements", "%s of a Send, %s of a Receive, at most",
	     COUNT(d, RPCRDMA_A_DEVICE_MAX_SEND_SGES), COUNT(d, RPCRDMA_A_DEVICE_MAX_RECV_SGES));
	line("registrations", "%s at most, of %s pages and %s octets each%s",
	     COUNT(d, RPCRDMA_A_DEVICE_MAX_MRS), COUNT(d, RPCRDMA_A_DEVICE_MAX_PAGE_LIST),
	     attr_number(d, RPCRDMA_A_DEVICE_MAX_MR_SIZE) ?
	     SIZE(d, RPCRDMA_A_DEVICE_MAX_MR_SIZE) : "any number of",
	     attr_has(d, RPCRDMA_A_DEVICE_SG_GAPS) ? ", with gaps" : "");
	line("used", "%s pages in a registration", COUNT(d, RPCRDMA_A_DEVICE_MR_PAGES));
	line("RDMA Reads", "%s issued, %s served at a time by a connection, at most",
	     COUNT(d, RPCRDMA_A_DEVICE_MAX_READS_ISSUED),
	     COUNT(d, RPCRDMA_A_DEVICE_MAX_READS_SERVED));
	line("connections", "%s at most", COUNT(d, RPCRDMA_A_DEVICE_MAX_QPS));
	if (attr_number(d, RPCRDMA_A_DEVICE_SHARED_RECEIVES))
		line("shared", "%s Receives; %s times few, %s times none; %s peers sent too much",
		     COUNT(d, RPCRDMA_A_DEVICE_SHARED_RECEIVES),
		     COUNT(d, RPCRDMA_A_DEVICE_SHARED_LIMITS),
		     COUNT(d, RPCRDMA_A_DEVICE_SHARED_EMPTY),
		     COUNT(d, RPCRDMA_A_DEVICE_CREDITS_EXCEEDED));
}
