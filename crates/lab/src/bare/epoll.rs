//! The bare loop over epoll: edge-triggered, one read and one writev for each request.
//!
//! The listening socket is the server's own (docs/decisions/0018), so that options of sockets are
//! no difference between the two. What it leaves out on purpose is what a server needs beside
//! this: deadlines, limits, counters. Memory is held for a connection only while a request or an
//! answer of it is incomplete.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::SystemTime;

use httparse::{EMPTY_HEADER, Request, Status};
use levee_net::{Listener, PortSharing};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::RecvFlags;

use super::pages::{After, Pages};

const EVENTS_MAX: usize = 512;
/// Longest request head, and most bytes of one read.
const READ_MAX: usize = 16 * 1024;

/// The listening socket, epoll, and the connections by their descriptor.
pub(super) struct Loop<'pages> {
    listener: Listener,
    epoll: OwnedFd,
    connections: Vec<Option<Connection<'pages>>>,
    pages: &'pages Pages,
    /// Shared by all connections.
    buffer: Vec<u8>,
    head: Vec<u8>,
}

struct Connection<'pages> {
    fd: OwnedFd,
    /// The beginning of a request whose end has not come.
    request: Vec<u8>,
    answer: Option<Unsent<'pages>>,
}

/// What did not fit into the socket.
struct Unsent<'pages> {
    head: Vec<u8>,
    body: &'pages [u8],
    after: After,
}

/// What is to become of a connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Wait,
    Close,
}

impl<'pages> Loop<'pages> {
    /// Listens on `address`.
    pub(super) fn bind(address: SocketAddr, pages: &'pages Pages) -> io::Result<Self> {
        let listener = Listener::bind(address, PortSharing::Alone).map_err(io::Error::other)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        epoll::add(&epoll, &listener, data_of(&listener), EventFlags::IN)?;
        Ok(Self {
            listener,
            epoll,
            connections: Vec::new(),
            pages,
            buffer: vec![0; READ_MAX],
            head: Vec::with_capacity(READ_MAX),
        })
    }

    pub(super) const fn address(&self) -> SocketAddr {
        let address = self.listener.address().tcp();
        address.expect("it was bound to an address and port")
    }

    pub(super) fn run(mut self) -> io::Result<std::convert::Infallible> {
        let listener = data_of(&self.listener).u64();
        let (mut second, mut date) = (0, String::new());
        let mut events = Vec::with_capacity(EVENTS_MAX);
        loop {
            events.clear();
            let space = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, space, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            let now = seconds();
            if now != second {
                second = now;
                date = httpdate::fmt_http_date(SystemTime::now());
            }
            for event in &events {
                if event.data.u64() == listener {
                    self.accept(&date)?;
                } else if let Ok(index) = usize::try_from(event.data.u64()) {
                    self.drive(index, &date);
                }
            }
        }
    }

    fn accept(&mut self, date: &str) -> io::Result<()> {
        while let Ok(Some(accepted)) = self.listener.accept() {
            let fd = accepted.socket.into_fd();
            let data = data_of(&fd);
            let index = usize::try_from(data.u64()).unwrap_or_default();
            if self.connections.len() <= index {
                self.connections.resize_with(index + 1, || None);
            }
            self.connections[index] = Some(Connection {
                fd,
                request: Vec::new(),
                answer: None,
            });
            // Its request has often come already, and often there is no other: then epoll need
            // never hear of it.
            self.drive(index, date);
            if let Some(connection) = &self.connections[index] {
                let all = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
                epoll::add(&self.epoll, &connection.fd, data, all)?;
            }
        }
        Ok(())
    }

    fn drive(&mut self, index: usize, date: &str) {
        let Some(Some(connection)) = self.connections.get_mut(index) else {
            return;
        };
        let (buffer, head) = (&mut self.buffer, &mut self.head);
        match connection.drive(self.pages, buffer, head, date) {
            Ok(Next::Wait) => {}
            // Dropping the descriptor closes it.
            Ok(Next::Close) | Err(_) => self.connections[index] = None,
        }
    }
}

impl<'pages> Connection<'pages> {
    fn drive(
        &mut self,
        pages: &'pages Pages,
        buffer: &mut [u8],
        head: &mut Vec<u8>,
        date: &str,
    ) -> rustix::io::Result<Next> {
        loop {
            if let Some(unsent) = self.answer.take() {
                match self.send(&unsent.head, unsent.body, unsent.after)? {
                    Some(After::Close) => return Ok(Next::Close),
                    Some(_) => {}
                    None => return Ok(Next::Wait),
                }
            }
            let start = self.request.len();
            buffer[..start].copy_from_slice(&self.request);
            let got = match rustix::net::recv(&self.fd, &mut buffer[start..], RecvFlags::empty()) {
                Ok((_, 0)) => return Ok(Next::Close),
                Ok((_, got)) => got,
                Err(Errno::AGAIN) if start == 0 => return Ok(Next::Wait),
                // A whole request may have waited behind an answer that did not fit.
                Err(Errno::AGAIN) => 0,
                Err(error) => return Err(error),
            };
            let is_drained = start + got < buffer.len();
            self.request.clear();
            let mut rest = &buffer[..start + got];
            while let Some((length, target, after)) = next_request(rest)? {
                head.clear();
                let body = pages.answer(target, after, head);
                head.extend_from_slice(b"Date: ");
                head.extend_from_slice(date.as_bytes());
                head.extend_from_slice(b"\r\n\r\n");
                rest = &rest[length..];
                match self.send(head, body, after)? {
                    Some(After::Close) => return Ok(Next::Close),
                    Some(After::KeepAlive) => {}
                    None => break,
                }
            }
            self.request.extend_from_slice(rest);
            if self.answer.is_some() || is_drained {
                return Ok(Next::Wait);
            }
        }
    }

    /// None where some of it must wait for room in the socket.
    fn send(
        &mut self,
        mut head: &[u8],
        mut body: &'pages [u8],
        after: After,
    ) -> rustix::io::Result<Option<After>> {
        while !(head.is_empty() && body.is_empty()) {
            let pieces = [IoSlice::new(head), IoSlice::new(body)];
            match rustix::io::writev(&self.fd, &pieces) {
                Ok(sent) => {
                    let of_head = sent.min(head.len());
                    (head, body) = (&head[of_head..], &body[sent - of_head..]);
                }
                Err(Errno::AGAIN) => {
                    let head = head.to_vec();
                    self.answer = Some(Unsent { head, body, after });
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(Some(after))
    }
}

/// The next whole request in `bytes`: its length, target, and what follows it. None: more must
/// come.
fn next_request(bytes: &[u8]) -> rustix::io::Result<Option<(usize, &str, After)>> {
    let mut headers = [EMPTY_HEADER; 64];
    let mut request = Request::new(&mut headers);
    match request.parse(bytes) {
        Ok(Status::Complete(length)) => {
            let is_close = |header: &&mut httparse::Header<'_>| {
                header.name.eq_ignore_ascii_case("connection")
                    && header.value.eq_ignore_ascii_case(b"close")
            };
            let after = match request.headers.iter_mut().any(|header| is_close(&header)) {
                true => After::Close,
                false => After::KeepAlive,
            };
            Ok(request.path.map(|target| (length, target, after)))
        }
        Ok(Status::Partial) if bytes.len() < READ_MAX => Ok(None),
        Ok(Status::Partial) | Err(_) => Err(Errno::INVAL),
    }
}

/// Since 1970.
fn seconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(1, |since| since.as_secs())
}

fn data_of(fd: &impl AsFd) -> EventData {
    EventData::new_u64(u64::from(fd.as_fd().as_raw_fd().unsigned_abs()))
}
