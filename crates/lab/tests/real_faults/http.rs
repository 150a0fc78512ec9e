//! As much HTTP/1.1 as a visitor of these tests needs: one request for each connection, the whole
//! answer, and no panic when there is none, because a fault may have eaten it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest wait for a server that is not meant to be in trouble.
const PATIENCE: Duration = Duration::from_secs(20);

/// One whole response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub location: Option<String>,
    pub retry_after: Option<String>,
    pub body: Vec<u8>,
}

/// The words of a GET of `target` under the name `host`.
pub fn request(host: &str, target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")
}

/// GETs `target` under the name `host` from a server that must answer.
pub fn get(at: SocketAddr, host: &str, target: &str) -> Answer {
    let answer = try_get(at, host, target);
    answer.unwrap_or_else(|why| panic!("{host}{target} at {at}: {why}"))
}

/// GETs `target`, or says why there is no answer.
pub fn try_get(at: SocketAddr, host: &str, target: &str) -> Result<Answer, String> {
    let told = |error: std::io::Error| error.to_string();
    let mut stream = TcpStream::connect_timeout(&at, PATIENCE).map_err(told)?;
    stream.set_read_timeout(Some(PATIENCE)).map_err(told)?;
    stream
        .write_all(request(host, target).as_bytes())
        .map_err(told)?;
    let mut received = Vec::new();
    stream.read_to_end(&mut received).map_err(told)?;
    read(&received).ok_or_else(|| format!("not whole: {:?}", String::from_utf8_lossy(&received)))
}

/// Takes a response apart; none where it is not whole.
pub fn read(received: &[u8]) -> Option<Answer> {
    let end = received.windows(4).position(|four| four == b"\r\n\r\n")?;
    let head = std::str::from_utf8(&received[..end]).ok()?;
    let header = |name: &str| {
        let mut lines = head
            .split("\r\n")
            .skip(1)
            .filter_map(|line| line.split_once(':'));
        let found = lines.find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim().to_owned())
    };
    let body = &received[end + 4..];
    let chunked = header("transfer-encoding").is_some_and(|coding| coding == "chunked");
    let length = header("content-length").and_then(|length| length.parse::<usize>().ok());
    let body = match (chunked, length) {
        (true, _) => unchunked(body)?,
        (false, Some(length)) if body.len() == length => body.to_vec(),
        (false, Some(_) | None) => return None,
    };
    Some(Answer {
        status: head.split(' ').nth(1)?.parse().ok()?,
        location: header("location"),
        retry_after: header("retry-after"),
        body,
    })
}

fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let digits = std::str::from_utf8(&rest[..end]).ok()?;
        let size = usize::from_str_radix(digits, 16).ok()?;
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(end + 2..end + 2 + size)?);
        rest = rest.get(end + 2 + size + 2..)?;
    }
}
