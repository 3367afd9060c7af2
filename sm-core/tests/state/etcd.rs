//! State in etcd, with a real server: racing managers, large commits, an end in the middle, wiped data, refused credentials.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use mad::types::Guid;
use mad::wire::{Method, Status};
use sm_core::daemon::run_once;
use sm_core::store::{Change, Entries, Key, Kind, StateStore, StoreError, difference};

use crate::server::{Server, certificates};
use crate::*;

fn set(id: u16, value: &[u8]) -> Change {
    Change { key: Key::new(Kind::Lids, id.to_be_bytes().to_vec()), value: Some(value.to_vec()) }
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < end, "gave up waiting until {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether etcd holds a service.
fn has_service(server: &Server) -> bool {
    let held = server.store(Guid(0xfffe)).load().unwrap_or_default();
    held.keys().any(|key| key.kind == Kind::Service)
}

#[test]
fn of_two_racing_managers_one_writes_and_the_other_first_reads_what_it_wrote() {
    let server = Server::running();
    let (mut first, mut second) = (server.store(Guid(1)), server.store(Guid(2)));
    let written = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for (store, id) in [(&mut first, 1_u8), (&mut second, 2)] {
            let written = &written;
            scope.spawn(move || match store.commit(&[set(1, &[id])]) {
                Ok(()) => drop(written.fetch_add(u32::from(id), Ordering::Relaxed)),
                Err(StoreError::Owned { by, .. }) => assert!(!by.is_empty()),
                Err(error) => panic!("{error}"),
            });
        }
    });
    let winner = written.load(Ordering::Relaxed);
    assert!(winner == 1 || winner == 2, "{winner}: exactly one wrote");
    let (winning, losing) = if winner == 1 { (&mut first, &mut second) } else { (&mut second, &mut first) };
    let refused = losing.commit(&[set(1, b"overwritten")]).unwrap_err();
    assert!(refused.to_string().contains("another subnet manager writes there"), "{refused}");
    winning.commit(&[set(2, b"more")]).unwrap();
    winning.release().unwrap();
    // It may write now, but not over what it has not read.
    assert!(matches!(losing.commit(&[set(1, b"overwritten")]), Err(StoreError::Changed { .. })));
    let read = losing.load().unwrap();
    assert_eq!(read.len(), 2);
    losing.commit(&[set(1, b"after reading")]).unwrap();
    // The one that was first wakes up and still believes that it writes.
    let refused = winning.commit(&[set(2, b"late")]).unwrap_err();
    assert!(matches!(refused, StoreError::Owned { .. }), "{refused}");
    assert_eq!(winning.load().unwrap()[&set(2, b"").key], b"more");
}

#[test]
fn a_manager_that_is_not_heard_of_any_more_keeps_others_from_writing_until_its_lease_ends() {
    let server = Server::running();
    let short = EtcdConfig { lease: Duration::from_secs(1), ..server.config(Guid(1)) };
    let mut dead = sm_core::store::etcd::Etcd::new(&short).unwrap();
    dead.commit(&[set(1, b"its last word")]).unwrap();
    let mut next = server.store(Guid(2));
    assert_eq!(next.load().unwrap().len(), 1, "reading is always possible");
    let end = Instant::now() + PATIENCE;
    while let Err(error) = next.commit(&[set(2, b"the successor's")]) {
        // The lease may end just between the refusal and the question whose it was.
        assert!(matches!(error, StoreError::Owned { .. } | StoreError::Changed { .. }), "{error}");
        assert!(Instant::now() < end, "the lease does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
    let woken = dead.keep_alive().unwrap_err();
    assert!(woken.to_string().contains("0x0000000000000002"), "{woken}");
    assert!(matches!(dead.commit(&[set(2, b"late")]), Err(StoreError::Owned { .. })));
    assert_eq!(next.load().unwrap()[&set(2, b"").key], b"the successor's");
}

#[test]
fn a_commit_beyond_etcds_limits_is_whole_and_can_be_removed() {
    let server = Server::running();
    let mut store = server.store(Guid(1));
    let changes: Vec<Change> = (0..3000).map(|id| set(id, &vec![id as u8; usize::from(id) % 700])).collect();
    store.commit(&changes).unwrap();
    let mut expected = Entries::new();
    changes.into_iter().for_each(|change| change.apply_to(&mut expected));
    assert_eq!(server.store(Guid(2)).load().unwrap(), expected);
    store.commit(&difference(&expected, &Entries::new())).unwrap();
    assert!(server.store(Guid(2)).load().unwrap().is_empty());
}

#[test]
fn a_manager_goes_on_while_etcd_is_away_or_wiped_and_catches_up() {
    let fabric = four_hosts();
    let mut server = Server::new();
    let dir = tempfile::tempdir().unwrap();
    let etcd = Some(server.config(Guid(5)));
    let manager = Manager::start_with(&fabric, "H0", 5, dir.path().to_path_buf(), false, etcd);
    let transport = fabric.attach("H1", 1).unwrap();
    let mut host = Host { fabric: &fabric, transport, tid: 0 };
    assert_eq!(host.insist(Method::SET, &service()).0, Status::OK, "acknowledged without etcd");
    server.start();
    wait_until("etcd has what it missed", || has_service(&server));
    server.kill();
    assert_eq!(host.insist(Method::DELETE, &service()).0, Status::OK);
    server.start();
    wait_until("the service is gone from etcd too", || {
        server.store(Guid(9)).load().is_ok_and(|held| !held.keys().any(|key| key.kind == Kind::Service))
    });
    assert_eq!(host.insist(Method::SET, &service()).0, Status::OK);
    wait_until("the new one is there", || has_service(&server));
    server.wipe();
    host.insist(Method::DELETE, &service());
    host.insist(Method::SET, &service());
    wait_until("all is written again", || has_service(&server));
    let held = server.store(Guid(9)).load().unwrap();
    assert_eq!(held.keys().filter(|key| key.kind == Kind::Lids).count(), 5, "not only what changed since");
    manager.stop();
}

#[test]
fn a_standby_without_a_copy_of_its_own_takes_over_with_what_etcd_holds() {
    let fabric = four_hosts();
    let server = Server::running();
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let start = |host, priority: u8, dir: &Path| {
        let etcd = Some(server.config(Guid(u64::from(priority))));
        Manager::start_with(&fabric, host, priority, dir.to_path_buf(), false, etcd)
    };
    let master = start("H0", 5, first.path());
    let standby = start("H3", 3, second.path());
    let transport = fabric.attach("H1", 1).unwrap();
    let mut host = Host { fabric: &fabric, transport, tid: 0 };
    assert_eq!(host.insist(Method::SET, &service()).0, Status::OK);
    assert!(has_service(&server), "acknowledged, so it is there");
    assert!(!holds_service(second.path()));
    master.stop();
    let (status, found) = host.insist(Method::GET, &service());
    assert_eq!((status, &found.service_name[..4]), (Status::OK, &b"name"[..]));
    standby.stop();
}

/// By TLS, under the certificate that `etcd.ca_file` names; another one, and the well-known ones, end the start in one line.
#[test]
fn an_etcd_whose_certificate_nobody_vouches_for_is_named_and_the_fabric_is_not_touched() {
    let server = Server::running_with_tls();
    let mut store = server.store(Guid(1));
    store.commit(&[set(1, b"x")]).unwrap();
    assert_eq!(store.load().unwrap().len(), 1);
    let dir = tempfile::tempdir().unwrap();
    certificates(dir.path(), "other");
    let other = std::fs::read(dir.path().join("other-ca.pem")).unwrap();
    let fabric = four_hosts();
    for ca in [Some(other), None] {
        let etcd = Some(EtcdConfig { ca, ..server.config(Guid(5)) });
        let transport = Arc::new(fabric.attach("H0", 1).unwrap());
        let state = tempfile::tempdir().unwrap();
        let setup = setup(transport, 5, state.path().to_path_buf(), false, etcd);
        let error = run_once(setup, Hooks::default()).unwrap_err().to_string();
        assert!(error.contains("certificate") && error.contains("etcd.ca_file"), "{error}");
        assert_eq!(error.lines().count(), 1, "{error}");
    }
    let no_certificate = EtcdConfig { ca: Some(b"nothing of the kind".to_vec()), ..server.config(Guid(5)) };
    let error = sm_core::store::etcd::Etcd::new(&no_certificate).err().unwrap().to_string();
    assert!(error.contains("etcd.ca_file holds no certificate"), "{error}");
    assert!(fabric.with(|world| world.device(world.find_name("S0").unwrap()).ports[0].info.lid()).is_none());
}

#[test]
fn an_etcd_that_refuses_the_credentials_is_named_and_the_fabric_is_not_touched() {
    let server = Server::running();
    server.call("auth/user/add", r#"{"name": "root", "password": "right"}"#);
    server.call("auth/role/add", r#"{"name": "root"}"#);
    server.call("auth/user/grant", r#"{"user": "root", "role": "root"}"#);
    server.call("auth/enable", "{}");
    let fabric = four_hosts();
    let wrong = [Some(("root".to_owned(), "very wrong".to_owned())), None];
    for user in wrong {
        let dir = tempfile::tempdir().unwrap();
        let etcd = Some(EtcdConfig { user, ..server.config(Guid(5)) });
        let transport = Arc::new(fabric.attach("H0", 1).unwrap());
        let setup = setup(transport, 5, dir.path().to_path_buf(), false, etcd);
        let error = run_once(setup, Hooks::default()).unwrap_err().to_string();
        assert!(error.contains("refuses us") && error.contains("etcd.password_file"), "{error}");
        assert!(!error.contains("very wrong") && error.lines().count() == 1, "{error}");
    }
    assert!(fabric.with(|world| world.device(world.find_name("S0").unwrap()).ports[0].info.lid()).is_none());
    let right = EtcdConfig { user: Some(("root".into(), "right".into())), ..server.config(Guid(5)) };
    let mut store = sm_core::store::etcd::Etcd::new(&right).unwrap();
    store.commit(&[set(1, b"x")]).unwrap();
    assert_eq!(store.load().unwrap().len(), 1);
}
