//! What ports told the SA and the SA keeps: multicast memberships, services, subscriptions, alias GUIDs.
//!
//! One owner changes it ([`Registry::change`]); what is read from it is answered by [`Registry::select`]. It has no I/O
//! and no clock of its own.

mod aliases;
mod doubted;
mod groups;
mod member_record;
mod persist;
mod services;
mod subscriptions;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use mad::types::{Guid, Timestamp};
use mad::wire::ids::sa;
use mad::wire::sa::{InformInfo, InformInfoRecord, McMemberRecord, Record, SaMad, ServiceRecord};
use mad::wire::{Attribute, Method, Status};

pub(super) use self::aliases::capacity;
pub use self::aliases::{AliasEvent, Aliases};
pub use self::groups::{Group, GroupEvent, GroupTraits, Groups, MemberRequest, Membership, ipoib_broadcast};
pub use self::services::Services;
pub use self::subscriptions::{Subscription, SubscriptionId, Subscriptions};
use super::answer::{Reply, Request};
use super::records::Context;
use crate::partitions::PartitionGroup;
use crate::snapshot::Snapshot;

/// How long a port may be missing from the pictures before what it registered is dropped. One sweep in which it didn't
/// answer must not cost it its memberships (B37).
const ABSENCE: Duration = Duration::from_secs(60);

/// What the SA keeps for ports.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// Multicast groups.
    pub groups: Groups,
    /// Services.
    pub services: Services,
    /// Subscriptions.
    pub subscriptions: Subscriptions,
    /// Alias GUIDs.
    pub aliases: Aliases,
    /// Ports with registrations that are missing from the picture, and since when.
    absent: BTreeMap<Guid, Timestamp>,
}

impl Registry {
    /// Gives each partition its groups: hosts join them and take over their properties. Groups of partitions that are gone
    /// become groups like any other. Returns the groups that no MLID is free for.
    pub(super) fn settle_partitions(&mut self, snapshot: &Snapshot) -> Vec<PartitionGroup> {
        let mut wanted = BTreeSet::new();
        let mut refused = Vec::new();
        for partition in snapshot.partitions.iter() {
            for group in &partition.groups {
                let traits = GroupTraits {
                    qkey: group.qkey,
                    mtu: group.mtu,
                    tclass: group.tclass,
                    pkey: partition.pkey,
                    rate: group.rate,
                    lifetime: snapshot.sm.subnet_timeout,
                    sl: group.sl,
                    flow_label: group.flow_label,
                    hop_limit: 0,
                };
                wanted.insert(group.mgid);
                if self.groups.create_permanent(group.mgid, traits, snapshot.multicast_capacity()).is_err() {
                    refused.push(*group);
                }
            }
        }
        self.groups.release_permanent(&wanted);
        refused
    }

    /// Carries out a Set or a Delete.
    pub(super) fn change(
        &mut self,
        context: &Context<'_>,
        request: &Request,
        now: Timestamp,
    ) -> Result<Reply, Status> {
        let mad = &request.mad;
        let mask = mad.component_mask.get();
        let (snapshot, requester) = (context.snapshot, context.requester);
        match (mad.header.attribute_id.get(), mad.header.method()) {
            (sa::MC_MEMBER_RECORD, Method::SET) => {
                let asked = member_record::request(&decode(mad)?, mask)?;
                let (group, membership) = self.groups.join(snapshot, requester, &asked)?;
                Ok(Reply::record(&member_record::record(group, Some(&membership))))
            }
            (sa::MC_MEMBER_RECORD, Method::DELETE) => {
                let asked = member_record::request(&decode(mad)?, mask)?;
                let (group, left) = self.groups.leave(snapshot, requester, &asked)?;
                Ok(Reply::record(&member_record::record(&group, Some(&left))))
            }
            (sa::SERVICE_RECORD, Method::SET) => {
                let record = self.services.set(snapshot, requester, &decode(mad)?, mask, now)?;
                Ok(Reply::record(&shown(context, record)))
            }
            (sa::SERVICE_RECORD, Method::DELETE) => {
                let record = self.services.delete(snapshot, requester, &decode(mad)?, mask)?;
                Ok(Reply::record(&shown(context, record)))
            }
            (sa::GUID_INFO_RECORD, Method::SET) => {
                let record = self.aliases.set(context, &self.groups, &decode(mad)?, mask)?;
                Ok(Reply::record(&record))
            }
            (sa::GUID_INFO_RECORD, Method::DELETE) => {
                let record = self.aliases.delete(context, &self.groups, &decode(mad)?, mask)?;
                Ok(Reply::record(&record))
            }
            (sa::INFORM_INFO, Method::SET) => {
                let inform: InformInfo = decode(mad)?;
                let kept =
                    self.subscriptions.set(requester, request.source, &inform, context.trusted, now)?;
                Ok(Reply::attribute(&kept))
            }
            _ => Err(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED),
        }
    }

    /// Answers a Get or a GetTable.
    pub(super) fn select(&self, context: &Context<'_>, mad: &SaMad, now: Timestamp) -> Result<Reply, Status> {
        match mad.header.attribute_id.get() {
            sa::MC_MEMBER_RECORD => self.members(context, mad),
            sa::SERVICE_RECORD => self.services(context, mad, now),
            sa::INFORM_INFO_RECORD => {
                let template = decode(mad)?;
                let mask = mad.component_mask.get();
                let records = self.subscriptions.records(context.snapshot, context.trusted);
                one_or_table(
                    mad,
                    records.into_iter().filter(|record: &InformInfoRecord| {
                        let port = context.snapshot.port_by_gid(record.subscriber_gid());
                        record.matches(&template, mask) && port.is_some_and(|port| context.may_see(port))
                    }),
                )
            }
            _ => Err(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED),
        }
    }

    /// A trusted requester sees each member, everybody else each group once and without its members.
    fn members(&self, context: &Context<'_>, mad: &SaMad) -> Result<Reply, Status> {
        let (template, mask): (McMemberRecord, _) = (decode(mad)?, mad.component_mask.get());
        let mut found = Vec::new();
        let mut consider = |group: &Group, member| {
            let record = member_record::record(group, member);
            if member_record::fits(&record, group, &template, mask)? {
                found.push(record);
            }
            Ok(())
        };
        let named = (mask & McMemberRecord::MGID != 0).then(|| template.mgid());
        let groups = self.groups.iter().filter(|group| named.is_none_or(|mgid| mgid == group.mgid));
        for group in
            groups.filter(|group| context.trusted || context.requester.has_partition(group.traits.pkey))
        {
            if context.trusted && !group.members().is_empty() {
                group.members().values().try_for_each(|member| consider(group, Some(member)))?;
            } else {
                consider(group, None)?;
            }
        }
        one_or_table(mad, found.into_iter())
    }

    fn services(&self, context: &Context<'_>, mad: &SaMad, now: Timestamp) -> Result<Reply, Status> {
        let (template, mask): (ServiceRecord, _) = (decode(mad)?, mad.component_mask.get());
        let visible = self.services.records(now).filter(|record| {
            record.matches(&template, mask)
                && (context.trusted || context.requester.has_partition(record.service_pkey()))
        });
        one_or_table(mad, visible.map(|record| shown(context, record)))
    }

    /// Compares registrations with a new picture: a port that is missing from it for [`ABSENCE`] loses what it registered.
    pub(super) fn settle(&mut self, snapshot: &Snapshot, now: Timestamp) {
        self.aliases.settle(snapshot);
        let members =
            self.groups.iter().flat_map(|group| group.members().values().map(|member| &member.port));
        let subscribers = self.subscriptions.iter().map(|(_, subscription)| &subscription.port);
        let holders: Vec<Guid> = self.aliases.table().iter().map(|(_, port)| port).collect();
        let missing = members.chain(subscribers).chain(&holders).chain(self.services.owners());
        let missing = missing.filter(|guid| snapshot.port_by_guid(**guid).is_none());
        let since = missing.map(|guid| (*guid, self.absent.get(guid).copied().unwrap_or(now)));
        self.absent = since.collect();
        self.drop_absent(now);
    }

    /// Ends leases, and drops what ports registered that are gone for too long.
    pub(super) fn expire(&mut self, now: Timestamp) {
        self.services.expire(now);
        self.groups.end_doubts(now);
        self.drop_absent(now);
    }

    fn drop_absent(&mut self, now: Timestamp) {
        let gone: Vec<Guid> =
            self.absent.iter().filter(|(_, since)| now - **since >= ABSENCE).map(|(guid, _)| *guid).collect();
        for guid in gone {
            self.absent.remove(&guid);
            self.groups.remove_port(guid);
            self.subscriptions.remove_port(guid);
            self.services.remove_port(guid);
            self.aliases.remove_port(guid);
        }
    }

    /// When [`Registry::expire`] has something to do.
    pub(super) fn deadline(&self) -> Option<Timestamp> {
        let absent = self.absent.values().min().map(|since| *since + ABSENCE);
        [self.services.deadline(), self.groups.deadline(), absent].into_iter().flatten().min()
    }
}

/// ServiceKey is shown to trusted requesters only, in answers to Set and Delete too.
fn shown(context: &Context<'_>, mut record: ServiceRecord) -> ServiceRecord {
    if !context.trusted {
        record.service_key = [0; 16];
    }
    record
}

fn decode<A: Attribute>(mad: &SaMad) -> Result<A, Status> {
    A::decode(&mad.data).ok_or(Status::SA_REQ_INVALID)
}

/// The answer to a Get, which has exactly one record, or to a GetTable.
pub(super) fn one_or_table<R: Record>(
    mad: &SaMad,
    mut records: impl Iterator<Item = R>,
) -> Result<Reply, Status> {
    match mad.header.method() {
        Method::GET => match (records.next(), records.next()) {
            (None, _) => Err(Status::SA_NO_RECORDS),
            (Some(record), None) => Ok(Reply::record(&record)),
            (Some(_), Some(_)) => Err(Status::SA_TOO_MANY_RECORDS),
        },
        Method::GET_TABLE => {
            let mut table = Vec::new();
            records.for_each(|record| record.push_to(&mut table));
            Ok(Reply::table::<R>(table))
        }
        _ => Err(Status::METHOD_ATTRIBUTE_NOT_SUPPORTED),
    }
}
