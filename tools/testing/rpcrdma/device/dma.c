// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * DMA operations of the device's own, where the kernel lets a device have them. Each mapping
 * has a bounce buffer, and the device knows all mappings.
 *
 * A DMA address is that of a bounce buffer, which alone the device reads and writes. As long
 * as memory belongs to the device to write to, the CPU sees poison there: from the mapping,
 * or a sync for the device, to a sync for the CPU, or the end of the mapping. So whoever
 * forgets a sync has wrong data.
 */
#include <linux/dma-direct.h>
#include <linux/dma-map-ops.h>
#include <linux/slab.h>

#include "mem.h"

/* A mapping: from map_phys() to unmap_phys(), and to a grace period after that */
struct mem_map {
	struct rcu_head rcu;
	u64 addr;
	size_t size;
	enum dma_data_direction direction;
	bool cpu_has;		/* since a sync for the CPU */
	void *origin;		/* what is mapped */
	void *bounce;		/* for the same octets */
};

/* The mapping that has some octets, or NULL. The caller is in an RCU read-side section. */
static struct mem_map *map_find(struct mem_dev *dev, u64 addr, u64 len)
{
	struct mem_map *map = xa_load(&dev->maps, addr >> PAGE_SHIFT);

	if (map && addr >= map->addr && len <= map->size && addr - map->addr <= map->size - len)
		return map;
	return NULL;
}

/**
 * mem_map_data - mapped memory
 * @dev: the device, which has bounce buffers
 * @addr: its address
 * @len: octets
 * @cpu: as the CPU sees it; else as the device does
 *
 * Context: any. What the device sees stays as long as softirqs are disabled.
 * Return: the memory, or NULL if no mapping has all of it.
 */
void *mem_map_data(struct mem_dev *dev, u64 addr, u64 len, bool cpu)
{
	const struct mem_map *map;
	void *data = NULL;

	rcu_read_lock();
	map = map_find(dev, addr, len);
	if (map)
		data = (cpu ? map->origin : map->bounce) + (addr - map->addr);
	rcu_read_unlock();
	return data;
}

/**
 * mem_map_probe - check that memory is mapped for what the device does with it
 * @dev: the device, which has bounce buffers
 * @addr: its address
 * @len: octets
 * @write: the device writes; else it reads
 *
 * Context: any.
 */
void mem_map_probe(struct mem_dev *dev, u64 addr, u64 len, bool write)
{
	enum dma_data_direction direction = write ? DMA_FROM_DEVICE : DMA_TO_DEVICE;
	const struct mem_map *map;

	rcu_read_lock();
	map = map_find(dev, addr, len);
	if (!map)
		mem_violation(dev, MEM_RULE_UNMAPPED, "address %#llx, %llu octets", addr, len);
	else if (map->direction != direction && map->direction != DMA_BIDIRECTIONAL)
		mem_violation(dev, MEM_RULE_DIRECTION,
			      "address %#llx is mapped %s the device, which may %s it", addr,
			      write ? "to" : "from", write ? "write to" : "read");
	rcu_read_unlock();
}

/**
 * mem_map_posted - check that memory was synced for the device
 * @dev: the device
 * @sge: an SGE that is posted, of memory that is mapped
 * @send: it is a Send's, and not a Receive's
 *
 * Context: any.
 */
void mem_map_posted(struct mem_dev *dev, const struct ib_sge *sge, bool send)
{
	const struct mem_map *map;
	bool stale = false;
	u64 at;

	rcu_read_lock();
	map = map_find(dev, sge->addr, sge->length);
	if (map) {
		at = sge->addr - map->addr;
		stale = send ? memcmp(map->origin + at, map->bounce + at, sge->length) :
			       map->cpu_has;
	}
	rcu_read_unlock();
	if (stale)
		mem_violation(dev, MEM_RULE_SYNC, "a %s of %u octets, address %#llx",
			      send ? "Send" : "Receive", sge->length, sge->addr);
}

#ifdef MEM_DMA_OPS
#define MAP_POISON	0xdb

/* What one mapping has at most. Larger bounce buffers may be missing when memory is short. */
#define MAP_MAX_SIZE	SZ_64K

static void map_sync_for_cpu(struct mem_map *map, u64 at, size_t size)
{
	if (map->direction != DMA_TO_DEVICE)
		memcpy(map->origin + at, map->bounce + at, size);
	map->cpu_has = true;
}

static void map_sync_for_device(struct mem_map *map, u64 at, size_t size)
{
	if (map->direction == DMA_FROM_DEVICE)
		memset(map->origin + at, MAP_POISON, size);
	else
		memcpy(map->bounce + at, map->origin + at, size);
	map->cpu_has = false;
}

/* Have a mapping, or NULL in its place, found by the addresses of its pages. */
static int map_set(struct mem_dev *dev, const struct mem_map *map, struct mem_map *entry)
{
	unsigned long last = (map->addr + map->size - 1) >> PAGE_SHIFT;
	unsigned long i, flags;
	int ret = 0;

	xa_lock_irqsave(&dev->maps, flags);
	for (i = map->addr >> PAGE_SHIFT; i <= last && !ret; i++)
		ret = xa_err(__xa_store(&dev->maps, i, entry, GFP_ATOMIC | __GFP_NOWARN));
	xa_unlock_irqrestore(&dev->maps, flags);
	return ret;
}

/* The buffer is as far into its first page as the origin: allocated is the whole page. */
static void map_free_rcu(struct rcu_head *rcu)
{
	struct mem_map *map = container_of(rcu, struct mem_map, rcu);
	void *start = (void *)((unsigned long)map->bounce & PAGE_MASK);

	free_pages_exact(start, map->bounce - start + map->size);
	kfree(map);
}

/* Forget a mapping. An engine may still be copying, if the user broke the rules. */
static void map_free(struct mem_dev *dev, struct mem_map *map)
{
	map_set(dev, map, NULL);
	call_rcu(&map->rcu, map_free_rcu);
	atomic_dec(&dev->num_maps);
}

static dma_addr_t map_phys(struct device *parent, phys_addr_t phys, size_t size,
			   enum dma_data_direction direction, unsigned long attrs)
{
	struct mem_dev *dev = dev_get_drvdata(parent);
	unsigned int offset = offset_in_page(phys);
	struct mem_map *map;
	void *bounce;

	map = kzalloc(sizeof(*map), GFP_ATOMIC | __GFP_NOWARN);
	/* Page lists need addresses that are as far from the beginning of a page. */
	bounce = alloc_pages_exact(offset + size, GFP_ATOMIC | __GFP_NOWARN);
	if (!map || !bounce)
		goto err;
	map->origin = phys_to_virt(phys);
	map->bounce = bounce + offset;
	map->addr = phys_to_dma(parent, virt_to_phys(map->bounce));
	map->size = size;
	map->direction = direction;
	memcpy(map->bounce, map->origin, size);
	atomic_inc(&dev->num_maps);
	if (map_set(dev, map, map)) {
		map_free(dev, map);
		return DMA_MAPPING_ERROR;
	}
	map_sync_for_device(map, 0, size);
	return map->addr;

err:
	if (bounce)
		free_pages_exact(bounce, offset + size);
	kfree(map);
	return DMA_MAPPING_ERROR;
}

/* The mapping that a sync or the end of it is about, or NULL if there is none like this. */
static struct mem_map *map_named(struct mem_dev *dev, u64 addr, size_t size,
				 enum dma_data_direction direction, const char *what)
{
	struct mem_map *map;

	/* As long as the caller does as it should, the mapping stays. */
	rcu_read_lock();
	map = map_find(dev, addr, size);
	rcu_read_unlock();
	if (map && map->direction == direction)
		return map;
	mem_violation(dev, MEM_RULE_MAPPING, "%s: address %#llx, %zu octets, direction %d", what,
		      addr, size, direction);
	return NULL;
}

static void unmap_phys(struct device *parent, dma_addr_t addr, size_t size,
		       enum dma_data_direction direction, unsigned long attrs)
{
	struct mem_dev *dev = dev_get_drvdata(parent);
	struct mem_map *map = map_named(dev, addr, size, direction, "unmap");

	if (!map)
		return;
	if (map->size != size)
		mem_violation(dev, MEM_RULE_MAPPING, "unmap %zu of %zu octets", size, map->size);
	if (!(attrs & DMA_ATTR_SKIP_CPU_SYNC))
		map_sync_for_cpu(map, 0, map->size);
	map_free(dev, map);
}

static void unmap_sg(struct device *parent, struct scatterlist *sgl, int nents,
		     enum dma_data_direction direction, unsigned long attrs)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(sgl, sg, nents, i)
		unmap_phys(parent, sg_dma_address(sg), sg_dma_len(sg), direction, attrs);
}

static int map_sg(struct device *parent, struct scatterlist *sgl, int nents,
		  enum dma_data_direction direction, unsigned long attrs)
{
	struct scatterlist *sg;
	int i;

	for_each_sg(sgl, sg, nents, i) {
		sg_dma_address(sg) = map_phys(parent, sg_phys(sg), sg->length, direction, attrs);
		if (sg_dma_address(sg) == DMA_MAPPING_ERROR) {
			unmap_sg(parent, sgl, i, direction, attrs);
			return -ENOMEM;
		}
		sg_dma_len(sg) = sg->length;
	}
	return nents;
}

static void sync_for_cpu(struct device *parent, dma_addr_t addr, size_t size,
			 enum dma_data_direction direction)
{
	struct mem_map *map = map_named(dev_get_drvdata(parent), addr, size, direction,
					"sync for CPU");

	if (map)
		map_sync_for_cpu(map, addr - map->addr, size);
}

static void sync_for_device(struct device *parent, dma_addr_t addr, size_t size,
			    enum dma_data_direction direction)
{
	struct mem_map *map = map_named(dev_get_drvdata(parent), addr, size, direction,
					"sync for device");

	if (map)
		map_sync_for_device(map, addr - map->addr, size);
}

static size_t max_mapping_size(struct device *parent)
{
	return MAP_MAX_SIZE;
}

#ifdef MEM_DMA_PAGES
static dma_addr_t map_page(struct device *parent, struct page *page, unsigned long offset,
			   size_t size, enum dma_data_direction direction, unsigned long attrs)
{
	return map_phys(parent, page_to_phys(page) + offset, size, direction, attrs);
}
#endif

static const struct dma_map_ops map_ops = {
#ifdef MEM_DMA_PAGES
	.map_page = map_page,
#else
	.map_phys = map_phys,
#endif
	.mem_unmap_op = unmap_phys,
	.map_sg = map_sg,
	.max_mapping_size = max_mapping_size,
	.sync_single_for_cpu = sync_for_cpu,
	.sync_single_for_device = sync_for_device,
	.unmap_sg = unmap_sg,
};

/**
 * mem_map_init - have a device map memory by bounce buffers, if the kernel lets it
 * @dev: the device, whose parent maps nothing yet
 */
void mem_map_init(struct mem_dev *dev)
{
	dev_set_drvdata(&dev->parent->dev, dev);
	set_dma_ops(&dev->parent->dev, &map_ops);
	dev->bounce = true;
}
#else
void mem_map_init(struct mem_dev *dev)
{
}
#endif
