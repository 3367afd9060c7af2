//! The performance management agent (specification volume 1, 16.1): PortCounters, PortCountersExtended and the details of
//! errors, for one port or all together.

use mad::types::{PortNum, Timestamp};
use mad::wire::perf::{ALL_PORTS, ClassPortInfo, PerfMad, PortCounters, PortCountersExtended};
use mad::wire::{Attribute, Method, Status, ids::perf as id};
use zerocopy::FromZeros;

use super::Device;
use super::counters::{Counter, Counters};

/// RespTimeValue: 4.096 µs · 2^18, about a second, as adapters say.
const RESPONSE_TIME: u32 = 18;

/// Bits of PortCounters.CounterSelect, and bit 0 of CounterSelect2.
const SELECT: [Counter; 16] = {
    let mut select = [Counter::SymbolErrorCounter; 16];
    let mut bit = 0;
    while bit < 16 {
        select[bit] = Counter::ALL[bit];
        bit += 1;
    }
    select
};
/// Bits of PortCountersExtended.CounterSelect.
const SELECT_EXTENDED: [Counter; 8] = [
    Counter::PortXmitData,
    Counter::PortRcvData,
    Counter::PortXmitPkts,
    Counter::PortRcvPkts,
    Counter::PortUnicastXmitPkts,
    Counter::PortUnicastRcvPkts,
    Counter::PortMulticastXmitPkts,
    Counter::PortMulticastRcvPkts,
];
/// Bits of PortCountersExtended.CounterSelect2.
const SELECT_EXTENDED2: [Counter; 14] = [
    Counter::SymbolErrorCounter,
    Counter::LinkErrorRecoveryCounter,
    Counter::LinkDownedCounter,
    Counter::PortRcvErrors,
    Counter::PortRcvRemotePhysicalErrors,
    Counter::PortRcvSwitchRelayErrors,
    Counter::PortXmitDiscards,
    Counter::PortXmitConstraintErrors,
    Counter::PortRcvConstraintErrors,
    Counter::LocalLinkIntegrityErrors,
    Counter::ExcessiveBufferOverrunErrors,
    Counter::Vl15Dropped,
    Counter::PortXmitWait,
    Counter::Qp1Dropped,
];

impl Device {
    /// Answers a Get or Set of the performance class.
    pub fn performance_management(&mut self, request: &PerfMad, now: Timestamp) -> PerfMad {
        let mut answer = *request;
        answer.header.method = request.header.method().response().0;
        let status = self.counters_answer(request, &mut answer.data, now);
        answer.header.status.set(status.err().unwrap_or(Status::OK).0);
        answer
    }

    fn counters_answer(
        &mut self,
        request: &PerfMad,
        data: &mut [u8; 192],
        now: Timestamp,
    ) -> Result<(), Status> {
        let header = &request.header;
        if header.base_version != 1 || header.class_version != 1 {
            return Err(Status::BAD_VERSION);
        }
        let set = match header.method() {
            Method::GET => false,
            Method::SET => true,
            _ => return Err(Status::METHOD_NOT_SUPPORTED),
        };
        match header.attribute_id.get() {
            id::CLASS_PORT_INFO if !set => {
                *data = [0; 192];
                encode(&class_port_info(), data)
            }
            id::PORT_COUNTERS => self.port_counters(set, data, now),
            id::PORT_COUNTERS_EXTENDED => self.port_counters_extended(set, data, now),
            id::PORT_RCV_ERROR_DETAILS | id::PORT_XMIT_DISCARD_DETAILS => {
                // Nothing is told apart in here; the place of the port's number is that of PortCounters.
                let port = data[1];
                self.selected(port)?;
                *data = [0; 192];
                data[1] = port;
                Ok(())
            }
            _ => Err(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED),
        }
    }

    /// The ports that PortSelect means.
    fn selected(&self, select: u8) -> Result<std::ops::RangeInclusive<u8>, Status> {
        match select {
            ALL_PORTS => Ok(1..=self.num_ports()),
            some => self.port(PortNum(some)).map(|_| some..=some).ok_or(Status::INVALID_FIELD),
        }
    }

    /// The sum of a counter over ports.
    fn sum(&self, ports: std::ops::RangeInclusive<u8>, counter: Counter) -> u64 {
        let each = ports.filter_map(|port| self.port(PortNum(port)));
        each.fold(0, |sum, port| sum.saturating_add(port.counters.get(counter)))
    }

    /// Writes values to the counters that were selected.
    fn write(&mut self, ports: std::ops::RangeInclusive<u8>, chosen: &[(Counter, u64)]) {
        for number in ports {
            let Some(port) = self.port_mut(PortNum(number)) else { continue };
            chosen.iter().for_each(|(counter, value)| port.counters.set(*counter, *value));
        }
    }

    fn settle(&mut self, ports: std::ops::RangeInclusive<u8>, now: Timestamp) {
        for number in ports {
            if let Some(port) = self.port_mut(PortNum(number)) {
                Counters::settle(&mut port.counters, now);
            }
        }
    }

    fn port_counters(&mut self, set: bool, data: &mut [u8; 192], now: Timestamp) -> Result<(), Status> {
        let asked = PortCounters::decode(data).ok_or(Status::INVALID_FIELD)?;
        let ports = self.selected(asked.port_select)?;
        self.settle(ports.clone(), now);
        if set {
            let mut chosen = chosen(&SELECT, u32::from(asked.counter_select.get()), |c| value_of(&asked, c));
            if asked.counter_select2 & 1 == 1 {
                chosen.push((Counter::PortXmitWait, u64::from(asked.port_xmit_wait.get())));
            }
            self.write(ports.clone(), &chosen);
        }
        let mut out = PortCounters::new_zeroed();
        out.port_select = asked.port_select;
        out.counter_select = asked.counter_select;
        out.counter_select2 = asked.counter_select2;
        for counter in Counter::ALL {
            put(&mut out, counter, self.sum(ports.clone(), counter).min(counter.limit()));
        }
        *data = [0; 192];
        encode(&out, data)
    }

    fn port_counters_extended(
        &mut self,
        set: bool,
        data: &mut [u8; 192],
        now: Timestamp,
    ) -> Result<(), Status> {
        let mut asked = PortCountersExtended::decode(data).ok_or(Status::INVALID_FIELD)?;
        let ports = self.selected(asked.port_select)?;
        self.settle(ports.clone(), now);
        if set {
            let (first, second) = (u32::from(asked.counter_select.get()), asked.counter_select2.get());
            let mut all =
                chosen(&SELECT_EXTENDED, first, |c| field(&mut asked.clone(), c).map_or(0, |f| f.get()));
            all.extend(chosen(&SELECT_EXTENDED2, second, |c| {
                field(&mut asked.clone(), c).map_or(0, |f| f.get())
            }));
            self.write(ports.clone(), &all);
        }
        for counter in Counter::ALL {
            let value = self.sum(ports.clone(), counter);
            if let Some(field) = field(&mut asked, counter) {
                field.set(value);
            }
        }
        *data = [0; 192];
        encode(&asked, data)
    }
}

fn class_port_info() -> ClassPortInfo {
    let mut info = ClassPortInfo::new_zeroed();
    info.base_version = 1;
    info.class_version = 1;
    info.capability_mask.set(
        ClassPortInfo::PERF_CAP_ALL_PORT_SELECT
            | ClassPortInfo::PERF_CAP_EXTENDED_WIDTH
            | ClassPortInfo::PERF_CAP_XMIT_WAIT
            | ClassPortInfo::PERF_CAP_QP1_DROPPED,
    );
    info.set_capability_mask2(ClassPortInfo::PERF_CAP2_ADDITIONAL_EXTENDED);
    info.set_resp_time_value(RESPONSE_TIME);
    info
}

fn encode(attribute: &impl Attribute, data: &mut [u8; 192]) -> Result<(), Status> {
    if attribute.encode(data) { Ok(()) } else { Err(Status::INVALID_FIELD) }
}

/// The counters whose bits are set, with the values that a Set gives them.
fn chosen(bits: &[Counter], mask: u32, value: impl Fn(Counter) -> u64) -> Vec<(Counter, u64)> {
    let set = bits.iter().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1);
    set.map(|(_, counter)| (*counter, value(*counter))).collect()
}

/// Generates reading and writing of PortCounters' fields, which have six widths.
macro_rules! fields {
    ($($counter:ident: $read:expr, $write:expr;)*) => {
        fn value_of(it: &PortCounters, counter: Counter) -> u64 {
            match counter {
                $(Counter::$counter => { let read: fn(&PortCounters) -> u64 = $read; read(it) })*
                _ => 0,
            }
        }

        fn put(it: &mut PortCounters, counter: Counter, value: u64) {
            match counter {
                $(Counter::$counter => { let write: fn(&mut PortCounters, u64) = $write; write(it, value); })*
                _ => {}
            }
        }
    };
}

fields! {
    SymbolErrorCounter: |c| c.symbol_error_counter.get().into(), |c, v| c.symbol_error_counter.set(v as u16);
    LinkErrorRecoveryCounter: |c| c.link_error_recovery_counter.into(), |c, v| c.link_error_recovery_counter = v as u8;
    LinkDownedCounter: |c| c.link_downed_counter.into(), |c, v| c.link_downed_counter = v as u8;
    PortRcvErrors: |c| c.port_rcv_errors.get().into(), |c, v| c.port_rcv_errors.set(v as u16);
    PortRcvRemotePhysicalErrors:
        |c| c.port_rcv_remote_physical_errors.get().into(), |c, v| c.port_rcv_remote_physical_errors.set(v as u16);
    PortRcvSwitchRelayErrors:
        |c| c.port_rcv_switch_relay_errors.get().into(), |c, v| c.port_rcv_switch_relay_errors.set(v as u16);
    PortXmitDiscards: |c| c.port_xmit_discards.get().into(), |c, v| c.port_xmit_discards.set(v as u16);
    PortXmitConstraintErrors: |c| c.port_xmit_constraint_errors.into(), |c, v| c.port_xmit_constraint_errors = v as u8;
    PortRcvConstraintErrors: |c| c.port_rcv_constraint_errors.into(), |c, v| c.port_rcv_constraint_errors = v as u8;
    LocalLinkIntegrityErrors:
        |c| c.local_link_integrity_errors().into(), |c, v| c.set_local_link_integrity_errors(v as u8);
    ExcessiveBufferOverrunErrors:
        |c| c.excessive_buffer_overrun_errors().into(), |c, v| c.set_excessive_buffer_overrun_errors(v as u8);
    Vl15Dropped: |c| c.vl15_dropped.get().into(), |c, v| c.vl15_dropped.set(v as u16);
    Qp1Dropped: |c| c.qp1_dropped.get().into(), |c, v| c.qp1_dropped.set(v as u16);
    PortXmitData: |c| c.port_xmit_data.get().into(), |c, v| c.port_xmit_data.set(v as u32);
    PortRcvData: |c| c.port_rcv_data.get().into(), |c, v| c.port_rcv_data.set(v as u32);
    PortXmitPkts: |c| c.port_xmit_pkts.get().into(), |c, v| c.port_xmit_pkts.set(v as u32);
    PortRcvPkts: |c| c.port_rcv_pkts.get().into(), |c, v| c.port_rcv_pkts.set(v as u32);
    PortXmitWait: |c| c.port_xmit_wait.get().into(), |c, v| c.port_xmit_wait.set(v as u32);
}

/// A counter's field of PortCountersExtended.
fn field(it: &mut PortCountersExtended, counter: Counter) -> Option<&mut zerocopy::big_endian::U64> {
    Some(match counter {
        Counter::SymbolErrorCounter => &mut it.symbol_error_counter,
        Counter::LinkErrorRecoveryCounter => &mut it.link_error_recovery_counter,
        Counter::LinkDownedCounter => &mut it.link_downed_counter,
        Counter::PortRcvErrors => &mut it.port_rcv_errors,
        Counter::PortRcvRemotePhysicalErrors => &mut it.port_rcv_remote_physical_errors,
        Counter::PortRcvSwitchRelayErrors => &mut it.port_rcv_switch_relay_errors,
        Counter::PortXmitDiscards => &mut it.port_xmit_discards,
        Counter::PortXmitConstraintErrors => &mut it.port_xmit_constraint_errors,
        Counter::PortRcvConstraintErrors => &mut it.port_rcv_constraint_errors,
        Counter::LocalLinkIntegrityErrors => &mut it.local_link_integrity_errors,
        Counter::ExcessiveBufferOverrunErrors => &mut it.excessive_buffer_overrun_errors,
        Counter::Vl15Dropped => &mut it.vl15_dropped,
        Counter::PortXmitData => &mut it.port_xmit_data,
        Counter::PortRcvData => &mut it.port_rcv_data,
        Counter::PortXmitPkts => &mut it.port_xmit_pkts,
        Counter::PortRcvPkts => &mut it.port_rcv_pkts,
        Counter::PortXmitWait => &mut it.port_xmit_wait,
        Counter::Qp1Dropped => &mut it.qp1_dropped,
        Counter::PortUnicastXmitPkts => &mut it.port_unicast_xmit_pkts,
        Counter::PortUnicastRcvPkts => &mut it.port_unicast_rcv_pkts,
        Counter::PortMulticastXmitPkts => &mut it.port_multicast_xmit_pkts,
        Counter::PortMulticastRcvPkts => &mut it.port_multicast_rcv_pkts,
    })
}
