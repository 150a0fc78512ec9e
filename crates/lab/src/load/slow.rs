//! Readers that take a large answer in small sips: a flood of them costs its sender nothing.
//!
//! Each has a small receive buffer, so the server cannot hand the answer to the kernel and forget
//! it: it must keep what is unsent, or know where to get it again.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::net::sockopt;

use super::{Asked, Seen, announce, wait_for_the_end};

/// Each reader takes so much ...
const SIP_BYTES: usize = 1024;
/// ... so often: 10 kB a second, faster than any limit against readers that do not read at all.
const SIP_EVERY: Duration = Duration::from_millis(100);
const RECEIVE_BUFFER_BYTES: usize = 4096;

/// Starts all of them and sips until the end of standard input.
pub(super) fn run(asked: &Asked, connections: u32) -> io::Result<Seen> {
    let request = asked.request("keep-alive");
    let mut readers = Vec::new();
    for _ in 0..connections {
        let mut stream = TcpStream::connect(asked.address)?;
        sockopt::set_socket_recv_buffer_size(&stream, RECEIVE_BUFFER_BYTES)?;
        stream.write_all(request.as_bytes())?;
        // One that the server keeps waiting must not hold up the sips of the others.
        stream.set_nonblocking(true)?;
        readers.push(stream);
    }
    let (end, ended) = mpsc::channel::<()>();
    thread::spawn(move || {
        let _ = wait_for_the_end();
        drop(end);
    });
    let mut taken = 0;
    let mut lost = 0;
    let mut is_announced = false;
    let mut sip = [0; SIP_BYTES];
    loop {
        readers.retain_mut(|reader| match reader.read(&mut sip) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => true,
            Ok(0) | Err(_) => {
                lost += 1;
                false
            }
            Ok(got) => {
                taken += got as u64;
                true
            }
        });
        let seen = Seen {
            figures: vec![
                ("connections", readers.len() as u64),
                ("errors", lost),
                ("bytes", taken),
            ],
        };
        if !is_announced {
            announce(&seen)?;
            is_announced = true;
        }
        match ended.recv_timeout(SIP_EVERY) {
            Err(mpsc::RecvTimeoutError::Timeout) => {}
            Ok(()) | Err(mpsc::RecvTimeoutError::Disconnected) => return Ok(seen),
        }
    }
}
