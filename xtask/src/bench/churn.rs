//! `bench memory`, second part: distinct URLs through the real server, whose process is weighed.
//!
//! ```text
//!  clients, one connection each ──▶ levee, a reverse proxy ──▶ an application of ours
//!                                      └─ RssAnon, now and then
//! ```
//!
//! The first part weighs the cache alone (`crates/proxy/examples/cache_bench/memory.rs`). Here is
//! everything that a miss needs beside it: connections, flights, bodies on their way, threads. The
//! same load goes through two servers whose caches differ in nothing but their limit: what a miss
//! needs is the same in both, and what one has grown more than the other is the larger cache's.
//! Memory that the process shares with its file on disk is not counted: it is the program.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use crate::command::Failure;
use crate::forward;
use crate::server::Server;
use crate::workspace::{Workspace, failed};

/// Of the URLs of the first part one in so many: each is a request and a fetch.
const SHARE: u64 = 10;
/// URLs of the first part where none are given.
const URLS: u64 = 10_000_000;
/// Limits of the small cache and the large one; this is the default of `cache.memory`.
const LIMITS: [u64; 2] = [8 << 20, 64 << 20];
/// How far beyond the limit the cache may grow.
const TOLERANCE: f64 = 0.05;
const CLIENTS: u64 = 8;
/// Requests between two looks at the process.
const LOOK: u64 = 2_000;
/// Requests before the first look, for what a server makes once.
const WARM_UP: u64 = 64;

/// Sends a tenth as many URLs as `arguments` say through levees of its own.
pub fn run(workspace: &Workspace, arguments: &[String]) -> Result<(), Failure> {
    let urls = arguments.first().and_then(|text| text.parse().ok());
    let urls = urls.unwrap_or(URLS) / SHARE;
    forward::build(workspace)?;
    let folder = workspace.fresh_folder("churn")?;
    let port = application().map_err(failed("listen for", &folder))?;
    println!("{urls} distinct URLs through levee, {CLIENTS} clients");
    let mut grown = [0; 2];
    for (limit, grown) in LIMITS.into_iter().zip(&mut grown) {
        let settings = folder.join("levee.toml");
        fs::write(&settings, settings_text(port, limit)).map_err(failed("write", &settings))?;
        let server = Server::start(workspace, &folder, "levee.toml")?;
        *grown = churn(&server, urls)?;
        println!("with a cache of {limit} bytes its process grew by at most {grown} bytes");
    }
    let share = grown[1].saturating_sub(grown[0]) as f64 / (LIMITS[1] - LIMITS[0]) as f64;
    println!("the larger cache's growth, of its larger limit: {share:.3}");
    match share <= 1.0 + TOLERANCE {
        true => Ok(()),
        false => Err(Failure::Unexpected {
            story: format!("more than {TOLERANCE} beyond the limit"),
        }),
    }
}

fn settings_text(application: u16, limit: u64) -> String {
    format!(
        "[site]\nname = \"site.localhost\"\nlisten = [\"127.0.0.1:0\"]\n\
         upstream = \"http://127.0.0.1:{application}\"\n\n\
         [admin]\nlisten = \"127.0.0.1:0\"\n\n[cache]\nmemory = \"{} MiB\"\n",
        limit >> 20
    )
}

/// Sends `urls` through `server`; gives the bytes that its process grew by when it was largest.
fn churn(server: &Server, urls: u64) -> Result<u64, Failure> {
    let asked = |error: std::io::Error| Failure::Unexpected {
        story: format!("a request failed: {error}"),
    };
    ask(server.port, 0..WARM_UP).map_err(asked)?;
    let before = resident(server.id())?;
    let (next, most) = (AtomicU64::new(WARM_UP), AtomicU64::new(before));
    let failures: Vec<std::io::Error> = thread::scope(|scope| {
        let client = || {
            loop {
                let first = next.fetch_add(LOOK, Ordering::Relaxed);
                if first >= urls {
                    return None;
                }
                if let Err(error) = ask(server.port, first..urls.min(first + LOOK)) {
                    return Some(error);
                }
                let now = resident(server.id()).unwrap_or(u64::MAX);
                most.fetch_max(now, Ordering::Relaxed);
            }
        };
        let clients: Vec<_> = (0..CLIENTS).map(|_| scope.spawn(client)).collect();
        let ends = clients.into_iter().filter_map(|client| client.join().ok());
        ends.flatten().collect()
    });
    match failures.into_iter().next() {
        Some(error) => Err(asked(error)),
        None => Ok(most.into_inner() - before),
    }
}

/// Asks for the pages with these numbers on a connection of its own.
fn ask(port: u16, numbers: std::ops::Range<u64>) -> std::io::Result<()> {
    let mut writer = TcpStream::connect(("127.0.0.1", port))?;
    let mut reader = BufReader::new(writer.try_clone()?);
    for number in numbers {
        let section = number % 97;
        let line = format!("GET /section-{section}/article-{number} HTTP/1.1");
        // In one piece: several small ones would wait for each other's acknowledgements.
        writer.write_all(format!("{line}\r\nHost: site.localhost\r\n\r\n").as_bytes())?;
        let head = read_head(&mut reader)?;
        let length = head.lines().find_map(|line| {
            let (name, value) = line.split_once(": ")?;
            let is_length = name.eq_ignore_ascii_case("content-length");
            is_length.then(|| value.parse::<u64>().ok()).flatten()
        });
        let wanted = bytes_of(number);
        if !head.starts_with("HTTP/1.1 200 ") || length != Some(wanted) {
            return Err(std::io::Error::other(format!("page {number}: {head}")));
        }
        std::io::copy(&mut (&mut reader).take(wanted), &mut std::io::sink())?;
    }
    Ok(())
}

/// An application with as many pages as are asked for; gives its port. Its threads end with us.
fn application() -> std::io::Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0))?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A connection that breaks shows at the other end, where answers are checked.
            thread::spawn(move || serve(stream));
        }
    });
    Ok(port)
}

fn serve(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream.try_clone()?);
    loop {
        let head = read_head(&mut reader)?;
        let target = head.split(' ').nth(1).unwrap_or_default();
        let number = target.rsplit('-').next().and_then(|text| text.parse().ok());
        let Some(number) = number else {
            return Ok(());
        };
        let bytes = bytes_of(number);
        let mut answer = format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=3600\r\nContent-Length: {bytes}\r\n\r\n"
        )
        .into_bytes();
        answer.resize(answer.len() + bytes as usize, b'x');
        stream.write_all(&answer)?;
    }
}

/// Size of a page: of a thousand one is up to a megabyte, fifty are pictures, the others small.
fn bytes_of(number: u64) -> u64 {
    // The finaliser of splitmix64, so that neighbours differ.
    let mixed = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    let size = mixed >> 10;
    match mixed % 1000 {
        0 => size % (1 << 20),
        1..=50 => size % (64 << 10),
        _ => 100 + size % 3900,
    }
}

/// A head with the empty line that ends it.
fn read_head(reader: &mut impl BufRead) -> std::io::Result<String> {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(head)
}

/// Bytes that a process has for itself, by the kernel's book.
fn resident(process: u32) -> Result<u64, Failure> {
    let path = format!("/proc/{process}/status");
    let text = fs::read_to_string(&path).map_err(failed("read", path.as_ref()))?;
    let line = text.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    let kilobytes: Option<u64> = number.and_then(|number| number.parse().ok());
    kilobytes
        .map(|kilobytes| kilobytes * 1024)
        .ok_or_else(|| Failure::Unexpected {
            story: format!("{path} tells no RssAnon"),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_of_all_sizes_and_always_of_the_same() {
        let sizes: Vec<u64> = (0..10_000).map(bytes_of).collect();
        assert!(sizes.iter().any(|&size| size > 100_000));
        assert!(sizes.iter().filter(|&&size| size < 4000).count() > 9_000);
        let mean = sizes.iter().sum::<u64>() / 10_000;
        assert!((3_000..6_000).contains(&mean), "{mean}");
    }

    #[test]
    fn the_application_answers_with_what_its_client_expects() {
        ask(application().unwrap(), 0..50).unwrap();
    }
}
