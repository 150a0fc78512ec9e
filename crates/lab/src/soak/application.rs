//! The application of a soak: a process of its own, so that it can be killed.

use std::convert::Infallible;
use std::path::Path;
use std::pin::Pin;
use std::process::ExitCode;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::UnixListener;
use tokio::runtime::Builder;

use super::body::{Asked, Keeping};

type Body = BoxBody<Bytes, Infallible>;

/// Pieces of an answer without a length.
const CHUNK: usize = 5000;

/// Answers at `socket` until it is killed.
pub(super) fn serve(socket: &Path) -> ExitCode {
    let runtime = Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else {
        return ExitCode::FAILURE;
    };
    runtime.block_on(async {
        // What one that was killed has left.
        let _ = std::fs::remove_file(socket);
        let Ok(listener) = UnixListener::bind(socket) else {
            return ExitCode::FAILURE;
        };
        println!("levee: ready, site {}", socket.display());
        while let Ok((stream, _)) = listener.accept().await {
            let answering =
                http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
            tokio::spawn(async move {
                // A peer that leaves in the middle is part of the play.
                let _ = answering.await;
            });
        }
        ExitCode::SUCCESS
    })
}

async fn answer(request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
    let Some(asked) = Asked::of(request.uri().path()) else {
        let mut response = Response::new(Full::new(Bytes::new()).boxed());
        *response.status_mut() = StatusCode::NOT_FOUND;
        return Ok(response);
    };
    // What is sent comes back: a form must not lose a byte either.
    let (_, sent) = request.into_parts();
    let sent = sent
        .collect()
        .await
        .map(http_body_util::Collected::to_bytes);
    let sent = sent.unwrap_or_default();
    let bytes = match sent.is_empty() {
        true => Bytes::from(asked.body()),
        false => sent,
    };
    // Every other answer has no length.
    let body = match asked.seed % 2 {
        0 => Full::new(bytes).boxed(),
        _ => in_chunks(&bytes),
    };
    let mut response = Response::new(body);
    let control = match asked.keeping {
        Keeping::Kept => "max-age=2",
        Keeping::Not => "no-store",
    };
    let headers = response.headers_mut();
    headers.insert("cache-control", http::HeaderValue::from_static(control));
    Ok(response)
}

fn in_chunks(bytes: &Bytes) -> Body {
    let pieces = bytes.chunks(CHUNK).map(Bytes::copy_from_slice);
    Pieces(pieces.collect::<Vec<_>>().into_iter()).boxed()
}

/// A body that does not say how long it is.
struct Pieces(std::vec::IntoIter<Bytes>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.get_mut().0.next().map(|piece| Ok(Frame::data(piece))))
    }
}
