//! One connection, step by step, until it must wait for somebody.

use levee_net::Sent;
use levee_wire::cut_back;

use super::Core;
use super::serve::Served;
use crate::answer::Answer;
use crate::chunked::Incoming;
use crate::connection::{Connection, Inbound, Introduction, Phase};
use crate::http2::Preface;
use crate::request::{Flaw, HEADERS_MAX, HeadLimits, HeaderSpace, Request, Version};
use crate::transport::Transport;

/// What becomes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It waits.
    Keep,
    Close,
    /// It is closed by a reset.
    Reset,
}

/// What a step came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Go {
    /// There is more to do.
    On,
    /// Nothing can be done before an event or a message.
    Wait,
    Close,
    Reset,
}

/// What became of the bytes at a boundary.
enum Consumed {
    /// So many were used; the phase tells the rest.
    Bytes(usize),
    Close,
    Reset,
}

/// Steps of one connection in one turn: some ten small responses, or 32 MiB of a large one.
const STEPS_MAX: usize = 32;

impl Core {
    /// Does what can be done for `connection` now, but no more than is one turn's: a visitor who
    /// always has something to do must not keep the others from theirs.
    pub fn drive(&mut self, connection: &mut Connection, token: u64) -> Fate {
        for _ in 0..STEPS_MAX {
            let go = match connection.phase {
                _ if connection.introduction == Introduction::Awaited => {
                    self.hear_introduction(connection)
                }
                Phase::Boundary { .. } => self.read(connection, token),
                Phase::Parked { .. } => Go::Wait,
                Phase::Answering(_) => self.push(connection, token),
                Phase::Lingering { .. } => self.linger(connection),
                // Its streams are connections; the engine drives it.
                Phase::Http2(_) => Go::Wait,
            };
            match go {
                Go::On => {}
                Go::Wait => return Fate::Keep,
                Go::Close => return Fate::Close,
                Go::Reset => return Fate::Reset,
            }
        }
        self.ready.push(token);
        Fate::Keep
    }

    fn read(&mut self, connection: &mut Connection, token: u64) -> Go {
        if connection.socket.is_handshaking() {
            return self.shake_hands(connection, token);
        }
        let Phase::Boundary { scanned, .. } = connection.phase else {
            return Go::On;
        };
        if connection.unread.len() == scanned && !connection.inbound.is_readable() {
            return match connection.inbound {
                Inbound::Ended => Go::Close,
                Inbound::Readable | Inbound::Ending | Inbound::Drained => Go::Wait,
            };
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        let go = self.read_into(connection, token, scanned, &mut buffer);
        self.buffer = buffer;
        go
    }

    fn read_into(
        &mut self,
        connection: &mut Connection,
        token: u64,
        scanned: usize,
        buffer: &mut [u8],
    ) -> Go {
        let kept = connection.unread.len();
        buffer[..kept].copy_from_slice(&connection.unread);
        let mut filled = kept;
        if kept == scanned {
            match receive(
                &mut connection.socket,
                &mut connection.inbound,
                &mut buffer[kept..],
            ) {
                Ok(0) => return Go::On,
                Ok(bytes) => filled += bytes,
                Err(_) => return Go::Close,
            }
        }
        self.pool.give(std::mem::take(&mut connection.unread));
        match self.consume(connection, token, &buffer[..filled], scanned) {
            Consumed::Bytes(used) => {
                connection.unread = self.pool.copy(&buffer[used..filled]);
                self.note_boundary(connection);
                Go::On
            }
            Consumed::Close => Go::Close,
            Consumed::Reset => Go::Reset,
        }
    }

    /// What is left at a boundary is the beginning of a head: the visitor has begun to speak.
    fn note_boundary(&self, connection: &mut Connection) {
        let left = connection.unread.len();
        if let Phase::Boundary { since, scanned, .. } = &mut connection.phase {
            if *scanned == 0 && left > 0 {
                *since = self.now;
            }
            *scanned = left;
        }
    }

    /// Uses what has come: the rest of a body that nobody wants, then the next request.
    fn consume(
        &mut self,
        connection: &mut Connection,
        token: u64,
        input: &[u8],
        scanned: usize,
    ) -> Consumed {
        let Some(drained) = self.drain_body(connection, input) else {
            // Closed at once, the kernel would take back the answer with what is still to come.
            //= RFC 9112 section 9.6
            self.begin_lingering(connection);
            return Consumed::Bytes(input.len());
        };
        let rest = &input[drained..];
        if is_first(connection) {
            match Preface::of(rest) {
                Preface::Yes => {
                    self.begin_session(connection, token, rest);
                    return Consumed::Bytes(input.len());
                }
                Preface::Perhaps => return Consumed::Bytes(drained),
                Preface::No => {}
            }
        }
        let has_news = drained > 0 || may_end_head(input, scanned, self.settings.limits.head_bytes);
        if rest.is_empty() || !has_news || !connection.incoming.is_done() {
            return Consumed::Bytes(drained);
        }
        let limits = HeadLimits {
            head_bytes: self.settings.limits.head_bytes,
            target_bytes: self.settings.limits.target_bytes,
        };
        let mut space: HeaderSpace<'_> = [const { std::mem::MaybeUninit::uninit() }; HEADERS_MAX];
        // By reference: a request is too large to be moved for nothing.
        match &mut Request::parse(rest, limits, &mut space) {
            Ok(None) => Consumed::Bytes(drained),
            Ok(Some(request)) => {
                self.note_scheme(connection, request);
                let head = request.length;
                if let Transport::Stream(_) = &connection.socket {
                    request.version = Version::Http2;
                }
                // Most have no query, and are not looked at again.
                let cut = match request.path.len() == request.target.len() {
                    true => None,
                    false => cut_back(request.target),
                };
                request.come_back(cut.as_ref());
                connection.incoming = Incoming::of(request.body);
                match self.serve(connection, token, request) {
                    Served::Answered => Consumed::Bytes(drained + head),
                    Served::Parked => {
                        connection.incoming = Incoming::Done;
                        Consumed::Bytes(drained)
                    }
                    Served::Dropped => Consumed::Reset,
                }
            }
            Err(Flaw::NotHttp) if is_first(connection) && !begins_like_http(rest) => {
                self.counters.bad_requests.add(1);
                Consumed::Close
            }
            Err(flaw) => {
                self.complain_of_flaw(connection, *flaw);
                Consumed::Bytes(input.len())
            }
        }
    }

    /// Throws away the body of a request that was answered without it. None where nobody knows
    /// where it ends, or it is longer than the next request is worth.
    fn drain_body(&self, connection: &mut Connection, input: &[u8]) -> Option<usize> {
        let mut used = 0;
        while !connection.incoming.is_done() && used < input.len() {
            let step = connection.incoming.take(&input[used..]).ok()?;
            used += step.used;
            if let Phase::Boundary { drained, .. } = &mut connection.phase {
                *drained += step.used as u64;
                if *drained > self.settings.limits.drained_body_bytes {
                    return None;
                }
            }
        }
        Some(used)
    }

    fn linger(&mut self, connection: &mut Connection) -> Go {
        let mut buffer = std::mem::take(&mut self.buffer);
        let received = receive(&mut connection.socket, &mut connection.inbound, &mut buffer);
        self.buffer = buffer;
        let Phase::Lingering { left, .. } = &mut connection.phase else {
            return Go::On;
        };
        match (received, connection.inbound) {
            (Err(_), _) | (Ok(0), Inbound::Ended) => Go::Close,
            (Ok(0), Inbound::Readable | Inbound::Ending | Inbound::Drained) => Go::Wait,
            (Ok(bytes), _) => match left.checked_sub(bytes as u64) {
                Some(less) => {
                    *left = less;
                    Go::On
                }
                None => Go::Reset,
            },
        }
    }

    /// Makes `answer` what the connection does now.
    pub(super) fn set_answer(&mut self, connection: &mut Connection, answer: Answer) {
        connection.phase = Phase::Answering(answer);
    }

    fn complain_of_flaw(&mut self, connection: &mut Connection, flaw: Flaw) {
        self.counters.bad_requests.add(1);
        tracing::debug!(peer = %connection.peer, %flaw, "bad request");
        self.complain(connection, flaw.status());
    }

    /// A head or body took too long.
    pub fn complain_of_slowness(&mut self, connection: &mut Connection) {
        self.counters.bad_requests.add(1);
        self.complain(connection, 408);
    }
}

/// Whether nothing has been said on a connection that may turn out to be HTTP/2.
fn is_first(connection: &Connection) -> bool {
    match &connection.socket {
        Transport::Plain(_) | Transport::Tls(_) => {
            connection.responses == 0 && connection.granted.is_none()
        }
        Transport::Stream(_) => false,
    }
}

/// Whether a first line that cannot be read was meant as a request of HTTP/1.1: by its method, its
/// target or its version.
//= RFC 9112 section 3: "Recipients of an invalid request-line SHOULD respond with either a 400"
// Three words of which none is of HTTP are taken for a wrong preface of HTTP/2, for which RFC 9113
// section 3.4 asks for the end of the connection: an answer in HTTP/1.1 would be a broken frame.
fn begins_like_http(bytes: &[u8]) -> bool {
    let line = bytes.split(|&byte| byte == b'\n').next().unwrap_or(bytes);
    let mut words = line.trim_ascii().split(|&byte| byte == b' ');
    let mut next = || words.next().unwrap_or_default();
    let (method, target, version) = (next(), next(), next());
    let known: [&[u8]; 9] = [
        b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"OPTIONS", b"PATCH", b"TRACE", b"CONNECT",
    ];
    let is_target = target.starts_with(b"/")
        || target == b"*"
        || target.windows(3).any(|piece| piece == b"://");
    let names_http = |word: &[u8]| {
        word.get(..4)
            .is_some_and(|start| start.eq_ignore_ascii_case(b"http"))
    };
    known.contains(&method) || is_target || names_http(version)
}

/// Reads once. Zero bytes mean that `inbound` tells why there are none.
pub(super) fn receive(
    socket: &mut Transport,
    inbound: &mut Inbound,
    buffer: &mut [u8],
) -> std::io::Result<usize> {
    if !inbound.is_readable() || buffer.is_empty() {
        return Ok(0);
    }
    let room = buffer.len();
    // A stream gives frame by frame, and tells of more only when it has none.
    let is_stream = matches!(socket, Transport::Stream(_));
    Ok(match socket.read(buffer)? {
        Sent::WouldBlock => {
            *inbound = Inbound::Drained;
            0
        }
        Sent::Bytes(0) => {
            *inbound = Inbound::Ended;
            0
        }
        Sent::Bytes(bytes) => {
            // A short read has emptied the socket, and the kernel will tell of more: one call
            // saved. Where it has told of the end already, only reading on finds that.
            let may_tell = !is_stream && !socket.has_ended();
            if bytes < room && *inbound == Inbound::Readable && may_tell {
                *inbound = Inbound::Drained;
            }
            bytes
        }
    })
}

/// Whether the bytes after `scanned` may have ended a head: a visitor who sends byte by byte must
/// not have his head parsed as often.
fn may_end_head(input: &[u8], scanned: usize, head_bytes_max: usize) -> bool {
    let new = &input[scanned.saturating_sub(3).min(input.len())..];
    scanned == 0
        || input.len() >= head_bytes_max
        || new
            .windows(2)
            .any(|pair| pair == b"\n\r" || pair == b"\n\n")
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{Ipv4Addr, TcpStream};
    use std::sync::Arc;
    use std::time::SystemTime;

    use levee_control::RoutePlan;
    use levee_net::{Clock, Listener, PortSharing};

    use super::*;
    use crate::counters::CoreCounters;
    use crate::engine::CoreParts;
    use crate::files::Compressor;
    use crate::settings::FrontSettings;
    use crate::site::{SiteTable, UnknownHost};

    struct NoWaker;

    impl crate::flight::Waker for NoWaker {
        fn wake(&self, _: u64) {}
    }

    fn core() -> Core {
        let parts = CoreParts {
            number: 0,
            settings: Arc::new(FrontSettings::listening_on(vec![])),
            plan: Arc::new(RoutePlan::default()),
            share: 1.0,
            sites: Arc::new(SiteTable::new(vec![], UnknownHost::Refuse)),
            compressor: Compressor::new().0,
            fetcher: None,
            waker: Arc::new(NoWaker),
            tls: None,
            counters: Arc::new(CoreCounters::default()),
            hasher: foldhash::fast::SeedableRandomState::fixed(),
            own_key: crate::marks::OwnKey::generate(Clock.now()).unwrap(),
            link: None,
            log: None,
            handed_over: None,
            purge: None,
        };
        Core::new(parts, Clock.now(), SystemTime::now())
    }

    #[test]
    fn a_row_of_requests_is_answered_in_turns() {
        let here = (Ipv4Addr::LOCALHOST, 0).into();
        let listener = Listener::bind(here, PortSharing::Alone).unwrap();
        let mut visitor = TcpStream::connect(listener.address().tcp().unwrap()).unwrap();
        let requests = "GET / HTTP/1.1\r\nHost: a\r\n\r\n".repeat(100);
        visitor.write_all(requests.as_bytes()).unwrap();
        let accepted = loop {
            if let Some(accepted) = listener.accept().unwrap() {
                break accepted;
            }
        };
        let mut core = core();
        let mut connection = Connection::new(accepted.socket.into(), accepted.peer, core.now);
        let mut turns = 0;
        while connection.responses < 100 {
            let before = connection.responses;
            assert_eq!(core.drive(&mut connection, 7), Fate::Keep);
            assert!(connection.responses - before <= STEPS_MAX as u32);
            // Where it does not wait for the visitor it wants its next turn.
            let waits = core.ready.pop().is_none();
            connection.inbound = match waits {
                true => Inbound::Readable,
                false => connection.inbound,
            };
            turns += 1;
        }
        assert!(turns >= 3, "{turns}");
    }
}
