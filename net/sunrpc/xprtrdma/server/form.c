// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Which chunks of a Call are read and to where, and which chunks its Reply is
 * written to (RFC 8166 sections 3.4 and 3.5).
 */
#include <linux/types.h>
#include <linux/nfs.h>
#include <linux/nfs3.h>
#include <linux/nfs4.h>
#include <linux/sunrpc/auth.h>
#include <linux/sunrpc/auth_gss.h>

#include "form.h"

/* Words of an RPC Call (RFC 5531 section 9) */
enum {
	SVCRDMA_CALL_PROGRAM = 3,
	SVCRDMA_CALL_VERSION,
	SVCRDMA_CALL_PROCEDURE,
	SVCRDMA_CALL_FLAVOR,
	SVCRDMA_CALL_CRED_LEN,
	SVCRDMA_CALL_CRED,
};

/*
 * Words of RPCSEC_GSS's credential (RFC 2203 section 5), and its length in octets
 * without the handle
 */
#define SVCRDMA_CALL_GSS_PROC		(SVCRDMA_CALL_CRED + 1)
#define SVCRDMA_CALL_GSS_SERVICE	(SVCRDMA_CALL_CRED + 3)
#define SVCRDMA_CALL_GSS_HANDLE_LEN	(SVCRDMA_CALL_CRED + 4)
#define SVCRDMA_CALL_GSS_LEN		20

/* Return: length of the RPC header in octets, or zero if @octets do not have it all. */
static u32 call_header_len(const __be32 *call, u32 octets)
{
	u32 words = octets / sizeof(__be32), at = SVCRDMA_CALL_CRED_LEN, len;
	unsigned int i;

	/* Credential and verifier */
	for (i = 0; i < 2; i++) {
		if (words <= at)
			return 0;
		len = be32_to_cpu(call[at]);
		if (len > RPC_MAX_AUTH_SIZE)
			return 0;
		at += 1 + XDR_QUADLEN(len) + 1;
	}
	at--;	/* The arguments have no flavor. */
	return words < at ? 0 : at * sizeof(__be32);
}

/* Whether a Call has a credential of RPCSEC_GSS. @call is its head, of @octets. */
bool svcrdma_call_gss(const __be32 *call, u32 octets)
{
	return octets >= SVCRDMA_CALL_CRED * sizeof(__be32) &&
	       call[SVCRDMA_CALL_FLAVOR] == cpu_to_be32(RPC_AUTH_GSS);
}

/* Return: true if the credential has all of its handle. */
static bool gss_whole(const __be32 *call)
{
	u32 cred_len = be32_to_cpu(call[SVCRDMA_CALL_CRED_LEN]);

	return cred_len >= SVCRDMA_CALL_GSS_LEN &&
	       be32_to_cpu(call[SVCRDMA_CALL_GSS_HANDLE_LEN]) <= cred_len - SVCRDMA_CALL_GSS_LEN;
}

/* Return: true if the arguments of a procedure follow the header unprotected. */
static bool gss_plain(const __be32 *call)
{
	return gss_whole(call) && call[SVCRDMA_CALL_GSS_PROC] == cpu_to_be32(RPC_GSS_PROC_DATA) &&
	       call[SVCRDMA_CALL_GSS_SERVICE] == cpu_to_be32(RPC_GSS_SVC_NONE);
}

/*
 * Other Calls have to look as from a byte stream, for which the code was written that decodes
 * protected arguments, and those of RPCSEC_GSS itself.
 *
 * Return: true if @octets have all of the RPC header, and the arguments follow
 * unprotected.
 */
static bool call_plain(const __be32 *call, u32 octets)
{
	return call_header_len(call, octets) &&
	       (!svcrdma_call_gss(call, octets) || gss_plain(call));
}

/**
 * svcrdma_call_truncated - whether RPCSEC_GSS might read past the end of a Call
 * @call: the head of the Call, as nfsd would get it
 * @octets: length of the head in octets
 *
 * RPCSEC_GSS of kernel 6.1 reads the word after the verifier without checking how
 * much is left, trusts the lengths in the header, and rounds them up in 32 bits.
 *
 * Return: true if nfsd must not get the Call.
 */
bool svcrdma_call_truncated(const __be32 *call, u32 octets)
{
	u32 len;

	if (!svcrdma_call_gss(call, octets))
		return false;
	len = call_header_len(call, octets);
	if (!len || !gss_whole(call))
		return true;
	/* RPC_GSS_PROC_DESTROY has no arguments. */
	if (gss_plain(call) || call[SVCRDMA_CALL_GSS_PROC] == cpu_to_be32(RPC_GSS_PROC_DESTROY))
		return false;
	return octets - len < sizeof(__be32) ||
	       be32_to_cpu(call[len / sizeof(__be32)]) > U32_MAX - 3;
}

/*
 * Return: true if the Call may have the data of a WRITE. nfsd decodes the arguments
 * of these procedures wherever they are cut. Those of others, for instance SYMLINK,
 * have to be where a byte stream has them.
 */
static bool call_writes(const __be32 *call)
{
	u32 version = be32_to_cpu(call[SVCRDMA_CALL_VERSION]);
	u32 procedure = be32_to_cpu(call[SVCRDMA_CALL_PROCEDURE]);

	if (call[SVCRDMA_CALL_PROGRAM] != cpu_to_be32(NFS_PROGRAM))
		return false;
	return (version == NFS4_VERSION && procedure == NFSPROC4_COMPOUND) ||
	       (version == NFS3_VERSION && procedure == NFS3PROC_WRITE);
}

/**
 * svcrdma_choose_args - choose where nfsd finds the arguments of a Call
 * @msg: transport header of the Call
 * @payload: the inline part of the Call, if it has one
 *
 * A Call that is all inline stays where it was received, unless it is longer than
 * a page and not plain (call_plain()). A single Read chunk for the data of a
 * WRITE goes to the start of a page, as nfsd wants it, and the inline part before
 * it stays. All other Calls are put together as if they had come over a byte
 * stream.
 *
 * Return: where.
 */
enum svcrdma_args svcrdma_choose_args(const struct rpcrdma_message *msg, const __be32 *payload)
{
	if (!svcrdma_pull_needed(msg))
		return msg->payload_len <= PAGE_SIZE || call_plain(payload, msg->payload_len) ?
		       SVCRDMA_ARGS_INLINE : SVCRDMA_ARGS_STREAM;
	if (msg->proc == RPCRDMA_MSG && msg->num_reads == 1 &&
	    call_plain(payload, msg->read[0].position) && call_writes(payload))
		return SVCRDMA_ARGS_WRITE;
	return SVCRDMA_ARGS_STREAM;
}

/* The arguments of svcrdma_args_walk() or svcrdma_reply_walk(), on their stack */
struct svcrdma_walk {
	const struct rpcrdma_message *msg;
	svcrdma_visit_fn visit;
	void *data;
	u32 from;	/* octets before this are left out */
	u32 base;	/* octet of the stream where the local memory begins; at most @from */
};

static int walk_piece(const struct svcrdma_walk *walk, struct svcrdma_piece piece)
{
	u32 before = walk->from > piece.at ? walk->from - piece.at : 0;

	if (before >= piece.octets)
		return 0;
	piece.at += before - walk->base;
	piece.skip += before;
	piece.octets -= before;
	return walk->visit(walk->data, &piece);
}

/* Visit @octets, from @skip on, of @chunk, which is long enough, or of the inline part if NULL. */
static int walk_octets(const struct svcrdma_walk *walk, u32 at,
		       const struct rpcrdma_chunk *chunk, u32 skip, u32 octets)
{
	struct svcrdma_piece piece = {
		.kind = chunk ? SVCRDMA_PIECE_CHUNK : SVCRDMA_PIECE_INLINE,
		.at = at,
		.octets = octets,
		.skip = skip,
	};
	int ret;

	if (!chunk)
		return walk_piece(walk, piece);
	for (piece.segment = rpcrdma_chunk_segments(walk->msg, chunk); octets; piece.segment++) {
		u32 length = piece.segment->length;

		if (skip >= length) {
			skip -= length;
			continue;
		}
		piece.skip = skip;
		piece.octets = min(length - skip, octets);
		ret = walk_piece(walk, piece);
		if (ret)
			return ret;
		piece.at += piece.octets;
		octets -= piece.octets;
		skip = 0;
	}
	return 0;
}

/* Visit a data item and its padding, which the chunk may lack. */
static int walk_item(const struct svcrdma_walk *walk, const struct rpcrdma_chunk *chunk)
{
	struct svcrdma_piece padding = {
		.kind = SVCRDMA_PIECE_PADDING,
		.at = chunk->position + chunk->length,
		.octets = xdr_pad_size(chunk->length),
	};

	return walk_octets(walk, chunk->position, chunk, 0, chunk->length) ?:
	       walk_piece(walk, padding);
}

/**
 * svcrdma_args_walk - visit the pieces of a Call that go to pages
 * @msg: transport header of the Call
 * @args: where nfsd finds the arguments, not SVCRDMA_ARGS_INLINE
 * @from: octets at the start that are left out; may end within a piece
 * @visit: called for each piece, in ascending order, without gaps
 * @data: passed to @visit
 *
 * Return: 0, or the first other value that @visit returned.
 */
int svcrdma_args_walk(const struct rpcrdma_message *msg, enum svcrdma_args args, u32 from,
		      svcrdma_visit_fn visit, void *data)
{
	u32 base = args == SVCRDMA_ARGS_WRITE ? msg->read[0].position : 0;
	const struct svcrdma_walk walk = { msg, visit, data, base + from, base };
	/* What is not in data items is inline or in the Position Zero Read chunk. */
	const struct rpcrdma_chunk *rest = rpcrdma_position_zero(msg);
	unsigned int i = rest ? 1 : 0;
	u32 at = 0, restored = 0;
	int ret;

	/* This walks over the whole stream; walk.from leaves out what precedes a WRITE's data. */
	for (; i < msg->num_reads; i++) {
		const struct rpcrdma_chunk *chunk = &msg->read[i];
		u32 length = xdr_align_size(chunk->length);

		ret = walk_octets(&walk, at, rest, at - restored, chunk->position - at);
		if (!ret)
			ret = walk_item(&walk, chunk);
		if (ret)
			return ret;
		restored += length;
		at = chunk->position + length;
	}
	return walk_octets(&walk, at, rest, at - restored, msg->stream_len - at);
}

static bool form_length_word_is(const struct xdr_buf *res, u32 at, u32 length)
{
	__be32 word;

	return !read_bytes_from_xdr_buf(res, at, &word, sizeof(word)) &&
	       be32_to_cpu(word) == length;
}

/*
 * An encoder may fail after it has noted a result, and cut off what it encoded. That of NFSv4's
 * READLINK notes the offset of the length word instead, which is corrected here.
 */
static bool form_result_valid(const struct xdr_buf *res, struct svcrdma_result *result, u32 end)
{
	if (result->offset < end + sizeof(__be32))
		return false;
	/* A length word is found inside @res only, so the offset is not beyond the end of @res. */
	if (!form_length_word_is(res, result->offset - sizeof(__be32), result->length)) {
		if (!form_length_word_is(res, result->offset, result->length))
			return false;
		result->offset += sizeof(__be32);
	}
	return result->length <= res->len - result->offset;
}

static void form_add_part(struct svcrdma_reply_form *form, u32 at, u32 end)
{
	struct svcrdma_part *part = &form->part[form->num_parts];

	if (at >= end)
		return;
	part->at = at;
	part->len = end - at;
	form->len += part->len;
	form->num_parts++;
}

/* Return: -EMSGSIZE, for the caller to return. */
static int form_too_short(struct svcrdma_reply_form *form,
			  const struct rpcrdma_chunk *chunk, u32 octets)
{
	form->short_chunk = chunk;
	form->needed = octets;
	return -EMSGSIZE;
}

/*
 * Results take the Write chunks in the order in which these were offered. An empty
 * Write chunk leaves its result inline (RFC 8166 section 4.3.2). The padding of a
 * result in a Write chunk is not sent.
 */
static int form_divide(struct svcrdma_reply_form *form, struct rpcrdma_message *msg,
		       struct svcrdma_results *results, const struct xdr_buf *res)
{
	unsigned int i, writes = 0;
	u32 end = 0;

	for (i = 0; i < results->count; i++) {
		struct svcrdma_result *result = &results->result[i];
		struct rpcrdma_chunk *chunk;

		result->chunk = NULL;
		if (writes == msg->num_writes || !form_result_valid(res, result, end))
			continue;
		chunk = &msg->write[writes++];
		if (!chunk->length)
			continue;
		if (rpcrdma_wire_return_chunk(chunk, result->length))
			return form_too_short(form, chunk, result->length);
		result->chunk = chunk;
		form->written += result->length;
		form_add_part(form, end, result->offset);
		end = result->offset + xdr_align_size(result->length);
	}
	form_add_part(form, end, res->len);
	return 0;
}

/**
 * svcrdma_reply_choose - choose the form of a Reply
 * @form: filled in
 * @msg: transport header of the Reply, with the chunks of the Call; becomes an
 *	RDMA_NOMSG if the Reply chunk is needed
 * @results: the data items; each gets its Write chunk
 * @res: the RPC message
 * @threshold: the Reply threshold in octets, for the version of the Call
 *
 * What does not go to Write chunks goes inline if it fits, otherwise to the Reply
 * chunk.
 *
 * Return: 0, or -EMSGSIZE if it fits into neither, or a result does not fit into
 * its Write chunk. Then only @form->short_chunk and @form->needed are valid.
 */
int svcrdma_reply_choose(struct svcrdma_reply_form *form, struct rpcrdma_message *msg,
			 struct svcrdma_results *results, const struct xdr_buf *res, u32 threshold)
{
	u32 header_len = rpcrdma_wire_header_len(msg);

	form->num_parts = 0;
	form->len = 0;
	form->written = 0;
	if (form_divide(form, msg, results, res))
		return -EMSGSIZE;
	if (header_len > threshold)
		return form_too_short(form, NULL, 0);
	if (form->len <= threshold - header_len)
		return 0;

	if (!msg->has_reply_chunk)
		return form_too_short(form, NULL, 0);
	if (rpcrdma_wire_return_chunk(&msg->reply_chunk, form->len))
		return form_too_short(form, &msg->reply_chunk, form->len);
	msg->proc = RPCRDMA_NOMSG;
	form->written += form->len;
	return 0;
}

/**
 * svcrdma_reply_walk - visit the pieces of a Reply that go by RDMA Write
 * @form: the form of the Reply
 * @msg: transport header of the Reply
 * @results: the data items
 * @visit: called for each piece, chunk by chunk
 * @data: passed to @visit
 *
 * Return: 0, or the first other value that @visit returned.
 */
int svcrdma_reply_walk(const struct svcrdma_reply_form *form, const struct rpcrdma_message *msg,
		       const struct svcrdma_results *results, svcrdma_visit_fn visit, void *data)
{
	struct svcrdma_walk walk = { .msg = msg, .visit = visit, .data = data };
	unsigned int i;
	u32 done = 0;
	int ret = 0;

	for (i = 0; i < results->count && !ret; i++) {
		const struct svcrdma_result *result = &results->result[i];

		if (result->chunk)
			ret = walk_octets(&walk, result->offset, result->chunk, 0, result->length);
	}
	if (msg->proc != RPCRDMA_NOMSG)
		return ret;
	for (i = 0; i < form->num_parts && !ret; i++) {
		ret = walk_octets(&walk, form->part[i].at, &msg->reply_chunk, done,
				  form->part[i].len);
		done += form->part[i].len;
	}
	return ret;
}
