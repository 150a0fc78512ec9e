//! One file, ready to be sent: its heads, and its other codings.

use std::cell::Cell;
use std::fs::File;
use std::rc::Rc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::coding::{Accepted, Coding, gains};
use super::compressor::{FILE_MAX, FILE_MIN};
use super::folder::Stamp;
use super::table::Contents;
use crate::publisher::DigestCell;

/// One representation of a file, and where it is the file itself, the others.
#[derive(Clone, Debug)]
pub(crate) struct FileEntry {
    /// Status line and header lines of the whole representation.
    pub head: Vec<u8>,
    pub content_type: String,
    pub etag: String,
    pub modified: String,
    pub size: u64,
    pub stamp: Stamp,
    pub contents: Contents,
    /// Of the bytes, once somebody wanted it.
    pub digest: DigestCell,
    /// Lines that say how it is coded and what it depends on.
    lines: String,
    codings: Vec<(Coding, Rc<FileEntry>)>,
    /// Codings that were asked for, worth it or not.
    asked: Cell<Accepted>,
}

impl FileEntry {
    /// The file as it lies on the disk; none where somebody writes to it just now.
    pub fn read(file: File, stamp: Stamp, real: &[u8]) -> Option<Self> {
        let contents = Contents::read(file, stamp)?;
        let content_type = content_type(real);
        let lines = match gains(&content_type) {
            true => String::from("Vary: Accept-Encoding\r\n"),
            false => String::new(),
        };
        let etag = format!(
            "\"{:x}-{:x}-{:x}\"",
            stamp.modified_seconds, stamp.modified_nanoseconds, stamp.size
        );
        let modified =
            httpdate::fmt_http_date(last_modified(stamp.modified_seconds, SystemTime::now()));
        let entry = Self {
            head: Vec::new(),
            content_type,
            etag,
            modified,
            size: stamp.size,
            stamp,
            contents,
            digest: DigestCell::default(),
            lines,
            codings: Vec::new(),
            asked: Cell::default(),
        };
        Some(entry.with_head())
    }

    /// The file with one coding more: `contents` of `size` bytes.
    pub fn with(&self, coding: Coding, contents: Contents, size: u64) -> Self {
        let opaque = self.etag.trim_end_matches('"');
        let coded = Self {
            //= RFC 9110 section 8.8.1: representations that differ in their coding have other tags.
            etag: format!("{opaque}-{coding}\""),
            size,
            contents,
            digest: DigestCell::default(),
            lines: format!("Content-Encoding: {coding}\r\n{}", self.lines),
            codings: Vec::new(),
            ..self.clone()
        };
        let mut file = self.clone();
        file.codings.push((coding, Rc::new(coded.with_head())));
        file
    }

    /// The smallest representation that a visitor takes.
    pub fn representation(file: &Rc<Self>, accepted: Accepted) -> Rc<Self> {
        let taken = |(coding, entry): &(Coding, Rc<Self>)| {
            (accepted.takes(*coding) && entry.size < file.size).then(|| Rc::clone(entry))
        };
        let coded = file.codings.iter().filter_map(taken);
        coded
            .min_by_key(|entry| entry.size)
            .unwrap_or_else(|| Rc::clone(file))
    }

    /// The coding that is worth making for a visitor that takes these; asked for until
    /// [`FileEntry::note_asked`].
    pub fn wish(&self, accepted: Accepted) -> Option<Coding> {
        let has_one = self.codings.iter().any(|(one, _)| accepted.takes(*one));
        if !self.gains() || has_one || !(FILE_MIN..=FILE_MAX).contains(&self.size) {
            return None;
        }
        let coding = accepted.best()?;
        (!self.asked.get().takes(coding)).then_some(coding)
    }

    /// `coding` is being made.
    pub fn note_asked(&self, coding: Coding) {
        self.asked.set(self.asked.get().and(coding));
    }

    /// Whether it becomes smaller by a coding.
    pub fn gains(&self) -> bool {
        !self.lines.is_empty()
    }

    /// The coding of this representation.
    pub fn coding(&self) -> Option<&str> {
        let line = self.lines.lines().next()?;
        line.strip_prefix("Content-Encoding: ")
    }

    /// Whether there is a representation in this coding.
    pub fn has(&self, coding: Coding) -> bool {
        self.codings.iter().any(|(one, _)| *one == coding)
    }

    /// The lines of a 304.
    pub fn validators(&self) -> String {
        let (etag, modified) = (&self.etag, &self.modified);
        let vary = self.lines.lines().find(|line| line.starts_with("Vary"));
        let (vary, end) = vary.map_or(("", ""), |line| (line, "\r\n"));
        format!("ETag: {etag}\r\nLast-Modified: {modified}\r\n{vary}{end}")
    }

    /// The lines of a 206, but for the part.
    pub fn validators_and_type(&self) -> String {
        format!(
            "Content-Type: {}\r\n{}ETag: {}\r\nLast-Modified: {}\r\n",
            self.content_type, self.lines, self.etag, self.modified
        )
    }

    /// What it counts for in the table, its codings with it.
    pub fn cost(&self) -> u64 {
        let texts = self.head.capacity() + self.content_type.len() + self.etag.len();
        let codings = self
            .codings
            .iter()
            .map(|(_, entry)| CODING_BYTES + entry.cost());
        self.contents.cost() + texts as u64 + codings.sum::<u64>()
    }

    fn with_head(mut self) -> Self {
        let (lines, size) = (self.validators_and_type(), self.size);
        self.head =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {size}\r\n{lines}Accept-Ranges: bytes\r\n")
                .into_bytes();
        self
    }
}

/// When a file was changed, as visitors are told it.
//= RFC 9110 section 8.8.2.1: "An origin server with a clock MUST NOT generate a Last-Modified date
// that is later than the server's time of message origination"
fn last_modified(seconds: i64, now: SystemTime) -> SystemTime {
    let seconds = u64::try_from(seconds).unwrap_or_default();
    // A file system may hold years that no calendar of ours has.
    let changed = UNIX_EPOCH.checked_add(Duration::from_secs(seconds));
    changed.map_or(now, |changed| changed.min(now))
}

/// What one more coding costs beside its texts and its body.
const CODING_BYTES: u64 = 320;

/// The type of a file by its name. Texts are taken to be UTF-8, as everything written today is.
fn content_type(real: &[u8]) -> String {
    let name = String::from_utf8_lossy(real);
    let guess = mime_guess::from_path(&*name).first_or_octet_stream();
    let is_text = guess.type_() == "text" || guess.subtype() == "javascript";
    match is_text {
        true => format!("{guess}; charset=utf-8"),
        false => guess.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_file_is_told_to_be_of_before_1970_or_of_tomorrow() {
        let now = UNIX_EPOCH + Duration::from_secs(1_000);
        let far = 999_999_999_999;
        for (written, told) in [(-5, 0), (0, 0), (999, 999), (1_001, 1_000), (far, 1_000)] {
            let expected = UNIX_EPOCH + Duration::from_secs(told);
            assert_eq!(last_modified(written, now), expected, "{written}");
        }
        assert_eq!(last_modified(i64::MAX, now), now);
    }

    #[test]
    fn types_follow_names() {
        assert_eq!(content_type(b"a/b.html"), "text/html; charset=utf-8");
        assert_eq!(content_type(b"a.js"), "text/javascript; charset=utf-8");
        assert_eq!(content_type(b"a.png"), "image/png");
        assert_eq!(content_type(b"a"), "application/octet-stream");
    }
}
