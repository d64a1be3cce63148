// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A kernel that says what a file has, in place of sock.c. The file is named by
 * CANNED in the environment; the fuzzer sets canned_data instead. It is a
 * sequence of datagrams, each after its length in 32 bits of the host's order.
 * A length with the highest bit set is a negative errno instead. Messages with a
 * sequence number of zero get that of the last request. Time passes only by
 * sleeping. ROOT names the folder with /proc and /sys.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/netlink.h>
#include "../sock.h"
#include "canned.h"

#define MORNING	1790236800	/* some day, 08:00 UTC */

const uint8_t *canned_data;
size_t canned_len;

struct sock {
	uint32_t seq;	/* of the last request */
};

static uint64_t now;

static void read_file(void)
{
	static uint8_t data[1 << 20];
	const char *name = getenv("CANNED");
	FILE *file = name ? fopen(name, "r") : NULL;

	if (!file)
		return;
	canned_data = data;
	canned_len = fread(data, 1, sizeof(data), file);
	fclose(file);
}

struct sock *sock_open(void)
{
	if (!canned_data)
		read_file();
	return calloc(1, sizeof(struct sock));
}

void sock_close(struct sock *sock)
{
	free(sock);
}

int sock_join(struct sock *sock, uint32_t group)
{
	return group ? 0 : -EINVAL;
}

int sock_send(struct sock *sock, const void *message, size_t len)
{
	const struct nlmsghdr *header = message;

	sock->seq = header->nlmsg_seq;
	return 0;
}

static void set_seq(uint8_t *buf, size_t len, uint32_t seq)
{
	struct nlmsghdr header;

	while (len >= sizeof(header)) {
		memcpy(&header, buf, sizeof(header));
		if (header.nlmsg_len < sizeof(header) || header.nlmsg_len > len)
			return;
		if (!header.nlmsg_seq)
			header.nlmsg_seq = seq;
		memcpy(buf, &header, sizeof(header));
		if (NLMSG_ALIGN(header.nlmsg_len) >= len)
			return;
		buf += NLMSG_ALIGN(header.nlmsg_len);
		len -= NLMSG_ALIGN(header.nlmsg_len);
	}
}

ssize_t sock_receive(struct sock *sock, void *buf, size_t size)
{
	int32_t len;

	if (canned_len < sizeof(len))
		return 0;
	memcpy(&len, canned_data, sizeof(len));
	canned_data += sizeof(len);
	canned_len -= sizeof(len);
	if (len < 0)
		return len > -4096 ? len : -EIO;
	if ((size_t)len > canned_len)
		len = canned_len;
	if ((size_t)len > size)
		return -ENOSPC;
	memcpy(buf, canned_data, len);
	canned_data += len;
	canned_len -= len;
	set_seq(buf, len, sock->seq);
	return len;
}

uint64_t sock_now(void)
{
	return now;
}

void sock_sleep(uint64_t until)
{
	now = until;
}

int64_t sock_wall(void)
{
	return MORNING + now / 1000000000;
}

const char *sock_root(void)
{
	return getenv("ROOT") ?: "/nonexistent";
}
