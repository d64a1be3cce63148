// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Limits for connections of servers, over all listeners: how many may wait, begin and
 * end at a time, in all and for one host, and how much memory must be available for one more. The
 * role limits the number of those that are established.
 */
#include <linux/mm.h>
#include <linux/sizes.h>

#include "conn_private.h"

/*
 * A waiting request costs little memory, and after an outage all come at once. Requests above
 * the limit are refused. Beginning and ending connections have queue pairs, and a peer could
 * begin or drop connections faster than they are made and destroyed. While one of their limits
 * is reached, requests wait. Those that end have a limit of their own, because they must not
 * keep their hosts from coming back.
 *
 * For each connection of one host .left places must be free; with zero, a host has no limit. So
 * the first host gets at most a half or a quarter of all, and there is always a place for one
 * more host.
 */
static const struct {
	unsigned int all;	/* zero: rpcrdma_admission_waiting() */
	unsigned int left;
} admission_max[] = {
	[RPCRDMA_ADMISSION_WAITING] = { .left = 1 },
	[RPCRDMA_ADMISSION_BEGINNING] = { .all = 256, .left = 3 },
	[RPCRDMA_ADMISSION_ENDING] = { .all = 4096 },
};

/*
 * Memory, in pages. What one end of a connection may take when it is used: over siw both take
 * 1,606 KiB, see performance.rst. For each that a host has, LEFT_PAGES are left for others.
 */
#define CONN_PAGES	(SZ_1M / PAGE_SIZE)
#define LEFT_PAGES	(SZ_64K / PAGE_SIZE)
#define RESERVE_MIN	(SZ_32M / PAGE_SIZE)
#define RESERVE_MAX	(SZ_1G / PAGE_SIZE)

siphash_key_t rpcrdma_host_key;		/* not static: the tests set it */

static DEFINE_SPINLOCK(admission_lock);	/* protects these, and conn->admission */
static unsigned int admission_all[RPCRDMA_ADMISSION_COUNT];
static unsigned int admission_host[RPCRDMA_HOSTS][RPCRDMA_ADMISSION_COUNT];

/*
 * A host is the hash of an IPv4 address, or of the 64-bit prefix of an IPv6 address,
 * because anybody in such a prefix may have any number of addresses. Hosts with the
 * same hash share one limit. The hash has a key, so that nobody can choose addresses that
 * share the limit of another host.
 */
unsigned int rpcrdma_admission_host(const struct sockaddr_storage *peer)
{
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)peer;
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)peer;
	u64 host = peer->ss_family == AF_INET6 ?
		   siphash(&v6->sin6_addr, sizeof(u64), &rpcrdma_host_key) :
		   siphash_1u32((__force u32)v4->sin_addr.s_addr, &rpcrdma_host_key);

	return host % RPCRDMA_HOSTS;
}

/* The counts of RPCRDMA_ADMISSION_NONE may wrap; nothing reads them. */
void rpcrdma_admission_set(struct rpcrdma_conn *conn, enum rpcrdma_admission admission)
{
	unsigned int *host = admission_host[rpcrdma_admission_host(&conn->peer_addr)];

	spin_lock_bh(&admission_lock);
	admission_all[conn->admission]--;
	host[conn->admission]--;
	conn->admission = admission;
	admission_all[admission]++;
	host[admission]++;
	spin_unlock_bh(&admission_lock);
}

/* How many requests may wait, with so many pages of memory: with 8 KiB each they take 1/256. */
unsigned int rpcrdma_admission_waiting(unsigned long pages)
{
	return clamp(pages / (SZ_2M / PAGE_SIZE), 2048UL, 16384UL);
}

/*
 * How many of so many pages of memory must be available for one more connection of a host that has
 * so many, while so many of all hosts begin: those have yet to take what they need. The reserve is
 * for the Calls of those that are established, and for the rest of the system.
 */
unsigned long rpcrdma_admission_memory(unsigned long ram, unsigned int beginning,
				       unsigned int established)
{
	return clamp(ram / 32, RESERVE_MIN, RESERVE_MAX) +
	       (beginning + 1) * CONN_PAGES + established * LEFT_PAGES;
}

/* Is there memory for one more connection of this host, now or without those that begin? */
bool rpcrdma_admission_has_memory(const struct sockaddr_storage *peer, bool now)
{
	const unsigned int *host = admission_host[rpcrdma_admission_host(peer)];
	unsigned int beginning, established;

	spin_lock_bh(&admission_lock);
	beginning = now ? admission_all[RPCRDMA_ADMISSION_BEGINNING] : 0;
	established = host[RPCRDMA_ADMISSION_ESTABLISHED];
	spin_unlock_bh(&admission_lock);
	return si_mem_available() >= rpcrdma_admission_memory(totalram_pages(), beginning,
							      established);
}

static bool admission_is_full_locked(const unsigned int *host, enum rpcrdma_admission admission)
{
	unsigned int all = admission_max[admission].all ?:
			   rpcrdma_admission_waiting(totalram_pages());

	lockdep_assert_held(&admission_lock);
	return admission_all[admission] >= all ||
	       host[admission] * admission_max[admission].left >= all - admission_all[admission];
}

/* May one more request of this host wait (WAITING), or may a role take one (BEGINNING)? */
bool rpcrdma_admission_may(const struct sockaddr_storage *peer, enum rpcrdma_admission admission)
{
	const unsigned int *host = admission_host[rpcrdma_admission_host(peer)];
	bool full;

	spin_lock_bh(&admission_lock);
	full = admission_is_full_locked(host, admission);
	if (admission == RPCRDMA_ADMISSION_BEGINNING)
		full |= admission_is_full_locked(host, RPCRDMA_ADMISSION_ENDING);
	spin_unlock_bh(&admission_lock);
	return !full;
}

/*
 * A request leaves its listener, and the role may take it. Until then it counts as waiting, even if
 * its peer has given up. Return: false if the connection is closed already.
 */
bool rpcrdma_admission_begin(struct rpcrdma_conn *conn)
{
	bool pending;

	spin_lock_bh(&conn->post_lock);
	pending = conn->state == RPCRDMA_STATE_PENDING;
	rpcrdma_admission_set(conn, pending ? RPCRDMA_ADMISSION_BEGINNING : RPCRDMA_ADMISSION_NONE);
	spin_unlock_bh(&conn->post_lock);
	return pending;
}
