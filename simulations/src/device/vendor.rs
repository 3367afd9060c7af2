//! The vendor's attributes other than those of adaptive routing, and PortInfoExtended.
//!
//! A device has what its [`Profile`] says; a plain one refuses all of them with status 0x0C.

use mad::types::PortNum;
use mad::wire::smp::PortInfoExtended;
use mad::wire::vendor::{Capability, ExtendedNodeInfo, GeneralInfo, MlnxExtendedPortInfo};
use mad::wire::{Attribute, Status};
use zerocopy::FromZeros;

use super::sma::write;
use super::{AdaptiveRouting, Device, DevicePort};

/// Which vendor attributes a device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Profile {
    /// None.
    Plain,
    /// GeneralInfo and ExtendedPortInfo, as all devices of the last decade.
    #[default]
    Extended,
    /// Those, ExtendedNodeInfo, and of a switch adaptive routing.
    Adaptive,
}

/// DeviceIDs of switches that have adaptive routing: Switch-IB 2, Quantum, Quantum-2, Quantum-3.
const ADAPTIVE_SWITCHES: [u16; 4] = [53000, 54000, 54002, 54004];

/// Speeds of a PortInfoExtended FEC field by their LinkSpeedExt bit: FDR, EDR, HDR, NDR, and what each can do: bit 0 none,
/// 1 FireCode, 2 Reed–Solomon, 3 low-latency Reed–Solomon.
const FEC_MODES: [u16; 4] = [0b0011, 0b1111, 0b1100, 0b1100];

impl Profile {
    /// What a device of this DeviceID has.
    pub const fn of(device_id: u16) -> Self {
        let mut index = 0;
        while index < ADAPTIVE_SWITCHES.len() {
            if ADAPTIVE_SWITCHES[index] == device_id {
                return Self::Adaptive;
            }
            index += 1;
        }
        Self::Extended
    }
}

impl Device {
    /// Gives the device the attributes of a profile; adaptive routing is then off and its tables empty.
    pub fn set_profile(&mut self, profile: Profile) {
        self.profile = profile;
        if let Some(tables) = &mut self.switch {
            tables.adaptive = (profile == Profile::Adaptive).then(|| Box::new(AdaptiveRouting::new()));
        }
    }

    /// GeneralInfo's capability mask; its other pages are not there.
    pub(super) fn general_info(&self, modifier: u32, data: &mut [u8; 64]) -> Result<(), Status> {
        if self.profile == Profile::Plain {
            return Err(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED);
        }
        if modifier != GeneralInfo::MODIFIER_CAPABILITY_MASK {
            return Err(Status::INVALID_FIELD);
        }
        let mut info = GeneralInfo::new_zeroed();
        info.set(Capability::EXTENDED_PORT_INFO, true);
        info.set(Capability::EXTENDED_NODE_INFO, self.profile == Profile::Adaptive);
        let adaptive = self.switch.as_ref().is_some_and(|tables| tables.adaptive.is_some());
        info.set(Capability::ADAPTIVE_ROUTING_REV1, adaptive);
        write(&info, data)
    }

    /// ExtendedNodeInfo: nothing but one plane.
    pub(super) fn extended_node_info(&self, data: &mut [u8; 64]) -> Result<(), Status> {
        if self.profile != Profile::Adaptive {
            return Err(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED);
        }
        let mut info = ExtendedNodeInfo::new_zeroed();
        info.max_planes = 1;
        write(&info, data)
    }

    /// ExtendedPortInfo, of which FDR10 is known here; a Set enables it for the next training.
    pub(super) fn extended_port_info(
        &mut self,
        modifier: u32,
        set: bool,
        data: &mut [u8; 64],
    ) -> Result<(), Status> {
        if self.profile == Profile::Plain {
            return Err(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED);
        }
        let number = PortNum((modifier & 0xff) as u8);
        let port = self.port_mut(number).ok_or(Status::INVALID_FIELD)?;
        if set {
            let wanted = MlnxExtendedPortInfo::decode(data).ok_or(Status::INVALID_FIELD)?;
            let enabled = wanted.link_speed_enabled;
            if enabled & !(MlnxExtendedPortInfo::FDR10 * u8::from(port.fdr10_supported)) != 0 {
                return Err(Status::INVALID_FIELD);
            }
            port.fdr10_enabled = enabled != 0;
        }
        let bit = |on: bool| if on { MlnxExtendedPortInfo::FDR10 } else { 0 };
        let mut info = MlnxExtendedPortInfo::new_zeroed();
        info.link_speed_supported = bit(port.fdr10_supported);
        info.link_speed_enabled = bit(port.fdr10_enabled && port.fdr10_supported);
        info.link_speed_active = bit(port.fdr10);
        write(&info, data)
    }

    /// PortInfoExtended: the forward error correction modes of the speeds that the port has.
    pub(super) fn port_info_extended(
        &mut self,
        in_port: PortNum,
        modifier: u32,
        set: bool,
        data: &mut [u8; 64],
    ) -> Result<(), Status> {
        if self.profile == Profile::Plain {
            return Err(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED);
        }
        let named = PortNum((modifier & 0xff) as u8);
        let number = if named.0 == 0 && !self.is_switch() { in_port } else { named };
        let port = self.port_mut(number).ok_or(Status::INVALID_FIELD)?;
        let supported = fec_supported(port);
        if set {
            let wanted = PortInfoExtended::decode(data).ok_or(Status::INVALID_FIELD)?;
            let wanted = [
                wanted.fdr_fec_mode_enabled,
                wanted.edr_fec_mode_enabled,
                wanted.hdr_fec_mode_enabled,
                wanted.ndr_fec_mode_enabled,
            ]
            .map(|field| field.get());
            if wanted.iter().zip(supported).any(|(wanted, can)| wanted & !can != 0) {
                return Err(Status::INVALID_FIELD);
            }
            port.fec_enabled = Some(wanted);
        }
        let enabled = port.fec_enabled.unwrap_or(supported);
        let mut info = PortInfoExtended::new_zeroed();
        info.capability_mask.set(PortInfoExtended::CAP_FEC_MODES);
        info.fec_mode_active.set(fec_active(port, enabled));
        info.fdr_fec_mode_supported.set(supported[0]);
        info.fdr_fec_mode_enabled.set(enabled[0]);
        info.edr_fec_mode_supported.set(supported[1]);
        info.edr_fec_mode_enabled.set(enabled[1]);
        info.hdr_fec_mode_supported.set(supported[2]);
        info.hdr_fec_mode_enabled.set(enabled[2]);
        info.ndr_fec_mode_supported.set(supported[3]);
        info.ndr_fec_mode_enabled.set(enabled[3]);
        write(&info, data)
    }
}

/// The modes of each speed that the port has.
fn fec_supported(port: &DevicePort) -> [u16; 4] {
    let speeds = port.info.link_speed_ext_supported();
    std::array::from_fn(|index| if speeds >> index & 1 == 1 { FEC_MODES[index] } else { 0 })
}

/// The mode in force: the strongest that is enabled for the speed at which the link runs; 0 where it runs without.
fn fec_active(port: &DevicePort, enabled: [u16; 4]) -> u16 {
    let active = port.info.link_speed_ext_active().checked_ilog2().filter(|_| port.is_up());
    let modes = active.and_then(|index| enabled.get(index as usize)).copied().unwrap_or(0);
    modes.checked_ilog2().unwrap_or(0) as u16
}

#[cfg(test)]
mod tests {
    use mad::types::{LinkSpeedSet, NodeType, PortPhysState, PortState};
    use mad::wire::ids::{sm, vendor as id};
    use routing::fabric::Node;

    use super::super::tests::{get, set};
    use super::*;

    fn adapter(speeds: u16) -> Device {
        let mut node = Node::new(NodeType::Ca, mad::types::Guid(0x20), "ca", 1);
        for port in node.ports.iter_mut().flatten() {
            port.speeds_supported = LinkSpeedSet(speeds);
        }
        let mut device = Device::new(&node);
        device.ports[1].set_state(PortState::Init, PortPhysState::LinkUp);
        device
    }

    #[test]
    fn a_profile_says_which_attributes_there_are() {
        let attributes =
            [id::GENERAL_INFO, id::MLNX_EXTENDED_PORT_INFO, sm::PORT_INFO_EXTENDED, id::EXTENDED_NODE_INFO];
        for (profile, has) in [
            (Profile::Plain, [false; 4]),
            (Profile::Extended, [true, true, true, false]),
            (Profile::Adaptive, [true; 4]),
        ] {
            let mut device = adapter(0xf7);
            device.set_profile(profile);
            for (attribute, has) in attributes.into_iter().zip(has) {
                let modifier = if attribute == id::GENERAL_INFO { 4 } else { 1 };
                let (status, _) = get(&mut device, attribute, modifier).unwrap();
                let expected = if has { Status::OK } else { Status::METHOD_ATTRIBUTE_NOT_SUPPORTED };
                assert_eq!(status, expected, "{profile:?} 0x{attribute:04x}");
            }
        }
        assert_eq!((Profile::of(54000), Profile::of(4119)), (Profile::Adaptive, Profile::Extended));
    }

    #[test]
    fn fec_modes_follow_the_speeds_and_only_supported_ones_are_taken() {
        // SDR to QDR, FDR, EDR, HDR.
        let mut device = adapter(0b0111_0111);
        device.ports[1].info.set_link_speed_ext_active(4);
        let read = |device: &mut Device| {
            PortInfoExtended::decode(&get(device, sm::PORT_INFO_EXTENDED, 1).unwrap().1).unwrap()
        };
        let mut info = read(&mut device);
        assert_eq!(
            [info.fdr_fec_mode_supported, info.hdr_fec_mode_supported, info.ndr_fec_mode_supported]
                .map(|field| field.get()),
            [0b0011, 0b1100, 0]
        );
        assert_eq!(info.fec_mode_active.get(), 3);
        let mut data = [0; 64];
        info.hdr_fec_mode_enabled.set(0b0100);
        assert!(info.encode(&mut data));
        assert!(set(&mut device, sm::PORT_INFO_EXTENDED, 1, &data).0.is_ok());
        assert_eq!(read(&mut device).fec_mode_active.get(), 2);
        info.ndr_fec_mode_enabled.set(1);
        assert!(info.encode(&mut data));
        assert_eq!(set(&mut device, sm::PORT_INFO_EXTENDED, 1, &data).0, Status::INVALID_FIELD);
    }

    #[test]
    fn fdr10_is_enabled_where_it_is_supported() {
        let enable = |device: &mut Device, bits: u8| {
            let mut data = [0; 64];
            data[11] = bits;
            set(device, id::MLNX_EXTENDED_PORT_INFO, 1, &data).0
        };
        let mut with = adapter(0b1111);
        assert!(enable(&mut with, 0).is_ok() && !with.ports[1].fdr10_enabled);
        assert!(enable(&mut with, 1).is_ok() && with.ports[1].fdr10_enabled);
        assert_eq!(enable(&mut with, 2), Status::INVALID_FIELD);
        assert_eq!(enable(&mut adapter(0b0111), 1), Status::INVALID_FIELD);
    }
}
