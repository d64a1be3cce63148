// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* RDMA devices, their network interfaces, and limits. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "doctor.h"

#define CHECK		"device"
#define CLASS		"/sys/class/infiniband"
#define GIDS_MAX	1024
#define QPS_MIN		8	/* a mount with nconnect=4, and as many to spare */
#define MRS_MIN		64
#define MEMLOCK_MIN	(1024 * 1024UL)	/* a ping takes less than that */

/* Network interfaces */

/* What the GID table says. A slot that is not in use cannot be read. */
static void netdev_of_gids(struct doctor *d, struct doctor_port *port)
{
	unsigned int i;

	for (i = 0; i < GIDS_MAX && !*port->netdev; i++) {
		if (!doctor_exists(d, CLASS "/%s/ports/%u/gid_attrs/ndevs/%u",
				   port->device, port->port, i))
			return;
		doctor_read_line(d, port->netdev, sizeof(port->netdev),
				 CLASS "/%s/ports/%u/gid_attrs/ndevs/%u",
				 port->device, port->port, i);
	}
}

/* The GIDs of iWARP devices have no interface before kernel 6.5. */
static void netdev_of_rdma(struct doctor *d, struct doctor_port *port)
{
	char *const argv[] = { "rdma", "-j", "link", "show", port->device, NULL };
	char *output;
	json_t *list;
	size_t i;
	int status;

	if (doctor_run(d, argv, &status, &output))
		return;
	list = json_loads(output, 0, NULL);
	free(output);
	for (i = 0; i < json_array_size(list); i++) {
		json_t *link = json_array_get(list, i);
		const char *name = json_string_value(json_object_get(link, "netdev"));

		if (name && json_integer_value(json_object_get(link, "port")) == port->port)
			snprintf(port->netdev, sizeof(port->netdev), "%s", name);
	}
	json_decref(list);
}

/* With InfiniBand, that is the interface of IPoIB. */
static void netdev_of_parent(struct doctor *d, struct doctor_port *port)
{
	size_t count;
	struct dirent **names = doctor_list(d, &count, CLASS "/%s/device/net", port->device);

	if (count)
		snprintf(port->netdev, sizeof(port->netdev), "%.63s",
			 names[port->port <= count ? port->port - 1 : 0]->d_name);
	doctor_list_free(names, count);
}

static void find_netdev(struct doctor *d, struct doctor_port *port)
{
	netdev_of_gids(d, port);
	if (!*port->netdev)
		netdev_of_rdma(d, port);
	if (!*port->netdev)
		netdev_of_parent(d, port);
	if (strchr(port->netdev, '/') || *port->netdev == '.')
		*port->netdev = 0;
}

/* Devices and ports */

static void read_port(struct doctor *d, const char *device, const char *number)
{
	struct doctor_port *port = &d->ports[d->port_count];
	char line[64];

	if (d->port_count == DOCTOR_PORTS_MAX)
		return;
	memset(port, 0, sizeof(*port));
	snprintf(port->device, sizeof(port->device), "%.63s", device);
	port->port = strtoul(number, NULL, 10);
	doctor_read_line(d, line, sizeof(line), CLASS "/%s/ports/%s/state", device, number);
	port->active = strtoul(line, NULL, 10) == 4;
	doctor_read_line(d, line, sizeof(line), CLASS "/%s/node_type", device);
	port->iwarp = strtoul(line, NULL, 10) == 4;
	doctor_read_line(d, line, sizeof(line), CLASS "/%s/ports/%s/link_layer", device, number);
	port->infiniband = !strcmp(line, "InfiniBand");
	find_netdev(d, port);
	d->port_count++;
}

static void read_ports(struct doctor *d)
{
	size_t i, n, devices, ports;
	struct dirent **names = doctor_list(d, &devices, CLASS);

	for (i = 0; i < devices; i++) {
		struct dirent **numbers = doctor_list(d, &ports, CLASS "/%s/ports",
						      names[i]->d_name);

		for (n = 0; n < ports; n++)
			read_port(d, names[i]->d_name, numbers[n]->d_name);
		doctor_list_free(numbers, ports);
	}
	doctor_list_free(names, devices);
}

/* Checks of one port */

struct search {
	const char *netdev;
	bool found;
};

static void is_address_of(const char *netdev, const struct doctor_address *address, void *data)
{
	struct search *search = data;

	if (!strcmp(netdev, search->netdev))
		search->found = true;
}

static bool has_address(struct doctor *d, const char *netdev)
{
	struct search search = { .netdev = netdev };

	return d->kernel->addresses(d, is_address_of, &search) || search.found;
}

static bool netdev_up(struct doctor *d, const char *netdev)
{
	char flags[32];

	doctor_read_line(d, flags, sizeof(flags), "/sys/class/net/%s/flags", netdev);
	return strtoul(flags, NULL, 16) & 1;
}

static bool has_carrier(struct doctor *d, const char *netdev)
{
	char carrier[32];

	return doctor_read_line(d, carrier, sizeof(carrier), "/sys/class/net/%s/carrier",
				netdev) || *carrier != '0';
}

/* If another port works, this one may be meant to be down. */
static void check_inactive(struct doctor *d, const struct doctor_port *port,
			   enum doctor_verdict verdict)
{
	const char *netdev = port->netdev;
	char advice[DOCTOR_TEXT_MAX], state[64];

	doctor_read_line(d, state, sizeof(state), CLASS "/%s/ports/%u/state", port->device,
			 port->port);
	if (*netdev && !netdev_up(d, netdev))
		doctor_advise(advice, "ip link set %s up", netdev);
	else if (*netdev && !has_carrier(d, netdev))
		doctor_advise(advice, "%s has no carrier: look at its cable and switch", netdev);
	else
		doctor_advise(advice, "look at cable and switch%s", port->infiniband ?
			      ", and whether a subnet manager runs" : "");
	doctor_add(d, CHECK, verdict, advice, "%s port %u%s%s is not ACTIVE: %s", port->device,
		   port->port, *netdev ? " on " : "", netdev, state);
}

static void check_active(struct doctor *d, const struct doctor_port *port,
			 enum doctor_verdict verdict)
{
	char advice[DOCTOR_TEXT_MAX];

	if (!*port->netdev) {
		doctor_add(d, CHECK, verdict, port->infiniband ? "modprobe ib_ipoib" :
			   "look at rdma link and ip link",
			   "%s port %u has no network interface, so no address",
			   port->device, port->port);
	} else if (!has_address(d, port->netdev)) {
		doctor_advise(advice, "ip address add ADDRESS/LENGTH dev %s", port->netdev);
		doctor_add(d, CHECK, verdict, advice,
			   "%s, the network interface of %s port %u, has no IP address",
			   port->netdev, port->device, port->port);
	} else {
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "%s port %u on %s is ACTIVE",
			   port->device, port->port, port->netdev);
	}
}

static bool usable(struct doctor *d, const struct doctor_port *port)
{
	return port->active && *port->netdev && has_address(d, port->netdev);
}

static void check_ports(struct doctor *d)
{
	enum doctor_verdict verdict = DOCTOR_WRONG;
	size_t i;

	for (i = 0; i < d->port_count; i++)
		d->usable |= usable(d, &d->ports[i]);
	if (d->usable)
		verdict = DOCTOR_NOTE;
	for (i = 0; i < d->port_count; i++) {
		if (d->ports[i].active)
			check_active(d, &d->ports[i], verdict);
		else
			check_inactive(d, &d->ports[i], verdict);
	}
}

/* Limits */

static void check_limits(struct doctor *d, const char *device)
{
	struct doctor_limits limits;
	int ret = d->kernel->limits(d, device, &limits);

	if (ret == -ENOENT)	/* the module is not loaded, or is the kernel's own */
		return;
	if (ret)
		doctor_add(d, CHECK, DOCTOR_UNKNOWN,
			   "install rpcrdma-tools of the same version as the module",
			   "the limits of %s cannot be read: %s", device, strerror(-ret));
	else if (!limits.fast_registration)
		doctor_add(d, CHECK, DOCTOR_WRONG, "use another device, or TCP",
			   "%s has no memory management extensions, which NFS/RDMA needs", device);
	else if (!limits.page_list)
		doctor_add(d, CHECK, DOCTOR_WRONG, "use another device, or TCP",
			   "%s registers no pages by work request, which NFS/RDMA needs", device);
	else if (limits.qps < QPS_MIN || limits.mrs < MRS_MIN)
		doctor_add(d, CHECK, DOCTOR_WRONG,
			   "look for a limit in its driver or firmware, or use another device",
			   "%s has few resources: %d queue pairs, %d memory regions", device,
			   limits.qps, limits.mrs);
}

static void check_all_limits(struct doctor *d)
{
	size_t i;

	for (i = 0; i < d->port_count; i++)
		if (!i || strcmp(d->ports[i].device, d->ports[i - 1].device))
			check_limits(d, d->ports[i].device);
}

static bool may_lock_all(struct doctor *d)
{
	char *text = doctor_read(d, "/proc/self/status", NULL);
	const char *caps = doctor_field(text, "\nCapEff");
	bool may = caps && strtoull(caps, NULL, 16) & 1ULL << 14;	/* CAP_IPC_LOCK */

	free(text);
	return may;
}

/* It limits programs like ping. The module itself locks no memory of users. */
void doctor_memlock(struct doctor *d)
{
	char *text = doctor_read(d, "/proc/self/limits", NULL);
	const char *value = doctor_field(text, "Max locked memory");

	if (!value)
		doctor_add(d, "memlock", DOCTOR_UNKNOWN, "look at ulimit -l",
			   "the limit of locked memory cannot be read");
	else if (*value != 'u' && strtoul(value, NULL, 10) < MEMLOCK_MIN && !may_lock_all(d))
		doctor_add(d, "memlock", DOCTOR_WRONG,
			   "ulimit -l unlimited, and memlock in /etc/security/limits.conf",
			   "programs may lock only %lu KiB: rping or rpcrdma ping may fail",
			   strtoul(value, NULL, 10) / 1024);
	else
		doctor_add(d, "memlock", DOCTOR_OK, NULL, "enough memory may be locked");
	free(text);
}

void doctor_device(struct doctor *d)
{
	read_ports(d);
	if (!d->port_count)
		doctor_add(d, CHECK, DOCTOR_WRONG,
			   "load its driver; without one: rdma link add rxe0 type rxe netdev eth0",
			   "there is no RDMA device");
	check_ports(d);
	check_all_limits(d);
}
