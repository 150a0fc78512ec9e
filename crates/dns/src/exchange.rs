//! One question and its answer over TCP (RFC 7766): no packet is lost, cut or forged on the way.
//!
//! Updates are rare, so each has a connection of its own, which leaves nothing to go stale. The
//! deadline counts from the connection on.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::zone::Cause;

/// Sends `question` to `server` and gives what comes back within `wait`.
///
/// Cancel safety: dropped half-way, the server may have got the question.
pub(crate) async fn exchange(
    server: SocketAddr,
    question: &[u8],
    wait: Duration,
) -> Result<Vec<u8>, Cause> {
    let talk = async {
        let mut stream = TcpStream::connect(server).await?;
        write_message(&mut stream, question).await?;
        read_message(&mut stream).await
    };
    match timeout(wait, talk).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error)) => Err(Cause::Unreachable {
            why: error.to_string(),
        }),
        Err(_) => Err(Cause::TimedOut { wait }),
    }
}

/// Writes `message` with its length before it.
///
/// # Errors
/// As the connection; a message of 64 KiB or more is invalid input.
///
/// Cancel safety: dropped half-way, the connection is of no more use.
pub(crate) async fn write_message(
    stream: &mut (impl AsyncWriteExt + Unpin),
    message: &[u8],
) -> std::io::Result<()> {
    let length = u16::try_from(message.len()).map_err(|_| std::io::ErrorKind::InvalidInput)?;
    // In one piece: some servers read the length and the rest in one go.
    let mut framed = Vec::with_capacity(message.len() + 2);
    framed.extend_from_slice(&length.to_be_bytes());
    framed.extend_from_slice(message);
    stream.write_all(&framed).await
}

/// Reads one message.
///
/// # Errors
/// As the connection; its end is `UnexpectedEof`.
///
/// Cancel safety: dropped half-way, the connection is of no more use.
pub(crate) async fn read_message(
    stream: &mut (impl AsyncReadExt + Unpin),
) -> std::io::Result<Vec<u8>> {
    let length = stream.read_u16().await?;
    let mut message = vec![0; usize::from(length)];
    stream.read_exact(&mut message).await?;
    Ok(message)
}
