use super::super::devices::tests::tree;
use super::*;

/// B13: two iWARP/RoCE devices come first by name and are ACTIVE; the InfiniBand port is only in INIT.
const MIXED: &str = "
    infiniband/irdma0/ports/1/link_layer Ethernet
    infiniband/irdma0/ports/1/state 4: ACTIVE
    infiniband/irdma0/ports/1/phys_state 5: LinkUp
    infiniband/irdma1/ports/1/link_layer Ethernet
    infiniband/irdma1/ports/1/state 4: ACTIVE
    infiniband/mlx5_0/ports/1/link_layer InfiniBand
    infiniband/mlx5_0/ports/1/state 1: DOWN
    infiniband/mlx5_0/ports/1/phys_state 2: Polling
    infiniband/mlx5_0/ports/2/link_layer InfiniBand
    infiniband/mlx5_0/ports/2/state 2: INIT
    infiniband/mlx5_0/ports/2/phys_state 5: LinkUp
    infiniband/mlx5_0/ports/2/gids/0 fe80::2:c903:0:2
    infiniband/mlx5_1/ports/1/state 4: ACTIVE
    infiniband/mlx5_1/ports/1/gids/0 fe80::2:c903:0:3
    infiniband_mad/umad0/ibdev irdma0
    infiniband_mad/umad0/port 1
    infiniband_mad/umad1/ibdev irdma1
    infiniband_mad/umad1/port 1
    infiniband_mad/umad2/ibdev mlx5_0
    infiniband_mad/umad2/port 1
    infiniband_mad/umad3/ibdev mlx5_0
    infiniband_mad/umad3/port 2
    infiniband_mad/umad4/ibdev mlx5_1
    infiniband_mad/umad4/port 1";

fn by(device: Option<&str>, port: Option<u8>, guid: Option<u64>) -> PortSelector {
    PortSelector { device: device.map(Into::into), port: port.map(PortNum), guid: guid.map(Guid) }
}

#[test]
fn b13_the_first_infiniband_port_with_a_link_is_taken_and_the_others_are_named() {
    let (_root, devices) = tree(MIXED);
    let selected = select(&devices, &PortSelector::default()).unwrap();
    assert_eq!(selected.port.to_string(), "mlx5_0 port 2");
    let skipped: Vec<String> = selected.skipped.iter().map(ToString::to_string).collect();
    assert_eq!(
        skipped,
        [
            "irdma0 port 1: its link layer is Ethernet (RoCE or iWARP needs no subnet manager)",
            "irdma1 port 1: its link layer is Ethernet (RoCE or iWARP needs no subnet manager)",
            "mlx5_0 port 1: its physical link is down (Polling); check cable and far end, or enable the port",
        ]
    );
}

#[test]
fn a_port_is_found_by_name_number_and_guid() {
    let (_root, devices) = tree(MIXED);
    for (selector, expected) in [
        (by(Some("mlx5_1"), None, None), "mlx5_1 port 1"),
        (by(None, Some(2), None), "mlx5_0 port 2"),
        (by(Some("mlx5_0"), Some(2), None), "mlx5_0 port 2"),
        (by(None, None, Some(0x0002_c903_0000_0003)), "mlx5_1 port 1"),
        (by(Some("mlx5_0"), None, Some(0x0002_c903_0000_0002)), "mlx5_0 port 2"),
    ] {
        assert_eq!(select(&devices, &selector).unwrap().port.to_string(), expected, "{selector:?}");
    }
}

/// B13: every refusal is one line that ends in what to do or what there is.
#[test]
fn b13_every_refusal_says_what_to_do() {
    let (_root, devices) = tree(MIXED);
    for (selector, expected) in [
        (
            by(Some("mlx4_0"), None, None),
            "no device named `mlx4_0`; this host has: irdma0, irdma1, mlx5_0, mlx5_1",
        ),
        (by(Some("mlx5_0"), Some(3), None), "no port 3 on mlx5_0; there are: mlx5_0 port 1, mlx5_0 port 2"),
        (
            by(None, None, Some(5)),
            "no port with GUID 0x0000000000000005; there are: mlx5_0 port 2 0x0002c90300000002, \
             mlx5_1 port 1 0x0002c90300000003",
        ),
        (
            by(Some("irdma0"), None, None),
            "cannot use irdma0 port 1: its link layer is Ethernet (RoCE or iWARP needs no subnet manager)",
        ),
        (
            by(Some("mlx5_0"), Some(1), None),
            "cannot use mlx5_0 port 1: its physical link is down (Polling); check cable and far end, or enable the port",
        ),
    ] {
        assert_eq!(select(&devices, &selector).unwrap_err().to_string(), expected);
    }
    assert_eq!(select(&[], &PortSelector::default()), Err(SelectError::NoDevice));
    let only_ethernet = &devices[..2];
    let error = select(only_ethernet, &PortSelector::default()).unwrap_err();
    assert!(error.to_string().ends_with("name one with --device NAME --port N"), "{error}");
}

#[test]
fn without_the_module_the_module_is_named() {
    let (_root, devices) = tree("infiniband/mlx5_0/ports/1/state 4: ACTIVE");
    let error = select(&devices, &PortSelector::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "cannot use mlx5_0 port 1: the kernel has no umad device for it; load the module: modprobe ib_umad"
    );
}

/// B14: one port as two devices; whichever is chosen, the other comes along.
#[test]
fn b14_devices_that_share_a_port_guid_are_siblings() {
    let mut lines = String::from(
        "infiniband/mlx5_0/ports/1/gids/0 fe80::a:b:c:d
         infiniband_mad/umad0/ibdev mlx5_0
         infiniband_mad/umad0/port 1
         infiniband/mlx5_1/ports/1/gids/0 fe80::a:b:c:e
         infiniband_mad/umad9/ibdev mlx5_1
         infiniband_mad/umad9/port 1\n",
    );
    for port in 1..=4 {
        lines += &format!(
            "infiniband/smi1/ports/{port}/gids/0 fe80::a:b:c:d
             infiniband_mad/umad{port}/ibdev smi1
             infiniband_mad/umad{port}/port {port}
             infiniband_mad/issm{port}/ibdev smi1
             infiniband_mad/issm{port}/port {port}\n"
        );
    }
    let (_root, devices) = tree(&lines);
    let selected = select(&devices, &PortSelector::default()).unwrap();
    assert_eq!(selected.port.to_string(), "mlx5_0 port 1");
    let siblings: Vec<String> = selected.siblings.iter().map(ToString::to_string).collect();
    assert_eq!(siblings, ["smi1 port 1", "smi1 port 2", "smi1 port 3", "smi1 port 4"]);
    let other = select(&devices, &by(Some("smi1"), Some(2), None)).unwrap();
    assert!(other.siblings.iter().any(|port| port.device == "mlx5_0"));
}
