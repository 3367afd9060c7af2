//! Datagrams captured from stock tools (`testdata/mads`): our decoders must read in them what the tools printed.

use super::sa::{self, Record, SaMad};
use super::smp::{self, SmState, Smp, TrapDetails};
use super::*;
use crate::types::{
    Gid, Guid, Lid, LinkSpeed, LinkWidth, Mtu, NodeType, PKey, PortNum, PortPhysState, PortState,
    ServiceLevel,
};

/// One file: sections of hexadecimal, and what the tool printed.
struct Golden(&'static str);

macro_rules! golden {
    ($name:literal) => {
        Golden(include_str!(concat!("../../../testdata/mads/", $name, ".txt")))
    };
}

impl Golden {
    fn section(&self, name: &str) -> impl Iterator<Item = &'static str> {
        let head = format!("[{name}]");
        self.0.lines().skip_while(move |line| *line != head).skip(1).take_while(|line| !line.starts_with('['))
    }

    fn mad(&self, name: &str) -> Mad {
        let hex: String = self.section(name).collect();
        assert_eq!(hex.len(), 512, "[{name}]");
        let byte = |i: usize| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap();
        Mad::decode(&std::array::from_fn::<u8, 256, _>(byte)).unwrap()
    }

    fn response(&self) -> Mad {
        let (request, response) = (self.mad("request"), self.mad("response"));
        assert_eq!(response.header.method(), request.header.method().response());
        assert_eq!(response.header.attribute_id, request.header.attribute_id);
        assert!(response.header.status().is_ok());
        response
    }

    /// The attribute of a subnet management response.
    fn smp<T: Attribute>(&self) -> T {
        let response = self.response();
        assert_eq!(response.header.attribute_id.get(), T::ID);
        T::decode(&Smp::from_mad(response).data).unwrap()
    }

    /// The first record of an SA response, and its request.
    fn sa<T: Record>(&self) -> (T, SaMad) {
        let response = SaMad::from_mad(self.response());
        assert_eq!(response.header.attribute_id.get(), T::ID);
        assert_eq!(response.attribute_offset.get(), T::ATTRIBUTE_OFFSET);
        let request = SaMad::from_mad(self.mad("request"));
        (T::decode(&response.data).unwrap(), request)
    }

    /// The value that the tool printed after this label and a row of dots.
    fn printed(&self, label: &str) -> &'static str {
        self.section("printed")
            .filter_map(|line| line.trim().strip_prefix(label))
            .find(|rest| rest.starts_with(['.', ':']))
            .unwrap_or_else(|| panic!("the tool printed no {label}"))
            .trim_start_matches([':', '.'])
            .trim()
    }

    fn number(&self, label: &str) -> u64 {
        let text = self.printed(label);
        match text.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
            None => text.parse().unwrap(),
        }
    }
}

#[test]
fn node_info() {
    let golden = golden!("node_info");
    let info: smp::NodeInfo = golden.smp();
    assert_eq!(golden.printed("NodeType"), "Switch");
    assert_eq!(info.node_type(), Some(NodeType::Switch));
    assert_eq!(u64::from(info.num_ports), golden.number("NumPorts"));
    assert_eq!(info.system_image_guid(), Guid(golden.number("SystemGuid")));
    assert_eq!(info.node_guid(), Guid(golden.number("Guid")));
    assert_eq!(info.port_guid(), Guid(golden.number("PortGuid")));
    assert_eq!(u64::from(info.partition_cap.get()), golden.number("PartCap"));
    assert_eq!(u64::from(info.revision.get()), golden.number("Revision"));
    assert_eq!(u64::from(info.local_port_num().0), golden.number("LocalPort"));
    assert_eq!(u64::from(info.vendor_id()), golden.number("VendorId"));
}

#[test]
fn node_description() {
    let golden = golden!("node_description");
    let description: smp::NodeDescription = golden.smp();
    assert_eq!(description.to_string(), golden.printed("Node Description"));
}

fn check_port_info(info: &smp::PortInfo, golden: &Golden) {
    let fields: [(&str, u64); _] = [
        ("GidPrefix", info.gid_prefix.get()),
        ("Lid", info.base_lid.get().into()),
        ("SMLid", info.master_sm_lid.get().into()),
        ("CapMask", info.capability_mask.get().into()),
        ("MkeyLeasePeriod", info.m_key_lease_period.get().into()),
        ("LocalPort", info.local_port_num.into()),
        ("ProtectBits", info.m_key_protect_bits().into()),
        ("LMC", info.lmc().into()),
        ("SMSL", info.master_sm_sl().into()),
        ("VLArbHighCap", info.vl_arbitration_high_cap.into()),
        ("VLArbLowCap", info.vl_arbitration_low_cap.into()),
        ("VLStallCount", info.vl_stall_count().into()),
        ("HoqLife", info.hoq_life().into()),
        ("PartEnforceInb", info.partition_enforcement_inbound().into()),
        ("PartEnforceOutb", info.partition_enforcement_outbound().into()),
        ("FilterRawInb", info.filter_raw_inbound().into()),
        ("GuidCap", info.guid_cap.into()),
        ("ClientReregister", info.client_reregister().into()),
        ("SubnetTimeout", info.subnet_timeout().into()),
        ("RespTimeVal", info.resp_time_value().into()),
        ("RoundTrip", info.link_round_trip_latency().into()),
        ("CapabilityMask2", info.capability_mask2.get().into()),
        ("LinkSpeedExtSupported", info.link_speed_ext_supported().into()),
        ("LinkSpeedExtEnabled", info.link_speed_ext_enabled().into()),
    ];
    for (label, value) in fields {
        assert_eq!(value, golden.number(label), "{label}");
    }
    assert_eq!(golden.printed("LinkState"), "Active");
    assert_eq!(info.port_state(), Some(PortState::Active));
    assert_eq!(golden.printed("PhysLinkState"), "LinkUp");
    assert_eq!(info.port_phys_state(), Some(PortPhysState::LinkUp));
    assert_eq!(golden.printed("LinkWidthActive"), "4X");
    assert_eq!(info.link_width(), Some(LinkWidth::X4));
    assert_eq!(golden.printed("LinkSpeedActive"), "2.5 Gbps");
    assert_eq!(info.link_speed(false), Some(LinkSpeed::Sdr));
    assert_eq!(golden.printed("LinkSpeedSupported"), "2.5 Gbps or 5.0 Gbps or 10.0 Gbps");
    assert_eq!(info.speeds_supported().fastest(), Some(LinkSpeed::Qdr));
    assert_eq!(golden.number("NeighborMTU"), u64::from(info.neighbor_mtu().unwrap().bytes()));
    assert_eq!(golden.number("MtuCap"), u64::from(info.mtu_cap().unwrap().bytes()));
    assert_eq!((golden.printed("VLCap"), info.vl_cap()), ("VL0-7", 4));
    assert_eq!((golden.printed("OperVLs"), info.operational_vls()), ("VL0-7", 4));
}

#[test]
fn port_info() {
    for golden in [golden!("port_info_host"), golden!("port_info_switch"), golden!("port_info_direct")] {
        check_port_info(&golden.smp(), &golden);
    }
    assert_eq!(golden!("port_info_host").smp::<smp::PortInfo>().lid(), Lid::new(1));
    assert_eq!(golden!("port_info_switch").mad("request").header.attribute_modifier.get(), 3);
}

#[test]
fn directed_route() {
    let golden = golden!("port_info_direct");
    let request = Smp::from_mad(golden.mad("request"));
    assert_eq!(request.path().unwrap().ports(), [1, 3], "smpquery -D portinfo 0,1,3");
    assert!(!request.is_returning());
    let ours = Smp::directed(Method::GET, smp::PortInfo::ID, 1, &request.path().unwrap());
    assert_eq!(ours.initial_path, request.initial_path);
    assert_eq!(ours.dr_slid, request.dr_slid);
    let response = Smp::from_mad(golden.mad("response"));
    assert!(response.is_returning());
    assert_eq!(response.path(), request.path());
}

#[test]
fn switch_info() {
    let golden = golden!("switch_info");
    let info: smp::SwitchInfo = golden.smp();
    let fields: [(&str, u64); _] = [
        ("LinearFdbCap", info.linear_fdb_cap.get().into()),
        ("McastFdbCap", info.multicast_fdb_cap.get().into()),
        ("LinearFdbTop", info.linear_fdb_top.get().into()),
        ("LifeTime", info.life_time_value().into()),
        ("StateChange", info.port_state_change().into()),
        ("OptSLtoVLMapping", info.optimized_sl_to_vl().into()),
        ("PartEnforceCap", info.partition_enforcement_cap.get().into()),
        ("InboundPartEnf", info.inbound_enforcement_cap().into()),
        ("FilterRawInbound", info.filter_raw_inbound_cap().into()),
        ("FilterRawOutbound", info.filter_raw_outbound_cap().into()),
        ("EnhancedPort0", info.enhanced_port_0().into()),
        ("MulticastFDBTop", info.multicast_fdb_top.get().into()),
    ];
    for (label, value) in fields {
        assert_eq!(value, golden.number(label), "{label}");
    }
}

/// The numbers of a row such as `0xffff 0x0000 …` or `| 0| 1|`.
fn row(line: &str) -> Vec<u16> {
    line.split([' ', '|', '\t'])
        .filter_map(|word| match word.strip_prefix("0x") {
            Some(hex) => u16::from_str_radix(hex, 16).ok(),
            None => word.parse().ok(),
        })
        .collect()
}

#[test]
fn pkey_table() {
    let golden = golden!("pkey_table");
    let table: smp::PKeyTable = golden.smp();
    // The tool asks for both blocks; the datagram is the second's.
    let (port, block) =
        smp::PKeyTable::split_modifier(golden.response().header.attribute_modifier.get()).unwrap();
    assert_eq!((port, block), (PortNum(1), 1));
    let printed: Vec<_> = golden
        .section("printed")
        .filter(|line| line.contains(": 0x"))
        .flat_map(|line| row(line.split_once(": ").unwrap().1))
        .map(PKey)
        .collect();
    assert_eq!(printed[32..], table.keys());

    let (record, request) = golden!("sa_pkey_record").sa::<sa::PKeyTableRecord>();
    assert_eq!((record.lid.get(), record.port_num, record.block_num.get()), (1, 1, 0));
    assert_eq!(record.table.keys()[..], printed[..32]);
    assert_eq!(sa::PKeyTableRecord::component_mask(&["LID", "PortNum"]), Some(request.component_mask.get()));
}

#[test]
fn quality_of_service_tables() {
    let golden = golden!("sl_to_vl");
    let table: smp::SlToVlMappingTable = golden.smp();
    let line = golden.section("printed").find(|l| l.starts_with("ports: in  8, out  1:")).unwrap();
    let lanes = row(line.split_once('|').unwrap().1);
    assert_eq!(lanes, table.lanes().map(u16::from));
    assert_eq!(table.vl(ServiceLevel(15)).0, 7);
    let modifier = golden.mad("request").header.attribute_modifier.get();
    assert_eq!(smp::SlToVlMappingTable::split_modifier(modifier), (PortNum(8), PortNum(1)));

    let golden = golden!("vl_arbitration");
    let table: smp::VlArbitrationTable = golden.smp();
    let rows: Vec<_> = golden.section("printed").filter(|l| l.contains(": |")).map(row).collect();
    let modifier = golden.mad("request").header.attribute_modifier.get();
    let high = smp::VlArbitrationTableKind::HighLower;
    assert_eq!(smp::VlArbitrationTable::split_modifier(modifier), Some((high, PortNum(1))));
    for (element, (vl, weight)) in table.elements.iter().zip(rows[2].iter().zip(&rows[3])) {
        assert_eq!((u16::from(element.vl().0), u16::from(element.weight)), (*vl, *weight));
    }

    let (record, request) = golden!("sa_vl_arbitration_record").sa::<sa::VlArbitrationTableRecord>();
    assert_eq!((record.lid.get(), record.output_port_num, record.block_num), (2, 1, 1));
    let mask = sa::VlArbitrationTableRecord::component_mask(&["LID", "OutputPortNum", "BlockNum"]);
    assert_eq!(mask, Some(request.component_mask.get()));
    let (record, request) = golden!("sa_sl_to_vl_record").sa::<sa::SlToVlMappingTableRecord>();
    assert_eq!((record.lid.get(), record.input_port_num, record.output_port_num), (2, 1, 1));
    let mask = sa::SlToVlMappingTableRecord::component_mask(&["LID", "InputPortNum", "OutputPortNum"]);
    assert_eq!(mask, Some(request.component_mask.get()));
}

#[test]
fn sm_info() {
    let golden = golden!("sm_info");
    let info: smp::SmInfo = golden.smp();
    assert_eq!(info.guid(), Guid(0x10_0001));
    assert_eq!(info.state(), Some(SmState::Master));
    let line = golden.section("printed").next().unwrap();
    let expected =
        format!("sm guid 0x100001, activity count {} priority {} state 3", info.act_count, info.priority());
    assert!(line.contains(&expected), "{line} has no {expected}");

    let golden = golden!("sa_sm_info_record");
    let (record, _) = golden.sa::<sa::SmInfoRecord>();
    assert_eq!(record.lid(), Lid::new(golden.number("LID") as u16));
    assert_eq!(record.sm_info.guid(), Guid(golden.number("GUID")));
    assert_eq!(u64::from(record.sm_info.act_count.get()), golden.number("ActCount"));
    assert_eq!(u64::from(record.sm_info.state_raw()), golden.number("SMState"));
}

#[test]
fn counters() {
    let golden = golden!("port_counters");
    let counters = perf::PortCounters::decode(&perf::PerfMad::from_mad(golden.response()).data).unwrap();
    assert_eq!(u64::from(counters.port_select), golden.number("PortSelect"));
    assert_eq!(u64::from(counters.port_xmit_data.get()), golden.number("PortXmitData"));
    assert_eq!(u64::from(counters.port_rcv_data.get()), golden.number("PortRcvData"));
    assert_eq!(u64::from(counters.port_xmit_pkts.get()), golden.number("PortXmitPkts"));
    assert_eq!(u64::from(counters.port_xmit_wait.get()), golden.number("PortXmitWait"));
    let golden = golden!("port_counters_extended");
    let counters =
        perf::PortCountersExtended::decode(&perf::PerfMad::from_mad(golden.response()).data).unwrap();
    assert_eq!(counters.port_xmit_data.get(), golden.number("PortXmitData"));
    assert_eq!(counters.port_rcv_pkts.get(), golden.number("PortRcvPkts"));
    assert_eq!(counters.port_unicast_xmit_pkts.get(), golden.number("PortUnicastXmitPkts"));
}

#[test]
fn sa_class_port_info() {
    let golden = golden!("sa_class_port_info");
    let info = ClassPortInfo::decode(&SaMad::from_mad(golden.response()).data).unwrap();
    assert_eq!(u64::from(info.capability_mask.get()), golden.number("Capability mask"));
    assert_eq!(u64::from(info.capability_mask2()), golden.number("Capability mask 2"));
    assert_eq!(u64::from(info.resp_time_value()), golden.number("Response time value"));
    assert_eq!(u64::from(info.redirect_qp()), golden.number("Redirect QP"));
    assert_eq!(u64::from(info.trap_qkey.get()), golden.number("Trap QKey"));
    assert!(!info.is_redirect());
}

#[test]
fn sa_node_record() {
    let golden = golden!("sa_node_record");
    let (record, request) = golden.sa::<sa::NodeRecord>();
    assert_eq!(record.lid(), Lid::new(golden.number("lid") as u16));
    assert_eq!(record.node_info.node_guid(), Guid(golden.number("node_guid")));
    assert_eq!(u64::from(record.node_info.num_ports), golden.number("num_ports"));
    assert_eq!(record.node_description.to_string(), golden.printed("NodeDescription"));
    assert_eq!(sa::NodeRecord::component_mask(&["LID"]), Some(request.component_mask.get()));
    let template = sa::NodeRecord::decode(&request.data).unwrap();
    assert!(record.matches(&template, request.component_mask.get()));
}

#[test]
fn sa_port_info_record() {
    let golden = golden!("sa_port_info_record");
    let (record, request) = golden.sa::<sa::PortInfoRecord>();
    assert_eq!(record.lid(), Lid::new(golden.number("EndPortLid") as u16));
    assert_eq!(u64::from(record.port_num().0), golden.number("PortNum"));
    check_port_info(&record.port_info, &golden);
    assert_eq!(sa::PortInfoRecord::component_mask(&["LID", "PortNum"]), Some(request.component_mask.get()));
    let template = sa::PortInfoRecord::decode(&request.data).unwrap();
    assert!(record.matches(&template, request.component_mask.get()));
}

#[test]
fn sa_switch_info_and_lft_records() {
    let golden = golden!("sa_switch_info_record");
    let (record, _) = golden.sa::<sa::SwitchInfoRecord>();
    assert_eq!(record.lid(), Lid::new(golden.number("LID") as u16));
    assert_eq!(u64::from(record.switch_info.linear_fdb_cap.get()), golden.number("LinearFDBCap"));
    assert_eq!(u64::from(record.switch_info.multicast_fdb_cap.get()), golden.number("MulticastFDBCap"));

    let golden = golden!("sa_lft_record");
    let (record, request) = golden.sa::<sa::LinearForwardingTableRecord>();
    let printed: Vec<_> =
        golden.section("printed").map(row).filter(|r| r.len() == 2).map(|r| r[1] as u8).collect();
    assert_eq!(printed, record.table.ports);
    let mask = sa::LinearForwardingTableRecord::component_mask(&["LID", "BlockNum"]);
    assert_eq!(mask, Some(request.component_mask.get()));
}

#[test]
fn sa_path_record() {
    let golden = golden!("sa_path_record");
    let (path, request) = golden.sa::<sa::PathRecord>();
    assert_eq!(path.dgid(), golden.printed("dgid").parse::<Gid>().unwrap());
    assert_eq!(path.sgid(), golden.printed("sgid").parse::<Gid>().unwrap());
    assert_eq!(u64::from(path.dlid.get()), golden.number("dlid"));
    assert_eq!(u64::from(path.slid.get()), golden.number("slid"));
    assert_eq!(path.pkey(), PKey(0xffff));
    assert_eq!(u64::from(path.sl()), golden.number("sl"));
    assert_eq!((path.reversible(), path.numb_path()), (1, 0), "0x80");
    assert_eq!((path.mtu_selector(), path.mtu()), (sa::Selector::Exactly, Some(Mtu::M1024)), "0x83");
    assert_eq!((path.rate_selector(), path.rate().unwrap().decigbps()), (sa::Selector::Exactly, 100), "0x83");
    assert_eq!(
        (path.packet_life_time_selector(), path.packet_life_time()),
        (sa::Selector::Exactly, 18),
        "0x92"
    );
    assert_eq!(request.component_mask.get(), sa::PathRecord::DLID | sa::PathRecord::SLID);
}

#[test]
fn sa_mc_member_record() {
    let golden = golden!("sa_mc_member_record");
    let (group, _) = golden.sa::<sa::McMemberRecord>();
    assert_eq!(group.mgid(), golden.printed("MGID").parse::<Gid>().unwrap());
    assert_eq!(u64::from(group.mlid.get()), golden.number("Mlid"));
    assert_eq!(group.mlid().unwrap().index(), 0);
    assert_eq!((group.mtu_selector(), group.mtu()), (sa::Selector::Exactly, Some(Mtu::M2048)), "0x84");
    assert_eq!(u64::from(group.pkey().0), 0xffff);
    assert_eq!((group.scope(), group.join_state()), (2, sa::JoinState(0)));
    assert_eq!(group.qkey.get(), 0x0b1b);
}

#[test]
fn sa_link_record() {
    let golden = golden!("sa_link_record");
    let (link, request) = golden.sa::<sa::LinkRecord>();
    assert_eq!(u64::from(link.from_lid.get()), golden.number("FromLID"));
    assert_eq!(u64::from(link.from_port), golden.number("FromPort"));
    assert_eq!(u64::from(link.to_port), golden.number("ToPort"));
    assert_eq!(u64::from(link.to_lid.get()), golden.number("ToLID"));
    assert_eq!(sa::LinkRecord::component_mask(&["FromLID"]), Some(request.component_mask.get()));
}

#[test]
fn trap_and_its_repress() {
    let trap = golden!("trap_128").mad("recv");
    assert_eq!((trap.header.method(), trap.header.attribute_id.get()), (Method::TRAP, smp::Notice::ID));
    let notice = smp::Notice::decode(&Smp::from_mad(trap).data).unwrap();
    assert_eq!(notice.notice_type(), Some(smp::NoticeType::Urgent));
    assert_eq!(notice.producer(), Some(NodeType::Switch));
    assert_eq!(notice.trap_number(), Some(128));
    assert_eq!(notice.issuer_lid(), Lid::new(3));
    let TrapDetails::LinkStateChanged(data) = notice.details() else { panic!("{:?}", notice.details()) };
    assert_eq!(data.lid(), Lid::new(3));
    let repress = golden!("trap_repress").mad("send");
    assert_eq!(repress.header.method(), trap.header.method().response());
    assert_eq!(Smp::from_mad(repress).data, Smp::from_mad(trap).data);
}

#[test]
fn notices_are_built_as_devices_send_them() {
    let lid = Lid::new(3).unwrap();
    let data = smp::LinkStateData { lid: zerocopy::big_endian::U16::new(3) };
    let built =
        smp::Notice::generic(smp::NoticeType::Urgent, NodeType::Switch.to_wire().into(), 128, Some(lid));
    let captured = smp::Notice::decode(&Smp::from_mad(golden!("trap_128").mad("recv")).data).unwrap();
    assert_eq!(built.with_data(&data).details(), captured.details());
    assert_eq!((built.notice_toggle(), built.notice_count()), (0, 0));
    assert_eq!(built.trap_number(), captured.trap_number());
    assert_eq!(built.producer(), captured.producer());
}

#[test]
fn set_of_a_forwarding_table() {
    let set = Smp::from_mad(golden!("set_lft").mad("send"));
    assert_eq!(set.header.method(), Method::SET);
    let table = smp::LinearForwardingTable::decode(&set.data).unwrap();
    // opensm's table of S2 after the cut: itself at LID 3, H1, S1 and H2 by port 3, H3 by port 1.
    assert_eq!(table.ports[..7], [255, 3, 3, 0, 3, 1, 255]);
}
