//! The kinds of records that can be asked for, how a node restricts them, and what a table shows of them.

use std::net::Ipv6Addr;

use mad::types::{Guid, Lid, MulticastLid};
use mad::wire::Attribute;
use mad::wire::sa::{
    GuidInfoRecord, InformInfoRecord, LinearForwardingTableRecord, LinkRecord, McMemberRecord,
    MulticastForwardingTableRecord, NodeRecord, PKeyTableRecord, PathRecord, PortInfoRecord, Record,
    ServiceRecord, SlToVlMappingTableRecord, SmInfoRecord, SwitchInfoRecord, VlArbitrationTableRecord,
};
use zerocopy::big_endian::U16;

use super::ask::Asker;
use super::show::Found;
use crate::args::{NodeChoice, QueryKind};
use crate::failure::{Failure, Outcome};

pub(super) fn ask(asker: &mut Asker, kind: &QueryKind) -> Outcome<Found> {
    match kind {
        QueryKind::Node(node) => {
            const COLUMNS: &[&str] =
                &["LID", "NodeType", "NodeGUID", "PortGUID", "LocalPortNum", "NumPorts", "NodeDescription"];
            of_nodes::<NodeRecord>(asker, node, "LID", |record| &mut record.lid, COLUMNS)
        }
        QueryKind::Port(node) => {
            const COLUMNS: &[&str] = &[
                "LID",
                "PortNum",
                "PortState",
                "PortPhysicalState",
                "LinkWidthActive",
                "LinkSpeedActive",
                "LinkSpeedExtActive",
                "NeighborMTU",
                "OperationalVLs",
                "LMC",
                "MasterSMLID",
                "CapabilityMask",
            ];
            of_nodes::<PortInfoRecord>(asker, node, "LID", |record| &mut record.lid, COLUMNS)
        }
        QueryKind::Link(node) => {
            of_nodes::<LinkRecord>(asker, node, "FromLID", |record| &mut record.from_lid, &[])
        }
        QueryKind::Switch(node) => {
            const COLUMNS: &[&str] = &[
                "LID",
                "LinearFDBCap",
                "LinearFDBTop",
                "MulticastFDBCap",
                "LifeTimeValue",
                "PortStateChange",
                "PartitionEnforcementCap",
                "EnhancedPort0",
                "OptimizedSLtoVLMappingProgramming",
            ];
            of_nodes::<SwitchInfoRecord>(asker, node, "LID", |record| &mut record.lid, COLUMNS)
        }
        QueryKind::Lft(node) => {
            of_nodes::<LinearForwardingTableRecord>(asker, node, "LID", |record| &mut record.lid, &[])
        }
        QueryKind::Mft(node) => {
            of_nodes::<MulticastForwardingTableRecord>(asker, node, "LID", |record| &mut record.lid, &[])
        }
        QueryKind::Guids(node) => {
            of_nodes::<GuidInfoRecord>(asker, node, "LID", |record| &mut record.lid, &[])
        }
        QueryKind::Pkey(node) => {
            of_nodes::<PKeyTableRecord>(asker, node, "LID", |record| &mut record.lid, &[])
        }
        QueryKind::Slvl(node) => {
            of_nodes::<SlToVlMappingTableRecord>(asker, node, "LID", |record| &mut record.lid, &[])
        }
        QueryKind::Vlarb(node) => {
            of_nodes::<VlArbitrationTableRecord>(asker, node, "LID", |record| &mut record.lid, &[])
        }
        QueryKind::Sm(node) => of_nodes::<SmInfoRecord>(asker, node, "LID", |record| &mut record.lid, &[]),
        QueryKind::Path { from, to } => path(asker, from.as_deref(), to.as_deref()),
        QueryKind::Mcast { mgid, mlid, member } => mcast(asker, *mgid, *mlid, member),
        QueryKind::Service { name } => {
            const COLUMNS: &[&str] =
                &["ServiceID", "ServiceGID", "ServiceP_Key", "ServiceLease", "ServiceName"];
            let records = asker.table(&ServiceRecord::zeroed(), &[])?;
            let is = |record: &ServiceRecord, name: &str| {
                record.service_name.split(|byte| *byte == 0).next() == Some(name.as_bytes())
            };
            let records: Vec<_> =
                records.into_iter().filter(|r| name.as_ref().is_none_or(|name| is(r, name))).collect();
            Ok(Found::new(&records, COLUMNS))
        }
        QueryKind::Inform(node) => inform(asker, node),
        QueryKind::ClassPortInfo => Ok(Found::new::<NodeRecord>(&[], &[])),
    }
}

/// Records that carry the LID of the node that they are about: of the nodes that are meant, or of all.
fn of_nodes<R: Record>(
    asker: &mut Asker,
    node: &NodeChoice,
    component: &str,
    lid: impl Fn(&mut R) -> &mut U16,
    columns: &'static [&'static str],
) -> Outcome<Found> {
    let Some(lids) = asker.lids(node)? else {
        return Ok(Found::new(&asker.table(&R::zeroed(), &[])?, columns));
    };
    let mut records = Vec::new();
    for one in lids {
        let mut template = R::zeroed();
        lid(&mut template).set(one.get());
        records.append(&mut asker.table(&template, &[component])?);
    }
    Ok(Found::new(&records, columns))
}

fn path(asker: &mut Asker, from: Option<&str>, to: Option<&str>) -> Outcome<Found> {
    const COLUMNS: &[&str] =
        &["SLID", "DLID", "SGID", "DGID", "P_Key", "SL", "Mtu", "Rate", "PacketLifeTime"];
    let mut template = PathRecord::zeroed();
    let mut components = Vec::new();
    let mut end = |asker: &mut Asker, word: Option<&str>, name| -> Outcome<u16> {
        let Some(word) = word else { return Ok(0) };
        components.push(name);
        asker.one(word).map(Lid::get)
    };
    template.slid.set(end(asker, from, "SLID")?);
    template.dlid.set(end(asker, to, "DLID")?);
    Ok(Found::new(&asker.table(&template, &components)?, COLUMNS))
}

/// Groups, or to trusted clients members, which are named by GID.
fn mcast(
    asker: &mut Asker,
    mgid: Option<Ipv6Addr>,
    mlid: Option<MulticastLid>,
    member: &NodeChoice,
) -> Outcome<Found> {
    const COLUMNS: &[&str] =
        &["MGID", "PortGID", "MLID", "JoinState", "Q_Key", "P_Key", "MTU", "Rate", "SL", "PacketLifeTime"];
    let ports = ports(asker, member)?;
    if ports.is_some() && !asker.is_trusted() {
        let text = "members are shown to trusted clients only: --name, --guid and --lid need --sm-key";
        return Err(Failure::Usage(text.to_owned()));
    }
    let mut template = McMemberRecord::zeroed();
    let mut components = Vec::new();
    if let Some(mgid) = mgid {
        template.mgid.set(mgid.to_bits());
        components.push("MGID");
    }
    if let Some(mlid) = mlid {
        template.mlid.set(mlid.get());
        components.push("MLID");
    }
    let mut records = asker.table(&template, &components)?;
    if let Some(ports) = ports {
        records.retain(|record| ports.contains(&record.port_gid().guid()));
    }
    Ok(Found::new(&records, COLUMNS))
}

/// Subscriptions name ports by GID.
fn inform(asker: &mut Asker, node: &NodeChoice) -> Outcome<Found> {
    const COLUMNS: &[&str] =
        &["SubscriberGID", "Enum", "GID", "LIDRangeBegin", "LIDRangeEnd", "IsGeneric", "Type", "QPN"];
    let mut records = asker.table(&InformInfoRecord::zeroed(), &[])?;
    if let Some(ports) = ports(asker, node)? {
        records.retain(|record| ports.contains(&record.subscriber_gid().guid()));
    }
    Ok(Found::new(&records, COLUMNS))
}

/// Port GUIDs of the nodes that are meant; `None`: of all.
fn ports(asker: &mut Asker, node: &NodeChoice) -> Outcome<Option<Vec<Guid>>> {
    let Some(lids) = asker.lids(node)? else { return Ok(None) };
    let nodes = asker.table(&NodeRecord::zeroed(), &[])?;
    let named = nodes.iter().filter(|node| lids.iter().any(|lid| lid.get() == node.lid.get()));
    Ok(Some(named.map(|node| node.node_info.port_guid()).collect()))
}
