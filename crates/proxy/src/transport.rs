//! What carries the bytes of a connection.
//!
//! The engine reads requests and writes responses; whether they travel as they are or in another
//! protocol's records is decided here, once, when a connection is accepted. Each method does what
//! the one of the same name of [`Socket`] does. Plain connections pay one comparison for it.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

use levee_net::{Sent, Socket, TcpInfo};

use crate::http2::Stream;
use crate::tls::{HandshakeProgress, TlsStream};

/// See the head of this file.
#[derive(Debug)]
pub(crate) enum Transport {
    /// Bytes as they are.
    Plain(Socket),
    /// Bytes in the records of TLS.
    Tls(Box<TlsStream>),
    /// One request of a visitor who speaks HTTP/2; its response goes by [`Answer::write_frames`].
    ///
    /// [`Answer::write_frames`]: crate::answer::Answer::write_frames
    Stream(Box<Stream>),
}

impl Transport {
    /// Reads what has arrived into `buffer`.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Sent> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
            Self::Stream(stream) => stream.read(buffer),
        }
    }

    /// Writes one piece.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<Sent> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
            Self::Stream(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Writes several pieces, so that a head and its body share a packet.
    pub fn write_pieces(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<Sent> {
        match self {
            Self::Plain(socket) => socket.write_pieces(pieces),
            Self::Tls(stream) => stream.write_pieces(pieces),
            Self::Stream(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Sends up to `length` bytes of `file` from `offset`. Zero bytes mean that the file ends
    /// before `offset`.
    pub fn write_file(&mut self, file: &File, offset: u64, length: usize) -> io::Result<Sent> {
        match self {
            Self::Plain(socket) => socket.write_file(file, offset, length),
            Self::Tls(stream) => stream.write_file(file, offset, length),
            Self::Stream(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Whether the other side's end has been read without a sign of it from the socket.
    pub fn has_ended(&self) -> bool {
        match self {
            Self::Plain(_) | Self::Stream(_) => false,
            Self::Tls(stream) => stream.has_ended(),
        }
    }

    /// Whether there is still a handshake to be done before the first byte of a request.
    pub fn is_handshaking(&self) -> bool {
        match self {
            Self::Plain(_) | Self::Stream(_) => false,
            Self::Tls(stream) => stream.progress() != HandshakeProgress::Done,
        }
    }

    /// Whether others can read along. A stream does not know; its connection does.
    pub const fn privacy(&self) -> Privacy {
        match self {
            Self::Plain(_) | Self::Stream(_) => Privacy::Open,
            Self::Tls(_) => Privacy::Encrypted,
        }
    }

    /// Bytes that the protocol below has added and nobody has charged to the link.
    pub const fn extra(&self) -> u64 {
        match self {
            Self::Plain(_) | Self::Stream(_) => 0,
            Self::Tls(stream) => stream.extra(),
        }
    }

    /// Bytes that each write grows by below, at least: heads of a record and of a frame.
    pub const fn framing(&self) -> u64 {
        match self {
            Self::Plain(_) => 0,
            // RFC 8446 section 5.2: head, type and tag of a record.
            Self::Tls(_) => 22,
            // RFC 9113 section 4.1: the head of a frame, which is nearly always inside a record.
            Self::Stream(_) => 22 + 9,
        }
    }

    /// As [`Transport::extra`], and takes them as charged.
    pub const fn take_extra(&mut self) -> u64 {
        match self {
            Self::Plain(_) | Self::Stream(_) => 0,
            Self::Tls(stream) => stream.take_extra(),
        }
    }

    /// Says that nothing more will be sent; the other side may still send.
    pub fn finish_writing(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.finish_writing(),
            Self::Tls(stream) => stream.finish_writing(),
            Self::Stream(stream) => {
                stream.finish_writing();
                Ok(())
            }
        }
    }

    /// Closes in the ordinary way, with the last words of the protocol where it has some.
    pub fn close(self) {
        match self {
            Self::Plain(socket) => drop(socket),
            Self::Tls(stream) => stream.close(),
            Self::Stream(stream) => drop(stream),
        }
    }

    /// Closes by a reset.
    pub fn reset(self) {
        match self {
            Self::Plain(socket) => socket.reset(),
            Self::Tls(stream) => stream.reset(),
            Self::Stream(stream) => stream.reset(),
        }
    }

    /// What the kernel knows about this connection.
    pub fn tcp_info(&self) -> io::Result<TcpInfo> {
        match self {
            Self::Plain(socket) => socket.tcp_info(),
            Self::Tls(stream) => stream.tcp_info(),
            Self::Stream(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Bytes written that the other side has not acknowledged; 0 where nobody knows.
    pub fn outstanding(&self) -> u64 {
        match self {
            Self::Plain(socket) => socket.outstanding(),
            Self::Tls(stream) => stream.outstanding(),
            Self::Stream(_) => Ok(0),
        }
        .unwrap_or(0)
    }

    /// What tells of its readiness; none where that is told otherwise.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Plain(socket) => Some(socket.as_fd()),
            Self::Tls(stream) => Some(stream.as_fd()),
            Self::Stream(_) => None,
        }
    }
}

/// Whether others can read along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Privacy {
    Open,
    Encrypted,
}

impl From<Socket> for Transport {
    fn from(socket: Socket) -> Self {
        Self::Plain(socket)
    }
}
