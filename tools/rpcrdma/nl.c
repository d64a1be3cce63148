// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <errno.h>
#include <limits.h>
#include <linux/genetlink.h>
#include <linux/rpcrdma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "attrs.h"
#include "cmd.h"
#include "nl.h"
#include "sock.h"

#define BUFFER		32768	/* octets; the kernel's dumps have at most that */
#define GROUPS		8	/* more than the family has */
#define GROUP_NAME	16	/* GENL_NAMSIZ */

struct nl {
	struct sock *sock;
	uint16_t family;
	uint32_t seq;	/* of the last request */
	unsigned int groups;
	struct {
		char name[GROUP_NAME];
		uint32_t id;
	} group[GROUPS];
	/* Of the message that is being sent or received */
	uint8_t buf[BUFFER] __attribute__((aligned(8)));
};

static const struct attr_rule group_rule[] = {
	[CTRL_ATTR_MCAST_GRP_NAME] = { "name", ATTR_STRING },
	[CTRL_ATTR_MCAST_GRP_ID] = { "id", ATTR_U32 },
};

static const struct attr_rules group_rules = ATTR_RULES(group_rule);

/* What the controller says about a family, as far as it is used here */
static const struct attr_rule family_rule[] = {
	[CTRL_ATTR_FAMILY_ID] = { "id", ATTR_U16 },
	[CTRL_ATTR_MCAST_GROUPS] = { "groups", ATTR_ARRAY,
				     .nested = &group_rules },
};

static const struct attr_rules family_rules = ATTR_RULES(family_rule);

static struct nlmsghdr *request(struct nl *nl, uint16_t type, uint16_t flags,
				uint8_t cmd, uint8_t version)
{
	struct nlmsghdr *header = mnl_nlmsg_put_header(nl->buf);
	struct genlmsghdr *genl;

	header->nlmsg_type = type;
	header->nlmsg_flags = NLM_F_REQUEST | flags;
	header->nlmsg_seq = ++nl->seq;
	genl = mnl_nlmsg_put_extra_header(header, sizeof(*genl));
	genl->cmd = cmd;
	genl->version = version;
	return header;
}

/* The error in a message of type NLMSG_ERROR or NLMSG_DONE, 0 if it has none. */
static int error_of(const struct nlmsghdr *header)
{
	const int *error = mnl_nlmsg_get_payload(header);

	if (mnl_nlmsg_get_payload_len(header) < sizeof(*error))
		return header->nlmsg_type == NLMSG_DONE ? 0 : -EPROTO;
	return *error > 0 || *error < -4095 ? -EPROTO : *error;
}

/* libmnl alone takes a length of 2^31 or more for a negative one, which fits. */
static bool whole(const struct nlmsghdr *header, int len)
{
	return mnl_nlmsg_ok(header, len) && header->nlmsg_len <= INT_MAX;
}

/* Take one message of a type. Another type is none that was asked for. */
static int take(const struct nlmsghdr *header, uint16_t type, nl_message_fn *fn, void *data)
{
	const struct genlmsghdr *genl = mnl_nlmsg_get_payload(header);
	size_t len = mnl_nlmsg_get_payload_len(header);

	if (header->nlmsg_type != type || len < sizeof(*genl))
		return -EPROTO;
	return fn(genl->cmd, genl + 1, len - sizeof(*genl), data);
}

/* A message of the controller: the family may have gone, and its groups with it. */
static int controller_says(uint8_t cmd, const void *payload, size_t len, void *data)
{
	const struct nl *nl = data;
	struct attrs family;

	if (cmd != CTRL_CMD_DELFAMILY)
		return 0;
	if (attrs_parse(&family, &family_rules, payload, len))
		return -EPROTO;
	return attr_number(&family, CTRL_ATTR_FAMILY_ID) == nl->family ? -ENOENT : 0;
}

/*
 * Receive messages: what answers the last request, to its end, which is that of a dump or an
 * acknowledgment; or without end those of the groups.
 */
static int receive(struct nl *nl, bool answer, uint16_t type, nl_message_fn *fn, void *data)
{
	const struct nlmsghdr *header;
	bool changed = false;
	ssize_t got;
	int len, ret;

	for (;;) {
		got = sock_receive(nl->sock, nl->buf, sizeof(nl->buf));
		if (got <= 0)
			return got ?: answer ? -EPROTO : 0;
		len = got;
		for (header = (void *)nl->buf; whole(header, len);
		     header = mnl_nlmsg_next(header, &len)) {
			if (answer && header->nlmsg_seq != nl->seq)
				continue;	/* of an earlier request */
			changed |= header->nlmsg_flags & NLM_F_DUMP_INTR;
			if (answer && (header->nlmsg_type == NLMSG_ERROR ||
				       header->nlmsg_type == NLMSG_DONE))
				return error_of(header) ?: changed ? -EINTR : 0;
			if (!answer && header->nlmsg_type == GENL_ID_CTRL)
				ret = take(header, GENL_ID_CTRL, controller_says, nl);
			else
				ret = take(header, type, fn, data);
			if (ret)
				return ret;
		}
		if (len)
			return -EPROTO;
	}
}

static int family_got(uint8_t cmd, const void *payload, size_t len, void *data)
{
	struct nl *nl = data;
	struct attrs family, group;
	const struct nlattr *last = NULL;

	if (attrs_parse(&family, &family_rules, payload, len))
		return -EPROTO;
	nl->family = attr_number(&family, CTRL_ATTR_FAMILY_ID);
	nl->groups = 0;
	while (nl->groups < GROUPS && attrs_each(&family, CTRL_ATTR_MCAST_GROUPS, &last, &group)) {
		snprintf(nl->group[nl->groups].name, GROUP_NAME, "%s",
			 attr_string(&group, CTRL_ATTR_MCAST_GRP_NAME));
		nl->group[nl->groups++].id = attr_number(&group, CTRL_ATTR_MCAST_GRP_ID);
	}
	return nl->family < NLMSG_MIN_TYPE ? -EPROTO : 0;
}

static int resolve(struct nl *nl)
{
	struct nlmsghdr *header = request(nl, GENL_ID_CTRL, NLM_F_ACK, CTRL_CMD_GETFAMILY, 1);
	int ret;

	mnl_attr_put_strz(header, CTRL_ATTR_FAMILY_NAME, RPCRDMA_FAMILY_NAME);
	ret = sock_send(nl->sock, header, header->nlmsg_len) ?:
	      receive(nl, true, GENL_ID_CTRL, family_got, nl);
	if (!ret && !nl->family)
		return -EPROTO;
	return ret;
}

int nl_open(struct nl **result)
{
	struct nl *nl = calloc(1, sizeof(*nl));
	int ret;

	if (!nl)
		return -ENOMEM;
	nl->sock = sock_open();
	if (!nl->sock) {
		ret = -errno;
		free(nl);
		return ret;
	}
	/* First the controller's group, of the same number: the family may go once it is found. */
	ret = sock_join(nl->sock, GENL_ID_CTRL) ?: resolve(nl);
	if (ret) {
		nl_close(nl);
		return ret;
	}
	*result = nl;
	return 0;
}

struct nl *nl_find(void)
{
	struct nl *nl;
	int ret = nl_open(&nl);

	if (ret && ret != -ENOENT)
		die(STATUS_FAILED, "cannot ask the kernel: %s", strerror(-ret));
	return ret ? NULL : nl;
}

struct nl *nl_require(void)
{
	struct nl *nl = nl_find();

	if (!nl)
		die(STATUS_NO_FAMILY,
		    "no loaded module tells about its connections: run modprobe rpcrdma; if it is loaded, it is the kernel's own (rpcrdma doctor says which)");
	return nl;
}

void nl_close(struct nl *nl)
{
	sock_close(nl->sock);
	free(nl);
}

int nl_dump(struct nl *nl, uint8_t cmd, nl_message_fn *fn, void *data)
{
	struct nlmsghdr *header = request(nl, nl->family, NLM_F_DUMP, cmd, RPCRDMA_FAMILY_VERSION);

	return sock_send(nl->sock, header, header->nlmsg_len) ?:
	       receive(nl, true, nl->family, fn, data);
}

int nl_join(struct nl *nl, const char *group)
{
	unsigned int i;

	for (i = 0; i < nl->groups; i++)
		if (!strcmp(nl->group[i].name, group))
			return sock_join(nl->sock, nl->group[i].id);
	return -EPROTO;
}

int nl_listen(struct nl *nl, nl_message_fn *fn, void *data)
{
	return receive(nl, false, nl->family, fn, data);
}
