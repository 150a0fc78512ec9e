//! The workloads: what is asked of every server, and how it is known to have answered right.

use super::load::{Connections, Handshakes, Transport};
use super::servers::Door;

/// One workload.
#[derive(Clone, Copy, Debug)]
pub struct Workload {
    /// Its name on the command line and in the JSON.
    pub id: &'static str,
    /// What it is, for the table.
    pub about: &'static str,
    /// What servers do beside answering.
    pub bookkeeping: Bookkeeping,
    /// Where a server is asked.
    pub door: Door,
    /// The path that is asked for.
    pub path: &'static str,
    /// What must come.
    pub answer: Answer,
    /// How it is asked.
    pub load: Load,
}

/// Whether servers write access logs and count what they do, as on a real site.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bookkeeping {
    /// Neither, where a server can do without.
    Off,
    /// Both.
    On,
}

/// What an answer must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// 200 with a file of so many bytes.
    File(usize),
    /// A redirect to the host of [`REDIRECT_HOST`], with the path that was asked for.
    Redirect,
}

/// How the load is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// HTTP/1.1 by wrk, 64 requests at a time.
    Http(Connections, Transport),
    /// HTTP/2 over TLS by h2load, so many requests at a time on each of 16 connections.
    Http2(u32),
    /// A new TLS connection for each request, by our own lab.
    Handshakes(Handshakes),
    /// 10,000 connections that ask once and then stay.
    Idle,
    /// 1,000 readers that take 1 MB in sips, and ordinary visitors beside them.
    SlowReaders,
}

/// What is measured of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// Processor microseconds for each request.
    Processor,
    /// Bytes of memory for each connection.
    Memory,
}

impl Workload {
    /// Whether it needs a server that has just been started, for itself: memory that an earlier
    /// load left behind would hide what this one takes.
    pub const fn wants_a_fresh_server(&self) -> bool {
        match self.load {
            Load::Idle | Load::SlowReaders => true,
            Load::Http(..) | Load::Http2(_) | Load::Handshakes(_) => false,
        }
    }

    /// What it measures.
    pub const fn measure(&self) -> Measure {
        match self.load {
            Load::Idle => Measure::Memory,
            Load::Http(..) | Load::Http2(_) | Load::Handshakes(_) | Load::SlowReaders => {
                Measure::Processor
            }
        }
    }
}

const KEPT: Load = Load::Http(Connections::Kept, Transport::Clear);
const NEW: Load = Load::Http(Connections::New, Transport::Clear);
const TLS: Load = Load::Http(Connections::Kept, Transport::Tls);
const FULL: Load = Load::Handshakes(Handshakes::Full);
const RESUMED: Load = Load::Handshakes(Handshakes::Resumed);

/// Where redirects lead.
pub const REDIRECT_HOST: &str = "helper1.example.net";

/// The files that every server serves: name and size.
pub const FILES: &[(&str, usize)] = &[
    ("1k", 1024),
    ("10k", 10 * 1024),
    ("100k", 100 * 1024),
    ("1m", 1024 * 1024),
];

const REDIRECTED: &str = "/r/some/path/page-12345.html";

macro_rules! workloads {
    ($($id:literal $bookkeeping:ident $door:ident $path:expr, $answer:expr, $load:expr =>
       $about:literal;)*) => {
        /// Every workload, in the order of the table.
        pub const WORKLOADS: &[Workload] = &[$(Workload {
            id: $id, about: $about, bookkeeping: Bookkeeping::$bookkeeping, door: Door::$door, path: $path,
            answer: $answer, load: $load,
        }),*];
    };
}

workloads! {
    "hot_1k" Off Files "/1k", Answer::File(1024), KEPT => "1 KB from memory";
    "hot_10k" Off Files "/10k", Answer::File(10_240), KEPT => "10 KB from memory";
    "hot_100k" Off Files "/100k", Answer::File(102_400), KEPT => "100 KB from memory";
    "redirect" Off Files REDIRECTED, Answer::Redirect, KEPT => "a redirect";
    "new_1k" Off Files "/1k", Answer::File(1024), NEW => "1 KB on a new connection";
    "new_redirect" Off Files REDIRECTED, Answer::Redirect, NEW => "a redirect on a new connection";
    "proxy_hit_10k" Off Cached "/10k", Answer::File(10_240), KEPT => "10 KB, reverse proxy cache hit";
    "file_1m" Off Files "/1m", Answer::File(1_048_576), KEPT => "1 MB file";
    "paced_10k" Off Paced "/10k", Answer::File(10_240), KEPT =>
    "10 KB from memory, every byte paced (link.rate = 10 GB/s)";
    "https_10k" Off Tls "/10k", Answer::File(10_240), TLS => "10 KB over TLS";
    "https_resumed_10k" Off Tls "/10k", Answer::File(10_240), RESUMED =>
    "10 KB on a new TLS connection, resumed";
    "https_full_10k" Off Tls "/10k", Answer::File(10_240), FULL =>
    "10 KB on a new TLS connection, full handshake";
    "h2_10k" Off Tls "/10k", Answer::File(10_240), Load::Http2(4) => "10 KB over HTTP/2 and TLS";
    "h2_10k_m10" Off Tls "/10k", Answer::File(10_240), Load::Http2(10) =>
    "10 KB over HTTP/2 and TLS, 10 at a time on a connection";
    "h2_1k_m100" Off Tls "/1k", Answer::File(1024), Load::Http2(100) =>
    "1 KB over HTTP/2 and TLS, 100 at a time on a connection";
    "idle_10000" Off Files "/1k", Answer::File(1024), Load::Idle =>
    "10,000 idle connections: bytes of memory each";
    "slow_readers" Off Files "/1m", Answer::File(1_048_576), Load::SlowReaders =>
    "10 KB for ordinary visitors, beside 1,000 slow readers of 1 MB";
    "logged_10k" On Files "/10k", Answer::File(10_240), KEPT =>
    "10 KB from memory, with access log and metrics";
    "logged_redirect" On Files REDIRECTED, Answer::Redirect, KEPT =>
    "a redirect, with access log and metrics";
    "logged_new_1k" On Files "/1k", Answer::File(1024), NEW =>
    "1 KB on a new connection, with access log and metrics";
    "logged_proxy_hit_10k" On Cached "/10k", Answer::File(10_240), KEPT =>
    "10 KB, reverse proxy cache hit, with access log and metrics";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_workload_asks_for_a_file_that_is_there() {
        for (index, workload) in WORKLOADS.iter().enumerate() {
            let before = &WORKLOADS[..index];
            assert!(!before.iter().any(|other| other.id == workload.id));
            match workload.answer {
                Answer::File(bytes) => {
                    let name = workload.path.trim_start_matches('/');
                    assert!(FILES.contains(&(name, bytes)), "{}", workload.id);
                }
                Answer::Redirect => assert!(workload.path.starts_with("/r/")),
            }
        }
    }
}
