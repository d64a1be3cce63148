/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * The netlink socket, the clock, and where /proc and /sys are: all that the program
 * hears from the kernel. The tests have their own instead, which reads what the kernel
 * says from a file.
 */
#ifndef RPCRDMA_SOCK_H
#define RPCRDMA_SOCK_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct sock;

/**
 * sock_open - a socket for generic netlink
 *
 * Return: NULL with errno on failure. sock_close() frees it.
 */
struct sock *sock_open(void);

void sock_close(struct sock *sock);

/**
 * sock_join - receive a multicast group's messages
 *
 * Return: 0 or a negative errno.
 */
int sock_join(struct sock *sock, uint32_t group);

/**
 * sock_send - send a message to the kernel
 *
 * Return: 0 or a negative errno.
 */
int sock_send(struct sock *sock, const void *message, size_t len);

/**
 * sock_receive - wait for a datagram of the kernel
 *
 * Return: its octets, 0 at the end of a test, or a negative errno.
 */
ssize_t sock_receive(struct sock *sock, void *buf, size_t size);

/**
 * sock_now - a clock that is never set back, in ns
 */
uint64_t sock_now(void);

/**
 * sock_sleep - wait until a time of sock_now()
 */
void sock_sleep(uint64_t until);

/**
 * sock_wall - the time of day, in seconds since 1970
 */
int64_t sock_wall(void);

/**
 * sock_root - what stands before the paths of files in /proc and /sys
 */
const char *sock_root(void);

#endif
