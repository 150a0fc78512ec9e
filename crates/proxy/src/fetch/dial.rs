//! New connections to sources: over TCP or a socket in the file system.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

use super::request::Upload;
use crate::flight::FetchError;
use crate::upstream::{Endpoint, Member};

/// How a source is reached.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    /// What connections to it are kept under.
    pub endpoint: Endpoint,
    /// Its addresses, tried in this order.
    addresses: Arc<[SocketAddr]>,
}

impl Way {
    /// The way to an address.
    pub fn to(address: SocketAddr) -> Self {
        Self {
            endpoint: Endpoint::Address(address),
            addresses: Arc::new([address]),
        }
    }

    /// The way to an upstream.
    pub fn of(member: &Member) -> Self {
        Self {
            endpoint: member.endpoint.clone(),
            addresses: member.addresses(),
        }
    }
}

/// A connection on which requests can be sent.
///
/// Cancel safety: dropped half-way, nothing stays open. There is no deadline; callers have one.
pub(crate) async fn dial(way: &Way) -> Result<SendRequest<Upload>, FetchError> {
    if let Endpoint::Unix(path) = &way.endpoint {
        let stream = UnixStream::connect(path).await;
        return speak(stream.map_err(|error| failure(way, &error))?, way).await;
    }
    let mut last = FetchError::NameUnknown;
    for address in &*way.addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => {
                // Where the option fails the connection is dead already; its use will tell.
                let _ = stream.set_nodelay(true);
                return speak(stream, way).await;
            }
            Err(error) => last = failure(way, &error),
        }
    }
    Err(last)
}

/// HTTP on a new connection.
async fn speak<S>(stream: S, way: &Way) -> Result<SendRequest<Upload>, FetchError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let shaken = Builder::new().handshake(TokioIo::new(stream)).await;
    let (sender, connection) = shaken.map_err(|_| FetchError::ConnectFailed)?;
    let endpoint = way.endpoint.clone();
    tokio::spawn(async move {
        // Whoever waits for a response on it is told of the error as well.
        if let Err(error) = connection.with_upgrades().await {
            tracing::trace!("connection to {endpoint} ended: {error}");
        }
    });
    Ok(sender)
}

/// Why there is no connection.
fn failure(way: &Way, error: &io::Error) -> FetchError {
    use std::io::ErrorKind;
    tracing::debug!("cannot connect to {}: {error}", way.endpoint);
    // Most kinds of errors, now and to come, say that there is no way.
    if matches!(error.kind(), ErrorKind::ConnectionRefused) {
        FetchError::ConnectRefused
    } else if matches!(error.kind(), ErrorKind::TimedOut) {
        FetchError::ConnectTimeout
    } else {
        FetchError::ConnectFailed
    }
}
