//! Several parts of one object in one response: `multipart/byteranges` (RFC 9110 section 14.6).
//!
//! The length is known before the first byte is sent, so connections stay usable. Each part is its
//! heading and a piece of the object that is shared or sent by the kernel, never copied.

use std::hash::{BuildHasher, Hash};
use std::ops::Range;

use bytes::Bytes;

use super::{Flow, Source, State};
use crate::answer::{Body, FileHandle};
use crate::response::{Closing, push_number};

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct Parts {
    whole: Whole,
    size: u64,
    ranges: Box<[Range<u64>]>,
    next: usize,
    content_type: Vec<u8>,
    boundary: String,
}

/// The object of which parts are sent.
#[derive(Clone, Debug)]
pub(crate) enum Whole {
    Memory(Bytes),
    File(FileHandle),
}

impl Parts {
    /// Parts of `whole`, which has `size` bytes and these header lines. `hasher` must have a seed
    /// that strangers do not know: nobody may write an object that contains its boundary.
    pub fn new(
        whole: Whole,
        size: u64,
        ranges: Box<[Range<u64>]>,
        lines: &[u8],
        hasher: &impl BuildHasher,
    ) -> Self {
        let mut state = hasher.build_hasher();
        (size, lines, "boundary").hash(&mut state);
        let boundary = format!("levee{:016x}", std::hash::Hasher::finish(&state));
        let mut content_type = Vec::new();
        each_line(lines, |line, is_type| {
            if is_type {
                content_type.extend_from_slice(line);
            }
        });
        Self {
            whole,
            size,
            ranges,
            next: 0,
            content_type,
            boundary,
        }
    }

    /// Appends `lines` without what each part says for itself, and the framing of all.
    pub fn push_lines(&self, lines: &[u8], out: &mut Vec<u8>) {
        each_line(lines, |line, is_type| {
            if !is_type {
                out.extend_from_slice(line);
            }
        });
        out.extend_from_slice(b"Content-Type: multipart/byteranges; boundary=");
        out.extend_from_slice(self.boundary.as_bytes());
        out.extend_from_slice(b"\r\nContent-Length: ");
        push_number(self.length(), out);
        out.extend_from_slice(b"\r\n");
    }

    /// Length of all parts with their headings.
    pub fn length(&self) -> u64 {
        let mut headings = Vec::new();
        for range in &self.ranges {
            self.push_heading(range, &mut headings);
        }
        self.push_end(&mut headings);
        let parts = self.ranges.iter().map(|range| range.end - range.start);
        headings.len() as u64 + parts.sum::<u64>()
    }

    fn push_heading(&self, range: &Range<u64>, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(self.boundary.as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.content_type);
        out.extend_from_slice(b"Content-Range: bytes ");
        push_number(range.start, out);
        out.push(b'-');
        push_number(range.end - 1, out);
        out.push(b'/');
        push_number(self.size, out);
        out.extend_from_slice(b"\r\n\r\n");
    }

    fn push_end(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\r\n--");
        out.extend_from_slice(self.boundary.as_bytes());
        out.extend_from_slice(b"--\r\n");
    }

    /// The next part; none, and the end of all, when the last one is out.
    pub(super) fn next(&mut self, out: &mut Vec<u8>) -> Option<Body> {
        let Some(range) = self.ranges.get(self.next).cloned() else {
            self.push_end(out);
            return None;
        };
        self.next += 1;
        self.push_heading(&range, out);
        Some(match &self.whole {
            Whole::Memory(bytes) => {
                let index = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
                Body::Memory(bytes.slice(index(range.start)..index(range.end)))
            }
            Whole::File(file) => Body::File {
                file: file.clone(),
                offset: range.start,
                left: range.end - range.start,
            },
        })
    }
}

impl Flow {
    /// A flow that sends parts of an object that is here, after a head that says 206.
    pub fn of_parts(parts: Parts, closing: Closing) -> Self {
        Self {
            closing,
            status: 206,
            state: State::Plain,
            ..Self::empty(Source::Parts(parts))
        }
    }
}

/// Visits each header line with its end, and whether it is Content-Type.
fn each_line(lines: &[u8], mut visit: impl FnMut(&[u8], bool)) {
    let name = b"content-type:";
    for line in lines.split_inclusive(|&byte| byte == b'\n') {
        let start = line.get(..name.len()).unwrap_or_default();
        visit(line, start.eq_ignore_ascii_case(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_framed_and_their_length_is_known() {
        let lines = b"etag: \"x\"\r\nContent-Type: text/plain\r\nvia: y\r\n";
        let whole = Whole::Memory(Bytes::from_static(b"0123456789"));
        let ranges = vec![0..2, 7..10].into_boxed_slice();
        let hasher = foldhash::fast::FixedState::default();
        let mut parts = Parts::new(whole, 10, ranges, lines, &hasher);
        let mut head = Vec::new();
        parts.push_lines(lines, &mut head);
        let head = String::from_utf8(head).unwrap();
        let boundary = parts.boundary.clone();
        let mut out = Vec::new();
        while let Some(Body::Memory(bytes)) = parts.next(&mut out) {
            out.extend_from_slice(&bytes);
        }
        assert_eq!(
            String::from_utf8(out.clone()).unwrap(),
            format!(
                "\r\n--{boundary}\r\nContent-Type: text/plain\r\nContent-Range: bytes 0-1/10\r\n\
                 \r\n01\r\n--{boundary}\r\nContent-Type: text/plain\r\n\
                 Content-Range: bytes 7-9/10\r\n\r\n789\r\n--{boundary}--\r\n"
            )
        );
        let length = out.len();
        assert_eq!(
            head,
            format!(
                "etag: \"x\"\r\nvia: y\r\nContent-Type: multipart/byteranges; \
                 boundary={boundary}\r\nContent-Length: {length}\r\n"
            )
        );
    }
}
