//! What a scenario leaves in files: a pcapng file with every packet at its arrival, and a text with a line for each event.
//! Times are virtual, from 0; the same seed gives the same bytes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use mad::transport::capture::{CaptureFile, Direction, Record};
use simulations::scenario::{Traced, Watch, What};

use crate::failure::Outcome;

/// Files under way. The first error of either is kept for the end.
pub(super) struct Trace(Arc<Mutex<Files>>);

struct Files {
    pcap: Option<CaptureFile<BufWriter<File>>>,
    text: Option<BufWriter<File>>,
    error: Option<std::io::Error>,
}

impl Trace {
    /// Begins the files that are asked for; `None` when none is.
    pub(super) fn start(pcap: Option<&Path>, text: Option<&Path>) -> Outcome<Option<Self>> {
        if pcap.is_none() && text.is_none() {
            return Ok(None);
        }
        let create = |path: &Path| -> Outcome<BufWriter<File>> {
            Ok(BufWriter::new(File::create(path).with_context(|| path.display().to_string())?))
        };
        let pcap = match pcap {
            Some(path) => {
                let file = CaptureFile::new(create(path)?, "simulated fabric");
                Some(file.with_context(|| path.display().to_string())?)
            }
            None => None,
        };
        let text = text.map(create).transpose()?;
        Ok(Some(Self(Arc::new(Mutex::new(Files { pcap, text, error: None })))))
    }

    /// What is to be shown the events.
    pub(super) fn watch(&self) -> Watch {
        let files = Arc::clone(&self.0);
        Box::new(move |event| {
            let mut files = files.lock().unwrap_or_else(PoisonError::into_inner);
            if files.error.is_none()
                && let Err(error) = files.note(event)
            {
                files.error = Some(error);
            }
        })
    }

    /// Writes out what is buffered.
    pub(super) fn finish(self) -> Outcome {
        let mut files = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match files.error.take() {
            Some(error) => Err(error).context("writing what happened")?,
            None => Ok(files.flush().context("writing what happened")?),
        }
    }
}

impl Files {
    fn note(&mut self, event: &Traced) -> std::io::Result<()> {
        if let Some(text) = &mut self.text {
            writeln!(text, "{event}")?;
        }
        if let (Some(file), What::Packet { at, node, packet }) = (&mut self.pcap, &event.what) {
            file.write(&Record {
                datagram: &packet.received(0, 0),
                direction: Direction::Inbound,
                local_lid: packet.dlid,
                time: Duration::from_nanos(event.when.as_nanos()),
                comment: &format!("arrives at {node}[{}]", at.port),
            })?;
        }
        Ok(())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.pcap.as_mut().map_or(Ok(()), CaptureFile::flush)?;
        self.text.as_mut().map_or(Ok(()), Write::flush)
    }
}
