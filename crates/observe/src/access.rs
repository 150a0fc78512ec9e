//! One line of the access log: what a request asked for and what became of it.
//!
//! A core fills in an [`AccessRecord`] when a response is done and hands it to the log's writer
//! thread. Short texts stand inside the record, so that the usual request costs no allocation.
//! Rendering and reading back are in `access/`, the writer thread in `access_log.rs`.

mod combined;
mod handed_over;
mod json;
mod text;

use std::fmt;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

pub use handed_over::{HANDED_OVER_LINE_BYTES_MAX, HANDED_OVER_LINES_MAX, HandedOver};
pub use text::LogText;

/// Everything that the access log says about one request.
///
/// A text that was not sent is empty; the log shows it as `-`.
#[derive(Clone, Debug, PartialEq)]
pub struct AccessRecord {
    /// Address of the visitor.
    pub remote: IpAddr,
    /// When the head of the request was complete.
    pub at: SystemTime,
    /// `GET`.
    pub method: LogText<8>,
    /// Path and query as they were sent.
    pub target: LogText<96>,
    /// Version of the request.
    pub version: LogVersion,
    /// Status of the response; 0 when the connection closed without one.
    pub status: u16,
    /// Bytes of the response that were sent, head too.
    pub bytes: u64,
    /// Referer header.
    pub referer: LogText<64>,
    /// User-Agent header.
    pub user_agent: LogText<128>,
    /// Host header.
    pub host: LogText<48>,
    /// What the object cache knew.
    pub cache: CacheResult,
    /// What kind of request it was.
    pub class: RequestClass,
    /// Whose request it was.
    pub visitor: VisitorKind,
    /// Rescue server: of a redirect the alias that the visitor was sent to, of a line that was
    /// handed over the name of the server that answered. Empty otherwise.
    pub rescue_server: LogText<48>,
    /// Time from the complete head until the first byte was allowed to leave.
    pub wait: Duration,
    /// Time from the complete head to the last byte.
    pub total: Duration,
    /// Number of the request, unique within this process.
    pub request_id: u64,
}

/// Version of HTTP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogVersion {
    /// HTTP/1.0.
    Http10,
    /// HTTP/1.1.
    Http11,
    /// HTTP/2.
    Http2,
    /// HTTP/3.
    Http3,
}

/// What the object cache knew about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheResult {
    /// The cache was not asked.
    NotAsked,
    /// It was there and fresh.
    Hit,
    /// It was not there.
    Miss,
    /// It was there, too old, and sent all the same.
    Stale,
    /// It came with a fetch that another request had begun.
    Collapsed,
}

/// What kind of request it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestClass {
    /// A page or file of our own site.
    Page,
    /// A visitor was sent to a rescue server, or from an expired alias back to its origin.
    Redirect,
    /// A rescue server fetched from us.
    Fetch,
    /// An origin had us hold a copy.
    Copy,
    /// Refused for lack of capacity.
    Refusal,
    /// Answered for an origin that is rescued: by us, or for us when the line was handed over.
    Rescue,
}

/// Whose request it was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VisitorKind {
    /// A reader's.
    #[default]
    Reader,
    /// A crawler's, by what it says of itself.
    CrawlerByName,
    /// A crawler's, by what its block of addresses asks for.
    CrawlerByBehaviour,
}

/// How lines are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// The combined format of NCSA and Apache, which goaccess and fail2ban read.
    #[default]
    Combined,
    /// One JSON object a line, with every field.
    Json,
}

impl AccessRecord {
    /// Appends one line in `format`, with its newline, to `out`. Nothing that a visitor sent can
    /// end the line or a field of it early.
    pub fn render(&self, format: LogFormat, out: &mut Vec<u8>) {
        match format {
            LogFormat::Combined => combined::render(self, out),
            LogFormat::Json => json::render(self, out),
        }
    }
}

impl LogVersion {
    const ALL: [Self; 4] = [Self::Http10, Self::Http11, Self::Http2, Self::Http3];

    fn as_str(self) -> &'static str {
        match self {
            Self::Http10 => "HTTP/1.0",
            Self::Http11 => "HTTP/1.1",
            Self::Http2 => "HTTP/2.0",
            Self::Http3 => "HTTP/3.0",
        }
    }
}

impl VisitorKind {
    const ALL: [Self; 3] = [Self::Reader, Self::CrawlerByName, Self::CrawlerByBehaviour];

    /// The one of this name; a reader where the name is none.
    fn of(name: &str) -> Self {
        let mut all = Self::ALL.into_iter();
        all.find(|kind| kind.as_str() == name).unwrap_or_default()
    }

    const fn as_str(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::CrawlerByName => "crawler by name",
            Self::CrawlerByBehaviour => "crawler by behaviour",
        }
    }
}

impl fmt::Display for VisitorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl CacheResult {
    const ALL: [Self; 5] = [
        Self::NotAsked,
        Self::Hit,
        Self::Miss,
        Self::Stale,
        Self::Collapsed,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::NotAsked => "-",
            Self::Hit => "hit",
            Self::Miss => "miss",
            Self::Stale => "stale",
            Self::Collapsed => "collapsed",
        }
    }
}

impl RequestClass {
    fn as_str(self) -> &'static str {
        match self {
            Self::Page => "page",
            Self::Redirect => "redirect",
            Self::Fetch => "fetch",
            Self::Copy => "copy",
            Self::Refusal => "refusal",
            Self::Rescue => "rescue",
        }
    }
}

impl fmt::Display for LogVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for CacheResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for RequestClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
