//! Interim responses of our own application, above all 103 Early Hints (RFC 8297): passed on to the
//! visitor by whose request it was asked, at once.
//!
//! 100 is the engine's own affair, and 101 ends HTTP on the connection. Those of rescued origins
//! are dropped: a hint is worth a round trip, and there is none between a rescue server's cache and
//! its visitors.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};

use super::response::Ending;
use crate::flight::Flight;

/// Longest interim response that is passed on.
const BYTES_MAX: usize = 8 * 1024;

/// Passes what comes before the response to `request` on to the first reader of `flight`.
pub(super) fn pass_on<B>(request: &mut Request<B>, flight: &Arc<Flight>) {
    let flight = Arc::clone(flight);
    hyper::ext::on_informational(request, move |response| {
        if let Some(early) = written(response.status(), response.headers()) {
            flight.inform(early);
        }
    });
}

/// The response as it is sent; none where it is not for visitors.
fn written(status: StatusCode, headers: &HeaderMap) -> Option<Bytes> {
    if matches!(status.as_u16(), 100 | 101) {
        return None;
    }
    let reason = status.canonical_reason().unwrap_or("Status");
    let mut text = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16()).into_bytes();
    let ending = Ending::of(headers);
    for (name, value) in headers {
        //= RFC 9110 section 6.6.2: it speaks of what follows a body, and here none does.
        if ending.contains(name.as_str()) || *name == header::TRAILER {
            continue;
        }
        text.extend_from_slice(name.as_str().as_bytes());
        text.extend_from_slice(b": ");
        text.extend_from_slice(value.as_bytes());
        text.extend_from_slice(b"\r\n");
    }
    text.extend_from_slice(b"\r\n");
    (text.len() <= BYTES_MAX).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_passed_on_and_what_is_of_the_connection_is_not() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("link", "</a.css>; rel=preload"),
            ("connection", "close, x-hop"),
            ("x-hop", "secret"),
            ("alt-svc", "h3=\":443\""),
        ] {
            headers.insert(name, value.parse().unwrap());
        }
        let text = written(StatusCode::EARLY_HINTS, &headers).unwrap();
        let expected = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>; rel=preload\r\n\r\n";
        assert_eq!(text, expected);
        assert_eq!(written(StatusCode::CONTINUE, &headers), None);
        headers.insert("link", "x".repeat(BYTES_MAX).parse().unwrap());
        assert_eq!(written(StatusCode::EARLY_HINTS, &headers), None);
    }
}
