// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netlink.h>
#include <stdlib.h>
#include <time.h>
#include "sock.h"

#define SECOND	1000000000u	/* ns */

struct sock {
	struct mnl_socket *mnl;
};

struct sock *sock_open(void)
{
	struct sock *sock = malloc(sizeof(*sock));

	if (!sock)
		return NULL;
	sock->mnl = mnl_socket_open2(NETLINK_GENERIC, SOCK_CLOEXEC);
	if (!sock->mnl)
		goto out;
	if (mnl_socket_bind(sock->mnl, 0, MNL_SOCKET_AUTOPID) < 0)
		goto out_close;
	return sock;

out_close:
	mnl_socket_close(sock->mnl);
out:
	free(sock);
	return NULL;
}

void sock_close(struct sock *sock)
{
	mnl_socket_close(sock->mnl);
	free(sock);
}

int sock_join(struct sock *sock, uint32_t group)
{
	return mnl_socket_setsockopt(sock->mnl, NETLINK_ADD_MEMBERSHIP, &group,
				     sizeof(group)) < 0 ? -errno : 0;
}

int sock_send(struct sock *sock, const void *message, size_t len)
{
	return mnl_socket_sendto(sock->mnl, message, len) < 0 ? -errno : 0;
}

/* libmnl reports a datagram that is longer than the buffer as ENOSPC. */
ssize_t sock_receive(struct sock *sock, void *buf, size_t size)
{
	ssize_t len;

	do {
		len = mnl_socket_recvfrom(sock->mnl, buf, size);
	} while (len < 0 && errno == EINTR);
	return len < 0 ? -errno : len;
}

uint64_t sock_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND + now.tv_nsec;
}

void sock_sleep(uint64_t until)
{
	struct timespec time = {
		.tv_sec = until / SECOND,
		.tv_nsec = until % SECOND,
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
		;
}

int64_t sock_wall(void)
{
	return time(NULL);
}

const char *sock_root(void)
{
	return "";
}
