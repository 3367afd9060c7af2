/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The parts of vib: the file, the adapter behind it, its queues. */
#ifndef VIB_DEVICE_H
#define VIB_DEVICE_H

#include <linux/skbuff.h>
#include <linux/xarray.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_verbs.h>

#include "vib.h"

/* What a port's agent last said. Replaced as a whole, read under RCU. */
struct vib_state {
	struct rcu_head rcu;
	struct vib_port info;
};

/* Messages to the program. Lives as long as the file, so longer than the adapter. */
struct vib_outbox {
	struct sk_buff_head queue;
	wait_queue_head_t wait;
};

struct vib_dev {
	struct ib_device ib;
	struct vib_outbox *outbox;
	struct vib_create facts;
	struct mutex change;		/* writers of `state`, `registered` */
	struct vib_state __rcu *state[VIB_PORTS_MAX];
	bool registered;
	bool gone;			/* the program is: no answer will come */
	spinlock_t local_lock;
	struct list_head local;		/* who waits for an answer of the adapter's own agents */
	u32 local_id;
	struct xarray qps;		/* by number; 0 and 1 are in `special` */
	u32 next_qp;
	struct vib_qp __rcu *special[VIB_PORTS_MAX][2];
};

struct vib_cq {
	struct ib_cq ib;
	spinlock_t lock;
	struct ib_wc *ring;
	u32 size;
	u32 head;			/* next to be polled */
	u32 count;
	bool armed;
	bool overrun;
};

struct vib_recv {
	u64 wr_id;
	int num_sge;
	struct ib_sge sge[];
};

struct vib_group {
	struct list_head list;
	union ib_gid gid;
};

struct vib_qp {
	struct ib_qp ib;
	spinlock_t lock;		/* all below */
	enum ib_qp_state state;
	u32 qkey;
	u16 pkey_index;
	u8 port;
	bool signal_all;
	bool no_loopback;		/* does not get its own multicast */
	struct ib_qp_cap cap;
	void *ring;			/* cap.max_recv_wr entries of `stride` bytes */
	size_t stride;
	u32 head;
	u32 count;
	struct list_head groups;
};

struct vib_pd {
	struct ib_pd ib;
};

struct vib_ah {
	struct ib_ah ib;
	struct rdma_ah_attr attr;
};

static inline struct vib_dev *to_dev(struct ib_device *ib)
{
	return container_of(ib, struct vib_dev, ib);
}

static inline struct vib_cq *to_cq(struct ib_cq *ib)
{
	return container_of(ib, struct vib_cq, ib);
}

static inline struct vib_qp *to_qp(struct ib_qp *ib)
{
	return container_of(ib, struct vib_qp, ib);
}

static inline struct vib_ah *to_ah(struct ib_ah *ib)
{
	return container_of(ib, struct vib_ah, ib);
}

/* The state of a port, 1 and up; the caller holds the RCU read lock. */
static inline const struct vib_port *vib_state(struct vib_dev *dev, u32 port)
{
	return &rcu_dereference(dev->state[port - 1])->info;
}

/* main.c */
struct sk_buff *vib_message(const struct vib_msg *msg, gfp_t gfp);
void vib_free(struct sk_buff *skb);
void vib_tell(struct vib_dev *dev, struct sk_buff *skb);
extern atomic_t vib_held;

/* cq.c */
void vib_complete(struct ib_cq *cq, const struct ib_wc *wc);
int vib_create_cq(struct ib_cq *cq, const struct ib_cq_init_attr *attr, struct ib_udata *udata);
int vib_destroy_cq(struct ib_cq *cq, struct ib_udata *udata);
int vib_poll_cq(struct ib_cq *cq, int num, struct ib_wc *wc);
int vib_req_notify_cq(struct ib_cq *cq, enum ib_cq_notify_flags flags);

/* qp.c */
int vib_create_qp(struct ib_qp *qp, struct ib_qp_init_attr *attr, struct ib_udata *udata);
int vib_destroy_qp(struct ib_qp *qp, struct ib_udata *udata);
int vib_modify_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_udata *udata);
int vib_query_qp(struct ib_qp *qp, struct ib_qp_attr *attr, int mask, struct ib_qp_init_attr *init);
int vib_attach(struct ib_qp *qp, union ib_gid *gid, u16 lid);
int vib_detach(struct ib_qp *qp, union ib_gid *gid, u16 lid);

/* data.c */
int vib_post_send(struct ib_qp *qp, const struct ib_send_wr *wr, const struct ib_send_wr **bad);
int vib_post_recv(struct ib_qp *qp, const struct ib_recv_wr *wr, const struct ib_recv_wr **bad);
void vib_flush(struct vib_qp *qp);
void vib_deliver(struct vib_dev *dev, const struct vib_msg *msg, const void *payload);

/* device.c */
struct vib_dev *vib_new(const struct vib_create *facts, struct vib_outbox *outbox);
int vib_register(struct vib_dev *dev);
void vib_abandon(struct vib_dev *dev);
void vib_remove(struct vib_dev *dev);
int vib_set_port(struct vib_dev *dev, u32 port, const struct vib_port *info);
void vib_answer_local(struct vib_dev *dev, const struct vib_msg *msg, const void *payload);

#endif
