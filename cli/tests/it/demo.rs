use crate::rsm::rsm;

/// The README's first command: up, a cable, a spine, all of it back, without a loop at any moment.
#[test]
fn the_demonstration_heals_its_fabric() {
    let said = rsm(&["demo"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert_eq!(said.out.matches("mended after").count(), 4, "{}", said.out);
    assert_eq!(said.out.matches("The switches' own tables: ").count(), 5, "{}", said.out);
    assert_eq!(said.out.matches("Forwarding loops at any moment so far: 0").count(), 5, "{}", said.out);
    assert!(said.out.contains("45 nodes (9 switches, 36 hosts)"), "{}", said.out);
    assert_eq!(said.err, "");
}
