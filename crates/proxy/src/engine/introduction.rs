//! The PROXY header, by which a proxy introduces a visitor before anything else is said.
//!
//! On a listener where it is expected a connection is looked at without being read until the header
//! is whole; then exactly the header is taken, so that whatever follows it, TLS or HTTP, begins
//! where it should. A connection that begins otherwise is reset. The time is that of a request's
//! head, both together.

use std::io;

use levee_net::Sent;
use levee_wire::{PROXY_HEADER_BYTES_MAX, ProxyHeader};

use super::Core;
use super::drive::Go;
use crate::connection::{Connection, Introduction};

impl Core {
    /// Hears who the visitor of a new connection is.
    pub(super) fn hear_introduction(&mut self, connection: &mut Connection) -> Go {
        let mut buffer = std::mem::take(&mut self.buffer);
        let length = buffer.len().min(PROXY_HEADER_BYTES_MAX);
        let go = introduce(connection, &mut buffer[..length]);
        self.buffer = buffer;
        go.unwrap_or_else(|error| {
            self.counters.bad_requests.add(1);
            tracing::debug!(peer = %connection.peer, %error, "no introduction");
            Go::Reset
        })
    }
}

fn introduce(connection: &mut Connection, buffer: &mut [u8]) -> io::Result<Go> {
    let Some(socket) = connection.socket.descriptor() else {
        return Ok(Go::Close);
    };
    let seen = match levee_net::peek(socket, buffer)? {
        Sent::WouldBlock => return Ok(Go::Wait),
        // It left without a word, as load balancers do that only look whether somebody listens.
        Sent::Bytes(0) => return Ok(Go::Close),
        Sent::Bytes(seen) => seen,
    };
    let header = ProxyHeader::parse(&buffer[..seen])
        .map_err(|fault| io::Error::new(io::ErrorKind::InvalidData, fault))?;
    let Some(header) = header else {
        return Ok(Go::Wait);
    };
    levee_net::take(socket, &mut buffer[..header.length])?;
    if let Some(addresses) = header.addresses {
        connection.peer = addresses.source;
    }
    connection.introduction = Introduction::Done;
    Ok(Go::On)
}
