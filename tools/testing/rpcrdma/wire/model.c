// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A second reading of the rules, to compare the decoder with; see model.h.
 */
#include "model.h"

#define NO_ERROR	((enum rpcrdma_error)0)

/* An RPC message starts with its XID and msg_type. */
#define RPC_HEAD	8

static u32 word_at(const struct model *model, u32 index)
{
	const u8 *p = model->buf + index * 4;

	return (u32)p[0] << 24 | (u32)p[1] << 16 | (u32)p[2] << 8 | p[3];
}

/* Zero, which ends any list, after the end of the message. */
static u32 next(struct model *model)
{
	if (model->word >= model->len / 4) {
		model->cut_off = true;
		return 0;
	}
	return word_at(model, model->word++);
}

static u64 round_up(u64 octets)
{
	return (octets + 3) / 4 * 4;
}

/* The model_take...() return false if the message breaks a rule. */

static bool model_take_segment(struct model *model, struct model_chunk *chunk)
{
	u64 length, offset, last;

	next(model);
	length = next(model);
	offset = (u64)next(model) << 32;
	offset += next(model);
	chunk->count++;
	chunk->length += length;
	model->segments++;
	return !model->cut_off && model->segments <= RPCRDMA_MAX_SEGMENTS &&
	       chunk->length < 1ULL << 32 && !__builtin_add_overflow(offset, length, &last);
}

/* The Read chunk with this position, in ascending order, or NULL if there are too many */
static struct model_chunk *model_read_chunk(struct model *model, u32 position)
{
	u32 i = 0, last = model->reads;

	while (i < last && model->read[i].position < position)
		i++;
	if (i < last && model->read[i].position == position)
		return &model->read[i];
	if (last == RPCRDMA_MAX_CHUNKS)
		return NULL;
	for (; last > i; last--)
		model->read[last] = model->read[last - 1];
	model->reads++;
	model->read[i] = (struct model_chunk){ .position = position };
	return &model->read[i];
}

static bool model_take_reads(struct model *model)
{
	u32 present;

	model->read_list = model->word;
	while ((present = next(model)) == 1) {
		u32 position = next(model);
		struct model_chunk *chunk = model_read_chunk(model, position);

		if (position % 4 || !chunk || !model_take_segment(model, chunk))
			return false;
	}
	model->read_segments = model->segments;
	return !present && !model->cut_off;
}

static bool model_take_chunk(struct model *model, struct model_chunk *chunk)
{
	u32 count = next(model);

	*chunk = (struct model_chunk){ .word = model->word };
	for (; count; count--)
		if (!model_take_segment(model, chunk))
			return false;
	return !model->cut_off;
}

static bool model_take_lists(struct model *model)
{
	u32 present;

	if (!model_take_reads(model))
		return false;
	while ((present = next(model)) == 1) {
		if (model->writes == RPCRDMA_MAX_CHUNKS ||
		    !model_take_chunk(model, &model->write[model->writes++]))
			return false;
	}
	if (present)
		return false;
	present = next(model);
	model->has_reply = present;
	if (present > 1 || (present && !model_take_chunk(model, &model->reply)))
		return false;
	return !model->cut_off;
}

static bool model_take_direction(struct model *model)
{
	u32 direction = next(model);

	if (model->cut_off || direction > RPCRDMA_REPLY)
		return false;
	if (model->direction == RPCRDMA_DIRECTION_UNKNOWN)
		model->direction = direction;
	return model->direction == direction;
}

static bool model_take_inline(struct model *model)
{
	u32 xid;

	model->payload_len = model->len - model->header_len;
	model->stream_len = model->payload_len;
	if (model->payload_len < RPC_HEAD)
		return false;
	xid = next(model);
	return model_take_direction(model) && xid == word_at(model, 0);
}

/* The chunk that has the RPC message of an RDMA_NOMSG */
static bool model_take_long(struct model *model)
{
	const struct model_chunk *chunk = NULL;

	if (model->direction == RPCRDMA_DIRECTION_UNKNOWN && model->reads)
		model->direction = RPCRDMA_CALL;
	if (model->direction != RPCRDMA_CALL && model->has_reply)
		chunk = &model->reply;
	if (model->direction == RPCRDMA_CALL && model->reads && !model->read[0].position)
		chunk = &model->read[0];
	if (!chunk || chunk->length < RPC_HEAD)
		return false;
	if (model->direction == RPCRDMA_DIRECTION_UNKNOWN)
		model->direction = RPCRDMA_REPLY;
	model->stream_len = chunk->length;
	return true;
}

/*
 * Put each data item where it belongs, from the first to the last: what was before its position
 * comes from the reduced Payload stream, of which @left octets have not been used.
 */
static bool model_insert_reads(struct model *model)
{
	u64 left = model->stream_len, at = 0;
	u32 i;

	for (i = 0; i < model->reads; i++) {
		const struct model_chunk *chunk = &model->read[i];

		if (!chunk->position && model->proc == RPCRDMA_NOMSG)
			continue;
		if (chunk->position < RPC_HEAD || chunk->position < at ||
		    chunk->position > at + left)
			return false;
		left -= chunk->position - at;
		at = chunk->position + round_up(chunk->length);
	}
	model->stream_len = at + left;
	return model->stream_len < 1ULL << 32;
}

static bool model_take_message(struct model *model)
{
	if (model->version == RPCRDMA_VERSION_TWO) {
		if (!model_take_direction(model))
			return false;
		model->inv_handle = next(model);
	}
	if (!model_take_lists(model))
		return false;
	model->header_len = model->word * 4;
	if (!(model->proc == RPCRDMA_MSG ? model_take_inline(model) : model_take_long(model)))
		return false;
	return model->direction == RPCRDMA_CALL ? model_insert_reads(model) : !model->reads;
}

static bool model_take_option(struct model *model)
{
	u64 octets;

	if (!model_take_direction(model))
		return false;
	next(model);
	octets = next(model);
	return !model->cut_off && round_up(octets) <= (model->len / 4 - model->word) * 4ULL;
}

static bool model_take_error(struct model *model, u32 version_max)
{
	u32 error = next(model), processed;

	model->direction = RPCRDMA_REPLY;
	if (error == RPCRDMA_ERR_VERS) {
		next(model);
		next(model);
	} else if (model->version == RPCRDMA_VERSION_ONE) {
		if (error != 2)
			return false;
	} else if (model->version != RPCRDMA_VERSION_TWO || version_max < RPCRDMA_VERSION_TWO ||
		   error < RPCRDMA_ERR_BAD_XDR || error > RPCRDMA_ERR_INVAL_OPTION) {
		return false;
	} else if (error == RPCRDMA_ERR_CANT_REPLY) {
		processed = next(model);
		next(model);
		next(model);
		if (processed > 1)
			return false;
	}
	model->header_len = model->word * 4;
	return !model->cut_off;
}

/* Return: the error that answers a Call with this mistake, or none. */
static enum rpcrdma_error model_take_proc(struct model *model, u32 version_max)
{
	bool two = model->version == RPCRDMA_VERSION_TWO;

	if (model->proc == RPCRDMA_ERROR)
		return model_take_error(model, version_max) ? NO_ERROR : RPCRDMA_ERR_BAD_XDR;
	if (!model->version || model->version > version_max)
		return RPCRDMA_ERR_VERS;
	if (model->proc == RPCRDMA_MSG || model->proc == RPCRDMA_NOMSG)
		return model_take_message(model) ? NO_ERROR : RPCRDMA_ERR_BAD_XDR;
	if (two && model->proc == RPCRDMA_OPTIONAL)
		return model_take_option(model) ? RPCRDMA_ERR_INVAL_OPTION : RPCRDMA_ERR_BAD_XDR;
	model->ignored = !two && model->proc == RPCRDMA_DONE;
	return RPCRDMA_ERR_INVAL_PROC;
}

/* Read a message at an end that has the versions up to @version_max. */
void model_read(struct model *model, const void *buf, u32 len, u32 version_max)
{
	*model = (struct model){
		.buf = buf, .len = len, .direction = RPCRDMA_DIRECTION_UNKNOWN,
	};
	next(model);
	model->version = next(model);
	next(model);
	model->proc = next(model);
	if (model->cut_off || (len < RPCRDMA_MESSAGE_MIN && model->proc != RPCRDMA_ERROR))
		model->ignored = true;
	else
		model->error = model_take_proc(model, version_max);
}

/*
 * What one of the ends has to do with it. Only Calls are answered.
 * @error: set to what the answer says
 */
enum rpcrdma_verdict model_verdict(const struct model *model, enum rpcrdma_end end,
				   bool backward, enum rpcrdma_error *error)
{
	enum rpcrdma_direction forward = end == RPCRDMA_SERVER_END ? RPCRDMA_CALL : RPCRDMA_REPLY;
	enum rpcrdma_direction direction = model->direction;

	*error = model->error;
	if (model->ignored)
		return RPCRDMA_DROP;
	if (*error == RPCRDMA_ERR_VERS && (end == RPCRDMA_SERVER_END || backward))
		direction = RPCRDMA_CALL;
	/* A server offers no Reply chunk, so what looks like a Long Reply is none. */
	if (end == RPCRDMA_SERVER_END && direction == RPCRDMA_REPLY &&
	    model->proc == RPCRDMA_NOMSG) {
		if (!*error)
			*error = RPCRDMA_ERR_BAD_XDR;
		if (model->version == RPCRDMA_VERSION_ONE)
			direction = RPCRDMA_CALL;
	}
	if (direction == RPCRDMA_DIRECTION_UNKNOWN)
		direction = forward;
	if (direction != forward && !backward)
		return RPCRDMA_DROP;
	if (!*error)
		return RPCRDMA_USE;
	return direction == RPCRDMA_CALL ? RPCRDMA_ANSWER : RPCRDMA_DROP;
}

/* The words of the segment at @word are those of @segment. */
static bool same_segment(const struct model *model, u32 word,
			 const struct rpcrdma_segment *segment)
{
	return word_at(model, word) == segment->handle &&
	       word_at(model, word + 1) == segment->length &&
	       word_at(model, word + 2) == segment->offset >> 32 &&
	       word_at(model, word + 3) == (segment->offset & 0xffffffff);
}

static bool same_chunk(const struct model *model, const struct model_chunk *chunk,
		       const struct rpcrdma_message *msg, const struct rpcrdma_chunk *decoded)
{
	return decoded->position == chunk->position && decoded->length == chunk->length &&
	       decoded->count == chunk->count &&
	       decoded->written == (msg->direction == RPCRDMA_REPLY ? chunk->length : 0) &&
	       decoded->first + decoded->count <= model->segments;
}

static bool same_write(const struct model *model, const struct model_chunk *chunk,
		       const struct rpcrdma_message *msg, const struct rpcrdma_chunk *decoded)
{
	u32 i;

	if (!same_chunk(model, chunk, msg, decoded))
		return false;
	for (i = 0; i < chunk->count; i++)
		if (!same_segment(model, chunk->word + 4 * i, &msg->segment[decoded->first + i]))
			return false;
	return true;
}

/* The segments of each Read chunk are those with its position, in the order of the list. */
static bool same_reads(const struct model *model, const struct rpcrdma_message *msg)
{
	u32 seen[RPCRDMA_MAX_CHUNKS] = { 0 };
	u32 i, chunk, word = model->read_list;

	for (i = 0; i < model->reads; i++)
		if (!same_chunk(model, &model->read[i], msg, &msg->read[i]))
			return false;
	for (i = 0; i < model->read_segments; i++, word += 6) {
		for (chunk = 0; msg->read[chunk].position != word_at(model, word + 1);)
			chunk++;
		if (!same_segment(model, word + 2,
				  &msg->segment[msg->read[chunk].first + seen[chunk]++]))
			return false;
	}
	return true;
}

static bool same_writes(const struct model *model, const struct rpcrdma_message *msg)
{
	u32 i;

	for (i = 0; i < model->writes; i++)
		if (!same_write(model, &model->write[i], msg, &msg->write[i]))
			return false;
	return !model->has_reply || same_write(model, &model->reply, msg, &msg->reply_chunk);
}

/* Return: in what a decoded message that can be used differs from the model, or NULL. */
const char *model_differs(const struct model *model, const struct rpcrdma_message *msg)
{
	if (be32_to_cpu(msg->xid) != word_at(model, 0) || msg->version != model->version ||
	    msg->credits != word_at(model, 2) || msg->proc != model->proc ||
	    msg->direction != model->direction || msg->inv_handle != model->inv_handle)
		return "a fixed field is not that of the message";
	if (msg->header_len != model->header_len)
		return "the length of the header is not that of the message";
	if (model->proc == RPCRDMA_ERROR)
		return NULL;
	if (msg->payload_len != model->payload_len)
		return "the length of the inline payload is not that of the message";
	if (msg->stream_len != model->stream_len)
		return "the length of the stream is not what the message adds up to";
	if (msg->num_segments != model->segments || msg->num_reads != model->reads ||
	    msg->num_writes != model->writes || msg->has_reply_chunk != model->has_reply)
		return "other counts of chunks or segments than in the message";
	if (!same_reads(model, msg))
		return "other Read chunks than in the message";
	if (!same_writes(model, msg))
		return "another Write or Reply chunk than in the message";
	return NULL;
}
