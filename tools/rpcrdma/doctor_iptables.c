// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Rules of iptables, as iptables-save prints them. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"
#include "doctor_rules.h"

/* What is read */
struct tables {
	struct rules *rules;
	const struct packet *packet;
	char table[64];
};

static bool is(const char *a, const char *b)
{
	return !strcmp(a, b);
}

/* The next word; a comment may be in quotes and have blanks in it. */
static char *next_word(char **line)
{
	char *word = *line + strspn(*line, " ");
	char *end;

	if (*word != '"')
		return doctor_word(line);
	end = ++word;
	while (*end && *end != '"')
		end += *end == '\\' && end[1] ? 2 : 1;
	*line = end + (*end != 0);
	*end = 0;
	return word;
}

/* "80", "80:90" or a list of these */
static enum rule_match match_ports(const char *list, unsigned int port)
{
	while (*list) {
		char *end;
		unsigned long low = strtoul(list, &end, 10), high = low;

		if (end == list)
			return MATCH_MAYBE;
		if (*end == ':')
			high = strtoul(end + 1, &end, 10);
		if (low <= port && port <= high)
			return MATCH_YES;
		list = end + (*end == ',');
		if (*end && *end != ',')
			return MATCH_MAYBE;
	}
	return MATCH_NO;
}

static enum rule_match match_protocol(const char *word, const struct packet *packet)
{
	if (is(word, "all") || is(word, packet->protocol) ||
	    is(word, is(packet->protocol, "udp") ? "17" : "6"))
		return MATCH_YES;
	return MATCH_NO;
}

/* The option's name, without its value; MATCH_YES for what decides nothing */
static enum rule_match match_option(const char *option, const char *value,
				    const struct packet *packet, struct rule *rule)
{
	enum rule_match match;

	if (is(option, "-m") || is(option, "--comment") || is(option, "--reject-with") ||
	    !strncmp(option, "--log-", 6) || !strncmp(option, "--nflog-", 8))
		return MATCH_YES;
	if (is(option, "-p"))
		return match_protocol(value, packet);
	if (is(option, "--ctstate") || is(option, "--state"))
		return strstr(value, "NEW") ? MATCH_YES : MATCH_NO;
	if (is(option, "-i"))
		return is(value, "lo") ? MATCH_NO : MATCH_MAYBE;
	if (is(option, "--dport") || is(option, "--dports")) {
		match = match_ports(value, packet->port);
		rule->names_port |= match == MATCH_YES;
		return match;
	}
	return MATCH_MAYBE;
}

static void set_target(const struct tables *tables, const char *option, const char *target,
		       struct rule *rule, char *name, size_t size)
{
	rule->verdict = VERDICT_NONE;
	if (is(target, "ACCEPT"))
		rule->verdict = VERDICT_ACCEPT;
	else if (is(target, "DROP") || is(target, "REJECT"))
		rule->verdict = VERDICT_DROP;
	else if (is(target, "RETURN"))
		rule->verdict = VERDICT_RETURN;
	else	/* a chain, or something like LOG: then there is no such chain */
		rule->verdict = is(option, "-g") ? VERDICT_GOTO : VERDICT_JUMP;
	snprintf(name, size, "%s %s", tables->table, target);
	if (rule->verdict >= VERDICT_JUMP)
		rule->target = name;
}

static void read_options(const struct tables *tables, char *line, struct rule *rule,
			 char *name, size_t size)
{
	bool negated = false;
	char *word;

	rule->match = MATCH_YES;
	while ((word = next_word(&line))) {
		enum rule_match match = MATCH_YES;
		char *value;

		if (is(word, "!")) {
			negated = true;
			continue;
		}
		if (*word != '-')	/* another value of an option */
			continue;
		value = next_word(&line) ?: "";
		if (is(word, "-j") || is(word, "-g"))
			set_target(tables, word, value, rule, name, size);
		else
			match = match_option(word, value, tables->packet, rule);
		if (negated && match != MATCH_MAYBE)
			match = MATCH_YES - match;
		negated = false;
		if (match < rule->match)
			rule->match = match;
	}
}

static int read_rule(struct tables *tables, char *line)
{
	char *chain_name = next_word(&line);
	char name[512], target[512];
	struct rule rule = {};
	struct chain *chain;

	if (!chain_name)
		return 0;
	snprintf(name, sizeof(name), "%s %s", tables->table, chain_name);
	chain = rules_chain(tables->rules, name, true);
	if (!chain)
		return -ENOMEM;
	read_options(tables, line, &rule, target, sizeof(target));
	return rules_append(chain, &rule);
}

static int read_chain(struct tables *tables, char *line)
{
	const struct packet *packet = tables->packet;
	char *chain_name = next_word(&line);
	char *policy = chain_name ? next_word(&line) : NULL;
	struct chain *chain;
	char name[512];

	if (!policy)
		return 0;
	snprintf(name, sizeof(name), "%s %s", tables->table, chain_name);
	chain = rules_chain(tables->rules, name, true);
	if (!chain)
		return -ENOMEM;
	if (is(policy, "-") || is(tables->table, "nat"))
		return 0;
	chain->base = (packet->in && (is(chain_name, "INPUT") || is(chain_name, "PREROUTING"))) ||
		      (packet->out && (is(chain_name, "OUTPUT") ||
				       is(chain_name, "POSTROUTING")));
	chain->drops = is(policy, "DROP");
	return 0;
}

int rules_iptables(struct rules *rules, char *text, const struct packet *packet)
{
	struct tables tables = { .rules = rules, .packet = packet };
	char *line;
	int ret = 0;

	while (!ret && (line = doctor_line(&text))) {
		if (*line == '*')
			snprintf(tables.table, sizeof(tables.table), "%.60s", line + 1);
		else if (*line == ':')
			ret = read_chain(&tables, line + 1);
		else if (!strncmp(line, "-A ", 3))
			ret = read_rule(&tables, line + 3);
	}
	return ret;
}
