//! Ports for servers that must be known before they run.
//!
//! They are below those that the system gives to whoever asks for any (from 32768 on). One of
//! those, free a moment ago, becomes some client's own port before the server gets to bind it.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};

const FIRST: u32 = 10_000;
const COUNT: u32 = 20_000;

/// An address of 127.0.0.1 that is free for TCP and UDP, and that no other test of this process
/// gets.
pub fn free_address() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    loop {
        let step = u32::from(NEXT.fetch_add(1, Ordering::Relaxed));
        // Processes that run side by side begin far from each other.
        let place = std::process::id().wrapping_mul(211).wrapping_add(step) % COUNT;
        let port = u16::try_from(FIRST + place).unwrap();
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        if TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok() {
            return address;
        }
    }
}
