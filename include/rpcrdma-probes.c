// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What include/ has to know about a kernel, from the kernel's own headers. The script
 * "probe" makes rpcrdma-probes.h of this file.
 *
 * The part after each #line is a probe, and has its name there. It succeeds if the
 * compiler finds no error in it, and if the kernel's header has the text that a comment
 * "says:" demands; then its name is defined in rpcrdma-probes.h. Of the probes in a comment
 * "one of:" exactly one has to succeed, or else nothing is built for that kernel.
 *
 * A probe uses no macro, since the compiler may count an error as one of the macro's file.
 */
#include <linux/dma-map-ops.h>
#include <linux/mm.h>
#include <linux/mm_inline.h>
#include <linux/sunrpc/bc_xprt.h>
#include <linux/sunrpc/svc.h>
#include <linux/sunrpc/svc_xprt.h>
#include <net/netlink.h>
#include <rdma/ib_verbs.h>

#line 1 "HAVE_NLA_PUT_UINT"
static typeof(nla_put_uint) *have_nla_put_uint = nla_put_uint;

#line 1 "HAVE_NUM_PAGES_CONTIGUOUS"
static typeof(num_pages_contiguous) *have_num_pages_contiguous = num_pages_contiguous;

#line 1 "HAVE_UNMAP_PHYS"
_Static_assert(__builtin_offsetof(const struct dma_map_ops, unmap_phys) >= 0, "");

#line 1 "HAVE_COMP_CNTRS"
_Static_assert(__builtin_types_compatible_p(typeof(((struct ib_qp *)0)->comp_cntrs),
					    struct xarray), "");

#line 1 "HAVE_XPO_SECURE_PORT"
_Static_assert(__builtin_offsetof(struct svc_xprt_ops, xpo_secure_port) >= 0, "");

/* The queue in which the callback service finds backward Calls */

/* one of: HAVE_BC_LIST HAVE_BC_LWQ */

#line 1 "HAVE_BC_LIST"
_Static_assert(__builtin_types_compatible_p(typeof(((struct svc_serv *)0)->sv_cb_list),
					    struct list_head), "");
_Static_assert(__builtin_offsetof(struct svc_serv, sv_cb_lock) >= 0, "");
_Static_assert(__builtin_offsetof(struct svc_serv, sv_cb_waitq) >= 0, "");

#line 1 "HAVE_BC_LWQ"
#ifdef CONFIG_SUNRPC_BACKCHANNEL	/* else there is none, and which one does not matter */
_Static_assert(__builtin_types_compatible_p(typeof(((struct svc_serv *)0)->sv_cb_list),
					    struct lwq), "");
_Static_assert(__builtin_types_compatible_p(typeof(((struct rpc_rqst *)0)->rq_bc_list),
					    struct lwq_node), "");
_Static_assert(__builtin_types_compatible_p(typeof(svc_pool_wake_idle_thread),
					    void (struct svc_pool *)), "");
#endif

/*
 * Which pages the RPC server releases and fills again. No declaration shows that. The
 * header's comments do, and where they do not say what is expected, nothing is built.
 */

/* one of: HAVE_ONE_PAGE_ARRAY HAVE_TWO_PAGE_ARRAYS */
/* one of: HAVE_ONE_PAGE_ARRAY HAVE_RQ_PAGES_NFREE */

#line 1 "HAVE_ONE_PAGE_ARRAY"
/* says: linux/sunrpc/svc.h rq_respages; points into rq_pages */

#line 1 "HAVE_TWO_PAGE_ARRAYS"
/* says: linux/sunrpc/svc.h svc_rqst_release_pages() NULLs entries in [rq_respages, rq_next_page) */
_Static_assert(__builtin_types_compatible_p(typeof(((struct svc_rqst *)0)->rq_pages),
					    struct page **), "");
_Static_assert(__builtin_types_compatible_p(typeof(((struct svc_rqst *)0)->rq_respages),
					    struct page **), "");

#line 1 "HAVE_RQ_PAGES_NFREE"
_Static_assert(__builtin_offsetof(struct svc_rqst, rq_pages_nfree) >= 0, "");

#line 1 "HAVE_RQ_MAXPAGES"
_Static_assert(__builtin_offsetof(struct svc_rqst, rq_maxpages) >= 0, "");

#line 1 "END"
#error that the compiler has seen all probes
