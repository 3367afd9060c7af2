//! The C library's own functions, which ours stand in front of.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use libc::{DIR, FILE, dirent, mode_t, size_t, ssize_t, stat as Stat, statx as Statx};

/// The next definition of a symbol after our own.
fn next(cache: &AtomicPtr<c_void>, name: &CStr) -> *mut c_void {
    let cached = cache.load(Ordering::Relaxed);
    if !cached.is_null() {
        return cached;
    }
    // SAFETY: dlsym takes a handle of its own kind and a string that ends with a zero byte.
    let found = unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) };
    if found.is_null() {
        // Who calls a function was linked with a C library that has it.
        std::process::abort();
    }
    cache.store(found, Ordering::Relaxed);
    found
}

/// Defines a function that calls the C library's of the same name. `C-unwind`, because a thread that is cancelled
/// unwinds through here.
macro_rules! real {
    ($($symbol:literal $name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => {$(
        /// # Safety
        /// As the C function.
        pub(crate) unsafe fn $name($($arg: $type),*) -> $result {
            static CACHE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
            let found = next(&CACHE, $symbol);
            // SAFETY: the symbol is the C library's function of this signature.
            let function = unsafe {
                std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn($($type),*) -> $result>(found)
            };
            // SAFETY: the caller keeps the C function's contract.
            unsafe { function($($arg),*) }
        }
    )*};
}

/// What `scandir` selects by.
pub(crate) type Filter = Option<unsafe extern "C" fn(*const dirent) -> c_int>;
/// What `scandir` sorts by.
pub(crate) type Compare = Option<unsafe extern "C" fn(*mut *const dirent, *mut *const dirent) -> c_int>;

// The variadic functions are called with their optional argument always: on the machines that Linux runs on, an integer
// argument too many lies in a register that nobody reads.
real! {
    c"open" open(path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    c"open64" open64(path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    c"openat" openat(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    c"openat64" openat64(dir: c_int, path: *const c_char, flags: c_int, mode: mode_t) -> c_int;
    c"fopen" fopen(path: *const c_char, mode: *const c_char) -> *mut FILE;
    c"fopen64" fopen64(path: *const c_char, mode: *const c_char) -> *mut FILE;
    c"opendir" opendir(path: *const c_char) -> *mut DIR;
    c"scandir" scandir(path: *const c_char, list: *mut *mut *mut dirent, filter: Filter, compare: Compare) -> c_int;
    c"scandir64" scandir64(path: *const c_char, list: *mut *mut *mut dirent, filter: Filter, compare: Compare) -> c_int;
    c"stat" stat(path: *const c_char, out: *mut Stat) -> c_int;
    c"stat64" stat64(path: *const c_char, out: *mut Stat) -> c_int;
    c"lstat" lstat(path: *const c_char, out: *mut Stat) -> c_int;
    c"lstat64" lstat64(path: *const c_char, out: *mut Stat) -> c_int;
    c"fstatat" fstatat(dir: c_int, path: *const c_char, out: *mut Stat, flags: c_int) -> c_int;
    c"fstatat64" fstatat64(dir: c_int, path: *const c_char, out: *mut Stat, flags: c_int) -> c_int;
    c"__xstat" xstat(version: c_int, path: *const c_char, out: *mut Stat) -> c_int;
    c"__xstat64" xstat64(version: c_int, path: *const c_char, out: *mut Stat) -> c_int;
    c"__lxstat" lxstat(version: c_int, path: *const c_char, out: *mut Stat) -> c_int;
    c"__lxstat64" lxstat64(version: c_int, path: *const c_char, out: *mut Stat) -> c_int;
    c"statx" statx(dir: c_int, path: *const c_char, flags: c_int, mask: c_uint, out: *mut Statx) -> c_int;
    c"access" access(path: *const c_char, mode: c_int) -> c_int;
    c"faccessat" faccessat(dir: c_int, path: *const c_char, mode: c_int, flags: c_int) -> c_int;
    c"euidaccess" euidaccess(path: *const c_char, mode: c_int) -> c_int;
    c"readlink" readlink(path: *const c_char, out: *mut c_char, size: size_t) -> ssize_t;
    c"readlinkat" readlinkat(dir: c_int, path: *const c_char, out: *mut c_char, size: size_t) -> ssize_t;
    c"realpath" realpath(path: *const c_char, out: *mut c_char) -> *mut c_char;
    c"getxattr" getxattr(path: *const c_char, name: *const c_char, out: *mut c_void, size: size_t) -> ssize_t;
    c"lgetxattr" lgetxattr(path: *const c_char, name: *const c_char, out: *mut c_void, size: size_t) -> ssize_t;
    c"listxattr" listxattr(path: *const c_char, out: *mut c_char, size: size_t) -> ssize_t;
    c"llistxattr" llistxattr(path: *const c_char, out: *mut c_char, size: size_t) -> ssize_t;
    c"read" read(fd: c_int, buffer: *mut c_void, count: size_t) -> ssize_t;
    c"readv" readv(fd: c_int, parts: *const libc::iovec, count: c_int) -> ssize_t;
    c"write" write(fd: c_int, buffer: *const c_void, count: size_t) -> ssize_t;
    c"writev" writev(fd: c_int, parts: *const libc::iovec, count: c_int) -> ssize_t;
    c"ioctl" ioctl(fd: c_int, request: c_ulong, argument: *mut c_void) -> c_int;
    c"fcntl" fcntl(fd: c_int, command: c_int, argument: c_ulong) -> c_int;
    c"fcntl64" fcntl64(fd: c_int, command: c_int, argument: c_ulong) -> c_int;
    c"close" close(fd: c_int) -> c_int;
    c"close_range" close_range(first: c_uint, last: c_uint, flags: c_int) -> c_int;
    c"poll" poll(set: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int) -> c_int;
    c"__poll_chk" poll_chk(set: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int, size: size_t) -> c_int;
    c"dup" dup(fd: c_int) -> c_int;
    c"dup2" dup2(from: c_int, to: c_int) -> c_int;
    c"dup3" dup3(from: c_int, to: c_int, flags: c_int) -> c_int;
}
