//! Memory under churn: millions of distinct URLs go through a small cache, and the process is
//! weighed.
//!
//! It is weighed while all threads pause. What they have in their hands between two pauses, an
//! object that is not in the cache yet and those that it has just pushed out, is a server's and not
//! a cache's: `xtask/src/bench/churn.rs` weighs that with everything else.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use bytes::Bytes;
use levee_proxy::BareCache;
use levee_vocab::Random;

/// The cache's limit; 64 MiB is the default of `cache.memory`.
const LIMIT: u64 = 64 << 20;
const URLS: u64 = 10_000_000;
/// As many as fetch at the same time on a small machine.
const THREADS: u64 = 4;
/// URLs of each thread between two pauses.
const PAUSE: u64 = 5_000;
/// How far beyond the limit the process may grow.
const TOLERANCE: f64 = 0.05;

pub fn run(arguments: &[String]) -> Result<(), String> {
    let urls = match arguments.first() {
        Some(text) => text.parse().map_err(|_| format!("{text} is no number"))?,
        None => URLS,
    };
    let before = resident()?;
    let began = Instant::now();
    let cache = BareCache::new(LIMIT, 1 << 20);
    let most_counted = AtomicU64::new(0);
    let most_resident = AtomicU64::new(before);
    let pause = Barrier::new(THREADS as usize);
    // Each thread has as many, so that all of them pause as often.
    let rounds = urls.div_ceil(THREADS * PAUSE);
    let urls = rounds * THREADS * PAUSE;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (cache, most_counted, most_resident) = (&cache, &most_counted, &most_resident);
            let pause = &pause;
            scope.spawn(move || {
                // As the threads that fetch.
                levee_net::keep_nothing_freed();
                let mut random = Random::from_seed(thread);
                for number in (thread..urls).step_by(THREADS as usize) {
                    keep(cache, number, &mut random);
                    if number % 1000 == thread {
                        most_counted.fetch_max(cache.bytes().0, Ordering::Relaxed);
                    }
                    if (number / THREADS).is_multiple_of(PAUSE) {
                        pause.wait();
                        let now = resident().unwrap_or(u64::MAX);
                        most_resident.fetch_max(now, Ordering::Relaxed);
                        pause.wait();
                    }
                }
            });
        }
    });
    let counted = most_counted.into_inner();
    let grown = most_resident.into_inner() - before;
    let share = |bytes: u64| bytes as f64 / LIMIT as f64;
    println!(
        "{urls} distinct URLs through a cache of {LIMIT} bytes by {THREADS} threads, in {:.0?}",
        began.elapsed()
    );
    println!(
        "counted by the cache at most: {counted} bytes, {:.3} of the limit",
        share(counted)
    );
    println!(
        "the process grew by at most:  {grown} bytes, {:.3} of the limit",
        share(grown)
    );
    match counted <= LIMIT && share(grown) <= 1.0 + TOLERANCE {
        true => Ok(()),
        false => Err(format!("more than the limit and {TOLERANCE} of it")),
    }
}

/// Of a thousand objects one is up to a megabyte, fifty are pictures, the others small pages: sizes
/// that change all the time are what tears holes into a heap.
fn keep(cache: &BareCache, number: u64, random: &mut Random) {
    let target = format!(
        "/section-{}/article-{number}?page={}",
        number % 97,
        number % 7
    );
    let bytes = match random.within(0..1000) {
        0 => random.within(0..1 << 20),
        1..=50 => random.within(0..64 << 10),
        _ => random.within(100..4000),
    };
    let lines = "x-lines: of a head\r\n".repeat(1 + random.within(0..20) as usize);
    let body = vec![b'x'; bytes as usize];
    cache.keep(
        target.as_bytes(),
        Bytes::copy_from_slice(lines.as_bytes()),
        body.into(),
    );
    if number.is_multiple_of(3) {
        cache.ask(target.as_bytes());
    }
}

/// Bytes of this process in memory, by the kernel's book.
fn resident() -> Result<u64, String> {
    let text = std::fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kilobytes: u64 = number
        .and_then(|number| number.parse().ok())
        .ok_or("the kernel tells no size")?;
    Ok(kilobytes * 1024)
}
