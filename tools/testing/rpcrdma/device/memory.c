// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Memory as a work request names it: from a DMA address back to the page, and lists of
 * SGEs that are copied piece by piece, so that the payload is copied once.
 *
 * With bounce buffers a DMA address is that of the bounce buffer. The device then reads
 * and writes this buffer and not what was mapped, so that a missing sync is seen.
 */
#include <linux/dma-direct.h>
#include <linux/jhash.h>
#include <linux/pagemap.h>
#include <linux/mm.h>

#include "mem.h"

/**
 * mem_dma_to_virt - where memory is
 * @dev: the device
 * @addr: its address as in an SGE
 * @len: octets
 *
 * Context: any.
 * Return: the memory, or NULL if the address is not of memory.
 */
void *mem_dma_to_virt(struct mem_dev *dev, u64 addr, u64 len)
{
	phys_addr_t phys;

	if (!dev->parent) {
		void *virt = (void *)(uintptr_t)addr;

		return virt_addr_valid(virt) ? virt : NULL;
	}
	phys = dma_to_phys(&dev->parent->dev, addr);
	if (phys + len < phys || !pfn_valid(PHYS_PFN(phys)) ||
	    (len && !pfn_valid(PHYS_PFN(phys + len - 1))))
		return NULL;
	return phys_to_virt(phys);
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
		list->mr[i] = NULL;
		list->num_sge = i;
		if (dev->own_lkeys || sge[i].lkey != dev->ib.local_dma_lkey) {
			status = mem_mr_open(dev, pd, sge[i].lkey, sge[i].addr,
					     sge[i].length, access, &list->mr[i]);
			if (status)
				return list_bad(list, &sge[i], status, "lkey");
		} else if (!mem_dma_to_virt(dev, sge[i].addr, sge[i].length)) {
			return list_bad(list, &sge[i], IB_WC_LOC_PROT_ERR, "address");
		}
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
		void *data = mem_dma_to_virt(dev, sge[i].addr, sge[i].length);

		if (sge[i].lkey != lkey || !data || memory_is_shared(data))
			return false;
		*sum = jhash(data, sge[i].length, *sum);
	}
	return true;
}
