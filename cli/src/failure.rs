//! How a command fails: by what the caller does next. One line to standard error, and the exit code: 1, or 2 for usage.

use std::process::ExitCode;

/// Why a command did not succeed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command was not asked for in a way that can be meant.
    Usage(String),
    /// It was, and failed.
    Failed(anyhow::Error),
    /// It failed and has already said so in its output.
    Reported,
    /// A command that it ran failed with this exit code.
    Exit(u8),
    /// The reader of our output left, as `head` does: no failure at all.
    ReaderLeft,
}

/// What commands return.
pub(crate) type Outcome<T = ()> = Result<T, Failure>;

impl<E: Into<anyhow::Error>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

impl Failure {
    /// Says what went wrong and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        match self {
            Self::Usage(text) => {
                complain(&text);
                ExitCode::from(2)
            }
            Self::Failed(error) => {
                complain(&line(&error));
                ExitCode::FAILURE
            }
            Self::Reported => ExitCode::FAILURE,
            Self::Exit(code) => ExitCode::from(code),
            Self::ReaderLeft => ExitCode::SUCCESS,
        }
    }

    /// The same as text, for a log.
    pub(crate) fn into_text(self) -> String {
        match self {
            Self::Usage(text) => text,
            Self::Failed(error) => line(&error),
            Self::Reported => "failed".to_owned(),
            Self::Exit(code) => format!("exit code {code}"),
            Self::ReaderLeft => "the reader left".to_owned(),
        }
    }
}

/// An error and its causes. Some errors quote their cause, for those who show them alone: it isn't said twice.
fn line(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

/// One line to standard error; when even that fails there is nobody left to tell.
pub(crate) fn complain(text: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "rsm: {text}");
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::line;

    #[test]
    fn causes_are_said_once() {
        let denied = || std::io::Error::other("denied");
        let quoted = anyhow::Error::new(denied()).context("file: denied");
        assert_eq!(line(&quoted), "file: denied");
        let told = Err::<(), _>(denied()).context("file").context("reading");
        assert_eq!(line(&told.unwrap_err()), "reading: file: denied");
    }
}
