/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Since 6.7 the kernel allocates shrinkers.
 */
#ifndef RPCRDMA_OVERLAY_LINUX_SHRINKER_H
#define RPCRDMA_OVERLAY_LINUX_SHRINKER_H

/* Before 6.7 linux/shrinker.h does not include all that it uses. */
#include <linux/slab.h>
#include_next <linux/shrinker.h>
#include <linux/version.h>

#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 7, 0)

static inline struct shrinker *shrinker_alloc(unsigned int flags,
					      const char *fmt, ...)
{
	struct shrinker *shrinker = kzalloc(sizeof(*shrinker), GFP_KERNEL);

	if (shrinker) {
		shrinker->flags = flags;
		shrinker->seeks = DEFAULT_SEEKS;
	}
	return shrinker;
}

/* If this fails, the shrinker is never called. The module works without it. */
static inline void shrinker_register(struct shrinker *shrinker)
{
	if (register_shrinker(shrinker, KBUILD_MODNAME))
		pr_warn("%s: no memory for the shrinker; load the module again\n",
			KBUILD_MODNAME);
}

static inline void shrinker_free(struct shrinker *shrinker)
{
	unregister_shrinker(shrinker);
	kfree(shrinker);
}

#endif

#endif /* RPCRDMA_OVERLAY_LINUX_SHRINKER_H */
