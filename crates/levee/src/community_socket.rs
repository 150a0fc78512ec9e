//! The TCP connections between members of a community: few, long-lived, and worth nothing when
//! late.
//!
//! Each says at once what it has to say, notices a dead peer without being asked, and speaks from
//! the address that its messages name where this machine has that address.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpSocket, TcpStream};

/// Opens a connection to `target`, from the address `source` if this machine has it.
///
/// Waits as long as the kernel does: set a deadline. Dropped half-way, the attempt is given up.
pub async fn connect(source: Option<IpAddr>, target: SocketAddr) -> io::Result<TcpStream> {
    let socket = match target {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    if let Some(source) = source.filter(|source| source.is_ipv4() == target.is_ipv4()) {
        // Behind an address translator our public address is not ours to bind. The translator
        // then puts it on; if it does not, the other side will tell.
        let _ = socket.bind(SocketAddr::new(source, 0));
    }
    let stream = socket.connect(target).await?;
    prepare(&stream)?;
    Ok(stream)
}

/// Makes an open connection notice a dead peer, and send without delay.
pub fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_IDLE)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(3);
    socket.set_tcp_keepalive(&keepalive)?;
    socket.set_tcp_user_timeout(Some(USER_TIMEOUT))
}

/// The address from which this machine reaches `target`. Sends nothing.
pub fn address_towards(target: SocketAddr) -> io::Result<IpAddr> {
    let any: SocketAddr = match target {
        SocketAddr::V4(_) => (std::net::Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (std::net::Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = std::net::UdpSocket::bind(any)?;
    socket.connect(target)?;
    Ok(socket.local_addr()?.ip())
}

/// A quiet link is probed after this, so that a machine that lost its power is noticed within half
/// a minute even when neither side has anything to say.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(15);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);
/// Bytes that are not acknowledged for this long break the connection; the default is a quarter of
/// an hour.
const USER_TIMEOUT: Duration = Duration::from_secs(10);
