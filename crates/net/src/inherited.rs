//! Listening sockets that a service manager opened for us (systemd socket activation).
//!
//! With them a server on port 80 needs no privilege of its own, and connections wait in the socket
//! while the server is restarted instead of being refused. The protocol is sd_listen_fds(3): the
//! variables `LISTEN_PID` and `LISTEN_FDS` say how many descriptors, from 3 on, are ours.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};

use crate::listen_address::ListenAddress;
use crate::listener::Listener;

/// The first descriptor after standard input, output and error.
const FIRST: RawFd = 3;

/// Sockets that were handed to this process, to be taken by their addresses.
#[derive(Debug, Default)]
pub struct Inherited(Vec<Listener>);

impl Inherited {
    /// Takes over what the environment names. To be called once, before any thread runs and before
    /// any file is opened.
    ///
    /// # Errors
    /// Where one of the descriptors is not a listening socket of TCP or in the file system.
    pub fn from_environment() -> io::Result<Self> {
        let number = |name: &str| std::env::var(name).ok()?.parse::<u32>().ok();
        let for_us = number("LISTEN_PID") == Some(std::process::id());
        let count = number("LISTEN_FDS").filter(|_| for_us).unwrap_or(0);
        let count = RawFd::try_from(count).map_err(io::Error::other)?;
        let end = FIRST.checked_add(count).ok_or(io::ErrorKind::InvalidData)?;
        let taken = (FIRST..end).map(|fd| {
            // SAFETY: the service manager opened these descriptors for this process alone, and
            // nothing in it has touched them: this runs once, at the start.
            let fd = unsafe { OwnedFd::from_raw_fd(fd) };
            Listener::adopt(fd)
        });
        taken.collect::<io::Result<_>>().map(Self)
    }

    /// A listener on exactly this address, where one was handed over. Called again it gives another
    /// on the same socket: several cores may share it.
    ///
    /// # Errors
    /// Where the system has no descriptor left.
    pub fn on(&self, address: &ListenAddress) -> Option<io::Result<Listener>> {
        let found = self.0.iter().find(|one| one.address() == address)?;
        Some(found.try_clone())
    }

    /// Addresses of all that were handed over.
    pub fn addresses(&self) -> impl Iterator<Item = &ListenAddress> {
        self.0.iter().map(Listener::address)
    }
}
