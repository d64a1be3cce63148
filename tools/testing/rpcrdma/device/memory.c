// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory as a work request names it: from a DMA address back to the page, and lists of
 * SGEs that are copied piece by piece, so that the payload is copied once.
 *
 * With bounce buffers, its own (dma.c) or the kernel's, a DMA address is that of the bounce
 * buffer. The device then reads and writes this buffer and not what was mapped, so that a
 * missing sync is seen.
 */
#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/jhash.h>
#include <linux/mm.h>
#include <linux/pagemap.h>
#include <linux/slab.h>
#include <linux/swiotlb.h>

#include "mem.h"

/**
 * mem_account - note how much memory the device holds for its users
 * @dev: the device
 * @octets: more than before; < 0: less
 *
 * Context: any.
 */
void mem_account(struct mem_dev *dev, long octets)
{
	atomic_long_add(octets, &dev->memory);
}

/* What kvcalloc() takes for so much */
static size_t real_size(const void *data, size_t size)
{
	if (is_vmalloc_addr(data))
		return PAGE_ALIGN(size);
	if (size > KMALLOC_MAX_CACHE_SIZE)
		return PAGE_SIZE << get_order(size);
	return roundup_pow_of_two(max_t(size_t, size, KMALLOC_MIN_SIZE));
}

/**
 * mem_alloc - allocate an array that the device holds for a user
 * @dev: the device
 * @n: elements
 * @size: octets of each
 *
 * Context: process context.
 * Return: zeroed memory for mem_free(), or NULL.
 */
void *mem_alloc(struct mem_dev *dev, size_t n, size_t size)
{
	void *data = kvcalloc(n, size, GFP_KERNEL);

	if (data)
		mem_account(dev, real_size(data, n * size));
	return data;
}

/**
 * mem_free - undo mem_alloc()
 * @dev: the device
 * @data: the array, or NULL
 * @n: as it was allocated
 * @size: the same
 *
 * Context: any but hard interrupts.
 */
void mem_free(struct mem_dev *dev, void *data, size_t n, size_t size)
{
	if (data)
		mem_account(dev, -(long)real_size(data, n * size));
	kvfree(data);
}

/**
 * mem_dma_to_virt - where memory is
 * @dev: the device
 * @addr: its address as in an SGE
 * @len: octets
 *
 * Context: any.
 * Return: the memory, or NULL if there is none at the address, or, with bounce buffers, none
 * that is mapped.
 */
void *mem_dma_to_virt(struct mem_dev *dev, u64 addr, u64 len)
{
	phys_addr_t phys;

	if (!dev->parent) {
		void *virt = (void *)(uintptr_t)addr;

		return virt_addr_valid(virt) ? virt : NULL;
	}
	if (dev->bounce && len)
		return mem_map_data(dev, addr, len, false);
	phys = dma_to_phys(&dev->parent->dev, addr);
	if (phys + len < phys || !pfn_valid(PHYS_PFN(phys)) ||
	    (len && !pfn_valid(PHYS_PFN(phys + len - 1))))
		return NULL;
	return phys_to_virt(phys);
}

/*
 * Looked at without a lock, a page beside one that is just being taken may seem to be free,
 * for an instant.
 */
static bool memory_is_free(struct page *page)
{
	return is_free_buddy_page(page) && is_free_buddy_page(page);
}

/**
 * mem_dma_ok - is an address one of memory that was mapped?
 * @dev: the device
 * @addr: the address
 * @len: octets
 *
 * That is known if each mapping has a bounce buffer. Otherwise it has to be memory that is
 * not free.
 *
 * Context: any.
 * Return: whether nothing says that it is not.
 */
bool mem_dma_ok(struct mem_dev *dev, u64 addr, u64 len)
{
	void *data = mem_dma_to_virt(dev, addr, len);
	struct device *parent;

	if (!data || !len || !dev->checksums || dev->bounce)
		return data;
	if (memory_is_free(virt_to_page(data)))
		return false;
	if (!dev->parent)
		return true;
	parent = &dev->parent->dev;
	return !is_swiotlb_force_bounce(parent) ||
	       mem_is_bounced(parent, dma_to_phys(parent, addr));
}

/**
 * mem_dma_probe - check that memory is mapped, if anybody knows
 * @dev: the device
 * @addr: its address
 * @len: its octets, which may belong to one mapping
 * @write: the device writes; else it reads
 *
 * Without bounce buffers of its own, the device asks the DMA API's debugging, by a sync of no
 * octets, which copies nothing. CONFIG_DMA_API_DEBUG reports it, with "DMA-API:", if no mapping
 * has the address, or one for the other direction alone. At the border of two mappings it would
 * belong to both, so a single octet is not looked at.
 *
 * Context: any.
 */
void mem_dma_probe(struct mem_dev *dev, u64 addr, u64 len, bool write)
{
	enum dma_data_direction direction = write ? DMA_FROM_DEVICE : DMA_TO_DEVICE;

	if (dev->bounce) {
		if (len)
			mem_map_probe(dev, addr, len, write);
		return;
	}
	if (!IS_ENABLED(CONFIG_DMA_API_DEBUG) || !dev->parent || len < 2)
		return;
	dma_sync_single_for_device(&dev->parent->dev, addr + 1, 0, direction);
	dma_sync_single_for_device(&dev->parent->dev, addr + len - 1, 0, direction);
}

/**
 * mem_list_init - make an empty list
 * @list: the list; its array of registrations is not touched, for it is large
 * @dev: the device
 * @sge: the SGEs that it will have
 */
void mem_list_init(struct mem_list *list, struct mem_dev *dev, const struct ib_sge *sge)
{
	list->dev = dev;
	list->sge = sge;
	list->num_sge = 0;
	list->length = 0;
	list->at = 0;
	list->offset = 0;
}

static enum ib_wc_status list_bad(struct mem_list *list, const struct ib_sge *sge,
				  enum ib_wc_status status, const char *what)
{
	enum mem_rule rule = MEM_RULE_LKEY;

	if (status == IB_WC_LOC_ACCESS_ERR)
		rule = MEM_RULE_ACCESS;
	else if (*what == 'a')
		rule = MEM_RULE_ADDRESS;
	mem_violation(list->dev, rule, "%s: lkey %#x, address %#llx, %u octets", what,
		      sge->lkey, sge->addr, sge->length);
	mem_list_close(list);
	return IB_WC_LOC_PROT_ERR;
}

/* Look at the memory of an SGE that is no fast registration. Return: whether it is mapped. */
static bool list_mapped(struct mem_dev *dev, const struct ib_sge *sge, int access)
{
	if (!mem_dma_ok(dev, sge->addr, sge->length))
		return false;
	mem_dma_probe(dev, sge->addr, sge->length, access & IB_ACCESS_LOCAL_WRITE);
	return true;
}

/**
 * mem_list_open - begin to use the memory of SGEs
 * @list: filled
 * @dev: the device
 * @pd: the protection domain of the queue pair
 * @sge: the SGEs, valid until mem_list_close()
 * @num_sge: how many
 * @access: access flags that registrations need
 *
 * Reports a violation if the memory cannot be used.
 *
 * Context: softirq, or any but hard interrupts with softirqs disabled.
 * Return: IB_WC_SUCCESS or IB_WC_LOC_PROT_ERR.
 */
enum ib_wc_status mem_list_open(struct mem_list *list, struct mem_dev *dev,
				struct ib_pd *pd, const struct ib_sge *sge,
				unsigned int num_sge, int access)
{
	enum ib_wc_status status;
	unsigned int i;

	mem_list_init(list, dev, sge);
	for (i = 0; i < num_sge; i++) {
		struct mem_mr *mr = NULL;

		list->mr[i] = NULL;
		list->num_sge = i;
		if (dev->own_lkeys || sge[i].lkey != dev->ib.local_dma_lkey) {
			status = mem_mr_open(dev, pd, sge[i].lkey, sge[i].addr,
					     sge[i].length, access, &mr);
			if (status)
				return list_bad(list, &sge[i], status, "lkey");
			list->mr[i] = mr;
			list->num_sge = i + 1;
		}
		if ((!mr || mr->all) && !list_mapped(dev, &sge[i], access))
			return list_bad(list, &sge[i], IB_WC_LOC_PROT_ERR, "address");
		list->length += sge[i].length;
	}
	list->num_sge = num_sge;
	return IB_WC_SUCCESS;
}

/**
 * mem_list_close - end what mem_list_open() has begun
 * @list: the list
 */
void mem_list_close(struct mem_list *list)
{
	unsigned int i;

	for (i = 0; i < list->num_sge; i++)
		if (list->mr[i])
			mem_mr_close(list->mr[i]);
	list->num_sge = 0;
}

/* Octets that are contiguous where the list is, or 0 at its end */
static u32 list_piece(struct mem_list *list, void **data)
{
	const struct ib_sge *sge;
	u32 left, len;

	while (list->at < list->num_sge && list->offset == list->sge[list->at].length) {
		list->at++;
		list->offset = 0;
	}
	if (list->at == list->num_sge)
		return 0;
	sge = &list->sge[list->at];
	left = sge->length - list->offset;
	if (!list->mr[list->at]) {
		*data = mem_dma_to_virt(list->dev, sge->addr + list->offset, left);
		return left;
	}
	len = mem_mr_piece(list->mr[list->at], sge->addr + list->offset, data);
	return min(left, len);
}

/**
 * mem_list_skip - go on behind what is copied
 * @list: the list, at its beginning
 * @len: octets, which it has
 */
void mem_list_skip(struct mem_list *list, u64 len)
{
	while (len && list->at < list->num_sge) {
		u32 n = min_t(u64, len, list->sge[list->at].length - list->offset);

		list->offset += n;
		len -= n;
		if (list->offset == list->sge[list->at].length) {
			list->at++;
			list->offset = 0;
		}
	}
}

/**
 * mem_list_put - copy into a list
 * @to: the list, which has room for it
 * @data: what to copy
 * @len: octets
 */
void mem_list_put(struct mem_list *to, const void *data, u32 len)
{
	void *piece;
	u32 n;

	while (len) {
		n = min(len, list_piece(to, &piece));
		if (!n)
			return;
		if (piece)
			memcpy(piece, data, n);
		to->offset += n;
		data += n;
		len -= n;
	}
}

/**
 * mem_list_copy - copy from a list to another
 * @to: the destination
 * @from: the source
 * @len: octets, which both have
 *
 * Context: any.
 */
void mem_list_copy(struct mem_list *to, struct mem_list *from, u64 len)
{
	void *dst, *src;
	u32 n;

	while (len) {
		n = min(list_piece(to, &dst), list_piece(from, &src));
		n = min_t(u64, n, len);
		if (!n)
			return;
		if (dst && src)
			memcpy(dst, src, n);
		to->offset += n;
		from->offset += n;
		len -= n;
	}
}

/* What the CPU sees of the memory of an SGE, or NULL */
static void *memory_of_cpu(struct mem_dev *dev, const struct ib_sge *sge)
{
	if (dev->bounce && sge->length)
		return mem_map_data(dev, sge->addr, 1, true);
	return mem_dma_to_virt(dev, sge->addr, sge->length);
}

/* Others may write to the page cache at any time, also while it is being sent. */
static bool memory_is_shared(const void *data)
{
	struct page *page = virt_to_head_page(data);

	return !PageSlab(page) && folio_mapping(page_folio(page));
}

/**
 * mem_list_sum - a checksum of the memory of SGEs
 * @dev: the device
 * @pd: the protection domain of the queue pair
 * @sge: the SGEs
 * @num_sge: how many
 * @sum: returned
 *
 * Only memory by the local DMA lkey has one: what happens to others' keys is for the
 * execution to judge. Pages of the page cache have none.
 *
 * Context: any.
 * Return: whether there is a checksum.
 */
bool mem_list_sum(struct mem_dev *dev, struct ib_pd *pd, const struct ib_sge *sge,
		  unsigned int num_sge, u32 *sum)
{
	u32 lkey = dev->own_lkeys ? pd->local_dma_lkey : dev->ib.local_dma_lkey;
	unsigned int i;

	*sum = 0;
	for (i = 0; i < num_sge; i++) {
		void *data;

		if (sge[i].lkey != lkey || !mem_dma_ok(dev, sge[i].addr, sge[i].length))
			return false;
		data = memory_of_cpu(dev, &sge[i]);
		if (!data || memory_is_shared(data))
			return false;
		*sum = jhash(data, sge[i].length, *sum);
	}
	return true;
}

/**
 * mem_sum_make - the checksum of a work request that will be posted, and is synced for that
 * @dev: the device
 * @pd: the protection domain of the queue
 * @sge: its SGEs
 * @num_sge: how many, as the user says: what is wrong with them is for the post to judge
 * @send: they are a Send's, and not a Receive's
 * @sum: filled
 *
 * Context: any. The caller has disabled no interrupts, as this may take long.
 */
void mem_sum_make(struct mem_dev *dev, struct ib_pd *pd, const struct ib_sge *sge,
		  int num_sge, bool send, struct mem_sum *sum)
{
	int i;

	sum->summed = dev->checksums && num_sge >= 0 && num_sge <= MEM_MAX_SGE &&
		      mem_list_sum(dev, pd, sge, num_sge, &sum->sum);
	for (i = 0; sum->summed && dev->bounce && i < num_sge; i++)
		mem_map_posted(dev, &sge[i], send);
}
