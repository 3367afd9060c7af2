//! The emulated umad device as a program sees it through the C library: the kernel's ABI, with real descriptors.
//!
//! The test starts itself again inside `rsm emulate`, under the preload library, and makes its calls there.

use std::ffi::CString;
use std::os::fd::RawFd;
use std::process::Command;

use crate::net::Net;

const ENABLE_PKEY: libc::c_ulong = 0x1b03;
const REGISTER_AGENT: libc::c_ulong = 0xc01c_1b01;
const REGISTER_AGENT2: libc::c_ulong = 0xc028_1b04;
const UNREGISTER_AGENT: libc::c_ulong = 0x4004_1b02;

/// Runs this test of this program once more, on a host of an emulated fabric.
fn again_inside(test: &str) {
    let status = Command::new(env!("CARGO_BIN_EXE_rsm"))
        .arg("emulate")
        .arg(Net::own("dual-port.net").path)
        .args(["--node", "H0", "--"])
        .arg(std::env::current_exe().expect("path of this program"))
        .args(["--exact", "--nocapture", test])
        .env("RSM_PRELOAD", crate::emulator::library())
        .status()
        .expect("rsm");
    assert!(status.success(), "{test} failed inside the emulator");
}

fn is_inside() -> bool {
    std::env::var_os("RSM_EMULATE").is_some()
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().expect("an error number")
}

fn open(path: &str, flags: i32) -> RawFd {
    let path = CString::new(path).expect("a path");
    // SAFETY: a C string.
    unsafe { libc::open(path.as_ptr(), flags) }
}

fn ioctl(fd: RawFd, request: libc::c_ulong, argument: &mut [u8]) -> i32 {
    // SAFETY: the argument has the length that the request says.
    unsafe { libc::ioctl(fd, request, argument.as_mut_ptr()) }
}

fn read(fd: RawFd, buffer: &mut [u8]) -> isize {
    // SAFETY: the buffer is as long as is said.
    unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) }
}

fn write(fd: RawFd, bytes: &[u8]) -> isize {
    // SAFETY: the bytes are as many as is said.
    unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) }
}

fn close(fd: RawFd) {
    // SAFETY: ours.
    assert_eq!(unsafe { libc::close(fd) }, 0);
}

/// An opened port with an agent for directed-route SMPs; the header has 64 bytes.
fn port(number: u8) -> RawFd {
    let fd = open(&format!("/dev/infiniband/umad{}", number - 1), libc::O_RDWR | libc::O_NONBLOCK);
    assert!(fd >= 0, "{}", errno());
    assert_eq!(ioctl(fd, ENABLE_PKEY, &mut []), 0);
    let mut request = [0; 28];
    (request[21], request[22]) = (0x81, 1);
    assert_eq!(ioctl(fd, REGISTER_AGENT, &mut request), 0);
    assert_eq!(request[..4], [0; 4], "the first agent is number 0");
    fd
}

/// A directed Get of NodeInfo, of our own node or out of `exits`.
fn node_info(tid: u8, exits: &[u8], timeout_ms: u32, retries: u32) -> Vec<u8> {
    let mut bytes = vec![0; 64 + 256];
    bytes[8..12].copy_from_slice(&timeout_ms.to_ne_bytes());
    bytes[12..16].copy_from_slice(&retries.to_ne_bytes());
    bytes[28..30].fill(0xff);
    let mad = &mut bytes[64..];
    (mad[0], mad[1], mad[2], mad[3]) = (1, 0x81, 1, 1);
    (mad[7], mad[15], mad[17]) = (exits.len() as u8, tid, 0x11);
    mad[32..36].fill(0xff);
    mad[129..129 + exits.len()].copy_from_slice(exits);
    bytes
}

/// Waits with poll until a descriptor can be read; gives the revents of all.
fn poll(fds: &[RawFd], timeout_ms: i32) -> Vec<i16> {
    let mut set: Vec<_> =
        fds.iter().map(|fd| libc::pollfd { fd: *fd, events: libc::POLLIN, revents: 0 }).collect();
    // SAFETY: the set has that many entries.
    let ready = unsafe { libc::poll(set.as_mut_ptr(), set.len() as libc::nfds_t, timeout_ms) };
    assert!(ready >= 0, "{}", errno());
    set.iter().map(|one| one.revents).collect()
}

#[test]
fn poll_select_and_epoll_wait_for_several_ports_beside_other_descriptors() {
    if !is_inside() {
        return again_inside(
            "umad_device::poll_select_and_epoll_wait_for_several_ports_beside_other_descriptors",
        );
    }
    let (one, two) = (port(1), port(2));
    let mut pipe = [0; 2];
    // SAFETY: room for two.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    let mut buffer = [0; 320];
    assert_eq!((read(one, &mut buffer), errno()), (-1, libc::EAGAIN), "errno, not a negative result");
    assert_eq!(poll(&[one, pipe[0], two], 0), [0, 0, 0]);
    assert_eq!(write(pipe[1], b"x"), 1);
    assert_eq!(poll(&[one, pipe[0], two], -1), [0, libc::POLLIN, 0], "a pipe beside umad");
    assert_eq!(write(two, &node_info(7, &[], 10_000, 0)), 320);
    while poll(&[two], -1) != [libc::POLLIN] {}
    assert_eq!(poll(&[one, two], 0), [0, libc::POLLIN]);
    // SAFETY: a set of descriptors below 1024, and a time.
    unsafe {
        let mut set: libc::fd_set = std::mem::zeroed();
        libc::FD_SET(one, &mut set);
        libc::FD_SET(two, &mut set);
        let mut time = libc::timeval { tv_sec: 60, tv_usec: 0 };
        let highest = one.max(two) + 1;
        assert_eq!(libc::select(highest, &mut set, std::ptr::null_mut(), std::ptr::null_mut(), &mut time), 1);
        assert!(libc::FD_ISSET(two, &set) && !libc::FD_ISSET(one, &set));
        let epoll = libc::epoll_create1(0);
        for fd in [one, two] {
            let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: fd as u64 };
            assert_eq!(libc::epoll_ctl(epoll, libc::EPOLL_CTL_ADD, fd, &mut event), 0);
        }
        let mut event = libc::epoll_event { events: 0, u64: 0 };
        assert_eq!(libc::epoll_wait(epoll, &mut event, 1, 60_000), 1);
        let ready = event.u64;
        assert_eq!(ready, two as u64);
        close(epoll);
    }
    assert_eq!(read(two, &mut buffer), 320);
    assert_eq!((buffer[64 + 3], buffer[64 + 15], buffer[64 + 64 + 36]), (0x81, 7, 2), "asked on port 2");
    assert_eq!(poll(&[one, two], 0), [0, 0]);
    close(one);
    close(two);
}

#[test]
fn timeouts_come_back_and_errors_have_the_kernels_numbers() {
    if !is_inside() {
        return again_inside("umad_device::timeouts_come_back_and_errors_have_the_kernels_numbers");
    }
    let fd = port(1);
    assert_eq!((ioctl(fd, ENABLE_PKEY, &mut []), errno()), (-1, libc::EINVAL), "too late");
    assert_eq!((ioctl(fd, 0x1b99, &mut []), errno()), (-1, libc::ENOTTY));
    let mut refused = [0; 40];
    refused[12] = 0x80;
    assert_eq!((ioctl(fd, REGISTER_AGENT2, &mut refused), errno()), (-1, libc::EINVAL));
    assert_eq!(refused[12], 1, "what would be possible");
    let mut two = [0; 40];
    (two[4], two[8], two[9], two[36]) = (1, 3, 2, 1);
    assert_eq!(ioctl(fd, REGISTER_AGENT2, &mut two), 0);
    assert_eq!(two[0], 1, "the second agent");
    assert_eq!(ioctl(fd, UNREGISTER_AGENT, &mut [1, 0, 0, 0]), 0);
    assert_eq!((ioctl(fd, UNREGISTER_AGENT, &mut [1, 0, 0, 0]), errno()), (-1, libc::EINVAL));

    let mut request = node_info(1, &[], 10_000, 0);
    assert_eq!((write(fd, &request[..90]), errno()), (-1, libc::EINVAL), "too short");
    request[0] = 1;
    assert_eq!((write(fd, &request), errno()), (-1, libc::EIO), "an agent that has gone");
    request[0] = 32;
    assert_eq!((write(fd, &request), errno()), (-1, libc::EINVAL), "no agent's number");
    assert_eq!(
        (write(fd, &node_info(1, &[9], 100, 0)), errno()),
        (-1, libc::EINVAL),
        "out of a port not ours"
    );

    // Nobody is behind port 200 of the switch.
    let lost = node_info(5, &[1, 200], 50, 1);
    assert_eq!(write(fd, &lost), 320);
    assert_eq!((write(fd, &lost), errno()), (-1, libc::EINVAL), "the same transaction is under way");
    while poll(&[fd], -1) != [libc::POLLIN] {}
    let mut buffer = [0; 320];
    assert_eq!((read(fd, &mut buffer[..80]), errno()), (-1, libc::EINVAL), "room for less than the header");
    assert_eq!(read(fd, &mut buffer), 64 + 24, "the common header alone");
    assert_eq!(buffer[4], libc::ETIMEDOUT as u8);
    assert_eq!((buffer[64 + 3], buffer[64 + 15]), (1, 5));
    assert_eq!(write(fd, &lost), 320, "now it may be asked again");
    close(fd);
}

#[test]
fn forks_share_a_descriptor_and_exec_closes_it_when_asked() {
    if !is_inside() {
        return again_inside("umad_device::forks_share_a_descriptor_and_exec_closes_it_when_asked");
    }
    let fd = port(1);
    let copy = {
        // SAFETY: an open descriptor.
        unsafe { libc::dup(fd) }
    };
    assert_eq!(write(copy, &node_info(3, &[], 10_000, 0)), 320, "a copy is the same device");
    while poll(&[fd], -1) != [libc::POLLIN] {}
    // SAFETY: the child makes nothing but system calls and wrapped ones, and ends without unwinding.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let mut buffer = [0; 320];
        let good = read(fd, &mut buffer) == 320 && buffer[64 + 15] == 3;
        // SAFETY: ends the child.
        unsafe { libc::_exit(i32::from(!good)) };
    }
    let mut status = 0;
    // SAFETY: our child.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert_eq!(status, 0, "the child has read what the parent asked");
    let mut buffer = [0; 320];
    assert_eq!((read(fd, &mut buffer), errno()), (-1, libc::EAGAIN), "once");
    assert_eq!(write(fd, &node_info(4, &[], 10_000, 0)), 320, "the parent goes on");
    while poll(&[fd], -1) != [libc::POLLIN] {}
    assert_eq!(read(copy, &mut buffer), 320);

    let kept = open("/dev/infiniband/umad1", libc::O_RDWR);
    let gone = open("/dev/infiniband/umad1", libc::O_RDWR | libc::O_CLOEXEC);
    let passed_on = |fd: RawFd| {
        let link = Command::new("readlink").arg(format!("/proc/self/fd/{fd}")).output().expect("readlink");
        link.status.success()
    };
    assert!(passed_on(kept) && !passed_on(gone));
    for fd in [fd, copy, kept, gone] {
        close(fd);
    }
    assert_eq!((write(fd, &node_info(4, &[], 0, 0)), errno()), (-1, libc::EBADF), "closed is closed");
}

#[test]
fn std_and_c_find_the_same_files() {
    if !is_inside() {
        return again_inside("umad_device::std_and_c_find_the_same_files");
    }
    let text = |path: &str| std::fs::read_to_string(path).expect(path);
    assert_eq!(text("/sys/class/infiniband_mad/abi_version"), "5\n");
    assert_eq!(text("/sys/class/infiniband_mad/umad1/port"), "2\n");
    assert_eq!(text("/sys/class/infiniband/rsm0/node_type"), "1: CA\n");
    let names: Vec<_> = std::fs::read_dir("/sys/class/infiniband/rsm0/ports")
        .expect("ports")
        .count()
        .to_string()
        .into_bytes();
    assert_eq!(names, b"2");
    let device = std::fs::metadata("/dev/infiniband/umad0").expect("umad0");
    assert!(std::os::unix::fs::FileTypeExt::is_char_device(&device.file_type()));
    assert!(!std::path::Path::new("/dev/infiniband/umad2").exists());
    assert!(!std::path::Path::new("/sys/class/infiniband/mlx5_0").exists());
    assert_eq!((open("/dev/infiniband/umad2", libc::O_RDWR), errno()), (-1, libc::ENXIO));
}
