//! The functions that programs find in place of the C library's: translation between C and the modules beside this one.
//!
//! A call that isn't ours goes on to the C library with nothing of Rust's left on the stack: a thread may be cancelled in
//! there. Signatures are C's, so the pointers are whatever the program passes: the contract of each function is that of
//! its manual page.
// The symbols exist for C, and the contract of each is its manual page's.
#![allow(clippy::missing_safety_doc, unreachable_pub)]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_ulong, c_void};
use std::os::fd::{BorrowedFd, IntoRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use libc::{DIR, FILE, dirent, mode_t, size_t, ssize_t, stat as Stat, statx as Statx};
use rsm_preload_protocol::{DeviceKind, Operation};
use rustix::io::Errno;

use crate::descriptors::{self, Session};
use crate::device;
use crate::emulator::Emulator;
use crate::paths::{self, Target};
use crate::real::{self, Compare, Filter};
use crate::waiting;

fn set_errno(errno: Errno) {
    // SAFETY: the pointer is this thread's errno.
    unsafe { *libc::__errno_location() = errno.raw_os_error() };
}

/// A C function's integer result.
trait Outcome {
    const FAILED: Self;
}

impl Outcome for c_int {
    const FAILED: Self = -1;
}

impl Outcome for ssize_t {
    const FAILED: Self = -1;
}

fn outcome<T: Outcome>(result: Result<T, Errno>) -> T {
    result.unwrap_or_else(|errno| {
        set_errno(errno);
        T::FAILED
    })
}

/// What a path means to us, if anything, and if there is an emulator.
///
/// # Safety
/// `path` is null or a C string.
unsafe fn ours(path: *const c_char) -> Option<(&'static Emulator, Target)> {
    if path.is_null() {
        return None;
    }
    // SAFETY: not null, so the caller says that it is a C string.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    let target = paths::target(bytes)?;
    Emulator::get().map(|emulator| (emulator, target))
}

/// As [`ours`], for functions with a directory: a relative path below a directory of ours counts when it names a device.
///
/// # Safety
/// `path` is null or a C string.
unsafe fn ours_at(dir: c_int, path: *const c_char) -> Option<(&'static Emulator, Target)> {
    // SAFETY: handed on.
    if let Some(found) = unsafe { ours(path) } {
        return Some(found);
    }
    if path.is_null() || dir < 0 {
        return None;
    }
    // SAFETY: not null, so the caller says that it is a C string.
    let name = unsafe { CStr::from_ptr(path) }.to_bytes();
    let (kind, number) = paths::device(name)?;
    let emulator = Emulator::get()?;
    let root = emulator.tree().ok()?;
    let target = rustix::fs::readlink(format!("/proc/self/fd/{dir}"), Vec::new()).ok()?;
    let expected = root.join("dev/infiniband");
    let path = [b"/dev/infiniband/", name].concat();
    (target.to_bytes() == expected.as_os_str().as_bytes())
        .then_some((emulator, Target::Device { kind, number, path }))
}

/// The path in the emulator's tree.
fn in_tree(emulator: &Emulator, target: &Target) -> Result<CString, Errno> {
    let root = emulator.tree().map_err(|_| Errno::NOENT)?;
    let mut path = root.as_os_str().as_bytes().to_vec();
    path.extend_from_slice(target.path());
    CString::new(path).map_err(|_| Errno::NOENT)
}

/// open(2) of a path of ours.
fn open_ours(emulator: &Emulator, target: &Target, flags: c_int) -> Result<c_int, Errno> {
    match target {
        Target::Device { kind, number, .. } => open_device(emulator, *kind, *number, flags),
        Target::File(_) => {
            let path = in_tree(emulator, target)?;
            let flags = rustix::fs::OFlags::from_bits_retain(flags as c_uint);
            let file = rustix::fs::open(&path, flags, rustix::fs::Mode::empty())?;
            let fd = file.into_raw_fd();
            descriptors::remove(fd);
            Ok(fd)
        }
    }
}

fn open_device(emulator: &Emulator, kind: DeviceKind, number: u32, flags: c_int) -> Result<c_int, Errno> {
    let close_on_exec = flags & libc::O_CLOEXEC != 0;
    let nonblocking = flags & libc::O_NONBLOCK != 0;
    let opened = emulator.open(kind, number, close_on_exec, nonblocking)?;
    let rings = if opened.session.is_empty() { None } else { emulator.rings(&opened.session) };
    let session = Session { name: opened.session, port: Some(opened.port), rings, ..Session::default() };
    let fd = opened.socket.into_raw_fd();
    descriptors::insert(fd, Arc::new(session));
    Ok(fd)
}

/// A number that the C library has just opened is nobody's old session.
fn fresh(fd: c_int) -> c_int {
    if descriptors::maybe_ours(fd) {
        descriptors::remove(fd);
    }
    fd
}

macro_rules! opens {
    ($($name:ident, $at:ident, $checked:ident, $checked_at:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            // SAFETY: the caller's contract is open(2)'s, there and here.
            match unsafe { ours(path) } {
                Some((emulator, target)) => outcome(open_ours(emulator, &target, flags)),
                // SAFETY: as above.
                None => fresh(unsafe { real::$name(path, flags, mode) }),
            }
        }

        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $at(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int {
            // SAFETY: the caller's contract is openat(2)'s, there and here.
            match unsafe { ours_at(dir, path) } {
                Some((emulator, target)) => outcome(open_ours(emulator, &target, flags)),
                // SAFETY: as above.
                None => fresh(unsafe { real::$at(dir, path, flags, mode) }),
            }
        }

        /// What a program compiled with fortification calls.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $checked(path: *const c_char, flags: c_int) -> c_int {
            // SAFETY: the caller's contract is open(2)'s.
            unsafe { $name(path, flags, 0) }
        }

        /// What a program compiled with fortification calls.
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $checked_at(dir: c_int, path: *const c_char, flags: c_int) -> c_int {
            // SAFETY: the caller's contract is openat(2)'s.
            unsafe { $at(dir, path, flags, 0) }
        }
    )*};
}

opens! {
    open, openat, __open_2, __openat_2;
    open64, openat64, __open64_2, __openat64_2;
}

/// Functions of one path that work as well on the tree's path.
macro_rules! redirected {
    ($($name:ident($path:ident $(, $arg:ident: $type:ty)*) -> $result:ty, $failed:expr;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($path: *const c_char $(, $arg: $type)*) -> $result {
            // SAFETY: the caller's contract is the C function's, there and here.
            let Some((emulator, target)) = (unsafe { ours($path) }) else {
                // SAFETY: as above.
                return unsafe { real::$name($path $(, $arg)*) };
            };
            match in_tree(emulator, &target) {
                // SAFETY: as above, with a path that is a C string too.
                Ok(path) => unsafe { real::$name(path.as_ptr() $(, $arg)*) },
                Err(errno) => {
                    set_errno(errno);
                    $failed
                }
            }
        }
    )*};
}

redirected! {
    fopen(path, mode: *const c_char) -> *mut FILE, std::ptr::null_mut();
    fopen64(path, mode: *const c_char) -> *mut FILE, std::ptr::null_mut();
    opendir(path) -> *mut DIR, std::ptr::null_mut();
    scandir(path, list: *mut *mut *mut dirent, filter: Filter, compare: Compare) -> c_int, -1;
    scandir64(path, list: *mut *mut *mut dirent, filter: Filter, compare: Compare) -> c_int, -1;
    access(path, mode: c_int) -> c_int, -1;
    euidaccess(path, mode: c_int) -> c_int, -1;
    readlink(path, out: *mut c_char, size: size_t) -> ssize_t, -1;
    realpath(path, out: *mut c_char) -> *mut c_char, std::ptr::null_mut();
    getxattr(path, name: *const c_char, out: *mut c_void, size: size_t) -> ssize_t, -1;
    lgetxattr(path, name: *const c_char, out: *mut c_void, size: size_t) -> ssize_t, -1;
    listxattr(path, out: *mut c_char, size: size_t) -> ssize_t, -1;
    llistxattr(path, out: *mut c_char, size: size_t) -> ssize_t, -1;
}

/// The device that a path names looks like one, though the tree has a plain file there.
fn as_device(target: &Target) -> Option<u32> {
    match target {
        Target::Device { kind: DeviceKind::Umad, number, .. } => Some(*number),
        Target::Device { kind: DeviceKind::Issm, number, .. } => Some(64 + number),
        Target::File(_) => None,
    }
}

const DEVICE_MAJOR: c_uint = 231;
const DEVICE_MODE: mode_t = libc::S_IFCHR | 0o600;

/// The stat family, by an expression that calls the C library's with a path.
///
/// # Safety
/// `path` is null or a C string, `out` may be written as the function says.
unsafe fn stat_ours(
    found: Option<(&'static Emulator, Target)>,
    path: *const c_char,
    out: *mut Stat,
    call: impl Fn(*const c_char) -> c_int,
) -> c_int {
    let Some((emulator, target)) = found else { return call(path) };
    let path = match in_tree(emulator, &target) {
        Ok(path) => path,
        Err(errno) => return outcome(Err(errno)),
    };
    let result = call(path.as_ptr());
    if let (0, Some(minor)) = (result, as_device(&target)) {
        // SAFETY: the call has just filled it in.
        let out = unsafe { &mut *out };
        out.st_mode = DEVICE_MODE;
        out.st_rdev = libc::makedev(DEVICE_MAJOR, minor);
    }
    result
}

/// Functions of the stat family: the C symbol, and the arguments around path and result.
macro_rules! stats {
    ($($name:ident = $symbol:literal($($before:ident: $before_type:ty)?; $($after:ident: $after_type:ty)?)
        by |$path:ident| $find:expr;)*) => {$(
        #[unsafe(export_name = $symbol)]
        pub unsafe extern "C-unwind" fn $name(
            $($before: $before_type,)? $path: *const c_char, out: *mut Stat $(, $after: $after_type)?
        ) -> c_int {
            // SAFETY: the caller's contract is the C function's, there and here.
            unsafe {
                stat_ours($find, $path, out, |path| real::$name($($before,)? path, out $(, $after)?))
            }
        }
    )*};
}

stats! {
    stat = "stat"(;) by |path| ours(path);
    stat64 = "stat64"(;) by |path| ours(path);
    lstat = "lstat"(;) by |path| ours(path);
    lstat64 = "lstat64"(;) by |path| ours(path);
    xstat = "__xstat"(version: c_int;) by |path| ours(path);
    xstat64 = "__xstat64"(version: c_int;) by |path| ours(path);
    lxstat = "__lxstat"(version: c_int;) by |path| ours(path);
    lxstat64 = "__lxstat64"(version: c_int;) by |path| ours(path);
}

macro_rules! stats_at {
    ($($name:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(
            dir: c_int, path: *const c_char, out: *mut Stat, flags: c_int,
        ) -> c_int {
            // SAFETY: the caller's contract is fstatat(2)'s, there and here.
            unsafe { stat_ours(ours_at(dir, path), path, out, |path| real::$name(dir, path, out, flags)) }
        }
    )*};
}

stats_at! {
    fstatat;
    fstatat64;
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn statx(
    dir: c_int,
    path: *const c_char,
    flags: c_int,
    mask: c_uint,
    out: *mut Statx,
) -> c_int {
    // SAFETY: the caller's contract is statx(2)'s, there and here.
    let Some((emulator, target)) = (unsafe { ours_at(dir, path) }) else {
        // SAFETY: as above.
        return unsafe { real::statx(dir, path, flags, mask, out) };
    };
    let path = match in_tree(emulator, &target) {
        Ok(path) => path,
        Err(errno) => return outcome(Err(errno)),
    };
    // SAFETY: as above, with a path that is a C string too.
    let result = unsafe { real::statx(dir, path.as_ptr(), flags, mask, out) };
    if let (0, Some(minor)) = (result, as_device(&target)) {
        // SAFETY: the call has just filled it in.
        let out = unsafe { &mut *out };
        out.stx_mode = DEVICE_MODE as u16;
        out.stx_rdev_major = DEVICE_MAJOR;
        out.stx_rdev_minor = minor;
    }
    result
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn faccessat(
    dir: c_int,
    path: *const c_char,
    mode: c_int,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's contract is faccessat(2)'s, there and here.
    match unsafe { ours_at(dir, path) } {
        // SAFETY: as above, with a path that is a C string too.
        Some((emulator, target)) => outcome(
            in_tree(emulator, &target)
                .map(|path| unsafe { real::faccessat(dir, path.as_ptr(), mode, flags) }),
        ),
        // SAFETY: as above.
        None => unsafe { real::faccessat(dir, path, mode, flags) },
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn readlinkat(
    dir: c_int,
    path: *const c_char,
    out: *mut c_char,
    size: size_t,
) -> ssize_t {
    // SAFETY: the caller's contract is readlinkat(2)'s, there and here.
    match unsafe { ours_at(dir, path) } {
        // SAFETY: as above, with a path that is a C string too.
        Some((emulator, target)) => outcome(
            in_tree(emulator, &target).map(|path| unsafe { real::readlinkat(dir, path.as_ptr(), out, size) }),
        ),
        // SAFETY: as above.
        None => unsafe { real::readlinkat(dir, path, out, size) },
    }
}

/// # Safety
/// The descriptor stays open while the borrow is used: it is the caller's, in a call of its own.
unsafe fn borrow<'a>(fd: RawFd) -> BorrowedFd<'a> {
    // SAFETY: handed on.
    unsafe { BorrowedFd::borrow_raw(fd) }
}

/// # Safety
/// The parts are a C program's iovec array.
unsafe fn total_len(parts: *const libc::iovec, count: c_int) -> usize {
    // SAFETY: handed on.
    (0..count.max(0) as usize).map(|index| unsafe { (*parts.add(index)).iov_len }).sum()
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn read(fd: c_int, buffer: *mut c_void, count: size_t) -> ssize_t {
    if !descriptors::maybe_ours(fd) {
        // SAFETY: the caller's contract is read(2)'s, there and here.
        return unsafe { real::read(fd, buffer, count) };
    }
    // SAFETY: as above.
    unsafe { read_ours(fd, buffer, count) }
}

/// What a program compiled with fortification calls.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __read_chk(
    fd: c_int,
    buffer: *mut c_void,
    count: size_t,
    size: size_t,
) -> ssize_t {
    if count > size {
        std::process::abort();
    }
    // SAFETY: the caller's contract is read(2)'s.
    unsafe { read(fd, buffer, count) }
}

/// # Safety
/// As read(2).
unsafe fn read_ours(fd: c_int, buffer: *mut c_void, count: size_t) -> ssize_t {
    let Some(session) = descriptors::get(fd) else {
        // SAFETY: handed on.
        return unsafe { real::read(fd, buffer, count) };
    };
    if buffer.is_null() {
        return outcome(Err(Errno::FAULT));
    }
    // SAFETY: the caller gives `count` bytes to write to; the descriptor is the caller's.
    let (buffer, fd) = unsafe { (std::slice::from_raw_parts_mut(buffer.cast::<u8>(), count), borrow(fd)) };
    outcome(device::read(fd, &session, buffer).map(|length| length as ssize_t))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn readv(fd: c_int, parts: *const libc::iovec, count: c_int) -> ssize_t {
    if !descriptors::maybe_ours(fd) || parts.is_null() {
        // SAFETY: the caller's contract is readv(2)'s, there and here.
        return unsafe { real::readv(fd, parts, count) };
    }
    // SAFETY: the caller's parts are `count` iovecs.
    let mut whole = vec![0_u8; unsafe { total_len(parts, count) }];
    // SAFETY: the buffer has that many bytes.
    let length = unsafe { read_ours(fd, whole.as_mut_ptr().cast(), whole.len()) };
    let mut rest = &whole[..length.max(0) as usize];
    for index in 0..count.max(0) as usize {
        // SAFETY: as above, and each part has as many bytes as it says.
        let part = unsafe { &*parts.add(index) };
        let (now, later) = rest.split_at(rest.len().min(part.iov_len));
        // SAFETY: as above; `now` is not longer than the part.
        unsafe { std::ptr::copy_nonoverlapping(now.as_ptr(), part.iov_base.cast(), now.len()) };
        rest = later;
    }
    length
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn write(fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t {
    if !descriptors::maybe_ours(fd) {
        // SAFETY: the caller's contract is write(2)'s, there and here.
        return unsafe { real::write(fd, buffer, count) };
    }
    // SAFETY: as above.
    unsafe { write_ours(fd, buffer, count) }
}

/// # Safety
/// As write(2).
unsafe fn write_ours(fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t {
    let Some(session) = descriptors::get(fd) else {
        // SAFETY: handed on.
        return unsafe { real::write(fd, buffer, count) };
    };
    if buffer.is_null() {
        return outcome(Err(Errno::FAULT));
    }
    // SAFETY: the caller gives `count` bytes to read from; the descriptor is the caller's.
    let (bytes, fd) = unsafe { (std::slice::from_raw_parts(buffer.cast::<u8>(), count), borrow(fd)) };
    outcome(device::write(fd, &session, bytes).map(|length| length as ssize_t))
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn writev(fd: c_int, parts: *const libc::iovec, count: c_int) -> ssize_t {
    if !descriptors::maybe_ours(fd) || parts.is_null() {
        // SAFETY: the caller's contract is writev(2)'s, there and here.
        return unsafe { real::writev(fd, parts, count) };
    }
    let mut whole = Vec::new();
    for index in 0..count.max(0) as usize {
        // SAFETY: the caller's parts are `count` iovecs, each with as many bytes as it says.
        let part = unsafe { &*parts.add(index) };
        if part.iov_len > 0 {
            // SAFETY: as above.
            whole.extend_from_slice(unsafe {
                std::slice::from_raw_parts(part.iov_base.cast::<u8>(), part.iov_len)
            });
        }
    }
    // SAFETY: the bytes are there.
    unsafe { write_ours(fd, whole.as_ptr().cast(), whole.len()) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int {
    const MAGIC: c_ulong = 0x1b;
    if request >> 8 & 0xff != MAGIC || !descriptors::maybe_ours(fd) {
        // SAFETY: the caller's contract is ioctl(2)'s, there and here.
        return unsafe { real::ioctl(fd, request, argument) };
    }
    let Some(session) = descriptors::get(fd) else {
        // SAFETY: as above.
        return unsafe { real::ioctl(fd, request, argument) };
    };
    let Some(length) = device::ioctl_len(request as u32) else { return outcome(Err(Errno::NOTTY)) };
    let argument: &mut [u8] = if length == 0 {
        &mut []
    } else if argument.is_null() {
        return outcome(Err(Errno::FAULT));
    } else {
        // SAFETY: the caller's argument points to the structure that the ioctl has.
        unsafe { std::slice::from_raw_parts_mut(argument.cast::<u8>(), length) }
    };
    outcome(device::ioctl(&session, request as u32, argument).map(|()| 0))
}

/// How often `poll` is asked without waiting for what is about to come.
const SOON: u32 = 16;

/// What poll says of a set once something has come in the rings of our descriptors; `None` when nothing has, and the program
/// may sleep.
///
/// # Safety
/// As poll(2).
unsafe fn poll_awake(set: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int) -> Option<c_int> {
    let limit = match timeout {
        0 => return None,
        milliseconds => u64::try_from(milliseconds).map_or(Duration::MAX, Duration::from_millis),
    };
    let entries: &[libc::pollfd] = if set.is_null() || count == 0 {
        return None;
    } else {
        // SAFETY: the caller's set has that many entries, and nobody writes there until the C library does below.
        unsafe { std::slice::from_raw_parts(set, usize::try_from(count).ok()?) }
    };
    let wanted = entries.iter().filter(|entry| entry.events & libc::POLLIN != 0).map(|entry| entry.fd);
    if !waiting::something_comes(wanted.filter(|fd| descriptors::maybe_ours(*fd)), limit) {
        return None;
    }
    (0..SOON).find_map(|_| {
        // SAFETY: the caller's contract is poll(2)'s.
        let ready = unsafe { real::poll(set, count, 0) };
        (ready != 0).then_some(ready)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn poll(set: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int) -> c_int {
    // SAFETY: the caller's contract is poll(2)'s.
    if let Some(ready) = unsafe { poll_awake(set, count, timeout) } {
        return ready;
    }
    // SAFETY: as above.
    unsafe { real::poll(set, count, timeout) }
}

/// `poll` of programs that were compiled with checks of buffers' sizes.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __poll_chk(
    set: *mut libc::pollfd,
    count: libc::nfds_t,
    timeout: c_int,
    size: size_t,
) -> c_int {
    let fits = usize::try_from(count).is_ok_and(|count| count <= size / size_of::<libc::pollfd>());
    // SAFETY: the caller's contract is poll(2)'s, and the set is as long as it says.
    if fits && let Some(ready) = unsafe { poll_awake(set, count, timeout) } {
        return ready;
    }
    // SAFETY: as above; the C library ends the program where the set is shorter.
    unsafe { real::poll_chk(set, count, timeout, size) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close(fd: c_int) -> c_int {
    descriptors::remove(fd);
    // SAFETY: the caller's contract is close(2)'s.
    unsafe { real::close(fd) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int {
    const CLOSE_RANGE_CLOEXEC: c_int = 4;
    if flags & CLOSE_RANGE_CLOEXEC == 0 {
        descriptors::remove_range(first, last);
    }
    // SAFETY: the caller's contract is close_range(2)'s.
    unsafe { real::close_range(first, last, flags) }
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup(fd: c_int) -> c_int {
    // SAFETY: the caller's contract is dup(2)'s.
    let copy = unsafe { real::dup(fd) };
    descriptors::duplicate(fd, copy);
    copy
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup2(from: c_int, to: c_int) -> c_int {
    // SAFETY: the caller's contract is dup2(2)'s.
    let copy = unsafe { real::dup2(from, to) };
    descriptors::duplicate(from, copy);
    copy
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dup3(from: c_int, to: c_int, flags: c_int) -> c_int {
    // SAFETY: the caller's contract is dup3(2)'s.
    let copy = unsafe { real::dup3(from, to, flags) };
    descriptors::duplicate(from, copy);
    copy
}

macro_rules! fcntls {
    ($($name:ident;)*) => {$(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(fd: c_int, command: c_int, argument: c_ulong) -> c_int {
            // SAFETY: the caller's contract is fcntl(2)'s.
            let result = unsafe { real::$name(fd, command, argument) };
            if matches!(command, libc::F_DUPFD | libc::F_DUPFD_CLOEXEC) {
                descriptors::duplicate(fd, result);
            }
            result
        }
    )*};
}

fcntls! {
    fcntl;
    fcntl64;
}

extern "C" fn before_fork() {
    descriptors::before_fork();
}

extern "C" fn after_fork_in_parent() {
    descriptors::after_fork(false);
}

extern "C" fn after_fork_in_child() {
    descriptors::after_fork(true);
}

/// When the library is loaded: descriptors that came through exec are known again.
extern "C" fn loaded() {
    let Some(emulator) = Emulator::get() else { return };
    // SAFETY: the three functions stay where they are for the life of the process.
    unsafe {
        libc::pthread_atfork(Some(before_fork), Some(after_fork_in_parent), Some(after_fork_in_child));
    }
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
    let Ok(directory) = rustix::fs::open("/proc/self/fd", flags, rustix::fs::Mode::empty()) else { return };
    let Ok(entries) = rustix::fs::Dir::new(directory) else { return };
    for entry in entries.flatten() {
        let number = entry.file_name().to_str().ok().and_then(|name| name.parse::<RawFd>().ok());
        if let Some(fd) = number {
            inherit(emulator, fd);
        }
    }
}

/// Knows a descriptor again that an emulated device is behind.
fn inherit(emulator: &Emulator, fd: RawFd) {
    // SAFETY: the number was found open a moment ago, and no other thread runs yet; a stale one gives an error.
    let Some(name) = descriptors::session_name(unsafe { borrow(fd) }) else { return };
    if let Ok(state) = emulator.operation(Operation::State, &name, &[]) {
        let rings = emulator.rings(&name);
        let session = Session { name, rings, ..Session::default() };
        session.pkey_index.store(state == [1], Ordering::Relaxed);
        descriptors::insert(fd, Arc::new(session));
    }
}

#[used]
#[unsafe(link_section = ".init_array")]
static LOADED: extern "C" fn() = loaded;
