//! The details of the subnet management traps (specification volume 1, 14.2.5.1): what the 54 data bytes of a notice
//! mean, by trap number.

use zerocopy::big_endian::{U16, U32, U64, U128};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::Notice;
use crate::types::{Gid, Guid, Lid, PortNum, Qpn, WireKey};

/// Details that lie at the head of a notice's data.
pub trait TrapData: FromBytes + IntoBytes + KnownLayout + Immutable + Unaligned + Copy {
    /// All bytes zero.
    fn zeroed() -> Self {
        Self::new_zeroed()
    }
}

macro_rules! trap_data {
    ($($type:ident: $size:literal;)*) => {$(
        const _: () = assert!(size_of::<$type>() == $size && $size <= 54);
        impl TrapData for $type {}
    )*};
}

trap_data! {
    GidData: 22;
    LinkStateData: 2;
    PortThresholdData: 5;
    LocalChangesData: 14;
    SystemImageGuidData: 14;
    BadMKeyData: 54;
    BadKeyData: 50;
    BadSwitchPKeyData: 51;
}

/// The details of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrapDetails {
    /// 64: a GID came into service.
    GidInService(GidData),
    /// 65: a GID went out of service.
    GidOutOfService(GidData),
    /// 66: a multicast group was created.
    MulticastGroupCreated(GidData),
    /// 67: a multicast group was deleted.
    MulticastGroupDeleted(GidData),
    /// 128: the link state of a port of the switch changed.
    LinkStateChanged(LinkStateData),
    /// 129: local link integrity threshold reached.
    LocalLinkIntegrity(PortThresholdData),
    /// 130: excessive buffer overrun threshold reached.
    ExcessiveBufferOverrun(PortThresholdData),
    /// 131: flow control update watchdog expired.
    FlowControlWatchdog(PortThresholdData),
    /// 144: capabilities or other local things changed.
    LocalChanges(LocalChangesData),
    /// 145: SystemImageGUID changed.
    SystemImageGuidChanged(SystemImageGuidData),
    /// 256: bad M_Key.
    BadMKey(BadMKeyData),
    /// 257: bad P_Key.
    BadPKey(BadKeyData),
    /// 258: bad Q_Key.
    BadQKey(BadKeyData),
    /// 259: bad P_Key at a switch's external port.
    BadSwitchPKey(BadSwitchPKeyData),
    /// A generic trap that is none of these.
    Unknown {
        /// TrapNumber.
        trap_number: u16,
    },
    /// A vendor's notice.
    Vendor {
        /// VendorID, 24 bits.
        vendor_id: u32,
        /// DeviceID.
        device_id: u16,
    },
}

impl TrapDetails {
    /// The details of a notice, by its trap number.
    pub(super) fn decode(notice: &Notice) -> Self {
        let Some(trap_number) = notice.trap_number() else {
            return Self::Vendor {
                vendor_id: notice.producer_type_or_vendor_id(),
                device_id: notice.trap_number_or_device_id.get(),
            };
        };
        match trap_number {
            64 => Self::GidInService(head(notice)),
            65 => Self::GidOutOfService(head(notice)),
            66 => Self::MulticastGroupCreated(head(notice)),
            67 => Self::MulticastGroupDeleted(head(notice)),
            128 => Self::LinkStateChanged(head(notice)),
            129 => Self::LocalLinkIntegrity(head(notice)),
            130 => Self::ExcessiveBufferOverrun(head(notice)),
            131 => Self::FlowControlWatchdog(head(notice)),
            144 => Self::LocalChanges(head(notice)),
            145 => Self::SystemImageGuidChanged(head(notice)),
            256 => Self::BadMKey(head(notice)),
            257 => Self::BadPKey(head(notice)),
            258 => Self::BadQKey(head(notice)),
            259 => Self::BadSwitchPKey(head(notice)),
            _ => Self::Unknown { trap_number },
        }
    }
}

/// The head of the data. Every `TrapData` is at most 54 bytes long, which `trap_data!` asserts.
fn head<T: TrapData>(notice: &Notice) -> T {
    let mut value = T::new_zeroed();
    value.as_mut_bytes().copy_from_slice(&notice.data[..size_of::<T>()]);
    value
}

/// Traps 64 to 67: the GID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct GidData {
    reserved: [u8; 6],
    /// GIDADDR.
    pub gid: U128,
}

impl GidData {
    /// For this GID.
    pub const fn new(gid: Gid) -> Self {
        Self { reserved: [0; 6], gid: U128::new(gid.0) }
    }

    /// The GID.
    pub const fn gid(&self) -> Gid {
        Gid(self.gid.get())
    }
}

/// Trap 128: the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct LinkStateData {
    /// LIDADDR of the switch.
    pub lid: U16,
}

impl LinkStateData {
    /// The switch's LID; `None` when it has none yet.
    pub fn lid(&self) -> Option<Lid> {
        Lid::new(self.lid.get())
    }
}

/// Traps 129 to 131: the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct PortThresholdData {
    reserved: U16,
    /// LIDADDR.
    pub lid: U16,
    /// PORTNO.
    pub port: u8,
}

impl PortThresholdData {
    /// For this port.
    pub fn new(lid: Lid, port: PortNum) -> Self {
        Self { reserved: U16::ZERO, lid: U16::new(lid.get()), port: port.0 }
    }

    /// The LID; `None` when there is none yet.
    pub fn lid(&self) -> Option<Lid> {
        Lid::new(self.lid.get())
    }

    /// The port.
    pub const fn port(&self) -> PortNum {
        PortNum(self.port)
    }
}

/// Trap 144: what changed at a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct LocalChangesData {
    reserved: U16,
    /// LIDADDR.
    pub lid: U16,
    reserved2: u8,
    /// Bit 0: OtherLocalChanges; [`LocalChangesData::change_flags`] counts.
    pub other_local_changes: u8,
    /// The new CapabilityMask.
    pub capability_mask: U32,
    /// Which other things changed.
    pub change_flags: U16,
    /// The new CapabilityMask2.
    pub capability_mask2: U16,
}

impl LocalChangesData {
    /// ChangeFlags: NodeDescription.
    pub const NODE_DESCRIPTION: u16 = 1 << 0;
    /// ChangeFlags: LinkWidthEnabled.
    pub const LINK_WIDTH_ENABLED: u16 = 1 << 1;
    /// ChangeFlags: LinkSpeedEnabled.
    pub const LINK_SPEED_ENABLED: u16 = 1 << 2;
    /// ChangeFlags: the SM's priority.
    pub const SM_PRIORITY: u16 = 1 << 3;
    /// ChangeFlags: HierarchyInfo.
    pub const HIERARCHY_INFO: u16 = 1 << 4;
    /// ChangeFlags: CapabilityMask2.
    pub const CAPABILITY_MASK2: u16 = 1 << 5;

    /// For this port, with its CapabilityMask and what else changed (0 for nothing).
    pub fn new(lid: Lid, capability_mask: u32, change_flags: u16) -> Self {
        Self {
            reserved: U16::ZERO,
            lid: U16::new(lid.get()),
            reserved2: 0,
            other_local_changes: u8::from(change_flags != 0),
            capability_mask: U32::new(capability_mask),
            change_flags: U16::new(change_flags),
            capability_mask2: U16::ZERO,
        }
    }

    /// The LID; `None` when there is none yet.
    pub fn lid(&self) -> Option<Lid> {
        Lid::new(self.lid.get())
    }

    /// Whether all bits of `flags` are among what changed.
    pub const fn changed(&self, flags: u16) -> bool {
        self.other_local_changes & 1 == 1 && self.change_flags.get() & flags == flags
    }
}

/// Trap 145: the new SystemImageGUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct SystemImageGuidData {
    reserved: U16,
    /// LIDADDR.
    pub lid: U16,
    reserved2: U16,
    /// The new GUID.
    pub system_image_guid: U64,
}

impl SystemImageGuidData {
    /// The LID; `None` when there is none yet.
    pub fn lid(&self) -> Option<Lid> {
        Lid::new(self.lid.get())
    }

    /// The new GUID.
    pub fn system_image_guid(&self) -> Guid {
        Guid(self.system_image_guid.get())
    }
}

/// Trap 256: who tried what with a wrong M_Key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct BadMKeyData {
    reserved: U16,
    /// LIDADDR of the port that refused.
    pub lid: U16,
    /// DRSLID.
    pub dr_slid: U16,
    /// Method of the refused packet.
    pub method: u8,
    reserved2: u8,
    /// Its attribute.
    pub attribute_id: U16,
    /// Its attribute modifier.
    pub attribute_modifier: U32,
    /// Its M_Key.
    pub m_key: WireKey,
    reserved3: u8,
    dr_notice_and_hops: u8,
    /// DRNoticeReturnPath: the first 30 entries of the return path.
    pub dr_return_path: [u8; 30],
}

impl BadMKeyData {
    bits! {
        /// DRNotice: 1 when the refused packet was a directed-route one.
        dr_notice, set_dr_notice: dr_notice_and_hops[7:7];
        /// DRPathTruncated: 1 when the path was longer than 30 hops.
        dr_path_truncated, set_dr_path_truncated: dr_notice_and_hops[6:6];
        /// DRHopCount.
        dr_hop_count, set_dr_hop_count: dr_notice_and_hops[5:0];
    }
}

/// Traps 257 and 258: a packet with a bad P_Key or Q_Key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct BadKeyData {
    reserved: U16,
    /// LIDADDR1: source of the packet.
    pub lid1: U16,
    /// LIDADDR2: its destination.
    pub lid2: U16,
    /// The key: Q_Key, or P_Key in the lower 16 bits.
    pub key: U32,
    sl_and_qp1: U32,
    qp2_word: U32,
    /// GIDADDR1.
    pub gid1: U128,
    /// GIDADDR2.
    pub gid2: U128,
}

impl BadKeyData {
    word_bits! {
        /// SL of the packet.
        sl, set_sl: sl_and_qp1 as u32[31:28];
        /// QP1: source queue pair.
        qp1_raw, set_qp1_raw: sl_and_qp1 as u32[23:0];
        /// QP2: destination queue pair.
        qp2_raw, set_qp2_raw: qp2_word as u32[23:0];
    }

    /// QP1: source queue pair.
    pub const fn qp1(&self) -> Qpn {
        Qpn(self.qp1_raw())
    }

    /// QP2: destination queue pair.
    pub const fn qp2(&self) -> Qpn {
        Qpn(self.qp2_raw())
    }
}

/// Trap 259: a packet with a bad P_Key at a switch's external port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct BadSwitchPKeyData {
    /// DataValid: bit 0 for LIDADDR1, then one for each of LIDADDR2, PKEY, SL, QP1, QP2, GIDADDR1, GIDADDR2.
    pub data_valid: U16,
    /// LIDADDR1: source of the packet.
    pub lid1: U16,
    /// LIDADDR2: its destination.
    pub lid2: U16,
    /// PKEY.
    pub pkey: U16,
    sl_and_qp1: U32,
    qp2_word: U32,
    /// GIDADDR1.
    pub gid1: U128,
    /// GIDADDR2.
    pub gid2: U128,
    /// SWLIDADDR: the switch.
    pub switch_lid: U16,
    /// PORTNO: its port.
    pub port: u8,
}

impl BadSwitchPKeyData {
    word_bits! {
        /// SL of the packet.
        sl, set_sl: sl_and_qp1 as u32[31:28];
        /// QP1: source queue pair.
        qp1_raw, set_qp1_raw: sl_and_qp1 as u32[23:0];
        /// QP2: destination queue pair.
        qp2_raw, set_qp2_raw: qp2_word as u32[23:0];
    }

    /// The switch's port.
    pub const fn port(&self) -> PortNum {
        PortNum(self.port)
    }
}

#[cfg(test)]
mod tests {
    use super::super::NoticeType;
    use super::*;
    use crate::types::NodeType;

    fn notice<T: TrapData>(trap: u16, data: &T) -> TrapDetails {
        let kind = NoticeType::SubnetManagement;
        let lid = Lid::new(5);
        Notice::generic(kind, NodeType::Switch.to_wire().into(), trap, lid).with_data(data).details()
    }

    /// Each trap number leads to its own view, and the view gives back what was put in.
    #[test]
    fn details_follow_the_trap_number() {
        let lid = Lid::new(7).unwrap();
        let gid = GidData::new(Gid(0xfe80 << 112 | 9));
        assert_eq!(notice(64, &gid), TrapDetails::GidInService(gid));
        assert_eq!(notice(65, &gid), TrapDetails::GidOutOfService(gid));
        assert_eq!(notice(66, &gid), TrapDetails::MulticastGroupCreated(gid));
        assert_eq!(notice(67, &gid), TrapDetails::MulticastGroupDeleted(gid));
        assert_eq!(gid.gid(), Gid(0xfe80 << 112 | 9));
        let link = LinkStateData { lid: U16::new(7) };
        assert_eq!(notice(128, &link), TrapDetails::LinkStateChanged(link));
        let port = PortThresholdData::new(lid, PortNum(3));
        assert_eq!(notice(129, &port), TrapDetails::LocalLinkIntegrity(port));
        assert_eq!(notice(130, &port), TrapDetails::ExcessiveBufferOverrun(port));
        assert_eq!(notice(131, &port), TrapDetails::FlowControlWatchdog(port));
        assert_eq!((port.lid(), port.port()), (Some(lid), PortNum(3)));
        let changes = LocalChangesData::new(lid, 0x50, LocalChangesData::NODE_DESCRIPTION);
        assert_eq!(notice(144, &changes), TrapDetails::LocalChanges(changes));
        assert!(changes.changed(LocalChangesData::NODE_DESCRIPTION));
        assert!(!changes.changed(LocalChangesData::SM_PRIORITY));
        let mut image = SystemImageGuidData::zeroed();
        image.system_image_guid.set(0x77);
        assert_eq!(notice(145, &image), TrapDetails::SystemImageGuidChanged(image));
        let mut m_key = BadMKeyData::zeroed();
        m_key.set_dr_hop_count(3);
        assert_eq!(notice(256, &m_key), TrapDetails::BadMKey(m_key));
        let mut key = BadKeyData::zeroed();
        key.set_qp1_raw(0x12_3456);
        assert_eq!(notice(257, &key), TrapDetails::BadPKey(key));
        assert_eq!(notice(258, &key), TrapDetails::BadQKey(key));
        assert_eq!((key.qp1(), key.qp2()), (Qpn(0x12_3456), Qpn(0)));
        let mut switch = BadSwitchPKeyData::zeroed();
        switch.port = 9;
        assert_eq!(notice(259, &switch), TrapDetails::BadSwitchPKey(switch));
        assert_eq!(notice(1000, &link), TrapDetails::Unknown { trap_number: 1000 });
    }

    #[test]
    fn a_vendors_notice_names_vendor_and_device() {
        let mut notice = Notice::generic(NoticeType::Urgent, 0x00_02c9, 0x1234, None);
        notice.set_is_generic_bit(0);
        assert_eq!(notice.details(), TrapDetails::Vendor { vendor_id: 0x2c9, device_id: 0x1234 });
        assert_eq!((notice.producer(), notice.trap_number(), notice.issuer_lid()), (None, None, None));
    }
}
