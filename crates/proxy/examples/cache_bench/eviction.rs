//! Hit ratios of our cache and of others at several sizes.

use std::collections::HashMap;

use bytes::Bytes;
use levee_proxy::BareCache;

use crate::policies::{Clairvoyant, Lru, Policy, S3Fifo, TinyLfu};
use crate::traces::{self, Asked, BYTES_MAX};

/// Sizes of the cache, as parts of what all objects together would take.
const PARTS: [u64; 4] = [100, 30, 10, 3];
/// What a head of a cached response has.
const LINES: &[u8] = b"content-type: text/html; charset=utf-8\r\netag: \"0123456789abcdef\"\r\n\
    cache-control: max-age=60\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\nvia: 1.1 levee\r\n";
/// Bodies are cut from one block: the cache counts them all the same.
static BODY: [u8; BYTES_MAX as usize] = [0; BYTES_MAX as usize];

/// The share of requests, and of bytes, that were hits.
struct Ratios {
    requests: f64,
    bytes: f64,
}

pub fn run(arguments: &[String]) -> Result<(), String> {
    for path in arguments {
        table(path, &traces::read(path)?);
    }
    table(
        "a Zipf mix with one-time objects and a walk",
        &traces::mix(),
    );
    Ok(())
}

fn table(name: &str, requests: &[Asked]) {
    let overhead = overhead();
    let sizes: HashMap<u32, u32> = requests.iter().map(|one| (one.object, one.bytes)).collect();
    let cost = |bytes: u32| u64::from(bytes) + overhead;
    let footprint: u64 = sizes.values().map(|&bytes| cost(bytes)).sum();
    let mean = footprint / sizes.len() as u64;
    println!(
        "\n{name}: {} requests, {} objects, {:.1} MB; hits in % of requests / of bytes",
        requests.len(),
        sizes.len(),
        footprint as f64 / 1e6
    );
    println!(
        "{:>9} {:>14} {:>14} {:>14} {:>14} {:>14}",
        "size", "levee", "LRU", "S3-FIFO", "W-TinyLFU", "Belady"
    );
    let next = next_uses(requests);
    for part in PARTS {
        let limit = (footprint / part).max(1 << 20);
        let play = |policy: &mut dyn Policy| {
            let mut number = 0;
            ratios(requests, |asked| {
                number += 1;
                policy.ask(asked.object, cost(asked.bytes), next[number - 1])
            })
        };
        let all = [
            ours(limit, requests),
            play(&mut Lru::new(limit)),
            play(&mut S3Fifo::new(limit)),
            play(&mut TinyLfu::new(limit, limit / mean)),
            play(&mut Clairvoyant::new(limit)),
        ];
        print!("{:>6.1} MB", limit as f64 / 1e6);
        for one in all {
            print!(" {:>6.2} /{:>6.2}", one.requests * 100.0, one.bytes * 100.0);
        }
        println!();
    }
}

fn ours(limit: u64, requests: &[Asked]) -> Ratios {
    // As small as the largest object allows: a real cache of this size would be set up so.
    let object_max = u64::from(BYTES_MAX).min(limit / 8);
    let cache = BareCache::new(limit, object_max);
    ratios(requests, |asked| {
        let target = format!("/{}", asked.object);
        let was_there = cache.ask(target.as_bytes());
        if !was_there {
            let body = Bytes::from_static(&BODY[..asked.bytes as usize]);
            cache.keep(target.as_bytes(), Bytes::from_static(LINES), body);
        }
        was_there
    })
}

fn ratios(requests: &[Asked], mut ask: impl FnMut(&Asked) -> bool) -> Ratios {
    let (mut hits, mut hit_bytes, mut bytes) = (0_u64, 0_u64, 0_u64);
    for asked in requests {
        bytes += u64::from(asked.bytes);
        if ask(asked) {
            hits += 1;
            hit_bytes += u64::from(asked.bytes);
        }
    }
    Ratios {
        requests: hits as f64 / requests.len() as f64,
        bytes: hit_bytes as f64 / bytes as f64,
    }
}

/// The number of the request that asks for the same object next, for each request.
fn next_uses(requests: &[Asked]) -> Vec<u64> {
    let mut next = vec![u64::MAX; requests.len()];
    let mut seen: HashMap<u32, u64> = HashMap::new();
    for (number, asked) in requests.iter().enumerate().rev() {
        next[number] = seen.insert(asked.object, number as u64).unwrap_or(u64::MAX);
    }
    next
}

/// What our cache counts for an object beside its body, index included.
fn overhead() -> u64 {
    let cache = BareCache::new(64 << 20, 1 << 20);
    let before = cache.bytes().0;
    for number in 0..10_000 {
        let target = format!("/{number}");
        cache.keep(target.as_bytes(), Bytes::from_static(LINES), Bytes::new());
    }
    (cache.bytes().0 - before) / 10_000
}
