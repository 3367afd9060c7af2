// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Queue pairs: QP0 and QP1 of each port, and UD ones, for the kernel's own use. Their memory is taken when they are made. */
#include <linux/slab.h>

#include "device.h"

/* Puts a queue pair where packets find it, and gives it its number. */
static int publish(struct vib_dev *dev, struct vib_qp *qp, const struct ib_qp_init_attr *attr)
{
	struct vib_qp __rcu **slot;
	int err;

	if (attr->qp_type == IB_QPT_UD) {
		err = xa_alloc_cyclic(&dev->qps, &qp->ib.qp_num, qp, XA_LIMIT(2, 0xfffffe), &dev->next_qp, GFP_KERNEL);
		return err < 0 ? err : 0;
	}
	qp->port = attr->port_num;
	qp->ib.qp_num = attr->qp_type == IB_QPT_GSI;
	slot = &dev->special[qp->port - 1][qp->ib.qp_num];
	if (rcu_access_pointer(*slot))
		return -EBUSY;
	rcu_assign_pointer(*slot, qp);
	return 0;
}

int vib_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct vib_dev *dev = to_dev(ibqp->device);
	struct vib_qp *qp = to_qp(ibqp);
	int err;

	if (udata || (attr->create_flags & ~IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK))
		return -EOPNOTSUPP;
	if (attr->qp_type != IB_QPT_UD && attr->qp_type != IB_QPT_SMI && attr->qp_type != IB_QPT_GSI)
		return -EOPNOTSUPP;
	if (attr->qp_type != IB_QPT_UD && !rdma_is_port_valid(ibqp->device, attr->port_num))
		return -EINVAL;
	if (attr->srq || attr->cap.max_inline_data)
		return -EINVAL;
	spin_lock_init(&qp->lock);
	INIT_LIST_HEAD(&qp->groups);
	qp->state = IB_QPS_RESET;
	qp->port = 1;
	qp->signal_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->no_loopback = attr->create_flags & IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	qp->cap = attr->cap;
	qp->stride = sizeof(struct vib_recv) + array_size(attr->cap.max_recv_sge, sizeof(struct ib_sge));
	qp->ring = kvcalloc(max(attr->cap.max_recv_wr, 1u), qp->stride, GFP_KERNEL);
	if (!qp->ring)
		return -ENOMEM;
	err = publish(dev, qp, attr);
	if (err) {
		kvfree(qp->ring);
		return err;
	}
	atomic_inc(&vib_held);
	return 0;
}

int vib_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct vib_dev *dev = to_dev(ibqp->device);
	struct vib_qp *qp = to_qp(ibqp);
	struct vib_group *group, *next;

	if (ibqp->qp_num > 1)
		xa_erase(&dev->qps, ibqp->qp_num);
	else
		RCU_INIT_POINTER(dev->special[qp->port - 1][ibqp->qp_num], NULL);
	/* No packet is being delivered to it any more, and none of its completions are under way. */
	synchronize_rcu();
	list_for_each_entry_safe(group, next, &qp->groups, list) {
		kfree(group);
		atomic_dec(&vib_held);
	}
	kvfree(qp->ring);
	atomic_dec(&vib_held);
	return 0;
}

int vib_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata)
{
	struct vib_qp *qp = to_qp(ibqp);
	enum ib_qp_state from, to;
	unsigned long flags;
	bool flush = false;
	int err = 0;

	if (mask & ~IB_QP_ATTR_STANDARD_BITS)
		return -EOPNOTSUPP;
	spin_lock_irqsave(&qp->lock, flags);
	from = mask & IB_QP_CUR_STATE ? attr->cur_qp_state : qp->state;
	to = mask & IB_QP_STATE ? attr->qp_state : from;
	if (!ib_modify_qp_is_ok(from, to, ibqp->qp_type, mask)) {
		err = -EINVAL;
		goto out;
	}
	if (mask & IB_QP_PORT)
		qp->port = attr->port_num;
	if (mask & IB_QP_QKEY)
		qp->qkey = attr->qkey;
	if (mask & IB_QP_PKEY_INDEX)
		qp->pkey_index = attr->pkey_index;
	qp->state = to;
	if (to == IB_QPS_RESET)
		qp->count = 0;
	flush = to == IB_QPS_ERR;
out:
	spin_unlock_irqrestore(&qp->lock, flags);
	if (flush)
		vib_flush(qp);
	return err;
}

int vib_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init)
{
	struct vib_qp *qp = to_qp(ibqp);

	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	attr->qp_state = qp->state;
	attr->cur_qp_state = qp->state;
	attr->qkey = qp->qkey;
	attr->pkey_index = qp->pkey_index;
	attr->port_num = qp->port;
	attr->cap = qp->cap;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->cap = qp->cap;
	init->sq_sig_type = qp->signal_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->qp_type = ibqp->qp_type;
	return 0;
}

static struct vib_group *find_group(struct vib_qp *qp, const union ib_gid *gid)
{
	struct vib_group *group;

	list_for_each_entry(group, &qp->groups, list)
		if (!memcmp(&group->gid, gid, sizeof(*gid)))
			return group;
	return NULL;
}

int vib_attach(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct vib_qp *qp = to_qp(ibqp);
	struct vib_group *group = kmalloc(sizeof(*group), GFP_KERNEL);
	unsigned long flags;

	if (!group)
		return -ENOMEM;
	group->gid = *gid;
	spin_lock_irqsave(&qp->lock, flags);
	if (!find_group(qp, gid)) {
		list_add(&group->list, &qp->groups);
		group = NULL;
		atomic_inc(&vib_held);
	}
	spin_unlock_irqrestore(&qp->lock, flags);
	kfree(group);
	return 0;
}

int vib_detach(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct vib_qp *qp = to_qp(ibqp);
	struct vib_group *group;
	unsigned long flags;

	spin_lock_irqsave(&qp->lock, flags);
	group = find_group(qp, gid);
	if (group)
		list_del(&group->list);
	spin_unlock_irqrestore(&qp->lock, flags);
	if (!group)
		return -EINVAL;
	kfree(group);
	atomic_dec(&vib_held);
	return 0;
}
