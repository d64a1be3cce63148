// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause

#include <errno.h>
#include <string.h>
#include "attrs.h"
#include "cmd.h"

#define SERIES_MAX	256	/* values; the family's have fewer */

static json_t *checked(json_t *value)
{
	if (!value)
		die(STATUS_FAILED, "%s", strerror(ENOMEM));
	return value;
}

/* JSON's integers end at 2^63 - 1 here, which no counter reaches. */
static json_t *integer(uint64_t value)
{
	return checked(json_integer(value > INT64_MAX ? INT64_MAX : value));
}

static json_t *number(const struct attrs *attrs, unsigned int number)
{
	const struct attr_rule *rule = &attrs->rules->rules[number];
	uint64_t value = attr_number(attrs, number);
	const char *word = attr_word(attrs, number);

	return rule->words && strcmp(word, "?") ? checked(json_string(word)) : integer(value);
}

static json_t *list(const struct attrs *attrs, unsigned int number)
{
	json_t *array = checked(json_array());
	const struct nlattr *last = NULL;
	struct attrs nest;

	while (attrs_each(attrs, number, &last, &nest))
		json_array_append_new(array, attrs_json(&nest));
	return array;
}

static json_t *series(const struct attrs *attrs, unsigned int number)
{
	json_t *array = checked(json_array());
	uint64_t values[SERIES_MAX];
	unsigned int i, count = attr_series(attrs, number, values, SERIES_MAX);

	for (i = 0; i < count; i++)
		json_array_append_new(array, integer(values[i]));
	return array;
}

static json_t *value(const struct attrs *attrs, unsigned int i)
{
	struct attrs nest;

	switch (attrs->rules->rules[i].type) {
	case ATTR_FLAG:
		return checked(json_true());
	case ATTR_STRING:
		return checked(json_string(attr_string(attrs, i)));
	case ATTR_NEST:
		nest = attrs_nested(attrs, i);
		return attrs_json(&nest);
	case ATTR_LIST:
	case ATTR_ARRAY:
		return list(attrs, i);
	case ATTR_SERIES:
		return series(attrs, i);
	default:
		return number(attrs, i);
	}
}

json_t *attrs_json(const struct attrs *attrs)
{
	json_t *object = checked(json_object());
	unsigned int i;

	for (i = 0; i < attrs->rules->count && i < ATTRS_MAX; i++)
		if (attrs->of[i])
			json_add(object, attrs->rules->rules[i].name, value(attrs, i));
	return object;
}
