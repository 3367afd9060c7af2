//! The few system calls, as safe functions.
//!
//! Plain libc symbols throughout (`open`, `read`, `write`, `ioctl`, `poll`, `close`, `opendir`): a preload
//! library that stands in for the kernel sees these and no others, neither `open64` and `statx` of `std::fs`
//! nor raw system calls.

use std::ffi::{CStr, CString, c_int, c_void};
use std::io;
use std::time::Duration;

/// An open file, closed by libc's `close`.
#[derive(Debug)]
pub(super) struct Fd(c_int);

fn c_path(path: &str) -> io::Result<CString> {
    CString::new(path).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

/// Turns the result of a call into a count. Preload libraries also return `-errno` and leave `errno` alone.
fn checked(result: isize) -> io::Result<usize> {
    match result {
        0.. => Ok(result as usize),
        -1 => Err(io::Error::last_os_error()),
        negative => Err(io::Error::from_raw_os_error(negative.unsigned_abs() as c_int)),
    }
}

impl Fd {
    /// Opens a file; `flags` as for open(2), without `O_CREAT`.
    pub(super) fn open(path: &str, flags: c_int) -> io::Result<Self> {
        let path = c_path(path)?;
        // SAFETY: `path` is a NUL-terminated string that outlives the call; without O_CREAT there is no third
        // argument.
        let fd = unsafe { libc::open(path.as_ptr(), flags) };
        checked(fd as isize).map(|fd| Self(fd as c_int))
    }

    /// A counter that `poll` can wait for.
    pub(super) fn event() -> io::Result<Self> {
        // SAFETY: no pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        checked(fd as isize).map(|fd| Self(fd as c_int))
    }

    pub(super) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the buffer is valid for writes of its length for the time of the call.
        checked(unsafe { libc::read(self.0, buffer.as_mut_ptr().cast::<c_void>(), buffer.len()) })
    }

    pub(super) fn write(&self, buffer: &[u8]) -> io::Result<usize> {
        // SAFETY: the buffer is valid for reads of its length for the time of the call.
        checked(unsafe { libc::write(self.0, buffer.as_ptr().cast::<c_void>(), buffer.len()) })
    }

    /// An ioctl whose argument is a structure that the kernel reads and writes. `request` must be one that
    /// takes a `T`.
    pub(super) fn ioctl<T: zerocopy::IntoBytes + zerocopy::FromBytes>(
        &self,
        request: u32,
        argument: &mut T,
    ) -> io::Result<()> {
        debug_assert_eq!((request >> 16) as usize & 0x3fff, size_of::<T>());
        // SAFETY: the request's size field (checked by the tests of the constants) says how much is read and
        // written, and the argument is that large and plain data.
        checked(unsafe { libc::ioctl(self.0, request.into(), std::ptr::from_mut(argument)) } as isize)
            .map(|_| ())
    }

    /// An ioctl without an argument.
    pub(super) fn ioctl_none(&self, request: u32) -> io::Result<()> {
        // SAFETY: the request takes no argument; a null pointer is passed for callees that expect one.
        checked(unsafe { libc::ioctl(self.0, request.into(), std::ptr::null_mut::<c_void>()) } as isize)
            .map(|_| ())
    }

    /// Whether the kernel knows this file. A preload library's files are numbers of its own.
    pub(super) fn is_kernel_file(&self) -> bool {
        let mut status = std::mem::MaybeUninit::<libc::stat>::uninit();
        // SAFETY: `status` has room for what fstat writes, and is not read.
        let result = unsafe { libc::fstat(self.0, status.as_mut_ptr()) };
        result == 0
    }

    /// Never closes it.
    pub(super) fn leak(self) {
        std::mem::forget(self);
    }
}

impl Drop for Fd {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours alone and not used afterwards.
        unsafe { libc::close(self.0) };
    }
}

/// What `poll` said of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) readable: bool,
    /// The device is gone.
    pub(super) failed: bool,
}

/// Waits until one of up to four files can be read. All false when the time is over.
pub(super) fn poll(files: &[&Fd], timeout: Duration) -> io::Result<[Ready; 4]> {
    let mut set = [libc::pollfd { fd: -1, events: libc::POLLIN, revents: 0 }; 4];
    let count = files.len().min(set.len());
    for (entry, file) in set.iter_mut().zip(files) {
        entry.fd = file.0;
    }
    // Rounded up, so that a wait is never a busy loop; at most a minute, as large values overflow in places.
    let millis = timeout.as_nanos().div_ceil(1_000_000).min(60_000) as c_int;
    // SAFETY: the pointer is to `count` initialised entries.
    let result = unsafe { libc::poll(set.as_mut_ptr(), count as libc::nfds_t, millis) };
    match checked(result as isize) {
        Ok(_) => Ok(set.map(|entry| Ready {
            readable: entry.revents & libc::POLLIN != 0,
            failed: entry.revents & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0,
        })),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok([Ready::default(); 4]),
        Err(error) => Err(error),
    }
}

/// A small file's text without trailing white space.
pub(super) fn read_text(path: &str) -> io::Result<String> {
    let file = Fd::open(path, libc::O_RDONLY | libc::O_CLOEXEC)?;
    let mut text = Vec::new();
    let mut buffer = [0; 4096];
    // Attributes of sysfs fit a page; the bound is for what only claims to be one.
    while text.len() < 1 << 16 {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        text.extend_from_slice(&buffer[..count]);
    }
    Ok(String::from_utf8_lossy(&text).trim_end_matches(['\n', '\r', ' ', '\0']).to_owned())
}

/// The names in a directory but `.` and `..`, sorted so that numbers in names count as numbers.
pub(super) fn list_directory(path: &str) -> io::Result<Vec<String>> {
    let path = c_path(path)?;
    // SAFETY: `path` is a NUL-terminated string that outlives the call.
    let directory = unsafe { libc::opendir(path.as_ptr()) };
    if directory.is_null() {
        return Err(io::Error::last_os_error());
    }
    let mut names = Vec::new();
    loop {
        // SAFETY: `directory` is open, and used by this thread only.
        let entry = unsafe { libc::readdir(directory) };
        if entry.is_null() {
            break;
        }
        // SAFETY: readdir's entry is valid until the next call, and its name ends with a NUL.
        let name = unsafe { CStr::from_ptr((*entry).d_name.as_ptr()) };
        let name = name.to_string_lossy();
        if name != "." && name != ".." {
            names.push(name.into_owned());
        }
    }
    // SAFETY: `directory` is open and not used afterwards.
    unsafe { libc::closedir(directory) };
    names.sort_by(|a, b| natural_key(a).cmp(&natural_key(b)).then_with(|| a.cmp(b)));
    Ok(names)
}

/// A name's letters and the number at its end: `mlx5_2` before `mlx5_10`.
fn natural_key(name: &str) -> (&str, u64) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    (stem, name[stem.len()..].parse().unwrap_or(0))
}

/// The size of a datagram's header as libibumad has it, where that library is loaded in this process.
///
/// The stock simulator's preload library asks it how long headers are, and never learns of `ENABLE_PKEY` on a
/// file that libibumad did not open: what counts there is this answer.
pub(super) fn libibumad_header_len() -> Option<usize> {
    // SAFETY: the name is a NUL-terminated string.
    let symbol = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"umad_size".as_ptr()) };
    if symbol.is_null() {
        return None;
    }
    // SAFETY: libibumad declares `size_t umad_size(void)`, and has since its first release.
    let umad_size: extern "C" fn() -> usize = unsafe { std::mem::transmute(symbol) };
    Some(umad_size())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_sort_as_numbers() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["mlx5_10", "mlx5_2", "irdma0", "mlx5_bond_0", "x18446744073709551616"] {
            std::fs::create_dir(directory.path().join(name)).unwrap();
        }
        let names = list_directory(directory.path().to_str().unwrap()).unwrap();
        assert_eq!(names, ["irdma0", "mlx5_2", "mlx5_10", "mlx5_bond_0", "x18446744073709551616"]);
        assert_eq!(list_directory("/no/such/dir").unwrap_err().raw_os_error(), Some(libc::ENOENT));
        assert_eq!(list_directory("/no\0").unwrap_err().raw_os_error(), Some(libc::EINVAL));
    }

    #[test]
    fn text_comes_without_its_line_end_and_missing_files_are_errors() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state");
        std::fs::write(&path, "4: ACTIVE\n").unwrap();
        assert_eq!(read_text(path.to_str().unwrap()).unwrap(), "4: ACTIVE");
        assert_eq!(read_text("/no/such/file").unwrap_err().raw_os_error(), Some(libc::ENOENT));
    }

    #[test]
    fn poll_tells_which_of_several_files_is_ready() {
        let (a, b) = (Fd::event().unwrap(), Fd::event().unwrap());
        assert!(a.is_kernel_file());
        assert_eq!(poll(&[&a, &b], Duration::ZERO).unwrap(), [Ready::default(); 4]);
        b.write(&1_u64.to_ne_bytes()).unwrap();
        let ready = poll(&[&a, &b], Duration::from_secs(60)).unwrap();
        assert_eq!(ready.map(|file| file.readable), [false, true, false, false]);
        assert_eq!(b.read(&mut [0; 8]).unwrap(), 8);
        assert_eq!(b.read(&mut [0; 8]).unwrap_err().raw_os_error(), Some(libc::EAGAIN));
    }
}
