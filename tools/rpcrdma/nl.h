/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Generic netlink with the family rpcrdma: requests, dumps and events. What
 * comes back is not trusted: a message gets to the caller only when its headers
 * are right, and attrs_parse() checks each attribute by a table of rules.
 */
#ifndef RPCRDMA_NL_H
#define RPCRDMA_NL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <libmnl/libmnl.h>

/* A socket of the family. Its opener closes it by nl_close(). */
struct nl;

/**
 * nl_open - find the family
 * @nl: the result
 *
 * Return: 0; -ENOENT if no loaded module has the family; -EPROTO if the kernel's
 * answer makes no sense; or another negative errno.
 */
int nl_open(struct nl **nl);

/**
 * nl_find - the same; the program ends if the kernel cannot be asked
 *
 * Return: NULL if no loaded module has the family.
 */
struct nl *nl_find(void);

/**
 * nl_require - the same, or end the program with a line that says what to do
 */
struct nl *nl_require(void);

void nl_close(struct nl *nl);

/**
 * typedef nl_message_fn - takes one message of the family
 * @cmd: of its generic netlink header
 * @payload: its attributes
 * @len: octets of them
 * @data: of the caller
 *
 * Return: 0, or a negative errno to stop, which the caller gets.
 */
typedef int nl_message_fn(uint8_t cmd, const void *payload, size_t len, void *data);

/**
 * nl_dump - ask for all objects of a kind
 * @cmd: the request
 * @fn: called for each object
 * @data: for @fn
 *
 * Return: 0, a negative errno of the kernel or of @fn, or -EPROTO.
 */
int nl_dump(struct nl *nl, uint8_t cmd, nl_message_fn *fn, void *data);

/**
 * nl_join - receive the messages of a multicast group
 * @group: its name
 *
 * Return: 0, -EPROTO if the family has no such group, or another negative errno.
 */
int nl_join(struct nl *nl, const char *group);

/**
 * nl_listen - wait for messages of the groups
 * @fn: called for each message
 * @data: for @fn
 *
 * Return: when @fn or receiving fails, with a negative errno. -ENOBUFS: some
 * messages are lost, and listening may go on. -ENOENT: the module was unloaded.
 */
int nl_listen(struct nl *nl, nl_message_fn *fn, void *data);

#endif
