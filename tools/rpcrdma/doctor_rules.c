// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Following a packet through chains of rules. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor_rules.h"

#define CHAINS_MAX	4096
#define RULES_MAX	65536	/* in a chain */
#define DEPTH_MAX	16
#define STEPS_MAX	200000	/* chains that jump to each other could take forever */

struct chain *rules_chain(struct rules *rules, const char *name, bool make)
{
	struct chain *chains;
	size_t i;

	for (i = 0; i < rules->count; i++)
		if (!strcmp(rules->chains[i].name, name))
			return &rules->chains[i];
	if (!make || rules->count == CHAINS_MAX)
		return NULL;
	chains = realloc(rules->chains, (rules->count + 1) * sizeof(*chains));
	if (!chains)
		return NULL;
	rules->chains = chains;
	chains += rules->count;
	memset(chains, 0, sizeof(*chains));
	chains->name = strdup(name);
	if (!chains->name)
		return NULL;
	rules->count++;
	return chains;
}

int rules_append(struct chain *chain, const struct rule *rule)
{
	struct rule *copy = chain->rules;

	if (chain->count == RULES_MAX)
		return -ENOMEM;
	if (!(chain->count & (chain->count - 1))) {	/* 0 or a power of two: full */
		copy = realloc(copy, (chain->count ? 2 * chain->count : 1) * sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		chain->rules = copy;
	}
	copy += chain->count;
	*copy = *rule;
	if (rule->target) {
		copy->target = strdup(rule->target);
		if (!copy->target)
			return -ENOMEM;
	}
	chain->count++;
	return 0;
}

void rules_free(struct rules *rules)
{
	size_t i, n;

	for (i = 0; i < rules->count; i++) {
		for (n = 0; n < rules->chains[i].count; n++)
			free(rules->chains[i].rules[n].target);
		free(rules->chains[i].rules);
		free(rules->chains[i].name);
	}
	free(rules->chains);
	memset(rules, 0, sizeof(*rules));
}

/* A packet on its way */
struct walk {
	struct rules *rules;
	bool maybe_accepted;
	bool maybe_dropped;
	unsigned int steps;
};

/* Follow a chain. Return: VERDICT_ACCEPT, VERDICT_DROP, or VERDICT_NONE at its end. */
static enum rule_verdict follow(struct walk *walk, const char *name, unsigned int depth);

/* What a rule that matches does, jumps followed; VERDICT_RETURN ends the chain. */
static enum rule_verdict outcome(struct walk *walk, const struct rule *rule,
				 unsigned int depth)
{
	enum rule_verdict verdict = rule->verdict;

	if (verdict == VERDICT_JUMP || verdict == VERDICT_GOTO) {
		verdict = depth ? follow(walk, rule->target, depth - 1) : VERDICT_NONE;
		if (verdict == VERDICT_NONE && rule->verdict == VERDICT_GOTO)
			verdict = VERDICT_RETURN;
	}
	return verdict;
}

static enum rule_verdict follow(struct walk *walk, const char *name, unsigned int depth)
{
	struct chain *chain = rules_chain(walk->rules, name, false);
	size_t i;

	for (i = 0; chain && i < chain->count; i++) {
		const struct rule *rule = &chain->rules[i];
		enum rule_verdict verdict;

		if (rule->match == MATCH_NO)
			continue;
		if (++walk->steps > STEPS_MAX) {
			walk->maybe_accepted = true;
			return VERDICT_NONE;
		}
		verdict = outcome(walk, rule, depth);
		if (rule->match == MATCH_YES) {
			if (verdict == VERDICT_RETURN)
				return VERDICT_NONE;
			if (verdict != VERDICT_NONE)
				return verdict;
		} else if (verdict == VERDICT_ACCEPT) {
			walk->maybe_accepted = true;
		} else if (verdict == VERDICT_DROP && rule->names_port) {
			/* Others drop what is bad about some packets to any port. */
			walk->maybe_dropped = true;
		}
	}
	return VERDICT_NONE;
}

static enum fate fate_of(struct rules *rules, const struct chain *chain)
{
	struct walk walk = { .rules = rules };
	enum rule_verdict verdict = follow(&walk, chain->name, DEPTH_MAX);

	if (verdict == VERDICT_NONE)
		verdict = chain->drops ? VERDICT_DROP : VERDICT_ACCEPT;
	if (verdict == VERDICT_DROP)
		return walk.maybe_accepted ? FATE_MAYBE : FATE_DROPPED;
	return walk.maybe_dropped ? FATE_MAYBE : FATE_ACCEPTED;
}

enum fate rules_fate(struct rules *rules, char *where, size_t size)
{
	enum fate worst = FATE_ACCEPTED;
	size_t i;

	for (i = 0; i < rules->count; i++) {
		enum fate fate = rules->chains[i].base ?
				 fate_of(rules, &rules->chains[i]) : FATE_ACCEPTED;

		if (fate <= worst)
			continue;
		worst = fate;
		snprintf(where, size, "%s", rules->chains[i].name);
	}
	return worst;
}
