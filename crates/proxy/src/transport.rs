//! What carries the bytes of a connection.
//!
//! The engine reads requests and writes responses; whether they travel as they are or in another
//! protocol's records is decided here, once, when a connection is accepted. Each method does what
//! the one of the same name of [`Socket`] does. Plain connections pay one comparison for it.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};

use levee_net::{Sent, Socket, TcpInfo};

/// See the head of this file.
#[derive(Debug)]
pub(crate) enum Transport {
    /// Bytes as they are.
    Plain(Socket),
}

impl Transport {
    /// Reads what has arrived into `buffer`.
    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Sent> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
        }
    }

    /// Writes one piece.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<Sent> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
        }
    }

    /// Writes several pieces, so that a head and its body share a packet.
    pub fn write_pieces(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<Sent> {
        match self {
            Self::Plain(socket) => socket.write_pieces(pieces),
        }
    }

    /// Sends up to `length` bytes of `file` from `offset`. Zero bytes mean that the file ends
    /// before `offset`.
    pub fn write_file(&mut self, file: &File, offset: u64, length: usize) -> io::Result<Sent> {
        match self {
            Self::Plain(socket) => socket.write_file(file, offset, length),
        }
    }

    /// Says that nothing more will be sent; the other side may still send.
    pub fn finish_writing(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(socket) => socket.finish_writing(),
        }
    }

    /// Closes by a reset.
    pub fn reset(self) {
        match self {
            Self::Plain(socket) => socket.reset(),
        }
    }

    /// What the kernel knows about this connection.
    pub fn tcp_info(&self) -> io::Result<TcpInfo> {
        match self {
            Self::Plain(socket) => socket.tcp_info(),
        }
    }
}

impl From<Socket> for Transport {
    fn from(socket: Socket) -> Self {
        Self::Plain(socket)
    }
}

impl AsFd for Transport {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Plain(socket) => socket.as_fd(),
        }
    }
}
