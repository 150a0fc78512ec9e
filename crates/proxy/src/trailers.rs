//! Trailers: the fields behind a body, and which of them may go on.
//!
//! Who reads a trailer has acted on the head already. So what decides how a message is framed,
//! where it goes, who may have it, how long it is kept or how its body is read counts only there
//! (RFC 9110 section 6.5.1), and behind the body it is dropped: others who merge trailers into
//! heads must not be led astray by what passed through us. What is left goes on, in both
//! directions, and never into a head.
//!
//! Objects in the cache have none: RFC 9111 section 3 lets a cache throw them away, and all who get
//! the same object get the same.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::connection_fields::is_of_connection;

/// Most trailers of a request. They come in at most a kilobyte.
const LINES_MAX: usize = 32;

/// Fields that count in a head only.
const HEAD_ONLY: [&str; 45] = [
    // Framing, routing, and whom a message is from.
    "content-length",
    "expect",
    "forwarded",
    "host",
    "levee-fetch",
    "max-forwards",
    "trailer",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    // Who may have it.
    "authorization",
    "cookie",
    "proxy-authenticate",
    "proxy-authorization",
    "set-cookie",
    "www-authenticate",
    // What is asked for.
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "range",
    // What becomes of it.
    "age",
    "alt-svc",
    "cache-control",
    "cdn-cache-control",
    "clear-site-data",
    "content-security-policy",
    "date",
    "expires",
    "location",
    "pragma",
    "refresh",
    "retry-after",
    "strict-transport-security",
    "surrogate-control",
    "vary",
    "warning",
    // How the body is read.
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-range",
    "content-type",
];

/// Of `trailers` those that may go on; none where nothing is left.
pub(crate) fn passed_on(mut trailers: HeaderMap) -> Option<HeaderMap> {
    for name in HEAD_ONLY {
        trailers.remove(name);
    }
    let of_connection: Vec<HeaderName> = trailers
        .keys()
        .filter(|name| is_of_connection(name.as_str()))
        .cloned()
        .collect();
    for name in of_connection {
        trailers.remove(name);
    }
    (!trailers.is_empty()).then_some(trailers)
}

/// Reads the lines behind a body, with the empty line that ends them, and leaves out what may not
/// go on. None where nothing is left, or they are no fields.
pub(crate) fn read(lines: &[u8]) -> Option<HeaderMap> {
    let mut space = [httparse::EMPTY_HEADER; LINES_MAX];
    let Ok(httparse::Status::Complete((_, lines))) = httparse::parse_headers(lines, &mut space)
    else {
        return None;
    };
    let mut trailers = HeaderMap::with_capacity(lines.len());
    for line in lines {
        let name = HeaderName::from_bytes(line.name.as_bytes()).ok()?;
        trailers.append(name, HeaderValue::from_bytes(line.value).ok()?);
    }
    passed_on(trailers)
}

/// Appends `trailers` as lines.
pub(crate) fn push_lines(trailers: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in trailers {
        out.extend_from_slice(name.as_str().as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value.as_bytes());
        out.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &str, expected: Option<&str>) {
        let mut out = Vec::new();
        let trailers = read(lines.as_bytes());
        if let Some(trailers) = &trailers {
            push_lines(trailers, &mut out);
        }
        let written = trailers.map(|_| String::from_utf8(out).unwrap());
        assert_eq!(written.as_deref(), expected, "{lines:?}");
    }

    #[test]
    fn what_a_trailer_may_never_say_is_dropped() {
        check(
            "Grpc-Status: 0\r\nContent-Length: 5\r\nX-Sum: a\r\nX-Sum: b\r\n\r\n",
            Some("grpc-status: 0\r\nx-sum: a\r\nx-sum: b\r\n"),
        );
        for name in ["transfer-encoding", "Host", "Authorization", "SET-COOKIE"] {
            check(&format!("{name}: x\r\n\r\n"), None);
        }
        check("\r\n", None);
        check("a: b\r\n", None);
    }

    #[test]
    fn the_names_are_in_lower_case_and_stand_once() {
        let mut names = HEAD_ONLY.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), HEAD_ONLY.len());
        for name in HEAD_ONLY {
            // Looked up as it is: panics where the name is not in lower case.
            assert_eq!(HeaderName::from_static(name), name);
            assert!(!is_of_connection(name));
        }
    }
}
