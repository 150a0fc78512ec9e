//! The application behind each server: it answers everything and writes down what it saw.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// One request as it reached the application, without what proxies may change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub method: String,
    pub target: String,
    pub body: Vec<u8>,
}

/// See the head of this file.
pub struct Application {
    pub address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Application {
    pub fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&seen);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let list = Arc::clone(&list);
                std::thread::spawn(move || serve(stream, &list));
            }
        });
        Self { address, seen }
    }

    /// What came since this was last asked.
    pub fn take(&self) -> Vec<Seen> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

fn serve(stream: TcpStream, list: &Mutex<Vec<Seen>>) {
    let mut reader = BufReader::new(stream);
    while let Some(seen) = read(&mut reader) {
        let is_head = seen.method == "HEAD";
        list.lock().unwrap().push(Seen {
            // A fetch for a cache is a GET, whatever its visitor wants of it.
            method: seen.method.replace("HEAD", "GET"),
            ..seen
        });
        let body = if is_head { "" } else { "ok" };
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nCache-Control: no-store\r\n\r\n{body}"
        );
        if reader.get_mut().write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

/// The next request; none where there is no whole one.
fn read(reader: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if reader.read_until(b'\n', &mut head).ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut words = head.lines().next()?.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let field = |name: &str| {
        let mut lines = head.lines().skip(1).filter_map(|line| line.split_once(':'));
        let found = lines.find(|(field, _)| field.trim().eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.trim().to_owned())
    };
    let body = match (field("transfer-encoding"), field("content-length")) {
        (Some(_), _) => chunks(reader)?,
        (None, Some(length)) => {
            let mut body = vec![0; length.parse().ok()?];
            reader.read_exact(&mut body).ok()?;
            body
        }
        (None, None) => Vec::new(),
    };
    Some(Seen {
        method,
        target: origin_form(&target),
        body,
    })
}

/// Some proxies pass an absolute target on as it is.
fn origin_form(target: &str) -> String {
    let Some((_, rest)) = target.split_once("://") else {
        return target.to_owned();
    };
    match rest.find('/') {
        Some(slash) => rest[slash..].to_owned(),
        None => "/".to_owned(),
    }
}

fn chunks(reader: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let size = line.trim().split(';').next()?.trim();
        let size = usize::from_str_radix(size, 16).ok()?;
        if size == 0 {
            break;
        }
        let start = body.len();
        body.resize(start + size, 0);
        reader.read_exact(&mut body[start..]).ok()?;
        reader.read_exact(&mut [0; 2]).ok()?;
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            return Some(body);
        }
    }
}
