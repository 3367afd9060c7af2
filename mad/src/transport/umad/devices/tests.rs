use super::*;

/// Writes a sysfs tree below a new directory: `path value` lines, below /sys/class.
pub(in crate::transport::umad) fn tree(lines: &str) -> (tempfile::TempDir, Vec<Device>) {
    let root = tempfile::tempdir().unwrap();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (path, value) = line.split_once(' ').unwrap_or((line, ""));
        let path = root.path().join("sys/class").join(path);
        if path.to_str().unwrap().ends_with('/') {
            std::fs::create_dir_all(path).unwrap();
            continue;
        }
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{value}\n")).unwrap();
    }
    let devices = devices_under(root.path().to_str().unwrap()).unwrap();
    (root, devices)
}

/// As a ConnectX adapter with two ports shows itself, the second port of Ethernet.
const MLX5: &str = "
    infiniband/mlx5_0/node_type 1: CA
    infiniband/mlx5_0/fw_ver 20.28.1002
    infiniband/mlx5_0/hca_type MT4123
    infiniband/mlx5_0/hw_rev 0
    infiniband/mlx5_0/board_id MT_0000000222
    infiniband/mlx5_0/node_desc node17 mlx5_0
    infiniband/mlx5_0/node_guid b859:9f03:00d8:5e24
    infiniband/mlx5_0/sys_image_guid b859:9f03:00d8:5e24
    infiniband/mlx5_0/ports/1/state 4: ACTIVE
    infiniband/mlx5_0/ports/1/phys_state 5: LinkUp
    infiniband/mlx5_0/ports/1/link_layer InfiniBand
    infiniband/mlx5_0/ports/1/rate 100 Gb/sec (2X HDR)
    infiniband/mlx5_0/ports/1/lid 0x1a
    infiniband/mlx5_0/ports/1/lid_mask_count 2
    infiniband/mlx5_0/ports/1/sm_lid 0x1
    infiniband/mlx5_0/ports/1/sm_sl 3
    infiniband/mlx5_0/ports/1/cap_mask 0xa751e848
    infiniband/mlx5_0/ports/1/gids/0 fe80:0000:0000:0000:b859:9f03:00d8:5e24
    infiniband/mlx5_0/ports/2/state 1: DOWN
    infiniband/mlx5_0/ports/2/phys_state 3: Disabled
    infiniband/mlx5_0/ports/2/link_layer Ethernet
    infiniband/mlx5_0/ports/2/lid 0x0
    infiniband_mad/abi_version 5
    infiniband_mad/umad7/ibdev mlx5_0
    infiniband_mad/umad7/port 1
    infiniband_mad/issm7/ibdev mlx5_0
    infiniband_mad/issm7/port 1
    infiniband_mad/umad8/ibdev mlx5_0
    infiniband_mad/umad8/port 2";

#[test]
fn every_field_of_a_complete_tree_is_read() {
    let (_root, devices) = tree(MLX5);
    let [device] = devices.as_slice() else { panic!("{devices:?}") };
    let guid = Guid(0xb859_9f03_00d8_5e24);
    assert_eq!(device.node_type, Some(NodeType::Ca));
    assert_eq!(device.firmware.as_deref(), Some("20.28.1002"));
    assert_eq!(device.hca_type.as_deref(), Some("MT4123"));
    assert_eq!(device.hardware_revision.as_deref(), Some("0"));
    assert_eq!(device.board_id.as_deref(), Some("MT_0000000222"));
    assert_eq!(device.description.as_deref(), Some("node17 mlx5_0"));
    assert_eq!((device.node_guid, device.system_image_guid), (Some(guid), Some(guid)));
    let expected = DevicePort {
        device: "mlx5_0".into(),
        number: PortNum(1),
        port_guid: Some(guid),
        gid_prefix: Some(Gid::DEFAULT_PREFIX),
        lid: Lid::new(0x1a),
        lmc: Some(2),
        sm_lid: Lid::new(1),
        sm_sl: Some(3),
        state: Some(PortState::Active),
        phys_state: Some(PortPhysState::LinkUp),
        rate: Some("100 Gb/sec (2X HDR)".into()),
        link_layer: LinkLayer::InfiniBand,
        capability_mask: Some(0xa751_e848),
        umad: Some("/dev/infiniband/umad7".into()),
        issm: Some("/dev/infiniband/issm7".into()),
    };
    assert_eq!(device.ports[0], expected);
    let ethernet = &device.ports[1];
    assert_eq!((&ethernet.link_layer, ethernet.lid, &ethernet.issm), (&LinkLayer::Ethernet, None, &None));
    let json = serde_json::to_value(device).unwrap();
    assert_eq!(json["ports"][1]["link_layer"], "Ethernet");
    assert_eq!(json["ports"][0]["gid_prefix"], "0xfe80000000000000");
    assert_eq!(json["node_guid"], "0xb8599f0300d85e24");
}

/// Trees of real hosts lack files, each device others; values that make no sense leave a field empty.
#[test]
fn missing_and_odd_files_leave_fields_empty() {
    let (_root, devices) = tree(
        "infiniband/hfi1_0/board_id HPE 100Gb 1-port OP101 QSFP28 x16 PCIe Gen3 with Intel Omni-Path Adapter
         infiniband/hfi1_0/ports/1/phys_state 5: LinkUp
         infiniband/hfi1_0/ports/1/state 9: WHAT
         infiniband/hfi1_0/ports/1/lid 0xffff
         infiniband/hfi1_0/ports/1/sm_lid twelve
         infiniband/hfi1_0/ports/1/gids/0 not a gid
         infiniband/hfi1_0/ports/1/lid_mask_count 4711
         infiniband/hfi1_0/ports/x/state 4: ACTIVE
         infiniband/hfi1_0/ports/300/state 4: ACTIVE
         infiniband/irdma0/node_type 4: RNIC
         infiniband/irdma0/node_guid 0000:0000:0000:0000
         infiniband/empty0/
         infiniband_mad/umad0/ibdev hfi1_0
         infiniband_mad/umad1/port 1",
    );
    let names: Vec<&str> = devices.iter().map(|device| device.name.as_str()).collect();
    assert_eq!(names, ["empty0", "hfi1_0", "irdma0"]);
    let [port] = devices[1].ports.as_slice() else { panic!("{devices:?}") };
    assert_eq!((port.state, port.lid, port.sm_lid, port.port_guid, port.lmc), (None, None, None, None, None));
    assert_eq!((&port.link_layer, &port.umad), (&LinkLayer::InfiniBand, &None));
    assert_eq!((devices[2].node_type, devices[2].node_guid), (None, None));
}

#[test]
fn a_host_without_the_class_is_an_error_and_not_an_empty_list() {
    let root = tempfile::tempdir().unwrap();
    let error = devices_under(root.path().to_str().unwrap()).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ENOENT));
}
