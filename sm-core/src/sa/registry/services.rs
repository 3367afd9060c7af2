//! Registered services and their leases (specification volume 1, 15.2.5.14; C15-0.1.14 ff.).
//!
//! A service is known by ServiceID, ServiceGID and ServiceP_Key. Cost: O(log services); expiry O(1) for each service that
//! expires.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mad::types::{Gid, Guid, PKey, Timestamp};
use mad::wire::Status;
use mad::wire::sa::ServiceRecord;

use crate::snapshot::{EndPort, Snapshot};

/// The most services that are held; beyond, NO_RESOURCES. About 250 bytes each.
const MOST: usize = 100_000;

/// The most services of one port.
const MOST_OF_PORT: usize = 8192;

/// What a service is known by.
pub(super) type ServiceName = (u64, Gid, u16);

#[derive(Clone, Debug)]
pub(super) struct Service {
    pub(super) record: ServiceRecord,
    /// When its lease ends; `None` for never.
    pub(super) ends: Option<Timestamp>,
    /// The port that registered it.
    pub(super) owner: Guid,
}

/// All services.
#[derive(Clone, Debug, Default)]
pub struct Services {
    services: BTreeMap<ServiceName, Service>,
    ends: BTreeSet<(Timestamp, ServiceName)>,
    /// Number of services by the port that registered them.
    of_port: BTreeMap<Guid, usize>,
    /// Services that changed since they were last taken for the store.
    changed: BTreeSet<ServiceName>,
}

impl Services {
    /// Number of services.
    pub fn len(&self) -> usize {
        self.services.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.services.is_empty()
    }

    /// The records with what is left of their leases in whole seconds, in order of ServiceID.
    pub fn records(&self, now: Timestamp) -> impl Iterator<Item = ServiceRecord> {
        self.services.values().map(move |service| {
            let mut record = service.record;
            if let Some(ends) = service.ends {
                // Rounded up: a lease that has not ended is never shown as 0.
                let left = ends.saturating_since(now).as_millis().div_ceil(1000);
                record.service_lease.set(u32::try_from(left).unwrap_or(u32::MAX - 1));
            }
            record
        })
    }

    /// Registers a service, or registers it again. What the component mask doesn't name is 0, the lease then endless, the
    /// P_Key that of the default partition. Returns the record as it is kept.
    ///
    /// # Errors
    /// INSUFFICIENT_COMPONENTS without ServiceID and ServiceGID; REQ_INVALID for a P_Key that the requester doesn't have;
    /// REQ_DENIED when another port registered the service under another ServiceKey, unless it is on the requester's port; or for a port that shares no partition.
    pub fn set(
        &mut self,
        snapshot: &Snapshot,
        requester: &EndPort,
        asked: &ServiceRecord,
        mask: u64,
        now: Timestamp,
    ) -> Result<ServiceRecord, Status> {
        let required = ServiceRecord::SERVICE_ID | ServiceRecord::SERVICE_GID;
        if mask & required != required {
            return Err(Status::SA_INSUFFICIENT_COMPONENTS);
        }
        let record = normalized(asked, mask);
        check_holder(snapshot, requester, &record)?;
        let name = name_of(&record);
        match self.services.get(&name) {
            Some(old) if !may_change(snapshot, old, requester, &record) => return Err(Status::SA_REQ_DENIED),
            None if self.is_full_for(requester.guid) => return Err(Status::SA_NO_RESOURCES),
            Some(_) | None => self.remove(&name),
        };
        let lease = record.service_lease.get();
        let ends = (lease != ServiceRecord::LEASE_FOREVER).then(|| now + Duration::from_secs(lease.into()));
        self.insert(Service { record, ends, owner: requester.guid });
        self.changed.insert(name);
        Ok(record)
    }

    /// What changed since the last call, with what is left of it.
    pub(super) fn take_changed(&mut self) -> Vec<(ServiceName, Option<&Service>)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|name| (name, self.services.get(&name))).collect()
    }

    /// Registers or puts back a service.
    pub(super) fn insert(&mut self, service: Service) {
        let name = name_of(&service.record);
        if let Some(ends) = service.ends {
            self.ends.insert((ends, name));
        }
        let owner = service.owner;
        if let Some(old) = self.services.insert(name, service) {
            self.count_down(old.owner);
        }
        *self.of_port.entry(owner).or_default() += 1;
    }

    fn is_full_for(&self, owner: Guid) -> bool {
        self.services.len() >= MOST || self.of_port.get(&owner).is_some_and(|count| *count >= MOST_OF_PORT)
    }

    fn count_down(&mut self, owner: Guid) {
        if let Some(count) = self.of_port.get_mut(&owner) {
            *count -= 1;
            if *count == 0 {
                self.of_port.remove(&owner);
            }
        }
    }

    /// Ends a registration, named by ServiceID, ServiceGID and ServiceP_Key whatever the mask says: they are the record's
    /// identifier. Returns the record that was kept.
    ///
    /// # Errors
    /// NO_RECORDS when there is no such service, REQ_DENIED as for [`Services::set`].
    pub fn delete(
        &mut self,
        snapshot: &Snapshot,
        requester: &EndPort,
        asked: &ServiceRecord,
        mask: u64,
    ) -> Result<ServiceRecord, Status> {
        let record = normalized(asked, mask);
        let name = name_of(&record);
        let old = self.services.get(&name).ok_or(Status::SA_NO_RECORDS)?;
        if !may_change(snapshot, old, requester, &record) {
            return Err(Status::SA_REQ_DENIED);
        }
        self.remove(&name).ok_or(Status::SA_NO_RECORDS)
    }

    /// PortGUIDs of the ports that registered any.
    pub(super) fn owners(&self) -> impl Iterator<Item = &Guid> {
        self.of_port.keys()
    }

    /// Removes services whose lease has ended.
    pub fn expire(&mut self, now: Timestamp) {
        while let Some((_, name)) = self.ends.first().filter(|(ends, _)| *ends <= now).copied() {
            self.remove(&name);
        }
    }

    /// When the next lease ends.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.ends.first().map(|(ends, _)| *ends)
    }

    /// Removes what a port registered, since it is gone for good.
    pub fn remove_port(&mut self, guid: Guid) {
        let of_port = self.services.iter().filter(|(_, service)| service.owner == guid);
        for name in of_port.map(|(name, _)| *name).collect::<Vec<_>>() {
            self.remove(&name);
        }
    }

    fn remove(&mut self, name: &ServiceName) -> Option<ServiceRecord> {
        let service = self.services.remove(name)?;
        self.count_down(service.owner);
        if let Some(ends) = service.ends {
            self.ends.remove(&(ends, *name));
        }
        self.changed.insert(*name);
        Some(service.record)
    }
}

/// The port that registered a service may change it, the port that it is said to be on, and whoever knows its key.
fn may_change(snapshot: &Snapshot, old: &Service, requester: &EndPort, record: &ServiceRecord) -> bool {
    let on = snapshot.port_by_gid(old.record.service_gid());
    old.owner == requester.guid
        || on.is_some_and(|port| port.end == requester.end)
        || (old.record.service_key != [0; 16] && old.record.service_key == record.service_key)
}

fn name_of(record: &ServiceRecord) -> ServiceName {
    (record.service_id.get(), record.service_gid(), record.service_pkey.get())
}

/// The record with what the mask doesn't name set to its default.
fn normalized(asked: &ServiceRecord, mask: u64) -> ServiceRecord {
    let mut record = *asked;
    if mask & ServiceRecord::SERVICE_LEASE == 0 {
        record.service_lease.set(ServiceRecord::LEASE_FOREVER);
    }
    if mask & ServiceRecord::SERVICE_PKEY == 0 {
        record.service_pkey.set(PKey::DEFAULT_FULL.0);
    }
    if mask & ServiceRecord::SERVICE_KEY == 0 {
        record.service_key = [0; 16];
    }
    if mask & ServiceRecord::SERVICE_NAME == 0 {
        record.service_name = [0; 64];
    }
    record
}

fn check_holder(snapshot: &Snapshot, requester: &EndPort, record: &ServiceRecord) -> Result<(), Status> {
    let pkey = record.service_pkey();
    if !requester.has_partition(pkey) {
        return Err(Status::SA_REQ_INVALID);
    }
    let gid = record.service_gid();
    if gid.is_multicast() {
        return Ok(()); // a service of a group (CapabilityMask2 bit 8)
    }
    // A GID that is no port's here may be an alias or one behind a router, and osmtest registers the GID 0: nothing is known
    // against it.
    let port = snapshot.port_by_gid(gid);
    let denied = port.is_some_and(|port| !port.has_partition(pkey) || !requester.shares_partition(port));
    if denied { Err(Status::SA_REQ_DENIED) } else { Ok(()) }
}
