//! Connections that asked once and then stay: what a server keeps for each of them.

use std::io::{self, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::{Asked, Seen, announce, answer, wait_for_the_end};

/// A server that keeps a visitor waiting for longer is not idle but full.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);
/// After so many failures in a row the server has reached some limit of its own.
const FAILURES_MAX: u32 = 20;

/// Opens them one after the other, each with one request, and holds them.
pub(super) fn run(asked: &Asked, connections: u32) -> io::Result<Seen> {
    let request = asked.request("keep-alive");
    let mut buffer = vec![0; 64 * 1024];
    let mut held = Vec::new();
    let mut failures = 0;
    while held.len() < connections as usize && failures < FAILURES_MAX {
        match open(asked, &request, &mut buffer) {
            Ok(stream) => held.push(stream),
            Err(_) => failures += 1,
        }
    }
    let seen = Seen {
        figures: vec![
            ("connections", held.len() as u64),
            ("errors", u64::from(failures)),
        ],
    };
    announce(&seen)?;
    wait_for_the_end()?;
    Ok(seen)
}

fn open(asked: &Asked, request: &str, buffer: &mut [u8]) -> io::Result<TcpStream> {
    let mut stream = TcpStream::connect(asked.address)?;
    stream.set_read_timeout(Some(ANSWER_WITHIN))?;
    stream.write_all(request.as_bytes())?;
    answer::read(&mut stream, buffer)?;
    Ok(stream)
}
