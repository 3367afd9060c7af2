//! An emulator in a thread of its own, and programs inside it.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::{self, JoinHandle};

pub use rsm_preload_protocol::{ENV_EMULATE, ENV_NODE};
use rsm_preload_protocol::{Request, SOCKET_NAME, socket};
use rustix::net::SocketFlags;

use super::backend::Backend;
use super::server::{Handle, Server, ServerError};
use super::sysfs::Presentation;

/// The preload library's file name.
pub const LIBRARY: &str = "librsm_preload.so";
/// Environment: where the preload library is, when it is in none of the usual places.
pub const ENV_PRELOAD: &str = "RSM_PRELOAD";

/// A running emulator. Dropping it ends it.
pub struct Emulation {
    handle: Handle,
    thread: Option<JoinHandle<Result<(), ServerError>>>,
}

impl Emulation {
    /// Serves `backend` in `directory`.
    ///
    /// # Errors
    /// The directory or socket could not be made.
    pub fn start(directory: &Path, backend: Box<dyn Backend>) -> Result<Self, ServerError> {
        Self::start_as(directory, backend, Presentation::default())
    }

    /// Serves `backend` in `directory`, with nodes shown in this way.
    ///
    /// # Errors
    /// The directory or socket could not be made.
    pub fn start_as(
        directory: &Path,
        backend: Box<dyn Backend>,
        presentation: Presentation,
    ) -> Result<Self, ServerError> {
        let server = Server::bind(directory, backend, presentation)?;
        let handle = server.handle();
        let thread = thread::Builder::new()
            .name("emulator".into())
            .spawn(move || server.run())
            .map_err(|source| ServerError::System { what: "starting a thread", source })?;
        Ok(Self { handle, thread: Some(thread) })
    }

    /// For console commands.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// Waits until the emulator ends by itself (`Quit`).
    ///
    /// # Errors
    /// What ended it.
    pub fn wait(mut self) -> Result<(), ServerError> {
        self.thread
            .take()
            .map_or(Ok(()), |thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    }

    /// A command that sees port(s) of `node` as its own; `library` is the preload library.
    pub fn command(&self, library: &Path, node: &str, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        attach(&mut command, library, self.handle.directory(), node);
        command
    }
}

impl Drop for Emulation {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            // What ended it has been told by `wait`, if anybody wanted to know.
            let _ = thread.join();
        }
    }
}

/// Sets the environment by which a command sees the emulated port(s) of `node` (empty: of the first adapter). What is
/// preloaded already stays so, after our library.
pub fn attach(command: &mut Command, library: &Path, directory: &Path, node: &str) {
    let mut preload = OsString::from(library);
    if let Some(others) = env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        preload.push(":");
        preload.push(others);
    }
    command.env("LD_PRELOAD", preload).env(ENV_EMULATE, directory).env(ENV_NODE, node);
}

/// Gives the emulator in a directory a line of its console: its output, or what is wrong with the line.
///
/// # Errors
/// There is no emulator.
pub fn console(directory: &Path, line: &str) -> io::Result<Result<String, String>> {
    let path = if directory.is_dir() { directory.join(SOCKET_NAME) } else { directory.into() };
    let (connection, _) = socket::connect_to(&path, false, SocketFlags::CLOEXEC)?;
    let reply = socket::ask(connection.as_fd(), &Request::Console { line })?;
    let text = String::from_utf8_lossy(&reply.payload).into_owned();
    Ok(if reply.errno == 0 { Ok(text) } else { Err(text) })
}

/// Finds the preload library: where [`ENV_PRELOAD`] says, else beside this program, in `deps` beside it, or in
/// `../lib/rsm`.
///
/// # Errors
/// All places where it isn't.
pub fn preload_library() -> io::Result<PathBuf> {
    if let Some(path) = env::var_os(ENV_PRELOAD) {
        return present(vec![path.into()]);
    }
    let program = env::current_exe()?;
    let directory = program.parent().unwrap_or_else(|| Path::new("."));
    present(["", "deps", "../lib/rsm"].map(|place| directory.join(place).join(LIBRARY)).into())
}

fn present(places: Vec<PathBuf>) -> io::Result<PathBuf> {
    places.iter().find(|path| path.is_file()).cloned().ok_or_else(|| {
        let places: Vec<_> = places.iter().map(|path| path.display().to_string()).collect();
        let text = format!("the preload library is not at {}; `cargo build -p rsm-preload` (with --release for a release) builds it, or set {ENV_PRELOAD}", places.join(", "));
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}
