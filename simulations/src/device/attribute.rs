//! Attribute IDs of the subnet management class (specification volume 1, 14.2.5), and their names for messages.

pub(super) const NOTICE: u16 = 0x0002;
pub(super) const NODE_DESCRIPTION: u16 = 0x0010;
pub(super) const NODE_INFO: u16 = 0x0011;
pub(super) const SWITCH_INFO: u16 = 0x0012;
pub(super) const GUID_INFO: u16 = 0x0014;
pub(super) const PORT_INFO: u16 = 0x0015;
pub(super) const P_KEY_TABLE: u16 = 0x0016;
pub(super) const SL_TO_VL: u16 = 0x0017;
pub(super) const VL_ARBITRATION: u16 = 0x0018;
pub(super) const LINEAR_FORWARDING: u16 = 0x0019;
pub(super) const MULTICAST_FORWARDING: u16 = 0x001b;
pub(super) const LED_INFO: u16 = 0x0031;
pub(super) const SWITCH_PORT_STATE: u16 = 0x0034;
pub(super) const MLNX_EXTENDED_PORT_INFO: u16 = 0xff90;

/// The attribute's name in the subnet management class; `None` for one that no device here knows.
pub const fn name_of(id: u16) -> Option<&'static str> {
    Some(match id {
        NOTICE => "Notice",
        NODE_DESCRIPTION => "NodeDescription",
        NODE_INFO => "NodeInfo",
        SWITCH_INFO => "SwitchInfo",
        GUID_INFO => "GUIDInfo",
        PORT_INFO => "PortInfo",
        P_KEY_TABLE => "P_KeyTable",
        SL_TO_VL => "SLtoVLMappingTable",
        VL_ARBITRATION => "VLArbitrationTable",
        LINEAR_FORWARDING => "LinearForwardingTable",
        MULTICAST_FORWARDING => "MulticastForwardingTable",
        0x0020 => "SMInfo",
        LED_INFO => "LedInfo",
        SWITCH_PORT_STATE => "SwitchPortStateTable",
        MLNX_EXTENDED_PORT_INFO => "MlnxExtendedPortInfo",
        _ => return None,
    })
}
