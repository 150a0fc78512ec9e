//! Takes back the access-log lines of our visitors from the rescue servers that served them.
//!
//! The core that received the POST has checked the fetch key; here each line is validated, marked
//! with the rescue server's name, and written to our own log. What is not a log line is counted and
//! thrown away: a rescue server may be old, broken, or a liar, and must not be able to forge ours.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use levee_observe::{AccessLog, HandedOver};

/// How many lines came back.
#[derive(Debug, Default)]
pub struct Counts {
    taken: AtomicU64,
    refused: AtomicU64,
}

impl Counts {
    /// Lines written to our log.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Lines that were none.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

/// Where the cores bring what rescue servers handed over.
#[derive(Clone, Debug)]
pub struct TakeOver {
    log: AccessLog,
    counts: Arc<Counts>,
}

impl TakeOver {
    /// Lines go to `log`.
    pub fn new(log: AccessLog) -> Self {
        Self {
            log,
            counts: Arc::default(),
        }
    }

    /// How many lines came back.
    pub fn counts(&self) -> Arc<Counts> {
        Arc::clone(&self.counts)
    }

    /// Takes the body of one POST by `rescue_server`. Costs a few microseconds a line; the body is at
    /// most one MiB.
    pub fn take(&self, body: &[u8], rescue_server: &str) {
        let handed_over = HandedOver::parse(body, rescue_server);
        self.counts
            .taken
            .fetch_add(handed_over.records.len() as u64, Ordering::Relaxed);
        self.counts
            .refused
            .fetch_add(handed_over.refused, Ordering::Relaxed);
        for record in handed_over.records {
            self.log.write(record);
        }
    }
}
