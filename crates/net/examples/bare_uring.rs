//! The bare loop over io_uring: the least that a web server can do for a request, as a yardstick.
//!
//! `cargo xtask bench peers` sets every server beside it; its sister over epoll is
//! `crates/lab/src/bare/epoll.rs`, and both answer the same. It accepts by one multishot request,
//! reads by one multishot request for each connection into buffers that the kernel picks, sends
//! head and body by one sendmsg, and enters the kernel once for each batch. It has no deadlines,
//! limits or counters: nobody may run it as a server.
//!
//! It is an example of this crate because io_uring takes addresses of memory that must stay: only
//! here may that be written.
#![allow(unsafe_code)]

use std::collections::HashMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, SystemTime};

use httparse::{EMPTY_HEADER, Request, Status};
use io_uring::types::{BufRingEntry, Fd};
use io_uring::{IoUring, cqueue, opcode, squeue};
use levee_net::{Listener, PortSharing};

/// Entries of the queues: more than connections of the bench, so a batch never waits.
const SUBMISSIONS: u32 = 4096;
const COMPLETIONS: u32 = 16_384;
/// Buffers for what is read, and the bytes of each: a request head fits.
const BUFFERS: u16 = 4096;
const BUFFER_BYTES: usize = 2048;
const GROUP: u16 = 0;
/// How often the Date is looked at.
const DATE_EVERY: Duration = Duration::from_secs(1);

/// What a completion is the end of; stands in the upper half of its user data.
const ACCEPT: u64 = 1;
const RECEIVE: u64 = 2;
const SEND: u64 = 3;
const SHUTDOWN: u64 = 4;

/// Answers: head up to its Date when the connection is kept, the same when it closes, and the
/// body.
type Pages = HashMap<String, (String, String, Vec<u8>)>;

struct Connection {
    fd: OwnedFd,
    /// What has come and is not answered yet.
    request: Vec<u8>,
    head: Vec<u8>,
    pieces: [libc::iovec; 2],
    message: libc::msghdr,
    sending: Sending,
    /// The other side, or a shutdown of ours, has ended what can be read.
    has_ended: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sending {
    Nothing,
    ThenKeep,
    ThenClose,
    /// All is sent, and a shutdown is on its way. Until it is done the descriptor must not be
    /// closed: its number would be that of the next connection, and the shutdown would hit that
    /// one.
    ShuttingDown,
}

struct Loop {
    ring: IoUring,
    listener: Listener,
    buffers: Buffers,
    /// By descriptor. Boxed: the kernel reads the message while the table may grow.
    connections: Vec<Option<Box<Connection>>>,
    pages: Pages,
    date: String,
    date_made: SystemTime,
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(folder), Some(listen)) = (arguments.next(), arguments.next()) else {
        return Err(io::Error::other("bare_uring FOLDER ADDRESS"));
    };
    let address: SocketAddr = listen.parse().map_err(io::Error::other)?;
    let listener = Listener::bind(address, PortSharing::Alone).map_err(io::Error::other)?;
    println!("bare loop: ready on {}", listener.address());
    io::stdout().flush()?;
    Loop::new(listener, pages(&folder)?)?.run()
}

fn pages(folder: &str) -> io::Result<Pages> {
    let mut pages = Pages::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            let body = std::fs::read(entry.path())?;
            let kept = format!(
                "HTTP/1.1 200 OK\r\nServer: bare\r\nContent-Type: text/plain\r\n\
                 ETag: \"65f1-2800\"\r\nLast-Modified: Sat, 21 Nov 2026 00:00:00 GMT\r\n\
                 Cache-Control: max-age=3600\r\nContent-Length: {}\r\n",
                body.len()
            );
            let closed = format!("{kept}Connection: close\r\n");
            let name = format!("/{}", entry.file_name().to_string_lossy());
            pages.insert(name, (kept, closed, body));
        }
    }
    Ok(pages)
}

impl Loop {
    fn new(listener: Listener, pages: Pages) -> io::Result<Self> {
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_cqsize(COMPLETIONS)
            .build(SUBMISSIONS)?;
        let buffers = Buffers::register(&ring)?;
        Ok(Self {
            ring,
            listener,
            buffers,
            connections: Vec::new(),
            pages,
            date: String::new(),
            date_made: SystemTime::UNIX_EPOCH,
        })
    }

    fn run(mut self) -> io::Result<()> {
        self.accept()?;
        let mut done: Vec<(u64, i32, u32)> = Vec::new();
        loop {
            match self.ring.submit_and_wait(1) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::EINTR) => {}
                Err(error) if error.raw_os_error() == Some(libc::EBUSY) => {}
                Err(error) => return Err(error),
            }
            self.tell_date();
            let completions = self.ring.completion();
            done.extend(completions.map(|one| (one.user_data(), one.result(), one.flags())));
            for (data, result, flags) in done.drain(..) {
                self.settle(data, result, flags)?;
            }
        }
    }

    fn settle(&mut self, data: u64, result: i32, flags: u32) -> io::Result<()> {
        let fd = RawFd::try_from(data & 0xffff_ffff).unwrap_or(-1);
        match data >> 32 {
            ACCEPT => {
                if result >= 0 {
                    self.open(result)?;
                }
                match cqueue::more(flags) {
                    true => Ok(()),
                    false => self.accept(),
                }
            }
            RECEIVE => self.received(fd, result, flags),
            SEND => self.sent(fd, result),
            _ => self.shut_down(fd),
        }
    }

    fn open(&mut self, fd: RawFd) -> io::Result<()> {
        let index = usize::try_from(fd).unwrap_or_default();
        if self.connections.len() <= index {
            self.connections.resize_with(index + 1, || None);
        }
        self.connections[index] = Some(Box::new(Connection {
            // SAFETY: the kernel just gave us this descriptor, and nobody else knows of it.
            fd: unsafe { OwnedFd::from_raw_fd(fd) },
            request: Vec::new(),
            head: Vec::new(),
            // SAFETY: both are plain C structs of numbers and pointers; all zero is empty.
            pieces: unsafe { std::mem::zeroed() },
            // SAFETY: as above.
            message: unsafe { std::mem::zeroed() },
            sending: Sending::Nothing,
            has_ended: false,
        }));
        self.receive(fd)
    }

    fn received(&mut self, fd: RawFd, result: i32, flags: u32) -> io::Result<()> {
        let index = usize::try_from(fd).unwrap_or(usize::MAX);
        let Some(Some(connection)) = self.connections.get_mut(index) else {
            return Ok(());
        };
        if let (Ok(length), Some(buffer)) = (usize::try_from(result), cqueue::buffer_select(flags))
        {
            connection
                .request
                .extend_from_slice(self.buffers.bytes(buffer, length));
            self.buffers.give_back(buffer);
        }
        if result <= 0 && result != -libc::ENOBUFS {
            connection.has_ended = true;
            return self.close_if_done(index);
        }
        if !cqueue::more(flags) {
            self.receive(fd)?;
        }
        self.answer(index)
    }

    /// Answers the next whole request, if nothing is being sent.
    fn answer(&mut self, index: usize) -> io::Result<()> {
        let Some(Some(connection)) = self.connections.get_mut(index) else {
            return Ok(());
        };
        if connection.sending != Sending::Nothing || connection.request.is_empty() {
            return Ok(());
        }
        let mut headers = [EMPTY_HEADER; 64];
        let mut request = Request::new(&mut headers);
        let Ok(Status::Complete(length)) = request.parse(&connection.request) else {
            return Ok(());
        };
        let closes = request.headers.iter().any(|header| {
            header.name.eq_ignore_ascii_case("connection")
                && header.value.eq_ignore_ascii_case(b"close")
        });
        let target = request.path.unwrap_or("/");
        let (head, close) = (&mut connection.head, "Connection: close\r\n");
        head.clear();
        let mut body: &[u8] = &[];
        match self.pages.get(target.split('?').next().unwrap_or(target)) {
            Some((kept, closed, page)) => {
                head.extend_from_slice(if closes { closed } else { kept }.as_bytes());
                body = page;
            }
            None => {
                let moved =
                    "302 Found\r\nContent-Length: 0\r\nLocation: http://helper1.example.net";
                let start = match target.starts_with("/r/") {
                    true => format!("HTTP/1.1 {moved}{target}\r\n"),
                    false => "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n".to_owned(),
                };
                head.extend_from_slice(start.as_bytes());
                head.extend_from_slice(if closes { close } else { "" }.as_bytes());
            }
        }
        head.extend_from_slice(self.date.as_bytes());
        connection.sending = match closes {
            true => Sending::ThenClose,
            false => Sending::ThenKeep,
        };
        connection.request.drain(..length);
        connection.point_at(body);
        let send =
            opcode::SendMsg::new(Fd(connection.fd.as_raw_fd()), &raw const connection.message)
                .flags((libc::MSG_NOSIGNAL | libc::MSG_WAITALL) as u32)
                .build()
                .user_data(tag(SEND, connection.fd.as_raw_fd()));
        self.push(&send)
    }

    fn sent(&mut self, fd: RawFd, result: i32) -> io::Result<()> {
        let index = usize::try_from(fd).unwrap_or(usize::MAX);
        let Some(Some(connection)) = self.connections.get_mut(index) else {
            return Ok(());
        };
        let was = std::mem::replace(&mut connection.sending, Sending::Nothing);
        if connection.has_ended {
            return self.close_if_done(index);
        }
        if result < 0 || was == Sending::ThenClose {
            connection.sending = Sending::ShuttingDown;
            let shutdown = opcode::Shutdown::new(Fd(fd), libc::SHUT_RDWR).build();
            return self.push(&shutdown.user_data(tag(SHUTDOWN, fd)));
        }
        self.answer(index)
    }

    /// A shutdown also ends the reading, and that ends the connection.
    fn shut_down(&mut self, fd: RawFd) -> io::Result<()> {
        let index = usize::try_from(fd).unwrap_or(usize::MAX);
        if let Some(Some(connection)) = self.connections.get_mut(index) {
            connection.sending = Sending::Nothing;
            return self.close_if_done(index);
        }
        Ok(())
    }

    /// Dropping a connection closes it; the kernel must not be using its memory any more.
    fn close_if_done(&mut self, index: usize) -> io::Result<()> {
        let is_done = |connection: &Connection| {
            connection.has_ended && connection.sending == Sending::Nothing
        };
        if self.connections[index].as_deref().is_some_and(is_done) {
            self.connections[index] = None;
        }
        Ok(())
    }

    fn accept(&mut self) -> io::Result<()> {
        let fd = std::os::fd::AsFd::as_fd(&self.listener).as_raw_fd();
        self.push(
            &opcode::AcceptMulti::new(Fd(fd))
                .build()
                .user_data(tag(ACCEPT, fd)),
        )
    }

    fn receive(&mut self, fd: RawFd) -> io::Result<()> {
        let receive = opcode::RecvMulti::new(Fd(fd), GROUP).build();
        self.push(&receive.user_data(tag(RECEIVE, fd)))
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        // SAFETY: what an entry points at is in a boxed connection, which lives until its send has
        // completed: see `close_if_done`. All other entries point at nothing.
        while unsafe { self.ring.submission().push(entry) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }

    fn tell_date(&mut self) {
        let now = SystemTime::now();
        let is_old = now
            .duration_since(self.date_made)
            .is_ok_and(|age| age >= DATE_EVERY);
        if is_old {
            self.date = format!("Date: {}\r\n\r\n", httpdate::fmt_http_date(now));
            self.date_made = now;
        }
    }
}

impl Connection {
    /// Makes the message point at the head and at `body`, which lives as long as the loop.
    fn point_at(&mut self, body: &[u8]) {
        for (piece, bytes) in self.pieces.iter_mut().zip([self.head.as_slice(), body]) {
            piece.iov_base = bytes.as_ptr().cast_mut().cast();
            piece.iov_len = bytes.len();
        }
        self.message.msg_iov = self.pieces.as_mut_ptr();
        self.message.msg_iovlen = self.pieces.len();
    }
}

/// Memory that the kernel fills with what arrives, and the ring by which it gets it back.
struct Buffers {
    ring: *mut BufRingEntry,
    memory: *mut u8,
    tail: u16,
}

impl Buffers {
    fn register(ring: &IoUring) -> io::Result<Self> {
        let mut buffers = Self {
            ring: map(usize::from(BUFFERS) * size_of::<BufRingEntry>())?.cast(),
            memory: map(usize::from(BUFFERS) * BUFFER_BYTES)?,
            tail: 0,
        };
        // SAFETY: the mapping is of pages, large enough for so many entries, and is never
        // unmapped.
        unsafe {
            let submitter = ring.submitter();
            submitter.register_buf_ring_with_flags(buffers.ring as u64, BUFFERS, GROUP, 0)?;
        }
        for buffer in 0..BUFFERS {
            buffers.give_back(buffer);
        }
        Ok(buffers)
    }

    fn bytes(&self, buffer: u16, length: usize) -> &[u8] {
        // SAFETY: the kernel filled this buffer and leaves it alone until it is given back, which
        // needs `&mut self`; `length` is what it says that it wrote, at most the buffer.
        unsafe {
            let start = self.memory.add(usize::from(buffer) * BUFFER_BYTES);
            std::slice::from_raw_parts(start, length.min(BUFFER_BYTES))
        }
    }

    fn give_back(&mut self, buffer: u16) {
        // SAFETY: the index is below the count of entries; the kernel does not look at an entry
        // behind the tail before the tail is stored.
        unsafe {
            let entry = &mut *self.ring.add(usize::from(self.tail & (BUFFERS - 1)));
            entry.set_addr(self.memory.add(usize::from(buffer) * BUFFER_BYTES) as u64);
            entry.set_len(BUFFER_BYTES as u32);
            entry.set_bid(buffer);
            self.tail = self.tail.wrapping_add(1);
            let tail = BufRingEntry::tail(self.ring).cast::<AtomicU16>();
            (*tail).store(self.tail, Ordering::Release);
        }
    }
}

/// Fresh pages, zeroed.
fn map(bytes: usize) -> io::Result<*mut u8> {
    // SAFETY: an anonymous mapping at an address of the kernel's choice touches nothing of ours.
    let memory = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0)
    };
    match memory == libc::MAP_FAILED {
        true => Err(io::Error::last_os_error()),
        false => Ok(memory.cast()),
    }
}

fn tag(operation: u64, fd: RawFd) -> u64 {
    operation << 32 | u64::from(fd.unsigned_abs())
}
