//! Reading a response of our own, as it is without a coding.

use bytes::Bytes;
use http::header::{self, HeaderMap};
use http::{Method, StatusCode};
use http_body_util::{BodyExt, Empty, Limited};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use levee_proxy::Errand;

use super::push::{Errands, Trouble};

/// Longest page or style sheet that is looked through. Hot pages are short, and what a longer one
/// embeds stands at its beginning for the most part.
pub(super) const BODY_BYTES_MAX: usize = 2 << 20;

/// A whole response.
pub(super) struct Seen {
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Seen {
    /// Its media type; empty where it names none.
    pub fn content_type(&self) -> &str {
        let value = self.headers.get(header::CONTENT_TYPE);
        value
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }
}

impl Errands {
    /// The response to a request for `target` that carries `key` where there is one. Anything but a
    /// whole page is refused.
    ///
    /// Cancel safety: dropped half-way, the connection is closed.
    pub(super) async fn read(
        &self,
        method: Method,
        target: &str,
        errand: Errand,
        key: Option<String>,
    ) -> Result<Seen, Trouble> {
        let request = http::Request::builder()
            .method(method)
            .uri(target)
            .header(header::HOST, self.site().web.to_string())
            .header(header::ACCEPT_ENCODING, "identity")
            .header(header::CONNECTION, "close");
        let request = match key {
            Some(key) => request.header("levee-fetch", key),
            None => request,
        };
        let request = request
            .body(Empty::<Bytes>::new())
            .map_err(Trouble::refused)?;
        let stream = TokioIo::new(self.open(errand)?);
        let (mut sender, connection) = http1::handshake(stream).await.map_err(Trouble::failed)?;
        let answer = async {
            let response = sender
                .send_request(request)
                .await
                .map_err(Trouble::failed)?;
            let (parts, body) = response.into_parts();
            let is_plain = !parts.headers.contains_key(header::CONTENT_ENCODING);
            if parts.status != StatusCode::OK || !is_plain {
                return Err(Trouble::refused(format!("it is {}", parts.status)));
            }
            let body = Limited::new(body, BODY_BYTES_MAX).collect().await;
            Ok(Seen {
                headers: parts.headers,
                body: body.map_err(Trouble::refused)?.to_bytes(),
            })
        };
        tokio::pin!(answer);
        tokio::select! {
            answer = &mut answer => answer,
            // It closes as soon as it has answered, and the answer is there all the same.
            _ = connection => answer.await,
        }
    }
}
