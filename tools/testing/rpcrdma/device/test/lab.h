/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the KUnit suites of the device share: a network interface, a device on it, and two
 * queue pairs of the device that are connected to each other.
 */
#ifndef RDMA_MEM_TEST_LAB_H
#define RDMA_MEM_TEST_LAB_H

#include <kunit/test.h>
#include <linux/netdevice.h>
#include <linux/scatterlist.h>

#include "../mem.h"

#define LAB_WRS		8	/* of each queue */
#define LAB_SGE		2
#define LAB_CQES	64
#define LAB_INLINE	64
#define LAB_LEN		(2 * PAGE_SIZE)	/* octets of each buffer */
#define LAB_MR_PAGES	4

/*
 * A buffer of LAB_LEN octets and its DMA address. As it stays mapped, only lab_fill() and
 * lab_data() touch it: they sync it, as it may have a bounce buffer.
 */
struct lab_buffer {
	u8 *data;
	u64 addr;
};

/* One side: a queue pair with its completion queue, and memory */
struct lab_side {
	struct ib_cq *cq;
	struct ib_qp *qp;
	struct ib_mr *mr;
	struct scatterlist sg[LAB_MR_PAGES];
	struct lab_buffer buffer[2];
	unsigned int events;		/* asynchronous events, as bits of their type */
};

/* Owned by the test; lab_end() frees it. */
struct lab {
	struct kunit *test;
	struct net_device *ndev;
	struct mem_dev *dev;
	struct ib_pd *pd;
	struct ib_srq *srq;
	struct lab_side side[2];
};

/* Options of lab_make() */
#define LAB_SRQ		1	/* side 1 has an SRQ */
#define LAB_IWARP	2	/* the device is iWARP's; iwarp_test.c connects both sides */

struct lab *lab_make(struct kunit *test, unsigned int options);
void lab_end(struct lab *lab);
void lab_connect(struct lab *lab);
int lab_recv(struct lab *lab, int side, int buffer, u32 len);
int lab_post(struct lab *lab, int side, enum ib_wr_opcode opcode, int buffer, u32 len,
	     int flags);
int lab_rdma(struct lab *lab, int side, enum ib_wr_opcode opcode, u32 len, u64 remote,
	     u32 rkey);
int lab_reg(struct lab *lab, int side, int access);
int lab_inv(struct lab *lab, int side, u32 rkey);
enum ib_wc_status lab_wait(struct lab *lab, int side, struct ib_wc *wc);
int lab_violations(struct lab *lab, enum mem_rule rule);
void lab_fill(struct lab *lab, int side, int buffer, u32 offset, u8 value, u32 len);
const u8 *lab_data(struct lab *lab, int side, int buffer);
struct ib_sge lab_sge(struct lab *lab, int side, int buffer, u32 len);

#endif /* RDMA_MEM_TEST_LAB_H */
