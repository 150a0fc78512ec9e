//! Loads of our own lab: a TLS handshake for each request, and connections that stay.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use super::{Seen, Target, bounded};
use crate::bench::process::{Program, Running, User};
use crate::command::{Failure, capture};

/// Kinds of TLS handshakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handshakes {
    /// Certificate and signature every time.
    Full,
    /// With tickets of earlier connections.
    Resumed,
}

/// The first connection of each thread of the generator has no ticket yet.
const FIRST_CONNECTIONS: u64 = 16;

/// A new TLS connection for each request.
pub fn handshakes(target: &Target, path: &str, kind: Handshakes) -> Result<Seen, Failure> {
    let name = match kind {
        Handshakes::Full => "full",
        Handshakes::Resumed => "resumed",
    };
    let mut command = bounded(target);
    command
        .args([&target.lab])
        .args(["load", "tls", "--handshakes", name, "--path", path])
        .args(["--address", &format!("127.0.0.1:{}", target.port)])
        .args([
            "--host",
            &target.host,
            "--seconds",
            &target.seconds.to_string(),
        ]);
    let text = capture(&mut command)?;
    parse(&text, kind).ok_or_else(|| Failure::Unexpected {
        story: format!("the lab said nothing that we understand:\n{text}"),
    })
}

fn parse(text: &str, kind: Handshakes) -> Option<Seen> {
    let requests = value(text, "requests")?;
    let of_other_kind = match kind {
        Handshakes::Full => value(text, "resumed")?,
        Handshakes::Resumed => value(text, "full")?.saturating_sub(FIRST_CONNECTIONS),
    };
    // Some servers give new tickets only with a full handshake, and so have some of those between;
    // where most are of the other kind, something is wrong with the measurement.
    let wrong_kind = match of_other_kind > requests / 2 {
        true => of_other_kind,
        false => 0,
    };
    Some(Seen {
        requests,
        errors: value(text, "errors")? + wrong_kind,
        rate: requests as f64 * 1000.0 / value(text, "milliseconds")? as f64,
        p50_us: value(text, "p50_us")? as f64,
        p99_us: value(text, "p99_us")? as f64,
    })
}

/// The number after `name=`.
fn value(text: &str, name: &str) -> Option<u64> {
    let words = text.split_whitespace();
    let mut pairs = words.filter_map(|word| word.split_once('='));
    pairs.find(|(one, _)| *one == name)?.1.parse().ok()
}

/// Connections that stay until this is dropped.
#[derive(Debug)]
pub struct Held {
    _running: Running,
    /// How many there are.
    pub connections: u64,
    /// How many were refused or lost.
    pub errors: u64,
}

/// Ten thousand requests one after the other take a second or two.
const READY_WITHIN: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

impl Held {
    /// Opens `count` connections of a kind, `idle` or `slow`, and waits until they stand.
    pub fn open(target: &Target, kind: &str, path: &str, count: u32) -> Result<Self, Failure> {
        let folder = target.openssl_conf.parent().unwrap_or(Path::new("/"));
        let log = folder.join("held.log");
        let _ = fs::remove_file(&log);
        let program = Program {
            program: target.lab.clone(),
            arguments: [
                "load",
                kind,
                "--address",
                &format!("127.0.0.1:{}", target.port),
                "--host",
                &target.host,
                "--path",
                path,
                "--connections",
                &count.to_string(),
            ]
            .map(str::to_owned)
            .to_vec(),
            cores: target.cores.clone(),
            user: User::Ourselves,
            weight: 0,
        };
        let mut running = program.start(folder, &log)?;
        let deadline = Instant::now() + READY_WITHIN;
        loop {
            let said = fs::read_to_string(&log).unwrap_or_default();
            if let Some(line) = said.lines().find(|line| line.starts_with("ready ")) {
                return Ok(Self {
                    _running: running,
                    connections: value(line, "connections").unwrap_or_default(),
                    errors: value(line, "errors").unwrap_or_default(),
                });
            }
            if running.has_ended() || Instant::now() > deadline {
                return Err(Failure::Unexpected {
                    story: format!("the load `{kind}` did not come up; it said:\n{said}"),
                });
            }
            thread::sleep(LOOK);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handshakes_that_are_mostly_of_the_other_kind_are_errors() {
        let line =
            "requests=1000 errors=2 milliseconds=500 p50_us=90 p99_us=400 full=66 resumed=934";
        let seen = parse(line, Handshakes::Resumed).unwrap();
        assert_eq!((seen.requests, seen.errors, seen.rate), (1000, 2, 2000.0));
        let seen = parse(line, Handshakes::Full).unwrap();
        assert_eq!(seen.errors, 936);
        assert_eq!(parse("requests=1000", Handshakes::Full), None);
    }
}
