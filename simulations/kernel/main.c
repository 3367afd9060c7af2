// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * vib: virtual InfiniBand adapters for trying a subnet manager on the kernel's own stack. An adapter has link layer
 * InfiniBand, QP0, QP1 and UD queue pairs; whatever it sends is read from /dev/vib, and what is written there arrives. So umad, the
 * kernel's SA client, IPoIB and rdma_cm (UD) run as they are. There are no connected queue pairs, and no verbs for
 * user-space programs. For Linux 6.1. vib.h has the protocol.
 */
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

#include "device.h"

/* Messages that wait for the program; what comes beyond is lost, but for those that are sent only once. */
#define OUTBOX_MAX 16384

/* Objects that are allocated: 0 when the module goes, or something was forgotten. */
atomic_t vib_held = ATOMIC_INIT(0);

struct vib_file {
	struct mutex lock;		/* one writer at a time */
	struct vib_dev *dev;
	unsigned long told;		/* ports of which the program has spoken */
	struct vib_outbox outbox;
	struct work_struct registration;
};

/* A message with its header, and room for its payload. */
struct sk_buff *vib_message(const struct vib_msg *msg, gfp_t gfp)
{
	struct sk_buff *skb = alloc_skb(sizeof(*msg) + msg->len, gfp);

	if (skb) {
		skb_put_data(skb, msg, sizeof(*msg));
		atomic_inc(&vib_held);
	}
	return skb;
}

void vib_free(struct sk_buff *skb)
{
	kfree_skb(skb);
	atomic_dec(&vib_held);
}

static void tell(struct vib_outbox *outbox, struct sk_buff *skb)
{
	const struct vib_msg *msg = (const struct vib_msg *)skb->data;
	bool lossy = msg->type == VIB_PACKET || msg->type == VIB_BAD_PKEY || msg->type == VIB_BAD_QKEY;

	if (lossy && skb_queue_len_lockless(&outbox->queue) >= OUTBOX_MAX) {
		vib_free(skb);
		return;
	}
	skb_queue_tail(&outbox->queue, skb);
	wake_up_interruptible(&outbox->wait);
}

void vib_tell(struct vib_dev *dev, struct sk_buff *skb)
{
	tell(dev->outbox, skb);
}

/* Registering asks the adapter's own agents, so it must not keep the program from answering: it runs on its own. */
static void register_adapter(struct work_struct *work)
{
	struct vib_file *file = container_of(work, struct vib_file, registration);
	struct vib_msg msg = { .type = VIB_CREATED, .len = sizeof(struct vib_created) };
	struct vib_created created = { .error = vib_register(file->dev) };
	struct sk_buff *skb = vib_message(&msg, GFP_KERNEL);

	if (!created.error)
		strscpy(created.name, dev_name(&file->dev->ib.dev), sizeof(created.name));
	if (skb) {
		skb_put_data(skb, &created, sizeof(created));
		tell(&file->outbox, skb);
	}
}

static int create(struct vib_file *file, const struct vib_create *facts)
{
	struct vib_dev *dev = vib_new(facts, &file->outbox);

	if (IS_ERR(dev))
		return PTR_ERR(dev);
	WRITE_ONCE(file->dev, dev);
	return 0;
}

/* The kernel's clients see the adapter when all of its ports are known. */
static int set_port(struct vib_file *file, u32 port, const struct vib_port *info)
{
	unsigned long all = GENMASK(file->dev->facts.ports, 1);
	int err = vib_set_port(file->dev, port, info);

	if (err || file->told == all)
		return err;
	file->told |= BIT(port);
	if (file->told == all)
		queue_work(system_unbound_wq, &file->registration);
	return 0;
}

static int vib_open(struct inode *inode, struct file *filp)
{
	struct vib_file *file = kzalloc(sizeof(*file), GFP_KERNEL);

	if (!file)
		return -ENOMEM;
	mutex_init(&file->lock);
	skb_queue_head_init(&file->outbox.queue);
	init_waitqueue_head(&file->outbox.wait);
	INIT_WORK(&file->registration, register_adapter);
	filp->private_data = file;
	return 0;
}

static int vib_release(struct inode *inode, struct file *filp)
{
	struct vib_file *file = filp->private_data;
	struct sk_buff *skb;

	if (file->dev) {
		vib_abandon(file->dev);
		flush_work(&file->registration);
		vib_remove(file->dev);
	}
	while ((skb = skb_dequeue(&file->outbox.queue)))
		vib_free(skb);
	kfree(file);
	return 0;
}

/* What a message from the program asks for. */
static int take(struct vib_file *file, const struct vib_msg *msg, const void *payload)
{
	struct vib_dev *dev = file->dev;

	if (msg->type == VIB_CREATE)
		return dev || msg->len != sizeof(struct vib_create) ? -EINVAL : create(file, payload);
	if (!dev)
		return -ENODEV;
	if (!msg->port || msg->port > dev->facts.ports)
		return -EINVAL;
	switch (msg->type) {
	case VIB_PACKET:
		vib_deliver(dev, msg, payload);
		return 0;
	case VIB_PORT:
		return msg->len == sizeof(struct vib_port) ? set_port(file, msg->port, payload) : -EINVAL;
	case VIB_LOCAL:
		vib_answer_local(dev, msg, payload);
		return 0;
	default:
		return -EINVAL;
	}
}

static ssize_t vib_write(struct file *filp, const char __user *from, size_t size, loff_t *pos)
{
	struct vib_file *file = filp->private_data;
	struct vib_msg msg;
	void *payload;
	int err;

	if (size < sizeof(msg))
		return -EINVAL;
	if (copy_from_user(&msg, from, sizeof(msg)))
		return -EFAULT;
	if (msg.len != size - sizeof(msg) || msg.len > VIB_PAYLOAD_MAX)
		return -EMSGSIZE;
	payload = memdup_user(from + sizeof(msg), msg.len);
	if (IS_ERR(payload))
		return PTR_ERR(payload);
	mutex_lock(&file->lock);
	err = take(file, &msg, payload);
	mutex_unlock(&file->lock);
	kfree(payload);
	return err ?: size;
}

static ssize_t vib_read(struct file *filp, char __user *to, size_t size, loff_t *pos)
{
	struct vib_file *file = filp->private_data;
	struct sk_buff *skb;
	ssize_t len;

	while (!(skb = skb_dequeue(&file->outbox.queue))) {
		if (filp->f_flags & O_NONBLOCK)
			return -EAGAIN;
		if (wait_event_interruptible(file->outbox.wait, !skb_queue_empty(&file->outbox.queue)))
			return -ERESTARTSYS;
	}
	len = skb->len > size ? -EMSGSIZE : copy_to_user(to, skb->data, skb->len) ? -EFAULT : skb->len;
	vib_free(skb);
	return len;
}

static __poll_t vib_poll(struct file *filp, poll_table *table)
{
	struct vib_file *file = filp->private_data;

	poll_wait(filp, &file->outbox.wait, table);
	return EPOLLOUT | EPOLLWRNORM | (skb_queue_empty(&file->outbox.queue) ? 0 : EPOLLIN | EPOLLRDNORM);
}

static const struct file_operations vib_fops = {
	.owner = THIS_MODULE,
	.open = vib_open,
	.release = vib_release,
	.read = vib_read,
	.write = vib_write,
	.poll = vib_poll,
	.llseek = noop_llseek,
};

static struct miscdevice vib_misc = { .minor = MISC_DYNAMIC_MINOR, .name = "vib", .fops = &vib_fops, .mode = 0600 };

static int __init vib_init(void)
{
	/* message.rs counts on these. */
	static_assert(sizeof(struct vib_msg) == 72 && sizeof(struct vib_create) == 96);
	static_assert(sizeof(struct vib_created) == 64 && sizeof(struct vib_port) == 360);
	return misc_register(&vib_misc);
}

static void __exit vib_exit(void)
{
	misc_deregister(&vib_misc);
	/* States of ports are freed after a grace period. */
	rcu_barrier();
	WARN(atomic_read(&vib_held), "vib: %d objects were not freed\n", atomic_read(&vib_held));
}

module_init(vib_init);
module_exit(vib_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Virtual InfiniBand adapters whose wire is a file");
