/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the parts of the peer share: script.c reads a script, peer.c has its
 * commands, message.c builds and compares messages, and connection.c has the
 * connections.
 */
#ifndef RPCRDMA_PEER_H
#define RPCRDMA_PEER_H

#include <infiniband/verbs.h>
#include <linux/types.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>

typedef __u8 u8;
typedef __u32 u32;
typedef __u64 u64;

#define MESSAGE_MAX	32768	/* octets */
#define PRIVATE_MAX	56	/* octets */
#define SLOTS		64	/* length of the queues */

/* Memory that the other end can reach. It is never freed. */
struct buffer {
	struct buffer *next;
	char *name;
	struct ibv_mr *mr;
};

/* A received message. It is in the queue, then the last one, then freed. */
struct message {
	struct message *next;
	size_t len;
	u8 data[];
};

/* A command of scripts */
struct command {
	const char *name;
	unsigned int words;	/* that it needs at least */
	void (*run)(char **words);
};

/* A Send or an RDMA Write, on the stack of the caller of post_work() */
struct work {
	enum ibv_wr_opcode opcode;
	u32 handle;		/* to be invalidated or written to */
	u64 address;		/* of an RDMA Write */
	const u8 *data;
	size_t len;
};

/* What commands set for later ones */
struct settings {
	u8 private_data[PRIVATE_MAX];
	size_t private_len;
	unsigned int receives;
	double timeout;	/* seconds */
};

extern struct settings settings;

/* All buffers, the queue of received messages, and the last one taken */
extern struct buffer *buffers;
extern struct message *first, *last;

/* script.c */
noreturn void fail(const char *format, ...);
void run_script(const struct command *commands);

/* message.c */
u32 parse_u32(const char *word);
struct buffer *buffer_find(const char *name);
size_t build_hex(const char *digits, u8 *to, size_t room);
size_t build(char **words, u8 *to);
bool matches(char **words, const u8 *data, size_t len);
void show(const char *what, const u8 *data, size_t len);

/* connection.c */
void open_channel(void);
void connect_to(struct sockaddr_in *addr);
void crowd(struct sockaddr_in *addr, unsigned int count);
void listen_at(struct sockaddr_in *addr);
void accept_request(void);
void await_connection(void);
void end_connection(void);
void post_work(const struct work *work);
struct ibv_mr *register_memory(void *memory, size_t len);
void take_message(void);

bool told_to_stop(void);
bool wait_until(bool (*condition)(void));
bool is_connected(void);
bool is_closed(void);
bool is_requested(void);
bool has_room(void);
bool all_completed(void);
bool has_message(void);

#endif /* RPCRDMA_PEER_H */
