//! HTTP/1.1 to the letter: what a test wants to send is sent as it stands, and what comes back is
//! kept with every header.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest silence of a server.
const PATIENCE: Duration = Duration::from_secs(20);

/// One whole response.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    /// The first header of this name; empty where there is none.
    pub fn header(&self, name: &str) -> &str {
        let mut headers = self.headers.iter();
        let found = headers.find(|(known, _)| known == name);
        found.map_or("", |(_, value)| value.as_str())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Host and port that it redirects to.
    pub fn leads_to(&self) -> &str {
        let location = self.header("location").strip_prefix("http://");
        location
            .and_then(|rest| rest.split('/').next())
            .unwrap_or("")
    }
}

/// GETs `target` under the name `host`, with further header lines.
pub fn get(at: SocketAddr, host: &str, target: &str, lines: &str) -> Answer {
    ask(
        at,
        &format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n{lines}"),
        b"",
    )
}

/// Sends `head` (without its last empty line) and `body`, and reads the whole answer.
pub fn ask(at: SocketAddr, head: &str, body: &[u8]) -> Answer {
    let mut stream = connect(at);
    let head = format!("{head}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    // A server that refuses may close before it has read everything.
    let _ = stream.write_all(body);
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    read(&received, head.starts_with("HEAD "))
}

pub fn connect(at: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Takes a response that is whole apart; panics where it is not.
pub fn read(received: &[u8], is_head: bool) -> Answer {
    let text = String::from_utf8_lossy(received);
    let end = received.windows(4).position(|four| four == b"\r\n\r\n");
    let end = end.unwrap_or_else(|| panic!("no whole head: {text:?}"));
    let head = std::str::from_utf8(&received[..end]).unwrap();
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap().split(' ').nth(1).unwrap();
    let headers = lines.map(|line| {
        let (name, value) = line.split_once(':').unwrap();
        (name.to_ascii_lowercase(), value.trim().to_owned())
    });
    let mut answer = Answer {
        status: status.parse().unwrap(),
        headers: headers.collect(),
        body: received[end + 4..].to_vec(),
    };
    if answer.header("transfer-encoding") == "chunked" {
        answer.body = unchunked(&answer.body);
    } else if let (Ok(length), false) = (answer.header("content-length").parse::<usize>(), is_head)
    {
        assert_eq!(answer.body.len(), length, "cut off: {text:?}");
    }
    answer
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n").unwrap();
        let digits = std::str::from_utf8(&rest[..end]).unwrap();
        let size = usize::from_str_radix(digits, 16).unwrap();
        if size == 0 {
            return body;
        }
        body.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
}
