/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Netlink attributes, checked before use. A table of rules says what an
 * attribute is called, what type it has and what is nested in it. Attributes
 * without a rule are of a newer kernel and are skipped; one that breaks its rule
 * makes the whole message wrong.
 */
#ifndef RPCRDMA_ATTRS_H
#define RPCRDMA_ATTRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <libmnl/libmnl.h>
#include "json.h"

enum attr_type {
	ATTR_NONE,	/* no such attribute */
	ATTR_U16,
	ATTR_U32,
	ATTR_UINT,	/* four or eight octets */
	ATTR_FLAG,	/* no payload */
	ATTR_STRING,	/* ends with a NUL, has no other, and is printable */
	ATTR_NEST,	/* attributes by the rules of @nested */
	ATTR_LIST,	/* the same, and may be there several times */
	ATTR_SERIES,	/* ATTR_UINT, and may be there several times */
	ATTR_ARRAY,	/* a nest of such nests, whose numbers do not matter */
};

struct attr_rules;

/**
 * struct attr_rule - what one attribute must be
 * @name: in JSON, which is also its name in the family's specification
 * @type: of its payload
 * @words: names of the values of a number, up to one that is NULL; or NULL
 * @nested: rules of what is in it
 *
 * Constant data.
 */
struct attr_rule {
	const char *name;
	enum attr_type type;
	const char * const *words;
	const struct attr_rules *nested;
};

/**
 * struct attr_rules - the rules of one set of attributes
 * @count: number of rules
 * @rules: by the attributes' numbers
 */
struct attr_rules {
	unsigned int count;
	const struct attr_rule *rules;
};

#define ATTR_RULES(array) \
	{ .count = sizeof(array) / sizeof((array)[0]), .rules = (array) }

#define ATTRS_MAX	64	/* no set has more */

/**
 * struct attrs - attributes that fulfil their rules
 * @rules: these
 * @of: the attributes by number, NULL if absent; of several the first
 * @payload: all of them
 * @len: octets of @payload
 *
 * Its pointers go to the received message and die with it.
 */
struct attrs {
	const struct attr_rules *rules;
	const struct nlattr *of[ATTRS_MAX];
	const void *payload;
	size_t len;
};

/**
 * attrs_parse - check attributes, and all that are nested in them
 * @attrs: the result
 * @rules: that they must fulfil
 * @payload: untrusted, aligned to four octets
 * @len: octets of @payload
 *
 * Return: 0 or -EPROTO.
 */
int attrs_parse(struct attrs *attrs, const struct attr_rules *rules,
		const void *payload, size_t len);

/**
 * attrs_nested - the attributes in a nest; an absent nest has none
 */
struct attrs attrs_nested(const struct attrs *attrs, unsigned int number);

/**
 * attrs_each - go through the nests of an ATTR_LIST or ATTR_ARRAY
 * @number: of the attribute
 * @last: the one before, NULL at first; becomes the one found
 * @nest: the attributes in it
 *
 * Return: whether there is one more.
 */
bool attrs_each(const struct attrs *attrs, unsigned int number,
		const struct nlattr **last, struct attrs *nest);

/**
 * attr_has - whether an attribute, or a flag, is there
 */
static inline bool attr_has(const struct attrs *attrs, unsigned int number)
{
	return attrs->of[number];
}

/**
 * attr_number - the value of any type of number, 0 if it is absent
 */
uint64_t attr_number(const struct attrs *attrs, unsigned int number);

/**
 * attr_series - the values of an ATTR_SERIES
 * @values: room for them
 * @room: number of values that fit; those after them are left out
 *
 * Return: how many were stored.
 */
unsigned int attr_series(const struct attrs *attrs, unsigned int number,
			 uint64_t *values, unsigned int room);

/**
 * attr_string - the value of a string, "" if it is absent
 */
const char *attr_string(const struct attrs *attrs, unsigned int number);

/**
 * attr_word - the name of a number's value by the rule; "?" if it has none
 */
const char *attr_word(const struct attrs *attrs, unsigned int number);

/**
 * attrs_json - all attributes as an object, by the names in the rules
 */
json_t *attrs_json(const struct attrs *attrs);

#endif
