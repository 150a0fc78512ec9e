//! New connections to sources: over TCP or a socket in the file system.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use hyper::client::conn::http1::{Builder, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
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
    /// What is said before anything else: the PROXY header.
    preface: Option<Bytes>,
}

/// Whom a connection may serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Belonging {
    /// Everybody, one after the other.
    Everybody,
    /// The visitor who was announced on it.
    OneVisitor,
}

impl Way {
    /// The way to an address.
    pub fn to(address: SocketAddr) -> Self {
        Self {
            endpoint: Endpoint::Address(address),
            addresses: Arc::new([address]),
            preface: None,
        }
    }

    /// The way to an upstream, to which `preface` is said before anything else.
    pub fn of(member: &Member, preface: Option<Vec<u8>>) -> Self {
        Self {
            endpoint: member.endpoint.clone(),
            addresses: member.addresses(),
            preface: preface.map(Bytes::from),
        }
    }

    /// Whom a connection by this way may serve.
    pub fn belonging(&self) -> Belonging {
        match self.preface {
            None => Belonging::Everybody,
            Some(_) => Belonging::OneVisitor,
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
async fn speak<S>(mut stream: S, way: &Way) -> Result<SendRequest<Upload>, FetchError>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    if let Some(preface) = &way.preface {
        let written = stream.write_all(preface).await;
        written.map_err(|error| failure(way, &error))?;
    }
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
