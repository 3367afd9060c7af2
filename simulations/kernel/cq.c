// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Completion queues: a ring of fixed size. One that runs over is in error, as on an adapter. */
#include <linux/slab.h>

#include "device.h"

void vib_complete(struct ib_cq *ibcq, const struct ib_wc *wc)
{
	struct vib_cq *cq = to_cq(ibcq);
	unsigned long flags;
	bool fire, overrun = false;

	spin_lock_irqsave(&cq->lock, flags);
	if (cq->count < cq->size) {
		cq->ring[(cq->head + cq->count++) % cq->size] = *wc;
	} else {
		overrun = !cq->overrun;
		cq->overrun = true;
	}
	fire = cq->armed;
	cq->armed = false;
	spin_unlock_irqrestore(&cq->lock, flags);
	if (overrun && ibcq->event_handler) {
		struct ib_event event = { .device = ibcq->device, .element.cq = ibcq, .event = IB_EVENT_CQ_ERR };

		ibcq->event_handler(&event, ibcq->cq_context);
	}
	if (fire && ibcq->comp_handler)
		ibcq->comp_handler(ibcq, ibcq->cq_context);
}

int vib_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr, struct ib_udata *udata)
{
	struct vib_cq *cq = to_cq(ibcq);

	if (udata || attr->flags)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > ibcq->device->attrs.max_cqe)
		return -EINVAL;
	spin_lock_init(&cq->lock);
	cq->size = attr->cqe;
	cq->ring = kvcalloc(cq->size, sizeof(*cq->ring), GFP_KERNEL);
	if (!cq->ring)
		return -ENOMEM;
	atomic_inc(&vib_held);
	ibcq->cqe = cq->size;
	return 0;
}

int vib_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	kvfree(to_cq(ibcq)->ring);
	atomic_dec(&vib_held);
	return 0;
}

int vib_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct vib_cq *cq = to_cq(ibcq);
	unsigned long flags;
	int i;

	spin_lock_irqsave(&cq->lock, flags);
	for (i = 0; i < num && cq->count; i++, cq->count--) {
		wc[i] = cq->ring[cq->head];
		cq->head = (cq->head + 1) % cq->size;
	}
	spin_unlock_irqrestore(&cq->lock, flags);
	return i;
}

int vib_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct vib_cq *cq = to_cq(ibcq);
	unsigned long irq;
	int missed;

	spin_lock_irqsave(&cq->lock, irq);
	cq->armed = true;
	missed = (flags & IB_CQ_REPORT_MISSED_EVENTS) && cq->count;
	spin_unlock_irqrestore(&cq->lock, irq);
	return missed;
}
