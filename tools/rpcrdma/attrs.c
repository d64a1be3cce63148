// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <errno.h>
#include <string.h>
#include "attrs.h"

/*
 * Go through attributes. It ends before one whose length is wrong, so the
 * caller looks at what is left: 0 if all were right.
 */
#define for_each_attr(attr, left, payload, len)				\
	for ((attr) = (payload), (left) = (len);			\
	     mnl_attr_ok(attr, left);					\
	     (left) -= step(attr, left), (attr) = mnl_attr_next(attr))

/* The last attribute's padding may be missing. */
static int step(const struct nlattr *attr, int left)
{
	int len = MNL_ALIGN(attr->nla_len);

	return len < left ? len : left;
}

static const struct attr_rule *rule_of(const struct attr_rules *rules, unsigned int number)
{
	static const struct attr_rule none = { .type = ATTR_NONE };

	return number < rules->count && number < ATTRS_MAX ? &rules->rules[number] : &none;
}

static bool printable(const char *text, size_t len)
{
	size_t i;

	if (!len || text[len - 1])
		return false;
	for (i = 0; i < len - 1; i++)
		if (text[i] < ' ' || text[i] > '~')
			return false;
	return true;
}

static bool nests_right(const struct attr_rules *rules, const struct nlattr *array)
{
	const struct nlattr *attr;
	struct attrs nest;
	int left;

	for_each_attr(attr, left, mnl_attr_get_payload(array), mnl_attr_get_payload_len(array))
		if (attrs_parse(&nest, rules, mnl_attr_get_payload(attr),
				mnl_attr_get_payload_len(attr)))
			return false;
	return !left;
}

static bool right(const struct attr_rule *rule, const struct nlattr *attr)
{
	const void *value = mnl_attr_get_payload(attr);
	size_t len = mnl_attr_get_payload_len(attr);
	struct attrs nest;

	switch (rule->type) {
	case ATTR_U16:
		return len == 2;
	case ATTR_U32:
		return len == 4;
	case ATTR_UINT:
	case ATTR_SERIES:
		return len == 4 || len == 8;
	case ATTR_FLAG:
		return !len;
	case ATTR_STRING:
		return printable(value, len);
	case ATTR_NEST:
	case ATTR_LIST:
		return !attrs_parse(&nest, rule->nested, value, len);
	case ATTR_ARRAY:
		return nests_right(rule->nested, attr);
	case ATTR_NONE:
		break;
	}
	return true;
}

int attrs_parse(struct attrs *attrs, const struct attr_rules *rules,
		const void *payload, size_t len)
{
	const struct attr_rule *rule;
	const struct nlattr *attr;
	unsigned int number;
	int left;

	*attrs = (struct attrs) {
		.rules = rules, .payload = payload, .len = len,
	};
	for_each_attr(attr, left, payload, len) {
		number = mnl_attr_get_type(attr);
		rule = rule_of(rules, number);
		if (!right(rule, attr))
			return -EPROTO;
		if (rule->type == ATTR_NONE)
			continue;
		if (!attrs->of[number])
			attrs->of[number] = attr;
		else if (rule->type != ATTR_LIST && rule->type != ATTR_SERIES)
			return -EPROTO;
	}
	return left ? -EPROTO : 0;
}

/* What is in an attribute that attrs_parse() has checked */
static struct attrs inside(const struct attr_rules *rules, const struct nlattr *attr)
{
	struct attrs nest;

	attrs_parse(&nest, rules, mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr));
	return nest;
}

struct attrs attrs_nested(const struct attrs *attrs, unsigned int number)
{
	const struct attr_rules *rules = rule_of(attrs->rules, number)->nested;

	if (!attrs->of[number])
		return (struct attrs) { .rules = rules };
	return inside(rules, attrs->of[number]);
}

bool attrs_each(const struct attrs *attrs, unsigned int number,
		const struct nlattr **last, struct attrs *nest)
{
	const struct attr_rule *rule = rule_of(attrs->rules, number);
	const struct nlattr *attr = attrs->of[number];
	const void *payload = attrs->payload;
	size_t len = attrs->len;
	bool found = !*last;
	int left;

	if (!attr)
		return false;
	if (rule->type == ATTR_ARRAY) {
		payload = mnl_attr_get_payload(attr);
		len = mnl_attr_get_payload_len(attr);
	}
	for_each_attr(attr, left, payload, len) {
		if (rule->type == ATTR_LIST && mnl_attr_get_type(attr) != number)
			continue;
		if (found) {
			*last = attr;
			*nest = inside(rule->nested, attr);
			return true;
		}
		found = attr == *last;
	}
	return false;
}

static uint64_t number_in(const struct nlattr *attr)
{
	uint64_t u64;

	switch (mnl_attr_get_payload_len(attr)) {
	case 2:
		return mnl_attr_get_u16(attr);
	case 4:
		return mnl_attr_get_u32(attr);
	case 8:
		memcpy(&u64, mnl_attr_get_payload(attr), sizeof(u64));
		return u64;
	default:
		return 0;
	}
}

uint64_t attr_number(const struct attrs *attrs, unsigned int number)
{
	return attrs->of[number] ? number_in(attrs->of[number]) : 0;
}

unsigned int attr_series(const struct attrs *attrs, unsigned int number,
			 uint64_t *values, unsigned int room)
{
	const struct nlattr *attr;
	unsigned int count = 0;
	int left;

	for_each_attr(attr, left, attrs->payload, attrs->len)
		if (mnl_attr_get_type(attr) == number && count < room)
			values[count++] = number_in(attr);
	return count;
}

const char *attr_string(const struct attrs *attrs, unsigned int number)
{
	return attrs->of[number] ? mnl_attr_get_str(attrs->of[number]) : "";
}

static const char *word_of(const struct attr_rule *rule, uint64_t value)
{
	uint64_t i;

	for (i = 0; rule->words && rule->words[i]; i++)
		if (i == value)
			return rule->words[i];
	return NULL;
}

const char *attr_word(const struct attrs *attrs, unsigned int number)
{
	return word_of(rule_of(attrs->rules, number), attr_number(attrs, number)) ?: "?";
}
