// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * KUnit suite of server/: RDMA Reads and Writes. A copy of rw.c is compiled here, with
 * functions of this file in the place of rdma_rw's, of the send queue's and of the
 * allocator's. They move the octets, and count what is made and undone.
 */
#include <kunit/test.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <rdma/rw.h>

/* The names of the copy */
#define svcrdma_rw_chain_init		rw_test_chain_init
#define svcrdma_rw_chain_destroy	rw_test_chain_destroy
#define svcrdma_rw_chain_wrs		rw_test_chain_wrs
#define svcrdma_rw_chain_post		rw_test_chain_post
#define svcrdma_rw_limits		rw_test_limits
#define svcrdma_rw_chain_add		rw_test_chain_add

#include "../server/server_private.h"

#define CONTEXTS	512
#define PAGES		8
#define HEAD		3000	/* octets; it begins 1000 before the end of a page */
#define TAIL		200	/* octets; it begins 100 before the end of a page */
#define BASE		1234U	/* where the data begins in the pages */
#define PAGE_LEN	(6 * PAGE_SIZE + 777)
#define ALL		(HEAD + PAGE_LEN + TAIL)
#define HANDLE		0xabad1deaU
#define REMOTE		0x123456789000ULL
#define POISON		((void *)0x5a5a5a50UL)
#define ANY_SG		64

/* What rdma_rw was told of a context */
struct context {
	struct scatterlist *sgl;
	u32 num_sg;
	u64 address;
	u32 handle;
	enum dma_data_direction direction;
	bool live;
	struct ib_send_wr wr;
};

/* A service, a request with a message, and the requester's memory */
struct rw {
	struct svcrdma_service service;
	struct svcrdma_request request;
	struct rpcrdma_conn conn;
	struct rpcrdma_device device;
	struct ib_device ib;
	struct ib_port_data port;
	struct ib_qp qp;
	struct xdr_buf message;
	struct page *pages[PAGES];
	struct page *kvecs;		/* two pages for each */
	struct rpcrdma_segment segment;
	u8 remote[ALL];
	u8 pattern[ALL];
	u8 want[ALL];
	u8 have[ALL];

	struct context context[CONTEXTS];
	unsigned int num_contexts;
	unsigned int live;
	unsigned int sges;		/* elements of one work request */
	unsigned int fail_after;	/* so many contexts */
	int fail;
	unsigned int wrong;		/* what no user of rdma_rw may do */
	unsigned int returned;		/* calls of svcrdma_service_returned() */
	unsigned int returned_early;

	struct rpcrdma_chain *chain;	/* what was posted, and how */
	struct ib_send_wr *first;
	struct ib_send_wr *last;
	bool signalled;
	int post_ret;

	int allocated;
	int allocations_left;
};

static struct rw *rw;	/* Tests run one at a time. */

static int rw_test_ctx_init(struct rdma_rw_ctx *ctx, struct ib_qp *qp, u32 port_num,
			    struct scatterlist *sg, u32 sg_cnt, u32 sg_offset, u64 remote_addr,
			    u32 rkey, enum dma_data_direction dir)
{
	const struct svcrdma_rw_chain *chain = &rw->request.rw_chain;

	if (rw->num_contexts >= rw->fail_after)
		return rw->fail;
	rw->wrong += qp != &rw->qp || port_num != rw->conn.port || sg_offset ||
		     rw->num_contexts == CONTEXTS || !sg_cnt || sg_nents(sg) != sg_cnt ||
		     sg < chain->sgl || sg + sg_cnt > chain->sgl + chain->max_sg ||
		     ctx != &chain->rw[chain->num_rws].ctx || chain->num_rws >= chain->max_rws;
	ctx->nr_ops = rw->num_contexts;
	rw->context[rw->num_contexts++] = (struct context){
		sg, sg_cnt, remote_addr, rkey, dir, true,
	};
	rw->live++;
	return DIV_ROUND_UP(sg_cnt, rw->sges);
}

static void rw_test_ctx_destroy(struct rdma_rw_ctx *ctx, struct ib_qp *qp, u32 port_num,
				struct scatterlist *sg, u32 sg_cnt, enum dma_data_direction dir)
{
	struct context *context = &rw->context[ctx->nr_ops];

	rw->wrong += qp != &rw->qp || port_num != rw->conn.port || !context->live ||
		     sg != context->sgl || sg_cnt != context->num_sg || dir != context->direction;
	context->live = false;
	rw->live--;
}

static struct ib_send_wr *rw_test_ctx_wrs(struct rdma_rw_ctx *ctx, struct ib_qp *qp,
					  u32 port_num, struct ib_cqe *cqe,
					  struct ib_send_wr *chain_wr)
{
	struct context *context = &rw->context[ctx->nr_ops];

	rw->wrong += qp != &rw->qp || port_num != rw->conn.port || cqe || !context->live;
	context->wr.next = chain_wr;
	return &context->wr;
}

static int rw_test_post(struct rpcrdma_conn *conn, struct rpcrdma_chain *chain,
			struct ib_send_wr *first, struct ib_send_wr *last, unsigned int flags,
			bool *posted)
{
	rw->wrong += conn != &rw->conn || !(flags & RPCRDMA_POST_LATER) || posted;
	rw->chain = chain;
	rw->first = first;
	rw->last = last;
	rw->signalled = flags & RPCRDMA_POST_SIGNALLED;
	return rw->post_ret;
}

/* Whoever waits for this looks at once whether there is enough now. */
static void rw_test_returned(struct svcrdma_service *service)
{
	rw->returned++;
	rw->returned_early += rw->live || atomic_read(&service->read_wrs);
}

static void *rw_test_alloc(size_t size, gfp_t gfp)
{
	void *memory;

	if (!rw->allocations_left)
		return NULL;
	rw->allocations_left--;
	memory = kzalloc(size, gfp);
	rw->allocated += !!memory;
	return memory;
}

static void rw_test_free(const void *memory)
{
	rw->allocated -= !!memory;
	kfree(memory);
}

#define rdma_rw_ctx_init		rw_test_ctx_init
#define rdma_rw_ctx_destroy		rw_test_ctx_destroy
#define rdma_rw_ctx_wrs			rw_test_ctx_wrs
#undef kvmalloc
#define kvmalloc			rw_test_alloc
#define kvfree				rw_test_free
#define rpcrdma_chain_post		rw_test_post
#define svcrdma_service_returned	rw_test_returned

#include "../server/rw.c"

/* A page has the octets of two kvecs, each across a page boundary. */
static void make_message(struct kunit *test)
{
	struct page *block;
	unsigned int i;

	rw->kvecs = alloc_pages(GFP_KERNEL, 2);
	KUNIT_ASSERT_NOT_NULL(test, rw->kvecs);
	block = alloc_pages(GFP_KERNEL, 2);
	KUNIT_ASSERT_NOT_NULL(test, block);
	split_page(block, 2);
	for (i = 0; i < PAGES; i++) {
		/* The first four are neighbours, the others in no order. */
		rw->pages[i] = i < 4 ? block + i : alloc_page(GFP_KERNEL);
		KUNIT_ASSERT_NOT_NULL(test, rw->pages[i]);
	}
	rw->message.head[0].iov_base = page_address(rw->kvecs) + PAGE_SIZE - 1000;
	rw->message.head[0].iov_len = HEAD;
	rw->message.tail[0].iov_base = page_address(rw->kvecs) + 3 * PAGE_SIZE - 100;
	rw->message.tail[0].iov_len = TAIL;
	rw->message.pages = rw->pages;
	rw->message.page_base = BASE;
	rw->message.page_len = PAGE_LEN;
	rw->message.len = ALL;
	/* Never zero, and not the same at places that could be mixed up */
	for (i = 0; i < ALL; i++)
		rw->pattern[i] = 1 + i % 251;
}

static int rw_init(struct kunit *test)
{
	rw = kunit_kzalloc(test, sizeof(*rw), GFP_KERNEL);
	if (!rw)
		return -ENOMEM;
	test->priv = rw;
	rw->port.immutable.core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	rw->ib.port_data = &rw->port;
	rw->qp.device = &rw->ib;
	rw->device.ib = &rw->ib;
	rw->device.max_sg_len = 4 * PAGE_SIZE;
	rw->conn.device = &rw->device;
	rw->conn.qp = &rw->qp;
	rw->conn.max_chain = 2 * ANY_SG;
	rw->service.conn = &rw->conn;
	rw->service.max_write_sg = ANY_SG;
	rw->service.max_read_sg = ANY_SG;
	mutex_init(&rw->service.read_start);
	rw->request.service = &rw->service;
	/* What follows the few elements of a chain */
	rw->request.carried = POISON;
	rw->segment = (struct rpcrdma_segment){ .handle = HANDLE, .length = ALL, .offset = REMOTE };
	rw->sges = 1;
	rw->fail_after = CONTEXTS;
	rw->allocations_left = INT_MAX;
	make_message(test);
	return 0;
}

static void rw_exit(struct kunit *test)
{
	unsigned int i;

	if (!rw)
		return;
	KUNIT_EXPECT_EQ(test, rw->wrong, 0);
	KUNIT_EXPECT_EQ(test, rw->live, 0);
	KUNIT_EXPECT_EQ(test, rw->allocated, 0);
	KUNIT_EXPECT_EQ(test, rw->returned_early, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&rw->service.read_wrs), 0);
	KUNIT_EXPECT_PTR_EQ(test, rw->request.carried, POISON);
	for (i = 0; i < PAGES; i++)
		if (rw->pages[i])
			__free_page(rw->pages[i]);
	if (rw->kvecs)
		__free_pages(rw->kvecs, 2);
	rw = NULL;
}

static void begin(struct kunit *test, enum dma_data_direction direction, unsigned int rws,
		  unsigned int sg)
{
	KUNIT_ASSERT_EQ(test, svcrdma_rw_chain_init(&rw->request.rw_chain, direction, rws, sg),
			0);
}

static int add(u32 at, u32 octets, u32 skip)
{
	int ret;

	mutex_lock(&rw->service.read_start);
	ret = svcrdma_rw_chain_add(&rw->request, &rw->message, at, octets, &rw->segment, skip);
	mutex_unlock(&rw->service.read_start);
	return ret;
}

static void end(void)
{
	svcrdma_rw_chain_destroy(&rw->request);
}

/* As the device does it. Return: how many octets. */
static u32 transfer_context(struct kunit *test, const struct context *context)
{
	bool reads = context->direction == DMA_FROM_DEVICE;
	u64 at = context->address - REMOTE;
	struct scatterlist *sg;
	u32 octets = 0;
	int i;

	KUNIT_EXPECT_EQ(test, context->handle, HANDLE);
	KUNIT_EXPECT_LE(test, context->num_sg,
			reads ? rw->service.max_read_sg : rw->service.max_write_sg);
	for_each_sg(context->sgl, sg, context->num_sg, i) {
		u8 *local = page_address(sg_page(sg)) + sg->offset;

		KUNIT_ASSERT_GT(test, sg->length, 0);
		KUNIT_ASSERT_LE(test, at + octets + sg->length, ALL);
		if (reads)	/* rdma_rw takes the number of elements for that of pages. */
			KUNIT_EXPECT_LE(test, sg->offset + sg->length, PAGE_SIZE);
		KUNIT_EXPECT_LE(test, sg->length, rw->device.max_sg_len);
		memcpy(reads ? local : rw->remote + at + octets,
		       reads ? rw->remote + at + octets : local, sg->length);
		octets += sg->length;
	}
	return octets;
}

/* All contexts that are not undone. Return: how many octets. */
static u32 transfer(struct kunit *test)
{
	unsigned int i;
	u32 octets = 0;

	for (i = 0; i < rw->num_contexts; i++)
		if (rw->context[i].live)
			octets += transfer_context(test, &rw->context[i]);
	return octets;
}

/* Move a part of the message, in as many chains as it takes. Return: how many. */
static unsigned int move(struct kunit *test, enum dma_data_direction direction, u32 at, u32 octets,
			 unsigned int rws, unsigned int sg)
{
	unsigned int chains = 0;
	u32 moved = 0;

	while (moved < octets) {
		int ret;

		begin(test, direction, rws, sg);
		ret = add(at + moved, octets - moved, at + moved);
		KUNIT_ASSERT_GT(test, ret, 0);
		KUNIT_ASSERT_EQ(test, transfer(test), ret);
		end();
		rw->num_contexts = 0;
		moved += ret;
		chains++;
	}
	KUNIT_EXPECT_EQ(test, moved, octets);
	return chains;
}

/* Fill both ends, move, and look at each octet of both. */
static void check_move(struct kunit *test, enum dma_data_direction direction, u32 at, u32 octets,
		       unsigned int rws, unsigned int sg)
{
	bool reads = direction == DMA_FROM_DEVICE;

	memset(rw->want, 0, ALL);
	memcpy(rw->remote, reads ? rw->pattern : rw->want, ALL);
	write_bytes_to_xdr_buf(&rw->message, 0, reads ? rw->want : rw->pattern, ALL);
	memcpy(rw->want + at, rw->pattern + at, octets);
	move(test, direction, at, octets, rws, sg);
	read_bytes_from_xdr_buf(&rw->message, 0, rw->have, ALL);
	KUNIT_EXPECT_FALSE_MSG(test, memcmp(reads ? rw->have : rw->remote, rw->want, ALL) ||
			       memcmp(reads ? rw->remote : rw->have, rw->pattern, ALL),
			       "%s from %u, %u octets, %u rws, %u sg",
			       reads ? "Reads" : "Writes", at, octets, rws, sg);
}

struct move_row {
	const char *name;
	u32 at;
	u32 octets;
};

static const struct move_row move_rows[] = {
	{ "all", 0, ALL },
	{ "one octet", 0, 1 },
	{ "the last octet", ALL - 1, 1 },
	{ "the head", 0, HEAD },
	{ "a part of the head across pages", 999, 2 },
	{ "the end of the head", HEAD - 1, 1 },
	{ "head and pages", 500, HEAD + PAGE_SIZE },
	{ "from the first octet of the pages", HEAD, PAGE_LEN },
	{ "a whole page", HEAD + PAGE_SIZE - BASE, PAGE_SIZE },
	{ "whole pages", HEAD + PAGE_SIZE - BASE, 5 * PAGE_SIZE },
	{ "whole pages and an octet", HEAD + PAGE_SIZE - BASE, 5 * PAGE_SIZE + 1 },
	{ "an octet and whole pages", HEAD + PAGE_SIZE - BASE - 1, 5 * PAGE_SIZE + 1 },
	{ "the end of the pages", HEAD + PAGE_LEN - 1, 1 },
	{ "pages and tail", HEAD + PAGE_LEN - 5000, 5000 + 150 },
	{ "the tail", HEAD + PAGE_LEN, TAIL },
	{ "a part of the tail across pages", HEAD + PAGE_LEN + 99, 2 },
};

KUNIT_ARRAY_PARAM_DESC(move, move_rows, name);

/* Each octet goes once, to its place, and no other is touched, whatever the limits are. */
static void test_move(struct kunit *test)
{
	static const unsigned int limits[] = { 1, 3, SVCRDMA_FEW_SG, ANY_SG };
	const struct move_row *row = test->param_value;
	unsigned int i, n;

	for (i = 0; i < ARRAY_SIZE(limits); i++) {
		for (n = 0; n < ARRAY_SIZE(limits); n++) {
			rw->service.max_write_sg = limits[i];
			rw->service.max_read_sg = limits[i];
			rw->conn.max_chain = 2 * limits[n];
			rw->device.max_sg_len = (1 + i) * PAGE_SIZE;
			check_move(test, DMA_TO_DEVICE, row->at, row->octets, limits[n], ANY_SG);
			check_move(test, DMA_TO_DEVICE, row->at, row->octets, ANY_SG, limits[n]);
			check_move(test, DMA_FROM_DEVICE, row->at, row->octets, limits[n], ANY_SG);
			check_move(test, DMA_FROM_DEVICE, row->at, row->octets, ANY_SG, limits[n]);
		}
	}
}

/* A context that has space for all takes all: edges of head, pages and tail count. */
static void test_one_context(struct kunit *test)
{
	begin(test, DMA_TO_DEVICE, 1, ANY_SG);
	KUNIT_EXPECT_EQ(test, add(0, ALL, 0), ALL);
	KUNIT_EXPECT_EQ(test, rw->num_contexts, 1);
	end();
	begin(test, DMA_FROM_DEVICE, 1, ANY_SG);
	KUNIT_EXPECT_EQ(test, add(0, ALL, 0), ALL);
	KUNIT_EXPECT_EQ(test, rw->num_contexts, 2);
	end();
}

/* Return: elements for four pages that are neighbours. */
static unsigned int elements(struct kunit *test, enum dma_data_direction direction,
			     unsigned int max_sg_len)
{
	unsigned int num;

	rw->device.max_sg_len = max_sg_len;
	rw->message.page_base = 0;
	begin(test, direction, 1, ANY_SG);
	KUNIT_EXPECT_EQ(test, add(HEAD, 4 * PAGE_SIZE, 0), 4 * PAGE_SIZE);
	num = rw->request.rw_chain.num_sg;
	end();
	return num;
}

static void test_neighbours(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, elements(test, DMA_TO_DEVICE, 4 * PAGE_SIZE), 1);
	KUNIT_EXPECT_EQ(test, elements(test, DMA_TO_DEVICE, 4 * PAGE_SIZE - 1), 2);
	KUNIT_EXPECT_EQ(test, elements(test, DMA_TO_DEVICE, PAGE_SIZE), 4);
	KUNIT_EXPECT_EQ(test, elements(test, DMA_FROM_DEVICE, 4 * PAGE_SIZE), 4);
}

/* A chain takes no more when its work requests are more than half of what it may have. */
static void test_full_by_wrs(struct kunit *test)
{
	struct svcrdma_rw_chain *chain = &rw->request.rw_chain;

	rw->conn.max_chain = 4;
	begin(test, DMA_TO_DEVICE, ANY_SG, ANY_SG);
	KUNIT_EXPECT_EQ(test, add(0, 100, 0), 100);
	KUNIT_EXPECT_EQ(test, add(100, 100, 100), 100);
	KUNIT_EXPECT_EQ(test, chain->wrs, 2);
	KUNIT_EXPECT_EQ(test, add(200, 100, 200), 100);
	KUNIT_EXPECT_EQ(test, chain->wrs, 3);
	KUNIT_EXPECT_EQ(test, add(300, 100, 300), 0);
	end();
}

static void test_full_by_contexts(struct kunit *test)
{
	unsigned int i;

	begin(test, DMA_TO_DEVICE, SVCRDMA_FEW_RWS, ANY_SG);
	for (i = 0; i < SVCRDMA_FEW_RWS; i++)
		KUNIT_EXPECT_EQ(test, add(i, 1, i), 1);
	KUNIT_EXPECT_EQ(test, add(i, 1, i), 0);
	end();
	/* Whatever the peer sends */
	rw->conn.max_chain = CONTEXTS;
	begin(test, DMA_TO_DEVICE, CONTEXTS, CONTEXTS);
	for (i = 0; i < SVCRDMA_MAX_RWS; i++)
		KUNIT_EXPECT_EQ(test, add(i, 1, i), 1);
	KUNIT_EXPECT_EQ(test, add(i, 1, i), 0);
	end();
}

static void test_full_by_elements(struct kunit *test)
{
	unsigned int i;

	rw->conn.max_chain = CONTEXTS;
	begin(test, DMA_TO_DEVICE, ANY_SG, SVCRDMA_FEW_SG);
	for (i = 0; i < SVCRDMA_FEW_SG; i++)
		KUNIT_EXPECT_EQ(test, add(i, 1, i), 1);
	KUNIT_EXPECT_EQ(test, add(i, 1, i), 0);
	end();
}

/* Reads count for read admission while they are in flight, Writes do not. */
static void test_admission(struct kunit *test)
{
	atomic_t *wrs = &rw->service.read_wrs;

	rw->message.page_base = 0;
	rw->service.max_read_sg = 3;
	begin(test, DMA_FROM_DEVICE, 8, ANY_SG);
	KUNIT_EXPECT_EQ(test, add(HEAD, 5 * PAGE_SIZE, 0), 5 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, atomic_read(wrs), 5);
	KUNIT_EXPECT_EQ(test, rw->returned, 0);
	end();
	KUNIT_EXPECT_EQ(test, atomic_read(wrs), 0);
	KUNIT_EXPECT_EQ(test, rw->returned, 1);

	begin(test, DMA_TO_DEVICE, 8, ANY_SG);
	KUNIT_EXPECT_EQ(test, add(HEAD, 5 * PAGE_SIZE, 0), 5 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, atomic_read(wrs), 0);
	end();
	KUNIT_EXPECT_EQ(test, rw->returned, 2);

	/* An empty chain has nothing that others could wait for. */
	begin(test, DMA_FROM_DEVICE, 8, ANY_SG);
	end();
	KUNIT_EXPECT_EQ(test, rw->returned, 2);
}

/* No registration is left: what the chain has goes, and only an empty chain has to wait. */
static void test_no_registration(struct kunit *test)
{
	rw->fail = -EAGAIN;
	rw->fail_after = 2;
	rw->service.max_read_sg = 1;
	rw->message.page_base = 0;
	begin(test, DMA_FROM_DEVICE, 8, ANY_SG);
	KUNIT_EXPECT_EQ(test, add(HEAD, 5 * PAGE_SIZE, 0), 2 * PAGE_SIZE);
	KUNIT_EXPECT_EQ(test, atomic_read(&rw->service.read_wrs), 2);
	KUNIT_EXPECT_EQ(test, transfer(test), 2 * PAGE_SIZE);
	end();
	begin(test, DMA_FROM_DEVICE, 8, ANY_SG);
	KUNIT_EXPECT_EQ(test, add(HEAD, 5 * PAGE_SIZE, 0), -EAGAIN);
	end();
	KUNIT_EXPECT_EQ(test, rw->returned, 1);
}

/* What cannot be mapped closes the connection. What was mapped before is undone. */
static void test_cannot_map(struct kunit *test)
{
	rw->fail = -ENOMEM;
	rw->fail_after = 2;
	rw->service.max_write_sg = 1;
	begin(test, DMA_TO_DEVICE, 8, ANY_SG);
	KUNIT_EXPECT_EQ(test, add(0, ALL, 0), -ENOMEM);
	KUNIT_EXPECT_EQ(test, rw->live, 2);
	end();
}

/* For few contexts and elements nothing is allocated. What is allocated is freed. */
static void test_memory(struct kunit *test)
{
	struct svcrdma_rw_chain *chain = &rw->request.rw_chain;

	begin(test, DMA_FROM_DEVICE, SVCRDMA_FEW_RWS, SVCRDMA_FEW_SG);
	KUNIT_EXPECT_EQ(test, rw->allocated, 0);
	end();
	begin(test, DMA_FROM_DEVICE, SVCRDMA_FEW_RWS + 1, SVCRDMA_FEW_SG);
	KUNIT_EXPECT_EQ(test, chain->max_rws, SVCRDMA_FEW_RWS + 1);
	end();
	KUNIT_EXPECT_EQ(test, rw->allocated, 0);
	begin(test, DMA_FROM_DEVICE, SVCRDMA_FEW_RWS, SVCRDMA_FEW_SG + 1);
	KUNIT_EXPECT_EQ(test, chain->max_sg, SVCRDMA_FEW_SG + 1);
	end();
	KUNIT_EXPECT_EQ(test, rw->allocated, 0);
	begin(test, DMA_FROM_DEVICE, ANY_SG, ANY_SG);
	KUNIT_EXPECT_EQ(test, rw->allocated, 1);
	KUNIT_EXPECT_EQ(test, chain->max_rws, ANY_SG);
	KUNIT_EXPECT_EQ(test, chain->max_sg, ANY_SG);
	memset(chain->sgl, 0x5a, ANY_SG * sizeof(*chain->sgl));
	memset(chain->rw, 0x5a, ANY_SG * sizeof(*chain->rw));
	end();
}

static void test_no_memory(struct kunit *test)
{
	struct svcrdma_rw_chain *chain = &rw->request.rw_chain;

	rw->allocations_left = 0;
	KUNIT_EXPECT_EQ(test, svcrdma_rw_chain_init(chain, DMA_TO_DEVICE, ANY_SG, 1), -ENOMEM);
	KUNIT_EXPECT_EQ(test, svcrdma_rw_chain_init(chain, DMA_TO_DEVICE, 1, ANY_SG), -ENOMEM);
	KUNIT_EXPECT_EQ(test, rw->allocated, 0);
}

/* The device does not stop: it keeps its mappings and the pages, for good. */
static void test_stuck(struct kunit *test)
{
	int before = page_count(rw->pages[5]);

	begin(test, DMA_FROM_DEVICE, 1, 1);
	KUNIT_EXPECT_EQ(test, add(HEAD + 5 * PAGE_SIZE - BASE, 1, 0), 1);
	rw->conn.stuck = true;
	end();
	KUNIT_EXPECT_EQ(test, rw->live, 1);
	KUNIT_EXPECT_EQ(test, page_count(rw->pages[5]), before + 1);
	KUNIT_EXPECT_EQ(test, rw->returned, 1);
	put_page(rw->pages[5]);
	rw->live = 0;
	rw->returned_early = 0;
}

/* The work requests go in order, before what follows; it is posted when there is space. */
static void test_post(struct kunit *test)
{
	struct ib_send_wr follows = {};
	unsigned int i;

	begin(test, DMA_TO_DEVICE, 3, 3);
	KUNIT_EXPECT_PTR_EQ(test, svcrdma_rw_chain_wrs(&rw->request, &follows), &follows);
	for (i = 0; i < 3; i++)
		KUNIT_EXPECT_EQ(test, add(i, 1, i), 1);
	KUNIT_EXPECT_PTR_EQ(test, svcrdma_rw_chain_wrs(&rw->request, &follows),
			    &rw->context[0].wr);
	KUNIT_EXPECT_PTR_EQ(test, rw->context[0].wr.next, &rw->context[1].wr);
	KUNIT_EXPECT_PTR_EQ(test, rw->context[1].wr.next, &rw->context[2].wr);
	KUNIT_EXPECT_PTR_EQ(test, rw->context[2].wr.next, &follows);

	KUNIT_EXPECT_EQ(test, svcrdma_rw_chain_post(&rw->request), 0);
	KUNIT_EXPECT_PTR_EQ(test, rw->chain, &rw->request.rw_chain.chain);
	KUNIT_EXPECT_PTR_EQ(test, rw->first, &rw->context[0].wr);
	KUNIT_EXPECT_PTR_EQ(test, rw->last, &rw->context[2].wr);
	KUNIT_EXPECT_NULL(test, rw->last->next);
	KUNIT_EXPECT_TRUE(test, rw->signalled);
	rw->post_ret = -ENOTCONN;
	KUNIT_EXPECT_EQ(test, svcrdma_rw_chain_post(&rw->request), -ENOTCONN);
	end();
}

struct limit_row {
	const char *name;
	bool iwarp;
	unsigned int max_chain;
	unsigned int write_sge;
	unsigned int read_sge;
	unsigned int mr_pages;
	unsigned int max_write_sg;
	unsigned int max_read_sg;
};

static const struct limit_row limit_rows[] = {
	{ "a quarter of a chain", false, 64, 4, 2, 1000, 64, 32 },
	{ "a short chain", false, 3, 4, 2, 1000, 4, 2 },
	{ "no elements told", false, 64, 0, 0, 1000, 16, 16 },
	{ "a registration with few pages", false, 64, 4, 2, 20, 64, 20 },
	{ "the largest registration of rdma_rw", false, 2000, 4, 2, 1000, 2000, 256 },
	{ "iWARP: what one registration covers", true, 64, 4, 1, 20, 64, 20 },
	{ "iWARP: the largest registration of rdma_rw", true, 64, 4, 1, 1000, 64, 256 },
};

KUNIT_ARRAY_PARAM_DESC(limit, limit_rows, name);

static void test_limits(struct kunit *test)
{
	const struct limit_row *row = test->param_value;

	if (row->iwarp)
		rw->port.immutable.core_cap_flags = RDMA_CORE_PORT_IWARP;
	rw->conn.max_chain = row->max_chain;
	rw->qp.max_write_sge = row->write_sge;
	rw->qp.max_read_sge = row->read_sge;
	rw->device.max_mr_pages = row->mr_pages;
	svcrdma_rw_limits(&rw->service);
	KUNIT_EXPECT_EQ(test, rw->service.max_write_sg, row->max_write_sg);
	KUNIT_EXPECT_EQ(test, rw->service.max_read_sg, row->max_read_sg);
}

static struct kunit_case rw_cases[] = {
	KUNIT_CASE_PARAM(test_move, move_gen_params),
	KUNIT_CASE(test_one_context),
	KUNIT_CASE(test_neighbours),
	KUNIT_CASE(test_full_by_wrs),
	KUNIT_CASE(test_full_by_contexts),
	KUNIT_CASE(test_full_by_elements),
	KUNIT_CASE(test_admission),
	KUNIT_CASE(test_no_registration),
	KUNIT_CASE(test_cannot_map),
	KUNIT_CASE(test_memory),
	KUNIT_CASE(test_no_memory),
	KUNIT_CASE(test_stuck),
	KUNIT_CASE(test_post),
	KUNIT_CASE_PARAM(test_limits, limit_gen_params),
	{}
};

static struct kunit_suite rw_suite = {
	.name = "rpcrdma_rw",
	.init = rw_init,
	.exit = rw_exit,
	.test_cases = rw_cases,
};

kunit_test_suites(&rw_suite);
