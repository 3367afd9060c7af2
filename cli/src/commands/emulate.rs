//! `rsm emulate`: a simulated fabric in real time, for unmodified programs under the preload library, or with `--kernel` for a
//! real kernel and everything above it.

use std::io::IsTerminal;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{env, fs, process, thread};

use anyhow::Context;
use routing::formats;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use simulations::emulate::fabric::EmulatedFabric;
use simulations::emulate::run::{self, Emulation};
use simulations::emulate::server::Handle;
use simulations::emulate::sysfs::Presentation;
use simulations::world::{Config, World};
use sm_core::config::LogConfig;

use super::console::{self, Lines};
use crate::args::Emulate;
use crate::failure::{Failure, Outcome, complain};
use crate::{logging, out};

pub(super) fn run(args: &Emulate) -> Outcome {
    if let Some(line) = &args.send {
        return send(args.dir.as_deref(), line);
    }
    let Some(topology) = &args.topology else {
        return Err(Failure::Usage("a topology file is needed, or --send LINE".into()));
    };
    logging::init(&LogConfig { level: args.log_level, ..LogConfig::default() })?;
    let loaded = formats::load(topology).map_err(|error| Failure::Usage(error.to_string()))?;
    if let Some(wrong) = &loaded.wrong_lid {
        tracing::warn!("{wrong}");
    }
    for warning in &loaded.warnings {
        tracing::warn!("{warning}");
    }
    let library = match (&args.kernel, args.node.as_str()) {
        // Programs use the kernel's own devices.
        (Some(_), "") => None,
        _ => Some(run::preload_library()?),
    };
    let config = Config { seed: args.seed, loss: f64::from(args.loss) / 100.0, ..Config::instant() };
    let fabric = EmulatedFabric::new(World::new(&loaded.fabric, config));
    let directory = Directory::new(args.dir.clone())?;
    let presentation = if args.smi_device { Presentation::SmiApart } else { Presentation::One };
    let emulation = Emulation::start_as(&directory.path, Box::new(fabric), presentation)?;
    let mut text = String::new();
    if let Some(nodes) = &args.kernel {
        let names = emulation.handle().attach_kernel(nodes).context("--kernel")?;
        text += &format!("# Adapters of the kernel: {}\n", names.join(" "));
    }
    let attach = |command: &mut Command| match &library {
        Some(library) => run::attach(command, library, emulation.handle().directory(), &args.node),
        None => {
            command.env(run::ENV_EMULATE, emulation.handle().directory());
        }
    };
    match args.command.split_first() {
        Some((program, rest)) => inside(Command::new(program).args(rest), attach),
        None => {
            let mut example = Command::new("");
            attach(&mut example);
            serve(emulation, text, &example)
        }
    }
}

/// A console line to an emulator that runs.
fn send(directory: Option<&Path>, line: &str) -> Outcome {
    let given = directory.map(PathBuf::from).or_else(|| env::var_os(run::ENV_EMULATE).map(PathBuf::from));
    if line.len() > console::LONGEST {
        return Err(Failure::Usage(console::too_long()));
    }
    let directory = given
        .ok_or_else(|| Failure::Usage(format!("which emulator? Give --dir, or set {}", run::ENV_EMULATE)))?;
    match run::console(&directory, line).with_context(|| format!("{}", directory.display()))? {
        Ok(text) => out::write(&text),
        Err(text) => Err(Failure::Failed(anyhow::anyhow!(text))),
    }
}

/// Runs a command in the emulator; its exit code is ours.
fn inside(command: &mut Command, attach: impl FnOnce(&mut Command)) -> Outcome {
    attach(command);
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().with_context(|| format!("starting {program}"))?;
    // The terminal's interrupt goes to the command as well, which decides; we end when it has ended.
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("signals")?;
    let status = loop {
        if let Some(status) = child.try_wait().with_context(|| format!("waiting for {program}"))? {
            break status;
        }
        if signals.pending().any(|signal| signal == SIGTERM) {
            child.kill().with_context(|| format!("ending {program}"))?;
        }
        thread::sleep(Duration::from_millis(5));
    };
    match status.code().or_else(|| status.signal().map(|signal| 128 + signal)) {
        Some(0) => Ok(()),
        code => Err(Failure::Exit(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))),
    }
}

/// Serves until `Quit` or a signal, with the console on standard input. `example` has the environment of programs inside.
fn serve(emulation: Emulation, mut text: String, example: &Command) -> Outcome {
    let handle = emulation.handle().clone();
    text += "# The fabric is up. In another shell:\n";
    for (name, value) in example.get_envs() {
        let (name, value) = (name.to_string_lossy(), value.unwrap_or_default().to_string_lossy());
        text += &format!("export {name}='{}'\n", value.replace('\'', r"'\''"));
    }
    out::write(&text)?;
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("signals")?;
    let stopped = handle.clone();
    thread::Builder::new().name("signals".into()).spawn(move || {
        if signals.forever().next().is_some() {
            stopped.stop();
        }
    })?;
    thread::Builder::new().name("console".into()).spawn(move || console(&handle))?;
    Ok(emulation.wait()?)
}

/// Carries out the lines of standard input. Its end is not the emulator's.
fn console(handle: &Handle) {
    let stdin = std::io::stdin();
    let prompt = || {
        if stdin.is_terminal() {
            let _ = out::write("rsm> ");
        }
    };
    prompt();
    for line in Lines::new(stdin.lock()) {
        match line.and_then(|line| handle.command(&line)) {
            Ok(text) => {
                let _ = out::write(&text);
            }
            Err(text) => complain(&text),
        }
        prompt();
    }
}

/// The emulator's directory; one of our own making goes with us.
struct Directory {
    path: PathBuf,
    ours: bool,
}

impl Directory {
    fn new(given: Option<PathBuf>) -> Outcome<Self> {
        let ours = given.is_none();
        let path = given.unwrap_or_else(|| env::temp_dir().join(format!("rsm-emulate-{}", process::id())));
        if ours {
            fs::create_dir(&path).with_context(|| format!("{}", path.display()))?;
        }
        Ok(Self { path, ours })
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        if self.ours {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}
