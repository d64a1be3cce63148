// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Build and compare messages. The words of a script that describe them are
 * listed in peer.c.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "peer.h"

/* The memory for the rest of a message that is being built */
struct out {
	u8 *next;
	size_t room;
};

static void put(struct out *out, const void *data, size_t len)
{
	if (len > out->room)
		fail("there is no space for so many octets");
	memcpy(out->next, data, len);
	out->next += len;
	out->room -= len;
}

static void put_word(struct out *out, u32 word)
{
	word = htonl(word);
	put(out, &word, sizeof(word));
}

static void put_address(struct out *out, u64 address)
{
	put_word(out, address >> 32);
	put_word(out, address);
}

/**
 * parse_u32 - convert a number
 * @word: its digits, in C's notation
 *
 * Return: the number. Ends the program if @word is not a number of 32 bits.
 */
u32 parse_u32(const char *word)
{
	char *rest;
	unsigned long long value;

	errno = 0;
	value = strtoull(word, &rest, 0);
	if (rest == word || *rest || errno || value > UINT32_MAX)
		fail("%s is not a number of 32 bits", word);
	return value;
}

static void put_hex(struct out *out, const char *digits)
{
	for (; *digits; digits += 2) {
		unsigned int octet;
		u8 byte;
		int used = 0;

		if (sscanf(digits, "%2x%n", &octet, &used) != 1 || used != 2)
			fail("%s is not a row of hexadecimal octets", digits);
		byte = octet;
		put(out, &byte, 1);
	}
}

static void put_string(struct out *out, const char *string)
{
	size_t len = strlen(string);

	put_word(out, len);
	put(out, string, len);
	put(out, "\0\0\0", -len & 3);
}

/**
 * buffer_find - find a buffer by its name
 * @name: the name
 *
 * Return: the buffer. Ends the program if there is none.
 */
struct buffer *buffer_find(const char *name)
{
	struct buffer *buffer;

	for (buffer = buffers; buffer; buffer = buffer->next)
		if (!strcmp(buffer->name, name))
			return buffer;
	fail("there is no buffer %s", name);
}

static void put_segment(struct out *out, const char *word)
{
	char name[16];
	unsigned int offset = 0, len;
	struct ibv_mr *mr;
	int used = 0;

	if (sscanf(word, "%15[a-z0-9]%n", name, &used) != 1)
		fail("@%s names no buffer", word);
	mr = buffer_find(name)->mr;
	len = mr->length;
	word += used;

	if (!strcmp(word, ".handle")) {
		put_word(out, mr->rkey);
	} else if (!strcmp(word, ".length")) {
		put_word(out, len);
	} else if (!strcmp(word, ".address")) {
		put_address(out, (uintptr_t)mr->addr);
	} else if (!*word || sscanf(word, "+%u,%u", &offset, &len) == 2) {
		put_word(out, mr->rkey);
		put_word(out, len);
		put_address(out, (uintptr_t)mr->addr + offset);
	} else {
		fail("%s is no part of a segment", word);
	}
}

static void put_received(struct out *out, const char *word)
{
	unsigned int from, to, len;
	u32 counted;
	char more = 0;
	int fields;

	fields = sscanf(word, "%u%c%u", &from, &more, &to);
	if (fields == 1)
		to = from;
	else if (fields < 1 || (more == '-' ? fields != 3 : more != '+'))
		fail("<%s is no part of a message", word);
	if (more == '+')
		to = from;
	if (!last || to < from || last->len / 4 <= to)
		fail("the last message has no <%s", word);
	len = (to - from + 1) * 4;
	if (more == '+') {
		memcpy(&counted, last->data + from * 4, sizeof(counted));
		counted = ntohl(counted);
		if (counted > last->len - from * 4 - 4)
			fail("the last message has no <%s", word);
		len = 4 + ((counted + 3) & ~3U);
	}
	put(out, last->data + from * 4, len);
}

static void put_token(struct out *out, const char *word)
{
	switch (*word) {
	case ':':
		put_hex(out, word + 1);
		break;
	case '/':
		put_string(out, word + 1);
		break;
	case '@':
		put_segment(out, word + 1);
		break;
	case '<':
		put_received(out, word + 1);
		break;
	default:
		put_word(out, parse_u32(word));
	}
}

/**
 * build_hex - convert hexadecimal digits to octets
 * @digits: two for each octet
 * @to: memory for the octets
 * @room: length of that memory
 *
 * Return: number of octets. Ends the program if they do not fit.
 */
size_t build_hex(const char *digits, u8 *to, size_t room)
{
	struct out out = { to, room };

	put_hex(&out, digits);
	return out.next - to;
}

/**
 * build - build a message
 * @words: its words in the script, up to a NULL
 * @to: memory for MESSAGE_MAX octets
 *
 * Return: length of the message. Ends the program if a word is wrong.
 */
size_t build(char **words, u8 *to)
{
	struct out out = { to, MESSAGE_MAX };

	for (; *words; words++)
		put_token(&out, *words);
	return out.next - to;
}

/* Octets of the XDR opaque at the start, which may be more than @len */
static size_t opaque_len(const u8 *data, size_t len)
{
	u32 counted;

	if (len < sizeof(counted))
		return sizeof(counted);
	memcpy(&counted, data, sizeof(counted));
	return sizeof(counted) + (((size_t)ntohl(counted) + 3) & ~(size_t)3);
}

/**
 * matches - compare octets with a pattern
 * @words: the words of the pattern in the script, up to a NULL
 * @data: the octets
 * @len: number of octets
 *
 * Return: true if all octets match.
 */
bool matches(char **words, const u8 *data, size_t len)
{
	u8 wanted[MESSAGE_MAX];

	for (; *words && strcmp(*words, "..."); words++) {
		struct out out = { wanted, sizeof(wanted) };
		size_t octets = 4;
		bool any = true;

		if (!strcmp(*words, ".+")) {
			octets = opaque_len(data, len);
		} else if (strcmp(*words, ".")) {
			put_token(&out, *words);
			octets = out.next - wanted;
			any = false;
		}
		if (octets > len || (!any && memcmp(data, wanted, octets)))
			return false;
		data += octets;
		len -= octets;
	}
	return *words || !len;
}

/**
 * show - print octets
 * @what: text to print before them
 * @data: the octets
 * @len: number of octets
 */
void show(const char *what, const u8 *data, size_t len)
{
	size_t i;

	fprintf(stderr, "%s %zu octets", what, len);
	for (i = 0; i < len && i < 256; i++)
		fprintf(stderr, "%s%02x", i % 4 ? "" : " ", data[i]);
	fprintf(stderr, "%s\n", i < len ? " ..." : "");
}
