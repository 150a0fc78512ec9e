//! What can be learnt of a connection without using it up: the bytes that wait, where it ends.
//!
//! Bytes that belong to nobody but us may stand before what a connection carries, such as the
//! header by which a proxy introduces a visitor. They are looked at first and then taken exactly,
//! so that whoever reads the connection afterwards begins at its own first byte.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use rustix::io::Errno;
use rustix::net::RecvFlags;

use crate::socket::Sent;

/// Copies what has arrived into `buffer` and leaves it there. Zero bytes are the end of the stream.
pub fn peek(connection: impl AsFd, buffer: &mut [u8]) -> io::Result<Sent> {
    match rustix::net::recv(connection, buffer, RecvFlags::PEEK) {
        Ok((length, _)) => Ok(Sent::Bytes(length)),
        Err(Errno::AGAIN | Errno::INTR) => Ok(Sent::WouldBlock),
        Err(error) => Err(error.into()),
    }
}

/// Takes `buffer.len()` bytes away that [`peek`] has shown.
///
/// # Errors
/// Where fewer are there: somebody else reads the connection as well.
pub fn take(connection: impl AsFd, buffer: &mut [u8]) -> io::Result<()> {
    match rustix::net::recv(connection, &mut *buffer, RecvFlags::empty())? {
        (length, _) if length == buffer.len() => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Our own end of a connection.
pub fn local_address(connection: impl AsFd) -> io::Result<SocketAddr> {
    let address = rustix::net::getsockname(connection)?;
    SocketAddr::try_from(address).map_err(io::Error::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpListener, TcpStream};

    #[test]
    fn what_was_looked_at_is_still_there_and_what_was_taken_is_not() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        client.write_all(b"header|rest").unwrap();
        let mut buffer = [0; 64];
        assert_eq!(peek(&server, &mut buffer).unwrap(), Sent::Bytes(11));
        assert_eq!(peek(&server, &mut buffer).unwrap(), Sent::Bytes(11));
        take(&server, &mut buffer[..7]).unwrap();
        let mut rest = [0; 4];
        server.read_exact(&mut rest).unwrap();
        assert_eq!(&rest, b"rest");
        server.set_nonblocking(true).unwrap();
        assert_eq!(peek(&server, &mut buffer).unwrap(), Sent::WouldBlock);
        let local = local_address(&server).unwrap();
        assert_eq!(local, listener.local_addr().unwrap());
    }
}
