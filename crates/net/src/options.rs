//! Options of TCP sockets that neither rustix nor socket2 sets.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// An option whose value is a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TcpOption {
    /// Of a listener: seconds that a connection without a byte is kept from `accept`. The kernel
    /// rounds them up to the times at which it would repeat its SYN-ACK: 1, 3, 7 s.
    DeferAccept,
    /// Bytes that wait unsent in the kernel above which a connection does not count as writable.
    UnsentLowWater,
}

/// Sets `option` of the TCP socket `fd`.
pub(crate) fn set(fd: impl AsFd, option: TcpOption, value: u32) -> io::Result<()> {
    let name = match option {
        TcpOption::DeferAccept => libc::TCP_DEFER_ACCEPT,
        TcpOption::UnsentLowWater => libc::TCP_NOTSENT_LOWAT,
    };
    // SAFETY: the pointer is to a live number of the length given, which the kernel only reads.
    let result = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            name,
            (&raw const value).cast(),
            size_of::<u32>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
