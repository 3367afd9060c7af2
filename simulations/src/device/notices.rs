//! Notices that devices send as traps (specification volume 1, 14.2.5.1).

use mad::types::{Lid, NodeType, PKey, PortNum};
use mad::wire::smp::{self as details, Notice, NoticeType, Smp};
use zerocopy::{FromZeros, IntoBytes};

use super::Device;

/// Where a notice comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issuer {
    /// Kind of the node.
    pub kind: NodeType,
    /// LID of its end port.
    pub lid: Option<Lid>,
}

impl Issuer {
    /// An end port of a device as issuer.
    pub fn of(device: &Device, end_port: PortNum) -> Self {
        Self { kind: device.kind(), lid: device.port(end_port).and_then(|port| port.info.lid()) }
    }

    fn notice<T: details::TrapData>(self, kind: NoticeType, number: u16, data: &T) -> Notice {
        Notice::generic(kind, u32::from(self.kind.to_wire()), number, self.lid).with_data(data)
    }

    fn raw_lid(self) -> u16 {
        self.lid.map_or(0, Lid::get)
    }

    /// 128: the link state of at least one port of the switch changed.
    pub fn link_state(self) -> Notice {
        let mut data = details::LinkStateData::new_zeroed();
        data.lid.set(self.raw_lid());
        self.notice(NoticeType::Urgent, 128, &data)
    }

    /// 129, 130 or 131: threshold of local link integrity, buffer overrun or flow control watchdog reached at a port.
    pub fn threshold(self, number: u16, port: PortNum) -> Notice {
        let mut data = details::PortThresholdData::new_zeroed();
        data.lid.set(self.raw_lid());
        data.port = port.0;
        self.notice(NoticeType::Urgent, number, &data)
    }

    /// 144: CapabilityMask changed, or with `flags` (`LocalChangesData`'s) something else of the end port.
    pub fn local_changes(self, mask: u32, mask2: u16, flags: u16) -> Notice {
        let mut data = details::LocalChangesData::new_zeroed();
        data.lid.set(self.raw_lid());
        data.other_local_changes = u8::from(flags != 0);
        data.capability_mask.set(mask);
        data.change_flags.set(flags);
        data.capability_mask2.set(mask2);
        self.notice(NoticeType::Informational, 144, &data)
    }

    /// 145: SystemImageGUID changed.
    pub fn system_image(self, guid: u64) -> Notice {
        let mut data = details::SystemImageGuidData::new_zeroed();
        data.lid.set(self.raw_lid());
        data.system_image_guid.set(guid);
        self.notice(NoticeType::Informational, 145, &data)
    }

    /// 256: an SMP had the wrong M_Key.
    pub fn bad_m_key(self, refused: &Smp, directed: bool) -> Notice {
        let mut data = details::BadMKeyData::new_zeroed();
        data.lid.set(self.raw_lid());
        data.method = refused.header.method;
        data.attribute_id = refused.header.attribute_id;
        data.attribute_modifier = refused.header.attribute_modifier;
        data.m_key = refused.m_key;
        if directed {
            let hops = usize::from(refused.header.hop_count);
            data.dr_slid = refused.dr_slid;
            data.set_dr_notice(1);
            data.set_dr_path_truncated(u8::from(hops > 30));
            data.set_dr_hop_count(refused.header.hop_count & 0x3f);
            data.dr_return_path.copy_from_slice(&refused.return_path[1..31]);
        }
        self.notice(NoticeType::Security, 256, &data)
    }

    /// 257 (P_Key) or 258 (Q_Key): a packet had the wrong key.
    pub fn bad_key(self, number: u16, packet: &details::BadKeyData) -> Notice {
        self.notice(NoticeType::Security, number, packet)
    }

    /// 259: a switch's external port dropped a packet between two LIDs for its P_Key.
    pub fn bad_switch_p_key(self, port: PortNum, from: u16, to: u16, key: PKey) -> Notice {
        const LIDS_AND_P_KEY: u16 = 0b111;
        let mut data = details::BadSwitchPKeyData::new_zeroed();
        data.data_valid.set(LIDS_AND_P_KEY);
        data.lid1.set(from);
        data.lid2.set(to);
        data.pkey.set(key.0);
        data.switch_lid.set(self.raw_lid());
        data.port = port.0;
        self.notice(NoticeType::Security, 259, &data)
    }
}

/// Whether a TrapRepress with `one` ends the repetition of `other`: all but toggle and count agree.
pub fn is_same(one: &Notice, other: &Notice) -> bool {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    one[..8] == other[..8] && one[10..] == other[10..]
}
