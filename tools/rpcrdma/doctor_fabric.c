// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* How packets of RoCE leave: their size, version, DSCP, and flow control. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define CHECK		"fabric"
#define CLASS		"/sys/class/infiniband"
#define CONFIGURED	"/sys/kernel/config/rdma_cm"
#define GIDS_MAX	1024
#define VERSION_1	"IB/RoCE v1"
#define VERSION_2	"RoCE v2"

/* What the kernel takes off the MTU for its largest headers (iboe_get_mtu()) */
#define HEADERS		96

static unsigned int read_mtu(struct doctor *d, const char *netdev)
{
	char line[32];

	doctor_read_line(d, line, sizeof(line), "/sys/class/net/%s/mtu", netdev);
	return strtoul(line, NULL, 10);
}

/* Octets of data in a packet; less than 256: not enough */
static unsigned int packet_size(unsigned int mtu)
{
	unsigned int size = 4096;

	while (size >= 256 && size + HEADERS > mtu)
		size /= 2;
	return size;
}

/* Without a word of the administrator rdma_cm takes version 2 if the device has it. */
static void read_version(struct doctor *d, struct doctor_port *port)
{
	char type[sizeof(port->roce)];
	unsigned int i;

	if (!doctor_read_line(d, port->roce, sizeof(port->roce),
			      CONFIGURED "/%s/ports/%u/default_roce_mode", port->device,
			      port->port))
		return;
	for (i = 0; i < GIDS_MAX; i++) {
		int ret = doctor_read_line(d, type, sizeof(type),
					   CLASS "/%s/ports/%u/gid_attrs/types/%u", port->device,
					   port->port, i);

		if (ret == -ENOENT)
			return;
		/* A slot that is not in use cannot be read. */
		if (!ret && strcmp(port->roce, VERSION_2))
			memcpy(port->roce, type, sizeof(type));
	}
}

static unsigned int read_dscp(struct doctor *d, const struct doctor_port *port)
{
	char tos[32];

	doctor_read_line(d, tos, sizeof(tos), CONFIGURED "/%s/ports/%u/default_roce_tos",
			 port->device, port->port);
	return (strtoul(tos, NULL, 10) & 0xff) >> 2;
}

/* "priority 3,4" */
static const char *print_pfc(uint8_t pfc, char text[32])
{
	size_t len = 0;
	int i;

	for (i = 0; i < 8; i++)
		if (pfc & 1 << i)
			len += snprintf(text + len, 32 - len, "%s%d", len ? "," : "priority ", i);
	return text;
}

static void check_pfc(struct doctor *d, const struct doctor_port *port, unsigned int dscp)
{
	struct doctor_dcb dcb = {};
	char text[32], advice[DOCTOR_TEXT_MAX];
	const char *netdev = port->netdev;
	int ret = d->kernel->dcb(d, netdev, &dcb);

	if (ret)	/* Software devices have none. */
		return;
	if (!dcb.pfc) {
		doctor_advise(advice,
			      "see dcb pfc show dev %s and ethtool -a %s: is there none at the switch, either?",
			      netdev, netdev);
		doctor_add(d, CHECK, DOCTOR_NOTE, advice,
			   "%s has flow control (PFC) for no priority", netdev);
	} else if (dcb.has_dscp && !(dcb.pfc & 1 << dcb.priority[dscp])) {
		doctor_advise(advice,
			      "set default_roce_tos in %s/%s, or see dcb app show dev %s",
			      CONFIGURED, port->device, netdev);
		doctor_add(d, CHECK, DOCTOR_NOTE, advice,
			   "%s has flow control (PFC) for %s, and RDMA has DSCP %u, priority %u",
			   netdev, print_pfc(dcb.pfc, text), dscp, dcb.priority[dscp]);
	} else {
		doctor_add(d, CHECK, DOCTOR_OK, NULL, "%s has flow control (PFC) for %s", netdev,
			   print_pfc(dcb.pfc, text));
	}
}

static void check_port(struct doctor *d, struct doctor_port *port)
{
	unsigned int dscp = read_dscp(d, port), mtu = read_mtu(d, port->netdev);
	unsigned int size = packet_size(mtu);

	read_version(d, port);
	if (size < 256)
		doctor_add(d, CHECK, DOCTOR_WRONG, "set an MTU of 1500, or 4200 for large packets",
			   "the MTU of %s, %u, is too small for RoCE", port->netdev, mtu);
	else if (!strcmp(port->roce, VERSION_1))
		doctor_add(d, CHECK, DOCTOR_NOTE,
			   "see default_roce_mode in " CONFIGURED ", and the device's driver",
			   "%s port %u sends RoCE v1: no router passes it, and the other end needs it, too",
			   port->device, port->port);
	else
		doctor_add(d, CHECK, DOCTOR_OK, NULL,
			   "%s port %u sends %s with DSCP %u, in packets of %u octets (MTU %u)",
			   port->device, port->port, *port->roce ? port->roce : "RoCE", dscp,
			   size, mtu);
	check_pfc(d, port, dscp);
}

void doctor_fabric(struct doctor *d)
{
	size_t i;

	for (i = 0; i < d->port_count; i++) {
		struct doctor_port *port = &d->ports[i];

		/* TCP and the subnet manager find out by themselves what the way carries. */
		if (port->active && *port->netdev && !port->iwarp && !port->infiniband)
			check_port(d, port);
	}
	doctor_count(d);
}
