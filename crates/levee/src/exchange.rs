//! One HTTP request on a connection of its own: for errands, not for visitors.

use std::error::Error;
use std::net::SocketAddr;

use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, Full, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// Sends `request` to `address` and gives the body of a successful answer, of at most `bytes_max`.
///
/// # Errors
/// Half a sentence that fits behind "no answer: ": the connection's trouble, the status of an
/// answer that is no success, or a body that is too long.
///
/// Cancel safety: dropped half-way, the connection is closed; the request may have been carried
/// out.
pub async fn exchange(
    address: SocketAddr,
    request: http::Request<Full<Bytes>>,
    bytes_max: usize,
) -> Result<Bytes, String> {
    match ask(address, request, bytes_max).await? {
        (status, body) if status.is_success() => Ok(body),
        (status, _) => Err(format!("it answers {status}")),
    }
}

/// As [`exchange`], and gives every answer with its status.
///
/// # Errors
/// As [`exchange`], but for the status.
///
/// Cancel safety: as [`exchange`].
pub async fn ask(
    address: SocketAddr,
    request: http::Request<Full<Bytes>>,
    bytes_max: usize,
) -> Result<(StatusCode, Bytes), String> {
    let stream = TcpStream::connect(address)
        .await
        .map_err(|error| told(&error))?;
    ask_on(stream, request, bytes_max).await
}

/// As [`ask`], on a connection that is open.
///
/// # Errors
/// As [`ask`]; whether the request was carried out is not known then.
///
/// Cancel safety: as [`exchange`].
pub async fn ask_on(
    stream: TcpStream,
    request: http::Request<Full<Bytes>>,
    bytes_max: usize,
) -> Result<(StatusCode, Bytes), String> {
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| told(&error))?;
    let answer = async {
        let response = sender
            .send_request(request)
            .await
            .map_err(|error| told(&error))?;
        let status = response.status();
        let body = Limited::new(response.into_body(), bytes_max)
            .collect()
            .await;
        body.map(|body| (status, body.to_bytes()))
            .map_err(|error| error.to_string())
    };
    tokio::pin!(answer);
    // The connection has to be driven while the answer is awaited; its error shows in the answer.
    tokio::select! {
        answer = &mut answer => answer,
        // It may close as soon as it has answered, and the answer is there all the same.
        _ = connection => answer.await,
    }
}

fn told(error: &dyn Error) -> String {
    error.to_string()
}
