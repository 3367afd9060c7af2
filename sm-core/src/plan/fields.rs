//! The fields of PortInfo that the subnet manager writes, as things that can be compared, listed and counted.

use std::fmt;

use mad::wire::smp::PortInfo;

macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident = $bit:literal, $text:literal, |$p:ident| $get:expr, |$q:ident, $v:ident| $set:expr;)*) => {
        /// A writable field of PortInfo.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        #[repr(u8)]
        pub enum PortField { $( $(#[$doc])* $name = $bit, )* }

        impl PortField {
            /// All of them.
            pub const ALL: &[Self] = &[ $( Self::$name, )* ];

            /// The specification's name.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$name => $text, )* }
            }

            /// The field's value.
            pub fn get(self, info: &PortInfo) -> u64 {
                match self { $( Self::$name => { let $p = info; u64::from($get) } )* }
            }

            /// Writes the field; bits that don't fit are dropped.
            pub fn set(self, info: &mut PortInfo, value: u64) {
                match self { $( Self::$name => { let ($q, $v) = (info, value); $set } )* }
            }
        }
    };
}

fields! {
    /// GidPrefix.
    GidPrefix = 0, "GidPrefix", |p| p.gid_prefix.get(), |p, v| p.gid_prefix.set(v);
    /// Base LID.
    Lid = 1, "LID", |p| p.base_lid.get(), |p, v| p.base_lid.set(v as u16);
    /// MasterSMLID.
    MasterSmLid = 2, "MasterSMLID", |p| p.master_sm_lid.get(), |p, v| p.master_sm_lid.set(v as u16);
    /// MasterSMSL.
    MasterSmSl = 3, "MasterSMSL", |p| p.master_sm_sl(), |p, v| p.set_master_sm_sl(v as u8);
    /// LMC.
    Lmc = 4, "LMC", |p| p.lmc(), |p, v| p.set_lmc(v as u8);
    /// NeighborMTU.
    NeighborMtu = 5, "NeighborMTU", |p| p.neighbor_mtu_raw(), |p, v| p.set_neighbor_mtu_raw(v as u8);
    /// OperationalVLs.
    OperationalVls = 6, "OperationalVLs", |p| p.operational_vls(), |p, v| p.set_operational_vls(v as u8);
    /// SubnetTimeOut.
    SubnetTimeout = 7, "SubnetTimeOut", |p| p.subnet_timeout(), |p, v| p.set_subnet_timeout(v as u8);
    /// HOQLife.
    HoqLife = 8, "HOQLife", |p| p.hoq_life(), |p, v| p.set_hoq_life(v as u8);
    /// VLStallCount.
    VlStallCount = 9, "VLStallCount", |p| p.vl_stall_count(), |p, v| p.set_vl_stall_count(v as u8);
    /// LocalPhyErrors.
    LocalPhyErrors = 10, "LocalPhyErrors", |p| p.local_phy_errors(), |p, v| p.set_local_phy_errors(v as u8);
    /// OverrunErrors.
    OverrunErrors = 11, "OverrunErrors", |p| p.overrun_errors(), |p, v| p.set_overrun_errors(v as u8);
    /// PartitionEnforcementInbound.
    EnforcementInbound = 12, "PartitionEnforcementInbound",
        |p| p.partition_enforcement_inbound(), |p, v| p.set_partition_enforcement_inbound(v as u8);
    /// PartitionEnforcementOutbound.
    EnforcementOutbound = 13, "PartitionEnforcementOutbound",
        |p| p.partition_enforcement_outbound(), |p, v| p.set_partition_enforcement_outbound(v as u8);
    /// VLHighLimit.
    VlHighLimit = 14, "VLHighLimit", |p| p.vl_high_limit, |p, v| p.vl_high_limit = v as u8;
    /// M_Key.
    MKey = 15, "M_Key", |p| p.m_key.get(), |p, v| p.m_key.set(v);
    /// M_KeyProtectBits.
    MKeyProtect = 16, "M_KeyProtectBits", |p| p.m_key_protect_bits(), |p, v| p.set_m_key_protect_bits(v as u8);
    /// M_KeyLeasePeriod.
    MKeyLease = 17, "M_KeyLeasePeriod", |p| p.m_key_lease_period.get(), |p, v| p.m_key_lease_period.set(v as u16);
}

/// A set of fields.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FieldSet(u32);

impl FieldSet {
    /// No field.
    pub const EMPTY: Self = Self(0);

    /// What guards a port: set by itself, after all else.
    pub const KEYS: Self =
        Self::EMPTY.with(PortField::MKey).with(PortField::MKeyProtect).with(PortField::MKeyLease);

    /// The fields in which two PortInfos differ.
    pub fn difference(a: &PortInfo, b: &PortInfo) -> Self {
        PortField::ALL.iter().filter(|f| f.get(a) != f.get(b)).fold(Self::EMPTY, |set, f| set.with(*f))
    }

    /// This set and one field more.
    #[must_use]
    pub const fn with(self, field: PortField) -> Self {
        Self(self.0 | 1 << field as u8)
    }

    /// Both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// This set without the fields of the other.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The fields that are in both.
    #[must_use]
    pub const fn within(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether there is no field in it.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Whether the field is in it.
    pub const fn contains(self, field: PortField) -> bool {
        self.0 & 1 << field as u8 != 0
    }

    /// The fields in it.
    pub fn iter(self) -> impl Iterator<Item = PortField> {
        PortField::ALL.iter().copied().filter(move |f| self.contains(*f))
    }

    /// The set as a number, for the state file.
    pub const fn bits(self) -> u32 {
        self.0
    }

    /// From names as [`fmt::Display`] writes them; `None` when one is unknown.
    pub fn from_names(names: &str) -> Option<Self> {
        names.split(',').try_fold(Self::EMPTY, |set, name| {
            PortField::ALL.iter().find(|f| f.name() == name.trim()).map(|f| set.with(*f))
        })
    }
}

impl fmt::Display for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, field) in self.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{}", field.name())?;
        }
        Ok(())
    }
}

impl fmt::Debug for FieldSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{{{self}}}")
    }
}

#[cfg(test)]
mod tests {
    use mad::wire::Attribute;

    use super::*;

    #[test]
    fn each_field_is_read_back_and_touches_no_other() {
        for field in PortField::ALL {
            let before = PortInfo::decode(&[0; 64]).unwrap();
            let mut after = before;
            let bit = matches!(field, PortField::EnforcementInbound | PortField::EnforcementOutbound);
            let value = if bit { 1 } else { 3 };
            field.set(&mut after, value);
            assert_eq!(field.get(&after), value);
            assert_eq!(FieldSet::difference(&before, &after), FieldSet::EMPTY.with(*field));
        }
    }

    #[test]
    fn sets_are_written_and_read_by_name() {
        let set = FieldSet::EMPTY.with(PortField::Lid).with(PortField::SubnetTimeout);
        assert_eq!(set.to_string(), "LID,SubnetTimeOut");
        assert_eq!(FieldSet::from_names("LID,SubnetTimeOut"), Some(set));
        assert_eq!(FieldSet::from_names("LID,Colour"), None);
    }
}
