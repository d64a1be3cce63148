// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Messages at each limit, and one above it. Nothing of the encoder is used: it cannot write
 * those that are above, and the fuzzer tests it.
 */
#include "limits.h"

#define XID		0x1badcafe
#define INV_HANDLE	0x0a000000
#define SEGMENTS	RPCRDMA_MAX_SEGMENTS
#define CHUNKS		RPCRDMA_MAX_CHUNKS
#define RPC_LEN		40		/* octets of an RPC Call without arguments */

/* @chunks with @segments each. The first has @length[0] octets, all others @length[1]. */
struct list {
	u32 chunks;
	u32 segments;
	u32 length[2];
	u64 offset;
};

/*
 * A Read chunk is at @position, and each other one @step octets after the one before. An
 * RDMA_MSG has RPC_LEN octets of payload, but for @rpc_less. @word is set to @value at last, if
 * it is not zero: in version 2 it is two words farther.
 */
struct limit {
	const char *name;
	u32 proc;
	u32 direction;
	u32 position, step;
	struct list read, write, reply;
	u32 rpc_less;
	u32 word, value;
};

#define MSG(name_, ...) \
	{ .name = name_, .proc = RPCRDMA_MSG, __VA_ARGS__ }
#define NOMSG(name_, ...) \
	{ .name = name_, .proc = RPCRDMA_NOMSG, __VA_ARGS__ }
#define OPTION(name_, octets) \
	{ .name = name_, .proc = RPCRDMA_OPTIONAL, .word = OPTION_LEN, .value = octets }
#define READ(at, step_, chunks, segments, first, others) \
	.position = at, .step = step_, .read = { chunks, segments, { first, others }, 0 }
#define WRITE(chunks, segments, first, others) \
	.write = { chunks, segments, { first, others }, 0 }
#define REPLY(segments, first, others) \
	.reply = { 1, segments, { first, others }, 0 }

/* The word of the first Write chunk's count in version 1, without a Read list */
#define WRITE_COUNT	6

/* That of the length of rdma_optinfo, and how many octets follow it */
#define OPTION_LEN	4
#define OPTION_OCTETS	8

static const struct limit limits[] = {
	MSG("read_segments", READ(RPC_LEN, 0, 1, SEGMENTS, 4096, 4096)),
	MSG("read_segments_above", READ(RPC_LEN, 0, 1, SEGMENTS + 1, 4096, 4096)),
	MSG("read_chunks", READ(RPC_LEN, 128, CHUNKS, SEGMENTS / CHUNKS, 8, 8)),
	MSG("read_chunks_above", READ(RPC_LEN, 8, CHUNKS + 1, 1, 8, 8)),
	MSG("write_segments", WRITE(1, SEGMENTS, 4096, 4096)),
	MSG("write_segments_above", WRITE(1, SEGMENTS + 1, 4096, 4096)),
	MSG("write_chunks", WRITE(CHUNKS, SEGMENTS / CHUNKS, 4096, 4096)),
	MSG("write_chunks_above", WRITE(CHUNKS + 1, 1, 4096, 4096)),
	MSG("empty_write_chunks", WRITE(CHUNKS, 0, 0, 0)),
	MSG("empty_write_chunks_above", WRITE(CHUNKS + 1, 0, 0, 0)),
	MSG("reply_segments", REPLY(SEGMENTS, 4096, 4096)),
	MSG("reply_segments_above", REPLY(SEGMENTS + 1, 4096, 4096)),
	MSG("long_reply_segments", REPLY(SEGMENTS, 4096, 4096), .direction = RPCRDMA_REPLY),
	MSG("all_segments", READ(RPC_LEN, 0, 1, 100, 8, 8), WRITE(4, 25, 8, 8),
	    REPLY(56, 8, 8)),
	MSG("all_segments_above", READ(RPC_LEN, 0, 1, 100, 8, 8), WRITE(4, 25, 8, 8),
	    REPLY(57, 8, 8)),
	MSG("read_write_segments_above", READ(RPC_LEN, 0, 1, 128, 8, 8), WRITE(3, 43, 8, 8)),
	MSG("all_chunks", READ(RPC_LEN, 8, CHUNKS, 1, 8, 8), WRITE(CHUNKS, 1, 8, 8),
	    REPLY(1, 8, 8)),
	MSG("segment_count_wraps", WRITE(1, 1, 8, 8), .word = WRITE_COUNT, .value = 0x40000001),
	MSG("segment_octets_wrap", WRITE(1, 1, 8, 8), .word = WRITE_COUNT, .value = 0x10000001),
	MSG("segment_count_most", WRITE(1, 1, 8, 8), .word = WRITE_COUNT, .value = U32_MAX),
	MSG("second_count_most", WRITE(2, 1, 8, 8), .word = WRITE_COUNT + 6, .value = U32_MAX),
	MSG("reply_count_most", REPLY(1, 8, 8), .word = WRITE_COUNT + 1, .value = U32_MAX),

	MSG("write_length", WRITE(1, 2, 0x80000000, 0x7fffffff)),
	MSG("write_length_above", WRITE(1, 2, 0x80000000, 0x80000000)),
	MSG("one_write_length", WRITE(1, 1, U32_MAX, 0)),
	MSG("reply_length", REPLY(2, 0x80000000, 0x7fffffff)),
	MSG("reply_length_above", REPLY(2, 0x80000000, 0x80000000)),
	MSG("length_for_each_chunk", WRITE(CHUNKS, 1, U32_MAX, U32_MAX)),
	NOMSG("long_call_length", READ(0, 0, 1, 2, 0x80000000, 0x7fffffff)),
	NOMSG("long_call_length_above", READ(0, 0, 1, 2, 0x80000000, 0x80000000)),
	NOMSG("long_call", READ(0, 0, 1, 1, 8, 0)),
	NOMSG("long_call_below", READ(0, 0, 1, 1, 7, 0)),
	NOMSG("long_reply", REPLY(1, 8, 0), .direction = RPCRDMA_REPLY),
	NOMSG("long_reply_below", REPLY(1, 7, 0), .direction = RPCRDMA_REPLY),
	NOMSG("long_reply_length", REPLY(2, 0x80000000, 0x7fffffff),
	      .direction = RPCRDMA_REPLY),

	MSG("one_read_stream", READ(RPC_LEN, 0, 1, 1, U32_MAX - RPC_LEN - 3, 0)),
	MSG("one_read_stream_above", READ(RPC_LEN, 0, 1, 1, U32_MAX - RPC_LEN - 2, 0)),
	MSG("one_read_length", READ(RPC_LEN, 0, 1, 1, U32_MAX, 0)),
	MSG("read_stream", READ(RPC_LEN, 0, 1, 2, U32_MAX - RPC_LEN - 4, 1)),
	MSG("read_stream_above", READ(RPC_LEN, 0, 1, 2, U32_MAX - RPC_LEN - 3, 1)),
	MSG("read_length_above", READ(RPC_LEN, 0, 1, 2, U32_MAX, 1)),
	MSG("two_reads_stream",
	    READ(RPC_LEN, 0x80000000, 2, 1, 0x80000000, 0x7ffffffc - RPC_LEN)),
	MSG("two_reads_stream_above",
	    READ(RPC_LEN, 0x80000000, 2, 1, 0x80000000, 0x7ffffffd - RPC_LEN)),
	MSG("two_reads_stream_wraps", READ(RPC_LEN, 0x80000000, 2, 1, 0x80000000, 0x80000000)),
	NOMSG("long_call_stream", READ(0, 8, 2, 1, 8, U32_MAX - 11)),
	NOMSG("long_call_stream_above", READ(0, 8, 2, 1, 8, U32_MAX - 10)),

	MSG("position", READ(8, 0, 1, 1, 8, 0)),
	MSG("position_below", READ(4, 0, 1, 1, 8, 0)),
	MSG("positions_below", READ(4, 12, 2, 1, 8, 8)),
	MSG("position_zero", READ(0, 0, 1, 1, 8, 0)),
	MSG("position_above", READ(RPC_LEN + 4, 0, 1, 1, 8, 0)),
	MSG("position_odd", READ(RPC_LEN - 2, 0, 1, 1, 8, 0)),
	MSG("position_most", READ(U32_MAX - 3, 0, 1, 1, 8, 0)),
	MSG("positions", READ(RPC_LEN, 8, 2, 1, 5, 8)),
	MSG("positions_above", READ(RPC_LEN, 12, 2, 1, 5, 8)),
	MSG("positions_overlap", READ(RPC_LEN, 4, 2, 1, 5, 8)),
	MSG("positions_overlap_wraps", READ(8, 8, 2, 1, U32_MAX - 7, 8)),
	NOMSG("long_call_position", READ(0, 100, 2, 1, 100, 8)),
	NOMSG("long_call_position_above", READ(0, 104, 2, 1, 100, 8)),
	NOMSG("long_call_position_below", READ(0, 4, 2, 1, 100, 8)),

	MSG("write_offset", .write = { 1, 2, { 16, 16 }, U64_MAX - 16 }),
	MSG("write_offset_above", .write = { 1, 2, { 16, 17 }, U64_MAX - 16 }),
	MSG("one_write_offset_above", .write = { 1, 1, { 17, 0 }, U64_MAX - 16 }),
	MSG("read_offset", .position = 8, .read = { 1, 1, { 16, 0 }, U64_MAX - 16 }),
	MSG("read_offset_above", .position = 8, .read = { 1, 1, { 17, 0 }, U64_MAX - 16 }),
	MSG("reply_offset_above", .reply = { 1, 1, { 17, 0 }, U64_MAX - 16 }),

	MSG("write_first_empty", WRITE(1, 2, 0, 8)),
	MSG("reply_first_empty", REPLY(2, 0, 8)),
	MSG("read_first_empty", READ(8, 0, 1, 2, 0, 8)),
	MSG("read_all_empty", READ(8, 0, 1, 2, 0, 0)),

	MSG("rpc", .rpc_less = RPC_LEN - 8),
	MSG("rpc_below", .rpc_less = RPC_LEN - 4),
	MSG("one_write_rpc_below", WRITE(1, 1, 8, 8), .rpc_less = RPC_LEN - 4),
	MSG("one_read_rpc", READ(8, 0, 1, 1, 8, 8), .rpc_less = RPC_LEN - 8),
	MSG("one_read_rpc_below", READ(8, 0, 1, 1, 8, 8), .rpc_less = RPC_LEN - 4),
	MSG("one_write_and_reply", WRITE(1, 1, 8, 8), REPLY(1, 8, 8)),
	MSG("one_read_and_reply", READ(8, 0, 1, 1, 8, 8), REPLY(1, 8, 8)),
	MSG("one_read_and_write", READ(8, 0, 1, 1, 8, 8), WRITE(1, 1, 8, 8)),

	MSG("read_list_2", .word = 4, .value = 2),
	MSG("write_list_2", .word = 5, .value = 2),
	MSG("reply_chunk_2", .word = 6, .value = 2),
	MSG("one_read_read_list_2", READ(8, 0, 1, 1, 8, 8), .word = 10, .value = 2),
	MSG("one_read_write_list_2", READ(8, 0, 1, 1, 8, 8), .word = 11, .value = 2),
	MSG("one_read_reply_chunk_2", READ(8, 0, 1, 1, 8, 8), .word = 12, .value = 2),
	MSG("one_write_write_list_2", WRITE(1, 1, 8, 8), .word = 11, .value = 2),
	MSG("one_write_reply_chunk_2", WRITE(1, 1, 8, 8), .word = 12, .value = 2),
	MSG("read_in_reply", READ(RPC_LEN, 0, 1, 1, 8, 8), .direction = RPCRDMA_REPLY),

	OPTION("option", OPTION_OCTETS),
	OPTION("option_above", OPTION_OCTETS + 1),
	OPTION("option_padding", OPTION_OCTETS - 3),
	OPTION("option_wraps", U32_MAX - 2),
	OPTION("option_most", U32_MAX),
	{}
};

static void put(struct limits_message *message, u32 word)
{
	message->word[message->words++] = cpu_to_be32(word);
}

static void put_segment(struct limits_message *message, const struct list *list, u32 index)
{
	put(message, INV_HANDLE + index);
	put(message, list->length[!!index]);
	put(message, list->offset >> 32);
	put(message, list->offset);
}

static void put_reads(struct limits_message *message, const struct limit *limit)
{
	const struct list *list = &limit->read;
	u32 i;

	for (i = 0; i < list->chunks * list->segments; i++) {
		put(message, 1);
		put(message, limit->position + i / list->segments * limit->step);
		put_segment(message, list, i);
	}
	put(message, 0);
}

static void put_chunks(struct limits_message *message, const struct list *list)
{
	u32 i, j;

	for (i = 0; i < list->chunks; i++) {
		put(message, 1);
		put(message, list->segments);
		for (j = 0; j < list->segments; j++)
			put_segment(message, list, i + j);
	}
}

static void put_lists(struct limits_message *message, const struct limit *limit)
{
	put_reads(message, limit);
	put_chunks(message, &limit->write);
	put(message, 0);
	put_chunks(message, &limit->reply);
	if (!limit->reply.chunks)
		put(message, 0);
}

static void put_payload(struct limits_message *message, const struct limit *limit)
{
	u32 octets;

	for (octets = 0; octets < RPC_LEN - limit->rpc_less; octets += 4)
		put(message, !octets ? XID : octets == 4 ? limit->direction : 0);
}

static void put_option(struct limits_message *message)
{
	u32 octets;

	put(message, 0);
	for (octets = 0; octets < OPTION_OCTETS; octets += 4)
		put(message, 0);
}

/**
 * limits_write - write one of the messages
 * @message: filled in
 * @index: which
 * @version: of the message
 * @name: set to its name
 *
 * Return: false if there are no more.
 */
bool limits_write(struct limits_message *message, unsigned int index, u32 version,
		  const char **name)
{
	const struct limit *limit = &limits[index];
	bool two = version == RPCRDMA_VERSION_TWO;

	*name = limit->name;
	if (!limit->name)
		return false;
	message->words = 0;
	put(message, XID);
	put(message, version);
	put(message, 32);
	put(message, limit->proc);
	if (two) {
		put(message, limit->direction);
		put(message, INV_HANDLE);
	}
	if (limit->proc == RPCRDMA_OPTIONAL)
		put_option(message);
	else
		put_lists(message, limit);
	if (limit->proc == RPCRDMA_MSG)
		put_payload(message, limit);
	if (limit->word)
		message->word[limit->word + 2 * two] = cpu_to_be32(limit->value);
	return true;
}
