//! A listening socket, alone on its port or one of several that share it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::net::SocketFlags;
use socket2::{Domain, Protocol, Type};
use thiserror::Error;

use crate::options::{self, TcpOption};
use crate::socket::Socket;

/// A socket that accepts connections.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    address: SocketAddr,
}

/// Whether other sockets of this process listen on the same port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortSharing {
    /// This socket alone.
    Alone,
    /// The first of several: the port must still be free.
    First,
    /// One of several, after the first.
    Next,
}

/// A connection that somebody opened.
#[derive(Debug)]
pub struct Accepted {
    /// The connection, not blocking.
    pub socket: Socket,
    /// Who opened it.
    pub peer: SocketAddr,
}

/// Why an address cannot be listened on.
#[derive(Debug, Error)]
#[error("cannot bind {address}: {cause}")]
pub struct ListenerError {
    /// The address.
    pub address: SocketAddr,
    /// What the system said.
    pub cause: io::Error,
}

/// Seconds that the kernel waits for the first bytes of a connection before it hands it over.
const FIRST_BYTES_WAIT: u32 = 1;
/// Bytes that the kernel takes of a response beyond what is on its way to the visitor. Without this
/// it takes megabytes of each large file for each slow reader.
const UNSENT_BYTES_MAX: u32 = 1024 * 1024;
/// Connections that the kernel holds until we accept them. A crowd arrives in bursts; the kernel
/// cuts this to net.core.somaxconn.
const BACKLOG: i32 = 4096;

impl Listener {
    /// Binds and listens; port 0 picks a free one.
    pub fn bind(address: SocketAddr, sharing: PortSharing) -> Result<Self, ListenerError> {
        let fail = |cause| ListenerError { address, cause };
        if sharing == PortSharing::First && address.port() != 0 {
            // Linux lets any process of the same user join a shared port. One that binds alone
            // first finds out whether somebody else is there already.
            open(address, PortSharing::Alone).map_err(fail)?;
        }
        let socket = open(address, sharing).map_err(fail)?;
        tune(&socket).map_err(fail)?;
        socket.listen(BACKLOG).map_err(fail)?;
        let bound = socket.local_addr().map_err(fail)?;
        let address = bound.as_socket().unwrap_or(address);
        Ok(Self {
            fd: socket.into(),
            address,
        })
    }

    /// Takes over a socket that somebody else bound and that listens already.
    ///
    /// # Errors
    /// Where it is not a listening TCP socket.
    pub fn adopt(fd: OwnedFd) -> io::Result<Self> {
        let socket = socket2::Socket::from(fd);
        let address = socket.local_addr()?.as_socket();
        let listens = socket.is_listener()? && socket.r#type()? == Type::STREAM;
        let Some(address) = address.filter(|_| listens) else {
            let text = "an inherited descriptor is not a listening TCP socket";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        };
        socket.set_nonblocking(true)?;
        socket.set_cloexec(true)?;
        tune(&socket)?;
        Ok(Self {
            fd: socket.into(),
            address,
        })
    }

    /// Another descriptor of the same socket. Who accepts first has the connection.
    ///
    /// # Errors
    /// Where the system has no descriptor left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            fd: self.fd.try_clone()?,
            address: self.address,
        })
    }

    /// Where it listens, with the real port.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The next connection, or none when no more wait.
    pub fn accept(&self) -> io::Result<Option<Accepted>> {
        use rustix::io::Errno;
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        match rustix::net::acceptfrom_with(&self.fd, flags) {
            Ok((fd, peer)) => {
                let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
                Ok(Some(Accepted {
                    socket: Socket::new(fd),
                    peer: peer.unwrap_or(self.address),
                }))
            }
            // A visitor who left before we came is not an error of ours: look again at once.
            Err(Errno::CONNABORTED | Errno::INTR | Errno::PROTO) => self.accept(),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Sets what accepted connections inherit, and when they are handed over.
///
/// TCP_NODELAY: answers are written in one piece, and waiting to fill a packet only adds delay.
///
/// A connection is handed over when its first bytes are there, as HAProxy, H2O and nginx have it
/// too: of a flood of connections that say nothing the kernel keeps no more than a note, and the
/// first read finds the request, so that most connections of one request never meet epoll. One that
/// says nothing is handed over all the same after about a second.
fn tune(socket: &socket2::Socket) -> io::Result<()> {
    socket.set_tcp_nodelay(true)?;
    options::set(socket, TcpOption::DeferAccept, FIRST_BYTES_WAIT)?;
    options::set(socket, TcpOption::UnsentLowWater, UNSENT_BYTES_MAX)
}

fn open(address: SocketAddr, sharing: PortSharing) -> io::Result<socket2::Socket> {
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket = socket2::Socket::new(Domain::for_address(address), kind, Some(Protocol::TCP))?;
    // A restart must not wait for the last connections of the process before it.
    socket.set_reuse_address(true)?;
    match sharing {
        PortSharing::Alone => {}
        PortSharing::First | PortSharing::Next => socket.set_reuse_port(true)?,
    }
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sent;
    use std::io::{Read, Write};
    use std::net::{Ipv4Addr, TcpStream};

    fn free() -> SocketAddr {
        (Ipv4Addr::LOCALHOST, 0).into()
    }

    #[test]
    fn a_taken_port_is_an_error_even_when_it_is_shared() {
        let first = Listener::bind(free(), PortSharing::First).unwrap();
        let address = first.address();
        assert!(Listener::bind(address, PortSharing::Next).is_ok());
        let error = Listener::bind(address, PortSharing::First).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&format!("cannot bind {address}: "))
        );
        assert!(Listener::bind(address, PortSharing::Alone).is_err());
    }

    #[test]
    fn a_connection_carries_bytes_and_tells_what_tcp_knows() {
        let listener = Listener::bind(free(), PortSharing::Alone).unwrap();
        assert!(listener.accept().unwrap().is_none());
        let mut client = TcpStream::connect(listener.address()).unwrap();
        client.write_all(b"hello?").unwrap();
        let accepted = listener.accept().unwrap().unwrap();
        assert_eq!(accepted.peer, client.local_addr().unwrap());
        assert_eq!(accepted.socket.read(&mut [0; 8]).unwrap(), Sent::Bytes(6));
        assert_eq!(accepted.socket.read(&mut [0; 8]).unwrap(), Sent::WouldBlock);
        assert_eq!(accepted.socket.write(b"hello").unwrap(), Sent::Bytes(5));
        let mut bytes = [0; 5];
        client.read_exact(&mut bytes).unwrap();
        assert_eq!(&bytes, b"hello");
        let info = accepted.socket.tcp_info().unwrap();
        assert!(info.segments_out >= 1, "{info:?}");
        accepted.socket.reset();
        assert!(client.read_exact(&mut bytes).is_err());
    }

    #[test]
    fn a_visitor_who_does_not_read_takes_little_memory() {
        let listener = Listener::bind(free(), PortSharing::Alone).unwrap();
        let client = socket2::Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        client.set_recv_buffer_size(8192).unwrap();
        client.connect(&listener.address().into()).unwrap();
        client.send(b"hello?").unwrap();
        let accepted = listener.accept().unwrap().unwrap();
        let mut written = 0;
        while let Sent::Bytes(bytes) = accepted.socket.write(&[b'x'; 4096]).unwrap() {
            written += bytes;
        }
        let most = UNSENT_BYTES_MAX as usize + 64 * 1024;
        assert!(written <= most, "{written} of {most}");
    }

    #[test]
    fn a_connection_that_says_nothing_is_accepted_all_the_same() {
        let listener = Listener::bind(free(), PortSharing::Alone).unwrap();
        let mut poller = crate::Poller::new().unwrap();
        poller.watch_level(&listener, 1).unwrap();
        let client = TcpStream::connect(listener.address()).unwrap();
        poller
            .wait(Some(std::time::Duration::from_secs(30)))
            .unwrap();
        let accepted = listener.accept().unwrap().unwrap();
        assert_eq!(accepted.peer, client.local_addr().unwrap());
    }
}
