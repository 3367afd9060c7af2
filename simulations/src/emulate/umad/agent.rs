//! Registering an agent: what is allowed (the kernel's rules), and what is kept.

use mad::wire::MgmtClass;
use rsm_preload_protocol::umad::{RegisterAgent, RegisterAgent2, USER_RMPP};
use rustix::io::Errno;

use super::layout::{has_oui, is_rmpp_class};

/// Class versions are below this.
const MAX_CLASS_VERSION: u8 = 0x83;
/// Classes are below this, directed-route subnet management excepted.
const MAX_CLASS: u8 = 80;

/// What a device does of its ports' management.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Services {
    /// All of it.
    #[default]
    All,
    /// Queue pair 1 alone.
    General,
    /// Queue pair 0 alone.
    SubnetManagement,
}

impl Services {
    /// Whether there is a queue pair of this number.
    const fn have(self, qpn: u32) -> bool {
        match self {
            Self::All => true,
            Self::General => qpn == 1,
            Self::SubnetManagement => qpn == 0,
        }
    }
}

/// What a program asks for, from either of the two ioctls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registration {
    /// 0 or 1.
    pub qpn: u32,
    /// Management class; 0 for an agent that only sends and gets answers.
    pub mgmt_class: u8,
    /// Class version.
    pub class_version: u8,
    /// Organization of a vendor class.
    pub oui: [u8; 3],
    /// Methods of requests to receive.
    pub methods: u128,
    /// 0 or 1.
    pub rmpp_version: u8,
    /// The program does RMPP itself.
    pub user_rmpp: bool,
}

impl Registration {
    /// From `REGISTER_AGENT`.
    pub fn from_v1(request: &RegisterAgent) -> Self {
        let [low, high] = request.method_mask;
        Self {
            qpn: request.qpn.into(),
            mgmt_class: request.mgmt_class,
            class_version: request.mgmt_class_version,
            oui: request.oui,
            methods: u128::from(high.get()) << 64 | u128::from(low.get()),
            rmpp_version: request.rmpp_version,
            user_rmpp: false,
        }
    }

    /// From `REGISTER_AGENT2`. The error comes with the flags that would be possible, where those were wrong.
    ///
    /// # Errors
    /// `EINVAL` for unknown flags or an OUI over 24 bits.
    pub fn from_v2(request: &mut RegisterAgent2) -> Result<Self, Errno> {
        if request.flags.get() & !USER_RMPP != 0 {
            request.flags.set(USER_RMPP);
            return Err(Errno::INVAL);
        }
        let [top, oui @ ..] = request.oui.get().to_be_bytes();
        if request.mgmt_class != 0 && top != 0 {
            return Err(Errno::INVAL);
        }
        let [low, high] = request.method_mask;
        Ok(Self {
            qpn: request.qpn.get(),
            mgmt_class: request.mgmt_class,
            class_version: request.mgmt_class_version,
            oui,
            methods: u128::from(high.get()) << 64 | u128::from(low.get()),
            rmpp_version: request.rmpp_version,
            user_rmpp: request.flags.get() & USER_RMPP != 0,
        })
    }

    /// Whether the kernel would take it, other agents aside.
    ///
    /// # Errors
    /// `EINVAL`; `EPROTONOSUPPORT` where the device has no such queue pair.
    pub(super) fn check(&self, services: Services) -> Result<(), Errno> {
        let class = self.mgmt_class;
        let is_smp = class == MgmtClass::SUBN_LID.0 || class == MgmtClass::SUBN_DR.0;
        let allowed = self.qpn <= 1
            && self.rmpp_version <= 1
            && if class == 0 {
                !self.user_rmpp
            } else {
                self.class_version < MAX_CLASS_VERSION
                    && (class < MAX_CLASS || class == MgmtClass::SUBN_DR.0)
                    && (!has_oui(class) || self.oui != [0; 3])
                    && (self.rmpp_version == 0 || is_rmpp_class(MgmtClass(class)))
                    && is_smp == (self.qpn == 0)
            };
        match (allowed, services.have(self.qpn)) {
            (true, true) => Ok(()),
            (true, false) => Err(Errno::PROTONOSUPPORT),
            (false, _) => Err(Errno::INVAL),
        }
    }

    /// Whether the device does RMPP for this agent.
    pub(super) const fn kernel_rmpp(&self) -> bool {
        self.rmpp_version != 0 && !self.user_rmpp
    }

    /// The OUI where the class is divided by it, else zero.
    pub(super) const fn effective_oui(&self) -> [u8; 3] {
        if has_oui(self.mgmt_class) { self.oui } else { [0; 3] }
    }

    /// The methods to receive, as numbers.
    pub(super) fn methods(&self) -> impl Iterator<Item = u8> {
        let mask = if self.mgmt_class == 0 { 0 } else { self.methods };
        (0..128).filter(move |method| mask >> method & 1 != 0)
    }
}
