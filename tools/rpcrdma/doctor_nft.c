// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Rules of nftables, as "nft -j" prints them: see libnftables-json(5). */

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <jansson.h>

#include "doctor_rules.h"

/* What is read */
struct nft {
	json_t *objects;
	const char *family;	/* of the present rule */
	const char *table;
	const struct packet *packet;
};

/* What a condition is about */
enum subject {
	ABOUT_OTHER,
	ABOUT_PROTOCOL,
	ABOUT_PORT,		/* of any protocol that has been checked elsewhere */
	ABOUT_STATE,
	ABOUT_INTERFACE,	/* by which it comes */
	ABOUT_NO_SUCH,		/* a field of another protocol */
};

static const char *text_of(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key)) ?: "";
}

static bool is(const char *a, const char *b)
{
	return !strcmp(a, b);
}

static enum subject payload_subject(const struct nft *nft, const json_t *payload)
{
	const char *protocol = text_of(payload, "protocol"), *field = text_of(payload, "field");

	if (is(field, "protocol") || is(field, "nexthdr"))
		return ABOUT_PROTOCOL;
	if (is(protocol, "th") || is(protocol, nft->packet->protocol))
		return is(field, "dport") ? ABOUT_PORT : ABOUT_OTHER;
	if (is(protocol, "ip") || is(protocol, "ip6") || is(protocol, "ether") || !*protocol)
		return ABOUT_OTHER;
	return ABOUT_NO_SUCH;
}

static enum subject subject_of(const struct nft *nft, const json_t *left)
{
	const json_t *payload = json_object_get(left, "payload");
	const char *meta = text_of(json_object_get(left, "meta"), "key");

	if (payload)
		return payload_subject(nft, payload);
	if (is(meta, "l4proto"))
		return ABOUT_PROTOCOL;
	if (is(meta, "iif") || is(meta, "iifname"))
		return ABOUT_INTERFACE;
	if (is(text_of(json_object_get(left, "ct"), "key"), "state"))
		return ABOUT_STATE;
	return ABOUT_OTHER;
}

/* One value, of a kind that can be compared */
static enum rule_match compare(const struct nft *nft, enum subject subject,
			       const json_t *value)
{
	const char *text = json_string_value(value) ?: "";
	bool udp = is(nft->packet->protocol, "udp");

	if (subject == ABOUT_STATE)
		return is(text, "new") ? MATCH_YES : MATCH_NO;
	if (subject == ABOUT_INTERFACE)
		return is(text, "lo") ? MATCH_NO : MATCH_MAYBE;
	if (subject == ABOUT_PROTOCOL && json_is_integer(value))
		return json_integer_value(value) == (udp ? 17 : 6) ? MATCH_YES : MATCH_NO;
	if (subject == ABOUT_PROTOCOL)
		return is(text, nft->packet->protocol) ? MATCH_YES : MATCH_NO;
	if (!json_is_integer(value))
		return MATCH_MAYBE;
	return json_integer_value(value) == nft->packet->port ? MATCH_YES : MATCH_NO;
}

static enum rule_match compare_range(const struct nft *nft, const json_t *range)
{
	json_int_t low = json_integer_value(json_array_get(range, 0));
	json_int_t high = json_integer_value(json_array_get(range, 1));

	return low <= nft->packet->port && nft->packet->port <= high ? MATCH_YES : MATCH_NO;
}

/* The elements of a set or map with a name */
static json_t *elements_of(const struct nft *nft, const char *name)
{
	json_t *object;
	size_t i;

	json_array_foreach(nft->objects, i, object) {
		json_t *set = json_object_get(object, "set") ?: json_object_get(object, "map");

		if (set && is(text_of(set, "name"), name) &&
		    is(text_of(set, "table"), nft->table) &&
		    is(text_of(set, "family"), nft->family))
			return json_object_get(set, "elem");
	}
	return NULL;
}

static enum rule_match matches(const struct nft *nft, enum subject subject,
			       const json_t *value, unsigned int depth);

/* Any of several values */
static enum rule_match matches_any(const struct nft *nft, enum subject subject,
				   const json_t *values, unsigned int depth)
{
	enum rule_match best = MATCH_NO;
	json_t *value;
	size_t i;

	if (!depth)
		return MATCH_MAYBE;
	json_array_foreach(values, i, value) {
		enum rule_match match = matches(nft, subject, value, depth - 1);

		if (match > best)
			best = match;
	}
	return best;
}

static enum rule_match matches(const struct nft *nft, enum subject subject,
			       const json_t *value, unsigned int depth)
{
	const json_t *elem = json_object_get(value, "elem");	/* with a counter or timeout */
	const char *text = json_string_value(value) ?: "";

	if (subject == ABOUT_OTHER)
		return MATCH_MAYBE;
	if (elem)
		value = json_object_get(elem, "val");
	if (json_object_get(value, "set"))
		return matches_any(nft, subject, json_object_get(value, "set"), depth);
	if (json_is_array(value))
		return matches_any(nft, subject, value, depth);
	if (*text == '@')
		return matches_any(nft, subject, elements_of(nft, text + 1), depth);
	if (json_object_get(value, "range"))
		return subject == ABOUT_PORT ?
		       compare_range(nft, json_object_get(value, "range")) : MATCH_MAYBE;
	return compare(nft, subject, value);
}

#define NESTED_MAX	8

static enum rule_match read_match(const struct nft *nft, const json_t *match, bool *names_port)
{
	enum subject subject = subject_of(nft, json_object_get(match, "left"));
	const char *op = text_of(match, "op");
	enum rule_match result;

	if (subject == ABOUT_NO_SUCH)
		return MATCH_NO;
	result = matches(nft, subject, json_object_get(match, "right"), NESTED_MAX);
	if (is(op, "!="))
		result = result == MATCH_MAYBE ? MATCH_MAYBE : MATCH_YES - result;
	else if (!is(op, "==") && !is(op, "in"))
		result = MATCH_MAYBE;
	else if (subject == ABOUT_PORT && result == MATCH_YES)
		*names_port = true;
	return result;
}

/* Full name of a chain of the present table */
static void name_chain(const struct nft *nft, const char *chain, char *name, size_t size)
{
	snprintf(name, size, "%s %s %s", nft->family, nft->table, chain);
}

/* If a statement has a verdict, it becomes the rule's. @target has room for a name. */
static bool read_verdict(const struct nft *nft, const json_t *statement, struct rule *rule,
			 char *target, size_t size)
{
	static const char * const names[] = {
		[VERDICT_ACCEPT] = "accept", [VERDICT_DROP] = "drop",
		[VERDICT_RETURN] = "return", [VERDICT_JUMP] = "jump",
		[VERDICT_GOTO] = "goto",
	};
	enum rule_verdict verdict;

	for (verdict = VERDICT_ACCEPT; verdict <= VERDICT_GOTO; verdict++) {
		const json_t *found = json_object_get(statement, names[verdict]);

		if (!found)
			continue;
		rule->verdict = verdict;
		if (verdict >= VERDICT_JUMP) {
			name_chain(nft, text_of(found, "target"), target, size);
			rule->target = target;
		}
		return true;
	}
	if (json_object_get(statement, "reject"))
		rule->verdict = VERDICT_DROP;
	return rule->verdict != VERDICT_NONE;
}

/* A verdict map: the element for this packet has the verdict. */
static void read_vmap(const struct nft *nft, const json_t *vmap, struct rule *rule,
		      char *target, size_t size)
{
	enum subject subject = subject_of(nft, json_object_get(vmap, "key"));
	const json_t *data = json_object_get(vmap, "data");
	const char *name = json_string_value(data) ?: "";
	json_t *pair;
	size_t i;

	if (subject == ABOUT_NO_SUCH)
		return;
	if (subject == ABOUT_OTHER || subject == ABOUT_INTERFACE) {
		rule->match = MATCH_MAYBE;	/* it could be any of them */
		rule->verdict = VERDICT_ACCEPT;
		return;
	}
	data = *name == '@' ? elements_of(nft, name + 1) : json_object_get(data, "set");
	json_array_foreach(data, i, pair) {
		if (matches(nft, subject, json_array_get(pair, 0), NESTED_MAX) != MATCH_YES)
			continue;
		rule->names_port |= subject == ABOUT_PORT;
		read_verdict(nft, json_array_get(pair, 1), rule, target, size);
		return;
	}
}

/* Conditions up to a verdict */
static void read_statements(const struct nft *nft, const json_t *statements,
			    struct rule *rule, char *target, size_t size)
{
	json_t *statement;
	size_t i;

	rule->match = MATCH_YES;
	json_array_foreach(statements, i, statement) {
		const json_t *match = json_object_get(statement, "match");
		const json_t *vmap = json_object_get(statement, "vmap");
		enum rule_match result = MATCH_YES;

		if (match)
			result = read_match(nft, match, &rule->names_port);
		else if (vmap)
			read_vmap(nft, vmap, rule, target, size);
		else if (json_object_get(statement, "xt") || json_object_get(statement, "limit"))
			result = MATCH_MAYBE;	/* of iptables, whose own output has more */
		else if (read_verdict(nft, statement, rule, target, size))
			return;
		if (result < rule->match)
			rule->match = result;
		if (rule->match == MATCH_NO)
			return;
	}
}

static bool counts(const struct nft *nft)
{
	return is(nft->family, "inet") || is(nft->family, "ip") || is(nft->family, "ip6");
}

static int read_rule(struct rules *rules, const struct nft *nft, const json_t *object)
{
	char name[512], target[512];
	struct rule rule = {};
	struct chain *chain;

	name_chain(nft, text_of(object, "chain"), name, sizeof(name));
	chain = rules_chain(rules, name, true);
	if (!chain)
		return -ENOMEM;
	read_statements(nft, json_object_get(object, "expr"), &rule, target, sizeof(target));
	return rules_append(chain, &rule);
}

static int read_chain(struct rules *rules, const struct nft *nft, const json_t *object)
{
	const char *hook = text_of(object, "hook");
	struct chain *chain;
	char name[512];

	name_chain(nft, text_of(object, "name"), name, sizeof(name));
	chain = rules_chain(rules, name, true);
	if (!chain)
		return -ENOMEM;
	if (!is(text_of(object, "type"), "filter"))
		return 0;
	chain->base = (nft->packet->in && (is(hook, "input") || is(hook, "prerouting"))) ||
		      (nft->packet->out && (is(hook, "output") || is(hook, "postrouting")));
	chain->drops = is(text_of(object, "policy"), "drop");
	return 0;
}

static int read_object(struct rules *rules, struct nft *nft, const json_t *object)
{
	const json_t *chain = json_object_get(object, "chain");
	const json_t *rule = json_object_get(object, "rule");

	if (!chain && !rule)
		return 0;
	nft->family = text_of(chain ?: rule, "family");
	nft->table = text_of(chain ?: rule, "table");
	if (!counts(nft))
		return 0;
	return chain ? read_chain(rules, nft, chain) : read_rule(rules, nft, rule);
}

int rules_nft(struct rules *rules, const char *json, const struct packet *packet)
{
	json_t *top = json_loads(json, 0, NULL), *object;
	struct nft nft = {
		.objects = json_object_get(top, "nftables"), .packet = packet,
	};
	int ret = json_is_array(nft.objects) ? 0 : -EPROTO;
	size_t i;

	json_array_foreach(nft.objects, i, object) {
		ret = read_object(rules, &nft, object);
		if (ret)
			break;
	}
	json_decref(top);
	return ret;
}
