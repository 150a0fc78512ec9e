//! Between h2, which wants to read and write, and a core, which has a non-blocking transport.
//!
//! h2 would write each DATA frame by a system call of its own. The pipe takes all frames of a turn
//! into one buffer, which the core lends it, and the core writes them at once. What the visitor
//! does not take stays here, and while any of it is here nobody adds to it: that is the bound on
//! what a slow visitor can make us hold.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use levee_net::Sent;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::transport::Transport;

/// Both directions of one session. Clones are the same pipe.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pipe(Rc<RefCell<Inner>>);

#[derive(Debug, Default)]
struct Inner {
    input: Vec<u8>,
    input_read: usize,
    inbound: Inbound,
    output: Vec<u8>,
    output_sent: usize,
    outbound: Outbound,
    /// Streams that wait for the visitor to take what is here.
    waiting: Vec<u64>,
    /// Bytes of bodies that streams moved, either way, and their beginnings and ends: signs that
    /// the visitor has a use for us.
    moved: u64,
    /// Streams that are connections of the engine.
    streams: u32,
    /// Those of them whose windows the visitor keeps shut.
    stuck: u32,
    /// Streams that the visitor took back before their answer was out.
    taken_back: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Inbound {
    #[default]
    Open,
    /// The visitor sends no more.
    Ended,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Outbound {
    #[default]
    Open,
    /// The kernel takes no more now.
    Blocked,
}

/// What became of an attempt to write all that is here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    /// So many bytes went out, and nothing is left.
    All(u64),
    /// So many went out, and the kernel takes no more.
    Blocked(u64),
}

/// Frames that are gathered for one write before no more are taken.
pub(crate) const OUTPUT_MAX: usize = 256 * 1024;

impl Pipe {
    /// Adds what has come from the visitor.
    pub fn receive(&self, bytes: &[u8]) {
        self.0.borrow_mut().input.extend_from_slice(bytes);
    }

    /// The visitor sends no more.
    pub fn end(&self) {
        self.0.borrow_mut().inbound = Inbound::Ended;
    }

    /// Whether h2 has read all that came.
    pub fn is_read(&self) -> bool {
        self.0.borrow().input.is_empty()
    }

    /// Uses `buffer` for frames until [`Pipe::give_back`].
    pub fn lend(&self, buffer: &mut Vec<u8>) {
        let mut inner = self.0.borrow_mut();
        if inner.output.is_empty() {
            std::mem::swap(&mut inner.output, buffer);
        }
    }

    /// Gives the lent buffer back, and keeps a copy of what is in it.
    pub fn give_back(&self, buffer: &mut Vec<u8>) {
        let mut inner = self.0.borrow_mut();
        if buffer.capacity() > 0 {
            return;
        }
        let rest = inner.output[inner.output_sent..].to_vec();
        inner.output_sent = 0;
        *buffer = std::mem::replace(&mut inner.output, rest);
        buffer.clear();
    }

    /// Writes what is here.
    pub fn drain(&self, transport: &mut Transport) -> io::Result<Drained> {
        let mut inner = self.0.borrow_mut();
        let inner = &mut *inner;
        let mut written = 0;
        while inner.output_sent < inner.output.len() {
            match transport.write(&inner.output[inner.output_sent..])? {
                Sent::Bytes(bytes) => {
                    inner.output_sent += bytes;
                    written += bytes as u64;
                }
                Sent::WouldBlock => {
                    inner.outbound = Outbound::Blocked;
                    return Ok(Drained::Blocked(written));
                }
            }
        }
        inner.outbound = Outbound::Open;
        inner.output.clear();
        inner.output_sent = 0;
        Ok(Drained::All(written))
    }

    /// Whether frames wait to be written.
    pub fn has_output(&self) -> bool {
        !self.0.borrow().output.is_empty()
    }

    /// Whether frames wait for the kernel.
    pub fn is_blocked(&self) -> bool {
        self.0.borrow().outbound == Outbound::Blocked
    }

    /// Remembers that stream `token` waits for the kernel.
    pub fn wait(&self, token: u64) {
        self.0.borrow_mut().waiting.push(token);
    }

    /// Appends the streams that waited for the kernel to `to`.
    pub fn take_waiting(&self, to: &mut Vec<u64>) {
        to.append(&mut self.0.borrow_mut().waiting);
    }

    /// A stream moved so many bytes of a body.
    pub fn note_moved(&self, bytes: usize) {
        self.0.borrow_mut().moved += bytes as u64;
    }

    /// See [`Pipe::note_moved`].
    pub fn moved(&self) -> u64 {
        self.0.borrow().moved
    }

    /// A stream began to be a connection of the engine.
    pub fn note_begun(&self) {
        let mut inner = self.0.borrow_mut();
        inner.streams += 1;
        inner.moved += 1;
    }

    /// A stream is no connection of the engine any more.
    pub fn note_ended(&self) {
        let mut inner = self.0.borrow_mut();
        inner.streams -= 1;
        inner.moved += 1;
    }

    /// A stream found its window, or that of the session, shut.
    pub fn note_stuck(&self) {
        self.0.borrow_mut().stuck += 1;
    }

    /// The window was opened, or the stream is over.
    pub fn note_unstuck(&self) {
        self.0.borrow_mut().stuck -= 1;
    }

    /// Streams whose window is shut.
    pub fn stuck(&self) -> u32 {
        self.0.borrow().stuck
    }

    /// The visitor took a request back.
    pub fn note_taken_back(&self) {
        self.0.borrow_mut().taken_back += 1;
    }

    /// See [`Pipe::note_taken_back`].
    pub fn taken_back(&self) -> u32 {
        self.0.borrow().taken_back
    }

    /// Streams that are connections of the engine.
    pub fn streams(&self) -> u32 {
        self.0.borrow().streams
    }
}

impl AsyncRead for Pipe {
    fn poll_read(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut inner = self.0.borrow_mut();
        let inner = &mut *inner;
        let rest = &inner.input[inner.input_read..];
        if rest.is_empty() {
            // The core polls again after each read: there is no waker to keep.
            return match inner.inbound {
                Inbound::Open => Poll::Pending,
                Inbound::Ended => Poll::Ready(Ok(())),
            };
        }
        let length = rest.len().min(buffer.remaining());
        buffer.put_slice(&rest[..length]);
        inner.input_read += length;
        if inner.input_read == inner.input.len() {
            // A buffer for each idle session would be the larger part of what it weighs.
            inner.input = Vec::new();
            inner.input_read = 0;
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(context, &[io::IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut inner = self.0.borrow_mut();
        if inner.output.len() >= OUTPUT_MAX {
            // The core polls again when it has written.
            return Poll::Pending;
        }
        let before = inner.output.len();
        for piece in pieces {
            inner.output.extend_from_slice(piece);
        }
        Poll::Ready(Ok(inner.output.len() - before))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
