//! Lines that repeat are held back and counted (B70): of each place in the program and cause, a few lines a minute are written,
//! and one that counts the rest. What a round of the subnet manager complains of comes merged already.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, Once, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use mad::types::Timestamp;
use sm_core::merge::{Line, Merger};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::layer::{Context, Filter};

/// Complaints of one cause that are written in a minute.
const COMPLAINTS: u32 = 3;
/// Lines of one kind that tell what is going on.
const NEWS: u32 = 20;
/// How often it is looked whether a minute is over.
const TICK: Duration = Duration::from_secs(1);
/// The target of lines that count others.
const COUNTS: &str = "rsm::counts";

/// The levels whose lines are merged. Who asks for more wants each line.
const LEVELS: [Level; 3] = [Level::ERROR, Level::WARN, Level::INFO];

/// The filter; cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Merged(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    start: Instant,
    /// By level.
    mergers: Mutex<[Merger; LEVELS.len()]>,
    ticking: Once,
}

impl Merged {
    pub(super) fn new() -> Self {
        let mergers = [COMPLAINTS, COMPLAINTS, NEWS].map(Merger::new);
        Self(Arc::new(Shared { start: Instant::now(), mergers: Mutex::new(mergers), ticking: Once::new() }))
    }

    /// Writes what is held back: at the end.
    pub(super) fn tell_rest(&self) {
        self.0.tell(Merger::rest);
    }

    /// Whether a line may be written.
    fn passes(&self, metadata: &Metadata<'_>, text: &str, now: Timestamp) -> bool {
        let Some(level) = LEVELS.iter().position(|level| level == metadata.level()) else { return true };
        if metadata.target() == COUNTS {
            return true;
        }
        let place =
            format!("{}:{}", metadata.file().unwrap_or_default(), metadata.line().unwrap_or_default());
        let passes = self.0.lock()[level].note(&place, text, now);
        if !passes {
            self.0.ticking.call_once(|| {
                let shared = Arc::downgrade(&self.0);
                // Without the thread, lines that are held back are told at the end.
                let _ = thread::Builder::new().name("log".into()).spawn(move || tick(&shared));
            });
        }
        passes
    }
}

fn tick(shared: &Weak<Shared>) {
    loop {
        thread::sleep(TICK);
        let Some(shared) = shared.upgrade() else { return };
        let now = shared.now();
        shared.tell(|merger| merger.due(now));
    }
}

impl Shared {
    fn now(&self) -> Timestamp {
        Timestamp::from_start(self.start.elapsed())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, [Merger; LEVELS.len()]> {
        self.mergers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes lines with counts. The lock is not held meanwhile: each comes by the filter.
    fn tell(&self, take: impl Fn(&mut Merger) -> Vec<Line>) {
        let lines = self.lock().each_mut().map(take);
        let [errors, warnings, news] = lines;
        errors.iter().for_each(|line| tracing::error!(target: COUNTS, "{line}"));
        warnings.iter().for_each(|line| tracing::warn!(target: COUNTS, "{line}"));
        news.iter().for_each(|line| tracing::info!(target: COUNTS, "{line}"));
    }
}

impl<S: Subscriber> Filter<S> for Merged {
    fn enabled(&self, _: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        if !LEVELS.contains(event.metadata().level()) {
            return true;
        }
        let mut message = Message::default();
        event.record(&mut message);
        self.passes(event.metadata(), &message.0, self.0.now())
    }
}

/// The text of an event, without its fields.
#[derive(Default)]
struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            let _ = write!(self.0, "{value:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io;

    use tracing_subscriber::layer::SubscriberExt as _;
    use tracing_subscriber::{Layer as _, Registry, fmt};

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What is written in text and as JSON is the same lines, each with the full time.
    #[test]
    fn b70_lines_that_repeat_are_counted_in_either_form() {
        for json in [false, true] {
            let (merged, written) = (Merged::new(), Written::default());
            let writer = written.clone();
            let layer = fmt::layer().with_ansi(false).with_writer(move || writer.clone());
            let layer = if json { layer.json().flatten_event(true).boxed() } else { layer.boxed() };
            let subscriber = Registry::default().with(layer.with_filter(merged.clone()));
            tracing::subscriber::with_default(subscriber, || {
                for host in 0..1000 {
                    tracing::error!(code = host, "reading \"H{host}\" failed");
                    tracing::debug!("each detail {host}");
                }
                (0..30).for_each(|round| tracing::info!(round, "fabric configured"));
                tracing::warn!("once");
                merged.tell_rest();
            });
            let text = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
            let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
            assert_eq!(count("each detail"), 1000);
            assert_eq!(count("failed"), 4, "{text}");
            assert_eq!(count("(and 996 more like it: "), 1, "{text}");
            assert_eq!((count("fabric configured"), count("(and 9 more like it)")), (21, 1));
            assert_eq!(count("once"), 1);
            let year = |line: &str| line.contains("T") && line.contains("Z") && line.contains("20");
            assert!(text.lines().all(year), "times are those of ISO 8601, with the year");
        }
    }
}
