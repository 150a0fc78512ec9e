//! Heads of responses that are made here.

use crate::request::{Persistence, Request, Version};

/// What the response says about its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closing {
    /// The connection stays, as HTTP/1.1 does without being told.
    Stay,
    /// The connection stays, and HTTP/1.0 must be told.
    StayExplicitly,
    Close,
}

impl Closing {
    /// For a response to `request`, on a server that wants to keep the connection.
    pub const fn for_request(request: &Request<'_, '_>) -> Self {
        match (request.persistence, request.version) {
            (Persistence::KeepAlive, Version::Http11 | Version::Http2) => Self::Stay,
            (Persistence::KeepAlive, Version::Http10) => Self::StayExplicitly,
            (Persistence::Close, _) => Self::Close,
        }
    }

    /// The header line, or nothing.
    pub const fn line(self) -> &'static [u8] {
        match self {
            Self::Stay => b"",
            Self::StayExplicitly => b"Connection: keep-alive\r\n",
            Self::Close => b"Connection: close\r\n",
        }
    }
}

/// A short answer of ours: a status, perhaps some header lines, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plain {
    pub status: u16,
    /// Whole lines with their ends.
    pub lines: String,
    /// What is said instead of the status's own sentence.
    text: Option<&'static str>,
}

impl Plain {
    pub const fn new(status: u16) -> Self {
        Self {
            status,
            lines: String::new(),
            text: None,
        }
    }

    pub const fn with(status: u16, lines: String) -> Self {
        Self {
            status,
            lines,
            text: None,
        }
    }

    pub const fn saying(status: u16, lines: String, text: &'static str) -> Self {
        Self {
            status,
            lines,
            text: Some(text),
        }
    }

    /// Appends the head and gives the body that belongs to it.
    pub fn write_head(&self, date: &[u8], closing: Closing, out: &mut Vec<u8>) -> &'static str {
        let reason = reason(self.status);
        let body = match self.status {
            204 | 304 => "",
            _ => self.text.unwrap_or_else(|| body(self.status)),
        };
        push_status(self.status, out);
        out.extend_from_slice(self.lines.as_bytes());
        if !body.is_empty() {
            out.extend_from_slice(b"Content-Type: text/plain; charset=utf-8\r\n");
        }
        if self.status != 204 && self.status != 304 {
            out.extend_from_slice(b"Content-Length: ");
            push_number(body.len() as u64, out);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(date);
        out.extend_from_slice(closing.line());
        out.extend_from_slice(b"\r\n");
        assert!(!reason.is_empty(), "a status of ours has a reason");
        body
    }
}

/// Appends a status line.
pub(crate) fn push_status(status: u16, out: &mut Vec<u8>) {
    // What crowds are told.
    let usual: &[u8] = match status {
        200 => b"HTTP/1.1 200 OK\r\n",
        302 => b"HTTP/1.1 302 Found\r\n",
        304 => b"HTTP/1.1 304 Not Modified\r\n",
        404 => b"HTTP/1.1 404 Not Found\r\n",
        _ => b"",
    };
    if !usual.is_empty() {
        return out.extend_from_slice(usual);
    }
    out.extend_from_slice(b"HTTP/1.1 ");
    push_number(status.into(), out);
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Appends a number in decimal.
pub(crate) fn push_number(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// The phrase of a status; of one that is not registered, a word that says so.
fn reason(status: u16) -> &'static str {
    http::StatusCode::from_u16(status)
        .ok()
        .and_then(|status| status.canonical_reason())
        .unwrap_or("Status")
}

/// A sentence for people.
fn body(status: u16) -> &'static str {
    match status {
        301 => "The page has moved.\n",
        400 => "The request could not be understood.\n",
        403 => "This is not for you.\n",
        404 => "There is no such page here.\n",
        405 => "This method is not allowed here.\n",
        408 => "The request took too long.\n",
        410 => "This is over.\n",
        412 => "The page is not as you expect it.\n",
        413 => "The request is too large.\n",
        414 => "The address is too long.\n",
        416 => "The page has no such part.\n",
        417 => "This expectation cannot be met.\n",
        421 => "This server does not speak for that name.\n",
        431 => "The head of the request is too long.\n",
        501 => "This method is not known here.\n",
        502 => "The server behind this one gave no good answer.\n",
        503 => "This is not to be had just now; please try again in a moment.\n",
        504 => "The server behind this one took too long.\n",
        505 => "This version of HTTP is not spoken here.\n",
        508 => "The request came back to where it had been.\n",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_heads_are_written_out() {
        let mut out = Vec::new();
        for number in [0, 7, 10, 1234, u64::MAX] {
            push_number(number, &mut out);
            out.push(b' ');
        }
        assert_eq!(out, b"0 7 10 1234 18446744073709551615 ");
        out.clear();
        let plain = Plain::with(405, "Allow: GET, HEAD\r\n".into());
        let body = plain.write_head(b"Date: x\r\n", Closing::Close, &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap() + body,
            "HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\n\
             Content-Type: text/plain; charset=utf-8\r\nContent-Length: 33\r\nDate: x\r\n\
             Connection: close\r\n\r\nThis method is not allowed here.\n"
        );
    }
}
