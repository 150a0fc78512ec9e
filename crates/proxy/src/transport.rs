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

/// See the head of this file.
#[derive(Debug)]
pub(crate) enum Transport {
    /// Bytes as they are.
    Plain(Socket),
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
            Self::Stream(stream) => stream.read(buffer),
        }
    }

    /// Writes one piece.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<Sent> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Stream(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Writes several pieces, so that a head and its body share a packet.
    pub fn write_pieces(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<Sent> {
        match self {
            Self::Plain(socket) => socket.write_pieces(pieces),
            Self::Stream(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Sends up to `length` bytes of `file` from `offset`. Zero bytes mean that the file ends
    /// before `offset`.
    pub fn write_file(&mut self, file: &File, offset: u64, length: usize) -> io::Result<Sent> {
        match self {
            Self::Plain(socket) => socket.write_file(file, offset, length),
            Self::Stream(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Says that nothing more will be sent; the other side may still send.
    pub fn finish_writing(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.finish_writing(),
            Self::Stream(stream) => {
                stream.finish_writing();
                Ok(())
            }
        }
    }

    /// Closes by a reset.
    pub fn reset(self) {
        match self {
            Self::Plain(socket) => socket.reset(),
            Self::Stream(stream) => stream.reset(),
        }
    }

    /// What the kernel knows about this connection.
    pub fn tcp_info(&self) -> io::Result<TcpInfo> {
        match self {
            Self::Plain(socket) => socket.tcp_info(),
            Self::Stream(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// What tells of its readiness; none where that is told otherwise.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Plain(socket) => Some(socket.as_fd()),
            Self::Stream(_) => None,
        }
    }
}

impl From<Socket> for Transport {
    fn from(socket: Socket) -> Self {
        Self::Plain(socket)
    }
}
