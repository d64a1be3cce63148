/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What packet filters do with packets to one port of this host, as far as it
 * depends on protocol and port. Rules of nftables and iptables become the same
 * chains of rules here, with what each says about that port and nothing else.
 */
#ifndef RPCRDMA_DOCTOR_RULES_H
#define RPCRDMA_DOCTOR_RULES_H

#include <stdbool.h>
#include <stddef.h>

/* What becomes of a packet */
enum fate {
	FATE_ACCEPTED,
	FATE_MAYBE,	/* it depends on more than its port */
	FATE_DROPPED,
};

/* The first packet of a connection */
struct packet {
	const char *protocol;	/* udp or tcp */
	unsigned int port;	/* where it goes */
	bool in;		/* look at packets that come */
	bool out;		/* and at those that leave */
};

/* Whether a rule is about the packet */
enum rule_match {
	MATCH_NO,
	MATCH_MAYBE,	/* depends on something else */
	MATCH_YES,
};

enum rule_verdict {
	VERDICT_NONE,
	VERDICT_ACCEPT,
	VERDICT_DROP,
	VERDICT_RETURN,
	VERDICT_JUMP,
	VERDICT_GOTO,
};

struct rule {
	enum rule_match match;
	bool names_port;	/* it is about this port, not about many */
	enum rule_verdict verdict;
	char *target;		/* a chain, of jumps */
};

struct chain {
	char *name;
	bool base;		/* the kernel begins here with packets that count */
	bool drops;		/* the policy of a base chain */
	struct rule *rules;
	size_t count;
};

/*
 * All chains of a packet filter, without its other objects. Belongs to the
 * function that made it; rules_free() frees all of it.
 */
struct rules {
	struct chain *chains;
	size_t count;
};

/**
 * rules_chain - find a chain, or make it
 *
 * Return: NULL if there is no memory, or there are far too many. Valid until the
 * next call.
 */
struct chain *rules_chain(struct rules *rules, const char *name, bool make);

/**
 * rules_append - append a rule to a chain
 * @rule: is copied, and its target as well
 *
 * Return: 0 or a negative errno.
 */
int rules_append(struct chain *chain, const struct rule *rule);
void rules_free(struct rules *rules);

/**
 * rules_fate - the worst that a base chain does
 * @where: gets the name of that chain
 */
enum fate rules_fate(struct rules *rules, char *where, size_t size);

/**
 * rules_nft - read what "nft -j list ruleset" prints
 *
 * Return: 0, -EPROTO if that makes no sense, or -ENOMEM.
 */
int rules_nft(struct rules *rules, const char *json, const struct packet *packet);

/**
 * rules_iptables - read what iptables-save prints
 * @text: is changed
 *
 * Return: 0 or -ENOMEM.
 */
int rules_iptables(struct rules *rules, char *text, const struct packet *packet);

#endif
