// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What moves: sends go to the program as they are posted, and what the program writes goes into posted receives. A datagram
 * for which there is no room is lost, as on a wire.
 */
#include "device.h"

#define MULTICAST_QP 0xffffff
#define FIRST_MULTICAST_LID 0xc000

static struct vib_recv *recv_at(struct vib_qp *qp, u32 index)
{
	return qp->ring + (index % max(qp->cap.max_recv_wr, 1u)) * qp->stride;
}

/* The lengths of all pieces together. */
static size_t length(const struct ib_sge *sge, int num)
{
	size_t len = 0;

	while (num--)
		len += sge++->length;
	return len;
}

static void fill_grh(struct vib_msg *msg, const struct rdma_ah_attr *ah, const struct vib_port *port, u8 gids)
{
	const struct ib_global_route *route = rdma_ah_read_grh(ah);
	struct ib_grh *grh = (struct ib_grh *)msg->grh;

	msg->has_grh = 1;
	grh->version_tclass_flow = cpu_to_be32(6 << 28 | route->traffic_class << 20 | (route->flow_label & 0xfffff));
	/* Base and datagram headers, payload, invariant CRC. */
	grh->paylen = cpu_to_be16(12 + 8 + ALIGN(msg->len, 4) + 4);
	grh->next_hdr = 0x1b;
	grh->hop_limit = route->hop_limit;
	grh->sgid.global.subnet_prefix = port->gid_prefix;
	grh->sgid.global.interface_id = port->guids[route->sgid_index < gids ? route->sgid_index : 0];
	grh->dgid = route->dgid;
}

/* The headers of a datagram; the caller holds the RCU read lock. */
static void fill_headers(struct vib_dev *dev, struct vib_qp *qp, const struct ib_ud_wr *wr, struct vib_msg *msg)
{
	const struct rdma_ah_attr *ah = &to_ah(wr->ah)->attr;
	const struct vib_port *port;
	u16 index = qp->ib.qp_num == 1 ? wr->pkey_index : qp->pkey_index;

	msg->port = qp->ib.qp_num > 1 ? qp->port : rdma_ah_get_port_num(ah);
	port = vib_state(dev, msg->port);
	msg->src_qp = qp->ib.qp_num;
	msg->dst_qp = wr->remote_qpn;
	/* 10.2.5: with the highest bit set, the queue pair's own is meant. */
	msg->qkey = wr->remote_qkey & BIT(31) ? qp->qkey : wr->remote_qkey;
	msg->dlid = rdma_ah_get_dlid(ah);
	msg->slid = port->lid | (rdma_ah_get_path_bits(ah) & (BIT(port->lmc) - 1));
	msg->sl = rdma_ah_get_sl(ah);
	msg->pkey = index < dev->facts.pkeys ? port->pkeys[index] : 0;
	if (rdma_ah_get_ah_flags(ah) & IB_AH_GRH)
		fill_grh(msg, ah, port, dev->facts.gids);
}

static int send_one(struct vib_dev *dev, struct vib_qp *qp, const struct ib_send_wr *wr)
{
	struct ib_wc wc = { .wr_id = wr->wr_id, .status = IB_WC_SUCCESS, .opcode = IB_WC_SEND, .qp = &qp->ib };
	struct vib_msg msg = { .type = VIB_PACKET, .len = length(wr->sg_list, wr->num_sge) };
	struct sk_buff *skb;
	int i;

	if (wr->opcode != IB_WR_SEND || msg.len > VIB_PAYLOAD_MAX)
		return -EINVAL;
	switch (READ_ONCE(qp->state)) {
	case IB_QPS_RTS:
		break;
	case IB_QPS_SQE:
	case IB_QPS_ERR:
		wc.status = IB_WC_WR_FLUSH_ERR;
		vib_complete(qp->ib.send_cq, &wc);
		return 0;
	default:
		return -EINVAL;
	}
	rcu_read_lock();
	fill_headers(dev, qp, ud_wr(wr), &msg);
	rcu_read_unlock();
	skb = vib_message(&msg, GFP_ATOMIC);
	if (!skb)
		return -ENOMEM;
	for (i = 0; i < wr->num_sge; i++)
		skb_put_data(skb, (void *)(uintptr_t)wr->sg_list[i].addr, wr->sg_list[i].length);
	vib_tell(dev, skb);
	if (qp->signal_all || (wr->send_flags & IB_SEND_SIGNALED))
		vib_complete(qp->ib.send_cq, &wc);
	return 0;
}

int vib_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr, const struct ib_send_wr **bad)
{
	for (; wr; wr = wr->next) {
		int err = send_one(to_dev(ibqp->device), to_qp(ibqp), wr);

		if (err) {
			*bad = wr;
			return err;
		}
	}
	return 0;
}

int vib_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad)
{
	struct vib_qp *qp = to_qp(ibqp);
	unsigned long flags;
	int err = 0;
	bool flush;

	spin_lock_irqsave(&qp->lock, flags);
	for (; wr; wr = wr->next) {
		struct vib_recv *recv = recv_at(qp, qp->head + qp->count);

		if (qp->state == IB_QPS_RESET || wr->num_sge > qp->cap.max_recv_sge)
			err = -EINVAL;
		else if (qp->count == qp->cap.max_recv_wr)
			err = -ENOMEM;
		if (err) {
			*bad = wr;
			break;
		}
		recv->wr_id = wr->wr_id;
		recv->num_sge = wr->num_sge;
		memcpy(recv->sge, wr->sg_list, sizeof(*recv->sge) * wr->num_sge);
		qp->count++;
	}
	flush = qp->state == IB_QPS_ERR;
	spin_unlock_irqrestore(&qp->lock, flags);
	if (flush)
		vib_flush(qp);
	return err;
}

/* Ends all posted receives of a queue pair in error. */
void vib_flush(struct vib_qp *qp)
{
	struct ib_wc wc = { .status = IB_WC_WR_FLUSH_ERR, .opcode = IB_WC_RECV, .qp = &qp->ib };
	unsigned long flags;

	for (;;) {
		spin_lock_irqsave(&qp->lock, flags);
		if (!qp->count) {
			spin_unlock_irqrestore(&qp->lock, flags);
			return;
		}
		wc.wr_id = recv_at(qp, qp->head)->wr_id;
		qp->head = (qp->head + 1) % qp->cap.max_recv_wr;
		qp->count--;
		spin_unlock_irqrestore(&qp->lock, flags);
		vib_complete(qp->ib.recv_cq, &wc);
	}
}

/* Writes to the pieces of a receive from `offset` on. */
static void scatter(const struct vib_recv *recv, size_t offset, const void *from, size_t len)
{
	const struct ib_sge *sge = recv->sge;

	for (; len && sge < recv->sge + recv->num_sge; sge++) {
		size_t part;

		if (offset >= sge->length) {
			offset -= sge->length;
			continue;
		}
		part = min_t(size_t, len, sge->length - offset);
		memcpy((void *)(uintptr_t)sge->addr + offset, from, part);
		from += part;
		len -= part;
		offset = 0;
	}
}

/* Whether two P_Keys are of one partition, and one of the two is a full member (10.9.3). */
static bool pkeys_match(u16 a, u16 b)
{
	return (a & 0x7fff) == (b & 0x7fff) && (a & 0x7fff) && ((a | b) & 0x8000);
}

/* The entry of the port's table by which a packet may come to a queue pair; negative: by none. */
static int accepting_pkey(struct vib_dev *dev, struct vib_qp *qp, const struct vib_port *port, u16 pkey)
{
	int i;

	if (qp->ib.qp_num == 0)
		return 0;
	if (qp->ib.qp_num > 1)
		return qp->pkey_index < dev->facts.pkeys && pkeys_match(port->pkeys[qp->pkey_index], pkey) ?
			qp->pkey_index : -1;
	for (i = 0; i < dev->facts.pkeys; i++)
		if (pkeys_match(port->pkeys[i], pkey))
			return i;
	return -1;
}

static void tell_violation(struct vib_dev *dev, const struct vib_msg *packet, enum vib_type type)
{
	struct vib_msg msg = *packet;
	struct sk_buff *skb;

	msg.type = type;
	msg.len = 0;
	skb = vib_message(&msg, GFP_ATOMIC);
	if (skb)
		vib_tell(dev, skb);
}

/* Gives a packet to a queue pair; the caller holds the RCU read lock. */
static void deliver_to(struct vib_dev *dev, struct vib_qp *qp, const struct vib_msg *msg, const void *payload)
{
	const struct vib_port *port = vib_state(dev, msg->port);
	struct ib_wc wc = {
		.status = IB_WC_SUCCESS, .opcode = IB_WC_RECV, .qp = &qp->ib, .port_num = msg->port, .byte_len = msg->len + 40,
		.src_qp = msg->src_qp, .slid = msg->slid, .sl = msg->sl, .wc_flags = msg->has_grh ? IB_WC_GRH : 0,
		.dlid_path_bits = msg->dlid & (BIT(port->lmc) - 1),
	};
	enum vib_type violation = 0;
	struct vib_recv *recv;
	unsigned long flags;
	bool taken = false;
	int index;

	spin_lock_irqsave(&qp->lock, flags);
	if (qp->state != IB_QPS_RTR && qp->state != IB_QPS_RTS && qp->state != IB_QPS_SQD && qp->state != IB_QPS_SQE)
		goto out;
	index = accepting_pkey(dev, qp, port, msg->pkey);
	if (index < 0) {
		violation = VIB_BAD_PKEY;
		goto out;
	}
	if (qp->ib.qp_num && qp->qkey != msg->qkey) {
		violation = VIB_BAD_QKEY;
		goto out;
	}
	if (!qp->count)
		goto out;
	recv = recv_at(qp, qp->head);
	wc.wr_id = recv->wr_id;
	wc.pkey_index = index;
	if (length(recv->sge, recv->num_sge) < wc.byte_len) {
		wc.status = IB_WC_LOC_LEN_ERR;
	} else {
		if (msg->has_grh)
			scatter(recv, 0, msg->grh, sizeof(msg->grh));
		scatter(recv, sizeof(msg->grh), payload, msg->len);
	}
	qp->head = (qp->head + 1) % qp->cap.max_recv_wr;
	qp->count--;
	taken = true;
out:
	spin_unlock_irqrestore(&qp->lock, flags);
	if (taken)
		vib_complete(qp->ib.recv_cq, &wc);
	else if (violation)
		tell_violation(dev, msg, violation);
}

static bool in_group(struct vib_qp *qp, const struct vib_msg *msg)
{
	const struct ib_grh *grh = (const struct ib_grh *)msg->grh;
	struct vib_group *group;
	unsigned long flags;
	bool found = false;

	spin_lock_irqsave(&qp->lock, flags);
	list_for_each_entry(group, &qp->groups, list)
		found |= !memcmp(&group->gid, &grh->dgid, sizeof(group->gid));
	found &= qp->port == msg->port;
	spin_unlock_irqrestore(&qp->lock, flags);
	return found;
}

/* Whether a multicast packet is one that the queue pair sent itself; the caller holds the RCU read lock. */
static bool own(struct vib_dev *dev, struct vib_qp *qp, const struct vib_msg *msg)
{
	const struct vib_port *port = vib_state(dev, msg->port);

	return msg->src_qp == qp->ib.qp_num && msg->slid >> port->lmc == port->lid >> port->lmc;
}

/* Lets a packet arrive at the queue pairs that it is for. */
void vib_deliver(struct vib_dev *dev, const struct vib_msg *msg, const void *payload)
{
	struct vib_qp *qp;
	unsigned long index;

	/* Bottom halves that completions raise run when they are enabled again. */
	local_bh_disable();
	rcu_read_lock();
	if (msg->dst_qp <= 1) {
		qp = rcu_dereference(dev->special[msg->port - 1][msg->dst_qp]);
		if (qp)
			deliver_to(dev, qp, msg, payload);
	} else if (msg->dst_qp != MULTICAST_QP) {
		qp = xa_load(&dev->qps, msg->dst_qp);
		if (qp && qp->port == msg->port)
			deliver_to(dev, qp, msg, payload);
	} else if (msg->dlid >= FIRST_MULTICAST_LID && msg->has_grh) {
		xa_for_each(&dev->qps, index, qp)
			if (in_group(qp, msg) && !(qp->no_loopback && own(dev, qp, msg)))
				deliver_to(dev, qp, msg, payload);
	}
	rcu_read_unlock();
	local_bh_enable();
}
