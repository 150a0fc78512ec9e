//! Sites that register all the time at whichever registry answers, and somebody who looks for them
//! all the time.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{JoinHandle, park_timeout};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::hosts::Host;
use crate::registries::Talk;

/// What is found, by name: the free rate tells which registration it was.
pub type Offers = BTreeMap<String, u64>;

/// Each site registers as often; a real one takes ten seconds.
const PERIOD: Duration = Duration::from_millis(500);

/// Counted by all sites and lookers together.
#[derive(Default)]
pub struct Counts {
    pub registered: AtomicU64,
    /// Registrations for which another registry had to be asked.
    pub elsewhere: AtomicU64,
    pub looks: AtomicU64,
    /// Sites that a look should have found.
    pub missed: AtomicU64,
    stop: AtomicBool,
}

impl Counts {
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    fn goes_on(&self) -> bool {
        !self.stop.load(Ordering::Relaxed)
    }
}

/// Starts a site on `host`, which asks the registries in this order. In the end, what it said last.
pub fn start(
    host: &Host,
    name: &str,
    registries: Vec<SocketAddr>,
    counts: &Arc<Counts>,
) -> JoinHandle<(String, u64)> {
    let (name, address) = (name.to_owned(), host.address().to_string());
    let counts = Arc::clone(counts);
    host.spawn(move || {
        let mut free = 1000;
        loop {
            free += 1;
            // The last word must be one that was taken.
            while !registers(&name, (&address, free), &registries, &counts) {}
            if !counts.goes_on() {
                return (name, free);
            }
            park_timeout(PERIOD);
        }
    })
}

fn registers(
    name: &str,
    (address, free): (&str, u64),
    registries: &[SocketAddr],
    counts: &Counts,
) -> bool {
    let request = registration(name, address, free);
    for (place, registry) in registries.iter().enumerate() {
        let answer = Talk::with(*registry).and_then(|mut talk| talk.ask(&request));
        let Some(answer) = answer else { continue };
        assert_eq!(answer, ["200 OK 20"], "{request}");
        counts.registered.fetch_add(1, Ordering::Relaxed);
        let count = u64::from(place > 0);
        counts.elsewhere.fetch_add(count, Ordering::Relaxed);
        return true;
    }
    false
}

/// The line of a site at `address`.
pub fn registration(name: &str, address: &str, free: u64) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let stamp = now.as_millis();
    format!("REGISTER {name} 80 {address} 7401 {free} 20 stamp={stamp}")
}

/// Everybody whom this registry knows; none where it does not answer.
pub fn offers(registry: SocketAddr) -> Option<Offers> {
    let lines = Talk::with(registry)?.ask("SEARCH 64")?;
    let offer = |line: &String| {
        let words: Vec<&str> = line.split(' ').collect();
        (words[2].to_owned(), words[6].parse().unwrap())
    };
    let entries = lines.iter().filter(|line| line.starts_with("210 "));
    Some(entries.map(offer).collect())
}

/// Looks from `host` for `names` at `registry`, ten times a second, and counts whom it misses.
pub fn look(
    host: &Host,
    registry: SocketAddr,
    names: Vec<String>,
    counts: &Arc<Counts>,
) -> JoinHandle<()> {
    let counts = Arc::clone(counts);
    host.spawn(move || {
        while counts.goes_on() {
            // A registry that is gone finds nobody, and loses nobody either.
            if let Some(found) = offers(registry) {
                let missed = names.iter().filter(|name| !found.contains_key(*name));
                let missed = missed.count() as u64;
                counts.missed.fetch_add(missed, Ordering::Relaxed);
                counts.looks.fetch_add(1, Ordering::Relaxed);
            }
            park_timeout(Duration::from_millis(100));
        }
    })
}
