//! The emulator's one thread: sockets on one side, the fabric on the other, real time between.
//!
//! Every client has a socket of its own and bounded queues; a client that sends rubbish is cut off, one that does not
//! read fills only its own queue, one that floods is served [`BATCH`] packets at a time in turn with the others.

mod connection;
mod issm;
mod kernel;
mod requests;
mod rings;

#[cfg(test)]
mod slow_clients;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, unbounded};
use mad::types::Timestamp;
use rsm_preload_protocol::SOCKET_NAME;
use rsm_preload_protocol::patience::{Patience, pass};
use rsm_preload_protocol::socket::connect_to;
use rustc_hash::FxHashMap;
use rustix::buffer::spare_capacity;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, acceptfrom_with, bind, listen, socket_with,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use self::connection::Connection;
use self::issm::IsSmLocks;
use self::kernel::Attaching;
use super::backend::Backend;
use super::console::{self, HELP, Line};
use super::kernel::{Adapter, KernelError};
use super::sysfs::{Presentation, Tree};
use super::umad::{FileId, Files};

/// Packets that are taken from one client before the next has its turn.
const BATCH: usize = 64;
/// Rounds of looking at rings from one look at the descriptors to the next.
const LOOK_AT_DESCRIPTORS: u32 = 16;
/// How long no connection is accepted after descriptors ran out, and nothing is sent for which there was none.
const DESCRIPTOR_PAUSE: Duration = Duration::from_millis(50);

const LISTENER: u64 = u64::MAX;
const WAKER: u64 = u64::MAX - 1;

/// What can go wrong when an emulator starts or runs.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The directory or the socket could not be made.
    #[error("{path}: {source}")]
    Directory {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A call to the system failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

fn system(what: &'static str) -> impl Fn(Errno) -> ServerError {
    move |errno| ServerError::System { what, source: errno.into() }
}

/// An order from outside the thread.
enum Order {
    Console(String, Sender<Result<String, String>>),
    Kernel(String, Sender<Result<Vec<String>, KernelError>>),
    Stop,
}

/// Speaks to a running emulator from other threads.
#[derive(Clone)]
pub struct Handle {
    orders: Sender<Order>,
    wake: Arc<OwnedFd>,
    directory: PathBuf,
}

impl Handle {
    /// Carries out a console line and gives its output.
    ///
    /// # Errors
    /// One line that says what is wrong.
    pub fn command(&self, line: &str) -> Result<String, String> {
        let (answer, answered) = unbounded();
        self.order(Order::Console(line.to_owned(), answer));
        answered.recv().unwrap_or_else(|_| Err("the emulator has ended".into()))
    }

    /// Makes adapters of the kernel of these nodes (descriptions or GUIDs with commas between), and gives the names that the
    /// kernel gave them.
    ///
    /// # Errors
    /// There is no such node, or the kernel makes no adapter of it.
    pub fn attach_kernel(&self, nodes: &str) -> Result<Vec<String>, KernelError> {
        let (answer, answered) = unbounded();
        self.order(Order::Kernel(nodes.to_owned(), answer));
        answered.recv().unwrap_or(Err(KernelError::Ended))
    }

    /// Ends the emulator soon.
    pub fn stop(&self) {
        self.order(Order::Stop);
    }

    /// What [`rsm_preload_protocol::ENV_EMULATE`] has to be.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    fn order(&self, order: Order) {
        // Both fail only when the emulator has ended.
        let _ = self.orders.send(order);
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
    }
}

/// An emulator: [`Server::bind`], then [`Server::run`] in a thread of its own.
pub struct Server {
    directory: PathBuf,
    listener: OwnedFd,
    epoll: OwnedFd,
    handle: Handle,
    orders: Receiver<Order>,
    backend: Box<dyn Backend>,
    files: Files,
    presentation: Presentation,
    trees: Vec<Tree>,
    connections: FxHashMap<u64, Connection>,
    /// The connection of an opened descriptor.
    by_file: FxHashMap<FileId, u64>,
    /// Connections with rings.
    ringed: Vec<u64>,
    /// Opened descriptors by the names of the clients' ends.
    sessions: FxHashMap<String, u64>,
    is_sm: IsSmLocks,
    /// Nodes that are adapters of the kernel.
    adapters: Vec<Adapter>,
    attaching: Vec<Attaching>,
    /// Ports may be other than the kernel knows: something has happened besides data packets.
    ports_changed: bool,
    next_connection: u64,
    start: Instant,
    frozen_until: Option<Timestamp>,
    accept_again: Option<Timestamp>,
    /// Clients for which no descriptor was left, and when it is tried again.
    waiting: Vec<u64>,
    flush_again: Option<Timestamp>,
    stopping: bool,
    /// For what is received; those that are not in use.
    buffers: Vec<Vec<u8>>,
}

/// How long the thread looks for work before it sleeps.
struct Pace {
    events: Vec<epoll::Event>,
    last_event: Instant,
    patience: Patience,
    /// Since the last work.
    slept: bool,
    /// The longest time since the last work for which another thread had the processor.
    passed: Duration,
    rounds: u32,
}

impl Pace {
    fn new() -> Self {
        Self {
            events: Vec::with_capacity(256),
            last_event: Instant::now(),
            patience: Patience::default(),
            slept: false,
            passed: Duration::ZERO,
            rounds: 0,
        }
    }
}

impl Server {
    /// Makes the socket in `directory`, which is made too if it isn't there.
    ///
    /// # Errors
    /// The directory or socket could not be made; a socket on which another emulator listens is not replaced.
    pub fn bind(
        directory: &Path,
        backend: Box<dyn Backend>,
        presentation: Presentation,
    ) -> Result<Self, ServerError> {
        let path = directory.join(SOCKET_NAME);
        let failed = |source: io::Error| ServerError::Directory { path: path.clone(), source };
        fs::create_dir_all(directory).map_err(failed)?;
        // The tree is found by other processes, wherever they are.
        let directory = fs::canonicalize(directory).map_err(failed)?;
        raise_descriptor_limit();
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)
            .map_err(system("making a socket"))?;
        SocketAddrUnix::new(&path)
            .and_then(|address| match bind(&listener, &address) {
                // What an emulator that was killed left behind is in nobody's use.
                Err(Errno::ADDRINUSE) if is_deserted(&path) => {
                    fs::remove_file(&path).ok();
                    bind(&listener, &address)
                }
                bound => bound,
            })
            .and_then(|()| listen(&listener, 1024))
            .map_err(|errno| failed(errno.into()))?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(system("making an epoll"))?;
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(system("making an eventfd"))?;
        let input = epoll::EventFlags::IN;
        epoll::add(&epoll, &listener, epoll::EventData::new_u64(LISTENER), input)
            .and_then(|()| epoll::add(&epoll, &wake, epoll::EventData::new_u64(WAKER), input))
            .map_err(system("watching a descriptor"))?;
        let (send, orders) = unbounded();
        let handle = Handle { orders: send, wake: Arc::new(wake), directory: directory.clone() };
        Ok(Self {
            directory,
            listener,
            epoll,
            handle,
            orders,
            backend,
            files: Files::default(),
            presentation,
            trees: Vec::new(),
            connections: FxHashMap::default(),
            by_file: FxHashMap::default(),
            ringed: Vec::new(),
            sessions: FxHashMap::default(),
            is_sm: IsSmLocks::default(),
            adapters: Vec::new(),
            attaching: Vec::new(),
            ports_changed: false,
            next_connection: 0,
            start: Instant::now(),
            frozen_until: None,
            accept_again: None,
            waiting: Vec::new(),
            flush_again: None,
            stopping: false,
            buffers: Vec::new(),
        })
    }

    /// For other threads.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_start(self.start.elapsed())
    }

    /// Serves until [`Handle::stop`] or the console's `Quit`.
    ///
    /// # Errors
    /// Waiting for descriptors failed.
    pub fn run(mut self) -> Result<(), ServerError> {
        let mut pace = Pace::new();
        while !self.stopping {
            self.round(&mut pace)?;
        }
        Ok(())
    }

    /// Looks at rings and descriptors, or sleeps until something comes, and serves what has come.
    fn round(&mut self, pace: &mut Pace) -> Result<(), ServerError> {
        pace.events.clear();
        pace.rounds = pace.rounds.wrapping_add(1);
        let busy = self.frozen_until.is_none() && self.serve_rings();
        // Rings are looked at often, descriptors now and then, and both before the thread sleeps.
        let awake = busy || pace.last_event.elapsed() < pace.patience.limit();
        if !awake || pace.rounds.is_multiple_of(LOOK_AT_DESCRIPTORS) {
            let sleeps = !awake && self.prepare_to_sleep();
            let timeout = if sleeps { self.timeout() } else { Some(Timespec::default()) };
            let waited = epoll::wait(&self.epoll, spare_capacity(&mut pace.events), timeout.as_ref());
            if sleeps {
                self.wake_up();
                pace.slept = true;
            }
            match waited {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(system("waiting for clients")(errno)),
            }
        }
        if busy || !pace.events.is_empty() {
            pace.patience = pace.patience.after(!pace.slept).after_pass(pace.passed);
            pace.slept = false;
            pace.passed = Duration::ZERO;
            pace.last_event = Instant::now();
        } else if awake {
            pace.passed = pace.passed.max(pass());
        }
        self.turn(&pace.events);
        Ok(())
    }

    /// How long to sleep.
    fn timeout(&self) -> Option<Timespec> {
        let now = self.now();
        let until = [
            self.backend.deadline(),
            self.files.deadline(),
            self.accept_again,
            self.flush_again,
            self.frozen_until,
        ];
        let wait = until.into_iter().flatten().min().map(|next| next.saturating_since(now));
        wait.map(|wait| Timespec {
            tv_sec: wait.as_secs().min(3600) as i64,
            tv_nsec: wait.subsec_nanos().into(),
        })
    }

    /// One round: what clients want, what the fabric does, what is over, and what clients get.
    fn turn(&mut self, events: &[epoll::Event]) {
        if let Some(until) = self.frozen_until {
            let now = self.now();
            if now < until {
                std::thread::sleep(until.saturating_since(now).min(Duration::from_millis(10)));
                self.carry_out_orders();
                return;
            }
            self.frozen_until = None;
        }
        let mut ordered = false;
        for event in events {
            let (flags, data) = (event.flags, event.data);
            match data.u64() {
                LISTENER => self.accept(),
                WAKER => ordered = true,
                adapter if adapter >= kernel::FIRST => self.serve_kernel((adapter - kernel::FIRST) as usize),
                number => self.serve(number, flags),
            }
        }
        if ordered {
            // What clients sent before an order was given comes before it.
            let now = self.now();
            self.run_fabric(now);
            let _ = rustix::io::read(&*self.handle.wake, &mut [0_u8; 8]);
            self.carry_out_orders();
        }
        if self.accept_again.is_some_and(|at| at <= self.now()) {
            self.accept_again = None;
            self.watch_listener(epoll::EventFlags::IN);
        }
        let now = self.now();
        self.files.expire(now);
        self.run_fabric(now);
        self.refresh_kernel();
        self.flush_waiting();
        self.flush_ready();
    }

    /// Exchanges datagrams between descriptors and the fabric until both have nothing more to say at `now`.
    fn run_fabric(&mut self, now: Timestamp) {
        loop {
            while let Some(transmit) = self.files.poll_transmit() {
                self.ports_changed = true;
                self.backend.inject(transmit.endpoint, &transmit.datagram, now);
            }
            self.ports_changed |= self.backend.deadline().is_some_and(|due| due <= now);
            let Some(delivery) = self.backend.poll(now) else { break };
            if !self.arrive_at_kernel(delivery.endpoint, &delivery.datagram) {
                self.files.receive(delivery.endpoint, &delivery.datagram, now);
            }
        }
    }

    fn watch_listener(&self, flags: epoll::EventFlags) {
        let data = epoll::EventData::new_u64(LISTENER);
        if let Err(errno) = epoll::modify(&self.epoll, &self.listener, data, flags) {
            tracing::warn!("watching the socket: {errno}");
        }
    }

    /// Takes all connections that wait.
    fn accept(&mut self) {
        loop {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            match acceptfrom_with(&self.listener, flags) {
                Ok((socket, address)) => {
                    let name = address.and_then(|address| SocketAddrUnix::try_from(address).ok()).and_then(
                        |address| Some(String::from_utf8_lossy(address.abstract_name()?).into_owned()),
                    );
                    self.add_connection(socket, name.unwrap_or_default());
                }
                Err(Errno::AGAIN) => return,
                Err(Errno::INTR | Errno::CONNABORTED) => {}
                Err(errno) => {
                    tracing::warn!("accepting a client: {errno}; trying again soon");
                    self.accept_again = Some(self.now() + DESCRIPTOR_PAUSE);
                    self.watch_listener(epoll::EventFlags::empty());
                    return;
                }
            }
        }
    }

    fn carry_out_orders(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            self.ports_changed = true;
            match order {
                Order::Stop => self.stopping = true,
                Order::Kernel(nodes, answer) => self.attach_kernel(&nodes, answer),
                Order::Console(line, answer) => {
                    let result = self.console(&line);
                    // Who asked may have given up.
                    let _ = answer.send(result);
                }
            }
        }
    }

    /// Carries out a console line.
    fn console(&mut self, line: &str) -> Result<String, String> {
        match console::parse(line)? {
            Line::Empty => Ok(String::new()),
            Line::Help => Ok(HELP.into()),
            Line::Quit => {
                self.stopping = true;
                Ok(String::new())
            }
            Line::Wait(duration) => {
                self.frozen_until = Some(self.now() + duration);
                Ok(String::new())
            }
            Line::Attached => Ok(self.attached()),
            Line::Disconnect(number) if self.connections.contains_key(&number) => {
                self.disconnect(number);
                Ok(String::new())
            }
            Line::Disconnect(number) => Err(format!("no client {number}: `Attached` lists them")),
            Line::File(file) => self.console_file(&file),
            Line::Backend(command) => {
                let now = self.now();
                self.backend.command(&command, now)
            }
        }
    }

    /// Carries out the lines of a file until one fails.
    fn console_file(&mut self, file: &str) -> Result<String, String> {
        let text = fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
        let mut output = String::new();
        for (number, line) in text.lines().enumerate() {
            if line.trim_start().starts_with('!') {
                return Err(format!("{file}:{}: a file of commands cannot call another", number + 1));
            }
            output += &self.console(line).map_err(|error| format!("{file}:{}: {error}", number + 1))?;
        }
        Ok(output)
    }
}

impl Drop for Server {
    /// Removes what was made in the directory.
    fn drop(&mut self) {
        let _ = fs::remove_file(self.directory.join(SOCKET_NAME));
        let _ = fs::remove_dir_all(self.directory.join(requests::TREES));
    }
}

/// Whether nobody listens on a socket that is there.
fn is_deserted(path: &Path) -> bool {
    matches!(connect_to(path, false, SocketFlags::CLOEXEC), Err(Errno::CONNREFUSED))
}

/// Each client takes at least one descriptor.
fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if let Err(errno) = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }) {
        tracing::debug!("raising the limit of descriptors: {errno}");
    }
}

/// Borrow of a connection's socket.
fn fd(connection: &Connection) -> std::os::fd::BorrowedFd<'_> {
    connection.socket.as_fd()
}
