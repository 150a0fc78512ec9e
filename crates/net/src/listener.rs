//! A listening socket: alone on its port, one of several that share it, or in the file system.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::net::SocketFlags;
use socket2::{Domain, Protocol, Type};
use thiserror::Error;

use crate::listen_address::ListenAddress;
use crate::options::{self, TcpOption};
use crate::socket::Socket;
use crate::socket_file::{self, SocketFile};

/// A socket that accepts connections.
#[derive(Debug)]
pub struct Listener {
    fd: OwnedFd,
    address: ListenAddress,
    /// Of a socket in the file system that was bound here: removed with the last descriptor.
    file: Option<Arc<SocketFile>>,
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
    /// Who opened it. Who came by a socket in the file system has no address, and counts as
    /// 127.0.0.1 without a port.
    pub peer: SocketAddr,
}

/// Why an address cannot be listened on.
#[derive(Debug, Error)]
#[error("cannot bind {address}: {cause}{}", way_out(address, cause))]
pub struct ListenerError {
    /// The address.
    pub address: ListenAddress,
    /// What the system said.
    pub cause: io::Error,
}

impl ListenerError {
    /// Why something else than a [`Listener`] cannot listen at this TCP or UDP address.
    pub const fn at(address: SocketAddr, cause: io::Error) -> Self {
        let address = ListenAddress::Tcp(address);
        Self { address, cause }
    }
}

/// What an operator can do about `cause`.
fn way_out(address: &ListenAddress, cause: &io::Error) -> &'static str {
    match (address, cause.kind()) {
        (ListenAddress::Tcp(_), io::ErrorKind::AddrInUse) => {
            "; stop what listens there, or choose another port"
        }
        (ListenAddress::Tcp(_), io::ErrorKind::AddrNotAvailable) => {
            "; this machine has no such address"
        }
        (ListenAddress::Tcp(_), io::ErrorKind::PermissionDenied) => {
            "; a port below 1024 needs CAP_NET_BIND_SERVICE, which the systemd unit gives: start \
             it by that, or choose a higher port"
        }
        (ListenAddress::Tcp(_) | ListenAddress::Unix(_), _) => "",
    }
}

/// Seconds that the kernel waits for the first bytes of a connection before it hands it over.
const FIRST_BYTES_WAIT: u32 = 1;
/// Bytes that the kernel takes of a response beyond what is on its way to the visitor. Without this
/// it takes megabytes of each large file for each slow reader.
const UNSENT_BYTES_MAX: u32 = 1024 * 1024;
/// Who opened a connection to a socket in the file system: somebody on this machine.
const LOCAL: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
/// Connections that the kernel holds until we accept them. A crowd arrives in bursts; the kernel
/// cuts this to net.core.somaxconn.
const BACKLOG: i32 = 4096;

impl Listener {
    /// Binds and listens; port 0 picks a free one.
    pub fn bind(address: SocketAddr, sharing: PortSharing) -> Result<Self, ListenerError> {
        let fail = |cause| ListenerError {
            address: address.into(),
            cause,
        };
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
            address: address.into(),
            file: None,
        })
    }

    /// Binds a socket in the file system and listens; those may connect whom the bits `mode` let
    /// write. The file goes when the last descriptor of it is dropped.
    ///
    /// # Errors
    /// Where a running process listens there, where something that is no socket is there, and where
    /// the folder is missing or may not be written. What a dead process left is replaced.
    pub fn bind_unix(path: &Path, mode: u32) -> Result<Self, ListenerError> {
        let address = ListenAddress::Unix(path.to_owned());
        match socket_file::bind(path, mode, BACKLOG) {
            Ok((fd, file)) => Ok(Self {
                fd,
                address,
                file: Some(Arc::new(file)),
            }),
            Err(cause) => Err(ListenerError { address, cause }),
        }
    }

    /// Takes over a socket that somebody else bound and that listens already.
    ///
    /// # Errors
    /// Where it is not a listening socket of TCP or in the file system.
    pub fn adopt(fd: OwnedFd) -> io::Result<Self> {
        let socket = socket2::Socket::from(fd);
        let local = socket.local_addr()?;
        let in_files = || Some(ListenAddress::Unix(local.as_pathname()?.to_owned()));
        let address = local.as_socket().map(ListenAddress::Tcp).or_else(in_files);
        let listens = socket.is_listener()? && socket.r#type()? == Type::STREAM;
        let Some(address) = address.filter(|_| listens) else {
            let text = "an inherited descriptor is not a listening socket of TCP or in a folder";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
        };
        socket.set_nonblocking(true)?;
        socket.set_cloexec(true)?;
        match address {
            ListenAddress::Tcp(_) => tune(&socket)?,
            ListenAddress::Unix(_) => {}
        }
        Ok(Self {
            fd: socket.into(),
            address,
            // Its file belongs to whoever bound it.
            file: None,
        })
    }

    /// Another descriptor of the same socket. Who accepts first has the connection.
    ///
    /// # Errors
    /// Where the system has no descriptor left.
    pub fn try_clone(&self) -> io::Result<Self> {
        Ok(Self {
            fd: self.fd.try_clone()?,
            address: self.address.clone(),
            file: self.file.clone(),
        })
    }

    /// Where it listens, with the real port.
    pub const fn address(&self) -> &ListenAddress {
        &self.address
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
                    peer: peer.unwrap_or(LOCAL),
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

    fn address_of(listener: &Listener) -> SocketAddr {
        listener.address().tcp().unwrap()
    }

    #[test]
    fn a_socket_in_the_file_system_is_there_as_long_as_somebody_accepts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("levee.sock");
        let listener = Listener::bind_unix(&path, 0o600).unwrap();
        let other = listener.try_clone().unwrap();
        drop(listener);
        let mut client = std::os::unix::net::UnixStream::connect(&path).unwrap();
        client.write_all(b"hello?").unwrap();
        let accepted = other.accept().unwrap().unwrap();
        assert_eq!(accepted.peer, LOCAL);
        assert_eq!(accepted.socket.read(&mut [0; 8]).unwrap(), Sent::Bytes(6));
        let error = Listener::bind_unix(&path, 0o600).unwrap_err().to_string();
        let start = format!("cannot bind unix:{}: ", path.display());
        assert!(error.starts_with(&start), "{error}");
        let adopted = Listener::adopt(other.fd.try_clone().unwrap()).unwrap();
        assert_eq!(adopted.address(), other.address());
        drop(other);
        assert!(!path.exists());
    }

    #[test]
    fn a_taken_port_is_an_error_even_when_it_is_shared() {
        let first = Listener::bind(free(), PortSharing::First).unwrap();
        let address = address_of(&first);
        assert!(Listener::bind(address, PortSharing::Next).is_ok());
        let error = Listener::bind(address, PortSharing::First).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with(&format!("cannot bind {address}: "))
        );
        assert!(
            error.to_string().ends_with("choose another port"),
            "{error}"
        );
        assert!(Listener::bind(address, PortSharing::Alone).is_err());
    }

    #[test]
    fn a_connection_carries_bytes_and_tells_what_tcp_knows() {
        let listener = Listener::bind(free(), PortSharing::Alone).unwrap();
        assert!(listener.accept().unwrap().is_none());
        let mut client = TcpStream::connect(address_of(&listener)).unwrap();
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
        client.connect(&address_of(&listener).into()).unwrap();
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
        let client = TcpStream::connect(address_of(&listener)).unwrap();
        poller
            .wait(Some(std::time::Duration::from_secs(30)))
            .unwrap();
        let accepted = listener.accept().unwrap().unwrap();
        assert_eq!(accepted.peer, client.local_addr().unwrap());
    }
}
