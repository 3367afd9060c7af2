//! Which descriptors of this process are the emulator's.

use std::cell::RefCell;
use std::collections::HashMap;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, RwLock, RwLockWriteGuard};

use rsm_preload_protocol::SESSION_PREFIX;
use rsm_preload_protocol::ring::Rings;
use rustix::net::{SocketAddrUnix, getsockname};

/// An opened descriptor; several numbers can be the same one.
#[derive(Debug, Default)]
pub struct Session {
    /// The emulator's name for it; empty for an issm.
    pub name: String,
    /// The port's number; `None` when it was inherited through exec.
    pub port: Option<u8>,
    /// Headers have the P_Key index.
    pub pkey_index: AtomicBool,
    /// Agents that this process has registered, by bit.
    pub agents: AtomicU32,
    /// Those of them with an RMPP version.
    pub rmpp: AtomicU32,
    /// Those of them whose RMPP the device does.
    pub kernel_rmpp: AtomicU32,
    /// Where packets lie; `None` when they go by the socket.
    pub rings: Option<Rings>,
    /// Held while a packet of the socket is looked at and then taken.
    pub reading: AtomicBool,
    /// Requests that were written lately.
    pub written: Recent,
}

/// The latest keys of requests. A key that is not in here was not written, or long ago.
#[derive(Debug)]
pub struct Recent([AtomicU64; Self::SLOTS]);

impl Recent {
    const SLOTS: usize = 512;

    /// Notes a key; true when it is there already.
    pub fn note(&self, key: u64) -> bool {
        // Transaction IDs count upwards: their low bits spread well.
        let slot = (key as usize) % Self::SLOTS;
        self.0[slot].swap(key, Ordering::Relaxed) == key
    }
}

impl Default for Recent {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; Self::SLOTS])
    }
}

/// Descriptors below this are looked up without a lock.
const FAST: usize = 65_536;
static OURS: [AtomicU8; FAST] = [const { AtomicU8::new(0) }; FAST];

type Table = HashMap<RawFd, Arc<Session>>;

static SESSIONS: LazyLock<RwLock<Table>> = LazyLock::new(RwLock::default);

fn write() -> RwLockWriteGuard<'static, Table> {
    SESSIONS.write().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn slot(fd: RawFd) -> Option<&'static AtomicU8> {
    OURS.get(usize::try_from(fd).ok()?)
}

/// Whether the descriptor may be ours: false is certain.
pub fn maybe_ours(fd: RawFd) -> bool {
    match slot(fd) {
        Some(slot) => slot.load(Ordering::Acquire) != 0,
        None => fd >= 0,
    }
}

/// The session behind a descriptor.
pub fn get(fd: RawFd) -> Option<Arc<Session>> {
    if !maybe_ours(fd) {
        return None;
    }
    SESSIONS.read().unwrap_or_else(std::sync::PoisonError::into_inner).get(&fd).cloned()
}

/// The descriptor is this session from now on.
pub fn insert(fd: RawFd, session: Arc<Session>) {
    write().insert(fd, session);
    if let Some(slot) = slot(fd) {
        slot.store(1, Ordering::Release);
    }
}

/// The descriptor is closed, or about to be.
pub fn remove(fd: RawFd) {
    if !maybe_ours(fd) {
        return;
    }
    if let Some(slot) = slot(fd) {
        slot.store(0, Ordering::Release);
    }
    write().remove(&fd);
}

/// All descriptors of a range are closed.
pub fn remove_range(first: u32, last: u32) {
    let inside = |fd: &RawFd| u32::try_from(*fd).is_ok_and(|fd| (first..=last).contains(&fd));
    let numbers: Vec<RawFd> = write().keys().copied().filter(inside).collect();
    numbers.into_iter().for_each(remove);
}

/// A descriptor was duplicated: the copy is what the original is.
pub fn duplicate(from: RawFd, to: RawFd) {
    if to < 0 || from == to {
        return;
    }
    match get(from) {
        Some(session) => insert(to, session),
        None => remove(to),
    }
}

/// The session's name, when this socket's own end has one: how a descriptor is known again after exec.
pub fn session_name(fd: BorrowedFd<'_>) -> Option<String> {
    let address = SocketAddrUnix::try_from(getsockname(fd).ok()?).ok()?;
    let name = std::str::from_utf8(address.abstract_name()?).ok()?;
    name.starts_with(SESSION_PREFIX).then(|| name.to_owned())
}

thread_local! {
    static FORKING: RefCell<Option<RwLockWriteGuard<'static, Table>>> = const { RefCell::new(None) };
}

/// Before fork: no other thread is inside the table while the process is copied.
pub fn before_fork() {
    FORKING.with(|guard| *guard.borrow_mut() = Some(write()));
}

/// After fork, in both processes; in the child nobody else reads any more.
pub fn after_fork(child: bool) {
    FORKING.with(|guard| {
        if let Some(table) = guard.borrow_mut().take() {
            if child {
                table.values().for_each(|session| session.reading.store(false, Ordering::Release));
            }
            drop(table);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_the_same_session_until_closed() {
        let fd = 60_000;
        assert!(get(fd).is_none());
        insert(fd, Arc::new(Session { name: "a".into(), ..Session::default() }));
        duplicate(fd, fd + 1);
        duplicate(fd, 70_000);
        assert!(Arc::ptr_eq(&get(fd).unwrap(), &get(fd + 1).unwrap()));
        remove(fd);
        assert!(get(fd).is_none());
        assert_eq!(get(70_000).unwrap().name, "a", "beyond the fast table");
        duplicate(fd, fd + 1);
        assert!(get(fd + 1).is_none(), "what is duplicated over is no longer ours");
        remove_range(65_000, u32::MAX);
        assert!(get(70_000).is_none());
    }

    #[test]
    fn a_key_is_known_again_while_it_is_recent() {
        let recent = Recent::default();
        assert!(!recent.note(7));
        assert!(recent.note(7));
        assert!(!recent.note(7 + 512));
        assert!(!recent.note(7));
    }

    #[test]
    fn the_table_is_free_after_a_fork() {
        before_fork();
        after_fork(true);
        insert(60_010, Arc::default());
        remove(60_010);
    }
}
