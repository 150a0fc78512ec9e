//! The log of the server itself: what happened, for whoever must act.
//!
//! `error` someone must act; `warn` we coped; `info` a phase changed; `debug` one request; `trace`
//! bytes. It goes to standard error, because standard output belongs to the access log.

use std::io::{self, IsTerminal};

use thiserror::Error;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::util::SubscriberInitExt;

/// How the lines look.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoggingStyle {
    /// For people.
    #[default]
    Plain,
    /// One JSON object a line.
    Json,
}

/// Logging could not be started.
#[derive(Debug, Error)]
pub enum LoggingError {
    /// The filter is wrong.
    #[error(
        "log level `{given}` is not understood: {cause}; give error, warn, info, debug or trace"
    )]
    Filter {
        /// What was given.
        given: String,
        /// Why it is wrong.
        cause: tracing_subscriber::filter::ParseError,
    },
    /// Something in this process has set up logging before.
    #[error("logging is set up already")]
    AlreadySet,
}

/// Sets up logging for the whole process. `filter` is a level, or a list as tracing knows it:
/// `info,levee_proxy=debug`.
pub fn start_logging(style: LoggingStyle, filter: &str) -> Result<(), LoggingError> {
    let filter = EnvFilter::try_new(filter).map_err(|cause| LoggingError::Filter {
        given: filter.to_owned(),
        cause,
    })?;
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal());
    let started = match style {
        LoggingStyle::Plain => lines.finish().try_init(),
        LoggingStyle::Json => lines.json().finish().try_init(),
    };
    started.map_err(|_| LoggingError::AlreadySet)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_level_is_told_in_a_sentence() {
        let error = start_logging(LoggingStyle::Plain, "a=b=c").expect_err("not a filter");
        assert!(
            error
                .to_string()
                .starts_with("log level `a=b=c` is not understood")
        );
    }
}
