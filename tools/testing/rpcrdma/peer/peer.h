/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the parts of the peer share: script.c reads a script, peer.c does what it
 * says, message.c makes messages and patterns of its words.
 */
#ifndef RPCRDMA_PEER_H
#define RPCRDMA_PEER_H

#include <infiniband/verbs.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>

typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;

#define MESSAGE_MAX	32768

/* Memory of our own that others reach, until the end */
struct buffer {
	struct buffer *next;
	char *name;
	struct ibv_mr *mr;
};

/* A received message; in a queue, then the last one, then freed */
struct message {
	struct message *next;
	size_t len;
	u8 data[];
};

/* What a line of a script may begin with */
struct command {
	const char *name;
	unsigned int words;	/* at least as many */
	void (*run)(char **words);
};

/* All that there are, and the message that was received last, or NULL */
extern struct buffer *buffers;
extern struct message *last;

noreturn void fail(const char *format, ...);
void run_script(const struct command *commands);

u32 parse_u32(const char *word);
struct buffer *buffer_find(const char *name);
size_t build_hex(const char *digits, u8 *to, size_t room);
size_t build(char **words, u8 *to);
bool matches(char **words, const u8 *data, size_t len);
void show(const char *what, const u8 *data, size_t len);

#endif /* RPCRDMA_PEER_H */
