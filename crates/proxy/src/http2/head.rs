//! Heads, from HTTP/2 to the text that the engine's strict parser reads, and back.
//!
//! A request passes the same parser whatever protocol it came by, so that a rule stands in one
//! place and a parked request is kept as text. What an HTTP/1.1 server behind us would see is
//! exactly what was parsed here: nothing that means something else in the two protocols gets
//! through (RFC 9113 section 10.3).

use std::mem::MaybeUninit;

use bytes::Bytes;
use http::header::{COOKIE, HOST};
use http::{HeaderName, HeaderValue, StatusCode, request, response};
use thiserror::Error;

use crate::connection_fields::is_of_connection;

/// A head that must not be answered: its stream is reset (RFC 9113 section 8.1.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum Malformed {
    #[error("no path")]
    MissingPath,
    #[error("a field value begins or ends with white space")]
    BadFieldValue,
}

/// Whether a body follows the head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    Nothing,
    Body,
}

/// A response head that was made here or came from an upstream and cannot be told in HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a response head that HTTP/2 cannot tell")]
pub(super) struct BadResponseHead;

/// Most header lines of a response: those of an upstream and some of ours.
const RESPONSE_LINES_MAX: usize = 128;

/// Appends the head of a request as HTTP/1.1 writes it.
pub(super) fn write_request(
    parts: &request::Parts,
    follows: Follows,
    out: &mut Vec<u8>,
) -> Result<(), Malformed> {
    let is_connect = parts.method == http::Method::CONNECT;
    let authority = parts.uri.authority().map(http::uri::Authority::as_str);
    out.extend_from_slice(parts.method.as_str().as_bytes());
    out.push(b' ');
    match (parts.uri.path_and_query(), authority) {
        (Some(target), _) if !is_connect => out.extend_from_slice(target.as_str().as_bytes()),
        (_, Some(authority)) if is_connect => out.extend_from_slice(authority.as_bytes()),
        _ => return Err(Malformed::MissingPath),
    }
    out.extend_from_slice(b" HTTP/1.1\r\n");
    if let Some(authority) = authority {
        push_line(b"host", authority.as_bytes(), out);
    }
    for (name, value) in &parts.headers {
        let value = value.as_bytes();
        //= RFC 9113 section 8.2.1: "A field value MUST NOT start or end with an ASCII whitespace
        // character"
        if value.trim_ascii().len() != value.len() {
            return Err(Malformed::BadFieldValue);
        }
        match *name {
            // Joined below.
            COOKIE => {}
            //= RFC 9113 section 8.3.1: the two must agree. Where they do not, both are written, and
            // the parser refuses the request.
            HOST if authority.is_some_and(|name| value.eq_ignore_ascii_case(name.as_bytes())) => {}
            _ => push_line(name.as_str().as_bytes(), value, out),
        }
    }
    push_cookies(&parts.headers, out);
    if follows == Follows::Body && !parts.headers.contains_key(http::header::CONTENT_LENGTH) {
        push_line(b"transfer-encoding", b"chunked", out);
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

//= RFC 9113 section 8.2.3: cookies that came in pieces are put together "using the two-octet
// delimiter of 0x3b, 0x20".
fn push_cookies(headers: &http::HeaderMap, out: &mut Vec<u8>) {
    let mut crumbs = headers.get_all(COOKIE).iter();
    let Some(first) = crumbs.next() else { return };
    out.extend_from_slice(b"cookie: ");
    out.extend_from_slice(first.as_bytes());
    for crumb in crumbs {
        out.extend_from_slice(b"; ");
        out.extend_from_slice(crumb.as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

fn push_line(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Reads the head of a response of ours from its text; gives its length as well. What belongs to a
/// connection of HTTP/1.1 is left out.
pub(super) fn read_response(text: &[u8]) -> Result<(http::Response<()>, usize), BadResponseHead> {
    let mut space = [const { MaybeUninit::uninit() }; RESPONSE_LINES_MAX];
    let mut raw = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default()
        .parse_response_with_uninit_headers(&mut raw, text, &mut space);
    let Ok(httparse::Status::Complete(length)) = parsed else {
        return Err(BadResponseHead);
    };
    let status = raw.code.and_then(|code| StatusCode::from_u16(code).ok());
    // One copy for all values, which then share it.
    let kept = Bytes::copy_from_slice(&text[..length]);
    let mut parts: response::Parts = http::Response::new(()).into_parts().0;
    parts.status = status.ok_or(BadResponseHead)?;
    parts.headers.reserve(raw.headers.len());
    for header in raw.headers.iter() {
        let name = HeaderName::from_bytes(header.name.as_bytes()).map_err(|_| BadResponseHead)?;
        //= RFC 9113 section 8.2.2: "An endpoint MUST NOT generate an HTTP/2 message containing
        // connection-specific header fields."
        if is_of_connection(name.as_str()) {
            continue;
        }
        let value = match header.value {
            [] => HeaderValue::from_static(""),
            value => HeaderValue::from_maybe_shared(kept.slice(place(value, text)))
                .map_err(|_| BadResponseHead)?,
        };
        parts.headers.append(name, value);
    }
    Ok((http::Response::from_parts(parts, ()), length))
}

/// Where `part`, which was cut from `text`, stands in it.
fn place(part: &[u8], text: &[u8]) -> std::ops::Range<usize> {
    let start = part.as_ptr() as usize - text.as_ptr() as usize;
    start..start + part.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(request: request::Builder, follows: Follows) -> Result<String, Malformed> {
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let mut out = Vec::new();
        write_request(&parts, follows, &mut out)?;
        Ok(String::from_utf8(out).unwrap())
    }

    fn get(uri: &str) -> request::Builder {
        http::Request::get(uri)
    }

    #[test]
    fn a_request_becomes_a_head_of_one_host_and_one_cookie() {
        let request = get("https://example.org/a?b=c")
            .header("cookie", "a=1")
            .header("accept", "text/html")
            .header("host", "EXAMPLE.org")
            .header("cookie", "b=2");
        assert_eq!(
            text_of(request, Follows::Nothing).unwrap(),
            "GET /a?b=c HTTP/1.1\r\nhost: example.org\r\naccept: text/html\r\n\
             cookie: a=1; b=2\r\n\r\n"
        );
    }

    #[test]
    fn a_body_of_unknown_length_is_told_in_chunks() {
        let request = || http::Request::post("http://example.org/");
        let open = text_of(request(), Follows::Body).unwrap();
        assert!(open.contains("transfer-encoding: chunked\r\n"), "{open}");
        let known = request().header("content-length", "3");
        let known = text_of(known, Follows::Body).unwrap();
        assert!(!known.contains("transfer-encoding"), "{known}");
    }

    #[test]
    fn two_names_reach_the_parser_which_refuses_them() {
        let request = get("http://example.org/").header("host", "other.example");
        let text = text_of(request, Follows::Nothing).unwrap();
        assert_eq!(text.matches("host: ").count(), 2, "{text}");
    }

    #[test]
    fn malformed_heads_are_no_requests() {
        let request = get("http://example.org/").header("a", " b");
        assert_eq!(
            text_of(request, Follows::Nothing),
            Err(Malformed::BadFieldValue)
        );
        let mut parts = get("/").body(()).unwrap().into_parts().0;
        parts.uri = http::Uri::from_static("example.org");
        let written = write_request(&parts, Follows::Nothing, &mut Vec::new());
        assert_eq!(written, Err(Malformed::MissingPath));
    }

    #[test]
    fn a_response_loses_what_belongs_to_its_connection() {
        let text = b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nConnection: close\r\n\
                     Transfer-Encoding: chunked\r\nX-Empty:\r\n\r\nNo.";
        let (response, length) = read_response(text).unwrap();
        assert_eq!(response.status(), 404);
        assert_eq!(&text[length..], b"No.");
        let names: Vec<&str> = response
            .headers()
            .keys()
            .map(|name| name.as_str())
            .collect();
        assert_eq!(names, ["content-type", "x-empty"]);
        assert!(read_response(b"HTTP/1.1 200 OK\r\nA: b\r\n").is_err());
    }
}
