//! What became of every request of a crowd.
//!
//! Each request that a visit calls for has exactly one record in the end, also when it was never
//! asked for because its page did not come. Two crowds of one schedule therefore offer the same
//! number of requests, however the sites fare.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::client::Failure;

/// The records of one crowd, growing while it runs.
#[derive(Debug)]
pub struct Ledger {
    start: Instant,
    book: Mutex<Book>,
}

/// One request. Times count from the start of the crowd.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Record {
    /// What was asked for.
    pub kind: Asked,
    /// When the visit began that it belongs to.
    pub arrived: Duration,
    /// When it was meant to be asked: latency counts from here.
    pub asked: Duration,
    /// When it was whole, or given up.
    pub ended: Duration,
    /// The first redirect on its way: when it was whole, and its bytes on the wire.
    pub redirected: Option<(Duration, u64)>,
    /// How it ended.
    pub result: Result<Answer, Failure>,
}

/// A request of a visit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// HEAD of the post.
    PostHead,
    /// GET of the post by a link preview fetcher.
    Post,
    /// GET of the post's preview image.
    Preview,
    /// A reader's page.
    Page,
    /// An image of a reader's page.
    Image,
    /// A single object.
    Single,
}

/// An answer that was whole and right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Bytes of its body.
    pub bytes: u64,
    /// Bytes on the wire, with its head.
    pub wire_bytes: u64,
    /// Port of the server that gave it.
    pub port: u16,
}

/// How a crowd fares so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Requests that the visits so far call for.
    pub offered: u64,
    /// Whole and right answers.
    pub answered: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Answers within the last two seconds, per second.
    pub answered_rate: f64,
    /// Body bytes of them, per second.
    pub bytes_rate: f64,
    /// When the first redirect was whole.
    pub first_redirect: Option<Duration>,
}

#[derive(Debug, Default)]
struct Book {
    records: Vec<Record>,
    offered: u64,
    answered: u64,
    lag_max: Duration,
    first_redirect: Option<Duration>,
}

/// Long enough to be steady, short enough to be now.
const RATE_WINDOW: Duration = Duration::from_secs(2);

impl Ledger {
    /// An empty ledger of a crowd that starts at `start`.
    pub fn since(start: Instant) -> Self {
        Self {
            start,
            book: Mutex::default(),
        }
    }

    /// Start of the crowd.
    pub const fn start(&self) -> Instant {
        self.start
    }

    /// Time since the start.
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// Notes that a visit began, `lag` after it should have, which calls for `requests`.
    pub fn offer(&self, requests: u64, lag: Duration) {
        let mut book = self.open();
        book.offered += requests;
        book.lag_max = book.lag_max.max(lag);
    }

    /// Notes the end of a request.
    pub fn enter(&self, record: Record) {
        let mut book = self.open();
        book.answered += u64::from(record.result.is_ok());
        if let Some((at, _)) = record.redirected {
            book.first_redirect = Some(book.first_redirect.map_or(at, |first| first.min(at)));
        }
        book.records.push(record);
    }

    /// How it stands.
    pub fn progress(&self) -> Progress {
        let now = self.now();
        let book = self.open();
        let since = now.saturating_sub(RATE_WINDOW);
        // Records come in the order of their ends, so the recent ones are last.
        let recent = book.records.iter().rev();
        let recent = recent.take_while(|record| record.ended >= since);
        let answers: Vec<u64> = recent
            .filter_map(|record| record.result.ok().map(|answer| answer.bytes))
            .collect();
        let seconds = RATE_WINDOW.as_secs_f64();
        Progress {
            offered: book.offered,
            answered: book.answered,
            failed: book.records.len() as u64 - book.answered,
            answered_rate: answers.len() as f64 / seconds,
            bytes_rate: answers.iter().sum::<u64>() as f64 / seconds,
            first_redirect: book.first_redirect,
        }
    }

    /// All records so far.
    pub fn records(&self) -> Vec<Record> {
        self.open().records.clone()
    }

    /// The most by which a visit began later than it should have: whether the crowd's own
    /// machinery kept up.
    pub fn lag_max(&self) -> Duration {
        self.open().lag_max
    }

    fn open(&self) -> std::sync::MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
