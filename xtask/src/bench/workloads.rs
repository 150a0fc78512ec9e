//! The workloads: what is asked of every server, and how it is known to have answered right.

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
    /// 64 connections that are kept, by wrk.
    Kept,
    /// A new connection for each request, 64 at a time, by wrk.
    New,
}

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
    ($($id:literal $bookkeeping:ident $door:ident $path:expr, $answer:expr, $load:ident:
       $about:literal;)*) => {
        /// Every workload, in the order of the table.
        pub const WORKLOADS: &[Workload] = &[$(Workload {
            id: $id, about: $about, bookkeeping: Bookkeeping::$bookkeeping, door: Door::$door, path: $path,
            answer: $answer, load: Load::$load,
        }),*];
    };
}

workloads! {
    "hot_1k" Off Files "/1k", Answer::File(1024), Kept: "1 KB from memory";
    "hot_10k" Off Files "/10k", Answer::File(10_240), Kept: "10 KB from memory";
    "hot_100k" Off Files "/100k", Answer::File(102_400), Kept: "100 KB from memory";
    "redirect" Off Files REDIRECTED, Answer::Redirect, Kept: "a redirect";
    "new_1k" Off Files "/1k", Answer::File(1024), New: "1 KB on a new connection";
    "new_redirect" Off Files REDIRECTED, Answer::Redirect, New: "a redirect on a new connection";
    "proxy_hit_10k" Off Cached "/10k", Answer::File(10_240), Kept: "10 KB, reverse proxy cache hit";
    "file_1m" Off Files "/1m", Answer::File(1_048_576), Kept: "1 MB file";
    "logged_10k" On Files "/10k", Answer::File(10_240), Kept:
    "10 KB from memory, with access log and metrics";
    "logged_redirect" On Files REDIRECTED, Answer::Redirect, Kept:
    "a redirect, with access log and metrics";
    "logged_new_1k" On Files "/1k", Answer::File(1024), New:
    "1 KB on a new connection, with access log and metrics";
    "logged_proxy_hit_10k" On Cached "/10k", Answer::File(10_240), Kept:
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
