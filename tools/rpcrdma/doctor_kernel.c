// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* What doctor asks the kernel for: routes and addresses. */

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <libmnl/libmnl.h>
#include <linux/dcbnl.h>
#include <linux/rtnetlink.h>

#include "doctor.h"

/* Addresses */

static void map_address(struct doctor_address *to, const void *from, size_t len)
{
	memset(to, 0, sizeof(*to));
	if (len == 4)
		memset(to->ip + 10, 0xff, 2);
	memcpy(to->ip + 16 - len, from, len);
}

bool doctor_address(const struct sockaddr *from, struct doctor_address *to)
{
	if (from && from->sa_family == AF_INET)
		map_address(to, &((const struct sockaddr_in *)from)->sin_addr, 4);
	else if (from && from->sa_family == AF_INET6)
		map_address(to, &((const struct sockaddr_in6 *)from)->sin6_addr, 16);
	else
		return false;
	return true;
}

static bool link_local(const struct doctor_address *address)
{
	return address->ip[0] == 0xfe && (address->ip[1] & 0xc0) == 0x80;
}

static int addresses(struct doctor *d,
		     void (*fn)(const char *netdev, const struct doctor_address *address,
				void *data), void *data)
{
	struct ifaddrs *list, *one;
	struct doctor_address address;

	if (getifaddrs(&list))
		return -errno;
	for (one = list; one; one = one->ifa_next)
		if (doctor_address(one->ifa_addr, &address) && !link_local(&address))
			fn(one->ifa_name, &address, data);
	freeifaddrs(list);
	return 0;
}

/* Rtnetlink, which answers at once */
static int ask(struct nlmsghdr *header, mnl_cb_t parse, void *data)
{
	struct mnl_socket *sock = mnl_socket_open(NETLINK_ROUTE);
	char buf[16384] __attribute__((aligned(4)));
	ssize_t got = -1;
	int ret = 0;

	if (!sock)
		return -errno;
	header->nlmsg_flags = NLM_F_REQUEST;
	header->nlmsg_seq = time(NULL);
	if (!mnl_socket_bind(sock, 0, MNL_SOCKET_AUTOPID) &&
	    mnl_socket_sendto(sock, header, header->nlmsg_len) >= 0)
		got = mnl_socket_recvfrom(sock, buf, sizeof(buf));
	if (got < 0 || mnl_cb_run(buf, got, header->nlmsg_seq, mnl_socket_get_portid(sock), parse,
				  data) < 0)
		ret = -errno;
	mnl_socket_close(sock);
	return ret;
}

/* Routes */

struct answer {
	struct doctor_route *route;
	bool local;	/* the address is one of this host's */
};

static int parse_route(const struct nlmsghdr *header, void *data)
{
	struct answer *answer = data;
	const struct rtmsg *message = mnl_nlmsg_get_payload(header);
	const struct nlattr *attr;

	if (header->nlmsg_type != RTM_NEWROUTE)
		return MNL_CB_OK;
	answer->local = message->rtm_type == RTN_LOCAL;
	mnl_attr_for_each(attr, header, sizeof(*message)) {
		size_t len = mnl_attr_get_payload_len(attr);

		if (mnl_attr_get_type(attr) == RTA_OIF && len == 4)
			if_indextoname(mnl_attr_get_u32(attr), answer->route->netdev);
		if (mnl_attr_get_type(attr) == RTA_PREFSRC && (len == 4 || len == 16))
			map_address(&answer->route->source, mnl_attr_get_payload(attr), len);
	}
	return MNL_CB_STOP;
}

static bool is_ipv4(const struct doctor_address *address)
{
	return IN6_IS_ADDR_V4MAPPED((const struct in6_addr *)address->ip);
}

static int ask_route(const struct doctor_address *to, struct answer *answer)
{
	char buf[256] __attribute__((aligned(4)));
	struct nlmsghdr *header = mnl_nlmsg_put_header(buf);
	struct rtmsg *message = mnl_nlmsg_put_extra_header(header, sizeof(*message));
	size_t len = is_ipv4(to) ? 4 : 16;

	header->nlmsg_type = RTM_GETROUTE;
	message->rtm_family = is_ipv4(to) ? AF_INET : AF_INET6;
	message->rtm_dst_len = len * 8;
	mnl_attr_put(header, RTA_DST, len, to->ip + 16 - len);
	return ask(header, parse_route, answer);
}

/* The interface that has an address of this host: rdma_cm takes that one's device. */
struct owner {
	const struct doctor_address *address;
	struct doctor_route *route;
};

static void owns(const char *netdev, const struct doctor_address *address, void *data)
{
	struct owner *owner = data;

	if (!memcmp(address, owner->address, sizeof(*address)))
		snprintf(owner->route->netdev, sizeof(owner->route->netdev), "%s", netdev);
}

static int route(struct doctor *d, const struct doctor_address *to, struct doctor_route *route)
{
	struct answer answer = { .route = route };
	struct owner owner = { .address = to, .route = route };
	int ret = ask_route(to, &answer);

	if (!ret && answer.local) {
		route->source = *to;
		addresses(d, owns, &owner);
	}
	return ret;
}

/* Data center bridging */

struct dcb_answer {
	struct doctor_dcb *dcb;
	bool has_pfc;
};

static int parse_app(const struct nlattr *attr, void *data)
{
	const struct dcb_app *app = mnl_attr_get_payload(attr);
	struct doctor_dcb *dcb = data;

	if (mnl_attr_get_payload_len(attr) < sizeof(*app) ||
	    app->selector != IEEE_8021QAZ_APP_SEL_DSCP ||
	    app->protocol >= sizeof(dcb->priority) || app->priority >= IEEE_8021QAZ_MAX_TCS)
		return MNL_CB_OK;
	dcb->has_dscp = true;
	dcb->priority[app->protocol] = app->priority;
	return MNL_CB_OK;
}

static int parse_ieee(const struct nlattr *attr, void *data)
{
	struct dcb_answer *answer = data;
	const uint8_t *octets = mnl_attr_get_payload(attr);

	/* There may be a flag beside the number. */
	switch (mnl_attr_get_type(attr)) {
	case DCB_ATTR_IEEE_PFC:
		answer->has_pfc = mnl_attr_get_payload_len(attr) >= sizeof(struct ieee_pfc);
		if (answer->has_pfc)
			answer->dcb->pfc = octets[offsetof(struct ieee_pfc, pfc_en)];
		break;
	case DCB_ATTR_IEEE_APP_TABLE:
		mnl_attr_parse_nested(attr, parse_app, answer->dcb);
		break;
	}
	return MNL_CB_OK;
}

static int parse_dcb(const struct nlmsghdr *header, void *data)
{
	const struct nlattr *attr;

	if (header->nlmsg_type != RTM_GETDCB)
		return MNL_CB_OK;
	mnl_attr_for_each(attr, header, sizeof(struct dcbmsg))
		if (mnl_attr_get_type(attr) == DCB_ATTR_IEEE)
			mnl_attr_parse_nested(attr, parse_ieee, data);
	return MNL_CB_STOP;
}

static int dcb(struct doctor *d, const char *netdev, struct doctor_dcb *dcb)
{
	char buf[256] __attribute__((aligned(4)));
	struct nlmsghdr *header = mnl_nlmsg_put_header(buf);
	struct dcbmsg *message = mnl_nlmsg_put_extra_header(header, sizeof(*message));
	struct dcb_answer answer = { .dcb = dcb };
	int ret;

	header->nlmsg_type = RTM_GETDCB;
	message->dcb_family = AF_UNSPEC;
	message->cmd = DCB_CMD_IEEE_GET;
	mnl_attr_put_strz(header, DCB_ATTR_IFNAME, netdev);
	ret = ask(header, parse_dcb, &answer);
	return ret || answer.has_pfc ? ret : -EOPNOTSUPP;
}

const struct doctor_kernel doctor_kernel = {
	.route = route,
	.addresses = addresses,
	.dcb = dcb,
	.limits = doctor_status_limits,
	.listeners = doctor_status_listeners,
	.connections = doctor_status_connections,
};
