// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What Send, RDMA Write and RDMA Read do at the peer, and what each end is told if that
 * is not possible.
 *
 * An error that the responder finds ends both queue pairs: the requester learns it from
 * the status of its work request, the responder from an event or from a Receive. It is
 * counted, but it is not a violation of the responder's user. On iWARP the requester of a
 * Send or Write learns only that the connection is over.
 */
#include "mem.h"

/* InfiniBand Architecture 1.4, table 45: RNR NAK timer values, in units of 10 us */
static const u16 rnr_timer[32] = {
	0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024,
	1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
};

static u64 rnr_delay(const struct mem_qp *peer)
{
	u8 value = READ_ONCE(peer->attr.min_rnr_timer) & 31;

	return (value ? rnr_timer[value] : 65536) * 10ULL * NSEC_PER_USEC;
}

/**
 * mem_wire_receive_done - complete a Receive
 * @qp: the queue pair that has it
 * @rwqe: the Receive
 * @wc: the completion, without what the Receive and the queue pair say
 * @solicited: the sender asks for an interrupt
 *
 * Context: softirq.
 */
void mem_wire_receive_done(struct mem_qp *qp, const struct mem_rwqe *rwqe,
			   struct ib_wc *wc, bool solicited)
{
	struct mem_cqe cqe = { .rq = qp->rq };

	if (rwqe->summed && rwqe->num_sge)
		cqe.sge = rwqe->sge[0];
	wc->wr_id = rwqe->wr_id;
	wc->qp = &qp->ib;
	wc->port_num = 1;
	if (!wc->opcode)
		wc->opcode = IB_WC_RECV;
	cqe.wc = *wc;
	if (!wc->status)
		mem_count(qp->dev, MEM_STAT_RECEIVES);
	mem_complete(qp, true, &cqe, solicited);
}

static void srq_limit(struct mem_qp *qp)
{
	struct ib_srq *srq = qp->ib.srq;
	struct ib_event event = {
		.device = qp->ib.device,
		.element.srq = srq,
		.event = IB_EVENT_SRQ_LIMIT_REACHED,
	};

	mem_count(qp->dev, MEM_STAT_ASYNC_EVENTS);
	if (srq->event_handler)
		srq->event_handler(&event, srq->srq_context);
}

/* Take a Receive of the peer. Return: whether there is one; else it is not ready. */
static bool take_receive(struct mem_qp *peer, struct mem_rwqe *rwqe, struct ib_sge *sge,
			 struct mem_outcome *out)
{
	bool limit;
	u32 sum;

	if (!mem_rq_take(peer->rq, rwqe, sge, &limit)) {
		out->rnr = true;
		out->delay = rnr_delay(peer);
		return false;
	}
	if (limit)
		srq_limit(peer);
	if (rwqe->summed && mem_list_sum(peer->dev, peer->ib.pd, sge, rwqe->num_sge, &sum) &&
	    sum != rwqe->sum)
		mem_violation(peer->dev, MEM_RULE_RECV_TOUCHED,
			      "QP %u: a posted Receive, address %#llx", peer->number,
			      rwqe->num_sge ? sge->addr : 0);
	return true;
}

/* The first message may come before the CM's. */
static void comm_established(struct mem_qp *peer)
{
	if (peer->established)
		return;
	peer->established = true;
	if (READ_ONCE(peer->state) == IB_QPS_RTR)
		mem_qp_event(peer, IB_EVENT_COMM_EST);
}

static void receive_failed(struct mem_qp *peer, const struct mem_rwqe *rwqe,
			   enum ib_wc_status status)
{
	struct ib_wc wc = { .status = status };

	mem_count(peer->dev, MEM_STAT_REMOTE_ERRORS);
	mem_wire_receive_done(peer, rwqe, &wc, true);
	mem_qp_error(peer, 0);
}

/* Copy a Send into the Receive. Return: the responder's status. */
static enum ib_wc_status send_copy(struct mem_qp *peer, struct mem_swqe *wqe,
				   struct mem_list *from, const struct mem_rwqe *rwqe)
{
	enum ib_wc_status status;
	struct mem_list to;

	status = mem_list_open(&to, peer->dev, peer->ib.pd, rwqe->sge, rwqe->num_sge,
			       IB_ACCESS_LOCAL_WRITE);
	if (status)
		return status;
	if (to.length < wqe->length) {
		status = IB_WC_LOC_LEN_ERR;
	} else if (wqe->flags & IB_SEND_INLINE) {
		mem_list_put(&to, wqe->data, wqe->length);
		mem_count_add(peer->dev, MEM_STAT_INLINE_OCTETS, wqe->length);
	} else {
		mem_list_copy(&to, from, wqe->length);
		mem_count_add(peer->dev, MEM_STAT_OCTETS, wqe->length);
	}
	mem_list_close(&to);
	return status;
}

static void send_complete(struct mem_qp *qp, struct mem_qp *peer, struct mem_swqe *wqe,
			  const struct mem_rwqe *rwqe, struct ib_wc *wc)
{
	wc->src_qp = qp->number;
	wc->byte_len = wqe->length;
	if (wqe->opcode == IB_WR_SEND_WITH_IMM ||
	    wqe->opcode == IB_WR_RDMA_WRITE_WITH_IMM) {
		wc->wc_flags |= IB_WC_WITH_IMM;
		wc->ex.imm_data = wqe->ex.imm_data;
	}
	comm_established(peer);
	mem_wire_receive_done(peer, rwqe, wc, wqe->flags & IB_SEND_SOLICITED);
}

static bool send_invalidate(struct mem_qp *peer, struct mem_swqe *wqe, struct ib_wc *wc)
{
	if (wqe->opcode != IB_WR_SEND_WITH_INV)
		return true;
	if (mem_mr_invalidate(peer->dev, peer->ib.pd, wqe->ex.invalidate_rkey, true))
		return false;
	mem_count(peer->dev, MEM_STAT_REMOTE_INVALIDATIONS);
	wc->wc_flags |= IB_WC_WITH_INVALIDATE;
	wc->ex.invalidate_rkey = wqe->ex.invalidate_rkey;
	return true;
}

/* Deliver a Send whose memory is open. */
static void wire_deliver(struct mem_qp *qp, struct mem_qp *peer, struct mem_swqe *wqe,
			 struct mem_list *from, struct mem_outcome *out)
{
	struct ib_sge sge[MEM_MAX_SGE];
	struct mem_verdict verdict;
	enum ib_wc_status status;
	struct mem_rwqe rwqe;
	struct ib_wc wc = {};

	if (!take_receive(peer, &rwqe, sge, out))
		return;
	verdict = mem_fault(peer->dev, MEM_OP_RECV);
	if (verdict.action == MEM_ACTION_STATUS)
		status = verdict.status;
	else
		status = send_copy(peer, wqe, from, &rwqe);
	/* Invalidation waits for users of a registration: do not be one. */
	mem_list_close(from);
	if (!status && !send_invalidate(peer, wqe, &wc))
		status = IB_WC_LOC_ACCESS_ERR;
	if (status) {
		out->status = status == IB_WC_LOC_LEN_ERR ? IB_WC_REM_INV_REQ_ERR :
							    IB_WC_REM_OP_ERR;
		receive_failed(peer, &rwqe, status);
		return;
	}
	out->octets = wqe->length;
	mem_engine_fault(peer, true, &verdict);
	send_complete(qp, peer, wqe, &rwqe, &wc);
}

static void wire_send(struct mem_qp *qp, struct mem_qp *peer, struct mem_swqe *wqe,
		      struct mem_outcome *out)
{
	struct mem_list from;

	mem_list_init(&from, qp->dev, wqe->sge);
	if (!(wqe->flags & IB_SEND_INLINE)) {
		out->status = mem_list_open(&from, qp->dev, qp->ib.pd, wqe->sge,
					    wqe->num_sge, 0);
		if (out->status)
			return;
		/* reported once, not again when it completes */
		if (!mem_check_send(qp, wqe, MEM_RULE_SEND_TOUCHED))
			wqe->summed = false;
	}
	wire_deliver(qp, peer, wqe, &from, out);
	mem_list_close(&from);
}

/* Open the peer's memory that a Write or Read names. */
static bool remote_open(struct mem_qp *peer, struct mem_swqe *wqe, struct ib_sge *sge,
			int access, struct mem_list *list, struct mem_outcome *out)
{
	enum ib_wc_status status = IB_WC_LOC_ACCESS_ERR;

	mem_list_init(list, peer->dev, sge);
	if (!wqe->length)
		return true;
	sge->addr = wqe->remote_addr;
	sge->length = wqe->length;
	if (READ_ONCE(peer->attr.qp_access_flags) & access)
		status = mem_mr_open(peer->dev, peer->ib.pd, wqe->rkey, sge->addr,
				     sge->length, access, &list->mr[0]);
	if (!status) {
		list->num_sge = 1;
		list->length = sge->length;
		mem_mr_probe(list->mr[0], sge->addr, access == IB_ACCESS_REMOTE_WRITE);
		return true;
	}
	pr_info("rdma_mem: %s: QP %u: remote access error: rkey %#x, address %#llx, %u octets\n",
		dev_name(&peer->dev->ib.dev), peer->number, wqe->rkey, wqe->remote_addr,
		wqe->length);
	mem_count(peer->dev, MEM_STAT_REMOTE_ERRORS);
	mem_qp_error(peer, IB_EVENT_QP_ACCESS_ERR);
	out->status = IB_WC_REM_ACCESS_ERR;
	return false;
}

/* The last packet is a part of its own if the wire takes time: see engine_waits(). */
static u32 rdma_part(const struct mem_dev *dev, const struct mem_swqe *wqe)
{
	u32 left = wqe->length - wqe->done;

	if (wqe->due && left > MEM_WIRE_PACKET)
		left -= MEM_WIRE_PACKET;
	return min(left, READ_ONCE(dev->burst));
}

/*
 * Copy the next part of a Read or Write from a list to another one, which both are at their
 * beginnings. In each part all is checked again, as a device does for each packet.
 */
static void rdma_copy(struct mem_qp *qp, struct mem_list *to, struct mem_list *from,
		      struct mem_swqe *wqe, struct mem_outcome *out)
{
	out->octets = rdma_part(qp->dev, wqe);
	mem_list_skip(to, wqe->done);
	mem_list_skip(from, wqe->done);
	mem_list_copy(to, from, out->octets);
	mem_count_add(qp->dev, MEM_STAT_OCTETS, out->octets);
	wqe->done += out->octets;
	out->more = wqe->done < wqe->length;
}

static void write_copy(struct mem_qp *qp, struct mem_qp *peer, struct mem_swqe *wqe,
		       struct mem_outcome *out)
{
	struct mem_list from, to;
	struct ib_sge sge;

	if (!remote_open(peer, wqe, &sge, IB_ACCESS_REMOTE_WRITE, &to, out))
		return;
	if (wqe->flags & IB_SEND_INLINE) {
		mem_list_put(&to, wqe->data, wqe->length);
		mem_count_add(qp->dev, MEM_STAT_INLINE_OCTETS, wqe->length);
		wqe->done = wqe->length;
	} else {
		out->status = mem_list_open(&from, qp->dev, qp->ib.pd, wqe->sge,
					    wqe->num_sge, 0);
		if (!out->status) {
			rdma_copy(qp, &to, &from, wqe, out);
			mem_list_close(&from);
		}
	}
	mem_list_close(&to);
}

/* The last packet of a Write with immediate takes a Receive. */
static void wire_write(struct mem_qp *qp, struct mem_qp *peer, struct mem_swqe *wqe,
		       struct mem_outcome *out)
{
	struct ib_wc wc = { .opcode = IB_WC_RECV_RDMA_WITH_IMM };
	struct ib_sge sge[MEM_MAX_SGE];
	struct mem_rwqe rwqe;

	if (!wqe->length || wqe->done < wqe->length)
		write_copy(qp, peer, wqe, out);
	if (out->status || out->more || wqe->opcode != IB_WR_RDMA_WRITE_WITH_IMM)
		return;
	if (take_receive(peer, &rwqe, sge, out))
		send_complete(qp, peer, wqe, &rwqe, &wc);
}

static bool read_allowed(struct mem_qp *qp, struct mem_qp *peer, struct mem_outcome *out)
{
	u8 own = qp->attr.max_rd_atomic, theirs = peer->attr.max_dest_rd_atomic;

	if (own && own <= theirs)
		return true;
	mem_violation(qp->dev, MEM_RULE_READS, "QP %u sends %u RDMA Reads, QP %u takes %u",
		      qp->number, own, peer->number, theirs);
	out->status = own ? IB_WC_REM_INV_REQ_ERR : IB_WC_LOC_QP_OP_ERR;
	return false;
}

/*
 * iWARP: the peer writes to the sink, by a key that it is told. So this has to be that of a
 * registration with remote write access, and not the local DMA lkey.
 */
static bool sink_ok(struct mem_qp *qp, const struct mem_swqe *wqe, const struct mem_list *to)
{
	const struct mem_mr *mr = to->num_sge ? to->mr[0] : NULL;

	if (!qp->dev->limits.iwarp || !wqe->length)
		return true;
	if (mr && mr->access & IB_ACCESS_REMOTE_WRITE)
		return true;
	mem_violation(qp->dev, MEM_RULE_READ_SINK,
		      "QP %u: the sink of a Read has key %#x, access %#x", qp->number,
		      wqe->sge->lkey, mr ? mr->access : 0);
	return false;
}

/*
 * The end of a Read that invalidates a key. On iWARP it is the sink's, whatever the work
 * request says: rdma_rw, the user in the core, names the key that the sink had before.
 */
static void read_invalidate(struct mem_qp *qp, const struct mem_swqe *wqe,
			    struct mem_outcome *out)
{
	u32 key = qp->dev->limits.iwarp ? wqe->sge->lkey : wqe->ex.invalidate_rkey;

	out->status = mem_mr_invalidate(qp->dev, qp->ib.pd, key, false);
	if (out->status)
		mem_violation(qp->dev, MEM_RULE_INVALIDATE, "QP %u: a Read invalidates %#x",
			      qp->number, key);
}

static void wire_read(struct mem_qp *qp, struct mem_qp *peer, struct mem_swqe *wqe,
		      struct mem_outcome *out)
{
	struct mem_list from, to;
	struct ib_sge sge;

	if (!read_allowed(qp, peer, out))
		return;
	if (!remote_open(peer, wqe, &sge, IB_ACCESS_REMOTE_READ, &from, out))
		return;
	out->status = mem_list_open(&to, qp->dev, qp->ib.pd, wqe->sge, wqe->num_sge,
				    IB_ACCESS_LOCAL_WRITE);
	if (!out->status) {
		if (sink_ok(qp, wqe, &to))
			rdma_copy(qp, &to, &from, wqe, out);
		else
			out->status = IB_WC_LOC_PROT_ERR;
		mem_list_close(&to);
	}
	mem_list_close(&from);
	if (!out->status && !out->more && wqe->opcode == IB_WR_RDMA_READ_WITH_INV)
		read_invalidate(qp, wqe, out);
}

/*
 * What iWARP does in place of an RNR NAK or of a status that the peer gives: a Send or a
 * Write is done when TCP has it, and what the peer cannot do ends the connection.
 */
static void wire_terminate(struct mem_qp *peer, struct mem_outcome *out)
{
	if (out->rnr) {
		out->rnr = false;
		pr_info("rdma_mem: %s: QP %u: a Send without a Receive for it\n",
			dev_name(&peer->dev->ib.dev), peer->number);
		mem_count(peer->dev, MEM_STAT_REMOTE_ERRORS);
		mem_qp_error(peer, IB_EVENT_QP_FATAL);
	} else if (out->status == IB_WC_REM_ACCESS_ERR || out->status == IB_WC_REM_OP_ERR ||
		   out->status == IB_WC_REM_INV_REQ_ERR) {
		out->status = IB_WC_SUCCESS;
	}
}

/**
 * mem_wire_execute - execute a Send, Write or Read
 * @qp: the requester's queue pair
 * @peer: the responder's, with a reference
 * @wqe: the work request
 * @out: what comes of it
 *
 * Context: softirq, with no lock held.
 */
void mem_wire_execute(struct mem_qp *qp, struct mem_qp *peer, struct mem_swqe *wqe,
		      struct mem_outcome *out)
{
	switch (wqe->opcode) {
	case IB_WR_RDMA_WRITE:
	case IB_WR_RDMA_WRITE_WITH_IMM:
		wire_write(qp, peer, wqe, out);
		break;
	case IB_WR_RDMA_READ:
	case IB_WR_RDMA_READ_WITH_INV:
		wire_read(qp, peer, wqe, out);
		break;
	default:
		wire_send(qp, peer, wqe, out);
		break;
	}
	if (qp->dev->limits.iwarp && !mem_is_read(wqe->opcode))
		wire_terminate(peer, out);
}
