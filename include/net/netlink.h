/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * For kernels before 6.7: attributes of type "uint", four octets if the value fits, otherwise
 * eight.
 */
#ifndef RPCRDMA_OVERLAY_NET_NETLINK_H
#define RPCRDMA_OVERLAY_NET_NETLINK_H

#include_next <net/netlink.h>
#include <rpcrdma-probes.h>

#ifndef HAVE_NLA_PUT_UINT

static inline int nla_put_uint(struct sk_buff *skb, int attrtype, u64 value)
{
	if (value <= U32_MAX)
		return nla_put_u32(skb, attrtype, value);
	return nla_put(skb, attrtype, sizeof(value), &value);
}

#endif

#endif /* RPCRDMA_OVERLAY_NET_NETLINK_H */
