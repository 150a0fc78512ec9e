//! One connection in TLS: what the engine uses in place of a bare socket.
//!
//! ```text
//!  silent ──▶ greeted ──▶ answered ──▶ open ──▶ closing ──▶ closed
//!           first byte   our part               close_notify
//! ```
//!
//! Reading and writing behave like those of a socket, with one rule more. What a write reports as
//! sent has left, or nearly so: at most its last byte is held back until the record that carries it
//! is out. Where the kernel took only a part of a record, the rest of it waits here, and **the next
//! write must begin with the bytes that were not reported**. So a response is done only when its
//! bytes are out, a slow visitor is seen to be slow, and no more than one batch of records waits.
//!
//! How much is encrypted ahead follows the visitor: one record at a time for who is slow to take
//! them, up to four for who takes all.

use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use levee_net::{Sent, Socket, TcpInfo};
use rustls::ServerConfig;

use super::scratch::{self, RECORDS_MAX, Scratch};
use super::session::{Agreed, Plaintext, RECORD, Session};

/// See the head of this file.
pub(crate) struct TlsStream {
    socket: Socket,
    session: Session,
    state: State,
    /// The beginning of a record whose end has not come.
    partial: Vec<u8>,
    /// Plaintext for which its reader had no room, from `rest_from` on.
    rest: Vec<u8>,
    rest_from: usize,
    /// Records for which the kernel had no room, from `unsent_from` on.
    unsent: Vec<u8>,
    unsent_from: usize,
    /// Plaintext in `unsent` that no write has reported yet.
    unreported: usize,
    /// Most records that are encrypted at once.
    records: usize,
    /// Bytes beside plaintext that were made since somebody asked.
    extra: u64,
    inbound: Inbound,
    /// Whether its handshake waits for its turn; the engine's note.
    pub waits: Waits,
}

/// Whether a handshake waits for its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    No,
    InLine,
}

/// How far the protocol is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// No byte has come.
    Silent,
    /// The visitor's first message is not whole.
    Greeted,
    /// Our part of the handshake is on its way.
    Answered,
    Open,
    /// Our last word is on its way.
    Closing,
    /// Our last word is out.
    Closed,
    /// The visitor does not speak TLS: bytes pass as they are, so that he can be told so.
    Bare,
}

/// The visitor's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Inbound {
    Open,
    /// It said that it sends no more.
    Closed,
}

/// How far a handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeProgress {
    /// The visitor has sent nothing.
    Silent,
    /// It has begun to speak.
    Greeted,
    /// It has our answer.
    Answered,
    /// Data can flow.
    Done,
}

/// What one read came to.
enum Received {
    WouldBlock,
    /// The first bytes are letters.
    Text,
    /// So many bytes of plaintext, which may be none.
    Plaintext {
        bytes: usize,
        more: More,
    },
}

/// Whether the kernel may have more bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum More {
    Perhaps,
    No,
}

/// What a step of the handshake came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// More must come from the visitor.
    Wait,
    Done(Agreed),
    /// What came is no TLS but text: somebody speaks plain HTTP.
    PlainText,
}

/// Longest unfinished record or message. A record has less than 19 KiB; the first messages of
/// today's browsers have 2 KiB.
const PARTIAL_MAX: usize = 32 * 1024;
/// First byte of a record of the handshake (RFC 8446 section 5.1).
const HANDSHAKE_RECORD: u8 = 22;
/// Most reads for one piece of plaintext. Records without content are allowed; a row of them that
/// fills this many reads is an attack.
const READS_MAX: usize = 64;

impl TlsStream {
    /// A connection that was just accepted.
    pub fn new(socket: Socket, settings: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        Ok(Self {
            socket,
            session: Session::new(settings)?,
            state: State::Silent,
            partial: Vec::new(),
            rest: Vec::new(),
            rest_from: 0,
            unsent: Vec::new(),
            unsent_from: 0,
            unreported: 0,
            records: RECORDS_MAX,
            extra: 0,
            inbound: Inbound::Open,
            waits: Waits::No,
        })
    }

    /// Whether the handshake has begun, and how far it is.
    pub const fn progress(&self) -> HandshakeProgress {
        match self.state {
            State::Silent => HandshakeProgress::Silent,
            State::Greeted => HandshakeProgress::Greeted,
            State::Answered => HandshakeProgress::Answered,
            State::Open | State::Closing | State::Closed | State::Bare => HandshakeProgress::Done,
        }
    }

    /// Whether the visitor said that it sends no more, and all that it sent was read.
    pub fn has_ended(&self) -> bool {
        self.inbound == Inbound::Closed && self.rest.is_empty()
    }

    /// Bytes beside plaintext (handshake, heads of records, alerts) that were made since the last
    /// call.
    pub const fn take_extra(&mut self) -> u64 {
        std::mem::replace(&mut self.extra, 0)
    }

    /// As [`TlsStream::take_extra`], and leaves them.
    pub const fn extra(&self) -> u64 {
        self.extra
    }

    /// Goes on with the handshake as far as the bytes that have come allow. An error ends the
    /// connection; the visitor has been told by then.
    pub fn shake_hands(&mut self) -> io::Result<Handshake> {
        loop {
            self.flush()?;
            let received = scratch::with(|scratch| self.receive(scratch, &mut []))?;
            let more = match received {
                Received::WouldBlock => return Ok(Handshake::Wait),
                Received::Text => return Ok(Handshake::PlainText),
                Received::Plaintext { more, .. } => more,
            };
            if let Some(agreed) = self.session.agreed() {
                self.state = State::Open;
                if self.rest.is_empty() {
                    // With a request there already, what is left goes out with its response.
                    self.flush()?;
                }
                return Ok(Handshake::Done(agreed));
            }
            if more == More::No {
                self.flush()?;
                return Ok(Handshake::Wait);
            }
        }
    }

    /// Tells the visitor what is wrong, as far as it listens.
    fn refuse(&mut self, error: &rustls::Error) -> io::Error {
        // The error that ends the connection is the visitor's, not that of the alert.
        let _ = self.flush();
        io::Error::new(ErrorKind::InvalidData, error.to_string())
    }

    /// Reads plaintext, as [`Socket::read`] reads bytes: a short read means that nothing more has
    /// come. The end is zero bytes where the visitor announced it, else an error: somebody may have
    /// cut the connection.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Sent> {
        if self.state == State::Bare {
            return self.socket.read(buffer);
        }
        let mut filled = self.take_rest(buffer);
        if self.inbound == Inbound::Closed || filled == buffer.len() {
            return Ok(Sent::Bytes(filled));
        }
        if filled == 0 {
            self.flush()?;
        }
        for _ in 0..READS_MAX {
            let room = &mut buffer[filled..];
            let more = match scratch::with(|scratch| self.receive(scratch, room))? {
                Received::Plaintext { bytes, more } => {
                    filled += bytes;
                    more
                }
                Received::WouldBlock | Received::Text => More::No,
            };
            if self.inbound == Inbound::Closed || filled == buffer.len() {
                return Ok(Sent::Bytes(filled));
            }
            match (more, filled) {
                (More::No, 0) => return Ok(Sent::WouldBlock),
                (More::No, filled) => return Ok(Sent::Bytes(filled)),
                (More::Perhaps, _) => {}
            }
        }
        Err(ErrorKind::InvalidData.into())
    }

    fn take_rest(&mut self, buffer: &mut [u8]) -> usize {
        let rest = &self.rest[self.rest_from..];
        let fits = rest.len().min(buffer.len());
        buffer[..fits].copy_from_slice(&rest[..fits]);
        self.rest_from += fits;
        if self.rest_from == self.rest.len() {
            self.rest = Vec::new();
            self.rest_from = 0;
        }
        fits
    }

    /// Reads once and decrypts into `room`; what does not fit waits for the next read.
    fn receive(&mut self, scratch: &mut Scratch, room: &mut [u8]) -> io::Result<Received> {
        let kept = self.partial.len();
        scratch.input[..kept].copy_from_slice(&self.partial);
        // Hardly more than there is room for, but enough for the longest record.
        let asked = room.len().max(RECORD) + 2048;
        let end = (kept + asked).min(scratch.input.len());
        let bytes = match self.socket.read(&mut scratch.input[kept..end])? {
            Sent::WouldBlock => return Ok(Received::WouldBlock),
            Sent::Bytes(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Sent::Bytes(bytes) => bytes,
        };
        if self.state == State::Silent {
            let first = scratch.input[0];
            if first != HANDSHAKE_RECORD && first.is_ascii_alphabetic() {
                self.state = State::Bare;
                return Ok(Received::Text);
            }
            self.state = State::Greeted;
        }
        let plaintext = self.digest(&mut scratch.input[..kept + bytes], room)?;
        Ok(Received::Plaintext {
            bytes: plaintext,
            more: match kept + bytes == end {
                true => More::Perhaps,
                false => More::No,
            },
        })
    }

    /// Gives what came to rustls and keeps what it leaves. Gives the bytes of plaintext in `room`.
    fn digest(&mut self, input: &mut [u8], room: &mut [u8]) -> io::Result<usize> {
        let before = self.unsent.len();
        let mut plaintext = Plaintext {
            room,
            filled: 0,
            rest: &mut self.rest,
        };
        let digested = self.session.digest(input, &mut self.unsent, &mut plaintext);
        let filled = plaintext.filled;
        let answer = self.unsent.len() - before;
        self.extra += answer as u64;
        let digested = digested.map_err(|error| self.refuse(&error))?;
        if self.state == State::Greeted && answer > 0 {
            self.state = State::Answered;
        }
        if digested.is_closed {
            self.inbound = Inbound::Closed;
        }
        let left = &input[digested.used..];
        if left.len() > PARTIAL_MAX || self.unsent.len() > UNSENT_MAX {
            return Err(ErrorKind::InvalidData.into());
        }
        // Nearly always nothing: then it has no buffer either.
        self.partial = left.to_vec();
        Ok(filled)
    }

    /// Encrypts and sends `bytes`; see the head of this file for what it reports.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<Sent> {
        self.send(&[], bytes)
    }

    /// As [`TlsStream::write`], for several pieces of which the first two are taken: a head and its
    /// body share a record.
    pub fn write_pieces(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<Sent> {
        match pieces {
            [] => Ok(Sent::Bytes(0)),
            [one] => self.send(&[], one),
            [first, second, ..] => self.send(first, second),
        }
    }

    fn send(&mut self, head: &[u8], body: &[u8]) -> io::Result<Sent> {
        if self.state == State::Bare {
            let pieces = [IoSlice::new(head), IoSlice::new(body)];
            return self.socket.write_pieces(&pieces);
        }
        if self.unreported > 0 {
            return self.send_unsent();
        }
        scratch::with(|scratch| {
            let most = self.records * RECORD;
            let Scratch { plain, output, .. } = scratch;
            let (first, then) = match head.len() {
                0 => (&[][..], &body[..body.len().min(most)]),
                long if long >= RECORD => (&head[..long.min(most)], &[][..]),
                short => {
                    let beside = body.len().min(RECORD - short);
                    plain[..short].copy_from_slice(head);
                    plain[short..short + beside].copy_from_slice(&body[..beside]);
                    let left = &body[beside..];
                    let left = &left[..left.len().min(most.saturating_sub(RECORD))];
                    (&plain[..short + beside], left)
                }
            };
            self.encrypt_and_send([first, then], output)
        })
    }

    /// As [`TlsStream::write`], for up to `length` bytes of `file` from `offset`. Zero bytes mean
    /// that the file ends before `offset`.
    pub fn write_file(&mut self, file: &File, offset: u64, length: usize) -> io::Result<Sent> {
        if self.unreported > 0 {
            return self.send_unsent();
        }
        scratch::with(|scratch| {
            let most = length.min(self.records * RECORD);
            let Scratch { plain, output, .. } = scratch;
            match file.read_at(&mut plain[..most], offset)? {
                0 => Ok(Sent::Bytes(0)),
                bytes => self.encrypt_and_send([&plain[..bytes], &[]], output),
            }
        })
    }

    fn encrypt_and_send(&mut self, pieces: [&[u8]; 2], output: &mut [u8]) -> io::Result<Sent> {
        let bytes = pieces[0].len() + pieces[1].len();
        // What the handshake has left goes with the first records.
        let before = self.unsent.len() - self.unsent_from;
        if before > MESSAGES_BEFORE_MAX {
            self.flush()?;
            if !self.unsent.is_empty() {
                return Ok(Sent::WouldBlock);
            }
        }
        let before = self.unsent.len() - self.unsent_from;
        output[..before].copy_from_slice(&self.unsent[self.unsent_from..]);
        let made = self
            .session
            .encrypt(&mut self.partial, pieces, &mut output[before..])
            .map_err(|error| io::Error::new(ErrorKind::BrokenPipe, error.to_string()))?;
        self.extra += (made - bytes) as u64;
        self.unsent = Vec::new();
        self.unsent_from = 0;
        let records = &output[..before + made];
        let sent = match self.socket.write(records)? {
            Sent::Bytes(sent) => sent,
            Sent::WouldBlock => 0,
        };
        if sent == records.len() {
            self.records = (self.records * 2).min(RECORDS_MAX);
            return Ok(Sent::Bytes(bytes));
        }
        self.records = 1;
        self.unsent.extend_from_slice(&records[sent..]);
        self.unreported = bytes;
        Ok(self.report(sent))
    }

    /// Sends what waits, and reports it.
    fn send_unsent(&mut self) -> io::Result<Sent> {
        let sent = self.send_waiting()?;
        Ok(self.report(sent))
    }

    /// Reports plaintext after `sent` more bytes of records have left: the last byte of it only
    /// when nothing waits any more.
    fn report(&mut self, sent: usize) -> Sent {
        let reported = match self.unsent.is_empty() {
            true => self.unreported,
            false => sent.min(self.unreported.saturating_sub(1)),
        };
        self.unreported -= reported;
        match reported {
            0 => Sent::WouldBlock,
            bytes => Sent::Bytes(bytes),
        }
    }

    /// Sends what waits and belongs to nobody's write.
    fn flush(&mut self) -> io::Result<()> {
        if self.unreported == 0 && !self.unsent.is_empty() {
            self.send_waiting()?;
        }
        Ok(())
    }

    fn send_waiting(&mut self) -> io::Result<usize> {
        let waiting = &self.unsent[self.unsent_from..];
        let Sent::Bytes(sent) = self.socket.write(waiting)? else {
            return Ok(0);
        };
        if sent < waiting.len() {
            self.unsent_from += sent;
            return Ok(sent);
        }
        self.unsent = Vec::new();
        self.unsent_from = 0;
        if self.state == State::Closing {
            self.state = State::Closed;
            self.socket.finish_writing()?;
        }
        Ok(sent)
    }

    /// Says that nothing more will be sent: close_notify, then the end of the stream. Where the
    /// kernel has no room for it now, later reads send it.
    pub fn finish_writing(&mut self) -> io::Result<()> {
        match self.state {
            State::Open => {}
            State::Silent | State::Greeted | State::Answered | State::Bare => {
                return self.socket.finish_writing();
            }
            State::Closing | State::Closed => return Ok(()),
        }
        let before = self.unsent.len();
        let said = self
            .session
            .say_goodbye(&mut self.partial, &mut self.unsent);
        self.extra += (self.unsent.len() - before) as u64;
        said.map_err(|error| io::Error::new(ErrorKind::BrokenPipe, error.to_string()))?;
        self.state = State::Closing;
        self.unreported = 0;
        self.flush()
    }

    /// Closes, with close_notify where the kernel has room for it.
    pub fn close(mut self) {
        // Whoever is gone does not need it.
        let _ = self.finish_writing();
    }

    /// Closes by a reset.
    pub fn reset(self) {
        self.socket.reset();
    }

    /// Bytes written that the other side has not acknowledged, records and all.
    pub fn outstanding(&self) -> io::Result<u64> {
        self.socket.outstanding()
    }

    /// What the kernel knows about this connection.
    pub fn tcp_info(&self) -> io::Result<TcpInfo> {
        self.socket.tcp_info()
    }
}

/// Most bytes of messages that wait for a visitor who asks for more of them without reading: a
/// handshake with a long chain, or some hundred key updates.
const UNSENT_MAX: usize = 128 * 1024;
/// Most bytes of messages that share a write with the first records.
const MESSAGES_BEFORE_MAX: usize = super::session::MESSAGE_EXTRA;

impl AsFd for TlsStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl fmt::Debug for TlsStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsStream")
            .field("state", &self.state)
            .field("inbound", &self.inbound)
            .finish_non_exhaustive()
    }
}
