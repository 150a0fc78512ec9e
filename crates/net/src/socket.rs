//! One TCP connection, never blocking.

use std::fs::File;
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};

use crate::tcp_info::{self, TcpInfo};

/// A connected TCP socket. Dropping it closes it in the ordinary way: what was written still goes
/// out, unless the other side sent something that nobody read.
#[derive(Debug)]
pub struct Socket(OwnedFd);

/// What became of a read or a write that may not block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// So many bytes went through; 0 of a read is the end of the stream.
    Bytes(usize),
    /// The kernel has no room (or, reading, no bytes) now; epoll will tell.
    WouldBlock,
}

impl Socket {
    /// Takes over a connected, non-blocking socket.
    pub const fn new(fd: OwnedFd) -> Self {
        Self(fd)
    }

    /// Gives the bare descriptor away, for whoever takes a connection over.
    pub fn into_fd(self) -> OwnedFd {
        self.0
    }

    /// Reads what has arrived into `buffer`.
    pub fn read(&self, buffer: &mut [u8]) -> io::Result<Sent> {
        settle(rustix::net::recv(&self.0, buffer, RecvFlags::empty()).map(|(length, _)| length))
    }

    /// Writes one piece. Never raises SIGPIPE.
    pub fn write(&self, bytes: &[u8]) -> io::Result<Sent> {
        settle(rustix::net::send(&self.0, bytes, SendFlags::NOSIGNAL))
    }

    /// Writes several pieces in one call, so that a head and its body share a packet.
    pub fn write_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<Sent> {
        let mut no_control = SendAncillaryBuffer::default();
        settle(rustix::net::sendmsg(
            &self.0,
            pieces,
            &mut no_control,
            SendFlags::NOSIGNAL,
        ))
    }

    /// Sends up to `length` bytes of `file` from `offset` without copying them here. Zero bytes
    /// mean that the file ends before `offset`: somebody cut it. The process must ignore SIGPIPE,
    /// as every Rust program does from its start.
    pub fn write_file(&self, file: &File, offset: u64, length: usize) -> io::Result<Sent> {
        let mut from = offset;
        settle(rustix::fs::sendfile(&self.0, file, Some(&mut from), length))
    }

    /// Says that nothing more will be sent; the other side may still send.
    pub fn finish_writing(&self) -> io::Result<()> {
        Ok(rustix::net::shutdown(&self.0, Shutdown::Write)?)
    }

    /// Closes by a reset: one packet, no waiting, nothing kept.
    pub fn reset(self) {
        // Where the option fails, an ordinary close is the next best thing.
        let _ = rustix::net::sockopt::set_socket_linger(&self.0, Some(Duration::ZERO));
    }

    /// Bytes written that the other side has not acknowledged, sent or not.
    pub fn outstanding(&self) -> io::Result<u64> {
        tcp_info::outstanding(self.0.as_fd())
    }

    /// What the kernel knows about this connection.
    pub fn tcp_info(&self) -> io::Result<TcpInfo> {
        TcpInfo::of(self.0.as_fd())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn settle(result: Result<usize, rustix::io::Errno>) -> io::Result<Sent> {
    use rustix::io::Errno;
    match result {
        Ok(length) => Ok(Sent::Bytes(length)),
        Err(error) if error == Errno::AGAIN || error == Errno::INTR => Ok(Sent::WouldBlock),
        Err(error) => Err(error.into()),
    }
}
