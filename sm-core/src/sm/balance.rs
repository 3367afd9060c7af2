//! The load of links, measured for `adaptive-minhop`: PortXmitData of all switch ports between switches, read at intervals
//! over the fabric (PortCountersExtended of the performance management agents), or a file of the operator's.
//!
//! What a port has sent since the reading before is its load. A reading that is complete, or as good as it gets, asks for a
//! plan; the planner moves a bounded share of the routes by it ([`crate::plan::balance`]). Nothing is read while another
//! engine's tables are in force. Cost: a Get for each port between switches and interval, within the window.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use mad::transactions::{Outcome, Request};
use mad::transport::{Address, Datagram};
use mad::types::{Guid, PortNum, ServiceLevel, Timestamp};
use mad::wire::perf::{PerfMad, PortCountersExtended};
use mad::wire::{Attribute, Method};
use routing::adaptive::Load;

use super::{Role, Sm, Token};
use crate::plan::balance::{ENGINE, Measured};

/// A port of a switch.
type Place = (Guid, PortNum);

/// Where measuring is.
#[derive(Debug, Default)]
pub(super) struct Balance {
    /// When the next reading is due; `None` before the first.
    next: Option<Timestamp>,
    open: usize,
    before: BTreeMap<Place, u64>,
    found: BTreeMap<Place, u64>,
    /// For the next plan.
    measured: Option<Measured>,
}

impl Balance {
    /// What was measured since the last plan.
    pub(super) const fn take(&mut self) -> Option<Measured> {
        self.measured.take()
    }
}

impl Sm {
    /// When the next reading is due.
    pub(super) fn balance_due(&self) -> Option<Timestamp> {
        let interval = self.settings.balance_interval;
        let in_force = self.plan.as_ref().is_some_and(|plan| plan.routes.engine == ENGINE);
        if interval == Duration::ZERO || !in_force || self.role() != Role::Master || self.balance.open > 0 {
            return None;
        }
        Some(self.balance.next.unwrap_or(Timestamp::ZERO))
    }

    /// Whether ports have been asked and have not answered yet.
    pub(super) const fn balance_is_open(&self) -> bool {
        self.balance.open > 0
    }

    /// Begins a reading, when it is time and nothing is in flight.
    pub(super) fn balance(&mut self, now: Timestamp) {
        // Nothing is in flight here: what has not answered was given up with all else when the role changed.
        self.balance.open = 0;
        if self.balance_due().is_none_or(|due| due > now) {
            return;
        }
        self.balance.next = Some(now + self.settings.balance_interval);
        if self.settings.plan.load_file.is_some() {
            self.balance.measured = Some(Measured::File);
            return self.wishes.replan();
        }
        let Some(plan) = self.plan.clone() else { return };
        self.balance.found.clear();
        let graph = &plan.graph;
        for own in graph.destinations().iter().filter(|d| d.port == 0) {
            let guid = graph.guid(own.switch);
            for arc in graph.arcs(own.switch) {
                let mut mad = PerfMad::request(Method::GET, PortCountersExtended::ID);
                mad.data[1] = arc.out_port;
                let address = Address::gsi(own.lid.get(), ServiceLevel(self.settings.plan.sm_sl));
                let datagram = Datagram { address, mad: mad.into_mad() };
                let token = Token::Counter(guid, PortNum(arc.out_port));
                self.transactions.submit(Request::new(datagram, guid.0), token);
                self.balance.open += 1;
            }
        }
    }

    /// A port answered, or did not. After the last one the load is what each has sent since the reading before; a counter that
    /// fell was reset meanwhile and counts from zero.
    pub(super) fn counter_answered(&mut self, place: Place, outcome: &Outcome) {
        self.balance.open = self.balance.open.saturating_sub(1);
        if let Outcome::Reply(mad) = outcome
            && mad.header.status().is_ok()
            && let Some(counters) = PortCountersExtended::decode(&PerfMad::from_mad(*mad).data)
        {
            self.balance.found.insert(place, counters.port_xmit_data.get());
        }
        if self.balance.open > 0 {
            return;
        }
        let found = std::mem::take(&mut self.balance.found);
        let before = std::mem::replace(&mut self.balance.before, found.clone());
        let since = |(place, now): (Place, u64)| {
            let before = *before.get(&place)?;
            Some((place, now.checked_sub(before).unwrap_or(now)))
        };
        let load: BTreeMap<Place, u64> = found.into_iter().filter_map(since).collect();
        if load.values().any(|sent| *sent > 0) {
            self.balance.measured = Some(Measured::Load(Arc::new(Load::Counters(load))));
            self.wishes.replan();
        }
    }
}
