/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * What passes between the kernel module vib and the program that plays the fabric.
 *
 * One open of /dev/vib is one InfiniBand adapter, from VIB_CREATE until the file is closed. Each read() gives, and each
 * write() takes, exactly one message: a header, then `len` bytes. Numbers are in host byte order, GUIDs, prefixes and
 * the global route header as on the wire. simulations/src/emulate/kernel/message.rs has the same layouts.
 */
#ifndef VIB_H
#define VIB_H

#include <linux/types.h>

#define VIB_PORTS_MAX 8		/* ports of an adapter */
#define VIB_GIDS_MAX 8		/* GIDs of a port */
#define VIB_PKEYS_MAX 128	/* P_Keys of a port */
#define VIB_PAYLOAD_MAX 4096	/* bytes of a packet: the largest MTU */

enum vib_type {
	/* To the kernel: make an adapter; payload struct vib_create. Once a file. It shows when each port has had a VIB_PORT. */
	VIB_CREATE = 1,
	/* From the kernel: the adapter is there, or could not be made; payload struct vib_created. */
	VIB_CREATED = 2,
	/* Both ways: a datagram; the payload is what follows the headers. A directed-route SMP is as on the wire. */
	VIB_PACKET = 3,
	/* To the kernel: what the management agent of `port` says now; payload struct vib_port. */
	VIB_PORT = 4,
	/* From the kernel: capability bits of `port`; payload struct vib_caps. */
	VIB_CAPS = 5,
	/* From the kernel: somebody wrote another node description; payload 64 bytes. */
	VIB_DESCRIPTION = 6,
	/*
	 * From the kernel: a MAD for the adapter's own agents, which the sender waits for; payload 256 bytes. To the kernel:
	 * the answer with the same `src_qp`; 256 bytes, or none when no agent of the adapter takes it.
	 */
	VIB_LOCAL = 7,
	/* From the kernel: the packet with this header had a P_Key or a Q_Key that its queue pair does not accept. */
	VIB_BAD_PKEY = 8,
	VIB_BAD_QKEY = 9,
};

struct vib_msg {
	__u32 type;
	__u32 len;
	__u32 src_qp;
	__u32 dst_qp;
	__u32 qkey;
	__u16 slid;
	__u16 dlid;
	__u16 pkey;
	__u16 reserved;
	__u8 port;
	__u8 sl;
	__u8 has_grh;
	__u8 reserved2;
	__u8 grh[40];
};

struct vib_create {
	__be64 node_guid;
	__be64 system_image_guid;
	__u32 vendor_id;
	__u32 device_id;
	__u32 revision;
	__u8 ports;
	__u8 gids;		/* entries of each port's tables */
	__u16 pkeys;
	char description[64];
};

struct vib_created {
	__s32 error;		/* 0, or a negative error number */
	char name[60];		/* vib0, vib1, ... */
};

struct vib_port {		/* values as PortInfo has them, but for the speed */
	__u32 cap_mask;
	__u16 lid;
	__u16 sm_lid;
	__u8 state;
	__u8 phys_state;
	__u8 lmc;
	__u8 sm_sl;
	__u8 mtu_cap;
	__u8 mtu;
	__u8 width;
	__u8 vl_cap;
	__u8 subnet_timeout;
	__u8 reregister;	/* ClientReregister was set */
	__u16 speed;		/* enum ib_port_speed */
	__u32 qkey_violations;
	__u32 pkey_violations;
	__u32 reserved;
	__be64 gid_prefix;
	__be64 guids[VIB_GIDS_MAX];
	__u16 pkeys[VIB_PKEYS_MAX];
};

struct vib_caps {
	__u32 set;
	__u32 clear;
};

#endif
