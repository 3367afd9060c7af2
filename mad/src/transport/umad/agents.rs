//! Which management classes a program serves or asks, and their registration with the kernel.

use std::io;

use super::abi::{self, RegisterAgent, RegisterAgent2};
use super::sys::Fd;
use crate::wire::vendor::mirror;
use crate::wire::{Method, MgmtClass};

/// One class that a program wants to send or receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AgentSpec {
    /// The class.
    pub class: MgmtClass,
    /// Its version: 1, but 2 for subnet administration.
    pub version: u8,
    /// The requests that come to us; a bit for each method. None for a program that only asks: it gets answers
    /// alone, and runs beside others.
    pub methods: u128,
    /// Organization, for the classes that one divides (0x30 to 0x4F); else zeros.
    pub oui: [u8; 3],
    /// Whether opening fails without it. Devices may refuse classes that a program can do without.
    pub required: bool,
}

impl AgentSpec {
    /// A class to ask in, with no requests to serve.
    pub const fn client(class: MgmtClass, required: bool) -> Self {
        let version = if class.0 == MgmtClass::SUBN_ADM.0 { 2 } else { 1 };
        Self { class, version, methods: 0, oui: [0; 3], required }
    }

    /// A class whose requests of these methods come to us. One program only can have a method of a class.
    pub const fn server(class: MgmtClass, methods: &[Method]) -> Self {
        let mut spec = Self::client(class, true);
        let mut at = 0;
        while at < methods.len() {
            spec.methods |= 1 << (methods[at].0 & 0x7f);
            at += 1;
        }
        spec
    }

    /// Queue pair 0 carries the two classes of subnet management, queue pair 1 all others.
    pub const fn qpn(&self) -> u8 {
        if self.is_subnet_management() { 0 } else { 1 }
    }

    /// Whether the class is one of subnet management.
    pub const fn is_subnet_management(&self) -> bool {
        self.class.0 == MgmtClass::SUBN_LID.0 || self.class.0 == MgmtClass::SUBN_DR.0
    }
}

/// By which of the kernel's two calls agents are registered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Registration {
    /// The newer one, and the older where it is refused.
    #[default]
    Newest,
    /// Only `REGISTER_AGENT2`.
    Agent2,
    /// Only the older `REGISTER_AGENT`, all that kernels before 4.0 and the stock simulator have.
    Agent,
}

/// Why a class was refused.
#[derive(Debug)]
pub(super) enum Refused {
    /// Another program serves these methods.
    Held,
    /// The port does not do this class or queue pair.
    Unsupported(io::Error),
}

/// Registers one class; the agent's number.
pub(super) fn register(file: &Fd, spec: &AgentSpec, registration: Registration) -> Result<u32, Refused> {
    match try_register(file, spec, registration) {
        Ok(id) => Ok(id),
        Err(error) if spec.methods != 0 && error.raw_os_error() == Some(libc::EINVAL) => {
            // The kernel says EINVAL for methods that another agent has. If it takes us without any, that is it.
            match try_register(file, &AgentSpec { methods: 0, ..*spec }, registration) {
                Ok(id) => {
                    unregister(file, id);
                    Err(Refused::Held)
                }
                Err(_) => Err(Refused::Unsupported(error)),
            }
        }
        Err(error) => Err(Refused::Unsupported(error)),
    }
}

fn try_register(file: &Fd, spec: &AgentSpec, registration: Registration) -> io::Result<u32> {
    match registration {
        Registration::Agent2 => register_new(file, spec),
        Registration::Agent => register_old(file, spec),
        Registration::Newest => register_new(file, spec).or_else(|error| match error.raw_os_error() {
            // Not known, or known by a number only (the stock simulator).
            Some(libc::EINVAL | libc::ENOTTY | libc::ENOSYS) => register_old(file, spec),
            _ => Err(error),
        }),
    }
}

fn register_new(file: &Fd, spec: &AgentSpec) -> io::Result<u32> {
    // RMPP of general services is ours, segment by segment; QP0 has none.
    let rmpp = spec.class == MgmtClass::SUBN_ADM || spec.class == mirror::CLASS;
    let mut request = RegisterAgent2 {
        qpn: u32::from(spec.qpn()),
        mgmt_class: spec.class.0,
        mgmt_class_version: spec.version,
        flags: if rmpp { abi::USER_RMPP } else { 0 },
        method_mask: [spec.methods as u64, (spec.methods >> 64) as u64],
        oui: u32::from_be_bytes([0, spec.oui[0], spec.oui[1], spec.oui[2]]),
        rmpp_version: u8::from(rmpp),
        ..RegisterAgent2::default()
    };
    file.ioctl(abi::REGISTER_AGENT2, &mut request)?;
    Ok(request.id)
}

fn register_old(file: &Fd, spec: &AgentSpec) -> io::Result<u32> {
    let mut request = RegisterAgent {
        // Longs of the host in the kernel's structure: the same bytes where the host is little-endian, as all
        // are that have the devices.
        method_mask: [0, 32, 64, 96].map(|shift| (spec.methods >> shift) as u32),
        qpn: spec.qpn(),
        mgmt_class: spec.class.0,
        mgmt_class_version: spec.version,
        oui: spec.oui,
        // RMPP version 0: none by the kernel.
        ..RegisterAgent::default()
    };
    file.ioctl(abi::REGISTER_AGENT, &mut request)?;
    Ok(request.id)
}

/// Takes an agent away; a failure is of no consequence, the file's end does it too.
pub(super) fn unregister(file: &Fd, id: u32) {
    let mut id = id;
    let _ = file.ioctl(abi::UNREGISTER_AGENT, &mut id);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_go_to_their_queue_pair_with_their_version_and_methods() {
        let sa = AgentSpec::server(MgmtClass::SUBN_ADM, &[Method::GET, Method::GET_TABLE, Method::DELETE]);
        assert_eq!((sa.qpn(), sa.version, sa.methods), (1, 2, 1 << 1 | 1 << 0x12 | 1 << 0x15));
        let dr = AgentSpec::client(MgmtClass::SUBN_DR, true);
        assert_eq!((dr.qpn(), dr.version, dr.methods), (0, 1, 0));
    }
}
