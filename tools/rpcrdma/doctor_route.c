// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The way to HOST: its address, the route, the device on it, and whether it answers. */

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define CLASS		"/sys/class/infiniband"
#define GIDS_MAX	1024
#define LARGE		"65536"	/* octets, which the server has to read; each takes as many */

/* The address of HOST */

/* Name servers may take long. A lookup that goes on writes to this until the program ends. */
static struct gaicb lookup;

static int look_up(struct doctor *d)
{
	static const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	const struct timespec patience = { d->patience / 1000, d->patience % 1000 * 1000000 };
	struct gaicb *list[] = { &lookup };
	int ret;

	lookup = (struct gaicb){ .ar_name = d->host, .ar_request = &hints };
	ret = getaddrinfo_a(GAI_NOWAIT, list, 1, NULL);
	if (ret)
		return ret;
	gai_suspend((const struct gaicb * const *)list, 1, &patience);
	return gai_error(&lookup);
}

static bool resolve(struct doctor *d, struct doctor_address *address)
{
	int ret = look_up(d);

	if (ret) {
		doctor_add(d, "host", DOCTOR_WRONG, "name another, or look at /etc/hosts and DNS",
			   "%s has no address: %s", d->host,
			   ret == EAI_INPROGRESS ? "no answer" : gai_strerror(ret));
		return false;
	}
	doctor_address(lookup.ar_result->ai_addr, address);
	freeaddrinfo(lookup.ar_result);
	return true;
}

/* The device */

/* A bond, a VLAN or a bridge uses the device of what is below it. */
static bool is_above(struct doctor *d, const char *netdev, const char *lower)
{
	return !strcmp(netdev, lower) ||
	       doctor_exists(d, "/sys/class/net/%s/lower_%s", netdev, lower);
}

static const struct doctor_port *port_on(struct doctor *d, const char *netdev)
{
	size_t i;

	for (i = 0; i < d->port_count; i++)
		if (*d->ports[i].netdev && is_above(d, netdev, d->ports[i].netdev))
			return &d->ports[i];
	return NULL;
}

/* rdma_cm takes GIDs of one version of RoCE alone. */
static bool is_in_use(struct doctor *d, const struct doctor_port *port, unsigned int gid)
{
	char type[32];

	return doctor_read_line(d, type, sizeof(type), CLASS "/%s/ports/%u/gid_attrs/types/%u",
				port->device, port->port, gid) || !*port->roce ||
	       !strcmp(type, port->roce);
}

/* GIDs are addresses only on Ethernet, and not with iWARP. */
static bool has_gid(struct doctor *d, const struct doctor_port *port,
		    const struct doctor_address *address)
{
	char gid[64];
	unsigned char binary[16];
	unsigned int i;

	if (port->iwarp || port->infiniband)
		return true;
	for (i = 0; i < GIDS_MAX; i++) {
		int ret = doctor_read_line(d, gid, sizeof(gid), CLASS "/%s/ports/%u/gids/%u",
					   port->device, port->port, i);

		if (ret == -ENOENT)
			return false;
		if (!ret && inet_pton(AF_INET6, gid, binary) == 1 &&
		    !memcmp(binary, address->ip, 16) && is_in_use(d, port, i))
			return true;
	}
	return false;
}

static const char *print_ip(const struct doctor_address *address, char text[INET6_ADDRSTRLEN])
{
	const struct in6_addr *ip = (const struct in6_addr *)address->ip;

	if (IN6_IS_ADDR_V4MAPPED(ip))
		return inet_ntop(AF_INET, address->ip + 12, text, INET6_ADDRSTRLEN);
	return inet_ntop(AF_INET6, ip, text, INET6_ADDRSTRLEN);
}

/* Return: false if there is no use in a ping. */
static bool check_device(struct doctor *d, const struct doctor_route *route)
{
	const struct doctor_port *port = port_on(d, route->netdev);
	char advice[DOCTOR_TEXT_MAX], ip[INET6_ADDRSTRLEN];

	print_ip(&route->source, ip);
	if (!port) {
		doctor_advise(advice,
			      "rdma link add rxe0 type rxe netdev %s, or name another address of %s",
			      route->netdev, d->host);
		doctor_add(d, "route", DOCTOR_WRONG, advice,
			   "the route to %s is by %s, which has no RDMA device", d->host,
			   route->netdev);
	} else if (!port->active) {
		doctor_add(d, "route", DOCTOR_WRONG, "see the lines about the device",
			   "the route to %s is by %s, whose RDMA device %s is not ACTIVE",
			   d->host, route->netdev, port->device);
	} else if (!has_gid(d, port, &route->source)) {
		doctor_advise(advice,
			      "set %s down and up if it has that address; if not, correct \"src\" in ip route",
			      route->netdev);
		doctor_add(d, "route", DOCTOR_WRONG, advice,
			   "%s has no GID for %s, from which %s sends to %s", port->device, ip,
			   route->netdev, d->host);
	} else {
		doctor_add(d, "route", DOCTOR_OK, NULL, "%s is reached from %s by %s on %s",
			   d->host, ip, port->device, route->netdev);
	}
	return port;
}

static bool check_route(struct doctor *d, const struct doctor_address *to)
{
	struct doctor_route route = {};
	int ret = d->kernel->route(d, to, &route);

	if (ret == -ENETUNREACH || ret == -EHOSTUNREACH || ret == -EINVAL || ret == -EACCES) {
		doctor_add(d, "route", DOCTOR_WRONG, "look at ip address and ip route",
			   "there is no route to %s", d->host);
		return false;
	}
	if (!ret)
		return check_device(d, &route);
	doctor_add(d, "route", DOCTOR_UNKNOWN, "look at ip route get",
		   "the route to %s cannot be found out: %s", d->host, strerror(-ret));
	return true;
}

/* An answer */

/* The last line that is not empty; changes @text. */
static const char *last_line(char *text)
{
	const char *last = "";
	char *line;

	while ((line = doctor_line(&text)))
		if (line[strspn(line, " \t\r")])
			last = line;
	return last;
}

/* Exit codes of rpcrdma ping */
#define PING_NO_ANSWER	1
#define PING_ERROR	2	/* all else: the server rejects; not root: no rights */

static void report_ping(struct doctor *d, int status, char *output)
{
	if (!status)
		doctor_add(d, "ping", DOCTOR_OK, NULL, "%s port %s answers over RDMA", d->host,
			   d->server_port);
	else if (status == PING_NO_ANSWER)
		doctor_add(d, "ping", DOCTOR_WRONG,
			   "run rpcrdma doctor there: does it listen, does a firewall block it?",
			   "%s port %s does not answer over RDMA: %s", d->host, d->server_port,
			   last_line(output));
	else if (status == PING_ERROR && d->privileged)
		doctor_add(d, "ping", DOCTOR_WRONG, "see the log at both ends",
			   "rpcrdma ping says: %s", last_line(output));
	else if (status == PING_ERROR)
		doctor_add(d, "ping", DOCTOR_UNKNOWN, "see rpcrdma-ping(8)",
			   "rpcrdma ping says: %s", last_line(output));
	else
		doctor_add(d, "ping", DOCTOR_UNKNOWN, "rping of rdmacm-utils does the same",
			   "rpcrdma ping does not run");
}

/* A server may have reasons not to take large Calls, but not to be silent. */
static void report_large_ping(struct doctor *d, int status, char *output)
{
	if (!status)
		doctor_add(d, "ping", DOCTOR_OK, NULL,
			   "%s port %s answers when it has read %s octets from here", d->host,
			   d->server_port, LARGE);
	else if (status == PING_NO_ANSWER)
		doctor_add(d, "ping", DOCTOR_WRONG,
			   "compare the MTU of both ends and of all switches between them",
			   "%s port %s answers short Calls, and none of %s octets: packets of full size are lost",
			   d->host, d->server_port, LARGE);
	else
		doctor_add(d, "ping", DOCTOR_NOTE, "see LARGE CALLS in rpcrdma-ping(8)",
			   "with a Call of %s octets rpcrdma ping says: %s", LARGE,
			   last_line(output));
}

/* Return: whether there was an answer. */
static bool ping(struct doctor *d, const char *ip, char *size,
		 void (*report)(struct doctor *d, int status, char *output))
{
	char target[INET6_ADDRSTRLEN + 16], *output;
	char *const argv[] = { (char *)d->self, "ping", "-q", "-c", "1", "-W", "3", "-s", size,
			       target, NULL };
	int status = -1, ret;

	snprintf(target, sizeof(target), strchr(ip, ':') ? "[%s]:%s" : "%s:%s", ip, d->server_port);
	ret = doctor_run(d, argv, &status, &output);
	if (ret == -ETIMEDOUT) {
		doctor_add(d, "ping", DOCTOR_WRONG, "look at the firewalls on the way",
			   "%s port %s does not answer over RDMA", d->host, d->server_port);
	} else if (ret) {
		doctor_add(d, "ping", DOCTOR_UNKNOWN, "rping of rdmacm-utils does the same",
			   "rpcrdma ping cannot be started: %s", strerror(-ret));
	} else {
		report(d, status, output);
		free(output);
	}
	return !status;
}

void doctor_route(struct doctor *d)
{
	struct doctor_address address;
	char ip[INET6_ADDRSTRLEN];

	if (!resolve(d, &address) || !check_route(d, &address))
		return;
	print_ip(&address, ip);
	if (ping(d, ip, "0", report_ping))
		ping(d, ip, LARGE, report_large_ping);
}
