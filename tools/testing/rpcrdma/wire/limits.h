/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Messages at each limit of message.h, and one above it, in both versions */
#ifndef RPCRDMA_WIRE_LIMITS_H
#define RPCRDMA_WIRE_LIMITS_H

#include "../wire/message.h"

/* Room for one segment above the limit in a Read list, and the rest of a message */
#define LIMITS_WORDS	(6 * (RPCRDMA_MAX_SEGMENTS + 1) + 64)

struct limits_message {
	u32 words;
	__be32 word[LIMITS_WORDS];
};

bool limits_write(struct limits_message *message, unsigned int index, u32 version,
		  const char **name);

#endif /* RPCRDMA_WIRE_LIMITS_H */
