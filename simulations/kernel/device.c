// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * An adapter: what it says of itself and its ports, its events, and the way to its own management agents. These are the
 * program's: the kernel gives process_mad what a sender addresses to its own port, and waits for the answer, as it does
 * for the firmware of an adapter.
 */
#include <linux/module.h>
#include <linux/slab.h>

#include "device.h"

/* How long the program may take for an answer. */
#define LOCAL_TIMEOUT (2 * HZ)

static bool sm_change_event = true;
module_param(sm_change_event, bool, 0644);
MODULE_PARM_DESC(sm_change_event, "raise an event when only the subnet manager's LID changes (the drivers mlx4 and mlx5 raise none)");

/* Somebody waits for an answer of the adapter's own agents. */
struct waiter {
	struct list_head list;
	u32 id;
	bool answered;
	struct completion done;
	u8 mad[IB_MGMT_MAD_SIZE];
};

static int query_device(struct ib_device *ib, struct ib_device_attr *attr, struct ib_udata *udata)
{
	const struct vib_create *facts = &to_dev(ib)->facts;

	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = 1ull << 32;
	attr->sys_image_guid = facts->system_image_guid;
	attr->vendor_id = facts->vendor_id;
	attr->vendor_part_id = facts->device_id;
	attr->hw_ver = facts->revision;
	attr->max_mr_size = ~0ull;
	attr->page_size_cap = PAGE_SIZE;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY | IBK_BLOCK_MULTICAST_LOOPBACK;
	attr->max_qp = 1 << 16;
	attr->max_qp_wr = 1 << 14;
	attr->max_send_sge = 32;
	attr->max_recv_sge = 32;
	attr->max_cq = 1 << 16;
	attr->max_cqe = 1 << 17;
	attr->max_mr = 1 << 16;
	attr->max_pd = 1 << 16;
	attr->max_ah = 1 << 16;
	attr->max_mcast_grp = 1 << 13;
	attr->max_mcast_qp_attach = 56;
	attr->max_total_mcast_qp_attach = 1 << 20;
	attr->max_pkeys = facts->pkeys;
	return 0;
}

static int query_port(struct ib_device *ib, u32 port, struct ib_port_attr *attr)
{
	struct vib_dev *dev = to_dev(ib);
	const struct vib_port *info;

	rcu_read_lock();
	info = vib_state(dev, port);
	attr->state = info->state;
	attr->phys_state = info->phys_state;
	attr->max_mtu = info->mtu_cap;
	attr->active_mtu = info->mtu;
	attr->gid_tbl_len = dev->facts.gids;
	attr->port_cap_flags = info->cap_mask;
	attr->max_msg_sz = VIB_PAYLOAD_MAX;
	attr->pkey_tbl_len = dev->facts.pkeys;
	attr->bad_pkey_cntr = info->pkey_violations;
	attr->qkey_viol_cntr = info->qkey_violations;
	attr->lid = info->lid;
	attr->sm_lid = info->sm_lid;
	attr->lmc = info->lmc;
	attr->max_vl_num = info->vl_cap;
	attr->sm_sl = info->sm_sl;
	attr->subnet_timeout = info->subnet_timeout;
	attr->active_width = info->width;
	attr->active_speed = info->speed;
	rcu_read_unlock();
	return 0;
}

static void get_fw_str(struct ib_device *ib, char *str)
{
	strscpy(str, "1.0.0", IB_FW_VERSION_NAME_MAX);
}

static int get_port_immutable(struct ib_device *ib, u32 port, struct ib_port_immutable *immutable)
{
	immutable->core_cap_flags = RDMA_CORE_PORT_IBA_IB;
	immutable->pkey_tbl_len = to_dev(ib)->facts.pkeys;
	immutable->gid_tbl_len = to_dev(ib)->facts.gids;
	immutable->max_mad_size = IB_MGMT_MAD_SIZE;
	return 0;
}

static enum rdma_link_layer get_link_layer(struct ib_device *ib, u32 port)
{
	return IB_LINK_LAYER_INFINIBAND;
}

static int query_gid(struct ib_device *ib, u32 port, int index, union ib_gid *gid)
{
	if (index >= to_dev(ib)->facts.gids)
		return -EINVAL;
	rcu_read_lock();
	gid->global.subnet_prefix = vib_state(to_dev(ib), port)->gid_prefix;
	gid->global.interface_id = vib_state(to_dev(ib), port)->guids[index];
	rcu_read_unlock();
	/* An entry without a GUID is an empty one. */
	if (!gid->global.interface_id)
		memset(gid, 0, sizeof(*gid));
	return 0;
}

static int query_pkey(struct ib_device *ib, u32 port, u16 index, u16 *pkey)
{
	if (index >= to_dev(ib)->facts.pkeys)
		return -EINVAL;
	rcu_read_lock();
	*pkey = vib_state(to_dev(ib), port)->pkeys[index];
	rcu_read_unlock();
	return 0;
}

static void event(struct vib_dev *dev, u32 port, enum ib_event_type type)
{
	struct ib_event event = { .device = &dev->ib, .element.port_num = port, .event = type };

	ib_dispatch_event(&event);
}

static void raise_events(struct vib_dev *dev, u32 port, const struct vib_port *old, const struct vib_port *new)
{
	bool was = old->state == IB_PORT_ACTIVE, is = new->state == IB_PORT_ACTIVE;

	if (old->gid_prefix != new->gid_prefix || memcmp(old->guids, new->guids, sizeof(old->guids)))
		event(dev, port, IB_EVENT_GID_CHANGE);
	if (memcmp(old->pkeys, new->pkeys, sizeof(old->pkeys)))
		event(dev, port, IB_EVENT_PKEY_CHANGE);
	if (old->lid != new->lid || old->lmc != new->lmc)
		event(dev, port, IB_EVENT_LID_CHANGE);
	if (sm_change_event && (old->sm_lid != new->sm_lid || old->sm_sl != new->sm_sl))
		event(dev, port, IB_EVENT_SM_CHANGE);
	if (was != is)
		event(dev, port, is ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
	if (new->reregister)
		event(dev, port, IB_EVENT_CLIENT_REREGISTER);
}

/* Puts a new state in place of the old one; the caller holds `change`. */
static int replace_state(struct vib_dev *dev, u32 port, const struct vib_port *info)
{
	struct vib_state *old = rcu_dereference_protected(dev->state[port - 1], lockdep_is_held(&dev->change));
	struct vib_state *new = kzalloc(sizeof(*new), GFP_KERNEL);

	if (!new)
		return -ENOMEM;
	new->info = *info;
	rcu_assign_pointer(dev->state[port - 1], new);
	if (old) {
		if (dev->registered)
			raise_events(dev, port, &old->info, info);
		kfree_rcu(old, rcu);
	}
	return 0;
}

int vib_set_port(struct vib_dev *dev, u32 port, const struct vib_port *info)
{
	int err;

	mutex_lock(&dev->change);
	err = replace_state(dev, port, info);
	mutex_unlock(&dev->change);
	return err;
}

static int modify_port(struct ib_device *ib, u32 port, int mask, struct ib_port_modify *change)
{
	struct vib_msg msg = { .type = VIB_CAPS, .port = port, .len = sizeof(struct vib_caps) };
	struct vib_caps caps = { .set = change->set_port_cap_mask, .clear = change->clr_port_cap_mask };
	struct vib_dev *dev = to_dev(ib);
	struct vib_port info;
	struct sk_buff *skb;
	int err;

	if (!caps.set && !caps.clear)
		return 0;
	skb = vib_message(&msg, GFP_KERNEL);
	if (!skb)
		return -ENOMEM;
	skb_put_data(skb, &caps, sizeof(caps));
	mutex_lock(&dev->change);
	info = rcu_dereference_protected(dev->state[port - 1], lockdep_is_held(&dev->change))->info;
	info.cap_mask = (info.cap_mask | caps.set) & ~caps.clear;
	info.reregister = 0;
	err = replace_state(dev, port, &info);
	mutex_unlock(&dev->change);
	vib_tell(dev, skb);
	return err;
}

static int modify_device(struct ib_device *ib, int mask, struct ib_device_modify *change)
{
	struct vib_msg msg = { .type = VIB_DESCRIPTION, .len = IB_DEVICE_NODE_DESC_MAX };
	struct sk_buff *skb;

	if (mask & ~IB_DEVICE_MODIFY_NODE_DESC)
		return -EOPNOTSUPP;
	if (!(mask & IB_DEVICE_MODIFY_NODE_DESC))
		return 0;
	skb = vib_message(&msg, GFP_KERNEL);
	if (!skb)
		return -ENOMEM;
	skb_put_data(skb, change->node_desc, IB_DEVICE_NODE_DESC_MAX);
	memcpy(ib->node_desc, change->node_desc, IB_DEVICE_NODE_DESC_MAX);
	vib_tell(to_dev(ib), skb);
	return 0;
}

/* Hands a MAD to the program and waits; whether an agent of the adapter has answered. */
static bool ask(struct vib_dev *dev, u32 port, const struct ib_mad *in, struct ib_mad *out)
{
	struct vib_msg msg = { .type = VIB_LOCAL, .port = port, .len = IB_MGMT_MAD_SIZE };
	struct waiter waiter = { .answered = false };
	struct sk_buff *skb;

	init_completion(&waiter.done);
	spin_lock(&dev->local_lock);
	if (dev->gone) {
		spin_unlock(&dev->local_lock);
		return false;
	}
	msg.src_qp = waiter.id = dev->local_id++;
	list_add(&waiter.list, &dev->local);
	spin_unlock(&dev->local_lock);
	skb = vib_message(&msg, GFP_KERNEL);
	if (skb) {
		skb_put_data(skb, in, IB_MGMT_MAD_SIZE);
		vib_tell(dev, skb);
		wait_for_completion_timeout(&waiter.done, LOCAL_TIMEOUT);
	}
	spin_lock(&dev->local_lock);
	list_del(&waiter.list);
	spin_unlock(&dev->local_lock);
	if (waiter.answered)
		memcpy(out, waiter.mad, IB_MGMT_MAD_SIZE);
	return waiter.answered;
}

/*
 * Called for what comes from the wire (with a GRH's place), which the program has looked at already, and for what is sent to the
 * own port by directed route, or asked by sysfs for its counters.
 */
static int process_mad(struct ib_device *ib, int flags, u32 port, const struct ib_wc *wc, const struct ib_grh *grh,
		       const struct ib_mad *in, struct ib_mad *out, size_t *out_size, u16 *out_pkey_index)
{
	if (grh || !ask(to_dev(ib), port, in, out))
		return IB_MAD_RESULT_SUCCESS;
	return IB_MAD_RESULT_SUCCESS | IB_MAD_RESULT_REPLY;
}

void vib_answer_local(struct vib_dev *dev, const struct vib_msg *msg, const void *payload)
{
	struct waiter *waiter;

	spin_lock(&dev->local_lock);
	list_for_each_entry(waiter, &dev->local, list)
		if (waiter->id == msg->src_qp) {
			waiter->answered = msg->len == IB_MGMT_MAD_SIZE;
			if (waiter->answered)
				memcpy(waiter->mad, payload, IB_MGMT_MAD_SIZE);
			complete(&waiter->done);
			break;
		}
	spin_unlock(&dev->local_lock);
}

static int alloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return udata ? -EOPNOTSUPP : 0;
}

static int dealloc_pd(struct ib_pd *pd, struct ib_udata *udata)
{
	return 0;
}

static int create_ah(struct ib_ah *ah, struct rdma_ah_init_attr *init, struct ib_udata *udata)
{
	to_ah(ah)->attr = *init->ah_attr;
	return 0;
}

static int query_ah(struct ib_ah *ah, struct rdma_ah_attr *attr)
{
	*attr = to_ah(ah)->attr;
	return 0;
}

static int destroy_ah(struct ib_ah *ah, u32 flags)
{
	return 0;
}

static struct ib_mr *get_dma_mr(struct ib_pd *pd, int access)
{
	struct ib_mr *mr = kzalloc(sizeof(*mr), GFP_KERNEL);

	if (!mr)
		return ERR_PTR(-ENOMEM);
	atomic_inc(&vib_held);
	return mr;
}

/* There are no user-space verbs: the core only wants it to be there. */
static struct ib_mr *reg_user_mr(struct ib_pd *pd, u64 start, u64 length, u64 virt, int access, struct ib_udata *udata)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static int dereg_mr(struct ib_mr *mr, struct ib_udata *udata)
{
	kfree(mr);
	atomic_dec(&vib_held);
	return 0;
}

static const struct ib_device_ops vib_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.alloc_pd = alloc_pd,
	.attach_mcast = vib_attach,
	.create_ah = create_ah,
	.create_cq = vib_create_cq,
	.create_qp = vib_create_qp,
	.dealloc_pd = dealloc_pd,
	.dereg_mr = dereg_mr,
	.destroy_ah = destroy_ah,
	.destroy_cq = vib_destroy_cq,
	.destroy_qp = vib_destroy_qp,
	.detach_mcast = vib_detach,
	.get_dev_fw_str = get_fw_str,
	.get_dma_mr = get_dma_mr,
	.get_link_layer = get_link_layer,
	.get_port_immutable = get_port_immutable,
	.modify_device = modify_device,
	.modify_port = modify_port,
	.modify_qp = vib_modify_qp,
	.poll_cq = vib_poll_cq,
	.post_recv = vib_post_recv,
	.post_send = vib_post_send,
	.process_mad = process_mad,
	.query_ah = query_ah,
	.query_device = query_device,
	.query_gid = query_gid,
	.query_pkey = query_pkey,
	.query_port = query_port,
	.query_qp = vib_query_qp,
	.reg_user_mr = reg_user_mr,
	.req_notify_cq = vib_req_notify_cq,
	INIT_RDMA_OBJ_SIZE(ib_ah, vib_ah, ib),
	INIT_RDMA_OBJ_SIZE(ib_cq, vib_cq, ib),
	INIT_RDMA_OBJ_SIZE(ib_pd, vib_pd, ib),
	INIT_RDMA_OBJ_SIZE(ib_qp, vib_qp, ib),
};

static void free_dev(struct vib_dev *dev)
{
	int i;

	for (i = 0; i < VIB_PORTS_MAX; i++)
		kfree(rcu_dereference_protected(dev->state[i], true));
	xa_destroy(&dev->qps);
	ib_dealloc_device(&dev->ib);
	atomic_dec(&vib_held);
}

struct vib_dev *vib_new(const struct vib_create *facts, struct vib_outbox *outbox)
{
	static const struct vib_port down = { .state = IB_PORT_DOWN, .phys_state = IB_PORT_PHYS_STATE_POLLING, .mtu_cap = IB_MTU_4096,
		.mtu = IB_MTU_256, .width = IB_WIDTH_1X, .speed = IB_SPEED_SDR, .vl_cap = 1, .pkeys = { IB_DEFAULT_PKEY_FULL } };
	struct vib_dev *dev;
	int port, err = 0;

	if (!facts->ports || facts->ports > VIB_PORTS_MAX || !facts->gids || facts->gids > VIB_GIDS_MAX || !facts->pkeys ||
	    facts->pkeys > VIB_PKEYS_MAX)
		return ERR_PTR(-EINVAL);
	dev = ib_alloc_device(vib_dev, ib);
	if (!dev)
		return ERR_PTR(-ENOMEM);
	atomic_inc(&vib_held);
	dev->outbox = outbox;
	dev->facts = *facts;
	mutex_init(&dev->change);
	spin_lock_init(&dev->local_lock);
	INIT_LIST_HEAD(&dev->local);
	xa_init_flags(&dev->qps, XA_FLAGS_ALLOC);
	dev->next_qp = 2;
	for (port = 1; port <= facts->ports && !err; port++)
		err = vib_set_port(dev, port, &down);
	if (err) {
		free_dev(dev);
		return ERR_PTR(err);
	}
	dev->ib.node_type = RDMA_NODE_IB_CA;
	dev->ib.phys_port_cnt = facts->ports;
	dev->ib.num_comp_vectors = num_possible_cpus();
	dev->ib.node_guid = facts->node_guid;
	memcpy(dev->ib.node_desc, facts->description, sizeof(facts->description));
	ib_set_device_ops(&dev->ib, &vib_ops);
	return dev;
}

/* Shows the adapter to the kernel's clients. The program may answer already, and has to. */
int vib_register(struct vib_dev *dev)
{
	int port, err = ib_register_device(&dev->ib, "vib%d", NULL);

	if (err)
		return err;
	mutex_lock(&dev->change);
	dev->registered = true;
	for (port = 1; port <= dev->facts.ports; port++) {
		/* Nobody was told what changed meanwhile. */
		static const struct vib_port none = { .state = IB_PORT_DOWN };

		raise_events(dev, port, &none, &rcu_dereference_protected(dev->state[port - 1], true)->info);
	}
	mutex_unlock(&dev->change);
	return 0;
}

/* The program is gone. Nobody waits for it any more; the kernel's clients let go of the adapter, under whatever traffic. */
void vib_remove(struct vib_dev *dev)
{
	if (dev->registered)
		ib_unregister_device(&dev->ib);
	free_dev(dev);
}

/* Lets go who waits for an answer of the program, now and from now on. */
void vib_abandon(struct vib_dev *dev)
{
	struct waiter *waiter;

	spin_lock(&dev->local_lock);
	dev->gone = true;
	list_for_each_entry(waiter, &dev->local, list)
		complete(&waiter->done);
	spin_unlock(&dev->local_lock);
}
