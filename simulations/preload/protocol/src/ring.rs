//! Shared memory between a program and the emulator: a ring of packets each way, so that a read or a write costs a system
//! call only where the other side sleeps.
//!
//! The socket of the session stays the program's descriptor, and it is readable exactly while packets wait for the program:
//! a [`Token`](crate::FrameKind::Token) lies in it as long as the ring to the program holds anything. `signalled` says so; whoever changes
//! it from 0 to 1 puts the token there, and who takes the last packet takes the token too. A packet counts as there only while
//! `signalled` is 1. The emulator wakes by a [`Bell`](crate::FrameKind::Bell) that the program sends when `wanted` of the other ring says
//! that it sleeps.
//!
//! All words are atomic, and neither side trusts what the other writes: a length beyond a slot is cut, positions are taken
//! modulo the slots. Cost: 41 words copied in and out for each packet.

use std::sync::atomic::{AtomicU64, Ordering, fence};

use rustix::fd::OwnedFd;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, fstat, ftruncate, memfd_create};
use rustix::io::{Errno, Result};

use self::mapping::Mapping;

/// Packets that a ring holds.
pub const SLOTS: u64 = 1024;
/// Bytes of a slot: the longer umad header and a datagram.
pub const SLOT_BYTES: usize = 320;

/// Words of a slot: what it is, and its bytes.
const SLOT_WORDS: usize = 1 + SLOT_BYTES / 8;
/// Words before the slots; each of the first ones has a cache line of its own.
const CONTROL_WORDS: usize = 64;
const RING_WORDS: usize = CONTROL_WORDS + SLOTS as usize * SLOT_WORDS;

const HEAD: usize = 0;
const TAIL: usize = 8;
const FLAG: usize = 16;
const LOCK: usize = 24;
const ROOM: usize = 32;

/// Values of the flag: down, up, and the token of packets that wait was taken out of the socket.
const DOWN: u64 = 0;
const UP: u64 = 1;
const MISSING: u64 = 2;

/// Set in a slot's first word where the packet is in the socket, and the slot holds its beginning only.
const IN_SOCKET: u64 = 1 << 32;

/// The two rings of a session.
#[derive(Debug)]
pub struct Rings(Mapping);

/// One direction.
#[derive(Clone, Copy, Debug)]
pub struct Ring<'a>(&'a [AtomicU64]);

/// The oldest packet of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Front {
    /// Bytes of the whole packet.
    pub length: usize,
    /// The packet is to be taken from the socket; the slot holds its beginning.
    pub in_socket: bool,
}

impl Rings {
    /// Makes the memory; the file is for the other side.
    ///
    /// # Errors
    /// No descriptor or no memory is left.
    pub fn create() -> Result<(Self, OwnedFd)> {
        let file = memfd_create("rsm-rings", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&file, Self::bytes() as u64)?;
        fcntl_add_seals(&file, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        Ok((Self(Mapping::new(&file, 2 * RING_WORDS)?), file))
    }

    /// Opens memory that the other side has made.
    ///
    /// # Errors
    /// `EINVAL` for a file of another kind.
    pub fn open(file: &OwnedFd) -> Result<Self> {
        let sealed = fcntl_get_seals(file)?.contains(SealFlags::SHRINK);
        if !sealed || fstat(file)?.st_size != Self::bytes() as i64 {
            return Err(Errno::INVAL);
        }
        Ok(Self(Mapping::new(file, 2 * RING_WORDS)?))
    }

    const fn bytes() -> usize {
        2 * RING_WORDS * 8
    }

    /// What the program writes.
    pub fn to_emulator(&self) -> Ring<'_> {
        Ring(&self.0.words()[..RING_WORDS])
    }

    /// What the program reads.
    pub fn to_program(&self) -> Ring<'_> {
        Ring(&self.0.words()[RING_WORDS..])
    }
}

impl Ring<'_> {
    /// Packets in the ring.
    pub fn len(&self) -> u64 {
        let head = self.0[HEAD].load(Ordering::Acquire);
        self.0[TAIL].load(Ordering::Acquire).wrapping_sub(head).min(SLOTS)
    }

    /// Whether no honest writer and reader can have left the positions so.
    pub fn is_broken(&self) -> bool {
        let head = self.0[HEAD].load(Ordering::Acquire);
        self.0[TAIL].load(Ordering::Acquire).wrapping_sub(head) > SLOTS
    }

    /// Whether the ring is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether another packet fits.
    pub fn has_room(&self) -> bool {
        self.len() < SLOTS
    }

    /// Puts a packet in; false when the ring is full. Only the first [`SLOT_BYTES`] of a packet in the socket count. One
    /// thread at a time.
    pub fn push(&self, bytes: &[u8], in_socket: bool) -> bool {
        if !self.has_room() {
            return false;
        }
        let tail = self.0[TAIL].load(Ordering::Relaxed);
        let (first, words) = self.slot(tail);
        first.store(bytes.len() as u64 | if in_socket { IN_SOCKET } else { 0 }, Ordering::Relaxed);
        for (word, part) in words.iter().zip(bytes.chunks(8)) {
            let mut eight = [0; 8];
            eight[..part.len()].copy_from_slice(part);
            word.store(u64::from_ne_bytes(eight), Ordering::Relaxed);
        }
        self.0[TAIL].store(tail.wrapping_add(1), Ordering::SeqCst);
        true
    }

    /// The oldest packet.
    pub fn front(&self) -> Option<Front> {
        if self.is_empty() {
            return None;
        }
        let word = self.slot(self.0[HEAD].load(Ordering::Relaxed)).0.load(Ordering::Relaxed);
        let in_socket = word & IN_SOCKET != 0;
        let length = (word & 0xffff_ffff) as usize;
        Some(Front { length: if in_socket { length } else { length.min(SLOT_BYTES) }, in_socket })
    }

    /// Copies the beginning of the oldest packet, as far as the buffer and a slot go.
    pub fn copy_front(&self, buffer: &mut [u8]) {
        let (_, words) = self.slot(self.0[HEAD].load(Ordering::Relaxed));
        for (part, word) in buffer.chunks_mut(8).zip(words) {
            part.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes()[..part.len()]);
        }
    }

    /// Takes the oldest packet out. One thread at a time.
    pub fn pop(&self) {
        let head = self.0[HEAD].load(Ordering::Relaxed);
        self.0[HEAD].store(head.wrapping_add(1), Ordering::SeqCst);
    }

    fn slot(&self, position: u64) -> (&AtomicU64, &[AtomicU64]) {
        let start = CONTROL_WORDS + (position % SLOTS) as usize * SLOT_WORDS;
        (&self.0[start], &self.0[start + 1..start + SLOT_WORDS])
    }

    /// Sets the ring's flag and gives what it was: `signalled` of the ring to the program, `wanted` of the one to the emulator.
    pub fn set_flag(&self, on: bool) -> bool {
        let old = self.0[FLAG].swap(if on { UP } else { DOWN }, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        old == UP
    }

    /// The flag.
    pub fn flag(&self) -> bool {
        self.0[FLAG].load(Ordering::SeqCst) == UP
    }

    /// Sets the flag where it is down; false where it is not.
    pub fn raise_flag(&self) -> bool {
        self.0[FLAG].compare_exchange(DOWN, UP, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Takes the flag down and says that the token is missing.
    pub fn miss_token(&self) {
        self.0[FLAG].store(MISSING, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Sets the flag where the token is missing; false where it is not, and none must be sent.
    pub fn replace_token(&self) -> bool {
        self.0[FLAG].compare_exchange(MISSING, UP, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Says that the writer waits for room, or no longer does; gives what it said before.
    pub fn want_room(&self, on: bool) -> bool {
        let old = self.0[ROOM].swap(on.into(), Ordering::SeqCst);
        fence(Ordering::SeqCst);
        old != 0
    }

    /// Whether the writer waits for room.
    pub fn wants_room(&self) -> bool {
        self.0[ROOM].load(Ordering::SeqCst) != 0
    }

    /// The right to read, or of the other ring to write, among all threads and processes that have the descriptor. Held for
    /// a few calls that don't wait; a holder that died gives it up.
    pub fn lock(&self) -> Guard<'_> {
        let own = u64::from(std::process::id());
        let lock = &self.0[LOCK];
        for round in 1_u64.. {
            match lock.compare_exchange(0, own, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => break,
                Err(holder) if round % 4096 == 0 && is_gone(holder) => {
                    let taken = lock.compare_exchange(holder, own, Ordering::Acquire, Ordering::Relaxed);
                    if taken.is_ok() {
                        break;
                    }
                }
                Err(_) if round % 64 == 0 => std::thread::yield_now(),
                Err(_) => std::hint::spin_loop(),
            }
        }
        Guard(lock)
    }
}

/// Whether there is no such process.
fn is_gone(process: u64) -> bool {
    let Some(process) = i32::try_from(process).ok().and_then(rustix::process::Pid::from_raw) else {
        return true;
    };
    rustix::process::test_kill_process(process) == Err(Errno::SRCH)
}

/// Gives the right back when dropped.
#[derive(Debug)]
pub struct Guard<'a>(&'a AtomicU64);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::Release);
    }
}

/// The one place with `unsafe` of this crate: memory of a file as atomic words.
#[allow(unsafe_code)]
mod mapping {
    use std::ptr::NonNull;
    use std::sync::atomic::AtomicU64;

    use rustix::fd::AsFd;
    use rustix::io::{Errno, Result};
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

    /// Shared memory; unmapped when dropped.
    #[derive(Debug)]
    pub(super) struct Mapping {
        start: NonNull<AtomicU64>,
        words: usize,
    }

    impl Mapping {
        /// Maps `words` words of a file that cannot shrink.
        pub(super) fn new(file: impl AsFd, words: usize) -> Result<Self> {
            // SAFETY: a new mapping at an address of the kernel's choice touches nothing that is there.
            let start = unsafe {
                mmap(
                    std::ptr::null_mut(),
                    words * 8,
                    ProtFlags::READ | ProtFlags::WRITE,
                    MapFlags::SHARED,
                    file,
                    0,
                )?
            };
            let start = NonNull::new(start.cast()).ok_or(Errno::NOMEM)?;
            Ok(Self { start, words })
        }

        pub(super) const fn words(&self) -> &[AtomicU64] {
            // SAFETY: the mapping is aligned to a page, as long as that, and lives as long as the value; the file is sealed
            // against shrinking; whoever else has it mapped uses atomic words too, or can spoil values but no memory.
            unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.words) }
        }
    }

    // SAFETY: the words are atomic, and the mapping belongs to the process, not to a thread.
    unsafe impl Send for Mapping {}
    // SAFETY: as above.
    unsafe impl Sync for Mapping {}

    impl Drop for Mapping {
        fn drop(&mut self) {
            // SAFETY: the mapping is ours and nothing borrows from it any more.
            let unmapped = unsafe { munmap(self.start.as_ptr().cast(), self.words * 8) };
            debug_assert!(unmapped.is_ok());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_come_out_as_they_went_in_and_a_full_ring_takes_no_more() {
        let (here, file) = Rings::create().unwrap();
        let there = Rings::open(&file).unwrap();
        let (into, out) = (here.to_program(), there.to_program());
        assert_eq!(out.front(), None);
        for round in 0..3_u64 {
            for number in 0..SLOTS {
                let bytes: Vec<u8> = (0..320).map(|i| (i + number + round) as u8).collect();
                assert!(into.push(&bytes[..if number == 7 { 13 } else { 320 }], number == 9));
            }
            assert!(!into.push(b"x", false));
            assert!(here.to_emulator().is_empty());
            for number in 0..SLOTS {
                let length = if number == 7 { 13 } else { 320 };
                assert_eq!(out.front(), Some(Front { length, in_socket: number == 9 }));
                let mut bytes = vec![0; length];
                out.copy_front(&mut bytes);
                assert!(bytes.iter().enumerate().all(|(i, b)| *b == (i as u64 + number + round) as u8));
                out.pop();
            }
        }
    }

    /// What the other side writes can be anything.
    #[test]
    fn rubbish_in_the_memory_is_cut_to_what_there_is() {
        let (rings, file) = Rings::create().unwrap();
        for word in Mapping::new(&file, 2 * RING_WORDS).unwrap().words() {
            word.store(u64::MAX - 5, Ordering::Relaxed);
        }
        let ring = rings.to_emulator();
        ring.0[TAIL].store(3, Ordering::Relaxed);
        assert!(ring.len() <= SLOTS);
        let mut buffer = [0; 400];
        let front = ring.front().unwrap();
        assert!(front.in_socket || front.length <= SLOT_BYTES);
        ring.copy_front(&mut buffer);
        ring.pop();
        ring.0[TAIL].store(ring.0[HEAD].load(Ordering::Relaxed), Ordering::Relaxed);
        assert!(ring.push(&[1; 400], false));
    }

    #[test]
    fn memory_of_another_size_or_that_can_shrink_is_refused() {
        let file = memfd_create("x", MemfdFlags::ALLOW_SEALING).unwrap();
        ftruncate(&file, Rings::bytes() as u64).unwrap();
        assert!(Rings::open(&file).is_err(), "can shrink");
        ftruncate(&file, 4096).unwrap();
        fcntl_add_seals(&file, SealFlags::SHRINK).unwrap();
        assert!(Rings::open(&file).is_err(), "too small");
    }

    #[test]
    fn a_lock_is_held_by_one_and_taken_over_from_the_dead() {
        let (rings, _file) = Rings::create().unwrap();
        let ring = rings.to_program();
        let counter = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..1000 {
                        let _guard = ring.lock();
                        let value = counter.load(Ordering::Relaxed);
                        std::hint::spin_loop();
                        counter.store(value + 1, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(counter.load(Ordering::Relaxed), 4000);
        // No process has this number.
        ring.0[LOCK].store(u64::from(u32::MAX), Ordering::Relaxed);
        drop(ring.lock());
    }
}
