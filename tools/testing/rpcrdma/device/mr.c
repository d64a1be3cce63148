// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Protection domains and registrations: DMA registrations of all memory, and fast
 * registrations with and without gaps.
 *
 * The upper 24 bits of a key find a registration; its lower 8 bits change with each use.
 * A key is valid from the execution of REG_MR to its invalidation. A copy counts as a user
 * of the registration. Invalidation and deregistration wait until the users that were
 * there have ended; as they are copies in softirqs of other CPUs, they end soon.
 */
#include <linux/log2.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "mem.h"

int mem_alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	if (udata)
		return -EOPNOTSUPP;
	atomic_inc(&to_mem_dev(pd->device)->num_pds);
	return 0;
}

int mem_dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	might_alloc(GFP_KERNEL);
	atomic_dec(&to_mem_dev(pd->device)->num_pds);
	return 0;
}

static void mr_release(struct kref *ref)
{
	struct mem_mr *mr = container_of(ref, struct mem_mr, ref);

	mem_free(mr->dev, mr->pages, mr->max_pages, sizeof(*mr->pages));
	mem_free(mr->dev, mr->gaps, mr->max_pages, sizeof(*mr->gaps));
	mem_account(mr->dev, -(long)sizeof(*mr));
	kfree_rcu(mr, rcu);
}

/**
 * mem_mr_put - give back a reference
 * @mr: the registration
 *
 * Context: any but hard interrupts.
 */
void mem_mr_put(struct mem_mr *mr)
{
	kref_put(&mr->ref, mr_release);
}

static struct mem_mr *mr_alloc(struct ib_pd *pd)
{
	struct mem_dev *dev = to_mem_dev(pd->device);
	struct mem_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	if (!mr)
		return NULL;
	kref_init(&mr->ref);
	spin_lock_init(&mr->lock);
	mr->dev = dev;
	mem_account(dev, sizeof(*mr));
	mr->ib.device = pd->device;
	mr->ib.pd = pd;
	return mr;
}

/* Give a key to a registration that is counted. Return: it, or an error if there is none. */
static struct ib_mr *mr_add(struct mem_mr *mr)
{
	struct mem_dev *dev = mr->dev;
	int ret;

	ret = xa_alloc_cyclic_bh(&dev->mrs, &mr->index, mr, XA_LIMIT(1, 0xfffffe),
				 &dev->mr_next, GFP_KERNEL);
	if (ret < 0) {
		atomic_dec(&dev->num_mrs);
		mem_mr_put(mr);
		return ERR_PTR(ret);
	}
	mr->key = mr->index << 8;
	mr->ib.lkey = mr->key;
	mr->ib.rkey = mr->key;
	return &mr->ib;
}

/* A registration of all memory */
struct ib_mr *mem_get_dma_mr(struct ib_pd *pd, int access)
{
	struct mem_mr *mr = mr_alloc(pd);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	mr->all = true;
	mr->access = access;
	mr->valid = true;
	mr->length = U64_MAX;
	atomic_inc(&mr->dev->num_mrs);
	return mr_add(mr);
}

struct ib_mr *mem_alloc_mr(struct ib_pd *pd, enum ib_mr_type type, u32 max_num_sg)
{
	struct mem_dev *dev = to_mem_dev(pd->device);
	const struct mem_limits *limits = &dev->limits;
	struct mem_mr *mr;

	if (type != IB_MR_TYPE_MEM_REG && !(type == IB_MR_TYPE_SG_GAPS && limits->sg_gaps))
		return ERR_PTR(-EOPNOTSUPP);
	if (!max_num_sg || max_num_sg > limits->max_fast_reg_page_list_len) {
		mem_violation(dev, MEM_RULE_LIMIT, "registration of %u pages", max_num_sg);
		return ERR_PTR(-EINVAL);
	}
	if (!mem_count_in(&dev->num_mrs, limits->max_mr))
		return ERR_PTR(-ENOMEM);
	mr = mr_alloc(pd);
	if (!mr)
		goto err_count;
	mr->max_pages = max_num_sg;
	if (type == IB_MR_TYPE_SG_GAPS)
		mr->gaps = mem_alloc(dev, max_num_sg, sizeof(*mr->gaps));
	else
		mr->pages = mem_alloc(dev, max_num_sg, sizeof(*mr->pages));
	if (!mr->gaps && !mr->pages)
		goto err;
	return mr_add(mr);

err:
	mem_mr_put(mr);
err_count:
	atomic_dec(&dev->num_mrs);
	return ERR_PTR(-ENOMEM);
}

/* Nobody gets a valid key any more; wait for those who have it. */
static void mr_revoke(struct mem_mr *mr)
{
	unsigned long flags;

	spin_lock_irqsave(&mr->lock, flags);
	WRITE_ONCE(mr->valid, false);
	spin_unlock_irqrestore(&mr->lock, flags);
	while (atomic_read_acquire(&mr->users))
		cpu_relax();
}

int mem_dereg_mr(struct ib_mr *ib, struct ib_udata *udata)
{
	struct mem_mr *mr = to_mem_mr(ib);
	struct mem_dev *dev = mr->dev;

	might_alloc(GFP_KERNEL);
	if (atomic_read(&mr->wrs))
		mem_violation(dev, MEM_RULE_MR_IN_USE,
			      "registration %#x freed while REG_MR is posted", mr->index);
	xa_erase_bh(&dev->mrs, mr->index);
	mr_revoke(mr);
	atomic_dec(&dev->num_mrs);
	mem_mr_put(mr);
	return 0;
}

static int mr_set_page(struct ib_mr *ib, u64 addr)
{
	struct mem_mr *mr = to_mem_mr(ib);

	if (mr->num_pages == mr->max_pages)
		return -ENOMEM;
	mr->pages[mr->num_pages++] = addr;
	return 0;
}

/* Like ib_sg_to_pages(), but entries may begin and end anywhere. */
static int mr_map_gaps(struct mem_mr *mr, struct scatterlist *sgl, int nents,
		       unsigned int *offset)
{
	unsigned int skip = offset ? *offset : 0;
	struct scatterlist *sg;
	u64 length = 0;
	int i;

	if (nents <= 0 || skip > sg_dma_len(sgl))
		return -EINVAL;
	mr->ib.iova = sg_dma_address(sgl) + skip;
	for_each_sg(sgl, sg, nents, i) {
		struct mem_gap *gap = &mr->gaps[i];

		if (i == mr->max_pages)
			break;
		gap->addr = sg_dma_address(sg) + skip;
		gap->len = sg_dma_len(sg) - skip;
		gap->offset = length;
		length += gap->len;
		skip = 0;
	}
	mr->ib.length = length;
	mr->num_pages = i;
	if (offset)
		*offset = 0;
	return i;
}

int mem_map_mr_sg(struct ib_mr *ib, struct scatterlist *sgl, int nents, unsigned int *offset)
{
	struct mem_mr *mr = to_mem_mr(ib);
	/* ib_core invalidates what is its own device's alone in the same chain as REG_MR. */
	bool valid = READ_ONCE(mr->valid) && mr->access != IB_ACCESS_LOCAL_WRITE;

	if (valid || atomic_read(&mr->wrs))
		mem_violation(mr->dev, MEM_RULE_MR_IN_USE,
			      "registration %#x mapped while it is posted or valid", mr->index);
	mr->num_pages = 0;
	if (mr->gaps)
		return mr_map_gaps(mr, sgl, nents, offset);
	if (ib->page_size < PAGE_SIZE || !is_power_of_2(ib->page_size)) {
		mem_violation(mr->dev, MEM_RULE_REG_PAGES, "page size %u", ib->page_size);
		return -EINVAL;
	}
	return ib_sg_to_pages(ib, sgl, nents, offset, mr_set_page);
}

/* Is what REG_MR registers something that the device can do? */
static bool mr_shape_ok(struct mem_mr *mr)
{
	u64 mask = mr->ib.page_size - 1;
	unsigned int i;
	u64 octets;

	if (!mr->num_pages || !mr->ib.length || mr->ib.length > mr->dev->limits.max_mr_size)
		return false;
	if (mr->gaps)
		return true;
	for (i = 0; i < mr->num_pages; i++)
		if (mr->pages[i] & mask)
			return false;
	octets = (u64)mr->num_pages * mr->ib.page_size;
	return (mr->ib.iova & mask) + mr->ib.length <= octets;
}

/*
 * Memory that is written to has to be mapped for that, and memory that is offered to be read
 * for reading. So what the peer is to read cannot have remote write access.
 */
static void mr_probe(struct mem_mr *mr, u64 addr, u64 len, int access)
{
	bool write = access & (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE);

	if (write)
		mem_dma_probe(mr->dev, addr, len, true);
	if (!write || access & IB_ACCESS_REMOTE_READ)
		mem_dma_probe(mr->dev, addr, len, false);
}

/*
 * Do the addresses that REG_MR registers belong to mappings? The first page of a list may
 * begin before its mapping does.
 */
static bool mr_mapped(struct mem_mr *mr, int access, u64 *bad)
{
	u64 first = mr->ib.iova & (mr->ib.page_size - 1);
	u64 left = mr->ib.length, len;
	unsigned int i;

	for (i = 0; i < mr->num_pages; i++, first = 0, left -= len) {
		*bad = mr->gaps ? mr->gaps[i].addr : mr->pages[i] + first;
		len = mr->gaps ? mr->gaps[i].len : min(left, mr->ib.page_size - first);
		if (!mem_dma_ok(mr->dev, *bad, mr->gaps ? len : 1))
			return false;
		mr_probe(mr, *bad, len, access);
	}
	return true;
}

/* What is wrong with the pages of a REG_MR? They do not change while it is posted. */
static bool mr_pages_ok(struct mem_qp *qp, struct mem_swqe *wqe)
{
	struct mem_mr *mr = wqe->mr;
	u64 bad;

	if (!mr_shape_ok(mr))
		mem_violation(qp->dev, MEM_RULE_REG_PAGES,
			      "QP %u registers %u pages, iova %#llx, %llu octets", qp->number,
			      mr->num_pages, mr->ib.iova, mr->ib.length);
	else if (!mr_mapped(mr, wqe->access, &bad))
		mem_violation(qp->dev, MEM_RULE_ADDRESS,
			      "QP %u registers address %#llx, which is not mapped", qp->number,
			      bad);
	else
		return true;
	return false;
}

/*
 * What is wrong with a REG_MR? This may take long for many pages, so it holds no lock: no
 * other work request registers it meanwhile. Return: whether nothing is wrong.
 */
static bool mr_register_ok(struct mem_qp *qp, struct mem_swqe *wqe)
{
	struct mem_mr *mr = wqe->mr;

	if (mr->ib.pd != qp->ib.pd)
		mem_violation(qp->dev, MEM_RULE_LKEY, "QP %u registers memory of another PD",
			      qp->number);
	else if (mr->all || wqe->rkey >> 8 != mr->index)
		mem_violation(qp->dev, MEM_RULE_REG_KEY,
			      "QP %u registers key %#x, but the registration has %#x",
			      qp->number, wqe->rkey, mr->index << 8);
	else if (wqe->access & IB_ACCESS_REMOTE_WRITE && !(wqe->access & IB_ACCESS_LOCAL_WRITE))
		mem_violation(qp->dev, MEM_RULE_ACCESS,
			      "QP %u registers with remote but without local write", qp->number);
	else
		return mr_pages_ok(qp, wqe);
	return false;
}

static enum ib_wc_status mr_register(struct mem_qp *qp, struct mem_swqe *wqe)
{
	struct mem_mr *mr = wqe->mr;

	lockdep_assert_held(&mr->lock);
	if (mr->valid) {
		mem_violation(qp->dev, MEM_RULE_REG_VALID,
			      "QP %u registers %#x, which is valid as %#x", qp->number,
			      wqe->rkey, mr->key);
		return IB_WC_LOC_QP_OP_ERR;
	}
	mr->key = wqe->rkey;
	mr->access = wqe->access;
	mr->iova = mr->ib.iova;
	mr->length = mr->ib.length;
	mr->page_shift = mr->gaps ? 0 : ilog2(mr->ib.page_size);
	WRITE_ONCE(mr->valid, true);	/* mem_map_mr_sg() looks without the lock */
	return IB_WC_SUCCESS;
}

/**
 * mem_mr_register - execute REG_MR
 * @qp: the queue pair
 * @wqe: the work request
 *
 * Context: softirq.
 * Return: the status of the work request.
 */
enum ib_wc_status mem_mr_register(struct mem_qp *qp, struct mem_swqe *wqe)
{
	enum ib_wc_status status;
	unsigned long flags;

	if (!mr_register_ok(qp, wqe))
		return IB_WC_LOC_QP_OP_ERR;
	spin_lock_irqsave(&wqe->mr->lock, flags);
	status = mr_register(qp, wqe);
	spin_unlock_irqrestore(&wqe->mr->lock, flags);
	return status;
}

/* The piece with an offset: the last one that does not begin behind it. */
static struct mem_gap *mr_gap(struct mem_mr *mr, u64 offset)
{
	unsigned int low = 0, high = mr->num_pages;

	while (high - low > 1) {
		unsigned int middle = (low + high) / 2;

		if (mr->gaps[middle].offset <= offset)
			low = middle;
		else
			high = middle;
	}
	return &mr->gaps[low];
}

/* The DMA address of an address in a registration; @len: octets contiguous from there */
static u64 mr_address(struct mem_mr *mr, u64 va, u32 *len)
{
	if (mr->gaps) {
		const struct mem_gap *gap = mr_gap(mr, va - mr->iova);
		u64 in_gap = va - mr->iova - gap->offset;

		*len = gap->len - in_gap;
		return gap->addr + in_gap;
	}
	if (mr->pages) {
		u64 mask = (1ULL << mr->page_shift) - 1;
		u64 at = va - (mr->iova & ~mask);

		*len = min(mask + 1 - (at & mask), mr->iova + mr->length - va);
		return mr->pages[at >> mr->page_shift] + (at & mask);
	}
	*len = U32_MAX;
	return va;
}

/* The registration of a key, or NULL. The caller is in an RCU read-side section. */
static struct mem_mr *mr_find(struct mem_dev *dev, u32 key)
{
	return xa_load(&dev->mrs, key >> 8);
}

/* Are the first octets of a registration still mapped? */
static void mr_probe_begin(struct mem_mr *mr)
{
	u32 len;
	u64 addr = mr_address(mr, mr->iova, &len);

	mr_probe(mr, addr, len, mr->access);
}

/**
 * mem_mr_invalidate - execute the invalidation of a key
 * @dev: the device that has the registration
 * @pd: the protection domain of the queue pair there
 * @key: the key
 * @remote: the peer asks for it, by Send with Invalidate
 *
 * Returns when no copy uses the key any more.
 *
 * Context: softirq. The caller uses no registration.
 * Return: IB_WC_SUCCESS; else the key is not valid, or not of @pd.
 */
enum ib_wc_status mem_mr_invalidate(struct mem_dev *dev, struct ib_pd *pd, u32 key,
				    bool remote)
{
	enum ib_wc_status status = IB_WC_LOC_QP_OP_ERR;
	struct mem_mr *mr;
	unsigned long flags;

	rcu_read_lock();
	mr = mr_find(dev, key);
	if (mr) {
		spin_lock_irqsave(&mr->lock, flags);
		if (mr->valid && !mr->all && mr->key == key && mr->ib.pd == pd &&
		    (!remote || mr->access & (IB_ACCESS_REMOTE_READ |
					      IB_ACCESS_REMOTE_WRITE))) {
			WRITE_ONCE(mr->valid, false);
			status = IB_WC_SUCCESS;
		}
		spin_unlock_irqrestore(&mr->lock, flags);
		while (!status && atomic_read_acquire(&mr->users))
			cpu_relax();
		/* It is unmapped after its invalidation, not before. */
		if (!status)
			mr_probe_begin(mr);
	}
	rcu_read_unlock();
	return status;
}

/**
 * mem_mr_open - begin to use memory of a registration
 * @dev: the device that has it
 * @pd: the protection domain that it has to be of
 * @key: its lkey or rkey
 * @va: the first address
 * @len: octets
 * @access: the flags that it needs
 * @out: returned, for mem_mr_close()
 *
 * Context: softirq, or any but hard interrupts with softirqs disabled.
 * Return: IB_WC_SUCCESS; IB_WC_LOC_PROT_ERR if the key, the protection domain, or the
 * bounds are wrong; IB_WC_LOC_ACCESS_ERR if the flags are.
 */
enum ib_wc_status mem_mr_open(struct mem_dev *dev, struct ib_pd *pd, u32 key, u64 va,
			      u64 len, int access, struct mem_mr **out)
{
	enum ib_wc_status status = IB_WC_LOC_PROT_ERR;
	struct mem_mr *mr;
	unsigned long flags;

	rcu_read_lock();
	mr = mr_find(dev, key);
	if (!mr)
		goto unlock;
	spin_lock_irqsave(&mr->lock, flags);
	if (!mr->valid || mr->key != key || mr->ib.pd != pd)
		goto unlock_mr;
	if (va < mr->iova || len > mr->length || va - mr->iova > mr->length - len)
		goto unlock_mr;
	status = (mr->access & access) == access ? IB_WC_SUCCESS : IB_WC_LOC_ACCESS_ERR;
	if (!status) {
		atomic_inc(&mr->users);
		*out = mr;
	}
unlock_mr:
	spin_unlock_irqrestore(&mr->lock, flags);
unlock:
	rcu_read_unlock();
	return status;
}

/**
 * mem_mr_close - end what mem_mr_open() has begun
 * @mr: the registration
 */
void mem_mr_close(struct mem_mr *mr)
{
	atomic_dec_return_release(&mr->users);
}

/**
 * mem_mr_piece - memory of an open registration
 * @mr: the registration
 * @va: an address in it
 * @data: returned: where that is, or NULL if it is not memory
 *
 * Return: how many octets are contiguous from there; never 0.
 */
u32 mem_mr_piece(struct mem_mr *mr, u64 va, void **data)
{
	u32 len;
	u64 addr = mr_address(mr, va, &len);

	/* All memory: how much of it there is, the SGE says. */
	*data = mem_dma_to_virt(mr->dev, addr, mr->all ? 1 : len);
	return len;
}

/**
 * mem_mr_probe - check that memory of an open registration is mapped, if anybody knows
 * @mr: the registration
 * @va: an address in it
 * @write: the device writes; else it reads
 */
void mem_mr_probe(struct mem_mr *mr, u64 va, bool write)
{
	u32 len;
	u64 addr = mr_address(mr, va, &len);

	/* All memory: how much of it is used, nobody says here. */
	if (!mr->all)
		mem_dma_probe(mr->dev, addr, len, write);
}
