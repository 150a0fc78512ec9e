//! What the kernel knows about one connection: segments, acknowledged bytes, round trips, rate.
//!
//! Neither rustix nor socket2 reads TCP_INFO, so this file calls getsockopt itself. It reads into
//! plain bytes and takes fields out by their offsets in `struct tcp_info` (linux/tcp.h), which the
//! kernel only ever extends at its end; what an older kernel does not fill reads as zero.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::time::Duration;

use levee_vocab::ByteRate;

/// A reading of TCP_INFO.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    /// Segments sent, also acknowledgements and repeats, but not the SYN-ACK: the kernel begins to
    /// count when the connection stands.
    pub segments_out: u32,
    /// Most bytes of ours in one segment: less on a path with smaller packets.
    pub segment_bytes: u32,
    /// Bytes that the other side has acknowledged.
    pub bytes_acked: u64,
    /// Bytes written here that have not left yet.
    pub bytes_unsent: u32,
    /// Smoothed round-trip time.
    pub rtt: Duration,
    /// What the path lately delivered.
    pub delivery_rate: ByteRate,
    /// Segments on their way: sent, and neither acknowledged nor given up.
    pub segments_in_flight: u32,
    /// Times that the wait for an answer was doubled, to a segment or to the question whether the
    /// other side's window has opened. An answer sets it to zero.
    pub backoff: u8,
    /// Bytes sent, repeats and all (Linux 4.19).
    pub bytes_sent: u64,
    /// Bytes sent again.
    pub bytes_repeated: u64,
    /// Time in which there was something to send, since the connection began.
    pub busy: Duration,
    /// How much of it the other side's receive window was what held it up (Linux 4.10). The rest it
    /// was the path, or our own buffer.
    pub window_limited: Duration,
}

const LENGTH: usize = 216;
const BACKOFF: usize = 4;
const SEGMENT_BYTES: usize = 16;
const SEGMENTS_UNACKED: usize = 24;
const SEGMENTS_SACKED: usize = 28;
const SEGMENTS_LOST: usize = 32;
const RTT: usize = 68;
const BYTES_ACKED: usize = 120;
const SEGMENTS_OUT: usize = 136;
const BYTES_UNSENT: usize = 144;
const DELIVERY_RATE: usize = 160;
const BUSY: usize = 168;
const WINDOW_LIMITED: usize = 176;
const BYTES_SENT: usize = 200;
const BYTES_REPEATED: usize = 208;

impl TcpInfo {
    /// Reads it for the TCP socket `fd`.
    pub fn of(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let mut bytes = [0_u8; LENGTH];
        let mut length = LENGTH as libc::socklen_t;
        // SAFETY: the pointers are to live, writable memory of the lengths given, the kernel writes
        // at most `length` bytes, and any bytes are a valid value of a byte array.
        let result = unsafe {
            libc::getsockopt(
                fd.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_INFO,
                bytes.as_mut_ptr().cast(),
                &raw mut length,
            )
        };
        if result != 0 {
            return Err(io::Error::last_os_error());
        }
        let gone = four(&bytes, SEGMENTS_SACKED) + four(&bytes, SEGMENTS_LOST);
        Ok(Self {
            segments_out: four(&bytes, SEGMENTS_OUT),
            segment_bytes: four(&bytes, SEGMENT_BYTES),
            bytes_acked: eight(&bytes, BYTES_ACKED),
            bytes_unsent: four(&bytes, BYTES_UNSENT),
            rtt: Duration::from_micros(four(&bytes, RTT).into()),
            delivery_rate: ByteRate::from_bytes(eight(&bytes, DELIVERY_RATE)),
            segments_in_flight: four(&bytes, SEGMENTS_UNACKED).saturating_sub(gone),
            backoff: bytes[BACKOFF],
            bytes_sent: eight(&bytes, BYTES_SENT),
            bytes_repeated: eight(&bytes, BYTES_REPEATED),
            busy: Duration::from_micros(eight(&bytes, BUSY)),
            window_limited: Duration::from_micros(eight(&bytes, WINDOW_LIMITED)),
        })
    }
}

/// Bytes written to the TCP socket `fd` that the other side has not acknowledged, sent or not. A
/// tenth of the cost of a [`TcpInfo`]: it takes no lock.
pub(crate) fn outstanding(fd: BorrowedFd<'_>) -> io::Result<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: the pointer is to a live, writable number of the type that this request writes.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    match result {
        0 => Ok(u64::try_from(bytes).unwrap_or(0)),
        _ => Err(io::Error::last_os_error()),
    }
}

fn four(bytes: &[u8; LENGTH], offset: usize) -> u32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_ne_bytes(field)
}

fn eight(bytes: &[u8; LENGTH], offset: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_ne_bytes(field)
}
